//! Machines that Rancher provisions the modern way (RKE2, K3s): how far each came, and what it waits for. Only read.
//!
//! ```text
//!  Machine: infrastructure ─▶ check-in ─▶ plan ─▶ probes ─▶ node ─▶ ready
//!           └ InfrastructureReady  └ BootstrapReady  └ PlanApplied  └ Reconciled  └ nodeRef  └ NodeHealthy
//! ```
//!
//! The stage is the first one whose proof is missing; the cause is what the conditions say of it, put into one of the waits
//! that Rancher's planner knows. A plan's secret adds whether the plan was applied, how often it failed, and which probe
//! does not pass. The plan itself, and what it printed on the machine, are hashed or passed over and never kept: they hold
//! credentials.

use std::collections::BTreeMap;

use base64::Engine as _;
use base64::engine::general_purpose::STANDARD;
use serde::Deserialize;

use crate::ask::{ApiClient, Ask};
use crate::doc::{self, ConditionDoc, Meta};
use crate::model::{Condition, Conditions, Unread, UnreadKind};
use crate::reading;

/// How far a machine came.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Debug)]
pub enum Stage {
    /// There is no machine yet.
    Infrastructure,
    /// Its agent has not called.
    CheckIn,
    /// Its plan is not applied.
    Plan,
    /// It is applied, and something on it is not healthy.
    Probes,
    /// It has no Node.
    Node,
    /// Its Node is not Ready.
    NotReady,
    /// It is on its way out.
    Deleting,
    /// It is there.
    Ready,
}

impl Stage {
    /// As a word.
    pub const fn word(self) -> &'static str {
        match self {
            Self::Infrastructure => "infrastructure",
            Self::CheckIn => "check-in",
            Self::Plan => "plan",
            Self::Probes => "probes",
            Self::Node => "node",
            Self::NotReady => "not-ready",
            Self::Deleting => "deleting",
            Self::Ready => "ready",
        }
    }

    /// What to look at.
    const fn advice(self) -> &'static str {
        match self {
            Self::Infrastructure => {
                "look at its infrastructure object: failureReason, failureMessage, and the job that makes it"
            }
            Self::CheckIn => {
                "on the machine: systemctl status rancher-system-agent; can it reach the server, and is its token a current one?"
            }
            Self::Plan => {
                "on the machine: journalctl -u rancher-system-agent; what failed stands there, and in the plan secret's \
                           failed-output"
            }
            Self::Probes => "on the machine: the service whose probe does not pass",
            Self::Node => {
                "on the machine: journalctl -u rke2-server, rke2-agent, k3s or k3s-agent; it did not register"
            }
            Self::NotReady => "look at the Node's conditions: kubectl describe node",
            Self::Deleting => {
                "look at what it waits for: a drain, the etcd member's removal, or the machine's own end"
            }
            Self::Ready => "nothing",
        }
    }
}

/// What a plan's secret says, without the plan.
#[derive(Clone, PartialEq, Eq, Debug, Default)]
pub struct PlanState {
    /// Whether the plan is the one that was applied; `None` when it cannot be told.
    pub is_applied: Option<bool>,
    /// Whether it is the one that failed.
    pub has_failed: bool,
    /// How often it failed.
    pub failures: Option<u64>,
    /// How often it may.
    pub failures_max: Option<u64>,
    /// Probes that do not pass.
    pub unhealthy: Vec<String>,
}

/// A machine and how far it came.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct MachineState {
    /// Its namespace.
    pub namespace: String,
    /// Its name.
    pub name: String,
    /// The cluster that it is for.
    pub cluster: String,
    /// Its phase, as it is written.
    pub phase: String,
    /// Its Node.
    pub node: Option<String>,
    /// How far it came.
    pub stage: Stage,
    /// Why not further: what the conditions say, without line breaks.
    pub cause: String,
    /// What to look at.
    pub advice: &'static str,
    /// What its plan's secret says, where it was read.
    pub plan: Option<PlanState>,
}

