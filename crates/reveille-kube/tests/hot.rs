//! What the detector of hot objects asks of an API server, what it makes of the answers, and the rights that it needs.
#![allow(clippy::unwrap_used, reason = "in a test, what cannot be is a failure")]

mod support;

use std::collections::BTreeSet;
use std::convert::Infallible;
use std::sync::{Arc, Mutex};
use std::time::Duration;

use bytes::Bytes;
use futures::StreamExt;
use futures::stream;
use http::Request;
use kube::client::Body;
use reveille_hot::kinds::Generation;
use reveille_hot::{Event, Object, Resource};
use reveille_kube::Cluster;
use reveille_kube::rbac::{HOT_KINDS, Wanted, grants, manifest};
use reveille_kube::writes::Kind;
use serde_json::{Value, json};
use support::{Api, Reply, full, node, status, streamed};
use tokio::sync::mpsc;

/// An API server of one kind, which answers as it is told, and keeps what it was asked.
#[derive(Clone, Default)]
struct Server {
    is_old: bool,
    is_closed: bool,
    asked: Arc<Mutex<Vec<(String, String)>>>,
}

const THINGS: &str = "/apis/management.cattle.io/v3/nodes";

impl Server {
    fn cluster(&self) -> Cluster {
        let server = self.clone();
        let service = tower::service_fn(move |request: Request<Body>| server.clone().serve(request));
        Cluster::from_client(kube::Client::new(service, "default"), "api.test:6443")
    }

    fn asked(&self) -> Vec<(String, String)> {
        self.asked.lock().unwrap().clone()
    }

    async fn serve(self, request: Request<Body>) -> Result<Reply, Infallible> {
        let target = request.uri().to_string();
        let accepts = request.headers().get("accept").map(|accept| accept.to_str().unwrap().to_owned());
        self.asked.lock().unwrap().push((target.clone(), accepts.unwrap_or_default()));
        let (path, query) = target.split_once('?').unwrap_or((&target, ""));
        Ok(match path {
            _ if path.starts_with(THINGS) && self.is_closed => status(403, "Forbidden", "no", None, None),
            "/api" if self.is_old => full(200, &json!({"kind": "APIVersions", "versions": ["v1"]})),
            "/apis" if self.is_old => full(
                200,
                &json!({"kind": "APIGroupList", "groups": [
                {"name": "management.cattle.io", "preferredVersion": {"version": "v3"}},
                {"name": "away.example", "preferredVersion": {"version": "v1"}}]}),
            ),
            "/api/v1" => full(
                200,
                &json!({"resources": [
                {"name": "nodes", "namespaced": false, "verbs": ["get", "list", "watch"]},
                {"name": "nodes/status", "namespaced": false, "verbs": ["get"]},
                {"name": "bindings", "namespaced": true, "verbs": ["create"]}]}),
            ),
            "/apis/management.cattle.io/v3" => full(
                200,
                &json!({"resources": [
                {"name": "nodes", "namespaced": true, "verbs": ["get", "list", "watch"]}]}),
            ),
            "/api" => full(
                200,
                &aggregated(
                    "",
                    "v1",
                    &json!([
                {"resource": "nodes", "scope": "Cluster", "verbs": ["get", "list", "watch"], "subresources": [{"subresource": "status"}]},
                {"resource": "bindings", "scope": "Namespaced", "verbs": ["create"]}]),
                ),
            ),
            "/apis" => full(
                200,
                &aggregated(
                    "management.cattle.io",
                    "v3",
                    &json!([
                {"resource": "nodes", "scope": "Namespaced", "verbs": ["get", "list", "watch"]}]),
                ),
            ),
            THINGS if query.contains("watch") => {
                let lines =
                    [("MODIFIED", "machine-1", 11), ("ADDED", "machine-2", 12), ("DELETED", "machine-1", 13)];
                let lines = lines.map(|(kind, name, version)| line(kind, &thing(name, version)));
                streamed(stream::iter(lines).chain(stream::pending()).boxed())
            }
            THINGS => {
                let mut list = full(
                    200,
                    &json!({"kind": "PartialObjectMetadataList",
                    "metadata": {"resourceVersion": "10"}, "items": [thing("machine-1", 10)]}),
                );
                list.headers_mut().insert("date", "Thu, 01 Jan 2026 10:00:00 GMT".parse().unwrap());
                list
            }
            _ if query.contains("watch") => {
                let versions = [1, 2].map(|version| line("MODIFIED", &thing("machine-1", version)));
                streamed(stream::iter(versions).boxed())
            }
            "/metrics" => full(200, &json!("process_resident_memory_bytes 5")),
            _ => status(404, "NotFound", "no such path", None, None),
        })
    }
}

