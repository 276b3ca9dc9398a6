//! Every fault by name: what it is, how often it is drawn, and how it is drawn.
//!
//! One line of [`CATALOG`] is one fault of the fleet; those of service users stand in [`access`], what a provider does in
//! [`hosting`], what fleets with variety bring in [`variety`]; all are drawn beside them.
//! A name is stable: seeds and command lines hold it. A rate is a weight: of all
//! happenings, so many are of this kind as its share of the sum. [`Rates`] takes some of them away or makes them rarer.

// tidy: long because it is one table

use std::collections::BTreeMap;
use std::fmt::{self, Write as _};

use reveille_core::effect::ReadErrorKind;
use reveille_core::model::time::Span;

use super::Happening;
use super::access;
use super::crowds;
use super::dice::{Dice, Drawn, call, one, process};
use super::entry::{Entry, catalog};
use super::gaps;
use super::hands;
use super::hosting;
use super::impostors;
use super::liars;
use super::operators;
use super::relapse;
use super::short_gaps;
use super::variety;
use super::wakings;
use crate::drive::Mishap;
use crate::world::fault::{CallLie, Fault};
use crate::world::vm::Trouble;

catalog! {
    /// What happens to the fleet, to those who look after it and to us.
    // What calls do.
    "call-ignored" 4 "a call is accepted and does nothing" |_| call(CallLie::Ignored);
    "call-unanswered" 4 "a call takes effect and its answer is lost" |_| call(CallLie::Unanswered);
    "call-times-out" 3 "a call does nothing and its caller cannot know" |_| call(CallLie::TimesOut);
    "call-fails" 4 "a call fails" |_| call(CallLie::Fails { retry_after: None });
    "call-throttled" 3 "a call is refused with 429 and a time to wait" |_| call(CallLie::Fails { retry_after: Some(Span::from_s(30)) });
    "call-fails-and-works" 4 "a call is answered as failed and takes effect" |_| call(CallLie::FailsAndWorks);
    "call-late" 4 "a call takes effect minutes later" |dice| {
        let late = dice.rng.span(Span::from_s(20), Span::from_min(6));
        call(CallLie::Late(late))
    };
    "call-twice" 3 "a call takes effect twice" |_| call(CallLie::Twice);
    "call-overtaken" 3 "a call takes effect after the next one" |_| call(CallLie::Overtaken);
    "nudge-cut" 2 "a nudge puts its rule and dies before it takes it back" |_| call(CallLie::Cut);
    "answers-late" 3 "answers to reads and calls come minutes late" |dice| dice.lasting(Fault::AnswersLate);
    "answers-twice" 3 "answers to reads and calls come twice" |dice| dice.lasting(Fault::AnswersTwice);
    // What the cloud says.
    "servers-unlisted" 3 "the cloud lists no servers, with 200: a cell is down, servers are denied by id, or it is another project" |dice| {
        let lasts = dice.lasts();
        one(match dice.rng.below(100) {
            0..25 => Fault::ServersUnlisted { lasts, denies: true },
            25..50 => Fault::AnotherProject(lasts),
            _ => Fault::ServersUnlisted { lasts, denies: false },
        })
    };
    "some-unlisted" 3 "the cloud's list lacks some servers, with 200" |dice| {
        let (machines, lasts, denies) = (dice.some(), dice.lasts(), dice.rng.chance(50));
        one(Fault::SomeUnlisted { machines, lasts, denies })
    };
    "ports-unlisted" 2 "the cloud lists no ports, with 200" |dice| dice.lasting(Fault::PortsUnlisted);
    "pages-repeat" 2 "the cloud's pages repeat: machines and ports are listed twice" |dice| dice.lasting(Fault::PagesRepeat);
    "pages-missing" 3 "a page of every listing is missing, and is noticed" |dice| dice.cloud_fails(ReadErrorKind::Incomplete);
    "cloud-throttled" 3 "the cloud answers 429" |dice| dice.cloud_fails(ReadErrorKind::Throttled);
    "cloud-unavailable" 3 "the cloud answers 503" |dice| dice.cloud_fails(ReadErrorKind::Unavailable);
    "cloud-times-out" 3 "the cloud does not answer in time" |dice| dice.cloud_fails(ReadErrorKind::TimedOut);
    "credentials-expired" 2 "the cloud does not accept our credentials any more" |dice| dice.cloud_fails(ReadErrorKind::Unauthorized);
    "said-stopped" 1 "the cloud says of a running machine that it is shut off" |dice| {
        let (machine, lasts) = (dice.machine(), dice.lasts());
        one(Fault::SaidStopped(machine, lasts))
    };
    // What the cluster says.
    "nodes-unlisted" 3 "the cluster lists no nodes (wrong endpoint, empty etcd)" |dice| dice.lasting(Fault::NodesUnlisted);
    "node-list-stale" 3 "the cluster shows an old state (etcd restored, replica behind)" |dice| dice.lasting(Fault::NodeListStale);
    "watch-lags" 3 "the watch of nodes is a minute behind" |dice| dice.lasting(Fault::WatchLags);
    "watch-gap" 3 "the watch loses what happens and says that it is alive" |dice| dice.lasting(Fault::WatchGap);
    "api-silent" 3 "the cluster's API does not answer" |dice| dice.lasting(Fault::ApiSilent);
    "api-denied" 2 "the cluster's API does not accept our credentials" |dice| dice.lasting(Fault::ApiDenied);
    "leases-frozen" 2 "no lease is renewed although kubelets run" |dice| dice.lasting(Fault::LeasesFrozen);
    // Clocks.
    "clock-jumps" 3 "our own clock jumps, forwards or backwards" |dice| {
        let ms = dice.rng.span(Span::from_s(1), Span::from_min(180)).ms;
        let sign = if dice.rng.chance(50) { -1 } else { 1 };
        process(Mishap::Jump(sign * ms))
    };
    "api-clock" 2 "the clocks of both APIs are off" |dice| {
        let ms = dice.rng.span(Span::from_s(5), Span::from_min(600)).ms;
        let sign = if dice.rng.chance(50) { -1 } else { 1 };
        dice.lasting(|lasts| Fault::ApiClock(sign * ms, lasts))
    };
    "node-clock" 2 "the clock of a machine is off for good" |dice| {
        let ms = dice.rng.span(Span::from_s(5), Span::from_min(600)).ms;
        let sign = if dice.rng.chance(50) { -1 } else { 1 };
        dice.on(|machine| Fault::NodeClock(machine, sign * ms))
    };
    "node-paused" 4 "a machine stands still and goes on" |dice| {
        let lasts = dice.lasts();
        dice.on(|machine| Fault::NodePaused(machine, lasts))
    };
    // The process.
    "process-paused" 3 "our process does not run, and goes on as if nothing were" |dice| {
        let span = dice.rng.span(Span::from_s(5), Span::from_min(60));
        process(Mishap::Pause(span))
    };
    "crash" 2 "our process dies" |dice| process(Mishap::Crash(dice.down()));
    "crash-at-intent" 6 "our process dies at a point in the life of the next intent" |dice| {
        let (point, down) = (dice.crash_point(), dice.down());
        process(Mishap::CrashAt(point, down))
    };
    "crash-at-effect" 4 "our process dies before or after an effect, whichever it is" |dice| {
        let (nth, after, down) = (dice.rng.below(12) as u32, dice.rng.chance(50), dice.down());
        process(Mishap::CrashAtEffect { nth, after, down })
    };
    "torn-tail" 3 "our process dies while the ledger is being written" |dice| {
        let (whole, down) = (dice.rng.below(4) as u32, dice.down());
        process(Mishap::TornTail { whole, down })
    };
    "disk-full" 3 "the ledger's disk is full" |dice| {
        let span = dice.rng.span(Span::from_s(10), Span::from_min(10));
        process(Mishap::DiskFull(span))
    };
    "ledger-rotated" 3 "a checkpoint takes the place of the ledger" |_| process(Mishap::Rotate);
    "two-leaders" 2 "another process takes the ledger and leads; the one before goes on beside it, or sleeps or is cut off first, and does not know" |dice| process(Mishap::TwoLeaders(dice.usurped()));
    // Outages, and machines that go bad.
    "zone-dark" 3 "a zone is cut off" |dice| {
        let zone = dice.zone();
        dice.lasting(|lasts| Fault::ZoneDark(zone, lasts))
    };
    "fleet-dark" 2 "every zone is cut off" |dice| dice.lasting(Fault::FleetDark);
    "flapping" 4 "a machine goes and comes several times" Dice::flapping;
    "drip" 3 "one machine after another breaks in the same way" Dice::drip;
    "bad-rollout" 3 "a pool is rolled to an image whose machines all fail" Dice::bad_rollout;
    "launch" 3 "a pool grows by a good machine" |dice| one(Fault::Launch { pool: dice.pool(), trouble: None });
    "launch-bad" 8 "a pool grows by a machine that fails on its way" |dice| {
        let (pool, trouble) = (dice.pool(), Some(dice.trouble()));
        one(Fault::Launch { pool, trouble })
    };
    "rollout" 2 "a pool is rolled to another image" |dice| one(Fault::Rollout(dice.pool()));
    "kubelet-hung" 9 "a kubelet hangs until it is started again" |dice| dice.on(|machine| Fault::Breaks(machine, Trouble::KubeletHung));
    "broken" 4 "a machine breaks in a way that no reboot mends" |dice| dice.on(|machine| Fault::Breaks(machine, Trouble::Broken));
    "errored" 4 "the cloud gives an instance up" |dice| dice.on(Fault::Errored);
    "stuck-deleting" 3 "an instance is deleted and does not go" |dice| dice.on(Fault::StuckDeleting);
    "node-twin" 3 "a second node names the same instance" |dice| dice.on(Fault::NodeTwin);
    "name-twin" 3 "a second instance has the same name" |dice| dice.on(Fault::NameTwin);
    "names-reused" 1 "new machines get the names of machines that are gone (one world in four)" |_| Vec::new();
    "unmarked" 1 "an instance loses its pool's mark" |dice| dice.on(Fault::Unmarked);
    "poisoned" 2 "every free text about one machine is as bad as text can be" |dice| dice.on(Fault::Poisoned);
    // The network.
    "group-lost" 6 "a port loses its security group" |dice| dice.on(|machine| Fault::GroupLost { machine, slips: false });
    "group-slips" 2 "a port loses its security group whenever it is put back" |dice| dice.on(|machine| Fault::GroupLost { machine, slips: true });
    "port-security-off" 1 "port security of a port is turned off" |dice| dice.on(Fault::PortSecurityOff);
    "second-port" 1 "a machine gets a second port without the group" |dice| dice.on(Fault::SecondPort);
    "pair-lost" 3 "a port no longer allows its node's pod range" |dice| dice.on(Fault::PairLost);
    "rules-lost" 2 "the group loses its pod rules" |_| one(Fault::RulesLost);
    "duplicate-route" 3 "a second route to a machine's pod range leads to a dead next hop" |dice| dice.on(Fault::DuplicateRoute);
    "missing-route" 3 "a machine's route is gone and not made again" |dice| dice.on(Fault::MissingRoute);
    "route-broken" 3 "a node's pods cannot be reached" |dice| dice.on(Fault::RouteBroken);
    "foreign-routes" 2 "another cluster puts routes on the router" |dice| one(Fault::ForeignRoutes(1 + dice.rng.below(5) as u32));
    // Others at work.
    "node-deleted-by-controller" 5 "the cloud controller takes an instance for gone and deletes its node" |dice| dice.on(Fault::NodeDeletedByController);
    "controller-down" 3 "the cloud controller does not run" |dice| dice.lasting(Fault::ControllerDown);
    "health-check" 3 "another health check deletes machines that are silent for five minutes" |dice| {
        let lasts = dice.rng.span(Span::from_min(10), Span::from_min(90));
        one(Fault::HealthCheck(lasts))
    };
    "scaled-down" 3 "the autoscaler takes a machine away" |dice| dice.on(Fault::ScaledDown);
    "foreign-delete" 3 "another client deletes an instance" |dice| dice.on(Fault::ForeignDelete);
    "node-deleted-by-person" 3 "a person deletes a node" |dice| dice.on(Fault::NodeDeletedByPerson);
    "shut-off" 3 "a person shuts an instance off" |dice| dice.on(Fault::ShutOff);
    "rebooted" 2 "a person reboots a machine" |dice| dice.on(Fault::Rebooted);
    "cordoned" 1 "a person cordons a node" |dice| dice.on(Fault::Cordoned);
    "busy" 1 "a person works on an instance: its cloud names a task" |dice| dice.on(Fault::Busy);
    "locked" 1 "a person locks an instance" |dice| dice.on(Fault::Locked);
    "kubelet-restart" 5 "a person restarts a kubelet" |dice| vec![(Span::ZERO, Happening::KubeletRestart(dice.machine()))];
    "person-pauses" 2 "a person says hands off of a pool, for a while" |dice| {
        let (pool, span) = (dice.pool(), dice.lasts());
        process(Mishap::Paused(pool, span))
    };
}

