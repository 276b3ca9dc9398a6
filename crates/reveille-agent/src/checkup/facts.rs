//! What is read of a machine and of the server that it is to join. No field can hold a secret.
//!
//! Facts only: nothing here says what is wrong. Times of others are seconds since the epoch as they wrote them.

// tidy: long because it is one list of what can be known.

use std::net::IpAddr;

use reveille_core::model::hosting::Notice;

use super::reading::Reading;
use super::server::Server;
use super::supervised::Supervised;

/// Everything that a check-up rests on.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Facts {
    /// This machine's clock, seconds since the epoch.
    pub now_s: i64,
    /// What is to be joined; `None` when nobody said it and nothing of a join is there.
    pub aim: Reading<Option<Aim>>,
    /// The program by which this machine joins, where it is not kubeadm.
    pub supervised: Option<Supervised>,
    /// The clock is kept right by somebody.
    pub is_synchronised: Reading<bool>,
    /// The host's name, and the kubelet's.
    pub names: Names,
    /// The way out.
    pub network: Network,
    /// One for each address of the aim.
    pub servers: Vec<Server>,
    /// Container runtimes.
    pub runtime: Runtime,
    /// The kernel.
    pub kernel: Kernel,
    /// Swap devices and files in use.
    pub swap: Reading<Vec<String>>,
    /// Ports that the kubelet listens on.
    pub ports: Vec<Port>,
    /// What is there of a join.
    pub join: Join,
    /// Room on disks.
    pub disks: Vec<Disk>,
    /// Memory, as the kernel counts it.
    pub memory: Reading<Memory>,
    /// What its provider told the machine of what it will do to it; `None` where it is of none whose words are read.
    pub announced: Reading<Option<Vec<Notice>>>,
    /// The kubelet.
    pub kubelet: Kubelet,
    /// Requests for certificates of this machine's name.
    pub requests: Reading<Vec<Request>>,
    /// Who this machine is.
    pub identity: Identity,
    /// The Node of this machine's name; `None` when the API server says that there is none.
    pub node: Reading<Option<Node>>,
    /// Configurations of pod networks.
    pub cni: Reading<Vec<String>>,
}

/// What is to be joined.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Aim {
    /// Who said so, for people.
    pub told_by: String,
    /// An earlier join on this machine said so: it worked once.
    pub is_of_machine: bool,
    /// The pins, as kubeadm writes them.
    pub pins: Vec<String>,
    /// Somebody wrote that no pin is wanted.
    pub is_unpinned_on_purpose: bool,
    /// The id of the bootstrap token, where there is one.
    pub token_id: Option<String>,
    /// The socket that was named.
    pub cri_socket: Option<String>,
}

/// The host's name, and the kubelet's.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Names {
    /// The host's.
    pub host: Reading<String>,
    /// What the kubelet is told to use in its place.
    pub told: Option<String>,
}

impl Names {
    /// The name of the Node, as the kubelet makes it.
    pub fn node(&self) -> Option<String> {
        let name = self.told.as_ref().or_else(|| self.host.read())?;
        Some(name.trim().to_lowercase())
    }
}

/// The way out.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Network {
    /// The routes, those that lead nowhere left out.
    pub routes: Reading<Vec<Route>>,
    /// The servers of resolv.conf.
    pub resolvers: Reading<Vec<IpAddr>>,
    /// Each resolver that was asked for the server's name, and what it said.
    pub asked: Vec<(IpAddr, String)>,
}

/// One route.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Route {
    /// The first address.
    pub to: IpAddr,
    /// How many leading bits count.
    pub prefix_bits: u8,
    /// Through which device.
    pub device: String,
}

impl Route {
    /// It leads to this address.
    pub fn covers(&self, address: IpAddr) -> bool {
        let bits = |ip: IpAddr| match ip {
            IpAddr::V4(ip) => (u128::from(u32::from(ip)) << 96, 32),
            IpAddr::V6(ip) => (u128::from(ip), 128),
        };
        let ((to, length), (address, other)) = (bits(self.to), bits(address));
        let shift = 128_u32.saturating_sub(u32::from(self.prefix_bits));
        length == other && to.checked_shr(shift).unwrap_or(0) == address.checked_shr(shift).unwrap_or(0)
    }
}

/// Container runtimes.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Runtime {
    /// Sockets that were looked at: the one that is named, or those where runtimes usually listen.
    pub sockets: Vec<Socket>,
}

/// One socket.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Socket {
    /// Where.
    pub path: String,
    /// What is there.
    pub seen: Reading<SocketSeen>,
}

/// What is there at a socket.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum SocketSeen {
    /// Nothing.
    Absent,
    /// It is there, and a connection is refused: why.
    Refused(String),
    /// It takes connections and says nothing in time.
    Silent,
    /// It answers, and does not offer what a kubelet asks for: its words.
    NotCri(String),
    /// A runtime.
    Cri(Cri),
}

/// What a runtime says of itself.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Cri {
    /// `containerd 2.0.1`.
    pub version: String,
    /// It is ready; or why it is not.
    pub ready: Option<Result<(), String>>,
    /// Its pod network is ready; or why it is not.
    pub network: Option<Result<(), String>>,
    /// `systemd` or `cgroupfs`, where it says so.
    pub cgroup_driver: Option<String>,
}

/// The kernel.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Kernel {
    /// It forwards packets.
    pub forwards: Reading<bool>,
    /// Packets over bridges meet iptables; `None` when the module is not loaded.
    pub bridges_filter: Reading<Option<bool>>,
    /// It has overlay file systems, loaded or to be loaded.
    pub has_overlay: Reading<bool>,
    /// Its control groups.
    pub cgroups: Reading<Cgroups>,
}

