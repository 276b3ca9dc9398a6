//! The simulator's side: the file is played, and what came of it is put down.
//!
//! The engine is asked as `status` and `plan` ask it. A play that has not come to rest at its end is refused: what is compared
//! must not be a matter of the moment.

use anyhow::{Result, anyhow, ensure};
use reveille_core::decide::{Next, decide};
use reveille_core::diagnose::machine_state::MachineState;
use reveille_core::model::id::{InstanceId, PortId};
use reveille_core::model::incident::MachineKey;
use reveille_core::model::time::Span;
use reveille_core::observe::source::Trust;
use reveille_sim::scenario::{Ended, FinalSnapshot, Scenario, play_to_rest, transcript};
use reveille_sim::world::layout::CLOUD;

use super::account::{Account, FinalState, Names, Prospect, subject};
use crate::ledger::Ledger;

/// For so long after the end nothing may change.
const REST: Span = Span::from_s(30);

/// Plays a scenario in the simulated world.
///
/// # Errors
/// When something that it expects does not hold, or it does not come to rest.
pub fn account(scenario: &Scenario) -> Result<Account> {
    let mut snapshot = play_to_rest(scenario).map_err(|refusal| anyhow!("{refusal}"))?;
    for expected in &snapshot.played.expected {
        if let Ended::Failed(at, instead) = &expected.ended {
            let at_s = at.ms / 1000;
            let told = transcript(scenario, Some(&snapshot.played));
            return Err(anyhow!(
                "the simulator: \"{}\" does not hold at {at_s} s: {instead}\n{told}",
                expected.text
            ));
        }
    }
    let account = drawn_up(&snapshot);
    snapshot.wait(REST);
    let later = drawn_up(&snapshot);
    let (before, after) = account.differences(&later);
    ensure!(
        before.is_empty() && after.is_empty(),
        "the simulator is not at rest when the file ends; write a later `ends at`: {before:?} becomes {after:?}"
    );
    Ok(account)
}

fn drawn_up(snapshot: &FinalSnapshot) -> Account {
    let drive = &snapshot.drive;
    Account::new(&Ledger::of(drive.records().to_vec()), &final_state(snapshot), &Cast(snapshot))
}

fn final_state(snapshot: &FinalSnapshot) -> FinalState {
    let state = snapshot.drive.state();
    let context = state.context();
    let mut final_state = FinalState::default();
    for (name, id) in snapshot.machines() {
        let stands = state.machine_state(&MachineKey::Instance(CLOUD.into(), id));
        let word = match stands {
            Some(MachineState::Answers) => "ready",
            Some(MachineState::Excused(_)) => "excused",
            Some(MachineState::Starting(_)) => "starting",
            Some(MachineState::Absent(absence)) => absence.kind.name(),
            Some(MachineState::CannotTell(_)) => "unknown",
            None => "not in the status report",
        };
        final_state.machines.insert(name, word.to_owned());
    }
    let clouds = context.clouds.values().map(|cloud| (cloud.name.to_string(), &cloud.source));
    for (name, source) in clouds.chain([("cluster".to_owned(), &context.cluster.source)]) {
        if let Trust::No(why) = source.trust(context.now) {
            final_state.doubts.insert(name, why.to_string());
        }
    }
    for case in context.cases.values() {
        let decision = decide(&context, case);
        let prospect = match decision.next {
            Next::Act { .. } | Next::Wait { .. } | Next::Gather(_) | Next::UnderWay(_) | Next::Well => {
                Prospect::GoesOn
            }
            Next::Held { .. } => {
                let holds = decision.held.iter().flat_map(|(_, holds)| holds);
                Prospect::Held(holds.map(ToString::to_string).collect())
            }
            Next::Ask(_) => Prospect::Asks,
            Next::Blind(_) => Prospect::Blind,
        };
        let who = subject(&case.incident.key.subject, &Cast(snapshot));
        final_state.open.push((who, case.incident.key.kind.name().to_owned(), prospect));
    }
    final_state
}

struct Cast<'a>(&'a FinalSnapshot);

impl Names for Cast<'_> {
    fn machine(&self, id: &str) -> String {
        self.0.name(&InstanceId::from(id))
    }

    fn owner(&self, port: &PortId) -> String {
        self.0.owner(port).unwrap_or_else(|| "an owner that is gone".to_owned())
    }
}
