//! Sources that lie, fail or fall silent: nothing is done on their word, the reason is told, and sight comes back unaided.

use std::time::Duration;

use anyhow::{Result, ensure};
use reveille_tests::lab::Lab;
use reveille_tests::reveille::Place;
use reveille_tests::roster::Roster;
use reveille_tests::wait::{s, throughout, until};
use serde_json::json;

const MACHINES: u32 = 20;

/// A roster that allows everything for every machine as soon as possible: only judgement protects the machines.
fn reckless(roster: Roster) -> Roster {
    let roster = roster.set("replace", "act").set("reboot", "act").set("cleanup", "act").set("rejoin", "off");
    roster.set("join", "5s").set("atOnce", "20").set("perHour", "1000").pool("workers")
}

/// Every machine answers, and the status ends with 0.
fn all_answer(lab: &Lab, place: &Place, within: Duration) -> Result<()> {
    until("every machine to be Ready", within, || {
        let (code, status) = lab.reveille.status(place)?;
        ensure!(code == 0 && status.summary.absent == 0, "{code}, {:?}", status.summary);
        Ok(())
    })
}

/// The status cannot tell and ends with 2; the source of that name says this of itself.
fn cannot_tell(lab: &Lab, place: &Place, source: &str, why: &str) -> Result<()> {
    let (code, status) = lab.reveille.status(place)?;
    let told =
        status.sources.iter().find(|known| known.name == source).and_then(|known| known.why_not.clone());
    let told = told.unwrap_or_default();
    ensure!(code == 2 && status.summary.absent == 0, "the status ends with {code}: {:?}", status.summary);
    ensure!(told.contains(why), "{source} says: {told}");
    Ok(())
}

/// Twenty machines with nodes, past every deadline that there is. The node list comes back empty, first to a controller that
/// knew the nodes, then to one that starts without any memory. The controller judges no machine absent and does nothing, and
/// status and plan say why.
pub(crate) fn empty_node_list_costs_no_machine(lab: &mut Lab) -> Result<()> {
    let fleet = lab.fleet()?;
    let place = lab.place(&[&reckless(fleet.roster("nonodes"))])?;
    let running = lab.start_and_see(&place, MACHINES)?;
    all_answer(lab, &place, s(20))?;
    lab.proxy.arm("nodes-empty-list", json!({}))?;
    lab.proxy.arm("nodes-watch-gone", json!({}))?;
    until("the empty list to be read", s(30), || {
        let (gone, empty) = (lab.proxy.hits("nodes-watch-gone")?, lab.proxy.hits("nodes-empty-list")?);
        ensure!(gone > 0 && empty > 0, "{gone} watches ended, {empty} empty lists");
        Ok(())
    })?;
    lab.proxy.disarm("nodes-watch-gone")?;
    let nothing = || lab.proxy.calls()?.nothing_destructive();
    throughout("nothing is done", s(20), nothing)?;
    cannot_tell(lab, &place, "cluster", "the node list is empty beside 20 running instances")?;
    running.stop()?;
    let fresh = Place { state: place.state.with_extension("fresh"), ..place.clone() };
    let running = lab.start(&fresh)?;
    throughout("nothing is done by one without memory", s(20), nothing)?;
    cannot_tell(lab, &fresh, "cluster", "the node list is empty beside 20 running instances")?;
    lab.proxy.disarm("nodes-empty-list")?;
    all_answer(lab, &fresh, s(60))?;
    throughout("nothing is done after sight returns", s(6), nothing)?;
    running.stop()?;
    lab.proxy.calls()?.no_writes()
}

