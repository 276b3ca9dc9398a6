//! Reboot, stop and start, end: never beside the group that owns the machine.

use reveille_core::effect::{Call, Outcome};
use reveille_core::model::id::{GroupId, InstanceId, PortId};
use reveille_core::model::instance::{InstanceState, Mark};
use reveille_core::model::roster::Ownership;
use reveille_core::remedies::{AddPortPairs, DeleteInstance, Reboot, SetPortGroups, StartInstance};

use super::fake::{Reply, Seen, aws, fault, owned, perform};
use super::words::{instance, instances, interface, interfaces, member, tagged};
use crate::interface::WireInterface;

fn one() -> InstanceId {
    InstanceId::from("i-1")
}

fn cycle() -> Call {
    Call::Reboot(Reboot { cloud: aws(), instance: one(), hard: true, owned: owned() })
}

fn start() -> Call {
    Call::Start(StartInstance { cloud: aws(), instance: one(), owned: owned() })
}

fn end() -> Call {
    Call::DeleteInstance(DeleteInstance {
        cloud: aws(),
        instance: one(),
        owned: owned(),
        rests_on: Some(InstanceState::Active),
    })
}

fn in_state(state: &'static str) -> impl Fn(&Seen) -> Option<Reply> {
    move |seen| (seen.action() == "DescribeInstances").then(|| instances(&[instance("i-1", state, 1)], None))
}

fn of_group(state: &'static str) -> impl Fn(&Seen) -> Option<Reply> {
    move |seen| match seen.action() {
        "DescribeInstances" => {
            Some(instances(&[tagged("i-1", "running", 1, &[("aws:autoscaling:groupName", "g1")])], None))
        }
        "DescribeAutoScalingInstances" => Some(member("i-1", state)),
        _ => None,
    }
}

fn begins(outcome: &Outcome, with: &str) {
    assert!(outcome.to_string().starts_with(with), "{with}: {outcome}");
}

/// An operator took the cluster's or the pool's tag off after the decision.
#[tokio::test]
async fn instance_without_pool_mark_is_not_touched() {
    let pool = Mark::Metadata("pool".into(), "workers".into());
    let owned = Ownership { pool: Some(pool), ..owned() };
    let (cloud, instance) = (aws, one);
    let port = || PortId::from("eni-1");
    let groups = vec![GroupId::from("sg-1"), GroupId::from("sg-2")];
    let net = interface("eni-1", 1, true, &["sg-1"], Some("i-1"));
    let wire: WireInterface = quick_xml::de::from_str(&net).unwrap();
    let if_revision = wire.revision();
    for call in [
        Call::SetPortGroups(SetPortGroups {
            cloud: cloud(),
            port: port(),
            groups,
            if_revision,
            instance: instance(),
            owned: owned.clone(),
        }),
        Call::AddPortPairs(AddPortPairs {
            cloud: cloud(),
            port: port(),
            pairs: Vec::new(),
            if_revision,
            instance: instance(),
            owned: owned.clone(),
        }),
        Call::Reboot(Reboot { cloud: cloud(), instance: instance(), hard: false, owned: owned.clone() }),
        Call::Reboot(Reboot { cloud: cloud(), instance: instance(), hard: true, owned: owned.clone() }),
        Call::Start(StartInstance { cloud: cloud(), instance: instance(), owned: owned.clone() }),
        Call::DeleteInstance(DeleteInstance {
            cloud: cloud(),
            instance: instance(),
            owned: owned.clone(),
            rests_on: None,
        }),
    ] {
        let state = if matches!(call, Call::Start(_)) { "stopped" } else { "running" };
        for group in [false, true] {
            let tags = if group { vec![("aws:autoscaling:groupName", "g1")] } else { Vec::new() };
            let net = net.clone();
            let (outcome, changes) = perform(&call, move |seen| match seen.action() {
                "DescribeInstances" => Some(instances(&[tagged("i-1", state, 1, &tags)], None)),
                "DescribeNetworkInterfaces" => Some(interfaces(std::slice::from_ref(&net))),
                "DescribeAutoScalingInstances" if group => Some(member("i-1", "InService")),
                _ => None,
            })
            .await;
            assert_eq!(changes, [""; 0], "{call}: {outcome}");
            begins(&outcome, "changed meanwhile");
        }
    }
}

/// Another client stopped the instance, or stops and starts it, since it was listed.
#[tokio::test]
async fn instance_that_does_not_run_is_not_rebooted() {
    let reboot = || Call::Reboot(Reboot { cloud: aws(), instance: one(), hard: false, owned: owned() });
    for state in ["stopping", "stopped", "pending", "shutting-down", "hibernating"] {
        let (outcome, changes) = perform(&reboot(), in_state(state)).await;
        begins(&outcome, "changed meanwhile");
        assert_eq!(changes, [""; 0], "{state}");
    }
    let (outcome, changes) = perform(&reboot(), in_state("running")).await;
    begins(&outcome, "accepted");
    assert_eq!(changes, ["RebootInstances InstanceId.1=i-1"]);
}

/// The controller decided to terminate the instance while it ran; another client stopped it since, or started it again.
#[tokio::test]
async fn instance_in_another_state_is_not_ended() {
    for state in ["stopping", "stopped", "pending", "hibernating"] {
        let (outcome, changes) = perform(&end(), in_state(state)).await;
        begins(&outcome, "changed meanwhile");
        assert_eq!(changes, [""; 0], "{state}");
    }
}

