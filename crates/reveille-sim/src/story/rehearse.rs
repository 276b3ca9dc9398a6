//! Tells a whole story at once, with the engine and a ledger in memory: for tests, and for a dry look at a seed.

use reveille_core::effect::Effect;
use reveille_core::engine::{Start, State};
use reveille_core::event::Event;
use reveille_core::model::id::Fence;

use crate::trace::{Digest, Log};

use super::{Demo, Summary};

/// A story from beginning to end.
#[derive(Clone, Debug)]
pub struct Rehearsal {
    /// What it amounted to.
    pub summary: Summary,
    /// Lines for people.
    pub log: Log,
    /// Its bytes.
    pub digest: Digest,
}

/// Plays the story of this seed. Records are durable the moment they are asked for.
pub fn rehearse(seed: u64) -> Rehearsal {
    let judge = crate::catalogue::judge();
    let mut demo = Demo::new(seed);
    let mut state = State::new(demo.roster().clone(), Start { fence: Fence(1), acting: true });
    let mut log = Log::new(demo.start());
    let mut digest = Digest::default();
    while let Some(moment) = demo.next_moment() {
        for told in &moment.told {
            log.push(moment.at, told);
        }
        let mut queue: std::collections::VecDeque<Event> = moment.events.into();
        while let Some(event) = queue.pop_front() {
            let event = judge.heard(event);
            let effects = state.step(moment.at, event.clone());
            digest.step(moment.at, &event, &effects, false);
            demo.after_step(&state, &event, &effects);
            for effect in &effects {
                log.push_effect(moment.at, effect);
                if let Effect::Record { id, .. } = effect {
                    queue.push_back(Event::Recorded(*id));
                }
                demo.perform(moment.at, effect);
            }
        }
    }
    Rehearsal { summary: demo.summary(&state), log, digest }
}
