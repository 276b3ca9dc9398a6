//! What the engine sees of the truth, and when: listings, watches, leases, answers to reads.
//!
//! ```text
//!  perform(Look) ─ travel ─▶ Serve: the truth is read now ─ travel ─▶ Deliver: the engine hears of it
//! ```
//!
//! The truth is read at one moment and arrives at a later one, so an answer may be old when it comes. While a
//! [`Lies`] is in force, the same moment reads what a broken cell, a wrong project, a silent API or an empty etcd would
//! answer. Node events of one watch keep their order; everything else may overtake.

use std::collections::{BTreeMap, BTreeSet, VecDeque};
use std::sync::Arc;

use reveille_core::effect::{Look, ReadError, ReadErrorKind};
use reveille_core::event::{Answer, CloudFact, CloudSnapshot, ClusterFact, Event};
use reveille_core::model::id::{CloudName, InstanceId, LookId, NodeName, NodeUid, ZoneName};
use reveille_core::model::instance::Instance;
use reveille_core::model::lease::{Leases, Renewal};
use reveille_core::model::node::{Node, NodeEvent};
use reveille_core::model::time::{ServiceTime, Span, Time};
use reveille_core::pace::{Pace, Pacer};

use crate::catalogue::judge;

use super::fault::{CallLie, Shows};
use super::network_faults::LAG;
use super::network_faults::by_clock;
use super::{Request, Task, World, reach};

/// What the senses tell wrongly, or not at all, while it lasts.
#[derive(Clone, Debug, Default)]
pub(crate) struct Lies {
    /// Servers that listings do not hold.
    pub(crate) unlisted: Option<Unlisting>,
    /// Servers that parts of the cloud do not know yet: no listing holds them, and by id they are denied.
    pub(crate) unknown: BTreeSet<InstanceId>,
    /// When single servers were last denied although they were there.
    pub(crate) denied_until: Option<Time>,
    /// Every read of the cloud fails like this.
    pub(crate) cloud_fails: Option<ReadErrorKind>,
    /// Keystone does not tell us who holds which role, and fails like this.
    pub(crate) roles_untold: Option<ReadErrorKind>,
    /// Keystone does not let us give a role.
    pub(crate) roles_ungiven: bool,
    /// The credential leads into another project, which shows nothing of ours and denies every id.
    pub(crate) elsewhere: bool,
    pub(crate) portless: bool,
    pub(crate) api_silent: bool,
    /// Second Nodes that were made while the API was silent, showed an old state or lost what happened: no client has seen them
    /// yet (seeds 3843047, 5303211).
    pub(crate) unseen_twins: BTreeSet<NodeName>,
    pub(crate) nodes_empty: bool,
    /// Kubelets that show another machine on their own Nodes.
    pub(crate) shown: BTreeMap<InstanceId, (InstanceId, Shows)>,
    /// Kubelets are heard, and their leases are not renewed.
    pub(crate) leases_frozen: bool,
    /// The list of leases is empty.
    pub(crate) leases_empty: bool,
    pub(crate) dark_zones: BTreeSet<ZoneName>,
    /// What happens to the next calls, one each.
    pub(crate) calls: VecDeque<CallLie>,
}

/// What one listener was told of a project last.
#[derive(Clone, Debug, Default)]
pub(crate) struct Listings {
    listed_at: Option<Time>,
    full_at: Option<Time>,
    /// When which listing begins: the controller's own rule. None before the first.
    pacer: Option<Pacer>,
    /// When the listings of the last ten minutes began.
    lately: VecDeque<Time>,
    /// A listing has been begun and not been answered; the poller begins no second one.
    under_way: bool,
    /// The edition of the project that was listed last.
    listed: Option<u64>,
    /// A listing of changes in which there was none, of that edition.
    quiet: Option<Arc<CloudSnapshot>>,
}

