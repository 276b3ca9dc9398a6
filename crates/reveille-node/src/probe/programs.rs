//! Programs of the system, for facts that no file holds: whether the clock is synchronised, and the state of a unit.

use std::io;
use std::process::Stdio;

use reveille_agent::checkup::Reading;
use reveille_agent::checkup::facts::Unit;
use tokio::io::{AsyncRead, AsyncReadExt as _};
use tokio::process::Command;
use tokio::time::timeout;

use super::Probe;

/// The end of a program's output that is kept: a journal is the longest.
const OUTPUT_BYTES_MAX: usize = 4 * 1024 * 1024;
/// The end of its error output that is kept: a person reads it.
const ERROR_BYTES_MAX: usize = 4 * 1024;

impl Probe {
    /// The output of a program within the deadline.
    pub(crate) async fn program(&self, name: &str, arguments: &[&str]) -> Result<String, String> {
        self.program_end(name, arguments).await.map(|(said, _)| said)
    }

    /// The end of the output of a program within the deadline, starting at a line, and a note where that is not all.
    pub(crate) async fn program_end(
        &self,
        name: &str,
        arguments: &[&str],
    ) -> Result<(String, Option<String>), String> {
        if !self.asks_system {
            return Err(format!("{name} was not asked"));
        }
        let mut command = Command::new(name);
        command.args(arguments).stdin(Stdio::null()).stdout(Stdio::piped()).stderr(Stdio::piped());
        command.kill_on_drop(true).env("LC_ALL", "C");
        let run = async {
            let mut child = command.spawn()?;
            let (output, error) = (child.stdout.take(), child.stderr.take());
            let (output, error) = (end_of(output, OUTPUT_BYTES_MAX), end_of(error, ERROR_BYTES_MAX));
            let (output, error) = tokio::try_join!(output, error)?;
            Ok::<_, io::Error>((child.wait().await?, output, error))
        };
        match timeout(self.left(), run).await {
            Err(_) => Err(format!("{name} did not answer in time")),
            Ok(Err(error)) if error.kind() == io::ErrorKind::NotFound => {
                Err(format!("{name} is not on this machine"))
            }
            Ok(Err(error)) => Err(format!("{name} cannot be run: {error}")),
            Ok(Ok((status, output, _))) if status.success() => {
                let note = output
                    .is_cut()
                    .then(|| format!("only its last {OUTPUT_BYTES_MAX} bytes of {}", output.length));
                Ok((output.text(), note))
            }
            Ok(Ok((_, _, error))) => Err(format!("{name} says: {}", error.text().trim())),
        }
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

/// The end of an output, and the length of all of it.
struct End {
    bytes: Vec<u8>,
    length: u64,
}

impl End {
    fn is_cut(&self) -> bool {
        self.length > self.bytes.len() as u64
    }

    /// The text from its first whole line on: half a secret, with which a line that is cut may begin, is recognised by no
    /// search.
    fn text(&self) -> String {
        let whole = match self.bytes.iter().position(|byte| *byte == b'\n') {
            _ if !self.is_cut() => 0,
            Some(end) => end + 1,
            None => self.bytes.len(),
        };
        String::from_utf8_lossy(&self.bytes[whole..]).into_owned()
    }
}

/// Reads to the end, and keeps this much of it: the cause of a failure is there, and another account may have written any
/// amount before it.
async fn end_of(from: Option<impl AsyncRead + Unpin>, bytes_max: usize) -> io::Result<End> {
    let mut end = End { bytes: Vec::new(), length: 0 };
    let Some(mut from) = from else { return Ok(end) };
    let mut part = vec![0; 64 * 1024];
    loop {
        let count = from.read(&mut part).await?;
        end.length += count as u64;
        end.bytes.extend_from_slice(&part[..count]);
        // A part is cut off seldom: each time all that is kept moves.
        if count == 0 || end.bytes.len() > 2 * bytes_max {
            let extra = end.bytes.len().saturating_sub(bytes_max);
            end.bytes.drain(..extra);
        }
        if count == 0 {
            return Ok(end);
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

    #[tokio::test]
    async fn of_an_output_the_end_is_kept_from_a_whole_line_on() {
        for (said, wanted, cut) in [
            ("", "", false),
            ("one\ntwo\n", "one\ntwo\n", false),
            ("one\ntwo\nthree\n", "three\n", true),
            ("onetwothreefour", "", true),
            (&format!("{}\nlast\n", "x".repeat(500_000)), "last\n", true),
        ] {
            let end = end_of(Some(said.as_bytes()), 9).await.unwrap();
            assert_eq!((end.text().as_str(), end.is_cut()), (wanted, cut));
        }
    }

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
