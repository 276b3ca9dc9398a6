//! One cloud as the controller sees it: its instances with their ports, groups and routers, and which of them went missing.
//!
//! A snapshot goes in; the ids of the instances that changed come out, to be judged again. An instance that a full listing
//! no longer holds is *unlisted*, not gone. It stays in the view until the cloud, asked for its id, answers "no such id"
//! twice, some time apart. Lists omit servers of a down cell, and a wrong project answers with an empty list and 200. Where
//! a cloud's answers take a while to agree, a denial of a young instance proves nothing: only a read that shows it ended
//! counts. The view doubts a listing that shrank too much at once as a whole, and marks no instance in it as unlisted.
//!
//! The view keeps only instances that carry one of the roster's cluster marks. It does not know Nodes.

mod listing;
mod ports;

use std::collections::{BTreeMap, BTreeSet};
use std::net::IpAddr;
use std::sync::Arc;

use crate::event::{CloudSnapshot, Scope};
use crate::model::host_name;
use crate::model::id::{CloudName, GroupId, InstanceId, InstanceName, NodeName, RouterId};
use crate::model::instance::{Instance, InstanceState};
use crate::model::network::{Router, SecurityGroup};
use crate::model::roster::{Claim, GroupRef, Pool, Roster};
use crate::model::time::{ServiceTime, Span, Time};
use crate::safeguard::{Safeguard, stands};

use super::access::AccessView;
use super::fresh::{Fresh, Thing};
use super::holders::Holders;
use super::pack::{Growth, pack};
use super::source::Source;
use super::unread::Unread;

use listing::Difference;
pub use listing::NodeOf;
use ports::InUse;

pub use super::seen::{Left, SERVED_WITHIN, Seen, Unlisted, Whose};
pub use super::unread::Failed;

/// A cloud.
#[derive(Clone, Debug)]
pub struct CloudView {
    /// Its name in the roster.
    pub name: CloudName,
    /// How far it may be believed.
    pub source: Source,
    /// So long after an instance was first seen the cloud may deny it without meaning it.
    pub settles_within: Span,
    /// Everything that carries a cluster mark of ours.
    pub instances: BTreeMap<InstanceId, Seen>,
    /// The roster's groups, as found.
    pub groups: Vec<Arc<SecurityGroup>>,
    /// The roster's routers, as found.
    pub routers: BTreeMap<RouterId, Arc<Router>>,
    /// What was said of its service users.
    pub access: AccessView,
    /// Every address on any port of the project: next hops that a port has.
    pub addresses: BTreeSet<IpAddr>,
    /// What else is in use on its networks.
    in_use: InUse,
    /// When the newest list of ports that is believed was begun.
    pub(super) ports_begun: Option<Time>,
    /// Ports of some machine are newer than the listing that `addresses` are from.
    pub(super) read_aside: bool,
    /// What was read by itself since the last listing began.
    pub(super) fresh: Fresh,
    by_name: BTreeMap<InstanceName, Holders<InstanceId>>,
    by_address: BTreeMap<IpAddr, Holders<InstanceId>>,
    growth: Growth,
    /// Under these names and addresses instances came or went: nodes that hang on those may be others' now.
    reindexed: Vec<Arc<Instance>>,
    /// Counts instances that came, went or changed.
    edition: u64,
    /// Those of them that are unlisted.
    unlisted: BTreeSet<InstanceId>,
    /// When the first full listing was taken in.
    pub(super) first_listed: Option<Time>,
    /// The cloud's own clock when the last full listing began.
    pub listed_begun: Option<ServiceTime>,
    /// Our clock then.
    pub(super) listed_at: Time,
    /// The latest that any full listing began, by the cloud's own clock.
    newest_begun: Option<ServiceTime>,
    /// The cloud's own clock when the last listing of any kind began.
    pub(crate) last_begun: Option<ServiceTime>,
    /// Which reads by id failed.
    unread: Unread,
    /// What the last doubted listing lacked: two that agree are asked about.
    pub(super) doubted_missing: BTreeSet<InstanceId>,
    /// The newest full list holds none of our machines, and is doubted for that. A credential that leads elsewhere denies every
    /// id as well, so that no denial counts until the list is back (seed 3202126).
    pub emptied: bool,
    /// The newest answer may have been on its way while we slept.
    reads_late: bool,
}

