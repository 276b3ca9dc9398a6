//! What a cluster says of the Node whose name a machine wants, asked before the machine is let in.
//!
//! ```text
//!  enrol, with a token that opens ─▶ NodeAsked (bounded queue) ─▶ whoever has the clusters ─▶ NodeSaid, within 10 s
//! ```
//!
//! A read of one Node for each enrolment, past every cache: enrolments are rare, and a Node that was made a moment ago counts.
//! Where nobody takes the questions there is no cluster to ask. What follows from an answer is the registry's to say.

use std::time::Duration;

use reveille_core::model::id::RosterName;
use reveille_wire::agent::text::Word;
use tokio::sync::{mpsc, oneshot};
use tokio::time::timeout;

use crate::registry::NodeSaid;

/// Questions that may wait; who comes beyond that hears that nobody knows.
const QUESTIONS_MAX: usize = 256;
/// Longest for an answer. An agent waits 30 s for its own.
const WITHIN: Duration = Duration::from_secs(10);

/// A question for somebody outside.
#[derive(Debug)]
pub struct NodeAsked {
    /// In which roster's cluster.
    pub roster: RosterName,
    /// The name, as a Node has it.
    pub name: Word,
    /// All that the machine claims to be known by; a Node that carries one of these is meant, too.
    pub claimed: Vec<Word>,
    /// The answer; one that is dropped is none.
    pub reply: oneshot::Sender<NodeSaid>,
}

/// Asks.
pub(super) struct Nodes(mpsc::Sender<NodeAsked>);

impl Nodes {
    pub(super) fn new() -> (Self, mpsc::Receiver<NodeAsked>) {
        let (sender, receiver) = mpsc::channel(QUESTIONS_MAX);
        (Self(sender), receiver)
    }

    /// What the cluster says; none where there is nobody to ask.
    pub(super) async fn said(&self, roster: RosterName, name: Word, claimed: Vec<Word>) -> Option<NodeSaid> {
        if self.0.is_closed() {
            return None;
        }
        let (reply, said) = oneshot::channel();
        if self.0.try_send(NodeAsked { roster, name, claimed, reply }).is_err() {
            return Some(NodeSaid::Unknown);
        }
        Some(timeout(WITHIN, said).await.ok().and_then(Result::ok).unwrap_or(NodeSaid::Unknown))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[tokio::test]
    async fn a_question_that_is_answered_dropped_or_taken_by_nobody_is_three_things() {
        let (nodes, mut asked) = Nodes::new();
        let answers = tokio::spawn(async move {
            let first: NodeAsked = asked.recv().await.unwrap();
            let meant = (first.roster.as_str().to_owned(), first.name.as_str().to_owned());
            first.reply.send(NodeSaid::Absent).unwrap();
            drop(asked.recv().await.unwrap().reply);
            meant
        });
        let ask = || nodes.said("prod".into(), "w-1".into(), vec!["i-1".into()]);
        assert_eq!(ask().await, Some(NodeSaid::Absent));
        assert_eq!(ask().await, Some(NodeSaid::Unknown));
        assert_eq!(answers.await.unwrap(), ("prod".to_owned(), "w-1".to_owned()));
        assert_eq!(ask().await, None, "nobody takes questions any more");
    }
}
