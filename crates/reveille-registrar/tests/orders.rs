//! Orders to a whole agent: evidence and probes, from the server's order to the agent's answer.

#![allow(clippy::unwrap_used, reason = "in a test, what cannot be is a failure")]

#[path = "support/agent.rs"]
mod agent;
mod support;

use std::collections::HashMap;
use std::io::Read as _;
use std::time::Duration;

use aws_lc_rs::digest::{SHA256, digest};
use base64::Engine as _;
use base64::engine::general_purpose::STANDARD;
use reveille_core::model::time::Span;
use reveille_node::link::Carrier;
use reveille_registrar::registry::{Event, MachineId, OrderId, What};
use reveille_wire::agent::frame::{Done, Ended, EvidencePart};
use reveille_wire::agent::text::{Text, Word};
use reveille_wire::agent::{AgentFrame, Verb};
use support::{Site, site};

const CANARY: &str = "c4naryc4naryc4na";

async fn order(site: &Site, machine: &MachineId, verb: Verb) -> OrderId {
    let (id, within) = (site.hand.order_id(), Span::from_s(60));
    let machine = machine.clone();
    site.hand.say(Event::Order { id, machine, verb, within }).await.unwrap();
    id
}

/// The messages that the server receives until the order is answered.
async fn answered(site: &mut Site, wanted: OrderId) -> (Vec<EvidencePart>, Done) {
    let mut all = all_answered(site, &[wanted]).await;
    all.remove(&wanted).unwrap()
}

/// The messages that the server receives until each of the orders is answered, in whatever order the answers come.
async fn all_answered(site: &mut Site, wanted: &[OrderId]) -> HashMap<OrderId, (Vec<EvidencePart>, Done)> {
    let mut parts: HashMap<OrderId, Vec<EvidencePart>> = HashMap::new();
    let mut all = HashMap::new();
    let hearing = async {
        while all.len() < wanted.len() {
            match site.heard.recv().await.unwrap().what {
                What::Evidence(id, part) => parts.entry(id).or_default().push(part),
                What::Answered(id, done) if wanted.contains(&id) => {
                    all.insert(id, (parts.remove(&id).unwrap_or_default(), done));
                }
                What::Unanswered(id, why) if wanted.contains(&id) => panic!("{}", why.why()),
                _ => {}
            }
        }
    };
    tokio::time::timeout(Duration::from_secs(60), hearing).await.unwrap();
    all
}

async fn arrived(site: &mut Site) -> MachineId {
    loop {
        let heard = site.heard.recv().await.unwrap();
        if matches!(heard.what, What::Arrived { .. }) {
            return heard.who.machine.clone();
        }
    }
}

fn whole(parts: &[EvidencePart]) -> Vec<u8> {
    let numbers: Vec<u32> = parts.iter().map(|part| part.part).collect();
    assert_eq!(numbers, (0..parts[0].of).collect::<Vec<_>>());
    let text: String = parts.iter().map(|part| part.text.as_str()).collect();
    let bytes = STANDARD.decode(text).unwrap();
    let hex: String = digest(&SHA256, &bytes).as_ref().iter().map(|byte| format!("{byte:02x}")).collect();
    assert_eq!(parts[0].sha256.as_str(), format!("sha256:{hex}"));
    bytes
}

fn unpacked(bytes: &[u8]) -> String {
    let mut plain = Vec::new();
    flate2::read::GzDecoder::new(bytes).read_to_end(&mut plain).unwrap();
    String::from_utf8_lossy(&plain).into_owned()
}

