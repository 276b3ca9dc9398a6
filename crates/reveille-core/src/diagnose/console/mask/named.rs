//! Values that stand behind a secret's name: `name=value`, `name: value`, `"name": "value"`, `--name value`, and what is below.

use std::ops::Range;

use super::MASK;
use super::below::{self, Below};
use super::messages::{is_reason, is_report};
use super::names::{Telling, telling};
use super::pairs;
use super::plain::{is_message, is_object, is_plain};
use super::prose;
use super::random::{is_long_hex, is_random_base64, looks_random};
use super::value::{self, Between, Ends, cut};

/// Of a long value so much is looked at to tell whether it is random.
const RANDOM_BYTES_MAX: usize = 128;
/// Within so many bytes a list of secrets is closed.
const LIST_BYTES_MAX: usize = 1024;
/// Of a long value so much is looked at to tell what is in its quotes.
const UNQUOTED_BYTES_MAX: usize = 1024;
/// Within so many bytes a bracket is closed again.
const NEAR_BYTES_MAX: usize = 128;

/// Marks the value of every name that tells of a secret.
pub(super) fn named_values(text: &str, ranges: &mut Vec<Range<usize>>) {
    let mut ends = Ends::default();
    let mut of_pairs = Ends::default();
    let mut below = Below::default();
    let mut before = ("", None);
    for name in Names::of(text) {
        // A path segment of that name (`/latest/user_data`) is no name of a value.
        if name.start > 0 && text.as_bytes()[name.start - 1] == b'/' {
            continue;
        }
        let word = &text[name.clone()];
        if pairs::names_a_pair(word) {
            pairs::value_of_pair(text, &name, &mut of_pairs, ranges);
        }
        // What repeats a name is asked once.
        if word != before.0 {
            before = (word, telling(word));
        }
        let asked = text.as_bytes()[..name.start].last().is_some_and(|byte| matches!(byte, b'?' | b'&'));
        // `?code=` of a login that is handed over.
        let of_query = (asked && matches!(word, "code" | "ticket")).then_some(Telling::IfRandom);
        if let Some(range) = account(text, &name) {
            ranges.push(range);
        }
        let Some(telling) = before.1.or(of_query) else { continue };
        match value::start(text, name.start, name.end) {
            Some((start, between)) => {
                let found = Found { name, telling, start, between };
                if let Some(range) = found.value(text, &mut ends) {
                    ranges.push(range);
                }
                below.mark(text, &found, ranges);
            }
            None => {
                if let Some(range) = prose::after(text, &name, telling) {
                    ranges.push(range);
                }
                if below::ends_its_line(text, &name) {
                    below.option(text, &name, ranges);
                }
            }
        }
    }
}

/// A name that tells, and where its value begins.
#[derive(Clone, Debug)]
pub(super) struct Found {
    /// Where the name stands.
    pub(super) name: Range<usize>,
    /// What it tells.
    pub(super) telling: Telling,
    /// Where its value begins.
    pub(super) start: usize,
    /// What stands between them.
    pub(super) between: Between,
}

impl Found {
    /// The value on the line of its name, when it is one that has to go.
    fn value(&self, text: &str, ends: &mut Ends) -> Option<Range<usize>> {
        let start = self.start;
        let line = ends.line(text, start);
        if start >= line {
            return None;
        }
        if text[start..].starts_with(MASK) {
            return self.behind_a_mask(text, line);
        }
        let end = self.end(text, ends, line);
        let range = start..end;
        (end > start && !self.is_harmless(text, &range, line)).then_some(range)
    }

    /// What is masked already stays as it is; behind a name whose value goes on to the end of the line, so does the mask.
    fn behind_a_mask(&self, text: &str, line: usize) -> Option<Range<usize>> {
        let rest = self.start + MASK.len()..line;
        let goes_on = matches!(self.telling, Telling::Line)
            && text[rest.clone()].contains(|c: char| !c.is_whitespace());
        if goes_on {
            return Some(rest);
        }
        let tells = matches!(self.telling, Telling::Word | Telling::Phrase);
        let forged = value::forged(&text[self.start..line]).filter(|_| tells)?;
        Some(self.start..self.start + forged)
    }

