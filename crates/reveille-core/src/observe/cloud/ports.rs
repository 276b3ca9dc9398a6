//! The ports of a cloud: which list of them can be true, and what a true list changes.
//!
//! The adapter lists all ports each time, and most lists say the same as the last one, so the common case compares and
//! allocates nothing. The view keeps what a single read showed after the listing began, and the ports of a machine that the
//! listing lacks.
//!
//! This module does not judge what is wrong with a port.

use std::collections::BTreeSet;
use std::net::IpAddr;
use std::sync::Arc;

use ipnet::IpNet;

use crate::event::CloudSnapshot;
use crate::model::id::InstanceId;
use crate::model::instance::{Instance, InstanceState, Port};
use crate::model::roster::Roster;
use crate::model::time::Time;
use crate::safeguard::{Safeguard, stands};

use super::{CloudChange, CloudView, Seen};
use crate::observe::fresh::Thing;

/// What is in use on the networks of a project beside the ports of instances, as [`CloudSnapshot::in_use`] says it.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(super) struct InUse {
    nets: Arc<BTreeSet<IpNet>>,
    /// The prefix lengths among them: an address is found by one question for each, however many networks there are.
    lengths: BTreeSet<u8>,
}

impl InUse {
    fn of(nets: Arc<BTreeSet<IpNet>>) -> Self {
        let lengths = nets.iter().map(IpNet::prefix_len).collect();
        Self { nets, lengths }
    }

    fn holds(&self, address: IpAddr) -> bool {
        let nets = self.lengths.iter().filter_map(|length| IpNet::new(address, *length).ok());
        nets.map(|net| net.trunc()).any(|net| self.nets.contains(&net))
    }
}

impl CloudView {
    /// The address is on a port of this project, or inside an allowed address pair of one.
    pub fn uses(&self, address: &IpAddr) -> bool {
        self.addresses.contains(address) || (self.in_use.holds(*address) && stands(Safeguard::PortsOfOthers))
    }

    /// The newest list of ports held at least one: of a machine, of a router, or of anything else.
    pub fn has_any_port(&self) -> bool {
        !self.addresses.is_empty() || !self.in_use.nets.is_empty()
    }

    /// When the newest list of ports that is believed was begun.
    pub const fn ports_begun(&self) -> Option<Time> {
        self.ports_begun
    }

    /// Takes in a list of ports, if it can be true. True when it is what is known.
    pub(super) fn review_ports(
        &mut self,
        roster: &Roster,
        now: Time,
        begun: Time,
        snapshot: &CloudSnapshot,
        change: &mut CloudChange,
    ) -> bool {
        // Whether an empty list can be true is asked each time.
        let same = !snapshot.ports.is_empty() && self.source.doubted().is_none() && self.has_ports(snapshot);
        if !same && !self.ports_are_plausible(roster, now, snapshot) {
            return false;
        }
        if !same {
            self.set_ports(snapshot, change);
        }
        self.ports_begun = Some(begun);
        let same_use = self.in_use.nets == snapshot.in_use;
        if !same_use {
            self.in_use = InUse::of(snapshot.in_use.clone());
        }
        same && same_use
    }

    /// A port list that lost the ports of many machines at once cannot be true: if the controller believed it, no port
    /// would have the next hop of any route (flight control D7). A machine that its own listing shows without an address is
    /// not counted. A port that was deleted is gone from both services (nova: nova/compute/manager.py,
    /// `external_instance_event` with `network-vif-deleted`); a port that a list left out is missing from one.
    fn ports_are_plausible(&mut self, roster: &Roster, now: Time, snapshot: &CloudSnapshot) -> bool {
        let with_ports: BTreeSet<&InstanceId> = snapshot.ports.iter().map(|(instance, _)| instance).collect();
        let runs = |seen: &&Seen| seen.instance.state == InstanceState::Active && seen.unlisted.is_none();
        let running = self.instances.values().filter(runs).count();
        let is_bare = |seen: &&Seen| {
            let lost_all = !seen.ports.is_empty() && !with_ports.contains(&seen.instance.id);
            lost_all && !seen.instance.addresses.is_empty()
        };
        let bare = self.instances.values().filter(runs).filter(is_bare).count();
        let tolerated = roster.timing.may_lack(running);
        let why = if (running > 1 || bare > 0) && with_ports.is_empty() {
            Some(format!("its port list is empty beside {running} running machines"))
        } else if bare > tolerated {
            Some(format!("{bare} of {running} running machines lost all their ports at once"))
        } else {
            None
        };
        let why = why.filter(|_| stands(Safeguard::LostPorts));
        let plausible = why.is_none();
        if let Some(why) = why {
            self.source.doubt(now, Some(Arc::from(why)));
        } else if self.doubted_missing.is_empty() {
            self.source.doubt(now, None);
        }
        plausible
    }

