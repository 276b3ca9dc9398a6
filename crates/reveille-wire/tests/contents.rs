//! Plans of a registration server that was taken over: what the files at the places that are taken may make root run.

#![allow(clippy::unwrap_used, reason = "in a test, what cannot be is a failure")]

use reveille_wire::agent::allowed;
use reveille_wire::agent::plan::Step;
use reveille_wire::agent::text::Content;

fn is_taken(path: &str, content: &str) -> bool {
    let step = Step::WriteFile {
        path: path.into(),
        mode: "0600".into(),
        owner: None,
        content: Content::cut(content),
        secret: false,
    };
    allowed::step(0, &step).is_ok()
}

/// k3s writes each key of `configs` into containerd's configuration as it is, between quotes
/// (`pkg/agent/templates/templates_linux.go`: `registry.configs."{{$k}}".auth]`).
#[test]
fn registry_key_injecting_containerd_configuration_is_refused() {
    let registries = "configs:\n  \"x\\\".auth]\\n[stream_processors.\\\"x\\\"]\\n  accepts = [\\\"application/vnd.oci.image.layer.v1.tar+gzip\\\"]\\n  \
                      returns = \\\"application/vnd.oci.image.layer.v1.tar\\\"\\n  path = \\\"/bin/sh\\\"\\n  args = [\\\"-c\\\", \\\"id >/root/x; gzip -d\\\"]\\n\
                      [plugins.\\\"y\":\n    auth: {username: a}\n";
    let read: serde_json::Value = reveille_wire::yaml::plan(registries).unwrap();
    let key = read["configs"].as_object().unwrap().keys().next().unwrap().clone();
    println!("[plugins.\"io.containerd.grpc.v1.cri\".registry.configs.\"{key}\".auth]");
    assert!(key.contains("\n[stream_processors."), "{key}");
    assert!(
        !is_taken("/etc/rancher/k3s/registries.yaml", registries),
        "a plan of a server that was taken over runs a shell as root by containerd"
    );
}

/// k3s removes the folder of each key of `mirrors` below its folder of registries, and makes it again
/// (`pkg/agent/containerd/config.go`, `cleanContainerdHosts`: `os.RemoveAll(filepath.Join(dir, host))`).
#[test]
fn no_registry_of_a_plan_has_k3s_remove_a_folder_of_the_machine() {
    let registries =
        "mirrors:\n  ../../../../../../../../etc/kubernetes:\n    endpoint: [\"https://mirror.example\"]\n";
    assert!(
        !is_taken("/etc/rancher/k3s/registries.yaml", registries),
        "a plan of a server that was taken over has /etc/kubernetes removed by k3s"
    );
}

/// A kubeconfig names the program that gets its credential. The plugins of Calico, Multus and Whereabouts, which a runtime
/// starts as root, read the one that their configuration names, or the one beside it.
#[test]
fn plan_kubeconfig_beside_a_network_configuration_is_refused() {
    let kubeconfig = "apiVersion: v1\nkind: Config\ncurrent-context: c\n\
                      clusters: [{name: c, cluster: {server: \"https://10.0.0.1:6443\"}}]\n\
                      contexts: [{name: c, context: {cluster: c, user: u}}]\n\
                      users: [{name: u, user: {exec: {apiVersion: client.authentication.k8s.io/v1, interactiveMode: Never, \
                      command: /bin/sh, args: [\"-c\", \"id >/root/x\"]}}}]\n";
    let network = "{\"cniVersion\": \"0.3.1\", \"name\": \"n\", \"plugins\": [{\"type\": \"calico\", \"datastore_type\": \"kubernetes\", \
                   \"kubernetes\": {\"kubeconfig\": \"/etc/kubernetes/cloud/x\"}}]}";
    let taken: Vec<&str> = [
        "/etc/cni/net.d/calico-kubeconfig",
        "/etc/cni/net.d/multus.d/multus.kubeconfig",
        "/etc/cni/net.d/whereabouts.d/whereabouts.kubeconfig",
    ]
    .into_iter()
    .filter(|path| is_taken(path, kubeconfig))
    .collect();
    let elsewhere =
        is_taken("/etc/kubernetes/cloud/x", kubeconfig) && is_taken("/etc/cni/net.d/00-x.conflist", network);
    assert!(
        taken.is_empty() && !elsewhere,
        "a plan of a server that was taken over runs a shell as root by a plugin: {taken:?}, elsewhere: {elsewhere}"
    );
}
