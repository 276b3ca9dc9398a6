//! Takes secrets out of text before anybody keeps or quotes it.
//!
//! A console shows what first boot saw: join tokens, cloud passwords, keys, whole user-data payloads. Text goes through
//! [`mask_secrets`] before it is read any further, so that nothing which is quoted later can hold one. Masking keeps
//! every line break (line numbers stay true) and is idempotent. When in doubt it masks: a lost word costs less than a
//! leaked one. What it must not do is eat the facts of a failure: addresses, paths, ids, certificate hashes and token
//! *ids* stay.
//!
//! Four detectors mark byte ranges, each in one pass: private keys, words that follow a secret's name, tokens by their
//! shape, and passwords in URLs. The ranges are then blotted out together. What a guest prints is under nobody's control, so
//! that nothing is walked again for each of many matches in it.

use std::borrow::Cow;
use std::ops::Range;

const MASK: &str = "[masked]";
/// How a private key ends.
const END: &str = "-----END";

/// Names whose value is a secret, wherever they stand in a key (`OS_PASSWORD`, `db-password`, `"apiToken"`).
const SECRET_NAMES: [&str; 17] = [
    "password",
    "passwd",
    "passphrase",
    "secret",
    "token",
    "apikey",
    "api_key",
    "api-key",
    "private_key",
    "private-key",
    "privatekey",
    "access_key",
    "access-key",
    "accesskey",
    "client-key-data",
    "credential",
    "certificate-key",
];
/// Header and payload names: everything after them, to the end of the line, is secret.
const SECRET_LINES: [&str; 5] = ["authorization", "x-auth-token", "x-subject-token", "user-data", "userdata"];

/// A run of base64 that is shorter than this is taken for a word.
const BLOB_BYTES_MIN: usize = 40;

/// The same text with every recognised secret replaced, or the text itself when there is none.
pub fn mask_secrets(text: &str) -> Cow<'_, str> {
    match uncoloured(text) {
        Cow::Borrowed(text) => masked(text),
        Cow::Owned(text) => Cow::Owned(masked(&text).into_owned()),
    }
}

/// The text without a terminal's control sequences: a colour in the middle of `token=…` would hide its name from us and from
/// nobody who reads it. Loggers write the escape byte in several ways.
fn uncoloured(text: &str) -> Cow<'_, str> {
    const ESCAPES: [&str; 7] = ["\u{1b}", "#033", "\\u001b", "\\u001B", "\\x1b", "\\033", ""];
    let sequence = |rest: &str| {
        let escape = ESCAPES
            .into_iter()
            .find(|escape| rest.strip_prefix(escape).is_some_and(|rest| rest.starts_with('[')))?;
        let codes = &rest[escape.len() + 1..];
        let end = codes.find(|c: char| !c.is_ascii_digit() && c != ';' && c != '?')?;
        let letter = codes.as_bytes()[end];
        // Without its escape byte only a colour with its number is sure to be one: "[12]", "[K" and "[mask" are ordinary text.
        let ends = if escape.is_empty() { letter == b'm' && end > 0 } else { letter.is_ascii_alphabetic() };
        ends.then_some(escape.len() + 1 + end + 1)
    };
    let mut out = String::new();
    let mut done = 0;
    let mut at = 0;
    while let Some(found) = text[at..].find(['\u{1b}', '#', '\\', '[']).map(|found| at + found) {
        at = match sequence(&text[found..]) {
            Some(length) => {
                out.push_str(&text[done..found]);
                done = found + length;
                done
            }
            None => found + 1,
        };
    }
    if done == 0 {
        return Cow::Borrowed(text);
    }
    out.push_str(&text[done..]);
    Cow::Owned(out)
}

fn masked(text: &str) -> Cow<'_, str> {
    let mut ranges = Vec::new();
    private_keys(text, &mut ranges);
    named_values(text, &mut ranges);
    shaped_tokens(text, &mut ranges);
    url_passwords(text, &mut ranges);
    if ranges.is_empty() {
        return Cow::Borrowed(text);
    }
    ranges.sort_unstable_by_key(|range| (range.start, range.end));
    let mut masked = String::with_capacity(text.len());
    let mut done = 0;
    for range in ranges {
        if range.end <= done {
            continue;
        }
        let start = range.start.max(done);
        masked.push_str(&text[done..start]);
        // An overlap continues a stretch that is masked already.
        if range.start >= done && !masked.ends_with(MASK) {
            masked.push_str(MASK);
        }
        masked.extend(text[start..range.end].matches('\n'));
        done = range.end;
    }
    masked.push_str(&text[done..]);
    Cow::Owned(masked)
}

