//! Two processes over one world and one ledger: the one that leads, and the one before it, which does not know.
//!
//! ```text
//!  TwoLeaders ─▶ the engine goes on as the one before ── its calls ─▶ refused: their fencing number is an old one
//!             └▶ another engine is restored from the ledger, under the next number ── its calls ─▶ the world
//! ```
//!
//! The former leader keeps its own watch and listings of the world, or stands still for a while, or is cut off from everything
//! for a while. Its ledger refuses its records, as the shipped ledger does when it finds its lock taken. Or the ledger takes them
//! into a file that no process reads any more, like a volume that was moved while the process stood still. Calls that were on
//! their way when the lead changed arrive. Everything else of the drive is the leader's: what is durable, what is judged, what is
//! told.

use reveille_core::engine::State;
use reveille_core::engine::invariants::SeenEffects;
use reveille_core::event::Event;
use reveille_core::model::id::Fence;
use reveille_core::model::time::{Span, Time};

use super::{CrashPoint, Drive, Estranged, Run, Usurped};
use crate::ledger::Store;

/// The process that led before.
#[derive(Clone, Debug)]
pub(super) struct Former {
    own: Own,
    /// It ends then.
    until: Time,
    /// No message reaches the process before this.
    deaf_until: Time,
}

/// What is a process's own.
#[derive(Clone, Debug)]
struct Own {
    state: State,
    store: Store,
    wake: Option<Time>,
    stepped_at: Time,
    stepped_clock: Time,
    alive_at: Time,
    alive_truly_at: Time,
    skew_ms: i64,
    run: Run,
    backlog: Vec<Event>,
    fence: Fence,
    seen_effects: SeenEffects,
    crash_at: Option<(CrashPoint, Span)>,
    crash_beside: Option<(u32, bool, Span)>,
}

impl Own {
    fn exchange(&mut self, drive: &mut Drive) {
        use std::mem::swap;
        swap(&mut self.state, &mut drive.state);
        swap(&mut self.store, &mut drive.store);
        swap(&mut self.wake, &mut drive.wake);
        swap(&mut self.stepped_at, &mut drive.stepped_at);
        swap(&mut self.stepped_clock, &mut drive.stepped_clock);
        swap(&mut self.alive_at, &mut drive.alive_at);
        swap(&mut self.alive_truly_at, &mut drive.alive_truly_at);
        swap(&mut self.skew_ms, &mut drive.skew_ms);
        swap(&mut self.run, &mut drive.run);
        swap(&mut self.backlog, &mut drive.backlog);
        swap(&mut self.fence, &mut drive.fence);
        swap(&mut self.seen_effects, &mut drive.seen_effects);
        swap(&mut self.crash_at, &mut drive.crash_at);
        swap(&mut self.crash_beside, &mut drive.crash_beside);
    }
}

impl Drive {
    /// Another process is restored from the ledger and leads; the one before goes on beside it.
    pub(super) fn usurp(&mut self, usurped: Usurped) {
        if self.rival.is_some() || self.run != Run::Running || self.former.is_some() {
            return;
        }
        let half = self.now + Span::from_ms(usurped.lasts.ms / 2);
        let own = Own {
            state: self.state.clone(),
            store: self.store.estranged(usurped.refused),
            wake: self.wake,
            stepped_at: self.stepped_at,
            stepped_clock: self.stepped_clock,
            alive_at: self.alive_at,
            alive_truly_at: self.alive_truly_at,
            skew_ms: self.skew_ms,
            run: if usurped.how == Estranged::Sleeps { Run::Paused(half) } else { Run::Running },
            backlog: Vec::new(),
            fence: self.fence,
            seen_effects: self.seen_effects.clone(),
            crash_at: None,
            crash_beside: None,
        };
        let deaf_until = if usurped.how == Estranged::CutOff { half } else { self.now };
        // What the process was writing is lost: the process that takes the ledger reads what is durable.
        self.store.crash();
        self.seen_effects.crash();
        self.wake = None;
        let last_alive = self.alive_at;
        self.skew_ms = usurped.skew_ms;
        self.fence = self.fence.next();
        self.world.listen_beside(self.now, self.fence);
        self.former = Some(Box::new(Former { own, until: self.now + usurped.lasts, deaf_until }));
        self.tell(format!("another process leads as {}, and the one before does not know", self.fence));
        self.begin_again(last_alive);
    }

    /// When the process that led before does something next.
    pub(super) fn former_next_at(&self) -> Option<Time> {
        let former = self.former.as_ref()?;
        let own = &former.own;
        let wake = own.wake.map(|at| Time::from_ms(at.ms - own.skew_ms));
        let next = match own.run {
            Run::Running => [own.store.next_at(), wake, Some(own.stepped_at + self.tick)],
            Run::Paused(until) | Run::Dead(until) => [Some(until), None, None],
        };
        next.into_iter().flatten().chain([former.until]).min()
    }

    /// The process that led before does what is due.
    pub(super) fn let_former_act(&mut self) {
        let Some(mut former) = self.former.take() else { return };
        let mut events = self.world.take_for_the_one_before();
        if self.now >= former.until {
            self.world.forget_the_one_before();
            self.tell("the process that led before ends".to_owned());
            return;
        }
        self.deaf = self.now < former.deaf_until;
        if self.deaf {
            events.clear();
        }
        former.own.exchange(self);
        self.world.turn_to_the_other();
        self.is_former = true;
        self.live(events);
        (self.is_former, self.deaf) = (false, false);
        self.world.turn_to_the_other();
        former.own.exchange(self);
        self.former = Some(former);
    }

    /// The process that led before is ended.
    pub(super) fn end_former(&mut self) {
        self.former = None;
        self.world.forget_the_one_before();
    }

    /// The engine of the process that led before, while there is one.
    pub fn former(&self) -> Option<&State> {
        self.former.as_ref().map(|former| &former.own.state)
    }
}
