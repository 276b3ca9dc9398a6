//! A tenant who can name machines gives theirs the first label of another one's name: `node-i003.evil` beside `node-i003`. Two
//! hosts of two domains have one label (`model::host_name`): it is a hint, and no identity.

use reveille_core::model::incident::FaultKind;
use reveille_core::model::node::{Node, Provider, Ready};

use super::fixture::{Field, roster, stamp};
use super::steps::{made, min, on, patch, set, touched};

/// Twelve machines called as their Nodes, which lead to them by provider ID, or by UUID or address alone, as with k3s. One more
/// machine is the tenant's.
fn fleet(links: &str) -> Field {
    let mut field = Field::new(roster()).populate(12);
    for (id, instance) in &mut field.instances {
        instance.addresses = field.ports[id].addresses.clone();
    }
    for (id, node) in &mut field.nodes {
        node.addresses = field.ports[id].addresses.clone();
        let uuid = if links == "address" { format!("hardware-{id}") } else { id.clone() };
        node.system_uuid = Some(uuid.as_str().into());
        if links != "provider" {
            node.provider = Provider::Unread(format!("k3s://node-{id}").as_str().into());
        }
    }
    field.run(min(20));
    field
}

/// The tenant's machine of this name, and its own Node, called as it.
fn tenant(field: &mut Field, links: &str, name: &str) -> Node {
    field.add_machine("evil", true);
    let addresses = field.ports["evil"].addresses.clone();
    let its = field.instances.get_mut("evil").unwrap();
    (its.name, its.addresses) = (name.into(), addresses.clone());
    let mut node = field.nodes.remove("evil").unwrap();
    (node.name, node.addresses) = (name.into(), addresses);
    node.system_uuid = Some(if links == "address" { "hardware-evil" } else { "evil" }.into());
    if links != "provider" {
        node.provider = Provider::Unread(format!("k3s://{name}").as_str().into());
    }
    node
}

/// The same Node, as its kubelet writes it to show this machine.
fn showing(field: &Field, links: &str, own: &Node, victim: &str) -> Node {
    let mut its = own.clone();
    match links {
        "address" => its.addresses = field.ports[victim].addresses.clone(),
        _ => its.system_uuid = Some(victim.into()),
    }
    its
}

/// As `first_registration_of_another_machine_ends_no_removal`, and as `kubelet_of_another_machine_ends_no_removal`: a person
/// drained `i003` and keeps it. The tenant's machine, which joined before or joins now, shows its identity for some minutes, and
/// then its Node goes, falls silent, or shows its own machine again.
#[test]
fn host_of_the_same_label_ends_no_removal() {
    let mut found = Vec::new();
    for links in ["uuid", "address"] {
        for name in ["other", "node-i003.evil"] {
            for joined in ["before", "now"] {
                for then in ["own", "own, gone", "silent", "silent, gone"] {
                    let mut field = fleet(links);
                    let own = tenant(&mut field, links, name);
                    if joined == "before" {
                        field.nodes.insert("evil".into(), own.clone());
                    }
                    field.run(min(30));
                    field.nodes.get_mut("i003").unwrap().cordoned = true;
                    field.run(min(2));
                    field.nodes.remove("i003");
                    field.run(min(30));
                    let before = on(&field, "i003");
                    field.deaf = true;
                    let other = showing(&field, links, &own, "i003");
                    field.nodes.insert("evil".into(), other);
                    field.run(min(3));
                    if then.starts_with("own") {
                        field.nodes.insert("evil".into(), own);
                    } else {
                        set(&mut field, "evil", Ready::Unknown);
                    }
                    field.run(min(5));
                    if then.ends_with("gone") {
                        field.nodes.remove("evil");
                        field.delete_machine("evil");
                    }
                    field.run(min(3 * 60));
                    found.push((links, name, joined, then, before, on(&field, "i003")));
                }
            }
        }
    }
    found.retain(|(.., before, after)| !before.is_empty() || !after.is_empty());
    assert!(found.is_empty(), "(links, tenant's name, joined, then, acts before, acts after): {found:#?}");
}

/// As `uuid_shown_for_a_moment_gives_no_machine_a_history`: an old machine just got its pool's marks, and may have served. The
/// tenant's kubelet shows its identity for a moment.
#[test]
fn host_of_the_same_label_gives_no_history() {
    let mut found = Vec::new();
    for links in ["provider", "uuid", "address"] {
        for name in ["other", "node-old.evil"] {
            let mut field = fleet(links);
            let own = tenant(&mut field, links, name);
            field.nodes.insert("evil".into(), own.clone());
            field.run(min(60));
            let at = field.now - min(15);
            field.add_machine("old", false);
            let addresses = field.ports["old"].addresses.clone();
            let old = field.instances.get_mut("old").unwrap();
            (old.created, old.addresses) = (Some(stamp(at)), addresses);
            field.deaf = true;
            field.run(min(2));
            let other = showing(&field, links, &own, "old");
            patch(&mut field, &other);
            patch(&mut field, &own);
            field.run(min(6 * 60));
            field.nodes.remove("evil");
            field.delete_machine("evil");
            field.run(min(6 * 60));
            found.push((links, name, on(&field, "old")));
        }
    }
    let fine = found.iter().all(|(.., made)| !made.iter().any(|it| it.starts_with("delete")));
    assert!(fine, "{found:#?}");
}

