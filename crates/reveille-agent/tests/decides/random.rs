//! Whatever events an agent receives, in whatever order: no invariant breaks, and the same events give the same bytes.

use std::collections::{BTreeMap, BTreeSet};

use proptest::prelude::*;
use proptest::strategy::ValueTree;
use proptest::test_runner::{Config, TestRunner};
use reveille_agent::effect::Verb;
use reveille_agent::invariants::{InvariantChecker, Violation};
use reveille_agent::model::{
    Credentials, Device, ForeignCluster, Inspection, Leaving, Machine, NodeSeen, OperationId, Outcome,
    PeerAnswer, Role, WatchdogSeen,
};
use reveille_agent::{Effect, Event, Memory, Settings, Start, State};
use reveille_core::model::agent::Ask;
use reveille_core::model::id::{NodeName, ZoneName};
use reveille_core::model::time::{Span, Time};

/// Something that happens; the numbers choose what exactly.
#[derive(Clone, Debug)]
enum Op {
    /// Time passes up to the wake-up, and the world answers every effect as the mood says.
    Live(u8),
    /// From now on the world is in this mood.
    Mood(u32),
    /// One effect in flight gets an odd answer, or a late one, or two.
    Odd(u8, u32),
    /// An event that the agent did not ask for.
    Say(u32),
    /// This many seconds pass; a negative number sets the clock back.
    Pass(i16),
    /// The process dies, and another starts with the durable memory.
    Die,
}

fn ops() -> impl Strategy<Value = Vec<Op>> {
    let op = prop_oneof![
        12 => (1_u8..20).prop_map(Op::Live),
        3 => any::<u32>().prop_map(Op::Mood),
        2 => (any::<u8>(), any::<u32>()).prop_map(|(which, how)| Op::Odd(which, how)),
        2 => any::<u32>().prop_map(Op::Say),
        1 => (-30_i16..400).prop_map(Op::Pass),
        1 => Just(Op::Die),
    ];
    prop::collection::vec(op, 1..120)
}

struct Run {
    now: Time,
    state: State,
    checker: InvariantChecker,
    settings: Settings,
    mood: u32,
    waiting: Vec<Effect>,
    answered: Vec<Effect>,
    wake: Option<Time>,
    memory: Memory,
    acts: Vec<Verb>,
    bytes: String,
}

fn pick<T: Clone>(from: &[T], number: u32) -> T {
    from[number as usize % from.len()].clone()
}

fn peers() -> BTreeMap<NodeName, Option<ZoneName>> {
    (1..8).map(|n| (NodeName::new(format!("w-{n}")), Some(ZoneName::from(["a", "b", "c"][n % 3])))).collect()
}

fn inspection(number: u32) -> Inspection {
    use Credentials::{
        Accepted, Bootstrapping, Expired, Foreign, Interrupted, Nothing, Refused, TokenDead, Unstarted,
    };
    let credentials = [
        Accepted,
        Refused,
        Expired,
        Refused,
        Foreign(ForeignCluster::Replaced),
        TokenDead,
        Nothing,
        Foreign(ForeignCluster::Lives),
        Foreign(ForeignCluster::Silent),
        Bootstrapping,
        Unstarted,
        Interrupted,
        Credentials::Renewable,
        Credentials::CannotTell("x".into()),
    ];
    let nodes = [
        NodeSeen::Absent,
        NodeSeen::Absent,
        NodeSeen::Ready,
        NodeSeen::NotReady,
        NodeSeen::Guarded,
        NodeSeen::CannotTell,
        NodeSeen::AnotherMachines,
    ];
    let leaving = number.is_multiple_of(13).then_some(Leaving::Tainted);
    Inspection {
        node: pick(&nodes, number),
        came_and_went: number.is_multiple_of(11),
        credentials: pick(&credentials, number / 5),
        leaving,
        clock_is_right: !number.is_multiple_of(7),
    }
}

fn found(number: u32) -> Machine {
    let roles = [
        Role::Worker,
        Role::Worker,
        Role::Worker,
        Role::ControlPlane { spare: true },
        Role::ControlPlane { spare: false },
    ];
    Machine {
        zone: (!number.is_multiple_of(4)).then(|| ZoneName::from("a")),
        watchdog: pick(&[Device::Usable, Device::Usable, Device::Absent, Device::Forbidden], number / 3),
        may_reboot: number.is_multiple_of(2),
        role: pick(&roles, number / 7),
        joining: number.is_multiple_of(9),
    }
}

