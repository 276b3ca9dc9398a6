//! A change to the outside: one closed list.
//!
//! A call carries what it needs to be refused when the world has moved on: revisions, uids, marks. What the other side answered
//! is an [`Outcome`](super::outcome::Outcome). Who may make it and when is the engine's business ([`crate::effect`]).

use std::fmt;
use std::net::IpAddr;
use std::sync::Arc;

use ipnet::IpNet;

use serde::{Deserialize, Serialize};

use super::access::Role;
use super::agent::Ask;
use super::id::{
    AgentId, CloudName, GroupId, InstanceId, NodeName, NodeUid, PortId, ProjectId, RouterId, RuleId, UserId,
};
use super::instance::InstanceState;
use super::network::{Route, RuleSpec};
use super::roster::Ownership;

/// A change to the outside.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(tag = "do", rename_all = "kebab-case", rename_all_fields = "camelCase", deny_unknown_fields)]
pub enum Call {
    /// Put these rules into the group, one by one; one that exists already counts as put.
    AddRules {
        /// Where.
        cloud: CloudName,
        /// Which group.
        group: GroupId,
        /// What is missing, and nothing else.
        rules: Vec<RuleSpec>,
    },
    /// Take one rule out of the group.
    DropRule {
        /// Where.
        cloud: CloudName,
        /// Which group.
        group: GroupId,
        /// Which rule.
        rule: RuleId,
    },
    /// Put a harmless rule and take it back at once, so that the data plane reads the group again.
    NudgeGroup {
        /// Where.
        cloud: CloudName,
        /// Which group.
        group: GroupId,
        /// Description of the rule; begins with `NUDGE_MARK`, ends with the intent's number.
        mark: Arc<str>,
    },
    /// Replace the port's groups, if it is still at this revision.
    SetPortGroups {
        /// Where.
        cloud: CloudName,
        /// Which port.
        port: PortId,
        /// The whole new list.
        groups: Vec<GroupId>,
        /// The revision that the list was derived from.
        if_revision: u64,
        /// Whose port it is. An operator who cuts a machine off takes its marks and its groups away together.
        instance: InstanceId,
        /// The marks that the instance must carry at that moment.
        owned: Ownership,
    },
    /// Replace the port's allowed address pairs, if it is still at this revision. Existing pairs keep their MAC.
    AddPortPairs {
        /// Where.
        cloud: CloudName,
        /// Which port.
        port: PortId,
        /// The pairs to add to what is there.
        pairs: Vec<IpNet>,
        /// The revision that was read.
        if_revision: u64,
        /// Whose port it is.
        instance: InstanceId,
        /// The marks that the instance must carry at that moment.
        owned: Ownership,
    },
    /// Take exactly these routes out, all or none, leaving all others alone.
    RemoveRoutes {
        /// Where.
        cloud: CloudName,
        /// Which router.
        router: RouterId,
        /// Exact pairs of destination and next hop.
        routes: Vec<Route>,
        /// Next hops on whose absence this rests: a performer looks for them directly before, and answers `Moved` when one of
        /// them is in use.
        #[serde(default, skip_serializing_if = "Vec::is_empty")]
        unless_used: Vec<IpAddr>,
    },
    /// Put exactly these routes in, all or none.
    AddRoutes {
        /// Where.
        cloud: CloudName,
        /// Which router.
        router: RouterId,
        /// Exact pairs.
        routes: Vec<Route>,
    },
    /// Put a harmless route and take it back at once, so that the device writes its whole table again.
    NudgeRouter {
        /// Where.
        cloud: CloudName,
        /// Which router.
        router: RouterId,
        /// A route to a documentation range through an address that the router accepts.
        route: Route,
    },
    /// Let the user hold these roles on the project; one that it holds already counts as given.
    AssignRoles {
        /// Where.
        cloud: CloudName,
        /// On this project: a performer that is in another one refuses.
        project: ProjectId,
        /// Who.
        user: UserId,
        /// What is missing, and nothing else.
        roles: Vec<Role>,
    },
    /// Ask the agent on a machine to bring its node back. It looks for itself before it does anything, and may answer no:
    /// then the outcome is `Refused`, in its words. The same intent asked twice is one ask.
    AskAgent {
        /// Where the machine is.
        cloud: CloudName,
        /// Which machine: an agent that is on another one refuses.
        instance: InstanceId,
        /// Which agent.
        agent: AgentId,
        /// What for.
        ask: Ask,
        /// The name under which its node is looked for afterwards.
        node: NodeName,
    },
    /// Reboot the instance.
    Reboot {
        /// Where.
        cloud: CloudName,
        /// Which one.
        instance: InstanceId,
        /// True: power cycle. False: ask the guest.
        hard: bool,
        /// The marks on which this rests: a performer reads the instance directly before the act, and answers `Moved` when
        /// one of them is not on it any more.
        owned: Ownership,
    },
    /// Start a stopped instance.
    Start {
        /// Where.
        cloud: CloudName,
        /// Which one.
        instance: InstanceId,
        /// See [`Call::Reboot`].
        owned: Ownership,
    },
    /// Delete the instance. Its successor is the pool's owner's business.
    DeleteInstance {
        /// Where.
        cloud: CloudName,
        /// Which one.
        instance: InstanceId,
        /// See [`Call::Reboot`].
        owned: Ownership,
        /// The state in which its cloud showed it when this was decided: in another one, or with a task, somebody has it in hand.
        /// None in records of earlier versions.
        #[serde(rename = "restsOn", skip_serializing_if = "Option::is_none")]
        rests_on: Option<InstanceState>,
    },
    /// Delete the Node object, if it still has this uid.
    DeleteNode {
        /// Its name.
        name: NodeName,
        /// Its uid.
        uid: NodeUid,
        /// The boot that its kubelet told of, as it was decided upon. With another one a machine has taken the object over, uid
        /// and all, and serves as it.
        #[serde(rename = "bootId", skip_serializing_if = "Option::is_none")]
        boot_id: Option<Arc<str>>,
    },
}

