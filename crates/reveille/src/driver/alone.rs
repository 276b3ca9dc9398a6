//! Whether another controller acts for the same roster: a Lease in the cluster, read and renewed while we run.
//!
//! ```text
//!  read ─┬▶ none, ours ─────────────────────▶ write ─▶ Alone       Moved ─▶ read again
//!        ├▶ another's, and it changes ──────▶ Other: this controller only observes
//!        ├▶ another's, unchanged for long ──▶ write ─▶ Alone
//!        ├▶ let go by another ──────────────▶ Other, once ─▶ write ─▶ Alone
//!        └▶ no right, no such API ──────────▶ Relied: it says so, and acts
//!  another's a moment ago, and none or ours now: deleted, or a backup was restored ─▶ as if unchanged
//!  no answer for long ─▶ Unproved: only what is missing is added
//! ```
//!
//! The ledger's lock keeps two processes of one state directory apart; two hosts have two ledgers, and each would repair
//! with a budget of its own. Whether the other one lives is told by changes that we see within a time on our own clocks;
//! the time that it writes into the Lease is for people. Of our own proof both clocks count, and the longer time: the
//! monotonic one stands still while a laptop sleeps, and the wall clock may be set back. Of another's silence only the
//! monotonic one counts, which never runs ahead: a wall clock that is set forward ends nobody's Lease.
//!
//! The way from Other to Alone is a handover. The engine learns of it by the end of a pause, and leaves machines alone for as
//! long as what the other one began may take (`State::take_over`).
//!
//! Not here: sharing rosters between controllers, and who should lead. The Lease is no lock against a controller that may
//! not read Leases; that one says that it relies on being alone.

use std::os::unix::fs::MetadataExt as _;
use std::path::Path;
use std::sync::Arc;
use std::time::Duration;

use reveille_core::effect::Call;
use reveille_core::event::{Pause, PauseScope};
use reveille_core::model::time::{Span, Time};
use reveille_kube::{Claim, ClaimError, Cluster, Renewal};
use tokio::sync::watch;
use tokio::time::{Instant, sleep, timeout};

use super::clock::Clock;
use super::ledger_backend::{FenceCheck, Lead};
use super::pauses::everything;

/// Between two renewals: ten writes in ten minutes, below the twelve that our own budget of writes allows one object.
const RENEW_EVERY: Duration = Duration::from_secs(60);
/// Between two reads while another controller holds it, or nothing is proved.
const READ_EVERY: Duration = Duration::from_secs(15);
/// After a write that another controller was before.
const AGAIN_AFTER: Duration = Duration::from_secs(1);
/// Another's Lease that does not change for so long is left behind.
const LEFT_AFTER: Span = Span::from_s(300);
/// So long our own Lease proves that we are alone. Less than what another waits for, by more than a call takes: it is asked
/// right before a call, which may be several requests and last for two minutes.
const PROVES: Span = Span::from_s(150);
/// Longest wait for the first answer at the start, and for letting go at the end.
const WITHIN: Duration = Duration::from_secs(5);

/// A moment on both of our clocks.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Moment {
    mono: Instant,
    wall: Time,
}

impl Moment {
    fn now(clock: &Clock) -> Self {
        Self { mono: Instant::now(), wall: clock() }
    }

    /// The most that may have passed since then: what we proved is not counted on for longer.
    fn at_most_since(self, earlier: Self) -> Span {
        self.wall.since(earlier.wall).max(self.at_least_since(earlier))
    }

    /// The least that has passed since then: another is not called silent before.
    fn at_least_since(self, earlier: Self) -> Span {
        let mono = self.mono.saturating_duration_since(earlier.mono);
        Span::from_ms(i64::try_from(mono.as_millis()).unwrap_or(i64::MAX))
    }
}

/// What is known of other controllers.
#[derive(Clone, Debug)]
pub(crate) enum Standing {
    /// Nothing yet.
    Asking,
    /// The Lease was ours then.
    Alone(Moment),
    /// The cluster lets us have no Lease: why.
    Relied(Arc<str>),
    /// Another controller renews it: which.
    Other(Arc<str>),
    /// The Lease cannot be read or written: why.
    Unproved(Arc<str>),
}

