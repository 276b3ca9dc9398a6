//! The Node is gone: the smallest repair that brings it back, or the reason why none is allowed.

use reveille_agent::effect::Verb;
use reveille_agent::model::{
    Credentials, ForeignCluster, Inspection, Leaving, Machine, NodeSeen, Outcome, Role,
};
use reveille_agent::{Event, Memory, Settings};
use reveille_core::model::agent::{AgentBlockerKind, Ask};
use reveille_core::model::time::Span;

use crate::fixture::{Around, Bench, machine};

const HOURS: Span = Span::from_min(6 * 60);

fn back(around: &mut Around) {
    around.found = Inspection {
        node: NodeSeen::Ready,
        came_and_went: false,
        credentials: Credentials::Accepted,
        leaving: None,
        clock_is_right: true,
    };
}

fn gone(credentials: Credentials, works: fn(&mut Around, Verb) -> Outcome) -> Bench {
    let mut bench = Bench::with_peers(3, 0);
    bench.run(Span::from_min(5));
    bench.node_goes(credentials, None);
    bench.around.works = works;
    bench.run(HOURS);
    bench
}

#[test]
fn the_least_that_suffices_is_done_once() {
    use Verb::{Bootstrap, Join, RequestToken, Reset, RestartKubelet};
    let restart: fn(&mut Around, Verb) -> Outcome = |around, verb| {
        if verb == RestartKubelet {
            back(around);
        }
        Outcome::Done
    };
    let token: fn(&mut Around, Verb) -> Outcome = |around, verb| {
        if verb == Bootstrap {
            back(around);
        }
        Outcome::Done
    };
    let join: fn(&mut Around, Verb) -> Outcome = |around, verb| {
        if verb == Join {
            back(around);
        }
        Outcome::Done
    };
    for (credentials, works, verbs) in [
        (Credentials::Accepted, restart, &[RestartKubelet][..]),
        (Credentials::TokenDead, token, &[RequestToken, Bootstrap]),
        (Credentials::Expired, token, &[RequestToken, Bootstrap]),
        (Credentials::Refused, join, &[RequestToken, Reset, Join]),
        (Credentials::Foreign(ForeignCluster::Replaced), join, &[RequestToken, Reset, Join]),
        (
            Credentials::Expired,
            join,
            &[RequestToken, Bootstrap, RequestToken, Bootstrap, RequestToken, Reset, Join],
        ),
    ] {
        let bench = gone(credentials.clone(), works);
        assert_eq!(bench.verbs(), verbs, "{credentials:?}\n{}", bench.all_said());
        assert!(bench.said("its node is there, Ready, and has stayed"), "{}", bench.all_said());
        assert_eq!((bench.memory.attempts, bench.memory.is_reset), (0, false));
        assert!(bench.around.watchdog.is_some(), "it is armed again when the join is over");
    }
}

#[test]
fn attempts_have_pauses_that_double_and_an_end() {
    let bench = gone(Credentials::Refused, |_, _| Outcome::Done);
    let resets: Vec<i64> =
        bench.acts.iter().filter(|(_, verb)| *verb == Verb::Reset).map(|(at, _)| at.ms / 1000).collect();
    assert_eq!(resets.len(), Settings::default().attempts as usize, "{}", bench.all_said());
    let pauses: Vec<i64> = resets.windows(2).map(|pair| pair[1] - pair[0]).collect();
    assert!(pauses.windows(2).all(|pair| pair[1] > pair[0] + 30), "{pauses:?}");
    assert!(bench.said("gives up after 5 attempts: a person has to look"), "{}", bench.all_said());
}

#[test]
fn nothing_is_thrown_away_before_the_token_is_there() {
    let bench = gone(Credentials::Refused, |_, verb| match verb {
        Verb::RequestToken => Outcome::Failed("no server gives one".into()),
        _ => Outcome::Done,
    });
    assert!(bench.verbs().iter().all(|verb| *verb == Verb::RequestToken), "{:?}", bench.verbs());
    assert_eq!(bench.verbs().len(), 5);
}

