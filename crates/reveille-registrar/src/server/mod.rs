//! The server around the registry: what listens, what remembers, and the edge to whoever runs it.
//!
//! ```text
//!  door ─▶ gate ─▶ TLS ─▶ routes ─┬▶ ping, enrol, renew ─┐
//!                                 ├▶ socket (WebSocket) ──┼─▶ keeper: one thread, the registry and its ledger ─┬▶ heard: Heard
//!                                 └▶ held (long poll) ────┤                                                    └▶ mints: Mint
//!  admin (local socket) ──────────────────────────────────┘ ◀─ Hand: orders, plans, what the cluster says
//! ```
//!
//! The edge is three receivers and a hand, all of typed values: what is heard of machines comes out, tokens to be made and
//! names of Nodes to be looked up come out and are answered, orders and facts go in. Who listens to that, the server does not
//! know.
//!
//! hyper's own connection, not a framework: there are five routes, and what matters here (deadlines of each part, the proof of a
//! connection, a body with every refusal) is what a framework hides. TLS 1.3 alone, because both ends are ours.

mod accept;
pub mod admin;
mod audit;
mod authority;
mod clock;
mod door;
mod gate;
mod held;
mod keeper;
#[cfg(test)]
mod killed;
mod limits;
pub mod listing;
mod meter;
mod nodes;
mod outlets;
mod pace;
#[cfg(test)]
mod people;
mod request;
mod rotation;
mod routes;
mod socket;
mod store;
mod tls;
mod token;
mod told;

use std::collections::BTreeSet;
use std::net::SocketAddr;
use std::path::{Path, PathBuf};
use std::sync::{Arc, Mutex, RwLock};
use std::time::Duration;

use reveille_core::model::id::{PoolName, RosterName};
use tokio::net::TcpListener;
use tokio::sync::{Semaphore, mpsc, watch};
use tokio::task::JoinSet;

pub use authority::AuthorityError;
pub use keeper::{Hand, Mint, Over};
pub use limits::Limits;
pub use nodes::NodeAsked;
pub use tls::TlsError;
pub use told::Lines;
use told::Told;

use crate::registry::{Event, Heard, Registry, Settings};

/// Between two looks at what is over.
const TICK: Duration = Duration::from_secs(1);
/// Longest for telling everybody that this server stops.
const GOODBYE_WITHIN: Duration = Duration::from_secs(3);
/// The server's certificate is made anew after this: two thirds of its time.
const CERTIFICATE_ANEW: Duration = Duration::from_secs(60 * 24 * 3600);

/// What a server begins with.
#[derive(Clone, Debug)]
pub struct Setup {
    /// Where to listen.
    pub listen: SocketAddr,
    /// Names and addresses that machines know it by; the address it listens at is one of them.
    pub names: Vec<String>,
    /// Where it remembers: authorities, ledger, socket.
    pub directory: PathBuf,
    /// Pools that machines can be invited to.
    pub pools: BTreeSet<(RosterName, PoolName)>,
    /// Bounds and periods of the registry.
    pub settings: Settings,
    /// Bounds of connections.
    pub limits: Limits,
    /// The program's version.
    pub version: &'static str,
}

