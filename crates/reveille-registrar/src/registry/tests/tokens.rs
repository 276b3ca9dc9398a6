//! Tokens of joins: made when one is needed, made again when one ends, and not asked for without end.

use reveille_core::model::stage::Stage;
use reveille_core::model::time::Span;
use reveille_wire::agent::frame::{Heartbeat, StageStep};
use reveille_wire::agent::text::Sentence;
use reveille_wire::agent::{AgentFrame, Reason};

use super::world::*;
use crate::registry::{Conn, Event, MachineId};

#[test]
fn token_is_made_on_need_renewed_in_wait_and_dropped_after_join() {
    let mut world = World::new();
    world.plans(&[]);
    let id = world.known(&machine(1));
    let (conn, effects) = world.arrive(&id, &machine(1));
    assert_eq!(tokens(&effects), (1, 0, 0));
    world.step(Event::TokenMade { machine: id.clone(), outcome: Ok(()) });
    let (mut made, mut sent) = (0, 0);
    for _ in 0..65 {
        assert_eq!(tokens(&world.say(conn, BEAT)), (0, 0, 0), "a heartbeat asks for nothing");
        let (asked, given, dropped) = tokens(&world.pass(Span::from_s(59)));
        assert_eq!(dropped, 0);
        sent += given;
        for _ in 0..asked {
            made += 1;
            let effects = world.step(Event::TokenMade { machine: id.clone(), outcome: Ok(()) });
            sent += tokens(&effects).1;
        }
        world.now = world.now + Span::from_s(1);
    }
    assert_eq!(made, 3, "at two thirds of half an hour each");
    assert!(sent >= made, "and each is handed over");
    let effects = world.say(conn, staged(1, Stage::Register, StageStep::Left));
    assert_eq!(tokens(&effects), (0, 0, 1));
    let effects =
        world.say(conn, AgentFrame::Heartbeat(Heartbeat { stage: None, joined: true, account: None }));
    assert_eq!(tokens(&effects), (0, 0, 0), "dropped once");
}

#[test]
fn machine_with_node_gets_no_token_and_machine_without_it_does() {
    let mut world = World::new();
    world.plans(&[]);
    let id = world.known(&machine(1));
    let hello = reveille_wire::agent::frame::Hello {
        protocol: 1,
        identity: machine(1).identity,
        facts: machine(1).facts,
        plan: None,
        joined: true,
    };
    let (conn, effects) = world.arrive_with(&id, machine(1).key, hello);
    assert_eq!(tokens(&effects), (0, 0, 0));
    let effects = world.say(conn, BEAT);
    assert_eq!(tokens(&effects), (1, 0, 0));
}

#[test]
fn failed_token_is_retried_later_and_machine_is_told_why() {
    let mut world = World::new();
    world.plans(&[]);
    let id = world.known(&machine(1));
    let (conn, _) = world.arrive(&id, &machine(1));
    let effects = world.step(Event::TokenMade { machine: id.clone(), outcome: Err("forbidden".into()) });
    assert_eq!((wait(&effects, conn), tokens(&effects)), (Some("WAIT_TOKEN"), (0, 0, 0)));
    world.say(conn, BEAT);
    assert_eq!(tokens(&world.pass(Span::from_s(6))), (1, 0, 0));
    let mut effects = Vec::new();
    for _ in 0..3 {
        world.say(conn, BEAT);
        effects.extend(world.pass(Span::from_s(30)));
    }
    assert_eq!(tokens(&effects).0, 1, "an answer that does not come counts as a failure");
}

/// A machine that waits for its token, which is being made.
fn waiting(world: &mut World) -> (MachineId, Conn) {
    world.plans(&[]);
    let id = world.known(&machine(1));
    let (conn, effects) = world.arrive(&id, &machine(1));
    assert_eq!(tokens(&effects), (1, 0, 0));
    (id, conn)
}

