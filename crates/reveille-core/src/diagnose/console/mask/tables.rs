//! Secrets of tables that commands print: columns whose name tells, and rows of a name and its value.
//!
//! ```text
//!  | user | password |    user | password    NAME   TOKEN   TTL    Key        Value    -[ RECORD 1 ]-
//!  |------|----------|   ------+---------    build  x       2h     ---        -----    user     | bob
//!  | bob  | x        |    bob  | x                                 password   x        password | x
//! ```
//!
//! A line is taken for the names of columns when a rule follows, when it stands in a frame, when it is written in capitals, or
//! when tabs or commas set it apart; what follows is read by it as long as it fits. In two columns, each row may have a name of
//! its own. A frame without a rule says less: there, a value is one only if it does not look like a word of a text.
//!
//! Left out on purpose: columns that a single space sets apart, because any sentence has those, and names of objects, as
//! kubectl has them below `SECRETS`.

use std::ops::Range;

use super::MASK;
use super::cells::{Shape, cells, is_bar, is_rule, names_above, trimmed};
use super::lines;
use super::names::{Telling, of_setting};
use super::plain::is_plain;
use super::prose::{is_chosen, is_made_up};
use super::random::{is_long_hex, is_random_base64, looks_random};

/// Marks the secrets of tables.
pub(super) fn table_secrets(text: &str, ranges: &mut Vec<Range<usize>>) {
    let mut table = Table::default();
    let mut at = 0;
    for line in text.split_inclusive('\n') {
        let begins = begins(line);
        let row = Row { at: at + begins, text: line[begins..].trim_end() };
        table.line(row, ranges);
        at += line.len();
    }
}

/// Where a line of a table begins behind a logger's prefix. `user | ` may be compose's, or the first column.
fn begins(line: &str) -> usize {
    let with_compose = lines::prefix(line);
    if line[with_compose..].starts_with(is_bar) { with_compose } else { lines::of_logger(line) }
}

#[derive(Clone, Copy, Debug)]
struct Column {
    /// How many characters stand before it.
    at: usize,
    /// What its values are.
    tells: Option<Telling>,
    /// It names objects of Kubernetes.
    of_objects: bool,
}

/// A line behind a logger's prefix, and where it begins in the text.
#[derive(Clone, Copy, Debug)]
struct Row<'t> {
    at: usize,
    text: &'t str,
}

/// The table that is read.
#[derive(Clone, Debug, Default)]
struct Table<'t> {
    shape: Shape,
    columns: Vec<Column>,
    /// The second of more than two columns is that of the values.
    has_values: bool,
    /// The rule below the names of the columns was seen.
    has_head: bool,
    /// The row above had a name that tells; a row without one goes on with its value.
    goes_on: Option<Telling>,
    /// The line above.
    before: &'t str,
}

impl<'t> Table<'t> {
    fn line(&mut self, row: Row<'t>, ranges: &mut Vec<Range<usize>>) {
        let text = row.text;
        let before = std::mem::replace(&mut self.before, text);
        if text.starts_with("-[ RECORD") {
            *self = Self { shape: Shape::Record, before: text, ..Self::default() };
        } else if is_rule(text) {
            self.rule(text, before);
        } else if text.trim_start().starts_with(is_bar) && text.ends_with(is_bar) {
            self.framed(row, ranges);
        } else if !self.fits(row, ranges) {
            *self = Self { before: text, ..Self::default() };
            self.begins(row, ranges);
        }
    }

    /// A rule below the names of columns.
    fn rule(&mut self, rule: &str, names: &str) {
        if self.shape == Shape::Framed {
            self.has_head = true;
            return;
        }
        let (shape, cells) = names_above(rule, names);
        *self = Self::default();
        if cells.len() > 1 {
            *self = Self { shape, has_head: true, ..Self::of(names, &cells) };
        }
    }

