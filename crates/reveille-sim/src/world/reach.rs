//! Which project a read or a call goes to, and whether the object that it names is there.
//!
//! ```text
//!  Look or Call ─▶ the project that it names ─┬─▶ its reads fail: the failure
//!                                             └─▶ what it names is in the other one: 404, as for what there is not
//! ```
//!
//! A credential is scoped to one project, and shows and changes nothing of another (Nova answers 404 for the server of another
//! project, `nova/compute/api.py` `get`; Neutron filters by `project_id`). It knows no listings.

use reveille_core::effect::{Call, Look, ReadErrorKind};
use reveille_core::event::Answer;
use reveille_core::model::id::{CloudName, InstanceId};
use reveille_core::remedies::{
    AddPortPairs, AddRules, DeleteInstance, DropRule, NudgeGroup, Reboot, SetPortGroups, StartInstance,
};

use super::World;
use super::layout::{CLOUD, GROUP, OTHER_CLOUD, OTHER_GROUP, group_in};

/// What a project answers of an object that it does not have.
pub(super) fn denial(look: &Look) -> Answer {
    match look {
        Look::Ports(..) => Answer::Ports(Vec::new()),
        Look::Group(..) => Answer::Group(None),
        Look::Router(..) => Answer::Router(None),
        Look::Actions(..) => Answer::Actions(Vec::new()),
        Look::Console(..) => Answer::NoConsole("404 Not Found: not in this project".into()),
        _ => Answer::Instance(None),
    }
}

impl World {
    /// How every read of this project fails, while it does.
    pub(super) fn failure_of(&self, cloud: &CloudName) -> Option<ReadErrorKind> {
        self.lies.cloud_fails.filter(|_| self.layout.is_troubled(cloud))
    }

    /// What it asks for is in the other project, or the credential leads elsewhere.
    pub(super) fn is_of_another_project(&self, look: &Look) -> bool {
        let Some(cloud) = look.cloud() else { return false };
        let elsewhere = self.lies.elsewhere && self.layout.is_troubled(cloud);
        match look {
            Look::Instance(_, id) => self.is_elsewhere(cloud, id),
            Look::Ports(_, id) => elsewhere || self.is_elsewhere(cloud, id),
            Look::Console(_, id) | Look::Actions(_, id) => self.is_elsewhere(cloud, id),
            Look::Group(_, id) => {
                let ours = [GROUP, OTHER_GROUP].contains(&id.as_str());
                elsewhere || ours && id.as_str() != group_in(cloud)
            }
            Look::Router(..) => elsewhere || cloud.as_str() != CLOUD,
            _ => false,
        }
    }

    /// It would change something of the other project.
    pub(super) fn is_call_to_another_project(&self, call: &Call) -> bool {
        let Some(cloud) = call.cloud() else { return false };
        match call {
            Call::Reboot(Reboot { instance, .. })
            | Call::Start(StartInstance { instance, .. })
            | Call::DeleteInstance(DeleteInstance { instance, .. }) => self.is_elsewhere(cloud, instance),
            Call::SetPortGroups(SetPortGroups { port, .. })
            | Call::AddPortPairs(AddPortPairs { port, .. }) => {
                self.machine_of_port(port).is_some_and(|owner| self.is_elsewhere(cloud, &owner))
            }
            Call::AddRules(AddRules { group, .. })
            | Call::DropRule(DropRule { group, .. })
            | Call::NudgeGroup(NudgeGroup { group, .. }) => {
                let other = if cloud.as_str() == OTHER_CLOUD { GROUP } else { OTHER_GROUP };
                group.as_str() == other
            }
            Call::NudgeRouter(_) | Call::RemoveRoutes(_) | Call::AddRoutes(_) => cloud.as_str() != CLOUD,
            Call::AssignRoles(_) | Call::DeleteNode(_) | Call::AskAgent(_) => false,
        }
    }

    fn is_elsewhere(&self, cloud: &CloudName, id: &InstanceId) -> bool {
        self.project.cloud_of(id).is_some_and(|own| own != cloud)
    }
}
