//! `diagnose`: reads logs, command output, archives and folders, and prints causes with their evidence.
//!
//! ```text
//!  PATH…, - ─▶ walk (files, in order) ─▶ jobs (reveille_diagnose: unpack, scan) ─▶ judge ─▶ report, exit 0, 1 or 2
//!  --catalogue DIR ─▶ added over the built-in rules, or refused with file, line and reason ─▶ exit 64
//! ```
//!
//! It needs no roster, no cluster and no cloud, and reads only the inputs of the command line.

mod jobs;
mod page;
mod report;
mod walk;

use std::io::IsTerminal as _;
use std::path::{Path, PathBuf};

use anyhow::{Context as _, anyhow};
use reveille_diagnose::judge;
use reveille_diagnose::scan::Scanner;
use reveille_diagnose::sources::Unpacked;

use jobs::{Read, Source};

use super::{Answer, Context};
use crate::cli::Diagnose;
use crate::cli::exit::Exit;
use crate::cli::failure::{Failure, printable};

/// `diagnose`.
pub(crate) fn diagnose(context: &Context, args: &Diagnose) -> Result<Answer, Failure> {
    let catalogue = context.catalogue()?;
    let paths = paths(args)?;
    let scanner = Scanner::new(&catalogue).map_err(|error| Failure::internal(anyhow::Error::new(error)))?;
    let jobs = args.jobs.unwrap_or_else(jobs::jobs_by_cores);
    let Read { mut reader, inputs } = jobs::read(&scanner, &sources(&paths)?, jobs);
    if let Some(platform) = &args.platform {
        reader.platform(platform);
    }
    let report = report::Report::of(judge(&reader), &inputs);
    let exit = match (report.findings.is_empty(), report.unknown.is_some()) {
        (false, _) => Exit::Problems,
        (true, true) => Exit::CannotTell,
        (true, false) => Exit::NoProblem,
    };
    let text = context.print_own(&report, || page::page(&report, &context.paper))?;
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

/// Each file of the command line, and each file below a folder of it.
fn sources(paths: &[PathBuf]) -> Result<Vec<Source>, Failure> {
    let mut sources = Vec::new();
    for path in paths {
        if path.as_os_str() == "-" {
            sources.push(Source::Stdin);
            continue;
        }
        let named = path.display().to_string();
        let found =
            walk::files(path).with_context(|| format!("cannot look at {named}")).map_err(|error| {
                Failure::usage(error)
                    .next("name a file or a folder that can be read, or - for standard input")
            })?;
        sources.extend(placed(path, found));
    }
    Ok(sources)
}

/// The files of one name of the command line; the layout shows whether it is an unpacked bundle.
fn placed(folder: &Path, found: Vec<(PathBuf, Option<String>)>) -> Vec<Source> {
    let below = |file: &Path| file.strip_prefix(folder).unwrap_or(file).display().to_string();
    let paths: Vec<String> = found.iter().map(|(file, _)| below(file)).collect();
    let whole = folder.canonicalize().unwrap_or_else(|_| folder.to_owned());
    let name = whole.file_name().map_or_else(String::new, |name| name.display().to_string());
    let paths: Vec<&str> = paths.iter().map(String::as_str).collect();
    let bundle = if folder.is_dir() { Unpacked::of(&name, &paths) } else { None };
    let platform = bundle.as_ref().and_then(|bundle| bundle.platform);
    let note = bundle
        .as_ref()
        .map(|bundle| Source::Folder(printable(&folder.display().to_string()), printable(&bundle.note)));
    let files = found.into_iter().enumerate().filter_map(|(number, (file, said))| {
        let told = bundle.as_ref().map_or(Some(""), |bundle| bundle.members.get(number)?.as_deref());
        let name = printable(&file.display().to_string());
        match (said, told) {
            (Some(why), _) => Some(Source::Refused(name, why)),
            (None, Some(_)) if file == folder => Some(Source::Named(name, file)),
            (None, Some(told)) => Some(Source::File(name + told, file, platform)),
            (None, None) => None,
        }
    });
    note.into_iter().chain(files).collect()
}
