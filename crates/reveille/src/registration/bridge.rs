//! Connects the engines and the agents: reports of agents become facts for the engine, and its requests become orders.
//!
//! ```text
//!  Heard ─▶ log, and Book's way of the machine ─▶ AgentReport, a whole one each time ─▶ AgentReports of its roster
//!  Asking ─▶ Event::Order ─▶ the machine ─▶ done, declined, unanswered ─▶ Answered
//! ```
//!
//! A report consists of the registry's record of the machine and the agent's last account of itself, so the next report
//! replaces one that was lost. What an agent has not said is left unknown. A request counts as accepted when the machine
//! answered, or when its session is still open after a while without an answer; a later read shows whether it helped. The
//! bridge waits for no engine: an engine that takes no facts would keep the machines of all rosters from their engines.

use std::collections::BTreeMap;
use std::sync::{Arc, Mutex, PoisonError};
use std::time::{Duration, Instant};

use reveille_core::model::agent::{
    AgentBlocker, AgentBlockerKind, ApiSaid, Ask, KubeletSaid, StageError, StageSaid, Who, Work,
};
use reveille_core::model::agent_report::AgentReport;
use reveille_core::model::cause::Cause;
use reveille_core::model::evidence::{Line, Source};
use reveille_core::model::id::{AgentId, InstanceId, NodeName, RosterName};
use reveille_core::model::incident::Confidence;
use reveille_core::model::log_findings::{LogFinding, Quote};
use reveille_core::model::time::Span;
use reveille_registrar::registry::{Event, Heard, Machine, MachineId, NoAnswer, OrderId, What};
use reveille_registrar::server::Hand;
use reveille_wire::agent::Verb;
use reveille_wire::agent::frame::{Account, Done, Ended};
use tokio::sync::{mpsc, oneshot};
use tokio::time::timeout;

use super::evidence::{Ending, Gathering};
use crate::adapters::agents::{AgentReports, Answered, Asking};
use crate::driver::clock;
use crate::otlp::Exporter;

/// The number of an engine's order consists of the index of its roster, from 1, and the number of the intent. The
/// registry's own order numbers start with its clock, and are higher than any of these.
const ROSTER_BITS: u32 = 48;
/// The agent may take this long; a later read shows whether it helped.
const ORDER_WITHIN: Span = Span::from_min(15);
/// A request without an answer of the machine counts as accepted after this, while its session is open. The time is
/// shorter than the engine waits.
const TAKEN_AFTER: Duration = Duration::from_secs(15);

/// The bridge's channels to one roster.
pub(crate) struct Engine {
    /// The channel for its facts.
    pub(crate) reports: AgentReports,
    /// The requests of its engine.
    pub(crate) asks: mpsc::Receiver<Asking>,
}

/// Orders whose answer a requester still waits for.
#[derive(Clone, Default)]
struct Pending(Arc<Mutex<BTreeMap<OrderId, oneshot::Sender<Answered>>>>);

impl Pending {
    fn expect(&self, id: OrderId) -> oneshot::Receiver<Answered> {
        let (sender, receiver) = oneshot::channel();
        self.0.lock().unwrap_or_else(PoisonError::into_inner).insert(id, sender);
        receiver
    }

    /// Ends one order; `None`: the result is unknown.
    fn end(&self, id: OrderId, answered: Option<Answered>) {
        let waits = self.0.lock().unwrap_or_else(PoisonError::into_inner).remove(&id);
        if let (Some(waits), Some(answered)) = (waits, answered) {
            // The requester may have given up.
            drop(waits.send(answered));
        }
    }
}

