//! `then`: a window of time and a claim.

use reveille_core::model::time::Span;

use super::agents;
use super::claim::Claim;
use super::counted::{Bound, Kind};
use super::phrase::{Known, Phrase, Slots, read};
use super::words;

/// When a claim must hold.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Window {
    /// At some moment up to then. A count: over all moments up to then.
    By(Span),
    /// At this moment.
    At(Span),
    /// When the scenario ends.
    AtEnd,
    /// At some moment between. A count: over all moments between.
    Within(Span, Span),
    /// At no moment between; without an end: until the scenario ends.
    Never(Span, Option<Span>),
    /// At every moment between.
    Always(Span, Option<Span>),
}

/// One statement of `then`.
#[derive(Clone, Debug)]
pub(crate) struct Expectation {
    pub(crate) line: usize,
    pub(crate) text: String,
    pub(crate) window: Window,
    pub(crate) claim: Claim,
}

impl Window {
    /// Its last moment, when it has one of its own.
    pub(crate) const fn last(&self) -> Option<Span> {
        match self {
            Self::By(at) | Self::At(at) | Self::Within(_, at) => Some(*at),
            Self::Never(_, to) | Self::Always(_, to) => *to,
            Self::AtEnd => None,
        }
    }

    /// Its first moment.
    pub(crate) const fn first(&self) -> Span {
        match self {
            Self::Within(from, _) | Self::Never(from, _) | Self::Always(from, _) => *from,
            Self::By(_) | Self::At(_) | Self::AtEnd => Span::ZERO,
        }
    }
}

/// Reads a statement.
pub(crate) fn take(line: usize, text: &str, known: &Known) -> Result<Expectation, String> {
    // A roster is read before anything happens: what is claimed of it has no time.
    let (window, rest) = if text.starts_with("the roster ") { (Window::AtEnd, text) } else { window(text)? };
    let claim = read(&[agents::THEN, PHRASES], rest, known)?;
    if matches!((&claim, window), (Claim::Replayed, w) if w != Window::AtEnd) {
        return Err("a second play is compared at the end; write `at the end` before it".to_owned());
    }
    Ok(Expectation { line, text: text.to_owned(), window, claim })
}

fn window(text: &str) -> Result<(Window, &str), String> {
    let shape = "a statement of `then` begins with its time: `by 20m`, `at 20m`, `at the end`, `never`, `always`, \
                 `until 20m never`, `from 5m to 20m`, `from 5m to 20m never`, `from 5m always`";
    let wrong = || shape.to_owned();
    if let Some(rest) = text.strip_prefix("at the end ") {
        return Ok((Window::AtEnd, rest));
    }
    let (word, rest) = text.split_once(' ').ok_or_else(wrong)?;
    let timed = |rest: &'_ str| -> Result<(Span, usize), String> {
        let (time, _) = rest.split_once(' ').ok_or_else(wrong)?;
        Ok((words::span(time)?, time.len() + 1))
    };
    match word {
        "never" => Ok((Window::Never(Span::ZERO, None), rest)),
        "always" => Ok((Window::Always(Span::ZERO, None), rest)),
        "by" | "at" => {
            let (at, taken) = timed(rest)?;
            Ok((if word == "by" { Window::By(at) } else { Window::At(at) }, &rest[taken..]))
        }
        "until" => {
            let (at, taken) = timed(rest)?;
            let (word, rest) = rest[taken..].split_once(' ').ok_or_else(wrong)?;
            match word {
                "never" => Ok((Window::Never(Span::ZERO, Some(at)), rest)),
                "always" => Ok((Window::Always(Span::ZERO, Some(at)), rest)),
                _ => Err(format!("`until` is followed by never or always; {shape}")),
            }
        }
        "from" => {
            let (from, taken) = timed(rest)?;
            let mut rest = &rest[taken..];
            let mut to = None;
            if let Some(tail) = rest.strip_prefix("to ") {
                let (at, taken) = timed(tail)?;
                if at <= from {
                    return Err("the window ends before it begins; the earlier time comes first".to_owned());
                }
                (to, rest) = (Some(at), &tail[taken..]);
            }
            match (rest.split_once(' '), to) {
                (Some(("never", rest)), to) => Ok((Window::Never(from, to), rest)),
                (Some(("always", rest)), to) => Ok((Window::Always(from, to), rest)),
                (_, Some(to)) => Ok((Window::Within(from, to), rest)),
                (_, None) => Err(format!("`from` without `to` is followed by never or always; {shape}")),
            }
        }
        _ => Err(wrong()),
    }
}

