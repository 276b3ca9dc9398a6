//! A test kills the server at every write of an enrolment and a join, over its real ledger. The kill comes before the
//! write, in the middle, or after it, before a client gets the answer. A waiting client asks again, as agents do.

use std::collections::BTreeSet;
use std::path::Path;

use reveille_core::model::stage::Stage;
use reveille_core::model::time::{Span, Time};
use reveille_wire::agent::frame::{Heartbeat, Hello, StageReport, StageStep};
use reveille_wire::agent::plan::Held;
use reveille_wire::agent::{
    AgentFrame, Distribution, Facts, Identity, Plan, Role, ServerFrame, StageWord, Word,
};

use super::store::Store;
use crate::registry::{
    Ask, AuthorityHash, Conn, Effect, Event, InvitationId, KeyHash, MachineId, Peer, Plans, Record, Registry,
    Reply, Settings, Template, TokenHash, What, Wish,
};

/// A server and its disk, and when it is killed.
struct Server<'d> {
    directory: &'d Path,
    running: Option<(Store, Registry)>,
    now: Time,
    ask: u64,
    /// The number of write points to pass before the kill; none after the kill.
    left: Option<usize>,
    /// Every record that was ever durable.
    durable: Vec<Record>,
    told_over: usize,
}

impl<'d> Server<'d> {
    fn new(directory: &'d Path, kill_at: usize) -> Self {
        let now = Time::from_ms(1_000_000);
        let mut server = Self {
            directory,
            running: None,
            now,
            ask: 0,
            left: Some(kill_at),
            durable: Vec::new(),
            told_over: 0,
        };
        server.start();
        server
    }

    fn start(&mut self) {
        let (store, records) = Store::open(self.directory, self.now).unwrap();
        assert_eq!(records, self.durable, "what was durable is there, in order");
        self.running = Some((store, Registry::restore(Settings::default(), self.now, &records)));
        let template = Template {
            distribution: Distribution::Kubeadm,
            server: "10.0.0.1:6443".into(),
            ca_pins: vec![Word::from("sha256:00")],
            labels: Default::default(),
            taints: Vec::new(),
            files: Vec::new(),
            config: None,
            needs: BTreeSet::new(),
        };
        let plans = Plans([(("prod".into(), "workers".into()), template)].into());
        // No machine exists yet, so nothing follows from it.
        self.registry().step(Time::from_ms(1_000_000), Event::PlansRead(plans));
    }

    fn registry(&mut self) -> &mut Registry {
        &mut self.running.as_mut().unwrap().1
    }

    /// Runs a step, makes its records durable, and returns its effects; or none: the server was killed, and runs again.
    fn step(&mut self, event: Event) -> Option<Vec<Effect>> {
        self.now = self.now + Span::from_s(1);
        let now = self.now;
        let effects = self.registry().step(now, event);
        let records: Vec<Record> = effects
            .iter()
            .filter_map(|effect| match effect {
                Effect::Record(record) => Some(record.clone()),
                _ => None,
            })
            .collect();
        let places = records.len() + 1;
        let kept = match self.left {
            Some(left) if left < places => {
                self.left = None;
                Some(left)
            }
            Some(left) => {
                self.left = Some(left - places);
                None
            }
            None => None,
        };
        let durable = &records[..kept.unwrap_or(records.len())];
        self.running.as_mut().unwrap().0.keep(durable.iter()).unwrap();
        self.durable.extend_from_slice(durable);
        if kept.is_some() {
            // The ledger's lock ends with it, as the lock of a process does.
            self.running = None;
            self.start();
            return None;
        }
        let over = |effect: &&Effect| matches!(effect, Effect::Tell(heard) if matches!(heard.what, What::JoinOver(_)));
        self.told_over += effects.iter().filter(over).count();
        Some(effects)
    }

    fn next_ask(&mut self) -> Ask {
        self.ask += 1;
        Ask(self.ask)
    }
}

/// A machine's agent, which asks again until it gets an answer.
struct Agent {
    invitation: InvitationId,
    key: KeyHash,
    machine: Option<MachineId>,
    conn: Option<Conn>,
    plan: Option<Plan>,
    reports: Vec<StageReport>,
    n: u64,
    has_token: bool,
    joined: bool,
}

fn identity() -> Identity {
    let (machine_id, boot_id) = (Some("feed0000000040008000000000000001".into()), "boot-1".into());
    Identity { instance_id: Some("i-1".into()), machine_id, system_uuid: None, boot_id }
}

