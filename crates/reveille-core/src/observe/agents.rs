//! The agents as the controller hears them: the machine that each one is on, its last report, and how long it has been
//! silent.
//!
//! ```text
//!  Said(agent, report) ─▶ newer than the last? ─▶ link to a machine ─▶ AgentSeen ─▶ fresh, or silent since
//!                              └ late or twice: passed over
//! ```
//!
//! The controller counts silence on its own clock, from the agent's last report, and no earlier than from when it began to
//! listen. So after a restart, a sleep of the process or a registration server that was away, every known agent gets its
//! whole time to come back. A report that comes late or twice is no sign of life. An agent is linked to a machine by the
//! ids that link Nodes. A name links only where the agent gives no better id; such a link protects a machine and permits
//! nothing.
//!
//! The number of machines bounds the number of agents of known machines, and none of these is dropped because others report.
//! Without its agent, the view would lose that the machine was heard, and that it is to go. Agents of unknown machines have a
//! bound of their own, and those that were silent the longest are dropped first.
//!
//! The view does not decide what an agent's report is worth.

mod heard;

use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;

use crate::model::agent::{AgentBlocker, AgentBlockerKind, ApiSaid, Who};
use crate::model::agent_report::AgentReport;
use crate::model::id::{AgentId, CloudName};
use crate::model::incident::MachineKey;
use crate::model::time::{Span, Time};

use super::cloud::CloudView;
use super::cluster::{ClusterView, LinkedBy};

use heard::{Count, HeardTimes};

/// So many agents are kept whose machine no cloud lists. At a start all agents of a fleet may be heard before its clouds
/// are listed, so this is more than the largest fleet that was measured (50,000 machines).
const UNKNOWN_MAX: usize = 65_536;
/// So many of them leave at once: to look for the one that was silent longest costs a walk over all of them.
const UNKNOWN_LEAVE: usize = 1_024;
/// The view keeps this many agents of one machine: one, and those from before the agent was installed again.
const OF_MACHINE_MAX: usize = 8;
/// Share of the agents that hear nothing of the API server which makes it the API server's fault, percent: as with leases.
const OUTAGE_PCT: usize = 60;
/// One machine that says so is never enough, whatever its peers told it: what one says must not stop all others.
const OUTAGE_LEAST: usize = 2;

/// One agent.
#[derive(Clone, Debug)]
pub struct AgentSeen {
    /// Its last report.
    pub report: Arc<AgentReport>,
    /// The machine that it is on, as far as its ids tell.
    pub link: Option<AgentLink>,
    /// When it was heard for the first time.
    pub first_heard: Time,
    /// When it was heard last.
    pub heard: Time,
    /// Since when it says that the API server answers it; none while it says otherwise.
    pub reaches_since: Option<Time>,
    /// Its connection ended since, and why.
    pub parted: Option<Arc<str>>,
    /// The life before the present one: what comes from it comes late.
    former_life: Option<Arc<str>>,
}

/// Which machine an agent is on, and how that is known.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct AgentLink {
    /// The machine.
    pub machine: MachineKey,
    /// The evidence.
    pub by: LinkedBy,
}

impl AgentLink {
    /// An identity says so, not a name.
    pub const fn is_strong(&self) -> bool {
        self.by.is_strong()
    }
}

/// What a report changed.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Heard {
    /// The report came late or twice.
    PassedOver,
    /// The report says the same as the one before.
    Same,
    /// The report is news.
    News,
}

/// All of them.
#[derive(Clone, Debug)]
pub struct AgentsView {
    silent_after: Span,
    all: BTreeMap<AgentId, AgentSeen>,
    of: BTreeMap<MachineKey, BTreeSet<AgentId>>,
    /// Agents without a link, or with a weak one: looked at again whenever machines change.
    weak: BTreeSet<AgentId>,
    /// The machines of which the ledger names an agent that was heard before a restart of ours, and what it held, until it is
    /// heard again.
    told_before: BTreeMap<MachineKey, Option<AgentBlocker>>,
    /// How many agents have no link.
    unknown: usize,
    /// When those that have a link were heard, and how many of them may speak of an outage.
    heard: HeardTimes,
    /// Since when we listen without a gap; none before the first agent, or the server's word.
    listening_since: Option<Time>,
    /// When most of the agents last said that no agent reaches the API server.
    outage_at: Option<Time>,
    /// Since when no registration server hears the agents.
    deaf_since: Option<Time>,
}

