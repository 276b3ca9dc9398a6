//! For each safeguard a course of events in which only that safeguard stands between the engine and a mistake.
//!
//! A story is as short as it can be: the one fault that the safeguard is there for, and whatever would otherwise keep the
//! engine from acting (another safeguard that also covers the case) left out of the roster's way. With the safeguard standing
//! every story must be played without a foul; that is tested as well, so a story cannot convict an innocent.

use reveille_core::event::{Pause, PauseScope};
use reveille_core::model::access::{RoleRef, UserRef};
use reveille_core::model::id::{InstanceId, PoolName, ZoneName};
use reveille_core::model::roster::ServiceUser;
use reveille_core::model::roster::{Keep, Mode};
use reveille_core::model::signs::REPAIR_NOW;
use reveille_core::model::time::Span;
use reveille_core::plan::budget::Phase;
use reveille_core::safeguard::Safeguard;
use reveille_sim::drive::{CrashPoint, Drive, Mishap};
use reveille_sim::hunt::seed::Seed;
use reveille_sim::scenario::{parse, play_to_rest};
use reveille_sim::world::fault::{CallLie, Fault, Right};
use reveille_sim::world::layout::{CLOUD, Layout};
use reveille_sim::world::vm::Trouble;

use super::{hosted, identities, in_hand, starts};

pub(crate) const fn min(minutes: i64) -> Span {
    Span::from_min(minutes)
}

pub(crate) const fn s(seconds: i64) -> Span {
    Span::from_s(seconds)
}

/// A drive and its machines in order of name.
pub(crate) struct Stage {
    pub(crate) drive: Drive,
    machines: Vec<InstanceId>,
}

impl Stage {
    pub(crate) fn new(layout: &Layout) -> Self {
        Self::of(Drive::new(layout))
    }

    fn of(drive: Drive) -> Self {
        let mut drive = drive.judged();
        drive.run_for(min(2));
        let mut ours: Vec<_> = drive.world.machines().into_iter().filter(|m| m.pool.is_some()).collect();
        ours.sort_by(|a, b| a.name.cmp(&b.name));
        Self { drive, machines: ours.into_iter().map(|m| m.id).collect() }
    }

    pub(crate) fn id(&self, index: usize) -> InstanceId {
        self.machines[index].clone()
    }

    pub(crate) fn at(&mut self, after: Span, fault: Fault) {
        self.drive.fault_in(after, fault);
    }

    /// These machines break in this way at once.
    fn break_all(&mut self, count: usize, trouble: Trouble) {
        for machine in self.machines.iter().take(count).cloned() {
            self.drive.fault(Fault::Breaks(machine, trouble));
        }
    }

    pub(crate) fn run(mut self, span: Span) -> Drive {
        self.drive.run_for(span);
        self.drive
    }
}

/// Many at once are allowed, in one zone, and nothing is too many.
pub(crate) fn generous(seed: u64, machines: u32) -> Layout {
    Layout::fleet(seed, machines).limits(|limits| {
        (limits.at_once, limits.per_hour, limits.freeze_above_pct) = (4, 40, 100);
    })
}

fn one_zone(layout: Layout) -> Layout {
    layout.pool(|pool| pool.zones.truncate(1))
}

pub(crate) fn pause(scope: PauseScope) -> Pause {
    Pause { scope, by: "ada".into(), reason: "maintenance".into() }
}

