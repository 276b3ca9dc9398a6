//! `rancher evict` and `rancher mend`: show the steps of a repair, and with `--yes` carry it out.
//!
//! ```text
//!  roster: spec.rancher ─▶ clients ─▶ look ─▶ propose ─▶ page            (nothing is changed)
//!  --yes ─▶ the roster's lock, the repair ledger ─▶ Escalation: look, record, do … ─▶ how it ended
//! ```
//!
//! The escalation decides; this module has its files, its clock and its clients. A controller of the same roster holds the
//! same lock, so that only one of the two acts; pauses of the roster block this command too. A repair that did not end
//! continues from its ledger.

use std::collections::VecDeque;
use std::io::Write as _;
use std::path::PathBuf;
use std::time::Duration;

use anyhow::{Context as _, anyhow};
use reveille_core::model::id::PoolName;
use reveille_core::model::roster::{Limits, Mode, Roster};
use reveille_core::model::time::Span;
use reveille_kube::ClusterConfig;
use reveille_rancher::model::{Cluster, RecordName};
use reveille_rancher::repair::etcd::{members, remove};
use reveille_rancher::repair::executor::{Keep, perform, see};
use reveille_rancher::repair::observation::Observation;
use reveille_rancher::repair::{
    Act, Closing, Effect, End, Escalation, Event, HAND_OVER, Line, Order, Outcome, Pace, Path, propose,
};
use reveille_record::{Config, Holder, Ledger, OpenError};
use reveille_wire::report::{RancherDifferenceReport, RancherRepairReport, Report};
use reveille_wire::roster::{CheckedRoster, RancherRef};
use serde::{Deserialize, Serialize};
use tokio::time::{Instant, sleep};

use super::api_client::KubeClient;
use super::etcd::{self, EtcdClient};
use super::{clusters, open};
use crate::adapters::cluster;
use crate::cli::exit::Exit;
use crate::cli::failure::Failure;
use crate::cli::rancher::Repair;
use crate::command::{Answer, Context, printing};
use crate::driver::clock;
use crate::driver::ledger_store::{self, LedgerStoreError};
use crate::driver::pauses;
use crate::driver::pauses::ReadPauses;

/// The command wakes up at least this often, so that a clock that was set back does not stop it.
const TICK: Duration = Duration::from_secs(10);

/// A line of the repair ledger: the cluster and Node, and what happened.
#[derive(Clone, Debug, Serialize, Deserialize)]
pub(super) struct Entry {
    pub(super) node: String,
    pub(super) path: Path,
    pub(super) what: Line,
}

/// The clusters of the repair.
pub(super) struct Site {
    management: KubeClient,
    downstream: KubeClient,
    /// The etcd clients, where the roster names etcd.
    etcd: Option<Vec<EtcdClient>>,
    order: Order,
    pace: Pace,
    pauses: ReadPauses,
    /// A pool that the roster's file pauses.
    paused_pool: Option<PoolName>,
    limits: Limits,
    copies: Copies,
}

/// Shows the repair, or carries it out with `--yes`.
pub(super) async fn repair(context: &Context, path: Path, args: &Repair) -> Result<Answer, Failure> {
    let (checked, rancher) = the_roster(context)?;
    let state_dir = context.state_dir(&checked.roster.name)?;
    let (mut site, cluster) =
        Site::open(&checked, &rancher, &state_dir, (&args.node, path, args.accept_local_data_loss)).await?;
    if args.yes {
        let mode = if path == Path::Evict { rancher.evict } else { rancher.mend };
        if mode != Mode::Act {
            let what = path.word();
            return Err(Failure::usage(anyhow!(
                "the roster does not allow it: spec.rancher.repair.{what} is not act"
            ))
            .next("without --yes it says what it would do"));
        }
        return act(&mut site, &state_dir).await;
    }
    let observation = site.see().await.map_err(|why| Failure::cannot_tell(anyhow!(why)))?;
    let proposal = propose(&site.order, &observation);
    let change = |(field, value): (&str, String)| RancherDifferenceReport {
        field: field.to_owned(),
        healthy: value,
        this: "not there".to_owned(),
    };
    let told = RancherRepairReport {
        cluster: cluster.called(),
        node: args.node.clone(),
        way: path.word().to_owned(),
        steps: proposal.steps,
        against: proposal.against,
        writes: proposal.draft.iter().flat_map(|draft| draft.lines()).map(change).collect(),
    };
    let (text, exit) = printing::print(context, Report::RancherRepairReport(told), true)?;
    Ok(Answer { text, exit })
}

