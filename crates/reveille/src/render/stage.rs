//! The demo on stage: what happens in the made-up world, what Reveille finds, does and proves, and the roll as it stands.
//!
//! In a pipe every line is printed once, as it happens. On a terminal the same lines scroll by, and the roll stands under
//! them and is redrawn in place when it changes. At the end: what was wrong, what was done, what was held back.

use std::io::{IsTerminal as _, Write as _};

use indicatif::{ProgressBar, ProgressDrawTarget, ProgressStyle};
use reveille_core::engine::State;
use reveille_core::model::id::IncidentId;
use reveille_core::model::time::Time;
use reveille_core::record::Record;
use reveille_sim::story::Summary;
use reveille_wire::report::Answers;

use super::paper::{Paper, Tone, one_line};
use super::table::{self, Text};
use crate::view::machine::kind_words;
use crate::view::next::short;
use crate::view::roll;

/// The stage.
pub(crate) struct Stage {
    paper: Paper,
    start: Time,
    /// The roll under the lines; none in a pipe.
    board: Option<ProgressBar>,
    drawn: String,
    labels: std::collections::BTreeMap<IncidentId, std::sync::Arc<str>>,
    intents: std::collections::BTreeMap<reveille_core::model::id::IntentId, std::sync::Arc<str>>,
    gone: bool,
}

impl Stage {
    /// An empty stage.
    pub(crate) fn new(paper: &Paper, start: Time) -> Self {
        let board = std::io::stdout().is_terminal().then(|| {
            let bar = ProgressBar::with_draw_target(None, ProgressDrawTarget::stdout());
            if let Ok(style) = ProgressStyle::with_template("{msg}") {
                bar.set_style(style);
            }
            bar
        });
        Self {
            paper: paper.clone(),
            start,
            board,
            drawn: String::new(),
            labels: std::collections::BTreeMap::new(),
            intents: std::collections::BTreeMap::new(),
            gone: false,
        }
    }

    /// True when nobody reads any more.
    pub(crate) const fn is_gone(&self) -> bool {
        self.gone
    }

    /// What this is.
    pub(crate) fn prologue(&mut self, seed: u64) {
        self.line(&format!(
            "A made-up cluster, story {seed}. The world is not real; the engine, its ledger and its rules are."
        ));
        let legend =
            "world: what happens · found: what Reveille concludes · does: a step · proof: a fresh read";
        self.line(&self.paper.tone(Tone::Faint, legend));
        self.line("");
    }

    /// Something happened in the world.
    pub(crate) fn happened(&mut self, at: Time, sentence: &str) {
        self.say(at, "world", Tone::Faint, &one_line(sentence));
    }

    /// A record was made.
    pub(crate) fn record(&mut self, at: Time, record: &Record) {
        match record {
            Record::Opened { incident, key, label, .. } => {
                self.labels.insert(*incident, label.clone());
                self.say(at, "found", Tone::Bad, &format!("{label}: {}", kind_words(key.kind)));
            }
            Record::Diagnosed { incident, findings, .. } => {
                let Some(finding) = findings.first() else { return };
                let cause = &finding.cause;
                let line = format!(
                    "{}: {} ({}), {}",
                    self.label(*incident),
                    cause.label(),
                    cause.code(),
                    finding.confidence.name()
                );
                self.say(at, "found", Tone::Doubt, &line);
                for fact in finding.evidence.iter().take(2) {
                    let quote = format!("      {}: {}", fact.source, one_line(&fact.text));
                    self.line(&format!("{:15}{}", "", self.paper.tone(Tone::Faint, quote)));
                }
            }
            Record::Intended { intent, incident, call, .. } => {
                let label = self.label(*incident);
                self.intents.insert(*intent, label.clone());
                self.say(at, "does", Tone::Strong, &format!("{label}: {}", short(call)));
            }
            Record::Judged { intent, held, text, .. } => {
                let label = self.intents.get(intent).cloned().unwrap_or_else(|| intent.to_string().into());
                let (tone, verdict) = if *held { (Tone::Good, "") } else { (Tone::Bad, " (did not hold)") };
                self.say(at, "proof", tone, &format!("{label}: {text}{verdict}"));
            }
            Record::GivenUp { incident, why, .. } => {
                self.say(at, "asks", Tone::Doubt, &format!("{}: {why}", self.label(*incident)));
            }
            Record::Closed { incident, verdict, .. } => {
                self.say(at, "over", Tone::Good, &format!("{}: {}", self.label(*incident), verdict.name()));
            }
            _ => {}
        }
    }

    fn label(&self, incident: IncidentId) -> std::sync::Arc<str> {
        self.labels.get(&incident).cloned().unwrap_or_else(|| incident.to_string().into())
    }

