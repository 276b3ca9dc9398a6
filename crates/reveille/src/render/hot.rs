//! The page of `hot`: the object first, then its rate, its writers, its changes, its machine, and what to do.

use std::fmt::Write as _;

use reveille_wire::report::{HotMachine, HotRate, HotReport, HotVerdict, PressureReport};

use super::output_style::{Paper, Tone, one_line};
use super::wrap;
use crate::cli::exit::Exit;

/// The most fields on the page; the JSON and YAML forms have all of them.
const FIELDS_SHOWN: usize = 4;
/// The most values of a field on the page.
const VALUES_SHOWN: usize = 4;
/// The most writers on the page.
const SUSPECTS_SHOWN: usize = 4;

/// The exit code of the report.
pub(crate) const fn exit(report: &HotReport) -> Exit {
    if !report.verdicts.is_empty() {
        Exit::Problems
    } else if report.kinds == 0 {
        Exit::CannotTell
    } else {
        Exit::NoProblem
    }
}

/// The whole page.
pub(crate) fn page(report: &HotReport, paper: &Paper) -> String {
    let mut page = head(report);
    for verdict in &report.verdicts {
        page.push('\n');
        page.push_str(&self::verdict(verdict, paper));
    }
    if let Some(pressure) = &report.pressure {
        let _ = write!(page, "\n{}\n", self::pressure(pressure, paper));
    }
    for note in &report.notes {
        let line = paper.tone(Tone::Doubt, format!("? {}", one_line(note)));
        page.push_str(&(wrap::hanging(paper, &line, 2) + "\n"));
    }
    page
}

fn head(report: &HotReport) -> String {
    let found = match report.verdicts.as_slice() {
        [] => "no object is updated in a loop".to_owned(),
        [_] => "1 object is updated in a loop".to_owned(),
        several => format!("{} objects are updated in a loop", several.len()),
    };
    match &report.server {
        Some(server) => {
            let HotReport { kinds, looked_s, .. } = report;
            format!("{} · {kinds} kinds · looked for {looked_s} s · {found}\n", one_line(server))
        }
        None => format!("from a log · {found}\n"),
    }
}

/// One verdict.
pub(crate) fn verdict(verdict: &HotVerdict, paper: &Paper) -> String {
    let name = self::name(verdict);
    let rate = verdict.rates.first().map(self::rate).unwrap_or_default();
    let (sign, tone) = if verdict.heat == "hot" { ("✗", Tone::Bad) } else { ("?", Tone::Doubt) };
    let mut text = paper.tone(tone, format!("{sign} {name}")) + &format!("  {} · {rate}\n", verdict.heat);
    let mut say = |what: &str, line: &str| {
        let line = format!("  {what:<10}  {}", one_line(line));
        text.push_str(&(wrap::hanging(paper, &line, 14) + "\n"));
    };
    say("looks like", &format!("{}: {}", verdict.class, verdict.means));
    for suspect in verdict.suspects.iter().take(SUSPECTS_SHOWN) {
        say("suspected", &format!("{}  {} writes ({})", suspect.name, suspect.writes, suspect.seen_in));
    }
    for field in verdict.fields.iter().take(FIELDS_SHOWN) {
        let value = |value: &reveille_wire::report::HotValue| match value.by.as_slice() {
            [] => value.value.clone(),
            by => format!("{} by {}", value.value, by.join(" and ")),
        };
        let values: Vec<String> = field.values.iter().take(VALUES_SHOWN).map(value).collect();
        let more = if field.values.len() > VALUES_SHOWN { " | …" } else { "" };
        let counts = format!("changed {} times, {} came back", field.changes, field.returns);
        say("field", &format!("{}  {}{more}  ({counts})", field.path, values.join(" | ")));
    }
    if let Some(machine) = &verdict.machine {
        say("machine", &self::machine(machine));
    }
    for rate in verdict.rates.iter().skip(1) {
        say("also", &self::rate(rate));
    }
    for note in &verdict.notes {
        say("note", note);
    }
    for (nth, step) in verdict.first_aid.iter().enumerate() {
        say(if nth == 0 { "do" } else { "" }, &format!("{}. {step}", nth + 1));
    }
    text
}

/// One verdict in a line, for pages about something else: what, where, how often, whose machine, by which clients.
pub(crate) fn line(verdict: &HotVerdict) -> String {
    let rate = verdict.rates.first().and_then(|rate| rate.per_s);
    let rate = rate.map_or_else(String::new, |per_s| format!(" is written {per_s:.2} times a second"));
    let names: Vec<&str> =
        verdict.suspects.iter().take(SUSPECTS_SHOWN).map(|one| one.name.as_str()).collect();
    let by = if names.is_empty() { String::new() } else { format!(", suspected: {}", names.join(", ")) };
    // The name of a Node is in the line already.
    let is_said = |machine: &&HotMachine| {
        let more = machine.cluster.is_some() || machine.cluster_id.is_some() || !machine.addresses.is_empty();
        !more && machine.node.as_ref().is_none_or(|node| Some(node) == verdict.name.as_ref())
    };
    let behind = verdict.machine.as_ref().filter(|machine| !is_said(machine)).map(machine);
    let behind = behind.map_or_else(String::new, |behind| format!(", behind it: {behind}"));
    let (place, with) = match &verdict.in_rancher {
        Some(server) => (format!(" in Rancher ({server})"), ", with Rancher's kubeconfig"),
        None => (String::new(), ""),
    };
    let (name, class, kind) = (name(verdict), &verdict.class, kind(verdict));
    one_line(&format!("{name}{place}{rate} ({class}){behind}{by}: reveille hot --kind {kind}{with}"))
}

