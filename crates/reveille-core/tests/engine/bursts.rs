//! Many faults at once: each costs as much as one alone, counted in decisions and not in time, and none is forgotten.

use std::collections::VecDeque;
use std::sync::Arc;

use reveille_core::effect::{Effect, Outcome};
use reveille_core::event::{ClusterFact, Event};
use reveille_core::model::id::IntentId;
use reveille_core::model::incident::FaultKind;
use reveille_core::model::lease::Renewal;
use reveille_core::model::node::{Node, Ready};
use reveille_core::model::roster::{Deadlines, Mode};
use reveille_core::model::time::Span;
use reveille_core::record::Record;

use super::fixture::*;

/// Takes in an event and all that follows from it, one event after another: the fixture's own way nests, and a thousand
/// faults nest deeper than a test's stack.
fn drive(field: &mut Field, event: Event) {
    let mut events = VecDeque::from([event]);
    while let Some(event) = events.pop_front() {
        for effect in field.step(event) {
            match effect {
                Effect::Record { id, record } => {
                    field.records.push(record);
                    events.push_back(Event::Recorded(id));
                }
                Effect::Look { id, look } => {
                    let answer = Ok(field.answer(&look));
                    events.push_back(Event::Looked { look: id, answer });
                }
                Effect::Call { intent, call, .. } => {
                    field.calls.push(call.clone());
                    field.apply(&call);
                    events.push_back(Event::Done { intent, outcome: Outcome::Accepted { request: None } });
                }
                Effect::List { .. } | Effect::WakeAt(_) => {}
            }
        }
    }
}

fn listing(field: &Field) -> Event {
    let fact = reveille_core::event::CloudFact::read(field.snapshot());
    Event::Cloud { cloud: CLOUD.into(), fact }
}

fn ids(count: usize) -> Vec<String> {
    (0..count).map(|number| format!("i{number:03}")).collect()
}

/// Time passes as in the fixture's `run`, one event after another.
fn run(field: &mut Field, span: Span) {
    let end = field.now + span;
    while field.now < end {
        field.now = field.now + Span::from_s(10);
        if (field.now.ms / 10_000) % 3 == 0 {
            let event = listing(field);
            drive(field, event);
        }
        let nodes = field.nodes.values().cloned().map(Arc::new).collect();
        drive(field, Event::Cluster(ClusterFact::Synced(nodes)));
        field.renewals += 1;
        let renewed = |node: &Node| if node.ready == Ready::True { field.renewals } else { 0 };
        let leases = field.nodes.values().map(|node| (node.name.clone(), Renewal::nth(renewed(node))));
        let leases = leases.collect();
        drive(field, Event::Cluster(ClusterFact::Leases(leases)));
        drive(field, Event::Cluster(ClusterFact::Alive));
    }
}

/// So many machines of 200 lose their security group in one listing; the decisions that it took to repair all.
fn decisions_for_lost_groups(faults: usize) -> u64 {
    let mut field = Field::new(roster()).populate(200);
    field.run(Span::from_min(2));
    for id in ids(faults) {
        field.ports.get_mut(&id).unwrap().groups = Box::default();
    }
    let before = field.state.decisions();
    let event = listing(&field);
    drive(&mut field, event);
    assert_eq!(field.calls.len(), faults, "each fault is repaired once");
    field.state.decisions() - before
}

#[test]
fn lost_groups_at_once_cost_linear_decisions() {
    let (few, many) = (decisions_for_lost_groups(25), decisions_for_lost_groups(200));
    assert!(many <= 6 * 200, "{many} decisions for 200 faults");
    assert!(many <= few * 10, "eight times the faults took {few} and then {many} decisions");
}

#[test]
fn repairs_of_a_burst_keep_the_order_of_opening() {
    let mut field = Field::new(roster()).populate(60);
    field.run(Span::from_min(2));
    for id in ids(60) {
        field.ports.get_mut(&id).unwrap().groups = Box::default();
    }
    let event = listing(&field);
    drive(&mut field, event);
    let repaired: Vec<String> = field.calls.iter().map(ToString::to_string).collect();
    let mut in_order = repaired.clone();
    in_order.sort();
    assert_eq!(repaired, in_order);
}

