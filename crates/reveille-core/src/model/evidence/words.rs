//! Sources and facts as text: the only place that has their words.
//!
//! Every sentence is a clause without a full stop, and is cut to [`Evidence::TEXT_BYTES_MAX`] as a whole, whatever its parts
//! are. Nothing is decided by what stands here; the identifiers stay as their services write them.

use std::fmt::{self, Display, Formatter};

use super::{Evidence, Fact, GuestFact, MachineFact, NetworkFact, NodeFact, Source};
use crate::model::access::RoleRef;
use crate::model::agent::{ApiSaid, KubeletSaid};
use crate::model::guest::{BootProgress, ConfigDrive};
use crate::model::network::Obstacle;
use crate::model::node::Provider;
use crate::model::roster::GroupRef;

fn list<T: Display>(items: impl IntoIterator<Item = T>, between: &str) -> String {
    items.into_iter().map(|item| item.to_string()).collect::<Vec<_>>().join(between)
}

impl Display for GroupRef {
    fn fmt(&self, f: &mut Formatter<'_>) -> fmt::Result {
        match self {
            Self::Id(id) => write!(f, "{id}"),
            Self::Name(name) => write!(f, "group \"{name}\""),
        }
    }
}

impl Display for Source {
    fn fmt(&self, f: &mut Formatter<'_>) -> fmt::Result {
        match self {
            Self::Instance => f.write_str("instance"),
            Self::Marks => f.write_str("marks"),
            Self::OwnNode => f.write_str("node"),
            Self::Node(name) => write!(f, "node {name}"),
            Self::Nodes => f.write_str("nodes"),
            Self::Port(id) => write!(f, "port {id}"),
            Self::Group(group) => write!(f, "{group}"),
            Self::GroupOfPool(name, pool) => write!(f, "group \"{name}\" of pool {pool}"),
            Self::Router(id) => write!(f, "router {id}"),
            Self::User(user) => write!(f, "user {user}"),
            Self::Console => f.write_str("console"),
            Self::ActionLog => f.write_str("action log"),
            Self::Agent => f.write_str("agent"),
            Self::Provider => f.write_str("provider"),
            Self::StatusChecks => f.write_str("status checks"),
            Self::Disks => f.write_str("disks"),
            Self::ScalingGroup => f.write_str("scaling group"),
            Self::Cluster => f.write_str("cluster"),
            Self::Cloud => f.write_str("cloud"),
            Self::Ledger => f.write_str("ledger"),
            Self::Lease => f.write_str("lease"),
            Self::Taint => f.write_str("taint"),
            Self::Event(reason) => write!(f, "event {reason}"),
            Self::Events => f.write_str("events"),
            Self::CertificateRequests => f.write_str("certificate requests"),
            Self::Named(name) => f.write_str(name),
        }
    }
}

impl Display for Fact {
    fn fmt(&self, f: &mut Formatter<'_>) -> fmt::Result {
        let text = match self {
            Self::Quoted(text) => text.to_string(),
            Self::Unread(why) => format!("could not tell: {why}"),
            Self::Machine(fact) => fact.to_string(),
            Self::Cluster(fact) => fact.to_string(),
            Self::Net(fact) => fact.to_string(),
            Self::Guest(fact) => fact.to_string(),
            Self::NoUser(user) => format!("the cloud knows no user {user}"),
            Self::RolesMissing { missing, unknown, project, held } => {
                let held = if held.is_empty() { "nothing".to_owned() } else { held.join(", ") };
                let missing = list(missing, ", ");
                format!("lacks {missing} on project {project}; it holds {held}{}", unknown_roles(unknown))
            }
        };
        f.write_str(&text[..text.floor_char_boundary(Evidence::TEXT_BYTES_MAX)])
    }
}

fn unknown_roles(unknown: &[RoleRef]) -> String {
    if unknown.is_empty() {
        String::new()
    } else {
        format!("; the cloud has no role {}", list(unknown, ", "))
    }
}

