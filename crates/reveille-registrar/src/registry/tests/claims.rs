//! Which names count as the same, and which texts count as names.

use reveille_wire::agent::{Facts, Reason, Role};

use super::world::*;
use crate::registry::{
    Effect, Index, KeyHash, MachineId, NodeIds, NodeSaid, Record, Registry, Reply, Settings,
};

/// A machine whose ids differ from all others, except for those that `lie` changes.
fn liar(lie: impl FnOnce(&mut Claimed)) -> Claimed {
    let mut who = machine(2);
    lie(&mut who);
    who
}

fn uuid(number: u8) -> String {
    format!("4c4c4544-0042-4b10-8058-c4c04f5956{number:02x}")
}

/// A guest of OpenStack: its instance id is its system UUID.
fn guest(number: u8) -> Claimed {
    let mut who = machine(number);
    who.identity.instance_id = Some(uuid(number).as_str().into());
    who.identity.system_uuid = Some(uuid(number).as_str().into());
    who
}

#[test]
fn identity_in_other_spelling_or_as_other_id_kind_is_refused() {
    let spelled =
        |text: String| move |who: &mut Claimed| who.identity.instance_id = Some(text.as_str().into());
    let lies: Vec<(&str, Claimed)> = vec![
        ("upper case", liar(spelled(uuid(1).to_uppercase()))),
        ("spaces", liar(spelled(format!(" {}  ", uuid(1))))),
        ("no dashes", liar(spelled(uuid(1).replace('-', "")))),
        ("braces", liar(spelled(format!("{{{}}}", uuid(1))))),
        (
            "a UUID as machine id",
            liar(|who| who.identity.machine_id = Some(uuid(1).replace('-', "").as_str().into())),
        ),
        (
            "a machine id as UUID",
            liar(|who| who.identity.system_uuid = Some(MID[1].to_uppercase().as_str().into())),
        ),
        ("a machine id as instance id", liar(spelled(MID[1].to_owned()))),
        ("a node name as instance id", liar(spelled("W-1".to_owned()))),
        ("an instance id as host name", liar(|who| who.facts.hostname = uuid(1).as_str().into())),
        ("a host name in upper case", liar(|who| who.facts.hostname = "W-1".into())),
    ];
    for (lie, who) in lies {
        let mut world = World::new();
        world.known(&guest(1));
        let id = world.invite(|_| {});
        assert_eq!(refused(world.enrol(&id, &who)), "IDENTITY_CONFLICT", "{lie}");
        certified(world.enrol(&id, &machine(3)));
    }
}

#[test]
fn instance_invitation_refuses_other_instance_with_copied_id() {
    let ec2 = |digit: &str| format!("i-{}", digit.repeat(17));
    let word = |text: String| Some(reveille_wire::agent::Word::cut(&text));
    let of = |instance: Option<String>, change: &dyn Fn(&mut Claimed)| {
        let mut who = machine(2);
        who.identity.instance_id = instance.and_then(word);
        change(&mut who);
        who
    };
    let as_machine_id = |id: String| move |who: &mut Claimed| who.identity.machine_id = word(id.clone());
    let as_uuid = |id: String| move |who: &mut Claimed| who.identity.system_uuid = word(id.clone());
    let as_both = |system: String, machine: String| {
        move |who: &mut Claimed| {
            (who.identity.system_uuid, who.identity.machine_id) =
                (word(system.clone()), word(machine.clone()));
        }
    };
    let disk = "5d0f6f2a9c3b4e1f8a7d6c5b4a392817".to_owned();
    let cases = [
        (ec2("1"), of(Some(ec2("2")), &|_| {}), false),
        (uuid(1), of(Some(uuid(2)), &as_uuid(uuid(1))), false),
        (uuid(1), of(Some(uuid(2)), &as_machine_id(uuid(1).replace('-', ""))), false),
        (uuid(1), of(Some(uuid(2).replace('-', "")), &as_uuid(uuid(1))), false),
        (uuid(1), of(None, &as_both(uuid(2), uuid(1).replace('-', ""))), false),
        (uuid(1).to_uppercase(), of(Some(uuid(1)), &|_| {}), true),
        // The machine has no instance id, or one of another form than its hardware's UUID.
        (uuid(1), of(None, &as_uuid(uuid(1))), true),
        (uuid(1), of(Some(ec2("2")), &as_uuid(uuid(1))), true),
        (disk.clone(), of(Some(uuid(2)), &as_machine_id(disk.clone())), true),
        ("1234567890".to_owned(), of(Some("1234567890".to_owned()), &|_| {}), true),
        ("ocid1.instance_7".to_owned(), of(Some("ocid1.instance_7".to_owned()), &|_| {}), true),
        ("w-2".to_owned(), of(Some(uuid(2)), &|_| {}), true),
    ];
    for (bound, who, is_meant) in cases {
        let mut world = World::new();
        let id = world.invite(|wish| wish.machine = word(bound.clone()));
        let reply = world.enrol(&id, &who);
        let says = format!("{bound} by {:?}", who.identity);
        match is_meant {
            true => drop(certified(reply)),
            false => assert_eq!(refused(reply), "TOKEN_FOREIGN", "{says}"),
        }
    }
}

