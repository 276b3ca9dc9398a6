//! Whole consoles, and what must and must not be read out of them.

use reveille_core::model::incident::Confidence as Sure;

use super::*;

fn read(lines: &[&str]) -> LogFindings {
    Judge::built_in().unwrap().log_findings(Ok(&lines.join("\n")), &[])
}

/// The causes that stand, in order, with what follows from each behind it.
fn causes(lines: &[&str]) -> Vec<String> {
    let name = |told: &LogFinding| {
        std::iter::once(told)
            .chain(&told.follows)
            .map(|told| told.cause.label().to_owned())
            .collect::<Vec<_>>()
    };
    read(lines).told.iter().flat_map(name).collect()
}

const KERNEL: &str = "[    0.000000] Linux version 6.1.90 (build@host)";
const UNREACHABLE: &str = "[    9.1] ignition[512]: GET error: Get \"http://169.254.169.254/openstack/latest/user_data\": dial \
                           tcp 169.254.169.254:80: connect: network is unreachable";
const META_500: &str = "url_helper.py[WARNING]: Calling 'http://169.254.169.254/openstack' failed [4/120s]: bad status \
                        code [500]";
const SCRIPT: &str =
    "cloud-init[4607]: util.py[WARNING]: Failed running /var/lib/cloud/instance/scripts/runcmd [1]";
const FINISHED: &str = "cloud-init[4607]: Cloud-init v. 23.4 finished at Mon. Datasource DataSourceOpenStackLocal.  Up 41 seconds";
const API_TIMEOUT: &str =
    "kubelet[1411]: E0101 Get \"https://10.0.4.9:6443/api/v1/nodes\": dial tcp 10.0.4.9:6443: i/o timeout";
const TOKEN: &str = "could not find a JWS signature in the cluster-info ConfigMap for token ID \"q1w2e3\"";
const NOT_FOUND: &str =
    "kubelet[1411]: E0101 kubelet.go:2461] \"Error getting node\" err=\"node \\\"w-1\\\" not found\"";
const LEASED: &str = "dhclient[411]: DHCPACK of 10.0.4.17 from 10.0.4.2";
const PANIC: &str = "[ 31.4] Kernel panic - not syncing: Attempted to kill init!";

#[test]
fn what_stands_at_the_end_counts() {
    let table: Vec<(&str, Vec<&str>, &[&str])> = vec![
        ("an empty console", vec![], &[]),
        ("first boot without network", vec![KERNEL, UNREACHABLE, UNREACHABLE], &["no-network-at-boot"]),
        (
            "ten failures and then an answer",
            [[UNREACHABLE; 10].as_slice(), &["ignition[512]: GET result: OK"]].concat(),
            &[],
        ),
        (
            "an answer and then failures",
            vec!["ignition[512]: GET result: OK", UNREACHABLE],
            &["no-network-at-boot"],
        ),
        (
            "a failed script does not heal by rebooting",
            vec![SCRIPT, FINISHED, KERNEL, FINISHED],
            &["userdata-script-failed"],
        ),
        (
            "finished with nothing is not finished",
            vec![
                META_500,
                "cloud-init[9]: Cloud-init v. 23.4 finished at Mon. Datasource DataSourceNone.  Up 141 seconds",
            ],
            &["metadata-service-unavailable"],
        ),
        ("the noise of every join", vec![NOT_FOUND, NOT_FOUND, "cni plugin not initialized"], &[]),
        (
            "joining takes everything back",
            vec![SCRIPT, API_TIMEOUT, "I0101 Successfully registered node w-1"],
            &[],
        ),
        (
            "and what comes after it stands",
            vec!["I0101 Successfully registered node w-1", API_TIMEOUT],
            &["apiserver-unreachable"],
        ),
        ("a panic that a later boot got over", vec![PANIC, KERNEL, "w-1 login:"], &[]),
    ];
    for (case, lines, expected) in table {
        assert_eq!(causes(&lines), expected, "{case}");
    }
}

#[test]
fn what_explains_stands_before_what_follows_from_it() {
    for (case, lines, expected) in [
        (
            "no network before the shell that it ends in",
            vec![UNREACHABLE, "You are in emergency mode.", "[FAILED] Failed to start Ignition (fetch)."],
            "no-network-at-boot",
        ),
        ("a panic before all", vec![UNREACHABLE, PANIC], "os-boot-failed"),
        (
            "a second interface without an address is not the reason",
            vec![LEASED, "dhcp4 (eth1): request timed out", TOKEN],
            "bootstrap-token-invalid",
        ),
    ] {
        assert_eq!(causes(&lines).first().map(String::as_str), Some(expected), "{case}");
    }
}

