//! What an agent says of itself to whoever leads the cluster, in the words of the engine.
//!
//! ```text
//!  contact, verdict ─▶ ApiSaid      work ─▶ Work      choose, leaving ─▶ AgentHold      ─▶ a report, by the process
//! ```
//!
//! The process adds what it alone knows: which machine it is on, its life and number, its stages, its kubelet. Whoever
//! performs the effects in its place says the same, because it is said here.

use std::collections::BTreeSet;

use reveille_core::model::agent::{AgentHold, ApiSaid, Ask, HoldKind, Work};

use crate::rejoin::Hold;
use crate::state::State;
use crate::verdict::{Ground, Verdict};

/// What an agent can say of its own decisions.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Account {
    /// Whether it reaches the API server, and what its peers said.
    pub api: ApiSaid,
    /// What it does about its node by itself.
    pub work: Option<Work>,
    /// Why it leaves its join alone.
    pub hold: Option<AgentHold>,
    /// What may be asked of it.
    pub may: BTreeSet<Ask>,
}

impl State {
    /// What it says of itself now.
    pub fn account(&self) -> Account {
        let work = self.rejoins().map(|rung| Work {
            what: rung.to_string().into(),
            attempt: self.memory().attempts,
            of: self.settings().attempts,
        });
        let may = if self.cancelled { BTreeSet::new() } else { Ask::ALL.into() };
        Account { api: self.api_said(), work, hold: self.hold(), may }
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

    /// Why it would refuse to bring its node back now.
    pub fn hold(&self) -> Option<AgentHold> {
        let hold = |kind, text: String| Some(AgentHold { kind, text: text.into() });
        if self.cancelled {
            return hold(HoldKind::Other, "a person told it to do nothing".to_owned());
        }
        if self.sight.found().is_none() {
            // It cannot look just now, and it has not forgotten.
            return self.sight.leaving().and_then(|how| hold(HoldKind::Leaving, how.to_string()));
        }
        let why = self.choice(self.memory().attempts).err()?;
        let kind = match why {
            Hold::Leaving(_) => HoldKind::Leaving,
            Hold::ControlPlane => HoldKind::ControlPlane,
            Hold::AnotherCluster | Hold::AnotherClusterSilent => HoldKind::AnotherCluster,
            // What it does not know, an ask makes it look at.
            Hold::CannotTell | Hold::NotLooked => return None,
            Hold::NameTaken
            | Hold::NotProved(_)
            | Hold::ClockWrong
            | Hold::JoinUnderWay
            | Hold::NeverJoined => HoldKind::Other,
        };
        hold(kind, why.to_string())
    }
}
