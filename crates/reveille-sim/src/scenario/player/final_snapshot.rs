//! A play and the world as it stands at the end, for a test that compares it with the end on another stage.
//!
//! What Reveille recorded and says is in the drive; here are only the names that the file has for what the world knows by
//! ids. After the end the world may go on for a while with nothing more happening to it.

use reveille_core::model::id::{InstanceId, PortId};
use reveille_core::model::time::Span;

use crate::drive::Drive;
use crate::scenario::cast::Cast;
use crate::scenario::{Refusal, Scenario};

use super::{Play, Played, play_through};

/// The end of a play.
#[derive(Clone, Debug)]
pub struct FinalSnapshot {
    /// How it went.
    pub played: Played,
    /// The engine and its world as they stand.
    pub drive: Drive,
    cast: Cast,
}

/// Plays a scenario and shows the stage at its end.
///
/// # Errors
///
/// A statement that names a machine that is not there at its time.
pub fn play_to_rest(scenario: &Scenario) -> Result<FinalSnapshot, Refusal> {
    let play: Play<'_> = play_through(scenario)?;
    let (drive, cast) = (play.drive.clone(), play.cast.clone());
    Ok(FinalSnapshot { played: play.finish(scenario), drive, cast })
}

impl FinalSnapshot {
    /// Lets so much time pass in which nothing more happens.
    pub fn wait(&mut self, span: Span) {
        self.drive.run_for(span);
        self.cast.update(&self.drive);
    }

    /// What the file calls this instance.
    pub fn name(&self, id: &InstanceId) -> String {
        self.cast.name(id)
    }

    /// What the file calls the machine that this port is of, if it still stands.
    pub fn owner(&self, port: &PortId) -> Option<String> {
        let machines = self.drive.world.machines();
        let owner = machines.iter().find(|machine| machine.ports.contains(port))?;
        Some(self.name(&owner.id))
    }

    /// Every machine of the roster that stands, by the file's name for it.
    pub fn machines(&self) -> Vec<(String, InstanceId)> {
        let machines = self.drive.world.machines().into_iter().filter(|machine| machine.pool.is_some());
        machines.map(|machine| (self.name(&machine.id), machine.id)).collect()
    }
}
