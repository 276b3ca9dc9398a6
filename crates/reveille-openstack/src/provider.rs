//! The provider OpenStack: [`Project`] behind the interface that the program knows, and what `init` says about a project.

use std::collections::BTreeSet;
use std::path::{Path, PathBuf};
use std::sync::Arc;

use futures::FutureExt as _;
use futures::future::BoxFuture;
use reveille_cloud::inventory::Inventory;
use reveille_cloud::options::{CloudOption, Given, Takes, any};
use reveille_cloud::provider::{
    self, Connected, Connecting, Kind, Listing, Opened, Provider, RightsCommand, Unconnected, Unwanted, Wants,
};
use reveille_cloud::site::{OpenError, Settled, Site};
use reveille_cloud::text::quoted;
use reveille_core::effect::{Call, Look, Outcome, ReadError};
use reveille_core::event::{Answer, CloudSnapshot};
use reveille_core::model::id::{CloudName, InstanceId};
use reveille_core::model::instance::Mark;
use reveille_core::model::node::{self, Node};
use reveille_wire::roster::CloudRef;

use crate::rights::{self, Purpose};
use crate::{CloudConfig, ConnectError, Interest, Lister, Project, list_clouds};

/// The provider.
pub struct OpenStack;

const EXAMPLES: &str = "\
Examples:
  reveille access-rules > rules.json
  openstack application credential create reveille --role member --access-rules rules.json
  reveille access-rules --look-only              read-only; with --role reader, consoles cannot be read

A credential with these rules can send only these requests. The user who creates it must have the role.";

static KIND: Kind = Kind {
    name: "openstack",
    about: "A project of OpenStack, by an entry of clouds.yaml",
    heading: "On OpenStack",
    options: &[
        CloudOption::new(
            "cloud",
            Takes::Text("CLOUD", any),
            "OpenStack: entry of clouds.yaml [default: OS_CLOUD, then the only one]",
        ),
        CloudOption::new(
            "clouds-file",
            Takes::Path("FILE"),
            "OpenStack: clouds.yaml [default: where the OpenStack client looks]",
        ),
    ],
    rights: RightsCommand {
        name: "access-rules",
        about: "Print the minimal access rules for an OpenStack application credential",
        examples: EXAMPLES,
        options: &[
            CloudOption::new(
                "look-only",
                Takes::Flag,
                "Read-only, except the server actions: one request both reads consoles and reboots",
            ),
            CloudOption::new(
                "roles",
                Takes::Flag,
                "Also read, and without --look-only assign, roles of service users: for rosters with spec.access",
            ),
        ],
        print: access_rules,
    },
};

fn access_rules(given: &Given) -> String {
    let (looks_only, roles) = (given.has("look-only"), given.has("roles"));
    let wanted = |purpose: &Purpose| match purpose {
        Purpose::Look => true,
        Purpose::Machines | Purpose::Network => !looks_only,
        Purpose::Roles => roles,
        Purpose::GiveRoles => roles && !looks_only,
    };
    let all = [Purpose::Look, Purpose::Machines, Purpose::Network, Purpose::Roles, Purpose::GiveRoles];
    rights::access_rules(&all.into_iter().filter(wanted).collect::<Vec<_>>())
}

impl Provider for OpenStack {
    fn kind(&self) -> &'static Kind {
        &KIND
    }

    fn entry(&self, at: &CloudRef) -> Option<Arc<str>> {
        let CloudRef::OpenStack { cloud, .. } = at else { return None };
        Some(Arc::from(cloud.as_str()))
    }

    fn connect(&self, name: CloudName, at: &CloudRef) -> Option<Connecting> {
        let CloudRef::OpenStack { cloud, clouds_file } = at.clone() else { return None };
        Some(connect(CloudConfig { name, cloud, clouds_file }).boxed())
    }

    fn open(&self, given: Given) -> BoxFuture<'static, Result<Opened, OpenError>> {
        open(given).boxed()
    }

    /// Recognises OpenStack by an instance id that equals the firmware's UUID. A provider with similar ids
    /// comes first in the list.
    fn has(&self, node: &Node) -> bool {
        match &node.provider {
            node::Provider::Instance(_) => true,
            node::Provider::Unset => node.system_uuid.is_some(),
            node::Provider::Unread(_) => false,
        }
    }
}

