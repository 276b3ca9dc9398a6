//! One reading of a project: servers, ports, groups and routers, complete or not at all.
//!
//! ```text
//! servers ─┐ pages, decoded as they come,
//! ports   ─┤ texts shared                ─▶ all four whole? ─▶ ours by their own marks ─▶ CloudSnapshot
//! groups  ─┤                                 no: ReadError
//! routers ─┘
//! ```
//!
//! Four requests a cycle, at once, whatever the number of pools; further pages only where a list is longer than one. A full
//! listing whose servers fill a page needs a second one, if only to learn that it is empty: it leaves the groups out, whose
//! rules only people change and which the listings before and after it hold. So four it is on the mean, too.
//! What did not change keeps its `Arc`, so that an unchanged fleet costs no memory and compares by address.
//!
//! **Changes only.** Between full listings Nova is asked for what changed since the last one. That is safe only so:
//! * Without the tag filter. Nova drops the tags of a deleted server, so with the filter a deletion would never show;
//!   and a server that lost its tag would not either. Whose a server is, is read from its marks, or remembered from
//!   when it carried them.
//! * By Nova's own clock: the `Date` of the previous listing's first page, less what that answer took, less an overlap
//!   for hosts of one cloud whose clocks differ. Without a `Date`, or when it runs backwards, everything is listed.
//! * Never after a long silence: operators move deleted rows away, and a row that is moved away is in no list.
//! * Tags and metadata do not count as a change of the server: a mark that was added or taken away shows in the next
//!   full listing. Addresses do not either; ports are always whole and say them.

use std::sync::Arc;
use std::time::{Duration, Instant};

use jiff::Timestamp;
use reveille_cloud::interest::Interest;
use reveille_cloud::known::Known;
use reveille_core::effect::ReadError;
use reveille_core::event::{CloudSnapshot, Scope};
use reveille_core::model::id::InstanceId;
use reveille_core::model::instance::{Instance, InstanceState, Port};
use reveille_core::model::network::{Router, SecurityGroup};
use reveille_core::model::time::ServiceTime;

use crate::fetch::{
    CLOCK_OVERLAP, Ports, list_all_servers, list_groups, list_ports, list_routers, list_servers,
};
use crate::instance::ServerTables;
use crate::paging::Listing;
use crate::project::Project;
use reveille_core::model::intern::Texts;

/// After this long without a listing, everything is read again.
const CHANGES_MAX_AGE: Duration = Duration::from_secs(900);

/// Lists one project, over and over, and remembers what it needs to list less next time.
#[derive(Debug)]
pub struct Lister {
    project: Project,
    interest: Interest,
    servers: ServerTables,
    texts: Texts,
    known: Known,
    /// From when on changes must be asked for; `None` until a full listing was handed over.
    horizon: Option<Horizon>,
    /// The servers of the last full listing were more than one request.
    is_long: bool,
    /// The last listing held the groups.
    has_groups: bool,
}

#[derive(Clone, Copy, Debug)]
struct Horizon {
    /// The server's clock just before the last listing.
    server: Timestamp,
    /// Our clock then.
    at: Instant,
}

/// Whose servers are asked for.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Ask {
    /// Those that carry a mark of a roster, as far as the service can filter.
    Ours,
    /// All of the project.
    Everybody,
}

/// The four lists, each whole.
struct Whole {
    servers: Listing<Arc<Instance>>,
    ports: Ports,
    groups: Option<Vec<Arc<SecurityGroup>>>,
    routers: Vec<Router>,
}

impl Lister {
    /// A lister that has seen nothing yet: its first listing is a full one.
    pub fn new(project: Project, interest: Interest) -> Self {
        Self {
            project,
            interest,
            servers: ServerTables::default(),
            texts: Texts::default(),
            known: Known::default(),
            horizon: None,
            is_long: false,
            has_groups: false,
        }
    }

    /// Asks for something else from now on. A different question is answered in full first.
    pub fn set_interest(&mut self, interest: Interest) {
        if self.interest != interest {
            self.interest = interest;
            self.horizon = None;
            self.has_groups = false;
        }
    }

    /// The project that is listed.
    pub fn project(&self) -> &Project {
        &self.project
    }

    /// Reads the project. `now_full` asks for every instance; otherwise only changes may be read, where that is safe.
    ///
    /// # Errors
    /// Any part that could not be read completely makes the whole reading void. Nothing is retried here.
    pub async fn list(&mut self, now_full: bool) -> Result<CloudSnapshot, ReadError> {
        let since = self.horizon.filter(|horizon| !now_full && horizon.at.elapsed() < CHANGES_MAX_AGE);
        self.take(since, Ask::Ours).await.map(|(snapshot, _)| snapshot)
    }

    /// Reads the project in full, and all other instances with ours: the one way to learn that every instance carries a mark. No
    /// more requests than a full listing, unless the foreign instances fill pages of their own.
    ///
    /// # Errors
    /// As [`Lister::list`].
    pub async fn list_with_strangers(&mut self) -> Result<(CloudSnapshot, Vec<Arc<Instance>>), ReadError> {
        self.take(None, Ask::Everybody).await
    }

