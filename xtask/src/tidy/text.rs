//! Words that may not be in the repository: unfinished work, silenced tests, and traces of one machine.
//!
//! The words are put together at run time, because this file is checked as well.

use super::Report;

/// Files that a tool writes from what others published; their words are not ours.
const NOT_OURS: [&str; 4] = ["Cargo.lock", "go.sum", "requirements.lock", "LICENSE"];

/// The longest name of a function: most are tests, which say subject, condition and result.
const NAME_MAX: usize = 60;

pub(crate) fn check(path: &str, text: &str, report: &mut Report) {
    let name = path.rsplit('/').next().unwrap_or(path);
    let (machine_paths, hosts) = traces();
    for (index, line) in text.lines().enumerate() {
        let number = index + 1;
        if let Some(found) = machine_paths.iter().find(|found| is_path_in(line, found)) {
            let advice = format!(
                "\"{found}\" is a place on one machine; say it relative to the repository, or leave it out"
            );
            report.breach(path, number, "machine-path", advice);
        }
        if let Some(found) = hosts.iter().find(|host| line.to_ascii_lowercase().contains(host.as_str())) {
            let advice =
                format!("\"{found}\" belongs to one site's package mirror; use the public registry's name");
            report.breach(path, number, "registry-host", advice);
        }
        if path.ends_with(".rs") {
            rust_line(path, number, line, report);
        }
        if let Some(word) = riddle_in(line).filter(|_| is_ours(path)) {
            let advice =
                format!("\"{word}\" hides the subject; name the process, the operator or the service");
            report.breach(path, number, "plain-words", advice);
        }
        if !NOT_OURS.contains(&name) && line.starts_with(&"<".repeat(7)) {
            report.breach(path, number, "conflict", "a merge left its marks; resolve it");
        }
    }
}

fn rust_line(path: &str, number: usize, line: &str, report: &mut Report) {
    for word in ["todo", "unimplemented", "dbg"] {
        if line.contains(&format!("{word}!(")) {
            report.breach(
                path,
                number,
                "unfinished",
                format!("{word}! is for the desk; finish it or take it out"),
            );
        }
    }
    let code = line.trim_start();
    if let Some(name) = function_in(code).filter(|name| name.len() > NAME_MAX) {
        let advice =
            format!("{} characters; say the subject, the condition and the result in {NAME_MAX}", name.len());
        report.breach(path, number, "long-name", advice);
    }
    if code.starts_with(&["#[", "ignore]"].concat()) {
        report.breach(path, number, "ignored-test", "give the reason: #[ignore = \"…\"], or let it run");
    }
    if let Some(comment) = code.strip_prefix("//") {
        for word in [["TO", "DO"].concat(), ["FIX", "ME"].concat()] {
            if comment.contains(&word) {
                let advice = format!("{word} ages unseen; do it, or describe the limit as it is");
                report.breach(path, number, "unfinished", advice);
            }
        }
        if names_an_issue(comment) {
            let advice = "a number of a tracker says nothing to a reader; write the reason itself";
            report.breach(path, number, "issue-number", advice);
        }
    }
}

/// Words of ours: code, pages, scenarios, rules. Kept cases are the words of others, and the pages of rules list what they
/// refuse.
fn is_ours(path: &str) -> bool {
    let is_text = [".rs", ".md", ".scenario", ".yaml", ".toml"].iter().any(|ending| path.ends_with(ending));
    is_text && !path.starts_with("tests/cases/") && !["STYLE.md", "xtask/src/tidy/text.rs"].contains(&path)
}

/// A word that leaves a reader to guess who acts, in prose, in text that is printed, and in names. One that stands alone in
/// quotes is a value: a key of old, or a list of what is refused.
fn riddle_in(line: &str) -> Option<&'static str> {
    const RIDDLES: [&str; 7] = ["amiss", "anew", "anybody", "nobody", "somebody", "someone", "whoever"];
    let line = line.to_ascii_lowercase();
    let is_value = |place: usize, word: &str| {
        line[..place].ends_with('"') && line[place + word.len()..].starts_with('"')
    };
    RIDDLES.into_iter().find(|word| line.match_indices(word).any(|(place, _)| !is_value(place, word)))
}

/// The name of a function that this line begins.
fn function_in(code: &str) -> Option<&str> {
    let (before, after) = code.split_once("fn ")?;
    let is_start = before
        .split_whitespace()
        .all(|word| word.starts_with("pub") || ["async", "const", "unsafe"].contains(&word));
    let end = after.find(|letter: char| !letter.is_alphanumeric() && letter != '_')?;
    is_start.then(|| &after[..end])
}

/// Beginnings of paths on build machines, and parts of host names of package mirrors.
fn traces() -> (Vec<String>, Vec<String>) {
    let paths = [["/wo", "rk/"], ["/tmp/", "bash_"]];
    let hosts = [["arti", "factory"], ["nexus", ".internal"]];
    (paths.iter().map(|parts| parts.concat()).collect(), hosts.iter().map(|parts| parts.concat()).collect())
}

/// Whether `found` is there as the beginning of a path, not as a part of a longer one.
fn is_path_in(line: &str, found: &str) -> bool {
    line.match_indices(found).any(|(place, _)| {
        let before = line[..place].chars().next_back();
        before.is_none_or(|before| !before.is_alphanumeric() && !"._-}/*$".contains(before))
    })
}

/// Whether a comment names an issue by its number: a hash sign with two to six digits, standing alone.
fn names_an_issue(comment: &str) -> bool {
    comment.split(|separator: char| separator.is_whitespace() || "(),;.".contains(separator)).any(|word| {
        word.strip_prefix('#').is_some_and(|number| {
            (2..=6).contains(&number.len()) && number.bytes().all(|byte| byte.is_ascii_digit())
        })
    })
}
