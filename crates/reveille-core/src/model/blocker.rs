//! Every reason that blocks an act; each explains itself in one line.
//!
//! A [`Blocker`] is data, so that all parts of the program count, test, keep and show it alike: the planner finds it
//! (`plan::interlock`), the ledger keeps the one for which an intent was dropped, `words` makes its line. Nothing here decides.

use std::sync::Arc;

use serde::{Deserialize, Serialize};

use crate::safeguard::Safeguard;

use super::class::Class;
use super::id::{CloudName, IntentId, PoolName, ZoneName};
use super::time::Span;

mod words;

/// What can be frozen.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case", deny_unknown_fields)]
pub enum Scope {
    /// One pool.
    Pool(PoolName),
    /// One zone of one cloud.
    Zone(CloudName, ZoneName),
    /// Everything.
    Roster,
}

/// A reason not to act now.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case", rename_all_fields = "camelCase", deny_unknown_fields)]
pub enum Blocker {
    /// The roster switches this class off.
    Off(Class),
    /// The roster lets the controller propose this step, not take it.
    Propose(Class),
    /// This run only observes.
    DryRun,
    /// A person paused repairs.
    Paused {
        /// What the pause covers.
        scope: Arc<str>,
        /// Which person paused them, and why.
        by: Arc<str>,
    },
    /// A data source that this step depends on cannot be believed.
    Blind {
        /// Which.
        source: Arc<str>,
        /// Why.
        why: Arc<str>,
    },
    /// The source can be read again, or an agent reaches the API server again, only since a moment ago.
    Settling(Span),
    /// Agents have only just begun to report again, and the machine's agent may still come back.
    AgentAwaited(Span),
    /// Its node is Ready.
    Ready,
    /// Its lease was renewed lately: its kubelet lives.
    LeaseFresh {
        /// For how long the last list of leases had shown it unchanged.
        age: Span,
        /// How long ago that list was read. While no list comes, the controller does not know that any kubelet has fallen
        /// silent.
        listed: Span,
    },
    /// Its agent reported lately: the machine runs.
    AgentHeard(Span),
    /// Its agent does not work on the machine's join, and why.
    AgentHolds(Arc<str>),
    /// Its agent said that it is to go.
    AgentLeaves(Arc<str>),
    /// Its agent brings its node back by itself just now.
    AgentWorks {
        /// What the agent does.
        what: Arc<str>,
        /// Which attempt.
        attempt: u32,
        /// Of how many.
        of: u32,
    },
    /// Its agent does not reach the API server, so nothing that it does would bring its node back.
    AgentLost,
    /// The controller has asked the agent already and waits for its answer, or got none.
    AskUnderWay(IntentId),
    /// Most of the agents say that no agent reaches the API server.
    AgentsLost {
        /// How many agents say so.
        lost: u32,
        /// Of how many that are heard.
        of: u32,
    },
    /// Only a name links the agent to the machine.
    AgentByName,
    /// No mark on the object proves that it is ours alone.
    NotOwned,
    /// Two machines or Nodes claim one identity.
    Contested,
    /// Its Node went missing together with those of other machines, or while the cluster could not be read.
    LostTogether {
        /// How many, this one among them.
        machines: usize,
    },
    /// A Node carries an identity of this machine and is not linked to it: which Node, and which identity.
    SharedIdentity(Arc<str>),
    /// No machine in its zone is Ready.
    ZoneDark {
        /// The zone.
        zone: ZoneName,
        /// How many machines it has.
        machines: u32,
    },
    /// Most of the fleet is silent.
    FleetDark {
        /// How many are silent.
        silent: u32,
        /// Of how many.
        total: u32,
    },
    /// Most of the fleet is not Ready: it has a problem, has not joined yet, or its state is unknown.
    MostAway {
        /// How many are not Ready.
        away: u32,
        /// Of how many.
        total: u32,
    },
    /// Too many machines have a problem at once.
    Breaker {
        /// Pool or roster.
        scope: Arc<str>,
        /// How many have a problem.
        unhealthy: u32,
        /// Of how many.
        total: u32,
        /// How many may be.
        tolerated: u32,
    },
    /// Too many were away a moment ago, or it is seen for the first time, and machines still come back by themselves.
    Recovering {
        /// Pool, zone or roster.
        scope: Scope,
        /// Until it is over, unless another one comes back.
        left: Span,
    },
    /// The pool is being rolled to another image or version.
    Rolling(PoolName),
    /// Another client is at work there.
    OtherActor(Arc<str>),
    /// A group of the cloud keeps it, and the roster leaves such machines to their group.
    GroupKeeps(Arc<str>),
    /// The instance is locked.
    Locked,
    /// The roster's limit of repairs at once is used up.
    AtOnce {
        /// Under way.
        used: u32,
        /// Allowed.
        limit: u32,
    },
    /// The roster's limit of repairs an hour is used up.
    PerHour {
        /// Begun within the hour.
        used: u32,
        /// Allowed.
        limit: u32,
        /// Until the next is free.
        free_in: Span,
    },
    /// The domain's probe width is used up.
    Width {
        /// Under way.
        used: u32,
        /// Allowed until one of them is proved.
        width: u32,
    },
    /// The last repair in the domain failed, and it cools down.
    CoolingDown(Span),
    /// The machine is kept so that a person can look at it: for how much longer.
    Kept(Span),
    /// The pool would fall below its minimum.
    PoolMinimum {
        /// Live instances now.
        live: u32,
        /// The minimum.
        min: u32,
    },
    /// Deleting for this fault has not helped so often that it stops.
    SameFault {
        /// How often.
        times: u32,
        /// The fault.
        text: Arc<str>,
    },
    /// Replacing machines of the pool has not helped so often in a row that it stops.
    Futile {
        /// How often.
        times: u32,
    },
    /// A successor's route would not fit.
    RouterFull {
        /// Routes now.
        used: u32,
        /// Routes allowed.
        limit: u32,
    },
    /// Its history before the controller watched it is unknown: it may have joined once.
    HistoryUnknown,
    /// The cluster has no Node, so nothing shows that one could join.
    NoNode,
    /// The ledger cannot be written, so nothing may be decided.
    Ledger(Arc<str>),
    /// Another process leads.
    NotLeading,
    /// No agent runs there to do it.
    NoAgent,
    /// An agent runs there, but it has been silent for too long, or cannot be asked.
    AgentSilent(Arc<str>),
}

