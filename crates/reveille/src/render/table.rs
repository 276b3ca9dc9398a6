//! Aligned columns without lines around them.
//!
//! Every column is as wide as its widest text. The last one wraps, and only on a terminal: in a pipe a row is one line.
//! Where the last column would become too narrow, the widest of the other columns shrink.

use comfy_table::{Attribute, Cell, Color, ColumnConstraint, ContentArrangement, Table, Width, presets};

use super::output_style::{Paper, Tone};

/// The last column gets at least this width, if it needs it, before other columns keep all of theirs.
const LAST_MIN: usize = 28;
/// No other column shrinks below this width.
const OTHERS_MIN: usize = 10;

/// One cell: its text and its tone.
#[derive(Clone, Debug)]
pub(crate) struct Text(pub(crate) String, pub(crate) Option<Tone>);

impl Text {
    /// A text without a tone.
    pub(crate) fn plain(text: impl Into<String>) -> Self {
        Self(text.into(), None)
    }

    /// A text with a tone.
    pub(crate) fn toned(tone: Tone, text: impl Into<String>) -> Self {
        Self(text.into(), Some(tone))
    }
}

/// Rows as lines, each ending with a newline and beginning with `indent` spaces.
pub(crate) fn lines(paper: &Paper, indent: usize, rows: Vec<Vec<Text>>) -> String {
    let mut table = Table::new();
    table.load_style(presets::NOTHING);
    if paper.colored {
        table.enforce_styling();
    } else {
        table.force_no_tty();
    }
    let columns = rows.iter().map(Vec::len).max().unwrap_or(0);
    let room = paper.width.map(|width| width.saturating_sub(u16::try_from(indent).unwrap_or(u16::MAX)));
    match room {
        Some(room) => {
            table.set_content_arrangement(ContentArrangement::Dynamic).set_width(room);
        }
        None => {
            table.set_content_arrangement(ContentArrangement::Disabled);
        }
    }
    let given = room.map_or_else(Vec::new, |room| given_up(&rows, usize::from(room)));
    for row in rows {
        table.add_row(row.into_iter().map(|Text(text, tone)| styled(text, tone)));
    }
    for (index, column) in table.column_iter_mut().enumerate() {
        let last = index + 1 == columns;
        column.set_padding((0, if last { 0 } else { 2 }));
        if last {
            continue;
        }
        column.set_constraint(match given.get(index).copied().flatten() {
            Some(width) => ColumnConstraint::Absolute(Width::Fixed(width)),
            None => ColumnConstraint::ContentWidth,
        });
    }
    let mut out = String::new();
    for line in table.lines() {
        let line = line.trim_end();
        if !line.is_empty() {
            out.push_str(&" ".repeat(indent));
            out.push_str(line);
        }
        out.push('\n');
    }
    out
}

/// The widths, with the two spaces behind them, of columns that have to shrink.
fn given_up(rows: &[Vec<Text>], room: usize) -> Vec<Option<u16>> {
    let columns = rows.iter().map(Vec::len).max().unwrap_or(0);
    let wide = |column: usize| {
        rows.iter().filter_map(|row| row.get(column)).map(|text| text.0.chars().count()).max().unwrap_or(0)
    };
    let mut widths: Vec<usize> = (0..columns).map(wide).collect();
    let Some(last) = widths.pop() else { return Vec::new() };
    let before = widths.clone();
    let taken = |widths: &[usize]| widths.iter().sum::<usize>() + 2 * widths.len();
    while taken(&widths) + last.min(LAST_MIN) > room
        && let Some(widest) = widths.iter_mut().max().filter(|widest| **widest > OTHERS_MIN)
    {
        *widest -= 1;
    }
    let given =
        |(now, before): (&usize, &usize)| (now < before).then(|| u16::try_from(now + 2).ok()).flatten();
    widths.iter().zip(&before).map(given).collect()
}

fn styled(text: String, tone: Option<Tone>) -> Cell {
    let cell = Cell::new(text);
    // These are the standard colours, as on the rest of the page, because the bright ones are unreadable on white.
    match tone {
        Some(Tone::Bad) => cell.fg(Color::DarkRed),
        Some(Tone::Doubt) => cell.fg(Color::DarkYellow),
        Some(Tone::Good) => cell.fg(Color::DarkGreen),
        Some(Tone::Faint) => cell.add_attribute(Attribute::Dim),
        Some(Tone::Strong) => cell.add_attribute(Attribute::Bold),
        None => cell,
    }
}
