//! What real fleets have and a simple world lacks: how their Nodes are named, what else is on their networks, what is late.
//!
//! ```text
//!  seed ─ one stream for each aspect, by its name ─┬─▶ what this fleet is like                      ─▶ Layout::variety
//!                                                  └─▶ happenings beside those of the other sheets  ─▶ Draft
//! ```
//!
//! Each aspect draws from a stream that is named after it ([`Rng::named`]), so a new aspect moves no draw of another one.
//! Seeds below [`SEEDS_FROM`] were played before there was any of this, and mean what they meant, unless its faults are asked
//! for by name; in those below [`TWO_PROJECTS_FROM`] a fleet lies in one project, and the clocks of all services are ours.
//!
//! It judges nothing, and it knows nothing that the engine assumes: each entry is a fact about a real service or fleet.

use reveille_core::model::id::InstanceId;
use reveille_core::model::time::Span;

use super::Happening;
use super::dice::{Dice, Drawn, call, one};
use super::entry::{Entry, catalog};
use crate::drive::Mishap;
use crate::rng::Rng;
use crate::world::fault::{CallLie, Fault, Right};
use crate::world::layout::{FirstReads, Layout, OTHER_CLOUD};

/// The first seed whose fleet has variety of itself.
pub const SEEDS_FROM: u64 = 3_000_000;

/// The first seed whose fleet may lie in two projects, and whose services may have clocks of their own.
pub const TWO_PROJECTS_FROM: u64 = 3_200_000;

catalog! {
    /// What happens in such fleets.
    // Ports that belong to no instance.
    "vips-away" 2 "the ports of all VIPs are made again" |dice| {
        let away = dice.rng.span(Span::from_s(2), Span::from_s(9));
        one(Fault::VipsAway(away))
    };
    // Marks that come and go.
    "unmarked-before-call" 3 "an operator takes the pool's mark off between the decision and the call" |_| call(CallLie::Unmarked);
    "mark-returns" 2 "an instance loses its pool's mark, and gets it back" |dice| {
        let (machine, lasts) = (dice.machine(), dice.lasts());
        vec![
            (Span::ZERO, Happening::Fault(Fault::Unmarked(machine.clone()))),
            (lasts, Happening::Fault(Fault::Marked(machine))),
        ]
    };
    "nodes-unlisted-at-start" 3 "a process starts while the cluster lists no nodes (wrong endpoint, empty etcd)" |dice| {
        let (lasts, down) = (dice.lasts(), dice.down());
        let crash = Happening::Mishap(Mishap::Crash(down));
        vec![(Span::ZERO, crash), (Span::ZERO, Happening::Fault(Fault::NodesUnlisted(lasts)))]
    };
    "other-cluster" 3 "the kubeconfig leads to another cluster for a while, perhaps from a restart on" |dice| {
        let (lasts, down, restarts) = (dice.lasts(), dice.down(), dice.rng.chance(50));
        let crash = restarts.then_some((Span::ZERO, Happening::Mishap(Mishap::Crash(down))));
        let other = (Span::ZERO, Happening::Fault(Fault::OtherCluster(lasts)));
        crash.into_iter().chain([other]).collect()
    };
    "etcd-restored" 3 "etcd is restored from a backup without the nodes of some machines, perhaps while no process runs" etcd_restored;
    "remade" 4 "the owner deletes a machine and makes another of its name, whose kubelet takes the Node over"
        |dice| {
            let lasts = dice.rng.span(Span::from_min(20), Span::from_min(150));
            dice.on(|machine| Fault::Remade(machine, lasts))
        };
    "drained" 4 "a person cordons a node, deletes it, and deletes the instance much later"
        |dice| {
            let lasts = dice.rng.span(Span::from_min(5), Span::from_min(120));
            dice.on(|machine| Fault::Drained(machine, lasts))
        };
    "marks-away" 4 "a person takes all marks off a machine and puts them back later"
        |dice| {
            let lasts = dice.lasts();
            dice.on(|machine| Fault::MarksAway(machine, lasts))
        };
    "marked" 4 "a person puts the marks of its pool on a machine, perhaps on one that never had any"
        |dice| dice.on(Fault::Marked);
    // Machines that fail together, and rights that come and go.
    "many-silent" 4 "many machines stand still together, and go on one after another" |dice| {
        let share_pct = 20 + dice.rng.below(60) as u32;
        let lasts = dice.rng.span(Span::from_min(4), Span::from_min(20));
        let every = dice.rng.span(Span::from_ms(200), Span::from_s(4));
        one(Fault::ManySilent { share_pct, lasts, every })
    };
    "rights-lost" 3 "a policy forbids us every change for a while, with 403" |dice| {
        let lasts = dice.rng.span(Span::from_min(1), Span::from_min(90));
        one(Fault::RightsLost(Right::Every, lasts))
    };
    "reboots-denied" 3 "a policy forbids us to reboot for a while, with 403, and nothing else" |dice| {
        let lasts = dice.rng.span(Span::from_min(5), Span::from_min(90));
        one(Fault::RightsLost(Right::Reboot, lasts))
    };
}

