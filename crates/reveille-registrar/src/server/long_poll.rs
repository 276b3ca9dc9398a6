//! Sessions over long polls: the server holds a request until it has something to send.
//!
//! ```text
//!  first poll, a hello ─▶ Hand::open ─▶ the welcome names the session ─▶ kept here by machine and session
//!  next polls ─▶ frames to the registry ─▶ wait for something to say, or 25 s ─▶ what was not acknowledged
//! ```
//!
//! A session has one poll at a time: a newer one ends the wait of the older. The server keeps unacknowledged frames, up
//! to a bound, so that it can repeat a lost answer. A session belongs to the key that began it: another key of the
//! machine, old or new, cannot use it, whatever session number it sends.

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
use super::senders::Outgoing;
use crate::registry::{Conn, Event, KeyHash, MachineId, Peer};

/// The registry answers a hello at once, and checks a key at once.
const WELCOME_WITHIN: Duration = Duration::from_secs(20);

/// The number of sweeps for which the last frames of a session are kept; a later poll hears that the session has ended.
const SWEEPS_KEPT: u32 = 30;

/// The number of sessions kept for one machine: the current one, and those whose last frame may still be fetched.
const OF_A_MACHINE_MAX: usize = 4;

/// All sessions over long polls.
#[derive(Default)]
pub(super) struct LongPolls {
    sessions: Mutex<BTreeMap<(MachineId, u64), Arc<Session>>>,
}

struct Session {
    conn: Conn,
    /// The key that began the session.
    key: KeyHash,
    /// Ends the wait of the poll that holds the line.
    newer: Notify,
    line: Turn<Line>,
    /// The number of sweeps that found the session ended, with a last frame that no poll has fetched.
    over: AtomicU32,
}

struct Line {
    outgoing: mpsc::Receiver<Outgoing>,
    kept: VecDeque<Numbered<ServerFrame>>,
    sent: u64,
    taken: u64,
}

impl LongPolls {
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
                // Not earlier: a poll that is given up while the registry is busy ends above, and its frames come again.
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

    /// Keeps the session. Drops the machine's oldest one where it has too many: the registry has closed those.
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
        // A thread that has ended has no sessions.
        drop(hand.say(Event::Gone(conn)).await);
    }

    /// Forgets sessions whose queue the registry closed and whose last frames no poll fetches.
    pub(super) fn sweep(&self) {
        self.lock().retain(|_, session| !session.is_over());
    }

    fn lock(&self) -> std::sync::MutexGuard<'_, BTreeMap<(MachineId, u64), Arc<Session>>> {
        self.sessions.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl Session {
    /// True when the queue is closed, and nothing is left in it, or no poll came for it.
    fn is_over(&self) -> bool {
        // The poll that holds the line fetches it.
        let Ok(line) = self.line.try_lock() else { return false };
        let is_closed = line.outgoing.is_closed();
        is_closed && (line.outgoing.is_empty() || self.over.fetch_add(1, Ordering::Relaxed) >= SWEEPS_KEPT)
    }
}

impl Line {
    /// Waits for one frame to send.
    async fn next(&mut self, hand: &Hand) -> Result<(), Reason> {
        match self.outgoing.recv().await {
            Some(out) => self.keep(out),
            None => Err(hand.why_closed()),
        }
    }

    /// Takes the other waiting frames.
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
    fn machine_that_opens_many_sessions_keeps_the_last_few() {
        let polls = LongPolls::default();
        for number in 0..1000 {
            for machine in ["m-1", "m-2"] {
                let (_, outgoing) = mpsc::channel(1);
                let line = Turn::new(Line { outgoing, kept: VecDeque::new(), sent: 0, taken: 0 });
                polls.keep(MachineId::new(machine), number, of(Conn(number), line));
            }
        }
        let kept: Vec<u64> = polls.lock().keys().map(|(_, number)| *number).collect();
        assert_eq!(kept, [996, 997, 998, 999, 996, 997, 998, 999]);
    }

    #[test]
    fn closed_session_without_poll_is_forgotten_after_sweeps() {
        let polls = LongPolls::default();
        let (sender, outgoing) = mpsc::channel(1);
        let line = Turn::new(Line { outgoing, kept: VecDeque::new(), sent: 0, taken: 0 });
        polls.lock().insert((MachineId::new("m-1"), 1), Arc::new(of(Conn(1), line)));
        let left_after = |sweeps: u32| {
            (0..sweeps).for_each(|_| polls.sweep());
            polls.lock().len()
        };
        assert_eq!(left_after(2 * SWEEPS_KEPT), 1, "it stands");
        sender.try_send(Outgoing::Close(Reason::Replaced.into())).unwrap();
        drop(sender);
        assert_eq!(left_after(SWEEPS_KEPT), 1, "its last frame waits for a poll");
        assert_eq!(left_after(1), 0);
    }
}
