//! From a person's order over the server's socket to the file that is kept: the server, a machine's session, and what stands
//! between, together.

use std::collections::{BTreeMap, BTreeSet};
use std::time::Duration;

use base64::Engine as _;
use base64::engine::general_purpose::STANDARD;
use reveille_core::model::time::Time;
use reveille_node::link::{Enrolment, Link, Session};
use reveille_node::pin::Pins;
use reveille_node::target::Endpoint;
use reveille_registrar::registry::plans::sha256;
use reveille_registrar::server::admin::{Answer, Ask, ask};
use reveille_wire::agent::frame::{Done, Ended, EvidencePart, Hello};
use reveille_wire::agent::{AgentFrame, Facts, Identity, ServerFrame, Verb};
use tempfile::TempDir;

use super::*;

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
async fn what_a_person_orders_of_a_machine_is_kept_whole_beside_the_servers_state() {
    let directory = TempDir::new().unwrap();
    let setup = Setup {
        listen: "127.0.0.1:0".parse().unwrap(),
        names: vec!["localhost".to_owned()],
        directory: directory.path().to_owned(),
        pools: BTreeSet::from([("prod".into(), "workers".into())]),
        settings: Settings::default(),
        limits: Limits::default(),
        version: "0.0.0-test",
    };
    let server = start(setup).await.unwrap();
    drop(server.nodes);
    let pins = server.pins.iter().map(|pin| pin.parse().unwrap()).collect();
    let endpoint = Endpoint { host: "127.0.0.1".to_owned(), port: server.address.port() };
    let link = Link { server: endpoint, pins: Pins::new(pins).unwrap() };
    let (stop, stopped) = watch::channel(false);
    let running = tokio::spawn(server.run.until(stopped));
    let (endings, ended) = mpsc::channel(ENDINGS_MAX);
    let folder = evidence::folder(directory.path());
    tokio::spawn(keep_endings(folder.clone(), ended));
    tokio::spawn(between::carry(server.hand, server.heard, BTreeMap::new(), None, endings));

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
