//! Those whom the rig does not have, and the simulated world has: guests in the machines, the owner of a pool, packets.
//!
//! ```text
//!  Nova: is it gone? was it rebooted? does it run again? ─▶ its kubelet ends, starts, registers
//!  Nova: are there as many as the pool keeps?            ─▶ one more is made
//!  Neutron: does its port carry the group?               ─▶ its kubelet is heard, or is not
//! ```
//!
//! They read the services and act on nothing else, least of all on what Reveille says. The rig's machines are Nova's fake
//! driver's, so nothing boots in them, and its network carries no packets; without these a reboot could help nobody.

use std::time::{Duration, Instant};

use anyhow::{Context, Result};
use reveille_sim::world::guest::Trouble;
use serde_json::Value;

use super::given::Made;
use super::stage::Stage;
use crate::rig::Machine;

/// From running to registering. Longer than between two listings, so that each newcomer is seen without its node first.
const BOOTS_IN: Duration = Duration::from_secs(10);
/// A machine that has booted before is quicker.
const BOOTS_AGAIN_IN: Duration = Duration::from_secs(2);
const POST_RULE: &str = "POST /v2.0/security-group-rules";
const DELETE_RULE: &str = "DELETE /v2.0/security-group-rules/{id}";

/// A machine and what would be inside.
#[derive(Clone, Debug)]
pub(super) struct Guest {
    pub(super) made: Made,
    pub(super) trouble: Option<Trouble>,
    pub(super) has_node: bool,
    /// Its kubelet is not heard.
    pub(super) silent: bool,
    /// It was shut off.
    pub(super) off: bool,
    /// It is being deleted, or gone.
    pub(super) ended: bool,
    /// When its kubelet starts.
    pub(super) boots_at: Option<Instant>,
    /// Its port does not carry its group.
    cut_off: bool,
    reboots: usize,
}

impl Guest {
    /// One that runs and has no node yet.
    pub(super) fn new(name: &str, pool: &str, machine: Machine, trouble: Option<Trouble>) -> Self {
        let made = Made { name: name.to_owned(), pool: pool.to_owned(), machine };
        let boots_at = trouble.is_none().then(|| Instant::now() + BOOTS_IN);
        Self { boots_at, has_node: false, trouble, ..Self::joined(made) }
    }

    /// One that has long joined.
    pub(super) const fn joined(made: Made) -> Self {
        Self {
            made,
            trouble: None,
            has_node: true,
            silent: false,
            off: false,
            ended: false,
            boots_at: None,
            cut_off: false,
            reboots: 0,
        }
    }

    /// A reboot would change something.
    const fn may_be_rebooted(&self) -> bool {
        !self.ended && (self.trouble.is_some() || (!self.has_node && self.boots_at.is_none()))
    }
}

