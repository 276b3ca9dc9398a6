//! Secrets on command lines: `curl -u u:p`, `sshpass -p x`, `docker login -p x`.
//!
//! The text is taken word by word, once. A command is known by its name, wherever on the line it stands (behind a prompt, `sudo`,
//! a logger's prefix); it ends at `|`, `;`, `&&` and at the end of a line that no backslash continues.

use std::mem;
use std::ops::Range;

use super::MASK;
use super::lines::prefix;
use super::plain::is_plain;
use super::tools::{TOOLS, Takes, Tool};
use super::value::{Ends, forged};

/// What stands around a word in a list or in a script.
const AROUND: [char; 9] = ['"', '\'', '[', ']', '(', ')', ',', '`', '\\'];

/// Marks what options of known commands take.
pub(super) fn command_secrets(text: &str, ranges: &mut Vec<Range<usize>>) {
    let mut running = Running::default();
    let mut at = 0;
    while let Some((word, behind)) = next_word(text, at) {
        at = word.end;
        if behind.ends_a_line && !behind.is_continued {
            running.end(text, ranges);
        }
        let end = running.take(text, word, ranges);
        at = at.max(end);
    }
    running.end(text, ranges);
}

/// The command that runs, and what it waits for.
#[derive(Clone, Debug, Default)]
struct Running {
    name: Option<&'static str>,
    /// The tools of that name, a bit for each; there may be several.
    tools: u128,
    /// A word that some options need was seen.
    behind: Vec<&'static str>,
    takes: Option<Takes>,
    last: Option<Range<usize>>,
    /// The last word that no option may take for itself: `x` of `attach x --format json`.
    free: Option<Range<usize>>,
    words: usize,
    /// What the word before was.
    after: After,
    ends: Ends,
}

/// What the word before takes for itself.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
enum After {
    #[default]
    Word,
    /// An option may take this word.
    Option,
    /// `>` takes it.
    Redirection,
}

impl Running {
    /// Takes the next word; says where it ended, when it is longer than the word.
    fn take(&mut self, text: &str, word: Range<usize>, ranges: &mut Vec<Range<usize>>) -> usize {
        let word = word.start + argument_of_audit(&text[word.clone()])..word.end;
        let raw = &text[word.clone()];
        let bare = raw.trim_matches(AROUND);
        if let Some(takes) = self.takes.take() {
            let is_kept = takes == Takes::Statement && matches!(bare, "PASSWORD" | "VALUES");
            if takes == Takes::Second || is_kept {
                self.takes = Some(Takes::Word);
                return word.end;
            }
            return self.secret(text, word, takes, ranges);
        }
        if matches!(bare, "|" | ";" | "&&" | "||" | "&") {
            self.end(text, ranges);
            return word.end;
        }
        let after = mem::take(&mut self.after);
        if let Some(file) = redirected(raw) {
            self.after = if file.is_empty() { After::Redirection } else { After::Word };
            return word.end;
        }
        if after == After::Redirection {
            return word.end;
        }
        if let Some(name) = command(bare) {
            // `sudo docker login`: a later command is the one that counts. `login` of one is an option's name to another.
            if self.name != Some(name) {
                self.begin(Some(name));
            }
            return word.end;
        }
        let needed = self.behind.len();
        let end = self.option(text, &word, bare, ranges);
        let is_needed = self.behind.len() > needed;
        if bare.starts_with('-') {
            self.after = if bare.contains('=') { After::Word } else { After::Option };
        } else if !is_needed {
            if after == After::Word && !(self.free.is_some() && self.takes_first()) {
                self.free = Some(word.clone());
            }
            self.last = Some(word);
            self.words += 1;
        }
        if raw.ends_with(';') {
            self.end(text, ranges);
        }
        end
    }

