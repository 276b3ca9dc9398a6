//! One reading of a project: servers, ports, groups and routers, complete or not at all.
//!
//! ```text
//! servers ─┐ pages, decoded as they come,
//! ports   ─┤ texts shared                ─▶ all four whole? ─▶ ours by their own marks ─▶ CloudSnapshot
//! groups  ─┤                                 no: ReadError
//! routers ─┘
//! ```
//!
//! Four requests a cycle, at once, whatever the number of pools; further pages only where a list is longer than one.
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

use std::collections::BTreeMap;
use std::sync::Arc;
use std::time::{Duration, Instant};

use jiff::{SignedDuration, Timestamp};
use reveille_core::effect::ReadError;
use reveille_core::event::{CloudSnapshot, Scope};
use reveille_core::model::id::InstanceId;
use reveille_core::model::instance::{Instance, InstanceState, Port};
use reveille_core::model::network::{Router, SecurityGroup};
use reveille_core::model::roster::GroupRef;
use serde::Deserialize;
use serde_json::value::RawValue;

use crate::catalog::Service;
use crate::client::Request;
use crate::group::{self, WireGroup};
use crate::instance::{Server, ServerTables, Text, unreadable};
use crate::interest::Interest;
use crate::intern::Texts;
use crate::paging::{Link, Listing, Page, all_pages, next_of};
use crate::port::{self, WirePort};
use crate::project::Project;
use crate::report::{NO_LISTING, Reading};
use crate::router::{self, WireRouter};

/// Nova's own default maximum; a deployment may allow less.
const SERVERS_PER_PAGE: &str = "1000";
/// Fewer calls matter more than small answers: port lists are what rate limiters count.
const PORTS_PER_PAGE: &str = "5000";
/// How far the clocks of one cloud's hosts may differ before a change could be missed.
const CLOCK_OVERLAP: SignedDuration = SignedDuration::from_secs(120);
/// After this long without a listing, everything is read again.
const CHANGES_MAX_AGE: Duration = Duration::from_secs(900);

/// Lists one project, over and over, and remembers what it needs to list less next time.
#[derive(Debug)]
pub struct Lister {
    project: Project,
    interest: Interest,
    servers: ServerTables,
    texts: Texts,
    /// Ours, as of the last listing that was handed over.
    known: BTreeMap<InstanceId, Arc<Instance>>,
    ports: BTreeMap<String, Arc<Port>>,
    /// From when on changes must be asked for; `None` until a full listing was handed over.
    horizon: Option<Horizon>,
}

#[derive(Clone, Copy, Debug)]
struct Horizon {
    /// The server's clock just before the last listing.
    server: Timestamp,
    /// Our clock then.
    at: Instant,
}

/// The four lists, each whole.
struct Whole {
    servers: Listing<Instance>,
    ports: Listing<(InstanceId, Port)>,
    groups: Vec<Arc<SecurityGroup>>,
    routers: Vec<Router>,
}

type Found<T> = Result<T, ReadError>;

impl Lister {
    /// A lister that has seen nothing yet: its first listing is a full one.
    pub fn new(project: Project, interest: Interest) -> Self {
        Self {
            project,
            interest,
            servers: ServerTables::default(),
            texts: Texts::default(),
            known: BTreeMap::new(),
            ports: BTreeMap::new(),
            horizon: None,
        }
    }

