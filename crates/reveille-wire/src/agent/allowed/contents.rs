//! What a plan's file may hold, where the program that reads it does more than its author wrote down.
//!
//! ```text
//!  /etc/sysctl.d/*                   the kernel's settings that name no program
//!  /etc/rancher/k3s/registries.yaml  hosts and plain words: k3s writes them into containerd's configuration as they are, and
//!                                    removes the folder that is called as a mirror
//!  /etc/cni/net.d/*.conflist         plugins of the network that start no further program and write where they always do
//! ```
//!
//! The sources are containerd's template and `cleanContainerdHosts` of k3s (`pkg/agent/templates/templates_linux.go`,
//! `pkg/agent/containerd/config.go`), and the reference plugins of CNI (`containernetworking/plugins`). A file elsewhere is not
//! looked into: no place is taken whose files name programs.

use serde_json::{Map, Value};

use super::NotAllowed;

/// The folder of the kernel's settings.
const SETTINGS: &str = "/etc/sysctl.d/";
/// The registries of k3s.
const REGISTRIES: &str = "/etc/rancher/k3s/registries.yaml";
/// The folder of the networks.
pub(super) const NETWORKS: &str = "/etc/cni/net.d";
/// What a runtime reads there. Plugins look for their kubeconfig beside it.
pub(super) const OF_NETWORKS: [&str; 3] = [".conf", ".conflist", ".json"];

/// Settings below `kernel` that nodes need and that name no program. `core_pattern`, `modprobe` and others name one.
const OF_KERNEL: [&str; 9] = [
    "kernel.dmesg_restrict",
    "kernel.keys.maxbytes",
    "kernel.keys.maxkeys",
    "kernel.keys.root_maxbytes",
    "kernel.keys.root_maxkeys",
    "kernel.panic",
    "kernel.panic_on_oops",
    "kernel.pid_max",
    "kernel.threads-max",
];

/// Plugins that read no credential and start no program but those of their own list. Calico, Multus, Whereabouts and others read
/// a kubeconfig, which names a program that root runs; their own installers write their files.
const PLUGINS: [&str; 17] = [
    "bandwidth",
    "bridge",
    "dhcp",
    "dummy",
    "firewall",
    "host-device",
    "host-local",
    "ipvlan",
    "loopback",
    "macvlan",
    "portmap",
    "ptp",
    "sbr",
    "static",
    "tuning",
    "vlan",
    "vrf",
];

/// Checks what a file at this path holds.
///
/// # Errors
///
/// It holds something that a plan may not write there.
pub(super) fn contents(file: usize, path: &str, content: &str) -> Result<(), NotAllowed> {
    let refused = |what: String| NotAllowed::Content { file, path: path.to_owned(), what };
    if path.starts_with(SETTINGS) {
        settings(file, path, content)
    } else if path == REGISTRIES {
        registries(content).map_err(refused)
    } else if path.starts_with(NETWORKS) {
        let read = serde_json::from_str(content).map_err(|_| "it is no JSON".to_owned());
        read.and_then(|network: Value| network_of(&network)).map_err(refused)
    } else {
        Ok(())
    }
}

fn settings(file: usize, path: &str, content: &str) -> Result<(), NotAllowed> {
    let lines =
        content.lines().map(str::trim).filter(|line| !line.is_empty() && !line.starts_with(['#', ';']));
    for key in lines.map(|line| unmarked(line.split_once('=').map_or(line, |(key, _)| key))) {
        if !is_setting(key) {
            return Err(NotAllowed::Setting { file, path: path.to_owned(), key: key.to_owned() });
        }
    }
    Ok(())
}

/// The key without the dash that marks a setting that may fail.
fn unmarked(key: &str) -> &str {
    let key = key.trim();
    key.strip_prefix('-').unwrap_or(key).trim()
}

