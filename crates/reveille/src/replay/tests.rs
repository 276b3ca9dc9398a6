//! Tests replays of the demo's stories: with the same engine, another engine, another roster; and cuts for every machine.

use std::io::Write as _;

use reveille_core::effect::Effect;
use reveille_core::engine::Start;
use reveille_core::model::id::Fence;
use reveille_core::model::roster::{Mode, Roster};
use reveille_core::model::time::Time;
use reveille_sim::policy::Policy;
use reveille_sim::story::{Demo, Part, play as tell};
use reveille_wire::recording::{Header, Step};

use super::compare::{Played, Wanted, play};
use super::cut::{cut, plain};
use super::recording::{RecordedSteps, Recording, parse};
use super::rival;
use crate::driver::recorder::ENGINE;
use crate::render::output_style::Paper;

/// A story as a recording, in which every record is durable at once.
fn recorded(seed: u64) -> RecordedSteps {
    let start = Start { fence: Fence(1), acting: true };
    let header = Header {
        program: "0.1.0".to_owned(),
        engine: ENGINE.to_owned(),
        of: "a test".to_owned(),
        roster: Demo::new(seed).roster().clone(),
        start,
        restored: None,
    };
    let mut steps: Vec<Step> = Vec::new();
    tell(seed, None, &mut |at, told| {
        if let Part::Step(event, effects) = told {
            let number = steps.len() as u64 + 1;
            steps.push(Step { number, at, event: event.clone(), effects: effects.to_vec() });
        }
    });
    RecordedSteps { header, steps }
}

fn played(recorded: &RecordedSteps, roster: Option<Roster>) -> Played {
    let mut file = tempfile::NamedTempFile::new().unwrap();
    file.write_all(&recorded.lines().unwrap()).unwrap();
    let mut recording = Recording::open(file.path()).unwrap();
    play(&mut recording, Wanted { roster, ..Wanted::default() }).unwrap()
}

/// A misspelt name is told from a machine to which nothing happened.
#[test]
fn machine_that_the_recording_does_not_hold_is_unknown() {
    let mut file = tempfile::NamedTempFile::new().unwrap();
    file.write_all(&recorded(1).lines().unwrap()).unwrap();
    let play = |machine: &str| {
        let wanted = Wanted { machine: Some(machine.to_owned()), ..Wanted::default() };
        play(&mut Recording::open(file.path()).unwrap(), wanted).unwrap()
    };
    let misspelt = play("nope");
    assert!(!misspelt.knows_machine && misspelt.story.is_empty());
    assert!(misspelt.machines.len() >= 14, "{:?}", misspelt.machines);
    for machine in &misspelt.machines {
        assert!(play(machine).knows_machine, "{machine}");
    }
}

#[test]
fn file_that_is_no_recording_says_what_to_name() {
    let mut file = tempfile::NamedTempFile::new().unwrap();
    file.write_all(b"no recording\x00\x01").unwrap();
    let text = Recording::open(file.path()).err().unwrap().to_string();
    let place = file.path().display().to_string();
    assert!(text.contains(&place) && text.contains("next: name the folder"), "{text}");
}

#[test]
fn the_same_engine_decides_the_same() {
    for seed in [1, 2, 3] {
        let played = played(&recorded(seed), None);
        assert_eq!((played.differing, played.digests.0), (0, played.digests.1), "story {seed}");
        assert!(played.decisions > 50 && !played.story.is_empty(), "story {seed}");
    }
}

#[test]
fn old_engines_differing_step_is_named_and_the_rest_compared() {
    let mut old = recorded(1);
    old.header.engine = "another".to_owned();
    let intent = |effect: &Effect| {
        matches!(effect, Effect::Record { record: reveille_core::record::Record::Intended { .. }, .. })
    };
    let place = old.steps.iter().position(|step| step.effects.iter().any(intent)).unwrap();
    old.steps[place].effects.retain(|effect| !intent(effect));
    let played = played(&old, None);
    assert!(!played.same_engine);
    let first = &played.differences[0];
    assert_eq!(first.step, old.steps[place].number);
    assert!(first.then.is_empty() && first.now[0].starts_with("repair "), "{first:?}");
    // A call that was not recorded then comes earlier now; after that moment the effects are the same.
    assert!(played.differences.iter().all(|one| one.at == first.at), "{:#?}", played.differences);
    assert_eq!(played.differing, played.differences.len() as u64);
}

