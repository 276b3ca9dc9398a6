//! What can be wrong with a machine from its beginning: one line each, with the stage at which it stops.
//!
//! ```text
//!  order ─▶ Build ─▶ Wire ─▶ Kernel ─▶ FirstBoot ─▶ Kubelet ─▶ Registration ─▶ Initialisation ─▶ PodNetwork ─▶ Health ─▶ Silence
//! ```
//!
//! Each of the fourteen stages that a machine can stop at has a trouble of its own, so that a right diagnosis can be told
//! from a lucky one. [`Trouble::stage`] and [`Trouble::cause`] are the truth that diagnoses are held against; a trouble for
//! which there is no word yet has none, and then "unknown" is the honest answer. What is seen of it from
//! outside (console, port, node) follows in `vm` from where it [`Bites`].

use reveille_core::model::cause::Cause;
use reveille_core::model::stage::Stage;

/// Where on a machine's way a trouble bites.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) enum Bites {
    /// The cloud does not make it.
    Build,
    /// Its port leads nowhere.
    Wire,
    /// The guest does not boot.
    Kernel,
    /// Its first boot comes to nothing, and is not repeated.
    FirstBoot,
    /// Its kubelet ends as soon as it starts.
    Kubelet,
    /// Its kubelet runs, and no Node appears.
    Registration,
    /// Its Node keeps the taint of the uninitialised.
    Initialisation,
    /// Its Node has no pod network.
    PodNetwork,
    /// Its kubelet calls itself unhealthy.
    Health,
    /// Its kubelet says nothing any more.
    Silence,
}

macro_rules! troubles {
    ($($name:ident $stage:ident $bites:ident $cause:expr, $lasting:literal $says:literal $doc:literal;)*) => {
        /// What is wrong with a machine.
        #[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
        pub enum Trouble {
            $(#[doc = $doc] $name,)*
        }

        impl Trouble {
            /// Everything that can be wrong with a machine.
            pub const ALL: &'static [Self] = &[$(Self::$name,)*];

            /// The stage that it does not pass.
            pub const fn stage(self) -> Stage { match self { $(Self::$name => Stage::$stage,)* } }

            /// The label of the cause that names it; none where the catalogue has no word for it.
            pub const fn label(self) -> Option<&'static str> { match self { $(Self::$name => $cause,)* } }

            /// The cause that names it.
            pub fn cause(self) -> Option<Cause> { self.label().and_then(crate::catalogue::cause) }

            /// Neither a reboot nor a start ends it.
            pub const fn is_lasting(self) -> bool { match self { $(Self::$name => $lasting,)* } }

            /// What is wrong, as a clause.
            pub const fn sentence(self) -> &'static str { match self { $(Self::$name => $says,)* } }

            pub(crate) const fn bites(self) -> Bites { match self { $(Self::$name => Bites::$bites,)* } }
        }
    };
}

troubles! {
    BuildFails Provision Build Some("instance-not-created"), true "the cloud finds no host for it" "The cloud cannot make it: it ends in an error state before any guest runs.";
    BuildHangs Provision Build Some("instance-stuck-building"), true "its build never ends" "The cloud never finishes making it.";
    PortNotWired Network Wire Some("port-not-wired"), true "its port is never wired" "Its host's network agent never wires its port: it is DOWN, and the first boot has no network.";
    KernelPanics OsBoot Kernel Some("os-boot-failed"), true "its kernel panics" "Its kernel finds no root file system.";
    NoNetwork OsBoot FirstBoot Some("no-network-at-boot"), true "its first boot finds no network" "Its first boot finds no network, although its port is wired.";
    RuntimeDown Runtime Kubelet Some("container-runtime-down"), true "its container runtime does not run" "Its container runtime ends at once, and so does its kubelet.";
    MetadataDown FetchConfig FirstBoot Some("metadata-service-unavailable"), true "its first boot gets nothing from the metadata service" "Its first boot gets nothing from the metadata service.";
    PayloadGone FetchConfig FirstBoot Some("bootstrap-data-unavailable"), true "its first boot may not read its payload" "What its configuration points to may not be read.";
    ClockWrong Trust Kubelet Some("clock-skew"), true "its clock is years behind" "Its clock is years behind: no certificate is valid yet.";
    CaWrong Trust Kubelet Some("ca-untrusted"), true "it trusts another CA" "It holds another CA than the one that signed the API server's certificate.";
    BadToken Authenticate Kubelet Some("bootstrap-token-invalid"), true "its bootstrap token is not accepted" "Its bootstrap token is not accepted.";
    Broken KubeletStart Kubelet None, true "its kubelet cannot run" "Its kubelet has no configuration and cannot run, and a reboot does not change that.";
    RegisterRefused Register Registration Some("node-identity-mismatch"), true "the API server lets it make no node" "The API server forbids it to make its Node.";
    NotApproved Approve Registration Some("csr-not-approved"), true "its certificate is not approved" "Its request for a certificate waits for approval.";
    NeverInitialised CloudInitNode Initialisation Some("node-not-ready"), true "the cloud controller does not know it" "The cloud controller finds no instance for its Node and leaves it uninitialised.";
    NoPodNetwork Cni PodNetwork Some("cni-not-installed"), true "its pod network never comes up" "Its network plugin has no configuration.";
    PlegStuck Ready Health Some("container-runtime-down"), false "its kubelet says that it is unhealthy" "Its kubelet is heard, and cannot list its pods, until it is started again.";
    KubeletHung Stay Silence Some("kubelet-silent"), false "its kubelet hangs" "Its kubelet hangs until it is restarted, by hand or by a reboot.";
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_stage_can_fail() {
        for stage in Stage::ALL {
            assert!(Trouble::ALL.iter().any(|trouble| trouble.stage() == stage), "nothing fails at {stage}");
        }
    }

    #[test]
    fn troubles_stand_in_the_order_of_their_stages() {
        assert!(Trouble::ALL.is_sorted_by_key(|trouble| trouble.stage()));
    }
}
