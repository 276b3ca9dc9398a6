//! Stories of safeguards that stand between the engine and a wrong idea of who a machine is, or of what it was before.

use reveille_core::safeguard::Safeguard;
use reveille_sim::drive::Drive;
use reveille_sim::world::fault::{Fault, Shows};
use reveille_sim::world::vm::Trouble;

use super::stories::{Stage, generous, min, s};

pub(crate) fn play(safeguard: Safeguard, seed: u64) -> Drive {
    match safeguard {
        // The owner makes another machine of the same name, and its kubelet takes the Node of the one before over.
        Safeguard::SharedIdentity => {
            let mut layout = generous(seed, 12);
            layout.variety.adopts = true;
            let mut stage = Stage::new(&layout);
            let first = stage.id(0);
            stage.at(s(10), Fault::Remade(first, min(50)));
            stage.run(min(75))
        }
        // A person drains and deletes a Node, looks at the machine for an hour, and deletes it.
        Safeguard::Drained => {
            let mut stage = Stage::new(&generous(seed, 12));
            let first = stage.id(0);
            stage.at(s(10), Fault::Drained(first, min(60)));
            stage.run(min(75))
        }
        // Nodes name no instance, as with k3s. A person drains one and looks at its machine for an hour, and the kubelet of
        // another machine shows that machine's UUID for half a minute.
        Safeguard::OwnHome => {
            let mut layout = generous(seed, 12);
            layout.variety.k3s = true;
            let mut stage = Stage::new(&layout);
            let (liar, of) = (stage.id(1), stage.id(0));
            stage.at(s(10), Fault::Drained(of.clone(), min(90)));
            stage.at(min(15), Fault::ShowsIdentity { liar, of, shows: Shows::Uuid, lasts: s(30) });
            stage.run(min(105))
        }
        // A machine that is older than the watch, whose token has expired since it joined, gets its marks while we run.
        _ => {
            let mut layout = generous(seed, 12);
            layout.nodeless = vec![Trouble::BadToken];
            layout.variety.unmarked = 1;
            let mut stage = Stage::new(&layout);
            for index in 0..12 {
                let machine = stage.id(index);
                stage.at(min(3), Fault::Marked(machine));
            }
            stage.run(min(90))
        }
    }
}
