//! Who may know whom: stages within the core, crates among each other.
//!
//! ```text
//!  model ← event ← record ← effect ← observe ← diagnose ← plan ← remedies ← decide ← engine    a stage sees what is left
//!  core ← wire ← kube, openstack …, registrar, node, sim ← the binary;  core ← diagnose, agent, machines;  agent ← node, sim;
//!  record stands alone
//! ```
//!
//! A crate sees what is left of it. Manifests are read through `cargo metadata`, so whatever way a dependency was written, it
//! is seen. What is checked are our own crates and, for the core, everything.

use std::collections::BTreeMap;
use std::path::Path;
use std::process::Command;

use anyhow::{Context, Result, ensure};
use serde_json::Value;

use super::{Report, paths};

const CORE: &str = "crates/reveille-core/src/";
/// What decides takes time and facts as arguments, and nothing else: the engine, the agent on the node, and readers of objects.
const PURE: [&str; 4] =
    [CORE, "crates/reveille-agent/src/", "crates/reveille-hot/src/", "crates/reveille-machines/src/"];
/// In this order; a stage may use itself and what stands before it.
const STAGES: [&str; 10] =
    ["model", "event", "record", "effect", "observe", "diagnose", "plan", "remedies", "decide", "engine"];

/// What the core may not name, and why.
const IMPURE: [(&str, &str); 11] = [
    ("SystemTime", "time is an argument"),
    ("Instant::now", "time is an argument"),
    ("std::env", "settings are arguments"),
    ("std::fs", "the core does no I/O"),
    ("std::process", "the core does no I/O"),
    ("std::thread", "the core has one owner"),
    ("TcpStream", "the core does no I/O"),
    ("HashMap", "its order differs from run to run: BTreeMap"),
    ("HashSet", "its order differs from run to run: BTreeSet"),
    ("tokio::", "the core knows no runtime"),
    ("rand::", "the same events give the same effects"),
];

/// Our crates, and which of ours each may depend on to run. Tests may use more.
const KNOWN: [(&str, &[&str]); 15] = [
    ("reveille-core", &[]),
    ("reveille-wire", &["reveille-core"]),
    ("reveille-record", &[]),
    ("reveille-diagnose", &["reveille-core"]),
    ("reveille-hot", &["reveille-core"]),
    ("reveille-machines", &["reveille-core"]),
    ("reveille-kube", WORLD),
    ("reveille-cloud", &["reveille-core", "reveille-wire"]),
    ("reveille-openstack", CLOUD),
    ("reveille-ec2", CLOUD),
    ("reveille-rancher", WORLD),
    ("reveille-agent", &["reveille-core"]),
    ("reveille-node", &["reveille-core", "reveille-wire", "reveille-agent"]),
    // The registration server has a ledger of its own: its list of admitted machines has to outlast the process that admitted
    // them.
    ("reveille-registrar", &["reveille-core", "reveille-wire", "reveille-record"]),
    ("reveille-sim", SIM),
];
/// The write budget, for writes of others and our own, needs no adapter; a crate that writes to an API server asks the budget
/// first.
const WORLD: &[&str] = &["reveille-core", "reveille-wire", "reveille-hot"];
/// An adapter for a cloud stands on what all of them share, and knows no other one.
const CLOUD: &[&str] = &["reveille-core", "reveille-wire", "reveille-cloud"];
/// A world for all that decide: the engine, the agents on its machines, the escalation that repairs Rancher's records. It plays
/// the driver as well, which judges what machines say of themselves.
const SIM: &[&str] =
    &["reveille-core", "reveille-wire", "reveille-agent", "reveille-diagnose", "reveille-rancher"];

/// All that the core may depend on, to run and in its tests.
const CORE_ALLOWED: [(&str, &[&str]); 2] =
    [("normal", &["ipnet", "jiff", "serde", "thiserror"]), ("dev", &["proptest", "serde_json"])];

/// Checks one file of what decides.
pub(crate) fn stages(path: &str, text: &str, report: &mut Report) {
    if !PURE.iter().any(|pure| path.starts_with(pure)) {
        return;
    }
    for (index, line) in text.lines().enumerate() {
        let code = line.split("//").next().unwrap_or(line);
        if let Some((word, why)) = IMPURE.iter().find(|(word, _)| code.contains(word)) {
            report.breach(
                path,
                index + 1,
                "pure-core",
                format!("\"{word}\" has no place in the core: {why}"),
            );
        }
    }
    let Some(place) = path.strip_prefix(CORE) else { return };
    let Some(own) = rank(place.split(['/', '.']).next().unwrap_or(place)) else { return };
    for (line, stage) in mentioned(&paths::code(text)) {
        if rank(stage).is_some_and(|rank| rank > own) {
            let advice = format!(
                "this stage comes before \"{stage}\"; move what it needs to model, or the code to there"
            );
            report.breach(path, line, "stage-arrow", advice);
        }
    }
}

/// Place of a module in the order; none for those that stand outside (the crate's root).
fn rank(module: &str) -> Option<usize> {
    STAGES.iter().position(|stage| *stage == module)
}

