//! Replays what the ledger knows of machines, and of other clients that are at work on them, for the process that sees them
//! next. Where it goes, the owners say: `out_of_sight`, `rollouts`, `others`, `pauses`, `traces`.

use std::sync::Arc;

use crate::model::incident::MachineKey;
use crate::model::signs;
use crate::model::time::Time;
use crate::observe::cloud::Left;
use crate::observe::machine_signs::Signs;
use crate::observe::remembered::Remembered;
use crate::plan::others::Others;
use crate::record::{Joined, Record};
use crate::safeguard::{Safeguard, stands};

use super::super::State;
use super::super::rollouts::Editions;
use super::Replay;

impl Replay {
    /// What the ledger knows of machines, and of other clients that are at work on them, for the process that sees them
    /// next.
    pub(super) fn take_machines(&mut self, record: Record) {
        match record {
            Record::OthersActed {
                at, pools, until, rollout: true, guessed, since, images, versions, ..
            } => {
                let told = Editions {
                    images: images.into_iter().collect(),
                    versions: versions.into_iter().collect(),
                };
                let since = (at, since.unwrap_or(at).min(at));
                for pool in pools {
                    self.state.rollouts.remember(pool, until, since, (told.clone(), guessed));
                }
            }
            Record::OthersActed { at, pools, until, what, since, .. } => {
                let since = since.unwrap_or(at).min(at);
                let others = Others { since, at, until, what };
                pools.iter().for_each(|pool| self.state.others.note(pool, &others));
            }
            Record::Joined { .. } if !stands(Safeguard::JoinedMemory) => {}
            Record::Joined { machines, .. } => {
                for Joined { machine, node, pool } in machines {
                    self.state.cluster.lost_together.remove(&machine);
                    self.state.set_seen_to_go(&machine, false);
                    let memory = self.state.out_of_sight.entry(machine);
                    memory.node = Some(node);
                    memory.pool = pool;
                    (memory.left, memory.lost_together) = (None, false);
                    // It joined in an earlier life of ours: being Ready in this one is no news, and credits no replacement.
                    // Where it was not Ready yet, a record behind this one says so.
                    memory.born = None;
                }
            }
            Record::LostTogether { machines, .. } => {
                let is_alone = machines.len() == 1;
                for machine in machines {
                    self.state.lose(machine.clone());
                    if is_alone {
                        self.state.cluster.lost_together.set_alone(&machine);
                    }
                }
            }
            Record::Born { at, machine } => {
                let at = at.min(self.state.now);
                self.state.out_of_sight.entry(machine).born = Some(at);
            }
            Record::Cordoned {
                machine,
                cordoned,
                sign,
                paused,
                locked,
                apart,
                group,
                named,
                gone,
                missing_since,
                ..
            } => {
                self.state.set_seen_to_go(&machine, gone);
                self.state.out_of_sight.set_fate(&machine, missing_since);
                let removal = sign.or_else(|| cordoned.then(|| Arc::from(signs::DRAINED)));
                let paused = paused || removal.as_deref() == Some(signs::PAUSE);
                let named = named.into_iter().collect();
                let signs = Signs { removal, paused, locked, apart, group, named };
                self.state.out_of_sight.entry(machine).signs = signs;
            }
            Record::Left { at, machine, why } => {
                let left = Left { at: at.min(self.state.now), sign: why };
                self.state.out_of_sight.entry(machine).left = Some(Box::new(left));
            }
            Record::Traced { at, machine, trace, told } => {
                let heard = told.as_ref().map(|told| told.blocker.clone());
                self.state.agents.remember(machine.clone(), heard);
                self.state.traces.restore(machine, trace, told, at.min(self.state.now));
            }
            Record::Forgotten { machines, .. } => {
                machines.iter().for_each(|key| self.state.out_of_sight.entry(key.clone()).born = None);
                self.depart(machines, false);
            }
            Record::Departed { machines, disowned, .. } => self.depart(machines, disowned),
            Record::Paused { at, scope, over } => self.state.pauses.take(at, scope, over),
            Record::Returned { at, machines } => self.state.return_at(at, &machines),
            _ => {}
        }
    }

    /// These went out of sight. A disk that was full for a moment has this said again of those that had gone before, and what is
    /// known of them stays: a person had taken the marks off a machine and drained its Node, and it was repaired once they put
    /// the marks back.
    fn depart(&mut self, machines: Vec<MachineKey>, disowned: bool) {
        for key in machines {
            let memory = std::mem::take(self.state.out_of_sight.entry(key.clone()));
            // Of no pool any more, as when its marks were seen to be off.
            let (pool, born) = (memory.pool.clone().filter(|_| !disowned), memory.born.filter(|_| !disowned));
            self.state.depart(key, Remembered { pool, born, disowned, ..memory });
        }
    }

    /// A gap in our sight of the nodes was over then. What was being built before its last hour may have served in it, as for the
    /// process that saw its end (`engine::unwatched`).
    pub(super) fn doubt_births(&mut self, since: Time, until: Time) {
        if !State::was_long_gap(since, until) {
            return;
        }
        for (_, memory) in self.state.out_of_sight.all_mut() {
            let is_young = |at: &Time| !State::was_long_gap(*at, until);
            memory.born = memory.born.filter(|at| memory.node.is_some() || is_young(at));
        }
    }
}
