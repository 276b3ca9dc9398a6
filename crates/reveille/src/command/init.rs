//! `init`: reads a cluster and its cloud, and writes a roster to start from.
//!
//! ```text
//!  kubeconfig  ─▶ nodes, pod ranges ┐
//!  the cloud   ─▶ the whole project ┴▶ survey ─▶ Proposal ─▶ file, and tasks for the operator
//!  no cloud that can be read, or machines without marks ─▶ the cluster alone ─▶ Proposal
//! ```
//!
//! The command only reads, and its roster allows no action: every repair is `propose` or `off`. What it could not find
//! out stands on standard error, and in the file where it belongs. It never overwrites an existing file.

use std::collections::BTreeMap;
use std::fs::OpenOptions;
use std::io::Write as _;
use std::path::Path;

use anyhow::{Context as _, anyhow};
use futures::TryFutureExt as _;
use reveille_cloud::provider::{Opened, Project as _};
use reveille_cloud::site::Site;
use reveille_core::effect::{ReadError, ReadErrorKind};
use reveille_core::event::ClusterFact;
use reveille_core::model::id::RouterId;
use reveille_core::model::node::Node;
use reveille_kube::{Cluster, ClusterConfig, ContextInfo, contexts};
use reveille_wire::roster::render::{Proposal, render};
use reveille_wire::roster::{self, ClusterRef, Origin};

use super::query::within;
use super::{Answer, Context};
use crate::adapters::machines::{NodesFrom, project};
use crate::adapters::providers;
use crate::cli::exit::Exit;
use crate::cli::{self, failure::Failure};
use crate::survey::{self, Gap, Place, Survey, plain_name, propose, read};

/// `init`.
pub(crate) async fn init(_: &Context, args: &cli::init::Init) -> Result<Answer, Failure> {
    let printed = args.file == Path::new("-");
    if !printed && args.file.exists() {
        return Err(Failure::usage(anyhow!(
            "{} is there already and is not overwritten",
            args.file.display()
        ))
        .next("name another with --file, or print the proposal with --file -"));
    }
    let cluster_config = ClusterConfig { kubeconfig: args.kubeconfig.clone(), context: args.context.clone() };
    let chosen = choose_context(&cluster_config)?;
    let named = args.kubeconfig.clone().or_else(kubeconfig_of_environment);
    let cluster = ClusterRef {
        kubeconfig: named.as_deref().map(absolute).transpose()?,
        context: chosen.as_ref().map(|context| context.name.clone()),
    };
    let name = args.name.clone().unwrap_or_else(|| roster_name(chosen.as_ref()));
    let (nodes, Opened { project, site }) = match open(args, &cluster_config).await? {
        Opening::Cloud(nodes, opened) => (nodes, opened),
        Opening::Alone(unknown) => return alone(args, &cluster_config, name, cluster, unknown).await,
    };
    if let Some(warning) = project.warning() {
        drop(writeln!(std::io::stderr().lock(), "note: {warning}"));
    }
    let (cloud, router) = (site.cloud(), args.router.as_deref().map(RouterId::from));
    let survey = read::survey(&project, &cloud, nodes, router.as_ref())
        .await
        .map_err(|error| unread(error, &*site))?;
    let settled = propose::settle(&survey, &*site)?;
    let place = Place { roster: name.clone(), cluster: cluster.clone(), cloud, site: &*site, settled };
    let propose::Proposed { proposal, unknown } = propose::roster(&survey, &place);
    if proposal.pools.is_empty() {
        // Nothing on the instances tells whose they are. The Nodes' labels do, for a roster that only looks.
        return alone(args, &cluster_config, name, cluster, unknown).await;
    }
    let found = found(&survey, &proposal, &*site);
    write(args, &proposal, &found, &unknown)
}

