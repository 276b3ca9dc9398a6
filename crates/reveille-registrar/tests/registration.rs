//! The server and the machine's side of the connection, together, over real sockets.

mod support;

use std::time::Duration;

use reveille_core::model::stage::Stage;
use reveille_core::model::time::Time;
use reveille_node::link::{Carrier, Enrolment, Keyring};
use reveille_registrar::registry::{Event, NoAnswer, NodeIds, NodeSaid, Settings, What};
use reveille_registrar::server::admin::{Answer, Ask};
use reveille_registrar::server::{Limits, NodeAsked};
use reveille_wire::agent::frame::{Done, Ended, Heartbeat, StageReport, StageStep};
use reveille_wire::agent::text::Text;
use reveille_wire::agent::{AgentFrame, ServerFrame, StageWord, Verb};
use support::{code, site, site_with, until, who};

fn staged(seq: u64) -> AgentFrame {
    entered(seq, Stage::Runtime)
}

fn entered(seq: u64, stage: Stage) -> AgentFrame {
    let stage = StageWord(stage);
    AgentFrame::Stage(StageReport {
        seq,
        stage,
        step: StageStep::Entered,
        attempts: 1,
        error: None,
        stamp: "then".into(),
    })
}

#[tokio::test]
async fn machine_enrols_and_gets_plan_and_token_over_both_carriers() {
    for carrier in [Carrier::WebSocket, Carrier::LongPoll] {
        let mut site = site().await;
        site.plans().await;
        assert_eq!(site.link.ping().await.unwrap().product.as_str(), "reveille");
        let (who, credential) = site.enrolled(1).await;
        let mut session = site.link.session_over(carrier, &credential, who.hello()).await.unwrap();
        assert_eq!(session.welcome.ca_pins.len(), 1);
        let plan = until(&mut session, |frame| match frame {
            ServerFrame::Plan(plan) => Some(plan.clone()),
            _ => None,
        });
        assert_eq!(plan.await.checksum.len(), "sha256:".len() + 64);
        let token = until(&mut session, |frame| match frame {
            ServerFrame::Token(token) => Some(token.token.clone()),
            _ => None,
        });
        assert_eq!(token.await.expose(), support::TOKEN);
        session.say(staged(1)).await.unwrap();
        until(&mut session, |frame| matches!(frame, ServerFrame::Ack { .. }).then_some(())).await;
        let stages = loop {
            if let What::Staged(report) = site.heard.recv().await.unwrap().what {
                break report;
            }
        };
        assert_eq!((stages.stage, stages.seq), (Stage::Runtime, 1));
        drop(session);
        site.end().await;
    }
}

#[tokio::test]
async fn order_reaches_the_machine_and_its_answer_returns() {
    for carrier in [Carrier::WebSocket, Carrier::LongPoll] {
        let mut site = site().await;
        let (who, credential) = site.enrolled(1).await;
        let mut session = site.link.session_over(carrier, &credential, who.hello()).await.unwrap();
        let machine = reveille_registrar::registry::MachineId::new(session.welcome.machine.as_str());
        let (id, within) = (site.hand.order_id(), reveille_core::model::time::Span::from_s(60));
        site.hand.say(Event::Order { id, machine, verb: Verb::RestartKubelet, within }).await.unwrap();
        let order = until(&mut session, |frame| match frame {
            ServerFrame::Do(order) => Some(order.clone()),
            _ => None,
        })
        .await;
        assert_eq!((order.id, order.verb, order.within_s), (id.0, Verb::RestartKubelet, 60));
        let tail = Text::cut("its node is Ready");
        session.say(AgentFrame::Done(Done { id: order.id, outcome: Ended::Declined, tail })).await.unwrap();
        let outcome = loop {
            if let What::Answered(answered, done) = site.heard.recv().await.unwrap().what {
                assert_eq!(answered, id);
                break done.outcome;
            }
        };
        assert_eq!(outcome, Ended::Declined);
        site.end().await;
    }
}

