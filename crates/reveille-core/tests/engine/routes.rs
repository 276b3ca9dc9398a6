//! Routes through what is no machine of ours, through another project, and those that a nudge left behind.

use std::net::IpAddr;
use std::sync::Arc;

use reveille_core::effect::{Call, Outcome, ReadError, ReadErrorKind};
use reveille_core::event::{CloudFact, CloudSnapshot, Event};
use reveille_core::model::incident::{FaultKind, IncidentKey, Subject};
use reveille_core::model::instance::Instance;
use reveille_core::model::network::{Route, Router};
use reveille_core::model::node::{Condition, Provider, Ready};
use reveille_core::model::roster::{Mode, Pool, Roster};
use reveille_core::model::time::Span;
use reveille_core::remedies::{AddPortPairs, AddRoutes, RemoveRoutes};

use super::fixture::{CLOUD, Field, instance, node, port, roster};
use super::steps::min;

const SECOND: &str = "os-b";

fn ip(text: &str) -> IpAddr {
    text.parse().unwrap()
}

fn route(destination: &str, next_hop: &str) -> Route {
    Route { destination: destination.parse().unwrap(), next_hop: ip(next_hop) }
}

fn with_router(clouds: &[&str]) -> Roster {
    let mut wanted = roster();
    wanted.network.router = Some((CLOUD.into(), "r-1".into()));
    wanted.clouds = clouds.iter().map(|name| (*name).into()).collect();
    wanted
}

/// Five machines, and a router with one route in the pod range that no node needs.
fn routed(clouds: &[&str], route: Route) -> Field {
    let mut field = Field::new(with_router(clouds)).populate(5);
    field.routers = vec![Router { id: "r-1".into(), routes: vec![route], limit: None }];
    field
}

fn second(field: &mut Field, snapshot: CloudSnapshot) {
    field.feed(Event::Cloud { cloud: SECOND.into(), fact: CloudFact::read(snapshot) });
}

fn open(field: &Field, kind: FaultKind) -> bool {
    let subject = Subject::Router(CLOUD.into(), "r-1".into());
    field.state.context().cases.contains_key(&IncidentKey { subject, kind })
}

#[test]
fn route_through_port_of_no_instance_stays() {
    for net in ["10.8.0.250/32", "10.8.0.240/28", "0.0.0.0/0"] {
        let mut field = routed(&[CLOUD], route("198.19.77.0/24", "10.8.0.250"));
        field.in_use.insert(net.parse().unwrap());
        field.run(Span::from_min(20));
        assert_eq!(field.calls, [], "{net}");
        assert!(!open(&field, FaultKind::DuplicateRoute), "{net}");
        field.in_use.clear();
        field.run(Span::from_min(2));
        let hop = ip("10.8.0.250");
        assert!(
            matches!(&field.calls[..], [Call::RemoveRoutes(RemoveRoutes { unless_used, .. })] if *unless_used == [hop]),
            "{net}: {:?}",
            field.calls
        );
    }
}

#[test]
fn dead_next_hop_is_believed_after_two_listings() {
    let mut field = routed(&[CLOUD], route("198.19.77.0/24", "10.8.0.250"));
    field.in_use.insert("10.8.0.250/32".parse().unwrap());
    field.run(Span::from_min(2));
    for back in [true, false] {
        field.in_use.clear();
        field.list_cloud();
        field.now = field.now + Span::from_s(5);
        field.list_cloud();
        assert_eq!(field.calls, [], "one listing, and a second one that is too close to it");
        if back {
            // Another client was creating its port again.
            field.in_use.insert("10.8.0.250/32".parse().unwrap());
            field.run(Span::from_min(5));
            assert_eq!(field.calls, []);
        }
    }
    field.now = field.now + Span::from_s(10);
    field.list_cloud();
    assert!(matches!(field.calls[..], [Call::RemoveRoutes(_)]), "{:?}", field.calls);
}

