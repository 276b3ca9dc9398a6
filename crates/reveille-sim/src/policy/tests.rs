//! Each model against what its original is documented to do, as small tables. The modules name the sources.
// tidy: long because four programs' documented behaviours stand side by side as tables

use std::collections::{BTreeMap, BTreeSet};

use reveille_core::effect::Outcome;
use reveille_core::model::id::{GroupId, InstanceId, RuleId};
use reveille_core::model::instance::InstanceState;
use reveille_core::model::network::{
    Direction, Family, GroupRule, Protocol, Remote, RuleSpec, SecurityGroup,
};
use reveille_core::model::node::Ready;
use reveille_core::model::time::{Span, Time};

use super::Deed;
use super::flight::{Flight, FlightView, ServerSeen};
use super::healer::Healer;
use super::karpenter::Karpenter;
use super::mhc::Mhc;
use super::observations::{MachineSeen, NodeSeen, Presence};
use crate::world::layout::{GROUP, GROUP_NAME, pod_net};

const NOW: Time = Time::from_ms(1_772_438_400_000);

fn s_ago(s: i64) -> Time {
    NOW - Span::from_s(s)
}

fn min_ago(min: i64) -> Time {
    NOW - Span::from_min(min)
}

fn id(name: &str) -> InstanceId {
    InstanceId::new(name)
}

fn deletes(deeds: &[Deed]) -> Vec<String> {
    let deleted = |deed: &Deed| match deed {
        Deed::Delete(id) => Some(id.to_string()),
        _ => None,
    };
    deeds.iter().filter_map(deleted).collect()
}

/// The Node of the machine of that name.
fn node(name: &str, ready: Ready, since: Time) -> NodeSeen {
    NodeSeen {
        name: name.into(),
        uid: format!("uid-{name}").as_str().into(),
        provider: Some(id(name)),
        machine: Some(id(name)),
        made: min_ago(6000),
        ready,
        since,
    }
}

/// A machine that joined long ago.
fn machine(name: &str) -> MachineSeen {
    MachineSeen {
        id: id(name),
        pool: "workers".into(),
        made: min_ago(6000),
        running_since: Some(min_ago(5999)),
        node: Some(name.into()),
        node_deleted: false,
        failed: false,
        paused: false,
    }
}

mod flight_control {
    use super::*;

    fn server(name: &str, age_min: i64) -> ServerSeen {
        ServerSeen {
            id: id(name),
            name: name.to_owned(),
            state: InstanceState::Active,
            task: None,
            created: min_ago(age_min),
            grouped: true,
        }
    }

    fn view(servers: Vec<ServerSeen>, nodes: &[&str]) -> FlightView {
        let nodes = nodes.iter().map(|name| (*name).to_owned()).collect();
        FlightView {
            servers,
            nodes,
            groups: vec![group(&[Protocol::TCP, Protocol::UDP, Protocol::ICMP])],
            pod_range: Some(pod_net()),
        }
    }

    fn group(allowed: &[Protocol]) -> SecurityGroup {
        let rule = |protocol: &Protocol| GroupRule {
            id: RuleId::new(protocol.to_string()),
            allows: rule(Some(*protocol)),
            description: "".into(),
        };
        let rules = allowed.iter().map(rule).collect();
        SecurityGroup { id: GroupId::from(GROUP), name: GROUP_NAME.into(), project: None, rules }
    }

    fn rule(protocol: Option<Protocol>) -> RuleSpec {
        let (direction, family) = (Direction::Ingress, Family::V4);
        RuleSpec { direction, family, protocol, ports: None, remote: Remote::Prefix(pod_net()) }
    }

    fn run(view: &FlightView) -> Vec<Deed> {
        Flight::default().pass(NOW, Some(view)).0
    }

    /// `TestDeleteIncompletelySpawnedInstances`: an old server without a Node goes, every other one stays.
    #[test]
    fn an_old_server_without_a_node_of_its_name_is_deleted() {
        for (age_min, has_node, goes) in
            [(24 * 60, false, true), (0, false, false), (24 * 60, true, false), (0, true, false)]
        {
            let nodes: &[&str] = if has_node { &["a"] } else { &[] };
            let deeds = run(&view(vec![server("a", age_min)], nodes));
            assert_eq!(deletes(&deeds).len(), usize::from(goes), "{age_min} {has_node}");
        }
    }

