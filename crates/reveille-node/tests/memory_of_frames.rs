//! An agent whose registration server speaks faster than the agent works: its memory, in a process of its own, and that
//! the two do not wait for each other.

#![allow(clippy::unwrap_used, reason = "in a test, what cannot be is a failure")]

mod support;

use std::fs;
use std::time::Duration;

use reveille_node::link::{Carrier, Session};
use reveille_wire::agent::frame::{Heartbeat, Hello};
use reveille_wire::agent::{AgentFrame, Facts, Identity, PROTOCOL};
use support::{authority, enrolled, listens, status};
use tokio::io::{AsyncReadExt as _, AsyncWriteExt as _};
use tokio::net::TcpStream;
use tokio::task::JoinHandle;
use tokio::time::timeout;
use tokio_rustls::server::TlsStream;

/// A text frame of a server (RFC 6455 §5.2).
fn frame(text: &str) -> Vec<u8> {
    let mut bytes = vec![0x81, 127];
    bytes.extend((text.len() as u64).to_be_bytes());
    bytes.extend(text.as_bytes());
    bytes
}

/// How many times a server could send its frame, and its connection.
type Sends = JoinHandle<(usize, TlsStream<TcpStream>)>;

/// A session with a server that sends this frame as often as it is taken, up to `most` times, and reads nothing meanwhile.
async fn session(text: String, most: usize) -> (Session, Sends) {
    let issuer = authority();
    let (listener, tls, port) = listens(&issuer).await;
    let sends = tokio::spawn(async move {
        let (stream, _) = listener.accept().await.unwrap();
        let mut stream = tls.accept(stream).await.unwrap();
        let _ = stream.read(&mut [0; 16 << 10]).await;
        let head = "HTTP/1.1 101 Switching Protocols\r\nconnection: upgrade\r\nupgrade: websocket\r\n\r\n";
        stream.write_all(head.as_bytes()).await.unwrap();
        let welcome = r#"{"n":1,"t":"welcome","machine":"m-1","session":1,"heartbeat_s":15}"#;
        stream.write_all(&frame(welcome)).await.unwrap();
        let (frame, mut sent) = (frame(&text), 0);
        while sent < most
            && matches!(timeout(Duration::from_secs(3), stream.write_all(&frame)).await, Ok(Ok(())))
        {
            sent += 1;
        }
        (sent, stream)
    });
    let folder = tempfile::tempdir().unwrap();
    let keyring = enrolled(folder.path(), &issuer, port);
    let hello = Hello {
        protocol: PROTOCOL,
        identity: Identity::default(),
        facts: Facts::default(),
        plan: None,
        joined: false,
    };
    let link = keyring.link().unwrap();
    (link.session_over(Carrier::WebSocket, &keyring.credential, hello).await.unwrap(), sends)
}

/// Plans of a mebibyte each wait for an agent that is busy with one.
#[tokio::test]
async fn frames_that_wait_for_an_agent_fill_no_memory() {
    let content = "x".repeat(500 << 10);
    let step =
        format!(r#"{{"step":"write-file","path":"/etc/containerd/x","mode":"0600","content":"{content}"}}"#);
    let plan =
        format!(r#"{{"n":2,"t":"plan","version":1,"checksum":"x","roles":[],"steps":[{step},{step}]}}"#);
    let (session, sends) = session(plan, 100).await;
    fs::write("/proc/self/clear_refs", "5").unwrap();
    let before = status("VmHWM:");
    // The agent is busy: it writes a plan, or keeps one.
    let (sent, _stream) = sends.await.unwrap();
    tokio::time::sleep(Duration::from_secs(1)).await;
    let grew = status("VmHWM:") - before;
    println!("{grew} KiB for {sent} frames that no task has read");
    drop(session);
    assert!(grew < 24 * 1024, "{grew} KiB for {sent} frames that wait");
}

/// An agent begins a session with up to 256 reports, and each is acknowledged.
#[tokio::test]
async fn an_agent_that_says_much_takes_what_comes_meanwhile() {
    let (mut session, _sends) = session(r#"{"n":2,"t":"ack","up_to":1}"#.to_owned(), 1000).await;
    let (mut heard, beat) = (0, Heartbeat { stage: None, joined: false, account: None });
    let says = async {
        for _ in 0..300 {
            while session.next_unless_room().await.unwrap().is_some() {
                heard += 1;
            }
            session.say(AgentFrame::Heartbeat(beat.clone())).await.unwrap();
        }
    };
    assert!(timeout(Duration::from_secs(20), says).await.is_ok(), "both wait, after {heard} frames");
}