fn kind(verdict: &HotVerdict) -> String {
    match verdict.group.as_str() {
        "" => verdict.resource.clone(),
        group => format!("{}.{group}", verdict.resource),
    }
}

/// The name of the object, in the form that kubectl accepts.
pub(crate) fn name(verdict: &HotVerdict) -> String {
    let kind = kind(verdict);
    one_line(&match (&verdict.namespace, &verdict.name) {
        (Some(namespace), Some(name)) => format!("{kind} {namespace}/{name}"),
        (None, Some(name)) => format!("{kind} {name}"),
        (_, None) => format!("{kind} (which one, the counts do not tell)"),
    })
}

fn rate(rate: &HotRate) -> String {
    let by = match rate.by.as_str() {
        "watch" => "seen by watching",
        "generation" => "by its generation, read twice",
        "lifetime" => "by its generation, over its life",
        "metrics" => "by the API server's counts",
        "audit-log" => "in the audit log",
        _ => "in the API server's log",
    };
    match rate.per_s {
        Some(per_s) => format!("{per_s:.2} writes/s ({} in {:.0} s, {by})", rate.writes, rate.over_s),
        None => format!("{} write(s), too few for a rate ({by})", rate.writes),
    }
}

fn machine(machine: &HotMachine) -> String {
    let cluster = match (&machine.cluster, &machine.cluster_id) {
        (Some(name), Some(id)) => Some(format!("cluster {name} ({id})")),
        (None, Some(id)) => Some(format!("cluster {id}")),
        (name, None) => name.as_ref().map(|name| format!("cluster {name}")),
    };
    let node = machine.node.as_ref().map(|node| format!("node {node}"));
    let addresses = (!machine.addresses.is_empty()).then(|| machine.addresses.join(" "));
    let parts: Vec<String> = [cluster, node, addresses].into_iter().flatten().collect();
    parts.join(" · ")
}

fn pressure(pressure: &PressureReport, paper: &Paper) -> String {
    const MIB: i64 = 1 << 20;
    let mib = |bytes: u64| bytes >> 20;
    let grown = pressure.grown_bytes / MIB;
    let rejected = match pressure.rejected {
        0 => String::new(),
        count => format!(", {count} requests turned away"),
    };
    let line = format!(
        "API server: {} MiB resident ({grown:+} MiB while we looked), {} MiB of heap{rejected}",
        mib(pressure.resident_bytes),
        mib(pressure.heap_bytes)
    );
    paper.tone(if pressure.is_high { Tone::Bad } else { Tone::Faint }, line)
}

#[cfg(test)]
mod tests {
    use jiff::tz::TimeZone;
    use reveille_core::model::time::Time;
    use reveille_hot::{Event, Object, Resource, Settings, State};
    use serde_json::json;

    use super::*;
    use crate::view;

    /// The report on two agents with one identity, from their first write to the page.
    fn fought() -> HotReport {
        let object = Object::new(Resource::new("management.cattle.io", "nodes"), "c-1", "machine-h46dc");
        let mut state = State::new(Settings::default(), true);
        for nth in 0..40 {
            let now = Time::from_ms(1_000_000 + nth * 250);
            let (manager, host) =
                if nth % 2 == 0 { ("agent-a", "host-1") } else { ("agent-b", "host\u{1b}[2J-2") };
            let whole = json!({"metadata": {"managedFields": [{"manager": manager, "time": nth,
                "fieldsV1": {"f:spec": {"f:rkeNode": {"f:dockerInfo": {"f:name": {}}}}}}]},
                "spec": {"rkeNode": {"dockerInfo": {"name": host}}, "requestedHostname": "w-1"}});
            state.step(now, Event::Written(object.clone()));
            state.step(now, Event::Version(object.clone(), Box::new(whole)));
        }
        let now = Time::from_ms(1_010_000);
        state.step(now, Event::Over);
        HotReport {
            at: now,
            server: Some("127.0.0.1:6443".to_owned()),
            looked_s: 10,
            kinds: 59,
            verdicts: state.verdicts(now).iter().map(view::hot::verdict).collect(),
            pressure: None,
            notes: vec!["not counted: pods".to_owned()],
        }
    }

    #[test]
    fn fight_page_names_object_writers_field_machine_and_remedy() {
        let report = fought();
        assert_eq!(exit(&report), Exit::Problems);
        let page = page(&report, &Paper { width: None, colored: false, zone: TimeZone::UTC });
        for wanted in [
            "127.0.0.1:6443 · 59 kinds · looked for 10 s · 1 object is updated in a loop",
            "✗ nodes.management.cattle.io c-1/machine-h46dc  hot · 4.00 writes/s (40 in 10 s, seen by watching)",
            "  looks like  docker-info: ",
            "  suspected   agent-a",
            "  suspected   agent-b",
            "  field       spec.rkeNode.dockerInfo.name",
            "host-1 by agent-a",
            "  machine     cluster c-1 · node w-1",
            "  do          1. identify the writer by the audit log",
            "? not counted: pods",
        ] {
            assert!(page.contains(wanted), "{wanted:?} is not in\n{page}");
        }
        assert!(!page.contains('\u{1b}'), "foreign texts move no cursor");
    }

    #[test]
    fn nothing_is_well_only_when_something_was_counted() {
        let calm = HotReport { verdicts: Vec::new(), ..fought() };
        assert_eq!(exit(&calm), Exit::NoProblem);
        assert_eq!(exit(&HotReport { kinds: 0, ..calm }), Exit::CannotTell);
    }
}
