//! Inside the machines: boots, first boots, kubelets, and what is wrong in there.
//!
//! ```text
//!  power on ─▶ FirstBoot (once in a machine's life) ─▶ Kubelet ─▶ Register ─▶ renews its lease every ten seconds
//! ```
//!
//! A kubelet registers when it starts and at no other time: when its Node is deleted, it goes on running and never comes back by
//! itself. A reboot starts it again, and does not repeat a first boot. Whether a kubelet is heard follows from its machine, its
//! port's group and its zone. The world computes it again whenever one of these changes ([`World::review`]), so that a thousand
//! healthy kubelets cost nothing between two changes.

use std::collections::VecDeque;
use std::sync::Arc;

use reveille_core::model::id::{InstanceId, NodeName, NodeUid};
use reveille_core::model::instance::{InstanceState, Port};
use reveille_core::model::node::Ready;
use reveille_core::model::time::{Span, Time};

use super::cluster::{Lease, Registration, registered, set_ready, set_unready};
use super::hosting::Ail;
use super::kubelet_credentials::KubeletCredentials;
use super::trouble::Bites;
use super::{Life, Task, World, console, project};

pub use super::trouble::Trouble;

/// One machine from the inside.
#[derive(Clone, Debug)]
pub(crate) struct Vm {
    pub(crate) host: u32,
    pub(crate) trouble: Option<Trouble>,
    /// The problem that its provider finds; the machine does not run then.
    pub(crate) ail: Option<Ail>,
    /// Counts boots; steps of an earlier boot are void.
    pub(crate) boot: u64,
    pub(crate) boot_id: Arc<str>,
    /// When it last began to boot.
    pub(crate) booted_at: Option<Time>,
    pub(crate) powered: bool,
    pub(crate) first_boot: FirstBoot,
    pub(crate) kubelet: Kubelet,
    /// It registered once, with the papers of its join.
    pub(crate) joined: bool,
    pub(crate) kubelet_credentials: KubeletCredentials,
    /// Its kubelet is heard: it renews its lease.
    pub(crate) heard: bool,
    /// Counts changes of `heard`; what was planned before the last one is void.
    pub(crate) turn: u64,
    /// Since when all is well with it, for judging whether harm was done.
    pub(crate) well_since: Option<Time>,
    pub(crate) console: VecDeque<String>,
}

/// Whether a machine has its configuration.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum FirstBoot {
    Due,
    Done,
    Failed,
}

/// What the kubelet does.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Kubelet {
    Off,
    /// It runs and has not registered since it started.
    Registering,
    /// It registered, and will not again before its next start.
    Registered,
}

/// A step of a boot.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum GuestStep {
    FirstBoot,
    Kubelet,
    Register,
}

/// Between two tries of a kubelet to register.
const REGISTER_AGAIN: Span = Span::from_s(7);

impl Vm {
    pub(crate) fn new(host: u32, trouble: Option<Trouble>, boot_id: Arc<str>) -> Self {
        Self {
            host,
            trouble,
            ail: None,
            boot: 0,
            boot_id,
            booted_at: None,
            powered: false,
            first_boot: FirstBoot::Due,
            kubelet: Kubelet::Off,
            joined: false,
            kubelet_credentials: KubeletCredentials::Good,
            heard: false,
            turn: 0,
            well_since: None,
            console: VecDeque::new(),
        }
    }

    /// Where what is wrong with it bites.
    pub(crate) fn bites(&self) -> Option<Bites> {
        self.trouble.map(Trouble::bites)
    }

    fn is_hung(&self) -> bool {
        self.bites() == Some(Bites::Silence)
    }

    /// Its kubelet runs, and does not call its node Ready.
    pub(crate) fn is_unready(&self) -> bool {
        matches!(self.bites(), Some(Bites::Initialisation | Bites::PodNetwork | Bites::Health))
    }

    fn print(&mut self, lines: Vec<String>) {
        self.console.extend(lines);
        while self.console.len() > console::LINES_MAX {
            self.console.pop_front();
        }
    }
}

