//! What was so before an act: whatever the act alone changes, read before the call and compared with a fresh read after it.
//!
//! ```text
//!  evidence, Node, agent ─▶ Before ─ recorded with the intent ─▶ call.judge(before, fresh read)
//! ```
//!
//! Which service shows what after which act stands in `docs/reference/acts.md`. It reads nothing and judges nothing.

use std::sync::Arc;

use serde::{Deserialize, Serialize};

use super::id::NodeName;
use super::instance::InstanceAction;

/// What is compared with a fresh read to tell whether an act took effect. A part that is `None` was not known before the call,
/// and proves nothing after it.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase", deny_unknown_fields)]
pub struct Before {
    /// The newest reboot or launch that the cloud shows.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub action: Option<ActionMark>,
    /// The machine's Node, by the name under which it is read back.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub node: Option<NodeName>,
    /// The boot id that its Node carried (`status.nodeInfo.bootID`): the kubelet reports another one after each boot.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub node_boot: Option<Arc<str>>,
    /// The boot id that its agent reported.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub agent_boot: Option<Arc<str>>,
}

/// The newest entry of a cloud's action log that a boot of the machine replaces.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case", deny_unknown_fields)]
pub enum ActionMark {
    /// The log lists every reboot (Nova): the request of the newest one, `None` where it lists none.
    Reboot(Option<Arc<str>>),
    /// The cloud keeps no log of reboots and shows its last launch only (EC2, `LaunchTime`): a stop and a start change it, a
    /// reboot in place does not.
    Launch(Arc<str>),
}

impl ActionMark {
    /// The mark in an action log, newest entry first.
    pub fn of(actions: &[InstanceAction]) -> Self {
        let newest = |name: &str| {
            actions.iter().find(|action| &*action.action == name).map(|action| action.request.shared())
        };
        newest("launch").map_or_else(|| Self::Reboot(newest("reboot")), Self::Launch)
    }
}