#[test]
fn machine_with_other_spelling_of_its_id_is_the_same_machine() {
    let mut world = World::new();
    let first = world.known(&guest(1));
    let mut shouts = guest(1);
    shouts.identity.system_uuid = Some(uuid(1).to_uppercase().as_str().into());
    let (conn, effects) = world.arrive(&first, &shouts);
    assert_eq!(closed(&effects, conn), None);
}

#[test]
fn rebuilt_machine_cannot_take_identity_of_third_machine() {
    let mut world = World::new();
    world.known(&machine(1));
    world.known(&machine(2));
    let id = world.invite(|wish| {
        REBUILT(wish);
        wish.reimage = Some(crate::registry::Reimage::AtOnce);
    });
    let mut rebuilt = machine(1);
    rebuilt.key = KeyHash([9; 32]);
    rebuilt.identity.system_uuid = machine(2).identity.system_uuid;
    assert_eq!(refused(world.enrol(&id, &rebuilt)), "IDENTITY_CONFLICT");
}

#[test]
fn invalid_node_name_is_refused_before_it_is_stored() {
    let names = [
        "../../x",
        "victim.",
        ".victim",
        "-victim",
        "victim-",
        "vic\u{200b}tim",
        "victim\nx",
        "vic tim",
        "vic_tim",
        "",
        "víctim",
        "a..b",
        "a.-b",
    ];
    let long = "a".repeat(64);
    for name in names.into_iter().chain([long.as_str()]) {
        let mut world = World::new();
        let id = world.invite(|_| {});
        let who = liar(|who| who.facts.hostname = name.into());
        assert_eq!(refused(world.enrol(&id, &who)), "BAD_FRAME", "{name:?}");
        assert_eq!(world.registry.index().counts().1, 0, "{name:?}");
    }
}

#[test]
fn a_word_of_an_identity_that_does_not_show_is_refused() {
    for word in ["i-1\u{200b}", "і-1", "i-1\ni-2", "i\u{202e}1"] {
        let mut world = World::new();
        let id = world.invite(|_| {});
        let who = liar(|who| who.identity.instance_id = Some(word.into()));
        assert_eq!(refused(world.enrol(&id, &who)), "BAD_FRAME", "{word:?}");
    }
}

#[test]
fn malformed_machine_id_or_system_uuid_is_refused() {
    let words = ["w-1", "feed", "i-0abcdef1234567890", "feed000000004000800000000000000g"];
    let lies: [fn(&mut Claimed, &str); 2] = [
        |who, word| who.identity.machine_id = Some(word.into()),
        |who, word| who.identity.system_uuid = Some(word.into()),
    ];
    for (word, lie) in words.into_iter().flat_map(|word| lies.map(|lie| (word, lie))) {
        let mut world = World::new();
        let id = world.invite(|_| {});
        assert_eq!(refused(world.enrol(&id, &liar(|who| lie(who, word)))), "BAD_FRAME", "{word}");
        // A value that says that it was never set identifies no machine.
        certified(world.enrol(&id, &liar(|who| lie(who, "uninitialized"))));
    }
}