/// Safeguards that cover the same case. They are away in both plays, so that what is seen is the doing of this one alone.
pub(crate) const fn beside(safeguard: Safeguard) -> &'static [Safeguard] {
    match safeguard {
        Safeguard::ShrunkenServers => &[Safeguard::ZoneDark, Safeguard::FleetDark, Safeguard::Breaker],
        Safeguard::LostPorts => &[Safeguard::ShrunkenNodes],
        Safeguard::ShrunkenNodes => &[
            Safeguard::ZoneDark,
            Safeguard::FleetDark,
            Safeguard::Alive,
            Safeguard::Breaker,
            Safeguard::SomeNode,
            Safeguard::ShortGaps,
        ],
        Safeguard::SecondDenial => &[Safeguard::EvidenceFirst],
        Safeguard::Alive => &[Safeguard::Patience],
        // A machine whose build ended a moment ago is left alone for a minute, and joins within it.
        Safeguard::Patience => &[Safeguard::JustReleased],
        Safeguard::SameCluster => &[
            Safeguard::ShrunkenNodes,
            Safeguard::ZoneDark,
            Safeguard::FleetDark,
            Safeguard::Breaker,
            Safeguard::ShortGaps,
        ],
        Safeguard::RememberedNodes | Safeguard::LostTogether => {
            &[Safeguard::ZoneDark, Safeguard::FleetDark, Safeguard::Breaker, Safeguard::ShortGaps]
        }
        // The agent and the controller read the same drain.
        Safeguard::AgentHolds => &[Safeguard::Drained],
        // The lease of the Node that it took over is its own.
        Safeguard::SharedIdentity => &[Safeguard::Alive],
        // Their courses end a pause at the wrong moment, and its end alone gives the time of a boot.
        Safeguard::OpenFate | Safeguard::TakenBack => &[Safeguard::JustReleased],
        // Where every lease is silent, every zone is.
        Safeguard::FleetDark => &[Safeguard::ZoneDark],
        _ => &[],
    }
}

/// What the hunt found before there was this safeguard, to the end of its faults.
fn hunted(kept: &str) -> Drive {
    let seed = Seed::read(kept).unwrap_or_else(|why| panic!("a kept seed: {why}"));
    let scenario_run = seed.quarry.scenario_run().unwrap_or_else(|why| panic!("its faults: {why}"));
    let mut drive = scenario_run.stage().judged();
    drive.run_for(scenario_run.length);
    drive
}

/// Plays the safeguard's story under this seed to its end.
pub(crate) fn play(safeguard: Safeguard, seed: u64) -> Drive {
    match safeguard {
        Safeguard::Freshness
        | Safeguard::ShrunkenServers
        | Safeguard::LostPorts
        | Safeguard::ShrunkenNodes
        | Safeguard::DeniedById
        | Safeguard::SecondDenial
        | Safeguard::UnbrokenSight
        | Safeguard::AsksInFullSeldom
        | Safeguard::Settling => observations(safeguard, seed),
        Safeguard::JoinedMemory
        | Safeguard::IntentFirst
        | Safeguard::AskedAgain
        | Safeguard::FreshRead
        | Safeguard::RightsReturn
        | Safeguard::UnseenPatience
        | Safeguard::OwnProof
        | Safeguard::Unfinished
        | Safeguard::LedgerWritable
        | Safeguard::Leadership
        | Safeguard::DryRun => intents(safeguard, seed),
        Safeguard::Patience
        | Safeguard::RootFirst
        | Safeguard::Backoff
        | Safeguard::TriesEnd
        | Safeguard::EvidenceFirst
        | Safeguard::NoUse
        | Safeguard::HistoryKnown
        | Safeguard::RequestOnce
        | Safeguard::Kept
        | Safeguard::Modes => escalation(safeguard, seed),
        Safeguard::AgentHeard
        | Safeguard::AgentHolds
        | Safeguard::AgentsLost
        | Safeguard::OneAsk
        | Safeguard::AgentIdentity => agents(safeguard, seed),
        Safeguard::RolesAfresh => access(seed),
        Safeguard::JudgedAgain
        | Safeguard::RememberedNodes
        | Safeguard::LostTogether
        | Safeguard::SameCluster
        | Safeguard::SomeNode => starts::play(safeguard, seed),
        Safeguard::SharedIdentity | Safeguard::OwnHome | Safeguard::Drained | Safeguard::BornInSight => {
            identities::play(safeguard, seed)
        }
        Safeguard::YoungDenial
        | Safeguard::GroupKeeps
        | Safeguard::GroupHands
        | Safeguard::TakenBack
        | Safeguard::DisksKept => hosted::play(safeguard, seed),
        Safeguard::OwnRoutes
        | Safeguard::KeptGroups
        | Safeguard::RouterRoom
        | Safeguard::PortsOfOthers
        | Safeguard::SecondListing => network(safeguard, seed),
        Safeguard::Pauses
        | Safeguard::Alive
        | Safeguard::Ownership
        | Safeguard::OwnedAtTheAct
        | Safeguard::Contested
        | Safeguard::OtherActors
        | Safeguard::Locked
        | Safeguard::Rollout => others(safeguard, seed),
        Safeguard::PausedByName | Safeguard::ShortGaps => in_hand::play(safeguard, seed),
        Safeguard::TakenOut | Safeguard::PortAddresses => in_hand::play(safeguard, seed),
        Safeguard::FreezeSettles => recovering(seed),
        Safeguard::JustReleased => released(seed),
        Safeguard::OutOfSight => hunted(include_str!("../seeds/5152006.txt")),
        Safeguard::DrainsUnseen => hunted(include_str!("../seeds/7000148.txt")),
        Safeguard::LivesAccounted => drained_in_a_gap(seed),
        Safeguard::GoingUncounted => hunted(include_str!("../seeds/4000381.txt")),
        Safeguard::UnlistedDeletions => hunted(include_str!("../seeds/5701372.txt")),
        Safeguard::BelievedLeases => hunted(include_str!("../seeds/5809872.txt")),
        Safeguard::LaterReplacement => joined_before(seed),
        Safeguard::SilentLeases => hunted(include_str!("../seeds/3271897.txt")),
        Safeguard::OpenFate => deleted_beside_a_person(seed),
        Safeguard::LogAgain => rebooted_by_a_person(seed),
        Safeguard::ZoneDark
        | Safeguard::FleetDark
        | Safeguard::Breaker
        | Safeguard::AtOnce
        | Safeguard::PerHour
        | Safeguard::ProbeWidth
        | Safeguard::CoolDown
        | Safeguard::PoolMinimum
        | Safeguard::FreedRoom
        | Safeguard::Futile => budgets(safeguard, seed),
    }
}

