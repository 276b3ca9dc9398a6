//! The traces of a run: lines for people, and bytes that two runs of one seed must share.
//!
//! The [`Log`] holds one line for everything that changed something (told, recorded, called, judged) and passes over the
//! beat of leases and listings. It is bounded: of a long run the oldest lines go. The [`Digest`] takes in every event and
//! every effect, and is a hash, not a proof against an adversary (FNV-1a, 64 bits).

use std::collections::VecDeque;
use std::fmt::{self, Write};

use reveille_core::effect::Effect;
use reveille_core::event::{AgentFact, CloudFact, ClusterFact, Command, Event};
use reveille_core::model::time::Time;
use reveille_core::model::trace::Passage;
use reveille_core::record::Record;

/// Lines kept of a run.
const LINES_MAX: usize = 20_000;

/// Lines for people.
#[derive(Clone, Debug, Default)]
pub struct Log {
    lines: VecDeque<String>,
    start: Time,
}

impl Log {
    /// A log whose times count from here.
    pub const fn new(start: Time) -> Self {
        Self { lines: VecDeque::new(), start }
    }

    /// Adds a line.
    pub fn push(&mut self, at: Time, text: &str) {
        if self.lines.len() == LINES_MAX {
            self.lines.pop_front();
        }
        let s = at.since(self.start).ms / 1000;
        self.lines.push_back(format!("{:02}:{:02}:{:02}  {text}", s / 3600, s / 60 % 60, s % 60));
    }

    /// Adds what an effect says, where it says anything.
    pub fn push_effect(&mut self, at: Time, effect: &Effect) {
        match effect {
            Effect::Record { record, .. } => self.push(at, &format!("  record  {}", line(record))),
            Effect::Call { intent, call, .. } => self.push(at, &format!("  call    {intent} {call}")),
            Effect::Look { .. } | Effect::List { .. } | Effect::WakeAt(_) => {}
        }
    }

    /// Every line, oldest first.
    pub fn lines(&self) -> impl Iterator<Item = &str> {
        self.lines.iter().map(String::as_str)
    }

    /// The last so many lines, for a message.
    pub fn tail(&self, count: usize) -> String {
        let skip = self.lines.len().saturating_sub(count);
        self.lines.iter().skip(skip).cloned().collect::<Vec<_>>().join("\n")
    }
}

