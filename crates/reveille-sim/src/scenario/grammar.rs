//! From text to a checked scenario, line by line.
//!
//! It knows headers, sections and order; what a statement may say is each section's own table.

use reveille_core::model::time::Span;

use super::given;
use super::phrase::Known;
use super::refusal::Refusal;
use super::stage::Stage;
use super::then::Expectation;
use super::when::{Planned, Statement};
use super::{Scenario, roster, then, when, words};

/// Longer files are no scenarios.
const LINES_MAX: usize = 400;
/// So many things may happen in one.
const EVENTS_MAX: usize = 5_000;

#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
enum Section {
    Header,
    Given,
    When,
    Then,
}

struct Reading {
    section: Section,
    number: String,
    title: String,
    source: String,
    not_yet: Option<String>,
    differs: Option<String>,
    given: Vec<String>,
    stage: Stage,
    /// Pools and zones, once the fleet is described.
    known: Known,
    events: Vec<Planned>,
    expectations: Vec<Expectation>,
    ends: Option<Span>,
}

/// Reads a scenario.
///
/// # Errors
///
/// The first line that cannot be read, with the reason and what to write instead.
pub fn parse(text: &str) -> Result<Scenario, Refusal> {
    let mut reading = Reading {
        section: Section::Header,
        number: String::new(),
        title: String::new(),
        source: String::new(),
        not_yet: None,
        differs: None,
        given: Vec::new(),
        stage: given::blank(),
        known: Known::default(),
        events: Vec::new(),
        expectations: Vec::new(),
        ends: None,
    };
    let mut last = 1;
    for (index, raw) in text.lines().enumerate() {
        last = index + 1;
        if last > LINES_MAX {
            return Err(Refusal::new(
                last,
                "",
                format!("a scenario has at most {LINES_MAX} lines; make two of it"),
            ));
        }
        let stated = without_comment(raw).trim_end();
        if !stated.trim().is_empty() {
            reading.line(last, stated).map_err(|why| Refusal::new(last, raw, why))?;
        }
    }
    reading.finish(last)
}

/// A comment begins with `#`, outside of quotes.
fn without_comment(line: &str) -> &str {
    let mut in_quotes = false;
    for (at, c) in line.char_indices() {
        match c {
            '"' => in_quotes = !in_quotes,
            '#' if !in_quotes => return &line[..at],
            _ => {}
        }
    }
    line
}

/// One blank between two words, except in quotes.
fn single_spaced(text: &str) -> String {
    let mut out = String::with_capacity(text.len());
    let (mut in_quotes, mut blank) = (false, false);
    for c in text.trim().chars() {
        if c == '"' {
            in_quotes = !in_quotes;
        }
        let space = c.is_whitespace() && !in_quotes;
        if !(space && blank) {
            out.push(if space { ' ' } else { c });
        }
        blank = space;
    }
    out
}

impl Reading {
    fn line(&mut self, number: usize, raw: &str) -> Result<(), String> {
        let indented = raw.starts_with([' ', '\t']);
        let text = single_spaced(raw);
        if !indented {
            return self.head(&text);
        }
        match self.section {
            Section::Header => {
                Err("a statement stands below given, when or then; the line before it names none".to_owned())
            }
            Section::Given => {
                given::take(&mut self.stage, &text)?;
                self.given.push(raw.trim().to_owned());
                Ok(())
            }
            Section::When => {
                match when::take(number, &text, &self.known)? {
                    Statement::Ends(end) if self.ends.is_none() => self.ends = Some(end),
                    Statement::Ends(_) => return Err("it ends twice; write `ends at` once".to_owned()),
                    Statement::Planned(planned) => self.events.extend(planned),
                }
                if self.events.len() > EVENTS_MAX {
                    return Err(format!("more than {EVENTS_MAX} things happen; make it smaller"));
                }
                Ok(())
            }
            Section::Then => {
                self.expectations.push(then::take(number, &text, &self.known)?);
                Ok(())
            }
        }
    }

