//! The provider EC2: `reveille_ec2::Account` behind the common interface, and what `init` says about an account.

use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;

use anyhow::anyhow;
use futures::FutureExt as _;
use futures::future::BoxFuture;
use reqwest::Url;
use reveille_core::effect::{Call, Look, Outcome, ReadError, ReadErrorKind};
use reveille_core::event::{Answer, CloudSnapshot};
use reveille_core::model::id::{CloudName, InstanceId, RouterId};
use reveille_core::model::instance::Mark;
use reveille_core::model::node::{Node, Provider};
use reveille_core::model::roster::Roster;
use reveille_ec2::{
    Account, ConnectError, Ec2Config, Interest, Lister, ScalingGroup, cluster_mark, cluster_of,
};
use reveille_wire::roster::CloudRef;

use super::inventory::{Inventory, Keeper, NamedRouter, RouterLeg};
use super::site::{Opened, Settled, Site, quoted};
use super::{Connected, Connecting, Listing, Unconnected, Unwanted, Wants};
use crate::cli::failure::Failure;
use crate::cli::init::{CloudChoice, Kind};

/// The provider.
pub(super) struct Ec2;

impl super::Wiring for Ec2 {
    fn kind(&self) -> Kind {
        Kind::Ec2
    }

    fn entry(&self, at: &CloudRef) -> Option<Arc<str>> {
        let CloudRef::Ec2 { region, cluster, .. } = at else { return None };
        Some(Arc::from(format!("ec2 {region} ({cluster})")))
    }

    fn connect(&self, name: CloudName, at: &CloudRef) -> Option<Connecting> {
        let CloudRef::Ec2 { region, profile, endpoint, cluster } = at.clone() else { return None };
        Some(connect(name, region, profile, endpoint, cluster).boxed())
    }

    fn open(&self, choice: CloudChoice) -> BoxFuture<'static, Result<Opened, Failure>> {
        open(choice).boxed()
    }

    /// Recognises EC2 by the form of its instance ids, or by the beginning of the firmware's UUID.
    fn has(&self, node: &Node) -> bool {
        match &node.provider {
            Provider::Instance(id) => id.as_str().starts_with("i-"),
            Provider::Unset => node.system_uuid.as_ref().is_some_and(|uuid| uuid.as_str().starts_with("ec2")),
            Provider::Unread(_) => false,
        }
    }
}

/// Finds the account and its credentials.
async fn connect(
    name: CloudName,
    region: String,
    profile: Option<String>,
    endpoint: Option<String>,
    cluster: String,
) -> Result<Connected, Unconnected> {
    let config = Ec2Config {
        region: Some(region),
        profile,
        endpoint: endpoint.as_deref().map(address).transpose()?,
        ..Ec2Config::new(name, cluster)
    };
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

impl super::Project for Account {
    fn look(&self, look: Look) -> BoxFuture<'static, Result<Answer, ReadError>> {
        let account = self.clone();
        async move { Self::look(&account, &look).await }.boxed()
    }

    fn perform(&self, call: Call) -> BoxFuture<'static, Outcome> {
        let account = self.clone();
        async move { Self::perform(&account, &call).await }.boxed()
    }

    fn lister(&self, wants: &Wants) -> Box<dyn Listing> {
        let wants: Vec<(&Roster, &CloudName)> = wants.iter().map(|(roster, name)| (roster, name)).collect();
        Box::new(Lister::new(self.clone(), Interest::of(wants)))
    }

    fn survey(&self) -> BoxFuture<'static, Result<Inventory, ReadError>> {
        let account = self.clone();
        async move {
            let found = Self::survey(&account).await?;
            let leg = |router: &RouterId, network| RouterLeg { router: router.clone(), network };
            let legs = found
                .tables
                .iter()
                .flat_map(|table| table.subnets.iter().map(|id| leg(&table.router.id, id.clone())));
            Ok(Inventory {
                legs: legs.collect(),
                instances: found.instances.into_iter().map(|one| (one.id.clone(), one)).collect(),
                ports: found.ports,
                groups: found.groups.into_iter().map(|group| (group.id.clone(), group)).collect(),
                routers: found
                    .tables
                    .into_iter()
                    .map(|table| NamedRouter { name: table.name, router: table.router })
                    .collect(),
                within: found.vpcs,
                keepers: found.scaling.into_iter().map(keeper).collect(),
            })
        }
        .boxed()
    }

    fn warning(&self) -> Option<String> {
        None
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

fn keeper(group: ScalingGroup) -> Keeper {
    let ScalingGroup { name, mark, gives, machines } = group;
    Keeper { name, mark, gives, machines }
}

/// Finds the account and its credentials, and the region.
async fn open(choice: CloudChoice) -> Result<Opened, Failure> {
    let CloudChoice { cluster, region, profile, endpoint, .. } = choice;
    let wrong = |unconnected: Unconnected| Failure::usage(anyhow::Error::new(unconnected.error));
    let config = Ec2Config {
        region,
        profile: profile.clone(),
        endpoint: endpoint.as_deref().map(address).transpose().map_err(wrong)?,
        // The survey finds which cluster it is; no request needs it before.
        ..Ec2Config::new(CloudName::from(NAME), cluster.as_deref().unwrap_or_default())
    };
    let account = Account::connect(&config).await.map_err(|error| {
        let next = match &error {
            ConnectError::NoRegion { .. } => Some("name one with --region"),
            ConnectError::Credentials { .. } => {
                Some("name a profile with --profile, or see docs/reference/ec2.md, Credentials")
            }
            _ => None,
        };
        let usage = matches!(error, ConnectError::NoRegion { .. } | ConnectError::Address { .. });
        let error = anyhow::Error::new(error);
        let failure = if usage { Failure::usage(error) } else { Failure::cannot_tell(error) };
        next.into_iter().fold(failure, Failure::next)
    })?;
    let region = account.region().to_owned();
    let site = Ec2Site { account: account.id().to_string(), region, profile, endpoint, cluster };
    Ok(Opened { project: Arc::new(account), site: Box::new(site) })
}

/// The default name of such a cloud in a roster.
const NAME: &str = "aws";
/// Beginnings of tag keys that AWS, or a program that creates machines, sets on its own.
const OTHERS_KEYS: [&str; 4] = ["aws:", "eks:", "karpenter.", "kops."];

/// An account of AWS in one region, as `init` shows it.
pub(crate) struct Ec2Site {
    /// The account's twelve digits.
    pub(crate) account: String,
    /// The region.
    pub(crate) region: String,
    /// The profile, where the command line names one.
    pub(crate) profile: Option<String>,
    /// The endpoint of the API, where the command line names one.
    pub(crate) endpoint: Option<String>,
    /// The id of the cluster, where the command line names one.
    pub(crate) cluster: Option<String>,
}

/// For each cluster in the tags of any instance: how many instances have the tag, and how many of them are Nodes of this cluster.
type Tagged<'i> = BTreeMap<&'i str, (usize, usize)>;

impl Ec2Site {
    fn tagged<'i>(inventory: &'i Inventory, nodes: &BTreeSet<InstanceId>) -> Tagged<'i> {
        let mut tagged = Tagged::new();
        for instance in inventory.instances.values() {
            for id in instance.marks.iter().filter_map(cluster_of) {
                let (all, ours) = tagged.entry(id).or_default();
                *all += 1;
                *ours += usize::from(nodes.contains(&instance.id));
            }
        }
        tagged
    }

    /// The cluster that the tags and the command line mean.
    fn cluster(&self, tagged: &Tagged<'_>, instances: usize) -> Result<String, Failure> {
        let (called, seen) = (self.called(), told(tagged));
        let ids: Vec<&str> = tagged.keys().copied().collect();
        match (&self.cluster, ids.as_slice()) {
            (Some(named), ids) if ids.is_empty() || ids.contains(&named.as_str()) => Ok(named.clone()),
            (Some(named), _) => Err(Failure::usage(anyhow!(
                "no instance of {called} carries the tag kubernetes.io/cluster/{named}; they are tagged for {seen}"
            ))
            .next("name one of these with --cluster, or put the tag on the machines first")),
            (None, [only]) => Ok((*only).to_owned()),
            (None, []) => Err(Failure::cannot_tell(anyhow!(
                "none of the {instances} instances of {called} carries a tag kubernetes.io/cluster/<id>"
            ))
            .next(
                "check --region and --profile; or name the cluster with --cluster ID, and the roster tells how to mark its machines",
            )),
            (None, _) => Err(Failure::usage(anyhow!(
                "the instances of {called} are tagged for several clusters: {seen}"
            ))
            .next("name one with --cluster")),
        }
    }
}

