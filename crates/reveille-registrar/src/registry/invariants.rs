//! What must hold after every step, judged by a checker with an index of its own that never looks into the registry.
//!
//! 1. No machine is certified or welcomed that was not made durable, and none for another key than the durable one.
//! 2. No invitation is used without its secret, after its end, after it was taken back, or more often than it allows.
//! 3. Two machines never share a key, a lasting part of an identity in any spelling or as any kind of id, or the name of a
//!    node in one roster.
//! 4. A connection gets only a close before its welcome, and nothing after a close.
//! 5. A machine has one session.
//! 6. A plan or a token goes to the session of its own machine, and none to a removed machine.
//! 7. An order ends once.
//! 8. The registry forgets no machine that has a session.

use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;

use reveille_core::model::id::RosterName;
use reveille_core::model::time::Time;
use reveille_wire::agent::ServerFrame;
use reveille_wire::agent::identity::normal;

use super::event::{Effect, Event, Heard, Reply, What};
use super::ids::{Conn, InvitationId, KeyHash, MachineId, OrderId, TokenHash};
use super::invitation::Invitation;
use super::machine::Removal;
use super::record::{Enrolled, Record};

/// A broken invariant.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Broken {
    /// The invariant's number, 1 to 8.
    pub invariant: u8,
    /// What broke the invariant.
    pub how: String,
}

/// What the checker has seen, kept apart from the registry.
#[derive(Clone, Debug, Default)]
pub struct InvariantChecker {
    invitations: BTreeMap<InvitationId, Invitation>,
    machines: BTreeMap<MachineId, Known>,
    open: BTreeMap<Conn, MachineId>,
    closed: BTreeSet<Conn>,
    arriving: Option<(Conn, MachineId)>,
    orders: BTreeMap<OrderId, MachineId>,
}

#[derive(Clone, Debug)]
struct Known {
    keys: BTreeSet<KeyHash>,
    claims: BTreeSet<String>,
    node: (RosterName, Arc<str>),
    removed: Option<Removal>,
}

fn ensure(holds: bool, invariant: u8, how: impl FnOnce() -> String) -> Result<(), Broken> {
    if holds { Ok(()) } else { Err(Broken { invariant, how: how() }) }
}

impl InvariantChecker {
    /// Judges one step.
    ///
    /// # Errors
    ///
    /// The first invariant that the step breaks.
    pub fn check(&mut self, now: Time, event: &Event, effects: &[Effect]) -> Result<(), Broken> {
        let mut token = None;
        match event {
            Event::Enrol { id, hash, .. } => token = Some((id, hash)),
            Event::Arrived { conn, peer, .. } => self.arriving = Some((*conn, peer.machine.clone())),
            Event::Order { id, machine, .. } => {
                self.orders.insert(*id, machine.clone());
            }
            Event::Gone(conn) => {
                self.open.remove(conn);
                self.closed.insert(*conn);
            }
            _ => {}
        }
        for effect in effects {
            self.check_effect(now, token, effect)?;
        }
        self.arriving = None;
        self.check_sharing()
    }

    fn check_effect(
        &mut self,
        now: Time,
        token: Option<(&InvitationId, &TokenHash)>,
        effect: &Effect,
    ) -> Result<(), Broken> {
        match effect {
            Effect::Record(record) => self.remember(now, token, record),
            Effect::Reply(_, Reply::Certify { machine, key, .. }) => {
                let known = self.machines.get(machine);
                ensure(known.is_some_and(|known| known.keys.contains(key)), 1, || {
                    format!("{machine} is certified for {key}")
                })
            }
            Effect::Send(conn, frame) => self.check_send(*conn, frame),
            Effect::SendToken(conn, machine) => self.check_owner(*conn, Some(machine), "a token"),
            Effect::Close(conn, _) => {
                ensure(self.closed.insert(*conn), 4, || format!("{conn:?} is closed twice"))?;
                self.open.remove(conn);
                Ok(())
            }
            Effect::Tell(Heard { what: What::Answered(id, _) | What::Unanswered(id, _), .. }) => {
                ensure(self.orders.remove(id).is_some(), 7, || {
                    format!("{id:?} ends, and no sender waits for it")
                })
            }
            _ => Ok(()),
        }
    }

