//! A kubelet that shows the identity of other machines, in fleets whose Nodes name no instance, as with k3s: all that leads from
//! a Node to its machine is written by its kubelet.

use reveille_core::model::incident::FaultKind;
use reveille_core::model::instance::InstanceState;
use reveille_core::model::node::{Node, Provider, Ready};
use reveille_core::model::time::Span;

use super::fixture::{Field, roster, stamp};
use super::steps::{made, min, next, off, on, patch, say, touched};

/// A fleet of 40 whose Nodes lead to their machines by this alone: by provider ID and UUID, or, where they name no instance as
/// with k3s, by UUID, name or address.
fn fleet_of_40(links: &str) -> Field {
    let mut field = Field::new(roster()).populate(40);
    for (id, instance) in &mut field.instances {
        instance.addresses = field.ports[id].addresses.clone();
        if links == "address" {
            instance.name = format!("vm-{id}").as_str().into();
        }
    }
    for (id, node) in &mut field.nodes {
        node.addresses = field.ports[id].addresses.clone();
        let uuid = if matches!(links, "uuid" | "provider") { id.clone() } else { format!("hardware-{id}") };
        node.system_uuid = Some(uuid.as_str().into());
        if links != "provider" {
            node.provider = Provider::Unread(format!("k3s://node-{id}").as_str().into());
        }
    }
    field.run(min(20));
    field
}

/// The Node of `i007`, as its kubelet writes it: it shows the UUID or the address of this machine.
fn showing(field: &Field, links: &str, victim: &str) -> Node {
    let mut its = field.nodes["i007"].clone();
    match links {
        "uuid" => its.system_uuid = Some(victim.into()),
        _ => its.addresses = field.ports[victim].addresses.clone(),
    }
    its
}

/// As `addresses_of_many_machines_contest_none`, where Nodes name no instance, as with k3s: they lead to their machines by their
/// UUID, their name or their address. One kubelet shows the addresses of 29 machines, all the time.
#[test]
fn addresses_of_many_machines_contest_none_on_k3s() {
    let mut found = Vec::new();
    for links in ["provider", "uuid", "name", "address"] {
        for shows in [0, 1, 29] {
            for own in [true, false] {
                let mut field = fleet_of_40(links);
                let shown = (10..10 + shows).map(|number| field.ports[&format!("i{number:03}")].addresses[0]);
                let mut addresses: Vec<_> = shown.collect();
                let its = field.nodes.get_mut("i007").unwrap();
                if own {
                    addresses.extend(its.addresses.iter().copied());
                } else {
                    its.system_uuid = None;
                }
                if shows > 0 {
                    its.addresses = addresses.into_iter().collect();
                }
                field.run(min(2));
                for id in ["i010", "i011", "i003"] {
                    field.nodes.get_mut(id).unwrap().ready = Ready::Unknown;
                }
                field.deaf = true;
                field.run(min(8 * 60));
                let repaired = ["i010", "i011", "i003"].map(|id| touched(&field, id));
                found.push((links, shows, own, repaired));
            }
        }
    }
    let fine = found.iter().all(|(_, shows, _, repaired)| *shows == 1 || repaired.iter().all(|it| *it));
    assert!(fine, "(links, shows, with its own, dead i010, i011 and i003 touched): {found:#?}");
}

/// One kubelet shows the addresses of 29 machines that serve, where Nodes lead to machines by their address. A machine whose
/// address it does not show dies.
#[test]
fn addresses_of_machines_that_serve_freeze_nothing() {
    let mut found = Vec::new();
    for shows in [0, 29] {
        let mut field = fleet_of_40("address");
        let shown = (10..10 + shows).map(|number| field.ports[&format!("i{number:03}")].addresses[0]);
        let mut addresses: Vec<_> = field.nodes["i007"].addresses.to_vec();
        addresses.extend(shown);
        field.nodes.get_mut("i007").unwrap().addresses = addresses.into_iter().collect();
        field.run(min(2));
        field.nodes.get_mut("i003").unwrap().ready = Ready::Unknown;
        field.deaf = true;
        field.run(min(8 * 60));
        let kind = FaultKind::NotReady;
        let held = field.case("i003", kind).map(|_| field.held("i003", kind));
        found.push((shows, touched(&field, "i003"), held));
    }
    assert!(found.iter().all(|(_, is_touched, _)| *is_touched), "{found:#?}");
}