/// Modules of the crate that the text names, each with its line.
fn mentioned<'a>(code: &'a str) -> Vec<(usize, &'a str)> {
    let outside = ["crate", "super"];
    let named = paths::paths(code).into_iter().filter(|named| outside.contains(&named.words[0]));
    let head = |named: paths::Named<'a>| {
        let head = named.words.iter().find(|word| !outside.contains(word))?;
        Some((named.line, *head))
    };
    let mut found: Vec<_> = named.filter_map(head).collect();
    found.dedup();
    found
}

/// Checks all manifests of the workspace at `root`.
pub(crate) fn manifests(root: &Path, report: &mut Report) -> Result<()> {
    let cargo = std::env::var_os("CARGO").unwrap_or_else(|| "cargo".into());
    let output = Command::new(cargo)
        .args(["metadata", "--no-deps", "--format-version", "1"])
        .current_dir(root)
        .output()
        .context("cannot run cargo metadata; is cargo on PATH?")?;
    let words = String::from_utf8_lossy(&output.stderr);
    ensure!(output.status.success(), "cargo metadata failed, so the manifests were not checked: {words}");
    let metadata: Value = serde_json::from_slice(&output.stdout).context("cargo metadata printed no JSON")?;
    let packages = metadata["packages"].as_array().context("cargo metadata names no packages")?;
    for package in packages {
        check_package(root, package, report);
    }
    Ok(())
}

fn check_package(root: &Path, package: &Value, report: &mut Report) {
    let name = package["name"].as_str().unwrap_or_default();
    let manifest = package["manifest_path"].as_str().unwrap_or_default();
    let manifest =
        Path::new(manifest).strip_prefix(root).unwrap_or(Path::new(manifest)).display().to_string();
    let mut by_kind: BTreeMap<&str, Vec<&str>> = BTreeMap::new();
    for dependency in package["dependencies"].as_array().into_iter().flatten() {
        let kind = dependency["kind"].as_str().unwrap_or("normal");
        by_kind.entry(kind).or_default().extend(dependency["name"].as_str());
    }
    for (kind, depended_on) in by_kind {
        for dependency in depended_on {
            if let Some(advice) = refusal(name, kind, dependency) {
                report.breach(&manifest, 0, "crate-arrow", advice);
            }
        }
    }
}

/// Why this package may not depend on that, if it may not.
fn refusal(name: &str, kind: &str, dependency: &str) -> Option<String> {
    if name == "reveille-core" {
        let allowed =
            CORE_ALLOWED.iter().find(|(of, _)| *of == kind).map_or(&[][..], |(_, allowed)| *allowed);
        return (!allowed.contains(&dependency)).then(|| {
            format!(
                "the core takes nothing but {}; \"{dependency}\" belongs at the border",
                allowed.join(" and ")
            )
        });
    }
    let is_world = |name: &str| {
        KNOWN.iter().any(|(known, allowed)| *known == name && [WORLD, CLOUD, SIM].contains(allowed))
    };
    if kind == "dev" && is_world(name) && name != "reveille-sim" && is_world(dependency) {
        return Some(format!("worlds do not know each other, also not in tests; take \"{dependency}\" out"));
    }
    let (_, allowed) = KNOWN.iter().find(|(known, _)| *known == name)?;
    let refused = kind != "dev" && dependency.starts_with("reveille-") && !allowed.contains(&dependency);
    refused
        .then(|| format!("{name} may not know \"{dependency}\"; wiring them together is the binary's work"))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn crates_know_only_what_stands_before_them() {
        for (name, kind, dependency, fine) in [
            ("reveille-core", "normal", "ipnet", true),
            ("reveille-core", "normal", "serde", true),
            ("reveille-core", "normal", "serde_json", false),
            ("reveille-core", "dev", "proptest", true),
            ("reveille-core", "dev", "reveille-sim", false),
            ("reveille-core", "build", "ipnet", false),
            ("reveille-kube", "normal", "reveille-core", true),
            ("reveille-kube", "normal", "serde", true),
            ("reveille-kube", "normal", "reveille-openstack", false),
            ("reveille-kube", "dev", "reveille-openstack", false),
            ("reveille-ec2", "normal", "reveille-cloud", true),
            ("reveille-ec2", "dev", "reveille-openstack", false),
            ("reveille-kube", "dev", "reveille-record", true),
            ("reveille-sim", "normal", "reveille-kube", false),
            ("reveille-sim", "normal", "reveille-agent", true),
            ("reveille-sim", "normal", "reveille-diagnose", true),
            ("reveille-core", "normal", "reveille-diagnose", false),
            ("reveille-agent", "normal", "reveille-core", true),
            ("reveille-agent", "normal", "reveille-wire", false),
            ("reveille-kube", "normal", "reveille-agent", false),
            ("reveille-kube", "dev", "reveille-sim", false),
            ("reveille-sim", "dev", "reveille-kube", true),
            ("reveille-record", "normal", "reveille-core", false),
            ("reveille-wire", "normal", "reveille-record", false),
            ("reveille", "normal", "reveille-kube", true),
        ] {
            assert_eq!(refusal(name, kind, dependency).is_none(), fine, "{name} -> {dependency} ({kind})");
        }
    }
}
