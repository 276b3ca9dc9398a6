//! The verdicts of the detector as a report. This module adds names; it decides nothing.

use reveille_core::model::time::Span;
use reveille_hot::Verdict;
use reveille_hot::flips::Flip;
use reveille_hot::machine::Machine;
use reveille_hot::managed::Manager;
use reveille_hot::metrics::Pressure;
use reveille_hot::verdict::{Heat, Rate, Subject, Suspect};
use reveille_wire::report::{
    HotField, HotMachine, HotRate, HotSuspect, HotValue, HotVerdict, PressureReport,
};

/// One verdict.
pub(crate) fn verdict(verdict: &Verdict) -> HotVerdict {
    let (resource, object) = match &verdict.subject {
        Subject::Object(object) => (&object.resource, Some(object)),
        Subject::Kind(resource) => (resource, None),
    };
    let namespace = object.map(|object| &object.namespace).filter(|namespace| !namespace.is_empty());
    HotVerdict {
        in_rancher: None,
        group: resource.group.to_string(),
        resource: resource.plural.to_string(),
        namespace: namespace.map(ToString::to_string),
        name: object.map(|object| object.name.to_string()),
        heat: match verdict.heat {
            Heat::Hot => "hot".to_owned(),
            Heat::Warm => "warm".to_owned(),
        },
        since: verdict.since,
        rates: verdict.rates.iter().map(rate).collect(),
        class: verdict.class.name.to_owned(),
        means: verdict.class.means.to_owned(),
        suspects: verdict.suspects.iter().map(suspect).collect(),
        fields: verdict.flips.iter().map(field).collect(),
        machine: verdict.machine.as_ref().map(machine),
        notes: verdict.notes.clone(),
        first_aid: verdict.first_aid(),
    }
}

/// The memory use of the API server.
pub(crate) fn pressure(pressure: &Pressure) -> PressureReport {
    PressureReport {
        resident_bytes: pressure.resident_bytes,
        grown_bytes: pressure.grown_bytes,
        heap_bytes: pressure.heap_bytes,
        rejected: pressure.rejected,
        is_high: pressure.is_high(),
    }
}

/// Rates are rounded to hundredths, which is as exact as they are.
fn hundredths(thousandths: u64) -> f64 {
    let hundredths = u32::try_from(thousandths / 10).unwrap_or(u32::MAX);
    f64::from(hundredths) / 100.0
}

fn rate(rate: &Rate) -> HotRate {
    let ms = |span: Span| u64::try_from(span.ms).unwrap_or(0);
    HotRate {
        by: rate.by.name().to_owned(),
        writes: rate.writes,
        over_s: hundredths(ms(rate.over)),
        per_s: rate.per_1000_s().map(hundredths),
    }
}

fn suspect(suspect: &Suspect) -> HotSuspect {
    HotSuspect { name: suspect.name.clone(), writes: suspect.writes, seen_in: suspect.seen_in.to_owned() }
}

fn field(flip: &Flip) -> HotField {
    let by = |managers: &[Manager]| managers.iter().map(|manager| manager.name.clone()).collect();
    let values =
        flip.values.iter().map(|(value, managers)| HotValue { value: value.clone(), by: by(managers) });
    HotField {
        path: flip.path.to_string(),
        changes: flip.changes,
        returns: flip.returns,
        values: values.collect(),
    }
}

fn machine(machine: &Machine) -> HotMachine {
    HotMachine {
        cluster_id: machine.cluster_id.clone(),
        cluster: machine.cluster_name.clone(),
        node: machine.node.clone(),
        addresses: machine.addresses.clone(),
    }
}