/// From `BEGIN … PRIVATE KEY` to its `END`. Where the end is cut off, as far as the lines look like key material.
fn private_keys(text: &str, ranges: &mut Vec<Range<usize>>) {
    const NEAR_BYTES: usize = 16 * 1024;
    let mut from = 0;
    while let Some(at) = text[from..].find("PRIVATE KEY-----").map(|at| from + at + "PRIVATE KEY-----".len())
    {
        from = at;
        let rest = &text[at..];
        if is_end_marker(text, at) {
            continue;
        }
        let end = cut(rest, NEAR_BYTES).find(END).unwrap_or_else(|| key_lines(rest));
        if end > 0 {
            ranges.push(at..at + end);
        }
        from = at + end;
    }
}

/// The marker that ends a key has its `END` near by, and on the same line.
fn is_end_marker(text: &str, marker_end: usize) -> bool {
    const NEAR_BYTES: usize = 64;
    let near = &text.as_bytes()[marker_end.saturating_sub(NEAR_BYTES)..marker_end];
    let line = near.iter().rposition(|byte| *byte == b'\n').map_or(near, |at| &near[at + 1..]);
    line.windows(END.len()).any(|part| part == END.as_bytes())
}

/// At most so many bytes of the text.
fn cut(text: &str, bytes_max: usize) -> &str {
    let mut end = text.len().min(bytes_max);
    while !text.is_char_boundary(end) {
        end -= 1;
    }
    &text[..end]
}

/// How many bytes of lines whose last word is key material follow.
fn key_lines(text: &str) -> usize {
    let mut end = 0;
    for line in text.split_inclusive('\n') {
        let word = line.split_whitespace().next_back().unwrap_or("");
        if !word.bytes().all(is_base64) {
            break;
        }
        end += line.len();
    }
    end
}

/// `name=value`, `name: value`, `"name": "value"`, `--name value`: the value.
fn named_values(text: &str, ranges: &mut Vec<Range<usize>>) {
    let lower = text.to_ascii_lowercase();
    for name in SECRET_NAMES.iter().chain(&SECRET_LINES) {
        let whole_line = SECRET_LINES.contains(name);
        let (mut key, mut ends) = (Key::default(), Ends::default());
        for (at, _) in lower.match_indices(name) {
            // A guest may write a name ten thousand times in one word: the word is walked once, and so is a value.
            if key.range.end <= at {
                key = Key::around(&lower, at);
            }
            let Some(start) = key.value_of(&lower, at + name.len()) else { continue };
            let end = if whole_line {
                ends.line(text, start)
            } else {
                ends.value(text, start, name.starts_with("pass"))
            };
            if end > start && &text[start..end] != MASK {
                ranges.push(start..end);
            }
        }
    }
}

/// A key with a secret's name in it, and where its value begins.
#[derive(Clone, Debug, Default)]
struct Key {
    range: Range<usize>,
    value: Option<usize>,
}

impl Key {
    /// The key that stands around `at`; without a value when this is none.
    fn around(lower: &str, at: usize) -> Self {
        let key_byte = |byte: &u8| byte.is_ascii_alphanumeric() || *byte == b'_' || *byte == b'-';
        let start = at - lower[..at].bytes().rev().take_while(key_byte).count();
        let end = at + lower[at..].bytes().take_while(key_byte).count();
        // A path segment of that name (`/latest/user_data`) is no key.
        let in_path = start > 0 && lower.as_bytes()[start - 1] == b'/';
        let value = if in_path { None } else { value_start(lower, start, end) };
        Self { range: start..end, value }
    }

    /// Where its value begins, when it is of the secret whose name ends at `name_end`.
    fn value_of(&self, lower: &str, name_end: usize) -> Option<usize> {
        // `token-id`, `secret-name`, `password-file` name something that is not the secret.
        let suffix = lower.get(name_end..self.range.end).unwrap_or("").trim_start_matches(['-', '_']);
        let names_another = ["id", "name", "file", "path", "ref", "ttl", "url"].contains(&suffix);
        self.value.filter(|_| !names_another)
    }
}

