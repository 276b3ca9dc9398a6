//! The result of one check, which a judge builds step by step.

use std::fmt;

use super::reading::Reading;

/// The labels of the causes that checks name. Each is in the catalogue, or among the causes that the engine finds by
/// itself.
pub const CAUSES: &[&str] = &[
    "apiserver-cert-san-mismatch",
    "apiserver-unreachable",
    "bootstrap-token-invalid",
    "ca-hash-mismatch",
    "ca-untrusted",
    "cgroup-driver-mismatch",
    "cgroup-unsupported",
    "clock-skew",
    "cloud-taint-not-removed",
    "cluster-info-malformed",
    "cni-not-installed",
    "container-runtime-down",
    "cri-api-unimplemented",
    "csr-not-approved",
    "disk-failure",
    "dns-resolution-failure",
    "duplicate-node-name",
    "kernel-prereq-missing",
    "kubelet-client-cert-expired",
    "kubelet-config-invalid",
    "kubelet-credentials-missing",
    "kubelet-silent",
    "leftover-state",
    "multiple-cri-sockets",
    "no-network-at-boot",
    "node-identity-mismatch",
    "node-not-ready",
    "node-object-deleted",
    "port-in-use",
    "provider-announced",
    "proxy-intercepts-traffic",
    "server-certificate-expired",
    "server-endpoint-wrong",
    "swap-enabled",
];

/// The result of a check.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum Result {
    /// The fact is as it should be.
    Passed,
    /// The fact is not as it should be, but the machine joins or stays all the same.
    Warned,
    /// The fact is not as it should be, and the machine does not join or stay.
    Failed,
    /// The check was not judged: it does not apply, or another check has to pass first.
    Skipped,
    /// The agent could not read what the check needs.
    CannotTell,
}

impl Result {
    /// The word for the result.
    pub const fn word(self) -> &'static str {
        match self {
            Self::Passed => "passed",
            Self::Warned => "warned",
            Self::Failed => "failed",
            Self::Skipped => "skipped",
            Self::CannotTell => "cannot-tell",
        }
    }
}

impl fmt::Display for Result {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.pad(self.word())
    }
}

/// What to do.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Advice {
    /// The advice in plain words.
    pub words: String,
    /// Commands to paste into a shell.
    pub commands: Vec<String>,
}

/// The result that a judge returns.
#[derive(Debug)]
pub(super) struct Found {
    pub(super) result: Result,
    pub(super) says: String,
    pub(super) evidence: Vec<String>,
    pub(super) cause: Option<&'static str>,
    pub(super) advice: Option<Advice>,
}

impl Found {
    fn new(result: Result, says: impl Into<String>) -> Self {
        Self { result, says: says.into(), evidence: Vec::new(), cause: None, advice: None }
    }

    pub(super) fn passed(says: impl Into<String>) -> Self {
        Self::new(Result::Passed, says)
    }

    pub(super) fn warned(says: impl Into<String>) -> Self {
        Self::new(Result::Warned, says)
    }

    pub(super) fn failed(says: impl Into<String>) -> Self {
        Self::new(Result::Failed, says)
    }

    /// The check does not apply, or cannot be judged yet.
    pub(super) fn skipped(because: impl Into<String>) -> Self {
        Self::new(Result::Skipped, because)
    }

    pub(super) fn cannot_tell(why: impl Into<String>) -> Self {
        Self::new(Result::CannotTell, why)
    }

    /// The label of its cause in the catalogue.
    pub(super) fn cause(mut self, label: &'static str) -> Self {
        debug_assert!(CAUSES.contains(&label), "{label}");
        self.cause = Some(label);
        self
    }

    pub(super) fn line(mut self, line: impl Into<String>) -> Self {
        self.evidence.push(line.into());
        self
    }

    pub(super) fn lines(mut self, lines: impl IntoIterator<Item = String>) -> Self {
        self.evidence.extend(lines);
        self
    }

    /// What the operator should do about the result.
    pub(super) fn advise(mut self, words: impl Into<String>) -> Self {
        self.advice = Some(Advice { words: words.into(), commands: Vec::new() });
        self
    }

    /// A command to what is to be done. What it has from a disk or a server stands in it by [`word`].
    pub(super) fn run(mut self, command: impl Into<String>) -> Self {
        let advice = self.advice.get_or_insert_with(|| Advice { words: String::new(), commands: Vec::new() });
        advice.commands.push(command.into());
        self
    }
}

/// A text of a disk or a server as one word of a command: a person pastes it as root, and a folder `/x;reboot` is a folder. No
/// word is an option, and none has in it what a terminal obeys.
pub(super) fn word(text: &str) -> String {
    let is_plain = |c: char| c.is_ascii_alphanumeric() || "-_./:@%+=,".contains(c);
    if text.starts_with(|c: char| c != '-' && is_plain(c)) && text.chars().all(is_plain) {
        return text.to_owned();
    }
    let odd = |(at, c): (usize, char)| if c.is_control() || at == 0 && c == '-' { '\u{fffd}' } else { c };
    let shown: String = text.chars().enumerate().map(odd).collect();
    format!("'{}'", shown.replace('\'', r"'\''"))
}

/// What was read, or the answer that it could not be.
macro_rules! known {
    ($reading:expr) => {
        match &$reading {
            $crate::checkup::Reading::Read(value) => value,
            $crate::checkup::Reading::CannotTell(why) => {
                return $crate::checkup::found::Found::cannot_tell(why.to_string())
            }
        }
    };
}
pub(super) use known;

/// The reason why the agent could not read a fact.
pub(super) fn why<T>(reading: &Reading<T>) -> Option<&str> {
    match reading {
        Reading::Read(_) => None,
        Reading::CannotTell(why) => Some(why),
    }
}

/// A number of bytes, formatted for people.
pub(super) fn bytes(count: u64) -> String {
    const UNITS: [&str; 5] = ["B", "KiB", "MiB", "GiB", "TiB"];
    let mut unit = 0;
    let (mut whole, mut rest) = (count, 0);
    while whole >= 1024 && unit + 1 < UNITS.len() {
        (whole, rest) = (whole / 1024, whole % 1024);
        unit += 1;
    }
    if unit == 0 || whole >= 10 {
        format!("{whole} {}", UNITS[unit])
    } else {
        format!("{whole}.{} {}", rest * 10 / 1024, UNITS[unit])
    }
}

/// A number of seconds, formatted for people.
pub(super) fn seconds(count: i64) -> String {
    match count.unsigned_abs() {
        s @ 0..=119 => format!("{s} s"),
        s @ 120..=7199 => format!("{} min", s / 60),
        s @ 7200..=172_799 => format!("{} h", s / 3600),
        s => format!("{} days", s / 86_400),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn text_of_a_disk_is_one_word_of_a_command_and_no_option() {
        for plain in ["10.0.0.1", "fd00::1", "fe80::1%eth0", "api.lan", "w-1.example", "/var/lib/rancher/k3s"]
        {
            assert_eq!(word(plain), plain);
        }
        for (text, shown) in [
            ("/x;touch owned;", "'/x;touch owned;'"),
            ("a'b$(c)", r"'a'\''b$(c)'"),
            ("~root", "'~root'"),
            ("a\u{1b}[2J\nb", "'a\u{fffd}[2J\u{fffd}b'"),
            ("--server=https://x", "'\u{fffd}-server=https://x'"),
            ("", "''"),
        ] {
            assert_eq!(word(text), shown);
        }
    }
}
