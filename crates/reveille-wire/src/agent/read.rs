//! Reads what a peer sent: takes any bytes and returns a value, or the place of the mistake.
//!
//! An error names the place of a mistake and what was expected there. It never quotes the input, because an error is
//! logged and what a peer sends by mistake may be a key.
//!
//! The reader counts the values before it makes any. When the kind of a frame stands behind its fields, serde keeps the
//! fields as a tree until it reads the kind. A tree of a million zeros is thirty times as large as its text.

use serde::de::DeserializeOwned;
use thiserror::Error;

use super::text::Word;

/// Bytes that are not a valid frame or request.
#[derive(Clone, Debug, PartialEq, Eq, Error)]
#[error("{place}: {what}")]
pub struct BadFrame {
    /// Where: line and column, where that is known.
    pub place: Word,
    /// What is wrong there.
    pub what: Word,
}

/// The most values within one frame. A list of 256 peers has four thousand; a file in a plan is one value, whatever its content.
const VALUES_MAX: usize = 16 << 10;

/// Reads one value of at most `bytes_max`.
///
/// # Errors
///
/// Where the bytes are no such value. The error does not quote the input.
pub fn read<T: DeserializeOwned>(bytes: &[u8], bytes_max: usize) -> Result<T, BadFrame> {
    if bytes.len() > bytes_max {
        let what = format!("{} bytes, and at most {bytes_max} are taken", bytes.len());
        return Err(BadFrame { place: Word::from("length"), what: Word::cut(&what) });
    }
    if values(bytes) > VALUES_MAX {
        let what = format!("more than {VALUES_MAX} values");
        return Err(BadFrame { place: Word::from("length"), what: Word::cut(&what) });
    }
    serde_json::from_slice(bytes).map_err(|error| {
        let place = match error.line() {
            0 => "frame".to_owned(),
            line => format!("line {line}, column {}", error.column()),
        };
        BadFrame { place: Word::cut(&place), what: Word::cut(&unquoted(&error.to_string())) }
    })
}

/// The most values that the bytes can hold: one more than there are commas and openings outside of texts.
fn values(bytes: &[u8]) -> usize {
    let (mut count, mut in_text, mut is_escaped) = (1, false, false);
    for byte in bytes {
        match byte {
            _ if is_escaped => is_escaped = false,
            b'\\' => is_escaped = in_text,
            b'"' => in_text = !in_text,
            b',' | b'[' | b'{' if !in_text => count += 1,
            _ => {}
        }
    }
    count
}

/// Removes what stands between quotes or backticks, unless it is one of our names: serde puts ours between backticks
/// after "missing field" and "expected", and the peer's everywhere else.
fn unquoted(text: &str) -> String {
    let text = text.split(" at line ").next().unwrap_or(text);
    let mut out = String::new();
    let mut rest = text;
    while let Some(place) = rest.find(['"', '`']) {
        let (before, quoted) = rest.split_at(place);
        out.push_str(before);
        let quote = &quoted[..1];
        // A quote within a quoted text would end it early, so the text up to the last quote of the kind is removed.
        let ours = quote == "`" && before.ends_with("missing field ");
        let end = if ours { quoted[1..].find(quote) } else { quoted[1..].rfind(quote) };
        let Some(end) = end else { return out };
        out.push_str(if ours { &quoted[1..=end] } else { "…" });
        rest = &quoted[end + 2..];
    }
    out.push_str(rest);
    out
}
