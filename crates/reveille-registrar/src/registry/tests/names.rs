//! A machine's name, and the address at which it says that it answers, compared with the names and addresses of others.

use reveille_wire::agent::ServerFrame;

use super::world::{Claimed, MID, UUID, World, certified, machine, refused, sent};
use crate::registry::MachineId;

/// A machine with this name that knows no cloud.
fn called(name: &str) -> Claimed {
    let mut who = machine(9);
    who.identity.instance_id = None;
    who.facts.hostname = name.into();
    who
}

#[test]
fn machine_without_instance_id_cannot_be_named_as_an_instance() {
    let ids = [
        "0f3a9c1e-8d2b-4c5d-9e6f-7a8b9c0d1e2f",
        "0F3A9C1E-8D2B-4C5D-9E6F-7A8B9C0D1E2F",
        "0f3a9c1e8d2b4c5d9e6f7a8b9c0d1e2f",
        "i-0abcdef1234567890",
        "i-0abcdef1",
        "i-0abcdef1234567890.eu-central-1.compute.internal",
    ];
    for id in ids {
        let mut world = World::new();
        let invited = world.invite(|wish| wish.machine = Some(id.into()));
        let refusal = refused(world.enrol(&invited, &called(id)));
        assert!(["BAD_FRAME", "TOKEN_FOREIGN"].contains(&refusal), "{id}: {refusal}");
        assert_eq!(world.registry.index().counts().1, 0, "{id}");
        let mut owner = called(id);
        owner.identity.instance_id = id.split('.').next().map(Into::into);
        let invited = world.invite(|_| {});
        certified(world.enrol(&invited, &owner));
    }
    for name in ["i-7", "web-0abcdef1", "0f3a9c1e", "i-am-a-long-name.example"] {
        let mut world = World::new();
        let invited = world.invite(|_| {});
        certified(world.enrol(&invited, &called(name)));
    }
}

#[test]
fn machine_id_cannot_be_node_name_in_another_roster() {
    let mut world = World::new();
    world.known(&machine(1));
    for name in ["i-1", MID[1], UUID[1]] {
        let invited = world.invite(|wish| wish.roster = "staging".into());
        assert_eq!(refused(world.enrol(&invited, &called(name))), "IDENTITY_CONFLICT", "{name}");
    }
    let invited = world.invite(|wish| wish.roster = "staging".into());
    certified(world.enrol(&invited, &called("w-1")));
}

/// What the second of two machines is told about the address of the first.
fn told_of(answers_at: &str, from_the_start: bool) -> Option<String> {
    let mut world = World::new();
    let mut first = machine(1);
    if from_the_start {
        first.facts.answers_at = Some(answers_at.into());
    }
    let ids: Vec<MachineId> = [&first, &machine(2)].map(|who| world.known(who)).into();
    first.facts.answers_at = Some(answers_at.into());
    world.arrive(&ids[0], &first);
    let (conn, effects) = world.arrive(&ids[1], &machine(2));
    let told = sent(&effects, conn).into_iter().find_map(|frame| match frame {
        ServerFrame::Peers { peers } => peers.first().cloned(),
        _ => None,
    });
    told.unwrap().answers_at.map(|at| at.to_string())
}

#[test]
fn peer_with_impossible_address_is_not_passed_on() {
    let none_of_a_peer = [
        "169.254.169.254:80",
        "[fe80::1]:9465",
        "127.0.0.1:22",
        "127.8.9.10:22",
        "[::1]:22",
        "0.0.0.0:9465",
        "0.1.2.3:9465",
        "[::]:9465",
        "224.0.0.1:9465",
        "[ff02::1]:9465",
        "255.255.255.255:9465",
        "[::ffff:169.254.169.254]:80",
        "[::ffff:127.0.0.1]:22",
        "[64:ff9b::a9fe:a9fe]:80",
        "100.100.100.200:80",
        "168.63.129.16:80",
        "192.0.0.192:80",
        "[fd00:ec2::254]:80",
        "[fd20:ce::254]:80",
        "10.0.0.2:0",
        "metadata.google.internal:80",
        "10.0.0.2",
        "",
    ];
    for at in none_of_a_peer {
        for from_the_start in [false, true] {
            assert_eq!(told_of(at, from_the_start), None, "{at}");
        }
    }
    for at in
        ["10.0.0.2:9465", "192.168.1.2:9465", "203.0.113.7:9465", "[2001:db8::7]:9465", "[fd12::7]:9465"]
    {
        assert_eq!(told_of(at, false).as_deref(), Some(at));
    }
}