#[tokio::test]
async fn acknowledged_reports_and_certificate_survive_a_restart() {
    let site = site().await;
    let (who, credential) = site.enrolled(1).await;
    let mut session = site.link.session(&credential, who.hello()).await.unwrap();
    session.say(staged(7)).await.unwrap();
    until(&mut session, |frame| matches!(frame, ServerFrame::Ack { .. }).then_some(())).await;
    let before = session.welcome.session;
    let pins = site.link.pins.clone();
    let directory = site.end().await;
    let error = loop {
        if let Err(error) = session.next().await {
            break error;
        }
    };
    assert!(!error.is_final(), "{error}");
    let site = site_with(directory, Settings::default(), Limits::default()).await;
    assert_eq!(site.link.pins, pins, "the authority is the same");
    let session = site.link.session(&credential, who.hello()).await.unwrap();
    assert_eq!(session.welcome.reports_kept, 7);
    assert!(session.welcome.session > before);
    site.end().await;
}

#[tokio::test]
async fn operator_orders_only_evidence_and_probes_of_present_machines() {
    let mut site = site().await;
    let (who, credential) = site.enrolled(1).await;
    let order = |machine: &str, verb| Ask::Order { machine: machine.into(), verb, within_s: 60 };
    let refused = async |ask| match site.people(ask).await {
        Answer::Refused(why) => why.to_string(),
        other => panic!("{other:?}"),
    };
    assert!(refused(order("w-1", Verb::Probe)).await.contains("not connected"));
    assert!(refused(order("w-9", Verb::Probe)).await.contains("No machine"));
    assert!(refused(order("w-1", Verb::RestartKubelet)).await.contains("not ordered by people"));
    let mut session = site.link.session(&credential, who.hello()).await.unwrap();
    let Answer::Ordered(id) = site.people(order("w-1", Verb::CollectEvidence)).await else {
        panic!("refused")
    };
    let given = until(&mut session, |frame| match frame {
        ServerFrame::Do(order) => Some(order.clone()),
        _ => None,
    })
    .await;
    assert_eq!((given.id, given.verb, given.within_s), (id, Verb::CollectEvidence, 60));
    drop(session);
    let why = loop {
        if let What::Unanswered(ended, why) = site.heard.recv().await.unwrap().what {
            assert_eq!(ended.0, id);
            break why;
        }
    };
    assert_eq!(why, NoAnswer::Unknown("its session ended"), "its sender hears of the end in every case");
    site.end().await;
}

#[tokio::test]
async fn stopping_server_tells_every_agent_when_to_retry() {
    let site = site().await;
    let mut sessions = Vec::new();
    for number in 1..=24 {
        let (who, credential) = site.enrolled(number).await;
        let carrier = if number % 2 == 0 { Carrier::WebSocket } else { Carrier::LongPoll };
        sessions.push((carrier, site.link.session_over(carrier, &credential, who.hello()).await.unwrap()));
    }
    // Agents listen when the server stops. Once these pings were answered, the last session's request is under way, too.
    for _ in 0..3 {
        site.link.ping().await.unwrap();
    }
    let listening = sessions.into_iter().map(|(carrier, mut session)| {
        tokio::spawn(async move {
            loop {
                if let Err(error) = session.next().await {
                    break (carrier, code(&error), error.retry_after_s());
                }
            }
        })
    });
    let listening: Vec<_> = listening.collect();
    site.end().await;
    for heard in listening {
        let (carrier, code, again) = heard.await.unwrap();
        assert_eq!((code, again), ("UNAVAILABLE", Some(10)), "{carrier:?}");
    }
}

#[tokio::test]
async fn certificate_renewal_uses_a_new_key_and_revokes_the_old_one() {
    let site = site().await;
    let (who, credential) = site.enrolled(1).await;
    let (next, _) = site.link.renew(&credential, Time::from_ms(0)).await.unwrap();
    drop(site.link.session(&credential, who.hello()).await.unwrap());
    drop(site.link.session(&next, who.hello()).await.unwrap());
    let error = site.link.session(&credential, who.hello()).await.unwrap_err();
    assert_eq!((code(&error), error.is_final()), ("CERTIFICATE_REVOKED", true));
    site.end().await;
}

