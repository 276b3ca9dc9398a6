//! The result of a replay, for people and for programs.

use jiff::Timestamp;
use reveille_core::model::time::Time;
use reveille_record::recording::RecordingEnding;
use serde::Serialize;

use super::compare::{Difference, Played};
use crate::render::output_style::{Paper, Tone};
use crate::render::table::{self, Text};

/// `apiVersion` of the document.
const API_VERSION: &str = "reveille.dev/v1alpha1";

/// One recording, played.
#[derive(Clone, Debug, Serialize)]
#[serde(rename_all = "camelCase")]
pub(crate) struct Document {
    api_version: &'static str,
    kind: &'static str,
    recording: String,
    of: String,
    roster: String,
    program: String,
    same_engine: bool,
    #[serde(skip_serializing_if = "Option::is_none")]
    from: Option<Time>,
    #[serde(skip_serializing_if = "Option::is_none")]
    until: Option<Time>,
    steps: u64,
    decisions: u64,
    same: bool,
    differing_steps: u64,
    digest_then: String,
    digest_now: String,
    #[serde(skip_serializing_if = "Vec::is_empty")]
    roster_changes: Vec<String>,
    #[serde(skip_serializing_if = "Option::is_none")]
    parted_at: Option<Time>,
    differences: Vec<DifferenceReport>,
    story: Vec<Line>,
    torn_bytes: usize,
    #[serde(skip_serializing_if = "Option::is_none")]
    notice: Option<String>,
}

#[derive(Clone, Debug, Serialize)]
struct DifferenceReport {
    step: u64,
    at: Time,
    then: Vec<String>,
    now: Vec<String>,
    #[serde(skip_serializing_if = "Vec::is_empty")]
    why: Vec<String>,
}

#[derive(Clone, Debug, Serialize)]
struct Line {
    at: Time,
    what: &'static str,
    about: String,
    text: String,
}

/// The recording that was played, and its state.
pub(crate) struct Subject<'a> {
    /// The path.
    pub(crate) path: String,
    /// The header of the recording.
    pub(crate) header: &'a reveille_wire::recording::Header,
    /// How the recording ends.
    pub(crate) ending: &'a RecordingEnding,
    /// Whether the command line names another roster.
    pub(crate) other_roster: bool,
}

/// The document for programs.
pub(crate) fn document(subject: &Subject<'_>, played: &Played) -> Document {
    let header = subject.header;
    let difference = |one: &Difference| DifferenceReport {
        step: one.step,
        at: one.at,
        then: one.then.clone(),
        now: one.now.clone(),
        why: one.why.clone(),
    };
    Document {
        api_version: API_VERSION,
        kind: "ReplayReport",
        recording: subject.path.clone(),
        of: header.of.clone(),
        roster: header.roster.name.to_string(),
        program: header.program.clone(),
        same_engine: played.same_engine,
        from: played.span.map(|(from, _)| from),
        until: played.span.map(|(_, until)| until),
        steps: played.steps,
        decisions: played.decisions,
        same: played.differing == 0,
        differing_steps: played.differing,
        digest_then: format!("{:016x}", played.digests.0),
        digest_now: format!("{:016x}", played.digests.1),
        roster_changes: played.roster_changes.clone(),
        parted_at: played.parted_at,
        differences: played.differences.iter().map(difference).collect(),
        story: played
            .story
            .iter()
            .map(|told| Line {
                at: told.at,
                what: told.word,
                about: told.label.to_string(),
                text: told.text.clone(),
            })
            .collect(),
        torn_bytes: subject.ending.torn_bytes,
        notice: subject.ending.notice.clone(),
    }
}

