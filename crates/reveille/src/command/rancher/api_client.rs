//! The API client that Rancher's adapter needs, from the Kubernetes adapter. Wiring alone.

use std::time::Duration;

use reveille_kube::{Cluster, ClusterConfig, ConnectError, Method, Wish};
use reveille_rancher::ask::{ApiClient, Given, Refused, Request, Verb};

/// A page of records has megabytes, and may come over a slow line.
const WITHIN: Duration = Duration::from_secs(30);

/// A client of one API server.
pub(crate) struct KubeClient(Cluster);

impl KubeClient {
    /// Logs in. Sends nothing yet.
    pub(crate) async fn open(config: &ClusterConfig) -> Result<Self, ConnectError> {
        Cluster::connect(config).await.map(Self)
    }

    /// `host:port`.
    pub(crate) fn server(&self) -> &str {
        self.0.server()
    }
}

impl ApiClient for KubeClient {
    async fn send(&self, request: Request) -> Result<Given, Refused> {
        let method = match request.verb {
            Verb::Get => Method::GET,
            Verb::Post => Method::POST,
            Verb::Put => Method::PUT,
            Verb::Delete => Method::DELETE,
        };
        let wish =
            Wish { method, target: request.target, body: request.body, about: request.about, within: WITHIN };
        match self.0.ask(wish).await {
            Ok(granted) => Ok(Given { body: granted.body, date: granted.date }),
            Err(denied) => Err(Refused {
                cause: denied.cause,
                missing: denied.missing,
                code: denied.code,
                may_have_happened: denied.may_have_happened,
            }),
        }
    }
}
