//! What must become true once the faults have stopped. The curable machines are cured, the rest is handed to a person with a
//! reason, no call is retried for ever, and a fleet at rest costs nothing.
//!
//! ```text
//!  faults end ─▶ up to BOUND: until an hour passes without a record, a call or a read ─▶ who is ill, and in no case?
//!                    └ never such an hour: something is retried for ever                  what could be done, and is not?
//! ```
//!
//! "Handed to a person" is what the engine itself says of a case: it gave up, it asks, or it names the reason that blocks it.
//! Other cases are neither cured nor handed over: those that could be acted on, that wait for a moment in the past, or that still
//! wait when the bound is over.

use reveille_core::decide::{self, Next};
use reveille_core::model::incident::{FaultKind, IncidentKey, MachineKey, Subject};
use reveille_core::model::instance::InstanceState;
use reveille_core::model::time::Span;

use super::{Rule, broken};
use crate::drive::{Counts, Drive};
use crate::world::Ours;

/// Within this, everything has come to rest. The longest escalation (four tries with a backoff of up to half an hour, on
/// three repair steps) takes a third of it for one machine; a rate of two an hour makes a fleet wait for its turn ([`bound`]).
const BOUND: Span = Span::from_min(36 * 60);
/// Calls that one machine takes: softly, hard, a deletion, and one of them once more.
const CALLS_EACH: i64 = 4;
/// A fleet at rest asks for nothing twice in this time.
const QUIET: Span = Span::from_min(60);
/// It is looked at so often for that: what is asked for each 90 minutes left no whole hour of the clock free (seed 5802519).
const LOOKED_AT: Span = Span::from_min(15);
/// What is on its way has arrived after this.
const ON_ITS_WAY: Span = Span::from_min(6);

/// Lets time pass until all is at rest, and says what is wrong then.
pub(super) fn wait(drive: &mut Drive) -> Option<(Rule, String)> {
    let end = drive.now() + bound(drive);
    let mut quiet_for = Span::ZERO;
    while quiet_for < QUIET {
        let before = drive.counts();
        let until = drive.now() + LOOKED_AT;
        // Who sleeps asks for nothing, and is not at rest.
        let mut awake = drive.is_running();
        while drive.turn_before(until) {
            awake &= drive.is_running();
            if let Some(broken) = broken(drive) {
                return Some(broken);
            }
        }
        let quiet = asked(before) == asked(drive.counts()) && !asks_too_often(drive, before);
        quiet_for = if awake && drive.is_running() && quiet { quiet_for + LOOKED_AT } else { Span::ZERO };
        if quiet_for < QUIET && drive.now() >= end {
            let busy = busy(drive, before);
            return Some((Rule::Liveness("nothing is retried for ever"), busy));
        }
    }
    let now = wrongs(drive);
    if now.is_empty() {
        return None;
    }
    // What was only on its way is right after a while; what stays is wrong.
    let until = drive.now() + ON_ITS_WAY;
    while drive.turn_before(until) {}
    let still = wrongs(drive);
    let stays = still.into_iter().find(|wrong| now.contains(wrong));
    stays.map(|(rule, what)| (Rule::Liveness(rule), what))
}

/// Where a whole pool is ill, the roster's rate lets them have their turns one after another, however long that takes.
fn bound(drive: &Drive) -> Span {
    let context = drive.state().context();
    let ill = context.cases.keys().filter(|key| key.kind.is_absence()).count() as i64;
    let turns = Span::from_min(60 * CALLS_EACH * ill / i64::from(context.roster.limits.per_hour.max(1)));
    BOUND.max(Span::from_ms(BOUND.ms / 3) + turns)
}

const fn asked(counts: Counts) -> (u64, u64, u64) {
    (counts.records, counts.calls, counts.repeated)
}

/// What service users hold is asked for while all is well, too: once in five minutes at the most.
fn asks_too_often(drive: &Drive, before: Counts) -> bool {
    let users = drive.state().context().roster.access.users.len() as u64;
    drive.counts().roles - before.roles > users * (LOOKED_AT.ms / Span::from_min(5).ms + 1).cast_unsigned()
}

fn busy(drive: &Drive, before: Counts) -> String {
    let (now, then) = (drive.counts(), before);
    let lately = format!(
        "{} records, {} calls, {} reads of roles",
        now.records - then.records,
        now.calls - then.calls,
        now.roles - then.roles
    );
    let context = drive.state().context();
    let cases = context.cases.iter().map(|(key, case)| {
        let next = format!("{:?}", decide::decide(&context, case).next);
        format!("{} of {}: {}", key.kind, case.incident.label, next.chars().take(160).collect::<String>())
    });
    let read =
        drive.repeated().map_or_else(|| "nothing".to_owned(), |(at, look)| format!("{look:?} at {at}"));
    let open = cases.collect::<Vec<_>>().join("; ");
    format!(
        "no hour without a record, a call or a read; in the last {LOOKED_AT}: {lately}; last read again: {read}; open: {open}"
    )
}