/// The machine waits and sends heartbeats, and each attempt is answered. Returns how many tokens were asked for.
fn wait_for(
    world: &mut World,
    (id, conn): (&MachineId, Conn),
    span: Span,
    outcome: Result<(), Sentence>,
) -> usize {
    let (until, mut made) = (world.now + span, 0);
    while world.now < until {
        world.say(conn, BEAT);
        let effects = world.pass(Span::from_s(30));
        for _ in 0..tokens(&effects).0 {
            made += 1;
            world.step(Event::TokenMade { machine: id.clone(), outcome: outcome.clone() });
        }
    }
    made
}

#[test]
fn attempts_that_made_no_token_do_not_use_up_the_days_tokens() {
    let mut world = World::new();
    let (id, conn) = waiting(&mut world);
    world.step(Event::TokenMade { machine: id.clone(), outcome: Err("forbidden".into()) });
    let hours = Span::from_min(10 * 60);
    let failed = wait_for(&mut world, (&id, conn), hours, Err("forbidden".into()));
    let most = usize::try_from(world.registry.settings().tokens_a_day).unwrap();
    assert!(failed > most, "{failed}");
    // The server gets the permission to create Secrets now.
    assert!(wait_for(&mut world, (&id, conn), hours, Ok(())) > 0);
}

#[test]
fn machine_with_used_up_daily_tokens_is_told_once_at_expiry() {
    let mut world = World::new();
    let (id, conn) = waiting(&mut world);
    let most = world.registry.settings().tokens_a_day;
    for _ in 1..most {
        world.step(Event::TokenMade { machine: id.clone(), outcome: Ok(()) });
        world.say(conn, BEAT);
        // The machine says that it joined, so the registry deletes each token at once.
        world.say(conn, AgentFrame::Heartbeat(Heartbeat { stage: None, joined: true, account: None }));
        assert_eq!(tokens(&world.say(conn, BEAT)), (1, 0, 0));
        world.pass(Span::from_s(1));
    }
    world.step(Event::TokenMade { machine: id, outcome: Ok(()) });
    let mut told = Vec::new();
    for _ in 0..80 {
        world.say(conn, BEAT);
        let effects = world.pass(Span::from_s(30));
        assert_eq!(tokens(&effects), (0, 0, 0), "nothing is made, and nothing is sent again");
        told.extend(wait(&effects, conn));
    }
    assert_eq!(told, [Reason::TooMany { of: Default::default() }.code()]);
}

#[test]
fn a_clock_that_is_set_back_puts_off_no_attempt() {
    for fails in [true, false] {
        let mut world = World::new();
        let (id, conn) = waiting(&mut world);
        if fails {
            world.step(Event::TokenMade { machine: id.clone(), outcome: Err("it is away".into()) });
        }
        let by = Span::from_min(-24 * 60);
        world.now = world.now + by;
        world.step(Event::ClockSet { by });
        let made = wait_for(&mut world, (&id, conn), Span::from_min(5), Ok(()));
        assert!(made > 0, "after seconds of backoff, or one without an answer: {fails}");
    }
}

#[test]
fn a_token_that_comes_late_is_one() {
    let mut world = World::new();
    let (id, conn) = waiting(&mut world);
    world.say(conn, BEAT);
    world.pass(Span::from_s(50));
    world.say(conn, BEAT);
    assert_eq!(wait(&world.pass(Span::from_s(10)), conn), Some("WAIT_TOKEN"), "it is given up");
    let late = |outcome| Event::TokenMade { machine: id.clone(), outcome };
    assert_eq!(tokens(&world.step(late(Err("away".into())))), (0, 0, 0), "a failure is not counted twice");
    assert_eq!(tokens(&world.step(late(Ok(())))), (0, 1, 0));
    world.say(conn, BEAT);
    assert_eq!(tokens(&world.pass(Span::from_s(30))), (0, 0, 0), "no other is asked for");
}

