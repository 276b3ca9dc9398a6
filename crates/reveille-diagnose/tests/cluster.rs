//! What the cluster says of a machine (conditions, events, certificate requests) beside its console, in one ranking.
#![allow(clippy::unwrap_used, reason = "in a test, what cannot be is a failure")]

use std::sync::Arc;

use reveille_core::effect::{ReadError, ReadErrorKind};
use reveille_core::event::Answer;
use reveille_core::model::evidence::Source;
use reveille_core::model::incident::Confidence::{self, Likely, Possible, Sure};
use reveille_core::model::log_evidence::{CertificateRequest, EvidenceQuery, RequestState, Said, Unread};
use reveille_core::model::log_findings::{LogFinding, LogFindings};
use reveille_core::model::node::{Condition, Node, NodeEvent, NodeIntent, Provider, Ready};
use reveille_diagnose::Judge;

const NO_RUNTIME: &str = "kubelet[1122]: E0302 08:04:11.522 run.go:74] \"command failed\" err=\"failed to run Kubelet: validate \
                          service connection: validate CRI v1 runtime API for endpoint unix:///run/containerd/containerd.sock: \
                          rpc error: code = Unavailable desc = connection error\"";
const UNREACHABLE: &str = "[    9.1] ignition[512]: GET error: Get \"http://169.254.169.254/openstack/latest/user_data\": dial tcp \
                           169.254.169.254:80: connect: network is unreachable";
const WAITS: &str = "kubelet[9]: E0302 08:19:12.204 certificate_manager.go:562] \"Certificate request was not signed\" err=\"timed out\"";
const PLEG: &str = "PLEG is not healthy: pleg was last seen active 3m12.481s ago; threshold is 3m0s";
const NO_CNI: &str = "container runtime network not ready: NetworkReady=false reason:NetworkPluginNotReady message:Network plugin \
                      returns error: cni plugin not initialized";

fn node(ready: Ready, conditions: &[(&str, &str, &str)]) -> Option<Arc<Node>> {
    let condition = |(kind, reason, message): &(&str, &str, &str)| Condition {
        kind: (*kind).into(),
        reason: (*reason).into(),
        message: (*message).into(),
    };
    Some(Arc::new(Node {
        name: "w-1".into(),
        uid: "uid-1".into(),
        provider: Provider::Unset,
        system_uuid: None,
        boot_id: None,
        kubelet: None,
        addresses: Box::default(),
        pod_ranges: Box::default(),
        ready,
        conditions: conditions.iter().map(condition).collect(),
        zone: None,
        cordoned: false,
        intent: NodeIntent::default(),
        uninitialized: false,
        taints: Box::default(),
    }))
}

fn event(reason: &str, uid: Option<&str>, message: &str) -> NodeEvent {
    NodeEvent {
        node: "w-1".into(),
        uid: uid.map(Into::into),
        reason: reason.into(),
        message: message.into(),
        reporter: "kubelet".into(),
        stamped: None,
    }
}

fn request(name: &str, signer: &str, state: RequestState) -> CertificateRequest {
    CertificateRequest {
        name: name.into(),
        signer: format!("kubernetes.io/{signer}").into(),
        requester: "system:bootstrap:q1w2e3".into(),
        state,
        message: "by policy".into(),
        stamped: "2026-03-02T08:04:12Z".into(),
    }
}

const CLIENT: &str = "kube-apiserver-client-kubelet";

fn weigh(console: &[&str], console_counts: bool, said: Said) -> LogFindings {
    let evidence_query = EvidenceQuery { node: Some("w-1".into()), asks_as: "w-1".into(), console_counts };
    let console = Ok(Answer::Console(console.join("\n").into()));
    let answer = Judge::built_in().unwrap().weigh(&evidence_query, console, Ok(Answer::Said(Arc::new(said))));
    match answer.unwrap() {
        Answer::LogFindings(log_findings) => (*log_findings).clone(),
        other => panic!("{other:?}"),
    }
}

/// Each cause with how sure it is and where it was read.
fn told(log_findings: &LogFindings) -> Vec<(&str, Confidence, Vec<&str>)> {
    fn sources(told: &LogFinding) -> Vec<&str> {
        let name = |source| match source {
            &Source::Console => "console",
            Source::Events => "event",
            Source::Named(name) => name,
            other => panic!("{other}"),
        };
        told.proof.iter().map(|quote| name(&quote.source)).collect()
    }
    log_findings.told.iter().map(|told| (told.cause.label(), told.confidence, sources(told))).collect()
}