impl Run {
    fn new(min_peers: u32) -> Self {
        let settings = Settings { min_peers, reboots_a_day: 3, ..Settings::default() };
        let (config, _) = settings.check().unwrap();
        let name = NodeName::from("w-1");
        let memory = Memory::default();
        let start = Start { name: name.clone(), config, warnings: Vec::new(), memory: memory.clone() };
        Self {
            now: Time::from_ms(1_000_000_000),
            state: State::new(start),
            checker: InvariantChecker::new(name, *config.settings()),
            settings,
            mood: 0,
            waiting: Vec::new(),
            answered: Vec::new(),
            wake: None,
            memory,
            acts: Vec::new(),
            bytes: String::new(),
        }
    }

    fn hear(&mut self, event: Event) -> Result<(), Violation> {
        self.checker.hear(self.now, &event);
        let effects = self.state.step(self.now, event);
        self.bytes.push_str(&format!("{} {effects:?}\n", self.now.ms));
        self.checker.check(self.now, &effects)?;
        for effect in effects {
            match effect {
                Effect::WakeAt(at) => self.wake = Some(at),
                Effect::Report(_) | Effect::FeedWatchdog | Effect::AnswerPeer { .. } => {}
                Effect::Act(_, verb, _) => {
                    self.acts.push(verb);
                    self.waiting.push(effect);
                }
                _ => self.waiting.push(effect),
            }
        }
        Ok(())
    }

    /// The answers to this effect, chosen by these numbers.
    fn answers(&mut self, effect: &Effect, mood: u32) -> Vec<Event> {
        let fails = |mood: u32| mood.is_multiple_of(11);
        let outcome = if fails(mood) { Outcome::Failed("no".into()) } else { Outcome::Done };
        match effect {
            Effect::CheckApi(operation, _) => {
                vec![Event::ApiChecked { operation: *operation, silent: (mood % 3 == 1).then(|| "x".into()) }]
            }
            Effect::AskPeers(operation, peers, _) => {
                let all = [
                    None,
                    None,
                    Some(PeerAnswer::Order),
                    Some(PeerAnswer::LostToo),
                    Some(PeerAnswer::NoOrder),
                ];
                let usual = pick(&all, mood / 3);
                let answer = |(place, peer): (usize, &NodeName)| {
                    let odd = mood.is_multiple_of(5) && place == 0;
                    let answer = if odd { pick(&all, mood / 7) } else { usual };
                    answer.map(|answer| Event::PeerAnswered {
                        operation: *operation,
                        peer: peer.clone(),
                        answer,
                    })
                };
                peers.iter().enumerate().filter_map(answer).collect()
            }
            Effect::ReadOrders(operation, _) => {
                let orders = if fails(mood) { Err("x".into()) } else { Ok(BTreeSet::new()) };
                vec![Event::OrdersRead { operation: *operation, orders }]
            }
            Effect::Inspect(operation, _) => {
                vec![Event::Inspected { operation: *operation, found: inspection(mood / 2) }]
            }
            Effect::SetWatchdog(operation, ..) => vec![Event::WatchdogSet { operation: *operation, outcome }],
            Effect::ReadWatchdog(operation, _) => {
                let last = self.answered.iter().rev().find_map(|effect| match effect {
                    Effect::SetWatchdog(_, to, _) => Some(*to),
                    _ => None,
                });
                let found = match last.flatten() {
                    _ if fails(mood) => WatchdogSeen::CannotTell,
                    Some(timeout) => WatchdogSeen::Armed(timeout),
                    None => WatchdogSeen::Disarmed,
                };
                vec![Event::WatchdogRead { operation: *operation, found }]
            }
            Effect::Record(operation, memory, _) => {
                self.memory = memory.clone();
                vec![Event::Recorded(*operation)]
            }
            Effect::Act(operation, ..) => vec![Event::Done { operation: *operation, outcome }],
            _ => Vec::new(),
        }
    }

    fn serve_all(&mut self) -> Result<(), Violation> {
        for _ in 0..8 {
            for effect in std::mem::take(&mut self.waiting) {
                self.answered.push(effect.clone());
                for event in self.answers(&effect, self.mood) {
                    self.hear(event)?;
                }
            }
        }
        Ok(())
    }

