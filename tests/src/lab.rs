//! Everything that a scenario has at hand, and what is put back between two of them.
//!
//! A scenario makes its own machines, which carry its own cluster tag and are deleted after it, or uses one of two
//! shared crews that are left as they were found: making a server costs more than most scenarios. Each scenario has a
//! folder of its own for roster, state and log; it is kept when the scenario fails.

use std::collections::BTreeMap;
use std::fs;
use std::path::{Path, PathBuf};

use anyhow::{Context, Result, ensure};
use serde_json::{Value, json};

use crate::calls::Proxy;
use crate::cloud::{Cloud, text};
use crate::kube::Kube;
use crate::reveille::{Place, Reveille, Running};
use crate::rig::{Machine, Rig};
use crate::roster::Roster;
use crate::wait::{s, until};

/// Lines of the log that are shown when a scenario fails.
const LOG_LINES: usize = 40;

/// The lab.
pub struct Lab {
    /// The rig.
    pub rig: Rig,
    /// The program under test.
    pub reveille: Reveille,
    /// The project, read past the proxy.
    pub cloud: Cloud,
    /// The cloud's operator.
    pub operator: Cloud,
    /// The cluster, read past the proxy.
    pub kube: Kube,
    /// The fault proxy.
    pub proxy: Proxy,
    work: PathBuf,
    scenario: String,
    number: usize,
    place: Option<Place>,
    own: Vec<Machine>,
    own_nodes: Vec<String>,
    /// Nodes of instances of EC2, which forgets everything when it ends.
    instances: Vec<String>,
    rules: Vec<Value>,
    crews: BTreeMap<&'static str, Crew>,
}

/// Machines with their nodes that several scenarios use.
#[derive(Clone, Debug)]
pub struct Crew {
    /// The cluster that their tags name; a roster for them is `of_cluster` of it.
    pub cluster: &'static str,
    /// The machines, in the order of their names.
    pub machines: Vec<Machine>,
}

impl Lab {
    /// Brings the rig up and opens the eyes on it.
    ///
    /// # Errors
    /// When there is no rig.
    pub fn open(name: &str, reveille: Reveille, work: &Path) -> Result<Self> {
        let rig = Rig::up(name)?;
        let (cloud, operator) = (Cloud::new(&rig.facts.openstack), Cloud::operator(&rig.facts.openstack));
        let (kube, proxy) = (Kube::new(&rig.facts.kubernetes), Proxy::new(&rig.facts.control));
        kube.add_control_plane()?;
        let rules = cloud.rules(&rig.facts.openstack.security_group)?;
        Ok(Self {
            rig,
            reveille,
            cloud,
            operator,
            kube,
            proxy,
            work: work.to_owned(),
            scenario: String::new(),
            number: 0,
            place: None,
            own: Vec::new(),
            own_nodes: Vec::new(),
            instances: Vec::new(),
            rules,
            crews: BTreeMap::new(),
        })
    }

    /// Begins a scenario.
    pub fn begin(&mut self, scenario: &str) {
        scenario.clone_into(&mut self.scenario);
        self.number += 1;
        self.place = None;
    }

    /// Puts everything back after a scenario: faults, its machines and nodes; its folder when it went well.
    pub fn reset(&mut self, went_well: bool) {
        self.rig.try_run(&["fault", "--clear"]);
        let ids: Vec<&str> = self.own.iter().map(|machine| machine.id.as_str()).collect();
        if let Err(error) = self.cloud.delete_servers(&ids) {
            eprintln!("servers of {} may be left: {error:#}", self.scenario);
        }
        for name in &self.own_nodes {
            self.rig.try_run(&["node", "down", name, "--forget"]);
        }
        if !self.own_nodes.is_empty() {
            for part in ["occm", "awsccm", "ec2"] {
                self.rig.try_run(&["stop", part]);
            }
        }
        if !self.instances.is_empty() {
            self.rig.try_run(&["stop", "ec2"]);
        }
        let simulated = self.own.iter().map(|machine| machine.name.as_str());
        let others = self.own_nodes.iter().chain(&self.instances).map(String::as_str);
        let nodes: Vec<&str> = simulated.chain(others).collect();
        if let Err(error) = self.kube.delete_nodes(&nodes) {
            eprintln!("nodes of {} may be left: {error:#}", self.scenario);
        }
        if let Err(error) = self.kube.delete_leases() {
            eprintln!("Leases of {} may be left: {error:#}", self.scenario);
        }
        self.own.clear();
        self.own_nodes.clear();
        self.instances.clear();
        if let Err(error) = self.put_network_back() {
            eprintln!("the network may not be as it was before {}: {error:#}", self.scenario);
        }
        if went_well {
            let _ = fs::remove_dir_all(self.folder());
        }
    }

