//! Pauses: set, replace, read and remove; and the errors for files that are not pauses.

use std::fs;

use reveille_record::{Pause, PauseError, PauseName, PauseScope, Pauses};

fn pause(scope: PauseScope) -> Pause {
    Pause { scope, by: "ada".into(), reason: "maintenance, \"until noon\"".into(), at_ms: 1_000 }
}

#[test]
fn pause_stays_until_removed_and_is_replaced_when_set_again() {
    let state = tempfile::tempdir().unwrap();
    let pauses = Pauses::of(state.path());
    assert!(pauses.read().unwrap().pauses.is_empty());
    let scopes =
        [PauseScope::Roster, PauseScope::Pool("workers".into()), PauseScope::Machine("kks-prod-w-1".into())];
    for scope in &scopes {
        pauses.set(&PauseName::of(scope), &pause(scope.clone())).unwrap();
    }
    let again = Pause { by: "grace".into(), ..pause(PauseScope::Roster) };
    pauses.set(&PauseName::of(&PauseScope::Roster), &again).unwrap();
    let read = pauses.read().unwrap();
    assert!(read.unreadable.is_empty());
    assert_eq!(read.pauses.len(), 3);
    assert_eq!(read.pauses[&PauseName::new("roster").unwrap()], again);
    assert_eq!(read.pauses[&PauseName::new("pool-workers").unwrap()], pause(scopes[1].clone()));
    assert!(pauses.remove(&PauseName::of(&scopes[1])).unwrap());
    assert!(!pauses.remove(&PauseName::of(&scopes[1])).unwrap());
    assert_eq!(pauses.read().unwrap().pauses.len(), 2);
    let left: Vec<_> = fs::read_dir(state.path().join("pauses")).unwrap().collect();
    assert_eq!(left.len(), 2, "no temporary files stay: {left:?}");
}

#[test]
fn a_file_that_is_no_pause_is_named_and_the_others_are_read() {
    let state = tempfile::tempdir().unwrap();
    let pauses = Pauses::of(state.path());
    pauses.set(&PauseName::of(&PauseScope::Roster), &pause(PauseScope::Roster)).unwrap();
    let directory = state.path().join("pauses");
    for (name, content) in [
        ("cut.json", "{\"scope\": {\"kind\""),
        ("unknown.json", r#"{"scope":{"kind":"cloud","name":"os"},"by":"a","reason":"b","at_ms":1}"#),
        ("typo.json", r#"{"scope":{"kind":"roster"},"by":"a","reason":"b","at_ms":1,"untill":"noon"}"#),
        ("bad name.json", "{}"),
        (".roster.4711", "a write under way"),
        (".hidden.json", "an editor's"),
        ("notes.txt", "foreign"),
    ] {
        fs::write(directory.join(name), content).unwrap();
    }
    let read = pauses.read().unwrap();
    assert_eq!(read.pauses.len(), 1);
    let texts: Vec<String> = read.unreadable.iter().map(ToString::to_string).collect();
    let named = ["\"bad name\"", "cut.json", "typo.json", "unknown.json"];
    assert_eq!(texts.len(), named.len(), "{texts:?}");
    for (text, name) in texts.iter().zip(named) {
        assert!(text.contains(name), "{text} should name {name}");
    }
}

#[test]
fn every_pause_scope_has_unique_valid_file_name() {
    let long = "n".repeat(300);
    let names = ["a", "a/b", "a%2Fb", "../../etc", ".hidden", "grün", "a b", "", &long, &format!("{long}x")];
    let mut seen = std::collections::BTreeSet::new();
    for name in names {
        for scope in [PauseScope::Pool(name.into()), PauseScope::Machine(name.into())] {
            let name = PauseName::of(&scope);
            assert!(PauseName::new(name.to_string()).is_ok(), "{name}");
            assert!(seen.insert(name.clone()), "{name} stands for two scopes");
        }
    }
}

#[test]
fn names_that_would_leave_the_directory_are_refused() {
    for name in ["", "..", ".x", "a/b", "a\0b", "a b", &"n".repeat(81)] {
        assert!(matches!(PauseName::new(name), Err(PauseError::Name { .. })), "{name:?}");
    }
}
