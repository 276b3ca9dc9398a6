//! The rig as the scenarios use it: its commands, and the facts that it tells about itself.
//!
//! One rig per lane, named after process id and lane, so that runs beside each other do not meet. What it needs (programs,
//! root, disk) is its own business: when it does not come up, nothing can be run, and that is not a failure of Reveille.

use std::path::{Path, PathBuf};
use std::process::Command;
use std::time::Duration;

use anyhow::{Context, Result, ensure};
use serde::Deserialize;
use serde_json::Value;

use crate::NotRun;
use crate::process::{self, Ended};

/// The first start on a machine builds everything.
const UP_WITHIN: Duration = Duration::from_secs(1800);
/// Any other command of the rig.
const COMMAND_WITHIN: Duration = Duration::from_secs(180);

/// A running rig. It ends with its owner.
pub struct Rig {
    program: PathBuf,
    name: String,
    state: PathBuf,
    /// What it tells about itself.
    pub facts: Facts,
}

/// `rig.json`, as far as it is used here.
#[derive(Clone, Debug, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct Facts {
    /// Where the fault proxy is controlled.
    pub control: String,
    /// The cluster.
    pub kubernetes: KubernetesFacts,
    /// The cloud.
    pub openstack: OpenStackFacts,
}

/// The cluster of a rig.
#[derive(Clone, Debug, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct KubernetesFacts {
    /// Straight to the API server.
    pub kubeconfig: PathBuf,
    /// Through the fault proxy.
    pub proxy_kubeconfig: PathBuf,
    /// Every write, as the API server logs it.
    pub audit_log: PathBuf,
    /// The program.
    pub kubectl: PathBuf,
}

/// The cloud of a rig.
#[derive(Clone, Debug, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct OpenStackFacts {
    /// The project of the machines, by its id.
    #[serde(rename = "projectID")]
    pub project_id: String,
    /// `clouds.yaml`; its entry `demo` goes through the fault proxy.
    pub clouds_file: PathBuf,
    /// The network of the machines.
    pub network: String,
    /// The router that carries pod routes.
    pub router: String,
    /// The id of the group `k8s-nodes`.
    pub security_group: String,
    /// The services themselves.
    pub direct_endpoints: Endpoints,
}

/// Where the services are.
#[derive(Clone, Debug, Deserialize)]
pub struct Endpoints {
    /// With `/v3`.
    pub keystone: String,
    /// With `/v2.1`.
    pub nova: String,
    /// Without a version.
    pub neutron: String,
}

/// A machine as `rig machine` and `rig instance` tell it.
#[derive(Clone, Debug, Deserialize)]
pub struct Machine {
    /// Its name.
    pub name: String,
    /// Its cloud's id.
    pub id: String,
    /// Its cloud's word for its state.
    pub status: String,
    /// Its address on the network of the machines.
    pub address: Option<String>,
    /// What its node is called, where that is another name.
    #[serde(default)]
    pub node: Option<String>,
}

impl Machine {
    /// What its node is called.
    pub fn node(&self) -> &str {
        self.node.as_deref().unwrap_or(&self.name)
    }
}

/// The EC2 of a rig, once the part runs.
#[derive(Clone, Debug, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct Ec2Facts {
    /// Its region.
    pub region: String,
    /// The id in the tag of the cluster's instances.
    pub cluster: String,
    /// Through the fault proxy.
    pub endpoint: String,
    /// The server itself.
    pub direct_endpoint: String,
    /// The group that an interface gets which is given none.
    pub default_group: String,
    /// The group of the nodes, by its id.
    pub security_group: String,
    /// The route table of pod ranges.
    pub route_table: String,
}

/// An instance as `rig instance` tells it.
#[derive(Clone, Debug, Deserialize)]
pub struct Ec2Instance {
    /// Its Name tag.
    pub name: String,
    /// EC2's id.
    pub id: String,
    /// EC2's word for its state.
    pub state: String,
    /// What its node is called: its private DNS name.
    pub node: String,
    /// Its first interface.
    pub interface: Option<String>,
    /// The groups of that interface, by their ids.
    pub groups: Vec<String>,
}

