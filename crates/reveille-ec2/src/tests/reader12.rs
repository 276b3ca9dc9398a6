//! What an answer to a change must be to count, and for how long one denial holds a repair: tests of a reader.

use reveille_core::effect::{Call, Look, Outcome};
use reveille_core::model::id::InstanceId;
use reveille_core::model::time::Span;
use reveille_core::remedies::Reboot;

use super::fake::{Fake, aws, fault, owned, perform, reply};
use super::words::{instance, instances};

fn reboot() -> Call {
    Call::Reboot(Reboot { cloud: aws(), instance: InstanceId::from("i-1"), hard: false, owned: owned() })
}

/// A proxy answers what changes something with a page and 200, or with an error under 200. Reads have to be answers to what was
/// asked (`only_a_whole_answer_to_what_was_asked_counts`); a reboot counted as made, and the machine that was never rebooted was
/// power-cycled and deleted after it.
#[tokio::test]
async fn change_that_is_answered_by_something_else_is_not_taken() {
    for bad in [
        reply(200, "<html><body>please log in</body></html>"),
        fault(200, "InternalError"),
        reply(200, ""),
        reply(202, "accepted for moderation"),
    ] {
        let shown = bad.body.clone();
        let (outcome, _) = perform(&reboot(), move |seen| match seen.action() {
            "DescribeInstances" => Some(instances(&[instance("i-1", "running", 5)], None)),
            "RebootInstances" => Some(bad.clone()),
            _ => None,
        })
        .await;
        assert!(!matches!(outcome, Outcome::Accepted { .. }), "{shown}: {outcome}");
    }
}

/// One server of EC2 does not know, for a moment, a machine that was listed a moment ago. The read before the reboot is denied, and
/// the reboot was told to wait for two hours, as long as that machine is not to be denied away: the next read tells it again.
#[tokio::test]
async fn one_denial_of_a_machine_that_was_just_seen_holds_its_repair_for_no_two_hours() {
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
