//! Machines whose Nodes show more than their own addresses, or not those that their cloud lists, and leases that are listed
//! now and then: a machine that serves is left alone, and a dead one is repaired.

use std::net::IpAddr;

use reveille_core::model::incident::{FaultKind, Subject};
use reveille_core::model::lease::Renewal;
use reveille_core::model::node::{Node, Ready};
use reveille_core::model::time::Span;

use super::fixture::{Field, roster};
use super::fleets::{comes, fleet};
use super::host_names::held;
use super::next_process::Ledger;
use super::steps::{made, min, on, run_with, set, touched, without_rejoin};

/// k3s has one `node-external-ip` list in the image of a pool: the floating IPs of the two machines that take the ingress
/// traffic (servicelb asks for that). Neutron has them on `i001` and `i002`, and Nova lists them there. Each machine that is made
/// shows its own address first, and these two. It joins, is Ready and renews its lease for good.
#[test]
fn new_machine_that_shows_addresses_of_two_others_serves_on() {
    let mut found = Vec::new();
    for links in ["uuid", "address"] {
        for shown in [0, 1, 2, 3] {
            let mut field = fleet(links, 12, roster());
            field.run(min(20));
            field.add_machine("new", false);
            field.delete_machine("new");
            comes(&mut field, links, "new", "vm-new");
            let mut addresses = field.ports["new"].addresses.to_vec();
            addresses.extend((0..shown).map(|number| field.ports[&format!("i{number:03}")].addresses[0]));
            let addresses: Box<[IpAddr]> = addresses.into();
            field.nodes.get_mut("new").unwrap().addresses = addresses;
            field.deaf = true;
            field.run(min(4 * 60));
            found.push((links, shown, on(&field, "new")));
        }
    }
    assert!(found.iter().all(|(.., made)| made.is_empty()), "(links, others shown, calls): {found:#?}");
}

/// The same of one that joined long ago, whose configuration is changed so; with and without the right to list leases, and
/// where Reveille is installed later.
#[test]
fn old_machine_that_shows_addresses_of_two_others_serves_on() {
    let mut found = Vec::new();
    for leases in [true, false] {
        for when in ["later", "from the start"] {
            let mut field = fleet("address", 12, roster());
            let run = |field: &mut Field, span: Span| match leases {
                true => field.run(span),
                false => run_with(field, span, |_| None),
            };
            if when == "later" {
                run(&mut field, min(20));
            }
            let mut addresses = field.ports["i007"].addresses.to_vec();
            addresses.extend(["i001", "i002"].map(|id| field.ports[id].addresses[0]));
            field.nodes.get_mut("i007").unwrap().addresses = addresses.into();
            field.deaf = true;
            run(&mut field, min(4 * 60));
            found.push((leases, when, on(&field, "i007")));
        }
    }
    assert!(found.iter().all(|(.., made)| made.is_empty()), "(leases, when, calls): {found:#?}");
}

/// Lists of leases at these distances in turn, in seconds; all else as always.
fn run_with_gaps(field: &mut Field, span: Span, gaps_s: &[i64]) {
    let (mut next, mut turn) = (field.now, 0);
    run_with(field, span, |field| {
        if field.now < next {
            return None;
        }
        next = field.now + Span::from_s(gaps_s[turn % gaps_s.len()]);
        turn += 1;
        Some(field.leases_without(&[]))
    });
}

/// As `lists_of_leases_at_uneven_distances_delay_no_repair_for_ever`: the API server refuses lists for a while now and then (429
/// with `Retry-After`, or a list that hangs until its time is over and the wait before the next), and answers some in between.
#[test]
fn lists_of_leases_in_bursts_delay_no_repair_for_ever() {
    let mut found = Vec::new();
    for gaps_s in
        [&[10][..], &[100], &[10, 80], &[10, 90], &[10, 100], &[10, 10, 10, 100], &[10, 10, 10, 300]]
    {
        let mut field = fleet("provider", 10, roster());
        field.run(min(20));
        set(&mut field, "i004", Ready::Unknown);
        field.deaf = true;
        run_with_gaps(&mut field, min(6 * 60), gaps_s);
        let why = held(&field, "i004", FaultKind::NotReady);
        found.push((gaps_s, on(&field, "i004").len(), why));
    }
    let stalled: Vec<_> = found.iter().filter(|(_, calls, _)| *calls == 0).collect();
    assert!(stalled.is_empty(), "(gaps, calls in six hours, why): {stalled:#?}");
}

