//! The rig's EC2-compatible API, with Auto Scaling.
//!
//! Each file has a cluster of its own in the same account, and faults of the proxy that concern requests for its machines alone,
//! so that all files can be played at the same time. Where this API is not like EC2 stands in a table of
//! `docs/internals/agreement.md`.

use std::cell::RefCell;
use std::collections::BTreeMap;
use std::time::{Duration, Instant};

use anyhow::{Context, Result, bail};
use reveille_core::effect::ReadErrorKind;
use reveille_sim::world::fault::{CallLie, Fault};
use reveille_sim::world::layout::Layout;
use serde_json::{Value, json};

use super::{Boots, Host, Port, Power};
use crate::ec2::{Ec2, Instance};
use crate::rig::{Machine, Rig};

/// A listing is read once for all questions of a round.
const LISTED_FOR: Duration = Duration::from_millis(500);
/// The status by which an instance is denied or not told, when it is asked for by its id.
const DENIED: u64 = 404;
const FAILS: u64 = 503;

pub(super) struct Instances<'a> {
    rig: &'a Rig,
    ec2: Ec2,
    prefix: String,
    /// Pools that a group keeps.
    kept: Vec<String>,
    listed: RefCell<Option<(Instant, Vec<Instance>)>>,
}

impl<'a> Instances<'a> {
    pub(super) fn new(rig: &'a Rig, prefix: &str, layout: &Layout) -> Result<Self> {
        let kept = layout.pools.iter().filter(|pool| pool.hosting.is_some_and(|hosting| hosting.group));
        Ok(Self {
            rig,
            ec2: Ec2::new(&rig.ec2()?, rig.state()),
            prefix: prefix.to_owned(),
            kept: kept.map(|pool| pool.name.to_string()).collect(),
            listed: RefCell::new(None),
        })
    }

    fn listing(&self) -> Result<Vec<Instance>> {
        let mut listed = self.listed.borrow_mut();
        if let Some((_, instances)) = listed.as_ref().filter(|(at, _)| at.elapsed() < LISTED_FOR) {
            return Ok(instances.clone());
        }
        let instances = self.ec2.instances(&self.prefix)?;
        *listed = Some((Instant::now(), instances.clone()));
        Ok(instances)
    }

    fn interface(&self, machine: &Machine) -> Result<String> {
        let all = self.listing()?;
        let own = all.iter().find(|one| one.instance_id == machine.id).context("EC2 does not list it")?;
        let first = own.interfaces().first().context("it has no interface")?;
        Ok(first.network_interface_id.clone())
    }
}

fn is_leaving(instance: &Instance) -> bool {
    matches!(instance.state(), "shutting-down" | "terminated")
}

