//! A kind's map as its file has it, and what is checked when it becomes a [`Kind`].
//!
//! ```text
//!  text ─▶ KindEntry (unknown fields refused) ─▶ for each version: layout, overlaid with what differs ─▶ checked ─▶ Kind
//! ```
//!
//! Checked are: each path and stage, that the stages of the steps do not go backwards, that no step has the name of another,
//! that each deadline ends at a step, and that a hold, and nothing else, has words for people. Not checked is whether objects
//! of the kind have those fields: tests with objects of the real systems show that.

use std::collections::BTreeMap;

use reveille_core::model::stage::Stage;
use serde::Deserialize;

use crate::kind::{
    ConsumerPaths, Deadline, FailureRule, FieldWords, HoldRule, Kind, Layout, StepRule, StepSource, Version,
};
use crate::path::Path;
use crate::sign::{Sign, SignEntry, Values};

/// A map that cannot be used.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error("{file}: {what}")]
pub(crate) struct NotAMap {
    /// The file's name.
    pub(crate) file: String,
    /// What is wrong in it.
    pub(crate) what: String,
}

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct KindEntry {
    name: String,
    group: String,
    plural: String,
    scope: Scope,
    owner: String,
    about: String,
    pool_kind: Option<String>,
    versions: Vec<String>,
    layout: LayoutEntry,
    #[serde(default)]
    differs: BTreeMap<String, LayoutEntry>,
}

#[derive(Clone, Copy, PartialEq, Eq, Deserialize)]
enum Scope {
    Cluster,
    Namespaced,
}

/// Each part may be left out: in `layout` it is then empty, in `differs` the same as in `layout`.
#[derive(Clone, Default, Deserialize)]
#[serde(default, deny_unknown_fields)]
struct LayoutEntry {
    provider_id: Option<Vec<Path>>,
    node: Option<Vec<Path>>,
    pool: Option<Vec<Path>>,
    zone: Option<Vec<Path>>,
    provider_ids: Option<Path>,
    nodes: Option<Path>,
    consumer: Option<ConsumerEntry>,
    conditions: Option<Vec<Path>>,
    steps: Option<Vec<StepEntry>>,
    failure: Option<FailureEntry>,
    leaving: Option<Vec<SignEntry>>,
    idle: Option<Vec<SignEntry>>,
    holds: Option<Vec<SignEntry>>,
    deadlines: Option<Vec<DeadlineEntry>>,
}

#[derive(Clone, Deserialize)]
#[serde(deny_unknown_fields)]
struct ConsumerEntry {
    kind: Path,
    name: Path,
}

#[derive(Clone, Deserialize)]
#[serde(deny_unknown_fields)]
struct StepEntry {
    condition: Option<String>,
    #[serde(default)]
    also: Vec<String>,
    field: Option<Path>,
    name: Option<String>,
    stage: String,
    polarity: Option<Polarity>,
    reached: Option<Vec<String>>,
    #[serde(default)]
    failed: Vec<SignEntry>,
    words_of: Option<String>,
    reason: Option<Path>,
    message: Option<Path>,
    since: Option<Path>,
}

/// Which status of a condition is the good one.
#[derive(Clone, Copy, PartialEq, Eq, Deserialize)]
#[serde(rename_all = "lowercase")]
enum Polarity {
    Positive,
    Negative,
}

#[derive(Clone, Default, Deserialize)]
#[serde(default, deny_unknown_fields)]
struct FailureEntry {
    when: Vec<SignEntry>,
    reason: Vec<Path>,
    message: Vec<Path>,
    conditions: Vec<SignEntry>,
}

#[derive(Clone, Deserialize)]
#[serde(deny_unknown_fields)]
struct DeadlineEntry {
    until: String,
    #[serde(default)]
    when: Vec<SignEntry>,
    field: Option<Path>,
    seconds: u32,
}

/// The kind that a file describes.
pub(crate) fn kind(file: &str, text: &str) -> Result<Kind, NotAMap> {
    let refused = |what: String| NotAMap { file: file.to_owned(), what };
    let entry: KindEntry = serde_saphyr::from_str(text).map_err(|error| refused(error.to_string()))?;
    entry.kind().map_err(refused)
}

