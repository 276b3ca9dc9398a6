//! An instance is proved to be gone and its Node is still there: the Node object is deleted.

use std::fmt;
use std::sync::Arc;

use serde::{Deserialize, Serialize};

use crate::effect::Look;
use crate::event::Answer;
use crate::model::before::Before;
use crate::model::id::{CloudName, NodeName, NodeUid};
use crate::model::incident::FaultKind;
use crate::observe::cluster::NodeSeen;
use crate::plan::desk::{Case, Desk};
use crate::plan::ladder::Class;

use super::{Act, Call, Effectiveness, NoCall, Remedy, facts, gone, no_call, not_seen, seen};

pub(super) const REMEDY: Remedy =
    Remedy { name: "cleanup", class: Class::Cleanup, says: "delete the orphaned Node object", plan };

/// Delete the Node object, if it still has this uid.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase", deny_unknown_fields)]
pub struct DeleteNode {
    /// Its name.
    pub name: NodeName,
    /// Its uid.
    pub uid: NodeUid,
    /// The boot that its kubelet told of, as it was decided upon. With another one a machine has taken the object over, uid and
    /// all, and serves as it.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub boot_id: Option<Arc<str>>,
}

fn plan(desk: &Desk<'_>, case: &Case) -> Result<Call, NoCall> {
    let (_, seen) = facts::machine(desk, case)?;
    if case.incident.key.kind != FaultKind::Ghost || !seen.is_gone() {
        return no_call("its instance is not proved to be gone");
    }
    let Some((name, NodeSeen { node, .. })) = desk.node(seen) else { return no_call("it has no Node") };
    let (name, uid, boot_id) = (name.clone(), node.uid.clone(), node.boot_id.clone());
    Ok(Call::DeleteNode(DeleteNode { name, uid, boot_id }))
}

impl Act for DeleteNode {
    const IS_DESTRUCTIVE: bool = true;

    fn cloud(&self) -> Option<&CloudName> {
        None
    }

    fn is_same_change(&self, other: &Self) -> bool {
        self.name == other.name
    }

    fn looks_after(&self, _before: Option<&Before>) -> Vec<Look> {
        vec![Look::Node(self.name.clone())]
    }

    fn judge(&self, _before: Option<&Before>, answer: &Answer) -> Effectiveness {
        match answer {
            Answer::Node(None) => seen("read back: the Node is gone"),
            Answer::Node(Some(node)) if node.uid != self.uid => {
                seen("read back: the Node is another one now")
            }
            // A finalizer holds it, which is for whoever put it there to end.
            Answer::Node(Some(node)) if node.intent.deleting => seen("read back: the Node is being deleted"),
            Answer::Node(Some(_)) => not_seen("read back: the Node is still there"),
            _ => gone(),
        }
    }
}

impl fmt::Display for DeleteNode {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "delete the Node object {}", self.name)
    }
}
