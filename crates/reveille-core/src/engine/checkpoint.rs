//! The shortest list of records that restores the engine's memory, for a rotated ledger: the inverse of `restore`.
//!
//! What is over is let go of, but for the newest incidents; what a later decision rests on is not: who had joined, what is
//! open and how far it was tried, what is under way, how much was begun within the hour, and how far the numbers are.

use std::sync::Arc;

use crate::model::attempt::{Ending, Readback};
use crate::model::incident::{Incident, IncidentKey, MachineKey, Subject};
use crate::model::signs;
use crate::model::time::Time;
use crate::observe::cloud::Left;
use crate::observe::machine_signs::Signs;
use crate::observe::remembered::Remembered;
use crate::plan::budget::{Counted, Phase, Tried, Width};
use crate::record::{Joined, Record};
use crate::remedies::escalation;

use super::newcomers::arrived;
use super::{Closed, JOINED_MAX, Numbers, State};

impl State {
    /// The shortest list of records that restores this memory.
    pub fn checkpoint(&self) -> Vec<Record> {
        let at = self.now;
        let mut records = vec![Record::Started { at, fence: self.start.fence }];
        if let Some(cluster) = self.cluster.identity.expected().cloned() {
            records.push(Record::Cluster { at, cluster });
        }
        records.extend(self.others.checkpoint(at));
        records.extend(self.rollouts.checkpoint(at));
        self.checkpoint_machines(&mut records);
        let closed = self.incidents.closed().map(|closed| (&closed.incident, Some(closed)));
        let open = self.incidents.open().values().map(|case| (&case.incident, None));
        for (incident, closed) in closed.chain(open) {
            self.checkpoint_incident(incident, &mut records);
            if let Some(Closed { at, watched_from, verdict, .. }) = closed {
                let watched_from = Some(*watched_from).filter(|from| from != at);
                let (at, verdict) = (*at, *verdict);
                records.push(Record::Closed { at, incident: incident.id, verdict, watched_from });
            }
        }
        records.extend(self.traces.checkpoint(|machine| self.incidents.has_open(machine)));
        for (domain, width) in self.book.widths() {
            // Without the repair that was proved, the next process would take it for one that is being proved still.
            let Width { width, not_before, failures, since, proved } = *width;
            let domain = domain.clone();
            let successor = None;
            records.push(Record::Width { at: since, domain, width, not_before, failures, proved, successor });
        }
        let arrived = |(pool, newcomer)| arrived(at, pool, newcomer);
        records.extend(self.newcomers.successors_alone().map(arrived));
        for (pool, fault, instance) in self.book.faults() {
            let (pool, fault, instance) = (pool.clone(), fault.clone(), instance.clone());
            records.push(Record::FaultSeen { at, pool, instance, fault });
        }
        records.extend(self.newcomers.witnesses().map(arrived));
        for (repair_step, Tried { requested, verified }) in self.book.tried_and_over() {
            records.push(Record::Counted { at, repair: Arc::from(repair_step.name()), requested, verified });
        }
        records.extend(self.requests.checkpoint(at));
        records.push(self.numbered(None));
        records
    }

    /// How far everything that is counted has come, since when the nodes are not seen, and what our clock showed before it
    /// jumped.
    pub(super) fn numbered(&self, jumped_from: Option<Time>) -> Record {
        let (begun, tidied) = (self.book.begun().collect(), self.book.tidied().collect());
        let deleted = self.book.deleted().cloned().collect();
        let Numbers { incident, intent } = self.numbers;
        let unseen_since = self.nodes_seen.unseen_since;
        let at = self.now;
        Record::Numbered { at, incident, intent, begun, tidied, deleted, unseen_since, jumped_from }
    }

