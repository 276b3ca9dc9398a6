//! The recorder: writes every event and effect of one roster's engine to disk, and never delays the engine.
//!
//! ```text
//!  engine host ─▶ step (bounded queue) ─▶ thread: one line each, compressed, flushed every few seconds ─▶ DIR/ROSTER/RUN/
//!             └─ full, or the disk refuses ─▶ one warning, a note beside the recording, and the recording is over
//! ```
//!
//! A recording is for operators; no decision depends on it. So the controller never waits for it and never fails because
//! of it. A step that cannot be kept ends the recording, because a recording with a gap could not be replayed. The cost
//! for the engine is a copy of shared pointers.

use std::path::Path;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::mpsc::{Receiver, RecvTimeoutError, SyncSender, TrySendError, sync_channel};
use std::thread::JoinHandle;
use std::time::{Duration, Instant};

use jiff::Timestamp;
use reveille_core::effect::Effect;
use reveille_core::event::Event;
use reveille_core::model::time::Time;
use reveille_record::recording::{RecordingConfig, RecordingError, RecordingWriter};
use reveille_wire::recording::{Header, Writer};

/// A hash of the source that the engine of this program decides by.
pub(crate) const ENGINE: &str = env!("REVEILLE_ENGINE");

/// The most steps that wait for the disk.
const STEPS_MAX: usize = 8192;
/// A killed process loses at most this much of its recording.
const FLUSH_EVERY: Duration = Duration::from_secs(5);

type Step = (Time, Event, Vec<Effect>);

/// The engine's end of the recorder.
pub(crate) struct Recorder {
    steps: Option<SyncSender<Step>>,
    thread: Option<JoinHandle<()>>,
    lagged: Arc<AtomicBool>,
}

impl Recorder {
    /// Begins a recording below `directory`. `now` is the wall clock, used only for the name.
    ///
    /// # Errors
    /// When the directory cannot be written: the operator learns it at the start.
    pub(crate) fn start(
        directory: &Path,
        header: &Header,
        now: Time,
        config: RecordingConfig,
    ) -> Result<Self, RecordingError> {
        let fence = header.start.fence.0;
        let stamp = Timestamp::from_millisecond(now.ms).unwrap_or_default().strftime("%Y%m%dT%H%M%S.%3fZ");
        let root = directory.join(header.roster.name.as_str());
        let mut writer = RecordingWriter::create(&root, &format!("{stamp}-{fence}"), config)?;
        let lines = Writer::default();
        let fail = |source| RecordingError::Io { doing: "write", path: root.clone(), source };
        let first = lines.header(header).map_err(|error| fail(error.into()))?;
        writer.append(&first)?;
        writer.flush()?;
        tracing::info!(roster = %header.roster.name, "recording to {}", writer.directory().display());
        let (steps, inbox) = sync_channel(STEPS_MAX);
        let lagged = Arc::new(AtomicBool::new(false));
        let hand = Hand { writer: Some(writer), lines, lagged: lagged.clone() };
        let thread = std::thread::Builder::new()
            .name("recorder".to_owned())
            .spawn(move || hand.work(&inbox))
            .map_err(fail)?;
        Ok(Self { steps: Some(steps), thread: Some(thread), lagged })
    }

    /// Passes on one step. Never waits.
    pub(crate) fn step(&mut self, at: Time, event: &Event, effects: &[Effect]) {
        let Some(steps) = &self.steps else { return };
        match steps.try_send((at, event.clone(), effects.to_vec())) {
            Ok(()) => {}
            Err(TrySendError::Full(_)) => {
                self.lagged.store(true, Ordering::Release);
                self.steps = None;
            }
            // The thread has ended, and has logged the reason.
            Err(TrySendError::Disconnected(_)) => self.steps = None,
        }
    }

    /// Ends the recording after everything that was passed on. Blocks until the disk has answered.
    pub(crate) fn end(mut self) {
        self.steps = None;
        if let Some(thread) = self.thread.take()
            && thread.join().is_err()
        {
            tracing::error!("the recorder's thread ended by a panic");
        }
    }
}

struct Hand {
    writer: Option<RecordingWriter>,
    lines: Writer,
    lagged: Arc<AtomicBool>,
}

impl Hand {
    fn work(mut self, inbox: &Receiver<Step>) {
        let mut flushed = Instant::now();
        loop {
            let left = FLUSH_EVERY.saturating_sub(flushed.elapsed());
            let done = match inbox.recv_timeout(left) {
                Ok((at, event, effects)) => self.keep(at, &event, &effects),
                Err(RecvTimeoutError::Timeout) => {
                    flushed = Instant::now();
                    self.writer.as_mut().map_or(Ok(()), |writer| writer.flush().map_err(Into::into))
                }
                Err(RecvTimeoutError::Disconnected) => break self.end(),
            };
            if let Err(error) = done {
                return self.give_up(&format!("{error:#}"));
            }
        }
    }