    fn option(
        &mut self,
        text: &str,
        word: &Range<usize>,
        bare: &str,
        ranges: &mut Vec<Range<usize>>,
    ) -> usize {
        for tool in self.tools() {
            let is_it = |needed: &&str| bare == *needed || needed.ends_with('=') && bare.starts_with(needed);
            if let Some(needed) = tool.behind.iter().find(|needed| is_it(needed))
                && !self.behind.contains(needed)
            {
                self.behind.push(needed);
                self.words = 0;
                self.free = None;
            }
        }
        let mut joined = None;
        for tool in self.tools().filter(|tool| self.is_behind(tool)) {
            for (option, takes) in tool.options {
                if *takes == Takes::Assigned {
                    let value =
                        bare.split_once('=').filter(|_| !bare.starts_with('-')).map(|(_, value)| value);
                    let value = value.filter(|value| !value.is_empty() && !value.starts_with('@'));
                    joined = joined.or(value.map(|value| (value, Takes::Word)));
                    continue;
                }
                let is_joined = matches!(takes, Takes::Joined | Takes::JoinedAccount);
                let rest = bare.strip_prefix(option).or_else(|| tool.written_together(bare, option));
                if rest == Some("") && !is_joined {
                    self.takes = Some(*takes);
                    return word.end;
                }
                let rest = rest.filter(|rest| !rest.is_empty());
                let rest = if is_joined { rest } else { rest.and_then(|rest| rest.strip_prefix('=')) };
                joined = joined.or(rest.map(|rest| (rest, *takes)));
            }
        }
        let Some((rest, takes)) = joined else { return word.end };
        let raw = &text[word.clone()];
        let quotes = raw.len() - raw.trim_start_matches(AROUND).len();
        let start = word.start + quotes + bare.len() - rest.len();
        self.secret(text, start..word.end, takes, ranges)
    }

    fn tools(&self) -> impl Iterator<Item = &'static Tool> + use<> {
        let tools = self.tools;
        (0..TOOLS.len()).filter(move |nth| tools >> nth & 1 == 1).map(|nth| &TOOLS[nth])
    }

    fn is_behind(&self, tool: &Tool) -> bool {
        tool.behind.is_empty() || tool.behind.iter().any(|needed| self.behind.contains(needed))
    }

    /// The command is over: of some, its last word was the secret.
    fn end(&mut self, text: &str, ranges: &mut Vec<Range<usize>>) {
        const WORDS_MIN: usize = 2;
        let last = self.tools().filter(|tool| self.is_behind(tool)).find_map(|tool| tool.last);
        let needs = if self.behind.is_empty() { WORDS_MIN } else { 1 };
        let word = self.free.take().or(self.last.take().filter(|_| last != Some(Takes::First)));
        if let (Some(takes), Some(word)) = (last.filter(|_| self.words >= needs), word) {
            self.secret(text, word, takes, ranges);
        }
        self.begin(None);
    }

    /// Whether the secret is the first free word, and not the last.
    fn takes_first(&self) -> bool {
        self.tools().any(|tool| tool.last == Some(Takes::First))
    }

    /// Another command; where lines and words end stays known.
    fn begin(&mut self, name: Option<&'static str>) {
        let tools = name.map_or(0, tools);
        *self = Self { name, tools, ends: mem::take(&mut self.ends), ..Self::default() };
    }

    /// Marks the secret in this word, and says where it ends.
    fn secret(
        &mut self,
        text: &str,
        word: Range<usize>,
        takes: Takes,
        ranges: &mut Vec<Range<usize>>,
    ) -> usize {
        let end = self.ends.quoted(text, word.start).unwrap_or(word.end).max(word.end);
        let value = &text[word.start..end];
        let skipped = match takes {
            // `curl -u TOKEN:` has it in front.
            Takes::Account | Takes::JoinedAccount => value
                .find(':')
                .filter(|at| !value[at + 1..].trim_matches(AROUND).is_empty())
                .map_or(0, |at| at + 1),
            Takes::Comma => value.find(',').map_or(value.len(), |at| at + 1),
            Takes::LastColon => value.rfind(':').map_or(value.len(), |at| at + 1),
            Takes::Path => value.find('/').map_or(value.len(), |at| at + 1),
            Takes::Percent => value.find('%').map_or(value.len(), |at| at + 1),
            Takes::Literal => value.find('=').map_or(value.len(), |at| at + 1),
            Takes::Statement if value.trim_matches(AROUND) == "RANDOM" => value.len(),
            Takes::Quoted if !value.starts_with(['"', '\'']) => value.len(),
            Takes::Word
            | Takes::Second
            | Takes::Joined
            | Takes::Quoted
            | Takes::Statement
            | Takes::First
            | Takes::Assigned => 0,
        };
        // `curl -u name` asks for the password.
        let user = value.trim_matches(AROUND);
        let is_name = matches!(takes, Takes::Account | Takes::JoinedAccount)
            && skipped == 0
            && user
                .bytes()
                .all(|byte| byte.is_ascii_lowercase() || user.ends_with(':') && !byte.is_ascii_digit());
        let found = &value[skipped..];
        let is_next_option = found.starts_with("--");
        if !is_name && !found.is_empty() && !is_next_option && !is_masked(found) && !is_plain(found) {
            ranges.push(word.start + skipped..end);
        }
        end
    }
}

