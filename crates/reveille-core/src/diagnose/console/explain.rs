//! Explains why a running machine never joined: weighs its ports, its groups and its console against each other.
//!
//! Three faults look alike from outside, because the machine does not answer: a port without its group, a port that the
//! cloud never wired, and a guest that failed on its own. The console tells them apart. Packets that went *unanswered* fit
//! a port without any of its groups, and a port that is not wired. An answer of any kind (a 500, a refused token, a panic)
//! shows that the network works or does not matter. The console's own finding then goes first.
//!
//! The order of the findings is the order in which to act. A fault that is certain and that the controller can repair from
//! outside stands before what it explains; a fault that may only have contributed stands behind.

use std::sync::Arc;

use crate::diagnose::network::membership::{PortNeed, Verdict};
use crate::model::cause::Cause;
use crate::model::evidence::{
    Evidence, Fact, GuestFact, Line, MachineFact, NetworkFact, Source, quoted, shown,
};
use crate::model::guest::Guest;
use crate::model::incident::{Confidence, Finding};
use crate::model::instance::{Instance, InstanceState, Port, PortStatus};
use crate::model::log_findings::{LogFinding, LogFindings};
use crate::model::stage::Stage;
use crate::model::time::Time;

use super::lines;

/// How many of the console's last lines are quoted where nothing is known.
pub(super) const TAIL_LINES: usize = 3;

/// Everything that was gathered about a machine that never joined.
#[derive(Clone, Debug)]
pub struct NeverJoinedFacts<'a> {
    /// What the machine says of itself, where its console was read; or why that read failed.
    pub log_findings: Option<Result<&'a LogFindings, Arc<str>>>,
    /// Its ports.
    pub ports: &'a [Arc<Port>],
    /// What its ports lack.
    pub group_needs: &'a [PortNeed],
    /// The instance itself.
    pub instance: &'a Instance,
    /// When all this was read, on our clock.
    pub read_at: Time,
}

impl<'a> NeverJoinedFacts<'a> {
    fn read(&self) -> Option<&'a LogFindings> {
        self.log_findings.as_ref().and_then(|read| read.as_ref().ok()).copied()
    }

    /// Everything that its texts prove, with what follows from it.
    fn told(&self) -> impl Iterator<Item = &'a LogFinding> {
        let roots = self.read().map_or(&[][..], |read| &read.told);
        roots.iter().flat_map(|told| std::iter::once(told).chain(&told.follows))
    }

    /// With no word from the guest, or only that nothing answers it, the objects outside explain it best.
    fn outside_explains(&self) -> bool {
        self.told().next().is_none() || self.told().any(|told| told.unanswered)
    }

    fn guest(&self) -> Guest {
        self.read().map_or(Guest::UNSEEN, |read| read.guest)
    }
}

/// Why it never joined. Never empty; the first finding is the one to act on.
pub fn explain_never_joined(facts: &NeverJoinedFacts<'_>) -> Vec<Finding> {
    let roots = facts.read().map_or(&[][..], |read| &read.told);
    let said: Vec<Finding> = roots.iter().map(|told| told.finding(facts.read_at)).collect();
    let outside_explains = facts.outside_explains();
    let mut first = Vec::new();
    let mut last = Vec::new();
    if let Some(finding) = group_missing(facts) {
        let bare = no_port_carries_any(facts);
        if outside_explains && (bare || said.is_empty()) { first.push(finding) } else { last.push(finding) }
    }
    let wire_works = facts.guest().addressed || facts.guest().answered;
    if let Some(finding) = not_wired(facts) {
        if outside_explains && !wire_works { first.push(finding) } else { last.push(finding) }
    }
    last.extend(unsecurable(facts));
    let mut findings: Vec<Finding> = first.into_iter().chain(said).chain(last).collect();
    note_what_follows(&mut findings, facts);
    note_config_drive(&mut findings, facts);
    if findings.is_empty() {
        findings.push(unknown(facts));
    }
    findings
}

/// True when there is a wanted group that no port of the machine carries.
fn no_port_carries_any(facts: &NeverJoinedFacts<'_>) -> bool {
    let mut wanted = facts.group_needs.iter().flat_map(|need| &need.missing);
    wanted.any(|group| !facts.ports.iter().any(|port| port.groups.contains(group)))
}

fn lacks(need: &PortNeed, facts: &NeverJoinedFacts<'_>) -> Evidence {
    let port = facts.ports.iter().find(|port| port.id == need.port);
    let carried = shown(port.into_iter().flat_map(|port| &port.groups).cloned());
    let (missing, obstacle) = (need.missing.clone(), need.verdict.obstacle());
    let fact = NetworkFact::Groups { carried, missing, obstacle };
    Evidence::new(Source::Port(need.port.clone()), fact, facts.read_at)
}

fn group_missing(facts: &NeverJoinedFacts<'_>) -> Option<Finding> {
    let needs = facts.group_needs.iter().filter(|need| need.verdict == Verdict::Applicable);
    let evidence: Vec<Evidence> = needs.map(|need| lacks(need, facts)).collect();
    if evidence.is_empty() {
        return None;
    }
    let confidence = if no_port_carries_any(facts) { Confidence::Sure } else { Confidence::Possible };
    let mut finding = Finding::new(Cause::SecurityGroupMissing, confidence, evidence);
    if let Some(dhcp) = facts.told().find(|told| told.no_lease) {
        let line = quoted(dhcp.proof.first().map_or("", |line| &line.text));
        finding.against.push(Evidence::new(Source::Console, GuestFact::NoLease(line), facts.read_at));
    } else {
        finding.against.extend(packets_pass(facts, false));
    }
    Some(finding)
}

