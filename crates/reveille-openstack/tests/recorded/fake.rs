//! Keystone, Nova and Neutron in one process, as far as a test says: real sockets, real HTTP, recorded answers.
//!
//! A [`Fake`] listens on a free port of 127.0.0.1 and ends with its test. Every request is logged and handed to the
//! test's own function; what that leaves alone gets the answers of a quiet cloud: a login, version 2.100 of Nova, the
//! extensions of a current Neutron, and 404 for everything else, in the service's own words. Nothing here knows the
//! adapter.

use std::collections::BTreeMap;
use std::net::SocketAddr;
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Arc, Mutex};
use std::time::Duration;

use reveille_core::effect::{Call, Outcome};
use reveille_core::model::id::CloudName;
use reveille_core::model::instance::Mark;
use reveille_core::model::roster::Ownership;
use reveille_openstack::rights::RIGHTS;
use reveille_openstack::{CloudConfig, Environment, Project};
use tokio::io::{
    AsyncBufRead, AsyncBufReadExt, AsyncRead, AsyncReadExt, AsyncWrite, AsyncWriteExt, BufReader,
};
use tokio::net::TcpListener;
use tokio::task::JoinHandle;
use tokio_rustls::TlsAcceptor;
use tokio_rustls::rustls::ServerConfig;

pub(crate) const PASSWORD: &str = "canary-password-7f3a";
pub(crate) const TOKEN: &str = "canary-token-91bc";
pub(crate) const PROJECT_ID: &str = "0123456789abcdef0123456789abcdef";

/// A request as it arrived.
#[derive(Clone, Debug)]
pub(crate) struct Seen {
    pub(crate) method: String,
    /// Without the query.
    pub(crate) path: String,
    /// Decoded, in order, keys several times.
    pub(crate) query: Vec<(String, String)>,
    /// Names in lower case.
    pub(crate) headers: BTreeMap<String, String>,
    pub(crate) body: String,
}

impl Seen {
    /// `GET /v2.0/ports`.
    pub(crate) fn line(&self) -> String {
        format!("{} {}", self.method, self.path)
    }

    /// Method and path below the service's root, where rights are needed for it: not to log in, nor to ask for a version.
    pub(crate) fn below_the_service(&self) -> Option<(String, String)> {
        let roots = ["/identity", "/compute", "/network"];
        let path = roots.iter().find_map(|root| self.path.strip_prefix(root))?;
        // Some clouds have the project in the address of their compute service; there the rules need it as well.
        let path = path.replace(&format!("/{PROJECT_ID}/servers"), "/servers");
        let is_free = matches!(
            (self.method.as_str(), path.as_str()),
            ("POST", "/v3/auth/tokens") | ("GET", "/" | "/v2.1" | "/v2.1/")
        );
        (!is_free).then(|| (self.method.clone(), path))
    }

    pub(crate) fn query(&self, key: &str) -> Vec<&str> {
        self.query.iter().filter(|(k, _)| k == key).map(|(_, v)| v.as_str()).collect()
    }

    pub(crate) fn json(&self) -> serde_json::Value {
        serde_json::from_str(&self.body).unwrap()
    }
}

/// What goes back.
#[derive(Clone, Debug)]
pub(crate) struct Reply {
    pub(crate) status: u16,
    pub(crate) headers: Vec<(String, String)>,
    pub(crate) body: String,
    pub(crate) way: Way,
}

/// How it goes back.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Way {
    Whole,
    /// Never, and the connection stays open.
    Never,
    /// The connection closes without an answer.
    Dropped,
    /// The connection closes in the middle of the body.
    Cut,
}

pub(crate) fn reply(status: u16, body: impl Into<String>) -> Reply {
    Reply { status, headers: Vec::new(), body: body.into(), way: Way::Whole }
}

pub(crate) fn way(way: Way) -> Reply {
    Reply { way, ..reply(200, "{\"servers\": []}") }
}

