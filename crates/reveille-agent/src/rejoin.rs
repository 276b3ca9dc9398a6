//! The smallest repair that brings this machine's Node back, chosen by what a join left; or the reason why none is
//! allowed.
//!
//! ```text
//!  node gone, credentials accepted      ─▶ RestartKubelet   it registers at its start, and at no other time
//!  all is there, and no kubelet runs    ─▶ RestartKubelet   the join broke off before it started one
//!  bootstrap token refused, cert expired ─▶ NewToken        the kubelet bootstraps again; nothing is thrown away
//!  the same where an agent renews itself ─▶ NewToken        also refused ones: its next start fetches others
//!  certificate refused, again and again  ─▶ Reset           and join: what is there is of another life; not while clocks differ
//!  kubelet.conf of a cluster that is gone ─▶ Reset          its address answers as *this* cluster now
//!  nothing is there, and a join was ordered, or a reset begun before the agent died ─▶ Join
//!  a join that was ordered broke off      ─▶ Reset          there is no certificate that could be lost
//! ```
//!
//! A reset throws away what cannot be restored, so it needs proof that nothing is lost. The proof is the same finding
//! several times in a row, from an API server with the pinned CA. Silence is no proof: a cluster that does not answer may
//! be alive.
//!
//! [`choose`] is a function of facts; the module `work` decides when to call it, and calls it again before each step.

use std::fmt;

use crate::model::{Credentials, ForeignCluster, Inspection, Leaving, Machine, NodeSeen, Role};
use crate::settings::Settings;

/// A way to bring a Node back, mildest first.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum RepairStep {
    /// Restart the kubelet.
    RestartKubelet,
    /// Get a new bootstrap token and start the kubelet with it.
    NewToken,
    /// Remove what is left of an earlier join, and join.
    Reset,
    /// Join where there is no trace of a join.
    Join,
}

impl fmt::Display for RepairStep {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Self::RestartKubelet => "a kubelet restart",
            Self::NewToken => "a new token",
            Self::Reset => "a reset and a join",
            Self::Join => "a join",
        })
    }
}

/// Why the agent does nothing to a join that has a problem.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum Blocker {
    /// A controller or an operator removes this machine on purpose.
    Leaving(Leaving),
    /// The machine runs a control plane or a member of etcd.
    ControlPlane,
    /// A Node of this name exists, and belongs to another machine.
    NameTaken,
    /// The machine belongs to another cluster, which is alive.
    AnotherCluster,
    /// The machine belongs to another cluster, which does not answer.
    AnotherClusterSilent,
    /// Too few readings in a row say that the credentials are stale: this many are needed.
    NotProved(u32),
    /// The clock is not synchronised, so dates cannot be judged.
    ClockWrong,
    /// A process other than this agent is joining the machine.
    JoinUnderWay,
    /// There is no trace of a join, and this agent began no reset.
    NeverJoined,
    /// The agent could not read the state of the join.
    CannotTell,
    /// The agent has not inspected the machine yet.
    NotLooked,
}

impl fmt::Display for Blocker {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Leaving(how) => write!(f, "{how}"),
            Self::ControlPlane => f.write_str("it runs a control plane or a member of etcd: a person has to do it"),
            Self::NameTaken => f.write_str(
                "a Node of its name is there, and it is another machine's: give this machine another name, or delete that Node if it is left over",
            ),
            Self::AnotherCluster => f.write_str("it belongs to another cluster, which answers: a person has to do it"),
            Self::AnotherClusterSilent => f.write_str(
                "its credentials are of another cluster, which does not answer; that proves nothing: a person has to do it",
            ),
            Self::NotProved(needed) => {
                write!(f, "its credentials look stale, and that must be read {needed} times in a row")
            }
            Self::ClockWrong => f.write_str("its clock is not synchronised, so no date of a certificate can be judged"),
            Self::JoinUnderWay => f.write_str("a join is under way"),
            Self::NeverJoined => f.write_str("this machine has no trace of a join, and none was ordered"),
            Self::CannotTell => f.write_str("cannot tell how far its earlier join came"),
            Self::NotLooked => f.write_str("nothing is known of the machine yet"),
        }
    }
}

/// With an expired certificate, the agent makes this many attempts with a new token before it takes the join for stale.
const TOKENS_BEFORE_RESET: u32 = 2;

/// The facts for the choice of a repair step.
#[derive(Clone, Copy, Debug)]
pub struct Known<'a> {
    /// The machine.
    pub machine: Option<&'a Machine>,
    /// The last inspection.
    pub found: &'a Inspection,
    /// How often in a row the credentials were found in this state.
    pub readings: u32,
    /// The sign that the machine is to be removed, now or when its Node was last seen.
    pub leaving: Option<Leaving>,
    /// The number of attempts before this one.
    pub attempts: u32,
    /// The agent began a reset, and no join has held since.
    pub is_reset: bool,
    /// The join was ordered, and no join has held since.
    pub is_ordered: bool,
    /// The settings.
    pub settings: &'a Settings,
}

