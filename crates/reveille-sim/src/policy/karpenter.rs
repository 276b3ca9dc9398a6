//! A model of Karpenter's node repair, registration time-out and garbage collection.
//!
//! Source: kubernetes-sigs/karpenter at 22664681, `pkg/controllers/node/health` (repair and its breaker),
//! `pkg/controllers/nodeclaim/lifecycle` (`liveness.go`: registration), `pkg/controllers/nodeclaim/garbagecollection`,
//! and its documentation, "Disruption", for what follows the deletion of a Node. The tolerations are those that
//! providers name in `RepairPolicies`: 30 minutes for Ready `False` and `Unknown`.
//!
//! * A Node whose Ready condition has been `False` or `Unknown` for 30 minutes loses its `NodeClaim`, without regard to
//!   budgets, unless more than 20 % of its pool's Nodes (rounded up) have that same status now; then nothing of the pool
//!   is repaired, and it is looked at again after five minutes.
//! * A claim that has not registered 15 minutes after it was made is deleted.
//! * Every two minutes: a registered claim whose instance is absent from the cloud's list is deleted, unless its Node is
//!   Ready.
//! * A deleted Node takes its claim, and so its instance, along: the Node carries a finaliser. A Node that is merely absent
//!   from a list is no deleted Node.
//!
//! Left out: other conditions (no monitoring agent writes any in this world), drains (see [`super::removal`]),
//! consolidation, expiry and drift, the launch time-out (every order of the world's pool owner is accepted), and the
//! proposals that are not merged.

use std::collections::{BTreeMap, BTreeSet};

use reveille_core::model::id::{InstanceId, PoolName};
use reveille_core::model::node::Ready;
use reveille_core::model::time::{Span, Time};

use super::Deed;
use super::observations::{MachineSeen, NodeSeen, Presence};
use super::removal::Removals;

/// `TolerationDuration` of the Ready condition.
const TOLERATION: Span = Span::from_min(30);
/// The registration TTL.
const REGISTRATION_TTL: Span = Span::from_min(15);
/// Of the Nodes of a pool.
const ALLOWED_UNHEALTHY_PCT: usize = 20;
/// After the breaker held.
const AGAIN: Span = Span::from_min(5);
/// Between two garbage collections.
const COLLECT_EVERY: Span = Span::from_min(2);
/// Its controllers are driven by watches; this is how often the model looks.
pub(crate) const EVERY: Span = Span::from_s(10);

/// The controllers.
#[derive(Clone, Debug, Default)]
pub(crate) struct Karpenter {
    pub(crate) removals: Removals,
    blocked_until: BTreeMap<PoolName, Time>,
    collected_at: Option<Time>,
}

impl Karpenter {
    /// True when the next pass wants the cloud's list.
    pub(crate) fn collects(&self, now: Time) -> bool {
        self.collected_at.is_none_or(|at| now.since(at) >= COLLECT_EVERY)
    }

    /// Its process died: what it kept in memory is gone.
    pub(crate) fn restart(&mut self) {
        self.blocked_until.clear();
        self.collected_at = None;
    }

    /// What one pass does. `listed`: the cloud's list, when it was read.
    pub(crate) fn pass(
        &mut self,
        now: Time,
        claims: &[MachineSeen],
        nodes: Option<&[NodeSeen]>,
        listed: Option<&BTreeSet<InstanceId>>,
        presence: &BTreeMap<InstanceId, Presence>,
    ) -> Vec<Deed> {
        let mut deeds = self.removals.go_on(presence, nodes);
        let Some(nodes) = nodes else { return deeds };
        let mut doomed: Vec<InstanceId> = claims.iter().filter(|claim| claim.node_deleted).map(id).collect();
        let late = |claim: &&MachineSeen| claim.node.is_none() && now.since(claim.made) > REGISTRATION_TTL;
        doomed.extend(claims.iter().filter(late).map(id));
        doomed.extend(self.repair(now, claims, nodes));
        if let Some(listed) = listed {
            self.collected_at = Some(now);
            let ready = |claim: &MachineSeen| {
                nodes.iter().any(|n| n.provider.as_ref() == Some(&claim.id) && n.ready == Ready::True)
            };
            let absent = |claim: &&MachineSeen| claim.node.is_some() && !listed.contains(&claim.id);
            doomed.extend(claims.iter().filter(absent).filter(|claim| !ready(claim)).map(id));
        }
        for id in doomed {
            if self.removals.mark(&id) {
                deeds.push(Deed::Delete(id));
            }
        }
        deeds
    }

    fn repair(&mut self, now: Time, claims: &[MachineSeen], nodes: &[NodeSeen]) -> Vec<InstanceId> {
        let pool_of: BTreeMap<&InstanceId, &PoolName> = claims.iter().map(|c| (&c.id, &c.pool)).collect();
        let mut pools: BTreeMap<&PoolName, Vec<&NodeSeen>> = BTreeMap::new();
        for node in nodes {
            if let Some(pool) = node.provider.as_ref().and_then(|id| pool_of.get(id)) {
                pools.entry(pool).or_default().push(node);
            }
        }
        let mut doomed = Vec::new();
        for (pool, nodes) in pools {
            if self.blocked_until.get(pool).is_some_and(|until| now < *until) {
                continue;
            }
            if !is_pool_healthy(&nodes) {
                self.blocked_until.insert(pool.clone(), now + AGAIN);
                continue;
            }
            let over = nodes.iter().filter(|n| n.ready != Ready::True && now.since(n.since) >= TOLERATION);
            doomed.extend(over.filter_map(|node| node.provider.clone()));
        }
        doomed
    }
}

fn id(claim: &MachineSeen) -> InstanceId {
    claim.id.clone()
}

/// Up to a fifth of the Nodes, rounded up, may have either status.
fn is_pool_healthy(nodes: &[&NodeSeen]) -> bool {
    let allowed = (nodes.len() * ALLOWED_UNHEALTHY_PCT).div_ceil(100);
    let count = |status: Ready| nodes.iter().filter(|node| node.ready == status).count();
    count(Ready::False) <= allowed && count(Ready::Unknown) <= allowed
}
