//! Names at the end of a path: `example.com/password: x` of an annotation, `app/db/password=x`, `etcdctl put /db/password x`.
//!
//! Most such names are of files and objects, and what stands behind them is a message: `open /run/token: permission denied`.

use std::ops::Range;

use super::MASK;
use super::lines::prefix;
use super::messages::is_reason;
use super::plain::{is_message, is_plain};
use super::prose::is_chosen;
use super::value::{self, Between, cut, quoted_end};

/// So far back its beginning is looked for.
const NEAR_BYTES: usize = 256;

/// Whether this name is the last part of a path.
pub(super) fn ends_a_path(text: &str, name: &Range<usize>) -> bool {
    text[..name.start].ends_with('/')
}

/// Whether a value stands behind the path, and no message.
pub(super) fn has_a_value(text: &str, name: &Range<usize>) -> bool {
    let Some((start, between)) = value::start(text, name.start, name.end) else { return false };
    let (behind, rest) = (&text[name.end..start], &text[start..]);
    let is_quoted = behind.starts_with(['"', '\'', '\\']);
    match between {
        // `"/v3/auth/tokens" => login(port)` of a program.
        Between::Equals => !behind.trim_end().ends_with("=>") || is_quoted && rest.starts_with(['"', '\'']),
        Between::Colon if is_message(rest) || is_reason(rest) || &text[name.clone()] == "passwd" => false,
        // Of a file, an address or a host with its port only JSON has a value.
        Between::Colon if is_of_a_place(before(text, name.start)) => {
            is_quoted && rest.starts_with(['"', '\'', '\\'])
        }
        // `quay.io/x/external-secrets:v1` is an image; Go prints `map[example.com/token:x]`.
        Between::Colon if behind.ends_with(':') => is_quoted || is_in_a_map(text, name.start),
        // `secret/regcred-token: MountError` within a line is of an object.
        Between::Colon => is_quoted || is_first(text, name.start) || is_chosen(word(rest)),
        Between::Space | Between::Comma => false,
    }
}

/// `etcdctl put /db/password x`, `consul kv put -cas db/password x`, `augtool set /files/x/password x`.
pub(super) fn put(text: &str, name: &Range<usize>) -> Option<Range<usize>> {
    let path = name.start - before(text, name.start).len();
    let mut words = near(text, path).split_whitespace().rev();
    let verb = words.find(|word| !word.starts_with('-'))?;
    let rest = text[name.end..].trim_start_matches(['"', '\'']);
    let value = rest.trim_start_matches([' ', '\t']);
    if !matches!(verb, "put" | "set") || value.len() == rest.len() {
        return None;
    }
    let near = cut(value, NEAR_BYTES);
    let bare = || near.find(char::is_whitespace).unwrap_or(near.len());
    let length = quoted_end(near).unwrap_or_else(bare);
    let word = &near[..length];
    let is_other = word.is_empty()
        || word.starts_with(['-', '|', ';', '&', '>'])
        || word.starts_with(MASK)
        || word.contains('=')
        || is_plain(word)
        || is_message(value);
    let start = text.len() - value.len();
    (!is_other).then_some(start..start + length)
}

/// What stands on this line before here, of it the end.
fn near(text: &str, until: usize) -> &str {
    let from = text.ceil_char_boundary(until.saturating_sub(NEAR_BYTES));
    text[from..until].rsplit('\n').next().unwrap_or("")
}

/// The path as far as it stands before the name.
fn before(text: &str, name_start: usize) -> &str {
    let near = near(text, name_start);
    let begins = |c: char| c.is_whitespace() || matches!(c, '"' | '\'' | '=' | '[' | '(' | '{' | ',');
    near.rsplit(begins).next().unwrap_or("")
}

/// Whether the path is the first on its line, as a name of YAML is.
fn is_first(text: &str, name_start: usize) -> bool {
    let line = near(text, name_start);
    line[prefix(line)..].trim_start().len() == before(text, name_start).len()
}

fn word(rest: &str) -> &str {
    cut(rest, NEAR_BYTES).split(char::is_whitespace).next().unwrap_or("")
}

fn is_of_a_place(path: &str) -> bool {
    path.starts_with(['/', '.', '~', '$']) || path.contains(':')
}

fn is_in_a_map(text: &str, name_start: usize) -> bool {
    near(text, name_start).rsplit_once("map[").is_some_and(|(_, entries)| !entries.contains(']'))
}
