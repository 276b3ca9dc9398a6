//! Tests the demo as a new user runs it.

use crate::bench::Bench;

#[test]
fn the_story_ends_well_and_is_plain_text_in_a_pipe() {
    let bench = Bench::new();
    let ran = bench.run(&["demo", "--fast"]);
    assert_eq!(ran.code, 0, "{}{}", ran.out, ran.err);
    assert!(!ran.out.chars().any(|c| c.is_control() && c != '\n'), "control characters in a pipe");
    for part in [
        "event",
        "found",
        "repair",
        "result",
        "blocked",
        "source",
        "What was blocked",
        "no safety rule was broken",
    ] {
        assert!(ran.out.contains(part), "{part}\n{}", ran.out);
    }
    assert_eq!(ran.out, bench.run(&["demo", "--fast"]).out, "the same seed tells the same story");
    assert_ne!(ran.out, bench.run(&["demo", "--fast", "--seed", "2"]).out);
}

#[test]
fn closed_output_pipe_causes_no_error_message() {
    let bench = Bench::new();
    for args in [&["demo", "--fast"] as &[&str], &["completions", "zsh"], &["--help"]] {
        let mut running = bench.start(args);
        running.read_a_little();
        let ran = running.wait();
        assert_eq!(ran.err, "", "{args:?}");
    }
}