pub(crate) fn forms() -> Vec<&'static str> {
    [PHRASES, agents::THEN].into_iter().flatten().map(|phrase| phrase.form).collect()
}

fn counted(slots: &Slots<'_>, bound: fn(u32) -> Bound) -> Result<Claim, String> {
    let count = if slots.text("count").is_empty() { 0 } else { slots.count()? };
    Ok(Claim::Count(bound(count), Kind::read(slots.text("kind"))?))
}

// tidy: long because it is one table: the whole of what can be claimed in a scenario.
#[rustfmt::skip]
const PHRASES: &[Phrase<Claim>] = &[
    // The roster's file.
    Phrase { form: "the roster is accepted", make: |_| Ok(Claim::Mistakes(0)) },
    Phrase { form: "the roster has exactly {count} [mistakes|mistake]", make: |s| Ok(Claim::Mistakes(s.count()?)) },
    Phrase { form: "the roster is refused at {word}: {text}", make: |s| Ok(Claim::Refused(s.text("word").to_owned(), s.quoted()?)) },
    // The world's truth.
    Phrase { form: "{machines} [answers|answer]", make: |s| Ok(Claim::Answers(s.machines()?)) },
    Phrase { form: "{machines} [exists|exist]", make: |s| Ok(Claim::Exists(s.machines()?)) },
    Phrase { form: "{machines} [is|are] gone", make: |s| Ok(Claim::Gone(s.machines()?)) },
    Phrase { form: "{machines} [has its|have their] security group", make: |s| Ok(Claim::Grouped(s.machines()?)) },
    Phrase { form: "{machines} [is|are] cordoned", make: |s| Ok(Claim::Cordoned(s.machines()?)) },
    Phrase { form: "pool {pool} has {count} machines", make: |s| Ok(Claim::Size(s.pool()?, s.count()?)) },
    Phrase { form: "all is well", make: |_| Ok(Claim::AllWell) },
    // Calls that reached the world.
    Phrase { form: "Reveille reboots {machines}", make: |s| Ok(Claim::Called("reboot", s.machines()?)) },
    Phrase { form: "Reveille deletes the node of {machines}", make: |s| Ok(Claim::Called("node deletion", s.machines()?)) },
    Phrase { form: "Reveille deletes {machines}", make: |s| Ok(Claim::Called("deletion", s.machines()?)) },
    Phrase { form: "Reveille asks the agent of {machines}", make: |s| Ok(Claim::Called("ask of an agent", s.machines()?)) },
    Phrase { form: "Reveille starts {machines}", make: |s| Ok(Claim::Called("start", s.machines()?)) },
    Phrase { form: "Reveille puts the security group back on {machines}", make: |s| Ok(Claim::Called("group change", s.machines()?)) },
    // Reveille's word.
    Phrase { form: "{machines} [is|are] absent as {fault}", make: |s| Ok(Claim::Absent(s.machines()?, words::kind(s.text("fault"))?)) },
    Phrase { form: "{machines} [counts|count] as present", make: |s| Ok(Claim::Present(s.machines()?)) },
    Phrase { form: "{machines} [is|are] excused: {text}", make: |s| Ok(Claim::Excused(s.machines()?, s.quoted()?)) },
    Phrase { form: "the state of {machines} is unknown: {text}", make: |s| Ok(Claim::CannotTell(s.machines()?, s.quoted()?)) },
    Phrase { form: "the state of {machines} is unknown", make: |s| Ok(Claim::CannotTell(s.machines()?, String::new())) },
    Phrase { form: "no incident is open", make: |_| Ok(Claim::NothingOpen) },
    Phrase { form: "[a|an|the] {fault} incident is open", make: |s| Ok(Claim::Open(words::kind(s.text("fault"))?, None)) },
    Phrase { form: "[a|an|the] {fault} incident of {machines} is open", make: |s| Ok(Claim::Open(words::kind(s.text("fault"))?, Some(s.machines()?))) },
    Phrase { form: "[a|an|the] {fault} incident is closed as {verdict}", make: |s| {
        Ok(Claim::Closed(words::kind(s.text("fault"))?, None, words::verdict(s.text("verdict"))?))
    } },
    Phrase { form: "[a|an|the] {fault} incident of {machines} is closed as {verdict}", make: |s| {
        Ok(Claim::Closed(words::kind(s.text("fault"))?, Some(s.machines()?), words::verdict(s.text("verdict"))?))
    } },
    Phrase { form: "the cause of {machines} is {cause}", make: |s| Ok(Claim::Cause(s.machines()?, words::cause(s.text("cause"))?)) },
    Phrase { form: "{machines} stopped at stage {stage}", make: |s| Ok(Claim::Stage(s.machines()?, words::stage(s.text("stage"))?)) },
    Phrase { form: "the evidence about {machines} says {text}", make: |s| Ok(Claim::Evidence(s.machines()?, s.quoted()?)) },
    Phrase { form: "{machines} [is|are] held back: {text}", make: |s| Ok(Claim::Held(s.machines()?, s.quoted()?)) },
    Phrase { form: "what comes next for {machines} is: {text}", make: |s| Ok(Claim::Next(s.machines()?, s.quoted()?)) },
    Phrase { form: "a person is asked about {machines}: {text}", make: |s| Ok(Claim::Asked(s.machines()?, s.quoted()?)) },
    Phrase { form: "a person is asked about {machines}", make: |s| Ok(Claim::Asked(s.machines()?, String::new())) },
    Phrase { form: "Reveille has given up on {machines}", make: |s| Ok(Claim::GivenUp(s.machines()?)) },
    Phrase { form: "the cloud is not believed: {text}", make: |s| Ok(Claim::Disbelieved(true, s.quoted()?)) },
    Phrase { form: "the cloud is not believed", make: |_| Ok(Claim::Disbelieved(true, String::new())) },
    Phrase { form: "the cluster is not believed: {text}", make: |s| Ok(Claim::Disbelieved(false, s.quoted()?)) },
    Phrase { form: "the cluster is not believed", make: |_| Ok(Claim::Disbelieved(false, String::new())) },
    Phrase { form: "pool {pool} is paused: {text}", make: |s| Ok(Claim::Paused(s.pool()?, s.quoted()?)) },
    Phrase { form: "an intent is dropped: {text}", make: |s| Ok(Claim::Dropped(s.quoted()?)) },
    Phrase { form: "a second play is the same, byte for byte", make: |_| Ok(Claim::Replayed) },
    // Counts.
    Phrase { form: "no {kind}", make: |s| counted(s, |_| Bound::Exactly(0)) },
    Phrase { form: "exactly {count} {kind}", make: |s| counted(s, Bound::Exactly) },
    Phrase { form: "at most {count} {kind}", make: |s| counted(s, Bound::AtMost) },
    Phrase { form: "at least {count} {kind}", make: |s| counted(s, Bound::AtLeast) },
    Phrase { form: "[a|an] {kind}", make: |s| counted(s, |_| Bound::AtLeast(1)) },
];
