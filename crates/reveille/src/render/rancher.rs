//! The page on Rancher's records: the problems, machine by machine, beside a healthy record; then what is healthy, and
//! what was not read.

use std::fmt::Write as _;

use reveille_wire::report::{
    RancherClusterReport, RancherDifferenceReport, RancherMachineReport, RancherRecordsReport, RancherReport,
    RancherTroubleReport,
};

use super::output_style::{Paper, Tone, one_line};
use super::table::{self, Text};
use super::wrap::hanging;
use crate::cli::exit::Exit;

/// The column where the text begins, behind its label.
pub(super) const INDENT: usize = 8;

/// The page.
pub(crate) fn page(report: &RancherReport, paper: &Paper) -> String {
    let mut page = String::new();
    let _ = writeln!(page, "{}", hanging(paper, &head(report, paper), 0));
    for cluster in &report.clusters {
        for trouble in &cluster.troubles {
            page.push('\n');
            let called = format!("{} ({})", one_line(&cluster.name), one_line(&cluster.id));
            of_machine(&mut page, &called, trouble, paper);
        }
    }
    if !report.machines.is_empty() {
        page.push('\n');
        page.push_str(&table::lines(paper, 0, report.machines.iter().map(machine_row).collect()));
        let mut told: Vec<(&str, &str)> =
            report.machines.iter().map(|machine| (machine.stage.as_str(), machine.first.as_str())).collect();
        told.sort_unstable();
        told.dedup();
        for (stage, first) in told {
            line(&mut page, stage, first, paper);
        }
    }
    page.push('\n');
    page.push_str(&table::lines(paper, 0, report.clusters.iter().map(cluster_row).collect()));
    for cluster in &report.clusters {
        for unread in &cluster.unread {
            let text = format!("? {}: {}", one_line(&cluster.name), one_line(unread));
            let _ = writeln!(page, "{}", hanging(paper, &paper.tone(Tone::Doubt, text), 2));
        }
    }
    for unread in &report.unread {
        let text = format!("? {}", one_line(unread));
        let _ = writeln!(page, "{}", hanging(paper, &paper.tone(Tone::Doubt, text), 2));
    }
    page
}

/// The exit code of the report. Without a client for a cluster less is judged. The page says so, and it does not put the
/// other results in doubt.
pub(crate) fn exit(report: &RancherReport) -> Exit {
    let is_moving = |machine: &RancherMachineReport| machine.stage == "deleting";
    if report.clusters.iter().any(|cluster| !cluster.troubles.is_empty())
        || report.machines.iter().any(|machine| !is_moving(machine))
    {
        return Exit::Problems;
    }
    let is_blind = |cluster: &RancherClusterReport| cluster.records.is_none();
    if report.clusters.iter().any(|cluster| is_blind(cluster) || cluster.garbled > 0)
        || !report.unread.is_empty()
    {
        return Exit::CannotTell;
    }
    Exit::NoProblem
}

fn head(report: &RancherReport, paper: &Paper) -> String {
    let troubles: usize = report.clusters.iter().map(|cluster| cluster.troubles.len()).sum();
    let clusters = match report.clusters.len() {
        1 => "1 cluster".to_owned(),
        many => format!("{many} clusters"),
    };
    let waiting = report.machines.iter().filter(|machine| machine.stage != "deleting").count();
    let server = one_line(&report.server);
    let machines =
        |count: usize| if count == 1 { "1 machine".to_owned() } else { format!("{count} machines") };
    let broken = format!("{} with broken records", machines(troubles));
    let text = match (troubles, waiting) {
        (0, 0) => format!("{server}: {clusters}, nothing is wrong in what was read."),
        (_, 0) => format!("{server}: {clusters}, {broken}."),
        (_, _) => format!("{server}: {clusters}, {broken}, {} on the way.", machines(waiting)),
    };
    let tone = match exit(report) {
        Exit::NoProblem => Tone::Good,
        Exit::Problems => Tone::Bad,
        _ => Tone::Doubt,
    };
    paper.tone(tone, text)
}

/// The part of a status page: a line for each machine with a broken record, and what was not read. Empty
/// where there is no problem.
pub(super) fn of_status(records: &RancherRecordsReport, paper: &Paper) -> String {
    let mut page = String::new();
    let mut rows: Vec<Vec<Text>> = records.troubles.iter().map(trouble_row).collect();
    rows.extend(records.machines.iter().map(machine_row));
    if !rows.is_empty() {
        page.push_str("\nIn Rancher's records:\n");
        page.push_str(&table::lines(paper, 0, rows));
    }
    page.push_str(&unread_lines(records, paper));
    page
}

/// The part of a `why` page: all that is known about the machine.
pub(super) fn of_why(records: &RancherRecordsReport, paper: &Paper) -> String {
    let mut page = String::new();
    let id = records.id.as_deref().unwrap_or("?");
    let called = format!("{} ({})", one_line(&records.name), one_line(id));
    for trouble in &records.troubles {
        page.push('\n');
        of_machine(&mut page, &called, trouble, paper);
    }
    for machine in &records.machines {
        page.push('\n');
        page.push_str(&table::lines(paper, 0, vec![machine_row(machine)]));
        line(&mut page, &machine.stage, &one_line(&machine.first), paper);
    }
    page.push_str(&unread_lines(records, paper));
    page
}

