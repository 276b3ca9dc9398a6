//! The planning context of a decision: every view, every open incident, every budget, and the time.
//!
//! The context is a bundle of shared references and nothing else. Code that decides can read all of it and change none of it.

use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;

use crate::diagnose::gathered::Gathered;
use crate::diagnose::question::JudgeContext;
use crate::event::Pause;
use crate::model::id::{CloudName, InstanceId, IntentId, NodeName, PoolName, RouterId, ZoneName};
use crate::model::incident::{Incident, IncidentKey, MachineKey, Subject};
use crate::model::roster::{Pool, Roster, Timing};
use crate::model::time::{Span, Time};
use crate::observe::agents::AgentsView;
use crate::observe::cloud::{CloudView, Seen};
use crate::observe::cluster::{ClusterView, NodeSeen};
use crate::observe::counts::Counts;
use crate::observe::remembered::Remembered;
use crate::observe::sharing::Views;
use crate::safeguard::{Safeguard, stands};

use super::budget::Book;
use super::freeze::Freezes;
use super::let_go::LetGo;
use super::others::AtWork;
use super::routes::RouteMemory;

/// So often in one incident a machine that looked well and went again has its whole time once more.
const GIVEN_TIME_MAX: u8 = 3;

/// An open incident with what is needed to decide about it.
#[derive(Clone, Debug)]
pub struct Case {
    /// The incident.
    pub incident: Incident,
    /// Since when its machine is away, by this fault or by one whose place this one took.
    pub away_since: Time,
    /// Since when it had been seen to serve when it went away: the cluster in sight without a break, and no such fault of it open
    /// within the last hour. None where that is not known.
    pub served_since: Option<Time>,
    /// When the fault was first seen, by a clock that stands still while nothing is watched: a sleep, a jump ahead and the time
    /// between two processes are no part of how long it lasted in our sight.
    pub watched_from: Time,
    /// How long this fault is waited for from `counted_from`; `None`: reported, never acted on.
    pub due_after: Option<Span>,
    /// Its timers depend on the view of the cluster, too.
    pub rests_on_cluster: bool,
    /// The evidence that the controller read about it.
    pub gathered: Gathered,
    /// Calls in a row that did not happen at all: the other side was away. They say nothing of the remedy.
    pub unreached: u32,
    /// Calls in a row that were never made: the credential lacked the right, or the other side was in no state for them.
    pub unmade: u32,
    /// The boot id that its Node carried when it first looked well again.
    pub well_boot: Option<Arc<str>>,
    /// Tries that held and did not last, as far as they were counted as such.
    pub lapsed: Vec<IntentId>,
    /// How often it looked well, went again within its dwell and had its whole time once more.
    pub given_time: u8,
    /// When a process began first while it was open.
    pub resumed_at: Option<Time>,
    /// When its machine had looked well for its dwell first, while something that was tried or wanted counts still and a person's
    /// word is missing. Its fault was not seen since: each process and each gap asks for a dwell of its own.
    pub outlasted: Option<Time>,
    /// Since when its machine is contested, for less time than makes that an incident of its own: nothing is done meanwhile.
    pub contested_since: Option<Time>,
}

impl Case {
    /// Nothing is known of it but the incident: not whether it may be acted on, and no evidence.
    pub fn new(incident: Incident) -> Self {
        Self {
            away_since: incident.first_seen,
            served_since: None,
            watched_from: incident.first_seen,
            due_after: None,
            rests_on_cluster: true,
            gathered: Gathered::default(),
            contested_since: None,
            unreached: 0,
            unmade: 0,
            well_boot: None,
            lapsed: Vec::new(),
            given_time: 0,
            resumed_at: None,
            outlasted: None,
            incident,
        }
    }

    /// One more try of a step did not help: it is waited longer before the next. True where it was the last one that is allowed.
    pub fn count_try(&mut self, now: Time, timing: &Timing, allowed: u32) -> bool {
        let incident = &mut self.incident;
        incident.tries = incident.tries.saturating_add(1);
        let wait = timing.backoff_min.doubled(incident.tries - 1, timing.backoff_max);
        incident.not_before = Some(now + wait);
        incident.tries >= allowed && stands(Safeguard::TriesEnd)
    }

