//! Is this machine a Ready Node? If not: which kind of absence is it?
//!
//! A pure reading of one machine's facts and of how far their data sources may be believed. The result names the kind of
//! absence, the cause as far as the objects themselves show it, and how long the controller waits before it acts on that
//! kind. This module holds no timers and proposes nothing.
//!
//! The order of the questions matters and is the order of the code: presence in the cloud, ownership, the cloud's own
//! state, then the Node. A question whose source cannot be believed ends in "cannot tell", never in "absent".

pub mod vanished;

use crate::model::cause::Cause;
use crate::model::evidence::{MachineFact, NodeFact, Source, quoted, shown};
use crate::model::id::NodeName;
use crate::model::incident::{Confidence, FaultKind};
use crate::model::instance::{Fault, InstanceState};
use crate::model::node::{Condition, Identity, Node, NodeEvent, Ready};
use crate::model::signs;
use crate::model::stage::Stage;
use crate::model::time::{Span, Time};
use crate::observe::cloud::{Seen, Whose};
use crate::observe::cluster::NodeSeen;
use crate::observe::sharing::{Sharer, contesting_among};
use crate::observe::source::Trust;
use crate::safeguard::{Safeguard, stands};

use super::machine_state::{Absence, Excuse, MachineState, Unknown};
use super::question::{JudgeContext, absent, finding};
use super::{hosting, service};
use vanished::judge_vanished;

/// What the API server writes on a Node that is being deleted. It stays for as long as a finalizer does.
const DELETION_STAMP: &str = "metadata.deletionTimestamp";

/// Judges a machine that has, or had, an instance.
pub fn judge_instance(context: JudgeContext<'_>, seen: &Seen) -> MachineState {
    let mut machine_state = judge_by_objects(context, seen);
    if let MachineState::Absent(absence) = &mut machine_state {
        hosting::explain(context, seen, absence);
    }
    machine_state
}

fn judge_by_objects(context: JudgeContext<'_>, seen: &Seen) -> MachineState {
    if let Some(machine_state) = judge_presence(context, seen) {
        return machine_state;
    }
    if let Some(machine_state) = judge_claim(context, seen) {
        return machine_state;
    }
    let is_leaving = seen.instance.state.is_leaving();
    if let Some(group) = hosting::is_in_reserve(seen).filter(|_| !is_leaving && !context.ready(seen)) {
        return MachineState::Excused(Excuse::InReserve(group.clone()));
    }
    match seen.instance.state {
        InstanceState::Deleting | InstanceState::Gone => judge_leaving(context, seen),
        // What its cloud said before it lost sight of it is old: who has joined since is built.
        InstanceState::Building if seen.unlisted.is_some() && seen.joined.is_some() => {
            judge_running(context, seen)
        }
        InstanceState::Building => judge_building(context, seen),
        InstanceState::Errored => judge_errored(context, seen),
        InstanceState::Stopped => judge_stopped(context, seen),
        InstanceState::Active | InstanceState::Rebooting | InstanceState::Other => {
            judge_running(context, seen)
        }
    }
}

/// Is the instance there at all?
fn judge_presence(context: JudgeContext<'_>, seen: &Seen) -> Option<MachineState> {
    let ready = context.ready(seen);
    if let Trust::No(why) = context.cloud.source.trust(context.now) {
        // A Ready node is its own proof, whatever the cloud's API does.
        return Some(if ready && seen.unlisted.is_none() && seen.pool().is_some() {
            MachineState::Answers
        } else {
            MachineState::CannotTell(Unknown::Cloud(context.cloud.name.clone(), why))
        });
    }
    let unlisted = seen.unlisted?;
    let missing_for = context.now.since(unlisted.since);
    if ready {
        return Some(MachineState::CannotTell(Unknown::UnlistedAndReady(missing_for)));
    }
    // A young one may be denied by a cloud whose parts do not agree yet, and is judged by what else is known of it.
    if !unlisted.is_gone() && context.cloud.is_young(context.now, seen) && !seen.instance.state.is_leaving() {
        return None;
    }
    if !unlisted.is_gone() {
        return Some(MachineState::CannotTell(Unknown::NotProvedGone(missing_for)));
    }
    if seen.nodes.is_empty() {
        return Some(MachineState::Excused(Excuse::Gone));
    }
    let mut evidence = vec![context.evidence(Source::Instance, MachineFact::Denied(unlisted.denials))];
    let ended = |why| context.evidence(Source::Instance, MachineFact::Ended(quoted(why)));
    let taken = hosting::ended(seen).map(ended);
    let cause = if taken.is_some() { Cause::TakenBack } else { Cause::InstanceGone };
    evidence.extend(taken);
    let finding = finding(cause, Confidence::Sure, evidence);
    Some(absent(FaultKind::Ghost, finding, Some(Span::from_s(60)), true))
}

