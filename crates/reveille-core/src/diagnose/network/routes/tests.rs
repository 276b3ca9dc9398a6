//! Tables of routes, and the few that may be removed.

use super::*;
use crate::model::id::RouterId;

const POD_RANGE: &str = "198.19.0.0/16";

fn ip(text: &str) -> IpAddr {
    text.parse().unwrap()
}

fn net(text: &str) -> IpNet {
    text.parse().unwrap()
}

/// `"198.19.1.0/24>10.0.0.1"`.
fn route(text: &str) -> Route {
    let (destination, next_hop) = text.split_once('>').unwrap();
    Route { destination: net(destination), next_hop: ip(next_hop) }
}

fn routes(text: &[&str]) -> Vec<Route> {
    text.iter().map(|text| route(text)).collect()
}

fn router(text: &[&str]) -> Router {
    Router { id: RouterId::from("r"), routes: routes(text), limit: None }
}

fn node(name: &str, address: &str, range: &str) -> RouteHolder {
    RouteHolder {
        node: NodeName::from(name),
        pod_ranges: if range.is_empty() { vec![] } else { vec![net(range)] },
        addresses: vec![ip(address)],
        alive: true,
    }
}

/// Two Ready nodes, one range each.
fn pair() -> Vec<RouteHolder> {
    vec![node("a", "10.0.0.1", "198.19.1.0/24"), node("b", "10.0.0.2", "198.19.2.0/24")]
}

fn look(text: &[&str], holders: &[RouteHolder], live: &[&str]) -> RouteReport {
    let live = live.iter().map(|address| ip(address)).collect();
    judged(&router(text), &[net(POD_RANGE)], holders.to_vec(), &live)
}

/// What is on no port is dead.
fn judged(
    router: &Router,
    ranges: &[IpNet],
    holders: impl IntoIterator<Item = RouteHolder>,
    live: &BTreeSet<IpAddr>,
) -> RouteReport {
    let hop = |address: &IpAddr| if live.contains(address) { Hop::InUse } else { Hop::Dead };
    report(router, ranges, holders, &Addresses { on_ports: live, hop: &hop })
}

#[test]
fn a_table_as_it_should_be_says_nothing() {
    let report = look(&["198.19.1.0/24>10.0.0.1", "198.19.2.0/24>10.0.0.2"], &pair(), &[]);
    assert_eq!(report, RouteReport { ours: 2, ..RouteReport::default() });
}

/// Routes of other clusters and of operators are counted and left alone, dead or doubled as they may be.
#[test]
fn foreign_routes_are_never_touched() {
    let foreign = [
        "198.20.1.0/24>10.0.0.77",
        "198.20.1.0/24>10.0.0.78",
        "0.0.0.0/0>10.0.0.254",
        "198.18.0.0/15>10.0.0.77",
        "fd00:9::/64>fd01::9",
    ];
    let report = look(&foreign, &[], &[]);
    assert_eq!(report, RouteReport { foreign: 5, ..RouteReport::default() });
}

/// I109: three routes to one range, and two next hops are in use nowhere: those two go, the live one stays.
#[test]
fn i109_dead_next_hops_go_and_the_owner_stays() {
    let all = [
        "198.19.1.0/24>10.0.0.1",
        "198.19.1.0/24>10.0.0.8",
        "198.19.1.0/24>10.0.0.9",
        "198.19.2.0/24>10.0.0.2",
    ];
    let report = look(&all, &pair(), &[]);
    let stale = routes(&all[1..3]);
    let keep = Some(route(all[0]));
    let destination = net("198.19.1.0/24");
    assert_eq!(
        report.duplicates,
        vec![DuplicateRoute { destination, keep, stale: stale.clone(), undecided: vec![] }]
    );
    assert_eq!(report.removable(), stale);
    assert!(report.missing.is_empty());
}

