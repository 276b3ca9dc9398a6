//! What a plan may say in the words of what joins: fields of kubeadm's JoinConfiguration, keys of an agent of k3s or RKE2, and
//! the arguments of a kubelet in either.
//!
//! A field is on a list of names, and what it says is one word: kubeadm puts a kubelet's arguments into one line, and a value
//! with a space in it would be two arguments.

use serde_json::{Map, Value};

use super::NotAllowed;
use super::grammar::is_word;
use crate::agent::words::Distribution;

const NO_MAPPING: &str = "it is no mapping in YAML, in one document";

/// Fields of kubeadm's JoinConfiguration. What `discovery` says is replaced by the plan's own server, pins and token.
const KUBEADM: [&str; 5] = ["apiVersion", "kind", "discovery", "nodeRegistration", "timeouts"];
const VERSIONS: [&str; 2] = ["kubeadm.k8s.io/v1beta3", "kubeadm.k8s.io/v1beta4"];
const REGISTRATION: [&str; 7] = [
    "name",
    "criSocket",
    "taints",
    "kubeletExtraArgs",
    "ignorePreflightErrors",
    "imagePullPolicy",
    "imagePullSerial",
];
/// Keys of an agent of k3s or RKE2; each also with a `+` behind it, which adds to a list.
const AGENT: [&str; 17] = [
    "debug",
    "disable-default-registry-endpoint",
    "flannel-iface",
    "kube-proxy-arg",
    "kubelet-arg",
    "node-external-ip",
    "node-ip",
    "node-label",
    "node-taint",
    "pause-image",
    "profile",
    "protect-kernel-defaults",
    "resolv-conf",
    "selinux",
    "snapshotter",
    "system-default-registry",
    "v",
];
/// Arguments of a kubelet that say how much it takes and what it calls itself, and none that names a program, or a folder whose
/// content it runs.
const KUBELET: [&str; 37] = [
    "allowed-unsafe-sysctls",
    "cgroup-driver",
    "cloud-provider",
    "cluster-dns",
    "cluster-domain",
    "container-log-max-files",
    "container-log-max-size",
    "container-runtime-endpoint",
    "cpu-manager-policy",
    "event-burst",
    "event-qps",
    "eviction-hard",
    "eviction-max-pod-grace-period",
    "eviction-minimum-reclaim",
    "eviction-pressure-transition-period",
    "eviction-soft",
    "eviction-soft-grace-period",
    "fail-swap-on",
    "feature-gates",
    "image-gc-high-threshold",
    "image-gc-low-threshold",
    "kube-api-burst",
    "kube-api-qps",
    "kube-reserved",
    "max-pods",
    "memory-manager-policy",
    "node-ip",
    "node-labels",
    "node-status-update-frequency",
    "pod-max-pids",
    "provider-id",
    "register-with-taints",
    "resolv-conf",
    "rotate-server-certificates",
    "serialize-image-pulls",
    "system-reserved",
    "v",
];
/// Arguments of a kubelet that name a program, or a file that may.
const PROGRAMS: [&str; 8] = [
    "bootstrap-kubeconfig",
    "config",
    "config-dir",
    "image-credential-provider-bin-dir",
    "image-credential-provider-config",
    "kubeconfig",
    "pod-manifest-path",
    "root-dir",
];
/// Arguments of k3s's and RKE2's kube-proxy.
const PROXY: [&str; 4] = ["conntrack-max-per-core", "metrics-bind-address", "proxy-mode", "v"];

/// The configuration that a join brings, in the shape that is written.
///
/// # Errors
///
/// It cannot be read, or holds a field that is not taken.
pub fn config(step: usize, distribution: Distribution, text: &str) -> Result<Value, NotAllowed> {
    let refused = |(place, what)| NotAllowed::Config { step, place, what };
    let mut map = match serde_saphyr::from_str::<Value>(text) {
        Ok(Value::Object(map)) => map,
        Ok(_) => return Err(refused(("config".to_owned(), NO_MAPPING.to_owned()))),
        Err(cause) => return Err(refused(("config".to_owned(), format!("{NO_MAPPING}: {cause}")))),
    };
    let checked = match distribution {
        Distribution::Kubeadm => kubeadm(&mut map),
        Distribution::K3s | Distribution::Rke2 => agent(&map),
    };
    let checked = checked.and_then(|()| words(&map, ""));
    checked.map_err(|(place, what)| refused((format!("config.{place}"), what)))?;
    Ok(Value::Object(map))
}

/// A place that is refused, and why.
type Refused = (String, String);

fn known(map: &Map<String, Value>, above: &str, fields: &[&str]) -> Result<(), Refused> {
    match map.keys().find(|key| !fields.contains(&key.as_str())) {
        Some(key) => Err((format!("{above}{key}"), format!("a plan may say {}", fields.join(", ")))),
        None => Ok(()),
    }
}

