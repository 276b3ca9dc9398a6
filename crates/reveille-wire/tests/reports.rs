//! Compares reports with golden files: the names and shapes that programs of other people depend on.
//!
//! The facts are invented. After an intended addition, run the tests once with `REVEILLE_BLESS=1` and read the
//! difference: lines may be added, and none may disappear or change its name.

#![allow(clippy::unwrap_used, reason = "a test ends where its material is missing")]

use std::path::Path;
use std::sync::Arc;

use reveille_core::effect::{Call, Outcome};
use reveille_core::event::{Pause, PauseScope};
use reveille_core::model::attempt::{Attempt, Ending, Readback, Why};
use reveille_core::model::cause::Cause;
use reveille_core::model::evidence::{Evidence, Fact, Source};
use reveille_core::model::id::{CloudName, IncidentId, InstanceId, IntentId, NodeName, PoolName};
use reveille_core::model::incident::{
    Asked, Confidence, FaultKind, Finding, Incident, IncidentKey, MachineKey, Subject,
};
use reveille_core::model::instance::Mark;
use reveille_core::model::roster::Ownership;
use reveille_core::model::stage::Stage;
use reveille_core::model::time::{Span, Time};
use reveille_core::remedies::SetPortGroups;
use reveille_wire::report::{
    ActReport, Ago, Answers, AskReport, AskedReport, AttemptReport, BlindReport, CheckReport,
    CollectedReport, DoctorReport, DoctorSummary, Document, FindingReport, HeldReport, HotField, HotMachine,
    HotRate, HotReport, HotSuspect, HotValue, HotVerdict, In, IncidentReport, IncidentsReport,
    LogFindingReport, LogLineReport, LogReport, MachineReport, NextReport, PauseReport, PlanHeldReport,
    PlanReport, PlanSummary, PressureReport, RancherDifferenceReport, RancherEvidenceReport,
    RancherFindingReport, RancherRecordsReport, RancherTroubleReport, Report, SourceReport, StageReport,
    StageState, StatusReport, StatusSummary, TriedReport, WaitReport, WhyReport, key_text,
};

const NOW: Time = Time::from_ms(1_792_401_133_042);

fn ago(s: i64) -> Ago {
    Ago::new(NOW - Span::from_s(s), NOW)
}

fn key() -> MachineKey {
    MachineKey::Instance(CloudName::from("os"), InstanceId::from("7f3a"))
}

fn finding() -> Finding {
    Finding {
        cause: Cause::SecurityGroupMissing,
        stage: Stage::Network,
        confidence: Confidence::Sure,
        evidence: vec![Evidence::new(
            Source::Port("5f0c".into()),
            Fact::Quoted("security_groups: []".into()),
            NOW - Span::from_s(8),
        )],
        follows: vec![],
        against: vec![],
    }
}

fn answered(outcome: Outcome) -> Option<Ending> {
    Some(Ending::Answered { at: NOW - Span::from_s(60), outcome })
}

fn attempt() -> Attempt {
    Attempt {
        intent: IntentId(9),
        call: Call::SetPortGroups(SetPortGroups {
            cloud: "os".into(),
            port: "5f0c".into(),
            groups: vec!["k8s-nodes".into()],
            if_revision: 4,
            instance: "7f3a".into(),
            owned: Ownership::of_cluster(Mark::Tag(Arc::from("k8s"))),
        }),
        at: NOW - Span::from_s(61),
        ending: answered(Outcome::Accepted { request: None }),
        readback: Some(Readback {
            at: NOW - Span::from_s(59),
            held: false,
            text: Arc::from("still without it"),
        }),
        seen: false,
        logged_as: None,
    }
}

fn sources() -> Vec<SourceReport> {
    vec![
        SourceReport {
            name: "cluster".into(),
            read: Some(Ago::new(NOW - Span::from_ms(430), NOW)),
            complete: true,
            trusted: true,
            why_not: None,
        },
        SourceReport {
            name: "os".into(),
            read: None,
            complete: false,
            trusted: false,
            why_not: Some("page 2 of 3: 429 Too Many Requests".into()),
        },
    ]
}