/// Writes or prints the roster, and says what was found and what was not.
fn write(
    args: &cli::init::Init,
    proposal: &Proposal,
    found: &[String],
    unknown: &[Gap],
) -> Result<Answer, Failure> {
    let text = render(proposal);
    check(proposal)?;
    if args.file == Path::new("-") {
        tell(found, unknown);
        return Ok(Answer { text, exit: Exit::NoProblem });
    }
    write_new(&args.file, &text)?;
    Ok(Answer { text: summary(&args.file, found, unknown), exit: Exit::NoProblem })
}

/// A roster without a cloud. `unknown` says why.
async fn alone(
    args: &cli::init::Init,
    config: &ClusterConfig,
    name: String,
    cluster: ClusterRef,
    unknown: Vec<Gap>,
) -> Result<Answer, Failure> {
    let connected = Cluster::connect(config).await.map_err(unconfigured)?.without_cloud();
    let project = project(connected, NodesFrom::List);
    let unread = |error| Failure::cannot_tell(anyhow::Error::new(error)).next("try: kubectl get nodes");
    let machines = within("cluster", project.machines()).await.map_err(unread)?;
    let kinds = within("cluster", project.served()).await.map_err(unread)?;
    let unknown: Vec<Gap> = unknown
        .into_iter()
        .chain(project.warning().map(Gap::new))
        .chain(project.elsewhere().map(Gap::new))
        .collect();
    let mut notes = vec![
        "Written by `reveille init` from the Nodes of the cluster alone. Check it, correct it.".to_owned(),
    ];
    let told = unknown.iter().flat_map(|gap| {
        let commands = gap.commands.iter().map(|command| format!("    {command}"));
        std::iter::once(format!("Not found out: {}", gap.what)).chain(commands)
    });
    notes.extend(told);
    let proposal = survey::alone::propose(&machines, name, cluster, notes);
    if proposal.pools.is_empty() {
        return Err(Failure::cannot_tell(anyhow!("the cluster has no Node and no machine record"))
            .next("name its cloud with --kind, or another cluster with --context"));
    }
    let records = machines.iter().filter(|machine| machine.record.is_some()).count();
    let kinds: Vec<&str> = kinds.iter().map(|served| &*served.kind.name).collect();
    let noun = if machines.len() == 1 { "machine" } else { "machines" };
    let mut found = vec![format!("{} {noun}, {records} of them with a machine record", machines.len())];
    if !kinds.is_empty() {
        found.push(format!("machine records: {}", kinds.join(", ")));
    }
    found.extend(proposal.pools.iter().map(|pool| format!("pool {}: {}", pool.name, pool.notes.join(", "))));
    write(args, &proposal, &found, &unknown)
}

/// What `init` can read.
enum Opening {
    /// The Nodes, and their cloud.
    Cloud(Vec<std::sync::Arc<Node>>, Opened),
    /// The cluster alone, and why.
    Alone(Vec<Gap>),
}

/// Reads the Nodes and opens the cloud: the one of the command line, else the provider that the Nodes name. A mistake in
/// the command line is reported before a server that does not answer.
async fn open(args: &cli::init::Init, config: &ClusterConfig) -> Result<Opening, Failure> {
    let given = args.choice.with_paths(absolute)?;
    if let Some(provider) = args.choice.provider()? {
        let opening = provider.open(given).err_into::<Failure>();
        return match futures::join!(read_nodes(config), opening) {
            (Ok(nodes), Ok(opened)) => Ok(Opening::Cloud(nodes, opened)),
            (Err(unread), Err(mistake)) if mistake.exit() == Exit::Usage && unread.exit() != Exit::Usage => {
                Err(mistake)
            }
            (Err(failure), _) | (_, Err(failure)) => Err(failure),
        };
    }
    let nodes = read_nodes(config).await?;
    let Some(provider) = providers::recognised(&nodes) else {
        let kinds: Vec<&str> = providers::PROVIDERS.iter().map(|provider| provider.kind().name).collect();
        return Ok(Opening::Alone(vec![Gap::new(format!(
            "which cloud the machines are in: no Node names an instance of a kind that Reveille can read ({}). If they \
             are in one of these, name it with --kind",
            kinds.join(", ")
        ))]));
    };
    match provider.open(given).await {
        Ok(opened) => Ok(Opening::Cloud(nodes, opened)),
        // The Nodes alone say much; why the cloud does not, the operator may find out later.
        Err(error) => {
            let (kind, next) = (provider.kind().name, error.next.clone());
            let failure = Failure::from(error).to_string();
            let why = failure.lines().next().unwrap_or_default().trim_start_matches("reveille: ").to_owned();
            let next = next.map_or_else(String::new, |next| format!("; {next}, and run init again"));
            Ok(Opening::Alone(vec![Gap::new(format!(
                "what {kind} knows of the machines, if they are there: {why}{next}. Without a cloud only the agent of \
                 a machine can repair it"
            ))]))
        }
    }
}