/// Two machines join while one replacement waits for its successor. Hours later all that its pool makes fails, and the process
/// dies when it deletes the first of those.
fn joined_before(seed: u64) -> Drive {
    let mut stage = Stage::new(&generous(seed, 12));
    let pool: PoolName = "workers".into();
    let launch = |trouble| Fault::Launch { pool: pool.clone(), trouble };
    let calls = |count: usize| move |drive: &Drive| drive.world.calls().len() >= count;
    stage.at(s(10), launch(Some(Trouble::BuildFails)));
    stage.drive.run_until(min(60), calls(1));
    stage.at(s(30), launch(None));
    stage.drive.run_for(min(90));
    stage.at(s(10), Fault::BadImage(pool.clone(), Some(Trouble::BuildFails)));
    stage.at(s(20), launch(Some(Trouble::BuildFails)));
    stage.drive.mishap_in(s(15), Mishap::CrashAt(CrashPoint::BeforeDone, s(90)));
    stage.run(min(5 * 60))
}

/// For five hours no process runs. A person makes a machine, drains it, and keeps it to look at; when a process runs again,
/// nothing tells of that any more.
fn drained_in_a_gap(seed: u64) -> Drive {
    let mut stage = Stage::new(&generous(seed, 12));
    let (pool, serves, keeps) = ("workers".into(), min(30), min(24 * 60));
    stage.drive.mishap_in(s(10), Mishap::Crash(min(5 * 60)));
    stage.at(min(60), Fault::Tried { pool, serves, marked_after: None, keeps });
    stage.run(min(8 * 60))
}

/// An operator has a broken machine in a rescue for long enough that it is due, repairs it, and lets it boot.
fn released(seed: u64) -> Drive {
    let mut stage = Stage::new(&generous(seed, 12));
    let first = stage.id(0);
    stage.at(s(10), Fault::Breaks(first.clone(), Trouble::Broken));
    stage.at(s(20), Fault::Rescued(first, min(20)));
    stage.run(min(30))
}

/// Nothing is done for a machine whose kubelet hangs, because a person deleted another one of its pool. They reboot it a moment
/// before that time is over.
fn rebooted_by_a_person(seed: u64) -> Drive {
    let mut stage = Stage::new(&generous(seed, 12).pool(|pool| pool.repair.rejoin = Mode::Off));
    let (first, second) = (stage.id(0), stage.id(1));
    stage.at(s(10), Fault::Breaks(first.clone(), Trouble::KubeletHung));
    stage.at(min(3), Fault::ForeignDelete(second));
    let others =
        |drive: &Drive| drive.state().context().others.of(&"workers".into()).map(|others| others.until).max();
    stage.drive.run_until(min(20), |drive| others(drive).is_some());
    // It is noticed once more when the machine is denied.
    stage.drive.run_for(min(5));
    let until = others(&stage.drive).unwrap_or(stage.drive.now());
    stage.drive.run_for(until.since(stage.drive.now() + s(12)));
    stage.drive.fault(Fault::Rebooted(first));
    stage.run(min(30))
}

