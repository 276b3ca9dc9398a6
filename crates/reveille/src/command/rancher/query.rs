//! Rancher's records for a `status` or a `why`: the command itself reads them when an operator asks.
//!
//! ```text
//!  status, why ─┬▶ the controller, or a one-time look ─▶ report ────────────────────┐
//!               └▶ Rancher, where the roster names one ─▶ judge ─▶ RancherRecords ──┴▶ report.rancher
//! ```
//!
//! A running controller does not read Rancher's records. Its engine decides nothing by them, they have megabytes, and its copy
//! would be older than what an operator wants to know. So one read serves the answer of a controller and a one-time look, with
//! the roster's kubeconfigs of the user who asks. It runs beside the other question and has one deadline. Where it fails, the
//! report says so in a line: whether machines are Ready does not depend on Rancher, and neither does the exit code.
//!
//! This module never reads plans of machines.

use std::collections::BTreeSet;
use std::time::Duration;

use reveille_kube::ClusterConfig;
use reveille_rancher::judge::judge;
use reveille_rancher::model::{Cluster, Kind, UnreadKind};
use reveille_rancher::modern::Stage;
use reveille_rancher::{modern, reading};
use reveille_wire::report::{MachineReport, RancherMachineReport, RancherRecordsReport};
use reveille_wire::roster::{ClusterRef, RancherRef};
use tokio::time::timeout;

use super::api_client::KubeClient;
use super::none_of_them;
use super::report::{self, Named};
use crate::adapters::cluster;

/// The longest for all of it: as long as a one-time look waits for its last reads.
const WITHIN: Duration = Duration::from_secs(20);

/// What Rancher's records say about a roster's cluster.
#[derive(Clone, Debug, Default)]
pub(crate) struct RancherRecords {
    server: Option<String>,
    id: Option<String>,
    name: String,
    troubles: Vec<Named>,
    machines: Vec<RancherMachineReport>,
    unread: Vec<String>,
}

/// Reads the records.
pub(crate) async fn read_records(rancher: &RancherRef, cluster: &ClusterRef) -> RancherRecords {
    let blind = |why: String| RancherRecords {
        name: rancher.cluster.clone(),
        unread: vec![why],
        ..RancherRecords::default()
    };
    match timeout(WITHIN, read(rancher, cluster)).await {
        Ok(Ok(records)) => records,
        Ok(Err(why)) => blind(why),
        Err(_) => blind(format!("Rancher's records were not read within {} s", WITHIN.as_secs())),
    }
}

async fn read(rancher: &RancherRef, below: &ClusterRef) -> Result<RancherRecords, String> {
    let config = ClusterConfig { kubeconfig: rancher.kubeconfig.clone(), context: rancher.context.clone() };
    let unreached = |error| format!("cannot reach Rancher's management cluster: {error}");
    let management = KubeClient::open(&config).await.map_err(unreached)?;
    let (clusters, server_now) = reading::clusters(&management).await.map_err(|why| report::words(&why))?;
    let is_wanted =
        |cluster: &Cluster| cluster.id.0 == rancher.cluster || cluster.display_name == rancher.cluster;
    let mut found = clusters.into_values().filter(is_wanted);
    let (Some(cluster), None) = (found.next(), found.next()) else {
        return Err(format!("Rancher has not exactly one cluster that is called {:?}", rancher.cluster));
    };
    let mut unread = Vec::new();
    let downstream = KubeClient::open(&cluster::config(below)).await;
    let downstream = downstream
        .map_err(|error| unread.push(format!("cannot reach the cluster of the roster: {error}")))
        .ok();
    let sample = reading::sample(&management, downstream.as_ref(), cluster, server_now).await;
    let found = judge(&sample, None);
    // Without a client for the cluster itself its Nodes were not read; the reason is in the list already.
    let tried =
        sample.unread.iter().filter(|unread| downstream.is_some() || unread.kind != UnreadKind::NotNamed);
    unread.extend(tried.map(report::words));
    let mut machines = Vec::new();
    if sample.cluster.kind == Kind::Mirrored {
        let (all, more) = modern::machines(&management, false).await.unwrap_or_else(none_of_them);
        unread.extend(more.iter().map(report::words));
        let is_here = |machine: &&modern::MachineState| {
            machine.cluster == sample.cluster.display_name && machine.stage != Stage::Ready
        };
        machines = all.iter().filter(is_here).map(report::machine_report).collect();
    }
    let name = [&sample.cluster.display_name, &sample.cluster.id.0].into_iter().find(|name| !name.is_empty());
    Ok(RancherRecords {
        server: Some(management.server().to_owned()),
        id: Some(sample.cluster.id.0.clone()),
        name: name.unwrap_or(&rancher.cluster).clone(),
        troubles: report::troubles(&sample, &found),
        machines,
        unread,
    })
}

impl RancherRecords {
    /// All records, for a `status`.
    pub(crate) fn of_all(self) -> RancherRecordsReport {
        let Self { server, id, name, troubles, machines, unread } = self;
        let troubles = troubles.into_iter().map(|named| named.trouble).collect();
        RancherRecordsReport { server, id, name, troubles, machines, unread }
    }

    /// The records of one machine, by its Node's name or its own.
    pub(crate) fn of(mut self, machine: &MachineReport) -> RancherRecordsReport {
        let own: BTreeSet<&str> =
            machine.node.as_deref().into_iter().chain([machine.name.as_str()]).collect();
        self.troubles.retain(|named| named.names.iter().any(|name| own.contains(name.as_str())));
        self.machines.retain(|known| {
            own.contains(known.name.as_str()) || known.node.as_deref().is_some_and(|node| own.contains(node))
        });
        self.of_all()
    }
}

#[cfg(test)]
mod tests {
    use reveille_wire::report::RancherTroubleReport;

    use super::*;
    use crate::fixture;

    fn named(names: &[&str]) -> Named {
        let trouble = RancherTroubleReport {
            records: vec![format!("record-of-{}", names[0])],
            node: None,
            addresses: Vec::new(),
            findings: Vec::new(),
            sibling: None,
            differs: Vec::new(),
        };
        Named { names: names.iter().map(|name| (*name).to_owned()).collect(), trouble }
    }

    #[test]
    fn why_shows_records_of_its_machine_by_any_name_and_no_other() {
        let records = RancherRecords {
            troubles: vec![named(&["w-3", "host-3"]), named(&["w-33"])],
            ..RancherRecords::default()
        };
        for (name, node, expected) in
            [("vm-1", Some("w-3"), 1), ("host-3", None, 1), ("w-3", Some("w-33"), 2), ("vm-1", None, 0)]
        {
            assert_eq!(
                records.clone().of(&fixture::machine(name, node)).troubles.len(),
                expected,
                "{name} {node:?}"
            );
        }
        assert_eq!(records.of_all().troubles.len(), 2, "the status report shows all");
    }
}
