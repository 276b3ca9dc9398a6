//! Makes bootstrap tokens in a roster's cluster when a machine waits for one.
//!
//! The token is drawn here, written as a Secret of kube-system, and returned; it lasts for minutes and is in no log. Each
//! cluster gets a few requests at a time, so that a rack that starts does not overload an API server that starts. For a
//! cluster that refuses, the log has a line a minute, and not one for each machine that waits.

use std::collections::BTreeMap;
use std::sync::{Arc, Mutex, PoisonError};
use std::time::{Duration, Instant};

use reveille_core::model::id::RosterName;
use reveille_core::model::time::Span;
use reveille_kube::{BootstrapToken, Cluster};
use reveille_registrar::registry::MachineId;
use reveille_registrar::server::{Lines, TokenRequest};
use reveille_wire::agent::Secret;
use reveille_wire::agent::text::Sentence;
use tokio::sync::mpsc;

use super::rooms::Rooms;
use crate::driver::clock;

/// The characters of a token that the API server accepts.
const DIGITS: &[u8; 36] = b"0123456789abcdefghijklmnopqrstuvwxyz";

/// The log lines of each cluster.
type LogLimits = Arc<Mutex<Lines<RosterName>>>;

/// Makes and deletes tokens until every sender is gone.
pub(super) async fn serve(
    mut token_requests: mpsc::Receiver<TokenRequest>,
    clusters: BTreeMap<RosterName, Cluster>,
) {
    let (rooms, log_limits) = (Rooms::of(clusters.keys()), LogLimits::default());
    while let Some(request) = token_requests.recv().await {
        let at = rooms.enter(roster(&request)).zip(clusters.get(roster(&request)).cloned());
        match (at, request) {
            (Some((inside, cluster)), request) => {
                let log_limits = log_limits.clone();
                tokio::spawn(inside.take_turn(async move { perform(request, &cluster, &log_limits).await }));
            }
            (None, TokenRequest::Make { reply, .. }) => {
                let why = "no cluster of this server is the machine's, or too many tokens wait for it";
                // The requester may have given up.
                drop(reply.send(Err(why.into())));
            }
            // The token expires on its own.
            (None, TokenRequest::Drop { .. }) => {}
        }
    }
}

const fn roster(request: &TokenRequest) -> &RosterName {
    match request {
        TokenRequest::Make { roster, .. } | TokenRequest::Drop { roster, .. } => roster,
    }
}

async fn perform(request: TokenRequest, cluster: &Cluster, log_limits: &LogLimits) {
    match request {
        TokenRequest::Make { roster, machine, ttl, reply } => {
            // The requester gave up, so no machine would use the token.
            if reply.is_closed() {
                return;
            }
            let made = make(cluster, &machine, ttl).await;
            if let Err(why) = &made
                && let Some(times) = is_due(log_limits, &roster, "make")
            {
                tracing::warn!(%roster, %machine, times, "no bootstrap token could be made: {why}");
            }
            // If the requester gave up, the token expires on its own.
            drop(reply.send(made));
        }
        TokenRequest::Drop { roster, token } => {
            let Some((id, _)) = token.expose().split_once('.') else { return };
            if let Err(why) = cluster.drop_bootstrap_token(id).await
                && let Some(times) = is_due(log_limits, &roster, "drop")
            {
                tracing::info!(
                    %roster, times,
                    "bootstrap token {id} is not needed any more and could not be deleted: {why}; it ends by itself"
                );
            }
        }
    }
}

/// How often it happened since the last log line; `None` where that was within the minute.
fn is_due(log_limits: &LogLimits, roster: &RosterName, what: &'static str) -> Option<u64> {
    let mut lines = log_limits.lock().unwrap_or_else(PoisonError::into_inner);
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

/// Random digits, all equally likely.
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
