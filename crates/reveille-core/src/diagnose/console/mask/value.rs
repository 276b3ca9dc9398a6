//! Where the value of a name begins and ends.

use super::MASK;

/// What stands between a name and its value.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Between {
    /// `=`, `:=`, `=>` or a bracket with a quote behind it.
    Equals,
    /// `:`
    Colon,
    /// Only space, behind an option: `--token x`.
    Space,
    /// A comma, behind an option in a list: `[--token, x]`.
    Comma,
}

/// Quotes as pages have them that show JSON, and as Gson and PHP write them.
const SPELLED_QUOTES: [&str; 9] =
    ["&quot;", "&apos;", "&#34;", "&#39;", "&#x22;", "&#x27;", "\\u0022", "\\u0027", "\\x22"];
/// Signs of assignment as they write them.
const SPELLED_EQUALS: [&str; 4] = ["\\u003d", "\\u003D", "\\x3d", "&#61;"];

/// The spelled quote that this text ends with.
pub(super) fn spelled_quote(before: &str) -> Option<&'static str> {
    SPELLED_QUOTES.into_iter().find(|quote| before.ends_with(quote))
}

/// The text behind the spelled quote that it begins with, or the text.
fn unquoted(text: &str) -> &str {
    SPELLED_QUOTES.iter().find_map(|quote| text.strip_prefix(quote)).unwrap_or(text)
}

/// Where the value of this name begins; `None` when none follows. The value may be empty.
pub(super) fn start(text: &str, name_start: usize, name_end: usize) -> Option<(usize, Between)> {
    const CLOSING_MAX: usize = 4;
    let before = text[..name_start].bytes().next_back();
    let is_option = text[name_start..name_end].starts_with('-')
        && before.is_none_or(|byte| byte.is_ascii_whitespace() || matches!(byte, b'"' | b'\'' | b'[' | b'('));
    let rest = &text[name_end..];
    if let Some(value) = SPELLED_EQUALS.iter().find_map(|equals| rest.strip_prefix(equals)) {
        return Some((text.len() - unquoted(value).len(), Between::Equals));
    }
    let rest = unquoted(rest);
    // The quote of JSON within JSON stands behind backslashes; `config['password']` has a bracket too.
    let closing = rest.bytes().take_while(|byte| *byte == b'\\').count();
    let rest = &rest[closing..];
    // `passwd[root]=x`.
    let rest = behind_an_index(rest).unwrap_or(rest);
    let closing = rest
        .bytes()
        .take(CLOSING_MAX)
        .take_while(|byte| matches!(byte, b'"' | b'\'' | b']' | b')' | b'*' | b'`' | b'\\'))
        .count();
    let rest = &rest[closing..];
    let rest = unquoted(led(rest));
    let unspaced = rest.trim_start_matches([' ', '\t']);
    let (value, between) = if let Some(value) = after_equals(unspaced) {
        (value, Between::Equals)
    } else if let Some(value) = unspaced.strip_prefix(':') {
        (value, Between::Colon)
    } else if let Some(value) = unspaced.strip_prefix('\u{ff1a}') {
        (value, Between::Colon)
    } else if let Some(value) = second_argument(&text[..name_start], unspaced) {
        (value, Between::Equals)
    } else if is_option && unspaced.starts_with(',') {
        (unspaced.trim_start_matches([',', ' ', '\t']), Between::Comma)
    } else if is_option && unspaced.len() < rest.len() {
        (unspaced, Between::Space)
    } else {
        return None;
    };
    let value = value.trim_start_matches([' ', '\t', '=']);
    Some((text.len() - unquoted(value).len(), between))
}

/// What stands behind the dots that lead to a colon: `Password........: x`.
fn led(rest: &str) -> &str {
    let behind = rest.trim_start_matches('.');
    if behind.starts_with(':') { behind } else { rest }
}

