//! A running rig as its description tells it: machines and faults through its own command, both taken away at the end.

use std::collections::BTreeSet;
use std::io::Write;
use std::path::PathBuf;
use std::process::Command;
use std::time::{Duration, Instant};

use reveille_core::effect::Look;
use reveille_core::event::{Answer, CloudSnapshot};
use reveille_core::model::id::{CloudName, GroupId, InstanceId, RouterId};
use reveille_core::model::instance::{Instance, Mark, Port};
use reveille_core::model::network::{Route, SecurityGroup};
use reveille_core::model::roster::{GroupRef, Ownership};
use reveille_openstack::{CloudConfig, Environment, Interest, Project};
use serde_json::Value;

pub(crate) static ONE_AT_A_TIME: tokio::sync::Mutex<()> = tokio::sync::Mutex::const_new(());

pub(crate) struct Rig {
    description: Value,
    pub(crate) machines: Vec<String>,
    faults: Vec<String>,
}

impl Rig {
    /// The rig that `REVEILLE_RIG` describes, or a clear word that nothing was tested.
    pub(crate) fn find(test: &str) -> Option<Self> {
        let Some(path) = std::env::var_os("REVEILLE_RIG") else {
            // Past the harness, which swallows what a passing test prints.
            let _ = writeln!(std::io::stderr(), "{test}: NOT RUN, because REVEILLE_RIG names no rig.json");
            return None;
        };
        let text = std::fs::read_to_string(path).unwrap();
        let description = serde_json::from_str(&text).unwrap();
        Some(Self { description, machines: Vec::new(), faults: Vec::new() })
    }

    pub(crate) fn openstack(&self, key: &str) -> &str {
        self.description["openstack"][key].as_str().unwrap()
    }

    pub(crate) fn run(&self, arguments: &[&str]) -> String {
        let name = self.description["name"].as_str().unwrap();
        let output = Command::new(self.description["rig"].as_str().unwrap())
            .args(arguments)
            .args(["--name", name])
            .output()
            .unwrap();
        let text = String::from_utf8_lossy(&output.stdout).into_owned();
        assert!(output.status.success(), "{arguments:?}: {text}{}", String::from_utf8_lossy(&output.stderr));
        text
    }

    pub(crate) fn create(&mut self, names: &[&str]) {
        self.machines.extend(names.iter().map(|name| (*name).to_owned()));
        self.run(&[&["machine", "create"], names, &["--pool", "adapter"]].concat());
    }

    pub(crate) fn fault(&mut self, arguments: &[&str]) {
        self.faults.push(arguments.join(" "));
        self.run(&[&["fault"], arguments].concat());
    }

    pub(crate) fn lift(&self, arguments: &[&str]) {
        self.run(&[&["fault"], arguments, &["--off"]].concat());
    }

    pub(crate) async fn connect(&self) -> Project {
        self.connect_as("demo").await
    }

    pub(crate) async fn connect_as(&self, cloud: &str) -> Project {
        let config = CloudConfig {
            name: CloudName::from("os"),
            cloud: cloud.to_owned(),
            clouds_file: Some(PathBuf::from(self.openstack("cloudsFile"))),
        };
        Project::connect_in(&config, Environment::default()).await.unwrap()
    }

    /// What its machines carry.
    pub(crate) fn owned(&self) -> Ownership {
        Ownership::of_cluster(Mark::Tag(self.openstack("clusterTag").into()))
    }

    pub(crate) fn interest(&self) -> Interest {
        Interest {
            cluster_marks: BTreeSet::from([Mark::Tag(self.openstack("clusterTag").into())]),
            groups: BTreeSet::from([GroupRef::Name(self.openstack("securityGroupName").into())]),
            routers: BTreeSet::from([self.router()]),
        }
    }

    pub(crate) fn router(&self) -> RouterId {
        RouterId::from(self.openstack("router"))
    }

    pub(crate) fn group(&self) -> GroupId {
        GroupId::from(self.openstack("securityGroup"))
    }

    /// `10.8.0.N`, an address that the router accepts as a next hop.
    pub(crate) fn route(&self, third: u8, hop: u8) -> Route {
        let prefix = self.openstack("subnetCIDR").rsplit_once('.').unwrap().0;
        Route {
            destination: format!("198.18.{third}.0/24").parse().unwrap(),
            next_hop: format!("{prefix}.{hop}").parse().unwrap(),
        }
    }
}

impl Drop for Rig {
    fn drop(&mut self) {
        let name = self.description["name"].as_str().unwrap_or("").to_owned();
        let rig = self.description["rig"].as_str().unwrap_or("").to_owned();
        let run = |arguments: &[&str]| {
            let _ = Command::new(&rig).args(arguments).args(["--name", &name]).output();
        };
        if !self.faults.is_empty() {
            run(&["fault", "--clear"]);
        }
        if !self.machines.is_empty() {
            let machines: Vec<&str> = self.machines.iter().map(String::as_str).collect();
            run(&[&["machine", "delete"], machines.as_slice()].concat());
        }
    }
}

pub(crate) fn os() -> CloudName {
    CloudName::from("os")
}

pub(crate) fn named<'a>(snapshot: &'a CloudSnapshot, name: &str) -> &'a Instance {
    snapshot.instances.iter().find(|instance| instance.name.as_str() == name).unwrap()
}

pub(crate) async fn instance(project: &Project, id: &InstanceId) -> Option<Instance> {
    match project.look(&Look::Instance(os(), id.clone())).await.unwrap() {
        Answer::Instance(instance) => instance.map(|instance| (*instance).clone()),
        other => panic!("{other:?}"),
    }
}

pub(crate) async fn port(project: &Project, id: &InstanceId) -> Port {
    match project.look(&Look::Ports(os(), id.clone())).await.unwrap() {
        Answer::Ports(ports) => (*ports[0]).clone(),
        other => panic!("{other:?}"),
    }
}

pub(crate) async fn group(project: &Project, id: &GroupId) -> SecurityGroup {
    match project.look(&Look::Group(os(), id.clone())).await.unwrap() {
        Answer::Group(Some(group)) => (*group).clone(),
        other => panic!("{other:?}"),
    }
}

/// Asks until the instance is as wanted, for at most 20 s.
pub(crate) async fn until(
    project: &Project,
    id: &InstanceId,
    wanted: impl Fn(Option<&Instance>) -> bool,
) -> Option<Instance> {
    let end = Instant::now() + Duration::from_secs(20);
    loop {
        let now = instance(project, id).await;
        if wanted(now.as_ref()) {
            return now;
        }
        assert!(Instant::now() < end, "not within 20 s: {now:?}");
        tokio::time::sleep(Duration::from_millis(200)).await;
    }
}