/// What a snapshot changed.
#[derive(Clone, Debug, Default)]
pub struct CloudChange {
    /// Look at these machines again.
    pub touched: BTreeSet<InstanceId>,
    /// Ask for these by id: a listing lacks them.
    pub ask: BTreeSet<InstanceId>,
    /// Groups or routers differ from before.
    pub network: bool,
    /// These carry none of our marks any more.
    pub disowned: Vec<Seen>,
    /// These are being deleted, and were not before.
    pub leaving: Vec<InstanceId>,
}

impl CloudView {
    /// An empty view.
    pub fn new(name: CloudName, stale_after: Span, settles_within: Span) -> Self {
        Self {
            name,
            source: Source::new(stale_after),
            settles_within,
            instances: BTreeMap::new(),
            groups: Vec::new(),
            routers: BTreeMap::new(),
            access: AccessView::default(),
            addresses: BTreeSet::new(),
            in_use: InUse::default(),
            ports_begun: None,
            read_aside: false,
            fresh: Fresh::default(),
            by_name: BTreeMap::new(),
            by_address: BTreeMap::new(),
            growth: Growth::default(),
            reindexed: Vec::new(),
            edition: 0,
            unlisted: BTreeSet::new(),
            first_listed: None,
            listed_begun: None,
            listed_at: Time::default(),
            newest_begun: None,
            last_begun: None,
            unread: Unread::default(),
            doubted_missing: BTreeSet::new(),
            emptied: false,
            reads_late: false,
        }
    }

    /// Takes in a complete snapshot that was begun then: what was asked for by itself since is newer, and stays as it is.
    /// `remembered` are machines that the ledger knows and no listing has shown since the
    /// restart: the first listing is held against them. `node_of` tells what the cluster shows of an instance.
    pub fn apply(
        &mut self,
        roster: &Roster,
        now: Time,
        begun: Time,
        snapshot: &CloudSnapshot,
        remembered: &[InstanceId],
        node_of: &dyn Fn(&InstanceId) -> NodeOf,
    ) -> CloudChange {
        let mut change = CloudChange::default();
        self.fresh.outdate(begun);
        self.reads_late = self.was_begun_before_a_sleep(now, snapshot.begun);
        self.last_begun = snapshot.begun.or(self.last_begun);
        let full = snapshot.scope == Scope::Full;
        let difference = if full {
            self.difference(&snapshot.instances)
        } else {
            Difference::unknown(&snapshot.instances)
        };
        for instance in &difference.news {
            if !self.fresh.has(|| Thing::Instance(instance.id.clone())) {
                self.upsert(roster, now, instance, &mut change);
            }
        }
        if full {
            if difference.is_complete && remembered.is_empty() {
                self.doubted_missing.clear();
                self.emptied = false;
            } else {
                self.find_missing(roster, now, snapshot, remembered, node_of, &mut change);
            }
            self.first_listed.get_or_insert(now);
            (self.listed_begun, self.listed_at) = (snapshot.begun, begun);
            self.newest_begun = self.newest_begun.max(snapshot.begun);
        }
        self.source.heard(now);
        let same_ports = self.review_ports(roster, now, begun, snapshot, &mut change);
        let same_network = self.take_network(snapshot);
        change.network = !(same_ports && same_network);
        if self.growth.is_over(self.instances.len()) {
            pack(&mut self.instances);
            pack(&mut self.by_name);
            pack(&mut self.by_address);
        }
        change
    }

    /// Groups and routers as listed, but for those that are known better. True when that is what was known.
    fn take_network(&mut self, snapshot: &CloudSnapshot) -> bool {
        let (fresh, known) = (&self.fresh, &self.groups);
        let newer_group = |listed: &Arc<SecurityGroup>| {
            let is_fresh = fresh.has(|| Thing::Group(listed.id.clone()));
            is_fresh.then(|| known.iter().find(|group| group.id == listed.id)).flatten()
        };
        let groups = || {
            let listed = snapshot.groups.as_ref().unwrap_or(&self.groups);
            listed.iter().map(|listed| newer_group(listed).unwrap_or(listed))
        };
        let known = &self.routers;
        let newer_router = |listed: &Arc<Router>| {
            let is_fresh = fresh.has(|| Thing::Router(listed.id.clone()));
            is_fresh.then(|| known.get(&listed.id)).flatten()
        };
        let routers = || snapshot.routers.iter().map(|listed| newer_router(listed).unwrap_or(listed));
        let same = groups().eq(&self.groups)
            && self.routers.len() == snapshot.routers.len()
            && routers().all(|router| known.get(&router.id) == Some(router));
        if !same {
            let groups = groups().cloned().collect();
            self.routers = routers().map(|router| (router.id.clone(), router.clone())).collect();
            self.groups = groups;
        }
        same
    }

