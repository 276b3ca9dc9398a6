//! What a play was, in lines that a person reads: what happened, what Reveille saw, concluded, did and held back, and why.
//!
//! ```text
//!  chronicle (world, process, records) ─┐
//!  context (what is held back, doubted)  ──┴─▶ lines, those alike within a second joined ─▶ at most so many
//! ```
//!
//! It watches only. Machines that were there from the beginning and join without trouble are no news.

use std::collections::{BTreeMap, BTreeSet};

use reveille_core::decide::{self, Next};
use reveille_core::model::cause::Cause;
use reveille_core::model::id::{IncidentId, IntentId};
use reveille_core::model::incident::MachineKey;
use reveille_core::model::time::{Span, Time};
use reveille_core::record::{Domain, Joined, Record};

use crate::drive::{Drive, Happened, What};

use super::cast::Cast;
use super::words::shown;

/// On which side something happened.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum Side {
    /// In the world; no source told Reveille.
    World,
    /// On a machine, by its agent.
    Agent,
    /// Reveille saw, concluded, did or held back.
    Reveille,
    /// To Reveille's own process.
    Process,
    /// An invariant was broken.
    Broken,
}

impl Side {
    /// The word for it.
    pub const fn name(self) -> &'static str {
        match self {
            Self::World => "world",
            Self::Agent => "agent",
            Self::Reveille => "Reveille",
            Self::Process => "process",
            Self::Broken => "BROKEN",
        }
    }
}

/// One line.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Line {
    /// When, after the beginning.
    pub at: Span,
    /// On which side.
    pub side: Side,
    /// About whom; empty where the text says it.
    pub who: Vec<String>,
    /// What.
    pub text: String,
}

/// Between two looks at what is held back.
const LOOK_EVERY: Span = Span::from_s(10);
/// With more cases than this, a look is too dear to be taken so often.
const CASES_MANY: usize = 100;
/// Longer quotes are cut.
const QUOTE_MAX: usize = 110;

/// The lines of a play, as they come.
#[derive(Clone, Debug)]
pub(crate) struct Timeline {
    start: Time,
    lines: Vec<Line>,
    labels: BTreeMap<IncidentId, String>,
    intents: BTreeMap<IntentId, String>,
    told: BTreeSet<(String, String)>,
    doubts: BTreeMap<&'static str, String>,
    /// Machines that have joined and were not Ready then: the record of their first Ready tells nothing new.
    not_ready_yet: BTreeSet<MachineKey>,
    joined: BTreeSet<MachineKey>,
    looked_at: Option<Time>,
}

impl Timeline {
    pub(crate) const fn new(start: Time) -> Self {
        Self {
            start,
            lines: Vec::new(),
            labels: BTreeMap::new(),
            intents: BTreeMap::new(),
            told: BTreeSet::new(),
            doubts: BTreeMap::new(),
            not_ready_yet: BTreeSet::new(),
            joined: BTreeSet::new(),
            looked_at: None,
        }
    }

    /// Takes in what happened.
    pub(crate) fn take(&mut self, happened: Vec<Happened>, cast: &Cast) {
        for Happened { at, what } in happened {
            match what {
                What::World(text) => self.push(at, Side::World, "", &cast.plain(&text)),
                // What was announced is told in the file's own words; what comes of it, in the drive's.
                What::Process(text) if text.starts_with("the process: ") => {}
                What::Process(text) => {
                    let plain = text.split(" (").next().unwrap_or_default();
                    self.push(at, Side::Process, "", &cast.plain(plain));
                }
                What::Broken(violation) => {
                    self.push(at, Side::Broken, "", &cast.plain(&violation.to_string()))
                }
                What::Agent(machine, text) => {
                    self.push(at, Side::Agent, &cast.name(&machine), &cast.plain(&text));
                }
                What::Record(record) => self.record(at, &record, cast),
            }
        }
    }

    /// A person did something that no world knows of.
    pub(crate) fn say(&mut self, at: Time, text: &str) {
        self.push(at, Side::World, "", text);
    }

    /// Something is to happen to Reveille's process.
    pub(crate) fn announce(&mut self, at: Time, text: &str) {
        self.push(at, Side::Process, "", text);
    }

