//! Reads an object by the map of its kind.
//!
//! ```text
//!  object ─▶ identity (name, uid: without them nothing is read) ─▶ Fields ─▶ steps, failure, signs ─▶ MachineRecord
//!                                                                   └─▶ unread: fields of a wrong type
//! ```
//!
//! A field that is not there is none. A field of a wrong type loses that field alone, and is told in `unread`: an object of a
//! newer release is read as far as it is understood. Only an object that cannot be named, or is of another kind, is refused.

mod fields;

use std::borrow::Cow;
use std::sync::Arc;

use reveille_core::model::id::{NodeName, ZoneName};
use reveille_core::model::time::Span;
use serde_json::Value;

use crate::bounded::{MESSAGE_BYTES_MAX, NAME_BYTES_MAX, PROVIDER_ID_BYTES_MAX, REASON_BYTES_MAX};
use crate::bounded::{Sort, TIME_BYTES_MAX, identity, words};
use crate::duration::go_duration;
use crate::kind::{Deadline, FailureRule, Kind, Layout, StepRule, StepSource};
use crate::path::{Found, Path};
use crate::record::{Consumer, Failure, Hold, MachineRecord, Members, Step, StepState};
use crate::sign::{Look, Sign};
use fields::{Condition, Fields};

/// An object that is no record of the kind.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum Unreadable {
    /// The map of the kind does not have this version.
    #[error("{kind} in version {version}: this program reads {known}")]
    Version {
        /// The kind.
        kind: &'static str,
        /// The version that was asked for, shortened.
        version: String,
        /// The versions that are read.
        known: String,
    },
    /// It names another kind or version than the one that it is to be read as.
    #[error("{field} is {is:?}, where {expected:?} belongs")]
    Other {
        /// `kind` or `apiVersion`.
        field: &'static str,
        /// What it is, shortened.
        is: String,
        /// What was expected.
        expected: String,
    },
    /// A field without which it cannot be named is missing or wrong.
    #[error("{object}: {field} is {}, where {expected} belongs", is.says())]
    Field {
        /// The kind, and the name where it is known.
        object: String,
        /// The path of the field, or `the object`.
        field: &'static str,
        /// What it is.
        is: Sort,
        /// What was expected.
        expected: &'static str,
    },
}

/// Reads an object as a record of this kind.
///
/// # Errors
///
/// The version is not in the map, the object says that it is of another kind or version, or it has no name, no uid, or no
/// namespace where its kind has one.
pub fn read(kind: &'static Kind, version: &str, object: &Value) -> Result<MachineRecord, Unreadable> {
    let Some(found) = kind.version(version) else {
        let known: Vec<&str> = kind.versions.iter().map(|version| &*version.name).collect();
        let version = words(version, NAME_BYTES_MAX).to_string();
        return Err(Unreadable::Version { kind: &kind.name, version, known: known.join(", ") });
    };
    if !object.is_object() {
        let is = Sort::of(object);
        return Err(Unreadable::Field {
            object: kind.name.to_string(),
            field: "the object",
            is,
            expected: "a mapping",
        });
    }
    same(object, "kind", &kind.name)?;
    same(object, "apiVersion", &format!("{}/{}", kind.group, found.name))?;
    let name = needed(kind, object, "metadata.name", None)?;
    let uid = needed(kind, object, "metadata.uid", Some(&name))?;
    let namespace = match kind.is_namespaced {
        true => Some(needed(kind, object, "metadata.namespace", Some(&name))?),
        false => None,
    };
    let layout = &found.layout;
    let mut fields = Fields::of(object, layout);
    let steps: Vec<Step> = layout.steps.iter().map(|rule| step(&mut fields, rule)).collect();
    let leaving = layout.leaving.iter().any(|sign| counts(&mut fields, sign));
    let idle = !layout.idle.is_empty() && layout.idle.iter().all(|sign| counts(&mut fields, sign));
    let owner_deadline = match leaving || idle {
        true => None,
        false => deadline(&mut fields, &layout.deadlines, &steps),
    };
    Ok(MachineRecord {
        kind,
        namespace,
        name,
        uid,
        created: created(&mut fields),
        labels: fields.labels(),
        provider_id: fields.identity(&layout.provider_id, PROVIDER_ID_BYTES_MAX),
        node: fields.identity(&layout.node, NAME_BYTES_MAX).map(NodeName::new),
        pool: fields.identity(&layout.pool, NAME_BYTES_MAX),
        zone: fields.identity(&layout.zone, NAME_BYTES_MAX).map(ZoneName::new),
        members: members(&mut fields, layout),
        consumer: consumer(&mut fields, layout),
        failure: failure(&mut fields, &layout.failure, &steps),
        steps,
        leaving,
        idle,
        holds: holds(&mut fields, layout),
        owner_deadline,
        unread: fields.unread,
    })
}

