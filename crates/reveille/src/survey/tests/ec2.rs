//! Tests the proposal for an AWS account: it has the same form as for a project, and the parts that only AWS has.

use std::collections::BTreeMap;

use reveille_core::model::hosting::{GroupPhase, Hosting, OwnerGroup};
use reveille_core::model::network::{Direction, Family, GroupRule, Remote, RuleSpec, SecurityGroup};
use reveille_core::model::node::Provider;
use reveille_core::model::roster::Mode;
use reveille_wire::roster::{CheckedRoster, CloudRef};

use super::*;
use reveille_cloud::inventory::Keeper;
use reveille_ec2::Ec2Site;

const GROUP_KEY: &str = "aws:autoscaling:groupName";

fn pair(key: &str, value: &str) -> Mark {
    Mark::Metadata(key.into(), value.into())
}

/// An instance of a cluster, with or without an Auto Scaling group, and with these further tags.
fn tagged(number: &str, cluster: &str, group: Option<&str>, more: &[(&str, &str)]) -> Arc<Instance> {
    let tag = format!("kubernetes.io/cluster/{cluster}");
    let mut marks = BTreeSet::from([pair(&tag, "owned"), Mark::Tag(tag.as_str().into())]);
    marks.extend(more.iter().map(|(key, value)| pair(key, value)));
    marks.extend(group.map(|group| pair(GROUP_KEY, group)));
    let owner = |name: &str| OwnerGroup {
        name: name.into(),
        phase: GroupPhase::Kept,
        word: "InService".into(),
        protected: false,
    };
    let hosting = group.map(|name| Arc::new(Hosting { group: Some(owner(name)), ..Hosting::default() }));
    Arc::new(Instance { marks: Arc::new(marks), hosting, ..fixture::instance(number) })
}

fn named(name: &str, instance: &Arc<Instance>) -> Arc<Instance> {
    Arc::new(Instance { name: name.into(), ..(**instance).clone() })
}

fn rule(remote: Remote) -> GroupRule {
    let allows =
        RuleSpec { direction: Direction::Ingress, family: Family::V4, protocol: None, ports: None, remote };
    GroupRule { id: "r".into(), allows, description: "".into() }
}

/// Three workers of two groups, one of them without a Node; two control planes without a group; a group without machines;
/// a machine of another cluster.
fn account() -> Survey {
    let instances = [
        tagged("1", "prod", Some("workers"), &[]),
        tagged("2", "prod", Some("workers"), &[]),
        tagged("3", "prod", Some("gpu"), &[]),
        named("cp-1", &tagged("4", "prod", None, &[])),
        named("cp-2", &tagged("5", "prod", None, &[])),
        named("dev-1", &tagged("6", "dev", None, &[])),
    ];
    let node = |number: &str, range: &str| {
        let node = ranged(number, range);
        Arc::new(Node { name: format!("ip-10-0-0-{number}.ec2.internal").as_str().into(), ..(*node).clone() })
    };
    let nodes = vec![
        node("1", "100.64.0.0/24"),
        node("3", "100.64.1.0/24"),
        node("4", "100.64.2.0/24"),
        node("5", "100.64.3.0/24"),
    ];
    let pods = Remote::Prefix("100.64.0.0/22".parse().unwrap());
    let of = |id: &str, name: &str, rules: Vec<GroupRule>| {
        (id.into(), Arc::new(SecurityGroup { id: id.into(), name: name.into(), project: None, rules }))
    };
    let ports = instances.iter().map(|one| {
        let number = one.id.as_str().trim_start_matches('i').to_owned();
        (one.id.clone(), Arc::new(fixture::port(&number, &["sg-a", "sg-b"])))
    });
    let spare = Keeper {
        name: "spare".into(),
        mark: pair(GROUP_KEY, "spare"),
        gives: BTreeSet::from([pair(GROUP_KEY, "spare"), Mark::Tag("kubernetes.io/cluster/prod".into())]),
        machines: BTreeSet::new(),
    };
    let inventory = Inventory {
        ports: ports.collect(),
        instances: instances.into_iter().map(|one| (one.id.clone(), one)).collect(),
        groups: BTreeMap::from([
            of("sg-a", "ssh", vec![]),
            of("sg-b", "nodes", vec![rule(Remote::Group("sg-b".into())), rule(pods)]),
        ]),
        routers: vec![super::router("rtb-1", &["100.64.0.0/24", "100.64.1.0/24"])],
        legs: vec![RouterLeg { router: "rtb-1".into(), network: "net".into() }],
        within: BTreeMap::from([("net".into(), "vpc-1".into())]),
        keepers: vec![spare],
    };
    Survey { nodes, inventory, wanted_router: None }
}

