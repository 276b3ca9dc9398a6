//! The library as a whole: what is there, that it holds, and that it is recorded.

use std::collections::BTreeMap;
use std::fs;
use std::path::PathBuf;

use reveille_sim::scenario::{Filed, library, play, transcript};

fn folder() -> PathBuf {
    PathBuf::from(env!("CARGO_MANIFEST_DIR")).join("scenarios")
}

/// Plays every file whose place in the library gives this remainder, and returns what is wrong.
fn wrong(part: usize, of: usize) -> Vec<String> {
    // While one is being written: REVEILLE_PLAY=h plays those whose names begin so.
    let only = std::env::var("REVEILLE_PLAY").unwrap_or_default();
    let mine = library().iter().filter(|filed| filed.name.starts_with(&only)).enumerate();
    let mine = mine.filter(|(place, _)| place % of == part);
    mine.filter_map(|(place, filed)| check(filed, place % 5 == 0).err()).collect()
}

fn check(filed: &Filed, twice: bool) -> Result<(), String> {
    let fail = |why: String| format!("{}.scenario: {why}", filed.name);
    let scenario = filed.scenario().map_err(|refusal| fail(refusal.to_string()))?;
    let played = match scenario.not_yet {
        Some(_) => None,
        None => {
            let once = play(&scenario).map_err(|refusal| fail(refusal.to_string()))?;
            // The page was recorded by another process, so each is compared with an earlier play; some byte by byte.
            if twice {
                let again = play(&scenario).map_err(|refusal| fail(refusal.to_string()))?;
                if once.digest != again.digest {
                    return Err(fail("two plays are not the same bytes".to_owned()));
                }
            }
            Some(once)
        }
    };
    let page = transcript(&scenario, played.as_ref());
    let file = folder().join(format!("{}.out", filed.name));
    if played.is_some_and(|played| !played.holds()) {
        return Err(fail(format!("does not hold\n{page}")));
    }
    if std::env::var_os("REVEILLE_BLESS").is_some() {
        fs::write(&file, page).unwrap();
        return Ok(());
    }
    let recorded = fs::read_to_string(&file).unwrap_or_default();
    if recorded == page {
        return Ok(());
    }
    let differs = recorded.lines().zip(page.lines()).find(|(before, now)| before != now);
    let (before, now) = differs.unwrap_or(("the end", "another end"));
    Err(fail(format!(
        "the page is not the recorded one\n  recorded: {before}\n  now:      {now}\n  if that is meant: REVEILLE_BLESS=1"
    )))
}

fn all_hold(part: usize, of: usize) {
    let wrong = wrong(part, of);
    assert!(wrong.is_empty(), "{} scenarios are wrong\n\n{}", wrong.len(), wrong.join("\n\n"));
}

#[test]
fn every_scenario_holds_and_is_recorded_1_of_4() {
    all_hold(0, 4);
}

#[test]
fn every_scenario_holds_and_is_recorded_2_of_4() {
    all_hold(1, 4);
}

#[test]
fn every_scenario_holds_and_is_recorded_3_of_4() {
    all_hold(2, 4);
}

#[test]
fn every_scenario_holds_and_is_recorded_4_of_4() {
    all_hold(3, 4);
}

/// A file's name begins with its number, and no number is there twice.
#[test]
fn each_file_is_named_by_its_number_and_its_gist() {
    let mut numbers: BTreeMap<String, &str> = BTreeMap::new();
    for filed in library() {
        let scenario = filed.scenario().unwrap_or_else(|refusal| panic!("{}: {refusal}", filed.name));
        let digits: String = scenario.number.chars().skip_while(|c| c.is_ascii_alphabetic()).collect();
        let letters: String = scenario.number.chars().take_while(|c| c.is_ascii_alphabetic()).collect();
        let wanted = format!("{}{digits:0>2}-", letters.to_lowercase());
        assert!(filed.name.starts_with(&wanted), "{} is {}: {wanted}…", filed.name, scenario.number);
        let before = numbers.insert(scenario.number.clone(), filed.name);
        assert_eq!(before, None, "{} is there twice", scenario.number);
    }
}

/// What was recorded for a scenario that is not there any more is thrown away.
#[test]
fn no_page_is_left_of_a_scenario_that_is_gone() {
    let names: Vec<&str> = library().iter().map(|filed| filed.name).collect();
    for entry in fs::read_dir(folder()).unwrap() {
        let path = entry.unwrap().path();
        let stem = path.file_stem().unwrap().to_string_lossy().into_owned();
        assert!(names.contains(&stem.as_str()), "{} belongs to no scenario", path.display());
    }
}