#[derive(Default, Deserialize)]
#[serde(default)]
struct MachineDoc {
    metadata: Meta,
    spec: MachineSpec,
    status: MachineStatus,
}

#[derive(Default, Deserialize)]
#[serde(default, rename_all = "camelCase")]
struct MachineSpec {
    cluster_name: String,
    bootstrap: Bootstrap,
}

#[derive(Default, Deserialize)]
#[serde(default, rename_all = "camelCase")]
struct Bootstrap {
    config_ref: Option<Reference>,
}

#[derive(Default, Deserialize)]
#[serde(default)]
struct Reference {
    name: String,
}

#[derive(Default, Deserialize)]
#[serde(default, rename_all = "camelCase")]
struct MachineStatus {
    phase: String,
    node_ref: Option<Reference>,
    conditions: Vec<ConditionDoc>,
}

#[derive(Default, Deserialize)]
#[serde(default)]
struct SecretDoc {
    metadata: Meta,
    /// `null` and "not there" are the same.
    data: Option<BTreeMap<String, String>>,
}

#[derive(Default, Deserialize)]
#[serde(default)]
struct Probe {
    healthy: bool,
}

/// A machine as it was read, with the name of its plan's secret.
struct Read {
    state: MachineState,
    plan: Option<String>,
    conditions: Conditions,
}

/// Every machine of the modern way, by namespace and name; `with_plans` reads their plans' secrets as well.
///
/// # Errors
/// When machines cannot be read. An API server without such machines has none, which is no error.
pub async fn machines(
    management: &impl ApiClient,
    with_plans: bool,
) -> Result<(Vec<MachineState>, Vec<Unread>), Unread> {
    let decode = |text: &str| serde_json::from_str::<MachineDoc>(text).map(|doc| Some(read(doc)));
    let listed = reading::list(management, &Ask::Machines, decode).await?;
    let mut unread: Vec<Unread> = listed
        .garbled
        .into_iter()
        .map(|name| Unread {
            what: format!("decode the machine {name}"),
            why: "a field of it has an unknown form".to_owned(),
            kind: UnreadKind::Garbled,
        })
        .collect();
    let mut all = listed.items;
    if with_plans {
        let namespaces: std::collections::BTreeSet<String> =
            all.iter().map(|read| read.state.namespace.clone()).collect();
        for namespace in namespaces {
            let decode = |text: &str| {
                serde_json::from_str::<SecretDoc>(text)
                    .map(|doc| Some((doc.metadata.name.clone(), plan(&doc))))
            };
            match reading::list(management, &Ask::Plans(namespace.clone()), decode).await {
                Ok(plans) => {
                    unread.extend(plans.garbled.into_iter().map(|name| Unread {
                        what: format!("decode the plan secret {namespace}/{name}"),
                        why: "a field of it has an unknown form".to_owned(),
                        kind: UnreadKind::Garbled,
                    }));
                    let plans: BTreeMap<String, PlanState> = plans.items.into_iter().collect();
                    let here = all.iter_mut().filter(|read| read.state.namespace == namespace);
                    for read in here {
                        read.state.plan = read.plan.as_ref().and_then(|name| plans.get(name)).cloned();
                    }
                }
                Err(why) => unread.push(why),
            }
        }
    }
    let mut states: Vec<MachineState> = all.into_iter().map(judged).collect();
    states.sort_by(|a, b| (&a.namespace, &a.name).cmp(&(&b.namespace, &b.name)));
    Ok((states, unread))
}

fn read(doc: MachineDoc) -> Read {
    let meta = doc.metadata;
    let deleting = !meta.deleted.is_empty();
    let state = MachineState {
        namespace: meta.namespace,
        name: meta.name,
        cluster: doc.spec.cluster_name,
        phase: doc.status.phase,
        node: doc.status.node_ref.map(|node| node.name),
        stage: if deleting { Stage::Deleting } else { Stage::Ready },
        cause: String::new(),
        advice: "",
        plan: None,
    };
    let plan = doc.spec.bootstrap.config_ref.map(|bootstrap| format!("{}-machine-plan", bootstrap.name));
    Read { state, plan, conditions: doc::conditions(doc.status.conditions) }
}

