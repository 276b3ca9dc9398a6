//! Tests the way from an operator's order over the server's socket to the file that is kept: the server, a machine's
//! session, and everything between them.

use std::collections::{BTreeMap, BTreeSet};
use std::time::Duration;

use base64::Engine as _;
use base64::engine::general_purpose::STANDARD;
use reveille_core::event::{AgentFact, Event as EngineEvent};
use reveille_core::model::time::{Span, Time};
use reveille_kube::ClusterConfig;
use reveille_node::link::{Enrolment, Link, Session};
use reveille_node::pins::Pins;
use reveille_node::target::Endpoint;
use reveille_registrar::registry::MachineId;
use reveille_registrar::registry::plans::sha256;
use reveille_registrar::server::admin::{Answer, Ask, ask};
use reveille_wire::agent::frame::{Done, Ended, EvidencePart, Hello};
use reveille_wire::agent::{AgentFrame, Facts, Identity, ServerFrame, Verb};
use tempfile::TempDir;
use tokio::io::{AsyncReadExt as _, AsyncWriteExt as _};

use super::*;
use crate::adapters::agents::AgentReports;
use crate::cli::logging;

fn setup_in(directory: &TempDir) -> Setup {
    Setup {
        listen: "127.0.0.1:0".parse().unwrap(),
        names: vec!["localhost".to_owned()],
        directory: directory.path().to_owned(),
        pools: BTreeSet::from([("prod".into(), "workers".into())]),
        settings: Settings::default(),
        limits: Limits::default(),
        version: "0.0.0-test",
    }
}

async fn session(directory: &TempDir, link: &Link) -> Session {
    let identity = Identity {
        machine_id: Some("feed0000000040008000000000000001".into()),
        boot_id: "boot-1".into(),
        ..Identity::default()
    };
    let facts = Facts { hostname: "w-1".into(), ..Facts::default() };
    let invite = Ask::Invite {
        roster: None,
        pool: "workers".into(),
        roles: BTreeSet::from([Role::Worker]),
        machine: None,
        reimage: None,
        ttl_s: 3600,
        uses: 1,
    };
    let Answer::Invited(invited) = ask(directory.path(), &invite).await.unwrap() else { panic!("refused") };
    let enrolment = Enrolment::new(identity.clone(), facts.clone(), None).unwrap();
    let (credential, _) = enrolment.ask(link, &invited.token, Time::from_ms(0)).await.unwrap();
    let hello = Hello { protocol: 1, identity, facts, plan: None, joined: false };
    link.session(&credential, hello).await.unwrap()
}

#[tokio::test]
async fn evidence_ordered_by_an_operator_is_kept_whole_on_disk() {
    let directory = TempDir::new().unwrap();
    let server = start(setup_in(&directory)).await.unwrap();
    drop(server.nodes);
    let pins = server.pins.iter().map(|pin| pin.parse().unwrap()).collect();
    let endpoint = Endpoint { host: "127.0.0.1".to_owned(), port: server.address.port() };
    let link = Link { server: endpoint, pins: Pins::new(pins).unwrap() };
    let (stop, stopped) = watch::channel(false);
    let running = tokio::spawn(server.run.until(stopped));
    let (endings, ended) = mpsc::channel(ENDINGS_MAX);
    let folder = evidence::folder(directory.path());
    tokio::spawn(keep_endings(folder.clone(), ended));
    tokio::spawn(bridge::carry(server.hand, server.heard, BTreeMap::new(), None, endings));

    let mut session = session(&directory, &link).await;
    let order = Ask::Order { machine: "w-1".into(), verb: Verb::CollectEvidence, within_s: 60 };
    let Answer::Ordered(order) = ask(directory.path(), &order).await.unwrap() else { panic!("refused") };
    while !matches!(session.next().await.unwrap(), ServerFrame::Do(given) if given.id == order) {}
    let archive: Vec<u8> = (0..60_000_u32).flat_map(u32::to_le_bytes).collect();
    let parts = EvidencePart::cut(order, &STANDARD.encode(&archive), &sha256(&archive)).unwrap();
    assert!(parts.len() > 1);
    for part in parts {
        session.say(AgentFrame::Evidence(part)).await.unwrap();
    }
    let done = Done { id: order, outcome: Ended::Done, tail: "all of it".into() };
    session.say(AgentFrame::Done(done)).await.unwrap();

    let kept = async {
        loop {
            if let Some(report) = evidence::kept(&folder).pop() {
                return report;
            }
            tokio::time::sleep(Duration::from_millis(20)).await;
        }
    };
    let report = tokio::time::timeout(Duration::from_secs(30), kept).await.unwrap();
    assert_eq!((report.order, report.outcome.as_str(), report.node.as_str()), (order, "done", "w-1"));
    assert_eq!(std::fs::read(report.file.unwrap()).unwrap(), archive);
    stop.send_replace(true);
    assert!(running.await.unwrap());
}

