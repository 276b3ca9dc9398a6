//! Those whom the rig does not have, and the simulated world has: guests in the machines, the owner of a pool, packets.
//!
//! ```text
//!  cloud: is it gone? was it rebooted? does it run again? ─▶ its kubelet ends, starts, registers, reports the boot
//!  cloud: are there as many as the pool keeps?            ─▶ one more is made
//!  cloud: does its port carry the group?                  ─▶ its kubelet is heard, or is not
//! ```
//!
//! They read the services and act on nothing else, least of all on what Reveille says. The rig's machines are those of Nova's
//! fake driver and of an imitation of EC2, so nothing boots in them, and its networks carry no packets. Without these helpers a
//! reboot could help no machine.

use std::time::{Duration, Instant};

use anyhow::{Context, Result};
use reveille_sim::world::vm::Trouble;

use super::given::Made;
use super::host::{Boots, Power};
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
    /// Its host is broken: it runs again on another one.
    pub(super) host_broken: bool,
    /// Boots that it went through.
    boots: Boots,
    /// Its node reports another boot than the one that it registered with.
    booted: usize,
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
            host_broken: false,
            boots: Boots { reboots: 0, starts: 0 },
            booted: 0,
        }
    }

    /// A reboot would change something.
    const fn may_be_rebooted(&self) -> bool {
        let unhealthy = self.trouble.is_some() || self.host_broken;
        !self.ended && (unhealthy || (!self.has_node && self.boots_at.is_none()))
    }

    /// The boot that its kubelet reports, when it is not the one that its node was made with.
    fn boot_id(&self) -> Option<String> {
        (self.booted > 0).then(|| format!("{}-boot-{}", self.made.machine.id, self.booted))
    }
}

impl Stage<'_> {
    /// Every controller and every machine of the stage does what is due.
    pub(super) fn backstage(&mut self) -> Result<()> {
        if self.lives {
            self.look_at_servers()?;
        }
        if self.deaf {
            return Ok(());
        }
        for at in 0..self.guests.len() {
            if self.lives {
                self.notice_boots(at)?;
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
        let alive = self.host.alive()?;
        for at in 0..self.guests.len() {
            let guest = &mut self.guests[at];
            match alive.get(&guest.made.machine.id) {
                None if !guest.ended => {
                    (guest.ended, guest.boots_at) = (true, None);
                    let name = guest.made.name.clone();
                    self.silence(&name)?;
                }
                Some(Power::Off) => guest.off = true,
                Some(Power::Runs) if guest.off => {
                    (guest.off, guest.boots_at) = (false, Some(Instant::now() + BOOTS_AGAIN_IN));
                    guest.booted += 1;
                }
                _ => {}
            }
        }
        Ok(())
    }

    fn notice_boots(&mut self, at: usize) -> Result<()> {
        if !self.guests[at].may_be_rebooted() {
            return Ok(());
        }
        let boots = self.host.boots(&self.guests[at].made.machine.id)?;
        let guest = &mut self.guests[at];
        if boots == guest.boots {
            return Ok(());
        }
        let moved = boots.starts > guest.boots.starts;
        guest.boots = boots;
        if guest.host_broken && !moved {
            return Ok(());
        }
        guest.host_broken = false;
        guest.booted += 1;
        guest.trouble = guest.trouble.filter(|trouble| *trouble != Trouble::KubeletHung);
        guest.boots_at = guest.trouble.is_none().then(|| Instant::now() + BOOTS_AGAIN_IN);
        if moved { self.end_own_fault("ec2-check-impaired") } else { Ok(()) }
    }

    /// Packets pass where a port carries the group, or where no group filters the port.
    fn notice_cut(&mut self, at: usize) -> Result<()> {
        let guest = &self.guests[at];
        if guest.ended || !guest.has_node {
            return Ok(());
        }
        let passed = self.host.ports(&guest.made.machine.id)?.iter().any(|port| port.passes);
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
        let guest = &self.guests[at];
        let (name, boot_id) = (guest.made.name.clone(), guest.boot_id());
        let (machine, node) = (guest.made.machine.name.clone(), guest.made.machine.node().to_owned());
        if guest.has_node {
            if let Some(boot_id) = boot_id {
                self.kube.report_boot(&node, &boot_id)?;
            }
            return self.hear(&name);
        }
        let mut arguments = vec!["--not-ready"];
        if !self.layout.routed {
            arguments.push("--no-route");
        }
        if let Some(boot_id) = &boot_id {
            arguments.extend(["--boot-id", boot_id]);
        }
        // As a kubelet does: registered first, Ready when its container network is up.
        self.host.nodes(&[&machine], &arguments)?;
        std::thread::sleep(Duration::from_secs(1));
        self.kube.ctl(&["annotate", "node", &node, "reveille.rig/not-ready-"])?;
        let guest = &mut self.guests[at];
        (guest.has_node, guest.silent) = (true, false);
        Ok(())
    }

    /// Each pool's owner makes what is missing. A group of the cloud that keeps a pool is its owner.
    fn keep_pools(&mut self) -> Result<()> {
        let known: Vec<&str> = self.guests.iter().map(|guest| guest.made.machine.id.as_str()).collect();
        for (pool, machine) in self.host.made_by_itself(&known)? {
            let name = self.next_name(&pool);
            self.guests.push(Guest::new(&name, &pool, machine, None));
        }
        let pools: Vec<(String, usize)> =
            self.layout.pools.iter().map(|pool| (pool.name.to_string(), pool.machines as usize)).collect();
        for (pool, size) in pools {
            let started = self.started.get(&pool).copied().unwrap_or_default();
            let live = self.guests.iter().filter(|guest| guest.made.pool == pool && !guest.ended).count();
            if live < size + started {
                self.start(&self.next_name(&pool), &pool, None)?;
            }
        }
        Ok(())
    }

    fn next_name(&self, pool: &str) -> String {
        let made = self.guests.iter().filter(|guest| guest.made.pool == pool).count();
        format!("{pool}-{}", made + 1)
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
        let rig = guest.made.machine.node().to_owned();
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
        let rig = guest.made.machine.node().to_owned();
        self.rig.lift(&["node-silent", &rig])
    }

    /// The machine of that name.
    pub(super) fn guest(&mut self, name: &str) -> Result<&mut Guest> {
        let found = self.guests.iter_mut().rfind(|guest| guest.made.name == name);
        found.with_context(|| format!("there is no {name} on the rig"))
    }
}
