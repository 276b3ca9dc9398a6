//! The server around the registry: its listeners, its ledger, and its interface to the process that runs it.
//!
//! ```text
//!  acceptor ─▶ gate ─▶ TLS ─▶ routes ─┬▶ ping, enrol, renew ─┐
//!                                     ├▶ socket (WebSocket) ─┼─▶ keeper: one thread, registry, ledger ─┬▶ heard: Heard
//!                                     └▶ long_poll ──────────┤                                         └▶ token_requests
//!  admin (local socket) ─────────────────────────────────────┘ ◀─ Hand: orders, plans, what the cluster says
//! ```
//!
//! The interface is three receivers and a handle, all of typed values. Messages about machines come out. Tokens to make
//! and names of Nodes to look up come out and are answered. Orders and facts go in. The server does not know which code
//! uses this interface.
//!
//! The server uses hyper's connections directly, without a framework. There are five routes, and a framework hides what
//! matters here: deadlines of each part, the proof of a connection, a body with every refusal. Only TLS 1.3 is allowed,
//! because both ends are ours.

mod accept;
mod acceptor;
pub mod admin;
mod audit;
mod authority;
mod clock;
mod ear;
mod gate;
mod keeper;
#[cfg(test)]
mod killed;
mod limits;
pub mod listing;
mod log_limits;
mod long_poll;
mod meter;
mod nodes;
mod office;
mod pace;
#[cfg(test)]
mod people;
mod request;
mod rotation;
mod routes;
mod senders;
mod socket;
mod store;
mod tls;
mod token;

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
pub use keeper::{Hand, Over, TokenRequest};
pub use limits::Limits;
pub use log_limits::Lines;
use log_limits::LogLimits;
pub use nodes::NodeAsked;
pub use tls::TlsError;

use crate::registry::{Event, Heard, Registry, Settings};

/// The interval of checks for what has ended.
const TICK: Duration = Duration::from_secs(1);
/// The time limit for telling all clients that this server stops.
const GOODBYE_WITHIN: Duration = Duration::from_secs(3);
/// The server renews its certificate after this: two thirds of its lifetime.
const RENEW_CERTIFICATE_AFTER: Duration = Duration::from_secs(60 * 24 * 3600);

