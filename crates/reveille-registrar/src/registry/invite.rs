//! Invitations given and forgotten, machines sent away and let in again: what people ask for.

use reveille_wire::agent::Reason;
use reveille_wire::agent::text::Word;

use super::event::Reply;
use super::ids::{Ask, InvitationId, MachineId, TokenHash};
use super::invitation::{Invitation, Wish};
use super::machine::Removal;
use super::record::{Invited, Record};
use super::{Effect, Registry, Turn};

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
            return turn.reply(ask, Reason::TooMany { of: "invitations".into() });
        }
        if wish.uses == 0 || wish.ttl.ms <= 0 || self.book.invitation(&id).is_some() {
            return turn.reply(ask, bad("invitation", "it could not be used"));
        }
        if wish.reimage.is_some() {
            let Some(machine) = wish.machine.as_deref().and_then(|machine| self.book.find(machine)) else {
                return turn.reply(
                    ask,
                    bad(
                        "machine",
                        "only a machine that is known can be made anew, and none is known by this name",
                    ),
                );
            };
            if wish.uses > 1 || machine.roster != wish.roster {
                return turn
                    .reply(ask, bad("invitation", "one machine is made anew once, in its own roster"));
            }
        }
        let invitation = Invitation {
            at: turn.now,
            id: id.clone(),
            hash,
            roster: wish.roster.clone(),
            pool: wish.pool.clone(),
            roles: wish.roles.clone(),
            machine: wish.machine.clone(),
            reimage: wish.reimage,
            until: turn.now + wish.ttl,
            uses_max: wish.uses,
            uses: 0,
            conflicts: 0,
        };
        self.record(turn, Record::Invited(Invited::from(&invitation)));
        turn.reply(ask, Reply::Invited { id, ttl: wish.ttl });
    }

    pub(super) fn remove(&mut self, turn: &mut Turn, ask: Ask, machine: &Word, what: Option<Removal>) {
        let found = self.book.find(machine).or_else(|| self.book.machine(&MachineId::new(machine.as_str())));
        let Some(known) = found else {
            return turn.reply(ask, bad("machine", "none is known by this name, or several are"));
        };
        let id = known.id.clone();
        if known.removed == what {
            return turn.reply(ask, Reply::Done(id));
        }
        // Whoever took its place meanwhile would have to go first.
        let rivals = self.book.rivals(&known.identity, &known.node_name, &known.roster);
        let taken = rivals.into_iter().find(|(_, rival)| rival.id != id);
        if let (None | Some(Removal::Node), Some((part, rival))) = (what, taken) {
            return turn.reply(ask, super::rivals::conflict(part, rival));
        }
        match what {
            Some(what) => {
                self.record(turn, Record::Removed { at: turn.now.into(), machine: id.clone(), what });
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

    /// Those that have been over for long.
    pub(super) fn forget_invitations(&mut self, turn: &mut Turn) {
        let kept = self.settings.invitation_kept;
        let over = |invitation: &&Invitation| {
            turn.now.since(invitation.until) >= kept && turn.now >= invitation.until
        };
        let over: Vec<_> =
            self.book.invitations().filter(over).map(|invitation| invitation.id.clone()).collect();
        for invitation in over {
            self.record(turn, Record::Uninvited { invitation });
        }
    }
}

pub(super) fn bad(place: &str, what: &str) -> Reason {
    Reason::BadFrame { place: place.into(), what: what.into() }
}
