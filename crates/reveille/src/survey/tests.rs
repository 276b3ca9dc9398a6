//! Tests that the survey gives a roster that the reader accepts.

use std::collections::BTreeSet;
use std::path::Path;
use std::sync::Arc;

use ipnet::IpNet;
use reveille_core::model::instance::{Instance, Mark};
use reveille_core::model::network::{Route, Router};
use reveille_core::model::node::{Node, Ready};
use reveille_wire::roster::{ClusterRef, Origin, read, render::render};

use super::network::cover;
use super::propose::{self, Proposed, settle};
use super::{Gap, Place, Survey};
use crate::cli::failure::Failure;
use crate::fixture;
use reveille_cloud::inventory::{Inventory, NamedRouter, RouterLeg};
use reveille_cloud::site::Site;

mod ec2;
pub(crate) mod sites;

/// The proposal for a project, or why there is none.
fn roster_on(survey: &Survey, site: &dyn Site) -> Result<Proposed, Failure> {
    let place = Place {
        roster: "prod".to_owned(),
        cluster: ClusterRef { kubeconfig: None, context: Some("prod-admin".to_owned()) },
        cloud: site.cloud(),
        site,
        settled: settle(survey, site)?,
    };
    Ok(propose::roster(survey, &place))
}

fn roster(survey: &Survey) -> Result<Proposed, Failure> {
    roster_on(survey, &sites::openstack())
}

fn marked(number: &str, marks: &[&str]) -> Arc<Instance> {
    let marks: BTreeSet<Mark> = marks.iter().map(|tag| Mark::Tag(Arc::from(*tag))).collect();
    Arc::new(Instance { marks: Arc::new(marks), ..fixture::instance(number) })
}

fn ranged(number: &str, range: &str) -> Arc<Node> {
    Arc::new(Node { pod_ranges: Box::new([range.parse().unwrap()]), ..fixture::node(number, Ready::True) })
}

/// Three workers and a GPU machine with Nodes, and one worker without one.
fn survey() -> Survey {
    let mut survey = Survey {
        nodes: vec![
            ranged("1", "100.64.0.0/24"),
            ranged("2", "100.64.1.0/24"),
            ranged("3", "100.64.2.0/24"),
            ranged("4", "100.64.5.0/24"),
        ],
        ..Survey::default()
    };
    for (number, pool) in
        [("1", "workers"), ("2", "workers"), ("3", "workers"), ("4", "gpu"), ("5", "workers")]
    {
        let pool = format!("k8s-pool={pool}");
        let instance = marked(number, &["k8s-cluster=prod", &pool, "rack=7", "spare"]);
        let groups: &[&str] = if number == "5" { &["g0"] } else { &["g0", "g1"] };
        survey.inventory.ports.push((instance.id.clone(), Arc::new(fixture::port(number, groups))));
        survey.inventory.instances.insert(instance.id.clone(), instance);
    }
    let default = reveille_core::model::network::SecurityGroup {
        id: "g0".into(),
        name: "default".into(),
        ..fixture::group()
    };
    for group in [default, fixture::group()] {
        survey.inventory.groups.insert(group.id.clone(), Arc::new(group));
    }
    survey
}

