//! Converts a finished join into spans: one for the join, one for each stage. It is a function without a clock.
//!
//! Ids are computed from the machine's record and the moment at which its join began. Both are durable, so a restarted
//! controller sends the same join as the same trace. The times of a span are when the server heard of an event. Texts are
//! masked again, because here the words of a machine leave this process.

use aws_lc_rs::digest::{SHA256, digest};
use reveille_core::diagnose::console::mask_secrets;
use reveille_core::model::stage::Stage;
use reveille_core::model::time::Time;
use reveille_registrar::registry::flow::{Said, Silence, Stretch};
use reveille_registrar::registry::{JoinEnd, JoinOver, Who};

/// A span.
#[derive(Clone, Debug, PartialEq)]
pub(super) struct Span {
    pub(super) trace: [u8; 16],
    pub(super) id: [u8; 8],
    pub(super) parent: Option<[u8; 8]>,
    pub(super) name: &'static str,
    pub(super) start: Time,
    pub(super) end: Time,
    pub(super) attributes: Vec<(&'static str, Value)>,
    pub(super) events: Vec<Moment>,
    /// Success, or the error.
    pub(super) status: Result<(), String>,
}

/// An event within a span.
#[derive(Clone, Debug, PartialEq)]
pub(super) struct Moment {
    pub(super) at: Time,
    pub(super) name: &'static str,
    pub(super) attributes: Vec<(&'static str, Value)>,
}

/// The possible types of an attribute.
#[derive(Clone, Debug, PartialEq)]
pub(super) enum Value {
    Text(String),
    Number(i64),
    Is(bool),
}

impl From<&str> for Value {
    fn from(text: &str) -> Self {
        Self::Text(mask_secrets(text).into_owned())
    }
}

/// The spans of a join, the span of the whole join first.
pub(super) fn of(who: &Who, over: &JoinOver) -> Vec<Span> {
    let began = over.flow.began;
    let trace = trace_id(who.machine.as_str(), began);
    let root = span_id(trace, "join");
    // A clock that was set back must not make a span end before it begins.
    let ended = over.ended.max(began);
    let mut spans = vec![Span {
        trace,
        id: root,
        parent: None,
        name: "join",
        start: began,
        end: ended,
        attributes: of_machine(who, over),
        events: over.flow.silences.iter().map(|silence| silent(silence, ended)).collect(),
        status: match over.end {
            JoinEnd::Held => Ok(()),
            end => Err(end.name().to_owned()),
        },
    }];
    spans.extend(over.flow.stretches().map(|(stage, stretch)| {
        let start = stretch.entered.max(began).min(ended);
        let end = stretch.left.unwrap_or(ended).clamp(start, ended);
        let silences =
            over.flow.silences.iter().filter(|silence| silence.stage.is_some_and(|at| at.0 == stage));
        let said = [("agent", &stretch.agent_said), ("server", &stretch.server_said)];
        let said = said.into_iter().filter_map(|(side, said)| Some(error(side, said.as_ref()?)));
        Span {
            trace,
            id: span_id(trace, stage.name()),
            parent: Some(root),
            name: stage.name(),
            start,
            end,
            attributes: of_stage(stage, stretch, end),
            events: said.chain(silences.map(|silence| silent(silence, ended))).collect(),
            status: status(stretch),
        }
    }));
    spans
}

fn of_machine(who: &Who, over: &JoinOver) -> Vec<(&'static str, Value)> {
    let mut all = vec![
        ("reveille.machine", who.machine.as_str().into()),
        ("reveille.roster", who.roster.as_str().into()),
        ("reveille.pool", over.pool.as_str().into()),
        ("k8s.node.name", who.node_name.as_str().into()),
        ("reveille.join.end", over.end.name().into()),
        ("reveille.silences", Value::Number(over.flow.silences_count.into())),
    ];
    if let Some(instance) = &who.identity.instance_id {
        all.push(("reveille.provider_id", instance.as_str().into()));
    }
    if let Some(distribution) = over.distribution {
        all.push(("reveille.distribution", distribution.name().into()));
    }
    all
}

fn of_stage(stage: Stage, stretch: &Stretch, end: Time) -> Vec<(&'static str, Value)> {
    let deadline = stretch.deadline(stage);
    let number = i64::try_from(stage.number()).unwrap_or_default();
    let mut all = vec![
        ("reveille.stage.number", Value::Number(number)),
        ("reveille.stage.entries", Value::Number(stretch.entries.into())),
        ("reveille.stage.attempts", Value::Number(stretch.attempts.into())),
        ("reveille.stage.left", Value::Is(stretch.left.is_some())),
        ("reveille.stage.deadline", deadline.to_string().as_str().into()),
        ("reveille.stage.overdue", Value::Is(end > deadline)),
    ];
    for (key, said) in [
        ("reveille.stage.agent_error", &stretch.agent_said),
        ("reveille.stage.server_error", &stretch.server_said),
    ] {
        if let Some(said) = said {
            all.push((key, said.trouble.code.as_str().into()));
        }
    }
    all
}

/// A stage that was left succeeded in the end, whatever errors came before. The last stage of a successful join is never left.
fn status(stretch: &Stretch) -> Result<(), String> {
    match (&stretch.left, stretch.agent_said.as_ref().or(stretch.server_said.as_ref())) {
        (None, Some(said)) => Err(mask_secrets(&said.trouble.text).into_owned()),
        _ => Ok(()),
    }
}

fn error(side: &'static str, said: &Said) -> Moment {
    Moment {
        at: said.at,
        name: "error",
        attributes: vec![
            ("reveille.side", side.into()),
            ("reveille.code", said.trouble.code.as_str().into()),
            ("reveille.text", said.trouble.text.as_str().into()),
        ],
    }
}

fn silent(silence: &Silence, ended: Time) -> Moment {
    let until = silence.until.unwrap_or(ended);
    Moment {
        at: silence.since,
        name: "silent",
        attributes: vec![
            ("reveille.silent_ms", Value::Number(until.since(silence.since).ms)),
            ("reveille.heard_again", Value::Is(silence.until.is_some())),
        ],
    }
}

fn trace_id(machine: &str, began: Time) -> [u8; 16] {
    first(format!("reveille join\n{machine}\n{}", began.ms).as_bytes())
}

fn span_id(trace: [u8; 16], name: &str) -> [u8; 8] {
    first(&[&trace, name.as_bytes()].concat())
}

/// The beginning of a digest. A value of only zeros is no valid id, and is as unlikely as guessing a key.
fn first<const BYTES: usize>(text: &[u8]) -> [u8; BYTES] {
    let mut id = [0; BYTES];
    for (to, from) in id.iter_mut().zip(digest(&SHA256, text).as_ref()) {
        *to = *from;
    }
    id
}