/// How many bytes of YAML's tags and anchors stand before a value: `!!str x`, `&a x`; none where nothing follows them.
pub(super) fn behind_properties(value: &str) -> usize {
    const PROPERTIES_MAX: usize = 2;
    const BYTES_MAX: usize = 128;
    let near = cut(value, BYTES_MAX);
    let mut at = 0;
    for _ in 0..PROPERTIES_MAX {
        let rest = &near[at..];
        let Some(length) = rest.find([' ', '\t']).filter(|_| rest.starts_with(['!', '&'])) else { break };
        at += length + rest[length..].len() - rest[length..].trim_start_matches([' ', '\t']).len();
    }
    at
}

/// Which sign three times in a row this value begins with, as what TOML and Python write over several lines does.
pub(super) fn of_lines(value: &str) -> Option<&'static str> {
    ["\"\"\"", "'''"].into_iter().find(|sign| value.starts_with(sign))
}

/// `define('DB_PASSWORD', 'x')`, `setenv("TOKEN", "x", 1)`.
fn second_argument<'t>(before: &str, rest: &'t str) -> Option<&'t str> {
    let is_first = before.strip_suffix(['"', '\''])?.trim_end_matches(' ').ends_with('(');
    let value = rest.strip_prefix(',').filter(|_| is_first)?.trim_start_matches(' ');
    value.starts_with(['"', '\'']).then_some(value)
}

/// How long a mask is together with what stands right behind it: nothing that was printed with a mask in it is masked by that.
pub(super) fn forged(value: &str) -> Option<usize> {
    const BYTES_MAX: usize = 512;
    let rest = value.strip_prefix(MASK)?;
    let is_behind = |c: &char| {
        !c.is_whitespace() && !matches!(c, '"' | '\'' | '<' | '&' | ',' | ';' | ')' | '}' | ']' | '`' | '\\')
    };
    let length: usize = rest.chars().take(BYTES_MAX).take_while(is_behind).map(char::len_utf8).sum();
    let is_text = rest[..length].contains(|c: char| c.is_alphanumeric());
    is_text.then_some(MASK.len() + length)
}

fn behind_an_index(rest: &str) -> Option<&str> {
    const INDEX_BYTES_MAX: usize = 64;
    let index = rest.strip_prefix('[')?;
    let is_word = |byte: &u8| byte.is_ascii_alphanumeric() || matches!(byte, b'_' | b'-');
    let length = index.bytes().take(INDEX_BYTES_MAX).take_while(is_word).count();
    index[length..].strip_prefix("]=").map(|_| &index[length + 1..])
}

fn after_equals(text: &str) -> Option<&str> {
    if let Some(argument) = text.strip_prefix('(') {
        return argument.starts_with(['"', '\'']).then_some(argument);
    }
    let signs = ["=>", ":=", "::=", "||=", "?=", "+=", "==", "="];
    signs.iter().find_map(|sign| text.strip_prefix(sign))
}

/// At most so many bytes of the text.
pub(super) fn cut(text: &str, bytes_max: usize) -> &str {
    let end = text.floor_char_boundary(bytes_max);
    &text[..end]
}

pub(super) fn line_end(text: &str, start: usize) -> usize {
    text[start..].find('\n').map_or(text.len(), |at| start + at)
}

/// The end of a quoted value, its closing quote with it; `None` where the value is not quoted.
///
/// The quote is closed by one behind as many backslashes as it was opened behind. `''` within single quotes is YAML's quote.
pub(super) fn quoted_end(value: &str) -> Option<usize> {
    let slashes = value.bytes().take_while(|byte| *byte == b'\\').count();
    let quote = value.as_bytes().get(slashes).copied().filter(|byte| matches!(byte, b'"' | b'\''))?;
    let bytes = value.as_bytes();
    let first = slashes + 1;
    let mut run = 0;
    let mut at = first;
    while at < bytes.len() {
        let byte = bytes[at];
        if byte == quote && (run == slashes || (slashes == 0 && run % 2 == 0)) {
            if !(quote == b'\'' && at > first && bytes.get(at + 1) == Some(&quote)) {
                return Some(at + 1);
            }
            at += 1;
        }
        run = if byte == b'\\' { run + 1 } else { 0 };
        at += 1;
    }
    Some(value.len())
}