fn wrongs(drive: &Drive) -> Vec<(&'static str, String)> {
    [left_lying(drive), misjudged(drive)].concat()
}

/// Cases for which something could be done now and is not, and cases that are neither concluded nor handed over.
pub fn left_lying(drive: &Drive) -> Vec<(&'static str, String)> {
    let context = drive.state().context();
    let mut lying = Vec::new();
    for (key, case) in context.cases {
        let (rule, what) = match decide::decide(&context, case).next {
            Next::Act { call, .. } => ("what can be done is done", format!("could {call}")),
            Next::Gather(_) => ("what can be done is done", "could read evidence".to_owned()),
            Next::Wait { until, .. } if until + Span::from_s(60) < context.now => {
                ("no timer is lost", "waits for the past".to_owned())
            }
            Next::Well => ("what is well is closed", "looks well".to_owned()),
            Next::Blind(_) if is_told_of_restore(drive) => continue,
            Next::Blind(why) => ("sight returns", why.to_string()),
            Next::UnderWay(intent) => ("what is begun ends", format!("{intent} is under way")),
            Next::Wait { .. } | Next::Held { .. } | Next::Ask(_) => continue,
        };
        lying.push((rule, format!("{} of {} ({}): {what}", key.kind, key.subject, case.incident.id)));
    }
    lying
}

/// After a restored store most Nodes may be missing for good. A process that starts then doubts the whole list, decides nothing
/// that rests on it, and says so. Until a person restarts the kubelets, the doubt itself is what the controller hands to the
/// operator.
fn is_told_of_restore(drive: &Drive) -> bool {
    drive.state().context().cluster.source.doubted().is_some()
        && drive.world.nodeless_since_restore(Span::ZERO, Ours::Kept) > 0
}

/// Machines that are ill and in no case, and machines that are well and in a case of absence: the roll would lie.
pub fn misjudged(drive: &Drive) -> Vec<(&'static str, String)> {
    let context = drive.state().context();
    let mut wrong = Vec::new();
    // One without the marks of its pool belongs to no pool, as far as anything but its owner can tell.
    for machine in drive.world.machines().into_iter().filter(|machine| machine.marked) {
        let key = MachineKey::Instance(machine.cloud.clone(), machine.id.clone());
        let subject = Subject::Machine(key.clone());
        let kinds: Vec<FaultKind> =
            context.cases.keys().filter(|key| key.subject == subject).map(|key| key.kind).collect();
        let passing = matches!(machine.state, InstanceState::Building | InstanceState::Deleting);
        let told = is_told_of_restore(drive) && drive.world.lacks_node_since_restore(&machine.id);
        if !machine.well && !passing && kinds.is_empty() && !told {
            let machine_state = drive.state().machine_state(&key);
            let text =
                format!("{} is ill ({:?}) and in no case: {machine_state:?}", machine.name, machine.trouble);
            wrong.push(("no machine is forgotten", text));
        }
        let joined = |kind: &&FaultKind| {
            matches!(kind, FaultKind::NeverJoined | FaultKind::Vanished | FaultKind::NotReady)
        };
        if let (true, Some(kind)) = (machine.well, kinds.iter().find(joined)) {
            let text = format!("{} is well and counts as {kind}", machine.name);
            wrong.push(("who is well counts as well", text));
        }
    }
    wrong.extend(misjudged_users(drive));
    wrong
}

/// Service users that lack a role and are in no case, and those that are well, or could be told of, and are in one.
fn misjudged_users(drive: &Drive) -> Vec<(&'static str, String)> {
    let mut wrong = Vec::new();
    for user in &drive.state().context().roster.access.users {
        let subject = Subject::User(user.cloud.clone(), user.user.clone());
        let is_open = |kind: FaultKind| {
            drive.state().context().cases.contains_key(&IncidentKey { subject: subject.clone(), kind })
        };
        let wants = drive.world.is_wanting(&user.user);
        match (wants, is_open(FaultKind::RolesMissing)) {
            (true, false) => {
                wrong.push(("no machine is forgotten", format!("{subject} lacks a role and is in no case")))
            }
            (false, true) => {
                wrong.push((
                    "who is well counts as well",
                    format!("{subject} holds its roles and counts as lacking one"),
                ));
            }
            _ => {}
        }
        if is_open(FaultKind::RolesUnreadable) {
            wrong.push(("sight returns", format!("{subject} can be told of and counts as unreadable")));
        }
    }
    wrong
}
