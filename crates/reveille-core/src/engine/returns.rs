//! Nodes that are there again of machines that had lost theirs: on purpose, together with others, or unwatched.
//!
//! ```text
//!  a Node of such a machine ─┬─ another object than the one that went ────────────▶ its kubelet registered: it is back
//!                            └─ the same one, or one of which that is not known ─▶ unproved
//!  unproved ─ its lease is renewed, or it becomes Ready in our sight ─▶ note_joined: it is back
//! ```
//!
//! A person drains a Node, deletes it and keeps the machine. A day later etcd is restored from a backup from before that: the
//! same object is there again, uid, condition and all, as it was before the cordon, and no kubelet writes it. The backup says
//! nothing of the machine, so what is known of it holds until something is written that only a kubelet writes. A restart forgets
//! which object went, so a proof is asked for then, too: a kubelet that lives gives it within seconds.

use std::collections::BTreeMap;

use crate::model::id::NodeName;
use crate::model::lease::Renewal;
use crate::model::node::Ready;

use super::State;

/// The Nodes that are there and unproved, each with its lease as it was listed first.
pub(super) type Unproved = BTreeMap<NodeName, Option<Renewal>>;

impl State {
    /// The machine of this Node had lost its Node, and nothing says yet that its kubelet lives. The Node is watched for that.
    pub(super) fn is_unproved(&mut self, name: &NodeName) -> bool {
        let is_proved = self.is_proved(name).unwrap_or(true);
        if is_proved {
            self.unproved.remove(name);
        } else {
            self.unproved.entry(name.clone()).or_default();
        }
        !is_proved
    }

    /// None where there is nothing to prove.
    fn is_proved(&self, name: &NodeName) -> Option<bool> {
        let node = self.cluster.nodes.get(name)?;
        let machine = node.link.as_ref()?.machine();
        let (_, seen) = self.desk().seen(&machine)?;
        let is_away = seen.left.is_some() || self.cluster.lost_together.contains(&machine);
        let registered = || seen.joined_uid.as_ref().is_some_and(|went| *went != node.node.uid);
        let became_ready = || node.node.ready == Ready::True && node.ready_since > node.first_seen;
        let renewed = || {
            let listed = self.unproved.get(name).copied().flatten();
            listed.is_some_and(|listed| self.cluster.renewal(name).is_some_and(|now| now != listed))
        };
        is_away.then(|| registered() || became_ready() || renewed())
    }

    /// Leases were listed: which of these Nodes renew theirs.
    pub(super) fn review_unproved(&mut self) {
        for name in self.unproved.keys().cloned().collect::<Vec<_>>() {
            if !self.cluster.nodes.contains_key(&name) {
                self.unproved.remove(&name);
                continue;
            }
            self.note_joined(&name);
            let now = self.cluster.renewal(&name);
            if let Some(listed) = self.unproved.get_mut(&name) {
                *listed = listed.or(now);
            } else {
                self.mark_node(&name);
            }
        }
    }
}
