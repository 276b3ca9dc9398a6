//! A listing is whole or void, costs four requests, and never mistakes a filter or a change for proof.
#![allow(clippy::unwrap_used, clippy::expect_used, reason = "in a test, what cannot be is a failure")]

mod fake;

use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;

use fake::{Fake, Reply, Seen, Way, nova_fault, reply, way};
use reveille_core::effect::ReadErrorKind;
use reveille_core::event::Scope;
use reveille_core::model::id::{CloudName, GroupId, InstanceId, PoolName, RosterName, RouterId};
use reveille_core::model::instance::{InstanceState, Mark};
use reveille_core::model::roster::{
    Deadlines, GroupRef, Limits, Network, Ownership, Pool, Repair, Roster, Timing,
};
use reveille_core::model::time::Span;
use reveille_openstack::{Interest, Lister};

const DATE: &str = "Sat, 21 Nov 2026 10:00:00 GMT";

fn interest() -> Interest {
    Interest {
        cluster_marks: BTreeSet::from([Mark::Tag("k8s-cluster=prod".into())]),
        groups: BTreeSet::from([GroupRef::Name("k8s-nodes".into())]),
        routers: BTreeSet::from([RouterId::from("r1")]),
    }
}

fn server(id: &str, more: &str) -> String {
    format!(
        r#"{{"id": "{id}", "name": "{id}", "status": "ACTIVE", "OS-EXT-STS:vm_state": "active", "OS-EXT-STS:task_state": null{more}}}"#
    )
}

const OURS: &str = r#", "tags": ["k8s-cluster=prod"]"#;

fn servers(list: &[String], next: Option<&str>) -> Reply {
    let links = next.map_or(String::new(), |marker| {
        format!(
            r#", "servers_links": [{{"rel": "next", "href": "http://inner:1/servers/detail?limit=1000&marker={marker}"}}]"#
        )
    });
    reply(200, format!(r#"{{"servers": [{}]{links}}}"#, list.join(", "))).with("Date", DATE)
}

fn port(id: &str, device: &str) -> String {
    format!(
        r#"{{"id": "{id}", "device_id": "{device}", "device_owner": "compute:nova", "network_id": "n1",
            "fixed_ips": [], "security_groups": ["g1"], "allowed_address_pairs": [], "status": "ACTIVE",
            "port_security_enabled": true, "revision_number": 4}}"#
    )
}

/// Neutron's side of a healthy project.
fn neutron(seen: &Seen) -> Option<Reply> {
    Some(match seen.path.as_str() {
        "/network/v2.0/ports" => {
            reply(200, format!(r#"{{"ports": [{}, {}]}}"#, port("p1", "a"), port("p9", "foreign")))
        }
        "/network/v2.0/security-groups" => reply(
            200,
            r#"{"security_groups": [{"id": "g1", "name": "k8s-nodes", "project_id": "0123456789abcdef0123456789abcdef",
                "security_group_rules": []}, {"id": "g2", "name": "other", "security_group_rules": []}]}"#,
        ),
        "/network/v2.0/routers" => reply(
            200,
            r#"{"routers": [{"id": "r1", "routes": [{"destination": "198.19.1.0/24", "nexthop": "10.0.0.5"}]}]}"#,
        ),
        _ => return None,
    })
}

/// A healthy project whose Nova answers `nova`.
async fn cloud(mut nova: impl FnMut(&Seen) -> Reply + Send + 'static) -> (Fake, Lister) {
    let fake = Fake::start(move |seen| match seen.line().as_str() {
        "GET /compute/v2.1/servers/detail" => Some(nova(seen)),
        _ => neutron(seen),
    })
    .await;
    let lister = Lister::new(fake.connect().await, interest());
    (fake, lister)
}

fn ids(snapshot: &reveille_core::event::CloudSnapshot) -> Vec<&str> {
    snapshot.instances.iter().map(|instance| instance.id.as_str()).collect()
}

