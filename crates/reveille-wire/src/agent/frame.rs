//! The frames of a session, over a WebSocket or over polls.
//!
//! Each frame has a number, counted from 1 by its sender within a session. An agent keeps a report until the server
//! acknowledged its number, and sends it again in the next session; the server skips what it already has. So a report is
//! neither lost with a connection nor counted twice. The server does not repeat its frames. It sends a plan again because
//! the agent says which plan it holds. An order that was lost is an order without an answer, and the caller waits for it
//! no longer than the order's time limit.

use serde::{Deserialize, Serialize};

use super::identity::{Facts, Identity};
use super::plan::{Held, Plan, StepOutcome};
use super::refused::Refused;
use super::text::{List, Secret, Sentence, Tail, Text, Word};
use super::words::{StageWord, Verb};

/// A frame with its number.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Numbered<F> {
    /// From 1, in order, within the session.
    pub n: u64,
    /// The frame.
    #[serde(flatten)]
    pub frame: F,
}

/// From an agent.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(tag = "t", rename_all = "kebab-case")]
pub enum AgentFrame {
    /// The first frame of a session.
    Hello(Hello),
    /// A stage was entered, left, or tried again.
    Stage(StageReport),
    /// The agent is alive.
    Heartbeat(Heartbeat),
    /// How a step of the plan is going.
    Step(StepOutcome),
    /// How an order ended.
    Done(Done),
    /// A part of the evidence.
    Evidence(EvidencePart),
    /// The join waits for a token.
    TokenWanted {},
    /// A frame of a newer version, which the reader skips.
    #[serde(other)]
    Unknown,
}

/// From the server.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(tag = "t", rename_all = "kebab-case")]
pub enum ServerFrame {
    /// The session is open.
    Welcome(Welcome),
    /// The files and the join that the machine needs.
    Plan(Plan),
    /// A token for the join of the plan; it replaces the previous one.
    Token(Token),
    /// An order to the agent.
    Do(Order),
    /// The machine has to wait: why, what to do, and when to ask again.
    Wait(Refused),
    /// The server refuses, and the session ends.
    Refuse(Refused),
    /// Other machines that the agent can ask.
    Peers {
        /// The machines.
        peers: List<Peer, 256>,
    },
    /// Another machine claims to be this one.
    Rival(Rival),
    /// The server has stored the frames up to this number.
    Ack {
        /// The last stored frame.
        up_to: u64,
    },
    /// A frame of a newer version, which the reader skips.
    #[serde(other)]
    Unknown,
}

/// Which machine opens the session.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Hello {
    /// The protocol that the agent speaks.
    pub protocol: u32,
    /// Which machine it is.
    pub identity: Identity,
    /// What the machine reports about itself.
    #[serde(default)]
    pub facts: Facts,
    /// The plan that the agent holds.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub plan: Option<Held>,
    /// The machine's Node is in the API, so it needs no token.
    #[serde(default)]
    pub joined: bool,
}

/// A stage of the machine's way to a Ready node.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct StageReport {
    /// Higher than the number of every report this agent made before, over all sessions and starts. The server recognises
    /// repeated reports by it.
    pub seq: u64,
    /// Which stage.
    pub stage: StageWord,
    /// Whether the stage was entered, tried again or left.
    pub step: StageStep,
    /// How often the stage was tried.
    #[serde(default)]
    pub attempts: u32,
    /// Why the stage is not left yet.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub error: Option<Trouble>,
    /// When it happened, on the machine's own clock. The stamp is shown, never subtracted.
    #[serde(default)]
    pub stamp: Word,
}

/// What happened with a stage.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum StageStep {
    /// The stage has begun.
    Entered,
    /// The agent tried the stage, and it is not over.
    Tried,
    /// The stage is over.
    Left,
}

/// Why something failed.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize)]
pub struct Trouble {
    /// A word for programs.
    pub code: Word,
    /// A sentence, secrets masked.
    #[serde(default)]
    pub text: Sentence,
}

/// The agent is alive.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Heartbeat {
    /// The stage of the machine.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub stage: Option<StageWord>,
    /// The machine's Node is in the API.
    #[serde(default)]
    pub joined: bool,
    /// What else the agent reports about the machine.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub account: Option<Account>,
}

/// What an agent reports about its machine and its own decisions. A reader ignores words that it does not know.
#[derive(Clone, Debug, PartialEq, Eq, Default, Serialize, Deserialize)]
pub struct Account {
    /// Whether the kubelet runs: `runs`, `stopped`, `cannot-tell`.
    #[serde(default)]
    pub kubelet: Word,
    /// Whether the machine reaches the API server: `answers`, `lost-by-all`, `lost-here`, `lost`, `cannot-tell`.
    #[serde(default)]
    pub api: Word,
    /// What the agent does about its Node on its own.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub work: Option<Work>,
    /// Why the agent leaves the join of its machine alone.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[serde(rename = "hold")]
    pub blocker: Option<Blocker>,
    /// The orders that the agent accepts: `restart-kubelet`, `rejoin`.
    #[serde(default)]
    pub may: List<Word, 8>,
    /// Maintenance that the cloud announced to the machine, one sentence each: `rebalance: recommended at …`.
    #[serde(default, skip_serializing_if = "List::is_empty")]
    pub announced: List<Sentence, 8>,
}

