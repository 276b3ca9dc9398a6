//! The registration server: `run --listen` starts it beside the engine, on a thread of its own.
//!
//! ```text
//!  rosters, --plans ─▶ begin ─▶ thread: reveille_registrar::server ─┬▶ TokenRequest ──▶ token_issuer: bootstrap tokens
//!                                                                   ├▶ NodeAsked ─▶ nodes: the cluster's Node of a name
//!                                                                   └▶ Heard ─▶ bridge: the log, and each engine's facts
//!                        its beats ─▶ liveness: does the server hear the machines ─▶ each engine's facts
//!  the cluster's watch ─▶ Answers ─▶ which roles exist ─▶ Hand       each engine's records ─▶ sighted: deleted instances ─▶ Hand
//! ```
//!
//! It has a thread of its own. Five thousand machines that connect at once must not delay a decision of the engine, and a
//! decision must not delay a heartbeat.

pub(crate) mod asked;
pub(crate) mod bridge;
pub(crate) mod evidence;
mod liveness;
pub(crate) mod nodes;
mod rooms;
pub(crate) mod sighted;
#[cfg(test)]
mod tests;
mod token_issuer;

use std::collections::{BTreeMap, BTreeSet};
use std::net::SocketAddr;
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::Duration;

use anyhow::anyhow;
use reveille_core::model::id::{PoolName, RosterName};
use reveille_kube::Cluster;
use reveille_node::private;
use reveille_registrar::plans_watch::Watch;
use reveille_registrar::registry::{Event, Heard, Settings, What};
use reveille_registrar::server::{Hand, Limits, NodeAsked, Run, Setup, StartError, TokenRequest, start};
use reveille_wire::agent::Role;
use tokio::sync::{mpsc, oneshot, watch};
use tokio::task::JoinSet;

use crate::cli;
use crate::cli::failure::Failure;
use crate::otlp::{self, Exporter};

use nodes::NodeIndex;

/// The most archives that wait for the disk.
const ENDINGS_MAX: usize = 4;
/// How often the server reads the plans again.
const PLANS_EVERY: Duration = Duration::from_secs(5);

/// Whether a roster's API server answers, as its watch finds; `None` before the first result.
pub(crate) type Answers = watch::Receiver<Option<bool>>;

/// A roster and its cluster, as the server needs them.
pub(crate) struct Site {
    /// The roster's pools.
    pub(crate) pools: Vec<PoolName>,
    /// The cluster in which its tokens are made.
    pub(crate) cluster: Cluster,
    /// Whether the API server answers.
    pub(crate) answers: Answers,
    /// The names and ids of its Nodes.
    pub(crate) node_index: NodeIndex,
    /// The channels for its engine's facts and requests.
    pub(crate) engine: bridge::Engine,
    /// What its engine knows about instances.
    pub(crate) sighted: sighted::Sighted,
}

/// The server's thread, running.
pub(crate) struct Registration {
    failed: Arc<AtomicBool>,
    thread: std::thread::JoinHandle<()>,
}

impl Registration {
    /// Waits for the end of the thread after the request to stop. True when it ended without a failure.
    pub(crate) async fn over(self) -> bool {
        let thread = self.thread;
        let joined = tokio::task::spawn_blocking(move || thread.join()).await;
        matches!(joined, Ok(Ok(()))) && !self.failed.load(Ordering::Acquire)
    }
}

/// What the thread returns once it listens.
struct Begun {
    address: SocketAddr,
    pins: Vec<String>,
    hand: Hand,
    heard: mpsc::Receiver<Heard>,
    token_requests: mpsc::Receiver<TokenRequest>,
    nodes: mpsc::Receiver<NodeAsked>,
    beats: watch::Receiver<()>,
}

