//! Tidy: the rules of STYLE.md that a program can check, over every file of the repository.
//!
//! ```text
//!  Tree (files, manifests) ─▶ shape     how long, how opened          ┐
//!                          ─▶ text      words that may not be there   │
//!                          ─▶ rendered  decisions that rest on words  ├─▶ Report: breaches fail, notices advise
//!                          ─▶ arrows    who may know whom             │
//!                          ─▶ circles   modules that know each other  │
//!                          ─▶ pages     what prose promises to exist  ┘
//! ```
//!
//! Runs as a command and as a test, so that a developer sees a finding before the CI server does. Every finding is a place, the
//! rule, and what to do. What rustfmt, clippy and the compiler check is not checked again, with one exception: the purity of the
//! core, which clippy sees only in code that is compiled.

mod arrows;
mod circles;
mod pages;
mod paths;
mod rendered;
mod shape;
mod text;
mod tree;

use std::fmt;
use std::path::Path;

use anyhow::Result;

pub(crate) use tree::Tree;

/// One place that is not as it should be.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) struct Finding {
    /// Path from the root.
    pub(crate) file: String,
    /// From 1; 0 stands for the file as a whole.
    pub(crate) line: usize,
    pub(crate) rule: &'static str,
    /// What is there and what to do about it.
    pub(crate) advice: String,
}

impl fmt::Display for Finding {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Self { file, line, rule, advice } = self;
        if *line == 0 {
            write!(f, "{file}: {rule}: {advice}")
        } else {
            write!(f, "{file}:{line}: {rule}: {advice}")
        }
    }
}

/// All findings.
#[derive(Debug, Default)]
pub(crate) struct Report {
    /// These must be fixed.
    pub(crate) breaches: Vec<Finding>,
    /// These should be looked at.
    pub(crate) notices: Vec<Finding>,
    /// How many files were read.
    pub(crate) files: usize,
}

impl Report {
    fn breach(&mut self, file: &str, line: usize, rule: &'static str, advice: impl Into<String>) {
        self.breaches.push(Finding { file: file.to_owned(), line, rule, advice: advice.into() });
    }

    fn notice(&mut self, file: &str, line: usize, rule: &'static str, advice: impl Into<String>) {
        self.notices.push(Finding { file: file.to_owned(), line, rule, advice: advice.into() });
    }
}

/// Checks the tree at `root`.
pub(crate) fn check(root: &Path) -> Result<Report> {
    let tree = Tree::read(root)?;
    let mut report = check_tree(&tree);
    arrows::manifests(root, &mut report)?;
    report.breaches.sort();
    report.notices.sort();
    Ok(report)
}

fn check_tree(tree: &Tree) -> Report {
    let mut report = Report { files: tree.files.len(), ..Report::default() };
    for (path, text) in &tree.files {
        shape::check(path, text, &mut report);
        text::check(path, text, &mut report);
        rendered::check(path, text, &mut report);
        arrows::stages(path, text, &mut report);
        pages::check(path, text, tree, &mut report);
    }
    circles::check(tree, &mut report);
    report
}

/// Runs as a command: prints, and is true when nothing must be fixed.
pub(crate) fn run(root: &Path) -> Result<bool> {
    let report = check(root)?;
    for notice in &report.notices {
        println!("notice  {notice}");
    }
    for breach in &report.breaches {
        println!("breach  {breach}");
    }
    println!(
        "tidy: {} files, {} breaches, {} notices",
        report.files,
        report.breaches.len(),
        report.notices.len()
    );
    Ok(report.breaches.is_empty())
}

#[cfg(test)]
mod tests {
    use std::collections::BTreeMap;

    use super::*;

    #[test]
    fn this_repository_is_tidy() {
        let report = check(&crate::root()).unwrap();
        let lines: Vec<String> = report.breaches.iter().map(ToString::to_string).collect();
        assert!(lines.is_empty(), "{} breaches:\n{}", lines.len(), lines.join("\n"));
        assert!(report.files > 50, "only {} files were read", report.files);
    }

