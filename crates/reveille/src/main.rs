//! The one binary: wiring and command line, no decisions.
//!
//! ```text
//!  arguments ─▶ cli ─▶ command ─▶ answer on standard output, exit code
//!                        │
//!                        ├─ adapters: clouds and clusters behind one interface, one poller for each project
//!                        ├─ driver: the loop of one roster, its ledger thread, its executor
//!                        ├─ replay: a recording, played through the engine again and compared
//!                        └─ view ─▶ render: what the engine knows, as reports for programs and for people
//! ```
//!
//! Without the feature `controller` it is the build for machines, half the size: `join`, `agent`, `doctor` and
//! `diagnose`. A machine holds its code in memory as long as it runs.
#![cfg_attr(
    not(feature = "controller"),
    allow(dead_code, reason = "exit codes, tones and tables that only commands of the controller use")
)]

#[cfg(feature = "controller")]
mod adapters;
mod cli;
mod command;
#[cfg(feature = "controller")]
mod control_socket;
#[cfg(feature = "controller")]
mod driver;
#[cfg(test)]
#[cfg(feature = "controller")]
mod fixture;
#[cfg(feature = "controller")]
mod hot;
#[cfg(feature = "controller")]
mod otlp;
#[cfg(feature = "controller")]
mod registration;
mod render;
#[cfg(feature = "controller")]
mod replay;
#[cfg(feature = "controller")]
mod survey;
#[cfg(feature = "controller")]
mod view;

use std::process::ExitCode;

use clap::Parser as _;
use clap::error::ErrorKind;

use crate::cli::Cli;
use crate::cli::exit::Exit;

fn main() -> ExitCode {
    // This comes before any input is read, because every command may hold credentials afterwards.
    let undumped = reveille_node::undumped::never_dumped();
    let exit = match Cli::try_parse() {
        Ok(cli) => command::main(cli, undumped),
        Err(error) => {
            // Help and version are answers; anything else is wrong usage. A closed pipe is no error.
            drop(error.print());
            if cfg!(not(feature = "controller")) && error.kind() == ErrorKind::InvalidSubcommand {
                eprintln!("This is the program for machines: what leads a cluster is in the whole program.");
            }
            if error.use_stderr() { Exit::Usage } else { Exit::NoProblem }
        }
    };
    exit.into()
}
