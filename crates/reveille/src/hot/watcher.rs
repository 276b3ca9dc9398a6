//! Watches an API server for objects that are written in a loop, as long as `run` runs: the roster's cluster, or its Rancher's.
//!
//! ```text
//!  spec.hot ─────────▶ look without end ─▶ Watched ─┐
//!  spec.rancher.hot ─▶ look without end ─▶ Watched ─┴▶ a line in the log; status and why by `snapshot`
//! ```
//!
//! The watcher runs beside the engine's loop and does not influence it. A look that fails starts again after growing
//! waits; while it is down, the reports have no hot objects and say so. Rosters that name one Rancher and the same kinds
//! share one look. Nothing is written, and nothing is remembered when the process ends.

use std::collections::{BTreeMap, BTreeSet};
use std::time::Duration;

use reveille_core::model::id::RosterName;
use reveille_hot::verdict::Subject;
use reveille_hot::{Resource, Settings, Verdict};
use reveille_kube::{Cluster, ClusterConfig};
use reveille_wire::roster::{CheckedRoster, ClusterRef, HotRef};
use tokio::sync::watch;
use tokio::task::JoinSet;

use super::query::{Begin, HotQuery, Listener};
use super::snapshot::{HotSnapshot, Known, Management, Watched};
use crate::adapters::cluster;

/// The time between two samples of the counts: those of a big API server have megabytes.
const COUNTS_EVERY: Duration = Duration::from_secs(120);
/// A look that could not begin is tried again after this, then after twice as long, …
const AGAIN_MIN: Duration = Duration::from_secs(10);
/// … and never later than this.
const AGAIN_MAX: Duration = Duration::from_secs(300);

/// How an API server is reached.
enum Reach {
    /// The caller is logged in already.
    Here(Cluster),
    /// The watcher logs in when the look begins, so that a failed login does not delay the controller.
    There(ClusterConfig),
}

/// The owner of an API server.
enum Whose {
    Cluster(RosterName),
    Rancher,
}

/// The watchers of one process.
pub(crate) struct HotWatchers {
    stopped: watch::Receiver<bool>,
    of_rancher: BTreeMap<(ClusterRef, HotRef), Watched>,
}

impl HotWatchers {
    /// No watcher yet. Each one ends when `stopped` becomes true.
    pub(crate) const fn new(stopped: watch::Receiver<bool>) -> Self {
        Self { stopped, of_rancher: BTreeMap::new() }
    }

    /// Starts the watchers that a roster wants and that do not run yet.
    pub(crate) fn begin(
        &mut self,
        checked: &CheckedRoster,
        cluster: &Cluster,
        tasks: &mut JoinSet<()>,
    ) -> HotSnapshot {
        let own = checked.hot.clone().map(|wanted| {
            let watched = Watched::new();
            let (reach, whose) = (Reach::Here(cluster.clone()), Whose::Cluster(checked.roster.name.clone()));
            tasks.spawn(keep(WatchState::new(whose, watched.clone()), reach, wanted, self.stopped.clone()));
            watched
        });
        let rancher = checked.rancher.as_ref().and_then(|rancher| {
            let wanted = rancher.hot.clone()?;
            let at = ClusterRef { kubeconfig: rancher.kubeconfig.clone(), context: rancher.context.clone() };
            let reach = Reach::There(cluster::config(&at));
            let shared = self.of_rancher.entry((at, wanted.clone())).or_insert_with(|| {
                let watched = Watched::new();
                let watch_state = WatchState::new(Whose::Rancher, watched.clone());
                tasks.spawn(keep(watch_state, reach, wanted, self.stopped.clone()));
                watched
            });
            Some(Management { watched: shared.clone(), cluster: rancher.cluster.clone() })
        });
        HotSnapshot::new(cluster.clone(), own, rancher)
    }
}

/// Receives the events of a look, keeps the state, and logs it.
struct WatchState {
    whose: Whose,
    watched: Watched,
    /// Kinds whose failure was logged; each is logged once.
    untold: BTreeSet<Resource>,
    /// Whether the log says that no look runs.
    is_blind: bool,
}

impl WatchState {
    const fn new(whose: Whose, watched: Watched) -> Self {
        Self { whose, watched, untold: BTreeSet::new(), is_blind: false }
    }

    fn change<T>(&self, change: impl FnOnce(&mut Known) -> T) -> T {
        change(&mut self.watched.known())
    }

    fn roster(&self) -> Option<&str> {
        match &self.whose {
            Whose::Cluster(roster) => Some(roster.as_str()),
            Whose::Rancher => None,
        }
    }

    fn name(&self) -> String {
        match (&self.whose, self.change(|known| known.server.clone())) {
            (Whose::Cluster(_), _) => "cluster".to_owned(),
            (Whose::Rancher, None) => "Rancher".to_owned(),
            (Whose::Rancher, Some(server)) => format!("Rancher ({server})"),
        }
    }

