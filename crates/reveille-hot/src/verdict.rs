//! The verdict on a hot object: its name, its rate and since when, the suspected writers, and the first step.
//!
//! Writers are suspected and never proved: a name in an object's managed fields is what a program calls itself. The verdict
//! carries the evidence for the reader.

use std::fmt;

use reveille_core::model::time::{Span, Time};

use crate::class::Class;
use crate::flips::Flip;
use crate::machine::Machine;
use crate::metrics::Pressure;
use crate::object::{Object, Resource};

/// What is hot.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum Subject {
    /// One object.
    Object(Object),
    /// Some object of a kind: which, the evidence does not tell.
    Kind(Resource),
}

/// How sure it is that it goes on.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum Heat {
    /// Above what may last, seen for a short while: only a longer look tells.
    Warm,
    /// Above what may last, for as long as that takes.
    Hot,
}

/// Who tells of a rate.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum Witness {
    /// Changes that the watch brought.
    Watch,
    /// `metadata.generation`, between two readings.
    Generation,
    /// `metadata.generation` over the object's life.
    Lifetime,
    /// The API server's counts.
    Metrics,
    /// An audit log.
    Audit,
    /// The API server's own log.
    Klog,
}

/// So many writes in so long a time.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Rate {
    /// Who tells.
    pub by: Witness,
    /// Writes.
    pub writes: u64,
    /// In this time; zero when there is only one moment.
    pub over: Span,
}

/// A client that may be the cause.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Suspect {
    /// Manager, or user and program.
    pub name: String,
    /// Writes of it that were seen.
    pub writes: u64,
    /// Where that is seen.
    pub seen_in: &'static str,
}

/// Everything that is known of something hot.
#[derive(Clone, Debug, PartialEq)]
pub struct Verdict {
    /// What.
    pub subject: Subject,
    /// How sure.
    pub heat: Heat,
    /// Since when, on our clock: since when we saw it.
    pub since: Time,
    /// Rates, the most telling first.
    pub rates: Vec<Rate>,
    /// What it looks like.
    pub class: &'static Class,
    /// Who may be the cause.
    pub suspects: Vec<Suspect>,
    /// What changes.
    pub flips: Vec<Flip>,
    /// The machine behind it.
    pub machine: Option<Machine>,
    /// How full the API server is.
    pub pressure: Option<Pressure>,
    /// What is to be known of the evidence.
    pub notes: Vec<String>,
}

impl Rate {
    /// Thousandths of a write in a second; `None` without a time.
    pub fn per_1000_s(&self) -> Option<u64> {
        let ms = u64::try_from(self.over.ms).ok().filter(|ms| *ms > 0)?;
        Some(self.writes.saturating_mul(1_000_000) / ms)
    }
}

impl Witness {
    /// As a word for programs.
    pub const fn name(self) -> &'static str {
        match self {
            Self::Watch => "watch",
            Self::Generation => "generation",
            Self::Lifetime => "lifetime",
            Self::Metrics => "metrics",
            Self::Audit => "audit-log",
            Self::Klog => "server-log",
        }
    }
}

impl fmt::Display for Rate {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self.per_1000_s() {
            None => write!(
                f,
                "{} write{}, too few for a rate",
                self.writes,
                if self.writes == 1 { "" } else { "s" }
            ),
            Some(milli) if milli >= 10_000 => write!(f, "{} writes/s", milli / 1000),
            Some(milli) => write!(f, "{}.{:02} writes/s", milli / 1000, milli % 1000 / 10),
        }?;
        if self.over.ms > 0 { write!(f, " ({} in {})", self.writes, self.over) } else { Ok(()) }
    }
}

impl fmt::Display for Subject {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Object(object) => object.fmt(f),
            Self::Kind(resource) => write!(f, "{resource} (which one is not told)"),
        }
    }
}

impl Verdict {
    /// What to do, in order. Each step rests on the one before it.
    pub fn first_aid(&self) -> Vec<String> {
        let mut steps = Vec::new();
        let is_told = self.suspects.iter().any(|suspect| suspect.seen_in == Witness::Audit.name());
        steps.push(if is_told {
            "the audit log names the writer: look at that process, on that address, before anything is stopped".to_owned()
        } else {
            format!("identify the writer by the audit log: {}", self.audit_advice())
        });
        steps.push(self.class.ends_with.to_owned());
        steps.push(
            "only if the writer stays unknown: scale the controller that owns this kind to one replica"
                .to_owned(),
        );
        steps.push(match &self.subject {
            Subject::Object(object) => format!("then repair the object: {}", repair(object)),
            Subject::Kind(_) => "then look again: reveille hot".to_owned(),
        });
        if self.pressure.is_some_and(|pressure| pressure.is_high()) {
            steps.push(
                "a restart of the API server relieves its memory; it does not end the cause".to_owned(),
            );
        }
        steps
    }

    fn audit_advice(&self) -> String {
        let resource = match &self.subject {
            Subject::Object(object) => &object.resource,
            Subject::Kind(resource) => resource,
        };
        let group = if resource.group.is_empty() { "\"\"" } else { &resource.group };
        format!(
            "level Metadata for {{group: {group}, resources: [{}]}}, then reveille hot --audit-log FILE",
            resource.plural
        )
    }
}

impl Pressure {
    /// From here on it is worth a word: an API server of a hundred nodes lives below it.
    const HIGH_BYTES: u64 = 8 << 30;
    /// Grown by so much while we looked, it will be full within the hour.
    const GROWN_BYTES: i64 = 256 << 20;

    /// Memory is short, or will be, or requests are turned away.
    pub const fn is_high(&self) -> bool {
        self.resident_bytes >= Self::HIGH_BYTES || self.grown_bytes >= Self::GROWN_BYTES || self.rejected > 0
    }
}

fn repair(object: &Object) -> String {
    if object.resource.is_rancher_node() {
        return "a node record of Rancher is mended in one order only; never delete it while its Node exists"
            .to_owned();
    }
    let namespace =
        if object.namespace.is_empty() { String::new() } else { format!(" -n {}", object.namespace) };
    format!(
        "kubectl get {} {}{namespace} -o yaml, and set what flips to what it should be",
        object.resource, object.name
    )
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn rates_are_told_with_what_they_rest_on() {
        let rate = |writes, ms| Rate { by: Witness::Watch, writes, over: Span::from_ms(ms) }.to_string();
        assert_eq!(rate(120, 30_000), "4.00 writes/s (120 in 30 s)");
        assert_eq!(rate(7, 30_000), "0.23 writes/s (7 in 30 s)");
        assert_eq!(rate(3_000, 30_000), "100 writes/s (3000 in 30 s)");
        assert_eq!(rate(1, 0), "1 write, too few for a rate");
    }
}
