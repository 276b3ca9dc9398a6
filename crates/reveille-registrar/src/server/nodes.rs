//! Asks the clusters about the Nodes that a machine claims to be, before the machine is admitted.
//!
//! ```text
//!  enrol ─▶ the registry judges ─▶ NodesToAsk ─▶ NodeAsked, one for each roster (bounded queue) ─▶ the controller
//!      ◀─ NodeSaid, one for all ◀──────────────────────────────── within 10 s ◀───────────────┘
//! ```
//!
//! Nodes are read without any cache: enrolments are rare, and a Node that was created a moment ago counts. An id belongs
//! to one machine in all rosters, so each roster's cluster is asked for it. A name belongs to a Node in its own roster
//! only.
//! With one token only few questions are under way at once. A client that asks with it over and over waits for its own
//! questions, and machines with other invitations do not wait for that client.
//! Where no process takes the questions, there is no cluster to ask. The registry decides what follows from an answer.

use std::collections::{BTreeMap, BTreeSet};
use std::sync::{Arc, Mutex, PoisonError};
use std::time::Duration;

use futures::future::join_all;
use reveille_core::model::id::RosterName;
use reveille_wire::agent::text::Word;
use tokio::sync::{Semaphore, mpsc, oneshot};
use tokio::time::{Instant, timeout_at};

use crate::registry::{InvitationId, NodeSaid};

/// The number of questions that may wait; beyond that the answer is "unknown" at once.
const QUESTIONS_MAX: usize = 256;
/// The time limit of an answer. An agent waits 30 s for the answer to its own request.
const WITHIN: Duration = Duration::from_secs(10);

/// A question for the controller, which has the clusters.
#[derive(Debug)]
pub struct NodeAsked {
    /// The roster of the cluster.
    pub roster: RosterName,
    /// True when this is the machine's own roster.
    pub is_own: bool,
    /// The wanted name, in the form of a Node name. The question is for the Node of this name in the machine's own
    /// roster, and in every roster for a Node that has it as an id.
    pub name: Word,
    /// The claimed ids. The question is for a Node that has one of these ids or one of them as its name.
    pub ids: Vec<Word>,
    /// The answer; a dropped sender means no answer.
    pub reply: oneshot::Sender<NodeSaid>,
}

/// The number of enrolments of one invitation that ask at once: fewer than a cluster is asked at once.
const OF_INVITATION_MAX: usize = 4;

/// Sends the questions.
pub(super) struct Nodes {
    to: mpsc::Sender<NodeAsked>,
    rosters: BTreeSet<RosterName>,
    /// The invitations whose enrolments ask, or wait to ask.
    turns: Mutex<BTreeMap<InvitationId, Arc<Semaphore>>>,
}

impl Nodes {
    pub(super) fn new(rosters: BTreeSet<RosterName>) -> (Self, mpsc::Receiver<NodeAsked>) {
        let (sender, receiver) = mpsc::channel(QUESTIONS_MAX);
        (Self { to: sender, rosters, turns: Mutex::default() }, receiver)
    }

    /// The first value for the registry: no cluster was asked yet, or none where no process takes questions.
    pub(super) fn unasked(&self) -> Option<NodeSaid> {
        (!self.to.is_closed()).then_some(NodeSaid::Unasked)
    }

    /// The answer of the clusters; none where no process takes questions.
    pub(super) async fn said(
        &self,
        invitation: &InvitationId,
        own: &RosterName,
        name: &Word,
        ids: &[Word],
    ) -> Option<NodeSaid> {
        if self.to.is_closed() {
            return None;
        }
        let until = Instant::now() + WITHIN;
        let turns = Turns::of(self, invitation);
        let Ok(Ok(_turn)) = timeout_at(until, turns.places.acquire()).await else {
            return Some(NodeSaid::Unknown);
        };
        let ask = |roster: &RosterName| {
            let (reply, said) = oneshot::channel();
            let (name, ids) = (name.clone(), ids.to_vec());
            let question = NodeAsked { roster: roster.clone(), is_own: roster == own, name, ids, reply };
            let asked = self.to.try_send(question);
            async move {
                asked.ok()?;
                timeout_at(until, said).await.ok()?.ok()
            }
        };
        let elsewhere = join_all(self.rosters.iter().filter(|roster| *roster != own).map(ask));
        let (own, elsewhere) = tokio::join!(ask(own), elsewhere);
        let known = |said: Option<NodeSaid>| said.unwrap_or(NodeSaid::Unknown);
        Some(together(known(own), elsewhere.into_iter().map(known).collect()))
    }
}

