//! A cluster without a cloud, behind the interface that the program has for clouds.
//!
//! ```text
//!  Source ─▶ /apis: which kinds are served ─▶ lists of records ┐
//!  Source ─▶ Nodes with labels ────────────────────────────────┴▶ inventory ─▶ CloudSnapshot, Answer, Inventory
//! ```
//!
//! Everything here reads. A call is refused: what could be done to a machine is its owner's, or its cloud's, and the roster lists
//! none. A listing is whole or void: a machine that it left out by mistake would seem to be gone. Only a person who looks once,
//! and may not list a kind of record, is shown the Nodes without it, and told so.

use std::collections::{BTreeMap, BTreeSet};
use std::sync::{Arc, Mutex, PoisonError};
use std::time::{Duration, Instant};

use futures::future::BoxFuture;
use futures::{FutureExt as _, StreamExt as _, TryStreamExt as _, stream};
use reveille_cloud::inventory::Inventory;
use reveille_cloud::provider::{Listing, Project, Unwanted, Wants};
use reveille_core::diagnose::console::mask_secrets;
use reveille_core::effect::{Call, Look, Outcome, ReadError, ReadErrorKind};
use reveille_core::event::{Answer, CloudSnapshot};
use reveille_core::model::id::{InstanceId, NetworkId, PortId};
use reveille_core::model::instance::{Instance, Mark, Port, PortStatus};
use reveille_core::model::roster::{Claim, Roster};
use reveille_machines::inventory::{Found, LabelledNode, Machine, ReadProviderId, Reading, machines};
use reveille_machines::served::{self, GroupVersion, Served};
use reveille_machines::{MachineRecord, read};
use reveille_rancher::ask::escaped;

/// Where a cluster is read.
pub(crate) trait Source: Send + Sync {
    /// All Nodes with their labels.
    fn nodes(&self) -> BoxFuture<'static, Result<Vec<LabelledNode>, ReadError>>;
    /// The body that the API server answers a GET of this path with; `None`: it serves no such path.
    fn get(&self, path: String) -> BoxFuture<'static, Result<Option<Vec<u8>>, ReadError>>;
}

/// How a cluster calls its machines.
#[derive(Clone)]
pub(crate) struct Words {
    /// The mark of each machine.
    pub(crate) cluster: Mark,
    /// How provider IDs are read.
    pub(crate) read_id: ReadProviderId,
    /// A kind that is served and may not be listed voids the listing: a controller that does not see half of the machines must
    /// not say that all is well.
    pub(crate) is_strict: bool,
}

/// A cluster without a cloud.
#[derive(Clone)]
pub(crate) struct ClusterProject {
    source: Arc<dyn Source>,
    words: Words,
    shared: Arc<Mutex<Shared>>,
    /// The last reading, for looks: a thousand machines that are looked at within a moment cost one list.
    last: Arc<tokio::sync::Mutex<Option<(Instant, Arc<Vec<Machine>>)>>>,
}

/// What one reading leaves for the next one.
#[derive(Default)]
struct Shared {
    /// The kinds that the API server serves, and when it was asked.
    served: Option<(Instant, Vec<Served>)>,
    /// Kinds whose objects may not be read, and why.
    unread: BTreeMap<&'static str, Arc<str>>,
    /// Kinds whose objects were listed once: from then on a list without them is void, and not one without machines.
    listed: BTreeSet<&'static str>,
    /// Records that were left out of the last reading, and why.
    left_out: Option<String>,
    /// How many records were of Nodes in other clusters.
    elsewhere: usize,
    /// The rosters that the listings are for, and by which name.
    wants: Option<Wants>,
}

/// Kinds come with an installation, a few times in the life of a cluster.
const SERVED_FOR: Duration = Duration::from_secs(600);
/// A record has a few kilobytes.
const ITEMS_OF_A_PAGE: u32 = 100;
/// More pages than any cluster has: a server that goes on is going round in circles.
const PAGES_MAX: usize = 1000;
/// Kinds that are listed at the same time.
const LISTS_AT_ONCE: usize = 4;

impl ClusterProject {
    /// A cluster that is read there.
    pub(crate) fn new(source: Arc<dyn Source>, words: Words) -> Self {
        Self { source, words, shared: Arc::default(), last: Arc::default() }
    }

