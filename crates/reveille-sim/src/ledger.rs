//! The ledger of a simulated process: what is durable, what is on its way, and what was refused.
//!
//! A record is asked for, becomes durable some milliseconds later, and is acknowledged after that, in order. A crash
//! keeps what is durable, acknowledged or not, and loses the rest: the engine must live with a record whose
//! acknowledgement never came. It keeps records as values; their bytes on disk are another crate's business.

use std::collections::VecDeque;

use reveille_core::event::Event;
use reveille_core::model::id::RecordId;
use reveille_core::model::time::{Span, Time};
use reveille_core::record::Record;

use crate::rng::{Rng, Stream};

/// The ledger.
#[derive(Clone, Debug)]
pub struct Store {
    kept: Vec<Record>,
    waiting: VecDeque<Waiting>,
    delays: Rng,
    last_due: Time,
    full: bool,
}

#[derive(Clone, Debug)]
struct Waiting {
    due: Time,
    id: RecordId,
    record: Record,
    refused: bool,
    durable: bool,
}

impl Store {
    /// An empty ledger.
    pub const fn new(seed: u64) -> Self {
        Self {
            kept: Vec::new(),
            waiting: VecDeque::new(),
            delays: Rng::new(seed, Stream::Ledger),
            last_due: Time::from_ms(0),
            full: false,
        }
    }

    /// While the disk is full, every record is refused.
    pub const fn set_full(&mut self, full: bool) {
        self.full = full;
    }

    /// A record that is durable at once, without an acknowledgement: the driver's own.
    pub fn keep(&mut self, record: Record) {
        self.kept.push(record);
    }

    /// Asks for a record to be kept.
    pub fn ask(&mut self, now: Time, id: RecordId, record: Record) {
        let due = (now + self.delays.span(Span::from_ms(1), Span::from_ms(15))).max(self.last_due);
        self.last_due = due;
        self.waiting.push_back(Waiting { due, id, record, refused: self.full, durable: false });
    }

    /// When the next answer is due.
    pub fn next_at(&self) -> Option<Time> {
        self.waiting.front().map(|waiting| waiting.due)
    }

    /// The record that is answered next, if it is due and will be kept: the last moment at which a crash finds it
    /// durable and unacknowledged.
    pub fn about_to_acknowledge(&self, now: Time) -> Option<&Record> {
        self.waiting.front().filter(|w| w.due <= now && !w.refused).map(|waiting| &waiting.record)
    }

    /// Makes the next record durable without acknowledging it.
    pub fn make_durable(&mut self) {
        if let Some(waiting) = self.waiting.front_mut().filter(|w| !w.refused && !w.durable) {
            waiting.durable = true;
            self.kept.push(waiting.record.clone());
        }
    }

    /// The next answer that is due.
    pub fn answer(&mut self, now: Time) -> Option<Event> {
        self.next_at().filter(|due| *due <= now)?;
        let waiting = self.waiting.pop_front()?;
        if waiting.refused {
            return Some(Event::RecordFailed(waiting.id));
        }
        if !waiting.durable {
            self.kept.push(waiting.record);
        }
        Some(Event::Recorded(waiting.id))
    }

    /// The process dies while it writes: of what is on its way, so many records are whole on the disk, without anybody
    /// having been told; the one after them is torn, and reading the ledger back leaves it out.
    pub fn tear(&mut self, whole: usize) {
        for waiting in self.waiting.iter().filter(|waiting| !waiting.refused && !waiting.durable).take(whole)
        {
            self.kept.push(waiting.record.clone());
        }
        self.waiting.clear();
    }

    /// The ledger as a process has it that holds it no more: its file is read by nobody, and, when `refused`, it takes
    /// nothing.
    pub fn estranged(&self, refused: bool) -> Self {
        let mut own = self.clone();
        own.full = refused;
        for waiting in own.waiting.iter_mut().filter(|waiting| !waiting.durable) {
            waiting.refused |= refused;
        }
        own
    }

    /// The process dies: what is not durable is lost.
    pub fn crash(&mut self) {
        self.waiting.clear();
    }

    /// What is durable, in order.
    pub fn records(&self) -> &[Record] {
        &self.kept
    }

    /// Puts a checkpoint in the place of everything durable.
    pub fn rotate(&mut self, checkpoint: Vec<Record>) {
        self.kept = checkpoint;
    }
}