#[test]
fn conditions_events_and_requests_are_read_as_what_they_prove() {
    let conditions = |conditions: &[_]| Said { node: node(Ready::False, conditions), ..Said::default() };
    let requests = |requests: Vec<_>| Said { requests, ..Said::default() };
    let pleg = ("Ready", "KubeletNotReady", PLEG);
    let table: Vec<(&str, Said, Vec<(&str, Confidence, Vec<&str>)>)> = vec![
        ("nothing", Said::default(), vec![]),
        (
            "a condition",
            conditions(&[pleg]),
            vec![("container-runtime-down", Likely, vec!["node condition Ready"])],
        ),
        (
            "a pod network that is not there",
            conditions(&[("Ready", "KubeletNotReady", NO_CNI)]),
            vec![("cni-not-installed", Likely, vec!["node condition Ready"])],
        ),
        (
            "an event",
            Said { events: vec![event("NodeNotReady", None, PLEG)], ..Said::default() },
            vec![("container-runtime-down", Likely, vec!["event"])],
        ),
        (
            "a request that waits",
            requests(vec![request("csr-1", CLIENT, RequestState::Pending)]),
            vec![("csr-not-approved", Sure, vec!["csr csr-1"])],
        ),
        (
            "a request that was denied",
            requests(vec![request("csr-1", CLIENT, RequestState::Denied)]),
            vec![("csr-not-approved", Sure, vec!["csr csr-1"])],
        ),
        (
            "a request that could not be signed",
            requests(vec![request("csr-1", CLIENT, RequestState::Failed)]),
            vec![("csr-not-approved", Sure, vec!["csr csr-1"])],
        ),
        (
            "a request that no signer signs",
            requests(vec![request("csr-1", CLIENT, RequestState::Approved)]),
            vec![("csr-not-approved", Likely, vec!["csr csr-1"])],
        ),
        ("one that was granted", requests(vec![request("csr-1", CLIENT, RequestState::Issued)]), vec![]),
        (
            "the newest answers those before it",
            requests(vec![
                request("csr-2", CLIENT, RequestState::Issued),
                request("csr-1", CLIENT, RequestState::Pending),
            ]),
            vec![],
        ),
        (
            "a pending serving certificate blocks no join",
            requests(vec![request("csr-1", "kubelet-serving", RequestState::Pending)]),
            vec![],
        ),
        (
            "another node of that name",
            Said {
                node: node(Ready::False, &[]),
                events: vec![event("NodeNotReady", Some("uid-0"), PLEG)],
                ..Said::default()
            },
            vec![],
        ),
        (
            "what was good news before the condition turned",
            Said {
                node: node(Ready::False, &[pleg]),
                events: vec![event("NodeReady", None, "Node w-1 status is now: NodeReady")],
                ..Said::default()
            },
            vec![("container-runtime-down", Likely, vec!["node condition Ready"])],
        ),
    ];
    for (case, said, expected) in table {
        assert_eq!(told(&weigh(&[], true, said)), expected, "{case}");
    }
}

#[test]
fn cause_from_console_and_cluster_counts_once_as_the_surer() {
    let console_alone = weigh(&[WAITS], true, Said::default());
    assert_eq!(told(&console_alone), [("csr-not-approved", Possible, vec!["console"])]);
    let requests = vec![request("csr-1", CLIENT, RequestState::Pending)];
    let both = weigh(&[WAITS], true, Said { requests, ..Said::default() });
    assert_eq!(told(&both), [("csr-not-approved", Sure, vec!["csr csr-1", "console"])]);
    let places: Vec<u64> = both.told[0].proof.iter().map(|quote| quote.line.number).collect();
    assert_eq!(places, [0, 1], "a request is a statement and has no lines");
}

#[test]
fn a_node_that_is_ready_by_now_speaks_against_its_console() {
    let ready = || Said { node: node(Ready::True, &[]), ..Said::default() };
    assert_eq!(told(&weigh(&[NO_RUNTIME], true, ready())), [], "likely, and it passed");
    let contradicted = weigh(&[UNREACHABLE], true, ready());
    assert_eq!(told(&contradicted), [("no-network-at-boot", Sure, vec!["console"])]);
    assert_eq!(contradicted.told[0].against[0].source.to_string(), "node condition Ready");
}

