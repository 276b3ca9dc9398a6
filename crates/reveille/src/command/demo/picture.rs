//! The picture of `status` and `why` in the README: the pages of a moment of the demo, as a terminal would show them.
//!
//! ```text
//!  sim::story::play, to 17:58 ─▶ engine ─▶ view ─▶ render, in colour ─▶ anstyle-svg ─▶ docs/status.svg
//! ```
//!
//! After a change of the pages run this test once with `REVEILLE_BLESS=1`, and look at the picture.

use std::fmt::Write as _;
use std::path::Path;

use jiff::tz::TimeZone;
use reveille_core::engine::State;
use reveille_core::model::time::Span;
use reveille_sim::story::play;
use reveille_wire::report::Report;

use crate::render::output_style::{Paper, Tone};
use crate::render::{status, why};
use crate::view::ask::{Ask, Asked, Reply, answer};

/// Story time of the picture: a machine has not joined, and its console tells why.
const AT: Span = Span::from_s(17 * 60 + 58);

fn report(state: &State, ask: &Ask) -> Report {
    match answer(state, ask, &Asked::default()) {
        Reply::Report(report) => *report,
        other => panic!("no report: {other:?}"),
    }
}

#[test]
fn picture_of_status_and_why_is_what_the_demo_shows() {
    let paper = Paper { width: Some(118), colored: true, zone: TimeZone::UTC };
    let (_, state) = play(1, Some(AT), &mut |_, _| {});
    let Report::StatusReport(status) = report(&state, &Ask::Status) else { panic!("no status") };
    let machine = status
        .machines
        .iter()
        .find(|machine| machine.state != "ready")
        .expect("a problem is open")
        .name
        .clone();
    let Report::WhyReport(reason) = report(&state, &Ask::Why { machine: machine.clone(), timeline: false })
    else {
        panic!("no reason")
    };
    let prompt = |command: &str| paper.tone(Tone::Strong, format!("$ reveille {command}"));
    let mut screen = String::new();
    writeln!(screen, "{}\n{}", prompt("status"), status::page(&status, false, &paper)).unwrap();
    writeln!(screen, "{}\n{}", prompt(&format!("why {machine}")), why::page(&reason, &paper)).unwrap();
    let drawn = anstyle_svg::Term::new().render_svg(&screen);
    let path = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../docs/status.svg");
    if std::env::var_os("REVEILLE_BLESS").is_some() {
        std::fs::write(&path, &drawn).unwrap();
    }
    assert!(std::fs::read_to_string(&path).unwrap_or_default() == drawn, "docs/status.svg is stale");
}
