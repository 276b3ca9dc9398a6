//! A session's frames over a WebSocket.

use std::sync::{Arc, OnceLock};
use std::time::Duration;

use base64::Engine as _;
use base64::engine::general_purpose::STANDARD;
use futures::{SinkExt as _, StreamExt as _};
use hyper::header::{CONNECTION, SEC_WEBSOCKET_KEY, SEC_WEBSOCKET_VERSION, UPGRADE};
use hyper::upgrade::Upgraded;
use hyper_util::rt::TokioIo;
use reveille_wire::agent::frame::Hello;
use reveille_wire::agent::{AgentFrame, Numbered, SERVER_FRAME_BYTES_MAX, ServerFrame, path, read};
use tokio::sync::mpsc;
use tokio::time::timeout;
use tokio_tungstenite::WebSocketStream;
use tokio_tungstenite::tungstenite::Message;
use tokio_tungstenite::tungstenite::protocol::{Role, WebSocketConfig};

use super::wires::{FRAMES_MAX, OUT_MAX, Wires};
use super::{Credential, Link, LinkError, STEP_WITHIN, dial};

/// After this long without a frame, not even an answer to a ping, the server counts as gone.
const SILENT_AFTER: Duration = Duration::from_secs(60);
/// The agent sends a ping after this long without a frame.
const PING_AFTER: Duration = Duration::from_secs(20);

type Socket = WebSocketStream<TokioIo<Upgraded>>;

pub(super) async fn open(link: &Link, credential: &Credential, hello: Hello) -> Result<Wires, LinkError> {
    let mut line = dial::dial(link, Some(credential)).await?;
    let mut nonce = [0; 16];
    aws_lc_rs::rand::fill(&mut nonce)
        .map_err(|_| LinkError::Key("the system gives no random numbers".to_owned()))?;
    let headers = [
        (CONNECTION, "upgrade".to_owned()),
        (UPGRADE, "websocket".to_owned()),
        (SEC_WEBSOCKET_VERSION, "13".to_owned()),
        (SEC_WEBSOCKET_KEY, STANDARD.encode(nonce)),
    ];
    let known_by = Arc::new(OnceLock::from(line.known_by));
    let answer = line.upgrade(path::SESSION, &headers).await?;
    let upgraded = timeout(STEP_WITHIN, hyper::upgrade::on(answer)).await;
    let upgraded =
        upgraded.map_err(|_| link.late("the upgrade", STEP_WITHIN))?.map_err(|error| link.broken(error))?;
    let config = WebSocketConfig::default()
        .max_message_size(Some(SERVER_FRAME_BYTES_MAX))
        .max_frame_size(Some(SERVER_FRAME_BYTES_MAX))
        .read_buffer_size(4096)
        .write_buffer_size(0)
        .max_write_buffer_size(2 << 20);
    let socket = WebSocketStream::from_raw_socket(TokioIo::new(upgraded), Role::Client, Some(config)).await;
    let (out, queue) = mpsc::channel(OUT_MAX);
    let (sender, into) = mpsc::channel(FRAMES_MAX);
    let link = link.clone();
    let task = tokio::spawn(async move {
        let over = exchange(&link, socket, hello, queue, &sender).await;
        // The owner of the session has dropped it, so no task reads how it ended.
        drop(sender.send(Err(over)).await);
    });
    Ok(Wires { out, into, task: task.abort_handle(), known_by })
}

/// Exchanges frames until the session ends; returns the reason.
async fn exchange(
    link: &Link,
    mut socket: Socket,
    hello: Hello,
    mut queue: mpsc::Receiver<AgentFrame>,
    into: &mpsc::Sender<Result<ServerFrame, LinkError>>,
) -> LinkError {
    let mut sent = 0;
    if let Err(error) = send(link, &mut socket, &mut sent, AgentFrame::Hello(hello)).await {
        return error;
    }
    let mut pinged = false;
    loop {
        let patience = if pinged { SILENT_AFTER - PING_AFTER } else { PING_AFTER };
        tokio::select! {
            frame = queue.recv() => {
                let Some(frame) = frame else { return link.broken("its sender is gone") };
                if let Err(error) = send(link, &mut socket, &mut sent, frame).await {
                    return error;
                }
            }
            message = timeout(patience, socket.next()) => {
                let message = match message {
                    Ok(Some(Ok(message))) => message,
                    Ok(Some(Err(error))) => return link.broken(error),
                    Ok(None) => return link.broken("the server closed it"),
                    Err(_) if pinged => return link.late("a sign of life", SILENT_AFTER),
                    Err(_) => {
                        pinged = true;
                        let sent = timeout(STEP_WITHIN, socket.send(Message::Ping(Vec::new().into()))).await;
                        if !matches!(sent, Ok(Ok(()))) {
                            return link.late("a ping", STEP_WITHIN);
                        }
                        continue;
                    }
                };
                pinged = false;
                let bytes = match &message {
                    Message::Text(text) => text.as_bytes(),
                    Message::Binary(bytes) => bytes,
                    Message::Close(_) => return link.broken("the server closed it"),
                    Message::Ping(_) | Message::Pong(_) | Message::Frame(_) => continue,
                };
                let frame = match read::<Numbered<ServerFrame>>(bytes, SERVER_FRAME_BYTES_MAX) {
                    Ok(numbered) => numbered.frame,
                    Err(bad) => return link.broken(bad),
                };
                if into.send(Ok(frame)).await.is_err() {
                    return link.broken("its receiver is gone");
                }
            }
        }
    }
}

async fn send(link: &Link, socket: &mut Socket, sent: &mut u64, frame: AgentFrame) -> Result<(), LinkError> {
    *sent += 1;
    let text = serde_json::to_string(&Numbered { n: *sent, frame }).map_err(|error| link.broken(error))?;
    let done = timeout(STEP_WITHIN, socket.send(Message::text(text))).await;
    done.map_err(|_| link.late("sending a frame", STEP_WITHIN))?.map_err(|error| link.broken(error))
}
