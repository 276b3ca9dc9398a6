//! What each flood costs the server while known machines have sessions: peak memory, processor time, and how many
//! sessions remain.
//!
//! This test is ignored by default: it takes twenty minutes and asserts little. The numbers are in
//! docs/reference/registration.md.
//!
//! ```text
//! cargo test -p reveille-registrar --test measures -- --ignored --nocapture
//! FLOOD="of one machine" cargo test …    only the floods whose name has these words
//! ```

#![allow(clippy::unwrap_used, reason = "in a test, what cannot be is a failure")]

#[path = "support/apart.rs"]
mod apart;
#[path = "support/raw.rs"]
mod raw;
mod support;

use std::sync::Arc;
use std::time::{Duration, Instant};

use apart::{Apart, apart, at_most};
use futures::{SinkExt as _, StreamExt as _, stream};
use rcgen::{CertificateParams, KeyPair};
use reveille_node::link::{Credential, Session};
use reveille_wire::agent::frame::{Account, Heartbeat};
use reveille_wire::agent::{AgentFrame, Numbered, Secret};
use support::{Who, who};
use tokio::io::{AsyncReadExt as _, AsyncWriteExt as _};
use tokio::net::TcpStream;
use tokio::task::{JoinHandle, JoinSet};
use tokio_tungstenite::tungstenite::Message;

/// Known machines with a session.
const KNOWN: u32 = 5_000;
/// The server's descriptors: more than any flood needs.
const DESCRIPTORS: u64 = 16_384;
/// Each machine is told its neighbours 10 s after the last one came, 256 machines a second: the flood does not cause that
/// cost.
const SETTLES: Duration = Duration::from_secs(45);
/// The duration of each flood.
const LONG: Duration = Duration::from_secs(5);
/// The number of tasks at once in a flood.
const TASKS: u32 = 8;

/// A server, the known machines, and one more enrolled machine, which floods.
struct Stage {
    server: Arc<Apart>,
    sessions: Vec<JoinHandle<()>>,
    token: Secret,
    inside: (Who, raw::Shown),
}

impl Stage {
    async fn new() -> Self {
        at_most(20_000);
        let server = apart(DESCRIPTORS);
        let token = server.invite(10_000).await;
        let sessions = stream::iter(0..KNOWN)
            .map(|number| {
                let (server, token) = (&server, &token);
                async move {
                    let known = who(number);
                    let credential = server.enrol(token, &known).await.unwrap();
                    server.link.session(&credential, known.hello()).await.unwrap()
                }
            })
            .buffer_unordered(TASKS as usize)
            .map(|session| tokio::spawn(lives(session)))
            .collect()
            .await;
        tokio::time::sleep(SETTLES).await;
        let inside = who(KNOWN);
        let credential: Credential = server.enrol(&token, &inside).await.unwrap();
        Self { server: Arc::new(server), sessions, token, inside: (inside, raw::shown(credential)) }
    }

    /// How many of the known machines still have their session, once a close would have arrived.
    async fn standing(&self) -> usize {
        tokio::time::sleep(Duration::from_secs(2)).await;
        self.sessions.iter().filter(|session| !session.is_finished()).count()
    }
}

/// A session as an agent has it, until it is closed. The server closes a session without a message for a minute.
async fn lives(mut session: Session) {
    let mut beats = tokio::time::interval(Duration::from_secs(session.welcome.heartbeat_s.into()));
    let account = Account { kubelet: "runs".into(), api: "answers".into(), ..Account::default() };
    let beat = Heartbeat { stage: None, joined: true, account: Some(account) };
    loop {
        let goes_on = tokio::select! {
            _ = beats.tick() => session.say(AgentFrame::Heartbeat(beat.clone())).await.is_ok(),
            frame = session.next() => frame.is_ok(),
        };
        if !goes_on {
            return;
        }
    }
}

/// One flood on a stage of its own, and its cost. `flood` returns how often it did its action.
async fn measure<F: Future<Output = usize>>(
    what: &str,
    flood: impl FnOnce(Arc<Apart>, Secret, (Who, raw::Shown)) -> F,
) {
    if std::env::var("FLOOD").is_ok_and(|wanted| !what.contains(&wanted)) {
        return;
    }
    let stage = Stage::new().await;
    let server = stage.server.clone();
    // The peak of the setup would hide the peak of the flood.
    server.forget_peak();
    let (ticks, peak_kib, begun) = (server.ticks(), server.peak_kib(), Instant::now());
    let inside = (
        stage.inside.0.clone(),
        raw::Shown { chain: stage.inside.1.chain.clone(), key: stage.inside.1.key.clone_key() },
    );
    let times = flood(server.clone(), stage.token.clone(), inside).await;
    let took = begun.elapsed().as_secs_f64();
    let processor_s = (server.ticks() - ticks) as f64 / 100.0;
    let after = Instant::now();
    server.enrol(&stage.token, &who(KNOWN + 1)).await.unwrap();
    let invited_ms = after.elapsed().as_millis();
    let standing = stage.standing().await;
    println!(
        "| {what} | {times} in {took:.1} s | {processor_s:.2} s | {:.1} → {:.1} MiB | {standing} of {KNOWN} | {invited_ms} ms |",
        peak_kib as f64 / 1024.0,
        server.peak_kib() as f64 / 1024.0,
    );
}

/// Finished handshakes without a certificate, which are held open.
async fn crowd(server: Arc<Apart>, count: usize) -> usize {
    let mut tasks = JoinSet::new();
    for _ in 0..TASKS {
        let server = server.clone();
        tasks.spawn(async move {
            let mut held = Vec::new();
            for _ in 0..count / TASKS as usize {
                let versions = [&tokio_rustls::rustls::version::TLS13];
                let dialled = raw::dial(&server.link, None, &versions);
                held.extend(
                    tokio::time::timeout(Duration::from_secs(2), dialled).await.into_iter().flatten(),
                );
            }
            held
        });
    }
    let mut held = Vec::new();
    while let Some(some) = tasks.join_next().await {
        held.extend(some.unwrap());
    }
    held.len()
}

