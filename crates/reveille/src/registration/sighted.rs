//! What an engine knows of instances, for the registration server: which are gone for good, which are in sight again.
//!
//! ```text
//!  engine ─▶ Record::Forgotten, Joined, Born ─▶ Telling (bounded) ─▶ Event::InstancesSeen ─▶ the registry, which takes its time
//! ```
//!
//! The engine asked the cloud by the instance's id before it says that one is gone; a record of a machine is nothing that the
//! registry could judge by itself. What does not fit into the queue is lost and said so: then a record stays that nobody needs.
//! What is only out of sight (a mark was taken off) is not told: such a machine lives.

use reveille_core::model::id::{InstanceId, RosterName};
use reveille_core::model::incident::MachineKey;
use reveille_core::record::Record;
use reveille_registrar::registry::Event;
use reveille_registrar::server::Hand;
use reveille_wire::agent::Word;
use tokio::sync::mpsc;

/// Records that may wait for the registration server.
const RECORDS_MAX: usize = 1024;

/// Instances, and whether they are gone.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Sighted {
    instances: Vec<InstanceId>,
    gone: bool,
}

/// The engine's end.
#[derive(Clone, Debug)]
pub(crate) struct Telling(mpsc::Sender<Sighted>);

impl Telling {
    /// Both ends.
    pub(crate) fn new() -> (Self, mpsc::Receiver<Sighted>) {
        let (sender, receiver) = mpsc::channel(RECORDS_MAX);
        (Self(sender), receiver)
    }

    /// Passes on what a record says of instances; most say nothing.
    pub(crate) fn tell(&self, record: &Record) {
        let Some(sighted) = read(record) else { return };
        if self.0.try_send(sighted).is_err() && !self.0.is_closed() {
            tracing::warn!(
                "the registration server does not keep up: records of machines that are gone stay there"
            );
        }
    }
}

fn read(record: &Record) -> Option<Sighted> {
    let (machines, gone): (Vec<&MachineKey>, bool) = match record {
        Record::Forgotten { machines, .. } => (machines.iter().collect(), true),
        Record::Joined { machines, .. } => (machines.iter().map(|joined| &joined.machine).collect(), false),
        Record::Born { machine, .. } => (vec![machine], false),
        _ => return None,
    };
    let instances: Vec<InstanceId> = machines
        .into_iter()
        .filter_map(|machine| match machine {
            MachineKey::Instance(_, id) => Some(id.clone()),
            _ => None,
        })
        .collect();
    (!instances.is_empty()).then_some(Sighted { instances, gone })
}

/// Passes on until nobody says anything any more.
pub(super) async fn pass_on(hand: Hand, roster: RosterName, mut sighted: mpsc::Receiver<Sighted>) {
    while let Some(Sighted { instances, gone }) = sighted.recv().await {
        let instances = instances.iter().map(|id| Word::cut(id.as_str())).collect();
        let event = Event::InstancesSeen { roster: roster.clone(), instances, gone };
        if hand.say(event).await.is_err() {
            return;
        }
    }
}

#[cfg(test)]
mod tests {
    use reveille_core::model::time::Time;
    use reveille_core::record::Joined;

    use super::*;

    #[test]
    fn what_a_record_says_of_instances_is_whether_they_are_gone_and_most_say_nothing() {
        let at = Time::from_ms(1);
        let machine = |id: &str| MachineKey::Instance("os".into(), id.into());
        let node = MachineKey::Node("n1".into());
        let (telling, mut told) = Telling::new();
        telling.tell(&Record::Forgotten { at, machines: vec![machine("i1"), node.clone(), machine("i2")] });
        telling.tell(&Record::Forgotten { at, machines: vec![node] });
        telling.tell(&Record::Departed { at, machines: vec![machine("i3")] });
        telling.tell(&Record::Born { at, machine: machine("i1") });
        let joined = Joined { machine: machine("i2"), node: "n2".into(), pool: None };
        telling.tell(&Record::Joined { at, machines: vec![joined] });
        drop(telling);
        let all: Vec<Sighted> = std::iter::from_fn(|| told.try_recv().ok()).collect();
        let sighted =
            |ids: &[&str], gone| Sighted { instances: ids.iter().map(|id| (*id).into()).collect(), gone };
        assert_eq!(all, [sighted(&["i1", "i2"], true), sighted(&["i1"], false), sighted(&["i2"], false)]);
    }
}
