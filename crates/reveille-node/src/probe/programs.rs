//! Programs of the system, for facts that no file holds: whether the clock is synchronised, and the state of a unit.

use std::process::Stdio;

use reveille_agent::checkup::Reading;
use reveille_agent::checkup::facts::Unit;
use tokio::process::Command;
use tokio::time::timeout;

use super::Probe;

/// The longest output of a program: a journal is the longest.
const OUTPUT_BYTES_MAX: usize = 4 * 1024 * 1024;

impl Probe {
    /// The output of a program within the deadline.
    pub(crate) async fn program(&self, name: &str, arguments: &[&str]) -> Result<String, String> {
        if !self.asks_system {
            return Err(format!("{name} was not asked"));
        }
        let mut command = Command::new(name);
        command.args(arguments).stdin(Stdio::null()).kill_on_drop(true).env("LC_ALL", "C");
        let output = match timeout(self.left(), command.output()).await {
            Err(_) => return Err(format!("{name} did not answer in time")),
            Ok(Err(error)) if error.kind() == std::io::ErrorKind::NotFound => {
                return Err(format!("{name} is not on this machine"));
            }
            Ok(Err(error)) => return Err(format!("{name} cannot be run: {error}")),
            Ok(Ok(output)) => output,
        };
        let mut said = if output.status.success() { output.stdout } else { output.stderr };
        said.truncate(OUTPUT_BYTES_MAX);
        let said = String::from_utf8_lossy(&said).into_owned();
        if output.status.success() { Ok(said) } else { Err(format!("{name} says: {}", said.trim())) }
    }

    /// Whether a time service keeps the clock synchronised.
    pub(super) async fn is_synchronised(&self) -> Reading<bool> {
        // systemd-timesyncd touches this file once it has the time from a server.
        if self.root.is_seen("/run/systemd/timesync/synchronized") {
            return Reading::Read(true);
        }
        match self.program("timedatectl", &["show", "--property=NTPSynchronized", "--value"]).await {
            Ok(said) if said.trim() == "yes" => Reading::Read(true),
            Ok(said) if said.trim() == "no" => Reading::Read(false),
            Ok(said) => Reading::cannot_tell(format!("timedatectl says: {}", said.trim())),
            Err(why) => Reading::cannot_tell(why),
        }
    }

    /// The state of the kubelet's unit.
    pub(super) async fn kubelet_unit(&self, name: &str) -> Reading<Option<Unit>> {
        let wanted = "--property=LoadState,ActiveState,SubState,NRestarts,ExecMainStatus,UnitFileState";
        let name = format!("{name}.service");
        match self.program("systemctl", &["show", &name, "--no-pager", wanted]).await {
            Ok(said) => unit(&said),
            Err(why) => Reading::cannot_tell(why),
        }
    }
}

fn unit(said: &str) -> Reading<Option<Unit>> {
    let value = |name: &str| said.lines().find_map(|line| line.strip_prefix(name)?.strip_prefix('='));
    let text = |name: &str| value(name).unwrap_or_default().to_owned();
    match value("LoadState") {
        None => Reading::cannot_tell("systemctl does not say how the unit stands"),
        Some("not-found") => Reading::Read(None),
        Some(_) => Reading::Read(Some(Unit {
            state: text("ActiveState"),
            sub_state: text("SubState"),
            is_enabled: value("UnitFileState")
                .filter(|state| !state.is_empty())
                .map(|state| state.starts_with("enabled")),
            restarts: value("NRestarts").and_then(|count| count.parse().ok()),
            exit_code: value("ExecMainStatus").and_then(|code| code.parse().ok()),
        })),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_unit_is_read_as_systemctl_shows_it() {
        let said = "NRestarts=7\nExecMainStatus=1\nLoadState=loaded\nActiveState=activating\nSubState=auto-restart\nUnitFileState=disabled\n";
        let unit_of = |said| match unit(said) {
            Reading::Read(unit) => unit,
            Reading::CannotTell(why) => panic!("{why}"),
        };
        let found = unit_of(said).unwrap();
        assert_eq!((found.restarts, found.exit_code, found.is_enabled), (Some(7), Some(1), Some(false)));
        assert_eq!((found.state.as_str(), found.sub_state.as_str()), ("activating", "auto-restart"));
        assert_eq!(unit_of("LoadState=not-found\nActiveState=inactive\n"), None);
        assert!(unit("").read().is_none());
    }
}