fn told(tagged: &Tagged<'_>) -> String {
    let one = |(id, (all, ours)): (&&str, &(usize, usize))| {
        format!("{id} ({all} instances, {ours} of them nodes here)")
    };
    tagged.iter().map(one).collect::<Vec<_>>().join(", ")
}

impl Site for Ec2Site {
    fn cloud(&self) -> CloudName {
        CloudName::from(NAME)
    }

    fn called(&self) -> String {
        format!("account {} in {}", self.account, self.region)
    }

    fn options(&self) -> &'static str {
        "--context, --region and --profile"
    }

    fn rights(&self) -> &'static str {
        "reveille iam"
    }

    fn router(&self) -> &'static str {
        "route table"
    }

    fn keeper(&self) -> &'static str {
        "Auto Scaling group"
    }

    fn settle(&self, inventory: &Inventory, nodes: &BTreeSet<InstanceId>) -> Result<Settled, Failure> {
        let tagged = Self::tagged(inventory, nodes);
        let id = self.cluster(&tagged, inventory.instances.len())?;
        if tagged.get(id.as_str()).is_some_and(|(_, ours)| *ours == 0) {
            return Err(Failure::usage(anyhow!(
                "none of the {} instances that nodes name carries the tag kubernetes.io/cluster/{id}; the instances of {} are tagged for {}",
                nodes.len(),
                self.called(),
                told(&tagged)
            ))
            .next("check --context and --cluster; if the machines lost their tag, put it there first"));
        }
        let at = CloudRef::Ec2 {
            region: self.region.clone(),
            profile: self.profile.clone(),
            endpoint: self.endpoint.clone(),
            cluster: id.clone(),
        };
        Ok(Settled { at, cluster: Some(cluster_mark(&id)) })
    }

    fn mark(&self, key: &str, value: &str) -> Mark {
        Mark::Metadata(Arc::from(key), Arc::from(value))
    }

    fn may_be_put(&self, mark: &Mark) -> bool {
        match mark {
            Mark::Tag(_) => true,
            Mark::Metadata(key, _) => !OTHERS_KEYS.iter().any(|begin| key.starts_with(begin)),
        }
    }

    fn command(&self, marks: &[&Mark], ids: &[&str]) -> String {
        let tags: Vec<String> = marks
            .iter()
            .map(|mark| match mark {
                Mark::Tag(key) => quoted(&format!("Key={key},Value=owned")),
                Mark::Metadata(key, value) => quoted(&format!("Key={key},Value={value}")),
            })
            .collect();
        let profile = self.profile.as_ref().map(|profile| format!(" --profile {}", quoted(profile)));
        format!(
            "aws{} ec2 create-tags --region {} --resources {} --tags {}",
            profile.unwrap_or_default(),
            self.region,
            ids.join(" "),
            tags.join(" ")
        )
    }
}
