//! Words that many of these tests say: how long, which roster, which Node, what was called.

use std::sync::Arc;

use reveille_core::effect::{Call, ReadError, ReadErrorKind};
use reveille_core::engine::{Restored, State};
use reveille_core::event::{ClusterFact, Event};
use reveille_core::model::id::NodeName;
use reveille_core::model::lease::{Leases, Renewal};
use reveille_core::model::node::{Node, NodeEvent, Ready};
use reveille_core::model::roster::{Mode, Pool, Roster};
use reveille_core::model::time::{Span, Time};

use super::fixture::{Field, roster, stamp};

pub const fn min(minutes: i64) -> Span {
    Span::from_min(minutes)
}

/// The roster, with its pool changed so.
pub fn roster_with(change: impl FnOnce(&mut Pool)) -> Roster {
    let mut roster = roster();
    change(roster.pools.values_mut().next().unwrap());
    roster
}

/// No kubelet is restarted before the reboot.
pub fn without_rejoin() -> Roster {
    roster_with(|pool| pool.repair.rejoin = Mode::Off)
}

pub fn set(field: &mut Field, id: &str, ready: Ready) {
    field.nodes.get_mut(id).unwrap().ready = ready;
}

impl Field {
    pub fn list_leases(&mut self) {
        let leases = self.leases_without(&[]);
        self.feed(Event::Cluster(ClusterFact::Leases(leases)));
    }

    /// The next list of leases, which lacks those of these machines.
    pub fn leases_without(&mut self, lacks: &[&str]) -> Leases {
        self.renewals += 1;
        let nodes = self.nodes.iter().filter(|(id, _)| !lacks.contains(&id.as_str()));
        let leases = nodes.map(|(id, node)| {
            let silent = node.ready != Ready::True && !self.renews.contains(id)
                || self.silent.contains(&node.name.to_string());
            (node.name.clone(), Renewal::nth(if silent { self.renewal_of_silent } else { self.renewals }))
        });
        let is_lacked =
            |name: &NodeName| name.as_str().strip_prefix("node-").is_some_and(|id| lacks.contains(&id));
        let unlisted = self.unlisted_leases.iter().filter(|name| !is_lacked(name));
        leases.chain(unlisted.map(|name| (name.clone(), Renewal::nth(self.renewals)))).collect()
    }
}

/// Nothing reaches the process for so long, or it sleeps.
pub fn cut_off(field: &mut Field, span: Span, asleep: bool) {
    let end = field.now + span;
    while !asleep && field.now < end {
        field.now = field.now + Span::from_s(10);
        field.feed(Event::Tick);
    }
    field.now = end;
}

/// As [`Field::run`], with the list of leases that this makes for each step, or with none.
pub fn run_with(field: &mut Field, span: Span, mut leases: impl FnMut(&mut Field) -> Option<Leases>) {
    let end = field.now + span;
    while field.now < end {
        field.now = field.now + Span::from_s(10);
        if (field.now.ms / 10_000) % 3 == 0 {
            field.list_cloud();
        }
        field.sync_nodes();
        if let Some(leases) = leases(field) {
            field.feed(Event::Cluster(ClusterFact::Leases(leases)));
        }
        field.feed(Event::Cluster(ClusterFact::Alive));
    }
}

/// What was called, for people.
pub fn made(field: &Field) -> Vec<String> {
    field.calls.iter().map(Call::to_string).collect()
}

/// What was called on this machine.
pub fn on(field: &Field, id: &str) -> Vec<String> {
    made(field).into_iter().filter(|call| call.ends_with(&format!(" {id}"))).collect()
}

/// Something was called on this machine.
pub fn touched(field: &Field, id: &str) -> bool {
    !on(field, id).is_empty()
}

/// The watch tells of this Node, 20 ms later.
pub fn patch(field: &mut Field, node: &Node) {
    field.now = field.now + Span::from_ms(20);
    field.feed(Event::Cluster(ClusterFact::Applied(Arc::new(node.clone()))));
}

/// No process runs for so long.
pub fn off(mut field: Field, span: Span, roster: Roster) -> Field {
    let last = field.now;
    field.now = field.now + span;
    next(field, roster, last)
}

/// The cluster is read for so long, and no cloud.
pub fn see_nodes_alone(field: &mut Field, span: Span) {
    let end = field.now + span;
    while field.now < end {
        field.now = field.now + Span::from_s(10);
        field.sync_nodes();
        field.list_leases();
        field.feed(Event::Cluster(ClusterFact::Alive));
    }
}

/// Ten machines for twenty minutes. Each Node shows the UUID and the address of its machine, as on OpenStack.
pub fn fleet_with_uuids() -> Field {
    let mut field = Field::new(roster()).populate(10);
    for (id, node) in &mut field.nodes {
        node.system_uuid = Some(id.as_str().into());
        node.addresses = field.ports[id].addresses.clone();
    }
    field.run(min(20));
    field
}

/// The API server does not answer for so long, and the cloud does.
pub fn api_down(field: &mut Field, span: Span) {
    let end = field.now + span;
    while field.now < end {
        field.now = field.now + Span::from_s(10);
        if (field.now.ms / 10_000) % 3 == 0 {
            field.list_cloud();
        }
        let (kind, text) = (ReadErrorKind::Unavailable, "connection refused".into());
        field.feed(Event::Cluster(ClusterFact::Failed(ReadError { kind, text, retry_after: None })));
    }
}

/// An event about this Node is heard, which was written then.
pub fn say(field: &mut Field, node: &str, reason: &str, uid: Option<&str>, at: Time) {
    field.feed(Event::Cluster(ClusterFact::NodeEvent(NodeEvent {
        node: node.into(),
        uid: uid.map(Into::into),
        reason: reason.into(),
        message: "".into(),
        reporter: "x".into(),
        stamped: Some(stamp(at)),
    })));
}

/// A cloud controller tells that it deletes this Node, because it does not find its instance.
pub fn cloud_deletes(field: &mut Field, gone: &Node) {
    let at = field.now;
    say(field, gone.name.as_str(), "DeletingNode", Some(gone.uid.as_str()), at);
}

/// The next process, which begins now; the one before was alive until then.
pub fn next(field: Field, roster: Roster, last_alive: Time) -> Field {
    let how = Restored { last_alive: Some(last_alive), ..field.next_begins() };
    let mut next = Field::with(State::restore(roster, how, field.records.clone()));
    (next.now, next.records, next.made) = (field.now, field.records, field.made);
    (next.instances, next.ports, next.nodes) = (field.instances, field.ports, field.nodes);
    (next.by_others, next.cloud_behind) = (field.by_others, field.cloud_behind);
    next
}

/// Our clock is set ahead by so much, and no other.
pub fn set_ahead(field: &mut Field, by: Span) {
    field.now = field.now + by;
    field.cloud_behind = Span::from_ms(field.cloud_behind.ms + by.ms);
}

/// A process that lived until a moment ago is followed by another, as at an upgrade. Its ledger was rotated before, or not.
pub fn upgraded(mut field: Field, roster: Roster, rotated: bool) -> Field {
    let last = field.now;
    if rotated {
        field.records = field.state.checkpoint();
    }
    field.now = last + Span::from_s(5);
    next(field, roster, last)
}
