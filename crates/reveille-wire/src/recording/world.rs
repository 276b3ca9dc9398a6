//! What the worlds say, as JSON: instances, ports, groups, routers, nodes, and why a read failed.
//!
//! What an object may lack is left out, so that ten thousand of them stay small. Fields are the core's; one that the core
//! gains does not build until it stands here, with a default for recordings that lack it.

use std::collections::BTreeSet;
use std::net::IpAddr;
use std::sync::Arc;

use ipnet::IpNet;
use reveille_core::effect::{ReadError, ReadErrorKind};
use reveille_core::model::hosting::Hosting;
use reveille_core::model::id::{
    GroupId, ImageId, InstanceId, InstanceName, NetworkId, NodeName, NodeUid, PortId, RequestId, RouterId,
    RuleId, ZoneName,
};
use reveille_core::model::instance::{
    Fault, Instance, InstanceAction, InstanceState, Mark, Port, PortStatus,
};
use reveille_core::model::network::{GroupRule, Route, Router, RuleSpec, SecurityGroup};
use reveille_core::model::node::{Asks, Condition, Node, NodeEvent, NodeIntent, Provider, Ready};
use reveille_core::model::time::Span;

use crate::ledger::mirror::{mirror_choice, mirror_struct};

mirror_struct! {
    WireInstance of Instance {
        id: InstanceId,
        name: InstanceName,
        state: InstanceState,
        #[serde(default, skip_serializing_if = "Option::is_none")]
        task: Option<Arc<str>>,
        #[serde(default, skip_serializing_if = "Option::is_none")]
        fault: Option<Fault>,
        #[serde(default, skip_serializing_if = "Option::is_none")]
        zone: Option<ZoneName>,
        #[serde(default, skip_serializing_if = "Option::is_none")]
        image: Option<ImageId>,
        marks: Arc<BTreeSet<Mark>>,
        addresses: Box<[IpAddr]>,
        #[serde(default, skip_serializing_if = "std::ops::Not::not")]
        config_drive: bool,
        #[serde(default, skip_serializing_if = "std::ops::Not::not")]
        locked: bool,
        #[serde(default, skip_serializing_if = "Option::is_none")]
        created: Option<Arc<str>>,
        #[serde(default, skip_serializing_if = "Option::is_none")]
        hostname: Option<Arc<str>>,
        #[serde(default, skip_serializing_if = "Option::is_none")]
        hosting: Option<Arc<Hosting>>,
    }
}

mirror_struct! {
    WireFault of Fault {
        code: u32,
        message: Arc<str>,
    }
}

mirror_choice! {
    WireMark of Mark {
        "tag" Tag(tag: Arc<str>),
        "metadata" Metadata(key: Arc<str>, value: Arc<str>),
    }
}

mirror_struct! {
    WirePort of Port {
        id: PortId,
        network: NetworkId,
        addresses: Box<[IpAddr]>,
        groups: Box<[GroupId]>,
        #[serde(default, skip_serializing_if = "Vec::is_empty")]
        pairs: Box<[IpNet]>,
        security: bool,
        status: PortStatus,
        revision: u64,
    }
}

mirror_struct! {
    WireAction of InstanceAction {
        request: RequestId,
        action: Arc<str>,
        started: Arc<str>,
        #[serde(default, skip_serializing_if = "Option::is_none")]
        user: Option<Arc<str>>,
        #[serde(default, skip_serializing_if = "Option::is_none")]
        message: Option<Arc<str>>,
    }
}

mirror_struct! {
    WireGroup of SecurityGroup {
        id: GroupId,
        name: Arc<str>,
        #[serde(default, skip_serializing_if = "Option::is_none")]
        project: Option<Arc<str>>,
        rules: Vec<GroupRule>,
    }
}

mirror_struct! {
    WireGroupRule of GroupRule {
        id: RuleId,
        allows: RuleSpec,
        description: Arc<str>,
    }
}

mirror_struct! {
    WireRouter of Router {
        id: RouterId,
        routes: Vec<Route>,
        #[serde(default, skip_serializing_if = "Option::is_none")]
        limit: Option<u32>,
    }
}

mirror_struct! {
    WireNode of Node {
        name: NodeName,
        uid: NodeUid,
        provider: Provider,
        #[serde(default, skip_serializing_if = "Option::is_none")]
        system_uuid: Option<InstanceId>,
        #[serde(default, skip_serializing_if = "Option::is_none")]
        boot_id: Option<Arc<str>>,
        #[serde(default, skip_serializing_if = "Option::is_none")]
        kubelet: Option<Arc<str>>,
        addresses: Box<[IpAddr]>,
        #[serde(default, skip_serializing_if = "Vec::is_empty")]
        pod_ranges: Box<[IpNet]>,
        ready: Ready,
        #[serde(default, skip_serializing_if = "Vec::is_empty")]
        conditions: Box<[Condition]>,
        #[serde(default, skip_serializing_if = "Option::is_none")]
        zone: Option<ZoneName>,
        #[serde(default, skip_serializing_if = "std::ops::Not::not")]
        cordoned: bool,
        #[serde(default, skip_serializing_if = "WireNodeIntent::is_none")]
        intent: NodeIntent,
        #[serde(default, skip_serializing_if = "std::ops::Not::not")]
        uninitialized: bool,
        #[serde(default, skip_serializing_if = "Vec::is_empty")]
        taints: Box<[Arc<str>]>,
    }
}

mirror_choice! {
    WireProvider of Provider {
        "unset" Unset,
        "instance" Instance(id: InstanceId),
        "unread" Unread(text: Arc<str>),
    }
}

mirror_struct! {
    #[derive(Default)]
    WireNodeIntent of NodeIntent {
        #[serde(default, skip_serializing_if = "std::ops::Not::not")]
        deleting: bool,
        #[serde(default, skip_serializing_if = "Option::is_none")]
        leaving: Option<Arc<str>>,
        #[serde(default, skip_serializing_if = "std::ops::Not::not")]
        paused: bool,
        #[serde(default, skip_serializing_if = "Option::is_none")]
        asks: Option<Box<Asks>>,
    }
}

mirror_struct! {
    WireAsks of Asks {
        #[serde(default, skip_serializing_if = "Option::is_none")]
        repair: Option<Arc<str>>,
        #[serde(default, skip_serializing_if = "Option::is_none")]
        confirm: Option<Arc<str>>,
        #[serde(default, skip_serializing_if = "Option::is_none")]
        keep: Option<bool>,
    }
}

impl WireNodeIntent {
    fn is_none(&self) -> bool {
        *self == Self::default()
    }
}

mirror_struct! {
    WireCondition of Condition {
        kind: Arc<str>,
        reason: Arc<str>,
        message: Arc<str>,
    }
}

mirror_struct! {
    WireNodeEvent of NodeEvent {
        node: NodeName,
        #[serde(default, skip_serializing_if = "Option::is_none")]
        uid: Option<NodeUid>,
        reason: Arc<str>,
        message: Arc<str>,
        reporter: Arc<str>,
        #[serde(default, skip_serializing_if = "Option::is_none")]
        stamped: Option<Arc<str>>,
    }
}

mirror_struct! {
    WireReadError of ReadError {
        kind: ReadErrorKind,
        text: Arc<str>,
        #[serde(default, rename = "retryAfterMs", skip_serializing_if = "Option::is_none")]
        retry_after: Option<Span>,
    }
}
