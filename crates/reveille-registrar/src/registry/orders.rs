//! Orders to machines: each is sent once, and is either answered once or reported as unanswered.
//!
//! An order goes to the current session; the registry does not keep it for a later one. The sender of an order hears of
//! its end in every case: the answer, or why there is none, and whether the machine may have the order all the same. If
//! the next session of the same boot takes over from a broken one, the agent keeps its orders and answers over the new
//! session.

use reveille_core::model::time::{Span, Time};
use reveille_wire::agent::frame::{EvidencePart, Order};
use reveille_wire::agent::{ServerFrame, Verb};

use super::event::{NoAnswer, What};
use super::ids::{MachineId, OrderId};
use super::{Effect, Registry, Turn};

/// An order that was sent.
#[derive(Clone, Debug)]
pub(super) struct Given {
    machine: MachineId,
    verb: Verb,
    pub(super) until: Time,
    /// The next part of the evidence, and how many parts the first one announced.
    part: u32,
    of: Option<u32>,
}

impl Registry {
    pub(super) fn order(
        &mut self,
        turn: &mut Turn,
        id: OrderId,
        machine: &MachineId,
        verb: Verb,
        within: Span,
    ) {
        let Some(known) = self.index.machine(machine) else { return };
        let has = self.orders.values().filter(|given| given.machine == *machine).count();
        let refused = match self.conn_of.get(machine) {
            None => Some("it has no session"),
            Some(_) if has >= self.settings.orders_max => Some("too many orders wait for it"),
            Some(_) if self.orders.contains_key(&id) => return,
            Some(_) => None,
        };
        if let Some(why) = refused {
            return turn.tell(known, What::Unanswered(id, NoAnswer::NotGiven(why)));
        }
        let Some(conn) = self.conn_of.get(machine).copied() else { return };
        self.orders.insert(
            id,
            Given { machine: machine.clone(), verb, until: turn.now + within, part: 0, of: None },
        );
        let within_s = u32::try_from(within.ms / 1000).unwrap_or(u32::MAX);
        turn.out.push(Effect::Send(conn, ServerFrame::Do(Order { id: id.0, verb, within_s })));
    }

    /// True when a sender waits for this answer.
    pub(super) fn order_done(&mut self, machine: &MachineId, id: OrderId) -> bool {
        let waits = self.orders.get(&id).is_some_and(|given| given.machine == *machine);
        if waits {
            self.orders.remove(&id);
        }
        waits
    }

    /// True for the next part of evidence that was asked for, within the limit of its size.
    pub(super) fn may_send_evidence(&mut self, machine: &MachineId, part: &EvidencePart) -> bool {
        let Some(given) = self.orders.get_mut(&OrderId(part.id)) else { return false };
        let asked = given.machine == *machine && given.verb == Verb::CollectEvidence;
        let of = given.of.unwrap_or(part.of);
        let next =
            part.part == given.part && part.part < part.of && part.of == of && of <= EvidencePart::PARTS_MAX;
        if asked && next {
            (given.part, given.of) = (given.part + 1, Some(of));
        }
        asked && next
    }

    pub(super) fn orders_lost(&mut self, turn: &mut Turn, machine: &MachineId) {
        self.end(turn, |given| given.machine == *machine, "its session ended");
    }

    /// Another session of the same boot takes over. Collecting evidence ends with its session; other orders continue.
    pub(super) fn collecting_lost(&mut self, turn: &mut Turn, machine: &MachineId) {
        let collects = |given: &Given| matches!(given.verb, Verb::CollectEvidence | Verb::Probe);
        self.end(turn, |given| given.machine == *machine && collects(given), "its session ended");
    }

    pub(super) fn end_orders(&mut self, turn: &mut Turn) {
        let now = turn.now;
        self.end(turn, |given| given.until <= now, "it did not answer in time");
    }

    fn end(&mut self, turn: &mut Turn, over: impl Fn(&Given) -> bool, why: &'static str) {
        let ended: Vec<OrderId> =
            self.orders.iter().filter(|(_, given)| over(given)).map(|(id, _)| *id).collect();
        for id in ended {
            let Some(given) = self.orders.remove(&id) else { continue };
            if let Some(known) = self.index.machine(&given.machine) {
                turn.tell(known, What::Unanswered(id, NoAnswer::Unknown(why)));
            }
        }
    }
}
