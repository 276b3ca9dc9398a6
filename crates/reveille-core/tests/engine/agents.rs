//! Agents on the machines: their reports protect a machine, the controller asks them before any other step, and their
//! reports are no proof.

use std::sync::Arc;

use reveille_core::effect::{Call, Effect, Outcome, ReadError, ReadErrorKind};
use reveille_core::event::{AgentFact, Event};
use reveille_core::model::agent::{
    AgentBlocker, AgentBlockerKind, ApiSaid, Ask, KubeletSaid, StageError, StageSaid, Who, Work,
};
use reveille_core::model::agent_report::AgentReport;
use reveille_core::model::incident::{FaultKind, MachineKey};
use reveille_core::model::instance::InstanceState;
use reveille_core::model::node::{Provider, Ready};
use reveille_core::model::roster::Mode;
use reveille_core::model::stage::Stage;
use reveille_core::model::time::Span;
use reveille_core::record::{Record, Verdict};
use reveille_core::remedies::AskAgent;

use super::fixture::{CLOUD, Field, roster};
use super::restart::{restarted, restarted_with};
use super::steps::{made, min, set};

const OLD: &str = "i004";

/// A fleet of ten, of which these have agents.
fn fleet(agents: &[&str]) -> Field {
    let mut field = Field::new(roster()).populate(10).with_agents(agents);
    field.run(Span::from_min(5));
    field
}

fn asks(field: &Field) -> Vec<Ask> {
    let ask = |call: &Call| match call {
        Call::AskAgent(AskAgent { ask, .. }) => Some(*ask),
        _ => None,
    };
    field.calls.iter().filter_map(ask).collect()
}

fn machine(id: &str) -> MachineKey {
    MachineKey::Instance(CLOUD.into(), id.into())
}

fn other_calls(field: &Field) -> usize {
    field.calls.len() - asks(field).len()
}

fn blocker(kind: AgentBlockerKind) -> Option<AgentBlocker> {
    Some(AgentBlocker { kind, text: "by its own reasons".into() })
}

#[test]
fn deleted_node_returns_by_agent_request_without_cloud_call() {
    let mut field = fleet(&[OLD]);
    field.nodes.remove(OLD);
    field.run(Span::from_min(30));
    assert_eq!(asks(&field), [Ask::RestartKubelet]);
    assert_eq!(other_calls(&field), 0, "{:?}", field.calls);
    assert!(field.case(OLD, FaultKind::Vanished).is_none(), "it is back, and has stayed");
    let closed: Vec<Verdict> = field.state.closed().map(|closed| closed.verdict).collect();
    assert_eq!(closed, [Verdict::Mended]);
}

#[test]
fn an_intent_stands_in_the_ledger_before_an_agent_is_asked() {
    let mut field = fleet(&[OLD]);
    field.nodes.remove(OLD);
    field.run(Span::from_min(30));
    let intended = field.records.iter().filter(|record| matches!(record, Record::Intended { .. })).count();
    assert_eq!(intended, 1, "and the invariants see that it came first");
}

#[test]
fn agent_that_restores_no_node_is_asked_later_then_no_more() {
    let mut field = fleet(&[OLD]);
    field.nodes.remove(OLD);
    field.answers_ask.1 = false;
    field.run(Span::from_min(120));
    let [first, rest @ ..] = &asks(&field)[..] else { panic!("it was not asked") };
    assert_eq!(*first, Ask::RestartKubelet);
    assert_eq!(rest, [Ask::Rejoin; 3], "then the agent chooses what it takes");
    assert_eq!(other_calls(&field), 0, "it lives, so it is not hurt: {:?}", field.calls);
    assert!(field.held(OLD, FaultKind::Vanished).contains("its agent reported"));
}

