//! How an invited machine that lies can harm the machine whose identity it claims, and a machine that the server knows.

use reveille_core::model::time::Span;
use reveille_wire::agent::frame::{Done, Ended, Hello};
use reveille_wire::agent::text::{Tail, Word};
use reveille_wire::agent::{AgentFrame, ServerFrame};

use super::world::*;
use crate::registry::{
    AuthorityHash, Conn, Effect, Event, InvitationId, KeyHash, MachineId, Peer, Record, Registry, Removal,
    Reply, Settings, TokenHash, What,
};

/// Another machine claims the name of machine 1, with another host name each time.
fn lie(world: &mut World, id: &InvitationId, number: u32) -> Vec<Effect> {
    let who = machine(9);
    let mut facts = who.facts.clone();
    facts.hostname = Word::cut(&format!("liar-{number}"));
    let ask = world.ask();
    world.step(Event::Enrol {
        ask,
        id: id.clone(),
        hash: TokenHash([SECRET; 32]),
        identity: who.identity,
        facts,
        node_name: Some("w-1".into()),
        node: None,
        key: who.key,
        fresh: MachineId::new(format!("m-{}", ask.0)),
    })
}

#[test]
fn the_owner_of_a_name_is_told_once_however_often_it_is_claimed() {
    let mut world = World::new();
    let first = world.known(&machine(1));
    let (conn, _) = world.arrive(&first, &machine(1));
    let (mut frames, mut heard, mut records, mut closes) = (0, 0, 0, 0);
    for number in 0..200 {
        // Each time with another invitation: another test checks that each becomes void soon.
        let id = world.invite(|_| {});
        let effects = lie(&mut world, &id, number);
        frames += sent(&effects, conn).iter().filter(|frame| matches!(frame, ServerFrame::Rival(_))).count();
        heard += told(&effects).iter().filter(|what| matches!(what, What::Rival(..))).count();
        records +=
            effects.iter().filter(|effect| matches!(effect, Effect::Record(Record::Noted { .. }))).count();
        closes += usize::from(closed(&effects, conn).is_some());
    }
    println!("200 lies: {frames} frames, {heard} heard, {records} notes, {closes} closed");
    assert_eq!((frames, heard, records, closes), (1, 1, 1, 0));
    world.now = world.now + Span::from_min(61);
    let (conn, _) = world.arrive(&first, &machine(1));
    let id = world.invite(|_| {});
    let effects = lie(&mut world, &id, 200);
    let again = sent(&effects, conn).iter().any(|frame| matches!(frame, ServerFrame::Rival(_)));
    assert!(again, "an hour later it is news again");
}

#[test]
fn invitation_is_void_after_few_conflicts_also_after_restart() {
    let mut world = World::new();
    world.known(&machine(1));
    let id = world.invite(|_| {});
    let refusals: Vec<&str> = (0..20).map(|number| refused_in(&lie(&mut world, &id, number))).collect();
    let conflicts = refusals.iter().filter(|code| **code == "IDENTITY_CONFLICT").count();
    println!("{conflicts} of 20 lies were judged");
    assert!((1..=5).contains(&conflicts), "{refusals:?}");
    assert!(refusals.ends_with(&["TOKEN_VOID"]), "{refusals:?}");
    assert_eq!(refused(world.enrol(&id, &machine(3))), "TOKEN_VOID", "also for a machine that does not lie");
    let mut checkpoint = world.registry.index().checkpoint();
    for records in [world.records.clone(), std::mem::take(&mut checkpoint)] {
        world.registry = Registry::restore(Settings::default(), world.now, &records);
        assert_eq!(refused(world.enrol(&id, &machine(3))), "TOKEN_VOID", "after a restart");
    }
}

#[test]
fn bad_machine_of_rack_does_not_void_rack_invitation_at_once() {
    let mut world = World::new();
    world.known(&machine(1));
    let id = world.invite(|wish| wish.uses = 20);
    for number in 0..20 {
        lie(&mut world, &id, number);
    }
    certified(world.enrol(&id, &machine(3)));
}

fn refused_in(effects: &[Effect]) -> &'static str {
    let reply = effects.iter().find_map(|effect| match effect {
        Effect::Reply(_, reply) => Some(reply.clone()),
        _ => None,
    });
    refused(reply.unwrap())
}

