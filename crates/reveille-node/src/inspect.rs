//! The state of this machine's join, read in one pass: its files, and the API server's answers to them.
//!
//! ```text
//!  kubelet.conf? ─no─▶ bootstrap-kubelet.conf? ─no─▶ nothing, or what a broken join left
//!      │                    └─ its token, tried
//!      └─ of the pinned authority? ─no─▶ who answers at its address: that cluster, no server, or ours in its place
//!               └─ its certificate: dates, then tried: 401 is refused, a Node or 404 is accepted
//! ```
//!
//! Each credential is tried against the API server with the pinned CA. The inspector concludes nothing from a file alone;
//! what it could not read or ask is [`Credentials::CannotTell`] with the reason. It changes nothing. A machine that
//! another distribution joined counts as one of another cluster, whatever the state of that cluster.

mod asking;
mod found_token;
mod history;

use std::io::Read as _;
use std::sync::atomic::{AtomicBool, AtomicU8, Ordering};
use std::sync::{Arc, Mutex as Held};
use std::time::{Duration, SystemTime};

use reveille_agent::model::{
    Credentials, Device, ForeignCluster, Inspection, Leaving, Machine, NodeSeen, Role,
};
use reveille_core::model::id::NodeName;
use tokio::sync::Mutex;
use tokio_rustls::rustls::RootCertStore;

use crate::api::{Answer, Api, ApiError, Shown, Trust};
use crate::certificate::Presented;
use crate::discovery::{self, Discovered, DiscoveryError};
use crate::distribution::{Begun, Distribution, Marks, is_join};
use crate::identity::Identity;
use crate::lines::{Key, Lines};
use crate::node_object::Ready;
use crate::probe::is_roots;
use crate::root::Root;
use crate::target::kubeconfig::{Client, Kubeconfig};
use crate::target::{Endpoint, Target, TargetError, Token};

use asking::{Asked, answers, refused};

/// The time limit of one request to the API server.
const ASK_WITHIN: Duration = Duration::from_secs(4);
/// A clock that differs more from the server's cannot judge the dates of a certificate.
const CLOCK_OFF_MOST: Duration = Duration::from_secs(60);

/// The length of a process's arguments that is read: the first few identify a kubelet and a join.
const ARGUMENTS_MAX: u64 = 4096;

/// Values of [`Inspector::clock`].
const CLOCK_UNKNOWN: u8 = 0;
const CLOCK_RIGHT: u8 = 1;
const CLOCK_WRONG: u8 = 2;

/// Everything that the inspector needs.
#[derive(Debug)]
pub struct Inspector {
    root: Root,
    target: Target,
    node_name: NodeName,
    distribution: Box<dyn Distribution>,
    marks: Marks,
    discovered: Mutex<Option<Discovered>>,
    /// The kept connections, for requests that repeat.
    lines: Lines,
    /// The state of the clock, by the Date of the last answer to the kubelet's credentials.
    clock: AtomicU8,
    /// A revision of the API server at which the Node did not exist.
    revision: Held<Option<String>>,
    /// The newest token: the target's token may have expired since.
    token: Mutex<Option<Token>>,
    /// A verb of the agent is under way: a join that is seen is its own.
    acting: Arc<AtomicBool>,
    /// The server says that this machine was removed.
    removed: AtomicBool,
}

/// What the API server says about the Node.
struct NodeThere {
    node: NodeSeen,
    leaving: Option<Leaving>,
    ready_message: String,
    uid: Option<String>,
    is_uninitialized: bool,
    advice: String,
    /// The Node does not exist, and existed for a moment since the last inspection.
    came_and_went: bool,
}

impl NodeThere {
    const fn only(node: NodeSeen) -> Self {
        Self {
            node,
            leaving: None,
            ready_message: String::new(),
            uid: None,
            is_uninitialized: false,
            advice: String::new(),
            came_and_went: false,
        }
    }
}

/// As long as this lives, a join that is seen on the machine is the agent's own.
#[derive(Debug)]
pub struct Acting(Arc<AtomicBool>);

