//! The lists from which a reading is made, each complete or failed.
//!
//! Requests filter rather than name ids where both are possible. An id that one of EC2's servers does not know yet makes a whole
//! request fail; a filter just finds less.

use std::collections::{BTreeMap, BTreeSet};

use reveille_cloud::interest::names_and_ids;
use reveille_core::effect::ReadError;
use reveille_core::model::id::{InstanceId, RouterId};
use reveille_core::model::network::{GroupRule, SecurityGroup};
use reveille_core::model::roster::GroupRef;

use crate::account::Account;
use crate::actions::{
    DESCRIBE_GROUP_RULES, DESCRIBE_GROUPS, DESCRIBE_INSTANCE_STATUS, DESCRIBE_INSTANCE_TYPES,
    DESCRIBE_INSTANCES, DESCRIBE_INTERFACES, DESCRIBE_ROUTE_TABLES, DESCRIBE_SCALING_GROUPS,
    DESCRIBE_SCALING_INSTANCES, DESCRIBE_SPOT_REQUESTS,
};
use crate::filter::FILTER_VALUES_MAX;
use crate::group::{self, WireGroup};
use crate::instance::{Instances, WireInstance};
use crate::interface::{Interfaces, WireInterface};
use crate::paging::{Page, all_pages};
use crate::query_protocol::Request;
use crate::scaling::{self, Member};
use crate::status::{Kinds, SpotRequests, Statuses, WireStatus};
use crate::table::{Tables, WireTable};

const PAGE: &str = "1000";
/// Statuses are asked for by id up to so many instances; EC2 takes no more in one request.
const STATUS_IDS_MAX: usize = 100;
/// Auto Scaling takes no more names, or ids, in one request.
const SCALING_NAMES_MAX: usize = 50;

/// Instances that the filter finds; without one, all of the region.
pub(crate) async fn instances(
    account: &Account,
    filter: Option<(String, BTreeSet<String>)>,
) -> Result<BTreeMap<String, WireInstance>, ReadError> {
    let mut request = Request::new(DESCRIBE_INSTANCES).with("MaxResults", PAGE);
    if let Some((name, values)) = filter {
        request = request.filter(name, values);
    }
    let page_of = |page: Instances| {
        let instances = page.reservation_set.items.into_iter().flat_map(|one| one.instances_set.items);
        let items = instances.map(|instance| (instance.instance_id.clone(), instance)).collect();
        Page { items, next: page.next_token }
    };
    all_pages(account.client(), request, account.place().listing("list the instances"), page_of).await
}

/// Status checks and events of these instances; possibly of others as well.
pub(crate) async fn statuses(
    account: &Account,
    ids: &[String],
) -> Result<BTreeMap<String, WireStatus>, ReadError> {
    if ids.is_empty() {
        return Ok(BTreeMap::new());
    }
    let request = || Request::new(DESCRIBE_INSTANCE_STATUS).with("IncludeAllInstances", "true");
    let reading = account.place().listing("list the status checks");
    if ids.len() <= STATUS_IDS_MAX {
        let by_id = request().list("InstanceId", ids);
        // An id that is not known there yet: then all are listed.
        if let Some(found) = account.read::<Statuses>(&by_id, &reading).await?
            && found.next_token.is_none()
        {
            let items = found.instance_status_set.items;
            return Ok(items.into_iter().map(|status| (status.instance_id.clone(), status)).collect());
        }
    }
    let page_of = |page: Statuses| {
        let items = page.instance_status_set.items;
        let items = items.into_iter().map(|status| (status.instance_id.clone(), status)).collect();
        Page { items, next: page.next_token }
    };
    all_pages(account.client(), request().with("MaxResults", PAGE), reading, page_of).await
}