    fn of(names: &str, cells: &[Range<usize>]) -> Self {
        let named = |name: &str| cells.iter().any(|cell| names[cell.clone()].eq_ignore_ascii_case(name));
        let has_age = named("AGE");
        let column = |cell: &Range<usize>| {
            let name = bare(&names[cell.clone()]);
            let of_objects = ["secret", "secrets", "credentials"];
            Column {
                at: names[..cell.start].chars().count(),
                tells: of_setting(name).filter(|telling| *telling != Telling::IfRandom),
                of_objects: has_age && of_objects.iter().any(|of| name.eq_ignore_ascii_case(of)),
            }
        };
        let second = cells.get(1).map_or("", |cell| bare(&names[cell.clone()]));
        let has_values =
            cells.len() > 2 && ["value", "setting"].iter().any(|is| second.eq_ignore_ascii_case(is));
        Self { columns: cells.iter().map(column).collect(), has_values, ..Self::default() }
    }

    /// `| a | b |`: the first one has the names of the columns.
    fn framed(&mut self, row: Row<'t>, ranges: &mut Vec<Range<usize>>) {
        let cells = cells(Shape::Framed, row.text);
        if self.shape != Shape::Framed {
            let first = Self::of(row.text, &cells);
            *self = Self { shape: Shape::Framed, before: row.text, ..first };
            if cells.len() == 2 {
                self.pair(row, &cells, ranges);
            }
            return;
        }
        match &cells[..] {
            // `| Name | Value | Description |`.
            [name, value, ..] if self.has_values => self.named(row, name, value.clone(), ranges),
            [_, _] => self.pair(row, &cells, ranges),
            _ if self.columns.len() == 2 => self.pair(row, &cells, ranges),
            _ => {}
        }
        self.by_column(row, &cells, ranges);
    }

    /// Whether this line belongs to the table that is open; its secrets are marked.
    fn fits(&mut self, row: Row<'t>, ranges: &mut Vec<Range<usize>>) -> bool {
        let shape = self.shape;
        if matches!(shape, Shape::None | Shape::Framed) || row.text.is_empty() {
            return false;
        }
        let mut cells = cells(shape, row.text);
        let count = if shape == Shape::Record { 2 } else { self.columns.len() };
        if shape == Shape::Aligned && cells.len() != count {
            let Some(by_place) = self.by_place(row.text) else { return false };
            cells = by_place;
        }
        if cells.len() < count {
            return false;
        }
        if count == 2 && (self.has_head || shape == Shape::Record) {
            self.pair(row, &cells, ranges);
        }
        self.by_column(row, &cells, ranges);
        true
    }

    /// The cells of a row, an empty one among them, by where the names of the columns stand.
    fn by_place(&self, text: &str) -> Option<Vec<Range<usize>>> {
        let place = |column: usize| text.char_indices().nth(column).map_or(text.len(), |(at, _)| at);
        let starts: Vec<usize> = self.columns.iter().map(|column| place(column.at)).collect();
        let is_set_apart =
            |start: &usize| *start == 0 || text[..*start].ends_with([' ', '\t']) || *start == text.len();
        if !starts.iter().all(is_set_apart) {
            return None;
        }
        let ends = starts.iter().skip(1).copied().chain([text.len()]);
        Some(starts.iter().zip(ends).map(|(start, end)| trimmed(text, *start..end)).collect())
    }

    /// Marks what stands below the names that tell.
    fn by_column(&self, row: Row<'t>, cells: &[Range<usize>], ranges: &mut Vec<Range<usize>>) {
        let mut columns = self.columns.iter().zip(cells).enumerate();
        let Some((nth, (column, cell))) = columns.find(|(_, (column, _))| column.tells.is_some()) else {
            return;
        };
        // A value may hold a bar of its own; then the seams say nothing more.
        if cells.len() > self.columns.len() && self.has_head {
            let end = cells.last().map_or(cell.end, |last| last.end);
            return self.push(row, cell.start..end, column, ranges);
        }
        self.push(row, cell.clone(), column, ranges);
        for (column, cell) in self.columns.iter().zip(cells).skip(nth + 1) {
            if column.tells.is_some() {
                self.push(row, cell.clone(), column, ranges);
            }
        }
    }

