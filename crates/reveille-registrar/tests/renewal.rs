//! The next certificate of a machine with a broken disk or a wrong clock, or whose certificate is not accepted any more.

#![allow(clippy::unwrap_used, reason = "in a test, what cannot be is a failure")]

#[path = "support/agent.rs"]
mod agent;
mod support;

use std::fs;
use std::path::{Path, PathBuf};
use std::time::Duration;

use reveille_core::model::time::{Span, Time};
use reveille_node::link::{Enrolment, Keyring};
use reveille_registrar::registry::{Reimage, Settings};
use reveille_registrar::server::Limits;
use support::{Site, Who, site, who};

const NOW_MS: i64 = 1_795_000_000_000;
const DAY: Span = Span::from_min(24 * 60);

/// A machine that was enrolled at this time of its own clock.
async fn enrolled_at(site: &Site, folder: &Path, at: Time) -> (Who, Keyring, PathBuf) {
    let (who, invited) = (who(1), site.invite(|_| {}).await);
    let enrolment = Enrolment::new(who.identity.clone(), who.facts.clone(), None).unwrap();
    let (credential, kept) = enrolment.ask(&site.link, &invited.token, at).await.unwrap();
    let link = folder.join("link");
    (who, Keyring::keep(&link, credential, kept).unwrap(), link)
}

#[tokio::test]
async fn a_disk_that_was_full_for_a_while_costs_no_machine_its_record() {
    let now = Time::from_ms(NOW_MS);
    // Each time one more file cannot be written: the first time the key can, and the files that belong to it cannot.
    let orders = [["link.json", "link.pem"], ["link.pem", "link.json"], ["link.json", "renewing.pem"]];
    for full in orders {
        let (site, folder) = (site().await, tempfile::tempdir().unwrap());
        let (who, keyring, link) = enrolled_at(&site, folder.path(), now).await;
        for name in full {
            let in_the_way = link.join(format!("{name}.new"));
            fs::create_dir(&in_the_way).unwrap();
            let renewed = keyring.renewed(&site.link, now).await;
            // A key that is already on the disk is not written again.
            assert_eq!(renewed.is_err(), name != "renewing.pem", "{full:?}");
            fs::remove_dir(in_the_way).unwrap();
        }
        // The disk has room again, and the agent restarts.
        let mut keyring = Keyring::open(&link).unwrap().unwrap();
        for _ in 0..2 {
            drop(site.link.session(&keyring.credential, who.hello()).await.unwrap());
            let before = fs::read(link.join("link.pem")).unwrap();
            keyring = keyring.renewed(&site.link, now).await.unwrap();
            assert_ne!(fs::read(link.join("link.pem")).unwrap(), before, "with another key");
            assert!(!link.join("renewing.pem").exists());
        }
        drop(site.link.session(&keyring.credential, who.hello()).await.unwrap());
        site.end().await;
    }
}

#[tokio::test]
async fn a_next_key_that_cannot_be_kept_is_not_shown_to_the_server() {
    let now = Time::from_ms(NOW_MS);
    let (site, folder) = (site().await, tempfile::tempdir().unwrap());
    let (_, keyring, link) = enrolled_at(&site, folder.path(), now).await;
    fs::create_dir(link.join("renewing.pem.new")).unwrap();
    keyring.renewed(&site.link, now).await.unwrap_err();
    let offered =
        site.hand.view(|registry, _| registry.index().machines().any(|it| !it.next_keys.is_empty()));
    assert!(!offered.await.unwrap());
    site.end().await;
}

#[tokio::test]
async fn certificate_issued_while_the_clock_was_ahead_is_renewed() {
    let (site, folder) = (site().await, tempfile::tempdir().unwrap());
    let now = Time::from_ms(NOW_MS);
    // No battery, or a wrong date: the machine boots in 2040, enrols, and NTP corrects its clock a minute later.
    let ahead = (0..14 * 365).fold(now, |at, _| at + DAY);
    let (_, keyring, link) = enrolled_at(&site, folder.path(), ahead).await;
    assert!(!keyring.is_due(ahead) && keyring.is_due(now), "in 2026 at once");
    let renewed = keyring.renewed(&site.link, now).await.unwrap();
    assert!(!renewed.is_due(now) && !renewed.is_due(now - Span::from_s(5)), "and once");
    // As an earlier version of the agent kept it.
    let text = fs::read_to_string(link.join("link.json")).unwrap();
    assert!(text.contains("renew_after_s"));
    fs::write(link.join("link.json"), text.replace("renew_after_s", "unknown")).unwrap();
    let renewed = Keyring::open(&link).unwrap().unwrap();
    assert!(!renewed.is_due(now) && renewed.is_due(now - DAY));
    site.end().await;
}

