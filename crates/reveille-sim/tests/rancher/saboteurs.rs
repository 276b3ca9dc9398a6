//! The test takes each safeguard of a repair away once, and the invariant checker or an assertion must notice.
//!
//! The same seeds are played with all safeguards standing, and nothing is wrong in them (`random_runs_break_no_rule`). What
//! noticed stands in `docs/internals/rancher-simulated.md`, with the faults that are drawn; the page is checked to be what is
//! found.

use std::fmt::Write as _;
use std::path::Path;

use reveille_rancher::repair::safeguard::{Safeguard, without};
use reveille_sim::rancher::Plan;
use reveille_sim::rancher::fault::CATALOG;

/// So many seeds a safeguard may go unnoticed.
const SEEDS: u64 = 1_500;

#[test]
fn every_missing_safeguard_or_wait_is_noticed() {
    let mut page = HEAD.to_owned();
    let mut unnoticed: Vec<&str> = Vec::new();
    for safeguard in Safeguard::ALL.iter().copied() {
        let noticed = (0..SEEDS).find_map(|seed| {
            let plan = Plan::of(seed, &[]).unwrap();
            without(&[safeguard], || plan.play()).breach.map(|breach| (seed, breach))
        });
        match noticed {
            Some((seed, breach)) => {
                let (name, says) = (safeguard.name(), safeguard.says().trim());
                let _ = writeln!(page, "| {name} | {says} | {}: {} | {seed} |", breach.by, breach.what);
            }
            None => unnoticed.push(safeguard.name()),
        }
    }
    assert!(unnoticed.is_empty(), "no check missed: {}", unnoticed.join(", "));
    page += FAULTS;
    for entry in CATALOG {
        let _ = writeln!(page, "| `{}` | {} | {} |", entry.name, entry.rate, entry.says);
    }
    let file = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../docs/internals/rancher-simulated.md");
    if std::env::var_os("REVEILLE_BLESS").is_some() {
        std::fs::write(&file, &page).expect("the page can be written");
    }
    let kept = std::fs::read_to_string(&file).unwrap_or_default();
    assert!(
        kept == page,
        "docs/internals/rancher-simulated.md is not what is found now; if that is meant: REVEILLE_BLESS=1\n{page}"
    );
}

const HEAD: &str = "# Mending Rancher's records in the simulator

`reveille simulate --world rancher --seed 7` plays a repair of one record ([rancher](../reference/rancher.md)) on a made-up
cluster: the escalation is the one of `rancher evict` and `mend`, and Rancher's syncer, hooks and planner do what its own do. The
seed draws the way, what is so of the cluster from the beginning, and what happens to it, to people and to the process. After
every step an invariant checker runs, which keeps a record of its own and asks none of the safeguards, and what was true.
`--seeds 1000` plays so many, `--faults` names the only ones that happen.

## What happens when a safeguard is missing

A test takes each safeguard and each wait away, one at a time, and plays seeds until the invariant checker or the oracle notices.
With all of them standing nothing is wrong in the same seeds. This page is written by it
(`cargo test -p reveille-sim --test rancher`).

| safeguard | what it does | noticed by | seed |
| --- | --- | --- | --- |
";

const FAULTS: &str = "
## What can happen

| name | weight | what happens |
| --- | --- | --- |
";
