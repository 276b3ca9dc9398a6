//! `diagnose`: logs, command output, archives and folders in, causes with their proof out.
//!
//! ```text
//!  PATH…, - ─▶ walk (files, in order) ─▶ reveille_diagnose (unpack, scan, judge) ─▶ report ─▶ page or JSON, exit 0, 1 or 2
//!  --catalogue DIR ─▶ laid over what comes with it, or refused with file, line and reason ─▶ exit 64
//! ```
//!
//! It needs no roster, no cluster and no cloud, and reads nothing but what it was given.

mod page;
mod report;
mod walk;

use std::io::{BufReader, IsTerminal as _};
use std::path::{Path, PathBuf};

use anyhow::{Context as _, anyhow};
use reveille_diagnose::catalogue::Complaint;
use reveille_diagnose::scan::Scanner;
use reveille_diagnose::sources::{Intake, Limits};
use reveille_diagnose::{Catalogue, Reader, judge};

use super::simulate::print;
use super::{Answer, Context};
use crate::cli::Diagnose;
use crate::cli::exit::Exit;
use crate::cli::failure::{Failure, printable};

/// Reads in large pieces: a gigabyte in lines of a hundred bytes is ten million lines.
const BUFFER_BYTES: usize = 256 * 1024;

/// `diagnose`.
pub(crate) fn diagnose(context: &Context, args: &Diagnose) -> Result<Answer, Failure> {
    let catalogue = catalogue(args.catalogue.as_deref())?;
    if let Some(code) = &args.explain {
        return explain(&catalogue, code);
    }
    let paths = paths(args)?;
    let scanner = Scanner::new(&catalogue).map_err(|error| Failure::internal(anyhow::Error::new(error)))?;
    let mut reader = Reader::new(&scanner);
    if let Some(platform) = &args.platform {
        reader.platform(platform);
    }
    let mut intake = Intake::new(&mut reader, Limits::default());
    for path in &paths {
        if path.as_os_str() == "-" {
            intake
                .take("standard input", &mut BufReader::with_capacity(BUFFER_BYTES, std::io::stdin().lock()));
        } else {
            take(&mut intake, path)?;
        }
    }
    let inputs = std::mem::take(&mut intake.inputs);
    let report = report::Report::of(judge(&reader), &inputs);
    let exit = match (report.findings.is_empty(), report.unknown.is_some()) {
        (false, _) => Exit::SomebodyAbsent,
        (true, true) => Exit::CannotTell,
        (true, false) => Exit::AllAnswer,
    };
    let text = print(context, &report, || page::page(&report, &context.paper))?;
    Ok(Answer { text, exit })
}

fn paths(args: &Diagnose) -> Result<Vec<PathBuf>, Failure> {
    if !args.paths.is_empty() {
        return Ok(args.paths.clone());
    }
    if std::io::stdin().is_terminal() {
        let error = anyhow!("nothing to read was named");
        return Err(Failure::usage(error)
            .next("name files or folders, or pipe a log in: journalctl -u kubelet | reveille diagnose"));
    }
    Ok(vec![PathBuf::from("-")])
}

/// A file, or every file below a folder.
fn take(intake: &mut Intake<'_, '_>, path: &Path) -> Result<(), Failure> {
    let named = path.display().to_string();
    let found = walk::files(path).with_context(|| format!("cannot look at {named}")).map_err(|error| {
        Failure::usage(error).next("name a file or a folder that can be read, or - for standard input")
    })?;
    for (file, said) in found {
        let name = printable(&file.display().to_string());
        match said {
            Some(why) => intake.refuse(&name, why),
            None => match std::fs::File::open(&file) {
                Ok(open) => intake.take(&name, &mut BufReader::with_capacity(BUFFER_BYTES, open)),
                Err(error) => intake.refuse(&name, format!("cannot be opened: {error}")),
            },
        }
    }
    Ok(())
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
        "reveille diagnose --explain RV117 shows an entry of ours; docs/diagnosis.md says how to write one",
    )
}

fn explain(catalogue: &Catalogue, code: &str) -> Result<Answer, Failure> {
    match catalogue.cause(code) {
        Some(cause) => Ok(Answer::fine(reveille_diagnose::page::page(catalogue, cause))),
        None => {
            let error = anyhow!("no finding is called {code}");
            Err(Failure::usage(error)
                .next("a code (RV117) or a cause (bootstrap-token-invalid); docs/findings lists them"))
        }
    }
}
