//! Gives aws-config an HTTP client: ours.
//!
//! ```text
//! aws-config: STS, SSO, container and instance metadata ─▶ Bridge ─▶ reqwest (rustls, aws-lc-rs)
//! ```
//!
//! The program then has one TLS stack with one set of certificate authorities, and not a second one for the minute in which
//! credentials are fetched. Requests to addresses that only this machine reaches (instance and container metadata) bypass every
//! proxy. Answers are bounded; the deadlines are those that aws-config asks for, and ours where it asks for none.

use std::net::IpAddr;
use std::sync::Arc;
use std::time::Duration;

use aws_smithy_runtime_api::client::http::{
    HttpClient, HttpConnector, HttpConnectorFuture, HttpConnectorSettings, SharedHttpConnector,
};
use aws_smithy_runtime_api::client::orchestrator::{HttpRequest, HttpResponse};
use aws_smithy_runtime_api::client::result::ConnectorError;
use aws_smithy_runtime_api::client::runtime_components::RuntimeComponents;
use aws_smithy_types::body::SdkBody;
use reqwest::{Method, Url};

use reveille_cloud::tls::builder;

/// A token and its keys are a few kilobytes.
const BODY_MAX: usize = 1024 * 1024;
/// Where aws-config names no deadline of its own.
const DEADLINE: Duration = Duration::from_secs(10);

/// The HTTP client behind the credential chain.
#[derive(Clone, Debug)]
pub(crate) struct Bridge {
    outside: reqwest::Client,
    direct: reqwest::Client,
}

impl Bridge {
    pub(crate) fn new() -> Result<Self, reqwest::Error> {
        Ok(Self { outside: builder(DEADLINE).build()?, direct: builder(DEADLINE).no_proxy().build()? })
    }

    fn client(&self, url: &Url) -> &reqwest::Client {
        if is_of_this_machine(url) { &self.direct } else { &self.outside }
    }
}

impl HttpClient for Bridge {
    fn http_connector(&self, settings: &HttpConnectorSettings, _: &RuntimeComponents) -> SharedHttpConnector {
        let deadline = settings.read_timeout().unwrap_or(DEADLINE);
        SharedHttpConnector::new(Connector { bridge: Arc::new(self.clone()), deadline })
    }
}

#[derive(Debug)]
struct Connector {
    bridge: Arc<Bridge>,
    deadline: Duration,
}

impl HttpConnector for Connector {
    fn call(&self, request: HttpRequest) -> HttpConnectorFuture {
        let (bridge, deadline) = (self.bridge.clone(), self.deadline);
        HttpConnectorFuture::new(async move { exchange(&bridge, request, deadline).await })
    }
}

async fn exchange(
    bridge: &Bridge,
    request: HttpRequest,
    deadline: Duration,
) -> Result<HttpResponse, ConnectorError> {
    let user = |error: &str| ConnectorError::user(error.to_owned().into());
    let url: Url = request.uri().parse().map_err(|_| user("the address of a credential source is none"))?;
    let method = Method::from_bytes(request.method().as_bytes()).map_err(|_| user("no such method"))?;
    let body = request.body().bytes().ok_or_else(|| user("a streaming body"))?.to_vec();
    let mut sent = bridge.client(&url).request(method, url).timeout(deadline).body(body);
    for (name, value) in request.headers() {
        sent = sent.header(name, value);
    }
    let mut reply = sent.send().await.map_err(failed)?;
    let mut bytes = Vec::new();
    while let Some(chunk) = reply.chunk().await.map_err(failed)? {
        if bytes.len() + chunk.len() > BODY_MAX {
            return Err(ConnectorError::user("the answer of a credential source is too large".into()));
        }
        bytes.extend_from_slice(&chunk);
    }
    let status = reply.status().as_u16().try_into().map_err(|_| user("the answer's status is no status"))?;
    let mut response = HttpResponse::new(status, SdkBody::from(bytes));
    for (name, value) in reply.headers() {
        if let Ok(value) = value.to_str() {
            response.headers_mut().append(name.as_str().to_owned(), value.to_owned());
        }
    }
    Ok(response)
}

/// Addresses carry role names and tokens' paths: the error keeps none.
fn failed(error: reqwest::Error) -> ConnectorError {
    let error = error.without_url();
    if error.is_timeout() { ConnectorError::timeout(error.into()) } else { ConnectorError::io(error.into()) }
}

fn is_of_this_machine(url: &Url) -> bool {
    let host = url.host_str().unwrap_or_default().trim_matches(['[', ']']);
    match host.parse::<IpAddr>() {
        Ok(IpAddr::V4(address)) => address.is_link_local() || address.is_loopback(),
        // EC2's IPv6 metadata address lies in the unique local range.
        Ok(IpAddr::V6(address)) => address.is_loopback() || address.is_unique_local(),
        Err(_) => host == "localhost",
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn metadata_is_never_asked_through_a_proxy() {
        let cases = [
            ("http://169.254.169.254/latest/api/token", true),
            ("http://169.254.170.2/v2/credentials/x", true),
            ("http://[fd00:ec2::254]/latest", true),
            ("http://localhost:1/", true),
            ("https://sts.eu-central-1.amazonaws.com/", false),
            ("http://10.0.0.1/", false),
        ];
        for (url, direct) in cases {
            assert_eq!(is_of_this_machine(&url.parse().unwrap()), direct, "{url}");
        }
    }
}