impl KindEntry {
    fn kind(self) -> Result<Kind, String> {
        if let Some(unknown) = self.differs.keys().find(|name| !self.versions.contains(name)) {
            return Err(format!("differs: version {unknown} is not among the versions"));
        }
        let version = |name: &String| {
            let entry = match self.differs.get(name) {
                Some(differs) => differs.clone().over(self.layout.clone()),
                None => self.layout.clone(),
            };
            let layout = entry.layout().map_err(|what| format!("version {name}: {what}"))?;
            Ok(Version { name: name.as_str().into(), layout })
        };
        let versions = self.versions.iter().map(version).collect::<Result<Vec<_>, String>>()?;
        if versions.is_empty() {
            return Err("versions: name at least one".into());
        }
        Ok(Kind {
            name: self.name.into(),
            group: self.group.into(),
            plural: self.plural.into(),
            is_namespaced: self.scope == Scope::Namespaced,
            about: self.about.into(),
            owner: self.owner.into(),
            pool_kind: self.pool_kind.map(Into::into),
            versions,
        })
    }
}

impl LayoutEntry {
    /// This entry, and for each part that it leaves out the other one's.
    fn over(self, below: Self) -> Self {
        Self {
            provider_id: self.provider_id.or(below.provider_id),
            node: self.node.or(below.node),
            pool: self.pool.or(below.pool),
            zone: self.zone.or(below.zone),
            provider_ids: self.provider_ids.or(below.provider_ids),
            nodes: self.nodes.or(below.nodes),
            consumer: self.consumer.or(below.consumer),
            conditions: self.conditions.or(below.conditions),
            steps: self.steps.or(below.steps),
            failure: self.failure.or(below.failure),
            leaving: self.leaving.or(below.leaving),
            idle: self.idle.or(below.idle),
            holds: self.holds.or(below.holds),
            deadlines: self.deadlines.or(below.deadlines),
        }
    }

    fn layout(self) -> Result<Layout, String> {
        let steps = steps(self.steps.unwrap_or_default())?;
        let deadlines = self.deadlines.unwrap_or_default();
        let deadlines =
            deadlines.into_iter().map(|entry| entry.deadline(&steps)).collect::<Result<_, _>>()?;
        let failure = self.failure.unwrap_or_default();
        let conditions = match self.conditions {
            Some(paths) => paths,
            None => vec![Path::parse("status.conditions").map_err(|error| error.to_string())?],
        };
        Ok(Layout {
            provider_id: self.provider_id.unwrap_or_default(),
            node: self.node.unwrap_or_default(),
            pool: self.pool.unwrap_or_default(),
            zone: self.zone.unwrap_or_default(),
            provider_ids: self.provider_ids,
            nodes: self.nodes,
            consumer: self.consumer.map(|entry| ConsumerPaths { kind: entry.kind, name: entry.name }),
            conditions,
            failure: FailureRule {
                when: signs("failure.when", failure.when)?,
                reason: failure.reason,
                message: failure.message,
                conditions: signs("failure.conditions", failure.conditions)?,
            },
            leaving: signs("leaving", self.leaving.unwrap_or_default())?,
            idle: signs("idle", self.idle.unwrap_or_default())?,
            holds: self.holds.unwrap_or_default().into_iter().map(hold).collect::<Result<_, _>>()?,
            steps,
            deadlines,
        })
    }
}

fn steps(entries: Vec<StepEntry>) -> Result<Vec<StepRule>, String> {
    let mut steps: Vec<StepRule> = Vec::new();
    for entry in entries {
        let step = entry.step()?;
        if let Some(before) = steps.last().filter(|before| before.stage > step.stage) {
            return Err(format!("step {}: {} comes before {}", step.name, step.stage, before.stage));
        }
        if steps.iter().any(|other| other.name == step.name) {
            return Err(format!("step {}: another step has this name", step.name));
        }
        steps.push(step);
    }
    if steps.is_empty() { Err("steps: name at least one".into()) } else { Ok(steps) }
}

impl StepEntry {
    fn step(self) -> Result<StepRule, String> {
        let source = match (self.condition, self.field) {
            (Some(condition), None) => {
                let types = std::iter::once(condition).chain(self.also).map(Into::into).collect();
                StepSource::Condition { types }
            }
            (None, Some(path)) if self.also.is_empty() && self.polarity.is_none() => StepSource::Field(path),
            _ => {
                return Err(
                    "a step has one of condition and field; also and polarity are for a condition".into()
                );
            }
        };
        let name: Box<str> = match (&self.name, &source) {
            (Some(name), _) => name.as_str().into(),
            (None, StepSource::Condition { types }) => types[0].clone(),
            (None, StepSource::Field(path)) => path.as_str().into(),
        };
        let boxed = |words: Vec<String>| words.into_iter().map(String::into_boxed_str).collect();
        let reached = match (self.reached, &source, self.polarity) {
            (Some(words), _, None) => Values::Among(boxed(words)),
            (None, StepSource::Field(_), _) => Values::Present,
            (None, _, None | Some(Polarity::Positive)) => Values::Among(vec!["True".into()]),
            (None, _, Some(Polarity::Negative)) => Values::Among(vec!["False".into()]),
            (Some(_), _, Some(_)) => return Err(format!("step {name}: reached and polarity say the same")),
        };
        let stage = Stage::from_name(&self.stage)
            .ok_or_else(|| format!("step {name}: there is no stage {}", self.stage))?;
        let words = FieldWords {
            condition: self.words_of.map(Into::into),
            reason: self.reason,
            message: self.message,
            since: self.since,
        };
        if matches!(source, StepSource::Condition { .. }) && words != FieldWords::default() {
            return Err(format!("step {name}: a condition has its own words"));
        }
        let failed = signs(&name, self.failed)?;
        Ok(StepRule { name, source, reached, stage, failed, words })
    }
}

