//! Traces: how far machines with agents came in their join, and how far the ledger knows it.
//!
//! ```text
//!  an agent's stages ─▶ hear ─┐
//!  clouds and cluster ▶ show ─┴▶ trace changed ─▶ untold ─▶ take_untold ─▶ Record::Traced, where it must not be forgotten
//!                                    └▶ gives way, while its machine has no open incident and is not to go
//! ```
//!
//! The ledger holds a trace while its machine has an open incident, and when its agent says that the machine is to go: a
//! restart must not forget that. The controller seldom records a trace in which only the number of attempts changed, and one that
//! has news again and again (`told_seldom`): an agent that changed its mind with each report wrote five kilobytes each second.
//! Whether a machine has an open incident (`has_open`), the caller says; one whose incidents changed is placed again by the
//! caller.

use std::collections::{BTreeMap, BTreeSet};

use crate::model::agent::{AgentBlockerKind, StageSaid};
use crate::model::incident::MachineKey;
use crate::model::jump::Jump;
use crate::model::stage::Stage;
use crate::model::time::{Span, Time};
use crate::model::trace::Trace;
use crate::record::{AgentTold, Record};

use super::told_seldom::ToldSeldom;

/// The controller keeps this many traces. Among machines without an open incident, it drops the trace that has not changed
/// for the longest time. It keeps the trace of a machine that is to go: a restart must not forget that.
const TRACES_MAX: usize = 512;
/// A trace without news is recorded no more often than this.
const TRACED_AGAIN: Span = Span::from_min(2);

/// A machine's trace, and how far the ledger knows it.
#[derive(Clone, Debug, Default)]
struct Traced {
    trace: Trace,
    /// When it changed last.
    changed: Time,
    /// The ledger lacks something that must not be forgotten.
    news: bool,
    /// When it was recorded last, and differs since.
    recorded: Option<Time>,
    differs: bool,
    /// By which the ledger says that the machine is to go.
    kept_leaving: Option<AgentTold>,
    /// Its agent, and what that holds, as the ledger knows it.
    told: Option<AgentTold>,
    /// Where it stands among those that may give way; none while it may not.
    place: Option<Time>,
}

/// Every trace, with an index of those that may give way.
#[derive(Clone, Debug, Default)]
pub(super) struct Traces {
    of: BTreeMap<MachineKey, Traced>,
    /// Those that may give way, by the time when they changed: the oldest is dropped first. A search for it would walk over all
    /// of them for each machine of an outage, and find none to drop.
    idle: BTreeSet<(Time, MachineKey)>,
    /// Traces of which the ledger may lack something.
    untold: BTreeSet<MachineKey>,
    /// Of which machines the ledger was told often lately.
    told: ToldSeldom,
}

impl Traces {
    pub(super) fn get(&self, machine: &MachineKey) -> Option<&Trace> {
        self.of.get(machine).map(|traced| &traced.trace)
    }

    /// What its agent says of its stages, and what that agent holds.
    pub(super) fn hear(
        &mut self,
        machine: MachineKey,
        stages: &[StageSaid],
        told: AgentTold,
        now: Time,
        has_open: bool,
    ) {
        let traced = self.make(&machine);
        let before = traced.trace.clone();
        let mut news = traced.trace.hears(stages, now);
        let kind = |told: &AgentTold| told.blocker.as_ref().map(|blocker| blocker.kind);
        news |= traced.told.as_ref().map(kind) != Some(kind(&told));
        traced.told = Some(told);
        traced.news |= news;
        if news || traced.trace != before {
            (traced.changed, traced.differs) = (now, true);
        }
        self.place(&machine, has_open);
        self.untold.insert(machine);
    }

    /// How far clouds and cluster show a machine.
    pub(super) fn show(&mut self, machine: &MachineKey, stage: Stage, now: Time, has_open: bool) {
        let traced = self.make(machine);
        if traced.trace.shows(stage, now) {
            (traced.changed, traced.differs, traced.news) = (now, true, true);
            self.untold.insert(machine.clone());
        }
        self.place(machine, has_open);
    }

    fn make(&mut self, machine: &MachineKey) -> &mut Traced {
        let is_full = !self.of.contains_key(machine) && self.of.len() >= TRACES_MAX;
        if is_full && let Some((_, oldest)) = self.idle.pop_first() {
            self.of.remove(&oldest);
            self.told.forget(&oldest);
        }
        self.of.entry(machine.clone()).or_default()
    }

