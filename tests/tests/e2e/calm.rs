//! What a healthy fleet costs.

use anyhow::{Result, ensure};
use reveille_tests::lab::Lab;
use reveille_tests::wait::{s, throughout};

/// Two rosters with four pools look at one project for two minutes while nothing happens: four requests a cycle for all
/// of them together, nothing written anywhere, nothing listed of the cluster that a watch tells.
pub(crate) fn a_healthy_project_costs_four_reads_a_cycle_whoever_looks(lab: &mut Lab) -> Result<()> {
    let (crew, fleet) = (lab.crew()?, lab.fleet()?);
    let first =
        crew.roster("calm").set("router", &lab.router_line()).pool("workers").pool("spare").pool("gpu");
    let second = fleet.roster("calm-too").set("router", &lab.router_line()).pool("workers");
    let place = lab.place(&[&first, &second.set("network", "propose")])?;
    let running = lab.start(&place)?;
    lab.sees_listings(&place)?;
    lab.proxy.reset_calls()?;
    throughout("nothing is written", s(120), || lab.proxy.calls()?.no_writes())?;
    let calls = lab.proxy.calls()?;
    running.stop()?;
    let cycles = calls.of("nova", "GET /v2.1/servers/detail");
    ensure!((20..=26).contains(&cycles), "{cycles} cycles of 5 s in two minutes: {calls}");
    for kind in ["GET /v2.0/ports", "GET /v2.0/security-groups", "GET /v2.0/routers"] {
        let asked = calls.of("neutron", kind);
        ensure!(asked.abs_diff(cycles) <= 1, "{kind} ×{asked} in {cycles} cycles");
    }
    let more = calls.of_cloud().saturating_sub(4 * cycles);
    ensure!(more <= 4, "{more} requests more than four a cycle: {calls}");
    ensure!(
        calls.of("kube", "GET /api/v1/nodes") == 0,
        "nodes were listed although they are watched: {calls}"
    );
    Ok(())
}