    /// Notes that a single read was answered with this, and when it was asked for, whichever part of the engine asked.
    pub fn note_fresh(&mut self, thing: Thing, asked_at: Time) {
        self.fresh.note(thing, asked_at);
    }

    /// Takes in one instance from a listing or from a read by id.
    pub fn upsert(&mut self, roster: &Roster, now: Time, instance: &Arc<Instance>, change: &mut CloudChange) {
        // A listing that still shows what is gone says nothing new, and may have lost its marks with its
        // life: absence is proved by id.
        if instance.state == InstanceState::Gone {
            if let Some(seen) = self.instances.get_mut(&instance.id) {
                note_end(seen, instance);
                self.unlist(now, &instance.id, change);
            }
            return;
        }
        // Adapters call it so while it is made for the first time: whatever was not seen, it has not run.
        if instance.state == InstanceState::Building
            && let Some(seen) = self.instances.get_mut(&instance.id)
            && seen.may_have_served
            && seen.joined.is_none()
            && !self.reads_late
        {
            seen.trust_life();
            change.touched.insert(instance.id.clone());
        }
        // The same object, word for word, is claimed as before.
        let same = |seen: &Seen| seen.instance == *instance && seen.unlisted.is_none();
        if self.instances.get(&instance.id).is_some_and(same) {
            return;
        }
        let claim = match roster.claim(&self.name, instance) {
            Claim::Foreign => {
                // What is bare unsays nothing of a machine that is known.
                if !instance.is_bare()
                    && let Some(former) = self.remove(&instance.id)
                {
                    change.touched.insert(instance.id.clone());
                    change.disowned.push(former);
                }
                return;
            }
            Claim::Unclaimed => Whose::Unclaimed,
            Claim::Pool(pool) => Whose::Pool(pool),
            Claim::Contested(_) => Whose::Several,
        };
        if let Some(seen) = self.instances.get_mut(&instance.id) {
            let differs = *seen.instance != **instance || seen.claim != claim || seen.unlisted.is_some();
            if !differs {
                return;
            }
            seen.note_change(now, instance, self.listed_at);
            if instance.state.is_leaving() && !seen.instance.state.is_leaving() {
                change.leaving.push(instance.id.clone());
            }
            let before = seen.described();
            seen.instance = instance.clone();
            seen.note_addresses();
            let after = seen.described();
            seen.of_pool = claim.pool().cloned().or_else(|| seen.of_pool.take());
            seen.claim = claim;
            if seen.unlisted.take().is_some() {
                self.unlisted.remove(&instance.id);
            }
            self.edition += 1;
            self.reindex(&before, &after);
        } else {
            self.note_newcomer(now, instance, claim);
        }
        change.touched.insert(instance.id.clone());
    }

    /// It comes into sight.
    fn note_newcomer(&mut self, now: Time, instance: &Arc<Instance>, claim: Whose) {
        self.index(instance);
        self.growth.note();
        let mut seen = Seen::new(now, instance.clone(), claim);
        seen.born_in_sight = self.is_newborn(instance);
        seen.came_late = self.comes_late(now, instance);
        if self.reads_late {
            seen.doubt_life();
        }
        self.instances.insert(instance.id.clone(), seen);
        self.edition += 1;
    }

    /// One that comes into sight now was made since the last full listing: it is being built, also in the first listing, or its
    /// cloud says so by its own clock. Marks may come long after a machine was made, so that it comes into sight proves nothing.
    /// Where parts of the cloud take a while to know an instance, that while is granted. A cloud's clock may go back: what it had
    /// made an hour before then looks younger than the last listing (seed 7000445).
    fn is_newborn(&self, instance: &Instance) -> bool {
        // Adapters call it so while it is made for the first time, and not at a rebuild or a later start.
        if instance.state == InstanceState::Building {
            return true;
        }
        if !self.listed_once() || !stands(Safeguard::BornInSight) {
            return self.listed_once();
        }
        let created = self.made_at(instance);
        let since = self.newest_begun.map(|begun| begun.earlier_by(self.settles_within));
        created.zip(since).is_some_and(|(created, since)| created > since)
    }

