//! Reboots and launches, as each kind of cloud shows them: what is true, and which part of it a client can read.
//!
//! | act | OpenStack (Nova) | EC2 |
//! | --- | --- | --- |
//! | reboot | an entry in the log of actions, REBOOT until it is done | nothing: `LaunchTime` and `running` stay as they are |
//! | stop and start | – | `stopping`, `stopped`, `pending`, and another `LaunchTime`; some reads show `stopped` for a while yet |
//!
//! Sources: nova `nova/compute/api.py` (`reboot`, `_record_action_start`); Amazon EC2 API Reference, `RebootInstances` and
//! `Instance`; Amazon EC2 User Guide, "Reboot your instance": a guest that does not shut down within a few minutes is reset.
//! The whole table is `docs/reference/acts.md`. What a boot does inside the machine is `vm`'s.

use std::sync::Arc;

use reveille_core::model::id::{InstanceId, RequestId};
use reveille_core::model::instance::{Instance, InstanceAction, InstanceState};
use reveille_core::model::time::{Span, Time};

use super::calls::OURSELVES;
use super::hosting::Stopping;
use super::kubelet_credentials::KubeletCredentials;
use super::project::Server;
use super::vm::FirstBoot;
use super::{Life, Task, World};

/// EC2 waits so long for a guest that was asked to reboot, and resets it then.
const RESETS_AFTER: Span = Span::from_min(4);

impl World {
    /// A running instance is rebooted. Returns under which id that was asked for: Nova logs it under the same one.
    pub(super) fn begin_reboot(&mut self, id: &InstanceId, hard: bool, by: &str) -> RequestId {
        if !self.is_hosted(id) {
            let request = self.project.note(self.now, id, "reboot", by);
            self.project.set_state(self.now, id, InstanceState::Rebooting, Some("rebooting"));
            self.power_off(id);
            let after = self.soon(6_000, 25_000);
            self.plan(after, Task::Life(id.clone(), Life::Rebooted));
            return request;
        }
        let request = self.project.request();
        let hangs = self.vms.get(id).is_some_and(|vm| vm.ail.is_some());
        let after = self.soon(6_000, 25_000);
        if hard {
            let stops = Span::from_ms(after.ms / 3);
            self.project.set_state(self.now, id, InstanceState::Stopped, Some("stopping"));
            self.power_off(id);
            let until = self.now + stops;
            self.provider.stopping.insert(id.clone(), Stopping { until, session: self.session });
            self.plan(stops, Task::Life(id.clone(), Life::Restarted));
            return request;
        }
        let after = if hangs { after + RESETS_AFTER } else { after };
        if !hangs {
            self.power_off(id);
        }
        self.plan(after, Task::Life(id.clone(), Life::Rebooted));
        request
    }

    /// It is stopped, and the call that stopped it starts it: two calls to EC2, so that a process that died between them leaves
    /// the machine stopped.
    pub(super) fn restart(&mut self, id: &InstanceId, state: InstanceState) {
        let stopping = self.provider.stopping.remove(id);
        let Some(stopping) = stopping.filter(|_| state == InstanceState::Stopped) else { return };
        if stopping.session != self.session {
            self.project.set_state(self.now, id, InstanceState::Stopped, None);
            return;
        }
        self.project.note(self.now, id, "start", OURSELVES);
        let stopped = self.project.servers.get(id).map(|server| server.instance.clone());
        self.project.set_state(self.now, id, InstanceState::Building, None);
        self.stop_and_start(id);
        let after = self.soon(4_000, 16_000);
        if let Some(stopped) = stopped.filter(|_| self.layout.settles.is_some()) {
            self.provider.outdated.insert(id.clone(), (self.now + after, stopped));
        }
        self.plan(after, Task::Life(id.clone(), Life::Rebooted));
    }

    /// What reads of this instance still answer. The result of a command "might not be immediately visible to all subsequent
    /// commands" (Amazon EC2 Developer Guide, "Eventual consistency in the Amazon EC2 API"): reads show an instance that was
    /// just started as stopped.
    pub(super) fn outdated(&self, id: &InstanceId) -> Option<&Arc<Instance>> {
        self.provider.outdated.get(id).filter(|(until, _)| self.now < *until).map(|(_, shown)| shown)
    }

    /// How long it is until our own stop and start of the machine is answered.
    pub(super) fn stops_for(&self, id: &InstanceId) -> Span {
        self.provider.stopping.get(id).map_or(Span::ZERO, |stopping| stopping.until.since(self.now))
    }

    /// The reboot comes to its end, if the instance is still in the state that it was begun in.
    pub(super) fn end_reboot(&mut self, id: &InstanceId, state: InstanceState) {
        match state {
            InstanceState::Rebooting => self.run_again(id),
            InstanceState::Building if self.is_hosted(id) => self.run_again(id),
            InstanceState::Active if self.is_hosted(id) => {
                self.power_off(id);
                self.boot(id);
            }
            _ => {}
        }
    }

    /// The log of actions as the cloud tells it, newest first.
    pub(super) fn told_actions(&self, id: &InstanceId) -> Vec<InstanceAction> {
        let server = self.project.servers.get(id);
        let Some(server) = server.or_else(|| self.project.tombs.get(id).map(|(_, server)| server)) else {
            return Vec::new();
        };
        if server.instance.hosting.is_none() { server.actions.clone() } else { launches(server) }
    }

    /// It is on its way up, and nothing is wrong inside it or on its way to the API server.
    pub(super) fn comes_up(&self, id: &InstanceId) -> bool {
        let sound = self.vms.get(id).is_some_and(|vm| {
            vm.powered
                && !vm.heard
                && vm.trouble.is_none()
                && vm.ail.is_none()
                && vm.kubelet_credentials == KubeletCredentials::Good
                && vm.first_boot != FirstBoot::Failed
        });
        sound && self.connected(id) && !self.network_faults.still.contains(id)
    }

    /// When the machine last began to boot.
    pub(crate) fn booted_at(&self, id: &InstanceId) -> Option<Option<Time>> {
        self.vms.get(id).map(|vm| vm.booted_at)
    }
}

/// EC2 keeps no log: it shows the last launch, and that an instance ends. Who did it, it does not say.
fn launches(server: &Server) -> Vec<InstanceAction> {
    let newest = |names: &[&str]| server.actions.iter().find(|action| names.contains(&&*action.action));
    let told = |action: &InstanceAction, name: &str, request: String| InstanceAction {
        request: RequestId::new(request),
        action: name.into(),
        user: None,
        message: None,
        ..action.clone()
    };
    let ended = newest(&["delete"])
        .filter(|_| server.instance.state.is_leaving() || server.instance.state == InstanceState::Gone);
    let ended = ended.map(|action| told(action, "delete", format!("ended-{}", action.started)));
    let launch = newest(&["create", "start"]);
    let launch = launch.map(|action| told(action, "launch", format!("launched-{}", action.started)));
    ended.into_iter().chain(launch).collect()
}
