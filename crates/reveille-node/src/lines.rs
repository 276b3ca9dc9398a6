//! Connections to the API server that are kept from one look to the next.
//!
//! An agent looks every few seconds for as long as its machine lives. With a handshake to each look, five thousand agents cost
//! the API servers more than their kubelets do, and each agent a name lookup, a root store and a new client. A line is kept by
//! whom it trusts and what it shows: other authorities or another certificate are another line. One that failed once is given up
//! and dialled anew, because a connection whose other end went away without a word would fail for a quarter of an hour.

use std::collections::VecDeque;
use std::sync::{Mutex, MutexGuard, PoisonError};
use std::time::Duration;

use aws_lc_rs::digest::{Context, SHA256};
use secrecy::ExposeSecret as _;
use tokio_rustls::rustls::pki_types::CertificateDer;

use crate::api::{Answer, Api, ApiError};
use crate::target::Endpoint;
use crate::target::kubeconfig::Client;

/// One that shows nothing and one that shows the certificate, to two servers.
const KEPT: usize = 4;

/// Which line: its server, whom it trusts, what it shows. Nothing secret can be read from it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Key([u8; 32]);

impl Key {
    pub(crate) fn of(
        endpoint: &Endpoint,
        authorities: &[CertificateDer<'_>],
        client: Option<&Client>,
    ) -> Self {
        let mut digest = Context::new(&SHA256);
        let mut put = |part: &[u8]| {
            // By its length, so that no two lists of parts are one text.
            digest.update(&(part.len() as u64).to_le_bytes());
            digest.update(part);
        };
        put(endpoint.to_string().as_bytes());
        put(&(authorities.len() as u64).to_le_bytes());
        authorities.iter().for_each(|authority| put(authority));
        if let Some(client) = client {
            client.certificates().iter().for_each(|certificate| put(certificate));
            put(client.key_pem().map_or("", |key| key.expose_secret()).as_bytes());
        }
        let mut key = [0; 32];
        key.copy_from_slice(digest.finish().as_ref());
        Self(key)
    }
}

/// The lines that are kept, the newest last.
#[derive(Debug, Default)]
pub(crate) struct Lines(Mutex<VecDeque<(Key, Api)>>);

impl Lines {
    /// Asks over the line that is kept, or over one that is made for it.
    pub(crate) async fn get(
        &self,
        key: Key,
        make: impl FnOnce() -> Result<Api, ApiError>,
        path: &str,
        within: Duration,
    ) -> Result<Answer, ApiError> {
        let kept = self.lock().iter().find(|(of, _)| *of == key).map(|(_, api)| api.clone());
        let api = kept.map_or_else(make, Ok)?;
        let answer = api.get(path, within).await;
        let mut lines = self.lock();
        lines.retain(|(of, _)| *of != key);
        if answer.is_ok() {
            if lines.len() == KEPT {
                lines.pop_front();
            }
            lines.push_back((key, api));
        }
        answer
    }

    fn lock(&self) -> MutexGuard<'_, VecDeque<(Key, Api)>> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }
}