/// What these Auto Scaling groups say of their instances. A group does not list what is in its warm pool, and one that is
/// being deleted lists nothing: the instances that `tagged` names beside those are asked for by their ids.
pub(crate) async fn members(
    account: &Account,
    groups: &BTreeSet<String>,
    tagged: &BTreeSet<String>,
) -> Result<BTreeMap<String, Member>, ReadError> {
    let mut members = BTreeMap::new();
    let names: Vec<&String> = groups.iter().collect();
    for names in names.chunks(SCALING_NAMES_MAX) {
        let names = names.iter().map(|name| name.as_str());
        let request = Request::new(DESCRIBE_SCALING_GROUPS)
            .list("AutoScalingGroupNames.member", names)
            .with("MaxRecords", "100");
        let page_of = |page: scaling::Groups| {
            let groups = page.result.auto_scaling_groups.items.into_iter();
            let items = groups.flat_map(|group| {
                let name = group.auto_scaling_group_name;
                group.instances.items.into_iter().map(move |member| member.of(&name))
            });
            Page { items: items.collect(), next: page.result.next_token }
        };
        let reading = account.place().listing("list the Auto Scaling groups");
        members.append(&mut all_pages(account.client(), request, reading, page_of).await?);
    }
    let left: Vec<&String> = tagged.iter().filter(|id| !members.contains_key(*id)).collect();
    for ids in left.chunks(SCALING_NAMES_MAX) {
        let request = Request::new(DESCRIBE_SCALING_INSTANCES)
            .list("InstanceIds.member", ids.iter().map(|id| id.as_str()))
            .with("MaxRecords", "50");
        let page_of = |page: scaling::Members| {
            let found = page.result.auto_scaling_instances.items.into_iter();
            Page { items: found.map(|member| member.of("")).collect(), next: page.result.next_token }
        };
        let reading = account.place().listing("list the instances of Auto Scaling");
        members.append(&mut all_pages(account.client(), request, reading, page_of).await?);
    }
    Ok(members)
}

/// Every Auto Scaling group of the region, by its name.
pub(crate) async fn scaling_groups(
    account: &Account,
) -> Result<BTreeMap<String, scaling::WireGroup>, ReadError> {
    let page_of = |page: scaling::Groups| {
        let groups = page.result.auto_scaling_groups.items.into_iter();
        let items = groups.map(|group| (group.auto_scaling_group_name.clone(), group));
        Page { items: items.collect(), next: page.result.next_token }
    };
    let request = Request::new(DESCRIBE_SCALING_GROUPS).with("MaxRecords", "100");
    all_pages(account.client(), request, account.place().listing("list the Auto Scaling groups"), page_of)
        .await
}

/// Status codes of the spot requests that hold an instance, by instance.
pub(crate) async fn spots(account: &Account) -> Result<BTreeMap<String, String>, ReadError> {
    let request = Request::new(DESCRIBE_SPOT_REQUESTS).filter("state", ["active"]).with("MaxResults", PAGE);
    let page_of = |page: SpotRequests| {
        let items = page.spot_instance_request_set.items.into_iter();
        let items = items.map(|request| (request.spot_instance_request_id.clone(), request)).collect();
        Page { items, next: page.next_token }
    };
    let reading = account.place().listing("list the spot requests");
    let requests = all_pages(account.client(), request, reading, page_of).await?;
    let held =
        requests.into_values().filter_map(|request| Some((request.instance_id?, request.status?.code)));
    Ok(held.collect())
}

/// Which of these types of machines have disks on their host. A type is asked for once in the life of a connection.
pub(crate) async fn disks(
    account: &Account,
    kinds: &BTreeSet<String>,
) -> Result<BTreeSet<String>, ReadError> {
    let unknown: Vec<String> =
        kinds.iter().filter(|kind| account.has_disks(kind).is_none()).cloned().collect();
    for unknown in unknown.chunks(FILTER_VALUES_MAX) {
        let request = Request::new(DESCRIBE_INSTANCE_TYPES)
            .filter("instance-type", unknown)
            .filter("instance-storage-supported", ["true"])
            .with("MaxResults", "100");
        let page_of = |page: Kinds| {
            let items = page.instance_type_set.items.into_iter();
            let items = items.filter(|kind| kind.instance_storage_supported == Some(true));
            Page { items: items.map(|kind| (kind.instance_type, ())).collect(), next: page.next_token }
        };
        let reading = account.place().listing("list the types of machines");
        let with_disks = all_pages(account.client(), request, reading, page_of).await?;
        for kind in unknown {
            account.learn_disks(kind, with_disks.contains_key(kind));
        }
    }
    Ok(kinds.iter().filter(|kind| account.has_disks(kind) == Some(true)).cloned().collect())
}

/// Groups by name or id with their rules. Names are those of these networks, where any is given.
pub(crate) async fn groups(
    account: &Account,
    wanted: &BTreeSet<GroupRef>,
    vpcs: &BTreeSet<String>,
) -> Result<Vec<SecurityGroup>, ReadError> {
    let (names, ids) = names_and_ids(wanted);
    let mut found = BTreeMap::new();
    for (filter, values) in [("group-id", ids), ("group-name", names)] {
        for values in values.chunks(FILTER_VALUES_MAX) {
            let mut request = Request::new(DESCRIBE_GROUPS).filter(filter, values);
            if filter == "group-name" && (1..=FILTER_VALUES_MAX).contains(&vpcs.len()) {
                request = request.filter("vpc-id", vpcs);
            }
            found.append(&mut all_groups(account, request).await?);
        }
    }
    with_rules(account, found).await
}

