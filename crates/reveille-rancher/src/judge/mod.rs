//! What is wrong with a cluster's records: eight predicates over a look, each with its evidence.
//!
//! ```text
//!  Sample ─┐                             ┌─▶ Finding: predicate, certainty, evidence, what to do, what not
//!  Earlier ┴▶ predicates, each by itself ┤
//!                                        └─▶ Comparison: the fields that differ from a healthy sibling
//! ```
//!
//! Two kinds of clusters are kept apart: one that Rancher runs itself (RKE1), where every node registers, and one that it
//! mirrors (imported, local, RKE2, K3s), where `machine-` is what a healthy record is called and nothing follows from it.
//! What rests on time needs an age by the API server's own clock, or two looks by ours. What was not read is not judged.
//!
//! The judge repairs nothing, and sends no request.

mod compare;
mod predicates;
mod words;

#[cfg(test)]
mod tests;

use std::collections::BTreeSet;

use reveille_core::model::id::NodeName;
use reveille_core::model::time::Span;

pub use compare::{Comparison, Difference, compare};
pub use words::Advice;

use crate::model::{Kind, Record, RecordName, Sample};

/// A record without what Rancher's hook writes is left alone for so long: the hook may be on its way.
pub const UNFINISHED_AFTER: Span = Span::from_min(10);
/// A deletion may take so long: its hook waits for an agent for half a minute, and for the API for three quarters.
pub const DELETING_AFTER: Span = Span::from_min(5);

/// What was seen, by its number.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Debug)]
pub enum Predicate {
    /// A mirror record in a cluster whose nodes register.
    Mirror,
    /// A record without an owner: it was neither registered nor made by a pool.
    NoOwner,
    /// A record that never got what a plan is made from.
    NoRkeNode,
    /// Several records of one machine.
    Duplicate,
    /// A Node without a record.
    Orphan,
    /// A deletion that does not end, of a machine that is still there.
    Undeleted,
    /// A record whose Node is not there.
    NoNode,
    /// A record whose parts contradict each other.
    BadRepair,
}

impl Predicate {
    /// All of them.
    pub const ALL: [Self; 8] = [
        Self::Mirror,
        Self::NoOwner,
        Self::NoRkeNode,
        Self::Duplicate,
        Self::Orphan,
        Self::Undeleted,
        Self::NoNode,
        Self::BadRepair,
    ];

    /// `P1` to `P8`.
    pub const fn code(self) -> &'static str {
        match self {
            Self::Mirror => "P1",
            Self::NoOwner => "P2",
            Self::NoRkeNode => "P3",
            Self::Duplicate => "P4",
            Self::Orphan => "P5",
            Self::Undeleted => "P6",
            Self::NoNode => "P7",
            Self::BadRepair => "P8",
        }
    }
}

/// How sure it is.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Debug)]
pub enum Certainty {
    /// There is another explanation; the text names it.
    Medium,
    /// What was read leaves no other.
    High,
}

impl Certainty {
    /// As a word.
    pub const fn word(self) -> &'static str {
        match self {
            Self::Medium => "medium",
            Self::High => "high",
        }
    }
}

/// A field that was read, and what it said.
#[derive(Clone, PartialEq, Eq, PartialOrd, Ord, Debug)]
pub struct Evidence {
    /// Whose: a record, `node w-1`, `cluster`.
    pub of: String,
    /// Which field: `status.rkeNode`.
    pub field: String,
    /// What it said, or `not there`.
    pub value: String,
}

/// One thing that is wrong with a record.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct Finding {
    /// What.
    pub predicate: Predicate,
    /// How sure.
    pub certainty: Certainty,
    /// The records that it is about; none where there is none.
    pub records: BTreeSet<RecordName>,
    /// The Node that it is about.
    pub node: Option<NodeName>,
    /// In words, as a clause.
    pub says: String,
    /// What it rests on.
    pub evidence: Vec<Evidence>,
}

/// A look before, and how long before by our own clock.
#[derive(Clone, Copy)]
pub struct Earlier<'a> {
    /// The look.
    pub sample: &'a Sample,
    /// How long before the newer one it was taken.
    pub before: Span,
}

/// What is wrong, by predicate and then by record; the same for the same looks.
pub fn judge(sample: &Sample, earlier: Option<Earlier<'_>>) -> Vec<Finding> {
    let case = Case { sample, earlier };
    let mut found = Vec::new();
    if let Some(records) = &sample.records
        && !sample.cluster.deleting
    {
        if sample.cluster.kind == Kind::Managed {
            for record in records.values() {
                found.extend(predicates::mirror(&case, record));
                found.extend(predicates::no_owner(&case, record));
                found.extend(predicates::no_rke_node(&case, record));
                found.extend(predicates::no_node(&case, record));
                found.extend(predicates::bad_repair(&case, record));
            }
            found.extend(predicates::orphans(&case));
        }
        found.extend(predicates::duplicates(&case));
        found.extend(records.values().filter_map(|record| predicates::undeleted(&case, record)));
    }
    found.sort_by(|a, b| (a.predicate, &a.records, &a.node).cmp(&(b.predicate, &b.records, &b.node)));
    found
}

/// What the predicates look at.
struct Case<'a> {
    sample: &'a Sample,
    earlier: Option<Earlier<'a>>,
}

impl Case<'_> {
    /// True when `stands` holds of this record now and for at least `least`: by the age that the API server's clock gives,
    /// or by an earlier look of ours, at the same object.
    fn for_long(&self, record: &Record, least: Span, stands: impl Fn(&Record) -> bool) -> bool {
        if !stands(record) {
            return false;
        }
        let since = record.deleting.or(record.created);
        if let (Some(now), Some(since)) = (self.sample.server_now, since)
            && now.since(since) > least
        {
            return true;
        }
        let Some(earlier) = self.earlier.filter(|earlier| earlier.before > least) else { return false };
        let before = earlier.sample.records.as_ref().and_then(|records| records.get(&record.name));
        before.is_some_and(|before| before.uid == record.uid && stands(before))
    }

    /// The Node that a record is about, where Nodes were read.
    fn node_of(&self, record: &Record) -> Option<Option<&crate::model::Node>> {
        let nodes = self.sample.nodes.as_ref()?;
        let named = record.node().and_then(|name| nodes.get(name));
        Some(named.or_else(|| nodes.values().find(|node| record.is_of(node))))
    }
}