/// The page for people.
pub(crate) fn page(subject: &Subject<'_>, played: &Played, paper: &Paper) -> String {
    let header = subject.header;
    let mut out = paper
        .tone(Tone::Strong, format!("{} · {} of roster {}", subject.path, header.of, header.roster.name));
    out.push('\n');
    let Some((from, until)) = played.span else {
        return out + "  no step lies in that time\n" + &notes(subject, played);
    };
    let clock = |at: Time| clock(paper, at, from);
    let rows = played.story.iter().map(|told| {
        let label = told.label.to_string();
        vec![
            Text::toned(Tone::Faint, clock(told.at)),
            Text::toned(told.tone, told.word),
            Text::plain(label),
            Text::plain(told.text.clone()),
        ]
    });
    let rows: Vec<Vec<Text>> = rows.collect();
    if !rows.is_empty() {
        out.push_str(&table::lines(paper, 1, rows));
    }
    out.push('\n');
    for difference in &played.differences {
        out.push_str(&differs(difference, paper, &clock(difference.at)));
    }
    out.push_str(&verdict(subject, played, paper, &clock(from), &clock(until)));
    out
}

fn differs(difference: &Difference, paper: &Paper, at: &str) -> String {
    let mut out = paper.tone(Tone::Doubt, format!("step {}, {at} differs", difference.step));
    out.push('\n');
    for (word, lines) in [("then", &difference.then), ("now", &difference.now), ("why", &difference.why)] {
        for line in lines {
            out.push_str(&format!("  {word:<5} {line}\n"));
        }
    }
    out
}

fn verdict(subject: &Subject<'_>, played: &Played, paper: &Paper, from: &str, until: &str) -> String {
    let mut out = String::new();
    for change in &played.roster_changes {
        out.push_str(&format!("roster {change}\n"));
    }
    if subject.other_roster && played.roster_changes.is_empty() {
        out.push_str("the two rosters decide alike: no field of them differs\n");
    }
    if let Some(at) = played.parted_at {
        let at = clock(paper, at, played.span.map_or(at, |(from, _)| from));
        out.push_str(&format!(
            "from {at} on the recorded world is not what would have been: it goes on from the acts made then, not from those made now\n"
        ));
    }
    let counted = format!("{} steps, {} decisions from {from} to {until}", played.steps, played.decisions);
    let (then, now) = played.digests;
    if played.differing == 0 {
        out.push_str(&paper.tone(Tone::Good, format!("{counted}: all the same, digest {now:016x}\n")));
    } else {
        let first = played.differences.first().map_or(0, |first| first.step);
        out.push_str(&paper.tone(
            Tone::Bad,
            format!("{counted}: {} steps differ, the first is step {first}; digest {then:016x} then, {now:016x} now\n", played.differing),
        ));
    }
    out + &notes(subject, played)
}

fn notes(subject: &Subject<'_>, played: &Played) -> String {
    let mut out = String::new();
    let program = &subject.header.program;
    match (played.same_engine, played.differing, subject.other_roster) {
        (true, 1.., false) => {
            out.push_str("the engine is the one that recorded it, so this is a fault: please report it with the recording\n");
        }
        (false, _, _) => {
            out.push_str(&format!("it was recorded by version {program}, whose engine is another one\n"))
        }
        _ => {}
    }
    if subject.other_roster && played.engine_differs > 0 {
        out.push_str(&format!(
            "under the recorded roster this engine differs from the recorded one in {} steps; play it without --with-roster to see where\n",
            played.engine_differs
        ));
    }
    if subject.ending.torn_bytes > 0 {
        out.push_str(&format!(
            "its last {} bytes are cut short: the process was killed while it wrote; everything before was read\n",
            subject.ending.torn_bytes
        ));
    }
    if let Some(notice) = &subject.ending.notice {
        out.push_str(&format!("its notice says: {notice}\n"));
    }
    out
}

/// The time of day, with the date where it is another day than the first one of the recording.
pub(crate) fn clock(paper: &Paper, at: Time, first: Time) -> String {
    let zoned = |time: Time| Timestamp::from_millisecond(time.ms).map(|at| at.to_zoned(paper.zone.clone()));
    match (zoned(at), zoned(first)) {
        (Ok(at), Ok(first)) if at.date() == first.date() => at.strftime("%H:%M:%S").to_string(),
        (Ok(at), _) => at.strftime("%Y-%m-%d %H:%M:%S").to_string(),
        (Err(_), _) => format!("{} ms", at.ms),
    }
}