/// A machine in ERROR may be deleted from now on. A person has just deleted another one, of which the cloud says nothing, because
/// that part of it does not answer.
fn deleted_beside_a_person(seed: u64) -> Drive {
    let mut stage = Stage::new(&generous(seed, 12));
    let (first, second) = (stage.id(0), stage.id(1));
    stage.drive.set_pauses([pause(PauseScope::Roster)].into());
    stage.at(s(10), Fault::Errored(first));
    stage.drive.run_for(min(10));
    stage.drive.fault(Fault::SomeUnlisted { machines: vec![second.clone()], lasts: min(15), denies: false });
    stage.at(s(1), Fault::ForeignDelete(second));
    stage.drive.run_for(min(4));
    stage.drive.set_pauses([].into());
    stage.run(min(30))
}

/// Sixteen of forty machines fall silent together, and come back one after another.
fn recovering(seed: u64) -> Drive {
    let layout = Layout::fleet(seed, 40).limits(|limits| (limits.at_once, limits.per_hour) = (4, 40));
    let mut stage = Stage::new(&layout.pool(|pool| pool.repair.rejoin = Mode::Off));
    stage.at(s(10), Fault::ManySilent { share_pct: 40, lasts: min(12), every: s(4) });
    stage.run(min(40))
}

fn observations(safeguard: Safeguard, seed: u64) -> Drive {
    let mut stage = Stage::new(&generous(seed, 12));
    let (first, second) = (stage.id(0), stage.id(1));
    match safeguard {
        // A machine breaks, the cluster's API server falls silent, and meanwhile a person repairs the machine.
        Safeguard::Freshness => {
            stage.at(s(10), Fault::Breaks(first.clone(), Trouble::KubeletHung));
            stage.at(min(2), Fault::ApiSilent(min(40)));
            let at = stage.drive.now() + min(4);
            stage.drive.world.schedule_kubelet_restart(at, &first);
        }
        // The credentials lead into another project: empty list, and every id denied.
        Safeguard::ShrunkenServers => {
            stage.at(s(10), Fault::Breaks(first, Trouble::Broken));
            stage.at(min(2), Fault::AnotherProject(min(40)));
        }
        // Neutron answers with an empty list for a while: each listing of changes is doubted as the full ones are.
        Safeguard::AsksInFullSeldom => {
            stage = Stage::new(&generous(seed, 12).routed());
            stage.at(min(1), Fault::PortsUnlisted(min(40)));
        }
        Safeguard::LostPorts => {
            stage = Stage::new(&generous(seed, 12).routed());
            stage.at(min(1), Fault::PortsUnlisted(min(40)));
            stage.at(min(2), Fault::NodesUnlisted(min(40)));
        }
        // An etcd restored from the day before the cluster was made: no node, and no lease.
        Safeguard::ShrunkenNodes => {
            stage.at(min(2), Fault::NodesUnlisted(min(60)));
        }
        // The cell of a broken machine is down: lists lack it, and no answer denies it.
        Safeguard::DeniedById => {
            stage.at(s(10), Fault::Breaks(first.clone(), Trouble::Broken));
            let lie = Fault::SomeUnlisted { machines: vec![first], lasts: min(40), denies: false };
            stage.at(min(2), lie);
        }
        // One answer of "no such id" from a replica that lags, and the next is right.
        Safeguard::SecondDenial => {
            stage.at(s(10), Fault::Breaks(first.clone(), Trouble::Broken));
            // A listing and the read that follows it fall into the lie; the next read, ten seconds later, does not.
            let lie = Fault::SomeUnlisted { machines: vec![first], lasts: s(8), denies: true };
            stage.at(s(118), lie);
            return stage.run(min(9));
        }
        // The process stands still while a machine breaks; when it goes on, that was long ago, and just now.
        Safeguard::UnbrokenSight => {
            stage.at(s(10), Fault::Breaks(first, Trouble::Broken));
            stage.at(s(10), Fault::Errored(second));
            stage.drive.mishap_in(s(25), Mishap::Pause(min(20)));
        }
        // A machine is given up, the cluster falls silent a moment later, and when it comes back everything is due at once.
        _ => {
            stage.at(s(115), Fault::Errored(first));
            stage.at(min(2), Fault::ApiSilent(min(5)));
        }
    }
    stage.run(min(75))
}