/// A failure on an interface that the machine does not need must not count as a failed first boot: more may be done to a machine
/// whose first boot failed.
#[test]
fn failed_lease_beside_a_successful_lease_is_only_possible() {
    let of = |lines: &[&str]| read(lines).told[0].confidence;
    assert_eq!(of(&["dhcp4 (eth1): request timed out"]), Sure::Likely);
    assert_eq!(of(&[LEASED, "dhcp4 (eth1): request timed out"]), Sure::Possible);
}

#[test]
fn what_a_decision_rests_on_comes_from_the_catalogue() {
    for (line, first_boot, reboot, replace) in [
        (UNREACHABLE, true, false, true),
        (
            "ignition[5]: GET error: Get \"https://config.internal/w\": dial tcp 10.1.1.1:443: connect: network is unreachable",
            true,
            false,
            true,
        ),
        (META_500, true, false, true),
        (SCRIPT, true, false, true),
        (TOKEN, false, false, true),
        (API_TIMEOUT, false, false, false),
        (PANIC, false, true, true),
    ] {
        let cause = read(&[line]).told[0].cause.clone();
        let entry = cause.entry().unwrap();
        assert_eq!(entry.first_boot, first_boot, "{cause}");
        assert_eq!((entry.no_reboot.is_none(), entry.no_replace.is_none()), (reboot, replace), "{cause}");
    }
}

#[test]
fn unanswered_packets_are_distinguished_from_answers() {
    for (line, unanswered, no_lease) in [
        (UNREACHABLE, true, false),
        (API_TIMEOUT, true, false),
        (
            "ignition[5]: GET error: Get \"https://config.internal/w\": dial tcp 10.1.1.1:443: connect: network is unreachable",
            true,
            false,
        ),
        ("dhclient[611]: No DHCPOFFERS received.", true, true),
        (META_500, false, false),
        (TOKEN, false, false),
        (PANIC, false, false),
    ] {
        let told = &read(&[line]).told[0];
        assert_eq!((told.unanswered, told.no_lease), (unanswered, no_lease), "{line}");
    }
}

#[test]
fn progress_is_that_of_the_last_boot() {
    use BootProgress::*;
    for (lines, expected) in [
        (vec![], Nothing),
        (vec!["SeaBIOS (version 1.16)", "Booting from Hard Disk..."], Nothing),
        (vec![KERNEL], Kernel),
        (vec![KERNEL, "ignition[512]: Ignition 2.15.0"], FirstBoot),
        (vec![KERNEL, "w-1 login:"], Userland),
        (vec![KERNEL, "w-1 login:", "[  OK  ] Started kubelet: The Kubernetes Node Agent."], Kubelet),
        (vec![KERNEL, "cloud-init[9]: [preflight] Running pre-flight checks"], Kubelet),
        (vec![NOT_FOUND], Kubelet),
        (vec![KERNEL, "w-1 login:", KERNEL], Kernel),
        (vec!["w-1 login:"], Userland),
        (vec!["This node has joined the cluster:"], Joined),
    ] {
        assert_eq!(read(&lines).guest.boot, expected, "{lines:?}");
    }
}

#[test]
fn guest_log_tells_config_drive_and_answering_server() {
    let waiting = "ignition[5]: config drive (\"/dev/disk/by-label/config-2\") not found. Waiting...";
    let found = "ignition[5]: op(1): [started] mounting \"/dev/disk/by-label/config-2\" at \"/tmp/ignition-configdrive\"";
    for (lines, expected) in [
        (vec![KERNEL], ConfigDrive::Unknown),
        (vec![waiting], ConfigDrive::Absent),
        (vec![waiting, found], ConfigDrive::Present),
    ] {
        assert_eq!(read(&lines).guest.config_drive, expected, "{lines:?}");
    }
    let guest = read(&[LEASED, "ignition[512]: GET result: OK"]).guest;
    assert!(guest.addressed && guest.answered);
    let guest = read(&[LEASED, "ignition[512]: GET result: OK", KERNEL]).guest;
    assert!(!guest.addressed && !guest.answered, "another boot starts from nothing");
}

#[test]
fn lines_keep_their_numbers_and_are_counted() {
    let log_findings = read(&[KERNEL, "dhclient: No DHCPOFFERS received.", UNREACHABLE, "x", UNREACHABLE]);
    let told = &log_findings.told[0];
    assert!(told.proof.iter().all(|quote| quote.source == Source::Console), "{told:?}");
    let quoted: Vec<(u64, u64)> =
        told.proof.iter().map(|quote| (quote.line.number, quote.line.times)).collect();
    assert_eq!(quoted, [(3, 2), (2, 1)]);
    let after_a_join = read(&["This node has joined the cluster:", "x", API_TIMEOUT]);
    assert_eq!(after_a_join.told[0].proof[0].line.number, 3);
}

