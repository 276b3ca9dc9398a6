//! The state of a cluster at the beginning: each entry is a reason that blocks a repair, or a condition beside it.

use reveille_core::model::time::Span;
use reveille_rancher::model::{Condition, CustomConfig, Host, Kind, Record, Role};
use reveille_rancher::repair::observation::PodKind;

use super::world::{ADDRESS, World, addresses, mirror, pod};

/// Something that is so.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[allow(missing_docs, reason = "each is what its name says; `apply` has the field")]
pub enum Circumstance {
    ClusterBusy,
    ClusterMirrored,
    SnapshotMissing,
    SnapshotOld,
    RecordsGarbled,
    RecordWhole,
    AddressesOfAnother,
    SiblingsNotReady,
    SiblingsNotWhole,
    MembersUnread,
    MemberSick,
    MemberMissing,
    MemberReturns,
    MemberUnowned,
    MemberTwice,
    PodsUnread,
    PodWithLocalData,
    PodUnmanaged,
    PodsMovable,
    SecondRecord,
    RecordLeaving,
    OnePartThere,
    OtherHostName,
    OtherRoles,
    SeveralAddresses,
    HostsUnknown,
    HostMissing,
    WasEtcd,
    HandsOff,
    KubeletReturns,
    PlanNeverComes,
    SyncerNeverTidies,
    BusyOnceTheNodeIsGone,
}

impl Circumstance {
    /// All of them.
    pub const ALL: [Self; 33] = [
        Self::ClusterBusy,
        Self::ClusterMirrored,
        Self::SnapshotMissing,
        Self::SnapshotOld,
        Self::RecordsGarbled,
        Self::RecordWhole,
        Self::AddressesOfAnother,
        Self::SiblingsNotReady,
        Self::SiblingsNotWhole,
        Self::MembersUnread,
        Self::MemberSick,
        Self::MemberMissing,
        Self::MemberReturns,
        Self::MemberUnowned,
        Self::MemberTwice,
        Self::PodsUnread,
        Self::PodWithLocalData,
        Self::PodUnmanaged,
        Self::PodsMovable,
        Self::SecondRecord,
        Self::RecordLeaving,
        Self::OnePartThere,
        Self::OtherHostName,
        Self::OtherRoles,
        Self::SeveralAddresses,
        Self::HostsUnknown,
        Self::HostMissing,
        Self::WasEtcd,
        Self::HandsOff,
        Self::KubeletReturns,
        Self::PlanNeverComes,
        Self::SyncerNeverTidies,
        Self::BusyOnceTheNodeIsGone,
    ];

