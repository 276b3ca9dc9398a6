//! What was heard of agents, as JSON.
//!
//! ```text
//!   {"agents":{"said":{"agent":"a-1","report":{"life":"…","number":7,"stages":[…],"kubelet":"runs","api":"answers"}}}}
//!   {"agents":{"parted":{"agent":"a-1","why":"…"}}}   {"agents":"listening"}   {"agents":{"deaf":{…}}}
//! ```

use std::collections::BTreeSet;
use std::sync::Arc;

use reveille_core::effect::ReadError;
use reveille_core::event::AgentFact;
use reveille_core::model::agent::{
    AgentHold, AgentReport, ApiSaid, Ask, KubeletSaid, StageError, StageSaid, Who, Work,
};
use reveille_core::model::id::{AgentId, InstanceId, NodeName};
use reveille_core::model::stage::Stage;
use reveille_core::model::testimony::Told;

use crate::ledger::FromWireError;
use crate::ledger::mirror::{Mirror, mirror_choice, mirror_struct, words};

words! {
    KubeletSaid "state of a kubelet" KubeletSaid::ALL, KubeletSaid::name;
    ApiSaid "answer about the API server" ApiSaid::ALL, ApiSaid::name;
}

mirror_choice! {
    #[allow(clippy::large_enum_variant, reason = "it stands in a box where it is kept")]
    WireAgentFact of AgentFact {
        "said" Said { agent: AgentId, report: Arc<AgentReport> },
        "parted" Parted { agent: AgentId, why: Arc<str> },
        "listening" Listening,
        "deaf" Deaf(error: ReadError),
    }
}

mirror_struct! {
    WireAgentReport of AgentReport {
        who: Who,
        life: Arc<str>,
        number: u64,
        #[serde(default, skip_serializing_if = "Vec::is_empty")]
        stages: Vec<StageSaid>,
        #[serde(default, skip_serializing_if = "Vec::is_empty")]
        told: Vec<Told>,
        #[serde(default, skip_serializing_if = "std::ops::Not::not")]
        unsaid: bool,
        kubelet: KubeletSaid,
        api: ApiSaid,
        #[serde(default, skip_serializing_if = "Option::is_none")]
        work: Option<Work>,
        #[serde(default, skip_serializing_if = "Option::is_none")]
        hold: Option<AgentHold>,
        #[serde(default, skip_serializing_if = "Vec::is_empty")]
        may: BTreeSet<Ask>,
    }
}

mirror_struct! {
    WireWho of Who {
        #[serde(default, skip_serializing_if = "Option::is_none")]
        instance: Option<InstanceId>,
        #[serde(default, skip_serializing_if = "Option::is_none")]
        system_uuid: Option<InstanceId>,
        #[serde(default, skip_serializing_if = "Option::is_none")]
        node: Option<NodeName>,
        #[serde(default, rename = "bootId", skip_serializing_if = "Option::is_none")]
        boot: Option<Arc<str>>,
    }
}

mirror_struct! {
    WireStageSaid of StageSaid {
        stage: Stage,
        passed: bool,
        attempts: u32,
        #[serde(default, skip_serializing_if = "Option::is_none")]
        error: Option<StageError>,
    }
}

mirror_struct! {
    WireWork of Work {
        what: Arc<str>,
        attempt: u32,
        of: u32,
    }
}