#[test]
fn flapping_machine_leaves_no_token_and_stays_in_daily_limit() {
    let mut world = World::new();
    let (id, conn) = waiting(&mut world);
    let (mut asked, mut dropped) = (1, 0);
    for _ in 0..200 {
        world.say(conn, AgentFrame::Heartbeat(Heartbeat { stage: None, joined: true, account: None }));
        // The token arrives when the machine does not need it any more.
        dropped += tokens(&world.step(Event::TokenMade { machine: id.clone(), outcome: Ok(()) })).2;
        asked += tokens(&world.say(conn, BEAT)).0;
        world.pass(Span::from_s(1));
    }
    let most = usize::try_from(world.registry.settings().tokens_a_day).unwrap();
    assert_eq!((asked, dropped >= most), (most, true), "{dropped}");
}

/// A heartbeat that says whether the machine's Node exists.
fn beat(joined: bool) -> AgentFrame {
    AgentFrame::Heartbeat(Heartbeat { stage: None, joined, account: None })
}

#[test]
fn pause_after_failed_token_is_not_shortened_by_joined_reports() {
    let mut world = World::new();
    let (id, conn) = waiting(&mut world);
    let fail = |world: &mut World| {
        world.step(Event::TokenMade { machine: id.clone(), outcome: Err("forbidden".into()) });
    };
    fail(&mut world);
    let mut asked = 0;
    // As many frames as the rate allows in the long run, for a minute.
    for number in 0..600 {
        world.now = world.now + Span::from_ms(100);
        let mut effects = world.say(conn, beat(number % 2 == 0));
        effects.extend(world.step(Event::Tick));
        for _ in 0..tokens(&effects).0 {
            asked += 1;
            fail(&mut world);
        }
    }
    assert!((1..=4).contains(&asked), "{asked} after pauses of 5, 10, 20 s");
}

/// The machine says that it joined while its token is being made, so the failure comes when no machine waits.
#[test]
fn token_failure_while_no_machine_waits_is_followed_by_pause() {
    let mut world = World::new();
    let (id, conn) = waiting(&mut world);
    world.say(conn, beat(true));
    world.step(Event::TokenMade { machine: id.clone(), outcome: Err("forbidden".into()) });
    let effects = world.say(conn, BEAT);
    assert_eq!((wait(&effects, conn), tokens(&effects)), (Some("WAIT_TOKEN"), (0, 0, 0)));
    assert_eq!(tokens(&world.pass(Span::from_s(6))), (1, 0, 0));
}

#[test]
fn late_token_is_deleted_if_machine_joined_meanwhile() {
    let mut world = World::new();
    let (id, conn) = waiting(&mut world);
    world.say(conn, BEAT);
    world.pass(Span::from_s(50));
    world.say(conn, BEAT);
    assert_eq!(wait(&world.pass(Span::from_s(10)), conn), Some("WAIT_TOKEN"), "it is given up");
    world.say(conn, beat(true));
    assert_eq!(tokens(&world.step(Event::TokenMade { machine: id, outcome: Ok(()) })), (0, 0, 1));
}

#[test]
fn no_second_token_is_made_while_first_is_pending() {
    let mut world = World::new();
    let (id, conn) = waiting(&mut world);
    let mut asked = 0;
    for _ in 0..40 {
        world.say(conn, beat(true));
        asked += tokens(&world.say(conn, beat(false))).0;
        world.pass(Span::from_s(1));
    }
    assert_eq!(asked, 0);
    let made =
        |world: &mut World| tokens(&world.step(Event::TokenMade { machine: id.clone(), outcome: Ok(()) }));
    assert_eq!(made(&mut world.branch()), (0, 1, 0), "it is for the machine that waits again");
    world.say(conn, staged(1, Stage::Register, StageStep::Left));
    assert_eq!(made(&mut world), (0, 0, 1), "and for no machine that has registered");
}

#[test]
fn unwanted_token_that_was_given_up_is_deleted_on_arrival() {
    let mut world = World::new();
    let (id, conn) = waiting(&mut world);
    world.say(conn, beat(true));
    world.step(Event::Gone(conn));
    world.pass(Span::from_s(61));
    assert_eq!(tokens(&world.step(Event::TokenMade { machine: id, outcome: Ok(()) })), (0, 0, 1));
}
