//! Support bundles of every known layout, made here: the failing machine's line is found and told with machine and bundle,
//! and lists and settings, in which the words of another failure stand, raise no alarm.

use reveille_diagnose::scan::Scanner;
use reveille_diagnose::sources::{Input, Intake, Limits, Unpacked};
use reveille_diagnose::{Catalogue, Diagnosis, Reader, judge};

/// Stands in a list or a setting, where it is no failure of any machine.
const TRAP: &str = "E1121 01:00:00.1 1 run.go:74] \"command failed\" err=\"x509: certificate has expired or is not yet valid\"\n";
const WELL: &str = "I1121 01:00:00.1 811 kubelet.go:2205] \"SyncLoop (PLEG): event for pod\" pod=\"kube-system/coredns-1\"\n";
const NO_NAME: &str =
    "E1121 01:00:00.1 811 reflector.go:140] dial tcp: lookup api.lan on 10.0.0.2:53: no such host\n";
const REFUSED: &str = "E1121 01:00:00.1 92 kubelet_node_status.go:92] Unable to register node \"ip-10-0-0-1.ec2.internal\" with API server: Unauthorized\n";
const NO_DOCKER: &str =
    "Cannot connect to the Docker daemon at unix:///var/run/docker.sock. Is the docker daemon running?\n";

/// An archive, its members, and what must be told: the cause, the bundle, and who wrote the line.
struct Told {
    archive: &'static str,
    members: &'static [(&'static str, &'static str)],
    cause: &'static str,
    bundle: &'static str,
    who: &'static str,
}

const BUNDLES: [Told; 7] = [
    Told {
        archive: "sosreport-w-1-2024-05-29-abcdefg.tar",
        members: &[
            ("sosreport-w-1-2024-05-29-abcdefg/etc/motd", TRAP),
            ("sosreport-w-1-2024-05-29-abcdefg/sos_commands/rpm/package-data", TRAP),
            ("sosreport-w-1-2024-05-29-abcdefg/sos_commands/process/ps_auxwww", TRAP),
            ("sosreport-w-1-2024-05-29-abcdefg/sos_commands/kernel/sysctl_-a", TRAP),
            (
                "sosreport-w-1-2024-05-29-abcdefg/sos_commands/kubernetes/journalctl_--no-pager_--unit_kubelet",
                NO_NAME,
            ),
        ],
        cause: "dns-resolution-failure",
        bundle: "sosreport of w-1; 4 members",
        who: "(w-1, kubelet)",
    },
    Told {
        archive: "from-the-customer.tar",
        members: &[
            ("w-2-2024-05-29_10_11_12/systeminfo/packages-rpm", TRAP),
            ("w-2-2024-05-29_10_11_12/systeminfo/ps", TRAP),
            ("w-2-2024-05-29_10_11_12/networking/cni/10-canal.conflist", TRAP),
            ("w-2-2024-05-29_10_11_12/rke2/kubectl/configmaps", TRAP),
            ("w-2-2024-05-29_10_11_12/rke2/agent-logs/kubelet.log", NO_NAME),
        ],
        cause: "dns-resolution-failure",
        bundle: "bundle of Rancher's log collector of w-2; 4 members",
        who: "(w-2, kubelet)",
    },
    Told {
        archive: "w-3-2024-05-29_10_11_12.tar",
        members: &[
            ("./journald/kubelet", WELL),
            ("./journald/docker", NO_DOCKER),
            ("./docker/dockerimages", TRAP),
        ],
        cause: "container-runtime-down",
        bundle: "bundle of Rancher's log collector of w-3; 1 members",
        who: "(w-3, journal)",
    },
    Told {
        archive: "eks_i-0123456789abcdef0_2024-05-29_1011-UTC_0.7.3.tar",
        members: &[
            ("./system/pkglist.txt", TRAP),
            ("./system/ps.txt", TRAP),
            ("./sysctls/sysctl_all.txt", TRAP),
            ("./cni/10-aws.conflist", TRAP),
            ("./kubelet/kubeconfig.yaml", TRAP),
            ("./kubelet/kubelet.log", REFUSED),
        ],
        // A pool of another platform would not be told so: the layout says that it is EKS.
        cause: "iam-role-not-mapped",
        bundle: "bundle of EKS's log collector of i-0123456789abcdef0; 5 members",
        who: "(i-0123456789abcdef0, kubelet)",
    },
    Told {
        archive: "logs.tar",
        members: &[
            ("collect/file_listings.txt", TRAP),
            ("collect/dpkg.txt", TRAP),
            ("collect/sysctl.txt", TRAP),
            ("etc/containerd/config.toml", TRAP),
            ("var/log/syslog", NO_NAME),
        ],
        cause: "dns-resolution-failure",
        bundle: "bundle of AKS's log collector; 4 members",
        who: "(system log)",
    },
    Told {
        archive: "dump.tar",
        members: &[
            ("dump/kube-system/events.json", "{\"items\": []}\n"),
            ("dump/kube-system/deployments.json", TRAP),
            (
                "dump/kube-system/coredns-1/logs.txt",
                "==== START logs for container coredns of pod kube-system/coredns-1 ====\n",
            ),
            ("dump/kube-system/kube-controller-manager-m-1/logs.txt", NO_NAME),
        ],
        cause: "dns-resolution-failure",
        bundle: "kubectl cluster-info dump of m-1; 1 members",
        who: "(m-1, kube-controller-manager)",
    },
    Told {
        archive: "two-machines.tar",
        members: &[
            ("sosreport-w-1-2024-05-29-aaaaaaa/var/log/messages", WELL),
            ("sosreport-w-2-2024-05-29-bbbbbbb/var/log/messages", NO_NAME),
        ],
        cause: "dns-resolution-failure",
        bundle: "sosreport of w-1, w-2",
        who: "sosreport-w-2-2024-05-29-bbbbbbb/var/log/messages (w-2, system log)",
    },
];

