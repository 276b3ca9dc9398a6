//! The ledger keeps on a local disk what one process must not forget. The pauses that operators set lie beside it.
//! Recordings are a second kind of file ([`recording`]); no decision depends on them.
//!
//! ```text
//!  DIR/ledger/lock              who holds it, and when it was last alive
//!  DIR/ledger/0000000003.jsonl  a segment: a header, a checkpoint, then one line per record, newest last
//!  DIR/ledger/0000000002.jsonl  older segments, kept for history
//!  DIR/ledger/0000000003.torn   what a crash left of its last batch, kept for operators
//!  DIR/pauses/NAME.json         one pause each
//!
//!  append(&T) ─▶ buffer ─▶ sync(): one write, one fsync ─▶ durable         open(): lock, verify, cut the tail, replay
//!                             └─ failed: cut back to the last good byte    rotate(): checkpoint into a new segment
//! ```
//!
//! A record is durable when [`Ledger::sync`] has returned, and not before; what it acknowledged survives a kill at any
//! instruction and a power cut at any write. A batch that it refused is not in the ledger, also after a restart. One
//! process writes: the lock keeps others out, and every opening gets a [`Fence`] higher than all before it.
//!
//! Deliberately not here: what a record means (`T` is anything that serde can write and read), clocks (times are
//! arguments) and replication. File systems on a network are left out as well, because their locks and their fsync
//! promise less. The ledger refuses a file that is damaged in its middle and does not repair it by guessing;
//! [`read_lossy`] shows what is left.

mod config;
mod directory;
mod disk;
mod error;
mod ledger;
mod line;
mod lock;
mod pauses;
mod reading;
pub mod recording;
mod repair;
mod segment;
mod store;

#[cfg(test)]
mod memory_disk;
#[cfg(test)]
mod power_loss;

pub use config::Config;
pub use error::{
    AppendError, Damage, HeartbeatError, OpenError, PauseError, ReadError, RotateError, SyncError,
};
pub use ledger::{Ledger, Opened, Rotated};
pub use line::{Fence, Seq};
pub use lock::{FenceUnread, Holder, read_fence};
pub use pauses::{Pause, PauseName, PauseScope, Pauses, PausesRead};
pub use reading::{History, LossyReading, Reading, history, holder, read_lossy, read_only};
pub use repair::Repair;
pub use segment::SegmentNumber;
