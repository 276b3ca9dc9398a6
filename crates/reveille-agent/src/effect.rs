//! Everything that an agent can ask for: one closed list.
//!
//! An effect that the agent waits for carries a number and a time limit. The process that performs the effect answers
//! with an event. When no event comes in time, the step after the deadline treats the effect as failed and ignores a
//! later answer.

use std::fmt;

use reveille_core::model::id::NodeName;
use reveille_core::model::time::{Span, Time};

use crate::memory::Memory;
use crate::model::{OperationId, PeerAnswer};
use crate::rejoin::{Blocker, RepairStep};
use crate::safety::Unable;
use crate::settings::Warning;
use crate::verdict::{Ground, Verdict};

/// One effect, which the process performs.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Effect {
    /// Check the API server, under the pinned CA.
    CheckApi(OperationId, Span),
    /// Ask each of these peers once whether it reaches the API server and whether the API holds an order for this
    /// machine.
    AskPeers(OperationId, Vec<NodeName>, Span),
    /// Read the orders in the API.
    ReadOrders(OperationId, Span),
    /// Tell a peer the answer to its question. The agent does not wait for it.
    AnswerPeer {
        /// The peer.
        to: NodeName,
        /// The number of the peer's question.
        ask: OperationId,
        /// The answer.
        answer: PeerAnswer,
    },
    /// Read this machine's Node and try the kubelet's credentials.
    Inspect(OperationId, Span),
    /// Open the watchdog with this timeout, or close it properly.
    SetWatchdog(OperationId, Option<Span>, Span),
    /// Read the watchdog back.
    ReadWatchdog(OperationId, Span),
    /// Feed the watchdog. The agent does not wait for it.
    FeedWatchdog,
    /// Make this the durable memory.
    Record(OperationId, Memory, Span),
    /// Change this machine. One at a time, and only after the memory of it is durable.
    Act(OperationId, Verb, Span),
    /// Tell operators and the controller. The agent does not wait for it.
    Report(Report),
    /// Send a tick at this time at the latest. A newer wake-up replaces the older one.
    WakeAt(Time),
}

/// The few things that an agent does to its machine. No verb runs a shell.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum Verb {
    /// Ask for a bootstrap token. The process keeps the token; the agent's state never holds it.
    RequestToken,
    /// Restart the kubelet: a kubelet registers its Node only at its start.
    RestartKubelet,
    /// Give the new token to the kubelet and start the kubelet.
    Bootstrap,
    /// Remove everything of an earlier join.
    Reset,
    /// Join with the new token.
    Join,
    /// Reboot by not feeding the watchdog any more, and by asking the system as well.
    RebootByWatchdog,
    /// Reboot by asking the system.
    RebootBySystem,
}

impl Verb {
    /// True for verbs that interrupt a running machine.
    pub const fn is_reboot(self) -> bool {
        matches!(self, Self::RebootByWatchdog | Self::RebootBySystem)
    }
}

impl fmt::Display for Verb {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Self::RequestToken => "asks for a new bootstrap token",
            Self::RestartKubelet => "restarts the kubelet",
            Self::Bootstrap => "starts the kubelet with the new token",
            Self::Reset => "resets what an earlier join left",
            Self::Join => "joins",
            Self::RebootByWatchdog => "lets the watchdog reboot the machine",
            Self::RebootBySystem => "reboots the machine",
        })
    }
}

/// The reason of a failed attempt whose verb was not carried out; the process that tried to carry it out reported the
/// details.
pub const UNDONE: &str = "it could not be carried out";

/// What an agent reports, to its log and to the controller. No field can hold a secret.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Report {
    /// A setting was raised.
    Raised(Warning),
    /// The API server does not answer; so many checks failed in a row.
    ApiLost(u32),
    /// The API server answers again.
    ApiAnswers,
    /// The verdict of a round, or that the agent asked no peer.
    Concluded(Verdict),
    /// The agent can reboot its machine.
    CanReboot,
    /// The agent cannot reboot its machine: no controller may take this machine for fenced on the agent's account.
    CannotReboot(Unable),
    /// The watchdog was read back as armed.
    WatchdogArmed,
    /// The watchdog was read back as disarmed.
    WatchdogDisarmed,
    /// The watchdog is not as it was set.
    WatchdogUnproved,
    /// The agent reboots its machine.
    Reboots(Ground),
    /// The agent does not reboot its machine, although it was about to.
    RebootDropped(&'static str),
    /// A reboot was asked for, and the machine still runs.
    NotRebooted,
    /// The agent begins to bring its Node back: the way, and the attempt of how many.
    Rejoins(RepairStep, u32, u32),
    /// The agent does this to its machine.
    Acts(Verb),
    /// The agent does not bring its Node back: the reason.
    Blocked(Blocker),
    /// An attempt failed: the reason, and the earliest time of the next.
    Failed(RepairStep, &'static str, Time),
    /// All attempts are used up: an operator has to look.
    GaveUp(u32),
    /// The Node exists, is Ready, and has stayed so.
    Back,
}

impl fmt::Display for Report {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Raised(warning) => write!(f, "{warning}"),
            Self::ApiLost(checks) => write!(f, "the API server has not answered {checks} checks"),
            Self::ApiAnswers => f.write_str("the API server answers again"),
            Self::Concluded(verdict) => write!(f, "{verdict}"),
            Self::CanReboot => f.write_str("can reboot its machine"),
            Self::CannotReboot(why) => {
                write!(f, "cannot reboot its machine: {why}; it is not fenced until its boot id says so")
            }
            Self::WatchdogArmed => f.write_str("the watchdog is armed, as read back"),
            Self::WatchdogDisarmed => f.write_str("the watchdog is disarmed, as read back"),
            Self::WatchdogUnproved => f.write_str("the watchdog is not as it was set"),
            Self::Reboots(ground) => write!(f, "reboots its machine: {ground}"),
            Self::RebootDropped(why) => write!(f, "does not reboot its machine after all: {why}"),
            Self::NotRebooted => f.write_str("asked for a reboot, and the machine still runs"),
            Self::Rejoins(repair_step @ RepairStep::Join, attempt, of) => {
                write!(f, "{repair_step}, attempt {attempt} of {of}")
            }
            Self::Rejoins(repair_step, attempt, of) => {
                write!(f, "brings its node back, attempt {attempt} of {of}: {repair_step}")
            }
            Self::Acts(verb) => write!(f, "{verb}"),
            Self::Blocked(blocker) => write!(f, "leaves the join alone: {blocker}"),
            Self::Failed(repair_step, why, _) => {
                write!(f, "{repair_step} came to nothing: {why}")
            }
            Self::GaveUp(attempts) => write!(f, "gives up after {attempts} attempts: a person has to look"),
            Self::Back => f.write_str("its node is there, Ready, and has stayed"),
        }
    }
}