/// A node of the cluster lives in another project, whose ports the router's project does not list.
#[test]
fn route_to_port_of_second_cloud_stays() {
    let mut field = routed(&[CLOUD, SECOND], route("198.19.77.0/24", "10.8.9.9"));
    let mut there = port("b001", &[]);
    there.addresses = Box::new([ip("10.8.9.9")]);
    let there = CloudSnapshot { ports: vec![("b001".into(), there.into())], ..CloudSnapshot::default() };
    for _ in 0..40 {
        second(&mut field, there.clone());
        field.run(Span::from_s(30));
    }
    assert_eq!(field.calls, []);
    // Its project cannot be listed any more: nothing says that the port is gone.
    for _ in 0..20 {
        let (kind, text) = (ReadErrorKind::Unavailable, "503".into());
        let failed = CloudFact::Failed(ReadError { kind, text, retry_after: None });
        field.feed(Event::Cloud { cloud: SECOND.into(), fact: failed });
        field.run(Span::from_s(30));
    }
    assert_eq!(field.calls, []);
    for _ in 0..4 {
        second(&mut field, CloudSnapshot::default());
        field.run(Span::from_s(30));
    }
    assert!(matches!(field.calls[..], [Call::RemoveRoutes(_)]), "{:?}", field.calls);
}

/// No machine is left, and the list of ports is empty: not even the router's own is in it.
#[test]
fn next_hop_is_not_dead_by_a_list_without_any_port() {
    let mut wanted = roster();
    wanted.network.router = Some((CLOUD.into(), "r-1".into()));
    let mut field = Field::new(wanted);
    let held = route("198.19.77.0/24", "10.8.0.250");
    field.routers = vec![Router { id: "r-1".into(), routes: vec![held], limit: None }];
    field.run(Span::from_min(20));
    assert_eq!(field.calls, []);
    // One list with the router's port is the first of the two that are to agree.
    field.in_use.insert("10.8.0.1/32".parse().unwrap());
    field.list_cloud();
    assert_eq!(field.calls, []);
    field.run(Span::from_min(2));
    assert!(matches!(field.calls[..], [Call::RemoveRoutes(_)]), "{:?}", field.calls);
}

#[test]
fn cloud_never_listed_keeps_every_route() {
    let mut field = routed(&[CLOUD, SECOND], route("198.19.77.0/24", "10.8.0.250"));
    field.run(Span::from_min(30));
    assert_eq!(field.calls, []);
}

/// The route of a nudge whose second half failed takes a place on the router for good.
#[test]
fn nudge_route_left_over_is_removed() {
    let left = route("198.51.100.1/32", "10.8.0.9");
    let mut field = routed(&[CLOUD], left);
    field.nodes.get_mut("i001").unwrap().addresses = Box::new([ip("10.8.0.9")]);
    field.run(Span::from_s(50));
    assert_eq!(field.calls, [], "a nudge of another controller is over within seconds");
    field.run(Span::from_min(4));
    let calls = &field.calls[..];
    assert!(
        matches!(calls, [Call::RemoveRoutes(RemoveRoutes { routes, unless_used, .. })]
            if *routes == [left] && unless_used.is_empty()),
        "{calls:?}"
    );
    assert!(!open(&field, FaultKind::NudgeLeftover));
}

#[test]
fn documentation_route_of_others_stays() {
    for left in [
        // The next hop is in use, and no node of ours: another cluster's nudge.
        route("198.51.100.1/32", "10.8.0.77"),
        // More than one address: no nudge of ours.
        route("198.51.100.0/28", "10.8.0.9"),
        route("203.0.113.1/32", "10.8.0.9"),
    ] {
        let mut field = routed(&[CLOUD], left);
        field.nodes.get_mut("i001").unwrap().addresses = Box::new([ip("10.8.0.9")]);
        field.in_use.insert("10.8.0.77/32".parse().unwrap());
        field.run(Span::from_min(20));
        assert_eq!(field.calls, [], "{left}");
    }
}