fn aggregated(group: &str, version: &str, resources: &Value) -> Value {
    let versions = json!([{"version": version, "freshness": "Current", "resources": resources}]);
    json!({"kind": "APIGroupDiscoveryList", "items": [{"metadata": {"name": group}, "versions": versions}]})
}

fn thing(name: &str, version: u64) -> Value {
    json!({"metadata": {"name": name, "namespace": "c-1", "resourceVersion": version.to_string(), "generation": 4_000,
        "creationTimestamp": "2026-01-01T09:00:00Z"}})
}

fn line(kind: &str, object: &Value) -> Bytes {
    Bytes::from(format!("{{\"type\":\"{kind}\",\"object\":{object}}}\n"))
}

fn record() -> Object {
    Object::new(Resource::new("management.cattle.io", "nodes"), "c-1", "machine-1")
}

async fn kinds(server: &Server) -> Vec<Kind> {
    server.cluster().kinds().await.unwrap()
}

#[tokio::test(start_paused = true)]
async fn an_old_server_tells_the_same_kinds_as_a_new_one() {
    let told = kinds(&Server::default()).await;
    let names: Vec<_> = told.iter().map(|kind| (kind.resource.to_string(), kind.counts)).collect();
    assert_eq!(
        names,
        [
            ("nodes".to_owned(), Generation::Nothing),
            ("nodes.management.cattle.io".to_owned(), Generation::EveryWrite)
        ]
    );
    assert_eq!(kinds(&Server { is_old: true, ..Server::default() }).await, told);
}

#[tokio::test(start_paused = true)]
async fn changes_are_told_by_name_and_cost_metadata_alone() {
    let server = Server::default();
    let kind = kinds(&server).await.pop().unwrap();
    let (events, mut told) = mpsc::channel(100);
    let cluster = server.cluster();
    let telling = tokio::spawn(async move { cluster.tell_writes(&kind, &events).await });
    let mut seen = Vec::new();
    for _ in 0..5 {
        seen.push(match tokio::time::timeout(Duration::from_secs(60), told.recv()).await.unwrap().unwrap() {
            Event::Listed { object, generation, age, .. } => {
                format!("listed {object} {generation} {}", age.unwrap())
            }
            Event::Watched(_) => "watched".to_owned(),
            Event::Written(object) => format!("written {}", object.name),
            Event::Gone(object) => format!("gone {}", object.name),
            other => panic!("{other:?}"),
        });
    }
    telling.abort();
    assert_eq!(
        seen,
        [
            "listed nodes.management.cattle.io c-1/machine-1 4000 60 min",
            "watched",
            "written machine-1",
            "written machine-2",
            "gone machine-1"
        ]
    );
    let things = server.asked().into_iter().filter(|(target, _)| target.starts_with(THINGS));
    assert!(things.into_iter().all(|(_, accepts)| accepts.contains("PartialObjectMetadata")));
}

#[tokio::test(start_paused = true)]
async fn what_may_not_be_read_is_given_up_and_said() {
    let server = Server { is_closed: true, ..Server::default() };
    let kind = kinds(&server).await.pop().unwrap();
    let untold = server.cluster().tell_writes(&kind, &mpsc::channel(1).0).await;
    // No task listens to the channel, and the refusal is told all the same.
    assert!(untold.is_ok() || untold.unwrap_err().is_forbidden);
    let (events, _told) = mpsc::channel(1);
    assert!(server.cluster().tell_writes(&kind, &events).await.unwrap_err().is_forbidden);
}

