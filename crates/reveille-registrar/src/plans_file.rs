//! The plans file: the configuration of the machines of each pool, as operators write it.
//!
//! ```yaml
//! plans:
//! - pool: workers                      # of the only roster that has it; else roster: NAME beside it
//!   join:
//!     distribution: kubeadm            # kubeadm, k3s, rke2
//!     server: 10.0.0.1:6443
//!     caPins: ["sha256:…"]             # as kubeadm prints it
//!     labels: {tier: web}
//!     taints: ["gpu=yes:NoSchedule"]
//!     configFile: join.yaml            # of the distribution's own kind, beside this file
//!   needs: [control-plane]             # roles that have to be there first
//!   files:
//!   - {path: /etc/sysctl.d/90-k8s.conf, mode: "0644", content: "net.ipv4.ip_forward = 1\n"}
//!   - {path: /etc/kubernetes/cloud.conf, mode: "0600", from: cloud.conf, secret: true}
//! ```
//!
//! The reader refuses an unknown field with its place in the file. It also refuses here, and not when the first machine
//! comes, what is too long for a plan or what an agent would not accept ([`allowed`]). A file that is not a plans file,
//! or that names unknown pools, is refused as a whole. One plan that cannot be followed is reported on its own, because
//! it blocks only its own pool. [`crate::plans_watch`] reads the file, and reads it again while the server runs.

use std::collections::{BTreeMap, BTreeSet};
use std::io::Read as _;
use std::path::{Path, PathBuf};

use reveille_core::model::id::{PoolName, RosterName};
use reveille_wire::agent::allowed::{self, NotAllowed};
use reveille_wire::agent::text::{Content, List, Word};
use reveille_wire::agent::{Distribution, Role, SERVER_FRAME_BYTES_MAX, Step, plan};
use reveille_wire::yaml::{self, Unreadable};
use serde::Deserialize;
use thiserror::Error;

use crate::registry::{Plans, Template};

/// Why the server does not take plans.
#[derive(Debug, Error)]
pub enum PlansError {
    /// A file cannot be read.
    #[error("cannot read {}", path.display())]
    Read {
        /// The file.
        path: PathBuf,
        /// The error of the operating system.
        source: std::io::Error,
    },
    /// The file is not a plans file.
    #[error("{} is no file of plans", path.display())]
    Shape {
        /// The file.
        path: PathBuf,
        /// The place and the error. It quotes no line and no value: a plan's file may hold a secret.
        source: Unreadable,
    },
    /// A plan cannot be followed.
    #[error("{}, plan of pool {pool}: {what}", path.display())]
    Plan {
        /// The file.
        path: PathBuf,
        /// The plan's pool.
        pool: String,
        /// The error, and what to write instead.
        what: String,
    },
}

/// The maximum size of each file: more than a plan may contain.
const FILE_BYTES_MAX: u64 = 1 << 20;
/// A wait for a role that no server reports and no server creates would last for ever.
const WORKER: &str = "needs holds worker: whether one is there is not told to this server, and a machine would wait for ever; \
    write control-plane, etcd, or both";

#[derive(Deserialize)]
#[serde(rename_all = "camelCase", deny_unknown_fields)]
struct File {
    plans: Vec<One>,
}

#[derive(Deserialize)]
#[serde(rename_all = "camelCase", deny_unknown_fields)]
struct One {
    roster: Option<String>,
    pool: String,
    join: Join,
    #[serde(default)]
    needs: BTreeSet<Role>,
    #[serde(default)]
    files: Vec<Written>,
}

#[derive(Deserialize)]
#[serde(rename_all = "camelCase", deny_unknown_fields)]
struct Join {
    distribution: Distribution,
    server: Word,
    ca_pins: List<Word, 8>,
    #[serde(default)]
    labels: BTreeMap<Word, Word>,
    #[serde(default)]
    taints: List<Word, 32>,
    config_file: Option<PathBuf>,
}

#[derive(Deserialize)]
#[serde(rename_all = "camelCase", deny_unknown_fields)]
struct Written {
    path: Word,
    mode: Word,
    owner: Option<Word>,
    content: Option<Content>,
    from: Option<PathBuf>,
    #[serde(default)]
    secret: bool,
}

/// The result of reading a plans file.
#[derive(Debug, Default)]
pub(crate) struct Outcome {
    /// The plans that can be followed.
    pub(crate) plans: Plans,
    /// The error of each other plan.
    pub(crate) refused: Vec<PlansError>,
    /// Every file that was read, or that could not be read.
    pub(crate) files: BTreeSet<PathBuf>,
}

/// Reads a plans file for the existing pools. `read` receives every file that was read, or that could not be read.
pub(crate) fn read_into(
    path: &Path,
    pools: &BTreeSet<(RosterName, PoolName)>,
    read: &mut Outcome,
) -> Result<(), PlansError> {
    read.files.insert(path.to_owned());
    let text = text(path)?;
    let shape = |source| PlansError::Shape { path: path.to_owned(), source };
    let file: File = yaml::written(&text).map_err(shape)?;
    let mut seen = BTreeSet::new();
    for one in file.plans {
        let wrong = |what: String| PlansError::Plan { path: path.to_owned(), pool: one.pool.clone(), what };
        let named = |(roster, pool): &&(RosterName, PoolName)| {
            pool.as_str() == one.pool && one.roster.as_ref().is_none_or(|named| roster.as_str() == named)
        };
        let mut found = pools.iter().filter(named);
        let Some(key) = found.next() else {
            return Err(wrong("no roster has this pool; write the name of one that is there".to_owned()));
        };
        if found.next().is_some() {
            return Err(wrong(
                "more than one roster has a pool of this name; write roster: NAME beside it".to_owned(),
            ));
        }
        if !seen.insert(key) {
            return Err(wrong("it has two plans; write one".to_owned()));
        }
        match template(path, &one, &mut read.files) {
            Ok(template) => drop(read.plans.0.insert(key.clone(), template)),
            Err(Wrong::Plan(what)) => read.refused.push(wrong(what)),
            Err(Wrong::File(error)) => return Err(error),
        }
    }
    Ok(())
}