/// Why a server did not begin.
#[derive(Debug, thiserror::Error)]
pub enum StartError {
    /// The state directory.
    #[error("cannot use the directory {}", path.display())]
    Directory {
        /// Which.
        path: PathBuf,
        /// What the system said.
        source: std::io::Error,
    },
    /// The authorities.
    #[error(transparent)]
    Authority(#[from] AuthorityError),
    /// Their use.
    #[error(transparent)]
    Tls(#[from] TlsError),
    /// The ledger.
    #[error(transparent)]
    Ledger(#[from] reveille_record::OpenError),
    /// The address.
    #[error("cannot listen at {address}")]
    Listen {
        /// Which.
        address: SocketAddr,
        /// What the system said.
        source: std::io::Error,
    },
    /// The thread.
    #[error("cannot start the registry's thread")]
    Thread(#[source] std::io::Error),
}

/// A server that was started, and its edge.
pub struct Server {
    /// Where it listens.
    pub address: SocketAddr,
    /// By which keys it is known.
    pub pins: Vec<String>,
    /// Speaks with the registry.
    pub hand: Hand,
    /// What is heard of machines.
    pub heard: mpsc::Receiver<Heard>,
    /// Tokens to be made and taken away.
    pub mints: mpsc::Receiver<Mint>,
    /// Nodes that somebody wants to know of; to be dropped where there is no cluster.
    pub nodes: mpsc::Receiver<NodeAsked>,
    /// What listens.
    pub run: Run,
}

/// What listens, until it is told to stop.
pub struct Run {
    hall: Arc<routes::Hall>,
    listener: TcpListener,
    people: tokio::net::UnixListener,
    office: Arc<admin::Office>,
    gate: gate::Gate,
    limits: Limits,
    directory: PathBuf,
    thread: std::thread::JoinHandle<()>,
}

/// Opens what is remembered and binds what is listened at. Nothing is answered before [`Run::until`].
///
/// # Errors
///
/// What cannot be opened, bound or read.
pub async fn start(setup: Setup) -> Result<Server, StartError> {
    let directory = setup.directory;
    let limits = setup.limits.fitted(limits::descriptors(&setup.limits));
    if limits.connections_max < setup.limits.connections_max {
        tracing::warn!(
            machines = limits.known_max,
            "the process may open too few descriptors for {} connections; raise its limit (LimitNOFILE=) for more machines",
            setup.limits.connections_max
        );
    }
    make_private(&directory).map_err(|source| StartError::Directory { path: directory.clone(), source })?;
    let now = clock::wall();
    let (store, records) = store::Store::open(&directory, now)?;
    let authorities = authority::Authorities::open(&directory)?;
    let refused = |source| StartError::Listen { address: setup.listen, source };
    let listener = TcpListener::bind(setup.listen).await.map_err(refused)?;
    let address = listener.local_addr().map_err(refused)?;
    let mut names = setup.names;
    if !address.ip().is_unspecified() {
        names.push(address.ip().to_string());
    }
    names.dedup();
    let doorman = tls::Doorman::new(&authorities, authorities.serving(&names)?)?;
    let people = admin::listen(&directory)
        .map_err(|source| StartError::Directory { path: admin::path(&directory), source })?;
    let pins = authorities.pins();
    let registry = Registry::restore(setup.settings, now, &records);
    let (hand, edges, thread) = keeper::start(registry, store, pins.clone()).map_err(StartError::Thread)?;
    let (asks, nodes) = nodes::Nodes::new(setup.pools.iter().map(|(roster, _)| roster.clone()).collect());
    let hall = Arc::new(routes::Hall {
        hand: hand.clone(),
        authorities: Mutex::new(authorities),
        doorman: RwLock::new(doorman),
        held: held::Held::default(),
        paces: pace::Paces::default(),
        nodes: asks,
        version: setup.version,
        step_within: limits.step_within,
        connection_within: limits.connection_within,
        told: Told::default(),
        sessions: Arc::new(Semaphore::new(limits.connections_max)),
    });
    let office = admin::Office { hall: hall.clone(), pools: setup.pools, names, port: address.port() };
    let gate = gate::Gate::new(limits);
    let office = Arc::new(office);
    let run = Run { hall, listener, people, office, gate, limits, directory, thread };
    Ok(Server { address, pins, hand, heard: edges.heard, mints: edges.mints, nodes, run })
}

impl Run {
    /// Answers until it is told to stop. What was acknowledged is durable when it returns. False when the registry's thread ended
    /// by itself: its disk refused, and the process is to be started again.
    pub async fn until(self, stop: watch::Receiver<bool>) -> bool {
        let Self { hall, listener, people, office, gate, limits, directory, thread } = self;
        let hand = hall.hand.clone();
        let mut parts = JoinSet::new();
        let names = office.names.clone();
        parts.spawn(admin::serve(people, office, stop.clone()));
        parts.spawn(door::serve(listener, hall.clone(), gate, limits, stop.clone()));
        let told = tick(&hall, &names, stop).await;
        drop(std::fs::remove_file(admin::path(&directory)));
        hand.end().await;
        // Whoever is there hears that this server stops, and when to ask again; whoever does not listen is not waited for.
        let over = async { while parts.join_next().await.is_some() {} };
        drop(tokio::time::timeout(GOODBYE_WITHIN, over).await);
        parts.abort_all();
        while parts.join_next().await.is_some() {}
        let joined = tokio::task::spawn_blocking(move || thread.join()).await;
        told && matches!(joined, Ok(Ok(())))
    }
}

/// Time passes for the registry. False when the registry is over.
async fn tick(hall: &routes::Hall, names: &[String], mut stop: watch::Receiver<bool>) -> bool {
    let mut ticks = tokio::time::interval(TICK);
    ticks.set_missed_tick_behavior(tokio::time::MissedTickBehavior::Delay);
    let mut certificate = clock::Made::now();
    loop {
        tokio::select! {
            _ = ticks.tick() => {}
            // Nobody left to tell is as good as being told.
            _ = stop.wait_for(|stop| *stop) => return true,
        }
        if hall.hand.say(Event::Tick).await.is_err() {
            return false;
        }
        hall.held.sweep();
        hall.paces.forget();
        if certificate.is_over(CERTIFICATE_ANEW) {
            certificate = clock::Made::now();
            if let Err(why) = hall.reopen(names) {
                tracing::error!("the server's certificate cannot be made anew: {why}");
            }
        }
    }
}

fn make_private(directory: &Path) -> std::io::Result<()> {
    use std::os::unix::fs::PermissionsExt as _;
    std::fs::create_dir_all(directory)?;
    std::fs::set_permissions(directory, std::fs::Permissions::from_mode(0o700))
}