/// Passes data in both directions until the registry has ended.
pub(super) async fn carry(
    hand: Hand,
    mut heard: mpsc::Receiver<Heard>,
    engines: BTreeMap<RosterName, Engine>,
    exporter: Option<Exporter>,
    endings: mpsc::Sender<Ending>,
) {
    let pending = Pending::default();
    let mut reports = BTreeMap::new();
    for (index, (roster, engine)) in (1..).zip(engines) {
        engine.reports.listening();
        reports.insert(roster, engine.reports);
        tokio::spawn(pass_on(hand.clone(), index, engine.asks, pending.clone()));
    }
    let mut number = 0;
    let mut gathering = Gathering::default();
    let of_engine = reports.len() as u64;
    let by_a_person = |id: &OrderId| is_of_a_person(*id, of_engine);
    let mut accounts = BTreeMap::new();
    while let Some(told) = heard.recv().await {
        super::log(&told);
        keep_account(&mut accounts, &told);
        match &told.what {
            What::Evidence(id, part) => gathering.take(Instant::now(), *id, part),
            What::Answered(id, done) if by_a_person(id) => {
                let ending = gathering.done(clock::wall(), *id, &told.who, done);
                keep_ending(&endings, ending);
            }
            What::Unanswered(id, why) if by_a_person(id) => {
                let ending = gathering.unanswered(clock::wall(), *id, &told.who, why.why());
                keep_ending(&endings, ending);
            }
            What::JoinOver(over) => {
                if let Some(exporter) = &exporter {
                    exporter.offer(&told.who, over);
                }
            }
            What::Answered(id, done) => pending.end(*id, Some(answered(done))),
            What::Unanswered(id, why) => {
                // For an order that was sent and not answered it is unknown whether the agent carried it out.
                let not_asked = match why {
                    NoAnswer::NotGiven(why) => Some(Answered::NotAsked(Arc::from(*why))),
                    NoAnswer::Unknown(_) => None,
                };
                pending.end(*id, not_asked);
            }
            _ => {}
        }
        if let Some(reports) = reports.get(&told.who.roster) {
            number += 1;
            let kept = accounts.get(&told.who.machine).cloned().unwrap_or_default();
            tell(&hand, reports, &told, number, kept).await;
        }
    }
}

/// True when the registry drew the number, and it is not computed from an intent of one of this many rosters.
const fn is_of_a_person(id: OrderId, rosters: u64) -> bool {
    id.0 >> ROSTER_BITS > rosters
}

fn keep_ending(endings: &mpsc::Sender<Ending>, ending: Ending) {
    if endings.try_send(ending).is_err() {
        tracing::warn!("the disk does not keep up: what a machine was asked to send is lost");
    }
}

/// The last account of an agent, and whether it came in this session.
#[derive(Clone, Debug, Default)]
struct Kept {
    account: Account,
    said: bool,
}

/// A new session changes no decision: a machine that is leaving counts as leaving until its agent says otherwise.
fn keep_account(accounts: &mut BTreeMap<MachineId, Kept>, told: &Heard) {
    match &told.what {
        What::Alive { account: Some(account), .. } => {
            let kept = Kept { account: Account::clone(account), said: true };
            accounts.insert(told.who.machine.clone(), kept);
        }
        What::Arrived { .. } | What::Left => {
            if let Some(kept) = accounts.get_mut(&told.who.machine) {
                let blocker = kept.account.blocker.take();
                *kept = Kept { account: Account { blocker, ..Account::default() }, said: false };
            }
        }
        What::Forgotten => drop(accounts.remove(&told.who.machine)),
        _ => {}
    }
}

fn answered(done: &Done) -> Answered {
    match done.outcome {
        Ended::AlreadySo => Answered::AlreadySo(Arc::from(done.tail.as_str())),
        // An order that was tried and failed was accepted too; a later read shows its effect.
        Ended::Done | Ended::Failed => Answered::Taken,
        Ended::Declined => Answered::Holds(Arc::from(done.tail.as_str())),
    }
}

/// Passes on the requests of one roster as orders. The agent decides whether it runs several at once.
async fn pass_on(hand: Hand, roster: u64, mut asks: mpsc::Receiver<Asking>, pending: Pending) {
    while let Some(asking) = asks.recv().await {
        let machine = MachineId::new(asking.agent.as_str());
        // The same intent is the same order, also after a restart: an agent ignores an order that it has had.
        let id = OrderId((roster << ROSTER_BITS) | (asking.intent.0 & ((1 << ROSTER_BITS) - 1)));
        if let Err(why) = fits(&hand, &machine, asking.instance.clone()).await {
            drop(asking.answer.send(Answered::NotAsked(Arc::from(why))));
            continue;
        }
        let verb = match asking.ask {
            Ask::RestartKubelet => Verb::RestartKubelet,
            Ask::Rejoin => Verb::Join,
        };
        let ended = pending.expect(id);
        let order = Event::Order { id, machine: machine.clone(), verb, within: ORDER_WITHIN };
        if hand.say(order).await.is_err() {
            return;
        }
        let (hand, pending) = (hand.clone(), pending.clone());
        tokio::spawn(async move {
            let answer = match timeout(TAKEN_AFTER, ended).await {
                Ok(answer) => answer.ok(),
                Err(_) => {
                    let stands = hand.view(move |registry, _| registry.session_of(&machine).is_some()).await;
                    (stands == Ok(true)).then_some(Answered::Taken)
                }
            };
            pending.end(id, None);
            // A drop of the channel says that the result is unknown.
            if let Some(answer) = answer {
                drop(asking.answer.send(answer));
            }
        });
    }
}

