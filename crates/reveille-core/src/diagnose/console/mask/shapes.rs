//! Tokens that are known by their shape alone, with no name beside them.
//!
//! Bootstrap tokens (six characters, a dot, sixteen: only the second part is secret), k3s's `K10…::server:x`, our own
//! invitations, JSON web tokens, hashes of passwords, tokens with a known beginning, and long base64. What says which kind it is
//! stays: `glpat-[masked]`.

use std::ops::Range;

use super::MASK;
use super::names::telling;
use super::prefixes::PREFIXES;
use super::random::{is_random_base64, looks_random, turns_often};
use super::value::found_once;

/// A run of base64 that is shorter than this is taken for a word.
const BLOB_BYTES_MIN: usize = 40;

/// Marks tokens.
pub(super) fn shaped_tokens(text: &str, ranges: &mut Vec<Range<usize>>) {
    runs(text, ranges);
    known_beginnings(text, ranges);
    cluster_tokens(text, ranges);
    invitations(text, ranges);
    password_hashes(text, ranges);
}

fn runs(text: &str, ranges: &mut Vec<Range<usize>>) {
    let bytes = text.as_bytes();
    let mut at = 0;
    while at < bytes.len() {
        if !is_base64(bytes[at]) {
            at += 1;
            continue;
        }
        let end = at + bytes[at..].iter().take_while(|byte| is_base64(**byte)).count();
        let word = &text[at..end];
        // The name of a value may stand before it, joined to it by a sign that base64 has too.
        let id = &word[word.len() - word.bytes().rev().take_while(u8::is_ascii_alphanumeric).count()..];
        if is_lower_word(id, 6) && bytes.get(end) == Some(&b'.') {
            let second =
                end + 1 + bytes[end + 1..].iter().take_while(|byte| byte.is_ascii_alphanumeric()).count();
            if is_lower_word(&text[end + 1..second], 16) {
                ranges.push(end + 1..second);
            }
        }
        if is_json_web_token(word) {
            let whole =
                end + bytes[end..].iter().take_while(|byte| is_base64(**byte) || **byte == b'.').count();
            ranges.push(at..whole);
            // Its parts are masked by now, but the last may be more than a part of it.
            at = text[end..whole].rfind('.').map_or(end, |dot| end + dot + 1);
            continue;
        } else if is_blob(word) && !is_public(&text[..at], word) {
            let value = behind_a_name(word);
            ranges.push(end - value.len()..end);
        } else if word.eq_ignore_ascii_case("bearer") && bytes.get(end) == Some(&b' ') {
            let credential =
                end + 1 + bytes[end + 1..].iter().take_while(|byte| is_token_byte(**byte)).count();
            if credential - end > 8 {
                ranges.push(end + 1..credential);
            }
        } else if word.eq_ignore_ascii_case("basic") && bytes.get(end) == Some(&b' ') {
            let credential = end + 1 + bytes[end + 1..].iter().take_while(|byte| is_base64(**byte)).count();
            let word = &text[end + 1..credential];
            if word.len().is_multiple_of(4)
                && (looks_random(word) || (word.len() >= 8 && word.ends_with('=')))
            {
                ranges.push(end + 1..credential);
            }
        }
        at = end;
    }
}

/// The fingerprint of a key or a certificate (`SHA256:` and 43 characters), and ids that Talos and S3 give.
pub(super) fn is_public(before: &str, word: &str) -> bool {
    const BYTES_MAX: usize = 44;
    const IDS: [&str; 5] = ["node_id", "host id", "request id", "request_id", "requestid"];
    let bare = before.trim_end_matches(['"', ' ', ':', '=', '\\']);
    let is_id = IDS.iter().any(|id| bare.ends_with(id));
    is_id
        || word.len() <= BYTES_MAX
            && ["SHA256:", "sha256:", "sha256/", "sha256//"].iter().any(|method| before.ends_with(method))
}

/// `NAME=` before a long value is joined to it by a sign that base64 has too; the name stays.
pub(super) fn behind_a_name(word: &str) -> &str {
    let Some((name, value)) = word.split_once('=') else { return word };
    let is_upper =
        name.bytes().all(|byte| byte.is_ascii_uppercase() || byte.is_ascii_digit() || byte == b'_');
    let is_name = !name.is_empty() && (is_upper || telling(name).is_some());
    if is_name && !value.trim_end_matches('=').is_empty() { value } else { word }
}