/// Is it ours, and only ours? Do two nodes claim it?
fn judge_claim(context: JudgeContext<'_>, seen: &Seen) -> Option<MachineState> {
    let cause = match seen.claim {
        Whose::Pool(_) if seen.nodes.len() > 1 && stands(Safeguard::Contested) => {
            let fact = NodeFact::SameInstance(shown(seen.nodes.iter().cloned()));
            let evidence = vec![context.evidence(Source::Nodes, fact)];
            let finding = finding(Cause::DuplicateNode, Confidence::Sure, evidence);
            return Some(absent(FaultKind::Duplicate, finding, None, true));
        }
        Whose::Pool(_) => return None,
        Whose::Unclaimed => Cause::Unclaimed,
        Whose::Several => Cause::Contested,
    };
    let marks = MachineFact::Marks(shown(seen.instance.marks.iter().cloned()));
    let finding = finding(cause, Confidence::Sure, vec![context.evidence(Source::Marks, marks)]);
    Some(absent(FaultKind::Stray, finding, None, false))
}

fn judge_leaving(context: JudgeContext<'_>, seen: &Seen) -> MachineState {
    let since = context.now.since(seen.state_since);
    if since < context.deadlines(seen).delete_within {
        return MachineState::Excused(Excuse::BeingDeleted);
    }
    let fact = MachineFact::Deleting(seen.instance.task.clone(), since);
    let evidence = vec![context.evidence(Source::Instance, fact)];
    let finding = finding(Cause::StuckDeleting, Confidence::Sure, evidence);
    absent(FaultKind::StuckDeleting, finding, Some(Span::ZERO), false)
}

fn judge_building(context: JudgeContext<'_>, seen: &Seen) -> MachineState {
    let since = context.now.since(seen.state_since);
    if since < context.deadlines(seen).build_within {
        return MachineState::Excused(Excuse::BeingBuilt);
    }
    let fact = MachineFact::Building(seen.instance.task.clone(), since);
    let evidence = vec![context.evidence(Source::Instance, fact)];
    let finding = finding(Cause::StuckBuilding, Confidence::Sure, evidence);
    absent(FaultKind::StuckBuilding, finding, Some(Span::ZERO), false)
}

fn judge_errored(context: JudgeContext<'_>, seen: &Seen) -> MachineState {
    let fault = seen.instance.fault.as_ref();
    let fault = fault.map(|fault| Fault { code: fault.code, message: quoted(&fault.message) });
    let evidence = vec![context.evidence(Source::Instance, MachineFact::Errored(fault))];
    let mut finding = finding(Cause::InstanceErrored, Confidence::Sure, evidence);
    let ready = context.ready(seen);
    if let Some(left) = seen.left.as_ref().filter(|_| !ready) {
        return service::judge_left(context, seen, left);
    }
    if ready {
        finding.against.push(context.evidence(Source::OwnNode, NodeFact::Ready));
    }
    let served = served_in_error(context, seen).filter(|_| !ready);
    let (due_after, counted_from) = served.unwrap_or((Span::from_s(30), Time::default()));
    let (kind, due_after, rests_on_cluster) = (FaultKind::Errored, Some(due_after), false);
    MachineState::Absent(Absence { kind, finding, due_after, rests_on_cluster, counted_from })
}

