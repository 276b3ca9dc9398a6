//! Sessions by requests that are held back.
//!
//! ```text
//!  first poll, a hello ─▶ Hand::open ─▶ the welcome names the session ─▶ kept here by machine and session
//!  next polls ─▶ frames to the registry ─▶ wait for something to say, or 25 s ─▶ what was not acknowledged
//! ```
//!
//! One poll of a session at a time: a newer one ends the wait of the one before. What is not acknowledged is kept, up to a
//! bound, so that an answer that was lost is given again. A session is its key's: one that its machine has no more, or has, too,
//! opens nothing of it, whatever number it comes with.

use std::collections::{BTreeMap, VecDeque};
use std::sync::atomic::{AtomicU32, Ordering};
use std::sync::{Arc, Mutex, PoisonError};
use std::time::Duration;

use reveille_wire::agent::poll::{Poll, Polled};
use reveille_wire::agent::text::List;
use reveille_wire::agent::{AgentFrame, Numbered, POLL_FRAMES_MAX, POLL_HOLD_S, Reason, ServerFrame};
use tokio::sync::{Mutex as Turn, Notify, mpsc};
use tokio::time::timeout;

use super::keeper::Hand;
use super::outlets::Outgoing;
use crate::registry::{Conn, Event, KeyHash, MachineId, Peer};

/// The welcome follows the hello at once, and whether a key counts is said at once.
const WELCOME_WITHIN: Duration = Duration::from_secs(20);

/// What a session was to be told last is kept for so many sweeps; then whoever asks hears that it is over.
const SWEEPS_KEPT: u32 = 30;

/// Sessions of one machine that are kept: the one that stands, and those whose last word may still be asked for.
const OF_A_MACHINE_MAX: usize = 4;

/// All of them.
#[derive(Default)]
pub(super) struct Held {
    sessions: Mutex<BTreeMap<(MachineId, u64), Arc<Session>>>,
}

struct Session {
    conn: Conn,
    /// Which key began it.
    key: KeyHash,
    /// Ends the wait of whoever has the line.
    newer: Notify,
    line: Turn<Line>,
    /// Sweeps that found it over, with a word that nobody came for.
    over: AtomicU32,
}

struct Line {
    outgoing: mpsc::Receiver<Outgoing>,
    kept: VecDeque<Numbered<ServerFrame>>,
    sent: u64,
    taken: u64,
}

impl Held {
    /// Answers one poll.
    pub(super) async fn poll(&self, hand: &Hand, peer: Peer, poll: Poll) -> Result<Polled, Reason> {
        let hold = Duration::from_secs(poll.hold_s.min(POLL_HOLD_S).into());
        let Some(number) = poll.session else { return self.begin(hand, peer, poll).await };
        let (key, shown) = ((peer.machine.clone(), number), peer.key);
        let stands = hand.view(move |registry, _| registry.stands(&peer));
        timeout(WELCOME_WITHIN, stands).await.ok().and_then(Result::ok).ok_or(Reason::Unavailable)??;
        let found = self.lock().get(&key).filter(|session| session.key == shown).cloned();
        let session = found.ok_or(Reason::Replaced)?;
        session.newer.notify_waiters();
        let mut line = session.line.lock().await;
        for Numbered { n, frame } in poll.frames.into_vec() {
            if n > line.taken {
                let said = hand.say(Event::Said { conn: session.conn, n, frame }).await;
                said.map_err(|_| Reason::Unavailable)?;
                // Not before: a poll that is given up while the registry is busy ends above, and its frames come again.
                line.taken = n;
            }
        }
        line.kept.retain(|frame| frame.n > poll.ack);
        if line.kept.is_empty() {
            tokio::select! {
                said = timeout(hold, line.next(hand)) => match said {
                    Ok(Ok(())) | Err(_) => {}
                    Ok(Err(reason)) => {
                        drop(line);
                        self.end(hand, &key, session.conn).await;
                        return Err(reason);
                    }
                },
                () = session.newer.notified() => {}
            }
        }
        if let Err(reason) = line.drain() {
            drop(line);
            self.end(hand, &key, session.conn).await;
            return Err(reason);
        }
        Ok(line.answer(number))
    }

    async fn begin(&self, hand: &Hand, peer: Peer, poll: Poll) -> Result<Polled, Reason> {
        let mut frames = poll.frames.into_vec().into_iter();
        let Some(Numbered { n, frame: AgentFrame::Hello(hello) }) = frames.next() else {
            return Err(Reason::BadFrame {
                place: "hello".into(),
                what: "a session begins with a hello".into(),
            });
        };
        let (machine, key) = (peer.machine.clone(), peer.key);
        let opened = hand.open(|conn| Event::Arrived { conn, peer, hello }).await;
        let (conn, outgoing) = opened.map_err(|_| Reason::Unavailable)?;
        let mut line = Line { outgoing, kept: VecDeque::new(), sent: 0, taken: n };
        timeout(WELCOME_WITHIN, line.next(hand)).await.map_err(|_| Reason::Unavailable)??;
        let Some(number) = line.kept.front().and_then(|first| match &first.frame {
            ServerFrame::Welcome(welcome) => Some(welcome.session),
            _ => None,
        }) else {
            return Err(Reason::Unavailable);
        };
        for Numbered { n, frame } in frames {
            line.taken = line.taken.max(n);
            hand.say(Event::Said { conn, n, frame }).await.map_err(|_| Reason::Unavailable)?;
        }
        line.drain()?;
        let polled = line.answer(number);
        let (newer, over) = (Notify::new(), AtomicU32::new(0));
        let session = Session { conn, key, newer, line: Turn::new(line), over };
        self.keep(machine, number, session);
        Ok(polled)
    }

