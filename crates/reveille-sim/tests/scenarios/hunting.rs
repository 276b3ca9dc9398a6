//! The hunt's own rules: seeds that once failed, the table of faults, and a few whole days.

use std::collections::BTreeSet;
use std::path::{Path, PathBuf};

use reveille_core::model::time::Span;
use reveille_sim::chaos::access::{self, SEEDS_FROM};
use reveille_sim::chaos::{BESIDE, Rate, Rates, ScenarioRun, catalog, hosting, variety};
use reveille_sim::hunt::seed::Seed;
use reveille_sim::hunt::{Quarry, play};

fn here(path: &str) -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join(path)
}

#[test]
fn every_seed_that_once_failed_breaks_nothing() {
    let files = std::fs::read_dir(here("tests/seeds")).unwrap().map(|entry| entry.unwrap().path());
    let mut files: Vec<PathBuf> = files.collect();
    files.sort();
    assert!(files.len() >= 4, "{files:?}");
    for path in files {
        let seed = Seed::read(&std::fs::read_to_string(&path).unwrap());
        let seed = seed.unwrap_or_else(|why| panic!("{}: {why}", path.display()));
        assert!(!seed.wrong.is_empty() && !seed.fixed_by.is_empty(), "{}", path.display());
        let outcome = play(&seed.quarry).unwrap();
        assert_eq!(outcome.breach, None, "{}", path.display());
    }
}

/// What is found and not fixed is kept as well. One that breaks nothing any more belongs beside the others, with the test
/// that holds it.
#[test]
fn a_seed_that_is_open_still_breaks_what_is_told_of_it() {
    // Without an open seed there is no such folder.
    for entry in std::fs::read_dir(here("tests/open-seeds")).into_iter().flatten() {
        let path = entry.unwrap().path();
        let seed = Seed::read(&std::fs::read_to_string(&path).unwrap());
        let seed = seed.unwrap_or_else(|why| panic!("{}: {why}", path.display()));
        assert!(!seed.wrong.is_empty() && seed.fixed_by.is_empty(), "{}", path.display());
        assert!(play(&seed.quarry).unwrap().breach.is_some(), "{}: it is mended", path.display());
    }
}

/// A whole day of faults in a fleet of fifty, and the time until all is at rest, each twice with the same bytes.
#[test]
fn a_day_of_faults_breaks_nothing_and_is_the_same_twice() {
    for seed in 1000..1004 {
        let quarry = Quarry::new(seed, 50, Span::from_min(1440), Span::from_min(30));
        let once = play(&quarry).unwrap();
        assert_eq!(once.breach, None, "seed {seed}");
        assert_eq!(play(&quarry).unwrap().digest, once.digest, "seed {seed}");
    }
}

/// The same with service users, who came later: seeds of before have none, and mean what they meant.
#[test]
fn days_with_service_users_have_no_breach_and_old_seeds_none() {
    let day = |seed| Quarry::new(seed, 10, Span::from_min(1440), Span::from_min(30));
    let (mut given, mut modes) = (0, BTreeSet::new());
    for seed in SEEDS_FROM..SEEDS_FROM + 20 {
        let mut quarry = day(seed);
        modes.insert(quarry.scenario_run().unwrap().layout.access.repair);
        assert_eq!(play(&quarry).unwrap().breach, None, "seed {seed}");
        // What happens to roles alone, on a fleet that is left in peace.
        quarry.faults = access::CATALOG.iter().map(|entry| entry.name.to_owned()).collect();
        let outcome = play(&quarry).unwrap();
        assert_eq!(outcome.breach, None, "seed {seed}");
        given += outcome.counts.calls;
    }
    assert!(given > 20 && modes.len() == 3, "{given} calls; {modes:?}");
    let with = |seed| ScenarioRun::random(seed, Rate::default()).layout.access.users.len();
    assert_eq!((with(SEEDS_FROM - 1), with(SEEDS_FROM) > 0), (0, true));
}

/// Beside a fleet's faults nothing else moves: with and without service users the same happens to the same machines.
#[test]
fn what_happens_to_roles_moves_nothing_else() {
    let whole = Rates::of_seed(SEEDS_FROM);
    let without = Rates::of_seed(0);
    let drawn = |rates| ScenarioRun::drawn(SEEDS_FROM, Rate::default(), rates).all;
    let fleet: Vec<_> = drawn(&whole).into_iter().filter(|one| one.number < BESIDE).collect();
    let alone = drawn(&without);
    assert!(drawn(&whole).len() > alone.len() && !alone.is_empty());
    assert_eq!(format!("{fleet:?}"), format!("{alone:?}"));
}

