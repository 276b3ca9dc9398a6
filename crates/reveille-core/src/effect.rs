//! Everything that the engine can ask of the outside: one closed list.
//!
//! `engine::step` returns [`Effect`]s and does nothing itself. The controller performs them with real adapters; the
//! simulator performs them on its world, late, twice, out of order or not at all. Whoever performs an effect answers
//! with an event: `Record` with `Recorded`, `Look` with `Looked`, `Call` with `Done`. An answer may be "I do not know".
//!
//! A [`Call`] is only ever emitted after the intent that announces it was recorded (DESIGN, invariant 6), and carries
//! what it needs to be refused when the world has moved on: a fencing number, revisions, uids.

use std::fmt;
use std::net::IpAddr;
use std::sync::Arc;

use ipnet::IpNet;
use thiserror::Error;

use crate::model::access::{Role, RoleRef, UserRef};
use crate::model::agent::Ask;
use crate::model::hearing::Hearing;
use crate::model::id::{
    AgentId, CloudName, Fence, GroupId, InstanceId, IntentId, LookId, NodeName, NodeUid, PortId, ProjectId,
    RecordId, RequestId, RouterId, RuleId, UserId,
};
use crate::model::instance::InstanceState;
use crate::model::network::{Route, RuleSpec};
use crate::model::roster::Ownership;
use crate::model::time::{Span, Time};
use crate::record::Record;

/// One thing to be done outside.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Effect {
    /// Make this record durable, then say `Recorded`.
    Record {
        /// Its number, to be echoed.
        id: RecordId,
        /// What to keep.
        record: Record,
    },
    /// Change something outside. Its intent is in the ledger already.
    Call {
        /// Whose call this is.
        intent: IntentId,
        /// Who may make it. A performer that holds another number refuses.
        fence: Fence,
        /// What to do.
        call: Call,
    },
    /// Read one thing afresh, past every cache, then say `Looked`.
    Look {
        /// Its number, to be echoed.
        id: LookId,
        /// What to read.
        look: Look,
    },
    /// Take a full listing of this cloud as soon as its pace allows ([`crate::pace`]), rather than at its next full period.
    /// A listing of changes does not answer this, nor does one that fails: the wish stays until a full listing was read.
    List {
        /// Which one.
        cloud: CloudName,
    },
    /// Send a `Tick` at this time, at the latest. The newest replaces older ones.
    WakeAt(Time),
}

/// A change to the outside.
#[derive(Clone, Debug, PartialEq, Eq)]
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

/// How a call ended. "I do not know" is an answer of its own.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Outcome {
    /// The other side accepted it. Proves nothing about its effect.
    Accepted {
        /// The other side's request id, for its operator.
        request: Option<RequestId>,
    },
    /// The other side says that it was so already.
    AlreadySo {
        /// In its words.
        text: Arc<str>,
    },
    /// It moved on since we read it (412, uid conflict): read again, then decide again. Nothing happened.
    Moved {
        /// In its words.
        text: Arc<str>,
    },
    /// A limit or quota is reached (400 RoutesExhausted, 409 OverQuota, 403 quota): stop, do not retry.
    Limit {
        /// The limit, where the answer names it.
        limit: Option<u32>,
        /// In its words.
        text: Arc<str>,
    },
    /// The credential lacks the right, or is not accepted (401, a policy's 403, `UnauthorizedOperation`). Nothing happened.
    /// The right may come back at any time and nothing says when, so this ends no repair.
    Denied {
        /// In its words.
        text: Arc<str>,
    },
    /// Refused for good: trying the same again is useless (400, 404, locked).
    Refused {
        /// In its words.
        text: Arc<str>,
    },
    /// It did not happen, and may later (429, 503, connection refused).
    Failed {
        /// In its words.
        text: Arc<str>,
        /// Not before this long, when the other side said so.
        retry_after: Option<Span>,
    },
    /// It never left us: that we lead, or are alone, was not proved in time, or this process is stopping. Nothing happened, and
    /// the other side was not even asked.
    NotSent {
        /// Why.
        text: Arc<str>,
        /// Not before this long.
        retry_after: Option<Span>,
    },
    /// Nobody can say whether it happened (time-out after sending, connection lost, restart of ours).
    Unknown {
        /// What is known.
        text: Arc<str>,
    },
    /// The performer's fencing number is another one: somebody else leads now.
    Fenced,
}

