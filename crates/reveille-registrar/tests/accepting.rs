//! A server with the descriptors of a service, and a crowd of clients that finish every handshake and show no
//! certificate, or chains of foreign certificates.
//!
//! The server has a process of its own, because descriptors are counted for each process and the crowd lives in this one.
//! The crowd keeps its connections open and sends a ping every three seconds, as long as the server answers.

#![allow(clippy::unwrap_used, reason = "in a test, what cannot be is a failure")]

#[path = "support/apart.rs"]
mod apart;
#[path = "support/raw.rs"]
mod raw;
mod support;

use std::sync::Arc;
use std::time::{Duration, Instant};

use apart::{Apart, NONE_LEFT, OF_A_SERVICE, apart, at_most};
use reveille_node::link::Link;
use reveille_wire::agent::Secret;
use support::who;
use tokio::io::{AsyncReadExt as _, AsyncWriteExt as _};
use tokio::net::{TcpStream, UnixStream};
use tokio::sync::{OwnedSemaphorePermit, Semaphore};

/// One client of the crowd: a finished handshake, and a ping every three seconds.
async fn idler(link: Link, under_way: OwnedSemaphorePermit) {
    let versions = [&tokio_rustls::rustls::version::TLS13];
    let dials = raw::dial(&link, None, &versions);
    let dialled = tokio::time::timeout(Duration::from_secs(2), dials).await;
    drop(under_way);
    let Ok(Ok(mut stream)) = dialled else { return };
    let mut part = [0; 4096];
    loop {
        let asked = stream.write_all(b"GET /v1/ping HTTP/1.1\r\nhost: x\r\n\r\n").await;
        if asked.is_err() || !matches!(stream.read(&mut part).await, Ok(1..)) {
            return std::future::pending().await;
        }
        tokio::time::sleep(Duration::from_secs(3)).await;
    }
}

/// This many idle clients come, as fast as they can finish their handshakes; another test has clients that never finish.
async fn crowd(link: Link, count: usize) {
    let under_way = Arc::new(Semaphore::new(24));
    for _ in 0..count {
        let permit = under_way.clone().acquire_owned().await.unwrap();
        tokio::spawn(idler(link.clone(), permit));
    }
    drop(under_way.acquire_many(24).await);
}

/// Invited machines come one after the other. Returns how many of ten got in before one did not, and how long the slowest
/// took. A machine whose connection was closed for the crowd behind its own address comes again, as an agent does.
async fn ten_come(server: &Apart, token: &Secret, from: u32) -> (usize, Duration) {
    let mut slowest = Duration::ZERO;
    for number in 0..10 {
        let begun = Instant::now();
        let invited = who(from + number);
        let comes = async {
            while let Err(error) = server.enrol(token, &invited).await {
                println!("comes again: {error}");
                tokio::time::sleep(Duration::from_millis(200)).await;
            }
        };
        if tokio::time::timeout(Duration::from_secs(10), comes).await.is_err() {
            return (usize::try_from(number).unwrap(), begun.elapsed());
        }
        slowest = slowest.max(begun.elapsed());
    }
    (10, slowest)
}

#[tokio::test]
async fn handshakes_without_a_certificate_lock_no_machine_out() {
    let count = at_most(10_000);
    let server = apart(OF_A_SERVICE);
    let token = server.invite(60).await;
    let known = who(1);
    let credential = server.enrol(&token, &known).await.unwrap();
    crowd(server.link.clone(), 1020).await;
    let (entered, slowest) = ten_come(&server, &token, 10).await;
    println!("beside 1020 that finished their handshake {entered} of 10 got in, the slowest in {slowest:?}");
    assert_eq!(entered, 10);
    let begun = Instant::now();
    let mut session = server.link.session(&credential, known.hello()).await.unwrap();
    println!("and the known one in {:?}", begun.elapsed());
    let more = tokio::spawn(crowd(server.link.clone(), count - 1020));
    let (entered, slowest) = ten_come(&server, &token, 30).await;
    println!("while {} more came {entered} of 10 got in, the slowest in {slowest:?}", count - 1020);
    assert_eq!(entered, 10);
    more.await.unwrap();
    let (entered, slowest) = ten_come(&server, &token, 50).await;
    println!("beside all of them {entered} of 10 got in, the slowest in {slowest:?}");
    assert_eq!(entered, 10);
    let heard = async { while session.next().await.is_ok() {} };
    let ended = tokio::time::timeout(Duration::from_millis(500), heard).await;
    assert!(ended.is_err(), "the session of a known machine stands");
}

