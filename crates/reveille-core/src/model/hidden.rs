//! Characters that a reader of a line does not see, and a terminal obeys.
//!
//! A name from outside may end the line and begin a forged one, or move the cursor. It may also turn the direction of
//! writing, so that a table shows another word than it holds ("trojan source", Unicode technical report 36). Every place
//! that shows foreign text asks this module. Not here: what each place puts instead of them, which differs between a log, a
//! table and a message.

/// Control characters, line and paragraph separators, and what turns or hides text (Unicode: Cc, Zl, Zp, and those of Cf that
/// leave no mark of their own).
pub fn is_hidden(c: char) -> bool {
    c.is_control()
        || matches!(
            c,
            '\u{ad}' | '\u{61c}' | '\u{180e}' | '\u{200b}'..='\u{200f}' | '\u{2028}'..='\u{202e}'
                | '\u{2060}'..='\u{206f}' | '\u{feff}' | '\u{fff9}'..='\u{fffb}'
        )
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn control_and_invisible_chars_are_hidden_but_no_letters() {
        assert!("\n\r\t\u{1b}\u{9b}\u{2028}\u{202e}\u{2066}\u{200b}\u{feff}\u{61c}".chars().all(is_hidden));
        assert!(!"w-1.example ÄÖ 節点 نود शिखा 🙂".chars().any(is_hidden));
    }
}
