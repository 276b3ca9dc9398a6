//! An API server in this process, for tests: real URLs, real bodies, real watch semantics, no socket.
//!
//! It keeps nodes with versions and a history, pages lists, resumes watches after the version they name, sends a bookmark two
//! seconds before a watch ends and ends it after `timeoutSeconds`, as kube-apiserver does. [`Faults`] says what it does
//! wrong. Every request is kept for tests that count them. Time is tokio's, so a paused clock drives it.

use std::collections::BTreeMap;
use std::convert::Infallible;
use std::sync::{Arc, Mutex};
use std::time::Duration;

use base64::Engine as _;
use base64::engine::general_purpose::STANDARD;
use bytes::Bytes;
use futures::StreamExt;
use futures::stream;
use http::Request;
use http_body_util::BodyExt;
use kube::client::Body;
use reveille_kube::Cluster;
use serde_json::{Value, json};
use tokio::sync::watch;
use tokio::time::{Instant, sleep_until};

use super::answer::{Answer, Query, Refuse, endless, frames, full, line, missing, status, streamed};

/// What the server does wrong. Nothing, by default.
#[derive(Clone, Debug, Default)]
pub(crate) struct Faults {
    /// Requests whose path and query contain the text get this answer, the first match counts.
    pub(crate) refusals: Vec<(&'static str, Refuse)>,
    /// Watches stay open and say nothing, not even their end.
    pub(crate) watches_silent: bool,
    /// Changes of nodes reach no watch (and are not sent later either).
    pub(crate) events_lost: bool,
    /// No request is answered.
    pub(crate) hung: bool,
    /// Watches of versions before this one are too old.
    pub(crate) compacted: u64,
    /// Pages after the first are of another moment.
    pub(crate) pages_drift: bool,
    /// Every page is the first one.
    pub(crate) pages_repeat: bool,
    /// Pages of more items than this, of nodes or events, are longer than the adapter reads.
    pub(crate) items_readable: Option<usize>,
    /// Pages of more nodes than this stop after so many, and never end.
    pub(crate) nodes_in_time: Option<usize>,
    /// Watches of nodes begin with this line.
    pub(crate) first_line: Option<&'static str>,
    /// Pages of certificate requests hold no more than this, whatever is asked for.
    pub(crate) requests_of_a_page: Option<usize>,
    /// The UID of the namespace kube-system: another one is another cluster behind the same address.
    pub(crate) kube_system: Option<&'static str>,
    /// Lists say this version instead of the true one.
    pub(crate) version_said: Option<u64>,
}

/// One thing that happened to a node.
#[derive(Clone)]
struct Change {
    version: u64,
    kind: &'static str,
    object: Value,
    lost: bool,
}

#[derive(Default)]
struct World {
    version: u64,
    nodes: BTreeMap<String, Value>,
    history: Vec<Change>,
    leases: Vec<Value>,
    lease_version: Option<u64>,
    events: Vec<Value>,
    certificate_requests: Vec<Value>,
    faults: Faults,
    requests: Vec<(String, String)>,
    bodies: Vec<Value>,
}

/// The server.
#[derive(Clone)]
pub(crate) struct Api {
    world: Arc<Mutex<World>>,
    changed: watch::Sender<u64>,
}

/// A node as kubelets and cloud controllers make them.
pub(crate) fn node(name: &str, uid: &str) -> Value {
    json!({
        "kind": "Node", "apiVersion": "v1",
        "metadata": {"name": name, "uid": uid, "labels": {"topology.kubernetes.io/zone": "nova-a"}, "annotations": {}},
        "spec": {"providerID": "openstack:///5f0c1d2e-0000-4a5b-8c9d-0123456789ab", "podCIDRs": ["198.19.1.0/24"]},
        "status": {
            "conditions": [{"type": "Ready", "status": "True", "reason": "KubeletReady", "lastHeartbeatTime": "t0"}],
            "addresses": [{"type": "InternalIP", "address": "10.0.0.5"}],
            "nodeInfo": {"systemUUID": "5F0C1D2E00004A5B8C9D0123456789AB", "bootID": "b1", "kubeletVersion": "v1.36.3"}
        }
    })
}

/// An event about a node.
pub(crate) fn event(name: &str, node: &str, reason: &str, stamped: &str) -> Value {
    json!({
        "metadata": {"name": name, "namespace": "default", "uid": name},
        "involvedObject": {"kind": "Node", "name": node, "uid": node},
        "reason": reason, "message": format!("{reason} of {node}"),
        "source": {"component": "cloud-node-lifecycle-controller"}, "lastTimestamp": stamped
    })
}

/// A request for a client certificate as a kubelet makes it with its bootstrap token, for `w-1`.
pub(crate) fn certificate_request(name: &str, stamped: &str) -> Value {
    let request = STANDARD.encode(include_str!("w-1.csr.pem"));
    json!({
        "metadata": {"name": name, "creationTimestamp": stamped},
        "spec": {"request": request, "signerName": "kubernetes.io/kube-apiserver-client-kubelet",
                 "username": "system:bootstrap:q1w2e3", "groups": ["system:bootstrappers"]},
        "status": {}
    })
}

impl Default for Api {
    fn default() -> Self {
        let world = World { version: 100, ..World::default() };
        Self { world: Arc::new(Mutex::new(world)), changed: watch::Sender::new(100) }
    }
}

impl Api {
    /// A cluster behind it.
    pub(crate) fn cluster(&self) -> Cluster {
        let api = self.clone();
        let service = tower::service_fn(move |request: Request<Body>| api.clone().serve(request));
        Cluster::from_client(kube::Client::new(service, "default"), "api.test:6443")
    }