    async fn take(
        &mut self,
        since: Option<Horizon>,
        ask: Ask,
    ) -> Result<(CloudSnapshot, Vec<Arc<Instance>>), ReadError> {
        let begun = Instant::now();
        let mut since = since.map(|horizon| horizon.server);
        let mut whole = self.read(since, ask).await?;
        if let (Some(from), Some(server)) = (since, whole.servers.begun)
            && server + CLOCK_OVERLAP / 2 < from
        {
            tracing::warn!(
                "openstack: the service's clock ran backwards; everything is listed instead of changes"
            );
            since = None;
            whole = self.read(None, ask).await?;
        }
        let Whole { servers, ports, groups, routers } = whole;
        let servers_begun = servers.begun;
        // The last thing that is waited for: a listing that is cut short by its deadline leaves no trace, so that the next one
        // asks for the same changes again.
        let limits = RouteLimits::read(&self.project, &routers).await;
        let routers = limits.put(routers);
        let scope = if since.is_some() { Scope::Changes } else { Scope::Full };
        self.horizon = servers.begun.map(|server| Horizon { server, at: begun });
        if scope == Scope::Full {
            self.is_long = servers.pages > 1;
        }
        self.has_groups = groups.is_some();
        let (instances, strangers) = self.take_servers(servers, scope, ask);
        let in_use = self.known.in_use(ports.in_use);
        let ports = self.take_ports(ports.of_instances);
        if scope == Scope::Full {
            self.servers.sweep();
            self.texts.sweep();
        }
        let begun = servers_begun.map(|begun| ServiceTime::from_s(begun.as_second()));
        Ok((CloudSnapshot { instances, begun, scope, ports, in_use, groups, routers }, strangers))
    }

    async fn read(&mut self, since: Option<Timestamp>, ask: Ask) -> Result<Whole, ReadError> {
        let (project, interest, known) = (&self.project, &self.interest, &self.known);
        let tables = &mut self.servers;
        let with_groups = since.is_some() || ask == Ask::Everybody || !self.is_long || !self.has_groups;
        let servers = async {
            match ask {
                Ask::Ours => list_servers(project, interest, since, tables, known).await,
                Ask::Everybody => list_all_servers(project, tables, known).await,
            }
        };
        let (servers, ports, groups, routers) = futures::try_join!(
            servers,
            list_ports(project, interest, &mut self.texts, known),
            async { if with_groups { list_groups(project, interest).await.map(Some) } else { Ok(None) } },
            list_routers(project, interest),
        )?;
        Ok(Whole { servers, ports, groups, routers })
    }

    /// Keeps ours, and hands on what is new of them; what did not change is the known `Arc` already. Strangers are only
    /// handed on, and only when they were asked for.
    fn take_servers(
        &mut self,
        listing: Listing<Arc<Instance>>,
        scope: Scope,
        ask: Ask,
    ) -> (Vec<Arc<Instance>>, Vec<Arc<Instance>>) {
        let changes = scope == Scope::Changes;
        let (mut ours, mut strangers) = (Vec::with_capacity(listing.items.len()), Vec::new());
        for instance in listing.items.into_values() {
            if self.interest.claims(&instance) || (changes && self.known.last(&instance.id).is_some()) {
                ours.push(instance);
            } else if ask == Ask::Everybody {
                strangers.push(instance);
            }
        }
        let (here, gone): (Vec<_>, Vec<_>) = ours.iter().partition(|one| one.state != InstanceState::Gone);
        if changes {
            self.known.take_changes(here.into_iter(), gone.into_iter());
        } else {
            self.known.take_instances(here.into_iter());
        }
        (ours, strangers)
    }

    /// Ports of every instance of the project, ours or not. The address of a foreign machine is in use, and the check of a
    /// route's next hop must know it.
    fn take_ports(&mut self, listing: Listing<(InstanceId, Arc<Port>)>) -> Vec<(InstanceId, Arc<Port>)> {
        let mut out: Vec<_> =
            listing.items.into_values().map(|(instance, port)| (self.known.id(instance), port)).collect();
        self.known.take_ports(out.iter().map(|(_, port)| port));
        out.sort_by(|a, b| (&a.0, &a.1.id).cmp(&(&b.0, &b.1.id)));
        out
    }
}

/// How many routes each router may hold, in the order of the routers.
struct RouteLimits(Vec<Option<u32>>);

impl RouteLimits {
    async fn read(project: &Project, routers: &[Router]) -> Self {
        let mut limits = Vec::with_capacity(routers.len());
        for router in routers {
            limits.push(project.route_limit(&router.id).await);
        }
        Self(limits)
    }

    fn put(self, routers: Vec<Router>) -> Vec<Arc<Router>> {
        routers.into_iter().zip(self.0).map(|(router, limit)| Arc::new(Router { limit, ..router })).collect()
    }
}
