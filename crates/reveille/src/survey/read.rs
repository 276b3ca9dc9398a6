//! Reads the data of the survey: the whole project in a few requests, and a few other objects, on any provider.

use std::collections::BTreeSet;
use std::sync::Arc;

use futures::StreamExt as _;
use futures::stream;
use reveille_core::effect::{Look, ReadError};
use reveille_core::event::Answer;
use reveille_core::model::id::{CloudName, GroupId, RouterId};
use reveille_core::model::instance::InstanceState;
use reveille_core::model::network::SecurityGroup;
use reveille_core::model::node::Node;

use super::Survey;
use reveille_cloud::inventory::NamedRouter;
use reveille_cloud::provider::{Connected, Project};

/// The most requests at once.
const AT_ONCE: usize = 8;
/// The most groups of other projects that are read by id: a project rarely uses more than one.
const FOREIGN_GROUPS_MAX: usize = 32;

/// Reads everything that the survey needs.
///
/// # Errors
/// When the project, or the named router, cannot be read completely. A single group of another project that cannot be
/// read is left out.
pub(crate) async fn survey(
    project: &Connected,
    cloud: &CloudName,
    nodes: Vec<Arc<Node>>,
    router: Option<&RouterId>,
) -> Result<Survey, ReadError> {
    let mut inventory = project.survey().await?;
    // Some clouds list deleted instances for a while, with all marks; they are no machines of the cluster any more.
    inventory.instances.retain(|_, instance| instance.state != InstanceState::Gone);
    let used: BTreeSet<&GroupId> = inventory.ports.iter().flat_map(|(_, port)| port.groups.iter()).collect();
    let known = |id: &&GroupId| inventory.groups.contains_key(*id);
    let foreign: Vec<GroupId> =
        used.into_iter().filter(|id| !known(id)).take(FOREIGN_GROUPS_MAX).cloned().collect();
    let foreign = read_groups(&**project, cloud, foreign).await;
    inventory.groups.extend(foreign);
    // A router of another project may carry the pod routes, and no listing of this project has it.
    if let Some(id) = router.filter(|id| !inventory.routers.iter().any(|found| found.router.id == **id))
        && let Answer::Router(Some(found)) = project.look(Look::Router(cloud.clone(), id.clone())).await?
    {
        inventory.routers.push(NamedRouter { name: Arc::from(""), router: found });
    }
    Ok(Survey { nodes, inventory, wanted_router: router.cloned() })
}

async fn read_groups(
    project: &dyn Project,
    cloud: &CloudName,
    ids: Vec<GroupId>,
) -> Vec<(GroupId, Arc<SecurityGroup>)> {
    let read = |id: GroupId| async move {
        match project.look(Look::Group(cloud.clone(), id.clone())).await {
            Ok(Answer::Group(Some(group))) => Some((id, group)),
            _ => None,
        }
    };
    stream::iter(ids).map(read).buffer_unordered(AT_ONCE).filter_map(|found| async { found }).collect().await
}
