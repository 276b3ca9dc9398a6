//! A cluster and a project behind one port of 127.0.0.1, with real sockets and recorded answers, read-only.
//!
//! Two nodes, their two servers, a third server without a node, and a router that carries the nodes' pod ranges.

use std::io::{BufRead as _, BufReader, Read as _, Write as _};
use std::net::{TcpListener, TcpStream};
use std::sync::Arc;

/// Serves until the process of the test ends; returns the port. `tags` are the tags of the servers.
pub(crate) fn serve(tags: &'static str) -> u16 {
    listen(move |line, _, port| answer(line, port, tags))
}

/// Serves until the process of the test ends; `answer` gets the method and path, the body and the port of each request.
pub(crate) fn listen(answer: impl Fn(&str, &str, u16) -> (u16, String) + Send + Sync + 'static) -> u16 {
    let listener = TcpListener::bind("127.0.0.1:0").unwrap();
    let port = listener.local_addr().unwrap().port();
    let answer = Arc::new(answer);
    std::thread::spawn(move || {
        for stream in listener.incoming().flatten() {
            let answer = answer.clone();
            std::thread::spawn(move || answer_all(stream, port, &*answer));
        }
    });
    port
}

fn answer_all(stream: TcpStream, port: u16, answer: &dyn Fn(&str, &str, u16) -> (u16, String)) -> Option<()> {
    let mut write = stream.try_clone().ok()?;
    let mut read = BufReader::new(stream);
    loop {
        let mut line = String::new();
        if read.read_line(&mut line).ok()? == 0 {
            return None;
        }
        let mut length = 0;
        loop {
            let mut header = String::new();
            read.read_line(&mut header).ok()?;
            let Some((name, value)) = header.trim().split_once(':') else { break };
            if name.eq_ignore_ascii_case("content-length") {
                length = value.trim().parse().ok()?;
            }
        }
        let mut asked = vec![0; length];
        read.read_exact(&mut asked).ok()?;
        let mut words = line.split_whitespace();
        let (method, target) = (words.next()?, words.next()?);
        let path = target.split('?').next()?;
        let (status, body) = answer(&format!("{method} {path}"), &String::from_utf8_lossy(&asked), port);
        let token = if method == "POST" { "x-subject-token: t\r\n" } else { "" };
        let head = format!(
            "HTTP/1.1 {status} X\r\ncontent-type: application/json\r\n{token}content-length: {}\r\n\r\n",
            body.len()
        );
        write.write_all(format!("{head}{body}").as_bytes()).ok()?;
    }
}

