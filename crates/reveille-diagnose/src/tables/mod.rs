//! Facts that stand in the shape of a listing and in no single line: a row of `kubectl get csr`, two machines with one id.
//!
//! ```text
//!  line ─▶ a header? a row of the table that is open? a field of a listing? ─▶ Fact with the line that shows it
//! ```
//!
//! What a fact means is the catalogue's business: here is only what the table shows. One [`Listing`] reads one source; it keeps
//! bounded sets, so that a log that looks like a table costs no memory.

mod identity;
mod objects;
mod records;
mod versions;

use std::collections::{BTreeMap, BTreeSet};

use identity::Identity;
pub(crate) use identity::MachineId;
use objects::{Objects, Told};
use records::Columns;
use versions::Versions;

/// What a listing can show.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum Fact {
    /// A request for a client certificate is Pending.
    CsrPendingClient,
    /// A request for a serving certificate is Pending.
    CsrPendingServing,
    /// A node's request is Pending, and the table does not say for which certificate.
    CsrPendingNode,
    /// A request for a client certificate was denied, or could not be signed.
    CsrRefusedClient,
    /// A request for a client certificate is approved, and no signer signs it.
    CsrUnsignedClient,
    /// Every node of a listing is Ready.
    AllNodesReady,
    /// Some node of a listing is not Ready.
    SomeNodeNotReady,
    /// A node's kubelet is of a later minor version than a control plane's node of the same listing.
    KubeletNewer,
    /// A listing of system pods has none of any pod network.
    NoCniPod,
    /// Two machines show one machine id or system UUID.
    SameMachineId,
    /// Two machines answered `hostname` with one name.
    SameHostName,
    /// A node's provider id names another UUID than its system's.
    ProviderIdOfAnotherMachine,
    /// Interfaces with different MTUs.
    MtuDiffers,
    /// Every machine record or claim of a listing runs.
    AllMachinesWell,
    /// A machine record or claim names no instance.
    MachineNotMade,
    /// A machine record or claim has an instance, and no Node.
    MachineNotJoined,
    /// A machine record or claim has a Node and is not ready.
    MachineNotReady,
}

impl Fact {
    /// All of them.
    pub const ALL: [Self; 17] = [
        Self::CsrPendingClient,
        Self::CsrPendingServing,
        Self::CsrPendingNode,
        Self::CsrRefusedClient,
        Self::CsrUnsignedClient,
        Self::AllNodesReady,
        Self::SomeNodeNotReady,
        Self::KubeletNewer,
        Self::NoCniPod,
        Self::SameMachineId,
        Self::SameHostName,
        Self::ProviderIdOfAnotherMachine,
        Self::MtuDiffers,
        Self::AllMachinesWell,
        Self::MachineNotMade,
        Self::MachineNotJoined,
        Self::MachineNotReady,
    ];

    /// The name that the catalogue uses.
    pub const fn name(self) -> &'static str {
        match self {
            Self::CsrPendingClient => "csr-pending-client",
            Self::CsrPendingServing => "csr-pending-serving",
            Self::CsrPendingNode => "csr-pending-node",
            Self::CsrRefusedClient => "csr-refused-client",
            Self::CsrUnsignedClient => "csr-unsigned-client",
            Self::AllNodesReady => "all-nodes-ready",
            Self::SomeNodeNotReady => "some-node-not-ready",
            Self::KubeletNewer => "kubelet-newer",
            Self::NoCniPod => "no-cni-pod",
            Self::SameMachineId => "same-machine-id",
            Self::SameHostName => "same-host-name",
            Self::ProviderIdOfAnotherMachine => "provider-id-of-another-machine",
            Self::MtuDiffers => "mtu-differs",
            Self::AllMachinesWell => "all-machines-well",
            Self::MachineNotMade => "machine-not-made",
            Self::MachineNotJoined => "machine-not-joined",
            Self::MachineNotReady => "machine-not-ready",
        }
    }

    /// The fact of that name.
    pub fn from_name(name: &str) -> Option<Self> {
        Self::ALL.into_iter().find(|fact| fact.name() == name)
    }
}

/// A fact, and the line that shows it.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Shown {
    pub(crate) fact: Fact,
    pub(crate) line: u64,
    pub(crate) text: String,
}

