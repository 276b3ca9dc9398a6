//! A plan that cannot be applied at once, or not at all, a plan that comes beside another message of the server, and a
//! mistake in a file of plans.

#![allow(clippy::unwrap_used, reason = "in a test, what cannot be is a failure")]

#[path = "support/agent.rs"]
mod agent;
#[path = "support/cluster.rs"]
mod cluster;
mod support;

use std::collections::BTreeSet;
use std::error::Error;
use std::time::Duration;

use cluster::Cluster;
use reveille_agent::Memory;
use reveille_agent::model::Leaving;
use reveille_node::agent::Setup;
use reveille_node::memory_file::MemoryFile;
use reveille_node::root::Root;
use reveille_registrar::plans_watch::Watch;
use reveille_registrar::registry::{Template, What};
use reveille_wire::agent::plan::Step;
use support::{site, template};

#[tokio::test]
async fn failed_plan_is_applied_once_the_obstacle_is_removed() {
    let site = site().await;
    let file = Step::WriteFile {
        path: "/etc/cni/net.d/10.conf".into(),
        mode: "0600".into(),
        owner: None,
        content: "{}".into(),
        secret: false,
    };
    let pin = format!("sha256:{}", "ab".repeat(32));
    site.planned(Template { files: vec![file], ..template("127.0.0.1:1", &pin) }).await;
    let invited = site.invite(|_| {}).await;
    // A file at the path where a directory has to be.
    let machine = agent::machine(1, &[("/etc/cni", "in the way")]);
    let root = Root::new(machine.path());
    let mut running = agent::run(agent::setup(&site, &machine, Some(invited.token.clone())), machine);
    running.says("PLAN_FAILED").await;
    std::fs::remove_file(root.at("/etc/cni")).unwrap();
    running.says("Machine(").await;
    assert_eq!(std::fs::read_to_string(root.at("/etc/cni/net.d/10.conf")).unwrap(), "{}");
    site.end().await;
}

/// A join through this server, which differs from every plan of [`Cluster::plan`].
fn another(server: &str, pin: &str) -> Template {
    Template { labels: [("tier".into(), "web".into())].into(), ..template(server, pin) }
}

/// The machine was removed, and its memory holds that. It was readmitted while its agent was down: with the same plan as
/// before, or with another one that was written meanwhile.
async fn readmitted(another_plan: bool) {
    let (site, cluster) = (site().await, Cluster::new());
    let api_server = cluster.api_server().await;
    let invited = site.invite(|_| {}).await;
    let machine = agent::machine(1, &[]);
    let invited = Some(invited.token.clone());
    let setup = Setup { settings: agent::hasty(), ..agent::setup(&site, &machine, invited) };
    let folder = setup.folder.clone();
    let (shelf, plan) = cluster.has_joined(&api_server, &folder, "w-1");
    let mut running = agent::run(setup, machine);
    running.says("Up {").await;
    let machine = running.stopped().await;
    let memory = MemoryFile::within(&folder);
    memory.write(&Memory { leaving: Some(Leaving::Removed), ..Memory::default() }).unwrap();
    if another_plan {
        site.planned(another(&api_server.address, &cluster.pin())).await;
    }
    // The machine's API server does not answer, so the missing Node proves nothing.
    api_server.set(false);
    let setup = Setup { settings: agent::hasty(), ..agent::setup(&site, &machine, None) };
    let running = agent::run(setup, machine);
    let forgets = async {
        let follows = || shelf.read().unwrap().unwrap().checksum != plan.checksum;
        while memory.read().unwrap().leaving.is_some() || follows() != another_plan {
            tokio::time::sleep(Duration::from_millis(200)).await;
        }
    };
    let forgot = tokio::time::timeout(Duration::from_secs(40), forgets).await;
    assert!(forgot.is_ok(), "another plan: {another_plan}");
    drop(running);
    site.end().await;
}

#[tokio::test]
async fn readmitted_machine_forgets_its_removal_under_old_or_new_plan() {
    readmitted(false).await;
    readmitted(true).await;
}

