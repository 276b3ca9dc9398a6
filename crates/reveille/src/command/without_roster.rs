//! A look at a cluster for which there is no roster: the roster that `init` would write for the cluster alone, in memory.
//!
//! ```text
//!  --context, --kubeconfig, or no roster file ─▶ Nodes, machine records ─▶ Proposal ─▶ its text ─▶ the reader ─▶ CheckedRoster
//! ```
//!
//! It goes through the reader of rosters, so that a look means the same as with the file. Nothing is written, and no controller
//! is asked: a controller keeps its state under the name of its roster, and there is none.

use std::io::Write as _;
use std::path::{Path, PathBuf};

use anyhow::anyhow;
use reveille_kube::{Cluster, ClusterConfig};
use reveille_wire::roster::render::{Proposal, render};
use reveille_wire::roster::{self, CheckedRoster, ClusterRef, Origin};

use super::Context;
use super::init::{absolute, choose_context, roster_name, unconfigured};
use super::query::within;
use crate::adapters::machines::{NodesFrom, project};
use crate::cli::controller::Reach;
use crate::cli::failure::Failure;
use crate::survey::alone;

/// The rosters that a question is about, and whether they were read from files.
pub(crate) struct Asked {
    /// The rosters.
    pub(crate) rosters: Vec<CheckedRoster>,
    /// There is no roster: what is known comes from the cluster alone.
    pub(crate) is_without_roster: bool,
}

impl Asked {
    /// Where the state of one of them is kept. Without a roster there is none, and no roster can have this name.
    pub(crate) fn state_dir(&self, context: &Context, checked: &CheckedRoster) -> Result<PathBuf, Failure> {
        let state_dir = context.state_dir(&checked.roster.name)?;
        Ok(if self.is_without_roster { state_dir.join(".none") } else { state_dir })
    }
}

impl Context {
    /// The rosters that a reading command is about: those of the files, or, where there is none, that of the cluster alone.
    pub(crate) async fn asked(&self, reach: &Reach) -> Result<Asked, Failure> {
        if reach.is_given() && self.rosters.is_named() {
            let error = anyhow!(
                "--context and --kubeconfig are for a cluster without a roster, and a roster is named"
            );
            return Err(Failure::usage(error).next("leave out one of the two"));
        }
        let is_without_roster = reach.is_given() || !self.rosters.is_there();
        if !is_without_roster {
            return Ok(Asked { rosters: self.rosters()?, is_without_roster });
        }
        let config = ClusterConfig { kubeconfig: reach.kubeconfig.clone(), context: reach.context.clone() };
        let chosen = choose_context(&config)?;
        let cluster = ClusterRef {
            kubeconfig: reach.kubeconfig.as_deref().map(absolute).transpose()?,
            context: chosen.as_ref().map(|context| context.name.clone()),
        };
        let connected = Cluster::connect(&config).await.map_err(unconfigured)?.without_cloud();
        let project = project(connected, NodesFrom::List);
        let machines = within("cluster", project.machines()).await;
        let machines = machines.map_err(|error| {
            Failure::cannot_tell(anyhow::Error::new(error)).next("try: kubectl get nodes")
        })?;
        if let Some(note) = project.elsewhere() {
            drop(writeln!(std::io::stderr().lock(), "note: {note}"));
        }
        let proposal = alone::propose(&machines, roster_name(chosen.as_ref()), cluster, Vec::new());
        Ok(Asked { rosters: checked(&proposal)?, is_without_roster })
    }
}

/// A cluster without a single machine has no pool, and a roster without a pool is none.
fn checked(proposal: &Proposal) -> Result<Vec<CheckedRoster>, Failure> {
    if proposal.pools.is_empty() {
        return Err(Failure::cannot_tell(anyhow!("the cluster has no Node, and no machine record of one"))
            .next("name another cluster with --context; with a cloud that Reveille knows: reveille init --kind KIND"));
    }
    let origin = Origin { name: "the cluster's roster", dir: Path::new("/"), home: None };
    roster::read(&render(proposal), &origin).map_err(|refusal| {
        Failure::internal(anyhow::Error::new(refusal).context("what was found makes no valid roster"))
    })
}
