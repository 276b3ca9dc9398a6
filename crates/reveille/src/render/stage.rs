//! The output of the demo: what happens in the simulated cluster, which problems the engine finds, which operations it requests,
//! what a fresh read shows, and the state of all machines.
//!
//! In a pipe each line is printed once, as it happens. On a terminal the same lines scroll by, and the machines stand in one line
//! under them, which is redrawn when it changes. At the end: what was wrong, what was done, what was blocked.

use std::collections::{BTreeMap, BTreeSet};
use std::io::{IsTerminal as _, Write as _};
use std::sync::Arc;

use indicatif::{ProgressBar, ProgressDrawTarget, ProgressStyle};
use reveille_core::engine::State;
use reveille_core::model::cause::Cause;
use reveille_core::model::id::{IncidentId, IntentId};
use reveille_core::model::incident::{Confidence, FaultKind, Finding};
use reveille_core::model::time::Time;
use reveille_core::record::Record;
use reveille_sim::story::Summary;
use reveille_wire::report::{Answers, PlanReport, SourceReport};

use super::output_style::{Paper, Tone, one_line};
use super::table::{self, Text};
use super::wrap;
use crate::view::machine::{kind_words, verdict_words};
use crate::view::{plan, status};

/// The width in front of a line's text.
const INDENT: usize = 16;
/// On a terminal with fewer columns, the summary uses paragraphs instead of columns.
const WIDE: u16 = 140;
/// The longest quote; `why` and the ledger have the whole text.
const QUOTE_CHARS: usize = 110;

/// What the demo has printed about an incident.
struct Known {
    label: Arc<str>,
    kind: FaultKind,
    opened: Time,
    cause: Option<(Cause, Confidence)>,
}

/// The output of the demo.
pub(crate) struct Stage {
    paper: Paper,
    start: Time,
    /// The status under the lines; `None` in a pipe.
    board: Option<ProgressBar>,
    drawn: String,
    known: BTreeMap<IncidentId, Known>,
    intents: BTreeMap<IntentId, Arc<str>>,
    doubted: BTreeMap<String, String>,
    held: BTreeSet<(String, String)>,
    gone: bool,
}