#[tokio::test]
async fn agent_begins_a_session_with_its_renewed_key_at_once() {
    // The agent first checks after five seconds whether its certificate is due.
    let settings = Settings { certificate_ttl: Span::from_s(7), ..Settings::default() };
    let site = support::site_with(tempfile::tempdir().unwrap(), settings, Limits::default()).await;
    let invited = site.invite(|_| {}).await;
    let machine = agent::machine(1, &[]);
    let mut running = agent::run(agent::setup(&site, &machine, Some(invited.token.clone())), machine);
    running.says("Up {").await;
    let keys = || {
        site.hand.view(|registry, _| {
            let known = registry.index().machines().next().unwrap();
            (known.key, known.next_keys.len())
        })
    };
    let (first, _) = keys().await.unwrap();
    let renewed = async {
        loop {
            match keys().await.unwrap() {
                (key, 0) if key != first => return,
                _ => tokio::time::sleep(Duration::from_millis(50)).await,
            }
        }
    };
    tokio::time::timeout(Duration::from_millis(6_500), renewed).await.unwrap();
    drop(running);
    site.end().await;
}

/// An attacker has a snapshot of the machine's disk. The machine renews, and is off before it comes with its next key.
/// The attacker renews with the key before until that key does not count any more.
#[tokio::test]
async fn machine_returns_with_old_key_after_a_copy_displaced_the_new() {
    let (site, now) = (site().await, Time::from_ms(NOW_MS));
    let invited = site.invite(|_| {}).await;
    let machine = agent::machine(1, &[]);
    let mut running = agent::run(agent::setup(&site, &machine, Some(invited.token.clone())), machine);
    running.says("Up {").await;
    let machine = running.stopped().await;
    let setup = agent::setup(&site, &machine, Some(invited.token.clone()));
    let link = setup.folder.join("link");
    let copy = Keyring::open(&link).unwrap().unwrap().credential;
    drop(Keyring::open(&link).unwrap().unwrap().renewed(&site.link, now).await.unwrap());
    for _ in 0..4 {
        site.link.renew(&copy, now).await.unwrap();
    }
    let mut running = agent::run(setup, machine);
    running.says("Up {").await;
    drop(running);
    site.end().await;
}

/// An agent that has enrolled, and whose key is void since: its machine was enrolled again with another key. The agent
/// has an open invitation, or the one that it was enrolled with.
async fn runs_again(site: &Site, is_invited: bool) -> (agent::Running, Vec<u8>, PathBuf) {
    let first = site.invite(|_| {}).await;
    let machine = agent::machine(1, &[]);
    let mut running = agent::run(agent::setup(site, &machine, Some(first.token.clone())), machine);
    running.says("Up {").await;
    let machine = running.stopped().await;
    let rebuilt = |wish: &mut support::Wished| {
        (wish.machine, wish.reimage) =
            (Some("feed0000000040008000000000000001".into()), Some(Reimage::AtOnce));
    };
    let mut who = who(1);
    (who.identity.instance_id, who.identity.system_uuid) = (None, None);
    who.facts.hostname = "w-1".into();
    site.enrol(&site.invite(rebuilt).await.token, &who).await.unwrap();
    let token = if is_invited { site.invite(rebuilt).await.token } else { first.token };
    let setup = agent::setup(site, &machine, Some(token));
    let pem = setup.folder.join("link/link.pem");
    fs::write(pem.with_file_name("renewing.pem"), "of the record before").unwrap();
    let before = fs::read(&pem).unwrap();
    (agent::run(setup, machine), before, pem)
}

#[tokio::test]
async fn machine_with_a_revoked_certificate_uses_its_new_invitation() {
    let site = site().await;
    let (mut running, before, pem) = runs_again(&site, true).await;
    running.says("Up {").await;
    assert_ne!(fs::read(&pem).unwrap(), before);
    assert!(["enrolling.pem", "renewing.pem"].iter().all(|name| !pem.with_file_name(name).exists()));
    drop(running);
    site.end().await;
}

#[tokio::test]
async fn refused_invitation_is_tried_once_and_keeps_the_certificate() {
    let site = site().await;
    let (mut running, before, pem) = runs_again(&site, false).await;
    running.says("enrolling again at").await;
    for _ in 0..2 {
        running.says("CERTIFICATE_REVOKED").await;
    }
    tokio::time::sleep(Duration::from_secs(1)).await;
    let more = std::iter::from_fn(|| running.said.try_recv().ok());
    assert_eq!(more.filter(|line| line.contains("enrolling again at")).count(), 0);
    assert_eq!(fs::read(&pem).unwrap(), before);
    drop(running);
    site.end().await;
}