/// Starts the server, where the command line asks for it. `directory` is the folder of its state.
pub(crate) async fn begin(
    directory: PathBuf,
    args: &cli::controller::Run,
    sites: BTreeMap<RosterName, Site>,
    stop: &watch::Sender<bool>,
    background: &mut JoinSet<()>,
) -> Result<Option<Registration>, Failure> {
    let Some(listen) = args.listen else { return Ok(None) };
    let pools: BTreeSet<(RosterName, PoolName)> = sites
        .iter()
        .flat_map(|(name, site)| site.pools.iter().map(|pool| (name.clone(), pool.clone())))
        .collect();
    let plans = args.plans.as_ref().map(|path| begin_plans(path, &pools)).transpose()?;
    private::folder(&directory)
        .map_err(|failure| Failure::usage(failure).next("name another place with --state"))?;
    let exporter = exporter(args, stop, background)?;
    let setup = Setup {
        listen,
        names: args.listen_name.clone(),
        directory: directory.clone(),
        pools,
        settings: Settings::default(),
        limits: Limits::default(),
        version: env!("CARGO_PKG_VERSION"),
    };
    let failed = Arc::new(AtomicBool::new(false));
    let (thread, begun) = launch(setup, stop, failed.clone()).await?;
    for pin in &begun.pins {
        tracing::info!(address = %begun.address, %pin, "machines can register");
    }
    if let Some(watch) = plans {
        let over = |error| Failure::internal(anyhow::Error::new(error));
        begun.hand.say(Event::PlansRead(watch.plans().clone())).await.map_err(over)?;
        background.spawn(watch_plans(begun.hand.clone(), watch, stop.subscribe()));
    }
    let (mut clusters, mut engines, mut sources) = (BTreeMap::new(), BTreeMap::new(), BTreeMap::new());
    let reports = sites.values().map(|site| site.engine.reports.clone()).collect();
    background.spawn(liveness::listen(begun.beats, reports, liveness::DEAF_AFTER));
    for (roster, site) in sites {
        background.spawn(tell_roles(begun.hand.clone(), roster.clone(), site.answers.clone()));
        background.spawn(sighted::pass_on(begun.hand.clone(), roster.clone(), site.sighted));
        engines.insert(roster.clone(), site.engine);
        sources
            .insert(roster.clone(), nodes::Source::new(site.cluster.clone(), site.node_index, site.answers));
        clusters.insert(roster, site.cluster);
    }
    let (endings, ended) = mpsc::channel(ENDINGS_MAX);
    background.spawn(keep_endings(evidence::folder(&directory), ended));
    background.spawn(nodes::serve(begun.nodes, sources));
    background.spawn(token_issuer::serve(begun.token_requests, clusters));
    background.spawn(bridge::carry(begun.hand, begun.heard, engines, exporter, endings));
    Ok(Some(Registration { failed, thread }))
}

/// Reads the plans. A plan that cannot be used is logged; the machines of its pool wait, and repairs go on.
fn begin_plans(path: &Path, pools: &BTreeSet<(RosterName, PoolName)>) -> Result<Watch, Failure> {
    let (watch, refused) = Watch::begin(path.to_owned(), pools.clone()).map_err(Failure::usage)?;
    for error in refused {
        let error = anyhow::Error::new(error);
        tracing::error!("machines of this pool wait until its plan is corrected: {error:#}");
    }
    Ok(watch)
}

/// Sends joins as traces, where the operator enables it.
fn exporter(
    args: &cli::controller::Run,
    stop: &watch::Sender<bool>,
    background: &mut JoinSet<()>,
) -> Result<Option<Exporter>, Failure> {
    let config = otlp::Config::read(args, |name| std::env::var(name).ok()).map_err(Failure::usage)?;
    let Some(config) = config else { return Ok(None) };
    let (exporter, sender) = Exporter::new(config).map_err(|error| {
        Failure::internal(anyhow::Error::new(error).context("cannot set up TLS for traces"))
    })?;
    background.spawn(sender.run(stop.subscribe()));
    Ok(Some(exporter))
}

async fn launch(
    setup: Setup,
    stop: &watch::Sender<bool>,
    failed: Arc<AtomicBool>,
) -> Result<(std::thread::JoinHandle<()>, Begun), Failure> {
    let (told, begun) = oneshot::channel();
    let stop = stop.clone();
    let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build().map_err(|error| {
        Failure::internal(anyhow::Error::new(error).context("cannot start the registration server's runtime"))
    })?;
    let work = move || {
        runtime.block_on(async move {
            if let Some(run) = open(setup, told).await
                && !run.until(stop.subscribe()).await
            {
                failed.store(true, Ordering::Release);
                stop.send_replace(true);
            }
        });
    };
    let thread = std::thread::Builder::new().name("registration".to_owned()).spawn(work);
    let thread = thread
        .map_err(|error| Failure::internal(anyhow::Error::new(error).context("cannot start a thread")))?;
    let begun = begun
        .await
        .map_err(|_| Failure::internal(anyhow!("the registration server ended before it began")))?;
    let begun = begun.map_err(|error| {
        let failure =
            Failure::usage(anyhow::Error::new(error).context("cannot start the registration server"));
        failure.next("name a free address with --listen, or leave --listen out")
    })?;
    Ok((thread, begun))
}

