//! The provider EC2: [`Account`] behind the interface that the program knows.
//!
//! What `init` says about an account stands in [`crate::site`].

use std::sync::Arc;

use futures::FutureExt as _;
use futures::future::BoxFuture;
use reqwest::Url;
use reveille_cloud::inventory::Inventory;
use reveille_cloud::options::{self, CloudOption, Given, Takes};
use reveille_cloud::provider::{
    Connected, Connecting, Kind, Listing, Opened, Project, Provider, RightsCommand, Unconnected, Unwanted,
    Wants,
};
use reveille_cloud::site::OpenError;
use reveille_core::effect::{Call, Look, Outcome, ReadError, ReadErrorKind};
use reveille_core::event::{Answer, CloudSnapshot};
use reveille_core::model::id::CloudName;
use reveille_core::model::node::{self, Node};
use reveille_wire::roster::CloudRef;

use crate::site::{Ec2Site, NAME};
use crate::{Account, ConnectError, Ec2Config, Interest, Lister, policy};

/// The provider.
pub struct Ec2;

const EXAMPLES: &str = "\
Examples:
  reveille iam --region eu-central-1 --cluster prod > reveille-policy.json
  aws iam create-policy --policy-name reveille --policy-document file://reveille-policy.json

Only instances with the tag kubernetes.io/cluster/<id> can be changed. For read-only access, keep the first statement.";

static KIND: Kind = Kind {
    name: "ec2",
    about: "An account of AWS in one region",
    heading: "On EC2",
    options: &[
        CloudOption::new(
            "cluster",
            Takes::Text("ID", options::id),
            "EC2: the id in the tag kubernetes.io/cluster/<id> of the instances [default: the only one]",
        ),
        CloudOption::new(
            "region",
            Takes::Text("REGION", options::name),
            "EC2: the region [default: AWS_REGION, then the profile's, then the machine's]",
        ),
        CloudOption::new(
            "profile",
            Takes::Text("PROFILE", options::any),
            "EC2: a profile of the AWS configuration files [default: AWS_PROFILE, then the default one]",
        ),
        CloudOption::new(
            "endpoint",
            Takes::Text("URL", options::any),
            "EC2: API endpoint, instead of the region's; is written to the roster",
        ),
    ],
    rights: RightsCommand {
        name: "iam",
        about: "Print the minimal IAM policy for an AWS account",
        examples: EXAMPLES,
        options: &[
            CloudOption::new("region", Takes::Text("REGION", options::name), "Region of the instances")
                .required(),
            CloudOption::new(
                "cluster",
                Takes::Text("ID", options::id),
                "The id in their tag kubernetes.io/cluster/<id>",
            )
            .required(),
        ],
        print: |given| {
            let of = |name| given.text(name).unwrap_or_default();
            policy(&of("region"), &of("cluster")) + "\n"
        },
    },
};

impl Provider for Ec2 {
    fn kind(&self) -> &'static Kind {
        &KIND
    }

    fn entry(&self, at: &CloudRef) -> Option<Arc<str>> {
        let CloudRef::Ec2 { region, cluster, .. } = at else { return None };
        Some(Arc::from(format!("ec2 {region} ({cluster})")))
    }

    fn connect(&self, name: CloudName, at: &CloudRef) -> Option<Connecting> {
        let CloudRef::Ec2 { region, profile, endpoint, cluster } = at.clone() else { return None };
        let config = Ec2Config { region: Some(region), profile, ..Ec2Config::new(name, cluster) };
        Some(connect(config, endpoint).boxed())
    }

    fn open(&self, given: Given) -> BoxFuture<'static, Result<Opened, OpenError>> {
        open(given).boxed()
    }

    /// Recognises EC2 by the form of its instance ids, or by the beginning of the firmware's UUID.
    fn has(&self, node: &Node) -> bool {
        match &node.provider {
            node::Provider::Instance(id) => id.as_str().starts_with("i-"),
            node::Provider::Unset => {
                node.system_uuid.as_ref().is_some_and(|uuid| uuid.as_str().starts_with("ec2"))
            }
            node::Provider::Unread(_) => false,
        }
    }
}

