//! What a machine leaves on its serial console, in the words of the programs that write there.
//!
//! Each text belongs to one true cause inside the machine, so that a diagnosis that reads it is tested against what
//! Ignition, cloud-init, systemd and the kubelet say, not against our own name for the cause.

use super::vm::Trouble;

/// The console keeps this many lines, as the cloud's ring buffer does.
pub(crate) const LINES_MAX: usize = 200;

/// The first lines of any boot.
pub(crate) fn boot(name: &str) -> Vec<String> {
    lines(&[
        "[    0.000000] Linux version 6.12.58-flatcar (build@flatcar) #1 SMP PREEMPT_DYNAMIC",
        "[    0.000000] Command line: BOOT_IMAGE=/flatcar/vmlinuz-a console=ttyS0,115200n8 flatcar.oem.id=openstack",
        "[    0.412907] systemd[1]: Detected virtualization kvm.",
        "[    1.203311] virtio_net virtio0 ens3: renamed from eth0",
    ])
    .into_iter()
    .chain([format!("[    2.118842] systemd[1]: Hostname set to <{name}>.")])
    .collect()
}

/// First boot went well.
pub(crate) fn first_boot_done() -> Vec<String> {
    lines(&[
        "[    5.671190] ignition[701]: op(1): [finished] mounting \"/dev/disk/by-label/config-2\" at \"/tmp/ignition-configdrive\"",
        "[    6.020344] ignition[701]: files: createResultFile: Ignition finished successfully",
        "[    9.443120] systemd[1]: Reached target ignition-complete.target - Ignition Complete.",
    ])
}

/// The kernel starts and finds nothing to go on with.
pub(crate) fn kernel_panics() -> Vec<String> {
    lines(&[
        "[    2.803311] VFS: Cannot open root device \"PARTUUID=7130c94a-213a-4e5a-8e26-6cce9662f132\" or unknown-block(0,0): error -6",
        "[    2.811034] Kernel panic - not syncing: VFS: Unable to mount root fs on unknown-block(0,0)",
        "[    2.812770] CPU: 0 PID: 1 Comm: swapper/0 Not tainted 6.12.58-flatcar #1",
        "[    2.901188] ---[ end Kernel panic - not syncing: VFS: Unable to mount root fs on unknown-block(0,0) ]---",
    ])
}

/// First boot that stops for good at this trouble.
pub(crate) fn first_boot_failed(trouble: Trouble) -> Vec<String> {
    match trouble {
        Trouble::MetadataDown => lines(&[
            "[    5.402118] ignition[701]: GET http://169.254.169.254/openstack/latest/user_data: attempt #1",
            "[   15.406672] ignition[701]: GET error: Get \"http://169.254.169.254/openstack/latest/user_data\": context deadline exceeded",
            "[   25.611402] ignition[701]: GET http://169.254.169.254/openstack/latest/user_data: attempt #2",
            "[   35.615009] ignition[701]: GET result: Internal Server Error",
            "[  305.108820] ignition[701]: failed to fetch config: unable to fetch resource in time",
            "[  305.113377] systemd[1]: ignition-fetch.service: Main process exited, code=exited, status=1/FAILURE",
            "[  305.114871] systemd[1]: Failed to start ignition-fetch.service - Ignition (fetch).",
        ]),
        Trouble::PayloadGone => lines(&[
            "[    5.671190] ignition[701]: op(1): [finished] mounting \"/dev/disk/by-label/config-2\" at \"/tmp/ignition-configdrive\"",
            "[    6.402118] ignition[701]: GET https://objects.example.net/bootstrap/kks-prod/workers.ign: attempt #1",
            "[    6.706672] ignition[701]: GET result: Forbidden",
            "[    6.708820] ignition[701]: failed to fetch config: failed to fetch referenced resource: Access Denied",
            "[    6.713377] systemd[1]: ignition-fetch.service: Main process exited, code=exited, status=1/FAILURE",
        ]),
        _ => lines(&[
            "[    4.880121] systemd-networkd[655]: ens3: Link UP",
            "[    4.881006] systemd-networkd[655]: ens3: Gained carrier",
            "[   34.902271] systemd-networkd-wait-online[662]: Timeout occurred while waiting for network connectivity.",
            "[   34.915530] systemd[1]: Failed to start systemd-networkd-wait-online.service - Wait for Network to be Configured.",
            "[   36.120002] ignition[701]: GET http://169.254.169.254/openstack/latest/user_data: attempt #1",
            "[   36.120418] ignition[701]: GET error: Get \"http://169.254.169.254/openstack/latest/user_data\": dial tcp 169.254.169.254:80: connect: network is unreachable",
            "[   36.521190] ignition[701]: GET http://169.254.169.254/openstack/latest/user_data: attempt #2",
            "[   36.521577] ignition[701]: GET error: Get \"http://169.254.169.254/openstack/latest/user_data\": dial tcp 169.254.169.254:80: connect: network is unreachable",
            "[   36.922313] ignition[701]: GET error: Get \"https://config.internal/worker\": dial tcp 10.1.1.1:443: connect: network is unreachable",
            "[  336.707713] ignition[701]: failed to fetch config: unable to fetch resource in time",
            "[  336.713377] systemd[1]: ignition-fetch.service: Main process exited, code=exited, status=1/FAILURE",
            "[  336.721190] systemd[1]: Started emergency.service - Emergency Shell.",
        ]),
    }
}

