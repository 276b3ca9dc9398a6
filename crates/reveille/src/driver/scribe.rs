//! The thread that makes records durable, so that a slow disk holds up nothing but what rests on it.
//!
//! ```text
//!  driver ─▶ Order: keep / rotate / beat (bounded queue) ─▶ thread: drain, one write and one fsync for all ─▶ Ack
//! ```
//!
//! Everything that waits when the thread comes back from the disk is one batch: one fsync for many records. Answers come
//! back in the order of the questions. When the queue is full the record is refused at once, like a record that a full
//! disk refused: whatever rests on it does not happen.
//!
//! After a refusal the ledger lags behind the engine's memory; the thread asks for a checkpoint as soon as it can write
//! again ([`Ack::WantsCheckpoint`]), which heals that.

use std::sync::Arc;
use std::sync::mpsc::{Receiver, SyncSender, TrySendError, sync_channel};
use std::thread::JoinHandle;

use reveille_core::model::id::RecordId;
use reveille_core::model::time::Time;
use reveille_core::record::Record;
use tokio::sync::mpsc;

use super::keeper::Keeper;

/// Orders that may wait for the disk.
const ORDERS_MAX: usize = 8192;
/// Records in one batch.
const BATCH_MAX: usize = 512;

enum Order {
    Keep(RecordId, Record),
    Rotate(Vec<Record>),
    Beat(Time),
    End,
}

/// What the thread answers.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) enum Ack {
    /// Durable.
    Kept(RecordId),
    /// Not durable, now or later, and why.
    Refused(RecordId, Arc<str>),
    /// The ledger takes nothing more in this process; ending it and starting again mends that. Said once.
    Over,
    /// The segment is full, or records were refused before: hand over a checkpoint.
    WantsCheckpoint,
}

/// The driver's end of it.
pub(crate) struct Scribe {
    orders: SyncSender<Order>,
    thread: Option<JoinHandle<()>>,
    outstanding: usize,
}

impl Scribe {
    /// Starts the thread. Answers arrive on the receiver.
    pub(crate) fn start(keeper: Box<dyn Keeper>) -> std::io::Result<(Self, mpsc::Receiver<Ack>)> {
        let (orders, inbox) = sync_channel(ORDERS_MAX);
        // Room for an answer to every record that may be outstanding, the wish for a checkpoint, and the end.
        let (acks, receiver) = mpsc::channel(ORDERS_MAX + 3);
        let thread = std::thread::Builder::new()
            .name("ledger".to_owned())
            .spawn(move || Hand { keeper, acks, lagging: false, asked: false, over: false }.work(&inbox))?;
        Ok((Self { orders, thread: Some(thread), outstanding: 0 }, receiver))
    }

    /// Hands over a record. `Err`: it was refused at once.
    pub(crate) fn keep(&mut self, id: RecordId, record: Record) -> Result<(), Arc<str>> {
        if self.outstanding >= ORDERS_MAX {
            return Err(Arc::from("the disk does not keep up: too many records wait for it"));
        }
        match self.orders.try_send(Order::Keep(id, record)) {
            Ok(()) => {
                self.outstanding += 1;
                Ok(())
            }
            Err(TrySendError::Full(_)) => {
                Err(Arc::from("the disk does not keep up: too many records wait for it"))
            }
            Err(TrySendError::Disconnected(_)) => Err(Arc::from("the ledger has ended")),
        }
    }

    /// Hands over a record of our own that nothing rests on; its answer means nothing to the engine.
    pub(crate) fn note(&mut self, record: Record) -> Result<(), Arc<str>> {
        self.keep(RecordId(0), record)
    }

    /// An answer about a record arrived.
    pub(crate) fn answered(&mut self) {
        self.outstanding = self.outstanding.saturating_sub(1);
    }

    /// Records without an answer.
    pub(crate) const fn outstanding(&self) -> usize {
        self.outstanding
    }

    /// Hands over a checkpoint. A full queue drops it: the next batch asks again.
    pub(crate) fn rotate(&self, checkpoint: Vec<Record>) {
        drop(self.orders.try_send(Order::Rotate(checkpoint)));
    }

    /// Notes that we live. A full queue drops it: nothing depends on one heartbeat.
    pub(crate) fn beat(&self, now: Time) {
        drop(self.orders.try_send(Order::Beat(now)));
    }

    /// Ends the thread after everything that was handed over. Blocks until the disk has answered.
    pub(crate) fn end(mut self) {
        // A full queue ends when its sender is dropped.
        drop(self.orders.try_send(Order::End));
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
    keeper: Box<dyn Keeper>,
    acks: mpsc::Sender<Ack>,
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
            let mut ids = Vec::new();
            let mut records = Vec::new();
            let mut next = Some(first);
            while let Some(order) = next.take() {
                match order {
                    Order::Keep(id, record) => {
                        ids.push(id);
                        records.push(record);
                        if ids.len() < BATCH_MAX {
                            next = inbox.try_recv().ok();
                        }
                    }
                    other => {
                        self.keep(&mut ids, &mut records);
                        if !self.other(other) {
                            return;
                        }
                    }
                }
            }
            self.keep(&mut ids, &mut records);
        }
    }

    fn keep(&mut self, ids: &mut Vec<RecordId>, records: &mut Vec<Record>) {
        if ids.is_empty() {
            return;
        }
        let answers = self.keeper.keep(records);
        assert!(answers.len() == ids.len(), "the keeper answers for every record");
        let mut refused: Option<Arc<str>> = None;
        for (id, answer) in ids.drain(..).zip(answers) {
            match answer {
                Ok(()) => self.say(Ack::Kept(id)),
                Err(why) => {
                    self.say(Ack::Refused(id, why.clone()));
                    refused = Some(why);
                }
            }
        }
        if let Some(why) = refused {
            self.lagging = true;
            tracing::error!("the ledger refused records, and nothing that rests on them is done: {why}");
            self.check_over();
        } else if (self.lagging || self.keeper.rotation_due()) && !self.asked {
            self.asked = true;
            self.say(Ack::WantsCheckpoint);
        }
        records.clear();
    }

    fn other(&mut self, order: Order) -> bool {
        match order {
            Order::Rotate(checkpoint) => {
                self.asked = false;
                match self.keeper.rotate(&checkpoint) {
                    Ok(()) => self.lagging = false,
                    Err(why) => tracing::error!("the ledger was not rotated: {why}"),
                }
                self.check_over();
            }
            Order::Beat(now) => {
                if let Err(why) = self.keeper.beat(now) {
                    tracing::warn!("{why}");
                }
                self.check_over();
            }
            Order::Keep(..) => {}
            Order::End => return false,
        }
        true
    }

    fn check_over(&mut self) {
        if self.keeper.is_over() && !self.over {
            self.over = true;
            self.say(Ack::Over);
        }
    }

    /// Nobody listening means that the driver is gone; what is durable is durable all the same.
    fn say(&self, ack: Ack) {
        drop(self.acks.try_send(ack));
    }
}
