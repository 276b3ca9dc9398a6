//! How much may happen at once: what is under way, what was begun within the hour, and how far each domain is trusted.
//!
//! The engine writes the book (an operation begins, advances, ends) and the interlocks read it. The book keeps three
//! limits: machines under repair at once, repairs begun in any hour, and the probe width of a domain (pool, zone and kind
//! of fault). The width is one at first, and one more with each proof, so a round that was proved doubles it. It goes back
//! to one, with a cooldown, when a repair failed. It also goes back to one when the domain has no open incident, because an
//! old success permits nothing.
//!
//! A deleted machine keeps its slot until its successor has joined and is well, or until the wait for it is over.

use std::collections::{BTreeMap, VecDeque};
use std::sync::Arc;

use crate::effect::Call;
use crate::model::before::Before;
use crate::model::call::{AskAgent, DeleteInstance, NudgeRouter};
use crate::model::id::{AgentId, CloudName, IncidentId, InstanceId, IntentId, PoolName};
use crate::model::incident::IncidentKey;
use crate::model::jump::Jump;
use crate::model::network::Route;
use crate::model::repair_step::RepairStep;
use crate::model::roster::Limits;
use crate::model::time::{Span, Time};
use crate::record::Domain;

use super::places::Places;

/// One operation (intent) that is under way.
#[derive(Clone, Debug)]
pub struct Operation {
    /// For which incident.
    pub incident: IncidentId,
    /// The incident's key.
    pub key: IncidentKey,
    /// Which repair step.
    pub repair_step: RepairStep,
    /// The call.
    pub call: Call,
    /// The state before the call, to tell afterwards whether the call took effect.
    pub before: Option<Before>,
    /// Where its trust is earned; none for network repairs.
    pub domain: Option<Domain>,
    /// How far the operation is.
    pub phase: Phase,
    /// For which fault its deletion was counted, where this one was the first to be.
    pub counted: Option<Counted>,
}

/// A deletion as the count of the same fault knows it.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Counted {
    /// The pool that the instance is of.
    pub pool: PoolName,
    /// The instance.
    pub instance: InstanceId,
    /// Its fault, without what differs from machine to machine.
    pub fault: Arc<str>,
}

/// A call that was answered as failed, and works all the same, has worked within this.
const MAY_COME: Span = Span::from_min(10);

impl Operation {
    /// The call was made so lately that its effect may still come, although no read has shown it.
    fn may_come(&self, now: Time) -> bool {
        matches!(self.phase, Phase::Calling { since } if now.since(since) < MAY_COME)
    }
}

/// How far an operation is.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Phase {
    /// The ledger is asked to keep it.
    Recording,
    /// The call is out.
    Calling {
        /// Since when: a call without an answer ends as "unknown".
        since: Time,
    },
    /// The call ended; fresh reads tell whether it took effect.
    Verifying {
        /// From then on a fresh read that shows that nothing happened counts.
        deadline: Time,
        /// From then on it counts as not confirmed although no fresh read can show whether anything happened.
        unseen_until: Time,
    },
    /// The effect was seen; whether it *helped* shows when the machine, or its successor, is well.
    Proving {
        /// When it counts as a failure.
        deadline: Time,
        /// Since when.
        since: Time,
    },
}

/// Trust in one domain.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Width {
    /// How many at once.
    pub width: u32,
    /// Nothing before this.
    pub not_before: Option<Time>,
    /// Failures in a row; sets the length of the next pause.
    pub failures: u32,
    /// When it was last proved or failed.
    pub since: Time,
    /// The repair that was last proved, where one was since the last failure, and the ledger tells which.
    pub proved: Option<IntentId>,
}

impl Default for Width {
    fn default() -> Self {
        Self { width: 1, not_before: None, failures: 0, since: Time::default(), proved: None }
    }
}

/// The widest that a domain can become.
const WIDTH_MAX: u32 = 64;
/// First pause after a failed probe; doubles up to [`COOLDOWN_MAX`].
const COOLDOWN_MIN: Span = Span::from_min(1);
/// Longest pause: a failed probe pauses its domain and never halts it.
const COOLDOWN_MAX: Span = Span::from_min(10);
/// A proof counts for this long. A domain that never falls quiet, because a machine there keeps having a problem, must not
/// use a proof on the day after.
const TRUST_LASTS: Span = Span::from_min(60);
/// How many of our own deletions the book remembers.
const DELETED_MAX: usize = 256;
/// One hour.
const HOUR: Span = Span::from_min(60);

