//! Aligned columns without lines around them.
//!
//! Every column is as wide as its widest text; only the last one wraps, and only on a terminal: in a pipe a row is a line.

use comfy_table::{Attribute, Cell, Color, ColumnConstraint, ContentArrangement, Table, presets};

use super::paper::{Paper, Tone};

/// One cell: its text and its tone.
#[derive(Clone, Debug)]
pub(crate) struct Text(pub(crate) String, pub(crate) Option<Tone>);

impl Text {
    /// In no particular tone.
    pub(crate) fn plain(text: impl Into<String>) -> Self {
        Self(text.into(), None)
    }

    /// In a tone.
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
    for row in rows {
        table.add_row(row.into_iter().map(|Text(text, tone)| styled(text, tone)));
    }
    for (index, column) in table.column_iter_mut().enumerate() {
        let last = index + 1 == columns;
        column.set_padding((0, if last { 0 } else { 2 }));
        if !last {
            column.set_constraint(ColumnConstraint::ContentWidth);
        }
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

fn styled(text: String, tone: Option<Tone>) -> Cell {
    let cell = Cell::new(text);
    match tone {
        Some(Tone::Bad) => cell.fg(Color::Red),
        Some(Tone::Doubt) => cell.fg(Color::Yellow),
        Some(Tone::Good) => cell.fg(Color::Green),
        Some(Tone::Faint) => cell.add_attribute(Attribute::Dim),
        Some(Tone::Strong) => cell.add_attribute(Attribute::Bold),
        None => cell,
    }
}
