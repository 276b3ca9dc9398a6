//! Makes faults true, and ends those that end by themselves.
//!
//! Each fault changes what is so (an object, a machine's inside, a lie of what is observed); what any client sees of it follows
//! from there. A fault on a machine that is gone changes nothing.

use std::collections::BTreeSet;

use reveille_core::model::id::{InstanceId, NodeName};
use reveille_core::model::instance::{InstanceState, Mark};
use reveille_core::model::network::{REPAIR_MARK, Route};
use reveille_core::model::time::Span;

use super::cluster::set_unreachable;
use super::fault::Fault;
use super::layout::{ROUTE_BROKEN, cluster_mark};
use super::observations::Unlisting;
use super::vm::{Kubelet, Trouble};
use super::{Task, World, access, project};

/// A port of the cluster's network that no machine ever has: routes through it lead nowhere.
const UNUSED_ADDRESS: u32 = 60_000;

impl World {
    pub(super) fn inject(&mut self, fault: Fault) {
        if fault.machine().is_some_and(|id| !self.project.servers.contains_key(id)) || !self.can_host(&fault)
        {
            return;
        }
        let name = fault.machine().map(|id| self.name_of(id).to_string()).unwrap_or_default();
        self.tell(fault.sentence(&name));
        self.stirred = self.now;
        self.wanted += 1;
        if let Some(lasts) = fault.lasts() {
            self.plan(lasts, Task::Mend(fault.clone()));
        }
        match &fault {
            Fault::Launch { .. }
            | Fault::Tried { .. }
            | Fault::LaunchUnknown { .. }
            | Fault::BadImage(..)
            | Fault::Rollout(_) => self.strike_pool(&fault),
            Fault::ServersUnlisted { .. }
            | Fault::SomeUnlisted { .. }
            | Fault::AnotherProject(_)
            | Fault::PortsUnlisted(_)
            | Fault::VipsAway(_)
            | Fault::CloudFails(..)
            | Fault::RolesUntold(..)
            | Fault::RolesStale(_)
            | Fault::RolesUngiven(_)
            | Fault::NodesUnlisted(_)
            | Fault::EtcdRestored(_)
            | Fault::ApiSilent(_)
            | Fault::LeasesFrozen(_)
            | Fault::LeasesUnlisted(_)
            | Fault::ZoneDark(..)
            | Fault::ControllerDown(_)
            | Fault::Call(_) => self.strike_senses(&fault),
            Fault::AnswersLate(_)
            | Fault::AnswersTwice(_)
            | Fault::PagesRepeat(_)
            | Fault::WatchLags(_)
            | Fault::WatchGap(_)
            | Fault::NodeListStale(_)
            | Fault::OtherCluster(_)
            | Fault::ApiDenied(_)
            | Fault::ApiClock(..)
            | Fault::FleetDark(_)
            | Fault::ManySilent { .. }
            | Fault::RightsLost(..)
            | Fault::WritesRefused(..)
            | Fault::HealthCheck(_) => self.strike_ways(&fault),
            _ => match fault.machine().cloned() {
                Some(id) => {
                    self.strike_machine(&id, &fault);
                    self.note_causes(&id);
                }
                None => self.strike_network(&fault),
            },
        }
    }

    fn strike_network(&mut self, fault: &Fault) {
        match fault {
            Fault::RulesLost => {
                let marked = |text: &str| text.is_empty() || text.starts_with(REPAIR_MARK);
                self.project.drop_rules(|rule| marked(&rule.description));
            }
            Fault::RulesWidened => self.project.widen_rules(),
            Fault::GroupTwin => self.project.add_group_twin(),
            Fault::ForeignRoutes(count) => {
                let route = |number: u32| Route {
                    destination: project::foreign_range(number),
                    next_hop: project::address(UNUSED_ADDRESS + 1 + number),
                };
                let routes: Vec<Route> = (0..*count).map(route).collect();
                self.project.change_routes(|held| held.extend(routes));
            }
            Fault::RouteLimit(limit) => self.project.hidden_limit = *limit,
            Fault::RoleLost(user, role) => self.keystone.take(self.now, &access::user_id(user), role),
            Fault::RoleGiven(user, role) => self.keystone.give(&access::user_id(user), role),
            _ => {}
        }
    }