/// A server in ERROR whose system runs: Nova says nothing of that, and its agent comes back a while after the controller's
/// restart. The controller does not delete the machine in between. A machine without an agent is deleted a minute later
/// than without the wait.
#[test]
fn agent_has_its_whole_time_to_come_back_after_a_restart() {
    for comes_back in [true, false] {
        let mut field = fleet(&[OLD, "i005"]);
        field.nodes.get_mut(OLD).unwrap().ready = Ready::Unknown;
        field.instances.get_mut(OLD).unwrap().state = InstanceState::Errored;
        field.run(Span::from_min(15));
        assert!(field.held(OLD, FaultKind::Errored).contains("its agent reported"));
        let mut others = std::mem::take(&mut field.agents);
        let mut agent = others.remove(OLD);
        let mut at_once = roster();
        at_once.timing.settle = Span::ZERO;
        let mut field = restarted_with(at_once, field);
        field.agents = others;
        field.run(Span::from_s(80));
        assert_eq!(field.calls, [], "an agent is heard 80 s after the restart");
        if let Some(agent) = agent.take().filter(|_| comes_back) {
            field.agents.insert(OLD.to_owned(), agent);
        }
        field.run(Span::from_min(20));
        assert_eq!(field.calls.is_empty(), comes_back, "{:?}", field.calls);
    }
}

#[test]
fn machine_with_silent_agent_is_repaired_like_agentless_machine() {
    let calls = |agents: &[&str]| {
        let mut field = fleet(agents);
        field.agents.clear();
        field.nodes.remove(OLD);
        field.run(Span::from_min(60));
        assert!(asks(&field).is_empty(), "{:?}", field.calls);
        field.calls
    };
    let without = calls(&[]);
    assert!(!without.is_empty(), "there is something to compare");
    assert_eq!(calls(&[OLD]), without);
}

#[test]
fn machine_held_by_its_agent_is_neither_rejoined_nor_deleted() {
    for kind in AgentBlockerKind::ALL {
        let mut field = fleet(&[OLD]);
        field.agents.get_mut(OLD).unwrap().blocker = blocker(kind);
        field.nodes.remove(OLD);
        field.run(Span::from_min(90));
        assert!(field.calls.is_empty(), "{kind:?}: {:?}", field.calls);
    }
}

/// The word stands until it is taken back, also when the machine is silent since, and over a restart of ours.
#[test]
fn leaving_machine_is_left_alone_after_its_agent_falls_silent() {
    let mut field = fleet(&[OLD]);
    field.agents.get_mut(OLD).unwrap().blocker = blocker(AgentBlockerKind::Leaving);
    field.nodes.remove(OLD);
    field.run(Span::from_min(3));
    field.agents.clear();
    let mut field = restarted(field);
    field.run(Span::from_min(90));
    assert!(field.calls.is_empty(), "{:?}", field.calls);
    assert!(field.held(OLD, FaultKind::Vanished).contains("reports decommissioning"));
}

#[test]
fn an_agent_that_refuses_is_believed() {
    let mut field = fleet(&[OLD]);
    field.answers_ask = (Outcome::Refused { text: "the server says that it was removed".into() }, false);
    field.nodes.remove(OLD);
    field.run(Span::from_min(90));
    assert_eq!(asks(&field).len(), 1);
    assert_eq!(other_calls(&field), 0, "{:?}", field.calls);
}

#[test]
fn one_that_is_at_it_by_itself_is_let_finish() {
    let mut field = fleet(&[OLD]);
    field.agents.get_mut(OLD).unwrap().work =
        Some(Work { what: "a kubelet restart".into(), attempt: 1, of: 5 });
    field.nodes.remove(OLD);
    field.run(Span::from_min(20));
    assert!(field.calls.is_empty(), "{:?}", field.calls);
    assert!(field.held(OLD, FaultKind::Vanished).contains("attempt 1 of 5"));
}

#[test]
fn a_name_alone_permits_nothing_and_protects_all_the_same() {
    let mut field = fleet(&[]);
    field.nodes.remove(OLD);
    let named = Who { node: Some(format!("node-{OLD}").as_str().into()), ..Who::default() };
    field = field.with_agents(&[OLD]);
    field.agents.get_mut(OLD).unwrap().who = named;
    field.run(Span::from_min(60));
    assert!(field.calls.is_empty(), "{:?}", field.calls);
    assert!(field.held(OLD, FaultKind::Vanished).contains("known by name only"));
}

