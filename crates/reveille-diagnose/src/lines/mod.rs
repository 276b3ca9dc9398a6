//! One line, made comparable, with what its head says of level and time.
//!
//! ```text
//!  bytes of a line ─▶ envelope  what a collector wrapped around it is taken off (docker, journald JSON)
//!                  ─▶ comparable lower case, no quotes, single spaces, no colours, no escapes
//!                  ─▶ level, time from klog, logfmt, logrus, JSON, journald, kubeadm, cloud-init, events
//! ```
//!
//! Phrases of the catalogue meet only comparable lines, so that one phrase fits whatever program wrote or wrapped them.
//! Quoting uses [`readable`], which keeps case and quotes. A time is seconds on the line's own scale: it orders lines of
//! one source and says nothing of another's.

mod envelope;
mod level;
mod time;

pub use envelope::unwrapped;
pub use level::{Level, level};
pub use time::seconds;

/// How much of one line is read.
pub const LINE_BYTES_MAX: usize = 16 * 1024;

/// The line as phrases compare it.
pub fn comparable(line: &str) -> String {
    let mut out = String::with_capacity(line.len());
    fold(line, &mut out, true);
    out
}

/// The line as a person reads it: without colours, control characters and runs of spaces, cut to `characters_max`.
pub fn readable(line: &str, characters_max: usize) -> String {
    let mut out = String::with_capacity(line.len().min(characters_max));
    fold(line, &mut out, false);
    if let Some((at, _)) = out.char_indices().nth(characters_max) {
        out.truncate(at);
        out.push('…');
    }
    out
}

fn fold(line: &str, out: &mut String, compare: bool) {
    let mut rest = line;
    while let Some(c) = rest.chars().next() {
        if let Some(length) = escape_sequence(rest) {
            rest = &rest[length..];
            continue;
        }
        if compare && c == '\\' {
            let slashes = rest.len() - rest.trim_start_matches('\\').len();
            rest = match escaped(rest, slashes) {
                Some((letter, length)) => {
                    push(out, letter, compare);
                    &rest[length..]
                }
                // Fewer of them stand for nothing either: looked at one by one, a line of them costs the square of its length.
                None => {
                    out.push_str(&rest[..slashes]);
                    &rest[slashes..]
                }
            };
            continue;
        }
        // rsyslog writes control characters as an octal number behind a hash sign.
        if c == '#' && ["#011", "#012", "#015", "#033"].iter().any(|code| rest.starts_with(code)) {
            push(out, ' ', compare);
            rest = &rest[4..];
            continue;
        }
        rest = &rest[c.len_utf8()..];
        push(out, c, compare);
    }
    out.truncate(out.trim_end().len());
}

fn push(out: &mut String, c: char, compare: bool) {
    match c {
        c if c.is_whitespace() || c.is_control() => {
            if !out.is_empty() && !out.ends_with(' ') {
                out.push(' ');
            }
        }
        // Marks of writing direction turn what a terminal shows of a line around.
        '\u{200e}' | '\u{200f}' | '\u{202a}'..='\u{202e}' | '\u{2066}'..='\u{2069}' => {}
        '"' | '\'' | '`' | '\u{2018}' | '\u{2019}' | '\u{201c}' | '\u{201d}' if compare => {}
        c if compare && c.is_ascii() => out.push(c.to_ascii_lowercase()),
        c if compare => out.extend(c.to_lowercase()),
        c => out.push(c),
    }
}

/// Length of a terminal's control sequence at the start of the text; its escape byte may be lost.
fn escape_sequence(text: &str) -> Option<usize> {
    let body = text.strip_prefix('\u{1b}');
    let codes = body.unwrap_or(text).strip_prefix('[')?;
    let digits =
        codes.len() - codes.trim_start_matches(|c: char| c.is_ascii_digit() || c == ';' || c == '?').len();
    let end = codes[digits..].chars().next()?;
    // Without its escape byte only a colour with its number is sure to be one: "[12]", "[K" and "[mask" are ordinary text.
    let ends = if body.is_some() { end.is_ascii_alphabetic() } else { end == 'm' && digits > 0 };
    ends.then(|| text.len() - codes.len() + digits + end.len_utf8())
}

/// What an escape of JSON or Go that begins with so many backslashes stands for, and its length: any number of them before a
/// quote are one quote.
fn escaped(text: &str, slashes: usize) -> Option<(char, usize)> {
    let rest = &text[slashes..];
    match rest.chars().next()? {
        quote @ ('"' | '\'') => Some((quote, slashes + 1)),
        'n' | 't' | 'r' => {
            // A path of Windows has a backslash before an n as well: only a word's end is an end of line.
            let after = rest[1..].chars().next();
            after.is_none_or(|c| !c.is_alphanumeric() || slashes > 1).then_some((' ', slashes + 1))
        }
        'u' if rest.starts_with("u003c") => Some(('<', slashes + 5)),
        'u' if rest.starts_with("u003e") => Some(('>', slashes + 5)),
        'u' if rest.starts_with("u0026") => Some(('&', slashes + 5)),
        'u' if rest.starts_with("u001b") => Some(('\u{1b}', slashes + 5)),
        _ => None,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn lines_are_made_comparable() {
        for (line, expected) in [
            ("\u{1b}[0;32m  OK  \u{1b}[0m] Reached   X.\r", "ok ] reached x."),
            ("[[0;1;31mFAILED[0m] Failed to start Y.", "[failed] failed to start y."),
            ("err=\"node \\\"w-1\\\" not found\"", "err=node w-1 not found"),
            ("{\"log\":\"E0101 no\\n\",\"x\":1}", "{log:e0101 no ,x:1}"),
            ("a\\\\\\\"b\\\\\\\"", "ab"),
            ("[Filename#011#011Type /dev/vda2]", "[filename type /dev/vda2]"),
            ("C:\\new folder", "c:\\new folder"),
            ("“smart” ‘quotes’", "smart quotes"),
            ("9月 30 10:34:47", "9月 30 10:34:47"),
            ("", ""),
        ] {
            assert_eq!(comparable(line), expected, "{line:?}");
        }
    }

    #[test]
    fn what_is_quoted_keeps_its_letters() {
        assert_eq!(readable("\u{1b}[31mUnable  to \"X\"\u{7}", 100), "Unable to \"X\"");
        assert_eq!(readable("token=[masked] [mount] [0;1mx", 100), "token=[masked] [mount] x");
        assert_eq!(readable("a \u{202e}drowssap\u{202c} b", 100), "a drowssap b");
        assert_eq!(readable("abcdef", 3), "abc…");
    }
}
