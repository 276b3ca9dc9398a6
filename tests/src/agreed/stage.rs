//! The rig's side: the fleet is made, the built program runs, the file's deeds are done at their times, and what came of it is
//! held against the simulator's account.
//!
//! ```text
//!  fleet, roster ─▶ reveille run ─▶ deeds at their times, backstage ─▶ the file's end
//!                                                      ─▶ until both accounts are the same, and for a while longer
//! ```
//!
//! Several files can be played at the same time: each has machines, roster and ledger of its own, and a thread; one process of
//! Reveille has all the rosters, as it has in operation. On a machine that others use everything may take a while longer than
//! in the simulator; what must not happen is that it ends otherwise, or goes on when it should not.

use std::collections::BTreeMap;
use std::sync::{Mutex, PoisonError};
use std::thread;
use std::time::{Duration, Instant};

use anyhow::{Context, Result, anyhow, bail, ensure};
use reveille_core::model::id::PortId;
use reveille_core::model::incident::{FaultKind, MachineKey, Subject};
use reveille_core::model::time::Span;
use reveille_sim::scenario::{Happening, Happens};
use reveille_sim::world::fault::Fault;
use reveille_sim::world::layout::Layout;
use reveille_wire::report::Answers;
use serde_json::Value;

use super::account::{Account, FinalState, Names, Prospect};
use super::backstage::Guest;
use super::host::{Host, Kind};
use super::{File, deeds, given, sim};
use crate::calls::Proxy;
use crate::kube::Kube;
use crate::lab::Lab;
use crate::reveille::{Place, Reveille, Running};
use crate::rig::{Machine, Rig};
use crate::roster::Roster;
use crate::wait::until;

/// Between two rounds of deeds and of those behind the scenes.
const PERIOD: Duration = Duration::from_secs(1);
/// So much later than in the simulator it may be.
const LATER: Duration = Duration::from_secs(60);
/// Logging in and reading everything once, for all rosters of one process.
const FIRST_READING_WITHIN: Duration = Duration::from_secs(120);
/// For so long both must stay the same.
const STAYS: Duration = Duration::from_secs(6);

/// Reveille is to be killed.
pub(super) struct Dying {
    /// When one of these has hit; at once when there are none.
    pub(super) faults: Vec<&'static str>,
    /// No process runs for so long.
    pub(super) down: Duration,
    /// It was killed, and another starts then.
    pub(super) rises_at: Option<Instant>,
}

/// One file on the rig.
pub(super) struct Stage<'a> {
    pub(super) rig: &'a Rig,
    pub(super) reveille: &'a Reveille,
    pub(super) host: Box<dyn Host + 'a>,
    pub(super) kube: Kube,
    pub(super) proxy: Proxy,
    pub(super) place: Place,
    pub(super) prefix: String,
    pub(super) layout: Layout,
    pub(super) guests: Vec<Guest>,
    /// Machines that a pool's owner starts beyond the pool's size.
    pub(super) started: BTreeMap<String, usize>,
    /// Machines may be rebooted, started, deleted.
    pub(super) lives: bool,
    /// Ports may lose their group.
    pub(super) cuts: bool,
    /// The API server does not answer us either.
    pub(super) deaf: bool,
    /// Nodes whose pods cannot be reached.
    pub(super) unreachable: Vec<String>,
    /// Faults of the proxy that begin by themselves: when, with what arguments, and about whom.
    pub(super) due_faults: Vec<(Instant, &'static str, Value, Vec<String>)>,
    /// Faults that end by themselves.
    pub(super) lifts: Vec<(Instant, String)>,
    pub(super) dying: Option<Dying>,
    running: &'a Mutex<Option<Running>>,
    owners: BTreeMap<String, String>,
}

/// What is known of a file before it is played.
struct Part {
    name: String,
    kind: Kind,
    happenings: Vec<Happening>,
    layout: Layout,
    lasts: Duration,
    expected: Account,
    prefix: String,
    roster: Roster,
    guests: Vec<Guest>,
    neighbours: Vec<Machine>,
}