/// A machine that knows no instance is called as one of another machine, and says what would stop its repair.
#[test]
fn agent_sharing_only_the_node_name_is_ignored() {
    let run = |liar: bool| {
        let mut field = fleet(&[OLD]);
        if liar {
            field = field.with_agents(&["liar"]);
            let lies = field.agents.get_mut("liar").unwrap();
            lies.who = Who { node: Some(format!("node-{OLD}").as_str().into()), ..Who::default() };
            lies.blocker = blocker(AgentBlockerKind::Leaving);
        }
        field.run(Span::from_min(2));
        field.nodes.remove(OLD);
        field.run(Span::from_min(30));
        (asks(&field), field.case(OLD, FaultKind::Vanished).is_none())
    };
    let (honest, lied) = (run(false), run(true));
    assert_eq!(honest, (vec![Ask::RestartKubelet], true));
    assert_eq!(lied, honest, "what it says changes nothing");
}

#[test]
fn a_node_that_comes_back_for_another_machine_is_no_success() {
    let mut field = fleet(&[OLD]);
    field.answers_ask.1 = false;
    let mut foreign = field.nodes.remove(OLD).unwrap();
    foreign.provider = Provider::Instance("another-name".into());
    foreign.uid = "another".into();
    field.run(Span::from_min(2));
    field.nodes.insert("foreign".into(), foreign);
    field.run(Span::from_min(30));
    let held = field.records.iter().any(|record| matches!(record, Record::Judged { held: true, .. }));
    assert!(!held, "it was read back as another machine's");
}

/// The API server is gone for the machines and not for us, as when it listens on two networks. Without agents their nodes
/// would be dead for all that we see.
#[test]
fn agents_without_api_server_turn_dead_nodes_into_an_outage() {
    let run = |agents: bool| {
        let mut field = fleet(&[]);
        // Four of ten have agents; the one that dies has none.
        let names = ["i000", "i001", "i002", "i003"];
        if agents {
            field = field.with_agents(&names);
            field.agents.values_mut().for_each(|report| report.api = ApiSaid::LostByAll);
        }
        field.nodes.get_mut("i009").unwrap().ready = Ready::Unknown;
        field.run(Span::from_min(60));
        field
    };
    assert!(run(false).destructive_calls() > 0, "there is something to hold back");
    let field = run(true);
    assert_eq!(field.calls.len(), 0, "{:?}", field.calls);
    assert!(field.held("i009", FaultKind::NotReady).contains("Check the control plane"));
}

#[test]
fn roster_with_rejoin_off_asks_no_agent() {
    let mut roster = roster();
    roster.pools.values_mut().for_each(|pool| pool.repair.rejoin = Mode::Off);
    let mut field = Field::new(roster).populate(10).with_agents(&[OLD]);
    field.run(Span::from_min(5));
    field.nodes.remove(OLD);
    field.run(Span::from_min(60));
    assert!(field.calls.is_empty(), "and one that is heard is not hurt: {:?}", field.calls);
}

#[test]
fn never_joined_machine_is_asked_to_join_not_to_restart() {
    let mut field = fleet(&[]);
    field.add_machine("new", false);
    field = field.with_agents(&["new"]);
    field.run(Span::from_min(60));
    assert_eq!(asks(&field), [Ask::Rejoin]);
    assert_eq!(other_calls(&field), 0, "{:?}", field.calls);
}

