//! Words that may not be in the repository: unfinished work, silenced tests, and traces of one machine.
//!
//! The words are put together at run time, because this file is checked as well.

use super::Report;

/// Files that a tool writes from what others published; their words are not ours.
const NOT_OURS: [&str; 4] = ["Cargo.lock", "go.sum", "requirements.lock", "LICENSE"];

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
        if let Some(word) = riddle_in(comment) {
            let advice = format!("\"{word}\" hides the subject; name the process, the person or the service");
            report.breach(path, number, "plain-words", advice);
        }
        if names_an_issue(comment) {
            let advice = "a number of a tracker says nothing to a reader; write the reason itself";
            report.breach(path, number, "issue-number", advice);
        }
    }
}

/// A word of a comment that leaves a reader to guess who acts. Names of code in backticks or behind `::` may hold them.
fn riddle_in(comment: &str) -> Option<&str> {
    const RIDDLES: [&str; 7] = ["amiss", "anew", "anybody", "nobody", "somebody", "someone", "whoever"];
    let prose = comment.split('`').step_by(2).flat_map(str::split_whitespace);
    let mut words = prose
        .filter(|word| !word.contains("::"))
        .map(|word| word.trim_matches(|c: char| !c.is_alphanumeric()));
    words.find(|word| RIDDLES.iter().any(|riddle| word.eq_ignore_ascii_case(riddle)))
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
