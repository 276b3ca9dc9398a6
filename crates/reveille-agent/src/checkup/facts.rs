//! What the agent reads about a machine and about the API server that the machine is to join. No field can hold a secret.
//!
//! Facts only: nothing in this module says what is wrong. Times that another machine wrote are seconds since the epoch,
//! as written.

// tidy: long because it is one list of what can be known.

use std::net::IpAddr;

use reveille_core::model::hosting::Notice;

use super::reading::Reading;
use super::server::Server;

/// Everything that a check-up uses.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Facts {
    /// This machine's clock, seconds since the epoch.
    pub now_s: i64,
    /// The cluster to join; `None` when no source names one and the machine has no trace of a join.
    pub aim: Reading<Option<Aim>>,
    /// The program by which this machine joins, where it is not kubeadm.
    pub supervised: Option<Supervised>,
    /// A time service (chrony, systemd-timesyncd, …) keeps the clock synchronised.
    pub is_synchronised: Reading<bool>,
    /// The name of the host, and the name that the kubelet uses.
    pub names: Names,
    /// Routes and DNS.
    pub network: Network,
    /// One server for each address of the aim.
    pub servers: Vec<Server>,
    /// Container runtimes.
    pub runtime: Runtime,
    /// The kernel.
    pub kernel: Kernel,
    /// Swap devices and files in use.
    pub swap: Reading<Vec<String>>,
    /// Ports that the kubelet listens on.
    pub ports: Vec<Port>,
    /// What a join left on the machine.
    pub join: Join,
    /// Room on disks.
    pub disks: Vec<Disk>,
    /// Memory, as the kernel counts it.
    pub memory: Reading<Memory>,
    /// What the provider announced that it will do to the machine; `None` for a provider without notices that we read.
    pub announced: Reading<Option<Vec<Notice>>>,
    /// The kubelet.
    pub kubelet: Kubelet,
    /// CertificateSigningRequests for this machine's name.
    pub requests: Reading<Vec<Request>>,
    /// The ids of this machine.
    pub identity: Identity,
    /// The Node of this machine's name; `None` when the API server says that this Node does not exist.
    pub node: Reading<Option<Node>>,
    /// CNI configurations.
    pub cni: Reading<Vec<String>>,
}

/// The cluster to join.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Aim {
    /// The source of the aim, in words for people.
    pub told_by: String,
    /// An earlier join on this machine is the source: this address worked once.
    pub is_of_machine: bool,
    /// The CA pins, as kubeadm writes them.
    pub pins: Vec<String>,
    /// The configuration says explicitly that the CA is not pinned.
    pub is_unpinned_on_purpose: bool,
    /// The id of the bootstrap token, where there is one.
    pub token_id: Option<String>,
    /// The runtime's socket, where the configuration names one.
    pub cri_socket: Option<String>,
}

/// The program by which a machine joins, where it is not kubeadm.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Supervised {
    /// `k3s`, `rke2`.
    pub name: String,
    /// Its unit on a worker.
    pub unit: String,
    /// The program's data directory.
    pub folder: String,
    /// The unit's file is in systemd's directory.
    pub has_unit: bool,
    /// The hash of the cluster's CAs that stands in front of the token.
    pub wanted_hash: Option<String>,
}

/// The name of the host, and the name that the kubelet uses.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Names {
    /// The host's name.
    pub host: Reading<String>,
    /// The name that the kubelet is told to use instead.
    pub told: Option<String>,
}

impl Names {
    /// The name of the Node, as the kubelet makes it.
    pub fn node(&self) -> Option<String> {
        let name = self.told.as_ref().or_else(|| self.host.read())?;
        Some(name.trim().to_lowercase())
    }
}

/// Routes and DNS.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Network {
    /// The routes, without unreachable and blackhole ones.
    pub routes: Reading<Vec<Route>>,
    /// The servers of resolv.conf.
    pub resolvers: Reading<Vec<IpAddr>>,
    /// Each resolver that the agent asked for the server's name, and the answer.
    pub asked: Vec<(IpAddr, String)>,
}

/// One route.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Route {
    /// The first address of the destination.
    pub to: IpAddr,
    /// The length of the prefix.
    pub prefix_bits: u8,
    /// The device that the route uses.
    pub device: String,
}

impl Route {
    /// The route leads to this address.
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
    /// The sockets that the agent looked at: the configured one, or the usual sockets of runtimes.
    pub sockets: Vec<Socket>,
}

/// One socket.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Socket {
    /// The path of the socket.
    pub path: String,
    /// What the agent found at the path.
    pub seen: Reading<SocketSeen>,
}

/// What the agent found at the path of a socket.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum SocketSeen {
    /// There is no file.
    Absent,
    /// The socket exists and refuses a connection: the reason.
    Refused(String),
    /// The socket accepts connections and does not answer in time.
    Silent,
    /// The program answers, and does not offer the CRI: its words.
    NotCri(String),
    /// A runtime.
    Cri(Cri),
}

/// What a runtime reports about itself.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Cri {
    /// `containerd 2.0.1`.
    pub version: String,
    /// The runtime is ready, or the reason why it is not.
    pub ready: Option<Result<(), String>>,
    /// The runtime's pod network is ready, or the reason why it is not.
    pub network: Option<Result<(), String>>,
    /// `systemd` or `cgroupfs`, where the runtime reports it.
    pub cgroup_driver: Option<String>,
}