    fn push(&self, row: Row<'t>, cell: Range<usize>, column: &Column, ranges: &mut Vec<Range<usize>>) {
        let value = &row.text[cell.clone()];
        let Some(telling) = column.tells else { return };
        // Without a rule, a frame may be no table, and below capitals may stand a sentence.
        let is_word = !self.has_head && self.shape == Shape::Framed && !is_no_word(value);
        let is_sentence = !self.has_head && self.shape == Shape::Aligned && value.contains(' ');
        let is_object = column.of_objects && is_name_of_an_object(value);
        if !is_word && !is_sentence && !is_object && is_secret(value, telling) {
            ranges.push(row.at + cell.start..row.at + cell.end);
        }
    }

    /// `| adminPass | x |`, and the rest of a value on a row without a name.
    fn pair(&mut self, row: Row<'t>, cells: &[Range<usize>], ranges: &mut Vec<Range<usize>>) {
        let [name, value, .., last] = cells else {
            if let [name, value] = cells {
                self.named(row, name, value.clone(), ranges);
            }
            return;
        };
        // Of a value that holds a bar.
        self.named(row, name, value.start..last.end, ranges);
    }

    fn named(
        &mut self,
        row: Row<'t>,
        name: &Range<usize>,
        value: Range<usize>,
        ranges: &mut Vec<Range<usize>>,
    ) {
        const NAMES_OF_COLUMNS: [&str; 12] = [
            "Value", "Host", "Name", "User", "Username", "user", "username", "name", "host", "value", "TTL",
            "ttl",
        ];
        let name = bare(&row.text[name.clone()]);
        let telling = if name.is_empty() { self.goes_on } else { of_setting(name) };
        self.goes_on = telling;
        let word = &row.text[value.clone()];
        if telling.is_some_and(|telling| is_secret(word, telling)) && !NAMES_OF_COLUMNS.contains(&word) {
            ranges.push(row.at + value.start..row.at + value.end);
        }
    }

    /// Takes this line for the names of columns, or for a row of its own.
    fn begins(&mut self, row: Row<'t>, ranges: &mut Vec<Range<usize>>) {
        let text = row.text;
        let is_capital = |byte: u8| {
            !byte.is_ascii_lowercase() && (byte.is_ascii_graphic() || matches!(byte, b' ' | b'\t'))
        };
        if let Some((name, value)) = text.split_once('|') {
            self.loose(row, name, value, ranges);
        } else if let Some(shape) = listed(text) {
            let cells = cells(shape, text);
            *self = Self { shape, before: text, has_head: true, ..Self::of(text, &cells) }.telling();
        } else if text.contains('\t') {
            let cells = cells(Shape::Tabbed, text);
            if are_names(text, &cells) {
                *self = Self { shape: Shape::Tabbed, before: text, has_head: true, ..Self::of(text, &cells) }
                    .telling();
            }
        } else if text.contains("  ") {
            let cells = cells(Shape::Aligned, text);
            let begins =
                |cell: &Range<usize>| text[cell.clone()].starts_with(|c: char| c.is_ascii_uppercase());
            // `Username   Password`.
            let are_capitalised =
                || cells.iter().all(begins) && are_names(text, &cells) && knows_first(text, &cells);
            if text.bytes().all(is_capital) || are_capitalised() {
                *self = Self { shape: Shape::Aligned, before: text, ..Self::of(text, &cells) }.telling();
            }
        }
    }

    /// The table, or none where none of its columns tells.
    fn telling(self) -> Self {
        let tells = self.columns.len() > 1 && self.columns.iter().any(|column| column.tells.is_some());
        if tells { self } else { Self { before: self.before, ..Self::default() } }
    }