/// Logs in to an entry of a clouds.yaml.
async fn connect(config: CloudConfig) -> Result<Connected, Unconnected> {
    let project = Project::connect(&config).await.map_err(|error| Unconnected {
        error: error.as_read_error(),
        hopeless: matches!(error, ConnectError::Config { .. } | ConnectError::TooOld { .. }),
    })?;
    tracing::info!(cloud = %config.cloud, project = %project.name(), compute = %project.microversion(), "logged in");
    Ok(Arc::new(project))
}

impl provider::Project for Project {
    fn look(&self, look: Look) -> BoxFuture<'static, Result<Answer, ReadError>> {
        let project = self.clone();
        async move { Self::look(&project, &look).await }.boxed()
    }

    fn perform(&self, call: Call) -> BoxFuture<'static, Outcome> {
        let project = self.clone();
        async move { Self::perform(&project, &call).await }.boxed()
    }

    fn lister(&self, wants: &Wants) -> Box<dyn Listing> {
        let interest = Interest::of(wants.iter().map(|(roster, name)| (roster, name)));
        Box::new(Lister::new(self.clone(), interest))
    }

    fn survey(&self) -> BoxFuture<'static, Result<Inventory, ReadError>> {
        let project = self.clone();
        async move { Self::survey(&project).await }.boxed()
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
async fn open(given: Given) -> Result<Opened, OpenError> {
    let clouds_file = given.path("clouds-file");
    let entry = entry(given.text("cloud"), clouds_file.as_deref())?;
    let config =
        CloudConfig { name: CloudName::from(NAME), cloud: entry.clone(), clouds_file: clouds_file.clone() };
    let project = Project::connect(&config).await.map_err(OpenError::cannot_tell)?;
    let site = OpenStackSite { entry, clouds_file, project: project.name().to_string() };
    Ok(Opened { project: Arc::new(project), site: Box::new(site) })
}

/// The default name of such a cloud in a roster.
const NAME: &str = "os";

fn entry(named: Option<String>, clouds_file: Option<&Path>) -> Result<String, OpenError> {
    let entries = list_clouds(clouds_file).map_err(OpenError::usage)?;
    let names: Vec<&str> = entries.iter().map(|entry| entry.cloud.as_str()).collect();
    let wanted = named.or_else(|| std::env::var("OS_CLOUD").ok().filter(|name| !name.is_empty()));
    match (wanted, names.as_slice()) {
        (Some(wanted), names) if names.contains(&wanted.as_str()) => Ok(wanted),
        (Some(wanted), names) => Err(OpenError::usage(format!(
            "clouds.yaml has no cloud {wanted:?}; it has: {}",
            names.join(", ")
        ))),
        (None, [only]) => Ok((*only).to_owned()),
        (None, []) => Err(OpenError::usage("clouds.yaml has no cloud in it")
            .next("add one, or name another file with --clouds-file")),
        (None, several) => {
            let text = format!("clouds.yaml has several clouds: {}", several.join(", "));
            Err(OpenError::usage(text).next("name one with --cloud"))
        }
    }
}

/// A project of OpenStack, as `init` shows it.
pub struct OpenStackSite {
    /// Entry of clouds.yaml.
    pub entry: String,
    /// The file, where the command line names one.
    pub clouds_file: Option<PathBuf>,
    /// Name of the project.
    pub project: String,
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
    fn settle(&self, _: &Inventory, _: &BTreeSet<InstanceId>) -> Result<Settled, OpenError> {
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