#[tokio::test]
async fn both_authorities_are_accepted_while_agents_learn_the_new_one() {
    let site = site().await;
    let (who, old) = site.enrolled(1).await;
    let mut there = site.link.session(&old, who.hello()).await.unwrap();
    let Answer::Pins(both) = site.people(Ask::RotateCa {}).await else { panic!("no pins") };
    assert_eq!(both.len(), 2);
    let error = loop {
        if let Err(error) = there.next().await {
            break error;
        }
    };
    assert_eq!((code(&error), error.is_final()), ("UNAVAILABLE", false), "who is there comes again for it");
    drop(there);
    let session = site.link.session(&old, who.hello()).await.unwrap();
    assert_eq!(session.welcome.ca_pins, both, "the welcome names both");
    drop(session);
    let invited = site.invite(|_| {}).await;
    assert_eq!(invited.ca_pins, both, "and so does an invitation");
    let (fresh, _) = site.link.renew(&old, Time::from_ms(0)).await.unwrap();
    let Answer::Late { count: 1, .. } = site.people(Ask::FinishRotation { force: false }).await else {
        panic!("the one that did not come with it yet would be locked out")
    };
    drop(site.link.session(&fresh, who.hello()).await.unwrap());
    let Answer::Pins(one) = site.people(Ask::FinishRotation { force: false }).await else {
        panic!("no pins")
    };
    assert_eq!((one.len(), &one[0]), (1, &both[1]));
    let error = site.link.session(&fresh, who.hello()).await.unwrap_err();
    assert_eq!(code(&error), "CA_PIN_MISMATCH", "who was not there in between knows the old one alone");
    let mut link = site.link.clone();
    link.pins =
        reveille_node::pins::Pins::new(both.iter().map(|pin| pin.parse().unwrap()).collect()).unwrap();
    let error = link.session(&old, who.hello()).await.unwrap_err();
    assert_eq!(code(&error), "CERTIFICATE_UNKNOWN", "a certificate of the retired authority");
    drop(link.session(&fresh, who.hello()).await.unwrap());
    site.end().await;
}

#[tokio::test]
async fn agent_that_died_before_its_answer_enrols_as_the_same_machine() {
    let site = site().await;
    let who = who(1);
    let invited = site.invite(|_| {}).await;
    let folder = tempfile::TempDir::new().unwrap();
    let wish = || Enrolment::kept(folder.path(), who.identity.clone(), who.facts.clone(), None).unwrap();
    let (_, first) = wish().ask(&site.link, &invited.token, Time::from_ms(0)).await.unwrap();
    let (credential, then) = wish().ask(&site.link, &invited.token, Time::from_ms(0)).await.unwrap();
    assert_eq!(first.machine, then.machine);
    drop(site.link.session(&credential, who.hello()).await.unwrap());
    Enrolment::forget(folder.path());
    let error = wish().ask(&site.link, &invited.token, Time::from_ms(0)).await.unwrap_err();
    assert_eq!(code(&error), "TOKEN_USED_UP", "with another key it is another machine");
    site.end().await;
}

#[tokio::test]
async fn what_a_machine_keeps_leads_it_back() {
    let site = site().await;
    let who = who(1);
    let invited = site.invite(|_| {}).await;
    let (credential, kept) = site.enrol(&invited.token, &who).await.unwrap();
    let folder = tempfile::TempDir::new().unwrap();
    assert!(Keyring::open(folder.path()).unwrap().is_none());
    Keyring::keep(folder.path(), credential, kept).unwrap();
    let mode = std::os::unix::fs::PermissionsExt::mode(
        &std::fs::metadata(folder.path().join("link.pem")).unwrap().permissions(),
    );
    assert_eq!(mode & 0o777, 0o600);
    let mut keyring = Keyring::open(folder.path()).unwrap().unwrap();
    assert!(!keyring.is_due(Time::from_ms(1000)) && keyring.is_due(Time::from_ms(21 * 24 * 3600 * 1000)));
    let both = [keyring.kept.ca_pins.clone(), vec![format!("sha256:{}", "ab".repeat(32))]].concat();
    let (own, known_by) = (keyring.kept.ca_pins.clone(), keyring.kept.ca_pins[0].parse().unwrap());
    assert!(!keyring.trust(own, known_by).unwrap() && keyring.trust(both, known_by).unwrap());
    let keyring = Keyring::open(folder.path()).unwrap().unwrap();
    assert!(
        keyring.is_due(Time::from_ms(1000)),
        "another authority signs the next certificate, and that is due"
    );
    let link = keyring.link().unwrap();
    let session = link.session(&keyring.credential, who.hello()).await.unwrap();
    session
        .say(AgentFrame::Heartbeat(Heartbeat { stage: None, joined: false, account: None }))
        .await
        .unwrap();
    site.end().await;
}