impl Listings {
    /// A listing begins.
    fn note(&mut self, now: Time) {
        self.lately.retain(|at| now.since(*at) < LATELY);
        self.lately.push_back(now);
    }

    /// No poll since then.
    pub(crate) fn lost_since(&mut self, then: Time) {
        self.listed_at = self.listed_at.map(|at| at.min(then));
        self.full_at = self.full_at.map(|at| at.min(then));
    }
}

/// A listing that lacks servers, with 200 and every page.
#[derive(Clone, Debug)]
pub(crate) struct Unlisting {
    /// Which; none means all.
    pub(crate) only: Option<BTreeSet<InstanceId>>,
    /// Asked for by id, they are denied, too. Otherwise the read by id fails (a cell that is down). What Neutron lists is there
    /// as ever.
    pub(crate) denies: bool,
}

impl Lies {
    fn about_the_cloud(&self) -> bool {
        self.unlisted.is_some()
            || self.elsewhere
            || self.cloud_fails.is_some()
            || self.portless
            || !self.unknown.is_empty()
    }

    const fn about_the_cluster(&self) -> bool {
        self.api_silent || self.nodes_empty || self.leases_frozen || self.leases_empty
    }

    /// No lease is listed.
    const fn hides_leases(&self) -> bool {
        self.nodes_empty || self.leases_empty
    }

    /// Listings do not hold it: whether it is denied by id as well. What concerns a whole project concerns the troubled one.
    pub(super) fn hides(&self, id: &InstanceId, troubled: bool) -> Option<bool> {
        if self.elsewhere && troubled || self.unknown.contains(id) {
            return Some(true);
        }
        let lie = self.unlisted.as_ref()?;
        lie.only.as_ref().map_or(troubled, |only| only.contains(id)).then_some(lie.denies)
    }
}

/// The watch of nodes.
#[derive(Clone, Debug, Default)]
pub(crate) struct Watch {
    /// It is up and current.
    pub(crate) synced: bool,
    /// The process that it was for has died, or sleeps: it does not list again.
    pub(crate) unheard: bool,
    /// Nothing of it arrives before this: one stream keeps its order.
    clock: Time,
    /// How often it listed.
    lists: u64,
    alive_at: Option<Time>,
    leases_at: Option<Time>,
    /// As listed last, one by one, and who had a lease then.
    leases: Leases,
    leases_of: Option<u64>,
}

/// The UID of the namespace `kube-system`, of our cluster and of another.
const CLUSTER: &str = "6b1f0d52-3a40-4c1e-9b1d-0f3a5f0f7e01";
const OTHER_CLUSTER: &str = "6b1f0d52-3a40-4c1e-9b1d-0f3a5f0f7e02";
/// How far back listings are counted.
const LATELY: Span = Span::from_min(10);
/// Servers, ports, groups, and a router: a listing is so many reads.
const READS_OF_A_LISTING: u64 = 4;
/// Between two lists of leases, and between two proofs of life.
const BEAT: Span = Span::from_s(10);
/// After nothing happened for so long, silence is no news.
const STILL_AFTER: Span = Span::from_min(3);
/// The longest that a listing is on its way.
const TRAVEL_MAX: Span = Span::from_s(5);
/// Before a watch that could not begin is tried again.
const WATCH_AGAIN: Span = Span::from_s(5);

fn error(kind: ReadErrorKind) -> ReadError {
    let (text, retry_after): (&str, Option<Span>) = match kind {
        ReadErrorKind::Throttled => ("GET /servers/detail: 429 Too Many Requests", Some(Span::from_s(20))),
        ReadErrorKind::Incomplete => {
            ("GET /servers/detail: page 2 of 3 is missing; nothing of this listing counts", None)
        }
        ReadErrorKind::Unauthorized => ("POST /v3/auth/tokens: 401 Unauthorized", None),
        ReadErrorKind::TimedOut => ("GET /servers/detail: no answer within 30 s", None),
        _ => ("GET /servers/detail: 503 Service Unavailable", None),
    };
    ReadError { kind, text: text.into(), retry_after }
}

