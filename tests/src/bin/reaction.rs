//! How long after its deadline the first of many repairs reaches the cloud, on the rig: 200 nodes on a real API server, 60 of
//! which fall silent at once, instances behind an EC2-compatible API, and the program as it is shipped.
//!
//! ```text
//!  leases end ─▶ the real controller manager marks the nodes ─▶ the incident opens ── notReady ──▶ the deadline
//!                                               RebootInstances arrives at the proxy ─ the figure ─┘
//! ```
//!
//! Each round silences other machines, and gives one figure: only one repair goes on at a time. A machine of the rounds is as
//! well again as it was when it was silenced. The limits are the defaults but for two: more than four repairs an hour are
//! allowed, since each round needs one, and the timing is the end-to-end run's, with a deadline of seconds. No machine has an
//! agent, and rejoin is off: it would come first, and wait as long again for an agent that never answers. The arrival is
//! read from the proxy every few milliseconds, by the clock that the ledger's times are from. Fails when a figure is over
//! [`LIMIT`].

use std::fs;
use std::path::Path;
use std::process::ExitCode;
use std::time::{Duration, SystemTime, UNIX_EPOCH};

use anyhow::{Context, Error, Result, ensure};
use reveille_core::effect::Call;
use reveille_core::model::id::IncidentId;
use reveille_core::record::Record;
use reveille_tests::lab::Lab;
use reveille_tests::process;
use reveille_tests::reveille::{Place, Reveille, Running};
use reveille_tests::rig::{Ec2Instance, Rig};
use reveille_tests::roster::Roster;
use reveille_tests::wait::{s, until};

const NODES: usize = 200;
const SILENT: usize = 60;
const ROUNDS: usize = 5;
/// The rosters' deadline of a node that is not Ready.
const NOT_READY: Duration = Duration::from_secs(20);
/// Between two looks at the proxy's counts.
const LOOK: Duration = Duration::from_millis(5);
/// The longest that the first act may come after its deadline.
const LIMIT: Duration = Duration::from_millis(250);
const REBOOT: &str = "POST RebootInstances";
const SILENCE: &str = "reveille.rig/silent";

fn main() -> ExitCode {
    let name = format!("reaction-{}", std::process::id());
    let work = std::env::temp_dir().join(&name);
    let measured = measure(&name, &work);
    process::terminate_all();
    Rig::take_down(&name);
    match measured {
        Ok(true) => {
            let _ = fs::remove_dir_all(&work);
            ExitCode::SUCCESS
        }
        Ok(false) => ExitCode::FAILURE,
        Err(error) => {
            eprintln!("{error:#}; what was written is kept in {}", work.display());
            ExitCode::FAILURE
        }
    }
}

fn measure(name: &str, work: &Path) -> Result<bool> {
    fs::create_dir_all(work).context("no folder to work in")?;
    let mut lab = Lab::open(name, Reveille::build()?, work)?;
    lab.begin("reaction");
    lab.rig.run(&["start", "ec2"])?;
    let names: Vec<String> = (1..=NODES).map(|number| format!("re-{number}")).collect();
    let names: Vec<&str> = names.iter().map(String::as_str).collect();
    let mut instances = Vec::new();
    for some in names.chunks(50) {
        instances.extend(lab.rig.instances(some, &[])?);
        lab.rig.run(&[&["instance", "node"], some].concat())?;
    }
    let roster = Roster::new("reaction").on_ec2(&lab.rig.ec2()?).set("rejoin", "off").set("reboot", "act");
    let roster = roster.set("atOnce", "1").set("freezeAbove", "30%").pool("workers");
    let place = lab.place(&[&roster])?;
    let running = lab.reveille.run(&place, &[])?;
    let judged = rounds(&lab, &place, &instances);
    end(running, judged)
}

fn end(running: Running, judged: Result<bool>) -> Result<bool> {
    let judged = judged?;
    ensure!(running.stop()? == 0, "run did not end well");
    Ok(judged)
}

