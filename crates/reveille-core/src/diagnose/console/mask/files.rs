//! Secrets of files and pages that are known by the shape of their lines: what daemons read, and what commands print.
//!
//! ```text
//!  %any : PSK "x"        bob * x *          1 SHA256 HEX:x      user bob on >x ~*     trap2sink 10.0.0.9 x
//!  password    x         secret "x";        Unseal Key 1: x     certificate key:⏎x
//! ```
//!
//! A line is taken apart once, behind a logger's prefix; of a long one only the beginning is looked at.

use std::ops::Range;

use super::MASK;
use super::columns::is_indicator;
use super::lines::prefix;
use super::names::{Telling, telling};
use super::plain::{is_message, is_plain};
use super::prose::is_made_up;
use super::random::{is_long_hex, is_random_base64};
use super::value::{cut, quoted_end};

const LINE_BYTES_MAX: usize = 1024;
/// An access list of redis names so many rights at most.
const WORDS_MAX: usize = 24;

/// Marks the secrets of lines that are known by their shape.
pub(super) fn file_secrets(text: &str, ranges: &mut Vec<Range<usize>>) {
    let mut key_follows = false;
    let mut list = None;
    let mut at = 0;
    for line in text.split_inclusive('\n') {
        let begins = prefix(line);
        let content = cut(&line[begins..], LINE_BYTES_MAX).trim_end();
        let found = Line { content, words: words(content) };
        let mut marked = Vec::new();
        if key_follows && let [key] = found.words[..] {
            let word = &content[key.0..key.1];
            marked.extend((is_long_hex(word) || is_random_base64(word)).then_some(key.0..key.1));
        }
        key_follows = announces_a_key(content);
        list = found.item(list, &mut marked);
        found.columns(&mut marked);
        found.of_daemons(&mut marked);
        let is_open = |range: &Range<usize>| {
            let word = &content[range.clone()];
            word.trim_matches(['"', '\'', ',', ';']) != MASK && !is_plain(word)
        };
        ranges.extend(
            marked
                .into_iter()
                .filter(is_open)
                .map(|range| at + begins + range.start..at + begins + range.end),
        );
        at += line.len();
    }
}

/// `[upload-certs] Using certificate key:` of kubeadm, and its like.
fn announces_a_key(content: &str) -> bool {
    const KEYS: [&str; 6] = [
        "certificate key:",
        "encryption key:",
        "unseal key:",
        "recovery key:",
        "private key:",
        "secret key:",
    ];
    KEYS.iter().any(|key| {
        content.len() >= key.len()
            && content.is_char_boundary(content.len() - key.len())
            && content[content.len() - key.len()..].eq_ignore_ascii_case(key)
    })
}

/// Where the words of a line stand; what is quoted is one.
fn words(content: &str) -> Vec<(usize, usize)> {
    let mut words = Vec::new();
    let mut at = 0;
    while words.len() < WORDS_MAX {
        at += content[at..].len() - content[at..].trim_start().len();
        let rest = &content[at..];
        if rest.is_empty() {
            break;
        }
        let length = quoted_end(rest).unwrap_or_else(|| rest.find(char::is_whitespace).unwrap_or(rest.len()));
        words.push((at, at + length));
        at += length;
    }
    words
}

struct Line<'t> {
    content: &'t str,
    words: Vec<(usize, usize)>,
}

/// A list of secrets that goes on: how far in its name stands.
type List = Option<usize>;

