//! How long after the moment of its own that a fault may be acted on, it is: a thousand faults at once in ten thousand machines.
//!
//! ```text
//!  port lost its group: no grace    listing handed over ──────────▶ found, decided: its intent goes out ─▶ recorded ─▶ its call
//!  node turned not Ready: 5 min     grace is over, for all at once ─▶ evidence asked for ─▶ read ─▶ decided
//!                                   └── the clock starts here         └── each fault's own time, one sample ──┘
//! ```
//!
//! A sample is one fault of one round; the percentiles are over the faults of all rounds. Disk and cloud take no time here:
//! what is measured is the engine, with everything that it does for the other faults in between. Each round strikes
//! other machines, so that none is remembered from the round before. Budgets of network repairs are as wide as the
//! disaster, so that every fault gets its intent and none waits for another; what can hurt stays as narrow as it always
//! is, and being held back with the reason is the decision then.

use std::collections::BTreeMap;
use std::sync::Arc;
use std::time::{Duration, Instant};

use reveille_core::effect::{Effect, Look};
use reveille_core::event::{Answer, ClusterFact, Event};
use reveille_core::model::id::{InstanceId, LookId};
use reveille_core::model::incident::{FaultKind, MachineKey, Subject};
use reveille_core::model::node::Ready;
use reveille_core::model::roster::{Deadlines, Limits};
use reveille_core::model::testimony::Testimony;
use reveille_core::model::time::{Span, Time};
use reveille_core::plan::decide::{Next, decide};
use reveille_core::record::Record;

use super::cycle::thread_cpu;
use super::fleet::{Fleet, Onlooker};

const MACHINES: usize = 10_000;
const ROUNDS: usize = 9;
/// One of so many machines is struck.
const STRIKES: usize = 10;
const LIMIT_MS: f64 = 100.0;

/// One fault: how long it took by the clock on the wall, and how much of that this thread was at work.
type Sample = (Duration, Duration);

/// Both clocks, read together. On a machine that is busy with other things they differ.
struct Clocks {
    wall: Instant,
    work: Duration,
}

impl Clocks {
    fn start() -> Self {
        Self { wall: Instant::now(), work: thread_cpu() }
    }

    fn read(&self) -> Sample {
        (self.wall.elapsed(), thread_cpu().saturating_sub(self.work))
    }
}

/// All samples of one moment.
#[derive(Default)]
struct Samples(Vec<Sample>);

impl Samples {
    fn print(self, what: &str, limit: bool) {
        let count = self.0.len();
        let (mut wall, mut work): (Vec<_>, Vec<_>) = self.0.into_iter().unzip();
        let at = |samples: &mut Vec<Duration>, share: f64| {
            samples.sort_unstable();
            let place = (count as f64 * share).ceil() as usize;
            samples.get(place.saturating_sub(1)).map_or(f64::NAN, |took| took.as_secs_f64() * 1e3)
        };
        let target = if limit { format!("   (target: p99 at most {LIMIT_MS:.0} ms)") } else { String::new() };
        println!(
            "  {what:<32} p50 {:6.1} ms   p99 {:6.1} ms   worst of {count} {:6.1} ms   of these at work: p99 {:6.1} ms{target}",
            at(&mut wall, 0.5),
            at(&mut wall, 0.99),
            at(&mut wall, 1.0),
            at(&mut work, 0.99),
        );
    }
}

const fn is_struck(number: usize, round: usize) -> bool {
    number % STRIKES == round % STRIKES
}

/// Ports lose their group: no grace, an intent for each.
pub(crate) fn to_lost_groups() {
    println!(
        "reaction to 1,000 lost groups at once in 10,000 machines ({ROUNDS} rounds, from the listing on)"
    );
    let limits = Limits { network_at_once: (MACHINES / STRIKES) as u32, ..Limits::default() };
    let mut fleet = Fleet::with_limits(MACHINES, limits);
    let (mut intents, mut calls) = (Samples::default(), Samples::default());
    for round in 0..ROUNDS {
        let event = fleet.listed(&|number| !is_struck(number, round));
        let mut watch = LostGroups { clocks: Clocks::start(), intents: Vec::new(), calls: Vec::new() };
        fleet.drive(event, &mut watch);
        assert_eq!(watch.intents.len(), MACHINES / STRIKES, "every fault has its intent");
        intents.0.append(&mut watch.intents);
        calls.0.append(&mut watch.calls);
        let mended = fleet.now + Span::from_min(3);
        wait_until(&mut fleet, mended);
        assert_eq!(fleet.state.desk().cases.len(), 0, "every fault is mended before the next round");
    }
    intents.print("until its intent is on the way", true);
    calls.print("until its call is on the way", false);
    println!();
}

/// Notes when intents and calls go out.
struct LostGroups {
    clocks: Clocks,
    intents: Vec<Sample>,
    calls: Vec<Sample>,
}

