//! Situations to compare policies on: one question each, on a dozen machines, and random courses beside them.
//!
//! Every situation is a [`ScenarioRun`]: plain data, the same for every policy. This file does not hold what each policy makes of
//! them. The situations were chosen for what they ask, and contain some that the engine is slow at or cannot do.

use std::collections::BTreeSet;

use reveille_core::model::id::InstanceId;
use reveille_core::model::time::Span;

use super::Subject;
use crate::chaos::{Happening, Rate, ScenarioRun};
use crate::drive::Mishap;
use crate::scenario::{Filed, Refusal, Scenario, library};
use crate::world::World;
use crate::world::fault::Fault;
use crate::world::layout::Layout;
use crate::world::vm::Trouble;

/// When the first fault strikes: no full minute, so that it does not fall on a timer of any policy by luck.
const FIRST: Span = Span::from_s(337);
/// A random course is watched for so long after the last thing that happens in it.
pub const AFTER: Span = Span::from_min(120);

/// A situation in the making.
struct Draft {
    layout: Layout,
    machines: Vec<InstanceId>,
    happenings: Vec<(Span, Happening)>,
}

impl Draft {
    fn of(layout: Layout) -> Self {
        let ours: BTreeSet<InstanceId> =
            World::new(&layout).machines().into_iter().filter(|m| m.pool.is_some()).map(|m| m.id).collect();
        Self { layout, machines: ours.into_iter().collect(), happenings: Vec::new() }
    }

    fn dozen() -> Self {
        Self::of(Layout::fleet(7, 12))
    }

    /// This happens to the machine of that number.
    fn machine(mut self, number: usize, at: Span, fault: impl Fn(InstanceId) -> Fault) -> Self {
        let id = self.machines.get(number).cloned();
        self.happenings.extend(id.map(|id| (at, Happening::Fault(fault(id)))));
        self
    }

    fn fault(mut self, at: Span, fault: Fault) -> Self {
        self.happenings.push((at, Happening::Fault(fault)));
        self
    }

    fn mishap(mut self, at: Span, mishap: Mishap) -> Self {
        self.happenings.push((at, Happening::Mishap(mishap)));
        self
    }

    fn subject(self, name: &str, about: &str, minutes: i64) -> Subject {
        let scenario_run =
            ScenarioRun { layout: self.layout, happenings: self.happenings, length: Span::from_min(minutes) };
        Subject::of_run(name, about, scenario_run, Span::ZERO)
    }
}

/// Every situation, simple ones first.
pub fn situations() -> Vec<Subject> {
    let mut all = one_machine();
    all.extend(joining());
    all.extend(lying_sources());
    all.extend(many_at_once());
    all.extend(other_people());
    all
}

fn hung(id: InstanceId) -> Fault {
    Fault::Breaks(id, Trouble::KubeletHung)
}

fn broken(id: InstanceId) -> Fault {
    Fault::Breaks(id, Trouble::Broken)
}

fn one_machine() -> Vec<Subject> {
    let group_lost = |machine| Fault::GroupLost { machine, slips: false };
    vec![
        Draft::dozen().machine(3, FIRST, hung).subject("hung-kubelet", "One kubelet hangs; a reboot would end it.", 120),
        Draft::dozen().machine(3, FIRST, broken).subject(
            "broken-kubelet",
            "One kubelet cannot run any more; only a new machine helps.",
            180,
        ),
        Draft::dozen().machine(3, FIRST, group_lost).subject(
            "group-lost",
            "One port loses its security group, and its machine its connection.",
            120,
        ),
        Draft::dozen().machine(3, FIRST, Fault::NodeDeletedByController).subject(
            "node-deleted",
            "The cloud controller deletes the Node of a machine that runs.",
            120,
        ),
        Draft::dozen().machine(3, FIRST, Fault::Errored).subject(
            "errored",
            "The cloud puts a running instance into an error state.",
            120,
        ),
        Draft::of(Layout::fleet(7, 12).routed())
            .machine(3, FIRST, Fault::RouteBroken)
            .machine(4, FIRST, Fault::DuplicateRoute)
            .fault(Span::from_min(20), Fault::RulesLost)
            .subject(
                "network-drift",
                "Pods of one node cannot be reached, a second route misleads another's, then the group loses its rules.",
                120,
            ),
    ]
}

fn joining() -> Vec<Subject> {
    let launch = |trouble| Fault::Launch { pool: "workers".into(), trouble };
    vec![
        Draft::dozen().fault(FIRST, launch(Some(Trouble::NoNetwork))).subject(
            "first-boot-without-network",
            "A new machine's first boot finds no network; no reboot repeats a first boot.",
            180,
        ),
        Draft::dozen().fault(FIRST, launch(Some(Trouble::BuildFails))).subject(
            "build-fails",
            "The cloud finds no host for a new machine.",
            120,
        ),
        Draft::dozen()
            .fault(FIRST, Fault::ControllerDown(Span::from_min(40)))
            .fault(FIRST, launch(None))
            .subject(
                "controller-down-while-joining",
                "A good machine joins while the cloud controller is down for 40 minutes: its Node stays uninitialised.",
                120,
            ),
        Draft::dozen()
            .fault(FIRST, Fault::BadImage("workers".into(), Some(Trouble::Broken)))
            .fault(Span::from_min(6), launch(None))
            .fault(Span::from_min(7), launch(None))
            .subject(
                "bad-image",
                "Two machines are added, and every machine that the pool makes is broken, for three hours.",
                180,
            ),
    ]
}

