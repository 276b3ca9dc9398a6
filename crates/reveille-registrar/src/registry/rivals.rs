//! When two machines claim one identity, the registry refuses the second and tells the first: once, however often it is
//! claimed.
//!
//! ```text
//!  a claim of what another is known by ─▶ refused, with that one's facts
//!                                     └▶ not told in the last hour ─▶ Rival to its session, What::Rival, its record's note
//! ```
//!
//! A claim costs the second machine nothing, so it must not cost the first machine and its record anything either. The
//! registry refuses a second claim of the same part within the hour and does nothing else, whatever host name comes with
//! it. It does not remember over a restart what it told.

use std::collections::BTreeMap;

use reveille_core::model::id::PoolName;
use reveille_core::model::stage::Stage;
use reveille_core::model::time::{Span, Time};
use reveille_wire::agent::frame::Rival;
use reveille_wire::agent::identity::Part;
use reveille_wire::agent::text::Sentence;
use reveille_wire::agent::{Facts, Identity, Reason, Refused, ServerFrame};

use super::event::What;
use super::ids::MachineId;
use super::machine::{Machine, Removal};
use super::{Effect, Registry, Turn};

/// After this the registry tells the machine again: a clone that still exists may be another one.
const AGAIN_AFTER: Span = Span::from_min(60);

/// When the registry last told a machine that another one claims a part of its identity. At most six entries for a
/// machine, each for an hour.
#[derive(Clone, Debug, Default)]
pub(super) struct Notices(BTreeMap<(MachineId, Part), Time>);

impl Notices {
    /// True when the claim is news; within the hour after that it is not.
    fn is_news(&mut self, now: Time, machine: &MachineId, part: Part) -> bool {
        let key = (machine.clone(), part);
        let is_news = self.0.get(&key).is_none_or(|at| now.since(*at) >= AGAIN_AFTER);
        if is_news {
            self.0.insert(key, now);
        }
        is_news
    }

    pub(super) fn clock_set(&mut self, by: Span) {
        self.0.values_mut().for_each(|at| *at = *at + by);
    }

    pub(super) fn forget(&mut self, now: Time) {
        self.0.retain(|_, at| now.since(*at) < AGAIN_AFTER);
    }
}

impl Registry {
    /// Refuses the second machine with the first one's facts; tells the first machine and the controller about the
    /// second.
    pub(super) fn refuse_rival(
        &mut self,
        turn: &mut Turn,
        part: Part,
        first: &MachineId,
        identity: &Identity,
        facts: &Facts,
    ) -> Reason {
        let Some(known) = self.index.machine(first).cloned() else { return Reason::CertificateUnknown };
        let reason = conflict(part, &known);
        if !self.rivals.is_news(turn.now, first, part) {
            return reason;
        }
        if let Some(conn) = self.conn_of.get(first) {
            let rival = Rival { part, identity: identity.clone(), facts: facts.clone() };
            turn.out.push(Effect::Send(*conn, ServerFrame::Rival(rival)));
        }
        turn.tell(&known, What::Rival(part, Box::new(identity.clone()), Box::new(facts.clone())));
        let text =
            format!("another machine, host name {:?}, claims this {}", facts.hostname.as_str(), part.name());
        self.note(turn, first, Stage::Authenticate, Some((reason.code(), &text)));
        reason
    }
}

impl Registry {
    /// The invitation to reimage the machine is right, and the machine before is not silent yet.
    pub(super) fn still_heard(&self, now: Time, machine: &MachineId, reason: Reason) -> Refused {
        let after = self.settings.reimage_after;
        let is_there = self.conn_of.contains_key(machine);
        let (since, heard) = match self.heard_at(machine) {
            Some(at) => (now.since(at), "the machine that is to be reimaged was heard"),
            None => (
                now.since(self.started_at),
                "this server was started, and listens for the old machine since,",
            ),
        };
        let left = if is_there { after } else { Span::from_ms(after.ms - since.ms) };
        let again_s = u32::try_from(left.ms / 1000).unwrap_or(0).max(1);
        let next = format!(
            "wait until it was silent for {after}; if it no longer exists: reveille invite --pool … --machine … --reimage --at-once"
        );
        Refused {
            says: Sentence::cut(&format!("the invitation is right, but {heard} {since} ago")),
            next: Sentence::cut(&next),
            // Often enough that the machine comes soon after the wait, which each message of the old machine starts
            // again.
            retry_after_s: Some(again_s.min(60)),
            reason,
        }
    }
}

/// A Node of the cluster belongs to another machine, as far as the server knows. The refusal does not say the ids of that
/// Node: a client that sent them the next time would be taken for its machine.
pub(super) fn of_node(part: Part, pool: &PoolName) -> Refused {
    let says = format!("a Node of the cluster already has this {}", part.name());
    let next = format!(
        "if it is the Node of this machine, say so on the server: reveille invite --pool {pool} --machine NODE; else give this \
         machine a name and ids of its own"
    );
    let reason = Reason::IdentityConflict { part, facts: Box::default() };
    Refused { says: Sentence::cut(&says), next: Sentence::cut(&next), retry_after_s: None, reason }
}

/// The refusal, with the facts of the known machine but without its ids. A hello needs these ids beside the key, so a
/// client with a copy of the key could otherwise come as that machine after a single refusal.
pub(super) fn conflict(part: Part, known: &Machine) -> Reason {
    if known.removed == Some(Removal::Machine) {
        return Reason::MachineRemoved;
    }
    Reason::IdentityConflict { part, facts: Box::new(known.facts.clone()) }
}
