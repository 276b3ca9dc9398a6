//! `when`: phrases that make something happen, each to the world, to the process, or by a person.

use std::collections::BTreeSet;
use std::sync::Arc;

use reveille_core::effect::ReadErrorKind;
use reveille_core::model::time::Span;

use crate::drive::{CrashPoint, Estranged, Mishap, Usurped};
use crate::world::World;
use crate::world::fault::{CallLie, Fault};
use crate::world::vm::Trouble;

use super::agents;
use super::deed::{Deed, Made, Scope, Wish, each, hand};
use super::hosting;
use super::phrase::{Known, Phrase, Slots, read};
use super::words::{self, Machines};

/// A statement of `when`, spread over time.
#[derive(Debug)]
pub(crate) struct Planned {
    pub(crate) line: usize,
    pub(crate) text: String,
    /// When, after the beginning.
    pub(crate) at: Span,
    pub(crate) deed: Deed,
}

/// A statement of `when`.
pub(crate) enum Statement {
    Planned(Vec<Planned>),
    Ends(Span),
}

/// Reads a statement.
pub(crate) fn take(line: usize, text: &str, known: &Known) -> Result<Statement, String> {
    if let Some(end) = text.strip_prefix("ends at ") {
        return words::span(end).map(Statement::Ends);
    }
    let shape = "write `at TIME  WHAT`, `at TIME, every TIME, N times  WHAT`, or `ends at TIME`";
    let rest = text
        .strip_prefix("at ")
        .ok_or_else(|| format!("a statement of `when` begins with its time: {shape}"))?;
    let (first, mut rest) = rest.split_once(' ').ok_or_else(|| shape.to_owned())?;
    let at = words::span(first.trim_end_matches(','))?;
    let (mut every, mut times) = (None, 1);
    if first.ends_with(',') {
        let tail = rest.strip_prefix("every ").ok_or_else(|| shape.to_owned())?;
        let (span, tail) = tail.split_once(' ').ok_or_else(|| shape.to_owned())?;
        every = Some(words::span(span.trim_end_matches(','))?);
        rest = tail;
        if span.ends_with(',') {
            let (count, tail) = tail.split_once(" times ").ok_or_else(|| shape.to_owned())?;
            times = words::count(count)?;
            rest = tail;
        }
    }
    let text = rest;
    let one = |at: Span, text: &str| -> Result<Planned, String> {
        Ok(Planned {
            line,
            text: text.to_owned(),
            at,
            deed: read(&[PHRASES, agents::WHEN, hosting::WHEN], text, known)?,
        })
    };
    let Some(every) = every else { return Ok(Statement::Planned(vec![one(at, text)?])) };
    let mut planned = Vec::new();
    let mut when = at;
    let who = match read(&[PHRASES, agents::WHEN, hosting::WHEN], text, known)? {
        Deed::Each(Machines::Named(names), _) if names.len() > 1 => Some(names),
        Deed::Restart(Machines::Named(names)) if names.len() > 1 => Some(names),
        _ => None,
    };
    if every == Span::ZERO || (times == 1 && who.is_none()) {
        return Err(
            "`every` needs several machines by name, or `, N times`, and a time that is not zero".to_owned()
        );
    }
    for _ in 0..times {
        for name in who.iter().flatten() {
            let mut each = one(when, text)?;
            let only = Machines::Named(vec![name.clone()]);
            each.deed = match each.deed {
                Deed::Each(_, fault) => Deed::Each(only, fault),
                _ => Deed::Restart(only),
            };
            planned.push(each);
            when = when + every;
        }
        if who.is_none() {
            planned.push(one(when, text)?);
            when = when + every;
        }
    }
    Ok(Statement::Planned(planned))
}

pub(crate) fn forms() -> Vec<&'static str> {
    [PHRASES, agents::WHEN, hosting::WHEN].into_iter().flatten().map(|phrase| phrase.form).collect()
}

fn world(fault: Fault) -> Made {
    Ok(Deed::World(fault, 1))
}

