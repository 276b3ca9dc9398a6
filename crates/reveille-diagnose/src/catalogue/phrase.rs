//! What a line says, written so that a person can read and write it.
//!
//! ```text
//!  could not find a jws signature … {cluster-info|kube-public} … token id
//!   └ literal text ┘              │  └ one of these ┘            any text of the same line: …
//!  <n> a number   <w> a word without spaces   quotes and letter case are not looked at
//! ```
//!
//! A phrase becomes a regular expression and a set of literals of which every matching line holds at least one. A phrase
//! without such a literal is refused: it would have to be tried on every line of a gigabyte.

use std::sync::OnceLock;

use regex::bytes::{Regex, RegexBuilder};

/// A literal that is shorter finds too many lines to be worth looking for.
const LITERAL_BYTES_MIN: usize = 3;

/// One phrase, ready to be tried.
#[derive(Clone, Debug)]
pub struct Phrase {
    /// As it was written.
    pub written: String,
    /// Every line that matches holds one of these; in lower case.
    pub literals: Vec<String>,
    /// The same of lines that are whole: longer, and so rarer.
    pub whole_literals: Vec<String>,
    pattern: String,
    /// Made when a line first needs it: most phrases are never tried, and a thousand patterns take their time.
    regex: OnceLock<Option<Regex>>,
}

#[derive(Debug)]
enum Piece {
    Literal(String),
    Any,
    Number,
    Word,
    OneOf(Vec<Vec<Self>>),
    /// The literal that a phrase ends with: the line may be cut within it.
    Tail(String),
}

impl Phrase {
    /// Reads a phrase; the error says what to write instead.
    pub fn read(written: &str) -> Result<Self, String> {
        Self::compile(written, true, true)
    }

    /// Reads a phrase that takes trouble back: success that is cut is no success.
    pub fn read_whole(written: &str) -> Result<Self, String> {
        Self::compile(written, true, false)
    }

    /// Reads a phrase that is only tried on lines which matched another: it needs no literal to find them by.
    pub fn read_exception(written: &str) -> Result<Self, String> {
        Self::compile(written, false, true)
    }

    fn compile(written: &str, needs_literal: bool, may_be_cut: bool) -> Result<Self, String> {
        let text = plain(written);
        let mut rest = text.as_str();
        let mut pieces = sequence(&mut rest, 0)?;
        if may_be_cut {
            loosen(&mut pieces);
        }
        if !rest.is_empty() {
            return Err(format!("\"{rest}\" stands outside any braces; close what was opened"));
        }
        let literals = required(&pieces, false).unwrap_or_default();
        let whole_literals = required(&pieces, true).unwrap_or_default();
        let shortest = literals.iter().map(String::len).min().unwrap_or(0);
        if needs_literal && shortest < LITERAL_BYTES_MIN {
            return Err(format!(
                "no part of it is both required and at least {LITERAL_BYTES_MIN} characters long: add a word that every such line holds"
            ));
        }
        let mut pattern = String::new();
        spell(&pieces, &mut pattern);
        Ok(Self { written: written.to_owned(), literals, whole_literals, pattern, regex: OnceLock::new() })
    }

    /// Where the phrase stands in a line that was made comparable.
    pub fn find(&self, comparable: &str) -> Option<usize> {
        // A pattern made of escaped text, numbers and words always compiles; one that is too large finds nothing.
        let regex = self.regex.get_or_init(|| RegexBuilder::new(&self.pattern).unicode(false).build().ok());
        regex.as_ref()?.find(comparable.as_bytes()).map(|found| found.start())
    }
}

/// The phrase as lines are compared: lower case, single spaces. Quotes stay as places where a literal may be torn.
fn plain(written: &str) -> String {
    let mut out = String::with_capacity(written.len());
    for c in written.chars() {
        match c {
            '"' | '`' | '\u{2018}' | '\u{2019}' | '\u{201c}' | '\u{201d}' => out.push('\''),
            c if c.is_whitespace() => {
                if !out.ends_with(' ') {
                    out.push(' ');
                }
            }
            c => out.extend(c.to_lowercase()),
        }
    }
    out
}

