//! Watches a cluster for hot objects: one task for each kind, one for each object that is followed, and
//! the detector in the middle.
//!
//! ```text
//!  kind ─▶ tell_writes ─┐                         ┌▶ Follow ─▶ tell_versions (a task) ─┐
//!  kind ─▶ tell_writes ─┼▶ channel ─▶ State::step ┼▶ ReadBeside ─▶ read_object (a task) ┼─▶ channel
//!  /metrics, at times ──┘                         └▶ Opened, Changed, Closed ─▶ Listener
//! ```
//!
//! The channel has a limit: when the detector is behind, the connections to the API server wait. Every task ends with the look.

use std::collections::{BTreeMap, BTreeSet};
use std::future::Future;
use std::time::Duration;

use anyhow::anyhow;
use reveille_core::model::time::Time;
use reveille_hot::kinds::{Generation, is_counted};
use reveille_hot::metrics::Pressure;
use reveille_hot::verdict::Subject;
use reveille_hot::{Effect, Event, Object, Resource, Settings, State, Verdict};
use reveille_kube::Cluster;
use reveille_kube::writes::Kind;
use tokio::sync::mpsc;
use tokio::task::{AbortHandle, JoinSet};
use tokio::time::{Instant, MissedTickBehavior};

use crate::cli::failure::Failure;
use crate::driver::clock::wall;

/// The most kinds that are watched at once: each needs one watch connection to the API server.
const KINDS_MAX: usize = 300;
/// The watches of the kinds start this far apart.
const APART: Duration = Duration::from_millis(10);
/// The most events between the connections and the detector.
const QUEUE: usize = 4_096;
/// The first sample of the counts comes when the watches are open, or after this long.
const SETTLE: Duration = Duration::from_secs(5);
/// How often the detector re-evaluates its cases.
const TICK: Duration = Duration::from_millis(250);
/// The most notes in a report.
const NOTES_MAX: usize = 20;
/// A refused kind may be allowed later. A look without an end tries again after the first wait, then twice as long each
/// time, up to the last wait.
const AGAIN: (Duration, Duration) = (Duration::from_secs(10), Duration::from_secs(300));

/// The settings of a look.
pub(crate) struct Begin {
    /// The thresholds of the detector.
    pub(crate) settings: Settings,
    /// The wanted kinds, as the operator writes them; empty: all that can be counted.
    pub(crate) kinds: Vec<String>,
    /// Kinds that the server does not have are skipped.
    pub(crate) leaves_out_unknown: bool,
    /// The look ends after this long; `None`: when it is told to.
    pub(crate) lasts: Option<Duration>,
    /// The look drops nothing before its end, and its last report covers everything that it saw.
    pub(crate) is_short: bool,
    /// The time between two samples of the counts, while the look goes on.
    pub(crate) counts_every: Duration,
}

/// Gets events as they happen.
pub(crate) trait Listener {
    /// An object is hot, or there is more evidence: `is_new` tells which.
    fn hot(&mut self, verdict: &Verdict, is_new: bool);
    /// The object is not hot any more.
    fn cool(&mut self, subject: &Subject);
    /// No data comes for this kind, for this reason.
    fn untold(&mut self, kind: &Resource, why: &str);
    /// Data comes for this kind from now on.
    fn stands(&mut self, _kind: &Resource) {}
    /// The watch of this kind broke: no data comes until it is open again. The look may call this repeatedly.
    fn lost(&mut self, _kind: &Resource) {}
}

/// The result of a look.
pub(crate) struct Seen {
    /// When it began.
    pub(crate) began: Time,
    /// The number of kinds with data until the end.
    pub(crate) kinds: usize,
    /// The verdicts, hottest first.
    pub(crate) verdicts: Vec<Verdict>,
    /// The memory use of the API server.
    pub(crate) pressure: Option<Pressure>,
    /// Limits of the result.
    pub(crate) notes: Vec<String>,
}

/// A look that is under way.
pub(crate) struct HotQuery<'l, L> {
    listener: &'l mut L,
    cluster: Cluster,
    begin: Begin,
    kinds: BTreeMap<Resource, Kind>,
    state: State,
    events: mpsc::Sender<Event>,
    queue: mpsc::Receiver<Event>,
    tasks: JoinSet<()>,
    followed: BTreeMap<Object, AbortHandle>,
    /// Kinds without data, and why.
    untold: BTreeMap<Resource, String>,
    standing: BTreeSet<Resource>,
    notes: Vec<String>,
    began: Time,
}

/// The wanted kinds; without a list, all that can be counted.
fn chosen(served: Vec<Kind>, begin: &Begin) -> Result<Vec<Kind>, Failure> {
    if begin.kinds.is_empty() {
        let mut kinds = served;
        kinds.retain(|kind| is_counted(&kind.resource));
        return Ok(kinds);
    }
    let mut kinds = Vec::new();
    for name in &begin.kinds {
        let by_name = served.iter().find(|kind| kind.resource.to_string() == *name);
        let found = by_name.or_else(|| served.iter().find(|kind| *kind.resource.plural == **name));
        match found {
            Some(kind) => kinds.push(kind.clone()),
            None if begin.leaves_out_unknown => {}
            None => {
                return Err(Failure::usage(anyhow!("the API server has no kind {name:?}"))
                    .next("write it as kubectl api-resources does: PLURAL or PLURAL.GROUP"));
            }
        }
    }
    Ok(kinds)
}

