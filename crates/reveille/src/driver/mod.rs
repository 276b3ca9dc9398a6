//! The loop of production: one task owns the state of one roster, and all other tasks reach it through queues.
//!
//! ```text
//!  pollers ─┐
//!  watch   ─┼▶ inbox (bounded) ─┐
//!  tasks   ─┘                   ├▶ select: one event at a time ─▶ engine host ─▶ effects ─▶ executor: look, call, list
//!  ledger thread ─ acks ────────┤                                   └──▶ records ─▶ ledger thread
//!  timer, pauses, heartbeat ────┘
//! ```
//!
//! The loop processes one event completely before the next. The ledger's answers come first, because calls wait for them.
//! While too many records wait for the disk, the loop takes no further event and sends no `Tick`; it still takes pauses
//! and questions. It sends a `Tick` at the time that the engine asked for, and at least every ten seconds. A signal
//! begins the stop: nothing new starts, the loop waits for calls under way (up to a limit), the last records become
//! durable, and the lock is released.
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
mod source_log;

#[cfg(test)]
mod tests;

use std::time::Duration;

use reveille_core::effect::Effect;
use reveille_core::engine::State;
use reveille_core::event::{Command, Event};
use reveille_core::model::time::Time;
use tokio::sync::{mpsc, watch};
use tokio::time::{Instant, MissedTickBehavior, interval, sleep, timeout};

use alarm::Alarm;
use engine_host::{EngineHost, Input};
use executor::Executor;
use freeze::Freezes;
use ledger_writer::Ack;
use pauses::PauseContext;
use source_log::SourceLog;

/// The most events that wait for the loop. A sender waits beyond that.
pub(crate) const INBOX_MAX: usize = 1024;
/// How often the loop reads the pauses again.
const PAUSES_EVERY: Duration = Duration::from_secs(2);
/// How often the loop writes a heartbeat into the ledger.
const BEAT_EVERY: Duration = Duration::from_secs(10);
/// The longest wait for calls under way at the stop: below the half minute that service managers usually grant.
const STOP_WITHIN: Duration = Duration::from_secs(25);
/// The longest wait for the disk at the very end.
const LEDGER_WITHIN: Duration = Duration::from_secs(10);

/// When the loop ends on its own.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Until {
    /// When it is told to stop.
    Told,
    /// When everything that was due has settled, or after this long.
    Settled(Duration),
}

/// How the loop ended.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Ended {
    /// The loop was told to stop.
    Told,
    /// Everything that was due has settled.
    Settled,
    /// Something was still under way when the time was over.
    TimeOver,
    /// The ledger takes no more records in this process, or its thread has ended.
    LedgerOver,
    /// Another process holds the ledger now.
    Fenced,
}

/// One roster's loop.
pub(crate) struct Driver {
    /// The state and its ledger.
    pub(crate) engine_host: EngineHost,
    /// Answers of the ledger.
    pub(crate) acks: mpsc::UnboundedReceiver<Ack>,
    /// Events of the adapters.
    pub(crate) inbox: mpsc::Receiver<Event>,
    /// Carries out the effects.
    pub(crate) executor: Executor,
    /// The pauses of operators and of the ownership check.
    pub(crate) pauses: PauseContext,
    /// Becomes true when the process has to stop.
    pub(crate) stop: watch::Receiver<bool>,
    /// Questions of commands in other processes.
    pub(crate) questions: mpsc::Receiver<Question>,
    /// The clock.
    pub(crate) clock: clock::Clock,
}

/// A command of another process wants something computed from the present state, between two events.
pub(crate) type Question = Box<dyn FnOnce(&State, Time) + Send>;

