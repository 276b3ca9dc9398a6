//! Whether a sign that was seen counts, and for how much.
//!
//! ```text
//!  seen at all, in its circumstances, often and long enough? ─▶ got past? ─▶ of a node that is Ready? ─▶ success after it?
//!    ─▶ a boot after it? then possible ─▶ it counts, with what speaks against it
//! ```
//!
//! Ranks nothing, and asks of one sign at a time.

use reveille_core::model::stage::Stage;

use crate::catalogue::{Catalogue, Signal};
use crate::finding::Confidence;
use crate::scan::{Seen, Sighting};

/// Stages at which no machine is Ready yet. The stage before them, at which the cloud has made no machine, is left out: its logs
/// are about many machines.
const BEFORE_READY: std::ops::RangeInclusive<Stage> = Stage::Network..=Stage::Register;

/// What becomes of a sign.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) enum Verdict {
    /// It was not seen, or its circumstances were not.
    Absent,
    /// It was seen, and later success shows that it passed.
    TakenBack,
    /// It counts.
    Stands {
        /// For so much.
        proof: Confidence,
        /// Marks that speak against it without taking it back.
        against: Vec<usize>,
    },
}

pub(super) fn verdict(catalogue: &Catalogue, seen: &Seen, place: usize) -> Verdict {
    let signal = &catalogue.signals[place];
    let circumstances = signal.with.iter().all(|place| seen.sighted(*place))
        && !signal.without.iter().any(|place| seen.sighted(*place))
        && on_platform(catalogue, seen, signal);
    if !circumstances || !seen.sighted(place) {
        return Verdict::Absent;
    }
    let sightings: Vec<(usize, &Sighting)> = seen.of(place).collect();
    let count: u64 = sightings.iter().map(|(_, sighting)| sighting.count).sum();
    let lasted =
        sightings.iter().filter_map(|(_, sighting)| Some(sighting.last_s? - sighting.first_s?)).max();
    let too_few = count < signal.at_least;
    let too_short = signal.lasting_s > 0 && lasted.is_none_or(|lasted| lasted < i64::from(signal.lasting_s));
    let too_late = !signal.soon_after.is_empty() && !sightings.iter().any(|(_, sighting)| sighting.soon);
    if too_few || too_short || too_late {
        return Verdict::Absent;
    }
    let proof = if count < signal.often { Confidence::Possible } else { signal.proof };
    taken_back(catalogue, seen, signal, &sightings, proof)
}

fn on_platform(catalogue: &Catalogue, seen: &Seen, signal: &Signal) -> bool {
    let is = |name: &String| {
        seen.platform.as_ref() == Some(name)
            || catalogue
                .signals
                .iter()
                .enumerate()
                .any(|(place, mark)| mark.id.strip_prefix("on-") == Some(name) && seen.sighted(place))
    };
    (signal.on.is_empty() || signal.on.iter().any(is)) && !signal.not_on.iter().any(is)
}

/// Success in the same source counts when it comes later; success of the whole machine in another source has no order.
fn taken_back(
    catalogue: &Catalogue,
    seen: &Seen,
    signal: &Signal,
    sightings: &[(usize, &Sighting)],
    proof: Confidence,
) -> Verdict {
    if got_past(catalogue, seen, signal, sightings) {
        return Verdict::TakenBack;
    }
    if proof < Confidence::Sure && is_of_ready_nodes(catalogue, seen, signal, sightings) {
        return Verdict::TakenBack;
    }
    let mut against = Vec::new();
    for mark in &signal.taken_back_by {
        let whole = catalogue.signals[*mark].whole;
        let passed = sightings.iter().all(|(source, sighting)| {
            seen.of(*mark).any(|(where_seen, success)| {
                let later = success.last_line > sighting.last_line;
                // What a listing shows as a whole stands at no line before or after another.
                if where_seen == *source { later || (whole && signal.fact.is_some()) } else { whole }
            })
        });
        let same_source =
            sightings.iter().all(|(source, _)| seen.of(*mark).any(|(other, _)| other == *source));
        if passed && (same_source || proof < Confidence::Sure) {
            return Verdict::TakenBack;
        }
        if passed {
            against.push(*mark);
        }
    }
    if let Some(boot) = booted_since(catalogue, seen, sightings) {
        against.push(boot);
        return Verdict::Stands { proof: Confidence::Possible, against };
    }
    Verdict::Stands { proof, against }
}

/// A mark with a stage tells that the machine reached it: what stopped it on the way there, earlier in the same source, is over.
fn got_past(catalogue: &Catalogue, seen: &Seen, signal: &Signal, sightings: &[(usize, &Sighting)]) -> bool {
    let Some(stage) = stage_of(catalogue, signal) else { return false };
    let reached = |mark: &Signal| mark.cause.is_none() && mark.stage.is_some_and(|reached| reached > stage);
    catalogue.signals.iter().enumerate().filter(|(_, mark)| reached(mark)).any(|(place, _)| {
        sightings.iter().all(|(source, sighting)| {
            seen.of(place).any(|(other, success)| other == *source && success.last_line > sighting.last_line)
        })
    })
}

/// The mark of a boot that began after the last of these lines, in each source that holds one. What stopped the boot before
/// need not stop this one, and what runs at a machine's first boot only is not tried again: it stays possible.
fn booted_since(catalogue: &Catalogue, seen: &Seen, sightings: &[(usize, &Sighting)]) -> Option<usize> {
    let mut boots = catalogue.signals.iter().enumerate().filter(|(_, mark)| mark.new_boot);
    boots.find_map(|(place, _)| {
        let passed = sightings.iter().all(|(source, sighting)| {
            seen.of(place).any(|(other, boot)| other == *source && boot.last_line > sighting.last_line)
        });
        passed.then_some(place)
    })
}

/// Whether every line is about a node that a listing calls Ready, and Ready speaks against the sign.
fn is_of_ready_nodes(
    catalogue: &Catalogue,
    seen: &Seen,
    signal: &Signal,
    sightings: &[(usize, &Sighting)],
) -> bool {
    let of_ready = |sighting: &Sighting| {
        !sighting.first.is_empty() && sighting.first.iter().all(|hit| seen.names_ready_node(&hit.text))
    };
    let ready_speaks = signal.taken_back_by.iter().any(|mark| catalogue.signals[*mark].well);
    let unlike = match stage_of(catalogue, signal) {
        Some(stage) if BEFORE_READY.contains(&stage) => signal.taken_back_by.is_empty() || ready_speaks,
        // A pod network may fail behind a Node that is Ready; where the sign says that Ready ends it, it does not.
        Some(Stage::Cni) => ready_speaks,
        _ => false,
    };
    unlike && !seen.nodes.is_empty() && sightings.iter().all(|(_, sighting)| of_ready(sighting))
}

fn stage_of(catalogue: &Catalogue, signal: &Signal) -> Option<Stage> {
    signal.stage.or_else(|| Some(catalogue.causes[signal.cause?].stage))
}
