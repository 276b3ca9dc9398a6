//! What a key still opens: a replaced key, a key that a copy of a disk also has, or a key whose certificate has ended.

#![allow(clippy::unwrap_used, reason = "in a test, what cannot be is a failure")]

#[path = "support/raw.rs"]
mod raw;
mod support;

use std::time::Duration;

use futures::{SinkExt as _, StreamExt as _};
use reveille_core::model::time::{Span, Time};
use reveille_node::link::{Enrolment, Keyring, Link};
use reveille_node::pins::Pins;
use reveille_registrar::registry::{Removal, Settings};
use reveille_registrar::server::Limits;
use reveille_registrar::server::admin::{Answer, Ask};
use reveille_wire::agent::{AgentFrame, Numbered};
use support::{site, who};
use tokio::io::{AsyncReadExt as _, AsyncWriteExt as _};
use tokio_tungstenite::tungstenite::Message;

/// The request that begins a session.
const UPGRADE: &str = "GET /v1/session HTTP/1.1\r\nhost: x\r\nconnection: Upgrade\r\nupgrade: websocket\r\n\
    sec-websocket-version: 13\r\nsec-websocket-key: dGhlIHNhbXBsZSBub25jZQ==\r\n\r\n";

fn shown(link: &std::path::Path) -> raw::Shown {
    raw::shown(Keyring::open(link).unwrap().unwrap().credential)
}

/// The machine renewed, and the key before was copied (a snapshot of its disk).
async fn renewed() -> (support::Site, support::Who, raw::Shown, raw::Shown, tempfile::TempDir) {
    let now = Time::from_ms(1_795_000_000_000);
    let (site, folder) = (site().await, tempfile::tempdir().unwrap());
    site.plans().await;
    let (who, invited) = (who(1), site.invite(|_| {}).await);
    let enrolment = Enrolment::new(who.identity.clone(), who.facts.clone(), None).unwrap();
    let (credential, kept) = enrolment.ask(&site.link, &invited.token, now).await.unwrap();
    let link = folder.path().join("link");
    let keyring = Keyring::keep(&link, credential, kept).unwrap();
    let old = shown(&link);
    drop(keyring.renewed(&site.link, now).await.unwrap());
    let new = shown(&link);
    (site, who, old, new, folder)
}

fn hello(who: &support::Who) -> String {
    let hello = Numbered { n: 1, frame: AgentFrame::Hello(who.hello()) };
    format!("{{\"ack\":0,\"hold_s\":0,\"frames\":[{}]}}", serde_json::to_string(&hello).unwrap())
}

#[tokio::test]
async fn replaced_key_cannot_send_or_receive_in_a_polling_session() {
    let (site, who, old, new, _folder) = renewed().await;
    // The machine comes with its new key: from here on the old one is revoked.
    let answer =
        raw::say(raw::tls13(&site.link, Some(&new)).await, &raw::post("/v1/poll", "", &hello(&who))).await;
    let (_, body) = answer.split_once("\r\n\r\n").unwrap();
    let number = serde_json::from_str::<serde_json::Value>(body).unwrap()["session"].as_u64().unwrap();
    // With the old key, a client gets no session of its own.
    let answer =
        raw::say(raw::tls13(&site.link, Some(&old)).await, &raw::post("/v1/poll", "", &hello(&who))).await;
    assert_eq!(raw::refused(&answer).1.reason.code(), "CERTIFICATE_REVOKED");
    tokio::time::sleep(Duration::from_millis(500)).await;
    let ask = format!(
        "{{\"session\":{number},\"ack\":0,\"hold_s\":0,\"frames\":[{{\"n\":2,\"t\":\"token-wanted\"}}]}}"
    );
    let answer = raw::say(raw::tls13(&site.link, Some(&old)).await, &raw::post("/v1/poll", "", &ask)).await;
    assert_eq!(raw::refused(&answer).1.reason.code(), "CERTIFICATE_REVOKED");
    assert!(!answer.contains(support::TOKEN), "a bootstrap token, for a key that counts for nothing");
    site.end().await;
}

#[tokio::test]
async fn replaced_key_displaces_no_connection_of_its_machine() {
    let (site, who, old, new, _folder) = renewed().await;
    let answer =
        raw::say(raw::tls13(&site.link, Some(&new)).await, &raw::post("/v1/poll", "", &hello(&who))).await;
    assert!(answer.starts_with("HTTP/1.1 200"), "{answer}");
    let mut own = raw::tls13(&site.link, Some(&new)).await;
    own.write_all(b"GET /v1/ping HTTP/1.1\r\nhost: x\r\n\r\n").await.unwrap();
    assert!(own.read(&mut [0; 4096]).await.unwrap() > 0);
    let mut held = Vec::new();
    for _ in 0..9 {
        held.push(raw::tls13(&site.link, Some(&old)).await);
    }
    tokio::time::sleep(Duration::from_millis(300)).await;
    let ended = tokio::time::timeout(Duration::from_secs(2), own.read(&mut [0; 4096])).await;
    assert!(
        ended.is_err(),
        "the machine's own connection was ended by a key that counts for nothing: {ended:?}"
    );
    drop(held);
    site.end().await;
}