/// A nudge that is on its way is not taken for a leftover, however long its answer takes.
#[test]
fn nudge_under_way_is_no_leftover() {
    let mut wanted = roster();
    wanted.network.router = Some((CLOUD.into(), "r-1".into()));
    wanted.network.unreachable_conditions = vec!["NetworkUnavailable".into()];
    let mut field = Field::new(wanted).populate(5);
    field.routers = vec![Router { id: "r-1".into(), routes: Vec::new(), limit: None }];
    let node = field.nodes.get_mut("i001").unwrap();
    node.addresses = Box::new([ip("10.8.0.9")]);
    node.conditions = Box::new([Condition {
        kind: "NetworkUnavailable".into(),
        reason: "NoRouteCreated".into(),
        message: "".into(),
    }]);
    field.leaves_nudges = true;
    field.run(Span::from_min(120));
    let nudged = |call: &&Call| matches!(call, Call::NudgeRouter(_));
    assert!(field.calls.iter().any(|call| nudged(&call)), "{:?}", field.calls);
    assert!(field.routers[0].routes.is_empty(), "each leftover was removed: {:?}", field.routers);
}

/// `Quota exceeded for resources: ['router_route'].` names no number.
#[test]
fn route_limit_without_number_is_learned() {
    let mut field = routed(&[CLOUD], route("198.20.0.0/24", "10.8.0.7"));
    let node = field.nodes.get_mut("i001").unwrap();
    node.addresses = Box::new([ip("10.8.0.9")]);
    node.pod_ranges = Box::new(["198.19.7.0/24".parse().unwrap()]);
    field.refuses = Some(Outcome::Limit { limit: None, text: "409 OverQuota: quota exceeded".into() });
    field.run(Span::from_min(8));
    assert!(matches!(field.calls[..], [Call::AddRoutes(_)]), "{:?}", field.calls);
    assert_eq!(field.state.context().route_limit(&"r-1".into()), Some(1));
    assert!(open(&field, FaultKind::RouteLimit));
}

/// An operator answers "the router is full" with a higher quota.
#[test]
fn router_that_was_given_room_gets_its_route() {
    let mut field = routed(&[CLOUD], route("198.20.0.0/24", "10.8.0.7"));
    let node = field.nodes.get_mut("i001").unwrap();
    node.addresses = Box::new([ip("10.8.0.9")]);
    node.pod_ranges = Box::new(["198.19.7.0/24".parse().unwrap()]);
    field.refuses = Some(Outcome::Limit { limit: None, text: "409 OverQuota: quota exceeded".into() });
    field.run(Span::from_min(14 * 60));
    let refused = field.calls.len();
    assert!((20..=29).contains(&refused), "one call for each backoff: {refused}");
    assert!(open(&field, FaultKind::RouteLimit), "the limit is reported between the calls");
    field.refuses = None;
    field.run(Span::from_min(31));
    assert!(field.calls.len() > refused, "the route is tried again");
    assert_eq!(field.state.context().route_limit(&"r-1".into()), None, "it was accepted");
}

/// Neutron refuses a route whose next hop is on no network of the router (400 InvalidRoutes) while an operator attaches
/// that leg again.
#[test]
fn route_that_was_refused_for_a_while_is_made_when_it_may_be() {
    let mut field = routed(&[CLOUD], route("198.20.0.0/24", "10.8.0.7"));
    let node = field.nodes.get_mut("i001").unwrap();
    node.addresses = Box::new([ip("10.8.0.9")]);
    node.pod_ranges = Box::new(["198.19.7.0/24".parse().unwrap()]);
    field.refuses = Some(Outcome::Refused { text: "400 InvalidRoutes: the nexthop is not connected".into() });
    field.run(Span::from_min(60));
    let refused = field.calls.len();
    assert!((2..=6).contains(&refused), "tried again, and seldom: {refused}");
    let mut field = field.restarted(with_router(&[CLOUD]));
    field.run(Span::from_min(90));
    assert!(matches!(field.calls.first(), Some(Call::AddRoutes(_))), "{:?}", field.calls);
}

