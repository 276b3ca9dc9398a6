//! A machine that holds etcd is taken out: its member of a real etcd before its Node, while every other member is well.
//!
//! Three members with certificates on both sides, called as RKE calls them; the rig's own authority signed for them. What is so
//! is asked of etcd by curl, past the program.

use std::net::TcpListener;
use std::path::PathBuf;
use std::process::{Command, Stdio};

use anyhow::{Context, Result, ensure};
use reveille_tests::NotRun;
use reveille_tests::lab::Lab;
use reveille_tests::process::{self, Background};
use reveille_tests::rancher::door::Life;
use reveille_tests::rancher::kinds;
use reveille_tests::rancher::syncer::{Syncer, Ways};
use reveille_tests::reveille::Place;
use reveille_tests::roster::Roster;
use reveille_tests::wait::{s, until};
use serde_json::{Value, json};

use super::Ground;

/// The machine that is taken out.
const SUBJECT: u8 = 3;

/// An etcd of three; its members end with it.
struct Etcd {
    folder: PathBuf,
    pki: PathBuf,
    program: PathBuf,
    /// Names, ports for clients, ports for peers.
    members: Vec<(String, u16, u16)>,
    running: Vec<Background>,
}

impl Etcd {
    fn start(lab: &Lab, names: [String; 3]) -> Result<Self> {
        let program = lab.rig.facts.kubernetes.kubectl.with_file_name("etcd");
        if !program.exists() {
            return Err(NotRun(format!("there is no {}", program.display())).into());
        }
        let free = || Ok::<_, std::io::Error>(TcpListener::bind("127.0.0.1:0")?.local_addr()?.port());
        let mut members = Vec::new();
        for name in names {
            members.push((format!("etcd-{name}"), free()?, free()?));
        }
        let state = lab.rig.state();
        let folder = state.join("etcd-of-rancher");
        if folder.exists() {
            std::fs::remove_dir_all(&folder)?;
        }
        let mut etcd = Self { folder, pki: state.join("pki"), program, members, running: Vec::new() };
        for index in 0..etcd.members.len() {
            let process = etcd.spawn(index)?;
            etcd.running.push(process);
        }
        Ok(etcd)
    }

    fn spawn(&self, index: usize) -> Result<Background> {
        let (name, client, peer) = &self.members[index];
        let (client, peer) = (format!("https://127.0.0.1:{client}"), format!("http://127.0.0.1:{peer}"));
        let all = self.members.iter().map(|(name, _, peer)| format!("{name}=http://127.0.0.1:{peer}"));
        let all = all.collect::<Vec<_>>().join(",");
        let mut command = Command::new(&self.program);
        command.args(["--name", name, "--initial-cluster", &all, "--client-cert-auth"]);
        command.args(["--listen-client-urls", &client, "--advertise-client-urls", &client]);
        command.args(["--listen-peer-urls", &peer, "--initial-advertise-peer-urls", &peer]);
        command.args(["--unsafe-no-fsync", "--log-level", "error"]);
        command.arg("--data-dir").arg(self.folder.join(name));
        command.arg("--trusted-ca-file").arg(self.pki.join("ca.crt"));
        command.arg("--cert-file").arg(self.pki.join("apiserver.crt"));
        command.arg("--key-file").arg(self.pki.join("apiserver.key"));
        Background::start({
            command.stdin(Stdio::null()).stdout(Stdio::null()).stderr(Stdio::null());
            command
        })
    }

    /// As `spec.rancher.etcd` has it.
    fn written(&self) -> String {
        let endpoints = self.members.iter().map(|(_, client, _)| format!("\"https://127.0.0.1:{client}\""));
        let endpoints = endpoints.collect::<Vec<_>>().join(", ");
        let pki = self.pki.display();
        format!("{{endpoints: [{endpoints}], ca: {pki}/ca.crt, cert: {pki}/admin.crt, key: {pki}/admin.key}}")
    }

    /// Names of the members, as the first of them says.
    fn names(&self) -> Result<Vec<String>> {
        let url = format!("https://127.0.0.1:{}/v3/cluster/member/list", self.members[0].1);
        let mut command = Command::new("curl");
        command.args(["-sf", "--max-time", "5", "-d", "{\"linearizable\": true}", &url]);
        command.arg("--cacert").arg(self.pki.join("ca.crt"));
        command.arg("--cert").arg(self.pki.join("admin.crt")).arg("--key").arg(self.pki.join("admin.key"));
        let ended = process::run(command, None, s(10))?;
        ensure!(ended.code == Some(0), "curl ended with {:?}", ended.code);
        let told: Value = serde_json::from_str(&ended.stdout)?;
        let members = told["members"].as_array().context("no members")?;
        Ok(members.iter().map(|member| member["name"].as_str().unwrap_or_default().to_owned()).collect())
    }
}