fn intents(safeguard: Safeguard, seed: u64) -> Drive {
    let layout = generous(seed, 12);
    let mut stage = match safeguard {
        Safeguard::DryRun => Stage::of(Drive::observing(&layout)),
        _ => Stage::new(&layout),
    };
    let first = stage.id(0);
    match safeguard {
        Safeguard::JoinedMemory => {
            stage.drive.mishap_in(min(1), Mishap::Crash(min(90)));
            stage.at(min(5), Fault::NodeDeletedByPerson(first));
            return stage.run(min(120));
        }
        // A person sets a pause between the decision and the call.
        Safeguard::AskedAgain => {
            stage.at(s(10), Fault::Breaks(first, Trouble::KubeletHung));
            let recording = |drive: &Drive| {
                let operations = &drive.state().context().book.operations;
                operations.values().any(|operation| operation.phase == Phase::Recording)
            };
            stage.drive.run_until(min(40), recording);
            stage.drive.set_pauses([pause(PauseScope::Roster)].into());
        }
        // Rebooting is forbidden for half an hour, deleting is not. No reboot helps against a kubelet that is broken for good.
        Safeguard::RightsReturn => {
            stage.at(s(5), Fault::RightsLost(Right::Reboot, min(30)));
            stage.at(s(10), Fault::Breaks(first, Trouble::Broken));
            return stage.run(min(60));
        }
        Safeguard::UnseenPatience | Safeguard::OwnProof => return hosted::unseen(safeguard, seed),
        // The call takes effect, and the process dies before it hears of it. The machine stays as it is.
        Safeguard::Unfinished => {
            stage.at(s(10), Fault::Breaks(first, Trouble::Broken));
            for minute in [1, 25, 50] {
                stage.drive.mishap_in(min(minute), Mishap::CrashAt(CrashPoint::BeforeDone, s(2)));
            }
            return stage.run(min(120));
        }
        Safeguard::LedgerWritable => {
            stage.drive.mishap_in(s(20), Mishap::DiskFull(min(10)));
            for index in 0..6 {
                let after = s(30 + 31 * index as i64);
                let machine = stage.id(index);
                stage.at(after, Fault::GroupLost { machine, slips: false });
            }
        }
        Safeguard::Leadership => {
            let second = stage.id(1);
            stage.at(s(10), Fault::GroupLost { machine: first, slips: false });
            stage.at(min(3), Fault::GroupLost { machine: second, slips: false });
            stage.drive.mishap_in(s(1), Mishap::Deposed);
        }
        _ => stage.at(s(10), Fault::Breaks(first, Trouble::KubeletHung)),
    }
    stage.run(min(60))
}

fn escalation(safeguard: Safeguard, seed: u64) -> Drive {
    let layout = generous(seed, 12);
    let layout = match safeguard {
        Safeguard::Modes => layout.pool(|pool| {
            (pool.repair.reboot, pool.repair.replace) = (Mode::Propose, Mode::Propose);
        }),
        Safeguard::Kept => layout.pool(|pool| {
            pool.repair.reboot = Mode::Off;
            pool.keep = Some(Keep { within: min(600), at_most: 1, failed: true });
        }),
        Safeguard::HistoryKnown => {
            let mut layout = layout;
            layout.nodeless = vec![Trouble::BadToken];
            layout
        }
        _ => layout,
    };
    let mut stage = Stage::new(&layout);
    let first = stage.id(0);
    match safeguard {
        Safeguard::RootFirst => stage.at(s(10), Fault::GroupLost { machine: first, slips: true }),
        Safeguard::Backoff => {
            stage.at(s(10), Fault::GroupLost { machine: first, slips: false });
            for _ in 0..4 {
                stage.at(s(1), Fault::Call(CallLie::Fails { retry_after: None }));
            }
        }
        Safeguard::TriesEnd => {
            stage.at(s(10), Fault::GroupLost { machine: first, slips: true });
            return stage.run(min(600));
        }
        Safeguard::NoUse => {
            let trouble = Some(Trouble::NoNetwork);
            stage.at(s(10), Fault::Launch { pool: "workers".into(), trouble });
        }
        Safeguard::HistoryKnown => {}
        // A person asks for one repair, which helps; the annotation stays, and the machine breaks again.
        Safeguard::RequestOnce => {
            stage.at(s(10), Fault::Breaks(first.clone(), Trouble::KubeletHung));
            stage.drive.run_for(min(2));
            stage.drive.world.annotate(&first, "ada", REPAIR_NOW, Some("OPS-7"));
            stage.at(min(40), Fault::Breaks(first, Trouble::KubeletHung));
        }
        _ => stage.at(s(10), Fault::Breaks(first, Trouble::Broken)),
    }
    stage.run(min(90))
}

