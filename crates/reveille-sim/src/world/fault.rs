//! Everything that can go wrong in the world, by name.
//!
//! A closed list: a fault says what happens to whom, `strike` makes it true. Faults of the controller's own process
//! (a pause, a crash, a full disk, a lost lead) are not the world's and stand in `drive`.

use std::fmt;

use reveille_core::effect::ReadErrorKind;
use reveille_core::model::id::{InstanceId, PoolName, ZoneName};
use reveille_core::model::time::Span;

use super::guest::Trouble;

/// One thing that goes wrong.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Fault {
    /// The port of a machine loses its group; with `slips`, again whenever it is put back.
    GroupLost {
        /// Whose port.
        machine: InstanceId,
        /// Whether putting it back holds.
        slips: bool,
    },
    /// The port no longer allows its node's pod range.
    PairLost(InstanceId),
    /// A machine gets a second port, wired and without the pool's group.
    SecondPort(InstanceId),
    /// Port security of a machine's port is turned off, and its groups go with it.
    PortSecurityOff(InstanceId),
    /// The group's pod rules are replaced by one wider rule that allows the same and more.
    RulesWidened,
    /// A second group of the same name turns up in the project.
    GroupTwin,
    /// The group's pod rules are gone.
    RulesLost,
    /// The router holds a second route to a machine's pod range, through nobody.
    DuplicateRoute(InstanceId),
    /// A machine's route is gone, and the cloud controller does not make it again.
    MissingRoute(InstanceId),
    /// So many routes of other clusters are on the router, some through nobody.
    ForeignRoutes(u32),
    /// The router takes no more than this many routes, and does not say so.
    RouteLimit(u32),
    /// The node's pods cannot be reached until the data plane reads its tables again.
    RouteBroken(InstanceId),
    /// The pool's owner starts one machine more; it has this trouble.
    Launch {
        /// In which pool.
        pool: PoolName,
        /// What is wrong inside it, if anything.
        trouble: Option<Trouble>,
    },
    /// Every machine that the pool's owner makes from now on has this trouble; `None` ends it.
    BadImage(PoolName, Option<Trouble>),
    /// The pool is rolled to another image: its owner replaces one machine.
    Rollout(PoolName),
    /// Something breaks inside a machine that has joined.
    Breaks(InstanceId, Trouble),
    /// The cloud gives a running instance up.
    Errored(InstanceId),
    /// Somebody works on an instance: its cloud names a task.
    Busy(InstanceId),
    /// Somebody locks an instance.
    Locked(InstanceId),
    /// Somebody shuts an instance off.
    ShutOff(InstanceId),
    /// Its owner deletes an instance, and deleting it never ends.
    StuckDeleting(InstanceId),
    /// Somebody else deletes an instance.
    ForeignDelete(InstanceId),
    /// The autoscaler takes a machine away: taint, node, instance.
    ScaledDown(InstanceId),
    /// The cloud controller believes that an instance is gone and deletes its node.
    NodeDeletedByController(InstanceId),
    /// Somebody deletes a node.
    NodeDeletedByPerson(InstanceId),
    /// The cloud controller does not run for so long: ghosts stay.
    ControllerDown(Span),
    /// A second node names the same instance.
    NodeTwin(InstanceId),
    /// A second instance has the same name, and no node.
    NameTwin(InstanceId),
    /// An instance loses its pool's mark.
    Unmarked(InstanceId),
    /// An instance carries another pool's mark as well.
    MarkedTwice(InstanceId, PoolName),
    /// Somebody cordons a machine's node.
    Cordoned(InstanceId),
    /// The cloud says that an instance is shut off, and it runs.
    SaidStopped(InstanceId, Span),
    /// Listings of servers are empty, complete and 200.
    ServersUnlisted {
        /// For how long.
        lasts: Span,
        /// Read by id, they are denied as well (another project); otherwise such reads fail (a cell that is down).
        denies: bool,
    },
    /// Listings lack these servers.
    SomeUnlisted {
        /// Which.
        machines: Vec<InstanceId>,
        /// For how long.
        lasts: Span,
        /// See [`Fault::ServersUnlisted`].
        denies: bool,
    },
    /// Listings hold every server and not one port.
    PortsUnlisted(Span),
    /// Every read of the cloud fails in this way.
    CloudFails(ReadErrorKind, Span),
    /// The cluster's API answers with no nodes at all.
    NodesUnlisted(Span),
    /// The cluster's API does not answer us.
    ApiSilent(Span),
    /// Leases are not renewed although kubelets run.
    LeasesFrozen(Span),
    /// Nothing in a zone reaches the cluster's API.
    ZoneDark(ZoneName, Span),
    /// The next call goes wrong.
    Call(CallLie),
}

