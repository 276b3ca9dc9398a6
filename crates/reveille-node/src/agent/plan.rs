//! The machine's plan: kept on its disk, with its files written and its join turned into a target.
//!
//! The agent accepts a plan when its checksum matches its steps, and when each path, mode and field in it is allowed
//! ([`allowed`]): those of a node's configuration. It keeps the plan whole in a file of root, because an agent that
//! starts without its server has nothing else.

mod config;

use std::fs;
use std::io;
use std::os::unix::fs::PermissionsExt as _;
use std::path::{Path, PathBuf};

use reveille_core::model::id::NodeName;

use reveille_wire::agent::allowed::{self, NotAllowed};
use reveille_wire::agent::plan::{Held, Plan, Step, StepOutcome, StepState};
use reveille_wire::agent::text::Sentence;
use thiserror::Error;

use crate::distribution::{self, Distribution};
use crate::durable::{folders, replace, replace_with_mode};
use crate::link::is_whole;
use crate::pin::{Pin, PinError};
use crate::root::Root;
use crate::target::{Endpoint, Kind, Target, TargetError, ToldBy};

/// The mode of new directories for a plan's files: like the machine's own, which other accounts may read.
const FOLDER_MODE: u32 = 0o755;

/// Why a plan is not carried out.
#[derive(Debug, Error)]
pub enum PlanError {
    /// The file system refused.
    #[error("cannot {doing} {}: {source}", .path.display())]
    Io {
        /// The operation that failed.
        doing: &'static str,
        /// The file.
        path: PathBuf,
        /// The error.
        source: io::Error,
    },
    /// The kept plan cannot be read.
    #[error("{} is no plan: {source}; remove it, the server sends another", .path.display())]
    Broken {
        /// The file.
        path: PathBuf,
        /// The error.
        source: serde_json::Error,
    },
    /// The checksum does not match the plan.
    #[error("the plan {0} is not what its checksum is of: nothing of it is carried out")]
    Checksum(u64),
    /// The plan says something that is not allowed.
    #[error(transparent)]
    NotAllowed(#[from] NotAllowed),
    /// The plan has no join.
    #[error("the plan has no step that joins")]
    NoJoin,
    /// The plan's name is not a valid Node name.
    #[error("the plan's join cannot be meant: {0:?} is no name of a node")]
    Name(String),
    /// The plan's join is invalid.
    #[error("the plan's join cannot be meant: {0}")]
    Target(#[from] TargetError),
    /// The plan's pins cannot be read.
    #[error("the plan's join cannot be meant: {0}")]
    Pins(#[from] PinError),
}

/// The plan on the machine's disk.
#[derive(Clone, Debug)]
pub struct Shelf(PathBuf);

impl Shelf {
    /// The shelf in this folder.
    pub fn within(folder: &Path) -> Self {
        Self(folder.to_owned())
    }

    fn plan(&self) -> PathBuf {
        self.0.join("plan.json")
    }

    fn joined(&self) -> PathBuf {
        self.0.join("joined")
    }

    /// The kept plan; none where there is none.
    ///
    /// # Errors
    ///
    /// The file exists and cannot be read.
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

    /// Keeps the plan.
    ///
    /// # Errors
    ///
    /// The checksum does not match, or the plan cannot be written.
    pub fn keep(&self, plan: &Plan) -> Result<(), PlanError> {
        check(plan)?;
        let path = self.plan();
        let text =
            serde_json::to_vec(plan).map_err(|source| PlanError::Broken { path: path.clone(), source })?;
        replace(&path, &text).map_err(|source| PlanError::Io { doing: "write", path, source })
    }

    /// The join of this plan has held once: from then on the agent does not order it again.
    pub fn has_joined(&self, plan: &Plan) -> bool {
        fs::read_to_string(self.joined()).is_ok_and(|checksum| checksum.trim() == plan.checksum.as_str())
    }

    /// The join of this plan, or of an earlier one, has held.
    pub fn has_held(&self) -> bool {
        self.joined().exists()
    }

    /// Notes that the join of this plan has held.
    ///
    /// # Errors
    ///
    /// The note cannot be written.
    pub fn mark_joined(&self, plan: &Plan) -> Result<(), PlanError> {
        let path = self.joined();
        replace(&path, plan.checksum.as_bytes()).map_err(|source| PlanError::Io {
            doing: "write",
            path,
            source,
        })
    }
}

/// The plan's version and checksum, for the server.
pub(super) fn held(plan: &Plan) -> Held {
    Held { version: plan.version, checksum: plan.checksum.clone() }
}

fn check(plan: &Plan) -> Result<(), PlanError> {
    if is_whole(plan) { Ok(()) } else { Err(PlanError::Checksum(plan.version)) }
}

/// Checks that the whole plan may be carried out: before any part of it is, and before it replaces the kept plan.
pub(super) fn may_be_followed(plan: &Plan) -> Result<(), PlanError> {
    check(plan)?;
    Ok(allowed::check(plan)?)
}

/// Writes the plan's files, and reports each step. A file that is already right stays as it is.
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

fn write(root: &Root, file: usize, path: &str, mode: &str, content: &str) -> Result<bool, PlanError> {
    allowed::place(file, path)?;
    let mode = allowed::mode(file, path, mode)?;
    let outside = || NotAllowed::Place { file, path: path.to_owned() };
    let place = root.at(path);
    let failed = |doing: &'static str| {
        let path = place.clone();
        move |source| PlanError::Io { doing, path, source }
    };
    let folder = place.parent().ok_or_else(outside)?;
    stays(root, folder).map_err(failed("find"))?.then_some(()).ok_or_else(outside)?;
    folders(folder, FOLDER_MODE).map_err(failed("make the folder of"))?;
    stays(root, folder).map_err(failed("find"))?.then_some(()).ok_or_else(outside)?;
    let same = matches!(root.bytes(path), Ok(Some(held)) if held == content.as_bytes())
        && fs::symlink_metadata(&place).is_ok_and(|meta| meta.permissions().mode() & 0o7777 == mode);
    if same {
        return Ok(false);
    }
    replace_with_mode(&place, content.as_bytes(), mode).map_err(failed("write"))?;
    Ok(true)
}

/// True when no existing link on the way to the folder leads out of the place that was checked.
fn stays(root: &Root, folder: &Path) -> io::Result<bool> {
    let named = root.at("/");
    let base = named.canonicalize()?;
    let there = folder.ancestors().find(|path| path.symlink_metadata().is_ok()).unwrap_or(folder);
    Ok(there.canonicalize()? == base.join(there.strip_prefix(&named).unwrap_or(there)))
}

/// The plan's join, in the form for the executor.
pub(super) struct Aim {
    pub(super) target: Target,
    pub(super) node_name: NodeName,
    pub(super) distribution: Box<dyn Distribution>,
    pub(super) config: Option<String>,
}

/// The plan's join.
pub(super) fn target(root: &Root, plan: &Plan) -> Result<Aim, PlanError> {
    let mut steps = plan.steps.iter().enumerate();
    let order = steps.find_map(|(number, step)| match step {
        Step::Join(order) => Some((number, order)),
        _ => None,
    });
    let (number, order) = order.ok_or(PlanError::NoJoin)?;
    let own = order.config.as_deref().map(|text| allowed::config(number, order.distribution, text));
    let own = own.transpose()?;
    if !is_name(&order.node_name) {
        return Err(PlanError::Name(order.node_name.to_string()));
    }
    let kind = order.distribution;
    let pins: Result<Vec<Pin>, PinError> = order.ca_pins.iter().map(|pin| pin.parse()).collect();
    let target = Target {
        kind,
        told_by: ToldBy::Arguments,
        endpoints: vec![Endpoint::of_file("server", &order.server)?],
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
            Kind::Kubeadm => config::of_kubeadm(number, order, own)?,
            Kind::K3s | Kind::Rke2 => config::of_agent(order, own),
        }),
    })
}

/// A valid Node name (RFC 1123), as the API server accepts it. The name becomes a part of paths, on the disk and in
/// requests.
fn is_name(text: &str) -> bool {
    let is_plain = |byte: u8| byte.is_ascii_lowercase() || byte.is_ascii_digit();
    let ends = [text.bytes().next(), text.bytes().next_back()];
    text.len() <= 253
        && ends.iter().all(|end| end.is_some_and(is_plain))
        && text.bytes().all(|byte| is_plain(byte) || matches!(byte, b'-' | b'.'))
}

#[cfg(test)]
mod tests;
