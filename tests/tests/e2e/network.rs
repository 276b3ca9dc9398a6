//! Groups, rules, routes and address pairs: lost, put back, and proved by reading the services themselves.

use anyhow::{Context, Result, ensure};
use reveille_core::model::incident::FaultKind;
use reveille_core::record::Verdict;
use reveille_tests::cloud::text;
use reveille_tests::lab::Lab;
use reveille_tests::reveille::Place;
use reveille_tests::roster::Roster;
use reveille_tests::wait::{s, throughout, until};
use serde_json::{Value, json};

pub(crate) const PUT_PORT: &str = "PUT /v2.0/ports/{id}";
const POST_RULE: &str = "POST /v2.0/security-group-rules";
const DELETE_RULE: &str = "DELETE /v2.0/security-group-rules/{id}";
const ADD_ROUTES: &str = "PUT /v2.0/routers/{id}/add_extraroutes";
const REMOVE_ROUTES: &str = "PUT /v2.0/routers/{id}/remove_extraroutes";

/// Waits until the newest incident of this kind has closed as mended.
pub(crate) fn mended(place: &Place, label: &str, kind: FaultKind) -> Result<()> {
    until(&format!("{label}'s {kind} to close as mended"), s(60), || {
        place.ledger()?.newest(label, kind)?.ended(Verdict::Mended)
    })
}

/// A server that was made without its group: it never joined, the group is put on its port once, the incident closes as
/// repaired; the status ends with 1 while the machine is missing and with 0 once it has joined.
pub(crate) fn a_machine_without_its_group_is_mended_and_joins(lab: &mut Lab) -> Result<()> {
    let roster = Roster::new("nogroup").pool("workers");
    let machine = lab.machines(&roster, "workers", &["ng-1"], &["--no-group"])?.remove(0);
    ensure!(lab.cloud.groups_of(&machine.id)? == [Vec::<String>::new()], "the scene is not set");
    let place = lab.place(&[&roster])?;
    let (code, status) = lab.reveille.status(&place)?;
    ensure!(code == 1 && status.summary.absent == 1, "the status before: {code}, {:?}", status.summary);
    let running = lab.start(&place)?;
    let group = lab.rig.facts.openstack.security_group.clone();
    until("the group on the port", s(30), || {
        let groups = lab.cloud.groups_of(&machine.id)?;
        ensure!(groups == [vec![group.clone()]], "{groups:?}");
        Ok(())
    })?;
    mended(&place, "ng-1", FaultKind::GroupMissing)?;
    lab.rig.nodes(&["ng-1"], &["--no-route"])?;
    until("the status to end with 0", s(20), || {
        let (code, status) = lab.reveille.status(&place)?;
        ensure!(code == 0 && status.summary.answer == 1, "{code}, {:?}", status.summary);
        Ok(())
    })?;
    ensure!(running.stop()? == 0, "run did not end well");
    let calls = lab.proxy.calls()?;
    ensure!(calls.of("neutron", PUT_PORT) == 1 && calls.writes().len() == 1, "{calls}");
    let ledger = place.ledger()?;
    ledger.is_consistent()?;
    ensure!(ledger.newest("ng-1", FaultKind::GroupMissing)?.code() == "RV104", "{}", ledger.told());
    Ok(())
}

fn ingress_of<'a>(rules: &'a [Value], protocol: &str) -> Option<&'a Value> {
    rules.iter().find(|rule| rule["direction"] == "ingress" && rule["protocol"] == protocol)
}

/// One pod rule is missing and comes back alone. Another one is there in another spelling, by number and for a wider
/// range: that counts, and nothing is added for it. The third keeps its id.
pub(crate) fn only_missing_pod_rules_come_back_and_wider_ones_count(lab: &mut Lab) -> Result<()> {
    let crew = lab.crew()?;
    let group = lab.rig.facts.openstack.security_group.clone();
    let before = lab.cloud.rules(&group)?;
    for protocol in ["tcp", "udp"] {
        let rule = ingress_of(&before, protocol).context("the rig's group has its pod rules")?;
        lab.cloud.drop_rule(&text(&rule["id"]))?;
    }
    let wider = json!({"protocol": "17", "remote_ip_prefix": "198.18.0.0/15"});
    let wider = lab.cloud.add_rule(&group, &wider)?;
    let roster = crew.roster("rules").pool("workers");
    let place = lab.place(&[&roster])?;
    let running = lab.start(&place)?;
    mended(&place, "group \"k8s-nodes\"", FaultKind::RulesMissing)?;
    running.stop()?;
    let (after, calls) = (lab.cloud.rules(&group)?, lab.proxy.calls()?);
    ensure!(calls.of("neutron", POST_RULE) == 1 && calls.writes().len() == 1, "{calls}");
    let tcp = ingress_of(&after, "tcp").context("no tcp rule came back")?;
    ensure!(tcp["remote_ip_prefix"] == "198.19.0.0/16" && tcp["ethertype"] == "IPv4", "{tcp}");
    ensure!(after.len() == before.len(), "{} rules became {}", before.len(), after.len());
    ensure!(after.iter().any(|rule| rule["id"] == *wider), "the wider rule is gone");
    let icmp = |rules: &[Value]| ingress_of(rules, "icmp").map(|rule| text(&rule["id"]));
    ensure!(icmp(&before).is_some() && icmp(&before) == icmp(&after), "the icmp rule is another one");
    ensure!(lab.reveille.status(&place)?.0 == 0, "the status is not well");
    Ok(())
}