/// Finds the account and its credentials.
async fn connect(config: Ec2Config, endpoint: Option<String>) -> Result<Connected, Unconnected> {
    let config = Ec2Config { endpoint: endpoint.as_deref().map(address).transpose()?, ..config };
    let account = Account::connect(&config).await.map_err(|error| Unconnected {
        hopeless: matches!(error, ConnectError::NoRegion { .. } | ConnectError::Address { .. }),
        error: error.as_read_error(),
    })?;
    tracing::info!(cloud = %config.name, account = %account.id(), region = account.region(), "logged in");
    Ok(Arc::new(account))
}

/// The roster's reader checked the form; a text that is still no URL gives an error that no retry can fix.
fn address(text: &str) -> Result<Url, Unconnected> {
    Url::parse(text).map_err(|error| {
        let text = Arc::from(format!("ec2: {text:?} is not an address ({error}). Correct the endpoint"));
        let error = ReadError { kind: ReadErrorKind::Unavailable, text, retry_after: None };
        Unconnected { error, hopeless: true }
    })
}

impl Project for Account {
    fn look(&self, look: Look) -> BoxFuture<'static, Result<Answer, ReadError>> {
        let account = self.clone();
        async move { Self::look(&account, &look).await }.boxed()
    }

    fn perform(&self, call: Call) -> BoxFuture<'static, Outcome> {
        let account = self.clone();
        async move { Self::perform(&account, &call).await }.boxed()
    }

    fn lister(&self, wants: &Wants) -> Box<dyn Listing> {
        let interest = Interest::of(wants.iter().map(|(roster, name)| (roster, name)));
        Box::new(Lister::new(self.clone(), interest))
    }

    fn survey(&self) -> BoxFuture<'static, Result<Inventory, ReadError>> {
        let account = self.clone();
        async move { Self::survey(&account).await }.boxed()
    }
}

impl Listing for Lister {
    fn list(&mut self, now_full: bool) -> BoxFuture<'_, Result<CloudSnapshot, ReadError>> {
        Self::list(self, now_full).boxed()
    }

    /// Instances are listed by the cluster's tag, so the listing has no instances of other owners.
    fn list_with_strangers(&mut self) -> BoxFuture<'_, Result<(CloudSnapshot, Unwanted), ReadError>> {
        async move { Ok((Self::list(self, true).await?, Vec::new())) }.boxed()
    }
}

/// Finds the account and its credentials, and the region.
async fn open(given: Given) -> Result<Opened, OpenError> {
    let (profile, endpoint, cluster) = (given.text("profile"), given.text("endpoint"), given.text("cluster"));
    let wrong = |unconnected: Unconnected| OpenError::usage(unconnected.error);
    let config = Ec2Config {
        region: given.text("region"),
        profile: profile.clone(),
        endpoint: endpoint.as_deref().map(address).transpose().map_err(wrong)?,
        // The survey finds which cluster it is; no request needs it before.
        ..Ec2Config::new(CloudName::from(NAME), cluster.as_deref().unwrap_or_default())
    };
    let account = Account::connect(&config).await.map_err(|error| match error {
        error @ ConnectError::NoRegion { .. } => OpenError::usage(error).next("name one with --region"),
        error @ ConnectError::Address { .. } => OpenError::usage(error),
        error @ ConnectError::Credentials { .. } => OpenError::cannot_tell(error)
            .next("name a profile with --profile, or see docs/reference/ec2.md, Credentials"),
        error => OpenError::cannot_tell(error),
    })?;
    let region = account.region().to_owned();
    let site = Ec2Site { account: account.id().to_string(), region, profile, endpoint, cluster };
    Ok(Opened { project: Arc::new(account), site: Box::new(site) })
}