impl Drop for Acting {
    fn drop(&mut self) {
        self.0.store(false, Ordering::Relaxed);
    }
}

/// The result of an inspection, with further facts for operators.
#[derive(Clone, Debug)]
pub struct Found {
    /// The part for the agent.
    pub inspection: Inspection,
    /// The message of the Ready condition, when there is one.
    pub ready_message: String,
    /// The uid of the Node.
    pub node_uid: Option<String>,
    /// The cloud controller has not initialised the Node.
    pub is_uninitialized: bool,
    /// What the kubelet waits for before it has a certificate, where that is known.
    pub awaits: Option<String>,
    /// What an operator has to do, where more is known than the result says.
    pub advice: String,
}

/// The API server did not answer, or another server did.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Unanswered {
    /// The reason.
    pub why: String,
    /// Waiting does not help.
    pub lasts: bool,
}

impl Inspector {
    /// An inspector of the machine below this root.
    pub fn new(root: Root, target: Target, node_name: NodeName, distribution: Box<dyn Distribution>) -> Self {
        let token = Mutex::new(target.token.clone());
        let (discovered, acting) = (Mutex::new(None), Arc::default());
        let removed = AtomicBool::new(false);
        let marks = Marks::of_machine(&root);
        let (lines, clock) = (Lines::default(), AtomicU8::new(CLOCK_UNKNOWN));
        Self {
            marks,
            root,
            target,
            node_name,
            distribution,
            discovered,
            lines,
            clock,
            revision: Held::default(),
            token,
            acting,
            removed,
        }
    }

    /// The cluster to join.
    pub const fn target(&self) -> &Target {
        &self.target
    }

    /// The name of the Node.
    pub const fn node_name(&self) -> &NodeName {
        &self.node_name
    }

    /// The distribution that joins the machine.
    pub fn distribution(&self) -> &dyn Distribution {
        &*self.distribution
    }

    /// The place of the machine's files.
    pub const fn root(&self) -> &Root {
        &self.root
    }

    /// The machine's state, as far as an agent needs it.
    pub fn machine(&self) -> Machine {
        let leads = self.leads();
        Machine {
            zone: None,
            watchdog: Device::Absent,
            may_reboot: false,
            role: if leads { Role::ControlPlane { spare: false } } else { Role::Worker },
            joining: !self.acting.load(Ordering::Relaxed) && self.is_joining(),
        }
    }

    /// True when the machine runs a control plane, or a member of etcd, of any cluster, or when that cannot be told. The
    /// configuration is read each time: it may have changed since this agent started.
    pub fn leads(&self) -> bool {
        Marks::of_machine(&self.root).may_lead(&self.root)
    }

    /// Removes the temporary files of a killed join; a token is among them. Does not disturb a join that is under way.
    pub fn clear_scratch(&self) {
        if self.is_joining() {
            return;
        }
        for path in self.distribution.scratch(&self.node_name) {
            // A file that cannot be removed harms no other join: the next join overwrites it, or reports it.
            std::fs::remove_file(self.root.at(path)).ok();
        }
    }

    /// From now on, and until the returned value is dropped, a join that is seen is the agent's own.
    pub fn acts(&self) -> Acting {
        self.acting.store(true, Ordering::Relaxed);
        Acting(Arc::clone(&self.acting))
    }

    /// Notes that the server says that this machine was removed.
    pub fn is_removed(&self) {
        self.removed.store(true, Ordering::Relaxed);
    }

    /// Notes that the server admits this machine. An inspection that began before may still say otherwise.
    pub fn is_let_in(&self) {
        self.removed.store(false, Ordering::Relaxed);
    }

    /// True when the server has admitted the machine since this inspection found it removed.
    pub fn is_outdated(&self, found: &Inspection) -> bool {
        found.leaving == Some(Leaving::Removed) && !self.removed.load(Ordering::Relaxed)
    }

