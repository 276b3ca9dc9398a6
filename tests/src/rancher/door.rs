//! The program's way to the API server: shows the Nodes of one cluster, counts what is written, ends the program on the way.
//!
//! ```text
//!  program ──HTTP──▶ door ─▶ is its book at a new step? ─yes─▶ killed, nothing is handed on
//!                      └▶ the fault proxy ─▶ API server ─▶ a write of a new kind? ─yes─▶ killed, no answer is handed back
//! ```
//!
//! Requests are handed on as they came but for two things: a list of Nodes asks for those of the cluster alone, and `Date` may
//! be moved on, as if time had gone by since the objects were made. One request for each connection.

use std::collections::BTreeSet;
use std::fs;
use std::io::{Read, Write};
use std::net::{TcpListener, TcpStream};
use std::path::{Path, PathBuf};
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::mpsc::{Receiver, Sender, channel};
use std::sync::{Arc, Mutex, PoisonError};
use std::thread::{self, JoinHandle};
use std::time::Duration;

use anyhow::{Context, Result, bail};
use jiff::fmt::rfc2822::DateTimePrinter;
use jiff::{SignedDuration, Timestamp};

use super::OF;
use super::relay::{self, Done};
use crate::process::Background;
use crate::wait::s;

/// A client that is silent for so long is gone.
pub(super) const SILENT: Duration = Duration::from_secs(40);
/// A life of the program that is not killed.
const LIFE_WITHIN: Duration = Duration::from_secs(120);

/// A write that reached the API server, and what was answered.
struct Written {
    method: String,
    path: String,
    status: u16,
}

/// How a life of the program ended.
#[derive(Debug)]
pub enum Life {
    /// It was killed here.
    Killed(String),
    /// It ended by itself.
    Ended(Option<i32>),
}

/// A door. Closes with its owner.
pub struct Door {
    port: u16,
    inner: Arc<Inner>,
    dying: Receiver<Sender<String>>,
    thread: Option<JoinHandle<()>>,
}

/// Where a program dies, once at each place.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Dies {
    /// At each step of its book, before the first request that follows it.
    AtEachStep,
    /// After each kind of write, before it hears of it.
    AfterEachWrite,
    /// At these steps, as `intent deleteNode`, and after these writes, as `DELETE of a Node`.
    At(BTreeSet<String>),
}

/// Where the program dies, and has died.
pub(super) struct Along {
    pub(super) book: PathBuf,
    dies: Dies,
    deaths: BTreeSet<String>,
}

impl Along {
    /// Whether it dies at this place, named as the place of a step or of a write.
    pub(super) fn wants(&self, place: &str) -> bool {
        let is_step = ["begun", "intent ", "ended "].iter().any(|word| place.starts_with(word));
        let is_wanted = match &self.dies {
            Dies::AtEachStep => is_step,
            Dies::AfterEachWrite => !is_step,
            Dies::At(places) => places.contains(place),
        };
        is_wanted && !self.deaths.contains(place)
    }
}

impl Written {
    fn words(&self) -> String {
        let what = match &self.path {
            path if path.ends_with("/eviction") => "an eviction",
            path if path.contains("/management.cattle.io/") => "a record",
            _ => "a Node",
        };
        format!("{} of {what}", self.method)
    }
}

pub(super) struct Inner {
    behind: String,
    cluster: String,
    later: SignedDuration,
    writes: Mutex<Vec<Written>>,
    deaths: Mutex<Option<Along>>,
    doomed: Mutex<Sender<Sender<String>>>,
    last: Mutex<String>,
    over: AtomicBool,
}

impl Door {
    /// Opens one to the API server behind `host`, for a cluster's Nodes. The clock of its answers is `later` than it is.
    ///
    /// # Errors
    /// When there is no port.
    pub fn open(host: &str, cluster: &str, later: Duration) -> Result<Self> {
        let listener = TcpListener::bind(("127.0.0.1", 0))?;
        let port = listener.local_addr()?.port();
        let (doomed, dying) = channel();
        let inner = Arc::new(Inner {
            behind: host.to_owned(),
            cluster: cluster.to_owned(),
            later: SignedDuration::try_from(later)?,
            writes: Mutex::default(),
            deaths: Mutex::default(),
            doomed: Mutex::new(doomed),
            last: Mutex::default(),
            over: AtomicBool::new(false),
        });
        let serves = Arc::clone(&inner);
        let thread = thread::spawn(move || {
            for client in listener.incoming() {
                if serves.is_over() {
                    return;
                }
                let (Ok(client), serves) = (client, Arc::clone(&serves)) else { continue };
                thread::spawn(move || drop(serves.serve(client)));
            }
        });
        Ok(Self { port, inner, dying, thread: Some(thread) })
    }

