//! The thread that makes records durable, so that a slow disk delays only what depends on it.
//!
//! ```text
//!  driver ─▶ Order: keep a step's records / rotate / beat ─▶ thread: drain, few writes, one fsync for many ─▶ Ack
//! ```
//!
//! The records of one step are one order, however many they are: 10,000 nodes that turn NotReady in one list are 20,000
//! records. The writer never refuses an order for its size; the driver keeps the limit. While [`LedgerWriter::has_room`]
//! is false, the driver takes no further event, so at most [`OUTSTANDING_MAX`] records and one step wait. When the thread
//! comes back from the disk, it writes everything that waits in batches, with one fsync for each. Answers come back in
//! the order of the orders.
//!
//! After a refusal (a full disk) the ledger lags behind the engine's memory. As soon as the thread can write again, it
//! asks for a checkpoint ([`Ack::WantsCheckpoint`]), which closes the gap. Until then it writes no heartbeat: that one is
//! rewritten in place and succeeds on a full disk, and it tells the next process that everything before it is durable.

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
/// The most records in one batch and in one answer: the loop processes so many within a few milliseconds.
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
    /// These records are durable.
    Kept(Vec<RecordId>),
    /// These records are not durable, now or later.
    Refused(Vec<(RecordId, Record)>),
    /// This process can write no more records; a restart repairs that. Sent once.
    Over,
    /// The segment is full, or records were refused before: the driver has to send a checkpoint.
    WantsCheckpoint,
}

/// The ledger's thread has ended; these records were not taken.
#[derive(Debug)]
pub(crate) struct Ended(pub(crate) Vec<RecordId>);

/// The driver's handle of the thread.
pub(crate) struct LedgerWriter {
    /// The channel has no limit of its own: [`LedgerWriter::has_room`] limits the records, `asked` the checkpoints and
    /// `beats` the heartbeats.
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
        // There is one answer for each batch of outstanding records, and those have a limit.
        let (acks, receiver) = mpsc::unbounded_channel();
        let beats = Arc::new(AtomicBool::new(false));
        let hand =
            Hand { ledger_backend, acks, beats: beats.clone(), lagging: false, asked: false, over: false };
        let thread =
            std::thread::Builder::new().name("ledger".to_owned()).spawn(move || hand.work(&inbox))?;
        Ok((Self { orders, thread: Some(thread), outstanding: 0, beats }, receiver))
    }

    /// True while the driver may take a further event.
    pub(crate) const fn has_room(&self) -> bool {
        self.outstanding < OUTSTANDING_MAX
    }

    /// Passes on the records of one step, in order.
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

    /// Passes on a record of the program itself, on which nothing depends; the engine ignores its answer.
    pub(crate) fn note(&mut self, record: Record) -> Result<(), Ended> {
        self.keep(vec![(RecordId(0), record)])
    }

    /// An answer about this many records arrived.
    pub(crate) const fn answered(&mut self, count: usize) {
        self.outstanding = self.outstanding.saturating_sub(count);
    }

    /// The number of records without an answer.
    pub(crate) const fn outstanding(&self) -> usize {
        self.outstanding
    }

    /// Passes on a checkpoint. Once the thread has ended, nothing is rotated.
    pub(crate) fn rotate(&self, checkpoint: Vec<Record>) {
        drop(self.orders.send(Order::Rotate(checkpoint)));
    }

    /// Writes that this process is alive, unless the ledger lags. While one heartbeat waits for a slow disk, no second one is
    /// sent.
    pub(crate) fn beat(&self, now: Time) {
        if !self.beats.swap(true, Ordering::AcqRel) {
            drop(self.orders.send(Order::Beat(now)));
        }
    }

    /// Ends the thread after everything that was passed on. Blocks until the disk has answered.
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
    /// The ledger refused records that the engine remembers.
    lagging: bool,
    /// The thread asked for a checkpoint, which has not come yet.
    asked: bool,
    /// The thread has reported that the ledger is closed.
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
        } else if self.lagging || self.ledger_backend.rotation_due() {
            self.want_checkpoint();
        }
    }

    fn want_checkpoint(&mut self) {
        if !self.asked {
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
                if self.lagging {
                    // The engine does not offer a refused intent again, and may have nothing to record for hours.
                    self.want_checkpoint();
                } else if let Err(why) = self.ledger_backend.beat(now) {
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

    /// A closed channel means that the driver has ended; what is durable stays durable.
    fn say(&self, ack: Ack) {
        drop(self.acks.send(ack));
    }
}
