//! A whole project, unfiltered: for a caller that does not know yet what to look for.
//!
//! ```text
//! servers ─┐
//! ports   ─┤ every page, whatever they carry ─▶ all four whole? ─▶ Inventory
//! groups  ─┤                                    no: ReadError
//! routers ─┘
//! ```
//!
//! [`crate::Lister`] asks for what rosters want, in every cycle; a survey asks for everything, once. A survey does not decide who
//! owns an object: it hands over names and marks as it found them.

use reveille_cloud::inventory::Inventory;
use reveille_cloud::known::Known;
use reveille_core::effect::ReadError;
use reveille_core::model::intern::Texts;

use crate::fetch::{list_all_groups, list_all_ports, list_all_routers, list_all_servers};
use crate::instance::ServerTables;
use crate::project::Project;

impl Project {
    /// Reads everything: four requests, and further pages where a list is longer than one.
    ///
    /// # Errors
    /// Any list that could not be read completely makes the whole reading void. Nothing is retried here.
    pub async fn survey(&self) -> Result<Inventory, ReadError> {
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
        Ok(Inventory {
            instances: servers.items.into_values().map(|one| (one.id.clone(), one)).collect(),
            ports: ports.of_instances.items.into_values().collect(),
            groups: groups.into_iter().map(|group| (group.id.clone(), group)).collect(),
            routers,
            legs,
            ..Inventory::default()
        })
    }
}
