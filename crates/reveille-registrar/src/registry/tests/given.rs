//! What connected machines are sent: plans, tokens, waits, orders; and what the server hears from them.

use reveille_core::model::stage::Stage;
use reveille_core::model::time::Span;
use reveille_wire::agent::frame::{Done, Ended, EvidencePart, StageStep};
use reveille_wire::agent::text::Text;
use reveille_wire::agent::{AgentFrame, Role, ServerFrame, Verb};

use super::world::*;
use crate::registry::{Conn, Effect, Event, MachineId, NoAnswer, OrderId, Peer, Record, What};

#[test]
fn each_wait_says_what_is_missing_and_ends_when_it_is_there() {
    let mut world = World::new();
    let id = world.known(&machine(1));
    let (conn, effects) = world.arrive(&id, &machine(1));
    assert_eq!(wait(&effects, conn), Some("WAIT_PLAN"), "no plan is written");
    let effects = {
        let template = template(&[Role::ControlPlane]);
        let key = ("prod".into(), "workers".into());
        world.step(Event::PlansRead(crate::registry::Plans([(key, template)].into())))
    };
    assert!(
        sent(&effects, conn).iter().any(|frame| matches!(frame, ServerFrame::Plan(_))),
        "files come first"
    );
    assert_eq!(wait(&effects, conn), Some("WAIT_PLAN"), "the cluster has not answered yet");
    let effects = world.cluster(Some(&[]));
    assert_eq!(wait(&effects, conn), Some("WAIT_ROLE"));
    let effects = world.cluster(Some(&[]));
    assert_eq!(wait(&effects, conn), None, "the same is not said twice");
    let effects = world.cluster(Some(&[Role::ControlPlane]));
    assert_eq!((wait(&effects, conn), tokens(&effects)), (Some("WAIT_TOKEN"), (1, 0, 0)));
    let effects = world.step(Event::TokenMade { machine: id.clone(), outcome: Ok(()) });
    assert_eq!((wait(&effects, conn), tokens(&effects)), (None, (0, 1, 0)));
    let says = world.registry.index().machine(&id).unwrap().trace.leg(Stage::FetchConfig).unwrap();
    assert_eq!(says.server_says, None, "what was in the way is no longer");
}

#[test]
fn plan_is_sent_if_agent_holds_another_and_version_rises() {
    let mut world = World::new();
    world.plans(&[]);
    let id = world.known(&machine(1));
    let plan_of = |effects: &[Effect], conn| {
        sent(effects, conn).into_iter().find_map(|frame| match frame {
            ServerFrame::Plan(plan) => Some(plan.clone()),
            _ => None,
        })
    };
    let (conn, effects) = world.arrive(&id, &machine(1));
    let first = plan_of(&effects, conn).unwrap();
    assert_eq!((first.version, first.checksum.clone()), (1, crate::registry::plans::checksum(&first)));
    let holding = |plan: &reveille_wire::agent::Plan| reveille_wire::agent::frame::Hello {
        protocol: 1,
        identity: machine(1).identity,
        facts: machine(1).facts,
        plan: Some(reveille_wire::agent::plan::Held {
            version: plan.version,
            checksum: plan.checksum.clone(),
        }),
        joined: false,
    };
    let (conn, effects) = world.arrive_with(&id, machine(1).key, holding(&first));
    assert_eq!(plan_of(&effects, conn), None);
    let mut edited = template(&[]);
    edited.taints.push("gpu=yes:NoSchedule".into());
    let effects = world
        .step(Event::PlansRead(crate::registry::Plans([(("prod".into(), "workers".into()), edited)].into())));
    let second = plan_of(&effects, conn).unwrap();
    assert_eq!(second.version, 2);
    assert_ne!(second.checksum, first.checksum);
}

#[test]
fn a_report_counts_once_however_often_it_is_said() {
    let mut world = World::new();
    let id = world.known(&machine(1));
    let (conn, _) = world.arrive(&id, &machine(1));
    let effects = world.say(conn, staged(5, Stage::Runtime, StageStep::Entered));
    assert!(sent(&effects, conn).iter().any(|frame| matches!(frame, ServerFrame::Ack { .. })));
    world.step(Event::Gone(conn));
    let (conn, effects) = world.arrive(&id, &machine(1));
    let kept = sent(&effects, conn).into_iter().find_map(|frame| match frame {
        ServerFrame::Welcome(welcome) => Some(welcome.reports_kept),
        _ => None,
    });
    assert_eq!(kept, Some(5));
    let effects = world.say(conn, staged(5, Stage::Runtime, StageStep::Entered));
    assert!(told(&effects).is_empty());
    assert!(!sent(&effects, conn).is_empty(), "it is acknowledged again");
    let trace = &world.registry.index().machine(&id).unwrap().trace;
    assert_eq!(trace.at(), Some(Stage::Runtime));
    let leg = trace.leg(Stage::Runtime).unwrap();
    assert_eq!(
        (leg.stamp.as_str(), leg.deadline(Stage::Runtime)),
        ("its own clock", Some(world.now + Span::from_min(2)))
    );
    world.say(conn, staged(6, Stage::OsBoot, StageStep::Entered));
    let trace = &world.registry.index().machine(&id).unwrap().trace;
    assert_eq!((trace.at(), trace.leg(Stage::Runtime)), (Some(Stage::OsBoot), None), "it went back");
}