/// What speaks for packets passing the port. A lease shows that the wire works and nothing about groups.
fn packets_pass(facts: &NeverJoinedFacts<'_>, a_lease_counts: bool) -> Option<Evidence> {
    let guest = facts.guest();
    let asked = facts.told().find(|told| told.is_of_the_cluster()).and_then(|told| told.proof.first());
    let (source, fact) = if guest.answered {
        (Source::Console, GuestFact::Answered)
    } else if a_lease_counts && guest.addressed {
        (Source::Console, GuestFact::Addressed)
    } else if let Some(quote) = asked {
        (quote.source.clone(), GuestFact::HeardOf)
    } else if !facts.outside_explains() {
        (Source::Console, GuestFact::NeedsNoNetwork)
    } else {
        return None;
    };
    Some(Evidence::new(source, fact, facts.read_at))
}

fn unsecurable(facts: &NeverJoinedFacts<'_>) -> Option<Finding> {
    let needs = facts.group_needs.iter().filter(|need| need.verdict != Verdict::Applicable);
    let evidence: Vec<Evidence> = needs.map(|need| lacks(need, facts)).collect();
    (!evidence.is_empty()).then(|| Finding::new(Cause::PortUnsecurable, Confidence::Possible, evidence))
}

/// A port that is DOWN under a running instance: nothing passes it, whatever its groups say.
fn not_wired(facts: &NeverJoinedFacts<'_>) -> Option<Finding> {
    if facts.instance.state != InstanceState::Active {
        return None;
    }
    let down = facts.ports.iter().filter(|port| port.status == PortStatus::Down);
    let evidence: Vec<Evidence> = down
        .map(|port| {
            let fact = NetworkFact::PortDown(shown(port.addresses.iter().copied()));
            Evidence::new(Source::Port(port.id.clone()), fact, facts.read_at)
        })
        .collect();
    let all_down = evidence.len() == facts.ports.len();
    if evidence.is_empty() {
        return None;
    }
    let confidence = if all_down { Confidence::Sure } else { Confidence::Likely };
    let mut finding = Finding::new(Cause::PortNotWired, confidence, evidence);
    finding.against.extend(packets_pass(facts, true));
    Some(finding)
}

/// The lines of the console that follow from the first finding are quoted under it, too.
fn note_what_follows(findings: &mut [Finding], facts: &NeverJoinedFacts<'_>) {
    let Some(first) = findings.first_mut() else { return };
    if !matches!(first.cause, Cause::SecurityGroupMissing | Cause::PortNotWired) {
        return;
    }
    let of_first_boot = facts.told().find(|told| told.cause.is_of_the_first_boot());
    let followed = of_first_boot.or_else(|| facts.told().next());
    if let Some(quote) = followed.and_then(|told| told.proof.first()) {
        first.evidence.push(quote.evidence(facts.read_at));
    }
}

/// What the cloud and the guest say of a config drive, where the first boot went without its configuration.
fn note_config_drive(findings: &mut [Finding], facts: &NeverJoinedFacts<'_>) {
    let (attached, found) = (facts.instance.config_drive, facts.guest().config_drive);
    let about_configuration = |finding: &&mut Finding| {
        let entry = finding.cause.entry();
        entry.is_some_and(|entry| entry.first_boot && finding.stage <= Stage::FetchConfig)
    };
    if let Some(finding) = findings.iter_mut().find(about_configuration) {
        let fact = MachineFact::ConfigDrive { attached, found };
        finding.evidence.push(Evidence::new(Source::Instance, fact, facts.read_at));
    }
}

/// Nothing is known to be wrong: where it stopped, and what to read next.
fn unknown(facts: &NeverJoinedFacts<'_>) -> Finding {
    let mut evidence = Vec::new();
    let of_console = |fact: Fact| Evidence::new(Source::Console, fact, facts.read_at);
    let mut stage = Stage::OsBoot;
    match (facts.read().map(|read| &read.console), &facts.log_findings) {
        (Some(Ok(console)), _) => {
            let boot = facts.guest().boot;
            stage = boot.stage();
            evidence.push(of_console(GuestFact::Boot(boot).into()));
            evidence.extend(lines::tail(console, TAIL_LINES).into_iter().map(|(number, line)| {
                let place = Line { number, times: 1, sign: Arc::from("") };
                Evidence { line: Some(place), ..of_console(Fact::Quoted(quoted(&line))) }
            }));
        }
        (Some(Err(why)), _) | (None, Some(Err(why))) => {
            evidence.push(of_console(GuestFact::NoConsole(quoted(why)).into()));
        }
        (None, _) => evidence.push(of_console(GuestFact::ConsoleUnread.into())),
    }
    if facts.ports.is_empty() {
        stage = Stage::Network;
        evidence.push(Evidence::new(Source::Instance, MachineFact::NoPort, facts.read_at));
    }
    Finding { stage, ..Finding::new(Cause::Unknown, Confidence::Possible, evidence) }
}
