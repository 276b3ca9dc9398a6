//! A second cloud beside the first: ten machines in a pool of their own, whose listing may fail while the first one's does not.

use std::sync::Arc;

use reveille_core::effect::{ReadError, ReadErrorKind};
use reveille_core::event::{CloudFact, CloudSnapshot, Event, Scope};
use reveille_core::model::instance::Instance;
use reveille_core::model::node::Ready;
use reveille_core::model::roster::Roster;
use reveille_core::model::time::Span;

use super::fixture::{Field, instance, node, port};
use super::steps::{set, without_rejoin};

const CLOUD: &str = "os-b";

/// The machines of the second cloud.
pub struct Beside {
    others: Vec<Arc<Instance>>,
}

/// A roster of both clouds.
pub fn roster_of_two() -> Roster {
    let mut two = without_rejoin();
    two.clouds.push(CLOUD.into());
    let mut pool = two.pools.values().next().unwrap().clone();
    (pool.name, pool.cloud, pool.groups) = ("b".into(), CLOUD.into(), Vec::new());
    two.pools.insert(pool.name.clone(), pool);
    two
}

impl Beside {
    /// Ten machines of each cloud, all of them with a Ready Node.
    pub fn new() -> (Self, Field) {
        let mut field = Field::new(roster_of_two()).populate(10);
        let others: Vec<_> = (0..10).map(|n| Arc::new(instance(&format!("b{n:03}")))).collect();
        for one in &others {
            field.elsewhere.insert(one.id.to_string(), (**one).clone());
            field.nodes.insert(one.id.to_string(), node(one.id.as_str(), Ready::True));
        }
        (Self { others }, field)
    }

    /// Their ids.
    pub fn ids(&self) -> impl Iterator<Item = &str> {
        self.others.iter().map(|one| one.id.as_str())
    }

    /// What their Nodes say of them.
    pub fn set(&self, field: &mut Field, ready: Ready) {
        self.ids().for_each(|id| set(field, id, ready));
    }

    /// Both clouds are listed.
    pub fn run_listed(&self, field: &mut Field, minutes: i64) {
        let others = &self.others;
        run(
            field,
            minutes,
            &CloudFact::read(CloudSnapshot {
                instances: others.clone(),
                groups: Some(Vec::new()),
                scope: Scope::Full,
                ports: others
                    .iter()
                    .map(|one| (one.id.clone(), Arc::new(port(one.id.as_str(), &[]))))
                    .collect(),
                ..CloudSnapshot::default()
            }),
        );
    }

    /// The second one cannot be read.
    pub fn run_unread(&self, field: &mut Field, minutes: i64) {
        let error = ReadError { kind: ReadErrorKind::Unavailable, text: "503".into(), retry_after: None };
        run(field, minutes, &CloudFact::Failed(error));
    }
}

fn run(field: &mut Field, minutes: i64, fact: &CloudFact) {
    for _ in 0..2 * minutes {
        field.feed(Event::Cloud { cloud: CLOUD.into(), fact: fact.clone() });
        field.run(Span::from_s(30));
    }
}

/// Another process begins, and both clouds are as they were.
pub fn restarted(mut field: Field) -> Field {
    let elsewhere = std::mem::take(&mut field.elsewhere);
    let mut next = field.restarted(roster_of_two());
    next.elsewhere = elsewhere;
    next
}
