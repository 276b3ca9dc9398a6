//! The agent's messages to its server, and the orders that are under way.
//!
//! ```text
//!  Said ─▶ progress ─▶ stage reports            order ─▶ join, restart ─▶ driver ─▶ what it comes to ─▶ done
//!  account ─▶ heartbeats                              └▶ probe, evidence ─▶ collector ─▶ parts ─▶ done
//! ```
//!
//! One order to join or to restart is under way at once; a newer one replaces it. Other code checks whether it worked.

use std::collections::{BTreeSet, VecDeque};
use std::sync::Arc;

use reveille_agent::effect::Report;
use reveille_agent::model::{Leaving, NodeSeen};
use reveille_agent::{Event, Memory, account};
use reveille_core::model::agent::{AgentBlocker, AgentBlockerKind, ApiSaid, Ask};
use reveille_core::model::time::Time;
use reveille_wire::agent::frame::{Account, Done, Ended, Heartbeat, Order};
use reveille_wire::agent::text::Tail;
use reveille_wire::agent::{AgentFrame, Refused, Verb};
use tokio::sync::mpsc;

use crate::driver::Said;

use super::evidence::Collector;
use super::life::of_account;
use super::progress::Progress;
use super::{Life, LogEvent};

/// The number of orders that the agent recognises when they come again.
const ORDERS_KEPT: usize = 64;

/// The outgoing messages, and the order that is under way.
pub(super) struct Planner {
    pub(super) progress: Progress,
    pub(super) account: Option<Account>,
    say: mpsc::Sender<AgentFrame>,
    order: Option<Order>,
    /// The orders that were taken, the newest last.
    had: VecDeque<u64>,
    collector: Collector,
}

impl Planner {
    pub(super) fn new(say: mpsc::Sender<AgentFrame>, collector: Collector) -> Self {
        let (progress, had) = (Progress::default(), VecDeque::new());
        Self { progress, account: None, say, order: None, had, collector }
    }

    pub(super) fn send(&self, frame: AgentFrame) {
        // A full queue means that the link is down; the agent sends its state when the link is up again.
        self.say.try_send(frame).ok();
    }

