//! The page of `why`: where the machine stopped, its stages, cause and evidence, what was done, what comes next, what is blocked.

use reveille_core::model::time::Time;
use reveille_wire::report::{
    Answers, AttemptReport, EvidenceReport, FindingReport, HeldReport, StageState, WhyReport,
};

use super::hot;
use super::output_style::{Paper, Tone, one_line};
use super::table::{self, Text};
use super::way;
use super::wrap::{self, LABEL, WIDE, labelled};
use crate::view::next;
use crate::view::status::{spoken, spoken_ago};

/// The line width for the stages where the output has no width of its own.
const STRIP_WIDTH: usize = 76;

/// The page.
pub(crate) fn page(report: &WhyReport, paper: &Paper) -> String {
    let mut out = head(report, paper);
    out.push('\n');
    out.push_str(&strip(report, paper));
    out.push('\n');
    if let Some(way) = report.way.as_ref().filter(|_| report.machine.answers != Answers::Yes) {
        out.push_str(&way::lines(way, report.at, paper));
    }
    if let Some(timeline) = &report.timeline {
        out.push_str(&way::timeline(timeline, report.at, paper));
    }
    for (index, finding) in report.findings.iter().enumerate() {
        out.push_str(&cause(if index == 0 { "Cause" } else { "And" }, finding, report, paper));
    }
    for asked in &report.asked {
        let seen = paper.clock(asked.seen.at, report.at);
        let said = format!("{seen} a person asks for a repair now: {}", one_line(&asked.value));
        out.push_str(&labelled("Asked", &said, paper));
    }
    for (index, attempt) in report.done.iter().enumerate() {
        out.push_str(&done(if index == 0 { "Done" } else { "" }, attempt, report.at, paper));
    }
    if report.done.len() > 1 {
        let requested = report.done.iter().filter(|attempt| attempt.requested).count();
        let verified = report.done.iter().filter(|attempt| attempt.verified).count();
        out.push_str(&labelled("", &format!("in all: requested {requested}, verified {verified}"), paper));
    }
    for (index, collected) in report.collected.iter().enumerate() {
        let told = collected.file.as_ref().map_or_else(
            || one_line(&collected.says),
            |file| format!("{} bytes, reveille diagnose {file}", collected.bytes.unwrap_or(0)),
        );
        let line =
            format!("{} {}: {told}", paper.clock(collected.at, report.at), one_line(&collected.outcome));
        out.push_str(&labelled(if index == 0 { "Sent" } else { "" }, &line, paper));
    }
    for verdict in &report.hot {
        out.push_str(&labelled("Hot", &hot::line(verdict), paper));
    }
    for unread in &report.hot_unread {
        out.push_str(&labelled("Hot", &format!("? {}", one_line(unread)), paper));
    }
    if let Some(next) = &report.next {
        let when = next.not_before.as_ref().map_or_else(String::new, |until| {
            format!("at {}, in {}: ", paper.clock(until.at, report.at), spoken(until.in_s))
        });
        out.push_str(&labelled("Next", &one_line(&next::line(next, &when)), paper));
    }
    let mut label = "Held";
    for held in &report.held {
        out.push_str(&labelled(label, &reasons(held), paper));
        label = "";
    }
    let mut label = "No use";
    for no_use in &report.no_use {
        out.push_str(&labelled(label, &reasons(no_use), paper));
        label = "";
    }
    out.push_str(&super::blind(&report.sources, paper));
    if let Some(rancher) = &report.rancher {
        out.push_str(&super::rancher::of_why(rancher, paper));
    }
    out
}

fn head(report: &WhyReport, paper: &Paper) -> String {
    let machine = &report.machine;
    let name = paper.tone(Tone::Strong, one_line(&machine.name));
    let ago =
        machine.since.as_ref().map_or_else(String::new, |since| format!(", {}", spoken_ago(since.ago_s)));
    let mut lines = match machine.answers {
        Answers::Yes if machine.state == "ready" => {
            let since = machine
                .since
                .as_ref()
                .map_or_else(String::new, |s| format!(", for at least {}", spoken(s.ago_s)));
            format!("{name} is Ready{since}.\n")
        }
        Answers::Yes => format!("{name}: {}{ago}.\n", one_line(&machine.what)),
        Answers::Excused if machine.state == "starting" => {
            let since =
                machine.since.as_ref().map_or_else(String::new, |s| format!(", for {}", spoken(s.ago_s)));
            format!("{name} is starting: {}{since}.\n", one_line(&machine.what))
        }
        Answers::Excused => {
            format!("{name} is not expected to be Ready: {}.\n", one_line(&machine.what))
        }
        Answers::Unknown => format!("{name}: state unknown. {}.\n", one_line(&machine.what)),
        Answers::No => {
            let stopped = machine.stage.as_deref().map_or_else(String::new, |stage| {
                let known = report.stages.iter().find(|s| s.name == stage);
                let number = known.map_or(0, |s| s.number);
                let guessed = report.findings.first().is_some_and(|finding| finding.confidence == "possible");
                let stands = known.is_some_and(|s| s.state == StageState::Stopped);
                let later = if guessed && !stands { " or later" } else { "" };
                format!(" Stopped at: {stage} ({number} of {}){later}{ago}.", report.stages.len())
            });
            format!("{name}: {}.{stopped}\n", one_line(&machine.what))
        }
    };
    let facts = [
        machine.instance.as_ref().map(|id| format!("instance {id}")),
        machine.node.as_ref().filter(|node| **node != machine.name).map(|node| format!("node {node}")),
        machine.pool.as_ref().map(|pool| format!("pool {pool}")),
        machine.zone.as_ref().map(|zone| format!("zone {zone}")),
    ];
    lines = wrap::hanging(paper, lines.trim_end(), 2) + "\n";
    let facts: Vec<String> = facts.into_iter().flatten().map(|fact| one_line(&fact)).collect();
    if !facts.is_empty() {
        lines.push_str(&wrap::hanging(paper, &paper.tone(Tone::Faint, facts.join(" · ")), 2));
        lines.push('\n');
    }
    lines
}