/// As `drain_of_a_node_that_shows_another_machine_is_its_own`: the tenant's kubelet shows `i003`. A person finds that odd, drains
/// the tenant's Node, deletes it and keeps the machine. `i003`, which serves on, dies a day later: it is to be repaired.
#[test]
fn drain_of_a_host_of_the_same_label_is_its_own() {
    let mut found = Vec::new();
    for links in ["provider", "uuid", "address"] {
        for name in ["other", "node-i003.evil"] {
            let mut field = fleet(links);
            let own = tenant(&mut field, links, name);
            field.nodes.insert("evil".into(), own.clone());
            field.run(min(60));
            let other = showing(&field, links, &own, "i003");
            field.nodes.insert("evil".into(), other);
            field.run(min(1));
            field.nodes.get_mut("evil").unwrap().cordoned = true;
            field.run(min(1));
            field.nodes.remove("evil");
            field.deaf = true;
            field.run(min(2 * 60));
            let drained = on(&field, "evil");
            set(&mut field, "i003", Ready::Unknown);
            field.run(min(6 * 60));
            let held =
                field.case("i003", FaultKind::NotReady).map(|_| field.held("i003", FaultKind::NotReady));
            found.push((links, name, drained, touched(&field, "i003"), held));
        }
    }
    let fine = found.iter().all(|(_, _, drained, repaired, _)| drained.is_empty() && *repaired);
    assert!(fine, "(links, name, acts on the drained, dead one repaired, held): {found:#?}");
}

/// As `first_registration_of_another_machine_ends_no_removal`: a person drained `i003`, suspects it and keeps it, and makes
/// another machine of the same name in its place, as bare metal and Terraform do. That one joins as the Node of this name and
/// serves for hours. Then it is taken as well: its kubelet shows the identity of the one before it for some minutes.
#[test]
fn successor_that_shows_its_predecessor_ends_no_removal() {
    let mut found = Vec::new();
    for links in ["uuid", "address"] {
        for then in ["nothing", "own", "own, gone", "silent", "silent, gone"] {
            let mut field = fleet(links);
            field.nodes.get_mut("i003").unwrap().cordoned = true;
            field.run(min(2));
            field.nodes.remove("i003");
            field.run(min(60));
            let own = tenant(&mut field, links, "node-i003");
            field.run(min(1));
            field.nodes.insert("evil".into(), own.clone());
            field.run(min(3 * 60));
            let before = on(&field, "i003");
            field.deaf = true;
            if then != "nothing" {
                let other = showing(&field, links, &own, "i003");
                field.nodes.insert("evil".into(), other);
                field.run(min(3));
            }
            if then.starts_with("own") {
                field.nodes.insert("evil".into(), own);
            } else if then != "nothing" {
                set(&mut field, "evil", Ready::Unknown);
            }
            field.run(min(5));
            if then.ends_with("gone") {
                field.nodes.remove("evil");
                field.delete_machine("evil");
            }
            field.run(min(3 * 60));
            found.push((links, then, before, on(&field, "i003")));
        }
    }
    found.retain(|(.., before, after)| !before.is_empty() || !after.is_empty());
    assert!(found.is_empty(), "(links, then, acts before, acts after): {found:#?}");
}

/// As `machine_that_took_over_the_node_of_one_shown_as_active`: `i003`'s host is dead, its cloud shows it as ACTIVE, and a new
/// machine of its name took over its Node, which goes on to name `i003`. A person drains that Node and keeps the new machine.
/// Who has a bootstrap token registers a Node of any name before that, which no cloud controller ever initialises, and shows
/// the UUID of the new machine on it.
#[test]
fn made_up_node_hides_no_drain_of_a_machine_that_took_over() {
    let mut found = Vec::new();
    for made_up in [false, true] {
        let mut field = fleet("provider");
        let old = field.instances.get_mut("i003").unwrap();
        old.locked = true;
        set(&mut field, "i003", Ready::Unknown);
        field.run(min(2));
        field.add_machine("new", false);
        field.instances.get_mut("new").unwrap().name = "node-i003".into();
        let addresses = field.ports["new"].addresses.clone();
        let its = field.nodes.get_mut("i003").unwrap();
        (its.system_uuid, its.addresses) = (Some("new".into()), addresses);
        (its.boot_id, its.ready) = (Some("another".into()), Ready::True);
        field.run(min(3 * 60));
        let mut evil = super::fixture::node("made-up", Ready::True);
        (evil.provider, evil.system_uuid) = (Provider::Unset, Some("new".into()));
        if made_up {
            field.nodes.insert("made-up".into(), evil);
            field.run(min(2));
        }
        field.nodes.get_mut("i003").unwrap().cordoned = true;
        field.run(min(2));
        let before = on(&field, "new");
        field.nodes.remove("i003");
        field.run(min(2));
        field.deaf = true;
        set_if_there(&mut field, "made-up", Ready::Unknown);
        field.run(min(6 * 60));
        found.push((made_up, before, on(&field, "new")));
    }
    assert!(found.iter().all(|(_, before, after)| before.is_empty() && after.is_empty()), "{found:#?}");
}

