//! Whole consoles, and what must and must not be read out of them.

use super::*;
use crate::model::incident::Confidence;

const AT: Time = Time::from_ms(1_700_000_000_000);

fn read(lines: &[&str]) -> ConsoleReading {
    read_console(&lines.join("\n"), AT)
}

/// The causes that stand, in order.
fn causes(lines: &[&str]) -> Vec<Cause> {
    read(lines).findings.iter().map(|finding| finding.cause).collect()
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

#[test]
fn what_stands_at_the_end_counts() {
    use Cause::*;
    let table: Vec<(&str, Vec<&str>, Vec<Cause>)> = vec![
        ("an empty console", vec![], vec![]),
        ("first boot without network", vec![KERNEL, UNREACHABLE, UNREACHABLE], vec![NoNetworkAtBoot]),
        (
            "ten failures and then an answer",
            [[UNREACHABLE; 10].as_slice(), &["ignition[512]: GET result: OK"]].concat(),
            vec![],
        ),
        (
            "an answer and then failures",
            vec!["ignition[512]: GET result: OK", UNREACHABLE],
            vec![NoNetworkAtBoot],
        ),
        ("another boot is another try", vec![KERNEL, UNREACHABLE, KERNEL], vec![]),
        (
            "a failed script does not heal by rebooting",
            vec![SCRIPT, FINISHED, KERNEL, FINISHED],
            vec![FirstBootFailed],
        ),
        (
            "finished with nothing is not finished",
            vec![
                META_500,
                "cloud-init[9]: Cloud-init v. 23.4 finished at Mon. Datasource DataSourceNone.  Up 141 seconds",
            ],
            vec![MetadataUnavailable],
        ),
        ("finished takes metadata trouble back", vec![META_500, FINISHED], vec![]),
        (
            "Ignition that went on without a config finishes successfully and did nothing",
            vec![
                "ignition[498]: neither config drive nor metadata service were available in time. Continuing without a config...",
                "ignition[498]: Ignition finished successfully",
                "[  OK  ] Reached target Multi-User System.",
            ],
            vec![MetadataUnavailable],
        ),
        ("the noise of every join", vec![NOT_FOUND, NOT_FOUND, "cni plugin not initialized"], vec![]),
        (
            "joining takes everything back",
            vec![SCRIPT, API_TIMEOUT, "I0101 Successfully registered node w-1"],
            vec![],
        ),
        (
            "and what comes after it stands",
            vec!["I0101 Successfully registered node w-1", API_TIMEOUT],
            vec![ApiUnreachable],
        ),
        (
            "three questions for an address are patience",
            vec!["DHCPDISCOVER on ens3 to 255.255.255.255"; 3],
            vec![],
        ),
        ("four are too many", vec!["DHCPDISCOVER on ens3 to 255.255.255.255"; 4], vec![NoNetworkAtBoot]),
        (
            "asked four times, then leased",
            [
                ["DHCPDISCOVER on ens3 to 255.255.255.255"; 4].as_slice(),
                &["DHCPACK of 10.0.4.17 from 10.0.4.2"],
            ]
            .concat(),
            vec![],
        ),
    ];
    for (case, lines, expected) in table {
        assert_eq!(causes(&lines), expected, "{case}");
    }
}

#[test]
fn what_explains_stands_before_what_follows_from_it() {
    use Cause::*;
    let table: Vec<(&str, Vec<&str>, Vec<Cause>)> = vec![
        (
            "the cause before what follows from it",
            vec![UNREACHABLE, "You are in emergency mode.", "[FAILED] Failed to start Ignition (fetch)."],
            vec![NoNetworkAtBoot, FirstBootFailed, BootFailed],
        ),
        (
            "an unreachable server fails the script that joins",
            vec![SCRIPT, API_TIMEOUT],
            vec![ApiUnreachable, FirstBootFailed],
        ),
        (
            "a second interface without an address is not the reason",
            vec!["DHCPACK of 10.0.4.17 from 10.0.4.2", "dhcp4 (eth1): request timed out", TOKEN],
            vec![TokenInvalid, NoNetworkAtBoot],
        ),
        (
            "a doubt before what follows from it",
            vec![SCRIPT, "x509: certificate has expired or is not yet valid"],
            vec![ClockSkew, FirstBootFailed],
        ),
        (
            "a panic before all",
            vec![UNREACHABLE, "[ 31.4] Kernel panic - not syncing: Attempted to kill init!"],
            vec![BootFailed, NoNetworkAtBoot],
        ),
        (
            "a panic that a later boot got over",
            vec!["Kernel panic - not syncing: fatal", KERNEL, "w-1 login:"],
            vec![],
        ),
    ];
    for (case, lines, expected) in table {
        assert_eq!(causes(&lines), expected, "{case}");
    }
}

#[test]
fn one_cause_is_one_finding_with_its_lines_counted() {
    let reading = read(&[KERNEL, "dhclient: No DHCPOFFERS received.", UNREACHABLE, "x", UNREACHABLE]);
    assert_eq!(reading.findings.len(), 1);
    let finding = &reading.findings[0];
    assert_eq!((finding.cause, finding.confidence), (Cause::NoNetworkAtBoot, Confidence::Likely));
    let sources: Vec<&str> = finding.evidence.iter().map(|evidence| &*evidence.source).collect();
    assert_eq!(sources, ["console line 2", "console line 5, one of 2 such since line 3"]);
    assert!(finding.evidence.iter().all(|evidence| evidence.read_at == AT));
    assert_eq!(reading.dhcp.unwrap().evidence.len(), 1);
    assert_eq!(reading.first_boot_failed.unwrap().evidence.len(), 1);
    assert!(reading.unanswered);
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
        assert_eq!(read(&lines).boot, expected, "{lines:?}");
    }
}