#[test]
fn another_roster_tells_what_would_have_differed_and_why() {
    let recorded = recorded(1);
    let mut roster = recorded.header.roster.clone();
    for pool in roster.pools.values_mut() {
        pool.repair.network = Mode::Propose;
    }
    let asleep = played(&recorded, Some(roster));
    assert!(asleep.differing > 0 && asleep.engine_differs == 0);
    assert!(
        asleep.roster_changes.iter().any(|change| change.contains("repair.network")),
        "{:?}",
        asleep.roster_changes
    );
    let first = &asleep.differences[0];
    assert!(first.then.iter().any(|line| line.starts_with("repair ")), "{first:?}");
    assert!(
        first.why.iter().any(|line| line.starts_with("this roster: ") && line.contains("propose")),
        "{first:?}"
    );
    assert!(asleep.parted_at.is_some(), "the recorded world was mended by an act that is not made now");
    let same = played(&recorded, Some(recorded.header.roster.clone()));
    assert_eq!((same.differing, same.roster_changes.len()), (0, 0));
}

#[test]
fn replay_under_a_looser_roster_parts_from_the_recording() {
    let mut recorded = recorded(1);
    for pool in recorded.header.roster.pools.values_mut() {
        pool.repair.network = Mode::Off;
    }
    let quiet = recorded.again(None);
    let mut roster = quiet.header.roster.clone();
    for pool in roster.pools.values_mut() {
        pool.repair.network = Mode::Act;
    }
    let acting = played(&quiet, Some(roster));
    assert!(acting.parted_at.is_some() && acting.differing > 0);
}

#[test]
fn a_cut_tells_the_same_of_its_machine_and_is_smaller() {
    let recorded = recorded(1);
    let whole = recorded.lines().unwrap().len();
    let machines: std::collections::BTreeSet<String> = recorded
        .story(None)
        .iter()
        .map(|told| told.label.to_string())
        .filter(|label| label.starts_with("kks-"))
        .collect();
    assert!(machines.len() >= 4, "{machines:?}");
    let mut sizes = Vec::new();
    for machine in machines {
        let cut = cut(&recorded, Some(&machine), None).unwrap();
        assert_eq!(
            plain(&cut.recorded.story(Some(&machine))),
            plain(&recorded.story(Some(&machine))),
            "{machine}"
        );
        let lines = cut.recorded.lines().unwrap();
        assert_eq!(played(&cut.recorded, None).differing, 0, "{machine}");
        let again = parse(&super::anonymise::anonymise(&lines).unwrap()).unwrap().again(None);
        assert_eq!(again.story(None).len(), cut.recorded.story(None).len(), "{machine} under another name");
        assert!(!String::from_utf8(again.lines().unwrap()).unwrap().contains(&machine));
        sizes.push(lines.len());
    }
    assert!(sizes.iter().min() < Some(&(whole / 2)), "{sizes:?} of {whole}");
    assert!(cut(&recorded, Some("no-machine"), None).is_err());
    assert!(
        cut(&recorded, None, Some(Time::default())).unwrap().recorded.steps.len() == recorded.steps.len()
    );
}

/// The demo has a list of nodes that is empty by mistake: a controller that trusts it would delete machines that worked.
#[test]
fn flight_control_harms_the_demo_and_no_action_policy_does_not() {
    let recorded = recorded(1);
    let paper = || Paper { width: None, colored: false, zone: jiff::tz::TimeZone::UTC };
    let before = |policy: Policy| {
        let mut file = tempfile::NamedTempFile::new().unwrap();
        file.write_all(&recorded.lines().unwrap()).unwrap();
        let mut recording = Recording::open(file.path()).unwrap();
        rival::play(&mut recording, policy, &Wanted::default(), &paper()).unwrap()
    };
    let flight = before(Policy::FlightControl);
    assert!(flight.is_harmful());
    let page = flight.page(&paper());
    assert!(page.contains("would"), "{page}");
    assert!(page.contains("it answered at"), "{page}");
    assert!(page.contains("did"), "what was done stands beside it: {page}");
    assert!(!before(Policy::NoAction).is_harmful());
}
