//! Everything that an agent can ask for: one closed list.
//!
//! What is waited for carries a number and the time within which it counts. Whoever performs it answers with an event;
//! when none comes in time, the step after the deadline treats it as failed, and a later answer is passed over.

use std::fmt;

use reveille_core::model::id::NodeName;
use reveille_core::model::time::{Span, Time};

use crate::memory::Memory;
use crate::model::{FlightId, PeerAnswer};
use crate::rejoin::{Hold, Rung};
use crate::safety::Unable;
use crate::settings::Warning;
use crate::verdict::{Ground, Verdict};

/// One thing to be done outside.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Effect {
    /// Check the API server, under the pinned CA.
    CheckApi(FlightId, Span),
    /// Ask each of these peers once whether it reaches the API server and whether an order for this machine stands there.
    AskPeers(FlightId, Vec<NodeName>, Span),
    /// Read the orders that stand in the API.
    ReadOrders(FlightId, Span),
    /// Tell a peer what was found for it. Not waited for.
    AnswerPeer {
        /// Whom.
        to: NodeName,
        /// Its number.
        ask: FlightId,
        /// What.
        answer: PeerAnswer,
    },
    /// Read this machine's Node and try the kubelet's credentials.
    Inspect(FlightId, Span),
    /// Open the watchdog with this timeout, or close it properly.
    SetWatchdog(FlightId, Option<Span>, Span),
    /// Read the watchdog back.
    ReadWatchdog(FlightId, Span),
    /// Feed the watchdog. Not waited for.
    FeedWatchdog,
    /// Make this the durable memory.
    Record(FlightId, Memory, Span),
    /// Change this machine. One at a time, and only after the memory of it is durable.
    Act(FlightId, Verb, Span),
    /// Tell people and whoever watches. Not waited for.
    Report(Report),
    /// Send a tick at this time, at the latest. The newest replaces older ones.
    WakeAt(Time),
}

/// The few things that an agent does to its machine. There is no shell among them.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum Verb {
    /// Ask for a bootstrap token. The process keeps it; nothing here sees it.
    RequestToken,
    /// Restart the kubelet: it registers at its start, and at no other time.
    RestartKubelet,
    /// Put the new token before the kubelet and start it.
    Bootstrap,
    /// Take everything of an earlier join away.
    Reset,
    /// Join, with the new token.
    Join,
    /// Reboot by not feeding the watchdog any more, and by asking the system as well.
    RebootByWatchdog,
    /// Reboot by asking the system.
    RebootBySystem,
}

impl Verb {
    /// True for those that a running machine feels.
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

/// Why an attempt came to nothing when a verb was not carried out; whoever carried it out said more.
pub const UNDONE: &str = "it could not be carried out";

/// What an agent says, to its log and to whoever watches it. No field can hold a secret.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Report {
    /// A setting was raised.
    Raised(Warning),
    /// The API server does not answer; so many checks failed in a row.
    ApiLost(u32),
    /// It answers again.
    ApiAnswers,
    /// What a round of asking, or that nobody was asked, came to.
    Concluded(Verdict),
    /// It can reboot its machine.
    CanReboot,
    /// It cannot: nobody may take this machine for fenced on this agent's account.
    CannotReboot(Unable),
    /// The watchdog was read back as armed.
    WatchdogArmed,
    /// The watchdog was read back as disarmed.
    WatchdogDisarmed,
    /// The watchdog is not as it was set.
    WatchdogUnproved,
    /// It reboots its machine.
    Reboots(Ground),
    /// It does not, although it was about to.
    RebootDropped(&'static str),
    /// A reboot was asked for, and the machine still runs.
    NotRebooted,
    /// It begins to bring its node back: which way, and which attempt of how many.
    Rejoins(Rung, u32, u32),
    /// It does this to its machine.
    Acts(Verb),
    /// It does not bring its node back, and why.
    Holds(Hold),
    /// An attempt came to nothing, and why; the next is not before then.
    Failed(Rung, &'static str, Time),
    /// Attempts are used up: a person has to look.
    GaveUp(u32),
    /// The node is there, Ready, and has stayed.
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
            Self::Rejoins(rung @ Rung::Join, attempt, of) => write!(f, "{rung}, attempt {attempt} of {of}"),
            Self::Rejoins(rung, attempt, of) => {
                write!(f, "brings its node back, attempt {attempt} of {of}: {rung}")
            }
            Self::Acts(verb) => write!(f, "{verb}"),
            Self::Holds(hold) => write!(f, "leaves the join alone: {hold}"),
            Self::Failed(rung, why, _) => {
                write!(f, "{rung} came to nothing: {why}")
            }
            Self::GaveUp(attempts) => write!(f, "gives up after {attempts} attempts: a person has to look"),
            Self::Back => f.write_str("its node is there, Ready, and has stayed"),
        }
    }
}
