//! Which requests the client sends again, whose clock it believes, and what an answer must be to count.

use std::sync::Arc;
use std::sync::atomic::{AtomicU32, Ordering};

use jiff::Timestamp;
use reveille_core::effect::{Call, Look, Outcome, ReadErrorKind};
use reveille_core::model::id::InstanceId;
use reveille_core::model::time::Span;
use reveille_core::remedies::Reboot;

use super::fake::{Fake, Reply, Seen, Way, aws, fault, owned, perform, reply, way};
use super::words::{answer, instance, instances};

fn look() -> Look {
    Look::Instance(aws(), InstanceId::from("i-1"))
}

fn reboot() -> Call {
    Call::Reboot(Reboot { cloud: aws(), instance: InstanceId::from("i-1"), hard: false, owned: owned() })
}

/// The instance runs, and a reboot of it is answered like this.
fn rebooting(answer: Reply) -> impl FnMut(&Seen) -> Option<Reply> {
    move |seen| match seen.action() {
        "DescribeInstances" => Some(instances(&[instance("i-1", "running", 5)], None)),
        "RebootInstances" => Some(answer.clone()),
        _ => None,
    }
}

#[tokio::test]
async fn a_read_that_comes_to_nothing_is_sent_again_and_then_it_ends() {
    let cases: [(&str, fn() -> Reply); 5] = [
        ("throttled", || fault(503, "RequestLimitExceeded")),
        ("throttled otherwise", || fault(400, "Throttling")),
        ("of the service", || fault(500, "InternalError")),
        ("of something in between", || reply(502, "<html>bad gateway</html>")),
        ("dropped", || way(Way::Dropped)),
    ];
    for (name, bad) in cases {
        for (failures, answered) in [(3, true), (4, false)] {
            let fake = Fake::start(|_| None).await;
            let account = fake.connect().await;
            let count = Arc::new(AtomicU32::new(0));
            fake.answer(move |seen| {
                (seen.action() == "DescribeInstances").then(|| {
                    let fails = count.fetch_add(1, Ordering::SeqCst) < failures;
                    if fails { bad() } else { instances(&[instance("i-1", "running", 5)], None) }
                })
            });
            let found = account.look(&look()).await;
            assert_eq!(found.is_ok(), answered, "{name}, {failures} times: {found:?}");
            let asked = fake.take_actions().iter().filter(|action| *action == "DescribeInstances").count();
            assert_eq!(asked, 4, "{name}");
            assert_eq!(account.traffic().retries, 3, "{name}");
        }
    }
}

#[tokio::test]
async fn a_change_is_sent_once_whatever_comes_back() {
    let cases: [(Reply, &str); 6] = [
        (fault(503, "RequestLimitExceeded"), "failed"),
        (fault(500, "InternalError"), "unknown"),
        (way(Way::Dropped), "unknown"),
        (way(Way::Never), "unknown"),
        (fault(400, "IncorrectInstanceState"), "changed"),
        (fault(403, "UnauthorizedOperation"), "denied"),
    ];
    for (bad, begins) in cases {
        let (outcome, changes) = perform(&reboot(), rebooting(bad)).await;
        assert!(outcome.to_string().starts_with(begins), "{begins}: {outcome}");
        assert_eq!(changes, ["RebootInstances InstanceId.1=i-1"], "{begins}");
    }
}

#[tokio::test]
async fn a_missing_right_is_named_by_its_action() {
    let (outcome, _) = perform(&reboot(), rebooting(fault(403, "UnauthorizedOperation"))).await;
    let Outcome::Denied { text } = &outcome else { panic!("{outcome}") };
    assert!(text.contains("the credentials lack the right ec2:RebootInstances"), "{text}");
    let fake = Fake::start(|_| None).await;
    let account = fake.connect().await;
    fake.answer(|_| Some(fault(403, "UnauthorizedOperation")));
    let error = account.look(&look()).await.unwrap_err();
    assert_eq!(error.kind, ReadErrorKind::Forbidden);
    assert!(error.text.contains("ec2:DescribeInstances"), "{}", error.text);
}

