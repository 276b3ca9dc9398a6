//! The files of a machine's enrolment: its key, its certificate, the server's address and the server's pins.
//!
//! ```text
//!  DIR/link.pem    key and certificate, 0600       replaced as a whole, so that the two always belong together
//!  DIR/renewing.pem   the next key, until link.pem has it
//!  DIR/welcomed.pem   the key and certificate that were welcomed last, until those of link.pem are
//!  DIR/link.json   server, pins, record, node name, when to renew
//! ```
//!
//! Dates are of this machine's clock and are compared with nothing else. A clock that was ahead and was set back shows in
//! a date that is further away than the span that made it.

use std::io;
use std::path::{Path, PathBuf};

use reveille_core::model::time::{Span, Time};
use reveille_wire::agent::text::Word;
use serde::{Deserialize, Serialize};
use thiserror::Error;
use tokio_rustls::rustls::pki_types::pem::PemObject as _;
use tokio_rustls::rustls::pki_types::{CertificateDer, PrivateKeyDer};

use super::Link;
use crate::certificate::Presented;
use crate::durable::replace;
use crate::pin::Pin;
use crate::pins::Pins;
use crate::private::{LINK_PEM, WELCOMED_PEM};
use crate::target::Endpoint;

/// The server's default span between two certificates, for an older agent that kept none.
const RENEW_AFTER_S: i64 = 20 * 24 * 3_600;
/// A clock correction below this makes no certificate due.
const CLOCK_SLACK: Span = Span::from_min(60);

/// A machine's own key and certificate.
pub struct Credential {
    pub(super) chain: Vec<CertificateDer<'static>>,
    pub(super) key: PrivateKeyDer<'static>,
    /// Key and certificate, as they are on the disk.
    pem: String,
}

impl std::fmt::Debug for Credential {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.write_str("Credential { .. }")
    }
}

impl Credential {
    /// Reads a key and a certificate from PEM; none when they cannot be read.
    pub(super) fn read(pem: &str) -> Option<Self> {
        let chain: Result<Vec<_>, _> = CertificateDer::pem_slice_iter(pem.as_bytes()).collect();
        let key = PrivateKeyDer::from_pem_slice(pem.as_bytes()).ok()?;
        let chain = chain.ok().filter(|chain| !chain.is_empty())?;
        Some(Self { chain, key, pem: pem.to_owned() })
    }

    /// The same as PEM, for another connection.
    pub(super) fn pem(&self) -> &str {
        &self.pem
    }
}

/// The other data of an enrolment.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Kept {
    /// `host:port`.
    pub server: String,
    /// The server's pins.
    pub ca_pins: Vec<String>,
    /// The machine's record.
    pub machine: Word,
    /// The name of the machine's Node.
    pub node_name: Word,
    /// The time from which the certificate has to be renewed.
    pub renew_at: Time,
    /// The same as a span after the issue. None where an older agent wrote the file.
    #[serde(default)]
    pub renew_after_s: Option<i64>,
    /// The CAs' certificates, as PEM: shown to peers with this machine's own certificate. None where an older agent
    /// enrolled.
    #[serde(default)]
    pub authorities: String,
}

/// All data of an enrolment.
#[derive(Debug)]
pub struct Keyring {
    directory: PathBuf,
    /// The machine's key and certificate.
    pub credential: Credential,
    /// The other data.
    pub kept: Kept,
    /// The last welcomed credential, until the server has welcomed the current key. It counts until then, even if another
    /// client renews beside this machine. The server keeps only the newest few requested keys, and a copy of this disk
    /// can request keys, too.
    welcomed: Option<Credential>,
}

/// Why there is no keyring.
#[derive(Debug, Error)]
pub enum KeyringError {
    /// The file system refused.
    #[error("cannot {doing} {}", path.display())]
    Io {
        /// The operation that failed.
        doing: &'static str,
        /// The file.
        path: PathBuf,
        /// The error.
        source: io::Error,
    },
    /// The file exists and cannot be read.
    #[error("{} is not what an enrolment leaves; move it away and enrol with a new invitation", .0.display())]
    Unreadable(PathBuf),
}

impl Keyring {
    /// Reads the keyring; none where this machine was not enrolled.
    ///
    /// # Errors
    ///
    /// A file exists and cannot be read.
    pub fn open(directory: &Path) -> Result<Option<Self>, KeyringError> {
        let (pem, json) = paths(directory);
        let Some(text) = read(&pem)? else { return Ok(None) };
        let Some(kept) = read(&json)? else { return Ok(None) };
        let credential = Credential::read(&text).ok_or_else(|| KeyringError::Unreadable(pem.clone()))?;
        let kept = serde_json::from_str(&kept).map_err(|_| KeyringError::Unreadable(json))?;
        let welcomed = read(&welcomed(directory))?.and_then(|text| Credential::read(&text));
        Ok(Some(Self { directory: directory.to_owned(), credential, kept, welcomed }))
    }

    pub(super) fn directory(&self) -> &Path {
        &self.directory
    }

    /// Keeps an enrolment durably.
    ///
    /// # Errors
    ///
    /// The file system refused.
    pub fn keep(directory: &Path, credential: Credential, kept: Kept) -> Result<Self, KeyringError> {
        let keyring = Self { directory: directory.to_owned(), credential, kept, welcomed: None };
        write(paths(directory).0, &keyring.credential)?;
        keyring.write_kept()?;
        Ok(keyring)
    }