/// Two dead routes. The port of one next hop is created again right before the removal, which is refused for both.
#[test]
fn route_whose_hop_came_back_does_not_keep_the_other_dead_one() {
    for listed in [true, false] {
        let (back, dead) = (route("198.19.77.0/24", "10.8.0.250"), route("198.19.78.0/24", "10.8.0.251"));
        let mut field = routed(&[CLOUD], back);
        field.routers[0].routes.push(dead);
        let text = "a port has the address 10.8.0.250 by now";
        field.refuses = Some(Outcome::Moved { text: text.into() });
        for _ in 0..60 {
            if field.calls.is_empty() {
                field.run(Span::from_s(10));
            }
        }
        for _ in 0..10 {
            field.now = field.now + Span::from_s(2);
            field.feed(Event::Tick);
        }
        assert_eq!(field.calls.len(), 1, "no other try before the next listing");
        if listed {
            field.refuses = None;
            field.in_use.insert("10.8.0.250/32".parse().unwrap());
        } else {
            // No listing shows the port: it is refused again, alone.
            for _ in 0..60 {
                if field.calls.len() < 2 {
                    field.run(Span::from_s(10));
                }
            }
            field.refuses = None;
        }
        field.run(Span::from_min(5));
        assert_eq!(field.routers[0].routes, [back], "listed: {listed}: {:?}", field.calls);
    }
}

/// A node registers with a range that is not the roster's, or is another node's: a kubelet may write both into its own object
/// (kubernetes: NodeRestriction leaves podCIDRs alone until they are set).
#[test]
fn doubtful_pod_range_of_a_node_is_neither_routed_nor_allowed() {
    for (range, others_is_mended) in
        [("0.0.0.0/0", true), ("10.0.0.0/8", true), ("198.19.2.0/24", false), ("198.19.2.128/25", false)]
    {
        let mut wanted = roster();
        wanted.network.router = Some((CLOUD.into(), "r-1".into()));
        wanted.network.address_pairs = true;
        let mut field = Field::new(wanted).populate(5);
        field.routers = vec![Router { id: "r-1".into(), routes: vec![], limit: None }];
        for (id, range) in [("i001", range), ("i002", "198.19.2.0/24")] {
            let node = field.nodes.get_mut(id).unwrap();
            node.pod_ranges = Box::new([range.parse().unwrap()]);
            node.addresses.clone_from(&field.ports[id].addresses);
        }
        field.run(Span::from_min(30));
        let of = |id: &str| {
            let (hops, port) = (&field.nodes[id].addresses, &field.ports[id].id);
            let it = |call: &&Call| match call {
                Call::AddRoutes(AddRoutes { routes, .. }) => {
                    routes.iter().any(|route| hops.contains(&route.next_hop))
                }
                Call::AddPortPairs(AddPortPairs { port: of, .. }) => of == port,
                _ => false,
            };
            field.calls.iter().filter(it).count()
        };
        assert_eq!(of("i001"), 0, "{range}: {:?}", field.calls);
        assert_eq!(of("i002") > 0, others_is_mended, "{range}: {:?}", field.calls);
    }
}

/// The kubelet of another machine shows this one's UUID and address, and its Node names no instance: its pod range is not routed
/// to this machine, nor allowed on its port (seed 8200209).
#[test]
fn pod_range_of_a_second_node_is_neither_routed_nor_allowed() {
    for shown in [false, true] {
        let mut wanted = with_router(&[CLOUD]);
        wanted.network.address_pairs = true;
        let mut field = Field::new(wanted).populate(5);
        field.routers = vec![Router { id: "r-1".into(), routes: vec![], limit: None }];
        for id in ["i001", "i002"] {
            let node = field.nodes.get_mut(id).unwrap();
            node.provider = Provider::Unread(format!("k3s://{id}").as_str().into());
            (node.system_uuid, node.addresses) = (Some(id.into()), field.ports[id].addresses.clone());
        }
        field.run(Span::from_min(5));
        let (uuid, addresses) = (Some("i002".into()), field.ports["i002"].addresses.clone());
        let liar = field.nodes.get_mut("i001").unwrap();
        if shown {
            (liar.system_uuid, liar.addresses) = (uuid, addresses);
        }
        liar.pod_ranges = Box::new(["198.19.7.0/24".parse().unwrap()]);
        field.run(Span::from_min(30));
        assert_eq!(field.calls.is_empty(), shown, "{:?}", field.calls);
    }
}

