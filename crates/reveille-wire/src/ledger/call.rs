//! Changes to the outside and how they ended, as JSON.
//!
//! ```text
//!   call     {"do":"reboot","cloud":"os","instance":"…","hard":false}
//!   outcome  {"is":"accepted","request":"req-…"}
//!   remote   "any"   {"prefix":"10.244.0.0/16"}   {"group":"…"}   "other"
//! ```

use std::net::IpAddr;
use std::sync::Arc;

use ipnet::IpNet;
use reveille_core::effect::{Call, Outcome};
use reveille_core::model::access::Role;
use reveille_core::model::agent::Ask;
use reveille_core::model::id::{
    AgentId, CloudName, GroupId, InstanceId, NodeName, NodeUid, PortId, ProjectId, RequestId, RoleId,
    RouterId, RuleId, UserId,
};
use reveille_core::model::instance::{InstanceState, Mark};
use reveille_core::model::network::{Direction, Family, Protocol, Remote, Route, RuleSpec};
use reveille_core::model::roster::Ownership;
use reveille_core::model::time::Span;
use serde::{Deserialize, Serialize};

use super::FromWireError;
use super::mirror::{Mirror, mirror_enum, mirror_struct};

mirror_enum! {
    WireCall of Call by "do" {
        "add-rules" AddRules { cloud: CloudName, group: GroupId, rules: Vec<RuleSpec> },
        "drop-rule" DropRule { cloud: CloudName, group: GroupId, rule: RuleId },
        "nudge-group" NudgeGroup { cloud: CloudName, group: GroupId, mark: Arc<str> },
        "set-port-groups" SetPortGroups {
            cloud: CloudName, port: PortId, groups: Vec<GroupId>, if_revision: u64,
            #[serde(default = "no_instance")]
            instance: InstanceId,
            #[serde(default = "unproved")]
            owned: Ownership,
        },
        "add-port-pairs" AddPortPairs {
            cloud: CloudName, port: PortId, pairs: Vec<IpNet>, if_revision: u64,
            #[serde(default = "no_instance")]
            instance: InstanceId,
            #[serde(default = "unproved")]
            owned: Ownership,
        },
        "remove-routes" RemoveRoutes {
            cloud: CloudName, router: RouterId, routes: Vec<Route>,
            #[serde(default, skip_serializing_if = "Vec::is_empty")]
            unless_used: Vec<IpAddr>,
        },
        "add-routes" AddRoutes { cloud: CloudName, router: RouterId, routes: Vec<Route> },
        "nudge-router" NudgeRouter { cloud: CloudName, router: RouterId, route: Route },
        "assign-roles" AssignRoles { cloud: CloudName, project: ProjectId, user: UserId, roles: Vec<Role> },
        "ask-agent" AskAgent {
            cloud: CloudName, instance: InstanceId, agent: AgentId, ask: Ask, node: NodeName,
        },
        "reboot" Reboot {
            cloud: CloudName, instance: InstanceId, hard: bool,
            #[serde(default = "unproved")]
            owned: Ownership,
        },
        "start" Start {
            cloud: CloudName, instance: InstanceId,
            #[serde(default = "unproved")]
            owned: Ownership,
        },
        "delete-instance" DeleteInstance {
            cloud: CloudName, instance: InstanceId,
            #[serde(default = "unproved")]
            owned: Ownership,
            #[serde(default, rename = "restsOn", skip_serializing_if = "Option::is_none")]
            rests_on: Option<InstanceState>,
        },
        "delete-node" DeleteNode {
            name: NodeName, uid: NodeUid,
            #[serde(default, rename = "bootId", skip_serializing_if = "Option::is_none")]
            boot_id: Option<Arc<str>>,
        },
    }
}

/// For lines that were written before calls carried marks: a tag that no instance carries, so that such a call could only be
/// answered with `Moved`.
fn unproved() -> <Ownership as Mirror>::Wire {
    Ownership::of_cluster(Mark::Tag(Arc::from(""))).out()
}

/// The same for calls on ports, which did not say whose port it is.
fn no_instance() -> <InstanceId as Mirror>::Wire {
    InstanceId::from("").out()
}

mirror_enum! {
    WireOutcome of Outcome by "is" {
        "accepted" Accepted {
            #[serde(default, skip_serializing_if = "Option::is_none")]
            request: Option<RequestId>,
        },
        "already-so" AlreadySo { text: Arc<str> },
        "moved" Moved { text: Arc<str> },
        "limit" Limit {
            #[serde(default, skip_serializing_if = "Option::is_none")]
            limit: Option<u32>,
            text: Arc<str>,
        },
        "denied" Denied { text: Arc<str> },
        "refused" Refused { text: Arc<str> },
        "failed" Failed {
            text: Arc<str>,
            #[serde(default, rename = "retryAfterMs", skip_serializing_if = "Option::is_none")]
            retry_after: Option<Span>,
        },
        "not-sent" NotSent {
            text: Arc<str>,
            #[serde(default, rename = "retryAfterMs", skip_serializing_if = "Option::is_none")]
            retry_after: Option<Span>,
        },
        "unknown" Unknown { text: Arc<str> },
        "fenced" Fenced {},
    }
}

mirror_struct! {
    WireRule of RuleSpec {
        direction: Direction,
        family: Family,
        #[serde(default, skip_serializing_if = "Option::is_none")]
        protocol: Option<Protocol>,
        #[serde(default, skip_serializing_if = "Option::is_none")]
        ports: Option<(u16, u16)>,
        remote: Remote,
    }
}

mirror_struct! {
    WireRole of Role {
        id: RoleId,
        name: Arc<str>,
    }
}

mirror_struct! {
    WireRoute of Route {
        #[serde(rename = "to")]
        destination: IpNet,
        #[serde(rename = "via")]
        next_hop: IpAddr,
    }
}

#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub(crate) enum WireRemote {
    Any,
    Prefix(IpNet),
    Group(Arc<str>),
    Other,
}

impl Mirror for Remote {
    type Wire = WireRemote;

    fn out(&self) -> WireRemote {
        match self {
            Self::Any => WireRemote::Any,
            Self::Prefix(net) => WireRemote::Prefix(*net),
            Self::Group(id) => WireRemote::Group(id.shared()),
            Self::Other => WireRemote::Other,
        }
    }

    fn back(wire: WireRemote) -> Result<Self, FromWireError> {
        Ok(match wire {
            WireRemote::Any => Self::Any,
            WireRemote::Prefix(net) => Self::Prefix(net),
            WireRemote::Group(id) => Self::Group(GroupId::new(id)),
            WireRemote::Other => Self::Other,
        })
    }
}