    fn keep(&mut self, at: Time, event: &Event, effects: &[Effect]) -> anyhow::Result<()> {
        let line = self.lines.step(at, event, effects)?;
        if let Some(writer) = &mut self.writer {
            writer.append(&line)?;
        }
        Ok(())
    }

    fn end(mut self) {
        if self.lagged.load(Ordering::Acquire) {
            return self.give_up("the disk did not keep up with the events");
        }
        if let Some(Err(error)) = self.writer.take().map(RecordingWriter::end) {
            tracing::warn!("the end of the recording could not be written: {error}");
        }
    }

    /// Logs one warning, writes one note, and ends the recording.
    fn give_up(mut self, why: &str) {
        let Some(writer) = self.writer.take() else { return };
        tracing::warn!(
            "the recording in {} is over after {} steps: {why}. Everything else goes on",
            writer.directory().display(),
            self.lines.steps()
        );
        writer.stop(&format!("Recording ended after {} steps: {why}", self.lines.steps()));
    }
}

#[cfg(test)]
mod tests {
    use std::collections::BTreeSet;

    use reveille_core::effect::{Outcome, ReadError, ReadErrorKind};
    use reveille_core::engine::{Start, State};
    use reveille_core::event::{Answer, CloudFact, CloudSnapshot, ClusterFact, Command, Pause, PauseScope};
    use reveille_core::model::id::{Fence, IntentId, LookId};
    use reveille_core::model::instance::{Fault, InstanceAction, InstanceState, Mark};
    use reveille_core::model::network::{Direction, Family, GroupRule, Remote, RuleSpec};
    use reveille_core::model::node::{Asks, Condition, NodeEvent, Ready};
    use reveille_record::recording::{RecordingReader, runs};

    use super::*;
    use crate::driver::engine_host::{EngineHost, Input};
    use crate::driver::ledger_store;
    use crate::driver::ledger_writer::LedgerWriter;
    use crate::fixture;

    const CANARY: &str = "cAnArY77";
    const NOW: Time = Time::from_ms(1_792_400_400_000);

    fn header() -> Header {
        Header {
            program: "0.1.0".to_owned(),
            engine: ENGINE.to_owned(),
            of: "a test".to_owned(),
            roster: fixture::roster(),
            start: Start { fence: Fence(1), acting: true },
            restored: None,
        }
    }

    fn engine_host(directory: &Path, config: RecordingConfig) -> EngineHost {
        let ledger_store = ledger_store::open(&directory.join("state"), "a test", NOW).unwrap().ledger_store;
        let (ledger_writer, _acks) = LedgerWriter::start(Box::new(ledger_store)).unwrap();
        let recorder = Recorder::start(&directory.join("flight"), &header(), NOW, config).unwrap();
        EngineHost::new(State::new(fixture::roster(), header().start), ledger_writer)
            .recorded_by(Some(recorder))
    }

    fn read(directory: &Path) -> (Vec<String>, Option<String>) {
        let run = runs(&directory.join("flight")).unwrap().remove(0);
        let mut reader = RecordingReader::open(&run).unwrap();
        let mut lines = Vec::new();
        while let Some(line) = reader.next_line().unwrap() {
            lines.push(String::from_utf8(line.bytes).unwrap());
        }
        (lines, reader.ending().notice.clone())
    }

    fn secret(text: &str) -> Arc<str> {
        Arc::from(format!("{text} password={CANARY}"))
    }

