//! Three agents, one registration server, one API server: an agent that loses the API server asks the others, and so
//! tells an outage from its own fault.

#![allow(clippy::unwrap_used, reason = "in a test, what cannot be is a failure")]

#[path = "support/agent.rs"]
mod agent;
#[path = "support/cluster.rs"]
mod cluster;
mod support;

use std::net::SocketAddr;

use agent::Running;
use cluster::{ApiServer, Cluster};
use reveille_node::agent::Setup;
use reveille_node::link::Keyring;
use reveille_registrar::registry::Settings;
use reveille_registrar::server::Limits;
use reveille_registrar::server::admin::{Answer, Ask};
use reveille_wire::agent::Secret;
use support::{Site, site_with};
use tempfile::TempDir;

/// A port that was free a moment ago, so that a restarted agent has the same address as before.
fn port() -> SocketAddr {
    std::net::TcpListener::bind("127.0.0.1:0").unwrap().local_addr().unwrap()
}

fn setup(site: &Site, machine: &TempDir, at: SocketAddr, invitation: Option<Secret>) -> Setup {
    Setup { peer_listen: Some(at), settings: agent::hasty(), ..agent::setup(site, machine, invitation) }
}

/// A server that accepts loopback addresses of peers, because all agents run on one host.
async fn on_one_host() -> Site {
    let settings = Settings { peers_on_loopback: true, ..Settings::default() };
    site_with(TempDir::new().unwrap(), settings, Limits::default()).await
}

struct Three {
    site: Site,
    api_servers: Vec<ApiServer>,
    agents: Vec<Running>,
    at: Vec<SocketAddr>,
}

impl Three {
    async fn new() -> Self {
        let (site, cluster) = (on_one_host().await, Cluster::new());
        let (mut api_servers, mut agents, mut at) = (Vec::new(), Vec::new(), Vec::new());
        for number in 0..3 {
            let (api_server, address) = (cluster.api_server().await, port());
            let machine = agent::machine(number as u32, &[]);
            let invited = site.invite(|_| {}).await;
            let setup = setup(&site, &machine, address, Some(invited.token.clone()));
            // The test orders no join: it is about how an agent inspects its join.
            cluster.has_joined(&api_server, &setup.folder, &format!("w-{number}"));
            let mut running = agent::run(setup, machine);
            running.says_all(&["Up {", "api: Answers"]).await;
            api_servers.push(api_server);
            agents.push(running);
            at.push(address);
        }
        Self { site, api_servers, agents, at }
    }

    /// Each agent restarts, and is told about the two others, which are running.
    async fn again(mut self) -> Self {
        let mut agents = Vec::new();
        for (before, at) in std::mem::take(&mut self.agents).into_iter().zip(&self.at) {
            let machine = before.stopped().await;
            let setup = setup(&self.site, &machine, *at, None);
            let mut running = agent::run(setup, machine);
            running.says_all(&["Peers(", "api: Answers"]).await;
            agents.push(running);
        }
        Self { agents, ..self }
    }
}

#[tokio::test]
async fn api_server_loss_is_local_for_one_machine_and_outage_for_all() {
    let mut three = Three::new().await.again().await;
    three.api_servers[0].set(false);
    three.agents[0].says("api: LostHere").await;
    three.api_servers[0].set(true);
    three.agents[0].says("api: Answers").await;
    for api_server in &three.api_servers {
        api_server.set(false);
    }
    for agent in &mut three.agents {
        agent.says("api: LostByAll").await;
    }
    three.site.end().await;
}

#[tokio::test]
async fn restarted_agent_asks_peers_while_the_server_is_away() {
    let mut three = Three::new().await.again().await;
    let first = three.agents.remove(0);
    let machine = first.stopped().await;
    let setup = setup(&three.site, &machine, three.at[0], None);
    three.site.end().await;
    let mut first = agent::run(setup, machine);
    first.says("api: Answers").await;
    three.api_servers[0].set(false);
    first.says("api: LostHere").await;
    for api_server in &three.api_servers {
        api_server.set(false);
    }
    first.says("api: LostByAll").await;
}

#[tokio::test]
async fn agent_keeps_pins_of_the_welcome_and_survives_the_rotation() {
    let site = on_one_host().await;
    let invited = site.invite(|_| {}).await;
    let machine = agent::machine(1, &[]);
    let mut running = agent::run(agent::setup(&site, &machine, Some(invited.token.clone())), machine);
    running.says("Up {").await;
    let Answer::Pins(both) = site.people(Ask::RotateCa {}).await else { panic!("no pins") };
    let machine = running.stopped().await;
    let folder = agent::setup(&site, &machine, None).folder.join("link");
    let pins = || Keyring::open(&folder).unwrap().unwrap().kept.ca_pins;
    assert_eq!(pins().len(), 1);
    let mut running = agent::run(agent::setup(&site, &machine, None), machine);
    running.says("Up {").await;
    assert_eq!(pins(), both.iter().map(ToString::to_string).collect::<Vec<_>>());
    site.people(Ask::FinishRotation { force: false }).await;
    let link = Keyring::open(&folder).unwrap().unwrap().link().unwrap();
    assert_eq!(link.ping().await.unwrap().product.as_str(), "reveille", "the next authority is known");
    site.end().await;
}