/// A destructive intent, for as long as it takes room within the hour.
#[derive(Clone, Copy, Debug)]
struct Begun {
    at: Time,
    /// It tidies up: the Node of a machine that is gone.
    tidies: bool,
}

/// There is no room within the hour.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct UsedUp {
    /// Begun within the hour.
    pub used: u32,
    /// Allowed.
    pub limit: u32,
    /// When there is room again; none where nothing is allowed at all.
    pub free_at: Option<Time>,
}

/// How often a repair step was asked for and how often a fresh read found its effect. The two differ where calls are accepted and
/// nothing happens, which no log of accepted calls can show.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Tried {
    /// Calls made.
    pub requested: u32,
    /// Of these, effects that a fresh read found.
    pub verified: u32,
}

/// All budgets.
#[derive(Clone, Debug, Default)]
pub struct Book {
    /// What is under way.
    pub operations: BTreeMap<IntentId, Operation>,
    /// When destructive intents began, within the hour, oldest first.
    begun: VecDeque<Begun>,
    widths: BTreeMap<Domain, Width>,
    /// Instances deleted for a fault, by pool and normalised fault text.
    same_faults: BTreeMap<(PoolName, Arc<str>), Vec<InstanceId>>,
    /// Instances that we deleted, newest last: no other client is charged with their deletion.
    deleted: VecDeque<InstanceId>,
    tried: BTreeMap<RepairStep, Tried>,
    /// Deletions that were answered as failed, or were not seen to be done, newest last.
    doubted: VecDeque<(IntentId, Operation)>,
    /// What keeps its place although nothing of it is under way.
    pub places: Places,
}

impl Book {
    /// The intent that is under way for an incident.
    pub fn operation_of(&self, incident: IncidentId) -> Option<(IntentId, &Operation)> {
        self.operations
            .iter()
            .find(|(_, operation)| operation.incident == incident)
            .map(|(id, operation)| (*id, operation))
    }

    /// Something of this incident is under way, or seemed to come to nothing and may only be late.
    pub fn is_of(&self, incident: IncidentId) -> bool {
        self.operation_of(incident).is_some()
            || self.doubted().any(|(_, operation)| operation.incident == incident)
    }

    /// Routes that nudges under way put on a router of this cloud and take back.
    pub fn router_nudges(&self, cloud: &CloudName) -> Vec<Route> {
        let nudged = self.operations.values().filter_map(|operation| match &operation.call {
            Call::NudgeRouter(NudgeRouter { cloud: there, route, .. }) if there == cloud => Some(*route),
            _ => None,
        });
        nudged.collect()
    }

    /// Destructive intents under way, over the whole roster.
    pub fn destructive_under_way(&self) -> u32 {
        self.operations.values().filter(|operation| operation.repair_step.class().is_destructive()).count()
            as u32
    }

    /// Places taken among the repairs at once: by what is under way, and by what was answered as failed and may only be late.
    pub fn places_taken(&self, now: Time) -> u32 {
        self.destructive_under_way() + self.places.taken(now)
    }

    /// The same of a domain.
    pub fn places_taken_in(&self, domain: &Domain, now: Time) -> u32 {
        self.under_way_in(domain) + self.places.taken_in(domain, now)
    }

    /// Network intents under way.
    pub fn network_under_way(&self) -> u32 {
        self.operations.values().filter(|operation| !operation.repair_step.class().is_destructive()).count()
            as u32
    }

    /// Intents under way that ask this agent.
    pub fn asked(&self, agent: &AgentId) -> impl Iterator<Item = IntentId> {
        let asks = move |call: &Call| matches!(call, Call::AskAgent(AskAgent { agent: asked, .. }) if asked == agent);
        self.operations.iter().filter(move |(_, operation)| asks(&operation.call)).map(|(intent, _)| *intent)
    }

    /// Intents under way in a domain.
    pub fn under_way_in(&self, domain: &Domain) -> u32 {
        self.operations.values().filter(|operation| operation.domain.as_ref() == Some(domain)).count() as u32
    }

