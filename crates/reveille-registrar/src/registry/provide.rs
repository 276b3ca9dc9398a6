//! What a machine lacks: its plan, the roles that must exist before it, the token for its join.
//!
//! ```text
//!  no template ─▶ WAIT_PLAN      plan it does not hold ─▶ Plan      its node is there ─▶ nothing more
//!  cluster silent or roles missing ─▶ WAIT_ROLE      no token ─▶ MakeToken, WAIT_TOKEN ─▶ Token, and another before it ends
//! ```
//!
//! The registry asks for a token when a machine waits for one, and asks for only one at a time. All tokens of a machine
//! are deleted when it has joined. The registry knows that there is a token and when it ends. The server's thread keeps
//! the token itself, in memory, and no record holds it.

use reveille_core::model::stage::Stage;
use reveille_core::model::time::{Span, Time};
use reveille_wire::agent::plan::Held;
use reveille_wire::agent::text::{List, Sentence};
use reveille_wire::agent::{Reason, ServerFrame};

use super::ids::{Conn, MachineId};
use super::machine::Machine;
use super::record::Record;
use super::{Effect, Registry, Turn};

const DAY: Span = Span::from_min(24 * 60);
/// The first pause after a failed attempt to make a token; it doubles each time.
const TOKEN_BACKOFF: Span = Span::from_s(5);
const TOKEN_BACKOFF_MAX: Span = Span::from_min(5);

/// A machine's token, as far as the registry knows it.
#[derive(Clone, Debug)]
pub(super) struct Token {
    state: State,
    failures: u32,
    why: Sentence,
    /// The number of tokens made since, or being made. A failed attempt does not count; its backoff limits it.
    count: u32,
    counted_since: Time,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum State {
    /// The token is being made, and counts as failed after `until`. It is deleted on arrival if no machine wants it any
    /// more.
    Making { until: Time, before: Option<(Time, Time)>, is_wanted: bool },
    /// The token exists.
    Made { at: Time, until: Time },
    /// The token could not be made.
    Failed { again_at: Time },
    /// The token was deleted.
    None,
}

impl Token {
    /// The pause after a failed attempt keeps its length. The end of an existing token does not move, because the cluster
    /// counts it too.
    pub(super) fn clock_set(&mut self, by: Span) {
        self.counted_since = self.counted_since + by;
        match &mut self.state {
            State::Making { until: at, .. } | State::Failed { again_at: at } => *at = *at + by,
            State::Made { .. } | State::None => {}
        }
    }

    fn failed(&mut self, now: Time, why: Sentence) {
        self.why = why;
        self.state =
            State::Failed { again_at: now + TOKEN_BACKOFF.doubled(self.failures, TOKEN_BACKOFF_MAX) };
        self.failures = self.failures.saturating_add(1);
    }
}

impl Registry {
    /// Provides every machine that has a session and that `meant` accepts.
    pub(super) fn provide_all(&mut self, turn: &mut Turn, meant: impl Fn(&Machine) -> bool) {
        let conns: Vec<Conn> = self
            .conn_of
            .iter()
            .filter(|(id, _)| self.index.machine(id).is_some_and(&meant))
            .map(|(_, conn)| *conn)
            .collect();
        for conn in conns {
            self.provide(turn, conn);
        }
    }

    /// Sends what this machine lacks and can get.
    pub(super) fn provide(&mut self, turn: &mut Turn, conn: Conn) {
        let Some(session) = self.sessions.get(&conn) else { return };
        let (id, joined) = (session.machine.clone(), session.joined);
        match self.give_plan(turn, conn, &id) {
            Ok(()) if joined => self.tell_wait(turn, conn, &id, None),
            Ok(()) => {
                let wait = self.give_token(turn, conn, &id).err();
                self.tell_wait(turn, conn, &id, wait);
            }
            Err(wait) => self.tell_wait(turn, conn, &id, Some(wait)),
        }
    }

    fn give_plan(&mut self, turn: &mut Turn, conn: Conn, id: &MachineId) -> Result<(), Reason> {
        let Some(known) = self.index.machine(id) else { return Ok(()) };
        let Some(template) = self.plans.of(known) else {
            let why = format!(
                "none that can be followed is written for pool {} of roster {}; the server's log says what is wrong with one",
                known.pool, known.roster
            );
            return Err(Reason::WaitPlan { why: Sentence::cut(&why) });
        };
        let plan = template.plan(known);
        let held = Held { version: plan.version, checksum: plan.checksum.clone() };
        if known.plan != held {
            self.record(turn, Record::Planned { machine: id.clone(), plan: held.clone() });
        }
        let Some(session) = self.sessions.get_mut(&conn) else { return Ok(()) };
        if session.holds.checksum != held.checksum {
            session.holds = held;
            turn.out.push(Effect::Send(conn, ServerFrame::Plan(plan)));
        }
        Ok(())
    }