/// Watches a kind. A watch ends only when it is refused; in a look without an end, the task then tries again after growing waits.
async fn tell(
    cluster: &Cluster,
    kind: &Kind,
    events: &mpsc::Sender<Event>,
    failed: &mpsc::Sender<(Resource, String)>,
    is_endless: bool,
) {
    let mut again = AGAIN.0;
    loop {
        let told = if kind.can_be_watched {
            cluster.tell_writes(kind, events).await
        } else {
            cluster.list_writes(kind, events).await
        };
        let Err(untold) = told else { return };
        let unheard = failed.send((kind.resource.clone(), untold.cause)).await.is_err();
        if unheard || !is_endless {
            return;
        }
        tokio::time::sleep(again).await;
        again = (again * 2).min(AGAIN.1);
    }
}

impl<'l, L: Listener> HotQuery<'l, L> {
    /// Asks which kinds the server has, and starts no watch yet.
    pub(crate) async fn open(cluster: Cluster, begin: Begin, listener: &'l mut L) -> Result<Self, Failure> {
        let served =
            cluster.kinds().await.map_err(|error| Failure::cannot_tell(anyhow!("{}", error.text)))?;
        let kinds = chosen(served, &begin)?;
        let (events, queue) = mpsc::channel(QUEUE);
        Ok(Self {
            listener,
            cluster,
            kinds: kinds.into_iter().map(|kind| (kind.resource.clone(), kind)).collect(),
            state: State::new(begin.settings.clone(), begin.is_short),
            begin,
            events,
            queue,
            tasks: JoinSet::new(),
            followed: BTreeMap::new(),
            untold: BTreeMap::new(),
            standing: BTreeSet::new(),
            notes: Vec::new(),
            began: wall(),
        })
    }

    /// The number of kinds that the look watches.
    pub(crate) fn kinds(&self) -> usize {
        self.kinds.len()
    }

    /// Runs until the time is over or `stop` resolves, and returns the result.
    pub(crate) async fn run(mut self, stop: impl Future<Output = ()>) -> Seen {
        let mut failures = self.start();
        self.watch(&mut failures, stop).await;
        self.second_lists().await;
        self.step(Event::Over);
        self.read_beside().await;
        self.tasks.abort_all();
        self.seen()
    }

    /// Starts a task for each kind. The channel returns the failures of these tasks.
    fn start(&mut self) -> mpsc::Receiver<(Resource, String)> {
        let (failed, failures) = mpsc::channel(KINDS_MAX);
        let left_out = self.kinds.len().saturating_sub(KINDS_MAX);
        if left_out > 0 {
            self.note(format!(
                "{left_out} kinds are more than are watched at once; name those that matter: --kind"
            ));
        }
        let is_endless = self.begin.lasts.is_none();
        for (nth, kind) in (0_u32..).zip(self.kinds.values().take(KINDS_MAX).cloned()) {
            if !kind.can_be_watched {
                self.listener.stands(&kind.resource);
            }
            let (cluster, events, failed) = (self.cluster.clone(), self.events.clone(), failed.clone());
            self.tasks.spawn(async move {
                tokio::time::sleep(APART * nth).await;
                tell(&cluster, &kind, &events, &failed, is_endless).await;
            });
        }
        failures
    }

    async fn watch(
        &mut self,
        failures: &mut mpsc::Receiver<(Resource, String)>,
        stop: impl Future<Output = ()>,
    ) {
        let mut tick = tokio::time::interval(TICK);
        tick.set_missed_tick_behavior(MissedTickBehavior::Delay);
        let settled_by = Instant::now() + SETTLE;
        let ends = self.begin.lasts.map(|lasts| Instant::now() + lasts);
        let mut counts_at = None;
        tokio::pin!(stop);
        loop {
            let event = tokio::select! {
                biased;
                () = &mut stop => break,
                Some((resource, why)) = failures.recv() => {
                    // A kind that is refused again for the same reason is not reported again.
                    if self.untold.get(&resource) != Some(&why) {
                        self.listener.untold(&resource, &why);
                    }
                    self.untold.insert(resource.clone(), why);
                    Event::Blind(resource)
                }
                _ = tick.tick() => Event::Tick,
                Some(event) = self.queue.recv() => event,
            };
            self.mind(&event);
            let is_tick = matches!(event, Event::Tick);
            self.step(event);
            if !is_tick {
                continue;
            }
            let now = Instant::now();
            let stands = now >= settled_by || self.standing.len() + self.untold.len() >= self.kinds.len();
            let is_last = ends.is_some_and(|ends| now >= ends);
            if counts_at.is_none_or(|at| now >= at) && stands || is_last {
                counts_at = Some(now + self.begin.counts_every);
                self.read_counts(is_last).await;
            }
            if is_last {
                break;
            }
        }
    }