    /// All machines, read now.
    ///
    /// # Errors
    /// When Nodes, or records that may be read, cannot be read completely.
    pub(crate) async fn machines(&self) -> Result<Vec<Machine>, ReadError> {
        let (nodes, records) = futures::try_join!(self.source.nodes(), self.records())?;
        let Words { cluster, read_id, .. } = self.words.clone();
        let found = machines(&Reading { nodes: &nodes, records: &records, cluster, read_id });
        self.with(|shared| {
            shared.left_out = left_out(&found);
            if std::mem::replace(&mut shared.elsewhere, found.elsewhere) != found.elsewhere {
                tracing::info!(records = found.elsewhere, "machine records of other clusters are left out");
            }
        });
        Ok(found.machines.into_iter().map(|machine| self.claimed(machine)).collect())
    }

    /// Without secrets in what its owner says of it, and without the cluster's mark where no pool claims it: such a machine is of
    /// no roster, and nothing is said of it.
    fn claimed(&self, mut machine: Machine) -> Machine {
        let is_claimed = |wants: &Wants| {
            let claim = |(roster, cloud): &(_, _)| Roster::claim(roster, cloud, &machine.instance);
            wants.iter().map(claim).any(|claim| matches!(claim, Claim::Pool(_) | Claim::Contested(_)))
        };
        let is_wanted = self.with(|shared| shared.wants.as_ref().is_none_or(is_claimed));
        let instance = Arc::make_mut(&mut machine.instance);
        if !is_wanted {
            Arc::make_mut(&mut instance.marks).remove(&self.words.cluster);
        }
        if let Some(fault) = &mut instance.fault {
            fault.message = masked(&fault.message);
        }
        if let Some(group) =
            instance.hosting.as_mut().and_then(|hosting| Arc::make_mut(hosting).group.as_mut())
        {
            group.word = masked(&group.word);
        }
        machine
    }

    /// Says how many records of the last reading were of Nodes in other clusters, where there were any.
    pub(crate) fn elsewhere(&self) -> Option<String> {
        let count = self.with(|shared| shared.elsewhere);
        (count > 0).then(|| {
            format!("{count} machine records are of other clusters; their Nodes are there: look with their kubeconfigs")
        })
    }

    /// The kinds of records that the API server serves.
    ///
    /// # Errors
    /// When it does not tell.
    pub(crate) async fn served(&self) -> Result<Vec<Served>, ReadError> {
        let known = self.with(|shared| shared.served.clone());
        if let Some((_, kinds)) = known.filter(|(at, _)| at.elapsed() < SERVED_FOR) {
            return Ok(kinds);
        }
        let groups = self.json("/apis".to_owned()).await?;
        if groups.is_none() && self.with(|shared| !shared.listed.is_empty()) {
            return Err(void("the API server tells no more which groups it serves"));
        }
        let groups = groups.unwrap_or_default();
        let mut resources: BTreeMap<GroupVersion, serde_json::Value> = BTreeMap::new();
        for group_version in served::wanted(&groups) {
            let listed = self.json(group_version.path()).await?;
            let listed = listed.ok_or_else(|| void(&format!("GET {}: not found", group_version.path())))?;
            resources.insert(group_version, listed);
        }
        let kinds = served::served(&groups, &resources);
        self.with(|shared| shared.served = Some((Instant::now(), kinds.clone())));
        Ok(kinds)
    }

    async fn records(&self) -> Result<Vec<Arc<MachineRecord>>, ReadError> {
        let kinds = self.served().await?;
        let lists = kinds.into_iter().map(|kind| async move { self.list(&kind).await });
        let lists: Vec<_> = stream::iter(lists).buffered(LISTS_AT_ONCE).try_collect().await?;
        Ok(lists.into_iter().flatten().collect())
    }

    /// The records of one kind; none where they may not be read.
    async fn list(&self, served: &Served) -> Result<Vec<Arc<MachineRecord>>, ReadError> {
        match self.list_all(served).await {
            // A right that is taken away ends no machine: what was listed once must be listed, or nothing is.
            Err(error) if error.kind == ReadErrorKind::Forbidden && self.is_left_out(served) => {
                self.with(|shared| {
                    if shared.unread.insert(&served.kind.name, error.text.clone()).is_none() {
                        tracing::warn!("{}", unread(&served.kind.name, &error.text));
                    }
                });
                Ok(Vec::new())
            }
            Err(error) => Err(error),
            Ok(records) => {
                self.with(|shared| {
                    shared.unread.remove(&*served.kind.name);
                    shared.listed.insert(&served.kind.name);
                });
                Ok(records)
            }
        }
    }