/// A burst that most of the pool is part of: frozen, and then well again, one Node after another.
#[test]
fn recovery_of_many_costs_linear_decisions() {
    let cost = |faults: usize| {
        let mut field = Field::new(roster()).populate(200);
        field.run(Span::from_min(2));
        for id in ids(faults) {
            let event = Event::Cluster(ClusterFact::Applied(node(&id, Ready::False).into()));
            field.nodes.insert(id.clone(), node(&id, Ready::False));
            drive(&mut field, event);
        }
        run(&mut field, Span::from_min(7));
        let before = field.state.decisions();
        for id in ids(faults) {
            field.nodes.insert(id.clone(), node(&id, Ready::True));
            drive(&mut field, Event::Cluster(ClusterFact::Applied(node(&id, Ready::True).into())));
        }
        run(&mut field, Span::from_min(5));
        assert!(field.state.context().cases.is_empty(), "all recovered");
        assert_eq!(field.calls.len(), 0, "nothing was done to a frozen pool");
        field.state.decisions() - before
    };
    let (few, many) = (cost(70), cost(200));
    assert!(few <= 3 * 70 && many <= 3 * 200, "70 faults took {few} decisions, and 200 took {many}");
}

/// The evidence is at hand when a deadline passes: the intent goes out in the very step of the timer.
#[test]
fn evidence_read_ahead_lets_deadline_act() {
    let mut roster = roster();
    // No agent is there to ask, and without this the deadline would begin an offer to a person.
    roster.pools.values_mut().for_each(|pool| pool.repair.rejoin = Mode::Off);
    let mut field = Field::new(roster).populate(10);
    field.run(Span::from_min(2));
    field.nodes.insert("i000".into(), node("i000", Ready::False));
    field.sync_nodes();
    let due = field.now + Deadlines::default().not_ready_within;
    while field.now + Span::from_s(10) < due {
        field.run(Span::from_s(10));
    }
    field.now = due - Span::from_s(5);
    field.feed(Event::Tick);
    assert_eq!(field.calls.len(), 0, "nothing is done before the deadline");
    let asked_at = field.case("i000", FaultKind::NotReady).unwrap().gathered.asked_at;
    assert!(
        asked_at.is_some_and(|at| due.since(at) <= Span::from_s(5)),
        "read at {asked_at:?}, due at {due:?}"
    );
    field.now = due;
    let effects = field.step(Event::Tick);
    let intended = |effect: &Effect| matches!(effect, Effect::Record { record: Record::Intended { .. }, .. });
    assert!(effects.iter().any(intended), "{effects:?}");
}

/// A machine that is well again before its evidence is wanted costs no read.
#[test]
fn short_absence_reads_no_evidence() {
    let mut field = Field::new(roster()).populate(10);
    field.run(Span::from_min(2));
    field.nodes.insert("i000".into(), node("i000", Ready::False));
    field.run(Span::from_min(4));
    assert!(field.case("i000", FaultKind::NotReady).unwrap().gathered.asked_at.is_none());
}

/// A call that never ends holds its slot; the others still go on, each in its turn.
#[test]
fn slot_of_unanswered_call_stays_taken() {
    let mut roster = roster();
    roster.limits.network_at_once = 2;
    let mut field = Field::new(roster).populate(6);
    field.run(Span::from_min(2));
    for id in ids(6) {
        field.ports.get_mut(&id).unwrap().groups = Box::default();
    }
    let mut first: Option<IntentId> = None;
    let event = listing(&field);
    let mut events = VecDeque::from([event]);
    while let Some(event) = events.pop_front() {
        for effect in field.step(event) {
            match effect {
                Effect::Record { id, .. } => events.push_back(Event::Recorded(id)),
                Effect::Look { id, look } => {
                    events.push_back(Event::Looked { look: id, answer: Ok(field.answer(&look)) });
                }
                Effect::Call { intent, call, .. } if *first.get_or_insert(intent) != intent => {
                    field.apply(&call);
                    field.calls.push(call);
                    events.push_back(Event::Done { intent, outcome: Outcome::Accepted { request: None } });
                }
                _ => {}
            }
            assert!(field.state.context().book.network_under_way() <= 2);
        }
    }
    assert_eq!(field.calls.len(), 5, "all but the one whose call is not answered");
}
