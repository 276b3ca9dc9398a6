//! Every request that this crate can make, and the client that carries it.
//!
//! An [`Ask`] is one of a closed list; [`Ask::request`] spells it. The binary, which has the connections, implements
//! [`ApiClient`]: one for the management cluster, one for the cluster below it. `rights` lists what the asks need, and a test
//! holds both against each other.
//!
//! The client gives each request a deadline and a bound, keeps the credentials, and says "not there" only when the API server
//! itself says so of the very object. Nothing is repeated here.

use reveille_core::model::id::NodeName;

use crate::model::{ClusterId, RecordName};

/// Records are tens of kilobytes each: a page stays within a few megabytes.
const RECORDS_OF_A_PAGE: u32 = 100;
/// Everything else is smaller.
const ITEMS_OF_A_PAGE: u32 = 250;

/// Which API server is asked.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Debug)]
pub enum Place {
    /// Rancher's own.
    Management,
    /// That of the cluster whose nodes the records are about.
    Downstream,
    /// A member of that cluster's etcd.
    Etcd,
}

/// A verb of HTTP.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Verb {
    /// Reads.
    Get,
    /// Makes.
    Post,
    /// Replaces, if it has still the revision that it had.
    Put,
    /// Deletes, if it is still the one that was meant.
    Delete,
}

/// A request, spelled.
#[derive(Clone, PartialEq, Eq)]
pub struct Request {
    /// To whom.
    pub place: Place,
    /// How.
    pub verb: Verb,
    /// Path and query.
    pub target: String,
    /// What is sent along; never printed, for records hold keys.
    pub body: Option<Vec<u8>>,
    /// The object's name, where it is about one: only a 404 that repeats it says that it is not there.
    pub about: Option<String>,
}

/// An answer.
#[derive(Clone, PartialEq, Eq)]
pub struct Given {
    /// The body, whole.
    pub body: Vec<u8>,
    /// The `Date` header.
    pub date: Option<String>,
}

/// Why there is no answer.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct Refused {
    /// As a clause, without secrets.
    pub cause: String,
    /// The API server itself says that the object is not there.
    pub missing: bool,
    /// What the API server answered with; `None` where no answer came.
    pub code: Option<u16>,
    /// Whether it may have been carried out all the same.
    pub may_have_happened: bool,
}

/// A way to an API server.
pub trait ApiClient {
    /// Carries a request there and its answer back, within a deadline.
    fn send(&self, request: Request) -> impl Future<Output = Result<Given, Refused>>;
}

/// What can be read.
#[derive(Clone, PartialEq, Eq, Debug)]
pub enum Ask {
    /// All clusters.
    Clusters,
    /// One cluster.
    Cluster(ClusterId),
    /// The records of a cluster.
    Records(ClusterId),
    /// Snapshots of a cluster's etcd.
    Backups(ClusterId),
    /// Machines of clusters that Rancher provisions the modern way.
    Machines,
    /// The secrets with plans for them, in one namespace. Of what they hold, the plan's checksum and counters are kept.
    Plans(String),
    /// All Nodes.
    Nodes,
    /// One Node.
    Node(NodeName),
    /// One record.
    Record(ClusterId, RecordName),
    /// Pods of `cattle-system`, for the agents among them.
    Pods,
    /// Pods on one Node.
    PodsOn(NodeName),
    /// Persistent volumes, for those that are bound to one Node.
    Volumes,
}

const CLUSTERS: &str = "/apis/management.cattle.io/v3/clusters";
const NODES: &str = "/api/v1/nodes";

impl Ask {
    /// In words: `list clusters`.
    pub fn words(&self) -> String {
        match self {
            Self::Clusters => "list clusters.management.cattle.io".to_owned(),
            Self::Cluster(id) => format!("read the cluster {id}"),
            Self::Records(id) => format!("list nodes.management.cattle.io in the namespace {id}"),
            Self::Backups(id) => format!("list etcdbackups.management.cattle.io in the namespace {id}"),
            Self::Machines => "list machines.cluster.x-k8s.io".to_owned(),
            Self::Plans(namespace) => format!("list secrets in the namespace {namespace}"),
            Self::Nodes => "list nodes".to_owned(),
            Self::Node(name) => format!("read the node {name}"),
            Self::Record(id, name) => format!("read the record {id}/{name}"),
            Self::Pods => "list pods in the namespace cattle-system".to_owned(),
            Self::PodsOn(node) => format!("list pods on {node}"),
            Self::Volumes => "list persistentvolumes".to_owned(),
        }
    }

    /// To whom it goes.
    pub const fn place(&self) -> Place {
        match self {
            Self::Nodes | Self::Node(_) | Self::Pods | Self::PodsOn(_) | Self::Volumes => Place::Downstream,
            _ => Place::Management,
        }
    }