impl Call {
    /// True when a mistake would cost somebody a running machine or its Node.
    pub const fn is_destructive(&self) -> bool {
        matches!(self, Self::Reboot { .. } | Self::DeleteInstance { .. } | Self::DeleteNode { .. })
    }

    /// True when two controllers that both do it do no harm: it adds what is missing, tells a data plane to read again, or
    /// asks an agent, which decides for itself.
    pub const fn is_harmless_twice(&self) -> bool {
        match self {
            Self::SetPortGroups { .. }
            | Self::AddRules { .. }
            | Self::NudgeGroup { .. }
            | Self::NudgeRouter { .. }
            | Self::AddRoutes { .. }
            | Self::AddPortPairs { .. }
            | Self::AskAgent { .. } => true,
            Self::RemoveRoutes { .. }
            | Self::DropRule { .. }
            | Self::AssignRoles { .. }
            | Self::Reboot { .. }
            | Self::Start { .. }
            | Self::DeleteInstance { .. }
            | Self::DeleteNode { .. } => false,
        }
    }

    /// The same change of the same thing, whatever it rests on: a revision, a mark or a state may have moved on between two
    /// tries.
    pub fn is_same_change(&self, other: &Self) -> bool {
        self.cloud() == other.cloud() && self.change() == other.change()
    }

    fn change(&self) -> Change<'_> {
        match self {
            Self::AddRules { group, rules, .. } => Change::AddRules(group, rules),
            Self::DropRule { group, rule, .. } => Change::DropRule(group, rule),
            Self::NudgeGroup { group, .. } => Change::NudgeGroup(group),
            Self::SetPortGroups { port, groups, .. } => Change::SetPortGroups(port, groups),
            Self::AddPortPairs { port, pairs, .. } => Change::AddPortPairs(port, pairs),
            Self::RemoveRoutes { router, routes, .. } => Change::RemoveRoutes(router, routes),
            Self::AddRoutes { router, routes, .. } => Change::AddRoutes(router, routes),
            Self::NudgeRouter { router, route, .. } => Change::NudgeRouter(router, route),
            Self::AssignRoles { project, user, roles, .. } => Change::AssignRoles(project, user, roles),
            Self::AskAgent { instance, ask, .. } => Change::AskAgent(instance, *ask),
            Self::Reboot { instance, hard, .. } => Change::Reboot(instance, *hard),
            Self::Start { instance, .. } => Change::Start(instance),
            Self::DeleteInstance { instance, .. } => Change::DeleteInstance(instance),
            Self::DeleteNode { name, .. } => Change::DeleteNode(name),
        }
    }

    /// The cloud that it changes; none where it is put to the cluster or to an agent.
    pub const fn cloud(&self) -> Option<&CloudName> {
        match self {
            Self::AddRules { cloud, .. }
            | Self::DropRule { cloud, .. }
            | Self::NudgeGroup { cloud, .. }
            | Self::SetPortGroups { cloud, .. }
            | Self::AddPortPairs { cloud, .. }
            | Self::RemoveRoutes { cloud, .. }
            | Self::AddRoutes { cloud, .. }
            | Self::NudgeRouter { cloud, .. }
            | Self::AssignRoles { cloud, .. }
            | Self::Reboot { cloud, .. }
            | Self::Start { cloud, .. }
            | Self::DeleteInstance { cloud, .. } => Some(cloud),
            Self::DeleteNode { .. } | Self::AskAgent { .. } => None,
        }
    }

    /// The instance that the call changes, or whose port it changes, and the marks that it must carry at the moment of the act.
    pub const fn owned(&self) -> Option<(&CloudName, &InstanceId, &Ownership)> {
        match self {
            Self::SetPortGroups { cloud, instance, owned, .. }
            | Self::AddPortPairs { cloud, instance, owned, .. }
            | Self::Reboot { cloud, instance, owned, .. }
            | Self::Start { cloud, instance, owned }
            | Self::DeleteInstance { cloud, instance, owned, .. } => Some((cloud, instance, owned)),
            Self::AddRules { .. }
            | Self::DropRule { .. }
            | Self::NudgeGroup { .. }
            | Self::RemoveRoutes { .. }
            | Self::AddRoutes { .. }
            | Self::NudgeRouter { .. }
            | Self::AssignRoles { .. }
            | Self::AskAgent { .. }
            | Self::DeleteNode { .. } => None,
        }
    }
}