/// A record in one line.
fn line(record: &Record) -> String {
    match record {
        Record::Started { fence, .. } => format!("started as {fence}"),
        Record::Cluster { cluster, .. } => format!("about cluster {cluster}"),
        Record::Joined { machines, .. } => format!("{} machine(s) joined", machines.len()),
        Record::Born { machine, .. } => format!("{machine} was seen being born"),
        Record::Cordoned { machine, sign: Some(sign), .. } => format!("{machine} carries the sign {sign}"),
        Record::Cordoned { machine, gone: true, .. } => format!("the Node of {machine} went with no sign"),
        Record::Cordoned { machine, missing_since: Some(_), .. } => {
            format!("{machine} is missing from the list of its cloud, and the reason is open")
        }
        Record::Cordoned { machine, cordoned: true, .. } => format!("{machine} is cordoned"),
        Record::Cordoned { machine, locked: true, .. } => format!("{machine} is locked, and not cordoned"),
        Record::Cordoned { machine, apart: true, .. } => format!("{machine} is set apart from its pool"),
        Record::Cordoned { machine, .. } => format!("{machine} is neither cordoned nor locked any more"),
        Record::Left { machine, why, .. } => format!("{machine} left: {why}"),
        Record::Traced { machine, trace, .. } => {
            let row = |row: &Passage| format!("{}{}", row.stage, if row.left.is_some() { "" } else { "…" });
            let side = |rows: &[Passage]| rows.iter().map(row).collect::<Vec<_>>().join(" ");
            format!("{machine} came so far: {} | its agent: {}", side(&trace.seen), side(&trace.said))
        }
        Record::LostTogether { machines, .. } => format!("{} machine(s) were lost together", machines.len()),
        Record::OthersActed { what, .. } => format!("others are at work: {what}"),
        Record::Forgotten { machines, .. } => format!("{} machine(s) forgotten", machines.len()),
        Record::Departed { machines, .. } => format!("{} machine(s) are out of sight", machines.len()),
        Record::Paused { scope, over, .. } => {
            format!("the pause or lock of {scope:?} {}", if *over { "is over" } else { "began" })
        }
        Record::Returned { machines, .. } => format!("{} machine(s) are in sight again", machines.len()),
        Record::Opened { incident, key, label, .. } => {
            format!("{incident} opened: {} of {} ({label})", key.kind, key.subject)
        }
        Record::Diagnosed { incident, findings, .. } => {
            let said = findings.iter().map(|finding| {
                let quoted = finding.evidence.first().map_or_else(String::new, |it| it.fact.to_string());
                format!(
                    "{} {} ({}) \"{quoted}\"",
                    finding.cause.code(),
                    finding.cause,
                    finding.confidence.name()
                )
            });
            format!("{incident} diagnosed: {}", said.collect::<Vec<_>>().join("; "))
        }
        Record::Intended { intent, incident, call, .. } => {
            format!("{intent} intended for {incident}: {call}")
        }
        Record::Tried { incident, attempt, .. } => format!("{incident} had tried: {}", attempt.call),
        Record::CarriedOver { incident, repair_step, tries, .. } => {
            format!("{incident} stands on repair step {repair_step}, tried {tries} times")
        }
        Record::Numbered { incident, intent, .. } => format!("counted up to {incident} and {intent}"),
        Record::Dropped { intent, why, .. } => format!("{intent} dropped: {why}"),
        Record::Ended { intent, outcome, .. } => format!("{intent} ended: {outcome}"),
        Record::Judged { intent, held, text, .. } => {
            format!("{intent} judged: {}: {text}", if *held { "took effect" } else { "did not hold" })
        }
        Record::GivenUp { incident, why, .. } => format!("{incident} given up: {why}"),
        Record::Asked { machine, value, incident, .. } => match incident {
            Some(incident) => format!("{incident} is to be repaired now: {value:?}"),
            None => format!("{machine} was to be repaired now, and nothing is wrong: {value:?}"),
        },
        Record::Kept { incident, .. } => format!("{incident}: its machine is kept for a look"),
        Record::Closed { incident, verdict, .. } => format!("{incident} closed: {}", verdict.name()),
        Record::Width { domain, width, not_before, .. } => {
            let pool = &domain.pool;
            let pause = if not_before.is_some() { ", after a pause" } else { "" };
            format!("width of {pool}/{} is {width}{pause}", domain.kind)
        }
        Record::Arrived { pool, machine, .. } => {
            format!("{machine} joined {pool}, against which something counts")
        }
        Record::FaultsForgiven { pool, .. } => format!("what was counted against {pool} is over"),
        Record::FaultSeen { pool, instance, fault, .. } => format!("{instance} of {pool} had: {fault}"),
        Record::Counted { repair, requested, verified, .. } => {
            format!("{repair}: requested {requested}, verified {verified} before")
        }
    }
}

/// A hash over everything that went in and came out.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Digest {
    hash: u64,
    bytes: u64,
}

impl Default for Digest {
    fn default() -> Self {
        Self { hash: 0xcbf2_9ce4_8422_2325, bytes: 0 }
    }
}

impl Write for Digest {
    fn write_str(&mut self, text: &str) -> fmt::Result {
        for byte in text.bytes() {
            self.hash = (self.hash ^ u64::from(byte)).wrapping_mul(0x0000_0100_0000_01b3);
        }
        self.bytes += text.len() as u64;
        Ok(())
    }
}

impl Digest {
    /// Takes in one step. `whole`: every byte of the event; otherwise its kind and size, which is a hundred times faster
    /// over a large fleet and still tells two courses of events apart by their effects.
    pub fn step(&mut self, at: Time, event: &Event, effects: &[Effect], whole: bool) {
        self.event(at, event, whole);
        self.effects(effects);
    }

