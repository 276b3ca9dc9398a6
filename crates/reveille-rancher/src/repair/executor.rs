//! The requests of a repair: what a look reads, and how each act is carried out. One call each, nothing repeated.
//!
//! ```text
//!  see ─▶ cluster, snapshots, Nodes, agents, pods on the Node, records ─▶ Observation          perform(Act) ─▶ Outcome
//! ```
//!
//! A write is made on an object that was read a moment before and still is the intended one: the module compares uid and
//! revision, and so does the API server. A record is edited as a whole and put back as it came, with the fields that we do not
//! know. Its keys pass through and are neither looked at nor kept. The outcome is "I do not know" whenever a call may have
//! arrived and its answer did not.
//!
//! This module neither reads nor removes members of etcd: [`super::etcd`] does both, where the roster says where they are.

use reveille_core::model::id::NodeName;
use reveille_core::model::signs::PAUSE;
use reveille_core::model::time::Span;
use serde::Deserialize;
use serde_json::{Value, json};

use super::observation::{Observation, Pod, PodKind, PodRef};
use super::{Act, Draft, Order, Outcome, volumes};
use crate::ask::{ApiClient, Ask, Place, Refused, Request, Verb, safe};
use crate::doc::{ConditionDoc, Meta, conditions};
use crate::model::{RecordName, Sample};
use crate::reading;
use crate::stamp::ServerTime;

/// What keeps copies of records, for people: a name and a text without secrets.
pub trait Keep {
    /// Keeps it.
    ///
    /// # Errors
    /// Why not.
    fn keep(&mut self, record: &RecordName, text: &str) -> Result<(), String>;
}

/// A look with all that a repair rests on.
///
/// # Errors
/// When Nodes, records or the cluster could not be read: nothing is decided from less.
pub async fn see(
    management: &impl ApiClient,
    downstream: &impl ApiClient,
    order: &Order,
    hands_off: Option<String>,
) -> Result<Observation, String> {
    let said = |unread: crate::model::Unread| format!("cannot {}: {}", unread.what, unread.why);
    let (cluster, server_now) = reading::cluster(management, &order.cluster).await.map_err(said)?;
    let cluster = cluster.ok_or_else(|| format!("there is no cluster {}", order.cluster))?;
    let snapshot_age = snapshot_age(management, order, server_now).await;
    let pods = pods_on(downstream, &order.node).await;
    let volumes = volumes::on(downstream, &order.node).await;
    let sample: Sample = reading::sample(management, Some(downstream), cluster, server_now).await;
    if sample.nodes.is_none() || sample.records.is_none() {
        let why = sample.unread.into_iter().map(said).collect::<Vec<_>>().join("; ");
        return Err(why);
    }
    let mut observation = Observation { sample, pods, volumes, members: None, snapshot_age, hands_off };
    let is_paused = observation.node(order).is_some_and(|node| node.is_paused);
    observation.hands_off =
        observation.hands_off.or_else(|| is_paused.then(|| format!("its Node is annotated {PAUSE}")));
    Ok(observation)
}

#[derive(Default, Deserialize)]
#[serde(default)]
struct BackupDoc {
    metadata: Meta,
    status: BackupStatus,
}

#[derive(Default, Deserialize)]
#[serde(default)]
struct BackupStatus {
    conditions: Option<Vec<ConditionDoc>>,
}

/// How old the newest snapshot is that was completed.
async fn snapshot_age(management: &impl ApiClient, order: &Order, now: Option<ServerTime>) -> Option<Span> {
    let decode = |text: &str| {
        let doc: BackupDoc = serde_json::from_str(text)?;
        let completed = conditions(doc.status.conditions.unwrap_or_default()).remove("Completed");
        let is_complete = completed.is_some_and(|condition| condition.status == "True");
        Ok(if is_complete { ServerTime::of_stamp(&doc.metadata.created) } else { None })
    };
    let listed = reading::list(management, &Ask::Backups(order.cluster.clone()), decode).await.ok()?;
    let now = listed.server_now.or(now)?;
    listed.items.into_iter().map(|made| now.since(made)).min()
}

#[derive(Default, Deserialize)]
#[serde(default)]
struct PodDoc {
    metadata: PodMeta,
    spec: PodSpec,
    status: PodStatus,
}

#[derive(Default, Deserialize)]
#[serde(default, rename_all = "camelCase")]
struct PodMeta {
    name: String,
    namespace: String,
    uid: String,
    annotations: Option<std::collections::BTreeMap<String, String>>,
    owner_references: Option<Vec<Owner>>,
}

#[derive(Default, Deserialize)]
#[serde(default)]
struct Owner {
    kind: String,
    controller: Option<bool>,
}

#[derive(Default, Deserialize)]
#[serde(default)]
struct PodSpec {
    volumes: Option<Vec<Volume>>,
}

