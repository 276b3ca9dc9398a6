//! The roster file: the machines that should be Ready nodes, as operators write them down.
//!
//! ```text
//!   text ─▶ tree ─▶ sections and scalars ─▶ timing, clouds, network, pools ─▶ CheckedRoster
//!                        └──────────────┴──────── complaints ───────────────▶ Refusal
//! ```
//!
//! A file is one or several YAML documents, each one roster. The reader checks it as a whole: one pass finds every
//! mistake and names it with line, column, field and what to write instead. A file with any mistake gives no roster.
//! [`mark_check`] checks what only the clouds can tell (whether a mark matches an instance), after the clouds were read.
//! [`render`] writes a file that this reader accepts. Nothing here opens a connection, and a roster holds no secret.

mod access;
mod clouds;
mod complaint;
mod document;
mod hot;
pub mod mark_check;
mod marks;
mod network;
mod pools;
mod rancher;
pub mod render;
mod scalar;
mod section;
mod shape;
mod timing;
mod tree;

use std::collections::BTreeMap;
use std::io::Read;
use std::path::{Path, PathBuf};

use reveille_core::model::id::{CloudName, PoolName};
use reveille_core::model::roster::{Mode, Roster};
use reveille_core::model::time::Span;
use thiserror::Error;

pub use clouds::alone::{NAME as CLUSTER_CLOUD, mark as cluster_mark};
pub use complaint::{Complaint, Place, Refusal, Written};

pub use network::UNREACHABLE_CONDITIONS;
pub use pools::MIN_UNLESS_WRITTEN;

/// `apiVersion` of a roster.
pub const API_VERSION: &str = "reveille.dev/v1alpha1";
/// `kind` of a roster.
pub const KIND: &str = "Roster";
/// A longer file is refused.
pub const FILE_BYTES_MAX: u64 = 1_048_576;

/// A roster that may be used, and where its cluster and clouds are reached.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct CheckedRoster {
    /// What the engine needs.
    pub roster: Roster,
    /// Where the cluster's API is.
    pub cluster: ClusterRef,
    /// Where each cloud of the roster is.
    pub clouds: BTreeMap<CloudName, CloudRef>,
    /// The Rancher that has records of the cluster.
    pub rancher: Option<RancherRef>,
    /// Kinds of the cluster whose writes the controller watches all the time.
    pub hot: Option<HotRef>,
    /// Where the marks of each pool are written.
    pub written: BTreeMap<PoolName, Written>,
}

impl CheckedRoster {
    /// The roster lists a cloud; else its machines are those of the cluster alone.
    pub fn has_cloud(&self) -> bool {
        !self.clouds.values().any(CloudRef::is_cluster)
    }
}

/// Where the cluster's API and the credentials for it are.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord, Default)]
pub struct ClusterRef {
    /// A kubeconfig; `None`: the usual one (`KUBECONFIG`, then the home directory's, then in-cluster).
    pub kubeconfig: Option<PathBuf>,
    /// A context of it; `None`: its current one.
    pub context: Option<String>,
}

/// A Rancher, and which repairs of its records are allowed.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct RancherRef {
    /// A kubeconfig of its management cluster; `None`: the usual one.
    pub kubeconfig: Option<PathBuf>,
    /// A context of it; `None`: its current one.
    pub context: Option<String>,
    /// Id or name of the roster's cluster in Rancher.
    pub cluster: String,
    /// Kinds of the management cluster whose writes the controller watches all the time; `None`: it watches none.
    pub hot: Option<HotRef>,
    /// Where to ask the cluster's etcd for its members; `None`: machines that hold etcd are not repaired.
    pub etcd: Option<EtcdRef>,
    /// Machines may be removed and registered again.
    pub evict: Mode,
    /// Records may be edited in place.
    pub mend: Mode,
    /// The time between two reads that have to agree; `None`: half a minute.
    pub looks_apart: Option<Span>,
    /// Rancher has to write the plan of an edited record within this time, or the edit is undone; `None`: ten minutes.
    pub plan_within: Option<Span>,
}

/// The members of a cluster's etcd, and the credentials for them. The roster names files only, and holds no key.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct EtcdRef {
    /// `https://HOST:PORT` of each member.
    pub endpoints: Vec<String>,
    /// Certificates of the authority that signed the members' certificates.
    pub ca: PathBuf,
    /// The client certificate.
    pub cert: PathBuf,
    /// The key of the client certificate.
    pub key: PathBuf,
}

