//! Auto Scaling: which group owns an instance, and what it is doing with it.

use serde::Deserialize;

use crate::reply::Set;

/// `DescribeAutoScalingGroups`.
#[derive(Debug, Deserialize)]
pub(crate) struct Groups {
    #[serde(rename = "DescribeAutoScalingGroupsResult")]
    pub(crate) result: GroupsResult,
}

#[derive(Debug, Deserialize)]
#[serde(rename_all = "PascalCase")]
pub(crate) struct GroupsResult {
    pub(crate) auto_scaling_groups: Set<WireGroup>,
    pub(crate) next_token: Option<String>,
}

#[derive(Debug, Deserialize)]
#[serde(rename_all = "PascalCase")]
pub(crate) struct WireGroup {
    pub(crate) auto_scaling_group_name: String,
    #[serde(default)]
    pub(crate) instances: Set<WireMember>,
    #[serde(default)]
    pub(crate) tags: Set<WireTag>,
}

/// A tag of a group, which it may put on the machines that it makes.
#[derive(Debug, Deserialize)]
#[serde(rename_all = "PascalCase")]
pub(crate) struct WireTag {
    pub(crate) key: String,
    #[serde(default)]
    pub(crate) value: String,
    #[serde(default)]
    pub(crate) propagate_at_launch: bool,
}

/// `DescribeAutoScalingInstances`.
#[derive(Debug, Deserialize)]
pub(crate) struct Members {
    #[serde(rename = "DescribeAutoScalingInstancesResult")]
    pub(crate) result: MembersResult,
}

#[derive(Debug, Deserialize)]
#[serde(rename_all = "PascalCase")]
pub(crate) struct MembersResult {
    pub(crate) auto_scaling_instances: Set<WireMember>,
    pub(crate) next_token: Option<String>,
}

/// An instance as its group sees it. The group's name is there only where groups are not what was asked for.
#[derive(Debug, Deserialize)]
#[serde(rename_all = "PascalCase")]
pub(crate) struct WireMember {
    pub(crate) instance_id: String,
    pub(crate) auto_scaling_group_name: Option<String>,
    #[serde(default)]
    pub(crate) lifecycle_state: String,
    #[serde(default)]
    pub(crate) protected_from_scale_in: bool,
}

/// An instance's membership.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Member {
    pub(crate) group: String,
    /// `InService`, `Terminating:Wait`, … in the group's own word.
    pub(crate) state: String,
    pub(crate) protected: bool,
}

impl WireMember {
    pub(crate) fn of(self, group: &str) -> (String, Member) {
        let group = self.auto_scaling_group_name.unwrap_or_else(|| group.to_owned());
        let member = Member { group, state: self.lifecycle_state, protected: self.protected_from_scale_in };
        (self.instance_id, member)
    }
}
