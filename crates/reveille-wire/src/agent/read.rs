//! Reading what a peer sent: any bytes in, a value or a place out.
//!
//! A mistake is told by where it is and what was expected there, without a word of what stood there: an error is logged, and
//! what a peer sends by mistake may be a key.
//!
//! Values are counted before any is made: a frame whose kind stands behind its fields is kept as a tree until the kind is read,
//! and a tree of a million zeros is thirty times as large as its text.

use serde::de::DeserializeOwned;
use thiserror::Error;

use super::text::Word;

/// Bytes that are not what they should be.
#[derive(Clone, Debug, PartialEq, Eq, Error)]
#[error("{place}: {what}")]
pub struct BadFrame {
    /// Where: line and column, where that is known.
    pub place: Word,
    /// What is wrong there.
    pub what: Word,
}

/// Most values within one. A list of 256 peers has four thousand; a file in a plan is one, whatever stands in it.
const VALUES_MAX: usize = 16 << 10;

/// Reads one value of at most `bytes_max`.
///
/// # Errors
///
/// Where it is not one. Nothing that was sent is quoted.
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

/// How many values there are at most: one more than there are commas and openings outside of texts.
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

/// Without what stands between quotes or backticks, unless it is a name of ours: serde puts ours between backticks after
/// "missing field" and "expected", and the peer's everywhere else.
fn unquoted(text: &str) -> String {
    let text = text.split(" at line ").next().unwrap_or(text);
    let mut out = String::new();
    let mut rest = text;
    while let Some(place) = rest.find(['"', '`']) {
        let (before, quoted) = rest.split_at(place);
        out.push_str(before);
        let quote = &quoted[..1];
        // A quote within a quoted text would end it early: everything up to the last one of the kind goes.
        let ours = quote == "`" && before.ends_with("missing field ");
        let end = if ours { quoted[1..].find(quote) } else { quoted[1..].rfind(quote) };
        let Some(end) = end else { return out };
        out.push_str(if ours { &quoted[1..=end] } else { "…" });
        rest = &quoted[end + 2..];
    }
    out.push_str(rest);
    out
}
