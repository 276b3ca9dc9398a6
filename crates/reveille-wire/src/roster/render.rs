//! Writes a proposed roster as a file with comments, for `init`.
//!
//! [`Proposal`] holds what `init` found in the cluster and the clouds, with notes on how it was found. [`render`] writes
//! it so that an operator can read it from top to bottom and change it, and so that [`super::read`] accepts it. The marks
//! and numbers come from the proposal, the explanations from here. A proposal that no roster can hold (a tag with a
//! comma) is written as it is: the reader names the mistake, and this module does not repeat its checks.

use std::fmt::Write;

use ipnet::IpNet;
use reveille_core::model::id::{CloudName, PoolName, RosterName, RouterId};
use reveille_core::model::instance::Mark;
use reveille_core::model::roster::{GroupRef, Limits, Mode, Ownership, Repair};
use reveille_core::model::time::Span;

use super::pools::is_group_id;
use super::scalar::scalar;
use super::{API_VERSION, CloudRef, ClusterRef, KIND};
use crate::duration;

/// A proposed roster, and where each part of it was found.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Proposal {
    /// Its name.
    pub name: RosterName,
    /// One line each, at the top of the file: what was read, when, by which command.
    pub notes: Vec<String>,
    /// Where the cluster's API is.
    pub cluster: ClusterRef,
    /// The clouds, in the order of the file.
    pub clouds: Vec<ProposedCloud>,
    /// The pod network.
    pub network: ProposedNetwork,
    /// The pools, in the order of the file.
    pub pools: Vec<ProposedPool>,
    /// Pools without proof: written as comments below the others, for an operator to enable.
    pub commented: Vec<ProposedPool>,
    /// How many repairs are allowed at once.
    pub limits: Limits,
}

/// One cloud of a proposal.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ProposedCloud {
    /// The roster's name for it.
    pub name: CloudName,
    /// Where it is.
    pub at: CloudRef,
    /// One line each.
    pub notes: Vec<String>,
}

/// The pod network of a proposal.
#[derive(Clone, Debug, PartialEq, Eq, Default)]
pub struct ProposedNetwork {
    /// The pod ranges; empty: the field is left out.
    pub pod_ranges: Vec<IpNet>,
    /// The router that carries pod routes; `None`: the field is left out.
    pub router: Option<ProposedRouter>,
    /// Routers that may be the right one: written as comments.
    pub candidates: Vec<ProposedRouter>,
    /// One line each.
    pub notes: Vec<String>,
}

/// A router of a proposal.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ProposedRouter {
    /// Its cloud.
    pub cloud: CloudName,
    /// Its id.
    pub id: RouterId,
    /// Why the router is proposed.
    pub why: String,
}

/// One pool of a proposal.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ProposedPool {
    /// Its name.
    pub name: PoolName,
    /// Its cloud.
    pub cloud: CloudName,
    /// The marks that prove ownership.
    pub owned: Ownership,
    /// Groups that every port must carry.
    pub groups: Vec<GroupRef>,
    /// The fewest machines.
    pub min: u32,
    /// The join deadline; `None`: the controller never acts.
    pub join_within: Option<Span>,
    /// The allowed repairs.
    pub repair: Repair,
    /// Whether a machine of an Auto Scaling group may be replaced through that group; `None`: the field is left out.
    pub through_group: Option<bool>,
    /// One line each.
    pub notes: Vec<String>,
}

/// Writes the proposal as a roster file.
pub fn render(proposal: &Proposal) -> String {
    let mut lines = Lines::default();
    lines.notes("", &proposal.notes);
    lines.line(format_args!("apiVersion: {API_VERSION}"));
    lines.line(format_args!("kind: {KIND}"));
    lines.line(format_args!("metadata: {{name: {}}}", scalar(proposal.name.as_str())));
    lines.line(format_args!("spec:"));
    cluster(&mut lines, &proposal.cluster);
    clouds(&mut lines, &proposal.clouds);
    network(&mut lines, &proposal.network);
    lines.blank();
    lines.line(format_args!("  # Who should answer, and what may be done when they do not."));
    lines.line(format_args!("  pools:"));
    for proposed in &proposal.pools {
        pool(&mut lines, proposed, &proposal.clouds);
    }
    for proposed in &proposal.commented {
        let mut live = Lines::default();
        pool(&mut live, proposed, &proposal.clouds);
        lines.comment(&live.text);
    }
    limits(&mut lines, &proposal.limits);
    lines.text
}

