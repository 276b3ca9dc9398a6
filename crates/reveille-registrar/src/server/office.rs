//! The side of the socket that answers: an operator's question, to the registry or the authorities, and a log line of what was
//! done.
//!
//! ```text
//!  DIR/admin.sock ─▶ Ask ─▶ Office ─┬─▶ the registry's thread      invitations, removals, orders, rows
//!                                   └─▶ the authorities            pins; their rotation is in `rotation`      ─▶ Answer
//! ```

use std::collections::BTreeSet;
use std::os::unix::fs::PermissionsExt as _;
use std::path::Path;
use std::sync::{Arc, PoisonError};

use reveille_core::model::id::{PoolName, RosterName};
use reveille_core::model::time::Span;
use reveille_wire::agent::Verb;
use reveille_wire::agent::text::{List, Sentence, Word};
use tokio::io::{AsyncBufReadExt as _, AsyncReadExt as _, AsyncWriteExt as _, BufReader};
use tokio::net::{UnixListener, UnixStream};
use tokio::sync::{Semaphore, watch};
use tokio::time::timeout;

use super::accept::Accepting;
use super::admin::{Answer, Ask, Invited, WITHIN, path};
use super::audit::{self, Asker};
use super::keeper::Over;
use super::listing::{InvitationRow, MachineRow, Page};
use super::routes::ServerState;
use super::token;
use crate::registry::{AuthorityHash, Denied, Event, InvitationId, MachineId, Reply, Wish};

/// The number of exchanges at once; a further client waits until one ends.
const EXCHANGES_MAX: usize = 16;
/// The longest question, in bytes.
const LINE_BYTES_MAX: u64 = 64 << 10;

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

    /// The authorities in force, oldest first.
    pub(super) fn authorities(&self) -> Vec<AuthorityHash> {
        self.state.authorities.lock().unwrap_or_else(PoisonError::into_inner).keys()
    }

    async fn machines(&self, after: Option<Word>) -> Answer {
        let authorities = self.authorities();
        let page = self.state.hand.view(move |registry, now| {
            let after = after.map(|after| MachineId::new(after.as_str()));
            let some = registry.index().machines_after(after.as_ref());
            Page::of(some.map(|known| MachineRow::of(registry, now, &authorities, known)))
        });
        page.await.map_or_else(|over| refused(over.to_string()), Answer::Machines)
    }

    async fn revoke(&self, id: &Word) -> Answer {
        let id = InvitationId::new(id.as_str());
        match self.state.hand.ask(|ask| Event::Revoke { ask, id }).await {
            Ok(Reply::Revoked(let_in)) => {
                let count = u32::try_from(let_in.len()).unwrap_or(u32::MAX);
                let some = let_in.iter().map(|named| Sentence::cut(&named.to_string()));
                Answer::Revoked { count, let_in: List::first(some) }
            }
            other => unexpected(other),
        }
    }

    async fn invitations(&self, after: Option<Word>) -> Answer {
        let page = self.state.hand.view(move |registry, now| {
            let after = after.map(|after| InvitationId::new(after.as_str()));
            Page::of(registry.index().invitations_after(after.as_ref()).map(|it| InvitationRow::of(it, now)))
        });
        page.await.map_or_else(|over| refused(over.to_string()), Answer::Invitations)
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

fn unexpected(reply: Result<Reply, Over>) -> Answer {
    match reply {
        Ok(Reply::Denied(denied)) => refused(denied.to_string()),
        Ok(_) => refused("the server gave another answer than was asked for; its log says more".to_owned()),
        Err(over) => refused(over.to_string()),
    }
}