    /// Keeps it, and forgets the oldest of the machine where it has too many: the registry has closed those.
    fn keep(&self, machine: MachineId, number: u64, session: Session) {
        let mut sessions = self.lock();
        let of_machine = (machine.clone(), 0)..=(machine.clone(), u64::MAX);
        let numbers: Vec<u64> = sessions.range(of_machine).map(|((_, number), _)| *number).collect();
        for oldest in numbers.iter().take((numbers.len() + 1).saturating_sub(OF_A_MACHINE_MAX)) {
            sessions.remove(&(machine.clone(), *oldest));
        }
        sessions.insert((machine, number), Arc::new(session));
    }

    async fn end(&self, hand: &Hand, key: &(MachineId, u64), conn: Conn) {
        self.lock().remove(key);
        // A thread that has ended knows no sessions.
        drop(hand.say(Event::Gone(conn)).await);
    }

    /// Forgets those whose outlet the registry closed and nobody asks for.
    pub(super) fn sweep(&self) {
        self.lock().retain(|_, session| !session.is_over());
    }

    fn lock(&self) -> std::sync::MutexGuard<'_, BTreeMap<(MachineId, u64), Arc<Session>>> {
        self.sessions.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl Session {
    /// Its outlet is closed, and nothing is left in it, or nobody came for that.
    fn is_over(&self) -> bool {
        // Whoever has the line asks for it.
        let Ok(line) = self.line.try_lock() else { return false };
        let is_closed = line.outgoing.is_closed();
        is_closed && (line.outgoing.is_empty() || self.over.fetch_add(1, Ordering::Relaxed) >= SWEEPS_KEPT)
    }
}

impl Line {
    /// Waits for one thing to say.
    async fn next(&mut self, hand: &Hand) -> Result<(), Reason> {
        match self.outgoing.recv().await {
            Some(out) => self.keep(out),
            None => Err(hand.why_closed()),
        }
    }

    /// Takes what else is there.
    fn drain(&mut self) -> Result<(), Reason> {
        while self.kept.len() < POLL_FRAMES_MAX {
            let Ok(out) = self.outgoing.try_recv() else { break };
            self.keep(out)?;
        }
        Ok(())
    }

    fn keep(&mut self, out: Outgoing) -> Result<(), Reason> {
        match out {
            Outgoing::Frame(frame) => {
                self.sent += 1;
                self.kept.push_back(Numbered { n: self.sent, frame });
                Ok(())
            }
            Outgoing::Close(refused) => Err(refused.reason),
        }
    }

    fn answer(&self, session: u64) -> Polled {
        Polled { session, ack: self.taken, frames: List::first(self.kept.iter().cloned()) }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn of(conn: Conn, line: Turn<Line>) -> Session {
        Session { conn, key: KeyHash([1; 32]), newer: Notify::new(), line, over: AtomicU32::new(0) }
    }

    #[test]
    fn a_machine_that_begins_session_after_session_has_a_few_of_them_kept() {
        let held = Held::default();
        for number in 0..1000 {
            for machine in ["m-1", "m-2"] {
                let (_, outgoing) = mpsc::channel(1);
                let line = Turn::new(Line { outgoing, kept: VecDeque::new(), sent: 0, taken: 0 });
                held.keep(MachineId::new(machine), number, of(Conn(number), line));
            }
        }
        let kept: Vec<u64> = held.lock().keys().map(|(_, number)| *number).collect();
        assert_eq!(kept, [996, 997, 998, 999, 996, 997, 998, 999]);
    }

    #[test]
    fn one_that_was_closed_and_that_nobody_asks_for_is_forgotten_with_its_last_word() {
        let held = Held::default();
        let (outlet, outgoing) = mpsc::channel(1);
        let line = Turn::new(Line { outgoing, kept: VecDeque::new(), sent: 0, taken: 0 });
        held.lock().insert((MachineId::new("m-1"), 1), Arc::new(of(Conn(1), line)));
        let left_after = |sweeps: u32| {
            (0..sweeps).for_each(|_| held.sweep());
            held.lock().len()
        };
        assert_eq!(left_after(2 * SWEEPS_KEPT), 1, "it stands");
        outlet.try_send(Outgoing::Close(Reason::Replaced.into())).unwrap();
        drop(outlet);
        assert_eq!(left_after(SWEEPS_KEPT), 1, "its last word waits for whoever asks");
        assert_eq!(left_after(1), 0);
    }
}
