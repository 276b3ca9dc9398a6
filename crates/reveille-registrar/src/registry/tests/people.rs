//! What operators ask for, by the names that they use for machines.

use reveille_core::model::time::Span;

use super::world::*;
use crate::registry::{Ask, Effect, Event, InvitationId, KeyHash, Registry, Removal, Reply, Settings};

fn remove(world: &mut World, name: &str, what: Option<Removal>) -> Reply {
    let ask = world.ask();
    let effects = world.step(Event::Remove { ask, machine: name.into(), what });
    answered(effects, ask)
}

fn revoke(world: &mut World, id: &InvitationId) -> Reply {
    let ask = world.ask();
    let effects = world.step(Event::Revoke { ask, id: id.clone() });
    answered(effects, ask)
}

fn answered(effects: Vec<Effect>, ask: Ask) -> Reply {
    let replied = effects.into_iter().find_map(|effect| match effect {
        Effect::Reply(to, reply) if to == ask => Some(reply),
        _ => None,
    });
    replied.expect("everyone is answered")
}

fn denied(reply: Reply) -> String {
    match reply {
        Reply::Denied(denied) => denied.to_string(),
        other => panic!("{other:?}"),
    }
}

#[test]
fn removed_machine_is_found_by_each_of_its_names() {
    for name in ["record", "i-1", MID[1], UUID[1], "W-1"] {
        let mut world = World::new();
        let id = world.known(&machine(1));
        let name = if name == "record" { id.as_str() } else { name };
        for what in [Some(Removal::Machine), None, Some(Removal::Machine), Some(Removal::Node), None] {
            assert_eq!(remove(&mut world, name, what), Reply::Done(id.clone()), "{name}: {what:?}");
            assert_eq!(world.registry.index().machine(&id).unwrap().removed, what);
        }
    }
}

#[test]
fn unknown_name_is_explained_and_ambiguous_name_lists_records() {
    let mut world = World::new();
    let unknown =
        "No machine is known as \"w-99\". Use its record (m-...), instance id, machine id or Node name";
    for what in [Some(Removal::Machine), Some(Removal::Node), None] {
        assert_eq!(denied(remove(&mut world, "w-99", what)), unknown);
    }
    let mut gone = Vec::new();
    for number in 1..=2 {
        let mut who = machine(number);
        who.facts.hostname = "w-7".into();
        gone.push(world.known(&who));
        assert!(matches!(remove(&mut world, "w-7", Some(Removal::Machine)), Reply::Done(_)));
    }
    let text = denied(remove(&mut world, "w-7", None));
    assert!(gone.iter().all(|id| text.contains(id.as_str())) && text.contains("2 machines"), "{text}");
    let mut third = machine(3);
    third.facts.hostname = "w-7".into();
    let third = world.known(&third);
    assert_eq!(
        remove(&mut world, "w-7", Some(Removal::Machine)),
        Reply::Done(third),
        "the one that is not removed yet is the one that can be"
    );
}

#[test]
fn readmission_refusal_names_machine_that_took_the_place() {
    let mut world = World::new();
    let first = world.known(&machine(1));
    remove(&mut world, "w-1", Some(Removal::Machine));
    let mut second = machine(2);
    second.facts.hostname = "w-1".into();
    let second = world.known(&second);
    let text = denied(remove(&mut world, first.as_str(), None));
    assert!(text.contains("node name") && text.contains(second.as_str()), "{text}");
}

#[test]
fn revoked_invitation_stays_revoked_after_restart() {
    let mut world = World::new();
    let id = world.invite(|wish| wish.uses = 3);
    let first = certified(world.enrol(&id, &machine(1)));
    for _ in 0..2 {
        let Reply::Revoked(let_in) = revoke(&mut world, &id) else { panic!("not revoked") };
        assert_eq!(let_in.iter().map(|named| &named.machine).collect::<Vec<_>>(), [&first]);
    }
    for records in [world.records.clone(), world.registry.index().checkpoint()] {
        world.registry = Registry::restore(Settings::default(), world.now, &records);
        assert_eq!(refused(world.enrol(&id, &machine(2))), "TOKEN_REVOKED");
        assert_eq!(
            refused(world.enrol(&id, &machine(1))),
            "TOKEN_REVOKED",
            "not even for an answer that was lost"
        );
        assert_eq!(
            refused(world.enrol_with(&id, SECRET + 1, &machine(2))),
            "TOKEN_UNKNOWN",
            "a guess learns nothing"
        );
    }
    let (conn, effects) = world.arrive(&first, &machine(1));
    assert_eq!(closed(&effects, conn), None, "who was let in stays");
    assert!(denied(revoke(&mut world, &InvitationId::new("none"))).contains("--list"));
}

