//! A full listing says the same in whatever order it comes, and of an id that stands in it twice the later entry counts.

use std::sync::Arc;

use reveille_core::event::CloudSnapshot;
use reveille_core::model::instance::{Instance, InstanceState};
use reveille_core::model::time::{Span, Time};
use reveille_core::observe::cloud::{CloudChange, CloudView, NodeOf, Seen};

use super::fixture::{CLOUD, Field, roster};

/// Five machines as a listing has them.
fn listed() -> Vec<Arc<Instance>> {
    Field::new(roster()).populate(5).instances.values().map(|instance| Arc::new(instance.clone())).collect()
}

fn shut_off(instance: &Arc<Instance>) -> Arc<Instance> {
    Arc::new(Instance { state: InstanceState::Stopped, ..(**instance).clone() })
}

/// What a view that knows all five makes of a second listing.
fn second(instances: Vec<Arc<Instance>>) -> (CloudView, CloudChange) {
    let mut view = CloudView::new(CLOUD.into(), Span::from_min(5), Span::ZERO);
    let mut change = CloudChange::default();
    for (at, instances) in [(1_000, listed()), (11_000, instances)] {
        let snapshot = CloudSnapshot { instances, ..CloudSnapshot::default() };
        let at = Time::from_ms(at);
        change = view.apply(&roster(), at, at, &snapshot, &[], &|_| NodeOf::None);
    }
    (view, change)
}

#[test]
fn a_listing_says_the_same_in_any_order() {
    let mut news = listed();
    news[1] = shut_off(&news[1]);
    let gone = news.remove(3);
    let backwards = news.iter().rev().cloned().collect();
    let ((in_order, change), (other, same_change)) = (second(news), second(backwards));
    assert_eq!(change.touched.len(), 2, "one shut off, one that is not listed");
    assert!(change.ask.contains(&gone.id));
    assert_eq!(change.touched, same_change.touched);
    assert_eq!(change.ask, same_change.ask);
    let told = |view: &CloudView| -> Vec<Arc<Instance>> {
        view.instances.values().map(|seen: &Seen| seen.instance.clone()).collect()
    };
    assert_eq!(told(&in_order), told(&other));
}

#[test]
fn of_an_id_that_stands_there_twice_the_later_entry_counts() {
    let mut news = listed();
    let before = news[2].clone();
    news.insert(2, shut_off(&before));
    let (view, change) = second(news);
    assert_eq!(view.instances[&before.id].instance.state, before.state);
    assert!(change.touched.contains(&before.id), "it was said to be shut off in between");
}

#[test]
fn equal_listing_touches_no_machine_and_missing_machine_is_read() {
    let (view, change) = second(listed());
    let edition = view.edition();
    assert!(change.touched.is_empty() && change.ask.is_empty());
    let (view, change) = second(listed().split_off(1));
    assert_eq!(change.ask.len(), 1);
    assert_eq!(view.edition(), edition, "that it is not listed does not change what it is");
}
