//! The fourteen stages: at each of them a machine stops in the real way, and what is said of it is held against the truth.

use reveille_core::model::cause::Cause;
use reveille_core::model::id::InstanceId;
use reveille_core::model::incident::{Finding, MachineKey, Subject};
use reveille_core::model::stage::Stage;
use reveille_core::record::Record;
use reveille_sim::drive::{Happened, Said, What};
use reveille_sim::world::fault::Fault;
use reveille_sim::world::layout::{CLOUD, Layout};
use reveille_sim::world::vm::Trouble;

use crate::field::*;

/// A machine with this trouble, watched until the first thing is done about it, or for half an hour.
struct Watched {
    field: Field,
    /// What was concluded last before that.
    finding: Finding,
    said: Said,
}

fn watched(trouble: Trouble) -> Watched {
    let mut field = Field::new(Layout::fleet(40, 8));
    let before = field.machines();
    let id = if trouble == Trouble::KubeletHung {
        field.fault(Fault::Breaks(before[0].clone(), trouble));
        before[0].clone()
    } else {
        field.fault(Fault::Launch { pool: workers(), trouble: Some(trouble) });
        field.run(min(1));
        field.newcomer(&before).expect("it is ordered")
    };
    field.0 = field.0.with_chronicle();
    let calls = |drive: &reveille_sim::drive::Drive| !drive.world.calls().is_empty();
    field.0.run_until(min(30), calls);
    let story = field.0.take_chronicle();
    let (incident, finding) =
        concluded(&story, &id).unwrap_or_else(|| panic!("{trouble:?}: {}", field.tail()));
    let said = field.0.named()[&incident].said;
    Watched { field, finding, said }
}

fn concluded(story: &[Happened], id: &InstanceId) -> Option<(reveille_core::model::id::IncidentId, Finding)> {
    let subject = Subject::Machine(MachineKey::Instance(CLOUD.into(), id.clone()));
    let records = || {
        story.iter().filter_map(|happened| match &happened.what {
            What::Record(record) => Some(record),
            _ => None,
        })
    };
    let of_it: Vec<_> = records()
        .filter_map(|record| match record {
            Record::Opened { incident, key, .. } if key.subject == subject => Some(*incident),
            _ => None,
        })
        .collect();
    records()
        .filter_map(|record| match record {
            Record::Diagnosed { incident, findings, .. } if of_it.contains(incident) => {
                Some((*incident, findings.first()?.clone()))
            }
            _ => None,
        })
        .next_back()
}

/// What stops it is named where the catalog has a word for it, and said to be unknown where it has none. Nothing that is
/// not so is ever said.
#[test]
fn at_each_stage_the_real_cause_is_named_or_said_to_be_unknown() {
    for trouble in Trouble::ALL.iter().copied() {
        let Watched { field, finding, said } = watched(trouble);
        let expected = match trouble.cause() {
            None => Said::Unknown,
            Some(Cause::NodeNotReady | Cause::KubeletSilent) => Said::Symptom,
            Some(_) => Said::Right,
        };
        assert_eq!(said, expected, "{trouble:?} is called {finding:?}\n{}", field.tail());
        if let Some(cause) = trouble.cause() {
            assert_eq!(finding.cause, cause, "{trouble:?}\n{}", field.tail());
        }
        field.clean();
    }
}

/// What the cluster says of a machine stands in its incident as what its console says does.
#[test]
fn what_the_cluster_says_is_quoted_in_the_incident() {
    for (trouble, source, sign) in [
        (Trouble::NotApproved, "csr csr-7kx2p", "client-request-pending"),
        (Trouble::NoPodNetwork, "node condition Ready", "node-waits-for-cni"),
        (Trouble::PlegStuck, "node condition Ready", "runtime-service-ended"),
    ] {
        let Watched { field, finding, .. } = watched(trouble);
        let quote = &finding.evidence[0];
        let found = (quote.source.to_string(), quote.line.as_ref().map(|line| &*line.sign));
        assert_eq!(found, (source.to_owned(), Some(sign)), "{trouble:?}\n{}", field.tail());
    }
}

/// Where it stopped is told, too, where anything outside of the machine shows it.
#[test]
fn at_each_stage_it_is_told_where_the_machine_stopped() {
    for trouble in Trouble::ALL.iter().copied() {
        let Watched { field, finding, .. } = watched(trouble);
        let told = match trouble {
            // The console shows that the kubelet was started; that it lacks its configuration is what every machine says that
            // waits for a join.
            Trouble::Broken => Stage::Register,
            _ => trouble.stage(),
        };
        assert_eq!(finding.stage, told, "{trouble:?}\n{}", field.tail());
    }
}

/// The controller tries no reboot where the evidence shows that it cannot help. Whatever is wrong, it ends with a replacement
/// that is well, or with a question to a person.
#[test]
fn at_each_stage_what_cannot_help_is_left_out() {
    for trouble in Trouble::ALL.iter().copied() {
        let mut field = Field::new(Layout::fleet(41, 8));
        let before = field.machines();
        match trouble {
            Trouble::KubeletHung => field.fault(Fault::Breaks(before[0].clone(), trouble)),
            _ => field.fault(Fault::Launch { pool: workers(), trouble: Some(trouble) }),
        }
        field.run(min(180));
        let in_vain = trouble.is_lasting()
            && trouble.cause().is_some()
            // Here no evidence shows that a reboot would not help, and for many machines it does.
            && !matches!(
                trouble,
                Trouble::KernelPanics
                    | Trouble::ClockWrong
                    | Trouble::PortNotWired
                    | Trouble::RuntimeDown
                    | Trouble::RegisterRefused
            );
        if in_vain {
            assert_eq!(field.reboots(), 0, "{trouble:?}\n{}", field.tail());
        }
        let asked = matches!(
            trouble,
            Trouble::NeverInitialised | Trouble::NoPodNetwork | Trouble::PlegStuck | Trouble::NotApproved
        );
        if asked {
            // The kubelet lives: the controller interrupts no machine for a problem beside its kubelet. Nor does it delete one
            // that waits for an approval: its successor would ask the same approver.
            assert_eq!(field.destructive(), 0, "{trouble:?}\n{}", field.tail());
            assert_eq!(field.open().len(), 1, "{trouble:?}: {:?}", field.open());
        } else {
            assert_eq!(field.open(), Vec::<String>::new(), "{trouble:?}\n{}", field.tail());
        }
        field.clean();
    }
}
