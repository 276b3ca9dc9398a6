//! What differs where k3s or RKE2 joins a machine: how the cluster is identified, which program brings what, which
//! command to run.
//!
//! With k3s and RKE2, one program is unit, kubelet and runtime, and it fetches its certificates at each start. What a
//! kubeadm user renews with a token, a restart renews there. The checks are the same; this module chooses words and
//! paths.

use super::facts::{Aim, Facts, Supervised};
use super::found::Found;
use super::server::Server;

impl Supervised {
    /// The path of the kubeconfig of the program's kubelet.
    pub fn kubeconfig(&self) -> String {
        format!("{}/agent/kubelet.kubeconfig", self.folder)
    }

    fn server_folder(&self) -> String {
        format!("/var/lib/rancher/{}/server", self.name)
    }

    /// The command that shows an agent's token, on a server.
    fn show_token(&self) -> String {
        let folder = self.server_folder();
        format!("sudo cat {folder}/agent-token 2>/dev/null || sudo cat {folder}/node-token   # on a server")
    }
}

impl Facts {
    /// The unit that contains the kubelet.
    pub(super) fn unit(&self) -> &str {
        self.supervised.as_ref().map_or("kubelet", |own| &own.unit)
    }

    /// The program that joins this machine.
    pub(super) fn joined_by(&self) -> &str {
        self.supervised.as_ref().map_or("kubeadm", |own| &own.name)
    }

    /// The path of the kubelet's kubeconfig.
    pub(super) fn kubeconfig(&self) -> String {
        self.supervised
            .as_ref()
            .map_or_else(|| "/etc/kubernetes/kubelet.conf".to_owned(), Supervised::kubeconfig)
    }

    /// The command that shows the last log lines of the kubelet.
    pub(super) fn last_words(&self, lines: u8) -> String {
        format!("journalctl -u {} -n {lines} --no-pager", self.unit())
    }

    /// The command that restarts the kubelet.
    pub(super) fn restart(&self) -> String {
        format!("sudo systemctl restart {}", self.unit())
    }
}

/// Compares the hash in front of the token with the hash of what the server serves.
pub(super) fn ca_hash(own: &Supervised, server: &Server, aim: &Aim) -> Option<Found> {
    let Some(wanted) = &own.wanted_hash else {
        return aim.pins.is_empty().then(|| {
            let says = "the token is a short one: it says nothing of its cluster, so any server could answer in its place";
            Found::warned(says)
                .advise("give the agent the full token (K10…::…); reveille join refuses a short one without a pin, unless told otherwise")
                .run(own.show_token())
        });
    };
    let found = match server.bundle.read()? {
        Some(found) if found == wanted => {
            return Some(
                Found::passed("the cluster's authorities have the hash that stands in front of the token")
                    .line(format!("sha256 of what /cacerts tells: {found}")),
            );
        }
        Some(found) => found.as_str(),
        None => "no certificates",
    };
    let says =
        "what answers is not the cluster that the token is of: another one, or its authority was replaced";
    Some(
        Found::failed(says)
            .line(format!("wanted: {wanted}, in front of the token"))
            .line(format!("what /cacerts tells has: {found} (the hash of the file, not of a key)"))
            .cause("ca-hash-mismatch")
            .advise("copy the token again from a server of the right cluster, or correct the address")
            .run(format!("curl -sk https://{}/cacerts | sha256sum", server.endpoint))
            .run(own.show_token()),
    )
}

/// The result for a token that the supervisor refuses.
pub(super) fn token_refused(own: &Supervised, server: &Server, id: &str) -> Found {
    Found::failed(format!("the supervisor does not take the token of {id}"))
        .line("401 Unauthorized".to_owned())
        .cause("bootstrap-token-invalid")
        .advise(
            "it was rotated, has run out, or the servers have a token of their own for agents: take that one",
        )
        .run(own.show_token())
        .run(format!("journalctl -u {0}-server -u {0} -n 50 --no-pager   # at {1}", own.name, server.host))
}

/// The advice for an agent that has no credentials: its next start fetches what it needs.
pub(super) fn fetch_again(own: &Supervised, found: Found) -> Found {
    found
        .advise(format!("{} fetches its certificates at each start: restart it; with a token that is taken it needs no more", own.unit))
        .run(format!("sudo systemctl restart {}", own.unit))
        .run(own.show_token())
}

/// The program is not installed, and so neither is a kubelet or a runtime.
pub(super) fn not_installed(own: &Supervised) -> Found {
    let install = match own.name.as_str() {
        "rke2" => "curl -sfL https://get.rke2.io | sudo INSTALL_RKE2_TYPE=agent sh -",
        _ => "curl -sfL https://get.k3s.io | sudo INSTALL_K3S_SKIP_START=true INSTALL_K3S_EXEC=agent sh -",
    };
    Found::failed(format!("{} is not installed as an agent: there is no unit {}", own.name, own.unit))
        .advise("install it without starting it, from wherever you have it; reveille does not, it says where to go and starts the unit")
        .run(install)
}