fn absent() -> MachineReport {
    MachineReport {
        name: "kks-prod-w-7xk2p".into(),
        key: key_text(&key()),
        pool: Some("workers".into()),
        zone: Some("nova-a".into()),
        answers: Answers::No,
        stage: Some("network".into()),
        state: "never-joined".into(),
        since: Some(ago(14 * 60)),
        what: "never joined: its port has no security group \"k8s-nodes\"".into(),
        node: None,
        instance: Some("7f3a".into()),
        cloud: Some("os".into()),
    }
}

fn node_only(name: &str, answers: Answers, state: &str) -> MachineReport {
    MachineReport {
        name: name.into(),
        key: key_text(&MachineKey::Node(NodeName::from(name))),
        pool: None,
        zone: None,
        answers,
        stage: None,
        state: state.into(),
        since: None,
        what: String::new(),
        node: Some(name.into()),
        instance: None,
        cloud: None,
    }
}

fn tried() -> Vec<TriedReport> {
    vec![TriedReport { repair: "membership".into(), requested: 3, verified: 2 }]
}

fn status() -> Report {
    let machines = vec![
        absent(),
        node_only("n2", Answers::Unknown, "unknown"),
        node_only("n4", Answers::Excused, "excused"),
        node_only("n3", Answers::Yes, "ready"),
    ];
    Report::StatusReport(StatusReport {
        roster: "prod".into(),
        at: NOW,
        summary: StatusSummary::of(&machines),
        sources: sources(),
        pauses: vec![PauseReport::from(&Pause {
            scope: PauseScope::Pool("gpu".into()),
            by: "ann".into(),
            reason: "driver upgrade".into(),
        })],
        machines,
        next: vec!["adds the group to port 5f0c, at once".into()],
        rancher: None,
        hot: vec![],
        hot_unread: vec![],
        alone: None,
    })
}

/// The same report, for a roster that names a Rancher with a broken record.
fn status_with_records() -> Report {
    let Report::StatusReport(mut status) = status() else { panic!("it is no status report") };
    let finding = RancherFindingReport {
        predicate: "P3".into(),
        certainty: "high".into(),
        says: "it has no rkeNode".into(),
        evidence: vec![RancherEvidenceReport {
            of: "machine-h46dc".into(),
            field: "status.rkeNode".into(),
            value: "not there".into(),
        }],
        means: "its agent waits for ever".into(),
        first: "take it out and in again".into(),
        never: "delete the record while its Node is there".into(),
    };
    let trouble = RancherTroubleReport {
        records: vec!["machine-h46dc".into()],
        node: Some("n3".into()),
        addresses: vec!["10.0.0.3".into()],
        findings: vec![finding],
        sibling: Some("m-0123456789ab".into()),
        differs: vec![RancherDifferenceReport {
            field: "status.rkeNode".into(),
            healthy: "there".into(),
            this: "not there".into(),
        }],
    };
    status.rancher = Some(Box::new(RancherRecordsReport {
        server: Some("rancher.example:443".into()),
        id: Some("c-abcde".into()),
        name: "shop".into(),
        troubles: vec![trouble],
        machines: vec![],
        unread: vec!["cannot list pods in the namespace cattle-system: 403 Forbidden".into()],
    }));
    let Report::HotReport(found) = hot() else { panic!("it is of hot objects") };
    let server = Some("rancher.example:443".to_owned());
    status.hot =
        found.verdicts.into_iter().map(|one| HotVerdict { in_rancher: server.clone(), ..one }).collect();
    status.hot_unread = vec!["hot objects are not looked for in the cluster's API server: no answer".into()];
    Report::StatusReport(status)
}