fn sequence(rest: &mut &str, depth: usize) -> Result<Vec<Piece>, String> {
    let mut pieces = Vec::new();
    let mut literal = String::new();
    while let Some(c) = rest.chars().next() {
        if depth > 0 && (c == '|' || c == '}') {
            break;
        }
        let after = &rest[c.len_utf8()..];
        let piece = match c {
            '…' => Some((Piece::Any, after)),
            '<' if after.starts_with("n>") => Some((Piece::Number, &after[2..])),
            '<' if after.starts_with("w>") => Some((Piece::Word, &after[2..])),
            '{' => {
                let mut inner = after;
                let one_of = alternatives(&mut inner, depth)?;
                Some((one_of, inner))
            }
            '}' => return Err("a closing brace without an opening one".to_owned()),
            _ => None,
        };
        match piece {
            Some((piece, after)) => {
                if !literal.is_empty() {
                    pieces.push(Piece::Literal(std::mem::take(&mut literal)));
                }
                pieces.push(piece);
                *rest = after;
            }
            None => {
                literal.push(c);
                *rest = after;
            }
        }
    }
    if !literal.is_empty() {
        pieces.push(Piece::Literal(literal));
    }
    Ok(pieces)
}

fn alternatives(rest: &mut &str, depth: usize) -> Result<Piece, String> {
    const DEPTH_MAX: usize = 4;
    if depth >= DEPTH_MAX {
        return Err(format!("braces are nested deeper than {DEPTH_MAX}"));
    }
    let mut all = Vec::new();
    loop {
        all.push(sequence(rest, depth + 1)?);
        if let Some(after) = rest.strip_prefix('|') {
            *rest = after;
        } else if let Some(after) = rest.strip_prefix('}') {
            *rest = after;
            return Ok(Piece::OneOf(all));
        } else {
            return Err("an opening brace is never closed".to_owned());
        }
    }
}

/// Consoles, tables and excerpts cut lines: what a phrase ends with may be cut by the line's end.
fn loosen(pieces: &mut [Piece]) {
    match pieces.last_mut() {
        Some(Piece::OneOf(all)) => all.iter_mut().for_each(|one| loosen(one)),
        Some(last @ Piece::Literal(_)) => {
            if let Piece::Literal(text) = last
                && cut(text).is_some()
            {
                *last = Piece::Tail(std::mem::take(text));
            }
        }
        _ => {}
    }
}

/// Where a literal may be cut at the earliest: two thirds of it are enough to know it, if they are long enough and its last
/// word has begun. "successfully joined" is not known by "successfully".
fn cut(text: &str) -> Option<usize> {
    const LITERAL_CHARACTERS_MIN: usize = 9;
    const LAST_WORD_CHARACTERS_MIN: usize = 1;
    const WORD_CHARACTERS_LOST_MAX: usize = 3;
    let characters = text.chars().count();
    // `master_ip` that is cut to `master` is another word.
    let last_word = text.trim_end().rfind([' ', '_']).map_or(0, |at| text[..=at].chars().count());
    // A single word is known when nearly all of it stands: a table's "Provisioning" is no cut "ProvisioningFailed".
    let enough = if last_word == 0 {
        characters.saturating_sub(WORD_CHARACTERS_LOST_MAX).max(characters * 2 / 3)
    } else {
        characters * 2 / 3
    };
    let kept = enough.max(last_word + LAST_WORD_CHARACTERS_MIN);
    let at = text.char_indices().nth(kept).map(|(at, _)| at)?;
    // A number that is cut is another number.
    let has_number = text[at..].bytes().any(|byte| byte.is_ascii_digit());
    (characters >= LITERAL_CHARACTERS_MIN && !has_number).then_some(at)
}

/// Literals of which every match holds one: of all such sets the one whose shortest member is longest.
/// Of lines that may be cut, a tail's kept part; of whole ones, all of it.
fn required(pieces: &[Piece], whole: bool) -> Option<Vec<String>> {
    let mut best: Option<Vec<String>> = None;
    let worth = |set: &[String]| set.iter().map(String::len).min().unwrap_or(0);
    for piece in pieces {
        let set = match piece {
            Piece::Literal(text) => longest_part(text).map(|part| vec![part]),
            Piece::OneOf(all) => {
                let sets: Option<Vec<Vec<String>>> = all.iter().map(|one| required(one, whole)).collect();
                sets.map(|sets| sets.concat())
            }
            Piece::Tail(text) if whole => longest_part(text).map(|part| vec![part]),
            Piece::Tail(text) => {
                longest_part(&text[..cut(text).unwrap_or(text.len())]).map(|part| vec![part])
            }
            Piece::Any | Piece::Number | Piece::Word => None,
        };
        if let Some(set) = set
            && best.as_ref().is_none_or(|best| worth(&set) > worth(best))
        {
            best = Some(set);
        }
    }
    best
}

/// The longest stretch without quotes: how a quote is written differs from log to log.
fn longest_part(text: &str) -> Option<String> {
    let part = text.split('\'').max_by_key(|part| part.trim().len())?.trim();
    (!part.is_empty()).then(|| part.to_owned())
}

