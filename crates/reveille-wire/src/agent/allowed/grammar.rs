//! The form of single values in a plan: labels and taints as Kubernetes has them, the address of a server, a value of one word.
//!
//! A label or taint that the kubelet refuses keeps it from starting. A taint that is dropped in silence lets pods onto a
//! node that was to be kept free. So the server checks each value against the rules of Kubernetes before it gives the
//! plan out, and the agent checks it again before it applies the plan.

use std::collections::BTreeMap;

use super::NotAllowed;
use crate::agent::text::Word;

/// A taint, in its parts.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Taint {
    /// Qualified name.
    pub key: String,
    /// May be empty.
    pub value: String,
    /// `NoSchedule`, `PreferNoSchedule`, `NoExecute`.
    pub effect: String,
}

const EFFECTS: [&str; 3] = ["NoSchedule", "PreferNoSchedule", "NoExecute"];
/// Longest name, and longest value, of a label (`k8s.io/apimachinery/pkg/util/validation`).
const NAME_MAX: usize = 63;
/// Longest DNS subdomain.
const DOMAIN_MAX: usize = 253;
/// Labels of Kubernetes' own domains that a kubelet may give its node, beside those below `kubelet.kubernetes.io` and
/// `node.kubernetes.io` (`k8s.io/kubelet/pkg/apis/well_known_labels.go`). A kubelet with another such label exits at its start.
const OF_KUBERNETES: [&str; 12] = [
    "kubernetes.io/hostname",
    "kubernetes.io/arch",
    "kubernetes.io/os",
    "topology.kubernetes.io/zone",
    "topology.kubernetes.io/region",
    "node.kubernetes.io/instance-type",
    "failure-domain.beta.kubernetes.io/zone",
    "failure-domain.beta.kubernetes.io/region",
    "beta.kubernetes.io/instance-type",
    "beta.kubernetes.io/arch",
    "beta.kubernetes.io/os",
    "kubernetes.io/cluster-service",
];

/// The labels of a join are labels that a kubelet may give its node.
pub(super) fn labels(step: usize, labels: &BTreeMap<Word, Word>) -> Result<(), NotAllowed> {
    for (key, value) in labels {
        let why = match () {
            () if !is_qualified(key) => {
                "it is no name of a label: PREFIX/NAME or NAME, letters, digits, - _ ."
            }
            () if !is_value(value) => "its value is none of a label: at most 63 letters, digits, - _ .",
            () if !is_a_kubelets(key) => {
                "a kubelet may not give itself a label of kubernetes.io or k8s.io, and ends at its start; label the Node instead"
            }
            () => continue,
        };
        return Err(refused(step, &format!("labels.{key}"), why));
    }
    Ok(())
}

/// A taint of a join, `key=value:effect` or `key:effect`.
///
/// # Errors
///
/// The text is not a taint.
pub fn taint(step: usize, text: &str) -> Result<Taint, NotAllowed> {
    let parts = text.rsplit_once(':').map(|(rest, effect)| {
        let (key, value) = rest.split_once('=').unwrap_or((rest, ""));
        Taint { key: key.to_owned(), value: value.to_owned(), effect: effect.to_owned() }
    });
    let is_one = |taint: &Taint| {
        is_qualified(&taint.key) && is_value(&taint.value) && EFFECTS.contains(&taint.effect.as_str())
    };
    parts.filter(is_one).ok_or_else(|| {
        let why = format!("it is no taint; write key=value:EFFECT, with {}", EFFECTS.join(", "));
        refused(step, &format!("taints {text:?}"), &why)
    })
}

/// The API server of a join is `host:port`.
pub(super) fn server(step: usize, text: &str) -> Result<(), NotAllowed> {
    let is_host = |host: &str| match host.strip_prefix('[').and_then(|host| host.strip_suffix(']')) {
        Some(v6) => v6.parse::<std::net::Ipv6Addr>().is_ok(),
        None => host.parse::<std::net::Ipv4Addr>().is_ok() || is_domain(&host.to_ascii_lowercase()),
    };
    let is_port = |port: &str| port.parse::<u16>().is_ok_and(|port| port > 0) && !port.starts_with('+');
    match text.rsplit_once(':') {
        Some((host, port)) if is_host(host) && is_port(port) => Ok(()),
        _ => Err(refused(step, &format!("server {text:?}"), "write HOST:PORT, such as 10.0.0.1:6443")),
    }
}

/// One word that has no special meaning to any reader. kubeadm writes a kubelet's arguments into one line, which systemd
/// splits at spaces, and k3s writes some into a file of another program.
pub(super) fn is_word(text: &str) -> bool {
    text.chars().all(|c| c.is_ascii_graphic() && !matches!(c, '"' | '\'' | '`' | '\\' | '$'))
}

