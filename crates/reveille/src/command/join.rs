//! `join`: reads the target of the join, runs the agent until the join ends, and prints events as they happen.
//!
//! For people the command prints a line for each event; for programs it prints one document at the end. Nothing is decided here.

use std::path::Path;
use std::sync::Arc;

use anyhow::anyhow;
use reveille_agent::Report as AgentReport;
use reveille_agent::checkup::{self, Check, Result as Came};
use reveille_agent::model::{Credentials, NodeSeen};
use reveille_core::model::stage::Stage;
use reveille_core::model::time::{Span, Time};
use reveille_node::distribution;
use reveille_node::driver::{Begin, Driver, Said};
use reveille_node::executor::{Executor, JoinSettings, TokenError, Tokens};
use reveille_node::identity::Identity;
use reveille_node::inspect::{Found, Inspector, Unanswered};
use reveille_node::join::{self, Ended};
use reveille_node::memory_file::MemoryFile;
use reveille_node::probe::Probe;
use reveille_node::root::{self, Root};
use reveille_node::target::{Arguments, Kind, Target, TargetError, Token};
use reveille_wire::report::{JoinEnded, JoinEvent, JoinReport, Report};

use crate::cli::Output;
use crate::cli::failure::{Failure, printable};
use crate::cli::join::Join;
use crate::render;

use super::{Answer, Context};

/// The most events that the document at the end holds.
const EVENTS_KEPT: usize = 1_000;

/// The token of the command line. A token in a file is read again each time, because an operator or a tool may have renewed it.
struct Given {
    kind: Kind,
    arguments: Arguments,
    token: Option<Token>,
}

impl Tokens for Given {
    async fn token(&self) -> Result<Token, TokenError> {
        match self.arguments.token(self.kind)? {
            Some(token) => Ok(token),
            None => self.token.clone().ok_or(TokenError::None),
        }
    }
}

/// `join`.
pub(super) async fn join(context: &Context, args: &Join) -> Result<Answer, Failure> {
    let root = Root::default();
    let arguments = args.target.arguments();
    let target = Target::find(&arguments, &root).map_err(refused)?.ok_or_else(|| {
        let next = match arguments.kind(&root) {
            Kind::Kubeadm => {
                "paste the line that this prints on a control plane: kubeadm token create --print-join-command".to_owned()
            }
            kind => format!("name the server, HOST:PORT, and give --token-file with what /var/lib/rancher/{kind}/server/node-token on it holds"),
        };
        Failure::usage(anyhow!("no cluster given")).next(next)
    })?;
    let began = reveille_node::driver::now();
    let look = async || checkup::checkup(&Probe::of_this_machine().facts(Ok(Some(&target))).await);
    let checks = look().await;
    let driver = driver(args, arguments, target.clone(), root)?;
    let mut tale = Tale::new(context, args.verbose, driver.1);
    tale.look_over(began, &checks);
    let ended = join::join(driver.0, args.within.into(), |at, said| tale.hear(at, said)).await;
    let took_s = u64::try_from(reveille_node::driver::now().since(began).ms / 1000).unwrap_or(0);
    if matches!(ended, Ended::GaveUp(_) | Ended::Late(_)) {
        tale.look_back(reveille_node::driver::now(), &look().await);
    }
    tale.end(&ended, took_s, args.stay)
}

fn refused(error: TargetError) -> Failure {
    let write = error.write.clone();
    Failure::usage(error).next(format!("write {write}"))
}

