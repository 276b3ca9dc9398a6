//! Reads by id that fail: how often they are repeated.

use reveille_core::effect::{Call, Effect, Look};
use reveille_core::event::{CloudFact, ClusterFact, Event};
use reveille_core::model::node::Ready;
use reveille_core::model::roster::Mode;
use reveille_core::model::time::Span;

use super::fixture::*;

fn reads_of(field: &mut Field, id: &str, span: Span) -> usize {
    let end = field.now + span;
    let mut reads = 0;
    while field.now < end {
        field.now = field.now + Span::from_s(10);
        let fact = CloudFact::read(field.snapshot());
        let listed = (field.now.ms / 10_000 % 3 == 0).then_some(Event::Cloud { cloud: CLOUD.into(), fact });
        for event in listed.into_iter().chain([Event::Cluster(ClusterFact::Alive)]) {
            let effects = field.step(event);
            let is_such = |effect: &&Effect| match effect {
                Effect::Look { look: Look::Instance(_, asked), .. } => asked.as_str() == id,
                _ => false,
            };
            reads += effects.iter().filter(is_such).count();
            field.perform(effects);
        }
    }
    reads
}

/// A Node that the roster does not let the controller clean up stands for an instance that is gone, and the cloud no longer
/// answers for it.
#[test]
fn ghost_whose_reads_fail_is_asked_for_later_and_later() {
    let mut wanted = roster();
    wanted.pools.get_mut(&"workers".into()).unwrap().repair.cleanup = Mode::Propose;
    let mut field = Field::new(wanted).populate(10);
    field.run(Span::from_min(5));
    field.nodes.get_mut("i003").unwrap().ready = Ready::Unknown;
    field.delete_machine("i003");
    field.run(Span::from_min(10));
    field.cell_down = Some("i003".into());
    let reads = reads_of(&mut field, "i003", Span::from_min(240));
    assert!((3..=12).contains(&reads), "{reads} reads in four hours");
}

/// A list lacks a machine, and its cloud cannot say whether there is one: a cell is down, and lists omit its servers.
#[test]
fn unlisted_machine_whose_reads_fail_is_asked_for_later_and_later() {
    let mut field = Field::new(roster()).populate(10);
    field.run(Span::from_min(5));
    field.delete_machine("i003");
    field.cell_down = Some("i003".into());
    let reads = reads_of(&mut field, "i003", Span::from_min(60));
    assert!((10..=20).contains(&reads), "{reads} reads in an hour");
    // It is asked for soon enough once the cell is back.
    field.cell_down = None;
    field.nodes.get_mut("i003").unwrap().ready = Ready::Unknown;
    field.run(Span::from_min(12));
    assert!(matches!(field.calls[..], [Call::DeleteNode(_)]), "{:?}", field.calls);
}
