//! Tests recordings that the real program made: replayed, cut, damaged, killed in the middle.

use std::path::{Path, PathBuf};

use serde_json::Value;

use crate::bench::{Bench, files_below, until};

/// The only segment below a folder.
fn recording(below: &Path) -> PathBuf {
    let found: Vec<String> = files_below(below).into_iter().filter(|name| name.ends_with(".tape")).collect();
    assert_eq!(found.len(), 1, "{found:?}");
    below.join(&found[0])
}

fn demo(bench: &Bench) -> PathBuf {
    let ran = bench.run(&["demo", "--fast", "--record", "flight"]);
    assert_eq!((ran.code, ran.err.as_str()), (0, ""), "{}", ran.out);
    recording(&bench.path("flight"))
}

fn json(text: &str) -> Value {
    serde_json::from_str(text).unwrap()
}

#[test]
fn a_recorded_demo_decides_the_same_again_byte_for_byte() {
    let bench = Bench::new();
    demo(&bench);
    let ran = bench.run(&["replay", "flight"]);
    assert_eq!(ran.code, 0, "{}{}", ran.out, ran.err);
    assert!(ran.out.contains(": all the same, digest "), "{}", ran.out);
    let document = json(&bench.run(&["replay", "flight", "-o", "json"]).out);
    assert_eq!((&document["same"], &document["sameEngine"]), (&Value::Bool(true), &Value::Bool(true)));
    assert_eq!(document["digestThen"], document["digestNow"]);
    assert!(
        document["steps"].as_u64() > Some(500) && document["decisions"].as_u64() > Some(50),
        "{document}"
    );
    assert!(
        !files_below(&bench.path("flight")).iter().any(|name| name.ends_with("notice.txt")),
        "it ended well"
    );
    let yaml = bench.run(&["replay", "flight", "-o", "yaml"]);
    assert!(yaml.code == 0 && yaml.out.contains("kind: ReplayReport"), "{}", yaml.out);
}

#[test]
fn replay_story_is_filtered_by_machine_and_by_time() {
    let bench = Bench::new();
    demo(&bench);
    let document = json(&bench.run(&["replay", "flight", "-o", "json"]).out);
    let story = document["story"].as_array().unwrap().clone();
    let machine = story[0]["about"].as_str().unwrap();
    let args =
        ["replay", "flight", "-o", "json", "--machine", machine, "--from", "08:05", "--until", "2026-11-21"];
    assert_eq!(bench.run(&args).code, 64, "a day is no time");
    let about = json(&bench.run(&["replay", "flight", "-o", "json", "--machine", machine]).out);
    assert!(about["story"].as_array().unwrap().iter().all(|line| line["about"] == machine), "{about}");
    let at = story[story.len() / 2]["at"].as_str().unwrap();
    let late = json(&bench.run(&["replay", "flight", "-o", "json", "--from", at]).out);
    assert!(late["story"].as_array().unwrap().iter().all(|line| line["at"].as_str() >= Some(at)), "{late}");
    let early = json(&bench.run(&["replay", "flight", "-o", "json", "--until", at]).out);
    assert!(early["story"].as_array().unwrap().iter().all(|line| line["at"].as_str() <= Some(at)), "{early}");
    assert!(early["steps"].as_u64() < document["steps"].as_u64());
}

#[test]
fn changed_byte_is_refused_with_its_offset_and_cut_end_is_read() {
    let bench = Bench::new();
    let path = demo(&bench);
    let whole = std::fs::read(&path).unwrap();
    let mut changed = whole.clone();
    let middle = whole.len() / 2;
    changed[middle] ^= 1;
    std::fs::write(&path, changed).unwrap();
    let ran = bench.run(&["replay", "flight"]);
    assert_eq!(ran.code, 65, "{}", ran.err);
    assert!(ran.err.contains("0000000001.tape, frame ") && ran.err.contains(" at byte "), "{}", ran.err);
    std::fs::write(&path, &whole[..whole.len() - 7]).unwrap();
    let ran = bench.run(&["replay", "flight"]);
    assert!(ran.out.contains("cut short: the process was killed while it wrote"), "{}{}", ran.out, ran.err);
}

