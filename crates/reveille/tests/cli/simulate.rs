//! Tests `simulate`: its exit codes, its page, its reports, and that one seed always gives the same run.

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
fn passed_failed_and_invalid_scenarios_exit_with_0_1_and_64() {
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
    assert!(ran.out.contains("146 scenarios: "), "{}", ran.out);
    let ran = bench.run(&["simulate", "--phrases"]);
    assert!(ran.code == 0 && ran.out.contains("\n  zone {zone} is cut off for {span}\n"), "{}", ran.out);
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

#[test]
fn policies_are_played_side_by_side_or_one_by_one_act_by_act() {
    let bench = Bench::new();
    bench.write("good.scenario", &GOOD.replace("then\n", "  ends at 40m\nthen\n"));
    let ran = bench.run(&["simulate", "good.scenario", "--compare"]);
    assert_eq!(ran.code, 0, "{}{}", ran.out, ran.err);
    for name in
        ["reveille", "flight-control", "machine-health-check", "karpenter", "magnum-auto-healer", "no-action"]
    {
        assert!(ran.out.contains(&format!("\n  {name} ")), "{name}\n{}", ran.out);
    }
    let one = ["simulate", "good.scenario", "--policy", "machine-health-check"];
    let ran = bench.run(&one);
    assert_eq!(ran.code, 1, "{}{}", ran.out, ran.err);
    assert!(ran.out.contains("(workers-1): wrong, a reboot would have cured it"), "{}", ran.out);
    let ran = bench.run(&[&one[..], &["--output", "json"]].concat());
    let report: serde_json::Value = serde_json::from_str(&ran.out).unwrap();
    let score = &report["comparisons"][0]["scores"][0];
    assert_eq!((&score["wrong"], &score["cured"]), (&1.into(), &1.into()), "{report}");
    assert_eq!(score["acts"][0]["wrong"], "a reboot would have cured it", "{report}");
}

#[test]
fn a_situation_of_the_comparison_is_played_by_its_name() {
    let ran = Bench::new().run(&["simulate", "neighbour", "--policy", "flight-control"]);
    assert_eq!(ran.code, 1, "{}{}", ran.out, ran.err);
    assert_eq!(ran.out.matches("wrong, another owner's machine").count(), 6, "{}", ran.out);
}

#[test]
fn unknown_policy_is_refused_with_a_list_and_seeds_are_summed() {
    let bench = Bench::new();
    let ran = bench.run(&["simulate", "A1", "--policy", "draino"]);
    assert_eq!(ran.code, 64, "{}", ran.out);
    assert!(ran.err.contains("magnum-auto-healer"), "{}", ran.err);
    let seeds = ["simulate", "--seed", "3", "--seeds", "2", "--days", "0.02", "--machines", "8", "--compare"];
    let ran = bench.run(&[&seeds[..], &["--output", "json"]].concat());
    assert_eq!(ran.code, 0, "{}", ran.err);
    let report: serde_json::Value = serde_json::from_str(&ran.out).unwrap();
    assert_eq!(report["comparisons"].as_array().map(Vec::len), Some(2), "{report}");
    let of = |one: &serde_json::Value| one["scores"][0]["reads"].as_u64().unwrap();
    let single: u64 = report["comparisons"].as_array().unwrap().iter().map(of).sum();
    assert_eq!(of(&report["sum"]), single, "{report}");
    assert_eq!(report["sum"]["scores"][0]["subjects"], 2, "{report}");
}

#[test]
fn a_repair_of_a_record_is_told_in_words_whatever_its_seed() {
    let bench = Bench::new();
    let mut told = String::new();
    for seed in 0..40 {
        let ran = bench.run(&["simulate", "--world", "rancher", "--seed", &seed.to_string()]);
        assert_eq!(ran.code, 0, "{}{}", ran.out, ran.err);
        told += &ran.out;
    }
    for debug in ["{", "HandedOver", "Stopped", "Accepted", "Begun", "Closed(", "HoldsEtcd"] {
        assert!(!told.contains(debug), "{debug:?} is no word of a person's");
    }
    for words in [
        "besides: it holds etcd",
        ": journal 1: begun: evict w-3 of cluster c-abcde (uid uid-w-3, 10.0.0.3)",
        ": over: its Node and its records are gone",
        ": stops: ",
        "; nothing was changed",
        "outcome of 1: done",
        "HAPPENS crash-after: our process dies after an effect",
        "1 handed over",
    ] {
        assert!(told.contains(words), "{words:?} is never said");
    }
}
