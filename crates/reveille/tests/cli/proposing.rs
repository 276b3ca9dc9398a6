//! Tests `init` with a cluster and a project that answer, and the other commands with the roster that it wrote.

use crate::bench::{Bench, Ran};
use crate::world;

const INIT: [&str; 8] = [
    "init",
    "--file",
    "new.yaml",
    "--name",
    "prod",
    "--kubeconfig",
    "kubeconfig",
    "--clouds-file=clouds.yaml",
];

fn status(bench: &Bench) -> Ran {
    bench.run(&["status", "--roster", "new.yaml"])
}

#[test]
fn a_marked_project_gives_a_roster_that_the_others_accept() {
    let bench = Bench::towards(world::serve(r#""k8s-cluster=prod", "k8s-pool=workers""#));
    let ran = bench.run(&INIT);
    assert_eq!(ran.code, 0, "{}{}", ran.out, ran.err);
    for line in [
        "found      2 nodes; 2 of them are instances of project p, which has 3",
        "found      pool workers: 3 instances carry its marks",
        "found      router r2: pods: holds routes to 2 of 2 nodes' pod ranges",
    ] {
        assert!(ran.out.contains(line), "{line}\n{}", ran.out);
    }
    let again = bench.run(&INIT);
    assert_eq!(again.code, 64, "a file that is there is kept");
    let status = status(&bench);
    assert_eq!(status.code, 1, "{}{}", status.out, status.err);
    assert!(status.out.starts_with("prod · 3 machines · 2 Ready, 1 not Ready or missing"), "{}", status.out);
    assert!(status.out.contains("w-3"), "the server without a node has not joined: {}", status.out);
}

#[test]
fn faulty_rancher_records_are_shown_and_decide_no_standing() {
    let bench = Bench::towards(world::serve(r#""k8s-cluster=prod", "k8s-pool=workers""#));
    assert_eq!(bench.run(&INIT).code, 0);
    let roster = std::fs::read_to_string(bench.path("new.yaml")).unwrap();
    let name_rancher = |cluster: &str| {
        bench.write(
            "new.yaml",
            &format!("{roster}  rancher: {{kubeconfig: kubeconfig, cluster: {cluster}}}\n"),
        )
    };
    let plain = status(&bench);
    name_rancher("shop");
    let told = status(&bench);
    assert_eq!(told.code, plain.code, "{}{}", told.out, told.err);
    assert!(told.out.contains("In Rancher's records:") && told.out.contains("w-2  P1, P2"), "{}", told.out);
    let why = |machine: &str| bench.run(&["why", machine, "--roster", "new.yaml"]).out;
    let of_it = why("w-2");
    for part in [
        "cluster shop (c-abcde)",
        "record machine-h46dc",
        "spec.customConfig",
        "healthy (m-0123456789ab)",
        "Never",
    ] {
        assert!(of_it.contains(part), "{part}\n{of_it}");
    }
    assert!(!why("w-1").contains("machine-h46dc"), "a healthy machine's story has nothing of another's");
    for command in [&["status"][..], &["why", "w-2"]] {
        let json = bench.run(&[command, &["--roster", "new.yaml", "-o", "json"]].concat()).out;
        assert!(json.contains(r#""predicate": "P1""#) && !json.contains("hunter2-canary"), "{json}");
    }
    name_rancher("another");
    let lost = status(&bench);
    assert_eq!(lost.code, plain.code);
    assert!(lost.out.contains("? Rancher: Rancher has not exactly one cluster"), "{}", lost.out);
}

/// Nothing on the servers tells whose they are: the roster looks at the Nodes, and says which commands would change that.
#[test]
fn unmarked_project_gives_a_roster_of_its_nodes_alone() {
    let bench = Bench::towards(world::serve(""));
    let ran = bench.run(&INIT);
    assert_eq!(ran.code, 0, "{}{}", ran.out, ran.err);
    let mark = "for id in s1 s2; do openstack --os-compute-api-version 2.26 server set --tag k8s-cluster=prod --tag k8s-pool=w $id; done";
    assert!(ran.out.contains(mark), "{}", ran.out);
    let written = std::fs::read_to_string(bench.path("new.yaml")).unwrap();
    assert!(written.contains(mark) && !written.contains("  clouds:"), "{written}");
    let status = status(&bench);
    assert_eq!(status.code, 0, "{}{}", status.out, status.err);
    assert!(status.out.starts_with("prod · 2 machines · 2 Ready"), "{}", status.out);
}

#[test]
fn mark_carried_by_no_server_is_reported_with_its_line() {
    let bench = Bench::towards(world::serve(r#""k8s-cluster=prod""#));
    // The roster of the bench has a mark that no server carries.
    let ran = bench.run(&["status"]);
    assert!(
        ran.out.contains(
            "spec.pools[0].owned: none of the project's 3 instances carries the marks of pool workers"
        ),
        "{}{}",
        ran.out,
        ran.err
    );
    assert!(ran.out.contains("reveille.yaml:"), "{}", ran.out);
}
