//! The way of what machines say to the controller.
//!
//! The registry waits for no controller: a message for which the queue has no room is lost, and the next report of its
//! machine says all of it again. That is logged once a minute, however many machines speak: a controller that stands still
//! behind a fleet would otherwise have a line for each of their messages.

use std::time::Instant;

use tokio::sync::mpsc;

use super::log_limits::Lines;
use crate::registry::Heard;

/// The controller's end of the registry.
#[derive(Debug)]
pub(super) struct Ear {
    heard: mpsc::Sender<Heard>,
    lost: Lines<()>,
}

impl Ear {
    pub(super) fn new(heard: mpsc::Sender<Heard>) -> Self {
        Self { heard, lost: Lines::default() }
    }

    /// Passes a message on, if there is room for it and a controller that listens.
    pub(super) fn tell(&mut self, heard: Heard) {
        if let Some(times) = self.pass(Instant::now(), heard) {
            tracing::warn!(
                times,
                "the controller does not keep up with the machines; messages of machines were lost"
            );
        }
    }

    /// How many messages were lost since that was logged last; none where it must not be logged yet.
    fn pass(&mut self, now: Instant, heard: Heard) -> Option<u64> {
        let is_lost = self.heard.try_send(heard).is_err() && !self.heard.is_closed();
        is_lost.then(|| self.lost.is_due(now, (), "lost")).flatten()
    }
}

#[cfg(test)]
mod tests {
    use std::time::Duration;

    use reveille_wire::agent::Identity;

    use super::*;
    use crate::registry::{MachineId, What, Who};

    #[test]
    fn messages_that_are_lost_are_told_once_a_minute_with_how_many() {
        let heard = || {
            let who = Who {
                machine: MachineId::new("m-1"),
                roster: "prod".into(),
                node_name: "w-1".into(),
                identity: Identity::default(),
            };
            Heard { who: who.into(), what: What::Silent }
        };
        let (sender, mut inbox) = mpsc::channel(1);
        let (mut ear, begun) = (Ear::new(sender), Instant::now());
        assert_eq!(ear.pass(begun, heard()), None, "it came");
        let told: Vec<u64> = (0..100).filter_map(|_| ear.pass(begun, heard())).collect();
        assert_eq!(told, [1]);
        assert_eq!(ear.pass(begun + Duration::from_mins(1), heard()), Some(100));
        inbox.close();
        assert_eq!(ear.pass(begun + Duration::from_mins(3), heard()), None, "no controller listens any more");
    }
}
