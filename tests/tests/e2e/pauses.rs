//! Hands off: said on the command line, or on the Node itself.

use anyhow::{Result, ensure};
use reveille_core::model::incident::FaultKind;
use reveille_tests::lab::Lab;
use reveille_tests::wait::{s, throughout, until};

use crate::network::mended;

/// Three machines lose their group. One is paused on the command line before any controller runs, which is saved and told as
/// not yet in effect; one by an annotation on its node; one is not: only that one is repaired, and the plan says why the
/// others wait. Said again beside the controller, the pause is in effect. Taken back, each is repaired.
pub(crate) fn a_pause_by_command_or_annotation_holds_and_its_end_lets_go(lab: &mut Lab) -> Result<()> {
    let crew = lab.crew()?;
    let roster = crew.roster("pauses").pool("workers");
    let place = lab.place(&[&roster])?;
    let pause = ["pause", "crew-1", "--reason", "Ann looks at it", "--by", "ann"];
    let saved = lab.reveille.ask(&place, &pause)?;
    ensure!(saved.code == Some(2) && saved.stdout.contains("no controller runs"), "pause: {saved:?}");
    lab.kube.ctl(&["annotate", "node", "crew-2", "--overwrite", "reveille.dev/pause=true"])?;
    for name in ["crew-1", "crew-2", "crew-3"] {
        lab.rig.fault(&["group-off", name])?;
    }
    let running = lab.start(&place)?;
    mended(&place, "crew-3", FaultKind::GroupMissing)?;
    let paused = lab.reveille.ask(&place, &pause)?;
    ensure!(paused.code == Some(0), "pause: {paused:?}");
    throughout("the paused ones are left alone", s(8), || {
        for machine in &crew.machines[..2] {
            let groups = lab.cloud.groups_of(&machine.id)?;
            ensure!(groups == [Vec::<String>::new()], "{} has {groups:?}", machine.name);
        }
        Ok(())
    })?;
    let (_, plan) = lab.reveille.plan(&place)?;
    let why = |name: &str| -> String {
        let held = plan.held.iter().filter(|held| held.subject == name).flat_map(|held| &held.held);
        held.flat_map(|held| held.why.clone()).collect::<Vec<_>>().join("; ")
    };
    ensure!(why("crew-1").contains("by ann: Ann looks at it"), "{plan:?}");
    ensure!(why("crew-2").contains("reveille.dev/pause"), "{plan:?}");
    let resumed = lab.reveille.ask(&place, &["resume", "crew-1"])?;
    ensure!(resumed.code == Some(0), "resume: {}", resumed.stderr);
    lab.kube.ctl(&["annotate", "node", "crew-2", "reveille.dev/pause-"])?;
    for name in ["crew-1", "crew-2"] {
        mended(&place, name, FaultKind::GroupMissing)?;
    }
    until("the status to end with 0", s(20), || {
        let (code, status) = lab.reveille.status(&place)?;
        ensure!(code == 0, "{code}, {:?}", status.summary);
        Ok(())
    })?;
    running.stop()?;
    Ok(())
}
