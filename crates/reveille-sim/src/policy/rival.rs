//! Runs one model: when it looks, which data it gets, and its deeds as calls into the world.
//!
//! ```text
//!  next_at ─▶ view of the model's own kind ─▶ pass ─▶ deeds ─▶ calls ─▶ World;  Done ─▶ answered
//! ```
//!
//! It holds what the original's process holds in memory, and loses that with the process. What the original keeps in an
//! API (an object that is being deleted) is kept over a restart. It has no ledger, no intents and no fencing. A deed
//! carries no precondition of ours: revisions and uids are filled in from what is so when it is done.

use std::collections::{BTreeMap, BTreeSet};

use reveille_core::effect::{Call, Outcome};
use reveille_core::model::id::{InstanceId, IntentId};
use reveille_core::model::time::{Span, Time};
use reveille_core::remedies::{AddRules, DeleteInstance, DeleteNode, Reboot, SetPortGroups};

use super::flight::{Flight, FlightView, ServerSeen};
use super::healer::{self, Healer};
use super::karpenter::{self, Karpenter};
use super::mhc::{self, Mhc};
use super::observations::ApiHistory;
use super::outlook::{Outlook, means};
use super::{Deed, Policy};
use crate::world::World;
use crate::world::layout::{CLOUD, GROUP};

/// A model at work.
#[derive(Clone, Debug)]
pub(crate) struct Rival {
    policy: Policy,
    model: Model,
    api_history: ApiHistory,
    next_at: Time,
    asked: u64,
    rebooting: BTreeMap<IntentId, InstanceId>,
}

#[derive(Clone, Debug)]
enum Model {
    NoAction,
    Flight(Flight),
    Mhc(Mhc),
    Karpenter(Karpenter),
    Healer(Healer),
}

/// The interval of a policy that never looks.
const IDLE: Span = Span::from_min(5);

impl Rival {
    /// This policy begins to look at this moment.
    pub(crate) fn new(policy: Policy, now: Time, world: &impl Outlook) -> Self {
        let model = match policy {
            Policy::Reveille | Policy::NoAction => Model::NoAction,
            Policy::FlightControl => Model::Flight(Flight::default()),
            Policy::MachineHealthCheck => Model::Mhc(Mhc::default()),
            Policy::Karpenter => Model::Karpenter(Karpenter::default()),
            Policy::MagnumAutoHealer => Model::Healer(Healer::default()),
        };
        let mut api_history = ApiHistory::default();
        api_history.watch(now, world);
        Self { policy, model, api_history, next_at: now, asked: 0, rebooting: BTreeMap::new() }
    }

    /// Which policy this is.
    pub(crate) const fn policy(&self) -> Policy {
        self.policy
    }

    /// When it looks next.
    pub(crate) const fn next_at(&self) -> Time {
        self.next_at
    }

    /// Reads that it made so far.
    pub(crate) const fn reads(&self) -> u64 {
        self.api_history.reads
    }

    /// Others write into APIs whether or not the model's process runs.
    pub(crate) fn watch(&mut self, now: Time, world: &impl Outlook) {
        if !matches!(self.model, Model::NoAction) {
            self.api_history.watch(now, world);
        }
    }

    /// Its process died, and another one starts.
    pub(crate) fn restart(&mut self, now: Time) {
        match &mut self.model {
            Model::NoAction | Model::Mhc(_) => {}
            Model::Flight(flight) => *flight = Flight::default(),
            Model::Karpenter(karpenter) => karpenter.restart(),
            Model::Healer(healer) => healer.restart(),
        }
        self.rebooting.clear();
        self.next_at = now;
    }

    /// The world answered a call; some originals act on that at once.
    pub(crate) fn answered(
        &mut self,
        now: Time,
        world: &World,
        intent: IntentId,
        outcome: &Outcome,
    ) -> Vec<(IntentId, Call)> {
        let Some(id) = self.rebooting.remove(&intent) else { return Vec::new() };
        let Model::Healer(healer) = &mut self.model else { return Vec::new() };
        let deed = healer.answered(now, &id, outcome);
        self.calls(deed, world)
    }

    /// One look at what cannot answer back: what it would do, as if every call were accepted.
    pub(crate) fn pass_unheard(&mut self, now: Time, outlook: &impl Outlook) -> Vec<Deed> {
        let mut deeds = self.deeds(now, outlook);
        if let Model::Healer(healer) = &mut self.model {
            let reboots: Vec<InstanceId> = deeds.iter().filter_map(Deed::rebooted).cloned().collect();
            let accepted = Outcome::Accepted { request: None };
            deeds.extend(reboots.iter().filter_map(|id| healer.answered(now, id, &accepted)));
        }
        deeds
    }

    /// One look, when it is due, and what follows from it.
    pub(crate) fn pass(&mut self, now: Time, world: &World) -> Vec<(IntentId, Call)> {
        if now < self.next_at {
            return Vec::new();
        }
        let deeds = self.deeds(now, world);
        self.calls(deeds, world)
    }

    fn calls(&mut self, deeds: impl IntoIterator<Item = Deed>, world: &World) -> Vec<(IntentId, Call)> {
        let mut calls = Vec::new();
        for deed in deeds {
            for call in calls_of(&deed, world) {
                self.asked += 1;
                let intent = IntentId(self.asked);
                if let Deed::Reboot(id) = &deed {
                    self.rebooting.insert(intent, id.clone());
                }
                calls.push((intent, call));
            }
        }
        calls
    }

