//! Everything that can go wrong in the world, by name.
//!
//! A closed list: a fault says what happens to whom, `inject` makes it true. Faults of the controller's own process
//! (a pause, a crash, a full disk, a lost lead) are not the world's and stand in `drive`.

use std::sync::Arc;

use reveille_core::effect::ReadErrorKind;
use reveille_core::model::id::{InstanceId, PoolName, ZoneName};
use reveille_core::model::time::Span;

use super::hands::Hand;
use super::vm::Trouble;

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
    /// The router holds a second route to a machine's pod range, with a dead next hop.
    DuplicateRoute(InstanceId),
    /// A machine's route is gone, and the cloud controller does not make it again.
    MissingRoute(InstanceId),
    /// So many routes of other clusters are on the router, some with a dead next hop.
    ForeignRoutes(u32),
    /// The ports of all VIPs are deleted and made again: they are away for so long.
    VipsAway(Span),
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
    /// A person makes a machine of a pool to try it. It joins and serves, and they drain it and delete its Node.
    Tried {
        /// Of which pool.
        pool: PoolName,
        /// From the order to the drain.
        serves: Span,
        /// It has no marks of its pool until so long after the drain; none where it has them from the start.
        marked_after: Option<Span>,
        /// For how long they keep it after the drain.
        keeps: Span,
    },
    /// Every machine that the pool's owner makes from now on has this trouble; `None` ends it.
    BadImage(PoolName, Option<Trouble>),
    /// The pool is rolled to another image: its owner replaces one machine.
    Rollout(PoolName),
    /// Something breaks inside a machine that has joined.
    Breaks(InstanceId, Trouble),
    /// The cloud gives a running instance up.
    Errored(InstanceId),
    /// A user changes an instance: its cloud names a task.
    Busy(InstanceId),
    /// A user locks an instance.
    Locked(InstanceId),
    /// A user shuts an instance off.
    ShutOff(InstanceId),
    /// Its owner deletes an instance, and deleting it never ends.
    StuckDeleting(InstanceId),
    /// Another client deletes an instance.
    ForeignDelete(InstanceId),
    /// The autoscaler takes a machine away: taint, node, instance.
    ScaledDown(InstanceId),
    /// The cloud controller believes that an instance is gone and deletes its node.
    NodeDeletedByController(InstanceId),
    /// A person deletes a node.
    NodeDeletedByPerson(InstanceId),
    /// The cloud controller does not run for so long: ghosts stay.
    ControllerDown(Span),
    /// A second node names the same instance.
    NodeTwin(InstanceId),
    /// A second instance has the same name, and no node.
    NameTwin(InstanceId),
    /// An instance loses its pool's mark.
    Unmarked(InstanceId),
    /// An instance gets its pool's mark back.
    Marked(InstanceId),
    /// An instance carries another pool's mark as well.
    MarkedTwice(InstanceId, PoolName),
    /// A person cordons a machine's node.
    Cordoned(InstanceId),
    /// A client takes the cordon of a machine's node back.
    Uncordoned(InstanceId),
    /// The kubelet of one machine shows the identity of another one on its own Node.
    ShowsIdentity {
        /// Whose kubelet.
        liar: InstanceId,
        /// Whom it shows.
        of: InstanceId,
        /// What of it.
        shows: Shows,
        /// For how long.
        lasts: Span,
    },
    /// A person cordons a machine's node, deletes the node two minutes later, and the instance after this long.
    Drained(InstanceId, Span),
    /// The owner deletes a machine and makes another of its name, whose kubelet takes the Node over. After this long a person
    /// deletes that Node and restarts the kubelet.
    Remade(InstanceId, Span),
    /// A person takes all marks off a machine, and puts them back after this long.
    MarksAway(InstanceId, Span),
    /// The cloud says that an instance is shut off, and it runs.
    SaidStopped(InstanceId, Span),
    /// Listings of servers are empty, complete and 200.
    ServersUnlisted {
        /// For how long.
        lasts: Span,
        /// Read by id, they are denied as well (a database that was restored); otherwise such reads fail (a cell that is down).
        denies: bool,
    },
    /// The credential leads into another project: everything of ours is absent from every list, and denied by id.
    AnotherProject(Span),
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
    /// etcd is restored from a backup of before these machines joined: their Nodes are not there any more, and no watch tells of
    /// it. A kubelet registers when it starts and never again, so it stays like that until a person restarts it.
    EtcdRestored(Vec<InstanceId>),
    /// The kubeconfig leads to another cluster, which has one node of its own.
    OtherCluster(Span),
    /// The cluster's API does not answer us.
    ApiSilent(Span),
    /// Leases are not renewed although kubelets run.
    LeasesFrozen(Span),
    /// The list of leases has nothing in it, with 200.
    LeasesUnlisted(Span),
    /// Nothing in a zone reaches the cluster's API.
    ZoneDark(ZoneName, Span),
    /// Answers to reads and calls come half a minute to four minutes late.
    AnswersLate(Span),
    /// Answers to reads and calls come twice.
    AnswersTwice(Span),
    /// Listings hold the same machines and ports twice, as pages that repeat.
    PagesRepeat(Span),
    /// What the watch tells comes a minute late.
    WatchLags(Span),
    /// The watch loses what happens, reports that it is alive, and lists again in the end.
    WatchGap(Span),
    /// The watch lists what was so a quarter of an hour ago, as after an etcd restored from its backup.
    NodeListStale(Span),
    /// The cluster's API does not accept our credentials.
    ApiDenied(Span),
    /// The clock of a machine is off by so many milliseconds: its kubelet stamps its lease with it.
    NodeClock(InstanceId, i64),
    /// The clocks of both APIs are off by so many milliseconds.
    ApiClock(i64, Span),
    /// A machine stands still and goes on as if nothing were.
    NodePaused(InstanceId, Span),
    /// Nothing in any zone reaches the cluster's API.
    FleetDark(Span),
    /// A share of the machines stand still together (their storage hangs) and go on one after another.
    ManySilent {
        /// Of a hundred machines, so many.
        share_pct: u32,
        /// For how long, until the first goes on.
        lasts: Span,
        /// Between one that goes on and the next.
        every: Span,
    },
    /// The cloud's policy forbids us calls, with 403.
    RightsLost(Right, Span),
    /// Changes are not taken, while everything can be read.
    WritesRefused(Refusal, Span),
    /// An administrator takes a role away from a service user of that name.
    RoleLost(Arc<str>, Arc<str>),
    /// An administrator gives a service user of that name a role.
    RoleGiven(Arc<str>, Arc<str>),
    /// Asked who holds which role, Keystone refuses (forbidden) or fails in this way.
    RolesUntold(ReadErrorKind, Span),
    /// Who holds which role is told as it was when this began, as by a cache that lags.
    RolesStale(Span),
    /// Keystone lets the controller's user give no role.
    RolesUngiven(Span),
    /// A health check of another controller deletes instances whose node was silent for five minutes.
    HealthCheck(Span),
    /// A person reboots a machine.
    Rebooted(InstanceId),
    /// An operator puts it into a rescue for so long, repairs what is wrong inside it, and lets it boot.
    Rescued(InstanceId, Span),
    /// Everything about a machine that is free text is as bad as text can be.
    Poisoned(InstanceId),
    /// The host of a machine breaks: it runs again on another host only.
    HostImpaired(InstanceId),
    /// A machine's own system hangs altogether, until it is booted again.
    GuestImpaired(InstanceId),
    /// The provider's check of the host of a machine fails, and nothing is wrong with it.
    CheckWrong(InstanceId, Span),
    /// The provider wants a machine back that it sold until then.
    SpotTaken(InstanceId),
    /// The provider announces that it stops a machine, and does so after this long.
    Retires(InstanceId, Span),
    /// The group that keeps a machine finds it unfit and replaces it.
    GroupReplaces(InstanceId),
    /// A user takes a machine out of its group's service for a while.
    PutApart(InstanceId, Span),
    /// A person takes a machine in hand in a way that its cloud and its Node show little of.
    ByHand(InstanceId, Hand),
    /// Parts of the cloud do not know an instance, and its cloud controller deletes a Node of it that is not Ready.
    NotKnown(InstanceId, Span),
    /// The pool's owner starts one machine more, of which the same is so a while after it was made.
    LaunchUnknown {
        /// In which pool.
        pool: PoolName,
        /// So long after it was made.
        after: Span,
        /// For how long.
        lasts: Span,
        /// What is wrong inside it, if anything.
        trouble: Option<Trouble>,
    },
    /// The next call goes wrong.
    Call(CallLie),
}