#[tokio::test(start_paused = true)]
async fn single_object_is_watched_and_path_escaping_name_is_not_sent() {
    let server = Server::default();
    let kind = kinds(&server).await.pop().unwrap();
    let (events, mut told) = mpsc::channel(100);
    server.cluster().tell_versions(&kind, &record(), &events).await;
    assert!(matches!(told.recv().await, Some(Event::Version(object, _)) if object == record()));
    let last = server.asked().pop().unwrap().0;
    assert!(last.starts_with("/apis/management.cattle.io/v3/namespaces/c-1/nodes?"), "{last}");
    assert!(last.contains("fieldSelector=metadata.name%3Dmachine-1"), "{last}");
    let count = server.asked().len();
    for (namespace, name) in [("c-1", "../../secrets/x"), ("c-1/secrets", "x"), ("c-1", "x?y"), ("..", "x")] {
        let stray = Object::new(record().resource, namespace, name);
        assert!(server.cluster().read_object(&kind, &stray).await.is_err());
        server.cluster().tell_versions(&kind, &stray, &events).await;
    }
    assert_eq!(server.asked().len(), count);
}

#[tokio::test(start_paused = true)]
async fn hot_object_rights_cover_all_requests_and_no_secrets() {
    let server = Server::default();
    let cluster = server.cluster();
    let (events, _told) = mpsc::channel(1_000);
    for kind in kinds(&server).await {
        cluster.list_writes(&kind, &events).await.ok();
        cluster.tell_versions(&kind, &Object::new(kind.resource.clone(), "", "a"), &events).await;
        cluster.read_object(&kind, &Object::new(kind.resource.clone(), "", "a")).await.ok();
    }
    cluster.counts().await.unwrap();
    let allowed: BTreeSet<String> = HOT_KINDS
        .iter()
        .flat_map(|(group, kinds)| kinds.iter().map(move |kind| format!("{group}/{kind}")))
        .collect();
    for (target, _) in server.asked() {
        let path = target.split('?').next().unwrap();
        // Every authenticated client may read which kinds there are.
        if path == "/api" || path == "/apis" || path == "/metrics" {
            continue;
        }
        let parts: Vec<&str> = path.split('/').skip(1).collect();
        let (group, plural) = match parts.as_slice() {
            ["api", "v1", plural, ..] => ("", *plural),
            ["apis", group, _, plural, ..] => (*group, *plural),
            other => panic!("{other:?}"),
        };
        assert!(allowed.contains(&format!("{group}/{plural}")), "{target}");
    }
    let rights = |wanted| manifest(&grants(&wanted), "reveille", "reveille").unwrap();
    let looking = rights(Wanted::default());
    let rights = rights(Wanted { hot: true, ..Wanted::default() });
    assert!(rights.contains("nonResourceURLs:") && rights.contains("/metrics"), "{rights}");
    assert!(!rights.contains("secrets") && !rights.contains("delete"));
    // Only the Lease by which a roster's controllers know of each other is written.
    assert_eq!(rights.matches("update").count(), 1, "{rights}");
    assert!(!looking.contains("/metrics"));
}

#[tokio::test(start_paused = true)]
async fn endlessly_written_node_is_reported_by_the_running_watch() {
    let api = Api::default();
    api.put(node("a", "uid-a"));
    api.put(node("b", "uid-b"));
    let cluster = api.cluster();
    let (facts, mut told) = mpsc::channel(1_000);
    let watched = cluster.clone();
    let watching = tokio::spawn(async move { watched.watch(facts, std::future::pending()).await });
    tokio::spawn(async move { while told.recv().await.is_some() {} });
    tokio::time::sleep(Duration::from_secs(1)).await;
    for nth in 0..100 {
        api.edit("a", |node| node["metadata"]["annotations"]["turn"] = json!(nth.to_string()));
        tokio::time::sleep(Duration::from_millis(200)).await;
    }
    api.edit("b", |node| node["metadata"]["annotations"]["turn"] = json!("once"));
    let hot: Vec<String> = cluster.hot_nodes().iter().map(|verdict| verdict.subject.to_string()).collect();
    watching.abort();
    assert_eq!(hot, ["nodes a"]);
}
