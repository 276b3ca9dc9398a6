//! Checks the format against a golden file and a kept one, with round trips of arbitrary events, and with
//! lines of other programs.

mod arbitrary;
mod samples;

use std::collections::BTreeSet;
use std::path::Path;

use proptest::prelude::*;
use reveille_core::effect::{Effect, Look};
use reveille_core::event::Answer;
use serde_json::json;

use super::*;
use crate::ledger::tests::words;
use samples::AT;

fn written(header: &Header, steps: &[(Event, Vec<Effect>)]) -> Vec<Vec<u8>> {
    let mut writer = Writer::default();
    let mut lines = vec![writer.header(header).unwrap()];
    for (event, effects) in steps {
        lines.push(writer.step(AT, event, effects).unwrap());
    }
    lines
}

fn read(lines: &[Vec<u8>]) -> Result<(Header, Vec<Step>), Broken> {
    let mut reader = Reader::default();
    let mut header = None;
    let mut steps = Vec::new();
    for line in lines {
        match reader.read(line)? {
            Line::Header(found) => header = Some(*found),
            Line::Step(step) => steps.push(*step),
        }
    }
    Ok((header.ok_or(Broken::NoHeader)?, steps))
}

fn sample() -> (Header, Vec<(Event, Vec<Effect>)>) {
    let mut effects = vec![samples::effects()];
    let steps = samples::events().into_iter().map(|event| (event, effects.pop().unwrap_or_default()));
    (samples::header(), steps.collect())
}

fn golden(name: &str) -> std::path::PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/recording").join(name)
}

/// The golden file is the promise. A difference here means that this version misreads older recordings: add lines freely,
/// and change none without a new `FORMAT` and a reader for the old one.
#[test]
fn the_format_is_what_it_was() {
    let (header, steps) = sample();
    let lines = written(&header, &steps);
    let text: String = lines.iter().map(|line| String::from_utf8(line.clone()).unwrap() + "\n").collect();
    if std::env::var_os("REVEILLE_BLESS").is_some() {
        std::fs::write(golden("v3.jsonl"), &text).unwrap();
    }
    assert_eq!(text, std::fs::read_to_string(golden("v3.jsonl")).unwrap());
    let (again, read) = read(&lines).unwrap();
    assert_eq!(again, header);
    assert_eq!(read.into_iter().map(|step| (step.event, step.effects)).collect::<Vec<_>>(), steps);
}

#[test]
fn the_golden_file_holds_every_look_answer_and_effect() {
    let (header, steps) = sample();
    let lines = written(&header, &steps);
    let values: Vec<Value> = lines.iter().map(|line| serde_json::from_slice(line).unwrap()).collect();
    let word = |value: &Value| match value {
        Value::String(word) => Some(word.clone()),
        Value::Object(object) => object.keys().next().cloned(),
        _ => None,
    };
    let out = |value: &Value| value["out"].as_array().cloned().unwrap_or_default();
    let effects: BTreeSet<String> = values.iter().flat_map(out).filter_map(|value| word(&value)).collect();
    assert_eq!(effects, words::<Effect>(json!("?")));
    let looks: BTreeSet<String> =
        values.iter().flat_map(out).filter_map(|value| word(value.pointer("/look/look")?)).collect();
    assert_eq!(looks, words::<Look>(json!("?")));
    let answers: BTreeSet<String> =
        values.iter().filter_map(|value| word(value.pointer("/in/looked/answer/found")?)).collect();
    assert_eq!(answers, words::<Answer>(json!("?")));
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(64))]
    #[test]
    fn every_step_comes_back_as_it_went(steps in prop::collection::vec((arbitrary::event(), arbitrary::effects()), 1..6)) {
        let lines = written(&samples::header(), &steps);
        prop_assert!(lines.iter().all(|line| !line.contains(&b'\n')));
        let (_, read) = read(&lines).unwrap();
        let read: Vec<_> = read.into_iter().map(|step| (step.event, step.effects)).collect();
        prop_assert_eq!(read, steps);
    }
}

#[test]
fn lines_that_are_not_ours_are_refused_by_name() {
    let (header, steps) = sample();
    let lines = written(&header, &steps);
    let tick = json!({"n": 1, "at": 0, "in": "tick"});
    let with = |pointer: &str, value: Value| {
        let mut line: Value = serde_json::from_slice(&lines[0]).unwrap();
        *line.pointer_mut(pointer).unwrap() = value;
        vec![line]
    };
    let then = |step: Value| vec![serde_json::from_slice::<Value>(&lines[0]).unwrap(), step];
    let table: Vec<(Vec<Value>, &str)> = vec![
        (vec![tick.clone()], "begins with its header"),
        (vec![json!(7)], "begins with its header"),
        (with("/recording/format", json!(2)), "it is of format 2, and this program reads format 3"),
        (with("/recording/format", json!("x")), "it is of format \"x\""),
        (with("/recording/roster/pools/gpu/repair/network", json!("perhaps")), "unknown variant `perhaps`"),
        (with("/recording/start", json!({"fence": 1, "acting": true, "mood": 1})), "unknown field `mood`"),
        (then(json!({"n": 1, "at": 0, "in": "dream"})), "unknown variant `dream`"),
        (
            then(json!({"n": 1, "at": 0, "in": "dream"})),
            "A newer program wrote it; replay it with that one, or a newer one",
        ),
        (then(json!({"n": 1, "at": 0, "in": "tick", "colour": "red"})), "unknown field `colour`"),
        (then(json!({"n": 2, "at": 0, "in": "tick"})), "it is step 2, and step 1 should stand here"),
        (then(json!({"at": 0, "in": "tick"})), "missing field `n`"),
        (
            then(json!({"n": 1, "at": 0, "in": {"synced": [{"keep": [0, 3]}]}})),
            "refers to a list that no earlier line holds",
        ),
        (then(json!({"n": 1, "at": 0, "in": "tick", "out": [{"sing": 1}]})), "unknown variant `sing`"),
    ];
    for (values, expected) in table {
        let lines: Vec<Vec<u8>> = values.iter().map(|value| serde_json::to_vec(value).unwrap()).collect();
        let said = read(&lines).unwrap_err().to_string();
        assert!(said.contains(expected), "{values:?}\n  said: {said}\n  not:  {expected}");
    }
    let mut lines = lines;
    lines[1] = b"{\"n\":1,".to_vec();
    assert!(read(&lines).unwrap_err().to_string().contains("it is no line of a recording"));
}
