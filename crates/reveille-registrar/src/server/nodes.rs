//! What a cluster says of the Node whose name a machine wants, asked before the machine is let in.
//!
//! ```text
//!  enrol, with a token that opens ─▶ NodeAsked (bounded queue) ─▶ whoever has the clusters ─▶ NodeSaid, within 10 s
//! ```
//!
//! A read of one Node for each enrolment, past every cache: enrolments are rare, and a Node that was made a moment ago counts.
//! With one token few questions are under way at once: whoever asks with it over and over waits for himself, and other
//! invitations' machines do not wait for him.
//! Where nobody takes the questions there is no cluster to ask. What follows from an answer is the registry's to say.

use std::collections::BTreeMap;
use std::sync::{Arc, Mutex, PoisonError};
use std::time::Duration;

use reveille_core::model::id::RosterName;
use reveille_wire::agent::text::Word;
use tokio::sync::{Semaphore, mpsc, oneshot};
use tokio::time::timeout;

use crate::registry::{InvitationId, NodeSaid};

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

/// Questions of one invitation that are under way at once: fewer than are asked at once of a cluster.
const OF_INVITATION_MAX: usize = 4;

/// Asks.
pub(super) struct Nodes {
    to: mpsc::Sender<NodeAsked>,
    /// Those invitations of which somebody asks or waits to.
    turns: Mutex<BTreeMap<InvitationId, Arc<Semaphore>>>,
}

impl Nodes {
    pub(super) fn new() -> (Self, mpsc::Receiver<NodeAsked>) {
        let (sender, receiver) = mpsc::channel(QUESTIONS_MAX);
        (Self { to: sender, turns: Mutex::default() }, receiver)
    }

    /// What the cluster says; none where there is nobody to ask.
    pub(super) async fn said(
        &self,
        invitation: &InvitationId,
        roster: RosterName,
        name: Word,
        claimed: Vec<Word>,
    ) -> Option<NodeSaid> {
        if self.to.is_closed() {
            return None;
        }
        let turns = Turns::of(self, invitation);
        let asked = async {
            let _turn = turns.places.acquire().await.ok()?;
            let (reply, said) = oneshot::channel();
            self.to.try_send(NodeAsked { roster, name, claimed, reply }).ok()?;
            said.await.ok()
        };
        Some(timeout(WITHIN, asked).await.ok().flatten().unwrap_or(NodeSaid::Unknown))
    }
}

/// The turns of one invitation, for as long as somebody asks or waits to.
struct Turns<'a> {
    nodes: &'a Nodes,
    invitation: InvitationId,
    places: Arc<Semaphore>,
}

impl<'a> Turns<'a> {
    fn of(nodes: &'a Nodes, invitation: &InvitationId) -> Self {
        let mut all = nodes.turns.lock().unwrap_or_else(PoisonError::into_inner);
        let new = || Arc::new(Semaphore::new(OF_INVITATION_MAX));
        let places = all.entry(invitation.clone()).or_insert_with(new).clone();
        Self { nodes, invitation: invitation.clone(), places }
    }
}

impl Drop for Turns<'_> {
    fn drop(&mut self) {
        let mut all = self.nodes.turns.lock().unwrap_or_else(PoisonError::into_inner);
        // The table's own and this one: nobody else is left.
        if Arc::strong_count(&self.places) == 2 {
            all.remove(&self.invitation);
        }
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
        let invitation = InvitationId::new("i");
        let ask = || nodes.said(&invitation, "prod".into(), "w-1".into(), vec!["i-1".into()]);
        assert_eq!(ask().await, Some(NodeSaid::Absent));
        assert_eq!(ask().await, Some(NodeSaid::Unknown));
        assert_eq!(answers.await.unwrap(), ("prod".to_owned(), "w-1".to_owned()));
        assert_eq!(ask().await, None, "nobody takes questions any more");
    }

    #[tokio::test]
    async fn whoever_asks_over_and_over_with_one_token_does_not_keep_others_waiting() {
        let (nodes, mut asked) = Nodes::new();
        let nodes = Arc::new(nodes);
        let ask = |invitation: &str, name: &str| {
            let (nodes, invitation, name) = (nodes.clone(), InvitationId::new(invitation), Word::cut(name));
            tokio::spawn(async move { nodes.said(&invitation, "prod".into(), name, Vec::new()).await })
        };
        let flood: Vec<_> = (0..200).map(|number| ask("stolen", &format!("x-{number}"))).collect();
        for _ in 0..100 {
            tokio::task::yield_now().await;
        }
        let honest = ask("mine", "w-1");
        let mut before = Vec::new();
        loop {
            let question = asked.recv().await.unwrap();
            if question.name.as_str() == "w-1" {
                question.reply.send(NodeSaid::Absent).unwrap();
                break;
            }
            // Held: the cluster is slow.
            before.push(question);
        }
        assert!(before.len() <= OF_INVITATION_MAX, "{} came before", before.len());
        assert_eq!(honest.await.unwrap(), Some(NodeSaid::Absent));
        for asking in flood {
            asking.abort();
            drop(asking.await);
        }
        assert!(nodes.turns.lock().unwrap().is_empty(), "nobody asks any more");
    }
}
