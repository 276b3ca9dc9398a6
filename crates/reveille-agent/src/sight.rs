//! What is there of this machine's join: inspected now and then, and how often in a row it was the same.
//!
//! An inspection that does not end in time is none, and takes what was known before with it: nothing is decided from
//! something old. That somebody takes the machine away is remembered beyond the Node that said so, until the Node is
//! Ready again and says otherwise.

use reveille_core::model::time::{Span, Time};

use crate::effect::Effect;
use crate::model::{Credentials, Flight, FlightId, Inspection, Leaving, NodeSeen};
use crate::state::Turn;

/// Within this an inspection ends: a few requests, each with a deadline of its own.
const INSPECT_WITHIN: Span = Span::from_s(20);

/// What was last seen.
#[derive(Clone, Debug, Default)]
pub(crate) struct Sight {
    flight: Option<Flight>,
    next_at: Option<Time>,
    found: Option<Inspection>,
    /// The inspection that `found` is of.
    read: FlightId,
    readings: u32,
    absent: u32,
    leaving: Option<Leaving>,
    ready_since: Option<Time>,
}

impl Sight {
    /// Nothing is seen yet; what was remembered of going away is.
    pub(crate) fn remembering(leaving: Option<Leaving>) -> Self {
        Self { leaving, ..Self::default() }
    }

    pub(crate) const fn found(&self) -> Option<&Inspection> {
        self.found.as_ref()
    }

    /// How often in a row the credentials were found as they are.
    pub(crate) const fn readings(&self) -> u32 {
        self.readings
    }

    /// How often in a row the Node was found absent although the credentials were accepted.
    pub(crate) const fn absent_in_a_row(&self) -> u32 {
        self.absent
    }

    pub(crate) const fn leaving(&self) -> Option<Leaving> {
        self.leaving
    }

    /// What was seen, and remembered of going away, counts no more; it is looked at now.
    pub(crate) fn look_anew(&mut self) {
        (self.leaving, self.found, self.next_at) = (None, None, None);
    }

    /// It is looked at now, and nothing is decided before. What was remembered of going away stays.
    pub(crate) fn look_again(&mut self) {
        (self.found, self.next_at) = (None, None);
    }

    pub(crate) const fn ready_since(&self) -> Option<Time> {
        self.ready_since
    }

    /// There is a finding of an inspection that was asked for after that one.
    pub(crate) fn is_newer_than(&self, asked: FlightId) -> bool {
        self.found.is_some() && self.read > asked
    }

    /// The next inspection is due now. Returns the number that it will be newer than.
    pub(crate) fn want_anew(&mut self, turn: &Turn<'_>) -> FlightId {
        self.next_at = Some(turn.now);
        // One that is under way already was asked before.
        self.flight.map_or(self.read, |flight| flight.id)
    }

    pub(crate) fn inspected(&mut self, turn: &Turn<'_>, id: FlightId, found: Inspection) {
        if self.flight.is_none_or(|flight| flight.id != id) {
            return;
        }
        (self.flight, self.read) = (None, id);
        let same = self.found.as_ref().is_some_and(|before| before.credentials == found.credentials);
        self.readings = if same { self.readings.saturating_add(1) } else { 1 };
        let unregistered = found.node == NodeSeen::Absent && found.credentials == Credentials::Accepted;
        self.absent = if unregistered { self.absent.saturating_add(1) } else { 0 };
        let ready = found.node == NodeSeen::Ready;
        self.ready_since = if ready { self.ready_since.or(Some(turn.now)) } else { None };
        // Ready again and not told to go: whoever wanted it away thought better of it.
        self.leaving = if ready { found.leaving } else { found.leaving.or(self.leaving) };
        self.found = Some(found);
    }

    pub(crate) fn advance(&mut self, turn: &mut Turn<'_>, reaches: bool) {
        if self.flight.is_some_and(|flight| turn.is_over(flight)) {
            (self.flight, self.found) = (None, None);
            (self.readings, self.absent, self.ready_since) = (0, 0, None);
        }
        let due = self.next_at.is_none_or(|at| at <= turn.now);
        if reaches && self.flight.is_none() && due {
            let flight = turn.fly(INSPECT_WITHIN);
            turn.out.push(Effect::Inspect(flight.id, INSPECT_WITHIN));
            self.flight = Some(flight);
            self.next_at = Some(turn.now + turn.settings.inspect_every);
        }
    }

    /// Nothing of before counts, except that somebody wants the machine away.
    pub(crate) fn slept(&mut self) {
        *self = Self { leaving: self.leaving, read: self.read, ..Self::default() };
    }

    pub(crate) fn moments(&self, reaches: bool) -> impl Iterator<Item = Time> {
        let waited = self.flight.map(|flight| flight.until);
        let next = self.next_at.filter(|_| reaches && self.flight.is_none());
        waited.into_iter().chain(next)
    }
}
