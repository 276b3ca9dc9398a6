//! What the `config` of a plan's join may hold: fields of kubeadm's JoinConfiguration, keys of the k3s or RKE2 agent, and
//! arguments of a kubelet in either.
//!
//! Every field must be on a list of names, and its value must be one word. kubeadm writes the arguments of a kubelet into
//! one line, and a value with a space in it would be two arguments.

use serde_json::{Map, Value};

use super::NotAllowed;
use super::grammar::is_word;
use crate::agent::text::Text;
use crate::agent::words::Distribution;
use crate::yaml;

/// Each part of an error: the longest list of what is taken has 800 bytes.
const TOLD_BYTES_MAX: usize = 2_000;
const NO_MAPPING: &str = "it is no mapping in YAML, in one document";

/// Fields of kubeadm's JoinConfiguration. The plan's own server, pins and token replace the content of `discovery`.
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
/// Keys of an agent of k3s or RKE2; each also with a `+` behind it, which adds to a list. Not `system-default-registry`:
/// RKE2 takes from there the image whose programs it runs as root, and k3s no more than what `pause-image` says.
const AGENT: [&str; 16] = [
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
    "v",
];
/// Arguments of a kubelet about its resources and its name. None of them names a program, or a folder whose
/// content the kubelet runs.
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
/// Resources that an argument of a kubelet lists.
const RESOURCES: [&str; 4] = ["cpu", "ephemeral-storage", "memory", "pid"];
/// Arguments of k3s's and RKE2's kube-proxy.
const PROXY: [&str; 4] = ["conntrack-max-per-core", "metrics-bind-address", "proxy-mode", "v"];

/// The configuration of a join, in the form that the agent writes.
///
/// # Errors
///
/// The text cannot be read, or holds a field that a plan may not set.
pub fn config(step: usize, distribution: Distribution, text: &str) -> Result<Value, NotAllowed> {
    let refused =
        |(place, what): Refused| NotAllowed::Config { step, place: told(&place), what: told(&what) };
    let mut map = match yaml::plan::<Value>(text) {
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

/// A place in the configuration that is refused, and the reason.
type Refused = (String, String);

/// A part of an error, which is logged: a key or a value may be as long as the whole plan.
fn told(text: &str) -> String {
    Text::<TOLD_BYTES_MAX, false>::cut(text).to_string()
}

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
    // The agent writes v1beta4, which has a list where v1beta3 had a mapping.
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
        plain(key, value)?;
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

/// An agent's setting is one value or a list of them. The agent reads its own file back: a long key of a mapping would be
/// JSON that is no YAML, and the file would stand in the way of each later plan.
fn plain(key: &str, value: &Value) -> Result<(), Refused> {
    let list = match value {
        Value::Array(list) => list.as_slice(),
        one => std::slice::from_ref(one),
    };
    match list.iter().position(|one| one.is_object() || one.is_array()) {
        Some(number) => Err((format!("{key}[{number}]"), "it is no single value".to_owned())),
        None => Ok(()),
    }
}

/// Every value below is one word. The plan's own values replace those of kubeadm's discovery.
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

/// No part behind a comma may be an argument: some parsers split lists at commas, and switch on an argument without a
/// value. An argument's name has no dot, slash, colon or capital letter; signals, addresses, features and names with a
/// domain have one of them.
fn no_second(values: &str, place: &str) -> Result<(), Refused> {
    let mut names = values.split(',').skip(1).map(|part| part.split_once('=').map_or(part, |(name, _)| name));
    let is_of_none = |c: char| matches!(c, '.' | '/' | ':') || c.is_ascii_uppercase();
    match names.find(|name| !RESOURCES.contains(name) && !name.contains(is_of_none)) {
        Some(name) => Err((
            place.to_owned(),
            format!(
                "{name:?} stands behind a comma, where it could be read as another argument; a label or a taint \
                 without a domain belongs into node-label or node-taint, an argument into a line of its own"
            ),
        )),
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
            (Distribution::Rke2, "node-label: [\"a=$(x)\"]\n".to_owned()),
        ];
        for (distribution, text) in cases {
            assert!(config(0, distribution, &text).is_err(), "{text}");
        }
        let taken = "discovery: {file: {kubeConfigPath: \"a b\"}}\nnodeRegistration: {kubeletExtraArgs: [{name: node-labels, value: \"a=b,c=d\"}]}\n";
        assert!(config(0, Distribution::Kubeadm, taken).is_ok());
    }

    #[test]
    fn plan_setting_for_the_agents_image_registry_is_refused() {
        for distribution in [Distribution::Rke2, Distribution::K3s] {
            for key in ["system-default-registry", "system-default-registry+", "private-registry"] {
                assert!(config(0, distribution, &format!("{key}: registry.example\n")).is_err(), "{key}");
            }
            let image = "pause-image: registry.example/pause:3.10\n";
            assert!(config(0, distribution, image).is_ok());
        }
    }

    #[test]
    fn kubelet_argument_behind_a_comma_is_refused_but_not_a_list() {
        let agent = |argument: &str| {
            let text = format!("kubelet-arg: [\"{argument}\"]\n");
            config(0, Distribution::K3s, &text).is_ok()
        };
        for argument in [
            "v=1,config=/etc/rancher/k3s/k.yaml",
            "v=1,anonymous-auth=true",
            "v=1,anonymous_auth=true",
            "v=1,authorization-mode=AlwaysAllow",
            "v=1,client-ca-file=/etc/kubernetes/x.crt",
            "v=1,volume-plugin-dir=/etc/rancher/k3s/x",
            // A parser switches on an argument without a value.
            "v=1,anonymous-auth",
            "eviction-hard=memory.available<5%,--anonymous-auth",
            "feature-gates=AllAlpha=false,-anonymous-auth=true",
            "v=1,",
        ] {
            assert!(!agent(argument), "{argument}");
        }
        for argument in [
            "eviction-hard=memory.available<5%,nodefs.available<10%",
            "eviction-minimum-reclaim=memory.available=0Mi,imagefs.available=2Gi",
            "kube-reserved=cpu=1,memory=1Gi",
            "system-reserved=cpu=1,ephemeral-storage=1Gi,pid=1000,hugepages-2Mi=64Mi",
            "feature-gates=KubeletInUserNamespace=true,GracefulNodeShutdown=false",
            "cluster-dns=10.43.0.10,fd00::10",
            "allowed-unsafe-sysctls=kernel.msg*,net.core.somaxconn",
            "node-labels=example.com/a=b,example.com/c=d",
            "register-with-taints=a=b:NoSchedule,example.com/c=d:NoExecute,e:NoSchedule",
        ] {
            assert!(agent(argument), "{argument}");
        }
    }
}