    fn strike_pool(&mut self, fault: &Fault) {
        match fault {
            Fault::Launch { pool, trouble } => {
                let Some(kept) = self.pools.get_mut(pool) else { return };
                kept.size += 1;
                kept.next.extend(*trouble);
            }
            Fault::Tried { pool, serves, marked_after, keeps } => {
                let Some(kept) = self.pools.get_mut(pool) else { return };
                kept.size += 1;
                self.make_to_try(pool, *serves, *marked_after, *keeps);
            }
            Fault::LaunchUnknown { pool, after, lasts, trouble } => {
                let Some(kept) = self.pools.get_mut(pool) else { return };
                kept.size += 1;
                kept.next.extend(*trouble);
                self.provider.next_unknown(pool, *after, *lasts);
            }
            Fault::BadImage(pool, trouble) => {
                if let Some(kept) = self.pools.get_mut(pool) {
                    kept.image = *trouble;
                }
            }
            Fault::Rollout(pool) => {
                let Some(kept) = self.pools.get_mut(pool) else { return };
                kept.version += 1;
                kept.size += 1;
            }
            _ => return,
        }
        self.plan(Span::from_ms(1), Task::PoolOwner);
    }

    fn strike_machine(&mut self, id: &InstanceId, fault: &Fault) {
        match fault {
            Fault::GroupLost { slips, .. } => {
                let Some(port) = self.project.port_of(id).map(|port| port.id.clone()) else { return };
                if *slips {
                    self.slippery.insert(port.clone());
                }
                self.lose_group(&port);
            }
            Fault::PairLost(_) => {
                let Some(port) = self.project.port_of(id).map(|port| port.id.clone()) else { return };
                self.project.change_port(&port, |port| port.pairs = Box::new([]));
            }
            Fault::SecondPort(_) => {
                let port = self.names.uuid();
                self.project.add_second_port(id, port.as_str().into());
            }
            Fault::PortSecurityOff(_) => {
                let Some(port) = self.project.port_of(id).map(|port| port.id.clone()) else { return };
                self.project.change_port(&port, |port| {
                    port.security = false;
                    port.groups = Box::new([]);
                });
            }
            Fault::DuplicateRoute(_) => {
                let Some(host) = self.vms.get(id).map(|vm| vm.host) else { return };
                let route = Route {
                    destination: project::pod_range(host),
                    next_hop: project::address(UNUSED_ADDRESS),
                };
                self.project.change_routes(|held| held.push(route));
            }
            Fault::MissingRoute(_) => {
                self.cloud_controller.routeless.extend(self.nodes_of(id));
                self.drop_routes_of(id);
            }
            Fault::RouteBroken(_) => {
                for name in self.nodes_of(id) {
                    self.set_route_broken(&name, true);
                }
            }
            Fault::Breaks(_, trouble) => self.break_inside(id, *trouble),
            Fault::NodeClock(..) | Fault::NodePaused(..) | Fault::Rebooted(_) | Fault::Poisoned(_) => {
                self.strike_guest(id, fault);
            }
            Fault::HostImpaired(_)
            | Fault::GuestImpaired(_)
            | Fault::CheckWrong(..)
            | Fault::SpotTaken(_)
            | Fault::Retires(..)
            | Fault::GroupReplaces(_)
            | Fault::PutApart(..)
            | Fault::NotKnown(..) => self.strike_hosting(id, fault),
            _ => self.strike_life(id, fault),
        }
    }