#[test]
fn silence_is_said_once_and_ends_with_a_word() {
    let mut world = World::new();
    let id = world.known(&machine(1));
    let (conn, _) = world.arrive(&id, &machine(1));
    let silent =
        |effects: &[Effect]| told(effects).into_iter().filter(|what| matches!(what, What::Silent)).count();
    assert_eq!(silent(&world.pass(Span::from_s(59))), 0);
    let effects = world.pass(Span::from_s(1));
    assert_eq!((silent(&effects), closed(&effects, conn)), (1, Some("UNAVAILABLE")));
    assert_eq!(silent(&world.pass(Span::from_s(60))), 0);
    assert!(world.registry.silent_since(world.now, &id).is_some());
    world.arrive(&id, &machine(1));
    assert_eq!(world.registry.silent_since(world.now, &id), None);
    assert_eq!(silent(&world.pass(Span::from_s(60))), 1);
    world.restart();
    assert_eq!(silent(&world.pass(Span::from_s(59))), 0, "it has a while to come back");
    assert_eq!(silent(&world.pass(Span::from_s(1))), 1, "it went while no server ran");
    assert_eq!(silent(&world.pass(Span::from_s(60))), 0);
}

#[test]
fn an_order_is_given_once_and_has_an_end_in_every_case() {
    let mut world = World::new();
    let id = world.known(&machine(1));
    let order = |world: &mut World, number| {
        let (machine, within) = (id.clone(), Span::from_s(30));
        world.step(Event::Order { id: OrderId(number), machine, verb: Verb::RestartKubelet, within })
    };
    let unanswered = |effects: &[Effect]| {
        let told = told(effects).into_iter().filter_map(|what| match what {
            What::Unanswered(_, why) => Some(*why),
            _ => None,
        });
        told.collect::<Vec<_>>()
    };
    assert_eq!(unanswered(&order(&mut world, 1)), [NoAnswer::NotGiven("it has no session")]);
    let (conn, _) = world.arrive(&id, &machine(1));
    assert_eq!(sent(&order(&mut world, 2), conn).len(), 1);
    let done = AgentFrame::Done(Done { id: 2, outcome: Ended::Done, tail: Text::default() });
    assert!(told(&world.say(conn, done.clone())).iter().any(|what| matches!(what, What::Answered(..))));
    assert!(told(&world.say(conn, done)).is_empty(), "answered once");
    order(&mut world, 3);
    world.say(conn, BEAT);
    let late = NoAnswer::Unknown("it did not answer in time");
    assert_eq!(unanswered(&world.pass(Span::from_s(30))), [late]);
    order(&mut world, 4);
    let ended = NoAnswer::Unknown("its session ended");
    assert_eq!(unanswered(&world.step(Event::Gone(conn))), [ended]);
}

#[test]
fn order_is_answered_in_next_session_of_same_boot_only() {
    for (verb, other_boot) in [(Verb::Join, false), (Verb::CollectEvidence, false), (Verb::Join, true)] {
        let mut world = World::new();
        let id = world.known(&machine(1));
        let (conn, _) = world.arrive(&id, &machine(1));
        let order = Event::Order { id: OrderId(7), machine: id.clone(), verb, within: Span::from_min(15) };
        assert_eq!(sent(&world.step(order), conn).len(), 1, "it was given");
        // The network broke for a moment, or the machine rebooted.
        let mut who = machine(1);
        world.now = world.now + Span::from_s(if other_boot { 40 } else { 2 });
        if other_boot {
            who.identity.boot_id = "boot-1-again".into();
        }
        let (again, effects) = world.arrive(&id, &who);
        let lost = told(&effects).into_iter().any(|what| matches!(what, What::Unanswered(OrderId(7), _)));
        let done = AgentFrame::Done(Done { id: 7, outcome: Ended::Done, tail: Text::default() });
        let heard = world.say(again, done);
        let answered = told(&heard).into_iter().any(|what| matches!(what, What::Answered(..)));
        let goes_on = verb == Verb::Join && !other_boot;
        assert_eq!((lost, answered), (!goes_on, goes_on), "{verb:?}, another boot: {other_boot}");
    }
}

