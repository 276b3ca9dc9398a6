//! The load that an agent causes while everything is healthy.

#![allow(clippy::unwrap_used, reason = "in a test, what cannot be is a failure")]

#[path = "support/agent.rs"]
mod agent;
#[path = "support/cluster.rs"]
mod cluster;
mod support;

use cluster::Cluster;
use reveille_agent::Settings;
use reveille_core::model::time::Span;
use reveille_node::agent::Setup;
use support::site;

#[tokio::test]
async fn agent_reuses_its_connections_and_redials_after_a_failure() {
    let (site, cluster) = (site().await, Cluster::new());
    let api_server = cluster.api_server().await;
    let machine = agent::machine(1, &[("/etc/kubernetes/kubelet.conf", &cluster.kubelet_conf(&api_server))]);
    let invited = Some(site.invite(|_| {}).await.token.clone());
    let settings = Settings { inspect_every: Span::from_s(1), ..agent::hasty() };
    let setup = Setup { settings, ..agent::setup(&site, &machine, invited) };
    cluster.has_joined(&api_server, &setup.folder, "w-1");
    let mut running = agent::run(setup, machine);
    for _ in 0..4 {
        running.says_all(&["Machine(Api(None))", "node: Ready, credentials: Accepted"]).await;
    }
    assert_eq!(
        api_server.connections(),
        2,
        "one that shows nothing, and one that shows the kubelet's certificate"
    );
    api_server.set(false);
    running.says("Machine(Api(Some(").await;
    api_server.set(true);
    running.says_all(&["Machine(Api(None))", "node: Ready, credentials: Accepted"]).await;
    assert!(api_server.connections() > 2);
    site.end().await;
}
