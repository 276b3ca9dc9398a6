//! Connections to the API server that are kept from one inspection to the next.
//!
//! An agent inspects every few seconds for as long as its machine lives. With a handshake for each inspection, five
//! thousand agents would cost the API servers more than their kubelets do. Each agent would also need a DNS lookup, a
//! root store and a new client each time. A connection is kept by its trust and its credentials: other CAs or another
//! certificate need another connection. After one failure it is dropped and dialled again: if its other end vanished
//! silently, it would fail for a quarter of an hour.

use std::collections::VecDeque;
use std::sync::{Mutex, MutexGuard, PoisonError};
use std::time::Duration;

use aws_lc_rs::digest::{Context, SHA256};
use secrecy::ExposeSecret as _;
use tokio_rustls::rustls::pki_types::CertificateDer;

use crate::api::{Answer, Api, ApiError};
use crate::target::Endpoint;
use crate::target::kubeconfig::Client;

/// For two servers: one connection without credentials, and one with the certificate.
const KEPT: usize = 4;

/// The key of a connection: its server, its trust, its credentials. No secret can be read from it.
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
            // The length comes first, so that no two lists of parts give the same text.
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

/// The kept connections, the newest last.
#[derive(Debug, Default)]
pub(crate) struct Lines(Mutex<VecDeque<(Key, Api)>>);

impl Lines {
    /// Asks over the kept connection, or over a new one.
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