/// Checks that the agent is on the right machine, by one of the machine's ids: its name does not prove where it is.
async fn fits(hand: &Hand, machine: &MachineId, instance: InstanceId) -> Result<(), &'static str> {
    let machine = machine.clone();
    let looked = hand.view(move |registry, _| {
        let known = registry.index().machine(&machine).ok_or("no such agent is known")?;
        if known.is_on(instance.as_str()) { Ok(()) } else { Err("the agent is on another machine") }
    });
    looked.await.unwrap_or(Err("the registration server ends"))
}

async fn tell(hand: &Hand, reports: &AgentReports, told: &Heard, number: u64, kept: Kept) {
    let agent = AgentId::from(told.who.machine.as_str());
    match told.what {
        What::Arrived { .. } | What::Staged(_) | What::Alive { .. } | What::Stepped(_) => {
            let machine = told.who.machine.clone();
            let found = hand.view(move |registry, _| {
                let session = registry.session_of(&machine)?;
                Some(report(registry.index().machine(&machine)?, session, number, &kept))
            });
            if let Ok(Some(report)) = found.await {
                reports.said(agent, report);
            }
        }
        What::Left => {
            reports.parted(agent, Arc::from("its connection ended"));
        }
        _ => {}
    }
}

/// All that is known about a machine, as a report of its agent.
fn report(machine: &Machine, session: u64, number: u64, kept: &Kept) -> AgentReport {
    let account = &kept.account;
    let id = |word: &Option<reveille_wire::agent::Word>| {
        word.as_ref().map(|word| InstanceId::from(&*word.to_ascii_lowercase()))
    };
    let stages =
        machine.trace.legs().filter(|(_, leg)| leg.entered.is_some()).map(|(stage, leg)| StageSaid {
            stage,
            passed: leg.left.is_some(),
            attempts: leg.attempts,
            error: leg
                .agent_says
                .as_ref()
                .or(leg.server_says.as_ref())
                .map(|said| StageError::new(said.code.as_str(), &said.text)),
        });
    AgentReport {
        who: Who {
            instance: id(&machine.identity.instance_id),
            system_uuid: id(&machine.identity.system_uuid),
            node: Some(NodeName::from(machine.node_name.as_str())),
            boot: Some(machine.identity.boot_id.shared()),
        },
        life: Arc::from(session.to_string()),
        number,
        stages: stages.collect(),
        told: announced(account),
        unsaid: !kept.said,
        kubelet: named(KubeletSaid::ALL, KubeletSaid::name, &account.kubelet)
            .unwrap_or(KubeletSaid::CannotTell),
        api: named(ApiSaid::ALL, ApiSaid::name, &account.api).unwrap_or(ApiSaid::CannotTell),
        work: account.work.as_ref().map(|work| Work {
            what: work.what.shared(),
            attempt: work.attempt,
            of: work.of,
        }),
        blocker: account.blocker.as_ref().map(|blocker| AgentBlocker {
            kind: named(AgentBlockerKind::ALL, AgentBlockerKind::name, &blocker.kind)
                .unwrap_or(AgentBlockerKind::Other),
            text: blocker.text.shared(),
        }),
        may: account.may.iter().filter_map(|word| named(Ask::ALL, Ask::name, word)).collect(),
    }
}

