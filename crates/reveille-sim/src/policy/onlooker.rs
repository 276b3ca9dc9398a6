//! A model that looks on at a recording, and what it would have done.
//!
//! ```text
//!  (time, event) ─▶ Recorded ─ Outlook ─▶ Rival: a pass whenever one is due ─▶ deeds ─▶ WouldDo, once for each deed and thing
//!                       └─ what became of that machine in the recording ─────────────────┘
//! ```
//!
//! A recording goes on as it went, whatever the model would have done: the model deletes no machine in it. So a deed that the
//! model asks for many times is one entry with a count, and the machine's fate is its fate *without* that deed. A machine that
//! answered when the model would have deleted it, or soon after without any help, is the model's mistake. No recording can say
//! whether the deed would have cured a machine that never came back.

use std::collections::BTreeMap;
use std::sync::Arc;

use reveille_core::effect::Call;
use reveille_core::event::Event;
use reveille_core::model::id::InstanceId;
use reveille_core::model::instance::InstanceState;
use reveille_core::model::node::{Provider, Ready};
use reveille_core::model::roster::Roster;
use reveille_core::model::time::{Span, Time};
use reveille_core::remedies::{DeleteInstance, Reboot, SetPortGroups, StartInstance};

use super::recorded::Recorded;
use super::{Deed, Policy, Rival};

/// Nothing was recorded for so long: the process slept, and what passes would have seen in between is not known.
const GAP: Span = Span::from_min(10);

/// A model in front of a recording.
#[derive(Clone, Debug)]
pub struct Onlooker {
    policy: Policy,
    rival: Option<Rival>,
    recorded: Recorded,
    would: Vec<WouldDo>,
    known: BTreeMap<(Kind, Arc<str>), usize>,
}

/// A kind of act, in the words of reports.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum Kind {
    /// Delete the instance.
    DeleteInstance,
    /// Reboot it.
    Reboot,
    /// Delete the Node object.
    DeleteNode,
    /// Put the pools' group on its ports.
    PutGroup,
    /// Put rules into the pools' group.
    PutRules,
}

impl Kind {
    /// The words for it.
    pub const fn name(self) -> &'static str {
        match self {
            Self::DeleteInstance => "delete the instance",
            Self::Reboot => "reboot",
            Self::DeleteNode => "delete the Node object",
            Self::PutGroup => "put the security group on its ports",
            Self::PutRules => "put rules into the security group",
        }
    }

    /// It takes something away, or interrupts it.
    pub const fn is_destructive(self) -> bool {
        matches!(self, Self::DeleteInstance | Self::Reboot | Self::DeleteNode)
    }
}

/// How the recording had the machine at that moment.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum Stood {
    /// A node of it was Ready.
    Ready,
    /// It had a node, which was not Ready.
    NotReady,
    /// It had no node.
    NoNode,
    /// Its cloud had given it up.
    Errored,
    /// The recording knows of no such machine.
    Unknown,
}

/// What became of it in the recording, where nothing of this was done to it.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum Afterwards {
    /// A node of it was Ready from then on.
    Answered(Time),
    /// It was there no more from then on.
    Gone(Time),
    /// It stayed as it was until the recording ended.
    Same,
}

/// Something that the model would have done.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct WouldDo {
    /// When, for the first time.
    pub at: Time,
    /// What.
    pub kind: Kind,
    /// To which instance; `None` for a group's rules, and for a Node object that names none.
    pub machine: Option<InstanceId>,
    /// What people call it.
    pub label: Arc<str>,
    /// How it stood.
    pub stood: Stood,
    /// What became of it.
    pub afterwards: Afterwards,
    /// How often it would have been asked for, because nothing came of it here.
    pub times: u32,
}

impl Onlooker {
    /// This policy, in front of a recording that was made under this roster.
    pub fn new(policy: Policy, roster: Roster) -> Self {
        let recorded = Recorded::new(roster);
        Self { policy, rival: None, recorded, would: Vec::new(), known: BTreeMap::new() }
    }

    /// What it would have done so far, in order.
    pub fn would_do(&self) -> &[WouldDo] {
        &self.would
    }

