//! What a machine is called, against what others are and have.

use super::world::{Claimed, World, certified, machine, refused};

/// A machine that knows no cloud and is called so.
fn called(name: &str) -> Claimed {
    let mut who = machine(9);
    who.identity.instance_id = None;
    who.facts.hostname = name.into();
    who
}

#[test]
fn a_machine_without_an_instance_id_is_not_called_by_the_id_of_an_instance() {
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
        assert_eq!(world.registry.book().counts().1, 0, "{id}");
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
fn the_id_of_a_machine_is_the_name_of_no_node_in_another_roster_either() {
    let mut world = World::new();
    world.known(&machine(1));
    for name in ["i-1", "mid-1", "uuid-1"] {
        let invited = world.invite(|wish| wish.roster = "staging".into());
        assert_eq!(refused(world.enrol(&invited, &called(name))), "IDENTITY_CONFLICT", "{name}");
    }
    let invited = world.invite(|wish| wish.roster = "staging".into());
    certified(world.enrol(&invited, &called("w-1")));
}
