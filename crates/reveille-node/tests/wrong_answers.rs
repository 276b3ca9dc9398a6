//! A registration server that was taken over for a while: what an agent keeps of it when the server is mended.

#![allow(clippy::unwrap_used, reason = "in a test, what cannot be is a failure")]

mod support;

use std::fs;

use rcgen::{CertificateParams, KeyPair};
use reveille_core::model::time::Time;
use reveille_node::certificate::Presented;
use reveille_node::link::Keyring;
use reveille_wire::agent::frame::Hello;
use reveille_wire::agent::{Facts, Identity, PROTOCOL};
use serde_json::json;
use support::{Issuer, authority, enrolled, listens, signed};
use tokio::io::{AsyncReadExt as _, AsyncWriteExt as _};

/// A registration server with this authority that gives one answer.
async fn server(issuer: &Issuer, answer: serde_json::Value) -> u16 {
    let (listener, tls, port) = listens(issuer).await;
    tokio::spawn(async move {
        let (stream, _) = listener.accept().await.unwrap();
        // Further connections are taken, and not answered.
        let mut stream = tls.accept(stream).await.unwrap();
        let _ = stream.read(&mut [0; 16 << 10]).await;
        let body = answer.to_string();
        let head = format!(
            "HTTP/1.1 200 OK\r\nserver: reveille\r\ncontent-type: application/json\r\ncontent-length: {}\r\n\r\n",
            body.len()
        );
        stream.write_all((head + &body).as_bytes()).await.unwrap();
        stream.flush().await.unwrap();
        let _ = stream.read(&mut [0; 1]).await;
        while listener.accept().await.is_ok() {}
    });
    port
}

fn answer(certificate: &str, issuer: &Issuer, pins: &[String]) -> serde_json::Value {
    json!({
        "machine": "m-1", "certificate": certificate, "authorities": issuer.pem(), "ca_pins": pins,
        "node_name": "w-1", "ttl_s": 2_592_000, "renew_after_s": 1_728_000,
    })
}

fn pin(issuer: &Issuer) -> String {
    Presented::read(issuer.der()).key.unwrap().to_string()
}

/// A TLS client does not take a certificate of another key: such a keyring connects to no server any more, and the agent goes
/// back to the key that was welcomed last only when a server revokes the new one, which it cannot be asked about.
#[tokio::test]
async fn certificate_of_another_key_does_not_replace_current_one() {
    let (issuer, folder) = (authority(), tempfile::tempdir().unwrap());
    let strange = signed(&issuer, &KeyPair::generate().unwrap());
    let port = server(&issuer, answer(&strange, &issuer, &[pin(&issuer)])).await;
    let keyring = enrolled(folder.path(), &issuer, port);
    let before = fs::read_to_string(folder.path().join("link.pem")).unwrap();
    let renewed = keyring.renewed(&keyring.link().unwrap(), Time::from_ms(1)).await;
    let after = fs::read_to_string(folder.path().join("link.pem")).unwrap();
    println!("{:?}", renewed.as_ref().map(|_| "taken").map_err(ToString::to_string));
    if let Ok(keyring) = &renewed {
        let (protocol, identity, facts) = (PROTOCOL, Identity::default(), Facts::default());
        let hello = Hello { protocol, identity, facts, plan: None, joined: false };
        let again = keyring.link().unwrap().session(&keyring.credential, hello).await.unwrap_err();
        println!("and each session from now on: {again}, reason {:?}", again.reason());
    }
    assert!(renewed.is_err() && before == after, "link.pem has a key and the certificate of another one");
}

/// Without a pin that can be read, an agent has no link: it asks no server any more, also not the one that was mended.
#[tokio::test]
async fn an_answer_without_a_pin_ends_no_link_for_good() {
    let nine = vec![vec![pin(&authority())]; 9].concat();
    for pins in [vec![], vec!["sha256:x".to_owned()], vec![pin(&authority())], nine] {
        let (issuer, folder) = (authority(), tempfile::tempdir().unwrap());
        // The key that the agent is about to ask with, so that nothing but the pins is wrong.
        let next = KeyPair::generate().unwrap();
        fs::write(folder.path().join("renewing.pem"), next.serialize_pem()).unwrap();
        let port = server(&issuer, answer(&signed(&issuer, &next), &issuer, &pins)).await;
        let keyring = enrolled(folder.path(), &issuer, port);
        let before = keyring.kept.clone();
        let refused = keyring.renewed(&keyring.link().unwrap(), Time::from_ms(1)).await.unwrap_err();
        assert!(refused.to_string().contains("ca_pins") || pins.len() == 9, "{refused}");
        let after = Keyring::open(folder.path()).unwrap().unwrap();
        assert!(after.link().is_some() && after.kept == before, "{:?} are kept", after.kept.ca_pins);
    }
}

/// A rotation has the authority before and the next one beside each other, and the server shows the one before: its own key is
/// among the pins of each welcome.
#[test]
fn welcome_keeps_the_pin_that_its_own_server_is_known_by() {
    let (issuer, folder) = (authority(), tempfile::tempdir().unwrap());
    let mut keyring = enrolled(folder.path(), &issuer, 1);
    let own = keyring.kept.ca_pins.clone();
    let known_by = Presented::read(issuer.der()).key.unwrap();
    assert!(!keyring.trust(vec![pin(&authority())], known_by).unwrap());
    let after = Keyring::open(folder.path()).unwrap().unwrap().kept.ca_pins;
    assert!(
        own.iter().any(|pin| after.contains(pin)),
        "the server that was mended is a stranger to this machine from now on"
    );
}

/// The server that welcomed the key before may refuse the next one, which it did not give itself.
#[test]
fn unwelcomed_key_yields_to_previous_key_unless_that_expired() {
    for (ends, wanted) in [(2100, true), (2025, false)] {
        let (issuer, folder) = (authority(), tempfile::tempdir().unwrap());
        drop(enrolled(folder.path(), &issuer, 1));
        let mut params = CertificateParams::default();
        (params.not_before, params.not_after) =
            (rcgen::date_time_ymd(2020, 1, 1), rcgen::date_time_ymd(ends, 1, 1));
        let before = KeyPair::generate().unwrap();
        let before = before.serialize_pem() + &params.signed_by(&before, &issuer).unwrap().pem();
        fs::write(folder.path().join("welcomed.pem"), &before).unwrap();
        let mut keyring = Keyring::open(folder.path()).unwrap().unwrap();
        assert_eq!(keyring.go_back(Time::from_ms(1_800_000_000_000)).unwrap(), wanted);
        assert_eq!(fs::read_to_string(folder.path().join("link.pem")).unwrap() == before, wanted);
    }
}
