//! Labelled cases: the evidence, and beside it what is right.

use std::path::Path;

use reveille_diagnose::sources::case::{self, Case};
use serde::Deserialize;

/// What is right.
#[derive(Clone, Debug, Deserialize)]
pub(crate) struct Label {
    pub(crate) id: String,
    pub(crate) stage: String,
    pub(crate) root_cause: String,
    #[serde(default)]
    pub(crate) also_acceptable: Vec<String>,
}

/// A case with its label.
#[derive(Clone, Debug)]
pub(crate) struct Labelled {
    pub(crate) label: Label,
    pub(crate) case: Case,
}

/// All cases of a folder, in order of their names.
pub(crate) fn read(folder: &Path) -> Result<Vec<Labelled>, Box<dyn std::error::Error>> {
    let mut paths: Vec<_> = std::fs::read_dir(folder)?
        .filter_map(|entry| entry.ok().map(|entry| entry.path()))
        .filter(|path| path.extension().is_some_and(|extension| extension == "yaml"))
        .collect();
    paths.sort();
    let mut cases = Vec::new();
    for path in paths {
        let text = std::fs::read_to_string(&path)?;
        let label: Label =
            serde_saphyr::from_str(&text).map_err(|error| format!("{}: {error}", path.display()))?;
        let case = case::read(&text).ok_or_else(|| format!("{}: no evidence", path.display()))?;
        cases.push(Labelled { label, case });
    }
    Ok(cases)
}
