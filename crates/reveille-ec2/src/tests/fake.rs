//! EC2, Auto Scaling and STS in one process, as far as a test says: real sockets, real HTTP.
//!
//! A [`Fake`] listens on a free port of 127.0.0.1 and ends with its test. Every request is logged and handed to the test's own
//! function; what that leaves alone gets the answers of an empty account. Nothing here knows the adapter.

use std::collections::BTreeMap;
use std::net::SocketAddr;
use std::sync::{Arc, Mutex};
use std::time::Duration;

use aws_config::{BehaviorVersion, ConfigLoader};
use aws_types::os_shim_internal::{Env, Fs};
use reveille_core::effect::{Call, Outcome};
use reveille_core::model::id::CloudName;
use reveille_core::model::instance::Mark;
use reveille_core::model::roster::Ownership;
use tokio::io::{AsyncBufReadExt, AsyncReadExt, AsyncWriteExt, BufReader};
use tokio::net::{TcpListener, TcpStream};
use tokio::task::JoinHandle;

use super::words;
use crate::client::Pace;
use crate::{Account, Ec2Config};

pub(crate) const KEY: &str = "AKIAEXAMPLE";
pub(crate) const SECRET: &str = "canary-secret-7f3a";

/// A request as it arrived.
#[derive(Clone, Debug)]
pub(crate) struct Seen {
    pub(crate) line: String,
    /// Names in lower case.
    pub(crate) headers: BTreeMap<String, String>,
    /// The form's fields, decoded.
    pub(crate) form: BTreeMap<String, String>,
}

impl Seen {
    /// `DescribeInstances`; empty where it is no request of the Query protocol.
    pub(crate) fn action(&self) -> &str {
        self.get("Action")
    }

    pub(crate) fn get(&self, name: &str) -> &str {
        self.form.get(name).map_or("", String::as_str)
    }

    /// The form without what every request has.
    pub(crate) fn asked(&self) -> String {
        let own = self.form.iter().filter(|(name, _)| !matches!(name.as_str(), "Action" | "Version"));
        own.map(|(name, value)| format!("{name}={value}")).collect::<Vec<_>>().join(" ")
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
}

pub(crate) fn reply(status: u16, body: impl Into<String>) -> Reply {
    Reply { status, headers: Vec::new(), body: body.into(), way: Way::Whole }
}

pub(crate) fn way(way: Way) -> Reply {
    Reply { way, ..reply(200, "") }
}

impl Reply {
    pub(crate) fn with(mut self, name: &str, value: impl Into<String>) -> Self {
        self.headers.push((name.to_owned(), value.into()));
        self
    }
}

/// A refusal in EC2's words.
pub(crate) fn fault(status: u16, code: &str) -> Reply {
    let error = format!("<Error><Code>{code}</Code><Message>said of {code}</Message></Error>");
    reply(status, format!("<Response><Errors>{error}</Errors><RequestID>req-1</RequestID></Response>"))
}

type Handler = Box<dyn FnMut(&Seen) -> Option<Reply> + Send>;

#[derive(Default)]
struct Shared {
    seen: Mutex<Vec<Seen>>,
    handler: Mutex<Option<Handler>>,
}

pub(crate) struct Fake {
    pub(crate) address: SocketAddr,
    shared: Arc<Shared>,
    task: JoinHandle<()>,
}

impl Drop for Fake {
    fn drop(&mut self) {
        self.task.abort();
    }
}

impl Fake {
    pub(crate) async fn start(handler: impl FnMut(&Seen) -> Option<Reply> + Send + 'static) -> Self {
        let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
        let address = listener.local_addr().unwrap();
        let shared = Arc::new(Shared::default());
        *shared.handler.lock().unwrap() = Some(Box::new(handler));
        let state = shared.clone();
        let task = tokio::spawn(async move {
            let mut connections = tokio::task::JoinSet::new();
            while let Ok((stream, _)) = listener.accept().await {
                let state = state.clone();
                connections.spawn(async move { serve(stream, &state).await });
            }
        });
        Self { address, shared, task }
    }

    /// From now on these answers.
    pub(crate) fn answer(&self, handler: impl FnMut(&Seen) -> Option<Reply> + Send + 'static) {
        *self.shared.handler.lock().unwrap() = Some(Box::new(handler));
    }

    /// Everything that was asked so far, and forgets it.
    pub(crate) fn take_seen(&self) -> Vec<Seen> {
        std::mem::take(&mut self.shared.seen.lock().unwrap())
    }