#[test]
fn secrets_are_gone_before_anything_is_quoted() {
    let secret = "0123456789abcdef";
    let text = format!(
        "kubelet[1]: cannot create certificate signing request: Unauthorized token=abcdef.{secret}\nK3S_TOKEN=cAnArY77"
    );
    let log_findings = Judge::built_in().unwrap().log_findings(Ok(&text), &[]);
    assert_eq!(log_findings.told[0].cause.label(), "bootstrap-token-invalid");
    let shown = format!("{log_findings:?}");
    assert!(!shown.contains(secret) && !shown.contains("cAnArY77"), "{shown}");
}

/// What stands in the events and conditions of its node counts as what its console says does.
#[test]
fn notes_and_console_are_judged_together() {
    let note = |text: &str| Note { source: "node w-1".to_owned(), text: text.to_owned() };
    let judge = Judge::built_in().unwrap();
    let told = judge.log_findings(Err("the driver has none"), &[note(TOKEN)]);
    assert_eq!((told.guest, told.console), (Guest::UNSEEN, Err(Arc::from("the driver has none"))));
    assert_eq!(told.told[0].proof[0].source, Source::Named("node w-1".into()));
    let both = judge.log_findings(Ok(SCRIPT), &[note(TOKEN)]);
    assert_eq!(both.told[0].cause.label(), "bootstrap-token-invalid");
}

/// A boot as it should be, with the noise that comes with every one.
#[test]
fn a_healthy_boot_says_nothing() {
    let text = "\
SeaBIOS (version 1.16.2-1)
Boot failed: Could not read from CDROM (code 0003)
Booting from Hard Disk...
[    0.000000] Linux version 6.1.90-flatcar (build@host) #1 SMP
[    0.000000] Command line: console=ttyS0,115200n8 flatcar.first_boot=detected panic=30
[    1.104455] systemd[1]: Starting systemd-networkd.service - Network Configuration...
[    2.310033] IPv6: ADDRCONF(NETDEV_UP): eth0: link is not ready
[    2.910033] systemd-timesyncd[211]: Failed to resolve ntp.example: Temporary failure in name resolution
[    3.000011] ignition[512]: Ignition 2.15.0
[    3.000112] ignition[512]: no config at \"/usr/lib/ignition/user.ign\"
[    3.010112] ignition[512]: config drive (\"/dev/disk/by-label/config-2\") not found. Waiting...
[    3.020112] ignition[512]: GET http://169.254.169.254/openstack/latest/user_data: attempt #1
[    3.020912] ignition[512]: GET error: Get \"http://169.254.169.254/openstack/latest/user_data\": dial tcp 169.254.169.254:80: connect: network is unreachable
[    4.220912] ignition[512]: GET error: Get \"http://169.254.169.254/openstack/latest/user_data\": dial tcp 169.254.169.254:80: connect: no route to host
[    5.110500] systemd-networkd[388]: eth0: DHCPv4 address 10.0.4.17/24, gateway 10.0.4.1 acquired from 10.0.4.2
[    5.420912] ignition[512]: GET http://169.254.169.254/openstack/latest/user_data: attempt #3
[    5.451201] ignition[512]: GET result: OK
[    6.700001] ignition[690]: Ignition finished successfully
[   12.100001] coreos-metadata[849]: http://169.254.169.254/latest/meta-data/public-keys: 404 Not Found
[[0;32m  OK  [0m] Reached target [0;1;39mMulti-User System[0m.
[FAILED] Failed to start Some Optional Service.
w-1 login: [   20.0] kubelet[1411]: E0101 kubelet.go:2461] \"Error getting node\" err=\"node \\\"w-1\\\" not found\"
[   21.0] kubelet[1411]: E0101 cni.go:163] error updating cni config: No networks found in /etc/cni/net.d
[   21.2] kubelet[1411]: E0101 Failed to contact API server: Get \"https://10.0.4.9:6443/api/v1/nodes\": dial tcp 10.0.4.9:6443: i/o timeout
[   24.9] kubelet[1411]: I0101 kubelet_node_status.go:76] \"Successfully registered node\" node=\"w-1\"
";
    let LogFindings { guest, told, .. } = Judge::built_in().unwrap().log_findings(Ok(text), &[]);
    assert_eq!(told, vec![]);
    assert_eq!((guest.boot, guest.config_drive), (BootProgress::Joined, ConfigDrive::Absent));
}

proptest::proptest! {
    /// Whatever a guest prints, it is read; and what is quoted of it is bounded.
    #[test]
    fn any_console_is_read(text in "(\\PC|\n|\r|\u{1b}\\[[0-9;]{0,4}m|169\\.254\\.169\\.254|timed out|token=|PRIVATE KEY-----){0,60}") {
        let log_findings = Judge::built_in().unwrap().log_findings(Ok(&text), &[]);
        proptest::prop_assert!(log_findings.told.len() <= TOLD_MAX);
        for told in &log_findings.told {
            proptest::prop_assert!((1..=6).contains(&told.proof.len()));
        }
    }
}
