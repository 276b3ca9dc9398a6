//! Five thousand agents against one registration server on this machine: enrolling, reporting, staying, and all coming back at
//! once after a restart.
//!
//! ```text
//!  this process: 5,000 machines, each with its own key and connection ◀── TLS, 127.0.0.1 ──▶ the server, a process of its own
//!       └──────────── /proc/PID of the server: memory, processor time ──────────────┘
//! ```
//!
//! The machines are the machine's side of the link as it is shipped, without an agent behind it. Both processes share the
//! machine's cores, and making five thousand keys and shaking hands costs the machines as much as the server: what is measured
//! for all of them together is a lower bound of what the server takes. In the storm everyone comes at once, and
//! again after the pause that an agent makes.

use std::collections::BTreeSet;
use std::error::Error;
use std::io::{BufRead as _, BufReader, Write as _};
use std::net::SocketAddr;
use std::path::Path;
use std::process::{Child, ChildStdin, Command, Stdio};
use std::sync::Arc;
use std::time::{Duration, Instant};

use reveille_core::model::stage::Stage;
use reveille_core::model::time::Time;
use reveille_node::link::{Carrier, Credential, Enrolment, Link, LinkError, Session};
use reveille_node::pause::Pause;
use reveille_node::pins::Pins;
use reveille_node::target::Endpoint;
use reveille_registrar::registry::Settings;
use reveille_registrar::server::admin::{Answer, Ask, ask};
use reveille_registrar::server::{Limits, Setup, start};
use reveille_wire::agent::frame::{Heartbeat, Hello, StageReport, StageStep};
use reveille_wire::agent::text::Word;
use reveille_wire::agent::{AgentFrame, Facts, Identity, Role, Secret, ServerFrame, StageWord};
use tokio::sync::{Semaphore, watch};
use tokio::task::JoinSet;

/// Says that this process is to be the server, and with which folder and address.
const SERVER: &str = "REVEILLE_BENCH_SERVER";
/// Machines that shake hands at the same time.
const AT_ONCE: usize = 64;
/// Each machine says this many times how far it is.
const REPORTS: u64 = 5;
/// How long they stay, with a heartbeat every 15 s.
const STAY: Duration = Duration::from_secs(45);
const HEARTBEAT: Duration = Duration::from_secs(15);
/// An agent that is not back by then does not come back.
const BACK_WITHIN: Duration = Duration::from_secs(300);
/// The kernel's unit of processor time in /proc/PID/stat (USER_HZ).
const TICKS_PER_S: f64 = 100.0;

type Failed = Box<dyn Error + Send + Sync>;

/// Whether this process was started to be the server; then it has been that.
pub(crate) fn was_server() -> bool {
    let Ok(told) = std::env::var(SERVER) else { return false };
    if let Err(error) = serve(&told) {
        eprintln!("the server could not be: {error}");
    }
    true
}

fn serve(told: &str) -> Result<(), Box<dyn Error>> {
    let (address, directory) = told.split_once(' ').ok_or("no address")?;
    let setup = Setup {
        listen: address.parse()?,
        names: Vec::new(),
        directory: directory.into(),
        pools: BTreeSet::from([("bench".into(), "workers".into())]),
        settings: Settings::default(),
        limits: Limits::default(),
        version: env!("CARGO_PKG_VERSION"),
    };
    let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build()?;
    runtime.block_on(async move {
        let server = start(setup).await?;
        println!("{} {}", server.address, server.pins.join(","));
        let (stop, stopped) = watch::channel(false);
        let mut heard = server.heard;
        tokio::spawn(async move { while heard.recv().await.is_some() {} });
        std::thread::spawn(move || {
            // The process that started this one closes its input to end it.
            drop(std::io::stdin().lines().next());
            stop.send_replace(true);
        });
        server.run.until(stopped).await;
        Ok(())
    })
}

struct Server {
    child: Child,
    input: Option<ChildStdin>,
    address: SocketAddr,
    pins: Pins,
}

impl Server {
    fn start(address: &str, directory: &Path) -> Result<Self, Failed> {
        let mut command = Command::new(std::env::current_exe()?);
        command
            .env(SERVER, format!("{address} {}", directory.display()))
            .stdin(Stdio::piped())
            .stdout(Stdio::piped());
        let mut child = command.spawn()?;
        let input = child.stdin.take();
        let mut line = String::new();
        BufReader::new(child.stdout.take().ok_or("no output")?).read_line(&mut line)?;
        let (address, pins) = line.trim().split_once(' ').ok_or("the server said nothing")?;
        let pins = pins.split(',').map(str::parse).collect::<Result<_, _>>()?;
        Ok(Self { address: address.parse()?, pins: Pins::new(pins)?, child, input })
    }

    fn stop(mut self) -> Result<(), Failed> {
        if let Some(mut input) = self.input.take() {
            input.write_all(b"\n")?;
        }
        self.child.wait()?;
        Ok(())
    }

    fn link(&self) -> Link {
        let server = Endpoint { host: self.address.ip().to_string(), port: self.address.port() };
        Link { server, pins: self.pins.clone() }
    }