    fn is_left_out(&self, served: &Served) -> bool {
        !self.words.is_strict && self.with(|shared| !shared.listed.contains(&*served.kind.name))
    }

    async fn list_all(&self, served: &Served) -> Result<Vec<Arc<MachineRecord>>, ReadError> {
        let (mut records, mut names) = (Vec::new(), BTreeSet::new());
        let mut next: Option<String> = None;
        for page in 1..=PAGES_MAX {
            let path = page_path(served, next.as_deref());
            let Some(listed) = self.json(path).await? else {
                // The kind was served a moment ago. Whether it still is, the next listing asks.
                self.with(|shared| shared.served = None);
                return Err(incomplete(served, "the API server does not serve it any more"));
            };
            let items = listed.get("items").and_then(serde_json::Value::as_array);
            let items = items.ok_or_else(|| malformed(served, "it has no items"))?;
            for item in items {
                match read(served.kind, &served.version.name, item) {
                    Ok(record) => {
                        if !names.insert(record.full_name()) {
                            return Err(incomplete(
                                served,
                                &format!("page {page} repeats {}", record.full_name()),
                            ));
                        }
                        records.push(Arc::new(record));
                    }
                    // A machine that is left out would seem to be gone.
                    Err(error) => return Err(incomplete(served, &error.to_string())),
                }
            }
            let following = listed.pointer("/metadata/continue").and_then(serde_json::Value::as_str);
            match following.filter(|next| !next.is_empty()) {
                None => return Ok(records),
                Some(following) if next.as_deref() == Some(following) => {
                    return Err(incomplete(served, "a page names itself as the next"));
                }
                Some(following) => next = Some(following.to_owned()),
            }
        }
        Err(incomplete(served, "it does not end"))
    }

    async fn json(&self, path: String) -> Result<Option<serde_json::Value>, ReadError> {
        let Some(body) = self.source.get(path.clone()).await? else { return Ok(None) };
        let read = serde_json::from_slice(&body);
        read.map(Some).map_err(|error| ReadError {
            kind: ReadErrorKind::Malformed,
            text: Arc::from(format!("cluster: the answer to GET {path} is not JSON: {error}")),
            retry_after: None,
        })
    }

    fn with<T>(&self, change: impl FnOnce(&mut Shared) -> T) -> T {
        // Each change leaves the state whole, so a panic elsewhere cannot have broken it.
        change(&mut self.shared.lock().unwrap_or_else(PoisonError::into_inner))
    }

    async fn machine(&self, id: &InstanceId) -> Result<Option<Machine>, ReadError> {
        let mut last = self.last.lock().await;
        let machines = match &*last {
            Some((at, machines)) if at.elapsed() < READ_FOR => machines.clone(),
            _ => {
                let machines = Arc::new(self.machines().await?);
                *last = Some((Instant::now(), machines.clone()));
                machines
            }
        };
        drop(last);
        Ok(machines.iter().find(|machine| machine.instance.id == *id).cloned())
    }

    /// What its owner says that went wrong, as the lines of a log. That it waits explains nothing.
    async fn said(&self, id: &InstanceId) -> Result<Answer, ReadError> {
        let record = self.machine(id).await?.and_then(|machine| machine.record);
        let lines = record.map(|record| record.failure_lines()).unwrap_or_default();
        Ok(match lines.is_empty() {
            false => Answer::Console(masked(&lines.join("\n"))),
            true => Answer::NoConsole(Arc::from(NO_CONSOLE)),
        })
    }

    async fn answer(&self, look: &Look) -> Result<Answer, ReadError> {
        match look {
            Look::Instance(_, id) => {
                Ok(Answer::Instance(self.machine(id).await?.map(|machine| machine.instance)))
            }
            Look::Ports(_, id) => {
                let found = self.machine(id).await?;
                Ok(Answer::Ports(found.iter().map(|machine| Arc::new(port(&machine.instance))).collect()))
            }
            Look::Group(..) => Ok(Answer::Group(None)),
            Look::Router(..) => Ok(Answer::Router(None)),
            Look::Console(_, id) | Look::LogEvidence(_, id, _) => self.said(id).await,
            Look::Actions(..) => Ok(Answer::Actions(Vec::new())),
            Look::Roles(..) | Look::Node(_) | Look::NodeEvents(_) => Err(ReadError {
                kind: ReadErrorKind::Malformed,
                text: Arc::from("cluster: was asked for what only a cloud has"),
                retry_after: None,
            }),
        }
    }
}

