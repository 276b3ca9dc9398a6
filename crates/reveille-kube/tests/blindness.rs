//! The watch when the API server is away, wrong, late or not the same any more: what is told, and that nothing says
//! that all is well. An API server in this process, on a paused clock.
#![allow(clippy::unwrap_used, reason = "in a test, what cannot be is a failure")]

mod support;

use std::time::Duration;

use reveille_core::effect::ReadErrorKind;
use reveille_core::event::ClusterFact;
use reveille_kube::Rhythm;
use serde_json::json;
use support::{Api, FactStream, Refuse, alive, failed, news, node, three, word};

#[tokio::test(start_paused = true)]
async fn a_lost_place_is_a_gap_and_a_new_complete_list() {
    let api = three();
    let mut told = FactStream::by(&api);
    told.during(9).await;
    api.fault(|faults| {
        faults.events_lost = true;
        faults.compacted = u64::MAX;
    });
    api.delete("c");
    api.fault(|faults| faults.events_lost = false);
    let gap = told.next(failed).await;
    assert_eq!(gap.kind, ReadErrorKind::Gap);
    assert!(gap.text.contains("410 Gone: too old resource version"), "{}", gap.text);
    api.fault(|faults| faults.compacted = 0);
    assert_eq!(told.synced().await, ["a", "b"]);
    assert!(!alive(&told.during(30).await).is_empty());
}

#[tokio::test(start_paused = true)]
async fn silent_watch_is_not_alive_although_the_api_answers() {
    let api = three();
    let mut told = FactStream::by(&api);
    told.synced().await;
    told.during(20).await;
    api.fault(|faults| faults.watches_silent = true);
    api.delete("c");
    let silent = told.during(120).await;
    // The proof from before the silence may still be spent, at most once.
    assert!(alive(&silent).iter().all(|at| *at <= 25), "{:?}", alive(&silent));
    let (at, error) = silent.iter().find_map(|(at, fact)| Some((*at, failed(fact)?))).unwrap();
    assert_eq!(error.kind, ReadErrorKind::TimedOut);
    assert!(at <= 20 + 15, "told after {at} s");
    assert!(error.text.starts_with("cluster: cannot watch nodes: the watch is silent"), "{}", error.text);
    api.fault(|faults| faults.watches_silent = false);
    let back = told.during(60).await;
    // The place is still known: what was missed comes as the change it is, without a new list.
    assert_eq!(news(&back).first().map(String::as_str), Some("Deleted(c)"), "{:?}", news(&back));
    assert!(!news(&back).iter().any(|word| word.starts_with("Synced")));
    assert!(!alive(&back).is_empty());
}

#[tokio::test(start_paused = true)]
async fn hanging_server_is_not_alive_and_is_retried_by_one_loop() {
    let api = three();
    let mut told = FactStream::by(&api);
    told.synced().await;
    told.during(20).await;
    api.fault(|faults| faults.hung = true);
    let first = told.during(60).await;
    assert!(alive(&first).iter().all(|at| *at <= 20), "{:?}", alive(&first));
    let before = api.requests().len();
    let later = told.during(600).await;
    assert!(alive(&later).is_empty());
    let tries = api.requests().len() - before;
    assert!((10..40).contains(&tries), "{tries} tries in ten minutes");
    assert!(
        later.iter().filter_map(|(_, fact)| failed(fact)).all(|error| error.kind == ReadErrorKind::TimedOut)
    );
    api.fault(|faults| faults.hung = false);
    assert!(!alive(&told.during(60).await).is_empty());
}

#[tokio::test(start_paused = true)]
async fn a_proof_from_before_a_failure_does_not_count_after_it() {
    let api = three();
    let rhythm = Rhythm { probe_period: Duration::from_secs(12), ..Rhythm::default() };
    let mut told = FactStream::in_rhythm(&api, rhythm);
    // The first watch ends at ten seconds, which proves the watch; the next one is refused and tried again.
    told.during(9).await;
    api.fault(|faults| faults.refusals.push(("nodes?&watch", Refuse::Status(500, "InternalError", None))));
    let refused = told.during(2).await;
    assert!(!refused.is_empty() && news(&refused).iter().all(|word| word == "Failed(Unavailable)"));
    api.fault(|faults| faults.refusals.clear());
    // The next probe agrees; the new watch proves nothing before its bookmark, eight seconds after its start.
    assert!(alive(&told.during(6).await).is_empty());
    assert!(!alive(&told.during(15).await).is_empty());
}

