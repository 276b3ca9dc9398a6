//! Whether another controller acts for the same roster: this controller reads and renews a Lease in the cluster.
//!
//! ```text
//!  read ─┬▶ none, ours ─────────────────────▶ write ─▶ Alone       Moved ─▶ read again
//!        ├▶ another's, and it changes ──────▶ Other: this controller only observes
//!        ├▶ another's, unchanged for long ──▶ write ─▶ Alone
//!        ├▶ released by another ─────────────▶ Other, once ─▶ write ─▶ Alone
//!        └▶ no right, no such API ──────────▶ Relied: it says so, and acts
//!  another's a moment ago, and none or ours now: deleted, or a backup was restored ─▶ as if unchanged
//!  no answer for long ─▶ Unproved: only what is missing is added
//! ```
//!
//! The ledger's lock keeps two processes of one state directory apart. Two hosts have two ledgers, and each would repair
//! with a budget of its own. Changes of the Lease within a time on this controller's clocks show that the other
//! controller is alive; the time in the Lease is only for operators. For this controller's own proof both clocks are
//! read, and the longer time counts. The monotonic clock stands still while a laptop sleeps, and the wall clock may be
//! set back. For the other controller's silence only the monotonic clock counts, because it never runs ahead: a wall
//! clock that is set forward ends no other controller's Lease.
//!
//! The way from Other to Alone is a handover. The engine learns of it by the end of a pause, and leaves machines alone
//! for as long as the other controller's last actions may take (`State::take_over`).
//!
//! Not here: sharing rosters between controllers, and the choice of a leader. The Lease does not stop a controller that
//! may not read Leases; such a controller reports that it assumes to be alone.

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

/// The time between two renewals: ten writes in ten minutes, below the limit of twelve that our own write
/// budget sets for one object.
const RENEW_EVERY: Duration = Duration::from_secs(60);
/// The time between two reads while another controller holds the Lease, or while nothing is proved.
const READ_EVERY: Duration = Duration::from_secs(15);
/// The wait after another controller wrote the Lease first.
const AGAIN_AFTER: Duration = Duration::from_secs(1);
/// Another controller's Lease that does not change for this long counts as abandoned.
const LEFT_AFTER: Span = Span::from_s(300);
/// Our own Lease proves for this long that this controller is alone. The time is shorter than the wait of another
/// controller, by more than a call takes. It is checked right before a call, which may consist of several requests and
/// take two minutes.
const PROVES: Span = Span::from_s(150);
/// The longest wait for the first answer at the start, and for the release at the end.
const WITHIN: Duration = Duration::from_secs(5);

/// A moment on the wall clock and on the monotonic clock.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Moment {
    mono: Instant,
    wall: Time,
}

impl Moment {
    fn now(clock: &Clock) -> Self {
        Self { mono: Instant::now(), wall: clock() }
    }

    /// The longest time that may have passed since then: a proof is not used for longer.
    fn at_most_since(self, earlier: Self) -> Span {
        self.wall.since(earlier.wall).max(self.at_least_since(earlier))
    }

    /// The shortest time that has passed since then: another controller does not count as silent before.
    fn at_least_since(self, earlier: Self) -> Span {
        self.mono.saturating_duration_since(earlier.mono).into()
    }
}

/// What is known about other controllers.
#[derive(Clone, Debug)]
pub(crate) enum LeaseState {
    /// Nothing is known yet.
    Asking,
    /// The Lease was ours at that moment.
    Alone(Moment),
    /// The cluster allows us no Lease: why.
    Relied(Arc<str>),
    /// Another controller renews the Lease: which one.
    Other(Arc<str>),
    /// The Lease cannot be read or written: why.
    Unproved(Arc<str>),
}

/// This controller, as its Lease names it: `host:process:ledger`.
#[derive(Clone, Debug)]
pub(crate) struct Identity {
    holder: String,
    /// The suffix that every process on this state directory has in its name.
    ledger: String,
}