impl Rig {
    /// The rig's program, below the project's folder.
    pub fn program() -> PathBuf {
        Path::new(env!("CARGO_MANIFEST_DIR")).join("../rig/rig")
    }

    /// Brings a rig up.
    ///
    /// # Errors
    /// [`NotRun`], with what the rig said, when it does not come up.
    pub fn up(name: &str) -> Result<Self> {
        let program = Self::program();
        let mut command = Command::new(&program);
        command.args(["up", "kubernetes", "openstack", "kwok", "--node-grace", "20s", "--name", name]);
        let ended = process::run(command, None, UP_WITHIN).map_err(|error| NotRun(format!("{error:#}")))?;
        if ended.code != Some(0) {
            return Err(NotRun(format!("no rig: {}", ended.stderr.trim())).into());
        }
        let env = command_of(&program, name, &["env"], None)?.stdout;
        let state = env.lines().find_map(|line| line.strip_prefix("export RIG_STATE="));
        let state = PathBuf::from(state.context("rig env names no RIG_STATE")?);
        let text = std::fs::read(state.join("rig.json")).context("cannot read rig.json")?;
        let facts = serde_json::from_slice(&text).context("rig.json is not as it was expected")?;
        Ok(Self { program, name: name.to_owned(), state, facts })
    }

    /// Takes a rig down, whether it is up or not. Needs no rig in hand, so that an interrupted run can do it.
    pub fn take_down(name: &str) {
        if let Err(error) = command_of(&Self::program(), name, &["down"], None) {
            eprintln!("the rig {name} may not be down: {error:#}");
        }
    }

    /// Launches instances of these names. The part `ec2` has to run.
    ///
    /// # Errors
    /// They are not launched.
    pub fn instances(&self, names: &[&str], arguments: &[&str]) -> Result<Vec<Ec2Instance>> {
        let words = [&["instance", "create"], names, arguments, &["--json"]].concat();
        serde_json::from_str(&self.run(&words)?).context("rig instance says no JSON")
    }

    /// All instances that EC2 tells of.
    ///
    /// # Errors
    /// It does not answer.
    pub fn instance_list(&self) -> Result<Vec<Ec2Instance>> {
        serde_json::from_str(&self.run(&["instance", "list", "--json"])?).context("rig instance says no JSON")
    }

    /// What the rig tells of its EC2. The part `ec2` has to run.
    ///
    /// # Errors
    /// It tells nothing of it.
    pub fn ec2(&self) -> Result<Ec2Facts> {
        let text = std::fs::read(self.state.join("rig.json")).context("cannot read rig.json")?;
        let mut facts: Value = serde_json::from_slice(&text).context("rig.json is no JSON")?;
        serde_json::from_value(facts["ec2"].take()).context("rig.json tells of no EC2")
    }

    /// Runs a command of the rig and gives what it printed.
    ///
    /// # Errors
    /// When it ends with another code than 0.
    pub fn run(&self, arguments: &[&str]) -> Result<String> {
        Ok(command_of(&self.program, &self.name, arguments, None)?.stdout)
    }

    /// Where a real node's programs write what they say.
    pub fn node_log(&self, node: &str) -> PathBuf {
        self.state.join("nodes").join(node).join("log")
    }

    /// Everything of a real node: its configuration, its programs' logs.
    pub fn node_folder(&self, node: &str) -> PathBuf {
        self.state.join("nodes").join(node)
    }

    /// Runs a program inside a real node, to its end, whatever its exit code.
    ///
    /// # Errors
    /// When it does not end in time.
    pub fn in_node(&self, node: &str, arguments: &[&str]) -> Result<Ended> {
        let mut command = Command::new(&self.program);
        command.args(["node", "exec", "--name", &self.name, node]).args(arguments);
        process::run(command, None, COMMAND_WITHIN)
    }

