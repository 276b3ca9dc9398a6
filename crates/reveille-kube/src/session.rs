//! One login to one API server, and every request that goes through it.
//!
//! A request goes in with a deadline; a complete body, or a [`Failure`], comes out. A 401 reads the kubeconfig again, logs
//! in once more and repeats the request once: tokens and certificates expire while a controller runs, and a request that
//! was not authenticated did not happen. Nothing else is repeated here (kube's own retries are off): loops that may
//! repeat have a backoff and say so.
//!
//! Whatever writes passes here, too, and is counted for its object first: above a budget it is refused and never sent
//! ([`Ledger`]). A loop of ours that will not end costs the API server twelve requests and no more.

use std::sync::{Arc, Mutex, PoisonError};
use std::time::Duration;

use http::Response;
use http::header::{DATE, HeaderMap, RETRY_AFTER};
use http_body_util::BodyExt;
use kube::Client;
use kube::client::Body;
use reveille_core::effect::ReadErrorKind;
use serde_json::value::RawValue;
use tokio::time::{Instant, timeout_at};

use crate::config::ClusterConfig;
use crate::failure::{Failure, Reached};
use crate::paths::Ask;
use crate::pieces::Pieces;
use crate::spending::Ledger;
use crate::wire::{ListMeta, Refusal};

/// A body larger than this is no list of nodes: 50,000 nodes of 4 KiB in one page would fit.
const BODY_MAX_BYTES: usize = 256 << 20;

/// What is read of a refusal's body.
const REFUSAL_MAX_BYTES: usize = 64 << 10;

/// A login.
pub(crate) struct Session {
    client: Mutex<Client>,
    /// Where to log in anew; `None` for a client that somebody else made.
    config: Option<ClusterConfig>,
    /// `host:port`, for people.
    server: Arc<str>,
    /// What was written of late; one for all handles of a login.
    spent: Arc<Ledger>,
}

/// A request and what it is about.
pub(crate) struct Question {
    /// What to send.
    pub(crate) ask: Ask,
    /// Everything, from the first byte sent to the last one read, ends by then.
    pub(crate) within: Duration,
    /// The object's name, when the question is about one: only a 404 that repeats it counts as "does not exist".
    pub(crate) about: Option<String>,
}

impl Session {
    /// A session with this client. With `config` it can log in again.
    pub(crate) fn new(client: Client, server: Arc<str>, config: Option<ClusterConfig>) -> Self {
        Self { client: Mutex::new(client), config, server, spent: Arc::default() }
    }

    /// The same login for somebody else.
    pub(crate) fn another(&self) -> Self {
        let client = self.client.lock().unwrap_or_else(PoisonError::into_inner).clone();
        let (config, server, spent) = (self.config.clone(), self.server.clone(), Arc::clone(&self.spent));
        Self { client: Mutex::new(client), config, server, spent }
    }

    /// `host:port` of the API server.
    pub(crate) fn server(&self) -> &str {
        &self.server
    }

    /// Sends, and reads the whole body into `body`, which is emptied first.
    pub(crate) async fn read(&self, question: Question, body: &mut Vec<u8>) -> Result<HeaderMap, Failure> {
        let (within, by) = (question.within, Instant::now() + question.within);
        let response = self.open(question).await?;
        let headers = response.headers().clone();
        body.clear();
        match timeout_at(by, collect(response.into_body(), body, BODY_MAX_BYTES, &self.server)).await {
            Ok(done) => done.map(|()| headers),
            Err(_) => Err(Failure::timed_out(within, &self.server)),
        }
    }

