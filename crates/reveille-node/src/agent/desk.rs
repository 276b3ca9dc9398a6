//! What the agent says to its server, and the orders that are under way.
//!
//! ```text
//!  Said ─▶ progress ─▶ stage reports            order ─▶ join, restart ─▶ driver ─▶ what it comes to ─▶ done
//!  account ─▶ heartbeats                              └▶ probe, evidence ─▶ collector ─▶ parts ─▶ done
//! ```
//!
//! One order to join or to restart is under way at once; a newer one takes its place. Whether it works is read elsewhere.

use std::sync::Arc;

use reveille_agent::Event;
use reveille_agent::effect::Report;
use reveille_agent::model::NodeSeen;
use reveille_core::model::agent::{Ask, KubeletSaid};
use reveille_core::model::time::Time;
use reveille_wire::agent::frame::{self, Account, Done, Ended, Heartbeat, Order};
use reveille_wire::agent::text::{List, Sentence, Tail, Word};
use reveille_wire::agent::{AgentFrame, Refused, Verb};
use tokio::sync::mpsc;

use crate::driver::Said;

use super::evidence::Collector;
use super::progress::Progress;
use super::{Life, Told};

/// What is said to the server, and the order that is under way.
pub(super) struct Desk {
    pub(super) progress: Progress,
    pub(super) account: Option<Account>,
    say: mpsc::Sender<AgentFrame>,
    order: Option<Order>,
    collector: Collector,
}

impl Desk {
    pub(super) fn new(say: mpsc::Sender<AgentFrame>, collector: Collector) -> Self {
        Self { progress: Progress::default(), account: None, say, order: None, collector }
    }

    pub(super) fn send(&self, frame: AgentFrame) {
        // A full queue is a link that is down; what is so is said when it is up again.
        self.say.try_send(frame).ok();
    }

    fn flush(&mut self, tell: &mut impl FnMut(Time, Told<'_>)) {
        let reports = self.progress.reports(crate::driver::now());
        if !reports.is_empty() {
            self.tell_all();
        }
        for report in reports {
            tell(crate::driver::now(), Told::Stage(&report));
            self.send(AgentFrame::Stage(report));
        }
    }

    /// A session stands: it is told where the machine is.
    pub(super) fn tell_all(&self) {
        let stage = self.progress.stage();
        self.send(AgentFrame::Heartbeat(Heartbeat {
            stage: Some(stage),
            joined: self.progress.has_joined(),
            account: self.account.clone(),
        }));
    }

    pub(super) fn wait_for_plan(&mut self, refused: &Refused, tell: &mut impl FnMut(Time, Told<'_>)) {
        self.progress.stands(refused.reason.code(), &refused.to_string());
        self.flush(tell);
    }

    /// Something of it could not be done; it is tried again.
    pub(super) fn plan_failed(&mut self, why: &str, tell: &mut impl FnMut(Time, Told<'_>)) {
        self.progress.stands("PLAN_FAILED", why);
        self.flush(tell);
    }

    pub(super) fn hear(&mut self, said: &Said, tell: &mut impl FnMut(Time, Told<'_>)) {
        self.progress.hear(said);
        self.flush(tell);
        // That it is begun is the answer: whether it works, whoever asked sees for himself.
        let ended = match said {
            Said::Report(report @ Report::Rejoins(..)) => (Ended::Done, report.to_string()),
            Said::Report(report @ Report::Holds(_)) => (Ended::Declined, report.to_string()),
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

    /// Whoever ordered is not there any more: nobody waits for what is collected.
    pub(super) fn link_ended(&mut self) {
        self.collector.stop();
    }

    /// Carries an order out, as far as the machine's own reasons allow it.
    pub(super) fn take_order(&mut self, order: Order, life: Option<&Life>) {
        let begun = match (order.verb, life) {
            (Verb::Join | Verb::RestartKubelet, None) => Err("no plan was given to this machine yet"),
            (Verb::Join | Verb::RestartKubelet, Some(life)) => {
                let ask = if order.verb == Verb::Join { Ask::Rejoin } else { Ask::RestartKubelet };
                let taken = life.orders.try_send(Event::Asked(ask)).map_err(|_| "the agent is busy");
                if taken.is_ok()
                    && let Some(before) = self.order.replace(order.clone())
                {
                    self.answer(before.id, Ended::Declined, "another order came after it");
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

    fn answer(&self, id: u64, outcome: Ended, tail: &str) {
        self.send(AgentFrame::Done(Done { id, outcome, tail: Tail::tail(tail) }));
    }
}

/// In the words of the protocol.
pub(super) fn of_account(account: &reveille_agent::account::Account, kubelet: Option<bool>) -> Account {
    let kubelet = match kubelet {
        Some(true) => KubeletSaid::Runs,
        Some(false) => KubeletSaid::Stopped,
        None => KubeletSaid::CannotTell,
    };
    let work = account.work.as_ref().map(|work| frame::Work {
        what: Word::cut(&work.what),
        attempt: work.attempt,
        of: work.of,
    });
    let hold = account
        .hold
        .as_ref()
        .map(|hold| frame::Hold { kind: Word::cut(hold.kind.name()), text: Sentence::cut(&hold.text) });
    Account {
        kubelet: Word::cut(kubelet.name()),
        api: Word::cut(account.api.name()),
        work,
        hold,
        may: List::first(account.may.iter().map(|ask| Word::cut(ask.name()))),
        announced: List::default(),
    }
}