    fn strike_life(&mut self, id: &InstanceId, fault: &Fault) {
        match fault {
            Fault::Errored(_) => {
                self.project.set_fault(self.now, id, "Live migration failed: the host is down.");
                self.power_off(id);
            }
            Fault::Busy(_) => {
                self.project.change(self.now, id, |instance| instance.task = Some("rebuilding".into()));
            }
            Fault::Rescued(..) => self.rescue(id),
            Fault::Locked(_) => self.project.change(self.now, id, |instance| instance.locked = true),
            // Nova and EC2 refuse to stop what is being deleted.
            Fault::ShutOff(_)
                if self.project.servers.get(id).is_some_and(|it| it.instance.state.is_leaving()) => {}
            Fault::ShutOff(_) => {
                self.project.note(self.now, id, "stop", "erin");
                self.project.set_state(self.now, id, InstanceState::Stopped, None);
                self.power_off(id);
            }
            Fault::StuckDeleting(_) => {
                if let Some(server) = self.project.servers.get_mut(id) {
                    server.never_ends = true;
                }
                self.delete_instance(id, "pool-owner");
            }
            Fault::ForeignDelete(_) => {
                self.delete_instance(id, "erin");
            }
            Fault::ScaledDown(_) => self.scale_down(id),
            Fault::NodeDeletedByController(_) => self.mistake_for_gone(id),
            Fault::NodeDeletedByPerson(_) => self.delete_node_by_person(id),
            Fault::Drained(..) | Fault::Remade(..) | Fault::MarksAway(..) | Fault::Marked(_) => {
                self.strike_identity(id, fault);
            }
            Fault::ByHand(_, hand) => self.strike_by_hand(id, *hand),
            Fault::NodeTwin(_) => self.add_node_twin(id),
            Fault::NameTwin(_) => self.add_name_twin(id),
            Fault::Unmarked(_) => self.unmark(id),
            Fault::MarkedTwice(_, pool) => self.mark(id, pool),
            Fault::Cordoned(_) => self.cordon(id),
            Fault::Uncordoned(_) => self.uncordon(id),
            Fault::ShowsIdentity { of, shows, .. } => self.show_identity(id, of, *shows),
            // A slip of the pen about one that runs; what really happened to a machine is not written over.
            Fault::SaidStopped(..) if self.project.servers[id].instance.state == InstanceState::Active => {
                self.project.set_state(self.now, id, InstanceState::Stopped, None);
            }
            _ => {}
        }
    }

    fn break_inside(&mut self, id: &InstanceId, trouble: Trouble) {
        let Some(vm) = self.vms.get_mut(id) else { return };
        vm.trouble = Some(trouble);
        if trouble == Trouble::BadToken {
            vm.kubelet = Kubelet::Off;
        }
        self.review(id);
        if self.vms.get(id).is_some_and(|vm| vm.heard && vm.is_unready()) {
            for name in self.nodes_of(id) {
                self.kubelet_says(id, &name);
            }
            self.note_health(id);
            self.note_causes(id);
        }
    }

    /// From now on the cloud's listings lie like that. One lie replaces another: a client that asked for a single server a second
    /// ago was denied it all the same (seed 3840111).
    fn unlist(&mut self, lie: Option<Unlisting>) {
        if self.single_servers_are_denied() {
            self.lies.denied_until = Some(self.now);
        }
        self.lies.unlisted = lie;
    }

    fn strike_senses(&mut self, fault: &Fault) {
        match fault {
            Fault::ServersUnlisted { denies, .. } => {
                self.unlist(Some(Unlisting { only: None, denies: *denies }));
            }
            Fault::SomeUnlisted { machines, denies, .. } => {
                let only = Some(machines.iter().cloned().collect());
                self.unlist(Some(Unlisting { only, denies: *denies }));
            }
            Fault::AnotherProject(_) => self.lies.elsewhere = true,
            Fault::PortsUnlisted(_) => self.lies.portless = true,
            Fault::CloudFails(kind, _) => self.lies.cloud_fails = Some(*kind),
            Fault::RolesUntold(kind, _) => self.lies.roles_untold = Some(*kind),
            Fault::RolesStale(_) => self.keystone.shows_what_is(false),
            Fault::RolesUngiven(_) => self.lies.roles_ungiven = true,
            Fault::NodesUnlisted(_) => {
                self.lies.nodes_empty = true;
                self.break_watch();
            }
            Fault::EtcdRestored(machines) => {
                self.lose_nodes(machines);
                self.break_watch();
            }
            Fault::ApiSilent(_) => {
                self.lies.api_silent = true;
                self.break_watch();
            }
            Fault::LeasesFrozen(_) => self.lies.leases_frozen = true,
            Fault::LeasesUnlisted(_) => self.lies.leases_empty = true,
            Fault::ZoneDark(zone, _) => {
                self.lies.dark_zones.insert(zone.clone());
                self.review_all();
            }
            Fault::ControllerDown(_) => self.cloud_controller.down = true,
            Fault::VipsAway(_) => self.project.change_vips(BTreeSet::clear),
            Fault::Call(lie) => self.lies.calls.push_back(*lie),
            _ => {}
        }
    }

