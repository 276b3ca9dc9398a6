//! Assigns roles on the project to a user.
//!
//! One PUT for each role; Keystone answers a role that is held already as given. The first failure ends the call: what Keystone
//! refuses for one role it refuses for the next, and roles given before stay.

use std::sync::Arc;

use reveille_core::effect::Outcome;
use reveille_core::model::access::Role;
use reveille_core::model::id::{ProjectId, UserId};

use crate::catalog::Service;
use crate::client::Request;
use crate::project::Project;

pub(super) async fn assign(project: &Project, on: &ProjectId, user: &UserId, roles: &[Role]) -> Outcome {
    if *on.as_str() != **project.id() {
        let writing = project.place().writing(format!("give user {user} roles on project {on}"));
        return writing.refuse(&format!("this connection is to project {}", project.id()));
    }
    let mut last = Outcome::AlreadySo { text: Arc::from("no role was asked for") };
    for (given, role) in roles.iter().enumerate() {
        let writing = project.place().writing(format!(
            "give user {user} role {} on project {on} ({given} of {} given)",
            role.name,
            roles.len()
        ));
        let segments = ["projects", on.as_str(), "users", user.as_str(), "roles", role.id.as_str()];
        last = writing.outcome(project.send(&Request::put_nothing(Service::Identity, &segments)).await);
        if !matches!(last, Outcome::Accepted { .. }) {
            return last;
        }
    }
    last
}
