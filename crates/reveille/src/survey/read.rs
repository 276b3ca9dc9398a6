//! Reading for the survey: the whole project in a handful of requests, and the few things beside it.

use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;

use futures::StreamExt as _;
use futures::stream;
use reveille_core::effect::{Look, ReadError};
use reveille_core::event::Answer;
use reveille_core::model::id::{CloudName, GroupId, RouterId};
use reveille_core::model::network::SecurityGroup;
use reveille_core::model::node::Node;
use reveille_openstack::{NamedRouter, Project, ProjectSurvey};

use super::Survey;

/// Questions at a time.
const AT_ONCE: usize = 8;
/// Groups of other projects that are asked for by id: a project rarely uses more than one.
const FOREIGN_GROUPS_MAX: usize = 32;

/// Reads what there is to know.
///
/// # Errors
/// When the project, or the named router, cannot be read whole. A single group of another project that cannot be read is
/// left out.
pub(crate) async fn survey(
    project: &Project,
    cloud: &CloudName,
    nodes: Vec<Arc<Node>>,
    router: Option<&RouterId>,
) -> Result<Survey, ReadError> {
    let ProjectSurvey { instances, ports, groups, mut routers, legs } = project.survey().await?;
    let mut groups: BTreeMap<GroupId, Arc<SecurityGroup>> =
        groups.into_iter().map(|group| (group.id.clone(), group)).collect();
    let used: BTreeSet<&GroupId> = ports.iter().flat_map(|(_, port)| port.groups.iter()).collect();
    let foreign: Vec<GroupId> =
        used.into_iter().filter(|id| !groups.contains_key(*id)).take(FOREIGN_GROUPS_MAX).cloned().collect();
    groups.extend(read_groups(project, cloud, foreign).await);
    // A router of another project may carry our routes: it is in no listing of ours.
    if let Some(id) = router.filter(|id| !routers.iter().any(|found| found.router.id == **id))
        && let Answer::Router(Some(found)) = project.look(&Look::Router(cloud.clone(), id.clone())).await?
    {
        routers.push(NamedRouter { name: Arc::from(""), router: found });
    }
    Ok(Survey {
        nodes,
        instances: instances.into_iter().map(|instance| (instance.id.clone(), instance)).collect(),
        ports,
        groups,
        routers,
        legs,
        wanted_router: router.cloned(),
    })
}

async fn read_groups(
    project: &Project,
    cloud: &CloudName,
    ids: Vec<GroupId>,
) -> BTreeMap<GroupId, Arc<SecurityGroup>> {
    let read = |id: GroupId| async move {
        match project.look(&Look::Group(cloud.clone(), id.clone())).await {
            Ok(Answer::Group(Some(group))) => Some((id, group)),
            _ => None,
        }
    };
    stream::iter(ids).map(read).buffer_unordered(AT_ONCE).filter_map(|found| async { found }).collect().await
}
