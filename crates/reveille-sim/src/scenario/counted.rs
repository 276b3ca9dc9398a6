//! What can be counted in a play: calls that reached the world, records, reads, incidents, repairs under way.

use reveille_agent::effect::Verb;
use reveille_core::effect::Call;
use reveille_core::model::incident::FaultKind;
use reveille_core::model::time::Time;
use reveille_core::record::Record;
use reveille_core::remedies::Reboot;

use crate::drive::Drive;

use super::cast::Cast;
use super::words;

/// How many.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Bound {
    Exactly(u32),
    AtMost(u32),
    AtLeast(u32),
}

impl Bound {
    pub(crate) const fn holds(self, count: u32) -> bool {
        match self {
            Self::Exactly(wanted) => count == wanted,
            Self::AtMost(most) => count <= most,
            Self::AtLeast(least) => count >= least,
        }
    }
}

/// What is counted.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Kind {
    /// Calls of this kind.
    Call(&'static str),
    /// Records.
    Records,
    /// Targeted reads.
    Reads,
    /// Incidents that were opened, of this kind or of any.
    Incidents(Option<FaultKind>),
    /// What agents did, of this kind.
    Act(&'static str),
    /// Calls whose effect a fresh read did not find.
    Failures,
    /// Destructive repairs under way at that moment.
    UnderWay,
}

/// Kinds of calls, each with its plural.
const CALLS: [(&str, &str); 18] = [
    ("call", "calls"),
    ("destructive call", "destructive calls"),
    ("cloud call", "cloud calls"),
    ("ask of an agent", "asks of agents"),
    ("reboot", "reboots"),
    ("stop and start", "stops and starts"),
    ("deletion", "deletions"),
    ("node deletion", "node deletions"),
    ("start", "starts"),
    ("group change", "group changes"),
    ("rule change", "rule changes"),
    ("role assignment", "role assignments"),
    ("nudge", "nudges"),
    ("route removal", "route removals"),
    ("route addition", "route additions"),
    ("address pair", "address pairs"),
    ("tidying", "tidyings"),
    ("route change", "route changes"),
];

/// What agents do that can be counted, each with its plural.
const ACTS: [(&str, &str); 5] = [
    ("act of an agent", "acts of agents"),
    ("reboot by an agent", "reboots by agents"),
    ("reset by an agent", "resets by agents"),
    ("join by an agent", "joins by agents"),
    ("kubelet restart by an agent", "kubelet restarts by agents"),
];

impl Kind {
    pub(crate) fn read(text: &str) -> Result<Self, String> {
        if let Some((name, _)) = CALLS.iter().find(|(one, many)| *one == text || *many == text) {
            return Ok(Self::Call(name));
        }
        if let Some(act) = act_of_agent(text) {
            return Ok(Self::Act(act));
        }
        match text {
            "record" | "records" => return Ok(Self::Records),
            "read" | "reads" => return Ok(Self::Reads),
            "incident" | "incidents" => return Ok(Self::Incidents(None)),
            "failed proof" | "failed proofs" => return Ok(Self::Failures),
            "repair under way" | "repairs under way" => return Ok(Self::UnderWay),
            _ => {}
        }
        if let Some(kind) = text.strip_suffix(" incident").or_else(|| text.strip_suffix(" incidents")) {
            return words::kind(kind).map(|kind| Self::Incidents(Some(kind)));
        }
        let all: Vec<&str> = CALLS.iter().map(|(one, _)| *one).collect();
        Err(format!(
            "`{text}` cannot be counted; one of: {}, record, read, incident, FAULT incident, failed proof, repair under way, {}",
            all.join(", "),
            ACTS.map(|(one, _)| one).join(", ")
        ))
    }
}

/// The kind of act that this names.
fn act_of_agent(text: &str) -> Option<&'static str> {
    ACTS.iter().find(|(one, many)| *one == text || *many == text).map(|(one, _)| *one)
}

