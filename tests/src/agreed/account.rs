//! What came of a scenario, in lines that are the same on both stages when Reveille concluded, did and says the same.
//!
//! ```text
//!  ledger (records)  ─┐
//!  status, plan at end ─┴▶ lines, sorted ─▶ differences: a line that one stage has and the other has not
//! ```
//!
//! What is compared, all of it literally: of each incident its kind, its subject, every cause that was concluded, each once, in
//! the order in which they first were, and how it ended; of each subject its acts in their order, each with its fault, its
//! repair step, what was called, how the call was answered, and what the fresh read said; and of the end the state of each
//! machine, why a source is not believed, and what is held back and why.
//!
//! What is made alike first, and why that hides nothing:
//!
//! * Ids are each stage's own. Machines, ports, nodes, groups and routers stand under the names that the file has for them.
//! * A cause that is concluded again counts once: how often another one stands between, as where a silence and a failed check
//!   of the host are told in turns, hangs on which reading falls where.
//! * Times and ages are left out, because one stage is a machine that others use; so is the order of acts on *different*
//!   machines, which the order of two readings decides. Order on one machine is compared.
//! * In texts, digits become `#`: they are ages, counts of seconds and addresses. Which reason is given stays.
//! * That a source's last reading failed is compared, and not the service's sentence: its words are its own.
//! * A silence that follows from a lost security group and goes with it is left out: whether its grace was over before the
//!   group was back is a matter of seconds. Whatever was done about it, or came of it, stays.
//! * What waits for its time at the end, or is under way, is only said to go on: which of the two it is, is the moment's.
//!
//! It reads no world and no service.

use std::collections::BTreeMap;

use reveille_core::effect::{Call, Outcome};
use reveille_core::model::id::PortId;
use reveille_core::model::incident::{FaultKind, MachineKey, Subject};
use reveille_core::record::Verdict;
use reveille_core::remedies::{
    AddPortPairs, AddRoutes, AddRules, AskAgent, AssignRoles, DeleteInstance, DeleteNode, Reboot,
    RemoveRoutes, SetPortGroups, StartInstance,
};

use crate::ledger::{Incident, Intent, Ledger};

/// What the file calls those that a stage knows by ids.
pub trait Names {
    /// The machine of this instance id, or of this node name.
    fn machine(&self, id: &str) -> String;
    /// The machine that this port is of.
    fn owner(&self, port: &PortId) -> String;
}

/// What Reveille says at the end.
#[derive(Clone, Debug, Default)]
pub struct FinalState {
    /// The state of each machine, in the status report's words.
    pub machines: BTreeMap<String, String>,
    /// Why a source is not believed.
    pub doubts: BTreeMap<String, String>,
    /// What the plan has of each open incident, by its subject and kind.
    pub open: Vec<(String, String, Prospect)>,
}

/// What comes of an open incident.
#[derive(Clone, Debug)]
pub enum Prospect {
    /// It waits for its time, is under way, or would be done now.
    GoesOn,
    /// Something stands against it.
    Held(Vec<String>),
    /// A person is asked.
    Asks,
    /// Nothing can be told.
    Blind,
}

/// The account of one stage.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Account {
    lines: Vec<String>,
}

impl Account {
    /// Draws it up.
    pub fn new(ledger: &Ledger, final_state: &FinalState, names: &dyn Names) -> Self {
        let mut lines = Vec::new();
        let mut acts: BTreeMap<String, Vec<(String, String)>> = BTreeMap::new();
        for incident in ledger.incidents.iter().filter(|incident| !went_with_its_root(incident, ledger)) {
            let (who, kind) = (subject(&incident.subject, names), incident.kind.name());
            let mut causes: Vec<&str> = Vec::new();
            for code in incident.causes.iter().map(|cause| cause.code()) {
                if !causes.contains(&code) {
                    causes.push(code);
                }
            }
            lines.push(format!("found  {who}: {kind}: {}; {}", causes.join(", then "), end(incident)));
            for intent in &incident.intents {
                let of = acts.entry(who.clone()).or_default();
                of.push((intent.id.to_string(), act(intent, kind, names)));
            }
        }
        for (who, mut done) in acts {
            // Intents are numbered in the order in which they were decided.
            done.sort_by_key(|(id, _)| (id.len(), id.clone()));
            let told =
                done.into_iter().enumerate().map(|(at, (_, act))| format!("did    {who}: {}. {act}", at + 1));
            lines.extend(told);
        }
        lines.extend(final_state.machines.iter().map(|(who, state)| format!("says   {who}: {state}")));
        let doubts = final_state.doubts.iter();
        lines.extend(doubts.map(|(source, why)| format!("says   {source} is not believed: {}", doubt(why))));
        for (who, kind, prospect) in &final_state.open {
            lines.push(format!("plans  {who}: {kind}: {}", prospect.told()));
        }
        lines.sort();
        Self { lines }
    }