#[test]
fn a_bundle_of_every_layout_tells_cause_machine_and_itself() {
    for Told { archive, members, cause, bundle, who } in BUNDLES {
        let (diagnosis, inputs) = read(archive, members);
        let causes: Vec<&str> = diagnosis.findings.iter().map(|finding| finding.cause.as_str()).collect();
        assert_eq!(causes, [cause], "{archive}: {inputs:?}");
        let source = &diagnosis.findings[0].evidence[0].source;
        assert!(source.starts_with(archive) && source.ends_with(who), "{source}");
        let note = inputs.last().and_then(|input| input.note.clone()).unwrap_or_default();
        assert!(note.starts_with(bundle), "{archive}: {note}");
    }
}

#[test]
fn the_report_of_a_healthy_machine_raises_no_alarm() {
    let top = "sosreport-w-1-2024-05-29-abcdefg";
    let lists = [
        "etc/hosts.deny",
        "proc/mounts",
        "sos_commands/rpm/sh_-c_rpm",
        "sos_commands/networking/ip_-d_address",
        "installed-rpms",
    ];
    let mut members: Vec<(String, &str)> = lists.iter().map(|path| (format!("{top}/{path}"), TRAP)).collect();
    members.push((format!("{top}/sos_commands/kubernetes/journalctl_--no-pager_--unit_kubelet"), WELL));
    let members: Vec<(&str, &str)> = members.iter().map(|(path, text)| (path.as_str(), *text)).collect();
    let (diagnosis, _) = read("report.tar", &members);
    assert!(diagnosis.findings.is_empty(), "{diagnosis:?}");
    // One line of a kubelet proves nothing either.
    assert!(diagnosis.unknown.as_ref().is_some_and(|unknown| unknown.lines.is_empty()), "{diagnosis:?}");
}

#[test]
fn an_archive_of_no_known_layout_is_read_whole() {
    let (diagnosis, inputs) = read("x.tar", &[("etc/motd", TRAP), ("system/ps.txt", NO_NAME)]);
    assert_eq!(diagnosis.findings.len(), 2, "{inputs:?}");
    assert!(inputs.iter().all(|input| input.note.is_none()), "{inputs:?}");
}

fn read(archive: &str, members: &[(&str, &str)]) -> (Diagnosis, Vec<Input>) {
    let catalogue = Catalogue::built_in().unwrap_or_default();
    let Ok(scanner) = Scanner::new(&catalogue) else { panic!("our own catalogue can be looked for") };
    let mut reader = Reader::new(&scanner);
    let mut intake = Intake::new(&mut reader, Limits::default());
    intake.take(archive, &mut tar(members).as_slice());
    let inputs = intake.inputs;
    (judge(&reader), inputs)
}

fn tar(members: &[(&str, &str)]) -> Vec<u8> {
    let mut out = Vec::new();
    for (path, text) in members {
        let mut header = [0_u8; 512];
        header[..path.len()].copy_from_slice(path.as_bytes());
        header[124..135].copy_from_slice(format!("{:011o}", text.len()).as_bytes());
        header[156] = b'0';
        header[257..263].copy_from_slice(b"ustar\0");
        header[148..156].fill(b' ');
        let sum: u64 = header.iter().map(|byte| u64::from(*byte)).sum();
        header[148..155].copy_from_slice(format!("{sum:06o}\0").as_bytes());
        out.extend_from_slice(&header);
        out.extend_from_slice(text.as_bytes());
        out.resize(out.len().next_multiple_of(512), 0);
    }
    out
}

#[test]
fn a_bundle_that_was_unpacked_is_the_same_bundle() {
    for told in &BUNDLES {
        let folder = told.archive.trim_end_matches(".tar").trim_end_matches(".zip");
        let paths: Vec<&str> = told.members.iter().map(|(path, _)| path.trim_start_matches("./")).collect();
        let unpacked = Unpacked::of(folder, &paths).unwrap();
        assert!(unpacked.note.starts_with(told.bundle), "{folder}: {}", unpacked.note);
        let who = told.who.rsplit_once(" (").map_or(told.who, |(_, who)| who).trim_start_matches('(');
        assert!(
            unpacked.members.iter().flatten().any(|member| member.contains(who)),
            "{folder}: {unpacked:?}"
        );
        assert_eq!(unpacked.members.len(), paths.len(), "{folder}");
    }
    assert_eq!(Unpacked::of("logs", &["kubelet.log", "a/b.txt"]), None);
}
