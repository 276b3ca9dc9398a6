//! The provider OpenStack: `reveille_openstack::Project` behind the common interface, and what `init` says about a project.

use std::collections::BTreeSet;
use std::path::PathBuf;
use std::sync::Arc;

use anyhow::anyhow;
use futures::FutureExt as _;
use futures::future::BoxFuture;
use reveille_core::effect::{Call, Look, Outcome, ReadError};
use reveille_core::event::{Answer, CloudSnapshot};
use reveille_core::model::id::{CloudName, InstanceId};
use reveille_core::model::instance::Mark;
use reveille_core::model::node::{Node, Provider};
use reveille_core::model::roster::Roster;
use reveille_openstack::{CloudConfig, ConnectError, Interest, Lister, Project, list_clouds};
use reveille_wire::roster::CloudRef;

use super::inventory::{Inventory, NamedRouter, RouterLeg};
use super::site::{Opened, Settled, Site, quoted};
use super::{Connected, Connecting, Listing, Unconnected, Unwanted, Wants};
use crate::cli::failure::Failure;
use crate::cli::init::{CloudChoice, Kind};

/// The provider.
pub(super) struct OpenStack;

impl super::Wiring for OpenStack {
    fn kind(&self) -> Kind {
        Kind::OpenStack
    }

    fn entry(&self, at: &CloudRef) -> Option<Arc<str>> {
        let CloudRef::OpenStack { cloud, .. } = at else { return None };
        Some(Arc::from(cloud.as_str()))
    }

    fn connect(&self, name: CloudName, at: &CloudRef) -> Option<Connecting> {
        let CloudRef::OpenStack { cloud, clouds_file } = at.clone() else { return None };
        Some(connect(name, cloud, clouds_file).boxed())
    }

    fn open(&self, choice: CloudChoice) -> BoxFuture<'static, Result<Opened, Failure>> {
        open(choice).boxed()
    }

    /// Recognises OpenStack by an instance id that equals the firmware's UUID. A provider with similar ids
    /// comes first in the list.
    fn has(&self, node: &Node) -> bool {
        match &node.provider {
            Provider::Instance(_) => true,
            Provider::Unset => node.system_uuid.is_some(),
            Provider::Unread(_) => false,
        }
    }
}

/// Logs in to an entry of a clouds.yaml.
async fn connect(
    name: CloudName,
    cloud: String,
    clouds_file: Option<PathBuf>,
) -> Result<Connected, Unconnected> {
    let config = CloudConfig { name, cloud, clouds_file };
    let project = Project::connect(&config).await.map_err(|error| Unconnected {
        error: error.as_read_error(),
        hopeless: matches!(error, ConnectError::Config { .. } | ConnectError::TooOld { .. }),
    })?;
    tracing::info!(cloud = %config.cloud, project = %project.name(), compute = %project.microversion(), "logged in");
    Ok(Arc::new(project))
}

impl super::Project for Project {
    fn look(&self, look: Look) -> BoxFuture<'static, Result<Answer, ReadError>> {
        let project = self.clone();
        async move { Self::look(&project, &look).await }.boxed()
    }

    fn perform(&self, call: Call) -> BoxFuture<'static, Outcome> {
        let project = self.clone();
        async move { Self::perform(&project, &call).await }.boxed()
    }

    fn lister(&self, wants: &Wants) -> Box<dyn Listing> {
        let wants: Vec<(&Roster, &CloudName)> = wants.iter().map(|(roster, name)| (roster, name)).collect();
        Box::new(Lister::new(self.clone(), Interest::of(wants)))
    }

    fn survey(&self) -> BoxFuture<'static, Result<Inventory, ReadError>> {
        let project = self.clone();
        async move {
            let found = Self::survey(&project).await?;
            let routers = found.routers.into_iter();
            let legs = found.legs.into_iter();
            Ok(Inventory {
                instances: found.instances.into_iter().map(|one| (one.id.clone(), one)).collect(),
                ports: found.ports,
                groups: found.groups.into_iter().map(|group| (group.id.clone(), group)).collect(),
                routers: routers.map(|it| NamedRouter { name: it.name, router: it.router }).collect(),
                legs: legs.map(|it| RouterLeg { router: it.router, network: it.network }).collect(),
                ..Inventory::default()
            })
        }
        .boxed()
    }

    fn warning(&self) -> Option<String> {
        let text = "certificates are not verified (clouds.yaml says so): any server in between can answer";
        (!self.verifies()).then(|| text.to_owned())
    }
}

