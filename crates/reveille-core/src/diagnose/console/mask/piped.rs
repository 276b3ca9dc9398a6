//! What is piped or written into something that takes a secret: `echo x | passwd --stdin`, `echo x > /etc/k3s-token`.
//!
//! ```text
//!  echo x | chpasswd      (echo x; echo x) | passwd      + echo x          passwd <<EOF
//!  yes x | passwd         echo x | tee /etc/k3s-token    + chpasswd        x
//!  chpasswd <<< x         echo x > /etc/k3s-token        (set -x)          EOF
//! ```

use std::ops::Range;

use super::MASK;
use super::lines::prefix;
use super::names::{Telling, telling};
use super::plain::is_plain;
use super::tools::READERS;
use super::value::cut;

/// Marks what is fed to commands that read a secret, and to files whose names tell of one.
pub(super) fn piped(text: &str, ranges: &mut Vec<Range<usize>>) {
    let mut traced = Traced::default();
    let mut here = None;
    let mut at = 0;
    for line in text.split_inclusive('\n') {
        let content = at + prefix(line)..at + line.len();
        here = match here {
            Some(document) => Here::goes_on(document, text, content, ranges),
            None => {
                fed(text, content.clone(), ranges);
                traced.line(text, content.clone(), ranges);
                Here::opened(&text[content])
            }
        };
        at += line.len();
    }
}

/// `echo x | passwd --stdin`, `printf %s x | docker login --password-stdin`, `chpasswd <<< x`, `echo x > /etc/k3s-token`.
fn fed(text: &str, content: Range<usize>, ranges: &mut Vec<Range<usize>>) {
    let at = content.start;
    let line = &text[content];
    if !line.contains(['|', '>', '<']) {
        return;
    }
    let reader = READERS.iter().filter_map(|reader| line.rfind(reader)).max();
    let kept = keeps(line);
    if let Some(pipe) = reader.and_then(|last| line[..last].rfind('|')) {
        said(text, at..at + pipe, ranges);
    }
    if let Some(kept) = kept {
        said(text, at..at + line[..kept].trim_end_matches(['>', '|']).len(), ranges);
    }
    if reader.is_none() && kept.is_none() {
        return;
    }
    if let Some(here) = line.find("<<<").map(|here| here + 3) {
        push(text, at + here..at + line.len(), ranges);
    }
    // `cryptsetup --key-file <(echo -n x)`.
    if let Some(open) = line.find("<(").map(|open| open + 2) {
        let close = line[open..].find(')').map_or(line.len(), |close| open + close);
        said(text, at + open..at + close, ranges);
    }
}

/// Where the part of this line begins that writes into a file which keeps a secret: `tee F`, `| tee F`, `> F`.
fn keeps(line: &str) -> Option<usize> {
    let into = |(at, sign): (usize, &str)| {
        let behind = &line[at + sign.len()..];
        let is_kept = if sign == "|" { writes(behind) } else { is_kept_in(behind) };
        is_kept.then_some(at)
    };
    let last = line.rmatch_indices(['|', '>']).find_map(into);
    last.or_else(|| writes(line).then_some(0))
}

/// The two ends of a pipe as `set -x` prints them: each on a line of its own, in either order. What a command substitutes is
/// traced between them, behind more signs.
#[derive(Clone, Debug, Default)]
struct Traced {
    /// What an `echo` before said, and how many commands were traced since.
    said: Option<(Range<usize>, usize)>,
    /// The command before reads, and nothing was said to it yet.
    reads: bool,
    /// How many signs stood before either.
    depth: usize,
}

impl Traced {
    fn line(&mut self, text: &str, content: Range<usize>, ranges: &mut Vec<Range<usize>>) {
        /// `echo x | base64 -d | passwd`.
        const BETWEEN_MAX: usize = 1;
        const PRINTED_BYTES_MAX: usize = 256;
        let line = &text[content.clone()];
        let Some((depth, begins)) = traced(line) else {
            // What goes into a pipe is not printed.
            let words = line.trim();
            let is_printed = |said: &Range<usize>| {
                !words.is_empty() && cut(&text[said.clone()], PRINTED_BYTES_MAX).contains(words)
            };
            self.said.take_if(|(said, _)| is_printed(said));
            return;
        };
        let command = &line[begins..];
        let is_first = says(command).first().is_some_and(|(word, _)| command[..*word].trim().is_empty());
        let takes = !is_first && (reads(command) || writes(command));
        let is_pending = self.reads || self.said.is_some();
        if !takes && (is_pending && depth > self.depth || is_filter(command)) {
            return;
        }
        self.depth = depth;
        let command = content.start + begins..content.end;
        if takes {
            let before = self.said.take();
            self.reads = before.is_none();
            if let Some((before, _)) = before {
                said(text, before, ranges);
            }
            return;
        }
        if is_first && self.reads {
            said(text, command, ranges);
        } else if is_first {
            self.said = Some((command, 0));
        } else {
            self.said = self
                .said
                .take()
                .filter(|(_, since)| *since < BETWEEN_MAX)
                .map(|(said, since)| (said, since + 1));
        }
        self.reads = false;
    }
}

