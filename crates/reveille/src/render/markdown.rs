//! A page of the reference as text for a terminal.
//!
//! The same page is a file in `docs/reference/findings/`, where Markdown is right: there, links lead to other files.
//! It knows what those pages use: headings, fenced blocks, links and bold words; no tables, no nesting.

use super::output_style::{Paper, Tone};
use super::wrap;

/// The page without marks: headings and bold words are strong, fenced blocks are indented, a link is its text.
pub(crate) fn plain(page: &str, paper: &Paper) -> String {
    let (mut out, mut fenced) = (String::with_capacity(page.len()), false);
    for line in page.lines() {
        if line.starts_with("```") {
            fenced = !fenced;
            continue;
        }
        let shown = if fenced {
            format!("    {line}")
        } else if let Some(heading) = line.strip_prefix('#') {
            paper.tone(Tone::Strong, heading.trim_start_matches('#').trim_start())
        } else {
            let indent = if line.starts_with("* ") { 2 } else { 0 };
            wrap::hanging(paper, &bold(&unlinked(line), paper), indent)
        };
        out.push_str(shown.trim_end());
        out.push('\n');
    }
    out
}

/// `[text](place)` as `text`; a bracket that leads to no place stays.
fn unlinked(line: &str) -> String {
    let (mut out, mut rest) = (String::with_capacity(line.len()), line);
    while let Some((before, from)) = rest.split_once('[') {
        let link = from.split_once("](").and_then(|(text, after)| Some((text, after.split_once(')')?.1)));
        out.push_str(before);
        match link {
            Some((text, after)) if !text.contains('[') => {
                out.push_str(text);
                rest = after;
            }
            _ => {
                out.push('[');
                rest = from;
            }
        }
    }
    out + rest
}

fn bold(line: &str, paper: &Paper) -> String {
    let (mut out, mut rest) = (String::with_capacity(line.len()), line);
    while let Some((before, (word, after))) =
        rest.split_once("**").and_then(|(before, from)| Some((before, from.split_once("**")?)))
    {
        out.push_str(before);
        out.push_str(&paper.tone(Tone::Strong, word));
        rest = after;
    }
    out + rest
}

#[cfg(test)]
mod tests {
    use super::*;
    use jiff::tz::TimeZone;

    #[test]
    fn page_is_told_without_marks_of_markdown() {
        let paper = Paper { width: None, colored: false, zone: TimeZone::UTC };
        let page = "# RV1: x\n\nSee [RV2](RV2.md) (y), a[0] and [z].\n\n## What to do\n\n```console\nls [a](b)\n```\n\n\
                    **sign** proves it; 2 ** 3.\n";
        let told = "RV1: x\n\nSee RV2 (y), a[0] and [z].\n\nWhat to do\n\n    ls [a](b)\n\nsign proves it; 2 ** 3.\n";
        assert_eq!(plain(page, &paper), told);
    }

    #[test]
    fn headings_stand_out_and_long_lines_wrap_on_a_terminal() {
        let paper = Paper { width: Some(30), colored: true, zone: TimeZone::UTC };
        let told = plain("## Do\n\n* one two three four five six seven eight\n", &paper);
        assert!(told.contains("\u{1b}[") && told.contains("\n  "), "{told:?}");
    }
}
