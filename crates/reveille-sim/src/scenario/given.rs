//! `given`: phrases that change the fleet before it exists.

use std::sync::Arc;

use reveille_core::model::access::{RoleRef, UserRef};
use reveille_core::model::roster::ServiceUser;
use reveille_core::model::roster::{Keep, Mode};
use reveille_core::model::time::Span;

use crate::world::layout::{CLOUD, Layout, PoolPlan};

use super::agents;
use super::hosting;
use super::phrase::{Known, Phrase, Slots, read};
use super::roster::Changed;
use super::stage::{Change, Stage, pools};
use super::words;

/// Nothing yet: no pool, everything as by default, and every remedy switched on.
pub(crate) fn blank() -> Stage {
    let mut layout = Layout::fleet(1, 0);
    layout.pools.clear();
    layout.plain_names = true;
    layout.access.repair = Mode::Act;
    Stage { layout, acting: true, known: Known::default(), changes: Vec::new() }
}

/// Takes in one statement.
pub(crate) fn take(stage: &mut Stage, text: &str) -> Result<(), String> {
    let change = read(&[PHRASES, agents::GIVEN, hosting::GIVEN], text, &stage.known)?;
    change(stage)
}

pub(crate) fn forms() -> Vec<&'static str> {
    [PHRASES, agents::GIVEN, hosting::GIVEN].into_iter().flatten().map(|phrase| phrase.form).collect()
}

fn layout(change: impl FnOnce(&mut Layout) + 'static) -> Result<Change, String> {
    Ok(Box::new(move |stage| {
        change(&mut stage.layout);
        Ok(())
    }))
}

const PHRASES: &[Phrase<Change>] = &[
    Phrase {
        form: "pool {pool} of {count} [machines|machine] in [zones|zone] {zones}",
        make: |slots| new_pool(slots, true),
    },
    Phrase { form: "pool {pool} of {count} [machines|machine]", make: |slots| new_pool(slots, false) },
    Phrase {
        form: "pool {pool} keeps at least {count}",
        make: |slots| {
            let (name, least) = (slots.pool()?, slots.count()?);
            layout(move |layout| {
                layout.pools.iter_mut().filter(|pool| pool.name == name).for_each(|pool| pool.min = least);
            })
        },
    },
    Phrase {
        form: "deadline joined never",
        make: |_| layout(|layout| layout.pools.iter_mut().for_each(|pool| pool.deadlines.join_within = None)),
    },
    Phrase {
        form: "pool {pool} has the startup taint {word}",
        make: |slots| {
            let taint: Arc<str> = slots.text("word").into();
            pools(slots, true, move |pool| pool.startup_taints.push(taint.clone()))
        },
    },
    Phrase {
        form: "pool {pool} keeps every machine that failed for {span}, {count} at a time",
        make: |slots| keep(slots, true),
    },
    Phrase {
        form: "pool {pool} keeps a marked machine that failed for {span}, {count} at a time",
        make: |slots| keep(slots, false),
    },
    Phrase {
        form: "incidents of pool {pool} close when a person confirms it",
        make: |slots| pools(slots, true, |pool| pool.deadlines.confirm = true),
    },
    Phrase { form: "deadline {word} {span} in pool {pool}", make: |slots| deadline(slots, true) },
    Phrase { form: "deadline {word} {span}", make: |slots| deadline(slots, false) },
    Phrase { form: "repair {words} {mode} in pool {pool}", make: |slots| repair(slots, true) },
    Phrase { form: "repair {words} {mode}", make: |slots| repair(slots, false) },
    Phrase {
        form: "limit freeze-above {percent}",
        make: |slots| {
            let share = words::percent(slots.text("percent"))?;
            layout(move |layout| layout.limits.freeze_above_pct = share)
        },
    },
    Phrase { form: "limit {word} {count}", make: limit },
    Phrase { form: "timing {word} {span}", make: timing },
    Phrase {
        form: "everything is quick",
        make: |_| {
            Ok(Box::new(|stage| {
                if stage.layout.pools.is_empty() {
                    return Err("this changes pools, too; write it after the last of them".to_owned());
                }
                stage.layout.quicken();
                Ok(())
            }))
        },
    },
    Phrase {
        form: "tries {count}",
        make: |slots| {
            let tries = slots.count()?;
            layout(move |layout| layout.timing.tries = tries)
        },
    },
    Phrase { form: "service user {word} must hold the [roles|role] {words}", make: service_user },
    Phrase { form: "pod routes lie on a router", make: |_| layout(|layout| layout.routed = true) },
    Phrase {
        form: "{count} [machines|machine] of another cluster in the project",
        make: |slots| {
            let neighbours = slots.count()?;
            layout(move |layout| layout.neighbours = neighbours)
        },
    },
    Phrase {
        form: "leases outlive their nodes",
        make: |_| layout(|layout| layout.lease_outlives_node = true),
    },
    Phrase {
        form: "ports carry the default group, too",
        make: |_| layout(|layout| layout.default_group = true),
    },
    Phrase {
        form: "deleting takes {span} to {span}",
        make: |slots| {
            let (least, most) = (slots.span()?, words::span(slots.second("span"))?);
            if most < least {
                return Err("the shorter time comes first".to_owned());
            }
            layout(move |layout| layout.deletes_within = (least, most))
        },
    },
    Phrase { form: "{machine} has long run without a node, and {trouble}", make: nodeless },
    Phrase {
        form: "nodes are called as their machines with {word} after it",
        make: |slots| {
            let suffix = slots.text("word").to_owned();
            layout(move |layout| layout.node_suffix = suffix)
        },
    },
    Phrase { form: "free names are given again", make: |_| layout(|layout| layout.names_reused = true) },
    Phrase {
        form: "Reveille only looks",
        make: |_| {
            Ok(Box::new(|stage| {
                stage.acting = false;
                Ok(())
            }))
        },
    },
    Phrase {
        form: "every instance of the project carries the tag {word}",
        make: |slots| {
            let tag = slots.text("word").to_owned();
            layout(move |layout| layout.common_tag = Some(tag))
        },
    },
    Phrase {
        form: "roster {word}: {text}",
        make: |slots| change(slots, Some(slots.text("text").to_owned())),
    },
    Phrase { form: "roster {word}:", make: |slots| change(slots, Some(String::new())) },
    Phrase { form: "the roster lacks {word}", make: |slots| change(slots, None) },
    Phrase {
        form: "seed {count}",
        make: |slots| {
            let seed = slots.count()?;
            layout(move |layout| layout.seed = u64::from(seed))
        },
    },
];