impl Display for MachineFact {
    fn fmt(&self, f: &mut Formatter<'_>) -> fmt::Result {
        let none = "none";
        match self {
            Self::Denied(times) => write!(f, "asked for by id {times} times: no such instance"),
            Self::DeniedYoung { denied_for, age } => write!(
                f,
                "its cloud has not known it for {denied_for}; it came into sight {age} ago, and so young a denial is not believed"
            ),
            Self::Ended(why) => write!(f, "the provider says: {why}"),
            Self::Marks(marks) => f.write_str(&list(marks, ", ")),
            Self::Deleting(task, since) => {
                write!(f, "task_state {} for {since}", task.as_deref().unwrap_or(none))
            }
            Self::Building(task, since) => {
                write!(f, "building for {since}, task_state {}", task.as_deref().unwrap_or(none))
            }
            Self::Errored(Some(fault)) => write!(f, "fault {}: {}", fault.code, fault.message),
            Self::Errored(None) => f.write_str("status ERROR, and the cloud gives no fault"),
            Self::ShutOff(since) => write!(f, "shut off for {since}"),
            Self::NodeLeft { sign, ago } => {
                write!(f, "its node left on purpose ({sign}) {ago} ago, and the instance is still there")
            }
            Self::ChecksFailed { checks, ready } => {
                let ready = if *ready { "; its node is Ready" } else { "" };
                write!(f, "the provider's checks failed: {}{ready}", list(checks.impaired(), ", "))
            }
            Self::Announced(notice) => write!(f, "{notice}"),
            Self::Kept(group) => write!(f, "{group}"),
            Self::LosesDisks => {
                f.write_str("its instance store is lost when it stops, and when it is replaced")
            }
            Self::NoIdentity => f.write_str("it has no identity towards its cloud (no instance role)"),
            Self::NoPort => f.write_str("it has no network port"),
            Self::ConfigDrive { attached, found } => f.write_str(match (attached, found) {
                (true, ConfigDrive::Absent) => {
                    "a config drive is attached, and the guest did not find it: look at the image"
                }
                (true, ConfigDrive::Present) => {
                    "a config drive is attached and was found: the first boot asked the network for more"
                }
                (true, ConfigDrive::Unknown) => "a config drive is attached",
                (false, _) => "no config drive is attached: the first boot needs the network",
            }),
            Self::NodesUnseen => {
                f.write_str("the nodes went unseen since it was made: it may have joined then")
            }
            Self::OlderThanWatch => f.write_str("it is older than our watch: it may have joined before"),
        }
    }
}

impl Display for NodeFact {
    fn fmt(&self, f: &mut Formatter<'_>) -> fmt::Result {
        match self {
            Self::None => f.write_str("no node has its provider ID, UUID, name or address"),
            Self::Ready => f.write_str("its node is Ready"),
            Self::ReadyUnreported => f.write_str("Ready was never reported"),
            Self::Condition(is, condition) => {
                write!(f, "{} is {is:?}: {}: {}", condition.kind, condition.reason, condition.message)
            }
            Self::Uninitialized => f.write_str(
                "node.cloudprovider.kubernetes.io/uninitialized: the cloud controller has not initialised it",
            ),
            Self::LeaseRenewed => f.write_str("its lease was renewed lately: its kubelet lives"),
            Self::LeaseOutlives => f.write_str("its lease is still renewed: its kubelet lives"),
            Self::StartupTaint(taint, since) => write!(f, "carries the startup taint {taint}, for {since}"),
            Self::Leaving(sign, since) => {
                write!(f, "carries the sign {sign}, for {since}, is not Ready, and is still there")
            }
            Self::Gone { node, events_doubted } => {
                let doubt = "; the controller did not watch when it went, so the events may be about an earlier node of that name";
                write!(
                    f,
                    "node {node} was there once and is gone{}",
                    if *events_doubted { doubt } else { "" }
                )
            }
            Self::Event { message, reporter } => write!(f, "{message} (by {reporter})"),
            Self::SameInstance(nodes) => write!(f, "{} name this instance", list(nodes, " and ")),
            Self::StandIn(node) => {
                write!(f, "node {node} names this instance, too, and has not been Ready")
            }
            Self::OthersUuid { node, ready, instance } => {
                let is = if *ready { "is Ready with" } else { "has" };
                write!(f, "node {node} {is} the system UUID of {instance}")
            }
            Self::Shared { node, ready, by, stands_for, provider } => {
                let is = if *ready { "is Ready" } else { "exists" };
                write!(f, "node {node} {is} with {by}, and ")?;
                match (stands_for, provider) {
                    (Some(instance), _) => write!(f, "stands for {instance}"),
                    (None, Provider::Instance(id)) => write!(f, "names instance {id}, which is not listed"),
                    (None, Provider::Unread(text)) => write!(f, "has the providerID {text}"),
                    (None, Provider::Unset) => f.write_str("has no providerID"),
                }
            }
            Self::NamesUnmarked(instance) => write!(
                f,
                "its provider ID names {instance}, which is there and carries no mark of the roster"
            ),
            Self::NamesDenied(instance, times) => {
                write!(f, "its provider ID names {instance}, which was denied by id {times} times")
            }
        }
    }
}