    /// Records whether data comes for a kind.
    fn mind(&mut self, event: &Event) {
        match event {
            Event::Watched(resource) => {
                self.untold.remove(resource);
                self.standing.insert(resource.clone());
                self.listener.stands(resource);
            }
            Event::Blind(resource) => {
                self.standing.remove(resource);
                self.listener.lost(resource);
            }
            _ => {}
        }
    }

    /// The counts are read here and not in a task, so that the counts of our watch and of the server end at the same time.
    async fn read_counts(&mut self, is_last: bool) {
        match self.cluster.counts().await {
            Ok(scrape) => self.step(Event::Scraped(Box::new(scrape))),
            Err(untold) if is_last || untold.is_forbidden => {
                let note = format!(
                    "the API server's counts could not be read, so that writes which change nothing do not show: {}",
                    untold.cause
                );
                self.note(note);
            }
            Err(_) => {}
        }
    }

    /// Lists kinds without a watch again: two generations give a rate.
    async fn second_lists(&mut self) {
        let unwatched: Vec<Kind> = self
            .kinds
            .values()
            .filter(|kind| !kind.can_be_watched && !self.untold.contains_key(&kind.resource))
            .cloned()
            .collect();
        for kind in unwatched {
            let (cluster, events) = (self.cluster.clone(), self.events.clone());
            let mut listing = Box::pin(async move { cluster.list_writes(&kind, &events).await });
            loop {
                tokio::select! {
                    biased;
                    Some(event) = self.queue.recv() => self.step(event),
                    _ = &mut listing => break,
                }
            }
        }
    }

    /// Waits for the names of clusters that were requested at the very end.
    async fn read_beside(&mut self) {
        let by = Instant::now() + Duration::from_secs(3);
        while self.state.awaits() > 0 {
            match tokio::time::timeout_at(by, self.queue.recv()).await {
                Ok(Some(event)) if matches!(event, Event::Beside(..)) => self.step(event),
                Ok(Some(_)) => {}
                Ok(None) | Err(_) => break,
            }
        }
    }

    fn step(&mut self, event: Event) {
        for effect in self.state.step(wall(), event) {
            self.perform(effect);
        }
    }

    fn perform(&mut self, effect: Effect) {
        match effect {
            Effect::Follow(object) => self.follow(object),
            Effect::Unfollow(object) => {
                if let Some(task) = self.followed.remove(&object) {
                    task.abort();
                }
            }
            Effect::ReadBeside { about, wanted } => self.read(about, wanted),
            Effect::Opened(verdict) => self.listener.hot(&verdict, true),
            Effect::Changed(verdict) => self.listener.hot(&verdict, false),
            Effect::Closed(subject) => self.listener.cool(&subject),
        }
    }

    fn follow(&mut self, object: Object) {
        let Some(kind) = self.kinds.get(&object.resource).cloned() else { return };
        let (cluster, events, whom) = (self.cluster.clone(), self.events.clone(), object.clone());
        let task = self.tasks.spawn(async move { cluster.tell_versions(&kind, &whom, &events).await });
        self.followed.insert(object, task);
        // Tasks that have ended are removed, because a look may go on for months.
        while self.tasks.try_join_next().is_some() {}
    }

    /// The record of a cluster is of a kind of its own, which may not be among the counted kinds.
    fn read(&mut self, about: Object, wanted: Object) {
        let sibling = self.kinds.get(&about.resource).map(|kind| kind.version.clone());
        let kind = self.kinds.get(&wanted.resource).cloned().or_else(|| {
            Some(Kind {
                resource: wanted.resource.clone(),
                version: sibling?,
                is_namespaced: false,
                can_be_watched: false,
                counts: Generation::Nothing,
            })
        });
        let Some(kind) = kind else { return };
        let (cluster, events) = (self.cluster.clone(), self.events.clone());
        self.tasks.spawn(async move {
            let whole = cluster.read_object(&kind, &wanted).await.ok().flatten().unwrap_or_default();
            // If the receiver is gone, the result is not needed.
            let _ = events.send(Event::Beside(about, Box::new(whole))).await;
        });
    }

    fn note(&mut self, note: String) {
        if self.notes.len() < NOTES_MAX && !self.notes.contains(&note) {
            self.notes.push(note);
        }
    }

    fn seen(mut self) -> Seen {
        if let Some((resource, why)) = self.untold.first_key_value() {
            let names: Vec<String> = self.untold.keys().map(ToString::to_string).collect();
            let names = names.join(", ");
            self.note(format!(
                "not counted: {names} (of {resource}: {why}); reveille rbac --hot prints the rights"
            ));
        }
        if self.state.forgotten() > 0 {
            let count = self.state.forgotten();
            self.note(format!("{count} objects that were written seldom were not counted to the end"));
        }
        Seen {
            began: self.began,
            kinds: self.kinds.len().saturating_sub(self.untold.len()),
            verdicts: self.state.verdicts(wall()),
            pressure: self.state.pressure(),
            notes: self.notes,
        }
    }
}