    /// A quoted value ends at its closing quote, a bare one at the next space: a bracket or a comma may be part of a
    /// password. A bare pass*phrase* may even hold spaces.
    fn end(&self, text: &str, ends: &mut Ends, line: usize) -> usize {
        let start = self.start;
        let value = &text[start..line];
        if self.telling == Telling::Line {
            return line;
        }
        if self.between == Between::Element {
            return value
                .find('<')
                .filter(|at| value[*at..].starts_with("</"))
                .map_or(start, |at| start + at);
        }
        if let Some(end) = ends.quoted(text, start) {
            return end;
        }
        // `"tokens": ["a", "b"]`.
        if value.starts_with('[')
            && text[self.name.clone()].ends_with('s')
            && let Some(bracket) = cut(value, LIST_BYTES_MAX).find(']')
        {
            return start + bracket + 1;
        }
        if self.telling == Telling::IfRandom {
            return ends.item(text, start);
        }
        // `Bearer abc` and `Basic abc` are one value of two words.
        let has_scheme = ["bearer ", "basic "]
            .iter()
            .any(|word| value.get(..word.len()).is_some_and(|start| start.eq_ignore_ascii_case(word)));
        let near = cut(value, NEAR_BYTES_MAX);
        let before = text[..self.name.start].bytes().next_back();
        match before {
            // One of many in a URL's query, or in the options of a mount.
            Some(b'?' | b'&') => ends.argument(text, start),
            Some(b',') if self.between == Between::Equals => ends.word(text, start),
            // `pam_unix(passwd:chauthtok): password changed`.
            Some(b'(') if near.contains(')') => start + near.find(')').unwrap_or(0),
            _ if self.telling == Telling::Phrase || has_scheme => line,
            _ => ends.word(text, start),
        }
    }

    /// Whether the value is none that has to go.
    fn is_harmless(&self, text: &str, range: &Range<usize>, line: usize) -> bool {
        let value = &text[range.clone()];
        // What is compared with a literal is short: of a word of ten thousand names and as many quotes, no name walks them all.
        let unquoted = cut(value, UNQUOTED_BYTES_MAX).trim_matches(['"', '\'', '\\', '`']);
        match self.telling {
            Telling::IfRandom => {
                let unquoted = cut(unquoted, RANDOM_BYTES_MAX);
                // Behind `key: ` the kernel prints which certificate it loaded.
                let hex = is_long_hex(unquoted) && !text[self.name.clone()].eq_ignore_ascii_case("key");
                !(hex || is_random_base64(unquoted) || looks_random(unquoted) && !is_long_hex(unquoted))
            }
            _ if self.between == Between::Colon && self.is_reason(text, line) => true,
            Telling::Line => is_no_payload(value),
            Telling::Phrase | Telling::Word => {
                is_plain(value)
                    || begins_with_nothing(value)
                    || matches!(value, "\\" | "[" | "{")
                    || below::is_indicator(value)
                    || (self.between == Between::Space && value.starts_with("--"))
                    || (self.between == Between::Comma && unquoted.starts_with('-'))
                    || is_of_a_directory(&text[self.name.clone()], unquoted)
                    || is_number_of_a_session(&text[self.name.clone()], unquoted)
                    || (self.telling == Telling::Phrase && is_count(&text[self.name.clone()], unquoted))
                    || (self.telling == Telling::Word && (self.is_said(text, line) || is_object(value)))
            }
        }
    }

    /// Whether a message goes on where the value would stand: `--token is required`, `invalid token: not found`.
    fn is_said(&self, text: &str, line: usize) -> bool {
        let rest = &text[self.start..line];
        match self.between {
            // Several words in quotes are a phrase that somebody chose.
            _ if rest.starts_with('\'') && !rest[1..].starts_with("no ") => false,
            Between::Space => is_message(rest),
            Between::Colon => is_message(rest) || self.is_of_an_api(text),
            Between::Equals | Between::Comma | Between::Element => false,
        }
    }

    /// Whether a reason stands where the value would: `passphrase: Invalid argument`, `cookie: table 12 drop`.
    fn is_reason(&self, text: &str, line: usize) -> bool {
        let rest = &text[self.start..line];
        let is_cookie = || text[self.name.clone()].eq_ignore_ascii_case("cookie");
        is_reason(rest) || (self.telling == Telling::Line && is_cookie() && is_report(rest))
    }

    /// The type of an object (`failed to list *v1.Secret: …`), and a part of an ARN (`arn:aws:secretsmanager:…:secret:name`).
    fn is_of_an_api(&self, text: &str) -> bool {
        const NEAR_BYTES: usize = 96;
        let before = &text.as_bytes()[self.name.start.saturating_sub(NEAR_BYTES)..self.name.start];
        before.ends_with(b"*v1.")
            || (before.ends_with(b":") && before.windows(8).any(|part| part == b"arn:aws:"))
    }
}

