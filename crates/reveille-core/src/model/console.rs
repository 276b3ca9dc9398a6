//! A console's text as everybody reads it: plain lines, the end of it.
//!
//! Adapters hand over what this makes of what their cloud sent; what the lines say is judged elsewhere.

/// Lines and tabs stay; terminal sequences and every other control character go. Keeps the end, from a line's start.
pub fn plain(text: &str, max_bytes: usize) -> String {
    let mut out = String::with_capacity(text.len());
    let mut chars = text.chars().peekable();
    while let Some(c) = chars.next() {
        match c {
            '\u{1b}' if chars.peek() == Some(&'[') => {
                chars.next();
                // A sequence ends with its first byte of @ to ~.
                let _ = chars.by_ref().find(|c| ('@'..='~').contains(c));
            }
            '\r' if chars.peek() == Some(&'\n') => {}
            '\r' => out.push('\n'),
            '\n' | '\t' => out.push(c),
            c if c.is_control() => {}
            c => out.push(c),
        }
    }
    if out.len() <= max_bytes {
        return out;
    }
    let head = out.floor_char_boundary(out.len() - max_bytes);
    let start = out[head..].find('\n').map_or(head, |at| head + at + 1);
    out[start..].to_owned()
}

#[cfg(test)]
mod tests {
    use super::*;

    const MAX_BYTES: usize = 64 * 1024;

    #[test]
    fn a_console_is_plain_lines() {
        let raw = "\u{1b}[0;32m[  OK  ]\u{1b}[0m Started\r\nlogin:\u{7}\tx\rprogress\u{0}\u{9b}K";
        assert_eq!(plain(raw, MAX_BYTES), "[  OK  ] Started\nlogin:\tx\nprogressK");
    }

    #[test]
    fn a_long_console_keeps_its_end_from_a_lines_start() {
        let line = "äbcdefg\n";
        let text = line.repeat(20_000);
        let kept = plain(&text, MAX_BYTES);
        assert!(kept.len() <= MAX_BYTES && kept.len() > MAX_BYTES - 20);
        assert!(kept.starts_with('ä') && kept.ends_with(line));
    }
}
