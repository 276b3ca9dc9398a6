//! Hot objects on a real API server: two writers that fight, and one that writes without changing anything.

use std::collections::BTreeSet;
use std::fs;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::thread::JoinHandle;
use std::time::Duration;

use anyhow::{Context, Result, ensure};
use reveille_tests::lab::Lab;
use reveille_tests::process;
use reveille_tests::rancher::{api, kinds};
use reveille_tests::roster::Roster;
use reveille_tests::wait::{s, until};
use reveille_wire::report::HotVerdict;
use serde_json::{Value, json};

/// Where the record lies.
const RECORD: &str = "/apis/management.cattle.io/v3/namespaces/c-x2x8k/nodes/machine-h46dc";
/// Between two writes of one writer.
const APART: Duration = Duration::from_millis(250);
/// The look and what is around it.
const LOOK_WITHIN: Duration = Duration::from_secs(60);
/// A controller that watches all the time tells of a fight by then.
const TOLD_WITHIN: Duration = Duration::from_secs(30);

/// Two agents with one identity write a record of Rancher in turn, each a client of its own; a third client writes a
/// ConfigMap with what it holds already. One look names the record, both writers, the field, the cluster and the machine,
/// and tells the kind that is written without changing. A controller whose roster says so names the record in its status, all the
/// while. The API server's audit log proves both writers, and that writer whose writes change nothing. The six lines that the
/// API server logs of one write are one verdict with the same machine.
pub(crate) fn fighting_writers_and_empty_writes_are_found(lab: &mut Lab) -> Result<()> {
    let ended = prepared(lab).and_then(|()| played(lab));
    lab.kube.ctl(&[
        "delete",
        "clusters.management.cattle.io",
        "c-x2x8k",
        "--ignore-not-found",
        "--wait=false",
    ])?;
    lab.kube.ctl(&["delete", "namespace", "c-x2x8k", "--ignore-not-found", "--wait=false"])?;
    ended
}

fn prepared(lab: &Lab) -> Result<()> {
    kinds::install(&lab.kube)?;
    apply(lab, &json!({"apiVersion": "v1", "kind": "Namespace", "metadata": {"name": "c-x2x8k"}}))?;
    apply(
        lab,
        &json!({"apiVersion": "management.cattle.io/v3", "kind": "Cluster", "metadata": {"name": "c-x2x8k"},
        "spec": {"displayName": "prod"}}),
    )?;
    apply(
        lab,
        &json!({"apiVersion": "v1", "kind": "ConfigMap", "data": {"a": "1"},
        "metadata": {"name": "quiet", "namespace": "c-x2x8k"}}),
    )?;
    apply(
        lab,
        &json!({"apiVersion": "management.cattle.io/v3", "kind": "Node",
        "metadata": {"name": "machine-h46dc", "namespace": "c-x2x8k",
            "labels": {"management.cattle.io/nodename": "w-1"}},
        "spec": {"requestedHostname": "w-1", "rkeNode": {"dockerInfo": {"name": "host-0"}}},
        "status": {"internalNodeStatus": {"addresses": [{"type": "InternalIP", "address": "10.0.0.5"}]}}}),
    )
}

fn apply(lab: &Lab, object: &Value) -> Result<()> {
    lab.kube.apply(object)
}

fn played(lab: &mut Lab) -> Result<()> {
    let api = api::server(&lab.rig.facts.kubernetes)?;
    let docker_info = |name: &str| json!({"spec": {"rkeNode": {"dockerInfo": {"name": name}}}});
    let same = json!({"data": {"a": "1"}});
    let writers = [
        Writer::start(&api, RECORD, "agent-a", docker_info("host-1")),
        Writer::start(&api, RECORD, "agent-b", docker_info("host-2")),
        Writer::start(&api, "/api/v1/namespaces/c-x2x8k/configmaps/quiet", "never-equal", same),
    ];
    let told = (hot(lab, &[]), all_the_time(lab));
    for writer in writers {
        writer.end()?;
    }
    let found = told.0?;
    told.1?;
    let verdicts = found["verdicts"].as_array().context("no verdicts")?;
    let of = |resource: &str| {
        let mut all = verdicts.iter().filter(|verdict| verdict["resource"] == resource);
        all.next().with_context(|| format!("nothing is said of {resource}: {found}"))
    };
    let record = of("nodes")?;
    ensure!(record["name"] == "machine-h46dc" && record["heat"] == "hot", "{record}");
    ensure!(record["class"] == "docker-info", "{record}");
    ensure!(record["fields"][0]["path"] == "spec.rkeNode.dockerInfo.name", "{record}");
    let mut names: Vec<&str> = record["suspects"]
        .as_array()
        .into_iter()
        .flatten()
        .filter_map(|suspect| suspect["name"].as_str())
        .collect();
    names.sort_unstable();
    ensure!(names == ["agent-a", "agent-b"], "{names:?}");
    is_machine(record)?;
    let no_ops = of("configmaps")?;
    ensure!(no_ops["class"] == "no-op-writes" && no_ops["rates"][0]["by"] == "metrics", "{no_ops}");
    proved(lab)?;
    from_the_log(lab)
}

