//! Tells the registration server what an engine knows about instances: which are gone for good, and which exist again.
//!
//! ```text
//!  ledger at the start ─┐
//!  engine ─▶ Record::Forgotten, Joined, Born, Returned ─▶ Telling: the last state of each instance
//!                                                          └─▶ Event::InstancesSeen ─▶ the registry
//! ```
//!
//! The engine asked the cloud by the instance's id before it records that an instance is gone; the registry could not
//! judge that from its record of the machine. A slow registry gets the facts late and loses none: only the last state of
//! each instance counts, so the fleet limits what waits. Facts that the previous process may not have delivered are in
//! its ledger, and are sent again. An instance that only lost its mark is not reported, because such a machine lives.

use std::collections::BTreeMap;
use std::sync::{Arc, Mutex, PoisonError};

use reveille_core::model::id::{InstanceId, RosterName};
use reveille_core::model::incident::MachineKey;
use reveille_core::record::Record;
use reveille_registrar::registry::Event;
use reveille_registrar::server::Hand;
use reveille_wire::agent::Word;
use tokio::sync::mpsc;

/// For each instance whether it is gone, since the registry was last told.
type Told = Arc<Mutex<BTreeMap<InstanceId, bool>>>;

/// The engine's end.
#[derive(Clone, Debug)]
pub(crate) struct Telling {
    told: Told,
    wake: mpsc::Sender<()>,
}

/// The registration server's end.
#[derive(Debug)]
pub(crate) struct Sighted {
    told: Told,
    woken: mpsc::Receiver<()>,
}

impl Telling {
    /// Both ends.
    pub(crate) fn new() -> (Self, Sighted) {
        let told = Told::default();
        let (wake, woken) = mpsc::channel(1);
        (Self { told: told.clone(), wake }, Sighted { told, woken })
    }

    /// Reports the content of a ledger at the start. A checkpoint names the instances that departed after all that joined.
    /// It does not say whether such an instance is gone for good or only lost its mark, so nothing is reported about it.
    pub(crate) fn tell_all(&self, ledger: &[Record]) {
        for record in ledger {
            self.tell(record);
            if let Record::Departed { machines, .. } = record {
                let mut told = self.told.lock().unwrap_or_else(PoisonError::into_inner);
                for instance in instances(machines) {
                    told.remove(&instance);
                }
            }
        }
    }

    /// Reports what a record says about instances; most records say nothing.
    pub(crate) fn tell(&self, record: &Record) {
        let (instances, gone) = read(record);
        if instances.is_empty() {
            return;
        }
        let mut told = self.told.lock().unwrap_or_else(PoisonError::into_inner);
        told.extend(instances.into_iter().map(|instance| (instance, gone)));
        // One wake-up that waits already covers all facts.
        let _ = self.wake.try_send(());
    }
}

impl Sighted {
    /// The facts since the last time, deleted instances apart from existing ones; `None` once every sender is gone.
    async fn next(&mut self) -> Option<[(Vec<Word>, bool); 2]> {
        self.woken.recv().await?;
        let told = std::mem::take(&mut *self.told.lock().unwrap_or_else(PoisonError::into_inner));
        let of = |wanted: bool| {
            let ids = told.iter().filter(|(_, gone)| **gone == wanted).map(|(id, _)| Word::cut(id.as_str()));
            (ids.collect(), wanted)
        };
        Some([of(true), of(false)])
    }
}

fn read(record: &Record) -> (Vec<InstanceId>, bool) {
    match record {
        Record::Forgotten { machines, .. } => (instances(machines).collect(), true),
        Record::Joined { machines, .. } => {
            (instances(machines.iter().map(|joined| &joined.machine)).collect(), false)
        }
        Record::Born { machine, .. } => (instances([machine]).collect(), false),
        Record::Returned { machines, .. } => (instances(machines).collect(), false),
        _ => (Vec::new(), false),
    }
}

fn instances<'a>(machines: impl IntoIterator<Item = &'a MachineKey>) -> impl Iterator<Item = InstanceId> {
    machines.into_iter().filter_map(|machine| match machine {
        MachineKey::Instance(_, id) => Some(id.clone()),
        MachineKey::Node(_) => None,
    })
}

/// Passes facts on until every sender is gone.
pub(super) async fn pass_on(hand: Hand, roster: RosterName, mut sighted: Sighted) {
    while let Some(told) = sighted.next().await {
        for (instances, gone) in told.into_iter().filter(|(instances, _)| !instances.is_empty()) {
            let event = Event::InstancesSeen { roster: roster.clone(), instances, gone };
            if hand.say(event).await.is_err() {
                return;
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use reveille_core::model::time::Time;
    use reveille_core::record::Joined;

    use super::*;

    fn machine(id: &str) -> MachineKey {
        MachineKey::Instance("os".into(), id.into())
    }

    fn words(ids: &[&str]) -> Vec<Word> {
        ids.iter().map(|id| Word::cut(id)).collect()
    }

    #[tokio::test]
    async fn records_tell_only_whether_instances_are_gone() {
        let at = Time::from_ms(1);
        let node = MachineKey::Node("n1".into());
        let (telling, mut sighted) = Telling::new();
        telling.tell(&Record::Forgotten { at, machines: vec![node.clone()] });
        telling.tell(&Record::Departed { at, machines: vec![machine("i3")], disowned: false });
        telling.tell(&Record::Forgotten { at, machines: vec![machine("i1"), node, machine("i2")] });
        assert_eq!(sighted.next().await, Some([(words(&["i1", "i2"]), true), (Vec::new(), false)]));
        telling.tell(&Record::Born { at, machine: machine("i1") });
        let joined = Joined { machine: machine("i2"), node: "n2".into(), pool: None };
        telling.tell(&Record::Joined { at, machines: vec![joined] });
        telling.tell(&Record::Returned { at, machines: vec![machine("i3")] });
        drop(telling);
        assert_eq!(sighted.next().await, Some([(Vec::new(), true), (words(&["i1", "i2", "i3"]), false)]));
        assert_eq!(sighted.next().await, None);
    }

    #[tokio::test]
    async fn a_ledger_that_was_rotated_takes_no_departure_back() {
        let at = Time::from_ms(1);
        let joined = |id: &str| Joined { machine: machine(id), node: id.into(), pool: None };
        let (telling, mut sighted) = Telling::new();
        telling.tell_all(&[
            Record::Joined { at, machines: vec![joined("i1"), joined("i2")] },
            Record::Departed { at, machines: vec![machine("i1")], disowned: false },
            Record::Forgotten { at, machines: vec![machine("i3")] },
        ]);
        assert_eq!(sighted.next().await, Some([(words(&["i3"]), true), (words(&["i2"]), false)]));
    }

    #[tokio::test]
    async fn slow_registry_gets_the_last_state_of_every_machine() {
        let at = Time::from_ms(1);
        let (telling, mut sighted) = Telling::new();
        for number in 0..5_000 {
            telling.tell(&Record::Forgotten { at, machines: vec![machine(&format!("i{number:04}"))] });
        }
        telling.tell(&Record::Born { at, machine: machine("i0007") });
        let [(gone, _), (here, _)] = sighted.next().await.unwrap();
        assert_eq!((gone.len(), here), (4_999, words(&["i0007"])));
    }
}