/// How many signs stand before a traced command, and where it begins: behind `+ `, or behind the place or the time that scripts
/// put there (`PS4`): `+ /root/x.sh:12: main(): `, `+(x.sh:12): `, `+ 06:00:00 `.
fn traced(line: &str) -> Option<(usize, usize)> {
    const WORDS_MAX: usize = 3;
    const WORD_BYTES_MAX: usize = 128;
    let depth = line.bytes().take_while(|byte| *byte == b'+').count();
    let is_of_ps4 = |word: &str| {
        let digits = word.bytes().filter(u8::is_ascii_digit).count();
        word.ends_with(':')
            || word.contains(':') && digits > 0
            || word.ends_with("()")
            || digits > 0 && word.bytes().all(|byte| byte.is_ascii_digit() || byte == b'.')
    };
    let mut at = depth;
    for _ in 0..WORDS_MAX {
        let word = cut(line[at..].trim_start_matches(' '), WORD_BYTES_MAX);
        let Some(length) = word.find(' ').filter(|length| is_of_ps4(&word[..*length])) else { break };
        at += line[at..].len() - line[at..].trim_start_matches(' ').len() + length;
    }
    (depth > 0 && line[at..].starts_with(' ')).then_some((depth, at))
}

/// What stands in a pipe between its ends, and never feeds one of its own.
fn is_filter(command: &str) -> bool {
    const FILTERS: [&str; 10] =
        ["base64", "tr", "sed", "cut", "head", "tail", "awk", "jq", "xargs", "gunzip"];
    command.split_whitespace().next().is_some_and(|word| FILTERS.contains(&word))
}

/// A here-document for a command that reads a secret, or for a file that keeps one: what ends it, and its lines so far.
#[derive(Clone, Copy, Debug)]
struct Here<'t> {
    ends: &'t str,
    lines: usize,
}

impl<'t> Here<'t> {
    fn opened(line: &'t str) -> Option<Self> {
        const WORD_BYTES_MAX: usize = 32;
        let sign = line.find("<<")?;
        let rest =
            line[sign + 2..].trim_start_matches('-').trim_start().trim_start_matches(['"', '\'', '\\']);
        let is_word = |byte: &u8| byte.is_ascii_alphanumeric() || *byte == b'_';
        let word = rest.bytes().take_while(is_word).count();
        if !(1..=WORD_BYTES_MAX).contains(&word) {
            return None;
        }
        // Accounts keep their names: `accounts` looks at those.
        let takes = !line.contains("chpasswd") && reads(line) || keeps(line).is_some();
        takes.then_some(Self { ends: &rest[..word], lines: 0 })
    }

    /// Marks a line of it. One whose end was cut off is let go of: what follows may be a log.
    fn goes_on(self, text: &str, line: Range<usize>, ranges: &mut Vec<Range<usize>>) -> Option<Self> {
        const LINES_MAX: usize = 16;
        // A source that prints one has `END\n"` there.
        let end = text[line.clone()].trim().strip_prefix(self.ends);
        if end.is_some_and(|rest| rest.is_empty() || rest.starts_with(['\\', '"', '\'', ')', '`'])) {
            return None;
        }
        // An invitation of our own keeps its id: `shapes` looks at it.
        if !text[line.clone()].trim_start().starts_with("rvi1.") {
            push(text, line, ranges);
        }
        Some(Self { lines: self.lines + 1, ..self }).filter(|here| here.lines < LINES_MAX)
    }
}

