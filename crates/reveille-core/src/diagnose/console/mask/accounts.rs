//! `user:password` lines: what `chpasswd` reads, and what cloud-init prints of the passwords that it drew.

use std::ops::Range;

use super::MASK;
use super::lines::prefix;

/// So many lines behind the one that announces them are looked at.
const LINES_MAX: usize = 64;

/// Marks the passwords of accounts.
pub(super) fn account_lines(text: &str, ranges: &mut Vec<Range<usize>>) {
    let mut expected = 0;
    let mut at = 0;
    for line in text.split_inclusive('\n') {
        let end = at + line.trim_end().len();
        let reads_accounts = line.contains("chpasswd");
        if reads_accounts || line.contains("random' passwords") || line.contains("random passwords") {
            expected = LINES_MAX;
            if reads_accounts {
                accounts_within(text, at..end, ranges);
            }
        } else if expected > 0 {
            let word = text[at..end].rsplit(char::is_whitespace).next().unwrap_or("");
            let marked = account(text, end - word.len()..end, ranges);
            expected = if marked || goes_on(line[prefix(line)..].trim()) { expected - 1 } else { 0 };
        }
        at += line.len();
    }
}

/// Lines of cloud-init's configuration that stand between `chpasswd` and its accounts.
fn goes_on(line: &str) -> bool {
    line.is_empty()
        || line.starts_with('#')
        || ["list:", "users:", "expire:", "EOF", "'EOF'", "|", "{", "}"]
            .iter()
            .any(|word| line.starts_with(word) || line.ends_with(word))
}

/// Every account on a line: `echo "root:x\nubuntu:y" | chpasswd`, `chpasswd: {list: "root:x"}`.
fn accounts_within(text: &str, line: Range<usize>, ranges: &mut Vec<Range<usize>>) {
    let mut at = line.start;
    for part in text[line].split_inclusive([' ', '\t', '"', '\'', '[', ']', ',', '\\']) {
        let word = part.trim_end_matches([' ', '\t', '"', '\'', '[', ']', ',', '\\']);
        // `\n` between two accounts.
        let escaped = usize::from(word.starts_with('n') && at > 0 && text.as_bytes()[at - 1] == b'\\');
        account(text, at + escaped..at + word.len(), ranges);
        at += part.len();
    }
}

/// Marks the password when this word is `user:password`.
fn account(text: &str, word: Range<usize>, ranges: &mut Vec<Range<usize>>) -> bool {
    const USER_BYTES_MAX: usize = 32;
    let start =
        word.start + text[word.clone()].len() - text[word.clone()].trim_start_matches(['"', '\'']).len();
    let word = &text[start..word.end];
    let Some(colon) = word.as_bytes().iter().take(USER_BYTES_MAX + 1).position(|byte| *byte == b':') else {
        return false;
    };
    let is_user = |byte: u8| byte.is_ascii_alphanumeric() || matches!(byte, b'-' | b'_' | b'.');
    let user = &word[..colon];
    let begins = user.bytes().next().is_some_and(|byte| byte.is_ascii_alphabetic() || byte == b'_');
    let password = &word[colon + 1..];
    // `x.sh:12:` of a trace is a place.
    let is_place =
        password.strip_suffix(':').is_some_and(|line| line.bytes().all(|byte| byte.is_ascii_digit()));
    let is_account = begins
        && user.bytes().all(is_user)
        && !password.is_empty()
        && !password.starts_with("//")
        && !is_place;
    if is_account && !password.starts_with(MASK) {
        ranges.push(start + colon + 1..start + word.len());
    }
    is_account
}
