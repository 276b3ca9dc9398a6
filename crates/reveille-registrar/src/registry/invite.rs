//! What operators ask for: making and revoking invitations, removing and readmitting machines; and the forgetting of old
//! invitations.

use std::collections::BTreeMap;

use reveille_core::model::time::{Span, Time};
use reveille_wire::agent::Reason;
use reveille_wire::agent::text::Word;

use super::denied::{Denied, Named};
use super::event::Reply;
use super::ids::{Ask, InvitationId, MachineId, TokenHash};
use super::invitation::{Invitation, Wish};
use super::machine::{Machine, Removal};
use super::record::Record;
use super::{Effect, Index, Registry, Turn};

/// A clock that is wrong when this server starts, as on a machine without a battery, is set within this time.
const CLOCK_SET_WITHIN: Span = Span::from_min(10);

impl Registry {
    pub(super) fn invite(
        &mut self,
        turn: &mut Turn,
        ask: Ask,
        wish: &Wish,
        id: InvitationId,
        hash: TokenHash,
    ) {
        if self.index.counts().0 >= self.settings.invitations_max {
            return turn.reply(ask, Denied::Full(self.settings.invitations_max));
        }
        if wish.uses == 0 || wish.ttl.ms <= 0 || self.index.invitation(&id).is_some() {
            return turn.reply(ask, Denied::Unusable);
        }
        let record = match self.meant_by_wish(wish) {
            Ok(record) => record,
            Err(denied) => return turn.reply(ask, denied),
        };
        let invitation = Invitation {
            at: turn.now,
            id: id.clone(),
            hash,
            roster: wish.roster.clone(),
            pool: wish.pool.clone(),
            roles: wish.roles.clone(),
            machine: wish.machine.clone(),
            record,
            reimage: wish.reimage,
            until: turn.now + wish.ttl,
            ahead_since: None,
            over_since: None,
            uses_max: wish.uses,
            uses: 0,
            conflicts: 0,
            is_revoked: false,
        };
        self.invitation_ends.insert(id.clone(), invitation.until);
        self.record(turn, Record::Invited(invitation));
        turn.reply(ask, Reply::Invited { id, ttl: wish.ttl });
    }

    /// Machines that the invitation admitted stay: an operator removes the machines that should not be there.
    pub(super) fn revoke(&mut self, turn: &mut Turn, ask: Ask, id: &InvitationId) {
        let Some(invitation) = self.index.invitation(id) else {
            return turn.reply(ask, Denied::NoInvitation(id.clone()));
        };
        if !invitation.is_revoked {
            self.record(turn, Record::Revoked { at: turn.now, invitation: id.clone() });
        }
        let let_in = self.index.machines().filter(|known| known.invitation == *id && known.removed.is_none());
        let let_in = let_in.map(Named::from).collect();
        turn.reply(ask, Reply::Revoked(let_in));
    }

    /// The named machine, where it is known. Only a known machine can be reimaged.
    fn meant_by_wish(&self, wish: &Wish) -> Result<Option<MachineId>, Denied> {
        let Some(name) = &wish.machine else {
            let none = || Denied::NoMachine(Word::default());
            return if wish.reimage.is_none() { Ok(None) } else { Err(none()) };
        };
        let is_able = |known: &Machine| known.roster == wish.roster && known.removed.is_none();
        let meant = self.meant(name, is_able);
        if wish.reimage.is_none() {
            let known = meant.ok().filter(|known| known.roster == wish.roster);
            return Ok(known.map(|known| known.id.clone()));
        }
        let known = meant?;
        if known.removed == Some(Removal::Node) {
            return Err(Denied::NodeAway(Named::from(known)));
        }
        let is_its_own = wish.uses == 1 && known.roster == wish.roster;
        if is_its_own { Ok(Some(known.id.clone())) } else { Err(Denied::NotOneMachine(known.roster.clone())) }
    }

