//! The machine's plan: kept on its disk, its files written, its join made a target.
//!
//! A plan is taken when its checksum is that of its steps, and its files may lie in a few folders alone: those that hold a node's
//! configuration. It is kept whole in a file of root's, because an agent that starts without its server has nothing else.

use std::fs;
use std::io;
use std::os::unix::fs::PermissionsExt as _;
use std::path::{Path, PathBuf};

use reveille_core::model::id::NodeName;

use reveille_wire::agent::plan::{Held, JoinOrder, Plan, Step, StepOutcome, StepState};
use reveille_wire::agent::text::Sentence;
use serde_json::json;
use thiserror::Error;

use crate::distribution::{self, Distribution};
use crate::link::is_whole;
use crate::memory_file::replace;
use crate::pin::{Pin, PinError};
use crate::root::Root;
use crate::target::{Endpoint, Kind, Target, TargetError, ToldBy};

/// Where a plan may write.
const FOLDERS: [&str; 7] = [
    "/etc/kubernetes/",
    "/etc/cni/net.d/",
    "/etc/containerd/",
    "/etc/crictl.yaml",
    "/etc/sysctl.d/",
    "/etc/modules-load.d/",
    "/etc/rancher/",
];

/// Why a plan is not carried out.
#[derive(Debug, Error)]
pub enum PlanError {
    /// The file system refused.
    #[error("cannot {doing} {}: {source}", .path.display())]
    Io {
        /// What was tried.
        doing: &'static str,
        /// Which file.
        path: PathBuf,
        /// Why.
        source: io::Error,
    },
    /// What is kept of a plan cannot be read.
    #[error("{} is no plan: {source}; remove it, the server sends another", .path.display())]
    Broken {
        /// Which file.
        path: PathBuf,
        /// Why.
        source: serde_json::Error,
    },
    /// It is not what its checksum is of.
    #[error("the plan {0} is not what its checksum is of: nothing of it is carried out")]
    Checksum(u64),
    /// A file of it lies where no node's configuration does.
    #[error("step {step}: {path} is no place for a plan's file")]
    Place {
        /// Which step.
        step: usize,
        /// Where.
        path: String,
    },
    /// It says nothing of a join.
    #[error("the plan has no step that joins")]
    NoJoin,
    /// Its node cannot be called so.
    #[error("the plan's join cannot be meant: {0:?} is no name of a node")]
    Name(String),
    /// Its join cannot be meant.
    #[error("the plan's join cannot be meant: {0}")]
    Target(#[from] TargetError),
    /// Its pins cannot be read.
    #[error("the plan's join cannot be meant: {0}")]
    Pins(#[from] PinError),
}

/// The plan on the machine's disk.
#[derive(Clone, Debug)]
pub struct Shelf(PathBuf);

impl Shelf {
    /// In this folder.
    pub fn within(folder: &Path) -> Self {
        Self(folder.to_owned())
    }

    fn plan(&self) -> PathBuf {
        self.0.join("plan.json")
    }

    fn joined(&self) -> PathBuf {
        self.0.join("joined")
    }

    /// The plan that was kept; none where there is none.
    ///
    /// # Errors
    ///
    /// It is there and cannot be read.
    pub fn read(&self) -> Result<Option<Plan>, PlanError> {
        let path = self.plan();
        match fs::read(&path) {
            Ok(text) => {
                let plan: Plan =
                    serde_json::from_slice(&text).map_err(|source| PlanError::Broken { path, source })?;
                check(&plan).map(|()| Some(plan))
            }
            Err(failure) if failure.kind() == io::ErrorKind::NotFound => Ok(None),
            Err(source) => Err(PlanError::Io { doing: "read", path, source }),
        }
    }

    /// Keeps it.
    ///
    /// # Errors
    ///
    /// It is not what its checksum is of, or cannot be written.
    pub fn keep(&self, plan: &Plan) -> Result<(), PlanError> {
        check(plan)?;
        let path = self.plan();
        let text =
            serde_json::to_vec(plan).map_err(|source| PlanError::Broken { path: path.clone(), source })?;
        replace(&path, &text).map_err(|source| PlanError::Io { doing: "write", path, source })
    }

    /// The join of this plan has held once: from then on nobody orders it.
    pub fn has_joined(&self, plan: &Plan) -> bool {
        fs::read_to_string(self.joined()).is_ok_and(|checksum| checksum.trim() == plan.checksum.as_str())
    }

    /// The join of this plan, or of one before it, has held.
    pub fn has_held(&self) -> bool {
        self.joined().exists()
    }

    /// It holds.
    ///
    /// # Errors
    ///
    /// That cannot be written.
    pub fn mark_joined(&self, plan: &Plan) -> Result<(), PlanError> {
        let path = self.joined();
        replace(&path, plan.checksum.as_bytes()).map_err(|source| PlanError::Io {
            doing: "write",
            path,
            source,
        })
    }
}

/// Which plan it is, for the server.
pub(super) fn held(plan: &Plan) -> Held {
    Held { version: plan.version, checksum: plan.checksum.clone() }
}

fn check(plan: &Plan) -> Result<(), PlanError> {
    if is_whole(plan) { Ok(()) } else { Err(PlanError::Checksum(plan.version)) }
}

/// Writes the plan's files, each step told as it goes. What is as it should be is left alone.
pub(super) fn apply_files(
    root: &Root,
    plan: &Plan,
    mut tell: impl FnMut(StepOutcome),
) -> Result<(), PlanError> {
    for (number, step) in plan.steps.iter().enumerate() {
        let Step::WriteFile { path, mode, content, .. } = step else { continue };
        let mut outcome = |state, tail: &str| {
            tell(StepOutcome { plan: plan.version, step: number as u32, state, tail: Sentence::cut(tail) });
        };
        match write(root, number, path, mode, content) {
            Ok(true) => outcome(StepState::Changed, path),
            Ok(false) => outcome(StepState::Unchanged, path),
            Err(failure) => {
                outcome(StepState::Failed, &failure.to_string());
                return Err(failure);
            }
        }
    }
    Ok(())
}

fn write(root: &Root, step: usize, path: &str, mode: &str, content: &str) -> Result<bool, PlanError> {
    let outside = || PlanError::Place { step, path: path.to_owned() };
    let climbs = path.split('/').any(|part| part == "..");
    if climbs || !FOLDERS.iter().any(|folder| path.starts_with(folder)) {
        return Err(outside());
    }
    let place = root.at(path);
    // A link on the way would lead out of the folder that was checked.
    let folder = place.parent().ok_or_else(outside)?;
    fs::create_dir_all(folder).map_err(|source| PlanError::Io {
        doing: "make the folder of",
        path: place.clone(),
        source,
    })?;
    let real = folder.canonicalize();
    let real = real.map_err(|source| PlanError::Io { doing: "find", path: place.clone(), source })?;
    let base = root.at("/").canonicalize().unwrap_or_else(|_| root.at("/"));
    if real != base.join(folder.strip_prefix(root.at("/")).unwrap_or(folder)) {
        return Err(outside());
    }
    let mode = u32::from_str_radix(mode, 8).unwrap_or(0o600) & 0o777;
    let same = fs::read(&place).is_ok_and(|held| held == content.as_bytes())
        && fs::symlink_metadata(&place).is_ok_and(|meta| meta.permissions().mode() & 0o777 == mode);
    if same {
        return Ok(false);
    }
    let failed = |source| PlanError::Io { doing: "write", path: place.clone(), source };
    replace(&place, content.as_bytes()).map_err(failed)?;
    fs::set_permissions(&place, fs::Permissions::from_mode(mode)).map_err(failed)?;
    Ok(true)
}

/// What the plan's join is, for the hands.
pub(super) struct Aim {
    pub(super) target: Target,
    pub(super) node_name: NodeName,
    pub(super) distribution: Box<dyn Distribution>,
    pub(super) config: Option<String>,
}

/// The plan's join.
pub(super) fn target(root: &Root, plan: &Plan) -> Result<Aim, PlanError> {
    let order = plan.steps.iter().find_map(|step| match step {
        Step::Join(order) => Some(order),
        _ => None,
    });
    let order = order.ok_or(PlanError::NoJoin)?;
    if !is_name(&order.node_name) {
        return Err(PlanError::Name(order.node_name.to_string()));
    }
    let kind = order.distribution;
    let pins: Result<Vec<Pin>, PinError> = order.ca_pins.iter().map(|pin| pin.parse()).collect();
    let target = Target {
        kind,
        told_by: ToldBy::Arguments,
        endpoints: vec![Endpoint::parse("server", &order.server)?],
        pins: pins?,
        bundle: None,
        is_unpinned_on_purpose: false,
        token: None,
        node_name: Some(NodeName::from(order.node_name.as_str())),
        cri_socket: None,
        config_file: None,
        is_control_plane: false,
    };
    Ok(Aim {
        target,
        node_name: NodeName::from(order.node_name.as_str()),
        distribution: distribution::of(kind, root)?,
        config: Some(match kind {
            Kind::Kubeadm => kubeadm_config(order),
            Kind::K3s | Kind::Rke2 => agent_config(order),
        }),
    })
}

/// RFC 1123, as the API server takes names of Nodes. It becomes part of paths, on the disk and in requests.
fn is_name(text: &str) -> bool {
    let is_plain = |byte: u8| byte.is_ascii_lowercase() || byte.is_ascii_digit();
    let ends = [text.bytes().next(), text.bytes().next_back()];
    text.len() <= 253
        && ends.iter().all(|end| end.is_some_and(is_plain))
        && text.bytes().all(|byte| is_plain(byte) || matches!(byte, b'-' | b'.'))
}

/// kubeadm's configuration for this join. The token's place is held by [`distribution::TOKEN_PLACE`].
fn kubeadm_config(order: &JoinOrder) -> String {
    let labels: Vec<String> = order.labels.iter().map(|(key, value)| format!("{key}={value}")).collect();
    let taints: Vec<_> = order.taints.iter().filter_map(|taint| taint_of(taint)).collect();
    let mut registration = json!({ "name": order.node_name.as_str(), "taints": taints });
    if !labels.is_empty() {
        registration["kubeletExtraArgs"] = json!([{ "name": "node-labels", "value": labels.join(",") }]);
    }
    let pins: Vec<&str> = order.ca_pins.iter().map(|pin| pin.as_str()).collect();
    let mut file = json!({
        "apiVersion": "kubeadm.k8s.io/v1beta4",
        "kind": "JoinConfiguration",
        "nodeRegistration": registration,
    });
    let own = order.config.as_ref().and_then(|text| serde_saphyr::from_str::<serde_json::Value>(text).ok());
    if let Some(own) = own {
        merge(&mut file, own);
    }
    file["discovery"] = json!({ "bootstrapToken": {
        "apiServerEndpoint": order.server.as_str(),
        "token": distribution::TOKEN_PLACE,
        "caCertHashes": pins,
    } });
    file.to_string()
}

/// What a k3s or RKE2 agent is told beside the server: its keys, as its files have them. Lists are added to what a person wrote.
fn agent_config(order: &JoinOrder) -> String {
    let labels: Vec<String> = order.labels.iter().map(|(key, value)| format!("{key}={value}")).collect();
    let taints: Vec<&str> = order.taints.iter().map(|taint| taint.as_str()).collect();
    let mut file = json!({});
    for (key, list) in [("node-label+", json!(labels)), ("node-taint+", json!(taints))] {
        if list.as_array().is_some_and(|list| !list.is_empty()) {
            file[key] = list;
        }
    }
    let own = order.config.as_ref().and_then(|text| serde_saphyr::from_str::<serde_json::Value>(text).ok());
    if let Some(own) = own {
        merge(&mut file, own);
    }
    file.to_string()
}

/// `key=value:effect`, `key:effect`.
fn taint_of(text: &str) -> Option<serde_json::Value> {
    let (rest, effect) = text.rsplit_once(':')?;
    let (key, value) = rest.split_once('=').unwrap_or((rest, ""));
    Some(json!({ "key": key, "value": value, "effect": effect }))
}

/// What a person wrote stands under what the plan says: maps are merged, of anything else the plan's counts.
fn merge(over: &mut serde_json::Value, under: serde_json::Value) {
    use serde_json::Value::{Array, Object};
    match (over, under) {
        (Object(over), Object(under)) => {
            for (key, value) in under {
                match over.get_mut(&key) {
                    Some(own) => merge(own, value),
                    None => drop(over.insert(key, value)),
                }
            }
        }
        (Array(over), Array(under)) => over.extend(under),
        _ => {}
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_file_of_a_plan_lies_where_a_nodes_configuration_does_and_nowhere_else() {
        let folder = tempfile::tempdir().unwrap();
        let root = Root::new(folder.path());
        assert!(write(&root, 0, "/etc/kubernetes/cloud.conf", "0640", "a").unwrap());
        assert!(
            !write(&root, 0, "/etc/kubernetes/cloud.conf", "0640", "a").unwrap(),
            "it is as it should be"
        );
        assert!(write(&root, 0, "/etc/kubernetes/cloud.conf", "0600", "a").unwrap(), "its mode is another");
        for path in
            ["/etc/passwd", "/etc/kubernetes/../passwd", "etc/kubernetes/a", "/root/.ssh/authorized_keys"]
        {
            assert!(
                matches!(write(&root, 3, path, "0600", "x"), Err(PlanError::Place { step: 3, .. })),
                "{path}"
            );
        }
        fs::create_dir_all(root.at("/elsewhere")).unwrap();
        std::os::unix::fs::symlink(root.at("/elsewhere"), root.at("/etc/kubernetes/out")).unwrap();
        assert!(write(&root, 0, "/etc/kubernetes/out/file", "0600", "x").is_err(), "a link leads out of it");
        assert!(!root.at("/elsewhere/file").exists());
    }

    #[test]
    fn a_node_is_called_as_the_api_server_takes_it_and_no_name_is_a_way_elsewhere() {
        assert!(["w-1", "a", "ip-10-0-0-1.eu-west-1.compute.internal", "1"].into_iter().all(is_name));
        for name in ["", "W-1", "w_1", "-w", "w.", "../../etc/cron.d/w", "w/1", "w?x=1", &"w".repeat(254)] {
            assert!(!is_name(name), "{name}");
        }
    }

    #[test]
    fn what_a_person_wrote_stands_under_the_plan() {
        let mut over = json!({ "name": "w-1", "args": [{ "name": "a" }] });
        merge(&mut over, json!({ "name": "x", "criSocket": "s", "args": [{ "name": "b" }] }));
        assert_eq!(
            over,
            json!({ "name": "w-1", "criSocket": "s", "args": [{ "name": "a" }, { "name": "b" }] })
        );
    }
}
