//! The place of the engine in a drive, and the models that may take it.
//!
//! ```text
//!  Drive ─┬▶ engine::State::step ── effects ─┐
//!         └▶ policy::Rival::pass ── calls ───┴─▶ World::perform
//! ```
//!
//! [`Drive::hand_to`] puts a model of another program where the engine stood. World, seed, faults, and what befalls the
//! process stay as they were staged: a model sleeps while its process is stopped, forgets what its original keeps in
//! memory when it dies, and dies before or after its next call where the engine would have. A full disk, a rotated
//! ledger and a lost lead are the engine's alone and pass a model by.

use std::collections::BTreeSet;

use reveille_core::effect::Effect;
use reveille_core::event::{Command, Event, Pause};

use super::{CrashPoint, Drive, Run};
use crate::policy::{Policy, Rival};

impl Drive {
    /// From now on this policy decides. Meant for a drive that was staged and has not run yet.
    pub fn hand_to(&mut self, policy: Policy) {
        if policy == Policy::Reveille {
            return;
        }
        self.world.fall_silent();
        self.wake = None;
        self.rival = Some(Rival::new(policy, self.now, &self.world));
    }

    /// Who decides.
    pub fn policy(&self) -> Policy {
        self.rival.as_ref().map_or(Policy::Reveille, Rival::policy)
    }

    /// Reads of the cloud and the cluster by the engine or the model that decides.
    pub fn reads(&self) -> u64 {
        self.rival.as_ref().map_or(self.world.reads(), Rival::reads)
    }

    /// People set these pauses, and no others.
    pub fn set_pauses(&mut self, pauses: BTreeSet<Pause>) {
        self.pauses.clone_from(&pauses);
        self.world.note_pauses(&pauses);
        if self.rival.is_none() && self.run == Run::Running {
            let all = self.all_pauses();
            self.step(Event::Command(Command::Pauses(all)));
        }
    }

    /// The model hears what its calls came to, looks, if it is due, and its calls go out.
    pub(super) fn let_rival_act(&mut self, events: Vec<Event>) {
        let Some(rival) = &mut self.rival else { return };
        let mut calls = Vec::new();
        for event in events {
            if let Event::Done { intent, outcome } = event {
                calls.extend(rival.answered(self.now, &self.world, intent, &outcome));
            }
        }
        calls.extend(rival.pass(self.now, &self.world));
        for (intent, call) in calls {
            if self.rival_dies(CrashPoint::is_before_the_call) {
                return;
            }
            self.counts.calls += 1;
            self.tell(format!("  call    {call}"));
            let effect = Effect::Call { intent, fence: self.fence, call };
            self.world.perform(self.now, &effect);
            if self.rival_dies(|point| !point.is_before_the_call()) {
                return;
            }
        }
    }

    fn rival_dies(&mut self, at: impl Fn(CrashPoint) -> bool) -> bool {
        let dies = self.crash_at.is_some_and(|(point, _)| at(point));
        if dies {
            self.die();
        }
        dies
    }
}
