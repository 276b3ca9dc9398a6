//! For each guard a course of events in which only that guard stands between the engine and a mistake.
//!
//! A story is as short as it can be: the one fault that the guard is there for, and whatever would otherwise keep the
//! engine from acting (another guard that also covers the case) left out of the roster's way. With the guard standing every
//! story must be played without a foul; that is tested as well, so a story cannot convict an innocent.

use reveille_core::event::{Pause, PauseScope};
use reveille_core::guard::Guard;
use reveille_core::model::access::{RoleRef, ServiceUser, UserRef};
use reveille_core::model::id::{InstanceId, PoolName, ZoneName};
use reveille_core::model::roster::{Keep, Mode};
use reveille_core::model::signs::REPAIR_NOW;
use reveille_core::model::time::Span;
use reveille_core::plan::budget::Phase;
use reveille_sim::drive::{CrashPoint, Drive, Mishap};
use reveille_sim::hunt::seed::Seed;
use reveille_sim::scenario::{parse, play_to_rest};
use reveille_sim::world::fault::{CallLie, Fault, Right};
use reveille_sim::world::layout::{CLOUD, Layout};
use reveille_sim::world::vm::Trouble;

use super::{hosted, identities, starts};

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
        let mut drive = drive.refereed();
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

/// Guards that cover the same case. They are away in both plays, so that what is seen is the doing of this one alone.
pub(crate) const fn beside(guard: Guard) -> &'static [Guard] {
    match guard {
        Guard::ShrunkenServers => &[Guard::ZoneDark, Guard::FleetDark, Guard::Breaker],
        Guard::LostPorts => &[Guard::ShrunkenNodes],
        Guard::ShrunkenNodes => {
            &[Guard::ZoneDark, Guard::FleetDark, Guard::Alive, Guard::Breaker, Guard::SomeNode]
        }
        Guard::SecondDenial => &[Guard::EvidenceFirst],
        Guard::Alive => &[Guard::Patience],
        // A machine whose build ended a moment ago is left alone for a minute, and joins within it.
        Guard::Patience => &[Guard::JustReleased],
        Guard::SameCluster => &[Guard::ShrunkenNodes, Guard::ZoneDark, Guard::FleetDark, Guard::Breaker],
        Guard::RememberedNodes | Guard::LostTogether => &[Guard::ZoneDark, Guard::FleetDark, Guard::Breaker],
        // The agent and the controller read the same drain.
        Guard::AgentHolds => &[Guard::Drained],
        // The lease of the Node that it took over is its own.
        Guard::SharedIdentity => &[Guard::Alive],
        // Their courses end a pause at the wrong moment, and its end alone gives the time of a boot.
        Guard::OpenFate | Guard::TakenBack => &[Guard::JustReleased],
        // Where every lease is silent, every zone is.
        Guard::FleetDark => &[Guard::ZoneDark],
        _ => &[],
    }
}

/// What the hunt found before there was this guard, to the end of its faults.
fn hunted(kept: &str) -> Drive {
    let seed = Seed::read(kept).unwrap_or_else(|why| panic!("a kept seed: {why}"));
    let course = seed.quarry.course().unwrap_or_else(|why| panic!("its faults: {why}"));
    let mut drive = course.stage().refereed();
    drive.run_for(course.length);
    drive
}

