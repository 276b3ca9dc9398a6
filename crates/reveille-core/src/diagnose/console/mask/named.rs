//! Values that stand behind a secret's name: `name=value`, `name: value`, `"name": "value"`, `--name value`, and what is below.

use std::ops::Range;

use super::MASK;
use super::below::Below;
use super::columns::{ends_its_line, is_indicator};
use super::found::Found;
use super::messages::{is_reason, is_report};
use super::names::{Telling, telling};
use super::pairs;
use super::paths;
use super::plain::{is_message, is_object, is_plain};
use super::prose;
use super::random::{is_long_hex, is_random_base64, looks_random};
use super::scalars;
use super::value::{self, Between, Ends, cut, spelled_quote};

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
        let word = &text[name.clone()];
        // A path segment of that name (`/latest/user_data`) is no name of a value, but where a value follows.
        if paths::ends_a_path(text, &name) && !paths::has_a_value(text, &name) {
            if matches!(telling(word), Some(Telling::Word | Telling::Phrase)) {
                ranges.extend(paths::put(text, &name));
            }
            continue;
        }
        if pairs::names_a_pair(word) {
            pairs::value_of_pair(text, &name, (&mut of_pairs, &mut below), ranges);
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
        let telling = of_words(text, &name).or(before.1).or(of_query);
        let Some(telling) = telling else { continue };
        if telling == Telling::Line && paths::ends_a_path(text, &name) {
            continue;
        }
        match value::start(text, name.start, name.end) {
            Some((start, between)) => {
                let found = Found { name, telling, start, between };
                let value = found.value(text, &mut ends);
                let is_secret = value.is_some();
                ranges.extend(value);
                below.mark(text, &found, is_secret, ranges);
                ranges.extend(scalars::value_within(text, &found));
            }
            None => {
                if let Some(range) = prose::after(text, &name, telling) {
                    ranges.push(range);
                }
                if telling == Telling::Phrase {
                    below.announced(text, &name, ranges);
                }
                if let Some((line, start)) = scalars::explicit(text, &name) {
                    let found = Found { name: line..name.end, telling, start, between: Between::Colon };
                    let value = found.value(text, &mut ends);
                    let is_secret = value.is_some();
                    ranges.extend(value);
                    below.mark(text, &found, is_secret, ranges);
                }
                if ends_its_line(text, &name) {
                    below.option(text, &name, ranges);
                }
            }
        }
    }
}

impl Found {
    /// The value on the line of its name, when it is one that has to go.
    fn value(&self, text: &str, ends: &mut Ends) -> Option<Range<usize>> {
        let line = ends.line(text, self.start);
        // `token: !!str x`: the tag goes with its value, and alone where it may be the secret itself.
        let tagged =
            (self.between == Between::Colon).then(|| value::behind_properties(&text[self.start..line]));
        if let Some(tags) = tagged.filter(|tags| *tags > 0)
            && let Some(range) =
                (Self { start: self.start + tags, ..self.clone() }).untagged(text, ends, line)
        {
            return Some(self.start..range.end);
        }
        self.untagged(text, ends, line)
    }

    fn untagged(&self, text: &str, ends: &mut Ends, line: usize) -> Option<Range<usize>> {
        let start = self.start;
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
        if let Some(end) = ends.quoted(text, start) {
            return end;
        }
        if let Some(quote) = spelled_quote(&text[..start])
            && let Some(close) = cut(value, NEAR_BYTES_MAX).find(quote)
        {
            return start + close;
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
            _ => {
                let end = ends.word(text, start);
                // `credentials: admin / x`.
                let is_account = self.between == Between::Colon && text[end..line].starts_with(" / ");
                if is_account { ends.word(text, end + " / ".len()) } else { end }
            }
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
                    || is_indicator(value)
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
            // Several words in quotes are a phrase that a person chose.
            _ if rest.starts_with('\'') && !rest[1..].starts_with("no ") => false,
            Between::Space => is_message(rest),
            Between::Colon => is_message(rest) || self.is_of_an_api(text),
            Between::Equals | Between::Comma => false,
        }
    }