#[derive(Default, Deserialize)]
#[serde(default, rename_all = "camelCase")]
struct Volume {
    empty_dir: Option<serde::de::IgnoredAny>,
    host_path: Option<serde::de::IgnoredAny>,
}

#[derive(Default, Deserialize)]
#[serde(default)]
struct PodStatus {
    phase: String,
}

impl PodDoc {
    fn pod(self) -> Pod {
        let owner =
            self.metadata.owner_references.iter().flatten().find(|owner| owner.controller == Some(true));
        let is_mirror =
            self.metadata.annotations.iter().flatten().any(|(key, _)| key == "kubernetes.io/config.mirror");
        let has_ended = matches!(self.status.phase.as_str(), "Succeeded" | "Failed");
        let is_local = self
            .spec
            .volumes
            .iter()
            .flatten()
            .any(|volume| volume.empty_dir.is_some() || volume.host_path.is_some());
        let kind = match owner {
            _ if is_mirror || has_ended => PodKind::Staying,
            Some(owner) if owner.kind == "DaemonSet" => PodKind::Staying,
            None => PodKind::Unmanaged,
            Some(_) if is_local => PodKind::LocalData,
            Some(_) => PodKind::Movable,
        };
        let PodMeta { namespace, name, uid, .. } = self.metadata;
        Pod { at: PodRef { namespace, name, uid }, kind }
    }
}

async fn pods_on(downstream: &impl ApiClient, node: &str) -> Option<Vec<Pod>> {
    let decode = |text: &str| serde_json::from_str(text).map(|doc: PodDoc| Some(doc.pod()));
    let listed = reading::list(downstream, &Ask::PodsOn(NodeName::from(node)), decode).await.ok()?;
    listed.garbled.is_empty().then_some(listed.items)
}

/// Carries an act out.
pub async fn perform(
    management: &impl ApiClient,
    downstream: &impl ApiClient,
    order: &Order,
    act: &Act,
    keep: &mut impl Keep,
) -> Outcome {
    let done = match act {
        Act::Save { records } => save(management, order, records, keep).await,
        Act::Cordon { uid } => cordon(downstream, order, uid).await,
        Act::Evict { pods } => evict(downstream, pods).await,
        Act::RemoveMember { .. } => {
            Err(Outcome::Refused { why: "members of etcd are not removed from here".to_owned() })
        }
        Act::DeleteNode { uid } => {
            let path = safe(&order.node).map(|name| format!("/api/v1/nodes/{name}"));
            delete(downstream, Place::Downstream, path, &order.node, uid).await
        }
        Act::DeleteRecord { record, uid } => {
            let path = record_path(order, record);
            delete(management, Place::Management, path, &record.0, uid).await
        }
        Act::Write { record, uid, revision, draft } => {
            edit(management, order, record, (uid, revision), |value| write(value, draft)).await
        }
        Act::PutBack { record, uid, revision, .. } => {
            edit(management, order, record, (uid, revision), take_out).await
        }
    };
    done.unwrap_or_else(|outcome| outcome)
}

type Done = Result<Outcome, Outcome>;

fn record_path(order: &Order, record: &RecordName) -> Option<String> {
    let (cluster, name) = (safe(&order.cluster.0)?, safe(&record.0)?);
    Some(format!("/apis/management.cattle.io/v3/namespaces/{cluster}/nodes/{name}"))
}

async fn get(
    client: &impl ApiClient,
    place: Place,
    path: Option<String>,
    name: &str,
) -> Result<(String, Value), Outcome> {
    let target = path.ok_or_else(|| Outcome::Refused { why: format!("{name:?} cannot be a name") })?;
    let about = Some(name.to_owned());
    let request = Request { place, verb: Verb::Get, target: target.clone(), body: None, about };
    // A read that fails has changed nothing.
    let given = client.send(request).await.map_err(|refused| {
        if refused.missing { Outcome::Moved } else { Outcome::Failed { why: refused.cause } }
    })?;
    let value = serde_json::from_slice(&given.body)
        .map_err(|_| Outcome::Failed { why: format!("{name} cannot be read") })?;
    Ok((target, value))
}

fn outcome(refused: Refused, when_missing: Outcome) -> Outcome {
    let why = refused.cause;
    match refused.code {
        _ if refused.missing => when_missing,
        _ if refused.may_have_happened => Outcome::Unknown { why },
        Some(409 | 412) => Outcome::Moved,
        None | Some(401 | 408 | 429 | 503) => Outcome::Failed { why },
        Some(_) => Outcome::Refused { why },
    }
}

async fn put(client: &impl ApiClient, place: Place, target: String, name: &str, value: &Value) -> Done {
    let body = Some(value.to_string().into_bytes());
    let request = Request { place, verb: Verb::Put, target, body, about: Some(name.to_owned()) };
    client.send(request).await.map(|_| Outcome::Accepted).map_err(|refused| outcome(refused, Outcome::Moved))
}