    /// Keeps the next certificate durably, and the last welcomed one until the next one is welcomed.
    pub(super) fn keep_next(&self, credential: Credential, kept: Kept) -> Result<Self, KeyringError> {
        let last = self.welcomed.as_ref().unwrap_or(&self.credential);
        write(welcomed(&self.directory), last)?;
        let welcomed = Credential::read(&last.pem);
        Ok(Self { welcomed, ..Self::keep(&self.directory, credential, kept)? })
    }

    /// The server welcomed this key: all others are void.
    pub fn is_welcomed(&mut self) {
        if self.welcomed.take().is_some() {
            // A leftover file is tried once more if this key becomes void one day.
            std::fs::remove_file(welcomed(&self.directory)).ok();
        }
    }

    /// This key is void, and was never welcomed: the last welcomed credential replaces it, and the next certificate is
    /// due. False where there is none, or where its time is over: the key that is refused now may count again, and that one
    /// cannot.
    ///
    /// # Errors
    ///
    /// The file system refused.
    pub fn go_back(&mut self, now: Time) -> Result<bool, KeyringError> {
        let lasts = |last: &mut Credential| {
            let ends_s = last.chain.first().map(|leaf| Presented::read(leaf).not_after_s);
            ends_s.is_some_and(|ends_s| ends_s > now.ms / 1000)
        };
        let Some(last) = self.welcomed.take_if(lasts) else { return Ok(false) };
        write(paths(&self.directory).0, &last)?;
        std::fs::remove_file(welcomed(&self.directory)).ok();
        (self.credential, self.kept.renew_at) = (last, Time::default());
        self.write_kept().map(|()| true)
    }

    /// Trusts the server by these keys from now on, as its welcome said over a connection with this pin. Unreadable pins
    /// change nothing, and neither do pins that leave that one out: no server that is in order shows a key that does not
    /// count. New pins mean another authority, which signs the next certificate: it is due, because the authority before
    /// may be retired soon.
    ///
    /// # Errors
    ///
    /// The file system refused.
    pub fn trust(&mut self, ca_pins: Vec<String>, known_by: Pin) -> Result<bool, KeyringError> {
        if !keep_known(&ca_pins, known_by) || ca_pins == self.kept.ca_pins {
            return Ok(false);
        }
        (self.kept.ca_pins, self.kept.renew_at) = (ca_pins, Time::default());
        self.write_kept().map(|()| true)
    }

    fn write_kept(&self) -> Result<(), KeyringError> {
        let (_, json) = paths(&self.directory);
        let text = serde_json::to_vec_pretty(&self.kept).unwrap_or_default();
        replace(&json, &text).map_err(|source| KeyringError::Io { doing: "write", path: json, source })
    }

    /// The pins of the server, and of every peer.
    pub fn pins(&self) -> Option<Pins> {
        let pins: Result<Vec<Pin>, _> = self.kept.ca_pins.iter().map(|pin| pin.parse()).collect();
        Pins::new(pins.ok()?).ok()
    }

    /// This machine's certificate, followed by those of the CAs.
    pub(crate) fn chain(&self) -> Vec<CertificateDer<'static>> {
        let authorities = CertificateDer::pem_slice_iter(self.kept.authorities.as_bytes()).flatten();
        self.credential.chain.iter().take(1).cloned().chain(authorities).collect()
    }

    /// The machine's key.
    pub(crate) fn key(&self) -> PrivateKeyDer<'static> {
        self.credential.key.clone_key()
    }

    /// The link to the kept server; none when the file names no valid server.
    pub fn link(&self) -> Option<Link> {
        let server = Endpoint::parse("the kept server", &self.kept.server).ok()?;
        Some(Link { server, pins: self.pins()? })
    }

    /// True when the next certificate is due, or when the CAs' certificates are missing, which come with it.
    pub fn is_due(&self, now: Time) -> bool {
        let (at, after_s) = (self.kept.renew_at, self.kept.renew_after_s.unwrap_or(RENEW_AFTER_S));
        // The certificate was issued while this clock was ahead: by the server's clock it ends long before that date.
        let is_too_far = at > now + Span::from_s(after_s) + CLOCK_SLACK;
        now >= at || is_too_far || self.kept.authorities.is_empty()
    }
}

/// True when these pins can be read, and the server that told them stays known by them.
pub(super) fn keep_known(ca_pins: &[String], known_by: Pin) -> bool {
    let pins = ca_pins.iter().map(|pin| pin.parse::<Pin>()).collect::<Result<Vec<_>, _>>();
    pins.ok().and_then(|pins| Pins::new(pins).ok()).is_some_and(|pins| pins.as_slice().contains(&known_by))
}

/// Writes key and certificate durably.
fn write(path: PathBuf, credential: &Credential) -> Result<(), KeyringError> {
    replace(&path, credential.pem.as_bytes()).map_err(|source| KeyringError::Io {
        doing: "write",
        path,
        source,
    })
}

fn paths(directory: &Path) -> (PathBuf, PathBuf) {
    (directory.join(LINK_PEM), directory.join("link.json"))
}

pub(super) fn welcomed(directory: &Path) -> PathBuf {
    directory.join(WELCOMED_PEM)
}

fn read(path: &Path) -> Result<Option<String>, KeyringError> {
    match std::fs::read_to_string(path) {
        Ok(text) => Ok(Some(text)),
        Err(error) if error.kind() == io::ErrorKind::NotFound => Ok(None),
        Err(source) => Err(KeyringError::Io { doing: "read", path: path.to_owned(), source }),
    }
}
