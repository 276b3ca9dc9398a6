//! The catalogue of rules that this process uses: the built-in rules, and a site's own rules over them.
//!
//! `diagnose`, the controller and the reading commands all load it from here, so that one folder of rules serves them
//! all. A folder that cannot be loaded stops the command, with file, line and reason; no command judges with half of it.

use std::path::Path;

use anyhow::{Context as _, anyhow};
use reveille_diagnose::Catalogue;
use reveille_diagnose::catalogue::Complaint;

use super::Context;
use crate::cli::failure::Failure;

impl Context {
    /// The built-in rules and those of the site's folder.
    pub(crate) fn catalogue(&self) -> Result<Catalogue, Failure> {
        catalogue(self.common.catalogue.as_deref())
    }
}

fn catalogue(own: Option<&Path>) -> Result<Catalogue, Failure> {
    let Some(folder) = own else {
        return Catalogue::built_in().map_err(|complaints| refused("the built-in catalogue", &complaints));
    };
    let mut files = Vec::new();
    let read = || format!("cannot read the catalogue {}", folder.display());
    let entries = std::fs::read_dir(folder).with_context(read).map_err(Failure::usage)?;
    for entry in entries {
        let path = entry.with_context(read).map_err(Failure::usage)?.path();
        if path.extension().is_some_and(|extension| extension == "yaml" || extension == "yml") {
            let text = std::fs::read_to_string(&path)
                .with_context(|| format!("cannot read {}", path.display()))
                .map_err(Failure::usage)?;
            files.push((path.display().to_string(), text));
        }
    }
    files.sort();
    if files.is_empty() {
        return Err(Failure::usage(anyhow!(
            "{} holds no catalogue: no file there ends in .yaml",
            folder.display()
        )));
    }
    Catalogue::with_files(&files).map_err(|complaints| refused(&folder.display().to_string(), &complaints))
}

fn refused(whose: &str, complaints: &[Complaint]) -> Failure {
    let lines: Vec<String> = complaints.iter().map(|complaint| format!("\n  {complaint}")).collect();
    Failure::usage(anyhow!("{whose} cannot be taken:{}", lines.concat())).next(
        "reveille explain RV117 shows a built-in rule; docs/reference/diagnosis.md says how to write one",
    )
}
