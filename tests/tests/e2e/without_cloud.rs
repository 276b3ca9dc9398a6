//! A cluster without a cloud: its Nodes, and claims as Karpenter writes them, on a real API server. Nothing is written there.

use std::process::Command;

use anyhow::{Context, Result, ensure};
use reveille_core::model::incident::FaultKind;
use reveille_core::record::Verdict;
use reveille_tests::lab::Lab;
use reveille_tests::process::{self, Ended};
use reveille_tests::reveille::Place;
use reveille_tests::wait::{s, until};
use serde_json::{Value, json};

/// The definition, cut down to what an API server needs to take objects (karpenter.sh_nodeclaims.yaml has the whole schema).
fn definition() -> Value {
    json!({
        "apiVersion": "apiextensions.k8s.io/v1", "kind": "CustomResourceDefinition",
        "metadata": {"name": "nodeclaims.karpenter.sh"},
        "spec": {
            "group": "karpenter.sh", "scope": "Cluster",
            "names": {"kind": "NodeClaim", "listKind": "NodeClaimList", "plural": "nodeclaims", "singular": "nodeclaim"},
            "versions": [{"name": "v1", "served": true, "storage": true, "schema": {"openAPIV3Schema": {
                "type": "object", "x-kubernetes-preserve-unknown-fields": true}}}]
        }
    })
}

/// A claim whose instance was launched and whose Node has not come.
fn claim(name: &str) -> Value {
    json!({
        "apiVersion": "karpenter.sh/v1", "kind": "NodeClaim",
        "metadata": {"name": name, "labels": {"karpenter.sh/nodepool": "default"}},
        "status": {
            "providerID": format!("kwok://{name}"),
            "conditions": [
                {"type": "Launched", "status": "True", "reason": "Launched", "message": "",
                 "lastTransitionTime": "2026-11-20T10:00:05Z"},
                {"type": "Registered", "status": "Unknown", "reason": "NodeNotFound",
                 "message": "Node not registered with cluster", "lastTransitionTime": "2026-11-20T10:00:05Z"}
            ]
        }
    })
}

/// The program as one runs it who has a kubeconfig and nothing else: no clouds.yaml, no keys, no roster.
fn alone(lab: &Lab, place: &Place, words: &[&str]) -> Result<Ended> {
    let folder = place.log.parent().context("the log has no folder")?;
    let mut command = Command::new(lab.reveille.program());
    command.args(words).current_dir(folder).env_clear().env("HOME", folder).env("NO_COLOR", "1");
    command.env("KUBECONFIG", &lab.rig.facts.kubernetes.proxy_kubeconfig);
    process::run(command, None, s(60))
}

/// Three machines of the crew and a claim: `status` tells of them without a roster, `init` writes one that looks, and `run` with
/// it tells of a kubelet that falls silent and is back. The API server gets not one write.
pub(crate) fn cluster_without_cloud_is_told_by_nodes_and_claims(lab: &mut Lab) -> Result<()> {
    let crew = lab.crew()?;
    let place = lab.place(&[&crew.roster("lone").pool("workers")])?;
    lab.kube.apply(&definition())?;
    until("the API server to take claims", s(30), || lab.kube.apply(&claim("claim-1")))?;
    lab.proxy.reset_calls()?;

    let status = alone(lab, &place, &["status", "--all"])?;
    ensure!(status.code == Some(1), "one machine has not joined: {status:?}");
    for part in ["crew-1", "crew-2", "crew-3", "claim-1", "never joined"] {
        ensure!(status.stdout.contains(part), "{part}: {status:?}");
    }
    let why = alone(lab, &place, &["why", "claim-1"])?;
    ensure!(why.stdout.contains("Node not registered with cluster"), "the owner's word is missing: {why:?}");
    let init = alone(lab, &place, &["init", "--file", "lone.alone.yaml", "--name", "lone"])?;
    ensure!(init.code == Some(0), "{init:?}");

    let file = place.log.with_file_name("lone.alone.yaml");
    let place = Place { rosters: vec![file], ..place };
    let running = lab.reveille.run(&place, &[])?;
    until("the controller to tell of the claim", s(60), || {
        place.ledger()?.newest("claim-1", FaultKind::NeverJoined).map(drop)
    })?;
    lab.rig.fault(&["node-silent", "crew-2"])?;
    until("the silent kubelet to be told", s(120), || {
        place.ledger()?.newest("crew-2", FaultKind::NotReady).map(drop)
    })?;
    lab.rig.lift(&["node-silent", "crew-2"])?;
    until("its recovery to be told", s(150), || {
        place.ledger()?.newest("crew-2", FaultKind::NotReady)?.ended(Verdict::Recovered)
    })?;
    lab.kube.ctl(&["delete", "nodeclaim", "claim-1"])?;
    until("the claim to be gone", s(120), || {
        let ledger = place.ledger()?;
        let incident = ledger.newest("claim-1", FaultKind::NeverJoined)?;
        ensure!(incident.verdict.is_some(), "it is open: {}", ledger.told());
        Ok(())
    })?;
    lab.proxy.calls()?.no_writes()?;
    ensure!(place.ledger()?.intents().next().is_none(), "{}", place.ledger()?.told());
    ensure!(running.stop()? == 0, "the controller did not end well");
    lab.kube.ctl(&["delete", "crd", "nodeclaims.karpenter.sh"]).map(drop)
}
