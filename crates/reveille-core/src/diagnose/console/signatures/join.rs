//! What comes once the network works: trust, the token, and the first boot's own work.

use crate::model::cause::Cause;
use crate::model::incident::Confidence;

use super::{BASE, Mark, ONCE_ONLY, OUTSIDE, Part, Signature};

const TRUST_BASE: Signature =
    Signature { taken_back_by: &[Mark::NewBoot, Mark::ApiAnswered], reboot: OUTSIDE, ..BASE };

/// Certificates of registries and mirrors say nothing of the cluster.
const NOT_THE_CLUSTER: &[&str] = &["pull", "sandbox image", "registry"];

/// Certificates and tokens.
pub(super) static TRUST: &[Signature] = &[
    Signature {
        id: "clock-behind",
        cause: Cause::ClockSkew,
        all: &[&["not yet valid"], &["current time"], &["is before"]],
        source: "Go",
        hits: &[
            "x509: certificate has expired or is not yet valid: current time 1970-01-01T00:03:11Z is before 2024-03-01T10:00:00Z",
        ],
        misses: &[
            "x509: certificate has expired or is not yet valid: current time 2024-03-01T10:00:00Z is after 2024-02-01T10:00:00Z",
        ],
        ..TRUST_BASE
    },
    Signature {
        id: "validity-in-doubt",
        cause: Cause::ClockSkew,
        confidence: Confidence::Possible,
        all: &[&["certificate has expired or is not yet valid", "certificate is not yet valid"]],
        none: &["is before", "is after"],
        source: "Go, OpenSSL",
        hits: &["Get \"https://10.0.4.9:6443/version\": x509: certificate has expired or is not yet valid"],
        misses: &[
            "certificate has expired or is not yet valid: current time 2024-03-01T10:00:00Z is after 2024-02-01T10:00:00Z",
        ],
        ..TRUST_BASE
    },
    Signature {
        id: "ca-not-the-pinned-one",
        cause: Cause::CaHashMismatch,
        confidence: Confidence::Sure,
        all: &[
            &["none of the public keys", "token ca hash does not match", "--ca-checksum"],
            &["pinned", "does not match"],
        ],
        source: "kubeadm, rke2, k3s, Rancher",
        hits: &[
            "cluster CA found in cluster-info ConfigMap is invalid: none of the public keys \"sha256:00ff\" are pinned",
        ],
        misses: &["kubeadm join 10.0.4.9:6443 --discovery-token-ca-cert-hash sha256:00ff"],
        ..TRUST_BASE
    },
    Signature {
        id: "certificate-of-another-name",
        cause: Cause::CertificateNameMismatch,
        all: &[
            &["certificate is valid for", "cannot validate certificate for"],
            &[", not ", "doesn't contain any ip sans"],
        ],
        none: NOT_THE_CLUSTER,
        source: "Go",
        hits: &[
            "Get https://10.0.4.9:6443/version: x509: certificate is valid for 10.96.0.1, 10.0.4.8, not 10.0.4.9",
            "x509: cannot validate certificate for 10.0.4.9 because it doesn't contain any IP SANs",
        ],
        misses: &[
            "csr.go: certificate for node-7xk2p issued",
            "failed to pull image: x509: certificate is valid for a.example, not b.example",
        ],
        ..TRUST_BASE
    },
    Signature {
        id: "unknown-authority",
        cause: Cause::CaUntrusted,
        all: &[&["certificate signed by unknown authority"]],
        none: NOT_THE_CLUSTER,
        source: "Go",
        hits: &[
            "kubelet[1411]: Unable to register node: Post \"https://10.0.4.9:6443/api/v1/nodes\": x509: certificate signed by unknown authority",
        ],
        misses: &[
            "failed to pull image \"registry.example/pause:3.9\": x509: certificate signed by unknown authority",
            "http: TLS handshake error from 127.0.0.1:44528: remote error: tls: bad certificate",
        ],
        ..TRUST_BASE
    },
    Signature {
        id: "token-unknown",
        cause: Cause::TokenInvalid,
        confidence: Confidence::Sure,
        all: &[&["jws signature", "jws signed token"], &["could not find", "there is no", "no jws"]],
        source: "kubeadm",
        hits: &[
            "couldn't validate the identity of the API Server: could not find a JWS signature in the cluster-info ConfigMap for token ID \"q1w2e3\"",
            "[discovery] there is no JWS signed token in the cluster-info ConfigMap",
        ],
        misses: &["[discovery] Cluster info signature and contents are valid"],
        ..TRUST_BASE
    },
    Signature {
        id: "token-refused",
        cause: Cause::TokenInvalid,
        all: &[
            &[
                "cannot create certificate signing request",
                "certificatesigningrequest",
                "bootstrap",
                "bearer token",
            ],
            &["unauthorized", "invalid bearer token"],
        ],
        none: &["is forbidden"],
        source: "kubelet",
        hits: &[
            "kubelet[1411]: failed to run Kubelet: cannot create certificate signing request: Unauthorized",
            "Unable to authenticate the request: invalid bearer token",
        ],
        misses: &[
            "cannot create certificate signing request: certificatesigningrequests is forbidden: User \"system:bootstrap:q1w2e3\" cannot create resource",
            "kubelet[1411]: Failed to watch *v1.Node: Unauthorized",
        ],
        ..TRUST_BASE
    },
];