#[test]
fn a_node_is_named_as_the_kubelet_would_name_it() {
    let mut world = World::new();
    let id = world.invite(|_| {});
    let reply = world.enrol(&id, &liar(|who| who.facts.hostname = "Worker-7.Example".into()));
    let Reply::Certify { node_name, .. } = reply else { panic!("{reply:?}") };
    assert_eq!(node_name.as_str(), "worker-7.example");
}

#[test]
fn old_machines_with_shared_name_are_read_but_not_found_by_it() {
    let mut world = World::new();
    world.known(&machine(1));
    world.known(&machine(2));
    let records: Vec<Record> = world
        .records
        .iter()
        .cloned()
        .map(|mut record| {
            if let Record::Enrolled(enrolled) = &mut record
                && enrolled.node_name.as_str() == "w-2"
            {
                enrolled.identity.instance_id = Some("I-1".into());
            }
            record
        })
        .collect();
    let mut index = Index::default();
    records.iter().for_each(|record| index.apply(record));
    assert_eq!(index.find("i-1").map(|known| &known.id), None);
    let found = index.find("w-2").map(|known| known.id.clone());
    assert_eq!((found.is_some(), index.counts().1), (true, 2));
    let what = crate::registry::Removal::Machine;
    let machine: MachineId = found.unwrap();
    index.apply(&Record::Removed { at: world.now, machine, what });
    assert_eq!(
        index.find("i-1").map(|known| known.node_name.as_str()),
        Some("w-1"),
        "the other keeps its own"
    );
}

#[test]
fn the_name_of_a_node_that_is_there_is_its_own_machines_alone() {
    let ids =
        |instance: Option<&str>, uuid: Option<&str>| NodeSaid::Present(vec![node("w-1", instance, uuid)]);
    let api = Some([Role::ControlPlane].as_slice());
    let cases = [
        ("no cluster to ask", None, api, None),
        ("no such Node", Some(NodeSaid::Absent), api, None),
        ("its own, by its UUID", Some(ids(None, Some(UUID[1].to_uppercase().as_str()))), api, None),
        ("its own, by its instance", Some(ids(Some("i-1"), None)), api, None),
        ("its own, which is the machine id where there is no UUID", Some(ids(None, Some(MID[1]))), api, None),
        ("a control-plane Node", Some(ids(Some("i-7"), Some(UUID[7]))), api, Some("IDENTITY_CONFLICT")),
        ("a Node that tells nothing", Some(ids(None, None)), api, Some("IDENTITY_CONFLICT")),
        ("an API server that does not answer just now", Some(NodeSaid::Unknown), api, Some("UNAVAILABLE")),
        ("an API server that was never there", Some(NodeSaid::Unknown), None, None),
        ("one that answers before its first list", Some(NodeSaid::Partly), None, Some("UNAVAILABLE")),
    ];
    for (case, node, api, wanted) in cases {
        let mut world = World::new();
        world.cluster(api);
        let id = world.invite(|_| {});
        let reply = world.enrol_beside(&id, &machine(1), node);
        match wanted {
            None => drop(certified(reply)),
            Some(code) => assert_eq!(refused(reply), code, "{case}"),
        }
    }
}