/// The first stage whose proof is missing, and what is said of it.
fn judged(read: Read) -> MachineState {
    let Read { mut state, conditions, .. } = read;
    let at = |kind: &str| conditions.get(kind).filter(|condition| condition.status != "True");
    let plan_missing =
        state.plan.as_ref().is_some_and(|plan| plan.is_applied == Some(false) || plan.has_failed);
    let (stage, said) = if state.stage == Stage::Deleting {
        (Stage::Deleting, conditions.get("Reconciled"))
    } else if let Some(said) = at("InfrastructureReady") {
        (Stage::Infrastructure, Some(said))
    } else if let Some(said) = at("BootstrapReady") {
        (Stage::CheckIn, Some(said))
    } else if let Some(said) = at("PlanApplied") {
        (of_wait(&said.message).unwrap_or(Stage::Plan), Some(said))
    } else if plan_missing {
        (Stage::Plan, conditions.get("Reconciled"))
    } else if let Some(said) = at("Reconciled") {
        (of_wait(&said.message).unwrap_or(Stage::Probes), Some(said))
    } else if state.node.is_none() {
        (Stage::Node, at("NodeHealthy").or_else(|| at("Ready")))
    } else if let Some(said) = at("NodeHealthy").or_else(|| at("Ready")) {
        (Stage::NotReady, Some(said))
    } else {
        (Stage::Ready, None)
    };
    state.stage = stage;
    state.cause = words(said, state.plan.as_ref());
    state.advice = stage.advice();
    state
}

/// The planner's waits, each of which belongs to a stage.
fn of_wait(message: &str) -> Option<Stage> {
    const WAITS: [(&str, Stage); 9] = [
        ("waiting for infrastructure ready", Stage::Infrastructure),
        ("creating machine provision job", Stage::Infrastructure),
        ("failed creating server", Stage::Infrastructure),
        ("waiting for agent to check in", Stage::CheckIn),
        ("waiting for plan to be applied", Stage::Plan),
        ("failure while applying plan", Stage::Plan),
        ("error applying plan", Stage::Plan),
        ("waiting for probes", Stage::Probes),
        ("waiting for kubelet to update", Stage::Probes),
    ];
    WAITS.iter().find(|(text, _)| message.contains(text)).map(|(_, stage)| *stage)
}

fn words(said: Option<&Condition>, plan: Option<&PlanState>) -> String {
    let mut parts = Vec::new();
    if let Some(said) = said {
        let text = [said.reason.as_str(), said.message.as_str()];
        parts.extend(text.into_iter().filter(|text| !text.is_empty()).map(str::to_owned));
    }
    if let Some(plan) = plan {
        if plan.has_failed {
            let most = plan.failures_max.map_or_else(String::new, |most| format!(" of {most}"));
            parts.push(format!("its plan failed {}{most} times", plan.failures.unwrap_or(1)));
        } else if plan.is_applied == Some(false) {
            parts.push("its newest plan is not applied".to_owned());
        }
        if !plan.unhealthy.is_empty() {
            parts.push(format!("probes that do not pass: {}", plan.unhealthy.join(", ")));
        }
    }
    parts.join(": ")
}