/// A later boot of a machine whose first boot failed: nothing was ever installed, and first boot is not repeated.
pub(crate) fn never_configured() -> Vec<String> {
    lines(&[
        "[    5.104410] systemd[1]: ignition-fetch.service - Ignition (fetch) was skipped because of an unmet condition check (ConditionKernelCommandLine=flatcar.first_boot).",
        "[   12.800231] systemd[1]: Reached target multi-user.target - Multi-User System.",
        "This is localhost (Linux x86_64 6.12.58-flatcar)",
    ])
}

/// The kubelet starts.
pub(crate) fn kubelet_started() -> Vec<String> {
    lines(&["[   21.771034] systemd[1]: Started kubelet.service - kubelet: The Kubernetes Node Agent."])
}

/// The kubelet starts and cannot go on.
pub(crate) fn kubelet_failed(trouble: Trouble) -> Vec<String> {
    match trouble {
        Trouble::BadToken => lines(&[
            "kubelet[1122]: I0302 08:04:11.201 bootstrap.go:101] \"Use the bootstrap credentials to request a cert, and set kubeconfig to point to the certificate dir\"",
            "kubelet[1122]: E0302 08:04:11.522 run.go:74] \"command failed\" err=\"failed to run Kubelet: cannot create certificate signing request: Unauthorized\"",
            "[   23.104411] systemd[1]: kubelet.service: Main process exited, code=exited, status=1/FAILURE",
        ]),
        Trouble::RuntimeDown => lines(&[
            "[   21.902211] systemd[1]: containerd.service: Main process exited, code=exited, status=1/FAILURE",
            "[   21.904410] systemd[1]: containerd.service: Failed with result 'exit-code'.",
            "kubelet[1122]: E0302 08:04:11.522 run.go:74] \"command failed\" err=\"failed to run Kubelet: validate service connection: validate CRI v1 runtime API for endpoint \\\"unix:///run/containerd/containerd.sock\\\": rpc error: code = Unavailable desc = connection error: desc = \\\"transport: Error while dialing: dial unix /run/containerd/containerd.sock: connect: no such file or directory\\\"\"",
            "[   23.104411] systemd[1]: kubelet.service: Main process exited, code=exited, status=1/FAILURE",
        ]),
        Trouble::ClockWrong => lines(&[
            "kubelet[1122]: E0101 00:03:11.522 run.go:74] \"command failed\" err=\"failed to run Kubelet: unable to load bootstrap kubeconfig: Get \\\"https://10.180.0.4:6443/version\\\": tls: failed to verify certificate: x509: certificate has expired or is not yet valid: current time 1970-01-01T00:03:11Z is before 2026-03-01T10:00:00Z\"",
            "[   23.104411] systemd[1]: kubelet.service: Main process exited, code=exited, status=1/FAILURE",
        ]),
        Trouble::CaWrong => lines(&[
            "kubelet[1122]: E0302 08:04:11.522 run.go:74] \"command failed\" err=\"failed to run Kubelet: cannot create certificate signing request: Post \\\"https://10.180.0.4:6443/apis/certificates.k8s.io/v1/certificatesigningrequests\\\": tls: failed to verify certificate: x509: certificate signed by unknown authority\"",
            "[   23.104411] systemd[1]: kubelet.service: Main process exited, code=exited, status=1/FAILURE",
        ]),
        _ => lines(&[
            "kubelet[1122]: E0302 08:04:11.522 run.go:74] \"command failed\" err=\"failed to load kubelet config file, path: /var/lib/kubelet/config.yaml, error: open /var/lib/kubelet/config.yaml: no such file or directory\"",
            "[   23.104411] systemd[1]: kubelet.service: Main process exited, code=exited, status=1/FAILURE",
            "[   23.105502] systemd[1]: kubelet.service: Failed with result 'exit-code'.",
            "[   33.301177] systemd[1]: kubelet.service: Scheduled restart job, restart counter is at 17.",
        ]),
    }
}

