//! Which machines are admitted.

use reveille_core::model::time::Span;
use reveille_wire::agent::frame::Heartbeat;
use reveille_wire::agent::{AgentFrame, Reason, ServerFrame};

use super::world::*;
use crate::registry::{
    Ask, AuthorityHash, Effect, Event, KeyHash, NodeIds, NodeSaid, Peer, Reimage, Removal, Reply, What,
};

#[test]
fn token_expiry_is_told_only_to_holder_of_its_secret() {
    let mut world = World::new();
    let id = world.invite(|_| {});
    let none = crate::registry::InvitationId::new("none");
    assert_eq!(refused(world.enrol(&none, &machine(1))), "TOKEN_UNKNOWN");
    assert_eq!(refused(world.enrol_with(&id, SECRET + 1, &machine(1))), "TOKEN_UNKNOWN");
    world.pass(Span::from_min(61));
    assert_eq!(refused(world.enrol(&id, &machine(1))), "TOKEN_EXPIRED");
    assert_eq!(refused(world.enrol_with(&id, SECRET + 1, &machine(1))), "TOKEN_UNKNOWN");
    world.pass(Span::from_min(8 * 24 * 60));
    assert_eq!(refused(world.enrol(&id, &machine(1))), "TOKEN_UNKNOWN", "after a week it is forgotten");
}

#[test]
fn invitation_is_used_up_to_its_limit_and_lost_answer_uses_none() {
    let mut world = World::new();
    let id = world.invite(|wish| wish.uses = 2);
    let first = certified(world.enrol(&id, &machine(1)));
    assert_eq!(certified(world.enrol(&id, &machine(1))), first, "the answer was lost: the same again");
    certified(world.enrol(&id, &machine(2)));
    assert_eq!(refused(world.enrol(&id, &machine(3))), "TOKEN_USED_UP");
    assert_eq!(certified(world.enrol(&id, &machine(1))), first, "also when it is used up");
    let mut cloned = machine(3);
    cloned.key = machine(1).key;
    assert_eq!(
        refused(world.enrol(&id, &cloned)),
        "TOKEN_USED_UP",
        "a copied key of another machine is not that one"
    );
}

#[test]
fn lost_answer_is_repeated_after_invitation_expiry() {
    let mut world = World::new();
    let invited = world.invite(|_| {});
    let id = certified(world.enrol(&invited, &machine(1)));
    // The record is durable, and the answer is not on its way: the server was down for longer than the invitation lasts.
    world.now = world.now + Span::from_min(120);
    world.restart();
    assert_eq!(certified(world.enrol(&invited, &machine(1))), id);
    let mut other = machine(1);
    other.key = KeyHash([99; 32]);
    assert_eq!(refused(world.enrol(&invited, &other)), "TOKEN_EXPIRED", "another key");
    assert_eq!(refused(world.enrol(&invited, &machine(2))), "TOKEN_EXPIRED", "another machine");
}

#[test]
fn invitation_made_by_fast_clock_keeps_its_stated_lifetime() {
    let mut world = World::new();
    world.now = world.now + Span::from_min(180 * 24 * 60);
    let id = world.invite(|_| {});
    world.now = world.now - Span::from_min(180 * 24 * 60);
    world.pass(Span::from_s(1));
    // The server is restarted, too.
    let records = world.records.clone();
    let until = |records: &[crate::registry::Record]| {
        let mut index = crate::registry::Index::default();
        records.iter().for_each(|record| index.apply(record));
        index.invitation(&id).unwrap().ends(world.now)
    };
    assert_eq!(until(&records), world.now + Span::from_min(60));
    assert_eq!(world.records.len(), records.len());
    world.pass(Span::from_s(1));
    assert_eq!(world.records.len(), records.len(), "once");
    world.pass(Span::from_min(60));
    assert_eq!(refused(world.enrol(&id, &machine(1))), "TOKEN_EXPIRED");
}

