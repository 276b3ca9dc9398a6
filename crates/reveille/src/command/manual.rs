//! Completions and manual pages, generated from the definition of the command line.

use std::fs;
use std::path::Path;

use anyhow::Context as _;
use clap::CommandFactory as _;
use clap_complete::Shell;

use super::Answer;
use crate::cli::failure::Failure;
use crate::cli::{Cli, Man};

/// The completion script of a shell.
pub(crate) fn completions(shell: Shell) -> Answer {
    let mut script = Vec::new();
    clap_complete::generate(shell, &mut Cli::command(), "reveille", &mut script);
    Answer::fine(String::from_utf8_lossy(&script).into_owned())
}

/// Prints the first page on standard output, or writes every page into a folder.
pub(crate) fn man(args: &Man) -> Result<Answer, Failure> {
    let mut command = Cli::command();
    command.build();
    let Some(dir) = &args.dir else {
        return Ok(Answer::fine(String::from_utf8_lossy(&page(command)?).into_owned()));
    };
    fs::create_dir_all(dir).with_context(|| format!("cannot make the folder {}", dir.display()))?;
    let mut written = vec![write(dir, "reveille", command.clone())?];
    for sub in command.get_subcommands().filter(|sub| sub.get_name() != "help") {
        let name = format!("reveille-{}", sub.get_name());
        // A page is found by the name in it, and clap knows the subcommand only by its own name.
        let leaked: &'static str = Box::leak(name.clone().into_boxed_str());
        written.push(write(dir, &name, sub.clone().name(leaked))?);
    }
    Ok(Answer::fine(format!("{}\n", written.join("\n"))))
}

fn page(command: clap::Command) -> Result<Vec<u8>, Failure> {
    let mut text = Vec::new();
    clap_mangen::Man::new(command).render(&mut text).context("cannot write the manual page")?;
    Ok(text)
}

fn write(dir: &Path, name: &str, command: clap::Command) -> Result<String, Failure> {
    let file = dir.join(format!("{name}.1"));
    fs::write(&file, page(command)?).with_context(|| format!("cannot write {}", file.display()))?;
    Ok(file.display().to_string())
}
