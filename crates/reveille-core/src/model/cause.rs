//! Why a machine is amiss: a closed list, each with its code, label, stage and remedy in words.
//!
//! One line of the table is one cause. Labels are the project's taxonomy (the same words wherever a cause is named:
//! files, metrics, reports). Codes are stable and never reused. What a cause *proves* is decided by the rules in
//! `diagnose`; what may be *done* about it is decided in `plan`. This table only names.

use std::fmt;

use super::stage::Stage;

macro_rules! causes {
    ($($name:ident $code:literal $label:literal $stage:ident $says:literal $remedy:literal;)*) => {
        /// Why something is amiss.
        #[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
        pub enum Cause {
            $(#[doc = $says] $name,)*
        }

        impl Cause {
            /// Every cause, in order of its code.
            pub const ALL: &'static [Self] = &[$(Self::$name,)*];

            /// Stable code with a page of its own.
            pub const fn code(self) -> &'static str { match self { $(Self::$name => $code,)* } }

            /// The taxonomy's label.
            pub const fn label(self) -> &'static str { match self { $(Self::$name => $label,)* } }

            /// The stage where this cause usually stops a machine.
            pub const fn stage(self) -> Stage { match self { $(Self::$name => Stage::$stage,)* } }

            /// What is amiss, as a clause.
            pub const fn says(self) -> &'static str { match self { $(Self::$name => $says,)* } }

            /// What a person would do about it.
            pub const fn remedy(self) -> &'static str { match self { $(Self::$name => $remedy,)* } }
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
    NoNetworkAtBoot "RV113" "no-network-at-boot" OsBoot "its first boot had no network" "repair DHCP, port or driver, or use a config drive; a reboot does not repeat a first boot";
    MetadataUnavailable "RV114" "metadata-service-unavailable" FetchConfig "its first boot could not read its configuration from the metadata service" "repair the metadata service, or use a config drive";
    PortNotWired "RV115" "port-not-wired" Network "its port is not wired although the instance runs" "look at the network agent of its host";
    ApiUnreachable "RV116" "apiserver-unreachable" Network "it cannot reach the API server" "open the path: security group, route, balancer";
    TokenInvalid "RV117" "bootstrap-token-invalid" Authenticate "its bootstrap token is not accepted" "make a new token and join again";
    FirstBootFailed "RV118" "userdata-script-failed" FetchConfig "its first-boot configuration failed" "repair the user data, then replace the machine; a reboot does not repeat a first boot";
    BootFailed "RV119" "os-boot-failed" OsBoot "its operating system did not come up" "read the console; reboot it once, then repair the image or disk and replace the machine";
    DnsFailing "RV120" "dns-resolution-failure" Network "a name that the join needs does not resolve" "repair the resolver, the record, or the zone's association";
    NoEgress "RV121" "no-egress" Network "it has no way out to what its first boot needs" "give its subnet a way out, or mirror what it needs";
    EndpointWrong "RV122" "server-endpoint-wrong" Network "it asks an address that is not the API server's" "write the right address, a balancer's or a virtual one, into its configuration";
    ClockSkew "RV123" "clock-skew" Trust "its clock is off, so certificates are not valid to it" "repair its time source";
    CaUntrusted "RV124" "ca-untrusted" Trust "it does not hold the CA that signed the API server's certificate" "give it the right CA";
    CaHashMismatch "RV125" "ca-hash-mismatch" Trust "the CA that the API server shows is not the pinned one" "join again with the present hash";
    CertificateNameMismatch "RV126" "apiserver-cert-san-mismatch" Trust "the address that it asks is not in the API server's certificate" "add the address to the certificate, or use one that is in it";
    BootstrapDataUnavailable "RV127" "bootstrap-data-unavailable" FetchConfig "the payload that its first boot points to could not be fetched" "make the payload readable by the machine, then replace the machine";
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
    CloudViewSuspect "RV401" "cloud-view-suspect" Stay "the cloud's listing cannot be true" "check project, endpoint and credentials";
    ClusterViewSuspect "RV402" "cluster-view-suspect" Stay "the cluster's node list cannot be true" "check which API server and which etcd answer";
}

impl Cause {
    /// The cause of that code.
    pub fn from_code(code: &str) -> Option<Self> {
        Self::ALL.iter().copied().find(|cause| cause.code() == code)
    }

    /// Its first boot came to nothing: it has never joined, and a reboot does not repeat a first boot.
    pub const fn is_of_the_first_boot(self) -> bool {
        matches!(
            self,
            Self::NoNetworkAtBoot
                | Self::MetadataUnavailable
                | Self::FirstBootFailed
                | Self::BootstrapDataUnavailable
        )
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
        let codes: Vec<&str> = Cause::ALL.iter().map(|cause| cause.code()).collect();
        let mut sorted = codes.clone();
        sorted.sort_unstable();
        sorted.dedup();
        assert_eq!(codes, sorted);
    }
}
