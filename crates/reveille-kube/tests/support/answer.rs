//! The words of the API server in this process: what it is asked, and its answers, refusals and streams as bytes.

use std::convert::Infallible;
use std::time::Duration;

use bytes::Bytes;
use futures::stream::{self, BoxStream};
use futures::{Stream, StreamExt};
use http::Response;
use http_body::Frame;
use http_body_util::{BodyExt, Full, StreamBody};
use serde_json::{Value, json};
use tokio::time::sleep;

/// An answer on its way.
pub(crate) type Answer = Response<http_body_util::combinators::UnsyncBoxBody<Bytes, Infallible>>;

/// A refusal.
#[derive(Clone, Debug)]
pub(crate) enum Refuse {
    /// This code with a Status of this reason, and `Retry-After` in seconds.
    Status(u16, &'static str, Option<u64>),
    /// This code with a body that is no Status.
    Page(u16, &'static str),
    /// No answer.
    Hang,
    /// The headers, and then nothing.
    Stall,
}

/// What a request asks for.
#[derive(Default)]
pub(crate) struct Query {
    pub(crate) watch: bool,
    pub(crate) limit: Option<usize>,
    pub(crate) next: Option<String>,
    pub(crate) version: u64,
    pub(crate) timeout_s: u64,
    pub(crate) about: Option<String>,
}

impl Query {
    pub(crate) fn of(target: &str) -> Self {
        let mut query = Self { timeout_s: 300, ..Self::default() };
        for pair in target.split_once('?').map(|(_, query)| query.split('&')).into_iter().flatten() {
            let (key, value) = pair.split_once('=').unwrap_or((pair, ""));
            let value = value.replace("%40", "@").replace("%3D", "=").replace("%2C", ",");
            match key {
                "watch" => query.watch = value == "true",
                "limit" => query.limit = value.parse().ok(),
                "continue" => query.next = Some(value),
                "resourceVersion" => query.version = value.parse().unwrap_or(0),
                "timeoutSeconds" => query.timeout_s = value.parse().unwrap(),
                "fieldSelector" => {
                    query.about = value.split_once("involvedObject.name=").map(|(_, name)| name.to_owned());
                }
                _ => {}
            }
        }
        query
    }
}

impl Refuse {
    pub(crate) async fn answer(&self) -> Answer {
        match self {
            Self::Status(code, reason, retry) => status(*code, reason, "said the test", None, *retry),
            Self::Page(code, text) => {
                let body = Full::new(Bytes::from_static(text.as_bytes())).boxed_unsync();
                Response::builder().status(*code).body(body).unwrap()
            }
            Self::Hang => {
                sleep(Duration::from_secs(86_400)).await;
                status(500, "InternalError", "never", None, None)
            }
            Self::Stall => streamed(stream::pending().boxed()),
        }
    }
}

pub(crate) fn missing(name: &str) -> Answer {
    status(404, "NotFound", &format!("nodes \"{name}\" not found"), Some(name), None)
}

pub(crate) fn status(
    code: u16,
    reason: &str,
    message: &str,
    about: Option<&str>,
    retry_s: Option<u64>,
) -> Answer {
    let details = about.map_or_else(|| json!({}), |name| json!({"name": name, "kind": "nodes"}));
    let body = json!({"kind": "Status", "status": "Failure", "code": code, "reason": reason, "message": message, "details": details});
    let mut answer = full(code, &body);
    if let Some(seconds) = retry_s {
        answer.headers_mut().insert("retry-after", seconds.to_string().parse().unwrap());
    }
    answer
}

pub(crate) fn full(code: u16, body: &Value) -> Answer {
    let body = Full::new(Bytes::from(serde_json::to_vec(body).unwrap())).boxed_unsync();
    Response::builder().status(code).body(body).unwrap()
}

/// A body longer than any client reads. Its memory is never touched unless a client reads the bytes.
pub(crate) fn endless() -> Answer {
    streamed(stream::iter([Bytes::from(vec![0; 257 << 20])]).boxed())
}

pub(crate) fn streamed(lines: BoxStream<'static, Bytes>) -> Answer {
    Response::new(BodyExt::boxed_unsync(StreamBody::new(lines.map(|line| Ok(Frame::data(line))))))
}

/// A line in the pieces in which HTTP/2 carries it.
pub(crate) fn frames(mut line: Bytes) -> impl Stream<Item = Bytes> {
    let next = move || {
        let length = line.len().min(16 << 10);
        (length > 0).then(|| line.split_to(length))
    };
    stream::iter(std::iter::from_fn(next))
}

/// A watch line as kube-apiserver writes it: the type first.
pub(crate) fn line(event: &Value) -> Bytes {
    let object = serde_json::to_string(&event["object"]).unwrap();
    Bytes::from(format!("{{\"type\":{},\"object\":{object}}}\n", event["type"]))
}