impl<'t> Line<'t> {
    fn word(&self, nth: usize) -> &'t str {
        self.words.get(nth).map_or("", |(start, end)| &self.content[*start..*end])
    }

    fn mark(&self, nth: usize, marked: &mut Vec<Range<usize>>) {
        if let Some((start, end)) = self.words.get(nth) {
            let length = self.content[*start..*end].trim_end_matches([';', '}']).len();
            marked.push(*start..start + length);
        }
    }

    /// What this word says as a name; a bare name has no sign.
    fn tells(&self, nth: usize) -> Option<Telling> {
        let word = self.word(nth);
        let is_name = |byte: u8| byte.is_ascii_alphanumeric() || matches!(byte, b'_' | b'-');
        if word.bytes().all(is_name) { telling(word) } else { None }
    }

    /// `tokens:` with an item on each line below.
    fn item(&self, list: List, marked: &mut Vec<Range<usize>>) -> List {
        let column = self.words.first().map_or(0, |word| word.0);
        let dash = usize::from(self.word(0) == "-");
        let name = self.content[self.words.get(dash).map_or(0, |word| word.0)..].trim_end_matches(['[', ' ']);
        let name = name.strip_suffix(':').map(|name| name.trim_matches(['"', '\'', ' ']));
        let is_sign = |c: char| !c.is_ascii_alphanumeric() && !matches!(c, '_' | '-');
        // `{"tokens": [` opens one wherever it stands.
        let opens = self.content.ends_with('[');
        let name = name.map(|name| if opens { name.rsplit(is_sign).next().unwrap_or("") } else { name });
        if let Some(name) = name {
            let is_list = names_a_list(name);
            return is_list.then_some(column);
        }
        let goes_on = list.is_some_and(|of| column >= of);
        let quoted = self.word(0).starts_with(['"', '\'']) && self.words.len() <= 2;
        if !goes_on || !(dash == 1 || quoted) || self.content.contains(": ") {
            return None;
        }
        if !is_indicator(self.word(dash)) {
            self.mark(dash, marked);
        }
        list
    }

    /// `password    x` alone on its line, `neighbor 10.0.0.1 password x1y2`, `secret "x";`.
    fn columns(&self, marked: &mut Vec<Range<usize>>) {
        let count = self.words.len();
        for nth in 0..count.saturating_sub(1) {
            let value = self.word(nth + 1);
            let quoted = value.starts_with(['"', '\'']);
            let is_last = nth + 2 >= count;
            if !is_last && !quoted {
                continue;
            }
            let Some(telling @ (Telling::Word | Telling::Phrase)) = self.tells(nth) else { continue };
            let behind = &self.content[self.words[nth + 1].1..];
            let gap = &self.content[self.words[nth].1..self.words[nth + 1].0];
            let bare = value.trim_end_matches(';');
            let ends =
                behind.trim_start().starts_with(';') || (telling == Telling::Phrase && behind.is_empty());
            let is_column = count == 2 && (gap.len() > 1 || gap == "\t") && !is_message(value);
            let is_chosen = is_last
                && is_made_up(bare)
                && !names_a_method(bare)
                && (telling == Telling::Phrase || count == 2)
                && bare.len() > BOOTSTRAP_ID_BYTES;
            if quoted && ends || is_column || is_chosen {
                self.mark(nth + 1, marked);
            }
        }
    }

    /// Lines of the files of daemons.
    fn of_daemons(&self, marked: &mut Vec<Range<usize>>) {
        let count = self.words.len();
        for nth in 0..count.saturating_sub(1) {
            match (self.word(nth), self.word(nth + 1)) {
                // strongSwan and libreswan: ipsec.secrets.
                (colon, "PSK" | "XAUTH" | "EAP" | "NTLM") if colon.ends_with(':') => {
                    self.mark(nth + 2, marked)
                }
                (colon, "RSA" | "ECDSA" | "P12" | "PKCS12" | "PKCS8" | "PIN" | "BLISS")
                    if colon.ends_with(':') && self.word(nth + 3).starts_with('"') =>
                {
                    self.mark(nth + 3, marked)
                }
                // Vault prints these once.
                ("Unseal" | "Recovery", "Key") if self.word(nth + 2).ends_with(':') => {
                    self.mark(nth + 3, marked)
                }
                // Cisco, FRR and their like; net-snmp.
                ("snmp-server", "community") => self.mark(nth + 2, marked),
                ("trapcommunity", _) => self.mark(nth + 1, marked),
                ("trapsink" | "trap2sink" | "informsink" | "authcommunity", _) => self.mark(nth + 2, marked),
                ("com2sec" | "com2sec6", _) if count >= nth + 4 => self.mark(count - 1, marked),
                _ => {}
            }
        }
        self.of_chap(marked);
        self.of_clocks(marked);
        self.of_redis(marked);
    }

    /// pppd's `client server secret addresses`; a line of cron has more stars.
    fn of_chap(&self, marked: &mut Vec<Range<usize>>) {
        let (client, secret, address) = (self.word(0), self.word(2), self.word(3));
        let is_client = client.starts_with(|c: char| c.is_ascii_alphabetic() || matches!(c, '"' | '\''));
        let fits = matches!(self.words.len(), 3 | 4) && matches!(self.word(1), "*" | "\"*\"") && is_client;
        let is_address =
            matches!(address, "*" | "\"*\"" | "-") || address.starts_with(|c: char| c.is_ascii_digit());
        let is_secret = secret.starts_with('"') || is_made_up(secret);
        if fits && !secret.starts_with('*') && (is_address || address.is_empty() && is_secret) {
            self.mark(2, marked);
        }
    }

    /// Keys of chrony and ntpd: `number type key`.
    fn of_clocks(&self, marked: &mut Vec<Range<usize>>) {
        const DIGITS_MAX: usize = 10;
        const TYPES: [&str; 12] = [
            "MD5",
            "SHA",
            "SHA1",
            "SHA224",
            "SHA256",
            "SHA384",
            "SHA512",
            "RMD160",
            "AES128",
            "AES256",
            "AES128CMAC",
            "M",
        ];
        let number = self.word(0);
        let is_number = number.len() <= DIGITS_MAX && number.bytes().all(|byte| byte.is_ascii_digit());
        let commented = self.word(3).is_empty() || self.word(3).starts_with('#');
        if is_number
            && commented
            && TYPES.contains(&self.word(1))
            && let Some((start, end)) = self.words.get(2)
        {
            let form = ["HEX:", "ASCII:"]
                .iter()
                .find(|form| self.word(2).starts_with(**form))
                .map_or(0, |form| form.len());
            marked.push(start + form..*end);
        }
    }

    /// Access lists of redis: `user bob on >x ~* +@all`, `ACL SETUSER bob >x`.
    fn of_redis(&self, marked: &mut Vec<Range<usize>>) {
        let all = || (0..self.words.len()).map(|nth| self.word(nth));
        let is_user = all().any(|word| word == "user" || word.eq_ignore_ascii_case("setuser"));
        let is_right = |word: &str| {
            matches!(word, "on" | "off" | "allkeys" | "allcommands")
                || word.starts_with(['~', '&'])
                || word.starts_with("+@")
        };
        if !is_user || !all().any(is_right) {
            return;
        }
        for (start, end) in &self.words {
            let word = &self.content[*start..*end];
            let is_hash = word.starts_with('#') && is_long_hex(&word[1..]);
            let is_password = word.starts_with(['>', '<']) && word.len() > 1 && !word.starts_with(">>");
            if is_hash || is_password {
                marked.push(start + 1..*end);
            }
        }
    }
}

/// The id of a bootstrap token is no secret.
const BOOTSTRAP_ID_BYTES: usize = 6;

/// How a password is kept, and not what it is.
fn names_a_method(word: &str) -> bool {
    ["sha", "md5", "base64", "aes", "bcrypt", "x509", "ed25519"].iter().any(|method| word.starts_with(method))
}

/// `tokens`, `adminPasswords`; the `secrets` of a manifest are names of objects.
fn names_a_list(name: &str) -> bool {
    let is_plural = name.ends_with(['s', 'S']) && !name.to_ascii_lowercase().ends_with("secrets");
    let is_name = name.bytes().all(|byte| byte.is_ascii_alphanumeric() || matches!(byte, b'_' | b'-'));
    is_plural && is_name && matches!(telling(name), Some(Telling::Word | Telling::Phrase))
}
