//! The kubelet: its configuration, the cluster of its leftover files, its certificate, its process, and its certificate
//! requests.

use super::facts::{ClientCertificate, ConfigSeen, Facts, Joined, RequestState, Unit};
use super::found::{Found, known, seconds, why, word};
use super::reading::Reading;
use super::supervised;
use super::trust::day;

/// A kubelet that systemd restarted this often without staying up exits by itself.
const RESTARTS_MANY: u32 = 3;
/// The kubelet renews its certificate long before this; a kubelet whose certificate is so near its end no longer renews
/// it.
const RENEWED_BEFORE_S: i64 = 24 * 3600;
const KUBELET_SIGNER: &str = "kubernetes.io/kube-apiserver-client-kubelet";

pub(super) fn config(facts: &Facts) -> Found {
    match known!(facts.kubelet.config) {
        ConfigSeen::There(_) => Found::passed("it can be read"),
        ConfigSeen::Absent => Found::passed(match &facts.supervised {
            Some(own) => format!("{} tells its kubelet itself", own.name),
            None => "there is none yet: kubeadm writes it when it joins".to_owned(),
        }),
        ConfigSeen::Broken(wrong) => Found::failed("the kubelet's configuration cannot be read")
            .line(wrong.clone())
            .cause("kubelet-config-invalid")
            .advise("correct the line, or write it again from the cluster's")
            .run("sudo kubeadm upgrade node phase kubelet-config"),
    }
}

/// The check compares identities: that files exist says nothing, the cluster that they name does.
pub(super) fn leftovers(facts: &Facts) -> Found {
    let leads = facts.join.control_plane.read().map_or(&[][..], Vec::as_slice);
    let leading = || leads.iter().map(|path| format!("a control plane runs here: {path}"));
    let mend = |found: Found| {
        let found = found.lines(leading()).cause("leftover-state");
        if let Reading::CannotTell(why) = &facts.join.control_plane {
            found
                .line(format!("whether a control plane runs here cannot be told: {why}"))
                .advise("look at that file first, and do not reset this machine before you know that it is no control plane")
        } else if leads.is_empty()
            && let Some(own) = &facts.supervised
        {
            found
                .advise("when nothing of the other join is wanted any more, stop the agent and take its certificates away; a server's folder is never among them")
                .run(format!(
                    "sudo systemctl stop {}; sudo rm -f {1}/agent/*.kubeconfig {1}/agent/*.crt {1}/agent/*.key",
                    own.unit,
                    word(&own.folder)
                ))
        } else if leads.is_empty() {
            found
                .advise("when nothing of the other join is wanted any more, take it away and join again")
                .run("sudo kubeadm reset --force; sudo rm -rf /etc/cni/net.d")
        } else {
            found.advise("a control plane, or a member of etcd, is on this machine: do not reset it before you know that its cluster can do without")
        }
    };
    match known!(facts.join.kubeconfig) {
        Joined::Nothing if leads.is_empty() => Found::passed("nothing of a join is there"),
        Joined::Nothing => Found::passed("nothing of a worker's join is there").lines(leading()),
        Joined::Broken(wrong) => mend(
            Found::failed(match &facts.supervised {
                Some(_) => "what an earlier join left cannot be used",
                None => "a join that broke off left its files: kubeadm refuses to join over them",
            })
            .line(wrong.clone()),
        ),
        Joined::To { server, pins } => {
            let aim = facts.aim.read().and_then(Option::as_ref);
            let of = format!("{} is of {server}, {}", facts.kubeconfig(), pins.join(", "));
            match aim {
                Some(aim)
                    if !aim.pins.is_empty()
                        && !pins.is_empty()
                        && !pins.iter().any(|pin| aim.pins.contains(pin)) =>
                {
                    mend(Found::failed("this machine is joined to another cluster")).line(of).line(format!(
                        "wanted: {}, after {}",
                        aim.pins.join(", "),
                        aim.told_by
                    ))
                }
                Some(_) => Found::passed("what is there is of this cluster").line(of).lines(leading()),
                None => Found::passed("what is there is of one cluster").line(of).lines(leading()),
            }
        }
    }
}

/// The advice for a kubelet that has no credentials.
fn rejoin(facts: &Facts, found: Found, words: &str) -> Found {
    if let Some(own) = &facts.supervised {
        return supervised::fetch_again(own, found);
    }
    found
        .advise(words)
        .run("sudo kubeadm token create --print-join-command   # on a control plane")
        .run("sudo kubeadm reset --force; sudo kubeadm join …")
}