impl Identity {
    /// This process on the state directory whose lock it holds. A copy of the directory has another inode, and another
    /// host has another boot id.
    pub(crate) fn of(state: &Path) -> std::io::Result<Self> {
        let lock = std::fs::metadata(state.join("ledger").join("lock"))?;
        let boot = std::fs::read_to_string("/proc/sys/kernel/random/boot_id").unwrap_or_default();
        let boot: String = boot.chars().filter(char::is_ascii_hexdigit).take(8).collect();
        let host = reveille_record::Holder::this_process("", 0).host;
        let ledger = format!(":{boot}-{:x}-{:x}", lock.dev(), lock.ino());
        Ok(Self { holder: format!("{host}:{}{ledger}", std::process::id()), ledger })
    }

    /// The Lease belongs to this process, or to an earlier one on the same ledger. This process holds the ledger's lock,
    /// so the earlier one has ended.
    fn is_ours(&self, holder: &str) -> bool {
        holder == self.holder || holder.ends_with(&self.ledger)
    }
}

/// The decision without requests: what a Lease means, given what was read before.
#[derive(Debug)]
struct Rule {
    identity: Identity,
    /// The Lease of another controller.
    seen: Option<Seen>,
    /// This process has read the Lease once, so a later refusal does not mean that the cluster has no Leases.
    known: bool,
    /// There was a Lease when it was last read: a controller was allowed to write it.
    exists: bool,
    /// Another controller held it while this process ran.
    met: bool,
}

/// The Lease of another controller, as it was last read.
#[derive(Debug)]
struct Seen {
    holder: Arc<str>,
    /// `None` after the other controller released it.
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
    const fn new(identity: Identity) -> Self {
        Self { identity, seen: None, known: false, exists: false, met: false }
    }

    fn judge(&mut self, claim: Option<&Claim>, now: Moment) -> Next {
        (self.known, self.exists) = (true, claim.is_some());
        let Some(claim) = claim else { return self.if_left(now) };
        let Some(holder) = claim.holder.as_deref() else { return self.let_go(claim, now) };
        let same = |seen: &Seen| seen.version.as_ref() == Some(&claim.version);
        if self.identity.is_ours(holder) || self.seen.as_ref().is_some_and(same) {
            return self.if_left(now);
        }
        self.met = true;
        let (holder, version) = (Arc::<str>::from(holder), Some(claim.version.clone()));
        self.seen = Some(Seen { holder: Arc::clone(&holder), version, since: now });
        Next::Leave(holder)
    }

    /// Another controller holds the Lease and did not change it; or it no longer holds it, and no annotation says that it
    /// released it. In the second case the other controller finds out at its next renewal.
    fn if_left(&mut self, now: Moment) -> Next {
        let Some(Seen { holder, version: Some(_), since }) = &self.seen else {
            self.seen = None;
            return Next::Write;
        };
        if now.at_least_since(*since) < LEFT_AFTER {
            return Next::Leave(Arc::clone(holder));
        }
        Next::Write
    }

    /// The Lease was written: no other controller holds it any more.
    fn took(&mut self) {
        if let Some(Seen { holder, version: Some(_), .. }) = self.seen.take() {
            let holder = holder.as_ref();
            tracing::warn!(
                holder,
                "the Lease of another controller has not changed for {LEFT_AFTER}; it is taken over"
            );
        }
    }

    /// The Lease was released. This process treats it as the other's for one round, even if it never saw the other hold
    /// it: the engine must learn that another controller acted until now.
    fn let_go(&mut self, claim: &Claim, now: Moment) -> Next {
        let others =
            claim.let_go_by.as_deref().filter(|holder| !self.identity.is_ours(holder)).map(Arc::from);
        match (self.seen.take(), others) {
            (Some(Seen { holder, version: Some(_), .. }), _) | (None, Some(holder)) => {
                self.met = true;
                self.seen = Some(Seen { holder: Arc::clone(&holder), version: None, since: now });
                Next::Leave(holder)
            }
            (Some(Seen { version: None, .. }) | None, _) => Next::Write,
        }
    }