/// As `uuid_shown_for_a_moment_gives_no_machine_a_history`, where Nodes name no instance. An old machine gets its pool's marks:
/// what it did before is not known, so that it is never replaced.
#[test]
fn identity_shown_for_a_moment_gives_no_history_on_k3s() {
    let mut found = Vec::new();
    for links in ["uuid", "address"] {
        for how in ["nothing", "flash", "minute"] {
            let mut field = fleet_of_40(links);
            let at = field.now - min(15);
            field.add_machine("old", false);
            let old = field.instances.get_mut("old").unwrap();
            old.created = Some(stamp(at));
            if links == "address" {
                old.name = "vm-old".into();
            }
            field.deaf = true;
            field.run(min(2));
            let own = field.nodes["i007"].clone();
            let other = showing(&field, links, "old");
            match how {
                "flash" => [&other, &own].into_iter().for_each(|node| patch(&mut field, node)),
                "minute" => {
                    field.nodes.insert("i007".into(), other);
                    field.run(min(1));
                    field.nodes.insert("i007".into(), own);
                }
                _ => {}
            }
            field.run(min(6 * 60));
            let replaced = made(&field).iter().any(|call| *call == "delete instance old");
            found.push((links, how, replaced, made(&field)));
        }
    }
    assert!(found.iter().all(|(_, _, is_replaced, _)| !is_replaced), "{found:#?}");
}

/// As `uuid_shown_at_a_start_hides_no_drain`, where Nodes name no instance.
#[test]
fn identity_shown_at_a_start_hides_no_drain_on_k3s() {
    let mut found = Vec::new();
    for links in ["uuid", "address"] {
        for how in ["nothing", "shown", "before"] {
            let mut field = fleet_of_40(links);
            let last = field.now;
            field.now = field.now + min(5);
            field.add_machine("new", false);
            field.now = field.now + min(40);
            let mut field = next(field, roster(), last);
            field.deaf = true;
            let own = field.nodes["i007"].clone();
            if how == "shown" {
                let other = showing(&field, links, "new");
                field.nodes.insert("i007".into(), other);
            }
            if how == "before" {
                field.list_cloud();
            }
            field.sync_nodes();
            if how == "before" {
                field.list_cloud();
                let other = showing(&field, links, "new");
                field.nodes.insert("i007".into(), other);
                field.sync_nodes();
            }
            let now = field.now;
            say(&mut field, "node-new", "NodeNotSchedulable", None, now);
            field.run(min(2));
            field.nodes.insert("i007".into(), own);
            field.run(min(6 * 60));
            found.push((links, how, made(&field)));
        }
    }
    assert!(found.iter().all(|(.., made)| made.is_empty()), "{found:#?}");
}

/// As `kubelet_of_another_machine_ends_no_removal`, where the other machine's Node shows this one's identity when a process
/// begins.
#[test]
fn identity_shown_at_a_start_ends_no_removal() {
    let mut found = Vec::new();
    for links in ["uuid", "address", "provider"] {
        for named_alike in [true, false] {
            for how in ["nothing", "lives", "starts"] {
                let mut field = fleet_of_40(if links == "address" { links } else { "uuid" });
                for (id, instance) in &mut field.instances {
                    instance.name =
                        format!("{}-{id}", if named_alike { "node" } else { "vm" }).as_str().into();
                }
                if links == "provider" {
                    for (id, node) in &mut field.nodes {
                        node.provider = Provider::Instance(id.as_str().into());
                    }
                }
                field.run(min(2));
                field.nodes.get_mut("i003").unwrap().cordoned = true;
                field.run(min(2));
                field.nodes.remove("i003");
                field.run(min(30));
                let own = field.nodes["i007"].clone();
                let mut other = showing(&field, links, "i003");
                if links == "provider" {
                    (other.uid, other.provider) = ("another".into(), Provider::Instance("i003".into()));
                }
                if how != "nothing" {
                    field.nodes.insert("i007".into(), other);
                }
                if how == "starts" {
                    field = off(field, Span::from_s(5), roster());
                }
                field.deaf = true;
                field.run(min(5));
                field.nodes.insert("i007".into(), own);
                field.run(min(6 * 60));
                found.push((links, named_alike, how, touched(&field, "i003"), made(&field)));
            }
        }
    }
    assert!(found.iter().all(|(_, _, _, is_touched, _)| !is_touched), "{found:#?}");
}

