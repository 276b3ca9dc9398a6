//! Searches for secrets in everything that is logged or written: the log at its finest level, the disk, errors, debug
//! output.
//!
//! This test has a process of its own, because it captures the log of every thread.

#![allow(clippy::unwrap_used, reason = "in a test, what cannot be is a failure")]

#[path = "support/log.rs"]
mod log;
mod support;

use log::Log;
use reveille_node::link::{Carrier, Enrolment};
use reveille_wire::agent::{Secret, ServerFrame};
use support::{TOKEN, site, until, who, written};

#[tokio::test]
async fn logs_disk_errors_and_debug_output_contain_no_token_or_key() {
    let log = Log::default();
    let writer = log.clone();
    let subscriber =
        tracing_subscriber::fmt().with_max_level(tracing::Level::TRACE).with_writer(move || writer.clone());
    tracing::subscriber::set_global_default(subscriber.finish()).unwrap();
    let site = site().await;
    site.plans().await;
    let invited = site.invite(|_| {}).await;
    let token = invited.token.expose().to_owned();
    let secret = token.rsplit_once('.').unwrap().1.to_owned();
    let mut said = format!("{invited:?}");
    let enrolment = Enrolment::new(who(1).identity, who(1).facts, None).unwrap();
    let (credential, kept) = enrolment.ask(&site.link, &invited.token, Default::default()).await.unwrap();
    said += &format!("{credential:?} {kept:?}");
    for carrier in [Carrier::WebSocket, Carrier::LongPoll] {
        let mut session = site.link.session_over(carrier, &credential, who(1).hello()).await.unwrap();
        let frame =
            until(&mut session, |frame| matches!(frame, ServerFrame::Token(_)).then(|| frame.clone())).await;
        said += &format!("{frame:?} {session:?}");
    }
    // The requests are refused: one with a right token and two with altered ones.
    for token in [token.clone(), token.replace("rvi1.", "rvi1.0"), format!("{token}0")] {
        let other = Enrolment::new(who(2).identity, who(2).facts, None).unwrap();
        let error = other.ask(&site.link, &Secret::new(&token), Default::default()).await.unwrap_err();
        said += &format!("{error} {error:?}");
    }
    let folder = tempfile::TempDir::new().unwrap();
    let keyring = reveille_node::link::Keyring::keep(folder.path(), credential, kept).unwrap();
    said += &format!("{keyring:?}");
    let pem = std::fs::read_to_string(folder.path().join("link.pem")).unwrap();
    let key: String = pem.lines().skip(1).take_while(|line| !line.starts_with("-----")).collect();
    // The prefix is the same in every key of this kind, also in those of the authorities.
    let key = &key[50..90];
    let directory = site.end().await;
    let disk = written(directory.path());
    let log = log.text();
    assert!(log.contains("was enrolled") && disk.contains("\"invited\""), "what is looked through is there");
    assert!(disk.contains(invited.id.as_str()), "the public half may be known");
    for (place, text) in [("log", &log), ("disk", &disk), ("text", &said)] {
        for (what, canary) in
            [("invitation", secret.as_str()), ("bootstrap token", TOKEN), ("machine's key", key)]
        {
            assert!(!text.contains(canary), "the {what} is in the {place}");
        }
    }
}