impl AgentsView {
    /// A view that no agent has reported to yet.
    pub const fn new(silent_after: Span) -> Self {
        Self {
            silent_after,
            all: BTreeMap::new(),
            of: BTreeMap::new(),
            weak: BTreeSet::new(),
            told_before: BTreeMap::new(),
            unknown: 0,
            heard: HeardTimes::new(),
            listening_since: None,
            outage_at: None,
            deaf_since: None,
        }
    }

    /// Takes in a report. A report that arrives shows that the controller listens to agents.
    pub fn said(&mut self, now: Time, agent: &AgentId, report: &Arc<AgentReport>) -> Heard {
        self.listens(now);
        let Some(seen) = self.all.get_mut(agent) else {
            self.make_room(now);
            let seen = AgentSeen {
                reaches_since: reaches(report).then_some(now),
                report: bounded(report),
                link: None,
                first_heard: now,
                heard: now,
                parted: None,
                former_life: None,
            };
            self.all.insert(agent.clone(), seen);
            self.weak.insert(agent.clone());
            return Heard::News;
        };
        let same_life = seen.report.life == report.life;
        let late = same_life && report.number <= seen.report.number;
        if late || seen.former_life.as_ref() == Some(&report.life) {
            return Heard::PassedOver;
        }
        if !same_life {
            seen.former_life = Some(seen.report.life.clone());
        }
        let back = seen.parted.take().is_some();
        let same = same_life && !back && says_the_same(&seen.report, report);
        if seen.report.who != report.who {
            self.weak.insert(agent.clone());
        }
        self.heard.take(seen);
        seen.heard = now;
        seen.reaches_since = reaches(report).then(|| seen.reaches_since.unwrap_or(now));
        let held = seen.report.blocker.clone();
        seen.report = bounded(report);
        if report.unsaid {
            Arc::make_mut(&mut seen.report).blocker = held;
        }
        self.heard.add(seen);
        if same { Heard::Same } else { Heard::News }
    }

    /// Its connection ended. True when that is news.
    pub fn parted(&mut self, agent: &AgentId, why: &Arc<str>) -> bool {
        let Some(seen) = self.all.get_mut(agent) else { return false };
        seen.parted.replace(why.clone()).is_none()
    }

    /// The agent answered a request, so it is alive.
    pub fn answered(&mut self, now: Time, agent: &AgentId) {
        if let Some(seen) = self.all.get_mut(agent) {
            self.heard.take(seen);
            seen.heard = seen.heard.max(now);
            self.heard.add(seen);
        }
    }

    /// A registration server hears agents. After a gap in which none did, every agent gets its whole time again.
    pub fn listens(&mut self, now: Time) {
        if self.deaf_since.take().is_some() || self.listening_since.is_none() {
            self.listening_since = Some(now);
        }
    }

    /// No registration server hears agents.
    pub const fn is_deaf(&mut self, now: Time) {
        if self.deaf_since.is_none() {
            self.deaf_since = Some(now);
        }
    }

    /// The process slept, or the clock jumped: every known agent gets its whole time to be heard again.
    pub fn restart_sight(&mut self, now: Time) {
        if self.listening_since.is_some() {
            self.listening_since = Some(now);
        }
    }

    /// The clock went back: no report may be noted as later than now.
    pub fn go_back_to(&mut self, now: Time) {
        self.heard = HeardTimes::new();
        for seen in self.all.values_mut() {
            seen.first_heard = seen.first_heard.min(now);
            seen.heard = seen.heard.min(now);
            seen.reaches_since = seen.reaches_since.map(|at| at.min(now));
            self.heard.add(seen);
        }
        self.outage_at = self.outage_at.map(|at| at.min(now));
        self.deaf_since = self.deaf_since.map(|at| at.min(now));
        self.restart_sight(now);
    }

    /// One of that id.
    pub fn get(&self, agent: &AgentId) -> Option<&AgentSeen> {
        self.all.get(agent)
    }

