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

use std::sync::Arc;

use crate::diagnose::hosting;
use crate::effect::Look;
use crate::model::id::{CloudName, InstanceId, PoolName};
use crate::model::incident::{MachineKey, Subject};
use crate::model::roster::{Mode, Pool};
use crate::model::time::Span;
use crate::observe::cloud::Seen;
use crate::plan::others::{OTHERS_QUIET, Others};

use super::{LookFor, State};

impl State {
    /// An instance that went without us was deleted by others: the pool is left alone for a while.
    pub(super) fn note_foreign(&mut self, key: &MachineKey) {
        let MachineKey::Instance(cloud, id) = key else { return };
        if self.book.deleted_by_us(id) {
            return;
        }
        let context = self.context();
        let seen = context.seen(key).map(|(_, seen)| seen);
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
        let ended = self.context().seen(key).and_then(|(_, seen)| hosting::of(seen)?.ended.clone());
        if let Some(why) = ended {
            self.note_others(vec![pool], format!("the provider took instance {id} back ({why})").into());
            return;
        }
        let (cloud, id) = (cloud.clone(), id.clone());
        self.note_others(vec![pool.clone()], format!("another client deleted instance {id}").into());
        self.reads.ask(Look::Actions(cloud, id.clone()), LookFor::Deleter(pool, id));
    }

    /// Only an incident of the ledger knows it, and its cloud's list does not hold it: it went while no process was looking
    /// (seed 7801812).
    pub(super) fn note_gone_with_incident(&mut self, key: &MachineKey) {
        let MachineKey::Instance(cloud, id) = key else { return };
        if self.book.deleted_by_us(id) || self.out_of_sight.has_departed(cloud, id) {
            return;
        }
        let subject = Subject::Machine(key.clone());
        let Some(pool) = self.incidents.of(&subject).find_map(|case| case.incident.pool.clone()) else {
            return;
        };
        self.note_others(vec![pool], format!("another client deleted instance {id}").into());
    }

    /// Others took a machine of these pools away, and may be at work there. The next process has to know, too.
    pub(super) fn note_others(&mut self, pools: Vec<PoolName>, what: Arc<str>) {
        let at = self.now;
        self.leave_alone(pools, Others { since: at, at, until: at + OTHERS_QUIET, what });
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
            let until = at + boots.max(OTHERS_QUIET);
            self.leave_alone(vec![pool], Others { since: at, at, until, what: what.clone() });
        }
    }

    fn leave_alone(&mut self, pools: Vec<PoolName>, others: Others) {
        if pools.is_empty() {
            return;
        }
        pools.iter().for_each(|pool| self.others.note(pool, &others));
        self.outbox.record(others.record(pools));
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
