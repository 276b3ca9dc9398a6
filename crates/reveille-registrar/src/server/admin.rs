//! What operators ask of a running server, over a socket that only the server's own account can open.
//!
//! ```text
//!  reveille invite ─▶ DIR/admin.sock (0600) ─▶ {"ask":"invite",…}\n ─▶ the registry, the authorities ─▶ {"invited":…}\n
//! ```
//!
//! The command line uses a socket, not the ledger. The ledger has one writer, which keeps memory and disk the same, and
//! an invitation counts from the moment in which it is shown. A process that can open the socket could also read the
//! authorities' keys beside it, so the socket asks for no further proof. A token is in the one answer and nowhere else.

use std::collections::BTreeSet;
use std::os::unix::fs::PermissionsExt as _;
use std::path::{Path, PathBuf};
use std::sync::{Arc, PoisonError};
use std::time::Duration;

use reveille_core::model::id::{PoolName, RosterName};
use reveille_core::model::time::Span;
use reveille_wire::agent::text::{List, Sentence, Word};
use reveille_wire::agent::{Role, Secret, Verb};
use serde::{Deserialize, Serialize};
use tokio::io::{AsyncBufReadExt as _, AsyncReadExt as _, AsyncWriteExt as _, BufReader};
use tokio::net::{UnixListener, UnixStream};
use tokio::sync::{Semaphore, watch};
use tokio::time::timeout;

use super::accept::Accepting;
use super::audit::{self, Asker};
use super::listing::{InvitationRow, MachineRow, Page};
use super::routes::ServerState;
use super::token;
use crate::registry::{Denied, Event, Reimage, Removal, Reply, Wish};

/// The time limit of one exchange.
const WITHIN: Duration = Duration::from_secs(20);
/// The number of exchanges at once; a further client waits until one ends.
const EXCHANGES_MAX: usize = 16;
/// The longest question, in bytes.
const LINE_BYTES_MAX: u64 = 64 << 10;
/// The longest answer, in bytes: one page of a list.
const ANSWER_BYTES_MAX: u64 = 2 << 20;

/// A question.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(tag = "ask", rename_all = "kebab-case", deny_unknown_fields)]
pub enum Ask {
    /// Make an invitation.
    Invite {
        /// The roster; may be left out where only one has the pool.
        #[serde(default)]
        roster: Option<Word>,
        /// The pool.
        pool: Word,
        /// The machine's roles.
        roles: BTreeSet<Role>,
        /// For this machine alone.
        #[serde(default)]
        machine: Option<Word>,
        /// The invitation may reimage a known machine.
        #[serde(default)]
        reimage: Option<Reimage>,
        /// The invitation's lifetime, in seconds.
        ttl_s: u32,
        /// The number of allowed uses.
        uses: u32,
    },
    /// List invitations, one page.
    Invitations {
        /// Those after this id.
        #[serde(default)]
        after: Option<Word>,
    },
    /// Revoke an invitation.
    Revoke {
        /// The invitation's id.
        id: Word,
    },
    /// Remove a machine or its Node, or take the removal back.
    Remove {
        /// The machine.
        machine: Word,
        /// What to remove.
        #[serde(default)]
        what: Option<Removal>,
    },
    /// Ask a machine for facts about itself; the socket accepts no other order.
    Order {
        /// The machine.
        machine: Word,
        /// The order: collect evidence, or run a probe.
        verb: Verb,
        /// The server does not wait for an answer longer than this, in seconds.
        within_s: u32,
    },
    /// Introduce another authority.
    RotateCa {},
    /// Retire all authorities but the newest.
    FinishRotation {
        /// Retire them also when machines have no certificate of the newest one yet.
        #[serde(default)]
        force: bool,
    },
    /// List machines, one page.
    Machines {
        /// Those after this record.
        #[serde(default)]
        after: Option<Word>,
    },
}

/// An answer.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum Answer {
    /// The invitation.
    Invited(Invited),
    /// Some of the invitations.
    Invitations(Page<InvitationRow>),
    /// The invitation is revoked. Machines that it admitted stay.
    Revoked {
        /// The number of these machines.
        count: u32,
        /// The first of these machines.
        let_in: List<Sentence, 10>,
    },
    /// The machine that was removed or readmitted.
    Removed(Word),
    /// The order's number; the server sends its result to the controller.
    Ordered(u64),
    /// Some of the machines.
    Machines(Page<MachineRow>),
    /// The rotation cannot be finished: it would lock these machines out.
    Late {
        /// The number of these machines.
        count: u32,
        /// The first of these machines.
        machines: List<MachineRow, 10>,
    },
    /// The authorities' pins now.
    Pins(List<Word, 8>),
    /// The reason of the refusal, and what to do.
    Refused(Sentence),
}

