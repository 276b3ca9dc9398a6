//! The same evidence as other machines and tools would have printed it, made by a seed.
//!
//! None of these changes what is wrong: times move, collectors wrap lines, letters change case, names of machines change,
//! ends of lines are cut off, lines of healthy programs stand in between, everything is printed twice.

use reveille_diagnose::sources::case::Evidence;

use crate::labels::Labelled;

/// A way to change evidence.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Kind {
    Shifted,
    Wrapped,
    Renamed,
    Mixed,
    Repeated,
    Cut,
}

pub(crate) const KINDS: [Kind; 6] =
    [Kind::Shifted, Kind::Wrapped, Kind::Renamed, Kind::Mixed, Kind::Repeated, Kind::Cut];

impl Kind {
    pub(crate) const fn name(self) -> &'static str {
        match self {
            Self::Shifted => "times shifted",
            Self::Wrapped => "wrapped by collectors",
            Self::Renamed => "machines renamed",
            Self::Mixed => "harmless lines between",
            Self::Repeated => "printed twice",
            Self::Cut => "ends of lines cut",
        }
    }
}

/// Lines of machines that are well.
const HARMLESS: [&str; 8] = [
    "Nov 21 01:02:03 host systemd[1]: Started Daily apt download activities.",
    "I1121 01:02:03.000000    1234 kubelet.go:2205] \"SyncLoop (PLEG): event for pod\" pod=\"kube-system/x\" event={}",
    "time=\"2024-11-21T01:02:03Z\" level=info msg=\"Handling backend connection request [c-1:m-1]\"",
    "[    2.345678] EXT4-fs (vda1): mounted filesystem with ordered data mode",
    "I1121 01:02:03.000000       1 leaderelection.go:258] successfully acquired lease kube-system/kube-scheduler",
    "Nov 21 01:02:03 host kernel: audit: type=1400 audit(1): apparmor=\"STATUS\" operation=\"profile_load\"",
    "{\"level\":\"info\",\"ts\":\"2024-11-21T01:02:03Z\",\"msg\":\"finished scheduled compaction\",\"took\":\"9ms\"}",
    "Nov 21 01:02:03 host dbus-daemon[600]: [system] Successfully activated service 'org.freedesktop.hostname1'",
];

/// The case, changed.
pub(crate) fn vary(case: &Labelled, kind: Kind, seed: u64) -> Labelled {
    let mut changed = case.clone();
    for (number, evidence) in changed.case.evidence.iter_mut().enumerate() {
        let mut dice =
            Dice(seed.wrapping_mul(0x9e37_79b9).wrapping_add(number as u64 + case.label.id.len() as u64));
        evidence.text = text(evidence, kind, &mut dice);
    }
    changed
}

fn text(evidence: &Evidence, kind: Kind, dice: &mut Dice) -> String {
    let lines: Vec<&str> = evidence.text.lines().collect();
    let is_log = !evidence.kind.starts_with("kubectl") && evidence.kind != "cloud-api";
    let mut out: Vec<String> = Vec::new();
    for line in &lines {
        match kind {
            Kind::Shifted => out.push(shifted(line, dice)),
            Kind::Wrapped if is_log => out.push(wrapped(line, dice)),
            Kind::Renamed => out.push(
                line.replace("lab-", "prod-").replace("10.", "172.").replace("172.0.2.15", "10.0.2.15"),
            ),
            Kind::Mixed if is_log => {
                for _ in 0..dice.below(3) {
                    out.push(HARMLESS[dice.below(HARMLESS.len())].to_owned());
                }
                out.push((*line).to_owned());
            }
            Kind::Cut if is_log => {
                let length = line.chars().count();
                out.push(line.chars().take(length - length * dice.below(8) / 100).collect());
            }
            _ => out.push((*line).to_owned()),
        }
    }
    if kind == Kind::Repeated {
        out.extend(lines.iter().map(|line| (*line).to_owned()));
    }
    out.join("\n") + "\n"
}

/// Hours move by one number for the whole line: order and distance stay.
fn shifted(line: &str, dice: &Dice) -> String {
    let by = dice.0 % 9 + 1;
    let bytes = line.as_bytes();
    let mut out = line.to_owned();
    for at in 2..bytes.len().saturating_sub(5) {
        let is_time = bytes[at] == b':'
            && bytes[at + 3] == b':'
            && [at - 2, at - 1, at + 1, at + 2, at + 4, at + 5].iter().all(|at| bytes[*at].is_ascii_digit());
        if is_time && let Ok(hour) = line[at - 2..at].parse::<u64>() {
            out.replace_range(at - 2..at, &format!("{:02}", (hour + by) % 24));
        }
    }
    out
}

fn wrapped(line: &str, dice: &mut Dice) -> String {
    match dice.below(3) {
        0 => format!("2024-05-29T08:04:11.201123456Z stderr F {line}"),
        1 => {
            let text = line.replace('\\', "\\\\").replace('"', "\\\"").replace('\t', " ");
            format!(
                "{{\"log\":\"{text}\\n\",\"stream\":\"stderr\",\"time\":\"2024-05-29T08:04:11.201123456Z\"}}"
            )
        }
        _ => format!("May 29 08:04:11 host unit[811]: {line}"),
    }
}

struct Dice(u64);

impl Dice {
    fn below(&mut self, bound: usize) -> usize {
        self.0 = self.0.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1_442_695_040_888_963_407);
        (self.0 >> 33) as usize % bound
    }
}