/// A failed live migration leaves a machine that serves in ERROR for months. When its Node stops being Ready, or goes, it may
/// only reboot by itself, and has the time of any other: how long, and from when. Where it was not seen how its ERROR began (by
/// an earlier process, during a pause of ours), one that had joined may have served since then.
fn served_in_error(context: JudgeContext<'_>, seen: &Seen) -> Option<(Span, Time)> {
    let deadlines = context.deadlines(seen);
    let not_ready = deadlines.not_ready_within;
    let (time, silent_since) = match seen.nodes.first().and_then(|name| context.cluster.nodes.get(name)) {
        // Ready in a list that cannot be believed.
        Some(node) if node.node.ready == Ready::True => (not_ready, Some(context.now)),
        Some(node) => (not_ready, Some(node.ready_since)),
        None if seen.joined.is_some() => (not_ready.max(deadlines.vanished_within), seen.silent_since),
        None => return None,
    };
    let began_in_sight = match context.cloud.source.trust(context.now) {
        Trust::Since(since) => seen.state_since > since,
        Trust::No(_) => false,
    };
    let died_of_it = |since: Time| began_in_sight && since.since(seen.state_since) < not_ready;
    let counted_from = silent_since.unwrap_or_default().max(context.cluster_since());
    (!silent_since.is_some_and(died_of_it)).then(|| (time.max(Span::from_s(30)), counted_from))
}

fn judge_stopped(context: JudgeContext<'_>, seen: &Seen) -> MachineState {
    if context.ready(seen) {
        return MachineState::Answers;
    }
    if let Trust::No(why) = context.cluster.source.trust(context.now) {
        return MachineState::CannotTell(Unknown::Cluster(why));
    }
    // Who takes a machine away drains it, deletes its Node and stops it: four such machines of ten froze their pool.
    if let Some(left) = &seen.left {
        return service::judge_left(context, seen, left);
    }
    let fact = MachineFact::ShutOff(context.now.since(seen.state_since));
    let evidence = vec![context.evidence(Source::Instance, fact)];
    let finding = finding(Cause::InstanceStopped, Confidence::Sure, evidence);
    absent(FaultKind::Stopped, finding, Some(context.deadlines(seen).not_ready_within), false)
}

fn judge_running(context: JudgeContext<'_>, seen: &Seen) -> MachineState {
    if let Trust::No(why) = context.cluster.source.trust(context.now) {
        return MachineState::CannotTell(Unknown::Cluster(why));
    }
    if let Some(group) = hosting::is_taken_by_its_group(seen).filter(|_| !context.ready(seen)) {
        return MachineState::Excused(Excuse::TakenByGroup(group.clone()));
    }
    match seen.nodes.first().and_then(|name| context.cluster.nodes.get(name)) {
        Some(node) => judge_node(context, seen, node),
        None => judge_missing(context, seen),
    }
}

fn judge_node(context: JudgeContext<'_>, seen: &Seen, node: &NodeSeen) -> MachineState {
    if node.lost {
        return MachineState::CannotTell(Unknown::NodeLost);
    }
    if node.node.ready == Ready::True {
        let usurped = judge_usurped(context, seen, node);
        return usurped.unwrap_or_else(|| service::judge_service(context, seen, node));
    }
    let intent = &node.node.intent;
    let deleting = intent.deleting.then_some(DELETION_STAMP);
    if let Some(sign) = deleting.or(intent.leaving.as_deref()) {
        return service::judge_removal(context, seen, node, sign);
    }
    if let Some(machine_state) = judge_usurped(context, seen, node) {
        return machine_state;
    }
    let sharers = context.views.sharers(&context.cloud.name, seen);
    if let Some(machine_state) = judge_contested(context, seen, &sharers) {
        return machine_state;
    }
    if let Some(real) = seen.joined.as_ref().filter(|name| !context.cluster.nodes.contains_key(*name)) {
        // The Node that it joined as was taken away on purpose; one that never answered does not unsay that.
        if let Some(left) = &seen.left {
            return service::judge_left(context, seen, left);
        }
        return judge_stand_in(context, seen, real, &node.node.name);
    }
    let condition = node.node.conditions.iter().find(|condition| &*condition.kind == "Ready");
    let says = |condition: &Condition| NodeFact::Condition(node.node.ready, condition.clone());
    let fact = condition.map_or(NodeFact::ReadyUnreported, says);
    let cause = match node.node.ready {
        Ready::False => Cause::NodeNotReady,
        Ready::True | Ready::Unknown => Cause::KubeletSilent,
    };
    let source = Source::Node(node.node.name.clone());
    let mut finding = finding(cause, Confidence::Likely, vec![context.evidence(source, fact)]);
    if node.node.uninitialized && finding.cause == Cause::NodeNotReady {
        finding.evidence.push(context.evidence(Source::Taint, NodeFact::Uninitialized));
        finding.stage = Stage::CloudInitNode;
    } else if condition.is_some_and(is_of_the_pod_network) {
        finding.stage = Stage::Cni;
    }
    if context.lease_is_fresh(&node.node.name) {
        finding.against.push(context.evidence(Source::Lease, NodeFact::LeaseRenewed));
    }
    let deadlines = context.deadlines(seen);
    // A node that was never seen Ready, by this process, may still be joining: the wider deadline counts.
    let not_ready = deadlines.not_ready_within;
    // Where a join may take for ever, one that had joined before this process began is not waited for without an end.
    let is_old = seen.joined.is_some() && !seen.born_in_sight;
    let join = deadlines.join_within.map(|join| join.max(not_ready));
    let due_after = if seen.was_ready { Some(not_ready) } else { join.or(is_old.then_some(not_ready)) };
    absent(FaultKind::NotReady, finding, due_after, true)
}

