//! What `hot` prints while it watches (`--watch`): lines for people, documents for programs.

use reveille_hot::verdict::Subject;
use reveille_hot::{Resource, Verdict};
use reveille_wire::report::{Document, HotReport, HotVerdict, Report};

use crate::cli::Output;
use crate::command::{Context, say};
use crate::driver::clock::wall;
use crate::hot::query::Listener;
use crate::render;
use crate::view::hot as view;

/// Prints events as they happen.
pub(super) struct Printer<'a> {
    pub(super) context: &'a Context,
    pub(super) is_watch: bool,
    pub(super) server: String,
}

impl Printer<'_> {
    fn is_for_people(&self) -> bool {
        self.context.common.output == Output::Table
    }

    fn clock(&self) -> String {
        self.context.paper.clock(wall(), wall())
    }

    /// For programs: prints a document for each verdict, at once.
    fn print_document(&self, verdict: HotVerdict) {
        let report = HotReport {
            at: wall(),
            server: Some(self.server.clone()),
            looked_s: 0,
            kinds: 0,
            verdicts: vec![verdict],
            pressure: None,
            notes: Vec::new(),
        };
        let document = Document::from(Report::HotReport(Box::new(report)));
        let text = match self.context.common.output {
            Output::Yaml => document.to_yaml().map(|text| format!("---\n{text}")),
            _ => document.to_json(),
        };
        match text {
            Ok(text) => say(&text),
            Err(error) => tracing::error!(%error, "a verdict cannot be written"),
        }
    }
}

impl Listener for Printer<'_> {
    fn hot(&mut self, verdict: &Verdict, is_new: bool) {
        if !self.is_watch {
            return;
        }
        let verdict = view::verdict(verdict);
        if self.is_for_people() {
            let lead = if is_new { "" } else { "more is known: " };
            say(&format!("{}  {lead}{}", self.clock(), render::hot::verdict(&verdict, &self.context.paper)));
        } else {
            self.print_document(verdict);
        }
    }

    fn cool(&mut self, subject: &Subject) {
        if self.is_watch && self.is_for_people() {
            say(&format!("{}  {subject} is hot no more\n", self.clock()));
        }
    }

    /// The report at the end names these kinds, with the missing permissions.
    fn untold(&mut self, _kind: &Resource, _why: &str) {}
}
