//! Which traces of machines with agents are kept: the fixture compares those that may give way with a walk after every step.

use reveille_core::model::agent::{AgentBlocker, AgentBlockerKind};
use reveille_core::model::incident::MachineKey;
use reveille_core::model::node::Ready;
use reveille_core::model::time::Span;
use reveille_core::record::Record;

use super::fixture::{CLOUD, Field, roster};
use super::restart::restarted;

fn has_trace(field: &Field, id: &str) -> bool {
    field.state.trace(&MachineKey::Instance(CLOUD.into(), id.into())).is_some()
}

/// Each agent is heard once, a moment after the one before.
fn hear(field: &mut Field, ids: &[String], blocker: Option<AgentBlockerKind>) {
    for id in ids {
        let mut said = Field::report(id);
        said.blocker = blocker.map(|kind| AgentBlocker { kind, text: "by its own reasons".into() });
        field.now = field.now + Span::from_ms(1);
        field.agents = [(id.clone(), said)].into();
        field.hear_agents();
    }
    field.agents.clear();
}

/// 512 are kept, and a walk over all of them for each that comes costs the square of an outage.
#[test]
fn oldest_trace_is_evicted_unless_its_machine_is_unhealthy() {
    let ids: Vec<String> = (0..518).map(|number| format!("i{number:03}")).collect();
    let mut field = Field::new(roster()).populate(ids.len());
    field.list_cloud();
    field.sync_nodes();
    let gone = |field: &Field| -> Vec<String> {
        ids[..512].iter().filter(|id| !has_trace(field, id)).cloned().collect()
    };
    hear(&mut field, &ids[..1], None);
    hear(&mut field, &ids[1..2], Some(AgentBlockerKind::Leaving));
    field.nodes.get_mut(&ids[0]).unwrap().ready = Ready::Unknown;
    field.sync_nodes();
    hear(&mut field, &ids[2..512], None);
    assert_eq!(gone(&field), [""; 0], "there is room for as many");
    hear(&mut field, &ids[512..516], None);
    assert_eq!(gone(&field), ids[2..6], "the first has an incident, and the second is to go");
    field.nodes.get_mut(&ids[0]).unwrap().ready = Ready::True;
    field.run(Span::from_min(10));
    assert!(field.state.context().cases.is_empty(), "all is well again");
    hear(&mut field, &ids[516..], None);
    assert_eq!(gone(&field), ids[2..8], "and the first has changed since");
}

/// Whether it may give way is said nowhere in the ledger, and its age changes with the clock.
#[test]
fn closed_incident_trace_is_evictable_after_restart_and_jump() {
    let mut field = Field::new(roster()).populate(10).with_agents(&["i004"]);
    field.run(Span::from_min(5));
    field.nodes.remove("i004");
    field.run(Span::from_min(30));
    assert!(field.records.iter().any(|record| matches!(record, Record::Traced { .. })), "the ledger has it");
    let mut field = restarted(field);
    field.run(Span::from_s(10));
    assert!(field.state.context().cases.is_empty(), "no incident is open any more");
    assert!(has_trace(&field, "i004"), "it is kept while there is room");
    field.now = field.now - Span::from_min(60);
    field.run(Span::from_s(10));
}
