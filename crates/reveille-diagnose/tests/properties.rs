//! What never changes the cause: harmless lines in between, lines that say nothing taken out, everything printed twice.

#![allow(clippy::unwrap_used, reason = "a test ends where its material is missing")]

use std::path::Path;

use proptest::prelude::*;
use reveille_diagnose::scan::Scanner;
use reveille_diagnose::sources::case::{self, Case};
use reveille_diagnose::{Catalogue, Reader, judge};

/// Lines of machines that are well; none carries a signal of the catalogue.
const HARMLESS: [&str; 6] = [
    "Nov 21 01:02:03 host systemd[1]: Started Daily apt download activities.",
    "I1121 01:02:03.000000    1234 kubelet.go:2205] \"SyncLoop (PLEG): event for pod\" pod=\"kube-system/x\" event={}",
    "[    2.345678] EXT4-fs (vda1): mounted filesystem with ordered data mode",
    "I1121 01:02:03.000000       1 leaderelection.go:258] successfully acquired lease kube-system/kube-scheduler",
    "{\"level\":\"info\",\"ts\":\"2024-11-21T01:02:03Z\",\"msg\":\"finished scheduled compaction\",\"took\":\"9ms\"}",
    "\u{1b}[0;32m  OK  \u{1b}[0m] Reached target Basic System.",
];

fn cases() -> Vec<Case> {
    let folder = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../tests/cases");
    let mut paths: Vec<_> = std::fs::read_dir(folder).unwrap().map(|entry| entry.unwrap().path()).collect();
    paths.sort();
    paths.retain(|path| path.extension().is_some_and(|extension| extension == "yaml"));
    paths.iter().map(|path| case::read(&std::fs::read_to_string(path).unwrap()).unwrap()).collect()
}

fn is_log(kind: &str) -> bool {
    !kind.starts_with("kubectl") && kind != "cloud-api" && kind != "other"
}

/// The first cause, and how many sightings there were.
fn told(scanner: &Scanner<'_>, case: &Case) -> (Option<String>, usize) {
    let mut reader = Reader::new(scanner);
    if let Some(platform) = &case.platform {
        reader.platform(platform);
    }
    for (number, evidence) in case.evidence.iter().enumerate() {
        reader.text(&format!("{number}"), &evidence.text);
    }
    let first = judge(&reader).findings.first().map(|finding| finding.cause.clone());
    (first, reader.seen().sightings.len())
}

fn alone(line: &str) -> Case {
    Case {
        platform: None,
        evidence: vec![case::Evidence { kind: "kubelet-log".to_owned(), text: line.to_owned() }],
    }
}

/// The case with each log's lines changed by `change`.
fn changed(case: &Case, mut change: impl FnMut(Vec<String>) -> Vec<String>) -> Case {
    let mut other = case.clone();
    for evidence in other.evidence.iter_mut().filter(|evidence| is_log(&evidence.kind)) {
        let lines = evidence.text.lines().map(str::to_owned).collect();
        evidence.text = change(lines).join("\n") + "\n";
    }
    other
}

#[test]
fn harmless_missing_or_repeated_lines_do_not_change_the_cause() {
    let catalogue = Catalogue::built_in().unwrap();
    let scanner = Scanner::new(&catalogue).unwrap();
    for line in HARMLESS {
        assert_eq!(told(&scanner, &alone(line)), (None, 0), "{line}");
    }
    let cases = cases();
    let mut runner = proptest::test_runner::TestRunner::new(ProptestConfig::with_cases(200));
    let strategy =
        (0..cases.len(), prop::collection::vec((0..HARMLESS.len(), 0..4_usize, any::<bool>()), 64));
    runner
        .run(&strategy, |(place, dice)| {
            let case = &cases[place];
            let plain = told(&scanner, case).0;
            let mut rolled = dice.iter().cycle();
            let mixed = changed(case, |lines| {
                let with = lines.into_iter().flat_map(|line| {
                    let (which, times, _) = rolled.next().copied().unwrap_or((0, 0, false));
                    std::iter::repeat_n(HARMLESS[which].to_owned(), times).chain([line])
                });
                with.collect()
            });
            prop_assert_eq!(&told(&scanner, &mixed).0, &plain, "harmless lines in between");
            let mut rolled = dice.iter().cycle();
            let cut = changed(case, |lines| {
                lines
                    .into_iter()
                    .filter(|line| {
                        let drop = rolled.next().is_some_and(|(_, _, drop)| *drop);
                        !(drop && told(&scanner, &alone(line)).1 == 0)
                    })
                    .collect()
            });
            prop_assert_eq!(&told(&scanner, &cut).0, &plain, "lines that say nothing taken out");
            let twice = changed(case, |lines| [lines.clone(), lines].concat());
            prop_assert_eq!(&told(&scanner, &twice).0, &plain, "printed twice");
            Ok(())
        })
        .unwrap();
}