/// Joins the answers of all clusters. The answer is partial where another cluster's Nodes are not known, or where the own
/// cluster's Nodes are not known while another cluster has some of the claim. Then the machine comes again.
fn together(own: NodeSaid, elsewhere: Vec<NodeSaid>) -> NodeSaid {
    let mut found = Vec::new();
    for said in elsewhere {
        match said {
            NodeSaid::Absent => {}
            NodeSaid::Present(nodes) => found.extend(nodes),
            NodeSaid::Partly | NodeSaid::Unknown | NodeSaid::Unasked => return NodeSaid::Partly,
        }
    }
    match own {
        own if found.is_empty() => own,
        NodeSaid::Absent => NodeSaid::Present(found),
        NodeSaid::Present(own) => NodeSaid::Present(own.into_iter().chain(found).collect()),
        NodeSaid::Partly | NodeSaid::Unknown | NodeSaid::Unasked => NodeSaid::Partly,
    }
}

/// The turns of one invitation, for as long as an enrolment asks or waits to ask.
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
        // Only the table and this value hold the semaphore: no other enrolment uses it.
        if Arc::strong_count(&self.places) == 2 {
            all.remove(&self.invitation);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::registry::NodeIds;

    #[tokio::test]
    async fn node_question_answered_dropped_or_unserved_is_distinct() {
        let (nodes, mut asked) = Nodes::new(BTreeSet::new());
        let answers = tokio::spawn(async move {
            let first: NodeAsked = asked.recv().await.unwrap();
            let meant = (first.roster.as_str().to_owned(), first.name.as_str().to_owned());
            first.reply.send(NodeSaid::Absent).unwrap();
            drop(asked.recv().await.unwrap().reply);
            meant
        });
        let (invitation, roster, name) = (InvitationId::new("i"), "prod".into(), "w-1".into());
        let ask = || nodes.said(&invitation, &roster, &name, &[]);
        assert_eq!(ask().await, Some(NodeSaid::Absent));
        assert_eq!(ask().await, Some(NodeSaid::Unknown));
        assert_eq!(answers.await.unwrap(), ("prod".to_owned(), "w-1".to_owned()));
        assert_eq!(ask().await, None, "no process takes questions any more");
    }

    #[tokio::test]
    async fn repeated_questions_of_one_token_do_not_delay_other_clients() {
        let (nodes, mut asked) = Nodes::new(BTreeSet::new());
        let nodes = Arc::new(nodes);
        let ask = |invitation: &str, name: &str| {
            let (nodes, invitation, name) = (nodes.clone(), InvitationId::new(invitation), Word::cut(name));
            tokio::spawn(async move { nodes.said(&invitation, &"prod".into(), &name, &[]).await })
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
            // The test holds the question: the cluster is slow.
            before.push(question);
        }
        assert!(before.len() <= OF_INVITATION_MAX, "{} came before", before.len());
        assert_eq!(honest.await.unwrap(), Some(NodeSaid::Absent));
        for asking in flood {
            asking.abort();
            drop(asking.await);
        }
        assert!(nodes.turns.lock().unwrap().is_empty(), "no enrolment asks any more");
    }

    #[test]
    fn what_another_rosters_cluster_does_not_say_is_missing() {
        let node = |name: &str| NodeIds { name: name.into(), ..NodeIds::default() };
        let present = |names: &[&str]| NodeSaid::Present(names.iter().map(|name| node(name)).collect());
        let cases = [
            (NodeSaid::Absent, vec![NodeSaid::Absent], NodeSaid::Absent),
            (NodeSaid::Absent, vec![NodeSaid::Absent, present(&["a"])], present(&["a"])),
            (present(&["a"]), vec![present(&["b"])], present(&["a", "b"])),
            (present(&["a"]), vec![NodeSaid::Unknown], NodeSaid::Partly),
            (NodeSaid::Absent, vec![NodeSaid::Partly], NodeSaid::Partly),
            // Before the first control plane of the machine's own cluster.
            (NodeSaid::Unknown, vec![NodeSaid::Absent], NodeSaid::Unknown),
            (NodeSaid::Unknown, vec![present(&["a"])], NodeSaid::Partly),
        ];
        for (own, elsewhere, wanted) in cases {
            let says = format!("{own:?} and {elsewhere:?}");
            assert_eq!(together(own, elsewhere), wanted, "{says}");
        }
    }
}