#[test]
fn a_restart_between_the_ask_and_its_answer_asks_no_second_time() {
    let mut field = fleet(&[OLD]);
    field.answers_ask = (Outcome::Accepted { request: None }, false);
    field.nodes.remove(OLD);
    while asks(&field).is_empty() {
        field.run(Span::from_s(10));
    }
    // The answer never reached the ledger, and the Node comes back while no process is looking.
    field.records.retain(|record| !matches!(record, Record::Ended { .. } | Record::Judged { .. }));
    field.nodes.insert(OLD.into(), super::fixture::node(OLD, Ready::True));
    field.calls.clear();
    let mut field = restarted(field);
    field.run(Span::from_min(30));
    assert!(field.calls.is_empty(), "{:?}", field.calls);
    let mended = |record: &Record| matches!(record, Record::Closed { verdict: Verdict::Mended, .. });
    assert!(field.records.iter().any(mended), "and its effect is read back");
}

#[test]
fn join_trace_of_both_sides_survives_restart_and_checkpoint() {
    let mut field = fleet(&[]);
    field.add_machine("new", false);
    field = field.with_agents(&["new"]);
    let error = Some(StageError::new("TOKEN_EXPIRED", "valid until noon"));
    field.agents.get_mut("new").unwrap().stages = vec![
        StageSaid { stage: Stage::Trust, passed: true, attempts: 1, error: None },
        StageSaid { stage: Stage::Authenticate, passed: false, attempts: 3, error },
    ];
    field.run(Span::from_min(3));
    let trace = |field: &Field| field.state.trace(&machine("new")).cloned();
    let before = trace(&field).expect("it is traced");
    assert_eq!(before.said.len(), 2);
    assert_eq!(before.seen.last().map(|row| row.stage), Some(Stage::OsBoot));
    let checkpoint = field.state.checkpoint();
    let mut again = restarted(field);
    assert_eq!(trace(&again), Some(before.clone()), "as the ledger has it");
    again.records = checkpoint;
    assert_eq!(trace(&restarted(again)), Some(before), "as a rotated ledger has it");
}

#[test]
fn healthy_fleet_with_agents_writes_no_ledger_record() {
    let mut field = fleet(&["i001", "i002", OLD]);
    let before = field.records.len();
    field.run(Span::from_min(60));
    assert_eq!(field.records.len(), before, "{:?}", &field.records[before..]);
}

/// A session begins before its first heartbeat: what the machine does and holds is not said yet.
fn arrival(life: &str) -> Arc<AgentReport> {
    Arc::new(AgentReport {
        life: life.into(),
        number: 1,
        unsaid: true,
        kubelet: KubeletSaid::CannotTell,
        api: ApiSaid::CannotTell,
        may: Default::default(),
        ..Field::report(OLD)
    })
}

#[test]
fn leaving_machine_with_new_agent_session_is_left_alone() {
    for restarts in [false, true] {
        let mut field = fleet(&[OLD]);
        field.agents.get_mut(OLD).unwrap().blocker = blocker(AgentBlockerKind::Leaving);
        field.nodes.remove(OLD);
        field.run(Span::from_min(3));
        field.agents.clear();
        if restarts {
            field = restarted(field);
        }
        let agent = format!("agent-{OLD}").as_str().into();
        field.feed(Event::Agent(AgentFact::Said { agent, report: arrival("two") }));
        // And then it is powered off.
        field.run(Span::from_min(90));
        assert!(field.calls.is_empty(), "restarts {restarts}: {:?}", field.calls);
    }
}

#[test]
fn what_an_agent_holds_is_taken_back_by_its_word() {
    let mut field = fleet(&[OLD]);
    field.agents.get_mut(OLD).unwrap().blocker = blocker(AgentBlockerKind::Leaving);
    field.nodes.remove(OLD);
    field.run(Span::from_min(3));
    let agent = format!("agent-{OLD}").as_str().into();
    field.feed(Event::Agent(AgentFact::Said { agent, report: arrival("two") }));
    field.agents.get_mut(OLD).unwrap().blocker = None;
    field.agents.get_mut(OLD).unwrap().life = "two".into();
    field.run(Span::from_min(30));
    assert_eq!(asks(&field), [Ask::RestartKubelet]);
}

