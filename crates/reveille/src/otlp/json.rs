//! Spans in OTLP's JSON encoding: protobuf's JSON mapping, except that ids are hex digits.
//!
//! This encoding writes 64-bit numbers as strings and enumerations as numbers. A collector would silently skip an unknown
//! field. So the sample was once read with the protobuf definitions, with unknown fields refused.

use reveille_core::model::time::Time;
use serde_json::{Value as Json, json};

use super::spans::{Moment, Span, Value};

/// `SPAN_KIND_INTERNAL`.
const INTERNAL: u8 = 1;
/// `STATUS_CODE_OK`, `STATUS_CODE_ERROR`.
const OK: u8 = 1;
const ERROR: u8 = 2;

/// An `ExportTraceServiceRequest` of these spans.
pub(super) fn request(spans: &[Span], version: &str) -> Json {
    json!({
        "resourceSpans": [{
            "resource": {"attributes": attributes(&[
                ("service.name", Value::Text("reveille".to_owned())),
                ("service.version", Value::Text(version.to_owned())),
            ])},
            "scopeSpans": [{
                "scope": {"name": "reveille.join", "version": version},
                "spans": spans.iter().map(span).collect::<Vec<_>>(),
            }],
        }],
    })
}

fn span(of: &Span) -> Json {
    let status = match &of.status {
        Ok(()) => json!({"code": OK}),
        Err(why) => json!({"code": ERROR, "message": why}),
    };
    let mut span = json!({
        "traceId": hex(&of.trace),
        "spanId": hex(&of.id),
        "name": of.name,
        "kind": INTERNAL,
        "startTimeUnixNano": nanos(of.start),
        "endTimeUnixNano": nanos(of.end),
        "attributes": attributes(&of.attributes),
        "events": of.events.iter().map(event).collect::<Vec<_>>(),
        "status": status,
    });
    if let (Some(parent), Some(fields)) = (of.parent, span.as_object_mut()) {
        fields.insert("parentSpanId".to_owned(), hex(&parent).into());
    }
    span
}

fn event(of: &Moment) -> Json {
    json!({"timeUnixNano": nanos(of.at), "name": of.name, "attributes": attributes(&of.attributes)})
}

fn attributes(all: &[(&str, Value)]) -> Json {
    let one = |(key, value): &(&str, Value)| {
        let value = match value {
            Value::Text(text) => json!({"stringValue": text}),
            Value::Number(number) => json!({"intValue": number.to_string()}),
            Value::Is(is) => json!({"boolValue": is}),
        };
        json!({"key": key, "value": value})
    };
    all.iter().map(one).collect()
}

fn nanos(at: Time) -> String {
    (i128::from(at.ms.max(0)) * 1_000_000).to_string()
}

fn hex(bytes: &[u8]) -> String {
    bytes.iter().map(|byte| format!("{byte:02x}")).collect()
}

#[cfg(test)]
mod tests {
    use std::path::Path;

    use super::super::sample::a_join;
    use super::super::spans;
    use super::*;

    #[test]
    fn join_is_written_as_the_kept_otlp_sample() {
        let (who, over) = a_join();
        let written = format!("{:#}\n", request(&spans::of(&who, &over), "0.0.0"));
        let path = Path::new(env!("CARGO_MANIFEST_DIR")).join("src/otlp/sample.json");
        if std::env::var_os("REVEILLE_BLESS").is_some() {
            std::fs::write(&path, &written).unwrap();
        }
        assert_eq!(std::fs::read_to_string(path).unwrap(), written);
    }
}