/// What becomes of the second route to a's range, by who is at its next hop. The first, to a itself, always stays.
#[test]
fn live_duplicate_route_is_stale_only_when_all_objects_agree() {
    let ours = "198.19.1.0/24>10.0.0.1";
    let two = |alive: bool, second: RouteHolder| {
        vec![RouteHolder { alive, ..node("a", "10.0.0.1", "198.19.1.0/24") }, second]
    };
    let with_range = || node("b", "10.0.0.2", "198.19.2.0/24");
    let dual = RouteHolder {
        addresses: vec![ip("10.0.0.1"), ip("10.0.0.2")],
        ..node("a", "10.0.0.1", "198.19.1.0/24")
    };
    let six_only = RouteHolder { pod_ranges: vec![net("fd00::/64")], ..with_range() };
    let table: Vec<(&str, Vec<RouteHolder>, &[&str], bool)> = vec![
        ("its node owns another range", two(true, with_range()), &[], true),
        ("no port is there", two(true, node("b", "10.0.0.3", "198.19.2.0/24")), &[], true),
        ("the owner is not Ready", two(false, with_range()), &[], false),
        ("its node has no range yet", two(true, node("b", "10.0.0.2", "")), &[], false),
        ("its node has a range of the other family", two(true, six_only), &[], false),
        (
            "an instance that is no node is there",
            two(true, node("b", "10.0.0.3", "198.19.2.0/24")),
            &["10.0.0.2"],
            false,
        ),
        ("a second address of the owner", vec![dual], &[], false),
    ];
    for (case, holders, live, stale) in table {
        let report = look(&[ours, "198.19.1.0/24>10.0.0.2"], &holders, live);
        let judged = &report.duplicates[0];
        assert_eq!(judged.keep, Some(route(ours)), "{case}");
        let other = routes(&["198.19.1.0/24>10.0.0.2"]);
        let expected = if stale { (other, vec![]) } else { (vec![], other) };
        assert_eq!((judged.stale.clone(), judged.undecided.clone()), expected, "{case}");
    }
}

#[test]
fn duplicate_route_to_first_owner_address_is_kept() {
    let owner = RouteHolder {
        addresses: vec![ip("10.0.0.2"), ip("10.0.0.1")],
        ..node("a", "10.0.0.1", "198.19.1.0/24")
    };
    let report = look(&["198.19.1.0/24>10.0.0.1", "198.19.1.0/24>10.0.0.2"], &[owner], &[]);
    assert_eq!(report.duplicates[0].keep, Some(route("198.19.1.0/24>10.0.0.2")));
    assert_eq!(report.duplicates[0].undecided, routes(&["198.19.1.0/24>10.0.0.1"]));
}

#[test]
fn without_a_certain_owner_live_routes_are_undecided() {
    let both = ["198.19.1.0/24>10.0.0.1", "198.19.1.0/24>10.0.0.2"];
    let claimed_twice = vec![node("a", "10.0.0.1", "198.19.1.0/24"), node("b", "10.0.0.2", "198.19.1.0/24")];
    let owner_elsewhere = vec![
        node("c", "10.0.0.3", "198.19.1.0/24"),
        node("a", "10.0.0.1", "198.19.5.0/24"),
        node("b", "10.0.0.2", "198.19.6.0/24"),
    ];
    for (case, holders, live) in [
        ("no node owns it", vec![], vec!["10.0.0.1", "10.0.0.2"]),
        ("two nodes claim it", claimed_twice, vec![]),
        ("neither leads to the owner", owner_elsewhere, vec![]),
    ] {
        let report = look(&both, &holders, &live);
        assert_eq!(report.duplicates[0].undecided, routes(&both), "{case}");
        assert_eq!(report.removable(), vec![], "{case}");
    }
    let report = look(&both, &[], &["10.0.0.2"]);
    assert_eq!(
        report.duplicates[0].stale,
        routes(&both[..1]),
        "a dead one is dead whichever node owns the range"
    );
    assert_eq!(report.duplicates[0].undecided, routes(&both[1..]));
}

