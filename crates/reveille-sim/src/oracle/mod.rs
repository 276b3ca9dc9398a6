//! A second opinion: judges every step by the world's truth and by the trail of records, not by the engine's own views.
//!
//! ```text
//!  (now, event, effects) of a step ─┬─▶ trail: what was recorded, read, refused, and when ─▶ fouls of procedure
//!                                   └─▶ acts: what a call would do to a machine as it is ─▶ fouls of substance
//!  World (truth, pauses), Roster ───┘
//! ```
//!
//! `engine::invariants` judges from what the engine believes. When a belief is wrong, or a safeguard that the check and the
//! act share is missing, both go wrong together. The oracle compares the same acts with the truth. It grants slack for what
//! the engine could not have known yet: facts travel, and a rollout of a pool shows only at the next listing.
//!
//! A [`Foul`] is not always harm. It is an act that a careful operator at the same desk would not have done. The oracle
//! forgives nothing that the engine could have known, and it never speaks to the engine.

mod acts;
mod hands;
mod hosting;
mod roles;
mod trail;

use std::collections::{BTreeMap, BTreeSet, VecDeque};
use std::sync::Arc;

use reveille_core::effect::{Call, Effect, Look};
use reveille_core::event::Event;
use reveille_core::model::id::{IncidentId, InstanceId, IntentId, LookId, PoolName, RecordId, ZoneName};
use reveille_core::model::incident::{FaultKind, IncidentKey};
use reveille_core::model::roster::Roster;
use reveille_core::model::time::{Span, Time};
use reveille_core::record::{Domain, Record};

use crate::world::World;

/// Something that should not have been done, or not so.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Foul {
    /// When.
    pub at: Time,
    /// Which rule.
    pub rule: &'static str,
    /// What was done.
    pub what: String,
}

/// What stands around a step.
pub(crate) struct Scene<'a> {
    pub(crate) world: &'a World,
    pub(crate) roster: &'a Roster,
}

/// The oracle and everything that it remembers.
#[derive(Clone, Debug, Default)]
pub struct Oracle {
    fouls: Vec<Foul>,
    now: Time,
    stepped_at: Option<Time>,
    /// How far the process's own clock is ahead of the true one, milliseconds.
    ahead_ms: Option<i64>,
    /// By how much that clock jumped forwards, where the engine could not tell it from time that passed.
    jumped: Vec<(Time, Span)>,
    // What the sources said, and since when without a gap.
    cloud_heard: Option<Time>,
    cluster_heard: Option<Time>,
    sight_back: Time,
    // The trail of records.
    asked: BTreeMap<RecordId, Record>,
    refused_at: Option<Time>,
    open: BTreeMap<IncidentId, Opened>,
    intents: BTreeMap<IntentId, Intent>,
    joined: BTreeSet<InstanceId>,
    joined_and_went: BTreeSet<InstanceId>,
    cooling: BTreeMap<Domain, Time>,
    looks: BTreeMap<LookId, Look>,
    read_at: Option<Time>,
    evidence: BTreeMap<InstanceId, Time>,
    /// When this process began.
    began_at: Time,
    /// What was tried before this counts no more: no process ran for hours.
    tried_from: Time,
    roles_asked: BTreeMap<LookId, Time>,
    roles_said: roles::SaidOf,
    hands: hands::Hands,
    // Truth that is only visible over time.
    looked_at: Option<Time>,
    scenery: Option<(Time, u64, u64, bool)>,
    dark_since: BTreeMap<ZoneName, Time>,
    back_at: BTreeMap<ZoneName, Time>,
    fleet_dark_since: Option<Time>,
    /// No list shows it now.
    is_silence_unseen: bool,
    /// The version of each pool's image, when that last changed, and since when it does so without a rest.
    rolled: BTreeMap<PoolName, (u32, Option<(Time, Time)>)>,
    /// Images of each pool that this process was told of.
    images_told: BTreeMap<PoolName, BTreeSet<Arc<str>>>,
    /// Machines that were in the roster when a listing last showed them. Of one that was made and deleted while we slept no
    /// client of ours can know of which pool it was (seed 7601527).
    listed: BTreeSet<InstanceId>,
    foreign: BTreeMap<InstanceId, (Time, PoolName)>,
    /// Others deleted them while every listing and read denied them.
    unseen_ends: BTreeSet<InstanceId>,
    /// Others deleted them while listings left them out, and when that was noticed: no list of changes shows that, and
    /// the next full one does (seed 8730123).
    hidden_ends: BTreeMap<InstanceId, Time>,
    /// When a cloud was last listed in full.
    full_heard: Option<Time>,
    newest_join: BTreeMap<PoolName, Time>,
    limit_told: Option<usize>,
    deletions: BTreeMap<PoolName, Vec<Deleted>>,
    acted: VecDeque<(Time, Call)>,
    failed: Vec<(Time, Call)>,
    /// Requests of people for a repair, by the machine, that a repair was made for.
    requests: BTreeMap<InstanceId, Arc<str>>,
    /// A request storm was seen.
    stormed: bool,
    /// Machines that are kept for a look, by their incident, and until when.
    kept: BTreeMap<IncidentId, (Option<PoolName>, Time)>,
}

