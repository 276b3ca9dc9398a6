//! What happens to the controller's own process, and how it comes back.
//!
//! A crash is placed at a point in the life of an intent, because that is where it can hurt: between a decision and its
//! record, between a record and its call, between a call and its answer. A restart knows what was durable and nothing
//! else.

use reveille_core::engine::{Restored, Start, State};
use reveille_core::event::{Command, Event, Pause, PauseScope};
use reveille_core::model::id::{Fence, InstanceId, PoolName};
use reveille_core::model::time::{Span, Time};
use reveille_core::record::Record;

use std::collections::BTreeSet;
use std::sync::Arc;

use super::{Drive, Run};

/// What changed longer ago than this is not in the store any more: etcd is compacted so often
/// (kube-apiserver `--etcd-compaction-interval`).
const CHANGES_KEPT: Span = Span::from_min(5);

/// A ledger that refused is asked again within this.
const ASKED_AGAIN: Span = Span::from_min(1);

/// Something that happens to the controller's process.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Mishap {
    /// It does not run for so long and then goes on as if nothing were (a stopped VM).
    Pause(Span),
    /// It dies now, and another starts after so long.
    Crash(Span),
    /// So many of the next starts end before their first step (a right that is missing, a region that is misspelled), each so
    /// long before the next one.
    StartsFail(u32, Span),
    /// It dies at this point of the next intent, and another starts after so long.
    CrashAt(CrashPoint, Span),
    /// The ledger refuses every record for so long.
    DiskFull(Span),
    /// Another process takes the ledger.
    Deposed,
    /// The ledger is rotated: a checkpoint takes the place of all records.
    Rotate,
    /// Its clock jumps by so many milliseconds.
    Jump(i64),
    /// It dies beside the so many-th effect from now, whatever that is, and another starts after so long.
    CrashAtEffect {
        /// Which effect, counted from zero.
        nth: u32,
        /// The effect was begun. Otherwise the process died before it.
        after: bool,
        /// How long no process runs.
        down: Span,
    },
    /// It dies while the ledger is being written: of what was on its way, so many records are whole, the next is torn.
    TornTail {
        /// Records that are whole.
        whole: u32,
        /// How long no process runs.
        down: Span,
    },
    /// Another process takes the ledger and leads; the one before goes on beside it for a while.
    TwoLeaders(Usurped),
    /// A person says "hands off" of a pool, and takes it back after so long.
    Paused(PoolName, Span),
    /// A person says "hands off" of a machine, by the name of its server, and takes it back after so long.
    HandsOff(InstanceId, Span),
    /// The hands are off no more of what is called so.
    HandsOn(Arc<str>),
}

impl Mishap {
    /// The name in tables, seeds and logs.
    pub const fn name(&self) -> &'static str {
        match self {
            Self::Pause(_) => "process-paused",
            Self::Crash(_) => "crash",
            Self::StartsFail(..) => "starts-fail",
            Self::CrashAt(..) => "crash-at-intent",
            Self::DiskFull(_) => "disk-full",
            Self::Deposed => "deposed",
            Self::Rotate => "ledger-rotated",
            Self::Jump(_) => "clock-jumps",
            Self::CrashAtEffect { .. } => "crash-at-effect",
            Self::TornTail { .. } => "torn-tail",
            Self::TwoLeaders(_) => "two-leaders",
            Self::Paused(..) | Self::HandsOff(..) | Self::HandsOn(_) => "person-pauses",
        }
    }
}

/// How the process that led before goes on.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Estranged {
    /// As before.
    Hears,
    /// It stands still for the first half of its time, and goes on as if nothing were.
    Sleeps,
    /// The network between this process and everything else is cut for the first half of its time.
    CutOff,
}

impl Estranged {
    /// All of them.
    pub const ALL: [Self; 3] = [Self::Hears, Self::Sleeps, Self::CutOff];
}

/// Another process takes the lead.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Usurped {
    /// How long the one before lives on.
    pub lasts: Span,
    /// How it goes on.
    pub how: Estranged,
    /// Its ledger refuses its records; otherwise they go into a file that no process reads.
    pub refused: bool,
    /// How far the new one's clock is off, milliseconds.
    pub skew_ms: i64,
}

