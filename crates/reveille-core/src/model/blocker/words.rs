//! What blocks a step, in one line: the words of every [`Blocker`].

use std::fmt;

use super::{Blocker, Scope};
use crate::model::class::Class;
use crate::model::time::Span;

/// Leases are listed every ten seconds or so; where the last list is older than this, it is said.
const LEASES_MISSED: Span = Span::from_min(1);

impl fmt::Display for Scope {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Pool(name) => write!(f, "pool {name}"),
            Self::Zone(_, name) => write!(f, "zone {name}"),
            Self::Roster => f.write_str("the roster"),
        }
    }
}

impl Blocker {
    /// What agents have to do with.
    fn say_of_agents(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::AgentHeard(age) => write!(f, "its agent reported {age} ago: the machine runs"),
            Self::AgentHolds(why) => write!(f, "its agent does not rejoin: {why}"),
            Self::AgentLeaves(why) => {
                write!(f, "its agent reports decommissioning ({why}). Waits for its owner to delete it")
            }
            Self::AgentWorks { what, attempt, of } => {
                write!(f, "its agent repairs it: {what}, attempt {attempt} of {of}")
            }
            Self::AgentLost => f.write_str("its agent cannot reach the API server"),
            Self::AskUnderWay(intent) => write!(f, "its agent was already asked ({intent})"),
            Self::AgentsLost { lost, of } => {
                write!(f, "{lost} of {of} agents cannot reach the API server. Check the control plane")
            }
            Self::AgentByName => {
                f.write_str("its agent is known by name only, which does not prove that it is this machine's")
            }
            Self::AgentSilent(why) => write!(f, "its agent cannot be asked ({why}): manual action needed"),
            _ => f.write_str("no agent runs there: manual action needed"),
        }
    }

    /// What holds because of a limit of the roster, the pool or the router.
    fn say_of_limits(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::AtOnce { used, limit } => write!(f, "{used} of {limit} repairs under way"),
            Self::PerHour { used, limit, free_in } => {
                write!(f, "{used} of {limit} repairs begun within the hour; the next in {free_in}")
            }
            Self::Width { used, width } => {
                write!(
                    f,
                    "{used} of {width} repairs of this problem under way in this pool and zone; more after one is confirmed"
                )
            }
            Self::CoolingDown(left) => {
                write!(f, "the last repair of this problem here failed: retries in {left}")
            }
            Self::Kept(left) => write!(f, "kept for inspection for {left} more"),
            Self::PoolMinimum { live, min } => {
                write!(f, "the pool has {live} machines and its minimum is {min}")
            }
            Self::SameFault { times: 1, text } => {
                write!(f, "a machine was deleted for the same fault, and the fault came back: {text}")
            }
            Self::SameFault { times, text } => {
                write!(f, "{times} machines were deleted for the same fault, and the fault came back: {text}")
            }
            Self::Futile { times } => {
                write!(
                    f,
                    "the last {times} replacements in this pool did not help: suspect the image or template"
                )
            }
            Self::RouterFull { used, limit } => {
                write!(f, "the router holds {used} of {limit} routes: a new machine would get none")
            }
            of_agents => of_agents.say_of_agents(f),
        }
    }
}

impl fmt::Display for Blocker {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Off(Class::Access) => f.write_str("access: off in the roster"),
            Self::Off(class) => write!(f, "{}: off for this pool", class.name()),
            Self::Propose(Class::Access) => f.write_str("access: proposed only, in the roster"),
            Self::Propose(class) => write!(f, "{}: proposed only, for this pool", class.name()),
            Self::DryRun => f.write_str("dry run: nothing is done"),
            Self::Paused { scope, by } => write!(f, "{scope} is paused {by}"),
            Self::Blind { source, why } => write!(f, "no reliable data from {source}: {why}"),
            Self::Settling(left) => {
                write!(f, "its data sources recovered only just now: waits {left} more")
            }
            Self::AgentAwaited(left) => {
                write!(f, "its agent may not have reconnected yet: waits {left} more")
            }
            Self::Ready => f.write_str("its Node is Ready"),
            Self::LeaseFresh { age, listed } if *listed > LEASES_MISSED => write!(
                f,
                "its lease was {age} old when leases were last listed, {listed} ago; no newer list could be read"
            ),
            Self::LeaseFresh { age, .. } => {
                write!(f, "its kubelet is alive: it renewed its lease {age} ago")
            }
            Self::NotOwned => {
                f.write_str("no mark on the instance proves that it belongs to exactly one pool")
            }
            Self::Contested => f.write_str("two machines or Nodes have the same identity"),
            Self::LostTogether { machines: 1 } => f.write_str(
                "its Node, if it had one, disappeared with others, or while Reveille could not watch, and may have \
                 been drained. Restart its kubelet, or delete the machine",
            ),
            Self::LostTogether { machines } => write!(
                f,
                "{machines} Nodes disappeared together, or while Reveille could not watch. \
                 Restart the kubelets of their machines, or delete the machines"
            ),
            Self::SharedIdentity(what) => {
                write!(f, "{what}. Manual action: find out which machine this Node belongs to")
            }
            Self::ZoneDark { zone, machines } => {
                write!(f, "zone {zone} is down: none of its {machines} machines is Ready. Waits until one is")
            }
            Self::FleetDark { silent, total } => {
                write!(
                    f,
                    "{silent} of {total} Nodes do not renew their leases. Check the network and the control plane"
                )
            }
            Self::MostAway { away, total } => {
                write!(
                    f,
                    "{away} of {total} machines are not Ready, machines that are still starting included. Waits until more are Ready"
                )
            }
            Self::Breaker { scope, unhealthy, total, tolerated } => {
                write!(
                    f,
                    "{unhealthy} of {total} machines of {scope} have a problem, at most {tolerated} are allowed (limits.freezeAbove)"
                )
            }
            Self::Recovering { scope, left } => {
                write!(f, "machines of {scope} may still recover by themselves: waits {left} more")
            }
            Self::Rolling(pool) => write!(f, "pool {pool} is rolling to another image or version"),
            Self::OtherActor(who) => write!(f, "another actor is at work: {who}"),
            Self::GroupKeeps(group) => {
                write!(f, "{group}, which replaces its machines itself (throughGroup is not set)")
            }
            Self::Locked => f.write_str("the instance is locked in the cloud"),
            Self::HistoryUnknown => {
                f.write_str("it is older than this controller's first listing and may have joined before")
            }
            Self::NoNode => {
                f.write_str("the cluster has no Node yet: nothing shows that a machine can join it")
            }
            Self::Ledger(why) => write!(f, "the ledger cannot be written: {why}"),
            Self::NotLeading => f.write_str("another controller process leads"),
            other => other.say_of_limits(f),
        }
    }
}
