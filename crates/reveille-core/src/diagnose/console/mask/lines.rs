//! Where a line begins behind what a logger writes before it.
//!
//! ```text
//!  Nov 26 06:00:00 w-3 cloud-init[812]: kind: Secret        2026-11-26T06:00:00.1Z stdout F kind: Secret
//!                                       ╰─ here                                             ╰─ here
//! ```
//!
//! Prefixes stand in one another: the kernel's clock in a journal's line. What is not known for a prefix is taken for the text.

/// So many prefixes stand in one another.
const NESTED_MAX: usize = 3;

/// How many bytes of prefixes this line begins with.
pub(super) fn prefix(line: &str) -> usize {
    nested(line, |rest| clock(rest).or_else(|| tag(rest)).or_else(|| of_compose(rest)))
}

/// The same without compose's `user | `, which may be a column of a table.
pub(super) fn of_logger(line: &str) -> usize {
    nested(line, |rest| clock(rest).or_else(|| tag(rest)))
}

fn nested(line: &str, of: impl Fn(&str) -> Option<usize>) -> usize {
    let mut at = 0;
    for _ in 0..NESTED_MAX {
        let Some(length) = of(&line[at..]) else { break };
        at += length;
    }
    at
}

/// A date, and what stands behind it: CRI's stream, or a host and a tag.
fn clock(line: &str) -> Option<usize> {
    let length = of_kernel(line).or_else(|| of_syslog(line)).or_else(|| of_iso(line))?;
    let rest = &line[length..];
    let stream =
        ["stdout F ", "stderr F ", "stdout P ", "stderr P "].iter().find(|stream| rest.starts_with(**stream));
    if let Some(stream) = stream {
        return Some(length + stream.len());
    }
    // `kind: ` behind a clock alone is no host.
    let host = word(rest);
    let is_host =
        host > 0 && rest.starts_with(|c: char| c.is_ascii_alphanumeric()) && !rest[..host].ends_with(": ");
    let behind_a_host = if is_host { tag_of_any(&rest[host..]).map(|tag| host + tag) } else { None };
    Some(length + behind_a_host.unwrap_or(0))
}

/// `[   31.402137] `.
fn of_kernel(line: &str) -> Option<usize> {
    const BYTES_MAX: usize = 32;
    let inner = line.strip_prefix('[')?;
    let is_time = |byte: &u8| byte.is_ascii_digit() || matches!(byte, b' ' | b'.');
    let length = inner.bytes().take(BYTES_MAX).take_while(is_time).count();
    inner[length..].starts_with("] ").then_some(length + 3)
}

/// `Nov 26 06:00:00 `.
fn of_syslog(line: &str) -> Option<usize> {
    const SHAPE: &[u8] = b"Aaa 99 99:99:99 ";
    let fits = |(byte, shape): (&u8, &u8)| match shape {
        b'A' => byte.is_ascii_uppercase(),
        b'a' => byte.is_ascii_lowercase(),
        b'9' => byte.is_ascii_digit() || *byte == b' ',
        _ => byte == shape,
    };
    let begins = line.as_bytes().get(..SHAPE.len())?;
    begins.iter().zip(SHAPE).all(fits).then_some(SHAPE.len())
}

/// `2026-11-26T06:00:00.123Z `, with a space in its middle too.
fn of_iso(line: &str) -> Option<usize> {
    const DATE: usize = "2026-11-26T".len();
    const BYTES_MAX: usize = 40;
    let bytes = line.as_bytes();
    let has_dashes = bytes.get(4) == Some(&b'-') && bytes.get(7) == Some(&b'-');
    let begins = has_dashes && bytes.iter().take(4).all(u8::is_ascii_digit);
    if !begins || !matches!(bytes.get(DATE - 1), Some(b'T' | b' ')) {
        return None;
    }
    let is_time =
        |byte: &&u8| byte.is_ascii_digit() || matches!(byte, b':' | b'.' | b',' | b'+' | b'-' | b'Z');
    let length = DATE + bytes[DATE..].iter().take(BYTES_MAX).take_while(is_time).count();
    (bytes.get(length) == Some(&b' ')).then_some(length + 1)
}

/// `cloud-init[812]: `.
fn tag(line: &str) -> Option<usize> {
    let length = tag_of_any(line)?;
    line[..length].ends_with("]: ").then_some(length)
}

/// `kernel: ` and `cloud-init[812]: `: what may be a name of the text where no host stands before it.
fn tag_of_any(line: &str) -> Option<usize> {
    let length = word(line);
    line[..length].ends_with(": ").then_some(length)
}

/// `web-1  | ` of compose, and `[pod/x/y] ` of kubectl.
fn of_compose(line: &str) -> Option<usize> {
    if line.starts_with("[pod/") {
        let length = word(line);
        return line[..length].ends_with("] ").then_some(length);
    }
    let name = word(line);
    let spaces = line[name..].bytes().take_while(|byte| *byte == b' ').count();
    let is_name = |byte: &u8| byte.is_ascii_alphanumeric() || matches!(byte, b'-' | b'_' | b'.' | b' ');
    let named = name > 1 && line[..name].bytes().all(|byte| is_name(&byte));
    (named && line[name + spaces..].starts_with("| ")).then_some(name + spaces + 2)
}

/// The first word and the space behind it; nothing, when it is too long for a host or a tag.
fn word(line: &str) -> usize {
    const BYTES_MAX: usize = 80;
    let length = line.bytes().take(BYTES_MAX).take_while(|byte| byte.is_ascii_graphic()).count();
    if line.as_bytes().get(length) == Some(&b' ') { length + 1 } else { 0 }
}