/// Another member that is away stands against it. When all are well it is done: the member, then the Node, then the record.
pub(crate) fn a_machine_that_holds_etcd_leaves_it_before_its_node_goes(lab: &mut Lab) -> Result<()> {
    kinds::install(&lab.kube)?;
    let mut ground = Ground::lay(lab, "c-etcd", 21, 2, 0)?;
    let ended = played(lab, &mut ground);
    ground.clear()?;
    ended
}

fn played(lab: &mut Lab, ground: &mut Ground) -> Result<()> {
    for number in [1, 2, SUBJECT] {
        ground.join(number)?;
        let node = format!("/api/v1/nodes/{}", ground.name(number));
        until("its role of etcd", s(10), || {
            let mut found = ground.api.get(&node)?.context("the Node is gone")?;
            found["metadata"]["labels"]["node-role.kubernetes.io/etcd"] = json!("true");
            ensure!(ground.api.replace(&node, &found)?, "somebody was faster");
            Ok(())
        })?;
    }
    ground.register(1)?;
    ground.register(2)?;
    let mut etcd = Etcd::start(lab, [1, 2, SUBJECT].map(|number| ground.name(number)))?;
    let _syncer = Syncer::start(&ground.api, &ground.id, Ways { plans: true, tidies: false });
    let place = the_place(lab, ground, &etcd)?;
    let name = ground.name(SUBJECT);
    let against = |expected: &str| {
        until(expected, s(40), || {
            let ended = lab.reveille.ask(&place, &["rancher", "evict", &name, "--output", "json"])?;
            let told: Value = serde_json::from_str(&ended.stdout)
                .with_context(|| format!("{:?}: {}", ended.code, ended.stderr))?;
            let against = told["against"].to_string();
            let is_so = if expected.is_empty() { against == "[]" } else { against.contains(expected) };
            ensure!(is_so, "{against}");
            Ok(told["steps"].to_string())
        })
    };
    let steps = against("")?;
    ensure!(steps.contains(&format!("remove its member of etcd (etcd-{name}")), "{steps}");
    etcd.running[1].kill();
    against(&format!("another member of etcd is not well: etcd-{}", ground.name(2)))?;
    ensure!(etcd.names()?.len() == 3 && ground.door.writes().is_empty(), "a proposal did something");
    etcd.running[1] = etcd.spawn(1)?;
    against("")?;
    // etcd takes no removal until its members have been connected for five seconds.
    until("the machine to be taken out", s(60), || {
        let program = lab.reveille.start(&place, &["rancher", "evict", &name, "--yes"])?;
        let Life::Ended(code) = ground.door.watch(program)? else { anyhow::bail!("it was killed") };
        let node = ground.api.get(&format!("/api/v1/nodes/{name}"))?;
        let members = etcd.names()?;
        let is_member = members.iter().any(|member| *member == format!("etcd-{name}"));
        ensure!(node.is_some() || !is_member, "its Node went before its member");
        let log = std::fs::read_to_string(&place.log).unwrap_or_default();
        ensure!(code == Some(0), "{code:?}: {}", log.lines().last().unwrap_or_default());
        ensure!(node.is_none() && members.len() == 2, "{node:?} {members:?}");
        Ok(())
    })?;
    ensure!(ground.records_about(SUBJECT)?.is_empty(), "{:?}", ground.records_about(SUBJECT)?);
    let writes = ground.door.writes();
    ensure!(writes == ["PUT of a Node", "DELETE of a Node", "DELETE of a record"], "it wrote {writes:?}");
    let log = std::fs::read_to_string(&place.log)?;
    let at = |text: &str| log.find(text).with_context(|| format!("it never said {text:?}: {log}"));
    ensure!(at("remove the etcd member")? < at("delete the Node")?, "{log}");
    ensure!(at("delete the Node")? < at("delete the record")?, "{log}");
    Ok(())
}

fn the_place(lab: &mut Lab, ground: &Ground, etcd: &Etcd) -> Result<Place> {
    let kubeconfig = ground.kubeconfig.display().to_string();
    let rancher = format!(
        "rancher: {{kubeconfig: {kubeconfig}, context: rig, cluster: {}, looksApart: 3s, etcd: {}, repair: {{evict: act}}}}",
        ground.id,
        etcd.written()
    );
    let roster =
        Roster::new(&ground.id).set("kubeconfig", &kubeconfig).set("rancher", &rancher).pool("workers");
    lab.place(&[&roster])
}
