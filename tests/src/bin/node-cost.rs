//! What Reveille costs a node: the size of its program, the time from the first look to a Ready node beside bare kubeadm, and
//! what an agent takes that has nothing to do.
//!
//! Real nodes of a rig of its own, fresh for each join. `kubeadm join` and `reveille join` take turns in the same run, and the
//! program that was first in one pair is second in the next. Memory and processor time are the kernel's figures of the agent's
//! process. The program is the one in `REVEILLE_NODE_BIN`. Nothing here fails on a slow machine; the reader of the table judges.

use std::fs;
use std::path::Path;
use std::process::ExitCode;
use std::time::{Duration, Instant};

use anyhow::{Context, Error, Result, ensure};
use reveille_tests::agent::{agent, invitation, plans};
use reveille_tests::lab::Lab;
use reveille_tests::node::Node;
use reveille_tests::process::{self, Background};
use reveille_tests::reveille::Reveille;
use reveille_tests::rig::Rig;
use reveille_tests::roster::Roster;
use reveille_tests::wait::{s, until};

/// Joins of each kind; the first pair warms the machine up and is not counted.
const PAIRS: usize = 8;
/// How long an agent is watched that has nothing to do, after it has been left alone for as long.
const IDLE: Duration = Duration::from_secs(60);
/// The kernel's unit of processor time in /proc/PID/stat (USER_HZ).
const TICK_MS: u64 = 10;

fn main() -> ExitCode {
    let name = format!("node-cost-{}", std::process::id());
    let work = std::env::temp_dir().join(&name);
    let measured = measure(&name, &work);
    process::terminate_all();
    Rig::take_down(&name);
    if let Err(error) = measured {
        eprintln!("{error:#}; what was written is kept in {}", work.display());
        return ExitCode::FAILURE;
    }
    let _ = fs::remove_dir_all(&work);
    ExitCode::SUCCESS
}

fn measure(name: &str, work: &Path) -> Result<()> {
    fs::create_dir_all(work).context("no folder to work in")?;
    let mut lab = Lab::open(name, Reveille::build()?, work)?;
    lab.begin("node-cost");
    size(lab.reveille.on_machines())?;
    joins(&lab)?;
    idle(&mut lab)
}

fn size(program: &Path) -> Result<()> {
    let bytes = fs::read(program).context("cannot read the program")?;
    // The loader that a program asks for stands within its first page.
    let first = bytes.get(..4096).unwrap_or_default();
    let loader = first.windows(8).any(|piece| piece == b"ld-linux");
    let kib = u64::try_from(bytes.len() / 1024)?;
    println!("program: {:.1} MiB, {}", mib(kib), if loader { "dynamic" } else { "static" });
    Ok(())
}

/// From the start of the command to a Ready node, as the API server tells it.
fn joins(lab: &Lab) -> Result<()> {
    let (mut ours, mut bare) = (Vec::new(), Vec::new());
    for pair in 0..PAIRS {
        let order = if pair % 2 == 0 { [true, false] } else { [false, true] };
        for is_ours in order {
            let name = format!("{}-{pair}", if is_ours { "ours" } else { "bare" });
            let took = join(lab, &name, is_ours).context(name)?;
            if pair > 0 {
                if is_ours { &mut ours } else { &mut bare }.push(took);
            }
        }
    }
    println!("joins: first look to Ready, {} of each, one after the other, in turns", ours.len());
    let (ours, bare) = (middle("reveille join", &mut ours), middle("kubeadm join", &mut bare));
    println!("  ratio         {:.2}", ours / bare);
    Ok(())
}

fn middle(name: &str, took: &mut [Duration]) -> f64 {
    took.sort_unstable();
    let at = |index: usize| took.get(index).map_or(0.0, Duration::as_secs_f64);
    let last = took.len().saturating_sub(1);
    println!("  {name:13} median {:5.2} s, {:5.2} to {:5.2} s", at(last / 2), at(0), at(last));
    at(last / 2)
}