fn why() -> Report {
    let state = |stage: Stage| match stage {
        Stage::Provision => StageState::Passed,
        Stage::Network => StageState::Stopped,
        _ => StageState::Unknown,
    };
    let held = |what: &str, why: &str| HeldReport { what: what.into(), why: vec![why.into()] };
    Report::WhyReport(Box::new(WhyReport {
        way: None,
        timeline: None,
        hot: vec![],
        hot_unread: vec![],
        collected: vec![CollectedReport {
            order: 7,
            at: NOW - Span::from_s(30),
            machine: "m-1".to_owned(),
            node: "w-1".to_owned(),
            instance: Some("7f3a".to_owned()),
            outcome: "done".to_owned(),
            says: "checks, logs and configuration".to_owned(),
            file: Some("/state/.registrar/evidence/7-m-1.tar.gz".to_owned()),
            bytes: Some(2048),
            sha256: Some("sha256:00".to_owned()),
        }],
        roster: "prod".into(),
        at: NOW,
        machine: absent(),
        stages: StageReport::strip(state),
        findings: vec![FindingReport::new(&finding(), NOW)],
        asked: vec![AskedReport { seen: ago(180), value: "OPS-7".into() }],
        done: vec![AttemptReport::new(&attempt(), NOW)],
        next: Some(NextReport {
            what: "tries again (2 of 4), then asks a person".into(),
            not_before: Some(In::new(NOW + Span::from_min(4), NOW)),
            then: None,
        }),
        held: vec![held("replace", "replace: off for this pool")],
        no_use: vec![held("reboot", "the first boot failed before it had a network")],
        sources: sources(),
        rancher: None,
    }))
}

fn plan() -> Report {
    let pool = Some("workers".to_owned());
    let mut plan = PlanReport {
        roster: "prod".into(),
        at: NOW,
        summary: PlanSummary::default(),
        sources: sources(),
        pauses: vec![],
        acts: vec![ActReport {
            incident: "inc-7".into(),
            subject: "kks-prod-w-7xk2p".into(),
            kind: "group-missing".into(),
            pool: pool.clone(),
            call: "set the groups of port 5f0c to k8s-nodes".into(),
            destructive: false,
        }],
        held: vec![PlanHeldReport {
            incident: "inc-8".into(),
            subject: "kks-prod-w-bb2".into(),
            kind: "errored".into(),
            pool,
            held: vec![HeldReport {
                what: "replace".into(),
                why: vec!["1 of 1 repairs under way".into(), "replace: off for this pool".into()],
            }],
        }],
        waits: vec![WaitReport {
            incident: "inc-9".into(),
            subject: "kks-prod-w-cc3".into(),
            kind: "not-ready".into(),
            until: Some(In::new(NOW + Span::from_s(90), NOW)),
            why: "waits until 5 min after first sight".into(),
            then: Some("restart its kubelet (proposed only)".into()),
        }],
        asks: vec![AskReport {
            incident: "inc-10".into(),
            subject: "kks-prod-w-dd4".into(),
            kind: "duplicate".into(),
            how: "find out which of the two is real".into(),
        }],
        blind: vec![BlindReport {
            incident: "inc-11".into(),
            subject: "kks-prod-w-ee5".into(),
            kind: "vanished".into(),
            why: "os: page 2 of 3: 429 Too Many Requests".into(),
        }],
        tried: tried(),
    };
    plan.summary = plan.counted();
    Report::PlanReport(plan)
}

fn incidents() -> Report {
    let incident = Incident {
        id: IncidentId(7),
        key: IncidentKey { subject: Subject::Machine(key()), kind: FaultKind::NeverJoined },
        pool: Some(PoolName::from("workers")),
        label: Arc::from("kks-prod-w-7xk2p"),
        first_seen: NOW - Span::from_min(14),
        counted_from: NOW,
        well_since: None,
        findings: vec![finding()],
        attempts: vec![attempt()],
        repair_step: 0,
        tries: 1,
        not_before: Some(NOW + Span::from_min(4)),
        given_up: false,
        asked: Some(Asked { at: NOW - Span::from_min(3), value: Arc::from("OPS-7") }),
        kept_until: Some(NOW + Span::from_min(60)),
    };
    let open = IncidentReport::open(&incident, NOW);
    let closed = IncidentReport {
        id: "inc-6".into(),
        findings: vec![],
        attempts: vec![],
        not_before: None,
        asked: None,
        kept_until: None,
        verdict: Some("mended".into()),
        closed: Some(ago(3600)),
        ..open.clone()
    };
    Report::IncidentsReport(IncidentsReport {
        roster: "prod".into(),
        at: NOW,
        sources: sources(),
        incidents: vec![open, closed],
        tried: tried(),
    })
}

