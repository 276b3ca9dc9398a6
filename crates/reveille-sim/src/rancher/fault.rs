//! What can happen to Rancher's records and to a repair of them, by name: one table.
//!
//! A name is stable: command lines hold it. A rate is a weight beside the others. Happenings are drawn completely before
//! anything runs, so that one can be left out and no other moves.

use std::fmt;

use reveille_core::model::time::{Span, Time};
use reveille_rancher::model::CustomConfig;
use reveille_rancher::repair::observation::PodKind;

use super::world::{World, pod};
use crate::rng::Rng;

/// One thing that happens.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Happening {
    /// How long after the beginning.
    pub after: Span,
    /// Its name.
    pub name: &'static str,
    /// What.
    pub what: Fault,
}

/// What happens.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Fault {
    /// Something in the world, for so long.
    World(WorldFault, Span),
    /// Something to the process, at its next effect or act.
    Process(Mishap),
}

/// Something in the world.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[allow(missing_docs, reason = "each is explained in the table")]
pub enum WorldFault {
    SyncerDown,
    SyncerTwice,
    HooksLate,
    PlannerLate,
    RecordsStale,
    RecordGarbled,
    NodesEmpty,
    PodsUnread,
    ApiAway,
    ClusterBusy,
    EtcdReplaced,
    SiblingSilent,
    MemberSick,
    MemberGone,
    SnapshotOld,
    PodArrives,
    Paused,
    PersonTouches,
    PersonEdits,
    PersonTakesOut,
    PersonDeletesRecord,
    PersonDeletesNode,
    NodeReturns,
}

/// Something to the process, or between it and the API servers.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Mishap {
    /// It dies before an effect: the so-manieth from now.
    CrashBefore(u32),
    /// The process dies after an effect, and before it learns the result.
    CrashAfter(u32),
    /// The next act fails.
    ActFails,
    /// The next act is refused for good.
    ActRefused,
    /// The next act is done, and its answer lost.
    ActUnanswered,
    /// The next act is done, and its answer comes minutes late.
    ActLate,
    /// The next answer comes twice.
    AnswerTwice,
    /// The next answer never comes.
    AnswerLost,
}

/// One line of the table.
pub struct Entry {
    /// Its name.
    pub name: &'static str,
    /// What happens, in one line.
    pub says: &'static str,
    /// How often, beside the others.
    pub rate: u32,
    draw: fn(&mut Rng) -> Fault,
}

fn spell(rng: &mut Rng, inject: WorldFault, longest: Span) -> Fault {
    Fault::World(inject, rng.span(Span::from_s(5), longest))
}

macro_rules! catalog {
    ($($name:literal $rate:literal $says:literal $draw:expr;)*) => {
        /// Everything that can happen.
        pub static CATALOG: &[Entry] = &[$(Entry { name: $name, says: $says, rate: $rate, draw: $draw },)*];
    };
}

