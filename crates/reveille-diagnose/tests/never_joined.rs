//! Real texts of consoles with ports and groups, and the finding of the engine that must stand first.

#![allow(clippy::unwrap_used, reason = "a test that cannot be set up fails")]

use std::collections::BTreeSet;
use std::sync::Arc;

use reveille_core::diagnose::console::{NeverJoinedFacts, explain_never_joined};
use reveille_core::diagnose::network::membership::membership;
use reveille_core::model::cause::Cause;
use reveille_core::model::id::{GroupId, InstanceId, InstanceName, NetworkId, PortId};
use reveille_core::model::incident::{Confidence, Finding};
use reveille_core::model::instance::{Instance, InstanceState, Port, PortStatus};
use reveille_core::model::stage::Stage;
use reveille_core::model::time::Time;
use reveille_diagnose::Judge;

const AT: Time = Time::from_ms(1_700_000_000_000);
const NO_ANSWER: &str = "ignition[512]: GET error: Get \"http://169.254.169.254/openstack/latest/user_data\": dial tcp \
                         169.254.169.254:80: i/o timeout";
const UNREACHABLE: &str =
    "ignition[512]: GET error: Get \"http://169.254.169.254/x\": connect: network is unreachable";
const NO_LEASE: &str = "dhclient[611]: No DHCPOFFERS received.";
const META_500: &str = "Calling 'http://169.254.169.254/openstack' failed [4/120s]: bad status code [500]";
const PANIC: &str = "[ 31.4] Kernel panic - not syncing: Attempted to kill init!";
const TOKEN: &str = "could not find a JWS signature in the cluster-info ConfigMap for token ID \"q1w2e3\"";

fn instance(config_drive: bool) -> Instance {
    Instance {
        id: InstanceId::from("i-1"),
        name: InstanceName::from("w-1"),
        state: InstanceState::Active,
        task: None,
        fault: None,
        zone: None,
        image: None,
        marks: Arc::new(BTreeSet::new()),
        addresses: Box::new([]),
        config_drive,
        locked: false,
        created: None,
        hostname: None,
        hosting: None,
    }
}

/// `"id groups status"`: groups joined with `+`, `-` for none, `!` behind the id for security off.
fn port(text: &str) -> Arc<Port> {
    let mut words = text.split(' ');
    let (id, groups, status) = (words.next().unwrap(), words.next().unwrap(), words.next().unwrap());
    Arc::new(Port {
        id: PortId::from(id.trim_end_matches('!')),
        network: NetworkId::from("net"),
        addresses: Box::new(["10.0.4.17".parse().unwrap()]),
        groups: groups.split('+').filter(|group| *group != "-").map(GroupId::from).collect(),
        pairs: Box::new([]),
        security: !id.ends_with('!'),
        status: if status == "up" { PortStatus::Active } else { PortStatus::Down },
        revision: 1,
    })
}

fn explain(ports: &[&str], console: Option<&[&str]>, instance: &Instance) -> Vec<Finding> {
    let ports: Vec<Arc<Port>> = ports.iter().map(|text| port(text)).collect();
    let needs = membership(&ports, &[GroupId::from("k8s")]);
    let judge = Judge::built_in().unwrap();
    let read = console.map(|lines| judge.log_findings(Ok(&lines.join("\n")), &[]));
    explain_never_joined(&NeverJoinedFacts {
        log_findings: Some(read.as_ref().ok_or_else(|| Arc::from("the driver has none"))),
        ports: &ports,
        group_needs: &needs,
        instance,
        read_at: AT,
    })
}

/// Name, ports, console, expected causes in order.
type Case<'a> = (&'a str, &'a [&'a str], Option<&'a [&'a str]>, &'a [&'a str]);