/// The controller removes a duplicate route with a dead next hop and a route of a pod range that no node has; the live one stays.
/// A missing route comes back; routes of another cluster on the same router are left alone.
pub(crate) fn stale_routes_go_missing_ones_come_back_foreign_ones_stay(lab: &mut Lab) -> Result<()> {
    let crew = lab.crew()?;
    let before = lab.cloud.routes()?;
    let foreign = vec![
        ("198.20.7.0/24".to_owned(), "10.8.0.7".to_owned()),
        ("198.20.7.0/24".to_owned(), "10.8.0.6".to_owned()),
    ];
    lab.cloud.change_routes(true, &foreign)?;
    lab.rig.fault(&["duplicate-route", "crew-1"])?;
    lab.rig.fault(&["route-to-dead"])?;
    lab.rig.fault(&["missing-route", "crew-2"])?;
    let roster = crew.roster("routes").set("router", &lab.router_line()).pool("workers");
    let place = lab.place(&[&roster])?;
    let running = lab.start(&place)?;
    let mut wanted = [before, foreign].concat();
    wanted.sort();
    until("the router to hold what it should", s(60), || {
        let mut routes = lab.cloud.routes()?;
        routes.sort();
        ensure!(routes == wanted, "{routes:?}");
        Ok(())
    })?;
    until("both incidents to close as mended", s(30), || {
        let ledger = place.ledger()?;
        ledger.newest("crew-2", FaultKind::MissingRoute)?.ended(Verdict::Mended)?;
        ledger.newest("", FaultKind::DuplicateRoute)?.ended(Verdict::Mended)
    })?;
    running.stop()?;
    let calls = lab.proxy.calls()?;
    let (added, removed) = (calls.of("neutron", ADD_ROUTES), calls.of("neutron", REMOVE_ROUTES));
    ensure!((added, removed, calls.writes().len()) == (1, 1, 2), "{calls}");
    Ok(())
}

/// A node's pod range is allowed on its port once it is missing there; a second port without the group gets it, which a
/// look at the server alone would not show; a port without port security is told of once and never called.
pub(crate) fn every_port_is_read_and_what_cannot_be_repaired_is_not_tried(lab: &mut Lab) -> Result<()> {
    let roster = Roster::new("ports").set("router", &lab.router_line()).set("addressPairs", "true");
    let roster = roster.pool("workers");
    let made = lab.machines(&roster, "workers", &["po-1", "po-2", "po-3"], &[])?;
    lab.rig.nodes(&["po-1"], &[])?;
    let own = lab.cloud.ports(&made[0].id)?.remove(0);
    lab.cloud.set_port(&text(&own["id"]), &json!({"allowed_address_pairs": []}))?;
    lab.rig.fault(&["second-port-without-group", "po-2"])?;
    let bare = lab.cloud.ports(&made[2].id)?.remove(0);
    lab.cloud
        .set_port(&text(&bare["id"]), &json!({"security_groups": [], "port_security_enabled": false}))?;
    let place = lab.place(&[&roster])?;
    let running = lab.start(&place)?;
    mended(&place, "po-2", FaultKind::GroupMissing)?;
    mended(&place, "po-1", FaultKind::PairMissing)?;
    let ledger = place.ledger()?;
    let unsecurable = ledger.newest("po-3", FaultKind::GroupMissing)?;
    ensure!(unsecurable.code() == "RV105" && unsecurable.intents.is_empty(), "{}", unsecurable.told());
    ensure!(ledger.about("po-3", FaultKind::GroupMissing).count() == 1, "{}", ledger.told());
    let group = lab.rig.facts.openstack.security_group.clone();
    ensure!(lab.cloud.groups_of(&made[1].id)? == [[group.clone()], [group]], "a port lacks its group");
    let pairs = lab.cloud.ports(&made[0].id)?[0]["allowed_address_pairs"].clone();
    let range = lab.kube.pod_range("po-1")?;
    ensure!(
        pairs.as_array().is_some_and(|pairs| pairs.len() == 1 && pairs[0]["ip_address"] == *range),
        "{pairs}"
    );
    running.stop()?;
    let calls = lab.proxy.calls()?;
    ensure!(calls.of("neutron", PUT_PORT) == 2 && calls.writes().len() == 1, "{calls}");
    Ok(())
}

