//! Node objects that a client updates in a loop, found through the node watch, without requests of its own.
//!
//! ```text
//!  each node that the watch brings ─▶ reveille_hot::State ─▶ a line in the log when one becomes hot, and when it is over
//! ```
//!
//! The hook sends no request: a healthy cluster costs one map lookup for each change of a node. The hook does not find which
//! client writes and which fields flip; `reveille hot` does.

use std::sync::{Mutex, PoisonError};

use reveille_core::model::id::NodeName;
use reveille_core::model::time::Time;
use reveille_hot::{Effect, Event, Object, Resource, Settings, State, Verdict};
use tokio::time::Instant;

/// The nodes' detector of one cluster.
pub(crate) struct HotObjectHook {
    since: Instant,
    nodes: Resource,
    state: Mutex<State>,
}

impl Default for HotObjectHook {
    fn default() -> Self {
        // Nothing is followed: each verdict is told with what the watch tells.
        let settings = Settings { followed_max: 0, ..Settings::default() };
        let state = Mutex::new(State::new(settings, false));
        Self { since: Instant::now(), nodes: Resource::new("", "nodes"), state }
    }
}

impl HotObjectHook {
    fn now(&self) -> Time {
        Time::default() + self.since.elapsed().into()
    }

    /// The watch brought this node once more.
    pub(crate) fn written(&self, name: &NodeName) {
        let object = Object::new(self.nodes.clone(), "", name.as_str());
        self.step(Event::Written(object));
    }

    /// Time has passed.
    pub(crate) fn pass(&self) {
        self.step(Event::Tick);
    }

    fn step(&self, event: Event) {
        let now = self.now();
        let effects = self.state.lock().unwrap_or_else(PoisonError::into_inner).step(now, event);
        for effect in effects {
            match effect {
                Effect::Opened(verdict) => {
                    let rate = verdict.rates.first().map(ToString::to_string).unwrap_or_default();
                    let kind = &self.nodes;
                    tracing::warn!(
                        "cluster: {} is hot: {rate}. Who writes it: reveille hot --kind {kind}",
                        verdict.subject
                    );
                }
                Effect::Closed(subject) => tracing::info!("cluster: {subject} is hot no more"),
                Effect::Changed(_) | Effect::Follow(_) | Effect::Unfollow(_) | Effect::ReadBeside { .. } => {}
            }
        }
    }

    /// What is hot now.
    pub(crate) fn verdicts(&self) -> Vec<Verdict> {
        let now = self.now();
        self.state.lock().unwrap_or_else(PoisonError::into_inner).verdicts(now)
    }
}
