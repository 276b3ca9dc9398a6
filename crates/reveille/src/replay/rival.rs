//! Shows what another policy would have done on a recording, beside what was done.
//!
//! ```text
//!  recording: steps ─┬─ (time, event) ─▶ Onlooker: a model of another program ─▶ would ─┐
//!               └─ effects: calls made then ─────────────────────────────▶ did ────┴─▶ one list in order of time
//! ```
//!
//! The recorded world continues as recorded. So the report judges an action of the model only by facts in the recording.
//! It checks whether the machine was Ready when the model would have deleted or rebooted it, or became Ready later
//! without that action. What the model would have repaired, and what would follow from its actions, only a scenario
//! shows (`simulate --policy`).

use std::sync::Arc;

use reveille_core::effect::{Call, Effect};
use reveille_core::model::id::InstanceId;
use reveille_core::model::time::Time;
use reveille_sim::policy::{Afterwards, Onlooker, Policy, Stood, WouldDo};
use serde::Serialize;

use super::compare::Wanted;
use super::recording::Recording;
use super::report::clock;
use crate::cli::failure::Failure;
use crate::render::output_style::{Paper, Tone};
use crate::render::table::{self, Text};

/// What one policy would have done, and what was done.
#[derive(Clone, Debug, Serialize)]
#[serde(rename_all = "camelCase")]
pub(crate) struct Rivalry {
    api_version: &'static str,
    kind: &'static str,
    recording: String,
    policy: &'static str,
    #[serde(skip_serializing_if = "Option::is_none")]
    from: Option<Time>,
    #[serde(skip_serializing_if = "Option::is_none")]
    until: Option<Time>,
    would: Vec<Would>,
    did: Vec<Did>,
    /// Deletions and reboots of machines that were Ready at that time, or became Ready without them.
    needless: usize,
}

#[derive(Clone, Debug, Serialize)]
#[serde(rename_all = "camelCase")]
struct Would {
    at: Time,
    what: &'static str,
    machine: Arc<str>,
    times: u32,
    destructive: bool,
    needless: bool,
    because: String,
}

#[derive(Clone, Debug, Serialize)]
struct Did {
    at: Time,
    what: String,
    #[serde(skip_serializing_if = "Option::is_none")]
    machine: Option<Arc<str>>,
    destructive: bool,
}

/// Plays a recording with a model of another policy.
pub(crate) fn play(
    recording: &mut Recording,
    policy: Policy,
    wanted: &Wanted,
    paper: &Paper,
) -> Result<Rivalry, Failure> {
    let mut onlooker = Onlooker::new(policy, recording.header.roster.clone());
    let counts = |at: Time| wanted.from.is_none_or(|from| at >= from);
    let (mut span, mut did): (Option<(Time, Time)>, Vec<Did>) = (None, Vec::new());
    while let Some(step) = recording.next_step()? {
        if wanted.until.is_some_and(|until| step.at > until) {
            break;
        }
        onlooker.play(step.at, &step.event);
        if !counts(step.at) {
            continue;
        }
        span = Some((span.map_or(step.at, |(from, _)| from), step.at));
        did.extend(step.effects.iter().filter_map(|effect| done(step.at, effect, &onlooker, wanted)));
    }
    let about = |would: &&WouldDo| counts(would.at) && is_about(wanted, would.machine.as_ref(), &would.label);
    let first = span.map_or(Time::default(), |(from, _)| from);
    let would: Vec<&WouldDo> = onlooker.would_do().iter().filter(about).collect();
    Ok(Rivalry {
        api_version: "reveille.dev/v1alpha1",
        kind: "PolicyReplay",
        recording: recording.path.display().to_string(),
        policy: policy.name(),
        from: span.map(|(from, _)| from),
        until: span.map(|(_, until)| until),
        needless: would.iter().filter(|would| is_needless(would)).count(),
        would: would.into_iter().map(|would| told(would, paper, first)).collect(),
        did,
    })
}

fn done(at: Time, effect: &Effect, onlooker: &Onlooker, wanted: &Wanted) -> Option<Did> {
    let Effect::Call { call, .. } = effect else { return None };
    let (id, machine) = onlooker.subject_of(call).unzip();
    let told = is_about(wanted, id.as_ref(), machine.as_deref().unwrap_or_default());
    let destructive = matches!(call, Call::DeleteInstance(_) | Call::Reboot(_) | Call::DeleteNode(_));
    told.then(|| Did { at, what: call.to_string(), machine, destructive })
}

