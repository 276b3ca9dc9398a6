//! Secrets in addresses: `scheme://user:password@host`, `https://TOKEN@host`, `user:password@tcp(host)`, paths of webhooks.

use std::ops::Range;

use super::MASK;
use super::value::{cut, found_once};

/// Marks what stands before the host.
pub(super) fn url_secrets(text: &str, ranges: &mut Vec<Range<usize>>) {
    let mut paths = None;
    in_json(text, ranges);
    for (at, _) in text.match_indices("//") {
        let start = at + "//".len();
        if !text[..at].ends_with(':') {
            // `registry=//u:x@host`; a comment has no host.
            let authority = text[start..].split(['/', ' ', '"', '\'', '\n', '?']).next().unwrap_or("");
            ranges.extend(password_before_a_host(start, authority));
            continue;
        }
        let authority = text[start..].split(['/', ' ', '"', '\'', '\n', '?']).next().unwrap_or("");
        let Some(host) = authority.rfind('@') else {
            if let Some(password) = of_odd_signs(text, start, authority) {
                ranges.push(password);
                continue;
            }
            webhook(text, start, authority, &mut paths, ranges);
            continue;
        };
        // `docker://busybox:1.36@sha256:…` is an image.
        if authority[host + 1..].starts_with("sha256:") || authority[host + 1..].starts_with("sha512:") {
            continue;
        }
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
    with_own_signs(text, ranges);
}

/// `https:\/\/u:x@host`: JSON may write its slashes behind backslashes, and JSON within JSON behind two.
fn in_json(text: &str, ranges: &mut Vec<Range<usize>>) {
    for slashes in ["\\/\\/", "\\\\/\\\\/"] {
        for (at, _) in text.match_indices(slashes) {
            let start = at + slashes.len();
            let authority = text[start..].split(['/', ' ', '"', '\'', '\n', '?', '\\']).next().unwrap_or("");
            ranges.extend(password_before_a_host(start, authority));
        }
    }
}

/// The `x` of `u:x@host`.
fn password_before_a_host(start: usize, authority: &str) -> Option<Range<usize>> {
    let host = authority.rfind('@')?;
    let colon = authority[..host].find(':')?;
    let is_open = colon + 1 < host && &authority[colon + 1..host] != MASK;
    is_open.then_some(start + colon + 1..start + host)
}

/// `postgres://user:a/b?c@db/x`: a password with signs that end the host of every other address.
fn of_odd_signs(text: &str, start: usize, authority: &str) -> Option<Range<usize>> {
    const BYTES_MAX: usize = 256;
    let (user, begins) = authority.split_once(':')?;
    let is_port = begins.len() <= 5 && begins.bytes().all(|byte| byte.is_ascii_digit());
    let is_name = |byte: u8| byte.is_ascii_alphanumeric() || matches!(byte, b'-' | b'_' | b'.');
    if is_port || !user.bytes().all(is_name) || begins.starts_with(MASK) {
        return None;
    }
    let near = cut(&text[start..], BYTES_MAX);
    let word = near.split(|c: char| c.is_whitespace() || matches!(c, '"' | '\'')).next()?;
    let word = word.split("://").next()?;
    let at = word.find('@')?;
    let is_digest = word[at + 1..].starts_with("sha256:") || word[at + 1..].starts_with("sha512:");
    (!is_digest && at > user.len() + 1).then(|| start + user.len() + 1..start + at)
}

/// `netroot=iscsi:user:x@host` of dracut, `jdbc:oracle:thin:user/x@host`.
fn with_own_signs(text: &str, ranges: &mut Vec<Range<usize>>) {
    const BYTES_MAX: usize = 256;
    for (scheme, sign) in [("iscsi:", ':'), ("oracle:thin:", '/'), ("oracle:oci:", '/')] {
        for (found, _) in text.match_indices(scheme) {
            let start = found + scheme.len();
            let ends = |c: char| c.is_whitespace() || matches!(c, '"' | '\'' | '@');
            let near = cut(&text[start..], BYTES_MAX);
            let Some(at) = near.find(ends).filter(|at| near[*at..].starts_with('@')) else { continue };
            if let Some(user) = near[..at].find(sign).filter(|user| user + 1 < at)
                && !near[user + 1..].starts_with(MASK)
            {
                ranges.push(start + user + 1..start + at);
            }
        }
    }
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
    const HOOKS: [&str; 10] = [
        "api.telegram.org/bot",
        "hooks.zapier.com/hooks/catch/",
        "outlook.office.com/webhook/",
        "hc-ping.com/",
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
    // Rancher's manifest for a cluster that joins, on any host.
    let import = cut(rest, HOST_BYTES_MAX + 16).find("/v3/import/").map(|at| at + "/v3/import/".len());
    let Some(path) = path.or(import.filter(|import| *import <= authority.len() + "/v3/import/".len())) else {
        return;
    };
    let is_end = |c: char| c.is_whitespace() || matches!(c, '"' | '\'' | ')' | '>' | '`');
    let path = start + path;
    let end = found_once(paths, path, || text[path..].find(is_end).map_or(text.len(), |at| path + at));
    if end > path && !text[path..].starts_with(MASK) {
        ranges.push(path..end);
    }
}

/// `user:password@tcp(host:3306)/db` and `user:password@host:5432`; behind a proxy's name, `user:password@host` too.
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
        if length > 0 && !is_digest {
            before_at(text, at, has_port || in_brackets, ranges);
        }
    }
}

const HOST_BYTES_MAX: usize = 253;

fn before_at(text: &str, at: usize, is_address: bool, ranges: &mut Vec<Range<usize>>) {
    const BYTES_MAX: usize = 256;
    let is_part =
        |byte: &u8| !byte.is_ascii_whitespace() && !matches!(byte, b'"' | b'\'' | b'/' | b'@' | b'=' | b'(');
    let length = text.as_bytes()[..at].iter().rev().take(BYTES_MAX).take_while(|byte| is_part(byte)).count();
    let start = at - length;
    if !text.is_char_boundary(start) {
        return;
    }
    if !is_address && !is_behind_proxy(&text[..start]) {
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

/// `HTTP_PROXY=`, `https_proxy: '`, `git config http.proxy `.
fn is_behind_proxy(before: &str) -> bool {
    const NAME: &str = "proxy";
    const SIGNS_MAX: usize = 4;
    let bytes = before.as_bytes();
    let signs = bytes
        .iter()
        .rev()
        .take(SIGNS_MAX)
        .take_while(|byte| matches!(byte, b'=' | b':' | b' ' | b'"' | b'\''));
    let name = &bytes[..bytes.len() - signs.count()];
    name.len() < bytes.len()
        && name.len() >= NAME.len()
        && name[name.len() - NAME.len()..].eq_ignore_ascii_case(NAME.as_bytes())
}
