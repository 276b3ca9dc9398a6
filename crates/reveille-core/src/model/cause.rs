//! Why a machine is amiss: what the engine concludes itself, and what a catalogue names.
//!
//! ```text
//!  facts of clouds and cluster ─▶ engine ──────────────────────▶ Cause::SecurityGroupMissing, …   a closed list, below
//!  texts (consoles, conditions) ─▶ catalogue, outside the core ─▶ Cause::Catalogued(entry)        an open one, as data
//! ```
//!
//! One line of the table is one cause that the engine's own rules prove. What only words prove is not in it: those causes
//! are the catalogue's, which a site may add to, and an [`Entry`] carries all that the engine has to know of one. Labels
//! are the project's taxonomy (the same words wherever a cause is named: files, metrics, reports); codes are stable and
//! never reused, and are the same in both lists. This file only names: what proves a cause is decided elsewhere.

use std::fmt;
use std::sync::Arc;

use serde::{Deserialize, Serialize};

use super::id::{CauseCode, CauseLabel};
use super::stage::Stage;

macro_rules! causes {
    ($($name:ident $code:literal $label:literal $stage:ident $says:literal $remedy:literal;)*) => {
        /// Why something is amiss.
        ///
        /// Of the engine's own the code is written, of a catalogue's all that it says: another catalogue may be read by the time
        /// that a line is read, or none.
        #[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
        pub enum Cause {
            $(#[doc = $says] #[serde(rename = $code)] $name,)*
            /// What a catalogue describes.
            #[serde(rename = "catalogued")]
            Catalogued(Arc<Entry>),
        }

        impl Cause {
            /// Every cause that the engine tells by itself, in order of its code.
            pub const OWN: &'static [Self] = &[$(Self::$name,)*];

            /// Stable code with a page of its own.
            pub fn code(&self) -> &str {
                match self { $(Self::$name => $code,)* Self::Catalogued(entry) => entry.code.as_str() }
            }

            /// The taxonomy's label.
            pub fn label(&self) -> &str {
                match self { $(Self::$name => $label,)* Self::Catalogued(entry) => entry.label.as_str() }
            }

            /// The stage where this cause usually stops a machine.
            pub fn stage(&self) -> Stage {
                match self { $(Self::$name => Stage::$stage,)* Self::Catalogued(entry) => entry.stage }
            }

            /// What is amiss, as a clause.
            pub fn says(&self) -> &str {
                match self { $(Self::$name => $says,)* Self::Catalogued(entry) => &entry.says }
            }

            /// What a person would do about it.
            pub fn remedy(&self) -> &str {
                match self { $(Self::$name => $remedy,)* Self::Catalogued(entry) => &entry.remedy }
            }
        }
    };
}

causes! {
    Unknown "RV000" "unknown" Provision "nothing read so far explains it" "collect the console log and the kubelet's journal of the machine";
    InstanceErrored "RV101" "instance-not-created" Provision "the cloud could not make or keep the instance" "read the fault; correct quota, image, flavor or host, then let the pool make another";
    StuckBuilding "RV102" "instance-stuck-building" Provision "the instance does not finish building" "ask the cloud's operator why the build hangs";
    StuckDeleting "RV103" "instance-stuck-deleting" Stay "the instance does not finish deleting; another DELETE does nothing" "ask the cloud's operator to reset its state and delete it";
    SecurityGroupMissing "RV104" "security-group-missing" Network "a port of it lacks a security group that the pool needs" "add the group to the port";
    PortUnsecurable "RV105" "port-security-off" Network "a port of it cannot carry a security group" "turn port security on, or take the group out of the roster";
    PodRulesMissing "RV106" "pod-rules-missing" Network "the group lets no pod traffic in" "add ingress rules for tcp, udp and icmp from the pod ranges";
    GroupUnresolved "RV107" "security-group-unresolved" Network "the roster's security group is not exactly one group of the project" "name the group by its id";
    PodsUnreachable "RV108" "security-group-sync-lost" Stay "the node says that its pods cannot be reached although rules and routes are right" "make the data plane re-read: put a harmless rule and take it back";
    DuplicateRoute "RV109" "duplicate-route" Stay "more than one route leads to its pod range" "remove the routes whose next hop is nobody";
    MissingRoute "RV110" "cloud-route-failed" Ready "no route leads to its pod range" "make the router hold a route from the pod range to the node";
    RouteLimit "RV111" "route-limit-reached" Ready "the router holds as many routes as it may" "raise the limit, or remove routes that are not needed, before more nodes come";
    AddressPairMissing "RV112" "address-pair-missing" Cni "its port does not allow its pod range as an address pair" "add the pod range to the port's allowed address pairs";
    PortNotWired "RV115" "port-not-wired" Network "its port is not wired although the instance runs" "look at the network agent of its host";
    NodeDeletedByCloudController "RV201" "node-deleted-not-in-cloud" Stay "the cloud controller deleted its Node although the instance runs" "restart the kubelet: it registers only when it starts; then look at the controller's view of the cloud";
    NodeDeletedByPerson "RV202" "node-object-deleted" Stay "somebody deleted its Node and the instance runs" "restart the kubelet: it registers only when it starts";
    InstanceGone "RV203" "instance-terminated" Stay "its instance is gone, asked by id" "none if it was wanted; the Node object is left over";
    KubeletSilent "RV204" "kubelet-silent" Stay "its kubelet has stopped answering" "look at the machine; restart the kubelet or the machine";
    NodeNotReady "RV205" "node-not-ready" Ready "its kubelet says that it is not ready" "read the condition's message";
    RemovedOnPurpose "RV206" "instance-terminated" Stay "it is being removed on purpose" "none";
    NotInService "RV207" "startup-taint-stays" Ready "its node is Ready and still carries a startup taint, so that nothing is put on it" "look at the add-on that takes the taint away: whether its pod runs on the node, and what it logs";
    RemovalStuck "RV208" "node-removal-stuck" Stay "somebody takes its node away, and it does not go" "look at the drain: a PodDisruptionBudget or a finalizer holds it up; let whoever put the sign finish or take it back; where its node is gone already, remove the instance that was left behind";
    DuplicateNode "RV301" "duplicate-node-name" Register "two nodes claim one instance" "find out which of the two is real before touching either";
    DuplicateInstance "RV302" "duplicate-machine-id" Register "two instances claim one node" "find out which of the two runs the kubelet before touching either";
    Unclaimed "RV303" "instance-unclaimed" Provision "the instance carries the cluster's mark and no pool's" "mark it with its pool, or remove it by hand";
    Contested "RV304" "instance-contested" Provision "several pools claim the instance" "make the roster's marks distinct";
    InstanceStopped "RV305" "instance-stopped" OsBoot "the instance is shut off" "start it, if nobody stopped it on purpose";
    HostImpaired "RV306" "host-impaired" Stay "the provider says that its host is impaired" "stop it and start it, which moves it to another host, or let its group replace it; a reboot stays where it is";
    GuestImpaired "RV307" "guest-impaired" OsBoot "the provider does not reach the machine's own system" "read its console, then reboot it";
    Announced "RV308" "provider-announced" Stay "the provider announced that it will reboot, stop, end or take it" "drain it and let its owner replace it before then";
    TakenBack "RV309" "instance-taken-back" Stay "the provider took the instance back" "none: whoever keeps the pool makes another; the Node object is left over";
    IdentityMissing "RV310" "instance-identity-missing" Authenticate "it has no identity towards its cloud" "give it an instance role with the rights that its kubelet and the cloud controller need";
    ClusterMarkMissing "RV311" "cluster-mark-missing" CloudInitNode "its instance does not carry the cluster's mark" "tag the instance with the cluster's mark: until then neither the cloud controller nor the roll counts it as the cluster's";
    CloudViewSuspect "RV401" "cloud-view-suspect" Stay "the cloud's listing cannot be true" "check project, endpoint and credentials";
    ClusterViewSuspect "RV402" "cluster-view-suspect" Stay "the cluster's node list cannot be true" "check which API server and which etcd answer";
    RolesMissing "RV403" "service-user-role-missing" Stay "a service user lacks a role that it needs on the project" "assign the role to the user on the project, and find out who took it away";
    RolesUnreadable "RV404" "service-user-roles-unreadable" Stay "nobody may tell which roles a service user holds" "let the credential list role assignments, or take the user out of the roster";
}

/// A cause as its catalogue describes it: words for people, and what a decision rests on.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
#[serde(rename_all = "camelCase", deny_unknown_fields)]
pub struct Entry {
    /// Stable code with a page of its own.
    pub code: CauseCode,
    /// The taxonomy's label.
    pub label: CauseLabel,
    /// The stage where it usually stops a machine.
    pub stage: Stage,
    /// What is amiss, as a clause.
    pub says: Arc<str>,
    /// What a person would do about it.
    pub remedy: Arc<str>,
    /// The same, as commands to copy.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub commands: Vec<Arc<str>>,
    /// What to collect when it is not sure.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub collect: Vec<Arc<str>>,
    /// It is the first boot that came to nothing: such a machine has never joined.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub first_boot: bool,
    /// Why a reboot is of no use against it, where it is not.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub no_reboot: Option<Arc<str>>,
    /// Why another machine in its place is of no use either.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub no_replace: Option<Arc<str>>,
}

impl Entry {
    /// One of which no more is said than its names.
    pub fn named(code: CauseCode, label: CauseLabel, stage: Stage) -> Self {
        Self {
            says: label.shared(),
            remedy: Arc::from("read its page: reveille explain, with its code"),
            code,
            label,
            stage,
            commands: Vec::new(),
            collect: Vec::new(),
            first_boot: false,
            no_reboot: None,
            no_replace: None,
        }
    }
}

impl Cause {
    /// The cause of that code among those that the engine tells by itself.
    pub fn from_code(code: &str) -> Option<Self> {
        Self::OWN.iter().find(|cause| cause.code() == code).cloned()
    }

    /// The catalogue's words on it, where it is the catalogue's.
    pub fn entry(&self) -> Option<&Entry> {
        match self {
            Self::Catalogued(entry) => Some(entry),
            _ => None,
        }
    }

    /// Its first boot came to nothing: it has never joined, and a reboot does not repeat a first boot.
    pub fn is_of_the_first_boot(&self) -> bool {
        self.entry().is_some_and(|entry| entry.first_boot)
    }
}

impl fmt::Display for Cause {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.pad(self.label())
    }
}

#[cfg(test)]
mod tests {
    use super::Cause;

    #[test]
    fn codes_are_unique_and_in_order() {
        let codes: Vec<&str> = Cause::OWN.iter().map(|cause| cause.code()).collect();
        let mut sorted = codes.clone();
        sorted.sort_unstable();
        sorted.dedup();
        assert_eq!(codes, sorted);
    }
}