    /// A moment is over: the roll as it stands now.
    pub(crate) fn moment(&mut self, at: Time, state: &State) {
        let report = roll::report(&state.desk());
        let signs: String = report
            .machines
            .iter()
            .map(|machine| {
                let (sign, tone) = super::roll::sign(machine);
                self.paper.tone(tone, sign)
            })
            .collect();
        let count = |answers| report.machines.iter().filter(|machine| machine.answers == answers).count();
        let words = format!(
            "{} answer, {} absent, {} cannot tell",
            count(Answers::Yes),
            count(Answers::No),
            report.machines.iter().filter(|machine| roll::cannot_tell(machine)).count()
        );
        let drawn = format!("{signs}  {words}");
        let changed = drawn != self.drawn;
        match &self.board {
            Some(board) => board.set_message(format!("\n{}  {drawn}", self.minutes(at))),
            None if changed => self.say(at, "roll", Tone::Faint, &drawn),
            None => {}
        }
        self.drawn = drawn;
    }

    /// The curtain.
    pub(crate) fn end(&mut self) {
        if let Some(board) = self.board.take() {
            board.finish_and_clear();
        }
    }

    fn minutes(&self, at: Time) -> String {
        let s = at.since(self.start).ms / 1000;
        format!("{:>2}:{:02}", s / 60, s % 60)
    }

    fn say(&mut self, at: Time, word: &str, tone: Tone, line: &str) {
        let clock = self.paper.tone(Tone::Faint, self.minutes(at));
        let word = self.paper.tone(tone, format!("{word:<6}"));
        self.line(&format!("{clock}  {word}  {line}"));
    }

    fn line(&mut self, line: &str) {
        if let Some(board) = &self.board {
            board.println(line);
            board.tick();
            return;
        }
        let mut out = std::io::stdout().lock();
        if writeln!(out, "{}", line.trim_end()).and_then(|()| out.flush()).is_err() {
            self.gone = true;
        }
    }
}

/// What it all amounted to.
pub(crate) fn epilogue(summary: &Summary, start: Time, paper: &Paper) -> String {
    let minutes = |at: Time| {
        let s = at.since(start).ms / 1000;
        format!("{:>2}:{:02}", s / 60, s % 60)
    };
    let mut out = String::from("\n");
    let mut part = |title: &str, rows: Vec<Vec<Text>>| {
        if !rows.is_empty() {
            out.push_str(&paper.tone(Tone::Strong, title));
            out.push('\n');
            out.push_str(&table::lines(paper, 1, rows));
            out.push('\n');
        }
    };
    let wrong = summary.wrong.iter().map(|wrong| {
        let ended = wrong.ended.map_or_else(
            || "open".to_owned(),
            |(at, verdict)| format!("{} at {}", verdict.name(), minutes(at).trim_start()),
        );
        vec![
            Text::toned(Tone::Faint, minutes(wrong.at)),
            Text::plain(one_line(&wrong.label)),
            Text::plain(kind_words(wrong.kind)),
            Text::plain(format!("{} ({})", wrong.cause.label(), wrong.cause.code())),
            Text::toned(if wrong.ended.is_some() { Tone::Good } else { Tone::Bad }, ended),
        ]
    });
    part("What was wrong", wrong.collect());
    let done = summary.done.iter().map(|done| {
        let proof = if done.held { ("proved", Tone::Good) } else { ("not proved", Tone::Bad) };
        vec![
            Text::toned(Tone::Faint, minutes(done.at)),
            Text::plain(one_line(&done.label)),
            Text::toned(proof.1, proof.0),
            Text::plain(one_line(&done.what)),
        ]
    });
    part("What was done", done.collect());
    let held = summary.held.iter().map(|held| {
        vec![
            Text::toned(Tone::Faint, minutes(held.at)),
            Text::plain(one_line(&held.label)),
            Text::plain(one_line(&held.why)),
        ]
    });
    part("What was held back", held.collect());
    out.push_str(&verdict(summary, paper));
    out
}

fn verdict(summary: &Summary, paper: &Paper) -> String {
    let mut out = String::new();
    for violation in &summary.violations {
        out.push_str(&paper.tone(Tone::Bad, format!("broken: {violation}\n")));
    }
    for harm in &summary.harms {
        out.push_str(&paper.tone(Tone::Bad, format!("harm: {harm:?}\n")));
    }
    let (answer, machines) = (summary.answer, summary.machines);
    let rules =
        if summary.violations.is_empty() { "no safety rule was broken" } else { "a safety rule was broken" };
    let all = if answer == machines {
        format!("All {machines} machines answer")
    } else {
        format!("{answer} of {machines} machines answer")
    };
    let tone = if summary.ended_well() { Tone::Good } else { Tone::Bad };
    out.push_str(&paper.tone(tone, format!("{all}; {rules}; {} of story time.", summary.lasted)));
    out.push_str("\nnext: reveille init looks at your own cluster, without changing anything\n");
    out
}
