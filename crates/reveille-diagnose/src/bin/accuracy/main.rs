//! How often the diagnosis is right, over labelled cases: `cargo xtask accuracy`.
//!
//! ```text
//!  tests/cases/*.yaml ─▶ labels (what is right) ┐
//!                    └─▶ evidence ─▶ diagnose ──┴─▶ score: first, first three, stage, false alarms ─▶ floor.txt
//!                         └─ variants: cut, shifted, wrapped, mixed with harmless lines ─▶ the same score
//! ```
//!
//! The labels are read here and nowhere else. The floor is what was reached before: a score below it fails, and a better one
//! is written down by hand, so that it only rises.

mod labels;
mod score;
mod variants;

use std::path::Path;
use std::process::ExitCode;

use reveille_diagnose::scan::Scanner;
use reveille_diagnose::{Catalogue, Diagnosis, Reader, judge};

use labels::Labelled;
use score::Score;

const SEEDS: u64 = 5;

fn main() -> ExitCode {
    match run() {
        Ok(true) => ExitCode::SUCCESS,
        Ok(false) => ExitCode::FAILURE,
        Err(error) => {
            eprintln!("accuracy: {error}");
            ExitCode::FAILURE
        }
    }
}

fn run() -> Result<bool, Box<dyn std::error::Error>> {
    let root = Path::new(env!("CARGO_MANIFEST_DIR")).join("../..");
    let arguments: Vec<String> = std::env::args().skip(1).collect();
    let folder = arguments.first().map_or_else(|| root.join("tests/cases"), Into::into);
    let cases = labels::read(&folder)?;
    let catalogue = Catalogue::built_in()
        .map_err(|complaints| complaints.iter().map(ToString::to_string).collect::<Vec<_>>().join("\n"))?;
    let scanner = Scanner::new(&catalogue)?;
    let plain = Score::of(&cases, |case| diagnose(&scanner, case));
    println!("{} cases of {}", cases.len(), folder.display());
    print!("{}", plain.page("as they are"));
    print!("{}", plain.misses());
    let mut varied = Score::default();
    for seed in 1..=SEEDS {
        for kind in variants::KINDS {
            let changed: Vec<Labelled> = cases.iter().map(|case| variants::vary(case, kind, seed)).collect();
            let score = Score::of(&changed, |case| diagnose(&scanner, case));
            if seed == 1 {
                print!("{}", score.page(kind.name()));
            }
            varied.add(score);
        }
    }
    print!("{}", varied.page(&format!("all variants, {SEEDS} seeds")));
    if arguments.is_empty() {
        let floor = std::fs::read_to_string(folder.join("floor.txt"))?;
        return Ok(score::holds(&floor, &plain, &varied));
    }
    Ok(true)
}

fn diagnose(scanner: &Scanner<'_>, case: &Labelled) -> Diagnosis {
    let mut reader = Reader::new(scanner);
    if let Some(platform) = &case.case.platform {
        reader.platform(platform);
    }
    for (number, evidence) in case.case.evidence.iter().enumerate() {
        reader.text(&format!("{}#{number}", evidence.kind), &evidence.text);
    }
    judge(&reader)
}