impl World {
    /// Power on.
    pub(super) fn boot(&mut self, id: &InstanceId) {
        let boot_id: Arc<str> = self.names.uuid().into();
        let name = self.name_of(id);
        // Nothing runs on a broken host, whichever client starts it there.
        if self.vms.get(id).is_some_and(|vm| vm.ail == Some(Ail::Host)) {
            self.begin_checks(id);
            return;
        }
        let now = self.now;
        let Some(vm) = self.vms.get_mut(id) else { return };
        vm.ail = None;
        vm.powered = true;
        vm.boot += 1;
        vm.boot_id = boot_id;
        vm.booted_at = Some(now);
        vm.kubelet = Kubelet::Off;
        vm.print(console::boot(name.as_str()));
        self.begin_checks(id);
        self.start_agent(id);
        let Some(vm) = self.vms.get_mut(id) else { return };
        // What a start ends: it hung, or it called itself unhealthy on an earlier boot.
        let again = vm.boot > 1 || vm.is_hung();
        vm.trouble = vm.trouble.filter(|trouble| trouble.is_lasting() || !again);
        if vm.bites() == Some(Bites::Kernel) {
            vm.print(console::kernel_panics());
            return;
        }
        let (boot, first_boot) = (vm.boot, vm.first_boot);
        let step = match first_boot {
            FirstBoot::Due => GuestStep::FirstBoot,
            FirstBoot::Done => GuestStep::Kubelet,
            FirstBoot::Failed => {
                vm.print(console::never_configured());
                return;
            }
        };
        let after = self.soon(8_000, 20_000) + self.layout.variety.boots_slowly.unwrap_or_default();
        self.plan(after, Task::Vm(id.clone(), boot, step));
    }

    /// Power off: whatever ran there does not any more.
    pub(super) fn power_off(&mut self, id: &InstanceId) {
        if let Some(vm) = self.vms.get_mut(id) {
            vm.powered = false;
            vm.kubelet = Kubelet::Off;
            vm.boot += 1;
        }
        self.review(id);
    }

    pub(super) fn guest_step(&mut self, id: &InstanceId, boot: u64, step: GuestStep) {
        let Some(vm) = self.vms.get_mut(id).filter(|vm| vm.boot == boot && vm.powered) else {
            return;
        };
        match step {
            GuestStep::FirstBoot => match vm.trouble {
                Some(trouble) if matches!(trouble.bites(), Bites::Wire | Bites::FirstBoot) => {
                    vm.first_boot = FirstBoot::Failed;
                    vm.print(console::first_boot_failed(trouble));
                }
                _ => {
                    vm.first_boot = FirstBoot::Done;
                    vm.print(console::first_boot_done());
                    let after = self.soon(10_000, 25_000);
                    self.plan(after, Task::Vm(id.clone(), boot, GuestStep::Kubelet));
                }
            },
            GuestStep::Kubelet => match vm.trouble {
                Some(trouble) if trouble.bites() == Bites::Kubelet => {
                    vm.print(console::kubelet_failed(trouble));
                }
                _ => {
                    vm.print(console::kubelet_started());
                    self.start_kubelet(id);
                }
            },
            GuestStep::Register => self.register(id),
        }
    }

    fn start_kubelet(&mut self, id: &InstanceId) {
        let Some(vm) = self.vms.get_mut(id) else { return };
        vm.kubelet = Kubelet::Registering;
        let boot = vm.boot;
        let after = self.soon(1_500, 4_000);
        self.plan(after, Task::Vm(id.clone(), boot, GuestStep::Register));
    }

    /// A person restarts the kubelet on the machine: the one thing that makes it register again.
    pub(super) fn restart_kubelet(&mut self, id: &InstanceId) {
        self.restart_kubelet_by(id, "a person");
    }

    pub(super) fn restart_kubelet_by(&mut self, id: &InstanceId, who: &str) {
        let Some(vm) = self.vms.get_mut(id).filter(|vm| vm.powered) else { return };
        if vm.first_boot != FirstBoot::Done || vm.bites() == Some(Bites::Kubelet) {
            return;
        }
        vm.trouble = vm.trouble.filter(|trouble| trouble.is_lasting());
        let name = self.name_of(id);
        self.tell(format!("{who} restarts the kubelet of {name}"));
        self.start_kubelet(id);
        self.review(id);
    }