/// The same with clouds that tell how they host machines: some courses of the newest seeds are in one.
#[test]
fn days_with_hosting_have_no_breach_and_old_seeds_no_hosting() {
    let (mut such, mut groups, mut acted) = (0, 0, 0);
    for seed in hosting::SEEDS_FROM..hosting::SEEDS_FROM + 20 {
        let mut quarry = Quarry::new(seed, 12, Span::from_min(1440), Span::from_min(30));
        let layout = quarry.scenario_run().unwrap().layout;
        let hosted = layout.pools.iter().filter_map(|plan| plan.hosting);
        groups += hosted.clone().filter(|plan| plan.group).count();
        such += usize::from(hosted.count() > 0);
        assert_eq!(play(&quarry).unwrap().breach, None, "seed {seed}");
        // What such a cloud does alone, and often.
        quarry.faults = hosting::CATALOG.iter().map(|entry| entry.name.to_owned()).collect();
        quarry.every = Span::from_min(20);
        let outcome = play(&quarry).unwrap();
        assert_eq!(outcome.breach, None, "seed {seed}, alone");
        acted += outcome.destructive;
    }
    assert!(such > 8 && such < 20 && groups > 8 && acted > 20, "{such}, {groups}, {acted}");
    let before = ScenarioRun::random(hosting::SEEDS_FROM - 1, Rate::default()).layout;
    assert!(before.settles.is_none() && before.pools.iter().all(|plan| plan.hosting.is_none()));
}

/// The same with fleets in two projects, one of whose listings may be wrong while the other one's are right, and with services
/// whose clocks are apart.
#[test]
fn days_in_two_projects_have_no_breach_and_old_seeds_have_one() {
    let (mut such, mut apart, mut acted) = (0, 0, 0);
    for seed in variety::TWO_PROJECTS_FROM..variety::TWO_PROJECTS_FROM + 20 {
        let quarry = Quarry::new(seed, 20, Span::from_min(720), Span::from_min(30));
        let layout = quarry.scenario_run().unwrap().layout;
        such += usize::from(layout.roster().clouds.len() > 1);
        apart += usize::from(layout.variety.clocks_ms != [0, 0]);
        let outcome = play(&quarry).unwrap();
        assert_eq!(outcome.breach, None, "seed {seed}");
        acted += outcome.destructive;
    }
    assert!(such > 3 && such < 20 && apart > 3 && apart < 20 && acted > 20, "{such}, {apart}, {acted}");
    let before = ScenarioRun::random(variety::TWO_PROJECTS_FROM - 1, Rate::default()).layout;
    assert_eq!((before.roster().clouds.len(), before.variety.clocks_ms), (1, [0, 0]));
}

/// Nor does what a provider does move anything that happens to the fleet or to service users.
#[test]
fn what_a_provider_does_moves_nothing_else() {
    let seed = (hosting::SEEDS_FROM..)
        .find(|seed| ScenarioRun::random(*seed, Rate::default()).layout.settles.is_some())
        .unwrap();
    let drawn = |rates: &Rates| ScenarioRun::drawn(seed, Rate::default(), rates).all;
    let whole = drawn(&Rates::of_seed(seed));
    let others: Vec<_> = whole.iter().filter(|one| one.number < 2 * BESIDE).collect();
    let without = drawn(&Rates::of_seed(SEEDS_FROM));
    assert!(whole.len() > others.len());
    assert_eq!(format!("{others:?}"), format!("{:?}", without.iter().collect::<Vec<_>>()));
}

/// Every fault by itself, switched on alone.
#[test]
fn each_fault_can_be_switched_on_alone() {
    for entry in catalog::all() {
        let mut quarry = Quarry::new(7, 8, Span::from_min(60), Span::from_min(15));
        quarry.faults = vec![entry.name.to_owned()];
        let outcome = play(&quarry).unwrap();
        assert_eq!(outcome.breach, None, "{}", entry.name);
    }
    assert!(Rates::only(["no-such-fault"]).is_err());
}

#[test]
fn the_table_of_faults_is_up_to_date() {
    let path = here("../../docs/internals/faults.md");
    let text = std::fs::read_to_string(&path).unwrap();
    let begin = text.find("| fault |").unwrap_or(text.len());
    let fresh = format!("{}{}", &text[..begin], catalog::table());
    if std::env::var_os("REVEILLE_BLESS").is_some() {
        std::fs::write(&path, fresh).unwrap();
    } else {
        assert_eq!(text, fresh, "write it again with REVEILLE_BLESS=1");
    }
}
