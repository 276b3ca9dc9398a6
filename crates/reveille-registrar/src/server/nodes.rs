//! What the clusters say of the Nodes that a machine claims to be, asked before the machine is let in.
//!
//! ```text
//!  enrol ─▶ the registry judges ─▶ NodesToAsk ─▶ NodeAsked, one for each roster (bounded queue) ─▶ whoever has the clusters
//!      ◀─ NodeSaid, one for all ◀──────────────────────────────── within 10 s ◀───────────────┘
//! ```
//!
//! Nodes are read past every cache: enrolments are rare, and a Node that was made a moment ago counts. An id is one machine's in
//! every roster, so that each roster's cluster is asked for it; a name is a Node's in its own roster alone.
//! With one token few questions are under way at once: whoever asks with it over and over waits for himself, and other
//! invitations' machines do not wait for him.
//! Where nobody takes the questions there is no cluster to ask. What follows from an answer is the registry's to say.

use std::collections::{BTreeMap, BTreeSet};
use std::sync::{Arc, Mutex, PoisonError};
use std::time::Duration;

use futures::future::join_all;
use reveille_core::model::id::RosterName;
use reveille_wire::agent::text::Word;
use tokio::sync::{Semaphore, mpsc, oneshot};
use tokio::time::{Instant, timeout_at};

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
    /// The machine comes to this roster.
    pub is_own: bool,
    /// The name that it wants, as a Node has it. The Node of this name is meant in its own roster, and one that carries it as an
    /// id in every roster.
    pub name: Word,
    /// The ids that it claims. A Node is meant that carries one of these, or is called so.
    pub ids: Vec<Word>,
    /// The answer; one that is dropped is none.
    pub reply: oneshot::Sender<NodeSaid>,
}

/// Enrolments of one invitation that ask at once: fewer than are asked at once of a cluster.
const OF_INVITATION_MAX: usize = 4;

/// Asks.
pub(super) struct Nodes {
    to: mpsc::Sender<NodeAsked>,
    rosters: BTreeSet<RosterName>,
    /// Those invitations of which somebody asks or waits to.
    turns: Mutex<BTreeMap<InvitationId, Arc<Semaphore>>>,
}

impl Nodes {
    pub(super) fn new(rosters: BTreeSet<RosterName>) -> (Self, mpsc::Receiver<NodeAsked>) {
        let (sender, receiver) = mpsc::channel(QUESTIONS_MAX);
        (Self { to: sender, rosters, turns: Mutex::default() }, receiver)
    }

    /// What the registry hears first: that none is asked yet, or none where there is nobody to ask.
    pub(super) fn unasked(&self) -> Option<NodeSaid> {
        (!self.to.is_closed()).then_some(NodeSaid::Unasked)
    }

    /// What the clusters say; none where there is nobody to ask.
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

/// What all clusters say. Where the others' Nodes are not known, or the machine's own are not while another cluster has some of
/// what it claims, that is a part of the answer, and it comes again.
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
    use crate::registry::NodeIds;

    #[tokio::test]
    async fn a_question_that_is_answered_dropped_or_taken_by_nobody_is_three_things() {
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
        assert_eq!(ask().await, None, "nobody takes questions any more");
    }

    #[tokio::test]
    async fn whoever_asks_over_and_over_with_one_token_does_not_keep_others_waiting() {
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
            // Before the first control plane of its own cluster.
            (NodeSaid::Unknown, vec![NodeSaid::Absent], NodeSaid::Unknown),
            (NodeSaid::Unknown, vec![present(&["a"])], NodeSaid::Partly),
        ];
        for (own, elsewhere, wanted) in cases {
            let says = format!("{own:?} and {elsewhere:?}");
            assert_eq!(together(own, elsewhere), wanted, "{says}");
        }
    }
}