/// This controller, as its Lease names it: `host:process:ledger`.
#[derive(Clone, Debug)]
pub(crate) struct Identity {
    holder: String,
    /// The end that every process on this very state directory has.
    ledger: String,
}

impl Identity {
    /// This process on the state directory whose lock it holds. A copy of the directory has another inode; another host
    /// has another boot id.
    pub(crate) fn of(state: &Path) -> std::io::Result<Self> {
        let lock = std::fs::metadata(state.join("ledger").join("lock"))?;
        let boot = std::fs::read_to_string("/proc/sys/kernel/random/boot_id").unwrap_or_default();
        let boot: String = boot.chars().filter(char::is_ascii_hexdigit).take(8).collect();
        let host = reveille_record::Holder::this_process("", 0).host;
        let ledger = format!(":{boot}-{:x}-{:x}", lock.dev(), lock.ino());
        Ok(Self { holder: format!("{host}:{}{ledger}", std::process::id()), ledger })
    }

    /// The Lease is of this process, or of one before it on the same ledger: its lock is ours, so that one is over.
    fn is_ours(&self, holder: &str) -> bool {
        holder == self.holder || holder.ends_with(&self.ledger)
    }
}

/// The rule, without requests: what a Lease that was read means, and what was seen of it before.
#[derive(Debug)]
struct Rule {
    identity: Identity,
    /// Another's Lease.
    seen: Option<Seen>,
    /// It was read once in this process: later refusals do not mean that the cluster has no Leases.
    known: bool,
}

/// Another's Lease, as it was seen last.
#[derive(Debug)]
struct Seen {
    holder: Arc<str>,
    /// None once it was let go.
    version: Option<String>,
    /// Since when it has not changed.
    since: Moment,
}

/// What to do with a Lease that was read.
#[derive(Debug, PartialEq, Eq)]
enum Next {
    Write,
    Leave(Arc<str>),
}

impl Rule {
    fn judge(&mut self, claim: Option<&Claim>, now: Moment) -> Next {
        self.known = true;
        let Some(claim) = claim else { return self.if_left(now) };
        let Some(holder) = claim.holder.as_deref() else { return self.let_go(claim, now) };
        let same = |seen: &Seen| seen.version.as_ref() == Some(&claim.version);
        if self.identity.is_ours(holder) || self.seen.as_ref().is_some_and(same) {
            return self.if_left(now);
        }
        let (holder, version) = (Arc::<str>::from(holder), Some(claim.version.clone()));
        self.seen = Some(Seen { holder: Arc::clone(&holder), version, since: now });
        Next::Leave(holder)
    }

    /// The Lease has not changed in another's hands, or it is not in them any more and no annotation says that it was let
    /// go: that one finds out at its next renewal.
    fn if_left(&mut self, now: Moment) -> Next {
        let Some(Seen { holder, version: Some(_), since }) = &self.seen else {
            self.seen = None;
            return Next::Write;
        };
        if now.at_least_since(*since) < LEFT_AFTER {
            return Next::Leave(Arc::clone(holder));
        }
        let holder = holder.as_ref();
        tracing::warn!(
            holder,
            "the Lease of another controller has not changed for {LEFT_AFTER}; it is taken over"
        );
        self.seen = None;
        Next::Write
    }

    /// It was let go. One round as the other's, also where this process never saw it in its hands: the engine is to know that
    /// another controller acted until now.
    fn let_go(&mut self, claim: &Claim, now: Moment) -> Next {
        let others =
            claim.let_go_by.as_deref().filter(|holder| !self.identity.is_ours(holder)).map(Arc::from);
        match (self.seen.take(), others) {
            (Some(Seen { holder, version: Some(_), .. }), _) | (None, Some(holder)) => {
                self.seen = Some(Seen { holder: Arc::clone(&holder), version: None, since: now });
                Next::Leave(holder)
            }
            (Some(Seen { version: None, .. }) | None, _) => Next::Write,
        }
    }

