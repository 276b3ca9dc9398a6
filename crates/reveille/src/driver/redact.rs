//! Removes secrets from events before the engine, the ledger, the log and a recording see them.
//!
//! ```text
//!  adapter ─▶ Event ─▶ redact: consoles, messages, faults, error texts, tags and metadata ─▶ step, recorder
//! ```
//!
//! All free text of other systems goes through the core's masking here, at the only entry to the engine. So a recording
//! holds exactly what the engine decided by, and a replay makes the same decisions. Marks that the roster names prove
//! ownership and stay as they are, because the roster's author has them in plain text. Names and ids stay too, because
//! decisions depend on them.

use std::borrow::Cow;
use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;

use reveille_core::diagnose::console::{MASK, keep, mask_secrets};
use reveille_core::effect::{Outcome, ReadError};
use reveille_core::event::{AgentFact, Answer, CloudFact, CloudSnapshot, ClusterFact, Command, Event, Pause};
use reveille_core::model::agent_report::AgentReport;
use reveille_core::model::instance::{Fault, Instance, InstanceAction, Mark};
use reveille_core::model::log_findings::LogFinding;
use reveille_core::model::network::{GroupRule, SecurityGroup};
use reveille_core::model::node::{Condition, Node, NodeEvent};
use reveille_core::model::roster::Roster;

/// Removes secrets.
#[derive(Clone, Debug, Default)]
pub(crate) struct Redactor {
    named: BTreeSet<Mark>,
}

/// Sets of marks that were processed: adapters share one set between many instances.
type Seen = BTreeMap<*const BTreeSet<Mark>, Option<Arc<BTreeSet<Mark>>>>;

impl Redactor {
    /// A redactor that leaves the marks of this roster alone.
    pub(crate) fn of(roster: &Roster) -> Self {
        let marks = |pool: &reveille_core::model::roster::Pool| {
            [Some(pool.owned.cluster.clone()), pool.owned.pool.clone()]
        };
        Self { named: roster.pools.values().flat_map(marks).flatten().collect() }
    }

    /// The event without secrets.
    pub(crate) fn event(&self, event: Event) -> Event {
        match event {
            Event::Cloud { cloud, fact } => {
                let fact = match fact {
                    CloudFact::Snapshot { snapshot, took } => {
                        CloudFact::Snapshot { snapshot: self.snapshot(snapshot), took }
                    }
                    CloudFact::Failed(error) => CloudFact::Failed(read_error(error)),
                };
                Event::Cloud { cloud, fact }
            }
            Event::Cluster(fact) => Event::Cluster(cluster(fact)),
            Event::Agent(fact) => Event::Agent(agent(fact)),
            Event::Looked { look, answer } => {
                let answer = answer.map(|answer| self.answer(answer)).map_err(read_error);
                Event::Looked { look, answer }
            }
            Event::Done { intent, outcome } => Event::Done { intent, outcome: self::outcome(outcome) },
            Event::Command(Command::Pauses(pauses)) => {
                let clean = |pause: Pause| Pause { reason: text(pause.reason), ..pause };
                Event::Command(Command::Pauses(pauses.into_iter().map(clean).collect()))
            }
            Event::Command(Command::ConfirmCluster(_) | Command::ForgetCloud(_))
            | Event::Recorded(_)
            | Event::RecordFailed(_)
            | Event::Tick => event,
        }
    }

    fn snapshot(&self, snapshot: Arc<CloudSnapshot>) -> Arc<CloudSnapshot> {
        let mut seen = Seen::new();
        let instances: Vec<Option<Arc<Instance>>> =
            snapshot.instances.iter().map(|one| self.instance(one, &mut seen)).collect();
        let groups: Vec<Option<Arc<SecurityGroup>>> =
            snapshot.groups.iter().flatten().map(self::group).collect();
        if instances.iter().all(Option::is_none) && groups.iter().all(Option::is_none) {
            return snapshot;
        }
        let mut clean = CloudSnapshot::clone(&snapshot);
        replace(&mut clean.instances, instances);
        if let Some(known) = &mut clean.groups {
            replace(known, groups);
        }
        Arc::new(clean)
    }