impl Reply {
    pub(crate) fn with(mut self, name: &str, value: impl Into<String>) -> Self {
        self.headers.push((name.to_owned(), value.into()));
        self
    }
}

pub(crate) fn nova_fault(status: u16, fault: &str, message: &str) -> Reply {
    reply(status, format!(r#"{{"{fault}": {{"code": {status}, "message": "{message}"}}}}"#))
}

pub(crate) fn neutron_error(status: u16, kind: &str, message: &str) -> Reply {
    reply(
        status,
        format!(r#"{{"NeutronError": {{"type": "{kind}", "message": "{message}", "detail": ""}}}}"#),
    )
}

type Handler = Box<dyn FnMut(&Seen) -> Option<Reply> + Send>;

#[derive(Default)]
struct Shared {
    seen: Mutex<Vec<Seen>>,
    /// What no access rule allows.
    unallowed: Mutex<Vec<String>>,
    handler: Mutex<Option<Handler>>,
    logins: AtomicU64,
    token_life_s: AtomicU64,
}

pub(crate) struct Fake {
    pub(crate) address: SocketAddr,
    shared: Arc<Shared>,
    task: JoinHandle<()>,
}

impl Drop for Fake {
    fn drop(&mut self) {
        self.task.abort();
        let unallowed = std::mem::take(&mut *self.shared.unallowed.lock().unwrap());
        assert!(unallowed.is_empty() || std::thread::panicking(), "no access rule allows {unallowed:?}");
    }
}

impl Fake {
    pub(crate) async fn start(handler: impl FnMut(&Seen) -> Option<Reply> + Send + 'static) -> Self {
        Self::listen(None, handler).await
    }

    /// [`Self::start`] behind TLS.
    pub(crate) async fn start_tls(tls: Arc<ServerConfig>) -> Self {
        Self::listen(Some(TlsAcceptor::from(tls)), |_| None).await
    }

    async fn listen(
        tls: Option<TlsAcceptor>,
        handler: impl FnMut(&Seen) -> Option<Reply> + Send + 'static,
    ) -> Self {
        let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
        let address = listener.local_addr().unwrap();
        let origin = format!("{}://{address}", if tls.is_some() { "https" } else { "http" });
        let shared = Arc::new(Shared::default());
        *shared.handler.lock().unwrap() = Some(Box::new(handler));
        shared.token_life_s.store(3600, Ordering::SeqCst);
        let state = shared.clone();
        let task = tokio::spawn(async move {
            let mut connections = tokio::task::JoinSet::new();
            while let Ok((stream, _)) = listener.accept().await {
                let (tls, origin, state) = (tls.clone(), origin.clone(), state.clone());
                connections.spawn(async move {
                    match tls {
                        None => serve(stream, &origin, &state).await,
                        // A client that does not believe us hangs up in the middle.
                        Some(tls) => {
                            if let Ok(stream) = tls.accept(stream).await {
                                serve(stream, &origin, &state).await;
                            }
                        }
                    }
                });
            }
        });
        Self { address, shared, task }
    }

    /// From now on these answers.
    pub(crate) fn answer(&self, handler: impl FnMut(&Seen) -> Option<Reply> + Send + 'static) {
        *self.shared.handler.lock().unwrap() = Some(Box::new(handler));
    }

    pub(crate) fn set_token_life_s(&self, seconds: u64) {
        self.shared.token_life_s.store(seconds, Ordering::SeqCst);
    }

    /// Everything that was asked so far, and forgets it.
    pub(crate) fn take_seen(&self) -> Vec<Seen> {
        std::mem::take(&mut self.shared.seen.lock().unwrap())
    }

    /// [`Self::take_seen`] as `GET /path`, sorted: what runs at the same time has no order.
    pub(crate) fn take_lines(&self) -> Vec<String> {
        let mut lines: Vec<String> = self.take_seen().iter().map(Seen::line).collect();
        lines.sort();
        lines
    }

    pub(crate) fn environment(&self) -> Environment {
        Environment::of(self.variables())
    }

    pub(crate) fn variables(&self) -> Vec<(&'static str, String)> {
        vec![
            ("OS_AUTH_URL", format!("http://{}/identity", self.address)),
            ("OS_USERNAME", "reveille".to_owned()),
            ("OS_PASSWORD", PASSWORD.to_owned()),
            ("OS_USER_DOMAIN_NAME", "Default".to_owned()),
            ("OS_PROJECT_NAME", "prod".to_owned()),
            ("OS_PROJECT_DOMAIN_ID", "default".to_owned()),
            ("OS_API_TIMEOUT", "1".to_owned()),
        ]
    }

    pub(crate) async fn connect(&self) -> Project {
        let project = Project::connect_in(&config(), self.environment()).await.unwrap();
        self.take_seen();
        project
    }
}

pub(crate) fn config() -> CloudConfig {
    CloudConfig { name: CloudName::from("os"), cloud: "envvars".to_owned(), clouds_file: None }
}

/// What a quiet cloud answers.
fn quiet(seen: &Seen, origin: &str, shared: &Shared) -> Reply {
    match (seen.method.as_str(), seen.path.as_str()) {
        ("POST", "/identity/v3/auth/tokens") => login(origin, shared),
        ("GET", "/compute/v2.1/") => reply(
            200,
            r#"{"version": {"id": "v2.1", "status": "CURRENT", "version": "2.100", "min_version": "2.1"}}"#,
        ),
        ("GET", "/network/v2.0/extensions") => {
            reply(200, r#"{"extensions": [{"alias": "extraroute-atomic"}, {"alias": "revision-if-match"}]}"#)
        }
        ("GET", path) if path.starts_with("/network/v2.0/quotas/") => {
            reply(200, r#"{"quota": {"router_route": 30, "port": 500}}"#)
        }
        (_, path) if path.starts_with("/compute") => nova_fault(404, "itemNotFound", "not here"),
        _ => neutron_error(404, "ThingNotFound", "not here"),
    }
}

fn login(origin: &str, shared: &Shared) -> Reply {
    let number = shared.logins.fetch_add(1, Ordering::SeqCst) + 1;
    let life = shared.token_life_s.load(Ordering::SeqCst);
    let (minute, second) = (life / 60, life % 60);
    let expires = format!("2026-11-21T{:02}:{:02}:{second:02}.000000Z", 10 + minute / 60, minute % 60);
    let endpoint = |path: &str, interface: &str| {
        format!(
            r#"{{"interface": "{interface}", "region_id": "RegionOne", "region": "RegionOne", "url": "{origin}{path}"}}"#
        )
    };
    let service = |kind: &str, path: &str| {
        format!(
            r#"{{"type": "{kind}", "endpoints": [{}, {}]}}"#,
            endpoint("/wrong", "internal"),
            endpoint(path, "public")
        )
    };
    let body = format!(
        r#"{{"token": {{"issued_at": "2026-11-21T10:00:00.000000Z", "expires_at": "{expires}",
            "project": {{"id": "{PROJECT_ID}", "name": "prod", "domain": {{"id": "default"}}}},
            "catalog": [{}, {}, {}]}}}}"#,
        service("identity", "/identity"),
        service("compute", "/compute/v2.1"),
        service("network", "/network"),
    );
    reply(201, body).with("X-Subject-Token", format!("{TOKEN}-{number}"))
}

async fn serve(stream: impl AsyncRead + AsyncWrite, origin: &str, shared: &Shared) {
    let (read, mut write) = tokio::io::split(stream);
    let mut read = BufReader::new(read);
    while let Some(seen) = receive(&mut read).await {
        if let Some((method, path)) = seen.below_the_service()
            && !RIGHTS.iter().any(|right| right.is(&method, &path))
        {
            shared.unallowed.lock().unwrap().push(seen.line());
        }
        shared.seen.lock().unwrap().push(seen.clone());
        let given = shared.handler.lock().unwrap().as_mut().and_then(|handler| handler(&seen));
        let answer = given.unwrap_or_else(|| quiet(&seen, origin, shared));
        match answer.way {
            Way::Never => {
                tokio::time::sleep(Duration::from_secs(60)).await;
                return;
            }
            Way::Dropped => return,
            Way::Whole | Way::Cut => {}
        }
        let mut head = format!("HTTP/1.1 {} X\r\ncontent-length: {}\r\n", answer.status, answer.body.len());
        for (name, value) in &answer.headers {
            head.push_str(&format!("{name}: {value}\r\n"));
        }
        head.push_str("\r\n");
        let body = if answer.way == Way::Cut { &answer.body[..answer.body.len() / 2] } else { &answer.body };
        let sent = write.write_all(format!("{head}{body}").as_bytes()).await;
        if sent.is_err() || write.flush().await.is_err() || answer.way == Way::Cut {
            return;
        }
    }
}

async fn receive(read: &mut (impl AsyncBufRead + Unpin)) -> Option<Seen> {
    let mut line = String::new();
    if read.read_line(&mut line).await.ok()? == 0 {
        return None;
    }
    let mut words = line.split_whitespace();
    let (method, target) = (words.next()?.to_owned(), words.next()?.to_owned());
    let mut headers = BTreeMap::new();
    loop {
        let mut line = String::new();
        read.read_line(&mut line).await.ok()?;
        let Some((name, value)) = line.trim().split_once(':') else { break };
        headers.insert(name.trim().to_ascii_lowercase(), value.trim().to_owned());
    }
    let length = headers.get("content-length").and_then(|length| length.parse().ok()).unwrap_or(0);
    let mut body = vec![0; length];
    read.read_exact(&mut body).await.ok()?;
    let (path, query) = target.split_once('?').unwrap_or((&target, ""));
    let query = query.split('&').filter(|pair| !pair.is_empty()).map(|pair| {
        let (key, value) = pair.split_once('=').unwrap_or((pair, ""));
        (decoded(key), decoded(value))
    });
    Some(Seen {
        method,
        path: path.to_owned(),
        query: query.collect(),
        headers,
        body: String::from_utf8(body).ok()?,
    })
}

fn decoded(text: &str) -> String {
    let mut bytes = Vec::new();
    let mut rest = text.bytes();
    while let Some(byte) = rest.next() {
        match byte {
            b'+' => bytes.push(b' '),
            b'%' => {
                let hex = [rest.next().unwrap(), rest.next().unwrap()];
                bytes.push(u8::from_str_radix(std::str::from_utf8(&hex).unwrap(), 16).unwrap());
            }
            byte => bytes.push(byte),
        }
    }
    String::from_utf8(bytes).unwrap()
}

pub(crate) fn os() -> CloudName {
    CloudName::from("os")
}

/// What [`server`] carries.
pub(crate) fn owned() -> Ownership {
    let pool = Mark::Metadata("k8s-pool".into(), "workers".into());
    Ownership { cluster: Mark::Tag("k8s-cluster=prod".into()), pool: Some(pool) }
}

/// `GET /servers/a` with the marks of the pool, and with more fields.
pub(crate) fn server(more: &str) -> Reply {
    let marks = r#""tags": ["k8s-cluster=prod"], "metadata": {"k8s-pool": "workers"}"#;
    reply(200, format!(r#"{{"server": {{"id": "a", "name": "a", "status": "ACTIVE", {marks}{more}}}}}"#))
}

/// Performs `call` against a cloud that answers `handler`; gives the outcome and the requests that changed something.
pub(crate) async fn perform(
    call: &Call,
    handler: impl FnMut(&Seen) -> Option<Reply> + Send + 'static,
) -> (Outcome, Vec<Seen>) {
    let fake = Fake::start(handler).await;
    let outcome = fake.connect().await.perform(call).await;
    (outcome, fake.take_seen().into_iter().filter(|seen| seen.method != "GET").collect())
}

pub(crate) fn lines(seen: &[Seen]) -> Vec<String> {
    seen.iter().map(Seen::line).collect()
}