#[test]
fn a_clock_that_was_behind_for_a_moment_ends_no_invitation() {
    let mut world = World::new();
    world.now = world.now + Span::from_min(365 * 24 * 60);
    let (right, behind) = (world.now, Span::from_min(60 * 24 * 60));
    let id = world.invite(|wish| wish.ttl = Span::from_min(30 * 24 * 60));
    // The server starts with a clock that is behind, and the clock is set a minute later.
    world.now = right - behind;
    world.restart();
    world.step(Event::Tick);
    certified(world.branch().enrol(&id, &machine(1)));
    world.now = right + Span::from_min(1);
    world.step(Event::ClockSet { by: behind });
    world.step(Event::Tick);
    world.restart();
    certified(world.branch().enrol(&id, &machine(1)));
    world.pass(Span::from_min(30 * 24 * 60));
    assert_eq!(refused(world.enrol(&id, &machine(1))), "TOKEN_EXPIRED", "and it lasts no longer for that");
}

#[test]
fn an_invitation_for_one_machine_is_foreign_to_every_other() {
    let mut own = machine(1);
    own.identity.machine_id = Some("5d0f6f2a9c3b4e1f8a7d6c5b4a392817".into());
    own.identity.system_uuid = Some("4C4C4544-0042-4B10-8058-C4C04F595631".into());
    for bound in ["i-1", "5d0f6f2a9c3b4e1f8a7d6c5b4a392817", "4c4c4544-0042-4b10-8058-c4c04f595631", "W-1"] {
        let mut world = World::new();
        let id = world.invite(|wish| wish.machine = Some(bound.into()));
        assert_eq!(refused(world.enrol(&id, &machine(2))), "TOKEN_FOREIGN", "{bound}");
        certified(world.enrol(&id, &own));
    }
}

#[test]
fn node_invitation_refuses_other_node_with_that_name_as_id() {
    let lies: [(fn(&mut Claimed), &str); 3] = [
        (|who| who.identity.machine_id = Some("w-1".into()), "BAD_FRAME"),
        (|who| who.identity.system_uuid = Some("w-1".into()), "BAD_FRAME"),
        (|who| who.identity.instance_id = Some("w-1".into()), "TOKEN_FOREIGN"),
    ];
    for (lie, code) in lies {
        let mut world = World::new();
        let id = world.invite(|wish| wish.machine = Some("w-1".into()));
        let mut other = machine(2);
        lie(&mut other);
        // The machine's own Node, whose agent has not come yet.
        let node =
            NodeIds { name: "w-2".into(), instance: None, system_uuid: other.identity.system_uuid.clone() };
        let reply = world.enrol_beside(&id, &other, Some(NodeSaid::Present(vec![node])));
        assert_eq!(refused(reply), code, "{:?}", other.identity);
        certified(world.enrol(&id, &machine(1)));
    }
}

#[test]
fn shared_id_key_or_name_is_reported_and_second_is_refused() {
    let shares: [(&str, fn(&mut Claimed)); 5] = [
        ("instance id", |who| who.identity.instance_id = machine(1).identity.instance_id),
        ("machine id", |who| who.identity.machine_id = machine(1).identity.machine_id),
        ("system UUID", |who| who.identity.system_uuid = machine(1).identity.system_uuid),
        ("key", |who| who.key = machine(1).key),
        ("node name", |who| who.facts.hostname = machine(1).facts.hostname),
    ];
    for (part, share) in shares {
        let mut world = World::new();
        let first = world.known(&machine(1));
        let (conn, _) = world.arrive(&first, &machine(1));
        let mut second = machine(2);
        share(&mut second);
        let id = world.invite(|_| {});
        let ask = world.ask();
        let effects = world.step(Event::Enrol {
            ask,
            id: id.clone(),
            hash: crate::registry::TokenHash([SECRET; 32]),
            identity: second.identity.clone(),
            facts: second.facts.clone(),
            node_name: None,
            node: None,
            key: second.key,
            fresh: crate::registry::MachineId::new("m-x"),
        });
        let reply = effects.iter().find_map(|effect| match effect {
            crate::registry::Effect::Reply(_, Reply::Refused(refused)) => Some(&refused.reason),
            _ => None,
        });
        let Some(Reason::IdentityConflict { part: found, facts }) = reply else {
            panic!("{part}: {reply:?}")
        };
        assert_eq!((found.name(), &**facts), (part, &machine(1).facts));
        assert!(told(&effects).iter().any(|what| matches!(what, What::Rival(..))), "who listens hears of it");
        let warned = sent(&effects, conn).into_iter().any(|frame| matches!(frame, ServerFrame::Rival(_)));
        assert!(warned, "the first is told of the second");
        assert_eq!(world.registry.index().counts().1, 1);
    }
}

