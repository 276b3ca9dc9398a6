//! Reads that wait to be sent: each world (Kubernetes, or one cloud) has places of its own, and urgent reads go first.
//!
//! ```text
//!  ask ─▶ its world's line ─┬▶ verdicts ──────┐
//!                           ├▶ what is doubted ├▶ places of this world ─▶ sent
//!                           └▶ evidence ───────┘
//! ```
//!
//! A cloud whose consoles hang delays only its own reads. Suppose that a hundred reads time out after a minute each,
//! sixteen at a time for all worlds: a verdict in another cloud would then wait for ten minutes. Within one world, evidence
//! leaves some places to the other reads, and they leave some to evidence. So neither kind ever waits until all reads of
//! the other kind end.
//!
//! The queue drops no read for being late. Its owner takes out the evidence of a world whose data is not trusted any more
//! ([`Queue::take_evidence`]). The engine decides nothing on that evidence, and asks for it again when it decides.

use std::collections::{BTreeMap, VecDeque};

use crate::effect::Look;
use crate::model::id::CloudName;

use super::LookFor;

/// So many reads of one world are out at once; the rest waits in line.
const AT_ONCE: u8 = 16;
/// Of these, evidence takes at most so many, and all other reads together as well.
const OF_A_KIND: u8 = 12;

/// Which API answers a read.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(in crate::engine) enum World {
    Cluster,
    Cloud(CloudName),
}

/// How urgent a read is, the most urgent first.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
enum Rank {
    /// A call was made: its place in the budget is taken until it is known what came of it.
    Verdict,
    /// What may be gone, and what else the views want to know.
    Doubt,
    /// What is read before anything is done: there may be very much of it.
    Evidence,
}

/// The reads that wait, and how many are out.
#[derive(Clone, Debug, Default)]
pub(super) struct Queue(BTreeMap<World, Line>);

#[derive(Clone, Debug, Default)]
struct Line {
    waiting: BTreeMap<Rank, VecDeque<(Look, LookFor)>>,
    evidence_out: u8,
    others_out: u8,
}

impl World {
    pub(in crate::engine) fn of(look: &Look) -> Self {
        look.cloud().cloned().map_or(Self::Cluster, Self::Cloud)
    }
}

impl Rank {
    const fn of(purpose: &LookFor) -> Self {
        match purpose {
            LookFor::Verdict(_) => Self::Verdict,
            LookFor::Evidence(_) => Self::Evidence,
            LookFor::Missing(..)
            | LookFor::Namesake(..)
            | LookFor::Lost(_)
            | LookFor::Deleter(..)
            | LookFor::Access(..)
            | LookFor::Refresh => Self::Doubt,
        }
    }
}

impl Line {
    const fn out(&mut self, rank: Rank) -> &mut u8 {
        match rank {
            Rank::Evidence => &mut self.evidence_out,
            Rank::Verdict | Rank::Doubt => &mut self.others_out,
        }
    }

    fn next(&mut self) -> Option<(Look, LookFor)> {
        if self.evidence_out + self.others_out >= AT_ONCE {
            return None;
        }
        for rank in [Rank::Verdict, Rank::Doubt, Rank::Evidence] {
            if *self.out(rank) < OF_A_KIND
                && let Some(next) = self.waiting.get_mut(&rank).and_then(VecDeque::pop_front)
            {
                *self.out(rank) += 1;
                return Some(next);
            }
        }
        None
    }

    fn is_over(&self) -> bool {
        self.evidence_out + self.others_out == 0 && self.waiting.values().all(VecDeque::is_empty)
    }
}

impl Queue {
    pub(super) fn push(&mut self, look: Look, purpose: LookFor) {
        let line = self.0.entry(World::of(&look)).or_default();
        line.waiting.entry(Rank::of(&purpose)).or_default().push_back((look, purpose));
    }

    /// The next read that has a place.
    pub(super) fn next(&mut self) -> Option<(Look, LookFor)> {
        self.0.values_mut().find_map(Line::next)
    }