/// Where the value of this key begins; `None` when this is no key with a value.
fn value_start(lower: &str, key_start: usize, key_end: usize) -> Option<usize> {
    let is_flag = lower[key_start..].starts_with("--");
    // The quote of JSON within JSON stands behind backslashes.
    let rest = lower[key_end..].trim_start_matches('\\');
    let rest = rest.strip_prefix(['"', '\'']).unwrap_or(rest);
    let unspaced = rest.trim_start_matches([' ', '\t']);
    let value = match unspaced.strip_prefix(['=', ':']) {
        Some(value) => value,
        None if is_flag && unspaced.len() < rest.len() => unspaced,
        None => return None,
    };
    let value = value.trim_start_matches([' ', '\t', '=']);
    Some(lower.len() - value.len())
}

fn line_end(text: &str, start: usize) -> usize {
    text[start..].find('\n').map_or(text.len(), |at| start + at)
}

/// Where lines and words end, found once for all values that begin in them. Values are asked for in the order of their
/// beginnings.
#[derive(Clone, Debug, Default)]
struct Ends {
    line: Option<Range<usize>>,
    word: Option<Range<usize>>,
}

impl Ends {
    fn line(&mut self, text: &str, start: usize) -> usize {
        found_once(&mut self.line, start, || line_end(text, start))
    }

    /// A quoted value ends at its closing quote, a bare one at the next space: a bracket or a comma may be part of a
    /// password. A bare pass*phrase* may even hold spaces.
    fn value(&mut self, text: &str, start: usize, may_hold_spaces: bool) -> usize {
        let end = self.line(text, start);
        let value = &text[start..end];
        if value.starts_with(MASK) {
            return start + MASK.len();
        }
        let slashes = value.len() - value.trim_start_matches('\\').len();
        if let Some(quote @ ('"' | '\'')) = value[slashes..].chars().next() {
            // Behind as many backslashes as it was opened.
            let closing = format!("{}{quote}", &value[..slashes]);
            return value[slashes + 1..]
                .find(&closing)
                .map_or(end, |at| start + slashes + 1 + at + closing.len());
        }
        // `Bearer abc` and `Basic abc` are one value of two words.
        let has_scheme = ["bearer ", "basic "]
            .iter()
            .any(|word| value.get(..word.len()).is_some_and(|start| start.eq_ignore_ascii_case(word)));
        if may_hold_spaces || has_scheme {
            return end;
        }
        found_once(&mut self.word, start, || value.find(char::is_whitespace).map_or(end, |at| start + at))
    }
}

/// The end of a stretch that is the same for each beginning within it.
fn found_once(known: &mut Option<Range<usize>>, start: usize, find: impl FnOnce() -> usize) -> usize {
    match known {
        Some(known) if (known.start..=known.end).contains(&start) => known.end,
        _ => known.insert(start..find()).end,
    }
}

/// Bootstrap tokens (six characters, a dot, sixteen: only the second part is secret), JSON web tokens, and long base64.
fn shaped_tokens(text: &str, ranges: &mut Vec<Range<usize>>) {
    let bytes = text.as_bytes();
    let mut at = 0;
    while at < bytes.len() {
        if !is_base64(bytes[at]) {
            at += 1;
            continue;
        }
        let end = at + bytes[at..].iter().take_while(|byte| is_base64(**byte)).count();
        let word = &text[at..end];
        if is_lower_word(word, 6) && bytes.get(end) == Some(&b'.') {
            let second = end + 1 + bytes[end + 1..].iter().take_while(|byte| is_base64(**byte)).count();
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
        } else if is_blob(word) {
            ranges.push(at..end);
        } else if is_scheme(word) && bytes.get(end) == Some(&b' ') {
            let credential =
                end + 1 + bytes[end + 1..].iter().take_while(|byte| is_token_byte(**byte)).count();
            if credential - end > 8 {
                ranges.push(end + 1..credential);
            }
        }
        at = end;
    }
}

const fn is_base64(byte: u8) -> bool {
    byte.is_ascii_alphanumeric() || matches!(byte, b'+' | b'/' | b'=' | b'_' | b'-')
}

const fn is_token_byte(byte: u8) -> bool {
    is_base64(byte) || matches!(byte, b'.' | b'~' | b':')
}

fn is_scheme(word: &str) -> bool {
    word.eq_ignore_ascii_case("bearer")
}

fn is_lower_word(word: &str, length: usize) -> bool {
    word.len() == length && word.bytes().all(|byte| byte.is_ascii_lowercase() || byte.is_ascii_digit())
}

fn is_json_web_token(word: &str) -> bool {
    word.len() >= 16 && word.find("eyJ").is_some_and(|at| at == 0 || word.as_bytes()[at - 1] == b'=')
}

