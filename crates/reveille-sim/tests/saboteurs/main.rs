//! Each safeguard is taken away once, and the simulator must notice.
//!
//! A safeguard that can be missing without any test noticing is no safeguard, or is not tested. Each one's own story is played
//! twice under the same seeds. With the safeguard standing nothing may be wrong in it. With the safeguard away something must
//! be: an invariant, the world's own count of harm, the oracle, or an assertion in the engine. What noticed it, and after how
//! many machine-days, stands in `docs/internals/saboteurs.md`, and this test checks that page.

mod hosted;
mod identities;
mod in_hand;
mod starts;
mod stories;

use std::fmt::Write as _;
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::path::Path;

use reveille_core::safeguard::{self, Safeguard};
use reveille_sim::drive::Drive;

/// So many seeds a safeguard may go unnoticed.
const SEEDS: u64 = 6;

/// The first thing that was wrong in a run, and how much of it had passed by then, machine-days.
struct Noticed {
    by: String,
    what: String,
}

fn first_wrong(drive: &Drive) -> Option<Noticed> {
    if let Some(broken) = drive.violations().first() {
        return Some(Noticed { by: format!("invariant {}", broken.invariant), what: broken.what.clone() });
    }
    if let Some(harm) = drive.world.harms().first() {
        return Some(Noticed { by: "harm".to_owned(), what: harm.what.clone() });
    }
    let foul = drive.fouls().first()?;
    Some(Noticed { by: format!("oracle: {}", foul.rule), what: foul.what.clone() })
}

/// Plays a story; a panic is the engine's own assertion.
fn played(safeguard: Safeguard, seed: u64) -> (Option<Noticed>, f64) {
    let run = catch_unwind(AssertUnwindSafe(|| stories::play(safeguard, seed)));
    match run {
        Ok(drive) => {
            let days = drive.machine_days();
            (first_wrong(&drive), days)
        }
        Err(panic) => {
            let text = panic.downcast_ref::<String>().cloned();
            let text = text.or_else(|| panic.downcast_ref::<&str>().map(|text| (*text).to_owned()));
            let what = text.unwrap_or_default();
            (Some(Noticed { by: "assertion".to_owned(), what }), 0.0)
        }
    }
}

/// With every safeguard standing the stories are clean.
#[test]
fn no_story_convicts_the_engine_as_it_is() {
    for safeguard in Safeguard::ALL.iter().copied() {
        for seed in 1..=2 {
            let drive = safeguard::without(stories::beside(safeguard), || stories::play(safeguard, seed));
            let wrong = first_wrong(&drive);
            let tail = drive.log().tail(40);
            assert!(wrong.is_none(), "{} seed {seed}: {}\n{tail}", safeguard.name(), wrong.unwrap().what);
        }
    }
}

#[test]
fn every_missing_safeguard_is_noticed() {
    let mut page = HEAD.to_owned();
    let mut unnoticed: Vec<&str> = Vec::new();
    for safeguard in Safeguard::ALL.iter().copied() {
        let mut days = 0.0;
        let noticed = (1..=SEEDS).find_map(|seed| {
            let away = [&[safeguard], stories::beside(safeguard)].concat();
            let (noticed, passed) = safeguard::without(&away, || played(safeguard, seed));
            days += passed;
            noticed.map(|noticed| (seed, noticed))
        });
        match noticed {
            Some((seed, noticed)) => {
                let Noticed { by, .. } = noticed;
                let beside: Vec<&str> =
                    stories::beside(safeguard).iter().map(|safeguard| safeguard.name()).collect();
                let (name, says, beside) = (safeguard.name(), safeguard.says().trim(), beside.join(", "));
                let _ = writeln!(page, "| {name} | {says} | {beside} | {by} | {seed} | {days:.2} |");
            }
            None => unnoticed.push(safeguard.name()),
        }
    }
    assert!(unnoticed.is_empty(), "no check missed: {}", unnoticed.join(", "));
    assert!(Safeguard::ALL.len() >= 25);
    let file = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../docs/internals/saboteurs.md");
    if std::env::var_os("REVEILLE_BLESS").is_some() {
        std::fs::write(&file, &page).expect("the page can be written");
    }
    let kept = std::fs::read_to_string(&file).unwrap_or_default();
    assert!(
        kept == page,
        "docs/internals/saboteurs.md is not what is found now; if that is meant: REVEILLE_BLESS=1\n{page}"
    );
}

const HEAD: &str = "# What happens when a safeguard is missing

Between a wrong reading and a lost machine stand safeguards, each with a name (`reveille_core::safeguard`). A test build takes
them away one at a time and plays a course of events in which that safeguard is needed. The simulator must notice: by one of the
twelve invariants, by the world's own count of harm, by the oracle that judges every act by the truth
(`reveille_sim::oracle`), or by an assertion of the engine. The same courses are played with all safeguards standing, and then
nothing is wrong in them.

This page is written by a test (`cargo test -p reveille-sim --test saboteurs`) and checked to be fresh by it. *Machine-days*
is how much simulated time of all machines together had been played when it was noticed at the latest.

Some cases are covered by more than one safeguard. There the others (*away as well*) are taken away in both plays: with this one
standing nothing is wrong, with this one away, too, something is.

| safeguard | what it does | away as well | noticed by | seed | machine-days |
| --- | --- | --- | --- | --- | --- |
";
