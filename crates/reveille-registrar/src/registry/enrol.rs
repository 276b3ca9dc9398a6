//! Which machine is enrolled, and under which identity: the registry judges the token, then the identity, and then
//! records the machine.
//!
//! ```text
//!  token ─ unknown, expired, taken back, used up, for another machine ─▶ refused
//!  identity ─ the same machine with the same key, again ─▶ its certificate once more: an answer was lost on the way
//!           ─ a known machine, and an invitation to reimage it ─▶ its record gets the new key ([`super::rebuilt`])
//!           ─ a name that no Node can have or is another instance's id, a word that does not show ─▶ refused
//!           ─ a part, a key or a node name of another, in any spelling ─▶ refused, with that one's facts; and that one is told
//!           ─ one that was removed, and an invitation that does not name it ─▶ refused ([`super::away`])
//!           ─ a name or an id of a Node of the cluster that is not this machine's ─▶ refused, and not told what it carries
//!           ─ new ─▶ a record of its own
//! ```
//!
//! When two machines claim one identity, the registry refuses the second one, because the first has something to lose.
//! The host name counts only where it becomes the name of the Node: a value that an operator can type is no identity.

use reveille_core::model::stage::Stage;
use reveille_core::model::time::Time;
use reveille_wire::agent::frame::Trouble;
use reveille_wire::agent::identity::{Part, normal};
use reveille_wire::agent::text::{Sentence, Word};
use reveille_wire::agent::{Facts, Identity, Reason, Refused, StageWord};

use super::claims;
use super::event::{NodeIds, NodeSaid, Reply, What};
use super::flow::JoinEnd;
use super::ids::{Ask, InvitationId, KeyHash, MachineId};
use super::invitation::Invitation;
use super::machine::{Machine, instance_of};
use super::rates::Costs;
use super::rebuilt;
use super::record::{Enrolled, Record};
use super::whereabouts;
use super::{Effect, Event, Peer, Registry, Turn};

/// A machine that asks to be enrolled.
struct Claim {
    identity: Identity,
    facts: Facts,
    node_name: Word,
    node: Option<NodeSaid>,
    key: KeyHash,
}

/// The ids have a form in which the registry can compare them with other ids.
fn is_sound(identity: &Identity) -> bool {
    !identity.boot_id.is_empty() && claims::shows(identity) && claims::have_forms(identity)
}

impl Claim {
    /// The ids can be compared, and the name can be the name of a Node.
    fn is_sound(&self) -> Result<(), Reason> {
        if self.node_name.is_empty() {
            let what = "no Node can have this name (RFC 1123): set the host name, or the node name, to lower case letters, \
                digits, '-' and '.'";
            return Err(super::invite::bad("node_name", what));
        }
        if !is_sound(&self.identity) {
            let what = "a boot id is needed, ids are printable ASCII, a machine id is 32 hex digits, and a system UUID is a UUID";
            return Err(super::invite::bad("identity", what));
        }
        Ok(())
    }

    /// The claimed name does not name an instance other than the machine's own.
    fn is_called_by_its_own(&self) -> Result<(), Reason> {
        let is_own = |id: &str| self.identity.lasting().any(|(_, own)| normal(own) == normal(id));
        if claims::instance_in(&self.node_name).is_none_or(is_own) {
            return Ok(());
        }
        let what = "it is an instance's id, and not one of this machine's: give it another name, or its agent the \
            instance's id (--instance-id)";
        Err(super::invite::bad("node_name", what))
    }

    /// True when this Node is the machine's own, as far as an invitation proves it. The Node has its name and an id of it
    /// and contradicts no other id, or an operator named the Node and an id matches.
    fn is_of(&self, node: &NodeIds, vouched_for: Option<&Word>) -> bool {
        let of_node = Identity {
            instance_id: node.instance.clone(),
            machine_id: None,
            system_uuid: node.system_uuid.clone(),
            boot_id: Word::default(),
        };
        let is = |one: &str, other: &str| normal(one) == normal(other);
        let is_one = |theirs: &str| self.identity.lasting().any(|(_, own)| is(own, theirs));
        if !of_node.lasting().any(|(_, theirs)| is_one(theirs)) {
            return false;
        }
        let is_vouched_for = vouched_for.is_some_and(|bound| claims::is_called(&of_node, &node.name, bound));
        let differs = |part| of_node.part(part).zip(self.identity.part(part)).is_some_and(|(a, b)| !is(a, b));
        // The kubelet reports the machine id as system UUID where the firmware has no UUID.
        let is_machine_id = self
            .identity
            .part(Part::MachineId)
            .is_some_and(|id| of_node.part(Part::SystemUuid).is_some_and(|theirs| is(theirs, id)));
        let contradicts = differs(Part::InstanceId) || differs(Part::SystemUuid) && !is_machine_id;
        is_vouched_for || claims::is_one_name(&node.name, &self.node_name) && !contradicts
    }

