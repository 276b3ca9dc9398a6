//! What prose promises to exist: paths in backticks, and relative links, in the pages for people.
//!
//! A page that names a file which was moved sends its reader away. A path may be written from the root or as the end of
//! one (`engine/mod.rs`), as people do. Whatever is not clearly a path of this repository is left alone: absolute and
//! home paths, globs, places on a user's machine.

use super::{Report, Tree};

/// Endings that name a file of ours when they stand in backticks without a known first directory.
const OUR_ENDINGS: [&str; 3] = [".rs", ".md", ".sh"];

pub(crate) fn check(path: &str, text: &str, tree: &Tree, report: &mut Report) {
    let at_root = !path.contains('/');
    if !path.ends_with(".md") || !(at_root || path.starts_with("docs/")) {
        return;
    }
    let mut in_block = false;
    for (index, line) in text.lines().enumerate() {
        if line.trim_start().starts_with("```") {
            in_block = !in_block;
        }
        if in_block {
            continue;
        }
        // Odd pieces between backticks are code.
        let code = line.split('`').skip(1).step_by(2).filter_map(|span| as_path(span, tree));
        for missing in code.filter(|span| !tree.has(span)) {
            report.breach(
                path,
                index + 1,
                "missing-path",
                format!("`{missing}` is not there; correct or remove it"),
            );
        }
        for target in links(line).filter(|target| !leads_somewhere(path, target, tree)) {
            report.breach(
                path,
                index + 1,
                "missing-path",
                format!("the link to {target} leads nowhere; correct it"),
            );
        }
    }
}

/// The span as a path of this repository, when it is meant as one.
fn as_path<'a>(span: &'a str, tree: &Tree) -> Option<&'a str> {
    let plain = |character: char| character.is_ascii_alphanumeric() || "/._-".contains(character);
    // A line number may follow.
    let path = span.split(':').next().unwrap_or(span);
    if path.is_empty() || !path.chars().all(plain) || path.starts_with(['/', '-']) || path.contains("..") {
        return None;
    }
    let first = path.split('/').next().unwrap_or(path);
    let from_root = path.contains('/') && tree.directories.contains(first);
    let ours = OUR_ENDINGS.iter().any(|ending| path.len() > ending.len() && path.ends_with(ending));
    (from_root || ours).then_some(path)
}

/// Targets of the links in a line.
fn links(line: &str) -> impl Iterator<Item = &str> {
    line.split("](").skip(1).filter_map(|rest| rest.split_once(')').map(|(target, _)| target))
}

fn leads_somewhere(page: &str, target: &str, tree: &Tree) -> bool {
    let path = target.split(['#', ' ']).next().unwrap_or(target);
    if path.is_empty() || path.contains(':') || path.starts_with('/') {
        return true;
    }
    let mut parts: Vec<&str> = page.split('/').collect();
    parts.pop();
    for part in path.split('/') {
        match part {
            "" | "." => {}
            ".." if parts.pop().is_none() => return false,
            ".." => {}
            part => parts.push(part),
        }
    }
    let whole = parts.join("/");
    whole.is_empty() || tree.files.contains_key(&whole) || tree.directories.contains(&whole)
}