#[test]
fn a_machine_that_is_not_its_own_to_take_back_is_left_alone() {
    for (credentials, leaving, role, says) in [
        (Credentials::Accepted, Some(Leaving::Tainted), Role::Worker, "a taint on its Node"),
        (Credentials::Refused, Some(Leaving::Removed), Role::Worker, "the server says that it was removed"),
        (Credentials::TokenDead, Some(Leaving::Drained), Role::Worker, "cordoned, as for a drain"),
        (Credentials::Foreign(ForeignCluster::Lives), None, Role::Worker, "another cluster, which answers"),
        (Credentials::Foreign(ForeignCluster::Silent), None, Role::Worker, "that proves nothing"),
        (Credentials::Refused, None, Role::ControlPlane { spare: true }, "it runs a control plane"),
    ] {
        let mut bench = Bench::with_peers(3, 0);
        bench.hear(Event::Found(Machine { role, ..machine() }));
        bench.run(Span::from_min(5));
        bench.node_goes(credentials, leaving);
        bench.run(HOURS);
        assert_eq!(bench.verbs(), [], "{says}");
        assert!(bench.said(says), "{says}\n{}", bench.all_said());
    }
}

#[test]
fn readmitted_machine_rejoins_only_after_removal_not_drain() {
    for (leaving, verbs) in [(Leaving::Removed, &[Verb::RestartKubelet][..]), (Leaving::Drained, &[])] {
        let mut bench = Bench::with_peers(3, 0);
        bench.run(Span::from_min(5));
        bench.node_goes(Credentials::Accepted, Some(leaving));
        bench.run(Span::from_min(10));
        bench.restart();
        bench.around.found.leaving = None;
        bench.around.works = |around, verb| {
            if verb == Verb::RestartKubelet {
                back(around);
            }
            Outcome::Done
        };
        bench.run(Span::from_min(10));
        assert_eq!(bench.verbs(), [], "a removal whose sign is gone is still remembered");
        bench.hear(Event::Readmitted);
        bench.run(HOURS);
        assert_eq!(bench.verbs(), verbs, "{leaving:?}\n{}", bench.all_said());
    }
}

#[test]
fn new_plan_joins_machine_but_restores_no_drained_node() {
    let mut bench = fresh();
    bench.around.works = |around, verb| {
        if verb == Verb::Join {
            back(around);
        }
        Outcome::Done
    };
    bench.hear(Event::Planned);
    bench.run(HOURS);
    assert_eq!(bench.verbs(), [Verb::RequestToken, Verb::Join], "{}", bench.all_said());
    let mut bench = Bench::with_peers(3, 0);
    bench.run(Span::from_min(5));
    bench.node_goes(Credentials::Accepted, Some(Leaving::Drained));
    bench.run(Span::from_min(10));
    bench.around.found.leaving = None;
    bench.hear(Event::Planned);
    bench.run(HOURS);
    assert_eq!(bench.verbs(), [], "{}", bench.all_said());
}

#[test]
fn that_it_is_to_go_outlives_its_node_and_its_agent() {
    let mut bench = Bench::with_peers(3, 0);
    bench.run(Span::from_min(5));
    bench.around.found.leaving = Some(Leaving::Tainted);
    bench.run(Span::from_min(2));
    bench.node_goes(Credentials::Accepted, None);
    bench.run(Span::from_min(10));
    bench.restart();
    bench.run(HOURS);
    assert_eq!(bench.verbs(), [], "{}", bench.all_said());
    // The removal was taken back: the Node is Ready again, and is later deleted for another reason.
    back(&mut bench.around);
    bench.run(Span::from_min(10));
    bench.node_goes(Credentials::Accepted, None);
    bench.run(Span::from_min(10));
    assert_eq!(bench.verbs().first(), Some(&Verb::RestartKubelet), "{}", bench.all_said());
}

#[test]
fn a_node_that_turns_ready_while_the_token_travels_is_not_reset() {
    let bench = gone(Credentials::Refused, |around, verb| {
        if verb == Verb::RequestToken {
            back(around);
        }
        Outcome::Done
    });
    assert_eq!(bench.verbs(), [Verb::RequestToken], "{}", bench.all_said());
}