#[test]
fn evidence_comes_in_order_and_only_when_it_was_asked_for() {
    let mut world = World::new();
    let id = world.known(&machine(1));
    let (conn, _) = world.arrive(&id, &machine(1));
    let parts = EvidencePart::cut(1, &"a".repeat(65 << 10), &"sha256:00".into()).unwrap();
    assert!(parts.len() == 2 && parts[1].text.len() == 1 << 10, "cut where a part is full");
    assert_eq!(
        EvidencePart::cut(1, &"a".repeat((8 << 20) + 1), &"sha256:00".into()),
        None,
        "more than is taken"
    );
    let part = |number: usize| AgentFrame::Evidence(parts[number].clone());
    let heard = |effects: Vec<Effect>| {
        told(&effects).into_iter().filter(|what| matches!(what, What::Evidence(..))).count()
    };
    assert_eq!(heard(world.say(conn, part(0))), 0, "no order asked for it");
    world.step(Event::Order {
        id: OrderId(1),
        machine: id,
        verb: Verb::CollectEvidence,
        within: Span::from_s(60),
    });
    assert_eq!(heard(world.say(conn, part(1))), 0, "the first comes first");
    assert_eq!(heard(world.say(conn, part(0))), 1);
    assert_eq!(heard(world.say(conn, part(0))), 0, "once");
    let more = AgentFrame::Evidence(EvidencePart { of: 3, ..parts[1].clone() });
    assert_eq!(heard(world.say(conn, more)), 0, "it said that there are two");
    assert_eq!(heard(world.say(conn, part(1))), 1);
}

#[test]
fn session_ends_with_its_certificate_despite_traffic() {
    let mut world = World::new();
    let id = world.known(&machine(1));
    let hello = reveille_wire::agent::frame::Hello {
        protocol: 1,
        identity: machine(1).identity,
        facts: machine(1).facts,
        plan: None,
        joined: false,
    };
    let not_after = world.now + Span::from_min(1);
    let peer = Peer { machine: id.clone(), key: machine(1).key, authority: AUTHORITY, not_after };
    let conn = Conn(1_000);
    world.step(Event::Arrived { conn, peer, hello });
    for _ in 0..59 {
        world.say(conn, BEAT);
        assert_eq!(closed(&world.pass(Span::from_s(1)), conn), None);
    }
    assert_eq!(closed(&world.pass(Span::from_s(1)), conn), Some("UNAVAILABLE"));
    assert_eq!(world.registry.session_of(&id), None);
}

#[test]
fn session_above_frame_limit_is_closed() {
    let mut world = World::new();
    let id = world.known(&machine(1));
    let (conn, _) = world.arrive(&id, &machine(1));
    let mut said = 0;
    let code = loop {
        said += 1;
        if let Some(code) = closed(&world.say(conn, BEAT), conn) {
            break code;
        }
    };
    assert_eq!((code, said), ("TOO_MANY", 121));
    assert_eq!(world.registry.session_of(&id), None);
}

#[test]
fn machine_is_told_its_present_roster_peers_and_their_addresses() {
    let mut world = World::new();
    let ids: Vec<MachineId> = (1..5).map(|number| world.known(&machine(number))).collect();
    for (id, number) in ids.iter().zip(1..4) {
        let mut who = machine(number);
        who.facts.answers_at = match number {
            2 => Some("10.0.0.2:9465".into()),
            // A cloud's metadata service answers at this address, and no machine: the server does not send peers there.
            3 => Some("169.254.169.254:80".into()),
            _ => None,
        };
        world.arrive(id, &who);
    }
    let (conn, effects) = world.arrive(&ids[3], &machine(4));
    let peers: Vec<_> = sent(&effects, conn)
        .into_iter()
        .filter_map(|frame| match frame {
            ServerFrame::Peers { peers } => Some(peers.to_vec()),
            _ => None,
        })
        .flatten()
        .map(|peer| (peer.machine.to_string(), peer.node_name.to_string(), peer.answers_at.is_some()))
        .collect();
    let wanted = [(&ids[0], "w-1", false), (&ids[1], "w-2", true), (&ids[2], "w-3", false)];
    let mut wanted = wanted.map(|(id, name, answers)| (id.as_str().to_owned(), name.to_owned(), answers));
    wanted.sort();
    assert_eq!(peers, wanted);
}

