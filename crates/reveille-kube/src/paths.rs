//! Every request that this crate can send, in one place.
//!
//! Names and versions go in, kube's request builder turns them into HTTP requests. `rbac` lists the rights that they need, and a
//! test compares the two lists. No other module of the crate builds a path.

use http::header::{ACCEPT, ACCEPT_ENCODING, HeaderValue};
use kube::api::{DeleteParams, ListParams, PostParams, Preconditions, VersionMatch, WatchParams};
use kube::core::Request;
use kube::core::params::GetParams;
use kube::core::request::Error;
use reveille_core::model::id::{NodeName, NodeUid};
use reveille_hot::Object;

use crate::kind::Kind;

/// A request, ready to be sent.
pub(crate) type Ask = http::Request<Vec<u8>>;

/// Nodes.
pub(crate) const NODES: &str = "/api/v1/nodes";
/// The namespace whose UID stands for the cluster.
pub(crate) const KUBE_SYSTEM: &str = "kube-system";
/// Leases of nodes: the kubelet renews its own every ten seconds.
pub(crate) const LEASES: &str = "/apis/coordination.k8s.io/v1/namespaces/kube-node-lease/leases";
/// Leases of controllers, ours among them.
pub(crate) const CLAIMS: &str = "/apis/coordination.k8s.io/v1/namespaces/kube-system/leases";
/// Events about objects without a namespace, such as nodes, are written into this one.
pub(crate) const EVENTS: &str = "/api/v1/namespaces/default/events";

/// Requests for certificates, of kubelets and others.
pub(crate) const REQUESTS: &str = "/apis/certificates.k8s.io/v1/certificatesigningrequests";

/// Secrets that the cluster's own parts read.
pub(crate) const SECRETS: &str = "/api/v1/namespaces/kube-system/secrets";

const ABOUT_NODES: &str = "involvedObject.kind=Node";

/// One page of all nodes, read from the store and not from a cache.
pub(crate) fn nodes_page(limit: u32, next: Option<String>) -> Result<Ask, Error> {
    Request::new(NODES).list(&ListParams { limit: Some(limit), continue_token: next, ..Default::default() })
}

/// The metadata of one node and the count of the others, read from the store.
pub(crate) fn nodes_count() -> Result<Ask, Error> {
    Request::new(NODES).list_metadata(&ListParams { limit: Some(1), ..Default::default() })
}

/// What happened to nodes since `version`, for `turn_s` seconds.
pub(crate) fn nodes_watch(version: &str, turn_s: u32) -> Result<Ask, Error> {
    watch(NODES, None, version, turn_s)
}

/// One node, read from the store.
pub(crate) fn node(name: &NodeName) -> Result<Ask, Error> {
    Request::new(NODES).get(name.as_str(), &GetParams::default())
}

/// One namespace, read from the store.
pub(crate) fn namespace(name: &str) -> Result<Ask, Error> {
    Request::new("/api/v1/namespaces").get(name, &GetParams::default())
}

/// Deletes the node if it still has this uid.
pub(crate) fn delete_node(name: &NodeName, uid: &NodeUid) -> Result<Ask, Error> {
    let preconditions = Preconditions { resource_version: None, uid: Some(uid.as_str().to_owned()) };
    let params = DeleteParams { preconditions: Some(preconditions), ..Default::default() };
    Request::new(NODES).delete(name.as_str(), &params)
}

/// Makes a secret.
pub(crate) fn create_secret(body: Vec<u8>) -> Result<Ask, Error> {
    Request::new(SECRETS).create(&PostParams::default(), body)
}

/// Deletes a secret.
pub(crate) fn delete_secret(name: &str) -> Result<Ask, Error> {
    Request::new(SECRETS).delete(name, &DeleteParams::default())
}

/// One Lease of a controller, read from the store.
pub(crate) fn claim(name: &str) -> Result<Ask, Error> {
    Request::new(CLAIMS).get(name, &GetParams::default())
}

/// Makes a Lease of a controller.
pub(crate) fn create_claim(body: Vec<u8>) -> Result<Ask, Error> {
    Request::new(CLAIMS).create(&PostParams::default(), body)
}

/// Writes a Lease of a controller over the version that its body names.
pub(crate) fn replace_claim(name: &str, body: Vec<u8>) -> Result<Ask, Error> {
    Request::new(CLAIMS).replace(name, &PostParams::default(), body)
}

/// All leases, from the server's cache: a renewal that is a second late there does not matter, load on the store does.
pub(crate) fn leases() -> Result<Ask, Error> {
    Request::new(LEASES).list(&ListParams {
        resource_version: Some("0".to_owned()),
        version_match: Some(VersionMatch::NotOlderThan),
        ..Default::default()
    })
}

/// One page of all events about nodes, or about one of them.
pub(crate) fn events_page(about: Option<&NodeName>, limit: u32, next: Option<String>) -> Result<Ask, Error> {
    let selector = match about {
        Some(name) => format!("{ABOUT_NODES},involvedObject.name={name}"),
        None => ABOUT_NODES.to_owned(),
    };
    Request::new(EVENTS).list(&ListParams {
        field_selector: Some(selector),
        limit: Some(limit),
        continue_token: next,
        ..Default::default()
    })
}

/// One page of all requests for certificates.
pub(crate) fn requests_page(limit: u32, next: Option<String>) -> Result<Ask, Error> {
    Request::new(REQUESTS).list(&ListParams {
        limit: Some(limit),
        continue_token: next,
        ..Default::default()
    })
}