/// Neutron says yes and nothing happens: tried again after a wait, given up after the tries that the roster grants, and
/// left alone from then on; the report says that a person is asked.
pub(crate) fn a_group_that_does_not_stick_is_given_up_after_its_tries(lab: &mut Lab) -> Result<()> {
    let roster = Roster::new("lost").set("tries", "2").set("verifyWithin", "5s").pool("workers");
    let machine = lab.machines(&roster, "workers", &["lo-1"], &["--no-group"])?.remove(0);
    lab.proxy.arm("neutron-port-put-lost", json!({}))?;
    let place = lab.place(&[&roster])?;
    let running = lab.start(&place)?;
    until("a person to be asked", s(60), || {
        let ledger = place.ledger()?;
        let incident = ledger.newest("lo-1", FaultKind::GroupMissing)?;
        ensure!(incident.given_up.is_some(), "{}", incident.told());
        let held: Vec<_> = incident.intents.iter().map(|intent| intent.held).collect();
        ensure!(held == [Some(false), Some(false)], "{held:?}");
        Ok(())
    })?;
    throughout("nothing more is tried", s(8), || {
        let tried = lab.proxy.calls()?.of("neutron", PUT_PORT);
        ensure!(tried == 2, "{tried} calls");
        Ok(())
    })?;
    ensure!(lab.cloud.groups_of(&machine.id)? == [Vec::<String>::new()], "the call was not lost");
    let (code, report) = lab.reveille.incidents(&place)?;
    let told = report.incidents.iter().find(|incident| incident.kind == "group-missing");
    ensure!(code == 1 && told.is_some_and(|incident| incident.given_up), "{code}, {told:?}");
    running.stop()?;
    Ok(())
}

/// A node says that its pods cannot be reached though group and routes are right: a harmless rule is put and taken back,
/// once, and the incident closes when the node takes its word back. What another nudge left lying is cleaned up.
pub(crate) fn an_unreachable_node_is_nudged_and_leftovers_are_cleaned(lab: &mut Lab) -> Result<()> {
    let crew = lab.crew()?;
    let group = lab.rig.facts.openstack.security_group.clone();
    let before = lab.cloud.rules(&group)?;
    let leftover = json!({"protocol": "tcp", "port_range_min": 9, "port_range_max": 9,
        "remote_ip_prefix": "198.51.100.77/32", "description": "reveille-nudge-4711"});
    let leftover = lab.cloud.add_rule(&group, &leftover)?;
    lab.kube.condition("crew-1", "RouteBroken", true)?;
    let roster = crew.roster("nudge").pool("workers");
    let place = lab.place(&[&roster])?;
    let running = lab.start(&place)?;
    until("the nudge", s(45), || {
        let calls = lab.proxy.calls()?;
        let (put, taken) = (calls.forwarded("neutron", POST_RULE), calls.forwarded("neutron", DELETE_RULE));
        ensure!((put, taken) == (1, 1), "{calls}");
        Ok(())
    })?;
    lab.kube.condition("crew-1", "RouteBroken", false)?;
    mended(&place, "crew-1", FaultKind::Unreachable)?;
    until("the leftover to be gone", s(90), || {
        let rules = lab.cloud.rules(&group)?;
        ensure!(!rules.iter().any(|rule| rule["id"] == *leftover), "it is still there");
        ensure!(rules == before, "the rules are not what they were: {rules:?}");
        Ok(())
    })?;
    running.stop()?;
    let calls = lab.proxy.calls()?;
    ensure!((calls.of("neutron", POST_RULE), calls.of("neutron", DELETE_RULE)) == (1, 2), "{calls}");
    Ok(())
}

/// The router is as full as it may be: that is told before a node needs the next route, and a route that is missing and
/// would not fit is not tried against the wall. Once there is room, it comes back.
pub(crate) fn a_full_router_is_foreseen_and_not_called_in_vain(lab: &mut Lab) -> Result<()> {
    let crew = lab.crew()?;
    let held = lab.cloud.routes()?.len();
    lab.rig.fault(&["missing-route", "crew-3"])?;
    let foreign = [("198.20.9.0/24".to_owned(), "10.8.0.7".to_owned())];
    lab.cloud.change_routes(true, &foreign)?;
    lab.rig.fault(&["route-limit", &held.to_string()])?;
    let roster = crew.roster("full").set("router", &lab.router_line()).set("verifyWithin", "5s");
    let place = lab.place(&[&roster.pool("workers")])?;
    let running = lab.start(&place)?;
    until("the limit to be told", s(30), || {
        let ledger = place.ledger()?;
        let incident = ledger.newest("", FaultKind::RouteLimit)?;
        ensure!(incident.code() == "RV111", "{}", incident.told());
        ledger.newest("crew-3", FaultKind::MissingRoute).map(drop)
    })?;
    throughout("no call runs against the wall", s(20), || lab.proxy.calls()?.no_writes())?;
    let (code, plan) = lab.reveille.plan(&place)?;
    ensure!(code == 1 && plan.asks.iter().any(|ask| ask.kind == "route-limit"), "{code}, {plan:?}");
    lab.cloud.change_routes(false, &foreign)?;
    mended(&place, "crew-3", FaultKind::MissingRoute)?;
    running.stop()?;
    Ok(())
}
