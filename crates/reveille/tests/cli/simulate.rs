//! `simulate`: its exit codes, its page, its reports, and that one seed is one course.

use crate::bench::{Bench, files_below};

const GOOD: &str = "\
scenario T1 A machine hangs
given
  pool workers of 3 machines in zones a, b
when
  at 5m  the kubelet of workers-1 hangs
then
  by 10m  workers-1 is absent as not-ready
";

#[test]
fn a_scenario_that_holds_ends_with_0_one_that_does_not_with_1_and_a_bad_one_with_64() {
    let bench = Bench::new();
    bench.write("good.scenario", GOOD);
    bench.write("contrary.scenario", &GOOD.replace("as not-ready", "as ghost"));
    bench.write("bad.scenario", &GOOD.replace("hangs\nthen", "dances\nthen"));
    let table = [
        ("good.scenario", 0, "✓ by 10m workers-1 is absent as not-ready"),
        ("contrary.scenario", 1, "✗ line 7: by 10m workers-1 is absent as ghost"),
        (
            "bad.scenario",
            64,
            "line 5: this is no phrase of the language; the nearest is: the kubelet of {machines}",
        ),
        ("none.scenario", 64, "reveille simulate --list"),
    ];
    for (file, code, part) in table {
        let ran = bench.run(&["simulate", file]);
        assert_eq!(ran.code, code, "{file}\n{}{}", ran.out, ran.err);
        assert!((ran.out.clone() + &ran.err).contains(part), "{file}\n{}{}", ran.out, ran.err);
    }
    assert_eq!(files_below(&bench.path(".local")), Vec::<String>::new(), "it keeps no state");
}

#[test]
fn the_library_is_listed_and_played_by_number() {
    let bench = Bench::new();
    let ran = bench.run(&["simulate", "--list"]);
    assert_eq!(ran.code, 0, "{}", ran.err);
    assert!(ran.out.contains("A1      Young instance is left alone"), "{}", ran.out);
    let ran = bench.run(&["simulate", "a1", "--output", "json"]);
    assert_eq!(ran.code, 0, "{}", ran.err);
    let report: serde_json::Value = serde_json::from_str(&ran.out).unwrap();
    assert_eq!((&report["number"], &report["holds"]), (&"A1".into(), &true.into()), "{report}");
    assert_eq!(report["digest"].as_str().map(str::len), Some(16), "{report}");
}

#[test]
fn one_seed_is_one_course_and_unknown_faults_are_refused() {
    let bench = Bench::new();
    let course = |seed: &str| {
        let ran = bench.run(&["simulate", "--seed", seed, "--days", "0.1", "--machines", "12"]);
        assert_eq!(ran.code, 0, "{}{}", ran.out, ran.err);
        ran.out.lines().last().unwrap_or_default().to_owned()
    };
    assert_eq!(course("3"), course("3"));
    assert_ne!(course("3"), course("4"));
    let ran = bench.run(&["simulate", "--seed", "3", "--faults", "no-such-fault"]);
    assert_eq!(ran.code, 64, "{}", ran.out);
    assert!(ran.err.contains("no fault called no-such-fault"), "{}", ran.err);
    let ran = bench.run(&["simulate", "A1", "--seed", "3"]);
    assert_eq!(ran.code, 64, "{}", ran.out);
}