    /// Its incidents are open, and the ledger does not know yet how far it came.
    pub(super) fn tell(&mut self, machine: &MachineKey) {
        if let Some(traced) = self.of.get_mut(machine) {
            traced.news = true;
            self.untold.insert(machine.clone());
            self.place(machine, true);
        }
    }

    /// Sets again whether a trace may be dropped, and in which order.
    pub(super) fn place(&mut self, machine: &MachineKey, has_open: bool) {
        let Some(traced) = self.of.get_mut(machine) else { return };
        let place = (!has_open && !traced.must_stay()).then_some(traced.changed);
        let before = std::mem::replace(&mut traced.place, place);
        if before == place {
            return;
        }
        if let Some(before) = before {
            self.idle.remove(&(before, machine.clone()));
        }
        if let Some(place) = place {
            self.idle.insert((place, machine.clone()));
        }
    }

    pub(super) fn forget(&mut self, machine: &MachineKey) {
        self.told.forget(machine);
        if let Some(place) = self.of.remove(machine).and_then(|traced| traced.place) {
            self.idle.remove(&(place, machine.clone()));
        }
    }

    /// As the ledger tells it. It finds its place with `go_back_to`, when it is known which incidents are open.
    pub(super) fn restore(&mut self, machine: MachineKey, trace: Trace, told: Option<AgentTold>, at: Time) {
        self.forget(&machine);
        let known = Traced { trace, changed: at, recorded: Some(at), told, ..Traced::default() };
        self.of.insert(machine, Traced { kept_leaving: known.leaving().cloned(), ..known });
    }

    /// What a restart must not forget of the traces that changed.
    pub(super) fn take_untold(&mut self, at: Time, has_open: impl Fn(&MachineKey) -> bool) -> Vec<Record> {
        let mut records = Vec::new();
        self.untold.extend(self.told.due(at));
        for machine in std::mem::take(&mut self.untold) {
            self.told.take(&machine);
            let Some(traced) = self.of.get_mut(&machine) else { continue };
            let again = traced.recorded.is_none_or(|last| at.since(last) >= TRACED_AGAIN);
            let due = traced.news || (traced.differs && again);
            // What is taken back is told, too: of a machine that serves the ledger would say for ever that it is to go.
            if !due || !(traced.must_stay() || has_open(&machine)) {
                continue;
            }
            // A person has a machine go, and the process may end a moment later. That it stays after all can wait.
            let is_urgent = traced.leaving().is_some() && traced.kept_leaving.is_none();
            if !self.told.may_tell(&machine, at) && !is_urgent {
                self.told.put_off(&machine, false);
                continue;
            }
            (traced.news, traced.differs, traced.recorded) = (false, false, Some(at));
            traced.kept_leaving = traced.leaving().cloned();
            records.push(traced.record(at, machine.clone()));
            self.place(&machine, has_open(&machine));
        }
        records
    }

    /// What is known of this machine, as if it were told for the first time.
    pub(super) fn record(&self, at: Time, machine: &MachineKey) -> Option<Record> {
        self.of.get(machine).map(|traced| traced.record(at, machine.clone()))
    }

    /// The traces that the ledger keeps: of machines with an open incident, and of those that are to go.
    pub(super) fn checkpoint(&self, has_open: impl Fn(&MachineKey) -> bool) -> impl Iterator<Item = Record> {
        let kept = self.of.iter().filter(move |(machine, traced)| traced.must_stay() || has_open(machine));
        kept.map(|(machine, traced)| traced.record(traced.changed, machine.clone()))
    }

    /// Its times go over a jump.
    pub(super) fn over(&mut self, jump: Jump) {
        self.of.values_mut().for_each(|traced| traced.over(jump));
        let places = self.of.iter().filter_map(|(machine, traced)| Some((traced.place?, machine.clone())));
        self.idle = places.collect();
    }

    /// The clock went back.
    pub(super) fn go_back_to(&mut self, now: Time, has_open: impl Fn(&MachineKey) -> bool) {
        self.of.values_mut().for_each(|traced| traced.go_back_to(now));
        let machines: Vec<MachineKey> = self.of.keys().cloned().collect();
        machines.iter().for_each(|machine| self.place(machine, has_open(machine)));
    }

