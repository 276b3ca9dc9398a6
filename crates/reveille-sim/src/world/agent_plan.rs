//! Which machines are to have agents, and what is out of the ordinary there: the part of a layout that is about agents.

use std::collections::BTreeMap;

use reveille_agent::Settings;
use reveille_core::model::id::{PoolName, ZoneName};

use super::kubelet_credentials::KubeletCredentials;

/// Which machines are meant, also those that are not made yet.
#[derive(Clone, Debug)]
pub(crate) enum Whom {
    Named(Vec<String>),
    OfPool(PoolName),
    OfZone(ZoneName),
    All,
}

/// What is out of the ordinary about a machine or its agent. Otherwise there is a watchdog, and everything is permitted.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Oddity {
    NoWatchdog,
    WatchdogForbidden,
    MayNotReboot,
    /// It runs a control plane; the others keep their quorum without it, or not.
    ControlPlane(bool),
    KnowsNoPeers,
    KubeletCredentials(KubeletCredentials),
    /// Its agent knows no id of it, and reports under its name.
    KnowsOnlyItsName,
    /// Its agent says that it does what it is asked, and does nothing.
    SaysDone,
    /// Whatever joins it, it is refused again.
    JoinsInVain,
}

/// Which agents there are to be.
#[derive(Clone, Debug, Default)]
pub struct AgentPlan {
    pub(crate) on: Vec<Whom>,
    /// Whose agents report to Reveille.
    pub(crate) speaks: Vec<Whom>,
    pub(crate) odd: Vec<(Whom, Oddity)>,
    pub(crate) settings: Settings,
    /// Pools whose agents are set otherwise.
    pub(crate) of_pool: BTreeMap<PoolName, Settings>,
    /// No server gives out bootstrap tokens.
    pub(crate) no_tokens: bool,
}
