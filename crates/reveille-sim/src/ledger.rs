//! The ledger of a simulated process: what is durable, what is on its way, and what was refused.
//!
//! A record is asked for, becomes durable some milliseconds later, and is acknowledged after that, in order. A crash
//! keeps what is durable, acknowledged or not, and loses the rest: the engine must live with a record whose
//! acknowledgement never came. It keeps records as values; their bytes on disk are another crate's business.

use std::collections::{BTreeSet, VecDeque};

use reveille_core::event::Event;
use reveille_core::model::id::{IntentId, RecordId};
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
    /// Intents that were ever durable here, also before a rotation.
    intents: BTreeSet<IntentId>,
    twice: Option<IntentId>,
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
            intents: BTreeSet::new(),
            twice: None,
        }
    }

    /// While the disk is full, every record is refused.
    pub const fn set_full(&mut self, full: bool) {
        self.full = full;
    }

    /// A record that is durable at once, without an acknowledgement: the driver's own.
    pub fn keep(&mut self, record: Record) {
        self.put(record);
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
            let record = waiting.record.clone();
            self.put(record);
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
            self.put(waiting.record);
        }
        Some(Event::Recorded(waiting.id))
    }

    /// The process dies while it writes. Of the records on their way, so many are whole on the disk, although the engine was not
    /// told. The next one is torn, and reading the ledger back leaves it out.
    pub fn tear(&mut self, whole: usize) {
        let written = |waiting: &Waiting| !waiting.refused && !waiting.durable;
        let whole: Vec<Record> = std::mem::take(&mut self.waiting)
            .into_iter()
            .filter(written)
            .take(whole)
            .map(|it| it.record)
            .collect();
        whole.into_iter().for_each(|record| self.put(record));
    }

    /// The ledger as seen by a process that no longer holds it: no process reads its file, and, when `refused`, the ledger takes
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

    fn put(&mut self, record: Record) {
        if let Record::Intended { intent, .. } = &record
            && !self.intents.insert(*intent)
        {
            self.twice = Some(*intent);
        }
        self.kept.push(record);
    }

    /// An intent whose number stands in this ledger twice, told once.
    pub const fn take_twice(&mut self) -> Option<IntentId> {
        self.twice.take()
    }

    /// What is durable, in order.
    pub fn records(&self) -> &[Record] {
        &self.kept
    }

    /// Puts a checkpoint in the place of everything durable. What was on its way is written before it, and the checkpoint
    /// holds what came of it.
    pub fn rotate(&mut self, checkpoint: Vec<Record>) {
        self.waiting.iter_mut().for_each(|waiting| waiting.durable |= !waiting.refused);
        self.kept = checkpoint;
    }
}