    fn give_token(&mut self, turn: &mut Turn, conn: Conn, id: &MachineId) -> Result<(), Reason> {
        let Some(known) = self.index.machine(id) else { return Ok(()) };
        let needs = self.plans.of(known).map(|template| template.needs.clone()).unwrap_or_default();
        match self.cluster.get(&known.roster).and_then(Option::as_ref) {
            Some(present) => {
                let missing: Vec<_> = needs.difference(present).copied().collect();
                if !missing.is_empty() {
                    return Err(Reason::WaitRole { missing: List::first(missing) });
                }
            }
            None if needs.is_empty() => {}
            None => {
                return Err(Reason::WaitPlan {
                    why: "it is unknown what the cluster has: its API server does not answer".into(),
                });
            }
        }
        let roster = known.roster.clone();
        let state = self.tokens.get(id).map(|token| token.state);
        match state {
            Some(State::Made { until, .. } | State::Making { before: Some((_, until)), .. })
                if turn.now < until =>
            {
                turn.out.push(Effect::SendToken(conn, id.clone()));
                Ok(())
            }
            Some(State::Making { .. }) => {
                self.want_token(id);
                Err(wait_token("it is being made"))
            }
            Some(State::Failed { again_at }) if turn.now < again_at => {
                let why = self.tokens.get(id).map(|token| token.why.clone()).unwrap_or_default();
                Err(Reason::WaitToken { why })
            }
            _ => {
                self.make_token(turn, id, roster)?;
                Err(wait_token("it is being made"))
            }
        }
    }

    fn make_token(
        &mut self,
        turn: &mut Turn,
        id: &MachineId,
        roster: reveille_core::model::id::RosterName,
    ) -> Result<(), Reason> {
        let fresh = Token {
            state: State::None,
            failures: 0,
            why: Sentence::default(),
            count: 0,
            counted_since: turn.now,
        };
        let token = self.tokens.entry(id.clone()).or_insert(fresh);
        if turn.now.since(token.counted_since) >= DAY {
            (token.count, token.counted_since) = (0, turn.now);
        }
        if token.count >= self.settings.tokens_a_day {
            return Err(Reason::TooMany { of: "tokens for one machine in a day".into() });
        }
        token.count += 1;
        let before = match token.state {
            State::Made { at, until } if turn.now < until => Some((at, until)),
            _ => None,
        };
        token.state = State::Making { until: turn.now + self.settings.token_within, before, is_wanted: true };
        turn.out.push(Effect::MakeToken { machine: id.clone(), roster, ttl: self.settings.token_ttl });
        Ok(())
    }

    pub(super) fn token_made(&mut self, turn: &mut Turn, id: &MachineId, outcome: Result<(), Sentence>) {
        let state = self.tokens.get(id).map_or(State::None, |token| token.state);
        let is_unwanted = matches!(state, State::None | State::Making { is_wanted: false, .. });
        if outcome.is_ok() && (is_unwanted || self.needs_none(id)) {
            // The machine does not need the token any more.
            if let Some(token) = self.tokens.get_mut(id) {
                // A token that was given up was not counted.
                token.count += u32::from(matches!(token.state, State::Failed { .. }));
                token.state = State::None;
            }
            return self.take_away(turn, id);
        }
        let Some(token) = self.tokens.get_mut(id) else { return };
        let before = match (token.state, &outcome) {
            (State::Making { before, .. }, _) => before,
            // The token was deleted while it was being made. A machine that waits for the next one also waits out the
            // pause of this failure.
            (State::None, Err(why)) => return token.failed(turn.now, why.clone()),
            (State::Failed { .. } | State::Made { .. }, Ok(())) => {
                // The registry gave the token up, and it arrives after all: the token issuer was slow, and may be slow
                // again.
                token.count = token.count.saturating_add(1);
                None
            }
            (State::None | State::Failed { .. } | State::Made { .. }, _) => return,
        };
        match outcome {
            Ok(()) => {
                token.failures = 0;
                token.state = State::Made { at: turn.now, until: turn.now + self.settings.token_ttl };
            }
            Err(why) => {
                token.failed(turn.now, why);
                if let Some((_, until)) = before.filter(|(_, until)| turn.now < *until) {
                    // The time counts from now on, so that the next attempt has its time, too.
                    token.state = State::Made { at: turn.now, until };
                }
                token.count = token.count.saturating_sub(1);
            }
        }
        // If no machine waits for the token any more, it is sent when the machine comes again, or it expires.
        if let Some(conn) = self.conn_of.get(id).copied() {
            self.provide(turn, conn);
        }
    }