/// The server list comes back empty while every node is Ready: nothing is done, and status and plan say why. The same with a list
/// that breaks off after a few servers, pages that fail, and ports that no server has any more.
pub(crate) fn empty_or_broken_server_list_costs_nothing(lab: &mut Lab) -> Result<()> {
    let fleet = lab.fleet()?;
    let place = lab.place(&[&reckless(fleet.roster("noservers").set("cloudFullPeriod", "5s"))])?;
    let running = lab.start_and_see(&place, MACHINES)?;
    all_answer(lab, &place, s(20))?;
    let nothing = || lab.proxy.calls()?.no_writes();
    for fault in ["nova-empty-list", "neutron-empty-list"] {
        lab.proxy.arm(fault, json!({}))?;
        throughout(fault, s(12), nothing)?;
        ensure!(lab.proxy.hits(fault)? > 0, "{fault} has hit nothing");
        let (code, status) = lab.reveille.status(&place)?;
        ensure!(status.summary.absent == 0, "{fault}: {code}, {:?}", status.summary);
        let why = status.sources.iter().find(|source| source.name == "os").and_then(|os| os.why_not.clone());
        ensure!(why.is_some(), "{fault}: {:?}", status.sources);
        lab.proxy.disarm(fault)?;
        all_answer(lab, &place, s(20))?;
    }
    for (fault, arguments) in [("nova-page-fails", json!({"perPage": 7})), ("nova-cut", json!({"count": 2}))]
    {
        lab.proxy.arm(fault, arguments)?;
        until(&format!("{fault} to hit"), s(30), || {
            ensure!(lab.proxy.hits(fault)? > 0, "it has not yet");
            Ok(())
        })?;
        throughout(fault, s(6), nothing)?;
        lab.proxy.disarm(fault)?;
    }
    all_answer(lab, &place, s(30))?;
    throughout("nothing is done after sight returns", s(6), nothing)?;
    running.stop()?;
    Ok(())
}

/// The API server is frozen, then gone, each for longer than every deadline; a machine that was just born passes its own
/// in that time. Nothing is done, the status cannot tell, and everything is seen again unaided.
pub(crate) fn a_frozen_or_dead_api_server_stops_all_acts(lab: &mut Lab) -> Result<()> {
    let crew = lab.crew()?;
    // Longer than a silent cluster is still believed, or it would be due while the last reading counts.
    let roster = reckless(crew.roster("blind")).set("join", "20s");
    let place = lab.place(&[&roster])?;
    let running = lab.start_and_see(&place, 3)?;
    lab.machines(&crew.roster("blind"), "workers", &["blind-1"], &[])?;
    let nothing = || lab.proxy.calls()?.no_writes();
    for fault in ["api-hang", "api-kill"] {
        lab.rig.fault(&[fault])?;
        throughout(fault, s(26), nothing)?;
        cannot_tell(lab, &place, "cluster", "")?;
        lab.rig.lift(&[fault])?;
        if fault == "api-hang" {
            lab.rig.nodes(&["blind-1"], &["--no-route"])?;
        }
        all_answer(lab, &place, s(60))?;
    }
    throughout("nothing is done after sight returns", s(6), nothing)?;
    running.stop()?;
    Ok(())
}

/// Tokens expire, Keystone is away meanwhile, Nova throttles: reads fail as a whole, nothing is done, the status says why the
/// cloud is not believed, and a new login brings sight back unaided. Waits that the cloud asks for are kept.
pub(crate) fn expired_tokens_absent_keystone_and_throttling_are_survived(lab: &mut Lab) -> Result<()> {
    let crew = lab.crew()?;
    let place = lab.place(&[&reckless(crew.roster("login")).set("cloudStaleAfter", "15s")])?;
    let running = lab.start_and_see(&place, 3)?;
    let nothing = || lab.proxy.calls()?.no_writes();
    lab.proxy.arm("keystone-503", json!({}))?;
    lab.proxy.arm("token-expired", json!({}))?;
    throughout("without Keystone", s(20), nothing)?;
    let (code, status) = lab.reveille.status(&place)?;
    let os = status.sources.iter().find(|source| source.name == "os").and_then(|os| os.why_not.clone());
    ensure!(os.is_some_and(|why| why.contains("Keystone")), "{code}, {:?}", status.sources);
    ensure!(status.summary.answer == 3, "a Ready node is its own proof: {:?}", status.summary);
    lab.proxy.disarm("keystone-503")?;
    all_answer(lab, &place, s(40))?;
    until("the controller to list again", s(60), || {
        let before = lab.proxy.calls()?.forwarded("nova", "GET /v2.1/servers/detail");
        std::thread::sleep(s(6));
        let after = lab.proxy.calls()?.forwarded("nova", "GET /v2.1/servers/detail");
        ensure!(after > before, "no new listing in 6 s");
        Ok(())
    })?;
    lab.proxy.disarm("token-expired")?;
    lab.proxy.reset_calls()?;
    lab.proxy.arm("nova-429", json!({"retryAfter": 10}))?;
    throughout("throttled", s(20), nothing)?;
    let asked = lab.proxy.calls()?.of("nova", "GET /v2.1/servers/detail");
    ensure!((1..=3).contains(&asked), "{asked} listings in 20 s although 10 s were asked for");
    lab.proxy.disarm("nova-429")?;
    all_answer(lab, &place, s(40))?;
    running.stop()?;
    Ok(())
}