    /// [`Self::take_seen`] by action, sorted: what runs at the same time has no order.
    pub(crate) fn take_actions(&self) -> Vec<String> {
        let mut actions: Vec<String> = self.take_seen().iter().map(|seen| seen.action().to_owned()).collect();
        actions.sort();
        actions
    }

    pub(crate) fn url(&self) -> String {
        format!("http://{}", self.address)
    }

    pub(crate) async fn connect(&self) -> Account {
        let env =
            [("AWS_ACCESS_KEY_ID", KEY), ("AWS_SECRET_ACCESS_KEY", SECRET), ("AWS_REGION", "eu-central-1")];
        let config = Ec2Config { endpoint: Some(self.url().parse().unwrap()), ..config() };
        let account = Account::connect_by(&config, loader(&env, &[]), pace()).await.unwrap();
        self.take_seen();
        account
    }
}

pub(crate) fn config() -> Ec2Config {
    Ec2Config { deadline: Some(Duration::from_secs(2)), ..Ec2Config::new(CloudName::from("aws"), "prod") }
}

/// Settings that come from these variables and files and from nowhere else.
pub(crate) fn loader(env: &[(&str, &str)], files: &[(&str, &str)]) -> ConfigLoader {
    let files = files.iter().map(|(path, text)| ((*path).to_owned(), text.as_bytes().to_vec()));
    aws_config::defaults(BehaviorVersion::latest())
        .env(Env::from_slice(env))
        .fs(Fs::from_map(files.collect()))
}

pub(crate) fn pace() -> Pace {
    Pace {
        wait_base: Duration::from_millis(2),
        stop_within: Duration::from_millis(200),
        stop_look_every: Duration::from_millis(5),
    }
}

async fn serve(stream: TcpStream, shared: &Shared) {
    let (read, mut write) = stream.into_split();
    let mut read = BufReader::new(read);
    while let Some(seen) = receive(&mut read).await {
        shared.seen.lock().unwrap().push(seen.clone());
        let given = shared.handler.lock().unwrap().as_mut().and_then(|handler| handler(&seen));
        let answer = given.unwrap_or_else(|| words::quiet(&seen));
        match answer.way {
            Way::Never => {
                tokio::time::sleep(Duration::from_secs(60)).await;
                return;
            }
            Way::Dropped => return,
            Way::Whole => {}
        }
        let mut head = format!("HTTP/1.1 {} X\r\ncontent-length: {}\r\n", answer.status, answer.body.len());
        for (name, value) in &answer.headers {
            head.push_str(&format!("{name}: {value}\r\n"));
        }
        if write.write_all(format!("{head}\r\n{}", answer.body).as_bytes()).await.is_err() {
            return;
        }
    }
}

async fn receive(read: &mut (impl AsyncBufReadExt + Unpin)) -> Option<Seen> {
    let mut line = String::new();
    if read.read_line(&mut line).await.ok()? == 0 {
        return None;
    }
    let line = line.rsplit_once(' ')?.0.to_owned();
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
    let body = String::from_utf8(body).ok()?;
    let pairs = body.split('&').filter_map(|pair| pair.split_once('='));
    let form = pairs.map(|(name, value)| (decoded(name), decoded(value))).collect();
    Some(Seen { line, headers, form })
}

fn decoded(text: &str) -> String {
    let mut bytes = Vec::new();
    let mut rest = text.bytes();
    while let Some(byte) = rest.next() {
        match byte {
            b'%' => {
                let hex = [rest.next().unwrap(), rest.next().unwrap()];
                bytes.push(u8::from_str_radix(std::str::from_utf8(&hex).unwrap(), 16).unwrap());
            }
            byte => bytes.push(byte),
        }
    }
    String::from_utf8(bytes).unwrap()
}

pub(crate) fn aws() -> CloudName {
    CloudName::from("aws")
}

/// What instances of the cluster `prod` carry, as [`words::instance`] tells them.
pub(crate) fn owned() -> Ownership {
    Ownership::of_cluster(Mark::Tag("kubernetes.io/cluster/prod".into()))
}

/// Performs `call` against an account that answers `handler`; gives the outcome and the requests that changed something.
pub(crate) async fn perform(
    call: &Call,
    handler: impl FnMut(&Seen) -> Option<Reply> + Send + 'static,
) -> (Outcome, Vec<String>) {
    let fake = Fake::start(handler).await;
    let outcome = fake.connect().await.perform(call).await;
    let seen = fake.take_seen().into_iter();
    let changes = seen.filter(|seen| !seen.action().starts_with("Describe"));
    (outcome, changes.map(|seen| format!("{} {}", seen.action(), seen.asked())).collect())
}