#[test]
fn console_of_a_joined_machine_is_kept_and_proves_nothing() {
    let said = Said { node: node(Ready::False, &[("Ready", "KubeletNotReady", NO_CNI)]), ..Said::default() };
    let log_findings = weigh(&[NO_RUNTIME], false, said);
    assert_eq!(told(&log_findings), [("cni-not-installed", Likely, vec!["node condition Ready"])]);
    assert_eq!(log_findings.console.as_deref(), Ok(NO_RUNTIME));
}

/// A world that does not answer is no witness, for or against; the other one is heard all the same.
#[test]
fn a_world_that_does_not_answer_is_named_and_the_other_is_heard() {
    let judge = Judge::built_in().unwrap();
    let evidence_query = EvidenceQuery { node: None, asks_as: "w-1".into(), console_counts: true };
    let failed = || -> Result<Answer, ReadError> {
        let text = "no answer, token=abcdef.0123456789abcdef".into();
        Err(ReadError { kind: ReadErrorKind::Unavailable, text, retry_after: None })
    };
    let unread = vec![Unread { source: Source::CertificateRequests, why: "403 Forbidden".into() }];
    let said =
        |requests| Ok(Answer::Said(Arc::new(Said { requests, unread: unread.clone(), ..Said::default() })));
    let log_findings = |answer: Result<Answer, ReadError>| match answer {
        Ok(Answer::LogFindings(log_findings)) => log_findings,
        other => panic!("{other:?}"),
    };
    let sources = |log_findings: &LogFindings| {
        log_findings.unread.iter().map(|unread| unread.source.to_string()).collect::<Vec<_>>()
    };

    assert!(
        judge.weigh(&evidence_query, failed(), said(vec![])).is_err(),
        "no source told anything: ask again"
    );
    let pending = vec![request("csr-1", CLIENT, RequestState::Pending)];
    let without_console = log_findings(judge.weigh(&evidence_query, failed(), said(pending)));
    assert_eq!(told(&without_console), [("csr-not-approved", Sure, vec!["csr csr-1"])]);
    assert_eq!(sources(&without_console), ["certificate requests", "console"]);
    let without_cluster =
        log_findings(judge.weigh(&evidence_query, Ok(Answer::Console(NO_RUNTIME.into())), failed()));
    assert_eq!(told(&without_cluster), [("container-runtime-down", Likely, vec!["console"])]);
    assert_eq!(sources(&without_cluster), ["cluster"]);
    assert!(!without_cluster.unread[0].why.contains("0123456789abcdef"), "secrets are masked");
}

/// However much an add-on or a kubelet writes, what is judged and quoted is bounded and masked.
#[test]
fn what_is_judged_is_bounded_and_masked() {
    let long = |n: u32| format!("{n} times: {PLEG} password=hunter2 {}", "x".repeat(100_000));
    let events = (0..1_000).map(|n| event("NodeNotReady", None, &long(n))).collect();
    let message = long(0);
    let conditions: Vec<_> = (0..200).map(|_| ("Idle", "Idle", message.as_str())).collect();
    let log_findings =
        weigh(&[], true, Said { events, node: node(Ready::False, &conditions), ..Said::default() });
    let events = (0..100).map(|n| event("NodeNotReady", None, &long(n))).collect();
    let of_events = weigh(&[], true, Said { events, ..Said::default() });
    assert_eq!(of_events.told[0].proof[0].line.times, 24);
    let quotes = || log_findings.told.iter().chain(&of_events.told).flat_map(|told| &told.proof);
    assert!(quotes().all(|quote| quote.text.len() <= 1024 && !quote.text.contains("hunter2")));
}

/// Two allocators: one gave the node its range, the other says a moment later that it could not.
#[test]
fn a_node_that_has_its_range_did_not_lack_one() {
    let refused = "Node w-1 status is now: CIDRAssignmentFailed";
    let said = |node| Said {
        node,
        events: vec![event("CIDRAssignmentFailed", Some("uid-1"), refused)],
        ..Said::default()
    };
    let without = weigh(&[], true, said(node(Ready::False, &[])));
    assert_eq!(told(&without), vec![("pod-cidr-exhausted", Sure, vec!["event"])]);
    let with = node(Ready::False, &[]).map(|node| {
        let range = "198.19.3.0/24".parse().unwrap();
        Arc::new(Node { pod_ranges: Box::new([range]), ..Node::clone(&node) })
    });
    assert_eq!(told(&weigh(&[], true, said(with))), vec![]);
}