/// The repair step to take; none when the Node is healthy.
///
/// # Errors
///
/// The reason against doing anything, or against every possible step.
pub fn choose(known: Known<'_>) -> Result<Option<RepairStep>, Blocker> {
    if known.found.node == NodeSeen::Ready {
        return Ok(None);
    }
    if let Some(how) = known.leaving {
        return Err(Blocker::Leaving(how));
    }
    let machine = known.machine.ok_or(Blocker::NotLooked)?;
    if machine.joining {
        return Err(Blocker::JoinUnderWay);
    }
    if known.found.node == NodeSeen::AnotherMachines {
        return Err(Blocker::NameTaken);
    }
    let may_join = known.is_reset || known.is_ordered;
    let worker = || if machine.role == Role::Worker { Ok(()) } else { Err(Blocker::ControlPlane) };
    let proved = || {
        let (read, needed) = (known.readings, known.settings.stale_readings);
        if read < needed { Err(Blocker::NotProved(needed)) } else { Ok(()) }
    };
    match &known.found.credentials {
        // The API server accepts the credentials, and the Node is not Ready: joining does not repair that.
        Credentials::Accepted if known.found.node == NodeSeen::NotReady => Ok(None),
        Credentials::Accepted if matches!(known.found.node, NodeSeen::CannotTell | NodeSeen::Guarded) => {
            Err(Blocker::CannotTell)
        }
        Credentials::Accepted => Ok(Some(RepairStep::RestartKubelet)),
        Credentials::Bootstrapping => Err(Blocker::JoinUnderWay),
        Credentials::Unstarted => proved().map(|()| Some(RepairStep::RestartKubelet)),
        Credentials::Nothing if may_join => worker().map(|()| Some(RepairStep::Join)),
        Credentials::Interrupted if may_join => {
            worker()?;
            proved().map(|()| Some(RepairStep::Reset))
        }
        Credentials::Nothing | Credentials::Interrupted => Err(Blocker::NeverJoined),
        // The k3s or RKE2 agent registers as a worker, so a control plane must not do this.
        Credentials::Renewable => {
            worker()?;
            proved().map(|()| Some(RepairStep::NewToken))
        }
        Credentials::TokenDead => proved().map(|()| Some(RepairStep::NewToken)),
        // A server whose clock is ahead refuses a certificate that is within its dates.
        Credentials::Expired | Credentials::Refused if !known.found.clock_is_right => {
            Err(Blocker::ClockWrong)
        }
        Credentials::Expired if known.attempts < TOKENS_BEFORE_RESET => {
            proved().map(|()| Some(RepairStep::NewToken))
        }
        Credentials::Expired | Credentials::Refused | Credentials::Foreign(ForeignCluster::Replaced) => {
            worker()?;
            proved().map(|()| Some(RepairStep::Reset))
        }
        Credentials::Foreign(ForeignCluster::Lives) => Err(Blocker::AnotherCluster),
        Credentials::Foreign(ForeignCluster::Silent) => Err(Blocker::AnotherClusterSilent),
        Credentials::CannotTell(_) => Err(Blocker::CannotTell),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::model::Device;

    fn machine(role: Role) -> Machine {
        Machine { zone: None, watchdog: Device::Absent, may_reboot: true, role, joining: false }
    }

    fn found(node: NodeSeen, credentials: Credentials) -> Inspection {
        Inspection { node, came_and_went: false, credentials, leaving: None, clock_is_right: true }
    }

    fn chosen(
        found: &Inspection,
        role: Role,
        attempts: u32,
        leaving: Option<Leaving>,
    ) -> Result<Option<RepairStep>, Blocker> {
        let settings = Settings::default();
        let machine = machine(role);
        choose(Known {
            machine: Some(&machine),
            found,
            readings: 3,
            leaving,
            attempts,
            is_reset: false,
            is_ordered: false,
            settings: &settings,
        })
    }

    #[test]
    fn each_finding_has_its_mildest_repair_step() {
        use Credentials::{
            Accepted, Bootstrapping, Expired, Foreign, Nothing, Refused, Renewable, TokenDead, Unstarted,
        };
        for (credentials, attempts, wanted) in [
            (Accepted, 0, Ok(Some(RepairStep::RestartKubelet))),
            (Accepted, 4, Ok(Some(RepairStep::RestartKubelet))),
            (TokenDead, 0, Ok(Some(RepairStep::NewToken))),
            (TokenDead, 4, Ok(Some(RepairStep::NewToken))),
            (Renewable, 0, Ok(Some(RepairStep::NewToken))),
            (Renewable, 4, Ok(Some(RepairStep::NewToken))),
            (Expired, 0, Ok(Some(RepairStep::NewToken))),
            (Expired, 2, Ok(Some(RepairStep::Reset))),
            (Refused, 0, Ok(Some(RepairStep::Reset))),
            (Foreign(ForeignCluster::Replaced), 0, Ok(Some(RepairStep::Reset))),
            (Foreign(ForeignCluster::Lives), 0, Err(Blocker::AnotherCluster)),
            (Foreign(ForeignCluster::Silent), 0, Err(Blocker::AnotherClusterSilent)),
            (Bootstrapping, 0, Err(Blocker::JoinUnderWay)),
            (Unstarted, 0, Ok(Some(RepairStep::RestartKubelet))),
            (Nothing, 0, Err(Blocker::NeverJoined)),
            (Credentials::CannotTell("x".into()), 0, Err(Blocker::CannotTell)),
        ] {
            let found = found(NodeSeen::Absent, credentials);
            assert_eq!(chosen(&found, Role::Worker, attempts, None), wanted, "{found:?}");
        }
    }

    #[test]
    fn nothing_is_reset_that_is_ready_leads_or_leaves() {
        let leads = Role::ControlPlane { spare: true };
        let stale = || Credentials::Refused;
        assert_eq!(chosen(&found(NodeSeen::Ready, stale()), Role::Worker, 0, None), Ok(None));
        assert_eq!(chosen(&found(NodeSeen::Absent, stale()), leads, 0, None), Err(Blocker::ControlPlane));
        for how in
            [Leaving::Tainted, Leaving::Finalizing, Leaving::Drained, Leaving::Terminating, Leaving::Removed]
        {
            for credentials in [Credentials::Accepted, Credentials::Refused, Credentials::TokenDead] {
                let found = found(NodeSeen::Absent, credentials);
                assert_eq!(chosen(&found, Role::Worker, 0, Some(how)), Err(Blocker::Leaving(how)));
            }
        }
    }

    #[test]
    fn a_date_is_not_judged_by_a_clock_that_is_not_synchronised() {
        for credentials in [Credentials::Expired, Credentials::Refused] {
            let found = Inspection { clock_is_right: false, ..found(NodeSeen::Absent, credentials) };
            assert_eq!(chosen(&found, Role::Worker, 3, None), Err(Blocker::ClockWrong));
        }
    }

    #[test]
    fn a_join_is_begun_by_an_order_alone_and_never_over_what_holds() {
        let (settings, worker) = (Settings::default(), machine(Role::Worker));
        let leads = machine(Role::ControlPlane { spare: true });
        let chosen = |machine: &Machine, credentials: Credentials, is_ordered| {
            let found = found(NodeSeen::Absent, credentials);
            choose(Known {
                machine: Some(machine),
                found: &found,
                readings: 3,
                leaving: None,
                attempts: 0,
                is_reset: false,
                is_ordered,
                settings: &settings,
            })
        };
        use Credentials::{Accepted, Bootstrapping, Foreign, Interrupted, Nothing};
        for (credentials, unordered, ordered) in [
            (Nothing, Err(Blocker::NeverJoined), Ok(Some(RepairStep::Join))),
            (Interrupted, Err(Blocker::NeverJoined), Ok(Some(RepairStep::Reset))),
            (Accepted, Ok(Some(RepairStep::RestartKubelet)), Ok(Some(RepairStep::RestartKubelet))),
            (Bootstrapping, Err(Blocker::JoinUnderWay), Err(Blocker::JoinUnderWay)),
            (Foreign(ForeignCluster::Lives), Err(Blocker::AnotherCluster), Err(Blocker::AnotherCluster)),
        ] {
            assert_eq!(chosen(&worker, credentials.clone(), false), unordered, "{credentials:?}");
            assert_eq!(chosen(&worker, credentials.clone(), true), ordered, "{credentials:?}, ordered");
        }
        for credentials in [Nothing, Interrupted] {
            assert_eq!(chosen(&leads, credentials, true), Err(Blocker::ControlPlane));
        }
    }

    #[test]
    fn node_name_taken_by_another_machine_blocks_join() {
        for credentials in [Credentials::Nothing, Credentials::Accepted, Credentials::Refused] {
            let found = found(NodeSeen::AnotherMachines, credentials);
            assert_eq!(chosen(&found, Role::Worker, 0, None), Err(Blocker::NameTaken));
        }
    }

    #[test]
    fn one_refusal_proves_nothing() {
        let (settings, machine) = (Settings::default(), machine(Role::Worker));
        let found = found(NodeSeen::Absent, Credentials::Refused);
        let known = |readings| Known {
            machine: Some(&machine),
            found: &found,
            readings,
            leaving: None,
            attempts: 0,
            is_reset: false,
            is_ordered: false,
            settings: &settings,
        };
        assert_eq!(choose(known(1)), Err(Blocker::NotProved(3)));
        assert_eq!(choose(known(3)), Ok(Some(RepairStep::Reset)));
    }
}
