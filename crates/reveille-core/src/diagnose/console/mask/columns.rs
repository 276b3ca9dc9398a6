//! How far in a name stands on its line, and whether what is around it is a value of another line.

use std::ops::Range;

use super::lines::prefix;

/// A name stands so far in at most.
const COLUMN_MAX: usize = 512;

/// `|`, `>-` and the like: the value begins on the next line.
pub(super) fn is_indicator(value: &str) -> bool {
    let Some(rest) = value.strip_prefix(['|', '>']) else { return false };
    let signs = rest.split(" #").next().unwrap_or("").trim_end();
    signs.len() <= 2 && signs.bytes().all(|byte| matches!(byte, b'+' | b'-' | b'1'..=b'9'))
}

/// Whether this is an option of a list, and nothing follows on its line.
pub(super) fn ends_its_line(text: &str, name: &Range<usize>) -> bool {
    let before = text[..name.start].bytes().next_back();
    let in_list = text[name.clone()].starts_with('-') && matches!(before, Some(b' ' | b'"' | b'\''));
    let is_item = before != Some(b' ') || text[..name.start].ends_with("- ");
    in_list && is_item && text[name.end..].trim_start_matches(['"', '\'', ',']).starts_with(['\n', '\r'])
}

/// What stands on the line of a name before it: where it begins, and the text behind a logger's prefix.
pub(super) fn before(text: &str, name_start: usize) -> (usize, &str) {
    let from = text.ceil_char_boundary(name_start.saturating_sub(COLUMN_MAX));
    let line = from + text[from..name_start].rfind('\n').map_or(0, |at| at + 1);
    let begins = line + prefix(&text[line..name_start]);
    (begins, &text[begins..name_start])
}

/// How far in a name stands that is the first on its line.
pub(super) fn column(text: &str, name_start: usize) -> Option<usize> {
    let (_, before) = before(text, name_start);
    let spaces = before.trim_end_matches(['"', '\'']);
    spaces.trim_start_matches([' ', '-']).is_empty().then_some(spaces.len())
}

/// Where the words of this line begin, when it is indented further than the name.
pub(super) fn indented(text: &str, name_start: usize, line: &str) -> Option<usize> {
    let above = &text.as_bytes()[name_start.saturating_sub(COLUMN_MAX)..name_start];
    let above = above.iter().rposition(|byte| *byte == b'\n').map_or(above, |at| &above[at + 1..]);
    // An item's name is as far in as its dash.
    let quoteless = above.strip_suffix(b"\"").or(above.strip_suffix(b"'")).unwrap_or(above);
    let spaces = quoteless.iter().rev().take_while(|byte| **byte == b' ').count();
    let columns = quoteless.len() - spaces..=quoteless.len();
    let bytes = line.as_bytes();
    if !columns.clone().all(|column| matches!(bytes.get(column), Some(b' ' | b'\t'))) {
        return None;
    }
    let first = *columns.end();
    Some(first + bytes[first..].iter().take_while(|byte| matches!(byte, b' ' | b'\t')).count())
        .filter(|words| line.is_char_boundary(*words))
}
