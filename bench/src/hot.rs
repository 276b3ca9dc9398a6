//! What the detector of hot objects costs: ten thousand objects, a thousand changes a second, and one fight among them.
//!
//! ```text
//!  10,000 objects ─ a change each 10 s, in a scattered order ─┐
//!  one object, written 4 times a second by two in turn ───────┴▶ State::step, ten minutes of made-up time, as fast as it goes
//! ```
//!
//! Once with its events as the detector gets them, and once with each change's metadata decoded before, which is most of what a
//! watcher pays beside the connection. Time is the thread's processor time; heap is counted by the allocator.

use std::time::Duration;

use reveille_core::model::time::Time;
use reveille_hot::{Effect, Event, Object, Resource, Settings, State};
use serde_json::{Value, json};

use super::ALLOCATOR;

const OBJECTS: usize = 10_000;
const EVENTS_PER_S: usize = 1_000;
const SECONDS: usize = 600;
/// The fight begins here.
const FIGHT_FROM_S: usize = 300;
const FIGHT_EVERY_MS: usize = 250;

/// What one run cost.
struct Cost {
    cpu: Duration,
    heap_bytes: usize,
    heap_most_bytes: usize,
    verdict_after_ms: Option<usize>,
    false_ones: usize,
}

/// Measures and prints.
pub(crate) fn detector() {
    println!(
        "hot objects: {OBJECTS} objects, {EVENTS_PER_S} changes a second, for {SECONDS} s of made-up time"
    );
    let bare = run(false);
    let decoded = run(true);
    let share = |cost: &Cost| cost.cpu.as_secs_f64() / SECONDS as f64 * 100.0;
    let each = |cost: &Cost| cost.cpu.as_secs_f64() * 1e6 / (SECONDS * EVENTS_PER_S) as f64;
    println!("  detector           {:6.2} % of a core, {:5.2} µs for a change", share(&bare), each(&bare));
    println!(
        "  with decoding      {:6.2} % of a core, {:5.2} µs for a change (2 kB of metadata each)   limit: 10 %",
        share(&decoded),
        each(&decoded)
    );
    println!(
        "  heap               {:6.2} MB, at most {:.2} MB   limit: 10 MB",
        bare.heap_bytes as f64 / 1e6,
        bare.heap_most_bytes as f64 / 1e6
    );
    match bare.verdict_after_ms {
        Some(ms) => println!(
            "  time to verdict    {:6.2} s after the first write of the fight   limit: 30 s",
            ms as f64 / 1e3
        ),
        None => println!("  time to verdict    never: the fight was not found"),
    }
    println!("  others called hot  {}\n", bare.false_ones + decoded.false_ones);
}

fn run(decodes: bool) -> Cost {
    let before = ALLOCATOR.current_usage();
    let kind = Resource::new("", "configmaps");
    let objects: Vec<Object> =
        (0..OBJECTS).map(|nth| Object::new(kind.clone(), "apps", &format!("config-{nth}"))).collect();
    let text = metadata();
    let own = ALLOCATOR.current_usage().saturating_sub(before);
    ALLOCATOR.reset_peak_usage();
    let fought = Object::new(Resource::new("management.cattle.io", "nodes"), "c-1", "machine-h46dc");
    let mut state = State::new(Settings::default(), false);
    let (mut verdict_after_ms, mut false_ones, mut is_followed, mut turn) = (None, 0, false, 0_u32);
    let begun = cpu();
    for ms in 0..SECONDS * 1_000 {
        let now = Time::from_ms(i64::try_from(ms).unwrap_or(0));
        let mut effects = Vec::new();
        for nth in 0..EVENTS_PER_S / 1_000 {
            // A step that has no factor in common with the count visits each object once in ten seconds, in a scattered order.
            let object = objects[(ms * 7_919 + nth) % OBJECTS].clone();
            if decodes {
                std::hint::black_box(serde_json::from_str::<Head<'_>>(&text).is_ok());
            }
            effects.extend(state.step(now, Event::Written(object)));
        }
        if ms >= FIGHT_FROM_S * 1_000 && ms.is_multiple_of(FIGHT_EVERY_MS) {
            turn += 1;
            effects.extend(state.step(now, Event::Written(fought.clone())));
            if is_followed {
                effects.extend(state.step(now, Event::Version(fought.clone(), Box::new(version(turn)))));
            }
        }
        if ms.is_multiple_of(250) {
            effects.extend(state.step(now, Event::Tick));
        }
        for effect in effects {
            match effect {
                Effect::Follow(_) => is_followed = true,
                Effect::Unfollow(_) => is_followed = false,
                Effect::Opened(verdict) if verdict.class.name == "docker-info" => {
                    verdict_after_ms = verdict_after_ms.or(Some(ms - FIGHT_FROM_S * 1_000));
                }
                Effect::Opened(_) => false_ones += 1,
                Effect::Changed(_) | Effect::Closed(_) | Effect::ReadBeside { .. } => {}
            }
        }
    }
    let cpu = cpu().saturating_sub(begun);
    let heap = |usage: usize| usage.saturating_sub(before + own);
    let (heap_bytes, heap_most_bytes) = (heap(ALLOCATOR.current_usage()), heap(ALLOCATOR.peak_usage()));
    drop(state);
    Cost { cpu, heap_bytes, heap_most_bytes, verdict_after_ms, false_ones }
}

/// The fields that a watcher reads of a change.
#[derive(serde::Deserialize)]
struct Head<'a> {
    #[serde(borrow)]
    #[expect(dead_code, reason = "decoding it is what is measured")]
    metadata: Meta<'a>,
}

#[derive(serde::Deserialize)]
#[serde(rename_all = "camelCase")]
#[expect(dead_code, reason = "decoding it is what is measured")]
struct Meta<'a> {
    #[serde(borrow)]
    name: std::borrow::Cow<'a, str>,
    #[serde(borrow)]
    namespace: std::borrow::Cow<'a, str>,
    #[serde(borrow)]
    resource_version: std::borrow::Cow<'a, str>,
}

/// A change as the API server sends it, with its managed fields.
fn metadata() -> String {
    let fields: serde_json::Map<String, Value> =
        (0..60).map(|nth| (format!("f:field-{nth}"), json!({"f:a": {}}))).collect();
    json!({"kind": "PartialObjectMetadata", "metadata": {"name": "config-1", "namespace": "apps", "resourceVersion": "12345678",
        "uid": "5f0c1d2e-0000-4a5b-8c9d-0123456789ab", "managedFields": [
            {"manager": "kubectl", "operation": "Update", "time": "2026-01-01T00:00:00Z", "fieldsV1": {"f:data": fields}}]}})
    .to_string()
}

/// A version that one of two agents has just written.
fn version(turn: u32) -> Value {
    let (manager, host) = if turn.is_multiple_of(2) { ("agent-a", "host-1") } else { ("agent-b", "host-2") };
    json!({"metadata": {"managedFields": [{"manager": manager, "time": turn,
        "fieldsV1": {"f:spec": {"f:rkeNode": {"f:dockerInfo": {"f:name": {}}}}}}]},
        "spec": {"rkeNode": {"dockerInfo": {"name": host}}}})
}

fn cpu() -> Duration {
    let now = rustix::time::clock_gettime(rustix::time::ClockId::ThreadCPUTime);
    Duration::new(u64::try_from(now.tv_sec).unwrap_or(0), u32::try_from(now.tv_nsec).unwrap_or(0))
}