impl Stage {
    /// An empty output.
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
            known: BTreeMap::new(),
            intents: BTreeMap::new(),
            doubted: BTreeMap::new(),
            held: BTreeSet::new(),
            gone: false,
        }
    }

    /// True when the reader has closed the pipe.
    pub(crate) const fn is_gone(&self) -> bool {
        self.gone
    }

    /// Prints the introduction.
    pub(crate) fn prologue(&mut self, seed: u64) {
        self.line(&format!(
            "A simulated cluster, seed {seed}. Engine, ledger and safety rules are those of `reveille run`."
        ));
        let legend = "event: in the cluster · found: problem and cause · repair: operation requested · result: what a fresh read shows";
        self.line(&self.paper.tone(Tone::Faint, legend));
        self.line("");
    }

    /// Prints an event of the simulated world.
    pub(crate) fn happened(&mut self, at: Time, sentence: &str) {
        self.say(at, "event", Tone::Faint, &one_line(sentence));
    }

    /// Prints a record.
    pub(crate) fn record(&mut self, at: Time, record: &Record) {
        match record {
            Record::Opened { incident, key, label, .. } => {
                let known = Known { label: label.clone(), kind: key.kind, opened: at, cause: None };
                self.known.insert(*incident, known);
                self.say(at, "found", Tone::Bad, &format!("{label}: {}", kind_words(key.kind)));
            }
            Record::Diagnosed { incident, findings, .. } => {
                if let Some(finding) = findings.first() {
                    self.concluded(at, *incident, finding);
                }
            }
            Record::Intended { intent, incident, call, .. } => {
                let label = self.label(*incident);
                self.intents.insert(*intent, label.clone());
                self.say(at, "repair", Tone::Strong, &format!("{label}: {}", call.in_a_line()));
            }
            Record::Judged { intent, held, text, .. } => {
                let label = self.intents.get(intent).cloned().unwrap_or_else(|| intent.to_string().into());
                let (tone, verdict) = if *held { (Tone::Good, "") } else { (Tone::Bad, " (not confirmed)") };
                self.say(at, "result", tone, &format!("{label}: {text}{verdict}"));
            }
            Record::GivenUp { incident, why, .. } => {
                self.say(at, "manual", Tone::Doubt, &format!("{}: {why}", self.label(*incident)));
            }
            Record::Closed { incident, verdict, .. } => {
                // A machine may have several incidents at once, so the line names the kind.
                let kind = self.known.get(incident).map_or("", |known| known.kind.name());
                let text = format!("{}: {kind} {}", self.label(*incident), verdict_words(*verdict));
                self.say(at, "closed", Tone::Good, &text);
            }
            _ => {}
        }
    }

    /// Prints a cause: under the line that opened the incident, or on a line of its own when it is a new one.
    fn concluded(&mut self, at: Time, incident: IncidentId, finding: &Finding) {
        let Some(known) = self.known.get_mut(&incident) else { return };
        let conclusion = (finding.cause.clone(), finding.confidence);
        if known.cause.replace(conclusion.clone()) == Some(conclusion) {
            return;
        }
        let (first, label) = (known.opened == at, known.label.clone());
        let cause =
            format!("{} {}, {}", finding.cause.code(), finding.cause.label(), finding.confidence.name());
        if first {
            self.line(&format!("{:INDENT$}{cause}", ""));
        } else {
            self.say(at, "found", Tone::Bad, &format!("{label}: {cause}"));
        }
        for fact in finding.evidence.iter().take(2) {
            let quote = cut(&format!("{}: {}", fact.source, one_line(&fact.fact.to_string())));
            self.line(&format!("{:INDENT$}{}", "", self.paper.tone(Tone::Faint, quote)));
        }
    }

    fn label(&self, incident: IncidentId) -> Arc<str> {
        self.known.get(&incident).map_or_else(|| incident.to_string().into(), |known| known.label.clone())
    }

    /// Ends a moment: prints doubts and blocked repairs, and redraws the status.
    pub(crate) fn moment(&mut self, at: Time, state: &State) {
        let report = status::report(&state.context());
        if report.machines.is_empty() {
            return;
        }
        self.doubts(at, &report.sources);
        self.holds(at, &plan::report(&state.context()));
        let signs: String = report
            .machines
            .iter()
            .map(|machine| {
                let (sign, tone) = super::status::sign(machine);
                self.paper.tone(tone, sign)
            })
            .collect();
        let count = |answers| report.machines.iter().filter(|machine| machine.answers == answers).count();
        let words = format!(
            "{} Ready, {} not Ready or missing, {} unknown",
            count(Answers::Yes),
            count(Answers::No),
            count(Answers::Unknown)
        );
        let drawn = format!("{signs}  {words}");
        let changed = drawn != self.drawn;
        match &self.board {
            Some(board) => {
                let line = wrap::hanging(&self.paper, &format!("{}  {drawn}", self.minutes(at)), 7);
                board.set_message(format!("\n{line}"));
            }
            None if changed => self.say(at, "status", Tone::Faint, &drawn),
            None => {}
        }
        self.drawn = drawn;
    }

    fn doubts(&mut self, at: Time, sources: &[SourceReport]) {
        for source in sources {
            let why = source.why_not.clone().filter(|_| !source.trusted);
            if self.doubted.get(&source.name) == why.as_ref() {
                continue;
            }
            match &why {
                Some(why) => self.say(
                    at,
                    "source",
                    Tone::Doubt,
                    &format!("no reliable data from {}: {why}", source.name),
                ),
                None => self.say(
                    at,
                    "source",
                    Tone::Good,
                    &format!("{} is reliable again; its timers restart", source.name),
                ),
            }
            match why {
                Some(why) => self.doubted.insert(source.name.clone(), why),
                None => self.doubted.remove(&source.name),
            };
        }
    }

    /// Prints each blocked repair once for each incident.
    fn holds(&mut self, at: Time, plan: &PlanReport) {
        for held in &plan.held {
            let Some(next) = held.held.last() else { continue };
            if self.held.insert((held.incident.clone(), next.what.clone())) {
                let why = next.why.first().map_or("", String::as_str);
                self.say(at, "blocked", Tone::Doubt, &format!("{}: {}: {why}", held.subject, next.what));
            }
        }
    }

    /// Ends the output.
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
        let word = self.paper.tone(tone, format!("{word:<7}"));
        self.line(&format!("{clock}  {word}  {line}"));
    }

    fn line(&mut self, line: &str) {
        let line = wrap::hanging(&self.paper, line, INDENT);
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

fn cut(quote: &str) -> String {
    let mut chars = quote.chars();
    let head: String = chars.by_ref().take(QUOTE_CHARS).collect();
    if chars.next().is_some() { head + "…" } else { head }
}

/// The summary at the end.
pub(crate) fn epilogue(summary: &Summary, start: Time, paper: &Paper) -> String {
    let minutes = |at: Time| {
        let s = at.since(start).ms / 1000;
        format!("{:>2}:{:02}", s / 60, s % 60)
    };
    let mut out = String::from("\n");
    let narrow = paper.width.is_some_and(|width| width < WIDE);
    let mut part = |title: &str, rows: Vec<Vec<Text>>| {
        if !rows.is_empty() {
            out.push_str(&paper.tone(Tone::Strong, title));
            out.push('\n');
            out.push_str(&if narrow { paragraphs(paper, &rows) } else { table::lines(paper, 1, rows) });
            out.push('\n');
        }
    };
    let wrong = summary.wrong.iter().map(|wrong| {
        let ended = wrong.ended.map_or_else(
            || "open".to_owned(),
            |(at, verdict)| format!("{} at {}", verdict_words(verdict), minutes(at).trim_start()),
        );
        let cause = format!("{} ({})", wrong.cause.label(), wrong.cause.code());
        let tone = if wrong.ended.is_some() { Tone::Good } else { Tone::Bad };
        let (at, label) = (Text::toned(Tone::Faint, minutes(wrong.at)), Text::plain(one_line(&wrong.label)));
        let kind = kind_words(wrong.kind);
        if narrow {
            return vec![at, label, Text::toned(tone, format!("{kind}: {cause}; {ended}"))];
        }
        vec![at, label, Text::plain(kind), Text::plain(cause), Text::toned(tone, ended)]
    });
    part("What was wrong", wrong.collect());
    let mut in_order: Vec<_> = summary.done.iter().collect();
    in_order.sort_by_key(|done| done.at);
    let done = in_order.into_iter().map(|done| {
        let proof = if done.held { ("confirmed", Tone::Good) } else { ("not confirmed", Tone::Bad) };
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
    part("What was blocked", held.collect());
    out.push_str(&verdict(summary, paper));
    out
}

/// Rows without columns: ids are never broken, and long texts go on below.
fn paragraphs(paper: &Paper, rows: &[Vec<Text>]) -> String {
    let cell = |Text(text, tone): &Text| tone.map_or_else(|| text.clone(), |tone| paper.tone(tone, text));
    let row = |row: &Vec<Text>| {
        let cells: Vec<String> = row.iter().map(cell).collect();
        wrap::hanging(paper, &format!(" {}", cells.join("  ")), 8) + "\n"
    };
    rows.iter().map(row).collect()
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
        format!("All {machines} machines are Ready")
    } else {
        format!("{answer} of {machines} machines are Ready")
    };
    let tone = if summary.ended_well() { Tone::Good } else { Tone::Bad };
    out.push_str(&paper.tone(tone, format!("{all}; {rules}; {} of simulated time.", summary.lasted)));
    out.push_str("\nnext: reveille init reads your own cluster and changes nothing\n");
    out
}
