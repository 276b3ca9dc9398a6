//! A secret in a sentence: `the password for admin is Xk29dkeLs0`, `PASSWORD 'x'` of SQL, `login x password y` of `.netrc`.

use std::ops::Range;

use super::MASK;
use super::names::Telling;
use super::plain::{is_message, is_plain};
use super::random::{is_long_hex, looks_random};
use super::value::{cut, quoted_end};

/// The secret stands within so many words behind its name.
const WORDS_MAX: usize = 5;
const WORD_BYTES_MAX: usize = 512;

/// The random word behind a name that no sign follows.
pub(super) fn after(text: &str, name: &Range<usize>, telling: Telling) -> Option<Range<usize>> {
    if matches!(telling, Telling::Line | Telling::IfRandom) {
        return None;
    }
    let mut at = name.end + text[name.end..].bytes().take_while(|byte| matches!(byte, b'"' | b'\'')).count();
    let mut says_is = false;
    for nth in 0..WORDS_MAX {
        let rest = &text[at..];
        let spaces = rest.bytes().take_while(|byte| matches!(byte, b' ' | b'\t')).count();
        if spaces == 0 {
            return None;
        }
        at += spaces;
        let length =
            text[at..].bytes().take(WORD_BYTES_MAX).take_while(|byte| !byte.is_ascii_whitespace()).count();
        if length == 0 || !text.is_char_boundary(at + length) {
            return None;
        }
        let word = &text[at..at + length];
        if word.contains(MASK) || is_plain(word) {
            return None;
        }
        let line = || cut(&text[at..], WORD_BYTES_MAX).split('\n').next().unwrap_or("").trim_end();
        if nth == 0 && is_community(&text[name.clone()]) && !is_message(word) {
            // `rocommunity x 10.0.0.0/8`: what follows is whom it lets in.
            return Some(at..at + length);
        }
        if is_directive(&text[name.clone()]) {
            // `rootpw --plaintext x`, `password_pbkdf2 root x`: the last word.
            let line = line();
            let last = line.rsplit([' ', '\t']).next().unwrap_or("");
            let start = at + line.len() - last.len();
            let said = is_message(word) || last.contains(MASK) || is_plain(last);
            return (!said).then(|| start..word_end(text, start));
        }
        if nth == 0 && telling == Telling::Phrase && is_given(text, name, word) {
            return Some(at..quoted_end(line()).map_or_else(|| word_end(text, at), |length| at + length));
        }
        let bare = word.trim_matches(['"', '\'', '`', ',', ';', '.', ')', '(', '\\']);
        // `StatusCode=401` is a value of a name of its own.
        if bare.trim_end_matches('=').contains('=') {
            return None;
        }
        let is_it = looks_random(bare)
            || (says_is && (is_long_hex(bare) || (telling == Telling::Phrase && is_made_up(bare))));
        if is_it {
            return Some(at..word_end(text, at));
        }
        // `temporary password is generated for root@localhost: x`.
        says_is = matches!(bare, "is" | "was" | "=" | ":" | "->") || word.ends_with(':');
        at += length;
    }
    None
}

fn word_end(text: &str, start: usize) -> usize {
    text[start..].find(|c: char| c.is_ascii_whitespace()).map_or(text.len(), |at| start + at)
}

/// Directives whose value a space sets apart: redis, keepalived, kickstart, LDAP, GRUB, SNMP.
fn is_directive(name: &str) -> bool {
    const DIRECTIVES: [&str; 8] = [
        "requirepass",
        "masterauth",
        "auth_pass",
        "rootpw",
        "bindpw",
        "rootbindpw",
        "password_pbkdf2",
        "sshpw",
    ];
    DIRECTIVES.contains(&name)
}

/// Communities of SNMP, for IPv6 too.
fn is_community(name: &str) -> bool {
    matches!(name, "rocommunity" | "rwcommunity" | "rocommunity6" | "rwcommunity6")
}

/// `PASSWORD 'x'` of SQL, and `login x password y` of `.netrc`.
fn is_given(text: &str, name: &Range<usize>, word: &str) -> bool {
    const NEAR_BYTES: usize = 96;
    if word.starts_with('\'') {
        return true;
    }
    let mut from = name.start.saturating_sub(NEAR_BYTES);
    while !text.is_char_boundary(from) {
        from += 1;
    }
    let near = &text[from..name.start];
    near.split_whitespace().rev().nth(1).is_some_and(|word| word == "login")
}

/// Letters with a digit among them, behind `is`: people choose such passwords, and no message goes on like that.
pub(super) fn is_made_up(word: &str) -> bool {
    const BYTES_MIN: usize = 6;
    word.len() >= BYTES_MIN
        && word.bytes().all(|byte| byte.is_ascii_alphanumeric())
        && word.bytes().any(|byte| byte.is_ascii_digit())
        && word.bytes().any(|byte| byte.is_ascii_alphabetic())
}