impl Agent {
    fn enrol(&mut self, server: &mut Server<'_>, key: KeyHash) -> Option<Reply> {
        let ask = server.next_ask();
        let effects = server.step(Event::Enrol {
            ask,
            id: self.invitation.clone(),
            hash: TokenHash([7; 32]),
            identity: identity(),
            facts: Facts { hostname: "w-1".into(), ..Facts::default() },
            node_name: None,
            node: None,
            key,
            // A new id for each request.
            fresh: MachineId::new(format!("m-{}", ask.0)),
        })?;
        reply(effects, ask)
    }

    /// A session, in which the agent repeats everything that was not acknowledged.
    fn connect(&mut self, server: &mut Server<'_>) -> Option<()> {
        let conn = Conn(server.next_ask().0);
        let hello = Hello {
            protocol: 1,
            identity: identity(),
            facts: Facts { hostname: "w-1".into(), ..Facts::default() },
            plan: self.plan.as_ref().map(held),
            joined: self.joined,
        };
        let peer = Peer {
            machine: self.machine.clone()?,
            key: self.key,
            authority: AuthorityHash([0; 32]),
            not_after: Time::from_ms(i64::MAX),
        };
        self.n = 0;
        let effects = server.step(Event::Arrived { conn, peer, hello })?;
        let refused = |effect: &Effect| matches!(effect, Effect::Close(to, _) if *to == conn);
        assert!(!effects.iter().any(refused), "{effects:?}");
        self.conn = Some(conn);
        self.hear(server, effects)?;
        for report in self.reports.clone() {
            self.say(server, AgentFrame::Stage(report))?;
        }
        Some(())
    }

    fn say(&mut self, server: &mut Server<'_>, frame: AgentFrame) -> Option<()> {
        self.n += 1;
        let effects = server.step(Event::Said { conn: self.conn?, n: self.n, frame });
        if effects.is_none() {
            self.conn = None;
        }
        self.hear(server, effects?)
    }

    fn hear(&mut self, server: &mut Server<'_>, effects: Vec<Effect>) -> Option<()> {
        for effect in effects {
            match effect {
                Effect::Send(_, ServerFrame::Plan(plan)) => {
                    let before = self.plan.as_ref().map_or(0, |plan| plan.version);
                    assert!(plan.version > before, "a plan is given once, and its version grows");
                    self.plan = Some(plan);
                }
                // Each message is one frame here, sent after the answer to the one before.
                Effect::Send(_, ServerFrame::Ack { .. }) => self.reports.clear(),
                Effect::SendToken(..) => self.has_token = true,
                Effect::MakeToken { machine, .. } => {
                    let made = server.step(Event::TokenMade { machine, outcome: Ok(()) });
                    if made.is_none() {
                        self.conn = None;
                    }
                    self.hear(server, made?)?;
                }
                _ => {}
            }
        }
        Some(())
    }

    /// Repeats the report until it was kept.
    fn report(&mut self, server: &mut Server<'_>, seq: u64, stage: Stage, step: StageStep) {
        let stage = StageWord(stage);
        self.reports.push(StageReport { seq, stage, step, attempts: 1, error: None, stamp: "then".into() });
        let report = self.reports[0].clone();
        if self.conn.is_some() && self.say(server, AgentFrame::Stage(report)).is_some() {
            return;
        }
        self.again(server);
        assert!(self.reports.is_empty(), "it is acknowledged in the next session");
    }

    fn again(&mut self, server: &mut Server<'_>) {
        while self.conn.is_none() {
            self.connect(server);
        }
    }
}

fn held(plan: &Plan) -> Held {
    Held { version: plan.version, checksum: plan.checksum.clone() }
}

fn reply(effects: Vec<Effect>, ask: Ask) -> Option<Reply> {
    effects.into_iter().find_map(|effect| match effect {
        Effect::Reply(to, reply) if to == ask => Some(reply),
        _ => None,
    })
}

fn invite(server: &mut Server<'_>) -> InvitationId {
    let wish = Wish {
        roster: "prod".into(),
        pool: "workers".into(),
        roles: BTreeSet::from([Role::Worker]),
        machine: None,
        reimage: None,
        ttl: Span::from_min(60),
        uses: 1,
    };
    // An operator without an answer asks again; the token of an unanswered invitation is never used.
    loop {
        let (ask, wish) = (server.next_ask(), wish.clone());
        let (id, hash) = (InvitationId::new(format!("i{}", ask.0)), TokenHash([7; 32]));
        if let Some(effects) = server.step(Event::Invite { ask, wish, id, hash }) {
            match reply(effects, ask) {
                Some(Reply::Invited { id, .. }) => return id,
                other => panic!("{other:?}"),
            }
        }
    }
}