    /// The group's rules as they were at the beginning; no routes but those of shared machines.
    fn put_network_back(&self) -> Result<()> {
        let group = &self.rig.facts.openstack.security_group;
        let now = self.cloud.rules(group)?;
        for rule in now.iter().filter(|rule| !self.rules.iter().any(|known| same_rule(known, rule))) {
            self.cloud.drop_rule(&text(&rule["id"]))?;
        }
        for rule in self.rules.iter().filter(|rule| !now.iter().any(|there| same_rule(rule, there))) {
            self.cloud.add_rule(group, &allows(rule))?;
        }
        let addresses: Vec<&String> =
            self.crews.values().flat_map(|crew| &crew.machines).filter_map(|m| m.address.as_ref()).collect();
        let mut strange = self.cloud.routes()?;
        strange.retain(|(_, via)| !addresses.contains(&via));
        if strange.is_empty() { Ok(()) } else { self.cloud.change_routes(false, &strange) }
    }

    /// A number, because the controller's socket lies below it and a socket's path must be short.
    fn folder(&self) -> PathBuf {
        self.work.join(self.number.to_string())
    }

    /// Writes rosters and gives them one state folder. The first one's ledger is the scenario's.
    ///
    /// # Errors
    /// When a roster is not complete, or the disk is full.
    pub fn place(&mut self, rosters: &[&Roster]) -> Result<Place> {
        let folder = self.folder();
        fs::create_dir_all(&folder).context("cannot make the scenario's folder")?;
        let mut files = Vec::new();
        for roster in rosters {
            let file = folder.join(format!("{}.yaml", roster.name()));
            fs::write(&file, self.complete(roster).text()?).context("cannot write the roster")?;
            files.push(file);
        }
        let name = rosters.first().context("a place needs a roster")?.name().to_owned();
        let place = Place { rosters: files, state: folder.join("state"), name, log: folder.join("run.log") };
        self.place = Some(place.clone());
        Ok(place)
    }

    /// The places of the template that only the rig can fill.
    fn complete(&self, roster: &Roster) -> Roster {
        let (kubernetes, openstack) = (&self.rig.facts.kubernetes, &self.rig.facts.openstack);
        roster
            .clone()
            .or_set("kubeconfig", &kubernetes.proxy_kubeconfig.display().to_string())
            .or_set(
                "cloud",
                &format!("openstack: {{cloud: demo, cloudsFile: {}}}", openstack.clouds_file.display()),
            )
            .or_set("router", "")
    }

    /// `router: ID`, for rosters that carry pod routes.
    pub fn router_line(&self) -> String {
        format!("router: {}", self.rig.facts.openstack.router)
    }

    /// Starts the proxy's counts again from zero and starts `run`.
    ///
    /// # Errors
    /// When it does not start.
    pub fn start(&self, place: &Place) -> Result<Running> {
        self.proxy.reset_calls()?;
        self.reveille.run(place, &[])
    }

    /// Starts `run` and waits until every source was read and the status knows this many machines.
    ///
    /// # Errors
    /// When it does not come so far in time.
    pub fn start_and_see(&self, place: &Place, machines: u32) -> Result<Running> {
        let running = self.start(place)?;
        self.sees(place, machines)?;
        Ok(running)
    }