/// A point in the life of an intent.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum CrashPoint {
    /// The engine asked for the record, and it is not durable.
    BeforeRecord,
    /// The record is durable; the engine was not told.
    BeforeAcknowledged,
    /// The engine asked for the call; the process died before it made the call.
    BeforeCall,
    /// The call was made; its answer did not come.
    BeforeDone,
    /// The answer came; no fresh read has judged it.
    BeforeVerdict,
}

impl CrashPoint {
    /// All of them, in the order of an intent's life.
    pub const ALL: [Self; 5] = [
        Self::BeforeRecord,
        Self::BeforeAcknowledged,
        Self::BeforeCall,
        Self::BeforeDone,
        Self::BeforeVerdict,
    ];

    /// Whether the call has not been made yet.
    pub const fn is_before_the_call(self) -> bool {
        matches!(self, Self::BeforeRecord | Self::BeforeAcknowledged | Self::BeforeCall)
    }
}

impl Drive {
    pub(super) fn befall(&mut self, mishap: Mishap) {
        self.tell(format!("the process: {mishap:?}"));
        match mishap {
            Mishap::Pause(span) if self.run == Run::Running => {
                self.run = Run::Paused(self.now + span);
                self.asleep_since = Some(self.now);
                if self.lists_after(span) {
                    self.world.fall_asleep();
                }
            }
            Mishap::StartsFail(times, every) => self.starts_fail = (times, every),
            Mishap::Crash(span) => {
                self.crash_at = Some((CrashPoint::BeforeRecord, span));
                self.die();
            }
            Mishap::CrashAt(point, span) => self.crash_at = Some((point, span)),
            Mishap::DiskFull(span) => {
                self.store.set_full(span > Span::ZERO);
                let is_over = span == Span::ZERO;
                let since = self.refused.filter(|(_, ended)| is_over || ended.is_none());
                let since = since.map_or(self.now, |(since, _)| since);
                self.refused = Some((since, is_over.then_some(self.now)));
                if span > Span::ZERO {
                    self.mishap_in(span, Mishap::DiskFull(Span::ZERO));
                }
            }
            Mishap::Deposed if self.rival.is_none() => self.world.lead(Fence(self.fence.0 + 1)),
            Mishap::Rotate if self.run == Run::Running => {
                let checkpoint = self.state.checkpoint();
                self.store.rotate(checkpoint);
            }
            Mishap::Jump(ms) => self.skew_ms += ms,
            Mishap::CrashAtEffect { nth, after, down } => self.crash_beside = Some((nth, after, down)),
            Mishap::TornTail { whole, down } if self.run == Run::Running => {
                self.store.tear(whole as usize);
                self.crash_at = Some((CrashPoint::BeforeRecord, down));
                self.die();
            }
            Mishap::TwoLeaders(usurped) => self.usurp(usurped),
            Mishap::Paused(pool, span) => {
                self.pause(PauseScope::Pool(pool.shared()), span, Mishap::Paused(pool, Span::ZERO))
            }
            Mishap::HandsOff(id, span) => {
                if let Some(name) = self.world.listed_name(&id) {
                    self.pause(PauseScope::Machine(name.clone()), span, Mishap::HandsOn(name));
                }
            }
            Mishap::HandsOn(name) => {
                self.pause(PauseScope::Machine(name.clone()), Span::ZERO, Mishap::HandsOn(name))
            }
            Mishap::Pause(_) | Mishap::Rotate | Mishap::Deposed | Mishap::TornTail { .. } => {}
        }
    }

    /// A person pauses this for so long, or, where that is nothing, no more.
    fn pause(&mut self, scope: PauseScope, span: Span, over: Mishap) {
        let mut pauses = self.pauses.clone();
        pauses.retain(|pause| pause.scope != scope);
        if span > Span::ZERO {
            pauses.insert(Pause { scope, by: "erin".into(), reason: "an upgrade".into() });
            self.mishap_in(span, over);
        }
        self.set_pauses(pauses);
    }