/// True when the act is of that kind. To ask for a token changes nothing, and is none.
fn is_act_of(verb: Verb, kind: &str) -> bool {
    match kind {
        "reboot by an agent" => verb.is_reboot(),
        "reset by an agent" => verb == Verb::Reset,
        "join by an agent" => verb == Verb::Join,
        "kubelet restart by an agent" => verb == Verb::RestartKubelet,
        _ => verb != Verb::RequestToken,
    }
}

/// True when the call is of that kind.
pub(crate) fn is_of(call: &Call, kind: &str) -> bool {
    match kind {
        "call" => true,
        "destructive call" => call.is_destructive(),
        "cloud call" => !matches!(call, Call::AskAgent(_) | Call::DeleteNode(_)),
        "ask of an agent" => matches!(call, Call::AskAgent(_)),
        "reboot" => matches!(call, Call::Reboot(_)),
        "stop and start" => matches!(call, Call::Reboot(Reboot { hard: true, .. })),
        "deletion" => matches!(call, Call::DeleteInstance(_)),
        "node deletion" => matches!(call, Call::DeleteNode(_)),
        "start" => matches!(call, Call::Start(_)),
        "group change" => matches!(call, Call::SetPortGroups(_)),
        "rule change" => matches!(call, Call::AddRules(_)),
        "role assignment" => matches!(call, Call::AssignRoles(_)),
        "nudge" => matches!(call, Call::NudgeGroup(_) | Call::NudgeRouter(_)),
        "route removal" => matches!(call, Call::RemoveRoutes(_)),
        "route addition" => matches!(call, Call::AddRoutes(_)),
        "route change" => matches!(call, Call::RemoveRoutes(_) | Call::AddRoutes(_)),
        "address pair" => matches!(call, Call::AddPortPairs(_)),
        "tidying" => matches!(call, Call::DropRule(_)),
        _ => false,
    }
}

/// Everything that was recorded in a play, with its time: the ledger itself is rotated now and then.
#[derive(Clone, Debug, Default)]
pub(crate) struct Kept {
    pub(crate) records: Vec<(Time, Record)>,
    pub(crate) reads: Vec<(Time, u64)>,
}

/// How many there were from then until now.
pub(crate) fn count(kind: Kind, from: Time, drive: &Drive, kept: &Kept) -> u32 {
    let recorded = |is: &dyn Fn(&Record) -> bool| {
        kept.records.iter().filter(|(at, record)| *at >= from && is(record)).count() as u32
    };
    match kind {
        Kind::Call(kind) => {
            let calls = drive.world.calls().iter();
            calls.filter(|called| called.at >= from && is_of(&called.call, kind)).count() as u32
        }
        Kind::Records => recorded(&|_| true),
        Kind::Reads => {
            let before =
                kept.reads.iter().take_while(|(at, _)| *at < from).last().map_or(0, |(_, reads)| *reads);
            (drive.counts().looks - before) as u32
        }
        Kind::Incidents(of) => recorded(&|record| match record {
            Record::Opened { key, .. } => of.is_none_or(|kind| key.kind == kind),
            _ => false,
        }),
        Kind::Act(of) => {
            let acts = drive.world.agent_acts().iter();
            acts.filter(|act| act.at >= from && is_act_of(act.verb, of)).count() as u32
        }
        Kind::Failures => recorded(&|record| matches!(record, Record::Judged { held: false, .. })),
        Kind::UnderWay => drive.state().context().book.destructive_under_way(),
    }
}

/// What was counted, for people.
pub(crate) fn tell(kind: Kind, from: Time, start: Time, drive: &Drive, cast: &Cast, kept: &Kept) -> String {
    let number = count(kind, from, drive, kept);
    let Kind::Call(of) = kind else { return format!("{number}") };
    let calls = drive.world.calls().iter().filter(|called| called.at >= from && is_of(&called.call, of));
    let lines: Vec<String> = calls
        .take(4)
        .map(|called| {
            format!("{} {}", words::shown(called.at.since(start)), cast.plain(&called.call.to_string()))
        })
        .collect();
    let more = if number > 4 { ", …" } else { "" };
    if lines.is_empty() { "none".to_owned() } else { format!("{number}: {}{more}", lines.join(", ")) }
}
