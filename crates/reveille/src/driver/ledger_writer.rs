//! The thread that makes records durable, so that a slow disk holds up nothing but what rests on it.
//!
//! ```text
//!  driver ─▶ Order: keep a step's records / rotate / beat ─▶ thread: drain, few writes, one fsync for many ─▶ Ack
//! ```
//!
//! The records of one step are one order, however many they are: 10,000 nodes that turn NotReady in one list are 20,000
//! records. An order is never refused for its size. The bound is on the driver's side: while [`LedgerWriter::has_room`] is false
//! it takes no further event, so what waits is at most [`OUTSTANDING_MAX`] records and one step. Everything that waits
//! when the thread comes back from the disk is written in batches, one fsync for each. Answers come back in the order of
//! the questions.
//!
//! After a refusal (a full disk) the ledger lags behind the engine's memory; the thread asks for a checkpoint as soon as
//! it can write again ([`Ack::WantsCheckpoint`]), which heals that.

use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::mpsc::{Receiver, Sender, channel};
use std::thread::JoinHandle;

use reveille_core::model::id::RecordId;
use reveille_core::model::time::Time;
use reveille_core::record::Record;
use tokio::sync::mpsc;

use super::ledger_backend::LedgerBackend;

/// While more records than this have no answer, the driver takes no further event.
pub(crate) const OUTSTANDING_MAX: usize = 8192;
/// Records in one batch, and in one answer: as many as the loop takes in within a few milliseconds.
const BATCH_MAX: usize = 1024;

enum Order {
    Keep(Vec<(RecordId, Record)>),
    Rotate(Vec<Record>),
    Beat(Time),
    End,
}

/// What the thread answers.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) enum Ack {
    /// Durable.
    Kept(Vec<RecordId>),
    /// Not durable, now or later.
    Refused(Vec<(RecordId, Record)>),
    /// The ledger takes nothing more in this process; ending it and starting again mends that. Said once.
    Over,
    /// The segment is full, or records were refused before: hand over a checkpoint.
    WantsCheckpoint,
}

/// The ledger's thread has ended; these records were not taken.
#[derive(Debug)]
pub(crate) struct Ended(pub(crate) Vec<RecordId>);

/// The driver's end of it.
pub(crate) struct LedgerWriter {
    /// Unbounded by itself: [`LedgerWriter::has_room`] bounds the records, `asked` the checkpoints and `beats` the heartbeats.
    orders: Sender<Order>,
    thread: Option<JoinHandle<()>>,
    outstanding: usize,
    /// A heartbeat waits for the thread.
    beats: Arc<AtomicBool>,
}

impl LedgerWriter {
    /// Starts the thread. Answers arrive on the receiver.
    pub(crate) fn start(
        ledger_backend: Box<dyn LedgerBackend>,
    ) -> std::io::Result<(Self, mpsc::UnboundedReceiver<Ack>)> {
        let (orders, inbox) = channel();
        // One answer for each batch of what is outstanding, and that is bounded.
        let (acks, receiver) = mpsc::unbounded_channel();
        let beats = Arc::new(AtomicBool::new(false));
        let hand =
            Hand { ledger_backend, acks, beats: beats.clone(), lagging: false, asked: false, over: false };
        let thread =
            std::thread::Builder::new().name("ledger".to_owned()).spawn(move || hand.work(&inbox))?;
        Ok((Self { orders, thread: Some(thread), outstanding: 0, beats }, receiver))
    }

    /// True while a further event may be taken.
    pub(crate) const fn has_room(&self) -> bool {
        self.outstanding < OUTSTANDING_MAX
    }

    /// Hands over the records of one step, in order.
    pub(crate) fn keep(&mut self, records: Vec<(RecordId, Record)>) -> Result<(), Ended> {
        if records.is_empty() {
            return Ok(());
        }
        let count = records.len();
        match self.orders.send(Order::Keep(records)) {
            Ok(()) => {
                self.outstanding += count;
                Ok(())
            }
            Err(unsent) => {
                let Order::Keep(records) = unsent.0 else { return Ok(()) };
                Err(Ended(records.into_iter().map(|(id, _)| id).collect()))
            }
        }
    }

    /// Hands over a record of our own that nothing rests on; its answer means nothing to the engine.
    pub(crate) fn note(&mut self, record: Record) -> Result<(), Ended> {
        self.keep(vec![(RecordId(0), record)])
    }

    /// An answer about so many records arrived.
    pub(crate) const fn answered(&mut self, count: usize) {
        self.outstanding = self.outstanding.saturating_sub(count);
    }