/// Whether it concerns the machine of the command line; true where the command line names none.
fn is_about(wanted: &Wanted, id: Option<&InstanceId>, label: &str) -> bool {
    let named = |name: &String| name == label || id.is_some_and(|id| id.as_str() == name);
    wanted.machine.as_ref().is_none_or(named)
}

fn is_needless(would: &WouldDo) -> bool {
    let answered = would.stood == Stood::Ready || matches!(would.afterwards, Afterwards::Answered(_));
    would.kind.is_destructive() && would.machine.is_some() && answered
}

fn told(would: &WouldDo, paper: &Paper, first: Time) -> Would {
    let stood = match would.stood {
        Stood::Ready => "its node was Ready",
        Stood::NotReady => "its node was not Ready",
        Stood::NoNode => "it had no node",
        Stood::Errored => "its cloud had given it up",
        Stood::Unknown => "no machine of the recording",
    };
    let because = match would.afterwards {
        Afterwards::Answered(at) => {
            format!("{stood}; it answered at {} without that", clock(paper, at, first))
        }
        Afterwards::Gone(at) => format!("{stood}; it was gone at {}", clock(paper, at, first)),
        Afterwards::Same if would.stood == Stood::Ready || would.machine.is_none() => stood.to_owned(),
        Afterwards::Same => format!("{stood}, to the end of the recording"),
    };
    Would {
        at: would.at,
        what: would.kind.name(),
        machine: would.label.clone(),
        times: would.times,
        destructive: would.kind.is_destructive(),
        needless: is_needless(would),
        because,
    }
}

impl Rivalry {
    /// The model would have deleted or rebooted machines that needed neither.
    pub(crate) const fn is_harmful(&self) -> bool {
        self.needless > 0
    }

    /// The page for people.
    pub(crate) fn page(&self, paper: &Paper) -> String {
        let mut out =
            paper.tone(Tone::Strong, format!("{} · before a model of {}", self.recording, self.policy));
        out.push('\n');
        let (Some(from), Some(until)) = (self.from, self.until) else {
            return out + "  no step lies in that time\n";
        };
        let mut rows: Vec<(Time, Vec<Text>)> = Vec::new();
        for would in &self.would {
            let tone = if would.needless { Tone::Bad } else { Tone::Doubt };
            let times = if would.times > 1 { format!(", {} times", would.times) } else { String::new() };
            let text = format!("{}{times}: {}", would.what, would.because);
            rows.push((would.at, row(paper, would.at, from, (tone, "would"), &would.machine, text)));
        }
        for did in &self.did {
            rows.push((
                did.at,
                row(
                    paper,
                    did.at,
                    from,
                    (Tone::Good, "did"),
                    did.machine.as_deref().unwrap_or_default(),
                    did.what.clone(),
                ),
            ));
        }
        rows.sort_by_key(|(at, _)| *at);
        if !rows.is_empty() {
            out.push_str(&table::lines(paper, 1, rows.into_iter().map(|(_, row)| row).collect()));
        }
        let destructive = self.would.iter().filter(|would| would.destructive).count();
        let acts = self.did.iter().filter(|did| did.destructive).count();
        out.push_str(&format!(
            "\n{} to {}: {} would have deleted or rebooted {destructive} times, {} of them needlessly; Reveille did {acts} times, and {} other acts\n",
            clock(paper, from, from),
            clock(paper, until, from),
            self.policy,
            self.needless,
            self.did.len() - acts,
        ));
        out.push_str(
            "the recorded world goes on as it went: what would have followed, or been cured, it cannot say; neighbours are not in it\n",
        );
        out
    }
}

fn row(
    paper: &Paper,
    at: Time,
    first: Time,
    who: (Tone, &'static str),
    machine: &str,
    text: String,
) -> Vec<Text> {
    vec![
        Text::toned(Tone::Faint, clock(paper, at, first)),
        Text::toned(who.0, who.1),
        Text::plain(machine.to_owned()),
        Text::plain(text),
    ]
}