/// Each of many machines has, beside its own address, one in a network of its own with the same range (edge sites, Heat
/// stacks), and the cloud controller lists both on each Node. Or each site calls its one machine `worker`, and its Node by the
/// site's domain. What one Node says is looked at for no more machines than [`ALIKE_MAX`] of each: all for each is the square
/// of the fleet.
#[test]
fn node_of_a_site_like_all_others_concerns_few_machines() {
    let mut found = Vec::new();
    for (alike, count) in [("range", 40), ("range", 200), ("names", 40), ("names", 200)] {
        let mut field = Field::new(roster()).populate(count);
        field.ledger = Ledger::unknown();
        for (id, node) in &mut field.nodes {
            let mut addresses = field.ports[id].addresses.to_vec();
            if alike == "range" {
                addresses.push([192, 168, 0, 10].into());
            } else {
                field.instances.get_mut(id).unwrap().name = "worker".into();
                node.name = format!("worker.site-{id}.example.com").as_str().into();
            }
            field.instances.get_mut(id).unwrap().addresses = addresses.clone().into();
            (node.addresses, node.system_uuid) = (addresses.into(), Some(id.as_str().into()));
        }
        field.run(min(1));
        let context = field.state.context();
        let node = context.cluster.nodes.values().next().unwrap();
        let (cloud, seen) =
            context.seen_of(&Subject::Machine(node.link.as_ref().unwrap().machine())).unwrap();
        let concerns = context.views().machines_of(node).len();
        found.push((alike, count, concerns, context.views().sharers(&cloud.name, seen).len()));
    }
    let few = |(_, count, concerns, sharers): &(_, usize, usize, usize)| match count {
        40 => *concerns == 39 && *sharers == 39,
        _ => *concerns == 0 && *sharers == 0,
    };
    assert!(
        found.iter().all(few),
        "(what is alike, machines, that one Node concerns, that share one's identity): {found:?}"
    );
}

/// As `silent_lease_that_a_list_lacks_lights_no_dark_zone`. Lists of leases fail for a quarter of an hour, in which one of the
/// two machines of a zone dies. Two lists come, the next ones fail for `gap_s`, and in that gap the zone loses its network. The
/// list of Nodes is old, and calls the second machine Ready.
#[test]
fn short_pause_of_leases_after_a_long_one_lights_no_dark_zone() {
    let mut found = Vec::new();
    // Shorter ones than a silence takes to show hide nothing.
    for gap_s in [60, 70, 80, 90, 120] {
        let mut field = Field::new(without_rejoin()).populate(12);
        field.ledger = Ledger::unknown();
        for id in ["i010", "i011"] {
            field.instances.get_mut(id).unwrap().zone = Some("z2".into());
        }
        field.run(min(20));
        run_with(&mut field, min(1), |_| None);
        set(&mut field, "i011", Ready::Unknown);
        field.renewal_of_silent = 1_000_000;
        run_with(&mut field, min(14), |_| None);
        field.deaf = true;
        run_with(&mut field, Span::from_s(20), |field| Some(field.leases_without(&[])));
        let before = made(&field);
        // It renewed its lease once more, ten seconds after the last list.
        let last = field.renewals + 1;
        let dark = |field: &mut Field| {
            let lacking = field.leases_without(&["i010"]);
            let own = ("node-i010".into(), Renewal::nth(last));
            Some(lacking.iter().map(|(name, renewal)| (name.clone(), renewal)).chain([own]).collect())
        };
        run_with(&mut field, Span::from_s(gap_s - 10), |_| None);
        run_with(&mut field, min(60), dark);
        found.push((gap_s, before, made(&field)));
    }
    assert!(found.iter().all(|(.., made)| made.is_empty()), "(gap, before, calls): {found:#?}");
}

/// Reveille may not list leases, or the kubelets keep none. A machine is drained, its Node deleted, and it joins once more, as
/// `kubeadm reset` and `kubeadm join` have it. It serves for a day, and dies.
#[test]
fn machine_that_is_back_without_leases_is_repaired() {
    let mut found = Vec::new();
    for leases in ["listed", "none", "empty"] {
        for drains in [false, true] {
            let mut field = fleet("provider", 12, roster());
            let run = |field: &mut Field, span: Span| {
                run_with(field, span, |field| match leases {
                    "listed" => Some(field.leases_without(&[])),
                    "empty" => Some(std::iter::empty().collect()),
                    _ => None,
                });
            };
            run(&mut field, min(60));
            if drains {
                field.nodes.get_mut("i003").unwrap().cordoned = true;
                run(&mut field, min(2));
                let its = field.nodes.remove("i003").unwrap();
                run(&mut field, min(20));
                let its = Node { uid: "again".into(), cordoned: false, boot_id: Some("b".into()), ..its };
                field.nodes.insert("i003".into(), its);
            }
            run(&mut field, min(24 * 60));
            let before = made(&field);
            set(&mut field, "i003", Ready::Unknown);
            field.deaf = true;
            run(&mut field, min(6 * 60));
            let why = held(&field, "i003", FaultKind::NotReady);
            found.push((leases, drains, before, touched(&field, "i003"), why));
        }
    }
    let stalled: Vec<_> = found.iter().filter(|it| !it.3).collect();
    assert!(stalled.is_empty(), "(leases, drains, before, touched, why): {stalled:#?}");
}