#[test]
fn the_guest_says_whether_it_found_a_config_drive() {
    let waiting = "ignition[5]: config drive (\"/dev/disk/by-label/config-2\") not found. Waiting...";
    let found = "ignition[5]: op(1): [started] mounting \"/dev/disk/by-label/config-2\" at \"/tmp/ignition-configdrive\"";
    for (lines, expected) in [
        (vec![KERNEL], ConfigDrive::Unknown),
        (vec![waiting], ConfigDrive::Absent),
        (vec![waiting, found], ConfigDrive::Present),
        (
            vec!["finished at Mon. Datasource DataSourceConfigDrive [net,ver=2][source=/dev/sr0]"],
            ConfigDrive::Present,
        ),
    ] {
        assert_eq!(read(&lines).config_drive, expected, "{lines:?}");
    }
}

/// G86: a reboot does not help what only a first boot does.
#[test]
fn g86_a_reboot_is_refused_where_it_cannot_help() {
    let verdict = |lines: &[&str]| match read(lines).reboot_can_help {
        Reboot::Yes => "yes",
        Reboot::No(_) => "no",
        Reboot::Unknown => "unknown",
    };
    for (lines, expected) in [
        (vec![UNREACHABLE], "no"),
        (vec!["Kernel panic - not syncing: fatal"], "yes"),
        (vec!["Kernel panic - not syncing: fatal", "[FAILED] Failed to start Ignition (fetch)."], "no"),
        (vec!["Kernel panic - not syncing: fatal", SCRIPT], "no"),
        (vec!["ignition[9]: Ignition finished successfully", META_500], "unknown"),
        (vec!["dhclient: No DHCPOFFERS received."], "yes"),
        (vec![SCRIPT], "no"),
        // cloud-init looks for a datasource at every boot until it has one.
        (vec![META_500], "unknown"),
        (vec![API_TIMEOUT], "no"),
        (vec![KERNEL, "w-1 login:"], "unknown"),
    ] {
        assert_eq!(verdict(&lines), expected, "{lines:?}");
    }
}

#[test]
fn secrets_are_gone_before_anything_is_quoted() {
    let secret = "0123456789abcdef";
    let text = format!(
        "kubelet[1]: cannot create certificate signing request: Unauthorized token=abcdef.{secret}\nK3S_TOKEN=cAnArY77"
    );
    let reading = read_console(&text, AT);
    assert_eq!(reading.findings[0].cause, Cause::TokenInvalid);
    let shown = format!("{reading:?}");
    assert!(!shown.contains(secret) && !shown.contains("cAnArY77"), "{shown}");
    let kept = crate::diagnose::console::keep(&text);
    assert!(!kept.contains(secret) && !kept.contains("cAnArY77"), "{kept}");
}

#[test]
fn a_flood_is_read_from_its_end() {
    let mut text = format!("{SCRIPT}\n");
    text.push_str(&"noise\n".repeat(400_000));
    text.push_str(UNREACHABLE);
    let reading = read_console(&text, AT);
    let causes: Vec<Cause> = reading.findings.iter().map(|finding| finding.cause).collect();
    assert_eq!(causes, [Cause::NoNetworkAtBoot]);
    assert!(crate::diagnose::console::keep(&text).len() <= crate::diagnose::console::KEEP_BYTES_MAX);
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
    let reading = read_console(text, AT);
    assert_eq!(reading.findings, vec![]);
    assert_eq!((reading.boot, reading.config_drive), (BootProgress::Joined, ConfigDrive::Absent));
    assert!(!reading.unanswered && reading.dhcp.is_none() && reading.first_boot_failed.is_none());
}

proptest::proptest! {
    /// Whatever a guest prints, it is read; and what is quoted of it is bounded.
    #[test]
    fn any_console_is_read(text in "(\\PC|\n|\r|\u{1b}\\[[0-9;]{0,4}m|169\\.254\\.169\\.254|timed out|token=|PRIVATE KEY-----){0,60}") {
        let reading = read_console(&text, AT);
        proptest::prop_assert!(reading.tail.len() <= TAIL_LINES);
        for finding in &reading.findings {
            proptest::prop_assert!((1..=EVIDENCE_MAX).contains(&finding.evidence.len()));
        }
        let masked = mask_secrets(&text);
        proptest::prop_assert_eq!(mask_secrets(&masked), &*masked);
        proptest::prop_assert_eq!(masked.matches('\n').count(), text.matches('\n').count());
    }
}
