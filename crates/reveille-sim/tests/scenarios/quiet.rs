//! What a healthy fleet costs, and that a run is a function of its seed.

use reveille_core::model::time::Span;
use reveille_sim::chaos::{Rate, ScenarioRun};
use reveille_sim::drive::Drive;
use reveille_sim::world::layout::Layout;

use crate::field::*;

/// A thousand machines, a day, nothing wrong: one record at the beginning, no call, no read.
#[test]
fn a_healthy_thousand_costs_nothing_for_a_day() {
    let mut field = Field::new(Layout::fleet(1, 1000));
    let settled = field.0.counts();
    field.run(Span::from_min(24 * 60));
    let counts = field.0.counts();
    assert_eq!((counts.records, counts.calls, counts.looks), (settled.records, 0, 0), "{}", field.tail());
    assert!(settled.records <= 1, "who joined, once: {}", settled.records);
    field.ends_well();
}

/// Where only news is told, a healthy day takes a third of the steps, every source stays believed, and a fault is found and
/// repaired as ever.
#[test]
fn news_only_reports_keep_sources_trusted_and_faults_repaired() {
    let mut field = Field::new(Layout { news_only: true, ..Layout::fleet(2, 20).routed() });
    let settled = field.0.counts();
    for _ in 0..24 * 6 {
        field.run(min(10));
        let context = field.0.state().context();
        assert!(context.cluster.source.trust(context.now).is_given(), "{}", field.tail());
        assert!(
            context.clouds.values().all(|cloud| cloud.source.trust(context.now).is_given()),
            "{}",
            field.tail()
        );
    }
    let counts = field.0.counts();
    assert_eq!((counts.records, counts.calls, counts.looks), (settled.records, 0, 0), "{}", field.tail());
    assert!(counts.steps < 9_000, "{} steps", counts.steps);
    let victim = field.machine(0);
    field.fault(reveille_sim::world::fault::Fault::GroupLost { machine: victim, slips: false });
    field.run(min(5));
    assert_eq!(field.calls().len(), 1, "{}", field.tail());
    field.ends_well();
}

fn digest(seed: u64) -> reveille_sim::trace::Digest {
    let scenario_run = ScenarioRun::random(seed, Rate { machines: 12, length: min(60), ..Rate::default() });
    let mut drive = scenario_run.stage().whole_trace();
    drive.run_for(scenario_run.length + min(20));
    drive.digest()
}

/// Every byte of every event and every effect, twice.
#[test]
fn the_same_seed_gives_the_same_bytes() {
    for seed in 0..4 {
        let once = digest(seed);
        assert!(once.bytes() > 100_000, "seed {seed}: {} bytes", once.bytes());
        assert_eq!(once, digest(seed), "seed {seed}");
    }
    assert_ne!(digest(0), digest(1));
}

/// A run that only looks records what it sees and touches nothing, whatever happens.
#[test]
fn a_dry_run_touches_nothing() {
    let scenario_run = ScenarioRun::random(5, Rate::default());
    let mut drive = Drive::observing(&scenario_run.layout);
    for (after, happening) in &scenario_run.happenings {
        if let reveille_sim::chaos::Happening::Fault(fault) = happening {
            drive.fault_in(*after, fault.clone());
        }
    }
    drive.run_for(scenario_run.length);
    assert!(drive.counts().records > 20, "{:?}", drive.counts());
    assert_eq!(drive.world.calls(), []);
    assert_eq!(drive.violations(), []);
}
