//! `run`: monitors the machines of the rosters, and makes the repairs that the rosters allow.
//!
//! ```text
//!  rosters ─▶ log in: clusters, projects of clouds (each once) ─▶ ledgers: lock, restore
//!          ─▶ one driver for each roster, one watch for each cluster, one poller for each project ─▶ until told to stop
//! ```
//!
//! The command finds every mistake that it can find before anything starts: in rosters, kubeconfigs and entries of
//! clouds, and ledgers that another process holds. A problem that may pass (a cloud that does not answer yet) does not
//! delay the start.

use std::collections::BTreeMap;
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::time::Duration;

use anyhow::{Context as _, anyhow};
use reveille_cloud::provider::{Connected, Unconnected, Wants};
use reveille_core::engine::{Restored, Start, State};
use reveille_core::event::{ClusterFact, Command, Event};
use reveille_core::model::id::{CloudName, ClusterUid, RosterName};
use reveille_core::model::roster::{Mode, Pool};
use reveille_core::record::Record;
use reveille_diagnose::Judge;
use reveille_kube::Cluster;
use reveille_record::OpenError;
use reveille_record::recording::RecordingConfig;
use reveille_wire::recording::{Header, Memory};
use reveille_wire::report::Report;
use reveille_wire::roster::{CheckedRoster, CloudRef};
use tokio::signal::unix::{Signal, SignalKind, signal};
use tokio::sync::{mpsc, watch};
use tokio::task::{JoinHandle, JoinSet};

use super::{Answer, Context, printing};
use crate::adapters::agents::{AgentOrders, AgentReports};
use crate::adapters::cloud::{CloudReader, Strangers};
use crate::adapters::cluster::{self, ClusterAdapter};
use crate::adapters::machines::{self, NodesFrom};
use crate::adapters::poller::{Pace, poll};
use crate::adapters::post::Listener;
use crate::adapters::{Adapters, LimitedAdapter, providers};
use crate::cli;
use crate::cli::exit::Exit;
use crate::cli::failure::Failure;
use crate::control_socket::server;
use crate::driver::alone::{Identity, Presence, Watcher};
use crate::driver::clock;
use crate::driver::engine_host::{EngineHost, Hearer};
use crate::driver::executor::Executor;
use crate::driver::ledger_store::{self, LedgerStoreError, OpenLedgerStore};
use crate::driver::ledger_writer::LedgerWriter;
use crate::driver::ownership_check::OwnershipCheck;
use crate::driver::pauses::{self, PauseContext, ReadPauses};
use crate::driver::recorder::{ENGINE, Recorder};
use crate::driver::{Driver, Ended, INBOX_MAX, Until};
use crate::hot::snapshot::HotSnapshot;
use crate::hot::watcher::HotWatchers;
use crate::registration::bridge::Engine;
use crate::registration::nodes::NodeIndex;
use crate::registration::sighted::Telling;
use crate::registration::{self, Site};
use crate::view::status;

/// The most facts of a cluster that wait for the driver.
const FACTS_MAX: usize = 1024;
/// The longest wait for background tasks at the end.
const TASKS_WITHIN: Duration = Duration::from_secs(2);

/// One roster, ready for its driver.
struct Prepared {
    checked: CheckedRoster,
    judge: Arc<Judge>,
    state_dir: PathBuf,
    cluster: Cluster,
    ledger_store: OpenLedgerStore,
    events: mpsc::Sender<Event>,
    inbox: mpsc::Receiver<Event>,
    answers: watch::Sender<Option<bool>>,
    /// The Nodes and the ids that they carry, for the registration server.
    node_index: NodeIndex,
    /// The requests of the engine to agents; without a registration server they lead nowhere.
    orders: AgentOrders,
    /// The channel for facts about instances; `None` without a registration server.
    telling: Option<Telling>,
}

