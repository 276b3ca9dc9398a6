//! The driver of one plan's join: it starts with the plan, and the agent exchanges messages with it until another plan
//! comes.
//!
//! A driver knows what its memory says. What the server said since then, that a session has begun, the agent tells to
//! each new driver: it does not come again with a plan.

use std::ops::ControlFlow;
use std::sync::Arc;

use reveille_agent::effect::Report;
use reveille_agent::{Event, account};
use reveille_core::model::agent::KubeletSaid;
use reveille_core::model::time::Time;
use reveille_wire::agent::Plan;
use reveille_wire::agent::frame::{self, Account};
use reveille_wire::agent::text::{List, Sentence, Word};
use tokio::sync::{mpsc, watch};

use crate::driver::{Begin, Driver, Said};
use crate::executor::{Executor, JoinSettings};
use crate::inspect::Inspector;
use crate::memory_file::MemoryFile;

use super::tokens::FromServer;
use super::{AbortOnDrop, Agent, AgentError, Heard, LogEvent, QUEUED, plan, provider};

/// The driver of one plan's join, and its channels.
pub(super) struct Life {
    pub(super) inspector: Arc<Inspector>,
    pub(super) orders: mpsc::Sender<Event>,
    said: mpsc::Receiver<Said>,
    task: AbortOnDrop,
    /// What the provider announced to the machine.
    announced: watch::Receiver<provider::Announced>,
    /// The task that listens to the announcements.
    _listening: AbortOnDrop,
}

impl Agent {
    fn begin(&self, plan: &Plan) -> Result<Life, AgentError> {
        let aim = plan::target(&self.setup.root, plan)?;
        let (root, kind) = (self.setup.root.clone(), aim.target.kind);
        let inspector = Arc::new(Inspector::new(root, aim.target, aim.node_name, aim.distribution));
        let tokens = FromServer { kind, want: self.say.clone(), tokens: self.tokens.clone() };
        let copies = self.setup.folder.join("before-reset");
        let settings = JoinSettings { config: aim.config, copies, ..JoinSettings::default() };
        let executor = Executor::new(Arc::clone(&inspector), tokens, settings);
        let memory = MemoryFile::within(&self.setup.folder);
        let peer_set = Some(Arc::clone(&self.peer_set));
        let begin =
            Begin { inspector: Arc::clone(&inspector), executor, memory, config: self.config, peer_set };
        let driver = Driver::new(begin)?;
        let (orders, ordered) = mpsc::channel(QUEUED);
        if self.is_up {
            // There is room for this event and the next one: the channel is empty.
            orders.try_send(Event::Readmitted).ok();
        }
        if !self.shelf.has_joined(plan) {
            // The operator who invited this machine meant this machine; the operator who changed a plan meant many
            // machines.
            let is_meant = self.is_invited || !self.shelf.has_held();
            let order = if is_meant { Event::Ordered } else { Event::Planned };
            orders.try_send(order).ok();
        }
        let (said_in, said) = mpsc::channel(QUEUED);
        let task = tokio::spawn(driver.run(ordered, move |_, said: &Said| {
            // A slow receiver does not delay the driver; the state is sent again.
            said_in.try_send(said.clone()).ok();
            ControlFlow::<()>::Continue(())
        }));
        let (announced, listening) = provider::listen(self.setup.root.clone(), self.setup.metadata.clone());
        let _listening = AbortOnDrop(listening);
        Ok(Life { inspector, orders, said, task: AbortOnDrop(task), announced, _listening })
    }

    /// Drives the join of this plan until another plan comes.
    pub(super) async fn live(
        &mut self,
        plan: &Plan,
        tell: &mut impl FnMut(Time, LogEvent<'_>),
    ) -> Result<Plan, AgentError> {
        let mut life = self.begin(plan)?;
        loop {
            tokio::select! {
                heard = self.heard.recv() => {
                    let Some(heard) = heard else { return Err(self.link_ended().await) };
                    tell(crate::driver::now(), LogEvent::Link(&heard));
                    self.notes(&heard);
                    match heard {
                        Heard::Plan(next) if next.checksum != plan.checksum => return Ok(*next),
                        // The current plan, or a message that changes nothing here.
                        Heard::Plan(_) | Heard::Wait(_) => {}
                        Heard::Peers(peers) => {
                            self.peer_set.know(&peers);
                            // A busy driver gets it with the next list, or at its next start.
                            life.orders.try_send(Event::PeersListed(self.peer_set.peers())).ok();
                        }
                        Heard::Down(_) => self.planner.link_ended(),
                        Heard::Token(token) => drop(self.token_in.send_replace(Some(token))),
                        Heard::Order(order) => self.planner.take_order(order, Some(&life)),
                        Heard::Removed => life.inspector.is_removed(),
                        Heard::Up { .. } => {
                            life.inspector.is_let_in();
                            // A busy driver gets it with the next session.
                            life.orders.try_send(Event::Readmitted).ok();
                            self.planner.tell_all();
                        }
                    }
                }
                said = life.said.recv() => {
                    let Some(said) = said else { return Ok(plan.clone()) };
                    tell(crate::driver::now(), LogEvent::Machine(&said));
                    if matches!(said, Said::Report(Report::Back)) {
                        self.shelf.mark_joined(plan)?;
                        self.is_invited = false;
                    }
                    if let Said::Found(found) = &said
                        && life.inspector.is_outdated(&found.inspection)
                    {
                        life.orders.try_send(Event::Readmitted).ok();
                    }
                    if let Said::Account(account) = &said {
                        let account = of_account(account, life.inspector.kubelet_runs());
                        let announced = life.announced.borrow().clone();
                        self.planner.account = Some(Account { announced, ..account });
                        self.planner.tell_all();
                    }
                    self.planner.hear(&said, tell);
                }
                Ok(()) = life.announced.changed() => {
                    if let Some(account) = &mut self.planner.account {
                        account.announced = life.announced.borrow_and_update().clone();
                        self.planner.tell_all();
                    }
                }
                _ = &mut life.task.0 => return Ok(plan.clone()),
            }
        }
    }
}

/// The account in the words of the protocol.
pub(super) fn of_account(account: &account::Account, kubelet: Option<bool>) -> Account {
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
    let blocker = account.blocker.as_ref().map(|blocker| frame::Blocker {
        kind: Word::cut(blocker.kind.name()),
        text: Sentence::cut(&blocker.text),
    });
    Account {
        kubelet: Word::cut(kubelet.name()),
        api: Word::cut(account.api.name()),
        work,
        blocker,
        may: List::first(account.may.iter().map(|ask| Word::cut(ask.name()))),
        announced: List::default(),
    }
}