/// Events about nodes since `version`, for `turn_s` seconds.
pub(crate) fn events_watch(version: &str, turn_s: u32) -> Result<Ask, Error> {
    watch(EVENTS, Some(ABOUT_NODES.to_owned()), version, turn_s)
}

fn watch(path: &str, selector: Option<String>, version: &str, turn_s: u32) -> Result<Ask, Error> {
    let params = WatchParams {
        field_selector: selector,
        timeout: Some(turn_s),
        bookmarks: true,
        ..Default::default()
    };
    let mut ask = Request::new(path).watch(&params, version)?;
    // Compressed streams come in blocks; an event must not wait for the block to fill.
    ask.headers_mut().insert(ACCEPT_ENCODING, HeaderValue::from_static("identity"));
    ask.headers_mut().insert(ACCEPT, HeaderValue::from_static("application/json"));
    Ok(ask)
}

/// All kinds at once, where the server knows how, in the words of either version of that.
const KINDS: &str = "application/json;g=apidiscovery.k8s.io;v=v2;as=APIGroupDiscoveryList,\
                     application/json;g=apidiscovery.k8s.io;v=v2beta1;as=APIGroupDiscoveryList,application/json";

/// Which kinds there are, below this path.
pub(crate) fn discovery(path: &str) -> Result<Ask, http::Error> {
    http::Request::get(path).header(ACCEPT, KINDS).body(Vec::new())
}

/// The server's counts of itself.
pub(crate) fn metrics() -> Result<Ask, http::Error> {
    http::Request::get("/metrics").header(ACCEPT, "text/plain").body(Vec::new())
}

/// Where the objects of a kind lie, in one namespace or in all.
fn collection(kind: &Kind, namespace: &str) -> String {
    let (version, plural) = (&kind.version, &kind.resource.plural);
    let root = match &*kind.resource.group {
        "" => format!("/api/{version}"),
        group => format!("/apis/{group}/{version}"),
    };
    match namespace {
        "" => format!("{root}/{plural}"),
        namespace => format!("{root}/namespaces/{namespace}/{plural}"),
    }
}

/// The metadata of all objects of a kind, from the server's cache.
pub(crate) fn heads(kind: &Kind) -> Result<Ask, Error> {
    Request::new(collection(kind, "")).list_metadata(&ListParams {
        resource_version: Some("0".to_owned()),
        version_match: Some(VersionMatch::NotOlderThan),
        ..Default::default()
    })
}

/// The metadata of whatever changes since `version`, for `turn_s` seconds.
pub(crate) fn heads_watch(kind: &Kind, version: &str, turn_s: u32) -> Result<Ask, Error> {
    let params = WatchParams { timeout: Some(turn_s), bookmarks: true, ..Default::default() };
    let mut ask = Request::new(collection(kind, "")).watch_metadata(&params, version)?;
    ask.headers_mut().insert(ACCEPT_ENCODING, HeaderValue::from_static("identity"));
    Ok(ask)
}

/// The versions of one object from now on, for `turn_s` seconds.
pub(crate) fn object_watch(kind: &Kind, object: &Object, turn_s: u32) -> Result<Ask, Error> {
    let selector = format!("metadata.name={}", object.name);
    watch(&collection(kind, &object.namespace), Some(selector), "0", turn_s)
}

/// One object.
pub(crate) fn object(kind: &Kind, object: &Object) -> Result<Ask, Error> {
    Request::new(collection(kind, &object.namespace)).get(&object.name, &GetParams::default())
}

/// True for what may be a part of a path: any name of any kind, roles with their colons among them.
pub(crate) fn is_plain(name: &str) -> bool {
    let fits = |c: char| c.is_ascii_alphanumeric() || matches!(c, '-' | '.' | '_' | ':');
    (1..=253).contains(&name.len()) && name.chars().all(fits) && !name.contains("..") && name != "."
}

/// True for a name that is safe in a path: what Kubernetes itself allows for nodes (RFC 1123 subdomain).
pub(crate) fn is_safe(name: &NodeName) -> bool {
    let name = name.as_str();
    let fits = |c: char| c.is_ascii_lowercase() || c.is_ascii_digit() || c == '-' || c == '.';
    (1..=253).contains(&name.len())
        && name.chars().all(fits)
        && !name.contains("..")
        && !name.starts_with('.')
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_names_that_kubernetes_allows_reach_a_path() {
        for good in ["node-a", "ip-10-0-0-1.eu.internal", "7"] {
            assert!(is_safe(&NodeName::from(good)), "{good}");
        }
        let long = "a".repeat(254);
        for bad in ["", "a/b", "..", "a..b", ".a", "a?b", "a b", "A", "a%2f", "ä", long.as_str()] {
            assert!(!is_safe(&NodeName::from(bad)), "{bad}");
        }
    }

    #[test]
    fn a_delete_carries_its_uid_and_a_single_read_asks_the_store() {
        let ask = delete_node(&NodeName::from("a"), &NodeUid::from("u-1")).unwrap();
        let body: serde_json::Value = serde_json::from_slice(ask.body()).unwrap();
        assert_eq!(body["preconditions"]["uid"], "u-1");
        assert_eq!(node(&NodeName::from("a")).unwrap().uri().query(), None);
        assert!(!nodes_count().unwrap().uri().to_string().contains("resourceVersion"));
    }
}