    /// What is so, for people.
    pub const fn says(self) -> &'static str {
        match self {
            Self::ClusterBusy => "the cluster is busy: Rancher provisions it",
            Self::ClusterMirrored => "Rancher does not run the cluster itself, it mirrors its Nodes",
            Self::SnapshotMissing => "there is no complete snapshot of etcd",
            Self::SnapshotOld => "the newest snapshot of etcd is older than a day",
            Self::RecordsGarbled => "a record cannot be decoded",
            Self::RecordWhole => "nothing is wrong with its record",
            Self::AddressesOfAnother => "its record has another machine's address",
            Self::SiblingsNotReady => "the other machines of its roles are not Ready",
            Self::SiblingsNotWhole => "no other record is whole",
            Self::MembersUnread => "the members of etcd cannot be read",
            Self::MemberSick => "another member of etcd is not well",
            Self::MemberMissing => "another member of etcd is gone",
            Self::MemberReturns => "an operator adds its member of etcd again",
            Self::MemberUnowned => "no member of etcd is known to be its own",
            Self::MemberTwice => "two members of etcd have its address",
            Self::PodsUnread => "its pods cannot be read",
            Self::PodWithLocalData => "a pod has data there alone",
            Self::PodUnmanaged => "no controller would make one of its pods again",
            Self::PodsMovable => "a pod of it can run elsewhere",
            Self::SecondRecord => "it has a second record",
            Self::RecordLeaving => "its record is being deleted, and its finalizer is not done",
            Self::OnePartThere => "its record has customConfig and no rkeNode",
            Self::OtherHostName => "its record asked for another name",
            Self::OtherRoles => "its record has a role that its Node has not",
            Self::SeveralAddresses => "Node and record have two addresses in common",
            Self::HostsUnknown => "the applied specification tells no hosts",
            Self::HostMissing => "a host is missing from the applied specification",
            Self::WasEtcd => "the applied specification says that it held etcd",
            Self::HandsOff => "a person paused it",
            Self::KubeletReturns => "its kubelet is started again once its Node is deleted",
            Self::PlanNeverComes => "a record that was edited never gets its plan",
            Self::SyncerNeverTidies => "the syncer never takes its record away",
            Self::BusyOnceTheNodeIsGone => "the cluster becomes busy once its Node is gone",
        }
    }

    /// Makes it so.
    pub fn apply(self, world: &mut World) {
        match self {
            Self::ClusterBusy => {
                let busy = Condition { status: "Unknown".to_owned(), ..Condition::default() };
                world.cluster.conditions.insert("Provisioned".to_owned(), busy);
            }
            Self::ClusterMirrored => world.cluster.kind = Kind::Mirrored,
            Self::SnapshotMissing => world.snapshot_age = None,
            Self::SnapshotOld => world.snapshot_age = Some(Span::from_min(24 * 60 + 1)),
            Self::RecordsGarbled => world.garbled = 1,
            Self::SiblingsNotReady => {
                world.nodes.values_mut().take(2).for_each(|node| "False".clone_into(&mut node.ready));
            }
            Self::SiblingsNotWhole => {
                world.records.values_mut().for_each(|record| record.rke_node = None);
                world.cluster.applied_hosts = Some(Vec::new());
            }
            Self::HostsUnknown => world.cluster.applied_hosts = None,
            Self::HostMissing => drop(world.cluster.applied_hosts.as_mut().and_then(Vec::pop)),
            Self::WasEtcd => was_etcd(world),
            Self::HandsOff => world.hands_off = Some("paused by ann: looking".to_owned()),
            Self::KubeletReturns => world.kubelet_returns = true,
            Self::PlanNeverComes => world.plans = false,
            Self::SyncerNeverTidies => world.records.values_mut().for_each(|record| record.is_synced = false),
            Self::BusyOnceTheNodeIsGone => {
                world.updates_after = true;
                world.records.values_mut().for_each(|record| record.is_synced = false);
            }
            Self::MembersUnread
            | Self::MemberSick
            | Self::MemberMissing
            | Self::MemberReturns
            | Self::MemberUnowned
            | Self::MemberTwice => self.of_etcd(world),
            Self::PodsUnread => world.pods = None,
            Self::PodWithLocalData => only(world, PodKind::LocalData),
            Self::PodUnmanaged => only(world, PodKind::Unmanaged),
            Self::PodsMovable => only(world, PodKind::Movable),
            _ => self.of_its_record(world),
        }
    }

    fn of_etcd(self, world: &mut World) {
        *world = world.clone().with_etcd();
        match self {
            Self::MembersUnread => world.members = None,
            Self::MemberReturns => world.member_returns = true,
            Self::MemberUnowned => {
                for member in world.members.iter_mut().flatten().filter(|member| member.id == "3") {
                    (member.name, member.hosts) = ("cp-x".to_owned(), ["192.168.7.3".to_owned()].into());
                }
            }
            Self::MemberTwice => {
                for member in world.members.iter_mut().flatten().filter(|member| member.id == "2") {
                    member.hosts = [ADDRESS.to_owned()].into();
                }
            }
            Self::MemberMissing => {
                world.members.iter_mut().for_each(|members| members.retain(|member| member.id != "1"));
            }
            _ => {
                if let Some(member) = world.members.iter_mut().flatten().next() {
                    member.healthy = false;
                }
            }
        }
    }

    fn of_its_record(self, world: &mut World) {
        let roles = world.subject().map(|node| node.roles.clone()).unwrap_or_default();
        let node = world.nodes.values_mut().next_back();
        let Some(record) = world.records.values_mut().next_back() else { return };
        let custom = CustomConfig { address: ADDRESS.to_owned(), internal_address: String::new() };
        match self {
            Self::AddressesOfAnother => record.addresses = addresses("10.0.0.9"),
            Self::RecordLeaving => {
                record.deleting = super::world::stamped();
                world.spells.hooks_late = reveille_core::model::time::Time::from_ms(i64::MAX);
                world.spells.syncer_down = world.spells.hooks_late;
            }
            Self::OnePartThere => record.custom_config = Some(custom),
            Self::OtherHostName => record.requested_hostname = "w-9".to_owned(),
            Self::OtherRoles => drop(record.roles.insert(Role::ControlPlane)),
            Self::SeveralAddresses => {
                let both = [addresses(ADDRESS), addresses("10.1.0.3")].concat();
                record.addresses.clone_from(&both);
                if let Some(node) = node {
                    node.addresses = both;
                }
            }
            Self::RecordWhole => {
                let like = record.clone();
                let name = "m-0123456789ad";
                let node_name = format!("{}:{name}", world.cluster.id);
                let rke_node = world.records.values().find_map(|other| other.rke_node.clone());
                let rke_node = rke_node.map(|rke| reveille_rancher::model::RkeNode {
                    node_name,
                    hostname_override: super::world::SUBJECT.to_owned(),
                    address: ADDRESS.to_owned(),
                    ..rke
                });
                let whole = mirror(name, super::world::SUBJECT, ADDRESS, roles);
                world.records.remove(&like.name);
                let whole = Record { custom_config: Some(custom), rke_node, has_plan: true, ..whole };
                world.records.insert(whole.name.clone(), whole);
            }
            _ => {
                let second = mirror("machine-x9999", super::world::SUBJECT, ADDRESS, roles);
                world.records.insert(second.name.clone(), second);
            }
        }
    }
}

/// The applied specification says that it held etcd.
fn was_etcd(world: &mut World) {
    let node_name = format!("{}:m-0123456789ae", world.cluster.id);
    let roles = [Role::Etcd].into();
    let was = Host { node_name, address: ADDRESS.to_owned(), roles };
    world.cluster.applied_hosts.iter_mut().for_each(|hosts| hosts.push(was.clone()));
}

/// One pod besides that of a DaemonSet.
fn only(world: &mut World, kind: PodKind) {
    world.pods = Some(vec![pod("proxy", PodKind::Staying), pod("one", kind)]);
}
