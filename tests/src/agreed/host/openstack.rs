//! Nova and Neutron of the rig. Most faults are the rig's own, by name; the others are requests of a member of the project.

use std::collections::BTreeMap;

use anyhow::{Context, Result, bail, ensure};
use reveille_core::effect::ReadErrorKind;
use reveille_sim::world::fault::{CallLie, Fault};
use serde_json::{Value, json};

use super::{Boots, Host, Port, Power};
use crate::cloud::{Cloud, Service, text};
use crate::rig::{Machine, Rig};
use crate::roster::Roster;

/// The status by which a server is denied or not told, when it is asked for by its id.
const DENIED: u64 = 404;
const FAILS: u64 = 503;

pub(super) struct OpenStack<'a> {
    rig: &'a Rig,
    cloud: Cloud,
    tag: String,
}

impl<'a> OpenStack<'a> {
    pub(super) fn new(rig: &'a Rig, prefix: &str) -> Self {
        Self { rig, cloud: Cloud::new(&rig.facts.openstack), tag: Roster::new(prefix).cluster_tag() }
    }

    fn each_port(&self, machine: &Machine, fields: &Value) -> Result<()> {
        for port in self.cloud.ports(&machine.id)? {
            self.cloud.set_port(&text(&port["id"]), fields)?;
        }
        Ok(())
    }

    /// One rule that allows everything takes the place of those that are there.
    fn widen_rules(&self) -> Result<()> {
        let group = &self.rig.facts.openstack.security_group;
        let before = self.cloud.rules(group)?;
        self.cloud.add_rule(group, &json!({"remote_ip_prefix": "0.0.0.0/0"}))?;
        let ingress = before.iter().filter(|rule| rule["direction"] == "ingress");
        ingress.map(|rule| text(&rule["id"])).try_for_each(|id| self.cloud.drop_rule(&id))
    }

    fn act(&self, id: &str, action: &str) -> Result<()> {
        let path = format!("/servers/{id}/action");
        let answer = self.cloud.ask("POST", Service::Nova, &path, Some(&json!({action: null})))?;
        ensure!(answer.status < 300, "{action}: {} {}", answer.status, answer.body);
        Ok(())
    }

    fn unmark(&self, machine: &Machine, pool: &str) -> Result<()> {
        let path = format!("/servers/{}/tags/k8s-pool%3D{pool}", machine.id);
        let answer = self.cloud.ask("DELETE", Service::Nova, &path, None).context("taking the mark off")?;
        ensure!(answer.status < 300, "the mark stays: {} {}", answer.status, answer.body);
        Ok(())
    }
}

impl Host for OpenStack<'_> {
    fn launch(&self, cluster: &str, pool: &str, names: &[&str], bare: bool) -> Result<Vec<Machine>> {
        let arguments: &[&str] = if bare { &["--no-group"] } else { &[] };
        self.rig.machines(names, &Roster::new(cluster).tags(pool), arguments)
    }

    fn nodes(&self, names: &[&str], arguments: &[&str]) -> Result<()> {
        self.rig.nodes(names, arguments)
    }

    fn alive(&self) -> Result<BTreeMap<String, Power>> {
        let mut servers = self.cloud.servers(&self.tag)?;
        servers.retain(|server| server["OS-EXT-STS:task_state"] != "deleting");
        let power = |server: &Value| match server["status"].as_str() {
            Some("ACTIVE") => Power::Runs,
            Some("SHUTOFF") => Power::Off,
            _ => Power::Between,
        };
        Ok(servers.iter().map(|server| (text(&server["id"]), power(server))).collect())
    }

    fn made_by_itself(&self, _: &[&str]) -> Result<Vec<(String, Machine)>> {
        Ok(Vec::new())
    }

    fn boots(&self, id: &str) -> Result<Boots> {
        Ok(Boots { reboots: self.cloud.actions(id, "reboot")?, starts: 0 })
    }

    fn ports(&self, id: &str) -> Result<Vec<Port>> {
        let group = self.rig.facts.openstack.security_group.as_str();
        // Packets pass where a port carries the group, or where no group filters the port.
        let passes = |port: &Value| {
            let carries =
                port["security_groups"].as_array().is_some_and(|own| own.iter().any(|id| *id == *group));
            carries || port["port_security_enabled"] == false
        };
        let ports = self.cloud.ports(id)?;
        Ok(ports.iter().map(|port| Port { id: text(&port["id"]), passes: passes(port) }).collect())
    }

    fn strike(&self, machine: &Machine, pool: &str, fault: &Fault) -> Result<()> {
        let name = machine.name.as_str();
        match fault {
            Fault::GroupLost { .. } => self.rig.fault(&["group-off", name]),
            Fault::SecondPort(_) => self.rig.fault(&["second-port-without-group", name]),
            Fault::PortSecurityOff(_) => {
                self.each_port(machine, &json!({"security_groups": [], "port_security_enabled": false}))
            }
            Fault::PairLost(_) => self.each_port(machine, &json!({"allowed_address_pairs": []})),
            Fault::DuplicateRoute(_) => self.rig.fault(&["duplicate-route", name]),
            Fault::MissingRoute(_) => self.rig.fault(&["missing-route", name]),
            Fault::RulesLost => self.rig.fault(&["rule-off"]),
            Fault::RulesWidened => self.widen_rules(),
            Fault::Errored(_) => {
                self.rig.fault(&["errored", name, "Live migration failed: the host is down."])
            }
            Fault::ShutOff(_) => self.act(&machine.id, "os-stop"),
            Fault::StuckDeleting(_) => self.rig.fault(&["stuck-deleting", name]),
            Fault::ForeignDelete(_) => self.rig.run(&["machine", "delete", "--no-wait", name]).map(drop),
            Fault::Unmarked(_) => self.unmark(machine, pool),
            other => bail!("the rig's OpenStack cannot bring about {}", other.name()),
        }
    }

    fn console(&self, machine: &Machine, text: &str) -> Result<()> {
        self.rig.console(&machine.name, text)
    }

    fn deceptions(&self, fault: &Fault) -> Vec<(&'static str, Value)> {
        match fault {
            // Neutron, whose ports they are, knows nothing of it.
            Fault::ServersUnlisted { denies, .. } => {
                vec![("nova-empty-list", json!({"byId": if *denies { DENIED } else { FAILS }}))]
            }
            Fault::AnotherProject(_) => {
                vec![("nova-empty-list", json!({"byId": DENIED})), ("neutron-elsewhere", json!({}))]
            }
            Fault::PortsUnlisted(_) => vec![("neutron-empty-list", json!({}))],
            Fault::CloudFails(ReadErrorKind::Throttled, _) => {
                vec![("nova-429", json!({"retryAfter": 20})), ("neutron-429", json!({"retryAfter": 20}))]
            }
            Fault::CloudFails(..) => vec![("nova-500", json!({})), ("neutron-500", json!({}))],
            _ => Vec::new(),
        }
    }

    fn lie(&self, lie: CallLie) -> &'static str {
        match lie {
            CallLie::Ignored => "neutron-port-put-lost",
            CallLie::Unanswered => "neutron-timeout-after-effect",
            _ => "neutron-write-429",
        }
    }

    fn held_up(&self, before: bool) -> &'static [&'static str] {
        if before {
            &["neutron-write-slow", "nova-write-slow"]
        } else {
            &["neutron-timeout-after-effect", "nova-timeout-after-effect"]
        }
    }

    fn about(&self) -> Result<Option<Vec<String>>> {
        Ok(None)
    }
}
