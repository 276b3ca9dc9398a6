//! Tokens of joins, from the token issuer to the machine and back: no token that was made remains when its machine needs
//! none.

#![allow(clippy::unwrap_used, reason = "in a test, what cannot be is a failure")]

mod support;

use std::collections::{BTreeMap, BTreeSet};
use std::time::Duration;

use reveille_core::model::time::Span;
use reveille_node::link::Session;
use reveille_registrar::registry::{Event, Plans, Removal, Settings};
use reveille_registrar::server::admin::Ask;
use reveille_registrar::server::{Limits, TokenRequest};
use reveille_wire::agent::frame::Heartbeat;
use reveille_wire::agent::{AgentFrame, Secret, ServerFrame};
use support::template;
use tokio::sync::mpsc;
use tokio::time::{sleep, timeout};

/// Makes distinct tokens, each after a delay. Returns those that it was told to delete.
fn issue(
    mut token_requests: mpsc::Receiver<TokenRequest>,
    slow: Duration,
) -> mpsc::UnboundedReceiver<String> {
    let (dropped, out) = mpsc::unbounded_channel();
    tokio::spawn(async move {
        let mut number = 0;
        while let Some(request) = token_requests.recv().await {
            match request {
                TokenRequest::Make { reply, .. } => {
                    number += 1;
                    let token = Secret::new(&format!("tok{number:03}.0123456789abcdef"));
                    tokio::spawn(async move {
                        sleep(slow).await;
                        drop(reply.send(Ok(token)));
                    });
                }
                TokenRequest::Drop { token, .. } => drop(dropped.send(token.expose().to_owned())),
            }
        }
    });
    out
}

/// The tokens that a machine gets until it has `most`, or none comes for a while.
async fn given(session: &mut Session, most: usize, quiet: Duration) -> BTreeSet<String> {
    let mut given = BTreeSet::new();
    while given.len() < most
        && let Ok(Ok(frame)) = timeout(quiet, session.next()).await
    {
        if let ServerFrame::Token(token) = frame {
            given.insert(token.token.expose().to_owned());
        }
    }
    given
}

#[tokio::test]
async fn removed_machine_loses_every_token_that_it_was_given() {
    // The same proportions as by default, in seconds: a replaced token has a third of its life left.
    let replaced = Settings { token_ttl: Span::from_s(6), ..Settings::default() };
    let cases = [("replaced", replaced, 0, 2), ("raced for", Settings::default(), 40, usize::MAX)];
    for (what, settings, toggles, most) in cases {
        let directory = tempfile::TempDir::new().unwrap();
        let (site, token_requests) = support::site_that_mints(directory, settings, Limits::default()).await;
        let mut dropped = issue(token_requests, Duration::from_millis(20));
        let plans =
            BTreeMap::from([(("prod".into(), "workers".into()), template("10.0.0.1:6443", "sha256:00"))]);
        site.hand.say(Event::PlansRead(Plans(plans))).await.unwrap();
        let (machine, credential) = site.enrolled(1).await;
        let mut session = site.link.session(&credential, machine.hello()).await.unwrap();
        for joined in (0..toggles).flat_map(|_| [true, false]) {
            let beat = Heartbeat { stage: None, joined, account: None };
            session.say(AgentFrame::Heartbeat(beat)).await.unwrap();
        }
        let given = given(&mut session, most, Duration::from_secs(if toggles > 0 { 2 } else { 5 })).await;
        assert!(given.len() >= most.min(1), "{what}: {given:?}");
        let removal = Ask::Remove { machine: "w-1".into(), what: Some(Removal::Machine) };
        site.people(removal).await;
        sleep(Duration::from_millis(500)).await;
        let taken: BTreeSet<String> = std::iter::from_fn(|| dropped.try_recv().ok()).collect();
        println!("{what}: given {given:?}, taken away {taken:?}");
        assert!(taken.is_superset(&given), "{what}: {given:?} were given, {taken:?} taken away");
        site.end().await;
    }
}
