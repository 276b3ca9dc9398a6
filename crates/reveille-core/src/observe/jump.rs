//! What becomes of the times of what was seen when the clock jumps, or nothing was watched for a while (`model::jump`).

use crate::model::jump::Jump;

use super::cloud::{CloudView, Left, Seen, Unlisted};
use super::remembered::Remembered;

impl CloudView {
    /// The times of its instances go over a jump, and when it was listed. Those of its source have their own rule: sight begins
    /// from zero (`Source::restart_sight`).
    pub fn over(&mut self, jump: Jump) {
        jump.counts(&mut self.first_listed);
        // The cloud's own clock at that time is known.
        jump.stands([&mut self.listed_at]);
        self.instances.values_mut().for_each(|seen| seen.over(jump));
    }
}

impl Remembered {
    /// Its times go over a jump.
    pub fn over(&mut self, jump: Jump) {
        let Self { left, born, node: _, pool: _, signs: _, disowned: _, lost_together: _ } = self;
        jump.stands(left.as_mut().map(|left| &mut left.at));
        // Against the time for which events live, as that of a machine in sight.
        jump.stands(born);
    }
}

impl Seen {
    fn over(&mut self, jump: Jump) {
        let Self {
            first_seen,
            known_since,
            left,
            state_since,
            silent_since,
            task_since,
            released,
            released_before,
            rested_at,
            unlisted,
            awaits_word_until,
            instance: _,
            claim: _,
            of_pool: _,
            ports: _,
            nodes: _,
            joined: _,
            joined_uid: _,
            was_ready: _,
            signs: _,
            born_in_sight: _,
            born_kept: _,
            may_have_served: _,
            came_late: _,
            is_unaccounted: _,
            made_meanwhile: _,
            released_by_boot: _,
            paused_as: _,
            addresses: _,
        } = self;
        // For how long the cloud may deny what is new to it.
        jump.counts([first_seen]);
        // Against the time for which events live, by the clock of the API server.
        jump.stands([known_since]);
        jump.stands(left.as_mut().map(|left| {
            let Left { at, sign: _ } = &mut **left;
            at
        }));
        // How long it was building or leaving is not known: `State::keep_time` begins that from zero.
        jump.stands([state_since]);
        jump.stands(silent_since);
        // One that was given back just before has the time of a boot, whatever the clock says now.
        jump.counts([task_since]);
        jump.counts(released);
        jump.counts(released_before);
        jump.ends(awaits_word_until);
        // Against our attempts, by the cloud's own clock.
        jump.stands(rested_at);
        if let Some(Unlisted { since, last_denial, denials: _ }) = unlisted {
            jump.counts([since]);
            jump.counts(last_denial);
        }
    }
}
