//! The detector as a whole: events in, verdicts out.
#![allow(clippy::unwrap_used, reason = "in a test, what cannot be is a failure")]

use reveille_core::model::time::{Span, Time};
use reveille_hot::kinds::Generation;
use reveille_hot::verdict::{Heat, Subject, Witness};
use reveille_hot::{Effect, Event, Object, Resource, Settings, State, Verdict};
use serde_json::{Value, json};

const START: i64 = 1_000_000;

fn at(ms: i64) -> Time {
    Time::from_ms(START + ms)
}

fn machine() -> Object {
    Object::new(Resource::new("management.cattle.io", "nodes"), "c-1", "machine-h46dc")
}

/// A version that one of two agents has just written.
fn version(nth: i64) -> Value {
    let (manager, host) = if nth % 2 == 0 { ("agent-a", "host-1") } else { ("agent-b", "host-2") };
    json!({"metadata": {"name": "machine-h46dc", "namespace": "c-1", "resourceVersion": nth.to_string(),
        "labels": {"management.cattle.io/nodename": "w-1"}, "managedFields": [
        {"manager": manager, "operation": "Update", "time": nth.to_string(),
         "fieldsV1": {"f:spec": {"f:rkeNode": {"f:dockerInfo": {"f:name": {}}}}}}]},
        "spec": {"rkeNode": {"dockerInfo": {"name": host}}},
        "status": {"internalNodeStatus": {"addresses": [{"type": "InternalIP", "address": "10.0.0.5"}]}}})
}

fn opened(effects: Vec<Effect>) -> Option<Verdict> {
    effects.into_iter().find_map(|effect| match effect {
        Effect::Opened(verdict) => Some(*verdict),
        _ => None,
    })
}

/// Writes the object at a steady distance and tells its versions while it is followed; the first verdict, and when.
fn fought(state: &mut State, every_ms: i64, for_ms: i64) -> Option<(i64, Verdict)> {
    let mut is_followed = false;
    for nth in 0..for_ms / every_ms {
        let ms = nth * every_ms;
        let mut effects = state.step(at(ms), Event::Written(machine()));
        is_followed |= effects.contains(&Effect::Follow(machine()));
        if is_followed {
            effects.extend(state.step(at(ms), Event::Version(machine(), Box::new(version(nth)))));
        }
        effects.extend(state.step(at(ms), Event::Tick));
        if let Some(verdict) = opened(effects) {
            return Some((ms, verdict));
        }
    }
    None
}

#[test]
fn agents_sharing_an_identity_are_reported_with_the_machine() {
    let mut state = State::new(Settings::default(), false);
    let (ms, verdict) = fought(&mut state, 200, 60_000).unwrap();
    assert!(ms < 10_000, "{ms}");
    assert_eq!((verdict.heat, verdict.class.name), (Heat::Hot, "docker-info"));
    let mut names: Vec<&str> = verdict.suspects.iter().map(|suspect| suspect.name.as_str()).collect();
    names.sort_unstable();
    assert_eq!(names, ["agent-a", "agent-b"]);
    assert_eq!(verdict.flips[0].path.to_string(), "spec.rkeNode.dockerInfo.name");
    let found = verdict.machine.as_ref().unwrap();
    assert_eq!((found.cluster_id.as_deref(), found.node.as_deref()), (Some("c-1"), Some("w-1")));
    assert_eq!(found.addresses, ["10.0.0.5"]);
    assert_eq!(verdict.rates[0].by, Witness::Watch);
    assert!(verdict.first_aid()[0].contains("audit"), "{:?}", verdict.first_aid());
}

#[test]
fn the_name_of_the_cluster_is_asked_for_once() {
    let mut state = State::new(Settings::default(), false);
    let mut asked = Vec::new();
    for nth in 0..100 {
        let effects = state.step(at(nth * 100), Event::Written(machine()));
        asked.extend(effects.into_iter().filter(|effect| matches!(effect, Effect::ReadBeside { .. })));
    }
    let [Effect::ReadBeside { about, wanted }] = asked.as_slice() else { panic!("{asked:?}") };
    assert_eq!((about, wanted.to_string().as_str()), (&machine(), "clusters.management.cattle.io c-1"));
    let cluster = json!({"spec": {"displayName": "prod"}});
    let effects = state.step(at(10_000), Event::Beside(machine(), Box::new(cluster)));
    let Some(Effect::Changed(verdict)) = effects.first() else { panic!("{effects:?}") };
    assert_eq!(verdict.machine.as_ref().unwrap().cluster_name.as_deref(), Some("prod"));
}

