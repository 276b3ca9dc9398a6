//! From files as written to a catalogue in which every name leads somewhere.
//!
//! Two passes: the first gives every cause and every signal its place, the second turns names into places. All errors are
//! gathered, so that an author of ten entries learns of ten mistakes at once.

use std::collections::BTreeMap;

use reveille_core::model::stage::Stage;
use serde_saphyr::Spanned;

use super::document::{CauseDocument, Document, SignDocument, StepDocument, read};
use super::phrase::Phrase;
use super::{Catalogue, Cause, Complaint, Signal, Step, Tells};
use crate::finding::Confidence;
use crate::lines::Level;
use crate::tables::Fact;

/// Reads all files; later ones are laid over earlier ones.
pub(crate) fn resolve(files: &[(&str, &str)]) -> Result<Catalogue, Vec<Complaint>> {
    let mut documents = Vec::new();
    let mut resolver = Resolver::default();
    for (name, text) in files {
        match read(name, text) {
            Ok(document) => documents.push((*name, document)),
            Err(complaint) => resolver.complaints.push(complaint),
        }
    }
    for (file, document) in &documents {
        resolver.name_all(file, document);
    }
    for (file, document) in &documents {
        resolver.fill(file, document);
    }
    if resolver.complaints.is_empty() { Ok(resolver.catalogue) } else { Err(resolver.complaints) }
}

#[derive(Default)]
struct Resolver {
    catalogue: Catalogue,
    causes: BTreeMap<String, usize>,
    codes: BTreeMap<String, String>,
    signals: BTreeMap<String, usize>,
    complaints: Vec<Complaint>,
}

impl Resolver {
    fn complain(&mut self, file: &str, line: u64, field: &str, says: impl Into<String>) {
        self.complaints.push(Complaint {
            file: file.to_owned(),
            line,
            field: field.to_owned(),
            says: says.into(),
        });
    }

    /// First pass: who is there.
    fn name_all(&mut self, file: &str, document: &Document) {
        let signs = match document {
            Document::Marks(marks) => &marks.marks,
            Document::Steps(_) => return,
            Document::Cause(cause) => {
                self.name_cause(file, cause);
                &cause.signs
            }
        };
        for sign in signs {
            let (id, line) = (&sign.value.id.value, sign.value.id.referenced.line());
            if self.signals.contains_key(id) {
                self.complain(file, line, id, "another sign or mark has this id; ids are unique");
                continue;
            }
            let place = self.signals.len();
            self.signals.insert(id.clone(), place);
        }
    }

    fn name_cause(&mut self, file: &str, cause: &CauseDocument) {
        let (label, line) = (&cause.cause.value, cause.cause.referenced.line());
        if !self.causes.contains_key(label) {
            let place = self.causes.len();
            self.causes.insert(label.clone(), place);
        }
        let code = &cause.code.value;
        if !code.starts_with("RV") || code.len() < 5 {
            self.complain(file, line, "code", "codes are RV and at least three digits");
        }
        match self.codes.get(code) {
            Some(other) if other != label => {
                let says = format!("{code} is the code of {other}; give {label} one of its own");
                self.complain(file, line, "code", says);
            }
            _ => {
                self.codes.insert(code.clone(), label.clone());
            }
        }
    }

    /// Second pass: what they are.
    fn fill(&mut self, file: &str, document: &Document) {
        match document {
            Document::Marks(marks) => {
                for sign in &marks.marks {
                    self.fill_sign(file, None, &sign.value);
                }
            }
            Document::Steps(steps) => {
                for step in &steps.boot {
                    self.fill_step(file, &step.value);
                }
            }
            Document::Cause(cause) => {
                let place = self.fill_cause(file, cause);
                for sign in &cause.signs {
                    self.fill_sign(file, place, &sign.value);
                }
            }
        }
    }