    const fn section(&self) -> &'static str {
        match self.whose {
            Whose::Cluster(_) => "spec.hot",
            Whose::Rancher => "spec.rancher.hot",
        }
    }

    /// A look begins: the data of the one before is dropped.
    fn begins(&self, server: &str) {
        self.change(|known| {
            let blind = std::mem::take(&mut known.blind);
            *known = Known { server: Some(server.to_owned()), blind, ..Known::default() };
        });
    }

    fn cannot_begin(&mut self, why: &str, again: Duration) {
        self.is_blind = true;
        self.change(|known| {
            *known = Known { server: known.server.take(), blind: why.to_owned(), ..Known::default() };
        });
        tracing::warn!(
            roster = self.roster(),
            "{}: hot objects are not looked for: {why}; tries again in {} s",
            self.name(),
            again.as_secs()
        );
    }
}

impl Listener for WatchState {
    fn hot(&mut self, verdict: &Verdict, is_new: bool) {
        if is_new {
            let rate = verdict.rates.first().map(ToString::to_string).unwrap_or_default();
            let names: Vec<&str> = verdict.suspects.iter().map(|suspect| suspect.name.as_str()).collect();
            let by = if names.is_empty() { "an unnamed user".to_owned() } else { names.join(", ") };
            tracing::warn!(
                roster = self.roster(),
                "{}: {} is hot: {rate}; {}; suspected: {by}. More: reveille hot",
                self.name(),
                verdict.subject,
                verdict.class.name
            );
        }
        self.change(|known| drop(known.verdicts.insert(verdict.subject.clone(), verdict.clone())));
    }

    fn cool(&mut self, subject: &Subject) {
        tracing::info!(roster = self.roster(), "{}: {subject} is hot no more", self.name());
        self.change(|known| drop(known.verdicts.remove(subject)));
    }

    fn untold(&mut self, kind: &Resource, why: &str) {
        self.change(|known| drop(known.untold.insert(kind.clone(), why.to_owned())));
        if self.untold.insert(kind.clone()) {
            tracing::warn!(
                roster = self.roster(),
                "{}: writes of {kind} are not counted: {why}. reveille rbac --hot prints the rights",
                self.name()
            );
        }
    }

    fn stands(&mut self, kind: &Resource) {
        self.change(|known| {
            known.untold.remove(kind);
            known.standing.insert(kind.clone());
        });
        self.untold.remove(kind);
        if std::mem::take(&mut self.is_blind) {
            tracing::info!(roster = self.roster(), "{}: hot objects are looked for again", self.name());
        }
    }

    fn lost(&mut self, kind: &Resource) {
        let is_blind = self.change(|known| {
            known.standing.remove(kind);
            known.blind = "its API server does not answer, or ends each watch".to_owned();
            known.standing.is_empty()
        });
        if is_blind && !std::mem::replace(&mut self.is_blind, true) {
            tracing::warn!(
                roster = self.roster(),
                "{}: hot objects are not seen: no watch stands; they are tried again",
                self.name()
            );
        }
    }
}

/// Runs looks until it is told to stop.
async fn keep(mut watch_state: WatchState, reach: Reach, wanted: HotRef, mut stopped: watch::Receiver<bool>) {
    let mut again = AGAIN_MIN;
    loop {
        let Err(why) = query(&mut watch_state, &reach, &wanted, &mut stopped).await else { return };
        watch_state.cannot_begin(&why, again);
        // A closed channel counts as the request to stop.
        if tokio::time::timeout(again, stopped.wait_for(|stop| *stop)).await.is_ok() {
            return;
        }
        again = (again * 2).min(AGAIN_MAX);
    }
}

/// Runs one look to the end of the process; returns why it could not begin.
async fn query(
    watch_state: &mut WatchState,
    reach: &Reach,
    wanted: &HotRef,
    stopped: &mut watch::Receiver<bool>,
) -> Result<(), String> {
    let cluster = match reach {
        Reach::Here(cluster) => cluster.clone(),
        Reach::There(config) => Cluster::connect(config).await.map_err(|error| error.to_string())?,
    };
    watch_state.begins(cluster.server());
    let section = watch_state.section();
    let query =
        HotQuery::open(cluster, begin(wanted), watch_state).await.map_err(|failure| failure.to_string())?;
    if query.kinds() == 0 {
        return Err(format!("it has none of the kinds of {section}"));
    }
    // A closed channel counts as the request to stop.
    query.run(async { drop(stopped.wait_for(|stop| *stop).await) }).await;
    Ok(())
}

fn begin(wanted: &HotRef) -> Begin {
    let usual = Settings::default();
    Begin {
        settings: Settings {
            sustained: wanted.sustained_per_1000_s.unwrap_or(usual.sustained),
            at_once: wanted.at_once_per_1000_s.unwrap_or(usual.at_once),
            ..usual
        },
        kinds: wanted.kinds.clone(),
        leaves_out_unknown: true,
        lasts: None,
        is_short: false,
        counts_every: COUNTS_EVERY,
    }
}