/// Pods of pod networks, by a part of their names.
const POD_NETWORKS: [&str; 22] = [
    "flannel",
    "calico",
    "cilium",
    "weave",
    "canal",
    "kube-router",
    "antrea",
    "kindnet",
    "aws-node",
    "azure-cni",
    "azure-cns",
    "ovn",
    "multus",
    "kube-ovn",
    "romana",
    "contiv",
    "tigera",
    "netd",
    "gke-metadata",
    "anetd",
    "terway",
    "cni",
];
/// Words of headers and fields: a long log is looked at from such a word on.
pub(crate) const WORDS: [&str; 11] = [
    "requestor",
    "restarts",
    "roles",
    "providerid",
    "uuid",
    "machine-id",
    "machineid",
    "mtu",
    "phase",
    "capacity",
    "apiversion",
];
/// Rows of one table: what is longer is no table any more.
const ROWS_MAX: u64 = 5_000;
/// Rows, ids and lengths that are kept.
const KEPT_MAX: usize = 2_000;

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Table {
    None,
    Requests,
    Nodes,
    Pods,
    Records,
    Other,
}

/// Reads the listings of one source.
#[derive(Debug)]
pub(crate) struct Listing {
    table: Table,
    rows: u64,
    status_column: usize,
    ready: Option<(u64, String)>,
    /// Names of the nodes that a listing calls Ready, and not anything else anywhere.
    ready_names: BTreeMap<String, bool>,
    not_ready: Option<(u64, String)>,
    system_pods: BTreeSet<String>,
    system_pod: Option<(u64, String)>,
    pod_network: bool,
    identity: Identity,
    versions: Versions,
    system_uuids: Vec<String>,
    provider_ids: Vec<(u64, String, String)>,
    mtus: BTreeMap<u32, (u64, String)>,
    objects: Objects,
    columns: Columns,
    /// A record that is well, where none that is not was shown.
    well: Option<(u64, String)>,
    shown: Vec<Shown>,
}

impl Listing {
    pub(crate) fn new() -> Self {
        Self {
            table: Table::None,
            rows: 0,
            status_column: 0,
            ready: None,
            ready_names: BTreeMap::new(),
            not_ready: None,
            system_pods: BTreeSet::new(),
            system_pod: None,
            pod_network: false,
            identity: Identity::default(),
            versions: Versions::default(),
            system_uuids: Vec::new(),
            provider_ids: Vec::new(),
            mtus: BTreeMap::new(),
            objects: Objects::default(),
            columns: Columns::default(),
            well: None,
            shown: Vec::new(),
        }
    }

    /// Whether rows of a table are expected.
    pub(crate) fn is_open(&self) -> bool {
        self.table != Table::None || self.objects.is_open()
    }

    /// Reads a line as a person reads it.
    pub(crate) fn read(&mut self, number: u64, line: &str) {
        // Rows of a table are short; the lines of a log are not worth a closer look.
        const ROW_BYTES_MAX: usize = 600;
        if line.len() > ROW_BYTES_MAX {
            return;
        }
        if let Some(told) = self.objects.read(number, line) {
            self.object(told);
        }
        let words: Vec<&str> = line.split_whitespace().collect();
        if self.header(line, &words) {
            return;
        }
        self.rows += 1;
        if self.rows > ROWS_MAX {
            self.table = Table::None;
        }
        match self.table {
            Table::Requests => self.request(number, line, &words),
            Table::Nodes => self.node(number, line, &words),
            Table::Pods => self.pod(number, line, &words),
            Table::Records => {
                if let Some(fact) = self.columns.record(line).fact() {
                    self.machine(fact, number, line);
                }
            }
            Table::Other | Table::None => {}
        }
        self.field(number, line, &words);
        self.identity.read(number, line, &words);
        self.mtu(number, line, &words);
    }

