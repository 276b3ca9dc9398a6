//! Each action that admits or removes a machine is one line of the log, with the account that asked, and without a
//! secret.
//!
//! This test has a process of its own, because it captures the log of every thread.

#![allow(clippy::unwrap_used, reason = "in a test, what cannot be is a failure")]

#[path = "support/log.rs"]
mod log;
mod support;

use std::os::unix::fs::MetadataExt as _;

use log::Log;
use reveille_registrar::registry::{Reimage, Removal};
use reveille_registrar::server::admin::Ask;
use support::{site, who};

#[tokio::test]
async fn admission_and_removal_are_logged_with_caller_without_secret() {
    let log = Log::default();
    let writer = log.clone();
    let subscriber = tracing_subscriber::fmt().with_ansi(false).with_writer(move || writer.clone());
    tracing::subscriber::set_global_default(subscriber.finish()).unwrap();
    let site = site().await;
    let invited = site.invite(|wish| (wish.uses, wish.ttl_s) = (1, 600)).await;
    site.enrol(&invited.token, &who(1)).await.unwrap();
    let leaked = site.invite(|wish| wish.uses = 3).await;
    let remove = |what| Ask::Remove { machine: "w-1".into(), what };
    site.people(remove(Some(Removal::Machine))).await;
    site.people(remove(None)).await;
    let rebuilt = |wish: &mut support::Wished| {
        (wish.machine, wish.reimage) = (Some("w-1".into()), Some(Reimage::AtOnce));
    };
    site.invite(rebuilt).await;
    site.people(Ask::Revoke { id: leaked.id.clone() }).await;
    site.people(Ask::RotateCa {}).await;
    site.people(Ask::FinishRotation { force: true }).await;
    let of_liars = site.invite(|_| {}).await;
    let mut liar = who(9);
    liar.facts.hostname = "w-1".into();
    for _ in 0..5 {
        // The agent knows only the authority before; the registry hears its messages all the same.
        let mut link = site.link.clone();
        link.pins = pins(&of_liars.ca_pins);
        support::enrol(&link, &of_liars.token, &liar).await.unwrap_err();
    }
    let uid = std::fs::metadata(site.directory.path()).unwrap().uid();
    let by = format!("by=uid {uid} ");
    drop(site.end().await);

    let text = log.text();
    let wanted: [(bool, &[&str]); 10] = [
        (true, &["invitation was made", "roster=prod", "pool=workers", "uses=1", "ttl_s=600", &invited.id]),
        (false, &["used for the last time", &invited.id, "pool=workers"]),
        (true, &["invitation was made", "uses=3", "ttl_s=3600", &leaked.id]),
        (true, &["a machine was removed", "machine=m-", "name=w-1"]),
        (true, &["let in again", "machine=m-", "name=w-1"]),
        (true, &["rebuilt at once", "machine=\"w-1\""]),
        (true, &["taken back", &leaked.id, "let_in=0"]),
        (true, &["another authority was introduced", "sha256:"]),
        (true, &["WARN", "locked out"]),
        (false, &["WARN", "an invitation is void", &of_liars.id, "conflicts=5"]),
    ];
    for (is_asked, parts) in wanted {
        let is_it = |line: &&str| {
            parts.iter().all(|part| line.contains(part)) && (!is_asked || format!("{line} ").contains(&by))
        };
        assert_eq!(text.lines().filter(is_it).count(), 1, "{parts:?}:\n{text}");
    }
    for token in [&invited.token, &leaked.token, &of_liars.token] {
        let secret = token.expose().rsplit('.').next().unwrap();
        assert!(!text.contains(secret), "{text}");
    }
}

fn pins(told: &[reveille_wire::agent::text::Word]) -> reveille_node::pins::Pins {
    reveille_node::pins::Pins::new(told.iter().map(|pin| pin.parse().unwrap()).collect()).unwrap()
}
