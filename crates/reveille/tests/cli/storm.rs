//! An API server on 127.0.0.1 with one Rancher record, which two field managers write in turn, eight times a second, without end.
//!
//! It lists its kinds as old servers do and streams its watches. A test can make it refuse both for a while.

use std::io::{BufRead as _, BufReader, Write as _};
use std::net::{TcpListener, TcpStream};
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::Duration;

use serde_json::{Value, json};

const RECORDS: &str = "/apis/management.cattle.io/v3/nodes";
const RECORD: &str = "/apis/management.cattle.io/v3/namespaces/c-abcde/nodes";
/// The time between two writes.
const APART: Duration = Duration::from_millis(125);

/// The server, which runs until the process of the test ends.
pub(crate) struct Storm {
    pub(crate) port: u16,
    refuses: Arc<AtomicBool>,
}

impl Storm {
    /// Starts the server. `refuses` makes it refuse lists and watches until `relent`.
    pub(crate) fn begin(refuses: bool) -> Self {
        let listener = TcpListener::bind("127.0.0.1:0").unwrap();
        let port = listener.local_addr().unwrap().port();
        let storm = Self { port, refuses: Arc::new(AtomicBool::new(refuses)) };
        let refuses = Arc::clone(&storm.refuses);
        std::thread::spawn(move || {
            for stream in listener.incoming().flatten() {
                let refuses = Arc::clone(&refuses);
                std::thread::spawn(move || answer(stream, &refuses));
            }
        });
        storm
    }

    /// From now on it answers.
    pub(crate) fn relent(&self) {
        self.refuses.store(false, Ordering::Relaxed);
    }

    /// A kubeconfig for the server.
    pub(crate) fn kubeconfig(&self) -> String {
        format!(
            "apiVersion: v1\nkind: Config\ncurrent-context: storm\n\
             clusters: [{{name: c, cluster: {{server: 'http://127.0.0.1:{}'}}}}]\n\
             users: [{{name: u, user: {{}}}}]\n\
             contexts: [{{name: storm, context: {{cluster: c, user: u}}}}]\n",
            self.port
        )
    }
}

/// Answers one request for each connection.
fn answer(stream: TcpStream, refuses: &AtomicBool) -> Option<()> {
    let mut write = stream.try_clone().ok()?;
    let mut read = BufReader::new(stream);
    let mut line = String::new();
    read.read_line(&mut line).ok()?;
    let mut header = String::new();
    while read.read_line(&mut header).ok()? > 2 {
        header.clear();
    }
    let target = line.split_whitespace().nth(1)?;
    let (path, query) = target.split_once('?').unwrap_or((target, ""));
    let is_told = [RECORDS, RECORD].contains(&path);
    if is_told && !refuses.load(Ordering::Relaxed) && query.contains("watch=true") {
        return blow(&mut write);
    }
    let (status, body) = match told(path) {
        _ if is_told && refuses.load(Ordering::Relaxed) => (403, status(403, "Forbidden")),
        Some(body) => (200, body),
        None => (404, status(404, "NotFound")),
    };
    let (body, head) = (body.to_string(), "content-type: application/json\r\nconnection: close\r\n");
    let length = body.len();
    write
        .write_all(format!("HTTP/1.1 {status} X\r\n{head}content-length: {length}\r\n\r\n{body}").as_bytes())
        .ok()
}

/// Streams a watch until the client closes it.
fn blow(write: &mut TcpStream) -> Option<()> {
    write
        .write_all(b"HTTP/1.1 200 OK\r\ncontent-type: application/json\r\ntransfer-encoding: chunked\r\n\r\n")
        .ok()?;
    for nth in 1_u64.. {
        let line = format!("{}\n", json!({"type": "MODIFIED", "object": record(nth)}));
        write.write_all(format!("{:x}\r\n{line}\r\n", line.len()).as_bytes()).ok()?;
        std::thread::sleep(APART);
    }
    Some(())
}

fn told(path: &str) -> Option<Value> {
    let verbs = ["get", "list", "watch"];
    Some(match path {
        "/api" => json!({"kind": "APIVersions", "versions": ["v1"]}),
        "/apis" => json!({"kind": "APIGroupList", "groups": [
            {"name": "management.cattle.io", "preferredVersion": {"version": "v3"}}]}),
        "/api/v1" => json!({"resources": [{"name": "configmaps", "namespaced": true, "verbs": verbs}]}),
        "/apis/management.cattle.io/v3" => json!({"resources": [
            {"name": "nodes", "namespaced": true, "verbs": verbs},
            {"name": "clusters", "namespaced": false, "verbs": verbs}]}),
        "/apis/management.cattle.io/v3/clusters/c-abcde" => {
            json!({"metadata": {"name": "c-abcde"}, "spec": {"displayName": "shop"}})
        }
        RECORDS | RECORD => json!({"kind": "NodeList", "apiVersion": "management.cattle.io/v3",
            "metadata": {"resourceVersion": "1"}, "items": [record(0)]}),
        _ => return None,
    })
}

/// The record at this version: the runtime's name is the one of the last writer.
fn record(nth: u64) -> Value {
    let (manager, host) = if nth.is_multiple_of(2) { ("agent-a", "host-1") } else { ("agent-b", "host-2") };
    json!({
        "apiVersion": "management.cattle.io/v3", "kind": "Node",
        "metadata": {"name": "machine-h46dc", "namespace": "c-abcde", "resourceVersion": (nth + 1).to_string(),
            "labels": {"management.cattle.io/nodename": "w-2"},
            "managedFields": [{"manager": manager, "operation": "Update", "time": format!("t{nth}"),
                "fieldsV1": {"f:spec": {"f:rkeNode": {"f:dockerInfo": {"f:name": {}}}}}}]},
        "spec": {"requestedHostname": "w-2", "rkeNode": {"dockerInfo": {"name": host}}},
        "status": {"internalNodeStatus": {"addresses": [{"type": "InternalIP", "address": "10.0.0.2"}]}},
    })
}

fn status(code: u16, reason: &str) -> Value {
    json!({"kind": "Status", "apiVersion": "v1", "status": "Failure", "code": code, "reason": reason,
        "message": format!("{reason} by the storm")})
}
