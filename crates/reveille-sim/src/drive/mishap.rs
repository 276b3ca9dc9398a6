//! What happens to the controller's own process, and how it comes back.
//!
//! A crash is placed at a point in the life of an intent, because that is where it can hurt: between a decision and its
//! record, between a record and its call, between a call and its answer. A restart knows what was durable and nothing
//! else.

use reveille_core::engine::{Restored, Start, State};
use reveille_core::event::{Command, Event};
use reveille_core::model::id::Fence;
use reveille_core::model::time::Span;
use reveille_core::record::Record;

use super::{Drive, Run};

/// Something that happens to the controller's process.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Mishap {
    /// It does not run for so long and then goes on as if nothing were (a stopped VM).
    Pause(Span),
    /// It dies now, and another starts after so long.
    Crash(Span),
    /// It dies at this point of the next intent, and another starts after so long.
    CrashAt(CrashPoint, Span),
    /// The ledger refuses every record for so long.
    DiskFull(Span),
    /// Another process takes the ledger.
    Deposed,
    /// The ledger is rotated: a checkpoint takes the place of all records.
    Rotate,
}

/// A point in the life of an intent.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum CrashPoint {
    /// The engine asked for the record, and it is not durable.
    BeforeRecord,
    /// The record is durable; the engine was not told.
    BeforeAcknowledged,
    /// The engine asked for the call; nobody made it.
    BeforeCall,
    /// The call was made; its answer did not come.
    BeforeDone,
    /// The answer came; no fresh read has judged it.
    BeforeVerdict,
}

impl Drive {
    pub(super) fn befall(&mut self, mishap: Mishap) {
        self.tell(format!("the process: {mishap:?}"));
        match mishap {
            Mishap::Pause(span) if self.run == Run::Running => self.run = Run::Paused(self.now + span),
            Mishap::Crash(span) => {
                self.crash_at = Some((CrashPoint::BeforeRecord, span));
                self.die();
            }
            Mishap::CrashAt(point, span) => self.crash_at = Some((point, span)),
            Mishap::DiskFull(span) => {
                self.store.set_full(span > Span::ZERO);
                if span > Span::ZERO {
                    self.mishap_in(span, Mishap::DiskFull(Span::ZERO));
                }
            }
            Mishap::Deposed if self.rival.is_none() => self.world.lead(Fence(self.fence.0 + 1)),
            Mishap::Rotate if self.run == Run::Running => {
                let checkpoint = self.state.checkpoint();
                self.store.rotate(checkpoint);
            }
            Mishap::Pause(_) | Mishap::Rotate | Mishap::Deposed => {}
        }
    }

    pub(super) fn crashes(&self, at: CrashPoint) -> bool {
        self.crash_at.is_some_and(|(point, _)| point == at)
    }

    pub(super) fn die(&mut self) {
        let Some((point, span)) = self.crash_at.take() else { return };
        self.tell(format!("the process dies ({point:?})"));
        self.store.crash();
        self.witnessed.crash();
        self.wake = None;
        self.backlog.clear();
        self.run = Run::Dead(self.now + span);
    }

    pub(super) fn restart(&mut self) {
        if let Some(rival) = &mut self.rival {
            rival.restart(self.now);
            self.tell("another process starts".to_owned());
            self.run = Run::Running;
            return;
        }
        self.fence = self.fence.next();
        self.tell(format!("another process starts as {}", self.fence));
        let how = Restored {
            start: Start { fence: self.fence, acting: self.acting },
            now: self.now,
            last_alive: Some(self.stepped_at),
        };
        self.state = State::restore(self.roster.clone(), how, self.store.records().iter().cloned());
        self.store.keep(Record::Started { at: self.now, fence: self.fence });
        self.world.listen(self.now, self.fence);
        self.run = Run::Running;
        let pauses = self.pauses.clone();
        self.step(Event::Command(Command::Pauses(pauses)));
    }
}