impl Prepared {
    /// What the registration server needs from the roster.
    fn site(&mut self) -> (RosterName, Site) {
        let roster = &self.checked.roster;
        let (orders, asks) = AgentOrders::new();
        self.orders = orders;
        let (telling, sighted) = Telling::new();
        self.telling = Some(telling);
        let site = Site {
            pools: roster.pools.keys().cloned().collect(),
            cluster: self.cluster.clone(),
            answers: self.answers.subscribe(),
            node_index: self.node_index.clone(),
            engine: Engine { reports: AgentReports::new(self.events.clone()), asks },
            sighted,
        };
        (roster.name.clone(), site)
    }
}

/// The clouds of one roster.
#[derive(Clone, Default)]
struct Reached {
    adapters: BTreeMap<CloudName, LimitedAdapter>,
    strangers: BTreeMap<CloudName, Strangers>,
}

/// Everything that had to be ready before the first loop begins.
struct Ready {
    rosters: Vec<(Prepared, Reached, RosterServices)>,
    background: JoinSet<()>,
    registration: Option<registration::Registration>,
    watchers: JoinSet<()>,
    /// Becomes true when the last call was answered: only then may another controller act.
    released: watch::Sender<bool>,
}

/// `run`.
pub(crate) async fn run(context: &Context, args: &cli::controller::Run) -> Result<Answer, Failure> {
    let (stop, stopped) = watch::channel(false);
    // Signals come first: a service manager may end the process while the first login hangs.
    let signals = heed_signals(stop.clone());
    let ready = tokio::select! {
        ready = get_ready(context, args, &stop, &stopped) => ready?,
        () = until_told(stopped.clone()) => return Ok(Answer::fine(String::new())),
    };
    let Ready { rosters, mut background, registration, mut watchers, released } = ready;
    let mut drivers = JoinSet::new();
    for (index, (prepared, clouds, services)) in rosters.into_iter().enumerate() {
        let driver = launch(prepared, clouds, services, args, &stopped, &mut background)?;
        let until =
            if args.once { Until::Settled(Duration::from_secs(args.within.into())) } else { Until::Told };
        drivers.spawn(async move { (index, driver.run(until).await) });
    }
    let ended = attend(drivers, &mut background, &stop).await;
    signals.abort();
    released.send_replace(true);
    while watchers.join_next().await.is_some() {}
    let registered = match registration {
        Some(registration) => registration.over().await,
        None => true,
    };
    let over = async { while background.join_next().await.is_some() {} };
    if tokio::time::timeout(TASKS_WITHIN, over).await.is_err() {
        background.abort_all();
    }
    let ended = ended?;
    if !registered {
        let error = anyhow!("the registration server ended: it could not keep what it must remember");
        return Err(Failure::internal(error).next("start it again; the log above says more"));
    }
    if args.once { statuses(context, &ended) } else { Ok(Answer::fine(String::new())) }
}

/// Opens the ledgers, logs in, starts to listen, and finds out whether another controller acts. No machine
/// is judged before it ends.
async fn get_ready(
    context: &Context,
    args: &cli::controller::Run,
    stop: &watch::Sender<bool>,
    stopped: &watch::Receiver<bool>,
) -> Result<Ready, Failure> {
    let mut prepared = Vec::new();
    for checked in context.rosters()? {
        prepared.push(prepare(context, checked).await?);
    }
    let mut background = JoinSet::new();
    let reached = clouds(&prepared, stopped, &mut background).await?;
    let sites = if args.listen.is_some() {
        prepared.iter_mut().map(Prepared::site).collect()
    } else {
        BTreeMap::new()
    };
    let registration =
        registration::begin(context.registration_dir()?, args, sites, stop, &mut background).await?;
    let mut hot_watchers = HotWatchers::new(stopped.clone());
    let (released, release) = watch::channel(false);
    let mut watchers = JoinSet::new();
    let mut rosters = Vec::new();
    for (index, prepared) in prepared.into_iter().enumerate() {
        let clouds = reached.get(&index).cloned().unwrap_or_default();
        let hot_snapshot = hot_watchers.begin(&prepared.checked, &prepared.cluster, &mut background);
        let presence = watch_lease(&prepared, args, &release, &mut watchers).await?;
        rosters.push((prepared, clouds, RosterServices { hot_snapshot, presence }));
    }
    Ok(Ready { rosters, background, registration, watchers, released })
}