    /// Sends, and hands on the items of a list one by one while it arrives; what stands around them comes at the end. Items
    /// count for nothing before this has returned well.
    pub(crate) async fn read_items(
        &self,
        question: Question,
        what: &str,
        each: &mut impl FnMut(&RawValue),
    ) -> Result<ListMeta, Failure> {
        let (within, by) = (question.within, Instant::now() + question.within);
        let response = self.open(question).await?;
        let date = response.headers().get(DATE).and_then(|date| date.to_str().ok()).map(str::to_owned);
        let mut body = response.into_body();
        let unreadable =
            |error: serde_json::Error| Failure::malformed(format!("the {what} cannot be read: {error}"));
        let reading = async {
            let (mut pieces, mut length) = (Pieces::default(), 0);
            while let Some(frame) = body.frame().await {
                let frame = frame.map_err(|error| Failure::of_transport(&error, &self.server))?;
                let Ok(data) = frame.into_data() else { continue };
                length += data.len();
                if length > BODY_MAX_BYTES {
                    return Err(too_long(BODY_MAX_BYTES, &self.server));
                }
                pieces.take(&data, each).map_err(unreadable)?;
            }
            let metadata = pieces.end(each).map_err(unreadable)?;
            Ok(ListMeta { date, ..metadata })
        };
        timeout_at(by, reading).await.unwrap_or_else(|_| Err(Failure::timed_out(within, &self.server)))
    }

    /// Sends, and returns as soon as the server begins to answer. A refusal is an error.
    pub(crate) async fn open(&self, question: Question) -> Result<Response<Body>, Failure> {
        self.spent.allow(&question.ask)?;
        let again = question.ask.clone();
        match self.once(question.ask, question.within, question.about.as_deref()).await {
            Err(failure) if matches!(failure.reached, Reached::Answered { code: 401, .. }) => {
                if !self.log_in().await {
                    return Err(failure);
                }
                self.once(again, question.within, question.about.as_deref()).await
            }
            settled => settled,
        }
    }

    async fn once(&self, ask: Ask, within: Duration, about: Option<&str>) -> Result<Response<Body>, Failure> {
        let client = self.client.lock().unwrap_or_else(PoisonError::into_inner).clone();
        let by = Instant::now() + within;
        let late = || Failure::timed_out(within, &self.server);
        let answer = timeout_at(by, client.send(ask.map(Body::from))).await.map_err(|_| late())?;
        let response = answer.map_err(|error| Failure::of_client(&error, &self.server))?;
        let status = response.status();
        if status.is_success() {
            return Ok(response);
        }
        let asked = asked_wait(response.headers());
        let mut body = Vec::new();
        // A refusal is a refusal even when its reasons cannot be read.
        let _ =
            timeout_at(by, collect(response.into_body(), &mut body, REFUSAL_MAX_BYTES, &self.server)).await;
        Err(Refusal::read(&body).into_failure(status.as_u16(), asked, about))
    }

    /// Reads the credentials afresh. True when there are any to try.
    async fn log_in(&self) -> bool {
        let Some(config) = &self.config else { return false };
        match config.client().await {
            Ok((client, _)) => {
                *self.client.lock().unwrap_or_else(PoisonError::into_inner) = client;
                true
            }
            Err(error) => {
                tracing::warn!(%error, "cluster: cannot log in again");
                false
            }
        }
    }
}

/// Appends a body to `into`, up to `most` bytes.
async fn collect(mut body: Body, into: &mut Vec<u8>, most: usize, server: &str) -> Result<(), Failure> {
    while let Some(frame) = body.frame().await {
        let frame = frame.map_err(|error| Failure::of_transport(&error, server))?;
        let Ok(data) = frame.into_data() else { continue };
        if into.len() + data.len() > most {
            return Err(too_long(most, server));
        }
        into.extend_from_slice(&data);
    }
    Ok(())
}

fn too_long(most: usize, server: &str) -> Failure {
    let cause = format!("the answer is longer than {} MiB ({server})", most >> 20);
    Failure::new(ReadErrorKind::Malformed, Reached::Unanswered, cause)
}

/// `Retry-After` in seconds. The other form, a date, would have to be compared with a clock that is not ours.
fn asked_wait(headers: &HeaderMap) -> Option<Duration> {
    headers.get(RETRY_AFTER)?.to_str().ok()?.trim().parse().ok().map(Duration::from_secs)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[tokio::test]
    async fn a_body_is_read_up_to_its_bound_and_no_further() {
        let mut read = Vec::new();
        collect(Body::from(vec![7; 10]), &mut read, 10, "api").await.unwrap();
        assert_eq!(read, [7; 10]);
        let error = collect(Body::from(vec![7; 11]), &mut Vec::new(), 10, "api").await.unwrap_err();
        assert_eq!(error.kind, ReadErrorKind::Malformed);
    }
}
