//! Facts that stand in the shape of a listing and in no single line: a row of `kubectl get csr`, two machines with one id.
//!
//! ```text
//!  line ─▶ a header? a row of the table that is open? a field of a listing? ─▶ Fact with the line that shows it
//! ```
//!
//! What a fact means is the catalogue's business: here is only what the table shows. One [`Listing`] reads one source; it keeps
//! bounded sets, so that a log that looks like a table costs no memory.

use std::collections::{BTreeMap, BTreeSet};

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
    /// A request for a client certificate is approved, and nobody signs it.
    CsrUnsignedClient,
    /// Every node of a listing is Ready.
    AllNodesReady,
    /// Some node of a listing is not Ready.
    SomeNodeNotReady,
    /// A listing of system pods has none of any pod network.
    NoCniPod,
    /// Two machines show one machine id or system UUID.
    SameMachineId,
    /// A node's provider id names another UUID than its system's.
    ProviderIdOfAnotherMachine,
    /// Interfaces with different MTUs.
    MtuDiffers,
}

impl Fact {
    /// All of them.
    pub const ALL: [Self; 11] = [
        Self::CsrPendingClient,
        Self::CsrPendingServing,
        Self::CsrPendingNode,
        Self::CsrRefusedClient,
        Self::CsrUnsignedClient,
        Self::AllNodesReady,
        Self::SomeNodeNotReady,
        Self::NoCniPod,
        Self::SameMachineId,
        Self::ProviderIdOfAnotherMachine,
        Self::MtuDiffers,
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
            Self::NoCniPod => "no-cni-pod",
            Self::SameMachineId => "same-machine-id",
            Self::ProviderIdOfAnotherMachine => "provider-id-of-another-machine",
            Self::MtuDiffers => "mtu-differs",
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
pub(crate) const WORDS: [&str; 8] =
    ["requestor", "restarts", "roles", "providerid", "uuid", "machine-id", "machineid", "mtu"];
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
    name: String,
    speaks_of_ids: bool,
    ids: BTreeMap<String, BTreeSet<String>>,
    same_id: Option<(u64, String)>,
    system_uuids: Vec<String>,
    provider_ids: Vec<(u64, String, String)>,
    mtus: BTreeMap<u32, (u64, String)>,
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
            name: String::new(),
            speaks_of_ids: false,
            ids: BTreeMap::new(),
            same_id: None,
            system_uuids: Vec::new(),
            provider_ids: Vec::new(),
            mtus: BTreeMap::new(),
            shown: Vec::new(),
        }
    }

    /// Whether rows of a table are expected.
    pub(crate) fn is_open(&self) -> bool {
        self.table != Table::None
    }

    /// Reads a line as a person reads it.
    pub(crate) fn read(&mut self, number: u64, line: &str) {
        // Rows of a table are short; the lines of a log are not worth a closer look.
        const ROW_BYTES_MAX: usize = 600;
        if line.len() > ROW_BYTES_MAX {
            return;
        }
        let words: Vec<&str> = line.split_whitespace().collect();
        if self.header(&words) {
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
            Table::Other | Table::None => {}
        }
        self.field(number, line, &words);
        self.mtu(number, line, &words);
    }

    fn header(&mut self, words: &[&str]) -> bool {
        if !words.first().is_some_and(|word| *word == "NAME" || *word == "NAMESPACE") {
            if words.is_empty() {
                self.table = Table::None;
            }
            return false;
        }
        let has = |name: &str| words.contains(&name);
        self.table = match () {
            () if has("REQUESTOR") && has("CONDITION") => Table::Requests,
            () if has("READY") && has("STATUS") => Table::Pods,
            () if has("STATUS") && (has("ROLES") || has("VERSION")) => Table::Nodes,
            () => Table::Other,
        };
        self.rows = 0;
        self.status_column = words.iter().position(|word| *word == "STATUS").unwrap_or(0);
        self.speaks_of_ids |= words.iter().any(|word| {
            let word = word.to_ascii_lowercase();
            word.contains("uuid") || word.contains("machine-id") || word.contains("machineid")
        });
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
        // What a later listing of the same source says is what counts.
        if let Some(name) = words.first().filter(|_| self.ready_names.len() < KEPT_MAX) {
            self.ready_names.insert((*name).to_ascii_lowercase(), ready);
        }
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

    /// `Name: x`, `System UUID: x`, `Machine ID: x`, `ProviderID: x`, and the same words of YAML and JSON.
    fn field(&mut self, number: u64, line: &str, words: &[&str]) {
        let (Some(first), Some(last)) = (words.first(), words.last()) else { return };
        let value = last.trim_matches(['"', ',', '\'']);
        let key = line.trim_start().trim_start_matches('"');
        let names = |name: &str| key.get(..name.len()).is_some_and(|start| start.eq_ignore_ascii_case(name));
        if first.eq_ignore_ascii_case("name:") || names("name\":") || names("hostname:") {
            value.clone_into(&mut self.name);
        }
        if names("system uuid") || names("systemuuid") {
            if self.system_uuids.len() < KEPT_MAX {
                self.system_uuids.push(value.to_ascii_lowercase());
            }
        } else if names("providerid") {
            let uuid = value.rsplit('/').next().unwrap_or(value).to_ascii_lowercase();
            if is_uuid(&uuid) && self.provider_ids.len() < KEPT_MAX {
                self.provider_ids.push((number, uuid, line.to_owned()));
            }
        }
        let of_id = ["machine id", "machineid", "machine-id", "system uuid", "systemuuid", "product_uuid"];
        let named = of_id.iter().any(|name| names(name));
        self.speaks_of_ids |= named || line.contains("machine-id") || line.contains("product_uuid");
        self.id(number, line, words, named);
    }

    fn id(&mut self, number: u64, line: &str, words: &[&str], named: bool) {
        const WORDS_MAX: usize = 5;
        if words.len() > WORDS_MAX || self.ids.len() >= KEPT_MAX {
            return;
        }
        let Some(id) = words.iter().map(|word| word.trim_matches(['"', ',', '\''])).find(|word| is_id(word))
        else {
            return;
        };
        let who = match words.first() {
            Some(first) if !named && !is_id(first) => first.trim_end_matches(':').to_owned(),
            _ => self.name.clone(),
        };
        if who.is_empty() {
            return;
        }
        let owners = self.ids.entry(id.to_ascii_lowercase()).or_default();
        owners.insert(who);
        if owners.len() == 2 && self.same_id.is_none() {
            self.same_id = Some((number, line.to_owned()));
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
        match (self.not_ready.take(), self.ready.take()) {
            (Some((line, text)), _) => self.show(Fact::SomeNodeNotReady, line, &text),
            (None, Some((line, text))) => self.show(Fact::AllNodesReady, line, &text),
            (None, None) => {}
        }
        if self.system_pods.len() >= 2
            && !self.pod_network
            && let Some((line, text)) = self.system_pod.take()
        {
            self.show(Fact::NoCniPod, line, &text);
        }
        // Any two lines may hold one UUID; it is a machine's only where the text speaks of machine ids.
        if let Some((line, text)) = self.same_id.take().filter(|_| self.speaks_of_ids) {
            self.show(Fact::SameMachineId, line, &text);
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

fn is_uuid(text: &str) -> bool {
    text.len() == 36
        && text.bytes().enumerate().all(|(at, byte)| match at {
            8 | 13 | 18 | 23 => byte == b'-',
            _ => byte.is_ascii_hexdigit(),
        })
}

fn is_id(text: &str) -> bool {
    is_uuid(text) || (text.len() == 32 && text.bytes().all(|byte| byte.is_ascii_hexdigit()))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn facts(text: &str) -> Vec<Fact> {
        let mut listing = Listing::new();
        for (number, line) in (1..).zip(text.lines()) {
            listing.read(number, line);
        }
        listing.end().into_iter().map(|shown| shown.fact).collect()
    }

    #[test]
    fn tables_show_facts() {
        for (text, expected) in [
            ("NAME STATUS ROLES AGE VERSION\nw-1 Ready <none> 1d v1.30.1\n", vec![Fact::AllNodesReady]),
            (
                "NAME STATUS ROLES AGE VERSION\nw-1 Ready <none> 1d v1\nw-2 NotReady <none> 1d v1\n",
                vec![Fact::SomeNodeNotReady],
            ),
            (
                "NAME AGE REQUESTOR CONDITION\ncsr-1 16h system:node:cp-1 Pending\n",
                vec![Fact::CsrPendingNode],
            ),
            (
                "NAME AGE SIGNERNAME REQUESTOR CONDITION\ncsr-1 1m kubernetes.io/kube-apiserver-client-kubelet system:bootstrap:a Denied\n",
                vec![Fact::CsrRefusedClient],
            ),
            (
                "NAME AGE SIGNERNAME REQUESTOR CONDITION\ncsr-1 1m kubernetes.io/kube-apiserver-client-kubelet system:bootstrap:a Approved\n",
                vec![Fact::CsrUnsignedClient],
            ),
            (
                "NAME AGE SIGNERNAME REQUESTOR CONDITION\ncsr-1 1m kubernetes.io/kubelet-serving system:node:a Denied\n",
                vec![],
            ),
            ("NAME AGE REQUESTOR CONDITION\n\ncsr-1 16h system:node:cp-1 Pending\n", vec![]),
            ("2: eth0: mtu 1500 q\n1: lo: mtu 65536 q\n3: wg0: mtu 1420 q\n", vec![Fact::MtuDiffers]),
            (
                "NAME     MACHINE-ID\nw-1 9f0a3c1d2b4e4f5a8b7c6d5e4f3a2b1c\nw-2 9f0a3c1d2b4e4f5a8b7c6d5e4f3a2b1c\n",
                vec![Fact::SameMachineId],
            ),
            (
                "NAME     MACHINE-ID\nw-1 9f0a3c1d2b4e4f5a8b7c6d5e4f3a2b1c\nw-1 9f0a3c1d2b4e4f5a8b7c6d5e4f3a2b1c\n",
                vec![],
            ),
        ] {
            assert_eq!(facts(text), expected, "{text}");
        }
    }
}