    fn check_send(&mut self, conn: Conn, frame: &ServerFrame) -> Result<(), Broken> {
        ensure(!self.closed.contains(&conn), 4, || format!("{conn:?} is closed, and gets {frame:?}"))?;
        if let ServerFrame::Welcome(welcome) = frame {
            let arriving = self.arriving.take().filter(|(arriving, _)| *arriving == conn);
            let Some((_, machine)) = arriving else {
                return ensure(false, 4, || format!("{conn:?} is welcomed unasked"));
            };
            let known = self.machines.contains_key(&machine) && welcome.machine.as_str() == machine.as_str();
            ensure(known, 1, || format!("{machine} is welcomed as {}", welcome.machine))?;
            ensure(self.open.values().all(|open| *open != machine), 5, || {
                format!("{machine} has two sessions")
            })?;
            self.open.insert(conn, machine);
            return Ok(());
        }
        let owner = if matches!(frame, ServerFrame::Plan(_)) { "a plan" } else { "a frame" };
        self.check_owner(conn, None, owner)
    }

    fn check_owner(&self, conn: Conn, wanted: Option<&MachineId>, what: &str) -> Result<(), Broken> {
        let Some(owner) = self.open.get(&conn) else {
            return ensure(false, 4, || format!("{conn:?} gets {what} before its welcome"));
        };
        ensure(wanted.is_none_or(|wanted| wanted == owner), 6, || {
            format!("{owner} gets {what} of {wanted:?}")
        })?;
        let removed = self.machines.get(owner).is_none_or(|known| known.removed.is_some());
        ensure(!removed, 6, || format!("{owner} was removed, and gets {what}"))
    }

    fn remember(
        &mut self,
        now: Time,
        token: Option<(&InvitationId, &TokenHash)>,
        record: &Record,
    ) -> Result<(), Broken> {
        match record {
            Record::Invited(invited) => {
                self.invitations.insert(invited.id.clone(), invited.clone());
            }
            Record::Uninvited { invitation } => {
                self.invitations.remove(invitation);
            }
            Record::Revoked { invitation, .. } => {
                if let Some(invited) = self.invitations.get_mut(invitation) {
                    invited.is_revoked = true;
                }
            }
            Record::Enrolled(enrolled) => return self.enrolled(now, token, enrolled),
            Record::KeyOffered { machine, key } => {
                if let Some(known) = self.machines.get_mut(machine) {
                    known.keys.insert(*key);
                }
            }
            Record::Removed { machine, what, .. } => self.removed(machine, Some(*what)),
            Record::Readmitted { machine } => self.removed(machine, None),
            Record::Forgotten { machine, .. } => {
                let open = self.open.values().any(|open| open == machine);
                ensure(!open, 8, || format!("{machine} is forgotten, and has a session"))?;
                self.machines.remove(machine);
            }
            _ => {}
        }
        Ok(())
    }

    fn enrolled(
        &mut self,
        now: Time,
        token: Option<(&InvitationId, &TokenHash)>,
        enrolled: &Enrolled,
    ) -> Result<(), Broken> {
        let id = &enrolled.invitation;
        let Some(invited) = self.invitations.get_mut(id) else {
            return ensure(false, 2, || format!("{id} is used, and was not given"));
        };
        ensure(token == Some((id, &invited.hash)), 2, || format!("{id} is used without its secret"))?;
        ensure(!invited.is_expired(now), 2, || format!("{id} is used after its end"))?;
        ensure(!invited.is_revoked, 2, || format!("{id} is used after it was taken back"))?;
        invited.uses += 1;
        ensure(invited.uses <= invited.uses_max, 2, || format!("{id} is used {} times", invited.uses))?;
        let claims = enrolled.identity.lasting().map(|(_, word)| normal(word)).collect();
        let known = Known {
            keys: BTreeSet::from([enrolled.key]),
            claims,
            node: (enrolled.roster.clone(), enrolled.node_name.shared()),
            removed: None,
        };
        self.machines.insert(enrolled.machine.clone(), known);
        Ok(())
    }

    fn removed(&mut self, machine: &MachineId, what: Option<Removal>) {
        if let Some(known) = self.machines.get_mut(machine) {
            known.removed = what;
        }
    }

    fn check_sharing(&self) -> Result<(), Broken> {
        let (mut keys, mut claims, mut nodes) = (BTreeSet::new(), BTreeSet::new(), BTreeSet::new());
        for (id, known) in &self.machines {
            for key in &known.keys {
                ensure(keys.insert(key), 3, || format!("{id} shares {key}"))?;
            }
            if known.removed == Some(Removal::Machine) {
                continue;
            }
            for claim in &known.claims {
                ensure(claims.insert(claim), 3, || format!("{id} shares {claim:?}"))?;
            }
            ensure(nodes.insert(&known.node), 3, || format!("{id} shares the node name {:?}", known.node))?;
        }
        Ok(())
    }
}