    fn push(&mut self, at: Time, side: Side, who: &str, text: &str) {
        let at = at.since(self.start);
        let alike =
            |line: &&mut Line| line.at.ms / 1000 == at.ms / 1000 && line.side == side && line.text == text;
        if !who.is_empty()
            && let Some(line) = self.lines.iter_mut().rev().take(400).find(alike)
        {
            if !line.who.iter().any(|known| known == who) {
                line.who.push(who.to_owned());
            }
            return;
        }
        let who = if who.is_empty() { Vec::new() } else { vec![who.to_owned()] };
        self.lines.push(Line { at, side, who, text: text.to_owned() });
    }

    fn of_incident(&mut self, at: Time, incident: IncidentId, text: &str) {
        let who = self.labels.get(&incident).cloned().unwrap_or_else(|| incident.to_string());
        self.push(at, Side::Reveille, &who, text);
    }

    fn of_intent(&mut self, at: Time, intent: IntentId, text: &str) {
        let who = self.intents.get(&intent).cloned().unwrap_or_else(|| intent.to_string());
        self.push(at, Side::Reveille, &who, text);
    }

    /// How many at once may be tried in a domain from now on.
    fn of_width(&mut self, at: Time, domain: &Domain, width: u32, pauses: bool) {
        let pause = if pauses { ", after a pause" } else { "" };
        let place = domain.zone.as_ref().map_or_else(String::new, |zone| format!(" in zone {zone}"));
        let text = format!(
            "from now on at most {width} at once for {} of pool {}{place}{pause}",
            domain.kind, domain.pool
        );
        self.push(at, Side::Reveille, "", &text);
    }

    fn record(&mut self, at: Time, record: &Record, cast: &Cast) {
        match record {
            Record::Opened { incident, key, .. } => {
                let subject = key.subject.to_string();
                self.labels.insert(*incident, cast.plain(&subject));
                self.of_incident(at, *incident, &format!("sees a fault: {}", key.kind));
            }
            Record::Diagnosed { incident, findings, .. } => {
                let Some(finding) = findings.first().filter(|finding| finding.cause != Cause::Unknown) else {
                    return;
                };
                let quote = finding.evidence.first().map_or_else(String::new, |it| it.fact.to_string());
                let quote = shortened(&cast.plain(&quote));
                let (says, code) = (finding.cause.says(), finding.cause.code());
                let sure = finding.confidence.name();
                // The same conclusion from a newer quote is no news.
                if !self.told.insert((incident.to_string(), format!("{code} {sure}"))) {
                    return;
                }
                self.of_incident(at, *incident, &format!("concludes: {says} ({code}, {sure}): \"{quote}\""));
            }
            Record::Intended { intent, incident, call, .. } => {
                let who = self.labels.get(incident).cloned().unwrap_or_default();
                self.intents.insert(*intent, who);
                self.of_incident(at, *incident, &format!("decides: {}", cast.plain(&call.to_string())));
            }
            Record::Dropped { intent, why, .. } => {
                let why = cast.plain(&why.to_string());
                self.of_intent(at, *intent, &format!("does not do it after all: {why}"));
            }
            Record::Ended { intent, outcome, .. } => {
                let outcome = outcome.to_string();
                let outcome = outcome.split(" (req-").next().unwrap_or_default().to_owned();
                self.of_intent(at, *intent, &format!("is answered: {}", cast.plain(&outcome)));
            }
            Record::Judged { intent, held, text, .. } => {
                let word = if *held { "sees its effect" } else { "sees no effect" };
                self.of_intent(at, *intent, &format!("{word}: {}", shortened(&cast.plain(text))));
            }
            Record::Asked { machine, value, incident, .. } => {
                let who = cast.plain(&machine.to_string());
                let text = match incident {
                    Some(_) => format!("hears that a person asks for a repair now: {value}"),
                    None => format!("hears that a repair was requested, and no problem is known: {value}"),
                };
                self.push(at, Side::Reveille, &who, &text);
            }
            Record::Kept { incident, until, .. } => {
                let until = shown(until.since(self.start));
                self.of_incident(at, *incident, &format!("keeps it for a look, until {until}"));
            }
            Record::GivenUp { incident, why, .. } => {
                self.of_incident(at, *incident, &format!("gives up and asks a person: {}", cast.plain(why)));
            }
            Record::Closed { incident, verdict, .. } => {
                self.of_incident(at, *incident, &format!("closes it: {}", verdict.name()));
            }
            Record::Width { domain, width, not_before, .. } => {
                self.of_width(at, domain, *width, not_before.is_some());
            }
            Record::Left { .. } | Record::Joined { .. } | Record::Born { .. } => {
                self.of_machines(at, record, cast);
            }
            Record::Started { .. }
            | Record::Cluster { .. }
            | Record::Cordoned { .. }
            | Record::Traced { .. }
            | Record::Forgotten { .. }
            | Record::Departed { .. }
            | Record::Paused { .. }
            | Record::Returned { .. }
            | Record::OthersActed { .. }
            | Record::LostTogether { .. }
            | Record::Tried { .. }
            | Record::CarriedOver { .. }
            | Record::Numbered { .. }
            | Record::FaultSeen { .. }
            | Record::Arrived { .. }
            | Record::FaultsForgiven { .. }
            | Record::Counted { .. } => {}
        }
    }