/// The kubelet waits for its network plugin, and says so in these words since network plugins are a runtime's business.
pub(super) fn is_of_the_pod_network(ready: &Condition) -> bool {
    ready.message.contains("NetworkPluginNotReady") || ready.message.contains("cni plugin not initialized")
}

/// The node that the machine joined as is gone, and another that names it does not answer: what the other says of a kubelet
/// is not about this machine's. It may as well be the machine coming back under another name, so it gets that time.
fn judge_stand_in(context: JudgeContext<'_>, seen: &Seen, real: &NodeName, other: &NodeName) -> MachineState {
    let mut machine_state =
        judge_vanished(context, real, seen.joined_uid.as_ref(), context.deadlines(seen).not_ready_within);
    if let MachineState::Absent(absence) = &mut machine_state {
        let fact = NodeFact::StandIn(other.clone());
        absence.finding.evidence.push(context.evidence(Source::Nodes, fact));
        // The one that is gone may have shown this machine for a while, and have been another's (seed 10201085).
        absence.finding.confidence = absence.finding.confidence.min(Confidence::Likely);
    }
    machine_state
}

fn judge_missing(context: JudgeContext<'_>, seen: &Seen) -> MachineState {
    if let Some(left) = &seen.left {
        return service::judge_left(context, seen, left);
    }
    let sharers = context.views.sharers(&context.cloud.name, seen);
    if let Some(machine_state) = judge_contested(context, seen, &sharers) {
        return machine_state;
    }
    let deadlines = context.deadlines(seen);
    if let Some(name) = &seen.joined {
        let own = seen.joined_uid.as_ref();
        let mut machine_state = judge_vanished(context, name, own, deadlines.vanished_within);
        if let (MachineState::Absent(absence), Some(unlisted)) = (&mut machine_state, &seen.unlisted) {
            let (denied_for, age) = (context.now.since(unlisted.since), context.now.since(seen.first_seen));
            let fact = MachineFact::DeniedYoung { denied_for, age };
            absence.finding.evidence.push(context.evidence(Source::Cloud, fact));
        }
        return machine_state;
    }
    if let Some(namesake) = namesake_among(&sharers) {
        return contested_by(context, namesake);
    }
    let names = || seen.instance.node_names().map(NodeName::from);
    // Without a memory of ours, the cluster's own events still tell that a node of this name was there once. Of a machine
    // that was seen being born, or that our ledger never heard of, they tell nothing: names are given again, and the node
    // that went was its namesake's.
    let new = seen.is_known_since_birth() || seen.made_meanwhile && !seen.may_have_served;
    let removed = |name: &NodeName| context.cluster.events_about(name).any(NodeEvent::is_removal);
    if !new && let Some(namesake) = names().find(removed) {
        // It may be its namesake's Node that went, and this machine may still be joining.
        let within =
            deadlines.join_within.map_or(deadlines.vanished_within, |it| it.max(deadlines.vanished_within));
        let mut machine_state = judge_vanished(context, &namesake, None, within);
        if let MachineState::Absent(absence) = &mut machine_state {
            // A name is a hint: the controller never saw that Node stand for this machine.
            absence.finding.confidence = Confidence::Possible;
        }
        return machine_state;
    }
    let mut evidence = vec![context.evidence(Source::Cluster, NodeFact::None)];
    if seen.may_have_served {
        evidence.push(context.evidence(Source::Ledger, MachineFact::NodesUnseen));
    } else if !seen.born_in_sight {
        evidence.push(context.evidence(Source::Ledger, MachineFact::OlderThanWatch));
    }
    let mut finding = finding(Cause::Unknown, Confidence::Possible, evidence);
    finding.stage = Stage::Network;
    absent(FaultKind::NeverJoined, finding, deadlines.join_within, true)
}