    /// How many may give way by a walk over all, and how many are kept as such, where the two differ.
    pub(super) fn miscounted(&self, has_open: impl Fn(&MachineKey) -> bool) -> Option<(usize, usize)> {
        let gives_way =
            |(machine, traced): &(&MachineKey, &Traced)| !traced.must_stay() && !has_open(machine);
        let idle =
            self.of.iter().filter(gives_way).map(|(machine, traced)| (traced.changed, machine.clone()));
        let idle: BTreeSet<_> = idle.collect();
        (idle != self.idle).then_some((idle.len(), self.idle.len()))
    }
}

impl Traced {
    /// Until it is told that the machine stays after all, a ledger that is written again holds that it is to go, too.
    fn record(&self, at: Time, machine: MachineKey) -> Record {
        let told = self.leaving().or(self.kept_leaving.as_ref()).or(self.told.as_ref()).cloned();
        Record::Traced { at, machine, trace: self.trace.clone(), told }
    }

    fn over(&mut self, jump: Jump) {
        let Self { trace, changed, recorded, place, news: _, differs: _, kept_leaving: _, told: _ } = self;
        trace.over(jump);
        jump.stands([changed]);
        jump.stands(recorded.iter_mut().chain(place));
    }

    fn go_back_to(&mut self, now: Time) {
        self.trace.go_back_to(now);
        self.changed = self.changed.min(now);
        self.recorded = self.recorded.map(|at| at.min(now));
    }

    /// Its agent said that it is to go, and has not taken it back.
    fn leaving(&self) -> Option<&AgentTold> {
        let is_to_go = |told: &&AgentTold| {
            told.blocker.as_ref().is_some_and(|blocker| blocker.kind == AgentBlockerKind::Leaving)
        };
        self.told.as_ref().filter(is_to_go)
    }

    /// It does not give way: the machine is to go, or the ledger says so still.
    fn must_stay(&self) -> bool {
        self.leaving().is_some() || self.kept_leaving.is_some()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn machine(number: usize) -> MachineKey {
        MachineKey::Node(format!("n{number:03}").as_str().into())
    }

    fn at(s: usize) -> Time {
        Time::from_ms(s as i64 * 1000)
    }

    fn told() -> AgentTold {
        AgentTold { agent: "a".into(), blocker: None }
    }

    #[test]
    fn oldest_trace_without_an_incident_gives_way() {
        let mut traces = Traces::default();
        for number in 0..TRACES_MAX {
            traces.hear(machine(number), &[], told(), at(number), number == 0);
        }
        traces.hear(machine(900), &[], told(), at(900), false);
        let known = [0, 1, 2, 900].map(|number| traces.get(&machine(number)).is_some());
        assert_eq!(known, [true, false, true, true], "the first has an incident");
        assert_eq!(traces.miscounted(|key| *key == machine(0)), None);
        traces.place(&machine(0), false);
        assert_eq!(traces.miscounted(|_| false), None);
    }

    #[test]
    fn index_of_those_that_give_way_goes_with_the_clock() {
        let mut traces = Traces::default();
        traces.hear(machine(1), &[], told(), at(100), false);
        traces.hear(machine(2), &[], told(), at(50), true);
        traces.over(Jump::Back { by: Span::from_s(30) });
        assert_eq!(traces.miscounted(|key| *key == machine(2)), None);
        traces.go_back_to(at(10), |_| false);
        assert_eq!(traces.miscounted(|_| false), None);
        assert_eq!(traces.idle.len(), 2);
        traces.forget(&machine(1));
        assert_eq!(traces.miscounted(|_| false), None);
    }

    #[test]
    fn trace_is_recorded_while_its_machine_has_an_incident() {
        let mut traces = Traces::default();
        traces.hear(machine(1), &[], told(), at(0), false);
        assert_eq!(traces.take_untold(at(0), |_| false), []);
        traces.tell(&machine(1));
        assert_eq!(traces.take_untold(at(1), |_| true).len(), 1);
        traces.hear(machine(1), &[], told(), at(2), true);
        assert_eq!(traces.take_untold(at(2), |_| true), [], "nothing differs");
    }
}