impl Listing for Lister {
    fn list(&mut self, now_full: bool) -> BoxFuture<'_, Result<CloudSnapshot, ReadError>> {
        Self::list(self, now_full).boxed()
    }

    fn list_with_strangers(&mut self) -> BoxFuture<'_, Result<(CloudSnapshot, Unwanted), ReadError>> {
        Self::list_with_strangers(self).boxed()
    }
}

/// Finds the entry of clouds.yaml that the command line means, and logs in there.
async fn open(choice: CloudChoice) -> Result<Opened, Failure> {
    let entry = entry(&choice)?;
    let config = CloudConfig {
        name: CloudName::from(NAME),
        cloud: entry.clone(),
        clouds_file: choice.clouds_file.clone(),
    };
    let project =
        Project::connect(&config).await.map_err(|error| Failure::cannot_tell(anyhow::Error::new(error)))?;
    let clouds_file = choice.clouds_file;
    let site = OpenStackSite { entry, clouds_file, project: project.name().to_string() };
    Ok(Opened { project: Arc::new(project), site: Box::new(site) })
}

/// The default name of such a cloud in a roster.
const NAME: &str = "os";

fn entry(choice: &CloudChoice) -> Result<String, Failure> {
    let entries = list_clouds(choice.clouds_file.as_deref())
        .map_err(|error| Failure::usage(anyhow::Error::new(error)))?;
    let names: Vec<&str> = entries.iter().map(|entry| entry.cloud.as_str()).collect();
    let wanted =
        choice.cloud.clone().or_else(|| std::env::var("OS_CLOUD").ok().filter(|name| !name.is_empty()));
    match (wanted, names.as_slice()) {
        (Some(wanted), names) if names.contains(&wanted.as_str()) => Ok(wanted),
        (Some(wanted), names) => {
            Err(Failure::usage(anyhow!("clouds.yaml has no cloud {wanted:?}; it has: {}", names.join(", "))))
        }
        (None, [only]) => Ok((*only).to_owned()),
        (None, []) => Err(Failure::usage(anyhow!("clouds.yaml has no cloud in it"))
            .next("add one, or name another file with --clouds-file")),
        (None, several) => {
            Err(Failure::usage(anyhow!("clouds.yaml has several clouds: {}", several.join(", ")))
                .next("name one with --cloud"))
        }
    }
}

/// A project of OpenStack, as `init` shows it.
pub(crate) struct OpenStackSite {
    /// Entry of clouds.yaml.
    pub(crate) entry: String,
    /// The file, where the command line names one.
    pub(crate) clouds_file: Option<PathBuf>,
    /// Name of the project.
    pub(crate) project: String,
}

impl Site for OpenStackSite {
    fn cloud(&self) -> CloudName {
        CloudName::from(NAME)
    }

    fn called(&self) -> String {
        format!("project {}", self.project)
    }

    fn options(&self) -> &'static str {
        "--context and --cloud"
    }

    fn rights(&self) -> &'static str {
        "reveille access-rules --look-only"
    }

    fn router(&self) -> &'static str {
        "router"
    }

    /// OpenStack has no cluster tag that all programs share: the survey finds the mark that the machines carry.
    fn settle(&self, _: &Inventory, _: &BTreeSet<InstanceId>) -> Result<Settled, Failure> {
        let at = CloudRef::OpenStack { cloud: self.entry.clone(), clouds_file: self.clouds_file.clone() };
        Ok(Settled { at, cluster: None })
    }

    /// A tag and not a metadata pair: Nova can filter by tags, so lists stay short.
    fn mark(&self, key: &str, value: &str) -> Mark {
        Mark::Tag(Arc::from(format!("{key}={value}")))
    }

    fn may_be_put(&self, _: &Mark) -> bool {
        true
    }

    fn command(&self, marks: &[&Mark], ids: &[&str]) -> String {
        let tagged = marks.iter().any(|mark| matches!(mark, Mark::Tag(_)));
        // Tags exist since microversion 2.26; the client asks for an older version by default.
        let version = if tagged { " --os-compute-api-version 2.26" } else { "" };
        let options: Vec<String> = marks
            .iter()
            .map(|mark| match mark {
                Mark::Tag(tag) => format!("--tag {}", quoted(tag)),
                Mark::Metadata(key, value) => format!("--property {}", quoted(&format!("{key}={value}"))),
            })
            .collect();
        let set = format!("openstack{version} server set {}", options.join(" "));
        match ids {
            [one] => format!("{set} {one}"),
            several => format!("for id in {}; do {set} $id; done", several.join(" ")),
        }
    }
}