/// The server's runtime has one thread, and its registry another.
#[tokio::test]
async fn engine_is_told_it_is_deaf_while_the_server_hangs() {
    let directory = TempDir::new().unwrap();
    let (setup, (stop, stopped)) = (setup_in(&directory), watch::channel(false));
    let (told, begun) = oneshot::channel();
    let thread = std::thread::spawn(move || {
        let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build().unwrap();
        runtime.block_on(async move {
            let server = start(setup).await.unwrap();
            let (beating, beats) = watch::channel(());
            tokio::spawn(liveness::beat(server.hand.clone(), beating, Duration::from_millis(20)));
            assert!(told.send((tokio::runtime::Handle::current(), server.hand, beats)).is_ok());
            server.run.until(stopped).await
        })
    });
    let (runtime, hand, beats) = begun.await.unwrap();
    let (inbox, mut events) = mpsc::channel(16);
    tokio::spawn(liveness::listen(beats, vec![AgentReports::new(inbox)], Duration::from_millis(500)));
    let stand_still = || std::thread::sleep(Duration::from_secs(2));
    for freeze in ["runtime", "registry"] {
        if freeze == "runtime" {
            runtime.spawn(async move { stand_still() });
        } else {
            let hand = hand.clone();
            tokio::spawn(async move { hand.view(move |_, _| stand_still()).await });
        }
        let mut next = async || tokio::time::timeout(Duration::from_secs(30), events.recv()).await.unwrap();
        let deaf = next().await;
        assert!(matches!(deaf, Some(EngineEvent::Agent(AgentFact::Deaf(_)))), "{freeze}: {deaf:?}");
        assert_eq!(next().await, Some(EngineEvent::Agent(AgentFact::Listening)), "{freeze}");
    }
    stop.send_replace(true);
    assert!(thread.join().unwrap());
}