#[derive(Default)]
struct Lines {
    text: String,
}

impl Lines {
    fn line(&mut self, line: std::fmt::Arguments<'_>) {
        let written = self.text.write_fmt(line);
        debug_assert!(written.is_ok(), "a string takes every text");
        self.text.push('\n');
    }

    fn blank(&mut self) {
        self.text.push('\n');
    }

    /// Writes lines of the file as comments in their place: removing the `# ` enables them.
    fn comment(&mut self, text: &str) {
        for line in text.lines() {
            let plain = line.trim_start();
            let indent = &line[..line.len() - plain.len()];
            // Comments get a second `#`, so that an editor can uncomment the whole block at once.
            self.line(format_args!("{indent}# {plain}"));
        }
    }

    fn notes(&mut self, indent: &str, notes: &[String]) {
        for note in notes {
            let plain: String = note.chars().map(|c| if c.is_control() { ' ' } else { c }).collect();
            self.line(format_args!("{indent}# {}", plain.trim()));
        }
    }
}

fn cluster(lines: &mut Lines, cluster: &ClusterRef) {
    let kubeconfig =
        cluster.kubeconfig.as_ref().map(|path| ("kubeconfig", path.to_string_lossy().into_owned()));
    let context = cluster.context.as_ref().map(|context| ("context", context.clone()));
    let fields: Vec<String> = kubeconfig
        .into_iter()
        .chain(context)
        .map(|(name, text)| format!("{name}: {}", scalar(&text)))
        .collect();
    if !fields.is_empty() {
        lines.line(format_args!("  cluster: {{{}}}", fields.join(", ")));
    }
}

fn clouds(lines: &mut Lines, clouds: &[ProposedCloud]) {
    if clouds.iter().all(|cloud| cloud.at.is_cluster()) {
        lines.line(format_args!(
            "  # No clouds are listed: the machines are the Nodes of the cluster, and nothing is done to them"
        ));
        lines.line(format_args!("  # but through their agents (repair.rejoin)."));
        return;
    }
    lines.line(format_args!("  clouds:"));
    for cloud in clouds {
        lines.notes("    ", &cloud.notes);
        lines.line(format_args!("    - name: {}", scalar(cloud.name.as_str())));
        lines.line(format_args!("      {}", (cloud.at.words().line)(&cloud.at)));
    }
}

fn network(lines: &mut Lines, network: &ProposedNetwork) {
    if network.pod_ranges.is_empty() && network.router.is_none() && network.candidates.is_empty() {
        return;
    }
    lines.blank();
    lines.notes("  ", &network.notes);
    lines.line(format_args!("  network:"));
    if !network.pod_ranges.is_empty() {
        let ranges: Vec<String> = network.pod_ranges.iter().map(|net| scalar(&net.to_string())).collect();
        lines.line(format_args!("    podCIDRs: [{}]", ranges.join(", ")));
    }
    let field = |router: &ProposedRouter| {
        format!("router: {{cloud: {}, id: {}}}", scalar(router.cloud.as_str()), scalar(router.id.as_str()))
    };
    if let Some(router) = &network.router {
        lines.line(format_args!("    # Who routes the pod ranges. Take this out where an overlay does."));
        lines.notes("    ", std::slice::from_ref(&router.why));
        lines.line(format_args!("    {}", field(router)));
    }
    if !network.candidates.is_empty() {
        lines.line(format_args!("    # Who routes the pod ranges, if one of these does. Take the # away before the one that is meant."));
    }
    for router in &network.candidates {
        lines.notes("    ", &[format!("{}  # {}", field(router), router.why)]);
    }
}