/// A machine is dead. The kubelet of `i007` shows its UUID for a moment while it is Ready, and from then on shows nothing that
/// leads anywhere: the dead one is never repaired, although no Node shows its identity any more.
#[test]
fn uuid_shown_once_holds_no_dead_machine_for_ever() {
    let mut found = Vec::new();
    for (flash, hides) in [(false, false), (false, true), (true, false), (true, true)] {
        for restarts in [false, true] {
            let mut field = fleet_of_40("uuid");
            let victims = ["i003", "i004", "i005"];
            for id in victims {
                field.nodes.get_mut(id).unwrap().ready = Ready::Unknown;
            }
            field.run(min(1));
            let own = field.nodes["i007"].clone();
            for id in victims.iter().filter(|_| flash) {
                let other = showing(&field, "uuid", id);
                [&other, &own].into_iter().for_each(|node| patch(&mut field, node));
            }
            if hides {
                let its = field.nodes.get_mut("i007").unwrap();
                its.system_uuid = Some("made-up".into());
                its.addresses = Box::new(["100.64.0.9".parse().unwrap()]);
            }
            if restarts {
                field.run(min(1));
                field = off(field, Span::from_s(5), roster());
            }
            field.deaf = true;
            field.run(min(8 * 60));
            let repaired = victims.map(|id| touched(&field, id));
            let held =
                field.case("i003", FaultKind::NotReady).map(|_| field.held("i003", FaultKind::NotReady));
            found.push((flash, hides, restarts, repaired, held));
        }
    }
    assert!(found.iter().all(|(_, _, _, repaired, _)| repaired.iter().all(|it| *it)), "{found:#?}");
}

/// A machine is dead, and the kubelet of `i007` shows its UUID for a moment. Then a person drains the dead one, and its Node is
/// deleted while Reveille is restarted. Its own kubelet is dead and tells nothing.
#[test]
fn uuid_shown_once_hides_no_cordon_from_the_ledger() {
    let mut found = Vec::new();
    for flash in [false, true] {
        let mut field = fleet_of_40("uuid");
        field.nodes.get_mut("i003").unwrap().ready = Ready::Unknown;
        field.run(min(1));
        let own = field.nodes["i007"].clone();
        let other = showing(&field, "uuid", "i003");
        [&other, &own].into_iter().filter(|_| flash).for_each(|node| patch(&mut field, node));
        field.nodes.get_mut("i003").unwrap().cordoned = true;
        field.run(min(1));
        let last = field.now;
        field.now = field.now + min(1);
        field.nodes.remove("i003");
        let mut field = next(field, roster(), last);
        field.deaf = true;
        field.run(min(6 * 60));
        found.push((flash, made(&field)));
    }
    assert!(found.iter().all(|(_, made)| made.is_empty()), "{found:#?}");
}

/// A second Node stands for a machine, so nothing is done to it. Then the machine's own Node shows the UUID of another machine,
/// and the cloud puts the machine into ERROR (seed 8330502): only the second Node led to it, and it was deleted.
#[test]
fn uuid_of_another_leaves_a_machine_with_two_nodes_alone() {
    let mut found = Vec::new();
    for second in [false, true] {
        for ready in [Ready::True, Ready::Unknown] {
            let mut field = fleet_of_40("uuid");
            if second {
                let mut old = field.nodes["i003"].clone();
                (old.name, old.uid, old.ready) = ("i003-old".into(), "uid-old".into(), Ready::Unknown);
                field.nodes.insert("i003-old".into(), old);
            }
            field.run(min(10));
            let its = field.nodes.get_mut("i003").unwrap();
            (its.system_uuid, its.ready) = (Some("i004".into()), ready);
            field.run(min(5));
            field.instances.get_mut("i003").unwrap().state = InstanceState::Errored;
            field.run(min(60));
            found.push((second, ready, on(&field, "i003")));
        }
    }
    assert!(found.iter().all(|(second, _, calls)| !second || calls.is_empty()), "{found:#?}");
}

/// A person drained `i003`, deleted its Node and keeps it. The kubelet of `i007` shows all of it for so long that it would be the
/// machine's Node, and Reveille is restarted (seed 8430407): the drain was told as over.
#[test]
fn identity_shown_for_long_ends_no_removal_over_a_restart() {
    let mut found = Vec::new();
    for links in ["uuid", "address"] {
        for shown_for in [5, 15, 90] {
            for restarts in ["no", "amid", "after"] {
                let mut field = fleet_of_40(links);
                field.nodes.get_mut("i003").unwrap().cordoned = true;
                field.run(min(2));
                field.nodes.remove("i003");
                field.run(min(3));
                let own = field.nodes["i007"].clone();
                let mut other = showing(&field, links, "i003");
                other.addresses = field.ports["i003"].addresses.clone();
                if links == "address" {
                    other.system_uuid = Some("hardware-i003".into());
                }
                field.nodes.insert("i007".into(), other);
                field.run(min(shown_for));
                if restarts == "amid" {
                    field = off(field, min(1), roster());
                    field.run(min(shown_for));
                }
                field.nodes.insert("i007".into(), own);
                if restarts == "after" {
                    field = off(field, min(1), roster());
                }
                field.deaf = true;
                field.run(min(6 * 60));
                found.push((links, shown_for, restarts, on(&field, "i003")));
            }
        }
    }
    found.retain(|(.., calls)| !calls.is_empty());
    assert!(found.is_empty(), "(links, shown for, restarts, calls): {found:#?}");
}
