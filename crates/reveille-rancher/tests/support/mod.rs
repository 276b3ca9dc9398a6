//! Two API servers in this process: they keep objects by path, page lists by the limit that is asked for, and refuse what they
//! are told to refuse, in the API server's own words.

#![allow(dead_code, reason = "each test file uses a part of it")]

use std::cell::RefCell;
use std::collections::BTreeMap;

use reveille_rancher::ask::{ApiClient, Given, Refused, Request, Verb};
use serde_json::{Value, json};

/// What the server's clock says.
pub(crate) const DATE: &str = "Sun, 22 Nov 2026 21:00:00 GMT";

/// An API server.
#[derive(Default)]
pub(crate) struct Api {
    /// Lists, by path: items in order.
    pub(crate) lists: BTreeMap<String, Vec<Value>>,
    /// Paths that are refused with 403.
    pub(crate) forbidden: Vec<String>,
    /// Items of a page at most.
    pub(crate) page: usize,
    /// The page of this number, from 0, is not answered.
    pub(crate) lost_page: Option<usize>,
    /// What was asked, in order.
    pub(crate) asked: RefCell<Vec<(Verb, String)>>,
    /// Bodies that were sent, in order. Nothing is changed by them.
    pub(crate) bodies: RefCell<Vec<Value>>,
}

impl Api {
    pub(crate) fn with(lists: &[(&str, Vec<Value>)]) -> Self {
        let lists = lists.iter().map(|(path, items)| ((*path).to_owned(), items.clone()));
        Self { lists: lists.collect(), page: 2, ..Self::default() }
    }
}

fn refused(code: u16, cause: &str, missing: bool) -> Refused {
    Refused { cause: format!("{code} {cause}"), missing, code: Some(code), may_have_happened: false }
}

impl ApiClient for Api {
    async fn send(&self, request: Request) -> Result<Given, Refused> {
        self.asked.borrow_mut().push((request.verb, request.target.clone()));
        if let Some(body) = &request.body {
            self.bodies.borrow_mut().push(serde_json::from_slice(body).unwrap());
        }
        let (path, query) = request.target.split_once('?').unwrap_or((&request.target, ""));
        if self.forbidden.iter().any(|part| path.contains(part)) {
            return Err(refused(403, "Forbidden", false));
        }
        let given = |body: Value| Given { body: body.to_string().into_bytes(), date: Some(DATE.to_owned()) };
        if let Some(items) = self.lists.get(path) {
            let next = query.split('&').find_map(|pair| pair.strip_prefix("continue="));
            let from: usize = next.map_or(0, |next| next.parse().unwrap());
            if self.lost_page == Some(from / self.page) {
                let cause = "no answer within 30 s".to_owned();
                return Err(Refused { cause, missing: false, code: None, may_have_happened: true });
            }
            let page: Vec<&Value> = items.iter().skip(from).take(self.page).collect();
            let to = from + page.len();
            let next = if to < items.len() { to.to_string() } else { String::new() };
            return Ok(given(json!({"metadata": {"resourceVersion": "7", "continue": next}, "items": page})));
        }
        let named = path.rsplit_once('/').and_then(|(list, name)| {
            self.lists.get(list)?.iter().find(|item| item["metadata"]["name"] == name)
        });
        match named {
            Some(item) => Ok(given(item.clone())),
            None => Err(refused(404, "Not Found", request.about.is_some())),
        }
    }
}

/// A record as an agent's registration makes it, with its keys.
pub(crate) fn registered(record: &str, node: &str, ip: &str) -> Value {
    json!({
        "metadata": {
            "name": record, "namespace": "c-abcde", "uid": format!("uid-{record}"), "resourceVersion": "5",
            "creationTimestamp": "2026-11-22T20:00:00Z", "generation": 9,
            "labels": {"management.cattle.io/nodename": node},
            "annotations": {"management.cattle.io/nodesyncer": "true", "lifecycle.cattle.io/create.node-controller": "true"},
            "finalizers": ["controller.cattle.io/node-controller"]
        },
        "spec": {
            "requestedHostname": node, "imported": true, "worker": true, "etcd": false, "controlPlane": false,
            "customConfig": {"address": ip, "sshKey": "k3y-canary", "label": null, "taints": null}
        },
        "status": {
            "nodeName": node,
            "rkeNode": {"nodeName": format!("c-abcde:{record}"), "hostnameOverride": node, "address": ip, "port": "22",
                        "role": ["worker"], "user": "root", "sshKey": "k3y-canary"},
            "internalNodeStatus": {"addresses": [{"type": "InternalIP", "address": ip}, {"type": "Hostname", "address": node}]},
            "dockerInfo": {"ID": "x"}, "nodePlan": {"plan": {"files": [{"contents": "k3y-canary"}]}},
            "conditions": [{"type": "Provisioned", "status": "True"}, {"type": "Saved", "status": "True"}]
        }
    })
}

/// A record as the syncer makes it of a Node without one.
pub(crate) fn mirrored(record: &str, node: &str, ip: &str) -> Value {
    let mut value = registered(record, node, ip);
    for field in ["imported", "customConfig"] {
        value["spec"].as_object_mut().unwrap().remove(field);
    }
    for field in ["rkeNode", "dockerInfo", "nodePlan"] {
        value["status"].as_object_mut().unwrap().remove(field);
    }
    value
}

pub(crate) fn node(name: &str, ip: &str) -> Value {
    json!({
        "metadata": {"name": name, "uid": format!("uid-{name}"), "resourceVersion": "3",
                     "labels": {"node-role.kubernetes.io/worker": "true"}, "creationTimestamp": "2026-11-22T20:00:00Z"},
        "spec": {},
        "status": {"conditions": [{"type": "Ready", "status": "True"}],
                   "addresses": [{"type": "InternalIP", "address": ip}, {"type": "Hostname", "address": name}]}
    })
}

pub(crate) fn cluster(id: &str, name: &str, driver: &str) -> Value {
    json!({"metadata": {"name": id}, "spec": {"displayName": name}, "status": {"driver": driver,
           "conditions": [{"type": "Provisioned", "status": "True"}, {"type": "Updated", "status": "True"}]}})
}
