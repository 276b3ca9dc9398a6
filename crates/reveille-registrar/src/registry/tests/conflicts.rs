//! What a machine that was invited and lies can do to the one that it lies about.

use reveille_core::model::time::Span;
use reveille_wire::agent::ServerFrame;
use reveille_wire::agent::text::Word;

use super::world::*;
use crate::registry::{Effect, Event, InvitationId, MachineId, Record, Registry, Settings, TokenHash, What};

/// Somebody claims the name of machine 1, as another host each time.
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
        // Another invitation each time: that each of them is void soon is another test's matter.
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
fn an_invitation_is_void_after_a_few_conflicts_and_stays_so_over_a_restart() {
    let mut world = World::new();
    world.known(&machine(1));
    let id = world.invite(|_| {});
    let refusals: Vec<&str> = (0..20).map(|number| refused_in(&lie(&mut world, &id, number))).collect();
    let conflicts = refusals.iter().filter(|code| **code == "IDENTITY_CONFLICT").count();
    println!("{conflicts} of 20 lies were judged");
    assert!((1..=5).contains(&conflicts), "{refusals:?}");
    assert!(refusals.ends_with(&["TOKEN_VOID"]), "{refusals:?}");
    assert_eq!(refused(world.enrol(&id, &machine(3))), "TOKEN_VOID", "also for whoever does not lie");
    let mut checkpoint = world.registry.book().checkpoint();
    for records in [world.records.clone(), std::mem::take(&mut checkpoint)] {
        world.registry = Registry::restore(Settings::default(), world.now, &records);
        assert_eq!(refused(world.enrol(&id, &machine(3))), "TOKEN_VOID", "after a restart");
    }
}

#[test]
fn one_bad_machine_of_a_rack_does_not_void_the_racks_invitation_at_once() {
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
