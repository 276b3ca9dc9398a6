//! Operators who have a machine in hand, as Nova shows it.
//!
//! ```text
//!  rescue   ─▶ action `rescue`,   state RESCUE (no task), the guest is off: another system runs in its place
//!  unrescue ─▶ action `unrescue`, state ACTIVE, the guest boots; what was wrong inside it is repaired
//! ```
//!
//! Sources: Compute API, "Rescue server" and "Unrescue server"; nova `nova/compute/instance_actions.py`, `nova/compute/api.py`
//! (`rescue`, `unrescue`). When a person last let a machine boot is kept for the oracle.

use std::collections::BTreeMap;

use reveille_core::model::id::InstanceId;
use reveille_core::model::instance::InstanceState;
use reveille_core::model::time::{Span, Time};

use super::World;
use super::fault::Fault;
use super::trouble::Bites;
use super::vm::Trouble;

/// EC2 resets a guest within this that does not shut down when it is asked to.
const RESETS_WITHIN: Span = Span::from_min(5);
/// An operator who is called away in the middle of it comes back after this.
const RESCUE: Span = Span::from_min(30);

/// Machines that a person let boot.
#[derive(Clone, Debug, Default)]
pub(crate) struct Operators {
    let_boot: BTreeMap<InstanceId, Time>,
}

impl World {
    /// It runs, no user works on it, and its cloud has a rescue mode.
    fn can_be_rescued(&self, id: &InstanceId) -> bool {
        let server = self.project.servers.get(id);
        server.is_some_and(|server| server.instance.runs_freely()) && !self.is_hosted(id)
    }

    /// Just before a call arrives.
    pub(super) fn rescue_first(&mut self, id: &InstanceId) {
        if self.can_be_rescued(id) {
            self.inject(Fault::Rescued(id.clone(), RESCUE));
        }
    }

    pub(super) fn rescue(&mut self, id: &InstanceId) {
        if self.can_be_rescued(id) {
            self.project.note(self.now, id, "rescue", "erin");
            self.project.set_state(self.now, id, InstanceState::Other, None);
            self.power_off(id);
        }
    }

    pub(super) fn unrescue(&mut self, id: &InstanceId) {
        let rescued = self.project.servers.get(id).map(|server| server.instance.state);
        if rescued != Some(InstanceState::Other) {
            return;
        }
        self.project.note(self.now, id, "unrescue", "erin");
        // Neither a port that is not wired nor a first boot that failed is inside.
        let stays = |trouble: &Trouble| matches!(trouble.bites(), Bites::Wire | Bites::FirstBoot);
        if let Some(vm) = self.vms.get_mut(id) {
            vm.trouble = vm.trouble.filter(stays);
        }
        self.run_again(id);
        self.note_let_boot(id);
    }

    /// A person lets it boot now.
    pub(super) fn note_let_boot(&mut self, id: &InstanceId) {
        self.operators.let_boot.insert(id.clone(), self.now);
    }

    /// A person let it boot then, in a cloud that shows nothing of that: its Node comes back with another boot id. No client can
    /// tell whose reboot that was: ours, whose answer was lost, or that person's (seed 3400119).
    pub(crate) fn is_let_boot_unseen(&self, id: &InstanceId, boot: Time) -> bool {
        let at = self.operators.let_boot.get(id).filter(|_| self.is_hosted(id));
        at.is_some_and(|at| boot.since(*at) <= RESETS_WITHIN)
    }

    /// When a person last let this machine boot, in a cloud that shows it.
    pub(crate) fn let_boot_at(&self, id: &InstanceId) -> Option<Time> {
        self.operators.let_boot.get(id).copied().filter(|_| !self.is_hosted(id))
    }
}