/// The maintenance that the cloud announced to the machine, as one cause with a line for each announcement.
fn announced(account: &Account) -> Vec<LogFinding> {
    let quote = |text: &reveille_wire::agent::text::Sentence| {
        let sign = text.split(':').next().unwrap_or_default();
        Quote {
            source: Source::Provider,
            text: Arc::from(text.as_str()),
            line: Line { number: 0, times: 1, sign: sign.into() },
        }
    };
    let proof: Vec<Quote> = account.announced.iter().map(quote).collect();
    if proof.is_empty() {
        return Vec::new();
    }
    vec![LogFinding {
        cause: Cause::Announced,
        stage: Cause::Announced.stage(),
        confidence: Confidence::Sure,
        unanswered: false,
        no_lease: false,
        proof,
        against: Vec::new(),
        follows: Vec::new(),
    }]
}

/// The value with this name; `None` for a word of a newer agent.
fn named<T: Copy, const N: usize>(all: [T; N], name: fn(T) -> &'static str, word: &str) -> Option<T> {
    all.into_iter().find(|one| name(*one) == word)
}

#[cfg(test)]
mod tests {
    use reveille_wire::agent::text::List;
    use reveille_wire::agent::{Identity, frame};

    use super::*;

    #[test]
    fn what_an_agent_says_of_an_order_is_what_the_engine_hears() {
        let done = |outcome, tail: &str| Done { id: 1, outcome, tail: tail.into() };
        assert_eq!(answered(&done(Ended::Done, "")), Answered::Taken);
        assert_eq!(
            answered(&done(Ended::Failed, "exit 1")),
            Answered::Taken,
            "it was tried; what came of it is read"
        );
        let declined = answered(&done(Ended::Declined, "its node is Ready"));
        assert_eq!(declined, Answered::Holds(Arc::from("its node is Ready")));
    }

    #[test]
    fn a_new_session_takes_back_nothing_that_an_agent_holds() {
        let who = Arc::new(reveille_registrar::registry::Who {
            machine: MachineId::new("m-1"),
            roster: "prod".into(),
            node_name: "w-1".into(),
            identity: Identity::default(),
        });
        let mut accounts = BTreeMap::new();
        let mut hear = |what| keep_account(&mut accounts, &Heard { who: who.clone(), what });
        let blocker = Some(frame::Blocker { kind: "leaving".into(), text: "drained".into() });
        let account = Account { kubelet: "runs".into(), blocker: blocker.clone(), ..Account::default() };
        hear(What::Alive { stage: None, joined: true, account: Some(Box::new(account)) });
        hear(What::Left);
        hear(What::Arrived { session: 2, joined: true });
        hear(What::Alive { stage: None, joined: true, account: None });
        let kept = accounts[&who.machine].clone();
        assert_eq!((kept.account, kept.said), (Account { blocker, ..Account::default() }, false));
    }

    #[test]
    fn provider_announcements_reach_the_engine_as_one_cause() {
        assert_eq!(announced(&Account::default()), []);
        let sentences = ["rebalance: recommended at 08:22", "reboot: scheduled"].map(Into::into);
        let account = Account { announced: List::first(sentences), ..Account::default() };
        let told = announced(&account);
        let signs: Vec<&str> = told[0].proof.iter().map(|quote| &*quote.line.sign).collect();
        assert_eq!((told.len(), &told[0].cause, signs), (1, &Cause::Announced, vec!["rebalance", "reboot"]));
    }

    #[tokio::test]
    async fn order_ends_once_and_an_unknown_order_has_no_end() {
        let pending = Pending::default();
        let (known, unknown) = (pending.expect(OrderId(1)), pending.expect(OrderId(2)));
        pending.end(OrderId(1), Some(Answered::Taken));
        pending.end(OrderId(1), Some(Answered::Holds(Arc::from("late"))));
        pending.end(OrderId(2), None);
        assert_eq!(known.await, Ok(Answered::Taken));
        assert!(unknown.await.is_err());
    }

    #[test]
    fn operator_order_differs_from_an_engine_order_by_its_number() {
        let drawn = u64::try_from(clock::wall().ms).unwrap() << 20;
        assert!(is_of_a_person(OrderId(drawn), 1000));
        assert!(!is_of_a_person(OrderId(1000 << ROSTER_BITS | 7), 1000));
    }
}