pub(super) fn certificate(facts: &Facts) -> Found {
    if let Some(Joined::Nothing) = facts.join.kubeconfig.read() {
        return Found::skipped("nothing has joined yet");
    }
    let Some(certificate) = known!(facts.kubelet.certificate) else {
        return rejoin(
            facts,
            Found::failed("the kubelet's kubeconfig names a certificate that is not there")
                .cause("kubelet-credentials-missing"),
            "join again with a new token: there is nothing to renew it with",
        );
    };
    let ClientCertificate { path, common_name, not_before_s, not_after_s, .. } = certificate;
    let line = format!("{path}: {common_name}, {} to {}", day(*not_before_s), day(*not_after_s));
    if !certificate.has_key {
        return rejoin(
            facts,
            Found::failed("its key is not there").line(line).cause("kubelet-credentials-missing"),
            "join again with a new token",
        );
    }
    if *not_after_s <= facts.now_s {
        let ago = seconds(facts.now_s - not_after_s);
        return rejoin(
            facts,
            Found::failed(format!(
                "the kubelet's certificate ran out {ago} ago: the API server takes it for a stranger"
            ))
            .line(line)
            .cause("kubelet-client-cert-expired"),
            "join again with a new token: a certificate that has run out cannot renew itself",
        );
    }
    if *not_before_s > facts.now_s {
        return Found::failed(format!(
            "the kubelet's certificate is valid only in {}",
            seconds(not_before_s - facts.now_s)
        ))
        .line(line)
        .cause("clock-skew")
        .advise("set the clock right");
    }
    whose(facts, certificate, line)
}

/// A certificate within its dates: whose Node it names, which CA signed it, and whether the API server accepts it.
fn whose(facts: &Facts, certificate: &ClientCertificate, line: String) -> Found {
    let ClientCertificate { common_name, not_after_s, .. } = certificate;
    if let (Some(name), Some(of)) = (facts.names.node(), common_name.strip_prefix("system:node:"))
        && name != of
    {
        return Found::failed(format!("the kubelet's certificate is of the Node {of}, and the kubelet calls itself {name}: it may touch neither"))
            .line(line)
            .cause("node-identity-mismatch")
            .advise(format!("give the machine its name back, or take --hostname-override away; to make it {name}, reset and join again"))
            .run("hostname; grep -rs hostname-override /var/lib/kubelet/kubeadm-flags.env /etc/default/kubelet /etc/sysconfig/kubelet");
    }
    if let Reading::Read(false) = certificate.is_of_authority {
        return rejoin(
            facts,
            Found::failed("the kubelet's certificate was not signed by the authority of its kubeconfig")
                .line(line)
                .cause("ca-untrusted"),
            "the cluster's authority was replaced: join again",
        );
    }
    match &certificate.is_accepted {
        Reading::Read(true) if not_after_s - facts.now_s < RENEWED_BEFORE_S => Found::warned(format!(
            "it runs out in {} and has not been renewed",
            seconds(not_after_s - facts.now_s)
        ))
        .line(line),
        Reading::Read(true) => Found::passed("the API server takes it").line(line),
        Reading::Read(false) => rejoin(
            facts,
            Found::failed(
                "the API server does not take the kubelet's certificate, although its dates are right (401)",
            )
            .line(line),
            "the cluster's authority was replaced, or it is another cluster under the same address",
        ),
        Reading::CannotTell(why) => Found::passed("it is in its dates, and has this Node's name")
            .line(line)
            .line(format!("whether it is taken cannot be told: {why}")),
    }
}

pub(super) fn service(facts: &Facts) -> Found {
    let kubelet = &facts.kubelet;
    let is_well = matches!(kubelet.health, Reading::Read((200, _)));
    let runs = is_well || matches!(kubelet.process, Reading::Read(Some(_)));
    let is_fresh = matches!(facts.join.kubeconfig, Reading::Read(Joined::Nothing))
        && matches!(kubelet.config, Reading::Read(ConfigSeen::Absent));
    if is_fresh && !runs {
        return Found::skipped(match &facts.supervised {
            Some(own) => format!("nothing has joined yet: the kubelet is there when {} runs", own.unit),
            None => "nothing has joined yet: kubeadm starts the kubelet when it joins".to_owned(),
        });
    }
    let unit = kubelet.unit.read().and_then(Option::as_ref);
    let found =
        if is_well { well(facts, unit) } else { unwell(facts, kubelet.health.read().is_some(), unit) };
    let process = kubelet.process.read().copied().flatten().map(|pid| format!("process {pid}"));
    let health = kubelet.health.read().map(|(status, said)| format!("its healthz answers {status}: {said}"));
    found.lines(unit.map(|unit| line_of(facts, unit))).lines(process).lines(health)
}

