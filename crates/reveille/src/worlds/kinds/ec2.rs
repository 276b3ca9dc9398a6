//! EC2 as a kind of cloud: `reveille_ec2::Account` behind the seam.

use std::sync::Arc;

use futures::FutureExt as _;
use futures::future::BoxFuture;
use reqwest::Url;
use reveille_core::effect::{Call, Look, Outcome, ReadError, ReadErrorKind};
use reveille_core::event::{Answer, CloudSnapshot};
use reveille_core::model::id::CloudName;
use reveille_core::model::roster::Roster;
use reveille_ec2::{Account, ConnectError, Ec2Config, Interest, Lister};

use super::{Connected, Listing, Unconnected, Unwanted, Wants};

/// Finds the account and its credentials.
pub(super) async fn connect(
    name: CloudName,
    region: String,
    profile: Option<String>,
    endpoint: Option<String>,
    cluster: String,
) -> Result<Connected, Unconnected> {
    let config = Ec2Config {
        region: Some(region),
        profile,
        endpoint: endpoint.as_deref().map(address).transpose()?,
        ..Ec2Config::new(name, cluster)
    };
    let account = Account::connect(&config).await.map_err(|error| Unconnected {
        hopeless: matches!(error, ConnectError::NoRegion { .. } | ConnectError::Address { .. }),
        error: error.as_read_error(),
    })?;
    tracing::info!(cloud = %config.name, account = %account.id(), region = account.region(), "logged in");
    Ok(Arc::new(account))
}

/// A roster was checked for the form; what is no address all the same never becomes one.
fn address(text: &str) -> Result<Url, Unconnected> {
    Url::parse(text).map_err(|error| {
        let text =
            Arc::from(format!("ec2: {text:?} is not an address ({error}). Correct endpoint in the roster"));
        let error = ReadError { kind: ReadErrorKind::Unavailable, text, retry_after: None };
        Unconnected { error, hopeless: true }
    })
}

impl super::Project for Account {
    fn look(&self, look: Look) -> BoxFuture<'static, Result<Answer, ReadError>> {
        let account = self.clone();
        async move { Self::look(&account, &look).await }.boxed()
    }

    fn perform(&self, call: Call) -> BoxFuture<'static, Outcome> {
        let account = self.clone();
        async move { Self::perform(&account, &call).await }.boxed()
    }

    fn lister(&self, wants: &Wants) -> Box<dyn Listing> {
        let wants: Vec<(&Roster, &CloudName)> = wants.iter().map(|(roster, name)| (roster, name)).collect();
        Box::new(Lister::new(self.clone(), Interest::of(&wants)))
    }

    fn warning(&self) -> Option<String> {
        None
    }
}

impl Listing for Lister {
    fn list(&mut self, now_full: bool) -> BoxFuture<'_, Result<CloudSnapshot, ReadError>> {
        Self::list(self, now_full).boxed()
    }

    /// Instances are listed by the cluster's tag, so strangers are not seen at all.
    fn list_with_strangers(&mut self) -> BoxFuture<'_, Result<(CloudSnapshot, Unwanted), ReadError>> {
        async move { Ok((Self::list(self, true).await?, Vec::new())) }.boxed()
    }
}
