//! What a plan may say: where its files may lie, which modes they may have, and which fields its configuration may hold.
//!
//! Each is a list of what is known to be harmless, and what is not on it is refused with its step and its place, before anything
//! of the plan is carried out. The agent asks it, so that a server that was taken over is held to what a node is configured with;
//! the server asks it when it reads the file of plans, so that a person who wrote a field that is not taken learns it at once.
//! Paths are compared name by name, fields by their whole name. What a file holds is not looked into.

use serde_json::{Map, Value};
use thiserror::Error;

use super::plan::{JoinOrder, Plan, Step};
use super::words::Distribution;

/// What a plan may not say, by its step.
#[derive(Debug, Error)]
pub enum NotAllowed {
    /// A file of it lies where no node's configuration does.
    #[error("step {step}: {path} is no place for a plan's file; it takes {}", places())]
    Place {
        /// Which step.
        step: usize,
        /// Where.
        path: String,
    },
    /// A file of it would be others' to write, or become somebody when it is run.
    #[error(
        "step {step}: {path} is to have the mode {mode:?}; a plan's file is its owner's alone to write, and never setuid: write 0600, 0640, 0644 or 0755"
    )]
    Mode {
        /// Which step.
        step: usize,
        /// Where.
        path: String,
        /// As the plan says it.
        mode: String,
    },
    /// Its configuration says what a plan may not say.
    #[error("step {step}: {place} is not taken from a plan: {what}")]
    Config {
        /// Which step.
        step: usize,
        /// Where in it.
        place: String,
        /// Why, and what is taken.
        what: String,
    },
}

/// Files are taken in these folders and those below them.
const FOLDERS: [&[&str]; 6] = [
    &["etc", "kubernetes"],
    &["etc", "cni", "net.d"],
    &["etc", "containerd"],
    &["etc", "sysctl.d"],
    &["etc", "modules-load.d"],
    &["etc", "rancher"],
];
/// And these.
const FILES: [&[&str]; 1] = [&["etc", "crictl.yaml"]];
/// What a file's mode may hold: others may read and run, and nobody but the owner writes.
const MODE_MOST: u32 = 0o755;

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
/// Arguments of k3s's and RKE2's kube-proxy.
const PROXY: [&str; 4] = ["conntrack-max-per-core", "metrics-bind-address", "proxy-mode", "v"];

/// The places of a plan's files, for a person.
fn places() -> String {
    let files = FILES.iter().map(|names| format!("/{}", names.join("/")));
    let folders = FOLDERS.iter().map(|names| format!("/{}/…", names.join("/")));
    files.chain(folders).collect::<Vec<_>>().join(", ")
}

/// All of the plan may be carried out.
///
/// # Errors
///
/// The first step that says what a plan may not say.
pub fn check(plan: &Plan) -> Result<(), NotAllowed> {
    for (number, step) in plan.steps.iter().enumerate() {
        match step {
            Step::WriteFile { path, mode: octal, .. } => {
                place(number, path)?;
                mode(number, path, octal)?;
            }
            Step::Join(JoinOrder { distribution, config: Some(text), .. }) => {
                drop(config(number, *distribution, text)?);
            }
            Step::Join(_) => {}
            Step::RestartKubelet {} => {}
        }
    }
    Ok(())
}

/// A plan may write there.
///
/// # Errors
///
/// It is no place for a plan's file.
pub fn place(step: usize, path: &str) -> Result<(), NotAllowed> {
    let names: Vec<&str> = path.strip_prefix('/').unwrap_or_default().split('/').collect();
    let is_plain = names.iter().all(|name| !matches!(*name, "" | "." | "..") && !name.contains('\0'));
    let is_below = FOLDERS.iter().any(|folder| names.len() > folder.len() && names.starts_with(folder));
    if is_plain && (is_below || FILES.contains(&names.as_slice())) {
        return Ok(());
    }
    Err(NotAllowed::Place { step, path: path.to_owned() })
}

/// The mode that a file gets.
///
/// # Errors
///
/// It is none, or others could write the file, or run it as its owner.
pub fn mode(step: usize, path: &str, octal: &str) -> Result<u32, NotAllowed> {
    let is_octal = !octal.is_empty() && octal.bytes().all(|byte| matches!(byte, b'0'..=b'7'));
    let mode = is_octal.then(|| u32::from_str_radix(octal, 8).ok()).flatten();
    mode.filter(|mode| mode & !MODE_MOST == 0).ok_or_else(|| NotAllowed::Mode {
        step,
        path: path.to_owned(),
        mode: octal.to_owned(),
    })
}

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
        }
    }
    Ok(())
}

fn argument(name: &str, place: &str, known: &[&str]) -> Result<(), Refused> {
    if known.contains(&name) {
        return Ok(());
    }
    let what = format!("{name:?} is no argument that a plan may give; it may give {}", known.join(", "));
    Err((place.to_owned(), what))
}
