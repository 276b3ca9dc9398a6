//! Signs that something went well. They show how far a boot came, and take back the noise of earlier tries.

/// One sign.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum Mark {
    /// A kernel started: what follows is another boot.
    NewBoot,
    /// The kernel or the init system prints.
    Kernel,
    /// Ignition, Afterburn or cloud-init runs.
    FirstBootTool,
    /// It is Ignition, which runs on the first boot only.
    IgnitionRuns,
    /// The guest found a config drive.
    ConfigDrive,
    /// The guest looked for a config drive and found none.
    NoConfigDrive,
    /// An interface got an address.
    Addressed,
    /// A metadata service answered with what was asked for.
    MetadataAnswered,
    /// Ignition did everything that its configuration says.
    IgnitionDone,
    /// cloud-init is through, with a real datasource.
    CloudInitDone,
    /// Multi-user or a login prompt.
    Userland,
    /// kubeadm runs.
    JoinBegan,
    /// The kubelet was started.
    KubeletStarted,
    /// The API server answered a join.
    ApiAnswered,
    /// The node registered.
    Joined,
}

struct Pattern {
    mark: Mark,
    all: &'static [&'static [&'static str]],
    none: &'static [&'static str],
}

const fn any(mark: Mark, literals: &'static [&'static [&'static str]]) -> Pattern {
    Pattern { mark, all: literals, none: &[] }
}

const MARKS: &[Pattern] = &[
    any(Mark::NewBoot, &[&["] linux version ", "booting linux on physical cpu"]]),
    any(
        Mark::Kernel,
        &[&["systemd[1]:", "[ ok ] ", "kernel command line", "openrc ", "freeing unused kernel"]],
    ),
    any(
        Mark::FirstBootTool,
        &[&[
            "ignition[",
            "ignition (",
            "ignition: ",
            "ignition 0.",
            "ignition 2.",
            "ignition v",
            "cloud-init[",
            "cloud-init v.",
            "coreos-metadata[",
            "afterburn[",
            "coreos-cloudinit[",
            "url_helper.py[",
            "ci-info: ",
        ]],
    ),
    any(
        Mark::IgnitionRuns,
        &[&["ignition[", "ignition (", "ignition: ", "ignition 0.", "ignition 2.", "ignition v"]],
    ),
    any(
        Mark::ConfigDrive,
        &[&[
            "datasourceconfigdrive",
            "datasource: configdrive",
            "op(1): [finished] mounting \"/dev/disk/by-label/config-2\"",
            "mounting \"/dev/disk/by-label/config-2\"",
            "mounted /media/configdrive",
            "fetched config from config drive",
            "creating temporary mount point for config drive",
        ]],
    ),
    any(
        Mark::NoConfigDrive,
        &[&["config drive"], &["not found", "was not available", "neither config drive"]],
    ),
    any(
        Mark::Addressed,
        &[&[
            "dhcpack",
            ": leased ",
            "lease of ",
            "dhcpv4 address ",
            "state changed new lease",
            "-> bound",
            "received dhcp lease on",
            "ip-config: got dhcp answer",
            "networkmanager state is now connected",
        ]],
    ),
    Pattern {
        mark: Mark::Addressed,
        all: &[
            &["ci-info:"],
            &[
                "| true | 1",
                "| true | 2",
                "| true | 3",
                "| true | 4",
                "| true | 5",
                "| true | 6",
                "| true | 7",
                "| true | 8",
                "| true | 9",
                "| true | fd",
            ],
        ],
        none: &["127.0.0.1"],
    },
    any(Mark::MetadataAnswered, &[&["get result: ok", "fetch successful", "crawl of metadata service"]]),
    any(
        Mark::IgnitionDone,
        &[&["ignition finished successfully", "ignition: finished", "finished ignition (files)"]],
    ),
    Pattern {
        mark: Mark::CloudInitDone,
        all: &[&["cloud-init v."], &["finished at"]],
        none: &["datasourcenone"],
    },
    Pattern {
        mark: Mark::Userland,
        all: &[&[
            "reached target multi-user",
            "reached target login prompts",
            " login:",
            "startup finished in",
        ]],
        none: &["last login:", "failed"],
    },
    any(
        Mark::JoinBegan,
        &[&["[preflight] running pre-flight checks", "[discovery] ", "kubeadm join", "[kubelet-start] "]],
    ),
    any(
        Mark::KubeletStarted,
        &[&[
            "started kubelet",
            "started kubernetes kubelet",
            "[kubelet-start] starting the kubelet",
            "kubelet[",
        ]],
    ),
    any(
        Mark::ApiAnswered,
        &[&[
            "certificate signing request was sent to apiserver",
            "successfully established connection with api server",
            "cluster info signature and contents are valid",
            "[kubelet-start] writing kubelet configuration to file",
        ]],
    ),
    any(Mark::Joined, &[&["this node has joined the cluster", "successfully registered node"]]),
];

/// Every sign in this line, which is lower case with single spaces.
pub(in super::super) fn marks_of(line: &str) -> impl Iterator<Item = Mark> {
    MARKS
        .iter()
        .filter(move |pattern| {
            pattern.all.iter().all(|group| group.iter().any(|literal| line.contains(literal)))
                && !pattern.none.iter().any(|literal| line.contains(literal))
        })
        .map(|pattern| pattern.mark)
}

#[cfg(test)]
mod tests {
    use super::super::super::lines::normalised;
    use super::*;

    #[test]
    fn signs_are_read_from_the_lines_of_several_systems() {
        let table: &[(&str, &[Mark])] = &[
            ("[    0.000000] Linux version 6.1.90-flatcar (build@host)", &[Mark::NewBoot]),
            (
                "\u{1b}[0;32m  OK  \u{1b}[0m] Reached target \u{1b}[0;1;39mMulti-User System\u{1b}[0m.",
                &[Mark::Userland],
            ),
            (
                "[[0;32m  OK  [0m] Reached target [0;1;39mMulti-User System[0m.",
                &[Mark::Kernel, Mark::Userland],
            ),
            ("node-7xk2p login: ", &[Mark::Userland]),
            ("Last login: Tue Jan  2 on ttyS0", &[]),
            (
                "ci-info: |  ens3  | True |   10.0.4.17   | 255.255.255.0 | global |",
                &[Mark::FirstBootTool, Mark::Addressed],
            ),
            ("ci-info: |   lo   | True |   127.0.0.1   |   255.0.0.0   |  host  |", &[Mark::FirstBootTool]),
            ("ci-info: |  ens3  | True |       .       |       .       |   .    |", &[Mark::FirstBootTool]),
            ("dhclient[411]: DHCPACK of 10.0.4.17 from 10.0.4.2", &[Mark::Addressed]),
            (
                "systemd-networkd[388]: ens3: DHCPv4 address 10.0.4.17/24, gateway 10.0.4.1 acquired from 10.0.4.2",
                &[Mark::Addressed],
            ),
            (
                "[   11.0] ignition[701]: GET result: OK",
                &[Mark::FirstBootTool, Mark::IgnitionRuns, Mark::MetadataAnswered],
            ),
            ("[   11.0] ignition[701]: GET result: Not Found", &[Mark::FirstBootTool, Mark::IgnitionRuns]),
            (
                "[   14.2] ignition[801]: INFO : Ignition finished successfully",
                &[Mark::FirstBootTool, Mark::IgnitionRuns, Mark::IgnitionDone],
            ),
            (
                "Cloud-init v. 23.4 finished at Mon, 05 Feb. Datasource DataSourceOpenStackLocal.  Up 21.4 seconds",
                &[Mark::FirstBootTool, Mark::CloudInitDone],
            ),
            (
                "Cloud-init v. 23.4 finished at Mon, 05 Feb. Datasource DataSourceNone.  Up 141 seconds",
                &[Mark::FirstBootTool],
            ),
            (
                "ignition[590]: config drive (\"/dev/disk/by-label/config-2\") not found. Waiting...",
                &[Mark::FirstBootTool, Mark::IgnitionRuns, Mark::NoConfigDrive],
            ),
            ("[  OK  ] Started kubelet: The Kubernetes Node Agent.", &[Mark::Kernel, Mark::KubeletStarted]),
            ("systemd[1]: Starting kubelet: The Kubernetes Node Agent...", &[Mark::Kernel]),
            ("This node has joined the cluster:", &[Mark::Joined]),
        ];
        for (line, expected) in table {
            let got: Vec<Mark> = marks_of(&normalised(line)).collect();
            assert_eq!(got, *expected, "{line}");
        }
    }
}