fn hold(table: &[Case<'_>]) {
    for (case, ports, console, expected) in table.iter().copied() {
        let findings = explain(ports, console, &instance(false));
        let causes: Vec<&str> = findings.iter().map(|finding| finding.cause.label()).collect();
        assert_eq!(causes, expected, "{case}");
        assert!(
            findings.iter().all(|finding| !finding.evidence.is_empty()),
            "{case}: every finding has evidence"
        );
    }
}

#[test]
fn the_first_finding_is_the_one_to_act_on() {
    let table: Vec<Case<'_>> = vec![
        (
            "bare port, packets unanswered",
            &["p1 - up"],
            Some(&[NO_ANSWER]),
            &["security-group-missing", "metadata-service-unavailable"],
        ),
        (
            "bare port, no network at all",
            &["p1 default up"],
            Some(&[UNREACHABLE]),
            &["security-group-missing", "no-network-at-boot"],
        ),
        ("groups right, no network", &["p1 k8s up"], Some(&[UNREACHABLE]), &["no-network-at-boot"]),
        ("groups right, no lease", &["p1 k8s up"], Some(&[NO_LEASE]), &["no-network-at-boot"]),
        (
            "one of two ports bare, no network",
            &["p1 k8s up", "p2 - up"],
            Some(&[UNREACHABLE]),
            &["no-network-at-boot", "security-group-missing"],
        ),
        (
            "one of two ports bare, console silent",
            &["p1 k8s up", "p2 - up"],
            Some(&[]),
            &["security-group-missing"],
        ),
        (
            "bare port, metadata answers 500",
            &["p1 - up"],
            Some(&[META_500]),
            &["metadata-service-unavailable", "security-group-missing"],
        ),
        (
            "bare port, guest panics",
            &["p1 - up"],
            Some(&[PANIC]),
            &["os-boot-failed", "security-group-missing"],
        ),
        (
            "bare port, token refused",
            &["p1 - up"],
            Some(&[TOKEN]),
            &["bootstrap-token-invalid", "security-group-missing"],
        ),
        ("bare port, no console", &["p1 - up"], None, &["security-group-missing"]),
    ];
    hold(&table);
}

#[test]
fn a_port_that_is_not_wired_goes_first_unless_packets_passed_it() {
    let table: Vec<Case<'_>> = vec![
        (
            "port down, groups right",
            &["p1 k8s down"],
            Some(&[NO_LEASE]),
            &["port-not-wired", "no-network-at-boot"],
        ),
        ("port down, no console", &["p1 k8s down"], None, &["port-not-wired"]),
        (
            "port down and bare",
            &["p1 - down"],
            Some(&[NO_LEASE]),
            &["security-group-missing", "port-not-wired", "no-network-at-boot"],
        ),
        (
            "port down, and yet the token was refused",
            &["p1 k8s down"],
            Some(&[TOKEN]),
            &["bootstrap-token-invalid", "port-not-wired"],
        ),
        (
            "port said to be down, and yet a lease came",
            &["p1 k8s down"],
            Some(&["DHCPACK of 10.0.4.17 from 10.0.4.2", NO_ANSWER]),
            &["metadata-service-unavailable", "port-not-wired"],
        ),
        (
            "no port can carry the group",
            &["p1! - up"],
            Some(&[UNREACHABLE]),
            &["no-network-at-boot", "port-security-off"],
        ),
        ("no port can carry the group, console silent", &["p1! - up"], Some(&[]), &["port-security-off"]),
        ("nothing wrong, console silent", &["p1 k8s up"], Some(&[]), &["unknown"]),
        ("nothing wrong, no console", &["p1 k8s up"], None, &["unknown"]),
    ];
    hold(&table);
}

#[test]
fn an_instance_that_does_not_run_has_no_port_to_complain_of() {
    let stopped = Instance { state: InstanceState::Stopped, ..instance(false) };
    assert_eq!(explain(&["p1 k8s down"], None, &stopped)[0].cause, Cause::Unknown);
}