    /// Rules that a small tree with this one file breaks.
    #[track_caller]
    fn broken(path: &str, text: &str) -> Vec<&'static str> {
        let mut files = BTreeMap::from([("crates/a/src/kept.rs".to_owned(), "//! Kept.\n".to_owned())]);
        files.insert(path.to_owned(), text.to_owned());
        let tree = Tree { directories: tree::directories_of(files.keys()), files };
        let report = check_tree(&tree);
        report.breaches.iter().filter(|finding| finding.file == path).map(|finding| finding.rule).collect()
    }

    #[test]
    fn each_rule_fires_where_it_should_and_nowhere_else() {
        let core = "crates/reveille-core/src/plan/decide.rs";
        let long_fn = |lines: usize| format!("//! A.\nfn a() {{\n{}}}\n", "    b();\n".repeat(lines));
        let long_file = |opening: &str| format!("//! A.\n{opening}\n{}", "const A: u8 = 1;\n".repeat(750));
        let todo = ["to", "do!()"].concat();
        let machine_path = ["/wo", "rk/main"].concat();
        let table: Vec<(&str, String, &[&str])> = vec![
            ("a/b.rs", "//! A.\nfn a() {}\n".into(), &[]),
            ("a/b.rs", "fn a() {}\n".into(), &["module-opening"]),
            ("a/b.rs", "// A licence.\n\n#![allow(x)]\n//! A.\n".into(), &[]),
            ("a/b.rs", long_fn(80), &[]),
            ("a/b.rs", long_fn(95), &["function-length"]),
            ("a/b.rs", long_file(""), &["file-length"]),
            ("a/b.rs", long_file("// tidy: long because it is one table"), &[]),
            ("a/b.rs", format!("//! A {}\n", "b ".repeat(70)), &["line-length"]),
            ("a/b.rs", format!("//! A.\nconst A: &str = \"{}\";\n", "b ".repeat(70)), &[]),
            ("a/utils.rs", "//! A.\n".into(), &["name"]),
            ("a/util/b.rs", "//! A.\n".into(), &["name"]),
            ("a/b.rs", format!("//! A.\nfn a() {{\n    {todo};\n}}\n"), &["unfinished"]),
            ("a/b.rs", "//! A.\n#[ignore]\nfn a() {}\n".into(), &["ignored-test"]),
            ("a/b.rs", "//! A.\n#[ignore = \"takes an hour\"]\nfn a() {}\n".into(), &[]),
            ("a/b.sh", format!("cd {machine_path}\n"), &["machine-path"]),
            ("a/b.sh", "cd net/work/main\n".into(), &[]),
            ("a/b.rs", "//! A.\n// see #1234\nfn a() {}\n".into(), &["issue-number"]),
            ("a/b.rs", ["//! A.\n// Who", "ever calls it waits.\nfn a() {}\n"].concat(), &["plain-words"]),
            ("a/b.rs", ["//! A.\n/// The key of old: \"no", "body\".\nfn a() {}\n"].concat(), &[]),
            ("a/b.rs", ["//! A.\nfn so", "mebody_else() {}\n"].concat(), &["plain-words"]),
            ("a/b.rs", format!("//! A.\nfn {}() {{}}\n", "a".repeat(61)), &["long-name"]),
            (core, "//! A.\nuse crate::observe::A;\nuse crate::effect::B;\n".into(), &[]),
            (core, "//! A.\nuse crate::engine::A;\n".into(), &["stage-arrow"]),
            (core, "//! A.\nuse crate::{\n    model::A,\n    decide::{B, C},\n};\n".into(), &["stage-arrow"]),
            (core, "//! A.\nuse super::super::engine::A;\n".into(), &["stage-arrow"]),
            (core, "//! A.\nfn a() {\n    crate::decide::b();\n}\n".into(), &["stage-arrow"]),
            ("crates/reveille-core/src/effect.rs", "//! A.\nuse crate::plan::A;\n".into(), &["stage-arrow"]),
            (
                "crates/reveille-core/src/record.rs",
                "//! A.\nuse crate::effect::A;\n".into(),
                &["stage-arrow"],
            ),
            (
                "crates/reveille-core/src/model/a.rs",
                "//! A.\nuse crate::remedies::A;\n".into(),
                &["stage-arrow"],
            ),
            ("crates/reveille-core/src/remedies/a.rs", "//! A.\nuse crate::plan::A;\n".into(), &[]),
            (core, "//! A.\nuse std::time::SystemTime;\n".into(), &["pure-core"]),
            (core, "//! A.\nuse std::net::IpAddr;\n".into(), &[]),
            ("crates/reveille-agent/src/a.rs", "//! A.\nuse std::time::SystemTime;\n".into(), &["pure-core"]),
            ("crates/reveille-agent/src/a.rs", "//! A.\nuse crate::state::A;\n".into(), &[]),
            ("crates/reveille-kube/src/a.rs", "//! A.\nuse std::time::SystemTime;\n".into(), &[]),
            ("README.md", "See `crates/a/src/kept.rs` and `src/kept.rs:12`, `crates/a/`.\n".into(), &[]),
            ("README.md", "See `crates/a/src/gone.rs`.\n".into(), &["missing-path"]),
            (
                "README.md",
                "See [it](crates/gone) and [that](https://example.org/a).\n".into(),
                &["missing-path"],
            ),
            ("docs/a/b.md", "See [it](../../crates/a/src/kept.rs#L1).\n".into(), &[]),
            (
                "README.md",
                "```text\n`crates/gone`\n```\n`~/.config/a.toml` `/etc/b.rs` `*.rs` `a/b`\n".into(),
                &[],
            ),
        ];
        for (path, text, rules) in table {
            assert_eq!(broken(path, &text), rules, "{path}:\n{text}");
        }
    }
}