/// Whether this command reads a secret; `/etc/passwd` is a file, and `passwd -l` asks for none.
fn reads(command: &str) -> bool {
    READERS.iter().any(|reader| {
        command.match_indices(reader).any(|(at, _)| {
            let (before, behind) = (&command[..at], &command[at + reader.len()..]);
            let begins = before.is_empty() || before.ends_with([' ', '(']) || before.ends_with("bin/");
            let ends = behind.is_empty() || behind.starts_with(char::is_whitespace);
            begins && ends && !(*reader == "passwd" && behind.starts_with(" -"))
        })
    })
}

/// `tee /etc/k3s-token`, `sudo tee -a /root/.vault-pass`, `dd of=/etc/k3s-token`, `install -m600 /dev/stdin /etc/k3s-token`.
fn writes(command: &str) -> bool {
    const WORDS_MAX: usize = 8;
    const BYTES_MAX: usize = 256;
    let near = cut(command, BYTES_MAX);
    // A line of bars is looked through once, and not for each of them.
    if near.trim_start().starts_with(['|', '<', '>', '&']) {
        return false;
    }
    let words = near.split_whitespace().take(WORDS_MAX);
    let mut words = words.skip_while(|word| *word == "sudo" || word.starts_with('-'));
    let is_kept = |word: &str| is_kept_in(word) && !word.ends_with(".log");
    match words.next() {
        Some("tee") => words.any(is_kept),
        Some("dd") => words.filter_map(|word| word.strip_prefix("of=")).any(is_kept),
        Some("install" | "cp") => words.any(|word| word == "/dev/stdin") && words.any(is_kept),
        _ => false,
    }
}

/// Where an `echo` or its like stands, and where what it says begins.
fn says(before: &str) -> Vec<(usize, usize)> {
    let is_word =
        |at: usize| !before[..at].ends_with(|c: char| c.is_ascii_alphanumeric() || matches!(c, '-' | '_'));
    let all = ["echo ", "printf ", "yes "]
        .into_iter()
        .flat_map(|says| before.match_indices(says).map(|(at, says)| (at, at + says.len())));
    let mut all: Vec<_> = all.filter(|(at, _)| is_word(*at)).collect();
    all.sort_unstable();
    all
}

/// Marks what the last `echo` or `printf` before says; of a group in brackets, what each of them says.
fn said(text: &str, range: Range<usize>, ranges: &mut Vec<Range<usize>>) {
    let before = &text[range.clone()];
    let says = says(before);
    let is_group = before.trim_end().ends_with([')', '}']);
    let opens = is_group.then(|| before.find(['(', '{'])).flatten();
    let first =
        opens.map_or(says.len().saturating_sub(1), |opens| says.partition_point(|(at, _)| *at < opens));
    for (nth, (_, start)) in says.iter().enumerate().skip(first) {
        let end = says.get(nth + 1).map_or(before.len(), |(at, _)| *at);
        let start = (start + options(&before[*start..end])).min(end);
        push(text, range.start + start..range.start + end, ranges);
    }
}

/// A file whose name tells: `/etc/k3s-token`, `/root/.vault-pass`.
fn is_kept_in(path: &str) -> bool {
    const BYTES_MAX: usize = 256;
    let path = cut(path, BYTES_MAX).trim_start_matches([' ', '"', '\'']);
    let name = path
        .split(|c: char| c.is_whitespace() || matches!(c, ';' | '"' | '\'' | '|' | '<' | '>' | '&' | ')'))
        .next()
        .unwrap_or("")
        .rsplit('/')
        .next()
        .unwrap_or("");
    let stem = name.trim_start_matches('.').split('.').next().unwrap_or("");
    telling(stem).is_some_and(|telling| telling != Telling::IfRandom)
}

/// How many bytes of options and of a format stand before what `echo` or `printf` say.
fn options(said: &str) -> usize {
    let mut at = 0;
    for word in said.split_inclusive(' ') {
        let bare = word.trim().trim_matches(['"', '\'']);
        if !bare.is_empty() && !bare.starts_with('-') && !bare.starts_with('%') {
            break;
        }
        at += word.len();
    }
    at
}

fn push(text: &str, range: Range<usize>, ranges: &mut Vec<Range<usize>>) {
    let trimmed = text[range.clone()].trim();
    let start = range.start + text[range.clone()].len() - text[range].trim_start().len();
    if !trimmed.is_empty() && !trimmed.contains(MASK) && !is_plain(trimmed) {
        ranges.push(start..start + trimmed.len());
    }
}