    /// Since when the ledger refuses what this process saw: it is asked again a while after its disk has room, if the process
    /// runs.
    fn refused_since(&mut self, asleep_since: Option<Time>) -> Option<Time> {
        let (since, ended) = self.refused.take()?;
        let runs_until = asleep_since.unwrap_or(self.now);
        let was_asked_again = |ended: Time| runs_until.since(ended) > ASKED_AGAIN;
        (!ended.is_some_and(was_asked_again)).then_some(since)
    }

    /// A sleep of that length is longer than the store keeps changes.
    pub(super) fn lists_after(&self, span: Span) -> bool {
        self.lists_after_sleep && span > CHANGES_KEPT
    }

    /// Ends what befalls the process by itself: nothing more happens to it, a full disk is emptied, pauses are taken back.
    pub fn end_mishaps(&mut self) {
        self.mishaps.clear();
        self.starts_fail = (0, Span::ZERO);
        (self.crash_at, self.crash_beside) = (None, None);
        self.store.set_full(false);
        self.end_former();
        self.set_pauses(BTreeSet::new());
        if self.run == Run::Running && self.rival.is_none() {
            // A process that lost the lead comes back only as a new process.
            self.befall(Mishap::Crash(Span::from_s(1)));
        }
    }

    /// What the process's own clock says.
    pub(super) const fn clock(&self) -> Time {
        self.clock_of(self.now)
    }

    /// What the process's own clock said then.
    pub(super) const fn clock_of(&self, then: Time) -> Time {
        Time::from_ms(then.ms + self.skew_ms)
    }

    /// Counts an effect, and dies if this is the one. `begun`: it was.
    pub(super) fn dies_beside(&mut self, begun: bool) -> bool {
        let Some((nth, after, down)) = self.crash_beside else { return false };
        if after != begun {
            return false;
        }
        if nth > 0 {
            self.crash_beside = Some((nth - 1, after, down));
            return false;
        }
        self.crash_beside = None;
        self.crash_at = Some((CrashPoint::BeforeCall, down));
        self.die();
        true
    }

    pub(super) fn crashes(&self, at: CrashPoint) -> bool {
        self.crash_at.is_some_and(|(point, _)| point == at)
    }

    pub(super) fn die(&mut self) {
        let Some((point, span)) = self.crash_at.take() else { return };
        self.tell(format!("the process dies ({point:?})"));
        self.store.crash();
        let asleep_since = self.asleep_since.take();
        let refused_since = self.refused_since(asleep_since);
        self.world.forget_what_one_process_saw(asleep_since, refused_since);
        self.seen_effects.crash();
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
        if self.starts_fail.0 > 0 {
            self.fail_to_start();
            return;
        }
        self.tell(format!("another process starts as {}", self.fence));
        self.world.listen(self.now, self.fence);
        self.world.account_for_unseen(self.clock().since(self.alive_at), self.alive_truly_at);
        self.begin_again(self.alive_at);
    }

    /// A process takes the ledger and says so in it, and ends before its first step: it has seen nothing.
    fn fail_to_start(&mut self) {
        let (times, every) = self.starts_fail;
        self.starts_fail.0 = times - 1;
        self.tell(format!("another process starts as {}, and ends at once", self.fence));
        self.world.lead(self.fence);
        self.store.keep(Record::Started { at: self.clock(), fence: self.fence });
        self.run = Run::Dead(self.now + every);
    }

    /// An engine is restored from what is durable, under the fencing number of the drive.
    pub(super) fn begin_again(&mut self, last_alive: Time) {
        let how = Restored {
            start: Start { fence: self.fence, acting: self.acting },
            now: self.clock(),
            last_alive: Some(last_alive),
        };
        self.state = State::restore(self.roster.clone(), how, self.store.records().iter().cloned());
        self.store.keep(Record::Started { at: self.clock(), fence: self.fence });
        let away = self.clock().since(last_alive);
        if let Some(oracle) = &mut self.oracle {
            oracle.restarted(self.now, away, self.store.records());
        }
        self.run = Run::Running;
        let pauses = self.all_pauses();
        self.step(Event::Command(Command::Pauses(pauses)));
    }
}
