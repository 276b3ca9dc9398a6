//! The clients of a cluster's etcd: one for each endpoint of the roster, with the client certificate. Wiring alone.
//!
//! Each request has a deadline and each answer a size limit. The client repeats no request, follows no redirect and uses
//! no proxy. It reads the key into the connection and nowhere else.

use std::error::Error as _;
use std::path::Path;
use std::time::Duration;

use anyhow::Context as _;
use reqwest::{Certificate, Client, Identity};
use reveille_rancher::ask::{ApiClient, Given, Refused, Request};
use reveille_wire::roster::EtcdRef;
use serde::Deserialize;

/// A healthy etcd answers within milliseconds.
const WITHIN: Duration = Duration::from_secs(5);
/// A list of members is a few kilobytes.
const ANSWER_BYTES_MAX: usize = 1 << 20;
/// The longest part of a refusal that an error quotes.
const WORDS_MAX: usize = 300;

/// A client of one member.
pub(super) struct EtcdClient {
    http: Client,
    endpoint: String,
}

#[derive(Default, Deserialize)]
#[serde(default)]
struct Said {
    error: String,
    message: String,
}

/// A client for each endpoint. Sends nothing yet.
pub(super) fn open(at: &EtcdRef) -> anyhow::Result<Vec<EtcdClient>> {
    let mut shown = read(&at.cert)?;
    shown.push(b'\n');
    shown.extend(read(&at.key)?);
    let unusable =
        || format!("{} and {} are no certificate with its key", at.cert.display(), at.key.display());
    let identity = Identity::from_pem(&shown).with_context(unusable)?;
    let roots = Certificate::from_pem_bundle(&read(&at.ca)?)
        .with_context(|| format!("{} holds no certificates", at.ca.display()))?;
    let http = Client::builder()
        .tls_certs_only(roots)
        .identity(identity)
        .https_only(true)
        .http1_only()
        .no_proxy()
        .redirect(reqwest::redirect::Policy::none())
        .user_agent(concat!("reveille/", env!("CARGO_PKG_VERSION")))
        .connect_timeout(WITHIN)
        .timeout(WITHIN)
        .build()
        .with_context(unusable)?;
    let client = |endpoint: &String| EtcdClient { http: http.clone(), endpoint: endpoint.clone() };
    Ok(at.endpoints.iter().map(client).collect())
}

fn read(path: &Path) -> anyhow::Result<Vec<u8>> {
    std::fs::read(path).with_context(|| format!("cannot read {}", path.display()))
}

impl ApiClient for EtcdClient {
    async fn send(&self, request: Request) -> Result<Given, Refused> {
        let sent = self
            .http
            .post(format!("{}{}", self.endpoint, request.target))
            .header("content-type", "application/json")
            .body(request.body.unwrap_or_default())
            .send();
        let mut response = sent.await.map_err(|error| self.broken(&error))?;
        let status = response.status();
        let mut body = Vec::new();
        while let Some(piece) = response.chunk().await.map_err(|error| self.broken(&error))? {
            if body.len() + piece.len() > ANSWER_BYTES_MAX {
                let cause = format!("{}: an answer of more than {ANSWER_BYTES_MAX} bytes", self.endpoint);
                return Err(Refused { cause, missing: false, code: None, may_have_happened: true });
            }
            body.extend_from_slice(&piece);
        }
        if status.is_success() {
            return Ok(Given { body, date: None });
        }
        let said: Said = serde_json::from_slice(&body).unwrap_or_default();
        let said = if said.error.is_empty() { said.message } else { said.error };
        let words: String = said.chars().take(WORDS_MAX).collect();
        Err(Refused {
            // "Not found" alone may mean a path that this etcd does not know.
            missing: status.as_u16() == 404 && words.contains("member not found"),
            cause: format!("{}: {status} {words}", self.endpoint).trim_end().to_owned(),
            code: Some(status.as_u16()),
            // An etcd that stopped waiting for its quorum may still carry out the request.
            may_have_happened: status.is_server_error() && words.contains("timed out"),
        })
    }
}

impl EtcdClient {
    /// There is no complete answer. The innermost cause is the useful one; the outer ones only say that a request was being sent.
    fn broken(&self, error: &reqwest::Error) -> Refused {
        let mut cause = error.to_string();
        let mut inner = error.source();
        while let Some(source) = inner {
            cause = source.to_string();
            inner = source.source();
        }
        if error.is_timeout() {
            cause = format!("no answer within {} s", WITHIN.as_secs());
        }
        Refused {
            cause: format!("{}: {cause}", self.endpoint),
            missing: false,
            code: None,
            may_have_happened: !error.is_connect(),
        }
    }
}

#[cfg(test)]
mod tests;
