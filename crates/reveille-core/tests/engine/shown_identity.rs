//! A kubelet that shows the identity of other machines for a moment, now and then, or in place of its own.

use reveille_core::model::node::{Node, Ready};
use reveille_core::model::time::Span;
use reveille_core::record::Record;

use super::fixture::{Field, roster, stamp};
use super::steps::{made, min, next, patch, say, set, touched};

/// Forty machines, of which each Node shows the UUID and the address of its machine.
fn fleet() -> Field {
    let mut field = Field::new(roster()).populate(40);
    for (id, node) in &mut field.nodes {
        node.system_uuid = Some(id.as_str().into());
        node.addresses = field.ports[id].addresses.clone();
    }
    for (id, instance) in &mut field.instances {
        instance.addresses = field.ports[id].addresses.clone();
    }
    field.run(min(20));
    field
}

/// The Node of `i007`, as its kubelet writes it: it shows these machines instead of its own.
fn shows(field: &Field, how: &str, victims: &[&str]) -> Node {
    let mut node = field.nodes["i007"].clone();
    if how == "uuid" {
        node.system_uuid = Some(victims[0].into());
    } else {
        node.system_uuid = None;
        node.addresses = victims.iter().map(|id| field.ports[*id].addresses[0]).collect();
    }
    node
}

/// The kubelet of `i007` flips between its own identity and that of others, fifty times a second.
#[test]
fn flips_of_a_shown_identity_fill_no_ledger() {
    let mut told = Vec::new();
    for (how, victims) in [
        ("uuid", &["i004"][..]),
        ("address", &["i004"]),
        ("address", &["i003", "i004", "i005"]),
        ("own", &["i004"]),
    ] {
        let mut field = fleet();
        if how == "own" {
            set(&mut field, "i007", Ready::False);
        } else {
            victims.iter().for_each(|id| set(&mut field, id, Ready::Unknown));
        }
        field.run(min(1));
        let own = field.nodes["i007"].clone();
        let other = shows(&field, if how == "own" { "uuid" } else { how }, victims);
        let before = field.records.len();
        for _ in 0..250 {
            patch(&mut field, &other);
            patch(&mut field, &own);
        }
        let opened = field.records[before..].iter().filter(|it| matches!(it, Record::Opened { .. })).count();
        let bytes: usize =
            field.records[before..].iter().map(|it| serde_json::to_vec(it).unwrap().len()).sum();
        told.push((how, victims.len(), field.records.len() - before, opened, bytes));
    }
    assert!(
        told.iter().all(|(_, _, records, ..)| *records < 100),
        "in ten seconds (how, victims, records, opened, bytes): {told:#?}"
    );
}

/// It shows the identity of each dead machine in turn for ten seconds, and its own otherwise.
#[test]
fn identity_shown_now_and_then_ends_no_repair() {
    let mut found = Vec::new();
    for how in ["none", "uuid", "address"] {
        for every in [20, 120] {
            for victims in [&["i004"][..], &["i003", "i004", "i005"]] {
                let mut field = fleet();
                field.deaf = true;
                victims.iter().for_each(|id| set(&mut field, id, Ready::Unknown));
                field.run(min(1));
                let own = field.nodes["i007"].clone();
                let end = field.now + min(4 * 60);
                let mut turn = 0;
                while field.now < end {
                    let victim = victims[turn % victims.len()];
                    turn += 1;
                    if how != "none" {
                        let other = shows(&field, how, &[victim]);
                        field.nodes.insert("i007".into(), other);
                    }
                    field.run(Span::from_s(10));
                    field.nodes.insert("i007".into(), own.clone());
                    field.run(Span::from_s(every - 10));
                }
                let repaired = victims.iter().filter(|id| touched(&field, id)).count();
                let deleted = made(&field).iter().filter(|call| call.starts_with("delete")).count();
                found.push((how, every, victims.len(), repaired, deleted, field.records.len()));
            }
        }
    }
    let fine = found.iter().all(|(_, _, victims, repaired, ..)| victims == repaired);
    assert!(fine, "(how, every, victims, touched, deleted, records): {found:#?}");
}