    /// What the ledger says of the signs on a machine and its Node, and whether that Node is there.
    pub(super) fn signed(&self, machine: MachineKey, signs: Signs) -> Record {
        let Signs { removal, paused, locked, apart, group, named } = signs;
        let is = |sign| removal.as_deref() == Some(sign);
        let (cordoned, paused) = (is(signs::DRAINED), paused && !is(signs::PAUSE));
        let sign = removal.filter(|_| !cordoned);
        let gone = self.was_seen_to_go(&machine);
        let missing_since = self.out_of_sight.open_fates().get(&machine).copied();
        let (at, named) = (self.now, named.into_iter().collect());
        Record::Cordoned {
            at,
            machine,
            cordoned,
            sign,
            paused,
            locked,
            apart,
            group,
            named,
            gone,
            missing_since,
        }
    }

    pub(super) fn checkpoint_machines(&self, records: &mut Vec<Record>) {
        let at = self.now;
        let joined = |(machine, memory): (MachineKey, Remembered)| {
            Some(Joined { machine, node: memory.node?, pool: memory.pool })
        };
        records.extend(self.pauses.checkpoint(at));
        let joined: Vec<Joined> = self.ever_in_memory().filter_map(joined).collect();
        let joined = joined.chunks(JOINED_MAX).map(<[_]>::to_vec);
        records.extend(joined.map(|machines| Record::Joined { at, machines }));
        for (machine, memory) in self.ever_in_memory() {
            // When the first process saw it, and not when a ledger was rotated: whether it may have served in a gap that goes on
            // depends on that.
            if let Some(at) = memory.born {
                records.push(Record::Born { at, machine: machine.clone() });
            }
            let is_missed =
                self.was_seen_to_go(&machine) || self.out_of_sight.open_fates().contains_key(&machine);
            if memory.signs != Signs::default() || is_missed {
                records.push(self.signed(machine.clone(), memory.signs));
            }
            if let Some(Left { at, sign: why }) = memory.left.map(|left| *left) {
                records.push(Record::Left { at, machine, why });
            }
        }
        // After the joined: a machine that joined again is not lost.
        let departed =
            self.out_of_sight.departed().filter(|(_, memory)| memory.lost_together).map(|(key, _)| key);
        let lost: Vec<MachineKey> = self.cluster.lost_together.iter().chain(departed).cloned().collect();
        let (alone, lost): (Vec<_>, Vec<_>) =
            lost.into_iter().partition(|machine| self.cluster.lost_together.went_alone(machine));
        let lost = lost.chunks(JOINED_MAX).map(<[_]>::to_vec).chain(alone.into_iter().map(|it| vec![it]));
        records.extend(lost.map(|machines| Record::LostTogether { at, machines }));
        for disowned in [false, true] {
            let departed = self.out_of_sight.departed().filter(|(_, memory)| memory.disowned == disowned);
            let machines: Vec<MachineKey> = departed.map(|(machine, _)| machine.clone()).collect();
            if !machines.is_empty() {
                records.push(Record::Departed { at, machines, disowned });
            }
        }
    }