async fn open(setup: Setup, told: oneshot::Sender<Result<Begun, StartError>>) -> Option<Run> {
    let (begun, run) = match start(setup).await {
        Ok(server) => {
            let (beating, beats) = watch::channel(());
            tokio::spawn(liveness::beat(server.hand.clone(), beating, liveness::EVERY));
            let begun = Begun {
                address: server.address,
                pins: server.pins,
                hand: server.hand,
                heard: server.heard,
                token_requests: server.token_requests,
                nodes: server.nodes,
                beats,
            };
            (Ok(begun), Some(server.run))
        }
        Err(error) => (Err(error), None),
    };
    told.send(begun).ok()?;
    run
}

/// Writes the evidence of machines to disk, one archive after the other, in a task of its own.
async fn keep_endings(folder: PathBuf, mut endings: mpsc::Receiver<evidence::Ending>) {
    while let Some(ending) = endings.recv().await {
        let (folder, node) = (folder.clone(), ending.report.node.clone());
        let outcome = ending.report.outcome.clone();
        match tokio::task::spawn_blocking(move || evidence::keep(&folder, ending)).await {
            Ok(Ok(())) => {
                tracing::info!(%node, outcome, "what was asked of a machine has ended, and is kept")
            }
            Ok(Err(error)) => tracing::error!(%node, "what a machine sent cannot be kept: {error}"),
            Err(_) => return,
        }
    }
}

/// Reads changed plans again, and passes them to the machines whose plan changed. A broken file changes nothing.
async fn watch_plans(hand: Hand, mut watch: Watch, mut stop: watch::Receiver<bool>) {
    loop {
        tokio::select! {
            () = tokio::time::sleep(PLANS_EVERY) => {}
            _ = stop.wait_for(|stop| *stop) => return,
        }
        // The files may lie on a disk that hangs.
        let looked = tokio::task::spawn_blocking(move || {
            let read = watch.look();
            (watch, read)
        });
        let Ok((after, read)) = looked.await else { return };
        watch = after;
        match read {
            None => {}
            Some(Ok(plans)) => {
                tracing::info!(plans = plans.0.len(), "the plans were changed, and are read again");
                if hand.say(Event::PlansRead(plans)).await.is_err() {
                    return;
                }
            }
            Some(Err(error)) => {
                let error = anyhow::Error::new(error);
                tracing::error!(
                    "the plans were changed and cannot be followed; those of before stay: {error:#}"
                );
            }
        }
    }
}

/// An API server that answers has a control plane and etcd behind it. An API server that does not answer proves nothing.
async fn tell_roles(hand: Hand, roster: RosterName, mut answers: Answers) {
    loop {
        let present = match *answers.borrow_and_update() {
            Some(true) => Some(BTreeSet::from([Role::ControlPlane, Role::Etcd])),
            Some(false) | None => None,
        };
        if hand.say(Event::ClusterSaid { roster: roster.clone(), present }).await.is_err()
            || answers.changed().await.is_err()
        {
            return;
        }
    }
}

/// Logs a report of an agent.
fn log(Heard { who, what }: &Heard) {
    let (machine, node) = (&who.machine, &who.node_name);
    match what {
        What::Enrolled => tracing::info!(%machine, %node, "is known from now on"),
        What::Arrived { session, joined } => tracing::info!(%machine, %node, session, joined, "is there"),
        What::Left => tracing::info!(%machine, %node, "left"),
        What::Forgotten => {
            tracing::info!(%machine, %node, "is forgotten: its instance is gone for good, and its certificate counts no more");
        }
        What::Silent => tracing::warn!(%machine, %node, "is silent"),
        What::Staged(report) => {
            let error = report.error.as_ref().map(|error| error.text.as_str()).unwrap_or_default();
            tracing::info!(%machine, %node, stage = %report.stage, step = ?report.step, attempts = report.attempts, error);
        }
        What::JoinOver(over) => {
            let took = over.ended.since(over.flow.began);
            tracing::info!(%machine, %node, took_s = took.ms / 1000, "its join is over: {}", over.end.name());
        }
        What::Rival(part, _, facts) => {
            tracing::warn!(%machine, %node, part = part.name(), rival = %facts.hostname, "another machine claims to be it");
        }
        What::NoPeerAt(at) => {
            tracing::warn!(%machine, %node, %at, "says that it answers its peers where no peer can be; peers are not told");
        }
        What::Alive { .. }
        | What::Stepped(_)
        | What::Answered(..)
        | What::Unanswered(..)
        | What::Evidence(..) => {
            tracing::debug!(%machine, %node, "{what:?}");
        }
    }
}