#[test]
fn rebuilt_machine_needs_own_invitation_and_silent_predecessor() {
    let mut world = World::new();
    let first = world.known(&machine(1));
    let mut rebuilt = machine(1);
    rebuilt.key = KeyHash([9; 32]);
    rebuilt.identity.machine_id = Some(MID[9].into());
    let plain = world.invite(|_| {});
    assert_eq!(refused(world.enrol(&plain, &rebuilt)), "IDENTITY_CONFLICT");
    let id = world.invite(REBUILT);
    assert_eq!(
        refused(world.enrol(&id, &rebuilt)),
        "IDENTITY_CONFLICT",
        "the old one was heard a moment ago"
    );
    assert_eq!(refused(world.enrol(&id, &machine(2))), "TOKEN_FOREIGN");
    world.pass(Span::from_min(11));
    let (conn, _) = world.arrive(&first, &machine(1));
    assert_eq!(refused(world.enrol(&id, &rebuilt)), "IDENTITY_CONFLICT", "the old one is there");
    world.step(Event::Gone(conn));
    world.pass(Span::from_min(11));
    assert_eq!(certified(world.enrol(&id, &rebuilt)), first, "its record is the same");
    let (conn, effects) = world.arrive(&first, &machine(1));
    assert_eq!(closed(&effects, conn), Some("CERTIFICATE_REVOKED"), "the old key is void");
    let (conn, effects) = world.arrive(&first, &rebuilt);
    assert_eq!(closed(&effects, conn), None);
}

#[test]
fn a_person_may_say_that_the_old_one_is_no_more() {
    let mut world = World::new();
    let first = world.known(&machine(1));
    let (conn, _) = world.arrive(&first, &machine(1));
    let id = world.invite(|wish| {
        REBUILT(wish);
        wish.reimage = Some(Reimage::AtOnce);
    });
    let mut rebuilt = machine(1);
    rebuilt.key = KeyHash([9; 32]);
    assert_eq!(certified(world.enrol(&id, &rebuilt)), first);
    assert_eq!(world.registry.session_of(&first), None, "the old session was ended");
    assert!(
        world
            .say(conn, AgentFrame::Heartbeat(Heartbeat { stage: None, joined: false, account: None }))
            .is_empty()
    );
}

#[test]
fn foreign_certificate_or_mismatched_key_is_refused() {
    let mut world = World::new();
    let (first, second) = (world.known(&machine(1)), world.known(&machine(2)));
    let (conn, effects) = world.arrive_with(&first, machine(2).key, hello(&machine(1)));
    assert_eq!(closed(&effects, conn), Some("CERTIFICATE_REVOKED"));
    let (conn, effects) = world.arrive(&second, &Claimed { key: machine(2).key, ..machine(1) });
    assert_eq!(closed(&effects, conn), Some("IDENTITY_CONFLICT"), "the key is right, the machine is another");
    let (conn, effects) = world.arrive(&crate::registry::MachineId::new("m-none"), &machine(3));
    assert_eq!(closed(&effects, conn), Some("CERTIFICATE_UNKNOWN"));
}

#[test]
fn newer_connection_of_same_boot_wins_and_other_boot_waits() {
    let mut world = World::new();
    let id = world.known(&machine(1));
    let (first, _) = world.arrive(&id, &machine(1));
    let (second, effects) = world.arrive(&id, &machine(1));
    assert_eq!((closed(&effects, first), closed(&effects, second)), (Some("REPLACED"), None));
    let mut rebooted = machine(1);
    rebooted.identity.boot_id = "boot-x".into();
    let (third, effects) = world.arrive(&id, &rebooted);
    assert_eq!(closed(&effects, third), Some("IDENTITY_CONFLICT"));
    assert_eq!(closed(&effects, second), None, "the one that is there stays");
    world.now = world.now + Span::from_s(31);
    let (fourth, effects) = world.arrive(&id, &rebooted);
    assert_eq!((closed(&effects, second), closed(&effects, fourth)), (Some("REPLACED"), None));
}

