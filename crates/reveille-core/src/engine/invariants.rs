//! The safety invariants of docs/SAFETY.md as assertions over one step: the state before, the effects, the state after.
//!
//! The simulator and the tests call [`check`] after every step, and [`check_waits`] beside it, the tests [`check_kept`] as
//! well; production calls [`check_touched`] after every step and [`check_state`] now and then. What they return names the
//! invariant and what broke it.
//! Some invariants speak of one step and are checked here whole (1, 2, 5, 6, 8, 9, 10, 11, 12); those that speak of
//! history (3, 4, 7) are checked for their trace in the state: episodes have starts of their own, timers are never older
//! than sight, and no intent is repeated while one is under way.
//!
//! The checks read the views directly and do not ask the interlocks again: a check that called the safeguard it checks would
//! pass with the safeguard broken. The file of each repair holds what must hold of its call alone (`Act::check`).

use std::collections::{BTreeMap, BTreeSet};

use crate::decide::{Next, decide};
use crate::effect::{Call, Effect};
use crate::model::id::{IntentId, NodeName};
use crate::model::incident::{FaultKind, IncidentKey, MachineKey, Subject};
pub use crate::model::violation::Violation;
use crate::model::violation::ensure;
use crate::plan::context::Case;
use crate::record::Record;

use super::waits::WaitFor;
use super::{State, Wake};

/// What has been seen over a run: intents recorded and calls made, each once.
#[derive(Clone, Debug, Default)]
pub struct SeenEffects {
    recorded: BTreeMap<IntentId, Call>,
    durable: BTreeSet<IntentId>,
    called: BTreeSet<IntentId>,
    asked: BTreeMap<crate::model::id::RecordId, IntentId>,
}

impl SeenEffects {
    /// The ledger acknowledged a record.
    pub fn acknowledge(&mut self, record: crate::model::id::RecordId) {
        if let Some(intent) = self.asked.get(&record) {
            self.durable.insert(*intent);
        }
    }

    /// A process died: what was not acknowledged does not exist.
    pub fn crash(&mut self) {
        self.asked.clear();
        // A number that never reached the ledger is free again.
        let durable = &self.durable;
        self.recorded.retain(|intent, _| durable.contains(intent));
    }
}

/// Checks one step's effects against the state after it, and the whole state.
pub fn check(state: &State, effects: &[Effect], seen_effects: &mut SeenEffects) -> Result<(), Violation> {
    check_effects(state, effects, seen_effects)?;
    check_state(state)
}

/// The same, but of the state only what the step judged or decided: a step among 50,000 open cases costs what it touches and
/// not 1.3 ms. What this leaves out, [`check_state`] finds on a slow beat.
pub fn check_touched(
    state: &State,
    effects: &[Effect],
    seen_effects: &mut SeenEffects,
) -> Result<(), Violation> {
    check_effects(state, effects, seen_effects)?;
    for key in &state.touched {
        if let Some(case) = state.incidents.get(key) {
            check_case(state, key, case)?;
        }
    }
    check_operations(state)
}

fn check_effects(state: &State, effects: &[Effect], seen_effects: &mut SeenEffects) -> Result<(), Violation> {
    for effect in effects {
        match effect {
            Effect::Record { id, record: Record::Intended { intent, call, fence, .. } } => {
                ensure(*fence == state.start.fence, 9, || format!("{intent} carries {fence}"))?;
                ensure(!seen_effects.recorded.contains_key(intent), 6, || {
                    format!("{intent} was recorded twice")
                })?;
                seen_effects.recorded.insert(*intent, call.clone());
                seen_effects.asked.insert(*id, *intent);
            }
            // One that was refused, and is written again, was opened earlier (seed 3202337).
            Effect::Record { record: Record::Opened { at, key, .. }, .. } if *at == state.now => {
                check_opened(state, key)?;
            }
            Effect::Call { intent, fence, call } => {
                ensure(*fence == state.start.fence, 9, || format!("{intent} is called with {fence}"))?;
                ensure(seen_effects.durable.contains(intent), 6, || {
                    format!("{intent} is called before the ledger has it")
                })?;
                ensure(seen_effects.called.insert(*intent), 6, || format!("{intent} is called twice"))?;
                ensure(seen_effects.recorded.get(intent) == Some(call), 6, || {
                    format!("{intent} is not what was recorded")
                })?;
                ensure(state.start.acting, 12, || format!("{call}: a dry run acts"))?;
                ensure(state.leading, 9, || format!("{call}: another process leads"))?;
                call.check(&state.context())?;
            }
            _ => {}
        }
    }
    Ok(())
}