/// A copy of a disk, on another machine; the first one is connected the whole time.
#[tokio::test]
async fn a_copy_of_a_disk_that_renews_does_not_lock_its_machine_out() {
    let now = Time::from_ms(1_795_000_000_000);
    let site = site().await;
    let (who, credential) = site.enrolled(1).await;
    let first = site.link.session(&credential, who.hello()).await.unwrap();
    // With the copied key: a renewal, which checks no ids.
    let (copied, _) = site.link.renew(&credential, now).await.unwrap();
    let mut hello = who.hello();
    hello.identity.system_uuid = Some("another-machine".into());
    hello.identity.boot_id = "another-boot".into();
    let refused = site.link.session(&copied, hello).await.unwrap_err();
    assert_eq!(support::code(&refused), "IDENTITY_CONFLICT");
    // The hello leaves out the ids that would differ.
    let mut hello = who.hello();
    (hello.identity.system_uuid, hello.identity.instance_id) = (None, None);
    let refused = site.link.session(&copied, hello).await.unwrap_err();
    assert_eq!(support::code(&refused), "IDENTITY_INCOMPLETE");
    // The first machine's connection breaks once.
    drop(first);
    let again = site.link.session(&credential, who.hello()).await;
    assert_eq!(again.err().map(|error| support::code(&error)), None, "the machine, refused for its copy");
    site.end().await;
}

/// A hello needs ids that no disk holds. The server tells none of them to a client that has the key and guesses, nor to
/// the holder of an invitation.
#[tokio::test]
async fn who_claims_to_be_a_machine_is_told_no_id_that_it_is_known_by() {
    let site = site().await;
    let (who, credential) = site.enrolled(1).await;
    let standing = site.link.session(&credential, who.hello()).await.unwrap();
    let wrong = |change: fn(&mut support::Who)| {
        let mut guess = who.clone();
        change(&mut guess);
        guess
    };
    let guesses = [
        (wrong(|who| who.identity.system_uuid = Some("x".into())), "c0ffee00-0000-4000-8000-000000000001"),
        (wrong(|who| who.identity.instance_id = Some("x".into())), "i-1\""),
        (wrong(|who| who.identity.machine_id = Some("x".into())), "feed0000000040008000000000000001"),
        (wrong(|who| who.identity.boot_id = "x".into()), "boot-1"),
    ];
    for (guess, id) in &guesses {
        let error = site.link.session(&credential, guess.hello()).await.unwrap_err();
        assert_eq!(support::code(&error), "IDENTITY_CONFLICT", "{id}");
        let told = format!("{error} {:?}", error.reason());
        assert!(!told.contains(id), "{told}");
    }
    let mut claims = support::who(2);
    claims.facts.hostname = "w-1".into();
    let error = site.enrol(&site.invite(|_| {}).await.token, &claims).await.unwrap_err();
    let told = format!("{error} {:?}", error.reason());
    assert!(support::code(&error) == "IDENTITY_CONFLICT" && told.contains("w-1"), "{told}");
    assert!(guesses.iter().all(|(_, id)| !told.contains(id)), "{told}");
    drop(standing);
    site.end().await;
}

/// A client has a copy of the key, but none of its machine's ids; it renews and shows the certificate. The machine is
/// switched off, and no session of it is welcomed for as long as its Node stays removed.
#[tokio::test]
async fn copied_key_does_not_let_a_rotation_finish() {
    let site = site().await;
    let (_, credential) = site.enrolled(1).await;
    site.people(Ask::Remove { machine: "w-1".into(), what: Some(Removal::Node) }).await;
    site.people(Ask::RotateCa {}).await;
    let finish = || site.people(Ask::FinishRotation { force: false });
    assert!(matches!(finish().await, Answer::Late { count: 1, .. }));
    let (copied, _) = site.link.renew(&credential, Time::from_ms(1_795_000_000_000)).await.unwrap();
    let records = || support::written(site.directory.path()).matches("\"t\":").count();
    let before = records();
    let mut connection = raw::tls13(&site.link, Some(&raw::shown(copied))).await;
    let mut answer = vec![0; 4096];
    for _ in 0..20 {
        connection.write_all(UPGRADE.as_bytes()).await.unwrap();
        let length = connection.read(&mut answer).await.unwrap();
        assert!(String::from_utf8_lossy(&answer[..length]).contains("NODE_REMOVED"));
    }
    assert_eq!(records(), before, "no request leaves a record");
    assert!(matches!(finish().await, Answer::Late { count: 1, .. }));
    site.end().await;
}