    /// When its cloud made it, by its own clock. `None` also where that is minutes ahead of the last listing: the clock was ahead
    /// then, and a machine that a person had made, tried and drained meanwhile looked newborn for hours (seed 8050334).
    pub fn made_at(&self, instance: &Instance) -> Option<ServiceTime> {
        let created = instance.created.as_deref().and_then(ServiceTime::parse)?;
        let is_ahead = self.last_begun.is_some_and(|begun| created.since(begun) > SERVED_WITHIN.ms);
        (!is_ahead).then_some(created)
    }

    /// We slept, and this answer may have been on its way all the time: what it shows as being built may have joined, served and
    /// been drained since. The next answer tells.
    fn was_begun_before_a_sleep(&self, now: Time, begun: Option<ServiceTime>) -> bool {
        let slept = self.source.last_good().filter(|_| self.source.has_slept()).map(|at| now.since(at));
        let went_on_ms = begun.zip(self.last_begun).map(|(begun, last)| begun.since(last));
        slept.is_some_and(|slept| slept.ms - went_on_ms.unwrap_or_default() > SERVED_WITHIN.ms)
    }

    /// It is minutes old when it comes into sight, by its cloud's clock, or may be: its cloud was not listed for as long.
    fn comes_late(&self, now: Time, instance: &Instance) -> bool {
        let created = self.made_at(instance);
        let is_ahead = created.is_none() && instance.created.is_some();
        let age_ms = self.last_begun.zip(created).map(|(begun, created)| begun.since(created));
        let unheard = self.source.last_good().is_some_and(|at| now.since(at) > SERVED_WITHIN);
        let is_old = unheard || is_ahead || age_ms.is_some_and(|age_ms| age_ms > SERVED_WITHIN.ms);
        self.listed_once() && is_old && instance.state != InstanceState::Building
    }

    pub(super) fn unlist(&mut self, now: Time, id: &InstanceId, change: &mut CloudChange) {
        // One that is denied already is asked for at a pace of its own (`engine::judging`), not at each listing.
        if self.instances.get(id).is_none_or(|seen| !seen.is_gone()) {
            change.ask.insert(id.clone());
        }
        if let Some(seen) = self.instances.get_mut(id) {
            seen.unlisted.get_or_insert(Unlisted { since: now, denials: 0, last_denial: None });
            self.unlisted.insert(id.clone());
            change.touched.insert(id.clone());
        }
    }

    /// The cloud was asked for this id: it answered, whatever that was, or the read failed.
    pub fn note_asked(&mut self, now: Time, id: &InstanceId, answered: bool) {
        if answered { self.unread.answered(id) } else { self.unread.note(now, id) }
    }

    /// No Node names this instance any more: where no machine that is known has the id, there is nothing left to read.
    pub fn forget_reads_of_unknown(&mut self, id: &InstanceId) {
        if !self.instances.contains_key(id) {
            self.unread.answered(id);
        }
    }

    /// The last reads of this id failed; `None`: the last one was answered, or it was never asked for.
    pub fn failed_reads(&self, id: &InstanceId) -> Option<Failed> {
        self.unread.of(id)
    }

    /// It may be asked for by id now: the last read did not fail, or that is a while ago.
    pub fn may_ask(&self, now: Time, id: &InstanceId) -> bool {
        self.unread.may_ask(now, id)
    }

    /// It is so young that its cloud may deny it without meaning it.
    pub fn is_young(&self, now: Time, seen: &Seen) -> bool {
        now.since(seen.first_seen) < self.settles_within && stands(Safeguard::YoungDenial)
    }

