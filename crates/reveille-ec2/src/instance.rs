//! EC2's instance as the model's instance.
//!
//! ```text
//! DescribeInstances ─┐
//! status, events    ─┤
//! spot requests     ─┼─▶ one Instance: state, marks, addresses, and how it is hosted
//! Auto Scaling      ─┘
//! ```
//!
//! Only what plainly leaves is leaving; a state that is unfamiliar is alive. A tag `k=v` is the metadata mark `k=v`, and the
//! cluster's tag is a tag mark as well, because its value (`owned`, `shared`) says who deletes things and not whose they are.

use std::collections::{BTreeMap, BTreeSet};
use std::net::IpAddr;
use std::sync::Arc;

use reveille_core::model::hosting::{GroupPhase, Hosting, NoticeKind};
use reveille_core::model::id::{ImageId, InstanceName, ZoneName};
use reveille_core::model::instance::{Instance, InstanceState, Mark};
use reveille_core::model::time::{ServiceTime, Span};
use serde::Deserialize;

use crate::interface::WireInterface;
use crate::reply::{Set, Tag, filled, instance_id};
use crate::scaling::Member;
use crate::status::WireStatus;
use reveille_core::model::intern::{MarkSets, Texts};

/// Begins the key of the tag that says which cluster an object is of.
pub(crate) const CLUSTER_TAG: &str = "kubernetes.io/cluster/";
/// An interface is attached within seconds of the launch; a later launch is another one.
const LAUNCH_TAKES: Span = Span::from_min(1);
/// The tag by which Auto Scaling names the group that keeps an instance. EC2 lets no other client set it.
pub(crate) const SCALING_GROUP_TAG: &str = "aws:autoscaling:groupName";

/// The mark of all instances of the cluster of this id, whatever the tag's value.
pub fn cluster_mark(id: &str) -> Mark {
    Mark::Tag(Arc::from(format!("{CLUSTER_TAG}{id}")))
}

/// The id of the cluster that this mark names, if it is such a mark.
pub fn cluster_of(mark: &Mark) -> Option<&str> {
    match mark {
        Mark::Tag(key) => key.strip_prefix(CLUSTER_TAG).filter(|id| !id.is_empty()),
        Mark::Metadata(..) => None,
    }
}

/// `DescribeInstances`.
#[derive(Debug, Deserialize)]
#[serde(rename_all = "camelCase")]
pub(crate) struct Instances {
    pub(crate) reservation_set: Set<Reservation>,
    pub(crate) next_token: Option<String>,
}

#[derive(Debug, Deserialize)]
#[serde(rename_all = "camelCase")]
pub(crate) struct Reservation {
    pub(crate) instances_set: Set<WireInstance>,
}

/// One instance.
#[derive(Debug, Deserialize)]
#[serde(rename_all = "camelCase")]
pub(crate) struct WireInstance {
    pub(crate) instance_id: String,
    instance_state: Named,
    image_id: Option<String>,
    private_dns_name: Option<String>,
    pub(crate) instance_type: Option<String>,
    pub(crate) launch_time: Option<String>,
    placement: Option<Placement>,
    /// `User initiated (2026-11-21 10:00:00 GMT)`.
    pub(crate) reason: Option<String>,
    pub(crate) state_reason: Option<StateReason>,
    pub(crate) vpc_id: Option<String>,
    private_ip_address: Option<String>,
    ip_address: Option<String>,
    pub(crate) root_device_type: Option<String>,
    /// `spot`, `scheduled`, `capacity-block`; nothing for the usual.
    instance_lifecycle: Option<String>,
    #[serde(default)]
    tag_set: Set<Tag>,
    #[serde(default)]
    pub(crate) network_interface_set: Set<WireInterface>,
    iam_instance_profile: Option<Profile>,
}

#[derive(Debug, Deserialize)]
struct Named {
    name: String,
}

#[derive(Debug, Deserialize)]
#[serde(rename_all = "camelCase")]
struct Placement {
    availability_zone: Option<String>,
}