/// An invitation, with what its machine needs to know.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Invited {
    /// The token.
    pub token: Secret,
    /// The token's public half.
    pub id: Word,
    /// The roster.
    pub roster: Word,
    /// The pins of this server.
    pub ca_pins: List<Word, 8>,
    /// The addresses at which the server listens, `host:port`, as the server knows them.
    pub listens: List<Word, 32>,
    /// The invitation's lifetime, in seconds.
    pub ttl_s: u32,
}

/// Why there is no answer.
#[derive(Debug, thiserror::Error)]
pub enum AskError {
    /// No server listens at the socket.
    #[error("no server listens at {}", path.display())]
    NoServer {
        /// The path of the socket.
        path: PathBuf,
        /// The error of the operating system.
        source: std::io::Error,
    },
    /// The account that asks may not open the socket.
    #[error("the socket {} is another account's", path.display())]
    Forbidden {
        /// The path of the socket.
        path: PathBuf,
        /// The error of the operating system.
        source: std::io::Error,
    },
    /// The server did not answer.
    #[error("the server at {} did not answer", .0.display())]
    Silent(PathBuf),
}

/// The path of a server's socket.
pub fn path(directory: &Path) -> PathBuf {
    directory.join("admin.sock")
}

/// Asks the server that runs with this state directory.
///
/// # Errors
///
/// No server runs with this directory, or it does not answer.
pub async fn ask(directory: &Path, ask: &Ask) -> Result<Answer, AskError> {
    let path = path(directory);
    let stream = UnixStream::connect(&path).await.map_err(|source| {
        let path = path.clone();
        match source.kind() {
            std::io::ErrorKind::PermissionDenied => AskError::Forbidden { path, source },
            _ => AskError::NoServer { path, source },
        }
    })?;
    let exchange = async {
        let (read, mut write) = stream.into_split();
        let mut line = serde_json::to_vec(ask).ok()?;
        line.push(b'\n');
        write.write_all(&line).await.ok()?;
        let mut answer = String::new();
        BufReader::new(read.take(ANSWER_BYTES_MAX)).read_line(&mut answer).await.ok()?;
        serde_json::from_str(&answer).ok()
    };
    timeout(WITHIN, exchange).await.ok().flatten().ok_or(AskError::Silent(path))
}

/// What this side needs beside the server's state.
pub(super) struct Office {
    pub(super) state: Arc<ServerState>,
    pub(super) pools: BTreeSet<(RosterName, PoolName)>,
    pub(super) names: Vec<String>,
    pub(super) port: u16,
}

/// Binds the socket, and replaces a leftover one: only the process that holds the ledger may listen.
pub(super) fn listen(directory: &Path) -> std::io::Result<UnixListener> {
    let path = path(directory);
    match std::fs::remove_file(&path) {
        Err(error) if error.kind() != std::io::ErrorKind::NotFound => return Err(error),
        _ => {}
    }
    let listener = UnixListener::bind(&path)?;
    std::fs::set_permissions(&path, std::fs::Permissions::from_mode(0o600))?;
    Ok(listener)
}

/// Answers until the server stops.
pub(super) async fn serve(listener: UnixListener, office: Arc<Office>, mut stop: watch::Receiver<bool>) {
    let (room, mut accepting) = (Arc::new(Semaphore::new(EXCHANGES_MAX)), Accepting::at("people"));
    loop {
        let next = async {
            let permit = room.clone().acquire_owned().await.ok()?;
            let (stream, _) = accepting.next(listener.accept()).await?;
            Some((stream, permit))
        };
        let next = tokio::select! {
            next = next => next,
            _ = stop.wait_for(|stop| *stop) => return,
        };
        let Some((stream, permit)) = next else { continue };
        let office = office.clone();
        tokio::spawn(async move {
            // A client that asked and disconnected gets no answer.
            drop(timeout(WITHIN, office.exchange(stream)).await);
            drop(permit);
        });
    }
}

impl Office {
    async fn exchange(&self, stream: UnixStream) -> Option<()> {
        let by = Asker::of(&stream);
        let (read, mut write) = stream.into_split();
        let mut line = String::new();
        BufReader::new(read.take(LINE_BYTES_MAX)).read_line(&mut line).await.ok()?;
        let answer = match serde_json::from_str(&line) {
            Ok(ask) => {
                let answer = self.answer(&ask).await;
                audit::done(by, &ask, &answer);
                answer
            }
            Err(error) => {
                refused(format!("this server does not understand: {error}; use the program of its version"))
            }
        };
        let mut bytes = serde_json::to_vec(&answer).ok()?;
        bytes.push(b'\n');
        write.write_all(&bytes).await.ok()?;
        write.shutdown().await.ok()
    }

