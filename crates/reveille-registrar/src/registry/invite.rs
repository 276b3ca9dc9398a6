//! Invitations given and forgotten, machines sent away and let in again: what people ask for.

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
use super::{Book, Effect, Registry, Turn};

/// A clock that is wrong when this server starts, as one without a battery is, is set by then.
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
        if self.book.counts().0 >= self.settings.invitations_max {
            return turn.reply(ask, Denied::Full(self.settings.invitations_max));
        }
        if wish.uses == 0 || wish.ttl.ms <= 0 || self.book.invitation(&id).is_some() {
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

    /// Who was let in by it stays: a person removes whom he does not know.
    pub(super) fn revoke(&mut self, turn: &mut Turn, ask: Ask, id: &InvitationId) {
        let Some(invitation) = self.book.invitation(id) else {
            return turn.reply(ask, Denied::NoInvitation(id.clone()));
        };
        if !invitation.is_revoked {
            self.record(turn, Record::Revoked { at: turn.now, invitation: id.clone() });
        }
        let let_in = self.book.machines().filter(|known| known.invitation == *id && known.removed.is_none());
        let let_in = let_in.map(Named::from).collect();
        turn.reply(ask, Reply::Revoked(let_in));
    }

    /// The machine that is meant, where it is known. Only one that is known can be made anew.
    fn meant_by_wish(&self, wish: &Wish) -> Result<Option<MachineId>, Denied> {
        let Some(name) = &wish.machine else {
            let nobody = || Denied::NoMachine(Word::default());
            return if wish.reimage.is_none() { Ok(None) } else { Err(nobody()) };
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

    /// The machine that a person means by a name: of several that have it, the one that can be meant.
    ///
    /// # Errors
    ///
    /// Nobody has this name, or several have that can be meant.
    pub fn meant(&self, name: &Word, can_be: impl Fn(&Machine) -> bool) -> Result<&Machine, Denied> {
        let all = self.book.named(name);
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
        // Whoever took its place meanwhile would have to go first.
        let rivals = self.book.rivals(&known.identity, &known.node_name, &known.roster);
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

    /// When each has had its time, as a clock counts that nobody sets: from then on it is over, whatever the other one says.
    pub(super) fn ends_of(book: &Book, now: Time) -> BTreeMap<InvitationId, Time> {
        let end = |invitation: &Invitation| match invitation.over_since {
            Some(over) => over.min(now),
            // One that is over at a start is so for good a while later: the clock may be set before. But no date that comes then
            // opens it again.
            None if invitation.is_expired(now) && invitation.at <= now => now + CLOCK_SET_WITHIN,
            None => invitation.ends(now),
        };
        book.invitations().map(|invitation| (invitation.id.clone(), end(invitation))).collect()
    }

    /// Marks those that were given at a time that is still to come, and takes the mark off when it has come; and those that have
    /// had their time.
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
        let marked: Vec<Invitation> = self.book.invitations().filter_map(marked).collect();
        for invited in marked {
            self.record(turn, Record::Invited(invited));
        }
    }

    /// Those that have been over for long.
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