/// A long run with a stretch of mixed case and digits. Paths and ids have no such stretch; hex digests have one case.
fn is_blob(word: &str) -> bool {
    const STRETCH_BYTES_MIN: usize = 16;
    let is_mixed = |part: &str| {
        part.len() >= STRETCH_BYTES_MIN
            && part.bytes().any(|byte| byte.is_ascii_lowercase())
            && part.bytes().any(|byte| byte.is_ascii_uppercase())
            && part.bytes().any(|byte| byte.is_ascii_digit())
    };
    word.len() >= BLOB_BYTES_MIN && word.split(['/', '-', '_', '=']).any(is_mixed)
}

/// `scheme://user:password@host`: the password.
fn url_passwords(text: &str, ranges: &mut Vec<Range<usize>>) {
    for (at, _) in text.match_indices("://") {
        let start = at + "://".len();
        let authority = text[start..].split(['/', ' ', '"', '\'', '\n', '?']).next().unwrap_or("");
        let Some(host) = authority.rfind('@') else { continue };
        if let Some(colon) = authority[..host].find(':').filter(|colon| colon + 1 < host) {
            ranges.push(start + colon + 1..start + host);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const CANARY: &str = "cAnArY77";

    /// Every way in which a secret was seen on a console, with the canary or a token in its place.
    #[test]
    fn canaries_do_not_survive() {
        let blob = "H4sIAAAAAAAA".to_owned() + &"Qx7bT9zKwL2m".repeat(8);
        let jwt = "eyJhbGciOiJSUzI1NiIsImtpZCI6IiJ9.eyJzdWIiOiJub2RlIn0.c2lnbmF0dXJlLWJ5dGVz";
        let table: Vec<(String, &str)> = vec![
            ("kubeadm join 10.0.0.1:6443 --token abcdef.0123456789abcdef".into(), "0123456789abcdef"),
            ("level=info msg=\"token q1w2e3.zxcvbnmasdfghjkl used\"".into(), "zxcvbnmasdfghjkl"),
            (format!("OS_PASSWORD={CANARY}"), CANARY),
            (format!("+ export DB_PASSWD='{CANARY} two words'"), "two words"),
            (format!("\"adminPassword\": \"{CANARY}\", \"user\": \"x\""), CANARY),
            (format!("password: {CANARY}"), CANARY),
            (format!("password: three plain words {CANARY}"), CANARY),
            (format!("password=a]b,c;{CANARY}"), CANARY),
            (format!("application_credential_secret = {CANARY}"), CANARY),
            (format!("./agent --secret {CANARY} --name n"), CANARY),
            (format!("K3S_TOKEN=K10{CANARY}::server:{CANARY}"), CANARY),
            (format!("X-Auth-Token: gAAAAA{CANARY}"), CANARY),
            (format!("> Authorization: Basic {CANARY}"), CANARY),
            (format!("Authorization: Bearer {CANARY}.{CANARY}"), CANARY),
            (format!("sent header bearer {CANARY}{CANARY}"), CANARY),
            (format!("jwt {jwt}"), "c2lnbmF0dXJlLWJ5dGVz"),
            (format!("signature={jwt}"), "eyJzdWIi"),
            (format!("Unhandled non-multipart (text/x-not-multipart) userdata: 'b'{CANARY} x'..."), CANARY),
            (format!("https://robot:{CANARY}@registry.example/v2/"), CANARY),
            (format!("content: {blob}"), "Qx7bT9zKwL2m"),
            (
                format!("-----BEGIN RSA PRIVATE KEY-----\n{CANARY}\nab=\n-----END RSA PRIVATE KEY-----"),
                CANARY,
            ),
            (format!("[ 9.1] init: -----BEGIN PRIVATE KEY-----\n[ 9.2] init: {CANARY}+/a"), CANARY),
            (format!("client-key-data: {CANARY}"), CANARY),
            (format!("kubeadm join --certificate-key {CANARY}"), CANARY),
            (format!("\u{1b}[36mtoken\u{1b}[0m={CANARY}"), CANARY),
            (format!("time=9 #033[36mtoken#033[0m={CANARY} [36mdb-password[0m: {CANARY}"), CANARY),
            (
                format!("\u{1b}[33mabcdef.c4naryc4naryc4na\u{1b}[0m {CANARY}").replace(CANARY, "token=1"),
                "c4naryc4naryc4na",
            ),
            (format!("body={{\\\"password\\\":\\\"{CANARY} two\\\",\\\"user\\\":1}}"), "two"),
        ];
        for (text, secret) in table {
            assert!(text.contains(secret), "the canary is in the sample: {text}");
            let masked = mask_secrets(&text);
            assert!(!masked.contains(secret), "{masked}");
            assert!(masked.contains(MASK), "{masked}");
            assert_eq!(masked.matches('\n').count(), text.matches('\n').count(), "{masked}");
            assert_eq!(mask_secrets(&masked), masked, "masking twice changes nothing");
        }
    }

    #[test]
    fn facts_of_a_failure_stay() {
        for text in [
            "ignition[512]: GET http://169.254.169.254/openstack/latest/user_data: attempt #3",
            "ignition[242]: GET http://169.254.169.254/2009-04-04/user-data: attempt #1",
            "failed: TestNodeV1Beta1Status of 3",
            "could not find a JWS signature in the cluster-info ConfigMap for token ID \"q1w2e3\"",
            "none of the public keys \"sha256:7a0cd3cc18ea132b33e1921b2d74c4bfc516802b4800c89e595ae04b3d1cf3aa\" are pinned",
            "Failed running /var/lib/cloud/instances/i-06d8b0458264aaaaa/scripts/part-001 [1]",
            "open /etc/kubernetes/pki/ca.crt: no such file or directory",
            "[ERROR FileContent--proc-sys-net-bridge-bridge-nf-call-iptables]: contents are not set to 1",
            "k8s.io/client-go/informers/factory.go:150: Failed to watch *v1.Node: Unauthorized",
            "node-7xk2p login:",
            "secret \"os-cloud-config\" not found",
            "mounting /dev/disk/by-uuid/3f0c7e30-1111-4222-8333-444455556666",
            "token-ttl: 24h0m0s",
        ] {
            assert!(matches!(mask_secrets(text), Cow::Borrowed(_)), "{}", mask_secrets(text));
        }
    }

    #[test]
    fn the_id_of_a_bootstrap_token_stays() {
        let masked = mask_secrets("I0101 using token abcdef.0123456789abcdef now");
        assert_eq!(masked, "I0101 using token abcdef.[masked] now");
    }

    #[test]
    fn what_follows_a_key_stays() {
        let text = "-----BEGIN PRIVATE KEY-----\nabc\n-----END PRIVATE KEY-----\nnext\nline";
        assert_eq!(
            mask_secrets(text),
            "-----BEGIN PRIVATE KEY-----[masked]\n\n-----END PRIVATE KEY-----\nnext\nline"
        );
    }

    /// What is found once for many matches in one word or line is what each of them would have found.
    #[test]
    fn secret_behind_many_names_does_not_survive() {
        for (text, secret) in [
            (format!("{}{CANARY} stays", "token=".repeat(50)), CANARY),
            (format!("{}={CANARY} stays", "token".repeat(50)), CANARY),
            (format!("--{}token {CANARY} stays", "a".repeat(300)), CANARY),
            (format!("token{}={CANARY} stays", "a".repeat(300)), CANARY),
            (format!("token=token=bearer {CANARY}"), CANARY),
            (format!("token=token=\"two {CANARY}\" stays"), CANARY),
            (format!("token=a token_id=b token={CANARY} stays"), CANARY),
            (format!("token-id-token: {CANARY} stays"), CANARY),
            (format!("token=1\ntoken=2 token={CANARY} stays"), CANARY),
            (format!("{}bearer {CANARY}{CANARY} stays", "eyJhbGciOiJSUzI1NiJ9.".repeat(5)), CANARY),
            (format!("-----END PRIVATE KEY-----\n-----BEGIN PRIVATE KEY-----{CANARY}\nnext (stays"), CANARY),
        ] {
            let masked = mask_secrets(&text);
            assert!(!masked.contains(secret), "{text}\n{masked}");
            assert_eq!(masked.ends_with("stays"), text.ends_with("stays"), "{masked}");
            assert_eq!(mask_secrets(&masked), masked);
        }
        assert_eq!(
            mask_secrets("token=a token-id=b secret_name: c"),
            "token=[masked] token-id=b secret_name: c"
        );
    }

    #[test]
    fn any_text_is_taken() {
        for text in [
            "",
            "\n",
            "token=",
            "--token",
            "é password: ü",
            "://@",
            "://a:@b",
            "PRIVATE KEY-----",
            "Ünïcode token=ü;x",
        ] {
            let masked = mask_secrets(text);
            assert_eq!(mask_secrets(&masked), masked);
        }
        assert_eq!(mask_secrets("é password: ü."), "é password: [masked]");
    }
}