    /// Changes what it does wrong.
    pub(crate) fn fault(&self, change: impl FnOnce(&mut Faults)) {
        let mut world = self.world.lock().unwrap();
        change(&mut world.faults);
        drop(world);
        self.changed.send_modify(|_| {});
    }

    /// Creates or replaces a node.
    pub(crate) fn put(&self, object: Value) {
        let name = object["metadata"]["name"].as_str().unwrap_or("nameless").to_owned();
        let known = self.world.lock().unwrap().nodes.contains_key(&name);
        self.change(name, if known { "MODIFIED" } else { "ADDED" }, object);
    }

    /// Changes a node in place.
    pub(crate) fn edit(&self, name: &str, change: impl FnOnce(&mut Value)) {
        let mut object = self.world.lock().unwrap().nodes[name].clone();
        change(&mut object);
        self.put(object);
    }

    /// Deletes a node.
    pub(crate) fn delete(&self, name: &str) {
        let object = self.world.lock().unwrap().nodes[name].clone();
        self.change(name.to_owned(), "DELETED", object);
    }

    /// Tells watches that this object was deleted, whatever the store holds: a late delivery.
    pub(crate) fn tell_deleted(&self, mut object: Value) {
        let mut world = self.world.lock().unwrap();
        world.version += 1;
        let version = world.version;
        object["metadata"]["resourceVersion"] = json!(version.to_string());
        world.history.push(Change { version, kind: "DELETED", object, lost: false });
        drop(world);
        self.changed.send_modify(|newest| *newest = version);
    }

    fn change(&self, name: String, kind: &'static str, mut object: Value) {
        let mut world = self.world.lock().unwrap();
        world.version += 1;
        let version = world.version;
        if object["metadata"].is_object() {
            object["metadata"]["resourceVersion"] = json!(version.to_string());
        }
        match kind {
            "DELETED" => drop(world.nodes.remove(&name)),
            _ => drop(world.nodes.insert(name, object.clone())),
        }
        let lost = world.faults.events_lost;
        world.history.push(Change { version, kind, object, lost });
        drop(world);
        self.changed.send_modify(|newest| *newest = version);
    }

    /// Replaces all leases: name and renewal.
    pub(crate) fn leases(&self, leases: &[(&str, &str)]) {
        let lease =
            |(name, at): &(&str, &str)| json!({"metadata": {"name": name}, "spec": {"renewTime": at}});
        let mut world = self.world.lock().unwrap();
        world.version += 1;
        world.leases = leases.iter().map(lease).collect();
    }

    /// The version that lists of leases say, as a cache that is behind would.
    pub(crate) fn lease_version(&self, version: Option<u64>) {
        self.world.lock().unwrap().lease_version = version;
    }

    /// Writes an event.
    pub(crate) fn say(&self, mut event: Value) {
        let mut world = self.world.lock().unwrap();
        world.version += 1;
        let version = world.version;
        event["metadata"]["resourceVersion"] = json!(version.to_string());
        world.events.push(event);
        drop(world);
        self.changed.send_modify(|newest| *newest = version);
    }

    /// Makes a certificate request.
    pub(crate) fn request(&self, request: Value) {
        self.world.lock().unwrap().certificate_requests.push(request);
    }

    /// Method and path with query of every request so far.
    pub(crate) fn requests(&self) -> Vec<(String, String)> {
        self.world.lock().unwrap().requests.clone()
    }

    /// Bodies of the writes so far.
    pub(crate) fn bodies(&self) -> Vec<Value> {
        self.world.lock().unwrap().bodies.clone()
    }

