//! What a machine says of itself, judged for the controller: texts in, types of the core out.
//!
//! ```text
//!  console ─▶ keep (masked, bounded) ─▶ steps ──────────────▶ Guest: how far the boot came, what answered
//!                 └▶ after the last join ─┐
//!  Said ─▶ notes (conditions, events, csr)┴▶ Reader ─▶ judge ─▶ LogFinding, in order, with causes as the core knows them
//! ```
//!
//! The driver, the commands that look, the replay and the simulator all call this, and nothing else turns texts of machines
//! into causes. Pure: the same catalogue and texts give the same findings. It decides no repair; what a cause says about
//! repairs is the catalogue's and travels with it.

mod notes;

use std::collections::BTreeSet;
use std::sync::{Arc, LazyLock};

use reveille_core::diagnose::console::{keep, mask_secrets};
use reveille_core::effect::ReadError;
use reveille_core::event::{Answer, Event};
use reveille_core::model::cause::{Cause, Entry};
use reveille_core::model::evidence::{Line, Source};
use reveille_core::model::guest::{BootProgress, ConfigDrive, Guest};
use reveille_core::model::id::{CauseCode, CauseLabel};
use reveille_core::model::incident;
use reveille_core::model::log_evidence::{EvidenceQuery, Unread};
use reveille_core::model::log_findings::{self, LogFinding, LogFindings};

use crate::catalogue::{self, Catalogue, Complaint, Signal, Tells};
use crate::finding::{Confidence, Finding, Quote};
use crate::judge::judge;
use crate::lines::comparable;
use crate::scan::{Reader, Scanner, TooLarge};

/// How a machine's console is called where its lines are read and quoted.
const CONSOLE: &str = "console";
/// How the events about a Node are called there.
const EVENT: &str = "event";
/// Whose words the signs of the program are that looks for causes on the machine itself.
const DOCTOR: &str = "reveille doctor";
/// Causes that are handed over at most; further ones help no operator.
const TOLD_MAX: usize = 6;

/// A catalogue, ready to judge.
#[derive(Debug)]
pub struct Judge {
    scanner: Scanner<'static>,
    causes: Vec<Cause>,
}

/// A text about a machine beside its console, with the name that it is quoted by.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Note {
    /// Where it was read: `node condition Ready`.
    pub source: String,
    /// What it says, in lines.
    pub text: String,
}

/// What comes with the program does not make a catalogue; a fault of ours.
#[derive(Clone, Debug, thiserror::Error)]
#[error("the built-in catalogue cannot be taken: {0}")]
pub struct Unusable(String);

static BUILT_IN: LazyLock<Result<Arc<Judge>, Unusable>> = LazyLock::new(|| {
    let told = |complaints: Vec<Complaint>| {
        Unusable(complaints.iter().map(ToString::to_string).collect::<Vec<_>>().join("; "))
    };
    let catalogue = Catalogue::built_in().map_err(told)?;
    Judge::new(catalogue).map(Arc::new).map_err(|error| Unusable(error.to_string()))
});

impl Judge {
    /// One that judges by this catalogue.
    pub fn new(catalogue: Catalogue) -> Result<Self, TooLarge> {
        let causes = catalogue.causes.iter().map(cause).collect();
        Ok(Self { scanner: Scanner::owning(catalogue)?, causes })
    }

    /// The one that comes with the program.
    pub fn built_in() -> Result<Arc<Self>, Unusable> {
        BUILT_IN.clone()
    }

    /// What it judges by.
    pub fn catalogue(&self) -> &Catalogue {
        self.scanner.catalogue()
    }

    /// The cause of that code or label, as findings name it.
    pub fn cause(&self, code_or_label: &str) -> Option<Cause> {
        let known = |cause: &&Cause| cause.label() == code_or_label || cause.code() == code_or_label;
        self.causes.iter().find(known).cloned()
    }

    /// What a machine's console and the notes about it say, together.
    pub fn log_findings(&self, console: Result<&str, &str>, notes: &[Note]) -> LogFindings {
        self.heard_of(console, true, notes)
    }

