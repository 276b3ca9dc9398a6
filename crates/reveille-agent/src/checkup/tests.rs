//! Each test breaks one fact: its check is the first that fails, and the checks that rest on it are skipped.

use std::collections::BTreeSet;

use reveille_core::model::hosting::{Notice, NoticeKind};

use super::facts::*;
use super::fault_fixtures::{aim, cert, fault_fixtures, node};
use super::reading::Reading::{self, Read};
use super::server::*;
use super::sound::{NOW_S, certificate, fresh, joined};
use super::*;

#[test]
fn a_sound_machine_passes_every_check_that_applies() {
    for (facts, skipped) in [(fresh(), 9), (joined(), 0)] {
        let checks = checkup(&facts);
        let odd: Vec<String> = checks
            .iter()
            .filter(|check| !matches!(check.result, Result::Passed | Result::Skipped))
            .map(ToString::to_string)
            .collect();
        assert_eq!(odd, [""; 0]);
        let left: Vec<&str> =
            checks.iter().filter(|check| check.result == Result::Skipped).map(|check| check.id).collect();
        assert_eq!(left.len(), skipped, "{left:?}");
    }
}

#[test]
fn single_fault_fails_first_and_skips_dependent_checks() {
    for (what, mut facts, fault, id, cause) in fault_fixtures() {
        fault(&mut facts);
        let checks = checkup(&facts);
        let failed = first_failed(&checks).unwrap_or_else(|| panic!("{what}: nothing failed"));
        assert_eq!((failed.id, failed.cause), (id, cause), "{what}: {failed}");
        assert!(failed.advice.as_ref().is_some_and(|advice| !advice.words.is_empty()), "{what}: what to do?");
        assert!(!failed.says.is_empty() && !failed.says.ends_with('.'), "{what}: a clause");
        let others: Vec<String> = checks
            .iter()
            .filter(|check| check.result == Result::Failed && check.id != id)
            .map(ToString::to_string)
            .collect();
        assert_eq!(others, [""; 0], "{what}: one thing was spoiled");
        for check in checks.iter().filter(|check| check.rests_on.contains(&id)) {
            assert_eq!(check.result, Result::Skipped, "{what}: {check}");
            assert_eq!(check.says, format!("needs {id}, which failed"));
        }
    }
}

#[test]
fn a_fact_that_was_not_read_is_never_one_that_is_not_so() {
    let why = || "permission denied".to_owned();
    let mut facts = joined();
    facts.aim = Reading::cannot_tell(why());
    facts.is_synchronised = Reading::cannot_tell(why());
    facts.names.host = Reading::cannot_tell(why());
    facts.network.routes = Reading::cannot_tell(why());
    facts.servers.clear();
    facts.runtime.sockets[0].seen = Reading::cannot_tell(why());
    facts.kernel = Kernel {
        forwards: Reading::cannot_tell(why()),
        bridges_filter: Reading::cannot_tell(why()),
        has_overlay: Reading::cannot_tell(why()),
        cgroups: Reading::cannot_tell(why()),
    };
    facts.swap = Reading::cannot_tell(why());
    facts.ports[0].holder = Reading::cannot_tell(why());
    facts.join = Join { kubeconfig: Reading::cannot_tell(why()), control_plane: Reading::cannot_tell(why()) };
    facts.disks[0].room = Reading::cannot_tell(why());
    facts.memory = Reading::cannot_tell(why());
    facts.announced = Reading::cannot_tell(why());
    facts.kubelet = Kubelet {
        config: Reading::cannot_tell(why()),
        unit: Reading::cannot_tell(why()),
        process: Reading::cannot_tell(why()),
        health: Reading::cannot_tell(why()),
        certificate: Reading::cannot_tell(why()),
    };
    facts.requests = Reading::cannot_tell(why());
    facts.node = Reading::cannot_tell(why());
    facts.cni = Reading::cannot_tell(why());
    let odd: Vec<String> = checkup(&facts)
        .iter()
        .filter(|check| !matches!(check.result, Result::CannotTell | Result::Skipped))
        .map(ToString::to_string)
        .collect();
    assert_eq!(odd, [""; 0]);
}

fn rebalance() -> Notice {
    let not_before = Some("2026-11-23T08:22:00Z".into());
    Notice { kind: NoticeKind::Rebalance, not_before, text: "recommended".into() }
}

#[test]
fn warnings_alone_fail_no_check() {
    let fault_fixtures: [(fn() -> Facts, fn(&mut Facts), &str); 9] = [
        (fresh, |f| f.is_synchronised = Read(false), "clock"),
        (fresh, |f| f.swap = Read(vec!["/dev/vda2".to_owned()]), "swap"),
        (fresh, |f| f.kernel.bridges_filter = Read(None), "kernel"),
        (fresh, |f| aim(f).pins.clear(), "ca-pin"),
        (joined, |f| node(f).is_cordoned = true, "leaving"),
        (joined, |f| node(f).leaving = Some("karpenter.sh/disrupted".to_owned()), "leaving"),
        (joined, |f| cert(f).not_after_s = NOW_S + 60, "client-certificate"),
        (joined, |f| f.announced = Reading::Read(Some(vec![rebalance()])), "announced"),
        (joined, |f| node(f).boot_id = "b1".to_owned(), "node"),
    ];
    for (sound, fault, id) in fault_fixtures {
        let mut facts = sound();
        fault(&mut facts);
        let checks = checkup(&facts);
        let warned: Vec<&str> =
            checks.iter().filter(|check| check.result == Result::Warned).map(|check| check.id).collect();
        assert_eq!(warned, [id]);
        assert_eq!(first_failed(&checks), None);
    }
}

