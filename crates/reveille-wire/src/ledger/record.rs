//! One record, as JSON: the mirror of [`Record`], variant by variant. `at` is when; numbers are those of the engine;
//! what a record may lack is left out.

use std::sync::Arc;

use reveille_core::effect::{Call, Outcome};
use reveille_core::model::attempt::Attempt;
use reveille_core::model::before::{ActionMark, Before};
use reveille_core::model::id::{ClusterUid, Fence, IncidentId, InstanceId, IntentId, PoolName};
use reveille_core::model::incident::{Finding, IncidentKey, MachineKey};
use reveille_core::model::time::Time;
use reveille_core::model::trace::Trace;
use reveille_core::record::{AgentTold, Domain, Joined, Record, Verdict};

use super::mirror::mirror_enum;

mirror_enum! {
    LedgerRecord of Record by "t" {
        "started" Started { at: Time, fence: Fence },
        "cluster" Cluster { at: Time, cluster: ClusterUid },
        "joined" Joined { at: Time, machines: Vec<Joined> },
        "born" Born { at: Time, machine: MachineKey },
        "cordoned" Cordoned { at: Time, machine: MachineKey, cordoned: bool },
        "left" Left { at: Time, machine: MachineKey, why: Arc<str> },
        "others-acted" OthersActed { at: Time, pools: Vec<PoolName>, until: Time, what: Arc<str> },
        "lost-together" LostTogether { at: Time, machines: Vec<MachineKey> },
        "forgotten" Forgotten { at: Time, machines: Vec<MachineKey> },
        "departed" Departed {
            at: Time,
            machines: Vec<MachineKey>,
            #[serde(default)]
            disowned: bool,
        },
        "returned" Returned { at: Time, machines: Vec<MachineKey> },
        "traced" Traced {
            at: Time,
            machine: MachineKey,
            trace: Trace,
            #[serde(default, skip_serializing_if = "Option::is_none")]
            told: Option<AgentTold>,
        },
        "opened" Opened {
            at: Time,
            incident: IncidentId,
            key: IncidentKey,
            #[serde(default, skip_serializing_if = "Option::is_none")]
            pool: Option<PoolName>,
            label: Arc<str>,
        },
        "diagnosed" Diagnosed { at: Time, incident: IncidentId, findings: Vec<Finding> },
        "intended" Intended {
            at: Time,
            intent: IntentId,
            incident: IncidentId,
            rung: u8,
            fence: Fence,
            call: Call,
            #[serde(default, skip_serializing_if = "Option::is_none")]
            before: Option<Before>,
            #[serde(default, skip_serializing_if = "Option::is_none")]
            domain: Option<Domain>,
        },
        "tried" Tried { incident: IncidentId, attempt: Attempt, rung: u8 },
        "carried-over" CarriedOver {
            incident: IncidentId,
            rung: u8,
            tries: u32,
            #[serde(default, skip_serializing_if = "Option::is_none")]
            not_before: Option<Time>,
            #[serde(default, skip_serializing_if = "Option::is_none")]
            unconfirmed: Option<ActionMark>,
        },
        "numbered" Numbered {
            at: Time,
            incident: IncidentId,
            intent: IntentId,
            begun: Vec<Time>,
            deleted: Vec<InstanceId>,
        },
        "dropped" Dropped { at: Time, intent: IntentId, why: Arc<str> },
        "ended" Ended { at: Time, intent: IntentId, outcome: Outcome },
        "judged" Judged { at: Time, intent: IntentId, held: bool, text: Arc<str> },
        "given-up" GivenUp { at: Time, incident: IncidentId, why: Arc<str> },
        "asked" Asked {
            at: Time,
            machine: MachineKey,
            value: Arc<str>,
            #[serde(default, skip_serializing_if = "Option::is_none")]
            incident: Option<IncidentId>,
        },
        "kept" Kept { at: Time, incident: IncidentId, until: Time },
        "closed" Closed { at: Time, incident: IncidentId, verdict: Verdict },
        "width" Width {
            at: Time,
            domain: Domain,
            width: u32,
            #[serde(default, skip_serializing_if = "Option::is_none")]
            not_before: Option<Time>,
            failures: u32,
            #[serde(default, skip_serializing_if = "Option::is_none")]
            proved: Option<IntentId>,
        },
        "faults-forgiven" FaultsForgiven { at: Time, pool: PoolName },
        "fault-seen" FaultSeen { at: Time, pool: PoolName, instance: InstanceId, fault: Arc<str> },
        "counted" Counted { at: Time, repair: Arc<str>, requested: u32, verified: u32 },
    }
}