impl DeadlineEntry {
    fn deadline(self, steps: &[StepRule]) -> Result<Deadline, String> {
        if !steps.iter().any(|step| *step.name == *self.until) {
            return Err(format!("deadline until {}: there is no such step", self.until));
        }
        let when = signs("deadlines", self.when)?;
        Ok(Deadline { until: self.until.into(), when, field: self.field, fixed_s: self.seconds })
    }
}

fn signs(place: &str, entries: Vec<SignEntry>) -> Result<Vec<Sign>, String> {
    let sign = |entry: SignEntry| {
        if entry.words.is_some() {
            return Err(format!("{place}: words are for holds"));
        }
        entry.sign().map_err(|what| format!("{place}: {what}"))
    };
    entries.into_iter().map(sign).collect()
}

fn hold(mut entry: SignEntry) -> Result<HoldRule, String> {
    let words = entry.words.take().ok_or("holds: each has words for people")?;
    let sign = entry.sign().map_err(|what| format!("holds: {what}"))?;
    Ok(HoldRule { sign, words: words.into() })
}

#[cfg(test)]
mod tests {
    use super::*;

    const HEAD: &str =
        "name: X\ngroup: x.example\nplural: xs\nscope: Cluster\nowner: X\nabout: An X.\nversions: [v1]\n";

    fn refusal(layout: &str) -> String {
        kind("x.yaml", &format!("{HEAD}{layout}")).unwrap_err().to_string()
    }

    #[test]
    fn smallest_map_has_one_step() {
        let kind = kind("x.yaml", &format!("{HEAD}layout: {{steps: [{{condition: R, stage: register}}]}}\n"));
        let layout = &kind.unwrap().versions[0].layout;
        assert_eq!(layout.conditions[0].as_str(), "status.conditions");
        assert_eq!(layout.steps[0].reached, Values::Among(vec!["True".into()]));
    }

    #[test]
    fn wrong_map_is_refused_with_its_reason() {
        for (layout, reason) in [
            ("layout: {}", "name at least one"),
            ("layout: {stepps: []}", "stepps"),
            ("layout: {steps: [{condition: R, stage: registered}]}", "there is no stage registered"),
            ("layout: {steps: [{condition: R, field: a, stage: register}]}", "one of condition and field"),
            ("layout: {steps: [{field: a..b, stage: register}]}", "a name is empty"),
            (
                "layout: {steps: [{condition: R, stage: ready}, {condition: L, stage: register}]}",
                "register comes before ready",
            ),
            (
                "layout: {steps: [{condition: R, stage: ready}, {condition: R, stage: ready}]}",
                "another step has this name",
            ),
            (
                "layout: {steps: [{condition: R, stage: ready}], deadlines: [{until: L, seconds: 1}]}",
                "there is no such step",
            ),
            ("layout: {steps: [{condition: R, stage: ready}], holds: [{annotation: a}]}", "words for people"),
            (
                "layout: {steps: [{condition: R, stage: ready}], leaving: [{label: a, words: w}]}",
                "words are for holds",
            ),
            ("layout: {steps: [{condition: R, stage: ready}]}\ndiffers: {v2: {}}", "version v2 is not among"),
        ] {
            let refusal = refusal(layout);
            assert!(refusal.starts_with("x.yaml: ") && refusal.contains(reason), "{layout}: {refusal}");
        }
    }

    #[test]
    fn negative_polarity_is_reached_at_false() {
        let text = format!(
            "{HEAD}layout: {{steps: [{{condition: Pending, polarity: negative, stage: register}}]}}\n"
        );
        let kind = kind("x.yaml", &text).unwrap();
        assert_eq!(kind.versions[0].layout.steps[0].reached, Values::Among(vec!["False".into()]));
    }
}