fn strip(report: &WhyReport, paper: &Paper) -> String {
    let limit = paper.width.map_or(STRIP_WIDTH, |width| usize::from(width).min(100));
    let (mut out, mut length) = (String::from(" "), 1);
    for stage in &report.stages {
        let (sign, tone) = way::sign(stage.state, stage.note.as_deref());
        let width = stage.name.chars().count() + 4;
        if length + width > limit {
            out.push_str("\n ");
            length = 1;
        }
        let sign = tone.map_or_else(|| sign.to_owned(), |tone| paper.tone(tone, sign));
        let name = match stage.state {
            StageState::Unknown => paper.tone(Tone::Faint, &stage.name),
            StageState::Passed | StageState::Stopped => stage.name.clone(),
        };
        out.push_str(&format!(" {name} {sign}  "));
        length += width;
    }
    let trimmed: Vec<&str> = out.lines().map(str::trim_end).collect();
    trimmed.join("\n") + "\n"
}

fn cause(label: &str, finding: &FindingReport, report: &WhyReport, paper: &Paper) -> String {
    let cause = paper.tone(Tone::Strong, &finding.cause);
    let mut out = labelled(label, &format!("{cause} ({}), {}", finding.code, finding.confidence), paper);
    out.push_str(&labelled("", &one_line(&finding.title), paper));
    out.push_str(&facts(&finding.evidence, report, paper));
    if finding.against.is_empty() {
        out.push_str(&labelled("", "contrary evidence: none", paper));
    } else {
        out.push_str(&labelled("", "contrary evidence:", paper));
        out.push_str(&facts(&finding.against, report, paper));
    }
    out.push_str(&labelled("", &format!("manual fix: {}", one_line(&finding.remedy)), paper));
    for command in &finding.commands {
        out.push_str(&format!("{:LABEL$}  $ {}\n", "", one_line(command)));
    }
    for follower in &finding.follows {
        let text =
            format!("consequence: {} ({}): {}", follower.cause, follower.code, one_line(&follower.title));
        out.push_str(&labelled("", &text, paper));
    }
    for wanted in &finding.collect {
        out.push_str(&labelled("", &format!("collect next: {}", one_line(wanted)), paper));
    }
    out
}

/// Where a fact was read: its line and its number of occurrences, where its source has lines.
fn place(fact: &EvidenceReport) -> String {
    let source = one_line(&fact.source);
    match (fact.line, fact.times) {
        (Some(line), Some(times)) if times > 1 => format!("{source}:{line} ×{times}"),
        (Some(line), _) => format!("{source}:{line}"),
        (None, _) => source,
    }
}

/// The quote comes last, so that only it wraps. On a narrow terminal each fact is a paragraph, so that ids are never broken.
fn facts(facts: &[EvidenceReport], report: &WhyReport, paper: &Paper) -> String {
    let read = |fact: &EvidenceReport| format!("read {}", paper.clock(fact.read.at, report.at));
    if paper.width.is_some_and(|width| width < WIDE) {
        let line = |fact: &EvidenceReport| {
            let read = paper.tone(Tone::Faint, read(fact));
            let line = format!("{:LABEL$}{}  {read}  {}", "", place(fact), one_line(&fact.text));
            wrap::hanging(paper, &line, LABEL + 2) + "\n"
        };
        return facts.iter().map(line).collect();
    }
    if facts.is_empty() {
        return String::new();
    }
    let row = |fact: &EvidenceReport| {
        vec![
            Text::plain(place(fact)),
            Text::toned(Tone::Faint, read(fact)),
            Text::plain(one_line(&fact.text)),
        ]
    };
    table::lines(paper, LABEL, facts.iter().map(row).collect())
}

fn done(label: &str, attempt: &AttemptReport, now: Time, paper: &Paper) -> String {
    let outcome = attempt.outcome.as_deref().map_or_else(|| "under way".to_owned(), one_line);
    let decided = paper.clock(attempt.decided.at, now);
    let what = one_line(&attempt.what);
    let mut out = labelled(label, &format!("{decided} {what} ({})  {outcome}", attempt.intent), paper);
    if let (Some(judged), Some(held)) = (&attempt.judged, attempt.held) {
        let seen = attempt.seen.as_deref().map_or_else(String::new, one_line);
        let verdict =
            if held { paper.tone(Tone::Good, "held") } else { paper.tone(Tone::Bad, "did not hold") };
        let line = format!("{} {seen}  {verdict}", paper.clock(judged.at, now));
        out.push_str(&labelled("", &line, paper));
    }
    out
}

fn reasons(held: &HeldReport) -> String {
    let why: Vec<String> = held.why.iter().map(|why| one_line(why)).collect();
    format!("{}: {}", one_line(&held.what), why.join(" · "))
}