/// Slashes or dots may separate the parts, and the first of them decides what the other one means: `eth0.100` is one name
/// behind slashes. No part between two separators may be empty, so that no name is `.` or `..` in any reading. Patterns are
/// allowed only below `net`, within one name and without a leading dot; brackets, braces and backslashes can stand for dots.
fn is_setting(key: &str) -> bool {
    let parts: Vec<&str> = key.split(['/', '.']).collect();
    let is_name = |c: char| c.is_ascii_alphanumeric() || matches!(c, '_' | '-');
    let are_names = |wild: &[char]| {
        parts.iter().all(|part| !part.is_empty() && part.chars().all(|c| is_name(c) || wild.contains(&c)))
    };
    match &parts[..] {
        ["net", _, ..] => are_names(&['*', '?']),
        ["fs", "binfmt_misc", ..] => false,
        ["fs" | "vm" | "user", _, ..] => are_names(&[]),
        ["kernel", ..] => OF_KERNEL.contains(&&*parts.join(".")),
        _ => false,
    }
}

/// The registries of k3s: two maps by host, and below them words that stay within one quoted line.
fn registries(content: &str) -> Result<(), String> {
    let read: Map<String, Value> =
        crate::yaml::plan(content).map_err(|_| "it is no map in YAML, or has aliases".to_owned())?;
    for (part, of_hosts) in &read {
        if !matches!(part.as_str(), "mirrors" | "configs") {
            return Err("a field is neither mirrors nor configs".to_owned());
        }
        let hosts = match of_hosts {
            Value::Null => continue,
            Value::Object(hosts) => hosts,
            _ => return Err(format!("{part} is no map")),
        };
        for (host, of_host) in hosts {
            if !is_host(host) {
                return Err(format!("{part}: a name is neither HOST, HOST:PORT nor *"));
            }
            if !are_plain(of_host) {
                return Err(format!(
                    "{part}.{host}: a word holds a quote, a backslash or a control character"
                ));
            }
        }
    }
    Ok(())
}

fn is_host(text: &str) -> bool {
    let (host, port) = text.split_once(':').unwrap_or((text, "0"));
    let is_label = |label: &str| {
        !label.is_empty()
            && label.bytes().all(|byte| byte.is_ascii_alphanumeric() || matches!(byte, b'-' | b'_'))
    };
    text == "*" || host.split('.').all(is_label) && port.parse::<u16>().is_ok()
}

/// Every word of it, keys too, stays one quoted word wherever it is written.
fn are_plain(value: &Value) -> bool {
    let is_plain = |text: &str| !text.chars().any(|c| c.is_control() || matches!(c, '"' | '\'' | '`' | '\\'));
    match value {
        Value::Null | Value::Bool(_) | Value::Number(_) => true,
        Value::String(text) => is_plain(text),
        Value::Array(all) => all.iter().all(are_plain),
        Value::Object(all) => all.iter().all(|(key, value)| is_plain(key) && are_plain(value)),
    }
}