/// A list of the API server.
pub(crate) fn list(kind: &str, items: String) -> String {
    let head = r#""metadata": {"resourceVersion": "7"}, "apiVersion": "v1""#;
    format!(r#"{{"kind": "{kind}", {head}, "items": [{items}]}}"#)
}

fn answer(line: &str, port: u16, tags: &str) -> (u16, String) {
    let body = match line {
        "GET /api/v1/nodes" => list("NodeList", [1, 2].map(|n| node(n, &format!("openstack:///s{n}"))).join(",")),
        "GET /apis/coordination.k8s.io/v1/namespaces/kube-node-lease/leases" => {
            list("LeaseList", String::new())
        }
        "GET /api/v1/namespaces/default/events" => list("EventList", String::new()),
        "GET /apis/management.cattle.io/v3/clusters" => list(
            "ClusterList",
            r#"{"metadata": {"name": "c-abcde"}, "spec": {"displayName": "shop"},
                "status": {"driver": "rancherKubernetesEngine"}}"#
                .to_owned(),
        ),
        "GET /apis/management.cattle.io/v3/namespaces/c-abcde/nodes" => {
            list("NodeList", [record("m-0123456789ab", 1), record("machine-h46dc", 2)].join(","))
        }
        "GET /api/v1/namespaces/cattle-system/pods" => list("PodList", String::new()),
        "POST /v3/auth/tokens" => return (201, login(port)),
        "GET /compute/v2.1/" => {
            r#"{"version": {"id": "v2.1", "version": "2.96", "min_version": "2.1"}}"#.to_owned()
        }
        "GET /compute/v2.1/servers/detail" => {
            let servers: Vec<String> = (1..=3).map(|number| server(number, tags)).collect();
            format!(r#"{{"servers": [{}]}}"#, servers.join(","))
        }
        "GET /network/v2.0/ports" => {
            let ports: Vec<String> = (1..=3).map(self::port).collect();
            format!(r#"{{"ports": [{}]}}"#, ports.join(","))
        }
        "GET /network/v2.0/security-groups" => {
            r#"{"security_groups": [{"id": "g1", "name": "k8s-nodes", "security_group_rules": []}]}"#.to_owned()
        }
        "GET /network/v2.0/routers" => r#"{"routers": [
            {"id": "r1", "name": "edge", "routes": [{"destination": "0.0.0.0/0", "nexthop": "10.0.0.254"}]},
            {"id": "r2", "name": "pods", "routes": [{"destination": "100.64.1.0/24", "nexthop": "10.0.0.1"},
                                                    {"destination": "100.64.2.0/24", "nexthop": "10.0.0.2"}]}]}"#
            .to_owned(),
        _ => return (404, r#"{"NeutronError": {"type": "NotFound", "message": "not here"}}"#.to_owned()),
    };
    (200, body)
}

/// A Rancher record. A record that a syncer mirrored lacks the fields that a registration writes, and still has a key.
fn record(name: &str, number: u8) -> String {
    let (config, rke) = match name.starts_with("m-") {
        true => (
            format!(r#", "customConfig": {{"address": "10.0.0.{number}", "sshKey": "hunter2-canary"}}"#),
            format!(
                r#", "rkeNode": {{"nodeName": "c-abcde:{name}", "hostnameOverride": "w-{number}",
                "address": "10.0.0.{number}", "role": ["worker"], "sshKey": "hunter2-canary"}}"#
            ),
        ),
        false => (String::new(), r#", "nodePlan": {"plan": {"token": "hunter2-canary"}}"#.to_owned()),
    };
    format!(
        r#"{{"metadata": {{"name": "{name}", "uid": "r{number}", "labels": {{"management.cattle.io/nodename": "w-{number}"}}}},
            "spec": {{"requestedHostname": "w-{number}", "worker": true{config}}},
            "status": {{"nodeName": "w-{number}"{rke}}}}}"#
    )
}

/// Node `w-N` of this machine.
pub(crate) fn node(number: u8, provider: &str) -> String {
    format!(
        r#"{{"metadata": {{"name": "w-{number}", "uid": "u{number}", "resourceVersion": "7"}},
            "spec": {{"providerID": "{provider}", "podCIDRs": ["100.64.{number}.0/24"]}},
            "status": {{"conditions": [{{"type": "Ready", "status": "True"}}],
                        "addresses": [{{"type": "InternalIP", "address": "10.0.0.{number}"}}]}}}}"#
    )
}

fn server(number: u8, tags: &str) -> String {
    format!(
        r#"{{"id": "s{number}", "name": "w-{number}", "status": "ACTIVE", "OS-EXT-STS:vm_state": "active",
            "tags": [{tags}]}}"#
    )
}

fn port(number: u8) -> String {
    format!(
        r#"{{"id": "p{number}", "device_id": "s{number}", "device_owner": "compute:nova", "network_id": "n1",
            "fixed_ips": [{{"ip_address": "10.0.0.{number}"}}], "security_groups": ["g1"], "status": "ACTIVE",
            "allowed_address_pairs": [{{"ip_address": "100.64.{number}.0/24"}}], "revision_number": 1}}"#
    )
}

fn login(port: u16) -> String {
    let service = |kind: &str, path: &str| {
        format!(
            r#"{{"type": "{kind}", "endpoints": [{{"interface": "public", "region_id": "R",
                "url": "http://127.0.0.1:{port}{path}"}}]}}"#
        )
    };
    format!(
        r#"{{"token": {{"project": {{"id": "p", "name": "p"}}, "catalog": [{}, {}]}}}}"#,
        service("compute", "/compute/v2.1"),
        service("network", "/network")
    )
}