/// An incident that is open.
#[derive(Clone, Debug)]
struct Opened {
    key: IncidentKey,
    pool: Option<PoolName>,
    at: Time,
}

/// An intent that was recorded.
#[derive(Clone, Debug)]
struct Intent {
    incident: IncidentId,
    kind: Option<FaultKind>,
    domain: Option<Domain>,
    call: Call,
    called: Option<Time>,
    /// Its answer is known; what comes later is the same answer once more.
    answered: bool,
    /// The answer was that nothing happened.
    came_to_nothing: bool,
    /// The answer was that the right to do this is lacking.
    denied: bool,
    /// It was judged to have held. A record that was refused is asked for again, and says nothing new.
    held: bool,
    /// It was judged not to have held, or not to have helped.
    failed: bool,
    /// When it was first judged so.
    failed_at: Option<Time>,
    done_at: Option<Time>,
}

/// An instance that was deleted so that another comes: once, however often it was asked for.
#[derive(Clone, Debug)]
struct Deleted {
    at: Time,
    id: InstanceId,
    fault: Option<Arc<str>>,
}

/// Between two looks around.
const LOOK_EVERY: Span = Span::from_s(5);
/// In which listings are counted.
const LISTINGS_WITHIN: Span = Span::from_min(10);
/// Listings that may be wished for in that time.
const LISTINGS_WISHED: usize = 5;
/// Fouls beyond this many say nothing new.
const FOULS_MAX: usize = 64;

/// Six hours without a process end what was tried, by the clocks of two processes, which may be apart.
const TRIES_COUNT_FOR: Span = Span::from_min(5 * 60);

impl Oracle {
    /// Everything that was whistled, in order.
    pub fn fouls(&self) -> &[Foul] {
        &self.fouls
    }

    /// Before a step: hears what the engine is told, and what time it is on its own clock.
    pub(crate) fn hear(&mut self, now: Time, own: Time, event: &Event, roster: &Roster) {
        self.now = now;
        let ahead_ms = own.ms - now.ms;
        let by = Span::from_ms(ahead_ms - self.ahead_ms.replace(ahead_ms).unwrap_or(ahead_ms));
        // A longer jump counts as a sleep for the process, and every timer starts again.
        if by > Span::ZERO && by <= roster.timing.pause_jump {
            self.jumped.push((now, by));
        }
        self.note_event(event, roster);
    }

