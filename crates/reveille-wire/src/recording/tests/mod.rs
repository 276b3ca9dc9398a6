//! The format against a golden file and a kept one, round trips of arbitrary events, and lines that are not ours.

mod arbitrary;
mod samples;

use std::collections::BTreeSet;
use std::path::Path;

use proptest::prelude::*;
use reveille_core::effect::Effect;
use serde_json::json;

use super::*;
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

/// The file is the promise. A difference here means that older recordings are read otherwise than they were written: add
/// lines freely, change none without a new `FORMAT` and a reader for the old one.
#[test]
fn the_format_is_what_it_was() {
    let (header, steps) = sample();
    let lines = written(&header, &steps);
    let text: String = lines.iter().map(|line| String::from_utf8(line.clone()).unwrap() + "\n").collect();
    if std::env::var_os("REVEILLE_BLESS").is_some() {
        std::fs::write(golden("v1.jsonl"), &text).unwrap();
    }
    assert_eq!(text, std::fs::read_to_string(golden("v1.jsonl")).unwrap());
    let (again, read) = read(&lines).unwrap();
    assert_eq!(again, header);
    assert_eq!(read.into_iter().map(|step| (step.event, step.effects)).collect::<Vec<_>>(), steps);
}

/// A recording as version 0.1 wrote it. The file is never written again.
#[test]
fn a_recording_of_version_0_1_is_read_for_good() {
    let kept = std::fs::read(golden("kept-0.1.jsonl")).unwrap();
    let lines: Vec<Vec<u8>> =
        kept.split(|byte| *byte == b'\n').filter(|line| !line.is_empty()).map(<[u8]>::to_vec).collect();
    let (header, steps) = read(&lines).unwrap();
    assert_eq!((header.program.as_str(), steps.len()), ("0.1.0", 28), "the kept file was changed");
    let steps: Vec<_> = steps.into_iter().map(|step| (step.event, step.effects)).collect();
    for (then, now) in lines.iter().zip(written(&header, &steps)) {
        let (then, now): (Value, Value) =
            (serde_json::from_slice(then).unwrap(), serde_json::from_slice(&now).unwrap());
        assert!(
            crate::ledger::tests::says_all(&now, &then),
            "it means something else now\n  then {then}\n  now  {now}"
        );
    }
}

#[test]
fn the_golden_file_holds_every_look_answer_and_effect() {
    use crate::ledger::mirror::Tagged;
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
    assert_eq!(effects, WireEffect::WORDS.iter().map(|word| (*word).to_owned()).collect());
    let looks: BTreeSet<String> =
        values.iter().flat_map(out).filter_map(|value| word(value.pointer("/look/look")?)).collect();
    assert_eq!(looks, effect::WireLook::WORDS.iter().map(|word| (*word).to_owned()).collect());
    let answers: BTreeSet<String> =
        values.iter().filter_map(|value| word(value.pointer("/in/looked/answer/found")?)).collect();
    assert_eq!(answers, event::WireAnswer::WORDS.iter().map(|word| (*word).to_owned()).collect());
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
        (with("/recording/format", json!(2)), "it is of format 2, and this program reads format 1"),
        (with("/recording/format", json!("x")), "it is of format \"x\""),
        (
            with("/recording/roster/pools/0/repair/network", json!("perhaps")),
            "no mode of a remedy called \"perhaps\"",
        ),
        (with("/recording/start", json!({"fence": 1, "acting": true, "mood": 1})), "unknown field `mood`"),
        (then(json!({"n": 1, "at": 0, "in": "dream"})), "unknown variant `dream`"),
        (
            then(json!({"n": 1, "at": 0, "in": "dream"})),
            "A newer program wrote it; replay it with that one, or a newer one",
        ),
        (then(json!({"n": 1, "at": 0, "in": "tick", "colour": "red"})), "unknown field `colour`"),
        (then(json!({"n": 2, "at": 0, "in": "tick"})), "it is step 2, and step 1 should stand here"),
        (then(json!({"at": 0, "in": "tick"})), "it holds no step"),
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
