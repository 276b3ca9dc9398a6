//! Two controllers with one roster, as after a host was replaced and the old one came back: each has a ledger of its own.

use std::fs;

use anyhow::{Result, ensure};
use reveille_core::model::incident::FaultKind;
use reveille_tests::lab::Lab;
use reveille_tests::reveille::Place;
use reveille_tests::wait::{s, throughout, until};

use crate::network::{PUT_PORT, mended};

fn says(place: &Place, text: &str) -> Result<()> {
    until(&format!("the log to say {text:?}"), s(60), || {
        let log = fs::read_to_string(&place.log).unwrap_or_default();
        ensure!(log.contains(text), "it does not yet");
        Ok(())
    })
}

/// Two of a crew lose their group. The first controller repairs them and the second only observes and says so; once the first
/// has ended, the second takes the Lease over and repairs what is lost then.
pub(crate) fn a_second_controller_observes_until_the_first_has_ended(lab: &mut Lab) -> Result<()> {
    let crew = lab.crew()?;
    let roster = crew.roster("alone").pool("workers");
    let first = lab.place(&[&roster])?;
    let second = Place {
        state: first.state.with_file_name("state-of-another-host"),
        log: first.log.with_file_name("another.log"),
        ..first.clone()
    };
    let running = lab.start(&first)?;
    says(&first, "holds the Lease kube-system/reveille-alone")?;
    let other = lab.reveille.run(&second, &[])?;
    says(&second, "another controller holds the Lease kube-system/reveille-alone")?;
    for name in ["crew-1", "crew-2"] {
        lab.rig.fault(&["group-off", name])?;
    }
    for name in ["crew-1", "crew-2"] {
        mended(&first, name, FaultKind::GroupMissing)?;
    }
    let intends = |place: &Place| -> Result<usize> {
        Ok(place.ledger()?.incidents.iter().map(|incident| incident.intents.len()).sum())
    };
    throughout("the second intends nothing", s(8), || {
        ensure!(intends(&second)? == 0, "{}", second.ledger()?.told());
        Ok(())
    })?;
    let (_, plan) = lab.reveille.plan(&second)?;
    let text = serde_json::to_string(&plan)?;
    ensure!(text.contains("This one only observes"), "the plan of the second does not say so: {text}");
    ensure!(lab.proxy.calls()?.of("neutron", PUT_PORT) == 2, "{}", lab.proxy.calls()?);
    ensure!(running.stop()? == 0, "the first did not end well");
    says(&second, "holds the Lease kube-system/reveille-alone")?;
    lab.rig.fault(&["group-off", "crew-3"])?;
    mended(&second, "crew-3", FaultKind::GroupMissing)?;
    ensure!(other.stop()? == 0, "the second did not end well");
    let calls = lab.proxy.calls()?;
    ensure!(calls.of("neutron", PUT_PORT) == 3 && calls.writes().len() == 1, "{calls}");
    first.ledger()?.is_consistent()?;
    second.ledger()?.is_consistent()
}
