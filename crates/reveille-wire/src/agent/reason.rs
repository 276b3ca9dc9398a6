//! Why a request fails or has to wait: one closed list for all answers of the server, and for what an agent itself finds.
//!
//! A refusal says what is wrong, what has to happen next, and when to ask again. Three different causes never share one
//! code, so an operator who reads `WAIT_ROLE, missing control-plane` does not have to guess. Some codes come only from
//! the machine, because no server can tell a client that it is the wrong server. They are in the same list, because the
//! operator reads both.

use serde::{Deserialize, Serialize};

use super::identity::{Facts, Part};
use super::text::{List, Sentence, Word};
use super::words::Role;

/// Why a request fails or has to wait.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(tag = "code", rename_all = "SCREAMING_SNAKE_CASE", rename_all_fields = "snake_case")]
pub enum Reason {
    /// No invitation has this token.
    TokenUnknown,
    /// The invitation has expired.
    TokenExpired,
    /// The invitation has been used as often as it allows.
    TokenUsedUp,
    /// The token of the invitation came too often with identities of other machines, so the server no longer accepts it.
    TokenVoid,
    /// An operator revoked the invitation.
    TokenRevoked,
    /// The invitation is bound to something else.
    TokenForeign {
        /// What the invitation is bound to and this machine is not: `machine`.
        bound_to: Word,
    },
    /// Another machine is enrolled with a part of the identity that this one claims.
    IdentityConflict {
        /// The part that both claim.
        part: Part,
        /// What the other machine reports about itself, without its ids: a machine with its key and its
        /// ids would be taken for it.
        facts: Box<Facts>,
    },
    /// The machine omits a part of its recorded identity, so that the server cannot tell it from a copy.
    IdentityIncomplete {
        /// The part that is missing.
        part: Part,
    },
    /// The machine's Node was removed on purpose, and the server does not bring it back.
    NodeRemoved,
    /// The machine was removed from this server.
    MachineRemoved,
    /// The machine's instance is gone for good, and the server has deleted its record.
    MachineForgotten,
    /// The client presented no certificate, or one of another authority.
    CertificateUnknown,
    /// The certificate has expired.
    CertificateExpired,
    /// The certificate is not valid yet: the server's clock was ahead when it issued it, or is behind now.
    CertificateNotYetValid,
    /// The certificate's key is no longer the machine's.
    CertificateRevoked,
    /// Machines of other roles have to join first.
    WaitRole {
        /// The roles that are missing.
        missing: List<Role, 3>,
    },
    /// There is no plan for this machine yet.
    WaitPlan {
        /// The reason.
        why: Sentence,
    },
    /// The server is waiting for the join's token.
    WaitToken {
        /// What the token waits for.
        why: Sentence,
    },
    /// The client sent more than the server accepts: frames, requests, machines.
    TooMany {
        /// What there are too many of.
        of: Word,
    },
    /// A frame or a request is not valid.
    BadFrame {
        /// The place of the mistake.
        place: Word,
        /// What is wrong there.
        what: Word,
    },
    /// The client speaks another protocol.
    Version {
        /// The protocols that this server speaks.
        spoken: List<u32, 16>,
    },
    /// The request for a WebSocket upgrade is not valid.
    UpgradeRequired,
    /// There is nothing at this path, or not for this method.
    NoSuchPath,
    /// A newer session of this machine has replaced this one.
    Replaced,
    /// The server stops, or cannot store what it would have to remember.
    Unavailable,
    /// Found by the machine: the server's certificate chain holds none of the pinned keys.
    CaPinMismatch {
        /// The pins of the chain that was presented, leaf first.
        presented: List<Word, 8>,
    },
    /// Found by the machine: another program answers.
    NotReveille(Answered),
    /// Found by the machine: a proxy answers instead of the server.
    ProxyAnswered(Answered),
    /// A reason of a newer version.
    #[serde(other)]
    Other,
}

