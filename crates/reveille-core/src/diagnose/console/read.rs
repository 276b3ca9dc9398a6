//! Reads a console from top to bottom and keeps what stands at its end.
//!
//! Each signature has a tally of the lines that matched since a mark last took it back. At the end the tallies that
//! reach their signature's number are symptoms; symptoms of one cause become one finding, in the order of the table.

use std::collections::BTreeMap;

use crate::model::cause::Cause;
use crate::model::incident::{Evidence, Finding};
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
        reboot_can_help: scan.reboot(&standing),
        tail: scan.tail.iter().map(|(number, line)| quote(*number, line, read_at)).collect(),
    }
}

/// One signature that stands, with the lines that it stands on.
#[derive(Clone, Copy)]
struct Symptom<'a> {
    signature: &'static Signature,
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

    fn standing(&self) -> Vec<Symptom<'a>> {
        let stands = |(signature, tally): &(&'static Signature, Option<Tally<'a>>)| {
            tally.filter(|tally| tally.count >= signature.at_least).map(|tally| Symptom { signature, tally })
        };
        self.tallies.iter().filter_map(stands).collect()
    }

    /// True when the mark was seen in the last boot that the text shows.
    fn saw(&self, mark: Mark) -> bool {
        let boot = self.marks.get(&Mark::NewBoot).copied().unwrap_or(0);
        self.marks.get(&mark).is_some_and(|line| *line >= boot)
    }

    fn progress(&self) -> BootProgress {
        const STEPS: [(BootProgress, &[Mark]); 5] = [
            (BootProgress::Joined, &[Mark::Joined]),
            (BootProgress::Kubelet, &[Mark::KubeletStarted, Mark::ApiAnswered]),
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
            let confidence = of(cause).map(|symptom| symptom.signature.confidence).max()?;
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
mod tests {
    use super::*;
    use crate::model::incident::Confidence;

    const AT: Time = Time::from_ms(1_700_000_000_000);

    fn read(lines: &[&str]) -> ConsoleReading {
        read_console(&lines.join("\n"), AT)
    }

    /// The causes that stand, in order.
    fn causes(lines: &[&str]) -> Vec<Cause> {
        read(lines).findings.iter().map(|finding| finding.cause).collect()
    }

    const KERNEL: &str = "[    0.000000] Linux version 6.1.90 (build@host)";
    const UNREACHABLE: &str = "[    9.1] ignition[512]: GET error: Get \"http://169.254.169.254/openstack/latest/user_data\": dial \
                               tcp 169.254.169.254:80: connect: network is unreachable";
    const META_500: &str = "url_helper.py[WARNING]: Calling 'http://169.254.169.254/openstack' failed [4/120s]: bad status \
                            code [500]";
    const SCRIPT: &str =
        "cloud-init[4607]: util.py[WARNING]: Failed running /var/lib/cloud/instance/scripts/runcmd [1]";
    const FINISHED: &str = "cloud-init[4607]: Cloud-init v. 23.4 finished at Mon. Datasource DataSourceOpenStackLocal.  Up 41 seconds";
    const API_TIMEOUT: &str = "kubelet[1411]: E0101 Get \"https://10.0.4.9:6443/api/v1/nodes\": dial tcp 10.0.4.9:6443: i/o timeout";
    const NOT_FOUND: &str =
        "kubelet[1411]: E0101 kubelet.go:2461] \"Error getting node\" err=\"node \\\"w-1\\\" not found\"";

    #[test]
    fn what_stands_at_the_end_counts() {
        use Cause::*;
        let table: Vec<(&str, Vec<&str>, Vec<Cause>)> = vec![
            ("an empty console", vec![], vec![]),
            ("first boot without network", vec![KERNEL, UNREACHABLE, UNREACHABLE], vec![NoNetworkAtBoot]),
            (
                "ten failures and then an answer",
                [[UNREACHABLE; 10].as_slice(), &["ignition[512]: GET result: OK"]].concat(),
                vec![],
            ),
            (
                "an answer and then failures",
                vec!["ignition[512]: GET result: OK", UNREACHABLE],
                vec![NoNetworkAtBoot],
            ),
            ("another boot is another try", vec![KERNEL, UNREACHABLE, KERNEL], vec![]),
            (
                "a failed script does not heal by rebooting",
                vec![SCRIPT, FINISHED, KERNEL, FINISHED],
                vec![FirstBootFailed],
            ),
            (
                "finished with nothing is not finished",
                vec![
                    META_500,
                    "cloud-init[9]: Cloud-init v. 23.4 finished at Mon. Datasource DataSourceNone.  Up 141 seconds",
                ],
                vec![MetadataUnavailable],
            ),
            ("finished takes metadata trouble back", vec![META_500, FINISHED], vec![]),
            (
                "Ignition that went on without a config finishes successfully and did nothing",
                vec![
                    "ignition[498]: neither config drive nor metadata service were available in time. Continuing without a config...",
                    "ignition[498]: Ignition finished successfully",
                    "[  OK  ] Reached target Multi-User System.",
                ],
                vec![MetadataUnavailable],
            ),
            ("the noise of every join", vec![NOT_FOUND, NOT_FOUND, "cni plugin not initialized"], vec![]),
            (
                "joining takes everything back",
                vec![SCRIPT, API_TIMEOUT, "I0101 Successfully registered node w-1"],
                vec![],
            ),
            (
                "and what comes after it stands",
                vec!["I0101 Successfully registered node w-1", API_TIMEOUT],
                vec![ApiUnreachable],
            ),
            (
                "three questions for an address are patience",
                vec!["DHCPDISCOVER on ens3 to 255.255.255.255"; 3],
                vec![],
            ),
            ("four are too many", vec!["DHCPDISCOVER on ens3 to 255.255.255.255"; 4], vec![NoNetworkAtBoot]),
            (
                "asked four times, then leased",
                [
                    ["DHCPDISCOVER on ens3 to 255.255.255.255"; 4].as_slice(),
                    &["DHCPACK of 10.0.4.17 from 10.0.4.2"],
                ]
                .concat(),
                vec![],
            ),
            (
                "the cause before what follows from it",
                vec![UNREACHABLE, "You are in emergency mode.", "[FAILED] Failed to start Ignition (fetch)."],
                vec![NoNetworkAtBoot, FirstBootFailed, BootFailed],
            ),
            (
                "an unreachable server fails the script that joins",
                vec![SCRIPT, API_TIMEOUT],
                vec![ApiUnreachable, FirstBootFailed],
            ),
            (
                "a panic before all",
                vec![UNREACHABLE, "[ 31.4] Kernel panic - not syncing: Attempted to kill init!"],
                vec![BootFailed, NoNetworkAtBoot],
            ),
            (
                "a panic that a later boot got over",
                vec!["Kernel panic - not syncing: fatal", KERNEL, "w-1 login:"],
                vec![],
            ),
        ];
        for (case, lines, expected) in table {
            assert_eq!(causes(&lines), expected, "{case}");
        }
    }

    #[test]
    fn one_cause_is_one_finding_with_its_lines_counted() {
        let reading = read(&[KERNEL, "dhclient: No DHCPOFFERS received.", UNREACHABLE, "x", UNREACHABLE]);
        assert_eq!(reading.findings.len(), 1);
        let finding = &reading.findings[0];
        assert_eq!((finding.cause, finding.confidence), (Cause::NoNetworkAtBoot, Confidence::Likely));
        let sources: Vec<&str> = finding.evidence.iter().map(|evidence| &*evidence.source).collect();
        assert_eq!(sources, ["console line 2", "console line 5, one of 2 such since line 3"]);
        assert!(finding.evidence.iter().all(|evidence| evidence.read_at == AT));
        assert_eq!(reading.dhcp.unwrap().evidence.len(), 1);
        assert_eq!(reading.first_boot_failed.unwrap().evidence.len(), 1);
        assert!(reading.unanswered);
    }

    #[test]
    fn progress_is_that_of_the_last_boot() {
        use BootProgress::*;
        for (lines, expected) in [
            (vec![], Nothing),
            (vec!["SeaBIOS (version 1.16)", "Booting from Hard Disk..."], Nothing),
            (vec![KERNEL], Kernel),
            (vec![KERNEL, "ignition[512]: Ignition 2.15.0"], FirstBoot),
            (vec![KERNEL, "w-1 login:"], Userland),
            (vec![KERNEL, "w-1 login:", "[  OK  ] Started kubelet: The Kubernetes Node Agent."], Kubelet),
            (vec![KERNEL, "w-1 login:", KERNEL], Kernel),
            (vec!["w-1 login:"], Userland),
            (vec!["This node has joined the cluster:"], Joined),
        ] {
            assert_eq!(read(&lines).boot, expected, "{lines:?}");
        }
    }

    #[test]
    fn the_guest_says_whether_it_found_a_config_drive() {
        let waiting = "ignition[5]: config drive (\"/dev/disk/by-label/config-2\") not found. Waiting...";
        let found = "ignition[5]: op(1): [started] mounting \"/dev/disk/by-label/config-2\" at \"/tmp/ignition-configdrive\"";
        for (lines, expected) in [
            (vec![KERNEL], ConfigDrive::Unknown),
            (vec![waiting], ConfigDrive::Absent),
            (vec![waiting, found], ConfigDrive::Present),
            (
                vec!["finished at Mon. Datasource DataSourceConfigDrive [net,ver=2][source=/dev/sr0]"],
                ConfigDrive::Present,
            ),
        ] {
            assert_eq!(read(&lines).config_drive, expected, "{lines:?}");
        }
    }

    /// G86: a reboot does not help what only a first boot does.
    #[test]
    fn g86_a_reboot_is_refused_where_it_cannot_help() {
        let verdict = |lines: &[&str]| match read(lines).reboot_can_help {
            Reboot::Yes => "yes",
            Reboot::No(_) => "no",
            Reboot::Unknown => "unknown",
        };
        for (lines, expected) in [
            (vec![UNREACHABLE], "no"),
            (vec!["Kernel panic - not syncing: fatal"], "yes"),
            (vec!["Kernel panic - not syncing: fatal", "[FAILED] Failed to start Ignition (fetch)."], "no"),
            (vec!["dhclient: No DHCPOFFERS received."], "yes"),
            (vec![SCRIPT], "no"),
            // cloud-init looks for a datasource at every boot until it has one.
            (vec![META_500], "unknown"),
            (vec![API_TIMEOUT], "no"),
            (vec![KERNEL, "w-1 login:"], "unknown"),
        ] {
            assert_eq!(verdict(&lines), expected, "{lines:?}");
        }
    }

    #[test]
    fn secrets_are_gone_before_anything_is_quoted() {
        let secret = "0123456789abcdef";
        let text = format!(
            "kubelet[1]: cannot create certificate signing request: Unauthorized token=abcdef.{secret}\nK3S_TOKEN=cAnArY77"
        );
        let reading = read_console(&text, AT);
        assert_eq!(reading.findings[0].cause, Cause::TokenInvalid);
        let shown = format!("{reading:?}");
        assert!(!shown.contains(secret) && !shown.contains("cAnArY77"), "{shown}");
        let kept = super::super::keep(&text);
        assert!(!kept.contains(secret) && !kept.contains("cAnArY77"), "{kept}");
    }

    #[test]
    fn a_flood_is_read_from_its_end() {
        let mut text = format!("{SCRIPT}\n");
        text.push_str(&"noise\n".repeat(400_000));
        text.push_str(UNREACHABLE);
        let reading = read_console(&text, AT);
        let causes: Vec<Cause> = reading.findings.iter().map(|finding| finding.cause).collect();
        assert_eq!(causes, [Cause::NoNetworkAtBoot]);
        assert!(super::super::keep(&text).len() <= super::super::KEEP_BYTES_MAX);
    }
}