#[test]
fn a_proposal_reads_as_a_roster_that_only_looks() {
    let proposed = roster(&survey()).unwrap();
    let text = render(&proposed.proposal);
    let origin = Origin { name: "proposal", dir: Path::new("/"), home: None };
    let checked = read(&text, &origin).unwrap_or_else(|refusal| panic!("{refusal}\n{text}")).remove(0);
    let pools: Vec<&str> = checked.roster.pools.keys().map(|name| name.as_str()).collect();
    assert_eq!(pools, ["gpu", "workers"]);
    let workers = &checked.roster.pools["workers"];
    assert_eq!(workers.owned.cluster, Mark::Tag("k8s-cluster=prod".into()));
    assert_eq!(workers.owned.pool, Some(Mark::Tag("k8s-pool=workers".into())));
    assert_eq!(format!("{:?}", workers.groups), r#"[Name("k8s-nodes")]"#, "on three of four ports: needed");
    let acts = checked.roster.pools.values().any(|pool| {
        let repair = pool.repair;
        [repair.network, repair.rejoin, repair.reboot, repair.replace, repair.cleanup]
            .contains(&reveille_core::model::roster::Mode::Act)
    });
    assert!(!acts, "{text}");
    assert!(text.contains("4 instances carry these marks, 3 of them are nodes."), "{text}");
    assert!(says(&proposed.unknown, "router"), "what is not known is said");
}

fn says(unknown: &[Gap], what: &str) -> bool {
    unknown.iter().any(|gap| gap.what.contains(what))
}

fn router(id: &str, destinations: &[&str]) -> NamedRouter {
    let route = |destination: &&str| Route {
        destination: destination.parse().unwrap(),
        next_hop: "10.0.0.1".parse().unwrap(),
    };
    let routes = destinations.iter().map(route).collect();
    NamedRouter {
        name: format!("name-of-{id}").into(),
        router: Arc::new(Router { id: id.into(), routes, limit: None }),
    }
}

/// The proposed router, those that are comments, and what is said about them.
fn routed(survey: Survey) -> (Option<String>, Vec<String>, Vec<Gap>) {
    let Proposed { proposal, unknown } = roster(&survey).unwrap();
    let text = render(&proposal);
    let origin = Origin { name: "proposal", dir: Path::new("/"), home: None };
    let written = read(&text, &origin).unwrap_or_else(|refusal| panic!("{refusal}\n{text}")).remove(0);
    let chosen = proposal.network.router.map(|router| router.id.to_string());
    assert_eq!(
        written.roster.network.router.map(|(_, id)| id.to_string()),
        chosen,
        "a comment counts for nothing"
    );
    let comments = proposal.network.candidates.iter().map(|c| format!("{} {}", c.id, c.why)).collect();
    (chosen, comments, unknown)
}

#[test]
fn the_one_router_that_carries_pod_routes_is_found() {
    let leg = |id: &str, network: &str| RouterLeg { router: id.into(), network: network.into() };
    let of = |routers: &[NamedRouter], legs: &[RouterLeg]| {
        let mut survey = survey();
        (survey.inventory.routers, survey.inventory.legs) = (routers.to_vec(), legs.to_vec());
        routed(survey)
    };
    let carrying = router("r1", &["100.64.1.0/24", "100.64.5.0/24", "192.168.7.0/24"]);
    let (near, wide) = (router("r2", &["192.168.7.0/24"]), router("r3", &["0.0.0.0/0", "100.0.0.0/8"]));
    let found = of(&[near.clone(), carrying.clone(), wide.clone()], &[leg("r1", "net"), leg("r2", "net")]);
    assert_eq!((found.0.as_deref(), found.1.len(), found.2), (Some("r1"), 0, vec![]));
    let legs = [leg("r2", "net"), leg("r3", "elsewhere")];
    let (chosen, comments, unknown) = of(&[near.clone(), wide], &legs);
    assert_eq!(chosen, None, "a leg in the nodes' network, or a route to everywhere, carries no pods");
    assert_eq!(
        comments,
        ["r2 name-of-r2: holds no route into the pod ranges, reaches into the nodes' network"]
    );
    assert!(says(&unknown, "none of 2 holds one"), "{unknown:?}");
    let (chosen, comments, unknown) = of(&[carrying, router("r4", &["100.64.0.0/22"])], &[]);
    assert_eq!((chosen, comments.len()), (None, 2), "of several none is picked");
    assert!(comments[0].contains("holds routes to 2 of 4 nodes' pod ranges"), "{comments:?}");
    assert!(comments[1].contains("holds routes to 3 of 4 nodes' pod ranges"), "one route may carry several");
    assert!(says(&unknown, "2 routers hold pod routes"), "{unknown:?}");
}

#[test]
fn a_named_router_is_taken_only_when_it_carries_pod_routes() {
    let with = |routers: &[NamedRouter]| {
        let Survey { nodes, inventory, .. } = survey();
        let inventory = Inventory { routers: routers.to_vec(), ..inventory };
        routed(Survey { nodes, inventory, wanted_router: Some("r1".into()) })
    };
    let (carries, other) = (router("r1", &["100.64.1.0/24"]), router("r2", &["100.64.1.0/24"]));
    let found = with(&[carries, other.clone()]);
    assert_eq!((found.0.as_deref(), found.2), (Some("r1"), vec![]), "it settles which of several is meant");
    let left_out = with(&[router("r1", &["192.168.7.0/24"]), other.clone()]);
    assert_eq!(left_out.0, None);
    assert!(says(&left_out.2, "router r1 holds no route into the pod ranges"), "{:?}", left_out.2);
    let gone = with(&[other]);
    assert!(says(&gone.2, "no router of that id"), "{:?}", gone.2);
}

#[test]
fn nodes_without_an_instance_of_the_project_propose_nothing() {
    let none = Survey { nodes: vec![ranged("1", "100.64.0.0/24")], ..Survey::default() };
    let said = roster(&none).map(drop).unwrap_err().to_string();
    assert!(said.contains("none of the 1 nodes names one of the 0 instances of project k8s-prod"), "{said}");
}

#[test]
fn unmarked_servers_give_commented_pools_and_marking_commands() {
    let mut unmarked = survey();
    for (id, instance) in &mut unmarked.inventory.instances {
        let number = id.as_str().trim_start_matches('i');
        let name = if number == "4" { "gpu-4" } else { "w-1" };
        *instance = Arc::new(Instance { name: name.into(), ..(*marked(number, &["web"])).clone() });
    }
    let Proposed { proposal, unknown } = roster(&unmarked).unwrap();
    assert!(proposal.pools.is_empty(), "a name proves no ownership");
    let names: Vec<&str> = proposal.commented.iter().map(|pool| pool.name.as_str()).collect();
    assert_eq!(names, ["gpu", "w"]);
    let gap = unknown.iter().find(|gap| !gap.commands.is_empty()).unwrap();
    assert!(gap.what.contains("share no tag and no metadata that names a cluster"), "{gap:?}");
    assert_eq!(
        gap.commands,
        [
            "openstack --os-compute-api-version 2.26 server set --tag k8s-cluster=prod --tag k8s-pool=gpu i4",
            "for id in i1 i2 i3; do openstack --os-compute-api-version 2.26 server set --tag k8s-cluster=prod --tag k8s-pool=w $id; done",
        ],
        "those with a node; i5 has none and may belong to another owner"
    );
    let text = render(&proposal);
    assert!(text.contains("      # owned: {tag: \"k8s-cluster=prod\", pool: \"k8s-pool=w\"}"), "{text}");
    let origin = Origin { name: "proposal", dir: Path::new("/"), home: None };
    assert!(read(&text, &origin).is_err(), "no machine is managed until an operator enables a pool");
}

#[test]
fn unmarked_machines_are_listed_with_their_marking_commands() {
    let mut survey = survey();
    let mut replace = |number: &str, marks: &[&str]| {
        survey.inventory.instances.insert(format!("i{number}").as_str().into(), marked(number, marks));
    };
    replace("1", &["rack=7"]);
    replace("2", &["k8s-cluster=prod"]);
    replace("6", &[]);
    replace("7", &["k8s-cluster=dev"]);
    let Proposed { proposal, unknown } = roster(&survey).unwrap();
    let names: Vec<&str> = proposal.pools.iter().map(|pool| pool.name.as_str()).collect();
    assert_eq!(names, ["gpu", "workers"], "one that lost its marks does not unmake the pools");
    let commands: Vec<(&str, &str)> =
        unknown.iter().filter_map(|gap| Some((gap.what.as_str(), gap.commands.first()?.as_str()))).collect();
    let set = "openstack --os-compute-api-version 2.26 server set --tag";
    assert_eq!(commands.len(), 3, "{commands:?}");
    assert!(commands[0].0.starts_with("whose 1 of the nodes' 4 instances are"), "{commands:?}");
    assert_eq!(commands[0].1, format!("{set} k8s-cluster=prod i1"));
    assert!(
        commands[1].0.starts_with("whose 1 instances are that have names like the nodes'"),
        "{commands:?}"
    );
    assert_eq!(commands[1].1, format!("{set} k8s-cluster=prod i6"), "i7 says itself whose it is");
    assert!(commands[2].0.starts_with("the pool of 1 instances"), "{commands:?}");
    assert_eq!(commands[2].1, format!("{set} k8s-pool=gpu i2"));
}

#[test]
fn ranges_are_covered_by_the_smallest_network() {
    let nets = |texts: &[&str]| -> Vec<IpNet> { texts.iter().map(|text| text.parse().unwrap()).collect() };
    let table: [(&[&str], &[&str]); 4] = [
        (&[], &[]),
        (&["10.1.0.0/24"], &["10.1.0.0/24"]),
        (&["10.1.0.0/24", "10.1.3.0/24"], &["10.1.0.0/22"]),
        (&["10.1.0.0/24", "fd00:1::/64", "10.1.1.0/24", "fd00:1:0:1::/64"], &["10.1.0.0/23", "fd00:1::/63"]),
    ];
    for (ranges, covered) in table {
        assert_eq!(cover(&nets(ranges)), nets(covered), "{ranges:?}");
    }
}
