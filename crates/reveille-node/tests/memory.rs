//! The memory of an agent, in a process of its own: its peak is the whole process's.
#![allow(clippy::unwrap_used, reason = "in a test, what cannot be is a failure")]

mod support;

use std::fs;

use reveille_node::certificate::Presented;
use reveille_node::link::Link;
use reveille_node::pins::Pins;
use reveille_node::target::Endpoint;
use support::{authority, listens, status};
use tokio::io::{AsyncReadExt as _, AsyncWriteExt as _};

/// A registration server that was taken over, or what answers the doctor in its place. Each chunk of a body has a buffer of its
/// own, for as long as it is kept.
#[tokio::test]
async fn answer_of_a_byte_to_a_chunk_fills_no_memory_of_an_agent() {
    let issuer = authority();
    let (listener, tls, port) = listens(&issuer).await;
    tokio::spawn(async move {
        let (stream, _) = listener.accept().await.unwrap();
        let mut stream = tls.accept(stream).await.unwrap();
        let _ = stream.read(&mut [0; 4096]).await;
        let head = "HTTP/1.1 200 OK\r\nserver: reveille\r\ntransfer-encoding: chunked\r\n\r\n";
        stream.write_all(head.as_bytes()).await.unwrap();
        let some = "1\r\n \r\n".repeat(1000);
        for _ in 0..1040 {
            if stream.write_all(some.as_bytes()).await.is_err() {
                return;
            }
        }
        let _ = stream.write_all(b"0\r\n\r\n").await;
        let _ = stream.flush().await;
    });
    let pin = Presented::read(issuer.der()).key.unwrap();
    let link =
        Link { server: Endpoint { host: "127.0.0.1".to_owned(), port }, pins: Pins::new(vec![pin]).unwrap() };
    fs::write("/proc/self/clear_refs", "5").unwrap();
    let before = status("VmHWM:");
    let answered = link.ping().await;
    let grew = status("VmHWM:") - before;
    println!("{grew} KiB for an answer of 1,015 KiB: {:?}", answered.map_err(|error| error.to_string()));
    assert!(grew < 8 * 1024, "{grew} KiB for an answer of which 1 MiB is taken");
}