    fn register(&mut self, id: &InstanceId) {
        let connected = self.connected(id);
        let Some(vm) = self.vms.get_mut(id).filter(|g| g.kubelet == Kubelet::Registering) else {
            return;
        };
        if !connected {
            vm.print(console::kubelet_unheard());
            let boot = vm.boot;
            self.plan(REGISTER_AGAIN, Task::Vm(id.clone(), boot, GuestStep::Register));
            return;
        }
        if let Some(trouble) = vm.trouble.filter(|trouble| trouble.bites() == Bites::Registration) {
            // It tries again and again, and is told the same.
            vm.print(console::not_registered(trouble));
            return;
        }
        if vm.kubelet_credentials != KubeletCredentials::Good {
            vm.print(console::papers_refused());
            return;
        }
        vm.kubelet = Kubelet::Registered;
        vm.joined = true;
        self.node_deleted_by.remove(id);
        self.identity.removed.remove(id);
        let (host, boot_id) = (vm.host, vm.boot_id.clone());
        let name = self.node_name_of(id);
        let held = self.vms.get(id).is_some_and(|vm| vm.heard);
        let lease = Lease { instance: id.clone(), renewed: self.renewal_of(id), held };
        self.cluster.put_lease(name.clone(), lease);
        let known = self
            .cluster
            .change(&name, |node| node.boot_id = Some(boot_id.clone()))
            .filter(|node| node.system_uuid.as_ref() == Some(id));
        if let Some(node) = known {
            self.watched(node);
        } else if let Some(node) = self.adopt_node(id, &name) {
            let uid = node.uid.clone();
            self.watched(node);
            let ready = self.soon(6_000, 20_000);
            self.plan(ready, Task::NetworkReady(name, uid));
        } else {
            let node = Arc::new(registered(Registration {
                name: name.clone(),
                uid: NodeUid::new(self.names.uuid()),
                instance: id.clone(),
                boot_id,
                address: project::address(host),
                range: project::pod_range(host),
            }));
            let uid = node.uid.clone();
            self.cluster.put(node.clone());
            self.put_startup_taints(id, &name);
            let node = self.cluster.nodes.get(&name).cloned().unwrap_or(node);
            self.watched(node);
            self.ask_for_unknown(id);
            let (initialised, ready) = (self.soon(2_000, 9_000), self.soon(6_000, 20_000));
            self.plan(initialised, Task::Initialise(name.clone(), uid.clone()));
            self.plan(ready, Task::NetworkReady(name, uid));
        }
        self.review(id);
    }

    /// What its kubelet calls its node.
    pub(super) fn node_name_of(&self, id: &InstanceId) -> NodeName {
        let name = self.host_name_of(id);
        match self.layout.node_suffix.as_str() {
            "" => NodeName::new(name.shared()),
            suffix => NodeName::new(format!("{name}{suffix}")),
        }
    }

    /// The container network is up on the node: its kubelet says Ready, if it is still heard.
    pub(super) fn network_ready(&mut self, name: &NodeName, uid: &NodeUid) {
        let Some(id) = self.owner_of(name, uid) else { return };
        if !self.vms.get(&id).is_some_and(|vm| vm.heard) {
            return;
        }
        self.kubelet_says(&id, name);
        self.note_health(&id);
        self.start_addon(&id);
        let after = self.soon(2_000, 10_000);
        self.plan(after, Task::Route(name.clone(), uid.clone()));
    }

    /// The instance whose kubelet speaks for this very node.
    pub(super) fn owner_of(&self, name: &NodeName, uid: &NodeUid) -> Option<InstanceId> {
        self.cluster.nodes.get(name).filter(|node| node.uid == *uid)?.system_uuid.clone()
    }

    /// The API server can be reached from there. No group filters a port without port security.
    pub(super) fn connected(&self, id: &InstanceId) -> bool {
        let passes = |port: &Port| !port.security || self.project.is_grouped(id, port);
        let passes = self.project.port_of(id).is_some_and(|port| passes(port));
        let zone = self.project.servers.get(id).and_then(|server| server.instance.zone.clone());
        passes
            && !self.network_faults.fleet_dark
            && !self.agents.cuts.contains_key(id)
            && zone.is_none_or(|zone| !self.lies.dark_zones.contains(&zone))
    }

    /// Computes again whether the machine's kubelet is heard, and what follows from a change of that.
    pub(super) fn review(&mut self, id: &InstanceId) {
        let connected = self.connected(id);
        let Some(vm) = self.vms.get_mut(id) else { return };
        let refused = vm.kubelet_credentials != KubeletCredentials::Good;
        let hung = refused || matches!(vm.bites(), Some(Bites::Silence | Bites::Kubelet));
        let still = self.network_faults.still.contains(id);
        let heard = !still && vm.powered && vm.kubelet != Kubelet::Off && connected && !hung;
        if vm.heard == heard {
            return;
        }
        self.note_causes(id);
        let Some(vm) = self.vms.get_mut(id) else { return };
        vm.heard = heard;
        vm.turn += 1;
        let turn = vm.turn;
        self.stirred = self.now;
        for (_, lease) in self.cluster.leases().filter(|(_, lease)| lease.instance == *id) {
            lease.held = heard;
        }
        if heard {
            let after = self.soon(1_000, 8_000);
            self.plan(after, Task::Heard(id.clone(), turn));
        } else {
            self.plan(self.layout.node_grace, Task::Unheard(id.clone(), turn));
        }
        self.note_health(id);
        self.note_causes(id);
    }