/// The file of a redirection that this word is: `2>/dev/null`; an empty one stands in the next word.
fn redirected(word: &str) -> Option<&str> {
    let sign = word.trim_start_matches(|c: char| c.is_ascii_digit() || c == '&');
    sign.starts_with(['>', '<']).then(|| sign.trim_start_matches(['>', '<', '|']))
}

/// How many bytes stand before an argument as audit writes it: `a1="-u"`.
fn argument_of_audit(word: &str) -> usize {
    let Some(numbered) = word.strip_prefix('a') else { return 0 };
    let digits = numbered.bytes().take_while(u8::is_ascii_digit).count();
    if digits > 0 && numbered[digits..].starts_with("=\"") { 1 + digits + 1 } else { 0 }
}

/// Which lengths the names have that begin with a letter: almost no word of a log is compared with a name.
static LENGTHS: [u64; 256] = lengths();

const fn lengths() -> [u64; 256] {
    let mut lengths = [0; 256];
    let mut tool = 0;
    while tool < TOOLS.len() {
        let names = TOOLS[tool].names;
        let mut name = 0;
        while name < names.len() {
            lengths[names[name].as_bytes()[0] as usize] |= 1 << names[name].len();
            name += 1;
        }
        tool += 1;
    }
    lengths
}

/// The tools of this name.
fn tools(name: &str) -> u128 {
    const { assert!(TOOLS.len() <= 128, "each tool has a bit") }
    let calls = |tool: &Tool| u128::from(tool.names.contains(&name));
    TOOLS.iter().enumerate().fold(0, |tools, (nth, tool)| tools | calls(tool) << nth)
}

/// The name of the tool that this word calls.
fn command(word: &str) -> Option<&'static str> {
    /// Less than a table's entry has bits.
    const BYTES_MAX: usize = 63;
    if word.len() > BYTES_MAX || word.starts_with('-') {
        return None;
    }
    // `ExecStart=-/usr/bin/curl`.
    let base = word.rsplit(['/', '(', '`', '"', '\'', '=']).next().unwrap_or("");
    let base = base.trim_start_matches(['-', '@', '+', '!', ':']);
    let first = base.bytes().next()?;
    if LENGTHS[usize::from(first)] >> base.len() & 1 == 0 {
        return None;
    }
    TOOLS.iter().flat_map(|tool| tool.names).find(|name| **name == base).copied()
}

/// Whether this is a mask and what closes it; text right behind a mask is none of ours.
fn is_masked(found: &str) -> bool {
    found.starts_with(MASK) && forged(found).is_none()
}

/// What stood before a word.
#[derive(Clone, Copy, Debug, Default)]
struct Before {
    ends_a_line: bool,
    is_continued: bool,
}

/// The next word: between spaces, and between the commas of a list of quoted words. What continues a line is a space, and so
/// is a logger's prefix behind it: `sshpass -p \\⏎  x`.
fn next_word(text: &str, from: usize) -> Option<(Range<usize>, Before)> {
    let bytes = text.as_bytes();
    let is_comma = |at: usize| bytes[at] == b',' && at > 0 && matches!(bytes[at - 1], b'"' | b'\'');
    let continues = |at: usize| bytes[at] == b'\\' && matches!(bytes.get(at + 1), Some(b'\n' | b'\r'));
    let is_space = |at: usize| bytes[at].is_ascii_whitespace() || is_comma(at) || continues(at);
    let mut before = Before::default();
    let mut at = from;
    while at < bytes.len() && is_space(at) {
        if bytes[at] == b'\n' {
            before.ends_a_line = true;
            before.is_continued = text[..at].trim_end_matches('\r').ends_with('\\');
            if before.is_continued {
                at += prefix(&text[at + 1..]);
            }
        }
        at += 1;
    }
    let start = at;
    while at < bytes.len() && !is_space(at) {
        at += 1;
    }
    (at > start).then_some((start..at, before))
}
