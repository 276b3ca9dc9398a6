//! Random sequences: whatever comes in whatever order, the invariants hold and a replay gives the same index.

use proptest::prelude::*;
use reveille_core::model::stage::Stage;
use reveille_core::model::time::Span;
use reveille_wire::agent::frame::{Heartbeat, Hello, StageStep};
use reveille_wire::agent::text::Word;
use reveille_wire::agent::{AgentFrame, StageWord, Verb};

use super::world::*;
use crate::registry::{
    Conn, Event, Index, InvitationId, KeyHash, MachineId, OrderId, Peer, Record, Registry, Reimage, Removal,
    Settings, TokenHash, Wish,
};

/// One event with small numbers, so that events often concern the same machine.
#[derive(Clone, Debug)]
enum Act {
    Invite { machine: Option<u8>, reimage: Option<Reimage>, uses: u32, ttl_min: i64 },
    Enrol { invitation: u64, secret: u8, part: u8, key: u8, name: u8 },
    Arrive { machine: u64, who: u8, key: u8, boot: u8, joined: bool },
    Say { conn: u64, seq: u64, stage: usize, joined: bool },
    Gone(u64),
    Renew { machine: u64, key: u8, next: u8 },
    Remove { machine: u64, what: Option<Removal> },
    Token { machine: u64, made: bool },
    Order(u64),
    Cluster(bool),
    Pass(i64),
    Restart,
}

fn act() -> impl Strategy<Value = Act> {
    let reimage = prop_oneof![Just(None), Just(Some(Reimage::WhenSilent)), Just(Some(Reimage::AtOnce))];
    let what = prop_oneof![Just(None), Just(Some(Removal::Node)), Just(Some(Removal::Machine))];
    prop_oneof![
        3 => (proptest::option::of(0..3_u8), reimage, 0..3_u32, 0..90_i64)
            .prop_map(|(machine, reimage, uses, ttl_min)| Act::Invite { machine, reimage, uses, ttl_min }),
        6 => (0..30_u64, 6..8_u8, 0..3_u8, 0..4_u8, 0..3_u8)
            .prop_map(|(invitation, secret, part, key, name)| Act::Enrol { invitation, secret, part, key, name }),
        6 => (0..30_u64, 0..3_u8, 0..4_u8, 0..2_u8, any::<bool>())
            .prop_map(|(machine, who, key, boot, joined)| Act::Arrive { machine, who, key, boot, joined }),
        6 => (0..60_u64, 0..9_u64, 0..14_usize, any::<bool>())
            .prop_map(|(conn, seq, stage, joined)| Act::Say { conn, seq, stage, joined }),
        2 => (0..60_u64).prop_map(Act::Gone),
        2 => (0..30_u64, 0..4_u8, 0..6_u8).prop_map(|(machine, key, next)| Act::Renew { machine, key, next }),
        2 => (0..30_u64, what).prop_map(|(machine, what)| Act::Remove { machine, what }),
        2 => (0..30_u64, any::<bool>()).prop_map(|(machine, made)| Act::Token { machine, made }),
        2 => (0..30_u64).prop_map(Act::Order),
        1 => any::<bool>().prop_map(Act::Cluster),
        2 => (1..1000_i64).prop_map(Act::Pass),
        1 => Just(Act::Restart),
    ]
}

fn record(number: u64) -> MachineId {
    MachineId::new(format!("m-{number}"))
}

fn play(world: &mut World, act: Act, orders: &mut u64) {
    let event = match act {
        Act::Invite { .. } | Act::Enrol { .. } | Act::Arrive { .. } | Act::Say { .. } => {
            of_a_machine(world, act)
        }
        // A connection that has not begun cannot end.
        Act::Gone(conn) => Event::Gone(Conn(conn.min(world.ask().0))),
        Act::Renew { machine, key, next } => {
            let (ask, peer) = (
                world.ask(),
                Peer {
                    machine: record(machine),
                    key: KeyHash([key; 32]),
                    authority: AUTHORITY,
                    not_after: NEVER,
                },
            );
            Event::Renew { ask, peer, key: KeyHash([next; 32]) }
        }
        Act::Remove { machine, what } => {
            Event::Remove { ask: world.ask(), machine: Word::cut(record(machine).as_str()), what }
        }
        Act::Token { machine, made } => {
            let outcome = if made { Ok(()) } else { Err("no".into()) };
            Event::TokenMade { machine: record(machine), outcome }
        }
        Act::Order(machine) => {
            *orders += 1;
            Event::Order {
                id: OrderId(*orders),
                machine: record(machine),
                verb: Verb::Probe,
                within: Span::from_s(60),
            }
        }
        Act::Cluster(there) => {
            Event::ClusterSaid { roster: "prod".into(), present: there.then(Default::default) }
        }
        Act::Pass(s) => {
            world.now = world.now + Span::from_s(s);
            Event::Tick
        }
        Act::Restart => {
            world.restart();
            Event::Tick
        }
    };
    world.step(event);
}

