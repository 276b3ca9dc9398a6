//! `demo`: a story on a simulated cluster, played through the same engine, ledger and invariants as `run`.
//!
//! ```text
//!  sim::Demo ─ moment ─▶ engine host: step, ledger on disk ─▶ effects ─▶ sim::Demo
//!                          └─ records, told events ─▶ stage: lines, and on a terminal the status above them
//! ```
//!
//! Virtual minutes pass in real half-seconds: moments with an event wait so that a person can read it, and quiet ones
//! pass at once. The ledger is a real one in a temporary folder. The command exits with 0 only if every machine is Ready
//! and no invariant was broken.

#[cfg(test)]
mod picture;

use std::sync::Arc;
use std::time::Duration;

use anyhow::Context as _;
use reveille_core::effect::Effect;
use reveille_core::engine::{Start, State};
use reveille_core::model::time::Time;
use reveille_core::record::Record;
use reveille_diagnose::Judge;
use reveille_record::recording::RecordingConfig;
use reveille_sim::story::{Demo, Moment};
use reveille_wire::recording::Header;
use tokio::sync::mpsc;
use tokio::time::{Instant, sleep};

use super::{Answer, Context};
use crate::cli;
use crate::cli::exit::Exit;
use crate::cli::failure::Failure;
use crate::driver::clock;
use crate::driver::engine_host::{EngineHost, Input};
use crate::driver::ledger_store;
use crate::driver::ledger_writer::{Ack, LedgerWriter};
use crate::driver::recorder::{ENGINE, Recorder};
use crate::render::stage::{Stage, epilogue};

/// The real time of the story when it is not fast.
const WALL: Duration = Duration::from_secs(24);
/// The longest that the disk may take for one record.
const LEDGER_WITHIN: Duration = Duration::from_secs(30);

/// `demo`.
pub(crate) async fn demo(context: &Context, args: &cli::play::Demo) -> Result<Answer, Failure> {
    let folder = tempfile::tempdir().context("cannot make a temporary folder for the demo's ledger")?;
    let opened = ledger_store::open(folder.path(), "reveille demo", clock::wall())
        .map_err(|error| Failure::internal(anyhow::Error::new(error)))?;
    let mut story = Demo::new(args.seed);
    story.lead(opened.fence);
    let start = Start { fence: opened.fence, acting: true };
    let recorder = record(args, &story, start)?;
    let state = State::new(story.roster().clone(), start);
    let (ledger_writer, acks) =
        LedgerWriter::start(Box::new(opened.ledger_store)).context("cannot start the ledger's thread")?;
    let mut play = Play {
        judge: context.judge()?,
        engine_host: EngineHost::new(state, ledger_writer).recorded_by(recorder),
        acks,
        stage: Stage::new(&context.paper, story.start()),
        pace: (!args.fast).then(|| Pace { began: Instant::now(), start: story.start() }),
        story,
    };
    play.stage.prologue(args.seed);
    play.tell().await?;
    let summary = play.story.summary(play.engine_host.state());
    let broken = play.engine_host.violations().len();
    let start = play.story.start();
    play.stage.end();
    tokio::task::spawn_blocking(move || drop(play.engine_host.end()))
        .await
        .context("cannot end the ledger")?;
    let well = summary.ended_well() && broken == 0;
    let exit = match (well, broken > 0 || !summary.violations.is_empty()) {
        (true, _) => Exit::NoProblem,
        (false, true) => Exit::Internal,
        (false, false) => Exit::Problems,
    };
    Ok(Answer { text: epilogue(&summary, start, &context.paper), exit })
}

/// Begins the recording, where the command line asks for one.
fn record(args: &cli::play::Demo, story: &Demo, start: Start) -> Result<Option<Recorder>, Failure> {
    let Some(directory) = &args.record else { return Ok(None) };
    let header = Header {
        program: env!("CARGO_PKG_VERSION").to_owned(),
        engine: ENGINE.to_owned(),
        of: format!("demo, seed {}", args.seed),
        roster: story.roster().clone(),
        start,
        restored: None,
    };
    Recorder::start(directory, &header, clock::wall(), RecordingConfig::STANDARD)
        .map(Some)
        .map_err(|error| Failure::usage(anyhow::Error::new(error).context("cannot begin the recording")))
}

struct Play {
    judge: Arc<Judge>,
    engine_host: EngineHost,
    acks: mpsc::UnboundedReceiver<Ack>,
    story: Demo,
    stage: Stage,
    pace: Option<Pace>,
}

impl Play {
    async fn tell(&mut self) -> Result<(), Failure> {
        while let Some(moment) = self.story.next_moment() {
            let Moment { at, told, events } = moment;
            self.wait_for(at).await;
            for sentence in told {
                self.stage.happened(at, &sentence);
            }
            for event in events {
                let event = self.judge.heard(event);
                let (mut effects, records) = self.take(at, Input::Event(event));
                self.show(at, &records);
                while let Some(ack) = self.outstanding().await? {
                    let (more, records) = self.take(at, Input::Ack(ack));
                    effects.extend(more);
                    self.show(at, &records);
                }
                for effect in &effects {
                    self.story.perform(at, effect);
                }
            }
            self.stage.moment(at, self.engine_host.state());
            if self.stage.is_gone() {
                break;
            }
        }
        Ok(())
    }

    /// Real time follows virtual time at a constant rate.
    async fn wait_for(&self, at: Time) {
        if let Some(pace) = &self.pace {
            sleep(pace.left(at)).await;
        }
    }

    fn take(&mut self, at: Time, input: Input) -> (Vec<Effect>, Vec<Record>) {
        let story = &mut self.story;
        let mut records = Vec::new();
        let effects = self.engine_host.take_watched(at, input, &mut |state, event, effects| {
            story.after_step(state, event, effects);
            note_records(story, at, effects, &mut records);
        });
        (effects, records)
    }

    /// The next answer of the ledger, while one is due: in the story no time passes while the disk writes.
    async fn outstanding(&mut self) -> Result<Option<Ack>, Failure> {
        if self.engine_host.unanswered() == 0 {
            return Ok(None);
        }
        let answer = tokio::time::timeout(LEDGER_WITHIN, self.acks.recv()).await;
        Ok(answer.context("the disk under the demo's ledger does not answer")?)
    }

    fn show(&mut self, at: Time, records: &[Record]) {
        for record in records {
            self.stage.record(at, record);
        }
    }
}

/// The simulated operator and the viewer of the demo both read the records.
fn note_records(story: &mut Demo, at: Time, effects: &[Effect], records: &mut Vec<Record>) {
    for effect in effects {
        if let Effect::Record { record, .. } = effect {
            story.perform(at, effect);
            records.push(record.clone());
        }
    }
}

struct Pace {
    began: Instant,
    start: Time,
}

/// The virtual time that fits into the real time; a longer story goes on at the same rate.
const STORY_MS: i64 = 45 * 60_000;

impl Pace {
    fn left(&self, at: Time) -> Duration {
        let virtual_ms = at.since(self.start).ms.min(STORY_MS);
        let share = u32::try_from(virtual_ms).unwrap_or(u32::MAX);
        let due = WALL.mul_f64(f64::from(share) / f64::from(u32::try_from(STORY_MS).unwrap_or(u32::MAX)));
        due.saturating_sub(self.began.elapsed())
    }
}