impl Driver {
    /// Runs until the end, and returns the state.
    pub(crate) async fn run(mut self, until: Until) -> (State, Ended) {
        let mut pauses_due = interval(PAUSES_EVERY);
        let mut beat_due = interval(BEAT_EVERY);
        for due in [&mut pauses_due, &mut beat_due] {
            due.set_missed_tick_behavior(MissedTickBehavior::Delay);
        }
        let began = Instant::now();
        let mut alarm = Alarm::default();
        let mut source_log = SourceLog::default();
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
            // A slow disk delays the events of the adapters, and refuses none of them.
            let room = self.engine_host.has_room();
            let inputs = tokio::select! {
                biased;
                () = told(&mut self.stop) => break Ended::Told,
                ack = self.acks.recv() => match ack {
                    // `None` means that the thread has ended by a panic.
                    None | Some(Ack::Over) => break Ended::LedgerOver,
                    Some(ack) => vec![Input::Ack(ack)],
                },
                _ = pauses_due.tick() => self.pauses.read().map(command).into_iter().collect(),
                _ = beat_due.tick() => {
                    self.engine_host.beat();
                    Vec::new()
                }
                // Questions come before the inbox, so that an operator does not wait behind a flood of events during an
                // outage. Questions are few and change nothing.
                Some(question) = self.questions.recv() => {
                    question(self.engine_host.state(), (self.clock)());
                    Vec::new()
                }
                Some(event) = self.inbox.recv(), if room => self.review(event),
                () = sleep(nap), if room => {
                    alarm.tick((self.clock)());
                    vec![Input::Event(Event::Tick)]
                }
            };
            let effects = self.take(inputs);
            self.perform(effects, &mut alarm);
            if !self.engine_host.state().context().leading {
                break Ended::Fenced;
            }
            source_log.review(&self.engine_host.state().context());
            freezes.review(&self.engine_host.state().context(), (self.clock)());
        };
        self.wind_down().await;
        self.engine_host.beat();
        let engine_host = self.engine_host;
        let state = engine_host.state().clone();
        let end = tokio::task::spawn_blocking(move || drop(engine_host.end()));
        if timeout(LEDGER_WITHIN, end).await.is_err() {
            tracing::error!("the disk under the ledger does not answer; ending without it");
        }
        (state, ended)
    }

    /// An event of the adapters; the ownership check sees it first, and its pauses come before it.
    fn review(&mut self, event: Event) -> Vec<Input> {
        let changed = self.pauses.ownership_check.review(self.engine_host.state().context().roster, &event);
        let pauses = changed.then(|| self.pauses.read()).flatten();
        pauses.map(command).into_iter().chain([Input::Event(event)]).collect()
    }

    fn take(&mut self, inputs: impl IntoIterator<Item = Input>) -> Vec<Effect> {
        inputs.into_iter().flat_map(|input| self.engine_host.take((self.clock)(), input)).collect()
    }

    fn perform(&self, effects: Vec<Effect>, alarm: &mut Alarm) {
        for effect in effects {
            match effect {
                Effect::Look { id, look } => self.executor.look(id, look),
                Effect::Call { intent, fence, call } => self.executor.call(intent, fence, call),
                Effect::List { cloud } => self.executor.list(&cloud),
                Effect::WakeAt(at) => alarm.set(at),
                // The engine host handles records itself.
                Effect::Record { .. } => {}
            }
        }
    }

    /// Every source has been read, and nothing is under way.
    fn has_settled(&self) -> bool {
        let state = self.engine_host.state();
        let context = state.context();
        let mut sources = context.clouds.values().map(|cloud| &cloud.source).chain([&context.cluster.source]);
        let spoken = sources.all(|source| source.last_good().is_some() || source.failing().is_some());
        let under_way = self.executor.under_way();
        spoken
            && state.is_settled()
            && self.engine_host.unanswered() == 0
            && under_way.calls() + under_way.looks() == 0
            && self.inbox.is_empty()
    }

    /// Begins nothing new, and waits for calls that cannot be taken back.
    async fn wind_down(&mut self) {
        self.engine_host.stop();
        let under_way = self.executor.under_way();
        if under_way.calls() > 0 {
            tracing::info!(calls = under_way.calls(), "stopping: waits for calls that are on their way");
        }
        let until = Instant::now() + STOP_WITHIN;
        let mut alarm = Alarm::default();
        // Once its thread has ended, the ledger answers no more records.
        let mut ledger = true;
        while under_way.calls() > 0 || (ledger && self.engine_host.unanswered() > 0) || !self.inbox.is_empty()
        {
            let input = tokio::select! {
                biased;
                ack = self.acks.recv(), if ledger => {
                    ledger = ack.is_some();
                    ack.map(Input::Ack)
                }
                // Facts of the adapters no longer matter; only the results of our calls do.
                Some(event) = self.inbox.recv() => {
                    matches!(event, Event::Done { .. }).then_some(Input::Event(event))
                }
                () = tokio::time::sleep_until(until) => {
                    tracing::warn!(calls = under_way.calls(), "stopping without their answers; the next start reads back what became of them");
                    return;
                }
                () = sleep(Duration::from_millis(50)) => None,
            };
            let calls = self
                .take(input)
                .into_iter()
                .filter(|effect| !matches!(effect, Effect::Look { .. } | Effect::List { .. }));
            self.perform(calls.collect(), &mut alarm);
        }
    }
}

fn command(command: Command) -> Input {
    Input::Event(Event::Command(command))
}

/// Resolves when the process has to stop; never when the sender is gone.
pub(crate) async fn told(stop: &mut watch::Receiver<bool>) {
    if stop.wait_for(|stop| *stop).await.is_err() {
        std::future::pending::<()>().await;
    }
}