    /// It was answered: its place is free.
    pub(super) fn answered(&mut self, look: &Look, purpose: &LookFor) {
        let world = World::of(look);
        let Some(line) = self.0.get_mut(&world) else { return };
        let out = line.out(Rank::of(purpose));
        *out = out.saturating_sub(1);
        if line.is_over() {
            self.0.remove(&world);
        }
    }

    /// Nothing waits.
    pub(super) fn is_empty(&self) -> bool {
        self.0.values().all(|line| line.waiting.values().all(VecDeque::is_empty))
    }

    /// Takes out the evidence that waits for a world that is not believed.
    pub(super) fn take_evidence(&mut self, is_believed: impl Fn(&World) -> bool) -> Vec<(Look, LookFor)> {
        let lines = self.0.iter_mut().filter(|(world, _)| !is_believed(world));
        lines.filter_map(|(_, line)| line.waiting.remove(&Rank::Evidence)).flatten().collect()
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::model::id::IntentId;
    use crate::model::incident::{FaultKind, IncidentKey, Subject};

    fn read(cloud: &str, number: usize) -> Look {
        Look::Instance(cloud.into(), format!("i{number}").as_str().into())
    }

    fn evidence() -> LookFor {
        let subject = Subject::Group("a".into(), "g".into());
        LookFor::Evidence(IncidentKey { subject, kind: FaultKind::NotReady })
    }

    fn send_all(queue: &mut Queue) -> Vec<(Look, LookFor)> {
        std::iter::from_fn(|| queue.next()).collect()
    }

    #[test]
    fn verdict_reads_go_first_and_worlds_do_not_block_each_other() {
        let mut queue = Queue::default();
        (0..100).for_each(|number| queue.push(read("a", number), evidence()));
        let sent = send_all(&mut queue);
        assert_eq!(sent.len(), usize::from(OF_A_KIND));
        queue.push(read("b", 0), evidence());
        queue.push(read("a", 1), LookFor::Refresh);
        queue.push(read("a", 2), LookFor::Verdict(IntentId(1)));
        let urgent: Vec<Look> = send_all(&mut queue).into_iter().map(|(look, _)| look).collect();
        assert_eq!(urgent, [read("a", 2), read("a", 1), read("b", 0)]);
    }

    #[test]
    fn evidence_does_not_wait_for_the_end_of_all_else() {
        let mut queue = Queue::default();
        (0..100).for_each(|number| queue.push(read("a", number), LookFor::Refresh));
        assert_eq!(send_all(&mut queue).len(), usize::from(OF_A_KIND));
        (0..100).for_each(|number| queue.push(read("a", number), evidence()));
        assert_eq!(send_all(&mut queue).len(), usize::from(AT_ONCE - OF_A_KIND));
        queue.answered(&read("a", 0), &evidence());
        let next = send_all(&mut queue);
        assert!(matches!(next[..], [(_, LookFor::Evidence(_))]), "{next:?}");
    }

    #[test]
    fn each_read_is_sent_once_and_leaves_nothing_behind() {
        let mut queue = Queue::default();
        for number in 0..40 {
            queue.push(read("a", number), if number % 2 == 0 { evidence() } else { LookFor::Refresh });
        }
        let mut sent = Vec::new();
        while let Some((look, purpose)) = queue.next() {
            queue.answered(&look, &purpose);
            sent.push(look);
        }
        sent.sort();
        let mut all: Vec<Look> = (0..40).map(|number| read("a", number)).collect();
        all.sort();
        assert_eq!(sent, all);
        assert!(queue.is_empty() && queue.0.is_empty());
    }

    #[test]
    fn only_evidence_of_a_world_that_is_not_believed_is_taken_out() {
        let mut queue = Queue::default();
        for cloud in ["a", "b"] {
            queue.push(read(cloud, 0), evidence());
            queue.push(read(cloud, 1), LookFor::Refresh);
        }
        let taken = queue.take_evidence(|world| *world == World::Cloud("a".into()));
        assert_eq!(taken, [(read("b", 0), evidence())]);
        assert_eq!(send_all(&mut queue).len(), 3);
    }
}
