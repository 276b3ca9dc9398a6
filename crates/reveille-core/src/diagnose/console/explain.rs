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
use crate::model::incident::{Confidence, Evidence, Finding, Line};
use crate::model::instance::{Instance, InstanceState, Port, PortStatus};
use crate::model::stage::Stage;
use crate::model::testimony::{BootProgress, CONSOLE, ConfigDrive, Guest, Testimony, Told};
use crate::model::time::Time;

use super::lines;

/// How many of the console's last lines are quoted where nothing is known.
pub(super) const TAIL_LINES: usize = 3;

/// Everything that was gathered about a machine that never joined.
#[derive(Clone, Debug)]
pub struct NeverJoinedFacts<'a> {
    /// What the machine says of itself, where its console was read; or why that read failed.
    pub testimony: Option<Result<&'a Testimony, Arc<str>>>,
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
    fn read(&self) -> Option<&'a Testimony> {
        self.testimony.as_ref().and_then(|read| read.as_ref().ok()).copied()
    }

    /// Everything that its texts prove, with what follows from it.
    fn told(&self) -> impl Iterator<Item = &'a Told> {
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

fn names<T: ToString>(items: impl IntoIterator<Item = T>) -> String {
    items.into_iter().map(|item| item.to_string()).collect::<Vec<_>>().join(", ")
}

/// True when there is a wanted group that no port of the machine carries.
fn no_port_carries_any(facts: &NeverJoinedFacts<'_>) -> bool {
    let mut wanted = facts.group_needs.iter().flat_map(|need| &need.missing);
    wanted.any(|group| !facts.ports.iter().any(|port| port.groups.contains(group)))
}

fn lacks(need: &PortNeed, facts: &NeverJoinedFacts<'_>) -> Evidence {
    let carried = facts
        .ports
        .iter()
        .find(|port| port.id == need.port)
        .map_or_else(String::new, |port| names(&*port.groups));
    let mut text = format!("security_groups: [{carried}], lacks {}", names(&need.missing));
    if let Verdict::NotApplicable(why) = need.verdict {
        text = format!("{text}; {why}");
    }
    Evidence::new(format!("port {}", need.port), &text, facts.read_at)
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
        let line = dhcp.proof.first().map_or("", |line| &line.text);
        let text = format!(
            "DHCP failed as well (\"{line}\"); Neutron's own firewalls let DHCP pass without any group"
        );
        finding.against.push(Evidence::new("console", &text, facts.read_at));
    } else {
        finding.against.extend(packets_pass(facts, false));
    }
    Some(finding)
}

/// What speaks for packets passing the port. A lease shows that the wire works and nothing about groups.
fn packets_pass(facts: &NeverJoinedFacts<'_>, a_lease_counts: bool) -> Option<Evidence> {
    let guest = facts.guest();
    let asked = facts.told().find(|told| told.is_of_the_cluster()).and_then(|told| told.proof.first());
    let (source, text) = if guest.answered {
        (CONSOLE, "the metadata service or the API server answered: packets pass")
    } else if a_lease_counts && guest.addressed {
        (CONSOLE, "it got an address: packets pass")
    } else if let Some(quote) = asked {
        (&*quote.source, "the cluster has heard of it: packets pass")
    } else if !facts.outside_explains() {
        (CONSOLE, "what failed there was answered, or needs no network")
    } else {
        return None;
    };
    Some(Evidence::new(source, text, facts.read_at))
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
            let text =
                format!("status DOWN while the instance is ACTIVE; addresses {}", names(&*port.addresses));
            Evidence::new(format!("port {}", port.id), &text, facts.read_at)
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
    let text = match (facts.instance.config_drive, facts.guest().config_drive) {
        (true, ConfigDrive::Absent) => {
            "a config drive is attached, and the guest did not find it: look at the image"
        }
        (true, ConfigDrive::Present) => {
            "a config drive is attached and was found: the first boot asked the network for more"
        }
        (true, ConfigDrive::Unknown) => "a config drive is attached",
        (false, _) => "no config drive is attached: the first boot needs the network",
    };
    let about_configuration = |finding: &&mut Finding| {
        let entry = finding.cause.entry();
        entry.is_some_and(|entry| entry.first_boot && finding.stage <= Stage::FetchConfig)
    };
    if let Some(finding) = findings.iter_mut().find(about_configuration) {
        finding.evidence.push(Evidence::new("instance", text, facts.read_at));
    }
}

/// Nothing is known to be wrong: where it stopped, and what to read next.
fn unknown(facts: &NeverJoinedFacts<'_>) -> Finding {
    let mut evidence = Vec::new();
    let mut stage = Stage::OsBoot;
    match (facts.read().map(|read| &read.console), &facts.testimony) {
        (Some(Ok(console)), _) => {
            let boot = facts.guest().boot;
            stage = boot.stage();
            let next = match boot {
                BootProgress::Nothing => {
                    "the console shows no kernel: see whether the image boots at all and writes to the serial console"
                }
                BootProgress::Kernel => {
                    "the boot goes no further than the kernel: read the console again later"
                }
                BootProgress::FirstBoot => {
                    "the first boot is not through: read its tool's journal on the machine"
                }
                BootProgress::Userland => {
                    "it boots and no program starts a kubelet: read the first boot's journal"
                }
                BootProgress::Kubelet => "the kubelet was started: read its journal",
                BootProgress::Joined => {
                    "the console says that it joined: look for its Node under another name"
                }
            };
            evidence.push(Evidence::new("console", next, facts.read_at));
            evidence.extend(lines::tail(console, TAIL_LINES).into_iter().map(|(number, line)| {
                let line_of = Line { number, times: 1, sign: Arc::from("") };
                Evidence { line: Some(line_of), ..Evidence::new("console", &line, facts.read_at) }
            }));
        }
        (Some(Err(why)), _) | (None, Some(Err(why))) => {
            let text =
                format!("there is no console log ({why}): collect the kubelet's journal on the machine");
            evidence.push(Evidence::new("console", &text, facts.read_at));
        }
        (None, _) => {
            evidence.push(Evidence::new("console", "not read yet: read the console log", facts.read_at));
        }
    }
    if facts.ports.is_empty() {
        stage = Stage::Network;
        evidence.push(Evidence::new("instance", "it has no network port", facts.read_at));
    }
    Finding { stage, ..Finding::new(Cause::Unknown, Confidence::Possible, evidence) }
}
