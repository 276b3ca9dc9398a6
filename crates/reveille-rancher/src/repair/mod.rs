//! Two escalations that repair a record: out and in again (*evict*), or in place (*mend*).
//!
//! ```text
//!          Looked(Observation)       Recorded              Done(outcome)
//!  begin ─▶ decide ─▶ Record(intent) ─▶ Do(act) ─▶ … ─▶ Record(outcome) ─▶ Look ─▶ decide …
//!             └ wait, stop, close
//! ```
//!
//! [`Escalation::step`] is a function: `(state, now, event) → effects`. What is decided follows from a fresh look and from the
//! journal of what was begun, never from what an earlier call answered; so an answer that was lost, came twice, or belonged to
//! a process that is gone changes nothing: the next look tells. An intent is durable before it is carried out, and its
//! outcome after.
//!
//! The order is the whole safety of it: etcd member before Node, Node before record, and never the other way round, for
//! deleting the record of a Node that exists makes Rancher's syncer mirror it at once. *Gone* is what two looks half a
//! minute apart ([`Pace`]) agree on. A surprise stops it, and a person goes on. [`invariant_checker`] holds these rules
//! against every step, from a record of its own.
//!
//! Not here: files and the clock. `executor` makes the calls. The repair does not clean or register a
//! machine: it tells a person to do that.

pub mod aftermath;
mod draft;
mod escalation;
pub mod etcd;
mod evict;
pub mod executor;
pub mod invariant_checker;
mod journal;
mod mend;
pub mod observation;
pub mod safeguard;
mod safeguards;
mod volumes;
mod words;

use std::collections::BTreeSet;

use reveille_core::model::time::{Span, Time};
use serde::{Deserialize, Serialize};

pub use draft::Draft;
pub use escalation::Escalation;
pub use safeguards::{HAND_OVER, Proposal, propose};

use crate::model::{ClusterId, RecordName, Role};
use observation::{Observation, PodRef};

/// Between two looks while something is waited for, at most.
pub const LOOK_EVERY: Span = Span::from_s(10);
/// The whole of a repair.
pub const WITHIN: Span = Span::from_min(60);

/// How long a repair waits.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Pace {
    /// Two looks that agree are so far apart. Rancher's syncer answers a change within a second or two.
    pub apart: Span,
    /// A record that was edited gets its plan within this time, and the cluster is quiet again; else the edit is taken back.
    pub plan_within: Span,
}

impl Default for Pace {
    fn default() -> Self {
        // Rancher's controllers plan a host within seconds; an update of the cluster that follows takes minutes.
        Self { apart: Span::from_s(30), plan_within: Span::from_min(10) }
    }
}

impl Pace {
    /// Between two looks while something is waited for: often enough that the wait for a second look is not twice as long.
    pub(crate) fn look_every(self) -> Span {
        Span::from_ms(self.apart.ms / 3).min(LOOK_EVERY)
    }
}

/// Which way.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum Path {
    /// Out, and in again by its own registration.
    Evict,
    /// In place, by one edit; where it cannot be taken out.
    Mend,
}

/// What a person ordered.
#[derive(Clone, PartialEq, Eq, Debug, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct Order {
    /// The cluster.
    pub cluster: ClusterId,
    /// The name of the Node.
    pub node: String,
    /// Which way.
    pub path: Path,
    /// Data that lives on the machine alone may be lost.
    pub local_data: bool,
}

/// A change of the world: the whole list.
#[derive(Clone, PartialEq, Eq, Debug, Serialize, Deserialize)]
#[serde(rename_all = "camelCase", rename_all_fields = "camelCase", tag = "act")]
pub enum Act {
    /// Keep copies of the records, without secrets, for people.
    Save {
        /// Which.
        records: Vec<RecordName>,
    },
    /// Keep new pods off the Node.
    Cordon {
        /// Whose uid it has.
        uid: String,
    },
    /// Ask pods to go elsewhere; a disruption budget may refuse.
    Evict {
        /// Which.
        pods: Vec<PodRef>,
    },
    /// Take the member out of etcd.
    RemoveMember {
        /// Its id.
        id: String,
    },
    /// Delete the Node, if it still has this uid.
    DeleteNode {
        /// The uid.
        uid: String,
    },
    /// Delete a record, if it still has this uid. The clients that set its finalizers remove them.
    DeleteRecord {
        /// Which.
        record: RecordName,
        /// The uid.
        uid: String,
    },
    /// One PUT with `customConfig` and `rkeNode` together, if the record still has this revision.
    Write {
        /// Which.
        record: RecordName,
        /// The uid.
        uid: String,
        /// The revision.
        revision: String,
        /// What is written.
        draft: Draft,
    },
    /// One PUT that takes both out again, if they are still ours and the record still has this revision.
    PutBack {
        /// Which.
        record: RecordName,
        /// The uid.
        uid: String,
        /// The revision.
        revision: String,
        /// What was written.
        draft: Draft,
    },
}

/// What an act is, without its object.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Debug)]
#[allow(missing_docs, reason = "each is explained at Act")]
pub enum ActKind {
    Save,
    Cordon,
    Evict,
    RemoveMember,
    DeleteNode,
    DeleteRecord,
    Write,
    PutBack,
}