fn well(facts: &Facts, unit: Option<&Unit>) -> Found {
    match unit {
        Some(Unit { is_enabled: Some(false), .. }) => {
            Found::warned("the kubelet runs, and does not start at the next boot")
                .advise("enable it")
                .run(format!("sudo systemctl enable {}", facts.unit()))
        }
        _ => Found::passed("the kubelet runs and says that it is well"),
    }
}

fn unwell(facts: &Facts, answers: bool, unit: Option<&Unit>) -> Found {
    let mend = |says: String| {
        Found::failed(says)
            .cause("kubelet-silent")
            .advise("its last words say why")
            .run(format!("systemctl status {} --no-pager; {}", facts.unit(), facts.last_words(30)))
            .run(facts.restart())
    };
    let process = &facts.kubelet.process;
    let restarts = unit.and_then(|unit| unit.restarts).unwrap_or(0);
    let waits = unit.is_some_and(|unit| unit.sub_state == "auto-restart" || unit.state == "failed");
    if waits && restarts >= RESTARTS_MANY {
        return mend(format!("the kubelet ends by itself: it was started again {restarts} times"));
    }
    if answers {
        return mend("the kubelet runs and says that it is not well".to_owned());
    }
    match (process, unit) {
        (Reading::Read(Some(_)), _) => Found::warned("the kubelet runs and does not say how it is"),
        (Reading::Read(None), _) => mend("the kubelet does not run".to_owned()),
        (_, Some(unit)) if unit.state == "active" => Found::passed("its unit is active"),
        (_, Some(_)) => mend("the kubelet does not run".to_owned()),
        (Reading::CannotTell(why), None) => Found::cannot_tell(why.to_string()),
    }
}

fn line_of(facts: &Facts, unit: &Unit) -> String {
    let Unit { state, sub_state, restarts, exit_code, .. } = unit;
    let restarts = restarts.map_or_else(String::new, |restarts| format!(", started again {restarts} times"));
    let code = exit_code
        .filter(|code| *code != 0)
        .map_or_else(String::new, |code| format!(", ended last with {code}"));
    format!("unit {}: {state} ({sub_state}){restarts}{code}", facts.unit())
}

pub(super) fn request(facts: &Facts) -> Found {
    if let Some(Some(_)) = facts.kubelet.certificate.read() {
        return Found::passed("the kubelet has its certificate");
    }
    if why(&facts.kubelet.certificate).is_some() {
        return Found::cannot_tell("whether the kubelet has its certificate could not be read");
    }
    if let Some(own) = &facts.supervised {
        return Found::skipped(format!(
            "{} asks its supervisor for it, and that needs no approval",
            own.name
        ));
    }
    let requests = known!(facts.requests);
    let lines = || {
        requests
            .iter()
            .map(|request| format!("{}: {:?}, signer {}", request.name, request.state, request.signer))
    };
    let of = |state| {
        requests.iter().rev().find(|request| request.signer == KUBELET_SIGNER && request.state == state)
    };
    if let Some(request) = of(RequestState::Refused) {
        return Found::failed(format!("its request {} was denied", request.name))
            .lines(lines())
            .cause("csr-not-approved")
            .advise("find out who denied it, and why")
            .run(format!("kubectl get csr {} -o yaml", word(&request.name)));
    }
    if let Some(request) = of(RequestState::Pending) {
        return Found::failed(format!("its request {} waits for approval", request.name))
            .lines(lines())
            .cause("csr-not-approved")
            .advise("approve it, and see why the controller manager did not: its approver, or the group of the token")
            .run(format!("kubectl certificate approve {}", word(&request.name)));
    }
    match of(RequestState::Approved) {
        Some(request) => {
            Found::warned(format!("its request {} is approved and not signed yet", request.name))
                .lines(lines())
        }
        None => Found::skipped("it has asked for no certificate yet"),
    }
}
