//! How long after the moment of its own that a fault may be acted on, it is: a thousand faults at once in ten thousand machines.
//!
//! ```text
//!  node turned not Ready ─ 4 min 55 s ─▶ evidence asked for ─▶ read         5 s later: grace is over, for all at once ─▶ decided
//!                                        └── one sample a fault ──┘        └── the clock starts again here ──┘
//! ```
//!
//! A sample is one fault of one round; the percentiles are over the faults of all rounds. Disk and cloud take no time here:
//! what is measured is the engine, with everything that it does for the other faults in between. Each round strikes
//! other machines, so that none is remembered from the round before. Budgets are the default ones: being held back with the
//! reason is the decision then. What a burst costs until it is repaired is measured in `burst`.

use std::collections::BTreeMap;
use std::sync::Arc;
use std::time::{Duration, Instant};

use reveille_core::decide::{Next, decide};
use reveille_core::effect::{Effect, Look};
use reveille_core::event::{Answer, ClusterFact, Event};
use reveille_core::model::id::{InstanceId, LookId};
use reveille_core::model::incident::{FaultKind, MachineKey, Subject};
use reveille_core::model::log_findings::LogFindings;
use reveille_core::model::node::Ready;
use reveille_core::model::roster::Deadlines;
use reveille_core::model::time::{Span, Time};

use super::cycle::thread_cpu;
use super::fleet::{Fleet, Onlooker};

const MACHINES: usize = 10_000;
const ROUNDS: usize = 9;
/// One of so many machines is struck.
const STRIKES: usize = 10;
const LIMIT_MS: f64 = 100.0;
/// Evidence of an absence is read so long before its deadline.
const READ_AHEAD: Span = Span::from_s(5);

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

/// Nodes turn not Ready at the same moment: a grace of five minutes, evidence, and a decision for each.
pub(crate) fn to_nodes_not_ready() {
    let grace = Deadlines::default().not_ready_within;
    println!(
        "reaction to 1,000 nodes not Ready at once in 10,000 machines ({ROUNDS} rounds, beyond the grace of {grace})"
    );
    let mut fleet = Fleet::new(MACHINES);
    let line = "[    4.217731] systemd[1]: Reached target network-online.target.\n";
    // The driver judges consoles beside the loop; what the engine does with the result is measured.
    let console = reveille_sim::catalogue::judge().log_findings(Ok(&line.repeat(100)), &[]);
    let console = Arc::new(console);
    let (mut read, mut decided) = (Samples::default(), Samples::default());
    for round in 0..ROUNDS {
        turn(&mut fleet, round, Ready::False);
        let due = fleet.now + grace;
        wait_until(&mut fleet, due - READ_AHEAD);
        let mut watch = NotReady::new(console.clone());
        fleet.drive(Event::Tick, &mut watch);
        assert_eq!(watch.read.len(), MACHINES / STRIKES, "all evidence of every fault is read");
        read.0.append(&mut watch.read);
        wait_until(&mut fleet, due);
        let clocks = Clocks::start();
        fleet.feed(Event::Tick);
        decided.0.extend(std::iter::repeat_n(clocks.read(), MACHINES / STRIKES));
        assert_eq!(count_decided(&fleet), MACHINES / STRIKES, "every fault is decided about");
        turn(&mut fleet, round, Ready::True);
        let well = fleet.now + Span::from_min(3);
        wait_until(&mut fleet, well);
    }
    read.print("5 s ahead, until its evidence is read", false);
    decided.print("until it is decided about", true);
    println!();
}

/// Answers reads of evidence at once, and notes for each machine when the last was taken in.
struct NotReady {
    clocks: Clocks,
    console: Arc<LogFindings>,
    of: BTreeMap<LookId, InstanceId>,
    taken_in: BTreeMap<InstanceId, u8>,
    read: Vec<Sample>,
}

/// The action log and the console.
const READS: u8 = 2;

impl NotReady {
    fn new(console: Arc<LogFindings>) -> Self {
        let (of, taken_in) = (BTreeMap::new(), BTreeMap::new());
        Self { clocks: Clocks::start(), console, of, taken_in, read: Vec::new() }
    }
}

impl Onlooker for NotReady {
    fn sees(&mut self, effect: &Effect) -> Option<Answer> {
        let Effect::Look { id, look } = effect else { return None };
        let (instance, answer) = match look {
            Look::Actions(_, instance) => (instance, Answer::Actions(Vec::new())),
            Look::Console(_, instance) | Look::LogEvidence(_, instance, _) => {
                (instance, Answer::LogFindings(self.console.clone()))
            }
            _ => return None,
        };
        self.of.insert(*id, instance.clone());
        self.taken_in.entry(instance.clone()).or_default();
        Some(answer)
    }

    fn took_in(&mut self, look: LookId) {
        let Some(taken_in) = self.of.get(&look).and_then(|instance| self.taken_in.get_mut(instance)) else {
            return;
        };
        *taken_in += 1;
        if *taken_in == READS {
            self.read.push(self.clocks.read());
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
    let context = fleet.state.context();
    let decided = context.cases.values().filter(|case| {
        let machine = matches!(case.incident.key.subject, Subject::Machine(MachineKey::Instance(..)));
        let next = decide(&context, case).next;
        machine
            && case.incident.key.kind == FaultKind::NotReady
            && matches!(next, Next::UnderWay(_) | Next::Held { .. } | Next::Ask(_))
    });
    decided.count()
}
