//! A plan that cannot be applied at once.

#![allow(clippy::unwrap_used, reason = "in a test, what cannot be is a failure")]

#[path = "support/agent.rs"]
mod agent;
mod support;

use std::collections::BTreeSet;

use reveille_node::root::Root;
use reveille_registrar::registry::{Event, Plans, Template};
use reveille_wire::agent::Distribution;
use reveille_wire::agent::plan::Step;
use reveille_wire::agent::text::Word;
use support::site;

#[tokio::test]
async fn a_plan_that_could_not_be_applied_is_applied_once_nothing_stands_in_its_way() {
    let site = site().await;
    let file = Step::WriteFile {
        path: "/etc/cni/net.d/10.conf".into(),
        mode: "0600".into(),
        owner: None,
        content: "{}".into(),
        secret: false,
    };
    let template = Template {
        distribution: Distribution::Kubeadm,
        server: "127.0.0.1:1".into(),
        ca_pins: vec![Word::cut(&format!("sha256:{}", "ab".repeat(32)))],
        labels: Default::default(),
        taints: Vec::new(),
        files: vec![file],
        config: None,
        needs: BTreeSet::new(),
    };
    let plans = Plans([(("prod".into(), "workers".into()), template)].into());
    site.hand.say(Event::PlansRead(plans)).await.unwrap();
    let invited = site.invite(|_| {}).await;
    // A file where a folder has to be.
    let machine = agent::machine(1, &[("/etc/cni", "in the way")]);
    let root = Root::new(machine.path());
    let mut running = agent::run(agent::setup(&site, &machine, Some(invited.token.clone())), machine);
    running.says("PLAN_FAILED").await;
    std::fs::remove_file(root.at("/etc/cni")).unwrap();
    running.says("Machine(").await;
    assert_eq!(std::fs::read_to_string(root.at("/etc/cni/net.d/10.conf")).unwrap(), "{}");
    site.end().await;
}
