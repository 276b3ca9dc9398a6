//! Judges acts on machines that a provider or a group of its cloud handles, and what stopping one of them would cost.
//!
//! The loss of a machine's disks is harm, and the world counts it. This module judges acts that a careful operator would have
//! left to the provider or the group. A fact counts as known once a listing came after the provider's statement.

use reveille_core::effect::Call;
use reveille_core::model::hosting::Check;
use reveille_core::model::time::Span;
use reveille_core::remedies::Reboot;

use crate::world::ground_truth::GroundTruth;
use crate::world::is_in_other_hands;

use super::{Oracle, Scene};

/// The longest that a listing is on its way.
const LISTED_AFTER: Span = Span::from_s(3);

impl Oracle {
    pub(super) fn judge_hosting(&mut self, call: &Call, ground_truth: &GroundTruth, scene: &Scene<'_>) {
        let Some(hosting) = &ground_truth.hosting else { return };
        let whole = matches!(call, Call::Reboot(_) | Call::Start(_) | Call::DeleteInstance(_));
        let listed = self.cloud_heard.is_some_and(|at| at > ground_truth.changed_at + LISTED_AFTER);
        // A lie about servers hides what else is so of them.
        let told = listed && !scene.world.cloud_is_silent();
        if whole && told && is_in_other_hands(hosting) {
            self.foul("in other hands", call.to_string());
        }
        let stops = matches!(call, Call::Start(_) | Call::Reboot(Reboot { hard: true, .. }));
        if let Some(group) = &hosting.group {
            if stops {
                self.foul("its group replaces what stops", format!("{call}: {group}"));
            }
            let pool = ground_truth.pool.as_ref().and_then(|name| scene.roster.pools.get(name));
            let through = pool.is_some_and(|pool| pool.through_group) && !group.protected;
            if matches!(call, Call::DeleteInstance(_)) && !through {
                self.foul("left to its group", format!("{call}: {group}"));
            }
        }
        let stays = matches!(call, Call::Reboot(Reboot { hard: false, .. }));
        if stays && told && hosting.checks.host == Check::Impaired && hosting.group.is_none() {
            self.foul("of no use", format!("{call}: it stays on a host that is impaired"));
        }
    }
}
