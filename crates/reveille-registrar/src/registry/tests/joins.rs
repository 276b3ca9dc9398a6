//! The server reports a join once, when it has ended, with all errors on its way.

use reveille_core::model::stage::Stage;
use reveille_core::model::time::Span;
use reveille_wire::agent::frame::{Heartbeat, StageReport, StageStep, Trouble};
use reveille_wire::agent::{AgentFrame, StageWord};

use super::world::{World, certified, machine, told};
use crate::registry::{Conn, Effect, Event, JoinEnd, JoinOver, Registry, Removal, Reply, Settings, What};

fn overs(effects: &[Effect]) -> Vec<JoinOver> {
    let over = |what: &What| match what {
        What::JoinOver(over) => Some(JoinOver::clone(over)),
        _ => None,
    };
    told(effects).into_iter().filter_map(over).collect()
}

fn staged(world: &mut World, conn: Conn, stage: Stage, step: StageStep, error: Option<&str>) -> Vec<Effect> {
    let seq = u64::try_from(world.now.ms).unwrap() + world.records.len() as u64;
    let error = error.map(|code| Trouble { code: code.into(), text: "so it is".into() });
    world.say(
        conn,
        AgentFrame::Stage(StageReport {
            seq,
            stage: StageWord(stage),
            step,
            attempts: u32::from(error.is_some()),
            error,
            stamp: "then".into(),
        }),
    )
}

fn beat(world: &mut World, conn: Conn, stage: Stage, joined: bool) -> Vec<Effect> {
    let stage = Some(StageWord(stage));
    world.say(conn, AgentFrame::Heartbeat(Heartbeat { stage, joined, account: None }))
}

#[test]
fn join_ends_when_node_stays_and_keeps_errors_and_silences() {
    let mut world = World::new();
    world.plans(&[]);
    let id = world.known(&machine(1));
    let began = world.now;
    let (conn, _) = world.arrive(&id, &machine(1));
    staged(&mut world, conn, Stage::Runtime, StageStep::Entered, None);
    staged(&mut world, conn, Stage::Runtime, StageStep::Tried, Some("NO_RUNTIME"));
    world.pass(Span::from_s(70));
    let (conn, _) = world.arrive(&id, &machine(1));
    staged(&mut world, conn, Stage::Runtime, StageStep::Left, None);
    staged(&mut world, conn, Stage::Stay, StageStep::Entered, None);
    assert_eq!(overs(&beat(&mut world, conn, Stage::FetchConfig, true)), [], "that is of an earlier one");
    // A start in between restores the same join, from its records and from a checkpoint's.
    let replayed = Registry::restore(Settings::default(), world.now, &world.records);
    let checkpoint = Registry::restore(Settings::default(), world.now, &replayed.index().checkpoint());
    assert!(replayed.index() == world.registry.index() && checkpoint.index() == replayed.index());
    let over = overs(&beat(&mut world, conn, Stage::Stay, true));
    let [over] = &over[..] else { panic!("{over:?}") };
    assert_eq!((over.end, over.flow.began, over.ended), (JoinEnd::Held, began, world.now));
    let stages: Vec<_> = over.flow.stretches().map(|(stage, _)| stage).collect();
    let wanted = [Stage::Runtime, Stage::FetchConfig, Stage::Trust, Stage::Authenticate, Stage::Stay];
    assert_eq!(stages, wanted, "fetch-config by this server's word: the cluster was not there yet");
    let (_, runtime) = over.flow.stretches().next().unwrap();
    assert_eq!(runtime.agent_said.as_ref().unwrap().trouble.code.as_str(), "NO_RUNTIME", "it is kept");
    let [silence] = &over.flow.silences[..] else { panic!("{over:?}") };
    assert_eq!((silence.since, silence.stage), (began, Some(StageWord(Stage::Runtime))));
    assert_eq!(silence.until.unwrap(), world.now);
    assert_eq!(overs(&beat(&mut world, conn, Stage::Stay, true)), [], "once");
}

#[test]
fn each_join_has_one_end() {
    let ends: [(JoinEnd, fn(&mut World, Conn) -> Vec<Effect>); 3] = [
        (JoinEnd::GaveUp, |world, conn| {
            staged(world, conn, Stage::Register, StageStep::Tried, Some("GAVE_UP"))
        }),
        (JoinEnd::TimedOut, |world, _| world.pass(Span::from_min(121))),
        (JoinEnd::Removed, |world, _| {
            let ask = world.ask();
            world.step(Event::Remove { ask, machine: "i-1".into(), what: Some(Removal::Machine) })
        }),
    ];
    for (wanted, end) in ends {
        let mut world = World::new();
        let id = world.known(&machine(1));
        let (conn, _) = world.arrive(&id, &machine(1));
        let over = overs(&end(&mut world, conn));
        assert_eq!(over.iter().map(|over| over.end).collect::<Vec<_>>(), [wanted]);
        assert_eq!(overs(&world.pass(Span::from_min(300))), [], "once");
    }
}

#[test]
fn lost_node_starts_new_join_but_unready_or_rebuilt_does_not() {
    let mut world = World::new();
    let id = world.known(&machine(1));
    let (conn, _) = world.arrive(&id, &machine(1));
    assert_eq!(overs(&beat(&mut world, conn, Stage::Stay, true)).len(), 1);
    for stage in [Stage::FetchConfig, Stage::Trust, Stage::Ready, Stage::Stay] {
        staged(&mut world, conn, stage, StageStep::Entered, None);
        assert_eq!(overs(&beat(&mut world, conn, Stage::Stay, true)), [], "{stage}");
    }
    staged(&mut world, conn, Stage::Register, StageStep::Entered, Some("NOT_REGISTERED"));
    assert_eq!(overs(&beat(&mut world, conn, Stage::Stay, true)).len(), 1);
    let invitation = world.invite(|wish| {
        super::world::REBUILT(wish);
        wish.reimage = Some(crate::registry::Reimage::AtOnce);
    });
    let reply = world.enrol(&invitation, &super::world::Claimed { key: machine(9).key, ..machine(1) });
    assert!(matches!(reply, Reply::Certify { .. }));
    assert_eq!(certified(reply), id, "reimaged");
}

#[test]
fn a_clock_that_is_set_ends_no_join_and_puts_off_no_end_of_one() {
    let month = Span::from_min(30 * 24 * 60);
    for by in [month, Span::from_ms(-month.ms)] {
        let mut world = World::new();
        world.now = world.now + month;
        world.known(&machine(1));
        world.pass(Span::from_min(60));
        world.now = world.now + by;
        world.step(Event::ClockSet { by });
        assert_eq!(overs(&world.pass(Span::from_s(1))), [], "{by:?}");
        world.restart();
        assert_eq!(overs(&world.pass(Span::from_min(58))), [], "{by:?}");
        assert_eq!(overs(&world.pass(Span::from_min(2))).len(), 1, "two hours after it began: {by:?}");
    }
}
