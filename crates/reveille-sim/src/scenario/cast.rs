//! The names that a file uses, and the instances that they stand for.
//!
//! A machine is entered when the world makes it, under the name it is made with. A second machine of a name that still stands is
//! its `-twin`; one that gets a name that is free again is called `-again`. An entry stays when its machine is gone, so that a
//! file can say that it is gone.

use std::collections::BTreeMap;

use reveille_core::model::id::InstanceId;

use crate::drive::Drive;
use crate::world::layout::{GROUP, GROUP_NAME, ROUTER};

use super::words::Machines;

/// The cast of a play.
#[derive(Clone, Debug, Default)]
pub(crate) struct Cast {
    ids: BTreeMap<String, InstanceId>,
    names: BTreeMap<InstanceId, String>,
    /// Ids of instances and of what belongs to them, in words.
    spoken: BTreeMap<String, String>,
    seen_host: u32,
    neighbours: u32,
}

impl Cast {
    /// Enters the new machines.
    pub(crate) fn update(&mut self, drive: &Drive) {
        if drive.world.newest_host() == self.seen_host {
            return;
        }
        self.seen_host = drive.world.newest_host();
        for machine in drive.world.machines() {
            for port in &machine.ports {
                if let Some(name) = self.names.get(&machine.id) {
                    self.spoken.insert(port.to_string(), format!("of {name}"));
                }
            }
            if self.names.contains_key(&machine.id) {
                continue;
            }
            let mut name = machine.name.to_string();
            if machine.pool.is_none() {
                self.neighbours += 1;
                name = format!("neighbour-{}", self.neighbours);
            }
            if let Some(before) = self.ids.get(&name) {
                let stands = drive.world.machine(before).is_some();
                name = format!("{name}-{}", if stands { "twin" } else { "again" });
            }
            for port in &machine.ports {
                self.spoken.insert(port.to_string(), format!("of {name}"));
            }
            self.spoken.insert(machine.id.to_string(), name.clone());
            self.ids.insert(name.clone(), machine.id.clone());
            self.names.insert(machine.id, name);
        }
    }

    /// The instance of that name, once it was made.
    pub(crate) fn id(&self, name: &str) -> Option<&InstanceId> {
        self.ids.get(name)
    }

    /// What people call it.
    pub(crate) fn name(&self, id: &InstanceId) -> String {
        self.names.get(id).cloned().unwrap_or_else(|| id.to_string())
    }

    /// The names that a statement means now.
    pub(crate) fn named(&self, machines: &Machines, drive: &Drive) -> Vec<String> {
        let those = |is: &dyn Fn(&crate::world::MachineTruth) -> bool| {
            let all = drive.world.machines().into_iter();
            let mut names: Vec<String> =
                all.filter(|m| m.pool.is_some() && is(m)).map(|m| self.name(&m.id)).collect();
            names.sort();
            names
        };
        match machines {
            Machines::Named(names) => names.clone(),
            Machines::OfPool(pool) => those(&|machine| machine.pool.as_ref() == Some(pool)),
            Machines::OfZone(zone) => those(&|machine| machine.zone.as_ref() == Some(zone)),
            Machines::All => those(&|_| true),
        }
    }

    /// A text of the engine or the world in which ids are replaced by what people call them.
    pub(crate) fn plain(&self, text: &str) -> String {
        let mut out = String::with_capacity(text.len());
        let mut rest = text;
        while let Some(at) = rest.char_indices().map(|(at, _)| at).find(|at| is_uuid(&rest[*at..])) {
            let (id, after) = rest[at..].split_at(UUID);
            out.push_str(&rest[..at]);
            out.push_str(match id {
                GROUP => GROUP_NAME,
                ROUTER => "of the cluster",
                id => self.spoken.get(id).map_or(id, String::as_str),
            });
            rest = after;
        }
        out.push_str(rest);
        out
    }
}

/// Characters of a UUID.
const UUID: usize = 36;

fn is_uuid(text: &str) -> bool {
    let bytes = text.as_bytes();
    bytes.len() >= UUID
        && bytes[..UUID].iter().enumerate().all(|(place, byte)| match place {
            8 | 13 | 18 | 23 => *byte == b'-',
            _ => byte.is_ascii_hexdigit(),
        })
}