    /// The agents of a machine: one, where all is well. Where an identity links one agent to the machine, agents that are
    /// linked by name alone are left out: any machine can take that name.
    pub fn of(&self, machine: &MachineKey) -> impl Iterator<Item = (&AgentId, &AgentSeen)> {
        let linked = self.of.get(machine).into_iter().flatten();
        let linked = linked.filter_map(|agent| self.all.get_key_value(agent));
        let is_on_it = |seen: &AgentSeen| seen.link.as_ref().is_some_and(AgentLink::is_strong);
        let is_known = linked.clone().any(|(_, seen)| is_on_it(seen));
        linked.filter(move |(_, seen)| !is_known || is_on_it(seen))
    }

    /// The agent of a machine that was heard last.
    pub fn latest(&self, machine: &MachineKey) -> Option<(&AgentId, &AgentSeen)> {
        self.of(machine).max_by_key(|(_, seen)| seen.heard)
    }

    /// How long the agent has been silent, counted while a registration server listened.
    pub fn silence(&self, now: Time, seen: &AgentSeen) -> Span {
        let from = self.listening_since.map_or(seen.heard, |since| since.max(seen.heard));
        self.deaf_since.map_or(now, |deaf| deaf.min(now)).since(from)
    }

    /// The agent reported lately enough: its machine runs.
    pub fn is_fresh(&self, now: Time, seen: &AgentSeen) -> bool {
        self.silence(now, seen) <= self.silent_after
    }

    /// The shortest time until this agent can be called silent. While no registration server listens, the agent's time
    /// stands still, and it starts from zero with the next one that listens.
    pub fn silent_in(&self, now: Time, seen: &AgentSeen) -> Span {
        let silence = if self.deaf_since.is_some() { Span::ZERO } else { self.silence(now, seen) };
        Span::from_ms((self.silent_after.ms - silence.ms).max(0) + 1)
    }

    /// The agent of the machine that is fresh, if one is, and how long ago it was heard.
    pub fn fresh(&self, now: Time, machine: &MachineKey) -> Option<(&AgentId, &AgentSeen)> {
        self.of(machine).filter(|(_, seen)| self.is_fresh(now, seen)).max_by_key(|(_, seen)| seen.heard)
    }

    /// For how long an agent of the machine may still come back to us, of whom nothing was heard since we began to listen: a
    /// machine in ERROR whose agent connects a minute after our restart lives (seen by reading; no list tells of agents).
    ///
    /// While no registration server listens, an agent of which the ledger tells is waited for, as the one that was heard last
    /// before that: its kubelet was dead, we were restarted, the server stood still, and the machine was rebooted. Of the others
    /// nothing tells that they have an agent.
    pub fn awaited(&self, now: Time, machine: &MachineKey) -> Option<Span> {
        if self.of.contains_key(machine) {
            return None;
        }
        if self.deaf_since.is_some() {
            let whole = Span::from_ms(self.silent_after.ms + 1);
            return self.told_before.contains_key(machine).then_some(whole);
        }
        let left = self.silent_after.ms - now.since(self.listening_since?).ms;
        (left >= 0).then(|| Span::from_ms(left + 1))
    }

    /// Why the agent of the machine leaves it alone, by its last word, however long ago that was.
    pub fn blocker(&self, machine: &MachineKey) -> Option<&AgentBlocker> {
        let before = || self.told_before.get(machine)?.as_ref();
        match self.latest(machine) {
            Some((_, seen)) if seen.report.unsaid => seen.report.blocker.as_ref().or_else(before),
            Some((_, seen)) => seen.report.blocker.as_ref(),
            None => before(),
        }
    }

    /// Its agent said that it is to go, and has not taken that back.
    pub fn is_leaving(&self, machine: &MachineKey) -> Option<&AgentBlocker> {
        self.blocker(machine).filter(|blocker| blocker.kind == AgentBlockerKind::Leaving)
    }

    /// Whether an earlier process of ours had heard an agent of this machine, and what that held.
    pub fn remember(&mut self, machine: MachineKey, heard: Option<Option<AgentBlocker>>) {
        match heard {
            Some(blocker) => self.told_before.insert(machine, blocker),
            None => self.told_before.remove(&machine),
        };
    }

    /// How many fresh agents say that no agent reaches the API server, and of how many, where these are most of them.
    pub fn outage(&self, now: Time) -> Option<(usize, usize)> {
        let Count { agents, lost } = self.fresh_count(now);
        (lost >= OUTAGE_LEAST && lost * 100 >= OUTAGE_PCT * agents).then_some((lost, agents))
    }

