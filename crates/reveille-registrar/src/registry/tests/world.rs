//! A registry with a clock, its invariant checker, and its records.

use std::collections::BTreeSet;

use reveille_core::model::id::{PoolName, RosterName};
use reveille_core::model::stage::Stage;
use reveille_core::model::time::{Span, Time};
use reveille_wire::agent::frame::{Heartbeat, Hello, Numbered, StageReport, StageStep};
use reveille_wire::agent::text::Word;
use reveille_wire::agent::{
    AgentFrame, Distribution, Facts, Identity, Refused, Role, ServerFrame, StageWord,
};

use crate::registry::invariants::InvariantChecker;
use crate::registry::{
    Ask, AuthorityHash, Conn, Effect, Event, InvitationId, KeyHash, MachineId, NodeSaid, Peer, Plans, Record,
    Registry, Reimage, Reply, Settings, Template, TokenHash, What, Wish,
};

pub(super) const SECRET: u8 = 7;
pub(super) const AUTHORITY: AuthorityHash = AuthorityHash([0; 32]);
pub(super) const NEVER: Time = Time::from_ms(i64::MAX);

pub(super) struct World {
    pub(super) registry: Registry,
    checker: InvariantChecker,
    pub(super) now: Time,
    pub(super) records: Vec<Record>,
    count: u64,
    n: u64,
}

impl World {
    pub(super) fn new() -> Self {
        let now = Time::from_ms(1_000_000);
        Self {
            registry: Registry::restore(Settings::default(), now, &[]),
            checker: InvariantChecker::default(),
            now,
            records: Vec::new(),
            count: 0,
            n: 0,
        }
    }

    /// A copy of the world that goes on in another way.
    pub(super) fn branch(&self) -> Self {
        Self {
            registry: self.registry.clone(),
            checker: self.checker.clone(),
            records: self.records.clone(),
            ..*self
        }
    }

    pub(super) fn step(&mut self, event: Event) -> Vec<Effect> {
        let effects = self.registry.step(self.now, event.clone());
        if let Err(broken) = self.checker.check(self.now, &event, &effects) {
            panic!("{broken:?} after {event:?}: {effects:#?}");
        }
        self.records.extend(effects.iter().filter_map(|effect| match effect {
            Effect::Record(record) => Some(record.clone()),
            _ => None,
        }));
        effects
    }

    pub(super) fn pass(&mut self, span: Span) -> Vec<Effect> {
        self.now = self.now + span;
        self.step(Event::Tick)
    }

    pub(super) fn ask(&mut self) -> Ask {
        self.count += 1;
        Ask(self.count)
    }

    pub(super) fn invite(&mut self, change: impl FnOnce(&mut Wish)) -> InvitationId {
        let mut wish = Wish {
            roster: RosterName::from("prod"),
            pool: PoolName::from("workers"),
            roles: BTreeSet::from([Role::Worker]),
            machine: None,
            reimage: None,
            ttl: Span::from_min(60),
            uses: 1,
        };
        change(&mut wish);
        let ask = self.ask();
        let id = InvitationId::new(format!("i{}", ask.0));
        let effects = self.step(Event::Invite { ask, wish, id: id.clone(), hash: TokenHash([SECRET; 32]) });
        assert!(matches!(effects.last(), Some(Effect::Reply(_, Reply::Invited { .. }))), "{effects:?}");
        id
    }

    pub(super) fn enrol_with(&mut self, id: &InvitationId, secret: u8, who: &Claimed) -> Reply {
        self.enrols(id, secret, who, None)
    }

    /// Enrols while the cluster says this about a Node of the machine's name.
    pub(super) fn enrol_beside(&mut self, id: &InvitationId, who: &Claimed, node: Option<NodeSaid>) -> Reply {
        self.enrols(id, SECRET, who, node)
    }

    fn enrols(&mut self, id: &InvitationId, secret: u8, who: &Claimed, node: Option<NodeSaid>) -> Reply {
        let effects = self.enrolling_with(id, secret, who, node);
        let replied = effects.into_iter().find_map(|effect| match effect {
            Effect::Reply(_, reply) => Some(reply),
            _ => None,
        });
        replied.expect("everyone is answered")
    }

    /// All effects of an enrolment.
    pub(super) fn enrolling(&mut self, id: &InvitationId, who: &Claimed) -> Vec<Effect> {
        self.enrolling_with(id, SECRET, who, None)
    }

    fn enrolling_with(
        &mut self,
        id: &InvitationId,
        secret: u8,
        who: &Claimed,
        node: Option<NodeSaid>,
    ) -> Vec<Effect> {
        let ask = self.ask();
        self.step(Event::Enrol {
            ask,
            id: id.clone(),
            hash: TokenHash([secret; 32]),
            identity: who.identity.clone(),
            facts: who.facts.clone(),
            node_name: None,
            node,
            key: who.key,
            fresh: MachineId::new(format!("m-{}", ask.0)),
        })
    }

    pub(super) fn enrol(&mut self, id: &InvitationId, who: &Claimed) -> Reply {
        self.enrol_with(id, SECRET, who)
    }

    /// Invites and enrols a machine.
    pub(super) fn known(&mut self, who: &Claimed) -> MachineId {
        let id = self.invite(|_| {});
        certified(self.enrol(&id, who))
    }

    pub(super) fn arrive(&mut self, machine: &MachineId, who: &Claimed) -> (Conn, Vec<Effect>) {
        let hello = Hello {
            protocol: 1,
            identity: who.identity.clone(),
            facts: who.facts.clone(),
            plan: None,
            joined: false,
        };
        self.arrive_with(machine, who.key, hello)
    }

