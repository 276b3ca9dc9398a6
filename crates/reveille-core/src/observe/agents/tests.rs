//! Which agents are fresh, which reports are passed over, and when the silence of many agents means something.

use std::collections::BTreeSet;

use proptest::prelude::*;

use super::*;
use crate::model::agent::{ApiSaid, KubeletSaid};

const fn at(s: i64) -> Time {
    Time::from_ms(s * 1000)
}

fn report(id: &str, life: &str, number: u64) -> AgentReport {
    AgentReport {
        who: Who { instance: Some(id.into()), ..Who::default() },
        life: life.into(),
        number,
        stages: Vec::new(),
        told: Vec::new(),
        unsaid: false,
        kubelet: KubeletSaid::Runs,
        api: ApiSaid::Answers,
        work: None,
        blocker: None,
        may: BTreeSet::new(),
    }
}

fn view() -> AgentsView {
    AgentsView::new(Span::from_s(90))
}

fn hear(view: &mut AgentsView, now: Time, report: AgentReport) -> Heard {
    view.said(now, &"a".into(), &Arc::new(report))
}

#[test]
fn what_comes_late_or_twice_is_no_sign_of_life() {
    let mut view = view();
    let table = [
        (0, "one", 4, Heard::News),
        (10, "one", 4, Heard::PassedOver),
        (20, "one", 3, Heard::PassedOver),
        (30, "one", 5, Heard::Same),
        (40, "two", 1, Heard::News),
        (50, "one", 6, Heard::PassedOver),
        (60, "two", 2, Heard::Same),
    ];
    for (s, life, number, heard) in table {
        assert_eq!(hear(&mut view, at(s), report("i1", life, number)), heard, "{life} {number}");
    }
    assert_eq!(view.get(&"a".into()).map(|seen| seen.heard), Some(at(60)));
}

#[test]
fn agent_silence_counts_only_while_a_server_listens() {
    let mut view = view();
    hear(&mut view, at(0), report("i1", "one", 1));
    let silence = |view: &AgentsView, s: i64| view.silence(at(s), view.get(&"a".into()).expect("heard"));
    assert_eq!(silence(&view, 60), Span::from_s(60));
    view.is_deaf(at(60));
    assert_eq!(silence(&view, 600), Span::from_s(60), "no server listened");
    view.listens(at(600));
    assert_eq!(silence(&view, 610), Span::from_s(10), "its whole time starts from zero");
    view.restart_sight(at(700));
    assert_eq!(silence(&view, 705), Span::from_s(5), "and so it does after a sleep of ours");
}

#[test]
fn one_that_cries_outage_is_not_believed_and_most_are() {
    let mut view = view();
    let say = |view: &mut AgentsView, agent: usize, api: ApiSaid, number: u64| {
        let id = format!("i{agent}");
        let said = AgentReport { api, ..report(&id, "one", number) };
        view.said(at(0), &format!("a{agent}").as_str().into(), &Arc::new(said));
        let (id, machine) = machine(agent);
        link(view, &id, Some(&machine));
    };
    for agent in 0..5 {
        say(&mut view, agent, ApiSaid::Answers, 1);
    }
    say(&mut view, 0, ApiSaid::LostByAll, 2);
    assert_eq!(view.outage(at(1)), None, "one");
    say(&mut view, 1, ApiSaid::Lost, 2);
    say(&mut view, 2, ApiSaid::LostHere, 2);
    assert_eq!(view.outage(at(1)), None, "two of five, and one that knows it is alone");
    say(&mut view, 3, ApiSaid::LostByAll, 2);
    assert_eq!(view.outage(at(1)), Some((3, 5)));
    assert_eq!(view.outage(at(100)), None, "no agent is fresh any more");
}

/// Many agents, each on a machine of its own, and linked to it by hand.
fn many(view: &mut AgentsView, count: usize, now: Time) {
    for number in 0..count {
        let (id, machine) = machine(number);
        let blocker = (number == 0)
            .then(|| AgentBlocker { kind: AgentBlockerKind::Leaving, text: "is taken away".into() });
        let said = AgentReport { blocker, ..report(&format!("i{number}"), "one", 1) };
        view.said(now, &id, &Arc::new(said));
        link(view, &id, Some(&machine));
        view.of.entry(machine).or_default().insert(id.clone());
        view.weak.remove(&id);
        view.unknown = 0;
    }
}

/// By hand: how a link comes about does not matter here.
fn link(view: &mut AgentsView, agent: &AgentId, machine: Option<&MachineKey>) {
    let seen = view.all.get_mut(agent).expect("it was heard");
    view.heard.take(seen);
    seen.link = machine.map(|machine| AgentLink { machine: machine.clone(), by: LinkedBy::ProviderId });
    view.heard.add(seen);
}

fn machine(number: usize) -> (AgentId, MachineKey) {
    let id = format!("a{number}").as_str().into();
    (id, MachineKey::Instance("os".into(), format!("i{number}").as_str().into()))
}

#[test]
fn agents_of_a_large_fleet_are_all_kept() {
    let mut view = view();
    many(&mut view, 25_000, at(0));
    for number in 0..25_000 {
        assert!(view.fresh(at(1), &machine(number).1).is_some(), "machine {number}: its agent is not heard");
    }
    assert!(view.is_leaving(&machine(0).1).is_some(), "machine 0 is to go");
}