    /// The part of the claim that this Node has.
    fn part_of(&self, node: &NodeIds) -> Part {
        let ids = [&node.instance, &node.system_uuid];
        let carries = |word: &str| ids.into_iter().flatten().any(|id| normal(id) == normal(word));
        let has = |word: &str| carries(word) || claims::is_one_name(word, &node.name);
        let mut claimed = claims::names(&self.identity, &self.node_name);
        claimed.find(|(_, word)| has(word)).map_or(Part::NodeName, |(part, _)| part)
    }

    /// The claim has the name of this Node, as a name or as an id.
    fn takes_name_of(&self, node: &NodeIds) -> bool {
        claims::names(&self.identity, &self.node_name).any(|(_, word)| claims::is_one_name(word, &node.name))
    }
}

/// The identity under which the registry admits a machine.
enum As {
    /// The machine that it already is.
    Itself(MachineId),
    /// A known machine with a new key.
    Rebuilt(MachineId),
    /// A new machine.
    New,
}

impl Registry {
    pub(super) fn enrol(&mut self, turn: &mut Turn, event: Event) {
        let Event::Enrol { ask, id, hash, identity, facts, node_name, node, key, fresh } = event else {
            return;
        };
        let wished = node_name.unwrap_or_else(|| facts.hostname.clone());
        // The registry checks the invitation before the name, so a client without an invitation learns nothing.
        let node_name = claims::node_name(&wished).unwrap_or_default();
        let mut claim = Claim { identity, facts, node_name, node, key };
        // The machine sends this address again with each hello, and the registry reports it then.
        whereabouts::believed(&mut claim.facts, self.settings.peers_on_loopback);
        let Some(invitation) = self.index.invitation(&id).filter(|invitation| invitation.opens(&hash)) else {
            return turn.reply(ask, Reason::TokenUnknown);
        };
        let invitation = invitation.clone();
        let known = match self.admit(turn, &invitation, &claim) {
            Ok(known) => known,
            Err(refused) => return turn.reply(ask, Reply::Refused(refused)),
        };
        let machine = match known {
            As::Itself(machine) => {
                if let Err(reason) = self.spend(turn.now, &machine, Costs::Certificate) {
                    return turn.reply(ask, reason);
                }
                // The same answer once more: it uses nothing up and changes nothing.
                return self.certify(turn, ask, &machine, claim.key);
            }
            // The registry asks the clusters only about a machine that it may admit, and within the invitation's rate.
            As::Rebuilt(_) | As::New if claim.node == Some(NodeSaid::Unasked) => {
                return match self.spend_question(turn.now, &invitation) {
                    Ok(()) => turn.reply(ask, Reply::NodesToAsk(invitation.roster)),
                    Err(reason) => turn.reply(ask, reason),
                };
            }
            As::Rebuilt(machine) => {
                self.dismiss(turn, &machine);
                self.end_join(turn, &machine, JoinEnd::BegunAgain);
                machine
            }
            As::New if self.index.counts().1 >= self.settings.machines_max => {
                return turn.reply(ask, Reason::TooMany { of: "machines".into() });
            }
            As::New => fresh,
        };
        let enrolled = Enrolled {
            at: turn.now,
            machine: machine.clone(),
            invitation: invitation.id.clone(),
            used: true,
            roster: invitation.roster.clone(),
            pool: invitation.pool.clone(),
            roles: invitation.roles,
            identity: claim.identity,
            facts: claim.facts,
            node_name: claim.node_name,
            key: claim.key,
        };
        self.record(turn, Record::Enrolled(enrolled));
        self.tell_over(turn, &invitation.id, false);
        if let Some(known) = self.index.machine(&machine) {
            turn.tell(known, What::Enrolled);
        }
        self.heard(turn, &machine);
        self.certify(turn, ask, &machine, claim.key);
    }