fn new_pool(slots: &Slots<'_>, zoned: bool) -> Result<Change, String> {
    let name = words::new_name(slots.text("pool"))?.to_owned();
    let count = slots.count()?;
    let mut zones = Vec::new();
    if zoned {
        for zone in slots.text("zones").split(", ").flat_map(|item| item.split(" and ")) {
            zones.push(words::new_name(zone)?.to_owned());
        }
    } else {
        zones.extend(["a", "b", "c"].map(str::to_owned));
    }
    Ok(Box::new(move |stage| {
        if name == "neighbour" || !stage.known.pools.insert(name.clone()) {
            return Err(format!("there is a pool `{name}` already; give this one another name"));
        }
        let mut plan = PoolPlan::new(&name, count);
        plan.zones = zones.iter().map(|zone| zone.as_str().into()).collect();
        stage.known.zones.extend(zones);
        stage.layout.pools.push(plan);
        Ok(())
    }))
}

fn deadline(slots: &Slots<'_>, named: bool) -> Result<Change, String> {
    let span = slots.span()?;
    let set: fn(&mut PoolPlan, Span) = match slots.text("word") {
        "joined" => |pool, span| pool.deadlines.join_within = Some(span),
        "built" => |pool, span| pool.deadlines.build_within = span,
        "deleted" => |pool, span| pool.deadlines.delete_within = span,
        "not-ready" => |pool, span| pool.deadlines.not_ready_within = span,
        "vanished" => |pool, span| pool.deadlines.vanished_within = span,
        "in-service" => |pool, span| pool.deadlines.in_service_within = span,
        "dwell" => |pool, span| pool.deadlines.dwell = span,
        other => {
            return Err(format!(
                "`{other}` is no deadline; one of: joined, built, deleted, not-ready, vanished, in-service, dwell"
            ));
        }
    };
    pools(slots, named, move |pool| set(pool, span))
}

fn repair(slots: &Slots<'_>, named: bool) -> Result<Change, String> {
    let mode = match slots.text("mode") {
        "act" => Mode::Act,
        "propose" => Mode::Propose,
        "off" => Mode::Off,
        other => return Err(format!("`{other}` is no mode; one of: act, propose, off")),
    };
    const CLASSES: [&str; 5] = ["network", "rejoin", "reboot", "replace", "cleanup"];
    if slots.text("words") == "access" {
        if named {
            return Err("service users are of the whole roster; leave the pool out".to_owned());
        }
        return layout(move |layout| layout.access.repair = mode);
    }
    let mut classes: Vec<String> = Vec::new();
    for word in slots.text("words").split(", ").flat_map(|item| item.split(" and ")) {
        match word {
            "everything" => classes.extend(CLASSES.map(str::to_owned)),
            word if CLASSES.contains(&word) => classes.push(word.to_owned()),
            other => {
                let classes = CLASSES.join(", ");
                return Err(format!(
                    "`{other}` is no remedy; one of: everything, {classes}; or access alone"
                ));
            }
        }
    }
    pools(slots, named, move |pool| {
        for class in &classes {
            match class.as_str() {
                "network" => pool.repair.network = mode,
                "rejoin" => pool.repair.rejoin = mode,
                "reboot" => pool.repair.reboot = mode,
                "replace" => pool.repair.replace = mode,
                _ => pool.repair.cleanup = mode,
            }
        }
    })
}