    /// The machine was well for long, so the controller decides about its present problem as if nothing had been tried. The
    /// list of earlier tries stays; the last of them, where it helped, was not in vain if it is silent some day.
    pub fn begin_again(&mut self) {
        let helped = self.incident.attempts.last().filter(|last| last.held()).map(|last| last.intent);
        helped.map(|intent| self.note_lapse(intent));
        self.incident.carry_over(0, 0, None);
        (self.unreached, self.unmade, self.given_time) = (0, 0, 0);
        self.outlasted = None;
    }

    /// It looked well, and does not any more: a person who mended its kubelet reboots it from inside a moment later. It has its
    /// whole time once more, and not for ever: one that flaps would never be repaired.
    pub fn give_time(&mut self, now: Time) {
        if self.given_time < GIVEN_TIME_MAX {
            self.given_time += 1;
            self.incident.counted_from = now;
        }
    }

    /// What held did not last: a try, once for each intent. True where it is counted now.
    pub fn note_lapse(&mut self, intent: IntentId) -> bool {
        let is_new = !self.lapsed.contains(&intent);
        if is_new {
            self.lapsed.push(intent);
        }
        is_new
    }
}

/// The context.
#[derive(Clone, Copy)]
pub struct PlanContext<'a> {
    /// The roster.
    pub roster: &'a Roster,
    /// Its clouds.
    pub clouds: &'a BTreeMap<CloudName, CloudView>,
    /// Its cluster.
    pub cluster: &'a ClusterView,
    /// The agents on its machines.
    pub agents: &'a AgentsView,
    /// What each machine counts as.
    pub counts: &'a Counts,
    /// Every open incident.
    pub cases: &'a BTreeMap<IncidentKey, Case>,
    /// Budgets.
    pub book: &'a Book,
    /// Open incidents of unreachable machines for which something was tried.
    pub nudged: &'a BTreeSet<IncidentKey>,
    /// Open incidents whose machine is kept, or was.
    pub kept: &'a BTreeSet<IncidentKey>,
    /// What operators paused.
    pub pauses: &'a BTreeSet<Pause>,
    /// What people were done with a moment ago.
    pub let_go: &'a LetGo,
    /// Pools that are rolling, and until when that is assumed.
    pub rolling: &'a BTreeMap<PoolName, Time>,
    /// What was frozen a moment ago and recovers.
    pub freezes: &'a Freezes,
    /// Pools in which others are at work, or another controller was until a moment ago.
    pub others: &'a AtWork,
    /// Machines that only the ledger knows: no listing has shown them since the restart.
    pub unseen: &'a BTreeMap<MachineKey, Remembered>,
    /// Since when the ledger knows that machines are missing from their cloud's list.
    pub open_fates: &'a BTreeMap<MachineKey, Time>,
    /// Next hops that are in use nowhere, and how many routes fit.
    pub routes: &'a RouteMemory,
    /// The number that the next intent will have.
    pub next_intent: IntentId,
    /// False in a dry run.
    pub acting: bool,
    /// The ledger refused a record, and why.
    pub ledger_error: Option<&'a Arc<str>>,
    /// False once a performer told us that another process leads.
    pub leading: bool,
    /// The time of the decision.
    pub now: Time,
}

impl<'a> PlanContext<'a> {
    /// The instance of a machine, with its cloud.
    pub fn seen(&self, key: &MachineKey) -> Option<(&'a CloudView, &'a Seen)> {
        match key {
            MachineKey::Instance(cloud, id) => {
                let cloud = self.clouds.get(cloud)?;
                cloud.instances.get(id).map(|seen| (cloud, seen))
            }
            MachineKey::Node(_) => None,
        }
    }

    /// The instance that a subject means.
    pub fn seen_of(&self, subject: &Subject) -> Option<(&'a CloudView, &'a Seen)> {
        match subject {
            Subject::Machine(key) => self.seen(key),
            _ => None,
        }
    }

    /// Machines of the pool that are there and stay: of those that are counted, not those that go, nor those that a deletion of
    /// ours takes away, at once or late. The one that is decided about counts as there.
    pub fn live(&self, pool: &PoolName, but: Option<&MachineKey>) -> u32 {
        let deletions = self.book.deletions(self.now);
        let deleted = deletions.map(|(cloud, id)| MachineKey::Instance(cloud.clone(), id.clone()));
        let stays = |key: &MachineKey| {
            Some(key) != but && self.counts.counted(key, pool).is_some_and(|place| !place.goes)
        };
        let deleted: BTreeSet<MachineKey> = deleted.filter(stays).collect();
        let count = self.counts.pool(pool);
        (count.total() + count.unawaited).saturating_sub(count.going + deleted.len() as u32)
    }