    /// Writes a kubeconfig that leads here.
    ///
    /// # Errors
    /// When the disk is full.
    pub fn kubeconfig(&self, file: &Path) -> Result<()> {
        let text = format!(
            "apiVersion: v1\nkind: Config\ncurrent-context: rig\nusers: [{{name: rig, user: {{}}}}]\n\
             clusters: [{{name: rig, cluster: {{server: \"http://127.0.0.1:{}\"}}}}]\n\
             contexts: [{{name: rig, context: {{cluster: rig, user: rig}}}}]\n",
            self.port
        );
        fs::write(file, text).context("cannot write a kubeconfig")
    }

    /// From now on the program dies on its way along the book in this state folder.
    pub fn kill_along(&self, state: &Path, dies: Dies) {
        *locked(&self.inner.deaths) =
            Some(Along { book: state.join("rancher"), dies, deaths: BTreeSet::new() });
    }

    /// A way to a member of etcd at this port, on which the program dies as it does here; gives its port.
    ///
    /// # Errors
    /// When there is none.
    pub fn relay(&self, behind: u16, done: Done) -> Result<u16> {
        relay::open(&self.inner, behind, done)
    }

    /// Where it was killed.
    pub fn deaths(&self) -> BTreeSet<String> {
        locked(&self.inner.deaths).as_ref().map(|along| along.deaths.clone()).unwrap_or_default()
    }

    /// What was written through it and was taken, in order and in words: `DELETE of a Node`.
    pub fn writes(&self) -> Vec<String> {
        locked(&self.inner.writes).iter().filter(|write| write.status < 300).map(Written::words).collect()
    }

    /// Watches one life of the program to its end, and ends it where it is to die.
    ///
    /// # Errors
    /// When it does neither die nor end.
    pub fn watch(&self, mut program: Background) -> Result<Life> {
        let begun = std::time::Instant::now();
        while begun.elapsed() < LIFE_WITHIN {
            if let Ok(dead) = self.dying.recv_timeout(s(1) / 10) {
                program.kill();
                let at = locked(&self.inner.last).clone();
                let _ = dead.send(at.clone());
                return Ok(Life::Killed(at));
            }
            if let Some(code) = program.ended() {
                return Ok(Life::Ended(code));
            }
        }
        bail!("it has neither died nor ended after {} s", LIFE_WITHIN.as_secs())
    }
}

impl Drop for Door {
    fn drop(&mut self) {
        self.inner.over.store(true, Ordering::Relaxed);
        // The thread waits for a client: this connection is one, so the thread ends.
        drop(TcpStream::connect(("127.0.0.1", self.port)));
        if let Some(thread) = self.thread.take() {
            let _ = thread.join();
        }
    }
}

fn locked<T>(of: &Mutex<T>) -> std::sync::MutexGuard<'_, T> {
    of.lock().unwrap_or_else(PoisonError::into_inner)
}

/// A message of HTTP: its head, without the empty line, and what follows it.
struct Message {
    head: String,
    body: Vec<u8>,
}

impl Message {
    /// The first word of its head, and the second.
    fn words(&self) -> (String, String) {
        let mut words = self.head.split(' ').map(str::to_owned);
        (words.next().unwrap_or_default(), words.next().unwrap_or_default())
    }

    fn field(&self, name: &str) -> Option<&str> {
        let mut fields = self.head.split("\r\n").skip(1).filter_map(|line| line.split_once(':'));
        fields.find(|(key, _)| key.eq_ignore_ascii_case(name)).map(|(_, value)| value.trim())
    }

    /// The head with another value for this field, which it may not have had.
    fn with(&self, name: &str, value: &str) -> String {
        let is_it = |line: &&str| line.split_once(':').is_some_and(|(key, _)| key.eq_ignore_ascii_case(name));
        let kept: Vec<&str> = self.head.split("\r\n").filter(|line| !is_it(line)).collect();
        format!("{}\r\n{name}: {value}", kept.join("\r\n"))
    }

    fn send(&self, to: &mut TcpStream) -> Result<()> {
        to.write_all(format!("{}\r\n\r\n", self.head).as_bytes())?;
        to.write_all(&self.body).context("cannot hand it on")
    }