    /// The instance without secrets; `None` when it holds none.
    fn instance(&self, instance: &Arc<Instance>, seen: &mut Seen) -> Option<Arc<Instance>> {
        let marks =
            seen.entry(Arc::as_ptr(&instance.marks)).or_insert_with(|| self.marks(&instance.marks)).clone();
        let fault = instance
            .fault
            .as_ref()
            .and_then(|fault| changed(&fault.message).map(|message| Fault { code: fault.code, message }));
        if marks.is_none() && fault.is_none() {
            return None;
        }
        let mut clean = Instance::clone(instance);
        clean.marks = marks.unwrap_or(clean.marks);
        clean.fault = fault.or(clean.fault);
        Some(Arc::new(clean))
    }

    fn marks(&self, marks: &BTreeSet<Mark>) -> Option<Arc<BTreeSet<Mark>>> {
        let clean: BTreeSet<Mark> = marks.iter().map(|mark| self.mark(mark)).collect();
        (clean != *marks).then(|| Arc::new(clean))
    }

    fn mark(&self, mark: &Mark) -> Mark {
        if self.named.contains(mark) {
            return mark.clone();
        }
        match mark {
            Mark::Tag(tag) => Mark::Tag(text(tag.clone())),
            Mark::Metadata(key, value) => {
                let pair = format!("{key}={value}");
                let masked = match mask_secrets(&pair) {
                    Cow::Borrowed(_) => return mark.clone(),
                    Cow::Owned(masked) => masked,
                };
                let value = masked.strip_prefix(&format!("{key}=")).unwrap_or(MASK);
                Mark::Metadata(key.clone(), Arc::from(value))
            }
        }
    }

    fn answer(&self, answer: Answer) -> Answer {
        match answer {
            Answer::Instance(Some(instance)) => {
                let clean = self.instance(&instance, &mut Seen::new());
                Answer::Instance(Some(clean.unwrap_or(instance)))
            }
            Answer::Group(Some(group)) => Answer::Group(Some(self::group(&group).unwrap_or(group))),
            Answer::Console(log) => Answer::Console(keep(&log)),
            Answer::NoConsole(why) => Answer::NoConsole(text(why)),
            // The quotes in it were masked when it was judged; `Said` never arrives unjudged.
            Answer::LogFindings(_) | Answer::Said(_) => answer,
            Answer::Actions(actions) => {
                let clean =
                    |action: InstanceAction| InstanceAction { message: action.message.map(text), ..action };
                Answer::Actions(actions.into_iter().map(clean).collect())
            }
            Answer::Node(Some(node)) => Answer::Node(Some(self::node(node))),
            Answer::NodeEvents(events) => Answer::NodeEvents(events.into_iter().map(node_event).collect()),
            Answer::Instance(None)
            | Answer::Ports(_)
            | Answer::Group(None)
            | Answer::Router(_)
            | Answer::Roles(_)
            | Answer::Node(None) => answer,
        }
    }
}

fn replace<T>(all: &mut [T], clean: Vec<Option<T>>) {
    for (one, clean) in all.iter_mut().zip(clean) {
        if let Some(clean) = clean {
            *one = clean;
        }
    }
}

fn cluster(fact: ClusterFact) -> ClusterFact {
    match fact {
        ClusterFact::Synced(nodes) => ClusterFact::Synced(nodes.into_iter().map(node).collect()),
        ClusterFact::Applied(node) => ClusterFact::Applied(self::node(node)),
        ClusterFact::NodeEvent(event) => ClusterFact::NodeEvent(node_event(event)),
        ClusterFact::Failed(error) => ClusterFact::Failed(read_error(error)),
        ClusterFact::IdentityUnread(error) => ClusterFact::IdentityUnread(read_error(error)),
        ClusterFact::Identity(_)
        | ClusterFact::Deleted { .. }
        | ClusterFact::Leases(_)
        | ClusterFact::Alive => fact,
    }
}

