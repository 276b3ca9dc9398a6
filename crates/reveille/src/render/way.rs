//! The timeline of a machine as lines: one for all stages that are over, and one for each stage that is open or failed.

use reveille_core::model::time::Time;
use reveille_wire::report::{
    AgentReport, PassageReport, Side, SilenceReport, StageState, TimelineReport, WayReport,
};

use super::output_style::{Paper, Tone, one_line};
use super::table::{self, Text};
use super::wrap::{self, LABEL, WIDE, labelled};
use crate::view::status::{spoken, spoken_ago};

/// The lines.
pub(super) fn lines(way: &WayReport, now: Time, paper: &Paper) -> String {
    let mut out = String::new();
    let mut label = "Way";
    let mut say = |text: &str| {
        out.push_str(&labelled(label, text, paper));
        label = "";
    };
    let smooth = |row: &&PassageReport| row.left.is_some() && row.error.is_none() && row.attempts <= 1;
    let told: Vec<&PassageReport> =
        way.passages.iter().filter(smooth).filter(|row| row.by == Side::Agent).collect();
    if let (Some(first), Some(last)) = (told.first(), told.last().and_then(|row| row.left)) {
        let (from, to) = (paper.clock(first.entered.at, now), paper.clock(last.at, now));
        let names: Vec<&str> = told.iter().map(|row| row.stage.as_str()).collect();
        say(&format!("{from} to {to} passed by its agent's word: {}", names.join(", ")));
    }
    for row in way.passages.iter().filter(|row| !smooth(row)) {
        say(&passage(row, now, paper));
    }
    if let Some(agent) = &way.agent {
        say(&of_agent(agent));
    }
    out
}

fn passage(row: &PassageReport, now: Time, paper: &Paper) -> String {
    let side = match row.by {
        Side::Outside => "seen at",
        Side::Agent => "its agent is at",
    };
    let times = if row.attempts > 1 { format!(", {} times", row.attempts) } else { String::new() };
    let left = row.left.map_or_else(String::new, |left| format!(", until {}", paper.clock(left.at, now)));
    let deadline = row.deadline.map_or_else(String::new, |due| {
        format!(", waited for until {} (in {})", paper.clock(due.at, now), spoken(due.in_s))
    });
    let error = row.error.as_ref();
    let error =
        error.map_or_else(String::new, |it| format!(": {}: {}", one_line(&it.code), one_line(&it.text)));
    format!(
        "{} {side} {}{times}{left}{deadline}{error}",
        paper.clock(row.entered.at, now),
        one_line(&row.stage)
    )
}

fn of_agent(agent: &AgentReport) -> String {
    let heard = spoken_ago(agent.heard.ago_s);
    let mut says = if agent.silent {
        format!("its agent is silent: last heard {heard}")
    } else {
        format!("its agent was heard {heard}")
    };
    if let Some(work) = agent.at_work.as_ref().filter(|_| !agent.silent) {
        says.push_str(&format!("; it is at it: {}", one_line(work)));
    }
    if let Some(holds) = &agent.holds {
        says.push_str(&format!("; it leaves its join alone: {}", one_line(holds)));
    }
    says
}

/// The stages one by one: a line for each side that reported it, and a dash where neither side did.
pub(super) fn timeline(of: &TimelineReport, now: Time, paper: &Paper) -> String {
    let mut rows = Vec::new();
    for row in &of.rows {
        let sides = [("seen", &row.outside), ("agent", &row.agent)];
        let told: Vec<_> = sides.into_iter().filter_map(|(by, side)| Some((by, side.as_ref()?))).collect();
        let name = format!("{:>2} {} {}", row.number, one_line(&row.stage), sign(row.state, None).0);
        if told.is_empty() {
            rows.push(vec![Text::plain(name.clone()), Text::toned(Tone::Faint, "–".to_owned())]);
        }
        for (index, (by, side)) in told.into_iter().enumerate() {
            let name = if index == 0 { name.clone() } else { String::new() };
            rows.push(of_side(&name, by, side, now, paper));
        }
        let here = of.silence.as_ref().filter(|silence| silence.stage.as_deref() == Some(row.stage.as_str()));
        rows.extend(here.map(|silence| silent(silence, now, paper)));
    }
    let nowhere = of.silence.as_ref().filter(|silence| silence.stage.is_none());
    rows.extend(nowhere.map(|silence| silent(silence, now, paper)));
    let head = labelled("Stages", "by our clock, of when it was seen or heard", paper);
    if paper.width.is_none_or(|width| width >= WIDE) {
        return head + &table::lines(paper, LABEL, rows);
    }
    let line = |row: &Vec<Text>| {
        let told = row.iter().filter(|Text(text, _)| !text.is_empty());
        let cell = |Text(text, tone): &Text| tone.map_or_else(|| text.clone(), |tone| paper.tone(tone, text));
        let cells: Vec<String> = told.map(cell).collect();
        let indent = if row.first().is_some_and(|Text(name, _)| name.is_empty()) { LABEL + 3 } else { LABEL };
        wrap::hanging(paper, &format!("{:indent$}{}", "", cells.join("  ")), LABEL + 3) + "\n"
    };
    head + &rows.iter().map(line).collect::<String>()
}

fn of_side(name: &str, by: &str, side: &PassageReport, now: Time, paper: &Paper) -> Vec<Text> {
    let left =
        side.left.map_or_else(|| "not left".to_owned(), |left| format!("left {}", paper.clock(left.at, now)));
    let deadline = side.deadline.as_ref().map(|due| {
        let (at, late) = (paper.clock(due.at, now), due.at <= now);
        if late { format!("due {at}, overdue") } else { format!("due {at}") }
    });
    let tries = match side.attempts {
        0 | 1 => String::new(),
        more => format!("{more} times"),
    };
    let error = side.error.as_ref();
    let error =
        error.map_or_else(String::new, |it| format!("{}: {}", one_line(&it.code), one_line(&it.text)));
    vec![
        Text::plain(name.to_owned()),
        Text::toned(Tone::Faint, by.to_owned()),
        Text::plain(format!("entered {}", paper.clock(side.entered.at, now))),
        Text::plain(left),
        Text::plain(deadline.unwrap_or_default()),
        Text::plain(tries),
        Text::plain(error),
    ]
}

fn silent(silence: &SilenceReport, now: Time, paper: &Paper) -> Vec<Text> {
    let since = format!("since {}", paper.clock(silence.since.at, now));
    let says = format!("nothing is heard of its agent, {} by now", spoken(silence.since.ago_s));
    vec![
        Text::toned(Tone::Doubt, "   silent".to_owned()),
        Text::toned(Tone::Faint, "agent".to_owned()),
        Text::plain(since),
        Text::plain(String::new()),
        Text::plain(String::new()),
        Text::plain(String::new()),
        Text::plain(says),
    ]
}

/// The sign of a stage.
pub(super) const fn sign(state: StageState, note: Option<&str>) -> (&'static str, Option<Tone>) {
    match (state, note) {
        (StageState::Passed, None) => ("✓", Some(Tone::Good)),
        (StageState::Passed, Some(_)) => ("!", Some(Tone::Doubt)),
        (StageState::Stopped, _) => ("✗", Some(Tone::Bad)),
        (StageState::Unknown, _) => ("…", None),
    }
}