/// The kernel.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Kernel {
    /// The kernel forwards packets.
    pub forwards: Reading<bool>,
    /// Packets over bridges meet iptables; `None` when the module is not loaded.
    pub bridges_filter: Reading<Option<bool>>,
    /// The kernel has overlay file systems, loaded or loadable.
    pub has_overlay: Reading<bool>,
    /// The control groups.
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
    /// The port's number.
    pub number: u16,
    /// The port's purpose.
    pub what: String,
    /// The process that listens on the port; `None` when no process does.
    pub holder: Reading<Option<Holder>>,
}

/// The process that listens on a port.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Holder {
    /// The process's name, where it could be found.
    pub program: Option<String>,
    /// The process's id, where it could be found.
    pub pid: Option<u32>,
    /// The process is the kubelet, or a program that contains the kubelet.
    pub is_kubelet: bool,
}

/// What a join left on the machine.
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
    /// The file does not exist.
    Nothing,
    /// The file exists and cannot be used: the reason.
    Broken(String),
    /// The file names a cluster.
    To {
        /// The server's address.
        server: String,
        /// The pins of the cluster's CAs.
        pins: Vec<String>,
    },
}

/// Room on a disk.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Disk {
    /// The directory that was asked for.
    pub path: String,
    /// The purpose: `nodefs`, `imagefs`.
    pub what: &'static str,
    /// How much room there is.
    pub room: Reading<Room>,
}

/// How much room there is.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Room {
    /// Free for users other than root.
    pub free_bytes: u64,
    /// The whole size.
    pub size_bytes: u64,
    /// Inodes that are free; both 0 where the file system does not count them.
    pub free_inodes: u64,
    /// All inodes.
    pub inodes: u64,
}

/// Memory.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Memory {
    /// What programs can use without swapping.
    pub available_bytes: u64,
    /// The whole size.
    pub size_bytes: u64,
}

/// The kubelet.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Kubelet {
    /// The kubelet's configuration.
    pub config: Reading<ConfigSeen>,
    /// The kubelet's unit; `None` when systemd has none of that name.
    pub unit: Reading<Option<Unit>>,
    /// The kubelet's process; `None` when there is none.
    pub process: Reading<Option<u32>>,
    /// The answer of the kubelet's health endpoint: status and text.
    pub health: Reading<(u16, String)>,
    /// The kubelet's client certificate; `None` when there is none.
    pub certificate: Reading<Option<ClientCertificate>>,
}

/// The kubelet's configuration.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum ConfigSeen {
    /// The file does not exist: nothing has joined yet.
    Absent,
    /// The file exists and is not a kubelet configuration: the reason.
    Broken(String),
    /// The configuration.
    There(KubeletConfig),
}

/// The settings that a check uses, with the kubelet's defaults filled in.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct KubeletConfig {
    /// The kubelet exits when swap is on.
    pub fails_on_swap: bool,
    /// `systemd` or `cgroupfs`.
    pub cgroup_driver: String,
    /// The eviction thresholds of pods: signal and limit, `nodefs.available` and `10%`.
    pub evicts_at: Vec<(String, String)>,
}

/// The kubelet's unit.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Unit {
    /// `active`, `activating`, `inactive`, `failed`.
    pub state: String,
    /// `running`, `auto-restart`, `dead`.
    pub sub_state: String,
    /// The unit starts at boot.
    pub is_enabled: Option<bool>,
    /// How often systemd restarted the unit.
    pub restarts: Option<u32>,
    /// The exit code of the last main process.
    pub exit_code: Option<i32>,
}

/// The kubelet's client certificate.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ClientCertificate {
    /// The path of the certificate.
    pub path: String,
    /// The certificate's common name: `system:node:NAME`.
    pub common_name: String,
    /// Valid from.
    pub not_before_s: i64,
    /// Valid until.
    pub not_after_s: i64,
    /// The CA of the kubeconfig signed the certificate.
    pub is_of_authority: Reading<bool>,
    /// The certificate's key is there.
    pub has_key: bool,
    /// The API server accepts the certificate.
    pub is_accepted: Reading<bool>,
}

/// A CertificateSigningRequest.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Request {
    /// The request's name.
    pub name: String,
    /// The signer that the request names.
    pub signer: String,
    /// The request's state.
    pub state: RequestState,
}

/// The state of a CertificateSigningRequest.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum RequestState {
    /// No approver has approved or denied the request.
    Pending,
    /// Approved, and not signed yet.
    Approved,
    /// Signed.
    Issued,
    /// Denied, or failed.
    Refused,
}

/// The ids of this machine.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Identity {
    /// The id in /etc/machine-id.
    pub machine_id: Reading<String>,
    /// The system UUID of the firmware.
    pub system_uuid: Reading<String>,
    /// The id of this boot.
    pub boot_id: Reading<String>,
}

/// A Node as the API server shows it.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Node {
    /// The Node's name.
    pub name: String,
    /// The machine id that the kubelet reported.
    pub machine_id: String,
    /// The system UUID that the kubelet reported.
    pub system_uuid: String,
    /// The boot id that the kubelet reported.
    pub boot_id: String,
    /// The Node's conditions.
    pub conditions: Vec<Condition>,
    /// The keys of the Node's taints.
    pub taints: Vec<String>,
    /// The sign on the Node that a controller or an operator removes the machine.
    pub leaving: Option<String>,
    /// The Node is cordoned: the scheduler puts no new pods on it.
    pub is_cordoned: bool,
    /// The Node has a deletion timestamp.
    pub is_deleted: bool,
}

/// A Node condition.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Condition {
    /// `Ready`.
    pub kind: String,
    /// `True`, `False`, `Unknown`.
    pub status: String,
    /// The reason, one word.
    pub reason: String,
    /// The message, a sentence.
    pub message: String,
}