/// Lists leave `kind` and `apiVersion` out of their items, and single objects have them.
fn same(object: &Value, field: &'static str, expected: &str) -> Result<(), Unreadable> {
    match object.get(field).and_then(Value::as_str) {
        Some(is) if is != expected => {
            let is = words(is, NAME_BYTES_MAX).to_string();
            Err(Unreadable::Other { field, is, expected: expected.to_owned() })
        }
        _ => Ok(()),
    }
}

fn needed(
    kind: &Kind,
    object: &Value,
    field: &'static str,
    name: Option<&str>,
) -> Result<Arc<str>, Unreadable> {
    let key = field.rsplit('.').next().unwrap_or(field);
    let value = object.get("metadata").and_then(|metadata| metadata.get(key)).unwrap_or(&Value::Null);
    identity(value, NAME_BYTES_MAX).map(Arc::from).map_err(|is| {
        let object = name.map_or_else(|| kind.name.to_string(), |name| format!("{} {name}", kind.name));
        Unreadable::Field { object, field, is, expected: "a text that names it" }
    })
}

fn created(fields: &mut Fields<'_>) -> Option<Arc<str>> {
    match fields.object.get("metadata")?.get("creationTimestamp")? {
        Value::Null => None,
        Value::String(text) => Some(words(text, TIME_BYTES_MAX)),
        other => {
            fields.tell("metadata.creationTimestamp", Sort::of(other), "a time");
            None
        }
    }
}

fn step(fields: &mut Fields<'_>, rule: &'static StepRule) -> Step {
    let (value, reason, message, since) = match &rule.source {
        StepSource::Condition { types } => {
            let condition = types.iter().find_map(|name| fields.condition(name));
            let (reason, message, since) = condition.map_or((None, None, None), texts);
            (condition.map(|condition| words(condition.status, REASON_BYTES_MAX)), reason, message, since)
        }
        StepSource::Field(path) => {
            let value = fields.scalar(path).map(|value| words(&value, NAME_BYTES_MAX));
            let (reason, message, since) = field_words(fields, rule);
            (value, reason, message, since)
        }
    };
    let is_condition = matches!(rule.source, StepSource::Condition { .. });
    let state = if rule.reached.count(value.as_deref()) {
        StepState::Reached
    } else if rule.failed.iter().any(|sign| counts(fields, sign)) {
        StepState::Failed
    } else if is_condition && value.as_deref() == Some("Unknown") {
        StepState::Unknown
    } else {
        StepState::NotYet
    };
    Step { name: &rule.name, is_condition, stage: rule.stage, state, value, reason, message, since }
}

type Words = (Option<Arc<str>>, Option<Arc<str>>, Option<Arc<str>>);

/// Reason, message and time of a condition; empty ones are none.
fn texts(condition: &Condition<'_>) -> Words {
    let text = |text: Option<&str>, bytes_max| {
        text.map(|text| words(text, bytes_max)).filter(|text| !text.is_empty())
    };
    (
        text(condition.reason, REASON_BYTES_MAX),
        text(condition.message, MESSAGE_BYTES_MAX),
        text(condition.since, TIME_BYTES_MAX),
    )
}

fn field_words(fields: &mut Fields<'_>, rule: &StepRule) -> Words {
    let source = rule.words.condition.as_deref().and_then(|name| fields.condition(name));
    let (reason, message, since) = source.map_or((None, None, None), texts);
    let mut at =
        |path: &Option<Path>, bytes_max| path.as_ref().and_then(|path| fields.words(path, bytes_max));
    (
        at(&rule.words.reason, REASON_BYTES_MAX).or(reason),
        at(&rule.words.message, MESSAGE_BYTES_MAX).or(message),
        at(&rule.words.since, TIME_BYTES_MAX).or(since),
    )
}