/// It shows the addresses of 30 machines and nothing of its own, all the time. With its own address beside them it ends no
/// repair.
#[test]
fn addresses_of_many_machines_contest_none() {
    let mut found = Vec::new();
    for (what, with_own) in [("dead", true), ("dead", false), ("never joined", true), ("never joined", false)]
    {
        let mut field = fleet();
        let victims: Vec<String> = match what {
            "dead" => ["i003", "i004", "i005"].map(str::to_owned).to_vec(),
            _ => ["n1", "n2", "n3"].map(str::to_owned).to_vec(),
        };
        for id in &victims {
            if what == "dead" {
                set(&mut field, id, Ready::Unknown);
            } else {
                field.add_machine(id, false);
                field.instances.get_mut(id).unwrap().addresses = field.ports[id].addresses.clone();
            }
        }
        let mut addresses: Vec<_> = victims.iter().map(|id| field.ports[id].addresses[0]).collect();
        addresses.extend((10..36).map(|number| field.ports[&format!("i{number:03}")].addresses[0]));
        let its = field.nodes.get_mut("i007").unwrap();
        its.system_uuid = None;
        if with_own {
            addresses.extend(its.addresses.iter().copied());
        }
        its.addresses = addresses.into_iter().collect();
        field.deaf = true;
        field.run(min(6 * 60));
        let repaired = victims.iter().filter(|id| touched(&field, id)).count();
        found.push((what, with_own, repaired));
    }
    assert!(
        found.iter().all(|(.., repaired)| *repaired == 3),
        "(what, with its own address, of 3 touched): {found:#?}"
    );
}

/// The kubelet of `i007` shows the UUID of this machine for a moment, and its own again.
fn flash(field: &mut Field, id: &str) {
    let own = field.nodes["i007"].clone();
    let mut other = own.clone();
    other.system_uuid = Some(id.into());
    patch(field, &other);
    patch(field, &own);
}

fn replaced(field: &Field, id: &str) -> bool {
    made(field).iter().any(|call| *call == format!("delete instance {id}"))
}

/// An old machine gets its pool's marks: what it did before is not known, so that it is never replaced.
#[test]
fn uuid_shown_for_a_moment_gives_no_machine_a_history() {
    let mut found = Vec::new();
    for how in ["nothing", "flash", "flash, goes", "minute", "minute, goes", "address"] {
        let mut field = fleet();
        let at = field.now - min(15);
        field.add_machine("old", false);
        field.instances.get_mut("old").unwrap().created = Some(stamp(at));
        field.deaf = true;
        field.run(min(2));
        if how.starts_with("flash") {
            flash(&mut field, "old");
        }
        if how.starts_with("minute") || how == "address" {
            let own = field.nodes["i007"].clone();
            let other = shows(&field, if how == "address" { how } else { "uuid" }, &["old"]);
            field.nodes.insert("i007".into(), other);
            field.run(min(1));
            field.nodes.insert("i007".into(), own);
        }
        field.run(min(5));
        if how.ends_with("goes") {
            field.delete_machine("i007");
            field.nodes.remove("i007");
        }
        field.run(min(6 * 60));
        found.push((
            how,
            replaced(&field, "old"),
            made(&field).into_iter().filter(|it| it.ends_with(" old")).collect::<Vec<_>>(),
        ));
    }
    assert!(found.iter().all(|(_, is_replaced, _)| !is_replaced), "{found:#?}");
}

/// It was made, joined and was drained while no process ran; only its kubelet's event tells. The Node of `i007` shows its UUID
/// when the next process begins.
#[test]
fn uuid_shown_at_a_start_hides_no_drain() {
    let mut found = Vec::new();
    for how in ["nothing", "shown", "shown, goes", "flash", "before"] {
        let mut field = fleet();
        let last = field.now;
        field.now = field.now + min(5);
        field.add_machine("new", false);
        field.now = field.now + min(40);
        let mut field = next(field, roster(), last);
        field.deaf = true;
        let own = field.nodes["i007"].clone();
        if how.starts_with("shown") {
            let other = shows(&field, "uuid", &["new"]);
            field.nodes.insert("i007".into(), other);
        }
        if how == "before" {
            field.list_cloud();
        }
        field.sync_nodes();
        if how == "flash" || how == "before" {
            field.list_cloud();
            flash(&mut field, "new");
        }
        let now = field.now;
        say(&mut field, "node-new", "NodeNotSchedulable", None, now);
        field.run(min(2));
        field.nodes.insert("i007".into(), own);
        field.run(min(5));
        if how.ends_with("goes") {
            field.delete_machine("i007");
            field.nodes.remove("i007");
        }
        field.run(min(6 * 60));
        found.push((how, made(&field).into_iter().filter(|it| it.ends_with(" new")).collect::<Vec<_>>()));
    }
    assert!(found.iter().all(|(_, made)| made.is_empty()), "{found:#?}");
}