    /// What the cloud and the cluster answered about one machine, judged together. Where the console could not be read and no
    /// other source says why, the result is an error, and the caller asks again.
    pub fn weigh(
        &self,
        evidence_query: &EvidenceQuery,
        console: Result<Answer, ReadError>,
        said: Result<Answer, ReadError>,
    ) -> Result<Answer, ReadError> {
        let (console, failed) = match console {
            Ok(Answer::Console(text)) => (Ok(text), None),
            Ok(Answer::NoConsole(why)) => (Err(why), None),
            Ok(_) => (Err(Arc::from("the cloud answered something else")), None),
            Err(error) => (Err(error.text.clone()), Some(error)),
        };
        let (notes, mut unread) = match said {
            Ok(Answer::Said(said)) => {
                let clean = |unread: &Unread| self::unread(unread.source.clone(), &unread.why);
                (notes::notes(&said, &evidence_query.asks_as), said.unread.iter().map(clean).collect())
            }
            Ok(_) => (Vec::new(), vec![unread(Source::Cluster, "it answered something else")]),
            Err(error) => (Vec::new(), vec![unread(Source::Cluster, &error.text)]),
        };
        let console = console.as_deref().map_err(|why| &**why);
        let log_findings = self.heard_of(console, evidence_query.console_counts, &notes);
        match failed {
            Some(error) if log_findings.told.is_empty() => return Err(error),
            Some(error) => unread.push(self::unread(Source::Console, &error.text)),
            None => {}
        }
        Ok(Answer::LogFindings(Arc::new(LogFindings { unread, ..log_findings })))
    }

    fn heard_of(&self, console: Result<&str, &str>, console_counts: bool, notes: &[Note]) -> LogFindings {
        let console = console.map(keep).map_err(Arc::from);
        let seen = console.as_ref().map_or_else(|_| Shown::default(), |text| self.shown(text));
        let mut reader = Reader::new(&self.scanner);
        if let (Ok(text), true) = (&console, console_counts) {
            reader.text(CONSOLE, &after_line(text, seen.joined_at));
        }
        for Note { source, text } in notes {
            reader.text(source, text);
        }
        reader.keep(|source, signal| self.may_give(source, signal));
        let told = judge(&reader).findings.into_iter().filter_map(|finding| self.told(finding, &seen));
        let mut told: Vec<LogFinding> = told.take(TOLD_MAX).collect();
        // What was doubted after the ranking stands behind what was not.
        told.sort_by_key(|told| told.confidence == incident::Confidence::Possible);
        LogFindings { console, guest: seen.guest, told, unread: Vec::new() }
    }

    /// Whether a source may give this sign. Of a first boot the machine's own texts tell, and so of what was found on it: a Node
    /// has neither. And each kubelet may write events about every Node: an event of another machine said that a first boot had
    /// failed, and a machine that had served was deleted; one event an hour kept a dead machine from every repair. So events
    /// explain, and give no sign of a cause that takes a repair away.
    fn may_give(&self, source: &str, signal: &Signal) -> bool {
        let Some(cause) = signal.cause.map(|cause| &self.catalogue().causes[cause]) else { return true };
        let is_of_machine = cause.first_boot || signal.source == DOCTOR;
        let takes_away = cause.no_reboot.is_some() || cause.no_replace.is_some();
        source == CONSOLE || !(is_of_machine || source == EVENT && takes_away)
    }

    /// The event as the engine takes it: what was read of a machine is judged, everything else is as it was.
    pub fn heard(&self, event: Event) -> Event {
        match event {
            Event::Looked { look, answer: Ok(Answer::Console(text)) } => {
                let log_findings = Arc::new(self.log_findings(Ok(&text), &[]));
                Event::Looked { look, answer: Ok(Answer::LogFindings(log_findings)) }
            }
            other => other,
        }
    }

    fn shown(&self, text: &str) -> Shown {
        let mut shown = Shown::default();
        for (number, line) in (1..).zip(text.lines()) {
            let comparable = comparable(line);
            for step in &self.catalogue().steps {
                if step.carries(&comparable) {
                    step.tells.iter().for_each(|tells| shown.take(number, *tells));
                }
            }
        }
        shown
    }

    fn told(&self, finding: Finding, seen: &Shown) -> Option<LogFinding> {
        let Finding { code, stage, confidence, evidence, against, follows, .. } = finding;
        let cause = self.cause(&code)?;
        let of = |quotes: &[Quote], lines: &BTreeSet<u64>| {
            quotes.iter().filter(|quote| quote.source == CONSOLE && lines.contains(&quote.line)).count()
        };
        let unleased = of(&evidence, &seen.no_lease);
        // A machine that has an address and then fails to get one fails on another interface, which it may not need.
        let networked = seen.guest.addressed || seen.guest.answered;
        let doubted = networked && !evidence.is_empty() && unleased == evidence.len();
        Some(LogFinding {
            cause,
            stage,
            confidence: if doubted { incident::Confidence::Possible } else { sure(confidence) },
            unanswered: of(&evidence, &seen.unanswered) > 0,
            no_lease: unleased > 0,
            proof: evidence.into_iter().map(quote).collect(),
            against: against.into_iter().map(quote).collect(),
            follows: follows.into_iter().filter_map(|finding| self.told(finding, seen)).collect(),
        })
    }
}