/// Tokens of services, by their prefix: it stays, the rest goes.
fn known_beginnings(text: &str, ranges: &mut Vec<Range<usize>>) {
    const BYTES_MIN: usize = 12;
    let bytes = text.as_bytes();
    let (mut at, mut run, mut last) = (0, 0, 0);
    while at < bytes.len() {
        if at >= run {
            run = at + bytes[at..].iter().take_while(|byte| is_part(**byte)).count();
            // What ends a sentence is no part of a token.
            let signs = |byte: &&u8| matches!(byte, b'.' | b'/');
            last = run - bytes[at..run].iter().rev().take_while(signs).count();
        }
        let begins = at == 0 || !bytes[at - 1].is_ascii_alphanumeric();
        let is_long = run >= at + BYTES_MIN;
        let known = if begins && is_long { known_at(&bytes[at..last.max(at)]) } else { None };
        let Some((prefix, length)) = known else {
            at = if is_long { at + 1 } else { run.max(at + 1) };
            continue;
        };
        ranges.push(at + prefix..at + prefix + length);
        at += prefix + length;
    }
}

const fn is_part(byte: u8) -> bool {
    byte.is_ascii_alphanumeric() || matches!(byte, b'_' | b'-' | b'.' | b'=' | b'+' | b'/' | b'~' | b'%')
}

/// Which second letters follow a first one in the prefixes: almost no word of a log is compared with one.
static SECONDS: [u128; 256] = seconds();

const fn seconds() -> [u128; 256] {
    let mut seconds = [0; 256];
    let mut at = 0;
    while at < PREFIXES.len() {
        let prefix = PREFIXES[at].0.as_bytes();
        seconds[prefix[0] as usize] |= 1 << prefix[1];
        at += 1;
    }
    seconds
}

/// How long the prefix of the token is that begins this word, and how long the rest.
fn known_at(word: &[u8]) -> Option<(usize, usize)> {
    /// Within so many bytes a token has a digit.
    const NEAR_BYTES: usize = 512;
    let secret = |(prefix, bytes_min): &(&str, usize)| {
        let rest = word.strip_prefix(prefix.as_bytes())?;
        let length = rest.len();
        let has_digit = || rest.iter().take(NEAR_BYTES).any(u8::is_ascii_digit);
        (length >= *bytes_min && has_digit()).then_some((prefix.len(), length))
    };
    let (first, second) = (*word.first()?, *word.get(1)?);
    let may_begin = second < 128 && SECONDS[usize::from(first)] >> second & 1 == 1;
    let known = if may_begin { PREFIXES.iter().find_map(secret) } else { None };
    known.or_else(|| of_azure(word))
}

/// A client secret of Azure: three characters, a digit, `Q~` and some thirty more.
fn of_azure(word: &[u8]) -> Option<(usize, usize)> {
    const REST_BYTES: usize = 31;
    let begins = word.get(3).is_some_and(u8::is_ascii_digit) && word.get(4..6) == Some(b"Q~");
    (begins && word.len() >= 6 + REST_BYTES).then(|| (6, word.len() - 6))
}

/// `K10<hash of the authorities>::server:x`, `::node:x` and `::user:x`: the hash is public, what follows the last colon is not.
fn cluster_tokens(text: &str, ranges: &mut Vec<Range<usize>>) {
    const USERS: [&str; 5] = ["server:", "node:", "agent:", "bootstrap:", "admin:"];
    const WITHOUT_HASH_BYTES_MIN: usize = 12;
    let bytes = text.as_bytes();
    let mut secrets = None;
    for (at, _) in text.match_indices("::") {
        let behind = &text[at + 2..];
        let hash =
            bytes[..at].iter().rev().take(MAX_HASH).take_while(|byte| byte.is_ascii_alphanumeric()).count();
        let has_hash = text.get(at - hash..at).is_some_and(|word| word.starts_with("K1"));
        let is_user = |byte: &u8| byte.is_ascii_alphanumeric() || matches!(byte, b'-' | b'_' | b'.');
        let named = USERS.iter().find(|user| behind.starts_with(**user)).map(|user| user.len());
        let user = if has_hash {
            let length = behind.bytes().take(MAX_HASH).take_while(is_user).count();
            (behind.as_bytes().get(length) == Some(&b':')).then_some(length + 1)
        } else {
            named
        };
        let start = at + 2 + user.unwrap_or(0);
        let is_secret = |byte: &u8| {
            !byte.is_ascii_whitespace() && !matches!(byte, b'"' | b'\'' | b',' | b'<' | b'`' | b'\\')
        };
        // Many may stand in one word; its end is looked for once.
        let end = found_once(&mut secrets, start, || {
            start + bytes[start..].iter().take_while(|byte| is_secret(byte)).count()
        });
        let length = end - start;
        let long_enough = length > 0
            && (has_hash && (user.is_some() || length > 3)
                || user.is_some() && length >= WITHOUT_HASH_BYTES_MIN);
        if long_enough && !text[start..].starts_with(MASK) {
            ranges.push(start..end);
        }
    }
}

