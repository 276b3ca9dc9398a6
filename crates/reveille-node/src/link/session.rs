//! A session, over the carrier that works.
//!
//! ```text
//!  hello ─▶ WebSocket ─┬▶ welcome ─▶ Session
//!                      └▶ the upgrade is blocked ─▶ long poll ─▶ welcome ─▶ Session
//!  say ─▶ queue (bounded) ─▶ carrier's task ─▶ server        next ◀─ queue (bounded) ◀─ carrier's task ◀─ server
//! ```
//!
//! A refusal of the server counts for either carrier, and the agent does not try the other one. Any other failure of the
//! upgrade, or of a socket's first frame, counts as a proxy that blocks WebSockets.

use reveille_wire::agent::frame::{Hello, Welcome};
use reveille_wire::agent::{AgentFrame, Plan, Reason, ServerFrame};
use tokio::sync::mpsc;
use tokio::task::AbortHandle;

use super::wires::Wires;
use super::{Credential, Link, LinkError, poll, socket};
use crate::pin::Pin;

/// How frames travel.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Carrier {
    /// A WebSocket.
    WebSocket,
    /// Requests that the server holds back.
    LongPoll,
}

/// An open session.
#[derive(Debug)]
pub struct Session {
    /// The server's first frame.
    pub welcome: Welcome,
    /// How its frames travel.
    pub carrier: Carrier,
    /// The pin by which the server that sent the welcome was known.
    pub known_by: Pin,
    out: mpsc::Sender<AgentFrame>,
    into: mpsc::Receiver<Result<ServerFrame, LinkError>>,
    task: AbortHandle,
    link: Link,
}

impl Drop for Session {
    fn drop(&mut self) {
        self.task.abort();
    }
}

impl Link {
    /// Opens a session: over a WebSocket, or by long poll where an upgrade does not work.
    ///
    /// # Errors
    ///
    /// The server does not answer, or refuses.
    pub async fn session(&self, credential: &Credential, hello: Hello) -> Result<Session, LinkError> {
        match self.session_over(Carrier::WebSocket, credential, hello.clone()).await {
            Err(error) if is_in_between(&error) => {
                tracing::info!("no WebSocket gets to {}: {error}; frames go by long poll", self.server);
                self.session_over(Carrier::LongPoll, credential, hello).await
            }
            other => other,
        }
    }

    /// Opens a session over one carrier.
    ///
    /// # Errors
    ///
    /// The server does not answer, or refuses.
    pub async fn session_over(
        &self,
        carrier: Carrier,
        credential: &Credential,
        hello: Hello,
    ) -> Result<Session, LinkError> {
        let mut wires = match carrier {
            Carrier::WebSocket => socket::open(self, credential, hello).await?,
            Carrier::LongPoll => poll::open(self, credential, hello)?,
        };
        let first = tokio::time::timeout(super::ANSWER_WITHIN, wires.into.recv()).await;
        let frame = first.map_err(|_| self.late("the welcome", super::ANSWER_WITHIN))?;
        match frame {
            Some(Ok(ServerFrame::Welcome(welcome))) => {
                let Wires { out, into, task, known_by } = wires;
                let known_by = known_by.get().copied().ok_or_else(|| self.broken("it is not known"))?;
                Ok(Session { welcome, carrier, known_by, out, into, task, link: self.clone() })
            }
            Some(Ok(ServerFrame::Refuse(refused))) => Err(LinkError::Refused(Box::new(refused))),
            Some(Err(error)) => Err(error),
            Some(Ok(_)) | None => Err(self.broken("it ended before the welcome")),
        }
    }
}

impl Session {
    /// Sends a frame; waits while too many frames wait to be sent.
    ///
    /// # Errors
    ///
    /// The session has ended; [`Session::next`] says why.
    pub async fn say(&self, frame: AgentFrame) -> Result<(), LinkError> {
        self.out.send(frame).await.map_err(|_| self.link.broken("the session is over"))
    }

    /// Waits for room for a frame to send: none when there is room, or else the next frame, which came meanwhile. The owner of
    /// a session that sends without taking frames would wait for ever: its carrier sends nothing while too many wait.
    ///
    /// # Errors
    ///
    /// As [`Session::next`].
    pub async fn next_unless_room(&mut self) -> Result<Option<ServerFrame>, LinkError> {
        let heard = tokio::select! {
            biased;
            room = self.out.reserve() => match room {
                Ok(_) => return Ok(None),
                // The carrier has ended; its last word is why.
                Err(_) => self.into.recv().await,
            },
            heard = self.into.recv() => heard,
        };
        self.judge(heard).map(Some)
    }

    /// The next frame.
    ///
    /// # Errors
    ///
    /// The reason why the session has ended. A refusal is an error, too: the session ends with it.
    pub async fn next(&mut self) -> Result<ServerFrame, LinkError> {
        let heard = self.into.recv().await;
        self.judge(heard)
    }

    fn judge(&self, heard: Option<Result<ServerFrame, LinkError>>) -> Result<ServerFrame, LinkError> {
        match heard {
            Some(Ok(ServerFrame::Refuse(refused))) => Err(LinkError::Refused(Box::new(refused))),
            Some(Ok(ServerFrame::Plan(plan))) if !is_whole(&plan) => {
                Err(self.link.broken("a plan came whose checksum is another one"))
            }
            Some(other) => other,
            None => Err(self.link.broken("the session is over")),
        }
    }
}

/// True when the plan matches its checksum.
pub(crate) fn is_whole(plan: &Plan) -> bool {
    let digest = aws_lc_rs::digest::digest(&aws_lc_rs::digest::SHA256, &plan.canonical());
    let hex: String = digest.as_ref().iter().map(|byte| format!("{byte:02x}")).collect();
    plan.checksum.strip_prefix("sha256:") == Some(hex.as_str())
}

/// True for an error that says nothing about the server's own decision.
fn is_in_between(error: &LinkError) -> bool {
    match error {
        LinkError::Refused(refused) => matches!(
            refused.reason,
            Reason::UpgradeRequired | Reason::ProxyAnswered(_) | Reason::NotReveille(_) | Reason::NoSuchPath
        ),
        LinkError::Broken { .. } | LinkError::Late { .. } => true,
        _ => false,
    }
}