/// Waits for all drivers. When a required part fails, everything stops: the service manager starts the process again, and
/// a controller without a required part cannot do its work.
async fn attend(
    mut drivers: JoinSet<(usize, (State, Ended))>,
    background: &mut JoinSet<()>,
    stop: &watch::Sender<bool>,
) -> Result<BTreeMap<usize, (State, Ended)>, Failure> {
    let mut ended = BTreeMap::new();
    let mut broken: Option<anyhow::Error> = None;
    loop {
        tokio::select! {
            driver = drivers.join_next() => match driver {
                None => break,
                Some(Ok((_, (state, Ended::LedgerOver)))) => {
                    let name = state.context().roster.name.clone();
                    broken.get_or_insert(anyhow!("the ledger of roster {name} takes nothing more"));
                    stop.send_replace(true);
                }
                Some(Ok((_, (state, Ended::Fenced)))) => {
                    let context = state.context();
                    let name = &context.roster.name;
                    broken.get_or_insert(anyhow!("another process took over the ledger of roster {name}"));
                    stop.send_replace(true);
                }
                Some(Ok((index, end))) => {
                    ended.insert(index, end);
                }
                Some(Err(error)) => {
                    broken.get_or_insert(anyhow::Error::new(error).context("a roster's loop failed"));
                    stop.send_replace(true);
                }
            },
            Some(Err(error)) = background.join_next() => {
                broken.get_or_insert(anyhow::Error::new(error).context("a watch or a poller failed"));
                stop.send_replace(true);
            }
        }
    }
    stop.send_replace(true);
    match broken {
        None => Ok(ended),
        Some(error) => Err(Failure::internal(error).next("start it again; the log above says more")),
    }
}

/// Opens what one roster needs before anything starts.
async fn prepare(context: &Context, checked: CheckedRoster) -> Result<Prepared, Failure> {
    let name = checked.roster.name.clone();
    let judge = context.judge()?;
    let cluster = Cluster::connect(&cluster::config(&checked.cluster)).await.map_err(|error| {
        Failure::usage(
            anyhow::Error::new(error).context(format!("cannot reach the cluster of roster {name}")),
        )
    })?;
    let cluster = if checked.has_cloud() { cluster } else { cluster.without_cloud() };
    let state_dir = context.state_dir(&name)?;
    let ledger_store = ledger_store::open(&state_dir, "reveille run", clock::wall()).map_err(|error| {
        let held = matches!(error, LedgerStoreError::Open(OpenError::Held { .. }));
        let unread = matches!(error, LedgerStoreError::Record { .. });
        let error = anyhow::Error::new(error).context(format!("cannot watch over roster {name}"));
        if held {
            Failure::usage(error).next("ask the one that runs: reveille status")
        } else if unread {
            Failure::internal(error)
                .next("start the version that wrote the ledger, or a newer one; nothing was changed")
        } else {
            Failure::internal(error)
        }
    })?;
    let (events, inbox) = mpsc::channel(INBOX_MAX);
    let answers = watch::Sender::new(None);
    Ok(Prepared {
        checked,
        judge,
        state_dir,
        cluster,
        ledger_store,
        events,
        inbox,
        answers,
        node_index: NodeIndex::default(),
        orders: AgentOrders::default(),
        telling: None,
    })
}