#[derive(Debug, Deserialize)]
pub(crate) struct StateReason {
    #[serde(default)]
    pub(crate) code: String,
    #[serde(default)]
    pub(crate) message: String,
}

#[derive(Debug, Deserialize)]
struct Profile {
    arn: Option<String>,
}

/// What other answers say of instances, by their ids.
#[derive(Debug, Default)]
pub(crate) struct Surroundings {
    pub(crate) statuses: BTreeMap<String, WireStatus>,
    pub(crate) members: BTreeMap<String, Member>,
    /// The status codes of spot requests.
    pub(crate) spots: BTreeMap<String, String>,
    /// The types of machines, not the machines, that have disks on their host.
    pub(crate) disks: BTreeSet<String>,
}

/// What the decoding of instances shares between them.
#[derive(Debug, Default)]
pub(crate) struct Tables {
    pub(crate) texts: Texts,
    marks: MarkSets,
}

impl Tables {
    pub(crate) fn sweep(&mut self) {
        self.texts.sweep();
        self.marks.sweep();
    }
}

impl WireInstance {
    pub(crate) fn is_spot(&self) -> bool {
        self.instance_lifecycle.as_deref() == Some("spot")
    }

    pub(crate) fn has_identity(&self) -> bool {
        self.iam_instance_profile.as_ref().is_some_and(|profile| profile.arn.is_some())
    }

    /// The Auto Scaling group that made it, as its tag says.
    pub(crate) fn group(&self) -> Option<&str> {
        self.tag(SCALING_GROUP_TAG)
    }

    /// The word of EC2 for its state.
    pub(crate) fn state_name(&self) -> &str {
        &self.instance_state.name
    }

    pub(crate) fn state(&self) -> InstanceState {
        match state(&self.instance_state.name) {
            InstanceState::Building if self.is_started_again() => InstanceState::Rebooting,
            state => state,
        }
    }

    /// When it was launched for the first time: when its oldest interface was attached. `LaunchTime` is when it was last
    /// launched, and moves with every stop and start ("to determine the time that instance was first launched, see the
    /// attachment time of the primary network interface", EC2 API reference, Instance).
    fn created(&self) -> Option<&str> {
        let attached = self.network_interface_set.items.iter();
        let attached = attached.filter_map(|one| one.attachment.as_ref()?.attach_time.as_deref());
        attached.filter_map(|text| Some((ServiceTime::parse(text)?, text))).min().map(|(_, text)| text)
    }

    /// EC2 says `pending` of an instance that is made and of one that was stopped and starts. The second was launched before.
    fn is_started_again(&self) -> bool {
        let first = self.created().and_then(ServiceTime::parse);
        let last = self.launch_time.as_deref().and_then(ServiceTime::parse);
        first.zip(last).is_some_and(|(first, last)| first < last.earlier_by(LAUNCH_TAKES))
    }

    pub(crate) fn is_stopped(&self) -> bool {
        self.instance_state.name == "stopped"
    }

    fn tag(&self, key: &str) -> Option<&str> {
        self.tag_set.items.iter().find(|tag| tag.key == key).map(|tag| tag.value.as_str())
    }

    /// What it is marked with.
    pub(crate) fn marks(&self) -> BTreeSet<Mark> {
        self.marks_in(&mut MarkSets::default())
    }

    fn marks_in(&self, sets: &mut MarkSets) -> BTreeSet<Mark> {
        let mut marks = BTreeSet::new();
        for tag in &self.tag_set.items {
            marks.insert(sets.metadata(&tag.key, &tag.value));
            if tag.key.starts_with(CLUSTER_TAG) {
                marks.insert(sets.tag(&tag.key));
            }
        }
        marks
    }

