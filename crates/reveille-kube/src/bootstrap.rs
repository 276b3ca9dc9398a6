//! Bootstrap tokens: made for one machine's join, and taken away when it has joined.
//!
//! A token is a Secret of kube-system, as `kubeadm token create` writes it. The API server lets a client with this token request
//! a kubelet's certificate until the token expires. Then the token cleaner of the controller manager deletes it. This module
//! reads nothing here, so the controller does not need the right to read secrets.

use std::time::Duration;

use crate::cluster::Cluster;
use crate::failure::Reached;
use crate::paths;
use crate::session::Question;
use crate::shared::Shared;

const WITHIN: Duration = Duration::from_secs(15);
/// The group that kubeadm binds to what a joining machine needs.
const GROUP: &str = "system:bootstrappers:kubeadm:default-node-token";

/// A token to be made.
pub struct BootstrapToken<'t> {
    /// Its public half, six characters.
    pub id: &'t str,
    /// Its secret half, sixteen characters.
    pub secret: &'t str,
    /// It ends then, RFC 3339.
    pub until: &'t str,
    /// For whom, for people.
    pub description: &'t str,
}

impl Cluster {
    /// Makes a token.
    ///
    /// # Errors
    /// Why not, as a clause. It may be there all the same when no answer came; it ends by itself.
    pub async fn make_bootstrap_token(&self, token: &BootstrapToken<'_>) -> Result<(), String> {
        let secret = serde_json::json!({
            "apiVersion": "v1",
            "kind": "Secret",
            "metadata": {"name": name(token.id), "namespace": "kube-system"},
            "type": "bootstrap.kubernetes.io/token",
            "stringData": {
                "token-id": token.id,
                "token-secret": token.secret,
                "expiration": token.until,
                "description": token.description,
                "usage-bootstrap-authentication": "true",
                "usage-bootstrap-signing": "true",
                "auth-extra-groups": GROUP,
            },
        });
        let ask = paths::create_secret(secret.to_string().into_bytes()).map_err(|error| error.to_string())?;
        send(self.inner(), ask).await.map_err(|(cause, _)| cause)
    }

    /// Takes a token away. One that is not there is as good.
    ///
    /// # Errors
    /// Why not, as a clause.
    pub async fn drop_bootstrap_token(&self, id: &str) -> Result<(), String> {
        let ask = paths::delete_secret(&name(id)).map_err(|error| error.to_string())?;
        match send(self.inner(), ask).await {
            Err((_, Reached::Answered { code: 404, .. })) | Ok(()) => Ok(()),
            Err((cause, _)) => Err(cause),
        }
    }
}

fn name(id: &str) -> String {
    format!("bootstrap-token-{id}")
}

async fn send(cluster: &Shared, ask: paths::Ask) -> Result<(), (String, Reached)> {
    let question = Question { ask, within: WITHIN, about: None };
    let sent = cluster.session.read(question, &mut Vec::new()).await;
    sent.map(drop).map_err(|failure| (failure.cause, failure.reached))
}