#[test]
fn what_is_no_recording_is_refused_by_name() {
    let bench = Bench::new();
    bench.write("notes", "hello");
    bench.write("newer.recording", "{\"recording\":{\"format\":9}}\n");
    std::fs::create_dir(bench.path("empty")).unwrap();
    for (path, code, part) in [
        ("nowhere", 64, "there is no nowhere"),
        ("empty", 65, "no recording is in empty"),
        ("notes", 65, "notes is no recording"),
        ("newer.recording", 65, "format 9, and this program reads format 3"),
    ] {
        let ran = bench.run(&["replay", path]);
        assert_eq!((ran.code, ran.err.contains(part)), (code, true), "{path}: {}", ran.err);
    }
}

/// The killed process cannot end its recording; the replay has what was flushed before.
#[test]
fn a_run_that_was_killed_is_replayed_as_far_as_it_came() {
    let bench = Bench::new();
    let run = bench.start(&["run", "--record", "flight"]);
    let flight = bench.path("flight");
    let grown = || {
        let recordings: Vec<String> =
            files_below(&flight).into_iter().filter(|name| name.ends_with(".tape")).collect();
        recordings.iter().any(|name| {
            let replayed = bench.run(&["replay", "flight", "-o", "json"]);
            !name.is_empty() && replayed.code == 0 && json(&replayed.out)["steps"].as_u64() > Some(2)
        })
    };
    until("steps are on disk", grown);
    run.kill();
    let ran = bench.run(&["replay", "flight"]);
    assert_eq!(ran.code, 0, "{}{}", ran.out, ran.err);
    for part in ["run of roster lost", "all the same", "its process was killed"] {
        assert!(ran.out.contains(part), "{part}\n{}", ran.out);
    }
    let second = bench.start(&["run", "--record", "flight", "--once", "--within", "5"]);
    second.wait();
    let both = bench.run(&["replay", "flight"]);
    assert_eq!(both.code, 0, "{}{}", both.out, both.err);
    assert_eq!(both.out.matches("all the same").count(), 2, "each start is a run of its own: {}", both.out);
}

#[test]
fn unwritable_recording_folder_is_refused_before_the_demo() {
    let bench = Bench::new();
    bench.write("file", "in the way");
    let ran = bench.run(&["demo", "--fast", "--record", "file"]);
    assert_eq!((ran.code, ran.err.contains("cannot begin the recording")), (64, true), "{}", ran.err);
}

#[test]
fn anonymised_regression_is_written_by_one_replay_command() {
    let bench = Bench::new();
    let path = demo(&bench);
    let document = json(&bench.run(&["replay", "flight", "-o", "json"]).out);
    let machine = document["story"][0]["about"].as_str().unwrap();
    let args = [
        "replay",
        "flight",
        "--machine",
        machine,
        "--until",
        "08:12",
        "--to-scenario",
        "a.recording",
        "--anonymise",
    ];
    let ran = bench.run(&args);
    assert_eq!(ran.code, 0, "{}{}", ran.out, ran.err);
    let text = std::fs::read_to_string(bench.path("a.recording")).unwrap();
    assert!(!text.contains(machine) && !text.contains("kks-prod"), "a name is left");
    assert!(text.len() < 200_000, "{} bytes, of {} on disk", text.len(), path.metadata().unwrap().len());
    let replayed = bench.run(&["replay", "a.recording"]);
    assert_eq!(replayed.code, 0, "{}{}", replayed.out, replayed.err);
    assert!(
        replayed.out.contains("all the same") && replayed.out.contains("node-deleted-not-in-cloud"),
        "{}",
        replayed.out
    );
    assert_eq!(bench.run(&args).code, 64, "an existing file is never overwritten");
    let changed = text.replace("RV201", "RV202");
    bench.write("b.recording", &changed);
    let differs = bench.run(&["replay", "b.recording"]);
    assert_eq!(differs.code, 1, "{}{}", differs.out, differs.err);
    assert!(differs.out.contains("  then  ") && differs.out.contains("  now   "), "{}", differs.out);
}