catalog! {
    "syncer-down" 3 "Rancher's syncer does nothing for a while" |rng| spell(rng, WorldFault::SyncerDown, Span::from_min(8));
    "syncer-twice" 2 "two syncers run, and each mirrors a Node that has no record" |rng| spell(rng, WorldFault::SyncerTwice, Span::from_min(8));
    "hooks-late" 3 "what a record's finalizer waits for is not done for a while" |rng| spell(rng, WorldFault::HooksLate, Span::from_min(12));
    "planner-late" 3 "a host that has its parts gets no plan for a while" |rng| spell(rng, WorldFault::PlannerLate, Span::from_min(14));
    "records-stale" 3 "lists of records are seconds old" |rng| spell(rng, WorldFault::RecordsStale, Span::from_s(20));
    "record-garbled" 2 "a record cannot be decoded" |rng| spell(rng, WorldFault::RecordGarbled, Span::from_min(3));
    "nodes-empty" 3 "the list of Nodes is empty, with 200" |rng| spell(rng, WorldFault::NodesEmpty, Span::from_min(3));
    "pods-unread" 2 "pods cannot be read" |rng| spell(rng, WorldFault::PodsUnread, Span::from_min(3));
    "api-away" 4 "a look sees nothing" |rng| spell(rng, WorldFault::ApiAway, Span::from_min(3));
    "cluster-busy" 4 "another client's change keeps the cluster busy" |rng| spell(rng, WorldFault::ClusterBusy, Span::from_min(4));
    "etcd-replaced" 1 "the next change would replace etcd's members" |_| Fault::World(WorldFault::EtcdReplaced, Span::ZERO);
    "sibling-silent" 3 "the other machines of its roles are not Ready" |rng| spell(rng, WorldFault::SiblingSilent, Span::from_min(5));
    "member-sick" 2 "another member of etcd is not well" |_| Fault::World(WorldFault::MemberSick, Span::ZERO);
    "member-gone" 1 "another member of etcd is gone" |_| Fault::World(WorldFault::MemberGone, Span::ZERO);
    "snapshot-old" 1 "no snapshot of etcd is made any more" |_| Fault::World(WorldFault::SnapshotOld, Span::ZERO);
    "pod-arrives" 2 "a pod that no controller would make again comes to the Node" |_| Fault::World(WorldFault::PodArrives, Span::ZERO);
    "paused" 3 "a person pauses the roster" |rng| spell(rng, WorldFault::Paused, Span::from_min(4));
    "person-touches" 6 "an operator writes the records, and nothing that is read changes" |_| Fault::World(WorldFault::PersonTouches, Span::ZERO);
    "person-edits" 2 "a person writes one of both parts by hand" |_| Fault::World(WorldFault::PersonEdits, Span::ZERO);
    "person-takes-out" 2 "a person takes both parts out" |_| Fault::World(WorldFault::PersonTakesOut, Span::ZERO);
    "person-deletes-record" 3 "a person deletes the record, whatever its Node does" |_| Fault::World(WorldFault::PersonDeletesRecord, Span::ZERO);
    "person-deletes-node" 2 "a person deletes the Node" |_| Fault::World(WorldFault::PersonDeletesNode, Span::ZERO);
    "node-returns" 4 "the kubelet is started, and makes its Node if there is none" |_| Fault::World(WorldFault::NodeReturns, Span::ZERO);
    "crash-before" 6 "our process dies before an effect" |rng| Fault::Process(Mishap::CrashBefore(rng.below(12) as u32));
    "crash-after" 6 "our process dies after an effect, before it hears of it" |rng| Fault::Process(Mishap::CrashAfter(rng.below(12) as u32));
    "act-fails" 4 "a call fails" |_| Fault::Process(Mishap::ActFails);
    "act-refused" 2 "a call is refused for good" |_| Fault::Process(Mishap::ActRefused);
    "act-unanswered" 5 "a call takes effect and its answer is lost" |_| Fault::Process(Mishap::ActUnanswered);
    "act-late" 3 "a call takes effect and its answer comes minutes late" |_| Fault::Process(Mishap::ActLate);
    "answer-twice" 4 "an answer comes twice" |_| Fault::Process(Mishap::AnswerTwice);
    "answer-lost" 3 "an answer never comes, whatever it was about" |_| Fault::Process(Mishap::AnswerLost);
}

/// There is no fault of this name.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct UnknownFault(pub String);

impl fmt::Display for UnknownFault {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let names: Vec<&str> = CATALOG.iter().map(|entry| entry.name).collect();
        write!(f, "no fault is called {:?}; there are: {}", self.0, names.join(", "))
    }
}

impl std::error::Error for UnknownFault {}

