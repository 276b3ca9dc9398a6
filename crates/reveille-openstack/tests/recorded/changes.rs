//! Only changes are read where that is safe, and everything where it is not.

use crate::fake::{Way, reply, way};
use crate::healthy::{OURS, cloud, ids, interest, neutron, server, servers};
use reveille_core::event::Scope;
use reveille_core::model::id::InstanceId;
use reveille_core::model::instance::InstanceState;
use reveille_openstack::Interest;
use std::collections::BTreeSet;

#[tokio::test]
async fn changes_are_listed_by_server_clock_and_without_tag_filter() {
    let (fake, mut lister) = cloud(|_| servers(&[server("a", OURS), server("b", OURS)], None)).await;
    let full = lister.list(false).await.unwrap();
    assert_eq!(full.scope, Scope::Full, "the first listing is a full one");
    fake.take_seen();
    // Nova drops the tags of a deleted server, and lists what others changed, too.
    fake.answer(|seen| match seen.line().as_str() {
        "GET /compute/v2.1/servers/detail" => {
            let gone = r#"{"id": "b", "name": "b", "status": "DELETED", "OS-EXT-STS:vm_state": "deleted", "tags": []}"#;
            let list = [gone.to_owned(), server("foreign", r#", "tags": ["other"]"#), server("new", OURS)];
            Some(servers(&list, None))
        }
        _ => neutron(seen),
    });
    let changes = lister.list(false).await.unwrap();
    assert_eq!(changes.scope, Scope::Changes);
    assert_eq!(ids(&changes), ["b", "new"]);
    assert_eq!(changes.instances[0].state, InstanceState::Gone);
    assert_eq!(
        changes.ports[0].0,
        InstanceId::from("a"),
        "ports stay whole, those of unchanged machines too"
    );
    let seen = fake.take_seen();
    let nova = seen.iter().find(|seen| seen.path.ends_with("/servers/detail")).unwrap();
    assert_eq!(nova.query("tags-any"), Vec::<&str>::new());
    // The Date was 10:00:00; less two minutes, less the time the answer took.
    let since = nova.query("changes-since")[0];
    assert!(("2026-11-21T09:57:50Z".."2026-11-21T09:58:00Z").contains(&since), "{since}");
    // A machine that is gone stays gone, and is not told again for ever.
    let again = lister.list(false).await.unwrap();
    assert_eq!(ids(&again), ["new"]);
    assert_eq!(lister.list(true).await.unwrap().scope, Scope::Full);
}

#[tokio::test]
async fn everything_is_listed_when_changes_cannot_be_trusted() {
    let (fake, mut lister) = cloud(|_| servers(&[server("a", OURS)], None)).await;
    lister.list(false).await.unwrap();
    // Another question.
    lister.set_interest(Interest { routers: BTreeSet::new(), ..interest() });
    assert_eq!(lister.list(false).await.unwrap().scope, Scope::Full);
    assert_eq!(lister.list(false).await.unwrap().scope, Scope::Changes);
    // A clock that runs backwards: the changes are thrown away and everything is read at once.
    fake.answer(|seen| match seen.line().as_str() {
        "GET /compute/v2.1/servers/detail" => {
            let early = reply(200, r#"{"servers": []}"#).with("Date", "Sat, 21 Nov 2026 09:50:00 GMT");
            let whole = servers(&[server("a", OURS)], None);
            Some(if seen.query("changes-since").is_empty() { whole } else { early })
        }
        _ => neutron(seen),
    });
    let snapshot = lister.list(false).await.unwrap();
    assert_eq!((snapshot.scope, ids(&snapshot)), (Scope::Full, vec!["a"]));
    // No Date: nothing to count from.
    fake.answer(|seen| match seen.line().as_str() {
        "GET /compute/v2.1/servers/detail" => Some(reply(200, r#"{"servers": []}"#)),
        _ => neutron(seen),
    });
    lister.list(true).await.unwrap();
    assert_eq!(lister.list(false).await.unwrap().scope, Scope::Full);
}

#[tokio::test]
async fn a_void_reading_does_not_move_the_horizon() {
    let (fake, mut lister) = cloud(|_| servers(&[server("a", OURS), server("b", OURS)], None)).await;
    lister.list(true).await.unwrap();
    fake.answer(|seen| match seen.line().as_str() {
        "GET /compute/v2.1/servers/detail" => {
            Some(reply(200, r#"{"servers": []}"#).with("Date", "Sat, 21 Nov 2026 11:00:00 GMT"))
        }
        "GET /network/v2.0/ports" => Some(reply(503, "")),
        _ => neutron(seen),
    });
    lister.list(false).await.unwrap_err();
    fake.answer(|seen| match seen.line().as_str() {
        "GET /compute/v2.1/servers/detail" => Some(servers(&[], None)),
        _ => neutron(seen),
    });
    fake.take_seen();
    assert_eq!(lister.list(false).await.unwrap().scope, Scope::Changes);
    let seen = fake.take_seen();
    let since = seen.iter().find_map(|seen| seen.query("changes-since").first().copied().map(str::to_owned));
    assert!(since.as_ref().is_some_and(|since| since.starts_with("2026-11-21T09:5")), "{since:?}");
}

/// The caller has a deadline. No caller received the listing that was cut short, so its changes are asked for again.
#[tokio::test]
async fn listing_cut_short_moves_no_horizon() {
    let (fake, mut lister) = cloud(|_| servers(&[server("a", OURS)], None)).await;
    // A quota that cannot be read is asked for each time.
    fake.answer(|seen| match seen.line().as_str() {
        "GET /compute/v2.1/servers/detail" => Some(servers(&[server("a", OURS)], None)),
        line if line.contains("/quotas/") => Some(reply(503, "")),
        _ => neutron(seen),
    });
    lister.list(false).await.unwrap();
    fake.take_seen();
    fake.answer(|seen| match seen.line().as_str() {
        "GET /compute/v2.1/servers/detail" => {
            let gone = r#"{"id": "a", "status": "DELETED", "OS-EXT-STS:vm_state": "deleted", "tags": []}"#;
            let body = format!(r#"{{"servers": [{gone}]}}"#);
            Some(reply(200, body).with("Date", "Sat, 21 Nov 2026 11:00:00 GMT"))
        }
        line if line.contains("/quotas/") => Some(way(Way::Never)),
        _ => neutron(seen),
    });
    let cut = tokio::time::timeout(std::time::Duration::from_millis(400), lister.list(false)).await;
    assert!(cut.is_err(), "the quota's answer does not come");
    let since = |fake: &crate::fake::Fake| {
        let seen = fake.take_seen();
        let nova = seen.iter().find(|seen| seen.path.ends_with("/servers/detail")).unwrap().clone();
        nova.query("changes-since").first().map(|text| (*text).to_owned())
    };
    let first = since(&fake);
    fake.answer(|seen| match seen.line().as_str() {
        "GET /compute/v2.1/servers/detail" => {
            let gone = r#"{"id": "a", "status": "DELETED", "OS-EXT-STS:vm_state": "deleted", "tags": []}"#;
            let body = format!(r#"{{"servers": [{gone}]}}"#);
            Some(reply(200, body).with("Date", "Sat, 21 Nov 2026 11:00:05 GMT"))
        }
        _ => neutron(seen),
    });
    let changes = lister.list(false).await.unwrap();
    assert_eq!((since(&fake), ids(&changes)), (first, vec!["a"]), "the same changes once more");
}
