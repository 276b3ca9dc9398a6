//! The machine's stage, of fourteen, as its agent sees it; pure.
//!
//! ```text
//!  what was said of API, join and plan ─▶ stands at this stage, for this reason ─▶ reports: left, entered, tried again
//! ```
//!
//! An agent that runs has passed all stages up to the boot. The current stage is the first one that is not passed, so a
//! machine that loses its Node goes back and reports it. A new reason counts as one more try. A report's number is the
//! agent's clock or one more than the last number, whichever is higher, so that no two runs of an agent use one number.
//! The sender of the reports raises the numbers where the server has a higher one.

use reveille_agent::effect::{Report, Verb};
use reveille_agent::model::{Credentials, NodeSeen};
use reveille_core::model::stage::Stage;
use reveille_core::model::time::Time;
use reveille_wire::agent::StageWord;
use reveille_wire::agent::frame::{StageReport, StageStep, Trouble};
use reveille_wire::agent::text::{Sentence, Word};

use crate::driver::Said;
use crate::inspect::Found;

/// The machine's stage, with the reason.
#[derive(Clone, Debug)]
pub(super) struct Progress {
    stage: Stage,
    trouble: Option<Trouble>,
    attempts: u32,
    told: Option<(Stage, Option<Trouble>)>,
    seq: u64,
    api_silent: Option<(String, bool)>,
    joined: bool,
}

impl Default for Progress {
    fn default() -> Self {
        Self {
            stage: Stage::OsBoot,
            trouble: None,
            attempts: 0,
            told: None,
            seq: 0,
            api_silent: None,
            joined: false,
        }
    }
}

impl Progress {
    /// The agent runs, so the machine has booted.
    pub(super) fn runs(&mut self) {
        self.goes_to(Stage::FetchConfig, None);
    }

    /// The agent has a plan.
    pub(super) fn has_plan(&mut self) {
        if self.stage <= Stage::FetchConfig {
            self.goes_to(Stage::Trust, None);
        }
    }

    /// The machine does not get further: the reason.
    pub(super) fn stands(&mut self, code: &str, text: &str) {
        self.goes_to(self.stage, trouble(code, text));
    }

    /// Takes in an event on the machine.
    pub(super) fn hear(&mut self, said: &Said) {
        match said {
            Said::Api(Some(unanswered)) => {
                self.api_silent = Some((unanswered.why.clone(), unanswered.lasts));
                if self.stage <= Stage::Authenticate {
                    let code = if unanswered.lasts { "API_NOT_TRUSTED" } else { "API_UNREACHABLE" };
                    self.goes_to(Stage::Trust, trouble(code, &unanswered.why));
                }
            }
            Said::Api(None) => self.api_silent = None,
            Said::Found(found) => self.found(found),
            Said::Undone(verb, why) => {
                let code = match verb {
                    Verb::RequestToken => "TOKEN_REFUSED",
                    Verb::Join | Verb::Bootstrap => "JOIN_FAILED",
                    Verb::Reset => "RESET_FAILED",
                    Verb::RestartKubelet => "RESTART_FAILED",
                    Verb::RebootByWatchdog | Verb::RebootBySystem => "REBOOT_FAILED",
                };
                self.stands(code, why);
            }
            Said::MemoryFailed(why) => self.stands("MEMORY_FAILED", why),
            Said::Report(Report::Blocked(blocker)) => self.stands("LEFT_ALONE", &blocker.to_string()),
            Said::Report(report @ Report::GaveUp(_)) => self.stands("GAVE_UP", &report.to_string()),
            Said::Report(Report::Back) => {
                self.joined = true;
                self.goes_to(Stage::Stay, None);
            }
            Said::Report(_) | Said::Line(_) | Said::Account(_) => {}
        }
    }