#[tokio::test]
async fn evidence_bundle_arrives_in_parts_without_secrets() {
    let mut site = site().await;
    let invited = site.invite(|_| {}).await;
    let token = invited.token.expose().to_owned();
    // Lines that do not compress well, so that there is more than one part.
    let noise: String = (0..6000u64)
        .map(|n| {
            format!("kubelet {:x}\n", u128::from(n.wrapping_mul(0x9e37_79b9_7f4a_7c15)) * 0x1234_5678_9abc)
        })
        .collect();
    let log = format!("{noise}joins with --token abcdef.{CANARY}\nplain {token}\nlast line\n");
    let machine = agent::machine(1, &[("/var/log/kubelet.log", &log)]);
    let running = agent::run(agent::setup(&site, &machine, Some(invited.token.clone())), machine);
    let id = arrived(&mut site).await;
    let key =
        std::fs::read_to_string(running.machine.path().join("var/lib/reveille/agent/link/link.pem")).unwrap();
    let order = order(&site, &id, Verb::CollectEvidence).await;
    let (parts, done) = answered(&mut site, order).await;
    assert_eq!(done.outcome, Ended::Done, "{}", done.tail);
    assert!(parts.len() > 1, "{}", done.tail);
    let text = unpacked(&whole(&parts));
    for kept in ["verdict.txt", "report.json", "facts.txt", "kubelet.log", "last line"] {
        assert!(text.contains(kept), "{kept}");
    }
    let key = key.lines().find(|line| !line.starts_with("-----")).unwrap();
    for secret in [CANARY, &token, token.rsplit('.').next().unwrap(), key] {
        assert!(!text.contains(secret), "{secret} in the bundle");
    }
    site.end().await;
}

#[tokio::test]
async fn probe_lists_every_check_and_a_concurrent_order_is_declined() {
    let mut site = site().await;
    let invited = site.invite(|_| {}).await;
    let machine = agent::machine(1, &[]);
    let _running = agent::run(agent::setup(&site, &machine, Some(invited.token.clone())), machine);
    let id = arrived(&mut site).await;
    let first = order(&site, &id, Verb::Probe).await;
    let (parts, done) = answered(&mut site, first).await;
    assert!(parts.is_empty());
    assert_eq!(done.outcome, Ended::Failed, "no API server is known without a plan: {}", done.tail);
    for line in ["no plan was given", "clock ", "target ", "ready "] {
        assert!(done.tail.contains(line), "{line}: {}", done.tail);
    }
    // On a fast machine a probe may end before the next order comes: then the orders did not overlap, and the test tries
    // again.
    let mut declined = false;
    for _ in 0..50 {
        let probe = order(&site, &id, Verb::Probe).await;
        let evidence = order(&site, &id, Verb::CollectEvidence).await;
        // The answer to the probe may come before the refusal of the other order.
        declined = all_answered(&mut site, &[probe, evidence]).await[&evidence].1.outcome == Ended::Declined;
        if declined {
            break;
        }
    }
    assert!(declined, "two orders are carried out at the same time");
    let third = order(&site, &id, Verb::CollectEvidence).await;
    let (parts, done) = answered(&mut site, third).await;
    assert_eq!((done.outcome, parts.is_empty()), (Ended::Done, false), "{}", done.tail);
    site.end().await;
}

#[tokio::test]
async fn evidence_larger_than_one_request_gets_by_over_either_carrier() {
    for carrier in [Carrier::WebSocket, Carrier::LongPoll] {
        let mut site = site().await;
        let (who, credential) = site.enrolled(1).await;
        let mut session = site.link.session_over(carrier, &credential, who.hello()).await.unwrap();
        let id = MachineId::new(session.welcome.machine.as_str());
        let order = order(&site, &id, Verb::CollectEvidence).await;
        support::until(&mut session, |frame| {
            matches!(frame, reveille_wire::agent::ServerFrame::Do(_)).then_some(())
        })
        .await;
        let text = "x".repeat(600 << 10);
        let sent = EvidencePart::cut(order.0, &text, &Word::from("sha256:00")).unwrap();
        for part in &sent {
            session.say(AgentFrame::Evidence(part.clone())).await.unwrap();
        }
        let done = Done { id: order.0, outcome: Ended::Done, tail: Text::default() };
        session.say(AgentFrame::Done(done)).await.unwrap();
        // An agent takes what comes all the time: each poll is acknowledged, and a session in which four frames wait sends none.
        let takes = async { while session.next().await.is_ok() {} };
        let (parts, _) = tokio::select! {
            all = answered(&mut site, order) => all,
            () = takes => panic!("the session ended"),
        };
        assert_eq!(parts, sent, "{carrier:?}");
        site.end().await;
    }
}