/// The settings with which a server starts.
#[derive(Clone, Debug)]
pub struct Setup {
    /// The address to listen at.
    pub listen: SocketAddr,
    /// Names and addresses by which machines know the server; the address it listens at is one of them.
    pub names: Vec<String>,
    /// The directory of authorities, ledger and socket.
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

/// Why a server did not start.
#[derive(Debug, thiserror::Error)]
pub enum StartError {
    /// The state directory cannot be used.
    #[error("cannot use the directory {}", path.display())]
    Directory {
        /// The directory.
        path: PathBuf,
        /// The error of the operating system.
        source: std::io::Error,
    },
    /// The authorities cannot be read or made.
    #[error(transparent)]
    Authority(#[from] AuthorityError),
    /// TLS cannot use the authorities.
    #[error(transparent)]
    Tls(#[from] TlsError),
    /// The ledger cannot be opened.
    #[error(transparent)]
    Ledger(#[from] reveille_record::OpenError),
    /// The address cannot be bound.
    #[error("cannot listen at {address}")]
    Listen {
        /// The address.
        address: SocketAddr,
        /// The error of the operating system.
        source: std::io::Error,
    },
    /// The thread cannot be started.
    #[error("cannot start the registry's thread")]
    Thread(#[source] std::io::Error),
}

/// A started server, and its interface.
pub struct Server {
    /// The address at which the server listens.
    pub address: SocketAddr,
    /// The pins of the server's authorities.
    pub pins: Vec<String>,
    /// The handle to the registry.
    pub hand: Hand,
    /// Messages about machines.
    pub heard: mpsc::Receiver<Heard>,
    /// Tokens to make and to delete.
    pub token_requests: mpsc::Receiver<TokenRequest>,
    /// Nodes that the server asks about; to be dropped where there is no cluster.
    pub nodes: mpsc::Receiver<NodeAsked>,
    /// The listeners.
    pub run: Run,
}

/// The listeners, which run until the server stops.
pub struct Run {
    state: Arc<routes::ServerState>,
    listener: TcpListener,
    people: tokio::net::UnixListener,
    office: Arc<office::Office>,
    gate: gate::Gate,
    limits: Limits,
    directory: PathBuf,
    thread: std::thread::JoinHandle<()>,
}

/// Opens the ledger and binds the listeners. The server answers only once [`Run::until`] runs.
///
/// # Errors
///
/// A file that cannot be opened or read, or an address that cannot be bound.
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
    let acceptor = tls::TlsAcceptor::new(&authorities, authorities.serving(&names)?)?;
    let people = office::listen(&directory)
        .map_err(|source| StartError::Directory { path: admin::path(&directory), source })?;
    let pins = authorities.pins();
    let registry = Registry::restore(setup.settings, now, &records);
    let (hand, edges, thread) = keeper::start(registry, store, pins.clone()).map_err(StartError::Thread)?;
    let (asks, nodes) = nodes::Nodes::new(setup.pools.iter().map(|(roster, _)| roster.clone()).collect());
    let state = Arc::new(routes::ServerState {
        hand: hand.clone(),
        authorities: Mutex::new(authorities),
        acceptor: RwLock::new(acceptor),
        polls: long_poll::LongPolls::default(),
        paces: pace::Paces::default(),
        nodes: asks,
        version: setup.version,
        step_within: limits.step_within,
        connection_within: limits.connection_within,
        log_limits: LogLimits::default(),
        sessions: Arc::new(Semaphore::new(limits.connections_max)),
    });
    let office = office::Office { state: state.clone(), pools: setup.pools, names, port: address.port() };
    let gate = gate::Gate::new(limits);
    let office = Arc::new(office);
    let run = Run { state, listener, people, office, gate, limits, directory, thread };
    Ok(Server { address, pins, hand, heard: edges.heard, token_requests: edges.token_requests, nodes, run })
}

impl Run {
    /// Answers until the server is told to stop. Everything acknowledged is durable when this returns. False when the
    /// registry's thread ended on its own: its disk failed, and the process has to be restarted.
    pub async fn until(self, stop: watch::Receiver<bool>) -> bool {
        let Self { state, listener, people, office, gate, limits, directory, thread } = self;
        let hand = state.hand.clone();
        let mut parts = JoinSet::new();
        let names = office.names.clone();
        parts.spawn(office::serve(people, office, stop.clone()));
        parts.spawn(acceptor::serve(listener, state.clone(), gate, limits, stop.clone()));
        let told = tick(&state, &names, stop).await;
        drop(std::fs::remove_file(admin::path(&directory)));
        hand.end().await;
        // Connected machines are told that this server stops, and when to come again; the server does not wait for
        // machines that do not read.
        let over = async { while parts.join_next().await.is_some() {} };
        drop(tokio::time::timeout(GOODBYE_WITHIN, over).await);
        parts.abort_all();
        while parts.join_next().await.is_some() {}
        let joined = tokio::task::spawn_blocking(move || thread.join()).await;
        told && matches!(joined, Ok(Ok(())))
    }
}

/// Passes the time to the registry. False when the registry's thread has ended.
async fn tick(state: &routes::ServerState, names: &[String], mut stop: watch::Receiver<bool>) -> bool {
    let mut ticks = tokio::time::interval(TICK);
    ticks.set_missed_tick_behavior(tokio::time::MissedTickBehavior::Delay);
    let mut certificate = clock::Made::now();
    loop {
        tokio::select! {
            _ = ticks.tick() => {}
            // Also resolves when the sender of the stop signal is gone.
            _ = stop.wait_for(|stop| *stop) => return true,
        }
        if state.hand.say(Event::Tick).await.is_err() {
            return false;
        }
        state.polls.sweep();
        state.paces.forget();
        if certificate.is_over(RENEW_CERTIFICATE_AFTER) {
            certificate = clock::Made::now();
            if let Err(why) = state.reopen(names) {
                tracing::error!("the server's certificate cannot be renewed: {why}");
            }
        }
    }
}

fn make_private(directory: &Path) -> std::io::Result<()> {
    use std::os::unix::fs::PermissionsExt as _;
    std::fs::create_dir_all(directory)?;
    std::fs::set_permissions(directory, std::fs::Permissions::from_mode(0o700))
}