#[test]
fn a_try_counts_as_requested_once_its_call_was_made() {
    let at = NOW - Span::from_s(60);
    let said = |ending: Option<Ending>, held: Option<bool>| {
        let readback = held.map(|held| Readback { at, held, text: Arc::from("seen") });
        let attempt = Attempt { ending, readback, ..attempt() };
        let report = AttemptReport::new(&attempt, NOW);
        (report.requested, report.verified)
    };
    assert_eq!(said(None, None), (false, false), "under way");
    assert_eq!(said(Some(Ending::Dropped { at, why: Why::FaultOver }), None), (false, false), "never called");
    let accepted = || answered(Outcome::Accepted { request: None });
    let unknown = answered(Outcome::Unknown { text: Arc::from("no answer in time") });
    assert_eq!(said(accepted(), None), (true, false));
    assert_eq!(said(accepted(), Some(false)), (true, false), "accepted, and nothing happened");
    assert_eq!(said(unknown, Some(true)), (true, true), "it took effect all the same");
}

fn doctor() -> Report {
    let check = CheckReport {
        id: "swap".to_owned(),
        stage: "kubelet-start".to_owned(),
        rests_on: Vec::new(),
        result: "failed".to_owned(),
        says: "swap is on, and the kubelet is told to end where it is (failSwapOn)".to_owned(),
        evidence: vec!["swap on /dev/vda2".to_owned()],
        cause: Some("swap-enabled".to_owned()),
        code: Some("RV526".to_owned()),
        remedy: Some("turn swap off".to_owned()),
        commands: vec!["sudo swapoff -a".to_owned()],
    };
    let skipped = CheckReport {
        id: "kubelet".to_owned(),
        rests_on: vec!["runtime".to_owned(), "swap".to_owned()],
        result: "skipped".to_owned(),
        says: "needs swap, which failed".to_owned(),
        evidence: Vec::new(),
        cause: None,
        code: None,
        remedy: None,
        commands: Vec::new(),
        ..check.clone()
    };
    let line =
        LogLineReport { source: "journalctl".to_owned(), line: 15, text: "swap on".to_owned(), times: 14 };
    let finding = LogFindingReport {
        cause: "swap-enabled".to_owned(),
        code: "RV526".to_owned(),
        stage: "kubelet-start".to_owned(),
        confidence: "sure".to_owned(),
        title: "swap is on".to_owned(),
        evidence: vec![line],
        remedy: "turn swap off".to_owned(),
    };
    Report::DoctorReport(Box::new(DoctorReport {
        node: Some("w-1".to_owned()),
        servers: vec!["10.0.0.1:6443".to_owned()],
        told_by: Some("/etc/kubernetes/kubelet.conf".to_owned()),
        first: Some("swap".to_owned()),
        summary: DoctorSummary { failed: 1, skipped: 1, ..DoctorSummary::default() },
        checks: vec![check, skipped],
        findings: vec![finding],
        logs: vec![LogReport { name: "journalctl".to_owned(), lines: 3000, note: None }],
    }))
}