/// What a policy can forbid (nova: `nova/policies`, a rule for each action).
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Right {
    /// Every change.
    Every,
    /// `os_compute_api:servers:reboot`.
    Reboot,
}

/// What of another machine a kubelet shows.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Shows {
    /// Its system UUID, beside the kubelet's own addresses.
    Uuid,
    /// Its addresses in place of the kubelet's own.
    Addresses,
    /// Both.
    Both,
}

/// Which changes are not taken, and how they are answered.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Refusal {
    /// The cloud's: 503, as from a gateway in maintenance or a database that is read only.
    Unavailable,
    /// The deletion of a Node: 422 from an admission policy.
    NodesKept,
}

/// How a call goes wrong.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum CallLie {
    /// Accepted, and nothing happens.
    Ignored,
    /// The call takes effect, and no answer arrives.
    Unanswered,
    /// It does not happen, and may later.
    Fails {
        /// Not before this long, when the other side says so.
        retry_after: Option<Span>,
    },
    /// A nudge that puts its rule and dies before it takes it back; any other call goes right.
    Cut,
    /// The call does nothing, and its outcome cannot be known.
    TimesOut,
    /// It takes effect and is answered as failed.
    FailsAndWorks,
    /// It takes effect after so long, and is answered then.
    Late(Span),
    /// It takes effect twice, the second time half a minute later.
    Twice,
    /// It takes effect after the next call.
    Overtaken,
    /// An operator takes the pool's mark off the instance just before the call arrives; a call on anything else goes right.
    Unmarked,
    /// An operator puts the instance into a rescue just before the call arrives; a call on anything else goes right.
    Rescued,
}

