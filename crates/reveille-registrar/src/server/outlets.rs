//! Where each connection's frames go: one bounded queue for each, from its hello to its end.
//!
//! ```text
//!  open ─▶ an outlet ─┬▶ send: a frame, or the connection is closed that takes none
//!                     └▶ close, gone, farewell: the outlet is no more
//! ```
//!
//! An outlet ends with its connection, whichever side ended it. A queue is 7 KB, and a machine may begin a session every two
//! seconds: outlets of connections that are over would be 300 MB a day of one machine.
//!
//! Whoever does not take what it is sent is closed. What others can make it be sent, a word that somebody claims its name, takes
//! no more than half of an outlet and closes nothing.

use std::collections::BTreeMap;

use reveille_wire::agent::{Reason, Refused, ServerFrame};
use tokio::sync::mpsc;

use crate::registry::Conn;

/// Frames that may wait for one session.
const OUTLET_MAX: usize = 64;

/// What goes to a connection.
#[derive(Clone, Debug)]
pub(super) enum Outgoing {
    /// A frame.
    Frame(ServerFrame),
    /// The last one.
    Close(Refused),
}

/// The end of an outlet that is written to.
pub(super) type Outlet = mpsc::Sender<Outgoing>;

/// Both ends of one.
pub(super) fn pair() -> (Outlet, mpsc::Receiver<Outgoing>) {
    mpsc::channel(OUTLET_MAX)
}

/// All of them.
#[derive(Debug, Default)]
pub(super) struct Outlets(BTreeMap<Conn, Outlet>);

impl Outlets {
    pub(super) fn open(&mut self, conn: Conn, outlet: Outlet) {
        self.0.insert(conn, outlet);
    }

    pub(super) fn send(&mut self, conn: Conn, frame: ServerFrame) {
        let Some(outlet) = self.0.get(&conn) else { return };
        if matches!(frame, ServerFrame::Rival(_)) && outlet.capacity() <= OUTLET_MAX / 2 {
            return;
        }
        if outlet.try_send(Outgoing::Frame(frame)).is_err() {
            // Whoever takes nothing loses its connection; its end of it says so to the registry.
            self.0.remove(&conn);
        }
    }

    /// The last frame of a connection.
    pub(super) fn close(&mut self, conn: Conn, refused: Refused) {
        if let Some(outlet) = self.0.remove(&conn) {
            // A full outlet is closed by being dropped.
            drop(outlet.try_send(Outgoing::Close(refused)));
        }
    }

    /// The connection is over: nobody is there to read.
    pub(super) fn gone(&mut self, conn: Conn) {
        self.0.remove(&conn);
    }

    /// Whoever has a session hears why it ends, and when to ask again.
    pub(super) fn farewell(&mut self) {
        for outlet in std::mem::take(&mut self.0).into_values() {
            // One that is full is dropped: its connection then finds that this thread is over.
            drop(outlet.try_send(Outgoing::Close(Reason::Unavailable.into())));
        }
    }
}

#[cfg(test)]
mod tests {
    use std::collections::BTreeSet;
    use std::time::Duration;

    use reveille_core::model::time::{Span, Time};
    use reveille_wire::agent::frame::Hello;
    use reveille_wire::agent::{Facts, Identity, PROTOCOL};
    use tokio::time::timeout;

    use super::super::{clock, keeper, store};
    use super::*;
    use crate::registry::{
        AuthorityHash, Event, InvitationId, KeyHash, MachineId, Peer, Registry, Reply, Settings, TokenHash,
        Wish,
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

    #[tokio::test]
    async fn a_session_that_its_machine_ended_leaves_no_outlet() {
        let folder = tempfile::tempdir().unwrap();
        let (store, _) = store::Store::open(folder.path(), clock::wall()).unwrap();
        let registry = Registry::restore(Settings::default(), clock::wall(), &[]);
        let (hand, _edges, thread) = keeper::start(registry, store, Vec::new()).unwrap();
        let machine = enrolled(&hand).await;
        let peer = || Peer {
            machine: machine.clone(),
            key: KEY,
            authority: AuthorityHash([0; 32]),
            not_after: Time::from_ms(i64::MAX),
        };
        let hello = || Hello {
            protocol: PROTOCOL,
            identity: identity(),
            facts: Facts::default(),
            plan: None,
            joined: false,
        };
        let opened = hand.open(|conn| Event::Arrived { conn, peer: peer(), hello: hello() }).await;
        let (conn, mut outgoing) = opened.unwrap();
        let welcome = timeout(Duration::from_secs(10), outgoing.recv()).await.unwrap();
        assert!(matches!(welcome, Some(Outgoing::Frame(ServerFrame::Welcome(_)))), "{welcome:?}");
        hand.say(Event::Gone(conn)).await.unwrap();
        // What was on its way is read; then nobody is left to write.
        let over = async { while outgoing.recv().await.is_some() {} };
        let ended = timeout(Duration::from_secs(10), over).await;
        hand.end().await;
        tokio::task::spawn_blocking(move || thread.join()).await.unwrap().unwrap();
        assert!(ended.is_ok(), "the outlet stands, and its queue with it");
    }
}