fn driver(
    args: &Join,
    arguments: Arguments,
    target: Target,
    root: Root,
) -> Result<(Driver<Given>, String), Failure> {
    let name = target.node_name.clone().or_else(|| Identity::read(&root).node_name());
    let name = name.ok_or_else(|| {
        Failure::usage(anyhow!("this host has no name")).next("give one to the node: --node-name NAME")
    })?;
    let way = distribution::of(target.kind, &root).map_err(refused)?;
    let config = args.target.config().map(|path| read(path.as_path())).transpose()?;
    let (settings, _) = join::settings(args.stay).check().map_err(Failure::usage)?;
    let (kind, token) = (target.kind, target.token.clone());
    let inspector = Arc::new(Inspector::new(root, target, name.clone(), way));
    let settings_of_joins = JoinSettings {
        config,
        ignored_checks: args.ignore_preflight_errors.clone(),
        copies: args.memory.join("before-reset"),
        systemctl: None,
    };
    let executor = Executor::new(Arc::clone(&inspector), Given { kind, arguments, token }, settings_of_joins);
    let memory = MemoryFile::within(&args.memory);
    let driver = Driver::new(Begin { inspector, executor, memory, config: settings, peer_set: None });
    let driver = driver.map_err(|error| {
        Failure::cannot_tell(error).next("join as root, or give --memory a folder that can be written")
    })?;
    Ok((driver, name.to_string()))
}

fn read(path: &Path) -> Result<String, Failure> {
    root::named(path)
        .and_then(root::text_of)
        .map_err(|error| Failure::usage(anyhow!("cannot read {}: {error}", path.display())))
}

/// The events, each printed once.
struct Tale<'a> {
    context: &'a Context,
    verbose: bool,
    node: String,
    events: Vec<JoinEvent>,
    api: Option<Option<Unanswered>>,
    seen: Option<String>,
    /// Why the last attempt failed.
    failed: String,
    /// What the operator has to do, where that is known.
    advice: String,
}

impl<'a> Tale<'a> {
    fn new(context: &'a Context, verbose: bool, node: String) -> Self {
        let (failed, advice) = (String::new(), String::new());
        Self { context, verbose, node, events: Vec::new(), api: None, seen: None, failed, advice }
    }

    /// Prints what blocks the join before it begins. The join begins all the same: the operator needs these lines if it
    /// fails, and some problems pass on their own.
    fn look_over(&mut self, at: Time, checks: &[Check]) {
        let of_the_machine = |check: &&Check| {
            // A machine that has not joined cannot have what exists only after a join.
            !matches!(check.id, "client-certificate" | "kubelet") && check.stage <= Stage::KubeletStart
        };
        let looked: Vec<&Check> = checks.iter().filter(of_the_machine).collect();
        let failed: Vec<&&Check> = looked.iter().filter(|check| check.result == Came::Failed).collect();
        let passed = looked.iter().filter(|check| check.result == Came::Passed).count();
        self.tell(
            at,
            "check",
            format!("{passed} of {} checks passed, {} failed", looked.len(), failed.len()),
        );
        failed.into_iter().for_each(|check| self.tell_check(at, check));
    }

    /// Prints the problems of all stages after a join failed; the first one causes the others.
    fn look_back(&mut self, at: Time, checks: &[Check]) {
        checks
            .iter()
            .filter(|check| check.result == Came::Failed)
            .for_each(|check| self.tell_check(at, check));
    }

    fn tell_check(&mut self, at: Time, check: &Check) {
        let advice = check.advice.as_ref().map(|advice| format!("; {}", advice.words));
        self.tell(at, "check", format!("{}: {}{}", check.id, check.says, advice.unwrap_or_default()));
    }

    fn hear(&mut self, at: Time, said: &Said) {
        match said {
            Said::Api(silent) if self.api.as_ref() != Some(silent) => {
                self.api = Some(silent.clone());
                let text = silent.as_ref().map_or("the API server answers", |unanswered| &unanswered.why);
                let text = text.to_owned();
                self.tell(at, "api", text);
            }
            Said::Found(found) => {
                let text = describe(found);
                found.advice.clone_into(&mut self.advice);
                if self.seen.as_ref() != Some(&text) {
                    self.seen = Some(text.clone());
                    self.tell(at, "node", text);
                }
            }
            // An operator who waits for a join does not need to know what this process may not do.
            Said::Report(
                AgentReport::CannotReboot(_)
                | AgentReport::CanReboot
                | AgentReport::ApiAnswers
                | AgentReport::WatchdogUnproved,
            )
            | Said::Api(_)
            | Said::Account(_) => {}
            Said::Report(report) => self.tell(at, "agent", report.to_string()),
            Said::Undone(_, why) | Said::MemoryFailed(why) => {
                why.clone_into(&mut self.failed);
                self.tell(at, "agent", why.clone());
            }
            Said::Line(line) if self.verbose => self.tell(at, "program", line.clone()),
            Said::Line(_) => {}
        }
    }