/// Keystone's own way to fail.
fn untold(kind: ReadErrorKind) -> ReadError {
    let text = match kind {
        ReadErrorKind::Forbidden => "GET /v3/role_assignments: 403 Forbidden",
        ReadErrorKind::Incomplete => "GET /v3/role_assignments: the list is cut short; nothing of it counts",
        ReadErrorKind::TimedOut => "GET /v3/role_assignments: no answer within 30 s",
        _ => "GET /v3/role_assignments: 503 Service Unavailable",
    };
    ReadError { kind, text: text.into(), retry_after: None }
}

impl World {
    pub(super) fn api_error(&self) -> ReadError {
        let (kind, text) = match self.network_faults.api_denied {
            true => (ReadErrorKind::Unauthorized, "GET /api/v1/nodes: 401 Unauthorized"),
            false => (ReadErrorKind::Unavailable, "GET /api/v1/nodes: connection refused"),
        };
        ReadError { kind, text: text.into(), retry_after: None }
    }

    /// The poller of a controller: it begins a listing when the shared rule ([`Pacer`]) says so, and no two at once. The wait
    /// after a failure is a period here.
    pub(super) fn poll(&mut self, session: u64, cloud: CloudName) {
        if session != self.session || self.listings(&cloud).under_way {
            return;
        }
        let timing = self.layout.timing;
        let now = self.now;
        let pace = Pace::of(timing.cloud_period, timing.cloud_full_period);
        let troubled = self.layout.is_troubled(&cloud);
        let listings = self.listings(&cloud);
        let pacer = listings.pacer.get_or_insert_with(|| Pacer::new(pace, now));
        if now < pacer.due() {
            return;
        }
        let wanted = pacer.begin(now);
        let due = listings.full_at.is_none_or(|at| now.since(at) >= timing.cloud_full_period);
        // A lie about listings is a lie about full ones; a cell that is down changes no "changed since".
        // A cloud that tells of hosting knows no "changed since".
        let hidden = troubled && (self.lies.unlisted.is_some() || self.lies.elsewhere);
        let full = due || wanted || hidden || self.project.shows_ended;
        self.plan(timing.cloud_period, Task::Poll(session, cloud.clone()));
        if !wanted && self.is_old_news(&cloud, timing.cloud_stale_after) {
            return;
        }
        let listings = self.listings(&cloud);
        listings.under_way = true;
        listings.note(now);
        let travel = self.soon(20, 200);
        self.plan(travel, Task::Serve(session, Request::List { cloud, full }));
    }

    /// The engine wants a full listing; the poller takes it when its pace allows.
    pub(super) fn want_full_listing(&mut self, cloud: &CloudName) {
        let now = self.now;
        let listings = self.listings(cloud);
        let Some(pacer) = &mut listings.pacer else { return };
        pacer.want_full(now);
        let wait = pacer.due().since(now);
        // A listing under way ends first.
        if !listings.under_way {
            self.plan(wait, Task::Poll(self.session, cloud.clone()));
        }
    }

    /// The listing that was begun has been answered.
    fn end_listing(&mut self, cloud: &CloudName, over: Time, full: Option<bool>) {
        let listings = self.listings(cloud);
        listings.under_way = false;
        let Some(pacer) = &mut listings.pacer else { return };
        let period_over = pacer.due();
        match full {
            Some(full) => pacer.listed(over, full),
            None => pacer.failed(over, period_over.since(over)),
        }
        let due = pacer.due();
        if due < period_over {
            self.plan(due.since(self.now), Task::Poll(self.session, cloud.clone()));
        }
    }

    /// What the listener was told of this project.
    fn listings(&mut self, cloud: &CloudName) -> &mut Listings {
        self.listings.entry(cloud.clone()).or_default()
    }