    /// Keeps the time of an outage that is believed of so many agents: what comes back after one comes back one after another.
    /// From here on it costs nothing to ask for an outage at this time.
    pub fn note_outage(&mut self, now: Time, is_believed: impl FnOnce(usize) -> bool) {
        if let Some(from) = self.fresh_from(now) {
            self.heard.move_mark(from);
        }
        if self.outage(now).is_some_and(|(_, of)| is_believed(of)) {
            self.outage_at = Some(now);
        }
    }

    /// The fresh ones that are kept count of are those that a walk over all agents finds.
    pub fn counts_agree(&self, now: Time) -> bool {
        let fresh = self.all.values().filter(|seen| self.is_fresh(now, seen));
        self.fresh_count(now) == Count::of_all(fresh)
    }

    fn fresh_count(&self, now: Time) -> Count {
        self.fresh_from(now).map_or(self.heard.all(), |from| self.heard.since(from))
    }

    /// An agent that was heard at this time or later is fresh, as [`Self::is_fresh`] says of each. None while the
    /// controller has not listened for long enough to call any agent silent.
    fn fresh_from(&self, now: Time) -> Option<Time> {
        let from = self.deaf_since.map_or(now, |deaf| deaf.min(now)) - self.silent_after;
        self.listening_since.is_none_or(|since| since < from).then_some(from)
    }

    /// When most of the agents last said that no agent reaches the API server.
    pub const fn outage_at(&self) -> Option<Time> {
        self.outage_at
    }

    /// Links again every agent that no identity links. Returns the machines whose agents changed.
    pub fn relink(
        &mut self,
        clouds: &BTreeMap<CloudName, CloudView>,
        cluster: &ClusterView,
    ) -> BTreeSet<MachineKey> {
        let weak: Vec<AgentId> = self.weak.iter().cloned().collect();
        weak.iter().flat_map(|agent| self.relink_one(agent, clouds, cluster)).collect()
    }

    /// Links one agent again, unless an identity links it. Returns the machines whose agents changed.
    pub fn relink_one(
        &mut self,
        agent: &AgentId,
        clouds: &BTreeMap<CloudName, CloudView>,
        cluster: &ClusterView,
    ) -> Vec<MachineKey> {
        let Some(seen) = self.all.get_mut(agent).filter(|_| self.weak.contains(agent)) else {
            return Vec::new();
        };
        let link = find(clouds, cluster, &seen.report.who);
        if link.as_ref().is_some_and(AgentLink::is_strong) {
            self.weak.remove(agent);
        }
        if seen.link == link {
            return Vec::new();
        }
        self.heard.take(seen);
        let before = std::mem::replace(&mut seen.link, link.clone());
        self.heard.add(seen);
        let mut touched = Vec::new();
        if let Some(before) = before {
            self.unlink(&before.machine, agent);
            self.unknown += 1;
            touched.push(before.machine);
        }
        if let Some(link) = link {
            self.of.entry(link.machine.clone()).or_default().insert(agent.clone());
            self.unknown -= 1;
            self.bound_machine(&link.machine, agent);
            touched.push(link.machine);
        }
        touched
    }

    /// The machine is no more, and what its agents said is of no use.
    pub fn forget(&mut self, machine: &MachineKey) {
        self.told_before.remove(machine);
        for agent in self.of.remove(machine).unwrap_or_default() {
            self.remove(&agent);
        }
    }

    /// How many there are.
    pub fn len(&self) -> usize {
        self.all.len()
    }

    /// True where no agent was ever heard.
    pub fn is_empty(&self) -> bool {
        self.all.is_empty()
    }

    fn unlink(&mut self, machine: &MachineKey, agent: &AgentId) {
        if let Some(agents) = self.of.get_mut(machine) {
            agents.remove(agent);
            if agents.is_empty() {
                self.of.remove(machine);
            }
        }
    }

