//! One object read past every cache, and when the adapter believes a "no".

use reveille_core::effect::{Look, ReadErrorKind};
use reveille_core::event::Answer;
use reveille_core::model::id::{GroupId, InstanceId, RouterId};

use super::fake::{Fake, aws, fault};
use super::words::{answer, instance, instances, interface, interfaces, table};

fn one() -> InstanceId {
    InstanceId::from("i-1")
}

/// The seed's case: the machine runs, one of EC2's servers does not know it yet, and a controller that believed this server
/// deleted its node.
#[tokio::test]
async fn a_denial_is_no_answer_until_it_is_believed() {
    let fake = Fake::start(|_| None).await;
    let account = fake.connect().await;
    fake.answer(|seen| {
        (seen.action() == "DescribeInstances").then(|| fault(400, "InvalidInstanceID.NotFound"))
    });
    for again in ["", "again"] {
        let error = account.look(&Look::Instance(aws(), one())).await.unwrap_err();
        assert_eq!(error.kind, ReadErrorKind::Unavailable, "{again}");
        assert!(error.text.contains("not believed yet"), "{error}");
        assert!(error.retry_after.is_some());
    }
    fake.answer(|seen| {
        (seen.action() == "DescribeInstances").then(|| instances(&[instance("i-1", "running", 1)], None))
    });
    let found = account.look(&Look::Instance(aws(), one())).await.unwrap();
    assert!(matches!(found, Answer::Instance(Some(_))));
    // An answer with no instance in it is the same denial in other words.
    fake.answer(|_| None);
    let error = account.look(&Look::Instance(aws(), one())).await.unwrap_err();
    assert!(error.text.contains("we saw it 0 s ago"), "{error}");
}

#[tokio::test]
async fn one_that_was_seen_ended_and_is_denied_then_is_gone() {
    let fake = Fake::start(|_| None).await;
    let account = fake.connect().await;
    fake.answer(|seen| {
        (seen.action() == "DescribeInstances").then(|| instances(&[instance("i-1", "terminated", 1)], None))
    });
    let Answer::Instance(Some(found)) = account.look(&Look::Instance(aws(), one())).await.unwrap() else {
        panic!()
    };
    assert!(found.state.is_leaving(), "one that is still described is handed over, not denied");
    fake.answer(|seen| {
        (seen.action() == "DescribeInstances").then(|| fault(400, "InvalidInstanceID.NotFound"))
    });
    assert_eq!(account.look(&Look::Instance(aws(), one())).await.unwrap(), Answer::Instance(None));
}

#[tokio::test]
async fn an_id_that_is_none_is_a_mistake_and_no_denial() {
    let fake = Fake::start(|_| None).await;
    let account = fake.connect().await;
    fake.answer(|_| Some(fault(400, "InvalidInstanceID.Malformed")));
    let error = account.look(&Look::Instance(aws(), one())).await.unwrap_err();
    assert_eq!(error.kind, ReadErrorKind::Malformed);
}

#[tokio::test]
async fn a_console_is_what_is_on_it_now_or_what_was_kept_or_none() {
    let fake = Fake::start(|_| None).await;
    let account = fake.connect().await;
    let console = || answer("GetConsoleOutput", "<instanceId>i-1</instanceId><output>bG9naW46Cg==</output>");
    let look = Look::Console(aws(), one());
    fake.answer(move |seen| {
        Some(if seen.get("Latest") == "true" { console() } else { fault(500, "InternalError") })
    });
    assert_eq!(account.look(&look).await.unwrap(), Answer::Console("login:\n".into()));
    fake.answer(move |seen| {
        Some(if seen.get("Latest") == "true" { fault(400, "UnsupportedOperation") } else { console() })
    });
    assert_eq!(account.look(&look).await.unwrap(), Answer::Console("login:\n".into()));
    fake.answer(|_| None);
    assert!(matches!(account.look(&look).await.unwrap(), Answer::NoConsole(_)));
}

#[tokio::test]
async fn groups_tables_and_interfaces_that_are_not_there_are_answers() {
    let fake = Fake::start(|_| None).await;
    let account = fake.connect().await;
    let group = account.look(&Look::Group(aws(), GroupId::from("sg-1"))).await.unwrap();
    assert_eq!(group, Answer::Group(None));
    let router = account.look(&Look::Router(aws(), RouterId::from("rtb-1"))).await.unwrap();
    assert_eq!(router, Answer::Router(None));
    let ports = account.look(&Look::Ports(aws(), one())).await.unwrap();
    assert_eq!(ports, Answer::Ports(Vec::new()));
    fake.answer(|seen| match seen.action() {
        "DescribeRouteTables" => Some(table(&[])),
        "DescribeNetworkInterfaces" => Some(interfaces(&[
            interface("eni-1", 1, false, &["sg-2", "sg-1"], Some("i-1")),
            interface("eni-2", 2, true, &["sg-1"], Some("i-2")),
        ])),
        _ => None,
    });
    let Answer::Ports(ports) = account.look(&Look::Ports(aws(), one())).await.unwrap() else { panic!() };
    assert_eq!(ports.len(), 1, "a filter that finds more is no proof");
    assert_eq!(ports[0].groups.iter().map(GroupId::as_str).collect::<Vec<_>>(), ["sg-1", "sg-2"]);
    assert_eq!(ports[0].pairs.len(), 2, "it checks neither source nor destination");
    let Answer::Router(Some(router)) =
        account.look(&Look::Router(aws(), RouterId::from("rtb-1"))).await.unwrap()
    else {
        panic!()
    };
    assert_eq!((router.routes.len(), router.limit), (0, None));
}

/// EC2 keeps no log of actions: a new launch time is how a stop and start shows.
#[tokio::test]
async fn action_log_holds_only_last_start_and_end_of_an_instance() {
    let fake = Fake::start(|_| None).await;
    let account = fake.connect().await;
    fake.answer(|seen| {
        let ended = instance("i-1", "terminated", 1).replace(
            "<rootDeviceType>",
            "<stateReason><code>Server.SpotInstanceTermination</code><message>Spot instance termination</message></stateReason>\
             <rootDeviceType>",
        );
        (seen.action() == "DescribeInstances").then(|| instances(&[ended], None))
    });
    let Answer::Actions(actions) = account.look(&Look::Actions(aws(), one())).await.unwrap() else {
        panic!()
    };
    let shown: Vec<String> =
        actions.iter().map(|one| format!("{} {} {:?}", one.action, one.request, one.message)).collect();
    assert_eq!(
        shown,
        [
            "delete ended-2026-11-22T10:00:00.000Z Some(\"Spot instance termination\")",
            "launch launched-2026-11-22T10:00:00.000Z None",
        ]
    );
}

/// A cache in between gives the answer to another question: the rules of `sg-2` say nothing of what `sg-1` lacks.
#[tokio::test]
async fn answer_about_another_group_is_no_answer() {
    let fake = Fake::start(|_| None).await;
    let account = fake.connect().await;
    fake.answer(|seen| {
        let other = "<securityGroupInfo><item><groupId>sg-2</groupId><groupName>n</groupName></item></securityGroupInfo>";
        (seen.action() == "DescribeSecurityGroups").then(|| answer(seen.action(), other))
    });
    let error = account.look(&Look::Group(aws(), GroupId::from("sg-1"))).await.unwrap_err();
    assert_eq!(error.kind, ReadErrorKind::Malformed, "{error}");
}