    /// The listing's ports are those that are known already, no more and no fewer. Both sides are walked in order of the
    /// instances' ids; a list in any other order passes for another list, which costs time and nothing else.
    fn has_ports(&self, snapshot: &CloudSnapshot) -> bool {
        let (mut owned, mut known, mut addresses) = (0, 0, 0);
        let mut instances = self.instances.iter().peekable();
        for (owner, port) in &snapshot.ports {
            while let Some((_, seen)) = instances.next_if(|(id, _)| *id != owner && *id < owner) {
                known += seen.ports.len();
            }
            let seen = instances.peek().filter(|(id, _)| *id == owner).map(|(_, seen)| seen);
            addresses += port.addresses.len();
            match seen {
                Some(seen) if !seen.ports.contains(port) => return false,
                // It stood in the listing that the addresses are from, with these addresses.
                Some(_) if !self.read_aside => owned += 1,
                _ if !port.addresses.iter().all(|address| self.addresses.contains(address)) => return false,
                Some(_) => owned += 1,
                None => {}
            }
        }
        known += instances.map(|(_, seen)| seen.ports.len()).sum::<usize>();
        owned == known && addresses == self.addresses.len()
    }

    /// A fresh read of one instance's ports.
    pub fn take_ports(&mut self, id: &InstanceId, ports: &[Arc<Port>]) {
        let Some(seen) = self.instances.get_mut(id) else { return };
        let mut ports = ports.to_vec();
        ports.sort_by(|a, b| a.id.cmp(&b.id));
        let (before, after) = set_ports_of(seen, ports);
        self.reindex(&before, &after);
        self.read_aside = true;
    }

    /// Both sides are walked in order of the instances' ids, so that ports that did not change cost no memory at all.
    fn set_ports(&mut self, snapshot: &CloudSnapshot, change: &mut CloudChange) {
        self.read_aside = false;
        // The old set goes first: two of them need not lie in memory together.
        self.addresses = BTreeSet::new();
        self.addresses = snapshot.ports.iter().flat_map(|(_, port)| port.addresses.iter().copied()).collect();
        let fresh = &self.fresh;
        let is_newer = |id: &InstanceId| fresh.has(|| Thing::Ports(id.clone()));
        let mut sorted: Vec<&(InstanceId, Arc<Port>)> = snapshot.ports.iter().collect();
        sorted.sort_by(|a, b| (&a.0, &a.1.id).cmp(&(&b.0, &b.1.id)));
        let mut rest = sorted.as_slice();
        let mut described = Vec::new();
        for (id, seen) in &mut self.instances {
            while let [(owner, _), others @ ..] = rest
                && owner < id
            {
                rest = others;
            }
            let (own, others) = rest.split_at(rest.iter().take_while(|(owner, _)| owner == id).count());
            rest = others;
            // A list that lacks a machine may lack its ports with it (EC2 tells of an interface with its instance): until the
            // machine is known to be gone, its address is in use. A route to it was removed otherwise (seed 3200083).
            let hidden = seen.unlisted.is_some() && own.is_empty();
            if hidden || is_newer(id) {
                self.read_aside = true;
                self.addresses.extend(seen.ports.iter().flat_map(|port| port.addresses.iter().copied()));
                continue;
            }
            let own = own.iter().map(|(_, port)| port);
            if !own.clone().eq(&seen.ports) {
                described.push(set_ports_of(seen, own.cloned().collect()));
                change.touched.insert(id.clone());
            }
        }
        described.iter().for_each(|(before, after)| self.reindex(before, after));
    }
}

/// It has these ports, and with them perhaps other addresses: how it was described, and how it is now.
fn set_ports_of(seen: &mut Seen, ports: Vec<Arc<Port>>) -> (Arc<Instance>, Arc<Instance>) {
    let before = seen.described();
    seen.ports = ports;
    seen.note_addresses();
    (before, seen.described())
}