impl Act {
    /// What it is.
    pub const fn kind(&self) -> ActKind {
        match self {
            Self::Save { .. } => ActKind::Save,
            Self::Cordon { .. } => ActKind::Cordon,
            Self::Evict { .. } => ActKind::Evict,
            Self::RemoveMember { .. } => ActKind::RemoveMember,
            Self::DeleteNode { .. } => ActKind::DeleteNode,
            Self::DeleteRecord { .. } => ActKind::DeleteRecord,
            Self::Write { .. } => ActKind::Write,
            Self::PutBack { .. } => ActKind::PutBack,
        }
    }

    /// In words.
    pub fn words(&self) -> String {
        match self {
            Self::Save { records } => format!("keep copies of {} record(s)", records.len()),
            Self::Cordon { .. } => "cordon the Node".to_owned(),
            Self::Evict { pods } => format!("evict {} pod(s)", pods.len()),
            Self::RemoveMember { id } => format!("remove the etcd member {id}"),
            Self::DeleteNode { uid } => format!("delete the Node (uid {uid})"),
            Self::DeleteRecord { record, .. } => format!("delete the record {record}"),
            Self::Write { record, .. } => format!("write customConfig and rkeNode of {record} in one PUT"),
            Self::PutBack { record, .. } => format!("take customConfig and rkeNode of {record} out again"),
        }
    }
}

/// How an act ended, as far as can be told.
#[derive(Clone, PartialEq, Eq, Debug, Serialize, Deserialize)]
#[serde(rename_all = "camelCase", tag = "ended")]
pub enum Outcome {
    /// It was taken. Whether it holds, the next look tells.
    Accepted,
    /// It was so already.
    AlreadySo,
    /// The object is another one by now, or was written meanwhile; nothing was changed.
    Moved,
    /// It was refused, and will be again.
    Refused {
        /// Why.
        why: String,
    },
    /// It did not happen, and may next time.
    Failed {
        /// Why.
        why: String,
    },
    /// It may have happened.
    Unknown {
        /// Why that cannot be told.
        why: String,
    },
}

/// How it is over.
#[derive(Clone, PartialEq, Eq, Debug, Serialize, Deserialize)]
#[serde(rename_all = "camelCase", tag = "closed")]
pub enum Closing {
    /// Node and records are gone: a person cleans the machine and registers it again.
    HandedOver,
    /// The record is whole, and its plan came.
    Mended,
    /// It went wrong, and is as it was.
    PutBack,
    /// A person gave it up.
    Abandoned,
}

/// A line of the journal.
#[derive(Clone, PartialEq, Eq, Debug, Serialize, Deserialize)]
#[serde(rename_all = "camelCase", rename_all_fields = "camelCase", tag = "line")]
pub enum Line {
    /// What it is about, before anything is changed.
    Begun {
        /// When, by our clock.
        at_ms: i64,
        /// What was ordered.
        order: Order,
        /// The Node's uid.
        node_uid: String,
        /// The Node's addresses within the cluster.
        ips: BTreeSet<String>,
        /// Its roles.
        roles: BTreeSet<Role>,
    },
    /// Something is about to be done.
    Intent {
        /// Its number, from 1.
        number: u32,
        /// When, by our clock.
        at_ms: i64,
        /// What.
        what: Act,
    },
    /// How it ended.
    Ended {
        /// Of which intent.
        number: u32,
        /// How.
        outcome: Outcome,
    },
    /// It is over.
    Closed {
        /// How.
        how: Closing,
    },
}

/// What can come in.
#[derive(Clone, PartialEq, Eq, Debug)]
pub enum Event {
    /// What a look saw.
    Looked {
        /// Which look.
        look: u32,
        /// What it saw, or why it saw nothing.
        seen: Box<Result<Observation, String>>,
    },
    /// A line is durable.
    Recorded {
        /// Which, counted from 1 over the journal's life.
        line: u32,
    },
    /// An act ended.
    Done {
        /// The number of its intent.
        number: u32,
        /// How.
        outcome: Outcome,
    },
    /// Time went by.
    Tick,
}

/// What goes out.
#[derive(Clone, PartialEq, Eq, Debug)]
pub enum Effect {
    /// Look at everything afresh, past every cache.
    Look {
        /// Which look.
        look: u32,
    },
    /// Make a line durable, then say so.
    Record {
        /// Which, counted from 1.
        line: u32,
        /// The line.
        what: Line,
    },
    /// Carry it out, once, then say how it ended.
    Do {
        /// The number of its intent.
        number: u32,
        /// What.
        act: Act,
    },
    /// Say `Tick` at this moment, if nothing else comes before.
    WakeAt(Time),
    /// For people.
    Tell(String),
    /// Nothing more comes.
    End(End),
}

/// Why nothing more comes.
#[derive(Clone, PartialEq, Eq, Debug)]
pub enum End {
    /// It is over.
    Closed(Closing),
    /// It stops here; asked again it looks, and goes on from what it finds.
    Stopped {
        /// Why.
        why: String,
        /// Whether anything was changed.
        changed: bool,
    },
}