/// Plays files at the same time and holds each against the simulator.
///
/// # Errors
/// When the accounts of one differ: the lines that only one stage has.
pub fn play(lab: &mut Lab, files: &[File]) -> Result<()> {
    let Some(first) = files.first() else { return Ok(()) };
    let kind = Kind::of(first.scenario()?.layout())?;
    if kind == Kind::Ec2 {
        lab.rig.run(&["start", "ec2"])?;
    }
    let mut parts = Vec::new();
    for some in files.chunks(kind.makes_at_once()) {
        for part in made(lab, some) {
            let mut part = part?;
            let own = part.guests.iter().map(|guest| guest.made.machine.clone());
            lab.adopt(own.chain(std::mem::take(&mut part.neighbours)).collect());
            parts.push(part);
        }
    }
    let rosters: Vec<&Roster> = parts.iter().map(|part| &part.roster).collect();
    let place = lab.place(&rosters)?;
    for (part, file) in parts.iter().zip(&place.rosters) {
        given::is_the_same(file, &part.layout).with_context(|| part.name.clone())?;
    }
    let running = lab.start(&place)?;
    has_read(&place, parts.len())?;
    let running = Mutex::new(Some(running));
    let played: Vec<(String, Vec<Machine>, Result<()>)> = {
        let (rig, reveille, running, place) = (&lab.rig, &lab.reveille, &running, &place);
        thread::scope(|scope| {
            let threads: Vec<_> = parts
                .into_iter()
                .map(|part| {
                    (part.name.clone(), scope.spawn(move || play_one(part, rig, reveille, running, place)))
                })
                .collect();
            let joined = threads.into_iter().map(|(name, thread)| match thread.join() {
                Ok((machines, ended)) => (name, machines, ended),
                Err(_) => (name, Vec::new(), Err(anyhow!("panicked"))),
            });
            joined.collect()
        })
    };
    let mut wrong = Vec::new();
    for (name, machines, ended) in played {
        lab.adopt(machines);
        if let Err(why) = ended {
            wrong.push(format!("{name}: {why:#}"));
        }
    }
    if let Some(running) = running.into_inner().unwrap_or_else(PoisonError::into_inner) {
        running.stop()?;
    }
    ensure!(wrong.is_empty(), "{}", wrong.join("\n"));
    Ok(())
}

/// Waits until each roster's cloud and cluster were read: in the simulator everything happens after that. On a busy machine a
/// deed was done before the first reading, and was history to the controller. Only the log of the process says what that process
/// has read: `reveille status` reads for itself.
fn has_read(place: &Place, rosters: usize) -> Result<()> {
    until("every source of every roster to be read", FIRST_READING_WITHIN, || {
        let log = std::fs::read_to_string(&place.log)?;
        let read = log.lines().filter(|line| line.contains(": first complete data roster=")).count();
        ensure!(read >= 2 * rosters, "{read} of {} sources are read", 2 * rosters);
        Ok(())
    })
}

/// The machines of these files, made at the same time.
fn made(lab: &Lab, files: &[File]) -> Vec<Result<Part>> {
    let (rig, router) = (&lab.rig, lab.router_line());
    thread::scope(|scope| {
        let threads: Vec<_> = files.iter().map(|file| scope.spawn(|| part(rig, &router, file))).collect();
        let joined = threads.into_iter().zip(files).map(|(thread, file)| {
            let part = thread.join().unwrap_or_else(|_| Err(anyhow!("panicked")));
            part.with_context(|| file.name.clone())
        });
        joined.collect()
    })
}

fn part(rig: &Rig, router: &str, file: &File) -> Result<Part> {
    let (scenario, happenings) = (file.scenario()?, file.happenings()?);
    let layout = scenario.layout().clone();
    let kind = Kind::of(&layout)?;
    deeds::can_be_done(&happenings, kind)?;
    ensure!(scenario.acts(), "the rig's Reveille acts; a file in which it only looks is not agreed");
    let expected = sim::account(&scenario)?;
    let prefix = scenario.number.to_lowercase();
    let roster = kind.place(given::roster(&prefix, &layout, router)?, rig)?;
    let made = given::fleet(rig, &prefix, &layout)?;
    let neighbours = given::neighbours(rig, &prefix, &layout)?;
    let lasts = Duration::from(scenario.ends());
    let guests = made.into_iter().map(Guest::joined).collect();
    let name = file.name.clone();
    Ok(Part { name, kind, happenings, layout, lasts, expected, prefix, roster, guests, neighbours })
}