    /// Takes in what effects an event had.
    pub fn effects(&mut self, effects: &[Effect]) {
        let written = match effects {
            [] => self.write_str("[]"),
            // What nearly every step says is not put into words.
            [Effect::WakeAt(at)] => {
                self.fold(&[4, at.ms.cast_unsigned()]);
                Ok(())
            }
            _ => write!(self, "{effects:?}"),
        };
        debug_assert!(written.is_ok(), "writing into a number does not fail");
    }

    /// Takes in an event.
    pub fn event(&mut self, at: Time, event: &Event, whole: bool) {
        let quiet = match event {
            Event::Tick => Some((1, 0)),
            Event::Cluster(ClusterFact::Alive) => Some((2, 0)),
            Event::Cluster(ClusterFact::Leases(leases)) => Some((3, leases.len())),
            _ => None,
        };
        let written = match quiet {
            _ if whole => write!(self, "{} {event:?} ", at.ms),
            // What comes every few seconds and says nothing new is not put into words.
            Some((kind, size)) => {
                self.fold(&[at.ms.cast_unsigned(), kind, size as u64]);
                Ok(())
            }
            None => write!(self, "{} {} ", at.ms, summary(event)),
        };
        debug_assert!(written.is_ok(), "writing into a number does not fail");
    }

    fn fold(&mut self, parts: &[u64]) {
        for part in parts {
            self.hash = (self.hash ^ part).wrapping_mul(0x0000_0100_0000_01b3);
        }
        self.bytes += 8 * parts.len() as u64;
    }

    /// How many bytes were taken in.
    pub const fn bytes(&self) -> u64 {
        self.bytes
    }
}

/// Sixteen digits, for comparing two runs by eye.
impl fmt::Display for Digest {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{:016x}", self.hash)
    }
}

/// An event in a few words.
pub fn summary(event: &Event) -> String {
    match event {
        Event::Cloud { cloud, fact: CloudFact::Snapshot { snapshot, .. } } => {
            format!("{cloud}: {} instances ({:?})", snapshot.instances.len(), snapshot.scope)
        }
        Event::Cloud { cloud, fact: CloudFact::Failed(error) } => format!("{cloud}: {error}"),
        Event::Cluster(ClusterFact::Identity(cluster)) => format!("cluster: it is {cluster}"),
        Event::Cluster(ClusterFact::IdentityUnread(error)) => format!("cluster: {error}"),
        Event::Cluster(ClusterFact::Synced(nodes)) => format!("cluster: {} nodes listed", nodes.len()),
        Event::Cluster(ClusterFact::Applied(node)) => format!("cluster: {} is {:?}", node.name, node.ready),
        Event::Cluster(ClusterFact::Deleted { name, .. }) => format!("cluster: {name} deleted"),
        Event::Cluster(ClusterFact::Leases(leases)) => format!("cluster: {} leases", leases.len()),
        Event::Cluster(ClusterFact::NodeEvent(event)) => format!("cluster: {} {}", event.reason, event.node),
        Event::Cluster(ClusterFact::Alive) => "cluster: alive".to_owned(),
        Event::Cluster(ClusterFact::Failed(error)) => format!("cluster: {error}"),
        Event::Agent(AgentFact::Said { agent, report }) => format!("{agent}: report {}", report.number),
        Event::Agent(AgentFact::Parted { agent, why }) => format!("{agent} parted: {why}"),
        Event::Agent(AgentFact::Listening) => "agents are heard".to_owned(),
        Event::Agent(AgentFact::Deaf(error)) => format!("agents are not heard: {error}"),
        Event::Looked { look, answer } => match answer {
            Ok(_) => format!("{look} answered"),
            Err(error) => format!("{look} failed: {error}"),
        },
        Event::Recorded(id) => format!("{id} recorded"),
        Event::RecordFailed(id) => format!("{id} refused"),
        Event::Done { intent, outcome } => format!("{intent} done: {outcome}"),
        Event::Command(Command::Pauses(pauses)) => format!("{} pauses", pauses.len()),
        Event::Command(Command::ConfirmCluster(cluster)) => format!("cluster {cluster} is confirmed"),
        Event::Command(Command::ForgetCloud(cloud)) => format!("cloud {cloud} is forgotten"),
        Event::Tick => "tick".to_owned(),
    }
}
