//! What is there of this machine's join, read in one go: its files, and what the API server says to them.
//!
//! ```text
//!  kubelet.conf? ─no─▶ bootstrap-kubelet.conf? ─no─▶ nothing, or what a broken join left
//!      │                    └─ its token, tried
//!      └─ of the pinned authority? ─no─▶ who answers at its address: that cluster, nobody, or ours in its place
//!               └─ its certificate: dates, then tried: 401 is refused, a Node or 404 is accepted
//! ```
//!
//! Each credential is tried against the API server whose authority is pinned; nothing is concluded from a file alone, and
//! what could not be read or asked is [`Credentials::CannotTell`] with the reason. Nothing is changed. A machine that another way
//! of joining has joined is of another cluster here, whatever that one is worth.

mod asking;
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
use crate::signing_request;
use crate::target::kubeconfig::{Client, Kubeconfig};
use crate::target::{Endpoint, Target, TargetError, Token};

use asking::{Asked, answers, refused};

/// One question to the API server.
const ASK_WITHIN: Duration = Duration::from_secs(4);
/// A clock that is further away from the server's cannot judge a certificate's dates.
const CLOCK_OFF_MOST: Duration = Duration::from_secs(60);

/// Of a process's arguments this much is read: a kubelet and a join are known by the first few.
const ARGUMENTS_MAX: u64 = 4096;

/// Values of [`Inspector::clock`].
const CLOCK_UNKNOWN: u8 = 0;
const CLOCK_RIGHT: u8 = 1;
const CLOCK_WRONG: u8 = 2;

/// Everything that is looked at.
#[derive(Debug)]
pub struct Inspector {
    root: Root,
    target: Target,
    node_name: NodeName,
    distribution: Box<dyn Distribution>,
    marks: Marks,
    discovered: Mutex<Option<Discovered>>,
    /// What is asked again and again goes over these.
    lines: Lines,
    /// What the last answer to the kubelet's own question said of the clock.
    clock: AtomicU8,
    /// A moment at which the Node was not there, as the API server counts them.
    revision: Held<Option<String>>,
    /// The newest token that was had: what the target names may have died since.
    token: Mutex<Option<Token>>,
    /// A verb of ours is under way: the join that is seen is our own.
    acting: Arc<AtomicBool>,
    /// The server says that this machine was removed.
    removed: AtomicBool,
}

/// What a Node says.
struct NodeThere {
    node: NodeSeen,
    leaving: Option<Leaving>,
    ready_message: String,
    uid: Option<String>,
    is_uninitialized: bool,
    advice: String,
    /// It is not there, and was for a moment since the look before.
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

/// As long as this lives, a join that is seen on the machine is our own.
#[derive(Debug)]
pub struct Acting(Arc<AtomicBool>);

impl Drop for Acting {
    fn drop(&mut self) {
        self.0.store(false, Ordering::Relaxed);
    }
}

/// What was found, with what people want to know beside it.
#[derive(Clone, Debug)]
pub struct Found {
    /// For the agent.
    pub inspection: Inspection,
    /// What its Ready condition says, when there is one.
    pub ready_message: String,
    /// The uid of its Node.
    pub node_uid: Option<String>,
    /// The cloud controller has not initialised its Node.
    pub is_uninitialized: bool,
    /// What its kubelet waits for before it has a certificate, when that could be told.
    pub awaits: Option<String>,
    /// What a person has to do, where this is known better than by what was found.
    pub advice: String,
}

/// The API server did not answer, or somebody else did.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Unanswered {
    /// Why.
    pub why: String,
    /// Waiting does not mend it.
    pub lasts: bool,
}

impl Inspector {
    /// Looks at the machine below this root.
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

    /// What is to be joined.
    pub const fn target(&self) -> &Target {
        &self.target
    }

    /// What its Node is called.
    pub const fn node_name(&self) -> &NodeName {
        &self.node_name
    }

    /// How it joins.
    pub fn distribution(&self) -> &dyn Distribution {
        &*self.distribution
    }

    /// Where its files are.
    pub const fn root(&self) -> &Root {
        &self.root
    }

    /// What the machine is, as far as an agent asks.
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

    /// It runs a control plane, or a member of etcd, of whatever cluster.
    pub fn leads(&self) -> bool {
        self.marks.of_control_plane(&self.root).next().is_some()
    }

