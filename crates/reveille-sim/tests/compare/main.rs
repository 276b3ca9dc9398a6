//! What other policies would have done: `docs/internals/compare.md` is made here, and is fresh.
//!
//! The page's tables stand between marks; the words around them are written by hand. After a wanted change run the tests
//! once with `REVEILLE_BLESS=1`, read the difference, and read the words again: they name what the tables show.

#![allow(clippy::unwrap_used, clippy::expect_used, reason = "a test may fail by panicking")]

use std::fmt::Write as _;
use std::path::PathBuf;
use std::sync::Mutex;

use reveille_core::model::time::Span;
use reveille_sim::chaos::{Happening, Rate, ScenarioRun};
use reveille_sim::compare::{Comparison, Subject, report, set};
use reveille_sim::policy::Policy;
use reveille_sim::world::World;
use reveille_sim::world::fault::Fault;
use reveille_sim::world::layout::Layout;

/// Plays them all, on two threads; each makes its own.
fn compare(make: impl Fn() -> Vec<Subject> + Sync) -> Vec<Comparison> {
    let count = make().len();
    let part = |skip: usize, take: usize| {
        let played = make().into_iter().skip(skip).take(take).map(|subject| subject.compare(Policy::ALL));
        played.collect::<Vec<_>>()
    };
    std::thread::scope(|scope| {
        let back = scope.spawn(|| part(count / 2, count));
        let mut played = part(0, count / 2);
        played.extend(back.join().unwrap());
        played
    })
}

/// One test at a time writes the page.
static PAGE: Mutex<()> = Mutex::new(());

/// What stands on the page under this mark is this, or becomes so when that is wanted.
fn is_on_the_page(mark: &str, made: &str) {
    let _alone = PAGE.lock();
    let page = PathBuf::from(concat!(env!("CARGO_MANIFEST_DIR"), "/../../docs/internals/compare.md"));
    let text = std::fs::read_to_string(&page).unwrap();
    let (begin, end) = (format!("<!-- {mark}: begin -->\n"), format!("<!-- {mark}: end -->"));
    let (before, rest) = text.split_once(&begin).expect("the page has the mark");
    let (stands, after) = rest.split_once(&end).expect("the page has the mark");
    if stands != made && std::env::var_os("REVEILLE_BLESS").is_some() {
        std::fs::write(&page, format!("{before}{begin}{made}{end}{after}")).unwrap();
        return;
    }
    assert!(
        stands == made,
        "docs/internals/compare.md is not what {mark} makes now; run this test with REVEILLE_BLESS=1 and read the difference. \
         It makes:\n{made}"
    );
}

fn sum(name: &str, of: &[Comparison]) -> String {
    format!("\n{}\n", report::markdown(&Comparison::sum(name, "", of)))
}

#[test]
fn the_situations_of_the_page_are_fresh() {
    let played = compare(set::situations);
    is_on_the_page("sum of situations", &sum("situations", &played));
    let mut each = String::new();
    for one in &played {
        let _ = write!(each, "\n### {}\n\n{}\n\n{}", one.name, one.about, report::markdown(one));
    }
    each.push('\n');
    is_on_the_page("situations", &each);
}

#[test]
#[ignore = "takes minutes: run it with REVEILLE_BLESS=1 when the engine or a model has changed what it does"]
fn the_seeds_of_the_page_are_fresh() {
    is_on_the_page("sum of seeds", &sum("seeds", &compare(|| set::seeds(1..=10))));
}

/// One subject, played twice under each policy, is the same to the last read.
#[test]
fn a_comparison_is_the_same_every_time() {
    let rate = Rate { machines: 10, length: Span::from_min(40), ..Rate::default() };
    let subject = Subject::of_run("twice", "", ScenarioRun::random(5, rate), Span::from_min(20));
    assert_eq!(subject.compare(Policy::ALL), subject.compare(Policy::ALL));
}

/// A group that slips off again and again is one place, however often it is put back.
#[test]
fn a_cure_that_does_not_hold_is_none() {
    let layout = Layout::fleet(7, 6);
    let machine = World::new(&layout).machines().into_iter().next().unwrap().id;
    let happenings = vec![(Span::from_min(4), Happening::Fault(Fault::GroupLost { machine, slips: true }))];
    let scenario_run = ScenarioRun { layout, happenings, length: Span::from_min(60) };
    let score = Subject::of_run("slips", "", scenario_run, Span::ZERO).play(Policy::FlightControl);
    assert!(score.calls > 15, "{score:?}");
    assert_eq!((score.places, score.acts), (1, 0), "{score:?}");
    assert!(score.cured.len() <= 1, "{score:?}");
}

/// The scenarios that come with Reveille play under other policies, too: each under no policy and under one model, in turn.
#[test]
fn every_scenario_is_played_under_other_policies() {
    let models = &Policy::ALL[1..Policy::ALL.len() - 1];
    let subjects = set::scenarios().unwrap();
    assert!(subjects.len() >= 5, "{}", subjects.len());
    let mut acts = 0;
    for (subject, model) in subjects.iter().zip(models.iter().cycle()) {
        let idle = subject.play(Policy::NoAction);
        assert_eq!((idle.acts, idle.calls, idle.reads, idle.broken), (0, 0, 0, 0), "{subject:?}");
        let score = subject.play(*model);
        assert_eq!((score.subjects, score.violations), (1, 0), "{subject:?} {model}");
        assert!(score.wrongs() <= score.acts && score.cured.len() as u64 <= score.places, "{score:?}");
        acts += score.acts;
    }
    assert!(acts > 0, "some model does something in some scenario");
}