    /// What a failure means, given the state before it.
    fn failed(&self, before: &LeaseState, error: ClaimError, now: Moment) -> LeaseState {
        match (error, before) {
            (ClaimError::Denied(why), _) if !self.known => LeaseState::Relied(Arc::from(why)),
            // The account may read Leases and not write them, so no controller of this account has a Lease. Where there is one,
            // the right was taken away, or another account has it. Once a person deleted that one it is as before, unless
            // another controller is known: two that lost the right both saw the Lease go, and both would act.
            (
                ClaimError::Denied(why),
                LeaseState::Asking | LeaseState::Relied(_) | LeaseState::Unproved(_),
            ) if !self.exists && !self.met => LeaseState::Relied(Arc::from(why)),
            (_, LeaseState::Alone(at)) if now.at_most_since(*at) < PROVES => before.clone(),
            (_, LeaseState::Other(_)) => before.clone(),
            (error, _) => LeaseState::Unproved(Arc::from(error.to_string())),
        }
    }
}

/// The answers for the driver and the reports.
#[derive(Clone)]
pub(crate) struct Presence {
    lease_state: watch::Receiver<LeaseState>,
    clock: Clock,
}

impl Presence {
    /// Why this controller does nothing now: another controller acts, or may act. `None` when this one may act.
    pub(crate) fn forbids_all(&self) -> Option<Arc<str>> {
        match &*self.lease_state.borrow() {
            LeaseState::Asking => Some(Arc::from("the Lease of this roster has not been read yet")),
            LeaseState::Other(holder) => Some(Arc::from(format!(
                "another controller acts for this roster: {holder}. This one only observes"
            ))),
            LeaseState::Alone(_) | LeaseState::Relied(_) | LeaseState::Unproved(_) => None,
        }
    }

    /// The pause for the engine. When the pause for another controller ends, the engine treats that as a handover.
    pub(crate) fn pause(&self) -> Option<Pause> {
        let pause = everything(&self.forbids_all()?);
        let is_other = matches!(&*self.lease_state.borrow(), LeaseState::Other(_));
        let scope = if is_other { PauseScope::OtherController } else { pause.scope };
        Some(Pause { scope, ..pause })
    }

    /// Why this call must not be made now. While the API server does not answer, only harmless calls go on. A port that lost
    /// its security group may be why the API server is silent, and two controllers that add the group again do no harm.
    pub(crate) fn forbids(&self, call: &Call) -> Option<Arc<str>> {
        self.forbids_all().or_else(|| self.unproved().filter(|_| !call.is_harmless_twice()))
    }

    /// Why it is not proved that this controller is alone, where it should be.
    fn unproved(&self) -> Option<Arc<str>> {
        match &*self.lease_state.borrow() {
            LeaseState::Alone(at) if Moment::now(&self.clock).at_most_since(*at) < PROVES => None,
            LeaseState::Alone(_) => Some(Arc::from("the Lease of this roster was not renewed for 150 s")),
            LeaseState::Unproved(why) => {
                Some(Arc::from(format!("the Lease of this roster cannot be read or written: {why}")))
            }
            LeaseState::Asking | LeaseState::Relied(_) | LeaseState::Other(_) => None,
        }
    }

    /// What a report says about it beside the pauses; `None` while a Lease proves that this controller is alone.
    pub(crate) fn says(&self) -> Option<String> {
        if let LeaseState::Relied(why) = &*self.lease_state.borrow() {
            return Some(format!(
                "this controller relies on being the only one of its roster: it has no Lease in kube-system ({why})"
            ));
        }
        self.unproved()
            .map(|why| format!("{why}. Nothing is rebooted, started, deleted or taken away meanwhile"))
    }

    /// Waits a moment for the first answer, so that a short run does not end before it.
    pub(crate) async fn first_answer(&self) {
        let mut lease_state = self.lease_state.clone();
        let answered = lease_state.wait_for(|lease_state| !matches!(lease_state, LeaseState::Asking));
        drop(timeout(WITHIN, answered).await);
    }

    /// Combines the fence check with the check that this controller is alone: both prove leadership, and both
    /// run right before a call.
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
    lease_state: watch::Sender<LeaseState>,
    /// The last message, so that each state is logged once.
    said: Option<String>,
}

