//! The truth for judging the engine: calls as they were carried out, harm, and which machines are well.
//!
//! The engine's own invariants are judged from its views. A view can be wrong in a way that makes both the act and the
//! check wrong together; [`Harm`] is judged from the world itself, at the moment a call takes effect.

use reveille_core::effect::{Call, Outcome};
use reveille_core::model::access::UserRef;
use reveille_core::model::id::{
    CloudName, GroupId, InstanceId, InstanceName, IntentId, PoolName, PortId, ZoneName,
};
use reveille_core::model::instance::{InstanceState, Mark};
use reveille_core::model::node::Ready;
use reveille_core::model::roster::Ownership;
use reveille_core::model::time::{Span, Time};
use reveille_core::remedies::{
    AssignRoles, DeleteInstance, DeleteNode, Reboot, RemoveRoutes, SetPortGroups, StartInstance,
};

use super::World;
use super::access::PROJECT;
use super::vm::Trouble;

/// A call as the world answered it.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Called {
    /// When it took effect, or was refused.
    pub at: Time,
    /// Whose call it was.
    pub intent: IntentId,
    /// What was asked for.
    pub call: Call,
    /// How the world answered; what reaches the engine may be less.
    pub outcome: Outcome,
}

/// Harm that a machine, or another owner's property, did not deserve.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Harm {
    /// When.
    pub at: Time,
    /// What was done to whom.
    pub what: String,
}

/// A machine as it really is.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct MachineTruth {
    /// Its id.
    pub id: InstanceId,
    /// Its name.
    pub name: InstanceName,
    /// The project that it is in.
    pub cloud: CloudName,
    /// The pool that its owner keeps it in; none for a neighbour's.
    pub pool: Option<PoolName>,
    /// It carries the marks of that pool now.
    pub marked: bool,
    /// Its zone.
    pub zone: Option<ZoneName>,
    /// Its state in the cloud.
    pub state: InstanceState,
    /// Its ports, in order of id.
    pub ports: Vec<PortId>,
    /// The groups of each of its ports.
    pub groups: Vec<Vec<GroupId>>,
    /// Its node is cordoned.
    pub cordoned: bool,
    /// What is wrong inside.
    pub trouble: Option<Trouble>,
    /// It runs, its kubelet is heard, and its Node is Ready.
    pub well: bool,
}

/// A machine that has only just become well may be hit by what was decided before: a call and a fact cross on their way.
/// One that has been well for longer than this may not.
pub(super) const CROSSING: Span = Span::from_s(60);

impl World {
    /// Keeps the time since when a machine is well.
    pub(super) fn note_health(&mut self, id: &InstanceId) {
        let well = self.is_well(id);
        let now = self.now;
        if let Some(vm) = self.vms.get_mut(id) {
            vm.well_since = if well { vm.well_since.or(Some(now)) } else { None };
        }
    }

    pub(super) fn is_well(&self, id: &InstanceId) -> bool {
        let heard = self.vms.get(id).is_some_and(|vm| vm.heard);
        let ready = || {
            let mut own = self.cluster.of(id).iter().filter_map(|name| self.cluster.nodes.get(name));
            own.any(|node| node.ready == Ready::True)
        };
        heard && ready()
    }

