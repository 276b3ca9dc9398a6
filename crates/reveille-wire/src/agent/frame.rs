//! The frames of a session, whichever way they travel.
//!
//! Each frame has a number, counted from 1 by its sender within a session. An agent keeps what it reported until the number was
//! acknowledged and says it again in its next session; the server passes over what it has. So a report is neither lost with a
//! connection nor counted twice. What the server sends is not repeated: a plan is sent again because the agent says what it
//! holds, and an order that was lost is an order without an answer, which whoever gave it waits for no longer than he said.

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
    /// The first one of a session.
    Hello(Hello),
    /// A stage was entered, left, or tried again.
    Stage(StageReport),
    /// It lives.
    Heartbeat(Heartbeat),
    /// How a step of the plan is going.
    Step(StepOutcome),
    /// What became of an order.
    Done(Done),
    /// A part of the evidence.
    Evidence(EvidencePart),
    /// The join waits for a token.
    TokenWanted {},
    /// Of a newer version; passed over.
    #[serde(other)]
    Unknown,
}

/// From the server.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(tag = "t", rename_all = "kebab-case")]
pub enum ServerFrame {
    /// The session stands.
    Welcome(Welcome),
    /// What the machine is to be.
    Plan(Plan),
    /// For the join of the plan; replaces the one before.
    Token(Token),
    /// Do this.
    Do(Order),
    /// Not yet: why, what to do, and when there may be news.
    Wait(Refused),
    /// No, and the session ends.
    Refuse(Refused),
    /// Who else is there to be asked.
    Peers {
        /// They.
        peers: List<Peer, 256>,
    },
    /// Another machine claims to be this one.
    Rival(Rival),
    /// Frames up to this number have been kept.
    Ack {
        /// That number.
        up_to: u64,
    },
    /// Of a newer version; passed over.
    #[serde(other)]
    Unknown,
}

/// Who comes.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Hello {
    /// The protocol it speaks.
    pub protocol: u32,
    /// Which machine it is.
    pub identity: Identity,
    /// What it says of itself.
    #[serde(default)]
    pub facts: Facts,
    /// The plan it holds.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub plan: Option<Held>,
    /// Its node is in the API: no token is needed.
    #[serde(default)]
    pub joined: bool,
}

/// A stage of the machine's way.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct StageReport {
    /// Higher than that of every report this agent made before, over all sessions and starts: what comes again is known by it.
    pub seq: u64,
    /// Which stage.
    pub stage: StageWord,
    /// It was entered, tried again, left.
    pub step: StageStep,
    /// How often it was tried.
    #[serde(default)]
    pub attempts: u32,
    /// Why it is not left yet.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub error: Option<Trouble>,
    /// When, on the machine's own clock. Shown, never subtracted.
    #[serde(default)]
    pub stamp: Word,
}

/// What happened with a stage.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum StageStep {
    /// It was begun.
    Entered,
    /// It was tried and is not over.
    Tried,
    /// It is over.
    Left,
}

/// Why something did not go.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize)]
pub struct Trouble {
    /// A word for programs.
    pub code: Word,
    /// A sentence, secrets masked.
    #[serde(default)]
    pub text: Sentence,
}

/// It lives.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Heartbeat {
    /// Where it is.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub stage: Option<StageWord>,
    /// Its node is in the API.
    #[serde(default)]
    pub joined: bool,
    /// What it says of itself beyond that.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub account: Option<Account>,
}

/// What an agent says of its machine and of its own decisions. Words that a reader does not know say nothing.
#[derive(Clone, Debug, PartialEq, Eq, Default, Serialize, Deserialize)]
pub struct Account {
    /// Whether its kubelet runs: `runs`, `stopped`, `cannot-tell`.
    #[serde(default)]
    pub kubelet: Word,
    /// Whether it reaches the API server: `answers`, `lost-by-all`, `lost-here`, `lost`, `cannot-tell`.
    #[serde(default)]
    pub api: Word,
    /// What it does about its node by itself.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub work: Option<Work>,
    /// Why it leaves its join alone.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub hold: Option<Hold>,
    /// What may be asked of it: `restart-kubelet`, `rejoin`.
    #[serde(default)]
    pub may: List<Word, 8>,
    /// What the machine's provider told the machine that it will do to it, a sentence each: `rebalance: recommended at …`.
    #[serde(default, skip_serializing_if = "List::is_empty")]
    pub announced: List<Sentence, 8>,
}

/// What an agent does about its node.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Work {
    /// What, as a clause.
    pub what: Word,
    /// Which attempt.
    pub attempt: u32,
    /// Of how many.
    pub of: u32,
}

/// Why an agent leaves a join alone.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Hold {
    /// `leaving`, `control-plane`, `another-cluster`, `other`.
    pub kind: Word,
    /// In its words, secrets masked.
    pub text: Sentence,
}

/// Something to do.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Order {
    /// Its number; the answer carries it back, and a second order of that number does nothing.
    pub id: u64,
    /// What.
    pub verb: Verb,
    /// An answer after this is not waited for, seconds.
    pub within_s: u32,
}

/// What became of an order.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Done {
    /// Of which.
    pub id: u64,
    /// How it ended.
    pub outcome: Ended,
    /// The end of its output, secrets masked.
    #[serde(default)]
    pub tail: Tail,
}

/// How an order ended.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum Ended {
    /// It was done, or is begun: whether it works is seen elsewhere. For a probe: the API server answers.
    Done,
    /// There was nothing to do.
    AlreadySo,
    /// It was tried and did not go. For a probe: the API server does not answer.
    Failed,
    /// The agent would not: its own reasons stand against it, in the output.
    Declined,
}

/// A part of the evidence that an order asked for. All parts, put together in order, are one archive as base64: the doctor's
/// bundle, gzip over tar. They come before the order's [`Done`].
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct EvidencePart {
    /// Of which order.
    pub id: u64,
    /// Which part, from 0.
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
    /// Most parts of one archive: with the bound of each, 8 MiB of base64.
    pub const PARTS_MAX: u32 = 128;

    /// An archive's base64 as parts; none where it has more than are taken.
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

/// The session stands.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Welcome {
    /// The machine's record.
    pub machine: Word,
    /// Which session of this machine it is; a higher one has taken over.
    pub session: u64,
    /// A heartbeat is expected this often, seconds.
    pub heartbeat_s: u32,
    /// Public keys by which this server is to be known from now on. More than one while an authority is replaced.
    #[serde(default)]
    pub ca_pins: List<Word, 8>,
    /// The highest stage report that was kept ([`StageReport::seq`]).
    #[serde(default)]
    pub reports_kept: u64,
}

/// A token for the join.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Token {
    /// It.
    pub token: Secret,
    /// It ends after so long, seconds.
    pub ttl_s: u32,
}

/// Another machine of the cluster.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Peer {
    /// Its record: the name in its certificate, by which it is known when it answers.
    #[serde(default)]
    pub machine: Word,
    /// Its node's name.
    pub node_name: Word,
    /// Its failure domain.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub zone: Option<Word>,
    /// Its addresses.
    pub addresses: List<Word, 8>,
    /// Where its agent answers others ([`Facts::answers_at`]); none when it does not.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub answers_at: Option<Word>,
}

/// A machine that claims to be another.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Rival {
    /// What both claim.
    pub part: super::identity::Part,
    /// The other one's identity.
    pub identity: Identity,
    /// What the other one says of itself.
    pub facts: Facts,
}