fn of_a_machine(world: &mut World, act: Act) -> Event {
    match act {
        Act::Invite { machine, reimage, uses, ttl_min } => {
            let ask = world.ask();
            let wish = Wish {
                roster: "prod".into(),
                pool: "workers".into(),
                roles: Default::default(),
                machine: machine.map(|number| Word::cut(&format!("feed0000000040008000{number:012}"))),
                reimage,
                ttl: Span::from_min(ttl_min),
                uses,
            };
            Event::Invite {
                ask,
                wish,
                id: InvitationId::new(format!("i{}", ask.0)),
                hash: TokenHash([SECRET; 32]),
            }
        }
        Act::Enrol { invitation, secret, part, key, name } => {
            let ask = world.ask();
            let mut who = machine(part);
            who.facts.hostname = machine(name).facts.hostname;
            Event::Enrol {
                ask,
                id: InvitationId::new(format!("i{invitation}")),
                hash: TokenHash([secret; 32]),
                identity: who.identity,
                facts: who.facts,
                node_name: None,
                node: None,
                key: KeyHash([key; 32]),
                fresh: record(ask.0),
            }
        }
        Act::Arrive { machine: number, who, key, boot, joined } => {
            let who = machine(who);
            let mut identity = who.identity;
            identity.boot_id = Word::cut(&format!("boot-{boot}"));
            let conn = Conn(world.ask().0);
            let hello = Hello { protocol: 1, identity, facts: who.facts, plan: None, joined };
            Event::Arrived {
                conn,
                peer: Peer {
                    machine: record(number),
                    key: KeyHash([key; 32]),
                    authority: AUTHORITY,
                    not_after: NEVER,
                },
                hello,
            }
        }
        Act::Say { conn, seq, stage, joined } => {
            let stage = Stage::ALL[stage];
            let frame = if seq == 0 {
                AgentFrame::Heartbeat(Heartbeat { stage: Some(StageWord(stage)), joined, account: None })
            } else {
                let step = if joined { StageStep::Left } else { StageStep::Entered };
                staged(seq, stage, step)
            };
            Event::Said { conn: Conn(conn), n: world.ask().0, frame }
        }
        _ => Event::Tick,
    }
}

impl World {
    /// The process ends and starts again: connections are gone, and the records come back from JSON.
    pub(super) fn restart(&mut self) {
        let lines: Vec<String> =
            self.records.iter().map(|record| serde_json::to_string(record).unwrap()).collect();
        let records: Vec<Record> = lines.iter().map(|line| serde_json::from_str(line).unwrap()).collect();
        let before = self.registry.index().clone();
        for conn in 0..=self.ask().0 {
            self.step(Event::Gone(Conn(conn)));
        }
        self.registry = Registry::restore(Settings::default(), self.now, &records);
        assert_eq!(*self.registry.index(), before);
        self.plans(&[]);
    }
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 200, max_shrink_iters: 4000, ..ProptestConfig::default() })]

    #[test]
    fn invariants_hold_and_replay_gives_same_book_for_any_events(acts in proptest::collection::vec(act(), 1..120)) {
        let mut world = World::new();
        world.plans(&[]);
        let mut orders = 0;
        for act in acts {
            play(&mut world, act, &mut orders);
        }
        let mut replayed = Index::default();
        world.records.iter().for_each(|record| replayed.apply(record));
        prop_assert_eq!(&replayed, world.registry.index());
        let mut from_checkpoint = Index::default();
        replayed.checkpoint().iter().for_each(|record| from_checkpoint.apply(record));
        prop_assert_eq!(&from_checkpoint, &replayed);
    }
}