    /// Looks whether a call that takes effect now does harm.
    pub(super) fn watch_for_harm(&mut self, call: &Call) {
        let hurt = match call {
            Call::Reboot(Reboot { instance, .. })
            | Call::Start(StartInstance { instance, .. })
            | Call::DeleteInstance(DeleteInstance { instance, .. }) => Some(instance.clone()),
            Call::DeleteNode(DeleteNode { name, uid, boot_id }) => {
                self.machine_behind(name, uid, boot_id.as_ref())
            }
            _ => None,
        };
        if let Call::Reboot(Reboot { instance, hard: true, .. }) = call
            && self.loses_disks(instance)
        {
            self.harm(format!("{call}: its disks are lost"));
        }
        if let Some(id) = hurt {
            self.note_health(&id);
            let server = self.project.servers.get(&id);
            let foreign = server.is_some_and(|server| server.pool.is_none());
            let disowned = call.owned().is_some() && server.is_some_and(|server| self.is_disowned(server));
            let well = self.vms.get(&id).and_then(|vm| vm.well_since);
            if foreign {
                self.harm(format!("{call}: it is another owner's"));
            } else if disowned {
                self.harm(format!("{call}: its pool's mark was taken off"));
            } else if well.is_some_and(|since| self.now.since(since) > CROSSING) {
                self.harm(format!("{call}: it is well"));
            }
        }
        // Who takes a machine's marks and its groups away cuts it off, to look at it.
        if matches!(call, Call::SetPortGroups(_) | Call::AddPortPairs(_))
            && let Some((_, id, _)) = call.owned()
            && self.project.servers.get(id).is_some_and(|server| self.is_disowned(server))
        {
            self.harm(format!("{call}: its pool's mark was taken off"));
        }
        match call {
            Call::RemoveRoutes(RemoveRoutes { routes, .. }) => {
                let live = self.project.addresses();
                let right = |range, hop| {
                    let mut own = self.cluster.nodes.values().filter(|node| node.pod_ranges.contains(&range));
                    own.any(|node| node.addresses.contains(&hop))
                };
                let wrong = routes
                    .iter()
                    .find(|r| live.contains(&r.next_hop) && right(r.destination, r.next_hop))
                    .copied();
                if let Some(route) = wrong {
                    self.harm(format!("{call}: {route} is right"));
                }
                // The port of a VIP that its owner makes again is away for seconds; its owner means it to stay.
                let vips = 0..self.layout.variety.vips;
                let own: Vec<_> = vips.filter(|number| number % 3 != 1).map(super::project::vip).collect();
                let clouds = self.layout.clouds();
                let in_use: Vec<_> = clouds.iter().map(|cloud| self.project.in_use(cloud)).collect();
                let used = routes.iter().find(|route| {
                    let hop = &route.next_hop;
                    own.contains(hop) || in_use.iter().flat_map(|all| all.iter()).any(|net| net.contains(hop))
                });
                if let Some(route) = used.copied() {
                    self.harm(format!("{call}: {route} leads to a port in use"));
                }
            }
            Call::AssignRoles(AssignRoles { project, user, roles, .. }) => {
                if project.as_str() != PROJECT {
                    self.harm(format!("{call}: that is another project"));
                }
                if let Some(role) = roles.iter().find(|role| !self.keystone.is_wanted(user, &role.id)) {
                    self.harm(format!("{call}: no roster wants it to hold {}", role.name));
                }
            }
            Call::SetPortGroups(SetPortGroups { port, groups, .. }) => {
                let lost =
                    self.project.ports.get(port).and_then(|(_, port)| {
                        port.groups.iter().find(|group| !groups.contains(group)).cloned()
                    });
                if let Some(group) = lost {
                    self.harm(format!("{call}: group {group} is taken away"));
                }
            }
            _ => {}
        }
    }

    /// Looks whether what an agent does to its machine does harm.
    pub(super) fn watch_for_agents_harm(&mut self, id: &InstanceId, verb: &str) {
        self.note_health(id);
        let well = self.vms.get(id).and_then(|vm| vm.well_since);
        if well.is_some_and(|since| self.now.since(since) > CROSSING) {
            let name = self.name_of(id);
            self.harm(format!("the agent of {name} {verb} it: it is well"));
        }
    }

    fn harm(&mut self, what: String) {
        self.harms.push(Harm { at: self.now, what });
    }

    /// Everything that was done to what did not deserve it. Empty in every run that is right.
    pub fn harms(&self) -> &[Harm] {
        &self.harms
    }

    /// How many reads of the cloud and the cluster the engine asked for: four for a listing, one for a list of leases, one
    /// for anything else. A watch is none.
    pub const fn reads(&self) -> u64 {
        self.reads
    }

    /// Every call, in order, with how the world answered it.
    pub fn calls(&self) -> &[Called] {
        &self.calls
    }

    /// Every machine of the project, neighbours included, in order of id.
    pub fn machines(&self) -> Vec<MachineTruth> {
        self.project.servers.keys().filter_map(|id| self.machine(id)).collect()
    }

    /// One machine; none when the cloud has it no more.
    pub fn machine(&self, id: &InstanceId) -> Option<MachineTruth> {
        let server = self.project.servers.get(id)?;
        let ports = self.project.ports_of(id);
        let mut nodes = self.cluster.of(id).iter().filter_map(|name| self.cluster.nodes.get(name));
        Some(MachineTruth {
            id: id.clone(),
            name: server.instance.name.clone(),
            cloud: server.cloud.clone(),
            pool: server.pool.clone(),
            marked: Self::has_marks(server),
            zone: server.instance.zone.clone(),
            state: server.instance.state,
            ports: ports.iter().map(|port| port.id.clone()).collect(),
            groups: ports.iter().map(|port| port.groups.to_vec()).collect(),
            cordoned: nodes.any(|node| node.cordoned),
            trouble: self.vms.get(id).and_then(|vm| vm.trouble),
            well: self.is_well(id),
        })
    }