/// Its agent was asked to bring its Node back, in vain, and is silent since.
#[test]
fn machine_of_unhelpful_silent_agent_is_soft_rebooted_first() {
    for asked in [false, true] {
        let mut field = Field::new(roster()).populate(10).with_agents(&["i004"]);
        field.answers_ask = (Outcome::Accepted { request: None }, false);
        field.run(Span::from_min(5));
        field.nodes.get_mut("i004").unwrap().ready = Ready::Unknown;
        if asked {
            field.run(Span::from_min(12));
            assert!(!field.calls.is_empty());
        }
        field.agents.clear();
        field.run_until(Span::from_min(60), |field| field.destructive_calls() > 0);
        let first = field.calls.iter().find(|call| call.is_destructive()).map(Call::to_string);
        assert_eq!(first.as_deref(), Some("reboot instance i004"), "asked: {asked}");
    }
}

/// Its agent brought its Node back. Half an hour later the Node is silent again, and so is the agent.
#[test]
fn machine_that_its_agent_brought_back_is_rebooted_softly_first() {
    let mut field = Field::new(roster()).populate(10).with_agents(&["i004"]);
    field.run(Span::from_min(5));
    field.nodes.get_mut("i004").unwrap().ready = Ready::Unknown;
    field.run(Span::from_min(30));
    assert!(matches!(field.calls[..], [Call::AskAgent(_)]), "{:?}", field.calls);
    field.nodes.get_mut("i004").unwrap().ready = Ready::Unknown;
    field.agents.clear();
    field.run_until(Span::from_min(60), |field| field.destructive_calls() > 0);
    let first = field.calls.iter().find(|call| call.is_destructive()).map(Call::to_string);
    assert_eq!(first.as_deref(), Some("reboot instance i004"));
}
/// Two agents of a hundred machines have lost their way to the API server. What most of the fleet says of it there counts more,
/// as long as that is heard.
#[test]
fn two_agents_without_api_server_stop_no_healthy_fleet() {
    for (agents, renewing, stops) in
        [(0, 99, false), (2, 99, false), (2, 45, true), (19, 99, false), (20, 99, true)]
    {
        let ids: Vec<String> = (0..agents).map(|number| format!("i{number:03}")).collect();
        let ids: Vec<&str> = ids.iter().map(String::as_str).collect();
        let mut wanted = roster();
        wanted.limits.freeze_above_pct = 100;
        let mut field = Field::new(wanted).populate(100).with_agents(&ids);
        field.run(Span::from_min(5));
        field.agents.values_mut().for_each(|report| report.api = ApiSaid::LostByAll);
        field.silent = (renewing..99).map(|number| format!("node-i{number:03}")).collect();
        field.nodes.get_mut("i099").unwrap().ready = Ready::Unknown;
        field.run(Span::from_min(20));
        let held = field.held("i099", FaultKind::NotReady);
        assert_eq!(field.destructive_calls() == 0, stops, "{agents} agents, {renewing} renew: {held}");
        assert_eq!(held.contains("Check the control plane"), stops, "{agents}, {renewing}: {held}");
    }
}

/// The registration server stops hearing agents two milliseconds before this agent would have been silent. So the agent
/// does not count as silent while that lasts.
#[test]
fn unheard_agent_does_not_wake_controller_every_millisecond() {
    let mut field = fleet(&[OLD]);
    field.nodes.get_mut(OLD).unwrap().ready = Ready::Unknown;
    field.run(Span::from_min(2));
    let silent_after = field.state.context().roster.timing.agent_silent_after;
    let silent_at = field.now + silent_after;
    field.agents.clear();
    field.run(Span::from_s(80));
    field.now = silent_at - Span::from_ms(2);
    let (kind, text) = (ReadErrorKind::Unavailable, "the registration server is away".into());
    field.feed(Event::Agent(AgentFact::Deaf(ReadError { kind, text, retry_after: None })));
    let mut woken = 0;
    for _ in 0..1000 {
        field.now = field.now + Span::from_ms(1);
        let effects = field.step(Event::Tick);
        woken += effects.iter().filter(|effect| matches!(effect, Effect::WakeAt(_))).count();
        field.perform(effects);
    }
    assert!(woken <= 5, "{woken} within a second");
    // Heard again, it is silent when its whole time is over, and not before.
    field.feed(Event::Agent(AgentFact::Listening));
    field.run(Span::from_ms(silent_after.ms - 10_000));
    assert_eq!(other_calls(&field), 0);
    field.run(Span::from_min(30));
    assert!(other_calls(&field) > 0, "{}", field.held(OLD, FaultKind::NotReady));
}