#[test]
fn one_that_died_between_reset_and_join_goes_on_with_the_join() {
    let mut bench =
        Bench::new(Settings::default(), Memory { attempts: 1, is_reset: true, ..Memory::default() });
    bench.begin();
    bench.node_goes(Credentials::Nothing, None);
    bench.around.works = |around, verb| {
        if verb == Verb::Join {
            back(around);
        }
        Outcome::Done
    };
    bench.run(HOURS);
    assert_eq!(bench.verbs(), [Verb::RequestToken, Verb::Join], "{}", bench.all_said());
    assert!(!bench.memory.is_reset);
}

#[test]
fn nothing_is_done_to_a_join_while_the_api_server_is_silent() {
    let mut bench = Bench::with_peers(3, 0);
    bench.run(Span::from_min(5));
    bench.node_goes(Credentials::Accepted, None);
    bench.around.api = false;
    bench.run(HOURS);
    assert_eq!(bench.verbs(), [], "{}", bench.all_said());
}

fn fresh() -> Bench {
    let mut bench = Bench::new(Settings::default(), Memory::default());
    bench.begin();
    bench.node_goes(Credentials::Nothing, None);
    bench
}

#[test]
fn new_machine_joins_on_order_and_is_watched_until_ready() {
    let mut bench = fresh();
    bench.run(Span::from_min(30));
    assert_eq!(bench.verbs(), []);
    assert!(bench.said("none was ordered"), "{}", bench.all_said());
    bench.around.works = |around, verb| {
        if verb == Verb::Join {
            back(around);
        }
        Outcome::Done
    };
    bench.hear(Event::Ordered);
    bench.run(HOURS);
    assert_eq!(bench.verbs(), [Verb::RequestToken, Verb::Join], "{}", bench.all_said());
    assert!(bench.said("its node is there, Ready, and has stayed"), "{}", bench.all_said());
    assert_eq!((bench.memory.attempts, bench.memory.is_reset), (0, false));
}

#[test]
fn join_order_for_joined_machine_changes_nothing() {
    let mut bench = Bench::with_peers(3, 0);
    bench.run(Span::from_min(5));
    bench.hear(Event::Ordered);
    bench.run(Span::from_min(10));
    assert_eq!(bench.verbs(), []);
    assert!(bench.said("its node is there, Ready, and has stayed"), "{}", bench.all_said());
}

/// The cloud controller deletes the Node of a live machine a second after it joined; the kubelet registers only at its
/// start.
#[test]
fn node_deleted_after_join_returns_by_kubelet_restart() {
    let mut bench = fresh();
    bench.around.works = |around, verb| {
        match verb {
            Verb::Join => around.found.credentials = Credentials::Accepted,
            Verb::RestartKubelet => back(around),
            _ => {}
        }
        Outcome::Done
    };
    bench.hear(Event::Ordered);
    bench.run(HOURS);
    let wanted = [Verb::RequestToken, Verb::Join, Verb::RestartKubelet];
    assert_eq!(bench.verbs(), wanted, "{}", bench.all_said());
    assert!(bench.said("its node is there, Ready, and has stayed"), "{}", bench.all_said());
}

#[test]
fn interrupted_join_is_reset_and_retried_up_to_a_limit() {
    let mut bench = fresh();
    bench.node_goes(Credentials::Interrupted, None);
    bench.run(Span::from_min(30));
    assert_eq!(bench.verbs(), [], "the agent must not clear away the join of another process");
    bench.around.works = |around, verb| {
        match verb {
            Verb::Reset => around.found.credentials = Credentials::Nothing,
            Verb::Join => around.found.credentials = Credentials::Interrupted,
            _ => {}
        }
        Outcome::Done
    };
    bench.hear(Event::Ordered);
    bench.run(HOURS);
    assert_eq!(bench.verbs().iter().filter(|verb| **verb == Verb::Reset).count(), 5, "{:?}", bench.verbs());
    assert!(bench.said("gives up after 5 attempts: a person has to look"), "{}", bench.all_said());
}

