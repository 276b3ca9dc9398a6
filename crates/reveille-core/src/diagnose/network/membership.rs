//! Which ports lack a group, and which group a roster means.
//!
//! Decided per port. A server's own list is the union over its ports, so a bare port hides behind a healthy one (D13),
//! and a call on the server fails as a whole when one port cannot carry a group (D14).
//!
//! Which ports count: every port that *can* carry a group, that is with port security on and an address, whatever
//! network it is on. A port that cannot (a storage or management leg, often on purpose) is passed over as long as some
//! other port of the machine carries or can be given the group; only when none can is it reported, because then nothing
//! will mend it. Which machines count (running ones, B4) is the caller's to say.

use std::collections::BTreeSet;
use std::sync::Arc;

use thiserror::Error;

use crate::model::id::{GroupId, PortId};
use crate::model::instance::Port;
use crate::model::network::{Obstacle, SecurityGroup};
use crate::model::roster::GroupRef;
use crate::safeguard::{Safeguard, stands};

/// What one port lacks.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct PortNeed {
    /// Which port.
    pub port: PortId,
    /// The wanted groups that it does not carry, sorted.
    pub missing: Vec<GroupId>,
    /// Everything that the port carries plus `missing`, sorted, each once. A write replaces the list as a whole, so the
    /// list must keep every group that another client put there.
    pub full_list: Vec<GroupId>,
    /// The revision that `full_list` was derived from; a write at any other revision must fail.
    pub revision: u64,
    /// Whether a write can help.
    pub verdict: Verdict,
}

/// Whether the lack can be mended by a write to this port.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Verdict {
    /// A write can mend it.
    Applicable,
    /// No write to this port is accepted; trying again is useless.
    NotApplicable(Obstacle),
}

impl Verdict {
    /// Why a write cannot help, where it cannot.
    pub const fn obstacle(self) -> Option<Obstacle> {
        match self {
            Self::Applicable => None,
            Self::NotApplicable(why) => Some(why),
        }
    }
}

/// What each port of one machine lacks of the wanted groups, in order of port id. Empty when nothing is to be said.
pub fn membership(ports: &[Arc<Port>], wanted: &[GroupId]) -> Vec<PortNeed> {
    let wanted: BTreeSet<&GroupId> = wanted.iter().collect();
    let provided: BTreeSet<&GroupId> = ports
        .iter()
        .flat_map(|port| {
            let could: Vec<&GroupId> =
                if obstacle(port).is_none() { wanted.iter().copied().collect() } else { vec![] };
            port.groups.iter().chain(could)
        })
        .collect();
    let mut needs: Vec<PortNeed> = ports.iter().filter_map(|port| need(port, &wanted, &provided)).collect();
    needs.sort_by(|a, b| a.port.cmp(&b.port));
    needs
}

fn need(port: &Port, wanted: &BTreeSet<&GroupId>, provided: &BTreeSet<&GroupId>) -> Option<PortNeed> {
    let carried: BTreeSet<&GroupId> = port.groups.iter().collect();
    let lacking = wanted.difference(&carried).copied();
    let (missing, verdict): (Vec<GroupId>, Verdict) = match obstacle(port) {
        None => (lacking.cloned().collect(), Verdict::Applicable),
        Some(why) => (
            lacking.filter(|group| !provided.contains(group)).cloned().collect(),
            Verdict::NotApplicable(why),
        ),
    };
    if missing.is_empty() {
        return None;
    }
    let kept = port.groups.iter().filter(|_| stands(Safeguard::KeptGroups));
    let full: BTreeSet<GroupId> = kept.chain(&missing).cloned().collect();
    assert!(port.groups.iter().all(|group| full.contains(group)), "a write never takes a group away");
    Some(PortNeed {
        port: port.id.clone(),
        missing,
        full_list: full.into_iter().collect(),
        revision: port.revision,
        verdict,
    })
}

fn obstacle(port: &Port) -> Option<Obstacle> {
    if !port.security {
        Some(Obstacle::PortSecurityOff)
    } else if port.addresses.is_empty() {
        Some(Obstacle::NoFixedAddress)
    } else {
        None
    }
}