const FIRST_BOOT_BASE: Signature = Signature { part: Part::FirstBoot, reboot: ONCE_ONLY, ..BASE };

/// What the first boot was told to do, and did not.
pub(super) static FIRST_BOOT: &[Signature] = &[
    Signature {
        id: "payload-not-readable",
        cause: Cause::BootstrapDataUnavailable,
        all: &[
            &["user_data.py", "failed to fetch config", "failed to acquire config", "secret-userdata"],
            &[
                "no such file or directory",
                "access denied",
                "accessdenied",
                "not found",
                "status code: 403",
                "404",
            ],
        ],
        none: &["config drive"],
        source: "cloud-init, Ignition",
        hits: &[
            "cloud-init[2031]: user_data.py[WARNING]: [Errno 2] No such file or directory: '/etc/payload.txt' for url: file:///etc/payload.txt",
            "ignition[400]: failed to fetch config: AccessDenied: Access Denied",
        ],
        misses: &[
            "ignition[590]: failed to fetch config: context deadline exceeded",
            "cloud-init[611]: /bin/sh: /opt/bin/setup: No such file or directory",
        ],
        ..FIRST_BOOT_BASE
    },
    Signature {
        id: "ignition-failed",
        cause: Cause::FirstBootFailed,
        confidence: Confidence::Sure,
        all: &[&[
            "ignition failed",
            "failed to start ignition",
            "failed to fetch config",
            "failed to acquire config",
            "dependency failed for ignition",
            "ignition-fetch.service: failed",
            "ignition-files.service: failed",
            "ignition-disks.service: failed",
        ]],
        taken_back_by: &[Mark::IgnitionDone],
        source: "Ignition, systemd",
        hits: &[
            "[FAILED] Failed to start Ignition (fetch).",
            "ignition[886]: CRITICAL : Ignition failed: failed to create files: op(1): file exists",
            "systemd[1]: ignition-files.service: Failed with result 'exit-code'.",
        ],
        misses: &["[  OK  ] Finished Ignition (fetch).", "ignition[886]: GET error: attempt #2"],
        ..FIRST_BOOT_BASE
    },
    Signature {
        id: "user-data-not-understood",
        cause: Cause::FirstBootFailed,
        all: &[&[
            "unhandled non-multipart",
            "failed loading yaml blob",
            "failed at merging in cloud config part",
            "unhandled unknown content-type",
            "config is not valid",
        ]],
        source: "cloud-init, Ignition",
        hits: &[
            "__init__.py[WARNING]: Unhandled non-multipart (text/x-not-multipart) userdata: 'b'#clod-config'...'",
            "util.py[WARNING]: Failed loading yaml blob. Invalid format at line 3 column 1",
        ],
        misses: &[
            "cloud-init[611]: Generating locales... done",
            "ignition[400]: parsing config with SHA512: 00ff",
        ],
        ..FIRST_BOOT_BASE
    },
    Signature {
        // cloud-init is "finished" a line later, and every boot after this one is silent about it.
        id: "user-script-failed",
        cause: Cause::FirstBootFailed,
        consequence: true,
        all: &[
            &[
                "scripts-user",
                "scripts_user",
                "/scripts/part-",
                "/scripts/runcmd",
                "/boothooks/",
                "module runcmd",
                "bootcmd",
                "cloud-final.service",
            ],
            &["failed running", "failed to run module", " failed", "execution error"],
        ],
        none: &["succeeded"],
        source: "cloud-init",
        hits: &[
            "cloud-init[4607]: util.py[WARNING]: Failed running /var/lib/cloud/instance/scripts/runcmd [1]",
            "cc_scripts_user.py[WARNING]: Failed to run module scripts-user (scripts in /var/lib/cloud/instance/scripts)",
            "util.py[WARNING]: Running module scripts-user (<module 'cloudinit.config.cc_scripts_user'>) failed",
            "util.py[WARNING]: Boothooks script /var/lib/cloud/instances/i-1/boothooks/part-001 execution error",
        ],
        misses: &[
            "cloud-init[4607]: Running module scripts-user (<module 'cloudinit.config.cc_scripts_user'>) with frequency once-per-instance",
            "util.py[WARNING]: Running module ntp (<module 'cloudinit.config.cc_ntp'>) failed",
        ],
        ..FIRST_BOOT_BASE
    },
];