/// What answered instead of the server.
#[derive(Clone, Debug, PartialEq, Eq, Default, Serialize, Deserialize)]
pub struct Answered {
    /// Its HTTP status; 0 when it did not speak HTTP.
    pub status: u16,
    /// Its `Server` or `Via` header.
    #[serde(default)]
    pub server: Word,
    /// Its content type.
    #[serde(default)]
    pub content_type: Word,
    /// The beginning of its answer, as text, secrets masked.
    #[serde(default)]
    pub begins: Word,
}

impl Reason {
    /// The code of the reason.
    pub const fn code(&self) -> &'static str {
        match self {
            Self::TokenUnknown => "TOKEN_UNKNOWN",
            Self::TokenExpired => "TOKEN_EXPIRED",
            Self::TokenUsedUp => "TOKEN_USED_UP",
            Self::TokenVoid => "TOKEN_VOID",
            Self::TokenRevoked => "TOKEN_REVOKED",
            Self::TokenForeign { .. } => "TOKEN_FOREIGN",
            Self::IdentityConflict { .. } => "IDENTITY_CONFLICT",
            Self::IdentityIncomplete { .. } => "IDENTITY_INCOMPLETE",
            Self::NodeRemoved => "NODE_REMOVED",
            Self::MachineRemoved => "MACHINE_REMOVED",
            Self::MachineForgotten => "MACHINE_FORGOTTEN",
            Self::CertificateUnknown => "CERTIFICATE_UNKNOWN",
            Self::CertificateExpired => "CERTIFICATE_EXPIRED",
            Self::CertificateNotYetValid => "CERTIFICATE_NOT_YET_VALID",
            Self::CertificateRevoked => "CERTIFICATE_REVOKED",
            Self::WaitRole { .. } => "WAIT_ROLE",
            Self::WaitPlan { .. } => "WAIT_PLAN",
            Self::WaitToken { .. } => "WAIT_TOKEN",
            Self::TooMany { .. } => "TOO_MANY",
            Self::BadFrame { .. } => "BAD_FRAME",
            Self::Version { .. } => "VERSION",
            Self::UpgradeRequired => "UPGRADE_REQUIRED",
            Self::NoSuchPath => "NO_SUCH_PATH",
            Self::Replaced => "REPLACED",
            Self::Unavailable => "UNAVAILABLE",
            Self::CaPinMismatch { .. } => "CA_PIN_MISMATCH",
            Self::NotReveille(_) => "NOT_REVEILLE",
            Self::ProxyAnswered(_) => "PROXY_ANSWERED",
            Self::Other => "OTHER",
        }
    }

    /// The HTTP status of the answer. Reasons that only the machine finds have none: 0.
    pub const fn status(&self) -> u16 {
        match self {
            Self::TokenUnknown
            | Self::TokenExpired
            | Self::CertificateUnknown
            | Self::CertificateExpired
            | Self::CertificateNotYetValid => 401,
            Self::TokenForeign { .. } | Self::CertificateRevoked => 403,
            Self::NoSuchPath => 404,
            Self::IdentityConflict { .. } | Self::IdentityIncomplete { .. } | Self::Replaced => 409,
            Self::TokenUsedUp
            | Self::TokenVoid
            | Self::TokenRevoked
            | Self::NodeRemoved
            | Self::MachineRemoved
            | Self::MachineForgotten => 410,
            Self::WaitRole { .. } | Self::WaitPlan { .. } | Self::WaitToken { .. } => 425,
            Self::UpgradeRequired | Self::Version { .. } => 426,
            Self::TooMany { .. } => 429,
            Self::BadFrame { .. } => 400,
            Self::Unavailable => 503,
            Self::CaPinMismatch { .. } | Self::NotReveille(_) | Self::ProxyAnswered(_) | Self::Other => 0,
        }
    }

    /// When to ask again; `None` where asking again is useless before an operator acted.
    pub const fn retry_after_s(&self) -> Option<u32> {
        match self {
            Self::WaitRole { .. } | Self::WaitPlan { .. } => Some(30),
            Self::WaitToken { .. } => Some(5),
            Self::TooMany { .. } | Self::Unavailable => Some(10),
            // The first of the two may be the same machine before a reboot; the server drops it once it is silent.
            Self::IdentityConflict { part: Part::BootId, .. } => Some(60),
            // A part that the machine could not read may be readable the next time.
            Self::IdentityIncomplete { .. } => Some(60),
            Self::CertificateNotYetValid | Self::NotReveille(_) | Self::ProxyAnswered(_) => Some(60),
            _ => None,
        }
    }

    /// True when the machine only has to wait.
    pub const fn is_wait(&self) -> bool {
        matches!(self, Self::WaitRole { .. } | Self::WaitPlan { .. } | Self::WaitToken { .. })
    }

    pub(super) fn words(&self) -> (String, &'static str) {
        match self {
            Self::TokenUnknown
            | Self::TokenExpired
            | Self::TokenUsedUp
            | Self::TokenVoid
            | Self::TokenRevoked
            | Self::TokenForeign { .. } => self.of_token(),
            Self::CertificateUnknown
            | Self::CertificateExpired
            | Self::CertificateNotYetValid
            | Self::CertificateRevoked => self.of_certificate(),
            Self::NodeRemoved
            | Self::MachineRemoved
            | Self::MachineForgotten
            | Self::IdentityConflict { .. }
            | Self::IdentityIncomplete { .. }
            | Self::Replaced => self.of_machine(),
            Self::WaitRole { .. } | Self::WaitPlan { .. } | Self::WaitToken { .. } => self.of_wait(),
            Self::CaPinMismatch { .. } | Self::NotReveille(_) | Self::ProxyAnswered(_) => self.of_answerer(),
            _ => self.of_request(),
        }
    }

    fn of_token(&self) -> (String, &'static str) {
        match self {
            Self::TokenExpired => {
                ("this invitation's time is over".to_owned(), "ask for another one: reveille invite")
            }
            Self::TokenUsedUp => (
                "this invitation has been used as often as it allows".to_owned(),
                "ask for another one: reveille invite; if none of your machines used it, look at who joined with it",
            ),
            Self::TokenVoid => (
                "this invitation is void: too many machines came with it that claim to be another one"
                    .to_owned(),
                "look who has the token; then ask for another one for each machine: reveille invite --machine",
            ),
            Self::TokenRevoked => (
                "this invitation was taken back".to_owned(),
                "ask for another one: reveille invite; it was revoked because others may have the token",
            ),
            Self::TokenForeign { bound_to } => (
                format!("this invitation is for another {bound_to}"),
                "ask for one that is for this machine: reveille invite --machine",
            ),
            _ => (
                "no invitation has this token".to_owned(),
                "see that it was copied whole and that this is the server that gave it; else: reveille invite",
            ),
        }
    }

    fn of_certificate(&self) -> (String, &'static str) {
        match self {
            Self::CertificateExpired => (
                "the machine's certificate is over".to_owned(),
                "see that the machine's clock is right; then invite it again: reveille invite --machine … --reimage",
            ),
            Self::CertificateNotYetValid => (
                "the time of the machine's certificate has not begun, by the server's clock".to_owned(),
                "set the server's clock right, if it is behind; else it was ahead when it gave the certificate: wait",
            ),
            Self::CertificateRevoked => (
                "the machine has another key now".to_owned(),
                "it was enrolled again; if that was not you, remove the machine and look who did",
            ),
            _ => (
                "no certificate of this server's authority was presented".to_owned(),
                "enrol with an invitation first: reveille invite",
            ),
        }
    }

    fn of_machine(&self) -> (String, &'static str) {
        match self {
            Self::NodeRemoved => (
                "its node was removed on purpose, and is not brought back".to_owned(),
                "nothing, if that is meant; else take the removal back on the server: reveille invite --readmit MACHINE",
            ),
            Self::MachineRemoved => (
                "the machine was removed from this server".to_owned(),
                "nothing, if that is meant; else let it in again on the server: reveille invite --readmit MACHINE, or with a new key: --pool … --machine MACHINE",
            ),
            Self::MachineForgotten => (
                "its record was forgotten, because its instance is gone for good".to_owned(),
                "nothing, if that is so; else invite it again: reveille invite",
            ),
            Self::IdentityConflict { part, facts } => (
                format!(
                    "another machine is known by this {}: host name {:?}",
                    part.name(),
                    facts.hostname.as_str()
                ),
                "see the other one on the server: reveille invite --machines. A clone: give it an identity and a key of its own; the same machine, rebuilt: reveille invite --machine … --reimage",
            ),
            Self::IdentityIncomplete { part } => (
                format!("this machine is known by its {}, and does not say it now", part.name()),
                "see why its agent cannot read it, and start the agent again; if it has none any more: reveille invite --machine … --reimage",
            ),
            _ => (
                "a newer session of this machine has taken over".to_owned(),
                "nothing: there should be one agent on a machine",
            ),
        }
    }

    fn of_wait(&self) -> (String, &'static str) {
        match self {
            Self::WaitRole { missing } => {
                let names: Vec<_> = missing.iter().map(|role| role.name()).collect();
                (
                    format!("the cluster has no {} yet", names.join(" and no ")),
                    "wait, or join a machine of that role first",
                )
            }
            Self::WaitPlan { why } => {
                (format!("there is no plan for this machine yet: {why}"), "look at the server's plans")
            }
            Self::WaitToken { why } => (format!("the token for the join is not there yet: {why}"), "wait"),
            _ => Default::default(),
        }
    }

    fn of_answerer(&self) -> (String, &'static str) {
        let told = |answered: &Answered| {
            format!(
                "status {}, server {:?}, content type {:?}, it begins {:?}",
                answered.status,
                answered.server.as_str(),
                answered.content_type.as_str(),
                answered.begins.as_str()
            )
        };
        match self {
            Self::CaPinMismatch { presented } => (
                format!(
                    "none of the pinned keys is in the chain that was presented: {}",
                    presented.iter().map(Word::as_str).collect::<Vec<_>>().join(", ")
                ),
                "see that the address is the server's and nothing in between ends TLS; the server prints its pins with reveille invite",
            ),
            Self::ProxyAnswered(answered) => (
                format!("a proxy answered in the server's place: {}", told(answered)),
                "let this machine reach the server past the proxy, or let the proxy pass it on",
            ),
            Self::NotReveille(answered) => (
                format!("what answers is no registration server of Reveille: {}", told(answered)),
                "see that address and port are the server's",
            ),
            _ => Default::default(),
        }
    }

    fn of_request(&self) -> (String, &'static str) {
        match self {
            Self::TooMany { of } => (format!("more {of} than are taken"), "ask again later, less often"),
            Self::BadFrame { place, what } => (
                format!("cannot be read, {place}: {what}"),
                "use an agent of this server's version; else it is a fault of ours",
            ),
            Self::Version { spoken } => {
                let spoken: Vec<_> = spoken.iter().map(u32::to_string).collect();
                (
                    format!("protocols {} are spoken here", spoken.join(", ")),
                    "use an agent of this server's version",
                )
            }
            Self::UpgradeRequired => (
                "this path is a WebSocket, and the request asked for none".to_owned(),
                "something between the two may take the upgrade out; the long poll goes without it",
            ),
            Self::NoSuchPath => (
                "there is nothing at this path".to_owned(),
                "see docs/reference/registration.md for the paths",
            ),
            Self::Unavailable => (
                "the server stops, or cannot keep what it must remember".to_owned(),
                "ask again; its log says more",
            ),
            _ => ("a reason of a newer version".to_owned(), "use an agent of the server's version"),
        }
    }
}
