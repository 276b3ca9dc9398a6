//! Which machine the holder of an invitation to reimage can claim to be.

use reveille_wire::agent::Role;

use super::world::*;
use crate::registry::{KeyHash, NodeIds, NodeSaid, Record, Registry, Reimage, Settings};

fn node(name: &str, instance: Option<&str>, uuid: Option<&str>) -> NodeIds {
    NodeIds { name: name.into(), instance: instance.map(Into::into), system_uuid: uuid.map(Into::into) }
}

/// The first machine with another disk, and this change.
fn rebuilt(change: impl FnOnce(&mut Claimed)) -> Claimed {
    let mut rebuilt = machine(1);
    rebuilt.key = KeyHash([9; 32]);
    rebuilt.identity.machine_id = Some(MID[9].into());
    change(&mut rebuilt);
    rebuilt
}

/// The name of the case, the claim, the Nodes that match it, and the refusal.
type Case = (&'static str, Claimed, Vec<NodeIds>, Option<&'static str>);

fn cases() -> Vec<Case> {
    let theirs = || node("w-2", Some("i-2"), Some(UUID[2]));
    let as_theirs = |own: &mut Claimed| own.identity.instance_id = Some("i-2".into());
    vec![
        ("itself", rebuilt(|_| {}), vec![], None),
        (
            "itself, and its Node of before",
            rebuilt(|_| {}),
            vec![node("w-1", Some("i-1"), Some(UUID[1]))],
            None,
        ),
        (
            "whose Node has the machine id of before",
            rebuilt(|_| {}),
            vec![node("w-1", None, Some(MID[1]))],
            None,
        ),
        (
            "whose Node carries nothing but its name",
            rebuilt(|_| {}),
            vec![node("w-1.example", None, None)],
            None,
        ),
        (
            "on other hardware, with its instance",
            rebuilt(|own| own.identity.system_uuid = Some(UUID[9].into())),
            vec![node("w-1", Some("i-1"), Some(UUID[1]))],
            None,
        ),
        ("without the metadata of its cloud", rebuilt(|own| own.identity.instance_id = None), vec![], None),
        (
            "with neither instance nor UUID",
            rebuilt(|own| (own.identity.instance_id, own.identity.system_uuid) = (None, None)),
            vec![],
            Some("IDENTITY_INCOMPLETE"),
        ),
        ("another's instance", rebuilt(as_theirs), vec![theirs()], Some("TOKEN_FOREIGN")),
        ("another's instance without a Node", rebuilt(as_theirs), vec![], Some("TOKEN_FOREIGN")),
        (
            "another name",
            rebuilt(|own| own.facts.hostname = "w-2".into()),
            vec![theirs()],
            Some("TOKEN_FOREIGN"),
        ),
        (
            "another's UUID",
            rebuilt(|own| own.identity.system_uuid = Some(UUID[2].into())),
            vec![theirs()],
            Some("IDENTITY_CONFLICT"),
        ),
        (
            "a Node of its name on another instance",
            rebuilt(|_| {}),
            vec![node("w-1", Some("i-7"), None)],
            Some("IDENTITY_CONFLICT"),
        ),
    ]
}

#[test]
fn rebuild_invitation_gives_no_other_name_instance_or_node() {
    for (case, claimed, nodes, wanted) in cases() {
        let mut world = World::new();
        world.cluster(Some(&[Role::ControlPlane]));
        let first = world.known(&machine(1));
        let id = world.invite(|wish| {
            REBUILT(wish);
            (wish.machine, wish.reimage) = (Some("w-1".into()), Some(Reimage::AtOnce));
        });
        let reply = world.enrol_beside(&id, &claimed, Some(NodeSaid::Present(nodes)));
        match wanted {
            None => assert_eq!(certified(reply), first, "{case}"),
            Some(code) => {
                assert_eq!(refused(reply), code, "{case}");
                let known = world.registry.index().machine(&first).unwrap();
                assert_eq!((&known.identity, known.key), (&machine(1).identity, machine(1).key), "{case}");
            }
        }
    }
}

#[test]
fn machine_without_instance_id_is_rebuilt_on_same_hardware_only() {
    let cases =
        [(Some(UUID[1]), None), (Some(UUID[7]), Some("TOKEN_FOREIGN")), (None, Some("IDENTITY_INCOMPLETE"))];
    for (uuid, wanted) in cases {
        let (mut world, mut before) = (World::new(), machine(1));
        before.identity.instance_id = None;
        let first = world.known(&before);
        let id =
            world.invite(|wish| (wish.machine, wish.reimage) = (Some("w-1".into()), Some(Reimage::AtOnce)));
        let claimed = rebuilt(|own| {
            (own.identity.instance_id, own.identity.system_uuid) = (None, uuid.map(Into::into));
        });
        match (wanted, world.enrol(&id, &claimed)) {
            (None, reply) => assert_eq!(certified(reply), first),
            (Some(code), reply) => assert_eq!(refused(reply), code, "{uuid:?}"),
        }
    }
}

#[test]
fn same_name_in_another_roster_takes_no_invitation() {
    let mut world = World::new();
    let first = world.known(&machine(1));
    let id = world.invite(|wish| (wish.machine, wish.reimage) = (Some("w-1".into()), Some(Reimage::AtOnce)));
    let elsewhere = world.invite(|wish| wish.roster = "dev".into());
    let mut namesake = machine(2);
    namesake.facts.hostname = "w-1".into();
    certified(world.enrol(&elsewhere, &namesake));
    world.restart();
    assert_eq!(certified(world.branch().enrol(&id, &rebuilt(|_| {}))), first);
    // An invitation made now still means the first machine: it says the machine's roster.
    let id = world.invite(|wish| (wish.machine, wish.reimage) = (Some("w-1".into()), Some(Reimage::AtOnce)));
    assert_eq!(certified(world.enrol(&id, &rebuilt(|_| {}))), first);
}

#[test]
fn old_invitation_without_record_is_for_the_named_machine() {
    let mut world = World::new();
    let first = world.known(&machine(1));
    let id = world.invite(|wish| (wish.machine, wish.reimage) = (Some(MID[1].into()), Some(Reimage::AtOnce)));
    for record in &mut world.records {
        if let Record::Invited(invited) = record {
            invited.record = None;
        }
    }
    world.registry = Registry::restore(Settings::default(), world.now, &world.records);
    assert_eq!(certified(world.enrol(&id, &rebuilt(|_| {}))), first);
}
