//! The Node: whether it exists, whether it is this machine's, whether an operator or a controller removes it, and whether
//! it is Ready.

use super::facts::{Condition, Facts, Identity, Joined, Node};
use super::found::{Found, known, word};
use super::reading::Reading;
use super::runtime::running;
use crate::sameness::{self, Ids};

const UNINITIALIZED: &str = "node.cloudprovider.kubernetes.io/uninitialized";

pub(super) fn node(facts: &Facts) -> Found {
    if has_not_joined(facts) {
        return match &facts.node {
            Reading::Read(Some(node)) => taken(facts, node).unwrap_or_else(|| {
                Found::warned(
                    "a Node of this name is there, as of this machine, although nothing of a join is on it",
                )
                .lines(identity(node, &facts.identity))
            }),
            _ => Found::skipped("nothing has joined yet"),
        };
    }
    let Some(node) = known!(facts.node) else {
        let name = facts.names.node().unwrap_or_default();
        return Found::failed(format!("the API server has no Node {name}, although the kubelet is let in: it registers only when it starts"))
            .cause("node-object-deleted")
            .advise("restart the kubelet, and see who deleted the Node: the cloud controller does when it does not find the instance")
            .run(facts.restart())
            .run("kubectl get events -A --field-selector involvedObject.kind=Node --sort-by=.lastTimestamp | tail");
    };
    taken(facts, node).unwrap_or_else(|| {
        let boot_id = facts.identity.boot_id.read();
        if boot_id.is_some_and(|id| !node.boot_id.is_empty() && *id != node.boot_id) {
            return Found::warned(
                "the Node tells of an earlier boot: the kubelet has not reported since this one",
            )
            .lines(identity(node, &facts.identity));
        }
        Found::passed(format!("{} is this machine", node.name)).lines(identity(node, &facts.identity))
    })
}

/// The result when another machine has the name.
fn taken(facts: &Facts, node: &Node) -> Option<Found> {
    (is_this_machine(node, &facts.identity) == Some(false)).then(|| {
        Found::failed(format!("another machine is the Node {}", node.name))
            .lines(identity(node, &facts.identity))
            .cause("duplicate-node-name")
            .advise("find out which of the two is wanted before touching either; give the other a name of its own, reset and join it again")
            .run(format!("kubectl get node {} -o wide", word(&node.name)))
    })
}

fn is_this_machine(node: &Node, own: &Identity) -> Option<bool> {
    let own = Ids {
        boot: own.boot_id.read().map(String::as_str),
        system_uuid: own.system_uuid.read().map(String::as_str),
        machine: own.machine_id.read().map(String::as_str),
    };
    let node = Ids {
        boot: Some(&node.boot_id),
        system_uuid: Some(&node.system_uuid),
        machine: Some(&node.machine_id),
    };
    sameness::is_same(node, own)
}

fn identity(node: &Node, own: &Identity) -> Vec<String> {
    [
        ("system UUID", &node.system_uuid, &own.system_uuid),
        ("machine id", &node.machine_id, &own.machine_id),
        ("boot id", &node.boot_id, &own.boot_id),
    ]
    .map(|(what, theirs, ours)| {
        let ours = match ours {
            Reading::Read(ours) => ours.clone(),
            Reading::CannotTell(why) => format!("cannot be told: {why}"),
        };
        format!("{what}: the Node's {theirs}, this machine's {ours}")
    })
    .to_vec()
}

/// The Node, or the result when there is no Node to judge.
fn present(facts: &Facts) -> Result<&Node, Found> {
    match &facts.node {
        Reading::Read(Some(node)) => Ok(node),
        Reading::Read(None) => Err(Found::skipped("there is no Node")),
        Reading::CannotTell(_) if has_not_joined(facts) => Err(Found::skipped("nothing has joined yet")),
        Reading::CannotTell(why) => Err(Found::cannot_tell(why.to_string())),
    }
}

fn has_not_joined(facts: &Facts) -> bool {
    matches!(facts.join.kubeconfig.read(), Some(Joined::Nothing))
}

pub(super) fn leaving(facts: &Facts) -> Found {
    let node = match present(facts) {
        Ok(node) => node,
        Err(found) => return found,
    };
    let sign = node.leaving.iter().map(|sign| format!("on the Node: {sign}"));
    if node.is_deleted {
        return Found::warned("its Node is being deleted").lines(sign);
    }
    if node.leaving.is_some() {
        return Found::warned("it is being taken away on purpose").lines(sign);
    }
    if node.is_cordoned {
        return Found::warned("it is cordoned: nothing new is put on it")
            .advise("when that is over:")
            .run(format!("kubectl uncordon {}", word(&node.name)));
    }
    Found::passed("no controller removes it")
}