/// The one roster that names a Rancher.
pub(super) fn the_roster(context: &Context) -> Result<(CheckedRoster, RancherRef), Failure> {
    let mut with: Vec<CheckedRoster> = context.rosters()?;
    with.retain(|checked| checked.rancher.is_some());
    match (with.pop(), with.is_empty()) {
        (Some(checked), true) => {
            let rancher = checked.rancher.clone();
            rancher
                .map(|rancher| (checked, rancher))
                .ok_or_else(|| Failure::internal(anyhow!("no spec.rancher")))
        }
        (None, _) => Err(Failure::usage(anyhow!("no roster names a Rancher"))
            .next("write spec.rancher: {cluster: …}; docs/reference/rancher.md has an example")),
        _ => Err(Failure::usage(anyhow!("several rosters name a Rancher"))
            .next("name the file of one with --roster")),
    }
}

impl Site {
    /// Opens the clients of everything that a repair of this Node needs, and finds the cluster in Rancher.
    pub(super) async fn open(
        checked: &CheckedRoster,
        rancher: &RancherRef,
        state_dir: &std::path::Path,
        (node, path, local_data): (&str, Path, bool),
    ) -> Result<(Self, Cluster), Failure> {
        let management =
            ClusterConfig { kubeconfig: rancher.kubeconfig.clone(), context: rancher.context.clone() };
        let management = open(&management, "Rancher's management cluster").await?;
        let downstream = open(&cluster::config(&checked.cluster), "the cluster of the roster").await?;
        let etcd = rancher.etcd.as_ref().map(etcd::open).transpose();
        let etcd = etcd.map_err(|error| Failure::usage(error.context("spec.rancher.etcd cannot be used")))?;
        let (found, _) = clusters(&management, Some(&rancher.cluster)).await?;
        let cluster =
            found.into_iter().next().ok_or_else(|| Failure::internal(anyhow!("no cluster was found")))?;
        let order = Order { cluster: cluster.id.clone(), node: node.to_owned(), path, local_data };
        let copies = Copies(copies_folder(state_dir));
        let usual = Pace::default();
        let pace = Pace {
            apart: rancher.looks_apart.unwrap_or(usual.apart),
            plan_within: rancher.plan_within.unwrap_or(usual.plan_within),
        };
        let pauses = pauses::reader(state_dir);
        let paused_pool = paused_pool(&checked.roster);
        let limits = checked.roster.limits;
        let site = Self { management, downstream, etcd, order, pace, pauses, paused_pool, limits, copies };
        Ok((site, cluster))
    }

    /// Reads all of it.
    pub(super) async fn see(&self) -> Result<Observation, String> {
        let mut observation = see(&self.management, &self.downstream, &self.order, self.hands_off()).await?;
        if let Some(clients) = &self.etcd {
            match members(clients).await {
                Ok(members) => observation.members = Some(members),
                Err(unread) => observation.sample.unread.push(unread),
            }
        }
        observation.freeze(&self.order, &self.limits);
        Ok(observation)
    }

    async fn perform(&mut self, act: &Act) -> Outcome {
        let Self { management, downstream, etcd, order, copies, .. } = self;
        match (act, etcd) {
            (Act::RemoveMember { id }, Some(clients)) => remove(clients, id).await,
            _ => perform(management, downstream, order, act, copies).await,
        }
    }

    /// The pauses of operators. A pause of any pool counts, because a machine's record does not name its pool.
    fn hands_off(&self) -> Option<String> {
        use reveille_core::event::PauseScope;
        let (pauses, unreadable) = (self.pauses)();
        if let Some(why) = unreadable.first() {
            return Some(format!("a pause cannot be read: {why}"));
        }
        if let Some(pool) = &self.paused_pool {
            return Some(format!("pool {pool} is paused in the roster"));
        }
        let covers = |scope: &PauseScope| match scope {
            PauseScope::Roster | PauseScope::OtherController | PauseScope::Pool(_) => true,
            PauseScope::Machine(name) => **name == *self.order.node,
        };
        let pause = pauses.into_iter().find(|pause| covers(&pause.scope))?;
        Some(format!("paused by {}: {}", pause.by, pause.reason))
    }
}

