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
//! what could not be read or asked is [`Credentials::CannotTell`] with the reason. Nothing is changed.

use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
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
use crate::distribution::Distribution;
use crate::identity::Identity;
use crate::node_object::{NodeObject, Ready};
use crate::root::Root;
use crate::signing_request;
use crate::target::kubeconfig::{Client, Kubeconfig};
use crate::target::{Target, Token};

/// One question to the API server.
const ASK_WITHIN: Duration = Duration::from_secs(4);
/// A clock that is further away from the server's cannot judge a certificate's dates.
const CLOCK_OFF_MOST: Duration = Duration::from_secs(60);

/// Everything that is looked at.
#[derive(Debug)]
pub struct Inspector {
    root: Root,
    target: Target,
    node_name: NodeName,
    distribution: Box<dyn Distribution>,
    discovered: Mutex<Option<Discovered>>,
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
}

impl NodeThere {
    const fn only(node: NodeSeen) -> Self {
        Self { node, leaving: None, ready_message: String::new(), uid: None, is_uninitialized: false }
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
}

/// The API server did not answer, or somebody else did.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Unanswered {
    /// Why.
    pub why: String,
    /// Waiting does not mend it.
    pub lasts: bool,
}

/// What asking for the Node came to.
enum Asked {
    There(Box<NodeObject>),
    NotThere,
    /// The credentials were accepted, and may not read this Node.
    Forbidden,
    Refused,
    CannotTell(String),
}