    /// Seconds of processor time so far.
    fn cpu_s(&self) -> Result<f64, Failed> {
        let stat = std::fs::read_to_string(format!("/proc/{}/stat", self.child.id()))?;
        let after = stat.rsplit_once(')').ok_or("no name in stat")?.1;
        let fields: Vec<f64> = after.split_whitespace().filter_map(|field| field.parse().ok()).collect();
        // Behind the name and the letter of the state: utime and stime are the 14th and 15th of all.
        let ticks = fields.get(10).zip(fields.get(11)).ok_or("no times in stat")?;
        Ok((ticks.0 + ticks.1) / TICKS_PER_S)
    }

    /// Resident, kilobytes.
    fn memory_kb(&self) -> Result<f64, Failed> {
        let status = std::fs::read_to_string(format!("/proc/{}/status", self.child.id()))?;
        let line = status.lines().find_map(|line| line.strip_prefix("VmRSS:")).ok_or("no VmRSS")?;
        Ok(line.trim().trim_end_matches(" kB").trim().parse()?)
    }
}

impl Drop for Server {
    fn drop(&mut self) {
        // One that was stopped is gone already.
        drop(self.child.kill());
    }
}

/// Measures with this many.
pub(crate) fn storm(machines: usize) -> Result<(), Box<dyn Error>> {
    println!("{machines} agents and one registration server, two processes on one machine");
    let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build()?;
    runtime.block_on(measure(machines)).map_err(|error| error as Box<dyn Error>)
}

async fn measure(machines: usize) -> Result<(), Failed> {
    let directory = tempfile::TempDir::new()?;
    let server = Server::start("127.0.0.1:0", directory.path())?;
    let empty_kb = server.memory_kb()?;
    let token = invite(directory.path(), machines).await?;
    let credentials = enrol(&server, machines, token).await?;
    let known_kb = server.memory_kb()?;
    let sessions = report(&server, &credentials).await?;
    let there_kb = server.memory_kb()?;
    let each = |kb: f64| kb / machines as f64;
    println!(
        "  memory      {:.1} MB empty, {:.1} MB when all are known ({:.1} KB each), {:.1} MB when all are there ({:.1} KB each)",
        empty_kb / 1000.0,
        known_kb / 1000.0,
        each(known_kb - empty_kb),
        there_kb / 1000.0,
        each(there_kb - empty_kb)
    );
    let sessions = stay(&server, sessions).await?;
    let address = server.address.to_string();
    let begun = Instant::now();
    server.stop()?;
    let server = Server::start(&address, directory.path())?;
    println!(
        "  restart     {:.2} s until it listens again, {} machines read back",
        begun.elapsed().as_secs_f64(),
        machines
    );
    drop(sessions);
    come_back(&server, &credentials).await?;
    server.stop()
}

async fn invite(directory: &Path, machines: usize) -> Result<Secret, Failed> {
    let question = Ask::Invite {
        roster: None,
        pool: "workers".into(),
        roles: BTreeSet::from([Role::Worker]),
        machine: None,
        reimage: None,
        ttl_s: 3600,
        uses: u32::try_from(machines)?,
    };
    match ask(directory, &question).await? {
        Answer::Invited(invited) => Ok(invited.token),
        other => Err(format!("{other:?}").into()),
    }
}

fn hello(number: usize) -> Hello {
    let word = |kind: &str| Word::cut(&format!("{kind}-{number:08}"));
    Hello {
        protocol: 1,
        identity: Identity {
            instance_id: Some(word("instance")),
            machine_id: Some(Word::cut(&format!("feed0000000040008000{number:012}"))),
            system_uuid: Some(Word::cut(&format!("c0ffee00-0000-4000-8000-{number:012}"))),
            boot_id: word("boot"),
        },
        facts: Facts { hostname: word("w"), ..Facts::default() },
        plan: None,
        joined: true,
    }
}

async fn enrol(server: &Server, machines: usize, token: Secret) -> Result<Vec<Arc<Credential>>, Failed> {
    let (link, token) = (server.link(), Arc::new(token));
    let (begun, cpu) = (Instant::now(), server.cpu_s()?);
    let room = Arc::new(Semaphore::new(AT_ONCE));
    let mut tasks = JoinSet::new();
    for number in 0..machines {
        let (link, token, permit) = (link.clone(), token.clone(), room.clone().acquire_owned().await?);
        tasks.spawn(async move {
            let hello = hello(number);
            let enrolment = Enrolment::new(hello.identity, hello.facts, None)?;
            let taken = enrolment
                .ask(&link, &token, Time::from_ms(0))
                .await
                .map(|(credential, _)| (number, credential));
            drop(permit);
            taken
        });
    }
    let mut credentials = std::collections::BTreeMap::new();
    while let Some(taken) = tasks.join_next().await {
        let (number, credential) = taken??;
        credentials.insert(number, Arc::new(credential));
    }
    told("enrolments", machines as f64, begun, server.cpu_s()? - cpu, machines);
    Ok(credentials.into_values().collect())
}

