//! Reads that the engine asked for: which wait, which are out, and for what each was asked.
//!
//! ```text
//!  ask(look, purpose) ─ not asked yet? ─▶ queue ─▶ send ─▶ out ─▶ answered: the read, its purpose, and when it was sent
//!                                           └────▶ take_evidence: of a world that is not trusted any more
//! ```
//!
//! The controller makes a read once for each purpose, however often it is asked for: a thousand faults at once ask for
//! thousands of reads. `asked` holds what waits and what is out, no more and no less. What an answer means, `looks` says.

mod queue;

use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;

use crate::effect::Look;
use crate::model::access::UserRef;
use crate::model::id::{CloudName, InstanceId, IntentId, LookId, NodeName, PoolName};
use crate::model::incident::IncidentKey;
use crate::model::time::Time;

use queue::Queue;
pub(super) use queue::World;

/// The purpose of a read.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum LookFor {
    /// A listing lacks this instance: is it gone?
    Missing(CloudName, InstanceId),
    /// A node names an instance that no listing holds: is there one?
    Namesake(CloudName, InstanceId, NodeName),
    /// A list that lacks this node is doubted: is there one?
    Lost(NodeName),
    /// Who deleted an instance of this pool?
    Deleter(PoolName, InstanceId),
    /// Evidence for a case.
    Evidence(IncidentKey),
    /// Did this intent take effect?
    Verdict(IntentId),
    /// What does this service user hold?
    Access(CloudName, Arc<UserRef>),
    /// The views want to know how it is now.
    Refresh,
}

/// A read that is out.
#[derive(Clone, Debug)]
pub(super) struct Asked {
    pub(super) look: Look,
    pub(super) purpose: LookFor,
    /// When it was sent.
    pub(super) at: Time,
}

/// Every read that is not answered yet.
#[derive(Clone, Debug, Default)]
pub(super) struct Reads {
    queue: Queue,
    out: BTreeMap<LookId, Asked>,
    asked: BTreeSet<(Look, LookFor)>,
    /// The number of the last read.
    last: LookId,
}

impl Reads {
    pub(super) fn ask(&mut self, look: Look, purpose: LookFor) {
        if self.asked.insert((look.clone(), purpose.clone())) {
            self.queue.push(look, purpose);
        }
    }

    /// It waits or is out, for this purpose.
    pub(super) fn is_asked(&self, look: Look, purpose: LookFor) -> bool {
        self.asked.contains(&(look, purpose))
    }

    /// An instance is asked for, because a Node names it: whichever.
    pub(super) fn is_asked_as_namesake(&self, cloud: &CloudName, id: &InstanceId) -> bool {
        let look = Look::Instance(cloud.clone(), id.clone());
        let first = (look.clone(), LookFor::Namesake(cloud.clone(), id.clone(), "".into()));
        let next = self.asked.range(first..).next();
        next.is_some_and(|(asked, purpose)| *asked == look && matches!(purpose, LookFor::Namesake(..)))
    }

    /// The next read that has a place is out from now on.
    pub(super) fn send(&mut self, now: Time) -> Option<(LookId, Look)> {
        let (look, purpose) = self.queue.next()?;
        self.last = self.last.next();
        self.out.insert(self.last, Asked { look: look.clone(), purpose, at: now });
        Some((self.last, look))
    }

    /// It was answered, and may be asked for again. None where nothing of that number is out.
    pub(super) fn answered(&mut self, id: LookId) -> Option<Asked> {
        let Asked { look, purpose, at } = self.out.remove(&id)?;
        self.queue.answered(&look, &purpose);
        let asked = (look, purpose);
        self.asked.remove(&asked);
        let (look, purpose) = asked;
        Some(Asked { look, purpose, at })
    }

    /// Takes out the evidence that waits for a world that is not trusted. It may be asked for again.
    pub(super) fn take_evidence(&mut self, is_trusted: impl Fn(&World) -> bool) -> Vec<(Look, LookFor)> {
        if self.queue.is_empty() {
            return Vec::new();
        }
        let taken = self.queue.take_evidence(is_trusted);
        for asked in &taken {
            self.asked.remove(asked);
        }
        taken
    }

    /// The clock went back: what is out was asked for as long ago as before.
    pub(super) fn move_back(&mut self, moved: impl Fn(Time) -> Time) {
        self.out.values_mut().for_each(|asked| asked.at = moved(asked.at));
    }

    /// Nothing waits, and nothing is out.
    pub(super) fn is_empty(&self) -> bool {
        self.out.is_empty() && self.queue.is_empty()
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::model::incident::{FaultKind, Subject};

    fn node(name: &str) -> Look {
        Look::Node(name.into())
    }

    fn evidence() -> LookFor {
        LookFor::Evidence(IncidentKey { subject: Subject::Cluster, kind: FaultKind::NotReady })
    }

    #[test]
    fn read_is_out_once_for_each_purpose_until_it_is_answered() {
        let mut reads = Reads::default();
        let at = Time::from_ms(1000);
        reads.ask(node("a"), LookFor::Refresh);
        reads.ask(node("a"), LookFor::Refresh);
        reads.ask(node("a"), LookFor::Lost("a".into()));
        let sent: Vec<LookId> = std::iter::from_fn(|| reads.send(at)).map(|(id, _)| id).collect();
        assert_eq!(sent, [LookId(1), LookId(2)]);
        reads.ask(node("a"), LookFor::Refresh);
        assert_eq!(reads.send(at), None, "it is out still");
        let answered = reads.answered(sent[0]).unwrap();
        assert_eq!((answered.look, answered.purpose, answered.at), (node("a"), LookFor::Refresh, at));
        assert!(reads.answered(sent[0]).is_none() && !reads.is_asked(node("a"), LookFor::Refresh));
        reads.ask(node("a"), LookFor::Refresh);
        assert_eq!(reads.send(at), Some((LookId(3), node("a"))));
    }

    #[test]
    fn evidence_that_was_taken_out_may_be_asked_for_again() {
        let mut reads = Reads::default();
        reads.ask(node("a"), evidence());
        reads.ask(node("b"), LookFor::Refresh);
        assert_eq!(reads.take_evidence(|_| true), []);
        assert_eq!(reads.take_evidence(|_| false), [(node("a"), evidence())]);
        assert!(!reads.is_asked(node("a"), evidence()) && !reads.is_empty());
        assert_eq!(reads.send(Time::default()), Some((LookId(1), node("b"))));
        reads.answered(LookId(1)).unwrap();
        assert!(reads.is_empty() && reads.asked.is_empty());
    }
}