/// Plays the guard's story under this seed to its end.
pub(crate) fn play(guard: Guard, seed: u64) -> Drive {
    match guard {
        Guard::Freshness
        | Guard::ShrunkenServers
        | Guard::LostPorts
        | Guard::ShrunkenNodes
        | Guard::DeniedById
        | Guard::SecondDenial
        | Guard::UnbrokenSight
        | Guard::AsksInFullSeldom
        | Guard::Settling => observations(guard, seed),
        Guard::JoinedMemory
        | Guard::IntentFirst
        | Guard::AskedAgain
        | Guard::FreshRead
        | Guard::RightsReturn
        | Guard::UnseenPatience
        | Guard::OwnProof
        | Guard::Unfinished
        | Guard::LedgerWritable
        | Guard::Leadership
        | Guard::DryRun => intents(guard, seed),
        Guard::Patience
        | Guard::RootFirst
        | Guard::Backoff
        | Guard::TriesEnd
        | Guard::EvidenceFirst
        | Guard::NoUse
        | Guard::HistoryKnown
        | Guard::RequestOnce
        | Guard::Kept
        | Guard::Modes => ladder(guard, seed),
        Guard::AgentHeard | Guard::AgentHolds | Guard::AgentsLost | Guard::OneAsk | Guard::AgentIdentity => {
            agents(guard, seed)
        }
        Guard::RolesAfresh => access(seed),
        Guard::JudgedAgain
        | Guard::RememberedNodes
        | Guard::LostTogether
        | Guard::SameCluster
        | Guard::SomeNode => starts::play(guard, seed),
        Guard::SharedIdentity | Guard::Drained | Guard::BornInSight => identities::play(guard, seed),
        Guard::YoungDenial | Guard::GroupKeeps | Guard::GroupHands | Guard::TakenBack | Guard::DisksKept => {
            hosted::play(guard, seed)
        }
        Guard::OwnRoutes
        | Guard::KeptGroups
        | Guard::RouterRoom
        | Guard::PortsOfOthers
        | Guard::SecondListing => network(guard, seed),
        Guard::Pauses
        | Guard::Alive
        | Guard::Ownership
        | Guard::OwnedAtTheAct
        | Guard::Contested
        | Guard::OtherActors
        | Guard::Locked
        | Guard::Rollout => others(guard, seed),
        Guard::FreezeSettles => recovering(seed),
        Guard::JustReleased => released(seed),
        Guard::OutOfSight => hunted(include_str!("../seeds/3241487.txt")),
        Guard::GoingUncounted => hunted(include_str!("../seeds/4000381.txt")),
        Guard::UnlistedDeletions => hunted(include_str!("../seeds/5701372.txt")),
        Guard::BelievedLeases => hunted(include_str!("../seeds/5809872.txt")),
        Guard::LaterReplacement => joined_before(seed),
        Guard::SilentLeases => hunted(include_str!("../seeds/3271897.txt")),
        Guard::OpenFate => deleted_beside_a_person(seed),
        Guard::LogAgain => rebooted_by_a_person(seed),
        Guard::ZoneDark
        | Guard::FleetDark
        | Guard::Breaker
        | Guard::AtOnce
        | Guard::PerHour
        | Guard::ProbeWidth
        | Guard::CoolDown
        | Guard::PoolMinimum
        | Guard::FreedRoom
        | Guard::Futile => budgets(guard, seed),
    }
}

/// Two machines join while one replacement waits for its successor. Hours later all that its pool makes fails, and the process dies
/// when it deletes the first of those.
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
        |drive: &Drive| drive.state().desk().others.of(&"workers".into()).map(|others| others.until).max();
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

