//! What the agent on a machine says of it, one fact a type: how far its join came, what it found there, what it holds back, what
//! may be asked of it.
//!
//! Every text in it was masked before it came here, and no field can hold a secret. `agent_report` puts them together.

use std::fmt;
use std::sync::Arc;

use serde::{Deserialize, Serialize};

use super::id::{InstanceId, NodeName};
use super::stage::Stage;

/// What an agent knows itself by. Each is a claim; which counts is `observe`'s business.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase", deny_unknown_fields)]
pub struct Who {
    /// The cloud's id of the instance, as its metadata says it.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub instance: Option<InstanceId>,
    /// The machine's UUID, as its firmware says it: lower case, with dashes.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub system_uuid: Option<InstanceId>,
    /// The name that its node has, or would have. A hint.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub node: Option<NodeName>,
    /// Its boot id: another one after each boot.
    #[serde(rename = "bootId", skip_serializing_if = "Option::is_none")]
    pub boot: Option<Arc<str>>,
}

/// One stage, as the agent passed or entered it.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase", deny_unknown_fields)]
pub struct StageSaid {
    /// Which.
    pub stage: Stage,
    /// It has left it for the next.
    pub passed: bool,
    /// How often it tried there.
    pub attempts: u32,
    /// What the last attempt there came to, where that was an error.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub error: Option<StageError>,
}

/// What went wrong in a stage.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase", deny_unknown_fields)]
pub struct StageError {
    /// The typed word for it, as the protocol has it (`TOKEN_EXPIRED`), or a cause's code.
    pub code: Arc<str>,
    /// In words, masked; at most [`StageError::TEXT_BYTES_MAX`] bytes.
    pub text: Arc<str>,
}

impl StageError {
    /// Longer texts are cut: a trace stays small however talkative a program is.
    pub const TEXT_BYTES_MAX: usize = 256;

    /// An error, cut to size at a character border.
    pub fn new(code: impl Into<Arc<str>>, text: &str) -> Self {
        let end = text.floor_char_boundary(Self::TEXT_BYTES_MAX);
        Self { code: code.into(), text: Arc::from(&text[..end]) }
    }
}

impl fmt::Display for StageError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}: {}", self.code, self.text)
    }
}

/// Whether the kubelet runs, by its agent's word.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum KubeletSaid {
    /// It does.
    Runs,
    /// It does not.
    Stopped,
    /// The agent could not tell.
    CannotTell,
}

impl KubeletSaid {
    /// All of them.
    pub const ALL: [Self; 3] = [Self::Runs, Self::Stopped, Self::CannotTell];

    /// The word for it in files.
    pub const fn name(self) -> &'static str {
        match self {
            Self::Runs => "runs",
            Self::Stopped => "stopped",
            Self::CannotTell => "cannot-tell",
        }
    }
}

/// Whether the API server answers the agent, and what its peers said when it does not.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum ApiSaid {
    /// The API server answers.
    Answers,
    /// The API server does not answer, and most of the peers that the agent asked do not reach it either.
    LostByAll,
    /// The API server does not answer, and peers do reach it: the fault is on this machine.
    LostHere,
    /// The API server does not answer, and the agent could ask no peer.
    Lost,
    /// The agent has not tried, or could not tell.
    CannotTell,
}

impl ApiSaid {
    /// All of them.
    pub const ALL: [Self; 5] = [Self::Answers, Self::LostByAll, Self::LostHere, Self::Lost, Self::CannotTell];

    /// The word for it in files.
    pub const fn name(self) -> &'static str {
        match self {
            Self::Answers => "answers",
            Self::LostByAll => "lost-by-all",
            Self::LostHere => "lost-here",
            Self::Lost => "lost",
            Self::CannotTell => "cannot-tell",
        }
    }

    /// The control plane itself may be down: no machine that the agent could ask reaches it.
    pub const fn may_be_everywhere(self) -> bool {
        matches!(self, Self::LostByAll | Self::Lost)
    }
}

/// What an agent does about its node by itself.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase", deny_unknown_fields)]
pub struct Work {
    /// What, as a clause.
    pub what: Arc<str>,
    /// Which attempt it is.
    pub attempt: u32,
    /// Of how many, before it asks a person.
    pub of: u32,
}

/// Why an agent leaves its machine's join alone.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase", deny_unknown_fields)]
pub struct AgentBlocker {
    /// Which kind.
    pub kind: AgentBlockerKind,
    /// In its words.
    pub text: Arc<str>,
}

/// Kinds of reasons that an agent has of its own.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum AgentBlockerKind {
    /// A client takes the machine away on purpose, or has: its Node is not to come back.
    Leaving,
    /// It runs a control plane or a member of etcd.
    ControlPlane,
    /// It belongs to another cluster.
    AnotherCluster,
    /// Something else, which may pass.
    Other,
}

impl AgentBlockerKind {
    /// All of them.
    pub const ALL: [Self; 4] = [Self::Leaving, Self::ControlPlane, Self::AnotherCluster, Self::Other];

    /// The word for it in files.
    pub const fn name(self) -> &'static str {
        match self {
            Self::Leaving => "leaving",
            Self::ControlPlane => "control-plane",
            Self::AnotherCluster => "another-cluster",
            Self::Other => "other",
        }
    }
}

/// What may be asked of an agent. It looks for itself before it does either, and may answer no.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum Ask {
    /// Restart the kubelet: it registers at its start, and at no other time.
    RestartKubelet,
    /// Bring the node back by the least that does it: a kubelet restart, a new token, or a reset of what is proved stale.
    Rejoin,
}

impl Ask {
    /// All of them.
    pub const ALL: [Self; 2] = [Self::RestartKubelet, Self::Rejoin];

    /// The word for it in files.
    pub const fn name(self) -> &'static str {
        match self {
            Self::RestartKubelet => "restart-kubelet",
            Self::Rejoin => "rejoin",
        }
    }

    /// What is asked, as an imperative.
    pub const fn says(self) -> &'static str {
        match self {
            Self::RestartKubelet => "restart its kubelet",
            Self::Rejoin => "bring its node back",
        }
    }
}