    /// Waits until the running controller has listed everything, by its log, and the status knows this many machines.
    ///
    /// # Errors
    /// When it does not come so far in time.
    pub fn sees(&self, place: &Place, machines: u32) -> Result<()> {
        self.sees_listings(place)?;
        until(&format!("the status to know {machines} machines"), s(30), || {
            let (_, status) = self.reveille.status(place)?;
            ensure!(status.summary.machines == machines, "the status has {:?}", status.summary);
            Ok(())
        })
    }

    /// Waits until the running controller has logged in and listed.
    ///
    /// # Errors
    /// When it does not come so far in time.
    pub fn sees_listings(&self, place: &Place) -> Result<()> {
        until("reveille to have logged in", s(30), || {
            let log = fs::read_to_string(&place.log).unwrap_or_default();
            ensure!(log.contains("logged in"), "no login in the log yet");
            Ok(())
        })?;
        until("reveille to have listed", s(60), || {
            let listed = self.proxy.calls()?.of("nova", "GET /v2.1/servers/detail");
            ensure!(listed >= 1, "no listing yet");
            Ok(())
        })
    }

    /// Boots machines of this scenario: they are deleted after it.
    ///
    /// # Errors
    /// When one does not come up.
    pub fn machines(
        &mut self,
        roster: &Roster,
        pool: &str,
        names: &[&str],
        arguments: &[&str],
    ) -> Result<Vec<Machine>> {
        let made = self.rig.machines(names, &roster.tags(pool), arguments)?;
        self.own.extend(made.clone());
        Ok(made)
    }

    /// Takes machines that were made past the lab as this scenario's own.
    pub fn adopt(&mut self, machines: Vec<Machine>) {
        for machine in machines {
            if let Some(node) = machine.node {
                self.instances.push(node);
            } else if !self.own.iter().any(|own| own.id == machine.id) {
                self.own.push(machine);
            }
        }
    }

    /// Boots machines and gives them their nodes, without routes.
    ///
    /// # Errors
    /// When one does not come up.
    pub fn machines_with_nodes(
        &mut self,
        roster: &Roster,
        pool: &str,
        names: &[&str],
    ) -> Result<Vec<Machine>> {
        let made = self.machines(roster, pool, names, &[])?;
        self.rig.nodes(names, &["--no-route"])?;
        Ok(made)
    }

    /// A real node for the machine of that name: containerd, kubelet, a real `kubeadm join`. Taken down after the scenario.
    ///
    /// # Errors
    /// [`NotRun`] where no real node can run; else when the join fails.
    pub fn real_node(&mut self, name: &str) -> Result<()> {
        self.own_nodes.push(name.to_owned());
        self.rig.real_node(&["node", "up", name])
    }

    /// Real nodes of these names will be brought up, each with one thing wrong, and are taken down after the scenario.
    pub fn will_spoil(&mut self, names: impl IntoIterator<Item = String>) {
        self.own_nodes.extend(names);
    }

    /// Three machines with nodes, routes and everything: `crew-1` to `crew-3`, pool `workers`.
    ///
    /// # Errors
    /// When they do not come up.
    pub fn crew(&mut self) -> Result<Crew> {
        self.shared("crew", 3, &[])
    }

    /// Twenty machines with nodes and without routes: `fleet-1` to `fleet-20`, pool `workers`.
    ///
    /// # Errors
    /// When they do not come up.
    pub fn fleet(&mut self) -> Result<Crew> {
        self.shared("fleet", 20, &["--no-route"])
    }