    fn found(&mut self, found: &Found) {
        let seen = &found.inspection;
        let (stage, why) = match (&seen.credentials, seen.node) {
            (_, NodeSeen::Ready) => (Stage::Stay, None),
            (_, NodeSeen::NotReady) => not_ready(found),
            (_, NodeSeen::AnotherMachines) if !found.advice.is_empty() => {
                (Stage::Register, trouble("NAME_TAKEN", &found.advice))
            }
            (_, NodeSeen::AnotherMachines) => {
                (Stage::Register, trouble("NAME_TAKEN", "the node of its name is another machine's"))
            }
            (Credentials::Accepted, _) => (
                Stage::Register,
                trouble("NOT_REGISTERED", "its kubelet is let in, and its node is not there"),
            ),
            (Credentials::Bootstrapping, _) => {
                let awaits = found.awaits.as_deref().unwrap_or("its kubelet asks for a certificate");
                (Stage::Approve, trouble("NOT_APPROVED", awaits))
            }
            (Credentials::Unstarted, _) => (
                Stage::KubeletStart,
                trouble("KUBELET_NOT_STARTED", "a join broke off before it started the kubelet"),
            ),
            (Credentials::Interrupted, _) => (
                Stage::KubeletStart,
                trouble("JOIN_BROKE_OFF", "a join broke off before its kubelet could go on"),
            ),
            (Credentials::TokenDead, _) => {
                (Stage::Authenticate, trouble("TOKEN_REFUSED", "its bootstrap token is refused"))
            }
            (Credentials::Renewable, _) => (
                Stage::Authenticate,
                trouble("CERTIFICATE_RENEWED", "its agent fetches another certificate at its next start"),
            ),
            (Credentials::Expired, _) => {
                (Stage::Authenticate, trouble("CERTIFICATE_EXPIRED", "its kubelet's certificate has expired"))
            }
            (Credentials::Refused, _) => {
                (Stage::Authenticate, trouble("CERTIFICATE_REFUSED", "its kubelet's certificate is refused"))
            }
            (Credentials::Foreign(_), _) => {
                (Stage::Trust, trouble("ANOTHER_CLUSTER", "its kubelet belongs to another cluster"))
            }
            (Credentials::Nothing, _) => (Stage::Authenticate, self.kept_trouble(Stage::Authenticate)),
            // The agent cannot determine the stage; the last known stage is the best guess.
            (Credentials::CannotTell(_), _) => return,
        };
        self.goes_to(stage, why);
    }

    /// The reason of the current stage, if the stage stays the same.
    fn kept_trouble(&self, stage: Stage) -> Option<Trouble> {
        if self.stage == stage { self.trouble.clone() } else { None }
    }

    fn goes_to(&mut self, stage: Stage, trouble: Option<Trouble>) {
        if stage != self.stage {
            self.attempts = 0;
        }
        if stage < self.stage {
            self.joined = false;
        }
        if trouble.is_some() && trouble != self.trouble {
            self.attempts = self.attempts.saturating_add(1);
        }
        (self.stage, self.trouble) = (stage, trouble);
    }

    /// The machine's stage.
    pub(super) const fn stage(&self) -> StageWord {
        StageWord(self.stage)
    }

    /// The machine's Node exists and has stayed.
    pub(super) const fn has_joined(&self) -> bool {
        self.joined
    }

    /// The reports since the last call.
    pub(super) fn reports(&mut self, now: Time) -> Vec<StageReport> {
        let is = (self.stage, self.trouble.clone());
        if self.told.as_ref() == Some(&is) {
            return Vec::new();
        }
        let before = self.told.replace(is).map(|(stage, _)| stage);
        let mut out = Vec::new();
        match before {
            Some(before) if before == self.stage => out.push(self.report(now, before, StageStep::Tried)),
            Some(before) => {
                if before < self.stage {
                    out.push(self.report(now, before, StageStep::Left));
                }
                out.push(self.report(now, self.stage, StageStep::Entered));
            }
            None => out.push(self.report(now, self.stage, StageStep::Entered)),
        }
        if before.is_some_and(|before| before != self.stage) && self.trouble.is_some() {
            out.push(self.report(now, self.stage, StageStep::Tried));
        }
        out
    }

    fn report(&mut self, now: Time, stage: Stage, step: StageStep) -> StageReport {
        self.seq = (self.seq + 1).max(u64::try_from(now.ms).unwrap_or(0));
        let here = stage == self.stage && step == StageStep::Tried;
        StageReport {
            seq: self.seq,
            stage: StageWord(stage),
            step,
            attempts: if here { self.attempts } else { 0 },
            error: if here { self.trouble.clone() } else { None },
            stamp: super::stamp(now),
        }
    }
}

