//! What the cluster's Events say about Nodes, in order, and which object of a name each Event is about.
//!
//! ```text
//!  watch ─▶ hear ─┐                   ┌─ another object of that name comes ──────────────┐
//!  read ─▶ read ──┴─▶ told, in order ─┴─ the object goes, and this was heard long before ─┴▶ former: never believed again
//!                          └─ names the uid of this object ─▶ about it, whenever it was heard
//! ```
//!
//! A node's name outlives its objects: a machine that was rebooted registers under the name that it had. What was said of the
//! object before it is not said of this one, however often the API repeats it within its hour. Controllers name the object's uid
//! (kubernetes `pkg/controller/util/node`, `RecordNodeEvent`; cloud-provider `controllers/nodelifecycle`, `MonitorNodes`). The
//! kubelet writes the node's name in its place, so that its events are told apart by the removals between them.

use std::collections::VecDeque;

use crate::model::id::{NodeName, NodeUid};
use crate::model::node::NodeEvent;
use crate::model::time::{Span, Time};

/// So many node events are remembered, and so many of former objects.
const EVENTS_MAX: usize = 1024;
/// So many are remembered of one node: what one kubelet writes does not push out what is said of others.
const OF_NODE_MAX: usize = 32;
/// What is said of a removal is said about when it happens. What was heard so long before an object was last known to be there
/// was said of another: after a restart, an hour of events is heard at once (seed 3107121: the Node went a minute later).
const ABOUT_THEN: Span = Span::from_min(1);

/// Everything that was said, oldest first.
#[derive(Clone, Debug, Default)]
pub(super) struct NodeEvents {
    told: VecDeque<Told>,
    /// Said of objects that went before the present or last one of their name.
    former: VecDeque<NodeEvent>,
    /// Names whose object went while this process watched, in the order of their going, and the last one's uid.
    gone: VecDeque<(NodeName, NodeUid)>,
}

/// An event, and when it was heard first.
#[derive(Clone, Debug)]
struct Told {
    at: Time,
    event: NodeEvent,
}

impl NodeEvents {
    /// The watch brings an event.
    pub(super) fn hear(&mut self, now: Time, event: NodeEvent) {
        if !self.told.iter().any(|told| told.event == event) && !self.former.contains(&event) {
            self.keep(Told { at: now, event });
        }
    }

    /// The oldest about the same node makes room, or the oldest of all. The last word of a cordon stays as long as it may: each
    /// kubelet may write events about every node, and 31 of them pushed it out.
    fn keep(&mut self, told: Told) {
        let is_its = |other: &&Told| other.event.node == told.event.node;
        if self.told.iter().filter(is_its).count() + 1 >= OF_NODE_MAX {
            let cordon = self.told.iter().rposition(|other| is_its(&other) && other.event.is_cordon());
            let mut places = self.told.iter().enumerate().filter(|(_, other)| is_its(other));
            let oldest = places.find(|(place, _)| Some(*place) != cordon).map(|(place, _)| place);
            oldest.and_then(|place| self.told.remove(place));
        }
        push(&mut self.told, told);
    }

    /// What the API still holds about a name, oldest first. The order of this list is the order in which it happened.
    pub(super) fn read(&mut self, now: Time, list: &[NodeEvent]) {
        for event in list {
            if self.former.contains(event) {
                continue;
            }
            let known = self.told.iter().position(|told| told.event == *event);
            let known = known.and_then(|place| self.told.remove(place));
            let told = known.unwrap_or_else(|| Told { at: now, event: event.clone() });
            self.keep(told);
        }
    }

    /// An object of this name is seen that was not there before. Where this process watched another one go, all that kubelets
    /// said was said of that one. Where it did not, the object may be older than the process, and what was said since the last
    /// removal was said of this one (seed 3480990: the cordon was heard before the first list that showed the Node).
    pub(super) fn succeeded(&mut self, name: &NodeName, uid: &NodeUid) {
        let follows_another = self.gone_uid(name).is_some_and(|gone| gone != uid);
        // Where it went in our sight, what was said before is said of that one. Of a removal that was only told, the same holds
        // for all but a cordon: each client may write one, and a drained machine was rebooted and deleted.
        let is_former =
            |told: &Told, is_before: bool| follows_another || is_before && !told.event.is_cordon();
        self.end_what_is_of_another(name, uid, is_former, |_| true);
    }