    fn fill_cause(&mut self, file: &str, cause: &CauseDocument) -> Option<usize> {
        let place = *self.causes.get(&cause.cause.value)?;
        if place < self.catalogue.causes.len() {
            // A site's file adds signs to a cause that is there; its words stay.
            return Some(place);
        }
        let stage = self.stage(file, &cause.stage)?;
        let explains = self.places(file, &cause.explains, true);
        let mut stage_when = Vec::new();
        for when in &cause.stage_when {
            if let Some(stage) = self.stage(file, &when.stage) {
                stage_when.push((stage, self.places(file, &when.with, false)));
            }
        }
        self.catalogue.causes.push(Cause {
            label: cause.cause.value.clone(),
            code: cause.code.value.clone(),
            stage,
            title: one_line(&cause.title),
            because: one_line(&cause.because),
            remedy: one_line(&cause.remedy),
            commands: cause.commands.clone(),
            collect: cause.collect.clone(),
            explains,
            first_boot: cause.first_boot,
            no_cause: cause.no_cause,
            no_reboot: cause.no_use.reboot.as_deref().map(one_line),
            no_replace: cause.no_use.replace.as_deref().map(one_line),
            stage_when,
            file: file.to_owned(),
        });
        Some(place)
    }

    fn fill_sign(&mut self, file: &str, cause: Option<usize>, sign: &SignDocument) {
        let (id, line) = (sign.id.value.clone(), sign.id.referenced.line());
        if self.signals.get(&id) != Some(&self.catalogue.signals.len()) {
            return;
        }
        if sign.yes.is_empty() || sign.near.is_empty() {
            self.complain(file, line, &id, "give one example under yes and one near miss under near");
        }
        let fact = sign.fact.as_ref().and_then(|name| {
            let fact = Fact::from_name(&name.value);
            if fact.is_none() {
                let known: Vec<&str> = Fact::ALL.iter().map(|fact| fact.name()).collect();
                let says = format!("no fact is called {}; there are {}", name.value, known.join(", "));
                self.complain(file, name.referenced.line(), "fact", says);
            }
            fact
        });
        let read = if cause.is_some() { Phrase::read } else { Phrase::read_whole };
        let says = self.phrases(file, line, &id, &sign.says.list(), read);
        if says.is_empty() && fact.is_none() {
            self.complain(file, line, &id, "say what its line says (says) or which fact it is (fact)");
        }
        let signal = Signal {
            says,
            fact,
            unless: self.phrases(file, line, &id, &sign.unless.list(), Phrase::read_exception),
            proof: self.proof(file, sign.proof.as_ref()),
            weak: sign.weak,
            level: self.level(file, sign.level.as_ref()),
            at_least: sign.at_least.unwrap_or(1),
            often: sign.often.unwrap_or(1),
            lasting_s: sign.lasting_s.unwrap_or(0),
            soon_after: self.places(file, &sign.soon_after, false),
            soon_s: sign.soon_s.unwrap_or(60),
            with: self.places(file, &sign.with, false),
            without: self.places(file, &sign.without, false),
            on: sign.on.clone(),
            not_on: sign.not_on.clone(),
            taken_back_by: self.places(file, &sign.taken_back_by, false),
            stage: sign.stage.as_ref().and_then(|stage| self.stage(file, stage)),
            whole: sign.whole,
            harmless: sign.harmless || sign.excuses,
            excuses: sign.excuses,
            new_boot: sign.new_boot,
            well: sign.well,
            source: sign.source.clone().unwrap_or_default(),
            yes: sign.yes.clone(),
            near: sign.near.clone(),
            place: (file.to_owned(), line),
            cause,
            id,
        };
        self.catalogue.signals.push(signal);
    }

    fn fill_step(&mut self, file: &str, step: &StepDocument) {
        let (id, line) = (step.id.value.clone(), step.id.referenced.line());
        if self.catalogue.steps.iter().any(|other| other.id == id) {
            self.complain(file, line, &id, "another step has this id; ids are unique");
            return;
        }
        if step.yes.is_empty() || step.near.is_empty() {
            self.complain(file, line, &id, "give one example under yes and one near miss under near");
        }
        let mut tells = Vec::new();
        for word in step.tells.list() {
            match Tells::from_name(&word) {
                Some(told) => tells.push(told),
                None => {
                    let known: Vec<&str> = Tells::ALL.iter().map(|told| told.name()).collect();
                    let says = format!("a step cannot tell {word}; it can tell {}", known.join(", "));
                    self.complain(file, line, "tells", says);
                }
            }
        }
        let says = self.phrases(file, line, &id, &step.says.list(), Phrase::read_whole);
        let unless = self.phrases(file, line, &id, &step.unless.list(), Phrase::read_exception);
        let step = Step {
            id,
            tells,
            says,
            unless,
            yes: step.yes.clone(),
            near: step.near.clone(),
            place: (file.to_owned(), line),
        };
        self.catalogue.steps.push(step);
    }

