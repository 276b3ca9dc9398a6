//! The catalogue that the simulated driver judges consoles by, and by which the truth is named.
//!
//! It is the one that the program comes with, and [`Judge`] is what the production driver calls: consoles of simulated guests
//! are texts, and whatever the engine hears of them was read out of these texts.

use std::sync::Arc;

use reveille_core::model::cause::Cause;
use reveille_diagnose::Judge;

/// Who judges.
pub fn judge() -> Arc<Judge> {
    // A world whose consoles nobody can read would prove nothing.
    Judge::built_in().unwrap_or_else(|error| panic!("{error}"))
}

/// The cause of that code or label, first of those that the engine tells by itself.
pub fn cause(code_or_label: &str) -> Option<Cause> {
    let own = Cause::OWN.iter().find(|own| own.label() == code_or_label || own.code() == code_or_label);
    own.cloned().or_else(|| judge().cause(code_or_label))
}

/// Every label that a cause can be called by.
pub(crate) fn labels() -> Vec<String> {
    let judge = judge();
    let catalogued = judge.catalogue().causes.iter().map(|cause| cause.label.clone());
    Cause::OWN.iter().map(|own| own.label().to_owned()).chain(catalogued).collect()
}