    /// The cluster's CAs: from the kubelet's kubeconfig when they are the pinned ones, otherwise discovered.
    ///
    /// # Errors
    ///
    /// The CAs cannot be learned.
    pub async fn authorities(&self) -> Result<Discovered, DiscoveryError> {
        let mut kept = self.discovered.lock().await;
        if let Some(known) = &*kept {
            return Ok(known.clone());
        }
        let mut last = DiscoveryError::NothingToKnowItBy;
        if let Some(own) = self.distribution.kept_authorities(&self.root, &self.target) {
            *kept = Some(own.clone());
            return Ok(own);
        }
        for endpoint in &self.target.endpoints {
            let answer = discovery::ask(endpoint, self.distribution.authority_path(), ASK_WITHIN).await;
            let judged = |answer| self.distribution.judge(endpoint, &self.target, &answer);
            match answer.map_err(DiscoveryError::from).and_then(judged) {
                Ok(found) => {
                    *kept = Some(found.clone());
                    return Ok(found);
                }
                Err(failure) => last = failure,
            }
        }
        Err(last)
    }

    /// Drops the known CAs, which may be outdated: the next use learns them again.
    pub async fn forget_authorities(&self) {
        *self.discovered.lock().await = None;
    }

    /// Succeeds when the API server answers, whatever it says. Its CA is the pinned one.
    ///
    /// # Errors
    ///
    /// The reason why it did not answer.
    pub async fn check_api(&self) -> Result<Answer, Unanswered> {
        let undiscovered =
            |failure: DiscoveryError| Unanswered { why: failure.to_string(), lasts: failure.lasts() };
        let known = self.authorities().await.map_err(undiscovered)?;
        let mut last = Unanswered { why: "no server is named".to_owned(), lasts: true };
        for endpoint in &self.target.endpoints {
            let key = Key::of(endpoint, &known.authorities, None);
            let trust = || Trust::Authorities(Arc::clone(&known.roots));
            let make = || Api::new(endpoint, trust(), Shown::Nothing);
            match self.lines.get(key, make, "/version", ASK_WITHIN).await {
                Ok(answer) => return Ok(answer),
                Err(failure) => {
                    let lasts = matches!(failure, ApiError::Untrusted { .. });
                    if lasts {
                        self.forget_authorities().await;
                    }
                    last = Unanswered { why: failure.to_string(), lasts };
                }
            }
        }
        Err(last)
    }

    /// Inspects the join.
    pub async fn inspect(&self) -> Found {
        self.clock.store(CLOCK_UNKNOWN, Ordering::Relaxed);
        let (credentials, asked) = self.credentials().await;
        let clock_is_right = match self.clock.load(Ordering::Relaxed) {
            CLOCK_UNKNOWN => self.check_api().await.is_ok_and(|answer| is_right(answer.date.as_deref())),
            clock => clock == CLOCK_RIGHT,
        };
        let there = self.read_node(asked);
        if credentials != Credentials::Accepted || there.node != NodeSeen::Absent {
            self.forget_revision();
        }
        let removed = self.removed.load(Ordering::Relaxed).then_some(Leaving::Removed);
        let leaving = removed.or(there.leaving);
        let awaits = match credentials {
            Credentials::Bootstrapping => self.awaited().await,
            _ => None,
        };
        let inspection = Inspection {
            node: there.node,
            came_and_went: there.came_and_went,
            credentials,
            leaving,
            clock_is_right,
        };
        Found {
            inspection,
            ready_message: there.ready_message,
            node_uid: there.uid,
            is_uninitialized: there.is_uninitialized,
            awaits,
            advice: there.advice,
        }
    }