    /// An event of each kind that carries foreign text, with a secret in every such text.
    fn talkative() -> Vec<Event> {
        let mut instance = fixture::instance("1");
        instance.state = InstanceState::Errored;
        instance.fault = Some(Fault { code: 500, message: secret("no valid host") });
        let marks = [
            Mark::Tag("k8s-cluster=prod".into()),
            Mark::Tag(format!("token={CANARY}").into()),
            Mark::Metadata("admin_password".into(), CANARY.into()),
            Mark::Metadata("user-data".into(), format!("#cloud-config {CANARY}").into()),
        ];
        instance.marks = Arc::new(BTreeSet::from(marks));
        let allows = RuleSpec {
            direction: Direction::Ingress,
            family: Family::V4,
            protocol: None,
            ports: None,
            remote: Remote::Any,
        };
        let mut group = fixture::group();
        group.rules = vec![GroupRule { id: "r".into(), allows, description: secret("by hand") }];
        let snapshot = CloudSnapshot {
            instances: vec![Arc::new(instance.clone())],
            groups: Some(vec![Arc::new(group.clone())]),
            ..CloudSnapshot::default()
        };
        let mut node = fixture::node("1", Ready::False);
        node.conditions =
            Box::new([Condition { kind: "Ready".into(), reason: "x".into(), message: secret("kubelet") }]);
        let asks = Asks { repair: Some(secret("OPS-7")), confirm: Some(secret("inc-1")), keep: Some(true) };
        node.intent.asks = Some(Box::new(asks));
        let said = NodeEvent {
            node: "w-1".into(),
            uid: None,
            reason: "x".into(),
            message: Arc::from(format!("Authorization: Bearer {CANARY}")),
            reporter: "x".into(),
            stamped: None,
        };
        let error = ReadError { kind: ReadErrorKind::Unauthorized, text: secret("401"), retry_after: None };
        let action = InstanceAction {
            request: "req".into(),
            action: "create".into(),
            started: "x".into(),
            user: None,
            message: Some(secret("Error")),
        };
        let looked = |answer| Event::Looked { look: LookId(1), answer: Ok(answer) };
        let done = |outcome| Event::Done { intent: IntentId(1), outcome };
        let pause = Pause { scope: PauseScope::Roster, by: "ann".into(), reason: secret("look") };
        vec![
            Event::Cloud { cloud: "os".into(), fact: CloudFact::read(snapshot) },
            Event::Cloud { cloud: "os".into(), fact: CloudFact::Failed(error.clone()) },
            Event::Cluster(ClusterFact::Synced(vec![Arc::new(node.clone())])),
            Event::Cluster(ClusterFact::Applied(Arc::new(node.clone()))),
            Event::Cluster(ClusterFact::NodeEvent(said.clone())),
            Event::Cluster(ClusterFact::Failed(error.clone())),
            Event::Looked { look: LookId(1), answer: Err(error) },
            looked(Answer::Instance(Some(Arc::new(instance)))),
            looked(Answer::Group(Some(Arc::new(group)))),
            looked(Answer::Console(Arc::from(format!(
                "boot\nX-Auth-Token: {CANARY}\nkubeadm join --token abcdef.0123456789abcdef"
            )))),
            looked(Answer::NoConsole(secret("no"))),
            looked(Answer::Actions(vec![action])),
            looked(Answer::Node(Some(Arc::new(node)))),
            looked(Answer::NodeEvents(vec![said])),
            done(Outcome::AlreadySo { text: secret("so") }),
            done(Outcome::Moved { text: secret("moved") }),
            done(Outcome::Limit { limit: None, text: secret("limit") }),
            done(Outcome::Refused { text: secret("no") }),
            done(Outcome::Failed { text: secret("503"), retry_after: None }),
            done(Outcome::Unknown { text: secret("lost") }),
            Event::Command(Command::Pauses(BTreeSet::from([pause]))),
        ]
    }

    #[test]
    fn no_secret_reaches_a_recording_or_the_ledger() {
        let directory = tempfile::tempdir().unwrap();
        let mut engine_host = engine_host(directory.path(), RecordingConfig::STANDARD);
        let events = talkative();
        for (event, place) in events.iter().zip(1..) {
            assert!(format!("{event:?}").contains(CANARY), "event {place} holds the canary");
            engine_host.take(NOW, Input::Event(event.clone()));
        }
        engine_host.end();
        let (lines, notice) = read(directory.path());
        assert_eq!((lines.len(), notice), (events.len() + 1, None));
        for line in lines {
            assert!(!line.contains(CANARY) && !line.contains("0123456789abcdef"), "{line}");
        }
        let ledger = std::fs::read_to_string(directory.path().join("state/ledger/0000000001.jsonl")).unwrap();
        assert!(ledger.contains("opened") && !ledger.contains(CANARY), "{ledger}");
    }

    #[test]
    fn full_recording_stops_with_a_notice_and_the_engine_continues() {
        let directory = tempfile::tempdir().unwrap();
        let small = RecordingConfig { segment_bytes_max: 4096, total_bytes_max: 6000, frame_bytes_max: 256 };
        let mut engine_host = engine_host(directory.path(), small);
        for number in 0..2000 {
            let text: Arc<str> =
                Arc::from(format!("{:x}", (number as u64 + 1).wrapping_mul(0x9e37_79b9_7f4a_7c15)));
            let error = ReadError { kind: ReadErrorKind::TimedOut, text, retry_after: None };
            let event = Event::Cluster(ClusterFact::Failed(error));
            engine_host.take(Time::from_ms(NOW.ms + number), Input::Event(event));
        }
        assert_eq!(engine_host.state().context().now.ms, NOW.ms + 1999, "every event was taken in");
        engine_host.end();
        let (lines, notice) = read(directory.path());
        assert!(lines.len() > 10 && lines.len() < 2000, "{}", lines.len());
        let notice = notice.unwrap();
        assert!(
            notice.contains("Recording ended after") && notice.contains("fills the 6000 bytes"),
            "{notice}"
        );
    }
}