impl fmt::Display for Call {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::AddRules { group, rules, .. } => {
                write!(f, "add {} rule(s) to group {group}:", rules.len())?;
                for rule in rules {
                    write!(f, " [{rule}]")?;
                }
                Ok(())
            }
            Self::DropRule { group, rule, .. } => write!(f, "remove rule {rule} from group {group}"),
            Self::NudgeGroup { group, .. } => write!(f, "put and take back a harmless rule in group {group}"),
            Self::SetPortGroups { port, groups, .. } => {
                write!(f, "set the groups of port {port} to")?;
                for group in groups {
                    write!(f, " {group}")?;
                }
                Ok(())
            }
            Self::AddPortPairs { port, pairs, .. } => {
                write!(f, "allow on port {port}:")?;
                for pair in pairs {
                    write!(f, " {pair}")?;
                }
                Ok(())
            }
            Self::RemoveRoutes { router, routes, .. } => {
                write!(f, "remove from router {router}:")?;
                for route in routes {
                    write!(f, " [{route}]")?;
                }
                Ok(())
            }
            Self::AddRoutes { router, routes, .. } => {
                write!(f, "add to router {router}:")?;
                for route in routes {
                    write!(f, " [{route}]")?;
                }
                Ok(())
            }
            Self::NudgeRouter { router, route, .. } => {
                write!(f, "put and take back a harmless route on router {router} ({route})")
            }
            Self::AssignRoles { project, user, roles, .. } => {
                let names: Vec<&str> = roles.iter().map(|role| &*role.name).collect();
                write!(f, "give user {user} on project {project}: {}", names.join(", "))
            }
            Self::AskAgent { instance, ask, .. } => {
                write!(f, "ask the agent of instance {instance} to {}", ask.says())
            }
            Self::Reboot { instance, hard: true, .. } => write!(f, "power-cycle instance {instance}"),
            Self::Reboot { instance, hard: false, .. } => write!(f, "reboot instance {instance}"),
            Self::Start { instance, .. } => write!(f, "start instance {instance}"),
            Self::DeleteInstance { instance, .. } => write!(f, "delete instance {instance}"),
            Self::DeleteNode { name, .. } => write!(f, "delete the Node object {name}"),
        }
    }
}

/// What a call changes, without what it rests on at one moment.
#[derive(PartialEq)]
enum Change<'a> {
    AddRules(&'a GroupId, &'a [RuleSpec]),
    DropRule(&'a GroupId, &'a RuleId),
    NudgeGroup(&'a GroupId),
    SetPortGroups(&'a PortId, &'a [GroupId]),
    AddPortPairs(&'a PortId, &'a [IpNet]),
    RemoveRoutes(&'a RouterId, &'a [Route]),
    AddRoutes(&'a RouterId, &'a [Route]),
    NudgeRouter(&'a RouterId, &'a Route),
    AssignRoles(&'a ProjectId, &'a UserId, &'a [Role]),
    AskAgent(&'a InstanceId, Ask),
    Reboot(&'a InstanceId, bool),
    Start(&'a InstanceId),
    DeleteInstance(&'a InstanceId),
    DeleteNode(&'a NodeName),
}
