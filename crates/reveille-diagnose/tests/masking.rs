//! What masking leaves of the lines that diagnosis needs: everything but their secrets.
//!
//! ```text
//!  catalogue's examples ─▶ masked ─▶ carry the same signs
//!  labelled cases       ─▶ masked ─▶ the same causes, in the same order
//!  all their lines      ─▶ masked ─▶ what was taken, word by word: each is judged by a person in one of two tables
//! ```
//!
//! How many secrets are found is measured in `reveille-core`; this is the other half of the measure.

#![allow(clippy::unwrap_used, reason = "a test ends where its material is missing")]

use std::collections::BTreeSet;
use std::path::{Path, PathBuf};

use reveille_core::diagnose::console::mask_secrets;
use reveille_diagnose::lines::comparable;
use reveille_diagnose::scan::Scanner;
use reveille_diagnose::sources::case::{self, Case};
use reveille_diagnose::{Catalogue, Reader, judge};

const MASK: &str = "[masked]";
/// So much of what is taken must be a secret.
const PRECISION_MIN: f64 = 0.9;
/// So many of the lines that hold no secret must be left whole.
const WHOLE_MIN: f64 = 0.999;

/// What is taken and is a secret: tokens of joins (MicroK8s has its own behind the address) and of IMDS, keys of clouds.
/// Their first characters.
const SECRETS: [&str; 21] = [
    "K10b0c91f7",
    "K10cc1f8a5",
    "mq3h1d.8rj",
    "b0f7b8.xxx",
    "EXAMPLEREV",
    "8k2lq7.ntk",
    "xk1v0q.2m8",
    "eyJhbGciOi",
    "AQAAAEWydq",
    "1b60cc.af9",
    "cdjcg4.k7n",
    "aafcfd.d1e",
    "aacivd.d2d",
    "bbcivd.d2d",
    "aabe01.ubb",
    "3g6qk5.xxx",
    "6e1b0d8f5a",
    "a0c7d1be5a",
    "aa11bb22cc",
    "d4e81cb77c",
    "f49cecee3a",
];
/// What is taken and is none, known and borne: how a payload begins that cloud-init could not read.
const HARMLESS: [&str; 1] = ["'b'cloud-config'"];

fn root() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("../..")
}

fn files(folder: &str, extension: &str) -> Vec<String> {
    let mut paths: Vec<_> =
        std::fs::read_dir(root().join(folder)).unwrap().map(|entry| entry.unwrap().path()).collect();
    paths.sort();
    paths.retain(|path| path.extension().is_some_and(|is| is == extension));
    paths.iter().map(|path| std::fs::read_to_string(path).unwrap()).collect()
}

fn cases() -> Vec<Case> {
    files("tests/cases", "yaml").iter().map(|text| case::read(text).unwrap()).collect()
}

#[test]
fn masked_examples_carry_their_signs() {
    let catalogue = Catalogue::built_in().unwrap();
    let scanner = Scanner::new(&catalogue).unwrap();
    let sees = |place: usize, text: &str| {
        let mut reader = Reader::new(&scanner);
        reader.text("example", text);
        reader.seen().sighted(place)
    };
    let mut lost = Vec::new();
    let mut count = 0;
    for (place, signal) in catalogue.signals.iter().enumerate() {
        for text in signal.yes.iter().chain(&signal.near) {
            count += 1;
            if sees(place, text) != sees(place, &mask_secrets(text)) {
                lost.push(format!("{}: {text}\n    {}", signal.id, mask_secrets(text)));
            }
        }
    }
    for step in &catalogue.steps {
        for text in step.yes.iter().chain(&step.near) {
            count += 1;
            if step.carries(&comparable(text)) != step.carries(&comparable(&mask_secrets(text))) {
                lost.push(format!("{}: {text}", step.id));
            }
        }
    }
    println!("{count} examples, {} read otherwise when they are masked", lost.len());
    assert!(lost.is_empty(), "{}", lost.join("\n"));
}