/// So many quoted parts of one word are joined. Each quote within one of a shell is two of them.
const JOINED_MAX: usize = 16;

/// Where lines and words end, found once for all values that begin in them. Values are asked for in the order of their
/// beginnings.
#[derive(Clone, Debug, Default)]
pub(super) struct Ends {
    line: Option<(usize, usize)>,
    word: Option<(usize, usize)>,
    item: Option<(usize, usize)>,
    argument: Option<(usize, usize)>,
    entry: Option<(usize, usize)>,
    quoted: usize,
}

impl Ends {
    /// The end of the line.
    pub(super) fn line(&mut self, text: &str, start: usize) -> usize {
        found_once(&mut self.line, start, || line_end(text, start))
    }

    /// The end of the quoted value that begins here. One that begins inside another ends with it at the latest: a text of
    /// ten thousand opening quotes is walked once.
    pub(super) fn quoted(&mut self, text: &str, start: usize) -> Option<usize> {
        if !text[start..].starts_with(['"', '\'', '\\']) {
            return None;
        }
        let line = self.line(text, start);
        if start < self.quoted {
            return is_quoted(&text[start..line]).then_some(self.quoted);
        }
        let mut end = start + quoted_end(&text[start..line])?;
        // A shell joins what is quoted one way and another: `'a'"b"`, and `'a'\''b'` for a quote within.
        for _ in 0..JOINED_MAX {
            let rest = &text[end..line];
            let escaped = usize::from(rest.starts_with("\\''")) * 2;
            match rest[escaped..].starts_with(['"', '\'']).then(|| quoted_end(&rest[escaped..])).flatten() {
                Some(more) if end > start => end += escaped + more,
                _ => break,
            }
        }
        self.quoted = end;
        Some(end)
    }

    /// The next space that no backslash makes a part of the word (`a\ b`), or the end of the line.
    pub(super) fn word(&mut self, text: &str, start: usize) -> usize {
        let end = self.line(text, start);
        let is_part = |at: usize| {
            let before = text[start..start + at].strip_suffix('\\');
            before.is_some_and(|before| !before.is_empty() && !before.ends_with('\\'))
        };
        found_once(&mut self.word, start, || {
            let mut spaces = text[start..end].match_indices(char::is_whitespace);
            spaces.find(|(at, _)| !is_part(*at)).map_or(end, |(at, _)| start + at)
        })
    }

    /// The end of a word that may stand in a list, in quotes or in brackets.
    pub(super) fn item(&mut self, text: &str, start: usize) -> usize {
        const STOPS: [char; 9] = ['"', '\'', ',', ';', '&', '<', ')', ']', '}'];
        let end = self.word(text, start);
        found_once(&mut self.item, start, || text[start..end].find(STOPS).map_or(end, |at| start + at))
    }

    /// The end of a bare value in a list of pairs: the next space or comma.
    pub(super) fn entry(&mut self, text: &str, start: usize) -> usize {
        let end = self.word(text, start);
        found_once(&mut self.entry, start, || text[start..end].find(',').map_or(end, |at| start + at))
    }

    /// The end of an argument of a URL.
    pub(super) fn argument(&mut self, text: &str, start: usize) -> usize {
        let end = self.word(text, start);
        found_once(&mut self.argument, start, || {
            text[start..end].find(['&', '"', '\'']).map_or(end, |at| start + at)
        })
    }
}

fn is_quoted(value: &str) -> bool {
    value.trim_start_matches('\\').starts_with(['"', '\''])
}

/// The end of a stretch that is the same for each beginning within it.
pub(super) fn found_once(
    known: &mut Option<(usize, usize)>,
    start: usize,
    find: impl FnOnce() -> usize,
) -> usize {
    match known {
        Some((from, to)) if (*from..=*to).contains(&start) => *to,
        _ => known.insert((start, find())).1,
    }
}