#[tokio::test]
async fn a_power_cycle_is_a_stop_that_is_waited_for_and_a_start() {
    let mut looks = 0;
    let (outcome, changes) = perform(&cycle(), move |seen| {
        (seen.action() == "DescribeInstances").then(|| {
            looks += 1;
            let state = ["running", "stopping", "stopping", "stopped"][(looks - 1).min(3)];
            instances(&[instance("i-1", state, 1)], None)
        })
    })
    .await;
    begins(&outcome, "accepted");
    assert_eq!(changes, ["StopInstances InstanceId.1=i-1", "StartInstances InstanceId.1=i-1"]);
}

#[tokio::test]
async fn a_stop_that_takes_too_long_is_told_as_what_it_is() {
    let mut looks = 0;
    let (outcome, changes) = perform(&cycle(), move |seen| {
        (seen.action() == "DescribeInstances").then(|| {
            looks += 1;
            instances(&[instance("i-1", if looks == 1 { "running" } else { "stopping" }, 1)], None)
        })
    })
    .await;
    begins(&outcome, "unknown");
    assert!(outcome.to_string().contains("not started yet"), "{outcome}");
    assert_eq!(changes, ["StopInstances InstanceId.1=i-1"]);
}

#[tokio::test]
async fn a_machine_of_a_group_is_never_stopped_or_started_beside_it() {
    for call in [cycle(), start()] {
        let stopped = of_group("InService");
        let is_start = matches!(call, Call::Start(_));
        let (outcome, changes) = perform(&call, move |seen| {
            let found = stopped(seen)?;
            Some(if is_start {
                Reply { body: found.body.replace("running", "stopped"), ..found }
            } else {
                found
            })
        })
        .await;
        begins(&outcome, "refused");
        assert!(outcome.to_string().contains("Auto Scaling group g1 owns it"), "{outcome}");
        assert_eq!(changes.len(), 0);
    }
}

#[tokio::test]
async fn what_would_lose_its_disk_or_cannot_come_back_is_not_stopped() {
    let disk = |seen: &Seen| {
        let wire =
            instance("i-1", "running", 1).replace("<rootDeviceType>ebs", "<rootDeviceType>instance-store");
        (seen.action() == "DescribeInstances").then(|| instances(&[wire], None))
    };
    let spot = |seen: &Seen| {
        (seen.action() == "DescribeInstances")
            .then(|| instances(&[tagged("i-1", "running", 1, &[("spot", "")])], None))
    };
    let (outcome, changes) = perform(&cycle(), disk).await;
    begins(&outcome, "refused");
    assert_eq!(changes.len(), 0);
    let (outcome, changes) = perform(&cycle(), spot).await;
    begins(&outcome, "refused");
    assert_eq!(changes.len(), 0);
    let (outcome, changes) = perform(&cycle(), in_state("stopped")).await;
    begins(&outcome, "changed meanwhile");
    assert_eq!(changes.len(), 0);
}

#[tokio::test]
async fn an_instance_is_ended_through_its_group_which_keeps_its_size() {
    let (outcome, changes) = perform(&end(), of_group("InService")).await;
    begins(&outcome, "accepted");
    assert_eq!(
        changes,
        ["TerminateInstanceInAutoScalingGroup InstanceId=i-1 ShouldDecrementDesiredCapacity=false",]
    );
    let (outcome, changes) = perform(&end(), in_state("running")).await;
    begins(&outcome, "accepted");
    assert_eq!(changes, ["TerminateInstances InstanceId.1=i-1"]);
}

#[tokio::test]
async fn instance_that_already_ends_is_not_terminated_again() {
    for word in ["Terminating:Wait", "Warmed:Terminating:Wait", "Detaching", "Standby"] {
        let (outcome, changes) = perform(&end(), of_group(word)).await;
        begins(&outcome, "changed meanwhile");
        assert_eq!(changes.len(), 0);
    }
    for state in ["shutting-down", "terminated"] {
        let (outcome, changes) = perform(&end(), in_state(state)).await;
        begins(&outcome, "was so already");
        assert_eq!(changes.len(), 0);
    }
    // The tag says that a group made it, and Auto Scaling does not know it: two readings that conflict.
    let (outcome, changes) = perform(&end(), |seen| match seen.action() {
        "DescribeInstances" => of_group("InService")(seen),
        _ => None,
    })
    .await;
    begins(&outcome, "refused");
    assert_eq!(changes.len(), 0);
    // Denied, and not believed: nothing is known, so nothing is done.
    let denied = |seen: &Seen| {
        (seen.action() == "DescribeInstances").then(|| fault(400, "InvalidInstanceID.NotFound"))
    };
    let (outcome, changes) = perform(&end(), denied).await;
    begins(&outcome, "failed");
    assert_eq!(changes.len(), 0);
}

#[tokio::test]
async fn instance_protected_in_its_group_is_not_terminated() {
    let (outcome, changes) = perform(&end(), |seen| {
        let found = of_group("InService")(seen)?;
        Some(Reply { body: found.body.replace("ScaleIn>false", "ScaleIn>true"), ..found })
    })
    .await;
    begins(&outcome, "refused");
    assert!(outcome.to_string().contains("ProtectedFromScaleIn"), "{outcome}");
    assert_eq!(changes.len(), 0);
}

#[tokio::test]
async fn termination_protection_refuses_deletion_and_stays_set() {
    let (outcome, changes) = perform(&end(), |seen| match seen.action() {
        "TerminateInstances" => Some(fault(400, "OperationNotPermitted")),
        _ => in_state("running")(seen),
    })
    .await;
    begins(&outcome, "refused");
    assert!(outcome.to_string().contains("disableApiTermination"), "{outcome}");
    assert_eq!(changes.len(), 1);
}
