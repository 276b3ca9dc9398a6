//! Bootstrap tokens, made in a roster's cluster when a machine waits for one.
//!
//! It is drawn here, written as a Secret of kube-system, and handed back; it lasts for minutes and is in no log. Each cluster
//! is asked for a few at a time, so that a rack that starts does not become an API server that does not. Of one that refuses a
//! line a minute is written, and not one for each machine that waits.

use std::collections::BTreeMap;
use std::sync::{Arc, Mutex, PoisonError};
use std::time::{Duration, Instant};

use reveille_core::model::id::RosterName;
use reveille_core::model::time::Span;
use reveille_kube::{BootstrapToken, Cluster};
use reveille_registrar::registry::MachineId;
use reveille_registrar::server::{Lines, Mint};
use reveille_wire::agent::Secret;
use reveille_wire::agent::text::Sentence;
use tokio::sync::mpsc;

use super::rooms::Rooms;
use crate::driver::clock;

/// Digits of a token: what the API server takes.
const DIGITS: &[u8; 36] = b"0123456789abcdefghijklmnopqrstuvwxyz";

/// What was told of each cluster.
type Told = Arc<Mutex<Lines<RosterName>>>;

/// Makes and takes away until nobody asks any more.
pub(super) async fn serve(mut mints: mpsc::Receiver<Mint>, clusters: BTreeMap<RosterName, Cluster>) {
    let (rooms, told) = (Rooms::of(clusters.keys()), Told::default());
    while let Some(mint) = mints.recv().await {
        let at = rooms.enter(roster(&mint)).zip(clusters.get(roster(&mint)).cloned());
        match (at, mint) {
            (Some((inside, cluster)), mint) => {
                let told = told.clone();
                tokio::spawn(inside.take_turn(async move { perform(mint, &cluster, &told).await }));
            }
            (None, Mint::Make { reply, .. }) => {
                let why = "no cluster of this server is the machine's, or too many tokens wait for it";
                // Whoever asked may have given up.
                drop(reply.send(Err(why.into())));
            }
            // It ends by itself.
            (None, Mint::Drop { .. }) => {}
        }
    }
}

const fn roster(mint: &Mint) -> &RosterName {
    match mint {
        Mint::Make { roster, .. } | Mint::Drop { roster, .. } => roster,
    }
}

async fn perform(mint: Mint, cluster: &Cluster, told: &Told) {
    match mint {
        Mint::Make { roster, machine, ttl, reply } => {
            // Nobody waits for it any more, and it would be one that no machine uses.
            if reply.is_closed() {
                return;
            }
            let made = make(cluster, &machine, ttl).await;
            if let Err(why) = &made
                && let Some(times) = is_due(told, &roster, "make")
            {
                tracing::warn!(%roster, %machine, times, "no bootstrap token could be made: {why}");
            }
            // Whoever asked gave up: the token ends by itself.
            drop(reply.send(made));
        }
        Mint::Drop { roster, token } => {
            let Some((id, _)) = token.expose().split_once('.') else { return };
            if let Err(why) = cluster.drop_bootstrap_token(id).await
                && let Some(times) = is_due(told, &roster, "drop")
            {
                tracing::info!(
                    %roster, times,
                    "bootstrap token {id} is not needed any more and could not be deleted: {why}; it ends by itself"
                );
            }
        }
    }
}

/// How often it happened since it was told last; none where it was told within the minute.
fn is_due(told: &Told, roster: &RosterName, what: &'static str) -> Option<u64> {
    let mut lines = told.lock().unwrap_or_else(PoisonError::into_inner);
    lines.is_due(Instant::now(), roster.clone(), what)
}

async fn make(cluster: &Cluster, machine: &MachineId, ttl: Span) -> Result<Secret, Sentence> {
    let (id, secret) = draw::<6>().zip(draw::<16>()).ok_or("the system gives no random numbers")?;
    let until = (clock::wall() + ttl).to_string();
    let description = format!("Reveille, for the join of {machine}");
    let token = BootstrapToken { id: &id, secret: &secret, until: &until, description: &description };
    let made = tokio::time::timeout(Duration::from_secs(30), cluster.make_bootstrap_token(&token)).await;
    match made {
        Ok(Ok(())) => Ok(Secret::new(&format!("{id}.{secret}"))),
        Ok(Err(why)) => Err(Sentence::cut(&format!("the API server did not take a bootstrap token: {why}"))),
        Err(_) => Err("the API server did not answer within 30 s".into()),
    }
}

/// Random digits, each as likely as every other.
fn draw<const COUNT: usize>() -> Option<String> {
    let mut text = String::with_capacity(COUNT);
    while text.len() < COUNT {
        let mut byte = [0_u8];
        aws_lc_rs::rand::fill(&mut byte).ok()?;
        // 252 is the largest multiple of 36 in a byte.
        if byte[0] < 252 {
            text.push(char::from(DIGITS[usize::from(byte[0]) % DIGITS.len()]));
        }
    }
    Some(text)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_token_has_the_form_that_the_api_server_takes() {
        let (one, other) = (draw::<16>().unwrap(), draw::<16>().unwrap());
        assert_eq!(one.len(), 16);
        assert_ne!(one, other);
        assert!(one.bytes().all(|byte| DIGITS.contains(&byte)));
    }
}
