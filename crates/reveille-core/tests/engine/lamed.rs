//! What a tenant with few rights can write must not block the repair of machines of other tenants.

use std::sync::Arc;

use reveille_core::model::incident::FaultKind;
use reveille_core::model::instance::{Instance, Mark};
use reveille_core::model::node::{Provider, Ready};
use reveille_core::model::time::Span;

use super::fixture::{Field, instance, node, roster};

/// Ten machines, one of which is silent. What is done to it has no effect, so that every repair step is taken.
fn one_is_dead() -> Field {
    let mut field = Field::new(roster()).populate(10);
    field.run(Span::from_min(30));
    field.nodes.get_mut("i009").unwrap().ready = Ready::Unknown;
    field.silent.push("i009".into());
    field.deaf = true;
    field
}

fn is_repaired(field: &Field) {
    assert!(field.destructive_calls() >= 3, "{:?}: {}", field.calls, field.held("i009", FaultKind::NotReady));
}

/// A kubelet writes its own version. One that changes it every 13 minutes made its pool roll without end.
#[test]
fn version_flapping_by_one_kubelet_is_no_endless_rollout() {
    let mut field = one_is_dead();
    for n in 0..28 {
        let version = if n % 2 == 0 { format!("v9.9.{n}") } else { "v1.36.3".to_owned() };
        field.nodes.get_mut("i000").unwrap().kubelet = Some(version.into());
        field.run(Span::from_min(13));
    }
    is_repaired(&field);
}

/// A bastion of no pool is made and deleted, by a person or by an autoscaler whose pool the roster does not name.
#[test]
fn instances_of_no_pool_that_come_and_go_hold_no_pool() {
    for (many, minutes) in [(1, 9), (6, 4)] {
        let mut field = one_is_dead();
        for n in 0..40 {
            let ids: Vec<String> = (0..many).map(|k| format!("s{n:02}{k}")).collect();
            for id in &ids {
                let marks = Arc::new([Mark::Tag("k8s-cluster=prod".into())].into());
                field.instances.insert(id.clone(), Instance { marks, ..instance(id) });
            }
            field.run(Span::from_min(2));
            for id in &ids {
                field.instances.remove(id);
            }
            field.run(Span::from_min(minutes - 2));
        }
        is_repaired(&field);
    }
}

/// A client with the right to create Nodes makes a second one for each of four machines that serve.
#[test]
fn second_nodes_of_machines_that_serve_freeze_nothing() {
    let mut field = one_is_dead();
    for id in ["i000", "i001", "i002", "i003"] {
        let mut second = node(id, Ready::Unknown);
        (second.name, second.uid) =
            (format!("zz-{id}").as_str().into(), format!("u-zz-{id}").as_str().into());
        field.nodes.insert(format!("zz-{id}"), second);
        field.silent.push(format!("zz-{id}"));
    }
    field.run(Span::from_min(360));
    is_repaired(&field);
}

/// Nodes of another owner's pool, which is down: its leases say nothing of this fleet.
#[test]
fn silent_nodes_that_stand_for_no_machine_make_no_fleet_dark() {
    let mut field = one_is_dead();
    for n in 0..15 {
        let id = format!("f{n:03}");
        let mut other = node(&id, Ready::Unknown);
        other.provider = Provider::Unset;
        field.nodes.insert(id.clone(), other);
        field.silent.push(id);
    }
    field.run(Span::from_min(360));
    is_repaired(&field);
}

/// A kubelet writes another machine's address into its own status.
#[test]
fn addresses_forged_by_a_kubelet_block_no_repair_of_others() {
    let mut field = one_is_dead();
    for (id, last) in [("i000", 1), ("i009", 9)] {
        field.instances.get_mut(id).unwrap().addresses = Box::new([[10, 1, 0, last].into()]);
    }
    field.nodes.get_mut("i000").unwrap().addresses = Box::new([[10, 1, 0, 1].into(), [10, 1, 0, 9].into()]);
    field.run(Span::from_min(360));
    is_repaired(&field);
}