/// Kinds of a cluster whose objects are watched for writes in a loop.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub struct HotRef {
    /// `PLURAL` or `PLURAL.GROUP`; empty: all kinds that can be counted.
    pub kinds: Vec<String>,
    /// Writes of one object in 1000 s that are allowed to last; `None`: the detector's default.
    pub sustained_per_1000_s: Option<u32>,
    /// Writes of one object in 1000 s that are hot at once; `None`: the detector's default.
    pub at_once_per_1000_s: Option<u32>,
}

/// Where a cloud and the credentials for it are. Two equal values are one and the same project.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum CloudRef {
    /// An entry of a clouds.yaml.
    OpenStack {
        /// The entry's name.
        cloud: String,
        /// The clouds.yaml; `None`: searched in the usual places.
        clouds_file: Option<PathBuf>,
    },
    /// One cluster's machines in one region of an AWS account.
    Ec2 {
        /// The region.
        region: String,
        /// The profile whose account and permissions are used; `None`: the usual chain of credentials.
        profile: Option<String>,
        /// The endpoint of the API; `None`: the region's own, or the value of `AWS_ENDPOINT_URL`.
        endpoint: Option<String>,
        /// The id in the tag key `kubernetes.io/cluster/<id>`: only machines that carry it are listed.
        cluster: String,
    },
    /// No cloud: the cluster's own Nodes, and the machine records of other systems in it.
    Cluster(ClusterRef),
}

impl CloudRef {
    /// The cluster alone, as a roster without `spec.clouds` has it.
    pub fn is_cluster(&self) -> bool {
        matches!(self, Self::Cluster(_))
    }

    /// How long a cloud may deny that an instance exists after it was first seen. `None`: the answers of the cloud agree at once.
    pub const fn settles_within(&self) -> Option<Span> {
        self.words().settles_within
    }
}

/// The origin of a roster's text.
#[derive(Clone, Copy, Debug)]
pub struct Origin<'o> {
    /// The file's name for messages.
    pub name: &'o str,
    /// Relative paths in the roster are relative to this directory.
    pub dir: &'o Path,
    /// `~/` in the roster means this directory; `None`: such paths are refused.
    pub home: Option<&'o Path>,
}

/// Why a roster file was not accepted.
#[derive(Debug, Error)]
pub enum ReadRosterError {
    /// The file could not be read.
    #[error("cannot read the roster {}: {source}. Give the path of a roster file, or make one with `reveille init`", path.display())]
    Open {
        /// Which.
        path: PathBuf,
        /// Why.
        source: std::io::Error,
    },
    /// The file is too long to be one.
    #[error("{} is longer than {FILE_BYTES_MAX} bytes, so it is no roster and was not read. Give the path of a roster file", path.display())]
    TooLong {
        /// Which.
        path: PathBuf,
    },
    /// The file was read and is wrong.
    #[error(transparent)]
    Refused(#[from] Refusal),
}

/// Reads every roster of a text.
///
/// # Errors
/// A [`Refusal`] with every mistake when there is at least one.
pub fn read(text: &str, origin: &Origin<'_>) -> Result<Vec<CheckedRoster>, Refusal> {
    document::read(text, origin)
}

/// Reads every roster of a file. Relative paths in it are relative to the file.
///
/// # Errors
/// When the file cannot be read, is too long, or is wrong.
pub fn read_file(path: &Path) -> Result<Vec<CheckedRoster>, ReadRosterError> {
    let open = |source| ReadRosterError::Open { path: path.to_owned(), source };
    let mut bytes = Vec::new();
    let file = std::fs::File::open(path).map_err(open)?;
    file.take(FILE_BYTES_MAX + 1).read_to_end(&mut bytes).map_err(open)?;
    if bytes.len() as u64 > FILE_BYTES_MAX {
        return Err(ReadRosterError::TooLong { path: path.to_owned() });
    }
    let text = String::from_utf8(bytes)
        .map_err(|error| open(std::io::Error::new(std::io::ErrorKind::InvalidData, error)))?;
    let name = path.to_string_lossy();
    let home = std::env::home_dir();
    let dir = path.parent().unwrap_or_else(|| Path::new(""));
    Ok(read(&text, &Origin { name: &name, dir, home: home.as_deref() })?)
}
