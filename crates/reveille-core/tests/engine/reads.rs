//! Reads by themselves: which of them wait for which.

use std::collections::VecDeque;
use std::sync::Arc;

use reveille_core::effect::{Call, Effect, Look, Outcome, ReadError, ReadErrorKind};
use reveille_core::event::{Answer, CloudFact, ClusterFact, Event};
use reveille_core::model::id::LookId;
use reveille_core::model::instance::Instance;
use reveille_core::model::lease::Renewal;
use reveille_core::model::node::{Node, Ready};
use reveille_core::model::roster::Mode;
use reveille_core::model::time::{Span, Time};

use super::fixture::*;

/// Listings, nodes and leases, as in the fixture's `run`.
fn readings(field: &mut Field) -> VecDeque<Event> {
    field.renewals += 1;
    let renewed = |node: &Node| if node.ready == Ready::True { field.renewals } else { 0 };
    let leases = field.nodes.values().map(|node| (node.name.clone(), Renewal::nth(renewed(node)))).collect();
    let nodes = field.nodes.values().cloned().map(Arc::new).collect();
    let fact = CloudFact::read(field.snapshot());
    VecDeque::from([
        Event::Cloud { cloud: CLOUD.into(), fact },
        Event::Cluster(ClusterFact::Synced(nodes)),
        Event::Cluster(ClusterFact::Leases(leases)),
        Event::Cluster(ClusterFact::Alive),
    ])
}

/// Consoles and action logs of many machines are being read, and what is behind these hangs: each such read times out after a
/// minute. A port loses its group meanwhile.
#[test]
fn verdict_does_not_wait_behind_evidence() {
    let mut wanted = roster();
    wanted.pools.values_mut().for_each(|pool| pool.repair.rejoin = Mode::Off);
    let mut field = Field::new(wanted).populate(200);
    field.run(Span::from_min(3));
    let ids: Vec<String> = field.nodes.keys().cloned().collect();
    ids[..50].iter().for_each(|id| field.nodes.get_mut(id).unwrap().ready = Ready::False);
    let until = field.now + Span::from_min(40);
    let mut hanging: VecDeque<(Time, LookId)> = VecDeque::new();
    let (mut lost, mut called_at, mut asked_at) = (false, None, None);
    while field.now < until && asked_at.is_none() {
        field.now = field.now + Span::from_s(5);
        let mut events = if field.now.ms % 10_000 == 0 { readings(&mut field) } else { VecDeque::new() };
        events.push_back(Event::Tick);
        while hanging.front().is_some_and(|(at, _)| *at + Span::from_s(60) <= field.now) {
            let (kind, text) = (ReadErrorKind::TimedOut, "no answer within 60 s".into());
            let answer = Err(ReadError { kind, text, retry_after: None });
            let (_, look) = hanging.pop_front().unwrap();
            events.push_back(Event::Looked { look, answer });
        }
        if !lost && !hanging.is_empty() {
            lost = true;
            field.ports.get_mut("i150").unwrap().groups = Box::new([]);
        }
        while let Some(event) = events.pop_front() {
            for effect in field.step(event) {
                match effect {
                    Effect::Record { id, .. } => events.push_back(Event::Recorded(id)),
                    Effect::Look { id, look: Look::LogEvidence(..) | Look::Actions(..) } => {
                        hanging.push_back((field.now, id));
                    }
                    Effect::Look { id, look } => {
                        if let (Look::Ports(..), Some(_)) = (&look, called_at) {
                            asked_at.get_or_insert(field.now);
                        }
                        events.push_back(Event::Looked { look: id, answer: Ok(field.answer(&look)) });
                    }
                    Effect::Call { intent, call, .. } => {
                        if let Call::SetPortGroups(_) = call {
                            called_at = Some(field.now);
                            field.apply(&call);
                        }
                        let outcome = Outcome::Accepted { request: None };
                        events.push_back(Event::Done { intent, outcome });
                    }
                    _ => {}
                }
            }
        }
    }
    let called_at = called_at.expect("the port got its group back");
    let asked_at = asked_at.expect("and it was read whether it has it");
    assert!(asked_at.since(called_at) < Span::from_min(1), "read after {} ms", asked_at.since(called_at).ms);
}