/// One poller for each project, which all its rosters share. Returns each roster's clouds by the roster's index.
async fn clouds(
    prepared: &[Prepared],
    stopped: &watch::Receiver<bool>,
    background: &mut JoinSet<()>,
) -> Result<BTreeMap<usize, Reached>, Failure> {
    let mut shared: BTreeMap<&CloudRef, Vec<(usize, &CloudName)>> = BTreeMap::new();
    for (index, one) in prepared.iter().enumerate() {
        for (name, at) in &one.checked.clouds {
            shared.entry(at).or_default().push((index, name));
        }
    }
    let mut reached: BTreeMap<usize, Reached> = BTreeMap::new();
    for (at, sharers) in shared {
        let Some((first_index, first)) = sharers.first().copied() else { continue };
        let project = match at {
            CloudRef::Cluster(_) => {
                Some(machines::connected(prepared[first_index].cluster.clone(), NodesFrom::Watch))
            }
            _ => connect(first, at).await?,
        };
        let want =
            |(index, name): &(usize, &CloudName)| (prepared[*index].checked.roster.clone(), (*name).clone());
        let wants: Wants = sharers.iter().map(want).collect();
        let period = wants.iter().map(|(roster, _)| roster.timing.cloud_period).min().unwrap_or_default();
        let full = wants.iter().map(|(roster, _)| roster.timing.cloud_full_period).min().unwrap_or_default();
        let (reader, cloud, kick) = CloudReader::new(first.clone(), at.clone(), wants, project);
        let adapter = LimitedAdapter::new(Arc::new(cloud));
        let mut listeners = Vec::new();
        for (index, name) in sharers {
            let clouds = reached.entry(index).or_default();
            clouds.adapters.insert(name.clone(), adapter.clone());
            // Labels are no marks that an operator put on: one may match all Nodes, or none for a while.
            if !at.is_cluster() {
                clouds.strangers.insert(name.clone(), reader.strangers());
            }
            listeners.push(Listener { cloud: name.clone(), events: prepared[index].events.clone() });
        }
        let stop = until_told(stopped.clone());
        background.spawn(poll(reader, listeners, Pace::of(period, full), kick, stop));
    }
    Ok(reached)
}

/// Logs in. A mistake in the configuration ends the start; the poller tries again after any other failure.
async fn connect(name: &CloudName, at: &CloudRef) -> Result<Option<Connected>, Failure> {
    match providers::connect(name.clone(), at).await {
        Ok(project) => Ok(Some(project)),
        Err(Unconnected { error, hopeless: true }) => Err(Failure::usage(anyhow::Error::new(error))),
        Err(Unconnected { error, .. }) => {
            let cloud = providers::entry(at);
            tracing::warn!(%cloud, "{error}. It is tried again; until then nothing is judged from it");
            Ok(None)
        }
    }
}

/// What runs beside a roster's loop and its reports.
struct RosterServices {
    hot_snapshot: HotSnapshot,
    /// `None` for a roster that allows no repair, and for a dry run: they write nothing, not even a Lease.
    presence: Option<Presence>,
}

/// Finds out whether another controller acts for the roster.
async fn watch_lease(
    prepared: &Prepared,
    args: &cli::controller::Run,
    release: &watch::Receiver<bool>,
    watchers: &mut JoinSet<()>,
) -> Result<Option<Presence>, Failure> {
    if args.dry_run || !may_act(&prepared.checked) {
        return Ok(None);
    }
    let identity = Identity::of(&prepared.state_dir).context("cannot read the ledger's lock file")?;
    let name = prepared.checked.roster.name.as_str();
    let watcher = Watcher::new(prepared.cluster.clone(), name, identity, clock::system());
    let presence = watcher.presence();
    watchers.spawn(watcher.run(until_told(release.clone())));
    presence.first_answer().await;
    Ok(Some(presence))
}

/// Whether the roster allows any repair.
fn may_act(checked: &CheckedRoster) -> bool {
    let acts = |mode: Mode| mode == Mode::Act;
    let pool = |pool: &Pool| {
        let repair = pool.repair;
        [repair.network, repair.rejoin, repair.reboot, repair.replace, repair.cleanup].into_iter().any(acts)
    };
    checked.roster.pools.values().any(pool) || acts(checked.roster.access.repair)
}

/// A cloud with another name is a new cloud: its machines would have no history. The controller would treat machines that
/// were removed on purpose, or kept for an inspection, as unknown ones.
fn unnamed_clouds(state: &State, forgotten: &[String], state_dir: &Path) -> Result<(), Failure> {
    let unnamed = state.unnamed_clouds();
    let Some((cloud, machines)) =
        unnamed.iter().find(|(cloud, _)| !forgotten.iter().any(|name| name == cloud.as_str()))
    else {
        return Ok(());
    };
    Err(Failure::usage(anyhow!(
        "the ledger in {} knows {machines} machines of the cloud {cloud}, which the roster does not name. Under another name they \
         would count as new machines: give the cloud its old name back. If they are no concern of this roster any more: \
         reveille run --forget-cloud {cloud}",
        state_dir.display()
    )))
}