#[test]
fn next_key_replaces_previous_key_at_its_first_use() {
    let mut world = World::new();
    let id = world.known(&machine(1));
    let next = KeyHash([8; 32]);
    let (ask, peer) = (
        world.ask(),
        Peer { machine: id.clone(), key: machine(1).key, authority: AUTHORITY, not_after: NEVER },
    );
    world.step(Event::Renew { ask, peer: peer.clone(), key: next });
    let (conn, effects) = world.arrive(&id, &machine(1));
    assert_eq!(closed(&effects, conn), None, "the answer may have been lost: the old key still counts");
    let (conn, effects) = world.arrive_with(&id, next, hello(&machine(1)));
    assert_eq!(closed(&effects, conn), None);
    let (conn, effects) = world.arrive(&id, &machine(1));
    assert_eq!(closed(&effects, conn), Some("CERTIFICATE_REVOKED"));
    let other = world.known(&machine(2));
    let (ask, peer) =
        (world.ask(), Peer { machine: other, key: machine(2).key, authority: AUTHORITY, not_after: NEVER });
    let effects = world.step(Event::Renew { ask, peer, key: next });
    assert!(effects.iter().all(|effect| !matches!(effect, Effect::Reply(_, Reply::Certify { .. }))));
}

#[test]
fn hello_with_incomplete_identity_is_refused_with_retry() {
    let leaving_out: [(fn(&mut reveille_wire::agent::Identity), Option<&str>); 5] = [
        (|own| own.system_uuid = None, Some("IDENTITY_INCOMPLETE")),
        (|own| (own.system_uuid, own.instance_id) = (None, None), Some("IDENTITY_INCOMPLETE")),
        // Firmware without a UUID reports a placeholder, which identifies no machine.
        (
            |own| own.system_uuid = Some("00000000-0000-0000-0000-000000000000".into()),
            Some("IDENTITY_INCOMPLETE"),
        ),
        // As after a boot while the cloud's metadata service does not answer: a copy of the disk has no such UUID.
        (|own| own.instance_id = None, None),
        (|own| own.machine_id = None, None),
    ];
    for (leave_out, wanted) in leaving_out {
        let mut world = World::new();
        let id = world.known(&machine(1));
        let mut who = machine(1);
        leave_out(&mut who.identity);
        let (conn, effects) = world.arrive(&id, &who);
        assert_eq!(closed(&effects, conn), wanted, "{:?}", who.identity);
        let again =
            effects.iter().any(|effect| matches!(effect, Effect::Close(_, it) if it.retry_after_s.is_some()));
        assert_eq!(again, wanted.is_some(), "it is to come again, and say more");
        let (conn, effects) = world.arrive(&id, &machine(1));
        assert_eq!(closed(&effects, conn), None);
    }
    // A machine without a UUID may not leave other ids out.
    let (mut world, mut who) = (World::new(), machine(1));
    who.identity.system_uuid = None;
    let id = world.known(&who);
    who.identity.instance_id = None;
    let (conn, effects) = world.arrive(&id, &who);
    assert_eq!(closed(&effects, conn), Some("IDENTITY_INCOMPLETE"));
    // A machine may send an id that its record lacks.
    let (conn, effects) = world.arrive(&id, &machine(1));
    assert_eq!(closed(&effects, conn), None);
}

