//! How many secrets survive masking: forms that are known one by one, and a generated set of which one half is never looked at.
//!
//! ```text
//!  names × assignments ┐
//!  tokens × places     ├─▶ canaries ─▶ masked ─▶ does a part of the secret survive? ─▶ recall, of each half
//!  commands × lines    │      └─ a form belongs to one half by a hash of its name
//!  structures          ┘
//! ```
//!
//! The test prints misses of the looked-at half. Of the other half it prints only the figure: a person who improves the
//! masker must not see the texts that measure it. `reveille-diagnose`, which holds the catalogue, measures what masking
//! must leave whole.

#![allow(clippy::unwrap_used, reason = "a test ends where its material is missing")]

mod assignments;
mod attacked;
mod attacked_again;
mod attacked_files;
mod attacked_thrice;
mod canaries;
mod commands;
mod hostile;
mod named;
mod places;
mod properties;
mod structures;
mod tables;
mod tokens;
mod xml;
mod yaml;

use std::collections::BTreeMap;

use canaries::{Canary, Half};
use reveille_core::diagnose::console::mask_secrets;

/// At least this share of the secrets in the half that no person looks at must be masked.
const RECALL_MIN: f64 = 0.98;
const FORMS_MIN: usize = 300;

fn all() -> Vec<Canary> {
    let mut all = assignments::canaries();
    all.extend(tokens::canaries());
    all.extend(commands::canaries());
    all.extend(structures::canaries());
    all
}

#[test]
fn generated_canaries_are_masked() {
    let all = all();
    let forms: BTreeMap<&str, Half> =
        all.iter().map(|canary| (canary.form.as_str(), canary.half())).collect();
    assert!(forms.len() >= FORMS_MIN, "{} forms", forms.len());
    let mut unseen = 0.0;
    for half in [Half::LookedAt, Half::Unseen] {
        let of_it: Vec<&Canary> = all.iter().filter(|canary| canary.half() == half).collect();
        let misses: Vec<&&Canary> =
            of_it.iter().filter(|canary| canary.survives(&mask_secrets(&canary.text))).collect();
        let recall = 1.0 - misses.len() as f64 / of_it.len() as f64;
        let count = forms.values().filter(|of| **of == half).count();
        println!(
            "{half:?}: {count} forms, {} canaries, {} survive, recall {:.2} %",
            of_it.len(),
            misses.len(),
            recall * 100.0
        );
        if half == Half::LookedAt {
            for miss in &misses {
                println!(
                    "  {} / {}: {:?}\n      {:?}",
                    miss.form,
                    miss.place,
                    miss.text,
                    mask_secrets(&miss.text)
                );
            }
            assert!(recall >= RECALL_MIN, "recall of the half that is looked at: {recall}");
        }
        unseen = recall;
    }
    assert!(unseen >= RECALL_MIN, "recall of the unseen half: {unseen}");
}

#[test]
fn masking_twice_changes_nothing_and_keeps_every_line() {
    for canary in all() {
        let masked = mask_secrets(&canary.text);
        assert_eq!(mask_secrets(&masked), masked, "{}: {:?}", canary.form, canary.text);
        assert_eq!(masked.matches('\n').count(), canary.text.matches('\n').count(), "{:?}", canary.text);
    }
}
