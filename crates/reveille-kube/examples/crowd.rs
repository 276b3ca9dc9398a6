//! A loopback server that plays the API of a large quiet cluster, to measure what watching it costs.
//! `cargo run --release -p reveille-kube --example crowd -- [NODES]` prints a kubeconfig to give to the `tell` example.
//!
//! Nodes are as large as real ones (fifty images, managed fields), every lease is renewed between two lists, and each node
//! sends the heartbeat that kubelets send every five minutes. One process serves, another watches, so that the costs of
//! the two are apart. It plays nothing else: no faults, no writes, no TLS.

use std::io::Write as _;
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::Duration;

use serde_json::{Value, json};
use tokio::io::{AsyncBufReadExt, AsyncReadExt, AsyncWriteExt, BufReader};
use tokio::net::{TcpListener, TcpStream};
use tokio::time::{Instant, interval_at, sleep_until};

/// How often each kubelet writes its node's status when nothing has changed.
const HEARTBEAT: Duration = Duration::from_secs(300);

struct Crowd {
    nodes: usize,
    version: AtomicU64,
}

#[tokio::main(flavor = "current_thread")]
async fn main() -> Result<(), Box<dyn std::error::Error>> {
    let nodes = std::env::args().nth(1).map_or(Ok(10_000), |text| text.parse())?;
    let crowd = Arc::new(Crowd { nodes, version: AtomicU64::new(1_000_000) });
    let listener = TcpListener::bind("127.0.0.1:0").await?;
    let path = std::env::temp_dir().join(format!("crowd-{}.kubeconfig", std::process::id()));
    let address = listener.local_addr()?;
    let text = format!(
        "apiVersion: v1\nkind: Config\ncurrent-context: crowd\n\
         clusters: [{{name: crowd, cluster: {{server: \"http://{address}\"}}}}]\n\
         contexts: [{{name: crowd, context: {{cluster: crowd, user: crowd}}}}]\n\
         users: [{{name: crowd, user: {{}}}}]\n"
    );
    std::fs::File::create(&path)?.write_all(text.as_bytes())?;
    println!("{}", path.display());
    loop {
        let (stream, _) = listener.accept().await?;
        let crowd = crowd.clone();
        tokio::spawn(async move {
            // A client that goes away is no trouble.
            let _ = serve(stream, &crowd).await;
        });
    }
}

async fn serve(stream: TcpStream, crowd: &Crowd) -> std::io::Result<()> {
    let (read, mut write) = stream.into_split();
    let mut lines = BufReader::new(read).lines();
    loop {
        let Some(first) = lines.next_line().await? else { return Ok(()) };
        let mut length = 0;
        while let Some(header) = lines.next_line().await?.filter(|line| !line.is_empty()) {
            if let Some(value) = header.to_ascii_lowercase().strip_prefix("content-length: ") {
                length = value.parse().unwrap_or(0);
            }
        }
        let mut body = vec![0_u8; length];
        lines.get_mut().read_exact(&mut body).await?;
        let target = first.split(' ').nth(1).unwrap_or_default().to_owned();
        let query =
            |key: &str| target.split(['?', '&']).find_map(|pair| pair.strip_prefix(key)).unwrap_or_default();
        if target.contains("watch=true") {
            let seconds = query("timeoutSeconds=").parse().unwrap_or(10);
            watch(&mut write, crowd, target.contains("/nodes"), Duration::from_secs(seconds)).await?;
            continue;
        }
        let body = if target.contains("/nodes") {
            let from = query("continue=").parse().unwrap_or(0);
            nodes(crowd, from, query("limit=").parse().unwrap_or(crowd.nodes))
        } else if target.contains("/leases") {
            leases(crowd)
        } else {
            json!({"kind": "EventList", "metadata": {"resourceVersion": version(crowd)}, "items": []})
                .to_string()
        };
        let head = format!(
            "HTTP/1.1 200 OK\r\ncontent-type: application/json\r\ncontent-length: {}\r\n\r\n",
            body.len()
        );
        write.write_all(head.as_bytes()).await?;
        write.write_all(body.as_bytes()).await?;
    }
}

/// Heartbeats of single nodes at the crowd's rate, one bookmark, and the end.
async fn watch(
    write: &mut (impl AsyncWriteExt + Unpin),
    crowd: &Crowd,
    of_nodes: bool,
    length: Duration,
) -> std::io::Result<()> {
    write
        .write_all(b"HTTP/1.1 200 OK\r\ncontent-type: application/json\r\ntransfer-encoding: chunked\r\n\r\n")
        .await?;
    let start = Instant::now();
    let mark = start + length.saturating_sub(Duration::from_secs(2));
    if of_nodes {
        let pause = HEARTBEAT / u32::try_from(crowd.nodes.max(1)).unwrap_or(u32::MAX);
        let mut beats = interval_at(start + pause, pause);
        while Instant::now() < mark {
            beats.tick().await;
            let number = crowd.version.fetch_add(1, Ordering::Relaxed) as usize % crowd.nodes.max(1);
            chunk(write, &format!("{{\"type\":\"MODIFIED\",\"object\":{}}}\n", node(crowd, number))).await?;
        }
        let object = json!({"kind": "Node", "metadata": {"resourceVersion": version(crowd)}});
        chunk(write, &format!("{{\"type\":\"BOOKMARK\",\"object\":{object}}}\n")).await?;
    }
    sleep_until(start + length).await;
    write.write_all(b"0\r\n\r\n").await
}