/// The adapter names the missing permission; the administrator who grants it has to know the other ones too.
fn unread(error: ReadError, site: &dyn Site) -> Failure {
    let forbidden = error.kind == ReadErrorKind::Forbidden;
    let failure = Failure::cannot_tell(anyhow::Error::new(error));
    if !forbidden {
        return failure;
    }
    failure
        .next(format!("give it to whose credentials these are; {} prints all that are needed", site.rights()))
}

/// What the operator wants to know once the file exists.
fn summary(file: &Path, found: &[String], unknown: &[Gap]) -> String {
    let mut out = format!(
        "{} is written. Reveille only reports with it: it changes nothing until you set a kind of repair to `act`.\n\n",
        file.display()
    );
    for line in found {
        out.push_str(&format!("found      {line}\n"));
    }
    for gap in unknown {
        out.push_str(&format!("not found  {}\n", gap.what));
        for command in &gap.commands {
            out.push_str(&format!("             {command}\n"));
        }
    }
    let option = if file == Path::new("reveille.yaml") {
        String::new()
    } else {
        format!(" --roster {}", file.display())
    };
    out + &format!("\nnext: read it, correct it, then: reveille status{option}\n")
}

/// What belongs on standard error beside a roster on standard output.
fn tell(found: &[String], unknown: &[Gap]) {
    let mut err = std::io::stderr().lock();
    for line in found {
        drop(writeln!(err, "found: {line}"));
    }
    for gap in unknown {
        drop(writeln!(err, "not found: {}", gap.what));
        for command in &gap.commands {
            drop(writeln!(err, "  {command}"));
        }
    }
}

/// The one file that KUBECONFIG names: the roster names it as well, because `run` starts in another environment. Several files
/// are merged, and stay as they are.
fn kubeconfig_of_environment() -> Option<std::path::PathBuf> {
    let named = std::env::var_os("KUBECONFIG")?;
    let mut files = std::env::split_paths(&named).filter(|path| !path.as_os_str().is_empty());
    let first = files.next()?;
    files.next().is_none().then_some(first)
}

pub(super) fn choose_context(config: &ClusterConfig) -> Result<Option<ContextInfo>, Failure> {
    let known = contexts(config).map_err(unconfigured)?;
    Ok(known.into_iter().find(|context| context.current))
}

/// No kubeconfig, or one that cannot be used.
pub(super) fn unconfigured(error: impl std::error::Error + Send + Sync + 'static) -> Failure {
    Failure::usage(anyhow::Error::new(error)).next("name one with --kubeconfig and --context")
}

async fn read_nodes(config: &ClusterConfig) -> Result<Vec<std::sync::Arc<Node>>, Failure> {
    let cluster = Cluster::connect(config).await.map_err(unconfigured)?;
    let facts = cluster.observe_once().await.map_err(|error| {
        Failure::cannot_tell(anyhow::Error::new(error))
            .next("try: kubectl get nodes. To read another cluster, name it with --kubeconfig and --context")
    })?;
    let listed = facts.into_iter().find_map(|fact| match fact {
        ClusterFact::Synced(nodes) => Some(nodes),
        _ => None,
    });
    Ok(listed.unwrap_or_default())
}

