//! Which cause comes first, and which merely follow from it.

use crate::catalogue::{Catalogue, Signal};
use crate::finding::Confidence;

/// A cause with the signs that stand for it.
#[derive(Clone, Debug)]
pub(super) struct Weighed {
    /// Place of the cause.
    pub(super) cause: usize,
    /// Places of its signs, strongest first.
    pub(super) signs: Vec<usize>,
    /// Marks that speak against it.
    pub(super) against: Vec<usize>,
    proofs: Vec<Confidence>,
    weak: bool,
}

impl Weighed {
    pub(super) fn new(
        cause: usize,
        place: usize,
        signal: &Signal,
        proof: Confidence,
        against: Vec<usize>,
    ) -> Self {
        Self { cause, signs: vec![place], against, proofs: vec![proof], weak: signal.weak }
    }

    pub(super) fn add(&mut self, place: usize, signal: &Signal, proof: Confidence, against: Vec<usize>) {
        let at = self.proofs.iter().position(|other| *other < proof).unwrap_or(self.proofs.len());
        self.signs.insert(at, place);
        self.proofs.insert(at, proof);
        self.against.extend(against);
        self.weak &= signal.weak;
    }

    pub(super) fn confidence(&self) -> Confidence {
        self.proofs.first().copied().unwrap_or(Confidence::Possible)
    }

    /// Tenths: what its strongest sign proves, a little more for each further sign.
    fn weight(&self) -> u32 {
        let strongest = match self.confidence() {
            Confidence::Possible => 10,
            Confidence::Likely => 20,
            Confidence::Sure => 30,
        };
        let further = u32::try_from(self.signs.len().saturating_sub(1).min(2)).unwrap_or(0) * 3;
        strongest + further
    }
}

/// Roots, best first, each with its followers.
pub(super) fn rank(catalogue: &Catalogue, mut all: Vec<Weighed>) -> Vec<(Weighed, Vec<Weighed>)> {
    if all.iter().any(|weighed| !weighed.weak) {
        all.retain(|weighed| !weighed.weak);
    }
    all.sort_by_key(|weighed| {
        let cause = &catalogue.causes[weighed.cause];
        (std::cmp::Reverse(weighed.weight()), cause.stage, cause.label.clone())
    });
    let mut roots: Vec<(Weighed, Vec<Weighed>)> = Vec::new();
    let all_causes: Vec<(usize, u32)> = all.iter().map(|weighed| (weighed.cause, weighed.weight())).collect();
    for weighed in all {
        match root_of(catalogue, &all_causes, &weighed) {
            Some(root) => match roots.iter_mut().find(|(other, _)| other.cause == root) {
                Some((_, followers)) => followers.push(weighed),
                // Its root stands behind it in the list: it goes under it when that comes.
                None => roots.push((weighed, Vec::new())),
            },
            None => roots.push((weighed, Vec::new())),
        }
    }
    settle(catalogue, roots)
}

/// How much weaker a root may be than what follows from it.
const SLACK: u32 = 13;

/// The strongest cause that explains this one.
fn root_of(catalogue: &Catalogue, all: &[(usize, u32)], weighed: &Weighed) -> Option<usize> {
    let explains = |from: usize, to: usize| catalogue.causes[from].explains.contains(&to);
    all.iter()
        .filter(|(cause, weight)| {
            *cause != weighed.cause
                && explains(*cause, weighed.cause)
                && (*weight > weighed.weight() || !explains(weighed.cause, *cause))
                && *weight + SLACK >= weighed.weight()
                && *weight >= 20.min(weighed.weight())
        })
        .map(|(cause, _)| *cause)
        .next()
}

/// Followers that were placed before their root move under it.
fn settle(catalogue: &Catalogue, mut roots: Vec<(Weighed, Vec<Weighed>)>) -> Vec<(Weighed, Vec<Weighed>)> {
    let present: Vec<(usize, u32)> =
        roots.iter().map(|(weighed, _)| (weighed.cause, weighed.weight())).collect();
    let mut place = 0;
    while place < roots.len() {
        let root = root_of(catalogue, &present, &roots[place].0);
        let target = root.and_then(|root| roots.iter().position(|(other, _)| other.cause == root));
        match target {
            Some(target) if target != place && !leads_to(catalogue, &roots, target, place) => {
                let (follower, theirs) = roots.remove(place);
                let target = if target > place { target - 1 } else { target };
                roots[target].1.push(follower);
                roots[target].1.extend(theirs);
            }
            _ => place += 1,
        }
    }
    roots
}

/// True when the target itself follows from this one: a circle is left as it is.
fn leads_to(catalogue: &Catalogue, roots: &[(Weighed, Vec<Weighed>)], target: usize, place: usize) -> bool {
    let (from, to) = (&roots[target].0, &roots[place].0);
    catalogue.causes[to.cause].explains.contains(&from.cause) && from.weight() <= to.weight()
}