fn lasting(slots: &Slots<'_>, fault: fn(Span) -> Fault) -> Made {
    world(fault(slots.span()?))
}

fn role(slots: &Slots<'_>, fault: fn(Arc<str>, Arc<str>) -> Fault) -> Made {
    let (user, role) = (slots.text("word"), words::role(slots.text("role"))?);
    if !slots.known.users.contains(user) {
        return Err(format!(
            "there is no service user `{user}`; write `service user {user} must hold the role {role}` under given"
        ));
    }
    world(fault(user.into(), role.into()))
}

fn lacks(slots: &Slots<'_>, denies: bool) -> Made {
    let (who, lasts) = (slots.machines()?, slots.span()?);
    Ok(Deed::All(who, Box::new(move |machines| Fault::SomeUnlisted { machines, lasts, denies })))
}

fn calls(slots: &Slots<'_>, lie: CallLie) -> Made {
    let count = if slots.text("count").is_empty() { 1 } else { slots.count()? };
    Ok(Deed::World(Fault::Call(lie), count))
}

fn launch(slots: &Slots<'_>) -> Made {
    let Machines::Named(names) = slots.machines()? else {
        return Err("machines that start are named; write for instance workers-6 or workers-6..8".to_owned());
    };
    let pools: Result<BTreeSet<_>, String> =
        names.iter().map(|name| words::machine(name, slots.known).map(|(_, pool)| pool)).collect();
    let mut pools = pools?.into_iter();
    let (Some(pool), None) = (pools.next(), pools.next()) else {
        return Err("machines of one statement start in one pool; write a line for each pool".to_owned());
    };
    let trouble = match slots.text("trouble") {
        "" => None,
        text => Some(words::trouble(text)?),
    };
    Ok(Deed::Launch(names, Fault::Launch { pool, trouble }))
}

fn crash(slots: &Slots<'_>, point: CrashPoint) -> Made {
    Ok(Deed::Process(Mishap::CrashAt(point, slots.span()?)))
}

/// The one before believes in its ledger: the worse of the two ways.
fn usurped(slots: &Slots<'_>, how: Estranged) -> Made {
    let usurped = Usurped { lasts: slots.span()?, how, refused: false, skew_ms: 0 };
    Ok(Deed::Process(Mishap::TwoLeaders(usurped)))
}

fn pause(slots: &Slots<'_>, scope: Scope) -> Made {
    Ok(Deed::Pause(scope, slots.text("person").to_owned(), words::quoted(slots.text("text"))?))
}

/// `sign`: ahead or behind.
fn node_clock(slots: &Slots<'_>, sign: i64) -> Made {
    let ms = sign * slots.span()?.ms;
    each(slots, move |id| Fault::NodeClock(id, ms))
}

fn api_clock(slots: &Slots<'_>, sign: i64) -> Made {
    world(Fault::ApiClock(sign * slots.span()?.ms, words::span(slots.second("span"))?))
}

/// An annotation is written as it stands, also one that means nothing: what it means is Reveille's to read.
fn annotate(slots: &Slots<'_>, puts: bool) -> Made {
    let (by, key) = (slots.text("person").to_owned(), slots.text("word").to_owned());
    let value = if puts { Some(words::quoted(slots.text("text"))?) } else { None };
    Ok(Deed::Annotate(slots.machines()?, Wish { by, key, value }))
}

const FAILS: CallLie = CallLie::Fails { retry_after: None };

