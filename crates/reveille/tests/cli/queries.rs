//! Tests the reading commands while no server answers, which has an exit code of its own.

use reveille_wire::report::{Document, Report};

use crate::bench::Bench;

#[test]
fn status_without_sources_says_why_and_exits_2() {
    let bench = Bench::new();
    let ran = bench.run(&["status"]);
    assert_eq!(ran.code, 2, "{}{}", ran.out, ran.err);
    assert!(ran.out.starts_with("lost · 0 machines · 0 Ready"), "{}", ran.out);
    for part in ["? No reliable data from cluster", "? No reliable data from os", "Connection refused"] {
        assert!(ran.out.to_lowercase().contains(&part.to_lowercase()), "{part}\n{}", ran.out);
    }
    assert!(ran.err.contains("no controller runs"), "{}", ran.err);
}

#[test]
fn programs_get_one_document_in_their_form() {
    let bench = Bench::new();
    for (command, kind) in
        [("status", "RollReport"), ("plan", "PlanReport"), ("incidents", "IncidentsReport")]
    {
        let ran = bench.run(&[command, "-o", "json"]);
        assert_eq!(ran.code, 2, "{command}: {}", ran.out);
        let document: Document = serde_json::from_str(&ran.out).unwrap();
        let sources = match &document.report {
            Report::StatusReport(report) => &report.sources,
            Report::PlanReport(report) => &report.sources,
            Report::IncidentsReport(report) => &report.sources,
            Report::WhyReport(report) => &report.sources,
            other => panic!("{command} printed {other:?}"),
        };
        assert!(sources.iter().all(|source| !source.trusted), "{command}: {}", ran.out);
        assert!(ran.err.is_empty(), "{command}: a program wants no notes: {}", ran.err);
        let yaml = bench.run(&[command, "-o", "yaml"]);
        assert!(yaml.out.contains(&format!("kind: {kind}")), "{}", yaml.out);
    }
}

#[test]
fn why_without_sources_exits_2_and_blames_no_wrong_name() {
    let bench = Bench::new();
    let ran = bench.run(&["why", "w-1"]);
    assert_eq!(ran.code, 2);
    for part in ["cannot look up machine \"w-1\"", "cluster (", "os (", "reveille status"] {
        assert!(ran.err.contains(part), "{part}: {}", ran.err);
    }
}