/// What happens within `length`, of those that are named, or of all.
pub(super) fn draw(rng: &mut Rng, length: Span, only: &[String]) -> Result<Vec<Happening>, UnknownFault> {
    if let Some(unknown) = only.iter().find(|name| CATALOG.iter().all(|entry| entry.name != **name)) {
        return Err(UnknownFault(unknown.clone()));
    }
    let is_on = |entry: &&Entry| only.is_empty() || only.iter().any(|name| name == entry.name);
    let entries: Vec<&Entry> = CATALOG.iter().filter(is_on).collect();
    let sum: u64 = entries.iter().map(|entry| u64::from(entry.rate)).sum();
    let mut happenings = Vec::new();
    // Every fifth run is calm, and shows what circumstances alone do.
    let every =
        if rng.chance(20) { return Ok(happenings) } else { rng.span(Span::from_s(20), Span::from_min(6)) };
    let mut after = rng.span(Span::ZERO, every);
    while after < length {
        let mut left = rng.below(sum);
        let drawn = entries.iter().find(|entry| {
            let is_it = left < u64::from(entry.rate);
            left = left.saturating_sub(u64::from(entry.rate));
            is_it
        });
        if let Some(entry) = drawn {
            happenings.push(Happening { after, name: entry.name, what: (entry.draw)(rng) });
        }
        after = after + rng.span(Span::from_s(1), Span::from_ms(every.ms * 2));
    }
    Ok(happenings)
}

impl World {
    /// It happens now.
    pub fn inject(&mut self, now: Time, inject: WorldFault, lasts: Span) {
        let until = now + lasts;
        match inject {
            WorldFault::SyncerDown => self.spells.syncer_down = until,
            WorldFault::SyncerTwice => self.spells.syncer_twice = until,
            WorldFault::HooksLate => self.spells.hooks_late = until,
            WorldFault::PlannerLate => self.spells.planner_late = until,
            WorldFault::RecordsStale => {
                self.spells.records_stale = until;
                self.stale = Some(self.records.clone());
            }
            WorldFault::RecordGarbled => self.spells.garbled = until,
            WorldFault::NodesEmpty => self.spells.nodes_empty = until,
            WorldFault::PodsUnread => self.spells.pods_unread = until,
            WorldFault::ApiAway => self.spells.api_away = until,
            WorldFault::ClusterBusy => self.spells.cluster_busy = until,
            WorldFault::EtcdReplaced => self.replaces_etcd = true,
            WorldFault::SiblingSilent => self.spells.sibling_silent = until,
            WorldFault::MemberSick => {
                if let Some(member) = self.members.iter_mut().flatten().next() {
                    member.healthy = false;
                }
            }
            WorldFault::MemberGone => {
                if let Some(members) = &mut self.members {
                    members.retain(|member| member.id != "1");
                }
            }
            WorldFault::SnapshotOld => self.snapshot_age = Some(Span::from_min(25 * 60)),
            WorldFault::PodArrives => {
                self.pods.iter_mut().for_each(|pods| pods.push(pod("by-hand", PodKind::Unmanaged)));
            }
            WorldFault::Paused => self.spells.paused = until,
            _ => self.by_a_client(inject),
        }
    }

    /// A person, or a kubelet.
    fn by_a_client(&mut self, inject: WorldFault) {
        self.version += 1;
        let version = self.version.to_string();
        match inject {
            WorldFault::PersonTouches => {
                self.records.values_mut().for_each(|record| record.revision.clone_from(&version));
            }
            WorldFault::PersonEdits => {
                if let Some(record) = self.its_record() {
                    let address = "192.0.2.7".to_owned();
                    record.custom_config = Some(CustomConfig { address, internal_address: String::new() });
                    record.revision = version;
                }
            }
            WorldFault::PersonTakesOut => {
                if let Some(record) = self.its_record() {
                    (record.custom_config, record.rke_node) = (None, None);
                    record.revision = version;
                }
            }
            WorldFault::PersonDeletesRecord => {
                if let Some(record) = self.its_record() {
                    record.deleting = super::world::stamped();
                    record.revision = version;
                }
            }
            WorldFault::PersonDeletesNode => {
                self.nodes.remove(&reveille_core::model::id::NodeName::from(super::world::SUBJECT));
            }
            WorldFault::NodeReturns => self.start_kubelet(),
            _ => {}
        }
    }
}
