//! Tests against a real etcd of three members on 127.0.0.1, with certificates on both sides: the clients return what etcd says.
//!
//! The tests need the etcd program, which the rig builds. So they run only on demand, and say so when they do not run.

use std::net::TcpListener;
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Stdio};
use std::time::Instant;

use rcgen::{
    BasicConstraints, CertificateParams, ExtendedKeyUsagePurpose, IsCa, Issuer, KeyPair, KeyUsagePurpose,
};
use reveille_rancher::repair::Outcome;
use reveille_rancher::repair::etcd::{members, remove};

use super::*;

struct Process(Child);

impl Drop for Process {
    fn drop(&mut self) {
        drop(self.0.kill());
        drop(self.0.wait());
    }
}

/// The path where the rig keeps its build, or the path in `ETCD`.
fn program() -> PathBuf {
    let home = std::env::var("HOME").unwrap_or_default();
    let cache = std::env::var("XDG_CACHE_HOME").unwrap_or_else(|_| format!("{home}/.cache"));
    let rig = std::env::var("RIG_CACHE").unwrap_or_else(|_| format!("{cache}/reveille-rig"));
    std::env::var("ETCD").map_or_else(|_| Path::new(&rig).join("bin/etcd"), PathBuf::from)
}

fn free_port() -> u16 {
    TcpListener::bind("127.0.0.1:0").unwrap().local_addr().unwrap().port()
}

/// A certificate authority, and one certificate of it for servers and clients, as RKE makes them.
fn certificates(folder: &Path) -> EtcdRef {
    let mut params = CertificateParams::new(Vec::<String>::new()).unwrap();
    params.is_ca = IsCa::Ca(BasicConstraints::Unconstrained);
    params.key_usages = vec![KeyUsagePurpose::KeyCertSign, KeyUsagePurpose::DigitalSignature];
    let key = KeyPair::generate().unwrap();
    let authority = params.self_signed(&key).unwrap();
    let issuer = Issuer::new(params, key);
    let mut leaf = CertificateParams::new(vec!["127.0.0.1".to_owned()]).unwrap();
    leaf.extended_key_usages = vec![ExtendedKeyUsagePurpose::ServerAuth, ExtendedKeyUsagePurpose::ClientAuth];
    let leaf_key = KeyPair::generate().unwrap();
    let signed = leaf.signed_by(&leaf_key, &issuer).unwrap();
    let write = |name: &str, text: String| {
        let path = folder.join(name);
        std::fs::write(&path, text).unwrap();
        path
    };
    EtcdRef {
        endpoints: Vec::new(),
        ca: write("ca.pem", authority.pem()),
        cert: write("cert.pem", signed.pem()),
        key: write("key.pem", leaf_key.serialize_pem()),
    }
}

/// Starts three members that know each other; their endpoints go into `at`.
fn start(folder: &Path, at: &mut EtcdRef) -> Vec<Process> {
    let ports: Vec<(u16, u16)> = (0..3).map(|_| (free_port(), free_port())).collect();
    let peers: Vec<String> =
        ports.iter().enumerate().map(|(i, (_, peer))| format!("etcd-{i}=http://127.0.0.1:{peer}")).collect();
    at.endpoints = ports.iter().map(|(client, _)| format!("https://127.0.0.1:{client}")).collect();
    let one = |(index, (client, peer)): (usize, &(u16, u16))| {
        let (client, peer) = (format!("https://127.0.0.1:{client}"), format!("http://127.0.0.1:{peer}"));
        let mut command = Command::new(program());
        command.args(["--name", &format!("etcd-{index}"), "--initial-cluster", &peers.join(",")]);
        command.args(["--listen-client-urls", &client, "--advertise-client-urls", &client]);
        command.args(["--listen-peer-urls", &peer, "--initial-advertise-peer-urls", &peer]);
        command.args(["--client-cert-auth", "--unsafe-no-fsync", "--log-level", "error"]);
        command.arg("--data-dir").arg(folder.join(index.to_string()));
        command.arg("--trusted-ca-file").arg(&at.ca).arg("--cert-file").arg(&at.cert);
        command.arg("--key-file").arg(&at.key);
        Process(command.stdout(Stdio::null()).stderr(Stdio::null()).spawn().unwrap())
    };
    ports.iter().enumerate().map(one).collect()
}

/// Reads the members until the condition holds; fails with the last read otherwise.
async fn until(
    clients: &[EtcdClient],
    is_so: impl Fn(&[reveille_rancher::repair::observation::Member]) -> bool,
) {
    let begun = Instant::now();
    loop {
        let seen = members(clients).await;
        if seen.as_ref().is_ok_and(|all| is_so(all)) {
            return;
        }
        assert!(begun.elapsed() < Duration::from_secs(30), "{seen:?}");
        tokio::time::sleep(Duration::from_millis(200)).await;
    }
}

#[tokio::test]
#[ignore = "needs etcd, which the rig builds, or ETCD=PROGRAM: cargo test -p reveille --bin reveille real_etcd -- --ignored"]
async fn a_real_etcd_loses_the_member_that_leads_and_keeps_its_quorum() {
    let folder = tempfile::tempdir().unwrap();
    let mut at = certificates(folder.path());
    let mut processes = start(folder.path(), &mut at);
    let clients = open(&at).unwrap();
    until(&clients, |all| all.len() == 3 && all.iter().all(|member| member.healthy)).await;
    let mut stranger = at.clone();
    (stranger.cert, stranger.key) = {
        let other = tempfile::tempdir().unwrap();
        let other_at = certificates(other.path());
        let (cert, key) = (folder.path().join("other.pem"), folder.path().join("other.key"));
        std::fs::copy(other_at.cert, &cert).unwrap();
        std::fs::copy(other_at.key, &key).unwrap();
        (cert, key)
    };
    assert!(
        members(&open(&stranger).unwrap()).await.is_err(),
        "another authority's certificate is not let in"
    );
    let all = members(&clients).await.unwrap();
    let leader = all.iter().find(|member| member.is_leader).unwrap().id.clone();
    assert!(all.iter().all(|member| member.hosts.contains("127.0.0.1")), "{all:?}");
    // etcd itself accepts no removal until its members have been connected for five seconds.
    let begun = Instant::now();
    loop {
        match remove(&clients, &leader).await {
            Outcome::Accepted => break,
            Outcome::Failed { .. } if begun.elapsed() < Duration::from_secs(30) => {}
            other => panic!("{other:?}"),
        }
        // The leader handed over before etcd refused; the member to remove stays the same.
        tokio::time::sleep(Duration::from_millis(500)).await;
    }
    until(&clients, |all| all.len() == 2 && all.iter().all(|member| member.healthy && member.id != leader))
        .await;
    assert_eq!(remove(&clients, &leader).await, Outcome::AlreadySo);
    let left = members(&clients).await.unwrap();
    let Outcome::Failed { why } = remove(&clients, &left[0].id).await else { panic!("{left:?}") };
    assert!(why.contains("fewer than 2 of 2"), "{why}");
    // One of two members is gone: the answer of the other one alone is not valid.
    let index: usize = left[0].name.strip_prefix("etcd-").unwrap().parse().unwrap();
    drop(processes[index].0.kill());
    let unread = members(&clients).await.unwrap_err();
    assert!(unread.why.contains("no endpoint answers"), "{unread:?}");
}