impl Onlooker for LostGroups {
    fn sees(&mut self, effect: &Effect) -> Option<Answer> {
        match effect {
            Effect::Record { record: Record::Intended { .. }, .. } => self.intents.push(self.clocks.read()),
            Effect::Call { .. } => self.calls.push(self.clocks.read()),
            _ => {}
        }
        None
    }

    fn took_in(&mut self, _: LookId) {}
}

/// Nodes turn not Ready at the same moment: a grace of five minutes, evidence, and a decision for each.
pub(crate) fn to_nodes_not_ready() {
    let grace = Deadlines::default().not_ready_within;
    println!(
        "reaction to 1,000 nodes not Ready at once in 10,000 machines ({ROUNDS} rounds, beyond the grace of {grace})"
    );
    let mut fleet = Fleet::new(MACHINES);
    let line = "[    4.217731] systemd[1]: Reached target network-online.target.\n";
    // The driver judges consoles beside the loop; what the engine does with the result is measured.
    let console = reveille_sim::catalogue::judge().testimony(Ok(&line.repeat(100)), &[]);
    let console = Arc::new(console);
    let (mut asked, mut decided) = (Samples::default(), Samples::default());
    for round in 0..ROUNDS {
        turn(&mut fleet, round, Ready::False);
        let due = fleet.now + grace;
        wait_until(&mut fleet, due);
        let mut watch = NotReady::new(console.clone());
        fleet.drive(Event::Tick, &mut watch);
        assert_eq!(watch.decided.len(), MACHINES / STRIKES, "all evidence of every fault is read");
        assert_eq!(count_decided(&fleet), MACHINES / STRIKES, "every fault is decided about");
        asked.0.append(&mut watch.asked);
        decided.0.append(&mut watch.decided);
        turn(&mut fleet, round, Ready::True);
        let well = fleet.now + Span::from_min(3);
        wait_until(&mut fleet, well);
    }
    asked.print("until its evidence is asked for", false);
    decided.print("until it is decided about", true);
    println!();
}

/// Answers reads of evidence at once, and notes for each machine when the first was asked for and the last taken in.
struct NotReady {
    clocks: Clocks,
    console: Arc<Testimony>,
    of: BTreeMap<LookId, InstanceId>,
    taken_in: BTreeMap<InstanceId, u8>,
    asked: Vec<Sample>,
    decided: Vec<Sample>,
}

/// The action log and the console.
const READS: u8 = 2;

impl NotReady {
    fn new(console: Arc<Testimony>) -> Self {
        let (of, taken_in) = (BTreeMap::new(), BTreeMap::new());
        Self { clocks: Clocks::start(), console, of, taken_in, asked: Vec::new(), decided: Vec::new() }
    }
}

impl Onlooker for NotReady {
    fn sees(&mut self, effect: &Effect) -> Option<Answer> {
        let Effect::Look { id, look } = effect else { return None };
        let (instance, answer) = match look {
            Look::Actions(_, instance) => (instance, Answer::Actions(Vec::new())),
            Look::Console(_, instance) | Look::Testimony(_, instance, _) => {
                (instance, Answer::Testimony(self.console.clone()))
            }
            _ => return None,
        };
        self.of.insert(*id, instance.clone());
        if self.taken_in.insert(instance.clone(), self.taken_in.get(instance).copied().unwrap_or(0)).is_none()
        {
            self.asked.push(self.clocks.read());
        }
        Some(answer)
    }

    fn took_in(&mut self, look: LookId) {
        let Some(taken_in) = self.of.get(&look).and_then(|instance| self.taken_in.get_mut(instance)) else {
            return;
        };
        *taken_in += 1;
        if *taken_in == READS {
            self.decided.push(self.clocks.read());
        }
    }
}

fn turn(fleet: &mut Fleet, round: usize, ready: Ready) {
    for number in (0..MACHINES).filter(|number| is_struck(*number, round)) {
        fleet.feed(Event::Cluster(ClusterFact::Applied(fleet.turned(number, ready))));
    }
}

/// Time passes with listings and leases, as it does.
fn wait_until(fleet: &mut Fleet, until: Time) {
    while fleet.now + Span::from_s(20) < until {
        fleet.now = fleet.now + Span::from_s(20);
        fleet.leases(fleet.now.ms as u64);
        fleet.feed(Event::Cluster(ClusterFact::Alive));
        fleet.list(&|_| true);
    }
    fleet.now = until;
}

/// Faults for which something is under way or held back with its reason: nothing is waited for any more.
fn count_decided(fleet: &Fleet) -> usize {
    let desk = fleet.state.desk();
    let decided = desk.cases.values().filter(|case| {
        let machine = matches!(case.incident.key.subject, Subject::Machine(MachineKey::Instance(..)));
        let next = decide(&desk, case).next;
        machine
            && case.incident.key.kind == FaultKind::NotReady
            && matches!(next, Next::UnderWay(_) | Next::Held { .. } | Next::Ask(_))
    });
    decided.count()
}
