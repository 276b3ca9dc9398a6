//! How the registry ends joins and keeps their silences: each change of a [`JoinFlow`] is a record.

use reveille_core::model::time::{Span, Time};

use super::flow::{JoinEnd, JoinFlow, JoinOver};
use super::ids::MachineId;
use super::machine::Machine;
use super::record::Record;
use super::trace::Report;
use super::{Registry, Turn, What};

/// The code with which an agent says that it will not try again on its own.
const GAVE_UP: &str = "GAVE_UP";

impl Registry {
    /// Ends the join of this machine, if one is under way: records the end, and reports it once.
    pub(super) fn end_join(&mut self, turn: &mut Turn, machine: &MachineId, end: JoinEnd) {
        let Some(known) = self.index.machine(machine) else { return };
        let Some(flow) = known.flow.clone() else { return };
        let distribution = self.plans.of(known).map(|template| template.distribution);
        let (known, pool) = (known.clone(), known.pool.to_string());
        self.record(turn, Record::JoinOver { at: turn.now, machine: machine.clone(), end });
        let over = JoinOver { flow: *flow, ended: turn.now, end, pool, distribution };
        turn.tell(&known, What::JoinOver(Box::new(over)));
    }

    /// The end of the join, if the agent does nothing more on its own after this report.
    pub(super) fn ends_by(report: &Report) -> Option<JoinEnd> {
        report.error.as_ref().filter(|error| error.code.as_str() == GAVE_UP).map(|_| JoinEnd::GaveUp)
    }

    /// Ends joins that did not end in time.
    pub(super) fn end_late_joins(&mut self, turn: &mut Turn) {
        let within: Span = self.settings.join_within;
        let late = |flow: &JoinFlow| turn.now.since(flow.began + flow.set_by) >= within;
        let machines = self.index.machines();
        let late: Vec<MachineId> = machines
            .filter(|known| known.flow.as_deref().is_some_and(late))
            .map(|known| known.id.clone())
            .collect();
        for machine in late {
            self.end_join(turn, &machine, JoinEnd::TimedOut);
        }
    }

    /// The clock was set: each join keeps its remaining time.
    pub(super) fn joins_clock_set(&mut self, turn: &mut Turn, by: Span) {
        let set = |known: &Machine| {
            let mut flow = known.flow.clone()?;
            flow.set_by = flow.set_by + by;
            Some(Record::Joining { machine: known.id.clone(), flow })
        };
        let joining: Vec<Record> = self.index.machines().filter_map(set).collect();
        joining.into_iter().for_each(|joining| self.record(turn, joining));
    }

    /// The machine is silent while it joins.
    pub(super) fn note_silence(&mut self, turn: &mut Turn, machine: &MachineId, since: Time) {
        let joins = self.index.machine(machine).and_then(|known| known.flow.as_deref());
        if joins.is_some_and(|flow| !flow.is_silent()) {
            let (at, machine) = (turn.now, machine.clone());
            self.record(turn, Record::FellSilent { at, machine, since });
        }
    }

    /// The machine was heard again.
    pub(super) fn note_heard(&mut self, turn: &mut Turn, machine: &MachineId) {
        let joins = self.index.machine(machine).and_then(|known| known.flow.as_deref());
        if joins.is_some_and(JoinFlow::is_silent) {
            let (at, machine) = (turn.now, machine.clone());
            self.record(turn, Record::HeardAgain { at, machine });
        }
    }
}
