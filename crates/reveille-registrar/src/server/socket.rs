//! A session over a WebSocket: one frame in each text message, numbered in each direction.
//!
//! ```text
//!  GET with Upgrade ─▶ 101 ─▶ hello within 10 s ─▶ Hand::open ─▶ welcome ─▶ a session's place ─┬▶ messages ─▶ Event::Said
//!                                                                                               └▶ Outgoing ─▶ messages
//! ```
//!
//! Every frame of the WebSocket is counted before the library sees it, also those that never become a message
//! ([`super::meter`]). The connection ends if a frame is too long, is invalid, or cannot be sent within its deadline. If
//! possible, the server sends a refusal as the last frame, and a close code of 4000 plus the refusal's status.

use std::time::Duration;

use base64::Engine as _;
use futures::{SinkExt as _, StreamExt as _};
use http_body_util::Full;
use hyper::body::{Bytes, Incoming};
use hyper::header::{
    CONNECTION, HeaderValue, SEC_WEBSOCKET_ACCEPT, SEC_WEBSOCKET_KEY, SEC_WEBSOCKET_VERSION, UPGRADE,
};
use hyper::upgrade::Upgraded;
use hyper::{Request, Response, StatusCode};
use hyper_util::rt::TokioIo;
use reveille_wire::agent::{AGENT_FRAME_BYTES_MAX, AgentFrame, Numbered, Reason, Refused, ServerFrame, read};
use tokio::sync::mpsc;
use tokio::time::timeout;
use tokio_tungstenite::WebSocketStream;
use tokio_tungstenite::tungstenite::error::CapacityError;
use tokio_tungstenite::tungstenite::protocol::frame::coding::CloseCode;
use tokio_tungstenite::tungstenite::protocol::{CloseFrame, Role, WebSocketConfig};
use tokio_tungstenite::tungstenite::{Error, Message};

use super::gate::Place;
use super::keeper::Hand;
use super::meter::{Metered, TooManyFrames};
use super::senders::Outgoing;
use crate::registry::{Conn, Event, Peer};

/// RFC 6455 §1.3.
const MAGIC: &str = "258EAFA5-E914-47DA-95CA-C5AB0DC85B11";

/// This side of the connection.
struct Side {
    socket: WebSocketStream<Metered<TokioIo<Upgraded>>>,
    /// The number of the last sent frame.
    sent: u64,
    /// The time limit for sending a frame.
    step_within: Duration,
}

/// The answer to an upgrade to a WebSocket; none when the request is not one.
pub(super) fn accept(request: &Request<Incoming>) -> Option<String> {
    let headers = request.headers();
    let says = |name, word: &str| {
        let value = headers.get(name).and_then(|value| value.to_str().ok()).unwrap_or_default();
        value.split(',').any(|part| part.trim().eq_ignore_ascii_case(word))
    };
    let asked =
        says(CONNECTION, "upgrade") && says(UPGRADE, "websocket") && says(SEC_WEBSOCKET_VERSION, "13");
    let key = headers.get(SEC_WEBSOCKET_KEY).filter(|_| asked)?.to_str().ok()?;
    let text = format!("{key}{MAGIC}");
    // The WebSocket standard uses this checksum against caches that do not know WebSockets; it keeps nothing secret and
    // proves nothing.
    let digest = aws_lc_rs::digest::digest(&aws_lc_rs::digest::SHA1_FOR_LEGACY_USE_ONLY, text.as_bytes());
    Some(base64::engine::general_purpose::STANDARD.encode(digest.as_ref()))
}

/// The answer that switches the protocol.
pub(super) fn switching(accept: &str) -> Response<Full<Bytes>> {
    let mut answer = Response::new(Full::new(Bytes::new()));
    *answer.status_mut() = StatusCode::SWITCHING_PROTOCOLS;
    let headers = answer.headers_mut();
    headers.insert(CONNECTION, HeaderValue::from_static("upgrade"));
    headers.insert(UPGRADE, HeaderValue::from_static("websocket"));
    if let Ok(accept) = HeaderValue::from_str(accept) {
        headers.insert(SEC_WEBSOCKET_ACCEPT, accept);
    }
    answer
}

/// Runs the session until one side ends it. Before its welcome it can lose its place, like any other connection of its
/// machine. Otherwise a client with a copy of the key, but without the ids that a welcome needs, could lock the machine
/// out with four silent sockets.
pub(super) async fn run(hand: Hand, peer: Peer, upgraded: Upgraded, place: &Place, step_within: Duration) {
    let mut begun = None;
    tokio::select! {
        () = serve(&hand, peer, upgraded, place, step_within, &mut begun) => {}
        () = place.pushed() => {}
    }
    if let Some(conn) = begun {
        // A thread that has ended has no sessions.
        drop(hand.say(Event::Gone(conn)).await);
    }
}

