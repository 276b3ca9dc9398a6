//! A join for tests, as the registry itself reports it.

use std::collections::BTreeSet;
use std::sync::Arc;

use reveille_core::model::stage::Stage;
use reveille_core::model::time::{Span, Time};
use reveille_registrar::registry::event::What;
use reveille_registrar::registry::{
    Ask, AuthorityHash, Conn, Effect, Event, InvitationId, JoinOver, KeyHash, MachineId, Peer, Plans,
    Registry, Settings, Template, TokenHash, Who, Wish,
};
use reveille_wire::agent::frame::{Heartbeat, Hello, StageReport, StageStep, Trouble};
use reveille_wire::agent::{AgentFrame, Distribution, Facts, Identity, Role, StageWord, Word};

/// A text in the form of a bootstrap token, which a careless error message might quote.
pub(super) const TOKEN: &str = "abcdef.c4n4ry6789abcdef";

/// A join as the registry itself reports it: enrolled, silent once, refused once by its API server, and Ready in the end.
pub(super) fn a_join() -> (Arc<Who>, JoinOver) {
    let mut registry = Registry::restore(Settings::default(), Time::from_ms(0), &[]);
    let identity = Identity {
        instance_id: Some("8d1f".into()),
        machine_id: Some("feed0000000040008000000000000001".into()),
        system_uuid: None,
        boot_id: "boot-1".into(),
    };
    let facts = Facts { hostname: "w-1".into(), ..Facts::default() };
    let (id, hash, key) = (InvitationId::new("i1".to_owned()), TokenHash([7; 32]), KeyHash([1; 32]));
    let machine = MachineId::new("m-1".to_owned());
    let (wish, template) = (wish(), template());
    let staged = |seq, stage, step, error: Option<&str>| {
        let error = error.map(|text| Trouble { code: "JOIN_FAILED".into(), text: text.into() });
        let attempts = u32::from(error.is_some());
        let stage = StageWord(stage);
        AgentFrame::Stage(StageReport { seq, stage, step, attempts, error, stamp: "then".into() })
    };
    let beat = Heartbeat { stage: Some(StageWord(Stage::Stay)), joined: true, account: None };
    let says = format!("error: couldn't validate token {TOKEN} with token={TOKEN}");
    let hello =
        Hello { protocol: 1, identity: identity.clone(), facts: facts.clone(), plan: None, joined: false };
    let said = |n, frame| Event::Said { conn: Conn(1), n, frame };
    let course = [
        (0, Event::PlansRead(Plans([(("prod".into(), "workers".into()), template)].into()))),
        (0, Event::Invite { ask: Ask(1), wish, id: id.clone(), hash }),
        (
            1,
            Event::Enrol {
                ask: Ask(2),
                id,
                hash,
                identity,
                facts,
                node_name: None,
                node: None,
                key,
                fresh: machine.clone(),
            },
        ),
        (
            2,
            Event::Arrived {
                conn: Conn(1),
                peer: Peer {
                    machine,
                    key,
                    authority: AuthorityHash([0; 32]),
                    not_after: Time::from_ms(i64::MAX),
                },
                hello: hello.clone(),
            },
        ),
        (3, said(1, staged(1, Stage::FetchConfig, StageStep::Entered, None))),
        (4, said(2, staged(2, Stage::FetchConfig, StageStep::Left, None))),
        (4, said(3, staged(3, Stage::Authenticate, StageStep::Entered, None))),
        (5, said(4, staged(4, Stage::Authenticate, StageStep::Tried, Some(&says)))),
        (75, Event::Tick),
        (
            90,
            Event::Arrived {
                conn: Conn(1),
                peer: Peer {
                    machine: MachineId::new("m-1".to_owned()),
                    key,
                    authority: AuthorityHash([0; 32]),
                    not_after: Time::from_ms(i64::MAX),
                },
                hello,
            },
        ),
        (91, said(1, staged(5, Stage::Authenticate, StageStep::Left, None))),
        (91, said(2, staged(6, Stage::Stay, StageStep::Entered, None))),
        (151, said(3, AgentFrame::Heartbeat(beat))),
    ];
    let began_s = 1_795_361_213;
    let steps =
        course.into_iter().flat_map(|(s, event)| registry.step(Time::from_ms((began_s + s) * 1000), event));
    let over = steps.into_iter().find_map(|effect| match effect {
        Effect::Tell(told) => match told.what {
            What::JoinOver(over) => Some((told.who, *over)),
            _ => None,
        },
        _ => None,
    });
    over.expect("it is over")
}

fn wish() -> Wish {
    Wish {
        roster: "prod".into(),
        pool: "workers".into(),
        roles: BTreeSet::from([Role::Worker]),
        machine: None,
        reimage: None,
        ttl: Span::from_min(60),
        uses: 1,
    }
}

fn template() -> Template {
    Template {
        distribution: Distribution::Kubeadm,
        server: "10.0.0.1:6443".into(),
        ca_pins: vec![Word::from("sha256:00")],
        labels: Default::default(),
        taints: Vec::new(),
        files: Vec::new(),
        config: None,
        needs: BTreeSet::new(),
    }
}