/// A server forgets with its end what answers now, but not that there was a cluster, also over a checkpoint of its ledger.
#[test]
fn cluster_that_answered_once_is_never_taken_as_absent() {
    let mut world = World::new();
    let id = world.invite(|wish| wish.uses = 2);
    world.cluster(None);
    certified(world.enrol_beside(&id, &machine(1), Some(NodeSaid::Unknown)));
    let said = |effects: Vec<Effect>| {
        effects
            .iter()
            .filter(|effect| matches!(effect, Effect::Record(Record::ClusterAnswered { .. })))
            .count()
    };
    let api = Some([Role::ControlPlane].as_slice());
    assert_eq!([api, None, api, None].map(|present| said(world.cluster(present))), [1, 0, 0, 0]);
    for records in [world.records.clone(), world.registry.index().checkpoint()] {
        for present in [None, Some(None)] {
            world.registry = Registry::restore(Settings::default(), world.now, &records);
            present.into_iter().for_each(|present| drop(world.cluster(present)));
            let reply = world.enrol_beside(&id, &machine(2), Some(NodeSaid::Unknown));
            assert_eq!(refused(reply), "UNAVAILABLE", "{present:?}");
        }
    }
}

#[test]
fn client_that_tries_node_names_voids_its_invitation() {
    let mut world = World::new();
    let id = world.invite(|_| {});
    let node = || Some(NodeSaid::Present(vec![node("w-1", None, Some(UUID[7]))]));
    let codes: Vec<&str> = (0..6).map(|_| refused(world.enrol_beside(&id, &machine(1), node()))).collect();
    assert_eq!(codes[4..], ["IDENTITY_CONFLICT", "TOKEN_VOID"]);
}

/// The agent of the Node's machine has not come yet, and another machine claims the Node's name as one of its ids.
#[test]
fn the_name_of_a_node_is_no_other_machines_id() {
    let mut world = World::new();
    let there = || Some(NodeSaid::Present(vec![node("w-1", Some("i-1"), Some(UUID[1]))]));
    let id = world.invite(|_| {});
    let as_id = liar(|who| who.identity.instance_id = Some("w-1".into()));
    let codes: Vec<&str> = (0..6).map(|_| refused(world.enrol_beside(&id, &as_id, there()))).collect();
    assert_eq!(codes[4..], ["IDENTITY_CONFLICT", "TOKEN_VOID"]);
    let own = world.invite(|_| {});
    certified(world.enrol_beside(&own, &machine(1), there()));
}

/// A kubelet under an attacker's control writes its own Node's status, with a system UUID of its choice.
#[test]
fn lying_node_does_not_void_invitation_of_its_victim() {
    let mut world = World::new();
    let id = world.invite(|_| {});
    let lies = || Some(NodeSaid::Present(vec![node("w-9", Some("i-9"), Some(UUID[1]))]));
    for _ in 0..20 {
        assert_eq!(refused(world.enrol_beside(&id, &machine(1), lies())), "IDENTITY_CONFLICT");
    }
    certified(world.enrol_beside(&id, &machine(1), Some(NodeSaid::Absent)));
}

fn node(name: &str, instance: Option<&str>, uuid: Option<&str>) -> NodeIds {
    NodeIds { name: name.into(), instance: instance.map(Into::into), system_uuid: uuid.map(Into::into) }
}

fn ours() -> NodeIds {
    node("w-1", Some("i-1"), Some(UUID[1]))
}

