//! A model of Kubernikus flight control.
//!
//! Source: sapcc/kubernikus at 612781f1, `pkg/controller/flight` (`controller.go`: order and gates, `reconciler.go`: the
//! steps, `factory.go`: the snapshot), `pkg/client/openstack/kluster/{client,node}.go` (listing, name rule, states),
//! `pkg/controller/base/controller.go` (rhythm).
//!
//! ```text
//!  every server of the project, by name ─┐   pod rules → group on servers → delete unregistered → delete errored
//!  names of nodes, from a cache ─────────┴─▶ each step on its own; an error of one stops none
//! ```
//!
//! * A server belongs to a pool when its name is the cluster's and the pool's prefix and five more characters.
//! * It counts as unregistered when no Node has its name and the server was created more than 45 minutes ago. Both are
//!   sets of *names*, so a young server that shares its name with an old one goes with it.
//! * An errored server is deleted at once, whatever its Node says, unless it is being deleted already.
//! * The snapshot fails, and nothing is done, when the listing fails or the node cache is not synced; it is tried again
//!   after 5, 10, 20, 40 and 80 seconds, then at the next tick. A cache that synced to an empty list is a snapshot.
//! * About 24 runs an hour: a ticker of five minutes and an informer's resync of five minutes.
//!
//! Left out: roles of the service user, tags and metadata (steps 5 and 6: no machine is hurt or cured by them), updates of
//! the cluster object that start runs in between, and launch control, whose part the world's pool owner plays.

use std::collections::BTreeSet;

use ipnet::IpNet;
use reveille_core::model::id::InstanceId;
use reveille_core::model::instance::InstanceState;
use reveille_core::model::network::{Direction, Family, Protocol, Remote, RuleSpec, SecurityGroup};
use reveille_core::model::time::{Span, Time};

use super::Deed;

/// `INSTANCE_SPAWNING_TIMEOUT`.
const SPAWNING_TIMEOUT: Span = Span::from_min(45);
/// Two timers of five minutes.
const EVERY: Span = Span::from_s(150);
/// `BASE_DELAY` and the number of retries of a run that failed.
const RETRY: Span = Span::from_s(5);
const RETRIES: u32 = 5;

/// What it sees.
#[derive(Clone, Debug, Default)]
pub(crate) struct FlightView {
    /// Servers whose names are a pool's.
    pub(crate) servers: Vec<ServerSeen>,
    /// Names of every Node, as its server would be called.
    pub(crate) nodes: BTreeSet<String>,
    /// Groups of the name that it looks for.
    pub(crate) groups: Vec<SecurityGroup>,
    /// The pods' range.
    pub(crate) pod_range: Option<IpNet>,
}

/// One server in its listing.
#[derive(Clone, Debug)]
pub(crate) struct ServerSeen {
    pub(crate) id: InstanceId,
    pub(crate) name: String,
    pub(crate) state: InstanceState,
    pub(crate) task: Option<String>,
    /// Its `created`.
    pub(crate) created: Time,
    /// One of its ports carries the group; ports are not told apart.
    pub(crate) grouped: bool,
}

/// Flight control.
#[derive(Clone, Debug, Default)]
pub(crate) struct Flight {
    failures: u32,
}

impl Flight {
    /// What one run does, and when the next one is.
    pub(crate) fn pass(&mut self, now: Time, view: Option<&FlightView>) -> (Vec<Deed>, Time) {
        let Some(view) = view else {
            self.failures += 1;
            let again = if self.failures > RETRIES {
                self.failures = 0;
                EVERY
            } else {
                RETRY.doubled(self.failures - 1, EVERY)
            };
            return (Vec::new(), now + again);
        };
        self.failures = 0;
        let mut deeds: Vec<Deed> = missing_rules(view).map(Deed::PutRules).into_iter().collect();
        let ungrouped = view.servers.iter().filter(|server| is_running(server) && !server.grouped);
        deeds.extend(ungrouped.map(|server| Deed::PutGroup(server.id.clone())));
        deeds.extend(incompletely_spawned(now, view).map(|server| Deed::Delete(server.id.clone())));
        let errored = |server: &&ServerSeen| {
            server.state == InstanceState::Errored && server.task.as_deref() != Some("deleting")
        };
        deeds.extend(view.servers.iter().filter(errored).map(|server| Deed::Delete(server.id.clone())));
        (deeds, now + EVERY)
    }
}

/// Servers with a name that no Node has and that an old server has.
fn incompletely_spawned(now: Time, view: &FlightView) -> impl Iterator<Item = &ServerSeen> {
    let old = |server: &&ServerSeen| now.since(server.created) > SPAWNING_TIMEOUT;
    let old: BTreeSet<&str> = view.servers.iter().filter(old).map(|server| server.name.as_str()).collect();
    view.servers
        .iter()
        .filter(move |server| old.contains(server.name.as_str()) && !view.nodes.contains(&server.name))
}

/// Active, and at no task but those that it knows to be harmless.
fn is_running(server: &ServerSeen) -> bool {
    let harmless = |task: &str| matches!(task, "image_uploading" | "rebooting" | "reboot_started");
    matches!(server.state, InstanceState::Active | InstanceState::Rebooting)
        && server.task.as_deref().is_none_or(harmless)
}

/// The rules that its comparison does not find; none when the group is not exactly one.
fn missing_rules(view: &FlightView) -> Option<Vec<RuleSpec>> {
    let ([group], Some(range)) = (&view.groups[..], view.pod_range) else { return None };
    let wanted = [Protocol::UDP, Protocol::TCP, Protocol::ICMP].map(|protocol| RuleSpec {
        direction: Direction::Ingress,
        family: Family::V4,
        protocol: Some(protocol),
        ports: None,
        remote: Remote::Prefix(range),
    });
    let missing: Vec<RuleSpec> =
        wanted.into_iter().filter(|rule| !group.rules.iter().any(|known| known.allows == *rule)).collect();
    (!missing.is_empty()).then_some(missing)
}