    async fn credentials(&self) -> (Credentials, Asked) {
        let unread =
            |cause: String| (Credentials::CannotTell(cause.as_str().into()), Asked::CannotTell(cause));
        if let Some(path) = self.marks.of_others(self.distribution.kind(), &self.root).next()
            && let Ok(Some(other)) = self.kubeconfig(path)
        {
            // Another distribution joined the machine: the agent undoes nothing of that join, whatever is left of that
            // cluster.
            let lives = self.answers_as(&other, std::slice::from_ref(&other.server)).await;
            let whose = if lives { ForeignCluster::Lives } else { ForeignCluster::Silent };
            return (Credentials::Foreign(whose), self.ask_with_own_token().await);
        }
        match self.kubeconfig(&self.distribution.kubeconfig()) {
            Err(cause) => unread(cause),
            // A kubelet writes its kubeconfig before it has its certificate; the bootstrap kubeconfig exists until then.
            Ok(own) => match (self.begun(own.as_ref()), own) {
                (Err(failure), _) => unread(failure.to_string()),
                (Ok(Some(begun)), _) => self.of_begun(&begun).await,
                (Ok(None), Some(own)) => self.of_joined(&own).await,
                (Ok(None), None) => {
                    let broken = self.distribution.debris().iter().any(|path| self.root.has(path));
                    let credentials = if broken { Credentials::Interrupted } else { Credentials::Nothing };
                    (credentials, self.ask_with_own_token().await)
                }
            },
        }
    }

    /// The bootstrap credentials of the kubelet, where they count: it has no certificate of its own, of this cluster or
    /// another.
    fn begun(&self, own: Option<&Kubeconfig>) -> Result<Option<Begun>, TargetError> {
        if own.is_some_and(|own| self.is_foreign(own) || own.client.as_ref().is_some_and(Client::is_whole)) {
            return Ok(None);
        }
        self.distribution.begun(&self.root, self.kubelet_runs() == Some(true))
    }

    fn is_foreign(&self, own: &Kubeconfig) -> bool {
        self.distribution.is_of_target(&self.root, &self.target, own) == Some(false)
    }

    /// A broken join leaves an empty kubeconfig, which says nothing.
    fn kubeconfig(&self, path: &str) -> Result<Option<Kubeconfig>, String> {
        let text = self.root.text(path).map_err(|failure| format!("{path} cannot be read: {failure}"))?;
        let Some(text) = text.filter(|text| !text.trim().is_empty()) else { return Ok(None) };
        Kubeconfig::parse(&self.root, &text).map(Some).map_err(|failure| format!("{path}: {failure}"))
    }

    async fn of_begun(&self, begun: &Begun) -> (Credentials, Asked) {
        let asked = self.ask_with_found(begun).await;
        let credentials = match &asked {
            _ if !begun.is_whole => Credentials::Interrupted,
            Asked::Refused | Asked::OfAnother => Credentials::TokenDead,
            Asked::There(_)
            | Asked::NotThere(_)
            | Asked::Forbidden
            | Asked::Guarded
            | Asked::NameTaken(_) => {
                let runs = self.kubelet_runs() != Some(false);
                if runs { Credentials::Bootstrapping } else { Credentials::Unstarted }
            }
            Asked::CannotTell(cause) => Credentials::CannotTell(cause.as_str().into()),
        };
        (credentials, asked)
    }

    async fn of_joined(&self, own: &Kubeconfig) -> (Credentials, Asked) {
        if self.is_foreign(own) {
            let credentials = match self.who_answers_there(own).await {
                ForeignCluster::Replaced => self.or_renewed(Credentials::Foreign(ForeignCluster::Replaced)),
                whose => Credentials::Foreign(whose),
            };
            return (credentials, self.ask_with_own_token().await);
        }
        let Some(client) = own.client.as_ref().filter(|client| client.is_whole()) else {
            return (self.or_renewed(Credentials::Interrupted), self.ask_with_own_token().await);
        };
        let leaf = client.certificates().first().map(Presented::read);
        if leaf.is_some_and(|leaf| leaf.not_after_s <= now_s()) {
            return (self.or_renewed(Credentials::Expired), self.ask_with_own_token().await);
        }
        let mut asked = self.ask(own, client).await;
        if let Asked::NotThere(came_and_went) = &mut asked {
            *came_and_went = self.came_and_went(own, client).await;
        }
        let credentials = match &asked {
            Asked::NotThere(_) if self.distribution.registers_by_token() => self.of_unregistered().await,
            // The API server has not heard from the kubelet for a while: an agent that is refused at its start looks like
            // this.
            Asked::There(node)
                if self.distribution.registers_by_token() && matches!(node.ready().0, Ready::Unknown) =>
            {
                self.of_unregistered().await
            }
            Asked::There(_)
            | Asked::NotThere(_)
            | Asked::Forbidden
            | Asked::Guarded
            | Asked::NameTaken(_) => Credentials::Accepted,
            Asked::Refused => self.or_renewed(Credentials::Refused),
            Asked::OfAnother => Credentials::CannotTell("only a token was tried".into()),
            Asked::CannotTell(cause) => Credentials::CannotTell(cause.as_str().into()),
        };
        (credentials, asked)
    }