/// Nodes lead to their machines by address. An operator gives the port of `i003` another address; its kubelet shows the old one
/// until it is restarted (`node-ip`). A new machine gets the old one. `i003` is Ready all the time.
#[test]
fn machine_whose_address_is_given_on_serves_on() {
    let mut found = Vec::new();
    for leases in ["listed", "taken away", "never"] {
        for joins in [false, true] {
            let mut field = fleet("address", 12, roster());
            let run = |field: &mut Field, span: Span| {
                run_with(field, span, |field| (leases == "listed").then(|| field.leases_without(&[])));
            };
            run_with(&mut field, min(20), |field| (leases != "never").then(|| field.leases_without(&[])));
            let old = field.ports["i003"].addresses.clone();
            let new: Box<[IpAddr]> = [IpAddr::from([10, 9, 250, 250])].into();
            field.ports.get_mut("i003").unwrap().addresses = new.clone();
            field.instances.get_mut("i003").unwrap().addresses = new;
            run(&mut field, min(2));
            comes(&mut field, "address", "new", "vm-new");
            field.ports.get_mut("new").unwrap().addresses = old.clone();
            field.instances.get_mut("new").unwrap().addresses = old.clone();
            field.nodes.get_mut("new").unwrap().addresses = old;
            if !joins {
                field.nodes.remove("new");
            }
            field.deaf = true;
            run(&mut field, min(4 * 60));
            found.push((leases, joins, on(&field, "i003"), on(&field, "new")));
        }
    }
    assert!(found.iter().all(|it| it.2.is_empty()), "(leases, joins, on i003, on the new one): {found:#?}");
}

/// The same of one whose addresses Nova does not list for some hours (https://bugs.launchpad.net/nova/+bug/1751923), where
/// Reveille may not list leases, or may no more.
#[test]
fn machine_that_is_listed_without_addresses_serves_on() {
    let mut found = Vec::new();
    for links in ["uuid", "address"] {
        for leases in ["listed", "taken away", "never"] {
            let mut field = fleet(links, 12, roster());
            run_with(&mut field, min(20), |field| (leases != "never").then(|| field.leases_without(&[])));
            for id in ["i003", "i005"] {
                field.instances.get_mut(id).unwrap().addresses = Box::new([]);
            }
            field.unaddressed = vec!["i003".to_owned()];
            field.deaf = true;
            let mut list = |field: &mut Field| (leases == "listed").then(|| field.leases_without(&[]));
            run_with(&mut field, min(4 * 60), &mut list);
            found.push((links, leases, on(&field, "i003"), on(&field, "i005")));
        }
    }
    let fine = found.iter().all(|(_, _, lost, kept)| lost.is_empty() && kept.is_empty());
    assert!(fine, "(links, leases, on the one without addresses, on another): {found:#?}");
}

/// Nodes lead to their machines by address. An operator swaps the addresses of two ports; both kubelets show their old ones until
/// they are restarted. One machine dies. The other one serves on.
#[test]
fn machine_is_not_repaired_for_one_with_its_old_address() {
    let mut found = Vec::new();
    for leases in ["listed", "taken away"] {
        let mut field = fleet("address", 12, roster());
        run_with(&mut field, min(20), |field| Some(field.leases_without(&[])));
        let (a, b) = (field.ports["i003"].addresses.clone(), field.ports["i005"].addresses.clone());
        for (id, addresses) in [("i003", b), ("i005", a)] {
            field.ports.get_mut(id).unwrap().addresses = addresses.clone();
            field.instances.get_mut(id).unwrap().addresses = addresses;
        }
        let list = |field: &mut Field| (leases == "listed").then(|| field.leases_without(&[]));
        run_with(&mut field, min(60), list);
        let before = made(&field);
        set(&mut field, "i003", Ready::Unknown);
        field.deaf = true;
        run_with(&mut field, min(4 * 60), list);
        found.push((leases, before, on(&field, "i005"), on(&field, "i003")));
    }
    let fine = found.iter().all(|(_, before, serves, _)| before.is_empty() && serves.is_empty());
    assert!(fine, "(leases, before, on the one that serves, on the dead one): {found:#?}");
}