#[tokio::test(start_paused = true)]
async fn watches_that_end_at_once_prove_nothing_and_are_not_hurried() {
    let api = three();
    api.fault(|faults| faults.refusals.push(("nodes?&watch", Refuse::Page(200, ""))));
    let told = FactStream::by(&api).during(60).await;
    assert!(alive(&told).is_empty(), "{:?}", alive(&told));
    let watches = api.requests().iter().filter(|(_, target)| target.contains("nodes?&watch")).count();
    assert!((50..=61).contains(&watches), "{watches} watches in a minute");
}

/// The server, or what stands before it, went away: what it had to say is not known.
#[tokio::test(start_paused = true)]
async fn watch_cut_within_a_line_is_a_failure_and_proves_nothing() {
    let api = three();
    let cut = r#"{"type":"MODIFIED","object":{"kind":"Node","metadata":{"name":"a"#;
    api.fault(|faults| faults.refusals.push(("nodes?&watch", Refuse::Page(200, cut))));
    let told = FactStream::by(&api).during(60).await;
    assert!(alive(&told).is_empty(), "{:?}", alive(&told));
    let failures: Vec<_> = told.iter().filter_map(|(_, fact)| failed(fact)).collect();
    assert!(failures.len() > 2, "{told:?}");
    assert!(failures.iter().all(|failure| failure.text.contains("in the middle of a line")), "{failures:?}");
}

#[tokio::test(start_paused = true)]
async fn a_delete_that_the_watch_never_told_is_found_by_the_count() {
    let api = three();
    let mut told = FactStream::by(&api);
    told.synced().await;
    told.during(12).await;
    api.fault(|faults| faults.events_lost = true);
    api.delete("b");
    let facts = told.during(40).await;
    let gap = facts.iter().find_map(|(_, fact)| failed(fact)).unwrap();
    assert_eq!(gap.kind, ReadErrorKind::Gap);
    assert!(gap.text.contains("the store holds 2 nodes, the watch has told of 3"), "{}", gap.text);
    let order = news(&facts);
    assert_eq!(order, ["Failed(Gap)", "Synced(2)"]);
    // Between the loss and its discovery nothing says that all is well.
    let listed = facts.iter().find(|(_, fact)| word(fact) == "Synced(2)").unwrap().0;
    assert!(alive(&facts).iter().all(|at| *at >= listed || *at <= 12), "{:?} {listed}", alive(&facts));
}

#[tokio::test(start_paused = true)]
async fn change_missed_by_the_watch_is_found_by_the_next_audit() {
    let api = three();
    let rhythm = Rhythm { audit_period: Duration::from_secs(60), ..Rhythm::default() };
    let mut told = FactStream::in_rhythm(&api, rhythm);
    told.synced().await;
    api.fault(|faults| faults.events_lost = true);
    api.edit("a", |a| a["spec"]["unschedulable"] = json!(true));
    assert!(news(&told.during(55).await).is_empty());
    assert_eq!(news(&told.during(30).await), ["Applied(a)"]);
}

#[tokio::test(start_paused = true)]
async fn a_store_that_goes_back_in_time_is_a_gap() {
    let api = three();
    let mut told = FactStream::by(&api);
    told.synced().await;
    told.during(12).await;
    api.fault(|faults| faults.version_said = Some(5));
    let gap = told.next(failed).await;
    assert_eq!(gap.kind, ReadErrorKind::Gap);
    assert!(gap.text.contains("to 5: another store, or a restored one"), "{}", gap.text);
}

/// Which cluster answers is told before each complete list of its nodes: after a gap it may be another one.
#[tokio::test(start_paused = true)]
async fn cluster_identity_is_told_before_each_list() {
    let api = three();
    let mut told = FactStream::by(&api);
    let order = |told: &[(u64, ClusterFact)]| -> Vec<String> {
        let lists = |word: &String| word.starts_with("Identity") || word.starts_with("Synced");
        told.iter().map(|(_, fact)| word(fact)).filter(lists).collect()
    };
    assert_eq!(order(&told.during(9).await), ["Identity(uid-of-kube-system)", "Synced(3)"]);
    api.fault(|faults| (faults.kube_system, faults.compacted) = (Some("uid-of-another"), u64::MAX));
    let after = told.during(12).await;
    assert_eq!(order(&after)[..2], ["Identity(uid-of-another)", "Synced(3)"], "{:?}", news(&after));
}