pub(super) fn roster_name(context: Option<&ContextInfo>) -> String {
    let name = context.map_or("cluster", |context| context.name.as_str());
    // `aws eks update-kubeconfig` names a context by the cluster's ARN, which ends with the cluster's name.
    let name = if name.starts_with("arn:") { name.rsplit('/').next().unwrap_or(name) } else { name };
    let plain = plain_name(name);
    if plain.is_empty() { "cluster".to_owned() } else { plain }
}

/// Relative paths in a roster start at the roster file, those of the command line at the working directory.
pub(super) fn absolute(path: &Path) -> Result<std::path::PathBuf, Failure> {
    Ok(std::path::absolute(path).with_context(|| format!("cannot tell where {} is", path.display()))?)
}

/// The reader must accept the roster that we write; a difference is a bug in this program, found before it does harm.
/// This also holds for commented parts once an operator enables them.
fn check(proposal: &Proposal) -> Result<(), Failure> {
    let mut taken_up = proposal.clone();
    taken_up.pools.append(&mut taken_up.commented);
    let text = &render(&taken_up);
    let origin = Origin { name: "the proposal", dir: Path::new("/"), home: None };
    roster::read(text, &origin).map(drop).map_err(|refusal| {
        Failure::usage(anyhow::Error::new(refusal).context("what was found makes no valid roster"))
            .next("print it with --file - and correct what is named")
    })
}

fn write_new(file: &Path, text: &str) -> Result<(), Failure> {
    let write = || {
        let mut new = OpenOptions::new().write(true).create_new(true).open(file)?;
        new.write_all(text.as_bytes())?;
        new.sync_all()
    };
    write().map_err(|error| {
        Failure::usage(anyhow::Error::new(error).context(format!("cannot write {}", file.display())))
    })
}

fn found(survey: &Survey, proposal: &Proposal, site: &dyn Site) -> Vec<String> {
    let mut lines = vec![format!(
        "{} nodes; {} of them are instances of {}, which has {}",
        survey.nodes.len(),
        survey.ours().len(),
        site.called(),
        survey.inventory.instances.len()
    )];
    let mut pools: BTreeMap<&str, usize> = BTreeMap::new();
    for pool in &proposal.pools {
        let carries = |instance: &&std::sync::Arc<reveille_core::model::instance::Instance>| {
            instance.marks.contains(&pool.owned.cluster)
                && pool.owned.pool.as_ref().is_none_or(|mark| instance.marks.contains(mark))
        };
        pools.insert(pool.name.as_str(), survey.inventory.instances.values().filter(carries).count());
    }
    for (name, count) in pools {
        lines.push(format!("pool {name}: {count} instances carry its marks"));
    }
    if !proposal.network.pod_ranges.is_empty() {
        let ranges: Vec<String> = proposal.network.pod_ranges.iter().map(ToString::to_string).collect();
        lines.push(format!("pod ranges {}", ranges.join(", ")));
    }
    if let Some(router) = &proposal.network.router {
        lines.push(format!("{} {}: {}", site.router(), router.id, router.why));
    }
    lines
}

#[cfg(test)]
mod tests {
    use super::*;

    #[tokio::test]
    async fn cluster_that_cannot_be_read_has_a_next_step() {
        let folder = tempfile::tempdir().unwrap();
        let kubeconfig = folder.path().join("kubeconfig");
        let config = ClusterConfig { kubeconfig: Some(kubeconfig.clone()), context: None };
        let missing = choose_context(&config).unwrap_err().to_string();
        assert!(missing.contains("next: name one with --kubeconfig and --context"), "{missing}");
        // No server listens on port 1.
        let server = "{clusters: [{name: a, cluster: {server: 'http://127.0.0.1:1'}}], users: [{name: a}],\
                      contexts: [{name: a, context: {cluster: a, user: a}}], current-context: a}";
        std::fs::write(&kubeconfig, server).unwrap();
        let silent = read_nodes(&config).await.unwrap_err().to_string();
        assert!(silent.contains("next: try: kubectl get nodes"), "{silent}");
    }
}
