//! Tries every example of the catalogue: what a sign must see, and what it must not.

use crate::catalogue::{BUILT_IN, Catalogue, Complaint, Signal, resolve};
use crate::lines::comparable;
use crate::scan::{Reader, Scanner};

impl Catalogue {
    /// What comes with the program, with a site's own files (name and text) laid over it. Examples of the site's files are tried.
    pub fn with_files(files: &[(String, String)]) -> Result<Self, Vec<Complaint>> {
        let own = files.iter().map(|(name, text)| (name.as_str(), text.as_str()));
        let all: Vec<(&str, &str)> = BUILT_IN.iter().copied().chain(own).collect();
        let catalogue = resolve(&all)?;
        let names: Vec<&str> = files.iter().map(|(name, _)| name.as_str()).collect();
        let failed = catalogue.examples(|file| names.contains(&file));
        if failed.is_empty() { Ok(catalogue) } else { Err(failed) }
    }

    /// These files alone, with their examples tried. Public for tests of what is read: ours are a hundred files, which take
    /// longer to read than a thousand tries of one.
    #[doc(hidden)]
    pub fn of_files(files: &[(&str, &str)]) -> Result<Self, Vec<Complaint>> {
        let catalogue = resolve(files)?;
        let failed = catalogue.examples(|_| true);
        if failed.is_empty() { Ok(catalogue) } else { Err(failed) }
    }

    /// Complaints about the examples of those files that `wanted` takes; empty when every sign does what it says.
    pub fn examples(&self, wanted: impl Fn(&str) -> bool) -> Vec<Complaint> {
        let mut complaints = Vec::new();
        let scanner = match Scanner::new(self) {
            Ok(scanner) => scanner,
            Err(error) => {
                let says = error.to_string();
                return vec![Complaint {
                    file: "catalogue".to_owned(),
                    line: 0,
                    field: "says".to_owned(),
                    says,
                }];
            }
        };
        for (place, signal) in self.signals.iter().enumerate() {
            if !wanted(&signal.place.0) {
                continue;
            }
            for text in &signal.yes {
                if !sees(&scanner, place, text) {
                    complaints.push(complaint(signal, format!("the example does not carry it: {text}")));
                }
            }
            for text in &signal.near {
                if sees(&scanner, place, text) {
                    complaints.push(complaint(signal, format!("the near miss carries it: {text}")));
                }
            }
        }
        for step in self.steps.iter().filter(|step| wanted(&step.place.0)) {
            let carries = |text: &&String| step.carries(&comparable(text));
            let place = |says: String| {
                let (file, line) = step.place.clone();
                Complaint { file, line, field: step.id.clone(), says }
            };
            let not = step.yes.iter().filter(|text| !carries(text));
            complaints.extend(not.map(|text| place(format!("the example does not carry it: {text}"))));
            let near = step.near.iter().filter(carries);
            complaints.extend(near.map(|text| place(format!("the near miss carries it: {text}"))));
        }
        complaints
    }
}

fn sees(scanner: &Scanner<'_>, place: usize, text: &str) -> bool {
    let mut reader = Reader::new(scanner);
    reader.text("example", text);
    reader.seen().sighted(place)
}

fn complaint(signal: &Signal, says: String) -> Complaint {
    let (file, line) = signal.place.clone();
    Complaint { file, line, field: signal.id.clone(), says }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_example_of_ours_is_seen_and_every_near_miss_is_not() {
        let catalogue = Catalogue::built_in().unwrap_or_else(|complaints| {
            panic!("{}", complaints.iter().map(ToString::to_string).collect::<Vec<_>>().join("\n"))
        });
        let failed = catalogue.examples(|_| true);
        assert!(
            failed.is_empty(),
            "{}",
            failed.iter().map(ToString::to_string).collect::<Vec<_>>().join("\n")
        );
    }

    #[test]
    fn every_cause_can_be_seen() {
        let catalogue = Catalogue::built_in().unwrap();
        for cause in &catalogue.causes {
            assert!(catalogue.signs(cause).next().is_some(), "{} has no sign", cause.label);
        }
    }
}
