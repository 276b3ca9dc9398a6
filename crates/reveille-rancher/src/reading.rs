//! A look: which requests it sends, in which order, and how their answers become a sample.
//!
//! ```text
//!  clusters ─▶ for each: Nodes ─▶ agent pods ─▶ records            what is missing stays missing, with the reason
//!              (downstream, where there is a client)
//! ```
//!
//! Nodes are read before records. A machine that joins meanwhile then has a record without a Node that we saw, and no finding
//! rests on that. The other order would show a Node without a record. Lists come in pages, with an end to their number; a list
//! that is not read to its end counts as not read. The module judges nothing.

use std::collections::BTreeMap;

use serde::Deserialize;
use serde_json::value::RawValue;

use crate::ask::{ApiClient, Ask, Given, Refused};
use crate::doc::{ClusterDoc, Meta, NodeDoc, PodDoc, RecordDoc};
use crate::model::{AgentPod, Cluster, ClusterId, Node, Record, Sample, Unread, UnreadKind};
use crate::rights;
use crate::stamp::ServerTime;

/// Pages of one list at most: 5,000 records, 12,500 Nodes.
const PAGES_MAX: usize = 50;

#[derive(Deserialize)]
struct List<'a> {
    #[serde(default)]
    metadata: ListMeta,
    #[serde(borrow, default)]
    items: Option<Vec<&'a RawValue>>,
}

#[derive(Default, Deserialize)]
struct ListMeta {
    #[serde(rename = "continue", default)]
    next: Option<String>,
}

#[derive(Deserialize)]
struct Headed {
    metadata: Meta,
}

/// A list that was read to its end.
pub struct Listed<T> {
    /// Its items.
    pub items: Vec<T>,
    /// Names of those that could not be decoded.
    pub garbled: Vec<String>,
    /// The API server's clock at the last page.
    pub server_now: Option<ServerTime>,
}

/// Reads a whole list.
///
/// # Errors
/// When any page of it cannot be read, or it has too many.
pub(crate) async fn list<T>(
    client: &impl ApiClient,
    ask: &Ask,
    decode: impl Fn(&str) -> serde_json::Result<Option<T>>,
) -> Result<Listed<T>, Unread> {
    let mut listed = Listed { items: Vec::new(), garbled: Vec::new(), server_now: None };
    let mut next: Option<String> = None;
    for _ in 0..PAGES_MAX {
        let given = send(client, ask, next.as_deref()).await.map_err(|refused| unread(ask, &refused))?;
        listed.server_now = given.date.as_deref().and_then(ServerTime::of_header).or(listed.server_now);
        let page: List<'_> = serde_json::from_slice(&given.body).map_err(|error| Unread {
            what: ask.words(),
            // The parser's own words quote the answer, however long.
            why: format!("the answer cannot be read (line {}, column {})", error.line(), error.column()),
            kind: UnreadKind::Garbled,
        })?;
        for raw in page.items.unwrap_or_default() {
            match decode(raw.get()) {
                Ok(item) => listed.items.extend(item),
                Err(_) => {
                    let name = serde_json::from_str::<Headed>(raw.get()).map(|headed| headed.metadata.name);
                    listed.garbled.push(name.unwrap_or_else(|_| "nameless".to_owned()));
                }
            }
        }
        next = page.metadata.next.filter(|next| !next.is_empty());
        if next.is_none() {
            return Ok(listed);
        }
    }
    let why = format!("there are more than {PAGES_MAX} pages of them");
    Err(Unread { what: ask.words(), why, kind: UnreadKind::Failed })
}

/// Reads one thing; `None` when the API server itself says that it is not there.
pub(crate) async fn one<T>(
    client: &impl ApiClient,
    ask: &Ask,
    decode: impl Fn(&str) -> serde_json::Result<T>,
) -> Result<(Option<T>, Option<ServerTime>), Unread> {
    match send(client, ask, None).await {
        Ok(given) => {
            let garbled = || {
                let why = "the answer cannot be read".to_owned();
                Unread { what: ask.words(), why, kind: UnreadKind::Garbled }
            };
            let text = std::str::from_utf8(&given.body).map_err(|_| garbled())?;
            let item = decode(text).map_err(|_| garbled())?;
            Ok((Some(item), given.date.as_deref().and_then(ServerTime::of_header)))
        }
        Err(refused) if refused.missing => Ok((None, None)),
        Err(refused) => Err(unread(ask, &refused)),
    }
}

async fn send(client: &impl ApiClient, ask: &Ask, next: Option<&str>) -> Result<Given, Refused> {
    let Some(request) = ask.request(next) else {
        let cause = "a name in it is none that Kubernetes allows".to_owned();
        return Err(Refused { cause, missing: false, code: None, may_have_happened: false });
    };
    client.send(request).await
}