/// Evidence that waits while its cloud falls silent is not read then, and is when the cloud is back.
#[test]
fn evidence_of_a_cloud_that_is_not_believed_is_read_when_it_is() {
    let mut field = Field::new(roster()).populate(200);
    field.run(Span::from_min(3));
    let ids: Vec<String> = field.nodes.keys().cloned().collect();
    ids[..50].iter().for_each(|id| field.nodes.get_mut(id).unwrap().ready = Ready::False);
    field.unanswered = Some(Vec::new());
    field.run(Span::from_min(6));
    let out = field.unanswered.as_ref().unwrap().len();
    assert!(out < 50, "{out} reads are out, and the others wait");
    // No listing comes any more, and what was asked is not answered.
    while field.state.context().clouds[CLOUD].source.trust(field.now).is_given() {
        field.now = field.now + Span::from_s(10);
        field.sync_nodes();
    }
    field.answer_all();
    let cases = field.state.context().cases.values();
    let unread = cases.filter(|case| case.gathered.asked_at.is_none()).count();
    assert!(unread > 20, "{unread} cases wait for their evidence");
    field.run(Span::from_min(15));
    let read = field.state.context().cases.values().filter(|case| case.gathered.is_complete()).count();
    assert_eq!(read, 50);
}

/// A client that may create Nodes lets one name an instance of which the cloud's answer cannot be read (`openstack:///detail`).
/// It was asked for each ten seconds for as long as its Node was there: 2,160 times in six hours, for each such Node.
#[test]
fn failing_reads_of_a_made_up_nodes_instance_back_off() {
    let mut field = Field::new(roster()).populate(10);
    field.run(Span::from_min(5));
    let mut node = node("detail", Ready::Unknown);
    node.name = "made-up".into();
    field.nodes.insert("detail".into(), node);
    let asked = reads_in_six_hours(&mut field, "detail", |_, _| {
        let text = "openstack: the answer cannot be read as expected".into();
        Err(ReadError { kind: ReadErrorKind::Malformed, text, retry_after: None })
    });
    assert!(asked > 0, "it was never asked for");
    assert!(asked <= 60, "asked for {asked} times in six hours");
}

/// Two silent Nodes name one machine that carries no mark of ours. Whichever of them the machine was read for, it is there; each
/// had it read for itself, which was twice the reads, for ever.
#[test]
fn two_nodes_of_a_foreign_machine_cost_one_read() {
    let asked = |nodes: &[&str]| {
        let mut field = Field::new(roster()).populate(10);
        field.run(Span::from_min(5));
        field.instances.insert("other".into(), Instance { marks: Arc::default(), ..instance("other") });
        for (at, name) in nodes.iter().enumerate() {
            // The second was made while the first had been known for a while.
            field.run(Span::from_min(20 * at as i64));
            let named = Node { name: (*name).into(), ..node("other", Ready::Unknown) };
            field.nodes.insert((*name).into(), named);
        }
        reads_in_six_hours(&mut field, "other", |field, look| Ok(field.answer(look)))
    };
    let (one, two) = (asked(&["first"]), asked(&["first", "second"]));
    assert!((2..=12).contains(&one), "{one}");
    assert!(two <= one + 1, "{two} reads for two Nodes, {one} for one");
}

/// How often the instance is asked for in six hours in which the cluster is listed each ten seconds.
fn reads_in_six_hours(
    field: &mut Field,
    instance: &str,
    answer: impl Fn(&mut Field, &Look) -> Result<Answer, ReadError>,
) -> usize {
    let mut asked = 0;
    for _ in 0..6 * 360 {
        field.now = field.now + Span::from_s(10);
        let mut events = VecDeque::from([Event::Cluster(ClusterFact::Alive), Event::Tick]);
        let nodes = field.nodes.values().cloned().map(Arc::new).collect();
        events.push_front(Event::Cluster(ClusterFact::Synced(nodes)));
        if (field.now.ms / 10_000) % 3 == 0 {
            let fact = CloudFact::read(field.snapshot());
            events.push_front(Event::Cloud { cloud: CLOUD.into(), fact });
        }
        while let Some(event) = events.pop_front() {
            for effect in field.state.step(field.now, event) {
                match effect {
                    Effect::Record { id, .. } => events.push_back(Event::Recorded(id)),
                    Effect::Look { id, look } => {
                        let answer = match &look {
                            Look::Instance(_, id) if id.as_str() == instance => {
                                asked += 1;
                                answer(field, &look)
                            }
                            look => Ok(field.answer(look)),
                        };
                        events.push_back(Event::Looked { look: id, answer });
                    }
                    _ => {}
                }
            }
        }
    }
    asked
}