fn is_status(text: &str) -> bool {
    text.len() == 3 && text.bytes().all(|byte| byte.is_ascii_digit())
}

fn spell(pieces: &[Piece], out: &mut String) {
    for piece in pieces {
        match piece {
            // Spaces beside "any text" may be missing: the text may be empty or be cut there.
            // A status is a number of its own, and no part of a longer one.
            Piece::Literal(text) if is_status(text.trim()) => {
                let status = text.trim();
                let (before, after) = text.split_at(text.find(status).unwrap_or(0));
                out.push_str(before);
                out.push_str(&format!(r"\b{status}\b"));
                out.push_str(&after[status.len()..]);
            }
            Piece::Literal(text) => out.push_str(&regex::escape(&text.replace('\'', ""))),
            Piece::Tail(text) => {
                let (kept, rest) = text.split_at(cut(text).unwrap_or(text.len()));
                out.push_str(&regex::escape(&kept.replace('\'', "")));
                let rest = rest.replace('\'', "");
                out.push_str("(?:");
                out.push_str(&regex::escape(&rest));
                for (at, _) in rest.char_indices().rev() {
                    out.push('|');
                    out.push_str(&regex::escape(&rest[..at]));
                    out.push('$');
                }
                out.push(')');
            }
            Piece::Any => {
                if out.ends_with(' ') {
                    out.pop();
                }
                out.push_str(".*?");
            }
            Piece::Number => out.push_str("[0-9]+"),
            Piece::Word => out.push_str("[^ ]+"),
            Piece::OneOf(all) => {
                out.push_str("(?:");
                for (index, one) in all.iter().enumerate() {
                    if index > 0 {
                        out.push('|');
                    }
                    spell(one, out);
                }
                out.push(')');
            }
        }
    }
    // A space after "any text" is part of what was written for reading, and not of the line.
    while let Some(at) = out.find(".*? ") {
        out.replace_range(at..at + 4, ".*?");
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::lines::comparable;

    #[test]
    fn phrases_match_what_they_say() {
        for (written, line, expected) in [
            ("no such host", "dial tcp: lookup x: No such host", true),
            ("could not find … token id", "could not find a JWS for token ID \"q\"", true),
            ("could not find … token id", "token id could not find", false),
            ("{a|b}bc … def", "xx bbc 12 def", true),
            ("{abc|abd} <n>x", "abd 12x", true),
            ("{abc|abd} <n>x", "abd x", false),
            ("404 … servers/", "GET /v2.1/servers/7 404", false),
            ("404 … servers/", "404 for /v2.1/servers/7", true),
            ("404 … servers/", "req-44b07c0b-4040-9225 GET /v2.1/servers/detail", false),
            ("{master_ip|your-server}", "Attempting to register node master", false),
            ("node <w> not found", "node \"w-1\" not found", true),
            ("node '<w>' not found", "node \\\"w-1\\\" not found", true),
            ("certificate signed by", "x509:   certificate\tsigned by unknown", true),
            ("one{ |-}two", "one-two", true),
            ("a.c def", "abc def", false),
            ("server … {404|503}", "server: 404 Not Found", true),
            ("server … {404|503}", "server revision 1404040", false),
            ("dial … connection refused", "dial tcp: connection refu", true),
            ("dial … connection refused", "dial tcp: connection refu no", false),
            ("dial … connection refused", "dial tcp: connect", false),
            ("certificate not approved", "the certificate not", false),
        ] {
            let phrase = Phrase::read(written).unwrap();
            assert_eq!(phrase.find(&comparable(line)).is_some(), expected, "{written} / {line}");
        }
    }

    #[test]
    fn every_match_holds_a_literal() {
        let phrase = Phrase::read("x … {connection refused|no route {to host|at all}} … <n>").unwrap();
        assert_eq!(phrase.literals, ["connection refused", "no route"]);
        assert_eq!(Phrase::read("it's \"unauthorized\" here …").unwrap().literals, ["unauthorized"]);
        assert_eq!(Phrase::read("connection refused").unwrap().literals, ["connection r"]);
    }

    #[test]
    fn phrases_that_cannot_be_found_are_refused() {
        for (written, says) in [
            ("… <n>", "required"),
            ("{abc|…}", "required"),
            ("{abc|def", "never closed"),
            ("abc}", "closing brace"),
            ("{{{{{abc}}}}}", "nested"),
        ] {
            assert!(Phrase::read(written).unwrap_err().contains(says), "{written}");
        }
    }
}