fn play_one(
    part: Part,
    rig: &Rig,
    reveille: &Reveille,
    running: &Mutex<Option<Running>>,
    place: &Place,
) -> (Vec<Machine>, Result<()>) {
    let strikes = |is: &dyn Fn(&Fault) -> bool| {
        let faults = part.happenings.iter().filter_map(|happening| match &happening.what {
            Happens::Strikes(faults) => Some(faults),
            _ => None,
        });
        faults.flatten().any(is)
    };
    let network = |fault: &Fault| {
        let routes = matches!(fault, Fault::DuplicateRoute(_) | Fault::MissingRoute(_) | Fault::PairLost(_));
        let ports =
            matches!(fault, Fault::GroupLost { .. } | Fault::SecondPort(_) | Fault::PortSecurityOff(_));
        routes
            || ports
            || matches!(fault, Fault::RouteBroken(_) | Fault::Call(_))
            || fault.machine().is_none()
    };
    let starts = part
        .happenings
        .iter()
        .any(|happening| matches!(happening.what, Happens::Starts { .. } | Happens::KubeletsRestart(_)));
    let host = match part.kind.host(rig, &part.prefix, &part.layout) {
        Ok(host) => host,
        Err(why) => return (part.guests.into_iter().map(|guest| guest.made.machine).collect(), Err(why)),
    };
    let own = part.roster.name().to_owned();
    let stage = Stage {
        rig,
        reveille,
        host,
        kube: Kube::new(&rig.facts.kubernetes),
        proxy: Proxy::new(&rig.facts.control),
        place: Place { rosters: own_roster(place, &own), name: own, ..place.clone() },
        lives: starts || strikes(&|fault| !network(fault)),
        cuts: strikes(&|fault| matches!(fault, Fault::GroupLost { .. } | Fault::PortSecurityOff(_))),
        prefix: part.prefix,
        layout: part.layout,
        guests: part.guests,
        started: BTreeMap::new(),
        deaf: false,
        unreachable: Vec::new(),
        due_faults: Vec::new(),
        lifts: Vec::new(),
        dying: None,
        running,
        owners: BTreeMap::new(),
    };
    stage.play(part.happenings, part.lasts, &part.expected, place)
}

fn own_roster(place: &Place, name: &str) -> Vec<std::path::PathBuf> {
    let own = |file: &&std::path::PathBuf| file.file_stem().is_some_and(|stem| stem == name);
    place.rosters.iter().filter(own).cloned().collect()
}

