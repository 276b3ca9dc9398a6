//! A server with the descriptors of a service, and a crowd at its door that finishes every handshake and shows no certificate.
//!
//! The server is a process of its own, this same program with an environment that says so, because descriptors are counted by
//! process and the crowd is in this one. The crowd keeps its end of each connection open and asks for a ping every three
//! seconds, as long as the server answers.

#![allow(clippy::unwrap_used, reason = "in a test, what cannot be is a failure")]

#[path = "support/raw.rs"]
mod raw;
mod support;

use std::collections::BTreeSet;
use std::io::{BufRead as _, BufReader};
use std::path::Path;
use std::process::{Child, Command, Stdio};
use std::sync::Arc;
use std::time::{Duration, Instant};

use reveille_core::model::time::Time;
use reveille_node::link::{Credential, Enrolment, Link, LinkError};
use reveille_node::pin::Pins;
use reveille_node::target::Endpoint;
use reveille_registrar::server::admin::{Answer, Ask, ask};
use reveille_registrar::server::{Limits, Setup, start};
use reveille_wire::agent::{Role, Secret};
use rustix::process::{Resource, Rlimit, getrlimit, setrlimit};
use support::{Who, who};
use tempfile::TempDir;
use tokio::io::{AsyncReadExt as _, AsyncWriteExt as _};
use tokio::net::{TcpStream, UnixStream};
use tokio::sync::{OwnedSemaphorePermit, Semaphore, watch};

/// The state directory of the child, and how many descriptors it has.
const STATE: &str = "REVEILLE_TEST_DOOR_STATE";
const DESCRIPTORS: &str = "REVEILLE_TEST_DOOR_DESCRIPTORS";
/// The default of a service.
const OF_A_SERVICE: u64 = 1024;
/// So few that the child takes them all before it serves.
const NONE_LEFT: u64 = 64;

/// Does nothing in an ordinary run: it is the child's part.
#[tokio::test]
async fn child_that_serves_until_it_is_killed() {
    let (Some(state), Ok(descriptors)) = (std::env::var_os(STATE), std::env::var(DESCRIPTORS)) else {
        return;
    };
    let descriptors: u64 = descriptors.parse().unwrap();
    let most = Some(descriptors);
    setrlimit(Resource::Nofile, Rlimit { current: most, maximum: most }).unwrap();
    let setup = Setup {
        listen: "127.0.0.1:0".parse().unwrap(),
        names: vec!["localhost".to_owned()],
        directory: Path::new(&state).to_owned(),
        pools: BTreeSet::from([("prod".into(), "workers".into())]),
        settings: Default::default(),
        limits: Limits::default(),
        version: "0.0.0-test",
    };
    let server = start(setup).await.unwrap();
    let mut held = Vec::new();
    while descriptors == NONE_LEFT
        && let Ok(file) = std::fs::File::open("/dev/null")
    {
        held.push(file);
    }
    drop(server.nodes);
    println!("\nserves {} {}", server.address.port(), server.pins.join(" "));
    let (_stop, stopped) = watch::channel(false);
    server.run.until(stopped).await;
}

/// A server in a process of its own; killed when dropped.
struct Apart {
    directory: TempDir,
    link: Link,
    child: Child,
}

impl Drop for Apart {
    fn drop(&mut self) {
        drop(self.child.kill());
        drop(self.child.wait());
    }
}

fn apart(descriptors: u64) -> Apart {
    let directory = TempDir::new().unwrap();
    let mut child = Command::new(std::env::current_exe().unwrap())
        .args(["--exact", "child_that_serves_until_it_is_killed", "--nocapture"])
        .env(STATE, directory.path())
        .env(DESCRIPTORS, descriptors.to_string())
        .stdout(Stdio::piped())
        .stderr(Stdio::null())
        .spawn()
        .unwrap();
    let mut lines = BufReader::new(child.stdout.take().unwrap()).lines();
    let line = lines.find_map(|line| line.unwrap().strip_prefix("serves ").map(str::to_owned)).unwrap();
    let mut words = line.split(' ');
    let port = words.next().unwrap().parse().unwrap();
    let pins = Pins::new(words.map(|pin| pin.parse().unwrap()).collect()).unwrap();
    Apart { directory, link: Link { server: Endpoint { host: "127.0.0.1".to_owned(), port }, pins }, child }
}

impl Apart {
    async fn invite(&self, uses: u32) -> Secret {
        let question = Ask::Invite {
            roster: None,
            pool: "workers".into(),
            roles: BTreeSet::from([Role::Worker]),
            machine: None,
            reimage: None,
            ttl_s: 3600,
            uses,
        };
        match ask(self.directory.path(), &question).await.unwrap() {
            Answer::Invited(invited) => invited.token,
            other => panic!("{other:?}"),
        }
    }

    async fn enrol(&self, token: &Secret, who: &Who) -> Result<Credential, LinkError> {
        let enrolment = Enrolment::new(who.identity.clone(), who.facts.clone(), None).unwrap();
        Ok(enrolment.ask(&self.link, token, Time::from_ms(0)).await?.0)
    }

    /// Processor time of the child so far, in ticks of the system: a hundred a second.
    fn ticks(&self) -> u64 {
        let stat = std::fs::read_to_string(format!("/proc/{}/stat", self.child.id())).unwrap();
        let (_, after_name) = stat.rsplit_once(')').unwrap();
        let fields: Vec<&str> = after_name.split_whitespace().collect();
        fields[11].parse::<u64>().unwrap() + fields[12].parse::<u64>().unwrap()
    }
}

/// One of the crowd: a finished handshake, and a ping every three seconds.
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

/// So many idlers come, as fast as they can finish their handshakes: those that never do are another test's.
async fn crowd(link: Link, count: usize) {
    let under_way = Arc::new(Semaphore::new(24));
    for _ in 0..count {
        let permit = under_way.clone().acquire_owned().await.unwrap();
        tokio::spawn(idler(link.clone(), permit));
    }
    drop(under_way.acquire_many(24).await);
}

/// As many as this process may open, if not all that are wished.
fn at_most(wished: usize) -> usize {
    let before = getrlimit(Resource::Nofile);
    setrlimit(Resource::Nofile, Rlimit { current: before.maximum, maximum: before.maximum }).unwrap();
    let may = getrlimit(Resource::Nofile).current.map_or(usize::MAX, |most| usize::try_from(most).unwrap());
    wished.min(may.saturating_sub(512))
}

/// Invited machines come one after the other; how many of ten got in before one did not, and how long the slowest took.
async fn ten_come(server: &Apart, token: &Secret, from: u32) -> (usize, Duration) {
    let mut slowest = Duration::ZERO;
    for number in 0..10 {
        let begun = Instant::now();
        let invited = who(from + number);
        let tried = server.enrol(token, &invited);
        if !matches!(tokio::time::timeout(Duration::from_secs(10), tried).await, Ok(Ok(_))) {
            return (usize::try_from(number).unwrap(), begun.elapsed());
        }
        slowest = slowest.max(begun.elapsed());
    }
    (10, slowest)
}

#[tokio::test]
async fn finished_handshakes_without_a_certificate_lock_nobody_out() {
    let count = at_most(4_000);
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
    println!("two seconds with a connection pending at each door cost {spent} ticks of 200");
    assert!(spent < 30, "{spent} ticks of 200");
    drop((person, machine));
}