    fn checkpoint_incident(&self, incident: &Incident, records: &mut Vec<Record>) {
        let id = incident.id;
        let case = self.incidents.get(&incident.key).filter(|case| case.incident.id == id);
        records.push(Record::Opened {
            at: incident.first_seen,
            incident: id,
            key: incident.key.clone(),
            pool: incident.pool.clone(),
            label: incident.label.clone(),
            served_since: case.and_then(|case| case.served_since),
            away_since: case.map(|case| case.away_since).filter(|since| *since < incident.first_seen),
            watched_from: case.map(|case| case.watched_from).filter(|from| *from != incident.first_seen),
            resumed_at: case.and_then(|case| case.resumed_at),
        });
        let findings = incident.findings.clone();
        records.push(Record::Diagnosed { at: incident.first_seen, incident: id, findings });
        for attempt in &incident.attempts {
            let doubted = self.book.doubted().find(|(intent, _)| *intent == attempt.intent);
            let doubted = doubted.map(|(_, operation)| operation);
            let Some(operation) = self.book.operations.get(&attempt.intent).or(doubted) else {
                records.push(Record::Tried {
                    incident: id,
                    attempt: attempt.clone(),
                    repair_step: incident.repair_step,
                });
                continue;
            };
            let repair_steps = escalation(incident.key.kind);
            let repair_step =
                repair_steps.iter().position(|repair_step| *repair_step == operation.repair_step);
            records.push(Record::Intended {
                at: attempt.at,
                intent: attempt.intent,
                incident: id,
                repair_step: repair_step.map_or(incident.repair_step, |repair_step| repair_step as u8),
                fence: self.start.fence,
                call: operation.call.clone(),
                before: operation.before.clone(),
                domain: operation.domain.clone(),
            });
            let intent = attempt.intent;
            // The answer takes it back, and it counts again if the machine goes after all.
            if let Some(Counted { pool, instance, fault }) =
                doubted.and_then(|operation| operation.counted.clone())
            {
                records.push(Record::FaultSeen { at: attempt.at, pool, instance, fault });
            }
            match attempt.ending.clone() {
                Some(Ending::Answered { at, outcome }) => records.push(Record::Ended { at, intent, outcome }),
                Some(Ending::Dropped { at, why }) => records.push(Record::Dropped { at, intent, why }),
                None => {}
            }
            if let Some(Readback { at, held, text }) = attempt.readback.clone() {
                // Its time to be proved is counted from then, by what was watched.
                let at = if let Phase::Proving { since, .. } = operation.phase { since } else { at };
                records.push(Record::Judged { at, intent, held, text });
            }
            if attempt.logged_as.is_some() {
                records.push(Record::Tried {
                    incident: id,
                    attempt: attempt.clone(),
                    repair_step: incident.repair_step,
                });
            }
        }
        let Incident { repair_step, tries, not_before, .. } = *incident;
        if !incident.attempts.is_empty() || (repair_step, tries, not_before) != (0, 0, None) {
            records.push(self.stands(incident));
        }
        self.wanted_of(incident, records);
    }

    /// Where an incident stands on its escalation.
    fn stands(&self, incident: &Incident) -> Record {
        let case = self.incidents.get(&incident.key).filter(|case| case.incident.id == incident.id);
        let unconfirmed = case.and_then(|case| case.gathered.unconfirmed.clone());
        let lapsed = case.map(|case| case.lapsed.clone()).unwrap_or_default();
        let Incident { id: incident, repair_step, tries, not_before, .. } = *incident;
        let place = self.book.places.of(incident, self.now).cloned();
        Record::CarriedOver {
            incident,
            repair_step,
            tries,
            not_before,
            unconfirmed,
            lapsed,
            place,
            late_since: self.book.late_since(incident),
            outlasted: case.and_then(|case| case.outlasted),
        }
    }

    /// What people want of it, and that it was given up. These follow the record of where it stands: on replay, that one takes
    /// them back.
    fn wanted_of(&self, incident: &Incident, records: &mut Vec<Record>) {
        let (at, id) = (self.now, incident.id);
        if let (Some(asked), Subject::Machine(machine)) = (&incident.asked, &incident.key.subject) {
            let (machine, value) = (machine.clone(), asked.value.clone());
            records.push(Record::Asked { at: asked.at, machine, value, incident: Some(id) });
        }
        if let Some(until) = incident.kept_until {
            records.push(Record::Kept { at, incident: id, until });
        }
        if incident.given_up {
            records.push(Record::GivenUp { at, incident: id, why: Arc::from("as before") });
        }
    }

    /// Tells the ledger where an open incident stands now, where no record of an act says so.
    pub(super) fn record_escalation(&mut self, key: &IncidentKey) {
        let Some(case) = self.incidents.get(key) else { return };
        let mut records = vec![self.stands(&case.incident)];
        self.wanted_of(&case.incident, &mut records);
        for record in records {
            self.outbox.record(record);
        }
    }
}
