//! What a join left on this machine: the last inspection, and how often in a row inspections agreed.
//!
//! An inspection that does not end in time is void, and the agent also drops what it knew before: it decides nothing on
//! old facts. The sign that an operator or a controller removes the machine outlives the Node that carried it. It ends
//! when the Node is Ready again without the sign.

use reveille_core::model::time::{Span, Time};

use crate::effect::Effect;
use crate::model::{Credentials, Inspection, Leaving, NodeSeen, Operation, OperationId};
use crate::step_context::StepContext;

/// The time limit of an inspection: a few requests, each with its own deadline.
const INSPECT_WITHIN: Span = Span::from_s(20);

/// The last inspection.
#[derive(Clone, Debug, Default)]
pub(crate) struct Observation {
    operation: Option<Operation>,
    next_at: Option<Time>,
    found: Option<Inspection>,
    /// The number of the inspection that `found` comes from.
    read: OperationId,
    readings: u32,
    absent: u32,
    leaving: Option<Leaving>,
    ready_since: Option<Time>,
}

impl Observation {
    /// Without an inspection yet, but with the remembered sign of removal.
    pub(crate) fn remembering(leaving: Option<Leaving>) -> Self {
        Self { leaving, ..Self::default() }
    }

    pub(crate) const fn found(&self) -> Option<&Inspection> {
        self.found.as_ref()
    }

    /// How often in a row the credentials were found in the same state.
    pub(crate) const fn readings(&self) -> u32 {
        self.readings
    }

    /// How often in a row the Node was found absent although the credentials were accepted.
    pub(crate) const fn absent_in_a_row(&self) -> u32 {
        self.absent
    }

    pub(crate) const fn leaving(&self) -> Option<Leaving> {
        self.leaving
    }

    /// Drops the last inspection and the remembered sign of removal, and makes an inspection due now.
    pub(crate) fn start_over(&mut self) {
        (self.leaving, self.found, self.next_at) = (None, None, None);
    }

    /// Makes an inspection due now, and drops the last one. The remembered sign of removal stays.
    pub(crate) fn look_again(&mut self) {
        (self.found, self.next_at) = (None, None);
    }

    pub(crate) const fn ready_since(&self) -> Option<Time> {
        self.ready_since
    }

    /// An inspection that was asked for after that one has a result.
    pub(crate) fn is_newer_than(&self, asked: OperationId) -> bool {
        self.found.is_some() && self.read > asked
    }

    /// Makes the next inspection due now. Returns the number that its result will be newer than.
    pub(crate) fn want_fresh(&mut self, context: &StepContext<'_>) -> OperationId {
        self.next_at = Some(context.now);
        // An inspection that is already under way was asked for before.
        self.operation.map_or(self.read, |operation| operation.id)
    }

    pub(crate) fn inspected(&mut self, context: &StepContext<'_>, id: OperationId, found: Inspection) {
        if self.operation.is_none_or(|operation| operation.id != id) {
            return;
        }
        (self.operation, self.read) = (None, id);
        let same = self.found.as_ref().is_some_and(|before| before.credentials == found.credentials);
        self.readings = if same { self.readings.saturating_add(1) } else { 1 };
        let unregistered = found.node == NodeSeen::Absent && found.credentials == Credentials::Accepted;
        self.absent = if unregistered { self.absent.saturating_add(1) } else { 0 };
        let ready = found.node == NodeSeen::Ready;
        self.ready_since = if ready { self.ready_since.or(Some(context.now)) } else { None };
        // The Node is Ready again without a sign of removal: the removal was taken back.
        self.leaving = if ready { found.leaving } else { found.leaving.or(self.leaving) };
        self.found = Some(found);
    }

    pub(crate) fn advance(&mut self, context: &mut StepContext<'_>, reaches: bool) {
        if self.operation.is_some_and(|operation| context.is_over(operation)) {
            (self.operation, self.found) = (None, None);
            (self.readings, self.absent, self.ready_since) = (0, 0, None);
        }
        let due = self.next_at.is_none_or(|at| at <= context.now);
        if reaches && self.operation.is_none() && due {
            let operation = context.fly(INSPECT_WITHIN);
            context.out.push(Effect::Inspect(operation.id, INSPECT_WITHIN));
            self.operation = Some(operation);
            self.next_at = Some(context.now + context.settings.inspect_every);
        }
    }

    /// Drops everything except the remembered sign that an operator or a controller removes the machine.
    pub(crate) fn slept(&mut self) {
        *self = Self { leaving: self.leaving, read: self.read, ..Self::default() };
    }

    pub(crate) fn moments(&self, reaches: bool) -> impl Iterator<Item = Time> {
        let waited = self.operation.map(|operation| operation.until);
        let next = self.next_at.filter(|_| reaches && self.operation.is_none());
        waited.into_iter().chain(next)
    }
}