    /// The object of this name is gone; it was there at `last_there`, when the cluster was last heard before this. That moment
    /// says little of what was heard before it: the list that still showed the object may have been an old one (seeds 3200693
    /// and 3205239). So it counts only for removals that name no uid.
    pub(super) fn gone(&mut self, last_there: Option<Time>, name: &NodeName, uid: &NodeUid) {
        self.gone.retain(|(known, _)| known != name);
        push(&mut self.gone, (name.clone(), uid.clone()));
        let long_before = |told: &Told| last_there.is_some_and(|at| at.since(told.at) > ABOUT_THEN);
        let is_former =
            |told: &Told, is_before: bool| is_before && (!told.event.is_cordon() || long_before(told));
        self.end_what_is_of_another(name, uid, is_former, long_before);
        self.take_cordons_back(last_there, name);
    }

    /// Each client may write that a node was uncordoned. That takes a cordon back where the object was there for a while after
    /// that, so that it was seen whether it was cordoned. A machine that was drained while no process looked was rebooted and
    /// deleted after one such event.
    fn take_cordons_back(&mut self, last_there: Option<Time>, name: &NodeName) {
        let is_seen = |at: &Time| last_there.is_some_and(|there| there.since(*at) > ABOUT_THEN);
        let is_seen_uncordon =
            |told: &Told| told.event.node == *name && told.event.is_uncordon() && is_seen(&told.at);
        let Some(last) = self.told.iter().rposition(is_seen_uncordon) else { return };
        // A process hears an hour of events at once: their order is kept, and their own stamps are of one kubelet.
        let stamped = self.told.get(last).and_then(|told| told.event.stamp());
        let mut until_last = last + 1;
        self.end(|told| {
            let is_before = until_last > 0;
            until_last = until_last.saturating_sub(1);
            let is_of_cordon = told.event.is_cordon() || told.event.is_uncordon();
            let is_later = told.event.stamp().zip(stamped).is_some_and(|(at, uncordoned)| at > uncordoned);
            told.event.node == *name && is_of_cordon && is_before && !is_later
        });
    }

    /// Of what was said about this name, ends what is known to be of another object than this one. What names no uid is judged
    /// by these two: what a kubelet said, by whether another object was removed after it, and what tells of a removal.
    fn end_what_is_of_another(
        &mut self,
        name: &NodeName,
        uid: &NodeUid,
        said: impl Fn(&Told, bool) -> bool,
        removed: impl Fn(&Told) -> bool,
    ) {
        let removes_another = |told: &Told| {
            let event = &told.event;
            event.node == *name && event.is_removal() && event.uid.as_ref().is_some_and(|about| about != uid)
        };
        // What a kubelet said before another object of its name was removed, it said of that one.
        let mut before_another = self.told.iter().rposition(removes_another).map_or(0, |place| place + 1);
        self.end(|told| {
            let is_before = before_another > 0;
            before_another = before_another.saturating_sub(1);
            let of_another = match &told.event.uid {
                Some(about) => about != uid,
                None if told.event.is_removal() => removed(told),
                None => said(told, is_before),
            };
            told.event.node == *name && of_another
        });
    }

    /// The uid of the last object of that name, where this process watched it go.
    pub(super) fn gone_uid(&self, name: &NodeName) -> Option<&NodeUid> {
        self.gone.iter().find(|(gone, _)| gone == name).map(|(_, uid)| uid)
    }

    /// Asked of each, oldest first.
    fn end(&mut self, mut is_former: impl FnMut(&Told) -> bool) {
        for told in std::mem::take(&mut self.told) {
            match is_former(&told) {
                true => push(&mut self.former, told.event),
                false => self.told.push_back(told),
            }
        }
    }

    /// Everything that was said, oldest first, and when each was heard first.
    pub(super) fn told(&self) -> impl Iterator<Item = (Time, &NodeEvent)> {
        self.told.iter().map(|told| (told.at, &told.event))
    }

