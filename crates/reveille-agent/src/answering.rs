//! Answers to peers: an agent that has lost the API server asks this machine whether this machine reaches it.
//!
//! The agent reads the orders again for each batch of questions; a peer that asks during the read waits with the others.
//! So a thousand peers cost one read. A machine that cannot read the orders answers "lost it too", never "no order".

use std::collections::BTreeSet;

use reveille_core::model::id::NodeName;
use reveille_core::model::time::Time;

use crate::effect::Effect;
use crate::model::{Operation, OperationId, PeerAnswer};
use crate::step_context::StepContext;

/// At most this many peers wait for an answer; the agent does not answer the others.
const WAITING_MAX: usize = 64;

/// Peers that wait for an answer.
#[derive(Clone, Debug, Default)]
pub(crate) struct Answering {
    operation: Option<Operation>,
    waiting: Vec<(NodeName, OperationId)>,
}

impl Answering {
    pub(crate) fn asked(&mut self, context: &mut StepContext<'_>, from: NodeName, ask: OperationId) {
        // A peer that asks twice waits once, for the answer to its newer question.
        self.waiting.retain(|(peer, _)| *peer != from);
        if self.waiting.len() == WAITING_MAX {
            return;
        }
        self.waiting.push((from, ask));
        if self.operation.is_none() {
            let operation = context.fly(context.settings.api_timeout);
            context.out.push(Effect::ReadOrders(operation.id, context.settings.api_timeout));
            self.operation = Some(operation);
        }
    }

    pub(crate) fn read(
        &mut self,
        context: &mut StepContext<'_>,
        operation: OperationId,
        orders: Option<&BTreeSet<NodeName>>,
    ) {
        if self.operation.is_none_or(|known| known.id != operation) {
            return;
        }
        self.operation = None;
        for (to, ask) in std::mem::take(&mut self.waiting) {
            let answer = match orders {
                None => PeerAnswer::LostToo,
                Some(orders) if orders.contains(&to) => PeerAnswer::Order,
                Some(_) => PeerAnswer::NoOrder,
            };
            context.out.push(Effect::AnswerPeer { to, ask, answer });
        }
    }

    pub(crate) fn advance(&mut self, context: &mut StepContext<'_>) {
        if let Some(operation) = self.operation.filter(|operation| context.is_over(*operation)) {
            self.read(context, operation.id, None);
        }
    }

    /// After a sleep no peer waits any more.
    pub(crate) fn slept(&mut self) {
        *self = Self::default();
    }

    pub(crate) fn moments(&self) -> impl Iterator<Item = Time> {
        self.operation.map(|operation| operation.until).into_iter()
    }
}
