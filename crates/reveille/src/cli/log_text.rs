//! Writes log lines so that text from other systems cannot end a line or reorder it.
//!
//! ```text
//!  text:  field ─▶ one_line ─▶ formatter's line          json:  formatter's line ─▶ hidden characters as \uXXXX
//! ```
//!
//! An annotation, a node's name or an error of a cloud may hold a newline with a forged line behind it. It may also hold
//! an escape sequence for the terminal, or a character that reverses the writing direction. Every field of every event
//! passes through this module, so the code that logs does not have to handle them: neither that, nor secrets that such text
//! quotes. Not here: which events are logged.

use std::borrow::Cow;
use std::fmt::{self, Write as _};
use std::io::{self, Write};

use reveille_core::diagnose::console::{MASK, mask_secrets};
use reveille_core::model::hidden::is_hidden;
use serde_json::Value;
use tracing::field::Field;
use tracing_subscriber::field::MakeExt as _;
use tracing_subscriber::fmt::FormatFields;
use tracing_subscriber::fmt::MakeWriter;
use tracing_subscriber::fmt::format::{Writer, debug_fn};

/// The text on one line, with hidden characters written out.
pub(crate) fn one_line(text: &str) -> String {
    let mut line = String::with_capacity(text.len());
    for c in text.chars() {
        if is_hidden(c) {
            line.extend(c.escape_default());
        } else {
            line.push(c);
        }
    }
    line
}

/// Fields of a line for people: the message, then `name=value`.
pub(super) fn fields() -> impl for<'writer> FormatFields<'writer> + 'static {
    debug_fn(|writer: &mut Writer<'_>, field: &Field, value: &dyn fmt::Debug| {
        // What a service answers may quote a header of ours, and an adapter logs it before the engine's entry masks it.
        let text = without_secrets(one_line(&format!("{value:?}")));
        match field.name() {
            "message" => write!(writer, "{text}"),
            name if writer.has_ansi_escapes() => {
                write!(writer, "\u{1b}[3m{name}\u{1b}[0m\u{1b}[2m=\u{1b}[0m{text}")
            }
            name => write!(writer, "{name}={text}"),
        }
    })
    .delimited(" ")
}

/// Masking drops what a terminal obeys as well: text without a secret stays as it is.
fn without_secrets(text: String) -> String {
    match mask_secrets(&text) {
        Cow::Owned(masked) if masked.contains(MASK) => masked,
        _ => text,
    }
}

/// A JSON line without secrets: each string by itself, so that it stays JSON.
fn masked_json(line: &str) -> Cow<'_, str> {
    fn mask(value: &mut Value) {
        match value {
            Value::String(text) => *text = without_secrets(std::mem::take(text)),
            Value::Array(items) => items.iter_mut().for_each(mask),
            Value::Object(fields) => fields.values_mut().for_each(mask),
            _ => {}
        }
    }
    let masked = mask_secrets(line);
    if !masked.contains(MASK) {
        return Cow::Borrowed(line);
    }
    let Ok(mut value) = serde_json::from_str::<Value>(line) else { return masked };
    mask(&mut value);
    Cow::Owned(format!("{value}\n"))
}

/// A writer of JSON lines: it escapes characters that JSON allows and a terminal would obey.
#[derive(Clone, Debug)]
pub(super) struct JsonLines<M>(pub(super) M);

/// One line that is being written.
pub(super) struct JsonLine<W>(W);

impl<'writer, M: MakeWriter<'writer>> MakeWriter<'writer> for JsonLines<M> {
    type Writer = JsonLine<M::Writer>;

    fn make_writer(&'writer self) -> Self::Writer {
        JsonLine(self.0.make_writer())
    }
}

impl<W: Write> Write for JsonLine<W> {
    /// The formatter passes whole lines.
    fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
        let text = String::from_utf8_lossy(bytes);
        let text = masked_json(&text);
        let mut line = String::with_capacity(text.len());
        for c in text.chars() {
            if is_hidden(c) && c != '\n' {
                // All hidden characters are below U+10000, so each needs one escape.
                let _ = write!(line, "\\u{:04x}", u32::from(c));
            } else {
                line.push(c);
            }
        }
        self.0.write_all(line.as_bytes())?;
        Ok(bytes.len())
    }

    fn flush(&mut self) -> io::Result<()> {
        self.0.flush()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn json_line_that_quotes_a_token_stays_json_without_it() {
        let line = r#"{"level":"WARN","fields":{"why":"400: X-Auth-Token: gAAAAABm1234567890abcdef refused \"x\""}}"#;
        let masked = masked_json(line);
        assert!(!masked.contains("gAAAAABm1234567890abcdef"), "{masked}");
        assert!(serde_json::from_str::<Value>(&masked).is_ok(), "{masked}");
        assert_eq!(masked_json(r#"{"a":1}"#), r#"{"a":1}"#);
    }
}