/// An empty list of nodes beside machines that ran before us says of none that it never joined: a wrong endpoint looks like
/// that.
fn check_opened(state: &State, key: &IncidentKey) -> Result<(), Violation> {
    if key.kind != FaultKind::NeverJoined || !state.cluster.listed_none() {
        return Ok(());
    }
    let Subject::Machine(MachineKey::Instance(cloud, id)) = &key.subject else { return Ok(()) };
    let seen = state.clouds.get(cloud).and_then(|view| view.instances.get(id));
    let is_older = seen.is_some_and(|seen| seen.joined.is_some() || !seen.born_in_sight);
    ensure(!is_older, 2, || {
        let joined = seen.and_then(|seen| seen.joined.as_ref()).map_or("nothing", NodeName::as_str);
        format!("{id}, which joined as {joined}, is called {} beside an empty list of nodes", key.kind.name())
    })
}

/// Checks every open case, whatever was touched.
pub fn check_state(state: &State) -> Result<(), Violation> {
    for (key, case) in state.incidents.open() {
        check_case(state, key, case)?;
    }
    check_operations(state)
}

fn check_case(state: &State, key: &IncidentKey, case: &Case) -> Result<(), Violation> {
    let incident = &case.incident;
    ensure(incident.counted_from >= incident.first_seen || incident.first_seen > state.now, 4, || {
        format!("{} counts from before it was first seen", incident.id)
    })?;
    let never_joined = key.kind == FaultKind::NeverJoined;
    if let (true, Subject::Machine(MachineKey::Instance(cloud, id))) = (never_joined, &key.subject) {
        let joined =
            state.clouds.get(cloud).and_then(|v| v.instances.get(id)).and_then(|s| s.joined.as_ref());
        let well = incident.well_since.is_some();
        let unsure = || state.unsure.contains(&MachineKey::Instance(cloud.clone(), id.clone()));
        ensure(joined.is_none() || well || unsure(), 3, || {
            format!("{} calls a machine never-joined that joined", incident.id)
        })?;
    }
    Ok(())
}

/// No wake-up is lost: no case that waits for a slot, for its domain or for a gate could go on, and every other case that
/// could go on has a timer. Asks for a decision about every open case, so it is for tests and the simulator.
pub fn check_waits(state: &State) -> Result<(), Violation> {
    // Nothing is to go on while the ledger refuses records or another process leads.
    if state.outbox.refusal().is_some() || !state.leading {
        return Ok(());
    }
    let context = state.context();
    for (key, case) in state.incidents.open() {
        if !matches!(decide(&context, case).next, Next::Act { .. }) {
            continue;
        }
        let at_once = state.waiting.of(key).is_some_and(WaitFor::is_noticed_at_once);
        let timer = state.timers.has(&Wake::Case(key.clone()));
        let pending = state.ripe.contains(key) || (timer && !at_once);
        ensure(pending, 11, || {
            let waits_for = state.waiting.of(key);
            format!(
                "{} could go on, and nothing decides it again; it waits for {waits_for:?}",
                case.incident.id
            )
        })?;
    }
    Ok(())
}

/// Checks that the indexes kept beside agents and traces equal what a walk over all of them finds. For tests: it costs the
/// walk that the indexes save.
pub fn check_kept(state: &State) -> Result<(), Violation> {
    let miscounted = state.traces.miscounted(|machine| state.incidents.has_open(machine));
    ensure(miscounted.is_none(), 11, || {
        let (idle, kept) = miscounted.unwrap_or_default();
        format!("{idle} traces may give way, and {kept} are kept as such")
    })?;
    ensure(state.agents.counts_agree(state.now), 5, || "the count of fresh agents is wrong".into())
}

fn check_operations(state: &State) -> Result<(), Violation> {
    let mut busy = BTreeSet::new();
    for operation in state.book.operations.values() {
        ensure(busy.insert(operation.incident), 7, || {
            format!("two intents are under way for {}", operation.incident)
        })?;
    }
    Ok(())
}
