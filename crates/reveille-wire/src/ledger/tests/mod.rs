//! Checks the format against a golden file, with round trips of arbitrary records, and with lines of other programs.

pub(crate) mod arbitrary;
mod blockers;
pub(crate) mod evidence;
mod samples;

use std::collections::BTreeSet;
use std::path::Path;

use proptest::prelude::*;
use reveille_core::effect::{Call, Outcome};
use serde::de::DeserializeOwned;
use serde_json::json;

use super::*;

fn written(record: &Record) -> String {
    serde_json::to_string(&to_wire(record)).unwrap()
}

fn read(text: &str) -> Result<Record, FromWireError> {
    from_wire(serde_json::from_str(text).unwrap())
}

/// The golden file is the promise. A difference here means that this version misreads older ledgers: add lines freely,
/// and change none without a new `VERSION` and a reader for the old one.
#[test]
fn the_format_is_what_it_was() {
    let path = Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/ledger/v3.jsonl");
    let lines: String = samples::every_kind().iter().map(|record| written(record) + "\n").collect();
    if std::env::var_os("REVEILLE_BLESS").is_some() {
        std::fs::write(&path, &lines).unwrap();
    }
    assert_eq!(lines, std::fs::read_to_string(&path).unwrap());
    let again: Vec<Record> = lines.lines().map(|line| read(line).unwrap()).collect();
    assert_eq!(again, samples::every_kind());
}

/// Every word of a closed list, as serde lists them in its error about another word.
pub(crate) fn words<T: DeserializeOwned + std::fmt::Debug>(unknown: Value) -> BTreeSet<String> {
    let said = serde_json::from_value::<T>(unknown).unwrap_err().to_string();
    said.split('`').skip(3).step_by(2).map(str::to_owned).collect()
}