#[tokio::test]
async fn plan_with_an_impossible_join_leaves_the_old_plan_on_disk() {
    let (site, cluster) = (site().await, Cluster::new());
    let api_server = cluster.api_server().await;
    let invited = site.invite(|_| {}).await;
    let machine = agent::machine(1, &[]);
    let invited = Some(invited.token.clone());
    let setup = Setup { settings: agent::hasty(), ..agent::setup(&site, &machine, invited) };
    let (shelf, plan) = cluster.has_joined(&api_server, &setup.folder, "w-1");
    let mut running = agent::run(setup, machine);
    running.says("api: Answers").await;
    site.planned(another(&api_server.address, "sha256:00")).await;
    running.says("join cannot be meant").await;
    assert_eq!(shelf.read().unwrap().unwrap().checksum, plan.checksum);
    drop(running);
    site.end().await;
}

#[tokio::test]
async fn agent_without_a_usable_plan_reports_its_machine_as_leaving() {
    let mut site = site().await;
    // `sha256:00` is in no closed list of the protocol, and it is not a pin.
    site.planned(another("10.0.0.1:6443", "sha256:00")).await;
    let invited = site.invite(|_| {}).await;
    let machine = agent::machine(1, &[]);
    let setup = agent::setup(&site, &machine, Some(invited.token.clone()));
    let memory = Memory { leaving: Some(Leaving::Drained), ..Memory::default() };
    MemoryFile::within(&setup.folder).write(&memory).unwrap();
    let mut running = agent::run(setup, machine);
    running.says("join cannot be meant").await;
    let hearing = async {
        for _ in 0..3 {
            let account = loop {
                if let What::Alive { account, .. } = site.heard.recv().await.unwrap().what {
                    break account;
                }
            };
            let blocker = account.and_then(|account| account.blocker).unwrap();
            assert_eq!(blocker.kind.as_str(), "leaving");
        }
    };
    tokio::time::timeout(Duration::from_secs(60), hearing).await.unwrap();
    drop(running);
    site.end().await;
}

/// The server logs the whole chain of this error, and prints it where it does not start.
#[test]
fn error_in_a_plan_file_quotes_no_surrounding_lines() {
    let content = "content: |\n      [Global]\n      application-credential-secret=c4n4ry0123\n";
    for (rest, word) in [
        (format!("{content}    ownr: root:root\n"), "ownr"),
        // The mistake is the secret itself: a value of another sort, or one without its quote.
        ("content: [c4n4ry0123]\n".to_owned(), "line 8"),
        (format!("{content}    secret: c4n4ry0123\n"), "line 11"),
        (format!("{content}  - c4n4ry0123\n"), "line 11"),
        ("content: \"c4n4ry0123\n".to_owned(), "line "),
        ("content: c4n4ry0123: x\n".to_owned(), "line 8"),
    ] {
        let told = told(&rest);
        assert!(told.contains(word), "{rest}: {told}");
        assert!(!told.contains("c4n4ry0123"), "{rest}: {told}");
    }
}

/// All that is told of a file of plans whose file ends in this.
fn told(rest: &str) -> String {
    let text = format!(
        "plans:\n- pool: workers\n  join: {{distribution: kubeadm, server: \"10.0.0.1:6443\", caPins: []}}\n  files:\n  \
         - path: /etc/kubernetes/cloud.conf\n    mode: \"0600\"\n    secret: true\n    {rest}"
    );
    let text = if rest.contains("secret: c4n4ry") { text.replace("    secret: true\n", "\n") } else { text };
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("plans.yaml");
    std::fs::write(&path, text).unwrap();
    let error =
        Watch::begin(path, BTreeSet::from([("prod".into(), "workers".into())])).map(drop).unwrap_err();
    let mut told = error.to_string();
    let mut cause: &dyn Error = &error;
    while let Some(inner) = cause.source() {
        told.push_str(&format!(": {inner}"));
        cause = inner;
    }
    told
}
