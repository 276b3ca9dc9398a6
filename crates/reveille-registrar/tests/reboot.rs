//! A machine that reboots: what its agent remembers, and what it does not.

#![allow(clippy::unwrap_used, reason = "in a test, what cannot be is a failure")]

#[path = "support/agent.rs"]
mod agent;
#[path = "support/cluster.rs"]
mod cluster;
mod support;

use std::collections::BTreeMap;
use std::path::Path;
use std::time::Duration;

use cluster::Cluster;
use reveille_agent::Memory;
use reveille_agent::model::Leaving;
use reveille_core::model::stage::Stage;
use reveille_core::model::time::Time;
use reveille_node::agent::Setup;
use reveille_node::link::Keyring;
use reveille_node::memory_file::MemoryFile;
use reveille_registrar::registry::{MachineId, What};
use reveille_wire::agent::frame::{StageReport, StageStep};
use reveille_wire::agent::{AgentFrame, StageWord};
use support::{Site, site};

/// The next hello: which machine, and whether it says that its Node exists.
async fn arrival(site: &mut Site) -> (MachineId, bool) {
    loop {
        let heard = site.heard.recv().await.unwrap();
        match heard.what {
            What::Arrived { joined, .. } => return (heard.who.machine.clone(), joined),
            What::Rival(part, ..) => panic!("taken for another machine by its {}", part.name()),
            _ => {}
        }
    }
}

fn files(folder: &Path) -> BTreeMap<String, Vec<u8>> {
    let names = ["plan.json", "joined", "memory.json", "link/link.pem", "link/link.json"];
    names.into_iter().map(|name| (name.to_owned(), std::fs::read(folder.join(name)).unwrap())).collect()
}

#[tokio::test]
async fn agent_keeps_machine_plan_and_reasons_after_a_reboot() {
    let (mut site, cluster) = (site().await, Cluster::new());
    let api_server = cluster.api_server().await;
    let invited = site.invite(|_| {}).await;
    let machine = agent::machine(1, &[("/run/reveille/left", "of this boot")]);
    let invited = Some(invited.token.clone());
    let setup = Setup { settings: agent::hasty(), ..agent::setup(&site, &machine, invited) };
    let folder = setup.folder.clone();
    cluster.has_joined(&api_server, &folder, "w-1");
    let mut running = agent::run(setup, machine);
    running.says_all(&["Up {", "api: Answers"]).await;
    let (before, joined) = arrival(&mut site).await;
    assert!(joined);
    let machine = running.stopped().await;
    let memory = Memory {
        reboots: vec![Time::from_ms(5)],
        attempts: 2,
        leaving: Some(Leaving::Drained),
        ..Memory::default()
    };
    MemoryFile::within(&folder).write(&memory).unwrap();
    let kept = files(&folder);

    // Another boot: the boot id changes, the files in /run are gone, and so is the API server, for now.
    let root = reveille_node::root::Root::new(machine.path());
    std::fs::write(root.at("/proc/sys/kernel/random/boot_id"), "boot-of-tomorrow\n").unwrap();
    std::fs::remove_dir_all(root.at("/run")).unwrap();
    api_server.set(false);
    let setup = Setup { settings: agent::hasty(), ..agent::setup(&site, &machine, None) };
    let mut running = agent::run(setup, machine);
    let (after, joined) = arrival(&mut site).await;
    assert_eq!((after, joined), (before, true), "no second record, no second enrolment");
    running.says_all(&["kind: Leaving", "api: CannotTell"]).await;
    // The machine was drained before the reboot: its Node may be gone, but the reason still counts.
    running.says("api: Lost").await;
    assert_eq!(MemoryFile::within(&folder).read().unwrap(), memory, "nothing was tried, nothing forgotten");
    assert_eq!(files(&folder), kept);
    site.end().await;
}

#[tokio::test]
async fn reports_count_after_a_clock_that_was_ahead_is_corrected() {
    let site = site().await;
    let invited = site.invite(|_| {}).await;
    let machine = agent::machine(1, &[]);
    let mut running = agent::run(agent::setup(&site, &machine, Some(invited.token.clone())), machine);
    running.says("Up {").await;
    let machine = running.stopped().await;
    let setup = agent::setup(&site, &machine, None);
    let keyring = Keyring::open(&setup.folder.join("link")).unwrap().unwrap();
    let mut hello = support::who(1).hello();
    (hello.identity.instance_id, hello.identity.system_uuid) = (None, None);
    // A report of an agent whose clock shows 2040.
    let ahead = 2_209_000_000_000;
    let session = site.link.session(&keyring.credential, hello).await.unwrap();
    let (stage, step) = (StageWord(Stage::Register), StageStep::Entered);
    let report = StageReport { seq: ahead, stage, step, attempts: 0, error: None, stamp: "".into() };
    session.say(AgentFrame::Stage(report)).await.unwrap();
    let kept = async || {
        let look = site.hand.view(|registry, _| registry.index().machines().next().unwrap().reports_kept);
        tokio::time::sleep(Duration::from_millis(100)).await;
        look.await.unwrap()
    };
    let waiting = async {
        while kept().await != ahead {}
        drop(session);
        let running = agent::run(setup, machine);
        while kept().await <= ahead {}
        drop(running);
    };
    tokio::time::timeout(Duration::from_secs(60), waiting).await.unwrap();
    site.end().await;
}
