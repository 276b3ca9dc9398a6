//! Takes a terminal's control sequences out of text, before anything looks for names in it.

use std::borrow::Cow;

/// Control sequence introducer, as terminals of eight bits have it.
const CSI: char = '\u{9b}';

/// The text without a terminal's control sequences: a colour in the middle of `token=…` would hide the name from the
/// masker, and a person would still read the token. Loggers write the escape byte in several ways.
pub(super) fn uncoloured(text: &str) -> Cow<'_, str> {
    /// The letters in them are of either case.
    const ESCAPES: [&str; 10] =
        ["\u{1b}", "\u{241b}", "#033", "\\u001b", "\\u{1b}", "\\x1b", "\\033", LETTER, CARET, ""];
    const CARET: &str = "^[";
    const LETTER: &str = "\\e";
    let sequence = |rest: &str| {
        // One character of its own is the escape and its bracket.
        if let Some(codes) = rest.strip_prefix(CSI) {
            let end = codes.find(|c: char| !c.is_ascii_digit() && c != ';' && c != '?')?;
            return codes[end..]
                .starts_with(|c: char| c.is_ascii_alphabetic())
                .then(|| CSI.len_utf8() + end + 1);
        }
        let escape = ESCAPES.into_iter().find(|escape| {
            rest.get(..escape.len()).is_some_and(|begins| begins.eq_ignore_ascii_case(escape))
                && rest[escape.len()..].starts_with(['[', '('])
        })?;
        if rest[escape.len()..].starts_with('(') {
            // `tput sgr0` chooses the letters of ASCII, too.
            return rest[escape.len()..]
                .starts_with("(B")
                .then_some(escape.len() + 2)
                .filter(|_| !escape.is_empty());
        }
        let codes = &rest[escape.len() + 1..];
        let end = codes.find(|c: char| !c.is_ascii_digit() && c != ';' && c != '?')?;
        let letter = codes.as_bytes()[end];
        // Without its escape byte only a colour with its number is sure to be one: "[12]", "[K" and "[mask" are ordinary text.
        let ends = if escape.is_empty() {
            letter == b'm' && is_colour(codes, end)
        } else if escape == CARET || escape == LETTER {
            // `^[[a-z]` of an expression, `\e[a-z]`.
            letter == b'm'
        } else {
            letter.is_ascii_alphabetic()
        };
        ends.then_some(escape.len() + 1 + end + 1)
    };
    let mut out = String::new();
    let mut done = 0;
    let mut at = 0;
    while let Some(found) =
        text[at..].find(['\u{1b}', CSI, '\u{241b}', '#', '\\', '[', '^']).map(|found| at + found)
    {
        at = match sequence(&text[found..]) {
            Some(length) => {
                out.push_str(&text[done..found]);
                done = found + length;
                done
            }
            None => text.ceil_char_boundary(found + 1),
        };
    }
    if done == 0 {
        return Cow::Borrowed(text);
    }
    out.push_str(&text[done..]);
    Cow::Owned(out)
}

/// Whether these codes are of a colour, where no escape byte says so: `[1m5s > 1s]` is a duration.
fn is_colour(codes: &str, end: usize) -> bool {
    let goes_on_as_a_duration = end == 1 && codes.as_bytes().get(2).is_some_and(u8::is_ascii_digit);
    end > 0 && (!goes_on_as_a_duration || codes.starts_with('0'))
}