#[test]
fn single_route_is_removable_only_when_its_next_hop_is_dead() {
    let table: Vec<(&str, &str, &[&str], &str)> = vec![
        ("no node's range, no port there", "198.19.9.0/24>10.0.0.9", &[], "orphaned"),
        ("no node's range, a live instance there", "198.19.9.0/24>10.0.0.9", &["10.0.0.9"], "kept"),
        ("no node's range, a node there", "198.19.9.0/24>10.0.0.2", &[], "kept"),
        ("a's range, no port there", "198.19.1.0/24>10.0.0.9", &[], "misdirected"),
        ("a's range, a live instance there", "198.19.1.0/24>10.0.0.9", &["10.0.0.9"], "kept"),
    ];
    for (case, text, live, expected) in table {
        let report = look(&[text], &pair(), live);
        let place = |routes: &[Route]| routes == [route(text)];
        let got = match (place(&report.orphaned), place(&report.misdirected)) {
            (true, false) => "orphaned",
            (false, true) => "misdirected",
            _ => "kept",
        };
        assert_eq!(got, expected, "{case}");
        assert!(report.duplicates.is_empty(), "{case}");
    }
}

#[test]
fn every_node_with_address_and_range_gets_route_to_own_port() {
    let dual = RouteHolder {
        pod_ranges: vec![net("198.19.3.0/24"), net("fd00:3::/64")],
        addresses: vec![ip("fd01::3"), ip("172.16.0.3"), ip("10.0.0.3")],
        ..node("c", "10.0.0.3", "")
    };
    let off_port = RouteHolder {
        addresses: vec![ip("172.16.0.4"), ip("fd01::4")],
        ..node("d", "172.16.0.4", "198.19.4.0/24")
    };
    let not_ready = RouteHolder { alive: false, ..node("e", "10.0.0.5", "198.19.5.0/24") };
    let no_address = RouteHolder { addresses: vec![], ..node("f", "10.0.0.6", "198.19.6.0/24") };
    let six_range_only = node("g", "10.0.0.7", "fd00:7::/64");
    let outside = node("h", "10.0.0.8", "10.244.8.0/24");
    let holders = [dual, off_port, not_ready, no_address, six_range_only, outside];
    let live = ["10.0.0.3", "fd01::3", "fd01::4", "10.0.0.6", "10.0.0.7", "10.0.0.8"].map(ip).into();
    let report = judged(&router(&[]), &[net(POD_RANGE), net("fd00::/16")], holders, &live);
    let expected = ["198.19.3.0/24>10.0.0.3", "198.19.5.0/24>10.0.0.5", "fd00:3::/64>fd01::3"];
    assert_eq!(report.missing, routes(&expected));
}

#[test]
fn route_to_another_node_does_not_count_as_the_nodes_route() {
    let report = look(&["198.19.1.0/24>10.0.0.2", "198.19.2.0/24>10.0.0.2"], &pair(), &[]);
    assert_eq!(report.missing, routes(&["198.19.1.0/24>10.0.0.1"]));
    assert_eq!(report.removable(), vec![]);
    let twice = vec![node("a", "10.0.0.1", "198.19.1.0/24"), node("b", "10.0.0.2", "198.19.1.0/24")];
    assert!(look(&[], &twice, &[]).missing.is_empty(), "two nodes claim the range: no route by guess");
}

#[test]
fn routes_across_a_nodes_range_are_told_and_left() {
    let report =
        look(&["198.19.0.0/20>10.0.0.2", "198.19.1.128/25>10.0.0.2", "198.19.1.0/24>10.0.0.1"], &pair(), &[]);
    let told: Vec<String> =
        report.overlaps.iter().map(|o| format!("{} {} {}", o.route, o.node, o.range)).collect();
    assert_eq!(
        told,
        [
            "198.19.0.0/20 via 10.0.0.2 a 198.19.1.0/24",
            "198.19.0.0/20 via 10.0.0.2 b 198.19.2.0/24",
            "198.19.1.128/25 via 10.0.0.2 a 198.19.1.0/24",
        ]
    );
    assert_eq!(report.removable(), vec![]);
}

/// I110: the limit counts everybody's routes, and is seen before the refusal.
#[test]
fn i110_the_outlook_counts_foreign_routes_too() {
    let full = Router { limit: Some(3), ..router(&["0.0.0.0/0>10.0.0.254", "198.19.1.0/24>10.0.0.1"]) };
    let report = judged(&full, &[net(POD_RANGE)], pair(), &BTreeSet::new());
    let outlook = report.limit.unwrap();
    assert_eq!(outlook, LimitOutlook { limit: 3, used: 2, needed_next: 1 });
    assert!(!outlook.is_reached());
}

