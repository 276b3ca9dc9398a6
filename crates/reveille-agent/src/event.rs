//! Everything that can reach an agent: one closed list.
//!
//! An answer carries the number of its effect. An answer with another number came too late, and the agent ignores it.

use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;

use reveille_core::model::agent::Ask;
use reveille_core::model::id::{NodeName, ZoneName};

use crate::model::{Inspection, Machine, OperationId, Outcome, PeerAnswer, WatchdogSeen};

/// One thing that happened.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Event {
    /// Time passed.
    Tick,
    /// What this machine is; the process sends this event at the start and after every change.
    Found(Machine),
    /// The other Nodes of the cluster, each with its zone, as last read from the API server. The process keeps the list
    /// while the API server is silent.
    PeersListed(BTreeMap<NodeName, Option<ZoneName>>),
    /// The API server was checked, under the pinned CA. Any answer counts as an answer, a refusal too.
    ApiChecked {
        /// The number of the check.
        operation: OperationId,
        /// The reason why the API server did not answer, if it did not.
        silent: Option<Arc<str>>,
    },
    /// A peer answered a question about this machine. The agent learns from the deadline that a peer did not answer.
    PeerAnswered {
        /// The number of the round.
        operation: OperationId,
        /// The peer.
        peer: NodeName,
        /// The answer.
        answer: PeerAnswer,
    },
    /// A peer asks about itself.
    PeerAsked {
        /// The peer.
        from: NodeName,
        /// The peer's number for the question, which the answer repeats.
        ask: OperationId,
    },
    /// The orders in the API, or the reason why they could not be read.
    OrdersRead {
        /// The number of the reading.
        operation: OperationId,
        /// The machines that are ordered to go down.
        orders: Result<BTreeSet<NodeName>, Arc<str>>,
    },
    /// The process inspected the Node and its credentials.
    Inspected {
        /// The number of the inspection.
        operation: OperationId,
        /// What was found.
        found: Inspection,
    },
    /// The process set the watchdog, or failed to. The agent reads its state back afterwards.
    WatchdogSet {
        /// The number of the setting.
        operation: OperationId,
        /// How it ended.
        outcome: Outcome,
    },
    /// The process read the watchdog back.
    WatchdogRead {
        /// The number of the reading.
        operation: OperationId,
        /// The watchdog's state.
        found: WatchdogSeen,
    },
    /// The memory that the agent handed over is durable.
    Recorded(OperationId),
    /// An act ended.
    Done {
        /// The number of the act.
        operation: OperationId,
        /// How.
        outcome: Outcome,
    },
    /// An operator, or the first plan, orders this machine to join. Earlier attempts do not count any more, nor does the
    /// memory that the machine was to be removed. A join that works stays as it is.
    Ordered,
    /// The controller that leads the cluster asks for this machine's Node: the agent inspects it now and does not
    /// postpone what is due. The request overrides no reason against an act, least of all the memory that the machine was
    /// to be removed.
    Asked(Ask),
    /// The plan of this machine has changed, and its join has to hold again. Earlier attempts do not count any more. The
    /// memory that the machine was to be removed still counts: an operator who writes a plan for many machines does not
    /// mean this one.
    Planned,
    /// The server admits this machine. If the server said before that the machine was removed, an operator took that
    /// back, and the machine has to join.
    Readmitted,
    /// An operator, or the shutdown of the agent, says: do nothing to this machine, and disarm the watchdog.
    Cancelled,
    /// The cancellation is taken back.
    Resumed,
}
