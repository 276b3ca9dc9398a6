//! A console's text: base64 in the answer, cleaned of control characters, the end of it kept.

use base64::Engine as _;
use base64::engine::general_purpose::STANDARD;

use reveille_core::model::console::plain;

/// EC2 keeps 64 KiB.
const CONSOLE_MAX_BYTES: usize = 64 * 1024;

/// The text, where the answer holds any.
pub(crate) fn text(encoded: &str) -> Option<String> {
    let packed: String = encoded.split_whitespace().collect();
    let bytes = STANDARD.decode(packed).ok()?;
    let text = plain(&String::from_utf8_lossy(&bytes), CONSOLE_MAX_BYTES);
    (!text.trim().is_empty()).then_some(text)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn console_is_decoded_to_plain_lines_and_empty_is_none() {
        let raw = "\u{1b}[0;32m[  OK  ]\u{1b}[0m Started\r\nlogin:\u{7}\tx\rprogress\u{0}\u{9b}K";
        let packed = STANDARD.encode(raw);
        let folded = format!("{}\n{}\n", &packed[..20], &packed[20..]);
        assert_eq!(text(&folded).as_deref(), Some("[  OK  ] Started\nlogin:\tx\nprogressK"));
        for nothing in ["", "  ", "!!", &STANDARD.encode("\n\n")] {
            assert_eq!(text(nothing), None, "{nothing:?}");
        }
    }

    #[test]
    fn a_long_console_keeps_its_end_from_a_lines_start() {
        let line = "äbcdefg\n";
        let kept = text(&STANDARD.encode(line.repeat(20_000))).expect("a text");
        assert!(kept.len() <= CONSOLE_MAX_BYTES && kept.len() > CONSOLE_MAX_BYTES - 20);
        assert!(kept.starts_with('ä') && kept.ends_with(line));
    }
}
