//! One watch: a single request, from its first byte to its end, with a deadline for all of it.
//!
//! A watch asks the server to end it after so many seconds, and the server does (it sends a bookmark shortly before). So a watch
//! that neither ends nor breaks has lost its server. A watch that ended as asked was current up to its end: what was sent before
//! the end has arrived, because one connection keeps its order. Lines come out one by one, undecoded.
//!
//! The client that writes an object chooses how long its line is, and one object must not end the watch of all the others. So the
//! bound is above anything that etcd takes by default. A line that is longer all the same is read to its end without being kept,
//! and the start of its text comes out in its place (`beginning`). The listener then requests that object by itself. The watch
//! goes on, and still proves that what was sent before has arrived.

use std::time::Duration;

use http_body_util::BodyExt;
use kube::client::Body;
use reveille_core::effect::ReadErrorKind;
use serde_json::value::RawValue;
use tokio::time::{Instant, timeout_at};

use crate::beginning::Beginning;
use crate::failure::{Failure, Reached, cut};
use crate::session::{Question, Session};
use crate::wire::{Headed, Line, Refusal};

/// How much later than asked a watch may end.
pub(crate) const MARGIN: Duration = Duration::from_secs(5);

/// How long the server may take to begin a watch.
const OPEN_WITHIN: Duration = Duration::from_secs(10);

/// etcd takes no object above 1.5 MiB unless told to, and JSON writes a control character or a `<` in six bytes: 9 MiB,
/// and room.
const LINE_MAX_BYTES: usize = 16 << 20;

/// A watch request under way.
pub(crate) struct WatchRequest {
    body: Body,
    /// Bytes read and not yet handed out; those before `taken` have been.
    pending: Vec<u8>,
    taken: usize,
    within: Duration,
    ends_by: Instant,
    server: String,
}

/// One line of a watch.
pub(crate) enum Step<'a> {
    /// An object as it is now.
    Put(&'a RawValue),
    /// An object as it was before it went.
    Gone(&'a RawValue),
    /// An object whose line was too long to be kept: this is its beginning.
    Long(Beginning),
    /// Everything up to this version was sent.
    Mark(Option<String>),
}

impl WatchRequest {
    /// Sends the request; it was asked to end after `length`.
    pub(crate) async fn open(
        session: &Session,
        ask: Result<crate::paths::Ask, kube::core::request::Error>,
        length: Duration,
    ) -> Result<Self, Failure> {
        let within = length + MARGIN;
        let ends_by = Instant::now() + within;
        let ask = ask.map_err(|error| Failure::unsendable(&error))?;
        let response = session.open(Question { ask, within: OPEN_WITHIN, about: None }).await?;
        let body = response.into_body();
        Ok(Self { body, pending: Vec::new(), taken: 0, within, ends_by, server: session.server().to_owned() })
    }

    /// The next line; `None` when the server has ended the watch.
    pub(crate) async fn next(&mut self) -> Result<Option<Step<'_>>, Failure> {
        let mut scanned = self.taken;
        let end = loop {
            if let Some(at) = self.pending[scanned..].iter().position(|byte| *byte == b'\n') {
                break scanned + at;
            }
            self.pending.drain(..std::mem::take(&mut self.taken));
            scanned = self.pending.len();
            if scanned > LINE_MAX_BYTES {
                return self.skip().await.map(|beginning| Some(Step::Long(beginning)));
            }
            if !self.more().await? {
                if self.pending.is_empty() {
                    return Ok(None);
                }
                return Err(self.cut());
            }
        };
        let line = std::mem::replace(&mut self.taken, end + 1)..end;
        step(&self.pending[line]).map(Some)
    }

    /// Reads on to the end of a line that is too long, and keeps what comes after it.
    async fn skip(&mut self) -> Result<Beginning, Failure> {
        let most = LINE_MAX_BYTES >> 20;
        // A line that says nothing of an object is no object's line, and the watch cannot know what was lost with it.
        let beginning = Beginning::read(&self.pending).ok_or_else(|| {
            Failure::gap(format!("a line of the watch is longer than {most} MiB and is about no object"))
        })?;
        self.pending = Vec::new();
        loop {
            if !self.more().await? {
                return Err(self.cut());
            }
            if let Some(end) = self.pending.iter().position(|byte| *byte == b'\n') {
                self.taken = end + 1;
                return Ok(beginning);
            }
            self.pending.clear();
        }
    }

    /// Reads some more bytes; false at the end.
    async fn more(&mut self) -> Result<bool, Failure> {
        let silent = || {
            let cause = format!(
                "the watch is silent: neither its end nor a sign of life within {} s",
                self.within.as_secs()
            );
            Failure::new(ReadErrorKind::TimedOut, Reached::Unanswered, format!("{cause} ({})", self.server))
        };
        let frame = timeout_at(self.ends_by, self.body.frame()).await.map_err(|_| silent())?;
        let Some(frame) = frame else { return Ok(false) };
        let frame = frame.map_err(|error| Failure::of_transport(&error, &self.server))?;
        if let Ok(data) = frame.into_data() {
            self.pending.extend_from_slice(&data);
        }
        Ok(true)
    }

    fn cut(&self) -> Failure {
        let cause = format!("the watch ended in the middle of a line ({})", self.server);
        Failure::new(ReadErrorKind::Unavailable, Reached::Unanswered, cause)
    }
}

fn step(line: &[u8]) -> Result<Step<'_>, Failure> {
    // To go on from the same place would bring the same line again: only a new list leads past it.
    let line: Line<'_> = serde_json::from_slice(line)
        .map_err(|error| Failure::gap(Failure::unread("a line of the watch", &error).cause))?;
    match &*line.kind {
        "ADDED" | "MODIFIED" => Ok(Step::Put(line.object)),
        "DELETED" => Ok(Step::Gone(line.object)),
        "BOOKMARK" => {
            let mark: Headed = serde_json::from_str(line.object.get()).unwrap_or_default();
            Ok(Step::Mark(mark.metadata.resource_version))
        }
        "ERROR" => {
            let refusal = Refusal::read(line.object.get().as_bytes());
            let code = refusal.code.unwrap_or(500);
            let failure = refusal.into_failure(code, None, None);
            // A server that is busy or starting says so here, too; whatever else it cannot tell is lost.
            let waits =
                matches!(failure.kind, ReadErrorKind::Throttled | ReadErrorKind::TimedOut) || code == 503;
            Err(if waits { failure } else { Failure { kind: ReadErrorKind::Gap, ..failure } })
        }
        other => Err(Failure::gap(format!("the watch says {:?}, which is unknown", cut(other)))),
    }
}