const MAX_HASH: usize = 96;

/// Our own invitations, `rvi1.ID.SECRET`: both are hexadecimal, and the id is public. A console may have cut the secret.
fn invitations(text: &str, ranges: &mut Vec<Range<usize>>) {
    const FORM: &str = "rvi1.";
    const ID_BYTES_MAX: usize = 64;
    const SECRET_BYTES_MIN: usize = 4;
    let bytes = text.as_bytes();
    for (at, _) in text.match_indices(FORM) {
        let id = at + FORM.len();
        let hex = |byte: &&u8| byte.is_ascii_hexdigit();
        let length = bytes[id..].iter().take(ID_BYTES_MAX).take_while(hex).count();
        let secret = id + length + 1;
        if length == 0 || bytes.get(secret - 1) != Some(&b'.') {
            continue;
        }
        if bytes[secret..].iter().take(SECRET_BYTES_MIN).filter(hex).count() == SECRET_BYTES_MIN {
            let rest = bytes[secret..].iter().take_while(|byte| is_base64(**byte)).count();
            ranges.push(secret..secret + rest);
        }
    }
}

/// `$6$salt$hash` of `/etc/shadow`, `$2b$…`, `$apr1$…` and `{SSHA}…`: the method stays.
fn password_hashes(text: &str, ranges: &mut Vec<Range<usize>>) {
    const METHODS: [&str; 14] = [
        "$1$",
        "$2a$",
        "$2b$",
        "$2y$",
        "$5$",
        "$6$",
        "$7$",
        "$y$",
        "$gy$",
        "$apr1$",
        "$argon2id$",
        "$argon2i$",
        "$pbkdf2",
        "$scrypt$",
    ];
    const LDAP: [&str; 6] = ["{SSHA}", "{SHA}", "{SMD5}", "{MD5}", "{SSHA512}", "{CRYPT}"];
    let bytes = text.as_bytes();
    let mut from = 0;
    while let Some(at) = text[from..].find(['$', '{']).map(|at| from + at) {
        let rest = &text[at..];
        let method = METHODS.iter().chain(&LDAP).find(|method| rest.starts_with(**method));
        let Some(method) = method else {
            from = at + 1;
            continue;
        };
        let start = at + method.len();
        let is_part = |byte: &u8| {
            byte.is_ascii_alphanumeric() || matches!(byte, b'$' | b'.' | b'/' | b'=' | b'+' | b',' | b'-')
        };
        let length = bytes[start..].iter().take_while(|byte| is_part(byte)).count();
        if length >= 8 {
            ranges.push(start..start + length);
        }
        from = start + length;
    }
}

pub(super) const fn is_base64(byte: u8) -> bool {
    byte.is_ascii_alphanumeric() || matches!(byte, b'+' | b'/' | b'=' | b'_' | b'-')
}

const fn is_token_byte(byte: u8) -> bool {
    is_base64(byte) || matches!(byte, b'.' | b'~' | b':')
}

fn is_lower_word(word: &str, length: usize) -> bool {
    word.len() == length && word.bytes().all(|byte| byte.is_ascii_lowercase() || byte.is_ascii_digit())
}

fn is_json_web_token(word: &str) -> bool {
    let begins = |at: usize| at == 0 || matches!(word.as_bytes()[at - 1], b'=' | b'/' | b'-' | b'_');
    word.len() >= 16 && word.find("eyJ").is_some_and(begins)
}

/// A long run with a stretch of mixed case and digits. Paths and ids have no such stretch; hex digests have one case.
pub(super) fn is_blob(word: &str) -> bool {
    const STRETCH_BYTES_MIN: usize = 16;
    let is_mixed = |part: &str| {
        part.len() >= STRETCH_BYTES_MIN
            && part.bytes().any(|byte| byte.is_ascii_lowercase())
            && part.bytes().any(|byte| byte.is_ascii_uppercase())
            && part.bytes().any(|byte| byte.is_ascii_digit())
            && turns_often(part)
    };
    // The name of a node's certificate request ends in a public digest.
    word.len() >= BLOB_BYTES_MIN
        && !word.starts_with("node-csr-")
        && (word.split(['/', '-', '_', '=']).any(is_mixed) || is_random_base64(word))
}