/// The roster's group is not exactly one group of the project, so nothing may be written with it (B11, D11).
#[derive(Clone, Debug, PartialEq, Eq, Error)]
#[error("{}", self.text())]
pub struct Unresolved {
    /// What was looked for.
    pub wanted: GroupRef,
    /// How many groups of the project match: 0, or 2 and more.
    pub found: usize,
    /// How many more match in other projects that are visible; they never count.
    pub elsewhere: usize,
}

impl Unresolved {
    fn text(&self) -> String {
        let wanted = match &self.wanted {
            GroupRef::Id(id) => format!("security group with id {id}"),
            GroupRef::Name(name) => format!("security group named \"{name}\""),
        };
        match (self.found, self.elsewhere) {
            (0, 0) => format!("no {wanted} is in the project; make it, or correct the roster"),
            (0, more) => {
                format!("no {wanted} is in the project ({more} in other projects); correct the roster")
            }
            (found, _) => format!("{found} groups match the {wanted}; name the one that is meant by its id"),
        }
    }
}

/// The one group that the roster means.
///
/// An id is exact and may lie in another project that shares it. A name counts within `project` only, as far as a
/// group's project is known: groups of other projects may be visible and carry the same name (D11).
pub fn resolve(
    group_ref: &GroupRef,
    groups: &[Arc<SecurityGroup>],
    project: Option<&str>,
) -> Result<GroupId, Unresolved> {
    let mut here = BTreeSet::new();
    let mut elsewhere = BTreeSet::new();
    for group in groups {
        let matches = match group_ref {
            GroupRef::Id(id) => group.id == *id,
            GroupRef::Name(name) => group.name == *name,
        };
        if !matches {
            continue;
        }
        let foreign = matches!(group_ref, GroupRef::Name(_))
            && matches!((group.project.as_deref(), project), (Some(theirs), Some(ours)) if theirs != ours);
        if foreign {
            elsewhere.insert(&group.id)
        } else {
            here.insert(&group.id)
        };
    }
    match (here.len(), here.first()) {
        (1, Some(id)) => Ok((*id).clone()),
        (found, _) => Err(Unresolved { wanted: group_ref.clone(), found, elsewhere: elsewhere.len() }),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::model::id::NetworkId;
    use crate::model::instance::PortStatus;

    fn ids(names: &[&str]) -> Vec<GroupId> {
        names.iter().map(|name| GroupId::from(*name)).collect()
    }

    fn port(id: &str, groups: &[&str]) -> Port {
        Port {
            id: PortId::from(id),
            network: NetworkId::from("net"),
            addresses: Box::new(["10.0.0.5".parse().unwrap()]),
            groups: ids(groups).into(),
            pairs: Box::new([]),
            security: true,
            status: PortStatus::Active,
            revision: 7,
        }
    }

    fn bare(id: &str, groups: &[&str]) -> Port {
        Port { security: false, ..port(id, groups) }
    }

    /// `port missing full verdict`, one line each.
    fn told(ports: Vec<Port>, wanted: &[&str]) -> Vec<String> {
        let ports: Vec<Arc<Port>> = ports.into_iter().map(Arc::new).collect();
        membership(&ports, &ids(wanted))
            .into_iter()
            .map(|need| {
                assert_eq!(need.revision, 7);
                let verdict = match need.verdict {
                    Verdict::Applicable => "add",
                    Verdict::NotApplicable(Obstacle::PortSecurityOff) => "off",
                    Verdict::NotApplicable(_) => "cannot",
                };
                format!("{} {:?} {:?} {verdict}", need.port, need.missing, need.full_list)
            })
            .collect()
    }

    /// The five machines of flight control's own test, restated, and the ports that it cannot see.
    #[test]
    fn b1_b2_d13_d14_each_port_is_asked_for_itself() {
        let no_address = Port { addresses: Box::new([]), ..port("p2", &[]) };
        let table: Vec<(&str, Vec<Port>, &[&str], &[&str])> = vec![
            (
                "B1 default only",
                vec![port("p1", &["default"])],
                &["custom"],
                &[r#"p1 ["custom"] ["custom", "default"] add"#],
            ),
            ("B2 none at all", vec![port("p1", &[])], &["custom"], &[r#"p1 ["custom"] ["custom"] add"#]),
            ("B2 has it", vec![port("p1", &["custom"])], &["custom"], &[]),
            ("B2 has both", vec![port("p1", &["custom", "default"])], &["custom"], &[]),
            (
                "D13 a bare port beside a grouped one",
                vec![port("p2", &[]), port("p1", &["custom"])],
                &["custom"],
                &[r#"p2 ["custom"] ["custom"] add"#],
            ),
            (
                "several wanted, one there",
                vec![port("p1", &["b", "x"])],
                &["c", "a", "b", "a"],
                &[r#"p1 ["a", "c"] ["a", "b", "c", "x"] add"#],
            ),
            (
                "D14 no security, sibling has it",
                vec![bare("p2", &[]), port("p1", &["custom"])],
                &["custom"],
                &[],
            ),
            (
                "D14 no security, sibling can have it",
                vec![bare("p2", &[]), port("p1", &[])],
                &["custom"],
                &[r#"p1 ["custom"] ["custom"] add"#],
            ),
            (
                "D14 no security anywhere",
                vec![bare("p1", &[])],
                &["custom"],
                &[r#"p1 ["custom"] ["custom"] off"#],
            ),
            (
                "D14 no address anywhere",
                vec![no_address.clone()],
                &["custom"],
                &[r#"p2 ["custom"] ["custom"] cannot"#],
            ),
            ("D14 no address, sibling has it", vec![no_address, port("p1", &["custom"])], &["custom"], &[]),
            ("nothing wanted", vec![port("p1", &[]), bare("p2", &[])], &[], &[]),
            ("no ports", vec![], &["custom"], &[]),
        ];
        for (case, ports, wanted, expected) in table {
            assert_eq!(told(ports, wanted), expected, "{case}");
        }
    }

    fn group(id: &str, name: &str, project: Option<&str>) -> Arc<SecurityGroup> {
        let project = project.map(Arc::from);
        Arc::new(SecurityGroup { id: GroupId::from(id), name: Arc::from(name), project, rules: vec![] })
    }

    #[test]
    fn b11_d11_exactly_one_group_of_the_project_or_none() {
        let groups = [
            group("g1", "nodes", Some("ours")),
            group("g2", "nodes", Some("theirs")),
            group("g3", "twice", Some("ours")),
            group("g4", "twice", Some("ours")),
            group("g5", "away", Some("theirs")),
            group("g1", "nodes", Some("ours")),
        ];
        let name = |text: &str| GroupRef::Name(Arc::from(text));
        let id = |text: &str| GroupRef::Id(GroupId::from(text));
        for (wanted, project, expected) in [
            (name("nodes"), Some("ours"), Ok("g1")),
            (name("nodes"), None, Err((2, 0))),
            (name("twice"), Some("ours"), Err((2, 0))),
            (name("away"), Some("ours"), Err((0, 1))),
            (name("Nodes"), Some("ours"), Err((0, 0))),
            (name("g1"), Some("ours"), Err((0, 0))),
            (id("g2"), Some("ours"), Ok("g2")),
            (id("g9"), Some("ours"), Err((0, 0))),
        ] {
            let got = resolve(&wanted, &groups, project);
            let got = got.as_ref().map(GroupId::as_str).map_err(|error| (error.found, error.elsewhere));
            assert_eq!(got, expected, "{wanted:?} in {project:?}");
        }
    }

    #[test]
    fn an_unresolved_group_tells_what_to_do_next() {
        let error = |found, elsewhere| {
            Unresolved { wanted: GroupRef::Name(Arc::from("nodes")), found, elsewhere }.to_string()
        };
        assert_eq!(
            error(0, 0),
            "no security group named \"nodes\" is in the project; make it, or correct the roster"
        );
        assert!(error(0, 3).contains("3 in other projects"));
        assert!(error(2, 0).ends_with("by its id"));
    }
}
