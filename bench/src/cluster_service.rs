//! A Kubernetes API with a quiet fleet: nodes, their leases, a watch that brings heartbeats, and no events.
//!
//! What a real cluster of this size sends while nothing happens is sent here, too: every lease is renewed between two lists
//! of leases, every kubelet posts its status once in five minutes, and each of those comes down the watch as a change in which
//! nothing that matters has changed. Nodes have the size of real ones (images, conditions, managed fields). The store's
//! version only grows, lists come in pages of one moment, and a watch ends with a bookmark when it was asked to.

use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::{Duration, Instant};

use super::cloud_service::{address, server_id, server_name};
use super::http_service::{Answer, Asked, HttpService, Send};

/// Kubelets report an unchanged status this often.
const STATUS_EVERY: Duration = Duration::from_secs(300);
/// Heartbeats that fall into this time come together.
const BURST_EVERY: Duration = Duration::from_millis(300);

struct Store {
    nodes: usize,
    version: AtomicU64,
}

/// Starts a cluster with so many nodes, all Ready.
pub(crate) fn start(nodes: usize) -> std::io::Result<HttpService> {
    let store = Arc::new(Store { nodes, version: AtomicU64::new(1_000) });
    HttpService::start(move |_| move |asked: &Asked| answer(&store, asked))
}