    /// `Renewable` where the k3s or RKE2 agent fetches other credentials at its next start; otherwise the given state.
    fn or_renewed(&self, credentials: Credentials) -> Credentials {
        if self.distribution.registers_by_token() { Credentials::Renewable } else { credentials }
    }

    /// The Node is gone or silent. The supervisor accepts the certificate only as long as the Node exists, and older agents
    /// show no certificate at their start. So the token counts that the agent will show then.
    async fn of_unregistered(&self) -> Credentials {
        let begun = match self.distribution.begun(&self.root, true) {
            Ok(begun) => begun,
            Err(failure) => return Credentials::CannotTell(failure.to_string().into()),
        };
        match begun {
            Some(begun) if self.refuse_found(&begun).await => Credentials::TokenDead,
            // A token of another cluster is left to the agent's next start: its configuration may lead there.
            _ => Credentials::Accepted,
        }
    }

    /// Which server answers at the other cluster's addresses. The other cluster is gone only when this machine's cluster
    /// answers at each of its known addresses.
    async fn who_answers_there(&self, own: &Kubeconfig) -> ForeignCluster {
        let stood_at = self.distribution.stood_at(&self.root, own);
        if self.answers_as(own, &stood_at).await {
            return ForeignCluster::Lives;
        }
        let Ok(ours) = self.authorities().await else { return ForeignCluster::Silent };
        for endpoint in &stood_at {
            if !answers(endpoint, &ours.roots).await {
                return ForeignCluster::Silent;
            }
        }
        if stood_at.is_empty() { ForeignCluster::Silent } else { ForeignCluster::Replaced }
    }

    /// True when the cluster of this kubeconfig answers at one of these addresses.
    async fn answers_as(&self, other: &Kubeconfig, places: &[Endpoint]) -> bool {
        let mut theirs = RootCertStore::empty();
        theirs.add_parsable_certificates(other.authorities.iter().cloned());
        let theirs = Arc::new(theirs);
        for endpoint in places {
            if answers(endpoint, &theirs).await {
                return true;
            }
        }
        false
    }

    /// Succeeds when the API server accepts the token.
    ///
    /// # Errors
    ///
    /// The API server refuses the token. A missing answer is not a refusal.
    pub async fn try_token(&self, token: &Token) -> Result<(), String> {
        let wanted = match self.target.bundle {
            Some(wanted) => Some(wanted),
            None => self.authorities().await.ok().and_then(|known| known.bundle),
        };
        if let (Some(wanted), Some(said)) = (wanted, token.bundle())
            && wanted != said
        {
            return Err(format!(
                "the token {token} is of another cluster than the one that is joined: it says {said}, not {wanted}"
            ));
        }
        match self.ask_with_token(Some(token)).await {
            Asked::Refused => Err(refused(self.distribution.kind(), token)),
            Asked::There(_)
            | Asked::NotThere(_)
            | Asked::NameTaken(_)
            | Asked::Forbidden
            | Asked::Guarded
            | Asked::OfAnother
            | Asked::CannotTell(_) => Ok(()),
        }
    }

    /// From now on the inspector asks for the Node with this token, where no better credential exists.
    pub async fn take_token(&self, token: Token) {
        *self.token.lock().await = Some(token);
    }

    /// The newest token.
    pub async fn token(&self) -> Option<Token> {
        self.token.lock().await.clone()
    }

