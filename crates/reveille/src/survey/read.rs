//! Reading for the survey: bounded, a few questions at a time, nothing twice.

use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;

use futures::StreamExt as _;
use futures::stream;
use reveille_core::effect::{Look, ReadError};
use reveille_core::event::Answer;
use reveille_core::model::id::{CloudName, GroupId, InstanceId, RouterId};
use reveille_core::model::instance::Instance;
use reveille_core::model::network::SecurityGroup;
use reveille_core::model::node::Node;
use reveille_openstack::{Interest, Lister, Project};

use super::{Survey, cluster_mark, named};

/// Nodes whose instances are asked for by id: enough to see which marks they share.
const NODES_MAX: usize = 100;
/// Questions at a time.
const AT_ONCE: usize = 8;

/// Reads what there is to know.
///
/// # Errors
/// When the listing by the cluster's mark, or the named router, cannot be read. A single instance or group that cannot be
/// read is left out.
pub(crate) async fn survey(
    project: &Project,
    cloud: &CloudName,
    nodes: Vec<Arc<Node>>,
    router: Option<&RouterId>,
) -> Result<Survey, ReadError> {
    let ids: BTreeSet<InstanceId> = nodes.iter().filter_map(|node| named(node)).take(NODES_MAX).collect();
    let mut instances = read_instances(project, cloud, ids).await;
    let known: Vec<&Arc<Instance>> = instances.values().collect();
    let mut survey = Survey { nodes, ..Survey::default() };
    if let Some(mark) = cluster_mark(&known) {
        let interest = Interest { cluster_marks: BTreeSet::from([mark]), ..Interest::default() };
        let listed = Lister::new(project.clone(), interest).list(true).await?;
        instances.extend(listed.instances.into_iter().map(|instance| (instance.id.clone(), instance)));
        survey.ports = listed.ports;
    }
    let ids: BTreeSet<GroupId> =
        survey.ports.iter().flat_map(|(_, port)| port.groups.iter().cloned()).collect();
    survey.groups = read_groups(project, cloud, ids).await;
    survey.instances = instances;
    if let Some(id) = router {
        match project.look(&Look::Router(cloud.clone(), id.clone())).await? {
            Answer::Router(Some(found)) => survey.routers.push(found),
            _ => survey.missing_router = Some(id.clone()),
        }
    }
    Ok(survey)
}

async fn read_instances(
    project: &Project,
    cloud: &CloudName,
    ids: BTreeSet<InstanceId>,
) -> BTreeMap<InstanceId, Arc<Instance>> {
    let read = |id: InstanceId| async move {
        match project.look(&Look::Instance(cloud.clone(), id.clone())).await {
            Ok(Answer::Instance(Some(instance))) => Some((id, instance)),
            _ => None,
        }
    };
    stream::iter(ids).map(read).buffer_unordered(AT_ONCE).filter_map(|found| async { found }).collect().await
}

async fn read_groups(
    project: &Project,
    cloud: &CloudName,
    ids: BTreeSet<GroupId>,
) -> BTreeMap<GroupId, Arc<SecurityGroup>> {
    let read = |id: GroupId| async move {
        match project.look(&Look::Group(cloud.clone(), id.clone())).await {
            Ok(Answer::Group(Some(group))) => Some((id, group)),
            _ => None,
        }
    };
    stream::iter(ids).map(read).buffer_unordered(AT_ONCE).filter_map(|found| async { found }).collect().await
}