    async fn answer(&self, ask: &Ask) -> Answer {
        match ask.clone() {
            Ask::Invite { roster, pool, roles, machine, reimage, ttl_s, uses } => {
                let roster = match self.roster(roster.as_ref(), &pool) {
                    Ok(roster) => roster,
                    Err(why) => return refused(why),
                };
                let (ttl, pool) = (Span::from_s(ttl_s.into()), PoolName::from(pool.as_str()));
                self.invite(Wish { roster, pool, roles, machine, reimage, ttl, uses }).await
            }
            Ask::Invitations { after } => self.invitations(after).await,
            Ask::Revoke { id } => self.revoke(&id).await,
            Ask::Remove { machine, what } => {
                match self.state.hand.ask(|ask| Event::Remove { ask, machine, what }).await {
                    Ok(Reply::Done(machine)) => Answer::Removed(Word::cut(machine.as_str())),
                    other => unexpected(other),
                }
            }
            Ask::Order { machine, verb, within_s } => self.order(&machine, verb, within_s).await,
            Ask::RotateCa {} => self.rotate().await,
            Ask::FinishRotation { force } => self.finish_rotation(force).await,
            Ask::Machines { after } => self.machines(after).await,
        }
    }

    async fn order(&self, machine: &Word, verb: Verb, within_s: u32) -> Answer {
        if !matches!(verb, Verb::CollectEvidence | Verb::Probe) {
            // Only the engine may change a machine, after its safety checks.
            return refused(format!("{} is not ordered by people", verb.name()));
        }
        let named = machine.clone();
        let found = self.state.hand.view(move |registry, _| {
            let known = registry.meant(&named, |known| known.removed.is_none())?;
            Ok::<_, Denied>((known.id.clone(), registry.session_of(&known.id).is_some()))
        });
        let machine = match found.await {
            Ok(Ok((machine, true))) => machine,
            Ok(Ok((_, false))) => return refused(format!("{machine} is known, and is not connected now")),
            Ok(Err(denied)) => return refused(denied.to_string()),
            Err(over) => return refused(over.to_string()),
        };
        let (id, within) = (self.state.hand.order_id(), Span::from_s(within_s.clamp(1, 600).into()));
        match self.state.hand.say(Event::Order { id, machine, verb, within }).await {
            Ok(()) => Answer::Ordered(id.0),
            Err(over) => refused(over.to_string()),
        }
    }

    async fn invite(&self, wish: Wish) -> Answer {
        let Ok(drawn) = token::draw() else {
            return refused("the system gives no random numbers".to_owned());
        };
        let (id, hash, roster) = (drawn.id, drawn.hash, Word::cut(wish.roster.as_str()));
        match self.state.hand.ask(|ask| Event::Invite { ask, wish, id, hash }).await {
            Ok(Reply::Invited { id, ttl }) => Answer::Invited(Invited {
                token: drawn.token,
                id: Word::cut(id.as_str()),
                roster,
                ca_pins: self.pins(),
                listens: List::first(self.names.iter().map(|name| Word::cut(&address(name, self.port)))),
                ttl_s: u32::try_from(ttl.ms / 1000).unwrap_or(u32::MAX),
            }),
            other => unexpected(other),
        }
    }

    /// The roster of a pool: the named one, or the only one that has the pool.
    fn roster(&self, named: Option<&Word>, pool: &str) -> Result<RosterName, String> {
        let rosters: BTreeSet<&str> = self.pools.iter().map(|(roster, _)| roster.as_str()).collect();
        if let Some(named) = named.filter(|named| !rosters.contains(named.as_str())) {
            let rosters: Vec<_> = rosters.into_iter().collect();
            return Err(format!(
                "There is no roster {:?}; there are: {}",
                named.as_str(),
                rosters.join(", ")
            ));
        }
        let mut with = self.pools.iter().filter(|(roster, has)| {
            has.as_str() == pool && named.is_none_or(|named| named.as_str() == roster.as_str())
        });
        let Some((roster, _)) = with.next() else {
            let pools: Vec<_> =
                self.pools.iter().map(|(roster, pool)| format!("{pool} of {roster}")).collect();
            return Err(format!("there is no pool {pool:?}; there are {}", pools.join(", ")));
        };
        if with.next().is_some() {
            return Err(format!("more than one roster has a pool {pool:?}; name the roster with --of"));
        }
        Ok(roster.clone())
    }

    pub(super) fn pins(&self) -> List<Word, 8> {
        let authorities = self.state.authorities.lock().unwrap_or_else(PoisonError::into_inner);
        List::first(authorities.pins().iter().map(|pin| Word::cut(pin)))
    }
}

/// `host:port`, with an IPv6 address in brackets.
fn address(name: &str, port: u16) -> String {
    if name.contains(':') { format!("[{name}]:{port}") } else { format!("{name}:{port}") }
}

pub(super) fn refused(why: String) -> Answer {
    Answer::Refused(Sentence::cut(&why))
}

pub(super) fn unexpected(reply: Result<Reply, super::keeper::Over>) -> Answer {
    match reply {
        Ok(Reply::Denied(denied)) => refused(denied.to_string()),
        Ok(_) => refused("the server gave another answer than was asked for; its log says more".to_owned()),
        Err(over) => refused(over.to_string()),
    }
}