/// An API server that refuses, and a rack of machines that wait for their tokens.
#[tokio::test]
async fn cluster_that_refuses_tokens_is_logged_once_for_all_machines() {
    let directory = TempDir::new().unwrap();
    let listener = tokio::net::TcpListener::bind("127.0.0.1:0").await.unwrap();
    let config = directory.path().join("kubeconfig");
    let address = listener.local_addr().unwrap();
    let text = format!(
        "{{apiVersion: v1, kind: Config, current-context: c, users: [{{name: u, user: {{token: t}}}}],
        contexts: [{{name: c, context: {{cluster: k, user: u}}}}],
        clusters: [{{name: k, cluster: {{server: \"http://{address}\"}}}}]}}"
    );
    std::fs::write(&config, text).unwrap();
    tokio::spawn(async move {
        while let Ok((mut stream, _)) = listener.accept().await {
            let answer = b"HTTP/1.1 403 Forbidden\r\ncontent-length: 0\r\nconnection: close\r\n\r\n";
            tokio::spawn(async move {
                drop(stream.read(&mut [0; 8192]).await);
                drop(stream.write_all(answer).await);
            });
        }
    });
    let config = ClusterConfig { kubeconfig: Some(config), context: None };
    let cluster = Cluster::connect(&config).await.unwrap();
    let log = directory.path().join("log");
    let written = Arc::new(std::fs::File::create(&log).unwrap());
    let _log = tracing::subscriber::set_default(logging::text(written, false));
    let (token_requests, asked) = mpsc::channel(64);
    let serving = tokio::spawn(token_issuer::serve(asked, BTreeMap::from([("prod".into(), cluster)])));
    let mut replies = Vec::new();
    for number in 0..50 {
        let (reply, made) = oneshot::channel();
        let (roster, machine) = ("prod".into(), MachineId::new(format!("m-{number}")));
        token_requests
            .send(TokenRequest::Make { roster, machine, ttl: Span::from_min(30), reply })
            .await
            .unwrap();
        replies.push(made);
    }
    for made in replies {
        assert!(made.await.unwrap().is_err());
    }
    let text = std::fs::read_to_string(log).unwrap();
    assert_eq!(text.matches("no bootstrap token could be made").count(), 1, "{text}");
    serving.abort();
}

async fn session_in(directory: &TempDir, link: &Link, roster: &str, number: u32) -> Session {
    let identity = Identity {
        machine_id: Some(format!("feed000000004000800000000000000{number}").as_str().into()),
        boot_id: "boot-1".into(),
        ..Identity::default()
    };
    let facts = Facts { hostname: format!("w-{number}").as_str().into(), ..Facts::default() };
    let invite = Ask::Invite {
        roster: Some(roster.into()),
        pool: "workers".into(),
        roles: BTreeSet::from([Role::Worker]),
        machine: None,
        reimage: None,
        ttl_s: 3600,
        uses: 1,
    };
    let Answer::Invited(invited) = ask(directory.path(), &invite).await.unwrap() else { panic!("refused") };
    let enrolment = Enrolment::new(identity.clone(), facts.clone(), None).unwrap();
    let (credential, _) = enrolment.ask(link, &invited.token, Time::from_ms(0)).await.unwrap();
    link.session(&credential, Hello { protocol: 1, identity, facts, plan: None, joined: false })
        .await
        .unwrap()
}

/// The engine of one roster takes no facts (its ledger's disk hangs) while a machine of another roster sends its heartbeat.
#[tokio::test]
async fn machines_are_heard_while_the_engine_of_another_roster_hangs() {
    let directory = TempDir::new().unwrap();
    let mut setup = setup_in(&directory);
    setup.pools.insert(("other".into(), "workers".into()));
    let server = start(setup).await.unwrap();
    drop(server.nodes);
    let pins = server.pins.iter().map(|pin| pin.parse().unwrap()).collect();
    let endpoint = Endpoint { host: "127.0.0.1".to_owned(), port: server.address.port() };
    let link = Link { server: endpoint, pins: Pins::new(pins).unwrap() };
    let (stop, stopped) = watch::channel(false);
    let running = tokio::spawn(server.run.until(stopped));
    let (endings, _ended) = mpsc::channel(ENDINGS_MAX);
    let (prod_in, _prod_takes_nothing) = mpsc::channel(8);
    let (other_in, mut other) = mpsc::channel(64);
    let engine = |inbox: &mpsc::Sender<EngineEvent>| bridge::Engine {
        reports: AgentReports::new(inbox.clone()),
        asks: mpsc::channel(1).1,
    };
    let engines = BTreeMap::from([("prod".into(), engine(&prod_in)), ("other".into(), engine(&other_in))]);
    tokio::spawn(bridge::carry(server.hand, server.heard, engines, None, endings));
    let lives = session_in(&directory, &link, "other", 1).await;
    let talks = session_in(&directory, &link, "prod", 2).await;
    let beat = |joined| {
        AgentFrame::Heartbeat(reveille_wire::agent::frame::Heartbeat { stage: None, joined, account: None })
    };
    for _ in 0..20 {
        talks.say(beat(false)).await.unwrap();
    }
    while prod_in.capacity() > 0 {
        tokio::time::sleep(Duration::from_millis(20)).await;
    }
    tokio::time::sleep(Duration::from_millis(500)).await;
    while other.try_recv().is_ok() {}
    lives.say(beat(true)).await.unwrap();
    let heard = tokio::time::timeout(Duration::from_secs(10), other.recv()).await;
    assert!(matches!(heard, Ok(Some(EngineEvent::Agent(AgentFact::Said { .. })))), "{heard:?}");
    stop.send_replace(true);
    drop(running.await);
}