/// `BASIC_AUTH=user:x`, `ETCDCTL_USER=root:x`: behind the colon, where it is no port, no path and no name of Kubernetes.
fn account(text: &str, name: &Range<usize>) -> Option<Range<usize>> {
    const USER_BYTES_MAX: usize = 32;
    const VALUE_BYTES_MAX: usize = 512;
    let word = &text[name.clone()];
    let of_environment =
        ["_USER", "_LOGIN", "_ACCOUNT"].iter().any(|end| word.ends_with(end)) || word == "LOGIN";
    let is_auth =
        word.len() >= 4 && word.get(word.len() - 4..).is_some_and(|end| end.eq_ignore_ascii_case("auth"));
    if !of_environment && !is_auth {
        return None;
    }
    let (start, between) = value::start(text, name.start, name.end)?;
    let is_assigned = between == Between::Equals || between == Between::Colon && is_auth;
    let near = cut(text.get(start..).filter(|_| is_assigned)?, VALUE_BYTES_MAX);
    let quotes = near.len() - near.trim_start_matches(['"', '\'']).len();
    let value = near[quotes..].split(|c: char| c.is_whitespace() || matches!(c, '"' | '\'')).next()?;
    let (user, password) = value.split_once(':')?;
    let is_user = |byte: u8| byte.is_ascii_alphanumeric() || matches!(byte, b'_' | b'-' | b'.');
    let named = user.len() <= USER_BYTES_MAX
        && user.bytes().all(is_user)
        && user.starts_with(|c: char| c.is_ascii_alphabetic());
    let is_other =
        password.starts_with('/') || password.bytes().all(|byte| byte.is_ascii_digit()) || user == "system";
    let start = start + quotes + user.len() + 1;
    (named && !is_other && !password.starts_with(MASK) && !is_plain(password))
        .then(|| start..start + password.len())
}

/// A message behind a header's name, a flow's number of Open vSwitch (`cookie=0x0`), a script's path, and nothing (`'b'`).
fn is_no_payload(value: &str) -> bool {
    const NOTHING_BYTES: usize = 3;
    let first = cut(value, NEAR_BYTES_MAX).split(' ').next().unwrap_or("");
    let is_script = first.starts_with('/') && is_plain(first);
    (is_message(value) && !is_scheme(value))
        || value.starts_with("0x")
        || cut(value, NEAR_BYTES_MAX).trim().len() <= NOTHING_BYTES && value.len() < NEAR_BYTES_MAX
        || is_script
}

/// `Authorization: token x` of GitHub and Gitea.
fn is_scheme(value: &str) -> bool {
    const SCHEME: &str = "token ";
    value.get(..SCHEME.len()).is_some_and(|word| word.eq_ignore_ascii_case(SCHEME))
}

/// `password: null, user: x` on one line.
fn begins_with_nothing(value: &str) -> bool {
    let first = cut(value, NEAR_BYTES_MAX).split(' ').next().unwrap_or("");
    first.ends_with(',') && is_plain(first)
}

/// `PWD=/` and `OLDPWD=/root` of a shell are where it stands.
fn is_of_a_directory(name: &str, value: &str) -> bool {
    let is_shells = name.eq_ignore_ascii_case("pwd") || name.eq_ignore_ascii_case("oldpwd");
    is_shells && value.starts_with(['/', '~'])
}

/// `XDG_SESSION_ID=4` is logind's.
fn is_number_of_a_session(name: &str, value: &str) -> bool {
    const DIGITS_MAX: usize = 6;
    name.eq_ignore_ascii_case("xdg_session_id") && value.len() <= DIGITS_MAX
}

/// `pass: 12 fail: 0` counts.
fn is_count(name: &str, value: &str) -> bool {
    const DIGITS_MAX: usize = 3;
    let number = cut(value, DIGITS_MAX + 1).split([' ', ',', '\t']).next().unwrap_or("");
    name.eq_ignore_ascii_case("pass")
        && number.len() <= DIGITS_MAX
        && number.bytes().all(|byte| byte.is_ascii_digit())
}

/// The words of a text that may be names: letters, digits, `-` and `_`.
struct Names<'t> {
    text: &'t str,
    at: usize,
}

impl<'t> Names<'t> {
    const fn of(text: &'t str) -> Self {
        Self { text, at: 0 }
    }
}

impl Iterator for Names<'_> {
    type Item = Range<usize>;

    fn next(&mut self) -> Option<Range<usize>> {
        let bytes = self.text.as_bytes();
        let is_name = |byte: &u8| byte.is_ascii_alphanumeric() || matches!(byte, b'_' | b'-');
        let start = self.at + bytes.get(self.at..)?.iter().position(is_name)?;
        let end = start + bytes[start..].iter().take_while(|byte| is_name(byte)).count();
        self.at = end;
        Some(start..end)
    }
}
