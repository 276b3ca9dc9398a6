//! A whole project, unfiltered: for a caller that does not know yet what to look for.
//!
//! ```text
//! servers ─┐
//! ports   ─┤ every page, whatever they carry ─▶ all four whole? ─▶ ProjectSurvey
//! groups  ─┤                                    no: ReadError
//! routers ─┘
//! ```
//!
//! [`crate::Lister`] asks for what rosters want, in every cycle; a survey asks for everything, once. A survey does not decide who
//! owns an object: it hands over names and marks as it found them.

use std::sync::Arc;

use reveille_cloud::known::Known;
use reveille_core::effect::ReadError;
use reveille_core::model::id::{InstanceId, NetworkId, RouterId};
use reveille_core::model::instance::{Instance, Port};
use reveille_core::model::network::{Router, SecurityGroup};

use crate::fetch::{list_all_groups, list_all_ports, list_all_routers, list_all_servers};
use crate::instance::ServerTables;
use crate::project::Project;
use reveille_core::model::intern::Texts;

/// A router as people know it.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct NamedRouter {
    /// Its name; it proves nothing.
    pub name: Arc<str>,
    /// Its id and its routes. How many it may hold is not asked for.
    pub router: Arc<Router>,
}

/// A router reaches into a network.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub struct RouterLeg {
    /// The router.
    pub router: RouterId,
    /// The network.
    pub network: NetworkId,
}

/// Everything that a project holds of what Reveille knows.
#[derive(Clone, Debug, Default)]
pub struct ProjectSurvey {
    /// Every server.
    pub instances: Vec<Arc<Instance>>,
    /// Every port of an instance.
    pub ports: Vec<(InstanceId, Arc<Port>)>,
    /// Every group of the project itself.
    pub groups: Vec<Arc<SecurityGroup>>,
    /// Every router of the project.
    pub routers: Vec<NamedRouter>,
    /// Where they reach.
    pub legs: Vec<RouterLeg>,
}

impl Project {
    /// Reads everything: four requests, and further pages where a list is longer than one.
    ///
    /// # Errors
    /// Any list that could not be read completely makes the whole reading void. Nothing is retried here.
    pub async fn survey(&self) -> Result<ProjectSurvey, ReadError> {
        let (mut tables, mut texts, known) = (ServerTables::default(), Texts::default(), Known::default());
        let (servers, ports, groups, routers) = futures::try_join!(
            list_all_servers(self, &mut tables, &known),
            list_all_ports(self, &mut texts, &known),
            list_all_groups(self),
            list_all_routers(self),
        )?;
        let mut legs = ports.legs;
        legs.sort();
        legs.dedup();
        Ok(ProjectSurvey {
            instances: servers.items.into_values().collect(),
            ports: ports.of_instances.items.into_values().collect(),
            groups,
            routers,
            legs,
        })
    }
}
