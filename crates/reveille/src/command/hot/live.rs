//! A look at a cluster: one task for each kind, one for each object that is followed, and the detector in the middle.
//!
//! ```text
//!  kind ─▶ tell_writes ─┐                         ┌▶ Follow ─▶ tell_versions (a task) ─┐
//!  kind ─▶ tell_writes ─┼▶ channel ─▶ State::step ┼▶ ReadBeside ─▶ read_object (a task) ┼─▶ channel
//!  /metrics, at times ──┘                         └▶ Opened, Changed, Closed ─▶ lines (--watch)
//! ```
//!
//! The channel is bounded: when the detector is behind, the API server's connections wait. Every task ends with the look.

use std::collections::{BTreeMap, BTreeSet};
use std::time::Duration;

use anyhow::anyhow;
use reveille_core::model::time::Time;
use reveille_hot::kinds::is_counted;
use reveille_hot::verdict::Subject;
use reveille_hot::{Effect, Event, Object, Resource, Settings, State};
use reveille_kube::Cluster;
use reveille_kube::writes::Kind;
use reveille_wire::report::{Document, HotReport, Report};
use reveille_wire::stamp::Stamp;
use tokio::sync::mpsc;
use tokio::task::{AbortHandle, JoinSet};
use tokio::time::{Instant, MissedTickBehavior};

use super::seconds;
use crate::cli::Output;
use crate::cli::failure::Failure;
use crate::command::{Context, say};
use crate::driver::clock::wall;
use crate::render;
use crate::view::hot as view;

/// Kinds that are watched at once: each is a connection's stream of the API server.
const KINDS_MAX: usize = 300;
/// Kinds do not begin all at once.
const APART: Duration = Duration::from_millis(10);
/// Events on their way from the connections to the detector.
const QUEUE: usize = 4_096;
/// The first reading of the counts comes when the watches stand, or after this long.
const SETTLE: Duration = Duration::from_secs(5);
/// Between two readings of the counts, while it goes on.
const COUNTS_EVERY: Duration = Duration::from_secs(30);
/// Cases ripen and cool by this.
const TICK: Duration = Duration::from_millis(250);
/// Notes that are told.
const NOTES_MAX: usize = 20;

/// What a look needs.
pub(super) struct Begin {
    pub(super) settings: Settings,
    pub(super) kinds: Vec<String>,
    pub(super) look_s: Option<u32>,
    pub(super) is_watch: bool,
}

/// A look under way.
struct Look<'a> {
    context: &'a Context,
    cluster: Cluster,
    kinds: BTreeMap<Resource, Kind>,
    state: State,
    is_watch: bool,
    events: mpsc::Sender<Event>,
    tasks: JoinSet<()>,
    followed: BTreeMap<Object, AbortHandle>,
    /// Kinds that nobody tells of: why.
    untold: BTreeMap<Resource, String>,
    standing: BTreeSet<Resource>,
    notes: Vec<String>,
    began: Time,
}

/// Looks, and tells what it found.
pub(super) async fn look(context: &Context, cluster: Cluster, begin: Begin) -> Result<HotReport, Failure> {
    let served = cluster.kinds().await.map_err(|error| Failure::cannot_tell(anyhow!("{}", error.text)))?;
    let kinds = chosen(served, &begin.kinds)?;
    let (events, mut queue) = mpsc::channel(QUEUE);
    let mut look = Look {
        context,
        cluster,
        kinds: kinds.into_iter().map(|kind| (kind.resource.clone(), kind)).collect(),
        state: State::new(begin.settings, !begin.is_watch),
        is_watch: begin.is_watch,
        events,
        tasks: JoinSet::new(),
        followed: BTreeMap::new(),
        untold: BTreeMap::new(),
        standing: BTreeSet::new(),
        notes: Vec::new(),
        began: wall(),
    };
    look.announce(begin.look_s);
    let mut failures = look.start();
    look.run(&mut queue, &mut failures, begin.look_s).await;
    Ok(look.report())
}

