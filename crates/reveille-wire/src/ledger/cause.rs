//! A cause as JSON: its code, its label, and of one that a catalogue describes everything that decisions and people need.
//!
//! Causes of the engine itself are their code alone. A catalogue may be another one by the time a line is read, or none may be
//! at hand, so what it said is kept with what was concluded. A line of a version that kept the names alone is taken as a
//! cause of which no more is known than its names: it holds nothing back that is not read anew.

use std::sync::Arc;

use reveille_core::model::cause::{Cause, Entry};
use reveille_core::model::id::{CauseCode, CauseLabel};
use reveille_core::model::stage::Stage;
use serde::{Deserialize, Serialize};

use super::FromWireError;
use super::mirror::Mirror as _;

/// What a catalogue says of a cause.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase", deny_unknown_fields)]
pub(crate) struct WireKnown {
    stage: Arc<str>,
    says: Arc<str>,
    remedy: Arc<str>,
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    commands: Vec<Arc<str>>,
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    collect: Vec<Arc<str>>,
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    first_boot: bool,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    no_reboot: Option<Arc<str>>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    no_replace: Option<Arc<str>>,
}

/// What stands beside code and label.
pub(crate) fn known(cause: &Cause) -> Option<WireKnown> {
    cause.entry().map(|entry| WireKnown {
        stage: entry.stage.out(),
        says: entry.says.clone(),
        remedy: entry.remedy.clone(),
        commands: entry.commands.clone(),
        collect: entry.collect.clone(),
        first_boot: entry.first_boot,
        no_reboot: entry.no_reboot.clone(),
        no_replace: entry.no_replace.clone(),
    })
}

/// The cause of these; `stopped_at` is where its finding says that the machine stopped.
pub(crate) fn back(
    code: Arc<str>,
    label: Arc<str>,
    known: Option<WireKnown>,
    stopped_at: Stage,
) -> Result<Cause, FromWireError> {
    let Some(known) = known else {
        let named = || Entry::named(CauseCode::new(code.clone()), CauseLabel::new(label.clone()), stopped_at);
        let own = Cause::from_code(&code);
        let kept = (!label.is_empty()).then(|| Cause::Catalogued(Arc::new(named())));
        return own.or(kept).ok_or_else(|| FromWireError::Word { list: "cause", word: code.to_string() });
    };
    Ok(Cause::Catalogued(Arc::new(Entry {
        code: CauseCode::new(code),
        label: CauseLabel::new(label),
        stage: Stage::back(known.stage)?,
        says: known.says,
        remedy: known.remedy,
        commands: known.commands,
        collect: known.collect,
        first_boot: known.first_boot,
        no_reboot: known.no_reboot,
        no_replace: known.no_replace,
    })))
}
