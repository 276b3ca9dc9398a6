//! Foreign text as it may stand inside a sentence of ours (one line, printable, of a bounded length), or inside a command.
//!
//! Services' messages and names come in, parts of our texts go out. Secrets are not masked here; no adapter puts one into an
//! error.

/// What is kept of a message.
const MESSAGE_MAX_BYTES: usize = 300;

/// At most `max` bytes of it, cut between characters.
pub fn bounded(text: &str, max: usize) -> &str {
    &text[..text.floor_char_boundary(max)]
}

/// The text quoted as one word of a shell.
pub fn quoted(text: &str) -> String {
    let plain = |c: char| c.is_ascii_alphanumeric() || "-_.=:/@%+,".contains(c);
    if !text.is_empty() && text.chars().all(plain) {
        text.to_owned()
    } else {
        format!("'{}'", text.replace('\'', r"'\''"))
    }
}

/// One line, printable, short. Ends without a full stop, so that it can stand inside a sentence.
pub fn message(text: &str) -> String {
    let spaced: String = text.chars().map(|c| if c.is_control() { ' ' } else { c }).collect();
    let words = spaced.split_whitespace().collect::<Vec<_>>().join(" ");
    let short = bounded(&words, MESSAGE_MAX_BYTES);
    if short.len() < words.len() { format!("{short}…") } else { short.trim_end_matches('.').to_owned() }
}