/// A client has a copy of the key, but none of the ids that a hello needs; it opens sockets and sends nothing.
#[tokio::test]
async fn a_copy_of_a_key_takes_no_place_of_its_machines_sessions() {
    let site = site().await;
    let (who, credential) = site.enrolled(1).await;
    let shown = raw::shown(site.link.renew(&credential, Time::from_ms(1_795_000_000_000)).await.unwrap().0);
    let mut held = Vec::new();
    for _ in 0..4 {
        held.push(raw::socket(&site.link, &shown).await);
    }
    let welcomed = site.link.session(&credential, who.hello()).await;
    assert_eq!(welcomed.as_ref().err().map(ToString::to_string), None, "the machine, kept out by its copy");
    // More of them do not end the existing session either.
    for _ in 0..12 {
        held.push(raw::socket(&site.link, &shown).await);
    }
    let mut session = welcomed.unwrap();
    let ended = async { while session.next().await.is_ok() {} };
    assert!(tokio::time::timeout(Duration::from_secs(1), ended).await.is_err(), "and its session was ended");
    drop(held);
    site.end().await;
}

/// Certificates last thirty days; in this test they last two seconds.
#[tokio::test]
async fn a_session_ends_with_the_certificate_that_opened_it() {
    let settings = Settings { certificate_ttl: Span::from_s(2), ..Settings::default() };
    let site = support::site_with(tempfile::TempDir::new().unwrap(), settings, Limits::default()).await;
    let (who, credential) = site.enrolled(1).await;
    let mut session = site.link.session(&credential, who.hello()).await.unwrap();
    let over = async {
        loop {
            if let Err(failure) = session.next().await {
                return failure;
            }
        }
    };
    let failure = tokio::time::timeout(Duration::from_secs(5), over).await.unwrap();
    // The agent may have the next certificate, and uses no invitation for this one.
    assert_eq!((support::code(&failure), failure.is_final()), ("UNAVAILABLE", false));
    let refused = site.link.session(&credential, who.hello()).await.unwrap_err();
    assert_eq!(support::code(&refused), "CERTIFICATE_EXPIRED");
    site.end().await;
}

#[tokio::test]
async fn open_connection_is_refused_after_its_authority_is_retired() {
    let site = site().await;
    let (who, credential) = site.enrolled(1).await;
    let shown = raw::shown(credential);
    let (session, poll) =
        (raw::tls13(&site.link, Some(&shown)).await, raw::tls13(&site.link, Some(&shown)).await);
    // Each connection had an answer, so the server judged it while the authority was in force.
    let mut connections = [session, poll];
    for connection in &mut connections {
        connection.write_all(b"GET /v1/ping HTTP/1.1\r\nhost: x\r\n\r\n").await.unwrap();
        assert!(connection.read(&mut [0; 4096]).await.unwrap() > 0);
    }
    site.people(Ask::RotateCa {}).await;
    site.people(Ask::FinishRotation { force: true }).await;
    let asked = [UPGRADE.as_bytes().to_vec(), raw::post("/v1/poll", "", &hello(&who))];
    for (connection, bytes) in connections.into_iter().zip(asked) {
        let answer = raw::say(connection, &bytes).await;
        assert_eq!(raw::refused(&answer).1.reason.code(), "CERTIFICATE_UNKNOWN");
    }
    site.end().await;
}

#[tokio::test]
async fn open_socket_begins_no_session_after_its_authority_is_retired() {
    let site = site().await;
    let (who, credential) = site.enrolled(1).await;
    site.people(Ask::RotateCa {}).await;
    let mut socket = raw::socket(&site.link, &raw::shown(credential)).await;
    site.people(Ask::FinishRotation { force: true }).await;
    let hello = Numbered { n: 1, frame: AgentFrame::Hello(who.hello()) };
    socket.send(Message::text(serde_json::to_string(&hello).unwrap())).await.unwrap();
    let first = tokio::time::timeout(Duration::from_secs(10), socket.next()).await.unwrap();
    let first = first.unwrap().unwrap().into_text().unwrap();
    let refused = raw::refusal(&first).unwrap_or_else(|| panic!("{first}"));
    assert_eq!(refused.reason.code(), "CERTIFICATE_UNKNOWN");
    site.end().await;
}

/// Two authorities are to be retired: one is, and then the disk fails.
#[tokio::test]
async fn retired_authority_stays_refused_after_a_failed_rotation() {
    let site = site().await;
    let (_, credential) = site.enrolled(1).await;
    let shown = raw::shown(credential);
    site.people(Ask::RotateCa {}).await;
    let Answer::Pins(pins) = site.people(Ask::RotateCa {}).await else { panic!("no pins") };
    let in_the_way = site.directory.path().join("authority/0002.retired/x");
    std::fs::create_dir_all(&in_the_way).unwrap();
    let finish = || site.people(Ask::FinishRotation { force: true });
    assert!(matches!(finish().await, Answer::Refused(_)));
    let pins = pins.iter().map(|pin| pin.parse().unwrap()).collect();
    let link = Link { pins: Pins::new(pins).unwrap(), ..site.link.clone() };
    let answer = raw::say(raw::tls13(&link, Some(&shown)).await, &raw::post("/v1/poll", "", "{}")).await;
    assert_eq!(raw::refused(&answer).1.reason.code(), "CERTIFICATE_UNKNOWN");
    std::fs::remove_dir_all(in_the_way.parent().unwrap()).unwrap();
    let Answer::Pins(pins) = finish().await else { panic!("not finished") };
    assert_eq!(pins.len(), 1);
    site.end().await;
}
