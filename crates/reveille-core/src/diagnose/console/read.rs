//! Reads a console from top to bottom and keeps what stands at its end.
//!
//! Each signature has a tally of the lines that matched since a mark last took it back. At the end the tallies that
//! reach their signature's number are symptoms; symptoms of one cause become one finding, in the order of the table.

use std::collections::BTreeMap;

use crate::model::cause::Cause;
use crate::model::incident::{Confidence, Evidence, Finding};
use crate::model::time::Time;

use super::lines::{READ_BYTES_MAX, end_of, normalised, plain};
use super::mask::mask_secrets;
use super::signatures::{self, Mark, Part, Reboot, Signature};
use super::{BootProgress, ConfigDrive, ConsoleReading};

/// How many lines one finding quotes.
const EVIDENCE_MAX: usize = 5;
/// How many of the last lines are quoted.
const TAIL_LINES: usize = 3;

/// What the text says. `read_at` is when the text was read from the cloud, on our clock; it dates the evidence.
///
/// Any text is taken; of a very long one the last mebibyte is read.
pub fn read_console(text: &str, read_at: Time) -> ConsoleReading {
    let text = mask_secrets(end_of(text, READ_BYTES_MAX));
    let mut scan = Scan::new();
    for (number, line) in text.lines().enumerate() {
        scan.take(number + 1, line);
    }
    let standing: Vec<Symptom<'_>> = scan.standing();
    let part = |part: Part| {
        let of_part: Vec<Symptom<'_>> =
            standing.iter().filter(|s| s.signature.part == part).copied().collect();
        findings(&of_part, read_at).into_iter().next()
    };
    ConsoleReading {
        boot: scan.progress(),
        first_boot_failed: part(Part::FirstBoot),
        dhcp: part(Part::Address),
        config_drive: scan.config_drive(),
        findings: findings(&standing, read_at),
        unanswered: standing.iter().any(|symptom| symptom.signature.unanswered),
        addressed: scan.saw(Mark::Addressed),
        answered: scan.saw(Mark::MetadataAnswered) || scan.saw(Mark::ApiAnswered),
        reboot_can_help: scan.reboot(&standing),
        tail: scan.tail.iter().map(|(number, line)| quote(*number, line, read_at)).collect(),
    }
}

/// One signature that stands, with the lines that it stands on.
#[derive(Clone, Copy)]
struct Symptom<'a> {
    signature: &'static Signature,
    confidence: Confidence,
    tally: Tally<'a>,
}

#[derive(Clone, Copy)]
struct Tally<'a> {
    count: u32,
    first: usize,
    last: usize,
    last_line: &'a str,
}

struct Scan<'a> {
    /// One place for each signature, in the table's order.
    tallies: Vec<(&'static Signature, Option<Tally<'a>>)>,
    /// Line of the latest sight of each mark.
    marks: BTreeMap<Mark, usize>,
    tail: Vec<(usize, &'a str)>,
}

impl<'a> Scan<'a> {
    fn new() -> Self {
        let tallies = signatures::all().map(|signature| (signature, None)).collect();
        Self { tallies, marks: BTreeMap::new(), tail: Vec::with_capacity(TAIL_LINES) }
    }

    fn take(&mut self, number: usize, line: &'a str) {
        let comparable = normalised(line);
        if comparable.is_empty() {
            return;
        }
        for mark in signatures::marks_of(&comparable) {
            self.marks.insert(mark, number);
            for (signature, tally) in &mut self.tallies {
                if mark == Mark::Joined || signature.taken_back_by.contains(&mark) {
                    *tally = None;
                }
            }
        }
        for (signature, tally) in &mut self.tallies {
            if signature.matches(&comparable) {
                let (first, count) = tally.map_or((number, 0), |tally| (tally.first, tally.count));
                *tally = Some(Tally { count: count.saturating_add(1), first, last: number, last_line: line });
            }
        }
        if self.tail.len() == TAIL_LINES {
            self.tail.remove(0);
        }
        self.tail.push((number, line));
    }

