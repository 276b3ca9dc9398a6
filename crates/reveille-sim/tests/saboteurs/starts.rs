//! Safeguards of the first readings of a process: what a list of nodes is held against, whichever source answers first.

use reveille_core::safeguard::Safeguard;
use reveille_sim::drive::{Drive, Mishap};
use reveille_sim::world::fault::Fault;
use reveille_sim::world::layout::{FirstReads, Layout};
use reveille_sim::world::vm::Trouble;

use super::stories::{Stage, generous, min, s};

fn cloud_late(mut layout: Layout) -> Layout {
    layout.variety.first_reads = FirstReads::CloudLate;
    layout
}

/// Plays the safeguard's story under this seed to its end.
pub(crate) fn play(safeguard: Safeguard, seed: u64) -> Drive {
    match safeguard {
        // The kubeconfig leads to an empty API server, which answers at once; the cloud answers half a minute later.
        Safeguard::JudgedAgain => {
            let mut drive = Drive::new(&cloud_late(generous(seed, 6))).judged();
            drive.fault(Fault::NodesUnlisted(min(60)));
            drive.run_for(min(75));
            drive
        }
        // etcd is restored while no process runs: to the next one most machines never had a node.
        Safeguard::RememberedNodes => {
            let mut stage = Stage::new(&cloud_late(generous(seed, 6)));
            let machines = (0..4).map(|index| stage.id(index)).collect();
            stage.drive.mishap_in(s(10), Mishap::Crash(min(1)));
            stage.at(s(30), Fault::EtcdRestored(machines));
            stage.run(min(90))
        }
        // The same while a process runs: its list is doubted, and each missing node denied by name in the end.
        Safeguard::LostTogether => {
            let mut stage = Stage::new(&generous(seed, 6));
            let machines = (0..4).map(|index| stage.id(index)).collect();
            stage.at(s(30), Fault::EtcdRestored(machines));
            stage.run(min(90))
        }
        // The kubeconfig is exchanged for that of another cluster, which has a node of its own.
        Safeguard::SameCluster => {
            let mut layout = generous(seed, 6);
            layout.variety.identity = true;
            let mut stage = Stage::new(&layout);
            stage.drive.mishap_in(s(10), Mishap::Crash(min(1)));
            stage.at(s(30), Fault::OtherCluster(min(75)));
            stage.run(min(80))
        }
        // A new cluster whose first machine never joins: nothing shows that any could.
        _ => {
            let mut stage = Stage::new(&generous(seed, 0).pool(|pool| pool.min = 0));
            let trouble = Some(Trouble::Broken);
            stage.at(s(10), Fault::Launch { pool: "workers".into(), trouble });
            stage.run(min(90))
        }
    }
}
