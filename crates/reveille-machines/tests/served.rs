//! What an API server says that it serves, and the version that a kind is read in.

#![allow(clippy::unwrap_used, reason = "in a test, what cannot be is a failure")]

use std::collections::BTreeMap;

use reveille_machines::kind_of;
use reveille_machines::served::{GroupVersion, Served, list_path, served, wanted};
use serde_json::{Value, json};

/// An answer to `GET /apis`: each group with its versions, the first one preferred by the server.
fn groups(groups: &[(&str, &[&str])]) -> Value {
    let group = |(name, versions): &(&str, &[&str])| {
        let versions: Vec<_> = versions
            .iter()
            .map(|version| json!({"groupVersion": format!("{name}/{version}"), "version": version}))
            .collect();
        json!({"name": name, "versions": versions, "preferredVersion": versions[0]})
    };
    json!({"kind": "APIGroupList", "apiVersion": "v1", "groups": groups.iter().map(group).collect::<Vec<_>>()})
}

/// An answer to `GET /apis/GROUP/VERSION`: each resource with its kind, and its subresource.
fn resources(group_version: &str, resources: &[(&str, &str)]) -> Value {
    let entry = |(name, kind): &(&str, &str)| {
        [
            json!({"name": name, "singularName": "", "namespaced": true, "kind": kind, "verbs": ["get", "list", "watch"]}),
            json!({"name": format!("{name}/status"), "singularName": "", "namespaced": true, "kind": kind, "verbs": ["get"]}),
        ]
    };
    let list: Vec<_> = resources.iter().flat_map(entry).collect();
    json!({"kind": "APIResourceList", "apiVersion": "v1", "groupVersion": group_version, "resources": list})
}

fn ask(groups: &Value, answers: &[(&str, Value)]) -> Vec<(String, String)> {
    let answer = |one: GroupVersion| {
        let name = one.path();
        answers.iter().find(|(path, _)| *path == name).map(|(_, answer)| (one, answer.clone()))
    };
    let answers: BTreeMap<_, _> = wanted(groups).into_iter().filter_map(answer).collect();
    let name = |found: Served| {
        (format!("{}.{}", found.kind.plural, found.kind.group), found.version.name.to_string())
    };
    served(groups, &answers).into_iter().map(name).collect()
}

fn pairs(pairs: &[(&str, &str)]) -> Vec<(String, String)> {
    pairs.iter().map(|(name, version)| ((*name).to_owned(), (*version).to_owned())).collect()
}

const MACHINES: [(&str, &str); 2] = [("machines", "Machine"), ("machinepools", "MachinePool")];

#[test]
fn cluster_without_such_groups_serves_none() {
    let apis = groups(&[("apps", &["v1"]), ("batch", &["v1"])]);
    assert_eq!(wanted(&apis), []);
    assert_eq!(ask(&apis, &[]), []);
}

#[test]
fn newest_understood_version_is_read_not_the_preferred_one() {
    let apis = groups(&[
        ("cluster.x-k8s.io", &["v1beta1", "v1beta2", "v1alpha4"]),
        ("karpenter.sh", &["v1", "v1beta1"]),
    ]);
    let paths: Vec<_> = wanted(&apis).into_iter().map(GroupVersion::path).collect();
    let expected =
        ["/apis/karpenter.sh/v1", "/apis/cluster.x-k8s.io/v1beta2", "/apis/cluster.x-k8s.io/v1beta1"];
    assert_eq!(paths, expected);
    let answers = [
        ("/apis/karpenter.sh/v1", resources("karpenter.sh/v1", &[("nodeclaims", "NodeClaim")])),
        ("/apis/cluster.x-k8s.io/v1beta2", resources("cluster.x-k8s.io/v1beta2", &MACHINES)),
        ("/apis/cluster.x-k8s.io/v1beta1", resources("cluster.x-k8s.io/v1beta1", &MACHINES)),
    ];
    let expected = pairs(&[
        ("nodeclaims.karpenter.sh", "v1"),
        ("machines.cluster.x-k8s.io", "v1beta2"),
        ("machinepools.cluster.x-k8s.io", "v1beta2"),
    ]);
    assert_eq!(ask(&apis, &answers), expected);
}

#[test]
fn version_that_lacks_the_resource_is_passed_over() {
    let apis = groups(&[("cluster.x-k8s.io", &["v1beta2", "v1beta1"])]);
    let answers = [
        ("/apis/cluster.x-k8s.io/v1beta2", resources("cluster.x-k8s.io/v1beta2", &MACHINES[..1])),
        ("/apis/cluster.x-k8s.io/v1beta1", resources("cluster.x-k8s.io/v1beta1", &MACHINES)),
    ];
    let expected =
        pairs(&[("machines.cluster.x-k8s.io", "v1beta2"), ("machinepools.cluster.x-k8s.io", "v1beta1")]);
    assert_eq!(ask(&apis, &answers), expected);
    assert_eq!(
        ask(&apis, &answers[1..]),
        pairs(&[("machines.cluster.x-k8s.io", "v1beta1"), ("machinepools.cluster.x-k8s.io", "v1beta1"),])
    );
}

#[test]
fn version_that_is_not_understood_is_not_served() {
    let apis = groups(&[("karpenter.sh", &["v2", "v1beta1"]), ("metal3.io", &["v1alpha1"])]);
    let answers = [
        ("/apis/karpenter.sh/v2", resources("karpenter.sh/v2", &[("nodeclaims", "NodeClaim")])),
        ("/apis/metal3.io/v1alpha1", resources("metal3.io/v1alpha1", &[("hostclaims", "HostClaim")])),
    ];
    assert_eq!(ask(&apis, &answers), []);
}

#[test]
fn version_that_left_the_groups_is_not_served() {
    let before = groups(&[("metal3.io", &["v1alpha1"])]);
    let answer = resources("metal3.io/v1alpha1", &[("baremetalhosts", "BareMetalHost")]);
    let answers: BTreeMap<_, _> = wanted(&before).into_iter().map(|one| (one, answer.clone())).collect();
    assert_eq!(served(&before, &answers).len(), 1);
    assert_eq!(served(&groups(&[("metal3.io", &["v1beta1"])]), &answers), []);
}

#[test]
fn answers_of_another_shape_serve_none() {
    for odd in
        [Value::Null, json!([]), json!({"groups": {}}), json!({"groups": [1, {"name": 2}]}), json!("x")]
    {
        assert_eq!(wanted(&odd), []);
        assert_eq!(served(&odd, &BTreeMap::new()), []);
    }
    let apis = groups(&[("metal3.io", &["v1alpha1"])]);
    for odd in [Value::Null, json!({"resources": 1}), json!({"resources": [{"name": "baremetalhosts"}]})] {
        assert_eq!(ask(&apis, &[("/apis/metal3.io/v1alpha1", odd)]), []);
    }
    let mut hosts = resources("metal3.io/v1alpha1", &[("baremetalhosts", "BareMetalHost")]);
    assert_eq!(ask(&apis, &[("/apis/metal3.io/v1alpha1", hosts.clone())]).len(), 1);
    hosts["resources"][0]["verbs"] = json!(["get"]);
    assert_eq!(ask(&apis, &[("/apis/metal3.io/v1alpha1", hosts)]), []);
}

#[test]
fn list_path_names_group_version_and_resource() {
    let machines = kind_of("cluster.x-k8s.io", "machines").unwrap();
    assert_eq!(list_path(machines, "v1beta2"), "/apis/cluster.x-k8s.io/v1beta2/machines");
}
