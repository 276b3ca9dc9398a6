//! Enrolment, which gives a certificate for a token, and renewal, which gives the next certificate.
//!
//! The machine makes the key itself, and the key stays on the machine. It makes the key before the request and uses it
//! for every repetition. The server recognises a repeated request by the key, because an invitation can be used once. So
//! the key is on the disk before it is sent, and an agent that died in between is still the admitted one. The next key is
//! also on the disk before it is sent, and stays the same until it is used. The server keeps few next keys of a machine,
//! and a full disk may keep either of two files.

use std::path::{Path, PathBuf};

use rcgen::{CertificateParams, DistinguishedName, KeyPair, PublicKeyData as _};
use reveille_core::model::time::{Span, Time};
use reveille_wire::agent::enrol::Pem;
use reveille_wire::agent::text::Word;
use reveille_wire::agent::{Enrol, Enrolled, Facts, Identity, PROTOCOL, Reason, Renew, Secret, path};
use thiserror::Error;

use super::keyring::{Kept, keep_known, welcomed};
use super::{ANSWER_WITHIN, Credential, Keyring, KeyringError, Link, LinkError, dial};
use crate::certificate::Presented;
use crate::durable::replace;
use crate::pin::Pin;
use crate::private::{ENROLLING_PEM, RENEWING_PEM};

/// A machine that asks to be enrolled.
pub struct Enrolment {
    key: KeyPair,
    identity: Identity,
    facts: Facts,
    node_name: Option<Word>,
}

impl Enrolment {
    /// An enrolment with a new key.
    ///
    /// # Errors
    ///
    /// No key can be made.
    pub fn new(identity: Identity, facts: Facts, node_name: Option<Word>) -> Result<Self, LinkError> {
        Ok(Self { key: fresh()?, identity, facts, node_name })
    }

    /// An enrolment with the key of a broken one, or with a new key, which is in this folder from then on.
    ///
    /// # Errors
    ///
    /// No key can be made or kept.
    pub fn kept(
        folder: &Path,
        identity: Identity,
        facts: Facts,
        node_name: Option<Word>,
    ) -> Result<Self, LinkError> {
        Ok(Self { key: kept_key(&begun(folder), |_| true)?, identity, facts, node_name })
    }

    /// Ends the enrolment: the next one has another key.
    pub fn forget(folder: &Path) {
        // An enrolled machine ignores a leftover key. Other keys in the folder were of another record.
        for path in [begun(folder), next_key(folder), welcomed(folder)] {
            std::fs::remove_file(path).ok();
        }
    }

    /// Asks the server; the caller may repeat this until there is an answer.
    ///
    /// # Errors
    ///
    /// The server does not answer, or refuses.
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
        taken(link, line.known_by, &self.key, enrolled, now)
    }
}

impl Link {
    /// Asks for the next certificate, with a new key.
    ///
    /// # Errors
    ///
    /// The server does not answer, or refuses; the certificate before stays in use.
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
        taken(self, line.known_by, key, enrolled, now)
    }
}

