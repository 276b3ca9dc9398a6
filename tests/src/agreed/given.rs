//! What a file's `given` is on the rig: a roster with the very same numbers, machines, nodes, routes.
//!
//! The simulator reads its roster off the same layout. What the program makes of our roster file is held against that one,
//! so that the two stages cannot be given different limits, deadlines, ages or remedies.

use std::path::Path;

use anyhow::{Context, Result, anyhow, bail, ensure};
use reveille_core::model::roster::{Keep, Mode, Repair, Roster as Given};
use reveille_core::model::time::Span;
use reveille_sim::world::layout::Layout;

use super::host::{Host, Kind};
use crate::rig::{Machine, Rig};
use crate::roster::Roster;

/// What the file names a machine, and what the rig has made for it.
#[derive(Clone, Debug)]
pub(super) struct Made {
    pub(super) name: String,
    pub(super) pool: String,
    pub(super) machine: Machine,
}

/// The rig's name for a machine of a file.
pub(super) fn rig_name(prefix: &str, name: &str) -> String {
    format!("{prefix}-{name}")
}

/// The roster of this layout, for machines of this prefix.
///
/// # Errors
/// When the layout has what no roster of the rig can have.
pub(super) fn roster(prefix: &str, layout: &Layout, router: &str) -> Result<Roster> {
    let (limits, timing) = (&layout.limits, &layout.timing);
    let mut roster = Roster::new(prefix)
        .set("atOnce", &limits.at_once.to_string())
        .set("perHour", &limits.per_hour.to_string())
        .set("freezeAbove", &format!("{}%", limits.freeze_above_pct))
        .set("networkAtOnce", &limits.network_at_once.to_string())
        .set("sameFault", &limits.same_fault_stops_at.to_string())
        .set("tries", &timing.tries.to_string())
        .set("addressPairs", if layout.routed { "true" } else { "false" })
        .set("router", if layout.routed { router } else { "" });
    let times = [
        ("cloudPeriod", timing.cloud_period),
        ("cloudFullPeriod", timing.cloud_full_period),
        ("cloudStaleAfter", timing.cloud_stale_after),
        ("clusterStaleAfter", timing.cluster_stale_after),
        ("leaseSilentAfter", timing.lease_silent_after),
        ("backoffMin", timing.backoff_min),
        ("backoffMax", timing.backoff_max),
        ("verifyWithin", timing.verify_within),
        ("settle", timing.settle),
        ("rolloutQuiet", timing.rollout_quiet),
    ];
    for (place, span) in times {
        roster = roster.set(place, &seconds(span)?);
    }
    for pool in &layout.pools {
        let (deadlines, repair) = (&pool.deadlines, &pool.repair);
        let join = deadlines.join_within.map_or_else(|| Ok("never".to_owned()), seconds)?;
        let min = pool.min.to_string();
        let [build, delete] = [seconds(deadlines.build_within)?, seconds(deadlines.delete_within)?];
        let [not_ready, vanished] =
            [seconds(deadlines.not_ready_within)?, seconds(deadlines.vanished_within)?];
        let [in_service, dwell] = [seconds(deadlines.in_service_within)?, seconds(deadlines.dwell)?];
        let [network, rejoin, reboot, replace, cleanup] = modes(repair);
        let keep = pool.keep.map(keep).transpose()?.unwrap_or_default();
        let through = pool.hosting.is_some_and(|hosting| hosting.through);
        let through = if through { "throughGroup: true" } else { "" };
        roster = roster.pool_with(
            pool.name.as_str(),
            &[
                ("min", &min),
                ("join", &join),
                ("build", &build),
                ("delete", &delete),
                ("notReady", &not_ready),
                ("vanished", &vanished),
                ("inService", &in_service),
                ("dwell", &dwell),
                ("confirm", if deadlines.confirm { "true" } else { "false" }),
                ("keep", &keep),
                ("through", through),
                ("network", network),
                ("rejoin", rejoin),
                ("reboot", reboot),
                ("replace", replace),
                ("cleanup", cleanup),
            ],
        );
    }
    Ok(roster)
}

fn seconds(span: Span) -> Result<String> {
    ensure!(span.ms % 1000 == 0, "a roster counts in whole seconds, not {span}");
    Ok(format!("{}s", span.ms / 1000))
}

fn keep(keep: Keep) -> Result<String> {
    let when = if keep.failed { "failed" } else { "marked" };
    Ok(format!("keep: {{for: {}, atMost: {}, when: {when}}}", seconds(keep.within)?, keep.at_most))
}

const fn modes(repair: &Repair) -> [&'static str; 5] {
    const fn word(mode: Mode) -> &'static str {
        match mode {
            Mode::Off => "off",
            Mode::Propose => "propose",
            Mode::Act => "act",
        }
    }
    [
        word(repair.network),
        word(repair.rejoin),
        word(repair.reboot),
        word(repair.replace),
        word(repair.cleanup),
    ]
}

