//! A storm in Rancher's management cluster, seen by a controller whose roster is of another cluster's machines.
//!
//! The rig has one API server, which is both: the program reaches the roster's cluster through the fault proxy, Rancher's
//! past it.

use std::collections::BTreeSet;
use std::time::Duration;

use anyhow::{Context, Result, ensure};
use reveille_tests::lab::Lab;
use reveille_tests::rancher::kinds;
use reveille_tests::rancher::objects::registered;
use reveille_tests::wait::until;
use serde_json::{Value, json};

use super::Ground;
use crate::hot::Writer;

/// The machine whose record is fought over.
const SUBJECT: usize = 1;
/// A controller that watches all the time tells of a fight by then.
const TOLD_WITHIN: Duration = Duration::from_secs(30);

/// Two agents with one identity write the record of a machine in turn. The status of the controller that watches over that
/// machine names the record, both writers, the cluster, the node and its address within half a minute; `why` of that machine
/// names the storm, `why` of its neighbour does not, though a record of another cluster that is called like the neighbour is
/// hot as well.
pub(crate) fn storm_in_management_cluster_is_told_with_its_machine(lab: &mut Lab) -> Result<()> {
    kinds::install(&lab.kube)?;
    let (own, other) = (Ground::lay(lab, "c-stormy", 31, 0, 0)?, Ground::lay(lab, "c-other", 32, 0, 0)?);
    let ended = played(lab, &own, &other);
    own.clear()?;
    other.clear()?;
    ended
}

fn played(lab: &mut Lab, own: &Ground, other: &Ground) -> Result<()> {
    let crew = lab.crew()?;
    let (subject, neighbour) = (&crew.machines[SUBJECT], &crew.machines[0]);
    let ip = subject.address.clone().context("it has no address")?;
    let mut writers = Vec::new();
    for (ground, node, ip) in [(own, &subject.name, ip.as_str()), (other, &neighbour.name, "192.0.2.1")] {
        let record = ground.record(1);
        ground.api.make(&ground.records_at(), &registered(&ground.id, &record, node, ip))?;
        let path = format!("{}/{record}", ground.records_at());
        for (agent, host) in [("agent-a", "host-1"), ("agent-b", "host-2")] {
            let patch = json!({"status": {"dockerInfo": {"name": host}}});
            writers.push(Writer::start(&format!("http://{}", ground.api.host()), &path, agent, patch));
        }
    }
    let told = watched(lab, own, &crew.roster("stormy"), [&subject.name, &neighbour.name], &ip);
    for writer in writers {
        writer.end()?;
    }
    told
}

fn watched(
    lab: &mut Lab,
    own: &Ground,
    roster: &reveille_tests::roster::Roster,
    [subject, neighbour]: [&str; 2],
    ip: &str,
) -> Result<()> {
    let kubeconfig = lab.rig.facts.kubernetes.kubeconfig.display().to_string();
    let rancher = format!(
        "rancher: {{kubeconfig: {kubeconfig}, cluster: {}, hot: {{kinds: [nodes.management.cattle.io]}}}}",
        own.id
    );
    let place = lab.place(&[&roster.clone().set("rancher", &rancher).pool("workers")])?;
    let running = lab.start_and_see(&place, 3)?;
    let record = own.record(1);
    until("the status to name the record, its writers and the machine", TOLD_WITHIN, || {
        let (_, status) = lab.reveille.status(&place)?;
        let found = status.hot.iter().find(|verdict| verdict.name.as_deref() == Some(&*record));
        let found = found.with_context(|| format!("{:?} {:?}", status.hot, status.hot_unread))?;
        let writers: BTreeSet<&str> = found.suspects.iter().map(|one| one.name.as_str()).collect();
        ensure!(writers == BTreeSet::from(["agent-a", "agent-b"]), "{writers:?}");
        ensure!(found.class == "docker-info" && found.in_rancher.is_some(), "{found:?}");
        let machine = serde_json::to_value(&found.machine)?;
        let name = format!("{}-shop", own.id);
        let wanted = json!({"clusterId": own.id, "cluster": name, "node": subject, "addresses": [ip]});
        ensure!(machine == wanted, "{machine}");
        ensure!(status.hot_unread.is_empty(), "{:?}", status.hot_unread);
        Ok(())
    })?;
    until("the other record to be hot as well", TOLD_WITHIN, || {
        let (_, status) = lab.reveille.status(&place)?;
        ensure!(
            status.hot.iter().any(|verdict| verdict.namespace.as_deref() == Some("c-other")),
            "{:?}",
            status.hot
        );
        Ok(())
    })?;
    let hot_of = |machine: &str| -> Result<Vec<String>> {
        let ended = lab.reveille.ask(&place, &["why", machine, "--output", "json"])?;
        let why: Value = serde_json::from_str(&ended.stdout).context("why says no JSON")?;
        let names = why["hot"].as_array().into_iter().flatten();
        Ok(names.filter_map(|verdict| verdict["name"].as_str().map(str::to_owned)).collect())
    };
    let (of_subject, of_neighbour) = (hot_of(subject)?, hot_of(neighbour)?);
    ensure!(of_subject == [record], "{of_subject:?}");
    ensure!(of_neighbour.is_empty(), "another cluster's record is told of {neighbour}: {of_neighbour:?}");
    running.stop().map(drop)
}