#[tokio::test]
async fn poll_abandoned_while_the_registry_is_busy_loses_no_frame() {
    let site = site().await;
    let (who, credential) = site.enrolled(1).await;
    let session = site.link.session_over(Carrier::LongPoll, &credential, who.hello()).await.unwrap();
    let pass = |ms| tokio::time::sleep(Duration::from_millis(ms));
    pass(500).await;
    // The registry waits for its disk, and its queue is full.
    let (go, wait) = std::sync::mpsc::channel::<()>();
    let hand = site.hand.clone();
    let busy = tokio::spawn(async move { hand.view(move |_, _| wait.recv().unwrap_or_default()).await });
    pass(200).await;
    while tokio::time::timeout(Duration::from_millis(300), site.hand.say(Event::Tick)).await.is_ok() {}
    // The agent gives up the poll with the first report for a poll with both.
    for (seq, stage) in [(1, Stage::Network), (2, Stage::Runtime)] {
        session.say(entered(seq, stage)).await.unwrap();
        pass(700).await;
    }
    go.send(()).unwrap();
    busy.await.unwrap().unwrap();
    let kept = async || {
        let look = site.hand.view(|registry, _| {
            let machine = registry.index().machines().next().unwrap();
            let stages: Vec<Stage> = machine.trace.legs().map(|(stage, _)| stage).collect();
            (machine.reports_kept, stages)
        });
        look.await.unwrap()
    };
    for _ in 0..50 {
        pass(100).await;
        if kept().await.0 == 2 {
            break;
        }
    }
    let (last, stages) = kept().await;
    assert!(last == 2 && stages.contains(&Stage::Network), "{last} {stages:?}");
    drop(session);
    site.end().await;
}

/// The cluster of prod has the Node of machine 1, whose agent has not come yet; the cluster of dev has none.
async fn answer(mut asked: tokio::sync::mpsc::Receiver<NodeAsked>) {
    let node = || NodeIds {
        name: "w-1".into(),
        instance: Some("i-1".into()),
        system_uuid: Some("c0ffee00-0000-4000-8000-000000000001".into()),
    };
    while let Some(NodeAsked { roster, is_own, name, ids, reply }) = asked.recv().await {
        let has = |words: &[&str]| ids.iter().any(|id| words.contains(&id.as_str()));
        let is_meant =
            is_own && name.as_str() == "w-1" || has(&["w-1", "i-1", "c0ffee00-0000-4000-8000-000000000001"]);
        let is_there = roster.as_str() == "prod" && is_meant;
        drop(reply.send(if is_there { NodeSaid::Present(vec![node()]) } else { NodeSaid::Absent }));
    }
}

#[tokio::test]
async fn invitation_refuses_an_instance_of_another_rosters_node() {
    let directory = tempfile::TempDir::new().unwrap();
    let (site, asked) =
        support::site_of(&["dev", "prod"], directory, Settings::default(), Limits::default()).await;
    tokio::spawn(answer(asked));
    let into = |roster: &str| {
        let roster = Some(roster.into());
        site.invite(move |wish| wish.roster = roster)
    };
    let mut liar = who(9);
    liar.identity.instance_id = Some("i-1".into());
    let mut as_name = who(9);
    as_name.identity.instance_id = Some("w-1".into());
    for (roster, liar) in [("prod", &liar), ("dev", &liar), ("prod", &as_name), ("dev", &as_name)] {
        let refused = site.enrol(&into(roster).await.token, liar).await.unwrap_err();
        assert_eq!(code(&refused), "IDENTITY_CONFLICT", "{roster}");
    }
    let mut namesake = who(2);
    namesake.facts.hostname = "w-1".into();
    site.enrol(&into("dev").await.token, &namesake).await.unwrap();
    site.enrol(&into("prod").await.token, &who(1)).await.unwrap();
    site.end().await;
}