#[test]
fn machine_that_renews_constantly_gets_few_certificates() {
    let mut world = World::new();
    let id = world.known(&machine(1));
    let mut drawn = 0_u32;
    let mut spent = |world: &mut World, renewals: u32| {
        let mut certified = 0;
        let before = world.records.len();
        for _ in 0..renewals {
            let mut key = [0xee; 32];
            key[..4].copy_from_slice(&drawn.to_be_bytes());
            drawn += 1;
            let (ask, peer) = (
                world.ask(),
                Peer { machine: id.clone(), key: machine(1).key, authority: AUTHORITY, not_after: NEVER },
            );
            let effects = world.step(Event::Renew { ask, peer, key: KeyHash(key) });
            let is_certified = |effect: &Effect| matches!(effect, Effect::Reply(_, Reply::Certify { .. }));
            certified += usize::from(effects.iter().any(is_certified));
        }
        (certified, world.records.len() - before)
    };
    let at_once = spent(&mut world, 280);
    println!("280 renewals in a second: {} certificates, {} records", at_once.0, at_once.1);
    assert_eq!(at_once, (10, 10));
    world.pass(Span::from_s(61));
    assert_eq!(spent(&mut world, 280), (2, 2), "and one more each half minute");
    world.pass(Span::from_min(60));
    assert_eq!(spent(&mut world, 1), (1, 1));
}

/// During a rotation the machine has a certificate of each authority, and a copy of its key has certificates that it
/// asked for.
#[test]
fn machine_with_removed_node_adds_no_record_when_it_returns() {
    let mut world = World::new();
    let id = world.known(&machine(1));
    let ask = world.ask();
    world.step(Event::Remove { ask, machine: "w-1".into(), what: Some(Removal::Node) });
    let (before, newest) = (world.records.len(), AuthorityHash([1; 32]));
    let hello = Hello {
        protocol: 1,
        identity: machine(1).identity,
        facts: machine(1).facts,
        plan: None,
        joined: false,
    };
    for (number, authority) in [newest, AUTHORITY, newest].into_iter().enumerate() {
        let conn = Conn(900 + u64::try_from(number).unwrap());
        let peer = Peer { machine: id.clone(), key: machine(1).key, authority, not_after: NEVER };
        let effects = world.step(Event::Arrived { conn, peer, hello: hello.clone() });
        assert_eq!(closed(&effects, conn), Some("NODE_REMOVED"));
    }
    assert_eq!(world.records.len(), before);
    assert!(world.registry.index().machine(&id).unwrap().waits_for(&newest));
}

#[test]
fn reconnecting_machine_gets_no_higher_frame_rate() {
    let mut world = World::new();
    let id = world.known(&machine(1));
    let (mut taken, seconds) = (0, 600);
    for _ in (0..seconds).step_by(2) {
        let (conn, _) = world.arrive(&id, &machine(1));
        for _ in 0..200 {
            let done = Done { id: 9, outcome: Ended::Done, tail: Tail::cut("x") };
            let effects = world.say(conn, AgentFrame::Done(done));
            taken += sent(&effects, conn).iter().filter(|it| matches!(it, ServerFrame::Ack { .. })).count();
        }
        world.pass(Span::from_s(2));
    }
    println!("{taken} frames in {seconds} s");
    assert_eq!(taken, 120 + 10 * (seconds - 2), "as many at once, and ten a second");
    world.pass(Span::from_min(1));
    let (conn, _) = world.arrive(&id, &machine(1));
    assert_eq!(closed(&world.say(conn, BEAT), conn), None, "and it is not locked out for that");
}

#[test]
fn machine_that_opens_many_sessions_is_welcomed_a_few_times() {
    let mut world = World::new();
    let id = world.known(&machine(1));
    let mut welcomes = 0;
    for _ in 0..1000 {
        let (conn, effects) = world.arrive(&id, &machine(1));
        let welcomed = sent(&effects, conn).iter().any(|frame| matches!(frame, ServerFrame::Welcome(_)));
        assert!(welcomed || closed(&effects, conn) == Some("TOO_MANY"));
        welcomes += usize::from(welcomed);
    }
    println!("1000 sessions in a second: {welcomes} welcomes");
    assert_eq!((welcomes, world.registry.session_of(&id).is_some()), (30, true), "the last one stands");
    world.now = world.now + Span::from_s(10);
    let (conn, effects) = world.arrive(&id, &machine(1));
    assert_eq!(closed(&effects, conn), None);
}