/// What an event about the Node says with this message, beside nothing else: each kubelet may write one about each Node.
fn told_by_event(message: &str) -> Vec<LogFinding> {
    weigh(&[], true, Said { events: vec![event("Note", None, message)], ..Said::default() }).told
}

/// What is sure of a first boot lets a machine of unknown history be deleted, and takes its reboot away. A machine that has
/// conditions has joined, so they tell of no first boot either.
#[test]
fn event_or_condition_of_others_proves_no_failed_first_boot() {
    for message in [
        "reveille doctor: check boot failed: cause no-network-at-boot",
        "reveille doctor: check boot failed: cause userdata-script-failed",
        "cloud-init[4607]: util.py[WARNING]: Failed running /var/lib/cloud/instance/scripts/runcmd [1]",
    ] {
        let conditions = node(Ready::False, &[("Note", "Note", message)]);
        let by_condition = weigh(&[], true, Said { node: conditions, ..Said::default() }).told;
        for told in told_by_event(message).iter().chain(&by_condition) {
            let first_boot = told.cause.is_of_the_first_boot();
            assert!(!first_boot || told.confidence == Possible, "{message:?} proves {}", told.cause);
        }
        let console = weigh(&[message], true, Said::default()).told;
        assert!(console.iter().any(|told| told.cause.is_of_the_first_boot()), "{message:?} on its console");
    }
}

/// What the doctor found on a machine stands in no event and no condition of a Node.
#[test]
fn what_was_found_on_a_machine_comes_from_that_machine() {
    let judge = Judge::built_in().unwrap();
    let found = judge.catalogue().signals.iter().filter(|signal| signal.id.starts_with("doctor-found-"));
    let texts: Vec<&String> = found.flat_map(|signal| &signal.yes).collect();
    assert!(texts.len() > 20, "{texts:?}");
    for text in texts {
        let told = told_by_event(text);
        let mut signs = told.iter().flat_map(|told| &told.proof).map(|quote| &quote.line.sign);
        assert!(!signs.any(|sign| sign.starts_with("doctor-found-")), "{text:?}: {told:?}");
    }
}

/// A step that is of no use is skipped: without the reboot, the next step is a deletion. Without both, one event an hour kept a
/// dead machine from every repair.
#[test]
fn event_of_others_takes_no_repair_away() {
    for message in [
        "reveille doctor: check trust failed: cause bootstrap-token-invalid",
        "Get \"https://10.0.4.9:6443/api/v1/nodes\": dial tcp 10.0.4.9:6443: i/o timeout",
        "NAME CREATED SIGNERNAME REQUESTOR MESSAGE CONDITION",
    ] {
        for told in told_by_event(message) {
            let entry = told.cause.entry().unwrap();
            let takes = entry.no_reboot.is_some() || entry.no_replace.is_some();
            assert!(!takes || told.confidence == Possible, "{} by an event alone", told.cause);
        }
    }
}

/// The API server says who made a request: the kubelet of another Node, or a service account, is not the kubelet of this one. It
/// neither holds this machine nor hides the machine's own request.
#[test]
fn foreign_request_for_this_name_holds_and_hides_nothing() {
    let own = || request("csr-1", CLIENT, RequestState::Pending);
    for requester in ["system:node:w-9", "system:serviceaccount:default:other"] {
        let others =
            |state| CertificateRequest { requester: requester.into(), ..request("csr-2", CLIENT, state) };
        let pending = Said { requests: vec![others(RequestState::Pending)], ..Said::default() };
        assert_eq!(told(&weigh(&[], true, pending)), [], "{requester}");
        let before = Said { requests: vec![others(RequestState::Issued), own()], ..Said::default() };
        assert_eq!(
            told(&weigh(&[], true, before)),
            [("csr-not-approved", Sure, vec!["csr csr-1"])],
            "{requester}"
        );
    }
    let renewed = CertificateRequest { requester: "system:node:w-1".into(), ..own() };
    let said = Said { requests: vec![renewed], ..Said::default() };
    assert_eq!(told(&weigh(&[], true, said)), [("csr-not-approved", Sure, vec!["csr csr-1"])]);
}
