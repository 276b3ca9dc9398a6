//! Nodes that are there again of machines that had lost theirs: on purpose, together with others, or unwatched.
//!
//! ```text
//!  a Node of such a machine ─▶ unproved ─ its lease is renewed, and renewed again ─▶ note_joined: it is back
//! ```
//!
//! A person drains a Node, deletes it and keeps the machine. A day later etcd is restored from a backup from before that: the
//! same object is there again, uid, condition and all, as it was before the cordon, and no kubelet writes it. The backup says
//! nothing of the machine, so what is known of it holds until something is written that only a kubelet writes. Neither another
//! object than the one that went is that, nor one that becomes Ready in our sight: a backup brings back an older object where the
//! kubelet had registered a second time, and a backup that is restored twice shows it Ready a second time. Another backup shows
//! another lease as well, once. A kubelet that lives renews its lease each ten seconds, from its registration on.

use std::collections::BTreeMap;

use crate::model::id::NodeName;
use crate::model::lease::{Renewal, Shown};

use super::State;

/// So many renewals prove that a kubelet writes the lease: an etcd that is restored from a second backup shows one.
const RENEWALS: u8 = 2;

/// The Nodes that are there and unproved, each with its lease.
pub(super) type Unproved = BTreeMap<NodeName, Watched>;

/// A lease, as it was listed, and how often it was renewed.
#[derive(Clone, Copy, Debug, Default)]
pub(super) struct Watched {
    listed: Option<Shown>,
    renewals: u8,
}

impl Watched {
    fn note(&mut self, now: Renewal) {
        let is_renewed = self.listed.get_or_insert(Shown::first(now)).take(now);
        self.renewals = self.renewals.saturating_add(u8::from(is_renewed));
    }
}

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
        let (_, seen) = self.context().seen(&machine)?;
        let is_away = seen.left.is_some() || self.cluster.lost_together.contains(&machine);
        // Without leases, the controller manager calls a Node silent whose kubelet writes nothing, within a minute.
        let is_renewed = || {
            let is_told = self.unproved.get(name).is_some_and(|lease| lease.renewals >= RENEWALS);
            is_told || !self.cluster.has_leases() && self.has_stood(node, node.first_seen)
        };
        // The kubelet of another machine may write this one's UUID or addresses on its own Node for half a minute, and its lease
        // proves that it lives itself: a machine that a person had drained was rebooted and deleted.
        is_away.then(|| is_renewed() && self.is_own_word(node, &machine))
    }

    /// Leases were listed: which of these Nodes renew theirs.
    pub(super) fn review_unproved(&mut self) {
        for name in self.unproved.keys().cloned().collect::<Vec<_>>() {
            if !self.cluster.nodes.contains_key(&name) {
                self.unproved.remove(&name);
                continue;
            }
            if let (Some(lease), Some(now)) = (self.unproved.get_mut(&name), self.cluster.renewal(&name)) {
                lease.note(now);
            }
            self.note_joined(&name);
            if !self.unproved.contains_key(&name) {
                self.mark_node(&name);
            }
        }
    }
}