    fn tell(&mut self, at: Time, of: &str, text: String) {
        if self.context.common.output == Output::Table {
            let clock = self.context.paper.clock(at, at);
            super::say(&format!("{clock}  {of:<7} {}\n", printable(&text)));
        }
        if self.events.len() < EVENTS_KEPT {
            self.events.push(JoinEvent { at, of: of.to_owned(), text });
        }
    }

    fn end(self, ended: &Ended, took_s: u64, stay: Span) -> Result<Answer, Failure> {
        let (ended, why) = match ended {
            Ended::Joined => (JoinEnded::Joined, None),
            Ended::LeftAlone(_) if !self.advice.is_empty() => {
                (JoinEnded::LeftAlone, Some(self.advice.clone()))
            }
            Ended::LeftAlone(blocker) => (JoinEnded::LeftAlone, Some(blocker.to_string())),
            Ended::GaveUp(attempts) => {
                let why = format!("{attempts} attempts came to nothing; the last: {}", self.failed);
                (JoinEnded::GaveUp, Some(why))
            }
            Ended::Stranger(why) => (JoinEnded::Stranger, Some(why.clone())),
            Ended::Late(last) => (JoinEnded::Late, Some(last.clone())),
        };
        let stay_s = u64::try_from(stay.ms / 1000).unwrap_or(0);
        let report = JoinReport { node: self.node, ended, why, took_s, stay_s, events: self.events };
        let exit = render::join::exit(&report);
        let page = render::join::page(&report);
        let text = self.context.print(Report::JoinReport(report), |_| page)?;
        Ok(Answer { text, exit })
    }
}

fn describe(found: &Found) -> String {
    let node = match found.inspection.node {
        NodeSeen::Ready => "its node is Ready".to_owned(),
        NodeSeen::NotReady => format!("its node is not Ready: {}", found.ready_message),
        NodeSeen::Absent => "its node is not in the API".to_owned(),
        NodeSeen::AnotherMachines => "the node of its name is another machine's".to_owned(),
        NodeSeen::Guarded => "its node is not for a token to see".to_owned(),
        NodeSeen::CannotTell => "it is unknown whether its Node exists".to_owned(),
    };
    let credentials = match &found.inspection.credentials {
        Credentials::Accepted => String::new(),
        Credentials::Nothing => "nothing of a join is on the machine".to_owned(),
        Credentials::Bootstrapping => {
            found.awaits.clone().unwrap_or_else(|| "its kubelet asks for a certificate".to_owned())
        }
        Credentials::Unstarted => "a join broke off before it started the kubelet".to_owned(),
        Credentials::Interrupted => "a join broke off before its kubelet had what it needs".to_owned(),
        Credentials::TokenDead => "its bootstrap token is refused".to_owned(),
        Credentials::Renewable => {
            "its certificate is of no use, and its agent fetches another at its next start".to_owned()
        }
        Credentials::Expired => "its kubelet's certificate has expired".to_owned(),
        Credentials::Refused => "its kubelet's certificate is refused".to_owned(),
        Credentials::Foreign(_) => "its kubelet belongs to another cluster".to_owned(),
        Credentials::CannotTell(why) => format!("its credentials could not be tried: {why}"),
    };
    let leaving = found.inspection.leaving.map(|leaving| leaving.to_string()).unwrap_or_default();
    let parts = [node, credentials, leaving];
    let said: Vec<&str> = parts.iter().map(String::as_str).filter(|part| !part.is_empty()).collect();
    said.join("; ")
}