    fn phrases(
        &mut self,
        file: &str,
        line: u64,
        id: &str,
        written: &[String],
        read: fn(&str) -> Result<Phrase, String>,
    ) -> Vec<Phrase> {
        let mut phrases = Vec::new();
        for text in written {
            match read(text) {
                Ok(phrase) => phrases.push(phrase),
                Err(says) => self.complain(file, line, id, format!("\"{text}\": {says}")),
            }
        }
        phrases
    }

    fn places(&mut self, file: &str, names: &[Spanned<String>], causes: bool) -> Vec<usize> {
        let mut places = Vec::new();
        for name in names {
            let known = if causes { &self.causes } else { &self.signals };
            match known.get(&name.value) {
                Some(place) => places.push(*place),
                None => {
                    let what = if causes { "cause" } else { "sign or mark" };
                    let says = format!("no {what} is called {}", name.value);
                    self.complain(file, name.referenced.line(), "reference", says);
                }
            }
        }
        places
    }

    fn stage(&mut self, file: &str, written: &Spanned<String>) -> Option<Stage> {
        let stage = Stage::from_name(&written.value);
        if stage.is_none() {
            let says = format!("no stage is called {}; it is one of the fourteen", written.value);
            self.complain(file, written.referenced.line(), "stage", says);
        }
        stage
    }

    fn proof(&mut self, file: &str, written: Option<&Spanned<String>>) -> Confidence {
        match written.map(|word| word.value.as_str()) {
            Some("sure") => Confidence::Sure,
            Some("likely") | None => Confidence::Likely,
            Some("possible") => Confidence::Possible,
            Some(other) => {
                let says = format!("\"{other}\" is none of sure, likely, possible");
                self.complain(file, written.map_or(0, |word| word.referenced.line()), "proof", says);
                Confidence::Possible
            }
        }
    }

    fn level(&mut self, file: &str, written: Option<&Spanned<String>>) -> Level {
        match written.map(|word| word.value.as_str()) {
            None => Level::Debug,
            Some("warning") => Level::Warning,
            Some("error") => Level::Error,
            Some(other) => {
                let says = format!("\"{other}\" is neither warning nor error");
                self.complain(file, written.map_or(0, |word| word.referenced.line()), "level", says);
                Level::Debug
            }
        }
    }
}

fn one_line(text: &str) -> String {
    text.split_whitespace().collect::<Vec<_>>().join(" ")
}

#[cfg(test)]
mod tests {
    use super::*;

    const ENTRY: &str = "\
cause: site-thing
code: RV900
stage: cni
title: t
because: b
remedy: r
signs:
  - id: site-sign
    says: 'the thing broke'
    yes: ['E: the thing broke']
    near: ['I: the thing works']
";

    #[test]
    fn a_site_lays_its_own_entries_over_ours() {
        let files = [("site.yaml".to_owned(), ENTRY.to_owned())];
        let catalogue = Catalogue::with_files(&files).unwrap();
        assert_eq!(catalogue.cause("RV900").unwrap().label, "site-thing");
    }

    #[test]
    fn what_is_wrong_is_said_with_its_place() {
        for (from, to, line, says) in [
            ("stage: cni", "stage: cnj", 3, "no stage is called cnj"),
            ("code: RV900", "code: RV117", 1, "is the code of bootstrap-token-invalid"),
            ("the thing broke'\n", "it'\n", 8, "required"),
            ("    near: ['I: the thing works']\n", "    near: []\n", 8, "near miss"),
            (
                "    near:",
                "    weak: true\n    with: [absent-sign]\n    near:",
                12,
                "no sign or mark is called absent-sign",
            ),
            ("    says:", "    proof: certain\n    says:", 9, "none of sure, likely, possible"),
            ("    says:", "    sayz: x\n    says:", 9, "sayz"),
            ("['E: the thing broke']", "['E: nothing']", 8, "does not carry"),
            ("['I: the thing works']", "['I: the thing broke']", 8, "near miss"),
            ("  - id: site-sign", "  - id: joined", 8, "another sign or mark has this id"),
        ] {
            let text = ENTRY.replacen(from, to, 1);
            assert_ne!(text, ENTRY, "{from}");
            let complaints = Catalogue::with_files(&[("site.yaml".to_owned(), text)]).unwrap_err();
            let first = &complaints[0];
            assert_eq!((first.file.as_str(), first.line), ("site.yaml", line), "{first}");
            assert!(first.says.contains(says), "{first}");
        }
    }
}