    /// Records without an answer.
    pub(crate) const fn outstanding(&self) -> usize {
        self.outstanding
    }

    /// Hands over a checkpoint. Once the thread has ended nothing is rotated.
    pub(crate) fn rotate(&self, checkpoint: Vec<Record>) {
        drop(self.orders.send(Order::Rotate(checkpoint)));
    }

    /// Notes that we live. While one heartbeat waits for a slow disk, no second one does.
    pub(crate) fn beat(&self, now: Time) {
        if !self.beats.swap(true, Ordering::AcqRel) {
            drop(self.orders.send(Order::Beat(now)));
        }
    }

    /// Ends the thread after everything that was handed over. Blocks until the disk has answered.
    pub(crate) fn end(mut self) {
        drop(self.orders.send(Order::End));
        let thread = self.thread.take();
        drop(self);
        if let Some(thread) = thread
            && thread.join().is_err()
        {
            tracing::error!("the ledger's thread ended by a panic");
        }
    }
}

struct Hand {
    ledger_backend: Box<dyn LedgerBackend>,
    acks: mpsc::UnboundedSender<Ack>,
    beats: Arc<AtomicBool>,
    /// Records were refused that the engine remembers.
    lagging: bool,
    /// A checkpoint was asked for and has not come yet.
    asked: bool,
    /// It was said that the ledger is over.
    over: bool,
}

impl Hand {
    fn work(mut self, inbox: &Receiver<Order>) {
        while let Ok(first) = inbox.recv() {
            let mut batch = Vec::new();
            let mut next = Some(first);
            while let Some(order) = next.take() {
                match order {
                    Order::Keep(records) => {
                        batch.extend(records);
                        if batch.len() < BATCH_MAX {
                            next = inbox.try_recv().ok();
                        }
                    }
                    other => {
                        self.keep(std::mem::take(&mut batch));
                        if !self.other(other) {
                            return;
                        }
                    }
                }
            }
            self.keep(batch);
        }
    }

    fn keep(&mut self, mut batch: Vec<(RecordId, Record)>) {
        while !batch.is_empty() {
            let rest = batch.split_off(batch.len().min(BATCH_MAX));
            let (ids, records): (Vec<_>, Vec<_>) = std::mem::replace(&mut batch, rest).into_iter().unzip();
            self.keep_batch(&ids, &records);
        }
    }

    fn keep_batch(&mut self, ids: &[RecordId], records: &[Record]) {
        let answers = self.ledger_backend.keep(records);
        assert!(answers.len() == ids.len(), "the backend answers for every record");
        let mut refused: Option<Arc<str>> = None;
        let answered: Vec<_> = ids.iter().copied().zip(records).zip(answers).collect();
        for row in answered.chunk_by(|(_, one), (_, next)| one == next) {
            match row.first().map(|(_, answer)| answer) {
                Some(Err(why)) => {
                    let unkept = row.iter().map(|((id, record), _)| (*id, Record::clone(record))).collect();
                    self.say(Ack::Refused(unkept));
                    refused = Some(why.clone());
                }
                _ => self.say(Ack::Kept(row.iter().map(|((id, _), _)| *id).collect())),
            }
        }
        if let Some(why) = refused {
            self.lagging = true;
            tracing::error!("the ledger refused records, and nothing that rests on them is done: {why}");
            self.check_over();
        } else if (self.lagging || self.ledger_backend.rotation_due()) && !self.asked {
            self.asked = true;
            self.say(Ack::WantsCheckpoint);
        }
    }

    fn other(&mut self, order: Order) -> bool {
        match order {
            Order::Rotate(checkpoint) => {
                self.asked = false;
                match self.ledger_backend.rotate(&checkpoint) {
                    Ok(()) => self.lagging = false,
                    Err(why) => tracing::error!("the ledger was not rotated: {why}"),
                }
                self.check_over();
            }
            Order::Beat(now) => {
                self.beats.store(false, Ordering::Release);
                if let Err(why) = self.ledger_backend.beat(now) {
                    tracing::warn!("{why}");
                }
                self.check_over();
            }
            Order::Keep(_) => {}
            Order::End => return false,
        }
        true
    }

    fn check_over(&mut self) {
        if self.ledger_backend.is_over() && !self.over {
            self.over = true;
            self.say(Ack::Over);
        }
    }

    /// Nobody listening means that the driver is gone; what is durable is durable all the same.
    fn say(&self, ack: Ack) {
        drop(self.acks.send(ack));
    }
}
