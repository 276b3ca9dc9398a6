//! An agent and its surroundings: the fixture answers every effect by the state of `Around`.
//!
//! The fixture decides nothing. It moves the time by seconds, sends the tick at the requested wake-up, and runs the
//! invariant checker after each step.

use std::collections::{BTreeMap, BTreeSet};

use reveille_agent::effect::Verb;
use reveille_agent::invariants::InvariantChecker;
use reveille_agent::model::{
    Credentials, Device, Inspection, Leaving, Machine, NodeSeen, OperationId, Outcome, PeerAnswer, Role,
    WatchdogSeen,
};
use reveille_agent::{Effect, Event, Memory, Report, Settings, Start, State};
use reveille_core::model::id::{NodeName, ZoneName};
use reveille_core::model::time::{Span, Time};

/// The state of the world around an agent.
#[derive(Clone, Debug)]
pub struct Around {
    pub api: bool,
    pub peers: BTreeMap<NodeName, (Option<ZoneName>, Option<PeerAnswer>)>,
    pub found: Inspection,
    /// The device takes the state that it is set to, or not.
    pub device_obeys: bool,
    pub watchdog: Option<Span>,
    /// The outcome of a verb.
    pub works: fn(&mut Self, Verb) -> Outcome,
    pub disk: bool,
}

pub fn machine() -> Machine {
    Machine {
        zone: Some(ZoneName::from("a")),
        watchdog: Device::Usable,
        may_reboot: true,
        role: Role::Worker,
        joining: false,
    }
}

pub struct Bench {
    pub now: Time,
    pub state: State,
    pub around: Around,
    pub checker: InvariantChecker,
    pub settings: Settings,
    pub reports: Vec<(Time, Report)>,
    pub acts: Vec<(Time, Verb)>,
    pub effects: Vec<Effect>,
    pub memory: Memory,
    wake: Option<Time>,
}

impl Bench {
    pub fn new(settings: Settings, memory: Memory) -> Self {
        let (config, warnings) = settings.check().unwrap();
        let name = NodeName::from("w-1");
        let around = Around {
            api: true,
            peers: BTreeMap::new(),
            found: Inspection {
                node: NodeSeen::Ready,
                came_and_went: false,
                credentials: Credentials::Accepted,
                leaving: None,
                clock_is_right: true,
            },
            device_obeys: true,
            watchdog: None,
            works: |_, _| Outcome::Done,
            disk: true,
        };
        let start = Start { name: name.clone(), config, warnings, memory: memory.clone() };
        Self {
            now: Time::from_ms(1_000_000_000),
            state: State::new(start),
            around,
            checker: InvariantChecker::new(name, *config.settings()),
            settings: *config.settings(),
            reports: Vec::new(),
            acts: Vec::new(),
            effects: Vec::new(),
            memory,
            wake: None,
        }
    }

    /// An agent on the machine of [`machine`], with this many peers in other zones and in its own.
    pub fn with_peers(outside: usize, inside: usize) -> Self {
        let mut bench = Self::new(Settings::default(), Memory::default());
        for number in 0..outside + inside {
            let zone = if number < outside { ["b", "c"][number % 2] } else { "a" };
            let peer = NodeName::new(format!("w-{}", number + 2));
            bench.around.peers.insert(peer, (Some(ZoneName::from(zone)), Some(PeerAnswer::NoOrder)));
        }
        bench.begin();
        bench
    }

    pub fn begin(&mut self) {
        self.hear(Event::Found(machine()));
        let peers = self.around.peers.iter().map(|(name, (zone, _))| (name.clone(), zone.clone()));
        self.hear(Event::PeersListed(peers.collect()));
    }

    /// Every peer, or each peer of one zone, gives this answer from now on.
    pub fn peers_say(&mut self, zone: Option<&str>, answer: Option<PeerAnswer>) {
        for (of, says) in self.around.peers.values_mut() {
            if zone.is_none_or(|zone| of.as_ref().is_some_and(|of| of.as_str() == zone)) {
                *says = answer;
            }
        }
    }