/// The codes and the first sentence; the operator finds the rest in `why`.
fn trouble_row(trouble: &RancherTroubleReport) -> Vec<Text> {
    let called = trouble.node.as_deref().map_or_else(|| trouble.records.join(", "), str::to_owned);
    let mut codes: Vec<&str> = trouble.findings.iter().map(|finding| finding.predicate.as_str()).collect();
    codes.dedup();
    let says = trouble.findings.first().map_or("", |finding| finding.says.as_str());
    vec![
        Text::toned(Tone::Bad, "✗"),
        Text::plain(one_line(&called)),
        Text::plain(codes.join(", ")),
        Text::plain(one_line(says)),
    ]
}

fn unread_lines(records: &RancherRecordsReport, paper: &Paper) -> String {
    let line = |unread: &String| {
        let text = format!("? Rancher: {}", one_line(unread));
        hanging(paper, &paper.tone(Tone::Doubt, text), 2) + "\n"
    };
    records.unread.iter().map(line).collect()
}

fn of_machine(page: &mut String, cluster: &str, trouble: &RancherTroubleReport, paper: &Paper) {
    let called = trouble.node.as_deref().map_or_else(|| trouble.records.join(", "), str::to_owned);
    let mut about = vec![format!("cluster {cluster}")];
    if trouble.node.is_some() && !trouble.records.is_empty() {
        about.push(format!("record {}", one_line(&trouble.records.join(", "))));
    }
    if !trouble.addresses.is_empty() {
        about.push(one_line(&trouble.addresses.join(", ")));
    }
    let title = format!("✗ {} · {}", one_line(&called), about.join(" · "));
    let _ = writeln!(page, "{}", hanging(paper, &paper.tone(Tone::Bad, title), 2));
    for finding in &trouble.findings {
        let label = format!("{} ({})", finding.says, finding.certainty);
        line(page, &finding.predicate, &label, paper);
        for evidence in &finding.evidence {
            let text = format!("{}  {}: {}", evidence.of, evidence.field, evidence.value);
            line(page, "", &paper.tone(Tone::Faint, one_line(&text)), paper);
        }
    }
    if let Some(sibling) = &trouble.sibling {
        let head = vec![
            Text::toned(Tone::Faint, "field"),
            Text::toned(Tone::Faint, format!("healthy ({})", one_line(sibling))),
            Text::toned(Tone::Faint, "this"),
        ];
        let row = |differs: &RancherDifferenceReport| {
            [&differs.field, &differs.healthy, &differs.this].map(|text| Text::plain(one_line(text))).to_vec()
        };
        let rows = std::iter::once(head).chain(trouble.differs.iter().map(row)).collect();
        page.push_str(&table::lines(paper, INDENT, rows));
    }
    // Predicates of one machine often have the same text, so each text is printed once, in their order.
    let mut said: Vec<&str> = Vec::new();
    for finding in &trouble.findings {
        for (label, text) in [("Means", &finding.means), ("Do", &finding.first), ("Never", &finding.never)] {
            if !said.contains(&text.as_str()) {
                said.push(text);
                line(page, label, text, paper);
            }
        }
    }
}

fn machine_row(machine: &RancherMachineReport) -> Vec<Text> {
    let (sign, tone) = if machine.stage == "deleting" { ("–", Tone::Faint) } else { ("✗", Tone::Bad) };
    vec![
        Text::toned(tone, sign),
        Text::plain(one_line(&format!("{}/{}", machine.cluster, machine.name))),
        Text::plain(machine.stage.clone()),
        Text::plain(one_line(&machine.cause)),
    ]
}

fn cluster_row(cluster: &RancherClusterReport) -> Vec<Text> {
    let (sign, tone) = match (&cluster.records, cluster.troubles.is_empty()) {
        (None, _) => ("?", Tone::Doubt),
        (_, false) => ("✗", Tone::Bad),
        _ => ("✓", Tone::Good),
    };
    let number = |count: Option<u32>, what: &str| {
        count.map_or_else(|| format!("{what} not read"), |count| format!("{count} {what}"))
    };
    let driver = if cluster.driver.is_empty() { "no driver: never initialised" } else { &cluster.driver };
    vec![
        Text::toned(tone, sign),
        Text::plain(one_line(&cluster.name)),
        Text::plain(one_line(&cluster.id)),
        Text::plain(one_line(driver)),
        Text::plain(format!("{}, {}", number(cluster.records, "records"), number(cluster.nodes, "nodes"))),
    ]
}

/// A line with a label; further lines of its text are indented.
pub(super) fn line(page: &mut String, label: &str, text: &str, paper: &Paper) {
    let _ = writeln!(page, "{}", hanging(paper, &format!("{label:<INDENT$}{text}"), INDENT));
}