    /// What it does now, whenever it is due next.
    fn deeds(&mut self, now: Time, world: &impl Outlook) -> Vec<Deed> {
        match &mut self.model {
            Model::NoAction => {
                self.next_at = now + IDLE;
                Vec::new()
            }
            Model::Flight(flight) => {
                let view = flight_view(&mut self.api_history, world);
                let (deeds, next_at) = flight.pass(now, view.as_ref());
                self.next_at = next_at;
                deeds
            }
            Model::Mhc(mhc) => {
                self.next_at = now + mhc::EVERY;
                let nodes = watched(&mut self.api_history, world);
                let presence = self.api_history.presence(world, mhc.removals.marked());
                mhc.pass(now, &self.api_history.machines(world), nodes.as_deref(), &presence)
            }
            Model::Karpenter(karpenter) => {
                self.next_at = now + karpenter::EVERY;
                let nodes = watched(&mut self.api_history, world);
                let presence = self.api_history.presence(world, karpenter.removals.marked());
                let listed = karpenter.collects(now).then(|| self.api_history.servers(world)).flatten();
                let claims = self.api_history.machines(world);
                karpenter.pass(now, &claims, nodes.as_deref(), listed.as_ref(), &presence)
            }
            Model::Healer(healer) => {
                self.next_at = now + healer::EVERY;
                let nodes = self.api_history.nodes(world);
                // One list for masters, and Magnum's cluster.
                self.api_history.reads += 2;
                let present: BTreeSet<InstanceId> =
                    world.roll_of_owner().map(|(_, instance)| instance.id.clone()).collect();
                healer.pass(now, nodes.as_deref(), &present)
            }
        }
    }
}

/// Nodes from a cache that a watch keeps: not counted as a read.
fn watched(api_history: &mut ApiHistory, world: &impl Outlook) -> Option<Vec<super::observations::NodeSeen>> {
    let nodes = api_history.nodes(world);
    api_history.reads -= 1;
    nodes
}

/// What flight control sees: one listing of the whole project for each pool, and nodes by name.
fn flight_view(api_history: &mut ApiHistory, world: &impl Outlook) -> Option<FlightView> {
    let nodes = watched(api_history, world);
    let (prefixes, suffix) = world.naming();
    // A listing for each pool, and the group.
    api_history.reads += prefixes.len() as u64 + 1;
    let listed = world.glance_servers()?;
    let groups = world.glance_groups()?;
    let claimed = |name: &str| {
        let rest = prefixes.iter().find_map(|prefix| name.strip_prefix(prefix.as_str()));
        rest.is_some_and(|rest| is_suffix(rest, prefixes.first().is_some_and(|p| p.starts_with("kks-"))))
    };
    let wanted = world.wanted();
    let group = wanted.as_ref().and_then(|(wanted, _)| groups.iter().find(|group| means(wanted, group)));
    let seen = |instance: &std::sync::Arc<reveille_core::model::instance::Instance>| ServerSeen {
        id: instance.id.clone(),
        name: instance.name.to_string(),
        state: instance.state,
        task: instance.task.as_deref().map(str::to_owned),
        created: api_history.created(&instance.id),
        grouped: world.glance_ports(&instance.id).is_none_or(|ports| {
            group.is_none_or(|group| ports.iter().any(|port| port.groups.contains(&group.id)))
        }),
    };
    let servers = listed.iter().filter(|instance| claimed(instance.name.as_str())).map(seen).collect();
    let called = |name: String| name.strip_suffix(&suffix).map(str::to_owned).unwrap_or(name);
    let nodes = nodes?.into_iter().map(|node| called(node.name.to_string())).collect();
    let means_it =
        |group: &&std::sync::Arc<_>| wanted.as_ref().is_some_and(|(wanted, _)| means(wanted, group));
    let groups = groups.iter().filter(means_it).map(|group| (**group).clone()).collect();
    Some(FlightView { servers, nodes, groups, pod_range: wanted.map(|(_, range)| range) })
}

/// What follows the prefix: five characters as its own generator makes them, or anything without a dash among plain names.
fn is_suffix(rest: &str, generated: bool) -> bool {
    if generated {
        rest.len() == 5
    } else {
        !rest.is_empty() && rest.bytes().all(|b| b.is_ascii_alphanumeric())
    }
}

fn calls_of(deed: &Deed, world: &World) -> Vec<Call> {
    let cloud = || CLOUD.into();
    match deed {
        // A cloud that denies the server when asked for it answers a call about it with 404, too.
        Deed::Delete(id) | Deed::Reboot(id) if world.glance_server(id) == Some(None) => Vec::new(),
        Deed::Delete(id) => {
            vec![Call::DeleteInstance(DeleteInstance {
                cloud: cloud(),
                instance: id.clone(),
                owned: world.any_marks_of(id),
                rests_on: None,
            })]
        }
        Deed::Reboot(id) => vec![Call::Reboot(Reboot {
            cloud: cloud(),
            instance: id.clone(),
            hard: false,
            owned: world.any_marks_of(id),
        })],
        Deed::DeleteNode(name, uid) => {
            vec![Call::DeleteNode(DeleteNode { name: name.clone(), uid: uid.clone(), boot_id: None })]
        }
        Deed::PutRules(rules) => {
            vec![Call::AddRules(AddRules { cloud: cloud(), group: GROUP.into(), rules: rules.clone() })]
        }
        Deed::PutGroup(id) => {
            let lacking = |port: &std::sync::Arc<reveille_core::model::instance::Port>| {
                let lacks = !port.groups.iter().any(|group| group.as_str() == GROUP);
                lacks.then(|| {
                    Call::SetPortGroups(SetPortGroups {
                        cloud: cloud(),
                        port: port.id.clone(),
                        groups: port.groups.iter().cloned().chain([GROUP.into()]).collect(),
                        if_revision: port.revision,
                        instance: id.clone(),
                        owned: world.any_marks_of(id),
                    })
                })
            };
            world.glance_ports(id).unwrap_or_default().iter().filter_map(lacking).collect()
        }
    }
}