    /// A command that brings up a real node.
    ///
    /// # Errors
    /// [`NotRun`] when the machine allows none.
    pub fn real_node(&self, arguments: &[&str]) -> Result<()> {
        self.run(arguments).map(drop).map_err(|error| {
            let told = format!("{error:#}");
            let impossible =
                ["needs root", "namespaces", "containerd is"].iter().any(|sign| told.contains(sign));
            if impossible { NotRun(told).into() } else { error }
        })
    }

    /// Brings up a real node with one thing wrong and lets its join run into it; gives the folder of its logs.
    ///
    /// # Errors
    /// [`NotRun`] when the machine allows no real nodes.
    pub fn spoiled_node(&self, name: &str, spoil: &str) -> Result<PathBuf> {
        self.real_node(&["node", "up", name, "--spoil", spoil])?;
        Ok(self.node_log(name))
    }

    /// A command whose outcome does not matter, or is a hindrance at most.
    pub fn try_run(&self, arguments: &[&str]) {
        let _ = command_of(&self.program, &self.name, arguments, None);
    }

    /// Sets a fault: its name and arguments.
    ///
    /// # Errors
    /// When the rig refuses it.
    pub fn fault(&self, fault: &[&str]) -> Result<()> {
        self.run(&[&["fault"], fault].concat()).map(drop)
    }

    /// Takes a fault back.
    ///
    /// # Errors
    /// When the rig refuses that.
    pub fn lift(&self, fault: &[&str]) -> Result<()> {
        self.run(&[&["fault"], fault, &["--off"]].concat()).map(drop)
    }

    /// Starts the real cloud controller with another project's credentials: no machine of this project exists for it.
    ///
    /// # Errors
    /// When it does not start.
    pub fn start_stranger_controller(&self) -> Result<()> {
        let mut command = Command::new(&self.program);
        command.args(["start", "occm", "--name", &self.name]).env("RIG_OCCM_PROJECT", "other");
        let ended = process::run(command, None, COMMAND_WITHIN)?;
        ensure!(ended.code == Some(0), "the cloud controller does not start: {}", ended.stderr.trim());
        Ok(())
    }

    /// Sets what a machine's console says.
    ///
    /// # Errors
    /// When the rig refuses it.
    pub fn console(&self, machine: &str, text: &str) -> Result<()> {
        command_of(&self.program, &self.name, &["fault", "console", machine, "-"], Some(text)).map(drop)
    }

    /// Boots machines that carry these tags, in the group `k8s-nodes` unless `arguments` say otherwise, and waits until
    /// each runs or is in ERROR.
    ///
    /// # Errors
    /// When one does not get so far.
    pub fn machines(&self, names: &[&str], tags: &[String], arguments: &[&str]) -> Result<Vec<Machine>> {
        let mut words = vec!["machine", "create", "--json", "--no-tags"];
        for tag in tags {
            words.extend(["--tag", tag]);
        }
        words.extend(arguments);
        words.extend(names);
        serde_json::from_str(&self.run(&words)?).context("rig machine create --json")
    }

    /// Gives machines their simulated nodes.
    ///
    /// # Errors
    /// When one does not become Ready.
    pub fn nodes(&self, names: &[&str], arguments: &[&str]) -> Result<()> {
        self.run(&[&["machine", "node"], arguments, names].concat()).map(drop)
    }

    /// What is broken now, as JSON.
    pub fn active_faults(&self) -> Option<Value> {
        serde_json::from_str(&self.run(&["fault", "--active"]).ok()?).ok()
    }

    /// The folder with its state and logs.
    pub fn state(&self) -> &Path {
        &self.state
    }

    /// Its name.
    pub fn name(&self) -> &str {
        &self.name
    }
}

impl Drop for Rig {
    fn drop(&mut self) {
        Self::take_down(&self.name);
    }
}

fn command_of(program: &Path, name: &str, arguments: &[&str], input: Option<&str>) -> Result<Ended> {
    let mut command = Command::new(program);
    command.args(arguments).args(["--name", name]);
    let ended = process::run(command, input, COMMAND_WITHIN)?;
    ensure!(
        ended.code == Some(0),
        "rig {} ended with {:?}: {}",
        arguments.join(" "),
        ended.code,
        ended.stderr.trim()
    );
    Ok(ended)
}