    pub(super) fn mend(&mut self, fault: &Fault) {
        self.stirred = self.now;
        if !self.shows_itself(fault) {
            return;
        }
        match fault {
            Fault::ServersUnlisted { .. } | Fault::SomeUnlisted { .. } | Fault::AnotherProject(_) => {
                let denied: Vec<InstanceId> =
                    self.project.servers.keys().filter(|id| self.is_denied(id)).cloned().collect();
                denied.iter().for_each(|id| self.note_causes(id));
                match fault {
                    Fault::AnotherProject(_) => self.lies.elsewhere = false,
                    _ => self.unlist(None),
                }
            }
            Fault::PortsUnlisted(_) => self.lies.portless = false,
            Fault::VipsAway(_) => {
                let own = (0..self.layout.variety.vips).filter(|number| number % 3 != 1);
                let own: BTreeSet<_> = own.map(project::vip).collect();
                self.project.change_vips(|vips| *vips = own);
            }
            Fault::SaidStopped(id, _) => {
                let state = self.project.servers.get(id).map(|server| server.instance.state);
                let runs = self.vms.get(id).is_some_and(|vm| vm.powered);
                if state == Some(InstanceState::Stopped) && runs {
                    self.project.set_state(self.now, id, InstanceState::Active, None);
                }
            }
            Fault::CloudFails(..) => self.lies.cloud_fails = None,
            Fault::RolesUntold(..) => self.lies.roles_untold = None,
            Fault::RolesStale(_) => self.keystone.shows_what_is(true),
            Fault::RolesUngiven(_) => self.lies.roles_ungiven = false,
            Fault::NodesUnlisted(_) => {
                self.lies.nodes_empty = false;
                self.break_watch();
            }
            Fault::ApiSilent(_) => self.lies.api_silent = false,
            Fault::LeasesFrozen(_) => self.lies.leases_frozen = false,
            Fault::LeasesUnlisted(_) => self.lies.leases_empty = false,
            Fault::ZoneDark(zone, _) => {
                self.lies.dark_zones.remove(zone);
                self.review_all();
            }
            Fault::ControllerDown(_) => {
                self.cloud_controller.down = false;
                self.start_cloud_controller();
            }
            _ => self.mend_ways(fault),
        }
        self.tell(format!("that is over: {}", fault.name()));
    }

    pub(super) fn review_all(&mut self) {
        let all: Vec<InstanceId> = self.vms.keys().cloned().collect();
        for id in all {
            self.review(&id);
        }
    }

    /// Puts or takes the sign that a node's pods cannot be reached.
    pub(super) fn set_route_broken(&mut self, name: &NodeName, broken: bool) {
        let before = self.cluster.nodes.get(name).cloned();
        let after = self.cluster.change(name, |node| set_unreachable(node, ROUTE_BROKEN, broken));
        if let Some(node) = after.filter(|node| before.as_ref() != Some(node)) {
            self.watched(node);
        }
    }

    fn mark(&mut self, id: &InstanceId, pool: &reveille_core::model::id::PoolName) {
        self.project.change_marks(id, |marks| {
            marks.insert(super::layout::pool_mark(pool));
        });
    }

    /// Every mark but the cluster's is taken off.
    pub(super) fn unmark(&mut self, id: &InstanceId) {
        self.project.change_marks(id, |marks| marks.retain(|mark| *mark == cluster_mark()));
    }

    /// The marks of a pool's machine.
    pub(super) fn marks(pool: &reveille_core::model::id::PoolName) -> std::collections::BTreeSet<Mark> {
        [cluster_mark(), super::layout::pool_mark(pool)].into()
    }
}
