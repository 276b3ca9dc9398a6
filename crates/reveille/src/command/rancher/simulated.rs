//! `simulate --world rancher`: repairs of a Rancher record on a simulated cluster, one for each seed.
//!
//! ```text
//!  --seed, --seeds, --faults ─▶ sim::rancher::Plan ─▶ play ─▶ how each ended, what was broken, digest
//! ```
//!
//! It touches nothing outside the simulation. One seed is shown in full; several are counted.

use std::collections::BTreeMap;

use reveille_rancher::repair::End;
use reveille_sim::rancher::{Outcome, Plan};
use serde::Serialize;

use crate::cli::exit::Exit;
use crate::cli::failure::Failure;
use crate::cli::play::Simulate;
use crate::command::{Answer, Context};
use crate::render::output_style::Tone;

#[derive(Serialize)]
#[serde(rename_all = "camelCase")]
struct RepairsReport {
    kind: &'static str,
    seeds: u64,
    steps: u64,
    ended: BTreeMap<String, u64>,
    broken: Vec<BrokenReport>,
    #[serde(skip_serializing_if = "Option::is_none")]
    #[serde(rename = "course")]
    run: Option<RunReport>,
}

#[derive(Serialize)]
struct BrokenReport {
    seed: u64,
    by: &'static str,
    what: String,
}

#[derive(Serialize)]
#[serde(rename_all = "camelCase")]
struct RunReport {
    seed: u64,
    way: &'static str,
    circumstances: Vec<String>,
    lives: u32,
    story: Vec<String>,
    digest: String,
}

/// Plays the seeds.
pub(crate) fn simulate(context: &Context, args: &Simulate, first: u64) -> Result<Answer, Failure> {
    let mut report = RepairsReport {
        kind: "RepairsReport",
        seeds: args.seeds,
        steps: 0,
        ended: BTreeMap::new(),
        broken: Vec::new(),
        run: None,
    };
    for seed in first..first.saturating_add(args.seeds) {
        let plan =
            Plan::of(seed, &args.faults).map_err(|unknown| Failure::usage(anyhow::Error::new(unknown)))?;
        let outcome = plan.play();
        report.steps += u64::from(outcome.steps);
        *report.ended.entry(word(&outcome)).or_default() += 1;
        if let Some(breach) = &outcome.breach {
            report.broken.push(BrokenReport { seed, by: breach.by, what: breach.what.clone() });
        }
        if args.seeds == 1 {
            report.run = Some(run(seed, &plan, &outcome));
        }
    }
    let exit = if report.broken.is_empty() { Exit::NoProblem } else { Exit::Problems };
    let text = context.print_own(&report, || page(context, &report))?;
    Ok(Answer { text, exit })
}

fn word(outcome: &Outcome) -> String {
    match &outcome.ended {
        Some(End::Closed(how)) => how.name().to_owned(),
        Some(End::Stopped { changed: false, .. }) => "refused".to_owned(),
        Some(End::Stopped { .. }) => "stopped".to_owned(),
        None => "cut short".to_owned(),
    }
}

fn run(seed: u64, plan: &Plan, outcome: &Outcome) -> RunReport {
    let etcd = plan.etcd.then(|| "it holds etcd".to_owned());
    RunReport {
        seed,
        way: plan.path.word(),
        circumstances: etcd
            .into_iter()
            .chain(plan.circumstances.iter().map(|one| one.says().to_owned()))
            .collect(),
        lives: outcome.lives,
        story: outcome.story.lines().map(str::to_owned).collect(),
        digest: outcome.digest.clone(),
    }
}

fn page(context: &Context, report: &RepairsReport) -> String {
    let mut page = String::new();
    if let Some(run) = &report.run {
        let so = if run.circumstances.is_empty() { "nothing" } else { &run.circumstances.join("; ") };
        page += &format!("seed {}: {}; besides: {so}\n\n", run.seed, run.way);
        for line in &run.story {
            let line = crate::render::output_style::one_line(line);
            page += &format!(
                "{}\n",
                if line.contains(" HAPPENS ") { context.paper.tone(Tone::Faint, line) } else { line }
            );
        }
        page += &format!("\ndigest     {}\n", run.digest);
    }
    let ended: Vec<String> = report.ended.iter().map(|(how, times)| format!("{times} {how}")).collect();
    page += &format!("ended      {} ({} steps)\n", ended.join(", "), report.steps);
    for broken in &report.broken {
        let line = format!("✗ seed {}: {}: {}", broken.seed, broken.by, broken.what);
        page += &format!("{}\n", context.paper.tone(Tone::Bad, line));
    }
    if report.broken.is_empty() {
        page += "✓ the invariant checker ran after every step, and no rule is broken\n";
    }
    page
}
