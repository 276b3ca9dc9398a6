//! A secret in a sentence: `the password for admin is Xk29dkeLs0`, `PASSWORD 'x'` of SQL, `login x password y` of `.netrc`.

use std::ops::Range;

use super::MASK;
use super::messages::begins_a_sentence;
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
    // `arguments to pass when`: a verb gives none.
    let is_verb = text[name.clone()].eq_ignore_ascii_case("pass");
    let mut said = Said { is_verb, ..Said::default() };
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
        // `password changed to x`.
        if word.contains(MASK) || is_plain(word) && word != "changed" {
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
        if nth == 0 && is_given(text, name, telling, word) {
            return Some(at..quoted_end(line()).map_or_else(|| word_end(text, at), |length| at + length));
        }
        let bare = word.trim_matches(['"', '\'', '`', ',', ';', '.', ')', '(', '\\']);
        // `StatusCode=401` is a value of a name of its own.
        if bare.trim_end_matches('=').contains('=') {
            return None;
        }
        let is_it = looks_random(bare)
            || said.is && is_long_hex(bare)
            || telling == Telling::Phrase && said.is_password(word, bare, line())
            || telling == Telling::Word && said.is_token(bare, line());
        if is_it {
            return Some(at..word_end(text, at));
        }
        said.take(word, bare, || sets(text, name.start, at));
        at += length;
    }
    None
}

/// What the sentence said so far.
#[derive(Clone, Copy, Debug, Default)]
struct Said {
    is_verb: bool,
    /// The word before announces a value: `temporary password is generated for root@localhost: x`.
    is: bool,
    /// With a colon.
    announces: bool,
    /// For whom it is.
    for_a_user: bool,
    gives: Gives,
}

/// Whether the word before gives the password, and which words are taken for it.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
enum Gives {
    #[default]
    Nothing,
    /// `is`, `set to`: one that no sentence goes on with.
    Chosen,
    /// `for root:`: that, and any word that is the last.
    Last,
}

impl Said {
    fn take(&mut self, word: &str, bare: &str, sets: impl FnOnce() -> bool) {
        self.is = matches!(bare, "is" | "was" | "=" | ":" | "->") || word.ends_with(':');
        self.for_a_user |= bare == "for";
        self.announces = word.ends_with(':');
        // `password (root): x`.
        let of_a_user = self.announces && word.starts_with('(');
        self.gives = match bare.trim_end_matches(':') {
            _ if self.is_verb => Gives::Nothing,
            _ if self.for_a_user && self.announces => Gives::Last,
            _ if of_a_user => Gives::Chosen,
            "is" | "->" => Gives::Chosen,
            "generated" | "created" | "set" | "changed" | "reset" if self.announces => Gives::Chosen,
            "to" if sets() => Gives::Chosen,
            _ => Gives::Nothing,
        };
    }

    /// `Your API key is: x`; without the colon a message goes on.
    fn is_token(self, bare: &str, line: &str) -> bool {
        self.announces && self.gives == Gives::Chosen && is_chosen(bare) && !is_message(line)
    }

    /// Whether this word is the password that was announced, and no message goes on with it: `password for root: expired`.
    fn is_password(self, word: &str, bare: &str, line: &str) -> bool {
        let goes_on = is_message(line) || begins_a_sentence(bare);
        self.is && is_made_up(bare)
            || self.gives != Gives::Nothing && !goes_on && is_chosen(bare)
            || self.gives == Gives::Last && !goes_on && word == line
    }
}

/// Whether the sentence around a name says that it is set: `Setting root password to x`. `sent the password to
/// db.example.com` gives none.
fn sets(text: &str, name_start: usize, until: usize) -> bool {
    const NEAR_BYTES: usize = 48;
    let near = &text.as_bytes()[name_start.saturating_sub(NEAR_BYTES)..until];
    let near = near.rsplit(|byte| *byte == b'\n').next().unwrap_or(near);
    ["set", "chang", "updat"]
        .iter()
        .any(|verb| near.windows(verb.len()).any(|part| part.eq_ignore_ascii_case(verb.as_bytes())))
}

fn word_end(text: &str, start: usize) -> usize {
    text[start..].find(|c: char| c.is_ascii_whitespace()).map_or(text.len(), |at| start + at)
}

/// Directives whose value a space sets apart: redis, keepalived, kickstart, LDAP, GRUB, SNMP.
fn is_directive(name: &str) -> bool {
    const DIRECTIVES: [&str; 9] = [
        "requirepass",
        "masterauth",
        "auth_pass",
        "auth-pass",
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

/// `PASSWORD 'x'` of SQL, `login x password y` of `.netrc`, `neighbor 10.0.0.1 password x`, `setenv DB_PASS x`.
fn is_given(text: &str, name: &Range<usize>, telling: Telling, word: &str) -> bool {
    const NEAR_BYTES: usize = 96;
    let from = text.ceil_char_boundary(name.start.saturating_sub(NEAR_BYTES));
    let mut words = text[from..name.start].split_whitespace().rev();
    let before = [words.next(), words.next()];
    let is_phrase = telling == Telling::Phrase;
    if is_phrase && (word.starts_with('\'') || before[1] == Some("login")) {
        return true;
    }
    // `created user bob with password x`; a method has no digit, a setting its sign.
    let bare = word.trim_matches(['"', '\'', '`', ',', ';', '.', ')', '(']);
    let has_digit = bare.bytes().any(|byte| byte.is_ascii_digit()) && !bare.contains('=');
    if is_phrase && before[0] == Some("with") && has_digit && is_chosen(bare) {
        return true;
    }
    let is_set = matches!(before[0], Some("setenv" | "ENV" | "-gx" | "-Ux"));
    (is_set || is_phrase && before[1] == Some("neighbor")) && !is_message(word) && !begins_a_sentence(word)
}

/// What people choose and no sentence goes on with: a digit or a sign is in it. An address is none, nor is a word with its mark
/// of exclamation.
pub(super) fn is_chosen(word: &str) -> bool {
    const BYTES_MIN: usize = 4;
    let of_number = |byte: u8| byte.is_ascii_digit() || matches!(byte, b'.' | b':' | b'/' | b'-' | b'%');
    let is_sign = |byte: u8| {
        byte.is_ascii_graphic() && !byte.is_ascii_alphabetic() && !matches!(byte, b'-' | b'\'' | b'/')
    };
    let is_address = word.contains("://")
        || word.split_once('@').is_some_and(|(user, host)| !user.is_empty() && host.contains('.'));
    word.len() >= BYTES_MIN
        && word.trim_end_matches(['!', '?', ':']).bytes().any(is_sign)
        && !word.contains("</")
        && !word.bytes().all(of_number)
        && !is_address
}

/// Letters with a digit among them, behind `is`: people choose such passwords, and no message goes on like that.
pub(super) fn is_made_up(word: &str) -> bool {
    const BYTES_MIN: usize = 6;
    word.len() >= BYTES_MIN
        && word.bytes().all(|byte| byte.is_ascii_alphanumeric())
        && word.bytes().any(|byte| byte.is_ascii_digit())
        && word.bytes().any(|byte| byte.is_ascii_alphabetic())
}