    /// The machine that an operator means by a name: of several machines with the name, the one that `can_be` accepts.
    ///
    /// # Errors
    ///
    /// No machine has this name, or several have it that `can_be` accepts.
    pub fn meant(&self, name: &Word, can_be: impl Fn(&Machine) -> bool) -> Result<&Machine, Denied> {
        let all = self.index.named(name);
        let able: Vec<&Machine> = all.iter().copied().filter(|known| can_be(known)).collect();
        let several = if able.is_empty() { all } else { able };
        match several.as_slice() {
            [] => Err(Denied::NoMachine(name.clone())),
            [one] => Ok(one),
            several => {
                let named = several.iter().map(|known| Named::from(*known)).collect();
                Err(Denied::Several(name.clone(), named))
            }
        }
    }

    pub(super) fn remove(&mut self, turn: &mut Turn, ask: Ask, machine: &Word, what: Option<Removal>) {
        let known = match self.meant(machine, |known| known.removed != what) {
            Ok(known) => known,
            Err(denied) => return turn.reply(ask, denied),
        };
        let id = known.id.clone();
        if known.removed == what {
            return turn.reply(ask, Reply::Done(id));
        }
        // A machine that took the place of this one in the meantime has to be removed first.
        let rivals = self.index.rivals(&known.identity, &known.node_name, &known.roster);
        let taken = rivals.into_iter().find(|(_, rival)| rival.id != id);
        if let (None | Some(Removal::Node), Some((part, rival))) = (what, taken) {
            let by = Named::from(rival);
            return turn.reply(ask, Denied::Taken { machine: id, part, by });
        }
        match what {
            Some(what) => {
                self.record(turn, Record::Removed { at: turn.now, machine: id.clone(), what });
                self.end_join(turn, &id, super::JoinEnd::Removed);
                self.drop_token(turn, &id);
                if let Some(conn) = self.conn_of.get(&id).copied() {
                    turn.out.push(Effect::Close(conn, what.reason().into()));
                    self.gone(turn, conn);
                }
            }
            None => self.record(turn, Record::Readmitted { machine: id.clone() }),
        }
        turn.reply(ask, Reply::Done(id));
    }

    /// The end of each invitation's lifetime, by a monotonic clock: from then on the invitation has ended, whatever the
    /// wall clock says.
    pub(super) fn ends_of(index: &Index, now: Time) -> BTreeMap<InvitationId, Time> {
        let end = |invitation: &Invitation| match invitation.over_since {
            Some(over) => over.min(now),
            // An invitation that has ended at the start has ended for good after a while: the clock may be set before
            // that. A later change of the clock does not open it again.
            None if invitation.is_expired(now) && invitation.at <= now => now + CLOCK_SET_WITHIN,
            None => invitation.ends(now),
        };
        index.invitations().map(|invitation| (invitation.id.clone(), end(invitation))).collect()
    }

    /// Marks invitations with a date in the future, removes the mark when the date has come, and marks invitations that
    /// had their whole lifetime.
    pub(super) fn mark_invitations(&mut self, turn: &mut Turn) {
        let (now, ends) = (turn.now, &mut self.invitation_ends);
        let marked = |invitation: &Invitation| {
            let before = (invitation.ahead_since, invitation.over_since);
            let ahead_since = (invitation.at > now).then(|| before.0.map_or(now, |since| since.min(now)));
            let end = ends.entry(invitation.id.clone()).or_insert(invitation.until);
            if ahead_since.is_some() && before.0.is_none() {
                *end = (*end).min(now + invitation.lasts());
            }
            let over_since = before.1.or((*end <= now).then_some(now));
            let changes = (ahead_since, over_since) != before;
            changes.then(|| Invitation { ahead_since, over_since, ..invitation.clone() })
        };
        let marked: Vec<Invitation> = self.index.invitations().filter_map(marked).collect();
        for invited in marked {
            self.record(turn, Record::Invited(invited));
        }
    }

    /// Forgets invitations that ended long ago.
    pub(super) fn forget_invitations(&mut self, turn: &mut Turn) {
        let kept = self.settings.invitation_kept;
        let over = |end: Time| turn.now.since(end) >= kept;
        let over: Vec<_> =
            self.invitation_ends.iter().filter(|(_, end)| over(**end)).map(|(id, _)| id.clone()).collect();
        for invitation in over {
            self.invitation_ends.remove(&invitation);
            self.record(turn, Record::Uninvited { invitation });
        }
    }
}

pub(super) fn bad(place: &str, what: &str) -> Reason {
    Reason::BadFrame { place: place.into(), what: what.into() }
}