fn trouble(code: &str, text: &str) -> Option<Trouble> {
    Some(Trouble { code: Word::cut(code), text: Sentence::cut(text) })
}

/// A Node that exists and is not Ready waits for its cloud, for its network, or for its kubelet.
fn not_ready(found: &Found) -> (Stage, Option<Trouble>) {
    let message = &found.ready_message;
    if found.is_uninitialized {
        return (Stage::CloudInitNode, trouble("NOT_INITIALIZED", "its cloud has not initialised its node"));
    }
    let of_network = ["NetworkPluginNotReady", "cni plugin", "network plugin"];
    if of_network.iter().any(|sign| message.contains(sign)) {
        return (Stage::Cni, trouble("NO_POD_NETWORK", message));
    }
    (Stage::Ready, trouble("NOT_READY", message))
}

#[cfg(test)]
mod tests {
    use super::*;
    use reveille_agent::model::Inspection;

    fn found(node: NodeSeen, credentials: Credentials, message: &str) -> Said {
        Said::Found(Box::new(Found {
            inspection: Inspection {
                node,
                came_and_went: false,
                credentials,
                leaving: None,
                clock_is_right: true,
            },
            ready_message: message.to_owned(),
            node_uid: None,
            is_uninitialized: false,
            awaits: None,
            advice: String::new(),
        }))
    }

    fn told(progress: &mut Progress) -> Vec<String> {
        let reports = progress.reports(Time::from_ms(5));
        let line = |report: StageReport| {
            let error = report.error.map(|error| format!(" {}", error.code.as_str())).unwrap_or_default();
            format!("{:?} {}{error}", report.step, report.stage.0.name())
        };
        reports.into_iter().map(line).collect()
    }

    #[test]
    fn join_progress_is_told_by_stage_and_lost_node_reverts_it() {
        let mut progress = Progress::default();
        progress.runs();
        assert_eq!(told(&mut progress), ["Entered fetch-config"]);
        progress.stands("WAIT_PLAN", "no plan yet");
        assert_eq!(told(&mut progress), ["Tried fetch-config WAIT_PLAN"]);
        assert_eq!(told(&mut progress), Vec::<String>::new(), "nothing is said twice");
        progress.has_plan();
        assert_eq!(told(&mut progress), ["Left fetch-config", "Entered trust"]);
        progress.hear(&found(NodeSeen::CannotTell, Credentials::Nothing, ""));
        assert_eq!(told(&mut progress), ["Left trust", "Entered authenticate"]);
        progress.hear(&Said::Undone(Verb::RequestToken, "none".to_owned()));
        assert_eq!(told(&mut progress), ["Tried authenticate TOKEN_REFUSED"]);
        progress.hear(&found(NodeSeen::CannotTell, Credentials::Nothing, ""));
        assert_eq!(
            told(&mut progress),
            Vec::<String>::new(),
            "a look that finds nothing new takes no reason away"
        );
        progress.hear(&found(NodeSeen::NotReady, Credentials::Accepted, "cni plugin not initialized"));
        let wanted = ["Left authenticate", "Entered cni", "Tried cni NO_POD_NETWORK"];
        assert_eq!(told(&mut progress), wanted);
        progress.hear(&found(NodeSeen::Ready, Credentials::Accepted, ""));
        progress.hear(&Said::Report(Report::Back));
        assert_eq!(told(&mut progress), ["Left cni", "Entered stay"]);
        assert!(progress.has_joined());
        progress.hear(&found(NodeSeen::Absent, Credentials::Accepted, ""));
        assert_eq!(told(&mut progress), ["Entered register", "Tried register NOT_REGISTERED"]);
        assert!(!progress.has_joined());
    }

    #[test]
    fn numbers_only_grow() {
        let mut progress = Progress::default();
        progress.runs();
        let first = progress.reports(Time::from_ms(100))[0].seq;
        progress.has_plan();
        let then: Vec<u64> = progress.reports(Time::from_ms(7)).iter().map(|report| report.seq).collect();
        assert!(first == 100 && then == [101, 102], "{first} {then:?}");
    }
}