    /// Whether a reason stands where the value would: `passphrase: Invalid argument`, `cookie: table 12 drop`.
    fn is_reason(&self, text: &str, line: usize) -> bool {
        let rest = &text[self.start..line];
        let is_cookie = || text[self.name.clone()].eq_ignore_ascii_case("cookie");
        is_reason(rest) || (self.telling == Telling::Line && is_cookie() && is_report(rest))
    }

    /// The type of an object (`failed to list *v1.Secret: …`), a part of an ARN (`arn:aws:secretsmanager:…:secret:name`), and
    /// names of objects (`Mountable secrets:` of `kubectl describe`).
    fn is_of_an_api(&self, text: &str) -> bool {
        const NEAR_BYTES: usize = 96;
        let before = &text.as_bytes()[self.name.start.saturating_sub(NEAR_BYTES)..self.name.start];
        before.ends_with(b"*v1.")
            || before.ends_with(b"Mountable ")
            || before.ends_with(b"Image pull ")
            || (before.ends_with(b":") && before.windows(8).any(|part| part == b"arn:aws:"))
    }
}

/// What a name of several words tells: `API key`, `mot de passe`.
fn of_words(text: &str, name: &Range<usize>) -> Option<Telling> {
    const NAMES: [(&str, &str, Telling); 3] = [
        ("api ", "key", Telling::Word),
        ("pass ", "phrase", Telling::Phrase),
        ("mot de ", "passe", Telling::Phrase),
    ];
    let ends = |before: &str, end: &str| {
        let from = before.len().checked_sub(end.len());
        from.and_then(|from| before.get(from..)).is_some_and(|is| is.eq_ignore_ascii_case(end))
    };
    let word = &text[name.clone()];
    let names = NAMES
        .iter()
        .find(|(before, last, _)| word.eq_ignore_ascii_case(last) && ends(&text[..name.start], before));
    names.map(|(_, _, telling)| *telling)
}

/// `BASIC_AUTH=user:x`, `ETCDCTL_USER=root:x`, `username=user%x` of a mount: behind the sign, where it is no port, no path and no
/// name of Kubernetes.
fn account(text: &str, name: &Range<usize>) -> Option<Range<usize>> {
    const VALUE_BYTES_MAX: usize = 512;
    let word = &text[name.clone()];
    let of_mount = ["user", "username"].iter().any(|user| word.eq_ignore_ascii_case(user));
    let of_environment =
        of_mount || ["_USER", "_LOGIN", "_ACCOUNT"].iter().any(|end| word.ends_with(end)) || word == "LOGIN";
    let is_auth =
        word.len() >= 4 && word.get(word.len() - 4..).is_some_and(|end| end.eq_ignore_ascii_case("auth"));
    if !of_environment && !is_auth {
        return None;
    }
    let (start, between) = value::start(text, name.start, name.end)?;
    let is_assigned = between == Between::Equals || between == Between::Colon && is_auth;
    let near = cut(text.get(start..).filter(|_| is_assigned)?, VALUE_BYTES_MAX);
    let quotes = near.len() - near.trim_start_matches(['"', '\'', '\\']).len();
    let start = start + quotes;
    if is_auth && let Some(length) = encoded_account(&text[start..]) {
        return Some(start..start + length);
    }
    let value = near[quotes..].split(|c: char| c.is_whitespace() || matches!(c, '"' | '\'')).next()?;
    let password = if of_mount { of_samba(value).or_else(|| of_user(value)) } else { of_user(value) }?;
    let is_other = !of_mount && password.starts_with('/')
        || password.bytes().all(|byte| byte.is_ascii_digit())
        || password.starts_with(MASK)
        || is_plain(password);
    let start = start + value.len() - password.len();
    (!is_other).then(|| start..start + password.len())
}

/// `user:x`; Kubernetes' own users and those of a provider of identities are names behind the colon, too.
fn of_user(value: &str) -> Option<&str> {
    const USER_BYTES_MAX: usize = 32;
    const REALMS: [&str; 7] = ["system", "oidc", "ldap", "saml", "arn", "spiffe", "unix"];
    let (user, password) = value.split_once(':')?;
    let is_user = |byte: u8| byte.is_ascii_alphanumeric() || matches!(byte, b'_' | b'-' | b'.');
    let is_named = user.len() <= USER_BYTES_MAX
        && user.bytes().all(is_user)
        && user.starts_with(|c: char| c.is_ascii_alphabetic());
    (is_named && !REALMS.contains(&user)).then_some(password)
}