/// The kinds that are wanted; without a wish, all that are counted.
fn chosen(served: Vec<Kind>, wanted: &[String]) -> Result<Vec<Kind>, Failure> {
    if wanted.is_empty() {
        let mut kinds = served;
        kinds.retain(|kind| is_counted(&kind.resource));
        return Ok(kinds);
    }
    let mut kinds = Vec::new();
    for name in wanted {
        let is_it =
            |kind: &&Kind| kind.resource.to_string() == *name || &*kind.resource.plural == name.as_str();
        let found = served.iter().find(|kind| kind.resource.to_string() == *name);
        let found = found.or_else(|| served.iter().find(is_it)).ok_or_else(|| {
            Failure::usage(anyhow!("the API server has no kind {name:?}"))
                .next("write it as kubectl api-resources does: PLURAL or PLURAL.GROUP")
        })?;
        kinds.push(found.clone());
    }
    Ok(kinds)
}

impl Look<'_> {
    fn announce(&self, look_s: Option<u32>) {
        if self.context.common.output != Output::Table {
            return;
        }
        let server = self.cluster.server();
        let until =
            look_s.map_or_else(|| "until interrupted".to_owned(), |seconds| format!("for {seconds} s"));
        eprintln!("looks at {server}, {} kinds, {until}", self.kinds.len());
    }

    /// A task for each kind. What one of them cannot tell comes back by the channel.
    fn start(&mut self) -> mpsc::Receiver<(Resource, String)> {
        let (failed, failures) = mpsc::channel(KINDS_MAX);
        let left_out = self.kinds.len().saturating_sub(KINDS_MAX);
        if left_out > 0 {
            self.notes.push(format!(
                "{left_out} kinds are more than are watched at once; name those that matter: --kind"
            ));
        }
        for (nth, kind) in (0_u32..).zip(self.kinds.values().take(KINDS_MAX).cloned()) {
            let (cluster, events, failed) = (self.cluster.clone(), self.events.clone(), failed.clone());
            self.tasks.spawn(async move {
                tokio::time::sleep(APART * nth).await;
                let told = if kind.can_be_watched {
                    cluster.tell_writes(&kind, &events).await
                } else {
                    cluster.list_writes(&kind, &events).await
                };
                if let Err(untold) = told {
                    // Whoever does not listen any more has no use for it.
                    let _ = failed.send((kind.resource.clone(), untold.cause)).await;
                }
            });
        }
        failures
    }

    async fn run(
        &mut self,
        queue: &mut mpsc::Receiver<Event>,
        failures: &mut mpsc::Receiver<(Resource, String)>,
        look_s: Option<u32>,
    ) {
        let mut tick = tokio::time::interval(TICK);
        tick.set_missed_tick_behavior(MissedTickBehavior::Delay);
        let settled_by = Instant::now() + SETTLE;
        let ends = look_s.map(|seconds| Instant::now() + Duration::from_secs(seconds.into()));
        let mut counts_at = None;
        let interrupted = tokio::signal::ctrl_c();
        tokio::pin!(interrupted);
        loop {
            let event = tokio::select! {
                biased;
                _ = &mut interrupted => break,
                Some((resource, why)) = failures.recv() => {
                    self.untold.insert(resource.clone(), why);
                    Event::Blind(resource)
                }
                _ = tick.tick() => Event::Tick,
                Some(event) = queue.recv() => event,
            };
            if let Event::Watched(resource) = &event {
                self.standing.insert(resource.clone());
            }
            let is_tick = matches!(event, Event::Tick);
            self.step(event);
            if !is_tick {
                continue;
            }
            let now = Instant::now();
            let stands = now >= settled_by || self.standing.len() + self.untold.len() >= self.kinds.len();
            let is_last = ends.is_some_and(|ends| now >= ends);
            if counts_at.is_none_or(|at| now >= at) && stands || is_last {
                counts_at = Some(now + COUNTS_EVERY);
                self.read_counts(is_last).await;
            }
            if is_last {
                break;
            }
        }
        self.second_lists(queue).await;
        self.step(Event::Over);
        self.read_beside(queue).await;
        self.tasks.abort_all();
    }

    /// The counts are read here, and not in a task, so that what our watch saw and what the server counted end together.
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

    /// Kinds without a watch are listed again: two generations are a rate.
    async fn second_lists(&mut self, queue: &mut mpsc::Receiver<Event>) {
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
                    Some(event) = queue.recv() => self.step(event),
                    _ = &mut listing => break,
                }
            }
        }
    }

    /// Names of clusters that were asked for at the very end.
    async fn read_beside(&mut self, queue: &mut mpsc::Receiver<Event>) {
        let by = Instant::now() + Duration::from_secs(3);
        while self.state.awaits() > 0 {
            match tokio::time::timeout_at(by, queue.recv()).await {
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
            Effect::Opened(verdict) => self.print("", &view::verdict(&verdict)),
            Effect::Changed(verdict) => self.print("more is known: ", &view::verdict(&verdict)),
            Effect::Closed(subject) => self.print_end(&subject),
        }
    }

    fn follow(&mut self, object: Object) {
        let Some(kind) = self.kinds.get(&object.resource).cloned() else { return };
        let (cluster, events, whom) = (self.cluster.clone(), self.events.clone(), object.clone());
        let task = self.tasks.spawn(async move { cluster.tell_versions(&kind, &whom, &events).await });
        self.followed.insert(object, task);
    }

    /// The record of a cluster lies in a kind of its own, which may not be among those that are counted.
    fn read(&mut self, about: Object, wanted: Object) {
        let sibling = self.kinds.get(&about.resource).map(|kind| kind.version.clone());
        let kind = self.kinds.get(&wanted.resource).cloned().or_else(|| {
            Some(Kind {
                resource: wanted.resource.clone(),
                version: sibling?,
                is_namespaced: false,
                can_be_watched: false,
                counts: reveille_hot::kinds::Generation::Nothing,
            })
        });
        let Some(kind) = kind else { return };
        let (cluster, events) = (self.cluster.clone(), self.events.clone());
        self.tasks.spawn(async move {
            let whole = cluster.read_object(&kind, &wanted).await.ok().flatten().unwrap_or_default();
            // Nobody waits for it any more: nothing is lost.
            let _ = events.send(Event::Beside(about, Box::new(whole))).await;
        });
    }

    fn print(&self, lead: &str, verdict: &reveille_wire::report::HotVerdict) {
        if !self.is_watch {
            return;
        }
        let clock = self.context.paper.clock(Stamp(wall()), Stamp(wall()));
        match self.context.common.output {
            Output::Table => {
                say(&format!("{clock}  {lead}{}", render::hot::verdict(verdict, &self.context.paper)))
            }
            _ => self.print_document(verdict.clone()),
        }
    }

    fn print_end(&self, subject: &Subject) {
        if self.is_watch && self.context.common.output == Output::Table {
            let clock = self.context.paper.clock(Stamp(wall()), Stamp(wall()));
            say(&format!("{clock}  {subject} is hot no more\n"));
        }
    }

    /// For programs: a document for each verdict, when it is known.
    fn print_document(&self, verdict: reveille_wire::report::HotVerdict) {
        let report = HotReport { verdicts: vec![verdict], ..self.empty() };
        let document = Document::from(Report::HotReport(Box::new(report)));
        let text = match self.context.common.output {
            Output::Yaml => document.to_yaml().map(|text| format!("---\n{text}")),
            _ => document.to_json(),
        };
        match text {
            Ok(text) => say(&text),
            Err(error) => tracing::error!(%error, "a verdict cannot be written"),
        }
    }

    fn note(&mut self, note: String) {
        if self.notes.len() < NOTES_MAX && !self.notes.contains(&note) {
            self.notes.push(note);
        }
    }

    fn empty(&self) -> HotReport {
        HotReport {
            at: Stamp(wall()),
            server: Some(self.cluster.server().to_owned()),
            looked_s: seconds(wall().since(self.began)),
            kinds: self.kinds.len().saturating_sub(self.untold.len()) as u64,
            verdicts: Vec::new(),
            pressure: self.state.pressure().as_ref().map(view::pressure),
            notes: Vec::new(),
        }
    }

    fn report(mut self) -> HotReport {
        let untold = std::mem::take(&mut self.untold);
        if let Some((resource, why)) = untold.first_key_value() {
            let names: Vec<String> = untold.keys().map(ToString::to_string).collect();
            let names = names.join(", ");
            self.note(format!(
                "not counted: {names} (of {resource}: {why}); reveille rbac --hot prints the rights"
            ));
        }
        if self.state.forgotten() > 0 {
            let count = self.state.forgotten();
            self.note(format!("{count} objects that were written seldom were not counted to the end"));
        }
        self.untold = untold;
        let verdicts = self.state.verdicts(wall());
        HotReport {
            verdicts: verdicts.iter().map(view::verdict).collect(),
            notes: self.notes.clone(),
            ..self.empty()
        }
    }
}
