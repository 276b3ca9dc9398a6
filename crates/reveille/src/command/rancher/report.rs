//! The findings as a report; findings of one machine stand together.

use std::collections::{BTreeMap, BTreeSet};

use reveille_core::model::id::NodeName;
use reveille_rancher::judge::{Finding, compare};
use reveille_rancher::model::{Kind, Record, RecordName, Sample, Unread};
use reveille_rancher::modern::{MachineState, Stage};
use reveille_wire::report::{
    RancherClusterReport, RancherDifferenceReport, RancherEvidenceReport, RancherFindingReport,
    RancherMachineReport, RancherReport, RancherTroubleReport,
};

/// The whole report.
pub(super) fn whole(
    server: &str,
    clusters: Vec<RancherClusterReport>,
    machines: &[MachineState],
    unread: Vec<Unread>,
    wanted: Option<&str>,
) -> RancherReport {
    let is_named = |name: &str| clusters.iter().any(|cluster| cluster.name == name);
    let here: Vec<&MachineState> =
        machines.iter().filter(|machine| wanted.is_none() || is_named(&machine.cluster)).collect();
    RancherReport {
        server: server.to_owned(),
        machines_seen: count(here.len()),
        machines: here
            .into_iter()
            .filter(|machine| machine.stage != Stage::Ready)
            .map(machine_report)
            .collect(),
        clusters,
        unread: unread.iter().map(words).collect(),
    }
}

/// One cluster.
pub(super) fn cluster(sample: &Sample, found: &[Finding]) -> RancherClusterReport {
    let cluster = &sample.cluster;
    RancherClusterReport {
        id: cluster.id.0.clone(),
        name: if cluster.display_name.is_empty() {
            cluster.id.0.clone()
        } else {
            cluster.display_name.clone()
        },
        driver: cluster.driver.clone(),
        kind: match cluster.kind {
            Kind::Managed => "managed",
            Kind::Mirrored => "mirrored",
            Kind::Unset => "unset",
        }
        .to_owned(),
        records: sample.records.as_ref().map(|records| count(records.len())),
        garbled: count(sample.garbled),
        nodes: sample.nodes.as_ref().map(|nodes| count(nodes.len())),
        troubles: troubles(sample, found).into_iter().map(|named| named.trouble).collect(),
        unread: sample.unread.iter().map(words).collect(),
    }
}

/// What is wrong with one machine, and every name that it has.
#[derive(Clone, Debug)]
pub(super) struct Named {
    pub(super) names: BTreeSet<String>,
    pub(super) trouble: RancherTroubleReport,
}

fn count(length: usize) -> u32 {
    u32::try_from(length).unwrap_or(u32::MAX)
}

pub(super) fn words(unread: &Unread) -> String {
    format!("cannot {}: {}", unread.what, unread.why)
}

/// Findings that share a record or a Node belong to one machine.
pub(super) fn troubles(sample: &Sample, found: &[Finding]) -> Vec<Named> {
    let mut groups: Vec<(BTreeSet<RecordName>, Vec<&Finding>)> = Vec::new();
    for finding in found {
        let joins = |(records, others): &(BTreeSet<RecordName>, Vec<&Finding>)| {
            !records.is_disjoint(&finding.records)
                || finding.node.is_some() && others.iter().any(|other| other.node == finding.node)
        };
        match groups.iter_mut().find(|group| joins(group)) {
            Some((records, others)) => {
                records.extend(finding.records.iter().cloned());
                others.push(finding);
            }
            None => groups.push((finding.records.clone(), vec![finding])),
        }
    }
    groups.into_iter().map(|(records, findings)| trouble(sample, found, &records, &findings)).collect()
}

fn trouble(
    sample: &Sample,
    found: &[Finding],
    records: &BTreeSet<RecordName>,
    findings: &[&Finding],
) -> Named {
    let all: BTreeMap<&RecordName, &Record> = sample.records.iter().flatten().collect();
    let of_it: Vec<&Record> = records.iter().filter_map(|name| all.get(name).copied()).collect();
    let node = findings.iter().find_map(|finding| finding.node.clone());
    let its_node = node.as_ref().and_then(|name| sample.nodes.as_ref()?.get(name));
    let mut addresses: BTreeSet<String> = BTreeSet::new();
    for known in
        of_it.iter().flat_map(|record| &record.addresses).chain(its_node.iter().flat_map(|n| &n.addresses))
    {
        if known.kind.ends_with("IP") {
            addresses.insert(known.address.clone());
        }
    }
    // One comparison is enough: that of the first record that differs from a healthy one.
    let comparison = of_it.iter().find_map(|record| compare(sample, found, record));
    let differs = comparison.as_ref().map_or_else(Vec::new, |comparison| {
        let difference = |difference: &reveille_rancher::judge::Difference| RancherDifferenceReport {
            field: difference.field.to_owned(),
            healthy: difference.healthy.clone(),
            this: difference.this.clone(),
        };
        comparison.differences.iter().map(difference).collect()
    });
    let trouble = RancherTroubleReport {
        records: records.iter().map(|name| name.0.clone()).collect(),
        node: node.as_ref().map(|name| name.as_str().to_owned()),
        addresses: addresses.into_iter().collect(),
        findings: findings.iter().map(|finding| finding_report(finding)).collect(),
        sibling: comparison.map(|comparison| comparison.sibling.0),
        differs,
    };
    Named { names: names(node.as_ref(), &of_it), trouble }
}

/// The name of its Node, and its names in the records.
fn names(node: Option<&NodeName>, records: &[&Record]) -> BTreeSet<String> {
    let of_record = |record: &&Record| {
        let said = record.node().map(|name| name.as_str().to_owned());
        let rke = record.rke_node.as_ref().map(|rke| rke.hostname_override.clone());
        [said, rke, Some(record.requested_hostname.clone())].into_iter().flatten().collect::<Vec<_>>()
    };
    let own = node.map(|name| name.as_str().to_owned());
    let mut names: BTreeSet<String> = records.iter().flat_map(of_record).chain(own).collect();
    names.remove("");
    names
}

fn finding_report(finding: &Finding) -> RancherFindingReport {
    let advice = finding.predicate.advice();
    let evidence = |evidence: &reveille_rancher::judge::Evidence| RancherEvidenceReport {
        of: evidence.of.clone(),
        field: evidence.field.clone(),
        value: evidence.value.clone(),
    };
    RancherFindingReport {
        predicate: finding.predicate.code().to_owned(),
        certainty: finding.certainty.word().to_owned(),
        says: finding.says.clone(),
        evidence: finding.evidence.iter().map(evidence).collect(),
        means: advice.means.to_owned(),
        first: advice.first.to_owned(),
        never: advice.never.to_owned(),
    }
}

pub(super) fn machine_report(machine: &MachineState) -> RancherMachineReport {
    RancherMachineReport {
        namespace: machine.namespace.clone(),
        name: machine.name.clone(),
        cluster: machine.cluster.clone(),
        node: machine.node.clone(),
        phase: machine.phase.clone(),
        stage: machine.stage.word().to_owned(),
        cause: machine.cause.clone(),
        first: machine.advice.to_owned(),
    }
}
