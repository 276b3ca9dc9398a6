//! The diagnosis catalogue by which the simulated driver judges consoles, and which names the true causes.
//!
//! It is the catalogue that comes with the program, and the production driver calls the same [`Judge`]. The consoles of simulated
//! guests are texts, and the engine hears only what the judge read out of them.

use std::sync::Arc;

use reveille_core::model::cause::Cause;
use reveille_diagnose::Judge;

/// Who judges.
pub fn judge() -> Arc<Judge> {
    // A world whose consoles cannot be judged would prove nothing.
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
