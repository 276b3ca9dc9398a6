//! Tests the log of `run` through the real formatter: text of other systems stays on its line, and a freeze is logged.

use std::io::Write;

use super::*;
use crate::cli::logging;
use crate::driver::freeze::Freezes;
use crate::driver::journal;
use reveille_core::model::incident::MachineKey;
use reveille_core::model::time::Span;
use tracing_subscriber::fmt::MakeWriter;

/// The whole log.
#[derive(Clone, Default)]
pub(super) struct Pages(Arc<Mutex<Vec<u8>>>);

impl Write for Pages {
    fn write(&mut self, bytes: &[u8]) -> std::io::Result<usize> {
        self.0.lock().unwrap().extend_from_slice(bytes);
        Ok(bytes.len())
    }

    fn flush(&mut self) -> std::io::Result<()> {
        Ok(())
    }
}

impl<'writer> MakeWriter<'writer> for Pages {
    type Writer = Self;

    fn make_writer(&'writer self) -> Self {
        self.clone()
    }
}

impl Pages {
    pub(super) fn text(&self) -> String {
        String::from_utf8(self.0.lock().unwrap().clone()).unwrap()
    }
}

/// What an operator's tool, or an attacker with the right to annotate Nodes, may write.
const FORGED: &str = "now\n2026-11-23T10:00:00Z  INFO roll: worked\u{1b}[2J\u{202e}\u{2028}end";

fn tell() {
    let machine = MachineKey::Instance("os".into(), "i1".into());
    let (at, value) = (Time::from_ms(1_000), Arc::from(FORGED));
    journal::tell(&fresh(1), &Record::Asked { at, machine, value, incident: None });
    tracing::warn!(node = %FORGED, "a field");
}

#[test]
fn annotation_with_a_newline_stays_on_its_line() {
    for ansi in [false, true] {
        let pages = Pages::default();
        tracing::subscriber::with_default(logging::text(pages.clone(), ansi), tell);
        let text = pages.text();
        assert_eq!(text.lines().count(), 2, "{text}");
        assert!(text.contains("now\\n2026") && text.contains("\\u{1b}[2J\\u{202e}\\u{2028}end"), "{text}");
        assert!(ansi || !text.chars().any(|c| c.is_control() && c != '\n'), "{text:?}");
        assert!(!text.contains(['\u{202e}', '\u{2028}']), "{text:?}");
    }
}

#[test]
fn annotation_in_a_json_log_is_escaped_and_unchanged() {
    let pages = Pages::default();
    tracing::subscriber::with_default(logging::json(pages.clone()), tell);
    let text = pages.text();
    assert!(!text.contains(['\u{202e}', '\u{2028}', '\u{1b}']), "{text:?}");
    let lines: Vec<serde_json::Value> =
        text.lines().map(|line| serde_json::from_str(line).unwrap()).collect();
    assert_eq!(lines.len(), 2, "{text}");
    assert!(lines[0]["message"].as_str().unwrap().ends_with(FORGED));
}

#[test]
fn freeze_is_logged_once_when_it_begins_and_once_when_it_ends() {
    let mut field = fixture::Field::of(4, true);
    let pages = Pages::default();
    let mut freezes = Freezes::default();
    field.look();
    tracing::subscriber::with_default(logging::text(pages.clone(), false), || {
        field.pass(Span::from_min(2));
        freezes.review(&field.state.context(), field.now);
        assert_eq!(pages.text(), "", "nothing is frozen");
        let lines = |field: &mut fixture::Field, freezes: &mut Freezes, passes: Span| {
            field.pass(passes);
            freezes.review(&field.state.context(), field.now);
            freezes.review(&field.state.context(), field.now);
            pages.text().lines().filter(|line| line.contains("pool workers")).count()
        };
        for (ready, passes, told) in [
            (Ready::False, Span::from_s(10), 1),
            // The nodes are Ready again, and the freeze is in its settling time.
            (Ready::True, Span::from_s(50), 1),
            (Ready::True, Span::from_min(2), 2),
        ] {
            field.nodes = (1..=4).map(|n| Arc::new(fixture::node(&n.to_string(), ready))).collect();
            assert_eq!(lines(&mut field, &mut freezes, passes), told, "{}", pages.text());
        }
    });
    let text = pages.text();
    let frozen: Vec<&str> = text.lines().filter(|line| line.contains("pool workers")).collect();
    assert!(frozen[0].contains("repairs of pool workers are frozen: 4 of 4 machines have a fault"), "{text}");
    assert!(frozen[1].contains("are not frozen any more: 0 of 4 machines have a fault"), "{text}");
}

/// Most nodes of a small fleet turn NotReady, and none of them is late enough to be a problem yet.
#[test]
fn freeze_because_most_do_not_answer_is_logged() {
    let mut field = fixture::Field::of(4, true);
    let pages = Pages::default();
    let mut freezes = Freezes::default();
    field.pass(Span::from_min(2));
    field.nodes.clear();
    field.look();
    tracing::subscriber::with_default(logging::text(pages.clone(), false), || {
        freezes.review(&field.state.context(), field.now);
    });
    let text = pages.text();
    assert!(text.contains("repairs of the roster are frozen: 4 of 4 machines have no Ready node"), "{text}");
}