    /// Removes what a join that was killed left where things lie for a moment; a token is among it. One that is under way is not
    /// disturbed.
    pub fn clear_scratch(&self) {
        if self.is_joining() {
            return;
        }
        for path in self.distribution.scratch(&self.node_name) {
            // What cannot be removed is in the way of nobody: it is written over by the next join, and told by it.
            std::fs::remove_file(self.root.at(path)).ok();
        }
    }

    /// From now on, and until what is returned is dropped, a join that is seen is our own.
    pub fn acts(&self) -> Acting {
        self.acting.store(true, Ordering::Relaxed);
        Acting(Arc::clone(&self.acting))
    }

    /// The server says that this machine was removed on purpose.
    pub fn is_removed(&self) {
        self.removed.store(true, Ordering::Relaxed);
    }

    /// The server lets this machine in. A look that began before may still say otherwise.
    pub fn is_let_in(&self) {
        self.removed.store(false, Ordering::Relaxed);
    }

    /// The server has let it in since this look said that it was removed.
    pub fn is_outdated(&self, found: &Inspection) -> bool {
        found.leaving == Some(Leaving::Removed) && !self.removed.load(Ordering::Relaxed)
    }

    /// The cluster's authorities: from the kubeconfig that the kubelet has, when it is of the pinned ones, or else discovered.
    ///
    /// # Errors
    ///
    /// They cannot be learned.
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
            match discovery::discover(&*self.distribution, endpoint, &self.target, ASK_WITHIN).await {
                Ok(found) => {
                    *kept = Some(found.clone());
                    return Ok(found);
                }
                Err(failure) => last = failure,
            }
        }
        Err(last)
    }

    /// What is known of the authority may be outdated: it is learned anew.
    pub async fn forget_authorities(&self) {
        *self.discovered.lock().await = None;
    }

    /// The API server answers, whatever it says. Its authority is the pinned one.
    ///
    /// # Errors
    ///
    /// Why it did not.
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

    /// Looks.
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

    /// What became of the request that a kubelet makes with its token.
    async fn awaited(&self) -> Option<String> {
        let begun = self.distribution.begun(&self.root, self.kubelet_runs() == Some(true)).ok()??;
        let (server, token) = (begun.requests_at?, begun.token?);
        let known = self.authorities().await.ok()?;
        let trust = Trust::Authorities(known.roots);
        let api = Api::new(&server, trust, Shown::Token(token.whole())).ok()?;
        let answer = api.get(signing_request::PATH, ASK_WITHIN).await.ok()?;
        let requests = signing_request::read(&answer.body, self.node_name.as_str());
        requests
            .ok()
            .filter(|_| answer.status == 200)
            .and_then(|requests| signing_request::awaited(&requests))
    }

    async fn credentials(&self) -> (Credentials, Asked) {
        let unread =
            |cause: String| (Credentials::CannotTell(cause.as_str().into()), Asked::CannotTell(cause));
        if let Some(path) = self.marks.of_others(self.distribution.kind(), &self.root).next()
            && let Ok(Some(other)) = self.kubeconfig(path)
        {
            // It was joined by other means: nothing of those is undone here, whatever is left of that cluster.
            let lives = self.answers_as(&other, std::slice::from_ref(&other.server)).await;
            let whose = if lives { ForeignCluster::Lives } else { ForeignCluster::Silent };
            return (Credentials::Foreign(whose), self.ask_with_own_token().await);
        }
        match self.kubeconfig(&self.distribution.kubeconfig()) {
            Err(cause) => unread(cause),
            // A kubelet writes its kubeconfig before it has its certificate; what it bootstraps with is there until then.
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

    /// What its kubelet bootstraps with, where that counts: it has no certificate of its own, of this cluster or another.
    fn begun(&self, own: Option<&Kubeconfig>) -> Result<Option<Begun>, TargetError> {
        if own.is_some_and(|own| self.is_foreign(own) || own.client.as_ref().is_some_and(Client::is_whole)) {
            return Ok(None);
        }
        self.distribution.begun(&self.root, self.kubelet_runs() == Some(true))
    }

    fn is_foreign(&self, own: &Kubeconfig) -> bool {
        self.distribution.is_of_target(&self.root, &self.target, own) == Some(false)
    }

    /// An empty kubeconfig is what a join that broke off leaves: it says nothing.
    fn kubeconfig(&self, path: &str) -> Result<Option<Kubeconfig>, String> {
        let text = self.root.text(path).map_err(|failure| format!("{path} cannot be read: {failure}"))?;
        let Some(text) = text.filter(|text| !text.trim().is_empty()) else { return Ok(None) };
        Kubeconfig::parse(&self.root, &text).map(Some).map_err(|failure| format!("{path}: {failure}"))
    }

    async fn of_begun(&self, begun: &Begun) -> (Credentials, Asked) {
        let mut asked = self.ask_with_token(begun.token.as_ref()).await;
        if let (Asked::Guarded, Some(token)) = (&asked, &begun.token)
            && let Some(taken) = self.ask_for_name(token).await
        {
            asked = taken;
        }
        let credentials = match &asked {
            _ if !begun.is_whole => Credentials::Interrupted,
            Asked::Refused => Credentials::TokenDead,
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
            // Its kubelet has not been heard for a while: an agent that is not let in at its start looks like this.
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
            Asked::CannotTell(cause) => Credentials::CannotTell(cause.as_str().into()),
        };
        (credentials, asked)
    }

    /// What is of no use, or that its agent fetches another at its next start.
    fn or_renewed(&self, credentials: Credentials) -> Credentials {
        if self.distribution.registers_by_token() { Credentials::Renewable } else { credentials }
    }

    /// Its Node is gone or silent. What its certificate is worth to whoever lets agents in goes with the Node, and older agents
    /// show none at their start: what counts is the token that the agent will show then.
    async fn of_unregistered(&self) -> Credentials {
        let begun = match self.distribution.begun(&self.root, true) {
            Ok(begun) => begun.and_then(|begun| begun.token),
            Err(failure) => return Credentials::CannotTell(failure.to_string().into()),
        };
        match self.ask_with_token(begun.as_ref()).await {
            Asked::Refused => Credentials::TokenDead,
            _ => Credentials::Accepted,
        }
    }

    /// Who stands where the other cluster did. It is gone only when at each place where it is known to have stood ours answers.
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

    /// At one of these places answers the cluster that this kubeconfig is of.
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

    /// The API server accepts the token.
    ///
    /// # Errors
    ///
    /// It refuses it. That nobody could be asked is no refusal.
    pub async fn try_token(&self, token: &Token) -> Result<(), String> {
        if let (Some(wanted), Some(said)) = (self.target.bundle, token.bundle())
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
            | Asked::CannotTell(_) => Ok(()),
        }
    }

    /// From now on the Node is asked for with this token, where nothing better is there.
    pub async fn take_token(&self, token: Token) {
        *self.token.lock().await = Some(token);
    }

    /// The newest token that was had.
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
            Asked::Refused | Asked::Forbidden | Asked::CannotTell(_) => {
                return NodeThere::only(NodeSeen::CannotTell);
            }
        };
        let (ready, message) = node.ready();
        let another = Identity::read(&self.root).is_anothers(node.info());
        let seen = match ready {
            // Its kubelet has not been heard for a while: what a machine that is gone left. Whoever joins takes it over.
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

    /// Its kubelet runs; none when that cannot be told.
    pub fn kubelet_runs(&self) -> Option<bool> {
        self.has_process(|words| self.distribution.is_kubelet(words))
    }

    /// A join or a reset runs on this machine: in the same file system, so that another container's is not taken for it.
    pub(crate) fn is_joining(&self) -> bool {
        self.has_process(is_join).unwrap_or(false)
    }

    fn has_process(&self, is_wanted: impl Fn(&[&str]) -> bool) -> Option<bool> {
        let own = Root::default().link("/proc/self/ns/mnt");
        let Ok(Some(processes)) = self.root.names("/proc") else { return None };
        Some(processes.iter().filter_map(|name| name.parse::<u32>().ok()).any(|process| {
            let is_roots = || is_roots(&self.root, process);
            let here = || self.root.link(format!("/proc/{process}/ns/mnt")) == own;
            // A user's arguments are not read: many processes with megabytes of them, or some that lie where a read never
            // ends, would hold up the agent. It is asked again whose it is: its number may be another's since, or it a user's.
            is_roots() && here() && is_wanted(&words(&self.arguments(process))) && is_roots()
        }))
    }

    /// The first of its arguments; none where it ended.
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

/// The server's clock and ours agree. A server that sends no date is believed to agree.
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