    /// The id was asked for and, at `denied_at`, denied: "no such id", or seen to have `ended`. Returns true when that now
    /// proves that it is gone.
    pub fn denied(&mut self, now: Time, denied_at: Time, id: &InstanceId, ended: Option<&Instance>) -> bool {
        let settles_within = self.settles_within;
        let Some(seen) = self.instances.get_mut(id) else { return false };
        let young = denied_at.since(seen.first_seen) < settles_within && stands(Safeguard::YoungDenial);
        if let Some(ended) = ended {
            note_end(seen, ended);
        }
        self.unlisted.insert(id.clone());
        let unlisted = seen.unlisted.get_or_insert(Unlisted { since: now, denials: 0, last_denial: None });
        if young && ended.is_none() {
            return unlisted.is_gone();
        }
        if unlisted.last_denial.is_none_or(|last| denied_at.since(last) >= Unlisted::APART) {
            unlisted.denials = unlisted.denials.saturating_add(1);
            unlisted.last_denial = Some(denied_at);
        }
        let gone = unlisted.is_gone();
        if gone && self.doubted_missing.remove(id) && self.doubted_missing.is_empty() {
            self.source.doubt(now, None);
        }
        gone
    }

    /// The clock went back: nothing was seen later than now.
    pub fn go_back_to(&mut self, now: Time) {
        self.source.go_back_to(now);
        self.fresh.go_back_to(now);
        self.unread.go_back_to(now);
        self.access.go_back_to(now);
        self.ports_begun = self.ports_begun.map(|begun| begun.min(now));
        self.first_listed = self.first_listed.map(|at| at.min(now));
        self.listed_at = self.listed_at.min(now);
        for seen in self.instances.values_mut() {
            seen.state_since = seen.state_since.min(now);
            seen.silent_since = seen.silent_since.map(|at| at.min(now));
            seen.task_since = seen.task_since.min(now);
            seen.released = seen.released.map(|at| at.min(now));
            seen.released_before = seen.released_before.map(|at| at.min(now));
            // Of one that lies ahead nothing tells on which side of our reboot it lies.
            seen.rested_at = seen.rested_at.filter(|at| *at <= now);
            // It is judged again, and waits from then on.
            seen.awaits_word_until = seen.awaits_word_until.map(|at| at.min(now));
            seen.first_seen = seen.first_seen.min(now);
            seen.known_since = seen.known_since.min(now);
            if let Some(left) = &mut seen.left {
                left.at = left.at.min(now);
            }
            if let Some(unlisted) = &mut seen.unlisted {
                unlisted.since = unlisted.since.min(now);
                unlisted.last_denial = unlisted.last_denial.map(|at| at.min(now));
            }
        }
    }

    /// A machine that only the ledger knows and no listing has. It was recorded as `pool`'s when its own marks proved it, so
    /// it comes back with those marks; it has its node's name, because its own is not kept.
    pub fn insert_missing(&mut self, now: Time, id: &InstanceId, node: &NodeName, pool: &Pool) {
        let mut instance = Instance::unknown(id.clone(), node.as_str().into());
        instance.marks = Arc::new(pool.owned.marks().cloned().collect());
        let instance = Arc::new(instance);
        self.index(&instance);
        self.growth.note();
        let mut seen = Seen::new(now, instance, Whose::Pool(pool.name.clone()));
        seen.unlisted = Some(Unlisted { since: now, denials: 0, last_denial: None });
        self.unlisted.insert(id.clone());
        self.instances.insert(id.clone(), seen);
        self.edition += 1;
    }

    /// Machines that the newest listing lacks, proved to be gone or not.
    pub fn unlisted(&self) -> impl Iterator<Item = &Seen> {
        self.unlisted.iter().filter_map(|id| self.instances.get(id))
    }

    /// Drops an instance from the view and returns it.
    pub fn remove(&mut self, id: &InstanceId) -> Option<Seen> {
        let seen = self.instances.remove(id)?;
        self.unlisted.remove(id);
        self.unindex(&seen.described());
        self.edition += 1;
        Some(seen)
    }

    /// What came or went under its names and addresses since this was last asked, as it was described then.
    pub fn take_reindexed(&mut self) -> Vec<Arc<Instance>> {
        std::mem::take(&mut self.reindexed)
    }

    /// Another description of it, which may have other names or addresses.
    fn reindex(&mut self, before: &Arc<Instance>, after: &Arc<Instance>) {
        if before.addresses != after.addresses || !before.node_names().eq(after.node_names()) {
            self.unindex(before);
            self.index(after);
        }
    }

