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
        self.note_others(vec![pool.clone()], format!("another client deleted instance {id}").into());
        self.reads.ask(Look::Actions(cloud, id.clone()), LookFor::Deleter(pool, id));
    }

    /// Others took a machine of these pools away, and may be at work there. The next process has to know, too.
    pub(super) fn note_others(&mut self, pools: Vec<PoolName>, what: Arc<str>) {
        let at = self.now;
        self.leave_alone(pools, Others { since: at, at, until: at + interlock::OTHERS_QUIET, what });
    }

    /// These are all the pauses there are. The end of another controller's is a handover.
    pub(super) fn take_pauses(&mut self, pauses: BTreeSet<Pause>) {
        if self.pauses == pauses {
            return;
        }
        let before = std::mem::replace(&mut self.pauses, pauses);
        let is_anothers = |pause: &Pause| pause.scope == PauseScope::OtherController;
        if before.iter().any(is_anothers) && !self.pauses.iter().any(is_anothers) {
            self.take_over();
        }
        self.review_pauses();
        self.rouse_held();
    }

    /// Tells the ledger which pauses began and which are over, those of the roster as well. One that a person ended while no
    /// process ran is over as of now: they may have ended it a moment ago.
    pub(super) fn review_pauses(&mut self) {
        let of_people = self.pauses.iter().map(|pause| pause.scope.clone());
        let of_people = of_people.filter(|scope| *scope != PauseScope::OtherController);
        let of_roster = self.roster.pools.values().filter(|pool| pool.paused);
        let of_roster = of_roster.map(|pool| PauseScope::Pool(Arc::from(pool.name.as_str())));
        let standing: BTreeSet<_> = of_people.chain(of_roster).collect();
        let [over, begun] = [(&self.paused, &standing), (&standing, &self.paused)]
            .map(|(these, those)| these.difference(those).cloned().collect::<Vec<_>>());
        over.into_iter().for_each(|scope| self.let_go(scope));
        for scope in begun {
            self.take_pause(self.now, scope.clone(), false);
            self.outbox.record(Record::Paused { at: self.now, scope, over: false });
        }
    }

    /// A person is done with this machine, by its lock or its annotation. A pause by a command may name it all the same.
    pub(super) fn let_go_of(&mut self, id: &InstanceId) {
        self.let_go(PauseScope::Machine(Arc::from(id.as_str())));
        self.review_pauses();
    }

    /// A person is done with what this covers, and it may boot still: EC2 keeps no log of a reboot. Ends after the time of a boot
    /// (`interlock::just_released`).
    fn let_go(&mut self, scope: PauseScope) {
        let at = self.now;
        self.forget_let_go(at);
        self.take_pause(at, scope.clone(), true);
        self.outbox.record(Record::Paused { at, scope, over: true });
    }

    pub(super) fn take_pause(&mut self, at: Time, scope: PauseScope, over: bool) {
        if over {
            self.paused.remove(&scope);
            self.let_go.note(scope, at);
        } else {
            self.paused.insert(scope);
        }
    }

    /// What was let go of longer before `now` than any machine takes to boot holds nothing any more.
    pub(super) fn forget_let_go(&mut self, now: Time) {
        let patience = self.roster.pools.values().map(|pool| pool.deadlines.boot_patience()).max();
        self.let_go.retain(|at| now.since(at) < patience.unwrap_or_default());
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
        let record = Record::OthersActed {
            at,
            pools,
            until,
            what,
            rollout: false,
            since: None,
            images: Vec::new(),
            versions: Vec::new(),
        };
        self.outbox.record(record);
    }

    /// What ends later counts. Where the clock went back between the two, what was known before has as long to go as ever.
    ///
    /// A handover is kept beside the deletions: bare metal that the other controller rebooted comes up for two hours, and a
    /// deletion in that time took the place of its hold, and inherited its beginning, so that neither of the two held.
    pub(super) fn remember_others(&mut self, pools: &[PoolName], others: &Others) {
        let kept = if interlock::renews(others) { &mut self.others } else { &mut self.handovers };
        for pool in pools {
            let known = kept.get(pool);
            if known.is_some_and(|known| known.until_by(others.at) > others.until) {
                continue;
            }
            let goes_on = known.filter(|known| others.at <= known.until_by(others.at));
            let since = goes_on.map_or(others.since, |known| known.since.min(others.at));
            kept.insert(pool.clone(), Others { since, ..others.clone() });
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
        self.note_others(pools, format!("another client deleted instance {id}").into());
    }
}