    /// A destructive intent of this repair step began.
    pub fn begin(&mut self, at: Time, repair_step: RepairStep) {
        self.begun.push_back(Begun { at, tidies: repair_step == RepairStep::Cleanup });
        self.forget_old(at);
    }

    /// A call of this repair step goes out.
    pub fn count_requested(&mut self, repair_step: RepairStep) {
        self.tried.entry(repair_step).or_default().requested += 1;
    }

    /// A fresh read found the effect of a call of this repair step.
    pub fn count_verified(&mut self, repair_step: RepairStep) {
        self.tried.entry(repair_step).or_default().verified += 1;
    }

    /// What was counted in records that the ledger does not hold any more.
    pub fn count_earlier(&mut self, repair_step: RepairStep, earlier: Tried) {
        let tried = self.tried.entry(repair_step).or_default();
        tried.requested = tried.requested.saturating_add(earlier.requested);
        tried.verified = tried.verified.saturating_add(earlier.verified);
    }

    /// Counts what was tried and is over. The ledger holds what is under way with its intent, and the process that replays
    /// the ledger counts it again.
    pub fn tried_and_over(&self) -> BTreeMap<RepairStep, Tried> {
        let mut over = self.tried.clone();
        for operation in self.operations.values().chain(self.doubted().map(|(_, operation)| operation)) {
            let Some(tried) = over.get_mut(&operation.repair_step) else { continue };
            let called = !matches!(operation.phase, Phase::Recording);
            let held = matches!(operation.phase, Phase::Proving { .. });
            tried.requested = tried.requested.saturating_sub(u32::from(called));
            tried.verified = tried.verified.saturating_sub(u32::from(held));
        }
        over.retain(|_, tried| tried.requested > 0 || tried.verified > 0);
        over
    }

    /// What was tried, by repair step, over the life of the ledger.
    pub const fn tried(&self) -> &BTreeMap<RepairStep, Tried> {
        &self.tried
    }

    /// We are about to delete this instance.
    pub fn note_deleted(&mut self, instance: &InstanceId) {
        if self.deleted.len() == DELETED_MAX {
            self.deleted.pop_front();
        }
        self.deleted.push_back(instance.clone());
    }

    /// Our deletion of the instance did nothing: if it goes later, another client deleted it.
    pub fn not_deleted(&mut self, call: &Call) {
        if let Call::DeleteInstance(DeleteInstance { instance, .. }) = call {
            self.deleted.retain(|known| known != instance);
        }
    }

    /// Did we delete this instance?
    pub fn deleted_by_us(&self, instance: &InstanceId) -> bool {
        self.deleted.contains(instance)
    }

    /// A deletion was answered as failed, or was not seen to be done in time. Should its machine go after all, it took effect:
    /// the newest of each is kept.
    pub fn doubt(&mut self, intent: IntentId, operation: &Operation) {
        if !matches!(operation.call, Call::DeleteInstance(_)) {
            return;
        }
        self.doubted.retain(|(_, earlier)| earlier.call != operation.call);
        if self.doubted.len() == DELETED_MAX {
            self.doubted.pop_front();
        }
        self.doubted.push_back((intent, operation.clone()));
    }

    /// Instances that a deletion takes away: one that is under way, or one of which nothing was seen and that may only be late.
    pub fn deletions(&self, now: Time) -> impl Iterator<Item = (&CloudName, &InstanceId)> {
        let late = self
            .doubted
            .iter()
            .map(|(_, operation)| operation)
            .filter(move |operation| operation.may_come(now));
        self.operations.values().chain(late).filter_map(|operation| match &operation.call {
            Call::DeleteInstance(DeleteInstance { cloud, instance, .. }) => Some((cloud, instance)),
            _ => None,
        })
    }

    /// Deletions of which nothing seemed to come.
    pub fn doubted(&self) -> impl Iterator<Item = (IntentId, &Operation)> {
        self.doubted.iter().map(|(intent, operation)| (*intent, operation))
    }

    /// Since when the newest of the incident's may come late.
    pub fn late_since(&self, incident: IncidentId) -> Option<Time> {
        let of_it = self.doubted.iter().rev().find(|(_, operation)| operation.incident == incident);
        of_it.and_then(|(_, operation)| match operation.phase {
            Phase::Calling { since } => Some(since),
            _ => None,
        })
    }