fn change(slots: &Slots<'_>, value: Option<String>) -> Result<Change, String> {
    let changed = Changed::new(slots.text("word"), value)?;
    Ok(Box::new(move |stage| {
        if stage.layout.pools.is_empty() {
            return Err("the roster is of a fleet; write `pool NAME of N machines` before it".to_owned());
        }
        stage.changes.push(changed);
        Ok(())
    }))
}

fn service_user(slots: &Slots<'_>) -> Result<Change, String> {
    let name = words::new_name(slots.text("word"))?.to_owned();
    let mut roles = Vec::new();
    for role in slots.text("words").split(", ").flat_map(|item| item.split(" and ")) {
        let role = RoleRef::Name(words::role(role)?.into());
        if roles.contains(&role) {
            return Err(format!("`{role}` is written twice; once is enough"));
        }
        roles.push(role);
    }
    Ok(Box::new(move |stage| {
        if !stage.known.users.insert(name.clone()) {
            return Err(format!("there is a service user `{name}` already; write all its roles there"));
        }
        let user = UserRef::Name { name: name.into(), domain: None };
        stage.layout.access.users.push(ServiceUser { cloud: CLOUD.into(), user: Arc::new(user), roles });
        Ok(())
    }))
}

fn keep(slots: &Slots<'_>, failed: bool) -> Result<Change, String> {
    let (within, at_most) = (slots.span()?, slots.count()?);
    if at_most == 0 {
        return Err("to keep none, leave the statement out".to_owned());
    }
    pools(slots, true, move |pool| pool.keep = Some(Keep { within, at_most, failed }))
}

fn limit(slots: &Slots<'_>) -> Result<Change, String> {
    let count = slots.count()?;
    let set: fn(&mut Layout, u32) = match slots.text("word") {
        "at-once" => |layout, count| layout.limits.at_once = count,
        "per-hour" => |layout, count| layout.limits.per_hour = count,
        "network-at-once" => |layout, count| layout.limits.network_at_once = count,
        "same-fault" => |layout, count| layout.limits.same_fault_stops_at = count,
        other => {
            return Err(format!(
                "`{other}` is no limit; one of: at-once, per-hour, network-at-once, same-fault, freeze-above (a share)"
            ));
        }
    };
    if count == 0 {
        return Err("a limit of 0 is no limit but a switch; write `repair everything off`".to_owned());
    }
    layout(move |layout| set(layout, count))
}

fn timing(slots: &Slots<'_>) -> Result<Change, String> {
    let span = slots.span()?;
    let set: fn(&mut Layout, Span) = match slots.text("word") {
        "cloud-period" => |layout, span| layout.timing.cloud_period = span,
        "cloud-full-period" => |layout, span| layout.timing.cloud_full_period = span,
        "cloud-stale" => |layout, span| layout.timing.cloud_stale_after = span,
        "cluster-stale" => |layout, span| layout.timing.cluster_stale_after = span,
        "lease-silent" => |layout, span| layout.timing.lease_silent_after = span,
        "backoff-min" => |layout, span| layout.timing.backoff_min = span,
        "backoff-max" => |layout, span| layout.timing.backoff_max = span,
        "verify" => |layout, span| layout.timing.verify_within = span,
        "settle" => |layout, span| layout.timing.settle = span,
        "rollout-quiet" => |layout, span| layout.timing.rollout_quiet = span,
        "access-check" => |layout, span| layout.access.check_every = span,
        other => {
            return Err(format!(
                "`{other}` is no timing; one of: cloud-period, cloud-full-period, cloud-stale, cluster-stale, \
                 lease-silent, backoff-min, backoff-max, verify, settle, rollout-quiet, access-check"
            ));
        }
    };
    if span == Span::ZERO {
        return Err("a time of nothing would be a loop; write at least 1s".to_owned());
    }
    layout(move |layout| set(layout, span))
}

fn nodeless(slots: &Slots<'_>) -> Result<Change, String> {
    let (name, _) = words::machine(slots.text("machine"), slots.known)?;
    let trouble = words::trouble(slots.text("trouble"))?;
    Ok(Box::new(move |stage| {
        let next = stage.layout.nodeless.len() + 1;
        let due = stage.layout.pools.first().map(|pool| format!("{}-{next}", pool.name));
        if due.as_ref() != Some(&name) {
            let due = due.unwrap_or_default();
            return Err(format!(
                "such machines are the first of the first pool, in order; the next is {due}"
            ));
        }
        stage.layout.nodeless.push(trouble);
        Ok(())
    }))
}
