//! Sends finished joins to a collector, and never makes the controller wait for it.
//!
//! ```text
//!  offer ─▶ queue of 256, or dropped ─▶ at most 16 in one request, within 10 s ─┬▶ taken: sent
//!                                          ▲ 1 s, 2 s, 4 s, or as it asks        ├▶ 429, 502, 503, 504, no answer: again
//!                                          └────────── four times in all ────────┴▶ anything else, or the last: dropped
//! ```
//!
//! OTLP lists the answers after which a request may be repeated. A request that may have arrived is also repeated,
//! because the ids are the same.

use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::Duration;

use reqwest::header::{CONTENT_TYPE, RETRY_AFTER};
use reqwest::{Client, StatusCode};
use reveille_registrar::registry::{JoinOver, Who};
use tokio::sync::{mpsc, watch};
use tokio::time::sleep;

use super::config::Config;
use super::{json, spans};
use crate::driver::told;

/// The most joins that wait.
const QUEUE_MAX: usize = 256;
/// The most joins in one request.
const BATCH_MAX: usize = 16;
/// The limit for a request, from its connection to its answer.
const REQUEST_WITHIN: Duration = Duration::from_secs(10);
/// The most requests for one batch.
const TRIES: u32 = 4;
/// The first pause, which doubles each time.
const PAUSE: Duration = Duration::from_secs(1);
/// The longest pause that the exporter accepts from a collector.
const PAUSE_MOST: Duration = Duration::from_secs(30);

/// How many joins were sent and dropped so far.
#[derive(Debug, Default)]
pub(crate) struct Counts {
    sent: AtomicU64,
    dropped: AtomicU64,
}

impl Counts {
    /// Joins that the collector accepted.
    pub(crate) fn sent(&self) -> u64 {
        self.sent.load(Ordering::Relaxed)
    }

    /// Joins that were not sent and are not tried again.
    pub(crate) fn dropped(&self) -> u64 {
        self.dropped.load(Ordering::Relaxed)
    }
}

/// Takes joins.
#[derive(Clone, Debug)]
pub(crate) struct Exporter {
    queue: mpsc::Sender<(Arc<Who>, Box<JoinOver>)>,
    counts: Arc<Counts>,
}

/// Sends the joins.
#[derive(Debug)]
pub(crate) struct Sender {
    queue: mpsc::Receiver<(Arc<Who>, Box<JoinOver>)>,
    counts: Arc<Counts>,
    config: Config,
    http: Client,
    pause: Duration,
}

impl Exporter {
    /// A handle that offers joins, and a sender to run.
    ///
    /// # Errors
    ///
    /// TLS cannot be set up.
    pub(crate) fn new(config: Config) -> Result<(Self, Sender), reqwest::Error> {
        let http = Client::builder()
            .user_agent(concat!("reveille/", env!("CARGO_PKG_VERSION")))
            .timeout(REQUEST_WITHIN)
            // Credentials go only to the URL of the configuration, so redirects are not followed.
            .redirect(reqwest::redirect::Policy::none())
            .build()?;
        let (sender, queue) = mpsc::channel(QUEUE_MAX);
        let counts = Arc::new(Counts::default());
        let exporter = Self { queue: sender, counts: counts.clone() };
        Ok((exporter, Sender { queue, counts, config, http, pause: PAUSE }))
    }

    /// Passes a join on, without waiting.
    pub(crate) fn offer(&self, who: &Arc<Who>, over: &JoinOver) {
        if self.queue.try_send((who.clone(), Box::new(over.clone()))).is_err() {
            self.counts.dropped.fetch_add(1, Ordering::Relaxed);
        }
    }

    /// The counts of joins.
    #[cfg(test)]
    pub(crate) fn counts(&self) -> &Counts {
        &self.counts
    }
}

impl Sender {
    /// Sends until it is told to stop, or every handle is gone. It does not wait for joins that are queued then.
    pub(crate) async fn run(mut self, mut stop: watch::Receiver<bool>) {
        tracing::info!(collector = %self.config.endpoint, "joins are sent as traces");
        let mut batch = Vec::new();
        loop {
            batch.clear();
            let got = tokio::select! {
                got = self.queue.recv_many(&mut batch, BATCH_MAX) => got,
                _ = stop.wait_for(|stop| *stop) => 0,
            };
            if got == 0 {
                break;
            }
            let spans: Vec<_> = batch.iter().flat_map(|(who, over)| spans::of(who, over)).collect();
            let body = json::request(&spans, env!("CARGO_PKG_VERSION")).to_string();
            let taken = tokio::select! {
                taken = self.send(&body) => taken,
                () = told(&mut stop) => Err("this process stops".to_owned()),
            };
            let joins = batch.len() as u64;
            match taken {
                Ok(()) => {
                    let sent = self.counts.sent.fetch_add(joins, Ordering::Relaxed) + joins;
                    tracing::debug!(
                        sent,
                        dropped = self.counts.dropped(),
                        "the collector took {joins} joins"
                    );
                }
                Err(why) => {
                    let dropped = self.counts.dropped.fetch_add(joins, Ordering::Relaxed) + joins;
                    tracing::warn!(
                        sent = self.counts.sent(),
                        dropped,
                        "{joins} joins are not sent as traces: {why}"
                    );
                }
            }
        }
        let (sent, dropped) = (self.counts.sent(), self.counts.dropped() + self.queue.len() as u64);
        tracing::info!(sent, dropped, "no more joins are sent as traces");
    }

