//! Reasons that stand where a value would: `passphrase: Invalid argument`, `token: 401 Unauthorized`, and sentences
//! (`password: expired 3 days ago`).
//!
//! What libc, PAM and the kernel's keyrings say, HTTP's statuses, and sentences of plain words. A word in which letters and
//! digits are mixed is no plain word, so that `password: is not set, use hunter22` is none of these.

use super::value::cut;

/// `strerror`, `pam_strerror`, cryptsetup and shells, in small letters.
const ERRORS: [&str; 51] = [
    "command not found",
    "invalid argument",
    "no such file or directory",
    "permission denied",
    "operation not permitted",
    "operation not supported",
    "input/output error",
    "i/o error",
    "device or resource busy",
    "no such device",
    "no such device or address",
    "no space left on device",
    "read-only file system",
    "bad file descriptor",
    "bad address",
    "bad message",
    "file exists",
    "not a directory",
    "is a directory",
    "cannot allocate memory",
    "resource temporarily unavailable",
    "interrupted system call",
    "broken pipe",
    "protocol error",
    "connection refused",
    "connection reset by peer",
    "connection timed out",
    "operation timed out",
    "no route to host",
    "host is unreachable",
    "network is unreachable",
    "operation canceled",
    "numerical result out of range",
    "value too large for defined data type",
    "required key not available",
    "key has expired",
    "key has been revoked",
    "key was rejected by service",
    "no key available with this passphrase",
    "no key available",
    "timer expired",
    "no data available",
    "authentication failure",
    "authentication token manipulation error",
    "authentication token is no longer valid; new one required",
    "authentication token expired",
    "authentication service cannot retrieve authentication info",
    "user not known to the underlying authentication module",
    "user account has expired",
    "have exhausted maximum number of retries for service",
    "conversation error",
];
/// How the phrases of HTTP's statuses begin.
const STATUSES: [&str; 16] = [
    "ok",
    "bad",
    "unauthorized",
    "forbidden",
    "not",
    "method",
    "request",
    "conflict",
    "gone",
    "too",
    "internal",
    "service",
    "gateway",
    "proxy",
    "found",
    "moved",
];
/// How a sentence about a password or a token begins.
const BEGINNINGS: [&str; 33] = [
    "password",
    "passphrase",
    "token",
    "expired",
    "expires",
    "changed",
    "unchanged",
    "invalid",
    "incorrect",
    "wrong",
    "missing",
    "rejected",
    "denied",
    "locked",
    "unlocked",
    "disabled",
    "required",
    "updated",
    "reset",
    "revoked",
    "refused",
    "failed",
    "unknown",
    "mismatch",
    "not",
    "too",
    "user",
    "account",
    "authentication",
    "must",
    "cannot",
    "already",
    "never",
];
/// Words that no sentence lacks, and that few pass phrases have.
const JOINTS: [&str; 20] = [
    "for", "by", "in", "on", "of", "at", "from", "to", "after", "before", "since", "ago", "until", "is",
    "was", "has", "with", "not", "the", "than",
];
const BYTES_MAX: usize = 192;

/// Whether a reason stands here and no value.
pub(super) fn is_reason(rest: &str) -> bool {
    let near = cut(rest, BYTES_MAX).split('\n').next().unwrap_or("").trim();
    is_error(near) || is_status(near) || is_sentence(near) || is_described(near)
}

/// Whether this is a report of plain words and numbers, as the kernel and Open vSwitch write them behind `cookie:`. The payload
/// of a header has a sign of assignment, or is one word.
pub(super) fn is_report(rest: &str) -> bool {
    const WORDS_MIN: usize = 3;
    let near = cut(rest, BYTES_MAX).split('\n').next().unwrap_or("").trim();
    near.split(' ').count() >= WORDS_MIN
        && near.starts_with(|c: char| c.is_ascii_lowercase())
        && near.split(' ').all(is_plain_word)
}

/// Whether a sentence about a password or a token begins like this, or is all of this word.
pub(super) fn begins_a_sentence(word: &str) -> bool {
    const OUTCOMES: [&str; 8] =
        ["success", "successful", "successfully", "ok", "done", "set", "created", "accepted"];
    let word = word.to_ascii_lowercase();
    BEGINNINGS.contains(&word.as_str()) || OUTCOMES.contains(&word.as_str())
}

fn is_error(near: &str) -> bool {
    let near = near.to_ascii_lowercase();
    ERRORS.iter().any(|error| {
        near.strip_prefix(error)
            .is_some_and(|rest| rest.trim_end_matches(['"', '\'', '.', ')', ',']).is_empty())
    })
}

/// `401 Unauthorized from …`, `(403) Forbidden`, `404: Not Found`.
fn is_status(near: &str) -> bool {
    let near = near.strip_prefix("HTTP ").unwrap_or(near).trim_start_matches('(');
    let digits = near.bytes().take_while(u8::is_ascii_digit).count();
    let is_code = digits == 3 && matches!(near.as_bytes()[0], b'1'..=b'5');
    let rest = near[digits..].trim_start_matches([')', ':']);
    let word = rest.trim_start().split([' ', ',', ';', ':', '.', '"']).next().unwrap_or("");
    is_code && rest.starts_with(' ') && STATUSES.contains(&word.to_ascii_lowercase().as_str())
}

/// `12 bytes` and `<set to the key 'password' in secret 'db'>` of `kubectl describe`.
fn is_described(near: &str) -> bool {
    let size = near.strip_suffix(" bytes");
    size.is_some_and(|size| !size.is_empty() && size.bytes().all(|byte| byte.is_ascii_digit()))
        || near.starts_with("<set to the key '")
}

fn is_sentence(near: &str) -> bool {
    let begins =
        near.split(' ').next().is_some_and(|word| BEGINNINGS.contains(&word.to_ascii_lowercase().as_str()));
    begins && near.split(' ').all(is_plain_word) && near.split(' ').any(|word| JOINTS.contains(&word))
}

/// Letters, a number, an address, a span of time.
fn is_plain_word(word: &str) -> bool {
    const SHORT_BYTES: usize = 4;
    let word = word.trim_matches([',', ';', ':', '.', '(', ')', '"', '\'']);
    let letters = word
        .get(1..)
        .is_none_or(|rest| rest.bytes().all(|byte| byte.is_ascii_lowercase() || matches!(byte, b'_' | b'-')));
    let is_word =
        letters && word.bytes().all(|byte| byte.is_ascii_alphabetic() || matches!(byte, b'_' | b'-'));
    let is_number =
        word.bytes().all(|byte| byte.is_ascii_digit() || matches!(byte, b'.' | b':' | b'/' | b'-'));
    let is_hex = word.len() <= 18
        && word.strip_prefix("0x").is_some_and(|hex| hex.bytes().all(|byte| byte.is_ascii_hexdigit()));
    is_word
        || is_number
        || is_hex
        || word.len() <= SHORT_BYTES && word.bytes().all(|byte| byte.is_ascii_alphanumeric() || byte == b'-')
}
