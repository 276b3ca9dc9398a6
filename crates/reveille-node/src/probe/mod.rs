//! Fills the facts of a check-up: read-only, at once, and within seconds.
//!
//! ```text
//!  Target ─▶ server: name ─▶ TCP ─▶ TLS ─▶ cluster-info ─▶ verified: version, token, Node, requests ──┐
//!  Root ──▶ machine (a thread of its own, files alone) ───────────────────────────────────────────────┼─▶ Facts
//!  sockets ─▶ runtime (CRI), kubelet's healthz, name servers; programs (systemctl, timedatectl) ───────┤
//!  the provider's metadata ───────────────────────────────────────────────────────────────────────────┘
//! ```
//!
//! Each thing that is asked has a deadline of its own, they run side by side, and what is late is a fact of its own or could not
//! be told. Nothing is changed on the machine and no shell is started; a program is run only for what no file says, and one that
//! is not there is no fact about the machine. No credential is shown to anybody who is not verified.

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

/// Longest that one thing is asked for.
const WITHIN: Duration = Duration::from_secs(2);

/// Longest that all of it takes: steps that are slow one after the other get what is left.
const ALL_WITHIN: Duration = Duration::from_secs(10);

/// How facts are read.
#[derive(Clone, Debug)]
pub struct Probe {
    /// Where the machine's files are.
    pub root: Root,
    /// Longest that one thing is asked for.
    pub within: Duration,
    /// Programs of the system may be run, and the machine's own ports be asked: false where the root is not this machine's.
    pub asks_system: bool,
    /// Where the machine's metadata is asked for.
    pub metadata: Metadata,
    /// Secrets that are taken out of logs beside what looks like one.
    pub(crate) known: Known,
    /// When all of it ends.
    ends: Instant,
}

impl Probe {
    /// Reads this machine; its time runs from here.
    pub fn of_this_machine() -> Self {
        let metadata = Metadata::of_environment();
        Self { asks_system: true, metadata, ..Self::of_folder(Root::default()) }
    }

    /// Reads what a folder was laid out as; its time runs from here.
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

    /// The same, whose logs are to hold none of these.
    #[must_use]
    pub fn knowing(self, known: Known) -> Self {
        Self { known, ..self }
    }

    /// How long the next thing may take.
    fn left(&self) -> Duration {
        self.within.min(self.ends.saturating_duration_since(Instant::now()))
    }

    /// Too little is left for an answer to be waited for: one that does not come would say nothing of who is asked.
    fn is_late(&self) -> bool {
        self.left() < self.within / 2
    }

    /// Reads everything.
    pub async fn facts(&self, target: Result<Option<&Target>, &TargetError>) -> Facts {
        let aim = match target {
            Ok(target) => Reading::Read(target.map(aim)),
            Err(error) => Reading::cannot_tell(format!("{error}; {}", error.write)),
        };
        let target = target.ok().flatten();
        let layout = layout::Layout::of(&self.root, target);
        let files = self.machine(&layout).await;
        // What a kubelet is told counts more than what somebody is going to tell one: only a machine that has
        // none takes the latter.
        let wanted = target.and_then(|target| target.node_name.as_ref()).map(ToString::to_string);
        let told = files.name_of_flags.clone().or(wanted.filter(|_| !machine::is_joined(&files.join)));
        let names = Names { host: files.host_name.clone(), told };
        let node_name = names.node();
        let named_socket = target.and_then(|target| target.cri_socket.as_deref());
        let (asked, runtime, (unit, health), is_synchronised, resolvers, announced) = tokio::join!(
            self.servers(target, node_name.as_deref(), &files, &layout),
            self.runtime(named_socket, &layout.sockets),
            self.kubelet_service(&files, &layout.unit),
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

    /// What files say, read on a thread of its own: a file system that hangs must not hold up the rest.
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

/// Seconds since the epoch; a clock that is before it stands at its beginning.
fn epoch_s(time: SystemTime) -> i64 {
    let since = time.duration_since(UNIX_EPOCH).unwrap_or_default();
    i64::try_from(since.as_secs()).unwrap_or(i64::MAX)
}
