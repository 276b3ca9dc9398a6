//! One login to one API server, and every request that goes through it.
//!
//! A request goes in with a deadline; a complete body, or a [`Failure`], comes out. After a 401 the session reads the kubeconfig
//! again, logs in once more and repeats the request once. Tokens and certificates expire while a controller runs, and a request
//! that was not authenticated did not happen. Credentials that end soon are replaced in a task of its own, while requests use the
//! old ones. A login has its own deadline, however many tasks wait for it, and there is one at a time. The session repeats
//! nothing else (kube's own retries are off): loops that may repeat have a backoff and say so.
//!
//! Every write passes through the session, too, and is counted for its object first: above a budget the session refuses it and
//! never sends it ([`RecentWrites`]). An endless loop in our own code costs the API server twelve requests and no more.

use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Mutex, PoisonError};
use std::time::Duration;

use http::Response;
use http::header::{DATE, HeaderMap, RETRY_AFTER};
use http_body_util::BodyExt;
use jiff::{SignedDuration, Timestamp};
use kube::Client;
use kube::client::Body;
use reveille_core::effect::ReadErrorKind;
use serde_json::value::RawValue;
use tokio::sync::OwnedMutexGuard;
use tokio::task::JoinHandle;
use tokio::time::{Instant, timeout_at};

use crate::config::ClusterConfig;
use crate::failure::{Failure, Reached};
use crate::list_stream::ListStream;
use crate::paths::Ask;
use crate::wire::{ListMeta, Refusal};
use crate::write_budget::RecentWrites;

/// A body larger than this is no list of nodes: 50,000 nodes of 4 KiB in one page would fit.
const BODY_MAX_BYTES: usize = 256 << 20;

/// What is read of a refusal's body.
const REFUSAL_MAX_BYTES: usize = 64 << 10;

/// After a login whose credentials were refused as well the next one waits this long, then twice as long, and so on.
const LOG_IN_AGAIN: Duration = Duration::from_secs(1);
/// The longest such wait, and the shortest between two renewals.
const LOG_IN_AGAIN_MAX: Duration = Duration::from_secs(60);

/// Credentials are renewed so long before they end: room for two tries.
const RENEW_BEFORE: SignedDuration = SignedDuration::from_secs(120);

/// The client that is in use, and how logging in went.
struct Logins {
    /// With its number, which each login counts up.
    client: Mutex<(u64, Client)>,
    /// The client of now was answered otherwise than with 401.
    proved: AtomicBool,
    /// Held by the one that logs in; the others wait and use what comes of it.
    last: Arc<tokio::sync::Mutex<LastLogin>>,
}

#[derive(Default)]
struct LastLogin {
    at: Option<Instant>,
    /// Logins in a row after which the server still answered 401, or that failed.
    in_vain: u32,
}

