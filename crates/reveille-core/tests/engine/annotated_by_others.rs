//! Each kubelet may annotate its own Node. Where Nodes lead to their machines by UUID (k3s), one that shows another machine's
//! speaks for that one: what people ask for by annotations is taken from it.

use reveille_core::model::incident::FaultKind;
use reveille_core::model::node::{Asks, Node, Provider, Ready};
use reveille_core::model::roster::{Keep, Mode};
use reveille_core::model::time::{Span, Time};

use super::fixture::{Field, roster, stamp};
use super::fleets::k3s;
use super::steps::{made, min, next, on, patch, roster_with, say, set};

/// The Node of `i007`, as its kubelet writes it to show this machine, not Ready, with this request.
fn asking(field: &Field, victim: &str, asks: Asks) -> Node {
    let mut its = field.nodes["i007"].clone();
    (its.system_uuid, its.ready) = (Some(victim.into()), Ready::False);
    its.intent.asks = Some(Box::new(asks));
    its
}

fn repair(value: &str) -> Asks {
    Asks { repair: Some(value.into()), ..Asks::default() }
}

/// When this was called first, in whole minutes from now on.
fn first_call(
    field: &mut Field,
    id: &str,
    verb: &str,
    within: i64,
    mut each: impl FnMut(&mut Field, i64),
) -> Option<i64> {
    for minute in 0..within {
        each(field, minute);
        field.run(Span::from_s(60));
        if on(field, id).iter().any(|call| call.starts_with(verb)) {
            return Some(minute);
        }
    }
    None
}

/// The Node of `i003` was deleted by mistake. A reboot has its time, and only where that is of no use the machine is deleted,
/// after more than half an hour. The kubelet of `i007` asks for a repair of it again and again, for 20 ms each.
#[test]
fn requests_of_another_kubelet_hasten_no_deletion() {
    let mut found = Vec::new();
    for asks in [false, true] {
        let mut field = k3s(roster());
        field.nodes.remove("i003");
        field.run(Span::from_s(20));
        field.deaf = true;
        let deleted = first_call(&mut field, "i003", "delete", 180, |field, minute| {
            if asks {
                let own = field.nodes["i007"].clone();
                let other = asking(field, "i003", repair(&format!("OPS-{minute}")));
                patch(field, &other);
                patch(field, &own);
            }
        });
        found.push((asks, deleted, on(&field, "i003")));
    }
    let (without, with) = (found[0].1.unwrap_or(180), found[1].1.unwrap_or(180));
    assert!(with + 5 >= without, "(asks, deleted in minute, calls): {found:#?}");
}

/// A new machine joins, which takes as long as it takes: its pool gives it an hour. The kubelet of `i007` shows its UUID for 20
/// ms with a request for a repair.
#[test]
fn request_of_another_kubelet_reboots_no_joining_machine() {
    let mut found = Vec::new();
    for asks in ["no", "once", "often"] {
        let mut field = k3s(roster_with(|pool| pool.deadlines.join_within = Some(min(60))));
        field.add_machine("new", false);
        let addresses = field.ports["new"].addresses.clone();
        let new = field.instances.get_mut("new").unwrap();
        (new.name, new.addresses) = ("vm-new".into(), addresses);
        field.run(min(5));
        field.deaf = true;
        for minute in 0..40 {
            if asks == "often" || asks == "once" && minute == 0 {
                let own = field.nodes["i007"].clone();
                let other = asking(&field, "new", repair(&format!("OPS-{minute}")));
                patch(&mut field, &other);
                patch(&mut field, &own);
            }
            field.run(min(1));
        }
        found.push((asks, on(&field, "new")));
    }
    assert!(found.iter().all(|(_, made)| made.is_empty()), "{found:#?}");
}

/// Machines of this pool that failed are kept for two hours, for a person who looks at them. The Node of `i003` is gone. The
/// kubelet of `i007` shows its UUID, says that it need not be kept, and falls silent for some minutes.
#[test]
fn word_of_another_kubelet_ends_no_keeping() {
    let mut found = Vec::new();
    for how in ["nothing", "shown", "says", "says, silent"] {
        let mut field = k3s(roster_with(|pool| {
            pool.keep = Some(Keep { within: min(120), at_most: 1, failed: true });
            (pool.repair.rejoin, pool.repair.reboot) = (Mode::Off, Mode::Off);
        }));
        field.nodes.remove("i003");
        field.run(min(30));
        field.deaf = true;
        let before = on(&field, "i003");
        let own = field.nodes["i007"].clone();
        let asks = Asks { keep: Some(false), ..Asks::default() };
        let asks = if how == "shown" { repair("no") } else { asks };
        let other = asking(&field, "i003", asks);
        if how != "nothing" {
            field.nodes.insert("i007".into(), other);
            if how.ends_with("silent") {
                field.silent.push("node-i007".into());
            }
            field.run(min(20));
            field.silent.clear();
            field.nodes.insert("i007".into(), own);
        }
        field.run(min(10));
        let kinds = [FaultKind::Vanished, FaultKind::NotReady];
        let held: Vec<_> = kinds
            .into_iter()
            .filter(|kind| field.case("i003", *kind).is_some())
            .map(|kind| field.held("i003", kind))
            .collect();
        found.push((how, before, on(&field, "i003"), held));
    }
    let fine = found.iter().all(|(_, before, after, _)| before.is_empty() && after.is_empty());
    assert!(fine, "(how, acts before, acts within the two hours, held): {found:#?}");
}