    /// What a failure means, after what stood before.
    fn failed(&self, before: &Standing, error: ClaimError, now: Moment) -> Standing {
        match (error, before) {
            (ClaimError::Denied(why), _) if !self.known => Standing::Relied(Arc::from(why)),
            // Rights to read, and none to write: then no controller of this account has a Lease.
            (ClaimError::Denied(why), Standing::Asking | Standing::Relied(_)) => {
                Standing::Relied(Arc::from(why))
            }
            (_, Standing::Alone(at)) if now.at_most_since(*at) < PROVES => before.clone(),
            (_, Standing::Other(_)) => before.clone(),
            (error, _) => Standing::Unproved(Arc::from(error.to_string())),
        }
    }
}

/// What the driver and the reports ask.
#[derive(Clone)]
pub(crate) struct Presence {
    standing: watch::Receiver<Standing>,
    clock: Clock,
}

impl Presence {
    /// Why this controller does nothing now: another one acts, or may. Nothing when it may act.
    pub(crate) fn forbids_all(&self) -> Option<Arc<str>> {
        match &*self.standing.borrow() {
            Standing::Asking => Some(Arc::from("the Lease of this roster has not been read yet")),
            Standing::Other(holder) => Some(Arc::from(format!(
                "another controller acts for this roster: {holder}. This one only observes"
            ))),
            Standing::Alone(_) | Standing::Relied(_) | Standing::Unproved(_) => None,
        }
    }

    /// The pause that the engine gets for that. The end of another controller's is a handover to it.
    pub(crate) fn pause(&self) -> Option<Pause> {
        let pause = everything(&self.forbids_all()?);
        let is_other = matches!(&*self.standing.borrow(), Standing::Other(_));
        let scope = if is_other { PauseScope::OtherController } else { pause.scope };
        Some(Pause { scope, ..pause })
    }

    /// Why this call must not be made now. Without an answer of the API server only what cannot hurt goes on: a port that
    /// lost its group may be why the API server is silent, and two controllers that put it back do no harm.
    pub(crate) fn forbids(&self, call: &Call) -> Option<Arc<str>> {
        self.forbids_all().or_else(|| self.unproved().filter(|_| !call.is_harmless_twice()))
    }

    /// Why it is not proved that this controller is alone, where it should be.
    fn unproved(&self) -> Option<Arc<str>> {
        match &*self.standing.borrow() {
            Standing::Alone(at) if Moment::now(&self.clock).at_most_since(*at) < PROVES => None,
            Standing::Alone(_) => Some(Arc::from("the Lease of this roster was not renewed for 150 s")),
            Standing::Unproved(why) => {
                Some(Arc::from(format!("the Lease of this roster cannot be read or written: {why}")))
            }
            Standing::Asking | Standing::Relied(_) | Standing::Other(_) => None,
        }
    }

    /// What a report says of it beside the pauses; nothing while a Lease proves that we are alone.
    pub(crate) fn says(&self) -> Option<String> {
        if let Standing::Relied(why) = &*self.standing.borrow() {
            return Some(format!(
                "this controller relies on being the only one of its roster: it has no Lease in kube-system ({why})"
            ));
        }
        self.unproved()
            .map(|why| format!("{why}. Nothing is rebooted, started, deleted or taken away meanwhile"))
    }

    /// Waits a moment for the first answer, so that a run that ends by itself does not end before it.
    pub(crate) async fn first_answer(&self) {
        let mut standing = self.standing.clone();
        let answered = standing.wait_for(|standing| !matches!(standing, Standing::Asking));
        drop(timeout(WITHIN, answered).await);
    }

    /// The fence check, and that we are alone: both are leadership, and both are asked right before a call.
    pub(crate) fn and(self, leads: FenceCheck) -> FenceCheck {
        Arc::new(move |call| match self.forbids(call) {
            Some(why) => Lead::Unread(why),
            None => leads(call),
        })
    }
}

/// Reads and renews one roster's Lease.
pub(crate) struct Watcher {
    cluster: Cluster,
    roster: String,
    rule: Rule,
    clock: Clock,
    standing: watch::Sender<Standing>,
    /// What was said last, so that a state is logged once.
    said: Option<String>,
}