    /// How many listings of one project the listener began within ten minutes, at most.
    pub(crate) fn listings_lately(&self) -> usize {
        self.listings.values().map(|listings| listings.lately.len()).max().unwrap_or_default()
    }

    /// A listing would say what the last one said, and the next will come early enough to be believed without this one.
    fn is_old_news(&self, cloud: &CloudName, stale_after: Span) -> bool {
        let period = self.layout.timing.cloud_period;
        let Some(listings) = self.listings.get(cloud) else { return false };
        self.layout.news_only
            && !self.lies.about_the_cloud()
            && listings.listed == Some(self.project.edition)
            && self.now.since(self.stirred) > STILL_AFTER
            && listings
                .listed_at
                .is_some_and(|at| self.now.since(at).ms + period.ms + TRAVEL_MAX.ms < stale_after.ms)
    }

    pub(super) fn serve(&mut self, session: u64, request: Request) {
        self.reads += match request {
            Request::List { .. } => READS_OF_A_LISTING,
            Request::Look(..) => 1,
            Request::Call(..) => 0,
        };
        match request {
            Request::List { .. } if session != self.session => {}
            Request::List { cloud, full } => {
                let listed = match self.failure_of(&cloud) {
                    Some(kind) => Err(error(kind)),
                    None => Ok(self.listing(&cloud, full)),
                };
                let travel = self.soon(200, 1_500);
                self.end_listing(&cloud, self.now + travel, listed.as_ref().ok().map(|_| full));
                let fact = match listed {
                    Ok(snapshot) => CloudFact::Snapshot { snapshot, took: travel },
                    Err(error) => CloudFact::Failed(error),
                };
                self.plan(travel, Task::Deliver(session, Event::Cloud { cloud, fact }));
            }
            Request::Look(id, look) => self.serve_look(session, id, &look),
            Request::Call(intent, call) => self.serve_call(session, intent, call),
        }
    }

    fn listing(&mut self, cloud: &CloudName, full: bool) -> Arc<CloudSnapshot> {
        let now = self.now;
        let no_lies = !self.lies.about_the_cloud() && !self.network_faults.pages_repeat;
        let (changed_at, edition) = (self.project.changed_at, self.project.edition);
        let listings = self.listings(cloud);
        // A second of overlap: what changed while the last listing was read is told again.
        let since = listings.listed_at.map(|at| at - Span::from_s(1)).filter(|_| !full);
        let unchanged =
            no_lies && since.is_some_and(|since| changed_at < since) && listings.listed == Some(edition);
        listings.listed_at = Some(now);
        if let Some(known) = listings.quiet.as_ref().filter(|_| unchanged) {
            return known.clone();
        }
        listings.listed = Some(edition);
        if since.is_none() {
            listings.full_at = Some(now);
        }
        let snapshot = Arc::new(self.new_listing(cloud, since));
        // What it says again and again, word for word, is not put together each time.
        self.listings(cloud).quiet = unchanged.then(|| snapshot.clone());
        snapshot
    }

    fn new_listing(&mut self, cloud: &CloudName, since: Option<Time>) -> CloudSnapshot {
        let troubled = self.layout.is_troubled(cloud);
        let mut snapshot = self.project.snapshot(cloud, since);
        // By the cloud's clock, as its answer's Date header says it.
        snapshot.begun = Some(ServiceTime::from_s(self.cloud_time().ms.div_euclid(1000)));
        snapshot.instances.retain(|instance| self.lies.hides(&instance.id, troubled).is_none());
        for instance in &mut snapshot.instances {
            if let Some(shown) = self.outdated(&instance.id) {
                *instance = shown.clone();
            }
        }
        if self.layout.variety.own_hardware || self.lacks_addresses() {
            let told = snapshot.instances.into_iter().map(|instance| self.as_cloud_tells(instance));
            snapshot.instances = told.collect();
        }
        // EC2 tells of an instance's interfaces with the instance (`networkInterfaceSet` of DescribeInstances).
        if self.project.shows_ended {
            snapshot.ports.retain(|(owner, _)| self.lies.hides(owner, troubled).is_none());
        }
        if troubled && (self.lies.portless || self.lies.elsewhere) {
            snapshot.ports.clear();
            snapshot.in_use = Arc::default();
        }
        if troubled && self.lies.elsewhere {
            snapshot.groups = Some(Vec::new());
            snapshot.routers.clear();
        }
        self.repeat_pages(&mut snapshot);
        snapshot
    }