/// Which fields may be missing, and what that means.
#[test]
fn fields_that_an_older_line_lacks_have_a_defined_meaning() {
    let with = |more: &str| format!(r#"{{"v":3,"at":"2026-10-19T09:12:13.042Z",{more}}}"#);
    let table = [
        (
            r#""t":"opened","incident":1,"key":{"subject":"cluster","fault":"source-suspect"},"label":"x""#,
            "pool: None",
        ),
        (r#""t":"ended","intent":1,"outcome":{"is":"accepted"}"#, "request: None"),
        (r#""t":"ended","intent":1,"outcome":{"is":"failed","text":"503"}"#, "retry_after: None"),
        (
            r#""t":"diagnosed","incident":1,"findings":[{"cause":"RV104","stage":"network","confidence":"sure","evidence":[]}]"#,
            "against: []",
        ),
        (
            r#""t":"intended","intent":1,"incident":1,"repairStep":0,"fence":1,"call":{"do":"drop-rule","cloud":"os","group":"g","rule":"r"}"#,
            "before: None",
        ),
    ];
    for (line, meaning) in table {
        let record = read(&with(line)).unwrap();
        assert!(format!("{record:?}").contains(meaning), "{line}: {record:?}");
    }
}

#[test]
fn the_golden_file_holds_every_record_call_and_outcome() {
    let lines: Vec<Value> =
        samples::every_kind().iter().map(|record| serde_json::from_str(&written(record)).unwrap()).collect();
    let held = |pointer: &str| -> BTreeSet<String> {
        lines.iter().filter_map(|line| Some(line.pointer(pointer)?.as_str()?.to_owned())).collect()
    };
    assert_eq!(held("/t"), words::<Record>(json!({"t": "?"})));
    assert_eq!(held("/call/do"), words::<Call>(json!({"do": "?"})));
    assert_eq!(held("/outcome/is"), words::<Outcome>(json!({"is": "?"})));
}

proptest! {
    #[test]
    fn every_record_comes_back_as_it_went(record in arbitrary::record()) {
        let text = written(&record);
        prop_assert!(!text.contains('\n'));
        prop_assert_eq!(read(&text).unwrap(), record);
    }
}

#[test]
fn lines_that_are_not_ours_are_refused_by_name() {
    let born = json!({"v": 3, "t": "born", "at": "2026-10-19T09:12:13.042Z", "machine": {"node": "n1"}});
    read(&born.to_string()).unwrap();
    let with = |field: &str, value: Value| {
        let mut line = born.clone();
        line[field] = value;
        line
    };
    let table = [
        (json!(null), "no version number"),
        (json!([1, 2]), "no version number"),
        (json!({"t": "born"}), "no version number"),
        (with("v", json!(4)), "is of version 4, and this program reads version 3"),
        (with("v", json!(2)), "is of version 2, and this program reads version 3"),
        (with("v", json!("3")), "is of version \"3\""),
        (with("v", json!(0)), "is of version 0"),
        (with("colour", json!("red")), "A newer program wrote it; use that one, or a newer one"),
        (json!({"v": 3, "t": "born", "machine": {"node": "n1"}}), "missing field `at`"),
        (with("t", json!("reborn")), "the record \"reborn\" cannot be read: unknown variant `reborn`"),
        (with("t", json!(7)), "the record 7 cannot be read"),
        (json!({"v": 3}), "the record null cannot be read: missing field `t`"),
        (with("colour", json!("red")), "the record \"born\" cannot be read: unknown field `colour`"),
        (with("at", json!("this morning")), "this morning"),
        (
            json!({"v": 3, "t": "ended", "at": 0, "intent": 1, "outcome": {"is": "fenced", "colour": "red"}}),
            "unknown field `colour`",
        ),
        (with("machine", json!({"node": 3})), "the record \"born\" cannot be read"),
        (with("machine", json!({"robot": "r"})), "unknown variant `robot`"),
        (json!({"v": 3, "t": "closed", "at": 0, "incident": 1, "verdict": "fine"}), "unknown variant `fine`"),
        (
            json!({"v": 3, "t": "opened", "at": 0, "incident": 1, "label": "", "key": {"subject": "cluster", "fault": "haunted"}}),
            "unknown variant `haunted`",
        ),
        (
            json!({"v": 3, "t": "diagnosed", "at": 0, "incident": 1, "findings": [
                {"cause": "RV999", "stage": "stay", "confidence": "sure", "evidence": []}]}),
            "unknown variant `RV999`",
        ),
        (
            json!({"v": 3, "t": "intended", "at": 0, "intent": 1, "incident": 1, "repairStep": 0, "fence": 1,
                "call": {"do": "explode", "cloud": "os"}}),
            "unknown variant `explode`",
        ),
        (
            json!({"v": 3, "t": "intended", "at": 0, "intent": 1, "incident": 1, "repairStep": 0, "fence": 1,
                "call": {"do": "add-rules", "cloud": "os", "group": "g", "rules": [
                    {"direction": "ingress", "family": "v4", "protocol": "carrier-pigeon", "remote": "any"}]}}),
            "there is no protocol \"carrier-pigeon\"",
        ),
    ];
    for (line, expected) in table {
        let said = read(&line.to_string()).unwrap_err().to_string();
        assert!(said.contains(expected), "{line}\n  said: {said}\n  not:  {expected}");
    }
}

/// The store must be able to copy a line that only a newer program can read.
#[test]
fn what_is_not_understood_is_carried_over_unchanged() {
    let newer = r#"{"t":"tomorrow","v":4,"x":[1.5,null,18446744073709551615]}"#;
    let line: LedgerLine = serde_json::from_str(newer).unwrap();
    assert_eq!(serde_json::to_string(&line).unwrap(), newer);
    assert!(matches!(from_wire(line), Err(FromWireError::Version { .. })));
}

/// The page of acts names every call that exists, and no other.
#[test]
fn acts_page_names_every_call() {
    let page = std::fs::read_to_string(
        std::path::Path::new(env!("CARGO_MANIFEST_DIR")).join("../../docs/reference/acts.md"),
    );
    let page = page.expect("the page is there");
    let first = |line: &str| {
        let cell = line.strip_prefix("| `")?.split('`').next()?;
        Some(cell.to_owned())
    };
    let named: std::collections::BTreeSet<String> = page.lines().filter_map(first).collect();
    assert_eq!(named, words::<Call>(json!({"do": "?"})));
}
