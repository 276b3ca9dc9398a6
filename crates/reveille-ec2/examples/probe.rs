//! Looks at an account as the engine would, or makes one call, and prints what the adapter makes of it.
//!
//! `cargo run -p reveille-ec2 --example probe -- CLUSTER list [rtb-…] [GROUP…]` lists; `… -- CLUSTER look i-…` looks;
//! `… -- CLUSTER end|reboot|cycle|start i-…` acts. Account and region are found as every AWS program finds them.

#![allow(clippy::unwrap_used, clippy::expect_used, reason = "for a developer at a terminal")]

use std::time::Instant;

use reveille_core::effect::{Call, Look};
use reveille_core::model::id::{CloudName, InstanceId, RouterId};
use reveille_core::model::instance::Mark;
use reveille_core::model::roster::{GroupRef, Ownership};
use reveille_core::remedies::{DeleteInstance, Reboot, StartInstance};
use reveille_ec2::{Account, Ec2Config, Interest, Lister};

#[tokio::main(flavor = "current_thread")]
async fn main() {
    let mut args = std::env::args().skip(1);
    let cluster = args.next().expect("the cluster's id");
    let rest: Vec<String> = args.collect();
    let name = CloudName::from("aws");
    let account = match Account::connect(&Ec2Config::new(name.clone(), cluster.as_str())).await {
        Ok(account) => account,
        Err(error) => {
            eprintln!("{error}");
            std::process::exit(1);
        }
    };
    println!("account {} in {}", account.id(), account.region());
    if let [verb, id] = rest.as_slice()
        && verb != "list"
    {
        let (cloud, instance) = (name.clone(), InstanceId::from(id.as_str()));
        let owned = Ownership::of_cluster(Mark::Tag(format!("kubernetes.io/cluster/{cluster}").into()));
        let call = match verb.as_str() {
            "look" => {
                for look in [
                    Look::Instance(cloud.clone(), instance.clone()),
                    Look::Ports(cloud.clone(), instance.clone()),
                    Look::Console(cloud.clone(), instance.clone()),
                    Look::Actions(cloud.clone(), instance.clone()),
                ] {
                    println!("{:#?}", account.look(&look).await);
                }
                return;
            }
            "end" => Call::DeleteInstance(DeleteInstance { cloud, instance, owned, rests_on: None }),
            "reboot" => Call::Reboot(Reboot { cloud, instance, hard: false, owned }),
            "cycle" => Call::Reboot(Reboot { cloud, instance, hard: true, owned }),
            "start" => Call::Start(StartInstance { cloud, instance, owned }),
            other => panic!("no such verb: {other}"),
        };
        println!("{}", account.perform(&call).await);
        return;
    }
    let mut interest = Interest::default();
    interest.cluster_marks.insert(Mark::Tag(format!("kubernetes.io/cluster/{cluster}").into()));
    for arg in rest.into_iter().skip(1) {
        match arg.as_str() {
            table if table.starts_with("rtb-") => interest.routers.insert(RouterId::from(table)),
            group if group.starts_with("sg-") => interest.groups.insert(GroupRef::Id(group.into())),
            group => interest.groups.insert(GroupRef::Name(group.into())),
        };
    }
    let mut lister = Lister::new(account.clone(), interest);
    let begun = Instant::now();
    match lister.list(true).await {
        Ok(snapshot) => println!("{snapshot:#?}"),
        Err(error) => println!("{error}"),
    }
    println!("{:?} in {:?}", account.traffic(), begun.elapsed());
}
