//! What the cluster's events say about nodes, in order, and about which object of a name.
//!
//! ```text
//!  watch ─▶ hear ─┐                   ┌─ another object of that name comes ──────────────┐
//!  read ─▶ read ──┴─▶ told, in order ─┴─ the object goes, and this was heard long before ─┴▶ former: never believed again
//! ```
//!
//! A node's name outlives its objects: a machine that was rebooted registers under the name that it had. What was said of the
//! object before it is not said of this one, however often the API repeats it within its hour.

use std::collections::VecDeque;

use crate::model::id::NodeName;
use crate::model::node::NodeEvent;
use crate::model::time::{Span, Time};

/// So many node events are remembered, and so many of former objects.
const EVENTS_MAX: usize = 1024;
/// What is said of a removal is said about when it happens. What was heard so long before an object was last known to be there
/// was said of another: after a restart, an hour of events is heard at once (seed 3107121: the Node went a minute later).
const ABOUT_THEN: Span = Span::from_min(1);

/// Everything that was said, oldest first.
#[derive(Clone, Debug, Default)]
pub(super) struct Sayings {
    told: VecDeque<Told>,
    /// Said of objects that went before the present or last one of their name.
    former: VecDeque<NodeEvent>,
    /// Names whose object went while this process watched, in the order of their going.
    gone: VecDeque<NodeName>,
}

/// An event, and when it was heard first.
#[derive(Clone, Debug)]
struct Told {
    at: Time,
    event: NodeEvent,
}

impl Sayings {
    /// The watch brings an event.
    pub(super) fn hear(&mut self, now: Time, event: NodeEvent) {
        if !self.told.iter().any(|told| told.event == event) && !self.former.contains(&event) {
            push(&mut self.told, Told { at: now, event });
        }
    }

    /// What the API still holds about a name, oldest first. The order of this list is the order in which it happened.
    pub(super) fn read(&mut self, now: Time, list: &[NodeEvent]) {
        for event in list.iter().filter(|event| !self.former.contains(event)) {
            let known = self.told.iter().position(|told| told.event == *event);
            let known = known.and_then(|place| self.told.remove(place));
            let told = known.unwrap_or_else(|| Told { at: now, event: event.clone() });
            push(&mut self.told, told);
        }
    }

    /// Another object has this name now.
    pub(super) fn succeeded(&mut self, name: &NodeName) {
        self.end(|told| told.event.node == *name);
    }

    /// The object of this name is gone; it was there at `last_there`, when the cluster was last heard before this.
    pub(super) fn gone(&mut self, last_there: Option<Time>, name: &NodeName) {
        self.gone.retain(|known| known != name);
        push(&mut self.gone, name.clone());
        let before = |told: &Told| last_there.is_some_and(|at| at.since(told.at) > ABOUT_THEN);
        self.end(|told| told.event.node == *name && before(told));
    }

    /// The last object of that name went while this process watched: what is remembered of its going is of that object.
    pub(super) fn saw_go(&self, name: &NodeName) -> bool {
        self.gone.contains(name)
    }

    fn end(&mut self, is_former: impl Fn(&Told) -> bool) {
        if !self.told.iter().any(&is_former) {
            return;
        }
        for told in std::mem::take(&mut self.told) {
            match is_former(&told) {
                true => push(&mut self.former, told.event),
                false => self.told.push_back(told),
            }
        }
    }

    /// Everything that was said of the present object of that name, or of the last one, oldest first.
    pub(super) fn about<'a>(&'a self, name: &'a NodeName) -> impl Iterator<Item = &'a NodeEvent> {
        self.told.iter().map(|told| &told.event).filter(move |event| event.node == *name)
    }
}

fn push<T>(kept: &mut VecDeque<T>, newest: T) {
    if kept.len() == EVENTS_MAX {
        kept.pop_front();
    }
    kept.push_back(newest);
}

#[cfg(test)]
mod tests {
    use super::*;

    fn event(word: &str) -> NodeEvent {
        NodeEvent {
            node: NodeName::from(&word[..1]),
            uid: None,
            reason: word[1..].into(),
            message: "".into(),
            reporter: "".into(),
            stamped: None,
        }
    }

    const fn min(at: i64) -> Time {
        Time::from_ms(at * 60_000)
    }

    fn about_a(sayings: &Sayings) -> Vec<String> {
        sayings.about(&NodeName::from("a")).map(|event| event.reason.to_string()).collect()
    }

    #[test]
    fn what_was_said_of_the_object_before_is_not_believed_again() {
        let mut sayings = Sayings::default();
        for word in ["a1", "b1", "a2"] {
            sayings.hear(min(0), event(word));
        }
        sayings.succeeded(&NodeName::from("a"));
        sayings.hear(min(1), event("a3"));
        sayings.read(min(1), &["a1", "a2", "a3"].map(event));
        sayings.hear(min(1), event("a2"));
        assert_eq!(about_a(&sayings), ["3"]);
    }

    #[test]
    fn what_is_read_stands_in_the_order_in_which_it_happened() {
        let mut sayings = Sayings::default();
        sayings.hear(min(0), event("a3"));
        sayings.hear(min(0), event("b9"));
        sayings.read(min(1), &["a1", "a2", "a3"].map(event));
        assert_eq!(about_a(&sayings), ["1", "2", "3"]);
    }

    #[test]
    fn what_was_heard_long_before_an_object_went_was_said_of_another() {
        let mut sayings = Sayings::default();
        sayings.hear(min(0), event("a1"));
        sayings.hear(min(30), event("a2"));
        sayings.gone(Some(min(31)), &NodeName::from("a"));
        sayings.read(min(32), &["a1", "a2", "a3"].map(event));
        assert_eq!(about_a(&sayings), ["2", "3"]);
    }

    #[test]
    fn what_was_heard_while_the_cluster_was_silent_may_be_of_the_object_that_went() {
        let mut sayings = Sayings::default();
        sayings.hear(min(9), event("a1"));
        sayings.gone(Some(min(2)), &NodeName::from("a"));
        assert_eq!(about_a(&sayings), ["1"]);
    }
}
