//! `simulate --policy NAME` and `--compare`: plays a scenario or a run of faults with models of other programs, and
//! counts their results.
//!
//! ```text
//!  FILE, situation, --seed, or everything that comes along ─▶ sim::policy::Subject
//!      ─ each policy ─▶ Score ─▶ tables, sum
//! ```
//!
//! It judges nothing: the simulated world knows which action was wrong. With `--policy` it also names every destructive
//! action, in order.

use std::collections::BTreeMap;

use reveille_core::model::time::Span;
use reveille_sim::compare::{Comparison, Score, Subject, Told, report, set};
use reveille_sim::policy::Policy;
use serde::Serialize;

use super::simulate::{read_scenario, scenario_run};
use super::{Answer, Context};
use crate::cli::exit::Exit;
use crate::cli::failure::Failure;
use crate::cli::play::Simulate;
use crate::render::output_style::Tone;

/// `simulate --compare`, `simulate --policy NAME`.
pub(super) fn compare(context: &Context, args: &Simulate) -> Result<Answer, Failure> {
    let subjects = subjects(args)?;
    let one = args.policy;
    let asked: Vec<Policy> = one.map_or_else(|| Policy::ALL.to_vec(), |policy| vec![policy]);
    let played: Vec<Comparison> = subjects.iter().map(|subject| subject.compare(&asked)).collect();
    let sum = (played.len() > 1).then(|| Comparison::sum("sum", &format!("all {}.", played.len()), &played));
    let wrong = played.iter().flat_map(|one| &one.scores).any(|(_, score)| score.wrongs() > 0);
    let told = CompareReport::of(&played, sum.as_ref());
    let text = context.print_own(&told, || page(context, &played, sum.as_ref(), one.is_some()))?;
    // Other programs may do wrong in a comparison; the comparison is there to show it.
    let exit = if one.is_some() && wrong { Exit::Problems } else { Exit::NoProblem };
    Ok(Answer { text, exit })
}

fn subjects(args: &Simulate) -> Result<Vec<Subject>, Failure> {
    let refused = |refusal| Failure::internal(anyhow::Error::new(refusal));
    match (&args.scenario, args.seed) {
        (Some(wanted), _) => {
            if let Some(situation) = set::situations().into_iter().find(|one| one.name == *wanted) {
                return Ok(vec![situation]);
            }
            let (name, scenario) = read_scenario(wanted)?;
            match &scenario.not_yet {
                Some(reason) => Err(Failure::usage(anyhow::anyhow!("{name} cannot be played yet: {reason}"))),
                None => Ok(vec![Subject::of_scenario(scenario)]),
            }
        }
        (None, Some(first)) => {
            let about = format!("{} machines for {} days, and two hours more.", args.machines, args.days);
            let seeds = first..first.saturating_add(args.seeds);
            let subject = |seed| {
                Ok(Subject::of_run(&format!("seed {seed}"), &about, scenario_run(args, seed)?, set::AFTER))
            };
            seeds.map(subject).collect()
        }
        (None, None) => {
            let mut all = set::situations();
            all.extend(set::scenarios().map_err(refused)?);
            Ok(all)
        }
    }
}

fn page(context: &Context, played: &[Comparison], sum: Option<&Comparison>, acts: bool) -> String {
    let mut page = String::new();
    for comparison in played {
        page += &report::text(comparison);
        if acts {
            page.extend(
                comparison.scores.iter().flat_map(|(_, score)| &score.told).map(|told| act(context, told)),
            );
        }
        page.push('\n');
    }
    if let Some(sum) = sum {
        page += &report::text(sum);
    }
    page
}

fn act(context: &Context, told: &Told) -> String {
    let s = told.at.ms / 1000;
    let at = format!("{:>3}:{:02}", s / 60, s % 60);
    match told.wrong {
        None => format!("  {at}  {}\n", told.what),
        Some(wrong) => {
            let line = format!("  {at}  {}: wrong, {}", told.what, wrong.text());
            context.paper.tone(Tone::Bad, line) + "\n"
        }
    }
}

#[derive(Serialize)]
#[serde(rename_all = "camelCase")]
struct CompareReport {
    kind: &'static str,
    comparisons: Vec<ComparedReport>,
    #[serde(skip_serializing_if = "Option::is_none")]
    sum: Option<ComparedReport>,
}

#[derive(Serialize)]
#[serde(rename_all = "camelCase")]
struct ComparedReport {
    name: String,
    about: String,
    scores: Vec<ScoreReport>,
}

#[derive(Serialize)]
#[serde(rename_all = "camelCase")]
struct ScoreReport {
    policy: &'static str,
    wrong: u64,
    wrong_because: BTreeMap<&'static str, u64>,
    destructive: u64,
    broken: u64,
    cured: usize,
    places: u64,
    half_cured_within_s: Option<i64>,
    nine_of_ten_cured_within_s: Option<i64>,
    calls: u64,
    reads: u64,
    ended_well: u64,
    subjects: u64,
    violations: u64,
    #[serde(skip_serializing_if = "Vec::is_empty")]
    acts: Vec<ActReport>,
}

#[derive(Serialize)]
#[serde(rename_all = "camelCase")]
struct ActReport {
    at_s: i64,
    what: String,
    #[serde(skip_serializing_if = "Option::is_none")]
    wrong: Option<&'static str>,
}

impl CompareReport {
    fn of(played: &[Comparison], sum: Option<&Comparison>) -> Self {
        let compared = |comparison: &Comparison| ComparedReport {
            name: comparison.name.clone(),
            about: comparison.about.clone(),
            scores: comparison.scores.iter().map(|(policy, score)| ScoreReport::of(*policy, score)).collect(),
        };
        Self {
            kind: "PolicyComparison",
            comparisons: played.iter().map(compared).collect(),
            sum: sum.map(compared),
        }
    }
}

impl ScoreReport {
    fn of(policy: Policy, score: &Score) -> Self {
        let whole = |span: Span| span.ms / 1000;
        let act = |told: &Told| ActReport {
            at_s: whole(told.at),
            what: told.what.clone(),
            wrong: told.wrong.map(reveille_sim::world::Wrong::text),
        };
        Self {
            policy: policy.name(),
            wrong: score.wrongs(),
            wrong_because: score.wrong.iter().map(|(wrong, count)| (wrong.text(), *count)).collect(),
            destructive: score.acts,
            broken: score.broken,
            cured: score.cured.len(),
            places: score.places,
            half_cured_within_s: score.cured_within(50).map(whole),
            nine_of_ten_cured_within_s: score.cured_within(90).map(whole),
            calls: score.calls,
            reads: score.reads,
            ended_well: score.ended_well,
            subjects: score.subjects,
            violations: score.violations,
            acts: score.told.iter().map(act).collect(),
        }
    }
}