fn answer(store: &Arc<Store>, asked: &Asked) -> Answer {
    let watches = asked.parameter("watch") == Some("true");
    let turn = Duration::from_secs(asked.number("timeoutSeconds").unwrap_or(10) as u64);
    match asked.path.as_str() {
        "/api/v1/nodes" if watches => {
            let store = store.clone();
            Answer::Streamed(Box::new(move |send| heartbeats(&store, turn, send)))
        }
        "/api/v1/nodes" => Answer::ok(nodes_page(store, asked)),
        "/api/v1/namespaces/default/events" if watches => Answer::Streamed(Box::new(move |_| {
            std::thread::sleep(turn);
            Ok(())
        })),
        "/api/v1/namespaces/default/events" => Answer::ok(list("Event", store.now(), "", "")),
        "/apis/coordination.k8s.io/v1/namespaces/kube-node-lease/leases" => {
            let version = store.next();
            let leases = (0..store.nodes).map(|number| lease(number, version)).collect::<Vec<_>>().join(",");
            Answer::ok(list("Lease", version, "", &leases))
        }
        _ => Answer::Whole(404, "", r#"{"kind":"Status","code":404}"#.to_owned()),
    }
}

impl Store {
    fn now(&self) -> u64 {
        self.version.load(Ordering::Relaxed)
    }

    fn next(&self) -> u64 {
        self.version.fetch_add(1, Ordering::Relaxed) + 1
    }
}

fn list(kind: &str, version: u64, more: &str, items: &str) -> String {
    format!(
        r#"{{"kind":"{kind}List","apiVersion":"v1","metadata":{{"resourceVersion":"{version}"{more}}},"items":[{items}]}}"#
    )
}

/// A page begins where its `continue` says, at the version of the first page.
fn nodes_page(store: &Store, asked: &Asked) -> String {
    let place = asked.parameter("continue").and_then(|place| place.split_once('_'));
    let place = place.and_then(|(from, version)| Some((from.parse().ok()?, version.parse().ok()?)));
    let (from, version): (usize, u64) = place.unwrap_or((0, store.now()));
    let until = store.nodes.min(from + asked.number("limit").unwrap_or(store.nodes));
    let nodes = (from..until).map(|number| node(number, version)).collect::<Vec<_>>().join(",");
    let rest = store.nodes - until;
    let more = format!(r#","continue":"{until}_{version}","remainingItemCount":{rest}"#);
    list("Node", version, if rest == 0 { "" } else { &more }, &nodes)
}

/// Status reports of all nodes in turn, as many as fall into the time, and a bookmark at the end.
fn heartbeats(store: &Store, turn: Duration, send: &mut Send<'_>) -> std::io::Result<()> {
    let begun = Instant::now();
    while begun.elapsed() + BURST_EVERY < turn {
        std::thread::sleep(BURST_EVERY);
        let due = store.nodes as f64 * BURST_EVERY.as_secs_f64() / STATUS_EVERY.as_secs_f64();
        for _ in 0..due.ceil() as usize {
            let version = store.next();
            let object = node(version as usize % store.nodes, version);
            send(&format!("{{\"type\":\"MODIFIED\",\"object\":{object}}}\n"))?;
        }
    }
    let version = store.now();
    send(&format!(
        "{{\"type\":\"BOOKMARK\",\"object\":{{\"kind\":\"Node\",\"apiVersion\":\"v1\",\"metadata\":{{\"resourceVersion\":\"{version}\"}}}}}}\n"
    ))
}

/// A time of day that differs from one version to the next.
fn moment(version: u64) -> String {
    format!("2026-11-21T{:02}:{:02}:{:02}", version / 3600 % 24, version / 60 % 60, version % 60)
}

fn node(number: usize, version: u64) -> String {
    let (name, id, at) = (server_name(number), server_id(number), moment(version));
    let condition = |kind: &str, status: &str, reason: &str, message: &str| {
        format!(
            r#"{{"type":"{kind}","status":"{status}","lastHeartbeatTime":"{at}Z","lastTransitionTime":"2026-10-01T08:05:00Z","reason":"{reason}","message":"{message}"}}"#
        )
    };
    let conditions = [
        condition("NetworkUnavailable", "False", "RouteCreated", "RouteController created a route"),
        condition(
            "MemoryPressure",
            "False",
            "KubeletHasSufficientMemory",
            "kubelet has sufficient memory available",
        ),
        condition("DiskPressure", "False", "KubeletHasNoDiskPressure", "kubelet has no disk pressure"),
        condition("PIDPressure", "False", "KubeletHasSufficientPID", "kubelet has sufficient PID available"),
        condition("Ready", "True", "KubeletReady", "kubelet is posting ready status"),
    ];
    let image = |image: usize| {
        format!(
            r#"{{"names":["registry.example/team/service-{image:03}@sha256:{image:064x}","registry.example/team/service-{image:03}:v1.{image}.0"],"sizeBytes":{}}}"#,
            image * 7_919_331
        )
    };
    let images = (0..20).map(|place| image((number + place * 37) % 300)).collect::<Vec<_>>();
    format!(
        r#"{{"kind":"Node","apiVersion":"v1","metadata":{{"name":"{name}","uid":"{number:08x}-bbbb-4b0e-9f5e-0f6f0a3b8c12","resourceVersion":"{version}","creationTimestamp":"2026-10-01T08:04:00Z","labels":{{"beta.kubernetes.io/arch":"amd64","beta.kubernetes.io/os":"linux","kubernetes.io/arch":"amd64","kubernetes.io/hostname":"{name}","kubernetes.io/os":"linux","node.kubernetes.io/instance-type":"m1.large","topology.kubernetes.io/region":"RegionOne","topology.kubernetes.io/zone":"zone-{zone}"}},"annotations":{{"node.alpha.kubernetes.io/ttl":"0","volumes.kubernetes.io/controller-managed-attach-detach":"true"}},"managedFields":[{{"manager":"kubelet","operation":"Update","apiVersion":"v1","time":"{at}Z","fieldsType":"FieldsV1","fieldsV1":{{"f:status":{{"f:conditions":{{"k:{{\"type\":\"Ready\"}}":{{"f:lastHeartbeatTime":{{}},"f:lastTransitionTime":{{}},"f:message":{{}},"f:reason":{{}},"f:status":{{}}}}}},"f:images":{{}}}}}},"subresource":"status"}}]}},"spec":{{"podCIDR":"100.64.0.0/24","podCIDRs":["100.64.0.0/24"],"providerID":"openstack:///{id}"}},"status":{{"capacity":{{"cpu":"4","ephemeral-storage":"64Gi","memory":"16384Mi","pods":"110"}},"allocatable":{{"cpu":"3920m","ephemeral-storage":"58Gi","memory":"15000Mi","pods":"110"}},"conditions":[{conditions}],"addresses":[{{"type":"InternalIP","address":"{address}"}},{{"type":"Hostname","address":"{name}"}}],"daemonEndpoints":{{"kubeletEndpoint":{{"Port":10250}}}},"nodeInfo":{{"machineID":"{number:032x}","systemUUID":"{id}","bootID":"{number:08x}-cccc-4b0e-9f5e-0f6f0a3b8c12","kernelVersion":"6.12.0","osImage":"Flatcar","containerRuntimeVersion":"containerd://2.1.0","kubeletVersion":"v1.36.3","kubeProxyVersion":"","operatingSystem":"linux","architecture":"amd64"}},"images":[{images}]}}}}"#,
        zone = number % 3,
        conditions = conditions.join(","),
        address = address(number),
        images = images.join(","),
    )
}

fn lease(number: usize, version: u64) -> String {
    let (name, at) = (server_name(number), moment(version));
    format!(
        r#"{{"metadata":{{"name":"{name}","namespace":"kube-node-lease","uid":"{number:08x}-dddd-4b0e-9f5e-0f6f0a3b8c12","resourceVersion":"{version}","creationTimestamp":"2026-10-01T08:04:00Z","ownerReferences":[{{"apiVersion":"v1","kind":"Node","name":"{name}","uid":"{number:08x}-bbbb-4b0e-9f5e-0f6f0a3b8c12"}}],"managedFields":[{{"manager":"kubelet","operation":"Update","apiVersion":"coordination.k8s.io/v1","time":"{at}Z","fieldsType":"FieldsV1","fieldsV1":{{"f:metadata":{{"f:ownerReferences":{{".":{{}},"k:{{\"uid\":\"{number:08x}-bbbb\"}}":{{}}}}}},"f:spec":{{"f:holderIdentity":{{}},"f:leaseDurationSeconds":{{}},"f:renewTime":{{}}}}}}}}]}},"spec":{{"holderIdentity":"{name}","leaseDurationSeconds":40,"renewTime":"{at}.{number:06}Z"}}}}"#
    )
}
