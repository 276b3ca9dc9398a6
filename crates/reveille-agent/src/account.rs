//! What an agent reports about itself to the controller that leads the cluster, in the words of the engine.
//!
//! ```text
//!  contact, verdict ─▶ ApiSaid      work ─▶ Work      choose, leaving ─▶ AgentBlocker      ─▶ a report, by the process
//! ```
//!
//! The process adds what only the process knows: its machine, its incarnation and number, its stages, its kubelet. A
//! simulator that performs the effects instead of the process reports the same, because the report is made in this
//! module.

use std::collections::BTreeSet;

use reveille_core::model::agent::{AgentBlocker, AgentBlockerKind, ApiSaid, Ask, Work};

use crate::rejoin::Blocker;
use crate::state::State;
use crate::verdict::{Ground, Verdict};

/// What an agent can report about its own decisions.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Account {
    /// Whether the agent reaches the API server, and what its peers said.
    pub api: ApiSaid,
    /// What the agent does about its Node on its own.
    pub work: Option<Work>,
    /// Why the agent leaves its join alone.
    pub blocker: Option<AgentBlocker>,
    /// What the controller may ask of the agent.
    pub may: BTreeSet<Ask>,
}

impl State {
    /// What the agent reports about itself now.
    pub fn account(&self) -> Account {
        let work = self.rejoins().map(|repair_step| Work {
            what: repair_step.to_string().into(),
            attempt: self.memory().attempts,
            of: self.settings().attempts,
        });
        let may = if self.cancelled { BTreeSet::new() } else { Ask::ALL.into() };
        Account { api: self.api_said(), work, blocker: self.blocker(), may }
    }

    fn api_said(&self) -> ApiSaid {
        if self.contact.is_there() {
            return ApiSaid::Answers;
        }
        match self.contact.verdict() {
            _ if !self.contact.is_lost(self.settings()) => ApiSaid::CannotTell,
            Some(Verdict::ControlPlane(..) | Verdict::OwnZone(_)) => ApiSaid::LostByAll,
            Some(Verdict::Elsewhere(_) | Verdict::Reboot(Ground::Ordered(..) | Ground::Alone(_))) => {
                ApiSaid::LostHere
            }
            Some(
                Verdict::TooFew { .. } | Verdict::NoQuorum { .. } | Verdict::Reboot(Ground::NoPeersNeeded),
            )
            | None => ApiSaid::Lost,
        }
    }

    /// Why the agent would refuse to bring its Node back now.
    pub fn blocker(&self) -> Option<AgentBlocker> {
        let blocker = |kind, text: String| Some(AgentBlocker { kind, text: text.into() });
        if self.cancelled {
            return blocker(AgentBlockerKind::Other, "a person told it to do nothing".to_owned());
        }
        if self.observation.found().is_none() {
            // The agent has no inspection just now, but it still remembers that the machine is to be removed.
            return self
                .observation
                .leaving()
                .and_then(|how| blocker(AgentBlockerKind::Leaving, how.to_string()));
        }
        let why = self.choice(self.memory().attempts).err()?;
        let kind = match why {
            Blocker::Leaving(_) => AgentBlockerKind::Leaving,
            Blocker::ControlPlane => AgentBlockerKind::ControlPlane,
            Blocker::AnotherCluster | Blocker::AnotherClusterSilent => AgentBlockerKind::AnotherCluster,
            // Where the agent lacks a fact, a request from the controller makes it inspect the machine.
            Blocker::CannotTell | Blocker::NotLooked => return None,
            Blocker::NameTaken
            | Blocker::NotProved(_)
            | Blocker::ClockWrong
            | Blocker::JoinUnderWay
            | Blocker::NeverJoined => AgentBlockerKind::Other,
        };
        blocker(kind, why.to_string())
    }
}