    pub(super) fn drop_token(&mut self, turn: &mut Turn, id: &MachineId) {
        let Some(token) = self.tokens.get_mut(id) else { return };
        match &mut token.state {
            // There is nothing to delete, and a machine's messages do not shorten the pause after a failure.
            State::None | State::Failed { .. } | State::Making { is_wanted: false, .. } => return,
            // A machine that joins and leaves over and over does not get a second token made at the same time.
            State::Making { before, is_wanted, .. } => (*before, *is_wanted) = (None, false),
            State::Made { .. } => token.state = State::None,
        }
        self.take_away(turn, id);
    }

    fn want_token(&mut self, id: &MachineId) {
        if let Some(State::Making { is_wanted, .. }) = self.tokens.get_mut(id).map(|token| &mut token.state) {
            *is_wanted = true;
        }
    }

    /// The Node exists, or the machine or its Node was removed.
    fn needs_none(&self, id: &MachineId) -> bool {
        let session = self.conn_of.get(id).and_then(|conn| self.sessions.get(conn));
        let is_away = self.index.machine(id).is_none_or(|known| known.removed.is_some());
        is_away || session.is_some_and(|session| session.joined)
    }

    fn take_away(&self, turn: &mut Turn, id: &MachineId) {
        if let Some(known) = self.index.machine(id) {
            turn.out.push(Effect::DropToken { machine: id.clone(), roster: known.roster.clone() });
        }
    }

    /// Asks for new tokens in place of those that end soon while a machine waits; tokens without a waiting machine are
    /// forgotten at their end.
    pub(super) fn tend_tokens(&mut self, turn: &mut Turn) {
        let (now, ttl) = (turn.now, self.settings.token_ttl);
        let mut due = Vec::new();
        for (id, token) in &mut self.tokens {
            match token.state {
                // The token is deleted if it arrives after all.
                State::Making { until, is_wanted: false, .. } if until <= now => token.state = State::None,
                State::Making { until, .. } if until <= now => due.push((id.clone(), true)),
                State::Made { at, .. } if now.since(at).ms >= ttl.ms * 2 / 3 => due.push((id.clone(), false)),
                State::Failed { again_at } if again_at <= now => due.push((id.clone(), false)),
                _ => {}
            }
        }
        for (id, late) in due {
            if late {
                self.token_made(turn, &id, Err("the token issuer did not answer in time".into()));
                continue;
            }
            let waits = self
                .conn_of
                .get(&id)
                .copied()
                .filter(|conn| self.sessions.get(conn).is_some_and(|session| !session.joined));
            match (waits, self.index.machine(&id).map(|known| known.roster.clone())) {
                (Some(conn), Some(roster)) => {
                    let is_asked_for = self.make_token(turn, &id, roster).is_ok();
                    // A token that lasts is not sent again; a machine without one is told why.
                    if is_asked_for || !self.has_token(now, &id) {
                        self.provide(turn, conn);
                    }
                }
                _ => {
                    if let Some(token) = self.tokens.get_mut(&id)
                        && !matches!(token.state, State::Made { until, .. } if now < until)
                    {
                        token.state = State::None;
                    }
                }
            }
        }
        self.tokens.retain(|_, token| token.state != State::None || now.since(token.counted_since) < DAY);
    }

    fn has_token(&self, now: Time, id: &MachineId) -> bool {
        let state = self.tokens.get(id).map(|token| token.state);
        matches!(state, Some(State::Made { until, .. }) if now < until)
    }

    fn tell_wait(&mut self, turn: &mut Turn, conn: Conn, id: &MachineId, wait: Option<Reason>) {
        let Some(session) = self.sessions.get_mut(&conn) else { return };
        if session.told_wait == wait {
            return;
        }
        session.told_wait.clone_from(&wait);
        let told = wait.clone().map(reveille_wire::agent::Refused::from);
        let trouble = told.as_ref().map(|refused| (refused.reason.code(), refused.says.as_str()));
        self.note(turn, id, Stage::FetchConfig, trouble);
        if let Some(refused) = told {
            turn.out.push(Effect::Send(conn, ServerFrame::Wait(refused)));
        }
    }
}

fn wait_token(why: &str) -> Reason {
    Reason::WaitToken { why: why.into() }
}
