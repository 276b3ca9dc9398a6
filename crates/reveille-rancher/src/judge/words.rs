//! The text for each predicate: what it means, the first safe step, and what not to do.
//!
//! The module holds texts alone. A step that names a command of Reveille's own names one that only proposes unless the operator
//! tells it to act.

use super::Predicate;

/// What to do about a finding.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Advice {
    /// What it means for the machine and its cluster.
    pub means: &'static str,
    /// The first safe step.
    pub first: &'static str,
    /// What makes it worse.
    pub never: &'static str,
}

const NEVER_FIRST_THE_RECORD: &str = "do not delete the record while its Node exists: Rancher's syncer makes a machine- record of the Node \
at once. Do not strip finalizers. Do not change the cluster before this is mended: hosts without rkeNode are dropped from it, and cleaned.";

impl Predicate {
    /// What to do about it.
    pub const fn advice(self) -> Advice {
        match self {
            Self::Mirror | Self::NoOwner | Self::NoRkeNode => Advice {
                means: "the machine's agent waits for a plan that never comes; the Node itself may be Ready, and is unmanaged: no \
                        upgrade, no sync of labels, and the next change of the cluster may cordon and clean it",
                first: "take the Node out and let the machine register again, Node before record: reveille rancher evict NODE tells each step. \
                        Only where it is the last of its role or cannot be emptied: reveille rancher mend NODE",
                never: NEVER_FIRST_THE_RECORD,
            },
            Self::Duplicate => Advice {
                means: "two writers fight over one machine: state flaps, and the API server carries a write for each of them",
                first: "find out which machines stand behind them: two with one hostname are renamed, and the second is registered \
                        again; one machine with two records is taken out as a whole, Node before records",
                never: "do not delete one of the records while the Node exists: the syncer makes a machine- record at once. Do not guess \
                        which is the right one",
            },
            Self::Orphan => Advice {
                means: "the machine is not under Rancher's control, and will look as if it were",
                first: "look again in a minute. If it stays: drain the Node, delete it, clean the machine, and register it with the \
                        current command",
                never: "do not register it while the Node exists: the agent would be matched with the mirror that is about to be made",
            },
            Self::Undeleted => Advice {
                means: "Rancher's own cleaning of the machine has not been done; its agent cannot be reached, or a drain does not end",
                first: "bring back what the finalizer waits for: the machine's agent or the cluster's agent; or take the Node \
                        out first, as docs/reference/rancher.md says",
                never: "do not strip the finalizer: what it would have done is then never done, and the Node comes back as machine-",
            },
            Self::NoNode => Advice {
                means: "the machine is known to Rancher and not to its cluster",
                first: "on the machine: docker logs kubelet, then docker restart kubelet; a kubelet registers at its start alone. If the \
                        machine is gone, its record may be deleted",
                never: "do not replace the machine before its kubelet was started again",
            },
            Self::BadRepair => Advice {
                means: "Rancher plans this machine with what stands there: a wrong address or role becomes the cluster's own at its next \
                        change",
                first: "compare it with the Node and with a healthy sibling, below, and correct the record in one edit, while the \
                        cluster is not updating",
                never: "do not copy values from the sibling: only the shape is alike. Do not change the cluster before",
            },
        }
    }
}
