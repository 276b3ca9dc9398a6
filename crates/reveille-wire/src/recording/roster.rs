//! The roster as the engine got it: checked, every default filled in, so that a later default changes no replay.
//!
//! This is not the file that people write (`crate::roster`); lengths of time are milliseconds, and nothing is looked up.

use std::collections::BTreeMap;
use std::sync::Arc;

use ipnet::IpNet;
use reveille_core::model::access::{Access, Role, RoleRef, ServiceUser, UserRef, UserRoles};
use reveille_core::model::id::{
    CloudName, GroupId, PoolName, ProjectId, RoleId, RosterName, RouterId, UserId,
};
use reveille_core::model::instance::Mark;
use reveille_core::model::roster::{
    Deadlines, GroupRef, Keep, Limits, Mode, Network, Ownership, Pool, Repair, Roster, Timing,
};
use reveille_core::model::time::Span;

use crate::ledger::FromWireError;
use crate::ledger::mirror::{Mirror, mirror_choice, mirror_struct};

mirror_struct! {
    WireRoster of Roster {
        name: RosterName,
        clouds: Vec<CloudName>,
        #[serde(default, skip_serializing_if = "Vec::is_empty")]
        settles: BTreeMap<CloudName, Span>,
        network: Network,
        #[serde(default = "nobody", skip_serializing_if = "is_nobody")]
        access: Access,
        pools: BTreeMap<PoolName, Pool>,
        limits: Limits,
        timing: Timing,
    }
}

mirror_struct! {
    WireNetwork of Network {
        pod_ranges: Vec<IpNet>,
        #[serde(default, skip_serializing_if = "Option::is_none")]
        router: Option<(CloudName, RouterId)>,
        address_pairs: bool,
        unreachable_conditions: Vec<Arc<str>>,
    }
}

mirror_struct! {
    WireAccess of Access {
        users: Vec<ServiceUser>,
        repair: Mode,
        check_every: Span,
    }
}

mirror_struct! {
    WireServiceUser of ServiceUser {
        cloud: CloudName,
        user: Arc<UserRef>,
        roles: Vec<RoleRef>,
    }
}

mirror_choice! {
    WireRoleRef of RoleRef {
        "id" Id(id: RoleId),
        "name" Name(name: Arc<str>),
    }
}

mirror_struct! {
    WireUserRoles of UserRoles {
        project: ProjectId,
        #[serde(default, skip_serializing_if = "Option::is_none")]
        user: Option<UserId>,
        held: Vec<Role>,
        lacking: Vec<Role>,
    }
}

mirror_struct! {
    WirePool of Pool {
        name: PoolName,
        cloud: CloudName,
        owned: Ownership,
        groups: Vec<GroupRef>,
        min: u32,
        deadlines: Deadlines,
        repair: Repair,
        paused: bool,
        #[serde(default, skip_serializing_if = "Vec::is_empty")]
        startup_taints: Vec<Arc<str>>,
        #[serde(default, skip_serializing_if = "Option::is_none")]
        keep: Option<Keep>,
        #[serde(default, skip_serializing_if = "std::ops::Not::not")]
        through_group: bool,
    }
}

mirror_struct! {
    WireKeep of Keep {
        within: Span,
        at_most: u32,
        failed: bool,
    }
}

mirror_struct! {
    WireOwnership of Ownership {
        cluster: Mark,
        #[serde(default, skip_serializing_if = "Option::is_none")]
        pool: Option<Mark>,
    }
}

mirror_choice! {
    WireGroupRef of GroupRef {
        "id" Id(id: GroupId),
        "name" Name(name: Arc<str>),
    }
}

mirror_struct! {
    WireDeadlines of Deadlines {
        #[serde(default, skip_serializing_if = "Option::is_none")]
        join_within: Option<Span>,
        build_within: Span,
        delete_within: Span,
        not_ready_within: Span,
        vanished_within: Span,
        dwell: Span,
        #[serde(default = "in_service_before_it_was_asked", skip_serializing_if = "is_in_service_default")]
        in_service_within: Span,
        #[serde(default, skip_serializing_if = "std::ops::Not::not")]
        confirm: bool,
    }
}

mirror_struct! {
    WireRepair of Repair {
        network: Mode,
        rejoin: Mode,
        reboot: Mode,
        replace: Mode,
        cleanup: Mode,
    }
}

mirror_struct! {
    WireLimits of Limits {
        at_once: u32,
        per_hour: u32,
        freeze_above_pct: u8,
        network_at_once: u32,
        same_fault_stops_at: u32,
    }
}

mirror_struct! {
    WireTiming of Timing {
        cloud_period: Span,
        cloud_full_period: Span,
        cloud_stale_after: Span,
        cluster_stale_after: Span,
        lease_silent_after: Span,
        #[serde(default = "agents_of_old", skip_serializing_if = "is_of_old")]
        agent_silent_after: Span,
        pause_jump: Span,
        shrink_pct: u8,
        backoff_min: Span,
        backoff_max: Span,
        tries: u32,
        verify_within: Span,
        settle: Span,
        rollout_quiet: Span,
    }
}

/// In recordings from before agents were heard none is, so the time for one to fall silent does not matter.
fn agents_of_old() -> i64 {
    Timing::default().agent_silent_after.ms
}

fn is_of_old(ms: &i64) -> bool {
    *ms == agents_of_old()
}

/// Recordings from before there were service users name none.
fn nobody() -> WireAccess {
    Access::default().out()
}

fn is_nobody(access: &WireAccess) -> bool {
    *access == nobody()
}

/// Recordings from before there were startup taints have none, so the time for them to go does not matter.
fn in_service_before_it_was_asked() -> i64 {
    Deadlines::default().in_service_within.ms
}

fn is_in_service_default(ms: &i64) -> bool {
    *ms == in_service_before_it_was_asked()
}

/// Pools carry their name, so a list says everything.
impl Mirror for BTreeMap<PoolName, Pool> {
    type Wire = Vec<WirePool>;

    fn out(&self) -> Vec<WirePool> {
        self.values().map(Pool::out).collect()
    }

    fn back(wire: Vec<WirePool>) -> Result<Self, FromWireError> {
        wire.into_iter().map(|pool| Pool::back(pool).map(|pool| (pool.name.clone(), pool))).collect()
    }
}

impl Mirror for BTreeMap<CloudName, Span> {
    type Wire = Vec<(Arc<str>, i64)>;

    fn out(&self) -> Self::Wire {
        self.iter().map(|(cloud, span)| (cloud.shared(), span.ms)).collect()
    }

    fn back(wire: Self::Wire) -> Result<Self, FromWireError> {
        Ok(wire.into_iter().map(|(cloud, ms)| (CloudName::new(cloud), Span::from_ms(ms))).collect())
    }
}
