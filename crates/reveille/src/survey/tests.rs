//! From what was found to a roster that the reader accepts.

use std::collections::BTreeSet;
use std::path::Path;
use std::sync::Arc;

use ipnet::IpNet;
use reveille_core::model::instance::{Instance, Mark};
use reveille_core::model::node::{Node, Ready};
use reveille_wire::roster::{ClusterRef, Origin, read, render::render};

use super::Survey;
use super::propose::{Place, cover, roster};
use crate::fixture;

fn place() -> Place {
    Place {
        roster: "prod".to_owned(),
        cluster: ClusterRef { kubeconfig: None, context: Some("prod-admin".to_owned()) },
        cloud: "os".into(),
        entry: "prod".to_owned(),
        clouds_file: None,
        project: "k8s-prod".to_owned(),
    }
}

fn marked(number: &str, marks: &[&str]) -> Arc<Instance> {
    let marks: BTreeSet<Mark> = marks.iter().map(|tag| Mark::Tag(Arc::from(*tag))).collect();
    Arc::new(Instance { marks: Arc::new(marks), ..fixture::instance(number) })
}

fn ranged(number: &str, range: &str) -> Arc<Node> {
    Arc::new(Node { pod_ranges: Box::new([range.parse().unwrap()]), ..fixture::node(number, Ready::True) })
}

/// Three workers and a gpu machine that are nodes, and one worker that is not.
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
        survey.ports.push((instance.id.clone(), Arc::new(fixture::port(number, groups))));
        survey.instances.insert(instance.id.clone(), instance);
    }
    let default = reveille_core::model::network::SecurityGroup {
        id: "g0".into(),
        name: "default".into(),
        ..fixture::group()
    };
    for group in [default, fixture::group()] {
        survey.groups.insert(group.id.clone(), Arc::new(group));
    }
    survey
}

#[test]
fn a_proposal_reads_as_a_roster_that_only_looks() {
    let proposed = roster(&survey(), &place()).unwrap();
    let text = render(&proposed.proposal);
    let origin = Origin { name: "proposal", dir: Path::new("/"), home: None };
    let checked = read(&text, &origin).unwrap_or_else(|refusal| panic!("{refusal}\n{text}")).remove(0);
    let pools: Vec<&str> = checked.roster.pools.keys().map(|name| name.as_str()).collect();
    assert_eq!(pools, ["gpu", "workers"]);
    let workers = &checked.roster.pools[&"workers".into()];
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
    assert!(proposed.unknown.iter().any(|line| line.contains("router")), "what is not known is said");
}

#[test]
fn a_named_router_is_taken_only_when_it_carries_pod_routes() {
    use reveille_core::model::network::{Route, Router};
    let with = |destination: &str| {
        let route =
            Route { destination: destination.parse().unwrap(), next_hop: "10.0.0.1".parse().unwrap() };
        let router = Router { id: "r1".into(), routes: vec![route], limit: None };
        let survey = Survey { routers: vec![Arc::new(router)], ..survey() };
        roster(&survey, &place()).unwrap()
    };
    let found = with("100.64.1.0/24");
    assert_eq!(found.proposal.network.router, Some(("os".into(), "r1".into())));
    assert!(found.unknown.is_empty(), "{:?}", found.unknown);
    let other = with("192.168.7.0/24");
    assert_eq!(other.proposal.network.router, None);
    assert!(other.unknown[0].contains("no route into the pod ranges"), "{:?}", other.unknown);
    let gone = Survey { missing_router: Some("r9".into()), ..survey() };
    let gone = roster(&gone, &place()).unwrap();
    assert!(gone.unknown[0].contains("no router of that id"), "{:?}", gone.unknown);
}

#[test]
fn what_names_nothing_proposes_nothing() {
    let nobody = Survey { nodes: vec![ranged("1", "100.64.0.0/24")], ..Survey::default() };
    let said = |survey: &Survey| roster(survey, &place()).map(drop).unwrap_err().to_string();
    assert!(
        said(&nobody).contains("none of the 1 nodes names an instance of project k8s-prod"),
        "{}",
        said(&nobody)
    );
    let mut unmarked = survey();
    for (id, instance) in &mut unmarked.instances {
        *instance = marked(id.as_str().trim_start_matches('i'), &["web"]);
    }
    assert!(said(&unmarked).contains("share no tag"), "{}", said(&unmarked));
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
