//! Stories of safeguards that stand between the engine and machines that a person has in hand, or whose cloud tells half.

use reveille_core::model::id::InstanceId;
use reveille_core::model::roster::Mode;
use reveille_core::safeguard::Safeguard;
use reveille_sim::drive::{Drive, Mishap};
use reveille_sim::world::fault::Fault;
use reveille_sim::world::hands::Hand;
use reveille_sim::world::layout::PoolHosting;
use reveille_sim::world::vm::Trouble;

use super::stories::{Stage, generous, min, s};

pub(crate) fn play(safeguard: Safeguard, seed: u64) -> Drive {
    match safeguard {
        // A person pauses a machine, renames its server to see which one it is, and its kubelet hangs.
        Safeguard::PausedByName => {
            // Its Node is called otherwise.
            let mut layout = generous(seed, 12);
            layout.variety.own_hardware = true;
            let mut stage = Stage::new(&layout);
            let first = stage.id(0);
            stage.drive.mishap_in(s(10), Mishap::HandsOff(first.clone(), min(180)));
            stage.at(min(3), Fault::ByHand(first.clone(), Hand::Renamed));
            stage.at(min(5), Fault::Breaks(first, Trouble::KubeletHung));
            stage.run(min(60))
        }
        // A person takes a broken machine out of its group, to find out what is wrong with it.
        Safeguard::TakenOut => {
            let hosting = PoolHosting { group: true, ..PoolHosting::default() };
            let layout = generous(seed, 12)
                .pool(|pool| (pool.hosting, pool.repair.rejoin) = (Some(hosting), Mode::Off));
            let mut stage = Stage::new(&layout);
            let first = stage.id(0);
            stage.at(s(10), Fault::Breaks(first.clone(), Trouble::Broken));
            stage.at(min(4), Fault::ByHand(first, Hand::Detached(min(240))));
            stage.run(min(120))
        }
        // A kubelet is dead, and a person drains its Node while we are upgraded, which takes four minutes.
        Safeguard::ShortGaps => {
            let mut stage = Stage::new(&generous(seed, 12));
            let first = stage.id(0);
            stage.at(s(10), Fault::Breaks(first.clone(), Trouble::KubeletHung));
            stage.drive.mishap_in(s(150), Mishap::Crash(min(4)));
            stage.at(s(160), Fault::Drained(first, min(240)));
            stage.run(min(120))
        }
        // Nodes share an address and nothing else with their machines. The cache of Nova lacks those of a new one for hours.
        _ => {
            let mut layout = generous(seed, 12);
            layout.variety.own_hardware = true;
            let mut stage = Stage::new(&layout);
            let ids = |drive: &Drive| -> Vec<InstanceId> {
                drive.world.machines().into_iter().filter(|m| m.pool.is_some()).map(|m| m.id).collect()
            };
            let before = ids(&stage.drive);
            stage.at(s(10), Fault::Launch { pool: "workers".into(), trouble: None });
            stage.drive.run_for(s(12));
            for new in ids(&stage.drive).into_iter().filter(|id| !before.contains(id)) {
                // A person renames its server, and its guest goes by the name before.
                stage.drive.fault(Fault::ByHand(new.clone(), Hand::Renamed));
                stage.drive.fault(Fault::ByHand(new, Hand::Unaddressed(min(600))));
            }
            stage.run(min(120))
        }
    }
}
