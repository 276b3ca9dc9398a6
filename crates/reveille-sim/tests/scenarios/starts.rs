//! The first readings of a process, in any order and up to half a minute apart.

use reveille_core::model::incident::FaultKind;
use reveille_core::record::Record;
use reveille_sim::drive::{Drive, Mishap};
use reveille_sim::world::fault::Fault;
use reveille_sim::world::layout::{FirstReads, Layout};

use crate::field::*;

fn any_order(seed: u64) -> Layout {
    let mut layout = Layout::fleet(seed, 8);
    layout.variety.first_reads = FirstReads::AnyOrder;
    layout
}

fn believed(field: &Field) -> bool {
    field.0.state().context().cluster.source.trust(field.0.now()).is_given()
}

fn opened(record: &Record) -> bool {
    let rests_on_nodes = [FaultKind::NeverJoined, FaultKind::Vanished];
    matches!(record, Record::Opened { key, .. } if rests_on_nodes.contains(&key.kind))
}

#[test]
fn healthy_fleet_is_calm_in_any_order_of_first_reads() {
    for seed in 1..=12 {
        let mut field = Field(Drive::new(&any_order(seed)).judged());
        field.run(min(5));
        field.0.mishap_in(s(1), Mishap::Crash(s(20)));
        field.run(min(5));
        assert!(believed(&field), "seed {seed}");
        assert_eq!(field.recorded(|record| matches!(record, Record::Opened { .. })), 0, "seed {seed}");
        field.ends_well();
    }
}

#[test]
fn empty_node_list_at_start_is_doubted_in_any_order() {
    for seed in 1..=12 {
        let mut field = Field(Drive::new(&any_order(seed)).judged());
        field.fault(Fault::NodesUnlisted(min(20)));
        field.run(min(18));
        assert!(!believed(&field), "seed {seed}");
        field.run(min(12));
        assert!(believed(&field), "seed {seed}");
        assert_eq!(field.recorded(opened), 0, "seed {seed}");
        field.ends_well();
    }
}

#[test]
fn another_cluster_behind_the_kubeconfig_is_refused() {
    for (seed, restarts) in [(1, false), (2, true), (3, false), (4, true), (5, true)] {
        let mut layout = any_order(seed).limits(|limits| {
            (limits.at_once, limits.per_hour, limits.freeze_above_pct) = (4, 40, 100);
        });
        layout.variety.identity = true;
        let mut field = Field(Drive::new(&layout).judged());
        field.run(min(3));
        if restarts {
            field.0.mishap_in(s(1), Mishap::Crash(min(1)));
        }
        field.fault_in(s(20), Fault::OtherCluster(min(50)));
        field.run(min(45));
        let why = field.0.state().context().cluster.source.trust(field.0.now()).to_string();
        assert!(why.starts_with("another cluster answers"), "seed {seed}: {why}");
        assert_eq!((field.recorded(opened), field.destructive()), (0, 0), "seed {seed}");
        assert_eq!(field.recorded(|record| matches!(record, Record::Cluster { .. })), 1, "seed {seed}");
        field.run(min(10));
        assert!(believed(&field), "seed {seed}");
        field.ends_well();
    }
}

#[test]
fn nodes_lost_with_restored_etcd_are_doubted_after_restart() {
    for seed in 1..=12 {
        let mut field = Field(Drive::new(&any_order(seed)).judged());
        field.run(min(3));
        let lost: Vec<_> = field.machines().split_off(3);
        field.0.mishap_in(s(1), Mishap::Crash(min(1)));
        field.fault_in(s(20), Fault::EtcdRestored(lost.clone()));
        field.run(min(9));
        assert!(!believed(&field), "seed {seed}");
        assert_eq!((field.recorded(opened), field.destructive()), (0, 0), "seed {seed}");
        // Each of them was denied by name: they are told as missing, and left to a person.
        field.run(min(31));
        assert!(believed(&field), "seed {seed}");
        assert_eq!((field.recorded(opened), field.destructive()), (lost.len(), 0), "seed {seed}");
        let now = field.0.now();
        lost.iter().for_each(|id| field.0.world.schedule_kubelet_restart(now, id));
        field.run(min(10));
        assert!(believed(&field), "seed {seed}");
        field.ends_well();
    }
}