pub(crate) async fn all_groups(
    account: &Account,
    request: Request,
) -> Result<BTreeMap<String, WireGroup>, ReadError> {
    let page_of = |page: group::Groups| {
        let items = page.security_group_info.items.into_iter();
        Page { items: items.map(|group| (group.group_id.clone(), group)).collect(), next: page.next_token }
    };
    let request = request.with("MaxResults", PAGE);
    all_pages(account.client(), request, account.place().listing("list the security groups"), page_of).await
}

/// The same groups, each with all its rules.
pub(crate) async fn with_rules(
    account: &Account,
    groups: BTreeMap<String, WireGroup>,
) -> Result<Vec<SecurityGroup>, ReadError> {
    let ids: Vec<&String> = groups.keys().collect();
    let mut rules: BTreeMap<String, Vec<GroupRule>> = BTreeMap::new();
    for ids in ids.chunks(FILTER_VALUES_MAX) {
        let request = Request::new(DESCRIBE_GROUP_RULES)
            .filter("group-id", ids.iter().map(|id| id.as_str()))
            .with("MaxResults", PAGE);
        let page_of = |page: group::Rules| {
            let items = page.security_group_rule_set.items.into_iter();
            let items = items.map(|rule| (rule.security_group_rule_id.clone(), rule)).collect();
            Page { items, next: page.next_token }
        };
        let reading = account.place().listing("list the security groups' rules");
        for rule in all_pages(account.client(), request, reading, page_of).await?.into_values() {
            rules.entry(rule.group_id.clone()).or_default().extend(rule.rules());
        }
    }
    let whole = groups.into_iter().map(|(id, group)| group.into_group(rules.remove(&id).unwrap_or_default()));
    Ok(whole.collect())
}

/// The route tables of these ids that there are; `None`: all.
pub(crate) async fn tables(
    account: &Account,
    wanted: Option<&BTreeSet<RouterId>>,
) -> Result<BTreeMap<String, WireTable>, ReadError> {
    let mut request = Request::new(DESCRIBE_ROUTE_TABLES);
    if let Some(wanted) = wanted {
        if wanted.is_empty() {
            return Ok(BTreeMap::new());
        }
        request = request.filter("route-table-id", wanted.iter().map(RouterId::as_str));
    }
    let page_of = |page: Tables| {
        let items = page.route_table_set.items.into_iter();
        Page {
            items: items.map(|table| (table.route_table_id.clone(), table)).collect(),
            next: page.next_token,
        }
    };
    // A page of route tables is smaller than those of other lists.
    let request = request.with("MaxResults", "100");
    all_pages(account.client(), request, account.place().listing("list the route tables"), page_of).await
}

/// The interfaces of these ids, and those of these instances, that there are.
pub(crate) async fn interfaces_of_targets(
    account: &Account,
    targets: &BTreeSet<String>,
) -> Result<Vec<WireInterface>, ReadError> {
    let (named, owners): (Vec<&String>, Vec<&String>) =
        targets.iter().partition(|target| target.starts_with("eni-"));
    let mut found = Vec::new();
    for (filter, ids) in [("network-interface-id", named), ("attachment.instance-id", owners)] {
        for ids in ids.chunks(FILTER_VALUES_MAX) {
            let ids = ids.iter().map(|id| id.as_str());
            found.extend(interfaces(account, Request::new(DESCRIBE_INTERFACES).filter(filter, ids)).await?);
        }
    }
    Ok(found)
}

/// The interfaces of one instance.
pub(crate) async fn interfaces_of(
    account: &Account,
    instance: &InstanceId,
) -> Result<Vec<WireInterface>, ReadError> {
    let request = Request::new(DESCRIBE_INTERFACES).filter("attachment.instance-id", [instance.as_str()]);
    interfaces(account, request).await
}

pub(crate) async fn interfaces(account: &Account, request: Request) -> Result<Vec<WireInterface>, ReadError> {
    let page_of = |page: Interfaces| {
        let items = page.network_interface_set.items.into_iter();
        let items = items.map(|one| (one.network_interface_id.clone(), one)).collect();
        Page { items, next: page.next_token }
    };
    let request = request.with("MaxResults", PAGE);
    let reading = account.place().listing("list the network interfaces");
    Ok(all_pages(account.client(), request, reading, page_of).await?.into_values().collect())
}