    fn serve_look(&mut self, session: u64, id: LookId, look: &Look) {
        let answer = self.answer(look);
        let travel = self.soon(20, 600);
        self.reply(session, travel, Event::Looked { look: id, answer });
    }

    fn answer(&self, look: &Look) -> Result<Answer, ReadError> {
        match look {
            Look::LogEvidence(cloud, id, evidence_query) => {
                let console = self.answer(&Look::Console(cloud.clone(), id.clone()));
                return judge().weigh(evidence_query, console, self.said_of(id, evidence_query));
            }
            Look::Node(_) | Look::NodeEvents(_) if self.lies.api_silent => {
                return Err(self.api_error());
            }
            Look::Node(name) => {
                let node = self.cluster.nodes.get(name).filter(|_| !self.lies.nodes_empty);
                return Ok(Answer::Node(node.map(|node| self.as_node_tells(node.clone()))));
            }
            Look::NodeEvents(name) => return Ok(Answer::NodeEvents(self.cluster.said_of(self.now, name))),
            _ => {}
        }
        if let Some(kind) = look.cloud().and_then(|cloud| self.failure_of(cloud)) {
            return Err(error(kind));
        }
        if self.is_of_another_project(look) {
            return Ok(reach::denial(look));
        }
        match look {
            Look::Instance(_, id) => {
                let instance = self.instance(id)?;
                Ok(Answer::Instance(instance.map(|instance| self.as_cloud_tells(instance))))
            }
            Look::Ports(_, id) => Ok(Answer::Ports(self.project.ports_of(id))),
            Look::Group(_, id) => {
                let group = self.project.pool_groups().find(|group| group.id == *id);
                Ok(Answer::Group(group.cloned()))
            }
            Look::Router(_, id) => {
                Ok(Answer::Router(self.project.router.clone().filter(|router| router.id == *id)))
            }
            Look::Roles(_, user, roles) => match self.lies.roles_untold {
                Some(kind) => Err(untold(kind)),
                None => Ok(Answer::Roles(self.keystone.says(user, roles))),
            },
            Look::Console(_, id) => Ok(self.console(id)),
            Look::Actions(_, id) => Ok(Answer::Actions(self.told_actions(id))),
            Look::LogEvidence(..) | Look::Node(_) | Look::NodeEvents(_) => Err(self.api_error()),
        }
    }

    /// Listings do not hold it: whether it is denied by id as well.
    fn hides(&self, id: &InstanceId) -> Option<bool> {
        let troubled = self.project.cloud_of(id).is_none_or(|cloud| self.layout.is_troubled(cloud));
        self.lies.hides(id, troubled)
    }

    /// True while listings do not hold this server.
    pub(crate) fn hides_server(&self, id: &InstanceId) -> bool {
        self.hides(id).is_some()
    }

    /// True while listings lack this server and every read by its id says that there is none.
    pub(crate) fn is_denied(&self, id: &InstanceId) -> bool {
        self.hides(id) == Some(true)
    }

    pub(super) fn instance(&self, id: &InstanceId) -> Result<Option<Arc<Instance>>, ReadError> {
        match self.hides(id) {
            Some(true) => Ok(None),
            Some(false) => Err(error(ReadErrorKind::Unavailable)),
            None => {
                let there = self.project.servers.get(id).map(|server| &server.instance);
                let there = there.map(|instance| self.outdated(id).unwrap_or(instance));
                Ok(there.or_else(|| self.project.ended(id)).cloned())
            }
        }
    }