    /// `INSTANCE_SPAWNING_TIMEOUT`.
    #[test]
    fn the_deadline_is_45_minutes_after_creation() {
        assert_eq!(deletes(&run(&view(vec![server("a", 45)], &[]))), [] as [&str; 0]);
        assert_eq!(deletes(&run(&view(vec![server("a", 46)], &[]))), ["a"]);
    }

    /// The dangerous one: nothing asks whether a list of no Nodes can be true.
    #[test]
    fn an_empty_node_list_deletes_every_old_server() {
        let servers: Vec<ServerSeen> = (0..100).map(|n| server(&format!("m{n}"), 24 * 60)).collect();
        assert_eq!(deletes(&run(&view(servers, &[]))).len(), 100);
    }

    /// Old and unregistered are joined by name, so the young one of two goes with the old one.
    #[test]
    fn a_young_server_goes_with_an_old_one_of_its_name() {
        let young = ServerSeen { id: id("young"), ..server("a", 1) };
        assert_eq!(deletes(&run(&view(vec![server("a", 60), young], &[]))), ["a", "young"]);
    }

    /// `TestDeleteErroredInstances`, and the predicates of `node.go`: `vm_state` error, whatever else, but for deleting.
    #[test]
    fn an_errored_server_is_deleted_at_once() {
        for (state, task, goes) in [
            (InstanceState::Errored, None, true),
            (InstanceState::Errored, Some("rebuilding"), true),
            (InstanceState::Errored, Some("deleting"), false),
            (InstanceState::Active, None, false),
        ] {
            let errored = ServerSeen { state, task: task.map(str::to_owned), ..server("a", 0) };
            let gone = deletes(&run(&view(vec![errored], &["a"])));
            assert_eq!(gone.len(), usize::from(goes), "{state:?} {task:?}");
        }
    }

    /// `TestEnsureInstanceSecurityGroupAssignment`, and who counts as running.
    #[test]
    fn the_group_is_put_on_running_servers_that_lack_it() {
        for (state, task, grouped, put) in [
            (InstanceState::Active, None, false, true),
            (InstanceState::Active, Some("rebooting"), false, true),
            (InstanceState::Active, Some("image_snapshot"), false, false),
            (InstanceState::Stopped, None, false, false),
            (InstanceState::Active, None, true, false),
        ] {
            let one = ServerSeen { state, task: task.map(str::to_owned), grouped, ..server("a", 0) };
            let deeds = run(&view(vec![one], &["a"]));
            assert_eq!(deeds == [Deed::PutGroup(id("a"))], put, "{state:?} {task:?} {grouped}");
        }
    }

    /// Rules are compared as they are spelled: a wider one does not count. Two groups of one name are an error.
    #[test]
    fn missing_rules_are_put_and_a_wider_rule_is_not_seen() {
        let rules = |groups: Vec<SecurityGroup>| {
            let deeds = run(&FlightView { groups, pod_range: Some(pod_net()), ..FlightView::default() });
            deeds
                .iter()
                .map(|deed| match deed {
                    Deed::PutRules(rules) => rules.len(),
                    _ => 0,
                })
                .sum::<usize>()
        };
        let all = [Protocol::TCP, Protocol::UDP, Protocol::ICMP];
        assert_eq!(rules(vec![group(&all)]), 0);
        assert_eq!(rules(vec![group(&all[..1])]), 2);
        let mut wide = group(&[]);
        wide.rules.push(GroupRule { id: "any".into(), allows: rule(None), description: "".into() });
        assert_eq!(rules(vec![wide]), 3);
        assert_eq!(rules(vec![group(&[]), group(&[])]), 0);
    }

    /// 5, 10, 20, 40, 80 seconds, then the next tick.
    #[test]
    fn a_snapshot_that_fails_does_nothing_and_is_retried_five_times() {
        let mut flight = Flight::default();
        let waits: Vec<i64> = (0..6)
            .map(|_| {
                let (deeds, next_at) = flight.pass(NOW, None);
                assert_eq!(deeds, []);
                next_at.since(NOW).ms / 1000
            })
            .collect();
        assert_eq!(waits, [5, 10, 20, 40, 80, 150]);
    }
}

