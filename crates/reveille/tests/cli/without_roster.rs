//! Tests the reading commands and `init` where no cloud can be read: a cluster with Nodes and NodeClaims, and no roster.

use crate::bench::Bench;
use crate::world::{list, listen};

/// `w-N`, with more labels, a provider ID of a provider that Reveille does not know, and Ready or not.
fn node(name: &str, labels: &str, ready: &str) -> String {
    format!(
        r#"{{"metadata": {{"name": "{name}", "uid": "u-{name}", "resourceVersion": "7",
                "creationTimestamp": "2026-11-20T10:00:00Z", "labels": {{"kubernetes.io/hostname": "{name}"{labels}}}}},
            "spec": {{"providerID": "vsphere://{name}"}},
            "status": {{"conditions": [{{"type": "Ready", "status": "{ready}", "reason": "NodeStatusUnknown",
                        "message": "Kubelet stopped posting node status."}}],
                        "addresses": [{{"type": "InternalIP", "address": "10.0.0.1"}}]}}}}"#
    )
}

fn claim(name: &str, status: &str) -> String {
    format!(
        r#"{{"apiVersion": "karpenter.sh/v1", "kind": "NodeClaim",
            "metadata": {{"name": "{name}", "uid": "u-{name}", "creationTimestamp": "2026-11-20T10:00:00Z",
                          "labels": {{"karpenter.sh/nodepool": "default", "topology.kubernetes.io/zone": "zone-a"}}}},
            "status": {{{status}}}}}"#
    )
}

const LAUNCHED: &str = r#"{"type": "Launched", "status": "True", "reason": "Launched", "message": "",
    "lastTransitionTime": "2026-11-20T10:00:05Z"}"#;

/// A cluster without a cloud: one machine of the control plane, two workers of which one is silent, and three claims.
fn serve() -> u16 {
    listen(|line, _, _| {
        let body = match line {
            "GET /api/v1/nodes" => list(
                "NodeList",
                [
                    node("cp-1", r#", "node-role.kubernetes.io/control-plane": """#, "True"),
                    node("w-1", "", "True"),
                    node("w-2", "", "Unknown"),
                    node("k-1", r#", "karpenter.sh/nodepool": "default""#, "True"),
                ]
                .join(","),
            ),
            "GET /apis/coordination.k8s.io/v1/namespaces/kube-node-lease/leases" => {
                list("LeaseList", String::new())
            }
            "GET /api/v1/namespaces/default/events" => list("EventList", String::new()),
            "GET /apis" => r#"{"kind": "APIGroupList", "groups": [{"name": "karpenter.sh",
                "versions": [{"groupVersion": "karpenter.sh/v1", "version": "v1"}]}]}"#
                .to_owned(),
            "GET /apis/karpenter.sh/v1" => r#"{"kind": "APIResourceList", "resources": [
                {"name": "nodeclaims", "kind": "NodeClaim", "namespaced": false, "verbs": ["get", "list"]}]}"#
                .to_owned(),
            "GET /apis/karpenter.sh/v1/nodeclaims" => list(
                "NodeClaimList",
                [
                    claim("default-joined", &format!(r#""providerID": "vsphere://k-1", "nodeName": "k-1",
                        "conditions": [{LAUNCHED}, {{"type": "Registered", "status": "True"}}, {{"type": "Initialized", "status": "True"}}]"#)),
                    claim("default-waits", &format!(r#""providerID": "vsphere://k-2",
                        "conditions": [{LAUNCHED}, {{"type": "Registered", "status": "Unknown", "reason": "NodeNotFound",
                            "message": "Node not registered with cluster", "lastTransitionTime": "2026-11-20T10:00:05Z"}}]"#)),
                    claim("default-refused", r#""conditions": [{"type": "Launched", "status": "Unknown",
                        "reason": "InsufficientCapacityError", "message": "no host has room",
                        "lastTransitionTime": "2026-11-20T10:00:05Z"}]"#),
                ]
                .join(","),
            ),
            _ => return (404, r#"{"kind": "Status", "status": "Failure", "reason": "NotFound", "code": 404}"#.to_owned()),
        };
        (200, body)
    })
}

fn bench() -> Bench {
    let bench = Bench::towards(serve());
    std::fs::remove_file(bench.path("reveille.yaml")).unwrap();
    bench
}

#[test]
fn status_without_a_roster_tells_of_nodes_and_claims() {
    let bench = bench();
    let kubeconfig = bench.path("kubeconfig").display().to_string();
    let named = bench.run(&["status", "--all", "--kubeconfig", "kubeconfig"]);
    let usual = bench.run_with(&[("KUBECONFIG", &kubeconfig)], &["status", "--all"]);
    for ran in [&named, &usual] {
        assert_eq!(ran.code, 1, "{}{}", ran.out, ran.err);
        assert!(ran.out.starts_with("nowhere · 6 machines · 3 Ready"), "{}", ran.out);
        for name in ["cp-1", "w-1", "w-2", "default-joined", "default-waits", "default-refused"] {
            assert!(ran.out.contains(name), "{name}\n{}", ran.out);
        }
        assert!(ran.err.contains("there is no roster"), "{}", ran.err);
    }
}

#[test]
fn init_without_a_cloud_writes_a_roster_that_looks() {
    let bench = bench();
    let ran = bench.run(&["init", "--kubeconfig", "kubeconfig"]);
    assert_eq!(ran.code, 0, "{}{}", ran.out, ran.err);
    let roster = std::fs::read_to_string(bench.path("reveille.yaml")).unwrap();
    for part in [
        "selector: {matchLabels: {\"karpenter.sh/nodepool\": default}}",
        "selector: {matchLabels: {\"node-role.kubernetes.io/control-plane\": \"\"}}",
        "selector: {matchLabels: {\"reveille.dev/role\": worker}}",
    ] {
        assert!(roster.contains(part), "{part}\n{roster}");
    }
    assert!(!roster.contains("act,") && !roster.contains(": act"), "{roster}");
    let status = bench.run(&["status"]);
    assert_eq!(status.code, 1, "{}{}", status.out, status.err);
    assert!(status.out.starts_with("nowhere · 6 machines · 3 Ready"), "{}", status.out);
    let why = bench.run(&["why", "default-refused"]);
    assert!(why.out.contains("no host has room"), "{}{}", why.out, why.err);
}

/// Which of two clusters is meant, when one is named and the other is a roster's, only the person knows.
#[test]
fn roster_and_context_together_are_refused() {
    let bench = bench();
    bench.write("other.yaml", "");
    let ran = bench.run(&["status", "--roster", "other.yaml", "--context", "nowhere"]);
    assert_eq!(ran.code, 64, "{}{}", ran.out, ran.err);
    assert!(ran.err.contains("leave out one of the two"), "{}", ran.err);
}

/// What a person wrote is no roster for the cluster that the command line names.
#[test]
fn named_context_goes_before_the_usual_roster() {
    let bench = Bench::towards(serve());
    let ran = bench.run_with(&[("KUBECONFIG", "kubeconfig")], &["status", "--context", "nowhere"]);
    assert!(ran.out.starts_with("nowhere · 6 machines"), "{}{}", ran.out, ran.err);
}
