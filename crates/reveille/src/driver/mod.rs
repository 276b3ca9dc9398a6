//! The loop that runs in production: one task owns one roster's state, everything else talks to it through queues.
//!
//! ```text
//!  pollers ─┐
//!  watch   ─┼▶ inbox (bounded) ─┐
//!  tasks   ─┘                   ├▶ select: one event at a time ─▶ engine host ─▶ effects ─▶ executor: look, call, list
//!  ledger thread ─ acks ────────┤                                   └──▶ records ─▶ ledger thread
//!  timer, pauses, heartbeat ────┘
//! ```
//!
//! One event is taken in wholly before the next. The ledger's answers come first, because calls wait for them. While too
//! many records wait for the disk, no further event and no `Tick` is taken; pauses and questions are. A `Tick` is
//! sent at the time that the engine asked for and at least every ten seconds. Stopping is begun by a signal: nothing new
//! starts, calls on their way are waited for (bounded), the last records become durable, then the lock is let go.
//!
//! It decides nothing, and knows neither Kubernetes nor OpenStack.

mod alarm;
pub(crate) mod alone;
pub(crate) mod clock;
pub(crate) mod engine_host;
pub(crate) mod executor;
mod freeze;
pub(crate) mod journal;
pub(crate) mod ledger_backend;
pub(crate) mod ledger_store;
pub(crate) mod ledger_writer;
pub(crate) mod ownership_check;
pub(crate) mod pauses;
pub(crate) mod recorder;
mod redact;
mod sight;

#[cfg(test)]
mod tests;

use std::time::Duration;

use reveille_core::effect::Effect;
use reveille_core::engine::State;
use reveille_core::event::Event;
use reveille_core::model::time::Time;
use tokio::sync::{mpsc, watch};
use tokio::time::{Instant, MissedTickBehavior, interval, sleep, timeout};

use alarm::Alarm;
use engine_host::EngineHost;
use executor::Executor;
use freeze::Freezes;
use ledger_writer::Ack;
use pauses::PauseDesk;
use sight::Sight;

/// Events that may wait for the loop. Whoever sends more waits.
pub(crate) const INBOX_MAX: usize = 1024;
/// How often pauses are read again.
const PAUSES_EVERY: Duration = Duration::from_secs(2);
/// How often the ledger learns that we live.
const BEAT_EVERY: Duration = Duration::from_secs(10);
/// Longest wait for calls on their way when stopping: below the half minute that supervisors usually grant.
const STOP_WITHIN: Duration = Duration::from_secs(25);
/// Longest wait for the disk at the very end.
const LEDGER_WITHIN: Duration = Duration::from_secs(10);

/// When the loop ends by itself.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Until {
    /// When it is told to.
    Told,
    /// When everything that was due has settled, or after this long.
    Settled(Duration),
}

/// How the loop ended.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Ended {
    /// It was told to.
    Told,
    /// Everything that was due has settled.
    Settled,
    /// Something was still on its way when the time was over.
    TimeOver,
    /// The ledger takes nothing more in this process, or its thread has ended.
    LedgerOver,
    /// Another process holds the ledger now.
    Fenced,
}

/// One roster's loop.
pub(crate) struct Driver {
    /// The state and its ledger.
    pub(crate) engine_host: EngineHost,
    /// What the ledger says.
    pub(crate) acks: mpsc::UnboundedReceiver<Ack>,
    /// What the adapters say.
    pub(crate) inbox: mpsc::Receiver<Event>,
    /// Whoever carries out effects.
    pub(crate) executor: Executor,
    /// What people paused.
    pub(crate) pauses: PauseDesk,
    /// Becomes true when the process shall stop.
    pub(crate) stop: watch::Receiver<bool>,
    /// Reports that were asked for by commands beside us.
    pub(crate) questions: mpsc::Receiver<Question>,
    /// What time it is.
    pub(crate) clock: clock::Clock,
}

/// A command beside us wants something computed from the state as of now, between two events.
pub(crate) type Question = Box<dyn FnOnce(&State, Time) + Send>;

