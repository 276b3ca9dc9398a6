//! Which fields a roster file has, section by section: one table.
//!
//! The readers take their field names from this table, so that "unknown field" and "did you mean" always agree with what
//! is read. For a name of another section, the complaint says where it belongs.

/// A section: a map with a closed set of fields.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Shape {
    /// Its path in messages.
    pub(super) path: &'static str,
    /// Its fields.
    pub(super) fields: &'static [&'static str],
}

pub(super) const DOCUMENT: Shape =
    Shape { path: "the document", fields: &["apiVersion", "kind", "metadata", "spec"] };
pub(super) const METADATA: Shape = Shape { path: "metadata", fields: &["name"] };
pub(super) const SPEC: Shape = Shape {
    path: "spec",
    fields: &["cluster", "clouds", "network", "access", "pools", "limits", "timing", "rancher", "hot"],
};
pub(super) const CLUSTER: Shape = Shape { path: "spec.cluster", fields: &["kubeconfig", "context"] };
pub(super) const RANCHER: Shape = Shape {
    path: "spec.rancher",
    fields: &["kubeconfig", "context", "cluster", "hot", "etcd", "repair", "looksApart", "planWithin"],
};
pub(super) const RANCHER_REPAIR: Shape = Shape { path: "spec.rancher.repair", fields: &["evict", "mend"] };
pub(super) const RANCHER_ETCD: Shape =
    Shape { path: "spec.rancher.etcd", fields: &["endpoints", "ca", "cert", "key"] };
pub(super) const HOT: Shape = Shape { path: "spec.hot", fields: &["kinds", "sustained", "atOnce"] };
pub(super) const RANCHER_HOT: Shape = Shape { path: "spec.rancher.hot", fields: HOT.fields };
pub(super) const CLOUD: Shape = Shape { path: "spec.clouds[]", fields: &["name", "openstack", "ec2"] };
pub(super) const OPENSTACK: Shape =
    Shape { path: "spec.clouds[].openstack", fields: &["cloud", "cloudsFile"] };
pub(super) const EC2: Shape =
    Shape { path: "spec.clouds[].ec2", fields: &["region", "profile", "endpoint", "cluster"] };
pub(super) const NETWORK: Shape =
    Shape { path: "spec.network", fields: &["podCIDRs", "router", "addressPairs", "unreachableConditions"] };
pub(super) const ROUTER: Shape = Shape { path: "spec.network.router", fields: &["cloud", "id"] };
pub(super) const ACCESS: Shape = Shape { path: "spec.access", fields: &["users", "repair", "checkEvery"] };
pub(super) const SERVICE_USER: Shape =
    Shape { path: "spec.access.users[]", fields: &["cloud", "user", "roles"] };
pub(super) const USER: Shape = Shape { path: "spec.access.users[].user", fields: &["name", "domain", "id"] };
pub(super) const ROLE: Shape = Shape { path: "spec.access.users[].roles[]", fields: &["name", "id"] };
pub(super) const POOL: Shape = Shape {
    path: "spec.pools[]",
    fields: &[
        "name",
        "cloud",
        "owned",
        "selector",
        "securityGroups",
        "startupTaints",
        "min",
        "join",
        "deadlines",
        "repair",
        "keep",
        "paused",
        "throughGroup",
    ],
};
pub(super) const OWNED: Shape = Shape { path: "spec.pools[].owned", fields: &["tag", "metadata", "pool"] };
pub(super) const OWNED_POOL: Shape = Shape { path: "spec.pools[].owned.pool", fields: &["tag", "metadata"] };
pub(super) const SELECTOR: Shape = Shape { path: "spec.pools[].selector", fields: &["matchLabels"] };
pub(super) const GROUP: Shape = Shape { path: "spec.pools[].securityGroups[]", fields: &["name", "id"] };
pub(super) const JOIN: Shape = Shape { path: "spec.pools[].join", fields: &["within"] };
pub(super) const DEADLINES: Shape = Shape {
    path: "spec.pools[].deadlines",
    fields: &["build", "delete", "notReady", "vanished", "inService", "dwell", "confirm"],
};
pub(super) const KEEP: Shape = Shape { path: "spec.pools[].keep", fields: &["for", "atMost", "when"] };
pub(super) const REPAIR: Shape =
    Shape { path: "spec.pools[].repair", fields: &["network", "rejoin", "reboot", "replace", "cleanup"] };
