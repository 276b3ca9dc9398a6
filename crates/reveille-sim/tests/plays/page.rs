//! The page about the language: its examples are played, and what it shows of the tables is in them.

use std::fs;

use reveille_sim::scenario::{parse, phrases, play, transcript};

fn page() -> String {
    fs::read_to_string(concat!(env!("CARGO_MANIFEST_DIR"), "/../../docs/internals/scenarios.md")).unwrap()
}

#[test]
fn the_examples_of_the_page_are_played_and_hold() {
    let page = page();
    let examples: Vec<&str> =
        page.split("```scenario\n").skip(1).map(|rest| rest.split("```").next().unwrap()).collect();
    assert_eq!(examples.len(), 2);
    for example in examples {
        let scenario = parse(example).unwrap_or_else(|refusal| panic!("{refusal}\n{example}"));
        let played = play(&scenario).unwrap();
        assert!(played.holds(), "{}", transcript(&scenario, Some(&played)));
    }
}

/// Every statement that the page shows of `given` and `when` can be read.
#[test]
fn what_the_page_shows_of_the_language_is_the_language() {
    let page = page();
    let section =
        |name: &str| page.split(&format!("\n## {name}\n")).nth(1).unwrap().split("\n## ").next().unwrap();
    let base = "scenario X Y\ngiven\n  pool workers of 3 machines in zones a, b\n";
    let rows = section("given").lines().filter_map(|line| line.strip_prefix("| `")?.split('`').next());
    let given: Vec<String> = rows
        .filter(|row| *row != "in pool NAME")
        .map(|row| row.replace("pool NAME of N", "pool gpu of 2"))
        .collect();
    assert!(given.len() > 12, "{given:?}");
    for row in given {
        let row = row.replace("NAME", "workers").replace(" N", " 1");
        let file = format!("{base}  {row}\nwhen\n  ends at 5m\nthen\n  never  a call\n");
        assert!(parse(&file).is_ok(), "{row}: {}", parse(&file).unwrap_err());
    }
    let block = section("when").split("```text\n").nth(1).unwrap().split("```").next().unwrap();
    let statements: Vec<&str> = block
        .lines()
        .flat_map(|line| line.split("   "))
        .map(str::trim)
        .filter(|text| !text.is_empty())
        .collect();
    assert!(statements.len() > 15, "{statements:?}");
    for statement in statements {
        let file = format!("{base}when\n  at 5m  {statement}\nthen\n  never  a call\n");
        assert!(parse(&file).is_ok(), "{statement}: {}", parse(&file).unwrap_err());
    }
}

#[test]
fn no_phrase_stands_twice_in_its_table() {
    for (section, mut forms) in phrases() {
        let all = forms.len();
        forms.sort_unstable();
        forms.dedup();
        assert_eq!(forms.len(), all, "{section}");
        assert!(all >= 20, "{section}: {all}");
    }
}