/// A dead machine is not paused by what another kubelet wrote for a moment, and what people wrote on its own Node counts.
#[test]
fn pause_shown_by_another_kubelet_holds_no_dead_machine() {
    let mut found = Vec::new();
    for shows in [false, true] {
        let mut field = k3s(roster());
        // Signs of a Node that change too often are told a little later.
        field.ledger = super::next_process::Ledger::unknown();
        set(&mut field, "i003", Ready::Unknown);
        field.run(Span::from_s(20));
        field.deaf = true;
        for _ in 0..90 {
            if shows {
                let own = field.nodes["i007"].clone();
                let mut other = asking(&field, "i003", Asks::default());
                (other.intent.asks, other.intent.paused) = (None, true);
                patch(&mut field, &other);
                patch(&mut field, &own);
            }
            field.run(min(1));
        }
        let held = field.case("i003", FaultKind::NotReady).map(|_| field.held("i003", FaultKind::NotReady));
        found.push((shows, on(&field, "i003"), held));
    }
    assert!(found.iter().all(|(_, made, _)| !made.is_empty()), "{found:#?}");
}

/// As `machine_with_renewed_lease_is_kept_though_node_is_unlisted`: the list of Nodes is old, and the new machine's kubelet is
/// known by its lease alone. The kubelet of `i007` shows the UUID of the new machine, and falls silent.
#[test]
fn silent_node_of_another_hides_no_lease_of_an_unlisted_node() {
    let mut found = Vec::new();
    for shows in [false, true] {
        let mut field = k3s(roster());
        field.add_machine("new", false);
        let addresses = field.ports["new"].addresses.clone();
        let new = field.instances.get_mut("new").unwrap();
        (new.name, new.addresses) = ("vm-new".into(), addresses);
        field.unlisted_leases.push("vm-new".into());
        field.run(min(5));
        field.deaf = true;
        if shows {
            let other = asking(&field, "new", repair("now"));
            field.nodes.insert("i007".into(), other);
            field.silent.push("node-i007".into());
        }
        field.run(min(120));
        found.push((shows, on(&field, "new")));
    }
    assert!(found.iter().all(|(_, made)| made.is_empty()), "{found:#?}");
}

/// A machine is rebooted, and does not come back. The kubelet of `i007` shows its UUID for a moment each few minutes, Ready, with
/// another boot: that does not count as its coming back, and the steps after it are taken all the same.
#[test]
fn boot_of_another_machine_is_no_effect_of_a_reboot() {
    let mut found = Vec::new();
    for shows in [false, true] {
        let mut field = k3s(roster());
        field.nodes.remove("i003");
        field.deaf = true;
        for minute in 0..180 {
            if shows && minute % 4 == 3 {
                let own = field.nodes["i007"].clone();
                let mut other = own.clone();
                (other.system_uuid, other.boot_id) =
                    (Some("i003".into()), Some(format!("b{minute}").as_str().into()));
                patch(&mut field, &other);
                patch(&mut field, &own);
            }
            field.run(min(1));
        }
        let cases: Vec<_> = field.state.context().cases.keys().map(|key| format!("{:?}", key.kind)).collect();
        found.push((shows, on(&field, "i003"), cases));
    }
    let fine = found.iter().all(|(_, made, _)| made.iter().any(|call| call.starts_with("delete")));
    assert!(fine, "(shows, calls, cases): {found:#?}");
}

/// A new machine, made then, whose Node was not seen.
fn unknown_machine(field: &mut Field, made_at: Time) {
    field.add_machine("new", false);
    let addresses = field.ports["new"].addresses.clone();
    let new = field.instances.get_mut("new").unwrap();
    (new.name, new.addresses, new.created) = ("vm-new".into(), addresses, Some(stamp(made_at)));
}

/// The kubelet of `i007` shows its UUID, and is silent.
fn shows_new(field: &mut Field, shows: bool) {
    if shows {
        let mut other = asking(field, "new", Asks::default());
        other.intent.asks = None;
        field.nodes.insert("i007".into(), other);
    }
}