/// Which faults, and how often each.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Rates(BTreeMap<&'static str, u32>);

/// No fault has that name.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct UnknownFault(pub String);

impl fmt::Display for UnknownFault {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "there is no fault \"{}\"; docs/internals/faults.md lists all", self.0)
    }
}

/// Faults that are drawn beside all others, from a stream of their own: a seed below the first one means what it meant before
/// there were any.
pub(super) struct Sheet {
    pub(super) entries: &'static [Entry],
    /// The first seed whose courses have these.
    from: u64,
    /// The name of the stream.
    pub(super) stream: &'static str,
    /// What the page says about them; `{from}` stands for that seed.
    says: &'static str,
}

/// In the order in which they came.
pub(super) const SHEETS: [Sheet; 10] = [
    Sheet {
        entries: variety::CATALOG,
        from: variety::SEEDS_FROM,
        stream: "variety faults",
        says: "Courses of seeds from {from} on are in fleets with variety, as real ones have it\n\
               (`chaos::variety`). What happens to these is drawn beside all others.",
    },
    Sheet {
        entries: operators::CATALOG,
        from: operators::SEEDS_FROM,
        stream: "hands faults",
        says: "In courses of seeds from {from} on, each pool's roster lets us do everything, what a roster begins with and\n\
               one class more, or any mixture, and keeps one, half or all of its machines; and operators have machines in hand.",
    },
    Sheet {
        entries: relapse::CATALOG,
        from: relapse::SEEDS_FROM,
        stream: "relapse faults",
        says: "In courses of seeds from {from} on, what a repair mends may come back moments later.",
    },
    Sheet {
        entries: crowds::CATALOG,
        from: crowds::SEEDS_FROM,
        stream: "crowd faults",
        says: "In courses of seeds from {from} on, some of what happens strikes many machines at once, or is told by leases\n\
               alone.",
    },
    Sheet {
        entries: gaps::CATALOG,
        from: gaps::SEEDS_FROM,
        stream: "gap faults",
        says: "In courses of seeds from {from} on, gaps in which we or a cloud are away last for hours; and in one fleet of\n\
               seven Nodes tell of their machines what those of bare metal and k3s tell: another UUID, no instance, and\n\
               a host name that the cloud made of the server's name.",
    },
    Sheet {
        entries: wakings::CATALOG,
        from: wakings::SEEDS_FROM,
        stream: "waking faults",
        says: "In half of the courses of seeds from {from} on, a watch that slept for over five minutes has lost its place\n\
               and lists again. In all of them starts may end before their first step, and cordons be taken back.",
    },
    Sheet {
        entries: impostors::CATALOG,
        from: impostors::SEEDS_FROM,
        stream: "impostor faults",
        says: "In courses of seeds from {from} on, kubelets may show the identity of another machine on their own Nodes; and in\n\
               two fleets of five Nodes name no instance, and have the UUIDs of their servers, as with k3s on OpenStack.",
    },
    Sheet {
        entries: liars::CATALOG,
        from: liars::SEEDS_FROM,
        stream: "liar faults",
        says: "In courses of seeds from {from} on, something may befall the machine of such a kubelet itself.",
    },
    Sheet {
        entries: hands::CATALOG,
        from: hands::SEEDS_FROM,
        stream: "in-hand faults",
        says: "In courses of seeds from {from} on, people take machines in hand in ways that clouds and Nodes show\n\
               little of.",
    },
    Sheet {
        entries: short_gaps::CATALOG,
        from: short_gaps::SEEDS_FROM,
        stream: "short-gap faults",
        says: "In courses of seeds from {from} on, people drain machines, which are well or die in that moment, in gaps that\n\
               events outlive.",
    },
];