/// A service user loses a role while everything is paused, which is known for minutes when the pause ends; meanwhile an
/// administrator gave it back.
fn access(seed: u64) -> Drive {
    let mut layout = generous(seed, 2);
    let user = UserRef::Name { name: "ccm".into(), domain: None };
    let roles = vec![RoleRef::Name("member".into())];
    layout.access.users = vec![ServiceUser { cloud: CLOUD.into(), user: user.into(), roles }];
    (layout.access.repair, layout.access.check_every) = (Mode::Act, min(5));
    let mut stage = Stage::new(&layout);
    stage.drive.set_pauses([pause(PauseScope::Roster)].into());
    stage.at(s(10), Fault::RoleLost("ccm".into(), "member".into()));
    stage.at(min(5), Fault::RoleGiven("ccm".into(), "member".into()));
    stage.drive.run_for(min(6));
    stage.drive.set_pauses([].into());
    stage.run(min(10))
}

fn network(safeguard: Safeguard, seed: u64) -> Drive {
    let mut layout = generous(seed, 10).routed();
    layout.default_group = safeguard == Safeguard::KeptGroups;
    layout.variety.vips =
        if matches!(safeguard, Safeguard::PortsOfOthers | Safeguard::SecondListing) { 3 } else { 0 };
    let mut stage = Stage::new(&layout);
    let first = stage.id(0);
    match safeguard {
        Safeguard::OwnRoutes => stage.at(s(10), Fault::ForeignRoutes(4)),
        Safeguard::KeptGroups => stage.at(s(10), Fault::GroupLost { machine: first, slips: false }),
        // A route leads through a VIP: on a port of its own, in an allowed address pair, on a leg of a router.
        Safeguard::PortsOfOthers => stage.at(s(10), Fault::DuplicateRoute(first)),
        // The VIP's port is deleted and made again, and one listing falls between.
        Safeguard::SecondListing => stage.at(s(25), Fault::VipsAway(s(9))),
        // The router is full, which shows when a newcomer's route is refused; then a machine breaks.
        _ => {
            stage.at(s(10), Fault::RouteLimit(10));
            stage.at(s(20), Fault::Launch { pool: "workers".into(), trouble: None });
            stage.at(min(10), Fault::Breaks(first, Trouble::Broken));
            return stage.run(min(120));
        }
    }
    stage.run(min(30))
}

fn others(safeguard: Safeguard, seed: u64) -> Drive {
    let mut layout = generous(seed, 12);
    layout.neighbours = if safeguard == Safeguard::Ownership { 3 } else { 0 };
    let mut stage = Stage::new(&layout);
    let first = stage.id(0);
    if safeguard != Safeguard::Alive {
        stage.at(min(1), Fault::Breaks(first.clone(), Trouble::Broken));
    }
    match safeguard {
        Safeguard::Pauses => stage.drive.set_pauses([pause(PauseScope::Pool("workers".into()))].into()),
        // Its cloud gives an instance up whose node has not noticed yet.
        Safeguard::Alive => {
            stage.at(s(10), Fault::Errored(first));
            return stage.run(s(40));
        }
        // An operator takes the pool's tag off, which Nova shows in no list of changes, while the reboot is on its way.
        Safeguard::OwnedAtTheAct => stage.at(min(2), Fault::Call(CallLie::Unmarked)),
        Safeguard::Contested => stage.at(s(10), Fault::NodeTwin(first)),
        Safeguard::OtherActors => stage.at(min(2), Fault::Busy(first)),
        Safeguard::Locked => stage.at(min(2), Fault::Locked(first)),
        _ => {
            let second = stage.id(1);
            stage.at(s(10), Fault::Rollout("workers".into()));
            stage.at(min(5), Fault::Breaks(second, Trouble::Broken));
        }
    }
    stage.run(min(60))
}