    /// The number of the newest host. It tells at no cost whether anything was made since it was last asked.
    pub const fn newest_host(&self) -> u32 {
        self.project.next_host
    }

    /// True when every pool has its size, and every machine of it runs, is heard, grouped and Ready. The router leads to each
    /// and to no other address, and no service user lacks a role.
    pub fn all_is_well(&self) -> bool {
        let sized =
            self.pools.iter().all(|(pool, kept)| self.project.kept_of(pool).count() == kept.size as usize);
        let ours = || self.project.servers.iter().filter(|(_, server)| server.pool.is_some());
        let well = ours().all(|(id, server)| {
            server.instance.state == InstanceState::Active
                && self.is_well(id)
                && self.project.port_of(id).is_some_and(|port| self.project.is_grouped(id, port))
        });
        let known = |node: &reveille_core::model::node::Node| {
            node.system_uuid.as_ref().is_some_and(|id| self.project.servers.contains_key(id))
        };
        let nodes = self.cluster.nodes.values().all(|node| {
            known(node)
                && !node.conditions.iter().any(|condition| &*condition.kind == super::layout::ROUTE_BROKEN)
        });
        let roles = self.keystone.is_well();
        sized
            && well
            && nodes
            && roles
            && self.rules_are_there()
            && (!self.layout.routed || self.routes_are_right())
    }

    /// It carries the marks of its own pool.
    pub(super) fn has_marks(server: &super::project::Server) -> bool {
        server.pool.as_ref().is_some_and(|pool| Self::is_marked(server, pool))
    }

    /// It carries the marks of the pool.
    pub(super) fn is_marked(server: &super::project::Server, pool: &PoolName) -> bool {
        Self::marks(pool).iter().all(|mark| server.instance.marks.contains(mark))
    }

    /// An operator took a mark off, so that the machine is left alone.
    fn is_disowned(&self, server: &super::project::Server) -> bool {
        let roster = self.layout.roster();
        let pool = server.pool.as_ref().and_then(|name| roster.pools.get(name));
        pool.is_some_and(|pool| pool.owned.marks().any(|mark| !server.instance.marks.contains(mark)))
    }

    /// Marks that are on the instance now, for other programs' calls: those rest on no marks.
    pub fn any_marks_of(&self, id: &InstanceId) -> Ownership {
        let server = self.project.servers.get(id);
        let mark = server.and_then(|server| server.instance.marks.first().cloned());
        Ownership::of_cluster(mark.unwrap_or_else(|| Mark::Tag("".into())))
    }

    /// When another client last took away what this call gives.
    pub(crate) fn taken_at(&self, call: &Call) -> Option<Time> {
        match call {
            Call::AssignRoles(AssignRoles { user, roles, .. }) => self.keystone.lost_at(user, roles),
            _ => None,
        }
    }

    /// The user lacks a role that it must hold.
    pub fn is_wanting(&self, user: &UserRef) -> bool {
        self.keystone.is_wanting(user)
    }

    fn rules_are_there(&self) -> bool {
        use super::layout::pod_net;
        use reveille_core::model::network::{Protocol, Remote, SecurityGroup};
        let there = |group: &SecurityGroup, protocol: Protocol| {
            group.rules.iter().any(|rule| {
                rule.allows.protocol == Some(protocol) && rule.allows.remote == Remote::Prefix(pod_net())
            })
        };
        let all = [Protocol::TCP, Protocol::UDP, Protocol::ICMP];
        self.project.pool_groups().all(|group| all.into_iter().all(|protocol| there(group, protocol)))
    }

    fn routes_are_right(&self) -> bool {
        let net = super::layout::pod_net();
        let inside = |route: &&reveille_core::model::network::Route| net.contains(&route.destination);
        let right = self.project.routes().iter().filter(inside).all(|route| {
            let mut owner = self.cluster.nodes.values().filter(|n| n.pod_ranges.contains(&route.destination));
            // A range that no node has, through a VIP, is an operator's.
            (0..self.layout.variety.vips).any(|number| route.next_hop == super::project::vip(number))
                || owner.any(|node| node.addresses.contains(&route.next_hop))
        });
        let complete = self.cluster.nodes.values().all(|node| {
            node.pod_ranges.iter().all(|range| {
                self.project
                    .routes()
                    .iter()
                    .any(|route| route.destination == *range && node.addresses.contains(&route.next_hop))
            })
        });
        right && complete
    }
}
