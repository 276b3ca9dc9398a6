//! When people were last done with machines that they had to themselves: by a pause, a lock, or by taking the marks off.
//!
//! Such a machine may boot still, whatever state it is in, and has the time of a boot. The ledger keeps it: a person ends a pause
//! of a machine that serves, reboots it from inside, and we are restarted before its Node is silent.

use std::collections::BTreeMap;
use std::sync::Arc;

use crate::event::PauseScope;
use crate::model::jump::Jump;
use crate::model::time::Time;
use crate::observe::cloud::Seen;

/// What was let go of lately, and when. Machines have a map of their own: a cell that comes back brings ten thousand.
#[derive(Clone, Debug, Default)]
pub struct LetGo {
    machines: BTreeMap<Arc<str>, Time>,
    wider: BTreeMap<PauseScope, Time>,
}

impl LetGo {
    /// What this covers was let go of then.
    pub fn note(&mut self, scope: PauseScope, at: Time) {
        let known = match scope {
            PauseScope::Machine(name) => self.machines.entry(name).or_insert(at),
            scope => self.wider.entry(scope).or_insert(at),
        };
        *known = at.max(*known);
    }

    /// When this machine was let go of last.
    pub fn last(&self, seen: &Seen) -> Option<Time> {
        let by_name = seen.names().filter_map(|name| self.machines.get(name));
        let wider = self.wider.iter().filter(|(scope, _)| scope.covers(seen.pool(), |_| false));
        by_name.chain(wider.map(|(_, at)| at)).max().copied()
    }

    /// Nothing was let go of lately.
    pub fn is_empty(&self) -> bool {
        self.machines.is_empty() && self.wider.is_empty()
    }

    /// All of it.
    pub fn iter(&self) -> impl Iterator<Item = (PauseScope, Time)> {
        let machines = self.machines.iter().map(|(name, at)| (PauseScope::Machine(name.clone()), *at));
        machines.chain(self.wider.iter().map(|(scope, at)| (scope.clone(), *at)))
    }

    /// Keeps what was let go of at such times.
    pub fn retain(&mut self, is_kept: impl Fn(Time) -> bool) {
        self.machines.retain(|_, at| is_kept(*at));
        self.wider.retain(|_, at| is_kept(*at));
    }

    /// Each has as long to go as before.
    pub fn over(&mut self, jump: Jump) {
        let Self { machines, wider } = self;
        jump.counts(machines.values_mut().chain(wider.values_mut()));
    }

    /// The clock went back by an unknown length: nothing was let go of later than now.
    pub fn go_back_to(&mut self, now: Time) {
        self.machines.values_mut().chain(self.wider.values_mut()).for_each(|at| *at = (*at).min(now));
    }
}
