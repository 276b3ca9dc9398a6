//! Reads one cloud of clouds.yaml once and says what it holds: `cargo run --example probe -- CLOUD TAG [ROUTER]`.
//!
//! Looks only. Without arguments it names the clouds that there are.

use std::collections::{BTreeMap, BTreeSet};
use std::process::ExitCode;

use reveille_core::event::CloudSnapshot;
use reveille_core::model::id::{CloudName, RouterId};
use reveille_core::model::instance::Mark;
use reveille_openstack::{CloudConfig, Interest, Lister, Project, list_clouds};

#[tokio::main]
async fn main() -> ExitCode {
    match run().await {
        Ok(()) => ExitCode::SUCCESS,
        Err(text) => {
            eprintln!("{text}");
            ExitCode::FAILURE
        }
    }
}

async fn run() -> Result<(), String> {
    let mut arguments = std::env::args().skip(1);
    let (Some(cloud), Some(tag)) = (arguments.next(), arguments.next()) else {
        let clouds = list_clouds(None).map_err(|error| error.to_string())?;
        for entry in clouds {
            let shown = |text: Option<String>| text.unwrap_or_else(|| "-".to_owned());
            println!(
                "{}\t{}\t{}\t{}",
                entry.cloud,
                shown(entry.project),
                shown(entry.region),
                shown(entry.auth_url)
            );
        }
        return Err("name one of these clouds: probe CLOUD TAG [ROUTER]".to_owned());
    };
    let config = CloudConfig { name: CloudName::from("probe"), cloud, clouds_file: None };
    let project = Project::connect(&config).await.map_err(|error| error.to_string())?;
    println!("project {} ({}), compute API {}", project.name(), project.id(), project.microversion());
    let interest = Interest {
        cluster_marks: BTreeSet::from([Mark::Tag(tag.into())]),
        routers: arguments.next().map(|router| RouterId::from(router.as_str())).into_iter().collect(),
        ..Interest::default()
    };
    let before = project.traffic();
    let mut lister = Lister::new(project.clone(), interest);
    let snapshot = lister.list(true).await.map_err(|error| error.to_string())?;
    let after = project.traffic();
    show(&snapshot);
    println!(
        "{} requests, {} bytes received",
        after.calls - before.calls,
        after.received_bytes - before.received_bytes
    );
    Ok(())
}

fn show(snapshot: &CloudSnapshot) {
    let mut ports: BTreeMap<&str, Vec<String>> = BTreeMap::new();
    for (instance, port) in &snapshot.ports {
        let groups = port.groups.iter().map(ToString::to_string).collect::<Vec<_>>().join(" ");
        ports.entry(instance.as_str()).or_default().push(format!("{} {:?} [{groups}]", port.id, port.status));
    }
    for instance in &snapshot.instances {
        println!("{}  {}  {:?}  task {:?}", instance.id, instance.name, instance.state, instance.task);
        println!("    marks {:?}", instance.marks);
        for port in ports.get(instance.id.as_str()).into_iter().flatten() {
            println!("    port {port}");
        }
        if let Some(fault) = &instance.fault {
            println!("    fault {}: {}", fault.code, fault.message);
        }
    }
    for router in &snapshot.routers {
        println!("router {}: {} routes, limit {:?}", router.id, router.routes.len(), router.limit);
    }
}