    /// After a step: judges the effects that it gave, before they are carried out.
    pub(crate) fn judge(&mut self, effects: &[Effect], scene: &Scene<'_>) {
        let now = self.now;
        let acts = effects.iter().any(|effect| matches!(effect, Effect::Call { .. }));
        if acts || self.looked_at.is_none_or(|at| now.since(at) >= LOOK_EVERY) {
            self.looked_at = Some(now);
            let scenery = Some(scene.world.scenery());
            if std::mem::replace(&mut self.scenery, scenery) != scenery {
                self.look_around(scene);
            }
            self.forget_old_acts();
        }
        self.judge_listings(scene);
        for effect in effects {
            match effect {
                Effect::Record { id, record } => {
                    self.judge_record(record, scene);
                    self.asked.insert(*id, record.clone());
                }
                Effect::Look { id, look } => {
                    if matches!(look, Look::Roles(..)) {
                        self.roles_asked.insert(*id, now);
                    }
                    self.looks.insert(*id, look.clone());
                }
                Effect::Call { intent, call, .. } => {
                    self.judge_call(*intent, call, scene);
                    // What is asked for in vain, with a backoff, is not done again and again.
                    if !scene.world.refuses_writes() {
                        self.acted.push_back((now, call.clone()));
                    }
                }
                Effect::List { .. } | Effect::WakeAt(_) => {}
            }
        }
        self.stepped_at = Some(now);
    }

    /// A cloud in trouble must not be listed more often because it is in trouble: half as many listings again as its period
    /// makes, and a few that were wished for.
    fn judge_listings(&mut self, scene: &Scene<'_>) {
        let period = scene.roster.timing.cloud_period.max(Span::from_s(1));
        let most = usize::try_from(LISTINGS_WITHIN.ms / period.ms * 3 / 2).unwrap_or(usize::MAX);
        let begun = scene.world.listings_lately();
        if begun > most.saturating_add(LISTINGS_WISHED) && !self.stormed {
            self.stormed = true;
            self.foul("request storm", format!("{begun} listings of the cloud within ten minutes"));
        }
    }

    /// The process goes on after a sleep: what was tried before a long one counts no more.
    pub(crate) fn woke_up(&mut self, now: Time, slept: Span) {
        if slept > TRIES_COUNT_FOR {
            self.tried_from = now;
        }
    }

    /// Another process begins: it has received no facts yet, and it does not know what was not durable. Its numbers are given
    /// again. It was away for so long by the controllers' clocks, which may have been set ahead meanwhile (seed 8331210).
    pub(crate) fn restarted(&mut self, now: Time, away: Span, durable: &[Record]) {
        let was_long_away = now.since(self.now).max(away) > TRIES_COUNT_FOR;
        self.tried_from = if was_long_away { now } else { self.tried_from };
        self.hands.restart(self.stepped_at.unwrap_or(now), self.refused_at);
        self.now = now;
        self.sight_back = now;
        self.cloud_heard = None;
        self.cluster_heard = None;
        for lost in std::mem::take(&mut self.asked).values().filter(|record| !durable.contains(record)) {
            match lost {
                Record::Opened { incident, .. } => drop(self.open.remove(incident)),
                Record::Intended { intent, .. } => drop(self.intents.remove(intent)),
                _ => {}
            }
        }
        self.fleet_dark_since = self.fleet_dark_since.filter(|_| !self.is_silence_unseen);
        self.looks.clear();
        self.images_told.clear();
        self.evidence.clear();
        self.forget_roles();
        self.refused_at = None;
    }

    fn foul(&mut self, rule: &'static str, what: String) {
        if self.fouls.len() < FOULS_MAX {
            self.fouls.push(Foul { at: self.now, rule, what });
        }
    }

    fn ago(&self, at: Time) -> Span {
        self.now.since(at)
    }

    /// How long ago that was for a process that could not tell how its clock jumped.
    fn felt(&self, at: Time) -> Span {
        let jumped = self.jumped.iter().filter(|(then, _)| *then >= at).map(|(_, by)| *by);
        jumped.fold(self.ago(at), |ago, by| ago + by)
    }
}