/// How a call goes wrong.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum CallLie {
    /// Accepted, and nothing happens.
    Ignored,
    /// It takes effect, and nobody is told.
    Unanswered,
    /// It does not happen, and may later.
    Fails {
        /// Not before this long, when the other side says so.
        retry_after: Option<Span>,
    },
    /// A nudge that puts its rule and dies before it takes it back; any other call goes right.
    Cut,
}

impl Fault {
    /// The name in scenarios and logs.
    pub const fn name(&self) -> &'static str {
        match self {
            Self::GroupLost { slips: false, .. } => "group-lost",
            Self::GroupLost { slips: true, .. } => "group-slips",
            Self::PairLost(_) => "pair-lost",
            Self::SecondPort(_) => "second-port",
            Self::PortSecurityOff(_) => "port-security-off",
            Self::RulesWidened => "rules-widened",
            Self::GroupTwin => "group-twin",
            Self::Busy(_) => "busy",
            Self::Locked(_) => "locked",
            Self::RulesLost => "rules-lost",
            Self::DuplicateRoute(_) => "duplicate-route",
            Self::MissingRoute(_) => "missing-route",
            Self::ForeignRoutes(_) => "foreign-routes",
            Self::RouteLimit(_) => "route-limit",
            Self::RouteBroken(_) => "route-broken",
            Self::Launch { .. } => "launch",
            Self::BadImage(..) => "bad-image",
            Self::Rollout(_) => "rollout",
            Self::Breaks(..) => "breaks",
            Self::Errored(_) => "errored",
            Self::ShutOff(_) => "shut-off",
            Self::StuckDeleting(_) => "stuck-deleting",
            Self::ForeignDelete(_) => "foreign-delete",
            Self::ScaledDown(_) => "scaled-down",
            Self::NodeDeletedByController(_) => "node-deleted-by-controller",
            Self::NodeDeletedByPerson(_) => "node-deleted-by-person",
            Self::ControllerDown(_) => "controller-down",
            Self::NodeTwin(_) => "node-twin",
            Self::NameTwin(_) => "name-twin",
            Self::Unmarked(_) => "unmarked",
            Self::MarkedTwice(..) => "marked-twice",
            Self::Cordoned(_) => "cordoned",
            Self::SaidStopped(..) => "said-stopped",
            Self::ServersUnlisted { .. } => "servers-unlisted",
            Self::SomeUnlisted { .. } => "some-unlisted",
            Self::PortsUnlisted(_) => "ports-unlisted",
            Self::CloudFails(..) => "cloud-fails",
            Self::NodesUnlisted(_) => "nodes-unlisted",
            Self::ApiSilent(_) => "api-silent",
            Self::LeasesFrozen(_) => "leases-frozen",
            Self::ZoneDark(..) => "zone-dark",
            Self::Call(CallLie::Ignored) => "call-ignored",
            Self::Call(CallLie::Unanswered) => "call-unanswered",
            Self::Call(CallLie::Fails { .. }) => "call-fails",
            Self::Call(CallLie::Cut) => "nudge-cut",
        }
    }

    /// Whom it strikes, when it strikes one machine.
    pub const fn machine(&self) -> Option<&InstanceId> {
        match self {
            Self::GroupLost { machine, .. }
            | Self::PairLost(machine)
            | Self::SecondPort(machine)
            | Self::PortSecurityOff(machine)
            | Self::Busy(machine)
            | Self::Locked(machine)
            | Self::DuplicateRoute(machine)
            | Self::MissingRoute(machine)
            | Self::RouteBroken(machine)
            | Self::Breaks(machine, _)
            | Self::Errored(machine)
            | Self::ShutOff(machine)
            | Self::StuckDeleting(machine)
            | Self::ForeignDelete(machine)
            | Self::ScaledDown(machine)
            | Self::NodeDeletedByController(machine)
            | Self::NodeDeletedByPerson(machine)
            | Self::NodeTwin(machine)
            | Self::NameTwin(machine)
            | Self::Unmarked(machine)
            | Self::MarkedTwice(machine, _)
            | Self::Cordoned(machine)
            | Self::SaidStopped(machine, _) => Some(machine),
            _ => None,
        }
    }

    /// How long it lasts, when it ends by itself.
    pub const fn lasts(&self) -> Option<Span> {
        match self {
            Self::ControllerDown(lasts)
            | Self::ServersUnlisted { lasts, .. }
            | Self::SomeUnlisted { lasts, .. }
            | Self::PortsUnlisted(lasts)
            | Self::SaidStopped(_, lasts)
            | Self::CloudFails(_, lasts)
            | Self::NodesUnlisted(lasts)
            | Self::ApiSilent(lasts)
            | Self::LeasesFrozen(lasts)
            | Self::ZoneDark(_, lasts) => Some(*lasts),
            _ => None,
        }
    }

    /// What happened, as a sentence. `name` is what people call the machine.
    pub fn sentence(&self, name: &str) -> String {
        match self {
            Self::GroupLost { slips, .. } => {
                let again = if *slips { ", and something keeps taking it off" } else { "" };
                format!("the port of {name} loses its security group{again}")
            }
            Self::PairLost(_) => format!("the port of {name} no longer allows its pod range"),
            Self::SecondPort(_) => format!("{name} gets a second port, without the group"),
            Self::PortSecurityOff(_) => format!("port security of {name} is turned off"),
            Self::RulesWidened => "the group's pod rules become one wider rule".to_owned(),
            Self::GroupTwin => "a second group of the same name turns up".to_owned(),
            Self::Busy(_) => format!("somebody rebuilds {name}"),
            Self::Locked(_) => format!("somebody locks {name}"),
            Self::RulesLost => "the security group loses its pod rules".to_owned(),
            Self::DuplicateRoute(_) => {
                format!("a second route to the pods of {name} turns up, through nobody")
            }
            Self::MissingRoute(_) => format!("the route to the pods of {name} is lost"),
            Self::ForeignRoutes(count) => format!("another cluster puts {count} routes on the router"),
            Self::RouteLimit(limit) => format!("the router takes no more than {limit} routes"),
            Self::RouteBroken(_) => format!("the pods of {name} cannot be reached"),
            Self::Launch { pool, trouble } => match trouble {
                None => format!("pool {pool} grows by one machine"),
                Some(trouble) => format!("pool {pool} grows by one machine; {}", trouble.sentence()),
            },
            Self::BadImage(pool, Some(trouble)) => {
                format!("whatever pool {pool} makes from now on is broken: {}", trouble.sentence())
            }
            Self::BadImage(pool, None) => format!("pool {pool} makes good machines again"),
            Self::Rollout(pool) => format!("pool {pool} is rolled to another image"),
            Self::Breaks(_, trouble) => format!("{name}: {}", trouble.sentence()),
            Self::Errored(_) => format!("the cloud puts {name} into an error state"),
            Self::ShutOff(_) => format!("somebody shuts {name} off"),
            Self::StuckDeleting(_) => format!("{name} is deleted and does not go"),
            Self::ForeignDelete(_) => format!("somebody else deletes {name}"),
            Self::ScaledDown(_) => format!("the autoscaler takes {name} away"),
            Self::NodeDeletedByController(_) => {
                format!("the cloud controller takes {name} for gone and deletes its node")
            }
            Self::NodeDeletedByPerson(_) => format!("somebody deletes the node of {name}"),
            Self::ControllerDown(lasts) => format!("the cloud controller is down for {lasts}"),
            Self::NodeTwin(_) => format!("a second node names the instance of {name}"),
            Self::NameTwin(_) => format!("a second instance is called {name}"),
            Self::Unmarked(_) => format!("{name} loses its pool's mark"),
            Self::MarkedTwice(_, pool) => format!("{name} gets the mark of pool {pool}, too"),
            Self::Cordoned(_) => format!("somebody cordons the node of {name}"),
            Self::SaidStopped(_, lasts) => {
                format!("the cloud says for {lasts} that {name} is shut off, and it runs")
            }
            Self::ServersUnlisted { lasts, .. } => format!("the cloud lists no servers for {lasts}"),
            Self::SomeUnlisted { machines, lasts, .. } => {
                format!("the cloud's list lacks {} servers for {lasts}", machines.len())
            }
            Self::PortsUnlisted(lasts) => format!("the cloud lists no ports for {lasts}"),
            Self::CloudFails(kind, lasts) => format!("the cloud's API fails for {lasts} ({kind:?})"),
            Self::NodesUnlisted(lasts) => format!("the cluster lists no nodes for {lasts}"),
            Self::ApiSilent(lasts) => format!("the cluster's API is silent for {lasts}"),
            Self::LeasesFrozen(lasts) => format!("no lease is renewed for {lasts}"),
            Self::ZoneDark(zone, lasts) => format!("zone {zone} is cut off for {lasts}"),
            Self::Call(CallLie::Ignored) => "the next call is accepted and does nothing".to_owned(),
            Self::Call(CallLie::Unanswered) => "the next call works and is not answered".to_owned(),
            Self::Call(CallLie::Fails { .. }) => "the next call fails".to_owned(),
            Self::Call(CallLie::Cut) => "the next nudge is cut in the middle".to_owned(),
        }
    }
}

impl Trouble {
    /// What is wrong, as a clause.
    pub const fn sentence(self) -> &'static str {
        match self {
            Self::BuildFails => "the cloud finds no host for it",
            Self::BuildHangs => "its build never ends",
            Self::NoNetwork => "its first boot finds no network",
            Self::MetadataDown => "its first boot gets nothing from the metadata service",
            Self::BadToken => "its bootstrap token is not accepted",
            Self::KubeletHung => "its kubelet hangs",
            Self::Broken => "its kubelet cannot run",
        }
    }
}

impl fmt::Display for Fault {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let name = self.machine().map_or("-", InstanceId::as_str);
        write!(f, "{}: {}", self.name(), self.sentence(name))
    }
}
