//! Tells a whole story at once, with the engine and a ledger in memory: for tests, and for a dry look at a seed.

use std::collections::VecDeque;

use reveille_core::effect::Effect;
use reveille_core::engine::{Start, State};
use reveille_core::event::Event;
use reveille_core::model::id::Fence;
use reveille_core::model::time::{Span, Time};

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

/// What a story consists of.
#[derive(Clone, Copy, Debug)]
pub enum Part<'a> {
    /// A sentence about the simulated cluster.
    Sentence(&'a str),
    /// A step of the engine.
    Step(&'a Event, &'a [Effect]),
}

/// Plays the story of this seed. Records are durable the moment they are asked for.
pub fn rehearse(seed: u64) -> Rehearsal {
    let mut log = Log::new(Demo::new(seed).start());
    let mut digest = Digest::default();
    let (demo, state) = play(seed, None, &mut |at, told| match told {
        Part::Sentence(sentence) => log.push(at, sentence),
        Part::Step(event, effects) => {
            digest.step(at, event, effects, false);
            for effect in effects {
                log.push_effect(at, effect);
            }
        }
    });
    Rehearsal { summary: demo.summary(&state), log, digest }
}

/// Plays the first minutes of a story, or all of it, and tells `watch` each part. Returns the cluster and the engine as they are
/// then.
pub fn play(seed: u64, until: Option<Span>, watch: &mut dyn FnMut(Time, Part<'_>)) -> (Demo, State) {
    let judge = crate::catalogue::judge();
    let mut demo = Demo::new(seed);
    let end = until.map(|until| demo.start() + until);
    let mut state = State::new(demo.roster().clone(), Start { fence: Fence(1), acting: true });
    while let Some(moment) = demo.next_moment() {
        if end.is_some_and(|end| moment.at > end) {
            break;
        }
        for sentence in &moment.told {
            watch(moment.at, Part::Sentence(sentence));
        }
        let mut queue: VecDeque<Event> = moment.events.into();
        while let Some(event) = queue.pop_front() {
            let event = judge.heard(event);
            let effects = state.step(moment.at, event.clone());
            watch(moment.at, Part::Step(&event, &effects));
            demo.after_step(&state, &event, &effects);
            for effect in &effects {
                if let Effect::Record { id, .. } = effect {
                    queue.push_back(Event::Recorded(*id));
                }
                demo.perform(moment.at, effect);
            }
        }
    }
    (demo, state)
}
