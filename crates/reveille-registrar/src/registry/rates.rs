//! How often a machine may ask for what costs this server something: a session, a certificate, a frame. Also how often
//! the holder of an invitation's token may make the server ask the clusters for Nodes.
//!
//! A rate allows a burst, and one more after each span. The registry keeps one time for each machine and kind: when the
//! whole burst is available again. It drops the entry at that time, so a forgotten machine has none. A request over the
//! rate is refused with `TOO_MANY` and leaves no record. A rate belongs to the machine, not to its session: a machine
//! that reconnects has no more of it.

use std::collections::BTreeMap;

use std::sync::Arc;

use reveille_core::model::time::{Span, Time};
use reveille_wire::agent::Reason;

use super::Registry;
use super::ids::MachineId;
use super::invitation::Invitation;

/// What a rate limits.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(super) enum Costs {
    /// A session: a queue, a welcome, and everything that a machine is told when it comes.
    Session,
    /// A certificate: a signature, and a record that is synced to disk.
    Certificate,
    /// A frame: the registry masks it, and it may become a record.
    Frame,
    /// A question to each cluster; this rate belongs to an invitation.
    Question,
}

/// When each machine or invitation has its whole burst again.
#[derive(Clone, Debug, Default)]
pub(super) struct Rates(BTreeMap<(Arc<str>, Costs), Time>);

impl Rates {
    pub(super) fn clock_set(&mut self, by: Span) {
        self.0.values_mut().for_each(|free_at| *free_at = *free_at + by);
    }

    pub(super) fn forget(&mut self, now: Time) {
        self.0.retain(|_, free_at| *free_at > now);
    }

    fn takes(&mut self, now: Time, whose: &str, costs: Costs, burst: u32, each: Span) -> bool {
        let whole = Span { ms: each.ms.saturating_mul(burst.into()) };
        let key = (whose.into(), costs);
        // The time is at most one whole burst from now, so that a clock that was set back locks no machine out.
        let free_at = self.0.get(&key).map_or(now, |at| (*at).clamp(now, now + whole)) + each;
        let is_free = free_at <= now + whole;
        if is_free {
            self.0.insert(key, free_at);
        }
        is_free
    }
}

impl Registry {
    /// Uses one of this kind, where the machine's rate allows it.
    pub(super) fn spend(&mut self, now: Time, machine: &MachineId, costs: Costs) -> Result<(), Reason> {
        self.spend_of(now, machine.as_str(), costs, 0)
    }

    /// Uses one question to the clusters. A rack of machines that come together with one token may ask as many questions
    /// at once.
    pub(super) fn spend_question(&mut self, now: Time, invitation: &Invitation) -> Result<(), Reason> {
        let uses_left = invitation.uses_max.saturating_sub(invitation.uses);
        self.spend_of(now, invitation.id.as_str(), Costs::Question, uses_left)
    }

    fn spend_of(&mut self, now: Time, whose: &str, costs: Costs, more: u32) -> Result<(), Reason> {
        let settings = &self.settings;
        let (burst, each, of) = match costs {
            Costs::Session => (settings.sessions_burst, settings.session_each, "sessions"),
            Costs::Certificate => (settings.certificates_burst, settings.certificate_each, "certificates"),
            Costs::Frame => (settings.frames_burst, settings.frame_each, "frames"),
            Costs::Question => (settings.questions_burst, settings.question_each, "questions with one token"),
        };
        let is_free = self.rates.takes(now, whose, costs, burst.saturating_add(more), each);
        if is_free { Ok(()) } else { Err(Reason::TooMany { of: of.into() }) }
    }
}