/// A login.
pub(crate) struct Session {
    logins: Arc<Logins>,
    /// Where to log in again; `None` for a client that the caller made.
    config: Option<ClusterConfig>,
    /// `host:port`, for people.
    server: Arc<str>,
    /// What was written of late; one for all handles of a login.
    spent: Arc<RecentWrites>,
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
        let logins =
            Logins { client: Mutex::new((0, client)), proved: AtomicBool::new(false), last: Arc::default() };
        Self { logins: Arc::new(logins), config, server, spent: Arc::default() }
    }

    /// A second handle to the same login.
    pub(crate) fn another(&self) -> Self {
        let (config, server, spent) = (self.config.clone(), self.server.clone(), Arc::clone(&self.spent));
        Self { logins: Arc::clone(&self.logins), config, server, spent }
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
        let unreadable = |error: serde_json::Error| Failure::unread(format!("the {what}"), &error);
        let reading = async {
            let (mut stream, mut length) = (ListStream::default(), 0);
            while let Some(frame) = body.frame().await {
                let frame = frame.map_err(|error| Failure::of_transport(&error, &self.server))?;
                let Ok(data) = frame.into_data() else { continue };
                length += data.len();
                if length > BODY_MAX_BYTES {
                    return Err(too_long(BODY_MAX_BYTES, &self.server));
                }
                stream.take(&data, each).map_err(unreadable)?;
            }
            let metadata = stream.end(each).map_err(unreadable)?;
            Ok(ListMeta { date, ..metadata })
        };
        timeout_at(by, reading).await.unwrap_or_else(|_| Err(Failure::timed_out(within, &self.server)))
    }

    /// Sends, and returns as soon as the server begins to answer. A refusal is an error.
    pub(crate) async fn open(&self, question: Question) -> Result<Response<Body>, Failure> {
        self.spent.allow(&question.ask)?;
        let again = question.ask.clone();
        let (number, client) = self.client();
        self.renew(number, &client);
        match self.once(client, question.ask, question.within, question.about.as_deref()).await {
            Err(failure) if is_unauthorized(&failure) => {
                if !self.log_in(number, Instant::now() + question.within).await {
                    return Err(failure);
                }
                let (_, client) = self.client();
                let settled = self.once(client, again, question.within, question.about.as_deref()).await;
                self.note(&settled);
                settled
            }
            settled => {
                self.note(&settled);
                settled
            }
        }
    }

    fn client(&self) -> (u64, Client) {
        self.logins.client.lock().unwrap_or_else(PoisonError::into_inner).clone()
    }

    /// An answer other than 401 proves the credentials; no answer proves nothing.
    fn note(&self, settled: &Result<Response<Body>, Failure>) {
        let answered = match settled {
            Ok(_) => true,
            Err(failure) => matches!(failure.reached, Reached::Answered { .. }) && !is_unauthorized(failure),
        };
        if answered {
            self.logins.proved.store(true, Ordering::Relaxed);
        }
    }

    async fn once(
        &self,
        client: Client,
        ask: Ask,
        within: Duration,
        about: Option<&str>,
    ) -> Result<Response<Body>, Failure> {
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

    /// Reads the credentials afresh, when those of this number were refused. True when there are any to try by then. One login
    /// serves all that wait for it, and one that was in vain is not repeated at once: an identity provider locks who tries
    /// too often.
    async fn log_in(&self, refused: u64, by: Instant) -> bool {
        let last = Arc::clone(&self.logins.last).lock_owned();
        let Ok(mut last) = timeout_at(by, last).await else { return false };
        if self.client().0 != refused {
            return true;
        }
        if self.logins.proved.swap(false, Ordering::Relaxed) {
            last.in_vain = 0;
        }
        let wait =
            LOG_IN_AGAIN.saturating_mul(1 << last.in_vain.saturating_sub(1).min(6)).min(LOG_IN_AGAIN_MAX);
        if last.in_vain > 0 && last.at.is_some_and(|at| at.elapsed() < wait) {
            return false;
        }
        let Some(login) = self.begin_login(last, refused) else { return false };
        matches!(timeout_at(by, login).await, Ok(Ok(true)))
    }

    /// Begins to replace credentials that end soon. That end is another clock's: nothing rests on it but one more login.
    fn renew(&self, number: u64, client: &Client) {
        let ends_soon = |ends: &Timestamp| Timestamp::now() + RENEW_BEFORE >= *ends;
        if !client.valid_until().as_ref().is_some_and(ends_soon) {
            return;
        }
        let Ok(last) = Arc::clone(&self.logins.last).try_lock_owned() else { return };
        let is_due = last.at.is_none_or(|at| at.elapsed() >= LOG_IN_AGAIN_MAX);
        if is_due && self.client().0 == number {
            drop(self.begin_login(last, number));
        }
    }

    /// Logs in, whether a caller waits for it or not: the result of a plugin that was started must be used. The lock says that it
    /// runs.
    fn begin_login(&self, mut last: OwnedMutexGuard<LastLogin>, number: u64) -> Option<JoinHandle<bool>> {
        let config = self.config.clone()?;
        let logins = Arc::clone(&self.logins);
        last.in_vain = last.in_vain.saturating_add(1);
        Some(tokio::spawn(async move {
            let logged_in = config.client().await;
            last.at = Some(Instant::now());
            match logged_in {
                Ok((client, _)) => {
                    *logins.client.lock().unwrap_or_else(PoisonError::into_inner) = (number + 1, client);
                    true
                }
                Err(error) => {
                    tracing::warn!(%error, "cluster: cannot log in again");
                    false
                }
            }
        }))
    }
}

const fn is_unauthorized(failure: &Failure) -> bool {
    matches!(failure.reached, Reached::Answered { code: 401, .. })
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
    Failure::new(ReadErrorKind::Malformed, Reached::TooLong, cause)
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

    /// The server refuses every client, and the plugin of the kubeconfig hangs.
    #[tokio::test]
    async fn a_refused_request_ends_in_time_while_a_login_hangs() {
        let listener = tokio::net::TcpListener::bind("127.0.0.1:0").await.unwrap();
        let url = format!("http://{}", listener.local_addr().unwrap());
        tokio::spawn(async move {
            while let Ok((mut stream, _)) = listener.accept().await {
                let answer = b"HTTP/1.1 401 Unauthorized\r\ncontent-length: 0\r\nconnection: close\r\n\r\n";
                let _ = tokio::io::AsyncReadExt::read(&mut stream, &mut [0; 4096]).await;
                let _ = tokio::io::AsyncWriteExt::write_all(&mut stream, answer).await;
            }
        });
        let path = std::env::temp_dir().join(format!("reveille-kube-{}-hangs", std::process::id()));
        let user = "{exec: {apiVersion: client.authentication.k8s.io/v1, command: sleep, args: ['600']}}";
        let kubeconfig = format!(
            "apiVersion: v1\nkind: Config\ncurrent-context: c\nclusters: [{{name: c, cluster: {{server: '{url}'}}}}]\n\
             contexts: [{{name: c, context: {{cluster: c, user: u}}}}]\nusers: [{{name: u, user: {user}}}]\n"
        );
        std::fs::write(&path, kubeconfig).unwrap();
        let config = ClusterConfig { kubeconfig: Some(path.clone()), context: None };
        let client = Client::try_from(kube::Config::new(url.parse().unwrap())).unwrap();
        let session = Session::new(client, Arc::from("api"), Some(config));
        for round in 0..2 {
            let (ask, within) = (crate::paths::node(&"a".into()).unwrap(), Duration::from_millis(100));
            let failure = session.open(Question { ask, within, about: None }).await.unwrap_err();
            assert_eq!(failure.kind, ReadErrorKind::Unauthorized, "{}", failure.cause);
            let under_way = session.logins.last.try_lock().is_err();
            assert!(under_way || round > 0, "it has 400 ms, and no caller waited for its end");
        }
        std::fs::remove_file(path).unwrap();
    }
}