    /// Asks for something else from now on. A different question is answered in full first.
    pub fn set_interest(&mut self, interest: Interest) {
        if self.interest != interest {
            self.interest = interest;
            self.horizon = None;
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
        let begun = Instant::now();
        let mut since = since.map(|horizon| horizon.server);
        let mut whole = self.read(since).await?;
        if let (Some(from), Some(server)) = (since, whole.servers.begun)
            && server + CLOCK_OVERLAP / 2 < from
        {
            tracing::warn!(
                "openstack: the service's clock ran backwards; everything is listed instead of changes"
            );
            since = None;
            whole = self.read(None).await?;
        }
        let Whole { servers, ports, groups, routers } = whole;
        let scope = if since.is_some() { Scope::Changes } else { Scope::Full };
        self.horizon = servers.begun.map(|server| Horizon { server, at: begun });
        let instances = self.take_servers(servers, scope);
        let ports = self.take_ports(ports);
        if scope == Scope::Full {
            self.servers.sweep();
            self.texts.sweep();
        }
        let limits = RouteLimits::read(&self.project, &routers).await;
        Ok(CloudSnapshot { instances, scope, ports, groups, routers: limits.put(routers) })
    }

    async fn read(&mut self, since: Option<Timestamp>) -> Result<Whole, ReadError> {
        let (project, interest) = (&self.project, &self.interest);
        let (servers, ports, groups, routers) = futures::try_join!(
            list_servers(project, interest, since, &mut self.servers),
            list_ports(project, interest, &mut self.texts),
            list_groups(project, interest),
            list_routers(project, interest),
        )?;
        Ok(Whole { servers, ports, groups, routers })
    }

    /// Keeps ours, and hands on what is new of them, with the old `Arc` where nothing changed.
    fn take_servers(&mut self, listing: Listing<Instance>, scope: Scope) -> Vec<Arc<Instance>> {
        let mut before = std::mem::take(&mut self.known);
        let mut out = Vec::with_capacity(listing.items.len());
        for mut instance in listing.items.into_values() {
            let old = before.remove(&instance.id);
            if let Some(old) = old.as_ref().filter(|_| is_partial(&instance)) {
                instance.name = old.name.clone();
                instance.marks = old.marks.clone();
            }
            let ours = self.interest.claims(&instance) || (scope == Scope::Changes && old.is_some());
            if !ours {
                continue;
            }
            let instance = match old {
                Some(old) if *old == instance => old,
                _ => Arc::new(instance),
            };
            if instance.state != InstanceState::Gone {
                self.known.insert(instance.id.clone(), instance.clone());
            }
            out.push(instance);
        }
        if scope == Scope::Changes {
            self.known.append(&mut before);
        }
        out.sort_by(|a, b| a.id.cmp(&b.id));
        out
    }

    /// Ports of our instances, by instance, with the old `Arc` where nothing changed.
    fn take_ports(&mut self, listing: Listing<(InstanceId, Port)>) -> Vec<(InstanceId, Arc<Port>)> {
        let mut before = std::mem::take(&mut self.ports);
        let mut out = Vec::new();
        for (key, (instance, port)) in listing.items {
            let Some((instance, _)) = self.known.get_key_value(&instance) else { continue };
            let port = match before.remove(&key) {
                Some(old) if *old == port => old,
                _ => Arc::new(port),
            };
            self.ports.insert(key, port.clone());
            out.push((instance.clone(), port));
        }
        out.sort_by(|a, b| (&a.0, &a.1.id).cmp(&(&b.0, &b.1.id)));
        out
    }
}

/// A record of a cell that is down, or one that could not be read: it names the machine and says nothing of it, so it
/// does not unsay what the machine carried when it was last read. Its state is "alive, unknown", which nobody acts on.
fn is_partial(instance: &Instance) -> bool {
    instance.state == InstanceState::Other && instance.marks.is_empty() && instance.name.as_str().is_empty()
}

async fn list_servers(
    project: &Project,
    interest: &Interest,
    since: Option<Timestamp>,
    tables: &mut ServerTables,
) -> Found<Listing<Instance>> {
    if interest.cluster_marks.is_empty() {
        return Ok(Listing { items: BTreeMap::new(), begun: None });
    }
    let mut request = Request::get(Service::Compute, &["servers", "detail"]).query("limit", SERVERS_PER_PAGE);
    let mut what = "list servers";
    if let Some(since) = since {
        let since = since.checked_sub(CLOCK_OVERLAP).unwrap_or(since);
        request = request.query("changes-since", since.strftime("%Y-%m-%dT%H:%M:%SZ").to_string());
        what = "list changed servers";
    } else if let Some(tags) = interest.cluster_tags() {
        request = request.query("tags-any", tags.into_iter().collect::<Vec<_>>().join(","));
    }
    let reading = Reading::new(what, project.name(), NO_LISTING);
    all_pages(project.client(), request, reading, |body| decode_servers(body, tables)).await
}

/// Reads a page of servers. One server that cannot be read must not hide the others: it stays in the list by its id.
fn decode_servers(body: &[u8], tables: &mut ServerTables) -> Result<Page<Instance>, serde_json::Error> {
    #[derive(Deserialize)]
    struct Body<'a> {
        #[serde(borrow)]
        servers: Vec<Server<'a>>,
        #[serde(default)]
        servers_links: Vec<Link>,
    }
    #[derive(Deserialize)]
    struct Pieces<'a> {
        #[serde(borrow)]
        servers: Vec<&'a RawValue>,
        #[serde(default)]
        servers_links: Vec<Link>,
    }
    #[derive(Deserialize)]
    struct OnlyId<'a> {
        #[serde(borrow)]
        id: Text<'a>,
    }
    let keyed = |instance: Instance| (instance.id.to_string(), instance);
    match serde_json::from_slice::<Body<'_>>(body) {
        Ok(Body { servers, servers_links }) => Ok(Page {
            items: servers.into_iter().map(|server| keyed(server.into_instance(tables))).collect(),
            next: next_of(&servers_links),
        }),
        Err(error) if error.is_data() => {
            let Pieces { servers, servers_links } = serde_json::from_slice(body)?;
            let mut items = Vec::with_capacity(servers.len());
            for piece in servers {
                items.push(keyed(match serde_json::from_str::<Server<'_>>(piece.get()) {
                    Ok(server) => server.into_instance(tables),
                    Err(_) => {
                        let OnlyId { id } = serde_json::from_str(piece.get())?;
                        tracing::warn!(instance = %id.0, "openstack: a server cannot be read and is kept by its id only");
                        unreadable(&id.0, tables)
                    }
                }));
            }
            Ok(Page { items, next: next_of(&servers_links) })
        }
        Err(error) => Err(error),
    }
}

