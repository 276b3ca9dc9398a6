//! What the cluster says of a machine, as lines that the catalogue reads: the way `kubectl` prints the same things.
//!
//! ```text
//!  Node   ─▶ node condition Ready   Ready False KubeletNotReady container runtime network not ready: …
//!  Node   ─▶ node                   PodCIDR: 198.19.3.0/24
//!  events ─▶ event                  FreeDiskSpaceFailed kubelet failed to garbage collect required amount of images …
//!  csr    ─▶ csr csr-82bb8          csr-82bb8 2026-… kubernetes.io/kube-apiserver-client-kubelet system:bootstrap:abcdef Pending
//! ```
//!
//! Left out on purpose: events that tell of success, because the condition is the later word and an hour of events has
//! no order with it; events of another Node of the same name; every request but the newest for a client certificate, because
//! an older one is answered by it; and requests for serving certificates, which keep no machine from joining or being Ready.

use reveille_core::model::id::NodeName;
use reveille_core::model::log_evidence::{CertificateRequest, Said};
use reveille_core::model::node::{Node, NodeEvent, Ready};

use super::Note;

/// Conditions that are read of one Node; Kubernetes writes five, add-ons a few more.
const CONDITIONS_MAX: usize = 12;
/// Events that are read of one Node, the newest.
const EVENTS_MAX: usize = 24;
/// Bytes of one message: rows of tables are read up to 600.
const MESSAGE_BYTES_MAX: usize = 256;
/// Signs what a kubelet speaks to the API server with.
const CLIENT_SIGNER: &str = "kubernetes.io/kube-apiserver-client-kubelet";
/// Reasons of events that tell of success. The kubelet writes them at each of its starts.
const GOOD_NEWS: [&str; 9] = [
    "NodeAllocatableEnforced",
    "NodeHasNoDiskPressure",
    "NodeHasSufficientMemory",
    "NodeHasSufficientPID",
    "NodeReady",
    "NodeSchedulable",
    "RegisteredNode",
    "Starting",
    "Synced",
];

/// Everything that is worth judging beside the console.
pub(super) fn notes(said: &Said, asks_as: &NodeName) -> Vec<Note> {
    let mut notes = said.node.as_ref().map_or_else(Vec::new, |node| conditions(node));
    notes.extend(events(said));
    let own =
        |request: &&CertificateRequest| *request.signer == *CLIENT_SIGNER && may_be_own(request, asks_as);
    let newest = said.requests.iter().find(own);
    notes.extend(newest.map(request));
    notes
}

/// Whether the machine's kubelet may have made this request: with its own certificate, or before it has one. The API server
/// says who asked. Any client that may make requests can name any Node in one: a request of another Node in this machine's name
/// hid its own, and kept it from reboot and deletion for as long as it was pending.
fn may_be_own(request: &CertificateRequest, asks_as: &NodeName) -> bool {
    let node = request.requester.strip_prefix("system:node:");
    let is_of_service = request.requester.starts_with("system:serviceaccount:");
    node.map_or(!is_of_service, |node| node == asks_as.as_str())
}

fn conditions(node: &Node) -> Vec<Note> {
    let note = |kind: &str, text: String| Note { source: format!("node condition {kind}"), text };
    let mut notes: Vec<Note> = node
        .conditions
        .iter()
        .take(CONDITIONS_MAX)
        .map(|condition| {
            let status = match (&*condition.kind, node.ready) {
                ("Ready", Ready::False) => "False",
                ("Ready", Ready::Unknown) => "Unknown",
                _ => "True",
            };
            let message = line(&condition.message);
            note(&condition.kind, format!("{} {status} {} {message}", condition.kind, condition.reason))
        })
        .collect();
    // The allocator says that it could not give a range also where another client had given one a moment before.
    if let Some(range) = node.pod_ranges.first() {
        notes.push(Note { source: "node".to_owned(), text: format!("PodCIDR: {range}") });
    }
    if node.ready == Ready::True {
        notes.push(note("Ready", "Ready True KubeletReady kubelet is posting ready status".to_owned()));
    }
    notes
}

fn events(said: &Said) -> Option<Note> {
    let of_this_node = |event: &&NodeEvent| match (&event.uid, &said.node) {
        (Some(uid), Some(node)) => *uid == node.uid,
        _ => true,
    };
    let tells = |event: &&NodeEvent| !GOOD_NEWS.contains(&&*event.reason);
    let mut newest: Vec<&NodeEvent> =
        said.events.iter().rev().filter(of_this_node).filter(tells).take(EVENTS_MAX).collect();
    newest.reverse();
    let lines: Vec<String> = newest
        .iter()
        .map(|event| format!("{} {} {}", event.reason, event.reporter, line(&event.message)))
        .collect();
    (!lines.is_empty()).then(|| Note { source: super::EVENT.to_owned(), text: lines.join("\n") })
}

fn request(request: &CertificateRequest) -> Note {
    let CertificateRequest { name, signer, requester, state, message, stamped } = request;
    let text = format!(
        "NAME CREATED SIGNERNAME REQUESTOR MESSAGE CONDITION\n{name} {stamped} {signer} {requester} {} {}",
        line(message),
        state.name()
    );
    Note { source: format!("csr {name}"), text }
}

/// A message on one line, cut.
fn line(message: &str) -> String {
    let cut = &message[..message.floor_char_boundary(MESSAGE_BYTES_MAX)];
    cut.split_whitespace().collect::<Vec<_>>().join(" ")
}
