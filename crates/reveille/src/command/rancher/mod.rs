//! `rancher`: reads Rancher's records, and says what is wrong with them.
//!
//! ```text
//!  kubeconfigs ─▶ clients ─▶ reveille_rancher: look, judge ─▶ report ─▶ page, JSON, YAML
//! ```
//!
//! Nothing is decided here. A cluster that cannot be read is reported, and does not stop the others.

mod abandon;
mod api_client;
mod etcd;
pub(crate) mod query;
mod repair;
mod report;
pub(super) mod simulated;

use std::time::Duration;

use anyhow::anyhow;
use reveille_core::model::time::Span;
use reveille_kube::ClusterConfig;
use reveille_kube::rbac::{Grant, allow};
use reveille_rancher::ask::Place;
use reveille_rancher::judge::{Earlier, judge};
use reveille_rancher::model::{Cluster, Sample, Unread, UnreadKind};
use reveille_rancher::repair::Path;
use reveille_rancher::stamp::ServerTime;
use reveille_rancher::{modern, reading, rights as needs};
use reveille_wire::report::Report;
use tokio::time::Instant;

use self::api_client::KubeClient;
use super::{Answer, Context, printing};
use crate::cli::failure::Failure;
use crate::cli::rancher::{Inspect, Places, Rancher, RancherCommand};
use crate::cli::rights::{Rbac, Rights};

/// The cluster that Rancher itself runs in.
const LOCAL: &str = "local";

/// `rancher`.
pub(crate) async fn rancher(context: &Context, args: &Rancher) -> Result<Answer, Failure> {
    match &args.command {
        RancherCommand::Inspect(args) => inspect(context, args).await,
        RancherCommand::Evict(args) => repair::repair(context, Path::Evict, args).await,
        RancherCommand::Mend(args) => repair::repair(context, Path::Mend, args).await,
        RancherCommand::Abandon(args) => abandon::abandon(context, args).await,
    }
}

/// The permissions of `rancher`.
pub(crate) fn rights(args: &Rbac, place: Rights) -> Vec<Grant> {
    let place = match place {
        Rights::Management => Place::Management,
        Rights::Downstream => Place::Downstream,
    };
    let wanted = needs::Wanted { plans: args.plans, repair: args.repair };
    let grant = |rule: &needs::Rule| Grant {
        name: rule.role(),
        namespace: rule.namespace.map(str::to_owned),
        rules: vec![allow(rule.group, &[rule.resource], rule.verbs)],
    };
    needs::rules(place, wanted).map(grant).collect()
}

async fn inspect(context: &Context, args: &Inspect) -> Result<Answer, Failure> {
    let management = management(&args.places).await?;
    let downstream = downstream(&args.places).await?;
    let (clusters, server_now) = clusters(&management, args.cluster.as_deref()).await?;
    let mut looks = Vec::new();
    for cluster in clusters {
        let is_local = cluster.id.0 == LOCAL;
        let below = downstream.as_ref().or(is_local.then_some(&management));
        let began = Instant::now();
        let sample = reading::sample(&management, below, cluster, server_now).await;
        looks.push((sample, began, None));
    }
    if let Some(seconds) = args.again_after {
        tokio::time::sleep(Duration::from_secs(seconds.into())).await;
        for (sample, began, earlier) in &mut looks {
            let is_local = sample.cluster.id.0 == LOCAL;
            let below = downstream.as_ref().or(is_local.then_some(&management));
            let newer = reading::sample(&management, below, sample.cluster.clone(), sample.server_now).await;
            *earlier = Some((std::mem::replace(sample, newer), began.elapsed().into()));
        }
    }
    // When the command line names one cluster, the machines of other clusters are left out.
    let (machines, unread) = modern::machines(&management, args.plans).await.unwrap_or_else(none_of_them);
    let judged = looks.into_iter().map(|(sample, _, earlier): (Sample, _, Option<(Sample, Span)>)| {
        let earlier = earlier.as_ref().map(|(sample, before)| Earlier { sample, before: *before });
        let found = judge(&sample, earlier);
        report::cluster(&sample, &found)
    });
    let told =
        report::whole(management.server(), judged.collect(), &machines, unread, args.cluster.as_deref());
    let (text, exit) = printing::print(context, Report::RancherReport(told), true)?;
    Ok(Answer { text, exit })
}

/// An API server without this kind has no such machines.
fn none_of_them(unread: Unread) -> (Vec<modern::MachineState>, Vec<Unread>) {
    (Vec::new(), if unread.kind == UnreadKind::Missing { Vec::new() } else { vec![unread] })
}

async fn management(places: &Places) -> Result<KubeClient, Failure> {
    let config = ClusterConfig { kubeconfig: places.kubeconfig.clone(), context: places.context.clone() };
    open(&config, "Rancher's management cluster").await
}

async fn downstream(places: &Places) -> Result<Option<KubeClient>, Failure> {
    let Some(kubeconfig) = &places.downstream else { return Ok(None) };
    let config =
        ClusterConfig { kubeconfig: Some(kubeconfig.clone()), context: places.downstream_context.clone() };
    open(&config, "the cluster that --downstream names").await.map(Some)
}

async fn open(config: &ClusterConfig, what: &str) -> Result<KubeClient, Failure> {
    let fail = |error| Failure::usage(anyhow::Error::new(error).context(format!("cannot reach {what}")));
    KubeClient::open(config).await.map_err(fail)
}

/// All clusters, or the one of this id or name.
async fn clusters(
    management: &KubeClient,
    wanted: Option<&str>,
) -> Result<(Vec<Cluster>, Option<ServerTime>), Failure> {
    let (all, server_now) = reading::clusters(management).await.map_err(|unread| {
        let failure =
            Failure::cannot_tell(anyhow!("cannot {} ({}): {}", unread.what, management.server(), unread.why));
        failure.next("is that Rancher's own API server, and not the one of a cluster below it?")
    })?;
    let Some(wanted) = wanted else { return Ok((all.into_values().collect(), server_now)) };
    let is_wanted = |cluster: &&Cluster| cluster.id.0 == wanted || cluster.display_name == wanted;
    let found: Vec<Cluster> = all.values().filter(is_wanted).cloned().collect();
    if found.len() == 1 {
        return Ok((found, server_now));
    }
    let names: Vec<String> = all.values().map(Cluster::called).collect();
    let names = if names.is_empty() { "none".to_owned() } else { names.join(", ") };
    let what = if found.is_empty() { "no cluster" } else { "more than one cluster" };
    Err(Failure::usage(anyhow!("{what} is called {wanted:?}; there are: {names}")).next("name it by its id"))
}
