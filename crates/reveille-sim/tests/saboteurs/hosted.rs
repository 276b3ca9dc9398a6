//! Stories of safeguards that stand between the engine and a cloud that tells how it hosts its machines.

use reveille_core::event::PauseScope;
use reveille_core::model::roster::Mode;
use reveille_core::safeguard::Safeguard;
use reveille_sim::drive::Drive;
use reveille_sim::world::fault::{CallLie, Fault};
use reveille_sim::world::layout::{Layout, PoolHosting};
use reveille_sim::world::vm::Trouble;

use super::stories::{Stage, generous, min, pause, s};

fn hosted(seed: u64, hosting: PoolHosting) -> Layout {
    // No agent runs there to be asked first.
    generous(seed, 12).pool(|pool| (pool.hosting, pool.repair.rejoin) = (Some(hosting), Mode::Off))
}

/// EC2 shows nothing of a reboot in place.
pub(crate) fn unseen(safeguard: Safeguard, seed: u64) -> Drive {
    let hosting = PoolHosting { group: true, through: true, ..PoolHosting::default() };
    let mut layout = hosted(seed, hosting);
    if safeguard == Safeguard::UnseenPatience {
        // Of bare metal: eight minutes pass before anything runs.
        layout.variety.boots_slowly = Some(min(8));
    }
    let mut stage = Stage::new(&layout);
    let first = stage.id(0);
    stage.at(s(10), Fault::Breaks(first.clone(), Trouble::KubeletHung));
    if safeguard == Safeguard::OwnProof {
        // The call is lost behind its answer, and a person repairs the machine meanwhile.
        stage.at(min(5), Fault::Call(CallLie::Ignored));
        let rebooted = |drive: &Drive| !drive.world.calls().is_empty();
        stage.drive.run_until(min(30), rebooted);
        let later = stage.drive.now() + min(2);
        stage.drive.world.schedule_kubelet_restart(later, &first);
    }
    stage.run(min(60))
}

pub(crate) fn play(safeguard: Safeguard, seed: u64) -> Drive {
    let plain = PoolHosting::default();
    match safeguard {
        // No kubelet runs there and no reboot helps: harder ones come next, and then its end.
        Safeguard::GroupKeeps => {
            let mut stage = Stage::new(&hosted(seed, PoolHosting { group: true, ..plain }));
            let first = stage.id(0);
            stage.at(s(10), Fault::Breaks(first, Trouble::Broken));
            stage.run(min(90))
        }
        // A user works on the machine, apart from its group.
        Safeguard::GroupHands => {
            let mut stage = Stage::new(&hosted(seed, PoolHosting { group: true, through: true, ..plain }));
            let first = stage.id(0);
            stage.at(s(10), Fault::PutApart(first.clone(), min(60)));
            stage.at(s(30), Fault::Breaks(first, Trouble::KubeletHung));
            stage.run(min(40))
        }
        // A person takes back that hands are off, a minute after the provider wanted the machine back.
        Safeguard::TakenBack => {
            let mut stage = Stage::new(&hosted(seed, PoolHosting { spot: true, ..plain }));
            let first = stage.id(0);
            stage.drive.set_pauses([pause(PauseScope::Roster)].into());
            stage.at(s(10), Fault::Breaks(first.clone(), Trouble::KubeletHung));
            stage.at(min(10), Fault::SpotTaken(first));
            stage.drive.run_for(s(680));
            stage.drive.set_pauses([].into());
            stage.run(min(20))
        }
        Safeguard::DisksKept => {
            let layout = hosted(seed, PoolHosting { loses_disks: true, ..plain });
            let mut stage = Stage::new(&layout.pool(|pool| pool.repair.replace = Mode::Off));
            let first = stage.id(0);
            stage.at(s(10), Fault::HostImpaired(first));
            stage.run(min(60))
        }
        // In the first minutes of its life a machine hangs, its cloud denies it, and no other client tidies up.
        _ => {
            let mut layout = hosted(seed, plain);
            layout.settles = Some(min(5));
            let mut stage = Stage::new(&layout);
            let first = stage.id(0);
            stage.at(s(1), Fault::ControllerDown(min(60)));
            stage.at(s(1), Fault::Breaks(first.clone(), Trouble::KubeletHung));
            stage.at(s(10), Fault::NotKnown(first, s(165)));
            stage.run(min(30))
        }
    }
}
