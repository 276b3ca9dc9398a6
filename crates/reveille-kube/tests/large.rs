//! Objects as large as whoever writes them can make them: what they cost, and what they must not.
#![allow(clippy::unwrap_used, reason = "in a test, what cannot be is a failure")]

mod support;

use reveille_core::event::ClusterFact;
use support::{Api, Told, alive, event, news, node};

/// The limits of the pages of this path that were asked for, in their order.
fn limits(api: &Api, path: &str) -> Vec<usize> {
    let limit = |target: &str| {
        let (asked, query) = target.split_once('?')?;
        let limit = query.split('&').find_map(|pair| pair.strip_prefix("limit="))?;
        // The count of nodes asks for one and for its metadata alone; here nothing else asks for a single one.
        asked.ends_with(path).then(|| limit.parse().unwrap()).filter(|limit| *limit > 1)
    };
    api.requests().iter().filter_map(|(_, target)| limit(target)).collect()
}

#[tokio::test(start_paused = true)]
async fn a_page_that_is_too_long_is_asked_for_again_with_fewer_nodes() {
    let api = Api::default();
    for number in 0..600 {
        api.put(node(&format!("node-{number:04}"), "u"));
    }
    api.fault(|faults| faults.items_readable = Some(200));
    let mut told = Told::by(&api);
    let minute = told.during(60).await;
    assert_eq!(news(&minute), ["Synced(600)"]);
    assert!(!alive(&minute).is_empty());
    // Each page that was read doubles the next one, so what was too long once does not make every list slow.
    assert_eq!(limits(&api, "/nodes"), [500, 250, 125, 250, 125, 250, 125, 250, 125, 250]);
}

#[tokio::test(start_paused = true)]
async fn a_page_that_was_still_arriving_when_its_time_was_over_is_smaller_the_next_time() {
    let api = Api::default();
    for number in 0..40 {
        api.put(node(&format!("node-{number:04}"), "u"));
    }
    api.fault(|faults| faults.nodes_in_time = Some(20));
    let told = Told::by(&api).during(60).await;
    assert_eq!(news(&told), ["Failed(TimedOut)", "Synced(40)"]);
    assert_eq!(limits(&api, "/nodes"), [500, 10, 20, 40]);
}

#[tokio::test(start_paused = true)]
async fn a_node_that_fills_a_page_alone_is_listed_and_one_that_does_not_fit_is_a_failure() {
    let api = Api::default();
    for number in 0..40 {
        api.put(node(&format!("node-{number:04}"), "u"));
    }
    api.fault(|faults| faults.items_readable = Some(1));
    assert_eq!(Told::by(&api).synced().await.len(), 40);
    api.fault(|faults| faults.items_readable = Some(0));
    let told = news(&Told::by(&api).during(60).await);
    assert!(told.len() > 1 && told.iter().all(|word| word == "Failed(Malformed)"), "{told:?}");
}

#[tokio::test(start_paused = true)]
async fn a_page_of_events_that_is_too_long_is_asked_for_again_with_fewer() {
    let api = Api::default();
    api.put(node("a", "uid-a"));
    for number in 0..40 {
        api.say(event(&format!("e{number}"), "a", "RemovingNode", &format!("2026-01-01T10:00:{number:02}Z")));
    }
    api.fault(|faults| faults.items_readable = Some(30));
    let told = Told::by(&api).during(60).await;
    let events = told.iter().filter(|(_, fact)| matches!(fact, ClusterFact::NodeEvent(_))).count();
    assert_eq!(events, 40);
    assert_eq!(limits(&api, "/events"), [500, 250, 125, 62, 31, 15, 30]);
}
