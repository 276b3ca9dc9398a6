//! Counting right and wrong.

use std::collections::BTreeMap;
use std::fmt::Write as _;

use reveille_diagnose::Diagnosis;

use crate::labels::Labelled;

/// What was counted.
#[derive(Clone, Debug, Default)]
pub(crate) struct Score {
    failures: u32,
    first: u32,
    first_accepted: u32,
    first_three: u32,
    stage: u32,
    harmless: u32,
    alarms: u32,
    /// (right, said) → which cases.
    confused: BTreeMap<(String, String), Vec<String>>,
    wrong_stages: Vec<String>,
}

impl Score {
    pub(crate) fn of(cases: &[Labelled], diagnose: impl Fn(&Labelled) -> Diagnosis) -> Self {
        let mut score = Self::default();
        for case in cases {
            score.count(case, &diagnose(case));
        }
        score
    }

    fn count(&mut self, case: &Labelled, diagnosis: &Diagnosis) {
        let label = &case.label;
        let said: Vec<&str> = diagnosis.findings.iter().map(|finding| finding.cause.as_str()).collect();
        // "No verdict" is an answer, and the right one where the label says that the cause cannot be known.
        let nothing = if diagnosis.unknown.is_some() { "unknown" } else { "nothing" };
        let first = said.first().copied().unwrap_or(nothing);
        let right = |cause: &str| cause == label.root_cause;
        let accepted = |cause: &str| right(cause) || label.also_acceptable.iter().any(|other| other == cause);
        if label.root_cause == "none" {
            self.harmless += 1;
            if !said.is_empty() {
                self.alarms += 1;
                self.confuse(case, first);
            }
            return;
        }
        self.failures += 1;
        self.first += u32::from(right(first));
        self.first_accepted += u32::from(accepted(first));
        self.first_three += u32::from(right(first) || said.iter().take(3).any(|cause| right(cause)));
        if !right(first) {
            self.confuse(case, first);
        }
        let stopped = || diagnosis.unknown.as_ref().and_then(|unknown| unknown.stage);
        let stage = diagnosis.findings.first().map(|finding| finding.stage).or_else(stopped);
        let stage = stage.map_or("none", |stage| stage.name());
        if stage == label.stage {
            self.stage += 1;
        } else {
            self.wrong_stages.push(format!("{}: {} and not {stage}", label.id, label.stage));
        }
    }

    fn confuse(&mut self, case: &Labelled, said: &str) {
        let key = (case.label.root_cause.clone(), said.to_owned());
        self.confused.entry(key).or_default().push(case.label.id.clone());
    }

    pub(crate) fn add(&mut self, other: Self) {
        self.failures += other.failures;
        self.first += other.first;
        self.first_accepted += other.first_accepted;
        self.first_three += other.first_three;
        self.stage += other.stage;
        self.harmless += other.harmless;
        self.alarms += other.alarms;
    }

    pub(crate) fn page(&self, name: &str) -> String {
        let share = |count: u32, of: u32| f64::from(count) * 100.0 / f64::from(of.max(1));
        format!(
            "{name:<24} first {:>5.1} % (accepted {:>5.1} %)  first three {:>5.1} %  stage {:>5.1} %  of {}   false alarms {} of {}\n",
            share(self.first, self.failures),
            share(self.first_accepted, self.failures),
            share(self.first_three, self.failures),
            share(self.stage, self.failures),
            self.failures,
            self.alarms,
            self.harmless,
        )
    }

    /// The confusion table: what was right, what was said, where.
    pub(crate) fn misses(&self) -> String {
        let mut page = String::new();
        for ((right, said), cases) in &self.confused {
            let _ = writeln!(page, "  {right:<30} taken for {said:<30} {}", cases.join(", "));
        }
        for wrong in &self.wrong_stages {
            let _ = writeln!(page, "  stage  {wrong}");
        }
        page
    }

    /// Per mille of each measure that may only rise.
    fn measures(&self) -> [(&'static str, u32); 4] {
        let share = |count: u32, of: u32| count * 1000 / of.max(1);
        [
            ("first", share(self.first, self.failures)),
            ("first-three", share(self.first_three, self.failures)),
            ("stage", share(self.stage, self.failures)),
            ("quiet", share(self.harmless - self.alarms, self.harmless)),
        ]
    }
}

/// Whether the floor holds: lines `plain first 950`, per mille.
pub(crate) fn holds(floor: &str, plain: &Score, varied: &Score) -> bool {
    let mut holds = true;
    for (name, score) in [("plain", plain), ("varied", varied)] {
        for (measure, reached) in score.measures() {
            let wanted = floor.lines().find_map(|line| {
                line.strip_prefix(&format!("{name} {measure} "))?.trim().parse::<u32>().ok()
            });
            match wanted {
                Some(wanted) if reached >= wanted => {
                    if reached > wanted {
                        println!(
                            "{name} {measure}: {reached} per mille, above its floor of {wanted}: raise it in tests/cases/floor.txt"
                        );
                    }
                }
                Some(wanted) => {
                    println!("{name} {measure}: {reached} per mille, below its floor of {wanted}");
                    holds = false;
                }
                None => {
                    println!("{name} {measure}: {reached} per mille, and floor.txt names no floor for it");
                    holds = false;
                }
            }
        }
    }
    holds
}