    pub fn hear(&mut self, event: Event) {
        self.checker.hear(self.now, &event);
        let effects = self.state.step(self.now, event);
        self.checker.check(self.now, &effects).unwrap_or_else(|violation| panic!("{violation}"));
        for effect in effects {
            self.effects.push(effect.clone());
            if let Some(answer) = self.serve(effect) {
                self.hear(answer);
            }
        }
    }

    fn serve(&mut self, effect: Effect) -> Option<Event> {
        match effect {
            Effect::CheckApi(operation, _) => {
                let silent = (!self.around.api).then(|| "connection refused".into());
                Some(Event::ApiChecked { operation, silent })
            }
            Effect::AskPeers(operation, peers, _) => {
                for peer in peers {
                    if let Some(answer) = self.around.peers[&peer].1 {
                        self.hear(Event::PeerAnswered { operation, peer, answer });
                    }
                }
                None
            }
            Effect::ReadOrders(operation, _) => {
                let orders = if self.around.api { Ok(BTreeSet::new()) } else { Err("no answer".into()) };
                Some(Event::OrdersRead { operation, orders })
            }
            Effect::Inspect(operation, _) => {
                Some(Event::Inspected { operation, found: self.around.found.clone() })
            }
            Effect::SetWatchdog(operation, to, _) => {
                if self.around.device_obeys {
                    self.around.watchdog = to;
                }
                Some(Event::WatchdogSet { operation, outcome: Outcome::Done })
            }
            Effect::ReadWatchdog(operation, _) => {
                let found = self.around.watchdog.map_or(WatchdogSeen::Disarmed, WatchdogSeen::Armed);
                Some(Event::WatchdogRead { operation, found })
            }
            Effect::Record(operation, memory, _) => {
                if !self.around.disk {
                    return None;
                }
                self.memory = memory;
                Some(Event::Recorded(operation))
            }
            Effect::Act(operation, verb, _) => {
                self.acts.push((self.now, verb));
                let outcome = (self.around.works)(&mut self.around, verb);
                Some(Event::Done { operation, outcome })
            }
            Effect::Report(report) => {
                self.reports.push((self.now, report));
                None
            }
            Effect::WakeAt(at) => {
                self.wake = Some(at);
                None
            }
            Effect::FeedWatchdog | Effect::AnswerPeer { .. } => None,
        }
    }

    pub fn run(&mut self, span: Span) {
        let end = self.now + span;
        while let Some(at) = self.wake.filter(|at| *at <= end) {
            // "Due at once" means one more step now, not an endless loop.
            self.now = at.max(self.now + Span::from_ms(1));
            self.wake = None;
            self.hear(Event::Tick);
            assert!(self.wake.is_some() || self.effects.len() < 100_000, "it spins");
            self.wake = self.wake.or(Some(self.now + Span::from_s(1)));
        }
        self.now = self.now.max(end);
    }

    /// The process dies, and another starts with the durable memory.
    pub fn restart(&mut self) {
        let (config, warnings) = self.settings.check().unwrap();
        let name = NodeName::from("w-1");
        self.state = State::new(Start { name, config, warnings, memory: self.memory.clone() });
        self.checker.restart();
        self.wake = None;
        self.begin();
    }

    pub fn verbs(&self) -> Vec<Verb> {
        self.acts.iter().map(|(_, verb)| *verb).collect()
    }

    pub fn said(&self, text: &str) -> bool {
        self.reports.iter().any(|(_, report)| report.to_string().contains(text))
    }

    pub fn all_said(&self) -> String {
        let lines: Vec<String> = self.reports.iter().map(|(_, report)| report.to_string()).collect();
        lines.join("\n")
    }

    /// The Node is deleted, and the credentials are in this state.
    pub fn node_goes(&mut self, credentials: Credentials, leaving: Option<Leaving>) {
        self.around.found = Inspection {
            node: NodeSeen::Absent,
            came_and_went: false,
            credentials,
            leaving,
            clock_is_right: true,
        };
    }
}

pub const fn operation(number: u64) -> OperationId {
    OperationId(number)
}