    pub(super) fn arrive_with(
        &mut self,
        machine: &MachineId,
        key: KeyHash,
        hello: Hello,
    ) -> (Conn, Vec<Effect>) {
        self.count += 1;
        let conn = Conn(self.count);
        let peer = Peer { machine: machine.clone(), key, authority: AUTHORITY, not_after: NEVER };
        let effects = self.step(Event::Arrived { conn, peer, hello });
        (conn, effects)
    }

    pub(super) fn say(&mut self, conn: Conn, frame: AgentFrame) -> Vec<Effect> {
        self.n += 1;
        let Numbered { n, frame } = Numbered { n: self.n, frame };
        self.step(Event::Said { conn, n, frame })
    }

    pub(super) fn plans(&mut self, needs: &[Role]) {
        let template = template(needs);
        let key = (RosterName::from("prod"), PoolName::from("workers"));
        self.step(Event::PlansRead(Plans([(key, template)].into())));
    }

    pub(super) fn cluster(&mut self, present: Option<&[Role]>) -> Vec<Effect> {
        let present = present.map(|roles| roles.iter().copied().collect());
        self.step(Event::ClusterSaid { roster: RosterName::from("prod"), present })
    }
}

pub(super) fn template(needs: &[Role]) -> Template {
    Template {
        distribution: Distribution::Kubeadm,
        server: "10.0.0.1:6443".into(),
        ca_pins: vec![Word::from("sha256:00")],
        labels: Default::default(),
        taints: Vec::new(),
        files: Vec::new(),
        config: None,
        needs: needs.iter().copied().collect(),
    }
}

macro_rules! ten {
    ($before:literal) => {
        [
            concat!($before, "0"),
            concat!($before, "1"),
            concat!($before, "2"),
            concat!($before, "3"),
            concat!($before, "4"),
            concat!($before, "5"),
            concat!($before, "6"),
            concat!($before, "7"),
            concat!($before, "8"),
            concat!($before, "9"),
        ]
    };
}

/// Machine ids and system UUIDs of the first machines.
pub(super) const MID: [&str; 10] = ten!("feed000000004000800000000000000");
pub(super) const UUID: [&str; 10] = ten!("c0ffee00-0000-4000-8000-00000000000");

/// A machine as it claims to be.
#[derive(Clone, Debug)]
pub(super) struct Claimed {
    pub(super) identity: Identity,
    pub(super) facts: Facts,
    pub(super) key: KeyHash,
}

/// A machine with ids of its own.
pub(super) fn machine(number: u8) -> Claimed {
    Claimed {
        identity: Identity {
            instance_id: Some(Word::cut(&format!("i-{number}"))),
            machine_id: Some(Word::cut(&format!("feed0000000040008000{number:012}"))),
            system_uuid: Some(Word::cut(&format!("c0ffee00-0000-4000-8000-{number:012}"))),
            boot_id: Word::cut(&format!("boot-{number}")),
        },
        facts: Facts { hostname: Word::cut(&format!("w-{number}")), ..Facts::default() },
        key: KeyHash([number; 32]),
    }
}

pub(super) fn certified(reply: Reply) -> MachineId {
    match reply {
        Reply::Certify { machine, .. } => machine,
        other => panic!("{other:?}"),
    }
}

pub(super) fn refused(reply: Reply) -> &'static str {
    match reply {
        Reply::Refused(refused) => refused.reason.code(),
        other => panic!("{other:?}"),
    }
}

pub(super) fn closed(effects: &[Effect], conn: Conn) -> Option<&'static str> {
    effects.iter().find_map(|effect| match effect {
        Effect::Close(to, Refused { reason, .. }) if *to == conn => Some(reason.code()),
        _ => None,
    })
}

pub(super) fn sent(effects: &[Effect], conn: Conn) -> Vec<&ServerFrame> {
    let mut frames = Vec::new();
    for effect in effects {
        if let Effect::Send(to, frame) = effect
            && *to == conn
        {
            frames.push(frame);
        }
    }
    frames
}

pub(super) fn wait(effects: &[Effect], conn: Conn) -> Option<&'static str> {
    sent(effects, conn).into_iter().find_map(|frame| match frame {
        ServerFrame::Wait(refused) => Some(refused.reason.code()),
        _ => None,
    })
}

pub(super) fn told(effects: &[Effect]) -> Vec<&What> {
    let mut heard = Vec::new();
    for effect in effects {
        if let Effect::Tell(told) = effect {
            heard.push(&told.what);
        }
    }
    heard
}

pub(super) const REBUILT: fn(&mut Wish) = |wish| {
    wish.machine = Some("i-1".into());
    wish.reimage = Some(Reimage::WhenSilent);
};

pub(super) const BEAT: AgentFrame =
    AgentFrame::Heartbeat(Heartbeat { stage: None, joined: false, account: None });

/// How many tokens were asked for, sent, and deleted.
pub(super) fn tokens(effects: &[Effect]) -> (usize, usize, usize) {
    let count = |wanted: fn(&Effect) -> bool| effects.iter().filter(|effect| wanted(effect)).count();
    (
        count(|effect| matches!(effect, Effect::MakeToken { .. })),
        count(|effect| matches!(effect, Effect::SendToken(..))),
        count(|effect| matches!(effect, Effect::DropToken { .. })),
    )
}

pub(super) fn staged(seq: u64, stage: Stage, step: StageStep) -> AgentFrame {
    let stage = StageWord(stage);
    AgentFrame::Stage(StageReport {
        seq,
        stage,
        step,
        attempts: 1,
        error: None,
        stamp: "its own clock".into(),
    })
}
