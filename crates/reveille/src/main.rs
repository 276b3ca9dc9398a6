//! The one binary: wiring and command line, no decisions.
//!
//! ```text
//!  arguments ─▶ cli ─▶ command ─▶ answer on standard output, exit code
//!                        │
//!                        ├─ worlds: adapters behind one seam, one poller for each project
//!                        ├─ driver: the loop of one roster, its ledger thread, its hands
//!                        ├─ replay: a recording, played through the engine again and compared
//!                        └─ view ─▶ render: what the engine knows, as reports for programs and for people
//! ```

mod beside;
mod cli;
mod command;
mod driver;
#[cfg(test)]
mod fixture;
mod otlp;
mod registration;
mod render;
mod replay;
mod survey;
mod view;
mod worlds;

use std::process::ExitCode;

use clap::Parser as _;

use crate::cli::Cli;
use crate::cli::exit::Exit;

fn main() -> ExitCode {
    // Before anything is read: what comes after holds credentials, whichever command it is.
    let undumped = reveille_node::undumped::never_dumped();
    let exit = match Cli::try_parse() {
        Ok(cli) => command::main(cli, undumped),
        Err(error) => {
            // Help and version are answers; anything else is wrong usage. A closed pipe is nobody's loss.
            drop(error.print());
            if error.use_stderr() { Exit::Usage } else { Exit::AllAnswer }
        }
    };
    exit.into()
}