/// A person restarts the kubelets of these machines some hours later: nothing else brings their nodes back.
fn etcd_restored(dice: &mut Dice) -> Drawn {
    let machines = dice.some();
    let mut drawn = Vec::new();
    if dice.rng.chance(50) {
        drawn.push((Span::ZERO, Happening::Mishap(Mishap::Crash(dice.down()))));
    }
    let after = dice.rng.span(Span::from_min(20), Span::from_min(180));
    let restart = |id: &InstanceId| (after, Happening::KubeletRestart(id.clone()));
    drawn.push((Span::ZERO, Happening::Fault(Fault::EtcdRestored(machines.clone()))));
    drawn.extend(machines.iter().map(restart));
    drawn
}

/// What the Nodes of such a cluster may be called, after their instances.
const QUALIFIED: &str = ".prod.example.internal";

/// Draws what this fleet is like.
pub(super) fn draw(layout: &mut Layout) {
    let mut rng = Rng::named(layout.seed, "boots-slowly");
    if rng.chance(20) {
        layout.variety.boots_slowly = Some(rng.span(Span::from_s(30), Span::from_min(10)));
    }
    if Rng::named(layout.seed, "first reads of a fleet").chance(60) {
        layout.variety.first_reads = FirstReads::AnyOrder;
    }
    layout.variety.identity = Rng::named(layout.seed, "identity of a cluster").chance(90);
    // Every kubelet takes over a Node of its name; worlds of earlier seeds put another object in its place.
    layout.variety.adopts = true;
    let mut rng = Rng::named(layout.seed, "node names");
    if rng.chance(30) {
        layout.node_suffix = QUALIFIED.to_owned();
    }
    let mut rng = Rng::named(layout.seed, "machines without marks");
    if rng.chance(40) {
        layout.variety.unmarked = 1 + rng.below(2) as u32;
    }
    let mut rng = Rng::named(layout.seed, "second project");
    if layout.seed >= TWO_PROJECTS_FROM && !layout.is_told_of_hosting() && rng.chance(85) {
        let several = layout.pools.len() > 1;
        if let Some(plan) = layout.pools.last_mut().filter(|_| several) {
            plan.cloud = OTHER_CLOUD.into();
            layout.variety.troubled_other = rng.chance(50);
        }
    }
    let mut rng = Rng::named(layout.seed, "clocks of services");
    if layout.seed >= TWO_PROJECTS_FROM && rng.chance(50) {
        let mut clock = || rng.span(Span::from_min(-10), Span::from_min(10)).ms;
        layout.variety.clocks_ms = [clock(), clock()];
    }
    if layout.routed {
        let mut rng = Rng::named(layout.seed, "vips");
        layout.variety.vips = if rng.chance(50) { 1 + rng.below(4) as u32 } else { 0 };
        layout.variety.untold_route_limit = Rng::named(layout.seed, "route limit").chance(30);
    }
}
