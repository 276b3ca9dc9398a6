//! A drive with words for what scenarios say, and one end that every scenario shares: no invariant broken, no harm done.

use reveille_core::decide;
use reveille_core::effect::Call;
use reveille_core::model::id::{InstanceId, PoolName};
use reveille_core::model::incident::{FaultKind, IncidentKey, MachineKey, Subject};
use reveille_core::model::time::Span;
use reveille_core::plan::context::Case;
use reveille_core::record::{Record, Verdict};
use reveille_sim::drive::Drive;
use reveille_sim::world::fault::Fault;
use reveille_sim::world::layout::{CLOUD, Layout};
use reveille_sim::world::{Called, MachineTruth};

pub struct Field(pub Drive);

pub const fn min(minutes: i64) -> Span {
    Span::from_min(minutes)
}

pub const fn s(seconds: i64) -> Span {
    Span::from_s(seconds)
}

impl Field {
    /// A fleet that has been watched for two minutes: every source trusted, every machine known.
    pub fn new(layout: Layout) -> Self {
        let mut field = Self(Drive::new(&layout).judged());
        field.run(min(2));
        field
    }

    pub fn run(&mut self, span: Span) {
        self.0.run_for(span);
    }

    pub fn fault(&mut self, fault: Fault) {
        self.0.fault(fault);
    }

    pub fn fault_in(&mut self, after: Span, fault: Fault) {
        self.0.fault_in(after, fault);
    }

    /// Ids of the roster's machines in order of name.
    pub fn machines(&self) -> Vec<InstanceId> {
        let mut ours: Vec<MachineTruth> =
            self.0.world.machines().into_iter().filter(|machine| machine.pool.is_some()).collect();
        ours.sort_by(|a, b| a.name.cmp(&b.name));
        ours.into_iter().map(|machine| machine.id).collect()
    }

    pub fn machine(&self, index: usize) -> InstanceId {
        self.machines()[index].clone()
    }

    /// The machine of a pool that was not there before.
    pub fn newcomer(&self, before: &[InstanceId]) -> Option<InstanceId> {
        self.machines().into_iter().find(|id| !before.contains(id))
    }

    pub fn exists(&self, id: &InstanceId) -> bool {
        self.0.world.machines().iter().any(|machine| machine.id == *id)
    }

    pub fn well(&self, id: &InstanceId) -> bool {
        self.0.world.machines().iter().any(|machine| machine.id == *id && machine.well)
    }

    pub fn case(&self, id: &InstanceId, kind: FaultKind) -> Option<&Case> {
        let subject = Subject::Machine(MachineKey::Instance(CLOUD.into(), id.clone()));
        self.0.state().context().cases.get(&IncidentKey { subject, kind })
    }

    /// Open cases, each as "kind of label".
    pub fn open(&self) -> Vec<String> {
        let cases = self.0.state().context().cases;
        cases.values().map(|case| format!("{} of {}", case.incident.key.kind, case.incident.label)).collect()
    }

    /// Why nothing is done about a case, in the tool's own words.
    pub fn held(&self, id: &InstanceId, kind: FaultKind) -> String {
        let case = self.case(id, kind).unwrap_or_else(|| panic!("no {kind} of {id}: {:?}", self.open()));
        let decision = decide::decide(&self.0.state().context(), case);
        let lines = decision.held.iter().flat_map(|(_, blockers)| blockers).map(ToString::to_string);
        lines.collect::<Vec<_>>().join("\n")
    }

    /// What is next for a case, in the debugger's words.
    pub fn next(&self, id: &InstanceId, kind: FaultKind) -> String {
        let case = self.case(id, kind).unwrap_or_else(|| panic!("no {kind} of {id}: {:?}", self.open()));
        format!("{:?}", decide::decide(&self.0.state().context(), case).next)
    }

    pub fn calls(&self) -> &[Called] {
        self.0.world.calls()
    }

    pub fn count(&self, is: impl Fn(&Call) -> bool) -> usize {
        self.calls().iter().filter(|called| is(&called.call)).count()
    }

    pub fn deletes(&self) -> usize {
        self.count(|call| matches!(call, Call::DeleteInstance(_)))
    }

    pub fn reboots(&self) -> usize {
        self.count(|call| matches!(call, Call::Reboot(_)))
    }

    pub fn destructive(&self) -> usize {
        self.count(Call::is_destructive)
    }

    pub fn verdicts(&self, kind: FaultKind) -> Vec<Verdict> {
        let of_kind = self.0.state().closed().filter(|closed| closed.incident.key.kind == kind);
        of_kind.map(|closed| closed.verdict).collect()
    }

    pub fn recorded(&self, is: impl Fn(&Record) -> bool) -> usize {
        self.0.records().iter().filter(|record| is(record)).count()
    }

    /// No invariant broken and no harm done, or the end of the log.
    #[track_caller]
    pub fn clean(&self) {
        assert!(
            self.0.violations().is_empty() && self.0.world.harms().is_empty() && self.0.fouls().is_empty(),
            "{:?}\n{:?}\n{:?}\n{}",
            self.0.fouls(),
            self.0.violations(),
            self.0.world.harms(),
            self.0.log().tail(80)
        );
    }

    /// Clean, every machine well in truth, and no case open.
    #[track_caller]
    pub fn ends_well(&self) {
        self.clean();
        assert!(self.0.world.all_is_well(), "not all is well\n{}", self.0.log().tail(80));
        assert_eq!(self.open(), Vec::<String>::new(), "{}", self.0.log().tail(80));
    }

    pub fn tail(&self) -> String {
        self.0.log().tail(80)
    }
}

pub fn workers() -> PoolName {
    "workers".into()
}