impl Inspector {
    /// Looks at the machine below this root.
    pub fn new(root: Root, target: Target, node_name: NodeName, distribution: Box<dyn Distribution>) -> Self {
        let token = Mutex::new(target.token.clone());
        let (discovered, acting) = (Mutex::new(None), Arc::default());
        let removed = AtomicBool::new(false);
        Self { root, target, node_name, distribution, discovered, token, acting, removed }
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
        let leads = self.distribution.control_plane_marks().iter().any(|path| self.is_there(path));
        Machine {
            zone: None,
            watchdog: Device::Absent,
            may_reboot: false,
            role: if leads { Role::ControlPlane { spare: false } } else { Role::Worker },
            joining: !self.acting.load(Ordering::Relaxed) && self.is_joining(),
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
        if let Some(own) = self.own_authorities() {
            *kept = Some(own.clone());
            return Ok(own);
        }
        for endpoint in &self.target.endpoints {
            match discovery::discover(endpoint, &self.target, ASK_WITHIN).await {
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

    fn own_authorities(&self) -> Option<Discovered> {
        let own = Kubeconfig::read(&self.root, self.distribution.kubeconfig()).ok()??;
        let pinned = own.pins().iter().any(|pin| self.target.pins.contains(pin));
        pinned.then(|| {
            let mut roots = RootCertStore::empty();
            roots.add_parsable_certificates(own.authorities.iter().cloned());
            Discovered { roots: Arc::new(roots), authorities: own.authorities.clone(), date: None }
        })
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
            let api = Api::new(endpoint, Trust::Authorities(Arc::clone(&known.roots)), Shown::Nothing);
            let asked = match api {
                Ok(api) => api.get("/version", ASK_WITHIN).await,
                Err(failure) => Err(failure),
            };
            match asked {
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
        let clock_is_right = match self.check_api().await {
            Ok(answer) => is_right(answer.date.as_deref()),
            Err(_) => false,
        };
        let (credentials, asked) = self.credentials().await;
        let there = self.read_node(asked);
        let removed = self.removed.load(Ordering::Relaxed).then_some(Leaving::Removed);
        let leaving = removed.or(there.leaving);
        let awaits = match credentials {
            Credentials::Bootstrapping => self.awaited().await,
            _ => None,
        };
        let inspection = Inspection { node: there.node, credentials, leaving, clock_is_right };
        Found {
            inspection,
            ready_message: there.ready_message,
            node_uid: there.uid,
            is_uninitialized: there.is_uninitialized,
            awaits,
        }
    }

    /// What became of the request that a kubelet makes with its token.
    async fn awaited(&self) -> Option<String> {
        let begun = self.kubeconfig(self.distribution.bootstrap_kubeconfig()?).ok()??;
        let token = begun.token.as_ref().and_then(|token| Token::parse("bootstrap", token).ok())?;
        let known = self.authorities().await.ok()?;
        let trust = Trust::Authorities(known.roots);
        let api = Api::new(&begun.server, trust, Shown::Token(token.whole())).ok()?;
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
        let path = self.distribution.kubeconfig();
        match self.kubeconfig(path) {
            Err(cause) => unread(cause),
            // A kubelet writes its kubeconfig before it has its certificate; what it bootstraps with is there until then.
            Ok(own) => match self.begun(own.as_ref()) {
                Some(Err(cause)) => unread(cause),
                Some(Ok(Some(begun))) => self.of_begun(&begun).await,
                Some(Ok(None)) | None => match own {
                    Some(own) => self.of_joined(&own).await,
                    None => {
                        let broken = self.distribution.debris().iter().any(|path| self.is_there(path));
                        let credentials =
                            if broken { Credentials::Interrupted } else { Credentials::Nothing };
                        (credentials, self.ask_with_own_token().await)
                    }
                },
            },
        }
    }

    /// What its kubelet bootstraps with, where that counts: it has no certificate of its own, of this cluster or another.
    fn begun(&self, own: Option<&Kubeconfig>) -> Option<Result<Option<Kubeconfig>, String>> {
        if own.is_some_and(|own| self.is_foreign(own) || own.client.as_ref().is_some_and(Client::is_whole)) {
            return None;
        }
        self.distribution.bootstrap_kubeconfig().map(|path| self.kubeconfig(path))
    }

    fn is_foreign(&self, own: &Kubeconfig) -> bool {
        !self.target.pins.is_empty() && !own.pins().iter().any(|pin| self.target.pins.contains(pin))
    }

    /// An empty kubeconfig is what a join that broke off leaves: it says nothing.
    fn kubeconfig(&self, path: &str) -> Result<Option<Kubeconfig>, String> {
        let text = self.root.text(path).map_err(|failure| format!("{path} cannot be read: {failure}"))?;
        let Some(text) = text.filter(|text| !text.trim().is_empty()) else { return Ok(None) };
        Kubeconfig::parse(&self.root, &text).map(Some).map_err(|failure| format!("{path}: {failure}"))
    }

    async fn of_begun(&self, begun: &Kubeconfig) -> (Credentials, Asked) {
        let token = begun.token.as_ref().and_then(|token| Token::parse("bootstrap", token).ok());
        let asked = self.ask_with_token(token.as_ref()).await;
        let whole = self.distribution.needed().iter().all(|path| self.is_there(path));
        let credentials = match &asked {
            _ if !whole => Credentials::Interrupted,
            Asked::Refused => Credentials::TokenDead,
            Asked::There(_) | Asked::NotThere | Asked::Forbidden => Credentials::Bootstrapping,
            Asked::CannotTell(cause) => Credentials::CannotTell(cause.as_str().into()),
        };
        (credentials, asked)
    }

    async fn of_joined(&self, own: &Kubeconfig) -> (Credentials, Asked) {
        if self.is_foreign(own) {
            let whose = self.who_answers_there(own).await;
            return (Credentials::Foreign(whose), self.ask_with_own_token().await);
        }
        let Some(client) = own.client.as_ref().filter(|client| client.is_whole()) else {
            return (Credentials::Interrupted, self.ask_with_own_token().await);
        };
        let leaf = client.certificates().first().map(Presented::read);
        if leaf.is_some_and(|leaf| leaf.not_after_s <= now_s()) {
            return (Credentials::Expired, self.ask_with_own_token().await);
        }
        let asked = self.ask(own, Shown::Certificate(client)).await;
        let credentials = match &asked {
            Asked::There(_) | Asked::NotThere | Asked::Forbidden => Credentials::Accepted,
            Asked::Refused => Credentials::Refused,
            Asked::CannotTell(cause) => Credentials::CannotTell(cause.as_str().into()),
        };
        (credentials, asked)
    }

    /// Who stands where the other cluster did.
    async fn who_answers_there(&self, own: &Kubeconfig) -> ForeignCluster {
        let mut theirs = RootCertStore::empty();
        theirs.add_parsable_certificates(own.authorities.iter().cloned());
        let with =
            |roots: Arc<RootCertStore>| Api::new(&own.server, Trust::Authorities(roots), Shown::Nothing);
        if let Ok(api) = with(Arc::new(theirs))
            && api.get("/version", ASK_WITHIN).await.is_ok()
        {
            return ForeignCluster::Lives;
        }
        let Ok(ours) = self.authorities().await else { return ForeignCluster::Silent };
        match with(ours.roots) {
            Ok(api) if api.get("/version", ASK_WITHIN).await.is_ok() => ForeignCluster::Replaced,
            _ => ForeignCluster::Silent,
        }
    }

    /// The API server accepts the token.
    ///
    /// # Errors
    ///
    /// It refuses it. That nobody could be asked is no refusal.
    pub async fn try_token(&self, token: &Token) -> Result<(), String> {
        match self.ask_with_token(Some(token)).await {
            Asked::Refused => Err(format!(
                "the API server refuses the token {token}: it has expired, or was deleted; make one with: kubeadm token create"
            )),
            Asked::There(_) | Asked::NotThere | Asked::Forbidden | Asked::CannotTell(_) => Ok(()),
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

    async fn ask_with_own_token(&self) -> Asked {
        let token = self.token.lock().await.clone();
        self.ask_with_token(token.as_ref()).await
    }

    async fn ask_with_token(&self, token: Option<&Token>) -> Asked {
        let Some(token) = token else { return Asked::CannotTell("there is no token to ask with".to_owned()) };
        let known = match self.authorities().await {
            Ok(known) => known,
            Err(failure) => return Asked::CannotTell(failure.to_string()),
        };
        let mut last = Asked::CannotTell("no server is named".to_owned());
        for endpoint in &self.target.endpoints {
            let trust = Trust::Authorities(Arc::clone(&known.roots));
            last = self.ask_for_node(Api::new(endpoint, trust, Shown::Token(token.whole()))).await;
            if !matches!(last, Asked::CannotTell(_)) {
                break;
            }
        }
        last
    }

    async fn ask(&self, own: &Kubeconfig, shown: Shown<'_>) -> Asked {
        let mut roots = RootCertStore::empty();
        roots.add_parsable_certificates(own.authorities.iter().cloned());
        self.ask_for_node(Api::new(&own.server, Trust::Authorities(Arc::new(roots)), shown)).await
    }

    async fn ask_for_node(&self, api: Result<Api, ApiError>) -> Asked {
        let path = format!("/api/v1/nodes/{}", self.node_name);
        let answer = match api {
            Ok(api) => api.get(&path, ASK_WITHIN).await,
            Err(failure) => Err(failure),
        };
        match answer {
            Ok(answer) => of_answer(&answer),
            Err(failure) => Asked::CannotTell(failure.to_string()),
        }
    }

    fn read_node(&self, asked: Asked) -> NodeThere {
        let node = match asked {
            Asked::There(node) => node,
            Asked::NotThere => return NodeThere::only(NodeSeen::Absent),
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
        }
    }

    fn is_there(&self, path: &str) -> bool {
        // A file that may not be looked at is there.
        !matches!(self.root.at(path).symlink_metadata(), Err(failure) if failure.kind() == std::io::ErrorKind::NotFound)
    }

    /// Its kubelet runs; none when that cannot be told.
    pub fn kubelet_runs(&self) -> Option<bool> {
        let unit = self.distribution.unit();
        self.has_process(|arguments| {
            arguments
                .first()
                .and_then(|path| path.rsplit('/').next())
                .is_some_and(|name| unit.starts_with(name))
        })
    }

    /// A join or a reset runs on this machine: in the same file system, so that another container's is not taken for it.
    fn is_joining(&self) -> bool {
        self.has_process(|arguments| self.distribution.is_join(arguments)).unwrap_or(false)
    }

    fn has_process(&self, is_wanted: impl Fn(&[&str]) -> bool) -> Option<bool> {
        let own = std::fs::read_link("/proc/self/ns/mnt").ok();
        let Ok(Some(processes)) = self.root.names("/proc") else { return None };
        let numbers = processes.iter().filter(|name| name.bytes().all(|byte| byte.is_ascii_digit()));
        Some(numbers.into_iter().any(|process| {
            let Ok(Some(line)) = self.root.text(format!("/proc/{process}/cmdline")) else { return false };
            let arguments: Vec<&str> = line.split('\0').collect();
            let here = || std::fs::read_link(self.root.at(format!("/proc/{process}/ns/mnt"))).ok() == own;
            is_wanted(&arguments) && here()
        }))
    }
}

fn of_answer(answer: &Answer) -> Asked {
    match answer.status {
        200 => match serde_json::from_slice(&answer.body) {
            Ok(node) => Asked::There(Box::new(node)),
            Err(failure) => Asked::CannotTell(format!("its Node cannot be read: {failure}")),
        },
        404 => Asked::NotThere,
        401 => Asked::Refused,
        403 => Asked::Forbidden,
        status => Asked::CannotTell(format!("the API server answers {status}")),
    }
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