async fn chunk(write: &mut (impl AsyncWriteExt + Unpin), text: &str) -> std::io::Result<()> {
    write.write_all(format!("{:x}\r\n{text}\r\n", text.len()).as_bytes()).await
}

fn version(crowd: &Crowd) -> String {
    crowd.version.load(Ordering::Relaxed).to_string()
}

fn nodes(crowd: &Crowd, from: usize, limit: usize) -> String {
    let to = (from + limit).min(crowd.nodes);
    let items: Vec<Value> = (from..to).map(|number| node(crowd, number)).collect();
    // All pages are of one moment.
    let mut metadata = json!({"resourceVersion": "1000000"});
    if limit == 1 {
        metadata = json!({"resourceVersion": version(crowd)});
    }
    if to < crowd.nodes {
        metadata["continue"] = json!(to.to_string());
        metadata["remainingItemCount"] = json!(crowd.nodes - to);
    }
    json!({"kind": "NodeList", "metadata": metadata, "items": items}).to_string()
}

fn node(crowd: &Crowd, number: usize) -> Value {
    let name = format!("crowd-{number:05}");
    let id = format!("5f0c1d2e-0000-4a5b-8c9d-{number:012x}");
    let beat = version(crowd);
    let image = |at: usize| {
        let digest = format!("registry.example/team/component-{at}@sha256:{at:064x}");
        json!({"names": [digest, format!("registry.example/team/component-{at}:v1.2.{at}")], "sizeBytes": 123_456_789})
    };
    let condition = |kind: &str, status: &str| {
        json!({"type": kind, "status": status, "reason": format!("Kubelet{kind}"), "message": "kubelet is well",
               "lastHeartbeatTime": beat, "lastTransitionTime": "2026-01-01T00:00:00Z"})
    };
    let managed = |manager: &str| {
        let fields: Value = (0..30)
            .map(|at| (format!("f:field-{at}"), json!({"f:value": {}})))
            .collect::<serde_json::Map<_, _>>()
            .into();
        json!({"manager": manager, "operation": "Update", "apiVersion": "v1", "fieldsType": "FieldsV1", "fieldsV1": fields})
    };
    json!({
        "metadata": {
            "name": name, "uid": format!("uid-{number}"), "resourceVersion": beat,
            "labels": {"topology.kubernetes.io/zone": format!("nova-{}", number % 3), "kubernetes.io/hostname": name,
                       "kubernetes.io/os": "linux", "kubernetes.io/arch": "amd64"},
            "annotations": {"node.alpha.kubernetes.io/ttl": "300"},
            "managedFields": [managed("kubelet"), managed("openstack-cloud-controller-manager"), managed("kube-controller-manager")]
        },
        "spec": {"podCIDR": "198.19.1.0/24", "podCIDRs": ["198.19.1.0/24"], "providerID": format!("openstack:///{id}")},
        "status": {
            "capacity": {"cpu": "8", "memory": "32Gi", "pods": "110"}, "allocatable": {"cpu": "8", "memory": "31Gi", "pods": "110"},
            "conditions": [condition("MemoryPressure", "False"), condition("DiskPressure", "False"),
                           condition("PIDPressure", "False"), condition("NetworkUnavailable", "False"), condition("Ready", "True")],
            "addresses": [{"type": "InternalIP", "address": format!("10.{}.{}.{}", number >> 16, number >> 8 & 255, number & 255)},
                          {"type": "Hostname", "address": name}],
            "nodeInfo": {"systemUUID": id, "bootID": format!("boot-{number}"), "kubeletVersion": "v1.36.3"},
            "images": (0..50).map(image).collect::<Vec<_>>()
        }
    })
}

fn leases(crowd: &Crowd) -> String {
    let now = crowd.version.fetch_add(1, Ordering::Relaxed);
    let lease = |number: usize| {
        let name = format!("crowd-{number:05}");
        let fields = json!({"f:metadata": {"f:ownerReferences": {".": {}, "k:{\"uid\":\"u\"}": {}}},
                            "f:spec": {"f:holderIdentity": {}, "f:leaseDurationSeconds": {}, "f:renewTime": {}}});
        json!({
            "metadata": {"name": name, "namespace": "kube-node-lease", "uid": format!("l-{number}"), "resourceVersion": now.to_string(),
                         "creationTimestamp": "2026-01-01T00:00:00Z",
                         "ownerReferences": [{"apiVersion": "v1", "kind": "Node", "name": name, "uid": format!("uid-{number}")}],
                         "managedFields": [{"manager": "kubelet", "operation": "Update", "apiVersion": "coordination.k8s.io/v1",
                                            "time": "2026-01-01T00:00:00Z", "fieldsType": "FieldsV1", "fieldsV1": fields}]},
            "spec": {"holderIdentity": name, "leaseDurationSeconds": 40, "renewTime": format!("2026-01-01T00:00:00.{now:07}Z")}
        })
    };
    let items: Vec<Value> = (0..crowd.nodes).map(lease).collect();
    json!({"kind": "LeaseList", "metadata": {"resourceVersion": now.to_string()}, "items": items}).to_string()
}