/// A Node that serves under another name, or names another instance, carries this machine's identity: the machine may be
/// the one that serves, so it is neither missing nor to be repaired before a person has told the two apart.
fn judge_contested(context: JudgeContext<'_>, seen: &Seen, sharers: &[Sharer<'_>]) -> Option<MachineState> {
    // That a lease falls silent is no event, so that only Ready counts here; before an act its lease counts as well.
    let answers = |name: &NodeName| context.cluster.answers(name);
    let sharer = taken_over(seen, sharers).or_else(|| contesting_among(sharers, answers))?;
    stands(Safeguard::SharedIdentity).then(|| contested_by(context, sharer))
}

/// A Node of the machine's name that may be its own, or that it would write if it came up: another machine of that name has it,
/// it carries more of the machine than the name, or a person drained it. A silent Node of a longer name that has none of these is
/// left over, or a client made it, and a machine that never joined was never repaired because of it. Whether it renews its lease
/// is asked before an act.
fn namesake_among<'s, 'a>(sharers: &'s [Sharer<'a>]) -> Option<&'s Sharer<'a>> {
    let has_more = |node: &NodeName| sharers.iter().any(|it| it.name == node && it.by != Identity::Name);
    let is_sign = |node: &Node| signs::removal(&node.intent, node.cordoned).is_some();
    let counts = |it: &&Sharer<'_>| it.explained || has_more(it.name) || is_sign(&it.seen.node);
    sharers.iter().filter(|sharer| sharer.by == Identity::Name).find(counts)
}

/// The Node that the machine joined as is linked to another machine now. The machine has not lost a Node of its own, and after a
/// reboot two kubelets would write that one (seed 3108491).
fn taken_over<'s, 'a>(seen: &Seen, sharers: &'s [Sharer<'a>]) -> Option<&'s Sharer<'a>> {
    let joined = seen.joined.as_ref()?;
    sharers.iter().find(|sharer| sharer.name == joined && sharer.seen.link.is_some())
}

/// By the system UUID on its Node the kubelet that writes it runs on another machine that is there: two machines of one name take
/// turns at one Node, and whether it is Ready says nothing of this one (seed 3701832: its namesake's kubelet hung, and this one
/// was rebooted).
fn judge_usurped(context: JudgeContext<'_>, seen: &Seen, node: &NodeSeen) -> Option<MachineState> {
    let writer = context.views.writer(&seen.instance.id, &node.node);
    let writer = writer.filter(|_| stands(Safeguard::SharedIdentity))?;
    let (node, ready, instance) =
        (node.node.name.clone(), node.node.ready == Ready::True, writer.instance.id.clone());
    Some(duplicate(context, NodeFact::OthersUuid { node, ready, instance }))
}

fn contested_by(context: JudgeContext<'_>, sharer: &Sharer<'_>) -> MachineState {
    let Sharer { name, seen, by, .. } = sharer;
    let (node, ready, by) = ((*name).clone(), seen.node.ready == Ready::True, *by);
    let stands_for = seen.link.as_ref().map(|link| link.instance.clone());
    let provider = seen.node.provider.clone();
    duplicate(context, NodeFact::Shared { node, ready, by, stands_for, provider })
}

/// One Node, two machines: told, and never acted upon.
fn duplicate(context: JudgeContext<'_>, fact: NodeFact) -> MachineState {
    let evidence = vec![context.evidence(Source::Nodes, fact)];
    let finding = finding(Cause::DuplicateInstance, Confidence::Likely, evidence);
    absent(FaultKind::Duplicate, finding, None, true)
}
