//! Breaks long lines on a terminal between words; further lines are indented to the text, not to the label.
//!
//! A word is never cut, because people copy ids with a mouse; the terminal wraps a word that is wider than itself. In a
//! pipe the output has no width, and a line stays a line.

use super::output_style::{Paper, Tone};

/// On a terminal with fewer columns, evidence uses paragraphs instead of columns.
pub(super) const WIDE: u16 = 110;
/// The width of the label in front of each part.
pub(super) const LABEL: usize = 8;

/// A text behind the label of its part.
pub(super) fn labelled(label: &str, text: &str, paper: &Paper) -> String {
    let label = format!("{label:<LABEL$}");
    let label = if label.trim().is_empty() { label } else { paper.tone(Tone::Strong, label) };
    hanging(paper, &format!("{label}{text}"), LABEL) + "\n"
}

/// Breaks `line` at the width of the output, and indents further lines by `indent` spaces. Colour codes do not count.
pub(crate) fn hanging(paper: &Paper, line: &str, indent: usize) -> String {
    let Some(width) = paper.width.map(usize::from).filter(|width| *width > indent + 16) else {
        return line.to_owned();
    };
    let (mut out, mut length) = (String::with_capacity(line.len()), 0);
    let mut rest = line;
    while !rest.is_empty() {
        let word_at = rest.find(|c| c != ' ').unwrap_or(rest.len());
        let (gap, from_word) = rest.split_at(word_at);
        let (word, after) = from_word.split_at(from_word.find(' ').unwrap_or(from_word.len()));
        let visible = visible(word);
        if length + gap.len() + visible > width && length > indent {
            out.push('\n');
            out.push_str(&" ".repeat(indent));
            length = indent;
        } else {
            out.push_str(gap);
            length += gap.len();
        }
        out.push_str(word);
        length += visible;
        rest = after;
    }
    out
}

/// The number of visible characters: an escape sequence ends with its first letter.
fn visible(word: &str) -> usize {
    let (mut count, mut escaped) = (0, false);
    for c in word.chars() {
        match (c, escaped) {
            ('\u{1b}', _) => escaped = true,
            (c, true) => escaped = !c.is_ascii_alphabetic(),
            (_, false) => count += 1,
        }
    }
    count
}

#[cfg(test)]
mod tests {
    use jiff::tz::TimeZone;

    use super::*;

    #[test]
    fn lines_break_between_words_and_hang() {
        let paper = |width| Paper { width, colored: false, zone: TimeZone::UTC };
        let line = "14:31  does    router 8d1f6c52-7a40-4c1e-9b1d-0f3a5f0f7e21: remove 2 routes";
        assert_eq!(hanging(&paper(None), line, 15), line, "in a pipe a line is a line");
        assert_eq!(hanging(&paper(Some(80)), line, 15), line);
        assert_eq!(
            hanging(&paper(Some(60)), line, 15),
            "14:31  does    router 8d1f6c52-7a40-4c1e-9b1d-0f3a5f0f7e21:\n               remove 2 routes"
        );
        assert_eq!(
            hanging(&paper(Some(40)), line, 15),
            "14:31  does    router\n               8d1f6c52-7a40-4c1e-9b1d-0f3a5f0f7e21:\n               remove 2 routes",
            "an id is never cut"
        );
        assert_eq!(hanging(&paper(Some(20)), line, 15), line, "too narrow to make it better");
        let colored = "\u{1b}[2m14:31\u{1b}[0m  word word word word word";
        assert_eq!(hanging(&paper(Some(31)), colored, 7), colored, "colours take no room");
        assert!(hanging(&paper(Some(30)), colored, 7).contains("\n       word"));
    }
}