/// One page of the list of a kind.
fn page_path(served: &Served, next: Option<&str>) -> String {
    let path = served::list_path(served.kind, &served.version.name);
    match next {
        None => format!("{path}?limit={ITEMS_OF_A_PAGE}"),
        Some(next) => format!("{path}?limit={ITEMS_OF_A_PAGE}&continue={}", escaped(next)),
    }
}

/// The network interface of a machine, as far as its Node tells of it: its addresses.
fn port(instance: &Instance) -> Port {
    Port {
        id: PortId::from(instance.id.as_str()),
        network: NetworkId::from("cluster"),
        addresses: instance.addresses.clone(),
        groups: Box::default(),
        pairs: Box::default(),
        security: false,
        status: PortStatus::Unknown,
        revision: 0,
    }
}

const NO_CONSOLE: &str = "the roster lists no cloud, so the console of its machines cannot be read";
const NO_CALL: &str = "the roster lists no cloud by which it could be done";

/// A reading serves looks for so long.
const READ_FOR: Duration = Duration::from_secs(3);

fn masked(text: &str) -> Arc<str> {
    Arc::from(mask_secrets(text))
}

/// What the operator must know of records that count for no machine.
fn left_out(found: &Found) -> Option<String> {
    let count = found.contested;
    (count > 0).then(|| {
        format!("{count} machine records are left out: each leads to a Node to which another one leads, too")
    })
}

fn unread(kind: &str, why: &str) -> String {
    format!("{kind} objects are left out: {why}. Allow it: reveille rbac --records | kubectl apply -f -")
}

fn malformed(served: &Served, what: &str) -> ReadError {
    let text = Arc::from(format!("cluster: the list of {} cannot be read: {what}", served.kind.name));
    ReadError { kind: ReadErrorKind::Malformed, text, retry_after: None }
}

fn void(what: &str) -> ReadError {
    ReadError {
        kind: ReadErrorKind::Unavailable,
        text: Arc::from(format!("cluster: {what}")),
        retry_after: None,
    }
}

fn incomplete(served: &Served, what: &str) -> ReadError {
    let text = Arc::from(format!("cluster: the list of {} is void: {what}", served.kind.name));
    ReadError { kind: ReadErrorKind::Incomplete, text, retry_after: None }
}

impl Project for ClusterProject {
    fn look(&self, look: Look) -> BoxFuture<'static, Result<Answer, ReadError>> {
        let project = self.clone();
        async move { project.answer(&look).await }.boxed()
    }

    fn perform(&self, _: Call) -> BoxFuture<'static, Outcome> {
        futures::future::ready(Outcome::Refused { text: Arc::from(NO_CALL) }).boxed()
    }

    fn lister(&self, wants: &Wants) -> Box<dyn Listing> {
        self.with(|shared| shared.wants = Some(wants.clone()));
        Box::new(self.clone())
    }

    fn survey(&self) -> BoxFuture<'static, Result<Inventory, ReadError>> {
        let project = self.clone();
        async move {
            let machines = project.machines().await?;
            let instances = machines.into_iter().map(|it| (it.instance.id.clone(), it.instance)).collect();
            Ok(Inventory { instances, ..Inventory::default() })
        }
        .boxed()
    }

    fn warning(&self) -> Option<String> {
        let all = self.with(|shared| {
            let said = shared.unread.iter().map(|(kind, why)| unread(kind, why));
            said.chain(shared.left_out.clone()).collect::<Vec<_>>()
        });
        (!all.is_empty()).then(|| all.join("; "))
    }
}

impl Listing for ClusterProject {
    fn list(&mut self, _: bool) -> BoxFuture<'_, Result<CloudSnapshot, ReadError>> {
        async move {
            let machines = self.machines().await?;
            let instances: Vec<_> = machines.into_iter().map(|machine| machine.instance).collect();
            let ports = instances.iter().map(|it| (it.id.clone(), Arc::new(port(it)))).collect();
            Ok(CloudSnapshot { instances, ports, groups: Some(Vec::new()), ..CloudSnapshot::default() })
        }
        .boxed()
    }

    /// Every machine of the cluster carries its mark.
    fn list_with_strangers(&mut self) -> BoxFuture<'_, Result<(CloudSnapshot, Unwanted), ReadError>> {
        async move { Ok((self.list(true).await?, Vec::new())) }.boxed()
    }
}

#[cfg(test)]
mod tests;