    fn header(&mut self, line: &str, words: &[&str]) -> bool {
        if !words.first().is_some_and(|word| *word == "NAME" || *word == "NAMESPACE") {
            if words.is_empty() {
                self.table = Table::None;
            }
            return false;
        }
        let has = |name: &str| words.contains(&name);
        let records = Columns::of(line);
        self.table = match () {
            () if records.is_some() => Table::Records,
            () if has("REQUESTOR") && has("CONDITION") => Table::Requests,
            () if has("READY") && has("STATUS") => Table::Pods,
            () if has("STATUS") && (has("ROLES") || has("VERSION")) => Table::Nodes,
            () => Table::Other,
        };
        self.columns = records.unwrap_or_default();
        self.rows = 0;
        self.status_column = words.iter().position(|word| *word == "STATUS").unwrap_or(0);
        self.identity.head(words);
        true
    }

    fn request(&mut self, number: u64, line: &str, words: &[&str]) {
        let Some(condition) = words.last() else { return };
        let client = words.iter().any(|word| word.ends_with("kube-apiserver-client-kubelet"));
        match *condition {
            "Pending" => {}
            "Approved" if client => return self.show(Fact::CsrUnsignedClient, number, line),
            condition if client && (condition.contains("Denied") || condition.contains("Failed")) => {
                return self.show(Fact::CsrRefusedClient, number, line);
            }
            _ => return,
        }
        let says = |part: &str| words.iter().any(|word| word.contains(part));
        let fact = match words.iter().find(|word| word.contains("kubernetes.io/")) {
            Some(signer) if signer.ends_with("kubelet-serving") => Fact::CsrPendingServing,
            Some(signer) if signer.ends_with("kubelet") => Fact::CsrPendingClient,
            Some(_) => return,
            // A node that has a name in its request holds a client certificate already, or renews it.
            None if says("system:node:") => Fact::CsrPendingNode,
            None if says("system:") || says("bootstrap") => Fact::CsrPendingClient,
            None => return,
        };
        self.show(fact, number, line);
    }

    fn node(&mut self, number: u64, line: &str, words: &[&str]) {
        let Some(status) = words.get(self.status_column) else { return };
        let ready = if status.starts_with("NotReady") || status.starts_with("Unknown") {
            self.not_ready.get_or_insert_with(|| (number, line.to_owned()));
            false
        } else if status.starts_with("Ready") {
            self.ready.get_or_insert_with(|| (number, line.to_owned()));
            true
        } else {
            return;
        };
        self.versions.read(number, line, words);
        // What a later listing of the same source says is what counts.
        if let Some(name) = words.first().filter(|_| self.ready_names.len() < KEPT_MAX) {
            self.ready_names.insert((*name).to_ascii_lowercase(), ready);
        }
    }

    fn object(&mut self, told: Told) {
        match told {
            Told::Node { name, ready, line, text } => {
                let first = if ready { &mut self.ready } else { &mut self.not_ready };
                first.get_or_insert_with(|| (line, format!("{name}: {text}")));
                if self.ready_names.len() < KEPT_MAX {
                    self.ready_names.insert(name.to_ascii_lowercase(), ready);
                }
            }
            Told::Machine { fact, line, text } => self.machine(fact, line, &text),
        }
    }

    fn machine(&mut self, fact: Fact, line: u64, text: &str) {
        if fact == Fact::AllMachinesWell {
            self.well.get_or_insert_with(|| (line, text.to_owned()));
        } else {
            self.show(fact, line, text);
        }
    }

    /// Ids of machines, with who has them and the line that says so.
    pub(crate) fn machine_ids(&mut self) -> Vec<(MachineId, BTreeSet<String>, Shown)> {
        let found = self.identity.take().into_iter();
        found
            .map(|(id, owners, (line, text))| (id, owners, Shown { fact: Fact::SameMachineId, line, text }))
            .collect()
    }

    /// Nodes of a listing, and whether the last one called them Ready.
    pub(crate) fn nodes(&mut self) -> BTreeMap<String, bool> {
        std::mem::take(&mut self.ready_names)
    }

    fn pod(&mut self, number: u64, line: &str, words: &[&str]) {
        let Some(name) = words.iter().take(2).find(|word| word.contains('-')) else { return };
        if POD_NETWORKS.iter().any(|network| words.iter().take(2).any(|word| word.contains(network))) {
            self.pod_network = true;
        }
        for part in
            ["kube-proxy", "coredns", "kube-dns", "kube-apiserver", "kube-scheduler", "kube-controller"]
        {
            if name.starts_with(part) && self.system_pods.len() < KEPT_MAX {
                self.system_pods.insert(part.to_owned());
                if part != "kube-proxy" || self.system_pod.is_none() {
                    self.system_pod.get_or_insert_with(|| (number, line.to_owned()));
                }
            }
        }
    }