#[tokio::test(start_paused = true)]
async fn forbidden_identity_is_told_and_nodes_are_listed() {
    let api = three();
    api.fault(|faults| faults.refusals.push(("/kube-system", Refuse::Status(403, "Forbidden", None))));
    let mut told = FactStream::by(&api);
    let unread = |fact: &ClusterFact| match fact {
        ClusterFact::IdentityUnread(error) => Some(error.text.to_string()),
        _ => None,
    };
    let why = told.next(unread).await;
    assert!(why.contains("403") && why.contains("reveille rbac"), "{why}");
    assert_eq!(told.synced().await.len(), 3);
}

/// An API server that fails to say which cluster it is of may be another one: no list of it counts.
#[tokio::test(start_paused = true)]
async fn identity_that_fails_voids_the_list() {
    let api = three();
    api.fault(|faults| faults.refusals.push(("/kube-system", Refuse::Status(500, "InternalError", None))));
    let mut told = FactStream::by(&api);
    let facts = told.during(20).await;
    assert!(news(&facts).iter().all(|word| word == "Failed(Unavailable)"), "{:?}", news(&facts));
    api.fault(|faults| faults.refusals.clear());
    assert_eq!(told.synced().await.len(), 3);
}

/// Audits each minute, and asks the store for its count of nodes so seldom that only the audit can find what is missing.
fn audited(api: &Api) -> FactStream {
    let (audit_period, probe_period) = (Duration::from_secs(60), Duration::from_secs(4000));
    FactStream::in_rhythm(api, Rhythm { audit_period, probe_period, ..Rhythm::default() })
}

/// A cluster whose list is too much for its API server, while its watch goes well.
#[tokio::test(start_paused = true)]
async fn failing_audits_back_off_while_the_watch_continues() {
    let api = three();
    let mut told = audited(&api);
    told.synced().await;
    told.during(50).await;
    let lists = || api.requests().iter().filter(|(_, target)| target.contains("nodes?&limit=500")).count();
    let before = lists();
    assert_eq!(before, 1, "{:?}", api.requests());
    api.fault(|faults| {
        faults.refusals.push(("nodes?&limit=500", Refuse::Status(500, "InternalError", None)))
    });
    let facts = told.during(600).await;
    let tried = lists() - before;
    assert!((6..=20).contains(&tried), "{tried} lists in ten minutes");
    assert_eq!(facts.iter().filter_map(|(_, fact)| failed(fact)).count(), tried, "the watch is well");
    api.fault(|faults| faults.refusals.clear());
    told.during(120).await;
    assert!((1..=3).contains(&(lists() - before - tried)), "and then the audit's own period");
}

/// An etcd that was restored from a backup, or is empty: no watch event tells of what is not there any more.
#[tokio::test(start_paused = true)]
async fn audit_that_lacks_several_nodes_is_a_list() {
    let table = [(&["b"][..], "Deleted(b)"), (&["b", "c"], "Synced(1)"), (&["a", "b", "c"], "Synced(0)")];
    for (lost, told_as) in table {
        let api = three();
        let mut told = audited(&api);
        told.synced().await;
        api.fault(|faults| faults.events_lost = true);
        lost.iter().for_each(|name| api.delete(name));
        assert_eq!(news(&told.during(85).await), [told_as], "{lost:?}");
    }
}

#[tokio::test(start_paused = true)]
async fn audit_of_an_older_version_is_a_list() {
    let api = three();
    let mut told = audited(&api);
    told.synced().await;
    api.fault(|faults| (faults.version_said, faults.events_lost) = (Some(5), true));
    api.delete("b");
    // What follows is the watch, which goes on from the older version and repeats what came after it.
    assert_eq!(news(&told.during(75).await)[0], "Synced(2)");
}

#[tokio::test(start_paused = true)]
async fn a_page_that_fails_voids_the_list() {
    let api = Api::default();
    for number in 0..600 {
        api.put(node(&format!("node-{number:04}"), "u"));
    }
    api.fault(|faults| faults.refusals.push(("continue=", Refuse::Status(500, "InternalError", None))));
    let mut told = FactStream::by(&api);
    let facts = told.during(10).await;
    assert!(!news(&facts).iter().any(|word| word.starts_with("Synced")), "{:?}", news(&facts));
    let error = facts.iter().find_map(|(_, fact)| failed(fact)).unwrap();
    assert!(error.text.contains("cannot list nodes: page 2: 500"), "{}", error.text);
    api.fault(|faults| faults.refusals = vec![("continue=", Refuse::Status(410, "Expired", None))]);
    let kinds: Vec<ReadErrorKind> =
        told.during(30).await.iter().filter_map(|(_, fact)| failed(fact)).map(|error| error.kind).collect();
    assert!(kinds.contains(&ReadErrorKind::Incomplete), "{kinds:?}");
    api.fault(|faults| faults.refusals.clear());
    assert_eq!(told.synced().await.len(), 600);
}

