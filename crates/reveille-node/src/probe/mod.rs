//! Fills the facts of a check-up: read-only, all at once, and within seconds.
//!
//! ```text
//!  Target ─▶ server: name ─▶ TCP ─▶ TLS ─▶ cluster-info ─▶ verified: version, token, Node, requests ──┐
//!  Root ──▶ machine (a thread of its own, files alone) ───────────────────────────────────────────────┼─▶ Facts
//!  sockets ─▶ runtime (CRI), kubelet's healthz, name servers; programs (systemctl, timedatectl) ───────┤
//!  the provider's metadata ───────────────────────────────────────────────────────────────────────────┘
//! ```
//!
//! Each read has its own deadline, and the reads run side by side. A late answer is a fact of its own or cannot be told.
//! The probe changes nothing on the machine and starts no shell. It runs a program only for a fact that no file holds; a
//! missing program is no fact about the machine. It shows credentials only to a verified server.

mod answers;
mod disk;
mod dns;
mod kernel;
mod kubelet;
mod layout;
mod machine;
mod node;
mod ports;
mod process;
mod programs;
mod protobuf;
mod provider;
mod routes;
mod runtime;
mod server;
mod supervisor;

#[cfg(test)]
mod tests;

use std::time::{Duration, Instant, SystemTime, UNIX_EPOCH};

use reveille_agent::checkup::facts::{Aim, Facts, Names};
use reveille_agent::checkup::{Reading, facts};

pub(crate) use process::is_roots;
pub use provider::Metadata;

use crate::known::Known;
use crate::root::Root;
use crate::target::{Target, TargetError, ToldBy};

/// The time limit of one read.
const WITHIN: Duration = Duration::from_secs(2);

/// The time limit of everything: slow reads that follow each other get the remaining time.
const ALL_WITHIN: Duration = Duration::from_secs(10);

/// How facts are read.
#[derive(Clone, Debug)]
pub struct Probe {
    /// The place of the machine's files.
    pub root: Root,
    /// The time limit of one read.
    pub within: Duration,
    /// The probe may run programs and ask the machine's own ports: false where the root is not this machine's.
    pub asks_system: bool,
    /// The metadata service of the machine.
    pub metadata: Metadata,
    /// Secrets to remove from logs, beside text that looks like a secret.
    pub(crate) known: Known,
    /// The end of the time for everything.
    ends: Instant,
}

impl Probe {
    /// Reads this machine; its time starts here.
    pub fn of_this_machine() -> Self {
        let metadata = Metadata::of_environment();
        Self { asks_system: true, metadata, ..Self::of_folder(Root::default()) }
    }

    /// Reads a folder with the files of a machine; its time starts here.
    pub fn of_folder(root: Root) -> Self {
        Self {
            root,
            within: WITHIN,
            asks_system: false,
            metadata: Metadata::Nowhere,
            known: Known::default(),
            ends: Instant::now() + ALL_WITHIN,
        }
    }

    /// The same, with these secrets removed from its logs.
    #[must_use]
    pub fn knowing(self, known: Known) -> Self {
        Self { known, ..self }
    }

    /// The time for the next read.
    fn left(&self) -> Duration {
        self.within.min(self.ends.saturating_duration_since(Instant::now()))
    }

    /// True when too little time is left: a missing answer would then say nothing about the server.
    fn is_late(&self) -> bool {
        self.left() < self.within / 2
    }

    /// Reads all facts.
    pub async fn facts(&self, target: Result<Option<&Target>, &TargetError>) -> Facts {
        let aim = match target {
            Ok(target) => Reading::Read(target.map(aim)),
            Err(error) => Reading::cannot_tell(format!("{error}; {}", error.write)),
        };
        let target = target.ok().flatten();
        let layout = layout::Layout::of(&self.root, target);
        let files = self.machine(&layout).await;
        // A name in the kubelet's own configuration counts more than a name that an operator is about to set. Only a
        // machine without one takes the operator's name.
        let wanted = target.and_then(|target| target.node_name.as_ref()).map(ToString::to_string);
        let told = files.name_of_flags.clone().or(wanted.filter(|_| !machine::is_joined(&files.join)));
        let names = Names { host: files.host_name.clone(), told };
        let node_name = names.node();
        let named_socket = target.and_then(|target| target.cri_socket.as_deref());
        let (asked, runtime, (unit, health), is_synchronised, resolvers, announced) = tokio::join!(
            self.servers(target, node_name.as_deref(), &files, &layout),
            self.runtime(named_socket, &layout.sockets),
            self.kubelet_service(files.health_at.as_ref(), &layout.unit),
            self.is_synchronised(),
            self.ask_resolvers(target, &files.resolvers),
            self.announced(),
        );
        let server::Asked { servers, node, requests, certificate } = asked;
        Facts {
            now_s: epoch_s(SystemTime::now()),
            aim,
            supervised: layout.supervised,
            is_synchronised,
            names,
            network: facts::Network { routes: files.routes, resolvers: files.resolvers, asked: resolvers },
            servers,
            runtime,
            kernel: files.kernel,
            swap: files.swap,
            ports: files.ports,
            join: files.join,
            disks: files.disks,
            memory: files.memory,
            announced,
            kubelet: facts::Kubelet {
                config: files.config,
                unit,
                process: files.process,
                health,
                certificate,
            },
            requests,
            identity: files.identity,
            node,
            cni: files.cni,
        }
    }

    /// Reads the files on a thread of its own: a file system that hangs must not delay the rest.
    async fn machine(&self, layout: &layout::Layout) -> machine::Files {
        let (root, layout) = (self.root.clone(), layout.clone());
        let reading = tokio::task::spawn_blocking(move || machine::Files::read(&root, &layout));
        match tokio::time::timeout(self.left(), reading).await {
            Ok(Ok(files)) => files,
            Ok(Err(_)) => {
                machine::Files::unread("reading the machine's files broke off, which is a fault of ours")
            }
            Err(_) => {
                machine::Files::unread("the machine's files could not be read in time: a file system hangs")
            }
        }
    }
}

fn aim(target: &Target) -> Aim {
    Aim {
        told_by: target.told_by.to_string(),
        is_of_machine: matches!(target.told_by, ToldBy::Machine(_)),
        pins: target.pins.iter().map(ToString::to_string).collect(),
        is_unpinned_on_purpose: target.is_unpinned_on_purpose,
        token_id: target.token.as_ref().map(|token| token.id().to_owned()),
        cri_socket: target.cri_socket.clone(),
    }
}

/// Seconds since the epoch; 0 for a time before the epoch.
fn epoch_s(time: SystemTime) -> i64 {
    let since = time.duration_since(UNIX_EPOCH).unwrap_or_default();
    i64::try_from(since.as_secs()).unwrap_or(i64::MAX)
}
