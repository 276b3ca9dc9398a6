//! The program's way to one member of etcd, past which a door cannot see: bytes go to and fro as they are, under TLS.
//!
//! ```text
//!  program ──bytes──▶ is its book at a new step? ─yes─▶ killed, nothing is handed on     │ the same deaths as at the door
//!          ◀──bytes── was the act done just now? ─yes─▶ killed, no answer is handed back │ whose relay it is
//! ```
//!
//! The caller that opens the relay can tell whether the act was done: it asks etcd itself.

use std::io::{Read, Write};
use std::net::{Shutdown, TcpListener, TcpStream};
use std::sync::Arc;
use std::thread;

use anyhow::Result;

use super::door::{Inner, SILENT, step};

/// What was done, in words, and whether it was: the caller asks etcd.
pub struct Done {
    /// As a write of a door is called: `removal of a member`.
    pub words: &'static str,
    /// The step of the book at which it is done; at any other it is not asked.
    pub at: &'static str,
    /// Whether it is.
    pub is_so: Box<dyn Fn() -> bool + Send + Sync>,
}

/// Opens one to this port; gives its own. It ends with the process of the test.
pub(super) fn open(inner: &Arc<Inner>, behind: u16, done: Done) -> Result<u16> {
    let listener = TcpListener::bind(("127.0.0.1", 0))?;
    let port = listener.local_addr()?.port();
    let (inner, done) = (Arc::clone(inner), Arc::new(done));
    thread::spawn(move || {
        for client in listener.incoming() {
            if inner.is_over() {
                return;
            }
            let (Ok(client), inner, done) = (client, Arc::clone(&inner), Arc::clone(&done)) else { continue };
            thread::spawn(move || drop(relay(&client, behind, &inner, &done)));
        }
    });
    Ok(port)
}

/// Both ways, until one of them is at its end or the program dies.
fn relay(client: &TcpStream, behind: u16, inner: &Arc<Inner>, done: &Done) -> Result<()> {
    let server = TcpStream::connect(("127.0.0.1", behind))?;
    for stream in [client, &server] {
        stream.set_read_timeout(Some(SILENT))?;
    }
    thread::scope(|scope| {
        scope.spawn(|| pass(client, &server, || inner.dies_at(|along| step(&along.book))));
        pass(&server, client, || {
            inner.dies_at(|along| {
                let is_there = step(&along.book).as_deref() == Some(done.at);
                (is_there && along.wants(done.words) && (done.is_so)()).then(|| done.words.to_owned())
            })
        });
    });
    Ok(())
}

/// One way. Its end is the end of both.
fn pass(mut from: &TcpStream, mut to: &TcpStream, dies: impl Fn() -> bool) {
    let mut part = [0_u8; 16_384];
    while let Ok(count @ 1..) = from.read(&mut part) {
        if dies() || to.write_all(part.get(..count).unwrap_or_default()).is_err() {
            break;
        }
    }
    for stream in [from, to] {
        // It may be over already.
        let _ = stream.shutdown(Shutdown::Both);
    }
}