impl Stage<'_> {
    /// Everybody does what is due.
    pub(super) fn backstage(&mut self) -> Result<()> {
        if self.lives {
            self.look_at_servers()?;
        }
        if self.deaf {
            return Ok(());
        }
        for at in 0..self.guests.len() {
            if self.lives {
                self.notice_reboot(at)?;
            }
            if self.cuts {
                self.notice_cut(at)?;
            }
            if self.guests[at].boots_at.is_some_and(|at| at <= Instant::now()) {
                self.boot(at)?;
            }
        }
        if self.lives {
            self.keep_pools()?;
        }
        self.reach_again()
    }

    fn look_at_servers(&mut self) -> Result<()> {
        let servers = self.cloud.servers(&self.roster.cluster_tag())?;
        for at in 0..self.guests.len() {
            let guest = &mut self.guests[at];
            let server = servers.iter().find(|server| server["id"] == *guest.made.machine.id);
            let leaving = |server: &Value| server["OS-EXT-STS:task_state"] == "deleting";
            if server.is_none_or(leaving) && !guest.ended {
                (guest.ended, guest.boots_at) = (true, None);
                let name = guest.made.name.clone();
                self.silence(&name)?;
            } else if server.is_some_and(|server| server["status"] == "SHUTOFF") {
                guest.off = true;
            } else if guest.off && server.is_some_and(|server| server["status"] == "ACTIVE") {
                (guest.off, guest.boots_at) = (false, Some(Instant::now() + BOOTS_AGAIN_IN));
            }
        }
        Ok(())
    }

    fn notice_reboot(&mut self, at: usize) -> Result<()> {
        if !self.guests[at].may_be_rebooted() {
            return Ok(());
        }
        let reboots = self.cloud.actions(&self.guests[at].made.machine.id, "reboot")?;
        let guest = &mut self.guests[at];
        if reboots > guest.reboots {
            guest.reboots = reboots;
            guest.trouble = guest.trouble.filter(|trouble| *trouble != Trouble::KubeletHung);
            guest.boots_at = guest.trouble.is_none().then(|| Instant::now() + BOOTS_AGAIN_IN);
        }
        Ok(())
    }

    /// Packets pass where a port carries the group, or is filtered by nobody.
    fn notice_cut(&mut self, at: usize) -> Result<()> {
        let guest = &self.guests[at];
        if guest.ended || !guest.has_node {
            return Ok(());
        }
        let group = self.rig.facts.openstack.security_group.as_str();
        let passes = |port: &Value| {
            let carries =
                port["security_groups"].as_array().is_some_and(|own| own.iter().any(|id| *id == *group));
            carries || port["port_security_enabled"] == false
        };
        let passed = self.cloud.ports(&guest.made.machine.id)?.iter().any(passes);
        let (name, was_cut, hung) = (guest.made.name.clone(), guest.cut_off, guest.trouble.is_some());
        self.guests[at].cut_off = !passed;
        match (passed, was_cut) {
            (false, false) => self.silence(&name),
            (true, true) if !hung => self.hear(&name),
            _ => Ok(()),
        }
    }

    /// The machine has booted: its kubelet is heard again, or makes its node.
    fn boot(&mut self, at: usize) -> Result<()> {
        self.guests[at].boots_at = None;
        let (name, rig) = (self.guests[at].made.name.clone(), self.guests[at].made.machine.name.clone());
        if self.guests[at].has_node {
            return self.hear(&name);
        }
        let routes: &[&str] = if self.layout.routed { &[] } else { &["--no-route"] };
        // As a kubelet does: registered first, Ready when its container network is up.
        self.rig.nodes(&[&rig], &[&["--not-ready"], routes].concat())?;
        std::thread::sleep(Duration::from_secs(1));
        self.kube.ctl(&["annotate", "node", &rig, "reveille.rig/not-ready-"])?;
        let guest = &mut self.guests[at];
        (guest.has_node, guest.silent) = (true, false);
        Ok(())
    }

    /// Each pool's owner makes what is missing.
    fn keep_pools(&mut self) -> Result<()> {
        let pools: Vec<(String, usize)> =
            self.layout.pools.iter().map(|pool| (pool.name.to_string(), pool.machines as usize)).collect();
        for (pool, size) in pools {
            let started = self.started.get(&pool).copied().unwrap_or_default();
            let made = self.guests.iter().filter(|guest| guest.made.pool == pool);
            let (all, live) = (made.clone().count(), made.filter(|guest| !guest.ended).count());
            if live < size + started {
                self.start(&format!("{pool}-{}", all + 1), &pool, None)?;
            }
        }
        Ok(())
    }

    /// After a nudge the data plane has read its tables again.
    fn reach_again(&mut self) -> Result<()> {
        if self.unreachable.is_empty() {
            return Ok(());
        }
        let calls = self.proxy.calls()?;
        if calls.forwarded("neutron", POST_RULE) > 0 && calls.forwarded("neutron", DELETE_RULE) > 0 {
            for name in std::mem::take(&mut self.unreachable) {
                self.kube.condition(&name, "RouteBroken", false)?;
            }
        }
        Ok(())
    }

    /// Its kubelet is not heard any more, if it has a node to speak for.
    pub(super) fn silence(&mut self, name: &str) -> Result<()> {
        let guest = self.guest(name)?;
        if !guest.has_node || guest.silent {
            return Ok(());
        }
        guest.silent = true;
        let rig = guest.made.machine.name.clone();
        if self.kube.node(&rig)?.is_none() {
            return Ok(());
        }
        self.rig.fault(&["node-silent", &rig])
    }

    fn hear(&mut self, name: &str) -> Result<()> {
        let guest = self.guest(name)?;
        if !guest.silent || guest.cut_off {
            return Ok(());
        }
        guest.silent = false;
        let rig = guest.made.machine.name.clone();
        self.rig.lift(&["node-silent", &rig])
    }

    /// The machine of that name.
    pub(super) fn guest(&mut self, name: &str) -> Result<&mut Guest> {
        let found = self.guests.iter_mut().rfind(|guest| guest.made.name == name);
        found.with_context(|| format!("there is no {name} on the rig"))
    }
}
