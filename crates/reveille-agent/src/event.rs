//! Everything that can reach an agent: one closed list.
//!
//! Answers carry the number of what they answer. One that carries another number came too late, and is passed over.

use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;

use reveille_core::model::agent::Ask;
use reveille_core::model::id::{NodeName, ZoneName};

use crate::model::{FlightId, Inspection, Machine, Outcome, PeerAnswer, WatchdogSeen};

/// One thing that happened.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Event {
    /// Time passed.
    Tick,
    /// What this machine is; sent at the start and after every change.
    Found(Machine),
    /// Who else is in the cluster, each with its zone, as last read from the API server. It is kept while that is silent.
    PeersListed(BTreeMap<NodeName, Option<ZoneName>>),
    /// The API server was checked, under the pinned CA. Any answer is one, a refusal too.
    ApiChecked {
        /// Which check.
        flight: FlightId,
        /// Why it did not answer, if it did not.
        silent: Option<Arc<str>>,
    },
    /// A peer answered what it was asked about this machine. That it did not is learned from the deadline.
    PeerAnswered {
        /// Which round.
        flight: FlightId,
        /// Who.
        peer: NodeName,
        /// What.
        answer: PeerAnswer,
    },
    /// A peer asks about itself.
    PeerAsked {
        /// Who.
        from: NodeName,
        /// Its number for it, to be echoed.
        ask: FlightId,
    },
    /// The orders that stand in the API, or why they could not be read.
    OrdersRead {
        /// Which reading.
        flight: FlightId,
        /// The machines that are ordered to go down.
        orders: Result<BTreeSet<NodeName>, Arc<str>>,
    },
    /// The node and its credentials were inspected.
    Inspected {
        /// Which inspection.
        flight: FlightId,
        /// What was found.
        found: Inspection,
    },
    /// The watchdog was set, or not. What it is now is read back.
    WatchdogSet {
        /// Which setting.
        flight: FlightId,
        /// How it ended.
        outcome: Outcome,
    },
    /// The watchdog was read back.
    WatchdogRead {
        /// Which reading.
        flight: FlightId,
        /// What it is.
        found: WatchdogSeen,
    },
    /// The memory that was handed over is durable.
    Recorded(FlightId),
    /// An act ended.
    Done {
        /// Which.
        flight: FlightId,
        /// How.
        outcome: Outcome,
    },
    /// Whoever may says that this machine is to be joined. Attempts of before count no more, nor does what was remembered of
    /// its going away; what is there of a join that holds stays as it is.
    Ordered,
    /// Whoever leads the cluster asks for this machine's node: it is looked at now, and what is due is not put off any longer.
    /// It overrides nothing that speaks against it, and what was remembered of going away least of all.
    Asked(Ask),
    /// What this machine is to be has changed, and its join is to hold anew. Attempts of before count no more; what was
    /// remembered of its going away does: whoever writes a plan for many has not this one in mind.
    Planned,
    /// The server lets this machine in: where it said before that the machine was removed, somebody took that back, and the
    /// machine is to be joined.
    Readmitted,
    /// A person, or the agent's own end, says: do nothing to this machine, and disarm.
    Cancelled,
    /// That is taken back.
    Resumed,
}
