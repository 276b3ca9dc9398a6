//! An API server, or what stands in its place, that answers in a way in which none answers: how much of it comes through to logs,
//! records and people, and how much work it makes.
#![allow(clippy::unwrap_used, reason = "in a test, what cannot be is a failure")]

mod support;

use reveille_core::effect::ReadErrorKind;
use reveille_core::event::ClusterFact;
use support::{FactStream, Refuse, failed, three};

/// A sentence of ours with a quotation of theirs, and room.
const SENTENCE_MAX_BYTES: usize = 2048;

fn leaked(text: String) -> &'static str {
    Box::leak(text.into_boxed_str())
}

/// A line of the watch is of a kind whose name has a megabyte. The failure goes into the log and into recordings.
#[tokio::test(start_paused = true)]
async fn kind_of_a_watch_line_is_quoted_no_longer_than_anything_else() {
    let api = three();
    let kind = "X".repeat(1 << 20);
    api.fault(|faults| {
        faults.first_line = Some(leaked(format!("{{\"type\":\"{kind}\",\"object\":{{}}}}\n")));
    });
    let error = FactStream::by(&api).next(failed).await;
    assert!(error.text.len() <= SENTENCE_MAX_BYTES, "a failure of {} bytes", error.text.len());
    assert!(error.text.contains("which is unknown"), "{}", error.text);
}

/// The words of the JSON parser quote the field at which it stopped: 1.4 MB of a secret came into a failure, and so into the log.
#[tokio::test(start_paused = true)]
async fn answer_that_cannot_be_read_is_not_quoted() {
    let long = "s3cret".repeat(200_000);
    for (path, body) in [
        ("/namespaces/kube-system", format!(r#"{{"metadata":"{long}"}}"#)),
        (
            "/api/v1/nodes?",
            format!(r#"{{"metadata":{{"resourceVersion":"7","remainingItemCount":"{long}"}},"items":[]}}"#),
        ),
    ] {
        let api = three();
        api.fault(|faults| faults.refusals = vec![(path, Refuse::Page(200, leaked(body)))]);
        let error = FactStream::by(&api).next(failed).await;
        assert!(error.text.len() <= SENTENCE_MAX_BYTES, "{path}: a failure of {} bytes", error.text.len());
        assert!(!error.text.contains("s3crets3cret"), "{path}: {}", error.text);
        assert!(error.text.contains("cannot be read (line 1, column "), "{path}: {}", error.text);
    }
}

/// The UID of the cluster goes into the ledger, into the log, and into a command that a person is asked to copy.
#[tokio::test(start_paused = true)]
async fn uid_of_the_cluster_is_a_word_of_bounded_length() {
    for uid in ["x\n2026-01-01 ERROR forged".to_owned(), "x; rm -rf ~".to_owned(), "u".repeat(2 << 20)] {
        let api = three();
        api.fault(|faults| faults.kube_system = Some(leaked(uid)));
        let told = FactStream::by(&api).during(30).await;
        let is_told = told.iter().any(|(_, fact)| matches!(fact, ClusterFact::Identity(_)));
        let kinds: Vec<_> = told.iter().filter_map(|(_, fact)| Some(failed(fact)?.kind)).collect();
        assert!(!is_told && kinds.contains(&ReadErrorKind::Malformed), "{kinds:?}");
    }
}

/// Each watch gives a mark and then loses its place. Each mark began the waits from the start, so that ten thousand nodes were
/// listed as often as the shortest wait allows: 6005 times an hour.
#[tokio::test(start_paused = true)]
async fn watch_that_keeps_expiring_relists_nodes_with_backoff() {
    let api = three();
    let mark = r#"{"type":"BOOKMARK","object":{"metadata":{"resourceVersion":"103"}}}"#;
    let gone = r#"{"type":"ERROR","object":{"kind":"Status","code":410,"reason":"Expired"}}"#;
    api.fault(|faults| faults.first_line = Some(leaked(format!("{mark}\n{gone}\n"))));
    let told = FactStream::by(&api).during(3600).await;
    let lists = told.iter().filter(|(_, fact)| matches!(fact, ClusterFact::Synced(_))).count();
    assert!(lists <= 240, "{lists} lists of all nodes in an hour");
}

/// The holder of the roster's Lease is whatever a client wrote there: it becomes the reason of a pause, a word of the log and of
/// each report.
#[tokio::test(start_paused = true)]
async fn holder_of_the_lease_is_told_no_longer_than_others() {
    let api = three();
    let (holder, version) = ("h".repeat(1 << 20), "7".repeat(1 << 20));
    let body =
        format!(r#"{{"metadata":{{"resourceVersion":"{version}"}},"spec":{{"holderIdentity":"{holder}"}}}}"#);
    let path = "/namespaces/kube-system/leases/";
    api.fault(|faults| faults.refusals = vec![(path, Refuse::Page(200, leaked(body)))]);
    let longest = match api.cluster().read_claim("prod").await {
        Ok(claim) => claim.map_or(0, |it| it.holder.map_or(0, |it| it.len()).max(it.version.len())),
        Err(error) => error.to_string().len(),
    };
    assert!(longest <= SENTENCE_MAX_BYTES, "{longest} bytes");
}