    /// The same, as a checkpoint says. The times of the answer and of the verdict are facts, which stand where the clock was set
    /// ahead: for the next process, a deletion of a minute ago would have been made half an hour ago.
    pub fn set_late_since(&mut self, incident: IncidentId, since: Time) {
        let of_it = self.doubted.iter_mut().rev().find(|(_, operation)| operation.incident == incident);
        if let Some((_, operation)) = of_it {
            operation.phase = Phase::Calling { since };
        }
    }

    /// Nothing more is done for the incident before this, as a checkpoint says: a reboot that shows nothing has its patience
    /// until then. The time of its answer is a fact, which stands over a jump, and a jump is no part of the patience.
    pub fn wait_unseen(&mut self, incident: IncidentId, until: Time) {
        for operation in self.operations.values_mut().filter(|operation| operation.incident == incident) {
            if let Phase::Verifying { unseen_until, .. } = &mut operation.phase {
                *unseen_until = (*unseen_until).max(until);
            }
        }
    }

    /// What came of the calls that were answered is looked for as if they had been answered now.
    pub fn look_afresh(&mut self, now: Time) {
        for operation in self.operations.values_mut() {
            if matches!(operation.phase, Phase::Verifying { .. }) {
                operation.phase = Phase::Calling { since: now };
            }
        }
    }

    /// This one took effect all the same.
    pub fn undoubt(&mut self, intent: IntentId) -> Option<Operation> {
        let place = self.doubted.iter().position(|(known, _)| *known == intent)?;
        self.doubted.remove(place).map(|(_, operation)| operation)
    }

    /// What the incident's deletions were answered does not matter any more: a later one took effect, or the machine is well.
    pub fn doubt_no_more(&mut self, incident: IncidentId) {
        self.doubted.retain(|(_, operation)| operation.incident != incident);
        self.places.free(incident);
    }

    /// What began then never happened, or was dropped before its call: it does not count.
    pub fn unbegin(&mut self, at: Time, repair_step: RepairStep) {
        let tidies = repair_step == RepairStep::Cleanup;
        let place = self.begun.iter().rposition(|begun| begun.at <= at && begun.tidies == tidies);
        if let Some(place) = place.or_else(|| self.begun.iter().rposition(|begun| begun.at <= at)) {
            self.begun.remove(place);
        }
    }

    fn forget_old(&mut self, now: Time) {
        while self.begun.front().is_some_and(|first| now.since(first.at) >= HOUR) {
            self.begun.pop_front();
        }
    }

    /// How many destructive intents began within the hour before `now`.
    pub fn begun_within_hour(&self, now: Time) -> u32 {
        self.begun_lately(now, false).0
    }

    /// How many of them tidy up.
    pub fn tidied_within_hour(&self, now: Time) -> u32 {
        self.begun_lately(now, true).0
    }

    /// How many, and when the oldest of them no longer counts.
    fn begun_lately(&self, now: Time, only_tidying: bool) -> (u32, Option<Time>) {
        let counts = |begun: &&Begun| now.since(begun.at) < HOUR && (begun.tidies || !only_tidying);
        let recent = self.begun.iter().filter(counts);
        let first = recent.clone().next().map(|begun| begun.at + HOUR);
        (recent.count() as u32, first)
    }

    /// Nothing more of this repair step may begin within the hour. What tidies up has a share of it: nothing is urgent about
    /// the Node of a machine that is gone, and fifteen of them kept a machine from its reboot for hours.
    pub fn used_up(&self, now: Time, limits: &Limits, repair_step: RepairStep) -> Option<UsedUp> {
        let is_over = |(used, free_at), limit| (used >= limit).then_some(UsedUp { used, limit, free_at });
        let all = is_over(self.begun_lately(now, false), limits.per_hour);
        let share = || is_over(self.begun_lately(now, true), limits.cleanups_per_hour());
        all.or_else(|| share().filter(|_| repair_step == RepairStep::Cleanup))
    }

    /// The clock went back: what was begun was not begun later than now, and no pause is longer than this. A machine that boots
    /// after all keeps its place for longer than any pause, up to the slowest: bare metal boots for an hour.
    pub fn go_back_to(&mut self, now: Time, longest: Time, slowest: Time) {
        self.begun.iter_mut().for_each(|begun| begun.at = begun.at.min(now));
        for width in self.widths.values_mut() {
            width.not_before = width.not_before.map(|at| at.min(longest));
            width.since = width.since.min(now);
        }
        self.places.end_by(slowest);
    }

