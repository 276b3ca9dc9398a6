//! What `init` says about an account: which cluster its tags name, and EC2's words.
//!
//! Pure: an inventory and what was said on the command line in, the roster's cloud and texts out. Tags tell which instances a
//! cluster has; names never do.

use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;

use reveille_cloud::inventory::Inventory;
use reveille_cloud::site::{OpenError, Settled, Site};
use reveille_cloud::text::quoted;
use reveille_core::model::id::{CloudName, InstanceId};
use reveille_core::model::instance::Mark;
use reveille_wire::roster::CloudRef;

use crate::{cluster_mark, cluster_of};

/// The default name of such a cloud in a roster.
pub(crate) const NAME: &str = "aws";
/// Beginnings of tag keys that AWS, or a program that creates machines, sets on its own.
const OTHERS_KEYS: [&str; 4] = ["aws:", "eks:", "karpenter.", "kops."];

/// An account of AWS in one region, as `init` shows it.
pub struct Ec2Site {
    /// The account's twelve digits.
    pub account: String,
    /// The region.
    pub region: String,
    /// The profile, where the command line names one.
    pub profile: Option<String>,
    /// The endpoint of the API, where the command line names one.
    pub endpoint: Option<String>,
    /// The id of the cluster, where the command line names one.
    pub cluster: Option<String>,
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
    fn cluster(&self, tagged: &Tagged<'_>, instances: usize) -> Result<String, OpenError> {
        let (called, seen) = (self.called(), told(tagged));
        let ids: Vec<&str> = tagged.keys().copied().collect();
        match (&self.cluster, ids.as_slice()) {
            (Some(named), ids) if ids.is_empty() || ids.contains(&named.as_str()) => Ok(named.clone()),
            (Some(named), _) => Err(OpenError::usage(format!(
                "no instance of {called} carries the tag kubernetes.io/cluster/{named}; they are tagged for {seen}"
            ))
            .next("name one of these with --cluster, or put the tag on the machines first")),
            (None, [only]) => Ok((*only).to_owned()),
            (None, []) => Err(OpenError::cannot_tell(format!(
                "none of the {instances} instances of {called} carries a tag kubernetes.io/cluster/<id>"
            ))
            .next(
                "check --region and --profile; or name the cluster with --cluster ID, and the roster tells how to mark its machines",
            )),
            (None, _) => Err(OpenError::usage(format!(
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

    fn settle(&self, inventory: &Inventory, nodes: &BTreeSet<InstanceId>) -> Result<Settled, OpenError> {
        let tagged = Self::tagged(inventory, nodes);
        let id = self.cluster(&tagged, inventory.instances.len())?;
        if tagged.get(id.as_str()).is_some_and(|(_, ours)| *ours == 0) {
            return Err(OpenError::usage(format!(
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
