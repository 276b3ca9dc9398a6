//! A machine's way through the stages as lines: what is over in one, and one for each stage where it stands or failed.

use reveille_wire::report::{AgentReport, PassageReport, Side, WayReport};
use reveille_wire::stamp::Stamp;

use super::paper::{Paper, one_line};
use super::why::labelled;
use crate::view::roll::{spoken, spoken_ago};

/// The lines.
pub(super) fn lines(way: &WayReport, now: Stamp, paper: &Paper) -> String {
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

fn passage(row: &PassageReport, now: Stamp, paper: &Paper) -> String {
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
