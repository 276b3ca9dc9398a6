//! Objects as large as a client that writes them can make them: what they cost, and what they must not.
#![allow(clippy::unwrap_used, reason = "in a test, what cannot be is a failure")]

mod support;

use std::time::Duration;

use reveille_core::event::ClusterFact;
use reveille_kube::Rhythm;
use serde_json::{Value, json};
use support::{Api, FactStream, Refuse, alive, event, news, node, three};

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
    let mut told = FactStream::by(&api);
    let minute = told.during(60).await;
    assert_eq!(news(&minute), ["Synced(600)"]);
    assert!(!alive(&minute).is_empty());
    // Each page that was read doubles the next one, so what was too long once does not make every list slow.
    assert_eq!(limits(&api, "/nodes"), [500, 250, 125, 250, 125, 250, 125, 250, 125, 250]);
}

#[tokio::test(start_paused = true)]
async fn page_that_timed_out_is_smaller_on_the_next_request() {
    let api = Api::default();
    for number in 0..40 {
        api.put(node(&format!("node-{number:04}"), "u"));
    }
    api.fault(|faults| faults.nodes_in_time = Some(20));
    let told = FactStream::by(&api).during(60).await;
    assert_eq!(news(&told), ["Failed(TimedOut)", "Synced(40)"]);
    assert_eq!(limits(&api, "/nodes"), [500, 10, 20, 40]);
}

#[tokio::test(start_paused = true)]
async fn node_filling_a_page_is_listed_and_larger_node_is_a_failure() {
    let api = Api::default();
    for number in 0..40 {
        api.put(node(&format!("node-{number:04}"), "u"));
    }
    api.fault(|faults| faults.items_readable = Some(1));
    assert_eq!(FactStream::by(&api).synced().await.len(), 40);
    api.fault(|faults| faults.items_readable = Some(0));
    let told = news(&FactStream::by(&api).during(60).await);
    assert!(told.len() > 1 && told.iter().all(|word| word == "Failed(Malformed)"), "{told:?}");
}

#[tokio::test(start_paused = true)]
async fn too_long_event_page_is_requested_again_with_smaller_limit() {
    let api = Api::default();
    api.put(node("a", "uid-a"));
    for number in 0..40 {
        api.say(event(&format!("e{number}"), "a", "RemovingNode", &format!("2026-01-01T10:00:{number:02}Z")));
    }
    api.fault(|faults| faults.items_readable = Some(30));
    let told = FactStream::by(&api).during(60).await;
    let events = told.iter().filter(|(_, fact)| matches!(fact, ClusterFact::NodeEvent(_))).count();
    assert_eq!(events, 40);
    assert_eq!(limits(&api, "/events"), [500, 250, 125, 62, 31, 15, 30]);
}

/// The kubelets of an upgrade write thousands of ordinary events behind the cordon of a machine.
#[tokio::test(start_paused = true)]
async fn ordinary_events_push_out_no_older_cordon() {
    for ordinary in [1_200, 12_000] {
        let api = Api::default();
        api.put(node("a", "uid-a"));
        for number in 0..ordinary {
            api.say(event(&format!("b{number}"), "b", "NodeReady", "2026-01-01T10:00:05Z"));
        }
        // The last one by its key, and the oldest one by its stamp.
        api.say(event("c", "a", "NodeNotSchedulable", "2026-01-01T10:00:01Z"));
        let told = news(&FactStream::by(&api).during(60).await);
        assert_eq!(told, ["Synced(1)", "NodeEvent(NodeNotSchedulable a)"], "{ordinary}");
    }
}

/// A text that JSON writes in six times as many bytes: so long may a condition's message be, whichever kubelet writes it.
fn message(bytes: usize, last: &str) -> Value {
    json!(format!("{}{last}", "\u{1}".repeat(bytes)))
}

/// What etcd takes, and what it takes where an operator raised its limit.
const LONG_BYTES: [usize; 2] = [1_450_000, 2_850_000];

fn lists(api: &Api) -> usize {
    limits(api, "/nodes").len()
}