fn kubeadm(map: &mut Map<String, Value>) -> Result<(), Refused> {
    known(map, "", &KUBEADM)?;
    let is_one_of = |key: &str, words: &[&str]| match map.get(key) {
        Some(said) if !said.as_str().is_some_and(|said| words.contains(&said)) => {
            Err((key.to_owned(), format!("it has to be {}", words.join(" or "))))
        }
        _ => Ok(()),
    };
    is_one_of("kind", &["JoinConfiguration"])?;
    is_one_of("apiVersion", &VERSIONS)?;
    let registration = match map.get_mut("nodeRegistration") {
        None | Some(Value::Null) => return Ok(()),
        Some(Value::Object(registration)) => registration,
        Some(_) => return Err(("nodeRegistration".to_owned(), "it is no mapping".to_owned())),
    };
    known(registration, "nodeRegistration.", &REGISTRATION)?;
    let Some(given) = registration.get_mut("kubeletExtraArgs") else { return Ok(()) };
    let place = "nodeRegistration.kubeletExtraArgs";
    // What is written is v1beta4, which has a list where v1beta3 had a mapping.
    if let Value::Object(map) = given {
        let list = map.iter().map(|(name, value)| serde_json::json!({ "name": name, "value": value }));
        *given = Value::Array(list.collect());
    }
    let Value::Array(list) = given else { return Err((place.to_owned(), "it is no list".to_owned())) };
    for (number, one) in list.iter().enumerate() {
        let at = format!("{place}[{number}]");
        let Value::Object(one) = one else { return Err((at, "it is no mapping".to_owned())) };
        known(one, &format!("{at}."), &["name", "value"])?;
        let name = one.get("name").and_then(Value::as_str).unwrap_or_default();
        argument(name, &at, &KUBELET)?;
    }
    Ok(())
}

fn agent(map: &Map<String, Value>) -> Result<(), Refused> {
    let field =
        |key: &str| AGENT.contains(&key) || key.strip_suffix('+').is_some_and(|key| AGENT.contains(&key));
    if let Some(key) = map.keys().find(|key| !field(key)) {
        return Err((key.clone(), format!("a plan may say {}", AGENT.join(", "))));
    }
    for (key, value) in map {
        let known: &[&str] = match key.trim_end_matches('+') {
            "kubelet-arg" => &KUBELET,
            "kube-proxy-arg" => &PROXY,
            _ => continue,
        };
        let list = match value {
            Value::Array(list) => list.as_slice(),
            one => std::slice::from_ref(one),
        };
        for (number, one) in list.iter().enumerate() {
            let one = one.as_str().unwrap_or_default();
            let name = one.split_once('=').map_or(one, |(name, _)| name);
            argument(name.trim_start_matches('-'), &format!("{key}[{number}]"), known)?;
            no_second(one, &format!("{key}[{number}]"))?;
        }
    }
    Ok(())
}

/// Every text below is one word. What kubeadm's discovery says is replaced by the plan's own.
fn words(map: &Map<String, Value>, above: &str) -> Result<(), Refused> {
    for (key, value) in
        map.iter().filter(|(key, _)| above.is_empty().then_some("discovery") != Some(key.as_str()))
    {
        word(value, &format!("{above}{key}"))?;
    }
    Ok(())
}

fn word(value: &Value, at: &str) -> Result<(), Refused> {
    match value {
        Value::String(text) if !is_word(text) => {
            Err((at.to_owned(), format!("{text:?} is more than one word of plain characters")))
        }
        Value::Object(map) => words(map, &format!("{at}.")),
        Value::Array(list) => {
            list.iter().enumerate().try_for_each(|(number, one)| word(one, &format!("{at}[{number}]")))
        }
        _ => Ok(()),
    }
}

/// An argument behind a comma: some readers of lists part there.
fn no_second(values: &str, place: &str) -> Result<(), Refused> {
    let names = values.split(',').skip(1).filter_map(|part| part.split_once('=')).map(|(name, _)| name);
    match names.map(|name| name.trim_start_matches('-')).find(|name| PROGRAMS.contains(name)) {
        Some(name) => {
            Err((place.to_owned(), format!("{name:?} stands behind a comma, and is no argument of a plan")))
        }
        None => Ok(()),
    }
}

fn argument(name: &str, place: &str, known: &[&str]) -> Result<(), Refused> {
    if known.contains(&name) {
        return Ok(());
    }
    let what = format!("{name:?} is no argument that a plan may give; it may give {}", known.join(", "));
    Err((place.to_owned(), what))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_value_is_one_word_so_that_no_argument_hides_in_another() {
        let kubeadm = |rest: &str| format!("kind: JoinConfiguration\nnodeRegistration:\n  {rest}\n");
        let cases = [
            (Distribution::Kubeadm, kubeadm("kubeletExtraArgs: [{name: v, value: \"0 --root-dir=/x\"}]")),
            (Distribution::Kubeadm, kubeadm("criSocket: \"unix:///run/x --config=/x\"")),
            (Distribution::Kubeadm, kubeadm("taints: [{key: \"a --config=/x\", effect: NoSchedule}]")),
            (Distribution::Kubeadm, kubeadm("name: \"a\\tb\"")),
            (Distribution::K3s, "snapshotter: \"overlayfs\\\"\\n[plugins.x]\"\n".to_owned()),
            (Distribution::K3s, "kubelet-arg: [\"v=1,config=/etc/rancher/k.yaml\"]\n".to_owned()),
            (Distribution::Rke2, "node-label: [\"a=$(x)\"]\n".to_owned()),
        ];
        for (distribution, text) in cases {
            assert!(config(0, distribution, &text).is_err(), "{text}");
        }
        let taken = "kubelet-arg: [\"eviction-hard=memory.available<5%,nodefs.available<10%\", \"kube-reserved=cpu=1,memory=1Gi\"]\n";
        assert!(config(0, Distribution::K3s, taken).is_ok());
        let taken = "discovery: {file: {kubeConfigPath: \"a b\"}}\nnodeRegistration: {kubeletExtraArgs: [{name: node-labels, value: \"a=b,c=d\"}]}\n";
        assert!(config(0, Distribution::Kubeadm, taken).is_ok());
    }
}
