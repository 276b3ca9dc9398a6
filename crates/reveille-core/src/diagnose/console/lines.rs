//! Console lines as they are quoted.
//!
//! Serial consoles carry colour sequences (often with their escape byte already lost), carriage returns and columns of
//! spaces; this module takes them out. It also cuts text and lines to a bound, because the guest alone decides what it
//! prints.

/// How much of a console is read, from its end.
pub(super) const READ_BYTES_MAX: usize = 1024 * 1024;
/// How much of one line is read.
const LINE_BYTES_MAX: usize = 4096;

/// The last `bytes_max` bytes of the text, from the start of a line.
pub(super) fn end_of(text: &str, bytes_max: usize) -> &str {
    let mut start = text.len().saturating_sub(bytes_max);
    if start == 0 {
        return text;
    }
    while !text.is_char_boundary(start) {
        start += 1;
    }
    match text[start..].find('\n') {
        Some(line) => &text[start + line + 1..],
        None => &text[start..],
    }
}

/// The last lines that are not empty, each with its number from 1, oldest first.
pub(super) fn tail(text: &str, lines_max: usize) -> Vec<(u64, String)> {
    let numbered = (1..).zip(text.lines());
    let spoken: Vec<(u64, &str)> = numbered.filter(|(_, line)| !plain(line).is_empty()).collect();
    spoken[spoken.len().saturating_sub(lines_max)..].iter().map(|(at, line)| (*at, plain(line))).collect()
}

/// As much of the text as its [`tail`] quotes, with each line in its place; a line is cut to so many bytes.
pub(super) fn only_tail(text: &str, lines_max: usize, line_bytes_max: usize) -> String {
    let (mut kept, mut at) = (String::new(), 1);
    for (number, line) in tail(text, lines_max) {
        let end = line.floor_char_boundary(line_bytes_max);
        kept.extend((at..number).map(|_| '\n'));
        kept.push_str(&line[..end]);
        at = number;
    }
    kept
}

/// The line without colours and control characters, with single spaces and none at its ends.
pub(super) fn plain(line: &str) -> String {
    let end = line.floor_char_boundary(LINE_BYTES_MAX);
    let mut rest = &line[..end];
    let mut out = String::with_capacity(rest.len());
    while let Some(c) = rest.chars().next() {
        if let Some(length) = colour(rest) {
            rest = &rest[length..];
            continue;
        }
        rest = &rest[c.len_utf8()..];
        if c.is_whitespace() || c.is_control() {
            if !out.is_empty() && !out.ends_with(' ') {
                out.push(' ');
            }
        } else {
            out.push(c);
        }
    }
    out.truncate(out.trim_end().len());
    out
}

/// Length of the colour sequence that the text begins with: an escape byte or none, `[`, digits and semicolons, `m`.
fn colour(text: &str) -> Option<usize> {
    let body = text.strip_prefix('\u{1b}').unwrap_or(text);
    let codes = body.strip_prefix('[')?;
    let digits = codes.len() - codes.trim_start_matches(|c: char| c.is_ascii_digit() || c == ';').len();
    codes[digits..].starts_with('m').then(|| text.len() - codes.len() + digits + 1)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn text_is_cut_from_its_start_at_a_line() {
        assert_eq!(end_of("one\ntwo\nthree", 100), "one\ntwo\nthree");
        assert_eq!(end_of("one\ntwo\nthree", 8), "three");
        assert_eq!(end_of("éééééé", 3), "é");
        assert_eq!(plain(&"x".repeat(10_000)).len(), LINE_BYTES_MAX);
    }

    #[test]
    fn the_tail_is_the_last_lines_that_say_something() {
        assert_eq!(tail("a\n\nb\n \n", 1), [(3, "b".to_owned())]);
        assert_eq!(tail("a\n\nb\n", 3), [(1, "a".to_owned()), (3, "b".to_owned())]);
        assert_eq!(tail("", 3), []);
    }

    #[test]
    fn the_tail_alone_is_quoted_like_the_whole_text() {
        for text in ["", "\n\n", "a", "a\n\nb\n \n", "one\r\ntwo\n\n[0;1mthree\n four  4\n\nfive"] {
            let kept = only_tail(text, 3, 512);
            assert_eq!(tail(&kept, 3), tail(text, 3), "{text:?}: {kept:?}");
        }
        assert_eq!(only_tail(&format!("\n{}\n", "é".repeat(600)), 3, 511), format!("\n{}", "é".repeat(255)));
    }

    #[test]
    fn colours_columns_and_control_bytes_go() {
        for (line, expected) in [
            ("\u{1b}[0;32m  OK  \u{1b}[0m] Reached   target\t X.\r", "OK ] Reached target X."),
            ("[[0;1;31mFAILED[0m] Failed to start Y.", "[FAILED] Failed to start Y."),
            ("[   12.345678] eth0: up", "[ 12.345678] eth0: up"),
            ("a[12]m [m", "a[12]m"),
            ("", ""),
            ("Ünï", "Ünï"),
        ] {
            assert_eq!(plain(line), expected, "{line:?}");
        }
    }
}