    /// Reads one: to the end of its length, or of its connection where it tells none.
    fn read(from: &mut TcpStream, is_answer: bool) -> Result<Self> {
        let (mut bytes, mut part) = (Vec::new(), [0_u8; 16_384]);
        let end = loop {
            let count = from.read(&mut part)?;
            bytes.extend_from_slice(part.get(..count).unwrap_or_default());
            if let Some(end) = bytes.windows(4).position(|four| four == b"\r\n\r\n") {
                break end;
            }
            if count == 0 {
                bail!("it ended within its head");
            }
        };
        let body = bytes.split_off(end + 4);
        bytes.truncate(end);
        let mut message = Self { head: String::from_utf8(bytes)?, body };
        let length = message.field("content-length").map(str::parse::<usize>).transpose()?;
        let length = length.unwrap_or(if is_answer { usize::MAX } else { 0 });
        while message.body.len() < length {
            let count = from.read(&mut part)?;
            if count == 0 {
                break;
            }
            message.body.extend_from_slice(part.get(..count).unwrap_or_default());
        }
        Ok(message)
    }
}

impl Inner {
    fn serve(&self, mut client: TcpStream) -> Result<()> {
        client.set_read_timeout(Some(SILENT))?;
        let mut request = Message::read(&mut client, false)?;
        let (method, target) = request.words();
        if self.dies_at(|along| step(&along.book)) {
            return Ok(());
        }
        let path = target.split('?').next().unwrap_or_default().to_owned();
        if method == "GET" && path == "/api/v1/nodes" {
            let first = if target.contains('?') { '&' } else { '?' };
            let shown = format!("{target}{first}labelSelector={OF}%3D{}", self.cluster);
            request.head = request.head.replacen(&target, &shown, 1);
        }
        request.head = request.with("Connection", "close");
        let mut server = TcpStream::connect(&self.behind)?;
        server.set_read_timeout(Some(SILENT))?;
        request.send(&mut server)?;
        let mut answer = Message::read(&mut server, true)?;
        if method != "GET" {
            let status = answer.words().1.parse().unwrap_or(0);
            let written = Written { method, path, status };
            let words = written.words();
            locked(&self.writes).push(written);
            if status < 300 && self.dies_at(|_| Some(words)) {
                return Ok(());
            }
        }
        if let Some(date) = answer.field("date").and_then(|date| self.moved_on(date)) {
            answer.head = answer.with("Date", &date);
        }
        answer.head = answer.with("Connection", "close");
        answer.send(&mut client)
    }

    fn moved_on(&self, date: &str) -> Option<String> {
        let at: Timestamp = jiff::fmt::rfc2822::parse(date).ok()?.timestamp();
        DateTimePrinter::new().timestamp_to_rfc9110_string(&at.checked_add(self.later).ok()?).ok()
    }

    /// Its owner is gone.
    pub(super) fn is_over(&self) -> bool {
        self.over.load(Ordering::Relaxed)
    }

    /// Whether the program dies here: it does once at each place that is wanted. Comes back when it is dead.
    pub(super) fn dies_at(&self, place: impl FnOnce(&Along) -> Option<String>) -> bool {
        {
            let mut deaths = locked(&self.deaths);
            let Some(along) = deaths.as_mut() else { return false };
            let Some(place) = place(along).filter(|place| along.wants(place)) else { return false };
            along.deaths.insert(place.clone());
            *locked(&self.last) = place;
        }
        let (dead, is_dead) = channel();
        let is_heard = locked(&self.doomed).send(dead).is_ok();
        is_heard && is_dead.recv_timeout(SILENT).is_ok()
    }
}

/// The newest line of a book, as words: `intent deleteNode`, `ended save`. None where there is none since its last end.
pub(super) fn step(book: &Path) -> Option<String> {
    let read = reveille_record::read_only::<serde_json::Value>(book).ok()?;
    let lines: Vec<&serde_json::Value> = read.records.iter().map(|entry| &entry["what"]).collect();
    let line = lines.last()?;
    let intent = lines.iter().find(|other| other["line"] == "intent" && other["number"] == line["number"]);
    let act = intent.and_then(|intent| intent["what"]["act"].as_str()).unwrap_or_default();
    let kind = line["line"].as_str().unwrap_or_default();
    (kind != "closed").then(|| format!("{kind} {act}").trim().to_owned())
}
