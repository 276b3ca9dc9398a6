//! Values that stand behind a secret's name and are none: what diagnosis needs is not masked.
//!
//! Literals, placeholders and paths are facts of the allow lists of gitleaks (`[allowlist]` of `config/gitleaks.toml`) and of
//! detect-secrets (`plugins/keyword.py`, its false positives). The words of messages are those that kubeadm, the kubelet,
//! client-go, k3s and cloud-init write behind `token:`, `secret:` and `credentials:`.

use super::random::is_digest;
use super::value::cut;

/// Values that are no secret, whatever their name.
const LITERALS: [&str; 33] = [
    "true",
    "false",
    "null",
    "none",
    "nil",
    "~",
    "yes",
    "no",
    "on",
    "off",
    "enabled",
    "disabled",
    "undefined",
    "undef",
    "empty",
    "unset",
    "redacted",
    "masked",
    "hidden",
    "[]",
    "{}",
    "<nil>",
    "<none>",
    "todo",
    "changed",
    "unchanged",
    "expired",
    "invalid",
    "missing",
    "unknown",
    "denied",
    "rejected",
    "failed",
];
/// How a message goes on behind a colon, or behind an option that it names.
const MESSAGE: [&str; 107] = [
    "a",
    "an",
    "and",
    "are",
    "argument",
    "authentication",
    "authorization",
    "bad",
    "be",
    "cannot",
    "can",
    "can't",
    "context",
    "could",
    "couldn't",
    "decode",
    "decoding",
    "denied",
    "dial",
    "did",
    "do",
    "does",
    "eof",
    "error",
    "errors",
    "expected",
    "expired",
    "expires",
    "failed",
    "failure",
    "failing",
    "flag",
    "for",
    "forbidden",
    "found",
    "from",
    "get",
    "getting",
    "given",
    "got",
    "has",
    "have",
    "head",
    "http",
    "https",
    "if",
    "illegal",
    "in",
    "incorrect",
    "internal",
    "invalid",
    "is",
    "it",
    "malformed",
    "may",
    "missing",
    "must",
    "needs",
    "no",
    "not",
    "of",
    "open",
    "option",
    "or",
    "parameter",
    "parse",
    "parsing",
    "patch",
    "permission",
    "post",
    "put",
    "read",
    "reading",
    "refresh",
    "refused",
    "rejected",
    "request",
    "required",
    "resource",
    "retrieve",
    "retrieving",
    "rpc",
    "secret",
    "secrets",
    "server",
    "should",
    "specified",
    "that",
    "the",
    "this",
    "timed",
    "timeout",
    "to",
    "token",
    "tokens",
    "unable",
    "unauthorized",
    "unexpected",
    "unknown",
    "unmarshal",
    "unsupported",
    "use",
    "user",
    "value",
    "was",
    "with",
    "x509",
];
/// Directories below which files lie.
const ROOTS: [&str; 24] = [
    "/bin/",
    "/boot/",
    "/config/",
    "/data/",
    "/dev/",
    "/etc/",
    "/home/",
    "/host/",
    "/lib/",
    "/media/",
    "/mnt/",
    "/opt/",
    "/proc/",
    "/root/",
    "/run/",
    "/sbin/",
    "/secrets/",
    "/srv/",
    "/sys/",
    "/tmp/",
    "/usr/",
    "/var/",
    "/vault/",
    "/Users/",
];

/// Whether this value is of the kind that is no secret.
pub(super) fn is_plain(value: &str) -> bool {
    const BYTES_MAX: usize = 512;
    if value.len() > BYTES_MAX {
        return false;
    }
    let value = bare(value);
    is_literal(value) || is_placeholder(value) || is_path(value) || is_pinned(value)
}

/// Whether the text behind a colon is a message and not a value: `token: invalid value`, `token: oidc: id token issued by …`.
pub(super) fn is_message(rest: &str) -> bool {
    const BYTES_MAX: usize = 48;
    let near = cut(rest, BYTES_MAX);
    let mut words = near.split(|c: char| c.is_whitespace());
    let word = words.next().unwrap_or("");
    let bare = word.trim_end_matches([',', ';', ':', '.', ')']);
    MESSAGE.contains(&bare.to_ascii_lowercase().as_str()) || is_sentence(word, words.next())
}

