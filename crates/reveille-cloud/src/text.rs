//! Foreign text as it may stand inside a sentence of ours (one line, printable, of a bounded length), or inside a command.
//!
//! Services' messages and names come in, parts of our texts go out. Secrets are not masked here; no adapter puts one into an
//! error.

use reveille_core::model::hidden::is_hidden;

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
    let spaced: String = text.chars().map(|c| if is_hidden(c) { ' ' } else { c }).collect();
    let words = spaced.split_whitespace().collect::<Vec<_>>().join(" ");
    let short = bounded(&words, MESSAGE_MAX_BYTES);
    if short.len() < words.len() {
        format!("{short}…")
    } else {
        short.trim_end_matches(['.', ' ']).to_owned()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// A message stands in a line of a log: it must not end it, move the cursor, or turn the words after it.
    #[test]
    fn message_is_one_plain_line_and_short() {
        let said = "No such\u{1b}[2K\u{202e}\r\n\u{2028}server\u{200b} .";
        assert_eq!(message(said), "No such [2K server");
        assert_eq!(message(&"ä".repeat(1000)).len(), MESSAGE_MAX_BYTES + "…".len());
        assert_eq!(message("節点 w-1 is gone."), "節点 w-1 is gone");
    }
}
