//! How long things are, how a module opens, and what a file may be called.
//!
//! Functions are found by rustfmt's layout, which `ci` enforces: a function ends at the first line that is its own
//! indentation and a closing brace. That needs no parser, and reads code that does not compile yet.

use super::Report;

/// A file above this is looked at; one above the next needs a reason in the file.
const FILE_LINES_SOFT: usize = 400;
const FILE_LINES_HARD: usize = 700;
const FUNCTION_LINES_SOFT: usize = 70;
const FUNCTION_LINES_HARD: usize = 90;
/// rustfmt breaks code at 110; comments it leaves alone, and they may go some words beyond.
const LINE_CHARACTERS: usize = 130;
const WAIVER: &str = "// tidy: long because ";
/// Names that say nothing about what is inside.
const EMPTY_NAMES: [&str; 4] = ["utils", "util", "helpers", "misc"];

pub(crate) fn check(path: &str, text: &str, report: &mut Report) {
    for part in path.split('/') {
        let stem = part.split('.').next().unwrap_or(part);
        if EMPTY_NAMES.contains(&stem) {
            report.breach(path, 0, "name", format!("\"{stem}\" says nothing; name it after what is inside"));
        }
    }
    if !path.ends_with(".rs") {
        return;
    }
    opening(path, text, report);
    length(path, text, report);
    functions(path, text, report);
    lines(path, text, report);
}

fn opening(path: &str, text: &str, report: &mut Report) {
    // Plain comments and inner attributes may stand before it.
    let first = text.lines().find(|line| {
        let plain_comment = line.starts_with("//") && !line.starts_with("//!");
        !line.is_empty() && !plain_comment && !line.starts_with("#!")
    });
    if !first.is_some_and(|line| line.starts_with("//! ")) {
        let advice =
            "open the module with //! lines: what it does, how data moves through it, what it leaves out";
        report.breach(path, 1, "module-opening", advice);
    }
}

fn length(path: &str, text: &str, report: &mut Report) {
    let lines = text.lines().count();
    if lines <= FILE_LINES_SOFT || text.lines().any(|line| line.starts_with(WAIVER)) {
        return;
    }
    let split = format!("{lines} lines; split it by subject, or say why not in a line \"{WAIVER}…\"");
    if lines > FILE_LINES_HARD {
        report.breach(path, 0, "file-length", split);
    } else {
        report.notice(path, 0, "file-length", split);
    }
}

fn functions(path: &str, text: &str, report: &mut Report) {
    let lines: Vec<&str> = text.lines().collect();
    for (index, line) in lines.iter().enumerate() {
        let Some(length) = function_length(line, lines.get(index + 1..).unwrap_or_default()) else {
            continue;
        };
        let advice =
            format!("{length} lines, at most {FUNCTION_LINES_SOFT}; give a part of it a name of its own");
        if length > FUNCTION_LINES_HARD {
            report.breach(path, index + 1, "function-length", advice);
        } else if length > FUNCTION_LINES_SOFT {
            report.notice(path, index + 1, "function-length", advice);
        }
    }
}

/// Lines of the function that begins with `line`, both braces included; none when none with a body begins there.
fn function_length(line: &str, following: &[&str]) -> Option<usize> {
    let code = line.trim_start();
    let indentation = &line[..line.len() - code.len()];
    let words = code.split(" fn ").next().filter(|_| !code.starts_with("fn "));
    let qualified = |word: &str| {
        matches!(word, "const" | "async" | "unsafe" | "extern" | "default")
            || word.starts_with("pub")
            || word == "\"C\""
    };
    // A body on the same line ends there, too.
    let begins = words.is_none_or(|words| words.len() < code.len() && words.split(' ').all(qualified));
    if !begins || code.ends_with('}') || code.ends_with(';') {
        return None;
    }
    for (index, next) in following.iter().enumerate() {
        let Some(rest) = next.strip_prefix(indentation) else { continue };
        if rest == "}" {
            return Some(index + 2);
        }
        if rest.starts_with(')') && rest.ends_with(';') {
            return None;
        }
    }
    None
}

fn lines(path: &str, text: &str, report: &mut Report) {
    for (index, line) in text.lines().enumerate() {
        let characters = line.chars().count();
        // A text in quotes stays whole, so that it is found by searching for what a person read.
        let breakable = line.trim_start().starts_with("//") || !line.contains('"');
        if characters > LINE_CHARACTERS && breakable && !line.contains("://") {
            let advice = format!("{characters} characters, at most {LINE_CHARACTERS}; break it");
            report.breach(path, index + 1, "line-length", advice);
        }
    }
}