/// A second route to a range stands beside the right one. Another cloud of the roster is not read.
#[test]
fn second_route_stays_while_another_cloud_is_not_read() {
    for clouds in [&[CLOUD][..], &[CLOUD, SECOND]] {
        let mut field = Field::new(with_router(clouds)).populate(5);
        let mut to = |id: &str, range: &str| {
            let hop = field.ports[id].addresses[0];
            let node = field.nodes.get_mut(id).unwrap();
            (node.addresses, node.pod_ranges) = (Box::new([hop]), Box::new([range.parse().unwrap()]));
            hop.to_string()
        };
        let hops = [to("i001", "198.19.7.0/24"), to("i002", "198.19.8.0/24")];
        let right = [route("198.19.7.0/24", &hops[0]), route("198.19.8.0/24", &hops[1])];
        let routes = right.into_iter().chain([route("198.19.7.0/24", &hops[1])]).collect();
        field.routers = vec![Router { id: "r-1".into(), routes, limit: None }];
        field.run(Span::from_min(30));
        assert_eq!(field.calls.is_empty(), clouds.len() > 1, "{clouds:?} {:?}", field.calls);
    }
}

/// EC2 tells of an interface with its instance: a list that lacks a young machine lacks its port as well (seed 3200083).
#[test]
fn route_to_a_machine_that_lists_lack_for_a_while_stays() {
    let mut field = routed(&[CLOUD], route("198.19.77.0/24", "10.8.0.77"));
    field.add_machine("i006", false);
    field.ports.get_mut("i006").unwrap().addresses = Box::new([ip("10.8.0.77")]);
    field.run(Span::from_min(2));
    let (machine, port) = (field.instances.remove("i006").unwrap(), field.ports.remove("i006").unwrap());
    field.cell_down = Some("i006".to_owned());
    field.run(Span::from_min(20));
    assert_eq!(field.calls, []);
    field.cell_down = None;
    field.instances.insert("i006".to_owned(), machine);
    field.ports.insert("i006".to_owned(), port);
    field.run(Span::from_min(2));
    assert_eq!(field.calls, []);
    // It is deleted, and its cloud denies it by id.
    field.delete_machine("i006");
    field.run(Span::from_min(10));
    assert!(matches!(field.calls[..], [Call::RemoveRoutes(_)]), "{:?}", field.calls);
}

/// The first list of a second project has the router's project judged as well, before that one was listed: it shows no group
/// yet (seed 3200001).
#[test]
fn group_of_router_project_is_not_unresolved_before_listing() {
    let mut field = routed(&[CLOUD, SECOND], route("198.19.77.0/24", "10.8.0.250"));
    field.sync_nodes();
    second(&mut field, CloudSnapshot::default());
    let subject = Subject::Group(CLOUD.into(), "k8s-nodes".into());
    let key = IncidentKey { subject, kind: FaultKind::GroupUnresolved };
    assert!(!field.state.context().cases.contains_key(&key));
    // What its own list says counts.
    let snapshot = CloudSnapshot { groups: Some(Vec::new()), ..field.snapshot() };
    field.feed(Event::Cloud { cloud: CLOUD.into(), fact: CloudFact::read(snapshot) });
    assert!(field.state.context().cases.contains_key(&key));
}