    fn index(&mut self, instance: &Arc<Instance>) {
        self.reindexed.push(instance.clone());
        for name in names(instance) {
            Holders::add(&mut self.by_name, name, &instance.id);
        }
        for address in &instance.addresses {
            Holders::add(&mut self.by_address, *address, &instance.id);
        }
    }

    fn unindex(&mut self, instance: &Arc<Instance>) {
        self.reindexed.push(instance.clone());
        for name in names(instance) {
            Holders::remove(&mut self.by_name, &name, &instance.id);
        }
        for address in &instance.addresses {
            Holders::remove(&mut self.by_address, address, &instance.id);
        }
    }

    /// Every instance of that display name, or that is called so inside its cloud.
    pub fn named(&self, name: &str) -> &[InstanceId] {
        self.by_name.get(name).map_or(&[], Holders::all)
    }

    /// Every instance that a Node of this name may stand for by its name, other than those of exactly that name: Nodes are
    /// often called by the qualified name of their host, and instances by the first label of it, or the other way round.
    pub fn qualified<'a>(&'a self, node: &'a str) -> impl Iterator<Item = &'a InstanceId> {
        host_name::others_of_host(&self.by_name, node).flat_map(|(_, held)| held.all())
    }

    /// The instances of each name that the host of this Node may have.
    pub fn by_host_name<'a>(&'a self, node: &'a str) -> impl Iterator<Item = &'a [InstanceId]> {
        host_name::of_host(&self.by_name, node).map(|(_, held)| held.all())
    }

    /// One of these addresses is this instance's.
    pub fn has_one_of(&self, addresses: &[IpAddr], id: &InstanceId) -> bool {
        addresses.iter().any(|address| self.addressed(address).contains(id))
    }

    /// Every instance of that address.
    pub fn addressed(&self, address: &IpAddr) -> &[InstanceId] {
        self.by_address.get(address).map_or(&[], Holders::all)
    }

    /// The one group that the roster means: its id, or how many groups were found instead.
    pub fn resolve(&self, wanted: &GroupRef) -> Result<GroupId, usize> {
        let mut found = self.groups.iter().filter(|group| match wanted {
            GroupRef::Id(id) => group.id == *id,
            GroupRef::Name(name) => group.name == *name,
        });
        match (found.next(), found.next()) {
            (Some(group), None) => Ok(group.id.clone()),
            (None, _) => Err(0),
            (Some(_), Some(_)) => Err(2 + found.count()),
        }
    }

    /// The group of that id.
    pub fn group(&self, id: &GroupId) -> Option<&Arc<SecurityGroup>> {
        self.groups.iter().find(|group| group.id == *id)
    }

    /// How many instances came, went or changed so far: as long as it is the same, they are.
    pub const fn edition(&self) -> u64 {
        self.edition
    }

    /// True once a full listing was seen.
    pub const fn listed_once(&self) -> bool {
        self.first_listed.is_some()
    }

    /// When this process had the first full listing of it.
    pub const fn first_listed(&self) -> Option<Time> {
        self.first_listed
    }

    /// What the cloud's own clock showed at a moment of ours, going by its last full listing.
    pub fn clock_at(&self, at: Time) -> Option<ServiceTime> {
        let (before, after) = (self.listed_at.since(at), at.since(self.listed_at));
        self.listed_begun.map(|begun| begun.earlier_by(before).later_by(after))
    }

    /// True once a full listing was seen and while the cloud is believed.
    pub fn is_known(&self, now: Time) -> bool {
        self.listed_once() && self.source.trust(now).is_given()
    }
}

/// The names under which it is found, each once.
fn names(instance: &Instance) -> impl Iterator<Item = InstanceName> {
    let hostname = instance.hostname.clone().filter(|hostname| **hostname != *instance.name.as_str());
    let name = Some(&instance.name).filter(|name| !name.as_str().is_empty()).cloned();
    hostname.map(InstanceName::new).into_iter().chain(name)
}

/// Of what has ended, only why it did is news.
fn note_end(seen: &mut Seen, ended: &Instance) {
    if ended.hosting.is_some() && seen.instance.hosting != ended.hosting {
        let mut instance = (*seen.instance).clone();
        instance.hosting.clone_from(&ended.hosting);
        seen.instance = Arc::new(instance);
    }
}
