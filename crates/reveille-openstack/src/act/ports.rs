//! A port's groups and address pairs: lists that are replaced as a whole, and therefore only at a known revision.
//!
//! The server is read directly before, for its marks: an operator who cuts a machine off takes its tag and its groups away, and
//! Nova's list of changes does not show the tag.

use std::sync::Arc;

use ipnet::IpNet;
use reveille_cloud::report::Writing;
use reveille_core::effect::Outcome;
use reveille_core::model::id::{GroupId, InstanceId, PortId};
use reveille_core::model::roster::Ownership;
use serde::Deserialize;
use serde_json::{Value, json};

use super::instances;
use crate::catalog::Service;
use crate::client::Request;
use crate::port::Pair;
use crate::project::Project;

pub(super) async fn set_groups(
    project: &Project,
    port: &PortId,
    groups: &[GroupId],
    if_revision: u64,
    (instance, owned): (&InstanceId, &Ownership),
) -> Outcome {
    let writing = project.place().writing(format!("set the groups of port {port}"));
    if groups.is_empty() {
        return writing.refuse("the new list is empty, which would cut the machine off");
    }
    if let Err(outcome) = instances::owned(project, instance, owned, &writing).await {
        return outcome;
    }
    let groups: Vec<&str> = groups.iter().map(GroupId::as_str).collect();
    put(project, port, &writing, json!({ "port": { "security_groups": groups } }), if_revision).await
}

pub(super) async fn add_pairs(
    project: &Project,
    port: &PortId,
    pairs: &[IpNet],
    if_revision: u64,
    (instance, owned): (&InstanceId, &Ownership),
) -> Outcome {
    #[derive(Deserialize)]
    struct Body {
        port: Port,
    }
    #[derive(Deserialize)]
    struct Port {
        id: String,
        #[serde(default)]
        allowed_address_pairs: Vec<Pair>,
        #[serde(default)]
        revision_number: u64,
    }
    let writing = project.place().writing(format!("allow address pairs on port {port}"));
    if let Err(outcome) = instances::owned(project, instance, owned, &writing).await {
        return outcome;
    }
    let reading = project.place().look(format!("read port {port}"));
    let request = Request::get(Service::Network, &["ports", port.as_str()])
        .queries("fields", ["id", "allowed_address_pairs", "revision_number"]);
    let now = match project.read_one::<Body>(&request, &reading).await {
        Ok(Some(body)) => body.port,
        Ok(None) => return writing.refuse("there is no such port"),
        Err(error) => return writing.unread(&error),
    };
    if let Err(error) = reading.same(port.as_str(), &now.id) {
        return writing.unread(&error);
    }
    if now.revision_number != if_revision {
        let cause = format!("it is at revision {} by now, not {if_revision}", now.revision_number);
        return writing.moved(&cause);
    }
    let there: Vec<IpNet> = now.allowed_address_pairs.iter().filter_map(Pair::net).collect();
    let mut missing: Vec<IpNet> = pairs.iter().map(IpNet::trunc).filter(|net| !there.contains(net)).collect();
    missing.sort_unstable();
    missing.dedup();
    if missing.is_empty() {
        return Outcome::AlreadySo { text: Arc::from(format!("port {port} allows them already")) };
    }
    let mut all = now.allowed_address_pairs;
    all.extend(missing.into_iter().map(Pair::of));
    put(project, port, &writing, json!({ "port": { "allowed_address_pairs": all } }), if_revision).await
}

async fn put(project: &Project, port: &PortId, writing: &Writing, body: Value, if_revision: u64) -> Outcome {
    if let Err(outcome) = revisions_checked(project, writing).await {
        return outcome;
    }
    let request = Request::put(Service::Network, &["ports", port.as_str()], body).if_revision(if_revision);
    writing.outcome(project.send(&request).await)
}

/// Without this extension Neutron ignores the revision silently, and a list would be replaced blindly.
pub(super) async fn revisions_checked(project: &Project, writing: &Writing) -> Result<(), Outcome> {
    match project.has_extension("revision-if-match").await {
        Ok(true) => Ok(()),
        Ok(false) => Err(writing.refuse(
            "this cloud's network API does not check revisions (extension revision-if-match), so a change of \
             another client could be undone; change it by hand",
        )),
        Err(error) => Err(writing.unread(&error)),
    }
}