#[tokio::test]
async fn a_cycle_is_four_requests_however_many_pools_there_are() {
    let (fake, mut lister) = cloud(|_| servers(&[server("a", OURS)], None)).await;
    let pool = |name: &str| Pool {
        name: PoolName::from(name),
        cloud: CloudName::from("os"),
        owned: Ownership {
            cluster: Mark::Tag("k8s-cluster=prod".into()),
            pool: Some(Mark::Tag(format!("k8s-pool={name}").into())),
        },
        groups: vec![GroupRef::Name("k8s-nodes".into())],
        min: 0,
        deadlines: Deadlines::default(),
        repair: Repair::default(),
        paused: false,
    };
    let roster = |pools: usize| Roster {
        name: RosterName::from("prod"),
        clouds: vec![CloudName::from("os")],
        network: Network {
            router: Some((CloudName::from("os"), RouterId::from("r1"))),
            ..Network::default()
        },
        pools: (0..pools).map(|n| pool(&format!("w{n}"))).map(|pool| (pool.name.clone(), pool)).collect(),
        limits: Limits::default(),
        timing: Timing::default(),
    };
    let name = CloudName::from("os");
    let (one, forty) = (roster(1), roster(40));
    let wanted = Interest::of(&[(&one, &name), (&forty, &name)]);
    assert_eq!(wanted, interest());
    lister.set_interest(wanted);
    lister.list(true).await.unwrap();
    assert!(fake.take_lines().contains(&format!("GET /network/v2.0/quotas/{}", fake::PROJECT_ID)));
    for full in [true, false, true] {
        let snapshot = lister.list(full).await.unwrap();
        assert_eq!(
            fake.take_lines(),
            [
                "GET /compute/v2.1/servers/detail",
                "GET /network/v2.0/ports",
                "GET /network/v2.0/routers",
                "GET /network/v2.0/security-groups",
            ]
        );
        assert_eq!(ids(&snapshot), ["a"]);
        assert_eq!(snapshot.ports.len(), 1, "a port of a machine that is not ours is left out");
        assert_eq!(snapshot.groups.len(), 1);
        assert_eq!(snapshot.routers[0].limit, Some(30));
    }
}

#[tokio::test]
async fn requests_say_what_they_must_and_no_more() {
    let (fake, mut lister) = cloud(|_| servers(&[], None)).await;
    lister.list(true).await.unwrap();
    let seen: BTreeMap<String, Seen> =
        fake.take_seen().into_iter().map(|seen| (seen.path.clone(), seen)).collect();
    let nova = &seen["/compute/v2.1/servers/detail"];
    assert_eq!(nova.query("tags-any"), ["k8s-cluster=prod"]);
    assert_eq!(nova.headers["openstack-api-version"], "compute 2.96");
    assert_eq!(nova.headers["x-openstack-nova-api-version"], "2.96");
    assert!(nova.headers["user-agent"].starts_with("reveille/"));
    let ports = &seen["/network/v2.0/ports"];
    assert_eq!(ports.query("project_id"), [fake::PROJECT_ID]);
    assert!(ports.query("fields").contains(&"revision_number"));
    let groups = &seen["/network/v2.0/security-groups"];
    assert_eq!(groups.query("name"), ["k8s-nodes"]);
    assert_eq!(groups.query("project_id"), [fake::PROJECT_ID]);
    assert_eq!(seen["/network/v2.0/routers"].query("id"), ["r1"]);
}