#[test]
fn tolerable_rate_is_not_reported_and_quiet_object_is_dropped() {
    let mut state = State::new(Settings::default(), false);
    assert_eq!(fought(&mut state, 5_000, 3_600_000), None);
    assert_eq!(state.counted(), 1);
    state.step(at(3_700_000), Event::Tick);
    assert_eq!(state.counted(), 0);
}

#[test]
fn what_cools_is_closed() {
    let mut state = State::new(Settings::default(), false);
    assert!(fought(&mut state, 100, 60_000).is_some());
    let effects: Vec<Effect> =
        (0..400).flat_map(|s| state.step(at(60_000 + s * 1000), Event::Tick)).collect();
    assert!(effects.contains(&Effect::Closed(Subject::Object(machine()))), "{effects:?}");
    assert_eq!(state.verdicts(at(500_000)), []);
}

#[test]
fn a_short_look_tells_what_is_warm_as_warm() {
    // A write each two seconds: too much to last, and half a minute does not show that it lasts.
    let mut state = State::new(Settings::default(), true);
    assert_eq!(fought(&mut state, 2_000, 30_000), None);
    let verdict = opened(state.step(at(30_000), Event::Over)).unwrap();
    assert_eq!((verdict.heat, verdict.class.name), (Heat::Warm, "docker-info"));
}

#[test]
fn a_life_that_was_hot_makes_a_short_look_sure() {
    let mut state = State::new(Settings::default(), true);
    state.step(at(0), Event::Watched(machine().resource));
    let listed = |generation, age| Event::Listed {
        object: machine(),
        generation,
        age: Some(age),
        counts: Generation::EveryWrite,
    };
    state.step(at(0), listed(40_000, Span::from_min(24 * 60)));
    let (_, verdict) = fought(&mut state, 2_000, 30_000).unwrap();
    assert_eq!(verdict.heat, Heat::Hot);
    assert!(verdict.rates.iter().any(|rate| rate.by == Witness::Lifetime && rate.writes == 40_000));
    // The same count over a year is no rate, and neither is a life of a minute.
    for (generation, age) in [(40_000, Span::from_min(365 * 24 * 60)), (100, Span::from_min(1))] {
        let mut state = State::new(Settings::default(), true);
        state.step(at(0), Event::Watched(machine().resource));
        state.step(at(0), listed(generation, age));
        assert_eq!(fought(&mut state, 2_000, 30_000), None);
    }
}

#[test]
fn two_lists_tell_the_rate_where_no_watch_does() {
    let rate = |first, second, counts| {
        let mut state = State::new(Settings::default(), true);
        let listed = |generation| Event::Listed { object: machine(), generation, age: None, counts };
        state.step(at(0), listed(first));
        state.step(at(20_000), listed(second));
        let verdict = opened(state.step(at(20_000), Event::Over))?;
        Some((verdict.heat, verdict.rates[0].by, verdict.rates[0].writes))
    };
    assert_eq!(rate(7, 107, Generation::EveryWrite), Some((Heat::Hot, Witness::Generation, 100)));
    assert_eq!(rate(7, 17, Generation::EveryWrite), Some((Heat::Warm, Witness::Generation, 10)));
    assert_eq!(rate(7, 9, Generation::EveryWrite), None);
    assert_eq!(rate(7, 107, Generation::Nothing), None);
}

#[test]
fn memory_is_bounded_and_what_is_hot_is_not_what_is_forgotten() {
    let settings = Settings { objects_max: 1_000, ..Settings::default() };
    let mut state = State::new(settings, false);
    let other = |nth: i64| Object::new(Resource::new("", "configmaps"), "x", &nth.to_string());
    let mut found = None;
    // One object in ten thousand is written four times a second; each of the others once.
    for nth in 0..10_000 {
        let now = at(nth);
        state.step(now, Event::Written(other(nth)));
        if nth % 250 == 0 {
            found = found.or(opened(state.step(now, Event::Written(machine()))));
        }
        assert!(state.counted() <= 1_001, "{}", state.counted());
    }
    assert!(state.forgotten() > 0);
    found = found.or(opened(state.step(at(11_000), Event::Tick)));
    assert_eq!(found.unwrap().subject, Subject::Object(machine()));
}

#[test]
fn the_same_events_give_the_same_effects() {
    let run = || {
        let mut state = State::new(Settings::default(), false);
        let effects: Vec<String> = (0..2_000)
            .flat_map(|nth: i64| {
                let object = Object::new(Resource::new("", "configmaps"), "x", &(nth % 7).to_string());
                state.step(at(nth * 13), Event::Written(object))
            })
            .map(|effect| format!("{effect:?}"))
            .collect();
        effects
    };
    assert!(!run().is_empty());
    assert_eq!(run(), run());
}