    /// Nothing was heard of the kubelet for so long that the controller manager says so.
    pub(super) fn unheard(&mut self, id: &InstanceId, turn: u64) {
        if self.vms.get(id).is_some_and(|vm| vm.turn != turn) {
            return;
        }
        for node in self.nodes_of(id) {
            if let Some(node) = self.cluster.change(&node, |node| set_ready(node, Ready::Unknown)) {
                self.watched(node);
            }
        }
        self.start_cloud_controller();
    }

    /// The kubelet is heard again and says how its node is.
    pub(super) fn heard(&mut self, id: &InstanceId, turn: u64) {
        if self.vms.get(id).is_none_or(|vm| vm.turn != turn) {
            return;
        }
        for name in self.nodes_of(id) {
            let Some(node) = self.cluster.nodes.get(&name).cloned() else { continue };
            if !node.uninitialized {
                self.kubelet_says(id, &name);
            } else if node.ready == Ready::Unknown {
                // Uninitialised or not, it is silent no more: it says what it said when it registered.
                let node = self.cluster.change(&name, |node| set_ready(node, Ready::False));
                if let Some(node) = node {
                    let uid = node.uid.clone();
                    self.watched(node);
                    let ready = self.soon(6_000, 20_000);
                    self.plan(ready, Task::NetworkReady(name, uid));
                }
            }
        }
        self.note_health(id);
    }

    /// What the kubelet writes into its node: that it is Ready, or why not.
    pub(super) fn kubelet_says(&mut self, id: &InstanceId, name: &NodeName) {
        let unready = self.vms.get(id).filter(|vm| vm.is_unready()).and_then(|vm| vm.trouble);
        let boot_id = self.vms.get(id).map(|vm| vm.boot_id.clone());
        let node = self.cluster.change(name, |node| {
            // One write of its status says both (kubernetes: pkg/kubelet/nodestatus/setters.go).
            node.boot_id = boot_id.or_else(|| node.boot_id.take());
            match unready {
                Some(trouble) => set_unready(node, trouble),
                None => set_ready(node, Ready::True),
            }
        });
        if let Some(node) = node {
            self.watched(node);
        }
    }

    /// The nodes that the machine's kubelet speaks for.
    pub(super) fn nodes_of(&self, id: &InstanceId) -> Vec<NodeName> {
        self.cluster.of(id).to_vec()
    }

    /// The cloud takes a step in an instance's life.
    pub(super) fn live(&mut self, id: &InstanceId, life: Life) {
        let Some(server) = self.project.servers.get(id) else { return };
        let state = server.instance.state;
        match life {
            Life::Built if state == InstanceState::Building => self.built(id),
            Life::Rebooted => self.end_reboot(id, state),
            Life::Restarted => self.restart(id, state),
            Life::Started if state == InstanceState::Stopped => {
                self.move_host(id);
                self.run_again(id);
            }
            Life::Gone if state == InstanceState::Deleting => {
                self.power_off(id);
                self.project.bury(self.now, id);
                self.vms.remove(id);
                self.network_faults.clocks.remove(id);
                self.network_faults.still.remove(id);
                self.lies.unknown.remove(id);
                self.provider.stopping.remove(id);
                self.provider.outdated.remove(id);
                let after = self.soon(5_000, 20_000);
                self.plan(after, Task::Unroute(id.clone()));
            }
            _ => {}
        }
    }

    pub(super) fn run_again(&mut self, id: &InstanceId) {
        self.project.set_state(self.now, id, InstanceState::Active, None);
        self.boot(id);
    }

    fn built(&mut self, id: &InstanceId) {
        match self.vms.get(id).and_then(|vm| vm.trouble) {
            Some(Trouble::BuildHangs) => {}
            Some(Trouble::BuildFails) => {
                let message = "No valid host was found. There are not enough hosts available.";
                self.project.set_fault(self.now, id, message);
            }
            _ => self.run_again(id),
        }
    }
}
