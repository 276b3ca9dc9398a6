//! A session's frames over requests that the server holds back.
//!
//! One poll is always under way. When the agent has frames to send, a second poll carries them and ends the wait of the
//! first. A poll with a lost answer is repeated: the server sends the same frames again, and ignores frames that it has
//! already taken by their numbers.

use std::sync::{Arc, OnceLock};
use std::time::Duration;

use reveille_wire::agent::frame::Hello;
use reveille_wire::agent::poll::{Poll, Polled};
use reveille_wire::agent::text::List;
use reveille_wire::agent::{
    AGENT_FRAME_BYTES_MAX, AgentFrame, Numbered, POLL_FRAMES_MAX, POLL_HOLD_S, ServerFrame, path,
};
use tokio::sync::mpsc;

use super::wires::{FRAMES_MAX, OUT_MAX, Wires};
use super::{ANSWER_WITHIN, Credential, Link, LinkError, dial};
use crate::pin::Pin;

/// How often a failed poll is repeated, a second apart at first, before the session is given up.
const REPEATED: u32 = 3;
/// The frames of one body. The JSON around them has some hundred bytes.
const BODY_BYTES_MAX: usize = AGENT_FRAME_BYTES_MAX - 1024;

pub(super) fn open(link: &Link, credential: &Credential, hello: Hello) -> Result<Wires, LinkError> {
    let (out, queue) = mpsc::channel(OUT_MAX);
    let (into, taken) = mpsc::channel(FRAMES_MAX);
    let credential =
        Credential::read(credential.pem()).ok_or_else(|| LinkError::Key("it cannot be read".to_owned()))?;
    let known_by = Arc::default();
    let mut line = Line {
        link: link.clone(),
        credential,
        known_by: Arc::clone(&known_by),
        session: None,
        sent: 0,
        got: 0,
        waiting: Vec::new(),
    };
    let task = tokio::spawn(async move {
        let over = line.exchange(hello, queue, &into).await;
        // The owner of the session has dropped it, so no task reads how it ended.
        drop(into.send(Err(over)).await);
    });
    Ok(Wires { out, into: taken, task: task.abort_handle(), known_by })
}

/// The event that came first.
enum Next {
    Polled(Result<Polled, LinkError>),
    Frame(AgentFrame),
}

struct Line {
    link: Link,
    credential: Credential,
    known_by: Arc<OnceLock<Pin>>,
    session: Option<u64>,
    sent: u64,
    /// The highest number of a server frame that was handed over.
    got: u64,
    /// Unacknowledged frames, with their lengths.
    waiting: Vec<(usize, Numbered<AgentFrame>)>,
}

impl Line {
    async fn exchange(
        &mut self,
        hello: Hello,
        mut queue: mpsc::Receiver<AgentFrame>,
        into: &mpsc::Sender<Result<ServerFrame, LinkError>>,
    ) -> LinkError {
        self.push(AgentFrame::Hello(hello));
        let mut failures = 0;
        loop {
            let next = {
                let poll = ask(&self.link, &self.credential, self.poll(), &self.known_by);
                tokio::pin!(poll);
                tokio::select! {
                    polled = &mut poll => Next::Polled(polled),
                    // The poll under way is dropped: the server sends its answer to the next one.
                    frame = queue.recv(), if self.session.is_some() && self.waiting.len() < POLL_FRAMES_MAX => match frame {
                        Some(frame) => Next::Frame(frame),
                        None => return self.link.broken("its sender is gone"),
                    },
                }
            };
            let polled = match next {
                Next::Frame(frame) => {
                    self.push(frame);
                    continue;
                }
                Next::Polled(polled) => polled,
            };
            match polled {
                Ok(polled) => {
                    failures = 0;
                    if !self.take(polled, into).await {
                        return self.link.broken("its receiver is gone");
                    }
                }
                Err(error @ LinkError::Refused(_)) => return error,
                Err(error) if self.session.is_none() || failures >= REPEATED => return error,
                Err(_) => {
                    tokio::time::sleep(Duration::from_secs(1 << failures)).await;
                    failures += 1;
                }
            }
        }
    }

    fn push(&mut self, frame: AgentFrame) {
        self.sent += 1;
        let frame = Numbered { n: self.sent, frame };
        let bytes = serde_json::to_vec(&frame).map_or(0, |text| text.len());
        self.waiting.push((bytes, frame));
    }

    /// As many frames as one body may hold; the others go with the next poll, at once.
    fn fitting(&self) -> impl Iterator<Item = Numbered<AgentFrame>> {
        let mut left = BODY_BYTES_MAX;
        let fits = move |(bytes, _): &&(usize, Numbered<AgentFrame>)| {
            let fits = *bytes < left;
            left = left.saturating_sub(bytes + 1);
            fits
        };
        self.waiting.iter().take_while(fits).map(|(_, frame)| frame.clone())
    }

    fn poll(&self) -> Poll {
        // A poll with frames goes at once and is answered at once.
        let hold_s = if self.waiting.is_empty() { POLL_HOLD_S } else { 0 };
        Poll { session: self.session, ack: self.got, frames: List::first(self.fitting()), hold_s }
    }

    async fn take(&mut self, polled: Polled, into: &mpsc::Sender<Result<ServerFrame, LinkError>>) -> bool {
        self.session = Some(polled.session);
        self.waiting.retain(|(_, frame)| frame.n > polled.ack);
        for Numbered { n, frame } in polled.frames.into_vec() {
            if n > self.got {
                self.got = n;
                if into.send(Ok(frame)).await.is_err() {
                    return false;
                }
            }
        }
        true
    }
}

async fn ask(
    link: &Link,
    credential: &Credential,
    poll: Poll,
    known_by: &OnceLock<Pin>,
) -> Result<Polled, LinkError> {
    let mut line = dial::dial(link, Some(credential)).await?;
    let within = ANSWER_WITHIN + Duration::from_secs(POLL_HOLD_S.into());
    let polled = line.post(path::POLL, None, &poll, within).await?;
    // The first answer brings the welcome. Of later ones nothing is set.
    known_by.set(line.known_by).ok();
    Ok(polled)
}