fn join(lab: &Lab, name: &str, is_ours: bool) -> Result<Duration> {
    let node = Node::up(&lab.rig, lab.reveille.on_machines(), name)?;
    let config = node.file("join.yaml").display().to_string();
    let mut command = if is_ours {
        node.join_command(&["--stay", "1s"])
    } else {
        node.command(&["kubeadm", "join", "--config", &config])
    };
    let said = node.file("bench.log");
    let log = fs::File::create(&said)?;
    command.stdout(log.try_clone()?).stderr(log);
    let began = Instant::now();
    let mut process = Background::start(command)?;
    until("the node to be Ready", s(120), || {
        ensure!(lab.kube.is_ready(name)?, "it is not: {}", fs::read_to_string(&said)?);
        Ok::<_, Error>(())
    })?;
    let took = began.elapsed();
    until("the command to end", s(60), || {
        ensure!(process.ended().is_some(), "it runs");
        Ok::<_, Error>(())
    })?;
    node.down()?;
    Ok(took)
}

/// What the kernel tells of a process.
#[derive(Clone, Copy, Debug)]
struct Used {
    resident_kib: u64,
    most_kib: u64,
    processor_ms: u64,
    wakeups: u64,
}

impl Used {
    fn of(id: u32) -> Result<Self> {
        let mut wakeups = 0;
        for task in fs::read_dir(format!("/proc/{id}/task"))? {
            let status = fs::read_to_string(task?.path().join("status"))?;
            wakeups += field(&status, "voluntary_ctxt_switches:")?;
        }
        let status = fs::read_to_string(format!("/proc/{id}/status"))?;
        let stat = fs::read_to_string(format!("/proc/{id}/stat"))?;
        let after: Vec<&str> = stat.rsplit(')').next().unwrap_or_default().split_whitespace().collect();
        let ticks = |at: usize| after.get(at).and_then(|text| text.parse::<u64>().ok()).context("no ticks");
        let processor_ms = (ticks(11)? + ticks(12)?) * TICK_MS;
        let (resident_kib, most_kib) = (field(&status, "VmRSS:")?, field(&status, "VmHWM:")?);
        Ok(Self { resident_kib, most_kib, processor_ms, wakeups })
    }
}

fn field(text: &str, name: &str) -> Result<u64> {
    let line = text.lines().find_map(|line| line.strip_prefix(name));
    let number = line.and_then(|line| line.split_whitespace().next()?.parse().ok());
    number.with_context(|| format!("no {name}"))
}

/// An agent whose node is well, linked to its server.
fn idle(lab: &mut Lab) -> Result<()> {
    let name = "idle-1";
    let roster = Roster::new("node-cost").pool("workers");
    let machine = lab.machines(&roster, "workers", &[name], &[])?.remove(0);
    let place = lab.place(&[&roster])?;
    let node = Node::up(&lab.rig, lab.reveille.on_machines(), name)?;
    let plans = plans(&[(&node, "workers")])?.display().to_string();
    let running = lab.reveille.run(&place, &["--listen", "127.0.0.1:0", "--plans", &plans])?;
    let (server, pin, token) = invitation(lab, &place, "workers")?;
    fs::write(node.file("token"), &token)?;
    fs::set_permissions(node.file("token"), std::os::unix::fs::PermissionsExt::from_mode(0o600))?;
    let file = node.file("token").display().to_string();
    let program = lab.reveille.on_machines().display().to_string();
    let words = ["--server", &server, "--ca-pin", &pin, "--token-file", &file, "--instance-id", &machine.id];
    let mut process = agent(&node, &program, &words)?;
    until("the agent to see that its node stays", s(120), || {
        let log = fs::read_to_string(node.file("agent.log"))?;
        ensure!(log.contains("has stayed"), "it does not: {log}");
        Ok::<_, Error>(())
    })?;
    let id = node.process("reveille")?.context("there is no agent")?;
    std::thread::sleep(IDLE);
    let before = Used::of(id)?;
    std::thread::sleep(IDLE);
    let after = Used::of(id)?;
    println!("agent: its node is well, its server is there; {} s", IDLE.as_secs());
    println!("  resident      {:.1} MiB, {:.1} MiB at most", mib(after.resident_kib), mib(after.most_kib));
    println!("  processor     {:.2} ms in each second", per_s(after.processor_ms - before.processor_ms));
    println!("  woken         {:.1} times in each second", per_s(after.wakeups - before.wakeups));
    node.kill(&["reveille"])?;
    process.kill();
    running.stop()?;
    node.down()
}

#[expect(clippy::cast_precision_loss, reason = "figures of a table")]
fn mib(kib: u64) -> f64 {
    kib as f64 / 1024.0
}

#[expect(clippy::cast_precision_loss, reason = "figures of a table")]
fn per_s(count: u64) -> f64 {
    count as f64 / IDLE.as_secs_f64()
}