/// A clock that is ten minutes slow is told by a refusal's `Date`; from then on every request is signed by the other clock.
#[tokio::test]
async fn a_wrong_clock_is_corrected_once_and_for_all() {
    let fake = Fake::start(|_| None).await;
    let account = fake.connect().await;
    let theirs = || Timestamp::now() + jiff::SignedDuration::from_mins(10);
    fake.answer(move |seen| {
        let signed: Timestamp = {
            let text = &seen.headers["x-amz-date"];
            let text = format!(
                "{}-{}-{}T{}:{}:{}Z",
                &text[..4],
                &text[4..6],
                &text[6..8],
                &text[9..11],
                &text[11..13],
                &text[13..15]
            );
            text.parse().unwrap()
        };
        let off = (theirs().as_second() - signed.as_second()).abs();
        let date = theirs().strftime("%a, %d %b %Y %H:%M:%S GMT").to_string();
        (off > 300).then(|| fault(400, "RequestExpired").with("Date", date))
    });
    account.look(&Look::Ports(aws(), InstanceId::from("i-1"))).await.unwrap();
    assert_eq!(fake.take_actions().len(), 2, "refused once, corrected, answered");
    account.look(&Look::Ports(aws(), InstanceId::from("i-1"))).await.unwrap();
    assert_eq!(fake.take_actions().len(), 1);
}

/// Static keys that are refused are the same when they are fetched again: nothing is sent twice.
#[tokio::test]
async fn keys_that_are_refused_are_not_tried_again() {
    let fake = Fake::start(|_| None).await;
    let account = fake.connect().await;
    fake.answer(|_| Some(fault(401, "AuthFailure")));
    let error = account.look(&look()).await.unwrap_err();
    assert_eq!(error.kind, ReadErrorKind::Unauthorized);
    assert_eq!(fake.take_actions().len(), 1);
}

/// A page with status 200 from something in between would otherwise be an empty list, and an empty list is a dead fleet.
#[tokio::test]
async fn only_a_whole_answer_to_what_was_asked_counts() {
    let whole = instances(&[instance("i-1", "running", 5)], None).body;
    let cases = [
        ("<html><body>please log in</body></html>".to_owned(), ReadErrorKind::Malformed),
        (answer("DescribeVolumes", "<reservationSet/>").body, ReadErrorKind::Malformed),
        (answer("DescribeInstances", "").body, ReadErrorKind::Malformed),
        (whole[..whole.len() - 60].to_owned(), ReadErrorKind::Incomplete),
        (whole.replace("<instanceId>i-1</instanceId>", ""), ReadErrorKind::Malformed),
        (String::new(), ReadErrorKind::Malformed),
    ];
    for (body, kind) in cases {
        let fake = Fake::start(|_| None).await;
        let account = fake.connect().await;
        let shown = body.clone();
        fake.answer(move |seen| (seen.action() == "DescribeInstances").then(|| reply(200, body.clone())));
        let error = account.look(&look()).await.unwrap_err();
        assert_eq!(error.kind, kind, "{shown}: {error}");
    }
}

/// A proxy answers what changes something with a page and 200, or with an error under 200. Reads have to be answers to what was
/// asked (`only_a_whole_answer_to_what_was_asked_counts`); a reboot counted as made, and the machine that was never rebooted was
/// power-cycled and deleted after it.
#[tokio::test]
async fn change_that_is_answered_by_something_else_may_have_been_made() {
    for bad in [
        reply(200, "<html><body>please log in</body></html>"),
        fault(200, "InternalError"),
        reply(200, ""),
        reply(202, "accepted for moderation"),
        answer("StopInstances", ""),
        answer("RebootInstances", "<return>false</return>"),
        reply(200, "<RebootInstancesResponse><return>true</return>"),
    ] {
        let shown = bad.body.clone();
        let (outcome, _) = perform(&reboot(), rebooting(bad)).await;
        assert!(matches!(outcome, Outcome::Unknown { .. }), "{shown}: {outcome}");
    }
}

/// One server of EC2 does not know, for a moment, a machine that was listed a moment ago. The read before the reboot is
/// denied, and the reboot was told to wait for two hours, as long as that machine is not to be denied away: the next read
/// tells it again.
#[tokio::test]
async fn single_denial_of_listed_machine_delays_repair_only_briefly() {
    let fake = Fake::start(|_| None).await;
    let account = fake.connect().await;
    fake.answer(|seen| {
        (seen.action() == "DescribeInstances").then(|| instances(&[instance("i-1", "running", 5)], None))
    });
    account.look(&Look::Instance(aws(), InstanceId::from("i-1"))).await.unwrap();
    fake.answer(|seen| {
        (seen.action() == "DescribeInstances").then(|| fault(400, "InvalidInstanceID.NotFound"))
    });
    let outcome = account.perform(&reboot()).await;
    let Outcome::Failed { retry_after, .. } = &outcome else { panic!("{outcome}") };
    assert!(retry_after.is_none_or(|after| after <= Span::from_min(10)), "{retry_after:?}: {outcome}");
}