#[test]
fn kubelet_left_stopped_by_broken_join_is_started_without_reset() {
    let mut bench = fresh();
    bench.node_goes(Credentials::Unstarted, None);
    bench.around.works = |around, verb| {
        if verb == Verb::RestartKubelet {
            back(around);
        }
        Outcome::Done
    };
    bench.hear(Event::Ordered);
    bench.run(HOURS);
    assert_eq!(bench.verbs(), [Verb::RestartKubelet], "{}", bench.all_said());
}

#[test]
fn node_that_comes_and_goes_is_not_awaited_as_missing() {
    let mut bench = fresh();
    bench.around.works = |around, verb| {
        if matches!(verb, Verb::Join | Verb::RestartKubelet) {
            back(around);
        }
        Outcome::Done
    };
    bench.hear(Event::Ordered);
    bench.run(Span::from_s(50));
    assert_eq!(bench.verbs(), [Verb::RequestToken, Verb::Join], "{}", bench.all_said());
    bench.node_goes(Credentials::Accepted, None);
    let settings = Settings::default();
    bench.run(settings.inspect_every + settings.backoff + settings.inspect_every);
    assert!(bench.said("its node came and went"), "{}", bench.all_said());
    assert_eq!(bench.verbs().last(), Some(&Verb::RestartKubelet), "{}", bench.all_said());
}

#[test]
fn node_seen_only_by_server_records_counts_as_come_and_gone() {
    let mut bench = fresh();
    bench.around.works = |around, verb| {
        if verb == Verb::Join {
            around.found.credentials = Credentials::Accepted;
        }
        if verb == Verb::RestartKubelet {
            back(around);
        }
        Outcome::Done
    };
    bench.hear(Event::Ordered);
    bench.run(Span::from_s(50));
    assert_eq!(bench.verbs(), [Verb::RequestToken, Verb::Join], "{}", bench.all_said());
    bench.around.found.came_and_went = true;
    let settings = Settings::default();
    bench.run(settings.inspect_every + settings.backoff + settings.inspect_every);
    assert!(bench.said("its node came and went"), "{}", bench.all_said());
    assert_eq!(bench.verbs().last(), Some(&Verb::RestartKubelet), "{}", bench.all_said());
}

#[test]
fn rejoin_request_retries_at_once_even_after_giving_up() {
    let mut bench = gone(Credentials::Accepted, |_, _| Outcome::Done);
    assert!(bench.said("a person has to look"), "{}", bench.all_said());
    let before = bench.verbs().len();
    bench.around.works = |around, _| {
        back(around);
        Outcome::Done
    };
    bench.hear(Event::Asked(Ask::Rejoin));
    bench.run(Span::from_min(10));
    assert_eq!(bench.verbs()[before..], [Verb::RestartKubelet], "{}", bench.all_said());
    assert_eq!(bench.state.account().work, None, "it is done");
}

#[test]
fn an_ask_overrides_nothing_that_speaks_against_it() {
    let mut bench = Bench::with_peers(3, 0);
    bench.run(Span::from_min(5));
    bench.node_goes(Credentials::Accepted, Some(Leaving::Drained));
    bench.run(Span::from_min(5));
    bench.hear(Event::Asked(Ask::Rejoin));
    bench.run(HOURS);
    assert_eq!(bench.verbs(), [], "{}", bench.all_said());
    let blocker = bench.state.account().blocker.expect("it says why");
    assert_eq!(blocker.kind, AgentBlockerKind::Leaving);
}

#[test]
fn accepted_unready_kubelet_restarts_only_on_restart_request() {
    for (ask, verbs) in [(Ask::Rejoin, &[][..]), (Ask::RestartKubelet, &[Verb::RestartKubelet])] {
        let mut bench = Bench::with_peers(3, 0);
        bench.run(Span::from_min(5));
        bench.node_goes(Credentials::Accepted, None);
        bench.around.found.node = NodeSeen::NotReady;
        bench.run(Span::from_min(5));
        assert_eq!(bench.verbs(), []);
        bench.around.works = |around, _| {
            back(around);
            Outcome::Done
        };
        bench.hear(Event::Asked(ask));
        bench.run(Span::from_min(20));
        assert_eq!(bench.verbs(), verbs, "{}", bench.all_said());
    }
}
