//! Why a machine has a problem: the causes that the engine concludes itself, and those that a catalogue names.
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
        /// Why a subject has a problem.
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

            /// What is wrong, as a clause.
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
    Unknown "RV000" "unknown" Provision "cause unknown" "collect the console log and the kubelet's journal of the machine";
    InstanceErrored "RV101" "instance-not-created" Provision "the cloud reports the instance in state ERROR" "read the fault of the instance; correct quota, image, flavor or host; then let the pool's owner create another";
    StuckBuilding "RV102" "instance-stuck-building" Provision "the instance does not finish building" "ask the cloud operator why the build hangs";
    StuckDeleting "RV103" "instance-stuck-deleting" Stay "the instance does not finish deleting, and another DELETE has no effect" "ask the cloud operator to reset the state of the instance and delete it";
    SecurityGroupMissing "RV104" "security-group-missing" Network "a port is missing a security group of the pool" "add the security group to the port";
    PortUnsecurable "RV105" "port-security-off" Network "port security is off, so the port cannot have a security group" "enable port security on the port, or remove the group from the roster";
    PodRulesMissing "RV106" "pod-rules-missing" Network "the security group has no ingress rules for pod traffic" "add ingress rules for tcp, udp and icmp from the pod ranges";
    GroupUnresolved "RV107" "security-group-unresolved" Network "the security group in the roster matches no group, or several" "name the security group by its id";
    PodsUnreachable "RV108" "security-group-sync-lost" Stay "the Node reports its pods as unreachable although rules and routes are correct" "make the network agents read the security group again: add a harmless rule and remove it";
    DuplicateRoute "RV109" "duplicate-route" Stay "several routes have the Node's pod range as destination" "remove the routes with a dead next hop";
    MissingRoute "RV110" "cloud-route-failed" Ready "the router has no route to the Node's pod range" "add a route to the pod range of the Node";
    RouteLimit "RV111" "route-limit-reached" Ready "the router has as many routes as its limit allows" "raise the route limit, or remove unused routes, before more Nodes join";
    AddressPairMissing "RV112" "address-pair-missing" Cni "the port does not allow the Node's pod range as an address pair" "add the pod range to the allowed address pairs of the port";
    PortNotWired "RV115" "port-not-wired" Network "the port is DOWN although the instance is ACTIVE" "check the network agent of the instance's host";
    NodeDeletedByCloudController "RV201" "node-deleted-not-in-cloud" Stay "the cloud controller deleted the Node although the instance runs" "restart the kubelet, because it registers only at its start; then check which instances the cloud controller sees";
    NodeDeletedByPerson "RV202" "node-object-deleted" Stay "a user deleted the Node although the instance runs" "restart the kubelet, because it registers only at its start";
    InstanceGone "RV203" "instance-terminated" Stay "the instance is terminated; its cloud was asked by id" "no action if that was intended; the Node is a leftover";
    KubeletSilent "RV204" "kubelet-silent" Stay "the kubelet stopped reporting" "check the machine; restart the kubelet or the machine";
    NodeNotReady "RV205" "node-not-ready" Ready "the kubelet reports NotReady" "read the message of the Ready condition";
    RemovedOnPurpose "RV206" "instance-terminated" Stay "the machine is being removed on purpose" "no action";
    NotInService "RV207" "startup-taint-stays" Ready "the Node is Ready but still has a startup taint, so no pod is scheduled on it" "check the add-on that removes the taint: does its pod run on the Node, and what does it log?";
    RemovalStuck "RV208" "node-removal-stuck" Stay "the removal of the Node does not finish" "check the drain: a PodDisruptionBudget or a finalizer blocks it. Finish the removal or undo it; if the Node is gone already, delete the leftover instance";
    DuplicateNode "RV301" "duplicate-node-name" Register "two Nodes claim the same instance" "find out which Node is real before you change either";
    DuplicateInstance "RV302" "duplicate-machine-id" Register "two instances claim the same Node" "find out which instance runs the kubelet before you change either";
    Unclaimed "RV303" "instance-unclaimed" Provision "the instance has the cluster tag but matches no pool" "add the tag of its pool, or delete the instance";
    Contested "RV304" "instance-contested" Provision "the instance matches several pools" "make the pools' tags distinct in the roster";
    InstanceStopped "RV305" "instance-stopped" OsBoot "the instance is shut off" "start it, unless it was stopped on purpose";
    HostImpaired "RV306" "host-impaired" Stay "the cloud reports a failed check of the host" "stop and start the instance, which moves it to another host, or let its group replace it; a reboot keeps the host";
    GuestImpaired "RV307" "guest-impaired" OsBoot "the cloud cannot reach the operating system of the instance" "read its console, then reboot it";
    Announced "RV308" "provider-announced" Stay "the cloud announced a reboot, stop or termination of the instance" "drain the Node and let its owner replace it before that time";
    TakenBack "RV309" "instance-taken-back" Stay "the cloud reclaimed the instance" "no action: the owner of the pool creates another; the Node is a leftover";
    IdentityMissing "RV310" "instance-identity-missing" Authenticate "the instance has no identity in its cloud" "attach an instance role with the rights of its kubelet and the cloud controller";
    ClusterMarkMissing "RV311" "cluster-mark-missing" CloudInitNode "the instance does not have the cluster tag" "add the cluster tag; until then cloud controller and Reveille ignore the instance";
    CloudViewSuspect "RV401" "cloud-view-suspect" Stay "the cloud returned an implausible listing" "check project, endpoint and credentials";
    ClusterViewSuspect "RV402" "cluster-view-suspect" Stay "the API server returned an implausible list of Nodes" "check which API server and which etcd answer";
    RolesMissing "RV403" "service-user-role-missing" Stay "a service user is missing a role on the project" "assign the role to the user on the project, and find out who removed it";
    RolesUnreadable "RV404" "service-user-roles-unreadable" Stay "the roles of a service user cannot be read" "allow the credential to list role assignments, or remove the user from the roster";
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
    /// What is wrong, as a clause.
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