impl Keyring {
    /// The keyring with the next certificate, which is on the disk. The next key is on the disk before it is sent, and
    /// until the keyring has it. If the rest cannot be written, the agent asks again with the same key.
    ///
    /// # Errors
    ///
    /// The server does not answer or refuses, or the disk fails; the certificate before stays in use.
    pub async fn renewed(&self, link: &Link, now: Time) -> Result<Self, RenewError> {
        let path = next_key(self.directory());
        // The keyring already has this key: the last renewal could not remove the file.
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
    /// The server did not give it.
    #[error(transparent)]
    Link(#[from] LinkError),
    /// The disk cannot keep it.
    #[error(transparent)]
    Keyring(#[from] KeyringError),
}

fn fresh() -> Result<KeyPair, LinkError> {
    KeyPair::generate().map_err(|error| LinkError::Key(error.to_string()))
}

/// The key in the file, if it is valid and `counts` accepts it; otherwise a new one, which is in the file from then on.
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

/// A certificate signing request with only the key.
fn csr(key: &KeyPair) -> Result<Pem, LinkError> {
    let mut params = CertificateParams::default();
    params.distinguished_name = DistinguishedName::new();
    let request = params.serialize_request(key).and_then(|request| request.pem());
    request.map(|pem| Pem::from(pem.as_str())).map_err(|error| LinkError::Key(error.to_string()))
}

/// The answer, as far as an agent can live with it: it replaces what leads back to the server, so that one wrong answer must
/// not end the link for good.
fn taken(
    link: &Link,
    known_by: Pin,
    key: &KeyPair,
    enrolled: Enrolled,
    now: Time,
) -> Result<(Credential, Kept), LinkError> {
    let pem = format!("{}{}", key.serialize_pem(), enrolled.certificate.as_str());
    let wrong_in = |place: &str, what: &str| {
        LinkError::refused(Reason::BadFrame { place: place.into(), what: what.into() })
    };
    let wrong = |what: &str| wrong_in("certificate", what);
    let credential = Credential::read(&pem).ok_or_else(|| wrong("it cannot be read"))?;
    // The server may be wrong about when, and one wrong answer would leave the machine without the next certificate until this
    // one ends. How long it is valid needs no clock of ours.
    let own = credential.chain.first().map(Presented::read).ok_or_else(|| wrong("there is none"))?;
    if own.key != Some(Pin::of_key(&key.subject_public_key_info())) {
        return Err(wrong("it is of another key"));
    }
    let ca_pins: Vec<String> = enrolled.ca_pins.iter().map(ToString::to_string).collect();
    if !keep_known(&ca_pins, known_by) {
        return Err(wrong_in("ca_pins", "the server that told them is not known by them"));
    }
    let lives_s = own.not_after_s.saturating_sub(own.not_before_s).clamp(0, i64::MAX / 1000);
    let after_s = i64::try_from(enrolled.renew_after_s).unwrap_or(i64::MAX).min(lives_s / 3 * 2);
    let kept = Kept {
        server: link.server.to_string(),
        ca_pins,
        machine: enrolled.machine,
        node_name: enrolled.node_name,
        renew_at: now + Span::from_s(after_s),
        renew_after_s: Some(after_s),
        authorities: enrolled.authorities.to_string(),
    };
    Ok((credential, kept))
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::target::Endpoint;

    /// A server says after 100 years, or never, of a certificate of 30 days: it is renewed in time all the same.
    #[test]
    fn certificate_is_renewed_before_expiry_despite_server_advice() {
        const DAY: i64 = 24 * 3_600;
        let key = fresh().unwrap();
        let mut params = CertificateParams::default();
        (params.not_before, params.not_after) =
            (rcgen::date_time_ymd(2026, 6, 1), rcgen::date_time_ymd(2026, 7, 1));
        let certificate = params.self_signed(&key).unwrap().pem();
        let pin = Presented::read(
            Credential::read(&format!("{}{certificate}", key.serialize_pem()))
                .unwrap()
                .chain
                .first()
                .unwrap(),
        );
        let server = Endpoint { host: "127.0.0.1".to_owned(), port: 1 };
        let known_by = pin.key.unwrap();
        let link = Link { server, pins: crate::pins::Pins::new(vec![known_by]).unwrap() };
        let now = Time::from_ms(1_800_000_000_000);
        for (said_s, wanted_s) in [
            (u64::MAX, 20 * DAY),
            (100 * 365 * 86_400, 20 * DAY),
            (20 * 86_400, 20 * DAY),
            (3_600, 3_600),
            (0, 0),
        ] {
            let enrolled = Enrolled {
                machine: "m".into(),
                certificate: Pem::from(certificate.as_str()),
                authorities: Pem::from(certificate.as_str()),
                ca_pins: reveille_wire::agent::text::List::first([Word::cut(&known_by.to_string())]),
                node_name: "n".into(),
                ttl_s: 30 * 86_400,
                renew_after_s: said_s,
                next: "".into(),
            };
            let (_, kept) = taken(&link, known_by, &key, enrolled, now).unwrap();
            assert_eq!(
                (kept.renew_at, kept.renew_after_s),
                (now + Span::from_s(wanted_s), Some(wanted_s)),
                "{said_s}"
            );
        }
    }
}