#[test]
fn a_renewal_takes_no_key_away_and_a_welcome_takes_all_others() {
    let mut world = World::new();
    let id = world.known(&machine(1));
    let renew = |world: &mut World, with: KeyHash, key: u8| {
        let (ask, peer) =
            (world.ask(), Peer { machine: id.clone(), key: with, authority: AUTHORITY, not_after: NEVER });
        let effects = world.step(Event::Renew { ask, peer, key: KeyHash([key; 32]) });
        assert!(matches!(effects.last(), Some(Effect::Reply(_, Reply::Certify { .. }))), "{effects:?}");
    };
    // The machine's Node stays removed for months: the machine renews with its last certificate, and no session of it is
    // welcomed.
    world.step(Event::Remove { ask: Ask(0), machine: "w-1".into(), what: Some(Removal::Node) });
    let mut with = machine(1).key;
    for number in 20..30 {
        world.pass(Span::from_min(24 * 60));
        renew(&mut world, with, number);
        // An answer was lost: the machine asks for the same key again, and the key before still counts.
        renew(&mut world, with, number);
        with = KeyHash([number; 32]);
    }
    world.step(Event::Remove { ask: Ask(0), machine: "w-1".into(), what: None });
    world.restart();
    // A client with a copy of the first key, which asks for more certificates and is not the machine.
    for number in 40..42 {
        renew(&mut world, machine(1).key, number);
        let mut copy = hello(&machine(1));
        copy.identity.system_uuid = Some("another".into());
        let (conn, effects) = world.arrive_with(&id, KeyHash([number; 32]), copy);
        assert_eq!(closed(&effects, conn), Some("IDENTITY_CONFLICT"));
    }
    let (conn, effects) = world.arrive_with(&id, with, hello(&machine(1)));
    assert_eq!(closed(&effects, conn), None, "the machine itself");
    for key in [machine(1).key, KeyHash([28; 32]), KeyHash([41; 32])] {
        let (conn, effects) = world.arrive_with(&id, key, hello(&machine(1)));
        assert_eq!(closed(&effects, conn), Some("CERTIFICATE_REVOKED"));
    }
}

#[test]
fn removed_machine_or_node_stays_away_until_readmitted() {
    for (what, code) in [(Removal::Node, "NODE_REMOVED"), (Removal::Machine, "MACHINE_REMOVED")] {
        let mut world = World::new();
        let id = world.known(&machine(1));
        let (conn, _) = world.arrive(&id, &machine(1));
        let ask = world.ask();
        let effects = world.step(Event::Remove { ask, machine: "w-1".into(), what: Some(what) });
        assert_eq!(closed(&effects, conn), Some(code), "at once");
        let (conn, effects) = world.arrive(&id, &machine(1));
        assert_eq!(closed(&effects, conn), Some(code), "and when it comes again");
        let ask = world.ask();
        world.step(Event::Remove { ask, machine: id.as_str().into(), what: None });
        let (conn, effects) = world.arrive(&id, &machine(1));
        assert_eq!(closed(&effects, conn), None);
    }
}

#[test]
fn machine_with_only_its_node_removed_renews_its_certificate() {
    for (what, wanted) in [(Removal::Node, None), (Removal::Machine, Some("MACHINE_REMOVED"))] {
        let mut world = World::new();
        let id = world.known(&machine(1));
        let ask = world.ask();
        world.step(Event::Remove { ask, machine: "w-1".into(), what: Some(what) });
        let (ask, peer) =
            (world.ask(), Peer { machine: id, key: machine(1).key, authority: AUTHORITY, not_after: NEVER });
        let effects = world.step(Event::Renew { ask, peer, key: KeyHash([9; 32]) });
        let refused = match effects.last() {
            Some(Effect::Reply(_, Reply::Certify { .. })) => None,
            Some(Effect::Reply(_, Reply::Refused(refused))) => Some(refused.reason.code()),
            other => panic!("{other:?}"),
        };
        assert_eq!(refused, wanted);
    }
}

fn hello(who: &Claimed) -> reveille_wire::agent::frame::Hello {
    reveille_wire::agent::frame::Hello {
        protocol: 1,
        identity: who.identity.clone(),
        facts: who.facts.clone(),
        plan: None,
        joined: false,
    }
}

