//! Finds the machines of the objects that a log names: it reads the objects themselves, and the records of their clusters.

use std::collections::BTreeMap;

use reveille_hot::machine::Machine;
use reveille_hot::verdict::Subject;
use reveille_hot::{Object, Resource, Verdict};
use reveille_kube::Cluster;
use reveille_kube::writes::Kind;

/// Adds what the cluster knows, and notes what it does not know.
pub(super) async fn find(cluster: &Cluster, verdicts: &mut [Verdict]) -> Vec<String> {
    let kinds = match cluster.kinds().await {
        Ok(kinds) => kinds.into_iter().map(|kind| (kind.resource.clone(), kind)).collect(),
        Err(error) => return vec![format!("the machines could not be looked up: {}", error.text)],
    };
    let mut notes = Vec::new();
    for verdict in verdicts {
        let Subject::Object(object) = verdict.subject.clone() else { continue };
        if let Err(why) = find_one(cluster, &kinds, &object, verdict).await {
            notes.push(format!("{object}: {why}"));
        }
    }
    notes
}

async fn find_one(
    cluster: &Cluster,
    kinds: &BTreeMap<Resource, Kind>,
    object: &Object,
    verdict: &mut Verdict,
) -> Result<(), String> {
    let kind =
        kinds.get(&object.resource).ok_or("this API server has no such kind; is it the one of the log?")?;
    let whole = cluster.read_object(kind, object).await.map_err(|untold| untold.cause)?;
    let Some(whole) = whole else { return Err("it is not there any more".to_owned()) };
    verdict.machine = Machine::of_object(object, &whole).or_else(|| verdict.machine.take());
    let Some(machine) = &mut verdict.machine else { return Ok(()) };
    if let Some(wanted) = machine.cluster_object()
        && let Some(kind) = kinds.get(&wanted.resource)
        && let Some(whole) = cluster.read_object(kind, &wanted).await.map_err(|untold| untold.cause)?
    {
        machine.take_cluster(&whole);
    }
    Ok(())
}
