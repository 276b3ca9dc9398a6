//! A whole agent in this process, on a machine that is a directory.

#![allow(dead_code, clippy::unwrap_used, reason = "a test's support; each test file uses a part")]

use std::time::Duration;

use reveille_agent::Settings;
use reveille_core::model::time::Span;
use reveille_node::agent::{self, AgentError, LogEvent, Setup};
use reveille_node::probe::Metadata;
use reveille_node::root::Root;
use reveille_wire::agent::text::Word;
use reveille_wire::agent::{Facts, Secret};
use tempfile::TempDir;
use tokio::sync::mpsc;
use tokio::task::JoinHandle;

use super::support::Site;

/// An agent that ends with the test.
pub(crate) struct Running {
    pub(crate) machine: TempDir,
    pub(crate) said: mpsc::UnboundedReceiver<String>,
    task: JoinHandle<Result<(), AgentError>>,
}

impl Drop for Running {
    fn drop(&mut self) {
        self.task.abort();
    }
}

/// The machine's files, with the files that a test adds in `put`.
pub(crate) fn machine(number: u32, put: &[(&str, &str)]) -> TempDir {
    let folder = TempDir::new().unwrap();
    let (id, boot) = (format!("feed0000000040008000{number:012}\n"), format!("boot-{number}\n"));
    let name = format!("w-{number}\n");
    let own = [
        ("/etc/machine-id", id.as_str()),
        ("/proc/sys/kernel/random/boot_id", &boot),
        ("/proc/sys/kernel/hostname", &name),
    ];
    for (path, text) in own.iter().chain(put) {
        let place = Root::new(folder.path()).at(path);
        std::fs::create_dir_all(place.parent().unwrap()).unwrap();
        std::fs::write(place, text).unwrap();
    }
    folder
}

/// The settings with which the agent starts.
pub(crate) fn setup(site: &Site, machine: &TempDir, invitation: Option<Secret>) -> Setup {
    Setup {
        root: Root::new(machine.path()),
        folder: machine.path().join("var/lib/reveille/agent"),
        link: Some(site.link.clone()),
        invitation,
        instance_id: None,
        facts: Facts { hostname: Word::cut("w"), ..Facts::default() },
        settings: Settings::default(),
        metadata: Metadata::Nowhere,
        peer_listen: None,
    }
}

/// Settings under which an agent notices a lost API server in seconds.
pub(crate) fn hasty() -> Settings {
    let second = Span::from_s(1);
    Settings {
        check_every: second,
        api_timeout: second,
        peer_timeout: Span::from_s(5),
        failures: 2,
        ask_again: second,
        ..Settings::default()
    }
}

/// Runs the agent.
pub(crate) fn run(setup: Setup, machine: TempDir) -> Running {
    let (tell, said) = mpsc::unbounded_channel();
    let task = tokio::spawn(async move {
        agent::run(setup, move |_, event: LogEvent<'_>| drop(tell.send(format!("{event:?}")))).await
    });
    Running { machine, said, task }
}

impl Running {
    /// Ends the agent, and returns its machine for the next one.
    pub(crate) async fn stopped(mut self) -> TempDir {
        self.task.abort();
        drop((&mut self.task).await);
        std::mem::replace(&mut self.machine, TempDir::new().unwrap())
    }

    /// Waits until the agent says this; the wait has a time limit.
    pub(crate) async fn says(&mut self, wanted: &str) {
        self.says_all(&[wanted]).await;
    }

    /// Waits until the agent says all of these, in any order.
    pub(crate) async fn says_all(&mut self, wanted: &[&str]) {
        let mut missing = wanted.to_vec();
        let mut heard = Vec::new();
        let looking = async {
            while !missing.is_empty() {
                let line = self.said.recv().await.unwrap();
                missing.retain(|wanted| !line.contains(wanted));
                heard.push(line);
            }
        };
        let found = tokio::time::timeout(Duration::from_secs(60), looking).await;
        let last = heard.len().saturating_sub(12);
        found.unwrap_or_else(|_| panic!("nothing said {missing:?}: {:#?}", &heard[last..]));
    }
}