/// Plugins read the names of fields in any case.
fn network_of(value: &Value) -> Result<(), String> {
    match value {
        Value::Object(fields) => fields.iter().try_for_each(|(key, value)| {
            match key.to_ascii_lowercase().as_str() {
                "type" if value.as_str().is_none_or(|plugin| !PLUGINS.contains(&plugin)) => {
                    return Err(format!("type: a plan takes the plugins {}", PLUGINS.join(", ")));
                }
                "datadir" => return Err(format!("{key}: a plugin writes there as root; leave it out")),
                _ => {}
            }
            network_of(value)
        }),
        Value::Array(all) => all.iter().try_for_each(network_of),
        _ => Ok(()),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn holds(path: &str, content: &str) -> bool {
        contents(0, path, content).is_ok()
    }

    #[test]
    fn registries_of_a_plan_are_hosts_and_plain_words() {
        for taken in [
            "",
            "mirrors:\n",
            "mirrors:\n  docker.io:\n    endpoint: [\"https://mirror.example:5000/v2\"]\n  \"*\":\n",
            "mirrors:\n  docker.io:\n    rewrite: {\"^rancher/(.*)\": \"prod/$1\"}\n",
            "configs:\n  registry.example:5000:\n    auth: {username: a, password: \"p:w! #1\"}\n    tls: {ca_file: /etc/ssl/ca.pem}\n",
        ] {
            assert!(holds(REGISTRIES, taken), "{taken}");
        }
        for refused in [
            "mirrors:\n  ..:\n",
            "mirrors:\n  a/../../b:\n",
            "mirrors:\n  registry.example:port:\n",
            "configs:\n  \"x]\\ny\": {}\n",
            "configs:\n  x: {auth: {username: \"a\\\"]\\n[b]\"}}\n",
            "mirrors:\n  x: {rewrite: {\"a\\\"\": b}}\n",
            "plugins: {x: y}\n",
            "mirrors: [docker.io]\n",
            "- mirrors\n",
        ] {
            assert!(!holds(REGISTRIES, refused), "{refused}");
        }
    }

    #[test]
    fn plan_network_with_plugin_that_runs_programs_is_refused() {
        let path = "/etc/cni/net.d/10-pods.conflist";
        let list = |plugin: &str| {
            format!(
                "{{\"cniVersion\": \"1.0.0\", \"name\": \"pods\", \"plugins\": [{plugin}, {{\"type\": \"portmap\"}}]}}"
            )
        };
        let bridge = "{\"type\": \"bridge\", \"ipam\": {\"type\": \"host-local\", \"ranges\": [[{\"subnet\": \"10.1.0.0/24\"}]]}}";
        assert!(holds(path, &list(bridge)));
        for refused in [
            "{\"type\": \"calico\", \"kubernetes\": {\"kubeconfig\": \"/etc/kubernetes/cloud/x\"}}",
            "{\"Type\": \"multus\"}",
            "{\"type\": \"bridge\", \"type\": [\"calico\"]}",
            "{\"type\": \"bridge\", \"ipam\": {\"type\": \"whereabouts\"}}",
            "{\"type\": \"bridge\", \"ipam\": {\"type\": \"host-local\", \"dataDir\": \"/etc\"}}",
            "{\"type\": \"bridge\", \"ipam\": {\"type\": \"host-local\", \"DATADIR\": \"/etc\"}}",
            "{\"type\": \"../../sh\"}",
        ] {
            assert!(!holds(path, &list(refused)), "{refused}");
        }
        assert!(!holds(path, "plugins: []"));
    }

    #[test]
    fn plan_sysctl_outside_its_part_is_refused_in_every_spelling() {
        for key in [
            "net.bridge.bridge-nf-call-iptables",
            "net/bridge/bridge-nf-call-ip6tables",
            "-net.ipv4.ip_forward",
            "- net.ipv4.ip_forward",
            "net/ipv4/conf/eth0.100/rp_filter",
            "net.ipv4.conf.eth0/100.rp_filter",
            "net.ipv4.conf.lxc*.rp_filter",
            "-net/ipv4/conf/*/rp_filter",
            "net.ipv4.neigh.default.gc_thresh3",
            "net.netfilter.nf_conntrack_max",
            "vm.max_map_count",
            "vm/overcommit_memory",
            "fs.inotify.max_user_instances",
            "fs.file-max",
            "user.max_user_namespaces",
            "kernel.panic_on_oops",
            "kernel/keys/root_maxkeys",
        ] {
            assert!(is_setting(unmarked(key)), "{key}");
        }
        for key in [
            "fs//binfmt_misc/register",
            "fs/./binfmt_misc/register",
            "fs/binfmt_misc/register",
            "fs/{binfmt_misc,x}/register",
            "net/../kernel/core_pattern",
            "vm/../kernel/core_pattern",
            "net/../kern*/core_pattern",
            // A first dot makes sysctl read every dot as a slash, and every slash as a dot.
            "net.//.kernel.core_pattern",
            "net/.*/kernel/core_pattern",
            "net/[.][.]/kernel/core_pattern",
            "net/{.,x}{.,y}/kernel/core_pattern",
            "net/\\.\\.\\/kernel/core_pattern",
            "net/x/*/../../kernel/core_pattern",
            "{net,kernel}/core_pattern",
            "*/core_pattern",
            "kern*/core_pattern",
            "kernel/p?nic",
            "/net/ipv4/ip_forward",
            "net/ipv4/ip_forward/",
            "net",
            "net.",
            ".net.x",
            "net ipv4",
            "--kernel.core_pattern",
            "vm.*",
            "",
        ] {
            assert!(!is_setting(unmarked(key)), "{key}");
        }
    }
}