    fn read_node(&self, asked: Asked) -> NodeThere {
        let node = match asked {
            Asked::There(node) => node,
            Asked::NotThere(came_and_went) => {
                return NodeThere { came_and_went, ..NodeThere::only(NodeSeen::Absent) };
            }
            Asked::NameTaken(advice) => {
                return NodeThere { advice, ..NodeThere::only(NodeSeen::AnotherMachines) };
            }
            Asked::Guarded => return NodeThere::only(NodeSeen::Guarded),
            Asked::Refused | Asked::OfAnother | Asked::Forbidden | Asked::CannotTell(_) => {
                return NodeThere::only(NodeSeen::CannotTell);
            }
        };
        let (ready, message) = node.ready();
        let another = Identity::read(&self.root).is_anothers(node.info());
        let seen = match ready {
            // The API server has not heard from this kubelet for a while: the Node is left over from a machine that is
            // gone, and a joining machine takes it over.
            Ready::Unknown if another => return NodeThere::only(NodeSeen::Absent),
            _ if another => NodeSeen::AnotherMachines,
            Ready::Yes => NodeSeen::Ready,
            Ready::No | Ready::Unknown => NodeSeen::NotReady,
        };
        NodeThere {
            node: seen,
            leaving: node.leaving().filter(|_| !another),
            ready_message: message.to_owned(),
            uid: Some(node.uid().to_owned()),
            is_uninitialized: node.is_uninitialized(),
            advice: String::new(),
            came_and_went: false,
        }
    }

    /// True when the kubelet runs; none when that cannot be read.
    pub fn kubelet_runs(&self) -> Option<bool> {
        self.has_process(|words| self.distribution.is_kubelet(words))
    }

    /// True when a join or a reset runs on this machine: in the same file system, so that a join in another container
    /// does not count.
    pub(crate) fn is_joining(&self) -> bool {
        self.has_process(is_join).unwrap_or(false)
    }

    fn has_process(&self, is_wanted: impl Fn(&[&str]) -> bool) -> Option<bool> {
        let own = Root::default().link("/proc/self/ns/mnt");
        let Ok(Some(processes)) = self.root.names("/proc") else { return None };
        Some(processes.iter().filter_map(|name| name.parse::<u32>().ok()).any(|process| {
            let is_roots = || is_roots(&self.root, process);
            let here = || self.root.link(format!("/proc/{process}/ns/mnt")) == own;
            // Arguments of a user's processes are not read: many processes with megabytes of them, or arguments on a file
            // system where a read hangs, would delay the agent. The owner is checked again afterwards: another process
            // may have the number since.
            is_roots() && here() && is_wanted(&words(&self.arguments(process))) && is_roots()
        }))
    }

    /// The first arguments of a process; none where it has ended.
    fn arguments(&self, process: u32) -> String {
        let mut bytes = Vec::new();
        if let Ok(Some(file)) = self.root.file(format!("/proc/{process}/cmdline")) {
            file.take(ARGUMENTS_MAX).read_to_end(&mut bytes).ok();
        }
        String::from_utf8_lossy(&bytes).into_owned()
    }
}

/// Programs that hide their arguments leave one text with spaces in their place.
fn words(line: &str) -> Vec<&str> {
    line.split(['\0', ' ']).filter(|word| !word.is_empty()).collect()
}

/// True when the clocks of the server and this machine agree. Without a Date header they count as equal.
fn is_right(date: Option<&str>) -> bool {
    let Some(theirs) = date.and_then(|date| httpdate::parse_http_date(date).ok()) else { return true };
    let ours = SystemTime::now();
    let off = ours.duration_since(theirs).or_else(|_| theirs.duration_since(ours));
    off.is_ok_and(|off| off <= CLOCK_OFF_MOST)
}

fn now_s() -> i64 {
    let since = SystemTime::now().duration_since(SystemTime::UNIX_EPOCH);
    since.map_or(0, |since| i64::try_from(since.as_secs()).unwrap_or(i64::MAX))
}

#[cfg(test)]
pub(crate) mod tests;