    /// Everything that was said of the present object of that name, or of the last one, oldest first. What names another uid
    /// than this one's is left out.
    pub(super) fn about<'a>(
        &'a self,
        name: &'a NodeName,
        uid: Option<&'a NodeUid>,
    ) -> impl Iterator<Item = &'a NodeEvent> {
        let of_another =
            move |event: &NodeEvent| uid.zip(event.uid.as_ref()).is_some_and(|(uid, about)| uid != about);
        let told = self.told.iter().map(|told| &told.event);
        told.filter(move |event| event.node == *name && !of_another(event))
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

    fn about_a(node_events: &NodeEvents) -> Vec<String> {
        node_events.about(&NodeName::from("a"), None).map(|event| event.reason.to_string()).collect()
    }

    #[test]
    fn what_was_said_of_the_object_before_is_not_believed_again() {
        let mut node_events = NodeEvents::default();
        for word in ["a1", "b1", "a2"] {
            node_events.hear(min(0), event(word));
        }
        node_events.gone(Some(min(0)), &NodeName::from("a"), &"first".into());
        node_events.succeeded(&NodeName::from("a"), &"second".into());
        node_events.hear(min(1), event("a3"));
        node_events.read(min(1), &["a1", "a2", "a3"].map(event));
        node_events.hear(min(1), event("a2"));
        assert_eq!(about_a(&node_events), ["3"]);
    }

    #[test]
    fn what_is_read_stands_in_the_order_in_which_it_happened() {
        let mut node_events = NodeEvents::default();
        node_events.hear(min(0), event("a3"));
        node_events.hear(min(0), event("b9"));
        node_events.read(min(1), &["a1", "a2", "a3"].map(event));
        assert_eq!(about_a(&node_events), ["1", "2", "3"]);
    }

    #[test]
    fn old_removal_event_without_uid_belongs_to_another_node() {
        let mut node_events = NodeEvents::default();
        node_events.hear(min(0), event("aRemovingNode"));
        node_events.hear(min(30), event("aDeletingNode"));
        node_events.gone(Some(min(31)), &NodeName::from("a"), &"first".into());
        node_events.read(min(32), &["aRemovingNode", "aDeletingNode", "a3"].map(event));
        assert_eq!(about_a(&node_events), ["DeletingNode", "3"]);
    }

    #[test]
    fn event_from_silent_period_may_belong_to_the_removed_node() {
        let mut node_events = NodeEvents::default();
        node_events.hear(min(9), event("aRemovingNode"));
        node_events.gone(Some(min(2)), &NodeName::from("a"), &"first".into());
        assert_eq!(about_a(&node_events), ["RemovingNode"]);
    }

    /// An hour of events is heard at once after a restart, and an old list still shows the object that went.
    #[test]
    fn kubelet_spoke_of_the_object_that_was_removed_next() {
        let name = NodeName::from("a");
        let removed = |uid: &str| NodeEvent { uid: Some(uid.into()), ..event("aRemovingNode") };
        let mut node_events = NodeEvents::default();
        let all = [event("a1"), removed("first"), event("a2"), event("b3"), removed("second"), event("a4")];
        node_events.read(min(0), &all);
        node_events.gone(Some(min(30)), &name, &"second".into());
        assert_eq!(about_a(&node_events), ["2", "RemovingNode", "4"]);
    }

    #[test]
    fn late_listed_node_owns_the_events_of_its_kubelet() {
        let name = NodeName::from("a");
        let removed = NodeEvent { uid: Some("first".into()), ..event("aRemovingNode") };
        let mut node_events = NodeEvents::default();
        node_events.read(min(0), &[event("a1"), removed, event("a2")]);
        node_events.succeeded(&name, &"second".into());
        assert_eq!(about_a(&node_events), ["2"]);
        node_events.gone(Some(min(1)), &name, &"second".into());
        node_events.succeeded(&name, &"second".into());
        assert_eq!(about_a(&node_events), ["2"], "an old list shows it once more");
        node_events.succeeded(&name, &"third".into());
        assert_eq!(about_a(&node_events), [""; 0]);
    }

    /// Whenever it was heard: a list may be old, and an event may come late.
    #[test]
    fn what_names_an_object_by_its_uid_is_said_of_it_alone() {
        let name = NodeName::from("a");
        let of = |word: &str, uid: &str| NodeEvent { uid: Some(uid.into()), ..event(word) };
        let about = |node_events: &NodeEvents, uid: &str| {
            let uid = uid.into();
            node_events.about(&name, Some(&uid)).map(|event| event.reason.to_string()).collect::<Vec<_>>()
        };
        let mut node_events = NodeEvents::default();
        node_events.hear(min(0), of("a1", "first"));
        node_events.hear(min(0), of("a2", "second"));
        node_events.succeeded(&name, &"second".into());
        node_events.hear(min(1), of("a3", "first"));
        assert_eq!(about(&node_events, "second"), ["2"]);
        node_events.gone(Some(min(60)), &name, &"second".into());
        assert_eq!(about(&node_events, "second"), ["2"]);
        assert_eq!(node_events.gone_uid(&name), Some(&"second".into()));
    }
}
