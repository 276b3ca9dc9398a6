//! Machines that a person took out, where the readings of cloud and cluster come in another order than usual: a Node before its
//! machine, a listing from before a sleep, Nodes hours before a listing.

use reveille_core::event::{CloudFact, Event};
use reveille_core::model::instance::InstanceState;
use reveille_core::model::node::{Provider, Ready};
use reveille_core::model::time::Span;

use super::fixture::{CLOUD, Field, node, roster};
use super::fleets::ten as fleet;
use super::steps::{made, min, off, say, see_nodes_alone};

/// k3s over a VPN under a qualified name, as `machine_under_node_of_a_vpn_is_left_alone_once_drained`; the Node registers a
/// minute before the next listing of the cloud shows the machine.
#[test]
fn node_drained_that_registered_before_its_listing_is_its_own() {
    let mut found = Vec::new();
    for name in ["node-new", "node-new.example.com"] {
        for node_first in [false, true] {
            for told in [false, true] {
                let mut field = fleet();
                field.add_machine("new", false);
                let mut its = node("new", Ready::True);
                its.name = name.into();
                its.provider = Provider::Unread(format!("k3s://{name}").as_str().into());
                its.system_uuid = Some("hardware-new".into());
                its.addresses = Box::new(["100.64.0.5".parse().unwrap()]);
                if !node_first {
                    field.list_cloud();
                }
                see_nodes_alone(&mut field, min(1));
                field.nodes.insert("new".into(), its);
                see_nodes_alone(&mut field, min(1));
                field.run(min(60));
                let before = made(&field);
                field.nodes.get_mut("new").unwrap().cordoned = true;
                if told {
                    let at = field.now;
                    say(&mut field, name, "NodeNotSchedulable", None, at);
                }
                field.run(min(2));
                field.nodes.remove("new");
                field.run(min(6 * 60));
                found.push((name, node_first, told, before, made(&field)));
            }
        }
    }
    assert!(found.iter().all(|(.., made)| made.is_empty()), "{found:#?}");
}

/// A machine is being built. The process sleeps for five hours (its VM is suspended), and a listing was on its way: it still
/// shows the build. Meanwhile the machine joined, served and was drained.
#[test]
fn listing_from_before_a_sleep_does_not_vouch_for_the_sleep() {
    let mut found = Vec::new();
    for (in_flight, known) in [(false, true), (true, true), (false, false), (true, false)] {
        let mut field = fleet();
        if known {
            field.add_machine("new", false);
            field.instances.get_mut("new").unwrap().state = InstanceState::Building;
            field.run(min(2));
        } else {
            field.add_machine("new", false);
            field.instances.get_mut("new").unwrap().state = InstanceState::Building;
        }
        let old = field.snapshot();
        field.now = field.now + min(5 * 60);
        field.instances.get_mut("new").unwrap().state = InstanceState::Active;
        if in_flight {
            field.feed(Event::Cloud { cloud: CLOUD.into(), fact: CloudFact::read(old) });
        }
        field.run(min(6 * 60));
        found.push((in_flight, known, made(&field)));
    }
    assert!(found.iter().all(|(.., made)| made.is_empty()), "{found:#?}");
}

/// A machine never joined when a process ended. In a night without us a person mends it, it joins, serves and is drained. The
/// next process sees Nodes, but its cloud does not answer, and it is restarted once more; then the cloud answers.
#[test]
fn night_without_us_is_not_over_before_the_cloud_is_listed() {
    let mut found = Vec::new();
    for (how, restarts) in
        [("cloud up", false), ("cloud up", true), ("cloud down", false), ("cloud down", true)]
    {
        let mut field = Field::new(roster()).populate(10);
        field.add_machine("old", false);
        field.run(min(5));
        assert!(made(&field).is_empty());
        field = off(field, min(5 * 60), roster());
        match how {
            "cloud up" => field.run(min(10)),
            _ => see_nodes_alone(&mut field, min(10)),
        }
        let before = made(&field);
        if restarts {
            field = off(field, Span::from_s(5), roster());
        }
        field.deaf = true;
        field.run(min(6 * 60));
        found.push((how, restarts, before, made(&field)));
    }
    assert!(found.iter().all(|(.., made)| made.is_empty()), "{found:#?}");
}
