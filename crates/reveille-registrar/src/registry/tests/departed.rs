//! The server forgets a machine whose instance is gone for good, and no other machine; setting the clock makes no machine
//! silent.

use reveille_core::model::time::Span;
use reveille_wire::agent::AgentFrame;
use reveille_wire::agent::frame::Heartbeat;
use reveille_wire::agent::text::Word;

use super::world::{AUTHORITY, NEVER, UUID, World, certified, closed, machine, refused, told};
use crate::registry::{Effect, Event, Index, MachineId, Peer, Record, Removal, Reply, What};

const DAY: Span = Span::from_min(24 * 60);
const BEAT: AgentFrame = AgentFrame::Heartbeat(Heartbeat { stage: None, joined: true, account: None });

impl World {
    fn sees(&mut self, instances: &[&str], gone: bool) -> Vec<Effect> {
        let instances = instances.iter().map(|id| Word::cut(id)).collect();
        self.step(Event::InstancesSeen { roster: "prod".into(), instances, gone })
    }

    fn is_known(&self, id: &MachineId) -> bool {
        self.registry.index().machine(id).is_some()
    }
}

fn forgotten(effects: &[Effect]) -> usize {
    told(effects).into_iter().filter(|what| **what == What::Forgotten).count()
}

#[test]
fn machine_with_deleted_instance_is_forgotten_after_a_day() {
    let mut world = World::new();
    let ids: Vec<MachineId> = (1..=2).map(|number| world.known(&machine(number))).collect();
    world.sees(&["I-1", "i-9"], true);
    assert_eq!(world.sees(&["i-1"], true), [], "once");
    assert_eq!(forgotten(&world.pass(Span::from_min(24 * 60 - 1))), 0);
    assert_eq!(forgotten(&world.pass(Span::from_min(1))), 1);
    assert_eq!((world.is_known(&ids[0]), world.is_known(&ids[1])), (false, true));
    let (conn, effects) = world.arrive(&ids[0], &machine(1));
    assert_eq!(closed(&effects, conn), Some("MACHINE_FORGOTTEN"));
    let peer = Peer { machine: ids[0].clone(), key: machine(1).key, authority: AUTHORITY, not_after: NEVER };
    assert_eq!(world.registry.stands(&peer).unwrap_err().code(), "MACHINE_FORGOTTEN");
    let ask = world.ask();
    let effects = world.step(Event::Renew { ask, peer, key: machine(1).key });
    let Some(Effect::Reply(_, reply)) = effects.into_iter().next() else { panic!("no answer") };
    assert_eq!(refused(reply), "MACHINE_FORGOTTEN");
    let again = world.known(&machine(1));
    assert_ne!(again, ids[0], "its name and its key are free for any invited machine");
}

#[test]
fn machine_heard_within_a_day_is_not_forgotten() {
    let mut world = World::new();
    let id = world.known(&machine(1));
    let (conn, _) = world.arrive(&id, &machine(1));
    world.sees(&["i-1"], true);
    for _ in 0..3 * 24 * 60 * 2 {
        world.now = world.now + Span::from_s(30);
        world.say(conn, BEAT);
    }
    assert_eq!(forgotten(&world.pass(Span::from_s(1))), 0, "its session stands");
    world.step(Event::Gone(conn));
    assert_eq!(forgotten(&world.pass(Span::from_min(23 * 60))), 0, "it may come back");
    assert_eq!(forgotten(&world.pass(Span::from_min(60))), 1);
}

#[test]
fn instance_seen_again_or_of_other_roster_is_not_gone() {
    let mut world = World::new();
    let id = world.known(&machine(1));
    let elsewhere = vec![Word::from("i-1")];
    world.step(Event::InstancesSeen { roster: "staging".into(), instances: elsewhere, gone: true });
    assert_eq!(forgotten(&world.pass(DAY + DAY)), 0);
    world.sees(&["i-1"], true);
    world.sees(&["i-1"], false);
    assert_eq!(forgotten(&world.pass(DAY + DAY)), 0);
    let mut rebuilt = machine(1);
    rebuilt.key = machine(7).key;
    world.sees(&["i-1"], true);
    world.pass(Span::from_min(60));
    let invited = world.invite(super::world::REBUILT);
    assert_eq!(certified(world.enrol(&invited, &rebuilt)), id);
    assert_eq!(forgotten(&world.pass(DAY + DAY)), 0, "it was reimaged since");
}

