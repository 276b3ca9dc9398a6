//! Who may take the name of a Node while its API server is away.

#![allow(clippy::unwrap_used, reason = "in a test, what cannot be is a failure")]

mod support;

use std::collections::BTreeSet;

use reveille_registrar::registry::{Event, Settings};
use reveille_registrar::server::{Limits, NodeAsked};
use reveille_wire::agent::Role;
use support::{code, site_of, who};
use tempfile::TempDir;
use tokio::sync::mpsc;

/// A cluster whose API server does not answer.
fn silent(mut asked: mpsc::Receiver<NodeAsked>) {
    tokio::spawn(async move { while asked.recv().await.is_some() {} });
}

/// The holder of an open invitation comes as a Node that is there, while the API server is away. It is told to come again, also
/// by a server that is started meanwhile: it does not take the cluster for one that was never there.
#[tokio::test]
async fn node_name_stays_protected_after_restart_without_api_server() {
    let (site, asked) =
        site_of(&["prod"], TempDir::new().unwrap(), Settings::default(), Limits::default()).await;
    silent(asked);
    let present = Some(BTreeSet::from([Role::ControlPlane, Role::Worker]));
    site.hand.say(Event::ClusterSaid { roster: "prod".into(), present }).await.unwrap();
    let invited = site.invite(|_| {}).await;
    let before = site.enrol(&invited.token, &who(1)).await.unwrap_err();
    assert_eq!(code(&before), "UNAVAILABLE");

    let directory = site.end().await;
    let (site, asked) = site_of(&["prod"], directory, Settings::default(), Limits::default()).await;
    silent(asked);
    // What the controller says of a cluster whose watch has not come about.
    site.hand.say(Event::ClusterSaid { roster: "prod".into(), present: None }).await.unwrap();
    let after = site.enrol(&invited.token, &who(1)).await.map(|(_, kept)| kept.node_name.to_string());
    assert!(after.is_err(), "the name of a Node was given to a client with a token: {after:?}");
    site.end().await;
}

/// The same without a restart: the controller tells the server of an API server that stopped answering as of one that was never
/// there (`tell_roles` in `crates/reveille/src/registration/mod.rs`), and only what the registry remembers tells the two apart.
#[tokio::test]
async fn node_name_stays_protected_while_known_api_server_is_away() {
    let (site, asked) =
        site_of(&["prod"], TempDir::new().unwrap(), Settings::default(), Limits::default()).await;
    silent(asked);
    for present in [Some(BTreeSet::from([Role::ControlPlane, Role::Etcd])), None] {
        site.hand.say(Event::ClusterSaid { roster: "prod".into(), present }).await.unwrap();
    }
    let invited = site.invite(|_| {}).await;
    let taken = site.enrol(&invited.token, &who(1)).await.map(|(_, kept)| kept.node_name.to_string());
    assert!(taken.is_err(), "the name of a Node was given to a client with a token: {taken:?}");
    site.end().await;
}