    /// Machines of this cloud that no view holds, with their pools as far as those are known: the ledger or an open incident
    /// alone tells of them.
    pub fn known_unseen(
        &self,
        cloud: &'a CloudView,
    ) -> impl Iterator<Item = (&'a InstanceId, Option<&'a PoolName>)> {
        let unseen = self.unseen.iter().map(|(key, memory)| (key, memory.pool.as_ref()));
        let in_question = self.cases.iter().filter_map(|(key, case)| match &key.subject {
            Subject::Machine(machine) => Some((machine, case.incident.pool.as_ref())),
            _ => None,
        });
        unseen.chain(in_question).filter_map(|(machine, pool)| match machine {
            MachineKey::Instance(name, id) if *name == cloud.name && !cloud.instances.contains_key(id) => {
                Some((id, pool))
            }
            _ => None,
        })
    }

    /// Everything that the question whether a machine of this cloud answers needs.
    pub const fn judge_context(&self, cloud: &'a CloudView) -> JudgeContext<'a> {
        JudgeContext { roster: self.roster, cloud, views: self.views(), cluster: self.cluster, now: self.now }
    }

    /// The views that tell which Nodes share an identity with a machine.
    pub const fn views(&self) -> Views<'a> {
        Views { clouds: self.clouds, cluster: self.cluster, agents: self.agents }
    }

    /// The instance's id, when the subject is a machine with one.
    pub const fn instance_of(subject: &Subject) -> Option<(&CloudName, &InstanceId)> {
        match subject {
            Subject::Machine(MachineKey::Instance(cloud, id)) => Some((cloud, id)),
            _ => None,
        }
    }

    /// The first node of a machine.
    pub fn node(&self, seen: &Seen) -> Option<(&'a NodeName, &'a NodeSeen)> {
        seen.nodes.first().and_then(|name| self.cluster.nodes.get_key_value(name))
    }

    /// The Node that this machine serves under: its own, or another's that its kubelet took over, by its own word. A new machine
    /// that finds a Node of its name takes that one over, and is linked to none.
    pub fn serves_as(&self, seen: &Seen) -> Option<&'a NodeSeen> {
        let own = self.node(seen).map(|(_, node)| node);
        own.or_else(|| self.cluster.nodes.get(self.cluster.with_uuid(&seen.instance.id).first()?))
    }

    /// The zone of a machine. Where its cloud tells none, as until the first listing after a restart, its Node does (seed
    /// 3256181), also one that it took over (seed 3271897).
    pub fn zone(&self, seen: &Seen) -> Option<ZoneName> {
        let of_node = || self.serves_as(seen)?.node.zone.clone();
        seen.instance.zone.clone().or_else(of_node)
    }

    /// The pool that the machine of a case is in now: an operator may have moved it to another one since the incident opened.
    pub fn pool_of<'c>(&self, case: &'c Case) -> Option<&'c PoolName>
    where
        'a: 'c,
    {
        let seen = self.seen_of(&case.incident.key.subject).map(|(_, seen)| seen);
        seen.and_then(Seen::pool).or(case.incident.pool.as_ref())
    }

    /// The pool of a machine.
    pub fn pool(&self, seen: &Seen) -> Option<&'a Pool> {
        seen.pool().and_then(|name| self.roster.pools.get(name))
    }

    /// How many routes a router may hold, as far as is known.
    pub fn route_limit(&self, router: &RouterId) -> Option<u32> {
        // Twice as long as it is before a route is tried again: the limit stays known while each try is refused.
        let backoff = self.roster.timing.backoff_max;
        self.route_limit_of(router, backoff + backoff)
    }

    /// The same, before a route is added. An operator answers "the router is full" with a higher quota, which only another try
    /// shows.
    pub fn route_limit_now(&self, router: &RouterId) -> Option<u32> {
        self.route_limit_of(router, self.roster.timing.backoff_max)
    }

    fn route_limit_of(&self, router: &RouterId, believed_for: Span) -> Option<u32> {
        let told = self.clouds.values().find_map(|cloud| cloud.routers.get(router)).and_then(|r| r.limit);
        told.or_else(|| self.routes.limit(router, self.now, believed_for))
    }
}