impl Driver {
    /// Runs until the end, and gives the state back.
    pub(crate) async fn run(mut self, until: Until) -> (State, Ended) {
        let mut pauses_due = interval(PAUSES_EVERY);
        let mut beat_due = interval(BEAT_EVERY);
        for due in [&mut pauses_due, &mut beat_due] {
            due.set_missed_tick_behavior(MissedTickBehavior::Delay);
        }
        let began = Instant::now();
        let mut alarm = Alarm::default();
        let mut sight = Sight::default();
        let mut freezes = Freezes::default();
        let ended = loop {
            if let Until::Settled(within) = until {
                if self.has_settled() {
                    break Ended::Settled;
                }
                if began.elapsed() >= within {
                    break Ended::TimeOver;
                }
            }
            let nap = alarm.nap((self.clock)());
            // A disk that does not keep up delays what the adapters say, and refuses none of it.
            let room = self.engine_host.has_room();
            let effects = tokio::select! {
                biased;
                _ = told(&mut self.stop) => break Ended::Told,
                ack = self.acks.recv() => match ack {
                    // None: its thread has ended, by a panic.
                    None | Some(Ack::Over) => break Ended::LedgerOver,
                    Some(ack) => self.engine_host.acknowledge((self.clock)(), ack),
                },
                _ = pauses_due.tick() => match self.pauses.read() {
                    Some(command) => self.take(Event::Command(command)),
                    None => Vec::new(),
                },
                _ = beat_due.tick() => {
                    let now = (self.clock)();
                    self.engine_host.beat(now);
                    Vec::new()
                }
                // Before the inbox: a person who asks on the worst day does not wait behind a flood of events. Questions
                // are few and change nothing.
                Some(question) = self.questions.recv() => {
                    question(self.engine_host.state(), (self.clock)());
                    Vec::new()
                }
                Some(event) = self.inbox.recv(), if room => self.take_in(event),
                () = sleep(nap), if room => {
                    alarm.tick((self.clock)());
                    self.take(Event::Tick)
                }
            };
            self.perform(effects, &mut alarm);
            if !self.engine_host.state().desk().leading {
                break Ended::Fenced;
            }
            sight.review(&self.engine_host.state().desk());
            freezes.review(&self.engine_host.state().desk(), (self.clock)());
        };
        self.wind_down().await;
        let now = (self.clock)();
        self.engine_host.beat(now);
        let engine_host = self.engine_host;
        let state = engine_host.state().clone();
        let end = tokio::task::spawn_blocking(move || drop(engine_host.end()));
        if timeout(LEDGER_WITHIN, end).await.is_err() {
            tracing::error!("the disk under the ledger does not answer; ending without it");
        }
        (state, ended)
    }

    /// An event from the adapters; the ownership check looks at it first.
    fn take_in(&mut self, event: Event) -> Vec<Effect> {
        let changed = self.pauses.ownership_check.review(self.engine_host.state().desk().roster, &event);
        let mut effects = match changed.then(|| self.pauses.read()).flatten() {
            Some(command) => self.take(Event::Command(command)),
            None => Vec::new(),
        };
        effects.append(&mut self.take(event));
        effects
    }

    fn take(&mut self, event: Event) -> Vec<Effect> {
        let now = (self.clock)();
        self.engine_host.take(now, event)
    }

    fn perform(&self, effects: Vec<Effect>, alarm: &mut Alarm) {
        for effect in effects {
            match effect {
                Effect::Look { id, look } => self.executor.look(id, look),
                Effect::Call { intent, fence, call } => self.executor.call(intent, fence, call),
                Effect::List { cloud } => self.executor.list(&cloud),
                Effect::WakeAt(at) => alarm.set(at),
                // The engine host keeps records to itself.
                Effect::Record { .. } => {}
            }
        }
    }

    /// Every source has said something, and nothing is on its way.
    fn has_settled(&self) -> bool {
        let state = self.engine_host.state();
        let desk = state.desk();
        let mut sources = desk.clouds.values().map(|cloud| &cloud.source).chain([&desk.cluster.source]);
        let spoken = sources.all(|source| source.last_good().is_some() || source.failing().is_some());
        let under_way = self.executor.under_way();
        spoken
            && state.is_settled()
            && self.engine_host.unanswered() == 0
            && under_way.calls() + under_way.looks() == 0
            && self.inbox.is_empty()
    }

    /// Begins nothing, and waits for what cannot be taken back.
    async fn wind_down(&mut self) {
        self.engine_host.stop();
        let under_way = self.executor.under_way();
        if under_way.calls() > 0 {
            tracing::info!(calls = under_way.calls(), "stopping: waits for calls that are on their way");
        }
        let until = Instant::now() + STOP_WITHIN;
        let mut alarm = Alarm::default();
        // Without its thread the ledger answers for nothing more.
        let mut ledger = true;
        while under_way.calls() > 0 || (ledger && self.engine_host.unanswered() > 0) || !self.inbox.is_empty()
        {
            let effects = tokio::select! {
                biased;
                ack = self.acks.recv(), if ledger => match ack {
                    Some(ack) => self.engine_host.acknowledge((self.clock)(), ack),
                    None => {
                        ledger = false;
                        Vec::new()
                    }
                },
                Some(event) = self.inbox.recv() => match event {
                    Event::Done { .. } => self.take(event),
                    // What the adapters say matters no more; only what we did to them does.
                    _ => Vec::new(),
                },
                () = tokio::time::sleep_until(until) => {
                    tracing::warn!(calls = under_way.calls(), "stopping without their answers; the next start reads back what became of them");
                    return;
                }
                () = sleep(Duration::from_millis(50)) => Vec::new(),
            };
            let calls = effects
                .into_iter()
                .filter(|effect| !matches!(effect, Effect::Look { .. } | Effect::List { .. }));
            self.perform(calls.collect(), &mut alarm);
        }
    }
}

/// Resolves when the process shall stop; never when nobody can say so any more.
async fn told(stop: &mut watch::Receiver<bool>) {
    if stop.wait_for(|stop| *stop).await.is_err() {
        std::future::pending::<()>().await;
    }
}