#[tokio::test]
async fn a_server_without_a_descriptor_waits_at_both_of_its_doors() {
    let server = apart(NONE_LEFT);
    let person = UnixStream::connect(server.directory.path().join("admin.sock")).await.unwrap();
    let machine = TcpStream::connect(("127.0.0.1", server.link.server.port)).await.unwrap();
    let before = server.ticks();
    tokio::time::sleep(Duration::from_secs(2)).await;
    let spent = server.ticks() - before;
    println!("two seconds with a connection pending at each listener cost {spent} ticks of 200");
    assert!(spent < 30, "{spent} ticks of 200");
    drop((person, machine));
}

/// A stranger makes a handshake, and asks for a session three times where the server listens. Returns the processor time
/// in ticks.
async fn spent_on(server: &Apart, shown: &raw::Shown) -> u64 {
    let before = server.ticks();
    let mut stream = raw::tls13(&server.link, Some(shown)).await;
    let ask = b"GET /v1/session HTTP/1.1\r\nhost: x\r\n\r\n".repeat(3);
    let (mut answers, mut part) = (String::new(), [0; 4096]);
    let answered = async {
        stream.write_all(&ask).await?;
        while answers.matches("CERTIFICATE_UNKNOWN").count() < 3 {
            let count = stream.read(&mut part).await?;
            if count == 0 {
                break;
            }
            answers.push_str(&String::from_utf8_lossy(&part[..count]));
        }
        std::io::Result::Ok(())
    };
    // A client with a chain that is too long gets an alert.
    drop(tokio::time::timeout(Duration::from_secs(60), answered).await.unwrap());
    server.ticks() - before
}

/// An attacker can make a chain in which the search for a path takes seconds, and this server has one thread.
#[tokio::test]
async fn pathless_chain_costs_no_more_than_an_unknown_certificate() {
    let server = apart(OF_A_SERVICE);
    server.link.ping().await.unwrap();
    let strange = spent_on(&server, &raw::maze(0)).await;
    for each in [4, 7] {
        let spent = spent_on(&server, &raw::maze(each)).await;
        println!("six times {each} authorities: {spent} ticks, and {strange} without them");
        assert!(spent <= strange + 20, "{spent} and {strange} hundredths of a second");
    }
}

/// TLS keeps the client's certificates for as long as a connection lasts.
#[tokio::test]
async fn what_strangers_show_fills_no_memory() {
    let server = apart(4096);
    let held_by = async |authorities: usize| {
        let mut shown = raw::maze(1);
        let one = shown.chain.pop().unwrap();
        shown.chain.truncate(1);
        shown.chain.extend(vec![one; authorities]);
        let bytes: usize = shown.chain.iter().map(|der| der.len()).sum();
        server.forget_peak();
        let before = server.peak_kib();
        let mut held = Vec::new();
        for _ in 0..120 {
            held.push(raw::tls13(&server.link, Some(&shown)).await);
        }
        server.link.ping().await.unwrap();
        let more = server.peak_kib() - before;
        println!("120 connections that show {bytes} bytes each: {more} KiB more");
        more
    };
    // The first connections allocate what later ones use too.
    held_by(0).await;
    let (short, long) = (held_by(0).await, held_by(180).await);
    assert!(long < short + 2048, "{long} KiB, and {short} without a long chain");
}

/// Each chunk of a body has a buffer of its own, for as long as it is kept.
#[tokio::test]
async fn bodies_of_a_byte_to_a_chunk_fill_no_memory() {
    const CONNECTIONS: u64 = 2;
    let server = apart(4096);
    let token = server.invite(1).await;
    let head = format!(
        "POST /v1/enrol HTTP/1.1\r\nhost: x\r\nauthorization: Bearer {}\r\ntransfer-encoding: chunked\r\n\r\n",
        token.expose()
    );
    let request = format!("{head}{}0\r\n\r\n", "1\r\n \r\n".repeat(250_000));
    server.forget_peak();
    let before = server.peak_kib();
    let answers = (0..CONNECTIONS)
        .map(async |_| raw::say(raw::tls13(&server.link, None).await, request.as_bytes()).await);
    for answer in futures::future::join_all(answers).await {
        assert_eq!(raw::refused(&answer).1.reason.code(), "BAD_FRAME", "{answer}");
    }
    let each = (server.peak_kib() - before) / CONNECTIONS;
    println!("{each} KiB for each body of 250,000 chunks");
    assert!(each < 2048, "{each} KiB for a body of 256 KiB at most");
}
