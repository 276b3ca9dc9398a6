//! Calls: what the engine may ask of the outside that changes it. One closed list, as data.
//!
//! Ledger, attempts and adapters hold these. Each carries what it needs to be refused when the world has moved on. When a call is
//! made, what blocks it and how its effect is seen, the file of its repair says (`remedies`); what is so of every call,
//! `remedies::list` does.

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

/// A change to the outside: one closed list. A call carries what it needs to be refused when the world has moved on: revisions,
/// uids, marks. What the other side answered is an [`Outcome`](super::outcome::Outcome).
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(tag = "do", rename_all = "kebab-case")]
pub enum Call {
    /// Put missing rules into a security group.
    AddRules(AddRules),
    /// Take a test rule out of a security group.
    DropRule(DropRule),
    /// Put a harmless rule and take it back at once, so that the data plane reads the group again.
    NudgeGroup(NudgeGroup),
    /// Put missing security groups on a port.
    SetPortGroups(SetPortGroups),
    /// Allow a pod range on a port.
    AddPortPairs(AddPortPairs),
    /// Take routes out of a router.
    RemoveRoutes(RemoveRoutes),
    /// Put routes into a router.
    AddRoutes(AddRoutes),
    /// Put a harmless route and take it back at once, so that the device writes its whole table again.
    NudgeRouter(NudgeRouter),
    /// Assign roles to a service user.
    AssignRoles(AssignRoles),
    /// Ask the agent on a machine to bring its Node back.
    AskAgent(AskAgent),
    /// Reboot an instance.
    Reboot(Reboot),
    /// Start a stopped instance.
    Start(StartInstance),
    /// Delete an instance.
    DeleteInstance(DeleteInstance),
    /// Delete a Node object.
    DeleteNode(DeleteNode),
}

/// Put these rules into the group, one by one; one that exists already counts as put.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase", deny_unknown_fields)]
pub struct AddRules {
    /// Where.
    pub cloud: CloudName,
    /// Which group.
    pub group: GroupId,
    /// What is missing, and nothing else.
    pub rules: Vec<RuleSpec>,
}

/// Take one rule out of the group.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase", deny_unknown_fields)]
pub struct DropRule {
    /// Where.
    pub cloud: CloudName,
    /// Which group.
    pub group: GroupId,
    /// Which rule.
    pub rule: RuleId,
}

/// Put a harmless rule and take it back at once.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase", deny_unknown_fields)]
pub struct NudgeGroup {
    /// Where.
    pub cloud: CloudName,
    /// Which group.
    pub group: GroupId,
    /// Description of the rule; begins with `NUDGE_MARK`, ends with the intent's number.
    pub mark: Arc<str>,
}

/// Replace the port's groups, if it is still at this revision.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase", deny_unknown_fields)]
pub struct SetPortGroups {
    /// Where.
    pub cloud: CloudName,
    /// Which port.
    pub port: PortId,
    /// The whole new list.
    pub groups: Vec<GroupId>,
    /// The revision that the list was derived from.
    pub if_revision: u64,
    /// Whose port it is. An operator who cuts a machine off takes its marks and its groups away together.
    pub instance: InstanceId,
    /// The marks that the instance must carry at that moment.
    pub owned: Ownership,
}

/// Replace the port's allowed address pairs, if it is still at this revision. Existing pairs keep their MAC.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase", deny_unknown_fields)]
pub struct AddPortPairs {
    /// Where.
    pub cloud: CloudName,
    /// Which port.
    pub port: PortId,
    /// The pairs to add to what is there.
    pub pairs: Vec<IpNet>,
    /// The revision that was read.
    pub if_revision: u64,
    /// Whose port it is.
    pub instance: InstanceId,
    /// The marks that the instance must carry at that moment.
    pub owned: Ownership,
}

/// Take exactly these routes out, all or none, leaving all others alone.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase", deny_unknown_fields)]
pub struct RemoveRoutes {
    /// Where.
    pub cloud: CloudName,
    /// Which router.
    pub router: RouterId,
    /// Exact pairs of destination and next hop.
    pub routes: Vec<Route>,
    /// Next hops on whose absence this rests: a performer looks for them directly before, and answers `Moved` when one of them is
    /// in use.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub unless_used: Vec<IpAddr>,
}

/// Put exactly these routes in, all or none.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase", deny_unknown_fields)]
pub struct AddRoutes {
    /// Where.
    pub cloud: CloudName,
    /// Which router.
    pub router: RouterId,
    /// Exact pairs.
    pub routes: Vec<Route>,
}

/// Put a harmless route and take it back at once.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase", deny_unknown_fields)]
pub struct NudgeRouter {
    /// Where.
    pub cloud: CloudName,
    /// Which router.
    pub router: RouterId,
    /// A route to a documentation range through an address that the router accepts.
    pub route: Route,
}

/// Let the user hold these roles on the project; one that it holds already counts as given.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase", deny_unknown_fields)]
pub struct AssignRoles {
    /// Where.
    pub cloud: CloudName,
    /// On this project: a performer that is in another one refuses.
    pub project: ProjectId,
    /// Who.
    pub user: UserId,
    /// What is missing, and nothing else.
    pub roles: Vec<Role>,
}

/// Ask the agent on a machine to bring its node back. It looks for itself before it does anything, and may answer no:
/// then the outcome is `Refused`, in its words. The same intent asked twice is one ask.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase", deny_unknown_fields)]
pub struct AskAgent {
    /// Where the machine is.
    pub cloud: CloudName,
    /// Which machine: an agent that is on another one refuses.
    pub instance: InstanceId,
    /// Which agent.
    pub agent: AgentId,
    /// What for.
    pub ask: Ask,
    /// The name under which its node is looked for afterwards.
    pub node: NodeName,
}

/// Reboot the instance.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase", deny_unknown_fields)]
pub struct Reboot {
    /// Where.
    pub cloud: CloudName,
    /// Which one.
    pub instance: InstanceId,
    /// True: power cycle. False: ask the guest.
    pub hard: bool,
    /// The marks on which this rests: a performer reads the instance directly before the act, and answers `Moved` when one of
    /// them is not on it any more.
    pub owned: Ownership,
}

/// Start a stopped instance.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase", deny_unknown_fields)]
pub struct StartInstance {
    /// Where.
    pub cloud: CloudName,
    /// Which one.
    pub instance: InstanceId,
    /// The marks on which this rests: a performer reads the instance directly before the act, and answers `Moved` when one of
    /// them is not on it any more.
    pub owned: Ownership,
}

/// Delete the instance.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase", deny_unknown_fields)]
pub struct DeleteInstance {
    /// Where.
    pub cloud: CloudName,
    /// Which one.
    pub instance: InstanceId,
    /// The marks on which this rests: a performer reads the instance directly before the act, and answers `Moved` when one of
    /// them is not on it any more.
    pub owned: Ownership,
    /// The state in which its cloud showed it when this was decided: in another one, or with a task, others have it in hand.
    /// None in records of earlier versions.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub rests_on: Option<InstanceState>,
}

/// Delete the Node object, if it still has this uid.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase", deny_unknown_fields)]
pub struct DeleteNode {
    /// Its name.
    pub name: NodeName,
    /// Its uid.
    pub uid: NodeUid,
    /// The boot that its kubelet told of, as it was decided upon. With another one a machine has taken the object over, uid and
    /// all, and serves as it.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub boot_id: Option<Arc<str>>,
}