pub(super) const LIMITS: Shape = Shape {
    path: "spec.limits",
    fields: &["atOnce", "perHour", "freezeAbove", "networkAtOnce", "sameFaultStopsAt"],
};
pub(super) const TIMING: Shape = Shape {
    path: "spec.timing",
    fields: &[
        "cloudPeriod",
        "cloudFullPeriod",
        "cloudStaleAfter",
        "clusterStaleAfter",
        "leaseSilentAfter",
        "agentSilentAfter",
        "pauseJump",
        "shrink",
        "backoffMin",
        "backoffMax",
        "tries",
        "verifyWithin",
        "settle",
        "rolloutQuiet",
    ],
};

const ALL: [Shape; 29] = [
    DOCUMENT,
    METADATA,
    SPEC,
    CLUSTER,
    RANCHER,
    RANCHER_REPAIR,
    RANCHER_ETCD,
    HOT,
    RANCHER_HOT,
    CLOUD,
    OPENSTACK,
    EC2,
    NETWORK,
    ROUTER,
    ACCESS,
    SERVICE_USER,
    USER,
    ROLE,
    POOL,
    OWNED,
    OWNED_POOL,
    SELECTOR,
    GROUP,
    JOIN,
    DEADLINES,
    REPAIR,
    KEEP,
    LIMITS,
    TIMING,
];

/// A field of more sections than this is in none of them by mistake.
const HOMES_TOLD: usize = 3;

/// A name is the first thing that people try.
const OWNED_BY: &str = "prove the owner by what is set on the instance: tag: \"key=value\" or metadata: {key: value}. A name proves \
                        nothing";

impl Shape {
    /// What a complaint suggests instead of an unknown field.
    pub(super) fn instead_of(self, name: &str) -> String {
        if let Some(near) = nearest(name, self.fields) {
            return format!("did you mean {near:?}?");
        }
        if self == OWNED || self == OWNED_POOL {
            return OWNED_BY.to_owned();
        }
        if self == SELECTOR {
            return format!("write the label under it: matchLabels: {{{name}: …}}");
        }
        let homes = ALL.iter().filter(|shape| **shape != self && shape.fields.contains(&name));
        let homes: Vec<&str> = homes.map(|shape| shape.path).take(HOMES_TOLD + 1).collect();
        if !homes.is_empty() && homes.len() <= HOMES_TOLD {
            return format!("{name:?} belongs under {}", homes.join(" or "));
        }
        format!("leave it out; {} has: {}", self.path, self.fields.join(", "))
    }
}

/// The known word that the author most likely meant, if one is similar enough.
pub(super) fn nearest<'w>(word: &str, known: &[&'w str]) -> Option<&'w str> {
    let plain = |text: &str| text.chars().filter(|c| c.is_alphanumeric()).collect::<String>().to_lowercase();
    let meant = plain(word);
    if meant.is_empty() || meant.len() > 64 {
        return None;
    }
    let abbreviated = |candidate: &&&str| {
        let candidate = plain(candidate);
        candidate.len() >= 3
            && meant.len() >= 3
            && (meant.starts_with(&candidate) || candidate.starts_with(&meant))
    };
    let distance = |candidate: &str| strsim::osa_distance(&meant, &plain(candidate));
    let best = known.iter().copied().min_by_key(|candidate| distance(candidate))?;
    let tolerated = if meant.chars().count() < 5 { 1 } else { 2 };
    if distance(best) <= tolerated {
        return Some(best);
    }
    known.iter().find(abbreviated).copied()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn slips_of_the_hand_are_understood_and_guesses_are_not_made() {
        let table = [
            (SPEC, "pool", "did you mean \"pools\"?"),
            (TIMING, "cloud_stale_after", "did you mean \"cloudStaleAfter\"?"),
            (NETWORK, "podCidrs", "did you mean \"podCIDRs\"?"),
            (POOL, "securityGroup", "did you mean \"securityGroups\"?"),
            (LIMITS, "atonce", "did you mean \"atOnce\"?"),
            (POOL, "minimum", "did you mean \"min\"?"),
            (SPEC, "perHour", "\"perHour\" belongs under spec.limits"),
            (POOL, "notReady", "\"notReady\" belongs under spec.pools[].deadlines"),
            (SPEC, "repair", "\"repair\" belongs under spec.rancher or spec.access or spec.pools[]"),
            (
                LIMITS,
                "name",
                "leave it out; spec.limits has: atOnce, perHour, freezeAbove, networkAtOnce, sameFaultStopsAt",
            ),
            (OWNED, "name", OWNED_BY),
            (JOIN, "taint", "leave it out; spec.pools[].join has: within"),
        ];
        for (shape, name, expected) in table {
            assert_eq!(shape.instead_of(name), expected);
        }
    }
}
