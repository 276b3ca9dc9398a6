//! What becomes of the times of planning when the clock jumps, or nothing was watched for a while (`model::jump`).

use crate::model::jump::Jump;

use super::budget::{Operation, Phase, Width};
use super::context::Case;

impl Case {
    /// Its times go over a jump.
    pub fn over(&mut self, jump: Jump) {
        let Self {
            incident,
            away_since,
            served_since,
            watched_from,
            resumed_at,
            outlasted,
            contested_since,
            gathered,
            due_after: _,
            rests_on_cluster: _,
            unreached: _,
            unmade: _,
            well_boot: _,
            lapsed: _,
            given_time: _,
        } = self;
        incident.over(jump);
        // For how long the machine had served is a difference of these two and of the first sight.
        jump.stands([away_since]);
        jump.stands(served_since);
        jump.counts([watched_from]);
        jump.counts(resumed_at);
        jump.counts(outlasted);
        jump.counts(contested_since);
        // What was read before a gap is as old as it is.
        jump.stands(&mut gathered.asked_at);
    }
}

impl Operation {
    /// Its times go over a jump.
    pub fn over(&mut self, jump: Jump) {
        let Self { phase, incident: _, key: _, repair_step: _, call: _, before: _, domain: _, counted: _ } =
            self;
        match phase {
            Phase::Recording => {}
            Phase::Calling { since } => jump.counts([since]),
            Phase::Verifying { deadline, unseen_until } => jump.ends([deadline, unseen_until]),
            Phase::Proving { deadline, since } => {
                jump.ends([deadline]);
                jump.counts([since]);
            }
        }
    }
}

impl Width {
    /// Its times go over a jump.
    pub fn over(&mut self, jump: Jump) {
        let Self { not_before, since, width: _, failures: _, proved: _ } = self;
        jump.ends(not_before);
        // Trust lapses in a gap.
        jump.stands([since]);
    }
}