#[cfg(test)]
mod tests {
    use jiff::tz::TimeZone;
    use reveille_wire::report::{RancherEvidenceReport, RancherFindingReport};

    use super::*;

    fn plain() -> Paper {
        Paper { width: None, colored: false, zone: TimeZone::UTC }
    }

    fn cluster(troubles: Vec<RancherTroubleReport>) -> RancherClusterReport {
        RancherClusterReport {
            id: "c-abcde".to_owned(),
            name: "shop".to_owned(),
            driver: "rancherKubernetesEngine".to_owned(),
            kind: "managed".to_owned(),
            records: Some(3),
            garbled: 0,
            nodes: None,
            troubles,
            unread: vec!["cannot list nodes: it was not named\u{1b}[2J".to_owned()],
        }
    }

    fn whole(clusters: Vec<RancherClusterReport>) -> RancherReport {
        RancherReport {
            server: "rancher:443".to_owned(),
            clusters,
            machines: Vec::new(),
            machines_seen: 0,
            unread: Vec::new(),
        }
    }

    fn finding(predicate: &str) -> RancherFindingReport {
        let evidence = RancherEvidenceReport {
            of: "machine-h46dc".to_owned(),
            field: "status.rkeNode".to_owned(),
            value: "not there".to_owned(),
        };
        RancherFindingReport {
            predicate: predicate.to_owned(),
            certainty: "high".to_owned(),
            says: format!("{predicate} holds"),
            evidence: vec![evidence],
            means: "it waits".to_owned(),
            first: "take it out".to_owned(),
            never: "not the record first".to_owned(),
        }
    }

    #[test]
    fn machine_is_compared_to_a_healthy_one_and_advised_once() {
        let differs = RancherDifferenceReport {
            field: "status.rkeNode".to_owned(),
            healthy: "there".to_owned(),
            this: "not there".to_owned(),
        };
        let trouble = RancherTroubleReport {
            records: vec!["machine-h46dc".to_owned()],
            node: Some("w-3".to_owned()),
            addresses: vec!["10.0.0.3".to_owned()],
            findings: vec![finding("P1"), finding("P3")],
            sibling: Some("m-0123456789ab".to_owned()),
            differs: vec![differs],
        };
        let wanted = "\
rancher:443: 1 cluster, 1 machine with broken records.

✗ w-3 · cluster shop (c-abcde) · record machine-h46dc · 10.0.0.3
P1      P1 holds (high)
        machine-h46dc status.rkeNode: not there
P3      P3 holds (high)
        machine-h46dc status.rkeNode: not there
        field           healthy (m-0123456789ab)  this
        status.rkeNode  there                     not there
Means   it waits
Do      take it out
Never   not the record first

✗  shop  c-abcde  rancherKubernetesEngine  3 records, nodes not read
? shop: cannot list nodes: it was not named\u{fffd}[2J
";
        assert_eq!(page(&whole(vec![cluster(vec![trouble])]), &plain()), wanted);
    }

    #[test]
    fn status_has_a_line_for_each_faulty_record_and_why_all_of_it() {
        let trouble = RancherTroubleReport {
            records: vec!["machine-h46dc".to_owned()],
            node: Some("w-3".to_owned()),
            addresses: Vec::new(),
            findings: vec![finding("P1"), finding("P3")],
            sibling: None,
            differs: Vec::new(),
        };
        let records = RancherRecordsReport {
            server: Some("rancher:443".to_owned()),
            id: Some("c-abcde".to_owned()),
            name: "shop".to_owned(),
            troubles: vec![trouble],
            machines: Vec::new(),
            unread: vec!["cannot list nodes: 503\u{1b}[2J".to_owned()],
        };
        let wanted = "\nIn Rancher's records:\n✗  w-3  P1, P3  P1 holds\n? Rancher: cannot list nodes: 503\u{fffd}[2J\n";
        assert_eq!(of_status(&records, &plain()), wanted);
        let why = of_why(&records, &plain());
        for part in [
            "cluster shop (c-abcde)",
            "status.rkeNode: not there",
            "Do      take it out",
            "cannot list nodes",
        ] {
            assert!(why.contains(part), "{part}\n{why}");
        }
        let well = RancherRecordsReport { troubles: Vec::new(), unread: Vec::new(), ..records };
        assert_eq!((of_status(&well, &plain()), of_why(&well, &plain())), (String::new(), String::new()));
    }

    #[test]
    fn unread_or_garbled_rancher_data_is_no_all_clear() {
        let unread = RancherClusterReport { records: None, ..cluster(Vec::new()) };
        assert_eq!(exit(&whole(vec![cluster(Vec::new())])), Exit::NoProblem);
        assert_eq!(exit(&whole(vec![unread])), Exit::CannotTell);
        let garbled = RancherClusterReport { garbled: 1, ..cluster(Vec::new()) };
        assert_eq!(exit(&whole(vec![garbled])), Exit::CannotTell);
        let blind = RancherReport { unread: vec!["cannot list machines".to_owned()], ..whole(Vec::new()) };
        assert_eq!(exit(&blind), Exit::CannotTell);
    }
}
