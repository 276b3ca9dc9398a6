//! Sends a question to the server that runs with this state, from another process of this host.
//!
//! ```text
//!  invite, collect ─▶ DIR/admin.sock ─┬▶ the answer
//!                                     ├▶ not for this account ─▶ whose it is, and how to ask as that account
//!                                     └▶ not there ─▶ what to start, and where a server of the system's unit keeps its own
//! ```

use std::io::ErrorKind;
use std::os::unix::fs::MetadataExt as _;
use std::path::Path;

use reveille_registrar::server::admin::{self, Answer, Ask, AskError};

use crate::cli::failure::Failure;

/// The folder in which `deploy/reveille.service` keeps its state.
const STATE_OF_UNIT: &str = "/var/lib/reveille-controller";

/// Asks the server; `command` is what the operator typed.
///
/// # Errors
///
/// No server answers; the error says what to do.
pub(crate) async fn ask(directory: &Path, question: &Ask, command: &str) -> Result<Answer, Failure> {
    let accounts = || std::fs::read_to_string("/etc/passwd").unwrap_or_default();
    admin::ask(directory, question).await.map_err(|error| failure(error, directory, command, &accounts()))
}

fn failure(error: AskError, directory: &Path, command: &str, accounts: &str) -> Failure {
    let state = directory.parent().unwrap_or(directory).display();
    let next = match &error {
        AskError::Forbidden { path, .. } => Some(match owner(path) {
            Some(uid) => {
                let (who, user) = called(uid, accounts);
                format!("the socket belongs to {who}: sudo -u {user} reveille --state {state} {command} ...")
            }
            None => "ask as the account that runs the server".to_owned(),
        }),
        AskError::NoServer { source, .. } => {
            let mut next =
                "start it on this host with the same --state: reveille run --listen ADDRESS".to_owned();
            if source.kind() == ErrorKind::NotFound && !directory.starts_with(STATE_OF_UNIT) {
                next.push_str(&format!(
                    "; a server that was started by deploy/reveille.service uses --state {STATE_OF_UNIT}"
                ));
            }
            Some(next)
        }
        AskError::Silent(_) => None,
    };
    let failure =
        Failure::cannot_tell(anyhow::Error::new(error).context("cannot ask the registration server"));
    match next {
        Some(next) => failure.next(next),
        None => failure,
    }
}

/// The owner of the socket, or of the folder that other accounts may not read.
fn owner(path: &Path) -> Option<u32> {
    path.ancestors().find_map(|path| std::fs::symlink_metadata(path).ok()).map(|found| found.uid())
}

/// An account's name for messages and for sudo. An account without an entry in this host's files has its number.
fn called(uid: u32, accounts: &str) -> (String, String) {
    let named = accounts.lines().find_map(|line| {
        let mut fields = line.split(':');
        let name = fields.next()?;
        (fields.nth(1)?.parse() == Ok(uid)).then(|| name.to_owned())
    });
    match named {
        Some(name) => (format!("account {name}"), name),
        None => (format!("the account with uid {uid}"), format!("'#{uid}'")),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn forbidden_socket_error_names_its_owner_and_the_sudo_command() {
        let state = tempfile::TempDir::new().unwrap();
        let directory = state.path().join(".registrar");
        let uid = std::fs::metadata(state.path()).unwrap().uid();
        let forbidden = || AskError::Forbidden {
            path: admin::path(&directory),
            source: ErrorKind::PermissionDenied.into(),
        };
        let accounts = format!("daemon:x:9999999:1::/:/bin/sh\nreveille:x:{uid}:{uid}::/:/bin/sh\n");
        let text = failure(forbidden(), &directory, "invite", &accounts).to_string();
        let command = format!("sudo -u reveille reveille --state {} invite ...", state.path().display());
        assert!(text.contains("belongs to account reveille") && text.contains(&command), "{text}");
        assert!(!text.contains("no server listens") && !text.contains("start it"), "{text}");
        let text = failure(forbidden(), &directory, "invite", "").to_string();
        assert!(text.contains(&format!("uid {uid}: sudo -u '#{uid}'")), "{text}");
    }

    #[tokio::test]
    async fn where_no_socket_is_the_state_of_the_systems_unit_is_named() {
        let state = tempfile::TempDir::new().unwrap();
        let asked = ask(&state.path().join(".registrar"), &Ask::RotateCa {}, "invite").await;
        let text = asked.unwrap_err().to_string();
        assert!(
            text.contains("--state /var/lib/reveille-controller") && text.contains("run --listen"),
            "{text}"
        );
    }
}