impl Display for NetworkFact {
    fn fmt(&self, f: &mut Formatter<'_>) -> fmt::Result {
        let because = |why: &Option<Obstacle>| why.map_or_else(String::new, |why| format!("; {why}"));
        match self {
            Self::GroupsMissing { missing, carried, obstacle } => {
                let missing = list(missing, ", ");
                write!(f, "lacks {missing}; carries {carried} group(s){}", because(obstacle))
            }
            Self::Groups { carried, missing, obstacle } => {
                let (carried, missing) = (list(carried, ", "), list(missing, ", "));
                write!(f, "security_groups: [{carried}], lacks {missing}{}", because(obstacle))
            }
            Self::PortDown(addresses) => {
                write!(f, "status DOWN while the instance is ACTIVE; addresses {}", list(addresses, ", "))
            }
            Self::PairsMissing(ranges) => write!(f, "does not allow {}", list(ranges, ", ")),
            Self::GroupsOfThatName(count) => write!(f, "{count} groups are called so in the project"),
            Self::RuleMissing(rule) => write!(f, "no rule allows {rule}"),
            Self::NudgeRule { rule, mark } => {
                write!(f, "rule {rule} \"{mark}\" was put for a nudge and not taken back")
            }
            Self::NudgeRoute(route) => write!(f, "{route}: put for a nudge and not taken back"),
            Self::RoutesMissing(routes) => write!(f, "holds no {}", list(routes, ", ")),
            Self::DeadHop(route) => write!(f, "{route}: no port and no node has that address"),
            Self::HopsAlive(routes) => write!(f, "{}: more than one next hop is alive", list(routes, ", ")),
            Self::RouterFull { used, limit, foreign, needed } => write!(
                f,
                "holds {used} of {limit} routes, {foreign} of them not of this cluster; {needed} more are needed now, and one for the next node"
            ),
        }
    }
}

impl Display for GuestFact {
    fn fmt(&self, f: &mut Formatter<'_>) -> fmt::Result {
        match self {
            Self::ConsoleUnread => f.write_str("not read yet: read the console log"),
            Self::NoConsole(why) => {
                write!(f, "there is no console log ({why}): collect the kubelet's journal on the machine")
            }
            Self::Boot(progress) => f.write_str(next(*progress)),
            Self::Answered => f.write_str("the metadata service or the API server answered: packets pass"),
            Self::Addressed => f.write_str("it got an address: packets pass"),
            Self::HeardOf => f.write_str("the cluster has heard of it: packets pass"),
            Self::NeedsNoNetwork => f.write_str("what failed there was answered, or needs no network"),
            Self::NoLease(line) => write!(
                f,
                "DHCP failed as well (\"{line}\"); Neutron's own firewalls let DHCP pass without any group"
            ),
            Self::Agent { kubelet, api, stage, error, work, blocker } => {
                let stage = stage.map(|stage| match error {
                    Some(error) => format!("at stage {stage}: {error}"),
                    None => format!("at stage {stage}"),
                });
                let work = work.as_ref().map(|what| format!("it brings its node back by {what}"));
                let blocker = blocker.as_ref().map(|why| format!("it leaves its join alone: {why}"));
                let of_node = [of_kubelet(*kubelet), of_api(*api)].into_iter().flatten().map(str::to_owned);
                f.write_str(&list(of_node.chain(stage).chain(work).chain(blocker), "; "))
            }
            Self::AgentSilent => f.write_str("it has not been heard since"),
        }
    }
}

const fn of_kubelet(kubelet: KubeletSaid) -> Option<&'static str> {
    match kubelet {
        KubeletSaid::Runs => Some("its kubelet runs"),
        KubeletSaid::Stopped => Some("its kubelet does not run"),
        KubeletSaid::CannotTell => None,
    }
}

const fn of_api(api: ApiSaid) -> Option<&'static str> {
    match api {
        ApiSaid::Answers => Some("the API server answers it"),
        ApiSaid::LostByAll => Some("neither it nor its peers reach the API server"),
        ApiSaid::LostHere => Some("its peers reach the API server, and it does not"),
        ApiSaid::Lost => Some("it does not reach the API server"),
        ApiSaid::CannotTell => None,
    }
}

/// Where a boot stopped, and what to read next.
const fn next(boot: BootProgress) -> &'static str {
    match boot {
        BootProgress::Nothing => {
            "the console shows no kernel: see whether the image boots at all and writes to the serial console"
        }
        BootProgress::Kernel => "the boot goes no further than the kernel: read the console again later",
        BootProgress::FirstBoot => "the first boot is not through: read its tool's journal on the machine",
        BootProgress::Userland => "it boots and no program starts a kubelet: read the first boot's journal",
        BootProgress::Kubelet => "the kubelet was started: read its journal",
        BootProgress::Joined => "the console says that it joined: look for its Node under another name",
    }
}