fn set_if_there(field: &mut Field, id: &str, ready: Ready) {
    if field.nodes.contains_key(id) {
        set(field, id, ready);
    }
}

/// A dead machine, whose identity is shown by a Node that lives, is told to be held for that: by `why`, in a word about it.
#[test]
fn dead_machine_shown_by_another_is_told_as_such() {
    let mut found = Vec::new();
    for links in ["provider", "uuid", "address"] {
        for name in ["node-i003.evil", "node-evil"] {
            for shows in [false, true] {
                let mut field = fleet(links);
                let mut own = tenant(&mut field, links, name);
                if shows {
                    (own.provider, own.system_uuid) = (Provider::Unset, Some("i003".into()));
                }
                field.nodes.insert("evil".into(), own);
                field.run(min(60));
                set(&mut field, "i003", Ready::Unknown);
                field.deaf = true;
                field.run(min(6 * 60));
                let cases: Vec<_> =
                    [FaultKind::NotReady, FaultKind::Vanished, FaultKind::NeverJoined, FaultKind::Duplicate]
                        .into_iter()
                        .filter_map(|kind| {
                            Some((kind, field.case("i003", kind).map(|_| field.held("i003", kind))?))
                        })
                        .collect();
                found.push((links, name, shows, on(&field, "i003").len(), cases));
            }
        }
    }
    let fine = found.iter().all(|(.., acts, cases)| *acts > 0 || !cases.is_empty());
    assert!(fine, "(links, name, shows uuid, acts on the dead one, cases): {found:#?}");
}

/// A client makes one server with the pool's marks, in a network of its own, that has the address of one machine. That one is
/// dead, or serves. It is repaired, or told to be contested; and what serves is left alone.
#[test]
fn server_with_the_address_of_one_machine_hides_nothing() {
    let mut found = Vec::new();
    for links in ["provider", "uuid", "address"] {
        for what in ["dead", "serves", "reboots"] {
            let mut field = fleet(links);
            field.add_machine("evil", false);
            let addresses = field.ports["i003"].addresses.clone();
            let its = field.instances.get_mut("evil").unwrap();
            (its.name, its.addresses) = ("vm-evil".into(), addresses);
            field.run(min(60));
            field.deaf = true;
            if what == "dead" {
                set(&mut field, "i003", Ready::Unknown);
            }
            field.run(min(60));
            if what == "reboots" {
                field.delete_machine("evil");
                field.run(min(5));
                set(&mut field, "i003", Ready::Unknown);
                field.run(min(2));
                set(&mut field, "i003", Ready::True);
                field.run(min(30));
            }
            let calls: Vec<_> =
                super::steps::made(&field).into_iter().filter(|call| call.contains("i003")).collect();
            let cases: Vec<_> = field
                .state
                .context()
                .cases
                .keys()
                .map(|it| format!("{it:?}"))
                .filter(|it| it.contains("i003"))
                .collect();
            found.push((links, what, calls, cases));
        }
    }
    let fine = found.iter().all(|(_, what, calls, cases)| match *what {
        "dead" => !calls.is_empty() || !cases.is_empty(),
        _ => calls.is_empty(),
    });
    assert!(fine, "(links, what, acts, cases): {found:#?}");
}

/// A zone is cut off. One of its machines has a Node that the kubelet of a machine of another zone writes (its server was
/// renamed, and the owner gave its name to a new one): that Node is Ready, and says nothing of the zone.
#[test]
fn node_that_another_zone_writes_hides_no_dark_zone() {
    let mut found = Vec::new();
    for shared in [false, true] {
        let mut wide = roster();
        wide.limits.freeze_above_pct = 100;
        let mut field = Field::new(wide).populate(12);
        for (number, its) in field.instances.values_mut().enumerate() {
            its.zone = Some(if number < 5 { "a" } else { "b" }.into());
        }
        if shared {
            field.nodes.remove("i011");
            field.nodes.get_mut("i000").unwrap().system_uuid = Some("i011".into());
        }
        field.run(min(30));
        let first = if shared { 1 } else { 0 };
        for number in first..5 {
            set(&mut field, &format!("i{number:03}"), Ready::Unknown);
        }
        field.run(min(3 * 60));
        found.push((shared, made(&field)));
    }
    assert!(found.iter().all(|(_, calls)| calls.is_empty()), "{found:#?}");
}