/// A client that was checked before the retirement and has waited since: for a body, or for the first frame of a socket.
#[test]
fn certificate_of_retired_authority_is_refused_whenever_checked() {
    let mut world = World::new();
    let id = world.known(&machine(1));
    let other = AuthorityHash([9; 32]);
    let peer = |authority| Peer { machine: id.clone(), key: machine(1).key, authority, not_after: NEVER };
    world.step(Event::Retired(vec![AUTHORITY]));
    let (conn, effects) = world.arrive(&id, &machine(1));
    assert_eq!(closed(&effects, conn), Some("CERTIFICATE_UNKNOWN"));
    let ask = world.ask();
    let effects = world.step(Event::Renew { ask, peer: peer(AUTHORITY), key: KeyHash([8; 32]) });
    assert!(
        matches!(&effects[..], [Effect::Reply(_, Reply::Refused(refused))]
        if refused.reason.code() == "CERTIFICATE_UNKNOWN"),
        "{effects:?}"
    );
    assert_eq!(world.registry.stands(&peer(other)), Ok(()), "and its next certificate counts");
}

#[test]
fn expired_invitation_stays_expired_after_clock_change() {
    let days = Span::from_min(3 * 24 * 60);
    // The invitation was made while the clock was ahead, and its date has come since.
    let mut world = World::new();
    world.now = world.now + days;
    let id = world.invite(|_| {});
    world.now = world.now - days;
    world.step(Event::ClockSet { by: Span::from_ms(-days.ms) });
    world.step(Event::Tick);
    certified(world.branch().enrol(&id, &machine(1)));
    world.pass(Span::from_min(60));
    assert_eq!(refused(world.enrol(&id, &machine(1))), "TOKEN_EXPIRED");
    let mut rebuilt = world.branch();
    rebuilt.restart();
    for mut world in [world, rebuilt] {
        for _ in 0..24 * 3 {
            world.pass(Span::from_min(60));
            assert_eq!(refused(world.enrol(&id, &machine(1))), "TOKEN_EXPIRED");
        }
    }
    // The invitation had its lifetime while no server ran, and the next server starts just before its date.
    let mut world = World::new();
    world.now = world.now + days;
    let id = world.invite(|_| {});
    world.now = world.now - days;
    world.step(Event::Tick);
    world.now = world.now + days - Span::from_s(5);
    world.restart();
    for _ in 0..10 {
        world.pass(Span::from_s(1));
        assert_eq!(refused(world.enrol(&id, &machine(1))), "TOKEN_EXPIRED");
    }
    // The clock is set back behind the end of the invitation.
    let mut world = World::new();
    let id = world.invite(|_| {});
    world.pass(Span::from_min(61));
    let by = Span::from_min(-30);
    world.now = world.now + by;
    world.step(Event::ClockSet { by });
    world.step(Event::Tick);
    assert_eq!(refused(world.enrol(&id, &machine(1))), "TOKEN_EXPIRED");
}

#[test]
fn a_clock_that_was_ahead_for_a_moment_ends_no_invitation() {
    let ahead = Span::from_min(30 * 24 * 60);
    let back = Span::from_ms(-ahead.ms);
    let mut world = World::new();
    let id = world.invite(|_| {});
    world.now = world.now + ahead;
    world.step(Event::ClockSet { by: ahead });
    world.pass(Span::from_s(1));
    assert_eq!(refused(world.enrol(&id, &machine(1))), "TOKEN_EXPIRED", "as long as it is ahead");
    world.now = world.now + back;
    world.step(Event::ClockSet { by: back });
    world.step(Event::Tick);
    certified(world.branch().enrol(&id, &machine(1)));
    // The server starts with a clock that is ahead.
    let mut rebuilt = world.branch();
    rebuilt.now = rebuilt.now + Span::from_min(61);
    rebuilt.restart();
    rebuilt.pass(Span::from_s(1));
    assert_eq!(refused(rebuilt.enrol(&id, &machine(1))), "TOKEN_EXPIRED");
    let back = Span::from_min(-60);
    rebuilt.now = rebuilt.now + back;
    rebuilt.step(Event::ClockSet { by: back });
    rebuilt.step(Event::Tick);
    certified(rebuilt.enrol(&id, &machine(1)));
    world.pass(Span::from_min(60));
    assert_eq!(refused(world.enrol(&id, &machine(1))), "TOKEN_EXPIRED", "and it lasts no longer for that");
    world.pass(world.registry.settings().invitation_kept);
    assert_eq!(refused(world.enrol(&id, &machine(1))), "TOKEN_UNKNOWN", "forgotten in the end");
}