    fn console(&self, id: &InstanceId) -> Answer {
        match self.vms.get(id).filter(|vm| vm.boot > 0) {
            Some(vm) => {
                let lines: Vec<&str> = vm.console.iter().map(String::as_str).collect();
                Answer::Console(lines.join("\n").into())
            }
            None => Answer::NoConsole("the guest has not been started on a host yet".into()),
        }
    }

    /// One list of leases and one proof of life.
    pub(super) fn beat(&mut self, session: u64) {
        if session != self.session {
            return;
        }
        self.plan(BEAT, Task::Beat(session));
        self.reads += 1;
        if self.lies.api_silent {
            self.hear(ClusterFact::Failed(self.api_error()));
            return;
        }
        let still = self.layout.news_only
            && !self.lies.about_the_cluster()
            && self.now.since(self.stirred) > STILL_AFTER;
        // One beat of three and of two: within the age at which a lease, or the API itself, counts as silent.
        let recent = |at: Option<Time>, beats: i64| {
            still && at.is_some_and(|at| self.now.since(at).ms < beats * BEAT.ms - BEAT.ms / 2)
        };
        let (known, alive) = (recent(self.watch.leases_at, 3), recent(self.watch.alive_at, 2));
        if !known {
            self.watch.leases_at = Some(self.now);
            let leases = self.renew_leases();
            self.hear(ClusterFact::Leases(leases));
        }
        // Where sleeps are told apart, no proof comes of a watch that has not listed.
        let proves = self.watch.synced || !self.layout.variety.lists_after_sleep;
        if !alive && proves {
            self.watch.alive_at = Some(self.now);
            self.hear(ClusterFact::Alive);
        }
    }

    /// Every kubelet that is heard renews its lease; the list of all.
    fn renew_leases(&mut self) -> Leases {
        let edition = self.cluster.leases_edition;
        if self.network_faults.clocks.is_empty()
            && !self.lies.hides_leases()
            && self.watch.leases_of == Some(edition)
        {
            let (right, frozen) = (Renewal::nth(self.now.ms.cast_unsigned()), self.lies.leases_frozen);
            let renewals = self.cluster.leases().map(|(_, lease)| {
                if !frozen && lease.held {
                    lease.renewed = right;
                }
                lease.renewed
            });
            if let Some(list) = self.watch.leases.again(renewals.collect()) {
                return list;
            }
        }
        self.watch.leases_of = (!self.lies.hides_leases()).then_some(edition);
        self.renew_leases_one_by_one()
    }

    fn renew_leases_one_by_one(&mut self) -> Leases {
        let frozen = self.lies.leases_frozen;
        let (now, clocks) = (self.now, &self.network_faults.clocks);
        let mut next = self.watch.leases.next();
        for (name, lease) in self.cluster.leases() {
            if !frozen && lease.held {
                lease.renewed = by_clock(now, clocks.get(&lease.instance));
            }
            if !self.lies.hides_leases() {
                next.take(|known| known == name, || name.clone(), lease.renewed);
            }
        }
        let list = next.end();
        self.watch.leases = list.clone();
        list
    }