fn observations(guard: Guard, seed: u64) -> Drive {
    let mut stage = Stage::new(&generous(seed, 12));
    let (first, second) = (stage.id(0), stage.id(1));
    match guard {
        // A machine breaks, the cluster's API server falls silent, and meanwhile a person repairs the machine.
        Guard::Freshness => {
            stage.at(s(10), Fault::Breaks(first.clone(), Trouble::KubeletHung));
            stage.at(min(2), Fault::ApiSilent(min(40)));
            let at = stage.drive.now() + min(4);
            stage.drive.world.schedule_kubelet_restart(at, &first);
        }
        // The credentials lead into another project: empty list, and every id denied.
        Guard::ShrunkenServers => {
            stage.at(s(10), Fault::Breaks(first, Trouble::Broken));
            stage.at(min(2), Fault::AnotherProject(min(40)));
        }
        // Neutron answers with an empty list for a while: each listing of changes is doubted as the full ones are.
        Guard::AsksInFullSeldom => {
            stage = Stage::new(&generous(seed, 12).routed());
            stage.at(min(1), Fault::PortsUnlisted(min(40)));
        }
        Guard::LostPorts => {
            stage = Stage::new(&generous(seed, 12).routed());
            stage.at(min(1), Fault::PortsUnlisted(min(40)));
            stage.at(min(2), Fault::NodesUnlisted(min(40)));
        }
        // An etcd restored from the day before the cluster was made: no node, and no lease.
        Guard::ShrunkenNodes => {
            stage.at(min(2), Fault::NodesUnlisted(min(60)));
        }
        // The cell of a broken machine is down: lists lack it, and no answer denies it.
        Guard::DeniedById => {
            stage.at(s(10), Fault::Breaks(first.clone(), Trouble::Broken));
            let lie = Fault::SomeUnlisted { machines: vec![first], lasts: min(40), denies: false };
            stage.at(min(2), lie);
        }
        // One answer of "no such id" from a replica that lags, and the next is right.
        Guard::SecondDenial => {
            stage.at(s(10), Fault::Breaks(first.clone(), Trouble::Broken));
            // A listing and the read that follows it fall into the lie; the next read, ten seconds later, does not.
            let lie = Fault::SomeUnlisted { machines: vec![first], lasts: s(8), denies: true };
            stage.at(s(118), lie);
            return stage.run(min(9));
        }
        // The process stands still while a machine breaks; when it goes on, that was long ago, and just now.
        Guard::UnbrokenSight => {
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

fn intents(guard: Guard, seed: u64) -> Drive {
    let layout = generous(seed, 12);
    let mut stage = match guard {
        Guard::DryRun => Stage::of(Drive::observing(&layout)),
        _ => Stage::new(&layout),
    };
    let first = stage.id(0);
    match guard {
        Guard::JoinedMemory => {
            stage.drive.mishap_in(min(1), Mishap::Crash(min(90)));
            stage.at(min(5), Fault::NodeDeletedByPerson(first));
            return stage.run(min(120));
        }
        // A person sets a pause between the decision and the call.
        Guard::AskedAgain => {
            stage.at(s(10), Fault::Breaks(first, Trouble::KubeletHung));
            let recording = |drive: &Drive| {
                let flights = &drive.state().desk().book.flights;
                flights.values().any(|flight| flight.phase == Phase::Recording)
            };
            stage.drive.run_until(min(40), recording);
            stage.drive.set_pauses([pause(PauseScope::Roster)].into());
        }
        // Rebooting is forbidden for half an hour, deleting is not. No reboot helps against a kubelet that is broken for good.
        Guard::RightsReturn => {
            stage.at(s(5), Fault::RightsLost(Right::Reboot, min(30)));
            stage.at(s(10), Fault::Breaks(first, Trouble::Broken));
            return stage.run(min(60));
        }
        Guard::UnseenPatience | Guard::OwnProof => return hosted::unseen(guard, seed),
        // The call takes effect, and the process dies before it hears of it. The machine stays as it is.
        Guard::Unfinished => {
            stage.at(s(10), Fault::Breaks(first, Trouble::Broken));
            for minute in [1, 25, 50] {
                stage.drive.mishap_in(min(minute), Mishap::CrashAt(CrashPoint::BeforeDone, s(2)));
            }
            return stage.run(min(120));
        }
        Guard::LedgerWritable => {
            stage.drive.mishap_in(s(20), Mishap::DiskFull(min(10)));
            for index in 0..6 {
                let after = s(30 + 31 * index as i64);
                let machine = stage.id(index);
                stage.at(after, Fault::GroupLost { machine, slips: false });
            }
        }
        Guard::Leadership => {
            let second = stage.id(1);
            stage.at(s(10), Fault::GroupLost { machine: first, slips: false });
            stage.at(min(3), Fault::GroupLost { machine: second, slips: false });
            stage.drive.mishap_in(s(1), Mishap::Deposed);
        }
        _ => stage.at(s(10), Fault::Breaks(first, Trouble::KubeletHung)),
    }
    stage.run(min(60))
}

fn ladder(guard: Guard, seed: u64) -> Drive {
    let layout = generous(seed, 12);
    let layout = match guard {
        Guard::Modes => layout.pool(|pool| {
            (pool.repair.reboot, pool.repair.replace) = (Mode::Propose, Mode::Propose);
        }),
        Guard::Kept => layout.pool(|pool| {
            pool.repair.reboot = Mode::Off;
            pool.keep = Some(Keep { within: min(600), at_most: 1, failed: true });
        }),
        Guard::HistoryKnown => {
            let mut layout = layout;
            layout.nodeless = vec![Trouble::BadToken];
            layout
        }
        _ => layout,
    };
    let mut stage = Stage::new(&layout);
    let first = stage.id(0);
    match guard {
        Guard::RootFirst => stage.at(s(10), Fault::GroupLost { machine: first, slips: true }),
        Guard::Backoff => {
            stage.at(s(10), Fault::GroupLost { machine: first, slips: false });
            for _ in 0..4 {
                stage.at(s(1), Fault::Call(CallLie::Fails { retry_after: None }));
            }
        }
        Guard::TriesEnd => {
            stage.at(s(10), Fault::GroupLost { machine: first, slips: true });
            return stage.run(min(600));
        }
        Guard::NoUse => {
            let trouble = Some(Trouble::NoNetwork);
            stage.at(s(10), Fault::Launch { pool: "workers".into(), trouble });
        }
        Guard::HistoryKnown => {}
        // A person asks for one repair, which helps; the annotation stays, and the machine breaks again.
        Guard::RequestOnce => {
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

fn network(guard: Guard, seed: u64) -> Drive {
    let mut layout = generous(seed, 10).routed();
    layout.default_group = guard == Guard::KeptGroups;
    layout.variety.vips = if matches!(guard, Guard::PortsOfOthers | Guard::SecondListing) { 3 } else { 0 };
    let mut stage = Stage::new(&layout);
    let first = stage.id(0);
    match guard {
        Guard::OwnRoutes => stage.at(s(10), Fault::ForeignRoutes(4)),
        Guard::KeptGroups => stage.at(s(10), Fault::GroupLost { machine: first, slips: false }),
        // A route leads through a VIP: on a port of its own, in an allowed address pair, on a leg of a router.
        Guard::PortsOfOthers => stage.at(s(10), Fault::DuplicateRoute(first)),
        // The VIP's port is deleted and made again, and one listing falls between.
        Guard::SecondListing => stage.at(s(25), Fault::VipsAway(s(9))),
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

fn others(guard: Guard, seed: u64) -> Drive {
    let mut layout = generous(seed, 12);
    layout.neighbours = if guard == Guard::Ownership { 3 } else { 0 };
    let mut stage = Stage::new(&layout);
    let first = stage.id(0);
    if guard != Guard::Alive {
        stage.at(min(1), Fault::Breaks(first.clone(), Trouble::Broken));
    }
    match guard {
        Guard::Pauses => stage.drive.set_pauses([pause(PauseScope::Pool("workers".into()))].into()),
        // Its cloud gives an instance up whose node has not noticed yet.
        Guard::Alive => {
            stage.at(s(10), Fault::Errored(first));
            return stage.run(s(40));
        }
        // An operator takes the pool's tag off, which Nova shows in no list of changes, while the reboot is on its way.
        Guard::OwnedAtTheAct => stage.at(min(2), Fault::Call(CallLie::Unmarked)),
        Guard::Contested => stage.at(s(10), Fault::NodeTwin(first)),
        Guard::OtherActors => stage.at(min(2), Fault::Busy(first)),
        Guard::Locked => stage.at(min(2), Fault::Locked(first)),
        _ => {
            let second = stage.id(1);
            stage.at(s(10), Fault::Rollout("workers".into()));
            stage.at(min(5), Fault::Breaks(second, Trouble::Broken));
        }
    }
    stage.run(min(60))
}

fn budgets(guard: Guard, seed: u64) -> Drive {
    let layout = generous(seed, 12);
    let layout = match guard {
        Guard::Breaker => layout.limits(|limits| limits.freeze_above_pct = 20),
        Guard::AtOnce => layout.limits(|limits| limits.at_once = 1),
        // Four machines lose their group at once, and one network repair is allowed at a time.
        Guard::FreedRoom => layout.limits(|limits| limits.network_at_once = 1),
        Guard::PerHour => layout.limits(|limits| limits.per_hour = 1),
        Guard::ProbeWidth | Guard::CoolDown => one_zone(layout),
        Guard::PoolMinimum => one_zone(layout).pool(|pool| {
            pool.min = 12;
            pool.repair.reboot = Mode::Off;
        }),
        Guard::Futile => one_zone(layout).limits(|limits| limits.at_once = 1),
        _ => layout,
    };
    let mut stage = Stage::new(&layout);
    match guard {
        Guard::ZoneDark => stage.at(s(10), Fault::ZoneDark(ZoneName::from("nova-a"), min(80))),
        Guard::FleetDark => {
            stage.break_all(1, Trouble::Broken);
            stage.at(s(10), Fault::LeasesFrozen(min(80)));
        }
        Guard::Futile => {
            stage.at(s(5), Fault::BadImage("workers".into(), Some(Trouble::NoNetwork)));
            stage.at(s(10), Fault::Launch { pool: "workers".into(), trouble: None });
            return stage.run(min(900));
        }
        Guard::PoolMinimum => stage.break_all(1, Trouble::Broken),
        Guard::FreedRoom => {
            for machine in stage.machines.clone().into_iter().take(4) {
                stage.at(s(10), Fault::GroupLost { machine, slips: false });
            }
        }
        _ => stage.break_all(4, Trouble::Broken),
    }
    stage.run(min(90))
}

/// Machines whose agents report. Told as scenarios are, because that is how they are put on machines.
fn agents(guard: Guard, seed: u64) -> Drive {
    let (given, when) = match guard {
        // Its kubelet is silent, and its agent is not.
        Guard::AgentHeard => ("repair rejoin off", "at 5m the kubelet of workers-1 hangs"),
        // A drain by hand leaves no sign on what is gone; the agent remembers it.
        Guard::AgentHolds => (
            "agent setting inspect-every 30s",
            "at 5m somebody cordons the node of workers-1\n  at 8m somebody deletes the node of workers-1",
        ),
        // No machine reaches the API server, only Reveille does, and one machine without an agent is silent as well.
        Guard::AgentsLost => (
            "limit freeze-above 100%",
            "at 5m workers-1..4 are cut off from the API server for 60m\n  at 6m the kubelet of workers-9 hangs",
        ),
        // It was asked because of one fault, and another opens before its time is over.
        Guard::OneAsk => (
            "agent setting inspect-every 1h\n  the agent of workers-1 says that it does what it is asked, and does nothing",
            "at 5m the kubelet of workers-1 hangs\n  at 11m somebody deletes the node of workers-1",
        ),
        _ => (
            "agent setting inspect-every 1h\n  the agent of workers-1 knows nothing of it but its name",
            "at 5m somebody deletes the node of workers-1",
        ),
    };
    let text = format!(
        "scenario S1 A story of a guard\nsource docs/internals/saboteurs.md\ngiven\n  seed {seed}\n  \
         pool workers of 10 machines in zones a\n  an agent runs on workers-1..4\n  \
         the agent of workers-1..4 reports to Reveille\n  {given}\nwhen\n  {when}\n  ends at 40m\n\
         then\n  at the end  workers-10 exists\n"
    );
    let scenario = parse(&text).unwrap_or_else(|refusal| panic!("{refusal}\n{text}"));
    play_to_rest(&scenario).unwrap_or_else(|refusal| panic!("{refusal}\n{text}")).drive
}