/// Two words of small letters, or an error that wraps another one.
fn is_sentence(word: &str, next: Option<&str>) -> bool {
    let Some(next) = next else { return false };
    let letters = |word: &str| word.len() > 1 && word.bytes().all(|byte| byte.is_ascii_lowercase());
    let first = word.get(1..).is_some_and(letters);
    let wraps = word.strip_suffix(':').is_some_and(letters);
    let is_quoted = next.len() > 2 && next.starts_with(['"', '\'']);
    wraps || (first && (letters(next.trim_end_matches([',', ':', ';', '.'])) || is_quoted))
}

/// `kube-system/coredns`: which object it is, and not what is in it.
pub(super) fn is_object(value: &str) -> bool {
    const PART_BYTES_MAX: usize = 63;
    let is_name = |part: &str| {
        let is_part =
            |byte: u8| byte.is_ascii_lowercase() || byte.is_ascii_digit() || matches!(byte, b'-' | b'.');
        (1..=PART_BYTES_MAX).contains(&part.len())
            && part.bytes().all(is_part)
            && part.bytes().any(|byte| byte.is_ascii_lowercase())
    };
    value.len() <= 2 * PART_BYTES_MAX + 3
        && bare(value).split_once('/').is_some_and(|(space, name)| is_name(space) && is_name(name))
}

/// A value without its quotes and without what ends a list behind it.
fn bare(value: &str) -> &str {
    let value = value.trim().trim_end_matches([',', ';', ')']);
    let value = value.trim_matches('\\').trim_matches(['"', '\'', '`']).trim_end_matches('\\');
    // The brace of `{name: x, password: null}`; `${X}` and `{}` keep theirs.
    if value.contains('{') { value } else { value.trim_end_matches(['}', ']', '"', '\'']) }
}

fn is_literal(value: &str) -> bool {
    const BYTES_MAX: usize = 16;
    value.len() <= BYTES_MAX
        && (LITERALS.contains(&value.to_ascii_lowercase().as_str())
            || value.bytes().all(|byte| matches!(byte, b'*' | b'x' | b'X' | b'.' | b'-' | b'|')))
}

/// `${TOKEN}`, `$TOKEN`, `{{ token }}`, `<token>`, `%s`: the value stands elsewhere.
fn is_placeholder(value: &str) -> bool {
    let is_name = |name: &str| {
        !name.is_empty()
            && name.bytes().all(|byte| byte.is_ascii_alphanumeric() || matches!(byte, b'_' | b'-' | b' '))
    };
    let within =
        |open: &str, close: &str| value.strip_prefix(open).and_then(|value| value.strip_suffix(close));
    if let Some(name) = value.strip_prefix('$').filter(|name| !name.starts_with(['{', '('])) {
        return is_name(name) && name.bytes().all(|byte| byte.is_ascii_uppercase() || byte == b'_');
    }
    let letters = |name: &str| is_name(name) && !name.bytes().any(|byte| byte.is_ascii_digit());
    // `${NAME-x}` has a value of its own, and so has `{{ "x" | b64enc }}`.
    let has_own = |name: &str| {
        let (name, value) = name.split_once('-').unwrap_or((name, ""));
        !value.is_empty()
            && name.bytes().all(|byte| byte.is_ascii_uppercase() || byte.is_ascii_digit() || byte == b'_')
    };
    // `${env.NAME}` of Maven.
    within("${", "}").is_some_and(|name| is_name(&name.replace('.', "_")) && !has_own(name))
        || within("<", ">").is_some_and(letters)
        || (value.starts_with("{{")
            && value.ends_with("}}")
            && !value[2..].trim_start().starts_with(['"', '\'']))
        || (value.starts_with("$(") && value.contains(' ') == value.ends_with(')'))
        || (value.len() <= 3 && value.starts_with('%'))
}

fn is_path(value: &str) -> bool {
    let is_name = |byte: u8| {
        byte.is_ascii_alphanumeric() || matches!(byte, b'/' | b'.' | b'_' | b'-' | b'@' | b'*' | b'+')
    };
    ROOTS.iter().any(|root| value.starts_with(root)) && value.bytes().all(is_name)
}

/// The digest of a certificate or of an image.
fn is_pinned(value: &str) -> bool {
    is_digest(value)
        && value
            .bytes()
            .all(|byte| byte.is_ascii_alphanumeric() || matches!(byte, b':' | b'@' | b'.' | b'/' | b'-'))
}