#[tokio::test]
async fn the_filter_is_not_believed() {
    // An older or proxied Nova ignores a filter that it does not know, and answers with the whole project.
    let list = [
        server("a", OURS),
        server("b", r#", "tags": ["k8s-cluster=production"]"#),
        server("c", r#", "metadata": {"k8s-cluster": "prod"}"#),
        server("d", ""),
    ];
    let (_fake, mut lister) = cloud(move |_| servers(&list, None)).await;
    assert_eq!(ids(&lister.list(true).await.unwrap()), ["a"]);
}

#[tokio::test]
async fn marks_in_metadata_are_listed_without_a_filter() {
    let list = [server("a", OURS), server("c", r#", "metadata": {"k8s-cluster": "prod"}"#)];
    let (fake, mut lister) = cloud(move |_| servers(&list, None)).await;
    let mark = Mark::Metadata("k8s-cluster".into(), "prod".into());
    lister.set_interest(Interest { cluster_marks: BTreeSet::from([mark]), ..Interest::default() });
    assert_eq!(ids(&lister.list(true).await.unwrap()), ["c"]);
    let seen = fake.take_seen();
    assert!(seen.iter().all(|seen| seen.query("tags-any").is_empty()));
    assert_eq!(seen.len(), 2, "nobody asked for groups or routers");
}

#[tokio::test]
async fn without_any_pool_nothing_is_asked() {
    let (fake, mut lister) = cloud(|_| servers(&[server("a", OURS)], None)).await;
    lister.set_interest(Interest::default());
    assert!(lister.list(true).await.unwrap().instances.is_empty());
    assert_eq!(fake.take_lines(), Vec::<String>::new());
}

#[tokio::test]
async fn pages_are_followed_and_an_object_on_two_of_them_counts_once() {
    let (fake, mut lister) = cloud(|seen| match seen.query("marker").first() {
        None => servers(&[server("a", OURS), server("b", OURS)], Some("b")),
        Some(&"b") => servers(&[server("b", OURS), server("c", OURS)], Some("c")),
        Some(_) => servers(&[], None),
    })
    .await;
    assert_eq!(ids(&lister.list(true).await.unwrap()), ["a", "b", "c"]);
    let markers: Vec<Vec<String>> = fake
        .take_seen()
        .iter()
        .filter(|seen| seen.path.ends_with("/servers/detail"))
        .map(|seen| seen.query("marker").iter().map(|m| (*m).to_owned()).collect())
        .collect();
    assert_eq!(markers, [vec![], vec!["b".to_owned()], vec!["c".to_owned()]]);
}

/// What Nova answers to the first page and to the second.
type Fault = (&'static str, fn() -> Reply, fn() -> Reply, ReadErrorKind, &'static str);

#[tokio::test]
async fn a_listing_with_a_hole_is_void() {
    use ReadErrorKind::{Forbidden, Incomplete, Malformed, Throttled, TimedOut, Unavailable};
    let first = || servers(&[server("a", OURS)], Some("a"));
    let none = || reply(500, "");
    let cases: [Fault; 17] = [
        ("second page fails", first, || reply(500, ""), Incomplete, "(page 2): 500 Internal Server Error"),
        (
            "second page throttled",
            first,
            || reply(429, "").with("Retry-After", "20"),
            Incomplete,
            "(page 2): 429",
        ),
        (
            "marker refused",
            first,
            || nova_fault(400, "badRequest", "marker [a] not found"),
            Incomplete,
            "marker [a] not found",
        ),
        ("page repeats", first, || servers(&[server("a", OURS)], None), Incomplete, "brings nothing"),
        ("marker loops", first, || servers(&[server("b", OURS)], Some("a")), Incomplete, "read already"),
        ("second page never comes", first, || way(Way::Never), Incomplete, "no answer within 1 s"),
        (
            "second page is cut",
            first,
            || Reply { way: Way::Cut, ..servers(&[server("b", OURS)], None) },
            Incomplete,
            "(page 2)",
        ),
        ("first page is cut", || way(Way::Cut), none, Unavailable, "the connection broke"),
        ("first page dropped", || way(Way::Dropped), none, Unavailable, "the connection broke"),
        ("first page never comes", || way(Way::Never), none, TimedOut, "no answer within 1 s"),
        ("json ends early", || reply(200, r#"{"servers": [{"id": "a""#), none, Incomplete, "line 1"),
        ("no list in it", || reply(200, "{}"), none, Malformed, "cannot be read"),
        ("a login page", || reply(200, "<html>please log in</html>"), none, Malformed, "cannot be read"),
        (
            "a server without an id",
            || reply(200, r#"{"servers": [{"name": "x"}]}"#),
            none,
            Malformed,
            "cannot be read",
        ),
        (
            "forbidden",
            || nova_fault(403, "forbidden", "Policy doesn't allow it."),
            none,
            Forbidden,
            "403 Forbidden: Policy",
        ),
        ("throttled", || reply(498, "").with("X-RateLimit-Retry-After", "20"), none, Throttled, "498"),
        ("down", || reply(503, "<html>"), none, Unavailable, "503 Service Unavailable"),
    ];
    for (name, first, second, kind, says) in cases {
        let (_fake, mut lister) =
            cloud(move |seen| if seen.query("marker").is_empty() { first() } else { second() }).await;
        let error = lister.list(true).await.expect_err(name);
        assert_eq!(error.kind, kind, "{name}: {error}");
        assert!(error.text.starts_with("openstack: cannot list servers of project prod"), "{name}: {error}");
        assert!(error.text.contains(says), "{name}: {error}");
        assert!(error.text.ends_with("Nothing is judged from this listing."), "{name}: {error}");
        if name.contains("throttled") {
            assert_eq!(error.retry_after, Some(Span::from_s(20)), "{name}");
        }
    }
}

#[tokio::test]
async fn any_of_the_four_lists_voids_the_reading() {
    for (path, what) in [
        ("/network/v2.0/ports", "list ports"),
        ("/network/v2.0/security-groups", "list security groups"),
        ("/network/v2.0/routers", "list routers"),
    ] {
        let (fake, mut lister) = cloud(|_| servers(&[server("a", OURS)], None)).await;
        fake.answer(move |seen| match seen.line() {
            line if line.ends_with(path) => Some(reply(503, "")),
            line if line.ends_with("/servers/detail") => Some(servers(&[], None)),
            _ => neutron(seen),
        });
        let error = lister.list(true).await.unwrap_err();
        assert_eq!(error.kind, ReadErrorKind::Unavailable);
        assert!(error.text.contains(what), "{error}");
    }
}

#[tokio::test]
async fn one_server_that_cannot_be_read_does_not_hide_the_others() {
    let (fake, mut lister) =
        cloud(|_| servers(&[server("a", OURS), server("b", OURS), server("c", OURS)], None)).await;
    assert_eq!(ids(&lister.list(true).await.unwrap()), ["a", "b", "c"]);
    let unreadable = r#"{"id": "b", "status": 7, "tags": "what"}"#;
    let of_a_cell_that_is_down = r#"{"id": "b", "status": "UNKNOWN", "tenant_id": "p", "links": []}"#;
    for (poisoned, full) in [(unreadable, true), (unreadable, false), (of_a_cell_that_is_down, true)] {
        fake.answer(move |seen| match seen.line().as_str() {
            "GET /compute/v2.1/servers/detail" => {
                let list =
                    [server("a", OURS), poisoned.to_owned(), server("c", OURS), poisoned.replace('b', "x")];
                Some(servers(&list, None))
            }
            _ => neutron(seen),
        });
        let snapshot = lister.list(full).await.unwrap();
        assert_eq!(ids(&snapshot), ["a", "b", "c"], "known as ours: in sight; never known: nobody's");
        assert_eq!(snapshot.instances[1].state, InstanceState::Other);
        assert!(snapshot.instances[1].marks.contains(&Mark::Tag("k8s-cluster=prod".into())));
    }
}

#[tokio::test]
async fn what_did_not_change_keeps_its_place_in_memory() {
    let (_fake, mut lister) = cloud(|_| servers(&[server("a", OURS), server("b", OURS)], None)).await;
    let one = lister.list(true).await.unwrap();
    let two = lister.list(true).await.unwrap();
    assert!(one.instances.iter().zip(&two.instances).all(|(a, b)| Arc::ptr_eq(a, b)));
    assert!(Arc::ptr_eq(&one.ports[0].1, &two.ports[0].1));
    assert!(Arc::ptr_eq(&one.instances[0].marks, &one.instances[1].marks));
}

#[tokio::test]
async fn changes_are_asked_for_by_the_servers_clock_and_without_the_filter() {
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

#[tokio::test]
async fn groups_by_name_and_by_id_cost_one_question_while_all_are_the_projects_own() {
    let (fake, mut lister) = cloud(|_| servers(&[], None)).await;
    let groups = |ids: &[&str]| {
        let mut all = BTreeSet::from([GroupRef::Name("k8s-nodes".into())]);
        all.extend(ids.iter().map(|id| GroupRef::Id(GroupId::from(*id))));
        Interest { groups: all, ..interest() }
    };
    lister.set_interest(groups(&["g2"]));
    let snapshot = lister.list(true).await.unwrap();
    assert_eq!(snapshot.groups.iter().map(|g| g.id.as_str()).collect::<Vec<_>>(), ["g1", "g2"]);
    let asked = |fake: &Fake| {
        let seen = fake.take_seen();
        let groups = seen.iter().filter(|seen| seen.path.ends_with("/security-groups"));
        groups
            .map(|seen| seen.query("id").iter().map(|id| (*id).to_owned()).collect())
            .collect::<Vec<Vec<_>>>()
    };
    assert_eq!(asked(&fake), [Vec::<String>::new()]);
    lister.set_interest(groups(&["g2", "shared"]));
    lister.list(true).await.unwrap();
    assert_eq!(asked(&fake), [vec![], vec!["shared".to_owned()]]);
}