    fn take(&mut self, op: &Op) -> Result<(), Violation> {
        match op {
            Op::Live(times) => {
                for _ in 0..*times {
                    self.serve_all()?;
                    let soonest = self.now + Span::from_ms(1);
                    self.now = self.wake.take().unwrap_or(soonest).max(soonest);
                    self.hear(Event::Tick)?;
                }
                Ok(())
            }
            Op::Mood(mood) => {
                self.mood = *mood;
                Ok(())
            }
            Op::Odd(which, how) => {
                let answered = self.answered.iter().rev().take(20).map(|effect| (effect, true));
                let waiting = self.waiting.iter().map(|effect| (effect, false));
                let known: Vec<(Effect, bool)> =
                    answered.chain(waiting).map(|(effect, is_over)| (effect.clone(), is_over)).collect();
                if known.is_empty() {
                    return Ok(());
                }
                let (effect, is_over) = pick(&known, u32::from(*which));
                let stale = how.is_multiple_of(4);
                let durable = self.memory.clone();
                let events = self.answers(&effect, *how);
                if is_over {
                    // The answer arrives a second time, but the world does not write the old memory again over a newer
                    // one.
                    self.memory = durable;
                }
                for event in events {
                    let event = match event {
                        Event::Recorded(OperationId(id)) if stale => Event::Recorded(OperationId(id + 1)),
                        event => event,
                    };
                    self.hear(event)?;
                }
                Ok(())
            }
            Op::Say(number) => self.say(*number),
            Op::Pass(s) => {
                self.now = Time::from_ms(self.now.ms + i64::from(*s) * 1000);
                self.hear(Event::Tick)
            }
            Op::Die => {
                let (config, _) = self.settings.check().unwrap();
                let memory = self.memory.clone();
                self.state = State::new(Start { name: "w-1".into(), config, warnings: Vec::new(), memory });
                self.checker.restart();
                (self.wake, self.waiting, self.answered) = (None, Vec::new(), Vec::new());
                self.hear(Event::Found(found(self.mood)))?;
                self.hear(Event::PeersListed(peers()))
            }
        }
    }

    fn say(&mut self, number: u32) -> Result<(), Violation> {
        match number % 9 {
            0 => self.hear(Event::Cancelled),
            1 | 2 => self.hear(Event::Resumed),
            3 => self.hear(Event::Ordered),
            6 => self.hear(Event::Asked(Ask::ALL[(number / 9 % 2) as usize])),
            4 | 8 => self.hear(Event::Found(found(number / 9))),
            5 => self.hear(Event::PeersListed(if (number / 9).is_multiple_of(4) {
                BTreeMap::new()
            } else {
                peers()
            })),
            _ => self.hear(Event::PeerAsked {
                from: pick(&["w-2", "w-3"], number / 9).into(),
                ask: OperationId(7),
            }),
        }
    }

    fn all(ops: &[Op], min_peers: u32) -> Result<Self, Violation> {
        let mut run = Self::new(min_peers);
        run.hear(Event::Found(found(4)))?;
        run.hear(Event::PeersListed(peers()))?;
        for op in ops {
            run.take(op)?;
        }
        Ok(run)
    }
}

proptest! {
    #![proptest_config(Config { failure_persistence: None, ..Config::default() })]

    #[test]
    fn no_sequence_of_events_breaks_an_invariant(ops in ops(), min_peers in 0_u32..2) {
        let run = Run::all(&ops, min_peers);
        prop_assert!(run.is_ok(), "{}", run.err().unwrap());
    }

    #[test]
    fn the_same_events_give_the_same_bytes(ops in ops()) {
        let (once, again) = (Run::all(&ops, 1), Run::all(&ops, 1));
        prop_assert_eq!(once.map(|run| run.bytes), again.map(|run| run.bytes));
    }
}

/// A repeated answer is not a second write: this sequence once restored an older memory, and the agent rebooted once too
/// often.
#[test]
fn an_answer_that_is_repeated_writes_nothing() {
    use Op::{Die, Live, Mood, Odd, Pass};
    let begin =
        [Live(1), Mood(4_118_268_326), Pass(20), Live(12), Mood(174_872_824), Live(2), Live(13), Odd(182, 0)];
    let deaths = [Die, Live(5), Die, Live(5), Die, Live(5)];
    let ops: Vec<Op> = begin.into_iter().chain(deaths).collect();
    let run = Run::all(&ops, 0);
    assert!(run.is_ok(), "{}", run.err().unwrap());
}

/// The sequences reach every verb: an invariant that no sequence approaches proves nothing.
#[test]
fn the_sequences_reach_everything_that_an_agent_can_do() {
    let mut runner = TestRunner::deterministic();
    let mut reached: BTreeMap<Verb, u32> = BTreeMap::new();
    for _ in 0..400 {
        let ops = ops().new_tree(&mut runner).unwrap().current();
        let run = Run::all(&ops, 1).unwrap_or_else(|violation| panic!("{violation}\n{ops:?}"));
        run.acts.into_iter().for_each(|verb| *reached.entry(verb).or_default() += 1);
    }
    assert_eq!(reached.len(), 7, "{reached:?}");
    assert!(reached.values().all(|times| *times >= 3), "{reached:?}");
}
