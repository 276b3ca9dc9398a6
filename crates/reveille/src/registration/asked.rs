//! A question to the server that runs with this state, from another process of this host.
//!
//! ```text
//!  invite, collect ─▶ DIR/admin.sock ─▶ the answer, or a failure that says whose socket it is and what to start or write
//! ```

use std::path::Path;

use reveille_registrar::server::admin::{self, Answer, Ask, AskError};

use crate::cli::failure::Failure;

/// Asks.
///
/// # Errors
///
/// Nobody answers; with what to do about it.
pub(crate) async fn ask(directory: &Path, question: &Ask, _command: &str) -> Result<Answer, Failure> {
    admin::ask(directory, question).await.map_err(|error| failure(error))
}

fn failure(error: AskError) -> Failure {
    let is_nobody = matches!(error, AskError::Nobody { .. });
    let failure =
        Failure::cannot_tell(anyhow::Error::new(error).context("cannot ask the registration server"));
    if is_nobody {
        failure.next("start it on this host with the same --state: reveille run --listen ADDRESS")
    } else {
        failure
    }
}
