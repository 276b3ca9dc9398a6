//! OpenStack as a kind of cloud: `reveille_openstack::Project` behind the seam.

use std::path::PathBuf;
use std::sync::Arc;

use futures::FutureExt as _;
use futures::future::BoxFuture;
use reveille_core::effect::{Call, Look, Outcome, ReadError};
use reveille_core::event::{Answer, CloudSnapshot};
use reveille_core::model::id::CloudName;
use reveille_core::model::roster::Roster;
use reveille_openstack::{CloudConfig, ConnectError, Interest, Lister, Project};

use super::{Connected, Listing, Unconnected, Unwanted, Wants};

/// Logs in to an entry of a clouds.yaml.
pub(super) async fn connect(
    name: CloudName,
    cloud: String,
    clouds_file: Option<PathBuf>,
) -> Result<Connected, Unconnected> {
    let config = CloudConfig { name, cloud, clouds_file };
    let project = Project::connect(&config).await.map_err(|error| Unconnected {
        error: error.as_read_error(),
        hopeless: matches!(error, ConnectError::Config { .. } | ConnectError::TooOld { .. }),
    })?;
    tracing::info!(cloud = %config.cloud, project = %project.name(), compute = %project.microversion(), "logged in");
    Ok(Arc::new(project))
}

impl super::Project for Project {
    fn look(&self, look: Look) -> BoxFuture<'static, Result<Answer, ReadError>> {
        let project = self.clone();
        async move { Self::look(&project, &look).await }.boxed()
    }

    fn perform(&self, call: Call) -> BoxFuture<'static, Outcome> {
        let project = self.clone();
        async move { Self::perform(&project, &call).await }.boxed()
    }

    fn lister(&self, wants: &Wants) -> Box<dyn Listing> {
        let wants: Vec<(&Roster, &CloudName)> = wants.iter().map(|(roster, name)| (roster, name)).collect();
        Box::new(Lister::new(self.clone(), Interest::of(&wants)))
    }

    fn warning(&self) -> Option<String> {
        let text =
            "certificates are not verified (clouds.yaml says so): anybody in between can answer in its place";
        (!self.verifies()).then(|| text.to_owned())
    }
}

impl Listing for Lister {
    fn list(&mut self, now_full: bool) -> BoxFuture<'_, Result<CloudSnapshot, ReadError>> {
        Self::list(self, now_full).boxed()
    }

    fn list_with_strangers(&mut self) -> BoxFuture<'_, Result<(CloudSnapshot, Unwanted), ReadError>> {
        Self::list_with_strangers(self).boxed()
    }
}