/// Every fault, by the first seed whose courses have it.
fn sheets() -> impl Iterator<Item = (&'static [Entry], u64)> {
    let first =
        [(CATALOG, 0), (access::CATALOG, access::SEEDS_FROM), (hosting::CATALOG, hosting::SEEDS_FROM)];
    first.into_iter().chain(SHEETS.iter().map(|sheet| (sheet.entries, sheet.from)))
}

/// Every fault there is.
pub fn all() -> impl Iterator<Item = &'static Entry> {
    sheets().flat_map(|(sheet, _)| sheet)
}

impl Rates {
    /// Every fault that a course of this seed has when none is chosen.
    pub fn of_seed(seed: u64) -> Self {
        let sheets = sheets().filter(|(_, from)| seed >= *from);
        let entries = sheets.flat_map(|(sheet, _)| sheet);
        Self(entries.map(|entry| (entry.name, entry.rate)).collect())
    }

    /// These faults, at their own rates, and no others.
    pub fn only<'a>(names: impl IntoIterator<Item = &'a str>) -> Result<Self, UnknownFault> {
        let find = |name: &str| {
            let entry = all().find(|entry| entry.name == name);
            entry.map(|entry| (entry.name, entry.rate)).ok_or_else(|| UnknownFault(name.to_owned()))
        };
        names.into_iter().map(find).collect::<Result<_, _>>().map(Self)
    }

    /// The same with this fault at this rate; zero switches it off.
    pub fn with(mut self, name: &str, rate: u32) -> Result<Self, UnknownFault> {
        let entry = all().find(|entry| entry.name == name);
        let entry = entry.ok_or_else(|| UnknownFault(name.to_owned()))?;
        self.0.insert(entry.name, rate);
        Ok(self)
    }

    /// The rate of this fault.
    pub fn of(&self, name: &str) -> u32 {
        self.0.get(name).copied().unwrap_or(0)
    }

    /// The names of all that are switched on.
    pub fn names(&self) -> impl Iterator<Item = &'static str> + '_ {
        self.0.iter().filter(|(_, rate)| **rate > 0).map(|(name, _)| *name)
    }

    /// What happens of all on this sheet, together.
    pub(super) fn sum(&self, sheet: &[Entry]) -> u32 {
        sheet.iter().map(|entry| self.of(entry.name)).sum()
    }

    pub(super) fn draw(&self, sheet: &[Entry], dice: &mut Dice) -> Drawn {
        let mut left = dice.rng.below(u64::from(self.sum(sheet))) as u32;
        for entry in sheet {
            let rate = self.of(entry.name);
            if left < rate {
                return (entry.draw)(dice);
            }
            left -= rate;
        }
        Vec::new()
    }
}

