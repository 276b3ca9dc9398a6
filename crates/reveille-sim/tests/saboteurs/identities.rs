//! Stories of safeguards that stand between the engine and a wrong idea of who a machine is, or of what it was before.

use reveille_core::safeguard::Safeguard;
use reveille_sim::drive::Drive;
use reveille_sim::world::fault::Fault;
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
