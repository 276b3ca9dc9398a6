//! What operators ask of a running server, over a socket that only the server's own account can open.
//!
//! ```text
//!  reveille invite ─▶ DIR/admin.sock (0600) ─▶ {"ask":"invite",…}\n ─▶ the registry, the authorities ─▶ {"invited":…}\n
//! ```
//!
//! The command line uses a socket, not the ledger. The ledger has one writer, which keeps memory and disk the same, and
//! an invitation counts from the moment in which it is shown. A process that can open the socket could also read the
//! authorities' keys beside it, so the socket asks for no further proof. A token is in the one answer and nowhere else.
//!
//! Here are the questions, the answers and the client; `office` is the side that answers.

use std::collections::BTreeSet;
use std::path::{Path, PathBuf};
use std::time::Duration;

use reveille_wire::agent::text::{List, Sentence, Word};
use reveille_wire::agent::{Role, Secret, Verb};
use serde::{Deserialize, Serialize};
use tokio::io::{AsyncBufReadExt as _, AsyncReadExt as _, AsyncWriteExt as _, BufReader};
use tokio::net::UnixStream;
use tokio::time::timeout;

use super::listing::{InvitationRow, MachineRow, Page};
use crate::registry::{Reimage, Removal};

/// The time limit of one exchange.
pub(super) const WITHIN: Duration = Duration::from_secs(20);
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