/// `user%x` and `domain/user%x`; `bob%40example.com` of an address is a name.
fn of_samba(value: &str) -> Option<&str> {
    const USER_BYTES_MAX: usize = 64;
    let (user, password) = value.split_once('%')?;
    let is_user =
        |byte: u8| byte.is_ascii_alphanumeric() || matches!(byte, b'_' | b'-' | b'.' | b'/' | b'\\' | b'@');
    let is_named = (1..=USER_BYTES_MAX).contains(&user.len()) && user.bytes().all(is_user);
    let is_address = password.strip_prefix("40").is_some_and(|host| host.contains('.'));
    (is_named && !is_address).then_some(password)
}

/// How long the base64 of `user:x` is that begins here, as containerd and docker write it: `auth = "dTp4"`.
///
/// A word of people decodes to bytes that are no text, and to one with a colon still less often.
fn encoded_account(value: &str) -> Option<usize> {
    const BYTES_MIN: usize = 8;
    let is_base64 = |byte: &u8| byte.is_ascii_alphanumeric() || matches!(byte, b'+' | b'/' | b'-' | b'_');
    let bare = value.bytes().take_while(is_base64).count();
    let padding = value.bytes().skip(bare).take(2).take_while(|byte| *byte == b'=').count();
    let decoded = decoded(&value.as_bytes()[..bare.min(RANDOM_BYTES_MAX)])?;
    let is_text = decoded.iter().all(|byte| byte.is_ascii_graphic() || byte.is_ascii_whitespace());
    let colon = decoded.iter().position(|byte| *byte == b':')?;
    let is_account =
        colon > 0 && colon + 1 < decoded.len() && !decoded[..colon].iter().any(u8::is_ascii_whitespace);
    (bare >= BYTES_MIN && is_text && is_account).then_some(bare + padding)
}

/// The bytes of this base64, in either alphabet; of what a last digit has too few for, none.
fn decoded(word: &[u8]) -> Option<Vec<u8>> {
    let mut bytes = Vec::with_capacity(word.len());
    let (mut bits, mut have) = (0_u32, 0);
    for byte in word {
        let digit = match byte {
            b'A'..=b'Z' => byte - b'A',
            b'a'..=b'z' => byte - b'a' + 26,
            b'0'..=b'9' => byte - b'0' + 52,
            b'+' | b'-' => 62,
            b'/' | b'_' => 63,
            _ => return None,
        };
        bits = bits << 6 | u32::from(digit);
        have += 6;
        if have >= 8 {
            have -= 8;
            let [.., last] = (bits >> have).to_be_bytes();
            bytes.push(last);
        }
    }
    Some(bytes)
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

/// The words of a text that may be names: letters of Western Europe, digits, `-` and `_`.
struct Names<'t> {
    text: &'t str,
    at: usize,
}

impl<'t> Names<'t> {
    const fn of(text: &'t str) -> Self {
        Self { text, at: 0 }
    }
}

/// The first byte of `À` to `ÿ`.
const LATIN: u8 = 0xc3;

impl Iterator for Names<'_> {
    type Item = Range<usize>;

    fn next(&mut self) -> Option<Range<usize>> {
        let bytes = self.text.as_bytes();
        // Letters of Western Europe are of two bytes: `contraseña`.
        let is_latin = |at: usize| {
            bytes[at] == LATIN && bytes.get(at + 1).is_some_and(|byte| byte >> 6 == 0b10)
                || bytes[at] >> 6 == 0b10 && at > 0 && bytes[at - 1] == LATIN
        };
        let is_name = |at: &usize| {
            bytes[*at].is_ascii_alphanumeric() || matches!(bytes[*at], b'_' | b'-') || is_latin(*at)
        };
        let start = (self.at..bytes.len()).find(is_name)?;
        let end = (start..bytes.len()).find(|at| !is_name(at)).unwrap_or(bytes.len());
        self.at = end;
        Some(start..end)
    }
}