mod machine_health_check {
    use super::*;

    fn unhealthy(machine: MachineSeen, nodes: &[NodeSeen]) -> bool {
        !Mhc::default().pass(NOW, &[machine], Some(nodes), &BTreeMap::new()).is_empty()
    }

    #[test]
    fn a_condition_counts_after_300_seconds() {
        for (ready, s, goes) in [
            (Ready::Unknown, 300, false),
            (Ready::Unknown, 301, true),
            (Ready::False, 300, false),
            (Ready::False, 301, true),
            (Ready::True, 9000, false),
        ] {
            assert_eq!(unhealthy(machine("a"), &[node("a", ready, s_ago(s))]), goes, "{ready:?} {s}");
        }
    }

    /// `nodeStartupTimeout`, from the later of creation and readiness of the infrastructure.
    #[test]
    fn a_machine_without_a_node_has_600_seconds() {
        for (made, running, goes) in
            [(600, None, false), (601, None, true), (3000, Some(600), false), (3000, Some(601), true)]
        {
            let new = MachineSeen {
                made: s_ago(made),
                running_since: running.map(s_ago),
                node: None,
                ..machine("a")
            };
            assert_eq!(unhealthy(new, &[]), goes, "{made} {running:?}");
        }
    }

    #[test]
    fn a_failure_and_a_missing_node_count_at_once_and_a_pause_holds() {
        let well = || [node("a", Ready::True, s_ago(1))];
        assert!(unhealthy(MachineSeen { failed: true, ..machine("a") }, &well()));
        assert!(unhealthy(machine("a"), &[]), "its node is not found");
        assert!(!unhealthy(MachineSeen { paused: true, ..machine("a") }, &[]));
        assert!(!unhealthy(machine("a"), &well()));
    }

    /// `maxUnhealthy` 100 %, `maxInFlight` unset: all machines in one pass. An API that does not answer stops it; an empty list
    /// does not.
    #[test]
    fn nothing_limits_how_many_go_at_once() {
        let machines: Vec<MachineSeen> = (0..100).map(|n| machine(&format!("m{n}"))).collect();
        let gone = |nodes: Option<&[NodeSeen]>| {
            deletes(&Mhc::default().pass(NOW, &machines, nodes, &BTreeMap::new())).len()
        };
        assert_eq!(gone(Some(&[])), 100);
        assert_eq!(gone(None), 0);
    }

    /// The finaliser: delete, ask again while it stands, take the Node when it is gone.
    #[test]
    fn a_removal_goes_on_until_the_instance_and_its_node_are_gone() {
        let mut mhc = Mhc::default();
        let failed = [MachineSeen { failed: true, ..machine("a") }];
        let nodes = [node("a", Ready::Unknown, s_ago(9))];
        let mut pass = |presence| {
            let presence = BTreeMap::from([(id("a"), presence)]);
            let machines: &[MachineSeen] = if presence[&id("a")] == Presence::Gone { &[] } else { &failed };
            mhc.pass(NOW, machines, Some(&nodes), &presence)
        };
        assert_eq!(pass(Presence::There), [Deed::Delete(id("a"))]);
        assert_eq!(pass(Presence::There), [Deed::Delete(id("a"))]);
        assert_eq!(pass(Presence::Leaving), []);
        assert_eq!(pass(Presence::Unknown), []);
        assert_eq!(pass(Presence::Gone), [Deed::DeleteNode("a".into(), "uid-a".into())]);
        assert_eq!(pass(Presence::Gone), []);
    }
}

mod karpenter {
    use super::*;

    fn pass(karpenter: &mut Karpenter, now: Time, claims: &[MachineSeen], nodes: &[NodeSeen]) -> Vec<String> {
        deletes(&karpenter.pass(now, claims, Some(nodes), None, &BTreeMap::new()))
    }