/// The whole way of a machine, with one kill of the server. False when the way ended before the kill.
fn completes(kill_at: usize) -> bool {
    let directory = tempfile::tempdir().unwrap();
    let mut server = Server::new(directory.path(), kill_at);
    let invitation = invite(&mut server);
    let (first, second) = (KeyHash([1; 32]), KeyHash([2; 32]));
    let (plan, reports) = (None, Vec::new());
    let mut agent = Agent {
        invitation,
        key: first,
        machine: None,
        conn: None,
        plan,
        reports,
        n: 0,
        has_token: false,
        joined: false,
    };
    while agent.machine.is_none() {
        if let Some(reply) = agent.enrol(&mut server, first) {
            let Reply::Certify { machine, .. } = reply else { panic!("{reply:?}") };
            agent.machine = Some(machine);
        }
    }
    agent.again(&mut server);
    agent.report(&mut server, 1, Stage::FetchConfig, StageStep::Entered);
    agent.report(&mut server, 2, Stage::FetchConfig, StageStep::Left);
    while !agent.has_token {
        agent.again(&mut server);
        agent.say(&mut server, AgentFrame::TokenWanted {});
    }
    agent.report(&mut server, 3, Stage::Register, StageStep::Entered);
    agent.report(&mut server, 4, Stage::Stay, StageStep::Entered);
    agent.joined = true;
    let beat = Heartbeat { stage: Some(StageWord(Stage::Stay)), joined: true, account: None };
    while agent.say(&mut server, AgentFrame::Heartbeat(beat.clone())).is_none() {
        agent.again(&mut server);
    }
    // The machine's next certificate, and its first use.
    let peer = Peer {
        machine: agent.machine.clone().unwrap(),
        key: first,
        authority: AuthorityHash([0; 32]),
        not_after: Time::from_ms(i64::MAX),
    };
    loop {
        let (ask, peer) = (server.next_ask(), peer.clone());
        if let Some(effects) = server.step(Event::Renew { ask, peer, key: second }) {
            assert!(matches!(reply(effects, ask), Some(Reply::Certify { .. })));
            break;
        }
    }
    (agent.key, agent.conn) = (second, None);
    agent.again(&mut server);
    let killed = server.left.is_none();
    judge(server, &agent, kill_at);
    killed
}

fn judge(mut server: Server<'_>, agent: &Agent, kill_at: usize) {
    let (invitation, plan) = (agent.invitation.clone(), None);
    let mut stranger = Agent {
        invitation,
        key: KeyHash([9; 32]),
        machine: None,
        conn: None,
        plan,
        reports: Vec::new(),
        ..*agent
    };
    let index = server.registry().index();
    let machines: Vec<_> = index.machines().collect();
    assert_eq!(machines.len(), 1, "killed at {kill_at}: one identity");
    let known = machines[0];
    assert_eq!(Some(&known.id), agent.machine.as_ref(), "killed at {kill_at}");
    assert_eq!((known.key, known.next_keys.len()), (KeyHash([2; 32]), 0), "killed at {kill_at}");
    let plan = agent.plan.as_ref().expect("it has its plan");
    assert_eq!((known.plan.clone(), plan.version), (held(plan), 1), "killed at {kill_at}: the plan it holds");
    assert_eq!(known.reports_kept, 4, "killed at {kill_at}");
    let uses = index.invitation(&agent.invitation).map(|invitation| invitation.uses);
    assert_eq!(uses, Some(1), "killed at {kill_at}: a use is counted once");
    for seq in 1..=4 {
        let of = |record: &&Record| matches!(record, Record::Staged(staged) if staged.seq == seq);
        assert_eq!(server.durable.iter().filter(of).count(), 1, "killed at {kill_at}: report {seq}");
    }
    let over = |record: &&Record| matches!(record, Record::JoinOver { .. });
    assert_eq!(server.durable.iter().filter(over).count(), 1, "killed at {kill_at}: the join is over once");
    assert!(server.told_over <= 1, "killed at {kill_at}: and told at most once");
    server.left = None;
    let refused = stranger.enrol(&mut server, KeyHash([9; 32])).expect("the server is not killed any more");
    assert!(
        matches!(&refused, Reply::Refused(refused) if refused.reason.code() == "TOKEN_USED_UP"),
        "killed at {kill_at}: {refused:?}"
    );
}

#[test]
fn server_killed_at_any_write_loses_and_doubles_nothing() {
    let places = (0..).take_while(|kill_at| completes(*kill_at)).count();
    assert!(places >= 20, "{places} places to be killed at");
}