    /// The watch lists, and goes on from there.
    pub(super) fn begin_watch(&mut self, session: u64) {
        if session != self.session || self.watch.unheard {
            return;
        }
        if self.lies.api_silent {
            self.hear(ClusterFact::Failed(self.api_error()));
            self.plan(WATCH_AGAIN, Task::Watched(session));
            return;
        }
        self.watch.synced = true;
        self.watch.lists += 1;
        self.network_faults.watch_lags = false;
        let another = self.network_faults.other_cluster.clone();
        if self.layout.variety.identity {
            let uid = if another.is_some() { OTHER_CLUSTER } else { CLUSTER };
            self.hear(ClusterFact::Identity(uid.into()));
        }
        let nodes: Vec<Arc<Node>> = match &self.network_faults.old_nodes {
            _ if another.is_some() => another.unwrap_or_default(),
            _ if self.lies.nodes_empty => Vec::new(),
            Some(old) => old.clone(),
            None => {
                self.lies.unseen_twins.clear();
                self.cluster.nodes.values().cloned().collect()
            }
        };
        let nodes = nodes.into_iter().map(|node| self.as_node_tells(node)).collect();
        self.hear(ClusterFact::Synced(nodes));
        let said: Vec<NodeEvent> = self.cluster.said(self.now).cloned().collect();
        for event in said {
            self.hear(ClusterFact::NodeEvent(event));
        }
        if self.network_faults.other_cluster.is_none() {
            self.hear_said_cordons();
        }
        self.hear(ClusterFact::Alive);
    }

    /// The watch broke: the watcher lists again.
    pub(super) fn break_watch(&mut self) {
        self.tell_each(|world| {
            world.watch.synced = false;
            let session = world.session;
            let after = world.soon(200, 2_000);
            world.plan(after, Task::Watched(session));
        });
    }

    /// Our process falls asleep, and the store will not keep what changes until it wakes up.
    pub(crate) const fn fall_asleep(&mut self) {
        self.watch.synced = false;
        self.watch.unheard = true;
    }

    /// It goes on: the watch cannot continue from its place, and lists again.
    pub(crate) fn wake_up(&mut self) {
        self.watch.unheard = false;
        self.hear(ClusterFact::Failed(ReadError {
            kind: ReadErrorKind::Gap,
            text: "watch nodes: 410 Expired: too old resource version".into(),
            retry_after: None,
        }));
        let after = self.soon(200, 2_000);
        self.plan(after, Task::Watched(self.session));
    }

    pub(super) const fn watching(&mut self) -> bool {
        self.stirred = self.now;
        self.watch.synced
            && !self.lies.api_silent
            && !self.lies.nodes_empty
            && !self.network_faults.watch_gap
            && self.network_faults.old_nodes.is_none()
    }

    /// A node appeared or changed.
    pub(super) fn watched(&mut self, node: Arc<Node>) {
        let node = self.as_node_tells(node);
        self.tell_each(|world| world.watch_carries(ClusterFact::Applied(node.clone())));
    }

    /// A node went.
    pub(super) fn watched_gone(&mut self, name: NodeName, uid: NodeUid) {
        self.tell_each(|world| {
            world.watch_carries(ClusterFact::Deleted { name: name.clone(), uid: uid.clone() });
        });
    }

    /// A client wrote an event about a node.
    pub(super) fn said(&mut self, event: NodeEvent) {
        self.tell_each(|world| world.watch_carries(ClusterFact::NodeEvent(event.clone())));
    }

    /// What the watch carries, if it is up; it may be behind.
    fn watch_carries(&mut self, fact: ClusterFact) {
        if !self.watching() {
            return;
        }
        if self.network_faults.watch_lags {
            self.plan(LAG, Task::Late(self.session, self.watch.lists, fact));
        } else {
            self.hear(fact);
        }
    }

    /// What was on its way on a connection that another list has ended is never heard (seed 3454020).
    pub(super) fn deliver_late(&mut self, session: u64, list: u64, fact: ClusterFact) {
        if list == self.watch.lists {
            self.deliver(session, Event::Cluster(fact));
        }
    }

    /// One connection carries all that the cluster's API says: in order.
    fn hear(&mut self, fact: ClusterFact) {
        let at = (self.now + self.soon(5, 60)).max(self.watch.clock);
        self.watch.clock = at;
        let after = at.since(self.now);
        self.plan(after, Task::Deliver(self.session, Event::Cluster(fact)));
    }
}
