//! Notes that other clients are at work on machines of the roster; the controller then leaves their pools alone for a
//! while.
//!
//! ```text
//!  an instance goes, and not through us ─┐
//!  a Node goes with a sign of intent ────┼─▶ Others { until } of its pool ─▶ ledger; `plan::interlock` holds what can hurt
//!  another controller let go ────────────┘
//! ```
//!
//! A person or a program that deletes one machine may be at work on the next. The ledger keeps this, so that the next
//! process knows it too.

use std::collections::BTreeSet;
use std::sync::Arc;

use crate::diagnose::hosting;
use crate::effect::Look;
use crate::event::{Pause, PauseScope};
use crate::model::id::{CloudName, InstanceId, PoolName};
use crate::model::incident::MachineKey;
use crate::model::roster::{Mode, Pool};
use crate::model::time::{Span, Time};
use crate::observe::cloud::Seen;
use crate::plan::desk::Others;
use crate::plan::interlock;
use crate::record::Record;

use super::{LookFor, State};

impl State {
    /// An instance that went without us was deleted by others: the pool is left alone for a while.
    pub(super) fn note_foreign(&mut self, key: &MachineKey) {
        let MachineKey::Instance(cloud, id) = key else { return };
        if self.book.deleted_by_us(id) {
            return;
        }
        let desk = self.desk();
        let seen = desk.seen(key).map(|(_, seen)| seen);
        if seen.is_some_and(Seen::is_stray) {
            // A client with the right to create instances could otherwise block every pool, by creating an instance and
            // deleting it again and again.
            return;
        }
        let Some(pool) = seen.and_then(|seen| seen.of_pool.clone()) else {
            // The instance's marks do not tell its pool, so it may have been of any pool.
            self.note_gone_unseen(cloud, id);
            return;
        };
        let ended = self.desk().seen(key).and_then(|(_, seen)| hosting::of(seen)?.ended.clone());
        if let Some(why) = ended {
            self.note_others(vec![pool], format!("the provider took instance {id} back ({why})").into());
            return;
        }
        let (cloud, id) = (cloud.clone(), id.clone());
        self.note_others(vec![pool.clone()], format!("somebody deleted instance {id}").into());
        self.ask(Look::Actions(cloud, id.clone()), LookFor::Deleter(pool, id));
    }

    /// Others took a machine of these pools away, and may be at work there. The next process has to know, too.
    pub(super) fn note_others(&mut self, pools: Vec<PoolName>, what: Arc<str>) {
        let at = self.now;
        self.leave_alone(pools, Others { since: at, at, until: at + interlock::OTHERS_QUIET, what });
    }

    /// These are all the pauses there are. Where one ended, its person is done with the machines, and they may boot still: EC2
    /// keeps no log of a reboot.
    pub(super) fn take_pauses(&mut self, pauses: BTreeSet<Pause>) {
        if self.pauses == pauses {
            return;
        }
        let before = std::mem::replace(&mut self.pauses, pauses);
        let scopes = before.into_iter().map(|pause| pause.scope);
        let ended = scopes.filter(|scope| self.pauses.iter().all(|pause| pause.scope != *scope));
        for scope in ended.collect::<Vec<_>>() {
            if scope == PauseScope::OtherController {
                self.take_over();
                continue;
            }
            for seen in self.clouds.values_mut().flat_map(|view| view.instances.values_mut()) {
                if scope.covers(seen.pool(), |name| interlock::is_called(seen, name)) {
                    seen.let_go(self.now);
                }
            }
        }
        self.rouse_held();
    }

    /// Another controller of this roster was at work until now. What it began may go on: a machine that it rebooted has the
    /// whole time that a machine of its pool has to come up, and one that it replaced the time to be built as well.
    pub(super) fn take_over(&mut self) {
        let at = self.now;
        let what: Arc<str> = Arc::from("another controller of this roster acted here");
        let boots = |pool: &Pool| {
            let builds =
                if pool.repair.replace == Mode::Act { pool.deadlines.build_within } else { Span::ZERO };
            pool.deadlines.boot_patience() + builds
        };
        let pools: Vec<_> = self.roster.pools.values().map(|pool| (pool.name.clone(), boots(pool))).collect();
        for (pool, boots) in pools {
            let until = at + boots.max(interlock::OTHERS_QUIET);
            self.leave_alone(vec![pool], Others { since: at, at, until, what: what.clone() });
        }
    }

    fn leave_alone(&mut self, pools: Vec<PoolName>, others: Others) {
        if pools.is_empty() {
            return;
        }
        self.remember_others(&pools, &others);
        let Others { at, until, what, .. } = others;
        self.record(Record::OthersActed { at, pools, until, what, rollout: false });
    }

    /// The pool was rolled a moment ago. The next process sees one image and one version in it, and cannot tell.
    pub(super) fn remember_rollout(&mut self, pool: &PoolName, at: Time, until: Time) {
        self.rolling.insert(pool.clone(), until);
        self.rollouts.entry(pool.clone()).or_default().changed_at = Some(at);
    }

    /// What ends later counts. Where the clock went back between the two, what was known before has as long to go as ever.
    pub(super) fn remember_others(&mut self, pools: &[PoolName], others: &Others) {
        for pool in pools {
            let known = self.others.get(pool);
            if known.is_some_and(|known| known.until_by(others.at) > others.until) {
                continue;
            }
            let goes_on = known.filter(|known| others.at <= known.until_by(others.at));
            let since = goes_on.map_or(others.since, |known| known.since.min(others.at));
            self.others.insert(pool.clone(), Others { since, ..others.clone() });
        }
    }

    /// An instance went, and not through us. Of which pool it was is not known any more, so all of that cloud are left alone
    /// for a while.
    pub(super) fn note_gone_unseen(&mut self, cloud: &CloudName, id: &InstanceId) {
        if self.book.deleted_by_us(id) {
            return;
        }
        let pools = self.roster.pools.values().filter(|pool| pool.cloud == *cloud);
        let pools = pools.map(|pool| pool.name.clone()).collect();
        self.note_others(pools, format!("somebody deleted instance {id}").into());
    }

    /// Others that were at work when the last process ended may be at work still.
    pub(super) fn leave_alone_anew(&mut self, before: Time, now: Time) {
        let quiet = self.roster.timing.rollout_quiet;
        for (pool, until) in self.rolling.iter_mut().filter(|(_, until)| before < **until) {
            *until = now + quiet;
            if let Some(rollout) = self.rollouts.get_mut(pool) {
                rollout.changed_at = Some(now);
            }
        }
        for others in self.others.values_mut().filter(|others| others.at <= before && before < others.until) {
            others.until = now + others.until.since(others.at);
            others.at = now;
        }
    }
}