async fn list_ports(
    project: &Project,
    interest: &Interest,
    texts: &mut Texts,
) -> Found<Listing<(InstanceId, Port)>> {
    if interest.cluster_marks.is_empty() {
        return Ok(Listing { items: BTreeMap::new(), begun: None });
    }
    #[derive(Deserialize)]
    struct Body<'a> {
        #[serde(borrow)]
        ports: Vec<WirePort<'a>>,
        #[serde(default)]
        ports_links: Vec<Link>,
    }
    let request = Request::get(Service::Network, &["ports"])
        .query("project_id", project.id().to_string())
        .query("limit", PORTS_PER_PAGE)
        .queries("fields", port::FIELDS);
    let reading = Reading::new("list ports", project.name(), NO_LISTING);
    let mut listing = all_pages(project.client(), request, reading, |body| {
        let Body { ports, ports_links } = serde_json::from_slice(body)?;
        let items = ports.into_iter().map(|wire| {
            let instance = wire.instance();
            let port = wire.into_port(texts);
            (port.id.to_string(), instance.map(|instance| (instance, port)))
        });
        Ok(Page { items: items.collect(), next: next_of(&ports_links) })
    })
    .await?;
    let items = std::mem::take(&mut listing.items);
    let items = items.into_iter().filter_map(|(id, port)| Some((id, port?))).collect();
    Ok(Listing { items, begun: listing.begun })
}

/// One question by name or by id; Neutron cannot be asked for "this name or that id". Where rosters use both, all groups
/// of the project are listed, and only ids that are not among them (shared by another project) cost a second question.
async fn list_groups(project: &Project, interest: &Interest) -> Found<Vec<Arc<SecurityGroup>>> {
    let mut names = Vec::new();
    let mut ids = Vec::new();
    for group in &interest.groups {
        match group {
            GroupRef::Id(id) => ids.push(id.to_string()),
            GroupRef::Name(name) => names.push(name.to_string()),
        }
    }
    let base = || Request::get(Service::Network, &["security-groups"]).queries("fields", group::FIELDS);
    let ours = || base().query("project_id", project.id().to_string());
    let request = match (names.is_empty(), ids.is_empty()) {
        (true, true) => return Ok(Vec::new()),
        (false, true) => ours().queries("name", names.clone()),
        (true, false) => base().queries("id", ids.clone()),
        (false, false) => ours(),
    };
    let mut items = group_pages(project, request).await?;
    if !names.is_empty() && !ids.is_empty() {
        let elsewhere: Vec<String> = ids.iter().filter(|id| !items.contains_key(*id)).cloned().collect();
        if !elsewhere.is_empty() {
            items.extend(group_pages(project, base().queries("id", elsewhere)).await?);
        }
    }
    let wanted = |group: &SecurityGroup| {
        names.iter().any(|name| **name == *group.name) || ids.iter().any(|id| id == group.id.as_str())
    };
    Ok(items.into_values().filter(wanted).map(Arc::new).collect())
}

async fn group_pages(project: &Project, request: Request) -> Found<BTreeMap<String, SecurityGroup>> {
    #[derive(Deserialize)]
    struct Body {
        security_groups: Vec<WireGroup>,
        #[serde(default)]
        security_groups_links: Vec<Link>,
    }
    let reading = Reading::new("list security groups", project.name(), NO_LISTING);
    let listing = all_pages(project.client(), request, reading, |body| {
        let Body { security_groups, security_groups_links } = serde_json::from_slice(body)?;
        let items = security_groups.into_iter().map(SecurityGroup::from);
        Ok(Page {
            items: items.map(|group| (group.id.to_string(), group)).collect(),
            next: next_of(&security_groups_links),
        })
    })
    .await?;
    Ok(listing.items)
}

async fn list_routers(project: &Project, interest: &Interest) -> Found<Vec<Router>> {
    #[derive(Deserialize)]
    struct Body {
        routers: Vec<WireRouter>,
        #[serde(default)]
        routers_links: Vec<Link>,
    }
    if interest.routers.is_empty() {
        return Ok(Vec::new());
    }
    let request = Request::get(Service::Network, &["routers"])
        .queries("id", interest.routers.iter().map(ToString::to_string))
        .queries("fields", router::FIELDS);
    let reading = Reading::new("list routers", project.name(), NO_LISTING);
    let listing = all_pages(project.client(), request, reading, |body| {
        let Body { routers, routers_links } = serde_json::from_slice(body)?;
        let items = routers.into_iter().map(|router| (router.id.clone(), router.into_router(None)));
        Ok(Page { items: items.collect(), next: next_of(&routers_links) })
    })
    .await?;
    Ok(listing.items.into_values().collect())
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