async fn cordon(client: &impl ApiClient, order: &Order, uid: &str) -> Done {
    let path = safe(&order.node).map(|name| format!("/api/v1/nodes/{name}"));
    let (target, mut value) = get(client, Place::Downstream, path, &order.node).await?;
    if value["metadata"]["uid"] != uid {
        return Ok(Outcome::Moved);
    }
    if value["spec"]["unschedulable"] == true {
        return Ok(Outcome::AlreadySo);
    }
    value["spec"]["unschedulable"] = json!(true);
    put(client, Place::Downstream, target, &order.node, &value).await
}

/// Asks each to go; the first that may not says why, and the others are asked all the same.
async fn evict(client: &impl ApiClient, pods: &[PodRef]) -> Done {
    let mut worst = Outcome::Accepted;
    for pod in pods {
        let (Some(namespace), Some(name)) = (safe(&pod.namespace), safe(&pod.name)) else { continue };
        let body = json!({
            "apiVersion": "policy/v1", "kind": "Eviction",
            "metadata": {"name": name, "namespace": namespace},
            "deleteOptions": {"preconditions": {"uid": pod.uid}},
        });
        let request = Request {
            place: Place::Downstream,
            verb: Verb::Post,
            target: format!("/api/v1/namespaces/{namespace}/pods/{name}/eviction"),
            body: Some(body.to_string().into_bytes()),
            about: Some(name.to_owned()),
        };
        if let Err(refused) = client.send(request).await {
            match outcome(refused, Outcome::AlreadySo) {
                Outcome::AlreadySo | Outcome::Moved => {}
                Outcome::Failed { why } => {
                    worst = Outcome::Failed { why: format!("{namespace}/{name}: {why}") }
                }
                other => return Ok(other),
            }
        }
    }
    Ok(worst)
}

async fn delete(client: &impl ApiClient, place: Place, path: Option<String>, name: &str, uid: &str) -> Done {
    let target = path.ok_or_else(|| Outcome::Refused { why: format!("{name:?} cannot be a name") })?;
    let body = json!({"apiVersion": "v1", "kind": "DeleteOptions", "preconditions": {"uid": uid}});
    let body = Some(body.to_string().into_bytes());
    let request = Request { place, verb: Verb::Delete, target, body, about: Some(name.to_owned()) };
    client
        .send(request)
        .await
        .map(|_| Outcome::Accepted)
        .map_err(|refused| outcome(refused, Outcome::AlreadySo))
}

async fn edit(
    client: &impl ApiClient,
    order: &Order,
    record: &RecordName,
    (uid, revision): (&str, &str),
    change: impl FnOnce(&mut Value),
) -> Done {
    let (target, mut value) = get(client, Place::Management, record_path(order, record), &record.0).await?;
    if value["metadata"]["uid"] != uid || value["metadata"]["resourceVersion"] != revision {
        return Ok(Outcome::Moved);
    }
    change(&mut value);
    put(client, Place::Management, target, &record.0, &value).await
}

fn write(value: &mut Value, draft: &Draft) {
    let roles: Vec<&str> = draft.roles.iter().map(|role| role.word()).collect();
    value["spec"]["customConfig"] = json!({"address": draft.address});
    value["status"]["rkeNode"] = json!({
        "nodeName": draft.node_name, "hostnameOverride": draft.hostname, "address": draft.address,
        "port": "22", "user": "root", "role": roles,
    });
}

fn take_out(value: &mut Value) {
    for (part, field) in [("spec", "customConfig"), ("status", "rkeNode")] {
        if let Some(fields) = value[part].as_object_mut() {
            fields.remove(field);
        }
    }
}

async fn save(client: &impl ApiClient, order: &Order, records: &[RecordName], keep: &mut impl Keep) -> Done {
    for record in records {
        let (_, mut value) = get(client, Place::Management, record_path(order, record), &record.0).await?;
        without_secrets(&mut value);
        let text = serde_json::to_string_pretty(&value).unwrap_or_default();
        keep.keep(record, &text)
            .map_err(|why| Outcome::Refused { why: format!("cannot keep a copy: {why}") })?;
    }
    Ok(Outcome::Accepted)
}

/// Fields whose names say that they hold keys, tokens or plans, and what they hold; and who wrote what.
fn without_secrets(value: &mut Value) {
    const TELLING: [&str; 9] =
        ["ssh", "token", "password", "secret", "plan", "cert", "privatekey", "credential", "managedfields"];
    match value {
        Value::Object(fields) => {
            fields.retain(|key, _| {
                let key = key.to_ascii_lowercase();
                !TELLING.iter().any(|word| key.contains(word))
            });
            fields.values_mut().for_each(without_secrets);
        }
        Value::Array(items) => items.iter_mut().for_each(without_secrets),
        _ => {}
    }
}
