//! A server in a process of its own: the test program once more, with an environment variable that says so.
//!
//! Descriptors, memory and processor time are counted for each process, and the clients run in the process of the test.

#![allow(dead_code, clippy::unwrap_used, reason = "a test's support; each test file uses a part")]

use std::collections::BTreeSet;
use std::io::{BufRead as _, BufReader, Lines};
use std::path::Path;
use std::process::{Child, ChildStdout, Command, Stdio};

use reveille_node::link::{Credential, Link, LinkError};
use reveille_node::pins::Pins;
use reveille_node::target::Endpoint;
use reveille_registrar::server::{Limits, Setup, start};
use reveille_wire::agent::Secret;
use rustix::process::{Resource, Rlimit, getrlimit, setrlimit};
use tempfile::TempDir;
use tokio::sync::watch;

use super::support::{self, Who};

/// The state directory of the child, and its number of descriptors.
const STATE: &str = "REVEILLE_TEST_DOOR_STATE";
const DESCRIPTORS: &str = "REVEILLE_TEST_DOOR_DESCRIPTORS";
/// The default of a systemd service.
pub(crate) const OF_A_SERVICE: u64 = 1024;
/// So few that the child uses them all before it serves.
pub(crate) const NONE_LEFT: u64 = 64;

/// Does nothing in an ordinary run: it is the child's part.
#[tokio::test]
async fn child_that_serves_until_it_is_killed() {
    let (Some(state), Ok(descriptors)) = (std::env::var_os(STATE), std::env::var(DESCRIPTORS)) else {
        return;
    };
    let descriptors: u64 = descriptors.parse().unwrap();
    let most = Some(descriptors);
    setrlimit(Resource::Nofile, Rlimit { current: most, maximum: most }).unwrap();
    let setup = Setup {
        listen: "127.0.0.1:0".parse().unwrap(),
        names: vec!["localhost".to_owned()],
        directory: Path::new(&state).to_owned(),
        pools: BTreeSet::from([("prod".into(), "workers".into())]),
        settings: Default::default(),
        limits: Limits::default(),
        version: "0.0.0-test",
    };
    let server = start(setup).await.unwrap();
    let mut held = Vec::new();
    while descriptors == NONE_LEFT
        && let Ok(file) = std::fs::File::open("/dev/null")
    {
        held.push(file);
    }
    drop(server.nodes);
    println!("\nserves {} {}", server.address.port(), server.pins.join(" "));
    let (_stop, stopped) = watch::channel(false);
    server.run.until(stopped).await;
}

/// A server in a process of its own; dropping it kills the process.
pub(crate) struct Apart {
    pub(crate) directory: TempDir,
    pub(crate) link: Link,
    child: Child,
    /// The pipe stays open: after a minute the child's test harness writes to it that the test is slow, and ends if it
    /// cannot.
    _said: Lines<BufReader<ChildStdout>>,
}

impl Drop for Apart {
    fn drop(&mut self) {
        drop(self.child.kill());
        drop(self.child.wait());
    }
}

pub(crate) fn apart(descriptors: u64) -> Apart {
    let directory = TempDir::new().unwrap();
    let mut child = Command::new(std::env::current_exe().unwrap())
        .args(["--exact", "apart::child_that_serves_until_it_is_killed", "--nocapture"])
        .env(STATE, directory.path())
        .env(DESCRIPTORS, descriptors.to_string())
        .stdout(Stdio::piped())
        .stderr(Stdio::null())
        .spawn()
        .unwrap();
    let mut lines = BufReader::new(child.stdout.take().unwrap()).lines();
    let line = lines.find_map(|line| line.unwrap().strip_prefix("serves ").map(str::to_owned)).unwrap();
    let mut words = line.split(' ');
    let port = words.next().unwrap().parse().unwrap();
    let pins = Pins::new(words.map(|pin| pin.parse().unwrap()).collect()).unwrap();
    let link = Link { server: Endpoint { host: "127.0.0.1".to_owned(), port }, pins };
    Apart { directory, link, child, _said: lines }
}

impl Apart {
    pub(crate) async fn invite(&self, uses: u32) -> Secret {
        support::invited(self.directory.path(), |wished| wished.uses = uses).await.token
    }

    pub(crate) async fn enrol(&self, token: &Secret, who: &Who) -> Result<Credential, LinkError> {
        Ok(support::enrol(&self.link, token, who).await?.0)
    }

    /// The child's processor time so far, in ticks of the system: a hundred a second.
    pub(crate) fn ticks(&self) -> u64 {
        let stat = std::fs::read_to_string(format!("/proc/{}/stat", self.child.id())).unwrap();
        let (_, after_name) = stat.rsplit_once(')').unwrap();
        let fields: Vec<&str> = after_name.split_whitespace().collect();
        fields[11].parse::<u64>().unwrap() + fields[12].parse::<u64>().unwrap()
    }

    /// Resets the peak of the child's memory (proc(5), `clear_refs`).
    pub(crate) fn forget_peak(&self) {
        std::fs::write(format!("/proc/{}/clear_refs", self.child.id()), "5").unwrap();
    }

    /// The peak of the child's memory (`VmHWM`), in KiB.
    pub(crate) fn peak_kib(&self) -> u64 {
        let status = std::fs::read_to_string(format!("/proc/{}/status", self.child.id())).unwrap();
        let line = status.lines().find_map(|line| line.strip_prefix("VmHWM:")).unwrap();
        line.trim().trim_end_matches(" kB").parse().unwrap()
    }
}

/// As many descriptors as this process may have, at most `wished`.
pub(crate) fn at_most(wished: usize) -> usize {
    let before = getrlimit(Resource::Nofile);
    setrlimit(Resource::Nofile, Rlimit { current: before.maximum, maximum: before.maximum }).unwrap();
    let may = getrlimit(Resource::Nofile).current.map_or(usize::MAX, |most| usize::try_from(most).unwrap());
    wished.min(may.saturating_sub(512))
}
