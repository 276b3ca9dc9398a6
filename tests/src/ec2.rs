//! Eyes and hands of our own on EC2: the rig's server asked directly, past the fault proxy and past Reveille's adapter.
//!
//! ```text
//!  form (Action, parameters) ─▶ the server's own port ─▶ XML ─▶ instances with their state, tags and interfaces
//!  ec2-boots.jsonl ─▶ what happened to the guests: reboots and starts, which no API of EC2 tells
//! ```
//!
//! Values are ids, names and tags, none of which a form has to escape. The server checks no signature.

use std::path::{Path, PathBuf};
use std::time::Duration;

use anyhow::{Context, Result, ensure};
use serde::Deserialize;
use ureq::Agent;

use crate::calls::agent;
use crate::rig::Ec2Facts;

const VERSION: &str = "2016-11-15";
const SCALING_VERSION: &str = "2011-01-01";

/// The rig's EC2.
pub struct Ec2 {
    agent: Agent,
    facts: Ec2Facts,
    boots: PathBuf,
}

/// An instance as EC2 tells it.
#[derive(Clone, Debug, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct Instance {
    /// Its id.
    pub instance_id: String,
    instance_state: State,
    /// What its node is called.
    #[serde(default)]
    pub private_dns_name: String,
    #[serde(default)]
    network_interface_set: Items<Interface>,
    #[serde(default)]
    tag_set: Items<Tag>,
}

/// An interface of an instance.
#[derive(Clone, Debug, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct Interface {
    /// Its id.
    pub network_interface_id: String,
    #[serde(default)]
    group_set: Items<Group>,
}

#[derive(Clone, Debug, Deserialize)]
struct State {
    name: String,
}

#[derive(Clone, Debug, Deserialize)]
#[serde(rename_all = "camelCase")]
struct Group {
    group_id: String,
}

#[derive(Clone, Debug, Deserialize)]
struct Tag {
    key: String,
    #[serde(default)]
    value: String,
}

#[derive(Clone, Debug, Deserialize)]
struct Items<T> {
    #[serde(rename = "item", default = "Vec::new")]
    item: Vec<T>,
}

impl<T> Default for Items<T> {
    fn default() -> Self {
        Self { item: Vec::new() }
    }
}

#[derive(Deserialize)]
#[serde(rename_all = "camelCase")]
struct Listing {
    #[serde(default)]
    reservation_set: Items<Reservation>,
}

#[derive(Deserialize)]
#[serde(rename_all = "camelCase")]
struct Reservation {
    #[serde(default)]
    instances_set: Items<Instance>,
}

/// A line of `ec2-boots.jsonl`.
#[derive(Deserialize)]
struct Boot {
    instance: String,
    event: String,
}

impl Instance {
    /// EC2's word for its state.
    pub fn state(&self) -> &str {
        &self.instance_state.name
    }

    /// What a tag of it says.
    pub fn tag(&self, key: &str) -> Option<&str> {
        self.tag_set.item.iter().find(|tag| tag.key == key).map(|tag| tag.value.as_str())
    }

    /// Its interfaces, in the order of EC2.
    pub fn interfaces(&self) -> &[Interface] {
        &self.network_interface_set.item
    }
}

impl Interface {
    /// True when it carries this group.
    pub fn carries(&self, group: &str) -> bool {
        self.group_set.item.iter().any(|own| own.group_id == group)
    }
}

impl Ec2 {
    /// The EC2 of a rig whose state lies in this folder.
    pub fn new(facts: &Ec2Facts, state: &Path) -> Self {
        let agent = agent(Duration::from_secs(30));
        Self { agent, facts: facts.clone(), boots: state.join("ec2-boots.jsonl") }
    }

    /// What the rig says of it.
    pub const fn facts(&self) -> &Ec2Facts {
        &self.facts
    }