#[test]
fn adding_missing_and_removing_dead_routes_repairs_the_table() {
    let mut broken = router(&["198.19.1.0/24>10.0.0.9", "198.19.7.0/24>10.0.0.7", "192.168.0.0/24>10.0.0.9"]);
    let first = judged(&broken, &[net(POD_RANGE)], pair(), &BTreeSet::new());
    let removable = first.removable();
    broken.routes.retain(|route| !removable.contains(route));
    broken.routes.extend(first.missing);
    let after = judged(&broken, &[net(POD_RANGE)], pair(), &BTreeSet::new());
    assert_eq!(after, RouteReport { ours: 2, foreign: 1, ..RouteReport::default() });
}

mod properties {
    use proptest::prelude::*;

    use super::*;

    /// Few addresses and ranges, so that routes, nodes and machines meet.
    fn hop() -> impl Strategy<Value = IpAddr> {
        (1..6_u8).prop_map(|n| IpAddr::from([10, 0, 0, n]))
    }

    fn range() -> impl Strategy<Value = IpNet> {
        (0..5_u8, prop::bool::weighted(0.2)).prop_map(|(n, foreign)| {
            let second = if foreign { 30 } else { 19 };
            format!("198.{second}.{n}.0/24").parse().unwrap()
        })
    }

    fn holders() -> impl Strategy<Value = Vec<RouteHolder>> {
        let one = (prop::option::of(range()), hop(), any::<bool>());
        prop::collection::vec(one, 0..5).prop_map(|all| {
            let named = all.into_iter().enumerate();
            named
                .map(|(n, (range, address, alive))| RouteHolder {
                    node: NodeName::new(format!("n{n}")),
                    pod_ranges: range.into_iter().collect(),
                    addresses: vec![address],
                    alive,
                })
                .collect()
        })
    }

    fn table() -> impl Strategy<Value = Vec<Route>> {
        let one = (range(), hop()).prop_map(|(destination, next_hop)| Route { destination, next_hop });
        prop::collection::btree_set(one, 0..9).prop_map(|routes| routes.into_iter().collect())
    }

    proptest! {
        #[test]
        fn nothing_alive_or_foreign_is_lost(
            routes in table(),
            holders in holders(),
            live in prop::collection::btree_set(hop(), 0..4),
        ) {
            let ranges = [net(POD_RANGE)];
            let mut router = Router { id: RouterId::from("r"), routes, limit: None };
            let first = judged(&router, &ranges, holders.clone(), &live);
            prop_assert_eq!(first.ours + first.foreign, router.routes.len());
            for route in first.removable() {
                prop_assert!(ranges[0].contains(&route.destination), "foreign: {}", route);
                let of_a_node = holders.iter().find(|holder| holder.addresses.contains(&route.next_hop));
                match of_a_node {
                    None => prop_assert!(!live.contains(&route.next_hop), "alive: {}", route),
                    Some(node) => prop_assert!(!node.owns(&route.destination), "the owner's: {}", route),
                }
            }
            // Doing what the report says leaves nothing to say of the same kind.
            let removable = first.removable();
            router.routes.retain(|route| !removable.contains(route));
            router.routes.extend(first.missing);
            let after = judged(&router, &ranges, holders, &live);
            prop_assert!(after.missing.is_empty());
            prop_assert!(after.orphaned.is_empty() && after.misdirected.is_empty());
        }
    }
}

/// One listing lacked its port: the route takes no part in what is judged of the others.
#[test]
fn route_with_unproven_next_hop_is_left_out() {
    let all = ["198.19.1.0/24>10.0.0.1", "198.19.1.0/24>10.0.0.8", "198.19.9.0/24>10.0.0.9"];
    let (live, hop) = (BTreeSet::new(), |_: &IpAddr| Hop::Unproven);
    let live = Addresses { on_ports: &live, hop: &hop };
    let report = report(&router(&all), &[net(POD_RANGE)], pair(), &live);
    assert_eq!(report.unproven, routes(&all[1..]));
    assert_eq!((report.removable(), report.duplicates.len(), report.ours), (Vec::new(), 0, 3));
}