/// What the steps of a console come to.
#[derive(Clone, Debug)]
struct Shown {
    guest: Guest,
    joined_at: u64,
    no_lease: BTreeSet<u64>,
    unanswered: BTreeSet<u64>,
}

impl Default for Shown {
    fn default() -> Self {
        let (no_lease, unanswered) = (BTreeSet::new(), BTreeSet::new());
        Self { guest: Guest::UNSEEN, joined_at: 0, no_lease, unanswered }
    }
}

impl Shown {
    fn take(&mut self, line: u64, tells: Tells) {
        let guest = &mut self.guest;
        let came_to = match tells {
            Tells::NewBoot => {
                *guest = Guest { config_drive: guest.config_drive, ..Guest::UNSEEN };
                BootProgress::Kernel
            }
            Tells::Kernel | Tells::Addressed => BootProgress::Kernel,
            Tells::FirstBoot => BootProgress::FirstBoot,
            Tells::Userland => BootProgress::Userland,
            Tells::Kubelet => BootProgress::Kubelet,
            Tells::Joined => {
                self.joined_at = line;
                BootProgress::Joined
            }
            Tells::Answered | Tells::ConfigDrive | Tells::NoConfigDrive => BootProgress::Nothing,
            Tells::NoLease | Tells::Unanswered => BootProgress::Nothing,
        };
        guest.boot = guest.boot.max(came_to);
        match tells {
            Tells::Addressed => guest.addressed = true,
            Tells::Answered => guest.answered = true,
            Tells::ConfigDrive => guest.config_drive = ConfigDrive::Present,
            Tells::NoConfigDrive => guest.config_drive = ConfigDrive::Absent,
            Tells::NoLease => drop(self.no_lease.insert(line)),
            Tells::Unanswered => drop(self.unanswered.insert(line)),
            _ => {}
        }
    }
}

/// The text with nothing on its first lines: what came before a join that worked counts for nothing, and lines keep their
/// numbers.
fn after_line(text: &str, number: u64) -> String {
    let before = usize::try_from(number).unwrap_or(usize::MAX);
    let blank = "\n".repeat(before.min(text.len()));
    let rest: Vec<&str> = text.lines().skip(before).collect();
    blank + &rest.join("\n")
}

const fn sure(confidence: Confidence) -> incident::Confidence {
    match confidence {
        Confidence::Possible => incident::Confidence::Possible,
        Confidence::Likely => incident::Confidence::Likely,
        Confidence::Sure => incident::Confidence::Sure,
    }
}

fn unread(source: Source, why: &str) -> Unread {
    Unread { source, why: Arc::from(mask_secrets(why)) }
}

fn quote(Quote { source, line, text, times, sign }: Quote) -> log_findings::Quote {
    // What the cluster says are statements, without a file; the number of a line that was made from one helps no reader.
    let (source, number) = match &*source {
        CONSOLE => (Source::Console, line),
        EVENT => (Source::Events, 0),
        _ => (Source::Named(Arc::from(source)), 0),
    };
    let line = Line { number, times, sign: Arc::from(sign) };
    log_findings::Quote { source, text: Arc::from(text), line }
}

/// The catalogue's words on a cause, as the engine takes them.
fn cause(cause: &catalogue::Cause) -> Cause {
    let texts = |all: &[String]| all.iter().map(|text| Arc::from(text.as_str())).collect();
    let maybe = |text: &Option<String>| text.as_deref().map(Arc::from);
    Cause::Catalogued(Arc::new(Entry {
        code: CauseCode::from(cause.code.as_str()),
        label: CauseLabel::from(cause.label.as_str()),
        stage: cause.stage,
        says: Arc::from(cause.title.as_str()),
        remedy: Arc::from(cause.remedy.as_str()),
        commands: texts(&cause.commands),
        collect: texts(&cause.collect),
        first_boot: cause.first_boot,
        no_reboot: maybe(&cause.no_reboot),
        no_replace: maybe(&cause.no_replace),
    }))
}

#[cfg(test)]
mod tests;