    async fn serve(self, request: Request<Body>) -> Result<Answer, Infallible> {
        let method = request.method().to_string();
        let target = request.uri().path_and_query().map(ToString::to_string).unwrap_or_default();
        let body = request.into_body().collect().await.map(|body| body.to_bytes()).unwrap_or_default();
        let (faults, query) = {
            let mut world = self.world.lock().unwrap();
            world.requests.push((method.clone(), target.clone()));
            if !body.is_empty() {
                world.bodies.push(serde_json::from_slice(&body).unwrap());
            }
            (world.faults.clone(), Query::of(&target))
        };
        if faults.hung {
            std::future::pending::<()>().await;
        }
        if let Some((_, refuse)) = faults.refusals.iter().find(|(part, _)| target.contains(part)) {
            return Ok(refuse.answer().await);
        }
        let path = target.split('?').next().unwrap_or_default();
        Ok(match (method.as_str(), path) {
            ("GET", "/api/v1/namespaces/kube-system") => {
                let uid = faults.kube_system.unwrap_or("uid-of-kube-system");
                full(200, &json!({"kind": "Namespace", "metadata": {"name": "kube-system", "uid": uid}}))
            }
            ("GET", "/api/v1/nodes") if query.watch => self.watch_nodes(query),
            ("GET", "/api/v1/nodes") => self.list_nodes(&query),
            ("GET", "/api/v1/namespaces/default/events") if query.watch => self.watch_events(query),
            ("GET", "/api/v1/namespaces/default/events") => self.list_events(&query),
            ("GET", "/apis/coordination.k8s.io/v1/namespaces/kube-node-lease/leases") => self.list_leases(),
            ("GET", "/apis/certificates.k8s.io/v1/certificatesigningrequests") => self.list_requests(&query),
            (verb, path) => match path.strip_prefix("/api/v1/nodes/") {
                Some(name) if verb == "GET" => self.get_node(name),
                Some(name) if verb == "DELETE" => self.delete_node(name, &body),
                _ => status(404, "NotFound", "the server could not find the requested resource", None, None),
            },
        })
    }

