//! An audit log's lines: the best proof there is, because they name the writer, its program and its address.
//!
//! ```text
//!  {"stage":"ResponseComplete","verb":"update","user":…,"userAgent":…,"sourceIPs":[…],"objectRef":{…}} ─▶ Entry
//! ```
//!
//! A request has a line for each stage that the policy keeps; the last one counts, so that each request counts once. Bodies,
//! where the policy keeps them, are not read.

use serde_json::Value;

use crate::counts::{Client, Entry};
use crate::object::{Object, Resource};
use crate::stamp::Stamp;

/// Characters kept of a name that a client gives itself.
const NAME_MAX: usize = 120;

/// The write that this line tells of, if it tells of one that was done.
pub fn entry(line: &str) -> Option<Entry> {
    // Most lines of a log are reads: they are passed over before they are parsed.
    if !line.contains("\"ResponseComplete\"") {
        return None;
    }
    let event: Value = serde_json::from_str(line).ok()?;
    let text = |value: &Value| value.as_str().unwrap_or_default().chars().take(NAME_MAX).collect::<String>();
    let verb = event["verb"].as_str().filter(|verb| matches!(*verb, "update" | "patch"))?;
    if event["stage"] != "ResponseComplete" {
        return None;
    }
    // A conflict is a write that a client tried: it belongs to the competing writes.
    let code = event["responseStatus"]["code"].as_u64().unwrap_or(200);
    if !(200..300).contains(&code) && code != 409 {
        return None;
    }
    // A trial is answered as if it were done, and changes nothing.
    if is_trial(event["requestURI"].as_str().unwrap_or_default()) {
        return None;
    }
    let about = &event["objectRef"];
    let name = about["name"].as_str().filter(|name| !name.is_empty())?;
    let resource = Resource::new(&text(&about["apiGroup"]), about["resource"].as_str()?);
    let addresses = event["sourceIPs"].as_array().into_iter().flatten().filter_map(Value::as_str);
    let by = Client {
        user: text(&event["user"]["username"]),
        agent: text(&event["userAgent"]),
        addresses: addresses.take(4).collect::<Vec<_>>().join(" "),
    };
    Some(Entry {
        object: Object::new(resource, about["namespace"].as_str().unwrap_or_default(), name),
        by: Some(by),
        verb: verb.to_owned(),
        at: event["requestReceivedTimestamp"].as_str().and_then(Stamp::of_rfc3339),
    })
}

/// `?dryRun=All`, as `kubectl diff` asks.
fn is_trial(uri: &str) -> bool {
    let query = uri.split_once('?').map_or("", |(_, query)| query);
    query.split('&').any(|pair| pair.strip_prefix("dryRun=").is_some_and(|value| !value.is_empty()))
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::counts::Counts;
    use serde_json::json;

    fn line(nth: u32, stage: &str, verb: &str, agent: &str, address: &str, code: u16) -> String {
        json!({"kind": "Event", "auditID": nth.to_string(), "stage": stage, "verb": verb, "userAgent": agent,
            "user": {"username": "system:node"}, "sourceIPs": [address], "responseStatus": {"code": code},
            "objectRef": {"apiGroup": "management.cattle.io", "resource": "nodes", "namespace": "c-1", "name": "m-1"},
            "requestReceivedTimestamp": format!("2026-01-01T10:{:02}:{:02}.000000Z", nth / 60, nth % 60)})
        .to_string()
    }

    #[test]
    fn two_agents_with_one_identity_are_told_by_their_addresses() {
        let mut counts = Counts::default();
        for nth in 0..120 {
            let address = if nth % 2 == 0 { "10.0.0.1" } else { "10.0.0.2" };
            for stage in ["RequestReceived", "ResponseComplete"] {
                let entry = entry(&line(nth, stage, "update", "agent/1", address, 200));
                entry.into_iter().for_each(|entry| counts.take(entry));
            }
        }
        let hot = counts.hot();
        let [one] = hot.as_slice() else { panic!("{hot:?}") };
        assert_eq!(one.writes, 120);
        let by: Vec<_> = one.by.iter().map(|(client, writes)| (client.addresses.as_str(), *writes)).collect();
        assert_eq!(by, [("10.0.0.1", 60), ("10.0.0.2", 60)]);
    }

    #[test]
    fn only_writes_that_reached_their_object_count() {
        let counts = |verb, code| entry(&line(1, "ResponseComplete", verb, "a", "b", code)).is_some();
        assert!(counts("patch", 200) && counts("update", 409));
        assert!(!counts("get", 200) && !counts("update", 403) && !counts("create", 201));
        assert_eq!(entry("{\"stage\":\"ResponseComplete\""), None);
        let trial = |query: &str| {
            let mut said: Value =
                serde_json::from_str(&line(1, "ResponseComplete", "patch", "a", "b", 200)).unwrap();
            said["requestURI"] = json!(format!("/apis/g/v1/namespaces/c-1/nodes/m-1?{query}"));
            entry(&said.to_string()).is_some()
        };
        assert!(!trial("dryRun=All&fieldManager=kubectl") && trial("fieldManager=dryRun%3DAll"));
    }
}