/// The failure that is reported: by fields, by a condition of its own, or by a step.
fn failure(fields: &mut Fields<'_>, rule: &FailureRule, steps: &[Step]) -> Option<Failure> {
    if rule.when.is_empty() || rule.when.iter().any(|sign| counts(fields, sign)) {
        let reason = rule.reason.iter().find_map(|path| fields.words(path, REASON_BYTES_MAX));
        let message = rule.message.iter().find_map(|path| fields.words(path, MESSAGE_BYTES_MAX));
        if reason.is_some() || message.is_some() {
            return Some(Failure { reason, message });
        }
    }
    for sign in &rule.conditions {
        if let Look::Condition(name) = &sign.look
            && counts(fields, sign)
            && let Some(condition) = fields.condition(name)
        {
            let (reason, message, _) = texts(condition);
            return Some(Failure { reason: reason.or_else(|| Some(Arc::from(&**name))), message });
        }
    }
    let step = steps.iter().find(|step| step.state == StepState::Failed)?;
    let reason = step.reason.clone().or_else(|| Some(step.name.into()));
    Some(Failure { reason, message: step.message.clone() })
}

fn counts(fields: &mut Fields<'_>, sign: &Sign) -> bool {
    seen(fields, sign).is_some()
}

/// The signal where it counts, as `condition Paused=True`. An absent one has no value.
fn seen(fields: &mut Fields<'_>, sign: &Sign) -> Option<String> {
    let (noun, name, value): (_, Cow<'_, str>, Option<Cow<'_, str>>) = match &sign.look {
        Look::Annotation(key) => ("annotation", Cow::from(&**key), fields.annotation(key)),
        Look::AnnotationPrefix(prefix) => match fields.annotation_below(prefix) {
            Some((key, value)) => ("annotation", Cow::from(key), Some(value)),
            None => ("annotation", Cow::from(&**prefix), None),
        },
        Look::Label(key) => ("label", Cow::from(&**key), fields.label(key)),
        Look::Condition(name) => {
            let condition = fields.condition(name);
            let reason = condition.and_then(|condition| condition.reason);
            let value = condition.map(|condition| condition.status);
            if !sign.counts(value, reason) {
                return None;
            }
            ("condition", Cow::from(&**name), value.map(Cow::from))
        }
        Look::Field(path) => ("field", Cow::from(path.as_str()), fields.scalar(path)),
    };
    if !sign.counts(value.as_deref(), None) && !matches!(sign.look, Look::Condition(_)) {
        return None;
    }
    Some(match value {
        Some(value) => format!("{noun} {name}={value}"),
        None => format!("{noun} {name}"),
    })
}

fn holds(fields: &mut Fields<'_>, layout: &'static Layout) -> Vec<Hold> {
    let hold = |rule: &'static crate::kind::HoldRule| {
        let by = words(&seen(fields, &rule.sign)?, PROVIDER_ID_BYTES_MAX);
        Some(Hold { by, words: &rule.words })
    };
    layout.holds.iter().filter_map(hold).collect()
}

/// The owner's time at the step where the machine stands.
fn deadline(fields: &mut Fields<'_>, deadlines: &[Deadline], steps: &[Step]) -> Option<Span> {
    let is_reached =
        |name: &str| steps.iter().any(|step| step.name == name && step.state == StepState::Reached);
    for deadline in deadlines.iter().filter(|deadline| !is_reached(&deadline.until)) {
        if !deadline.when.is_empty() && !deadline.when.iter().any(|sign| counts(fields, sign)) {
            continue;
        }
        let fixed = Span::from_s(i64::from(deadline.fixed_s));
        let Some(path) = &deadline.field else { return Some(fixed) };
        let Found::Value(value) = path.find(fields.object) else { return Some(fixed) };
        let written = value.as_str().and_then(go_duration);
        if written.is_none() {
            fields.tell(path.as_str(), Sort::of(value), "a duration as 20m0s");
        }
        return Some(written.unwrap_or(fixed));
    }
    None
}

fn members(fields: &mut Fields<'_>, layout: &Layout) -> Members {
    let provider_ids = layout.provider_ids.as_ref().map(|path| fields.identities(path, None));
    let nodes = layout.nodes.as_ref().map(|path| fields.identities(path, Some("name")));
    Members {
        provider_ids: provider_ids.unwrap_or_default(),
        nodes: nodes.unwrap_or_default().into_iter().map(NodeName::new).collect(),
    }
}

fn consumer(fields: &mut Fields<'_>, layout: &Layout) -> Option<Consumer> {
    let paths = layout.consumer.as_ref()?;
    let kind = fields.identity(std::slice::from_ref(&paths.kind), NAME_BYTES_MAX)?;
    let name = fields.identity(std::slice::from_ref(&paths.name), NAME_BYTES_MAX)?;
    Some(Consumer { kind, name })
}
