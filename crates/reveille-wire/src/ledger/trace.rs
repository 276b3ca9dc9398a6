//! A machine's way through its stages, and what its agent said of it last, as JSON.
//!
//! ```text
//!   {"t":"traced","machine":{…},"trace":{"seen":[{"stage":"os-boot","entered":"…","attempts":1}],"said":[…]},"told":{…}}
//! ```

use std::sync::Arc;

use reveille_core::model::agent::{AgentHold, Ask, HoldKind, StageError};
use reveille_core::model::id::AgentId;
use reveille_core::model::stage::Stage;
use reveille_core::model::time::Time;
use reveille_core::model::trace::{Passage, Trace};
use reveille_core::record::AgentTold;

use super::FromWireError;
use super::mirror::{Mirror, mirror_struct, names, words};

names!(AgentId);

words! {
    Ask "thing to ask of an agent" Ask::ALL, Ask::name;
    HoldKind "reason of an agent" HoldKind::ALL, HoldKind::name;
}

mirror_struct! {
    WireTrace of Trace {
        #[serde(default, skip_serializing_if = "Vec::is_empty")]
        seen: Vec<Passage>,
        #[serde(default, skip_serializing_if = "Vec::is_empty")]
        said: Vec<Passage>,
    }
}

mirror_struct! {
    WirePassage of Passage {
        stage: Stage,
        entered: Time,
        #[serde(default, skip_serializing_if = "Option::is_none")]
        left: Option<Time>,
        attempts: u32,
        #[serde(default, skip_serializing_if = "Option::is_none")]
        error: Option<StageError>,
    }
}

mirror_struct! {
    WireStageError of StageError {
        code: Arc<str>,
        text: Arc<str>,
    }
}

mirror_struct! {
    WireAgentTold of AgentTold {
        agent: AgentId,
        #[serde(default, skip_serializing_if = "Option::is_none")]
        hold: Option<AgentHold>,
    }
}

mirror_struct! {
    WireAgentHold of AgentHold {
        kind: HoldKind,
        text: Arc<str>,
    }
}