    /// Its times go over a jump. An hour on the clock is not an hour of watching: calls begun before a gap count for as long as
    /// they would have without it, and a call that may only be late may come for as long.
    pub fn over(&mut self, jump: Jump) {
        let Self { operations, begun, widths, doubted, places, same_faults: _, deleted: _, tried: _ } = self;
        operations.values_mut().for_each(|operation| operation.over(jump));
        doubted.iter_mut().for_each(|(_, operation)| operation.over(jump));
        widths.values_mut().for_each(|width| width.over(jump));
        jump.counts(begun.iter_mut().map(|Begun { at, tidies: _ }| at));
        places.over(jump);
    }

    /// The same where the gap is short: pauses end later, and what is looked for or being proved has as long to go.
    pub fn wait_on(&mut self, jump: Jump) {
        self.widths.values_mut().for_each(|width| jump.ends(&mut width.not_before));
        for operation in self.operations.values_mut() {
            match &mut operation.phase {
                Phase::Recording | Phase::Calling { .. } => {}
                Phase::Verifying { deadline, unseen_until } => jump.ends([deadline, unseen_until]),
                Phase::Proving { deadline, .. } => jump.ends([deadline]),
            }
        }
        self.places.over(jump);
    }

    /// Trust in a domain, as far as it has not lapsed.
    pub fn width(&self, domain: &Domain, now: Time) -> Width {
        let known = self.widths.get(domain).copied().unwrap_or_default();
        let lapsed = now.since(known.since) >= TRUST_LASTS;
        Width { width: if lapsed { 1 } else { known.width }, ..known }
    }

    /// Sets trust in a domain, as the ledger remembers it.
    pub fn set_width(&mut self, domain: Domain, width: Width) {
        self.widths.insert(domain, width);
    }

    /// A repair was proved: one more at a time. A round of proofs as wide as the width doubles it; one lucky repair of many
    /// does not. Where another one has just failed, the pause goes on.
    pub fn proved(&mut self, domain: &Domain, now: Time, intent: IntentId) -> Width {
        let known = self.width(domain, now);
        let width = known.width.saturating_add(1).min(WIDTH_MAX);
        let not_before = known.not_before.filter(|until| now < *until);
        let new = Width { width, not_before, failures: 0, since: now, proved: Some(intent) };
        self.widths.insert(domain.clone(), new);
        new
    }

    /// A repair failed: one at a time, and not at once.
    pub fn failed(&mut self, domain: &Domain, now: Time) -> Width {
        let failures = self.width(domain, now).failures;
        let not_before = Some(now + COOLDOWN_MIN.doubled(failures, COOLDOWN_MAX));
        let failures = failures.saturating_add(1);
        let new = Width { width: 1, not_before, failures, since: now, proved: None };
        self.widths.insert(domain.clone(), new);
        new
    }

    /// No machine in the domain has a problem any more: trust falls back to one. True when that changed anything. Where the
    /// last repair failed a moment ago, the pause goes on for the next machine with a problem there.
    pub fn quiet(&mut self, domain: &Domain, now: Time) -> bool {
        if self.width(domain, now).not_before.is_some_and(|until| now < until) {
            return false;
        }
        let differs = |known: Width| known.width != 1 || known.not_before.is_some() || known.failures != 0;
        self.widths.remove(domain).is_some_and(differs)
    }

    /// Something is known of the domain that is not the default.
    pub fn is_trusted(&self, domain: &Domain) -> bool {
        self.widths.contains_key(domain)
    }

    /// Every domain whose trust differs from the default.
    pub fn widths(&self) -> impl Iterator<Item = (&Domain, &Width)> {
        self.widths.iter()
    }

    /// An instance of the pool is deleted for this fault. False when it was counted already.
    pub fn count_fault(&mut self, pool: &PoolName, instance: &InstanceId, fault: &Arc<str>) -> bool {
        let seen = self.same_faults.entry((pool.clone(), fault.clone())).or_default();
        let new = !seen.contains(instance);
        if new {
            seen.push(instance.clone());
        }
        new
    }