    fn flush(&mut self, tell: &mut impl FnMut(Time, LogEvent<'_>)) {
        let reports = self.progress.reports(crate::driver::now());
        if !reports.is_empty() {
            self.tell_all();
        }
        for report in reports {
            tell(crate::driver::now(), LogEvent::Stage(&report));
            self.send(AgentFrame::Stage(report));
        }
    }

    /// A session has begun: sends the machine's stage and account.
    pub(super) fn tell_all(&self) {
        let stage = self.progress.stage();
        self.send(AgentFrame::Heartbeat(Heartbeat {
            stage: Some(stage),
            joined: self.progress.has_joined(),
            account: self.account.clone(),
        }));
    }

    pub(super) fn wait_for_plan(&mut self, refused: &Refused, tell: &mut impl FnMut(Time, LogEvent<'_>)) {
        self.progress.stands(refused.reason.code(), &refused.to_string());
        self.flush(tell);
    }

    /// A step of the plan failed; the agent tries it again.
    pub(super) fn plan_failed(&mut self, why: &str, tell: &mut impl FnMut(Time, LogEvent<'_>)) {
        self.progress.stands("PLAN_FAILED", why);
        self.flush(tell);
    }

    pub(super) fn hear(&mut self, said: &Said, tell: &mut impl FnMut(Time, LogEvent<'_>)) {
        self.progress.hear(said);
        self.flush(tell);
        // The answer says that the act has begun; the sender of the order sees from the machine's state whether it
        // worked.
        let ended = match said {
            Said::Report(report @ Report::Rejoins(..)) => (Ended::Done, report.to_string()),
            Said::Report(report @ Report::Blocked(_)) => (Ended::Declined, report.to_string()),
            Said::Report(report @ (Report::Failed(..) | Report::GaveUp(_))) => {
                (Ended::Failed, report.to_string())
            }
            Said::Report(report @ Report::Back) => (Ended::AlreadySo, report.to_string()),
            Said::Found(found) if found.inspection.node == NodeSeen::Ready => {
                (Ended::AlreadySo, "its node is Ready".to_owned())
            }
            _ => return,
        };
        if let Some(order) = self.order.take() {
            self.answer(order.id, ended.0, &ended.1);
        }
    }

    /// The sender of the order has gone: no receiver waits for the evidence that is being collected.
    pub(super) fn link_ended(&mut self) {
        self.collector.stop();
    }

    /// Carries an order out, as far as the machine's own reasons allow it.
    pub(super) fn take_order(&mut self, order: Order, life: Option<&Life>) {
        if matches!(order.verb, Verb::Join | Verb::RestartKubelet) && self.was_had(order.id) {
            return;
        }
        let begun = match (order.verb, life) {
            (Verb::Join | Verb::RestartKubelet, None) => Err("no plan was given to this machine yet"),
            (Verb::Join | Verb::RestartKubelet, Some(life)) => {
                let ask = if order.verb == Verb::Join { Ask::Rejoin } else { Ask::RestartKubelet };
                let taken = life.orders.try_send(Event::Asked(ask)).map_err(|_| "the agent is busy");
                if taken.is_ok() {
                    self.take_up(&order);
                }
                taken
            }
            (Verb::Probe | Verb::CollectEvidence, _) => {
                self.collector.begin(&order, life.map(|life| Arc::clone(&life.inspector)))
            }
        };
        if let Err(why) = begun {
            self.answer(order.id, Ended::Declined, why);
        }
    }

    /// True when the order came before: then the agent does not repeat it. An order under way is answered when it ends.
    fn was_had(&self, id: u64) -> bool {
        let had = self.had.contains(&id);
        if had && self.order.as_ref().is_none_or(|under_way| under_way.id != id) {
            self.answer(id, Ended::Done, "it was given before, and taken then");
        }
        had
    }

    /// This order is under way from now on, and the one before it is not.
    fn take_up(&mut self, order: &Order) {
        if self.had.len() == ORDERS_KEPT {
            self.had.pop_front();
        }
        self.had.push_back(order.id);
        if let Some(before) = self.order.replace(order.clone()) {
            self.answer(before.id, Ended::Declined, "another order came after it");
        }
    }

    fn answer(&self, id: u64, outcome: Ended, tail: &str) {
        self.send(AgentFrame::Done(Done { id, outcome, tail: Tail::tail(tail) }));
    }
}

/// The agent's account before it follows any plan: it remembers that an operator or a controller removes its machine.
/// None where it remembers no such sign. A removal by the server is left out: the session that would carry this account
/// refutes it.
pub(super) fn remembered(memory: &Memory) -> Option<Account> {
    let leaving = memory.leaving.filter(|how| *how != Leaving::Removed)?;
    let blocker = Some(AgentBlocker { kind: AgentBlockerKind::Leaving, text: leaving.to_string().into() });
    let own = account::Account { api: ApiSaid::CannotTell, work: None, blocker, may: BTreeSet::new() };
    Some(of_account(&own, None))
}

#[cfg(test)]
mod tests {
    use super::super::Setup;
    use super::*;

    #[test]
    fn an_order_that_is_given_twice_is_done_once() {
        let folder = tempfile::tempdir().unwrap();
        let setup = Setup::of_test(folder.path());
        let (say, mut said) = mpsc::channel(8);
        let mut planner = Planner::new(say, Collector::new(&setup, mpsc::channel(1).0));
        let order = |id| Order { id, verb: Verb::RestartKubelet, within_s: 60 };
        assert!(!planner.was_had(7));
        planner.take_up(&order(7));
        assert!(planner.was_had(7) && said.try_recv().is_err(), "it is answered when it comes to something");
        planner.take_up(&order(8));
        assert!(planner.was_had(7));
        let ended = |frame| match frame {
            AgentFrame::Done(done) => (done.id, done.outcome),
            other => panic!("{other:?}"),
        };
        let answers: Vec<(u64, Ended)> = std::iter::from_fn(|| said.try_recv().ok()).map(ended).collect();
        assert_eq!(answers, [(7, Ended::Declined), (7, Ended::Done)]);
        (100..100 + ORDERS_KEPT as u64).for_each(|id| planner.take_up(&order(id)));
        assert!(!planner.was_had(7), "what is kept has a bound");
    }
}
