//! The cloud that hosts a file's machines: what the stage does and sees there, the same for each kind of cloud.
//!
//! ```text
//!  backstage, deeds, given ─▶ Host ─┬▶ openstack: Nova and Neutron, the rig's faults
//!                                   └▶ ec2: the rig's EC2-compatible API
//! ```
//!
//! A file says by its content which of them it is of: where the cloud tells how it hosts the pools, it is EC2. What a cloud of
//! the rig cannot bring about is refused by its name before anything begins ([`Kind::knows`]). Nothing here knows what
//! Reveille does or says.

mod ec2;
mod openstack;

use std::collections::BTreeMap;

use anyhow::{Result, ensure};
use reveille_core::effect::ReadErrorKind;
use reveille_sim::world::fault::{CallLie, Fault};
use reveille_sim::world::layout::Layout;
use reveille_sim::world::vm::Trouble;
use serde_json::Value;

use crate::rig::{Machine, Rig};
use crate::roster::Roster;

/// Which kind of cloud a file is of.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Kind {
    OpenStack,
    Ec2,
}

/// What its cloud says of a machine that is there.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Power {
    Runs,
    Off,
    Between,
}

/// How often a guest was booted since it was made.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(super) struct Boots {
    /// Where it was.
    pub(super) reboots: usize,
    /// After it was stopped, on another host.
    pub(super) starts: usize,
}

/// A port of a machine.
pub(super) struct Port {
    pub(super) id: String,
    /// The cluster's packets pass.
    pub(super) passes: bool,
}

/// A cloud of the rig, read and changed past the fault proxy.
pub(super) trait Host {
    /// Boots machines; `bare` without the nodes' group.
    fn launch(&self, cluster: &str, pool: &str, names: &[&str], bare: bool) -> Result<Vec<Machine>>;
    /// Gives machines their simulated nodes.
    fn nodes(&self, names: &[&str], arguments: &[&str]) -> Result<()>;
    /// Every machine of the file that neither ended nor is ending, by its id.
    fn alive(&self) -> Result<BTreeMap<String, Power>>;
    /// Machines of the file that the cloud made by itself, with their pools.
    fn made_by_itself(&self, known: &[&str]) -> Result<Vec<(String, Machine)>>;
    /// What it was told to do with a machine's power.
    fn boots(&self, id: &str) -> Result<Boots>;
    fn ports(&self, id: &str) -> Result<Vec<Port>>;
    /// Does to a machine, in the cloud, what the fault says.
    fn strike(&self, machine: &Machine, pool: &str, fault: &Fault) -> Result<()>;
    /// What its console says.
    fn console(&self, machine: &Machine, text: &str) -> Result<()>;
    /// The proxy's faults that tell what this fault of the senses tells, with their arguments.
    fn deceptions(&self, fault: &Fault) -> Vec<(&'static str, Value)>;
    /// The proxy's fault for a call that goes wrong.
    fn lie(&self, lie: CallLie) -> &'static str;
    /// The proxy's faults that hold a write up: before it reaches the cloud, or its answer.
    fn held_up(&self, before: bool) -> &'static [&'static str];
    /// The texts by which requests for machines of the file are known; `None`: faults strike the requests of every file.
    fn about(&self) -> Result<Option<Vec<String>>>;
}

impl Kind {
    /// Which kind of cloud this fleet is in.
    ///
    /// # Errors
    /// When only some of its pools are hosted as EC2 does it.
    pub(super) fn of(layout: &Layout) -> Result<Self> {
        let told = layout.pools.iter().filter(|pool| pool.hosting.is_some()).count();
        ensure!(
            told == 0 || told == layout.pools.len(),
            "a rig's cloud tells how it hosts each pool, or none"
        );
        Ok(if told == 0 { Self::OpenStack } else { Self::Ec2 })
    }

    /// The cloud of the rig, for a file.
    ///
    /// # Errors
    /// When the rig has none of this kind.
    pub(super) fn host<'a>(self, rig: &'a Rig, prefix: &str, layout: &Layout) -> Result<Box<dyn Host + 'a>> {
        Ok(match self {
            Self::OpenStack => Box::new(openstack::OpenStack::new(rig, prefix)),
            Self::Ec2 => Box::new(ec2::Instances::new(rig, prefix, layout)?),
        })
    }

    /// The roster says where its machines are.
    ///
    /// # Errors
    /// When the rig has no cloud of this kind.
    pub(super) fn place(self, roster: Roster, rig: &Rig) -> Result<Roster> {
        Ok(match self {
            Self::OpenStack => roster,
            Self::Ec2 => {
                let cluster = roster.name().to_owned();
                roster.on_ec2(&crate::rig::Ec2Facts { cluster, ..rig.ec2()? })
            }
        })
    }

    /// So many files' machines are made at the same time: a server of Nova costs more than a second of CPU.
    pub(super) const fn makes_at_once(self) -> usize {
        match self {
            Self::OpenStack => 1,
            Self::Ec2 => 4,
        }
    }

    /// Faults of readings and of calls can concern the file's own machines alone.
    pub(super) const fn scopes_faults(self) -> bool {
        matches!(self, Self::Ec2)
    }

    /// The rig can bring it about there.
    pub(super) const fn knows(self, fault: &Fault) -> bool {
        let both = matches!(
            fault,
            Fault::GroupLost { slips: false, .. }
                | Fault::Breaks(_, Trouble::KubeletHung | Trouble::Broken)
                | Fault::ShutOff(_)
                | Fault::ForeignDelete(_)
                | Fault::NodeDeletedByPerson(_)
                | Fault::ControllerDown(_)
                | Fault::Unmarked(_)
                | Fault::ServersUnlisted { .. }
                | Fault::CloudFails(ReadErrorKind::Throttled | ReadErrorKind::Unavailable, _)
                | Fault::NodesUnlisted(_)
                | Fault::ApiSilent(_)
                | Fault::Call(CallLie::Ignored | CallLie::Unanswered | CallLie::Fails { .. })
        );
        both || match self {
            Self::OpenStack => matches!(
                fault,
                Fault::SecondPort(_)
                    | Fault::PortSecurityOff(_)
                    | Fault::PairLost(_)
                    | Fault::DuplicateRoute(_)
                    | Fault::MissingRoute(_)
                    | Fault::RulesLost
                    | Fault::RulesWidened
                    | Fault::RouteBroken(_)
                    | Fault::Errored(_)
                    | Fault::StuckDeleting(_)
                    | Fault::AnotherProject(_)
                    | Fault::PortsUnlisted(_)
            ),
            Self::Ec2 => matches!(fault, Fault::HostImpaired(_) | Fault::GroupReplaces(_)),
        }
    }
}