fn budgets(safeguard: Safeguard, seed: u64) -> Drive {
    let layout = generous(seed, 12);
    let layout = match safeguard {
        Safeguard::Breaker => layout.limits(|limits| limits.freeze_above_pct = 20),
        Safeguard::AtOnce => layout.limits(|limits| limits.at_once = 1),
        // Four machines lose their group at once, and one network repair is allowed at a time.
        Safeguard::FreedRoom => layout.limits(|limits| limits.network_at_once = 1),
        Safeguard::PerHour => layout.limits(|limits| limits.per_hour = 1),
        Safeguard::ProbeWidth | Safeguard::CoolDown => one_zone(layout),
        Safeguard::PoolMinimum => one_zone(layout).pool(|pool| {
            pool.min = 12;
            pool.repair.reboot = Mode::Off;
        }),
        Safeguard::Futile => one_zone(layout).limits(|limits| limits.at_once = 1),
        _ => layout,
    };
    let mut stage = Stage::new(&layout);
    match safeguard {
        Safeguard::ZoneDark => stage.at(s(10), Fault::ZoneDark(ZoneName::from("nova-a"), min(80))),
        Safeguard::FleetDark => {
            stage.break_all(1, Trouble::Broken);
            stage.at(s(10), Fault::LeasesFrozen(min(80)));
        }
        Safeguard::Futile => {
            stage.at(s(5), Fault::BadImage("workers".into(), Some(Trouble::NoNetwork)));
            stage.at(s(10), Fault::Launch { pool: "workers".into(), trouble: None });
            return stage.run(min(900));
        }
        Safeguard::PoolMinimum => stage.break_all(1, Trouble::Broken),
        Safeguard::FreedRoom => {
            for machine in stage.machines.clone().into_iter().take(4) {
                stage.at(s(10), Fault::GroupLost { machine, slips: false });
            }
        }
        _ => stage.break_all(4, Trouble::Broken),
    }
    stage.run(min(90))
}

/// Machines whose agents report. Told as scenarios are, because that is how they are put on machines.
fn agents(safeguard: Safeguard, seed: u64) -> Drive {
    let (given, when) = match safeguard {
        // Its kubelet is silent, and its agent is not.
        Safeguard::AgentHeard => ("repair rejoin off", "at 5m the kubelet of workers-1 hangs"),
        // A drain by hand leaves no sign on what is gone; the agent remembers it.
        Safeguard::AgentHolds => (
            "agent setting inspect-every 30s",
            "at 5m an operator cordons the node of workers-1\n  at 8m an operator deletes the node of workers-1",
        ),
        // No machine reaches the API server, only Reveille does, and one machine without an agent is silent as well.
        Safeguard::AgentsLost => (
            "limit freeze-above 100%",
            "at 5m workers-1..4 are cut off from the API server for 60m\n  at 6m the kubelet of workers-9 hangs",
        ),
        // It was asked because of one fault, and another opens before its time is over.
        Safeguard::OneAsk => (
            "agent setting inspect-every 1h\n  the agent of workers-1 says that it does what it is asked, and does nothing",
            "at 5m the kubelet of workers-1 hangs\n  at 11m an operator deletes the node of workers-1",
        ),
        _ => (
            "agent setting inspect-every 1h\n  the agent of workers-1 knows nothing of it but its name",
            "at 5m an operator deletes the node of workers-1",
        ),
    };
    let text = format!(
        "scenario S1 A story of a safeguard\nsource docs/internals/saboteurs.md\ngiven\n  seed {seed}\n  \
         pool workers of 10 machines in zones a\n  an agent runs on workers-1..4\n  \
         the agent of workers-1..4 reports to Reveille\n  {given}\nwhen\n  {when}\n  ends at 40m\n\
         then\n  at the end  workers-10 exists\n"
    );
    let scenario = parse(&text).unwrap_or_else(|refusal| panic!("{refusal}\n{text}"));
    play_to_rest(&scenario).unwrap_or_else(|refusal| panic!("{refusal}\n{text}")).drive
}