/// The kubelet runs, the API server answers it, and no Node comes of it.
pub(crate) fn not_registered(trouble: Trouble) -> Vec<String> {
    match trouble {
        Trouble::NotApproved => lines(&[
            "kubelet[1122]: I0302 08:04:12.101 csr.go:261] \"Waiting for client certificate to be issued\"",
            "kubelet[1122]: E0302 08:19:12.204 certificate_manager.go:562] \"Certificate request was not signed\" err=\"timed out waiting for the condition\" logger=\"kubernetes.io/kube-apiserver-client-kubelet\"",
        ]),
        _ => lines(&[
            "kubelet[1122]: I0302 08:04:12.101 kubelet_node_status.go:75] \"Attempting to register node\"",
            "kubelet[1122]: E0302 08:04:12.204 kubelet_node_status.go:107] \"Unable to register node with API server\" err=\"nodes \\\"localhost\\\" is forbidden: node \\\"localhost.novalocal\\\" is not allowed to modify node \\\"localhost\\\"\"",
        ]),
    }
}

impl Trouble {
    /// The whole console of a machine of this name that started with this trouble and was not heard of since; for worlds whose
    /// machines have none of their own. `None` where no single text tells it.
    pub fn console(self, name: &str) -> Option<String> {
        let mut all = boot(name);
        match self {
            Self::NoNetwork | Self::MetadataDown => all.extend(first_boot_failed(self)),
            Self::BadToken | Self::Broken => {
                all.extend(first_boot_done());
                all.extend(kubelet_failed(self));
            }
            _ => return None,
        }
        Some(all.join("\n"))
    }
}

/// The kubelet runs with the certificate of an earlier join, and the API server does not accept it.
pub(crate) fn papers_refused() -> Vec<String> {
    lines(&[
        "kubelet[1122]: E0302 08:04:12.204 kubelet_node_status.go:107] \"Unable to register node with API server\" err=\"Unauthorized\"",
    ])
}

/// The kubelet runs and cannot reach the API server.
pub(crate) fn kubelet_unheard() -> Vec<String> {
    lines(&[
        "kubelet[1122]: E0302 08:04:41.902 kubelet_node_status.go:107] \"Unable to register node with API server\" err=\"Post \\\"https://10.180.0.4:6443/api/v1/nodes\\\": dial tcp 10.180.0.4:6443: i/o timeout\"",
    ])
}

fn lines(text: &[&str]) -> Vec<String> {
    text.iter().map(|line| (*line).to_owned()).collect()
}
