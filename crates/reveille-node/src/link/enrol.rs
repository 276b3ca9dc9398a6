//! A token for a certificate, a certificate for the next one.
//!
//! The key is made here and stays here. It is made before the request and used for every repetition of it: the server knows a
//! lost answer by the key, and an invitation is used once. So it is on the disk before it is shown, and an agent that died in
//! between is still the one that was let in. The next key is on the disk before it is shown, too, and is the same until it is
//! used: the server knows one next key of a machine, and a full disk may keep any of two.

use std::path::{Path, PathBuf};

use rcgen::{CertificateParams, DistinguishedName, KeyPair};
use reveille_core::model::time::{Span, Time};
use reveille_wire::agent::enrol::Pem;
use reveille_wire::agent::text::Word;
use reveille_wire::agent::{Enrol, Enrolled, Facts, Identity, PROTOCOL, Reason, Renew, Secret, path};
use thiserror::Error;

use super::keyring::{Kept, welcomed};
use super::{ANSWER_WITHIN, Credential, Keyring, KeyringError, Link, LinkError, dial};
use crate::durable::replace;
use crate::private::{ENROLLING_PEM, RENEWING_PEM};

/// A machine that wants to be known.
pub struct Enrolment {
    key: KeyPair,
    identity: Identity,
    facts: Facts,
    node_name: Option<Word>,
}

impl Enrolment {
    /// With a fresh key.
    ///
    /// # Errors
    ///
    /// None can be made.
    pub fn new(identity: Identity, facts: Facts, node_name: Option<Word>) -> Result<Self, LinkError> {
        Ok(Self { key: fresh()?, identity, facts, node_name })
    }

    /// With the key of an enrolment that broke off, or with a fresh one, which is in this folder from then on.
    ///
    /// # Errors
    ///
    /// None can be made, or kept.
    pub fn kept(
        folder: &Path,
        identity: Identity,
        facts: Facts,
        node_name: Option<Word>,
    ) -> Result<Self, LinkError> {
        Ok(Self { key: kept_key(&begun(folder), |_| true)?, identity, facts, node_name })
    }

    /// It is over, one way or the other: the next one is with another key.
    pub fn forget(folder: &Path) {
        // One that stays is passed over by a machine that is enrolled. Keys that are left were those of another record.
        for path in [begun(folder), next_key(folder), welcomed(folder)] {
            std::fs::remove_file(path).ok();
        }
    }

    /// Asks; may be repeated until it is answered.
    ///
    /// # Errors
    ///
    /// Nobody answers, or the server refuses.
    pub async fn ask(&self, link: &Link, token: &Secret, now: Time) -> Result<(Credential, Kept), LinkError> {
        let wish = Enrol {
            protocol: PROTOCOL,
            identity: self.identity.clone(),
            facts: self.facts.clone(),
            node_name: self.node_name.clone(),
            csr: csr(&self.key)?,
        };
        let mut line = dial::dial(link, None).await?;
        let enrolled: Enrolled = line.post(path::ENROL, Some(token), &wish, ANSWER_WITHIN).await?;
        taken(link, &self.key, enrolled, now)
    }
}

impl Link {
    /// The next certificate, with a fresh key.
    ///
    /// # Errors
    ///
    /// Nobody answers, or the server refuses; the one before counts on.
    pub async fn renew(&self, credential: &Credential, now: Time) -> Result<(Credential, Kept), LinkError> {
        self.renew_with(&fresh()?, credential, now).await
    }

    async fn renew_with(
        &self,
        key: &KeyPair,
        credential: &Credential,
        now: Time,
    ) -> Result<(Credential, Kept), LinkError> {
        let wish = Renew { protocol: PROTOCOL, csr: csr(key)? };
        let mut line = dial::dial(self, Some(credential)).await?;
        let enrolled: Enrolled = line.post(path::RENEW, None, &wish, ANSWER_WITHIN).await?;
        taken(self, key, enrolled, now)
    }
}

impl Keyring {
    /// With the next certificate, which is on the disk. The next key is, before it is shown, and until the keyring has it: where
    /// the rest cannot be kept, the same key is asked for again.
    ///
    /// # Errors
    ///
    /// Nobody answers, the server refuses, or the disk does; the certificate before counts on.
    pub async fn renewed(&self, link: &Link, now: Time) -> Result<Self, RenewError> {
        let path = next_key(self.directory());
        // One that the keyring has already was not taken away when it was done.
        let is_next = |key: &KeyPair| !self.credential.pem().contains(key.serialize_pem().trim());
        let key = kept_key(&path, is_next)?;
        let (credential, kept) = link.renew_with(&key, &self.credential, now).await?;
        let keyring = self.keep_next(credential, kept)?;
        std::fs::remove_file(path).ok();
        Ok(keyring)
    }
}

/// Why there is no next certificate.
#[derive(Debug, Error)]
pub enum RenewError {
    /// It was not given.
    #[error(transparent)]
    Link(#[from] LinkError),
    /// It cannot be kept.
    #[error(transparent)]
    Keyring(#[from] KeyringError),
}

fn fresh() -> Result<KeyPair, LinkError> {
    KeyPair::generate().map_err(|error| LinkError::Key(error.to_string()))
}

/// The key that is there, if it is one that counts; or a fresh one, which is there from then on.
fn kept_key(path: &Path, counts: impl Fn(&KeyPair) -> bool) -> Result<KeyPair, LinkError> {
    let before = std::fs::read_to_string(path).ok().and_then(|pem| KeyPair::from_pem(&pem).ok());
    if let Some(key) = before.filter(counts) {
        return Ok(key);
    }
    let key = fresh()?;
    replace(path, key.serialize_pem().as_bytes())
        .map_err(|error| LinkError::Key(format!("{} cannot be written: {error}", path.display())))?;
    Ok(key)
}

fn begun(folder: &Path) -> PathBuf {
    folder.join(ENROLLING_PEM)
}

fn next_key(folder: &Path) -> PathBuf {
    folder.join(RENEWING_PEM)
}

/// A request that says nothing but the key.
fn csr(key: &KeyPair) -> Result<Pem, LinkError> {
    let mut params = CertificateParams::default();
    params.distinguished_name = DistinguishedName::new();
    let request = params.serialize_request(key).and_then(|request| request.pem());
    request.map(|pem| Pem::from(pem.as_str())).map_err(|error| LinkError::Key(error.to_string()))
}

fn taken(link: &Link, key: &KeyPair, enrolled: Enrolled, now: Time) -> Result<(Credential, Kept), LinkError> {
    let pem = format!("{}{}", key.serialize_pem(), enrolled.certificate.as_str());
    let wrong =
        |what: &str| LinkError::refused(Reason::BadFrame { place: "certificate".into(), what: what.into() });
    let credential = Credential::read(&pem).ok_or_else(|| wrong("it cannot be read"))?;
    let after_s = i64::try_from(enrolled.renew_after_s).unwrap_or(i64::MAX / 1000).min(i64::MAX / 1000);
    let kept = Kept {
        server: link.server.to_string(),
        ca_pins: enrolled.ca_pins.iter().map(ToString::to_string).collect(),
        machine: enrolled.machine,
        node_name: enrolled.node_name,
        renew_at: now + Span::from_s(after_s),
        renew_after_s: Some(after_s),
        authorities: enrolled.authorities.to_string(),
    };
    Ok((credential, kept))
}
