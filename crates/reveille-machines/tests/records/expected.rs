//! The shape of an expectation, and how it is compared.
//!
//! A case names what counts about its state; what it leaves at the default has to be so as well. It does not repeat each text
//! of the object: reason, message and time are compared for the step where the machine stands.

use std::path::PathBuf;

use reveille_core::model::id::{NodeName, ZoneName};
use reveille_core::model::stage::Stage;
use reveille_core::model::time::Span;
use reveille_machines::record::{MachineRecord, StepState};
use reveille_machines::{Kind, read};
use serde_json::Value;

pub(crate) use StepState::{Failed, NotYet, Reached, Unknown};

/// Where a machine stands, and what its owner says of it.
pub(crate) struct Stopped {
    pub(crate) step: &'static str,
    pub(crate) stage: Stage,
    pub(crate) reason: Option<&'static str>,
    /// What the message begins with; empty for none.
    pub(crate) message: &'static str,
    pub(crate) since: Option<&'static str>,
}

/// What a fixture means.
#[derive(Default)]
pub(crate) struct Expected {
    pub(crate) file: &'static str,
    pub(crate) version: &'static str,
    pub(crate) provider_id: Option<&'static str>,
    pub(crate) node: Option<&'static str>,
    pub(crate) pool: Option<&'static str>,
    pub(crate) zone: Option<&'static str>,
    pub(crate) states: &'static [StepState],
    pub(crate) stopped: Option<Stopped>,
    /// The reason, and what the message begins with.
    pub(crate) failure: Option<(&'static str, &'static str)>,
    pub(crate) leaving: bool,
    pub(crate) idle: bool,
    pub(crate) holds: &'static [&'static str],
    pub(crate) deadline_s: Option<i64>,
}

/// All fixtures of a kind: the folder, and its kind.
pub(crate) const FOLDERS: [(&str, &str, &str); 6] = [
    ("karpenter-nodeclaim", "karpenter.sh", "nodeclaims"),
    ("cluster-api-machine", "cluster.x-k8s.io", "machines"),
    ("cluster-api-machinepool", "cluster.x-k8s.io", "machinepools"),
    ("gardener-machine", "machine.sapcloud.io", "machines"),
    ("metal3-baremetalhost", "metal3.io", "baremetalhosts"),
    ("openshift-machine", "machine.openshift.io", "machines"),
];

pub(crate) fn kind_of(folder: &str) -> &'static Kind {
    let (_, group, plural) = FOLDERS.iter().find(|(name, ..)| *name == folder).unwrap();
    reveille_machines::kind_of(group, plural).unwrap()
}

pub(crate) fn folder(name: &str) -> PathBuf {
    PathBuf::from(env!("CARGO_MANIFEST_DIR")).join("tests/fixtures").join(name)
}

pub(crate) fn fixture(name: &str, file: &str) -> Value {
    let path = folder(name).join(format!("{file}.json"));
    serde_json::from_str(&std::fs::read_to_string(&path).unwrap()).unwrap()
}

/// Reads a fixture and compares it.
pub(crate) fn check(folder: &str, expected: &Expected) -> MachineRecord {
    let Expected { file, version, .. } = *expected;
    let record = read(kind_of(folder), version, &fixture(folder, file)).unwrap();
    assert_eq!(record.provider_id.as_deref(), expected.provider_id, "{file}");
    assert_eq!(record.node.as_ref().map(NodeName::as_str), expected.node, "{file}");
    assert_eq!(record.pool.as_deref(), expected.pool, "{file}");
    assert_eq!(record.zone.as_ref().map(ZoneName::as_str), expected.zone, "{file}");
    let states: Vec<_> = record.steps.iter().map(|step| step.state).collect();
    assert_eq!(states, expected.states, "{file}: {:#?}", record.steps);
    check_stopped(&record, expected);
    let failure = record.failure.as_ref();
    assert_eq!(failure.is_some(), expected.failure.is_some(), "{file}: {failure:?}");
    if let (Some(failure), Some((reason, message))) = (failure, expected.failure) {
        assert_eq!(failure.reason.as_deref(), Some(reason), "{file}");
        assert!(failure.message.as_deref().unwrap_or_default().starts_with(message), "{file}: {failure:?}");
    }
    assert_eq!((record.leaving, record.idle), (expected.leaving, expected.idle), "{file}");
    let holds: Vec<_> = record.holds.iter().map(|hold| &*hold.by).collect();
    assert_eq!(holds, expected.holds, "{file}");
    assert_eq!(record.owner_deadline, expected.deadline_s.map(Span::from_s), "{file}");
    assert_eq!(record.unread, [], "{file}");
    record
}

fn check_stopped(record: &MachineRecord, expected: &Expected) {
    let file = expected.file;
    let stopped = record.stopped_at();
    assert_eq!(stopped.map(|step| step.name), expected.stopped.as_ref().map(|step| step.step), "{file}");
    let (Some(step), Some(expected)) = (stopped, &expected.stopped) else { return };
    assert_eq!(step.stage, expected.stage, "{file}");
    assert_eq!(step.reason.as_deref(), expected.reason, "{file}");
    assert_eq!(step.since.as_deref(), expected.since, "{file}");
    let message = step.message.as_deref().unwrap_or_default();
    assert!(message.starts_with(expected.message), "{file}: {message}");
    assert_eq!(message.is_empty(), expected.message.is_empty(), "{file}: {message}");
}
