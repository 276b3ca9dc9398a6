//! Short descriptions of a few machines, for tests: instance `iN` called `w-N`, its port `pN`, its node `w-N`.

use std::collections::BTreeSet;
use std::sync::Arc;

use reveille_core::engine::{Start, State};
use reveille_core::event::{CloudFact, CloudSnapshot, ClusterFact, Event, Scope};
use reveille_core::model::id::Fence;
use reveille_core::model::instance::{Instance, InstanceState, Mark, Port, PortStatus};
use reveille_core::model::lease::Renewal;
use reveille_core::model::network::SecurityGroup;
use reveille_core::model::node::{Node, NodeIntent, Provider, Ready};
use reveille_core::model::roster::Roster;
use reveille_core::model::time::{Span, Time};
use reveille_wire::report::{Answers, MachineReport};

/// A roster with one pool of machines with the tag `k8s-cluster=prod`, whose ports need the group `k8s-nodes`. Network
/// repairs are allowed.
pub(crate) fn roster() -> Roster {
    roster_with("repair: {network: act}")
}

/// The same roster with these further fields of its pool.
pub(crate) fn roster_with(fields: &str) -> Roster {
    let text = format!(
        "{{apiVersion: reveille.dev/v1alpha1, kind: Roster, metadata: {{name: prod}}, spec: {{\
         clouds: [{{name: os, openstack: {{cloud: prod}}}}], pools: [{{name: workers, cloud: os, \
         owned: {{tag: k8s-cluster=prod}}, securityGroups: [k8s-nodes], {fields}}}]}}}}"
    );
    let origin = reveille_wire::roster::Origin { name: "r", dir: std::path::Path::new(""), home: None };
    reveille_wire::roster::read(&text, &origin).unwrap().remove(0).roster
}

/// A running instance of the pool.
pub(crate) fn instance(number: &str) -> Instance {
    Instance {
        id: format!("i{number}").as_str().into(),
        name: format!("w-{number}").as_str().into(),
        state: InstanceState::Active,
        task: None,
        fault: None,
        zone: Some("nova".into()),
        image: None,
        marks: Arc::new(BTreeSet::from([Mark::Tag("k8s-cluster=prod".into())])),
        addresses: Box::new([]),
        config_drive: false,
        locked: false,
        created: None,
        hostname: None,
        hosting: None,
    }
}

/// Its port with these groups.
pub(crate) fn port(number: &str, groups: &[&str]) -> Port {
    Port {
        id: format!("p{number}").as_str().into(),
        network: "net".into(),
        addresses: Box::new([format!("10.0.0.{number}").parse().unwrap()]),
        groups: groups.iter().map(|group| (*group).into()).collect(),
        pairs: Box::new([]),
        security: true,
        status: PortStatus::Active,
        revision: 1,
    }
}

/// The group that ports need.
pub(crate) fn group() -> SecurityGroup {
    SecurityGroup { id: "g1".into(), name: "k8s-nodes".into(), project: None, rules: Vec::new() }
}

/// Its node.
pub(crate) fn node(number: &str, ready: Ready) -> Node {
    Node {
        name: format!("w-{number}").as_str().into(),
        uid: format!("u{number}").as_str().into(),
        provider: Provider::Instance(format!("i{number}").as_str().into()),
        system_uuid: None,
        boot_id: None,
        kubelet: None,
        addresses: Box::new([]),
        pod_ranges: Box::new([]),
        ready,
        conditions: Box::new([]),
        zone: None,
        cordoned: false,
        intent: NodeIntent::default(),
        uninitialized: false,
        taints: Box::default(),
    }
}

/// A machine that is Ready, by its name and its Node's, as a report has it.
pub(crate) fn machine(name: &str, node: Option<&str>) -> MachineReport {
    MachineReport {
        name: name.to_owned(),
        key: String::new(),
        pool: None,
        zone: None,
        answers: Answers::Yes,
        stage: None,
        state: "ready".to_owned(),
        since: None,
        what: String::new(),
        node: node.map(str::to_owned),
        instance: None,
        cloud: None,
    }
}

/// A state and its time, which the test feeds. Records are durable at once; the test ignores the other effects.
pub(crate) struct Field {
    /// The engine.
    pub(crate) state: State,
    /// The time.
    pub(crate) now: Time,
    /// What the cloud lists.
    pub(crate) cloud: CloudSnapshot,
    /// What the cluster lists.
    pub(crate) nodes: Vec<Arc<Node>>,
    renewed: u64,
}

impl Field {
    /// `count` healthy machines, at 09:00 of a fixed day, UTC.
    pub(crate) fn of(count: usize, acting: bool) -> Self {
        let numbers: Vec<String> = (1..=count).map(|number| number.to_string()).collect();
        let cloud = CloudSnapshot {
            instances: numbers.iter().map(|n| Arc::new(instance(n))).collect(),
            begun: None,
            scope: Scope::Full,
            ports: numbers
                .iter()
                .map(|n| (format!("i{n}").as_str().into(), Arc::new(port(n, &["g1"]))))
                .collect(),
            in_use: Arc::default(),
            groups: Some(vec![Arc::new(group())]),
            routers: Vec::new(),
        };
        let nodes = numbers.iter().map(|n| Arc::new(node(n, Ready::True))).collect();
        let state = State::new(roster(), Start { fence: Fence(1), acting });
        Self { state, now: Time::from_ms(1_792_400_400_000), cloud, nodes, renewed: 0 }
    }

    /// Feeds one event, and acknowledges all records that follow from it.
    pub(crate) fn feed(&mut self, event: Event) {
        use reveille_core::effect::Effect;
        for effect in self.state.step(self.now, event) {
            if let Effect::Record { id, .. } = effect {
                self.feed(Event::Recorded(id));
            }
        }
    }

    /// Feeds a listing of all machines as they are.
    pub(crate) fn look(&mut self) {
        let fact = CloudFact::read(self.cloud.clone());
        self.feed(Event::Cloud { cloud: "os".into(), fact });
        self.feed(Event::Cluster(ClusterFact::Synced(self.nodes.clone())));
        self.renewed += 1;
        let renewed = Renewal::nth(self.renewed);
        let leases = self.nodes.iter().map(|node| (node.name.clone(), renewed));
        self.feed(Event::Cluster(ClusterFact::Leases(leases.collect())));
        self.feed(Event::Cluster(ClusterFact::Alive));
    }

    /// Lets time pass, with a listing every ten seconds.
    pub(crate) fn pass(&mut self, span: Span) {
        let end = self.now + span;
        while self.now < end {
            self.now = self.now + Span::from_s(10);
            self.look();
        }
    }
}