fn unread(ask: &Ask, refused: &Refused) -> Unread {
    let mut why = refused.cause.clone();
    if refused.code == Some(403) {
        why.push_str(&format!(". It needs: {}; reveille rbac --rancher prints it", rights::needed(ask)));
    }
    let kind = if refused.code == Some(404) { UnreadKind::Missing } else { UnreadKind::Failed };
    Unread { what: ask.words(), why, kind }
}

/// All clusters, by id.
///
/// # Errors
/// When they cannot all be read.
pub async fn clusters(
    management: &impl ApiClient,
) -> Result<(BTreeMap<ClusterId, Cluster>, Option<ServerTime>), Unread> {
    let decode = |text: &str| serde_json::from_str(text).map(|doc: ClusterDoc| Some(doc.noun()));
    let listed = list(management, &Ask::Clusters, decode).await?;
    if let Some(name) = listed.garbled.first() {
        let why = format!("the cluster {name} cannot be decoded");
        return Err(Unread { what: Ask::Clusters.words(), why, kind: UnreadKind::Garbled });
    }
    let by_id = listed.items.into_iter().map(|cluster| (cluster.id.clone(), cluster)).collect();
    Ok((by_id, listed.server_now))
}

/// One cluster; `None` when there is none of that id.
///
/// # Errors
/// When it cannot be told.
pub async fn cluster(
    management: &impl ApiClient,
    id: &ClusterId,
) -> Result<(Option<Cluster>, Option<ServerTime>), Unread> {
    let decode = |text: &str| serde_json::from_str(text).map(ClusterDoc::noun);
    one(management, &Ask::Cluster(id.clone()), decode).await
}

/// A look at one cluster, through its own API server as well where there is a client to it.
pub async fn sample(
    management: &impl ApiClient,
    downstream: Option<&impl ApiClient>,
    cluster: Cluster,
    server_now: Option<ServerTime>,
) -> Sample {
    let mut sample = Sample { server_now, ..Sample::default() };
    match downstream {
        Some(client) => {
            sample.nodes = kept(nodes(client).await, &mut sample.unread);
            sample.pods = kept(pods(client).await, &mut sample.unread);
        }
        None => sample.unread.push(Unread {
            what: "list nodes".to_owned(),
            why: "the cluster's own API server was not named; --downstream KUBECONFIG does".to_owned(),
            kind: UnreadKind::NotNamed,
        }),
    }
    let decode = |text: &str| serde_json::from_str(text).map(|doc: RecordDoc| Some(doc.noun()));
    let ask = Ask::Records(cluster.id.clone());
    match list(management, &ask, decode).await {
        Ok(listed) => {
            sample.garbled = listed.garbled.len();
            for name in listed.garbled {
                let what = format!("decode the record {}/{name}", cluster.id);
                let why = "a field of it has an unknown form".to_owned();
                sample.unread.push(Unread { what, why, kind: UnreadKind::Garbled });
            }
            sample.server_now = listed.server_now.or(server_now);
            let by_name = |record: Record| (record.name.clone(), record);
            sample.records = Some(listed.items.into_iter().map(by_name).collect());
        }
        Err(unread) => sample.unread.push(unread),
    }
    sample.cluster = cluster;
    sample
}

type NodesByName = BTreeMap<reveille_core::model::id::NodeName, Node>;

async fn nodes(client: &impl ApiClient) -> Result<NodesByName, Unread> {
    let decode = |text: &str| serde_json::from_str(text).map(|doc: NodeDoc| Some(doc.noun()));
    let listed = list(client, &Ask::Nodes, decode).await?;
    whole(&listed, &Ask::Nodes)?;
    Ok(listed.items.into_iter().map(|node| (node.name.clone(), node)).collect())
}

async fn pods(client: &impl ApiClient) -> Result<BTreeMap<String, AgentPod>, Unread> {
    let decode = |text: &str| serde_json::from_str(text).map(PodDoc::agent);
    let listed = list(client, &Ask::Pods, decode).await?;
    whole(&listed, &Ask::Pods)?;
    Ok(listed.items.into_iter().map(|pod| (pod.name.clone(), pod)).collect())
}

/// A list with an item that cannot be decoded says nothing about what is not in it.
fn whole<T>(listed: &Listed<T>, ask: &Ask) -> Result<(), Unread> {
    match listed.garbled.first() {
        Some(name) => {
            let why = format!("{name} cannot be decoded");
            Err(Unread { what: ask.words(), why, kind: UnreadKind::Garbled })
        }
        None => Ok(()),
    }
}

fn kept<T>(read: Result<T, Unread>, unread: &mut Vec<Unread>) -> Option<T> {
    read.map_err(|why| unread.push(why)).ok()
}
