//! What happened to the Node between two inspections, by the API server's own history.
//!
//! ```text
//!  look: it is not there ─▶ a list of its name alone ─▶ the revision of that moment
//!  next: it is not there ─▶ a watch from that revision, over at once ─▶ it came and went, or nothing happened
//! ```
//!
//! A cloud controller that does not know a machine deletes its Node within a second. An agent that only reads the Node
//! now and then would take this for a kubelet that never registered. A kubelet may list and watch the Node of its own
//! name, and no other. If the agent may not watch, or the revision is too old, it learns nothing and starts again from a
//! new list.

use std::sync::PoisonError;

use serde::Deserialize;

use super::Inspector;
use crate::identity::Identity;
use crate::node_object::NodeObject;
use crate::target::kubeconfig::{Client, Kubeconfig};

/// The watch ends after this time: earlier events come at once.
const WATCH_S: u8 = 1;

/// A list, of which only the revision counts.
#[derive(Deserialize)]
struct Listed {
    metadata: Moment,
}

#[derive(Deserialize)]
struct Moment {
    #[serde(rename = "resourceVersion")]
    revision: String,
}

/// One line of a watch.
#[derive(Deserialize)]
struct Happened {
    #[serde(rename = "type")]
    kind: String,
    object: NodeObject,
}

impl Inspector {
    /// The Node does not exist now: did it exist at some moment since the last inspection? The next inspection asks about
    /// events from now on.
    pub(super) async fn came_and_went(&self, own: &Kubeconfig, client: &Client) -> bool {
        let name = format!("/api/v1/nodes?fieldSelector=metadata.name%3D{}", self.node_name);
        let Some(since) = self.take_revision() else {
            let answer = self.with_certificate(own, client, &name).await;
            let listed = answer.ok().filter(|answer| answer.status == 200);
            let listed = listed.and_then(|answer| serde_json::from_slice::<Listed>(&answer.body).ok());
            self.keep_revision(listed.map(|listed| listed.metadata.revision));
            return false;
        };
        let path = format!("{name}&watch=true&timeoutSeconds={WATCH_S}&resourceVersion={since}");
        let answer = self.with_certificate(own, client, &path).await;
        let Some(answer) = answer.ok().filter(|answer| answer.status == 200) else { return false };
        let identity = Identity::read(&self.root);
        let (was_there, until) = read(&answer.body, since, |node| !identity.is_anothers(node.info()));
        self.keep_revision(until);
        was_there
    }

    /// The Node exists, or no server answered, or the kubelet is refused: the history starts again when the Node is
    /// missing again.
    pub(super) fn forget_revision(&self) {
        self.keep_revision(None);
    }

    fn keep_revision(&self, revision: Option<String>) {
        // The revision becomes a part of a path.
        let is_plain =
            |text: &String| !text.is_empty() && text.bytes().all(|byte| byte.is_ascii_alphanumeric());
        *self.revision.lock().unwrap_or_else(PoisonError::into_inner) = revision.filter(is_plain);
    }

    fn take_revision(&self) -> Option<String> {
        self.revision.lock().unwrap_or_else(PoisonError::into_inner).take()
    }
}

/// Whether this machine's Node existed, and the revision of the last event; none where the server has forgotten the old
/// revision.
fn read(body: &[u8], since: String, is_ours: impl Fn(&NodeObject) -> bool) -> (bool, Option<String>) {
    let (mut was_there, mut until) = (false, since);
    for happened in serde_json::Deserializer::from_slice(body).into_iter::<Happened>() {
        match happened {
            Ok(Happened { kind, object }) if matches!(kind.as_str(), "ADDED" | "MODIFIED" | "DELETED") => {
                was_there |= is_ours(&object);
                object.revision().clone_into(&mut until);
            }
            // An error, or a line that is not of a watch.
            Ok(_) | Err(_) => return (was_there, None),
        }
    }
    (was_there, Some(until))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_happened_is_read_line_by_line_and_an_error_ends_it() {
        let line = |kind: &str, revision: u32, id: &str| {
            format!(
                r#"{{"type":"{kind}","object":{{"metadata":{{"resourceVersion":"{revision}"}},"status":{{"nodeInfo":{{"machineID":"{id}"}}}}}}}}"#
            ) + "\n"
        };
        let gone = r#"{"type":"ERROR","object":{"kind":"Status","status":"Failure","code":410}}"#;
        let (came, went) = (line("ADDED", 7, "ours"), line("DELETED", 9, "ours"));
        for (body, then) in [
            (String::new(), (false, Some("5"))),
            (format!("{came}{went}"), (true, Some("9"))),
            (line("DELETED", 9, "ours"), (true, Some("9"))),
            (line("ADDED", 8, "theirs"), (false, Some("8"))),
            (gone.to_owned(), (false, None)),
            (format!("{came}{gone}"), (true, None)),
            (format!("{came}{{\"type\":"), (true, None)),
        ] {
            let read = read(body.as_bytes(), "5".to_owned(), |node| node.info().machine_id == "ours");
            assert_eq!((read.0, read.1.as_deref()), then, "{body}");
        }
    }
}