fn refused(step: usize, place: &str, why: &str) -> NotAllowed {
    NotAllowed::Config { step, place: place.to_owned(), what: why.to_owned() }
}

/// `[PREFIX/]NAME`, the form of label keys and taint keys.
fn is_qualified(text: &str) -> bool {
    match text.split_once('/') {
        Some((prefix, name)) => is_domain(prefix) && is_name(name),
        None => is_name(text),
    }
}

fn is_value(text: &str) -> bool {
    text.is_empty() || is_name(text)
}

fn is_name(text: &str) -> bool {
    let ends = [text.bytes().next(), text.bytes().next_back()];
    text.len() <= NAME_MAX
        && ends.iter().all(|end| end.is_some_and(|byte| byte.is_ascii_alphanumeric()))
        && text.bytes().all(|byte| byte.is_ascii_alphanumeric() || matches!(byte, b'-' | b'_' | b'.'))
}

/// A DNS subdomain after RFC 1123.
fn is_domain(text: &str) -> bool {
    let is_label = |label: &str| {
        let plain = |byte: u8| byte.is_ascii_lowercase() || byte.is_ascii_digit();
        let ends = [label.bytes().next(), label.bytes().next_back()];
        ends.iter().all(|end| end.is_some_and(plain)) && label.bytes().all(|byte| plain(byte) || byte == b'-')
    };
    text.len() <= DOMAIN_MAX && text.split('.').all(is_label)
}

fn is_a_kubelets(key: &str) -> bool {
    let Some((prefix, _)) = key.split_once('/') else { return true };
    let is_below =
        |domain: &str| prefix == domain || prefix.strip_suffix(domain).is_some_and(|p| p.ends_with('.'));
    let is_kubernetes = is_below("kubernetes.io") || is_below("k8s.io");
    !is_kubernetes
        || is_below("kubelet.kubernetes.io")
        || is_below("node.kubernetes.io")
        || OF_KUBERNETES.contains(&key)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn with(key: &str, value: &str) -> Result<(), String> {
        let one = BTreeMap::from([(Word::cut(key), Word::cut(value))]);
        labels(1, &one).map_err(|error| error.to_string())
    }

    #[test]
    fn labels_are_those_that_a_kubelet_may_give_itself() {
        for (key, value) in [
            ("tier", "web"),
            ("gpu", ""),
            ("example.com/A_b.c", "V-1"),
            ("topology.kubernetes.io/zone", "a"),
            ("node.kubernetes.io/pool", "x"),
            ("x.kubelet.kubernetes.io/y", "z"),
            ("notkubernetes.io/y", "z"),
        ] {
            assert_eq!(with(key, value), Ok(()), "{key}");
        }
        for (key, value, wanted) in [
            ("node-role.kubernetes.io/worker", "", "label the Node instead"),
            ("k8s.io/x", "y", "label the Node instead"),
            ("a --config=/x", "", "no name of a label"),
            ("a", "b --config=/x", "its value is none"),
            ("-a", "", "no name of a label"),
            ("A.example/x", "", "no name of a label"),
            ("a/b/c", "", "no name of a label"),
        ] {
            let refused = with(key, value).unwrap_err();
            assert!(
                refused.contains(wanted) && refused.contains("step 1, the join: labels."),
                "{key}: {refused}"
            );
        }
        assert!(with("a", &"b".repeat(64)).is_err());
    }

    #[test]
    fn a_taint_has_an_effect_of_kubernetes() {
        let taken = taint(0, "gpu=yes:NoSchedule").unwrap();
        assert_eq!((&*taken.key, &*taken.value, &*taken.effect), ("gpu", "yes", "NoSchedule"));
        assert_eq!(taint(0, "example.com/a:NoExecute").unwrap().value, "");
        for text in ["gpu=yes", "gpu=yes:Never", "=yes:NoSchedule", "a b:NoSchedule", "a=b c:NoSchedule", ""]
        {
            let refused = taint(4, text).unwrap_err().to_string();
            assert!(refused.contains("step 4") && refused.contains("PreferNoSchedule"), "{text}: {refused}");
        }
    }

    #[test]
    fn a_server_is_a_host_and_a_port() {
        for text in ["10.0.0.1:6443", "api.example.com:443", "[2001:db8::1]:6443", "API.example:6443"] {
            assert!(server(0, text).is_ok(), "{text}");
        }
        for text in
            ["10.0.0.1", "https://10.0.0.1:6443", "a b:1", ":6443", "a:0", "a:+1", "a:65536", "2001:db8::1:x"]
        {
            let refused = server(2, text).unwrap_err().to_string();
            assert!(refused.contains("step 2") && refused.contains("HOST:PORT"), "{text}: {refused}");
        }
    }
}