    async fn send(&self, body: &str) -> Result<(), String> {
        let mut pause = self.pause;
        for tried in 1.. {
            let (why, asked) = match self.post(body).await {
                Ok(()) => return Ok(()),
                Err(Refused { why, again: Some(asked) }) => (why, asked),
                Err(Refused { why, again: None }) => return Err(why),
            };
            if tried == TRIES {
                return Err(format!("{why}, {TRIES} times"));
            }
            sleep(pause.max(asked).min(PAUSE_MOST)).await;
            pause *= 2;
        }
        Ok(())
    }

    async fn post(&self, body: &str) -> Result<(), Refused> {
        let request = self.http.post(self.config.endpoint.clone()).headers(self.config.headers.clone());
        let request = request.header(CONTENT_TYPE, "application/json").body(body.to_owned());
        let answer = request.send().await.map_err(|error| Refused {
            // The text names the address and the system's error, and no header.
            why: format!("the collector does not answer: {}", innermost(&error)),
            again: Some(Duration::ZERO),
        })?;
        let status = answer.status();
        if status.is_success() {
            return Ok(());
        }
        let asked = answer.headers().get(RETRY_AFTER).and_then(|value| value.to_str().ok()?.parse().ok());
        let again = matches!(
            status,
            StatusCode::TOO_MANY_REQUESTS
                | StatusCode::BAD_GATEWAY
                | StatusCode::SERVICE_UNAVAILABLE
                | StatusCode::GATEWAY_TIMEOUT
        );
        let again = again.then(|| asked.map_or(Duration::ZERO, Duration::from_secs));
        Err(Refused { why: format!("the collector answers {status}"), again })
    }
}

/// The collector did not accept the batch; it is tried again after at least this long, or not at all.
struct Refused {
    why: String,
    again: Option<Duration>,
}

fn innermost(error: &dyn std::error::Error) -> String {
    error.source().map_or_else(|| error.to_string(), innermost)
}

#[cfg(test)]
mod tests {
    use std::net::SocketAddr;
    use std::sync::Mutex;

    use reqwest::Url;
    use reqwest::header::HeaderMap;
    use tokio::io::{AsyncReadExt as _, AsyncWriteExt as _};
    use tokio::net::{TcpListener, TcpSocket};

    use super::super::sample::a_join;
    use super::*;

    /// A collector that answers each request with the next of these, and keeps the bodies.
    async fn collector(answers: &'static [&'static str]) -> (Config, Arc<Mutex<Vec<String>>>) {
        let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
        let base = format!("http://{}/v1/traces", listener.local_addr().unwrap());
        let got = Arc::new(Mutex::new(Vec::new()));
        let kept = got.clone();
        tokio::spawn(async move {
            for answer in answers {
                let (mut stream, _) = listener.accept().await.unwrap();
                let mut bytes = Vec::new();
                let mut buffer = [0; 4096];
                // The body is one JSON object, and its end is the end of the request.
                while !bytes.ends_with(b"}]}]}]}") {
                    let read = stream.read(&mut buffer).await.unwrap();
                    bytes.extend_from_slice(&buffer[..read]);
                }
                kept.lock().unwrap().push(String::from_utf8(bytes).unwrap());
                let answer = format!("HTTP/1.1 {answer}\r\nconnection: close\r\ncontent-length: 0\r\n\r\n");
                stream.write_all(answer.as_bytes()).await.unwrap();
            }
        });
        (Config { endpoint: Url::parse(&base).unwrap(), headers: HeaderMap::new() }, got)
    }

    async fn sent(answers: &'static [&'static str], joins: usize) -> ((u64, u64), Vec<String>) {
        let (config, got) = collector(answers).await;
        let (exporter, mut sender) = Exporter::new(config).unwrap();
        sender.pause = Duration::from_millis(1);
        let (who, over) = a_join();
        for _ in 0..joins {
            exporter.offer(&who, &over);
        }
        let counts = exporter.counts.clone();
        drop(exporter);
        let (_stop, stopped) = watch::channel(false);
        sender.run(stopped).await;
        let got = got.lock().unwrap().clone();
        ((counts.sent(), counts.dropped()), got)
    }

    #[tokio::test]
    async fn a_join_is_sent_once_and_tried_again_only_where_that_may_help() {
        let (counts, got) = sent(&["503 Busy", "200 OK"], 1).await;
        assert_eq!((counts, got.len()), ((1, 0), 2));
        assert!(got[0] == got[1], "the same trace");
        assert!(got[0].starts_with("POST /v1/traces HTTP/1.1\r\n") && got[0].contains("application/json"));
        assert!(!got[0].contains("c4n4ry"), "a token that stood in an error is in no trace");
        assert_eq!(sent(&["400 Bad", "200 OK"], 1).await.0, (0, 1), "the same would be refused again");
        let (counts, got) = sent(&["503 No"; 5], 1).await;
        assert_eq!((counts, got.len()), ((0, 1), 4), "it has an end");
    }

    #[tokio::test]
    async fn absent_collector_fills_a_bounded_queue_and_blocks_no_caller() {
        // The port is bound, so that no other test gets it, and the socket never listens.
        let silent = TcpSocket::new_v4().unwrap();
        silent.bind(SocketAddr::from(([127, 0, 0, 1], 0))).unwrap();
        let endpoint = Url::parse(&format!("http://{}/", silent.local_addr().unwrap())).unwrap();
        let (exporter, mut sender) = Exporter::new(Config { endpoint, headers: HeaderMap::new() }).unwrap();
        sender.pause = Duration::from_millis(1);
        let (who, over) = a_join();
        for _ in 0..300 {
            exporter.offer(&who, &over);
        }
        assert_eq!(exporter.counts().dropped(), 44, "256 wait");
        let counts = exporter.counts.clone();
        drop(exporter);
        let (_stop, stopped) = watch::channel(false);
        sender.run(stopped).await;
        assert_eq!((counts.sent(), counts.dropped()), (0, 300));
    }
}