    /// The next certificate. A renewal proves only the key, not the machine's ids, so it does not void the machine's key.
    /// The new key counts beside the key before, until the first welcome with the new one.
    pub(super) fn renew(&mut self, turn: &mut Turn, ask: Ask, peer: &Peer, key: KeyHash) {
        let stands = match self.stands(peer) {
            // A removed Node keeps its certificate, which the machine needs when its Node is readmitted: that may take
            // longer than a certificate lasts.
            Err(Reason::NodeRemoved) => Ok(()),
            other => other,
        };
        if let Err(reason) = stands.and_then(|()| self.spend(turn.now, &peer.machine, Costs::Certificate)) {
            return turn.reply(ask, reason);
        }
        let holder = self.index.holder(&key).map(|holder| holder.id.clone());
        if holder.as_ref().is_some_and(|holder| *holder != peer.machine) {
            return turn.reply(ask, super::invite::bad("csr", "this key is another machine's"));
        }
        if holder.is_none() {
            // The key that the machine shows stays among the newest: the answer may be lost on its way.
            let is_older = self
                .index
                .machine(&peer.machine)
                .is_some_and(|known| known.key != peer.key && known.next_keys.last() != Some(&peer.key));
            let keys = is_older.then_some(peer.key).into_iter().chain([key]);
            for key in keys {
                self.record(turn, Record::KeyOffered { machine: peer.machine.clone(), key });
            }
        }
        self.certify(turn, ask, &peer.machine, key);
    }

    fn certify(&self, turn: &mut Turn, ask: Ask, machine: &MachineId, key: KeyHash) {
        let Some(known) = self.index.machine(machine) else { return };
        let ttl = self.settings.certificate_ttl;
        turn.reply(
            ask,
            Reply::Certify { machine: machine.clone(), key, node_name: known.node_name.clone(), ttl },
        );
    }

    fn admit(&mut self, turn: &mut Turn, invitation: &Invitation, claim: &Claim) -> Result<As, Refused> {
        let holder = self.index.holder(&claim.key).map(|holder| holder.id.clone());
        // An answer was lost: no other machine has this key, and the machine is the one that came with it before.
        if let Some(known) = holder.as_ref().and_then(|holder| self.index.machine(holder))
            && known.key == claim.key
            && known.invitation == invitation.id
            && known.removed.is_none()
            && known.identity.differs(&claim.identity).is_none()
            && !invitation.is_revoked
            && (!invitation.is_expired(turn.now) || self.may_have_missed(known, turn.now))
        {
            return Ok(As::Itself(known.id.clone()));
        }
        if let Some(trouble) = invitation.trouble(turn.now) {
            return Err(trouble.into());
        }
        claim.is_sound()?;
        let away = self.away(&claim.identity, &claim.key);
        if let Some(holder) = holder.filter(|holder| !away.contains(holder)) {
            return Err(self.refuse_claim(turn, invitation, (Part::Key, &holder), claim).into());
        }
        let rivals = self.index.rivals(&claim.identity, &claim.node_name, &invitation.roster);
        let rivals: Vec<(Part, MachineId)> =
            rivals.into_iter().map(|(part, rival)| (part, rival.id.clone())).collect();
        if let Some(bound) = &invitation.machine {
            let record = self.meant_by(invitation).map(|machine| machine.id.clone());
            let itself =
                |(part, rival): &(Part, MachineId)| *part != Part::NodeName && Some(rival) == record.as_ref();
            let is_back = self.index.away_with(&claim.identity).any(|id| self.is_for(invitation, id));
            let is_called = claims::is_called(&claim.identity, &claim.node_name, bound);
            let is_meant = is_called || is_back || rivals.iter().any(itself);
            if !is_meant || self.is_on_another(bound, &claim.identity) {
                return Err(Reason::TokenForeign { bound_to: "machine".into() }.into());
            }
        }
        // A reimaged machine may keep all its own names, and take none of another machine.
        let others = rivals.iter().find(|(_, rival)| !self.may_be_rebuilt(turn, invitation, rival));
        match (others.cloned(), rivals.into_iter().next()) {
            (Some((part, first)), _) if self.is_to_be_rebuilt(invitation, &first) => {
                // No conflict of the invitation: its machine comes again until the machine before is silent.
                let reason = self.refuse_rival(turn, part, &first, &claim.identity, &claim.facts);
                Err(self.still_heard(turn.now, &first, reason))
            }
            (Some((part, first)), _) => {
                Err(self.refuse_claim(turn, invitation, (part, &first), claim).into())
            }
            (None, Some((_, itself))) => {
                let away: Vec<_> =
                    away.into_iter().filter(|away| !self.is_another_of(away, &itself)).collect();
                self.let_in_again(invitation, &away)?;
                self.is_rebuilt_as_itself(&itself, (&claim.identity, &claim.node_name))?;
                self.held_against_node(turn, invitation, claim, Some(&itself))?;
                Ok(As::Rebuilt(itself))
            }
            (None, None) => {
                self.let_in_again(invitation, &away)?;
                claim.is_called_by_its_own()?;
                self.held_against_node(turn, invitation, claim, None)?;
                Ok(away.into_iter().next().map_or(As::New, As::Rebuilt))
            }
        }
    }