// tidy: long because it is one table: the whole of what can happen in a scenario.
#[rustfmt::skip]
const PHRASES: &[Phrase<Deed>] = &[
    // Pools.
    Phrase { form: "{machines} [starts|start]", make: launch },
    Phrase { form: "{machines} [starts|start], and {trouble}", make: launch },
    Phrase { form: "whatever pool {pool} makes from now on is bad: {trouble}", make: |s| {
        world(Fault::BadImage(s.pool()?, Some(words::trouble(s.text("trouble"))?)))
    } },
    Phrase { form: "pool {pool} makes good machines again", make: |s| world(Fault::BadImage(s.pool()?, None)) },
    Phrase { form: "pool {pool} is rolled to another image", make: |s| world(Fault::Rollout(s.pool()?)) },
    Phrase { form: "the autoscaler removes {machines}", make: |s| each(s, Fault::ScaledDown) },
    // Inside machines.
    Phrase { form: "the kubelet of {machines} hangs", make: |s| each(s, |id| Fault::Breaks(id, Trouble::KubeletHung)) },
    Phrase { form: "the kubelet of {machines} cannot run any more", make: |s| each(s, |id| Fault::Breaks(id, Trouble::Broken)) },
    Phrase { form: "an operator restarts the kubelet of {machines}", make: |s| Ok(Deed::Restart(s.machines()?)) },
    // Instances.
    Phrase { form: "{machines} [goes|go] into an error state", make: |s| each(s, Fault::Errored) },
    Phrase { form: "an operator shuts {machines} off", make: |s| each(s, Fault::ShutOff) },
    Phrase { form: "the cloud says for {span} that {machines} [is|are] shut off", make: |s| {
        let lasts = s.span()?;
        each(s, move |id| Fault::SaidStopped(id, lasts))
    } },
    Phrase { form: "an operator rebuilds {machines}", make: |s| each(s, Fault::Busy) },
    Phrase { form: "an operator locks {machines}", make: |s| each(s, Fault::Locked) },
    Phrase { form: "an operator deletes the node of {machines}", make: |s| each(s, Fault::NodeDeletedByPerson) },
    Phrase { form: "an operator deletes {machines}", make: |s| each(s, Fault::ForeignDelete) },
    Phrase { form: "the owner deletes {machines}, and deleting never ends", make: |s| each(s, Fault::StuckDeleting) },
    Phrase { form: "{machines} [loses its|lose their] pool mark", make: |s| each(s, Fault::Unmarked) },
    Phrase { form: "{machines} [gets|get] the mark of pool {pool}, too", make: |s| {
        let pool = s.pool()?;
        each(s, move |id| Fault::MarkedTwice(id, pool.clone()))
    } },
    Phrase { form: "a second machine is called {machines}", make: |s| each(s, Fault::NameTwin) },
    // Nodes.
    Phrase { form: "the cloud controller deletes the node of {machines}", make: |s| each(s, Fault::NodeDeletedByController) },
    Phrase { form: "the cloud controller is down for {span}", make: |s| lasting(s, Fault::ControllerDown) },
    Phrase { form: "a second node names {machines}", make: |s| each(s, Fault::NodeTwin) },
    Phrase { form: "an operator cordons the node of {machines}", make: |s| each(s, Fault::Cordoned) },
    // Network.
    Phrase { form: "{machines} [loses its|lose their] security group", make: |s| each(s, |machine| Fault::GroupLost { machine, slips: false }) },
    Phrase { form: "{machines} [loses its|lose their] security group again and again", make: |s| each(s, |machine| Fault::GroupLost { machine, slips: true }) },
    Phrase { form: "{machines} [gets|get] a second port", make: |s| each(s, Fault::SecondPort) },
    Phrase { form: "port security of {machines} is turned off", make: |s| each(s, Fault::PortSecurityOff) },
    Phrase { form: "the security group loses its pod rules", make: |_| world(Fault::RulesLost) },
    Phrase { form: "service user {word} loses its role {role}", make: |s| role(s, Fault::RoleLost) },
    Phrase { form: "an operator gives service user {word} its role {role}", make: |s| role(s, Fault::RoleGiven) },
    Phrase { form: "Keystone does not say who holds which role for {span}", make: |s| lasting(s, |lasts| Fault::RolesUntold(ReadErrorKind::Forbidden, lasts)) },
    Phrase { form: "one wider rule replaces the pod rules", make: |_| world(Fault::RulesWidened) },
    Phrase { form: "a second group of the same name turns up", make: |_| world(Fault::GroupTwin) },
    Phrase { form: "{machines} [loses its|lose their] address pair", make: |s| each(s, Fault::PairLost) },
    Phrase { form: "{machines} [loses its|lose their] route", make: |s| each(s, Fault::MissingRoute) },
    Phrase { form: "{machines} [gets|get] a second route through a dead next hop", make: |s| each(s, Fault::DuplicateRoute) },
    Phrase { form: "another cluster puts {count} routes on the router", make: |s| world(Fault::ForeignRoutes(s.count()?)) },
    Phrase { form: "the router takes no more than {count} routes", make: |s| world(Fault::RouteLimit(s.count()?)) },
    Phrase { form: "the pods of {machines} cannot be reached", make: |s| each(s, Fault::RouteBroken) },
    // What is told falsely, or not at all.
    Phrase { form: "the cloud lists no servers for {span}, and denies them by id", make: |s| {
        world(Fault::ServersUnlisted { lasts: s.span()?, denies: true })
    } },
    Phrase { form: "the cloud lists no servers for {span}, and fails when asked by id", make: |s| {
        world(Fault::ServersUnlisted { lasts: s.span()?, denies: false })
    } },
    Phrase { form: "the cloud's credential leads into another project for {span}", make: |s| lasting(s, Fault::AnotherProject) },
    Phrase { form: "the cloud's list lacks {machines} for {span}, and denies them by id", make: |s| lacks(s, true) },
    Phrase { form: "the cloud's list lacks {machines} for {span}, and fails when asked by id", make: |s| lacks(s, false) },
    Phrase { form: "the cloud lists no ports for {span}", make: |s| lasting(s, Fault::PortsUnlisted) },
    Phrase { form: "the cloud answers {error} for {span}", make: |s| {
        world(Fault::CloudFails(words::read_error(s.text("error"))?, s.span()?))
    } },
    Phrase { form: "the cluster lists no nodes for {span}", make: |s| lasting(s, Fault::NodesUnlisted) },
    Phrase { form: "the API server is silent for {span}", make: |s| lasting(s, Fault::ApiSilent) },
    Phrase { form: "no lease is renewed for {span}", make: |s| lasting(s, Fault::LeasesFrozen) },
    Phrase { form: "the list of leases is empty for {span}", make: |s| lasting(s, Fault::LeasesUnlisted) },
    Phrase { form: "the watch of nodes is a minute behind for {span}", make: |s| lasting(s, Fault::WatchLags) },
    Phrase { form: "the watch of nodes loses what happens for {span}", make: |s| lasting(s, Fault::WatchGap) },
    Phrase { form: "the cluster shows an old state for {span}", make: |s| lasting(s, Fault::NodeListStale) },
    // Clocks.
    Phrase { form: "the clock of {machines} is {span} ahead", make: |s| node_clock(s, 1) },
    Phrase { form: "the clock of {machines} is {span} behind", make: |s| node_clock(s, -1) },
    Phrase { form: "the clocks of cloud and cluster are {span} ahead for {span}", make: |s| api_clock(s, 1) },
    Phrase { form: "the clocks of cloud and cluster are {span} behind for {span}", make: |s| api_clock(s, -1) },
    Phrase { form: "zone {zone} is cut off for {span}", make: |s| world(Fault::ZoneDark(s.zone()?, s.span()?)) },
    // Calls.
    Phrase { form: "the next call is accepted and does nothing", make: |s| calls(s, CallLie::Ignored) },
    Phrase { form: "the next {count} calls are accepted and do nothing", make: |s| calls(s, CallLie::Ignored) },
    Phrase { form: "the next call works and is not answered", make: |s| calls(s, CallLie::Unanswered) },
    Phrase { form: "the next call fails", make: |s| calls(s, FAILS) },
    Phrase { form: "the next {count} calls fail", make: |s| calls(s, FAILS) },
    Phrase { form: "the next nudge is cut in the middle", make: |s| calls(s, CallLie::Cut) },
    // Reveille's own process.
    Phrase { form: "Reveille sleeps for {span}", make: |s| Ok(Deed::Process(Mishap::Pause(s.span()?))) },
    Phrase { form: "Reveille dies for {span}", make: |s| Ok(Deed::Process(Mishap::Crash(s.span()?))) },
    Phrase { form: "Reveille dies before its next intent is recorded, for {span}", make: |s| crash(s, CrashPoint::BeforeRecord) },
    Phrase { form: "Reveille dies when its next intent is recorded, for {span}", make: |s| crash(s, CrashPoint::BeforeAcknowledged) },
    Phrase { form: "Reveille dies before its next call, for {span}", make: |s| crash(s, CrashPoint::BeforeCall) },
    Phrase { form: "Reveille dies before its next call is answered, for {span}", make: |s| crash(s, CrashPoint::BeforeDone) },
    Phrase { form: "Reveille dies before its next call is proved, for {span}", make: |s| crash(s, CrashPoint::BeforeVerdict) },
    Phrase { form: "Reveille's clock jumps {span} ahead", make: |s| Ok(Deed::Process(Mishap::Jump(s.span()?.ms))) },
    Phrase { form: "Reveille's clock jumps {span} back", make: |s| Ok(Deed::Process(Mishap::Jump(-s.span()?.ms))) },
    Phrase { form: "the disk is full for {span}", make: |s| Ok(Deed::Process(Mishap::DiskFull(s.span()?))) },
    Phrase { form: "another process takes the lead", make: |_| Ok(Deed::Process(Mishap::Deposed)) },
    Phrase { form: "another Reveille takes the lead, and the one before goes on for {span}", make: |s| usurped(s, Estranged::Hears) },
    Phrase { form: "another Reveille takes the lead, and the one before sleeps and goes on, for {span}", make: |s| usurped(s, Estranged::Sleeps) },
    Phrase { form: "another Reveille takes the lead, and the one before is cut off and comes back, for {span}", make: |s| usurped(s, Estranged::CutOff) },
    Phrase { form: "the ledger is rotated", make: |_| Ok(Deed::Process(Mishap::Rotate)) },
    // People.
    Phrase { form: "{person} pauses the roster: {text}", make: |s| pause(s, Scope::Roster) },
    Phrase { form: "{person} pauses pool {pool}: {text}", make: |s| pause(s, Scope::Pool(s.pool()?.to_string())) },
    Phrase { form: "{person} pauses {machine}: {text}", make: |s| {
        pause(s, Scope::Machine(words::machine(s.text("machine"), s.known)?.0))
    } },
    Phrase { form: "{person} resumes everything", make: |_| Ok(Deed::Resume) },
    Phrase { form: "{person} annotates the node of {machines}: {word} {text}", make: |s| annotate(s, true) },
    Phrase { form: "{person} takes the annotation {word} off the node of {machines}", make: |s| annotate(s, false) },
    Phrase { form: "{person} sets the metadata of {machines}: {word} {text}", make: |s| {
        let (by, key, value) = (s.text("person").to_owned(), s.text("word").to_owned(), words::quoted(s.text("text"))?);
        hand(s, move |world, id| world.set_metadata(id, &by, &key, &value))
    } },
    Phrase { form: "{person} confirms what is open about {machines}", make: |s| {
        Ok(Deed::Confirm(s.machines()?, s.text("person").to_owned()))
    } },
    // Add-ons and drains.
    Phrase { form: "the startup add-on of pool {pool} does not start any more", make: |s| Ok(Deed::AddOn(s.pool()?, false)) },
    Phrase { form: "the startup add-on of pool {pool} runs again", make: |s| Ok(Deed::AddOn(s.pool()?, true)) },
    Phrase { form: "the autoscaler drains {machines}, and the drain never ends", make: |s| hand(s, World::drain_for_ever) },
];