    /// Turns it into the model's words.
    pub(crate) fn into_instance(self, hosting: Option<Arc<Hosting>>, tables: &mut Tables) -> Instance {
        let state = self.state();
        let marks = self.marks_in(&mut tables.marks);
        let created = self.created().map(str::to_owned);
        let mut addresses: BTreeSet<IpAddr> =
            self.network_interface_set.items.iter().flat_map(WireInterface::all_addresses).collect();
        let plain = [&self.private_ip_address, &self.ip_address];
        addresses.extend(plain.into_iter().flatten().filter_map(|text| text.parse::<IpAddr>().ok()));
        let task = self.task(hosting.as_deref());
        let texts = &mut tables.texts;
        Instance {
            id: instance_id(&self.instance_id),
            name: InstanceName::from(self.tag("Name").unwrap_or_default()),
            state,
            task: task.map(|task| texts.get(&task)),
            fault: None,
            zone: self
                .placement
                .and_then(|placement| filled(placement.availability_zone))
                .map(|zone| ZoneName::new(texts.get(&zone))),
            image: filled(self.image_id).map(|image| ImageId::new(texts.get(&image))),
            marks: tables.marks.set(marks),
            addresses: addresses.into_iter().collect(),
            config_drive: false,
            locked: false,
            created: created.map(|time| texts.get(&time)),
            hostname: filled(self.private_dns_name)
                .map(|name| Arc::from(name.trim_end_matches('.').to_ascii_lowercase())),
            hosting,
        }
    }

    /// A task of EC2 or of another client that is under way.
    fn task(&self, hosting: Option<&Hosting>) -> Option<String> {
        // Neither stopped nor startable: the stop is not complete.
        if self.instance_state.name == "stopping" {
            return Some("stopping".to_owned());
        }
        let hosting = hosting?;
        let group = hosting.group.as_ref().filter(|group| group.phase == GroupPhase::Leaving);
        let taken = hosting.notices.iter().find(|notice| notice.kind == NoticeKind::Interruption);
        group
            .map(|group| format!("{} of group {}", group.word, group.name))
            .or(taken.map(|it| it.text.to_string()))
    }
}

fn state(name: &str) -> InstanceState {
    match name {
        "pending" => InstanceState::Building,
        "running" => InstanceState::Active,
        "shutting-down" => InstanceState::Deleting,
        "terminated" => InstanceState::Gone,
        "stopping" | "stopped" => InstanceState::Stopped,
        _ => InstanceState::Other,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Of one that is `pending`, with a launch and the attachment of its interfaces at these moments.
    fn pending(launched: &str, attached: &[&str]) -> Instance {
        let interface = |text: &&str| {
            format!(
                "<item><networkInterfaceId>eni-1</networkInterfaceId>\
                 <attachment><attachTime>{text}</attachTime></attachment></item>"
            )
        };
        let xml = format!(
            "<instance><instanceId>i-1</instanceId><instanceState><name>pending</name></instanceState>\
             <launchTime>{launched}</launchTime><networkInterfaceSet>{}</networkInterfaceSet></instance>",
            attached.iter().map(interface).collect::<String>()
        );
        let wire: WireInstance = quick_xml::de::from_str(&xml).unwrap();
        wire.into_instance(None, &mut Tables::default())
    }

    #[test]
    fn instance_that_starts_again_is_not_newly_made() {
        let first = "2026-11-21T10:00:01.000Z";
        let made = pending("2026-11-21T10:00:00.000Z", &[first]);
        assert_eq!((made.state, made.created.as_deref()), (InstanceState::Building, Some(first)));
        let again = pending("2026-11-22T09:00:00.000Z", &["2026-11-21T12:00:00.000Z", first]);
        assert_eq!((again.state, again.created.as_deref()), (InstanceState::Rebooting, Some(first)));
        let untold = pending("2026-11-22T09:00:00.000Z", &[]);
        assert_eq!((untold.state, untold.created), (InstanceState::Building, None));
    }

    #[test]
    fn every_word_of_ec2_is_one_state_and_a_new_one_is_alive() {
        let cases = [
            ("pending", InstanceState::Building),
            ("running", InstanceState::Active),
            ("shutting-down", InstanceState::Deleting),
            ("terminated", InstanceState::Gone),
            ("stopping", InstanceState::Stopped),
            ("stopped", InstanceState::Stopped),
            ("hibernating", InstanceState::Other),
            ("", InstanceState::Other),
        ];
        for (word, expected) in cases {
            assert_eq!(state(word), expected, "{word}");
        }
    }
}