impl Watcher {
    /// A watcher of the roster's Lease in its cluster.
    pub(crate) fn new(cluster: Cluster, roster: &str, identity: Identity, clock: Clock) -> Self {
        let rule = Rule::new(identity);
        Self {
            cluster,
            roster: roster.to_owned(),
            rule,
            clock,
            lease_state: watch::Sender::new(LeaseState::Asking),
            said: None,
        }
    }

    /// The handle for the driver and the reports.
    pub(crate) fn presence(&self) -> Presence {
        Presence { lease_state: self.lease_state.subscribe(), clock: self.clock.clone() }
    }

    /// Reads and renews until `stop`, which resolves when no call of this controller is under way any more; then it
    /// releases the Lease.
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

    /// Runs one round; returns the wait until the next.
    async fn round(&mut self) -> Duration {
        // The time is taken before the request, so that a proof never begins too late.
        let begun = Moment::now(&self.clock);
        let before = self.lease_state.borrow().clone();
        let (lease_state, wait) = match self.ask(begun).await {
            Ok(lease_state @ LeaseState::Alone(_)) => (lease_state, RENEW_EVERY),
            Ok(lease_state) => (lease_state, READ_EVERY),
            Err(ClaimError::Moved) => (before, AGAIN_AFTER),
            Err(error) => (self.rule.failed(&before, error, begun), READ_EVERY),
        };
        self.say(&lease_state);
        self.lease_state.send_replace(lease_state);
        wait
    }

    async fn ask(&mut self, begun: Moment) -> Result<LeaseState, ClaimError> {
        let claim = self.cluster.read_claim(&self.roster).await?;
        match self.rule.judge(claim.as_ref(), begun) {
            Next::Leave(holder) => Ok(LeaseState::Other(holder)),
            Next::Write => {
                let holder = self.rule.identity.holder.clone();
                let written = self.write(claim.as_ref(), &holder).await;
                let was_others = matches!(&*self.lease_state.borrow(), LeaseState::Other(_));
                if let Err(ClaimError::Denied(why)) = &written
                    && was_others
                {
                    // Two controllers that waited for the same holder would both act from now on.
                    let why = format!(
                        "{why}. Its holder has not renewed it for {LEFT_AFTER}: give the right to update it; or, where no other controller of this roster runs, delete the Lease and restart this one"
                    );
                    return Ok(LeaseState::Unproved(why.into()));
                }
                written?;
                self.rule.took();
                Ok(LeaseState::Alone(begun))
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

    /// Releases the Lease, so that the next controller does not have to wait until it counts as abandoned.
    async fn let_go(&self) {
        if !matches!(&*self.lease_state.borrow(), LeaseState::Alone(_)) {
            return;
        }
        let Ok(Some(claim)) = self.cluster.read_claim(&self.roster).await else { return };
        if claim.holder.as_deref() == Some(&self.rule.identity.holder) {
            drop(self.write(Some(&claim), "").await);
        }
    }

    fn say(&mut self, lease_state: &LeaseState) {
        let roster = self.roster.as_str();
        let lease = reveille_kube::claim_name(roster);
        let text = match lease_state {
            LeaseState::Asking => return,
            LeaseState::Alone(_) => {
                format!("holds the Lease kube-system/{lease}: no other controller acts for this roster")
            }
            LeaseState::Relied(why) => {
                format!(
                    "relies on being the only controller of this roster: no Lease kube-system/{lease} ({why})"
                )
            }
            LeaseState::Other(holder) => {
                format!(
                    "another controller holds the Lease kube-system/{lease}: {holder}. This one only observes"
                )
            }
            LeaseState::Unproved(why) => {
                format!(
                    "the Lease kube-system/{lease} is not known: {why}. Nothing is rebooted, started, deleted or taken away meanwhile"
                )
            }
        };
        if self.said.as_ref() == Some(&text) {
            return;
        }
        match lease_state {
            LeaseState::Alone(_) => tracing::info!(roster, "{text}"),
            _ => tracing::warn!(roster, "{text}"),
        }
        self.said = Some(text);
    }
}

#[cfg(test)]
pub(crate) mod tests;
