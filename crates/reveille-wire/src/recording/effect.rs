//! What the engine asked for, as JSON.
//!
//! ```text
//!   {"record":{"id":4,"record":{"t":"opened",…}}}   {"look":{"id":2,"look":{"ports":["os","7f3a"]}}}   {"wake":"2026-…"}
//! ```

use std::sync::Arc;

use reveille_core::effect::{Call, Effect, Look};
use reveille_core::model::access::{RoleRef, UserRef};
use reveille_core::model::hearing::Hearing;
use reveille_core::model::id::{
    CloudName, Fence, GroupId, InstanceId, IntentId, LookId, NodeName, RecordId, RouterId,
};
use reveille_core::model::time::Time;
use reveille_core::record::Record;

use crate::ledger::mirror::mirror_choice;

mirror_choice! {
    WireEffect of Effect {
        "record" Record { id: RecordId, record: Record },
        "call" Call { intent: IntentId, fence: Fence, call: Call },
        "look" Look { id: LookId, look: Look },
        "list" List { cloud: CloudName },
        "wake" WakeAt(at: Time),
    }
}

mirror_choice! {
    WireLook of Look {
        "instance" Instance(cloud: CloudName, instance: InstanceId),
        "ports" Ports(cloud: CloudName, instance: InstanceId),
        "group" Group(cloud: CloudName, group: GroupId),
        "router" Router(cloud: CloudName, router: RouterId),
        "console" Console(cloud: CloudName, instance: InstanceId),
        "testimony" Testimony(cloud: CloudName, instance: InstanceId, of: Arc<Hearing>),
        "actions" Actions(cloud: CloudName, instance: InstanceId),
        "roles" Roles(cloud: CloudName, user: Arc<UserRef>, roles: Vec<RoleRef>),
        "node" Node(node: NodeName),
        "node-events" NodeEvents(node: NodeName),
    }
}