/// Assembles the loop of one roster.
fn launch(
    prepared: Prepared,
    clouds: Reached,
    services: RosterServices,
    args: &cli::controller::Run,
    stopped: &watch::Receiver<bool>,
    background: &mut JoinSet<()>,
) -> Result<Driver, Failure> {
    let Prepared {
        checked,
        judge,
        state_dir,
        cluster,
        ledger_store,
        events,
        inbox,
        answers,
        node_index,
        orders,
        telling,
    } = prepared;
    let OpenLedgerStore { ledger_store, records, fence, last_alive } = ledger_store;
    let now = clock::wall();
    announce(&checked, args.dry_run, records.len());
    let how = Restored { start: Start { fence, acting: !args.dry_run }, now, last_alive };
    let recorder = record(args, &checked, how, &records)?;
    if let Some(telling) = &telling {
        telling.tell_all(&records);
    }
    let state = State::restore(checked.roster, how, records);
    unnamed_clouds(&state, &args.forget_cloud, &state_dir)?;
    let (mut ledger_writer, acks) =
        LedgerWriter::start(Box::new(ledger_store)).context("cannot start the ledger's thread")?;
    let started = Record::Started { at: now, fence };
    let ended = |_| Failure::internal(anyhow!("cannot begin in the ledger: its thread has ended"));
    ledger_writer.note(started).map_err(ended)?;
    let Reached { adapters: clouds, strangers } = clouds;
    let ownership_check = OwnershipCheck::new(checked.written, strangers);
    let cluster_adapter = LimitedAdapter::new(Arc::new(ClusterAdapter(cluster.clone())));
    let adapters = Adapters { clouds, cluster: cluster_adapter, agents: orders };
    let RosterServices { hot_snapshot, presence } = services;
    let fence = ledger_store::fence_check(&state_dir);
    let leads = match presence.clone() {
        Some(presence) => presence.and(fence),
        None => fence,
    };
    let executor = Executor::new(adapters, judge, leads, events.clone());
    let pauses = with_presence(pauses::reader(&state_dir), presence.clone());
    if let Some(cluster) = &args.confirm_cluster {
        let confirmed = Command::ConfirmCluster(ClusterUid::from(cluster.as_str()));
        // The inbox is still empty, so this event comes before any fact of the cluster.
        events.try_send(Event::Command(confirmed)).context("cannot confirm the cluster")?;
    }
    for cloud in &args.forget_cloud {
        let forgotten = Command::ForgetCloud(CloudName::from(cloud.as_str()));
        events.try_send(Event::Command(forgotten)).context("cannot forget the cloud")?;
    }
    background.spawn(watch_cluster(cluster, events, answers, node_index, stopped.clone()));
    let (asks, questions) = mpsc::channel(16);
    let extend: server::ReportExtension = Arc::new(move |report| {
        hot_snapshot.fill(report);
        if let Report::StatusReport(status) = report {
            status.alone = presence.as_ref().and_then(Presence::says);
        }
    });
    background.spawn(server::serve(state_dir.clone(), asks, extend, stopped.clone()));
    let hearer = telling.map(|telling| -> Hearer { Box::new(move |record| telling.tell(record)) });
    Ok(Driver {
        engine_host: EngineHost::new(state, ledger_writer).recorded_by(recorder).told_to(hearer),
        acks,
        inbox,
        executor,
        pauses: PauseContext::new(pauses, ownership_check),
        stop: stopped.clone(),
        questions,
        clock: clock::system(),
    })
}

/// The pauses of operators, and a pause of everything while another controller may act.
fn with_presence(read: ReadPauses, presence: Option<Presence>) -> ReadPauses {
    let Some(presence) = presence else { return read };
    Box::new(move || {
        let (mut pauses, unreadable) = read();
        pauses.extend(presence.pause());
        (pauses, unreadable)
    })
}