    /// The machine that a recorded call is about, and what people call it.
    pub fn subject_of(&self, call: &Call) -> Option<(InstanceId, Arc<str>)> {
        let id = match call {
            Call::DeleteInstance(DeleteInstance { instance, .. })
            | Call::Reboot(Reboot { instance, .. })
            | Call::Start(StartInstance { instance, .. }) => instance.clone(),
            Call::SetPortGroups(SetPortGroups { port, .. }) => self.recorded.owner_of(port)?.clone(),
            _ => return None,
        };
        let label = label(&self.recorded, &id);
        Some((id, label))
    }

    /// One recorded event. The passes that were due before it come first.
    pub fn play(&mut self, at: Time, event: &Event) {
        self.pass_until(at);
        if !self.recorded.take(event) {
            return;
        }
        match &mut self.rival {
            Some(rival) => rival.watch(at, &self.recorded),
            // It began long ago, but what it knew then is not recorded: it begins when everything was read once.
            None if self.recorded.is_whole() => {
                self.rival = Some(Rival::new(self.policy, at, &self.recorded));
            }
            None => {}
        }
        self.follow(at);
    }

    fn pass_until(&mut self, at: Time) {
        while let Some(rival) = self.rival.as_mut().filter(|rival| rival.next_at() <= at) {
            let slept = at.since(rival.next_at()) > GAP;
            let now = if slept { at } else { rival.next_at() };
            for deed in rival.pass_unheard(now, &self.recorded) {
                let entry = entry(now, &deed, &self.recorded);
                match self.known.get(&(entry.kind, entry.label.clone())) {
                    Some(place) => self.would[*place].times += 1,
                    None => {
                        self.known.insert((entry.kind, entry.label.clone()), self.would.len());
                        self.would.push(entry);
                    }
                }
            }
        }
    }

    fn follow(&mut self, at: Time) {
        for would in &mut self.would {
            let over = matches!(would.afterwards, Afterwards::Answered(_)) || would.stood == Stood::Ready;
            let Some(id) = would.machine.as_ref().filter(|_| !over) else { continue };
            would.afterwards = match (stood(&self.recorded, id), would.afterwards) {
                (Stood::Ready, _) => Afterwards::Answered(at),
                (Stood::Unknown, Afterwards::Gone(since)) => Afterwards::Gone(since),
                (Stood::Unknown, _) => Afterwards::Gone(at),
                // A list that lacked it for a while was wrong.
                (Stood::NotReady | Stood::NoNode | Stood::Errored, _) => Afterwards::Same,
            };
        }
    }
}

fn entry(at: Time, deed: &Deed, recorded: &Recorded) -> WouldDo {
    let mut presence = None;
    let (kind, machine, label) = match deed {
        Deed::Delete(id) => (Kind::DeleteInstance, Some(id.clone()), label(recorded, id)),
        Deed::Reboot(id) => (Kind::Reboot, Some(id.clone()), label(recorded, id)),
        Deed::PutGroup(id) => (Kind::PutGroup, Some(id.clone()), label(recorded, id)),
        Deed::DeleteNode(name, _) => {
            let node = recorded.node(name);
            // Of a Node object the node itself is asked: a list of servers may lack its machine.
            presence =
                node.map(|node| if node.ready == Ready::True { Stood::Ready } else { Stood::NotReady });
            let named = node.and_then(|node| match &node.provider {
                Provider::Instance(id) => Some(id.clone()),
                Provider::Unset | Provider::Unread(_) => None,
            });
            (Kind::DeleteNode, named, name.shared())
        }
        Deed::PutRules(_) => (Kind::PutRules, None, Arc::from("security group")),
    };
    let by_id = || machine.as_ref().map_or(Stood::Unknown, |id| stood(recorded, id));
    let stood = presence.unwrap_or_else(by_id);
    WouldDo { at, kind, machine, label, stood, afterwards: Afterwards::Same, times: 1 }
}

fn label(recorded: &Recorded, id: &InstanceId) -> Arc<str> {
    recorded.machine(id).map_or_else(|| id.shared(), |(instance, _)| instance.name.shared())
}

fn stood(recorded: &Recorded, id: &InstanceId) -> Stood {
    match recorded.machine(id) {
        None => Stood::Unknown,
        Some((_, nodes)) if nodes.iter().any(|node| node.ready == Ready::True) => Stood::Ready,
        Some((instance, _)) if instance.state == InstanceState::Errored => Stood::Errored,
        Some((_, nodes)) if nodes.is_empty() => Stood::NoNode,
        Some(_) => Stood::NotReady,
    }
}

#[cfg(test)]
mod tests;