    fn list_nodes(&self, query: &Query) -> Answer {
        let world = self.world.lock().unwrap();
        let (from, version): (usize, u64) = match query.next.as_deref().and_then(|next| next.split_once('@'))
        {
            Some((from, version)) => (from.parse().unwrap(), version.parse().unwrap()),
            None => (0, world.faults.version_said.unwrap_or(world.version)),
        };
        let limit = query.limit.unwrap_or(usize::MAX);
        let from = if world.faults.pages_repeat { 0 } else { from };
        let version = if world.faults.pages_drift && from > 0 { version + 1 } else { version };
        let items: Vec<&Value> = world.nodes.values().skip(from).take(limit).collect();
        if world.faults.items_readable.is_some_and(|most| items.len() > most) {
            return endless();
        }
        if let Some(most) = world.faults.nodes_in_time.filter(|most| items.len() > *most) {
            let arrived: String = items[..most].iter().map(|item| format!("{item},")).collect();
            let begun = format!(r#"{{"kind":"NodeList","metadata":{{}},"items":[{arrived}"#);
            return streamed(stream::iter([Bytes::from(begun)]).chain(stream::pending()).boxed());
        }
        let rest = world.nodes.len() - from - items.len();
        let mut metadata = json!({"resourceVersion": version.to_string()});
        if rest > 0 {
            metadata["continue"] = json!(format!("{}@{version}", from + items.len()));
            metadata["remainingItemCount"] = json!(rest);
        }
        full(200, &json!({"kind": "NodeList", "metadata": metadata, "items": items}))
    }

    fn list_events(&self, query: &Query) -> Answer {
        let world = self.world.lock().unwrap();
        let about = |event: &&Value| {
            query.about.as_deref().is_none_or(|name| event["involvedObject"]["name"] == name)
        };
        let from: usize = query.next.as_deref().map_or(0, |next| next.parse().unwrap());
        let limit = query.limit.unwrap_or(usize::MAX);
        let about: Vec<&Value> = world.events.iter().filter(about).skip(from).collect();
        let items = &about[..about.len().min(limit)];
        if world.faults.items_readable.is_some_and(|most| items.len() > most) {
            return endless();
        }
        let mut metadata = json!({"resourceVersion": world.version.to_string()});
        if items.len() < about.len() {
            metadata["continue"] = json!((from + items.len()).to_string());
        }
        full(200, &json!({"kind": "EventList", "metadata": metadata, "items": items}))
    }

    fn list_leases(&self) -> Answer {
        let world = self.world.lock().unwrap();
        let version = world.lease_version.unwrap_or(world.version).to_string();
        full(
            200,
            &json!({"kind": "LeaseList", "metadata": {"resourceVersion": version}, "items": world.leases}),
        )
    }

    fn list_requests(&self, query: &Query) -> Answer {
        let world = self.world.lock().unwrap();
        let from: usize = query.next.as_deref().map_or(0, |next| next.parse().unwrap());
        let limit = world.faults.requests_of_a_page.or(query.limit).unwrap_or(usize::MAX);
        let items: Vec<&Value> = world.certificate_requests.iter().skip(from).take(limit).collect();
        let mut metadata = json!({"resourceVersion": world.version.to_string()});
        if from + items.len() < world.certificate_requests.len() {
            metadata["continue"] = json!((from + items.len()).to_string());
        }
        let kind = "CertificateSigningRequestList";
        full(200, &json!({"kind": kind, "metadata": metadata, "items": items}))
    }

    fn get_node(&self, name: &str) -> Answer {
        match self.world.lock().unwrap().nodes.get(name) {
            Some(node) => full(200, node),
            None => missing(name),
        }
    }

    fn delete_node(&self, name: &str, body: &[u8]) -> Answer {
        let Some(node) = self.world.lock().unwrap().nodes.get(name).cloned() else { return missing(name) };
        let options: Value = serde_json::from_slice(body).unwrap_or_default();
        let wanted = &options["preconditions"]["uid"];
        if !wanted.is_null() && *wanted != node["metadata"]["uid"] {
            let text =
                format!("Precondition failed: UID in precondition: {wanted}, UID in object meta: other");
            return status(409, "Conflict", &text, Some(name), None);
        }
        self.delete(name);
        let mut answer = full(200, &json!({"kind": "Status", "status": "Success"}));
        answer.headers_mut().insert("audit-id", "audit-7".parse().unwrap());
        answer
    }

    fn watch_nodes(&self, query: Query) -> Answer {
        let pick = |world: &World, after: u64| {
            let next = world.history.iter().find(|change| change.version > after && !change.lost)?;
            Some((next.version, json!({"type": next.kind, "object": next.object})))
        };
        self.watch(query, "Node", pick)
    }

    fn watch_events(&self, query: Query) -> Answer {
        let pick = |world: &World, after: u64| {
            let version = |event: &Value| event["metadata"]["resourceVersion"].as_str()?.parse::<u64>().ok();
            let next =
                world.events.iter().find(|event| version(event).is_some_and(|version| version > after))?;
            Some((version(next)?, json!({"type": "ADDED", "object": next})))
        };
        self.watch(query, "Event", pick)
    }

    fn watch(
        &self,
        query: Query,
        kind: &'static str,
        pick: impl Fn(&World, u64) -> Option<(u64, Value)> + Send + Sync + 'static,
    ) -> Answer {
        let world = self.world.lock().unwrap();
        if query.version < world.faults.compacted {
            let error = json!({"kind": "Status", "code": 410, "reason": "Expired", "message": "too old resource version"});
            return streamed(stream::iter([line(&json!({"type": "ERROR", "object": error}))]).boxed());
        }
        if let Some(first) = world.faults.first_line.filter(|_| kind == "Node") {
            return streamed(
                stream::iter([Bytes::from_static(first.as_bytes())]).chain(stream::pending()).boxed(),
            );
        }
        drop(world);
        let end = Instant::now() + Duration::from_secs(query.timeout_s);
        let mark = end - Duration::from_secs(2).min(Duration::from_secs(query.timeout_s));
        let watching = Watching {
            api: self.clone(),
            changed: self.changed.subscribe(),
            after: query.version,
            mark: Some(mark),
            end,
            kind,
            pick: Box::new(pick),
        };
        streamed(stream::unfold(watching, Watching::next).flat_map(frames).boxed())
    }
}

type Pick = Box<dyn Fn(&World, u64) -> Option<(u64, Value)> + Send + Sync>;

struct Watching {
    api: Api,
    changed: watch::Receiver<u64>,
    after: u64,
    mark: Option<Instant>,
    end: Instant,
    kind: &'static str,
    pick: Pick,
}

impl Watching {
    async fn next(mut self) -> Option<(Bytes, Self)> {
        loop {
            let (silent, found) = {
                let world = self.api.world.lock().unwrap();
                (world.faults.watches_silent || world.faults.hung, (self.pick)(&world, self.after))
            };
            if silent {
                let _ = self.changed.changed().await;
                continue;
            }
            if let Some((version, object)) = found {
                self.after = version;
                return Some((line(&object), self));
            }
            let now = Instant::now();
            if now >= self.end {
                return None;
            }
            if self.mark.is_some_and(|mark| now >= mark) {
                self.mark = None;
                // As the real one: up to where this watch has been served, which may be behind the store.
                let newest = self.api.world.lock().unwrap().version;
                self.after = self.after.max(newest);
                let metadata = json!({"resourceVersion": self.after.to_string()});
                let object = json!({"kind": self.kind, "apiVersion": "v1", "metadata": metadata});
                return Some((line(&json!({"type": "BOOKMARK", "object": object})), self));
            }
            let wake = self.mark.unwrap_or(self.end);
            tokio::select! {
                _ = self.changed.changed() => {}
                () = sleep_until(wake) => {}
            }
        }
    }
}