#[test]
fn unknown_agents_are_bounded_longest_silent_first() {
    let mut view = view();
    many(&mut view, 1, at(0));
    for number in 1..=UNKNOWN_MAX {
        view.said(at(number as i64 / 1_000), &machine(number).0, &Arc::new(report("none", "one", 1)));
    }
    assert_eq!(view.len(), UNKNOWN_MAX + 1);
    view.said(at(100), &"one-more".into(), &Arc::new(report("none", "one", 1)));
    assert_eq!(view.len(), UNKNOWN_MAX + 2 - UNKNOWN_LEAVE);
    assert!(view.get(&machine(1).0).is_none(), "the longest silent leaves");
    assert!(view.get(&machine(UNKNOWN_MAX).0).is_some(), "one that was heard lately stays");
    assert!(view.is_leaving(&machine(0).1).is_some(), "an agent of a known machine stays");
}

#[test]
fn machine_with_many_agents_keeps_the_newest() {
    let mut view = view();
    let key = machine(0).1;
    for number in 0..20 {
        let id = machine(number).0;
        view.said(at(number as i64), &id, &Arc::new(report("i0", "one", 1)));
        link(&mut view, &id, Some(&key));
        view.of.entry(key.clone()).or_default().insert(id.clone());
        view.bound_machine(&key, &id);
    }
    assert_eq!(view.of(&key).count(), OF_MACHINE_MAX);
    assert_eq!(view.latest(&key).map(|(id, _)| id.clone()), Some(machine(19).0));
}

/// What happens to a view, and how long after what happened before.
#[derive(Clone, Debug)]
enum Happens {
    Said(usize, ApiSaid),
    Answered(usize),
    Linked(usize, bool),
    Forgotten(usize),
    Deaf,
    Listens,
    Slept,
    WentBack(i64),
    Noted,
}

fn happens() -> impl Strategy<Value = Happens> {
    let api = prop_oneof![
        3 => Just(ApiSaid::LostByAll),
        1 => Just(ApiSaid::Lost),
        1 => Just(ApiSaid::LostHere),
        2 => Just(ApiSaid::Answers)
    ];
    prop_oneof![
        12 => (0..8_usize, api).prop_map(|(agent, api)| Happens::Said(agent, api)),
        2 => (0..8_usize).prop_map(Happens::Answered),
        4 => (0..8_usize, prop::bool::weighted(0.8)).prop_map(|(agent, is)| Happens::Linked(agent, is)),
        1 => (0..8_usize).prop_map(Happens::Forgotten),
        1 => Just(Happens::Deaf),
        1 => Just(Happens::Listens),
        1 => Just(Happens::Slept),
        1 => (0..200_000_i64).prop_map(Happens::WentBack),
        8 => Just(Happens::Noted),
    ]
}

fn happen(view: &mut AgentsView, now: &mut Time, number: u64, what: Happens) {
    match what {
        Happens::Said(agent, api) => {
            let said = AgentReport { api, ..report(&format!("i{agent}"), "one", number) };
            view.said(*now, &machine(agent).0, &Arc::new(said));
        }
        Happens::Answered(agent) => view.answered(*now, &machine(agent).0),
        Happens::Linked(agent, is) => {
            let (id, key) = machine(agent);
            if view.all.contains_key(&id) {
                link(view, &id, is.then_some(&key));
                view.of.entry(key).or_default().insert(id);
            }
        }
        Happens::Forgotten(agent) => view.forget(&machine(agent).1),
        Happens::Deaf => view.is_deaf(*now),
        Happens::Listens => view.listens(*now),
        Happens::Slept => view.restart_sight(*now),
        Happens::WentBack(ms) => {
            *now = *now - Span::from_ms(ms);
            view.go_back_to(*now);
        }
        Happens::Noted => view.note_outage(*now, |_| true),
    }
}

proptest! {
    #[test]
    fn running_count_of_fresh_agents_matches_full_walk(
        all in prop::collection::vec((0..40_000_i64, happens()), 1..120)
    ) {
        let (mut view, mut now) = (view(), at(0));
        for (number, (after, what)) in all.into_iter().enumerate() {
            now = now + Span::from_ms(after);
            happen(&mut view, &mut now, number as u64 + 1, what);
            for moment in [now, now + Span::from_s(60), now - Span::from_s(60)] {
                prop_assert!(view.counts_agree(moment), "at {moment:?}: {view:?}");
            }
        }
    }
}

/// In an outage each heartbeat asks several times, and time passes each moment once: counted in moments, and not timed.
#[test]
fn heartbeats_of_an_outage_walk_over_each_moment_once() {
    let (agents, rounds) = (400, 20);
    let mut view = view();
    many(&mut view, agents, at(0));
    view.note_outage(at(0), |_| true);
    let mut walked = 0;
    for round in 0..rounds {
        for agent in 0..agents {
            let now = at(15 * round as i64) + Span::from_ms(30 * agent as i64);
            let said = AgentReport {
                api: ApiSaid::LostByAll,
                ..report(&format!("i{agent}"), "one", round as u64 + 2)
            };
            view.said(now, &machine(agent).0, &Arc::new(said));
            let from = now - Span::from_s(90);
            walked += view.heard.walked(from);
            view.note_outage(now, |_| true);
            assert_eq!(view.heard.walked(from), 0, "a question asked now walks over nothing");
        }
    }
    assert_eq!(view.outage(at(15 * rounds as i64)), Some((agents, agents)), "there is an outage to ask for");
    assert!(walked <= agents * rounds, "{walked} moments for {} heartbeats", agents * rounds);
}