/// A plan's secret without the plan: its checksum is compared, its counters and probes are read.
fn plan(secret: &SecretDoc) -> PlanState {
    let bytes = |key: &str| {
        secret.data.as_ref().and_then(|data| data.get(key)).and_then(|value| STANDARD.decode(value).ok())
    };
    let text = |key: &str| {
        bytes(key).and_then(|bytes| String::from_utf8(bytes).ok()).map(|text| text.trim().to_owned())
    };
    let number = |key: &str| text(key).and_then(|text| text.parse().ok());
    let checksum =
        bytes("plan").map(|plan| hex(aws_lc_rs::digest::digest(&aws_lc_rs::digest::SHA256, &plan).as_ref()));
    let probes: BTreeMap<String, Probe> =
        bytes("probe-statuses").and_then(|bytes| serde_json::from_slice(&bytes).ok()).unwrap_or_default();
    let applied = text("applied-checksum");
    PlanState {
        is_applied: checksum.as_ref().map(|checksum| applied.as_ref() == Some(checksum)),
        has_failed: checksum.is_some() && text("failed-checksum") == checksum && applied != checksum,
        failures: number("failure-count"),
        failures_max: number("failure-threshold").or_else(|| number("max-failures")),
        unhealthy: probes.into_iter().filter(|(_, probe)| !probe.healthy).map(|(name, _)| name).collect(),
    }
}

fn hex(bytes: &[u8]) -> String {
    bytes.iter().map(|byte| format!("{byte:02x}")).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    fn machine(status: &str) -> MachineState {
        let text = format!(
            r#"{{"metadata":{{"name":"w-1","namespace":"fleet-default"}},
                "spec":{{"clusterName":"shop","bootstrap":{{"configRef":{{"name":"w-1"}}}}}},"status":{status}}}"#
        );
        judged(read(serde_json::from_str(&text).unwrap()))
    }

    fn unready(kind: &str, message: &str) -> String {
        format!(r#"{{"conditions":[{{"type":"{kind}","status":"False","message":"{message}"}}]}}"#)
    }

    #[test]
    fn a_machine_is_at_the_first_stage_whose_proof_is_missing() {
        for (status, stage) in [
            (unready("InfrastructureReady", "waiting for infrastructure ready"), Stage::Infrastructure),
            (
                unready("BootstrapReady", "waiting for agent to check in and apply initial plan"),
                Stage::CheckIn,
            ),
            (unready("PlanApplied", "error applying plan -- check logs"), Stage::Plan),
            (unready("Reconciled", "waiting for probes: kubelet, etcd"), Stage::Probes),
            (unready("Reconciled", "waiting for agent to check in and apply initial plan"), Stage::CheckIn),
            (r#"{"conditions":[]}"#.to_owned(), Stage::Node),
            (
                r#"{"nodeRef":{"name":"w-1"},"conditions":[{"type":"NodeHealthy","status":"Unknown"}]}"#
                    .to_owned(),
                Stage::NotReady,
            ),
            (r#"{"phase":"Running","nodeRef":{"name":"w-1"}}"#.to_owned(), Stage::Ready),
        ] {
            assert_eq!(machine(&status).stage, stage, "{status}");
        }
    }

    #[test]
    fn plan_keeps_only_checksum_state_counters_and_probes() {
        let secret = |applied: &str, failed: &str| {
            let data = [
                ("plan", "s3cret-canary"),
                ("applied-checksum", applied),
                ("failed-checksum", failed),
                ("failed-output", "s3cret-canary"),
                ("failure-count", "3"),
                ("probe-statuses", r#"{"kubelet":{"healthy":true},"etcd":{"healthy":false}}"#),
            ];
            let data = data.into_iter().map(|(key, value)| (key.to_owned(), STANDARD.encode(value)));
            plan(&SecretDoc { metadata: Meta::default(), data: Some(data.collect()) })
        };
        let sum = hex(aws_lc_rs::digest::digest(&aws_lc_rs::digest::SHA256, b"s3cret-canary").as_ref());
        let applied = secret(&sum, "");
        assert_eq!((applied.is_applied, applied.has_failed), (Some(true), false));
        let failed = secret("older", &sum);
        assert_eq!((failed.is_applied, failed.has_failed, failed.failures), (Some(false), true, Some(3)));
        assert_eq!(failed.unhealthy, ["etcd"]);
        assert!(!format!("{failed:?}").contains("canary"));
    }
}
