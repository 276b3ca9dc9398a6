//! The least HTTP server that a client can be measured against: one thread for each connection, answers whole or streamed.
//!
//! ```text
//!  request line, headers, body (a form, or thrown away) ─▶ Asked ─▶ handler ─▶ Answer: whole, or chunk after chunk until it ends
//! ```
//!
//! It listens on 127.0.0.1 and counts what it sends. It is no test of protocols: what is measured is the other side.

use std::io::{BufRead, BufReader, Read, Write};
use std::net::{SocketAddr, TcpListener, TcpStream};
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};

/// What a request asks for.
pub(crate) struct Asked {
    /// The path, without query.
    pub(crate) path: String,
    query: String,
    form: String,
}

impl Asked {
    fn of(target: &str, form: String) -> Self {
        let (path, query) = target.split_once('?').unwrap_or((target, ""));
        Self { path: path.to_owned(), query: query.to_owned(), form }
    }

    /// The value of a field of the form, as it was sent.
    pub(crate) fn field(&self, name: &str) -> Option<&str> {
        self.form.split('&').find_map(|pair| pair.strip_prefix(name)?.strip_prefix('='))
    }

    /// The value of a query parameter, as it was sent.
    pub(crate) fn parameter(&self, name: &str) -> Option<&str> {
        self.query.split('&').find_map(|pair| pair.strip_prefix(name)?.strip_prefix('='))
    }

    /// The same as a number.
    pub(crate) fn number(&self, name: &str) -> Option<usize> {
        self.parameter(name)?.parse().ok()
    }
}

/// Sends one chunk of a streamed answer.
pub(crate) type Send<'a> = dyn FnMut(&str) -> std::io::Result<()> + 'a;

/// What comes back.
pub(crate) enum Answer {
    /// Status, further headers (each with its line's end), body.
    Whole(u16, &'static str, String),
    /// Chunks, until the function returns.
    Streamed(Box<dyn FnOnce(&mut Send<'_>) -> std::io::Result<()>>),
}

impl Answer {
    /// A body, and all is well.
    pub(crate) const fn ok(body: String) -> Self {
        Self::Whole(200, "", body)
    }
}

#[derive(Default)]
struct Counts {
    calls: AtomicU64,
    bytes: AtomicU64,
}

/// A server, for as long as the process lives.
pub(crate) struct HttpService {
    /// Where it listens.
    pub(crate) address: SocketAddr,
    counts: Arc<Counts>,
}

impl HttpService {
    /// Starts to listen; `make` builds the handler once the address is known.
    pub(crate) fn start<H>(make: impl FnOnce(SocketAddr) -> H) -> std::io::Result<Self>
    where
        H: Fn(&Asked) -> Answer + std::marker::Send + Sync + 'static,
    {
        let listener = TcpListener::bind("127.0.0.1:0")?;
        let address = listener.local_addr()?;
        let (counts, handler) = (Arc::new(Counts::default()), Arc::new(make(address)));
        let shared = counts.clone();
        std::thread::spawn(move || {
            for stream in listener.incoming().flatten() {
                let (handler, counts) = (handler.clone(), shared.clone());
                std::thread::spawn(move || serve(stream, &*handler, &counts));
            }
        });
        Ok(Self { address, counts })
    }

    /// Calls answered and bytes sent since the last time this was asked.
    pub(crate) fn take_counts(&self) -> (u64, u64) {
        (self.counts.calls.swap(0, Ordering::Relaxed), self.counts.bytes.swap(0, Ordering::Relaxed))
    }
}

/// Until the other side ends the connection; that it did is no error.
fn serve(stream: TcpStream, handler: &dyn Fn(&Asked) -> Answer, counts: &Counts) -> Option<()> {
    let mut writer = stream.try_clone().ok()?;
    let mut reader = BufReader::new(stream);
    loop {
        let asked = read_request(&mut reader)?;
        counts.calls.fetch_add(1, Ordering::Relaxed);
        match handler(&asked) {
            Answer::Whole(status, extra, body) => {
                counts.bytes.fetch_add(body.len() as u64, Ordering::Relaxed);
                let length = body.len();
                let head = format!(
                    "HTTP/1.1 {status} x\r\nContent-Type: application/json\r\nDate: Sat, 21 Nov 2026 10:00:00 GMT\r\n{extra}Content-Length: {length}\r\n\r\n"
                );
                writer.write_all(head.as_bytes()).ok()?;
                writer.write_all(body.as_bytes()).ok()?;
            }
            Answer::Streamed(stream) => {
                let head =
                    "HTTP/1.1 200 OK\r\nContent-Type: application/json\r\nTransfer-Encoding: chunked\r\n\r\n";
                writer.write_all(head.as_bytes()).ok()?;
                let mut send = |chunk: &str| {
                    counts.bytes.fetch_add(chunk.len() as u64, Ordering::Relaxed);
                    writer.write_all(format!("{:x}\r\n{chunk}\r\n", chunk.len()).as_bytes())
                };
                stream(&mut send).ok()?;
                writer.write_all(b"0\r\n\r\n").ok()?;
            }
        }
    }
}

fn read_request(reader: &mut BufReader<TcpStream>) -> Option<Asked> {
    let mut line = String::new();
    if reader.read_line(&mut line).ok()? == 0 {
        return None;
    }
    let mut length = 0;
    loop {
        let mut header = String::new();
        reader.read_line(&mut header).ok()?;
        let header = header.trim().to_ascii_lowercase();
        if header.is_empty() {
            break;
        }
        if let Some(value) = header.strip_prefix("content-length:") {
            length = value.trim().parse().unwrap_or(0);
        }
    }
    let mut body = vec![0; length];
    reader.read_exact(&mut body).ok()?;
    let form = String::from_utf8(body).unwrap_or_default();
    Some(Asked::of(line.split_whitespace().nth(1)?, form))
}