#[test]
fn own_kubelet_and_own_cluster_files_are_no_conflict() {
    let mut facts = joined();
    facts.join.control_plane = Read(vec!["/etc/kubernetes/manifests/kube-apiserver.yaml".to_owned()]);
    // A process that may not look into other processes sees no name.
    facts.ports[0].holder = Read(Some(Holder { program: None, pid: None, is_kubelet: false }));
    assert_eq!(first_failed(&checkup(&facts)), None);
}

#[test]
fn a_control_plane_is_never_advised_to_reset() {
    for seen in [
        Read(vec!["/var/lib/etcd/member".to_owned()]),
        Reading::cannot_tell("/etc/rancher/k3s/config.yaml cannot be read"),
    ] {
        let mut facts = joined();
        facts.join.control_plane = seen;
        aim(&mut facts).pins = vec!["sha256:cc".to_owned()];
        facts.servers[0].authorities = Read(vec![Authority {
            certificate: certificate("CN=kubernetes", "sha256:cc"),
            from: "x".to_owned(),
        }]);
        let checks = checkup(&facts);
        let failed = first_failed(&checks).unwrap();
        assert_eq!(failed.id, "leftovers");
        assert!(failed.advice.as_ref().unwrap().commands.is_empty(), "{failed:?}");
    }
}

#[test]
fn one_address_of_several_is_enough() {
    let mut facts = fresh();
    let mut away = facts.servers[0].clone();
    away.connect = Read(Connect::Silent("10.0.0.1".parse().unwrap()));
    facts.servers.insert(0, away);
    assert_eq!(first_failed(&checkup(&facts)), None);
}

#[test]
fn a_pin_that_differs_is_shown_beside_the_one_that_was_wanted() {
    let mut facts = fresh();
    aim(&mut facts).pins = vec!["sha256:cc".to_owned()];
    let checks = checkup(&facts);
    let text = first_failed(&checks).unwrap().evidence.join("\n");
    for word in ["sha256:cc", "sha256:aa", "CN=kubernetes", "2027-11-22"] {
        assert!(text.contains(word), "{word}: {text}");
    }
}

#[test]
fn rules_have_names_of_their_own_and_rest_on_earlier_ones() {
    let mut seen = BTreeSet::new();
    for rule in RULES {
        for id in rule.rests_on {
            assert!(seen.contains(id), "{} rests on {id}", rule.id);
        }
        assert!(seen.insert(rule.id), "{} twice", rule.id);
    }
}

fn of_k3s(mut facts: Facts) -> Facts {
    facts.supervised = Some(Supervised {
        name: "k3s".to_owned(),
        unit: "k3s-agent".to_owned(),
        folder: "/var/lib/rancher/k3s".to_owned(),
        has_unit: true,
        wanted_hash: Some("aa".to_owned()),
    });
    facts.servers[0].bundle = Read(Some("aa".to_owned()));
    facts.kubelet.config = Read(ConfigSeen::Absent);
    facts
}

#[test]
fn healthy_k3s_agent_passes_without_kubeadm_advice() {
    let mut bare = of_k3s(fresh());
    // The k3s or RKE2 agent sets these kernel settings when it starts.
    (bare.kernel.forwards, bare.kernel.bridges_filter) = (Read(false), Read(None));
    for facts in [of_k3s(fresh()), bare, of_k3s(joined())] {
        let odd: Vec<String> = checkup(&facts)
            .iter()
            .filter(|check| !matches!(check.result, Result::Passed | Result::Skipped))
            .map(ToString::to_string)
            .collect();
        assert_eq!(odd, [""; 0]);
    }
    type Of = fn(&mut Facts);
    let spoiled: [(fn() -> Facts, Of, &str); 9] = [
        (fresh, |f| f.servers[0].bundle = Read(Some("bb".to_owned())), "ca-pin"),
        (fresh, |f| f.servers[0].token = Read(TokenSeen::Refused), "token"),
        (fresh, |f| f.kubelet.unit = Read(None), "runtime"),
        (
            fresh,
            |f| {
                f.kubelet.unit = Reading::cannot_tell("no systemd");
                f.supervised.as_mut().unwrap().has_unit = false;
            },
            "runtime",
        ),
        (joined, |f| f.kernel.forwards = Read(false), "kernel"),
        (joined, |f| f.join.kubeconfig = Read(Joined::Broken("x".to_owned())), "leftovers"),
        (joined, |f| cert(f).not_after_s = NOW_S - 1, "client-certificate"),
        (
            joined,
            |f| (f.kubelet.process, f.kubelet.health) = (Read(None), Reading::cannot_tell("-")),
            "kubelet",
        ),
        (joined, |f| f.node = Read(None), "node"),
    ];
    for (sound, fault, id) in spoiled {
        let mut facts = of_k3s(sound());
        fault(&mut facts);
        let checks = checkup(&facts);
        let failed = first_failed(&checks).unwrap_or_else(|| panic!("{id}: nothing failed"));
        assert_eq!(failed.id, id, "{failed}");
        let advice = failed.advice.as_ref().unwrap();
        let told = format!("{failed} {} {}", advice.words, advice.commands.join(" "));
        assert!(!told.contains("kubeadm") && !told.contains("/etc/kubernetes"), "{told}");
        assert!(told.contains("k3s"), "{told}");
    }
}