fn site(cluster: Option<&str>) -> Ec2Site {
    Ec2Site { cluster: cluster.map(str::to_owned), ..sites::ec2() }
}

fn accepted(text: &str) -> CheckedRoster {
    let origin = Origin { name: "proposal", dir: Path::new("/"), home: None };
    read(text, &origin).unwrap_or_else(|refusal| panic!("{refusal}\n{text}")).remove(0)
}

#[test]
fn account_gives_an_observing_roster_with_pools_by_group() {
    let Proposed { proposal, unknown } = roster_on(&account(), &site(Some("prod"))).unwrap();
    let text = render(&proposal);
    let checked = accepted(&text);
    let at = CloudRef::Ec2 {
        region: "eu-central-1".to_owned(),
        profile: Some("ops".to_owned()),
        endpoint: None,
        cluster: "prod".to_owned(),
    };
    assert_eq!(checked.clouds["aws"], at);
    let owned: Vec<String> = checked
        .roster
        .pools
        .values()
        .map(|pool| format!("{} {} {:?}", pool.name, pool.owned.cluster, pool.owned.pool))
        .collect();
    let cluster = "tag kubernetes.io/cluster/prod";
    let own = |name: &str| format!("{name} {cluster} {:?}", Some(pair(GROUP_KEY, name)));
    assert_eq!(owned, [own("gpu"), own("workers")]);
    for pool in checked.roster.pools.values() {
        let repair = pool.repair;
        let all = [repair.network, repair.rejoin, repair.reboot, repair.replace, repair.cleanup];
        assert!(!all.contains(&Mode::Act) && !pool.through_group, "{text}");
        let first = format!("{:?}", pool.groups.first());
        assert!(first.contains("nodes"), "missing rules go where the pods' rules are: {first}");
    }
    assert_eq!(checked.roster.network.router.map(|(_, id)| id.to_string()).as_deref(), Some("rtb-1"));
    for part in [
        "of account 123456789012 in eu-central-1, which has 6.",
        "    # The nodes' interfaces are in vpc-1: net (4).",
        "    # 2 instances carry these marks, 1 of them are nodes.",
        "    # Kept by Auto Scaling group workers (2), which replaces machines by rules of its own; they are left to it.",
        "    # Group nodes lets its own members and all pods in.",
        "      throughGroup: false",
        "      owned: {tag: \"kubernetes.io/cluster/prod\", pool: \"aws:autoscaling:groupName=workers\"}",
    ] {
        assert!(text.contains(part), "{part}\n{text}");
    }
    let commented: Vec<&str> = proposal.commented.iter().map(|pool| pool.name.as_str()).collect();
    assert_eq!(commented, ["cp", "spare"], "a name proves nothing, and no instance carries that mark yet");
    let gap = unknown.iter().find(|gap| !gap.commands.is_empty()).unwrap();
    assert!(gap.what.contains("No Auto Scaling group keeps them."), "{gap:?}");
    assert_eq!(
        gap.commands,
        [
            "aws --profile ops ec2 create-tags --region eu-central-1 --resources i4 i5 --tags Key=k8s-pool,Value=cp"
        ]
    );
    let mut taken_up = proposal.clone();
    taken_up.pools.append(&mut taken_up.commented);
    assert_eq!(accepted(&render(&taken_up)).roster.pools.len(), 4, "enabled pools are part of the roster");
}

/// Each case lacks what the one before has: a key of their own makes a pool of machines without a group.
#[test]
fn machines_without_a_group_form_a_pool_by_an_exclusive_key() {
    let mut survey = account();
    let mut put = |number: &str, group: Option<&str>, more: &[(&str, &str)]| {
        let instance = tagged(number, "prod", group, more);
        survey.inventory.instances.insert(instance.id.clone(), instance);
    };
    put("4", None, &[("k8s.io/role/master", "1")]);
    put("5", None, &[("k8s.io/role/master", "1")]);
    let names = |survey: &Survey| -> Vec<String> {
        let proposed = roster_on(survey, &site(Some("prod"))).unwrap();
        accepted(&render(&proposed.proposal)).roster.pools.keys().map(ToString::to_string).collect()
    };
    assert_eq!(names(&survey), ["gpu", "master", "workers"]);
    let shared = tagged("3", "prod", Some("gpu"), &[("k8s.io/role/master", "1")]);
    survey.inventory.instances.insert(shared.id.clone(), shared);
    assert_eq!(names(&survey), ["gpu", "workers"], "a machine would be of two pools");
}