impl Outcome {
    /// It is certain that nothing happened.
    pub const fn never_happened(&self) -> bool {
        self.denies() && !matches!(self, Self::Failed { .. })
    }

    /// The other side says that nothing came of it. Should it come to pass all the same, it may have been somebody else.
    pub const fn denies(&self) -> bool {
        matches!(
            self,
            Self::Moved { .. }
                | Self::Limit { .. }
                | Self::Denied { .. }
                | Self::Refused { .. }
                | Self::Failed { .. }
                | Self::NotSent { .. }
                | Self::Fenced
        )
    }
}

impl fmt::Display for Outcome {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Accepted { request: Some(request) } => write!(f, "accepted ({request})"),
            Self::Accepted { request: None } => f.write_str("accepted"),
            Self::AlreadySo { text } => write!(f, "was so already: {text}"),
            Self::Moved { text } => write!(f, "changed meanwhile: {text}"),
            Self::Limit { text, .. } => write!(f, "limit reached: {text}"),
            Self::Denied { text } => write!(f, "denied: {text}"),
            Self::Refused { text } => write!(f, "refused: {text}"),
            Self::Failed { text, .. } => write!(f, "failed: {text}"),
            Self::NotSent { text, .. } => write!(f, "not sent: {text}"),
            Self::Unknown { text } => write!(f, "unknown: {text}"),
            Self::Fenced => f.write_str("refused here: another process leads"),
        }
    }
}

/// A targeted read.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum Look {
    /// The instance by its id.
    Instance(CloudName, InstanceId),
    /// The instance's ports.
    Ports(CloudName, InstanceId),
    /// The group with its rules.
    Group(CloudName, GroupId),
    /// The router with its routes.
    Router(CloudName, RouterId),
    /// The last lines of the instance's console.
    Console(CloudName, InstanceId),
    /// Everything that explains the machine by words: the last lines of its console, and what the cluster says of it. Each
    /// world answers for its part; whoever performs it judges both together.
    Testimony(CloudName, InstanceId, Arc<Hearing>),
    /// The instance's log of actions.
    Actions(CloudName, InstanceId),
    /// Which roles the user holds on the project, and whether it lacks any of these.
    Roles(CloudName, Arc<UserRef>, Vec<RoleRef>),
    /// The Node by its name.
    Node(NodeName),
    /// The events about that node.
    NodeEvents(NodeName),
}

impl Look {
    /// The cloud that it is put to; none where it is put to the cluster. A testimony, heard from both, counts as the cloud's.
    pub const fn cloud(&self) -> Option<&CloudName> {
        match self {
            Self::Instance(cloud, _)
            | Self::Ports(cloud, _)
            | Self::Group(cloud, _)
            | Self::Router(cloud, _)
            | Self::Console(cloud, _)
            | Self::Testimony(cloud, ..)
            | Self::Actions(cloud, _)
            | Self::Roles(cloud, ..) => Some(cloud),
            Self::Node(_) | Self::NodeEvents(_) => None,
        }
    }
}

/// Why a read could not tell. Never "it is not there": that is an answer.
#[derive(Clone, Debug, PartialEq, Eq, Error)]
#[error("{text}")]
pub struct ReadError {
    /// What kind of failure.
    pub kind: ReadErrorKind,
    /// What was tried, what went wrong, what comes next: one sentence, no secrets.
    pub text: Arc<str>,
    /// Not before this long, when the other side said so.
    pub retry_after: Option<Span>,
}

/// Kinds of failed reads.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum ReadErrorKind {
    /// The credentials were not accepted, also after logging in once more.
    Unauthorized,
    /// They were, and may not do this.
    Forbidden,
    /// Too many requests (429, 498).
    Throttled,
    /// The other side does not answer, or answers 5xx.
    Unavailable,
    /// No answer in time.
    TimedOut,
    /// A page was missing, repeated or cut: the whole listing is void.
    Incomplete,
    /// The answer could not be read.
    Malformed,
    /// The watch lost its place and must be listed anew.
    Gap,
}
