//! The container runtime: whether it runs, whether the kubelet uses its socket, and whether both use the same cgroup
//! driver.

use super::facts::{ConfigSeen, Cri, Facts, Joined, Socket, SocketSeen};
use super::found::{Found, known, word};
use super::reading::Reading;
use super::supervised;

pub(super) fn runtime(facts: &Facts) -> Found {
    let sockets = &facts.runtime.sockets;
    if let Some(own) = &facts.supervised {
        // What systemd reports about its units counts more than the usual paths of their files.
        let is_missing = match &facts.kubelet.unit {
            Reading::Read(unit) => unit.is_none(),
            Reading::CannotTell(_) => !own.has_unit,
        };
        if is_missing {
            return supervised::not_installed(own);
        }
        let is_absent = |socket: &Socket| matches!(socket.seen, Reading::Read(SocketSeen::Absent));
        let is_fresh = matches!(facts.join.kubeconfig, Reading::Read(Joined::Nothing));
        if is_fresh && sockets.iter().all(is_absent) {
            return Found::passed(format!("{} brings its own, which runs once its unit does", own.name));
        }
    }
    let lines = || sockets.iter().map(|socket| format!("{}: {}", socket.path, said(&socket.seen)));
    let mend = |found: Found| {
        let found =
            found.lines(lines()).advise("start the runtime, and see what it says when it does not stay");
        match &facts.supervised {
            Some(own) => found
                .run(format!("systemctl status {} --no-pager; {}", own.unit, facts.last_words(30)))
                .run(format!("tail -n 30 {}/agent/containerd/containerd.log", word(&own.folder))),
            None => found.run(
                "systemctl status containerd crio --no-pager; journalctl -u containerd -u crio -n 30 --no-pager",
            ),
        }
    };
    let running: Vec<(&Socket, &Cri)> = sockets
        .iter()
        .filter_map(|socket| match socket.seen.read() {
            Some(SocketSeen::Cri(cri)) => Some((socket, cri)),
            _ => None,
        })
        .collect();
    if let [(first, cri), rest @ ..] = running.as_slice() {
        if let Some(Err(why)) = &cri.ready {
            return mend(
                Found::failed(format!("{} says that it is not ready: {why}", cri.version))
                    .cause("container-runtime-down"),
            );
        }
        return match rest {
            [] => Found::passed(format!("{} at {}", cri.version, first.path)),
            _ => Found::warned("several runtimes are there and none is named: kubeadm refuses to choose")
                .lines(lines())
                .cause("multiple-cri-sockets")
                .advise("name one: --cri-socket, or nodeRegistration.criSocket"),
        };
    }
    let has = |wanted: fn(&SocketSeen) -> bool| {
        sockets.iter().find(|socket| socket.seen.read().is_some_and(wanted))
    };
    if let Some(socket) = has(|seen| matches!(seen, SocketSeen::NotCri(_))) {
        return Found::failed(format!("what answers at {} does not offer what a kubelet asks for (CRI v1)", socket.path))
            .lines(lines())
            .cause("cri-api-unimplemented")
            .advise("let the runtime offer it: take \"cri\" out of disabled_plugins in its configuration, or install a newer one, and restart it")
            .run("grep -n disabled_plugins /etc/containerd/config.toml")
            .run("containerd config default | sudo tee /etc/containerd/config.toml >/dev/null; sudo systemctl restart containerd");
    }
    if let Some(socket) = has(|seen| matches!(seen, SocketSeen::Refused(_))) {
        return mend(
            Found::failed(format!("no runtime runs: {} is there and takes no connection", socket.path))
                .cause("container-runtime-down"),
        );
    }
    if let Some(socket) = has(|seen| matches!(seen, SocketSeen::Silent)) {
        return mend(
            Found::failed(format!(
                "the runtime at {} hangs: it takes connections and does not answer",
                socket.path
            ))
            .cause("container-runtime-down"),
        );
    }
    match sockets.iter().find_map(|socket| super::found::why(&socket.seen)) {
        Some(why) => Found::cannot_tell(why).lines(lines()),
        None => {
            mend(Found::failed("no runtime runs: its socket is not there").cause("container-runtime-down"))
        }
    }
}

fn said(seen: &Reading<SocketSeen>) -> String {
    match seen {
        Reading::CannotTell(why) => format!("cannot be told: {why}"),
        Reading::Read(SocketSeen::Absent) => "not there".to_owned(),
        Reading::Read(SocketSeen::Refused(why)) => format!("takes no connection: {why}"),
        Reading::Read(SocketSeen::Silent) => "does not answer in time".to_owned(),
        Reading::Read(SocketSeen::NotCri(words)) => format!("answers: {words}"),
        Reading::Read(SocketSeen::Cri(cri)) => cri.version.clone(),
    }
}

/// The runtime that answers.
pub(super) fn running(facts: &Facts) -> Option<&Cri> {
    facts.runtime.sockets.iter().find_map(|socket| match socket.seen.read() {
        Some(SocketSeen::Cri(cri)) => Some(cri),
        _ => None,
    })
}

pub(super) fn cgroup_driver(facts: &Facts) -> Found {
    let config = match known!(facts.kubelet.config) {
        ConfigSeen::There(config) => config,
        ConfigSeen::Absent => return Found::skipped("the kubelet has no configuration yet"),
        ConfigSeen::Broken(_) => return Found::skipped("the kubelet's configuration cannot be read"),
    };
    let Some(driver) = running(facts).and_then(|cri| cri.cgroup_driver.as_deref()) else {
        return Found::cannot_tell("the runtime does not say which it uses");
    };
    let line = format!("the kubelet: {}; the runtime: {driver}", config.cgroup_driver);
    if driver == config.cgroup_driver {
        return Found::passed("kubelet and runtime use the same").line(line);
    }
    // A kubelet since 1.28 asks the runtime for its driver and uses it; an older kubelet does not.
    Found::warned("the kubelet is told another driver than the runtime uses: an older one then kills its own pods")
        .line(line)
        .cause("cgroup-driver-mismatch")
        .advise(format!("let both use one: cgroupDriver: {driver} in /var/lib/kubelet/config.yaml, or SystemdCgroup of the runtime"))
}
