//! The outgoing frames of each connection: one bounded queue for each, from its hello to its end.
//!
//! ```text
//!  open ─▶ a queue ─┬▶ send: a frame, or the connection is closed that takes none
//!                   └▶ close, gone, farewell: the queue is removed
//! ```
//!
//! A queue ends with its connection, whichever side ended it. A queue takes 7 KB, and a machine may begin a session
//! every two seconds. Queues of ended connections would take 300 MB a day for one machine.
//!
//! A connection whose client does not take its frames is closed. Other machines can cause frames too: the message that
//! another machine claims this one's identity. Such frames fill no more than half of a queue and close nothing.

use std::collections::BTreeMap;

use reveille_wire::agent::{Reason, Refused, ServerFrame};
use tokio::sync::mpsc;

use crate::registry::Conn;

/// The number of frames that may wait for one session.
const QUEUE_MAX: usize = 64;

/// An output to a connection.
#[derive(Clone, Debug)]
pub(super) enum Outgoing {
    /// A frame.
    Frame(ServerFrame),
    /// The last frame.
    Close(Refused),
}

/// The sending end of a queue.
pub(super) type FrameSender = mpsc::Sender<Outgoing>;

/// Both ends of a queue.
pub(super) fn pair() -> (FrameSender, mpsc::Receiver<Outgoing>) {
    mpsc::channel(QUEUE_MAX)
}

/// All queues.
#[derive(Debug, Default)]
pub(super) struct FrameSenders(BTreeMap<Conn, FrameSender>);

impl FrameSenders {
    pub(super) fn open(&mut self, conn: Conn, sender: FrameSender) {
        self.0.insert(conn, sender);
    }

    pub(super) fn send(&mut self, conn: Conn, frame: ServerFrame) {
        let Some(sender) = self.0.get(&conn) else { return };
        if matches!(frame, ServerFrame::Rival(_)) && sender.capacity() <= QUEUE_MAX / 2 {
            return;
        }
        if sender.try_send(Outgoing::Frame(frame)).is_err() {
            // A client that takes no frames loses its connection; the connection's task reports that to the registry.
            self.0.remove(&conn);
        }
    }

    /// Sends the last frame of a connection.
    pub(super) fn close(&mut self, conn: Conn, refused: Refused) {
        if let Some(sender) = self.0.remove(&conn) {
            // A full queue is closed by being dropped.
            drop(sender.try_send(Outgoing::Close(refused)));
        }
    }

    /// The connection has ended: no client reads its frames.
    pub(super) fn gone(&mut self, conn: Conn) {
        self.0.remove(&conn);
    }

    /// Tells each machine with a session why the session ends, and when to come again.
    pub(super) fn farewell(&mut self) {
        for sender in std::mem::take(&mut self.0).into_values() {
            // A full queue is dropped: its connection then finds that this thread has ended.
            drop(sender.try_send(Outgoing::Close(Reason::Unavailable.into())));
        }
    }
}

#[cfg(test)]
mod tests {
    use std::collections::BTreeSet;
    use std::time::Duration;

    use reveille_core::model::time::{Span, Time};
    use reveille_wire::agent::frame::{Heartbeat, Hello};
    use reveille_wire::agent::{AgentFrame, Distribution, Facts, Identity, PROTOCOL, Secret};
    use tokio::time::timeout;

    use super::super::{clock, keeper, store};
    use super::*;
    use crate::registry::{
        AuthorityHash, Event, InvitationId, KeyHash, MachineId, Peer, Plans, Registry, Reply, Settings,
        Template, TokenHash, Wish,
    };

    const KEY: KeyHash = KeyHash([1; 32]);

    fn identity() -> Identity {
        Identity {
            machine_id: Some("feed0000000040008000000000000001".into()),
            boot_id: "boot-1".into(),
            ..Identity::default()
        }
    }

    async fn enrolled(hand: &keeper::Hand) -> MachineId {
        let (id, hash) = (InvitationId::new("i"), TokenHash([7; 32]));
        let wish = Wish {
            roster: "prod".into(),
            pool: "workers".into(),
            roles: BTreeSet::new(),
            machine: None,
            reimage: None,
            ttl: Span::from_min(60),
            uses: 1,
        };
        let invite = |ask| Event::Invite { ask, wish, id: id.clone(), hash };
        assert!(matches!(hand.ask(invite).await, Ok(Reply::Invited { .. })));
        let enrol = |ask| Event::Enrol {
            ask,
            id: id.clone(),
            hash,
            identity: identity(),
            facts: Facts { hostname: "w-1".into(), ..Facts::default() },
            node_name: None,
            node: None,
            key: KEY,
            fresh: MachineId::new("m-1"),
        };
        assert!(matches!(hand.ask(enrol).await, Ok(Reply::Certify { .. })));
        MachineId::new("m-1")
    }