impl Watcher {
    /// A watcher of the roster's Lease in its cluster.
    pub(crate) fn new(cluster: Cluster, roster: &str, identity: Identity, clock: Clock) -> Self {
        let rule = Rule { identity, seen: None, known: false };
        Self {
            cluster,
            roster: roster.to_owned(),
            rule,
            clock,
            standing: watch::Sender::new(Standing::Asking),
            said: None,
        }
    }

    /// For whoever asks.
    pub(crate) fn presence(&self) -> Presence {
        Presence { standing: self.standing.subscribe(), clock: self.clock.clone() }
    }

    /// Reads and renews until `stop`, which is when nothing of ours is under way any more; then lets go.
    pub(crate) async fn run(mut self, stop: impl Future<Output = ()>) {
        let renewing = async {
            loop {
                let wait = self.round().await;
                sleep(wait).await;
            }
        };
        tokio::select! {
            () = renewing => {}
            () = stop => {}
        }
        drop(timeout(WITHIN, self.let_go()).await);
    }

    /// One round; returns the wait until the next.
    async fn round(&mut self) -> Duration {
        // Before the request: what it proves begins no later.
        let begun = Moment::now(&self.clock);
        let before = self.standing.borrow().clone();
        let (standing, wait) = match self.ask(begun).await {
            Ok(standing @ Standing::Alone(_)) => (standing, RENEW_EVERY),
            Ok(standing) => (standing, READ_EVERY),
            Err(ClaimError::Moved) => (before, AGAIN_AFTER),
            Err(error) => (self.rule.failed(&before, error, begun), READ_EVERY),
        };
        self.say(&standing);
        self.standing.send_replace(standing);
        wait
    }

    async fn ask(&mut self, begun: Moment) -> Result<Standing, ClaimError> {
        let claim = self.cluster.read_claim(&self.roster).await?;
        match self.rule.judge(claim.as_ref(), begun) {
            Next::Leave(holder) => Ok(Standing::Other(holder)),
            Next::Write => {
                let holder = self.rule.identity.holder.clone();
                self.write(claim.as_ref(), &holder).await?;
                Ok(Standing::Alone(begun))
            }
        }
    }

    async fn write(&self, over: Option<&Claim>, holder: &str) -> Result<(), ClaimError> {
        let at = jiff::Timestamp::from_millisecond((self.clock)().ms).unwrap_or_default();
        let at = at.strftime("%Y-%m-%dT%H:%M:%S.%6fZ").to_string();
        let let_go_by = holder.is_empty().then_some(self.rule.identity.holder.as_str());
        let renewal = Renewal { holder, let_go_by, at: &at, lasts_s: 300 };
        self.cluster.write_claim(&self.roster, over, renewal).await
    }

    /// The next controller need not wait until the Lease looks left behind.
    async fn let_go(&self) {
        if !matches!(&*self.standing.borrow(), Standing::Alone(_)) {
            return;
        }
        let Ok(Some(claim)) = self.cluster.read_claim(&self.roster).await else { return };
        if claim.holder.as_deref() == Some(&self.rule.identity.holder) {
            drop(self.write(Some(&claim), "").await);
        }
    }

    fn say(&mut self, standing: &Standing) {
        let roster = self.roster.as_str();
        let lease = reveille_kube::claim_name(roster);
        let text = match standing {
            Standing::Asking => return,
            Standing::Alone(_) => {
                format!("holds the Lease kube-system/{lease}: no other controller acts for this roster")
            }
            Standing::Relied(why) => {
                format!(
                    "relies on being the only controller of this roster: no Lease kube-system/{lease} ({why})"
                )
            }
            Standing::Other(holder) => {
                format!(
                    "another controller holds the Lease kube-system/{lease}: {holder}. This one only observes"
                )
            }
            Standing::Unproved(why) => {
                format!(
                    "the Lease kube-system/{lease} is not known: {why}. Nothing is rebooted, started, deleted or taken away meanwhile"
                )
            }
        };
        if self.said.as_ref() == Some(&text) {
            return;
        }
        match standing {
            Standing::Alone(_) => tracing::info!(roster, "{text}"),
            _ => tracing::warn!(roster, "{text}"),
        }
        self.said = Some(text);
    }
}

#[cfg(test)]
pub(crate) mod tests;