#[test]
fn one_port_of_two_that_is_not_wired_is_less_certain() {
    let confidence = |ports: &[&str]| explain(ports, None, &instance(false))[0].confidence;
    assert_eq!(confidence(&["p1 k8s down", "p2 k8s down"]), Confidence::Sure);
    assert_eq!(confidence(&["p1 k8s down", "p2 k8s up"]), Confidence::Likely);
}

#[test]
fn what_follows_from_the_first_finding_is_quoted_under_it() {
    let findings = explain(&["p1 default up"], Some(&[NO_ANSWER]), &instance(false));
    let quoted: Vec<String> = findings[0].evidence.iter().map(|evidence| evidence.fact.to_string()).collect();
    assert_eq!(quoted[0], "security_groups: [default], lacks k8s");
    assert_eq!(quoted[1], NO_ANSWER);
    assert_eq!(findings[0].confidence, Confidence::Sure);
}

/// A lease needs no group, and an answer needs an open port: both speak against the group as the cause.
#[test]
fn dhcp_trouble_and_answers_speak_against_a_missing_group() {
    let against = |console: &[&str]| {
        let findings = explain(&["p1 - up"], Some(console), &instance(false));
        let group =
            findings.into_iter().find(|finding| finding.cause == Cause::SecurityGroupMissing).unwrap();
        group.against.first().map_or(String::new(), |evidence| evidence.fact.to_string())
    };
    assert!(against(&[NO_LEASE]).starts_with("DHCP failed as well"));
    assert!(against(&[META_500]).contains("was answered"));
    assert!(against(&["ignition[5]: GET result: OK", NO_ANSWER]).contains("packets pass"));
    assert_eq!(against(&[NO_ANSWER]), "");
    assert_eq!(
        against(&["DHCPACK of 10.0.4.17 from 10.0.4.2", NO_ANSWER]),
        "",
        "a lease says nothing of groups"
    );
}

/// Else a replacement would wait for an API server that only the machine without network could not reach.
#[test]
fn who_had_no_network_did_not_reach_the_api_server_either() {
    let refused = "ignition[512]: GET error: Get \"https://config.internal/worker\": dial tcp 10.1.1.1:443: connect: network is unreachable";
    let findings = explain(&["p1 k8s up"], Some(&[refused, refused][..]), &instance(false));
    let labels =
        |findings: &[Finding]| findings.iter().map(|f| f.cause.label().to_owned()).collect::<Vec<_>>();
    assert_eq!(labels(&findings), ["no-network-at-boot"]);
    assert_eq!(labels(&findings[0].follows), ["apiserver-unreachable"]);
}

#[test]
fn the_config_drive_is_told_as_cloud_and_guest_see_it() {
    let told = |attached: bool, lines: &[&str]| {
        let findings = explain(&["p1 k8s up"], Some(lines), &instance(attached));
        findings[0].evidence.last().unwrap().fact.to_string()
    };
    let absent = "ignition[512]: config drive (\"/dev/disk/by-label/config-2\") not found. Waiting...";
    assert!(told(false, &[UNREACHABLE]).starts_with("no config drive"));
    assert!(told(true, &[absent, UNREACHABLE]).contains("did not find it"));
    assert!(told(true, &[UNREACHABLE]).ends_with("is attached"));
    assert!(told(true, &["Datasource DataSourceConfigDrive", UNREACHABLE]).contains("was found"));
}

#[test]
fn what_is_unknown_says_where_it_stopped_and_what_to_read_next() {
    let unknown = |ports: &[&str], console| explain(ports, console, &instance(false)).remove(0);
    let silent = unknown(&["p1 k8s up"], Some(&["w-1 login:"][..]));
    assert_eq!(silent.stage, Stage::KubeletStart);
    assert!(silent.evidence[0].fact.to_string().contains("first boot's journal"));
    assert_eq!(silent.evidence[1].fact.to_string(), "w-1 login:");
    let none = unknown(&["p1 k8s up"], None);
    assert!(none.evidence[0].fact.to_string().contains("the driver has none"));
    assert_eq!(unknown(&[], None).stage, Stage::Network);
}