    async fn arrived(hand: &keeper::Hand) -> (Conn, mpsc::Receiver<Outgoing>) {
        let peer = Peer {
            machine: enrolled(hand).await,
            key: KEY,
            authority: AuthorityHash([0; 32]),
            not_after: Time::from_ms(i64::MAX),
        };
        let hello = Hello {
            protocol: PROTOCOL,
            identity: identity(),
            facts: Facts::default(),
            plan: None,
            joined: false,
        };
        hand.open(|conn| Event::Arrived { conn, peer, hello }).await.unwrap()
    }

    #[tokio::test]
    async fn a_session_that_its_machine_ended_leaves_no_sender() {
        let folder = tempfile::tempdir().unwrap();
        let (store, _) = store::Store::open(folder.path(), clock::wall()).unwrap();
        let registry = Registry::restore(Settings::default(), clock::wall(), &[]);
        let (hand, _edges, thread) = keeper::start(registry, store, Vec::new()).unwrap();
        let (conn, mut outgoing) = arrived(&hand).await;
        let welcome = timeout(Duration::from_secs(10), outgoing.recv()).await.unwrap();
        assert!(matches!(welcome, Some(Outgoing::Frame(ServerFrame::Welcome(_)))), "{welcome:?}");
        hand.say(Event::Gone(conn)).await.unwrap();
        // The client reads the frames that were on their way; then no task is left to write.
        let over = async { while outgoing.recv().await.is_some() {} };
        let ended = timeout(Duration::from_secs(10), over).await;
        hand.end().await;
        tokio::task::spawn_blocking(move || thread.join()).await.unwrap().unwrap();
        assert!(ended.is_ok(), "the sender is still there, and its queue with it");
    }

    /// The machine's messages that it joined and that it did not, and its token, are in one batch.
    #[tokio::test]
    async fn token_arriving_in_the_batch_that_requests_it_is_delivered() {
        let folder = tempfile::tempdir().unwrap();
        let (store, _) = store::Store::open(folder.path(), clock::wall()).unwrap();
        let registry = Registry::restore(Settings::default(), clock::wall(), &[]);
        let (hand, mut edges, thread) = keeper::start(registry, store, Vec::new()).unwrap();
        let template = Template {
            distribution: Distribution::Kubeadm,
            server: "10.0.0.1:6443".into(),
            ca_pins: vec!["sha256:00".into()],
            labels: Default::default(),
            taints: Vec::new(),
            files: Vec::new(),
            config: None,
            needs: BTreeSet::new(),
        };
        let plans = Plans([(("prod".into(), "workers".into()), template)].into());
        hand.say(Event::PlansRead(plans)).await.unwrap();
        let (conn, mut outgoing) = arrived(&hand).await;
        let making = timeout(Duration::from_secs(10), edges.token_requests.recv()).await.unwrap();
        let Some(keeper::TokenRequest::Make { reply, .. }) = making else { panic!("{making:?}") };
        // The thread stands still until all of these wait.
        let (go_on, waits) = std::sync::mpsc::channel::<()>();
        let other = hand.clone();
        let still = tokio::spawn(async move { other.view(move |_, _| waits.recv().is_ok()).await });
        tokio::time::sleep(Duration::from_millis(100)).await;
        for (n, joined) in [(1, true), (2, false)] {
            let frame = AgentFrame::Heartbeat(Heartbeat { stage: None, joined, account: None });
            hand.say(Event::Said { conn, n, frame }).await.unwrap();
        }
        reply.send(Ok(Secret::new("kuckuc.0123456789abcdef"))).unwrap();
        tokio::time::sleep(Duration::from_millis(100)).await;
        go_on.send(()).unwrap();
        assert_eq!(still.await.unwrap(), Ok(true));
        let is_given = async {
            loop {
                match outgoing.recv().await {
                    Some(Outgoing::Frame(ServerFrame::Token(_))) => return true,
                    Some(_) => {}
                    None => return false,
                }
            }
        };
        assert_eq!(timeout(Duration::from_secs(5), is_given).await, Ok(true));
        hand.end().await;
        tokio::task::spawn_blocking(move || thread.join()).await.unwrap().unwrap();
    }
}