    /// A pool of so many, of whom so many have this status since then.
    fn pool(of: usize, bad: usize, ready: Ready, since: Time) -> (Vec<MachineSeen>, Vec<NodeSeen>) {
        let name = |n: usize| format!("m{n}");
        let status = |n: usize| if n < bad { ready } else { Ready::True };
        let nodes = (0..of).map(|n| node(&name(n), status(n), since)).collect();
        ((0..of).map(|n| machine(&name(n))).collect(), nodes)
    }

    #[test]
    fn a_node_is_repaired_after_30_minutes() {
        for (ready, min, goes) in
            [(Ready::Unknown, 29, 0), (Ready::Unknown, 30, 1), (Ready::False, 29, 0), (Ready::False, 30, 1)]
        {
            let (claims, nodes) = pool(10, 1, ready, min_ago(min));
            assert_eq!(pass(&mut Karpenter::default(), NOW, &claims, &nodes).len(), goes, "{ready:?} {min}");
        }
    }

    /// 20 % of the pool, rounded up, of one status; how long each has it does not matter.
    #[test]
    fn the_breaker_holds_above_a_fifth_rounded_up() {
        for (of, bad, goes) in [(3, 1, 1), (3, 2, 0), (10, 2, 2), (10, 3, 0), (12, 3, 3), (12, 4, 0)] {
            let (claims, nodes) = pool(of, bad, Ready::Unknown, min_ago(31));
            assert_eq!(pass(&mut Karpenter::default(), NOW, &claims, &nodes).len(), goes, "{bad} of {of}");
        }
        let (claims, mut nodes) = pool(10, 2, Ready::Unknown, min_ago(31));
        nodes[5] = node("m5", Ready::Unknown, s_ago(1));
        assert_eq!(
            pass(&mut Karpenter::default(), NOW, &claims, &nodes),
            [] as [&str; 0],
            "a young third one"
        );
        nodes[5] = node("m5", Ready::False, s_ago(1));
        assert_eq!(pass(&mut Karpenter::default(), NOW, &claims, &nodes).len(), 2, "each status by itself");
    }

    #[test]
    fn a_pool_that_was_held_is_looked_at_again_after_five_minutes() {
        let mut karpenter = Karpenter::default();
        let (claims, many) = pool(10, 3, Ready::Unknown, min_ago(40));
        assert_eq!(pass(&mut karpenter, NOW, &claims, &many), [] as [&str; 0]);
        let (_, few) = pool(10, 1, Ready::Unknown, min_ago(40));
        let later = |s| NOW + Span::from_s(s);
        assert_eq!(pass(&mut karpenter, later(299), &claims, &few), [] as [&str; 0]);
        assert_eq!(pass(&mut karpenter, later(300), &claims, &few), ["m0"]);
    }

    #[test]
    fn a_claim_has_15_minutes_to_register() {
        for (min, goes) in [(15, 0), (16, 1)] {
            let claim = MachineSeen { made: min_ago(min), node: None, ..machine("a") };
            assert_eq!(pass(&mut Karpenter::default(), NOW, &[claim], &[]).len(), goes, "{min}");
        }
    }

    /// A Node that is absent from a list is not a deleted Node.
    #[test]
    fn deleted_node_takes_its_instance_and_absent_node_does_not() {
        let deleted = MachineSeen { node_deleted: true, ..machine("a") };
        assert_eq!(pass(&mut Karpenter::default(), NOW, &[deleted], &[]), ["a"]);
        assert_eq!(pass(&mut Karpenter::default(), NOW, &[machine("a")], &[]), [] as [&str; 0]);
    }

    /// The cloud's list is believed, but for a Node that is Ready.
    #[test]
    fn unlisted_instance_is_collected_unless_its_node_is_ready() {
        for (ready, listed, goes) in
            [(Ready::Unknown, false, 1), (Ready::True, false, 0), (Ready::Unknown, true, 0)]
        {
            let list: BTreeSet<InstanceId> = if listed { [id("a")].into() } else { BTreeSet::new() };
            let nodes = [node("a", ready, s_ago(60))];
            let mut karpenter = Karpenter::default();
            assert!(karpenter.collects(NOW));
            let deeds = karpenter.pass(NOW, &[machine("a")], Some(&nodes), Some(&list), &BTreeMap::new());
            assert_eq!(deletes(&deeds).len(), goes, "{ready:?} {listed}");
            assert!(!karpenter.collects(NOW + Span::from_s(119)));
            assert!(karpenter.collects(NOW + Span::from_s(120)));
        }
    }
}