/// The roster file says what the layout says, as far as it is not about names and ids.
///
/// # Errors
/// At the first number that is another one.
pub(super) fn is_the_same(file: &Path, layout: &Layout) -> Result<()> {
    let written = std::fs::read_to_string(file).context("the roster that was written")?;
    let origin = reveille_wire::roster::Origin {
        name: "agreed",
        dir: file.parent().unwrap_or(Path::new("/")),
        home: None,
    };
    let read = reveille_wire::roster::read(&written, &origin).map_err(|refusal| anyhow!("{refusal}"))?;
    let ours = read.first().map(|checked| numbers(&checked.roster));
    let given = numbers(&layout.roster());
    ensure!(ours.as_ref() == Some(&given), "the rig's roster is another one: {ours:?} in place of {given:?}");
    Ok(())
}

/// Everything in a roster that is not a name or an id.
fn numbers(roster: &Given) -> String {
    let pools: Vec<_> = roster
        .pools
        .values()
        .map(|pool| {
            let name = pool.name.to_string();
            let groups = (pool.groups.clone(), pool.through_group);
            (name, pool.min, pool.deadlines, pool.keep, pool.repair, groups)
        })
        .collect();
    let network = &roster.network;
    format!(
        "{:?} {:?} {:?} {:?} router {} pairs {} conditions {:?}",
        roster.settles.values().collect::<Vec<_>>(),
        roster.limits,
        roster.timing,
        pools,
        network.router.is_some(),
        network.address_pairs,
        network.unreachable_conditions
    )
}

/// Makes the machines and their nodes.
///
/// # Errors
/// When one does not come up, or the layout has what the rig has not.
pub(super) fn fleet(rig: &Rig, prefix: &str, layout: &Layout) -> Result<Vec<Made>> {
    if !layout.nodeless.is_empty()
        || layout.default_group
        || layout.names_reused
        || !layout.node_suffix.is_empty()
    {
        bail!("the rig has no machines with a past, no default groups, no names given again, no suffixes");
    }
    let host = Kind::of(layout)?.host(rig, prefix, layout)?;
    let mut made = Vec::new();
    for pool in &layout.pools {
        let names: Vec<String> = (1..=pool.machines).map(|n| format!("{}-{n}", pool.name)).collect();
        let pool = pool.name.to_string();
        let machines = machines(&*host, prefix, &pool, &names)?;
        let named = names.into_iter().zip(machines);
        made.extend(named.map(|(name, machine)| Made { name, pool: pool.clone(), machine }));
    }
    let rig_names: Vec<&str> = made.iter().map(|made| made.machine.name.as_str()).collect();
    let routes: &[&str] = if layout.routed { &[] } else { &["--no-route"] };
    host.nodes(&rig_names, routes)?;
    Ok(made)
}

/// Machines of another cluster, which no roster of the file knows.
///
/// # Errors
/// When one does not come up.
pub(super) fn neighbours(rig: &Rig, prefix: &str, layout: &Layout) -> Result<Vec<Machine>> {
    if layout.neighbours == 0 {
        return Ok(Vec::new());
    }
    let host = Kind::of(layout)?.host(rig, prefix, layout)?;
    let names: Vec<String> =
        (1..=layout.neighbours).map(|n| rig_name(prefix, &format!("neighbour-{n}"))).collect();
    let words: Vec<&str> = names.iter().map(String::as_str).collect();
    host.launch(&format!("{prefix}-else"), "workers", &words, true)
}

fn machines(host: &dyn Host, prefix: &str, pool: &str, names: &[String]) -> Result<Vec<Machine>> {
    let rig_names: Vec<String> = names.iter().map(|name| rig_name(prefix, name)).collect();
    let words: Vec<&str> = rig_names.iter().map(String::as_str).collect();
    host.launch(prefix, pool, &words, false)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::agreed::files;

    #[test]
    fn rig_roster_has_every_number_of_the_scenario_file() {
        let folder = std::env::temp_dir().join(format!("reveille-agreed-{}", std::process::id()));
        std::fs::create_dir_all(&folder).unwrap();
        for file in files().unwrap() {
            let scenario = file.scenario().unwrap();
            let roster = roster("ag", scenario.layout(), "router: r-1").unwrap();
            let path = folder.join("roster.yaml");
            let cloud = match Kind::of(scenario.layout()).unwrap() {
                Kind::OpenStack => "openstack: {cloud: demo}",
                Kind::Ec2 => "ec2: {region: us-east-1, cluster: ag}",
            };
            let roster = roster.set("kubeconfig", "/k").set("cloud", cloud);
            std::fs::write(&path, roster.text().unwrap()).unwrap();
            is_the_same(&path, scenario.layout()).unwrap_or_else(|why| panic!("{}: {why}", file.name));
        }
        std::fs::remove_dir_all(&folder).unwrap();
    }
}