#[test]
fn masked_cases_have_the_same_causes() {
    let catalogue = Catalogue::built_in().unwrap();
    let scanner = Scanner::new(&catalogue).unwrap();
    let causes = |case: &Case, masks: bool| -> Vec<String> {
        let mut reader = Reader::new(&scanner);
        if let Some(platform) = &case.platform {
            reader.platform(platform);
        }
        for (number, evidence) in case.evidence.iter().enumerate() {
            let masked = mask_secrets(&evidence.text);
            let text = if masks { masked.as_ref() } else { evidence.text.as_str() };
            reader.text(&format!("{}#{number}", evidence.kind), text);
        }
        judge(&reader).findings.into_iter().map(|finding| finding.cause).collect()
    };
    let cases = cases();
    let mut changed = Vec::new();
    for (nth, case) in cases.iter().enumerate() {
        let (plain, masked) = (causes(case, false), causes(case, true));
        if plain != masked {
            changed.push(format!("case {nth}: {plain:?} became {masked:?}"));
        }
    }
    println!("{} cases, {} judged otherwise when they are masked", cases.len(), changed.len());
    assert!(changed.is_empty(), "{}", changed.join("\n"));
}

#[test]
fn masking_takes_secrets_and_leaves_log_lines_whole() {
    let catalogue = Catalogue::built_in().unwrap();
    let mut texts: Vec<String> =
        cases().into_iter().flat_map(|case| case.evidence).map(|evidence| evidence.text).collect();
    texts.extend(catalogue.signals.iter().flat_map(|signal| signal.yes.iter().chain(&signal.near)).cloned());
    texts.extend(catalogue.steps.iter().flat_map(|step| step.yes.iter().chain(&step.near)).cloned());
    texts.push(
        std::fs::read_to_string(root().join("crates/reveille-diagnose/src/scan/ordinary.txt")).unwrap(),
    );
    let (mut lines, mut touched) = (0, 0);
    let (mut secret, mut harmless, mut unknown) = (0, 0, BTreeSet::new());
    for text in &texts {
        let masked = mask_secrets(text);
        lines += text.lines().count();
        for (before, after) in text.lines().zip(masked.lines()) {
            let taken = taken(before, after);
            touched += usize::from(!taken.is_empty());
            for word in taken {
                let bare = word.trim_start_matches(['"', '\'']);
                let begins = |table: &[&str]| {
                    table.iter().any(|known| bare.starts_with(known) || word.starts_with(known))
                };
                match (begins(&SECRETS), begins(&HARMLESS)) {
                    (true, _) => secret += 1,
                    (false, true) => harmless += 1,
                    (false, false) => drop(unknown.insert(format!("{word}   in   {after}"))),
                }
            }
        }
    }
    let precision = f64::from(secret) / f64::from(secret + harmless);
    println!(
        "{lines} lines, {touched} with something taken: {secret} secrets, {harmless} harmless, precision {:.1} %",
        precision * 100.0
    );
    let whole = 1.0 - f64::from(harmless) / lines as f64;
    println!("lines without a secret that are left whole: {:.2} %", whole * 100.0);
    let unknown: Vec<String> = unknown.into_iter().collect();
    assert!(unknown.is_empty(), "judge these, and enter them in a table:\n{}", unknown.join("\n"));
    assert!(precision >= PRECISION_MIN && whole >= WHOLE_MIN, "{precision} {whole}");
}

/// What stood where the mask stands now.
fn taken<'t>(before: &'t str, after: &str) -> Vec<&'t str> {
    let mut parts = after.split(MASK);
    let first = parts.next().unwrap_or("");
    let Some(mut rest) = before.strip_prefix(first) else {
        // Colours were taken as well; what is beside them is looked at in the other tests.
        return Vec::new();
    };
    let mut taken = Vec::new();
    for part in parts {
        let end = if part.is_empty() { rest.len() } else { rest.find(part).unwrap_or(rest.len()) };
        taken.push(&rest[..end]);
        rest = rest.get(end + part.len()..).unwrap_or("");
    }
    taken
}