impl Blocker {
    /// The safeguard that speaks here; none where something is merely not there to act with, or where another safeguard (of the
    /// sources) has spoken before.
    pub const fn safeguard(&self) -> Option<Safeguard> {
        Some(match self {
            Self::Off(_) | Self::Propose(_) => Safeguard::Modes,
            Self::DryRun => Safeguard::DryRun,
            Self::Paused { .. } => Safeguard::Pauses,
            Self::Settling(_) | Self::AgentAwaited(_) => Safeguard::Settling,
            Self::Ready | Self::LeaseFresh { .. } => Safeguard::Alive,
            Self::AgentHeard(_) => Safeguard::AgentHeard,
            Self::AgentHolds(_) | Self::AgentLeaves(_) | Self::AgentWorks { .. } | Self::AgentLost => {
                Safeguard::AgentHolds
            }
            Self::AskUnderWay(_) => Safeguard::OneAsk,
            Self::AgentsLost { .. } => Safeguard::AgentsLost,
            Self::AgentByName => Safeguard::AgentIdentity,
            Self::NotOwned => Safeguard::Ownership,
            Self::Contested => Safeguard::Contested,
            Self::LostTogether { .. } => Safeguard::LostTogether,
            Self::SharedIdentity(_) => Safeguard::SharedIdentity,
            Self::ZoneDark { .. } => Safeguard::ZoneDark,
            Self::FleetDark { .. } | Self::MostAway { .. } => Safeguard::FleetDark,
            Self::Breaker { .. } => Safeguard::Breaker,
            Self::Recovering { .. } => Safeguard::FreezeSettles,
            Self::Rolling(_) => Safeguard::Rollout,
            Self::OtherActor(_) => Safeguard::OtherActors,
            Self::GroupKeeps(_) => Safeguard::GroupKeeps,
            Self::Locked => Safeguard::Locked,
            Self::AtOnce { .. } => Safeguard::AtOnce,
            Self::PerHour { .. } => Safeguard::PerHour,
            Self::Width { .. } => Safeguard::ProbeWidth,
            Self::CoolingDown(_) => Safeguard::CoolDown,
            Self::Kept(_) => Safeguard::Kept,
            Self::PoolMinimum { .. } => Safeguard::PoolMinimum,
            Self::SameFault { .. } | Self::Futile { .. } => Safeguard::Futile,
            Self::RouterFull { .. } => Safeguard::RouterRoom,
            Self::HistoryUnknown => Safeguard::HistoryKnown,
            Self::NoNode => Safeguard::SomeNode,
            Self::Ledger(_) => Safeguard::LedgerWritable,
            Self::NotLeading => Safeguard::Leadership,
            Self::Blind { .. } | Self::NoAgent | Self::AgentSilent(_) => return None,
        })
    }
}