impl CallLie {
    /// The name in scenarios and logs.
    const fn name(&self) -> &'static str {
        match self {
            Self::Ignored => "call-ignored",
            Self::Unanswered => "call-unanswered",
            Self::Fails { .. } => "call-fails",
            Self::Cut => "nudge-cut",
            Self::TimesOut => "call-times-out",
            Self::FailsAndWorks => "call-fails-and-works",
            Self::Late(_) => "call-late",
            Self::Twice => "call-twice",
            Self::Overtaken => "call-overtaken",
            Self::Unmarked => "unmarked-before-call",
            Self::Rescued => "rescued-before-call",
        }
    }
}

const fn roles_untold(kind: ReadErrorKind) -> &'static str {
    match kind {
        ReadErrorKind::Forbidden => "roles-untold",
        _ => "roles-fail",
    }
}

impl Fault {
    /// The name in scenarios and logs.
    pub const fn name(&self) -> &'static str {
        match self {
            Self::GroupLost { slips, .. } => ["group-lost", "group-slips"][*slips as usize],
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
            Self::VipsAway(_) => "vips-away",
            Self::RouteBroken(_) => "route-broken",
            Self::Launch { .. } => "launch",
            Self::Tried { .. } => "tried",
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
            Self::Marked(_) => "marked",
            Self::MarkedTwice(..) => "marked-twice",
            Self::Cordoned(_) => "cordoned",
            Self::Uncordoned(_) => "uncordoned",
            Self::ShowsIdentity { .. } => "identity-shown",
            Self::Drained(..) => "drained",
            Self::Remade(..) => "remade",
            Self::MarksAway(..) => "marks-away",
            Self::SaidStopped(..) => "said-stopped",
            Self::ServersUnlisted { .. } => "servers-unlisted",
            Self::AnotherProject(_) => "another-project",
            Self::SomeUnlisted { .. } => "some-unlisted",
            Self::PortsUnlisted(_) => "ports-unlisted",
            Self::CloudFails(..) => "cloud-fails",
            Self::NodesUnlisted(_) => "nodes-unlisted",
            Self::EtcdRestored(_) => "etcd-restored",
            Self::OtherCluster(_) => "other-cluster",
            Self::ApiSilent(_) => "api-silent",
            Self::LeasesFrozen(_) => "leases-frozen",
            Self::LeasesUnlisted(_) => "leases-unlisted",
            Self::ZoneDark(..) => "zone-dark",
            Self::Call(lie) => lie.name(),
            Self::AnswersLate(_) => "answers-late",
            Self::AnswersTwice(_) => "answers-twice",
            Self::PagesRepeat(_) => "pages-repeat",
            Self::WatchLags(_) => "watch-lags",
            Self::WatchGap(_) => "watch-gap",
            Self::NodeListStale(_) => "node-list-stale",
            Self::ApiDenied(_) => "api-denied",
            Self::NodeClock(..) => "node-clock",
            Self::ApiClock(..) => "api-clock",
            Self::NodePaused(..) => "node-paused",
            Self::FleetDark(_) => "fleet-dark",
            Self::ManySilent { .. } => "many-silent",
            Self::RightsLost(right, _) => ["rights-lost", "reboots-denied"][*right as usize],
            Self::WritesRefused(..) => "writes-refused",
            Self::RoleLost(..) => "role-lost",
            Self::RoleGiven(..) => "role-given",
            Self::RolesUntold(kind, _) => roles_untold(*kind),
            Self::RolesStale(_) => "roles-stale",
            Self::RolesUngiven(_) => "roles-ungiven",
            Self::HealthCheck(_) => "health-check",
            Self::Rebooted(_) => "rebooted",
            Self::Rescued(..) => "rescued",
            Self::Poisoned(_) => "poisoned",
            Self::HostImpaired(_) => "host-impaired",
            Self::GuestImpaired(_) => "guest-impaired",
            Self::CheckWrong(..) => "check-wrong",
            Self::SpotTaken(_) => "spot-taken",
            Self::Retires(..) => "retires",
            Self::GroupReplaces(_) => "group-replaces",
            Self::PutApart(..) => "put-apart",
            Self::NotKnown(..) => "not-known",
            Self::ByHand(_, hand) => hand.name(),
            Self::LaunchUnknown { .. } => "launch-unknown",
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
            | Self::Marked(machine)
            | Self::MarkedTwice(machine, _)
            | Self::Cordoned(machine)
            | Self::Uncordoned(machine)
            | Self::ShowsIdentity { liar: machine, .. }
            | Self::Drained(machine, _)
            | Self::Remade(machine, _)
            | Self::MarksAway(machine, _)
            | Self::SaidStopped(machine, _)
            | Self::NodeClock(machine, _)
            | Self::NodePaused(machine, _)
            | Self::Rebooted(machine)
            | Self::Rescued(machine, _)
            | Self::Poisoned(machine)
            | Self::HostImpaired(machine)
            | Self::GuestImpaired(machine)
            | Self::CheckWrong(machine, _)
            | Self::SpotTaken(machine)
            | Self::Retires(machine, _)
            | Self::GroupReplaces(machine)
            | Self::PutApart(machine, _)
            | Self::ByHand(machine, _)
            | Self::NotKnown(machine, _) => Some(machine),
            _ => None,
        }
    }

    /// How long it lasts, when it ends by itself.
    pub const fn lasts(&self) -> Option<Span> {
        match self {
            Self::ControllerDown(lasts)
            | Self::ServersUnlisted { lasts, .. }
            | Self::SomeUnlisted { lasts, .. }
            | Self::ShowsIdentity { lasts, .. }
            | Self::AnotherProject(lasts)
            | Self::PortsUnlisted(lasts)
            | Self::VipsAway(lasts)
            | Self::SaidStopped(_, lasts)
            | Self::Drained(_, lasts)
            | Self::Rescued(_, lasts)
            | Self::Remade(_, lasts)
            | Self::MarksAway(_, lasts)
            | Self::CloudFails(_, lasts)
            | Self::NodesUnlisted(lasts)
            | Self::OtherCluster(lasts)
            | Self::ApiSilent(lasts)
            | Self::LeasesFrozen(lasts)
            | Self::LeasesUnlisted(lasts)
            | Self::ZoneDark(_, lasts)
            | Self::AnswersLate(lasts)
            | Self::AnswersTwice(lasts)
            | Self::PagesRepeat(lasts)
            | Self::WatchLags(lasts)
            | Self::WatchGap(lasts)
            | Self::NodeListStale(lasts)
            | Self::ApiDenied(lasts)
            | Self::ApiClock(_, lasts)
            | Self::NodePaused(_, lasts)
            | Self::CheckWrong(_, lasts)
            | Self::PutApart(_, lasts)
            | Self::FleetDark(lasts)
            | Self::ManySilent { lasts, .. }
            | Self::RightsLost(_, lasts)
            | Self::WritesRefused(_, lasts)
            | Self::RolesUntold(_, lasts)
            | Self::RolesStale(lasts)
            | Self::RolesUngiven(lasts)
            | Self::HealthCheck(lasts) => Some(*lasts),
            Self::ByHand(_, hand) => hand.lasts(),
            _ => None,
        }
    }
}