    /// Spelled, a list from where `next` says. `None` for a name that does not belong into a path.
    pub fn request(&self, next: Option<&str>) -> Option<Request> {
        let (target, limit, about) = match self {
            Self::Clusters => (CLUSTERS.to_owned(), Some(ITEMS_OF_A_PAGE), None),
            Self::Cluster(id) => (format!("{CLUSTERS}/{}", safe(&id.0)?), None, Some(id.0.clone())),
            Self::Records(id) => (records(id)?, Some(RECORDS_OF_A_PAGE), None),
            Self::Record(id, name) => {
                (format!("{}/{}", records(id)?, safe(&name.0)?), None, Some(name.0.clone()))
            }
            Self::Backups(id) => {
                let path = format!("/apis/management.cattle.io/v3/namespaces/{}/etcdbackups", safe(&id.0)?);
                (path, Some(ITEMS_OF_A_PAGE), None)
            }
            Self::Machines => {
                ("/apis/cluster.x-k8s.io/v1beta1/machines".to_owned(), Some(ITEMS_OF_A_PAGE), None)
            }
            Self::Plans(namespace) => {
                let path = format!("/api/v1/namespaces/{}/secrets", safe(namespace)?);
                (path + "?fieldSelector=type%3Drke.cattle.io%2Fmachine-plan", Some(RECORDS_OF_A_PAGE), None)
            }
            Self::Nodes => (NODES.to_owned(), Some(ITEMS_OF_A_PAGE), None),
            Self::Node(name) => {
                (format!("{NODES}/{}", safe(name.as_str())?), None, Some(name.as_str().to_owned()))
            }
            Self::PodsOn(node) => {
                let node = safe(node.as_str())?;
                (format!("/api/v1/pods?fieldSelector=spec.nodeName%3D{node}"), Some(ITEMS_OF_A_PAGE), None)
            }
            Self::Volumes => ("/api/v1/persistentvolumes".to_owned(), Some(ITEMS_OF_A_PAGE), None),
            Self::Pods => ("/api/v1/namespaces/cattle-system/pods".to_owned(), Some(ITEMS_OF_A_PAGE), None),
        };
        let target = match limit {
            Some(limit) => paged(target, limit, next),
            None => target,
        };
        Some(Request { place: self.place(), verb: Verb::Get, target, body: None, about })
    }
}

fn records(id: &ClusterId) -> Option<String> {
    Some(format!("/apis/management.cattle.io/v3/namespaces/{}/nodes", safe(&id.0)?))
}

fn paged(target: String, limit: u32, next: Option<&str>) -> String {
    let first = if target.contains('?') { '&' } else { '?' };
    let next = next.map_or_else(String::new, |next| format!("&continue={}", escaped(next)));
    format!("{target}{first}limit={limit}{next}")
}

/// A name as Kubernetes allows it, so that it cannot leave its place in a path.
pub(crate) fn safe(name: &str) -> Option<&str> {
    let fits = |c: char| c.is_ascii_lowercase() || c.is_ascii_digit() || c == '-' || c == '.';
    let is_safe = (1..=253).contains(&name.len())
        && name.chars().all(fits)
        && !name.contains("..")
        && !name.starts_with('.');
    is_safe.then_some(name)
}

/// For a query of an API server: what is neither a letter nor a digit becomes its code.
pub fn escaped(text: &str) -> String {
    use std::fmt::Write as _;
    let mut out = String::with_capacity(text.len());
    for byte in text.bytes() {
        if byte.is_ascii_alphanumeric() || matches!(byte, b'-' | b'_' | b'.' | b'~') {
            out.push(char::from(byte));
        } else {
            // Writing into a String does not fail.
            let _ = write!(out, "%{byte:02X}");
        }
    }
    out
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn names_of_others_cannot_leave_their_place_in_a_path() {
        for bad in ["", "a/b", "..", ".a", "a?b=c", "A", "a%2f"] {
            assert!(Ask::Records(ClusterId(bad.to_owned())).request(None).is_none(), "{bad}");
            assert!(Ask::Node(NodeName::from(bad)).request(None).is_none(), "{bad}");
        }
    }

    #[test]
    fn next_page_uses_escaped_continue_token_of_server() {
        let ask = Ask::Records(ClusterId("c-abcde".to_owned()));
        let request = ask.request(Some("a b&limit=9")).unwrap();
        assert_eq!(
            request.target,
            "/apis/management.cattle.io/v3/namespaces/c-abcde/nodes?limit=100&continue=a%20b%26limit%3D9"
        );
        let plans = Ask::Plans("fleet-default".to_owned()).request(None).unwrap();
        assert!(plans.target.ends_with("machine-plan&limit=100"), "{}", plans.target);
    }
}
