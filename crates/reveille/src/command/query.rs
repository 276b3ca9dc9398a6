//! A one-time query: the engine gets one reading of all sources and the records of the ledger, and starts no repair.
//!
//! ```text
//!  ledger (read only) ─▶ State::restore ─┐
//!  clouds, one full listing each ────────┼▶ step … step ─▶ reads that it asks for ─▶ step … ─▶ State
//!  cluster: nodes, leases, events ───────┘
//! ```
//!
//! Nothing is written: records are acknowledged in memory, calls are never made, and the ledger's lock stays free. So a
//! look works beside a running controller. For a source that cannot be read, the engine reports the state as unknown.

use std::path::Path;
use std::sync::Arc;
use std::time::Duration;

use futures::StreamExt as _;
use futures::stream::FuturesUnordered;
use reveille_cloud::provider::Connected;
use reveille_core::effect::{Effect, Look, ReadError, ReadErrorKind};
use reveille_core::engine::{Restored, Start, State};
use reveille_core::event::{Answer, CloudFact, ClusterFact, Command, Event};
use reveille_core::model::id::{CloudName, Fence};
use reveille_core::model::time::{Span, Time};
use reveille_diagnose::Judge;
use reveille_kube::Cluster;
use reveille_record::{Holder, read_only};
use reveille_wire::ledger::LedgerLine;
use reveille_wire::roster::mark_check::MarkCounts;
use reveille_wire::roster::{CheckedRoster, CloudRef, ClusterRef};
use tokio::sync::watch;
use tokio::time::{Instant, timeout, timeout_at};

use crate::adapters::agents::AgentOrders;
use crate::adapters::cloud::Once;
use crate::adapters::cluster::{self, ClusterAdapter};
use crate::adapters::machines::{self, NodesFrom};
use crate::adapters::{Adapters, LimitedAdapter, providers};
use crate::driver::clock;
use crate::driver::ledger_store;
use crate::driver::ownership_check::OwnershipCheck;
use crate::driver::pauses::{self, PauseContext};

/// The longest that one source may take.
const SOURCE_WITHIN: Duration = Duration::from_secs(60);
/// The longest for all reads that the engine asks for after that.
const READS_WITHIN: Duration = Duration::from_secs(20);
/// A controller with a heartbeat of at most this age is running.
const ALIVE: Span = Span::from_s(35);

/// The result of a one-time query.
pub(crate) struct QueryResult {
    /// The engine.
    pub(crate) state: State,
    /// The adapters for further reads.
    pub(crate) adapters: Adapters,
    /// Whether a controller runs for this roster.
    pub(crate) controller: Controller,
    /// What the operator should know about this look.
    pub(crate) notes: Vec<String>,
    /// Something of the cluster's machines could not be read: that no problem is known proves nothing.
    pub(crate) is_partial: bool,
}

/// Whether a controller runs for a roster.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) enum Controller {
    /// Its heartbeat is recent.
    Runs,
    /// Its heartbeat is old.
    Stopped,
    /// This state folder never had a controller.
    Never,
}

/// Runs one query.
pub(crate) async fn query(checked: &CheckedRoster, state_dir: &Path, judge: &Judge) -> QueryResult {
    let (mut state, controller, mut notes) = remember(checked, state_dir);
    let clouds = futures::future::join_all(
        checked.clouds.iter().map(|(name, at)| read_cloud(checked, name.clone(), at)),
    );
    let (clouds, (cluster, facts)) = futures::join!(clouds, read_cluster(checked));
    let mut adapters = std::collections::BTreeMap::new();
    let mut events = Vec::new();
    let mut strangers = std::collections::BTreeMap::new();
    let mut is_partial = false;
    for ReadCloud { name, adapter, fact, strangers: counted, warning } in clouds {
        adapters.insert(name.clone(), LimitedAdapter::new(adapter));
        is_partial |= warning.is_some() && !checked.has_cloud();
        notes.extend(warning.map(|warning| format!("{name}: {warning}")));
        if checked.has_cloud() {
            strangers.insert(name.clone(), watch::channel(counted.map(Arc::new)).1);
        }
        events.push(Event::Cloud { cloud: name, fact });
    }
    notes.extend(facts.iter().filter_map(|fact| match fact {
        ClusterFact::IdentityUnread(error) if error.kind == ReadErrorKind::Forbidden => {
            Some(error.text.to_string())
        }
        _ => None,
    }));
    events.extend(facts.into_iter().map(Event::Cluster));
    let mut pauses =
        PauseContext::new(pauses::reader(state_dir), OwnershipCheck::new(checked.written.clone(), strangers));
    for event in &events {
        pauses.ownership_check.review(&checked.roster, event);
    }
    if let Some(Command::Pauses(set)) = pauses.read() {
        events.insert(0, Event::Command(Command::Pauses(set)));
    }
    let adapters =
        Adapters { clouds: adapters, cluster: LimitedAdapter::new(cluster), agents: AgentOrders::default() };
    let mut looks = Vec::new();
    for event in events {
        looks.append(&mut feed(&mut state, judge, event));
    }
    if !follow_up(&mut state, judge, &adapters, looks).await {
        notes.push(format!("some reads took longer than {} s and are left out", READS_WITHIN.as_secs()));
    }
    QueryResult { state, adapters, controller, notes, is_partial }
}

