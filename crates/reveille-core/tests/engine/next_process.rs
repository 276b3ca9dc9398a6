//! A process that began now, with this ledger, would know what the one that runs knows.
//!
//! ```text
//!  every test ─ lists, again and again ─▶ its ledger ─────────────▶ State::restore ─▶ checkpoint ─┐
//!                                     ─▶ its state ─▶ checkpoint ─▶ State::restore ─▶ checkpoint ─┼─ the same lines
//!                                                               └─────────────────────────────────┘
//! ```
//!
//! A checkpoint is what a later decision rests on, so that it is what must not depend on a restart. Left out is what follows
//! from a restart itself (a gap in the sight of nodes, intents that have to be read back again); when a wait ends: restored
//! waits are computed from the records, and have tests of their own; which pool a machine is of, which its marks tell the next
//! process before it decides; and machines that are gone: only a cloud that errs could bring one back.

use std::collections::BTreeSet;

use reveille_core::effect::Effect;
use reveille_core::engine::{Restored, Start, State};
use reveille_core::event::Event;
use reveille_core::model::id::Fence;
use reveille_core::model::roster::Roster;
use reveille_core::model::time::Span;
use reveille_core::record::{Joined, Record};

use super::fixture::Field;

/// What a ledger holds, in the order of the writer, where it lost nothing and holds all that the state knows.
pub struct Ledger {
    whole: Option<Vec<Record>>,
}

impl Ledger {
    pub const fn empty() -> Self {
        Self { whole: Some(Vec::new()) }
    }

    /// Nothing is known of what was before, or a test writes another one.
    pub const fn unknown() -> Self {
        Self { whole: None }
    }

    fn continued(&self, records: &[Record]) -> Self {
        Self { whole: self.whole.is_some().then(|| records.to_vec()) }
    }

    /// A record that was refused is missing.
    pub fn hear(&mut self, event: &Event) {
        if matches!(event, Event::RecordFailed(_)) {
            self.whole = None;
        }
    }

    pub fn take(&mut self, effects: &[Effect]) {
        let Some(records) = &mut self.whole else { return };
        records.extend(effects.iter().filter_map(|effect| match effect {
            Effect::Record { record, .. } => Some(record.clone()),
            _ => None,
        }));
    }
}

impl Field {
    /// The next process over the same world, five seconds later, with this one's ledger.
    pub fn restarted(self, roster: Roster) -> Self {
        let now = self.now + Span::from_s(5);
        let start = Start { fence: Fence(2), acting: true };
        let how = Restored { start, now, last_alive: Some(self.now) };
        let mut next = Self::with(State::restore(roster, how, self.records.clone()));
        (next.now, next.records, next.made) = (now, self.records, self.made);
        next.records.push(Record::Started { at: now, fence: start.fence });
        next.ledger = self.ledger.continued(&next.records);
        (next.instances, next.ports, next.nodes) = (self.instances, self.ports, self.nodes);
        next.routers = self.routers;
        next
    }

    /// Fails where a restart would forget something, or would know something else. Not each time: it reads the whole ledger.
    pub fn assert_next_process_knows_the_same(&self) {
        let Some(ledger) = self.ledger.whole.as_ref().filter(|_| (self.now.ms / 10_000) % 7 == 0) else {
            return;
        };
        let known = known(&self.state);
        let (now, last_alive) = (self.now, Some(self.now));
        for (from, records) in [("its ledger", ledger.clone()), ("its checkpoint", self.state.checkpoint())] {
            let how = Restored { start: Start { fence: Fence(1), acting: true }, now, last_alive };
            let next = self::known(&State::restore(self.state.context().roster.clone(), how, records));
            let forgotten: Vec<_> = known.difference(&next).collect();
            let made_up: Vec<_> = next.difference(&known).collect();
            assert!(
                forgotten.is_empty() && made_up.is_empty(),
                "a process that begins at {} with {from} forgets {forgotten:#?} and makes up {made_up:#?}",
                now.ms
            );
        }
    }
}

/// What a state remembers, a line for each fact.
fn known(state: &State) -> BTreeSet<String> {
    let records = state.checkpoint();
    let gone = records.iter().flat_map(|record| match record {
        Record::Departed { machines, disowned: false, .. } => machines.as_slice(),
        _ => &[],
    });
    let gone: Vec<String> = gone.map(|machine| format!("{machine} ")).collect();
    let is_there = |fact: &String| !gone.iter().any(|machine| fact.starts_with(machine));
    records.iter().flat_map(facts).filter(is_there).collect()
}

fn facts(record: &Record) -> Vec<String> {
    match record {
        Record::Joined { machines, .. } => {
            let fact = |Joined { machine, node, .. }: &Joined| format!("{machine} joined as {node}");
            machines.iter().map(fact).collect()
        }
        Record::LostTogether { machines, .. } => {
            machines.iter().map(|it| format!("{it} was lost with others")).collect()
        }
        Record::Departed { machines, disowned, .. } => {
            machines.iter().map(|it| format!("{it} is out of sight, unmarked: {disowned}")).collect()
        }
        Record::Born { at, machine } => vec![format!("{machine} was seen being built at {at:?}")],
        Record::Cordoned { machine, cordoned, sign, paused, locked, named, gone, missing_since, .. } => {
            let missing = missing_since.is_some();
            // That a Node is Ready again is told seldom, and then this is all that is left to say.
            let signs = [*cordoned, *paused, *locked, *gone, missing, sign.is_some(), !named.is_empty()];
            if signs == [false; 7] {
                return vec![];
            }
            let held = format!("paused {paused}, as {named:?}, locked {locked}");
            vec![format!("{machine}: cordoned {cordoned}, {sign:?}, {held}, gone {gone}, {missing}")]
        }
        Record::Left { machine, why, .. } => vec![format!("{machine} left: {why}")],
        Record::Asked { machine, value, incident, .. } => {
            vec![format!("{machine} is asked for: {value:?}, {incident:?}")]
        }
        Record::Opened { at, incident, key, pool, away_since, .. } => {
            vec![format!("{incident:?} {key:?} of {pool:?} since {at:?}, away since {away_since:?}")]
        }
        Record::Closed { incident, verdict, .. } => vec![format!("{incident:?} is closed: {verdict:?}")],
        Record::Kept { incident, until, .. } => vec![format!("{incident:?} is kept until {until:?}")],
        Record::GivenUp { incident, .. } => vec![format!("{incident:?} is given up")],
        Record::CarriedOver { incident, repair_step, tries, outlasted, .. } => {
            let outlasted = outlasted.is_some();
            vec![format!(
                "{incident:?} is at step {repair_step}, try {tries}, well for its dwell: {outlasted}"
            )]
        }
        Record::FaultSeen { pool, instance, fault, .. } => {
            vec![format!("{pool:?} had {fault:?} at {instance:?}")]
        }
        Record::Arrived { pool, machine, .. } => vec![format!("{machine} arrived in {pool:?}")],
        Record::OthersActed { pools, until, what, guessed, since, images, versions, .. } => {
            vec![format!(
                "others act on {pools:?} since {since:?} until {until:?}: {what} (guessed: {guessed}), {images:?}, {versions:?}"
            )]
        }
        Record::Paused { scope, over: false, .. } => vec![format!("{scope:?} is paused")],
        Record::Numbered { incident, intent, begun, tidied, deleted, .. } => {
            vec![format!("{incident:?} {intent:?} {begun:?} {tidied:?} {deleted:?}")]
        }
        Record::Cluster { cluster, .. } => vec![format!("{cluster:?}")],
        _ => Vec::new(),
    }
}