    fn of_machines(&mut self, at: Time, record: &Record, cast: &Cast) {
        match record {
            Record::Left { machine, why, .. } => {
                let who = cast.plain(&machine.to_string());
                self.push(at, Side::Reveille, &who, &format!("leaves on purpose: {why}"));
            }
            Record::Joined { machines, .. } if at.since(self.start) > Span::from_min(1) => {
                self.tell_joined(at, machines, cast);
            }
            Record::Born { machine, .. } if self.joined.contains(machine) => {
                self.not_ready_yet.insert(machine.clone());
            }
            _ => {}
        }
    }

    fn tell_joined(&mut self, at: Time, machines: &[Joined], cast: &Cast) {
        for Joined { machine, .. } in machines {
            self.joined.insert(machine.clone());
            if self.not_ready_yet.remove(machine) {
                continue;
            }
            self.push(at, Side::Reveille, &cast.plain(&machine.to_string()), "has joined");
        }
    }

    /// Looks at what is held back and what is not believed, now and then.
    pub(crate) fn look(&mut self, drive: &Drive, cast: &Cast) {
        let now = drive.now();
        let pause =
            if drive.state().context().cases.len() > CASES_MANY { Span::from_min(5) } else { LOOK_EVERY };
        if self.looked_at.is_none_or(|at| now.since(at) >= pause) {
            self.look_last(drive, cast);
        }
    }

    /// Looks in any case.
    pub(crate) fn look_last(&mut self, drive: &Drive, cast: &Cast) {
        let now = drive.now();
        if !drive.is_running() || now.since(self.start) < Span::from_s(5) {
            return;
        }
        self.looked_at = Some(now);
        let context = drive.state().context();
        for (name, source) in context
            .clouds
            .values()
            .map(|cloud| ("the cloud", &cloud.source))
            .chain([("the cluster", &context.cluster.source)])
        {
            match source.trust(context.now) {
                reveille_core::observe::source::Trust::No(why) => {
                    let before = self.doubts.insert(name, String::new());
                    if before.is_none() {
                        self.push(
                            now,
                            Side::Reveille,
                            "",
                            &format!("does not believe {name}: {}", cast.plain(&why)),
                        );
                    }
                }
                reveille_core::observe::source::Trust::Since(_) => {
                    if self.doubts.remove(name).is_some() {
                        self.push(
                            now,
                            Side::Reveille,
                            "",
                            &format!("believes {name} again; every timer that rests on it starts again"),
                        );
                    }
                }
            }
        }
        for case in context.cases.values() {
            let decision = decide::decide(&context, case);
            let who = cast.plain(&case.incident.key.subject.to_string());
            match &decision.next {
                Next::Held { .. } => {
                    for (repair_step, blocker) in decision.held.iter().flat_map(|(repair_step, blockers)| {
                        blockers.iter().map(move |blocker| (repair_step, blocker))
                    }) {
                        // A count or a time that runs is the same reason.
                        let kind = format!("{repair_step:?} {:?}", std::mem::discriminant(blocker));
                        if self.told.insert((who.clone(), kind)) {
                            let text = format!(
                                "holds back \"{}\": {}",
                                repair_step.says(),
                                cast.plain(&blocker.to_string())
                            );
                            self.push(now, Side::Reveille, &who, &text);
                        }
                    }
                }
                Next::Ask(how)
                    if self.doubts.is_empty()
                        && self.told.insert((who.clone(), format!("ask {}", case.incident.key.kind))) =>
                {
                    self.push(now, Side::Reveille, &who, &format!("asks a person: {how}"));
                }
                _ => {}
            }
        }
    }

    /// All of them.
    pub(crate) fn lines(self) -> Vec<Line> {
        self.lines
    }
}

fn shortened(text: &str) -> String {
    let flat = text.split_whitespace().collect::<Vec<_>>().join(" ");
    if flat.chars().count() <= QUOTE_MAX {
        return flat;
    }
    flat.chars().take(QUOTE_MAX).chain(['…']).collect()
}