    /// `System UUID: x`, `ProviderID: x`, and the same words of YAML and JSON.
    fn field(&mut self, number: u64, line: &str, words: &[&str]) {
        let Some(last) = words.last() else { return };
        let value = identity::bare(last);
        let key = line.trim_start().trim_start_matches('"');
        let names = |name: &str| key.get(..name.len()).is_some_and(|start| start.eq_ignore_ascii_case(name));
        if names("system uuid") || names("systemuuid") {
            if self.system_uuids.len() < KEPT_MAX {
                self.system_uuids.push(value.to_ascii_lowercase());
            }
        } else if names("providerid") {
            let uuid = value.rsplit('/').next().unwrap_or(value).to_ascii_lowercase();
            if identity::is_uuid(&uuid) && self.provider_ids.len() < KEPT_MAX {
                self.provider_ids.push((number, uuid, line.to_owned()));
            }
        }
    }

    fn mtu(&mut self, number: u64, line: &str, words: &[&str]) {
        const SMALLEST: u32 = 576;
        const LARGEST: u32 = 16_000;
        for pair in words.windows(2) {
            let key = pair[0].trim_matches(['"', ':', '=', '(', '\'']);
            if !key.eq_ignore_ascii_case("mtu") {
                continue;
            }
            let digits = pair[1].trim_matches(|c: char| !c.is_ascii_digit());
            let Ok(mtu) = digits.parse::<u32>() else { continue };
            if (SMALLEST..=LARGEST).contains(&mtu) && self.mtus.len() < 16 {
                self.mtus.entry(mtu).or_insert_with(|| (number, line.to_owned()));
            }
        }
    }

    fn show(&mut self, fact: Fact, line: u64, text: &str) {
        if self.shown.len() < KEPT_MAX {
            self.shown.push(Shown { fact, line, text: text.to_owned() });
        }
    }

    /// What the source showed, when it is over.
    pub(crate) fn end(mut self) -> Vec<Shown> {
        if let Some(told) = self.objects.end() {
            self.object(told);
        }
        let is_ill = |shown: &Shown| {
            matches!(shown.fact, Fact::MachineNotMade | Fact::MachineNotJoined | Fact::MachineNotReady)
        };
        if let Some((line, text)) = self.well.take().filter(|_| !self.shown.iter().any(is_ill)) {
            self.show(Fact::AllMachinesWell, line, &text);
        }
        match (self.not_ready.take(), self.ready.take()) {
            (Some((line, text)), _) => self.show(Fact::SomeNodeNotReady, line, &text),
            (None, Some((line, text))) => self.show(Fact::AllNodesReady, line, &text),
            (None, None) => {}
        }
        if let Some((line, text)) = self.versions.newer() {
            self.show(Fact::KubeletNewer, line, &text);
        }
        if self.system_pods.len() >= 2
            && !self.pod_network
            && let Some((line, text)) = self.system_pod.take()
        {
            self.show(Fact::NoCniPod, line, &text);
        }
        // Any two lines may hold one UUID; it is a machine's only where the text speaks of machine ids.
        if let Some((line, text)) = self.identity.same() {
            self.show(Fact::SameMachineId, line, &text);
        }
        if let Some((line, text)) = self.identity.same_host() {
            self.show(Fact::SameHostName, line, &text);
        }
        let pairs: Vec<_> = self.provider_ids.iter().zip(&self.system_uuids).collect();
        // Lists of different length cannot be laid beside each other.
        if self.provider_ids.len() == self.system_uuids.len()
            && let Some(((line, _, text), _)) = pairs.into_iter().find(|((_, id, _), uuid)| id != *uuid)
        {
            let (line, text) = (*line, text.clone());
            self.show(Fact::ProviderIdOfAnotherMachine, line, &text);
        }
        if self.mtus.len() > 1
            && let Some((line, text)) = self.mtus.values().next().cloned()
        {
            self.show(Fact::MtuDiffers, line, &text);
        }
        self.shown
    }
}

#[cfg(test)]
mod tests;