/// Connections that send three bytes of a handshake.
async fn half_open(server: Arc<Apart>, count: usize) -> usize {
    let mut held = Vec::new();
    for _ in 0..count {
        let mut stream = TcpStream::connect(("127.0.0.1", server.link.server.port)).await.unwrap();
        drop(stream.write_all(&[0x16, 0x03, 0x01]).await);
        held.push(stream);
    }
    held.len()
}

/// A few tasks do the same again and again. Returns how often.
async fn again<F: Future<Output = usize> + Send + 'static>(tasks: u32, one: impl Fn(u32) -> F) -> usize {
    let mut tasks: JoinSet<usize> = (0..tasks).map(one).collect();
    let mut times = 0;
    while let Some(count) = tasks.join_next().await {
        times += count.unwrap();
    }
    times
}

async fn enrolments(server: Arc<Apart>, token: Secret) -> usize {
    again(TASKS, |task| {
        let (server, token, until) = (server.clone(), token.clone(), Instant::now() + LONG);
        async move {
            let mut times = 0;
            while Instant::now() < until {
                let mut liar = who(KNOWN + 2 + task);
                liar.identity.instance_id = Some("i-1".into());
                drop(server.enrol(&token, &liar).await);
                times += 1;
            }
            times
        }
    })
    .await
}

/// One request after the other over one connection, with the machine's certificate.
async fn requests(server: Arc<Apart>, shown: raw::Shown, request: Vec<u8>) -> usize {
    let shown = Arc::new(shown);
    again(TASKS, |_| {
        let (server, shown, request) = (server.clone(), shown.clone(), request.clone());
        let until = Instant::now() + LONG;
        async move {
            let (mut times, mut part) = (0, vec![0; 16 << 10]);
            while Instant::now() < until {
                let mut stream = raw::tls13(&server.link, Some(&shown)).await;
                while Instant::now() < until
                    && stream.write_all(&request).await.is_ok()
                    && matches!(stream.read(&mut part).await, Ok(1..))
                {
                    times += 1;
                }
            }
            times
        }
    })
    .await
}

/// Sessions of an enrolled machine, each with a hello and then these bytes until it is closed.
async fn sessions(
    server: Arc<Apart>,
    inside: (Who, raw::Shown),
    (first, frame): (&'static [u8], &'static [u8]),
    tasks: u32,
) -> usize {
    let inside = Arc::new(inside);
    again(tasks, |_| {
        let (server, inside, until) = (server.clone(), inside.clone(), Instant::now() + LONG);
        async move {
            let mut times = 0;
            let hello = Numbered { n: 1, frame: AgentFrame::Hello(inside.0.hello()) };
            let hello = serde_json::to_string(&hello).unwrap();
            let batch = frame.repeat(100);
            while Instant::now() < until {
                let link = server.link.clone();
                let shown = raw::Shown { chain: inside.1.chain.clone(), key: inside.1.key.clone_key() };
                // A machine that has its share of sessions is refused the upgrade.
                let opened = tokio::spawn(async move { raw::socket(&link, &shown).await }).await;
                times += 1;
                let Ok(mut socket) = opened else { continue };
                drop(socket.send(Message::text(hello.clone())).await);
                let stream = socket.get_mut();
                drop(stream.write_all(first).await);
                while !batch.is_empty() && Instant::now() < until && stream.write_all(&batch).await.is_ok() {
                    drop(stream.flush().await);
                    times += 100;
                }
            }
            times
        }
    })
    .await
}

#[tokio::test]
#[ignore = "it measures; what it prints is for docs/reference/registration.md"]
async fn what_each_flood_costs_beside_known_machines() {
    // A refused upgrade is a panic of its own task, with the whole answer.
    std::panic::set_hook(Box::new(|what| {
        what.to_string().lines().take(2).for_each(|line| eprintln!("{line}"));
    }));
    println!("| flood | how often | processor time | memory at most | sessions left | an invited one |");
    println!("| --- | --- | --- | --- | --- | --- |");
    measure("nothing", |_, _, _| async {
        tokio::time::sleep(LONG).await;
        0
    })
    .await;
    measure("handshakes that are not finished", |server, _, _| half_open(server, 10_000)).await;
    measure("handshakes that show no certificate", |server, _, _| crowd(server, 10_000)).await;
    measure("enrolments that claim another's instance", |server, token, _| enrolments(server, token)).await;
    measure("renewals of one machine", |server, _, inside| async move {
        let csr = CertificateParams::default().serialize_request(&KeyPair::generate().unwrap()).unwrap();
        let body = serde_json::json!({"protocol": 1, "csr": csr.pem().unwrap()}).to_string();
        requests(server, inside.1, raw::post("/v1/renew", "", &body)).await
    })
    .await;
    measure("polls of one machine", |server, _, inside| {
        let poll = raw::post("/v1/poll", "", "{\"session\":1,\"ack\":0,\"frames\":[],\"hold_s\":0}");
        requests(server, inside.1, poll)
    })
    .await;
    measure("sessions of one machine", |server, _, inside| sessions(server, inside, (&[], &[]), TASKS)).await;
    measure("empty fragments of one machine", |server, _, inside| {
        // One session at a time: the next one would end it.
        let bytes: (&[u8], &[u8]) = (&[0x01, 0x80, 0, 0, 0, 0], &[0x00, 0x80, 0, 0, 0, 0]);
        sessions(server, inside, bytes, 1)
    })
    .await;
}