    /// The answer with the machine's certificate may have been lost: it was admitted while the invitation was open, began
    /// no session since, and its certificate would still be valid. That the answer comes so late makes it no other
    /// machine. Without this check, a copy of its disk whose certificate and token have both expired would get another
    /// certificate for the two.
    fn may_have_missed(&self, known: &Machine, now: Time) -> bool {
        known.shown_by.is_none() && now < known.enrolled_at + self.settings.certificate_ttl
    }

    /// The invitation is for an instance, and the claim comes from another one. That the claim carries the invited id
    /// elsewhere (as a machine id) does not change that: its record would speak for the instance that it claims. For a
    /// machine that the word of the invitation names, the instance is known, too.
    fn is_on_another(&self, bound: &str, identity: &Identity) -> bool {
        instance_of(identity).is_some_and(|own| {
            claims::is_for_another(bound, own)
                && !self.index.named(bound).iter().any(|known| known.is_on(own))
        })
    }

    /// A Node that already exists with this name or with a claimed id must belong to this machine, and have existed
    /// before the invitation. For a reimaged machine it may also be the machine's leftover Node.
    fn held_against_node(
        &mut self,
        turn: &mut Turn,
        invitation: &Invitation,
        claim: &Claim,
        rebuilt: Option<&MachineId>,
    ) -> Result<(), Refused> {
        match &claim.node {
            None | Some(NodeSaid::Absent | NodeSaid::Unasked) => Ok(()),
            Some(NodeSaid::Present(nodes)) => {
                let vouched_for = invitation.machine.as_ref();
                let before = rebuilt.and_then(|rebuilt| self.index.machine(rebuilt));
                let is_own = |node: &NodeIds| {
                    claim.is_of(node, vouched_for)
                        || before.is_some_and(|before| rebuilt::is_left_of(before, node))
                };
                let others: Vec<&NodeIds> = nodes.iter().filter(|node| !is_own(node)).collect();
                let Some(another) = others.first() else { return Ok(()) };
                let refused = super::rivals::of_node(claim.part_of(another), &invitation.pool);
                // A Node's name is certain. Its ids come from its kubelet, and a kubelet that lies must not void another
                // machine's invitation.
                if others.iter().any(|node| claim.takes_name_of(node)) {
                    self.conflicted(turn, invitation);
                }
                Err(refused)
            }
            // An API server answers, but not completely yet: admitting the claim now would skip the check.
            Some(NodeSaid::Partly) => Err(Reason::Unavailable.into()),
            // Before the first control plane there is no API server, and no Node that a machine could take. Where the
            // roster's API server answered once, also before a restart, the machine has to ask again: else a client that has a
            // token takes the name of any Node while that API server is away, or is kept busy.
            Some(NodeSaid::Unknown) if self.index.has_answered(&invitation.roster) => {
                Err(Reason::Unavailable.into())
            }
            Some(NodeSaid::Unknown) => Ok(()),
        }
    }

    /// Refuses a claim to a name of another machine. This counts against the invitation, which becomes void in the end.
    fn refuse_claim(
        &mut self,
        turn: &mut Turn,
        invitation: &Invitation,
        (part, first): (Part, &MachineId),
        claim: &Claim,
    ) -> Reason {
        self.conflicted(turn, invitation);
        self.refuse_rival(turn, part, first, &claim.identity, &claim.facts)
    }

    fn conflicted(&mut self, turn: &mut Turn, invitation: &Invitation) {
        let at = turn.now;
        self.record(turn, Record::Conflicted { at, invitation: invitation.id.clone() });
        self.tell_over(turn, &invitation.id, true);
    }

    fn tell_over(&self, turn: &mut Turn, id: &InvitationId, by_conflict: bool) {
        let over = self.index.invitation(id).and_then(|invitation| invitation.over(by_conflict));
        turn.out.extend(over.map(Effect::InvitationOver));
    }

    /// Records what this server says about a stage, if it is new.
    pub(super) fn note(
        &mut self,
        turn: &mut Turn,
        machine: &MachineId,
        stage: Stage,
        trouble: Option<(&str, &str)>,
    ) {
        let trouble = trouble.map(|(code, text)| Trouble { code: code.into(), text: Sentence::cut(text) });
        let said = self.index.machine(machine).and_then(|known| known.trace.leg(stage)?.server_says.clone());
        if said != trouble {
            let (at, machine) = (turn.now, machine.clone());
            self.record(turn, Record::Noted { at, machine, stage: StageWord(stage), trouble });
        }
    }

    /// Ends the session and token of the machine before.
    fn dismiss(&mut self, turn: &mut Turn, machine: &MachineId) {
        self.drop_token(turn, machine);
        if let Some(conn) = self.conn_of.get(machine).copied() {
            turn.close(conn, Reason::CertificateRevoked);
            self.gone(turn, conn);
        }
    }
}
