//! Finds the machine that a word means: by name, node name, id, or the beginning of an id; otherwise suggests similar names.

use std::collections::BTreeSet;

use reveille_core::model::incident::MachineKey;
use reveille_core::plan::context::PlanContext;

use super::machine;

/// The meaning of a word of the command line.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) enum Found {
    /// Exactly this one.
    One(MachineKey),
    /// Several, by name and key.
    Several(Vec<String>),
    /// No machine; these names are similar.
    NoMachine(Vec<String>),
}

/// A shorter word is not taken for the beginning of an id.
const PREFIX_MIN: usize = 4;
/// The most names that are suggested.
const ALIKE_MAX: usize = 3;

/// Looks for a machine.
pub(crate) fn machine(context: &PlanContext<'_>, word: &str) -> Found {
    let machines = machine::all(context);
    let id_of = |key: &MachineKey| match key {
        MachineKey::Instance(_, id) => id.to_string(),
        MachineKey::Node(name) => name.to_string(),
    };
    let exact = machines.iter().filter(|machine| {
        let node = machine.node();
        &*machine.name() == word
            || id_of(&machine.key) == word
            || reveille_wire::report::key_text(&machine.key) == word
            || node.is_some_and(|node| node.as_str() == word)
            || machine.seen.is_some_and(|(_, seen)| seen.instance.hostname.as_deref() == Some(word))
    });
    let mut keys: Vec<&MachineKey> = exact.map(|machine| &machine.key).collect();
    if keys.is_empty() && word.len() >= PREFIX_MIN {
        let begins = |machine: &&machine::Machine<'_>| {
            id_of(&machine.key).starts_with(word) || machine.name().starts_with(word)
        };
        keys = machines.iter().filter(begins).map(|machine| &machine.key).collect();
    }
    match keys.as_slice() {
        [one] => Found::One((*one).clone()),
        [] => Found::NoMachine(alike(word, machines.iter().map(|machine| machine.name().to_string()))),
        several => {
            let named = |key: &&MachineKey| {
                let machine = machine::one(context, (*key).clone());
                format!("{} ({})", machine.name(), reveille_wire::report::key_text(key))
            };
            Found::Several(several.iter().map(named).collect())
        }
    }
}

/// The names that are most similar to a word.
pub(crate) fn alike(word: &str, names: impl Iterator<Item = String>) -> Vec<String> {
    let names: BTreeSet<String> = names.collect();
    let mut scored: Vec<(f64, String)> = names
        .into_iter()
        .map(|name| (strsim::jaro_winkler(word, &name), name))
        .filter(|(score, _)| *score > 0.75)
        .collect();
    scored.sort_by(|a, b| b.0.total_cmp(&a.0).then_with(|| a.1.cmp(&b.1)));
    scored.into_iter().take(ALIKE_MAX).map(|(_, name)| name).collect()
}