/// The name of the case, the existing Nodes, the machine of the invitation, and the part that conflicts with the first
/// machine.
type Carried = (&'static str, Vec<NodeIds>, Option<&'static str>, Option<&'static str>);

fn carried() -> Vec<Carried> {
    let of_machine_id = || node("w-1", Some("i-1"), Some(MID[1]));
    vec![
        ("its own", vec![ours()], None, None),
        ("its own, by the first label", vec![node("w-1.example", Some("i-1"), Some(UUID[1]))], None, None),
        ("its own, by the machine id", vec![of_machine_id()], None, None),
        (
            "its instance id under another name",
            vec![node("db-1", Some("I-1"), None)],
            None,
            Some("instance id"),
        ),
        (
            "its UUID under another name",
            vec![node("db-1", None, Some(UUID[1].to_uppercase().as_str()))],
            None,
            Some("system UUID"),
        ),
        (
            "its instance id as another's UUID",
            vec![node("db-1", None, Some("i-1"))],
            None,
            Some("instance id"),
        ),
        ("its name as another's instance", vec![node("db-1", Some("w-1"), None)], None, Some("node name")),
        (
            "its UUID beside another instance",
            vec![node("w-1", Some("i-7"), Some(UUID[1]))],
            None,
            Some("system UUID"),
        ),
        (
            "its instance beside another UUID",
            vec![node("w-1", Some("i-1"), Some(UUID[7]))],
            None,
            Some("instance id"),
        ),
        ("a Node that is called by its machine id", vec![node(MID[1], None, None)], None, Some("machine id")),
        (
            "one that is called by it, with a domain",
            vec![node(&format!("{}.example", MID[1]), Some("i-7"), Some(UUID[7]))],
            None,
            Some("machine id"),
        ),
        (
            "its own, and another with its id",
            vec![ours(), node("db-1", Some("i-1"), None)],
            None,
            Some("instance id"),
        ),
        ("one that a person named", vec![node("db-1", Some("i-1"), Some(UUID[1]))], Some("i-1"), None),
        (
            "one that a person named, and no id is its own",
            vec![node("w-1", Some("i-7"), None)],
            Some("w-1"),
            Some("node name"),
        ),
    ]
}

#[test]
fn what_a_node_of_the_cluster_carries_is_its_own_machines_alone() {
    for (case, nodes, vouched_for, wanted) in carried() {
        let mut world = World::new();
        world.cluster(Some(&[Role::ControlPlane]));
        let id = world.invite(|wish| wish.machine = vouched_for.map(Into::into));
        // A claim to a Node's name counts as a conflict. For an id, the Node may be the liar.
        let is_called =
            |node: &NodeIds| ["w-1", MID[1], &format!("{}.example", MID[1])].contains(&node.name.as_str());
        let conflicts = u32::from(nodes.iter().any(|node| is_called(node) && *node != ours()));
        let reply = world.enrol_beside(&id, &machine(1), Some(NodeSaid::Present(nodes)));
        match (wanted, reply) {
            (None, reply) => drop(certified(reply)),
            (Some(part), Reply::Refused(refused)) => {
                let text = refused.to_string();
                let says = format!("a Node of the cluster already has this {part}; ");
                assert!(text.contains(&says) && !text.contains("another machine"), "{case}: {text}");
                assert!(text.contains("reveille invite --pool workers --machine NODE"), "{case}: {text}");
                assert!(
                    !["w-1", "db-1", "c0ffee00", "feed0000", "i-1", "i-7"].iter().any(|it| text.contains(it)),
                    "{text}"
                );
                let Reason::IdentityConflict { part: found, facts } = refused.reason else {
                    panic!("{case}")
                };
                assert_eq!(
                    (found.name(), *facts),
                    (part, Facts::default()),
                    "{case}: and what it carries is not told"
                );
                let counted = world.registry.index().invitation(&id).map(|it| it.conflicts);
                assert_eq!(counted, Some(conflicts), "{case}");
            }
            (Some(_), reply) => panic!("{case}: {reply:?}"),
        }
    }
}

#[test]
fn token_allows_one_question_per_use_and_more_must_wait() {
    let mut world = World::new();
    let id = world.invite(|wish| wish.uses = 100);
    let burst = world.registry.settings().questions_burst + 100;
    let ask = |world: &mut World| world.enrol_beside(&id, &machine(1), Some(NodeSaid::Unasked));
    for number in 0..burst {
        let reply = ask(&mut world);
        assert!(matches!(&reply, Reply::NodesToAsk(own) if own.as_str() == "prod"), "{number}: {reply:?}");
    }
    assert_eq!(refused(ask(&mut world)), "TOO_MANY");
    assert_eq!(world.registry.index().counts().1, 0, "and no machine is let in unasked");
    world.pass(world.registry.settings().question_each);
    assert!(matches!(ask(&mut world), Reply::NodesToAsk(_)));
    let other = world.invite(|_| {});
    let reply = world.enrol_beside(&other, &machine(1), Some(NodeSaid::Unasked));
    assert!(matches!(reply, Reply::NodesToAsk(_)), "another token has its own");
    certified(world.enrol_beside(&id, &machine(1), Some(NodeSaid::Absent)));
}