/// Two agents that write one record of Rancher in turn.
fn hot() -> Report {
    let value = |value: &str, by: &str| HotValue { value: value.to_owned(), by: vec![by.to_owned()] };
    let suspect =
        |name: &str| HotSuspect { name: name.to_owned(), writes: 30, seen_in: "managedFields".to_owned() };
    let verdict = HotVerdict {
        in_rancher: None,
        group: "management.cattle.io".to_owned(),
        resource: "nodes".to_owned(),
        namespace: Some("c-1".to_owned()),
        name: Some("machine-h46dc".to_owned()),
        heat: "hot".to_owned(),
        since: NOW - Span::from_s(20),
        rates: vec![HotRate { by: "watch".to_owned(), writes: 100, over_s: 25.0, per_s: Some(4.0) }],
        class: "docker-info".to_owned(),
        means: "what two machines say of their runtime takes turns".to_owned(),
        suspects: vec![suspect("agent-a"), suspect("agent-b")],
        fields: vec![HotField {
            path: "spec.rkeNode.dockerInfo.name".to_owned(),
            changes: 60,
            returns: 59,
            values: vec![value("host-1", "agent-a"), value("host-2", "agent-b")],
        }],
        machine: Some(HotMachine {
            cluster_id: Some("c-1".to_owned()),
            cluster: Some("prod".to_owned()),
            node: Some("w-1".to_owned()),
            addresses: vec!["10.0.0.5".to_owned()],
        }),
        notes: vec![],
        first_aid: vec!["identify the writer by the audit log".to_owned()],
    };
    Report::HotReport(Box::new(HotReport {
        at: NOW,
        server: Some("10.0.0.1:6443".to_owned()),
        looked_s: 25,
        kinds: 59,
        verdicts: vec![verdict],
        pressure: Some(PressureReport {
            resident_bytes: 307_232_768,
            grown_bytes: 28_311_552,
            heap_bytes: 157_286_400,
            rejected: 0,
            is_high: false,
        }),
        notes: vec![],
    }))
}

fn golden(name: &str, written: &str) {
    let path = Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/reports").join(name);
    if std::env::var_os("REVEILLE_BLESS").is_some() {
        std::fs::write(&path, written).unwrap();
    }
    assert_eq!(written, std::fs::read_to_string(&path).unwrap(), "{name}");
}

#[test]
fn reports_are_printed_as_programs_know_them() {
    for (name, report) in [
        ("status", status()),
        ("status-rancher", status_with_records()),
        ("why", why()),
        ("plan", plan()),
        ("incidents", incidents()),
        ("doctor", doctor()),
        ("hot", hot()),
    ] {
        let document = Document::from(report);
        let json = document.to_json().unwrap();
        golden(&format!("{name}.json"), &json);
        assert_eq!(serde_json::from_str::<Document>(&json).unwrap(), document);
    }
}

#[test]
fn yaml_says_the_same_as_json() {
    for report in [status(), why(), plan(), incidents(), doctor(), hot()] {
        let document = Document::from(report);
        let yaml = document.to_yaml().unwrap();
        let from_yaml: serde_json::Value = serde_saphyr::from_str(&yaml).unwrap();
        assert_eq!(from_yaml, serde_json::to_value(&document).unwrap(), "{yaml}");
    }
    for word in [
        "off",
        "no",
        "1e3",
        "0x1F",
        "1.10",
        "~",
        "null",
        "2026-10-19",
        "a: b",
        "- a",
        "#",
        "\u{1b}[0m",
        "é\nß",
    ] {
        let text = serde_saphyr::to_string(&node_only(word, Answers::Yes, "ready")).unwrap();
        assert_eq!(serde_saphyr::from_str::<MachineReport>(&text).unwrap().name, word);
        assert_eq!(serde_saphyr::from_str::<serde_json::Value>(&text).unwrap()["name"], word, "{text}");
    }
    golden("status.yaml", &Document::from(status()).to_yaml().unwrap());
}

/// A reader of this version must not fail on what a later version adds.
#[test]
fn what_is_added_later_is_passed_over() {
    let document = Document::from(status());
    let mut value = serde_json::to_value(&document).unwrap();
    value["machines"][0]["colour"] = "red".into();
    value["weather"] = "fair".into();
    assert_eq!(serde_json::from_value::<Document>(value).unwrap(), document);
}