/// The router is in one project, the only machine of another one allows a VIP on its port. That project's list of ports is
/// empty for a minute, and the machine is listed with its address as before.
#[test]
fn route_to_vip_stays_when_only_machine_of_project_has_no_port() {
    let mut wanted = roster();
    wanted.network.router = Some((CLOUD.into(), "r-1".into()));
    wanted.clouds = vec![CLOUD.into(), SECOND.into()];
    let gate = Pool { name: "gate".into(), cloud: SECOND.into(), ..wanted.pools["workers"].clone() };
    wanted.pools.insert("gate".into(), gate);
    let mut field = Field::new(wanted).populate(5);
    let held = route("198.19.77.0/24", "10.8.9.50");
    field.routers = vec![Router { id: "r-1".into(), routes: vec![held], limit: None }];
    let mut there = port("b001", &["g-nodes"]);
    there.addresses = Box::new([ip("10.8.9.9")]);
    there.pairs = Box::new(["10.8.9.50/32".parse().unwrap()]);
    let machine = Instance { addresses: Box::new([ip("10.8.9.9")]), ..instance("b001") };
    let whole = CloudSnapshot {
        instances: vec![machine.into()],
        ports: vec![("b001".into(), there.into())],
        in_use: Arc::new(["10.8.9.50/32".parse().unwrap()].into()),
        groups: field.snapshot().groups,
        ..CloudSnapshot::default()
    };
    field.nodes.insert("b001".into(), node("b001", Ready::True));
    for _ in 0..10 {
        second(&mut field, whole.clone());
        field.run(Span::from_s(30));
    }
    for _ in 0..5 {
        let torn = CloudSnapshot { ports: Vec::new(), in_use: Arc::default(), ..whole.clone() };
        second(&mut field, torn);
        field.run(Span::from_s(30));
    }
    assert_eq!(field.calls, []);
}

/// A router is replaced by another, and the roster is changed to name that one, while an incident of the old one is open.
#[test]
fn incident_of_router_ends_when_roster_drops_the_router() {
    for now in [None, Some("r-2")] {
        let routed = |router: Option<&str>| {
            let mut wanted = roster();
            wanted.network.router = router.map(|router| (CLOUD.into(), router.into()));
            wanted.pools.values_mut().for_each(|pool| pool.repair.network = Mode::Propose);
            wanted
        };
        let mut field = Field::new(routed(Some("r-1"))).populate(5);
        let dead =
            Route { destination: "198.19.77.0/24".parse().unwrap(), next_hop: "10.8.0.250".parse().unwrap() };
        field.routers = vec![Router { id: "r-1".into(), routes: vec![dead], limit: None }];
        field.run(min(20));
        let is_open = |field: &Field| {
            let mut keys = field.state.context().cases.keys();
            keys.any(|key| matches!(key.subject, Subject::Router(..)))
        };
        assert!(is_open(&field), "its route is dead");
        field.routers =
            now.map(|id| Router { id: id.into(), routes: vec![], limit: None }).into_iter().collect();
        let mut field = field.restarted(routed(now));
        field.run(min(120));
        assert!(!is_open(&field), "{now:?}: never ends");
    }
}

/// The roster names a router that is full. The operator takes the router out of the roster, and starts us again.
#[test]
fn incident_of_full_router_ends_when_roster_drops_the_router() {
    let mut with_router = roster();
    with_router.network.router = Some((CLOUD.into(), "r-1".into()));
    let mut field = Field::new(with_router).populate(10);
    let route = Route { destination: "198.19.77.0/24".parse().unwrap(), next_hop: [10, 8, 0, 9].into() };
    field.routers = vec![Router { id: "r-1".into(), routes: vec![route], limit: Some(1) }];
    field.run(min(20));
    let is_of_router = |key: &IncidentKey| matches!(key.subject, Subject::Router(..));
    let open = |field: &Field| field.state.context().cases.keys().filter(|key| is_of_router(key)).count();
    assert!(open(&field) > 0, "{:?}", field.state.context().cases.keys().collect::<Vec<_>>());
    field.routers.clear();
    let mut field = field.restarted(roster());
    field.run(min(24 * 60));
    assert_eq!(open(&field), 0, "{:?}", field.state.context().cases.keys().collect::<Vec<_>>());
}