fn lying_sources() -> Vec<Subject> {
    let half_hour = Span::from_min(30);
    let unlisted = Fault::ServersUnlisted { lasts: half_hour, denies: true };
    vec![
        Draft::of(Layout::fleet(7, 100)).fault(FIRST, Fault::NodesUnlisted(Span::from_min(10))).subject(
            "empty-node-list",
            "The cluster's API lists no Nodes for ten minutes; all of 100 machines are well.",
            40,
        ),
        Draft::dozen().fault(FIRST, unlisted).machine(3, Span::from_min(6), hung).subject(
            "empty-server-list",
            "The cloud denies every server for half an hour; one kubelet hangs meanwhile.",
            120,
        ),
        Draft::dozen().fault(FIRST, Fault::ApiSilent(half_hour)).machine(3, Span::from_min(6), hung).subject(
            "silent-api",
            "The cluster's API does not answer for half an hour; one kubelet hangs meanwhile.",
            120,
        ),
    ]
}

fn many_at_once() -> Vec<Subject> {
    let dark = |zone: &str, minutes| Fault::ZoneDark(zone.into(), Span::from_min(minutes));
    let mut half_hang = Draft::dozen();
    let mut drip = Draft::dozen();
    for number in 0..6 {
        half_hang = half_hang.machine(number, FIRST, hung);
        drip = drip.machine(number, Span::from_s(337 + 1200 * number as i64), broken);
    }
    vec![
        Draft::dozen().fault(FIRST, dark("nova-a", 45)).subject(
            "zone-dark",
            "One of three zones is cut off for 45 minutes and comes back.",
            120,
        ),
        ["nova-a", "nova-b", "nova-c"]
            .into_iter()
            .fold(Draft::dozen(), |draft, zone| draft.fault(FIRST, dark(zone, 45)))
            .subject(
                "fleet-dark",
                "Nothing reaches the cluster's API for 45 minutes; then everything does.",
                120,
            ),
        half_hang.subject("half-hang", "Half of all kubelets hang at once; a reboot would end each.", 240),
        drip.subject("slow-drip", "A kubelet breaks for good every 20 minutes, six in all.", 240),
    ]
}

fn other_people() -> Vec<Subject> {
    let mut neighbours = Layout::fleet(7, 12);
    neighbours.neighbours = 6;
    let mut crashes = Draft::dozen().machine(3, FIRST, hung).machine(4, Span::from_min(30), broken);
    for number in 1..12 {
        crashes = crashes.mishap(Span::from_min(7 * number), Mishap::Crash(Span::from_s(20)));
    }
    vec![
        Draft::of(neighbours).subject(
            "neighbour",
            "Six machines of another cluster stand in the project under names like ours; all of ours are well.",
            120,
        ),
        Draft::dozen().machine(3, FIRST, Fault::ShutOff).subject("shut-off", "A person shuts a machine off.", 120),
        Draft::dozen().machine(3, FIRST, Fault::NodeDeletedByPerson).subject(
            "node-deleted-by-person",
            "A person deletes the Node of a machine that runs.",
            120,
        ),
        Draft::dozen()
            .machine(3, FIRST, Fault::ScaledDown)
            .fault(Span::from_min(20), Fault::Rollout("workers".into()))
            .subject("scale-and-roll", "The autoscaler takes a machine away, then the pool is rolled.", 90),
        crashes.subject(
            "restarts",
            "One kubelet hangs, another breaks for good, and the controller dies and restarts every seven minutes.",
            240,
        ),
    ]
}

/// The scenarios that come with Reveille and can be played, in order of their files.
///
/// # Errors
///
/// A file that is no scenario; a test keeps that from happening.
pub fn scenarios() -> Result<Vec<Subject>, Refusal> {
    let all: Result<Vec<Scenario>, Refusal> = library().iter().map(Filed::scenario).collect();
    let played = all?.into_iter().filter(|scenario| scenario.not_yet.is_none());
    Ok(played.map(Subject::of_scenario).collect())
}

/// Random courses of these seeds: three hours of everything that can go wrong on thirty machines, and two to repair it.
pub fn seeds(seeds: impl IntoIterator<Item = u64>) -> Vec<Subject> {
    let about = "Three hours of random faults on 30 machines, and two hours to mend them.";
    let subject = |seed| {
        Subject::of_run(&format!("seed {seed}"), about, ScenarioRun::random(seed, Rate::default()), AFTER)
    };
    seeds.into_iter().map(subject).collect()
}