    /// `password | x` on a line of its own. `token-1 | …` is a service of compose.
    fn loose(&self, row: Row<'t>, name: &str, value: &str, ranges: &mut Vec<Range<usize>>) {
        let is_part = |byte: u8| byte.is_ascii_alphabetic() || matches!(byte, b'_' | b'.');
        let name = name.trim();
        let word = value.trim();
        if name.bytes().all(is_part)
            && word.bytes().all(|byte| byte.is_ascii_graphic() && byte != b'|')
            && is_no_word(word)
            && of_setting(name).is_some_and(|telling| is_secret(word, telling))
        {
            let end = row.at + row.text.len();
            ranges.push(end - word.len()..end);
        }
    }
}

/// What sets names of columns apart that are alone on their line: `id,name,token`.
fn listed(text: &str) -> Option<Shape> {
    let seam = text.bytes().find(|byte| matches!(byte, b',' | b';'))?;
    let shape = if seam == b',' { Shape::Commas } else { Shape::Semicolons };
    let is_part =
        |byte: u8| byte.is_ascii_alphanumeric() || matches!(byte, b'_' | b'-' | b'"') || byte == seam;
    let is_quoted = |byte: u8| byte == b' ' && text.starts_with('"');
    if !text.bytes().all(|byte| is_part(byte) || is_quoted(byte)) {
        return None;
    }
    are_names(text, &cells(shape, text)).then_some(shape)
}

/// Whether these are names of columns that tabs or commas set apart: `user⇥password`. `password⇥x` is a pair.
fn are_names(text: &str, cells: &[Range<usize>]) -> bool {
    let is_part = |byte: u8| byte.is_ascii_alphanumeric() || matches!(byte, b'_' | b'-' | b' ');
    let is_name = |cell: &Range<usize>| !cell.is_empty() && bare(&text[cell.clone()]).bytes().all(is_part);
    (cells.len() > 2 || knows_first(text, cells)) && cells.iter().all(is_name)
}

/// Whether the first column has whose secret it is.
fn knows_first(text: &str, cells: &[Range<usize>]) -> bool {
    const FIRST: [&str; 8] = ["user", "username", "name", "login", "host", "email", "id", "account"];
    let first = cells.first().map_or("", |first| bare(&text[first.clone()]));
    FIRST.iter().any(|known| first.eq_ignore_ascii_case(known))
}

/// Without what Markdown and CSV write around a word.
fn bare(name: &str) -> &str {
    name.trim_matches(['*', '`', '"', '\''])
}

/// Whether what stands in a cell is of the kind that goes.
fn is_secret(value: &str, telling: Telling) -> bool {
    const NUMBER_BYTES: usize = 4;
    let value = bare(value);
    let is_number = value.len() <= NUMBER_BYTES && value.bytes().all(|byte| byte.is_ascii_digit());
    let is_known = value.is_empty() || value == MASK || is_plain(value) || keeps_its_id(value);
    let is_random = || looks_random(value) || is_long_hex(value) || is_random_base64(value);
    !is_number && !is_known && (telling != Telling::IfRandom || is_random())
}

/// A bootstrap token, of which only the part behind its id is secret.
fn keeps_its_id(value: &str) -> bool {
    const ID_BYTES: usize = 6;
    const SECRET_BYTES: usize = 16;
    let is_part = |part: &str| part.bytes().all(|byte| byte.is_ascii_lowercase() || byte.is_ascii_digit());
    value.split_once('.').is_some_and(|(id, secret)| {
        id.len() == ID_BYTES
            && is_part(id)
            && (secret == MASK || secret.len() == SECRET_BYTES && is_part(secret))
    })
}

/// Whether this is no word of a text.
fn is_no_word(value: &str) -> bool {
    is_chosen(value)
        || is_made_up(value)
        || looks_random(value)
        || is_long_hex(value)
        || is_random_base64(value)
}

fn is_name_of_an_object(value: &str) -> bool {
    let is_part =
        |byte: u8| byte.is_ascii_lowercase() || byte.is_ascii_digit() || matches!(byte, b'-' | b'.');
    value.bytes().all(is_part) && !looks_random(value) && !is_long_hex(value)
}