async fn open(link: &Link, credential: &Credential, number: usize) -> Result<Session, LinkError> {
    link.session_over(Carrier::WebSocket, credential, hello(number)).await
}

async fn report(server: &Server, credentials: &[Arc<Credential>]) -> Result<Vec<Session>, Failed> {
    let link = server.link();
    let (begun, cpu) = (Instant::now(), server.cpu_s()?);
    let mut sessions = all_open(&link, credentials).await?;
    told("sessions", sessions.len() as f64, begun, server.cpu_s()? - cpu, sessions.len());
    let (begun, cpu, count) = (Instant::now(), server.cpu_s()?, sessions.len());
    for seq in 1..=REPORTS {
        for session in &sessions {
            let stage = StageWord(Stage::Runtime);
            let step = if seq % 2 == 1 { StageStep::Entered } else { StageStep::Left };
            let stamp = Word::from("2026-01-01T00:00:00Z");
            session
                .say(AgentFrame::Stage(StageReport { seq, stage, step, attempts: 1, error: None, stamp }))
                .await?;
        }
    }
    for session in &mut sessions {
        let mut kept = 0;
        while kept < REPORTS {
            kept += u64::from(matches!(session.next().await?, ServerFrame::Ack { .. }));
        }
    }
    told("reports", (count as u64 * REPORTS) as f64, begun, server.cpu_s()? - cpu, count * REPORTS as usize);
    Ok(sessions)
}

async fn all_open(link: &Link, credentials: &[Arc<Credential>]) -> Result<Vec<Session>, Failed> {
    let room = Arc::new(Semaphore::new(AT_ONCE));
    let mut tasks = JoinSet::new();
    for (number, credential) in credentials.iter().enumerate() {
        let (link, credential, permit) =
            (link.clone(), credential.clone(), room.clone().acquire_owned().await?);
        tasks.spawn(async move {
            let opened = open(&link, &credential, number).await;
            drop(permit);
            opened
        });
    }
    let mut sessions = Vec::new();
    while let Some(opened) = tasks.join_next().await {
        sessions.push(opened??);
    }
    Ok(sessions)
}

/// Everyone says now and then that he lives.
async fn stay(server: &Server, sessions: Vec<Session>) -> Result<Vec<Session>, Failed> {
    let (begun, cpu) = (Instant::now(), server.cpu_s()?);
    while begun.elapsed() < STAY {
        let round = Instant::now();
        for chunk in sessions.chunks(sessions.len().div_ceil(50).max(1)) {
            for session in chunk {
                session
                    .say(AgentFrame::Heartbeat(Heartbeat { stage: None, joined: true, account: None }))
                    .await?;
            }
            tokio::time::sleep(HEARTBEAT / 60).await;
        }
        tokio::time::sleep(HEARTBEAT.saturating_sub(round.elapsed())).await;
    }
    let share = (server.cpu_s()? - cpu) / begun.elapsed().as_secs_f64() * 100.0;
    println!(
        "  staying     {share:.1} % of a core for {} heartbeats each {} s",
        sessions.len(),
        HEARTBEAT.as_secs()
    );
    Ok(sessions)
}

/// Everyone comes at once, and again after an agent's pause when he does not get in.
async fn come_back(server: &Server, credentials: &[Arc<Credential>]) -> Result<(), Failed> {
    let (link, begun, cpu) = (server.link(), Instant::now(), server.cpu_s()?);
    let mut tasks = JoinSet::new();
    for (number, credential) in credentials.iter().enumerate() {
        let (link, credential) = (link.clone(), credential.clone());
        tasks.spawn(async move {
            let (mut failures, mut pause) = (0_u32, Pause::default());
            loop {
                match open(&link, &credential, number).await {
                    Ok(session) => return Ok((session, failures, begun.elapsed())),
                    Err(error) if begun.elapsed() > BACK_WITHIN => return Err(error),
                    Err(error) => {
                        failures += 1;
                        tokio::time::sleep(pause.next(error.retry_after_s())).await;
                    }
                }
            }
        });
    }
    let (mut sessions, mut failures, mut times) = (Vec::new(), 0, Vec::new());
    while let Some(back) = tasks.join_next().await {
        let (session, failed, after) = back??;
        sessions.push(session);
        failures += failed;
        times.push(after);
    }
    times.sort();
    told("storm", sessions.len() as f64, begun, server.cpu_s()? - cpu, sessions.len());
    let at = |share: usize| {
        times.get(times.len() * share / 100).or(times.last()).map_or(0.0, Duration::as_secs_f64)
    };
    println!(
        "              half are back after {:.1} s, all after {:.1} s, {failures} attempts failed; {:.1} MB",
        at(50),
        at(100),
        server.memory_kb()? / 1000.0
    );
    Ok(())
}

fn told(what: &str, count: f64, begun: Instant, cpu_s: f64, of: usize) {
    let s = begun.elapsed().as_secs_f64();
    println!(
        "  {what:<11} {:7.0} /s ({of} in {s:.1} s), {:.2} ms of the server's processor time each",
        count / s,
        cpu_s * 1000.0 / of as f64
    );
}