    /// Its lines.
    pub fn lines(&self) -> &[String] {
        &self.lines
    }

    /// The lines that only one of both has: ours first, then the other's.
    pub fn differences(&self, other: &Self) -> (Vec<String>, Vec<String>) {
        (only_in(self, other), only_in(other, self))
    }
}

fn only_in(one: &Account, other: &Account) -> Vec<String> {
    let mut left = other.lines.clone();
    let missing = one.lines.iter().filter(|line| match left.iter().position(|known| known == *line) {
        Some(at) => {
            left.remove(at);
            false
        }
        None => true,
    });
    missing.cloned().collect()
}

impl Prospect {
    fn told(&self) -> String {
        match self {
            Self::GoesOn => "goes on".to_owned(),
            Self::Held(why) => {
                let mut why: Vec<String> = why.iter().map(|why| plain(why)).collect();
                why.sort();
                format!("held: {}", why.join("; "))
            }
            Self::Asks => "asks a person".to_owned(),
            Self::Blind => "nothing can be told".to_owned(),
        }
    }
}

/// The silence of a machine that lacked its group, about which nothing was done and which ended by itself.
fn went_with_its_root(incident: &Incident, ledger: &Ledger) -> bool {
    let of_same = |other: &&Incident| other.subject == incident.subject;
    incident.kind == FaultKind::NotReady
        && incident.verdict == Some(Verdict::Recovered)
        && incident.intents.is_empty()
        && incident.given_up.is_none()
        && ledger.incidents.iter().filter(of_same).any(|other| other.kind == FaultKind::GroupMissing)
}

/// What the file calls what an incident is about.
pub fn subject(subject: &Subject, names: &dyn Names) -> String {
    match subject {
        Subject::Machine(MachineKey::Instance(_, id)) => names.machine(id.as_str()),
        Subject::Machine(MachineKey::Node(name)) => format!("node {}", names.machine(name.as_str())),
        Subject::Group(..) => "the group".to_owned(),
        Subject::Router(..) => "the router".to_owned(),
        Subject::User(_, user) => format!("user {user}"),
        other => other.to_string(),
    }
}

fn end(incident: &Incident) -> String {
    let given_up = if incident.given_up.is_some() { "a person is asked, " } else { "" };
    format!("{given_up}{}", incident.verdict.map_or("open", |verdict| verdict.name()))
}

fn act(intent: &Intent, kind: &str, names: &dyn Names) -> String {
    let answered = intent.outcome.as_ref().map_or("not answered", answer);
    let end = match (&intent.dropped, intent.held) {
        (Some(_), _) => "dropped",
        (None, Some(true)) => "held",
        (None, Some(false)) => "did not hold",
        (None, None) => "not judged",
    };
    format!(
        "for {kind}, repair step {}: {}: {answered}, {end}",
        intent.repair_step,
        call(&intent.call, names)
    )
}

fn call(call: &Call, names: &dyn Names) -> String {
    match call {
        Call::AddRules(AddRules { rules, .. }) => format!("add {} rules", rules.len()),
        Call::DropRule(_) => "remove a rule".to_owned(),
        Call::NudgeGroup(_) => "nudge the group".to_owned(),
        Call::SetPortGroups(SetPortGroups { port, .. }) => {
            format!("set the groups of a port of {}", names.owner(port))
        }
        Call::AddPortPairs(AddPortPairs { port, pairs, .. }) => {
            format!("allow {} ranges on a port of {}", pairs.len(), names.owner(port))
        }
        Call::RemoveRoutes(RemoveRoutes { routes, .. }) => format!("remove {} routes", routes.len()),
        Call::AddRoutes(AddRoutes { routes, .. }) => format!("add {} routes", routes.len()),
        Call::NudgeRouter(_) => "nudge the router".to_owned(),
        Call::AssignRoles(AssignRoles { roles, .. }) => format!("give {} roles", roles.len()),
        Call::AskAgent(AskAgent { instance, ask, .. }) => {
            format!("ask the agent of {} to {}", names.machine(instance.as_str()), ask.says())
        }
        Call::Reboot(Reboot { instance, hard, .. }) => {
            let how = if *hard { "power-cycle" } else { "reboot" };
            format!("{how} {}", names.machine(instance.as_str()))
        }
        Call::Start(StartInstance { instance, .. }) => format!("start {}", names.machine(instance.as_str())),
        Call::DeleteInstance(DeleteInstance { instance, .. }) => {
            format!("delete {}", names.machine(instance.as_str()))
        }
        Call::DeleteNode(DeleteNode { name, .. }) => {
            format!("delete the node of {}", names.machine(name.as_str()))
        }
    }
}