/// The tables of all faults, for the documentation.
pub fn table() -> String {
    let sum: u32 = CATALOG.iter().map(|entry| entry.rate).sum();
    let (fleet, beside) = (lines(CATALOG, sum), lines(access::CATALOG, sum));
    let hosted = lines(hosting::CATALOG, sum);
    let (from, hosted_from) = (access::SEEDS_FROM, hosting::SEEDS_FROM);
    let mut table = format!(
        "| fault | of 1000 happenings | what happens |\n| --- | ---: | --- |\n{fleet}\n\
         Courses of seeds from {from} on, and those whose faults are chosen and among these, have service users as well: one to\n\
         three, whose roles may be given, proposed or left alone. What happens to their roles is drawn beside the others, so\n\
         that a seed below {from} means what it meant before there were any.\n\n\
         | fault | beside 1000 happenings | what happens |\n| --- | ---: | --- |\n{beside}\n\
         In seven of ten courses of seeds from {hosted_from} on, and in those whose faults are chosen and among these, the\n\
         cloud tells how it hosts its machines, as EC2 does: checks, notices, why it ended one. Pools may be kept by a group\n\
         of the cloud, which replaces what is unfit or stops, be sold until the provider wants them back, or have disks that\n\
         are lost when they stop; and parts of the cloud may not know an instance for the first five minutes of its life. What\n\
         happens to these is drawn beside all others.\n\n\
         | fault | beside 1000 happenings | what happens |\n| --- | ---: | --- |\n{hosted}"
    );
    for Sheet { entries, from, says, .. } in &SHEETS {
        let says = says.replace("{from}", &from.to_string());
        let head = "| fault | beside 1000 happenings | what happens |\n| --- | ---: | --- |";
        let part = write!(table, "\n{says}\n\n{head}\n{}", lines(entries, sum));
        debug_assert!(part.is_ok(), "writing into a string does not fail");
    }
    table
}

fn lines(sheet: &[Entry], sum: u32) -> String {
    let mut text = String::new();
    for entry in sheet {
        let share = (entry.rate * 1000 + sum / 2) / sum;
        let line = writeln!(text, "| `{}` | {share} | {} |", entry.name, entry.says);
        debug_assert!(line.is_ok(), "writing into a string does not fail");
    }
    text
}