    /// Of the agents of no known machine, those that have been silent the longest give way. Fresh ones and those that hold
    /// something leave only when there is nothing else: no machine of ours rests on them.
    fn make_room(&mut self, now: Time) {
        self.unknown += 1;
        if self.unknown <= UNKNOWN_MAX {
            return;
        }
        let mut unknown: Vec<(bool, bool, Time, AgentId)> = self
            .all
            .iter()
            .filter(|(_, seen)| seen.link.is_none())
            .map(|(agent, seen)| {
                (seen.report.blocker.is_some(), self.is_fresh(now, seen), seen.heard, agent.clone())
            })
            .collect();
        unknown.sort_unstable();
        for (.., agent) in unknown.into_iter().take(UNKNOWN_LEAVE) {
            self.remove(&agent);
            self.unknown -= 1;
        }
    }

    /// A machine whose agent was installed again and again keeps the newest of its agents.
    fn bound_machine(&mut self, machine: &MachineKey, newcomer: &AgentId) {
        let agents = self.of.get(machine).into_iter().flatten();
        let others = agents.filter(|agent| *agent != newcomer);
        let seen = others.filter_map(|agent| Some((agent, self.all.get(agent)?)));
        let known = self.of.get(machine).map_or(0, BTreeSet::len);
        let oldest = seen.min_by_key(|(_, seen)| (seen.report.blocker.is_some(), seen.heard));
        let leaves = oldest.filter(|_| known > OF_MACHINE_MAX).map(|(agent, _)| agent.clone());
        if let Some(agent) = leaves {
            self.unlink(machine, &agent);
            self.remove(&agent);
        }
    }

    fn remove(&mut self, agent: &AgentId) {
        if let Some(seen) = self.all.remove(agent) {
            self.heard.take(&seen);
        }
        self.weak.remove(agent);
    }
}

const fn reaches(report: &AgentReport) -> bool {
    matches!(report.api, ApiSaid::Answers)
}

/// The machine that these ids are of: the cloud's id, then the system's UUID, then a name that only one has.
fn find(clouds: &BTreeMap<CloudName, CloudView>, cluster: &ClusterView, who: &Who) -> Option<AgentLink> {
    let strong = |id: &crate::model::id::InstanceId, by| {
        let cloud = clouds.values().find(|cloud| cloud.instances.contains_key(id))?;
        Some(AgentLink { machine: MachineKey::Instance(cloud.name.clone(), id.clone()), by })
    };
    if let Some(id) = &who.instance {
        // An id that no cloud lists is still an identity: no weaker hint takes its place.
        return strong(id, LinkedBy::ProviderId);
    }
    if let Some(link) = who.system_uuid.as_ref().and_then(|uuid| strong(uuid, LinkedBy::SystemUuid)) {
        return Some(link);
    }
    let name = who.node.as_ref()?;
    let by = LinkedBy::UniqueName;
    let node = cluster.nodes.get(name);
    if let (Some(own), Some(theirs)) =
        (&who.system_uuid, node.and_then(|node| node.node.system_uuid.as_ref()))
        && own != theirs
    {
        // A namesake: the Node of this name runs on another machine.
        return None;
    }
    if let Some(link) = node.and_then(|node| node.link.as_ref()) {
        let machine = link.machine();
        return Some(AgentLink { machine, by });
    }
    let mut named =
        clouds.values().flat_map(|cloud| cloud.named(name.as_str()).iter().map(move |id| (cloud, id)));
    let (cloud, id) = named.next()?;
    let unique = named.next().is_none();
    unique.then(|| AgentLink { machine: MachineKey::Instance(cloud.name.clone(), id.clone()), by })
}

/// Nothing but the number differs.
fn says_the_same(one: &AgentReport, other: &AgentReport) -> bool {
    let AgentReport { who, life, number: _, stages, told, unsaid, kubelet, api, work, blocker, may } = one;
    *who == other.who
        && *life == other.life
        && *stages == other.stages
        && *told == other.told
        && *unsaid == other.unsaid
        && *kubelet == other.kubelet
        && *api == other.api
        && *work == other.work
        && *blocker == other.blocker
        && *may == other.may
}

/// What an agent says is cut to what is kept of it.
fn bounded(report: &Arc<AgentReport>) -> Arc<AgentReport> {
    let stages_max = crate::model::stage::Stage::ALL.len();
    if report.told.len() <= AgentReport::TOLD_MAX && report.stages.len() <= stages_max {
        return report.clone();
    }
    let mut report = AgentReport::clone(report);
    report.told.truncate(AgentReport::TOLD_MAX);
    report.stages.truncate(stages_max);
    Arc::new(report)
}

#[cfg(test)]
mod tests;