enum Wrong {
    Plan(String),
    File(PlansError),
}

impl From<NotAllowed> for Wrong {
    fn from(refused: NotAllowed) -> Self {
        Self::Plan(refused.to_string())
    }
}

impl Wrong {
    /// A file that cannot be read keeps its own place.
    fn within(self, place: &str) -> Self {
        match self {
            Self::Plan(what) => Self::Plan(format!("{place}: {what}")),
            Self::File(error) => Self::File(error),
        }
    }
}

fn template(path: &Path, one: &One, read: &mut BTreeSet<PathBuf>) -> Result<Template, Wrong> {
    let mut steps = Vec::new();
    for (number, file) in one.files.iter().enumerate() {
        steps.push(step(path, number, file, read)?);
    }
    if steps.len() + 1 > plan::STEPS_MAX {
        return Err(Wrong::Plan(format!(
            "it has {} files; a plan has at most {}",
            steps.len(),
            plan::STEPS_MAX - 1
        )));
    }
    let pin = |pin: &Word| {
        pin.strip_prefix("sha256:")
            .is_some_and(|hex| hex.len() == 64 && hex.bytes().all(|byte| byte.is_ascii_hexdigit()))
    };
    if one.join.ca_pins.is_empty() || !one.join.ca_pins.iter().all(pin) {
        return Err(Wrong::Plan(
            "caPins has to hold at least one pin, sha256: and 64 hex digits, as kubeadm prints it".to_owned(),
        ));
    }
    let join = steps.len();
    allowed::aim(join, &one.join.server, &one.join.labels, &one.join.taints)?;
    let config = match &one.join.config_file {
        Some(name) => {
            let config = content(path, name, read).map_err(|wrong| wrong.within("join.configFile"))?;
            allowed::config(join, one.join.distribution, config.as_str())
                .map_err(|refused| Wrong::Plan(format!("{}: {refused}", name.display())))?;
            Some(config)
        }
        None => None,
    };
    if one.needs.contains(&Role::Worker) {
        return Err(Wrong::Plan(WORKER.to_owned()));
    }
    let template = Template {
        distribution: one.join.distribution,
        server: one.join.server.clone(),
        ca_pins: one.join.ca_pins.to_vec(),
        labels: one.join.labels.clone(),
        taints: one.join.taints.to_vec(),
        files: steps,
        config,
        needs: one.needs.clone(),
    };
    let bytes = template.files.iter().map(bytes_of).sum::<usize>()
        + template.config.as_ref().map_or(0, |config| config.len());
    // As JSON a text can take twice its bytes, and the size of a frame is limited.
    if bytes > SERVER_FRAME_BYTES_MAX / 2 {
        return Err(Wrong::Plan(format!(
            "its files have {bytes} bytes; a plan takes at most {}",
            SERVER_FRAME_BYTES_MAX / 2
        )));
    }
    Ok(template)
}

fn bytes_of(step: &Step) -> usize {
    match step {
        Step::WriteFile { content, .. } => content.len(),
        Step::Join(_) | Step::RestartKubelet {} => 0,
    }
}

fn step(path: &Path, number: usize, file: &Written, read: &mut BTreeSet<PathBuf>) -> Result<Step, Wrong> {
    let content = match (&file.content, &file.from) {
        (Some(content), None) => content.clone(),
        (None, Some(name)) => content(path, name, read)
            .map_err(|wrong| wrong.within(&format!("files[{number}]: {}", file.path)))?,
        _ => {
            let path = &file.path;
            return Err(Wrong::Plan(format!(
                "files[{number}]: {path} needs content or from, one of the two"
            )));
        }
    };
    let (path, mode, owner) = (file.path.clone(), file.mode.clone(), file.owner.clone());
    let step = Step::WriteFile { path, mode, owner, content, secret: file.secret };
    allowed::step(number, &step)?;
    Ok(step)
}

/// The whole content of a file beside the plans file.
fn content(plans: &Path, name: &Path, read: &mut BTreeSet<PathBuf>) -> Result<Content, Wrong> {
    let path = plans.parent().unwrap_or(plans).join(name);
    read.insert(path.clone());
    let text = text(&path).map_err(Wrong::File)?;
    let content = Content::cut(&text);
    if content.as_str() != text {
        return Err(Wrong::Plan(format!(
            "{} is too long, or has control characters; a file of a plan is text",
            path.display()
        )));
    }
    Ok(content)
}

pub(crate) fn text(path: &Path) -> Result<String, PlansError> {
    let failed = |source| PlansError::Read { path: path.to_owned(), source };
    let mut text = String::new();
    let file = std::fs::File::open(path).map_err(failed)?;
    file.take(FILE_BYTES_MAX + 1).read_to_string(&mut text).map_err(failed)?;
    if text.len() as u64 > FILE_BYTES_MAX {
        let what = format!("it has more than {FILE_BYTES_MAX} bytes");
        return Err(failed(std::io::Error::new(std::io::ErrorKind::FileTooLarge, what)));
    }
    Ok(text)
}

#[cfg(test)]
pub(crate) mod tests;
