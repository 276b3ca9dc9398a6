//! Secrets in addresses: `scheme://user:password@host`, `https://TOKEN@host`, `user:password@tcp(host)`, paths of webhooks.

use std::ops::Range;

use super::MASK;
use super::value::found_once;

/// Marks what stands before the host.
pub(super) fn url_secrets(text: &str, ranges: &mut Vec<Range<usize>>) {
    let mut paths = None;
    for (at, _) in text.match_indices("://") {
        let start = at + "://".len();
        let authority = text[start..].split(['/', ' ', '"', '\'', '\n', '?']).next().unwrap_or("");
        let Some(host) = authority.rfind('@') else {
            webhook(text, start, authority, &mut paths, ranges);
            continue;
        };
        match authority[..host].find(':') {
            // `https://TOKEN:x-oauth-basic@` and `https://TOKEN:@` have it in front.
            Some(colon) => {
                if colon + 1 < host {
                    ranges.push(start + colon + 1..start + host);
                }
                if !is_user(&authority[..colon]) {
                    ranges.push(start..start + colon);
                }
            }
            None if host > 0 && !is_user(&authority[..host]) => ranges.push(start..start + host),
            None => {}
        }
    }
    without_scheme(text, ranges);
}

/// Names of people and robots: short, in one case. Everything else in that place is taken for a token.
fn is_user(user: &str) -> bool {
    const BYTES_MAX: usize = 20;
    let is_name =
        |byte: u8| byte.is_ascii_lowercase() || matches!(byte, b'-' | b'_' | b'.' | b'$' | b'{' | b'}');
    let name = user.trim_end_matches(|c: char| c.is_ascii_digit());
    user.contains(MASK)
        || user.len() <= BYTES_MAX && user.len() - name.len() <= 4 && name.bytes().all(is_name)
}

/// `hooks.slack.com/services/T0/B0/SECRET` and its like: the path is the secret.
fn webhook(
    text: &str,
    start: usize,
    authority: &str,
    paths: &mut Option<(usize, usize)>,
    ranges: &mut Vec<Range<usize>>,
) {
    /// gitleaks: `slack-webhook-url`, `microsoft-teams-webhook`; Discord's and Google's are alike.
    const HOOKS: [&str; 6] = [
        "hooks.slack.com/services/",
        "hooks.slack.com/workflows/",
        "hooks.slack.com/triggers/",
        "discord.com/api/webhooks/",
        "discordapp.com/api/webhooks/",
        "chat.googleapis.com/v1/spaces/",
    ];
    let rest = &text[start..];
    let mut path = HOOKS.iter().find_map(|hook| rest.starts_with(hook).then_some(hook.len()));
    if authority.ends_with(".webhook.office.com") {
        path = Some(authority.len());
    }
    let Some(path) = path else { return };
    let is_end = |c: char| c.is_whitespace() || matches!(c, '"' | '\'' | ')' | '>' | '`');
    let path = start + path;
    let end = found_once(paths, path, || text[path..].find(is_end).map_or(text.len(), |at| path + at));
    if end > path && !text[path..].starts_with(MASK) {
        ranges.push(path..end);
    }
}

/// `user:password@tcp(host:3306)/db` and `user:password@host:5432`.
fn without_scheme(text: &str, ranges: &mut Vec<Range<usize>>) {
    for (at, _) in text.match_indices('@') {
        let host = &text.as_bytes()[at + 1..];
        let is_host = |byte: &u8| byte.is_ascii_alphanumeric() || matches!(byte, b'.' | b'-');
        let length = host.iter().take(HOST_BYTES_MAX).take_while(|byte| is_host(byte)).count();
        let has_port =
            host.get(length) == Some(&b':') && host.get(length + 1).is_some_and(u8::is_ascii_digit);
        let in_brackets = matches!(&host[..length], b"tcp" | b"unix") && host.get(length) == Some(&b'(');
        // `nginx:1.25@sha256:…` is an image.
        let is_digest = matches!(&host[..length], b"sha256" | b"sha512");
        if length > 0 && !is_digest && (has_port || in_brackets) {
            before_at(text, at, ranges);
        }
    }
}

const HOST_BYTES_MAX: usize = 253;

fn before_at(text: &str, at: usize, ranges: &mut Vec<Range<usize>>) {
    const BYTES_MAX: usize = 256;
    let is_part =
        |byte: &u8| !byte.is_ascii_whitespace() && !matches!(byte, b'"' | b'\'' | b'/' | b'@' | b'=' | b'(');
    let length = text.as_bytes()[..at].iter().rev().take(BYTES_MAX).take_while(|byte| is_part(byte)).count();
    let start = at - length;
    if !text.is_char_boundary(start) {
        return;
    }
    let part = &text[start..at];
    let Some(colon) = part.find(':') else { return };
    let is_name = |byte: u8| byte.is_ascii_alphanumeric() || matches!(byte, b'-' | b'_' | b'.');
    if colon > 0
        && colon + 1 < part.len()
        && part[..colon].bytes().all(is_name)
        && !part[colon + 1..].starts_with(MASK)
    {
        ranges.push(start + colon + 1..at);
    }
}
