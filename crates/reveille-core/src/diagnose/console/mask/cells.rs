//! Where the cells of a printed table stand.
//!
//! ```text
//!  | a | b |   framed      a | b   barred      a    b   aligned      a⇥b   tabbed      ---  ---   a rule
//! ```
//!
//! A cell is a range of its line, without the space around it; it may be empty. What is in it, this does not ask, and of a line
//! only so many cells are taken.

use std::ops::Range;

/// A table has so many columns at most.
const COLUMNS_MAX: usize = 64;

/// How the columns of a table are set apart.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(super) enum Shape {
    /// No table is open.
    #[default]
    None,
    /// `| a | b |`
    Framed,
    /// `a | b`
    Barred,
    /// `a | b`, a name and its value on each line.
    Record,
    /// By spaces.
    Aligned,
    /// By tabs.
    Tabbed,
    /// `a,b` of CSV.
    Commas,
    /// `a;b` of CSV.
    Semicolons,
}

pub(super) const fn is_bar(c: char) -> bool {
    matches!(c, '|' | '│' | '┃' | '║')
}

/// A line that sets names apart from what is below them.
pub(super) fn is_rule(text: &str) -> bool {
    const BYTES_MIN: usize = 3;
    let is_line = |c: char| matches!(c, '-' | '=' | '─' | '═' | '━');
    let is_part =
        |c: char| is_line(c) || is_bar(c) || matches!(c, '+' | ':' | ' ' | '\t' | '\u{2500}'..='\u{257f}');
    text.len() >= BYTES_MIN && text.chars().all(is_part) && text.contains(is_line)
}

/// Where the cells of this line stand, without the space around them.
pub(super) fn cells(shape: Shape, text: &str) -> Vec<Range<usize>> {
    let (from, to) = match shape {
        Shape::Framed => {
            let from = text.find(is_bar).unwrap_or(0);
            let bar = |c: char| c.len_utf8();
            let first = text[from..].chars().next().map_or(0, bar);
            (from + first, text.len() - text[from + first..].chars().next_back().map_or(0, bar))
        }
        _ => (0, text.len()),
    };
    let inner = &text[from..to];
    let seams: Vec<(usize, usize)> = match shape {
        Shape::Aligned => gaps(inner),
        Shape::Commas => commas(inner, b','),
        Shape::Semicolons => commas(inner, b';'),
        Shape::Tabbed => {
            inner.match_indices('\t').map(|(at, tab)| (at, tab.len())).take(COLUMNS_MAX).collect()
        }
        _ => inner.match_indices(is_bar).map(|(at, bar)| (at, bar.len())).take(COLUMNS_MAX).collect(),
    };
    let mut cells = Vec::with_capacity(seams.len() + 1);
    let mut at = from;
    for (seam, length) in seams {
        cells.push(trimmed(text, at..from + seam));
        at = from + seam + length;
    }
    cells.push(trimmed(text, at..to));
    cells
}

/// The names of columns above a rule, and how it sets them apart; none where it does not fit them.
pub(super) fn names_above(rule: &str, names: &str) -> (Shape, Vec<Range<usize>>) {
    let is_cross = |c: char| matches!(c, '+' | '|' | '┼' | '╪');
    if !rule.contains(is_cross) {
        return (Shape::Aligned, columns_below(rule, names));
    }
    let crosses = rule.matches(is_cross).take(COLUMNS_MAX).count();
    let cells = cells(Shape::Barred, names);
    (Shape::Barred, if crosses + 1 == cells.len() { cells } else { Vec::new() })
}

/// The range without the space around its text.
pub(super) fn trimmed(text: &str, cell: Range<usize>) -> Range<usize> {
    let inner = &text[cell.clone()];
    let start = cell.start + inner.len() - inner.trim_start().len();
    start..start + inner.trim().len()
}

/// Two spaces or more between words.
fn gaps(text: &str) -> Vec<(usize, usize)> {
    let begins = text.len() - text.trim_start().len();
    let mut gaps = Vec::new();
    let mut at = begins;
    while let Some(gap) = text[at..].find("  ").filter(|_| gaps.len() < COLUMNS_MAX) {
        let rest = &text[at + gap..];
        let length = rest.len() - rest.trim_start_matches(' ').len();
        gaps.push((at + gap, length));
        at += gap + length;
    }
    gaps
}

/// The commas that stand in no quotes.
fn commas(text: &str, comma: u8) -> Vec<(usize, usize)> {
    let mut is_quoted = false;
    let is_seam = |(at, byte): (usize, u8)| {
        is_quoted ^= byte == b'"';
        (byte == comma && !is_quoted).then_some((at, 1))
    };
    text.bytes().enumerate().filter_map(is_seam).take(COLUMNS_MAX).collect()
}

/// The names above the dashes of a rule: `---   -----`.
fn columns_below(rule: &str, names: &str) -> Vec<Range<usize>> {
    if !rule.is_ascii() || !names.is_ascii() {
        return Vec::new();
    }
    let bytes = rule.as_bytes();
    let begins = |at: &usize| bytes[*at] != b' ' && (*at == 0 || bytes[*at - 1] == b' ');
    let starts: Vec<usize> = (0..bytes.len()).filter(begins).take(COLUMNS_MAX).collect();
    let ends = starts.iter().skip(1).copied().chain([names.len()]);
    let column = |(start, end): (&usize, usize)| {
        let is_set_apart = *start == 0 || names.as_bytes().get(*start - 1) == Some(&b' ');
        (is_set_apart && *start < names.len()).then(|| trimmed(names, *start..end.min(names.len())))
    };
    starts.iter().zip(ends).map(column).collect::<Option<Vec<_>>>().unwrap_or_default()
}