fn rounds(lab: &Lab, place: &Place, instances: &[Ec2Instance]) -> Result<bool> {
    until("each node to answer", s(180), || {
        let (_, status) = lab.reveille.status(place)?;
        ensure!(usize::try_from(status.summary.answer)? == NODES, "{:?}", status.summary);
        Ok::<_, Error>(())
    })?;
    let mut figures = Vec::new();
    for round in 0..ROUNDS {
        let from = round * (NODES - SILENT) / ROUNDS;
        let silent: Vec<&str> = instances[from..from + SILENT].iter().map(|one| one.node.as_str()).collect();
        let figure = first_act(lab, place, &silent).with_context(|| format!("round {}", round + 1))?;
        println!("round {}: {} ms after the deadline, {}", round + 1, figure.sent_ms, figure.parts());
        figures.push(figure.sent_ms);
        all_well(lab, place, &silent)?;
    }
    figures.sort_unstable();
    let most = figures.last().copied().unwrap_or_default();
    let middle = figures.get(figures.len() / 2).copied().unwrap_or_default();
    let limit = i64::try_from(LIMIT.as_millis())?;
    println!(
        "first act of {SILENT} faults in {NODES} nodes: median {middle} ms, at most {most} ms in {ROUNDS} rounds; the limit is {limit} ms"
    );
    Ok(most <= limit)
}

/// How long after its deadline what happened, milliseconds.
struct Figure {
    intended_ms: i64,
    sent_ms: i64,
    ended_ms: i64,
}

impl Figure {
    fn parts(&self) -> String {
        format!("decided after {} ms, answered after {} ms", self.intended_ms, self.ended_ms)
    }
}

/// Silences these nodes and waits for the first reboot.
fn first_act(lab: &Lab, place: &Place, silent: &[&str]) -> Result<Figure> {
    let before = place.ledger()?.records.len();
    lab.proxy.reset_calls()?;
    mark(lab, silent, &format!("{SILENCE}=true"))?;
    let end = SystemTime::now() + s(180);
    let sent = loop {
        if lab.proxy.calls()?.of("ec2", REBOOT) > 0 {
            break now_ms()?;
        }
        ensure!(SystemTime::now() < end, "nothing was rebooted");
        std::thread::sleep(LOOK);
    };
    until("the call's answer in the ledger", s(30), || {
        let records = place.ledger()?.records;
        figure(&records[before..], sent).context("it is not there yet")
    })
}

fn now_ms() -> Result<i64> {
    Ok(i64::try_from(SystemTime::now().duration_since(UNIX_EPOCH)?.as_millis())?)
}

/// What the newest records say of the first reboot.
fn figure(records: &[Record], sent: i64) -> Option<Figure> {
    let (decided, intent, incident) = records.iter().find_map(|record| match record {
        Record::Intended { at, intent, incident, call: Call::Reboot(_), .. } => {
            Some((*at, *intent, *incident))
        }
        _ => None,
    })?;
    let opened_as = |of: IncidentId| {
        records.iter().find_map(|record| match record {
            Record::Opened { at, incident, .. } if *incident == of => Some(*at),
            _ => None,
        })
    };
    let ended = records.iter().find_map(|record| match record {
        Record::Ended { at, intent: of, .. } if *of == intent => Some(*at),
        _ => None,
    })?;
    let deadline = opened_as(incident)?.ms + i64::try_from(NOT_READY.as_millis()).ok()?;
    let after = |at: i64| at - deadline;
    Some(Figure { intended_ms: after(decided.ms), sent_ms: after(sent), ended_ms: after(ended.ms) })
}

/// The kubelets of these nodes are heard again, and every incident closes.
fn all_well(lab: &Lab, place: &Place, silent: &[&str]) -> Result<()> {
    mark(lab, silent, &format!("{SILENCE}-"))?;
    until("every incident to close", s(180), || {
        let open = place.ledger()?.incidents.iter().filter(|incident| incident.verdict.is_none()).count();
        ensure!(open == 0, "{open} are open");
        Ok::<_, Error>(())
    })?;
    // What was frozen a moment ago settles, as the roster has it.
    std::thread::sleep(s(10));
    Ok(())
}

/// What the rig's fault "node-silent" does, for many nodes with one call each to the API server's two kinds.
fn mark(lab: &Lab, nodes: &[&str], mark: &str) -> Result<()> {
    lab.kube.ctl(&[&["annotate", "node"], nodes, &["--overwrite", mark]].concat())?;
    let leases = ["-n", "kube-node-lease", "annotate", "lease"];
    lab.kube.ctl(&[&leases, nodes, &["--overwrite", mark]].concat())?;
    Ok(())
}
