//! A listing costs four requests and never mistakes a filter for proof.

use crate::fake::{Fake, Seen, reply};
use crate::healthy::{OURS, cloud, ids, interest, neutron, server, servers};
use reveille_core::model::id::{CloudName, GroupId, PoolName, RosterName, RouterId};
use reveille_core::model::instance::{InstanceState, Mark};
use reveille_core::model::roster::Access;
use reveille_core::model::roster::{
    Deadlines, GroupRef, Limits, Network, Ownership, Pool, Repair, Roster, Timing,
};
use reveille_openstack::Interest;
use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;

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
        startup_taints: Vec::new(),
        keep: None,
        through_group: false,
    };
    let roster = |pools: usize| Roster {
        name: RosterName::from("prod"),
        clouds: vec![CloudName::from("os")],
        settles: BTreeMap::new(),
        network: Network {
            router: Some((CloudName::from("os"), RouterId::from("r1"))),
            ..Network::default()
        },
        pools: (0..pools).map(|n| pool(&format!("w{n}"))).map(|pool| (pool.name.clone(), pool)).collect(),
        access: Access::default(),
        limits: Limits::default(),
        timing: Timing::default(),
    };
    let name = CloudName::from("os");
    let (one, forty) = (roster(1), roster(40));
    let wanted = Interest::of([(&one, &name), (&forty, &name)]);
    assert_eq!(wanted, interest());
    lister.set_interest(wanted);
    lister.list(true).await.unwrap();
    assert!(fake.take_lines().contains(&format!("GET /network/v2.0/quotas/{}", crate::fake::PROJECT_ID)));
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
        assert_eq!(snapshot.ports.len(), 2, "a foreign machine's port is listed too: its address is in use");
        assert_eq!(snapshot.groups.as_ref().map(Vec::len), Some(1));
        assert_eq!(snapshot.routers[0].limit, Some(30));
    }
}

/// A page that is full says that another follows, and only an empty one says that none did.
#[tokio::test]
async fn multi_page_full_listing_leaves_groups_to_next_cycle() {
    let (fake, mut lister) = cloud(|seen| match seen.query("marker").first() {
        None if seen.query("changes-since").is_empty() => servers(&[server("a", OURS)], Some("a")),
        _ => servers(&[], None),
    })
    .await;
    let first = lister.list(true).await.unwrap();
    assert!(first.groups.is_some(), "the groups are not known yet");
    fake.take_lines();
    let mut cycle = async |full: bool| {
        let snapshot = lister.list(full).await.unwrap();
        (fake.take_lines().len(), snapshot.groups.is_some())
    };
    assert_eq!(cycle(false).await, (4, true));
    assert_eq!(cycle(true).await, (4, false));
    assert_eq!(cycle(false).await, (4, true));
    assert_eq!(cycle(true).await, (4, false));
    assert_eq!(cycle(true).await, (5, true), "never twice in a row");
    assert_eq!(cycle(true).await, (4, false));
    lister.set_interest(Interest { routers: BTreeSet::new(), ..interest() });
    assert!(lister.list(true).await.unwrap().groups.is_some(), "another question is answered as a whole");
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
    assert_eq!(ports.query("project_id"), [crate::fake::PROJECT_ID]);
    assert!(ports.query("fields").contains(&"revision_number"));
    let groups = &seen["/network/v2.0/security-groups"];
    assert_eq!(groups.query("name"), ["k8s-nodes"]);
    assert_eq!(groups.query("project_id"), [crate::fake::PROJECT_ID]);
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
    assert_eq!(seen.len(), 2, "the roster needs no groups and no routers");
}

#[tokio::test]
async fn without_any_pool_nothing_is_asked() {
    let (fake, mut lister) = cloud(|_| servers(&[server("a", OURS)], None)).await;
    lister.set_interest(Interest::default());
    assert!(lister.list(true).await.unwrap().instances.is_empty());
    assert_eq!(fake.take_lines(), Vec::<String>::new());
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
        assert_eq!(ids(&snapshot), ["a", "b", "c"], "known as ours: still listed; never known: left out");
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
async fn groups_by_name_and_id_cost_one_request_if_project_owns_all() {
    let (fake, mut lister) = cloud(|_| servers(&[], None)).await;
    let groups = |ids: &[&str]| {
        let mut all = BTreeSet::from([GroupRef::Name("k8s-nodes".into())]);
        all.extend(ids.iter().map(|id| GroupRef::Id(GroupId::from(*id))));
        Interest { groups: all, ..interest() }
    };
    lister.set_interest(groups(&["g2"]));
    let snapshot = lister.list(true).await.unwrap();
    assert_eq!(snapshot.groups.iter().flatten().map(|g| g.id.as_str()).collect::<Vec<_>>(), ["g1", "g2"]);
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

/// VIPs, trunk subports, legs of routers, load balancers and DHCP may be next hops of routes, and belong to no instance.
#[tokio::test]
async fn ports_of_no_instance_are_in_use() {
    let port = |id: &str, owner: &str, address: &str, pair: &str| {
        format!(
            r#"{{"id": "{id}", "device_id": "d", "device_owner": "{owner}", "network_id": "n1",
                "fixed_ips": [{{"subnet_id": "s1", "ip_address": "{address}"}}],
                "allowed_address_pairs": [{{"ip_address": "{pair}"}}]}}"#
        )
    };
    let ports = [
        port("p1", "compute:nova", "10.0.0.5", "198.19.1.0/24"),
        port("p2", "", "10.0.0.10", "10.0.0.11"),
        port("p3", "Octavia", "10.0.0.20", "10.0.0.20"),
        port("p4", "trunk:subport", "10.0.0.30", "10.0.0.30"),
        port("p5", "network:router_interface", "10.0.0.1", "10.0.0.1"),
        port("p6", "network:dhcp", "10.0.0.2", "10.0.0.2"),
    ];
    let (fake, mut lister) = cloud(|_| servers(&[server("a", OURS)], None)).await;
    fake.answer(move |seen| match seen.line().as_str() {
        "GET /compute/v2.1/servers/detail" => Some(servers(&[server("a", OURS)], None)),
        "GET /network/v2.0/ports" => Some(reply(200, format!(r#"{{"ports": [{}]}}"#, ports.join(", ")))),
        _ => neutron(seen),
    });
    let snapshot = lister.list(true).await.unwrap();
    let in_use: Vec<String> = snapshot.in_use.iter().map(ToString::to_string).collect();
    let hosts = ["10.0.0.1", "10.0.0.2", "10.0.0.10", "10.0.0.11", "10.0.0.20", "10.0.0.30"];
    let mut expected: Vec<String> = hosts.iter().map(|host| format!("{host}/32")).collect();
    expected.push("198.19.1.0/24".to_owned());
    assert_eq!(in_use, expected);
    assert_eq!(snapshot.ports.len(), 1, "and one port is an instance's");
    let again = lister.list(false).await.unwrap();
    assert!(Arc::ptr_eq(&again.in_use, &snapshot.in_use), "what did not change costs no memory");
}