/// A state with the records of the ledger. A ledger that cannot be read is reported and left out.
fn remember(checked: &CheckedRoster, state_dir: &Path) -> (State, Controller, Vec<String>) {
    let now = clock::wall();
    let mut notes = Vec::new();
    let mut runs_now = false;
    let (records, last_alive) = match read_only::<LedgerLine>(state_dir) {
        Ok(reading) => match ledger_store::read_lines(state_dir, reading.records) {
            Ok(records) => {
                runs_now = reading.holder.is_some_and(|holder| runs(&holder, reading.alive_ms));
                (records, reading.alive_ms.map(Time::from_ms))
            }
            Err(error) => {
                notes.push(format!("the ledger is left out: {error}"));
                (Vec::new(), None)
            }
        },
        Err(error) => {
            notes.push(format!("the ledger is left out: {error}"));
            (Vec::new(), None)
        }
    };
    let controller = match last_alive {
        Some(_) if runs_now => Controller::Runs,
        Some(_) => Controller::Stopped,
        None => Controller::Never,
    };
    let how = Restored { start: Start { fence: Fence(0), acting: false }, now, last_alive };
    (State::restore(checked.roster.clone(), how, records), controller, notes)
}

/// Whether a controller runs on this ledger, by its heartbeat.
pub(super) fn is_led(state_dir: &Path) -> bool {
    reveille_record::holder(state_dir).is_some_and(|(holder, alive_ms)| runs(&holder, alive_ms))
}

fn runs(holder: &Holder, alive_ms: Option<i64>) -> bool {
    alive_ms.is_some_and(|at| clock::wall().since(Time::from_ms(at)) <= ALIVE) && lives(holder)
}

/// Whether the process that holds the ledger is alive; for another host only its heartbeat can tell.
fn lives(holder: &Holder) -> bool {
    let here = Holder::this_process("", 0);
    holder.host != here.host || Path::new("/proc").join(holder.pid.to_string()).exists()
}

/// A cloud that was read once, or could not be read.
struct ReadCloud {
    name: CloudName,
    adapter: Arc<dyn crate::adapters::Adapter>,
    fact: CloudFact,
    /// The marks of instances that belong to no roster.
    strangers: Option<MarkCounts>,
    /// A risk of the connection that the operator must know.
    warning: Option<String>,
}

async fn read_cloud(checked: &CheckedRoster, name: CloudName, at: &CloudRef) -> ReadCloud {
    let wants = Arc::from([(checked.roster.clone(), name.clone())]);
    let reading = async {
        let project = connect(name.clone(), at).await?;
        let listed = project.lister(&wants).list_with_strangers().await;
        Ok::<_, ReadError>((project, listed))
    };
    let read = within(name.as_str(), reading).await;
    let (project, fact, strangers) = match read {
        Ok((project, Ok((snapshot, strangers)))) => {
            (Some(project), CloudFact::read(snapshot), Some(MarkCounts::of(&strangers)))
        }
        Ok((project, Err(error))) => (Some(project), CloudFact::Failed(error), None),
        Err(error) => (None, CloudFact::Failed(error), None),
    };
    let warning = project.as_ref().and_then(|project| project.warning());
    let adapter = Arc::new(Once { entry: providers::entry(at), project });
    ReadCloud { name, adapter, fact, strangers, warning }
}

