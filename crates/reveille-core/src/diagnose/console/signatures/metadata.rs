//! The first boot asks the metadata service for its configuration.

use crate::model::cause::Cause;
use crate::model::incident::Confidence;

use super::{BASE, METADATA, Mark, NO_ANSWER, ONCE_ONLY, Part, Signature};

/// What shows that Ignition got what it asked for.
const FETCHED: &[Mark] = &[Mark::NewBoot, Mark::MetadataAnswered, Mark::IgnitionDone];

const METADATA_BASE: Signature = Signature {
    cause: Cause::MetadataUnavailable,
    part: Part::FirstBoot,
    taken_back_by: &[Mark::NewBoot, Mark::MetadataAnswered, Mark::IgnitionDone, Mark::CloudInitDone],
    ..BASE
};

/// First boot asks for its configuration.
pub(super) static METADATA_SERVICE: &[Signature] = &[
    Signature {
        id: "metadata-network-unreachable",
        cause: Cause::NoNetworkAtBoot,
        unanswered: true,
        all: &[METADATA, &["network is unreachable", "[errno 101]", "error(101,", "os(101)"]],
        source: "Ignition, Afterburn, cloud-init, curl",
        hits: &[
            "ignition[512]: GET error: Get \"http://169.254.169.254/openstack/latest/user_data\": dial tcp 169.254.169.254:80: connect: network is unreachable",
            "url_helper.py[WARNING]: Calling 'http://169.254.169.254/openstack' failed [3/120s]: request error [[Errno 101] Network is unreachable]",
        ],
        misses: &[
            "chronyd[601]: 10.9.9.9: network is unreachable",
            "ignition[512]: GET http://169.254.169.254/openstack/latest/user_data: attempt #2",
        ],
        ..METADATA_BASE
    },
    Signature {
        // A configuration from a config drive may still name files elsewhere.
        id: "ignition-network-unreachable",
        cause: Cause::NoNetworkAtBoot,
        unanswered: true,
        all: &[&["get error: get", "] get "], &["network is unreachable"]],
        none: METADATA,
        taken_back_by: FETCHED,
        source: "Ignition",
        hits: &[
            "ignition[512]: GET error: Get \"https://files.example/oem.raw\": dial tcp 192.0.2.80:443: connect: network is unreachable",
        ],
        misses: &[
            "chronyd[601]: 10.9.9.9: network is unreachable",
            "ignition[512]: GET https://files.example/oem.raw: attempt #2",
        ],
        ..METADATA_BASE
    },
    Signature {
        id: "ignition-file-no-answer",
        cause: Cause::NoEgress,
        unanswered: true,
        all: &[&["get error: get", "] get "], NO_ANSWER],
        none: &["169.254.169.254", "network is unreachable", "lookup "],
        taken_back_by: FETCHED,
        source: "Ignition",
        hits: &[
            "ignition[512]: GET error: Get \"https://files.example/oem.raw\": dial tcp 192.0.2.80:443: i/o timeout",
        ],
        misses: &[
            "ignition[512]: GET error: Get \"http://169.254.169.254/x\": dial tcp 169.254.169.254:80: i/o timeout",
            "ignition[512]: GET error: Get \"https://files.example/x\": dial tcp: lookup files.example on 10.0.4.2:53: i/o timeout",
        ],
        ..METADATA_BASE
    },
    Signature {
        id: "metadata-no-answer",
        unanswered: true,
        all: &[METADATA, NO_ANSWER],
        none: &["network is unreachable", "[errno 101]"],
        source: "Ignition, Afterburn, cloud-init, curl",
        hits: &[
            "ignition[512]: GET error: Get \"http://169.254.169.254/openstack/latest/user_data\": dial tcp 169.254.169.254:80: i/o timeout",
            "cloud-init[861]: url_helper.py[WARNING]: Calling 'http://169.254.169.254/2009-04-04/meta-data/instance-id' failed [2/120s]: request error [('Connection aborted.', error(113, 'No route to host'))]",
            "curl: (28) Connection to 169.254.169.254 port 80 timed out",
        ],
        misses: &[
            "Get \"https://10.0.0.9:6443/api/v1/nodes\": dial tcp 10.0.0.9:6443: i/o timeout",
            "cloud-init[861]: Calling 'http://169.254.169.254/openstack' (timeout=10)",
        ],
        ..METADATA_BASE
    },
    Signature {
        id: "metadata-refused",
        all: &[METADATA, &["connection refused", "[errno 111]", "error(111,"]],
        source: "Ignition, Afterburn, cloud-init, curl",
        hits: &[
            "coreos-metadata[849]: WARN failed to fetch http://169.254.169.254/latest/meta-data/hostname: connection refused",
        ],
        misses: &["dial tcp 127.0.0.1:10248: connect: connection refused"],
        ..METADATA_BASE
    },
    Signature {
        id: "metadata-bad-status",
        all: &[
            METADATA,
            &[
                "bad status code [4",
                "bad status code [5",
                "http error 4",
                "http error 5",
                "client error: 4",
                "server error: 5",
                "status client error (4",
                "status server error (5",
                "returned error: 4",
                "returned error: 5",
                "http/1.1 5",
            ],
        ],
        // Keys that an instance need not have.
        none: &["public-keys", "public-ipv4", "vendor_data", "vendor-data"],
        source: "cloud-init, Afterburn, curl",
        hits: &[
            "url_helper.py[WARNING]: Calling 'http://169.254.169.254/2009-04-04/meta-data/instance-id' failed [4/120s]: bad status code [500]",
            "afterburn[701]: http://169.254.169.254/latest/meta-data/instance-id: HTTP status server error (503 Service Unavailable)",
        ],
        misses: &[
            "coreos-metadata[849]: http://169.254.169.254/latest/meta-data/public-keys: HTTP status client error (404 Not Found)",
            "url_helper.py[WARNING]: Calling 'http://10.0.0.7/config' failed [4/120s]: bad status code [500]",
        ],
        ..METADATA_BASE
    },
    Signature {
        id: "ignition-bad-answer",
        all: &[
            &["ignition["],
            &[
                "get result: internal server error",
                "get result: service unavailable",
                "get result: bad gateway",
                "get result: bad request",
                "get result: gateway timeout",
            ],
        ],
        source: "Ignition",
        hits: &["[   21.1] ignition[512]: GET result: Internal Server Error"],
        misses: &[
            "[   21.1] ignition[512]: GET result: OK",
            "[   21.1] ignition[512]: GET result: Not Found",
        ],
        ..METADATA_BASE
    },
    Signature {
        // The line does not say who was asked. A metadata service asks for no permission; what a configuration points to
        // mostly does, and then a later line says so.
        id: "ignition-refused",
        confidence: Confidence::Possible,
        all: &[&["ignition["], &["get result: forbidden", "get result: unauthorized"]],
        source: "Ignition",
        hits: &["[   21.1] ignition[512]: GET result: Forbidden"],
        misses: &["[   21.1] ignition[512]: GET result: Internal Server Error"],
        ..METADATA_BASE
    },
    Signature {
        id: "no-datasource",
        all: &[&[
            "giving up on md from",
            "no active metadata service found",
            "no instance datasource found",
            "used fallback datasource",
            "datasource datasourcenone",
            "datasource none",
        ]],
        taken_back_by: &[Mark::NewBoot, Mark::CloudInitDone],
        source: "cloud-init",
        hits: &[
            "DataSourceEc2.py[CRITICAL]: Giving up on md from ['http://169.254.169.254/2009-04-04/meta-data/instance-id'] after 126 seconds",
            "cloud-init[861]: Cloud-init v. 23.4 finished at Mon, 05 Feb 2024. Datasource DataSourceNone.  Up 141.02 seconds",
            "cc_final_message.py[WARNING]: Used fallback datasource",
        ],
        misses: &[
            "cloud-init[861]: Cloud-init v. 23.4 finished at Mon, 05 Feb 2024. Datasource DataSourceOpenStackLocal.  Up 21 seconds",
        ],
        ..METADATA_BASE
    },
    Signature {
        // Ignition then finishes "successfully", with nothing to do: only a running kubelet says otherwise.
        id: "ignition-went-on-without-config",
        confidence: Confidence::Sure,
        all: &[&["neither config drive nor metadata service were available", "continuing without a config"]],
        taken_back_by: &[Mark::KubeletStarted],
        reboot: ONCE_ONLY,
        source: "Ignition",
        hits: &[
            "[   67.2] ignition[498]: neither config drive nor metadata service were available in time. Continuing without a config...",
        ],
        misses: &[
            "ignition[498]: no config at \"/usr/lib/ignition/user.ign\"",
            "ignition[498]: no config URL provided",
        ],
        ..METADATA_BASE
    },
];
