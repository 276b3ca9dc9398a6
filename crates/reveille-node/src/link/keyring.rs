//! What a machine keeps of its enrolment: its key, its certificate, where the server is and by which keys it is known.
//!
//! ```text
//!  DIR/link.pem    key and certificate, 0600       replaced as a whole, so that the two always belong together
//!  DIR/renewing.pem   the next key, until link.pem has it
//!  DIR/welcomed.pem   the key and certificate that were welcomed last, until those of link.pem are
//!  DIR/link.json   server, pins, record, node name, when to renew
//! ```
//!
//! Dates are of this machine's clock and are compared with nothing but it; a clock that stood ahead and was mended is known by a
//! date that is further away than the span that it was made of.

use std::io;
use std::path::{Path, PathBuf};

use reveille_core::model::time::{Span, Time};
use reveille_wire::agent::text::Word;
use serde::{Deserialize, Serialize};
use thiserror::Error;
use tokio_rustls::rustls::pki_types::pem::PemObject as _;
use tokio_rustls::rustls::pki_types::{CertificateDer, PrivateKeyDer};

use super::Link;
use crate::durable::replace;
use crate::pin::{Pin, Pins};
use crate::private::{LINK_PEM, WELCOMED_PEM};
use crate::target::Endpoint;

/// The server's own span between a certificate and the next one, where an older agent kept none.
const RENEW_AFTER_S: i64 = 20 * 24 * 3_600;
/// A clock that is mended by less makes no certificate due.
const CLOCK_SLACK: Span = Span::from_min(60);

/// A machine's own key and certificate.
pub struct Credential {
    pub(super) chain: Vec<CertificateDer<'static>>,
    pub(super) key: PrivateKeyDer<'static>,
    /// Key and certificate, as they are written down.
    pem: String,
}

impl std::fmt::Debug for Credential {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.write_str("Credential { .. }")
    }
}

impl Credential {
    /// From a key and a certificate as PEM; none when they cannot be read.
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

/// What is kept beside it.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Kept {
    /// `host:port`.
    pub server: String,
    /// Pins.
    pub ca_pins: Vec<String>,
    /// The machine's record.
    pub machine: Word,
    /// The name of its node.
    pub node_name: Word,
    /// Renew the certificate from then on.
    pub renew_at: Time,
    /// So long after it was given. None where an older agent kept it.
    #[serde(default)]
    pub renew_after_s: Option<i64>,
    /// The authorities' certificates, as PEM: shown beside this machine's own to its peers. None where an older agent enrolled.
    #[serde(default)]
    pub authorities: String,
}

/// All that a machine keeps of its enrolment.
#[derive(Debug)]
pub struct Keyring {
    directory: PathBuf,
    /// Its key and certificate.
    pub credential: Credential,
    /// What is kept beside it.
    pub kept: Kept,
    /// What the server welcomed last, where it has not welcomed this key yet. It counts until then, whoever renews beside this
    /// machine: of the keys that were asked for the server knows the newest few, and a copy of this disk can ask, too.
    welcomed: Option<Credential>,
}

/// Why there is none.
#[derive(Debug, Error)]
pub enum KeyringError {
    /// The file system refused.
    #[error("cannot {doing} {}", path.display())]
    Io {
        /// What was tried.
        doing: &'static str,
        /// With which file.
        path: PathBuf,
        /// What the system said.
        source: io::Error,
    },
    /// It is there and cannot be read.
    #[error("{} is not what an enrolment leaves; move it away and enrol with a new invitation", .0.display())]
    Unreadable(PathBuf),
}

impl Keyring {
    /// Reads it; none where this machine was not enrolled.
    ///
    /// # Errors
    ///
    /// It is there and cannot be read.
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

    /// Keeps an enrolment, durably.
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

    /// Keeps the next certificate, durably, and what was welcomed last until this one is.
    pub(super) fn keep_next(&self, credential: Credential, kept: Kept) -> Result<Self, KeyringError> {
        let last = self.welcomed.as_ref().unwrap_or(&self.credential);
        write(welcomed(&self.directory), last)?;
        let welcomed = Credential::read(&last.pem);
        Ok(Self { welcomed, ..Self::keep(&self.directory, credential, kept)? })
    }

    /// The server welcomed this key: all others are void.
    pub fn is_welcomed(&mut self) {
        if self.welcomed.take().is_some() {
            // One that stays is tried once more, should this one be void one day.
            std::fs::remove_file(welcomed(&self.directory)).ok();
        }
    }

    /// This key is void, and was not welcomed yet: from now on with the one that was welcomed last, and the next certificate is
    /// due. False where there is none.
    ///
    /// # Errors
    ///
    /// The file system refused.
    pub fn go_back(&mut self) -> Result<bool, KeyringError> {
        let Some(last) = self.welcomed.take() else { return Ok(false) };
        write(paths(&self.directory).0, &last)?;
        std::fs::remove_file(welcomed(&self.directory)).ok();
        (self.credential, self.kept.renew_at) = (last, Time::default());
        self.write_kept().map(|()| true)
    }

    /// From now on the server is known by these keys, as its welcome said. What cannot be read of them changes nothing. Other
    /// keys are another authority's, which signs the next certificate: it is due, because the one before may not count for long.
    ///
    /// # Errors
    ///
    /// The file system refused.
    pub fn trust(&mut self, ca_pins: Vec<String>) -> Result<bool, KeyringError> {
        let readable = ca_pins.iter().map(|pin| pin.parse::<Pin>()).collect::<Result<Vec<_>, _>>();
        let holds = readable.is_ok_and(|pins| Pins::new(pins).is_ok());
        if !holds || ca_pins == self.kept.ca_pins {
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

    /// The keys that the server, and every peer, is known by.
    pub fn pins(&self) -> Option<Pins> {
        let pins: Result<Vec<Pin>, _> = self.kept.ca_pins.iter().map(|pin| pin.parse()).collect();
        Pins::new(pins.ok()?).ok()
    }

    /// This machine's certificate, and the authorities' behind it.
    pub(crate) fn chain(&self) -> Vec<CertificateDer<'static>> {
        let authorities = CertificateDer::pem_slice_iter(self.kept.authorities.as_bytes()).flatten();
        self.credential.chain.iter().take(1).cloned().chain(authorities).collect()
    }

    /// Its key.
    pub(crate) fn key(&self) -> PrivateKeyDer<'static> {
        self.credential.key.clone_key()
    }

    /// The link that it leads to; none when what is kept names no server.
    pub fn link(&self) -> Option<Link> {
        let server = Endpoint::parse("the kept server", &self.kept.server).ok()?;
        Some(Link { server, pins: self.pins()? })
    }

    /// Time for the next certificate; or without the authorities', which come with it.
    pub fn is_due(&self, now: Time) -> bool {
        let (at, after_s) = (self.kept.renew_at, self.kept.renew_after_s.unwrap_or(RENEW_AFTER_S));
        // It was given while the clock stood ahead: the server, whose clock did not, ends it long before.
        let is_too_far = at > now + Span::from_s(after_s) + CLOCK_SLACK;
        now >= at || is_too_far || self.kept.authorities.is_empty()
    }
}

/// Key and certificate, durably.
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
