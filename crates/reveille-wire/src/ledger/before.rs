//! What was so before an act, as JSON.
//!
//! ```text
//!   {"action":{"reboot":"req-…"},"node":"w-22","nodeBoot":"0b1c…"}     {"action":{"launch":"launched-…"}}
//! ```
//!
//! Where nothing but the newest action is known, that is written alone, as text, as earlier versions did: `"req-…"`,
//! `"launched-…"`, or `"none"`.

use std::sync::Arc;

use reveille_core::model::before::{ActionMark, Before};
use reveille_core::model::id::NodeName;
use serde::{Deserialize, Serialize};

use super::FromWireError;
use super::mirror::{Mirror, mirror_struct};

/// What the newest action was in a ledger of an earlier version, where there was none.
const NONE: &str = "none";
/// Begins such an action of a cloud that shows launches.
const LAUNCHED: &str = "launched-";

#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(untagged)]
pub(crate) enum WireBefore {
    Known(WireKnownBefore),
    Action(Arc<str>),
}

mirror_struct! {
    WireKnownBefore of KnownBefore {
        #[serde(default, skip_serializing_if = "Option::is_none")]
        action: Option<ActionMark>,
        #[serde(default, skip_serializing_if = "Option::is_none")]
        node: Option<NodeName>,
        #[serde(default, skip_serializing_if = "Option::is_none")]
        node_boot: Option<Arc<str>>,
        #[serde(default, skip_serializing_if = "Option::is_none")]
        agent_boot: Option<Arc<str>>,
    }
}

/// The same as [`Before`], which is also read from text.
pub(crate) struct KnownBefore {
    action: Option<ActionMark>,
    node: Option<NodeName>,
    node_boot: Option<Arc<str>>,
    agent_boot: Option<Arc<str>>,
}

#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub(crate) enum WireActionMark {
    Reboot(Option<Arc<str>>),
    Launch(Arc<str>),
}

impl Mirror for ActionMark {
    type Wire = WireActionMark;

    fn out(&self) -> WireActionMark {
        match self {
            Self::Reboot(request) => WireActionMark::Reboot(request.clone()),
            Self::Launch(launch) => WireActionMark::Launch(launch.clone()),
        }
    }

    fn back(wire: WireActionMark) -> Result<Self, FromWireError> {
        Ok(match wire {
            WireActionMark::Reboot(request) => Self::Reboot(request),
            WireActionMark::Launch(launch) => Self::Launch(launch),
        })
    }
}

impl Mirror for Before {
    type Wire = WireBefore;

    fn out(&self) -> WireBefore {
        let Self { action, node, node_boot, agent_boot } = self.clone();
        if let (Some(mark), None, None, None) = (&action, &node, &node_boot, &agent_boot)
            && read_mark(text_of(mark)) == *mark
        {
            return WireBefore::Action(text_of(mark));
        }
        WireBefore::Known(KnownBefore { action, node, node_boot, agent_boot }.out())
    }

    fn back(wire: WireBefore) -> Result<Self, FromWireError> {
        match wire {
            WireBefore::Known(known) => {
                let KnownBefore { action, node, node_boot, agent_boot } = KnownBefore::back(known)?;
                Ok(Self { action, node, node_boot, agent_boot })
            }
            WireBefore::Action(action) => Ok(Self { action: Some(read_mark(action)), ..Self::default() }),
        }
    }
}

fn text_of(mark: &ActionMark) -> Arc<str> {
    match mark {
        ActionMark::Reboot(None) => Arc::from(NONE),
        ActionMark::Reboot(Some(text)) | ActionMark::Launch(text) => text.clone(),
    }
}

fn read_mark(text: Arc<str>) -> ActionMark {
    match &*text {
        NONE => ActionMark::Reboot(None),
        launch if launch.starts_with(LAUNCHED) => ActionMark::Launch(text),
        _ => ActionMark::Reboot(Some(text)),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn action_of_an_earlier_ledger_is_read() {
        let table = [
            ("none", ActionMark::Reboot(None)),
            ("req-1", ActionMark::Reboot(Some("req-1".into()))),
            ("launched-2026", ActionMark::Launch("launched-2026".into())),
        ];
        for (text, action) in table {
            let wire: WireBefore = serde_json::from_value(serde_json::json!(text)).unwrap();
            let before = Before { action: Some(action), ..Before::default() };
            assert_eq!(Before::back(wire).unwrap(), before);
            let again = serde_json::from_value(serde_json::to_value(before.out()).unwrap()).unwrap();
            assert_eq!(Before::back(again).unwrap(), before, "{text}");
        }
    }
}