/// Of several paused pools, the first by name.
fn paused_pool(roster: &Roster) -> Option<PoolName> {
    roster.pools.values().find(|pool| pool.paused).map(|pool| pool.name.clone())
}

/// Copies of records beside the ledger, for operators.
struct Copies(PathBuf);

impl Keep for Copies {
    fn keep(&mut self, record: &RecordName, text: &str) -> Result<(), String> {
        use std::os::unix::fs::OpenOptionsExt as _;
        let write = || {
            std::fs::create_dir_all(&self.0)?;
            let path = self.0.join(format!("{record}-{}.json", clock::wall().ms));
            let mut file = std::fs::OpenOptions::new().write(true).create_new(true).mode(0o600).open(path)?;
            file.write_all(text.as_bytes())?;
            file.sync_all()
        };
        write().map_err(|error: std::io::Error| error.to_string())
    }
}

/// The roster's lock, and the repair ledger with its content.
pub(super) struct Taken {
    /// The lock is held until the end, so that no controller runs for this roster and no other repair begins meanwhile.
    _store: ledger_store::OpenLedgerStore,
    pub(super) journal: Ledger<Entry>,
    pub(super) entries: Vec<Entry>,
}

/// Takes the lock and opens the repair ledger.
pub(super) fn take(state_dir: &std::path::Path) -> Result<Taken, Failure> {
    let command = "reveille rancher";
    let ledger_store = ledger_store::open(state_dir, command, clock::wall()).map_err(|error| {
        let is_held = matches!(error, LedgerStoreError::Open(OpenError::Held { .. }));
        let failure =
            Failure::cannot_tell(anyhow::Error::new(error).context("cannot take the roster's lock"));
        if is_held { failure.next("stop the controller of this roster for the while") } else { failure }
    })?;
    let holder = Holder::this_process(command, clock::wall().ms);
    let opened = Ledger::<Entry>::open(&journal_folder(state_dir), &holder, Config::STANDARD)
        .context("cannot open the journal of repairs")?;
    Ok(Taken { _store: ledger_store, journal: opened.ledger, entries: opened.records })
}

/// The folder of the repair ledger.
pub(super) fn journal_folder(state_dir: &std::path::Path) -> PathBuf {
    state_dir.join("rancher")
}

/// The folder of the copies of records.
pub(super) fn copies_folder(state_dir: &std::path::Path) -> PathBuf {
    journal_folder(state_dir).join("copies")
}

async fn act(site: &mut Site, state_dir: &std::path::Path) -> Result<Answer, Failure> {
    let Taken { mut journal, entries, _store } = take(state_dir)?;
    let lines = so_far(&entries, &site.order).map_err(|why| {
        let next = "go on with that one by the same command with --yes, or end it: reveille rancher abandon";
        Failure::usage(anyhow!(why)).next(next)
    })?;
    let (began, wall) = (Instant::now(), clock::wall());
    let now = || wall + Span::from(began.elapsed());
    let (mut escalation, effects) = Escalation::begin(site.order.clone(), site.pace, lines, wall);
    let mut effects: VecDeque<Effect> = effects.into();
    let mut wake = wall;
    loop {
        let event = match effects.pop_front() {
            Some(Effect::Look { look }) => Event::Looked { look, seen: Box::new(site.see().await) },
            Some(Effect::Record { line, what }) => {
                let entry = Entry { node: site.order.node.clone(), path: site.order.path, what };
                journal.append(&entry).context("cannot write the journal of repairs")?;
                journal.sync().context("cannot write the journal of repairs")?;
                Event::Recorded { line }
            }
            Some(Effect::Do { number, act }) => {
                journal.heartbeat(now().ms).context("the lock was lost: nothing more is done")?;
                Event::Done { number, outcome: site.perform(&act).await }
            }
            Some(Effect::WakeAt(at)) => {
                wake = at;
                continue;
            }
            Some(Effect::Tell(text)) => {
                tell(&text);
                continue;
            }
            Some(Effect::End(end)) => return Ok(ended(&end, &site.order)),
            None => {
                let left = Duration::from(wake.since(now()));
                sleep(left.clamp(Duration::from_millis(10), TICK)).await;
                Event::Tick
            }
        };
        effects.extend(escalation.step(now(), event));
    }
}