pub(super) fn cloud_taint(facts: &Facts) -> Found {
    let node = match present(facts) {
        Ok(node) => node,
        Err(found) => return found,
    };
    if !node.taints.iter().any(|key| key == UNINITIALIZED) {
        return Found::passed("it carries none");
    }
    Found::failed("the cloud controller has not initialised the Node: nothing is put on it")
        .line(format!("taint {UNINITIALIZED}"))
        .cause("cloud-taint-not-removed")
        .advise("see whether the cloud controller runs, finds the instance by its name or provider id, and what it says")
        .run("kubectl -n kube-system logs -l 'k8s-app in (cloud-controller-manager, openstack-cloud-controller-manager)' --tail 50")
}

pub(super) fn pod_network(facts: &Facts) -> Found {
    if matches!(facts.node.read(), Some(None)) || has_not_joined(facts) {
        return Found::skipped("there is no Node yet: a pod network comes after the join");
    }
    let files = facts.cni.read().map_or(&[][..], Vec::as_slice);
    let lines = || {
        files.iter().map(|file| format!("configuration {file}")).chain(
            running(facts).and_then(|cri| cri.network.as_ref()).map(|network| match network {
                Ok(()) => "the runtime says that its network is ready".to_owned(),
                Err(why) => format!("the runtime says: {why}"),
            }),
        )
    };
    let mend = |says: &str| {
        Found::failed(says)
            .lines(lines())
            .cause("cni-not-installed")
            .advise("install the cluster's pod network, or see why its pod on this node does not run")
            .run(format!(
                "kubectl get pods -A -o wide --field-selector spec.nodeName={}",
                word(&facts.names.node().unwrap_or_default())
            ))
            .run("ls -l /etc/cni/net.d /opt/cni/bin")
    };
    match (running(facts).and_then(|cri| cri.network.as_ref()), &facts.cni) {
        (Some(Ok(())), _) => Found::passed("the runtime says that it is ready").lines(lines()),
        (Some(Err(_)), _) => mend("the runtime has no pod network"),
        (None, Reading::Read(files)) if files.is_empty() => {
            mend("no pod network is configured in /etc/cni/net.d")
        }
        (None, Reading::Read(_)) => Found::passed("one is configured").lines(lines()),
        (None, Reading::CannotTell(why)) => Found::cannot_tell(why.to_string()),
    }
}

pub(super) fn ready(facts: &Facts) -> Found {
    let node = match present(facts) {
        Ok(node) => node,
        Err(found) => return found,
    };
    let line = |one: &Condition| format!("{} is {}: {} {}", one.kind, one.status, one.reason, one.message);
    let is_pressure =
        |one: &&Condition| one.kind != "Ready" && one.status == "True" && one.kind.ends_with("Pressure");
    let pressures: Vec<&Condition> = node.conditions.iter().filter(is_pressure).collect();
    let lines = || pressures.iter().map(|one| line(one));
    let Some(ready) = node.conditions.iter().find(|one| one.kind == "Ready") else {
        return Found::cannot_tell("the Node says nothing of being Ready");
    };
    let mend = |says: String, cause| {
        Found::failed(says)
            .line(line(ready))
            .lines(lines())
            .cause(cause)
            .advise("its words say why")
            .run(facts.last_words(50))
    };
    match ready.status.as_str() {
        "True" => match pressures.first() {
            Some(first) if first.kind == "DiskPressure" => {
                Found::warned("the Node is Ready and short of disk: pods are evicted")
                    .lines(lines())
                    .cause("disk-failure")
            }
            Some(first) => Found::warned(format!("the Node is Ready and has {}", first.kind)).lines(lines()),
            None => Found::passed("the Node is Ready").line(line(ready)),
        },
        "Unknown" => mend("the kubelet has stopped reporting".to_owned(), "kubelet-silent"),
        _ if ready.message.contains("cni plugin not initialized")
            || ready.message.contains("NetworkPluginNotReady") =>
        {
            mend("the Node is not Ready: it has no pod network".to_owned(), "cni-not-installed")
        }
        _ => mend("the Node is not Ready".to_owned(), "node-not-ready"),
    }
}