#[test]
fn which_cluster_is_meant_is_found_or_asked_and_never_guessed() {
    let with = |clusters: &[(&str, &str)]| {
        let mut survey = account();
        survey.inventory.instances.clear();
        for (number, cluster) in clusters {
            let instance = match *cluster {
                "" => Arc::new(Instance { marks: Arc::default(), ..fixture::instance(number) }),
                cluster => tagged(number, cluster, None, &[]),
            };
            survey.inventory.instances.insert(instance.id.clone(), instance);
        }
        survey
    };
    let table: [(&[(&str, &str)], Option<&str>, Result<&str, &str>); 8] = [
        (&[("1", "prod"), ("3", "prod")], None, Ok("prod")),
        (&[("1", "prod"), ("6", "dev")], Some("prod"), Ok("prod")),
        (
            &[("1", "prod"), ("6", "dev")],
            None,
            Err(
                "tagged for several clusters: dev (1 instances, 0 of them nodes here), prod (1 instances, 1 of them nodes here)",
            ),
        ),
        (
            &[("1", "prod")],
            Some("prd"),
            Err(
                "no instance of account 123456789012 in eu-central-1 carries the tag kubernetes.io/cluster/prd; they are tagged for prod",
            ),
        ),
        (
            &[("1", "")],
            None,
            Err("none of the 1 instances of account 123456789012 in eu-central-1 carries a tag"),
        ),
        (&[("1", "")], Some("prod"), Ok("prod")),
        (
            &[("1", ""), ("6", "dev")],
            None,
            Err("none of the 1 instances that nodes name carries the tag kubernetes.io/cluster/dev"),
        ),
        (&[("6", "prod")], Some("prod"), Err("names one of the 1 instances of account 123456789012")),
    ];
    for (clusters, named, expected) in table {
        let settled = settle(&with(clusters), &site(named));
        match (settled, expected) {
            (Ok(settled), Ok(id)) => {
                assert_eq!(settled.cluster, Some(Mark::Tag(format!("kubernetes.io/cluster/{id}").into())));
            }
            (Err(failure), Err(part)) => {
                let said = failure.to_string();
                assert!(said.contains(part), "{part}\n{said}");
            }
            (settled, expected) => panic!("{clusters:?} {named:?}: {settled:?}, not {expected:?}"),
        }
    }
}

/// No instance of the account is tagged, and the command line names the cluster: the result has comments and the commands
/// that mark, as on OpenStack.
#[test]
fn an_untagged_account_gives_comments_and_the_commands_that_tag() {
    let mut survey = account();
    for instance in survey.inventory.instances.values_mut() {
        *instance = Arc::new(Instance { marks: Arc::default(), hosting: None, ..(**instance).clone() });
    }
    let Proposed { proposal, unknown } = roster_on(&survey, &site(Some("prod"))).unwrap();
    assert!(proposal.pools.is_empty(), "a name proves no ownership");
    let tag = "aws --profile ops ec2 create-tags --region eu-central-1 --resources";
    let commands: Vec<&String> = unknown.iter().flat_map(|gap| &gap.commands).collect();
    assert_eq!(
        commands,
        [
            &format!("{tag} i4 i5 --tags Key=kubernetes.io/cluster/prod,Value=owned Key=k8s-pool,Value=cp"),
            &format!("{tag} i1 i3 --tags Key=kubernetes.io/cluster/prod,Value=owned Key=k8s-pool,Value=w"),
        ]
    );
    let mut taken_up = proposal.clone();
    taken_up.pools.append(&mut taken_up.commented);
    accepted(&render(&taken_up));
}

#[test]
fn node_without_provider_id_is_matched_by_private_dns_name() {
    let mut survey = account();
    let hostname = |survey: &mut Survey, number: &str| {
        let instance = survey.inventory.instances.get_mut(format!("i{number}").as_str()).unwrap();
        *instance =
            Arc::new(Instance { hostname: Some("ip-10-0-0-1.ec2.internal".into()), ..(**instance).clone() });
    };
    let provider = |survey: &mut Survey, index: usize, provider: Provider| {
        survey.nodes[index] = Arc::new(Node { provider, ..(*survey.nodes[index]).clone() });
    };
    hostname(&mut survey, "1");
    provider(&mut survey, 0, Provider::Unset);
    provider(&mut survey, 1, Provider::Unread("aws:///a/b/fargate-ip-10-0-0-3".into()));
    let ours: Vec<String> = survey.our_ids().iter().map(ToString::to_string).collect();
    assert_eq!(ours, ["i1", "i4", "i5"]);
    let proposed = roster_on(&survey, &site(Some("prod"))).unwrap();
    assert!(
        says(
            &proposed.unknown,
            "what 1 nodes are on: they name no instance of account 123456789012 in eu-central-1 (ip-10-0-0-3.ec2.internal)"
        ),
        "{:?}",
        proposed.unknown
    );
    hostname(&mut survey, "2");
    assert_eq!(survey.our_ids().len(), 2, "of two that call themselves so, neither is meant");
}
