//! Any bytes as a site's catalogue and as phrases: refused with a place and a reason, or taken and fit to be looked for.
//!
//! ```text
//!  text ─▶ files, parted by a line "%%" ─▶ Catalogue ─┬▶ complaints: each names a file and says what to write
//!                                                     └▶ Scanner ─▶ its own examples are read
//!  first line ─▶ Phrase ─▶ the other lines: one that it finds holds one of its literals
//! ```
//!
//! Our own files are left out: they are tried by the catalogue's tests, and reading them takes longer than a thousand tries.

use reveille_diagnose::catalogue::phrase::Phrase;
use reveille_diagnose::lines::comparable;
use reveille_diagnose::scan::Scanner;
use reveille_diagnose::{Catalogue, Reader};

use crate::shown;

/// One try.
pub(crate) fn run(bytes: &[u8]) {
    let text = String::from_utf8_lossy(bytes);
    phrase(&text);
    let texts: Vec<&str> = text.split("%%\n").collect();
    let names: Vec<String> = (1..=texts.len()).map(|number| format!("site-{number}.yaml")).collect();
    let files: Vec<(&str, &str)> = names.iter().map(String::as_str).zip(texts.iter().copied()).collect();
    match Catalogue::of_files(&files) {
        Ok(catalogue) => looked_for(&catalogue),
        Err(complaints) => {
            assert!(!complaints.is_empty(), "refused without a reason");
            for complaint in complaints {
                let known = complaint.file == "catalogue" || names.contains(&complaint.file);
                assert!(known && !complaint.says.is_empty(), "{complaint}");
                let of = names.iter().position(|name| *name == complaint.file).map_or("", |at| texts[at]);
                let lines = of.split(['\n', '\r', '\u{85}', '\u{2028}', '\u{2029}']).count() as u64;
                assert!(complaint.line <= lines + 1, "{complaint}: there are {lines} lines");
            }
        }
    }
}

fn looked_for(catalogue: &Catalogue) {
    let scanner = Scanner::new(catalogue).unwrap_or_else(|error| panic!("{error}"));
    let mut reader = Reader::new(&scanner);
    for signal in &catalogue.signals {
        for text in signal.yes.iter().chain(&signal.near) {
            reader.text(&signal.id, text);
        }
    }
    shown::quotes(&reader);
}

fn phrase(text: &str) {
    let (written, lines) = text.split_once('\n').unwrap_or((text, ""));
    for read in [Phrase::read, Phrase::read_whole, Phrase::read_exception] {
        match read(written) {
            Ok(phrase) => {
                let own = written.replace(['…', '{', '}', '|', '<', '>'], " ");
                for line in lines.lines().chain([own.as_str()]) {
                    let line = comparable(line);
                    let holds = phrase.literals.iter().any(|literal| line.contains(literal));
                    let found = phrase.find(&line);
                    assert!(
                        found.is_none() || holds || phrase.literals.is_empty(),
                        "\"{written}\" finds \"{line}\", which holds none of {:?}",
                        phrase.literals
                    );
                }
            }
            Err(says) => assert!(!says.is_empty(), "refused without a reason: {written}"),
        }
    }
}
