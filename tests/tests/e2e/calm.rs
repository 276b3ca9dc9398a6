//! What a healthy fleet costs.

use anyhow::{Result, ensure};
use reveille_tests::lab::Lab;
use reveille_tests::wait::{s, throughout};

/// The question for one node's metadata that proves the API server alive is answered by so much less than a list of the nodes
/// here. How long a node's metadata is depends on who has written to it.
const PROBE_SHARE: u64 = 8;

/// Two rosters with four pools look at one project for a minute (twelve cycles, three of them full) while nothing happens:
/// four requests a cycle for all of them together, nothing written anywhere, no list of the nodes that are watched, and no
/// incident.
pub(crate) fn healthy_project_costs_four_reads_a_cycle(lab: &mut Lab) -> Result<()> {
    let (crew, fleet) = (lab.crew()?, lab.fleet()?);
    // The fleet's machines have no routes, so a router in their roster would be no calm.
    let first =
        crew.roster("calm").set("router", &lab.router_line()).pool("workers").pool("spare").pool("gpu");
    let second = fleet.roster("calm-too").pool("workers");
    let place = lab.place(&[&first, &second])?;
    let running = lab.start(&place)?;
    lab.sees_listings(&place)?;
    lab.proxy.reset_calls()?;
    throughout("nothing is written", s(60), || lab.proxy.calls()?.no_writes())?;
    let calls = lab.proxy.calls()?;
    running.stop()?;
    let cycles = calls.of("nova", "GET /v2.1/servers/detail");
    ensure!((10..=13).contains(&cycles), "{cycles} cycles of 5 s in a minute: {calls}");
    for kind in ["GET /v2.0/ports", "GET /v2.0/security-groups", "GET /v2.0/routers"] {
        let asked = calls.of("neutron", kind);
        ensure!(asked.abs_diff(cycles) <= 1, "{kind} ×{asked} in {cycles} cycles");
    }
    let more = calls.of_cloud().saturating_sub(4 * cycles);
    ensure!(more <= 2, "{more} requests more than four a cycle: {calls}");
    let (probes, bytes) = (calls.of("kube", "GET /api/v1/nodes"), calls.bytes("kube", "GET /api/v1/nodes"));
    let list = u64::try_from(lab.kube.ctl(&["get", "--raw", "/api/v1/nodes"])?.len())?;
    ensure!(
        bytes * PROBE_SHARE <= probes * list,
        "{bytes} bytes in {probes} answers: nodes were listed ({list})"
    );
    let ledger = place.ledger()?;
    ensure!(ledger.incidents.is_empty(), "{}", ledger.told());
    Ok(())
}