async fn connect(name: CloudName, at: &CloudRef) -> Result<Connected, ReadError> {
    if let CloudRef::Cluster(at) = at {
        return Ok(machines::connected(reach(at).await?.without_cloud(), NodesFrom::List));
    }
    providers::connect(name, at).await.map_err(|unconnected| unconnected.error)
}

async fn reach(at: &ClusterRef) -> Result<Cluster, ReadError> {
    Cluster::connect(&cluster::config(at)).await.map_err(|error| ReadError {
        kind: ReadErrorKind::Unavailable,
        text: Arc::from(format!("cluster: {error}")),
        retry_after: None,
    })
}

async fn read_cluster(checked: &CheckedRoster) -> (Arc<dyn crate::adapters::Adapter>, Vec<ClusterFact>) {
    let reading = async {
        let cluster = reach(&checked.cluster).await?;
        let cluster = if checked.has_cloud() { cluster } else { cluster.without_cloud() };
        let facts = cluster.observe_once().await;
        Ok::<_, ReadError>((cluster, facts))
    };
    match within("cluster", reading).await {
        Ok((cluster, Ok(mut facts))) => {
            facts.push(ClusterFact::Alive);
            (Arc::new(ClusterAdapter(cluster)), facts)
        }
        Ok((cluster, Err(error))) => (Arc::new(ClusterAdapter(cluster)), vec![ClusterFact::Failed(error)]),
        Err(error) => {
            let once = Once { entry: Arc::from("cluster"), project: None };
            (Arc::new(once), vec![ClusterFact::Failed(error)])
        }
    }
}

/// What is read of a source of this name, where that ends in time.
pub(super) async fn within<T>(
    name: &str,
    reading: impl Future<Output = Result<T, ReadError>>,
) -> Result<T, ReadError> {
    timeout(SOURCE_WITHIN, reading).await.unwrap_or_else(|_| Err(too_slow(name)))
}

fn too_slow(name: &str) -> ReadError {
    let text = format!("{name}: no answer within {} s", SOURCE_WITHIN.as_secs());
    ReadError { kind: ReadErrorKind::TimedOut, text: Arc::from(text), retry_after: None }
}

/// Feeds one event and all events that follow from it; returns the reads that the engine asks for.
fn feed(state: &mut State, judge: &Judge, event: Event) -> Vec<Effect> {
    let mut events = std::collections::VecDeque::from([event]);
    let mut looks = Vec::new();
    while let Some(event) = events.pop_front() {
        for effect in state.step(clock::wall(), judge.heard(event)) {
            match effect {
                Effect::Record { id, .. } => events.push_back(Event::Recorded(id)),
                Effect::Look { .. } => looks.push(effect),
                Effect::Call { .. } | Effect::List { .. } | Effect::WakeAt(_) => {}
            }
        }
    }
    looks
}

/// The answer of a cloud or the cluster. Logs of a machine come from both, and are judged together.
pub(crate) async fn ask(adapters: &Adapters, judge: &Judge, look: Look) -> Result<Answer, ReadError> {
    if let Look::LogEvidence(_, _, evidence_query) = &look {
        let (console, said) = futures::join!(
            ask_one(adapters.of_look(&look), look.clone()),
            ask_one(Some(&adapters.cluster), look.clone())
        );
        return judge.weigh(evidence_query, console, said);
    }
    ask_one(adapters.of_look(&look), look).await
}

async fn ask_one(limited: Option<&LimitedAdapter>, look: Look) -> Result<Answer, ReadError> {
    let Some(limited) = limited else { return Err(too_slow("a cloud that the roster does not have")) };
    // The program never closes the semaphore.
    let _place = limited.looks.acquire().await;
    limited.adapter.look(look).await
}

/// Runs the reads that the engine asks for, and those that it asks for then. False when time ran out.
async fn follow_up(state: &mut State, judge: &Judge, adapters: &Adapters, looks: Vec<Effect>) -> bool {
    let until = Instant::now() + READS_WITHIN;
    let mut reads = FuturesUnordered::new();
    let mut queue = looks;
    loop {
        for effect in queue.drain(..) {
            if let (Effect::Look { id, look }, adapters) = (effect, adapters.clone()) {
                reads.push(
                    async move { Event::Looked { look: id, answer: ask(&adapters, judge, look).await } },
                );
            }
        }
        match timeout_at(until, reads.next()).await {
            Ok(Some(event)) => queue = feed(state, judge, event),
            Ok(None) => return true,
            Err(_) => return false,
        }
    }
}