    fn head(&mut self, text: &str) -> Result<(), String> {
        let section = match text {
            "given" => Some(Section::Given),
            "when" => Some(Section::When),
            "then" => Some(Section::Then),
            _ => None,
        };
        if let Some(section) = section {
            if self.number.is_empty() {
                return Err("a file begins with `scenario NUMBER TITLE`".to_owned());
            }
            if section <= self.section {
                return Err("the order is given, when, then, each once".to_owned());
            }
            if self.section <= Section::Given && section > Section::Given {
                self.known = self.stage.known.clone();
            }
            self.section = section;
            return Ok(());
        }
        if self.section != Section::Header {
            return Err(
                "statements are indented; at the beginning of a line stand given, when and then".to_owned()
            );
        }
        let rest = |word: &str| {
            text.strip_prefix(word).map(str::trim).filter(|rest| !rest.is_empty()).map(str::to_owned)
        };
        if let Some(rest) = rest("scenario ") {
            let (number, title) = rest.split_once(' ').ok_or("write `scenario NUMBER TITLE`")?;
            if !self.number.is_empty() {
                return Err("one file holds one scenario".to_owned());
            }
            if !number.chars().all(|c| c.is_ascii_alphanumeric()) {
                return Err(format!("`{number}` is no number; write letters and digits, for instance A1"));
            }
            (self.number, self.title) = (number.to_owned(), title.trim().to_owned());
        } else if let Some(rest) = rest("source ") {
            self.source = rest;
        } else if let Some(rest) = rest("not yet ") {
            self.not_yet = Some(rest);
        } else if let Some(rest) = rest("differs ") {
            self.differs = Some(rest);
        } else {
            return Err("this is no header; there are: scenario NUMBER TITLE, source TEXT, not yet REASON, \
                        differs REASON, given, when, then"
                .to_owned());
        }
        Ok(())
    }

    fn finish(self, last: usize) -> Result<Scenario, Refusal> {
        let missing = |why: &str| Refusal::new(last, "", why);
        if self.number.is_empty() {
            return Err(missing("a file begins with `scenario NUMBER TITLE`"));
        }
        if self.not_yet.is_none() {
            if self.stage.layout.pools.is_empty() {
                return Err(missing("nothing is given; write `pool NAME of N machines` below `given`"));
            }
            if self.expectations.is_empty() {
                return Err(missing(
                    "nothing is expected, so it could not fail; write what must hold below `then`",
                ));
            }
        }
        let named = self.events.iter().map(|event| event.at);
        let windows = self.expectations.iter().filter_map(|expected| expected.window.last());
        let begun = self.expectations.iter().map(|expected| expected.window.first());
        let latest = named.chain(windows).chain(begun).max().unwrap_or(Span::ZERO);
        let ends = self.ends.unwrap_or(latest);
        let (layout, file) =
            roster::of_scenario(self.stage.layout, &self.stage.changes).map_err(|why| missing(&why))?;
        if self.not_yet.is_none() && ends == Span::ZERO && file.refused.is_none() {
            return Err(missing("it would end at once; write `ends at 30m` below `when`"));
        }
        let after = |at: Span| at > ends;
        let late = |line: usize, text: &str| {
            let end = words::shown(ends);
            Refusal::new(
                line,
                text,
                format!("the scenario ends at {end}, before this; write a later `ends at`"),
            )
        };
        if let Some(event) = self.events.iter().find(|event| after(event.at)) {
            return Err(late(event.line, &event.text));
        }
        let outlasts = |expected: &&Expectation| {
            expected.window.last().is_some_and(after) || after(expected.window.first())
        };
        if let Some(expected) = self.expectations.iter().find(outlasts) {
            return Err(late(expected.line, &expected.text));
        }
        Ok(Scenario {
            number: self.number,
            title: self.title,
            source: self.source,
            not_yet: self.not_yet,
            differs: self.differs,
            given: self.given,
            layout,
            file,
            acting: self.stage.acting,
            events: self.events,
            expectations: self.expectations,
            ends,
        })
    }
}
