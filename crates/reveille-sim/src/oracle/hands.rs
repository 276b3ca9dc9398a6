//! Judges acts on machines that a person has in hand, where only what was seen before tells of it.
//!
//! ```text
//!  a pause by name, a listing ─▶ whom it names ─▶ renamed ─▶ it holds that one all the same
//!  a group in a listing ─▶ none in the next ─▶ a person took the machine out
//!  a Node goes in a gap, and nothing tells of it ─▶ a person may have drained it
//! ```
//!
//! What one process saw less than [`DURABLE_AFTER`] before it died may not be in the ledger, and counts for nothing.

use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;

use reveille_core::effect::Call;
use reveille_core::event::{Command, Event, PauseScope};
use reveille_core::model::id::{InstanceId, InstanceName};
use reveille_core::model::instance::Instance;
use reveille_core::model::time::{Span, Time};

use super::acts::is_of_denied;
use super::{Oracle, Scene};

/// By then a record is in the ledger, unless that refuses.
const DURABLE_AFTER: Span = Span::from_s(10);

/// What was seen of such machines.
#[derive(Clone, Debug, Default)]
pub(super) struct Hands {
    /// Names of machines that people paused.
    paused: BTreeSet<Arc<str>>,
    /// As they were last listed.
    names: BTreeMap<InstanceId, InstanceName>,
    /// Whom the pauses name, and since when that was seen.
    named: BTreeMap<InstanceId, BTreeMap<Arc<str>, Time>>,
    /// Machines that were seen in a group, and since when.
    grouped: BTreeMap<InstanceId, Time>,
    /// Machines that were seen to be in a group no more, and since when.
    taken_out: BTreeMap<InstanceId, Time>,
}

impl Hands {
    pub(super) fn note(&mut self, now: Time, event: &Event) {
        let Event::Command(Command::Pauses(pauses)) = event else { return };
        let name = |scope: &PauseScope| match scope {
            PauseScope::Machine(name) => Some(name.clone()),
            _ => None,
        };
        self.paused = pauses.iter().filter_map(|pause| name(&pause.scope)).collect();
        for names in self.named.values_mut() {
            names.retain(|name, _| self.paused.contains(name));
        }
        for (id, name) in self.names.clone() {
            self.name(now, &id, &name);
        }
    }

    fn name(&mut self, now: Time, id: &InstanceId, name: &InstanceName) {
        if let Some(paused) = self.paused.get(name.as_str()) {
            self.named.entry(id.clone()).or_default().entry(paused.clone()).or_insert(now);
        }
    }

    pub(super) fn note_listed(&mut self, now: Time, instance: &Instance) {
        let id = &instance.id;
        if self.names.get(id) != Some(&instance.name) {
            self.names.insert(id.clone(), instance.name.clone());
            self.name(now, id, &instance.name);
        }
        let Some(hosting) = &instance.hosting else { return };
        if hosting.group.is_some() {
            self.grouped.entry(id.clone()).or_insert(now);
            self.taken_out.remove(id);
        } else if self.grouped.remove(id).is_some() {
            self.taken_out.insert(id.clone(), now);
        }
    }

    /// It is no machine of a pool at this moment.
    pub(super) fn forget(&mut self, id: &InstanceId) {
        self.names.remove(id);
    }

    /// Another process begins; the one before took its last step then, and its ledger refused what it saw since the second time.
    pub(super) fn restart(&mut self, last: Time, refused_at: Option<Time>) {
        let told = |at: Time| last.since(at) > DURABLE_AFTER && refused_at.is_none();
        self.names.clear();
        self.grouped.retain(|_, at| told(*at));
        for names in self.named.values_mut() {
            names.retain(|_, at| told(*at));
        }
        self.taken_out.retain(|_, at| told(*at));
    }

    fn is_named(&self, id: &InstanceId) -> bool {
        self.named.get(id).is_some_and(|names| !names.is_empty())
    }
}

impl Oracle {
    pub(super) fn judge_in_hand(&mut self, call: &Call, id: &InstanceId, scene: &Scene<'_>) {
        if self.hands.is_named(id) {
            self.foul("paused", format!("{call}: a person paused it, under the name that it had then"));
        }
        if !call.is_destructive() {
            return;
        }
        let is_known = self.hands.taken_out.contains_key(id) && !is_of_denied(call, scene);
        if is_known && scene.world.is_detached(id) {
            self.foul("taken out of its group", call.to_string());
        }
        if scene.world.is_drained_unseen(id) && self.joined.contains(id) {
            self.foul("drained in a gap", call.to_string());
        }
    }
}