    /// What stands, in the order of findings.
    fn standing(&self) -> Vec<Symptom<'a>> {
        let stands = |(signature, tally): &(&'static Signature, Option<Tally<'a>>)| {
            let tally = tally.filter(|tally| tally.count >= signature.at_least)?;
            Some(Symptom { signature, confidence: self.confidence(signature), tally })
        };
        let mut standing: Vec<Symptom<'a>> = self.tallies.iter().filter_map(stands).collect();
        standing.sort_by_key(|symptom| {
            (symptom.signature.consequence, symptom.confidence == Confidence::Possible)
        });
        standing
    }

    /// A machine that has an address and then fails to get one fails on another interface, which it may not need.
    fn confidence(&self, signature: &Signature) -> Confidence {
        let networked =
            [Mark::Addressed, Mark::MetadataAnswered, Mark::ApiAnswered].iter().any(|mark| self.saw(*mark));
        if signature.part == Part::Address && networked { Confidence::Possible } else { signature.confidence }
    }

    /// True when the mark was seen in the last boot that the text shows.
    fn saw(&self, mark: Mark) -> bool {
        let boot = self.marks.get(&Mark::NewBoot).copied().unwrap_or(0);
        self.marks.get(&mark).is_some_and(|line| *line >= boot)
    }

    fn progress(&self) -> BootProgress {
        const STEPS: [(BootProgress, &[Mark]); 5] = [
            (BootProgress::Joined, &[Mark::Joined]),
            (BootProgress::Kubelet, &[Mark::KubeletStarted, Mark::JoinBegan, Mark::ApiAnswered]),
            (BootProgress::Userland, &[Mark::Userland]),
            (BootProgress::FirstBoot, &[Mark::FirstBootTool, Mark::IgnitionDone, Mark::CloudInitDone]),
            (BootProgress::Kernel, &[Mark::NewBoot, Mark::Kernel, Mark::Addressed]),
        ];
        let reached = STEPS.into_iter().find(|(_, marks)| marks.iter().any(|mark| self.saw(*mark)));
        reached.map_or(BootProgress::Nothing, |(progress, _)| progress)
    }

    fn config_drive(&self) -> ConfigDrive {
        match (self.marks.get(&Mark::ConfigDrive), self.marks.get(&Mark::NoConfigDrive)) {
            (None, None) => ConfigDrive::Unknown,
            (found, not_found) if found > not_found => ConfigDrive::Present,
            _ => ConfigDrive::Absent,
        }
    }

    /// A symptom that no reboot can change decides; otherwise the first one does.
    fn reboot(&self, standing: &[Symptom<'_>]) -> Reboot {
        let refuses =
            standing.iter().map(|symptom| symptom.signature.reboot).find(|r| matches!(r, Reboot::No(_)));
        if let Some(no) = refuses {
            return no;
        }
        let first_boot = standing.iter().any(|symptom| symptom.signature.part == Part::FirstBoot);
        if first_boot && self.saw(Mark::IgnitionRuns) && !self.saw(Mark::IgnitionDone) {
            return Reboot::No("Ignition runs on the first boot, and that one has failed");
        }
        standing.first().map_or(Reboot::Unknown, |symptom| symptom.signature.reboot)
    }
}

fn findings(standing: &[Symptom<'_>], read_at: Time) -> Vec<Finding> {
    let mut causes: Vec<Cause> = Vec::new();
    for symptom in standing {
        if !causes.contains(&symptom.signature.cause) {
            causes.push(symptom.signature.cause);
        }
    }
    let of = |cause: Cause| standing.iter().filter(move |symptom| symptom.signature.cause == cause);
    causes
        .into_iter()
        .filter_map(|cause| {
            let confidence = of(cause).map(|symptom| symptom.confidence).max()?;
            let evidence = of(cause).take(EVIDENCE_MAX).map(|symptom| symptom.evidence(read_at)).collect();
            Some(Finding { cause, stage: cause.stage(), confidence, evidence, against: Vec::new() })
        })
        .collect()
}

impl Symptom<'_> {
    fn evidence(&self, read_at: Time) -> Evidence {
        let Tally { count, first, last, last_line } = self.tally;
        let source = match count {
            1 => format!("console line {last}"),
            _ => format!("console line {last}, one of {count} such since line {first}"),
        };
        Evidence::new(source, &plain(last_line), read_at)
    }
}

fn quote(number: usize, line: &str, read_at: Time) -> Evidence {
    Evidence::new(format!("console line {number}"), &plain(line), read_at)
}

#[cfg(test)]
mod tests;
