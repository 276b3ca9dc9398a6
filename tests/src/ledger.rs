//! What the ledger on disk says: incidents with their intents, put together from its records.
//!
//! Read from the files, beside a running or a killed controller, with the record crate's own reader. This is how a
//! scenario waits without asking the cloud anything, and how it holds the calls that the proxy counted against what
//! was recorded.

use std::path::Path;

use anyhow::{Context, Result, ensure};
use reveille_core::effect::{Call, Outcome};
use reveille_core::model::cause::Cause;
use reveille_core::model::id::{IncidentId, IntentId};
use reveille_core::model::incident::{FaultKind, Finding, Subject};
use reveille_core::record::{Record, Verdict};
use reveille_wire::ledger::{LedgerLine, from_wire};

/// Everything that was recorded, oldest first.
#[derive(Debug, Default)]
pub struct Ledger {
    /// The records.
    pub records: Vec<Record>,
    /// Incidents in the order in which they opened.
    pub incidents: Vec<Incident>,
}

/// One fault as the ledger tells it.
#[derive(Debug)]
pub struct Incident {
    /// Its number.
    pub id: IncidentId,
    /// What is wrong.
    pub kind: FaultKind,
    /// With whom.
    pub subject: Subject,
    /// The subject's name for people.
    pub label: String,
    /// The newest conclusion.
    pub findings: Vec<Finding>,
    /// The cause that each conclusion acts on, in the order in which they were drawn, each once in a row.
    pub causes: Vec<Cause>,
    /// What was decided.
    pub intents: Vec<Intent>,
    /// Why a person is asked, if one is.
    pub given_up: Option<String>,
    /// How it ended, if it has.
    pub verdict: Option<Verdict>,
}

/// One decision and what came of it.
#[derive(Debug)]
pub struct Intent {
    /// Its number.
    pub id: IntentId,
    /// Which repair step of its incident's escalation.
    pub repair_step: u8,
    /// What was to be called.
    pub call: Call,
    /// What the call said.
    pub outcome: Option<Outcome>,
    /// What a fresh read said.
    pub held: Option<bool>,
    /// Why it was not carried out, if so.
    pub dropped: Option<String>,
}

impl Ledger {
    /// Reads the ledger of a state folder. No ledger yet reads as an empty one.
    ///
    /// # Errors
    /// When a line is damaged or not understood.
    pub fn read(state: &Path) -> Result<Self> {
        let history = reveille_record::history::<LedgerLine>(state).context("cannot read the ledger")?;
        ensure!(history.damage.is_empty(), "the ledger is damaged: {:?}", history.damage);
        let records: Result<Vec<Record>, _> =
            history.records.into_iter().map(|(_, line)| from_wire(line)).collect();
        Ok(Self::of(records?))
    }

    /// Puts records together, whichever process wrote them.
    pub fn of(records: Vec<Record>) -> Self {
        let mut ledger = Self { records, incidents: Vec::new() };
        for record in ledger.records.clone() {
            ledger.take(record);
        }
        ledger
    }

    fn take(&mut self, record: Record) {
        match record {
            Record::Opened { incident, key, label, .. } => self.incidents.push(Incident {
                id: incident,
                kind: key.kind,
                subject: key.subject,
                label: label.to_string(),
                findings: Vec::new(),
                causes: Vec::new(),
                intents: Vec::new(),
                given_up: None,
                verdict: None,
            }),
            Record::Diagnosed { incident, findings, .. } => {
                self.with(incident, |found| {
                    found.causes.extend(findings.first().map(|finding| finding.cause.clone()));
                    found.causes.dedup();
                    found.findings = findings;
                });
            }
            Record::Intended { incident, intent, repair_step, call, .. } => self.with(incident, |found| {
                let open = Intent { id: intent, repair_step, call, outcome: None, held: None, dropped: None };
                found.intents.push(open);
            }),
            Record::Ended { intent, outcome, .. } => {
                self.with_intent(intent, |found| found.outcome = Some(outcome))
            }
            Record::Judged { intent, held, .. } => self.with_intent(intent, |found| found.held = Some(held)),
            Record::Dropped { intent, why, .. } => {
                self.with_intent(intent, |found| found.dropped = Some(why.to_string()));
            }
            Record::GivenUp { incident, why, .. } => {
                self.with(incident, |found| found.given_up = Some(why.to_string()));
            }
            Record::Closed { incident, verdict, .. } => {
                self.with(incident, |found| found.verdict = Some(verdict));
            }
            _ => {}
        }
    }