#[tokio::test(start_paused = true)]
async fn longest_node_does_not_end_the_watch_and_is_reported() {
    for bytes in LONG_BYTES {
        let api = three();
        let mut told = FactStream::by(&api);
        told.synced().await;
        let mut minute = Vec::new();
        for round in 0..2 {
            api.edit("a", |a| a["status"]["conditions"][0]["message"] = message(bytes, &round.to_string()));
            api.edit("b", |b| b["spec"]["unschedulable"] = json!(round % 2 == 0));
            minute.extend(told.during(15).await);
        }
        let news = news(&minute);
        assert!(news.iter().all(|word| ["Applied(a)", "Applied(b)"].contains(&word.as_str())), "{news:?}");
        assert_eq!(news.iter().filter(|word| *word == "Applied(b)").count(), 2, "{bytes}");
        let beats = alive(&minute);
        assert!(beats.len() >= 2 && beats.windows(2).all(|pair| pair[1] - pair[0] <= 12), "{beats:?}");
        assert_eq!(lists(&api), 1, "{bytes}");
        api.edit("a", |a| a["status"]["conditions"][0]["status"] = json!("False"));
        assert_eq!(support::news(&told.during(5).await), ["Applied(a)"], "{bytes}");
    }
}

#[tokio::test(start_paused = true)]
async fn a_long_node_is_told_when_it_comes_and_when_it_goes() {
    for bytes in LONG_BYTES {
        let api = three();
        let mut told = FactStream::by(&api);
        told.synced().await;
        let mut long = node("d", "uid-d");
        long["status"]["conditions"][0]["message"] = message(bytes, "");
        api.put(long);
        let there = told.during(30).await;
        assert_eq!(news(&there), ["Applied(d)"], "{bytes}");
        assert!(!alive(&there).is_empty(), "the count agrees");
        api.delete("d");
        let gone = told.during(30).await;
        assert_eq!(news(&gone), ["Deleted(d)"], "{bytes}");
        assert!(!alive(&gone).is_empty());
        assert_eq!(lists(&api), 1);
    }
}

/// Its line does not begin with its name, or it cannot be read by it: the list has it, and comes ever later.
#[tokio::test(start_paused = true)]
async fn long_node_unreadable_by_name_is_listed_with_growing_pause() {
    for (rounds, lists_in_all) in [(1, 2..=2), (4, 3..=4)] {
        let api = three();
        let rhythm = Rhythm { backoff_min: Duration::from_secs(10), ..Rhythm::default() };
        let mut told = FactStream::in_rhythm(&api, rhythm);
        told.synced().await;
        api.fault(|faults| faults.refusals.push(("nodes/a", Refuse::Stall)));
        let place = if rounds == 1 { "zz_after_its_name" } else { "_before_its_name" };
        let mut minutes = Vec::new();
        for round in 0..rounds {
            api.edit("a", |a| {
                a["status"]["nodeInfo"]["bootID"] = json!(format!("boot-{round}"));
                a[place] = message(LONG_BYTES[1], "");
            });
            minutes.extend(told.during(20).await);
        }
        minutes.extend(told.during(15).await);
        let news = news(&minutes);
        assert!(news.len() + 1 >= *lists_in_all.start(), "{news:?}");
        assert!(news.iter().all(|word| word == "Applied(a)"), "{news:?}");
        let beats = alive(&minutes);
        assert!(beats.windows(2).all(|pair| pair[1] - pair[0] <= 12), "{beats:?}");
        assert!(lists_in_all.contains(&lists(&api)), "{} lists", lists(&api));
        let by_name = api.requests().iter().any(|(_, target)| target.contains("nodes/a"));
        assert_eq!(by_name, rounds == 1);
    }
}

#[tokio::test(start_paused = true)]
async fn longest_event_does_not_end_the_watch_and_only_it_is_lost() {
    for bytes in LONG_BYTES {
        let api = three();
        let mut told = FactStream::by(&api);
        told.synced().await;
        told.during(5).await;
        let mut long = event("e1", "a", "Starting", "2026-01-01T10:00:01Z");
        long["message"] = message(bytes, "");
        api.say(long);
        api.say(event("e2", "a", "ScaleDown", "2026-01-01T10:00:02Z"));
        let minutes = told.during(300).await;
        assert_eq!(news(&minutes), ["NodeEvent(ScaleDown a)"], "{bytes}");
        assert_eq!(limits(&api, "/events").len(), 1, "{bytes}");
    }
}