/// What an agent does about its node.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Work {
    /// What the agent does, as a clause.
    pub what: Word,
    /// The number of the attempt.
    pub attempt: u32,
    /// The number of attempts that are allowed.
    pub of: u32,
}

/// Why an agent leaves the join of its machine alone: it neither joins it nor joins it again.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Blocker {
    /// `leaving`, `control-plane`, `another-cluster`, `other`.
    pub kind: Word,
    /// The reason in the agent's words, secrets masked.
    pub text: Sentence,
}

/// An order to an agent.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Order {
    /// The number of the order; the answer carries it back, and a second order with that number does nothing.
    pub id: u64,
    /// What to do.
    pub verb: Verb,
    /// The caller waits this many seconds for the answer.
    pub within_s: u32,
}

/// How an order ended.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Done {
    /// The number of the order.
    pub id: u64,
    /// The result.
    pub outcome: Ended,
    /// The end of its output, secrets masked.
    #[serde(default)]
    pub tail: Tail,
}

/// How an order ended.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum Ended {
    /// The agent did it, or began it; whether it works is seen elsewhere. For a probe: the API server answers.
    Done,
    /// There was nothing to do.
    AlreadySo,
    /// The agent tried, and it failed. For a probe: the API server does not answer.
    Failed,
    /// The agent refused for its own reasons, which are in the output.
    Declined,
}

/// A part of the evidence that an order asked for. All parts in order are one archive as base64: the doctor's bundle,
/// gzip over tar. The agent sends them before the order's [`Done`].
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct EvidencePart {
    /// The number of the order.
    pub id: u64,
    /// The number of the part, from 0.
    pub part: u32,
    /// How many there are, at most [`EvidencePart::PARTS_MAX`].
    pub of: u32,
    /// A cut of the base64 (RFC 4648 §4, padded once, at the end); in the archive secrets are masked.
    pub text: Text<{ 64 << 10 }>,
    /// The SHA-256 of the whole archive, not of its base64: `sha256:` and 64 hex digits, the same in each part.
    #[serde(default)]
    pub sha256: Word,
}

impl EvidencePart {
    /// The most parts of one archive: with the limit of each part, 8 MiB of base64.
    pub const PARTS_MAX: u32 = 128;

    /// Splits the base64 of an archive into parts; `None` where it has more parts than the server accepts.
    pub fn cut(id: u64, base64: &str, sha256: &Word) -> Option<Vec<Self>> {
        const BYTES: usize = 64 << 10;
        let of = u32::try_from(base64.len().div_ceil(BYTES).max(1)).ok()?;
        if of > Self::PARTS_MAX || !base64.is_ascii() {
            return None;
        }
        let cut = |part: u32| {
            let from = part as usize * BYTES;
            let text = Text::cut(&base64[from..base64.len().min(from + BYTES)]);
            Self { id, part, of, text, sha256: sha256.clone() }
        };
        Some((0..of).map(cut).collect())
    }
}

/// The session is open.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Welcome {
    /// The machine's record.
    pub machine: Word,
    /// The number of the session of this machine; a higher number replaces it.
    pub session: u64,
    /// The server expects a heartbeat this often, seconds.
    pub heartbeat_s: u32,
    /// Public keys by which the agent recognises this server from now on. There is more than one while an authority is replaced.
    #[serde(default)]
    pub ca_pins: List<Word, 8>,
    /// The highest stage report that the server has stored ([`StageReport::seq`]).
    #[serde(default)]
    pub reports_kept: u64,
}

/// A token for the join.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Token {
    /// The token.
    pub token: Secret,
    /// The token ends after this many seconds.
    pub ttl_s: u32,
}

/// Another machine of the cluster.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Peer {
    /// The machine's record: the name in its certificate, by which the agent recognises it when it answers.
    #[serde(default)]
    pub machine: Word,
    /// The name of its Node.
    pub node_name: Word,
    /// Its failure domain.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub zone: Option<Word>,
    /// Its addresses.
    pub addresses: List<Word, 8>,
    /// Where its agent answers other agents ([`Facts::answers_at`]); `None` when it does not.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub answers_at: Option<Word>,
}

/// A machine that claims to be another.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Rival {
    /// The part of the identity that both machines claim.
    pub part: super::identity::Part,
    /// The other one's identity.
    pub identity: Identity,
    /// What the other machine reports about itself.
    pub facts: Facts,
}