mod magnum_auto_healer {
    use super::*;

    fn present() -> BTreeSet<InstanceId> {
        [id("a"), id("b")].into()
    }

    fn pass(healer: &mut Healer, now: Time, nodes: &[NodeSeen]) -> Vec<Deed> {
        healer.pass(now, Some(nodes), &present())
    }

    fn accepted() -> Outcome {
        Outcome::Accepted { request: None }
    }

    #[test]
    fn a_node_that_is_not_ready_for_300_seconds_is_rebooted() {
        for (ready, s, goes) in [
            (Ready::Unknown, 299, 0),
            (Ready::Unknown, 300, 1),
            (Ready::False, 300, 1),
            (Ready::True, 9000, 0),
        ] {
            let deeds = pass(&mut Healer::default(), NOW, &[node("a", ready, s_ago(s))]);
            assert_eq!(deeds, vec![Deed::Reboot(id("a")); goes], "{ready:?} {s}");
        }
    }

    /// `check-delay-after-add`.
    #[test]
    fn a_node_younger_than_ten_minutes_is_passed_over() {
        for (s, goes) in [(599, 0), (600, 1)] {
            let young = NodeSeen { made: s_ago(s), ..node("a", Ready::False, s_ago(s)) };
            assert_eq!(pass(&mut Healer::default(), NOW, &[young]).len(), goes, "{s}");
        }
    }

    /// Reboot, five minutes of patience, removal with its Node, and from the beginning.
    #[test]
    fn the_second_time_it_is_removed_and_forgotten() {
        let mut healer = Healer::default();
        let bad = [node("a", Ready::Unknown, min_ago(10))];
        let reboot = [Deed::Reboot(id("a"))];
        assert_eq!(pass(&mut healer, NOW, &bad), reboot);
        assert_eq!(healer.answered(NOW, &id("a"), &accepted()), None);
        let later = |s| NOW + Span::from_s(s);
        assert_eq!(pass(&mut healer, later(299), &bad), []);
        let removal = [Deed::Delete(id("a")), Deed::DeleteNode("a".into(), "uid-a".into())];
        assert_eq!(pass(&mut healer, later(300), &bad), removal);
        assert_eq!(pass(&mut healer, later(360), &bad), [], "the cluster is being updated");
        let without_a = [id("b")].into();
        assert_eq!(healer.pass(later(420), Some(&bad), &without_a), reboot, "it was forgotten");
    }

    /// The healer deletes the Node of a server whose reboot was refused, and never sees that server again.
    #[test]
    fn a_refused_reboot_costs_the_node() {
        let refused = |text: &str| Outcome::Refused { text: text.into() };
        let node_deleted = Some(Deed::DeleteNode("a".into(), "uid-a".into()));
        for (outcome, deed) in [
            (accepted(), None),
            (refused("409: cannot reboot an instance that is Rebooting"), None),
            (refused("409: cannot reboot an instance that is Errored"), node_deleted.clone()),
            (Outcome::Unknown { text: "no answer".into() }, node_deleted),
        ] {
            let mut healer = Healer::default();
            pass(&mut healer, NOW, &[node("a", Ready::Unknown, min_ago(10))]);
            assert_eq!(healer.answered(NOW, &id("a"), &outcome), deed, "{outcome:?}");
        }
    }

    #[test]
    fn a_restart_forgets_who_was_rebooted() {
        let mut healer = Healer::default();
        let bad = [node("a", Ready::Unknown, min_ago(10))];
        pass(&mut healer, NOW, &bad);
        healer.answered(NOW, &id("a"), &accepted());
        healer.restart();
        assert_eq!(pass(&mut healer, NOW + Span::from_min(6), &bad), [Deed::Reboot(id("a"))]);
    }

    #[test]
    fn empty_node_list_marks_no_machine_unhealthy() {
        assert_eq!(pass(&mut Healer::default(), NOW, &[]), []);
    }
}
