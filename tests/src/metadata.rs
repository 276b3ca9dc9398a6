//! A metadata service as EC2's machines have it (IMDSv2): it gives a token to any client, and a rebalance notice or nothing to a
//! client with the token.
//!
//! ```text
//!  PUT /latest/api/token ─▶ token     GET …/events/recommendations/rebalance, with it ─▶ what stands now, or 404
//! ```
//!
//! No EC2 service that can be had here tells its machines anything, so this one says what EC2's documentation says.

use std::io::{BufRead as _, BufReader, Write as _};
use std::net::{TcpListener, TcpStream};
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::thread::{self, JoinHandle};
use std::time::Duration;

use anyhow::{Context, Result};

const TOKEN: &str = "a-token-of-this-machine";
/// A client that is silent for so long is gone.
const SILENT: Duration = Duration::from_secs(5);

/// The service. Closes with its owner.
pub struct Metadata {
    port: u16,
    state: Arc<State>,
    thread: Option<JoinHandle<()>>,
}

#[derive(Default)]
struct State {
    recommends: AtomicBool,
    ends: AtomicBool,
}

impl Metadata {
    /// Opens it on a free port; it recommends nothing.
    ///
    /// # Errors
    /// No port can be had.
    pub fn open() -> Result<Self> {
        let listener = TcpListener::bind("127.0.0.1:0").context("cannot open a metadata service")?;
        let port = listener.local_addr()?.port();
        let state = Arc::new(State::default());
        let shared = Arc::clone(&state);
        let thread = thread::spawn(move || {
            for stream in listener.incoming() {
                if shared.ends.load(Ordering::Relaxed) {
                    return;
                }
                if let Ok(stream) = stream {
                    // A client that hung up needs no answer.
                    answer(stream, shared.recommends.load(Ordering::Relaxed)).ok();
                }
            }
        });
        Ok(Self { port, state, thread: Some(thread) })
    }

    /// Where it is, as `AWS_EC2_METADATA_SERVICE_ENDPOINT` names it.
    pub fn url(&self) -> String {
        format!("http://127.0.0.1:{}", self.port)
    }

    /// From now on it recommends to rebalance, or does not.
    pub fn recommends(&self, does: bool) {
        self.state.recommends.store(does, Ordering::Relaxed);
    }
}

impl Drop for Metadata {
    fn drop(&mut self) {
        self.state.ends.store(true, Ordering::Relaxed);
        // Wakes it, so that it sees that it ends.
        TcpStream::connect(("127.0.0.1", self.port)).ok();
        if let Some(thread) = self.thread.take() {
            thread.join().ok();
        }
    }
}

fn answer(mut stream: TcpStream, recommends: bool) -> Result<()> {
    stream.set_read_timeout(Some(SILENT))?;
    let mut head = Vec::new();
    for line in BufReader::new(stream.try_clone()?).lines() {
        match line?.to_lowercase() {
            line if line.is_empty() => break,
            line => head.push(line),
        }
    }
    let asked = head.first().map(String::as_str).unwrap_or_default();
    let has_token = head.iter().any(|line| *line == format!("x-aws-ec2-metadata-token: {TOKEN}"));
    let (status, body) = match asked {
        _ if asked.starts_with("put /latest/api/token ") => ("200 OK", TOKEN),
        _ if !has_token => ("401 Unauthorized", ""),
        _ if recommends && asked.contains("/events/recommendations/rebalance ") => {
            ("200 OK", r#"{"noticeTime": "2026-11-23T08:22:00Z"}"#)
        }
        _ => ("404 Not Found", ""),
    };
    let length = body.len();
    write!(stream, "HTTP/1.1 {status}\r\ncontent-length: {length}\r\nconnection: close\r\n\r\n{body}")?;
    Ok(())
}