#[test]
fn removed_or_idless_machine_is_forgotten_with_its_instance() {
    let mut world = World::new();
    let removed = world.known(&machine(1));
    let ask = world.ask();
    world.step(Event::Remove { ask, machine: "w-1".into(), what: Some(Removal::Machine) });
    let mut nameless = machine(2);
    nameless.identity.instance_id = None;
    let nameless = world.known(&nameless);
    let other = world.known(&machine(3));
    world.sees(&["i-1", UUID[2].to_uppercase().as_str(), UUID[3], "w-3"], true);
    assert_eq!(forgotten(&world.pass(DAY)), 2);
    let known = [&removed, &nameless, &other].map(|id| world.is_known(id));
    assert_eq!(known, [false, false, true], "the UUID of one that knows its instance is no instance");
}

#[test]
fn forgotten_machines_survive_restart_and_are_bounded() {
    let mut world = World::new();
    let ids: Vec<MachineId> = (1..=3).map(|number| world.known(&machine(number))).collect();
    world.sees(&["i-1", "i-2"], true);
    world.pass(Span::from_min(60));
    world.sees(&["i-3"], true);
    world.pass(Span::from_min(23 * 60));
    let replayed = |records: &[Record]| {
        let mut index = Index::default();
        records.iter().for_each(|record| index.apply(record));
        index
    };
    assert_eq!(&replayed(&world.records), world.registry.index());
    let mut kept = replayed(&world.registry.index().checkpoint());
    assert_eq!(&kept, world.registry.index());
    assert_eq!(ids.iter().map(|id| kept.was_forgotten(id)).collect::<Vec<_>>(), [true, true, false]);
    assert!(kept.machine(&ids[2]).is_some_and(|known| known.departed.is_some()));
    for number in 0..5000 {
        let machine = MachineId::new(format!("m-more-{number}"));
        kept.apply(&Record::Forgotten { at: world.now + Span::from_s(number), machine });
    }
    let count = kept.checkpoint().iter().filter(|record| matches!(record, Record::Forgotten { .. })).count();
    assert_eq!((count, kept.was_forgotten(&ids[0])), (4096, false));
}

#[test]
fn clock_step_of_an_hour_neither_causes_nor_hides_silence() {
    for hours in [1, -1] {
        let by = Span::from_min(hours * 60);
        let silent =
            |effects: &[Effect]| told(effects).into_iter().filter(|what| **what == What::Silent).count();
        let mut world = World::new();
        let ids: Vec<MachineId> = (1..=3).map(|number| world.known(&machine(number))).collect();
        let conns: Vec<_> =
            ids.iter().zip(1..).map(|(id, number)| world.arrive(id, &machine(number)).0).collect();
        world.pass(Span::from_s(10));
        world.now = world.now + by;
        world.step(Event::ClockSet { by });
        assert_eq!(silent(&world.step(Event::Tick)), 0, "{hours}");
        assert_eq!(silent(&world.pass(Span::from_s(30))), 0, "{hours}");
        for conn in &conns[1..] {
            world.say(*conn, BEAT);
        }
        assert_eq!(
            silent(&world.pass(Span::from_s(20))),
            1,
            "{hours}: who says nothing is silent after its minute"
        );
        assert_eq!(world.registry.session_of(&ids[0]), None);
        assert!(world.registry.session_of(&ids[1]).is_some());
    }
}

#[test]
fn an_answer_to_an_enrolment_is_never_that_it_was_forgotten() {
    let mut world = World::new();
    let id = world.known(&machine(1));
    world.sees(&["i-1"], true);
    world.pass(DAY);
    assert!(!world.is_known(&id));
    let invited = world.invite(|_| {});
    let reply = world.enrol(&invited, &machine(1));
    assert!(matches!(reply, Reply::Certify { .. }), "{reply:?}");
}