/// The lines of this repair since its last end; an error where another repair is open.
fn so_far(entries: &[Entry], order: &Order) -> Result<Vec<Line>, String> {
    let mut open: Vec<&Entry> = Vec::new();
    for entry in entries {
        match entry.what {
            Line::Closed { .. } => open.retain(|other| other.node != entry.node),
            _ => open.push(entry),
        }
    }
    if let Some(other) = open.iter().find(|entry| entry.node != order.node) {
        return Err(format!("another repair is under way: {} of {}", other.path.word(), other.node));
    }
    if let Some(other) = open.iter().find(|entry| entry.path != order.path) {
        return Err(format!(
            "{} of {} was begun, and both ways are never taken",
            other.path.word(),
            other.node
        ));
    }
    let elsewhere = open.iter().find_map(|entry| match &entry.what {
        Line::Begun { order: begun, .. } if begun.cluster != order.cluster => Some(&begun.cluster),
        _ => None,
    });
    if let Some(cluster) = elsewhere {
        return Err(format!(
            "{} of {} was begun in the cluster {cluster}, and the roster names {}",
            order.path.word(),
            order.node,
            order.cluster
        ));
    }
    Ok(open.into_iter().map(|entry| entry.what.clone()).collect())
}

/// Prints one line about a step on standard error.
fn tell(text: &str) {
    drop(writeln!(std::io::stderr().lock(), "{}", crate::render::output_style::one_line(text)));
}

fn ended(end: &End, order: &Order) -> Answer {
    let node = &order.node;
    let (text, exit) = match end {
        End::Closed(Closing::HandedOver) => {
            (format!("{node}: Node and records are gone.\nnext: {HAND_OVER}\n"), Exit::NoProblem)
        }
        End::Closed(Closing::Mended) => {
            (format!("{node}: its record is whole, and its plan came.\n"), Exit::NoProblem)
        }
        End::Closed(Closing::PutBack) => (
            format!("{node}: it went wrong, and its record is as it was. A person has to look.\n"),
            Exit::Problems,
        ),
        End::Closed(Closing::Abandoned) => (format!("{node}: a person gave it up.\n"), Exit::NoProblem),
        End::Stopped { why, changed } => {
            let so = if *changed {
                "What was done stays; the same command goes on from what it finds"
            } else {
                "Nothing was changed"
            };
            (format!("{node}: stopped: {why}. {so}.\n"), Exit::Problems)
        }
    };
    Answer { text, exit }
}

#[cfg(test)]
mod tests {
    use std::collections::BTreeSet;

    use reveille_rancher::model::ClusterId;

    use super::*;

    fn order(node: &str, path: Path) -> Order {
        Order { cluster: ClusterId("c-abcde".to_owned()), node: node.to_owned(), path, local_data: false }
    }

    fn entry(node: &str, path: Path, closed: bool) -> Entry {
        let begun = Line::Begun {
            at_ms: 0,
            order: order(node, path),
            node_uid: "u".to_owned(),
            ips: BTreeSet::new(),
            roles: BTreeSet::new(),
        };
        let what = if closed { Line::Closed { how: Closing::HandedOver } } else { begun };
        Entry { node: node.to_owned(), path, what }
    }

    #[test]
    fn one_repair_at_a_time_and_never_both_ways() {
        let open = [entry("w-1", Path::Evict, false)];
        assert_eq!(so_far(&open, &order("w-1", Path::Evict)).unwrap().len(), 1);
        assert!(so_far(&open, &order("w-2", Path::Evict)).unwrap_err().contains("evict of w-1"));
        assert!(so_far(&open, &order("w-1", Path::Mend)).unwrap_err().contains("both ways"));
        let elsewhere = Order { cluster: ClusterId("c-other".to_owned()), ..order("w-1", Path::Evict) };
        assert!(so_far(&open, &elsewhere).unwrap_err().contains("in the cluster c-abcde"));
        let over = [entry("w-1", Path::Evict, false), entry("w-1", Path::Evict, true)];
        assert!(so_far(&over, &order("w-2", Path::Mend)).unwrap().is_empty());
        assert!(so_far(&over, &order("w-1", Path::Mend)).unwrap().is_empty());
    }

    #[test]
    fn a_journal_is_read_back_as_it_was_written() {
        let text = serde_json::to_string(&entry("w-1", Path::Evict, false)).unwrap();
        let back: Entry = serde_json::from_str(&text).unwrap();
        assert_eq!(back.what, entry("w-1", Path::Evict, false).what);
    }
}