/// A controller that runs names the record and both writers, beside the status of its machines.
fn all_the_time(lab: &mut Lab) -> Result<()> {
    let roster = Roster::new("warm").pool("warm-a").set("hot", "hot: {kinds: [nodes.management.cattle.io]}");
    let place = lab.place(&[&roster])?;
    let running = lab.start(&place)?;
    let names = |verdict: &HotVerdict| verdict.suspects.iter().map(|one| one.name.clone()).collect();
    let named = until("the status to name the record and its writers", TOLD_WITHIN, || {
        let (_, status) = lab.reveille.status(&place)?;
        let record = status.hot.iter().find(|verdict| verdict.name.as_deref() == Some("machine-h46dc"));
        let writers: BTreeSet<String> = record.map(names).unwrap_or_default();
        ensure!(writers == BTreeSet::from(["agent-a".to_owned(), "agent-b".to_owned()]), "{:?}", status.hot);
        Ok(())
    });
    running.stop()?;
    named
}

/// The audit log of the API server itself: user, program and address of each write, no-ops among them.
fn proved(lab: &Lab) -> Result<()> {
    let log = lab.rig.facts.kubernetes.audit_log.display().to_string();
    let told = hot(lab, &["--audit-log", &log])?;
    let verdicts = told["verdicts"].as_array().context("no verdicts")?;
    for (name, agents) in
        [("machine-h46dc", &["agent-a/1.0", "agent-b/1.0"][..]), ("quiet", &["never-equal/1.0"])]
    {
        let verdict = verdicts.iter().find(|verdict| verdict["name"] == name);
        let verdict = verdict.with_context(|| format!("the audit log tells nothing of {name}: {told}"))?;
        let suspects = verdict["suspects"].as_array().context("no suspects")?;
        for agent in agents {
            let is_it =
                |suspect: &Value| suspect["name"].as_str().is_some_and(|name| name.starts_with(agent));
            ensure!(suspects.iter().any(is_it), "{agent} is not named: {verdict}");
        }
        ensure!(suspects.iter().all(|suspect| suspect["seenIn"] == "audit-log"), "{verdict}");
    }
    Ok(())
}

/// The same machine, from what the API server would log of one write.
fn from_the_log(lab: &Lab) -> Result<()> {
    let path = std::env::temp_dir().join(format!("reveille-e2e-{}-one-put.klog", std::process::id()));
    let handled =
        |server: &str| format!("handler.go:153] {server}: PUT \"{RECORD}\" satisfied by nonGoRestful");
    let passed =
        |server: &str| format!("pathrecorder.go:247] {server}: \"{RECORD}\" satisfied by prefix /apis/");
    let servers = ["kube-aggregator", "kube-apiserver", "apiextensions-apiserver"];
    let lines = servers.map(|server| {
        format!("I0412 09:31:07.104211 1 {}\nI0412 09:31:07.104236 1 {}\n", handled(server), passed(server))
    });
    fs::write(&path, lines.concat())?;
    let told = hot(lab, &["--klog", &path.display().to_string()]);
    fs::remove_file(&path)?;
    let told = told?;
    let verdicts = told["verdicts"].as_array().context("no verdicts")?;
    let [one] = verdicts.as_slice() else { anyhow::bail!("six lines are one write: {told}") };
    ensure!(one["rates"][0]["writes"] == 1, "{one}");
    is_machine(one)
}

fn is_machine(verdict: &Value) -> Result<()> {
    let wanted = json!({"clusterId": "c-x2x8k", "cluster": "prod", "node": "w-1", "addresses": ["10.0.0.5"]});
    ensure!(verdict["machine"] == wanted, "{}", verdict["machine"]);
    Ok(())
}

/// Runs the command against the API server itself; something is hot, so it ends with 1.
fn hot(lab: &Lab, arguments: &[&str]) -> Result<Value> {
    let mut command = std::process::Command::new(lab.reveille.program());
    command
        .args(["hot", "--output", "json", "--kubeconfig"])
        .arg(&lab.rig.facts.kubernetes.kubeconfig)
        .args(arguments);
    let ended = process::run(command, None, LOOK_WITHIN)?;
    ensure!(ended.code == Some(1), "hot ended with {:?}: {}{}", ended.code, ended.stdout, ended.stderr);
    serde_json::from_str(&ended.stdout).context("hot says no JSON")
}

/// A client of its own, which writes the same again and again. The API server calls it by its user agent.
pub(crate) struct Writer {
    is_over: Arc<AtomicBool>,
    thread: JoinHandle<Result<()>>,
}

impl Writer {
    /// Begins to write.
    pub(crate) fn start(api: &str, path: &str, name: &'static str, patch: Value) -> Self {
        let is_over = Arc::new(AtomicBool::new(false));
        let (ends, url) = (Arc::clone(&is_over), format!("{api}{path}"));
        let thread = std::thread::spawn(move || {
            let config =
                ureq::Agent::config_builder().timeout_global(Some(s(10))).user_agent(format!("{name}/1.0"));
            let agent = ureq::Agent::new_with_config(config.build());
            while !ends.load(Ordering::Relaxed) {
                let request = agent.patch(&url).header("content-type", "application/merge-patch+json");
                request.send(patch.to_string()).with_context(|| format!("{name} cannot write"))?;
                std::thread::sleep(APART);
            }
            Ok(())
        });
        Self { is_over, thread }
    }

    /// Ends, and says whether a write was refused.
    pub(crate) fn end(self) -> Result<()> {
        self.is_over.store(true, Ordering::Relaxed);
        self.thread.join().map_err(|_| anyhow::anyhow!("a writer panicked"))?
    }
}
