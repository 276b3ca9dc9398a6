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
use reveille_tests::reveille::{Place, Reveille};
use reveille_tests::roster::Roster;
use reveille_tests::wait::{s, until};
use serde_json::{Value, json};

use super::Ground;

/// The machine that is taken out.
pub(super) const SUBJECT: u8 = 3;

/// An etcd of three; its members end with it.
pub(super) struct Etcd {
    folder: PathBuf,
    pki: PathBuf,
    program: PathBuf,
    /// Names, ports for clients, ports for peers.
    members: Vec<(String, u16, u16)>,
    running: Vec<Background>,
}

/// The test's own client of an etcd member, beside the program.
#[derive(Clone)]
pub(super) struct Asker {
    pki: PathBuf,
    port: u16,
}

impl Asker {
    /// Names of the members: through the quorum, so that there is no answer without one.
    pub(super) fn names(&self) -> Result<Vec<String>> {
        let url = format!("https://127.0.0.1:{}/v3/cluster/member/list", self.port);
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

impl Etcd {
    /// Of the first three machines of this ground.
    pub(super) fn start(lab: &Lab, ground: &Ground) -> Result<Self> {
        let program = lab.rig.facts.kubernetes.kubectl.with_file_name("etcd");
        if !program.exists() {
            return Err(NotRun(format!("there is no {}", program.display())).into());
        }
        let free = || Ok::<_, std::io::Error>(TcpListener::bind("127.0.0.1:0")?.local_addr()?.port());
        let mut members = Vec::new();
        for number in [1, 2, SUBJECT] {
            members.push((member_of(ground, number), free()?, free()?));
        }
        let state = lab.rig.state();
        let folder = state.join(format!("etcd-of-{}", ground.id));
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

    /// Where clients go in, member by member.
    pub(super) fn ports(&self) -> Vec<u16> {
        self.members.iter().map(|(_, client, _)| *client).collect()
    }

    /// Asks its first member.
    pub(super) fn asker(&self) -> Asker {
        Asker { pki: self.pki.clone(), port: self.members[0].1 }
    }

    /// A roster that allows to evict, whose program reaches the members at these ports.
    pub(super) fn place(&self, lab: &mut Lab, ground: &Ground, ports: &[u16]) -> Result<Place> {
        let kubeconfig = ground.kubeconfig.display().to_string();
        let endpoints: Vec<String> =
            ports.iter().map(|port| format!("\"https://127.0.0.1:{port}\"")).collect();
        let (endpoints, pki) = (endpoints.join(", "), self.pki.display());
        let rancher = format!(
            "rancher: {{kubeconfig: {kubeconfig}, context: rig, cluster: {}, looksApart: 3s, repair: {{evict: act}}, \
             etcd: {{endpoints: [{endpoints}], ca: {pki}/ca.crt, cert: {pki}/admin.crt, key: {pki}/admin.key}}}}",
            ground.id
        );
        let roster =
            Roster::new(&ground.id).set("kubeconfig", &kubeconfig).set("rancher", &rancher).pool("workers");
        lab.place(&[&roster])
    }
}

/// What RKE calls the member of etcd on this machine.
pub(super) fn member_of(ground: &Ground, number: u8) -> String {
    format!("etcd-{}", ground.name(number))
}

/// Three machines that hold etcd; the one that is taken out has a Node and no record, so that a syncer mirrors it.
pub(super) fn people(ground: &mut Ground) -> Result<()> {
    for number in [1, 2, SUBJECT] {
        ground.join(number)?;
        let node = format!("/api/v1/nodes/{}", ground.name(number));
        until("its role of etcd", s(10), || {
            let mut found = ground.api.get(&node)?.context("the Node is gone")?;
            found["metadata"]["labels"]["node-role.kubernetes.io/etcd"] = json!("true");
            ensure!(ground.api.replace(&node, &found)?, "another client was faster");
            Ok(())
        })?;
    }
    ground.register(1)?;
    ground.register(2)
}

/// Waits until what stands against it says this, or nothing does where nothing is expected; gives the steps.
pub(super) fn against(reveille: &Reveille, place: &Place, name: &str, expected: &str) -> Result<String> {
    until(expected, s(40), || {
        let ended = reveille.ask(place, &["rancher", "evict", name, "--output", "json"])?;
        let told: Value = serde_json::from_str(&ended.stdout)
            .with_context(|| format!("{:?}: {}", ended.code, ended.stderr))?;
        let against = told["against"].to_string();
        let is_so = if expected.is_empty() { against == "[]" } else { against.contains(expected) };
        ensure!(is_so, "{against}");
        Ok(told["steps"].to_string())
    })
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
    people(ground)?;
    let mut etcd = Etcd::start(lab, ground)?;
    let asker = etcd.asker();
    let _syncer = Syncer::start(&ground.api, &ground.id, Ways { plans: true, tidies: false });
    let place = etcd.place(lab, ground, &etcd.ports())?;
    let (name, member) = (ground.name(SUBJECT), member_of(ground, SUBJECT));
    let against = |expected: &str| against(&lab.reveille, &place, &name, expected);
    let steps = against("")?;
    ensure!(steps.contains(&format!("remove its member of etcd ({member}")), "{steps}");
    etcd.running[1].kill();
    against(&format!("another member of etcd is not well: {}", member_of(ground, 2)))?;
    ensure!(asker.names()?.len() == 3 && ground.door.writes().is_empty(), "a proposal did something");
    etcd.running[1] = etcd.spawn(1)?;
    against("")?;
    // etcd takes no removal until its members have been connected for five seconds.
    until("the machine to be taken out", s(60), || {
        let program = lab.reveille.start(&place, &["rancher", "evict", &name, "--yes"])?;
        let Life::Ended(code) = ground.door.watch(program)? else { anyhow::bail!("it was killed") };
        let node = ground.api.get(&format!("/api/v1/nodes/{name}"))?;
        let members = asker.names()?;
        ensure!(node.is_some() || !members.contains(&member), "its Node went before its member");
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
