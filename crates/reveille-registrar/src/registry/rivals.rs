//! Of two that claim one identity the second is refused, and the first is told: once, however often it is claimed.
//!
//! ```text
//!  a claim of what another is known by ─▶ refused, with that one's facts
//!                                     └▶ not told in the last hour ─▶ Rival to its session, What::Rival, its record's note
//! ```
//!
//! Who claims pays nothing for it, and the first one and its record must not pay either: a claim of the same part within the hour
//! is refused and goes no further, whatever host name it comes with. What was told is not remembered over a restart.

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

/// The same is news again after this: a clone that is still there may be another one.
const AGAIN_AFTER: Span = Span::from_min(60);

/// When which machine was told last that another one claims which part. At most six for a machine, and gone after an hour.
#[derive(Clone, Debug, Default)]
pub(super) struct Told(BTreeMap<(MachineId, Part), Time>);

impl Told {
    /// True when it is news, which it is not again for a while.
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
    /// The second one is refused with the first one's facts; the first one is told of the second, and so is whoever listens.
    pub(super) fn refuse_rival(
        &mut self,
        turn: &mut Turn,
        part: Part,
        first: &MachineId,
        identity: &Identity,
        facts: &Facts,
    ) -> Reason {
        let Some(known) = self.book.machine(first).cloned() else { return Reason::CertificateUnknown };
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
    /// The invitation to make it anew is right, and the one before is not silent yet.
    pub(super) fn still_heard(&self, now: Time, machine: &MachineId, reason: Reason) -> Refused {
        let after = self.settings.reimage_after;
        let is_there = self.conn_of.contains_key(machine);
        let (since, heard) = match self.heard_at(machine) {
            Some(at) => (now.since(at), "the machine that is to be made anew was heard"),
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
            // Often enough to come soon after the time is over, which each word of the old one begins anew.
            retry_after_s: Some(again_s.min(60)),
            reason,
        }
    }
}

/// A Node of the cluster is another machine's, as far as is known. By what it knows its machine stays untold: whoever says it
/// next time is taken for that machine.
pub(super) fn of_node(part: Part, pool: &PoolName) -> Refused {
    let says = format!("a Node of the cluster already has this {}", part.name());
    let next = format!(
        "if it is the Node of this machine, say so on the server: reveille invite --pool {pool} --machine NODE; else give this \
         machine a name and ids of its own"
    );
    let reason = Reason::IdentityConflict { part, facts: Box::default() };
    Refused { says: Sentence::cut(&says), next: Sentence::cut(&next), retry_after_s: None, reason }
}

/// The refusal, with the facts of the one that is known, and without its ids: a hello needs them beside the key, and whoever has
/// a copy of the key would need no more than one refusal to come as that machine.
pub(super) fn conflict(part: Part, known: &Machine) -> Reason {
    if known.removed == Some(Removal::Machine) {
        return Reason::MachineRemoved;
    }
    Reason::IdentityConflict { part, facts: Box::new(known.facts.clone()) }
}