const fn answer(outcome: &Outcome) -> &'static str {
    match outcome {
        Outcome::Accepted { .. } => "accepted",
        Outcome::AlreadySo { .. } => "was so already",
        Outcome::Moved { .. } => "changed meanwhile",
        Outcome::Limit { .. } => "limit reached",
        Outcome::Denied { .. } => "denied",
        Outcome::Refused { .. } => "refused",
        Outcome::Failed { .. } => "failed",
        Outcome::NotSent { .. } => "not sent",
        Outcome::Unknown { .. } => "outcome unknown",
        Outcome::Fenced {} => "another leads",
    }
}

/// Why a source is not believed, without what its service said of itself.
fn doubt(why: &str) -> String {
    let ours = why.split_once(" ago: ").map_or(why, |(ours, _)| ours);
    plain(ours)
}

/// A sentence without its numbers.
pub fn plain(text: &str) -> String {
    let mut plain = String::with_capacity(text.len());
    for c in text.chars() {
        // `#.# s` and `##` are the same age.
        let digit = c.is_ascii_digit() || (c == '.' && plain.ends_with('#'));
        if !digit {
            plain.push(c);
        } else if !plain.ends_with('#') {
            plain.push('#');
        }
    }
    plain
}

#[cfg(test)]
mod tests {
    use reveille_core::model::id::IncidentId;

    use super::*;

    #[test]
    fn ages_and_counts_are_made_alike_and_words_are_not() {
        assert_eq!(plain("renewed 3.2 s ago"), plain("renewed 14 s ago"));
        assert_ne!(plain("paused by ada: 1 of 2"), plain("paused by bob: 1 of 2"));
    }

    #[test]
    fn silence_explained_by_a_lost_group_is_left_out() {
        let machine = || Subject::Machine(MachineKey::Instance("os".into(), "i-1".into()));
        let incident = |kind, verdict| Incident {
            id: IncidentId(1),
            kind,
            subject: machine(),
            label: "w".to_owned(),
            findings: Vec::new(),
            causes: Vec::new(),
            intents: Vec::new(),
            given_up: None,
            verdict,
        };
        let silence = || incident(FaultKind::NotReady, Some(Verdict::Recovered));
        let root = || incident(FaultKind::GroupMissing, Some(Verdict::Mended));
        let told = |incidents: Vec<Incident>, at: usize| {
            let ledger = Ledger { incidents, ..Ledger::default() };
            !went_with_its_root(&ledger.incidents[at], &ledger)
        };
        assert!(!told(vec![root(), silence()], 1));
        assert!(told(vec![root(), silence()], 0), "the root itself stays");
        assert!(told(vec![silence()], 0), "without a lost group it is a finding of its own");
        assert!(told(vec![root(), incident(FaultKind::NotReady, None)], 1), "one that did not end stays");
        let asked = Incident { given_up: Some("tries".to_owned()), ..silence() };
        assert!(told(vec![root(), asked], 1));
    }

    #[test]
    fn line_repeated_on_only_one_stage_is_a_difference() {
        let of = |lines: &[&str]| Account { lines: lines.iter().map(ToString::to_string).collect() };
        let (ours, theirs) = of(&["a", "b", "b"]).differences(&of(&["a", "b", "c"]));
        assert_eq!((ours, theirs), (vec!["b".to_owned()], vec!["c".to_owned()]));
        assert_eq!(of(&["a"]).differences(&of(&["a"])), (Vec::new(), Vec::new()));
    }
}