#[test]
fn peers_are_sent_again_on_change_and_once_for_a_joining_rack() {
    let mut world = World::new();
    let ids: Vec<_> = (1..=5).map(|number| world.known(&machine(number))).collect();
    let peers = |effects: &[Effect], conn: crate::registry::Conn| {
        let told = sent(effects, conn).into_iter().filter_map(|frame| match frame {
            ServerFrame::Peers { peers } => {
                Some(peers.iter().map(|peer| peer.node_name.to_string()).collect())
            }
            _ => None,
        });
        told.collect::<Vec<Vec<String>>>()
    };
    let (first, effects) = world.arrive(&ids[0], &machine(1));
    assert!(peers(&effects, first).is_empty(), "it is alone");
    let mut last = first;
    for (id, number) in ids[1..].iter().zip(2..) {
        let (conn, effects) = world.arrive(id, &machine(number));
        assert!(peers(&effects, first).is_empty(), "not with each of them");
        last = conn;
    }
    assert!(peers(&world.pass(Span::from_s(9)), first).is_empty());
    let told = peers(&world.pass(Span::from_s(1)), first);
    assert!(told.len() == 1 && told[0].len() == 4, "{told:?}");
    assert!(peers(&world.pass(Span::from_s(20)), first).is_empty(), "nothing is said twice");
    world.step(Event::Gone(last));
    let told = peers(&world.pass(Span::from_s(10)), first);
    assert!(told.len() == 1 && told[0].len() == 3 && !told[0].contains(&"w-5".to_owned()), "{told:?}");
}

#[test]
fn reread_plan_reaches_machine_with_other_plan_as_newer_version() {
    let mut world = World::new();
    let id = world.known(&machine(1));
    world.plans(&[]);
    let (conn, effects) = world.arrive(&id, &machine(1));
    let plan = |effects: &[Effect]| {
        sent(effects, conn).into_iter().find_map(|frame| match frame {
            ServerFrame::Plan(plan) => Some((plan.version, plan.steps.len())),
            _ => None,
        })
    };
    assert_eq!(plan(&effects), Some((1, 1)));
    let mut changed = template(&[]);
    let path = "/etc/kubernetes/cloud.conf";
    let (path, mode, content) = (path.into(), "0600".into(), "x".into());
    changed.files.push(reveille_wire::agent::Step::WriteFile {
        path,
        mode,
        owner: None,
        content,
        secret: false,
    });
    let read = |template| {
        let key = (reveille_core::model::id::RosterName::from("prod"), "workers".into());
        Event::PlansRead(crate::registry::Plans([(key, template)].into()))
    };
    assert_eq!(plan(&world.step(read(changed.clone()))), Some((2, 2)));
    assert_eq!(plan(&world.step(read(changed))), None, "it has it");
    assert_eq!(plan(&world.step(read(template(&[])))), Some((3, 1)), "back again is another version, too");
}

/// The highest number of a kept report, as the server says in its welcome.
fn kept(effects: &[Effect], conn: Conn) -> u64 {
    let welcome = sent(effects, conn).into_iter().find_map(|frame| match frame {
        ServerFrame::Welcome(welcome) => Some(welcome.reports_kept),
        _ => None,
    });
    welcome.unwrap()
}

/// A client acted as the machine for a moment (a copy of its key, while the machine was off) and sent reports with the
/// highest numbers.
#[test]
fn reports_with_highest_numbers_do_not_block_later_reports() {
    let mut world = World::new();
    let id = world.known(&machine(1));
    let (conn, _) = world.arrive(&id, &machine(1));
    let is_taken =
        |effects: &[Effect]| effects.iter().any(|effect| matches!(effect, Effect::Record(Record::Staged(_))));
    for back in (0..100).rev() {
        let frame = staged(u64::MAX - back, Stage::Network, StageStep::Entered);
        assert!(is_taken(&world.say(conn, frame)), "each of them, as any other");
    }
    // The machine itself comes back, and counts from the number that the server has.
    world.pass(Span::from_s(10));
    let (conn, effects) = world.arrive(&id, &machine(1));
    let mut next = kept(&effects, conn);
    for _ in 0..10 {
        next += 1;
        assert!(is_taken(&world.say(conn, staged(next, Stage::Runtime, StageStep::Entered))), "{next}");
        let again = world.say(conn, staged(next, Stage::Runtime, StageStep::Entered));
        assert!(!is_taken(&again), "and none of them twice");
    }
    let (conn, effects) = world.arrive(&id, &machine(1));
    assert_eq!(kept(&effects, conn), next);
}