async fn serve(
    hand: &Hand,
    peer: Peer,
    upgraded: Upgraded,
    place: &Place,
    step_within: Duration,
    begun: &mut Option<Conn>,
) {
    let config = WebSocketConfig::default()
        .max_message_size(Some(AGENT_FRAME_BYTES_MAX))
        .max_frame_size(Some(AGENT_FRAME_BYTES_MAX))
        // With the usual 128 KiB each, five thousand sessions would take most of the server's memory.
        .read_buffer_size(4096)
        .write_buffer_size(0)
        .max_write_buffer_size(2 << 20);
    let metered = Metered::new(TokioIo::new(upgraded));
    let socket = WebSocketStream::from_raw_socket(metered, Role::Server, Some(config)).await;
    let mut socket = Side { socket, sent: 0, step_within };
    let bad = |what: &str| Reason::BadFrame { place: "hello".into(), what: what.into() };
    let first = match timeout(step_within, socket.next()).await {
        Ok(Ok(Some(Numbered { frame: AgentFrame::Hello(hello), .. }))) => hello,
        Ok(Ok(None)) => return,
        Ok(Err(reason)) => return socket.close(reason.into()).await,
        Ok(Ok(Some(_))) => return socket.close(bad("a session begins with a hello").into()).await,
        Err(_) => return socket.close(bad("it did not come in time").into()).await,
    };
    let machine = peer.machine.clone();
    let opened = hand.open(|conn| Event::Arrived { conn, peer, hello: first }).await;
    let Ok((conn, mut outgoing)) = opened else { return socket.close(Reason::Unavailable.into()).await };
    *begun = Some(conn);
    // The registry answers a hello with a welcome or a refusal, or its thread has ended.
    let refused = match outgoing.recv().await {
        Some(Outgoing::Frame(welcome)) if place.is_session_now(machine) => match socket.send(welcome).await {
            Some(()) => exchange(hand, conn, &mut socket, outgoing).await,
            None => None,
        },
        // The machine has its share of sessions, or all places of machines are taken: among the anonymous ones the
        // session could be closed.
        Some(Outgoing::Frame(_)) => Some(Reason::TooMany { of: "sessions".into() }.into()),
        Some(Outgoing::Close(refused)) => Some(refused),
        None => Some(hand.why_closed().into()),
    };
    if let Some(refused) = refused {
        socket.close(refused).await;
    }
}

/// Exchanges frames in both directions; returns the last frame to send, or nothing when the client has gone.
async fn exchange(
    hand: &Hand,
    conn: Conn,
    socket: &mut Side,
    mut outgoing: mpsc::Receiver<Outgoing>,
) -> Option<Refused> {
    loop {
        tokio::select! {
            out = outgoing.recv() => match out {
                Some(Outgoing::Frame(frame)) => socket.send(frame).await?,
                Some(Outgoing::Close(refused)) => return Some(refused),
                None => return Some(hand.why_closed().into()),
            },
            said = socket.next() => match said {
                Ok(Some(Numbered { n, frame })) => {
                    if hand.say(Event::Said { conn, n, frame }).await.is_err() {
                        return Some(Reason::Unavailable.into());
                    }
                }
                Ok(None) => return None,
                Err(reason) => return Some(reason.into()),
            }
        }
    }
}

impl Side {
    /// The next frame; none when the connection has ended.
    async fn next(&mut self) -> Result<Option<Numbered<AgentFrame>>, Reason> {
        loop {
            let message = match self.socket.next().await {
                Some(Ok(message)) => message,
                Some(Err(Error::Capacity(CapacityError::MessageTooLong { .. }))) => {
                    let what = format!("longer than {AGENT_FRAME_BYTES_MAX} bytes");
                    return Err(Reason::BadFrame { place: "length".into(), what: what.as_str().into() });
                }
                Some(Err(Error::Io(error))) if TooManyFrames::is_why(&error) => {
                    return Err(Reason::TooMany { of: "frames".into() });
                }
                Some(Err(_)) | None => return Ok(None),
            };
            let bytes = match &message {
                Message::Text(text) => text.as_bytes(),
                Message::Binary(bytes) => bytes,
                Message::Close(_) => return Ok(None),
                // The library answers pings.
                Message::Ping(_) | Message::Pong(_) | Message::Frame(_) => continue,
            };
            let bad = |wrong: reveille_wire::agent::BadFrame| Reason::BadFrame {
                place: wrong.place,
                what: wrong.what,
            };
            return read(bytes, AGENT_FRAME_BYTES_MAX).map(Some).map_err(bad);
        }
    }

    /// Sends a frame with its number; none when it could not be sent.
    async fn send(&mut self, frame: ServerFrame) -> Option<()> {
        self.sent += 1;
        let text = serde_json::to_string(&Numbered { n: self.sent, frame }).ok()?;
        timeout(self.step_within, self.socket.send(Message::text(text))).await.ok()?.ok()
    }

    async fn close(&mut self, refused: Refused) {
        let code = CloseCode::from(4000 + refused.reason.status());
        let reason = refused.reason.code().into();
        if self.send(ServerFrame::Refuse(refused)).await.is_some() {
            // A client that has already gone gets no close frame.
            drop(timeout(self.step_within, self.socket.close(Some(CloseFrame { code, reason }))).await);
        }
    }
}