/// As `machine_made_before_events_tell_is_held`: for five hours no process runs, and a machine is made, joins, serves, and a
/// person drains it. The kubelet of `i007`, an hour later or from then on, shows its UUID and is silent.
#[test]
fn silent_node_of_another_ends_no_hold_of_an_unknown_life() {
    let mut found = Vec::new();
    for shows in ["no", "before", "later"] {
        let mut field = k3s(roster());
        let last = field.now;
        field.now = field.now + min(5 * 60);
        let made_at = field.now - min(90);
        unknown_machine(&mut field, made_at);
        shows_new(&mut field, shows == "before");
        let mut field = next(field, roster(), last);
        field.deaf = true;
        field.run(min(60));
        shows_new(&mut field, shows == "later");
        field.run(min(6 * 60));
        found.push((shows, on(&field, "new")));
    }
    assert!(found.iter().all(|(_, made)| made.is_empty()), "{found:#?}");
}

/// As `cordon_told_while_the_list_was_old_holds_the_machine`: the list of Nodes is an old one, and only the kubelet's event tells
/// that a person drained the new machine. The kubelet of `i007` shows its UUID from before that on, and is silent.
#[test]
fn silent_node_of_another_hides_no_drain_that_was_told() {
    let mut found = Vec::new();
    for shows in ["no", "before", "later"] {
        let mut field = k3s(roster());
        let made_at = field.now;
        unknown_machine(&mut field, made_at);
        field.deaf = true;
        field.run(min(2));
        shows_new(&mut field, shows == "before");
        field.run(min(10));
        let at = field.now;
        say(&mut field, "vm-new", "NodeNotSchedulable", None, at);
        field.run(min(1));
        shows_new(&mut field, shows == "later");
        field.run(min(6 * 60));
        found.push((shows, on(&field, "new")));
    }
    assert!(found.iter().all(|(_, made)| made.is_empty()), "{found:#?}");
}

/// A control plane that no cloud of the roster lists: its server has no marks. A tenant makes a server with the pool's marks
/// that has its address, in a network of their own, or its name too, and deletes it an hour later. The control plane reboots:
/// its Node is no left-over.
#[test]
fn address_of_a_server_that_went_makes_no_node_a_left_over() {
    let mut found = Vec::new();
    for shares in ["nothing", "address", "address and name"] {
        let mut field = k3s(roster());
        let mut plane = super::fixture::node("plane", Ready::True);
        plane.provider = Provider::Unread("k3s://plane".into());
        plane.system_uuid = Some("hardware-plane".into());
        plane.addresses = Box::new([[10, 7, 0, 5].into()]);
        field.nodes.insert("plane".into(), plane);
        field.run(min(30));
        field.add_machine("evil", false);
        let its = field.instances.get_mut("evil").unwrap();
        its.name = if shares.ends_with("name") { "node-plane" } else { "vm-evil" }.into();
        if shares != "nothing" {
            its.addresses = Box::new([[10, 7, 0, 5].into()]);
        }
        field.run(min(60));
        let before = made(&field);
        field.deaf = true;
        field.delete_machine("evil");
        field.run(min(5));
        set(&mut field, "plane", Ready::Unknown);
        field.run(min(120));
        let calls: Vec<_> = made(&field).into_iter().filter(|call| call.contains("plane")).collect();
        found.push((shares, before, calls));
    }
    assert!(found.iter().all(|(_, _, made)| made.is_empty()), "(shares, before, acts on it): {found:#?}");
}

/// The same server, while it is there: beside an address of its own in the cluster's network it has that of the control plane in
/// another network. The pod range of the control plane is its own, and is neither routed to the server nor allowed on its port.
#[test]
fn pod_range_of_an_unlisted_machine_goes_to_no_server() {
    let mut found = Vec::new();
    for shares in [false, true] {
        let mut wanted = roster();
        wanted.network.router = Some((super::fixture::CLOUD.into(), "r-1".into()));
        wanted.network.address_pairs = true;
        let mut field = k3s(wanted);
        field.routers =
            vec![reveille_core::model::network::Router { id: "r-1".into(), routes: vec![], limit: None }];
        let mut plane = super::fixture::node("plane", Ready::True);
        plane.provider = Provider::Unread("k3s://plane".into());
        plane.system_uuid = Some("hardware-plane".into());
        plane.addresses = Box::new([[10, 7, 0, 5].into()]);
        plane.pod_ranges = Box::new(["198.19.7.0/24".parse().unwrap()]);
        field.nodes.insert("plane".into(), plane);
        field.run(min(30));
        field.add_machine("evil", false);
        let own = field.ports["evil"].addresses[0];
        let its = field.instances.get_mut("evil").unwrap();
        its.name = "vm-evil".into();
        its.addresses = if shares { Box::new([own, [10, 7, 0, 5].into()]) } else { Box::new([own]) };
        field.run(min(10));
        found.push((shares, made(&field), format!("{:?}", field.routers[0].routes)));
    }
    assert!(found.iter().all(|(_, made, _)| made.is_empty()), "(shares, calls, routes): {found:#?}");
}