fn node(node: Arc<Node>) -> Arc<Node> {
    let plain = node.conditions.iter().all(|condition| changed(&condition.message).is_none());
    if plain && node.intent.asks.is_none() {
        return node;
    }
    let clean =
        |condition: &Condition| Condition { message: text(condition.message.clone()), ..condition.clone() };
    let mut intent = node.intent.clone();
    // An operator can write any text into an annotation, and the request is recorded.
    if let Some(asks) = &mut intent.asks {
        asks.repair = asks.repair.take().map(text);
        asks.confirm = asks.confirm.take().map(text);
    }
    let conditions = node.conditions.iter().map(clean).collect();
    Arc::new(Node { conditions, intent, ..Node::clone(&node) })
}

fn node_event(event: NodeEvent) -> NodeEvent {
    NodeEvent { message: text(event.message), ..event }
}

/// An agent masks what it quotes. An attacker may have taken over its machine, so the text is masked here again.
fn agent(fact: AgentFact) -> AgentFact {
    match fact {
        AgentFact::Said { agent, report } => AgentFact::Said { agent, report: self::report(report) },
        AgentFact::Parted { agent, why } => AgentFact::Parted { agent, why: text(why) },
        AgentFact::Deaf(error) => AgentFact::Deaf(read_error(error)),
        AgentFact::Listening => fact,
    }
}

fn report(report: Arc<AgentReport>) -> Arc<AgentReport> {
    let mut clean = AgentReport::clone(&report);
    for stage in &mut clean.stages {
        if let Some(error) = &mut stage.error {
            (error.code, error.text) = (text(error.code.clone()), text(error.text.clone()));
        }
    }
    clean.told.iter_mut().for_each(told);
    if let Some(work) = &mut clean.work {
        work.what = text(work.what.clone());
    }
    if let Some(blocker) = &mut clean.blocker {
        blocker.text = text(blocker.text.clone());
    }
    if clean == *report { report } else { Arc::new(clean) }
}

fn told(told: &mut LogFinding) {
    for quote in told.proof.iter_mut().chain(&mut told.against) {
        quote.text = text(quote.text.clone());
    }
    told.follows.iter_mut().for_each(self::told);
}

fn group(group: &Arc<SecurityGroup>) -> Option<Arc<SecurityGroup>> {
    if group.rules.iter().all(|rule| changed(&rule.description).is_none()) {
        return None;
    }
    let clean = |rule: &GroupRule| GroupRule { description: text(rule.description.clone()), ..rule.clone() };
    Some(Arc::new(SecurityGroup {
        rules: group.rules.iter().map(clean).collect(),
        ..SecurityGroup::clone(group)
    }))
}

fn outcome(outcome: Outcome) -> Outcome {
    match outcome {
        Outcome::Accepted { request } => Outcome::Accepted { request },
        Outcome::AlreadySo { text } => Outcome::AlreadySo { text: self::text(text) },
        Outcome::Moved { text } => Outcome::Moved { text: self::text(text) },
        Outcome::Limit { limit, text } => Outcome::Limit { limit, text: self::text(text) },
        Outcome::Denied { text } => Outcome::Denied { text: self::text(text) },
        Outcome::Refused { text } => Outcome::Refused { text: self::text(text) },
        Outcome::Failed { text, retry_after } => Outcome::Failed { text: self::text(text), retry_after },
        Outcome::NotSent { text, retry_after } => Outcome::NotSent { text: self::text(text), retry_after },
        Outcome::Unknown { text } => Outcome::Unknown { text: self::text(text) },
        Outcome::Fenced {} => Outcome::Fenced {},
    }
}

fn read_error(error: ReadError) -> ReadError {
    ReadError { text: text(error.text), ..error }
}

fn text(text: Arc<str>) -> Arc<str> {
    changed(&text).unwrap_or(text)
}

fn changed(text: &Arc<str>) -> Option<Arc<str>> {
    match mask_secrets(text) {
        Cow::Borrowed(_) => None,
        Cow::Owned(masked) => Some(Arc::from(masked)),
    }
}