    /// It was not deleted after all.
    pub fn uncount_fault(&mut self, counted: &Counted) {
        let key = (counted.pool.clone(), counted.fault.clone());
        if let Some(seen) = self.same_faults.get_mut(&key) {
            seen.retain(|instance| *instance != counted.instance);
            if seen.is_empty() {
                self.same_faults.remove(&key);
            }
        }
    }

    /// The operation that deletes this instance was the first to count for its fault.
    pub fn note_counted(&mut self, counted: Counted) {
        let deletes = |operation: &&mut Operation| {
            let of = |instance: &InstanceId| *instance == counted.instance;
            matches!(&operation.call, Call::DeleteInstance(DeleteInstance { instance, .. }) if of(instance))
        };
        let operation = self.operations.values_mut().find(deletes);
        if let Some(operation) = operation.filter(|operation| matches!(operation.phase, Phase::Recording)) {
            operation.counted = Some(counted);
        }
    }

    /// How many instances of the pool were deleted for this fault.
    ///
    /// A deletion of another machine (`but` this one) that was answered as failed a moment ago may yet come to pass and counts: a
    /// fourth machine was deleted for one fault, because the third deletion had been answered with 504.
    pub fn fault_count(&self, now: Time, pool: &PoolName, fault: &str, but: Option<&InstanceId>) -> u32 {
        let key = (pool.clone(), Arc::from(fault));
        let seen = self.same_faults.get(&key).map_or(&[][..], Vec::as_slice);
        let counts = |operation: &&Operation| {
            let counted =
                operation.counted.as_ref().filter(|it| operation.may_come(now) && Some(&it.instance) != but);
            counted.is_some_and(|it| it.pool == *pool && *it.fault == *fault && !seen.contains(&it.instance))
        };
        let doubted = self.doubted.iter().map(|(_, operation)| operation).filter(counts).count();
        (seen.len() + doubted) as u32
    }

    /// Something is counted against the pool.
    pub fn has_faults(&self, pool: &PoolName) -> bool {
        self.same_faults.keys().any(|(of, _)| of == pool)
    }

    /// A machine of the pool joined: what was wrong with its image or quota is over.
    pub fn forgive_faults(&mut self, pool: &PoolName) -> bool {
        let before = self.same_faults.len();
        self.same_faults.retain(|(of, _), _| of != pool);
        before != self.same_faults.len()
    }

    /// Every fault counted, for the ledger's checkpoint.
    pub fn faults(&self) -> impl Iterator<Item = (&PoolName, &Arc<str>, &InstanceId)> {
        self.same_faults.iter().flat_map(|((pool, text), seen)| seen.iter().map(move |id| (pool, text, id)))
    }

    /// Times of destructive intents within the hour, for the ledger's checkpoint.
    pub fn begun(&self) -> impl Iterator<Item = Time> {
        self.begun.iter().map(|begun| begun.at)
    }

    /// Times of those that tidy up.
    pub fn tidied(&self) -> impl Iterator<Item = Time> {
        self.begun.iter().filter(|begun| begun.tidies).map(|begun| begun.at)
    }

    /// Instances that we deleted, for the ledger's checkpoint.
    pub fn deleted(&self) -> impl Iterator<Item = &InstanceId> {
        self.deleted.iter()
    }

    /// These were begun, some of them to tidy up, and these deleted, as a checkpoint says, and no others.
    pub fn set_begun(&mut self, begun: Vec<Time>, mut tidied: Vec<Time>, deleted: Vec<InstanceId>) {
        let mut tidies = |at: Time| {
            let place = tidied.iter().position(|known| *known == at);
            place.map(|place| tidied.remove(place)).is_some()
        };
        let begun = begun.into_iter().map(|at| Begun { at, tidies: tidies(at) });
        (self.begun, self.deleted) = (begun.collect(), deleted.into());
    }
}

/// Counted as a fault of its own: a replacement that did not help. A bad image fails in every zone and in every way.
pub const REPLACEMENT_FAILED: &str = "its replacement did not help";

/// A fault text with what differs from machine to machine taken out (ids, numbers), so that "the same fault" is counted
/// as the same.
pub fn normalise_fault(text: &str) -> Arc<str> {
    let words: Vec<&str> = text
        .split_whitespace()
        .map(|word| if word.bytes().any(|b| b.is_ascii_digit()) { "#" } else { word })
        .collect();
    Arc::from(words.join(" "))
}

#[cfg(test)]
mod tests;