#[tokio::test(start_paused = true)]
async fn pages_that_do_not_fit_together_are_no_list() {
    for (drift, repeat, words) in [(true, false, "another moment"), (false, true, "repeats node-0000")] {
        let api = Api::default();
        for number in 0..600 {
            api.put(node(&format!("node-{number:04}"), "u"));
        }
        api.fault(|faults| (faults.pages_drift, faults.pages_repeat) = (drift, repeat));
        let facts = FactStream::by(&api).during(5).await;
        let errors: Vec<_> = facts.iter().filter_map(|(_, fact)| failed(fact)).collect();
        assert!(errors.iter().all(|error| error.kind == ReadErrorKind::Incomplete), "{errors:?}");
        assert!(errors[0].text.contains(words), "{}", errors[0].text);
        assert_eq!(news(&facts).len(), errors.len(), "{:?}", news(&facts));
    }
}

#[tokio::test(start_paused = true)]
async fn unreadable_watch_line_leads_to_one_new_list_without_loop() {
    let lines = [
        "{\"type\":\"MODIFIED\",\"object\":{\"meta\n",
        "{\"type\":\"SHOUTED\",\"object\":{}}\n",
        "{\"type\":\"ERROR\",\"object\":{\"kind\":\"Status\",\"code\":500,\"message\":\"etcd event lacks its object\"}}\n",
    ];
    for line in lines {
        let api = three();
        api.fault(|faults| faults.first_line = Some(line));
        let mut told = FactStream::by(&api);
        told.synced().await;
        let error = told.next(failed).await;
        assert_eq!(error.kind, ReadErrorKind::Gap, "{}", error.text);
        api.fault(|faults| faults.first_line = None);
        assert_eq!(told.synced().await.len(), 3);
    }
    let busy = "{\"type\":\"ERROR\",\"object\":{\"kind\":\"Status\",\"code\":429,\"message\":\"storage is initializing\"}}\n";
    let api = three();
    let mut told = FactStream::by(&api);
    told.synced().await;
    api.fault(|faults| faults.first_line = Some(busy));
    assert_eq!(told.next(failed).await.kind, ReadErrorKind::Throttled);
}

#[tokio::test(start_paused = true)]
async fn a_place_that_the_server_does_not_understand_is_lost() {
    let api = three();
    let mut told = FactStream::by(&api);
    told.synced().await;
    api.fault(|faults| faults.refusals.push(("nodes?&watch", Refuse::Status(400, "Invalid", None))));
    assert_eq!(told.next(failed).await.kind, ReadErrorKind::Gap);
    api.fault(|faults| faults.refusals.clear());
    assert_eq!(told.synced().await.len(), 3);
}

#[tokio::test(start_paused = true)]
async fn refusals_are_told_by_kind_and_waits_are_obeyed() {
    let table = [
        (Refuse::Status(401, "Unauthorized", None), ReadErrorKind::Unauthorized, "401 Unauthorized"),
        (Refuse::Status(403, "Forbidden", None), ReadErrorKind::Forbidden, "403 Forbidden"),
        (Refuse::Status(429, "TooManyRequests", Some(23)), ReadErrorKind::Throttled, "429 Too Many Requests"),
        (Refuse::Status(500, "InternalError", None), ReadErrorKind::Unavailable, "500 Internal Server Error"),
        (
            Refuse::Page(503, "<html>down</html>"),
            ReadErrorKind::Unavailable,
            "503 Service Unavailable: <html>down",
        ),
        (Refuse::Page(200, "<html>log in</html>"), ReadErrorKind::Malformed, "cannot be read"),
        (Refuse::Stall, ReadErrorKind::TimedOut, "no answer within 30 s (api.test:6443)"),
    ];
    for (refuse, kind, words) in table {
        let api = three();
        let asked = matches!(refuse, Refuse::Status(429, ..));
        api.fault(|faults| faults.refusals.push(("/nodes", refuse)));
        let mut told = FactStream::by(&api);
        let error = told.next(failed).await;
        assert_eq!(error.kind, kind, "{}", error.text);
        assert!(error.text.contains(words), "{}", error.text);
        assert!(
            error.text.contains("No machine is marked as missing because of this. Next try in "),
            "{}",
            error.text
        );
        if asked {
            assert_eq!(error.retry_after.map(|span| span.ms), Some(23_000));
            assert!(error.text.ends_with("Next try in 23 s."), "{}", error.text);
            assert!(told.during(22).await.is_empty());
        }
    }
}