fn pool(lines: &mut Lines, pool: &ProposedPool, clouds: &[ProposedCloud]) {
    let at = clouds.iter().find(|cloud| cloud.name == pool.cloud).map(|cloud| &cloud.at);
    let (cluster, of_pool) =
        (spelled(&pool.owned.cluster, at), pool.owned.pool.as_ref().map(|mark| spelled(mark, at)));
    lines.notes("    ", &pool.notes);
    lines.line(format_args!("    - name: {}", scalar(pool.name.as_str())));
    let is_alone = at.is_some_and(CloudRef::is_cluster);
    if is_alone {
        selector(lines, of_pool.as_ref());
    } else {
        lines.line(format_args!("      cloud: {}", scalar(pool.cloud.as_str())));
        lines.line(format_args!(
            "      # The marks on an instance that prove it is ours. Its name is never enough."
        ));
        let of_pool = match &of_pool {
            None => String::new(),
            Some(Mark::Tag(tag)) => format!(", pool: {}", scalar(tag)),
            Some(mark @ Mark::Metadata(..)) => format!(", pool: {{{}}}", mark_field(mark)),
        };
        lines.line(format_args!("      owned: {{{}{of_pool}}}", mark_field(&cluster)));
    }
    if !pool.groups.is_empty() {
        let groups: Vec<String> = pool.groups.iter().map(group).collect();
        lines.line(format_args!("      securityGroups: [{}]", groups.join(", ")));
    }
    if !is_alone {
        lines.line(format_args!("      min: {}  # Reveille never leaves fewer machines than this", pool.min));
    }
    let within = pool.join_within.map_or_else(|| "never".to_owned(), duration::text);
    lines.line(format_args!("      join: {{within: {within}}}"));
    lines.line(format_args!("      # off: not shown. propose: shown, not done. act: done."));
    let Repair { network, rejoin, reboot, replace, cleanup } = pool.repair;
    if is_alone {
        // The other classes are off unless written, and have no cloud by which they could be done.
        lines.line(format_args!("      repair: {{rejoin: {}}}", mode(rejoin)));
        return;
    }
    lines.line(format_args!(
        "      repair: {{network: {}, rejoin: {}, reboot: {}, replace: {}, cleanup: {}}}",
        mode(network),
        mode(rejoin),
        mode(reboot),
        mode(replace),
        mode(cleanup)
    ));
    if let Some(through) = pool.through_group {
        lines.line(format_args!(
            "      # true: a machine of this pool may be replaced through the cloud's group that keeps it."
        ));
        lines.line(format_args!("      throughGroup: {through}"));
    }
}

/// The label that tells the Nodes of a pool.
fn selector(lines: &mut Lines, label: Option<&Mark>) {
    if let Some(Mark::Metadata(key, value)) = label {
        let (key, value) = (scalar(key), scalar(value));
        lines.line(format_args!(
            "      selector: {{matchLabels: {{{key}: {value}}}}}  # a label of its Nodes"
        ));
    }
}

/// The mark in its usual notation.
fn spelled(mark: &Mark, at: Option<&CloudRef>) -> Mark {
    at.map_or_else(|| mark.clone(), |at| (at.words().spelled)(mark))
}

fn limits(lines: &mut Lines, limits: &Limits) {
    lines.blank();
    lines.line(format_args!(
        "  # The most machines under repair at once, and the most repairs begun in an hour. When more than freezeAbove of the"
    ));
    lines.line(format_args!(
        "  # machines are faulty, Reveille repairs none of them: the cause is then elsewhere."
    ));
    let written = [
        format!("atOnce: {}", limits.at_once),
        format!("perHour: {}", limits.per_hour),
        format!("freezeAbove: {}%", limits.freeze_above_pct),
        format!("networkAtOnce: {}", limits.network_at_once),
        format!("sameFaultStopsAt: {}", limits.same_fault_stops_at),
    ];
    lines.line(format_args!("  limits: {{{}}}", written.join(", ")));
}

fn mark_field(mark: &Mark) -> String {
    match mark {
        Mark::Tag(tag) => format!("tag: {}", scalar(tag)),
        Mark::Metadata(key, value) => format!("metadata: {{{}: {}}}", scalar(key), scalar(value)),
    }
}

fn group(group: &GroupRef) -> String {
    match group {
        GroupRef::Name(name) if !is_group_id(name) => scalar(name),
        GroupRef::Id(id) if is_group_id(id.as_str()) => scalar(id.as_str()),
        GroupRef::Name(name) => format!("{{name: {}}}", scalar(name)),
        GroupRef::Id(id) => format!("{{id: {}}}", scalar(id.as_str())),
    }
}

const fn mode(mode: Mode) -> &'static str {
    match mode {
        Mode::Off => "off",
        Mode::Propose => "propose",
        Mode::Act => "act",
    }
}