    fn with(&mut self, id: IncidentId, change: impl FnOnce(&mut Incident)) {
        if let Some(found) = self.incidents.iter_mut().find(|incident| incident.id == id) {
            change(found);
        }
    }

    fn with_intent(&mut self, id: IntentId, change: impl FnOnce(&mut Intent)) {
        let intents = self.incidents.iter_mut().flat_map(|incident| &mut incident.intents);
        if let Some(found) = intents.into_iter().find(|intent| intent.id == id) {
            change(found);
        }
    }

    /// Incidents of this kind about a subject of this name (any, when it is empty).
    pub fn about<'a>(&'a self, label: &str, kind: FaultKind) -> impl Iterator<Item = &'a Incident> + use<'a> {
        let label = label.to_owned();
        let named = move |incident: &&Incident| label.is_empty() || incident.label == label;
        self.incidents.iter().filter(named).filter(move |incident| incident.kind == kind)
    }

    /// The newest such incident, or in words what there is instead.
    ///
    /// # Errors
    /// When there is none.
    pub fn newest(&self, label: &str, kind: FaultKind) -> Result<&Incident> {
        let found = self.about(label, kind).last();
        found.with_context(|| format!("no incident {kind} of \"{label}\"; there are: {}", self.told()))
    }

    /// Everything that was decided.
    pub fn intents(&self) -> impl Iterator<Item = &Intent> {
        self.incidents.iter().flat_map(|incident| &incident.intents)
    }

    /// Every incident in a few words.
    pub fn told(&self) -> String {
        let told: Vec<String> = self.incidents.iter().map(Incident::told).collect();
        if told.is_empty() { "none".to_owned() } else { told.join("; ") }
    }

    /// What must be so of any ledger: no number twice, no outcome without an intent, no intent after the end of its
    /// incident, and an end for every intent of a closed one.
    ///
    /// # Errors
    /// At the first that is not so.
    pub fn is_consistent(&self) -> Result<()> {
        let mut seen = std::collections::BTreeSet::new();
        for intent in self.intents() {
            ensure!(seen.insert(intent.id), "{} was intended twice", intent.id);
        }
        for record in &self.records {
            if let Record::Ended { intent, .. } | Record::Judged { intent, .. } = record {
                ensure!(seen.contains(intent), "{intent} ended and was never intended");
            }
        }
        for incident in self.incidents.iter().filter(|incident| incident.verdict == Some(Verdict::Mended)) {
            let open = incident.intents.iter().find(|i| i.outcome.is_none() && i.dropped.is_none());
            ensure!(open.is_none(), "{} is closed and {open:?} has no outcome", incident.told());
        }
        Ok(())
    }
}

impl Incident {
    /// In a few words.
    pub fn told(&self) -> String {
        let intents: Vec<String> = self
            .intents
            .iter()
            .map(|intent| {
                let outcome =
                    intent.outcome.as_ref().map_or_else(|| "no outcome".to_owned(), |o| o.to_string());
                format!("{} ({}, held {:?})", intent.call, outcome, intent.held)
            })
            .collect();
        let end = match (&self.verdict, &self.given_up) {
            (Some(verdict), _) => verdict.name(),
            (None, Some(_)) => "given up",
            (None, None) => "open",
        };
        format!("{} {} {} [{}] {end}", self.id, self.label, self.kind, intents.join(", "))
    }

    /// Text of all its evidence.
    pub fn evidence(&self) -> String {
        let facts = self.findings.iter().flat_map(|finding| &finding.evidence);
        facts.map(|fact| format!("{}: {}\n", fact.source, fact.fact)).collect()
    }

    /// The stable code of its first finding; empty when there is none.
    pub fn code(&self) -> &str {
        self.findings.first().map_or("", |finding| finding.cause.code())
    }

    /// It is over, and in this way.
    ///
    /// # Errors
    /// When it is not.
    pub fn ended(&self, verdict: Verdict) -> Result<()> {
        ensure!(self.verdict == Some(verdict), "not {}: {}", verdict.name(), self.told());
        Ok(())
    }
}