/// An agent says that its machine is to go, and takes that back a minute later; the machine serves all the time. An hour later it
/// dies while we are restarted.
#[test]
fn withdrawn_agent_hold_is_void_after_restart() {
    for (says, restarts, rotated) in
        [(false, true, false), (true, false, false), (true, true, false), (true, true, true)]
    {
        let mut field = fleet(&[OLD]);
        if says {
            let blocker = AgentBlocker { kind: AgentBlockerKind::Leaving, text: "it is drained".into() };
            field.agents.get_mut(OLD).unwrap().blocker = Some(blocker);
            field.run(Span::from_min(1));
            if rotated {
                field.records = field.state.checkpoint();
            }
            field.agents.get_mut(OLD).unwrap().blocker = None;
        }
        field.run(Span::from_min(60));
        field.agents.clear();
        field.nodes.get_mut(OLD).unwrap().ready = Ready::Unknown;
        if restarts {
            field = field.restarted(roster());
        }
        field.run_until(Span::from_min(120), |field| !field.calls.is_empty());
        let held = || field.held(OLD, FaultKind::NotReady);
        assert!(!field.calls.is_empty(), "says: {says}, restarts: {restarts}, {rotated}: {}", held());
    }
}

/// It takes that back while it speaks to the process after a restart.
#[test]
fn agent_hold_withdrawn_after_restart_is_void_in_next_process() {
    let mut field = fleet(&[OLD]);
    let blocker = AgentBlocker { kind: AgentBlockerKind::Leaving, text: "it is drained".into() };
    field.agents.get_mut(OLD).unwrap().blocker = Some(blocker);
    field.run(Span::from_min(1));
    let mut agents = std::mem::take(&mut field.agents);
    agents.get_mut(OLD).unwrap().blocker = None;
    field = field.restarted(roster());
    field.agents = agents;
    field.run(Span::from_min(60));
    field.agents.clear();
    field.nodes.get_mut(OLD).unwrap().ready = Ready::Unknown;
    field = field.restarted(roster());
    field.run_until(Span::from_min(120), |field| !field.calls.is_empty());
    assert!(!field.calls.is_empty(), "{}", field.held(OLD, FaultKind::NotReady));
}

/// A machine whose agent is heard has a dead kubelet. We are restarted, and the registration server cannot listen: no agent is
/// heard, and that says nothing of the machine. In one process it holds for as long as that lasts.
#[test]
fn deaf_process_leaves_machine_with_heard_agent_alone() {
    let mut acted = Vec::new();
    for (restart, listens) in [(false, false), (true, false), (true, true)] {
        let mut field = Field::new(roster()).populate(10).with_agents(&["i004", "i005"]);
        field.run(min(5));
        field.agents.values_mut().for_each(|report| report.may = [].into());
        set(&mut field, "i004", Ready::Unknown);
        field.run(min(8));
        assert_eq!(field.calls, [], "its agent is heard");
        if restart {
            field = field.restarted(roster());
        }
        field.agents.clear();
        if listens {
            field.feed(Event::Agent(AgentFact::Listening));
            field.run(Span::from_s(20));
        }
        let (kind, text) = (ReadErrorKind::Unavailable, "the server stands still".into());
        field.feed(Event::Agent(AgentFact::Deaf(ReadError { kind, text, retry_after: None })));
        field.run(min(60));
        if !field.calls.is_empty() {
            acted.push((restart, listens, made(&field)));
        }
    }
    assert_eq!(acted, []);
}