    fn shared(&mut self, cluster: &'static str, size: usize, with: &[&str]) -> Result<Crew> {
        if let Some(crew) = self.crews.get(cluster) {
            let crew = crew.clone();
            match self.is_well(&crew, !with.contains(&"--no-route")) {
                Ok(()) => return Ok(crew),
                Err(why) => eprintln!("the machines of {cluster} are deleted and made again: {why:#}"),
            }
            let ids: Vec<&str> = crew.machines.iter().map(|machine| machine.id.as_str()).collect();
            let names: Vec<&str> = crew.machines.iter().map(|machine| machine.name.as_str()).collect();
            self.cloud.delete_servers(&ids)?;
            self.kube.delete_nodes(&names)?;
            self.crews.remove(cluster);
            until("the old machines to be gone", s(60), || {
                let left = self.cloud.servers(&format!("k8s-cluster={cluster}"))?.len();
                ensure!(left == 0, "{left} are left");
                Ok(())
            })?;
        }
        let roster = Roster::new(cluster);
        let names: Vec<String> = (1..=size).map(|n| format!("{cluster}-{n}")).collect();
        let names: Vec<&str> = names.iter().map(String::as_str).collect();
        let machines = self.rig.machines(&names, &roster.tags("workers"), &[])?;
        self.rig.nodes(&names, with)?;
        let crew = Crew { cluster, machines };
        self.crews.insert(cluster, crew.clone());
        Ok(crew)
    }

    /// Its machines run, in their group, with Ready nodes and routes.
    fn is_well(&self, crew: &Crew, with_routes: bool) -> Result<()> {
        let group = &self.rig.facts.openstack.security_group;
        let servers = until("machines of the scenario before to be gone", s(30), || {
            let servers = self.cloud.servers(&format!("k8s-cluster={}", crew.cluster))?;
            ensure!(servers.len() <= crew.machines.len(), "there are {} of them", servers.len());
            Ok(servers)
        })?;
        let routes = self.cloud.routes()?;
        for machine in &crew.machines {
            let active =
                servers.iter().any(|server| server["id"] == *machine.id && server["status"] == "ACTIVE");
            ensure!(active, "{} does not run", machine.name);
            let groups = self.cloud.groups_of(&machine.id)?;
            ensure!(groups == [vec![group.clone()]], "{} has the groups {groups:?}", machine.name);
            until("its node to be Ready", s(30), || {
                ensure!(self.kube.is_ready(&machine.name)?, "{} is not", machine.name);
                Ok(())
            })?;
            let range = self.kube.pod_range(&machine.name)?;
            let via = machine.address.clone().unwrap_or_default();
            ensure!(!with_routes || routes.contains(&(range, via)), "{} has no route", machine.name);
        }
        Ok(())
    }

    /// What a person would want to see of a scenario that failed.
    pub fn aftermath(&self) -> String {
        let mut told = String::new();
        if let Some(place) = &self.place {
            let log = fs::read_to_string(&place.log).unwrap_or_default();
            let lines: Vec<&str> = log.lines().collect();
            for line in lines.iter().skip(lines.len().saturating_sub(LOG_LINES)) {
                told += &format!("    log | {line}\n");
            }
            let ledger = place.ledger().map_or_else(|error| format!("{error:#}"), |ledger| ledger.told());
            told += &format!("    ledger: {ledger}\n");
        }
        let faults = self.rig.active_faults().unwrap_or_else(|| json!("not known"));
        told += &format!("    faults: {faults}\n");
        if let Ok(calls) = self.proxy.calls() {
            told += &format!("    calls {calls}\n");
        }
        told + &format!("    kept in {}\n", self.folder().display())
    }
}

/// What a rule allows, without its identity.
fn allows(rule: &Value) -> Value {
    let fields =
        ["direction", "ethertype", "protocol", "port_range_min", "port_range_max", "remote_ip_prefix"];
    fields.into_iter().map(|field| (field.to_owned(), rule[field].clone())).collect()
}

fn same_rule(one: &Value, other: &Value) -> bool {
    allows(one) == allows(other)
}

impl Crew {
    /// A roster for its machines.
    pub fn roster(&self, name: &str) -> Roster {
        Roster::new(name).of_cluster(self.cluster)
    }
}
