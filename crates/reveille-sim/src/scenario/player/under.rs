//! The given state and the events of a scenario, under any policy; the expectations of Reveille are not checked.
//!
//! A statement about a machine that is gone has no effect: under another policy the machine may have been deleted, and its
//! successor has another name. A caller that wants to know what happened watches the drive.

use std::collections::{BTreeMap, BTreeSet};

use reveille_core::model::time::{Span, Time};

use super::Play;
use crate::drive::Drive;
use crate::policy::Policy;
use crate::scenario::Scenario;

/// Plays it under this policy, and shows the drive at the beginning, every so long, and at the end.
pub fn play_under(scenario: &Scenario, policy: Policy, every: Span, watch: &mut dyn FnMut(&Drive)) {
    let mut play = Play::new(scenario);
    play.drive.hand_to(policy);
    let mut events: BTreeMap<Time, Vec<_>> = BTreeMap::new();
    for event in &scenario.events {
        events.entry(play.start + event.at).or_default().push(event);
    }
    let end = play.start + scenario.ends;
    let mut moments: BTreeSet<Time> = events.keys().copied().filter(|at| *at <= end).collect();
    let beats = (1..).map(|beat: i64| play.start + Span::from_ms(every.ms * beat));
    moments.extend(beats.take_while(|at| *at < end));
    moments.insert(end);
    watch(&play.drive);
    for moment in moments {
        while play.drive.turn_before(moment) {
            play.cast.update(&play.drive);
        }
        play.cast.update(&play.drive);
        drop(play.drive.take_chronicle());
        for event in events.remove(&moment).unwrap_or_default() {
            // The statement names a machine that is gone: see above.
            let _passed_by = play.happen(event);
        }
        watch(&play.drive);
    }
}
