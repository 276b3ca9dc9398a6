//! From what was seen to the cause to act on.
//!
//! ```text
//!  sightings ─▶ verdict   does the sign count here? circumstances, success after it, how often
//!            ─▶ weigh     of each cause: its strongest sign, and how many different ones
//!            ─▶ rank      roots before followers, sure before likely, early on the way before late
//! ```
//!
//! Success that comes later in the same source cancels earlier symptoms. Success in another source, whose order relative to this
//! one is unknown, cancels only what is not certain in itself. A symptom that every join shows counts only where nothing else was
//! found. The judge weighs which different signs were seen, never how many lines a component printed: a log that repeats itself
//! proves no more than one that does not.

mod rank;
mod verdict;

use crate::catalogue::{Catalogue, Cause, Signal};
use crate::finding::{Confidence, Diagnosis, Finding, Quote, Unknown};
use crate::scan::{Reader, Seen};
use rank::{Weighed, rank};
use verdict::{Verdict, verdict};

/// Lines that are quoted for one finding.
const EVIDENCE_MAX: usize = 6;

/// What the reader saw, judged.
pub fn judge(reader: &Reader<'_>) -> Diagnosis {
    let (catalogue, seen) = (reader.catalogue(), reader.seen());
    let mut weighed: Vec<Weighed> = Vec::new();
    let mut doubted: Vec<usize> = Vec::new();
    for (place, signal) in catalogue.signals.iter().enumerate() {
        let Some(cause) = signal.cause else { continue };
        match verdict(catalogue, seen, place) {
            Verdict::Absent => {}
            Verdict::TakenBack => doubted.push(place),
            Verdict::Stands { proof, against } => {
                match weighed.iter_mut().find(|weighed| weighed.cause == cause) {
                    Some(weighed) => weighed.add(place, signal, proof, against),
                    None => weighed.push(Weighed::new(cause, place, signal, proof, against)),
                }
            }
        }
    }
    let (unexplained, weighed): (Vec<_>, Vec<_>) =
        weighed.into_iter().partition(|weighed| catalogue.causes[weighed.cause].no_cause);
    let ranked = rank(catalogue, weighed);
    let findings: Vec<Finding> = ranked
        .iter()
        .map(|(root, followers)| {
            let mut found = finding(catalogue, seen, root);
            found.follows = followers.iter().map(|follower| finding(catalogue, seen, follower)).collect();
            found
        })
        .collect();
    let unknown = match unexplained.first() {
        _ if !findings.is_empty() => None,
        Some(symptom) => Some(stopped(catalogue, seen, symptom)),
        None => unknown(catalogue, seen, &doubted),
    };
    Diagnosis { findings, unknown }
}

fn finding(catalogue: &Catalogue, seen: &Seen, weighed: &Weighed) -> Finding {
    let cause = &catalogue.causes[weighed.cause];
    let mut evidence = Vec::new();
    for place in &weighed.signs {
        for quote in quotes(catalogue, seen, *place) {
            // One line may carry several signs; it is quoted once, for the strongest.
            if !evidence.iter().any(|other: &Quote| other.source == quote.source && other.line == quote.line)
            {
                evidence.push(quote);
            }
        }
    }
    evidence.truncate(EVIDENCE_MAX);
    let against = weighed.against.iter().flat_map(|mark| quotes(catalogue, seen, *mark)).take(2).collect();
    let confidence = weighed.confidence();
    Finding {
        cause: cause.label.clone(),
        code: cause.code.clone(),
        stage: stage(catalogue, seen, cause, weighed),
        confidence,
        title: cause.title.clone(),
        evidence,
        against,
        remedy: cause.remedy.clone(),
        commands: cause.commands.clone(),
        collect: if confidence == Confidence::Sure { Vec::new() } else { cause.collect.clone() },
        follows: Vec::new(),
    }
}

/// A sign that says so, then the circumstances, then where the cause usually stands.
fn stage(
    catalogue: &Catalogue,
    seen: &Seen,
    cause: &Cause,
    weighed: &Weighed,
) -> reveille_core::model::stage::Stage {
    let said = weighed.signs.iter().find_map(|place| catalogue.signals[*place].stage);
    let circumstances = || {
        cause
            .stage_when
            .iter()
            .find(|(_, with)| with.iter().all(|place| seen.sighted(*place)))
            .map(|(stage, _)| *stage)
    };
    said.or_else(circumstances).unwrap_or(cause.stage)
}

fn quotes(catalogue: &Catalogue, seen: &Seen, place: usize) -> Vec<Quote> {
    let signal: &Signal = &catalogue.signals[place];
    let mut quotes = Vec::new();
    for (source, sighting) in seen.of(place) {
        for hit in sighting.first.iter().take(1) {
            quotes.push(Quote {
                source: seen.sources[source].clone(),
                line: hit.line,
                text: hit.text.clone(),
                times: sighting.count,
                sign: signal.id.clone(),
            });
        }
    }
    quotes.truncate(2);
    quotes
}

/// Where it stopped is in the lines, and why is not.
fn stopped(catalogue: &Catalogue, seen: &Seen, symptom: &Weighed) -> Unknown {
    let Finding { stage, title, evidence, .. } = finding(catalogue, seen, symptom);
    let collect = catalogue.causes[symptom.cause].collect.clone();
    Unknown { stage: Some(stage), says: title, lines: evidence, collect }
}

/// Trouble that nothing explains, or evidence too thin to say anything of.
fn unknown(catalogue: &Catalogue, seen: &Seen, doubted: &[usize]) -> Option<Unknown> {
    let went_well = catalogue.signals.iter().enumerate().any(|(place, signal)| {
        signal.cause.is_none() && (signal.whole || signal.harmless) && seen.sighted(place)
    });
    if went_well || !doubted.is_empty() {
        return None;
    }
    let says = match (seen.lines, seen.troubles) {
        (0, _) => "there was nothing to read".to_owned(),
        (_, 0) if !seen.sightings.is_empty() => return None,
        (lines, 0) => {
            format!("nothing in {lines} lines shows a machine that is well, and nothing what keeps one")
        }
        (lines, troubles) => {
            format!(
                "{troubles} of {lines} lines sound like trouble, and no entry of the catalogue explains them"
            )
        }
    };
    let lines = seen
        .trouble
        .iter()
        .map(|(source, hit)| Quote {
            source: seen.sources[*source].clone(),
            line: hit.line,
            text: hit.text.clone(),
            times: 1,
            sign: String::new(),
        })
        .collect();
    let collect = vec![
        "the kubelet's journal from its start (journalctl -u kubelet -b --no-pager)".to_owned(),
        "the first boot's output (/var/log/cloud-init-output.log) or the console log".to_owned(),
        "kubectl describe node NODE and kubectl get csr".to_owned(),
    ];
    Some(Unknown { stage: None, says, lines, collect })
}

#[cfg(test)]
mod tests;