impl Stage<'_> {
    /// Plays it; gives back the machines that stand now, and how it ended.
    fn play(
        mut self,
        happenings: Vec<Happening>,
        lasts: Duration,
        expected: &Account,
        all: &Place,
    ) -> (Vec<Machine>, Result<()>) {
        let ended = self
            .perform(happenings, lasts, all)
            .and_then(|()| self.come_to(expected, all))
            .and_then(|()| self.stay(expected, all));
        // Reveille is stopped next, and machines are taken down: the API server must answer every client then.
        let lifted = if self.deaf { self.rig.lift(&["api-hang"]) } else { Ok(()) };
        let ended = ended.and(lifted);
        (self.guests.into_iter().map(|guest| guest.made.machine).collect(), ended)
    }

    fn perform(&mut self, mut happenings: Vec<Happening>, lasts: Duration, all: &Place) -> Result<()> {
        let begun = Instant::now();
        happenings.sort_by_key(|happening| happening.at);
        let mut due = happenings.into_iter().peekable();
        loop {
            let passed_ms = Span::from(begun.elapsed()).ms;
            while let Some(happening) = due.next_if(|next| next.at.ms <= passed_ms) {
                if let Happens::Starts { names, pool, .. } = &happening.what {
                    *self.started.entry(pool.to_string()).or_default() += names.len();
                }
                self.happen(&happening.what).with_context(|| happening.text.clone())?;
            }
            self.round(all)?;
            if due.peek().is_none() && self.dying.is_none() && begun.elapsed() >= lasts {
                return Ok(());
            }
            thread::sleep(PERIOD);
        }
    }

    /// Waits until what came of it is what came of it in the simulator.
    fn come_to(&mut self, expected: &Account, all: &Place) -> Result<()> {
        let late = Instant::now() + LATER;
        loop {
            self.round(all)?;
            let account = self.account()?;
            if account == *expected {
                return Ok(());
            }
            if Instant::now() >= late {
                bail!("{}", differences(&account, expected));
            }
            thread::sleep(PERIOD);
        }
    }

    /// It stays so.
    fn stay(&mut self, expected: &Account, all: &Place) -> Result<()> {
        let end = Instant::now() + STAYS;
        while Instant::now() < end {
            self.round(all)?;
            let account = self.account()?;
            ensure!(account == *expected, "it was the same and went on: {}", differences(&account, expected));
            thread::sleep(PERIOD);
        }
        Ok(())
    }

    fn round(&mut self, all: &Place) -> Result<()> {
        self.die(all)?;
        let now = Instant::now();
        let (due, later) = std::mem::take(&mut self.due_faults).into_iter().partition(|(at, ..)| *at <= now);
        self.due_faults = later;
        let due: Vec<(Instant, &str, Value, Vec<String>)> = due;
        for (_, lie, arguments, about) in due {
            self.arm(lie, arguments, Some(&about))?;
        }
        let (over, lasting) = std::mem::take(&mut self.lifts).into_iter().partition(|(at, _)| *at <= now);
        self.lifts = lasting;
        for (_, fault) in over {
            if fault == "api-hang" {
                self.rig.lift(&[&fault])?;
                self.deaf = false;
            } else {
                self.proxy.disarm(&fault)?;
            }
        }
        self.backstage()
    }

    /// Kills Reveille when its moment has come, and starts another after a while.
    fn die(&mut self, all: &Place) -> Result<()> {
        let Some(dying) = &mut self.dying else { return Ok(()) };
        let mut running = self.running.lock().unwrap_or_else(PoisonError::into_inner);
        if let Some(at) = dying.rises_at {
            if at <= Instant::now() {
                *running = Some(self.reveille.run(all, &[])?);
                self.dying = None;
            }
            return Ok(());
        }
        let mut due = dying.faults.is_empty();
        for fault in &dying.faults {
            due |= self.proxy.hits(fault)? > 0;
        }
        if due {
            if let Some(running) = running.take() {
                running.kill();
            }
            dying.faults.iter().try_for_each(|fault| self.proxy.disarm(fault))?;
            dying.rises_at = Some(Instant::now() + dying.down);
        }
        Ok(())
    }

    fn account(&mut self) -> Result<Account> {
        for guest in self.guests.iter().filter(|guest| !guest.ended) {
            for port in self.host.ports(&guest.made.machine.id)? {
                self.owners.insert(port.id, guest.made.name.clone());
            }
        }
        let (mut ledger, final_state) = (self.place.ledger()?, self.final_state()?);
        ledger.incidents.retain(|incident| !self.is_of_another_file(&incident.subject));
        Ok(Account::new(&ledger, &final_state, self))
    }

    /// All files' nodes are in one Kubernetes cluster: where their cloud tells it, those of other files are strays to this one.
    fn is_of_another_file(&self, subject: &Subject) -> bool {
        let Subject::Machine(MachineKey::Node(name)) = subject else { return false };
        !self.has_guest(name.as_str())
    }

    fn final_state(&self) -> Result<FinalState> {
        let ((_, status), (_, plan)) = (self.reveille.status(&self.place)?, self.reveille.plan(&self.place)?);
        let mut final_state = FinalState::default();
        for machine in status.machines {
            if machine.instance.is_none() && !self.has_guest(&machine.name) {
                continue;
            }
            let name = self.machine(machine.instance.as_deref().unwrap_or(&machine.name));
            // One that answers may have a fault all the same; that is told with its incident.
            let state = if machine.answers == Answers::Yes { "ready".to_owned() } else { machine.state };
            final_state.machines.insert(name, state);
        }
        for source in status.sources {
            final_state.doubts.extend(source.why_not.map(|why| (source.name, why)));
        }
        let mut open = |who: &str, kind: String, prospect| {
            if kind != FaultKind::Stray.name() || self.has_guest(who) {
                final_state.open.push((self.label(who, &kind), kind, prospect));
            }
        };
        plan.acts.into_iter().for_each(|act| open(&act.subject, act.kind, Prospect::GoesOn));
        plan.waits.into_iter().for_each(|wait| open(&wait.subject, wait.kind, Prospect::GoesOn));
        plan.asks.into_iter().for_each(|ask| open(&ask.subject, ask.kind, Prospect::Asks));
        plan.blind.into_iter().for_each(|blind| open(&blind.subject, blind.kind, Prospect::Blind));
        for held in plan.held {
            let why = held.held.into_iter().flat_map(|held| held.why);
            let why = why.map(|why| why.replace(&format!("{}-", self.prefix), "")).collect();
            open(&held.subject, held.kind, Prospect::Held(why));
        }
        Ok(final_state)
    }

    /// It is a machine of this file, or the node of one.
    fn has_guest(&self, who: &str) -> bool {
        let is_it = |guest: &Guest| {
            let own = &guest.made.machine;
            [own.name.as_str(), own.id.as_str(), own.node()].contains(&who)
        };
        self.guests.iter().any(is_it)
    }

    /// What the file calls what a plan calls so.
    fn label(&self, who: &str, kind: &str) -> String {
        if who.starts_with("group ") || kind == FaultKind::GroupUnresolved.name() {
            "the group".to_owned()
        } else if who.starts_with("router ") {
            "the router".to_owned()
        } else {
            self.machine(who)
        }
    }
}

impl Names for Stage<'_> {
    fn machine(&self, id: &str) -> String {
        let is_it = |guest: &&Guest| guest.made.machine.id == id || guest.made.machine.node() == id;
        let by_id = self.guests.iter().find(is_it);
        let own = format!("{}-", self.prefix);
        by_id.map_or_else(|| id.strip_prefix(&own).unwrap_or(id).to_owned(), |guest| guest.made.name.clone())
    }

    fn owner(&self, port: &PortId) -> String {
        self.owners.get(port.as_str()).cloned().unwrap_or_else(|| "an owner that is gone".to_owned())
    }
}

fn differences(rig: &Account, simulator: &Account) -> String {
    let (only_rig, only_simulator) = rig.differences(simulator);
    format!(
        "the rig and the simulator differ\n  only on the rig:\n    {}\n  only in the simulator:\n    {}",
        only_rig.join("\n    "),
        only_simulator.join("\n    ")
    )
}