/// Begins the recording of one roster, where the command line asks for one.
fn record(
    args: &cli::controller::Run,
    checked: &CheckedRoster,
    how: Restored,
    records: &[Record],
) -> Result<Option<Recorder>, Failure> {
    let Some(directory) = &args.record else { return Ok(None) };
    let memory = Memory { now: how.now, last_alive: how.last_alive, records: records.to_vec() };
    let header = Header {
        program: env!("CARGO_PKG_VERSION").to_owned(),
        engine: ENGINE.to_owned(),
        of: "run".to_owned(),
        roster: checked.roster.clone(),
        start: how.start,
        restored: Some(memory),
    };
    let total_bytes_max = u64::from(args.record_max_mib) << 20;
    let segment_bytes_max = RecordingConfig::STANDARD.segment_bytes_max.min(total_bytes_max / 4);
    let config = RecordingConfig { total_bytes_max, segment_bytes_max, ..RecordingConfig::STANDARD };
    let recorder = Recorder::start(directory, &header, how.now, config)
        .map_err(|error| Failure::usage(anyhow::Error::new(error).context("cannot begin the recording")))?;
    Ok(Some(recorder))
}

fn announce(checked: &CheckedRoster, dry_run: bool, remembered: usize) {
    let name = checked.roster.name.as_str();
    let acts = may_act(checked);
    let mode = match (dry_run, acts) {
        (true, _) => "dry run: decides and reports, changes nothing",
        (false, true) => "repairs what the roster enables",
        (false, false) => "observes only: the roster enables no repair yet",
    };
    let pools = checked.roster.pools.len();
    tracing::info!(roster = name, pools, remembered, "{mode}");
}

/// Passes the facts of the cluster into the inbox.
async fn watch_cluster(
    cluster: Cluster,
    events: mpsc::Sender<Event>,
    answers: watch::Sender<Option<bool>>,
    node_index: NodeIndex,
    stopped: watch::Receiver<bool>,
) {
    let (sender, mut facts) = mpsc::channel(FACTS_MAX);
    let forward = async {
        while let Some(fact) = facts.recv().await {
            let answers_now = Some(!matches!(fact, ClusterFact::Failed(_)));
            answers.send_if_modified(|before| std::mem::replace(before, answers_now) != answers_now);
            node_index.heed(&fact);
            if events.send(Event::Cluster(fact)).await.is_err() {
                return;
            }
        }
    };
    tokio::join!(cluster.watch(sender, until_told(stopped)), forward);
}

async fn until_told(mut stopped: watch::Receiver<bool>) {
    // A closed channel counts as the request to stop.
    drop(stopped.wait_for(|stop| *stop).await);
}

/// The first signal begins the stop; the second one ends the process at once. The handlers are installed when this returns.
fn heed_signals(stop: watch::Sender<bool>) -> JoinHandle<()> {
    let signals = (signal(SignalKind::terminate()), signal(SignalKind::interrupt()));
    tokio::spawn(async move {
        if let (Ok(terminate), Ok(interrupt)) = signals {
            obey(terminate, interrupt, stop).await;
        } else {
            tracing::error!("signals cannot be heeded; only killing ends this process");
        }
    })
}

async fn obey(mut terminate: Signal, mut interrupt: Signal, stop: watch::Sender<bool>) {
    let mut told = false;
    loop {
        tokio::select! {
            _ = terminate.recv() => {}
            _ = interrupt.recv() => {}
        }
        if told {
            tracing::warn!("told twice to stop: ends at once; the next start reads back what was on its way");
            std::process::exit(Exit::Internal.code().into());
        }
        told = true;
        tracing::info!("stopping: begins nothing more");
        stop.send_replace(true);
    }
}

/// The status reports at the end of `--once`.
fn statuses(context: &Context, ended: &BTreeMap<usize, (State, Ended)>) -> Result<Answer, Failure> {
    let mut texts = Vec::new();
    let mut exit = Exit::NoProblem;
    for (state, how) in ended.values() {
        let (text, code) =
            printing::print(context, Report::StatusReport(status::report(&state.context())), false)?;
        texts.push(text);
        exit = exit.max(code);
        if *how == Ended::TimeOver {
            tracing::warn!(
                "something was still on its way when the time was over; the next run goes on with it"
            );
        }
    }
    Ok(Answer { text: context.join(&texts), exit })
}