#[test]
fn removed_machine_needs_invitation_that_names_it() {
    let shares: [(&str, fn(&mut Claimed)); 4] = [
        ("instance id", |who| who.identity.instance_id = machine(1).identity.instance_id),
        ("machine id", |who| who.identity.machine_id = Some(MID[1].to_uppercase().as_str().into())),
        ("system UUID as instance id", |who| who.identity.instance_id = machine(1).identity.system_uuid),
        ("all of it, its key, too", |who| *who = machine(1)),
    ];
    for (part, share) in shares {
        let mut world = World::new();
        let first = world.known(&machine(1));
        remove(&mut world, "w-1", Some(Removal::Machine));
        let mut again = machine(2);
        share(&mut again);
        let plain = world.invite(|wish| wish.uses = 20);
        for _ in 0..30 {
            assert_eq!(refused(world.enrol(&plain, &again)), "MACHINE_REMOVED", "{part}");
        }
        again.facts.hostname = "w-2".into();
        let for_another = world.invite(|wish| wish.machine = Some("w-2".into()));
        assert_eq!(refused(world.enrol(&for_another, &again)), "MACHINE_REMOVED", "{part}");
        let mut copy = machine(2);
        copy.key = machine(1).key;
        assert_eq!(refused(world.enrol(&plain, &copy)), "MACHINE_REMOVED", "its key on another machine");
        certified(world.enrol(&plain, &machine(3)));
        for bound in [first.as_str(), "i-1", "w-1"] {
            let mut world = world.branch();
            let named = world.invite(|wish| wish.machine = Some(bound.into()));
            assert_eq!(certified(world.enrol(&named, &again)), first, "{part}, {bound}: its own record");
            assert_eq!(world.registry.index().machine(&first).unwrap().removed, None);
        }
    }
}

#[test]
fn readmitted_machine_needs_no_invitation_and_its_name_was_free() {
    let mut world = World::new();
    let first = world.known(&machine(1));
    remove(&mut world, "w-1", Some(Removal::Machine));
    let mut honest = machine(2);
    honest.facts.hostname = "w-1".into();
    let mut other = world.branch();
    let second = other.known(&honest);
    assert_ne!(second, first, "who is only called alike is another machine, with a record of its own");
    remove(&mut world, "w-1", None);
    let (conn, effects) = world.arrive(&first, &machine(1));
    assert_eq!(closed(&effects, conn), None);
}

#[test]
fn rebuilt_machine_cannot_carry_id_of_removed_machine() {
    let mut world = World::new();
    world.known(&machine(1));
    world.known(&machine(2));
    remove(&mut world, "w-2", Some(Removal::Machine));
    let mut rebuilt = machine(1);
    rebuilt.key = KeyHash([9; 32]);
    rebuilt.identity.machine_id = machine(2).identity.machine_id;
    let id = world.invite(|wish| {
        REBUILT(wish);
        wish.reimage = Some(crate::registry::Reimage::AtOnce);
    });
    assert_eq!(refused(world.enrol(&id, &rebuilt)), "MACHINE_REMOVED");
}

#[test]
fn early_rebuilt_machine_is_told_to_wait_and_may_retry_often() {
    let mut world = World::new();
    let first = world.known(&machine(1));
    let id = world.invite(REBUILT);
    let mut rebuilt = machine(1);
    rebuilt.key = KeyHash([9; 32]);
    for passed_s in 1..=20 {
        world.now = world.now + Span::from_s(1);
        let Reply::Refused(refused) = world.enrol(&id, &rebuilt) else { panic!("let in") };
        assert_eq!(refused.reason.code(), "IDENTITY_CONFLICT");
        assert!(refused.says.contains("invitation is right"), "{refused}");
        assert!(refused.says.contains(&format!("heard {} ago", Span::from_s(passed_s))), "{refused}");
        assert!(refused.next.contains("10 min") && refused.next.contains("--at-once"), "{refused}");
        assert_eq!(refused.retry_after_s, Some(60));
    }
    world.pass(Span::from_s(570));
    let Reply::Refused(refused) = world.enrol(&id, &rebuilt) else { panic!("let in") };
    assert_eq!(refused.retry_after_s, Some(10), "and when to come again");
    world.pass(Span::from_s(10));
    assert_eq!(certified(world.enrol(&id, &rebuilt)), first);
}

#[test]
fn that_an_invitation_is_used_up_or_void_is_said_once() {
    let said = |effects: &[Effect]| {
        let over = effects.iter().filter_map(|effect| match effect {
            Effect::InvitationOver(over) => Some((over.uses, over.conflicts)),
            _ => None,
        });
        over.collect::<Vec<_>>()
    };
    let mut world = World::new();
    let id = world.invite(|wish| wish.uses = 2);
    let all: Vec<_> =
        [1, 2, 2, 3].into_iter().flat_map(|number| said(&world.enrolling(&id, &machine(number)))).collect();
    assert_eq!(all, [(2, None)]);
    let id = world.invite(|_| {});
    let mut liar = machine(9);
    liar.facts.hostname = "w-1".into();
    let all: Vec<_> = (0..9).flat_map(|_| said(&world.enrolling(&id, &liar))).collect();
    assert_eq!(all, [(0, Some(5))]);
}