    /// Every instance that carries the tag of this cluster, whatever its state.
    ///
    /// # Errors
    /// EC2 does not answer, or not as expected.
    pub fn instances(&self, cluster: &str) -> Result<Vec<Instance>> {
        let tag = format!("kubernetes.io/cluster/{cluster}");
        let filter = [("Filter.1.Name", "tag-key"), ("Filter.1.Value.1", tag.as_str())];
        let listing: Listing = quick_xml::de::from_str(&self.ask("DescribeInstances", &filter)?)
            .context("the listing of EC2")?;
        Ok(listing.reservation_set.item.into_iter().flat_map(|one| one.instances_set.item).collect())
    }

    /// Asks EC2.
    ///
    /// # Errors
    /// EC2 does not answer, or refuses.
    pub fn ask(&self, action: &str, parameters: &[(&str, &str)]) -> Result<String> {
        self.form("ec2", VERSION, action, parameters)
    }

    /// Asks Auto Scaling.
    ///
    /// # Errors
    /// Auto Scaling does not answer, or refuses.
    pub fn ask_scaling(&self, action: &str, parameters: &[(&str, &str)]) -> Result<String> {
        self.form("autoscaling", SCALING_VERSION, action, parameters)
    }

    fn form(
        &self,
        service: &str,
        version: &str,
        action: &str,
        parameters: &[(&str, &str)],
    ) -> Result<String> {
        let mut form = format!("Action={action}&Version={version}");
        for (name, value) in parameters {
            form += &format!("&{name}={value}");
        }
        // The server tells services apart by the scope of the signature.
        let scope = format!("20260101/{}/{service}/aws4_request", self.facts.region);
        let signed = format!("AWS4-HMAC-SHA256 Credential=rig/{scope}, SignedHeaders=host, Signature=0");
        let request = self.agent.post(&self.facts.direct_endpoint).header("Authorization", signed);
        let request = request.header("Content-Type", "application/x-www-form-urlencoded");
        let mut answer = request.send(form.as_str()).with_context(|| format!("EC2 {action}"))?;
        let text = answer.body_mut().read_to_string().unwrap_or_default();
        ensure!(answer.status().is_success(), "EC2 {action}: {} {text}", answer.status());
        Ok(text)
    }

    /// How often something happened to the guest of an instance: `reboot`, `start`.
    ///
    /// # Errors
    /// The rig's file is damaged.
    pub fn happened(&self, id: &str, event: &str) -> Result<usize> {
        let lines = std::fs::read_to_string(&self.boots).unwrap_or_default();
        // The last line may be in the middle of being written.
        let whole = lines.rsplit_once('\n').map_or("", |(whole, _)| whole);
        let mut count = 0;
        for line in whole.lines() {
            let boot: Boot = serde_json::from_str(line).context("ec2-boots.jsonl")?;
            count += usize::from(boot.instance == id && boot.event == event);
        }
        Ok(count)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn instance_of_a_listing_is_read_with_its_groups_and_tags() {
        let text = "<DescribeInstancesResponse><requestId>r</requestId><reservationSet><item><instancesSet><item>\
            <instanceId>i-1</instanceId><instanceState><code>16</code><name>running</name></instanceState>\
            <privateDnsName>ip-10-9-0-4.ec2.internal</privateDnsName>\
            <networkInterfaceSet><item><networkInterfaceId>eni-1</networkInterfaceId>\
            <groupSet>\
            <item><groupId>sg-1</groupId></item><item><groupId>sg-2</groupId></item></groupSet></item></networkInterfaceSet>\
            <tagSet><item><key>Name</key><value>w</value></item></tagSet>\
            </item></instancesSet></item></reservationSet></DescribeInstancesResponse>";
        let listing: Listing = quick_xml::de::from_str(text).unwrap();
        let instance = &listing.reservation_set.item[0].instances_set.item[0];
        assert_eq!((instance.state(), instance.tag("Name")), ("running", Some("w")));
        assert!(instance.interfaces()[0].carries("sg-2") && !instance.interfaces()[0].carries("sg-3"));
        let empty = "<DescribeInstancesResponse><requestId>r</requestId><reservationSet/></DescribeInstancesResponse>";
        assert!(quick_xml::de::from_str::<Listing>(empty).unwrap().reservation_set.item.is_empty());
    }
}