impl Host for Instances<'_> {
    fn launch(&self, cluster: &str, pool: &str, names: &[&str], bare: bool) -> Result<Vec<Machine>> {
        let group = format!("{cluster}-asg-{pool}");
        let mut arguments = vec!["--cluster", cluster, "--pool", pool];
        if self.kept.iter().any(|kept| kept == pool) {
            arguments.extend(["--group", &group]);
        }
        let words = [&["instance", "create", "--json"], names, &arguments].concat();
        let made: Vec<Machine> =
            serde_json::from_str(&self.rig.run(&words)?).context("rig instance says no JSON")?;
        if bare {
            self.rig.run(&[&["instance", "ungroup"], names].concat())?;
        }
        Ok(made)
    }

    fn nodes(&self, names: &[&str], arguments: &[&str]) -> Result<()> {
        self.rig.run(&[&["instance", "node"], arguments, names].concat()).map(drop)
    }

    fn alive(&self) -> Result<BTreeMap<String, Power>> {
        let power = |instance: &Instance| match instance.state() {
            "running" => Power::Runs,
            "stopped" => Power::Off,
            _ => Power::Between,
        };
        let mut all = self.listing()?;
        all.retain(|instance| !is_leaving(instance));
        Ok(all.iter().map(|instance| (instance.instance_id.clone(), power(instance))).collect())
    }

    fn made_by_itself(&self, known: &[&str]) -> Result<Vec<(String, Machine)>> {
        let all = self.listing()?;
        let new = all.iter().filter(|one| !is_leaving(one) && !known.contains(&one.instance_id.as_str()));
        let machine = |one: &Instance| Machine {
            name: one.tag("Name").unwrap_or(&one.instance_id).to_owned(),
            id: one.instance_id.clone(),
            status: one.state().to_owned(),
            address: None,
            node: Some(one.private_dns_name.clone()),
        };
        Ok(new.filter_map(|one| Some((one.tag("k8s-pool")?.to_owned(), machine(one)))).collect())
    }

    fn boots(&self, id: &str) -> Result<Boots> {
        Ok(Boots { reboots: self.ec2.happened(id, "reboot")?, starts: self.ec2.happened(id, "start")? })
    }

    fn ports(&self, id: &str) -> Result<Vec<Port>> {
        let group = &self.ec2.facts().security_group;
        let all = self.listing()?;
        let own = all.iter().filter(|one| one.instance_id == id).flat_map(Instance::interfaces);
        let port = own.map(|one| Port { id: one.network_interface_id.clone(), passes: one.carries(group) });
        Ok(port.collect())
    }

    fn strike(&self, machine: &Machine, pool: &str, fault: &Fault) -> Result<()> {
        let id = machine.id.as_str();
        let done = match fault {
            Fault::GroupLost { .. } => {
                // EC2 wants a group on each interface: the VPC's own takes its place.
                let interface = self.interface(machine)?;
                let group = &self.ec2.facts().default_group;
                let parameters = [("NetworkInterfaceId", interface.as_str()), ("SecurityGroupId.1", group)];
                self.ec2.ask("ModifyNetworkInterfaceAttribute", &parameters)
            }
            Fault::ShutOff(_) => self.ec2.ask("StopInstances", &[("InstanceId.1", id)]),
            Fault::ForeignDelete(_) => self.ec2.ask("TerminateInstances", &[("InstanceId.1", id)]),
            Fault::GroupReplaces(_) => self.ec2.ask_scaling(
                "TerminateInstanceInAutoScalingGroup",
                &[("InstanceId", id), ("ShouldDecrementDesiredCapacity", "false")],
            ),
            Fault::Unmarked(_) => {
                let tag = [("ResourceId.1", id), ("Tag.1.Key", "k8s-pool"), ("Tag.1.Value", pool)];
                self.ec2.ask("DeleteTags", &tag)
            }
            // Its guest falls silent; what EC2 finds of that is told by the proxy.
            Fault::HostImpaired(_) => return Ok(()),
            other => bail!("the rig's EC2 cannot bring about {}", other.name()),
        };
        *self.listed.borrow_mut() = None;
        done.map(drop)
    }

    fn console(&self, machine: &Machine, text: &str) -> Result<()> {
        let folder = self.rig.state().join("ec2-consoles");
        std::fs::create_dir_all(&folder).context("the folder of consoles")?;
        std::fs::write(folder.join(&machine.id), text).context("the console")
    }

    fn deceptions(&self, fault: &Fault) -> Vec<(&'static str, Value)> {
        match fault {
            Fault::ServersUnlisted { denies, .. } => {
                vec![("ec2-empty-list", json!({"byId": if *denies { DENIED } else { FAILS }}))]
            }
            Fault::CloudFails(ReadErrorKind::Throttled, _) => vec![("ec2-throttle", json!({}))],
            Fault::CloudFails(..) => vec![("ec2-500", json!({}))],
            Fault::HostImpaired(_) => vec![("ec2-check-impaired", json!({}))],
            _ => Vec::new(),
        }
    }

    fn lie(&self, lie: CallLie) -> &'static str {
        match lie {
            CallLie::Ignored => "ec2-write-lost",
            CallLie::Unanswered => "ec2-timeout-after-effect",
            _ => "ec2-write-throttle",
        }
    }

    fn held_up(&self, before: bool) -> &'static [&'static str] {
        if before { &["ec2-write-slow"] } else { &["ec2-timeout-after-effect"] }
    }

    fn about(&self) -> Result<Option<Vec<String>>> {
        let mut about = vec![format!("kubernetes.io/cluster/{}", self.prefix)];
        for instance in self.listing()? {
            about.extend(instance.interfaces().iter().map(|own| own.network_interface_id.clone()));
            about.push(instance.instance_id);
        }
        Ok(Some(about))
    }
}