/// Control groups.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Cgroups {
    /// 1 or 2; 0 when none are mounted.
    pub version: u8,
    /// Controllers that a kubelet needs and that are not offered.
    pub missing: Vec<String>,
}

/// A port that the kubelet listens on.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Port {
    /// Its number.
    pub number: u16,
    /// What it is for.
    pub what: String,
    /// Who listens; `None` when nobody does.
    pub holder: Reading<Option<Holder>>,
}

/// Who listens on a port.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Holder {
    /// Its name, where it could be found.
    pub program: Option<String>,
    /// Its process, where it could be found.
    pub pid: Option<u32>,
    /// The kubelet itself, or a program that has it inside.
    pub is_kubelet: bool,
}

/// What is there of a join.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Join {
    /// The kubelet's kubeconfig.
    pub kubeconfig: Reading<Joined>,
    /// Files that only a control plane or a member of etcd has.
    pub control_plane: Reading<Vec<String>>,
}

/// What a kubelet's kubeconfig says.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Joined {
    /// It is not there.
    Nothing,
    /// It is there and cannot be used: why.
    Broken(String),
    /// It is of a cluster.
    To {
        /// The server's address.
        server: String,
        /// The pins of its authorities.
        pins: Vec<String>,
    },
}

/// Room on a disk.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Disk {
    /// The folder that was asked for.
    pub path: String,
    /// What for: `nodefs`, `imagefs`.
    pub what: &'static str,
    /// How much.
    pub room: Reading<Room>,
}

/// How much room there is.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Room {
    /// For those who are not root.
    pub free_bytes: u64,
    /// All of it.
    pub size_bytes: u64,
    /// Inodes that are free; both 0 where the file system does not count them.
    pub free_inodes: u64,
    /// All inodes.
    pub inodes: u64,
}

/// Memory.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Memory {
    /// What can be had without swapping.
    pub available_bytes: u64,
    /// All of it.
    pub size_bytes: u64,
}

/// The kubelet.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Kubelet {
    /// Its configuration.
    pub config: Reading<ConfigSeen>,
    /// Its unit; `None` when the system has none of that name.
    pub unit: Reading<Option<Unit>>,
    /// Its process; `None` when there is none.
    pub process: Reading<Option<u32>>,
    /// What it says of its health: the answer's status and text.
    pub health: Reading<(u16, String)>,
    /// Its certificate as a client; `None` when there is none.
    pub certificate: Reading<Option<ClientCertificate>>,
}

/// The kubelet's configuration.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum ConfigSeen {
    /// It is not there: nothing has joined yet.
    Absent,
    /// It is there and is none: why.
    Broken(String),
    /// It is there.
    There(KubeletConfig),
}

/// What of it a check rests on, with the kubelet's defaults.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct KubeletConfig {
    /// The kubelet ends where there is swap.
    pub fails_on_swap: bool,
    /// `systemd` or `cgroupfs`.
    pub cgroup_driver: String,
    /// Where pods are evicted: signal and limit, `nodefs.available` and `10%`.
    pub evicts_at: Vec<(String, String)>,
}

/// The kubelet's unit.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Unit {
    /// `active`, `activating`, `inactive`, `failed`.
    pub state: String,
    /// `running`, `auto-restart`, `dead`.
    pub sub_state: String,
    /// It starts at boot.
    pub is_enabled: Option<bool>,
    /// How often it was started again.
    pub restarts: Option<u32>,
    /// How its main process ended last: the exit code.
    pub exit_code: Option<i32>,
}

/// The kubelet's certificate as a client.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ClientCertificate {
    /// Where it is.
    pub path: String,
    /// Its common name: `system:node:NAME`.
    pub common_name: String,
    /// Valid from.
    pub not_before_s: i64,
    /// Valid until.
    pub not_after_s: i64,
    /// The authority of the kubeconfig signed it.
    pub is_of_authority: Reading<bool>,
    /// Its key is there.
    pub has_key: bool,
    /// The API server takes it.
    pub is_accepted: Reading<bool>,
}

/// A request for a certificate.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Request {
    /// Its name.
    pub name: String,
    /// Who is asked to sign it.
    pub signer: String,
    /// How it stands.
    pub state: RequestState,
}

/// How a request stands.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum RequestState {
    /// Nobody has said anything.
    Pending,
    /// Approved, and not signed yet.
    Approved,
    /// Signed.
    Issued,
    /// Denied, or failed.
    Refused,
}

/// Who this machine is.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Identity {
    /// Of /etc/machine-id.
    pub machine_id: Reading<String>,
    /// Of the firmware.
    pub system_uuid: Reading<String>,
    /// Of this boot.
    pub boot_id: Reading<String>,
}

/// A Node as the API server tells it.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Node {
    /// Its name.
    pub name: String,
    /// Who the kubelet said that it is.
    pub machine_id: String,
    /// The same, of the firmware.
    pub system_uuid: String,
    /// The same, of its boot.
    pub boot_id: String,
    /// Its conditions.
    pub conditions: Vec<Condition>,
    /// Keys of its taints.
    pub taints: Vec<String>,
    /// A sign on it that somebody takes it away.
    pub leaving: Option<String>,
    /// Nothing new is put on it.
    pub is_cordoned: bool,
    /// Somebody is deleting it.
    pub is_deleted: bool,
}

/// A condition.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Condition {
    /// `Ready`.
    pub kind: String,
    /// `True`, `False`, `Unknown`.
    pub status: String,
    /// One word.
    pub reason: String,
    /// A sentence.
    pub message: String,
}
