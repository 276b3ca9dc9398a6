//! How often a machine may ask for what costs this server something: a session, a certificate, a frame that is taken in; and how
//! often whoever has a token may have the clusters asked for Nodes.
//!
//! A rate is so many at once, and one more after each span. Kept is one time for each machine and kind, the time at which all of
//! it is free again, and only until then: a machine that is forgotten has long had none. What a rate refuses is told with
//! `TOO_MANY` and leaves no record. They are the machine's, not its session's: whoever comes again has no more by that.

use std::collections::BTreeMap;

use std::sync::Arc;

use reveille_core::model::time::{Span, Time};
use reveille_wire::agent::Reason;

use super::Registry;
use super::ids::MachineId;
use super::invitation::Invitation;

/// What has a rate.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(super) enum Costs {
    /// A session: an outlet, a welcome, all that a machine is told when it comes.
    Session,
    /// A certificate: a signature, and a record that is synced.
    Certificate,
    /// A frame: what it says is masked, and may be a record.
    Frame,
    /// A question to each cluster; an invitation's.
    Question,
}

/// When each machine or invitation has all of its rate again.
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
        // No later than all of it from now: a clock that was set back locks nobody out.
        let free_at = self.0.get(&key).map_or(now, |at| (*at).clamp(now, now + whole)) + each;
        let is_free = free_at <= now + whole;
        if is_free {
            self.0.insert(key, free_at);
        }
        is_free
    }
}

impl Registry {
    /// One more of this, where the machine's rate has it.
    pub(super) fn spend(&mut self, now: Time, machine: &MachineId, costs: Costs) -> Result<(), Reason> {
        self.spend_of(now, machine.as_str(), costs, 0)
    }

    /// Clusters are to be asked once more. A rack of machines that come together with one token has as many questions at once.
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
