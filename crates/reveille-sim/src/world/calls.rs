//! The effects of calls on the world, and the answers to them.
//!
//! A call takes effect at one moment and is answered at a later one; between them the engine may have died. Every
//! precondition that a call carries (a revision, a uid, a state) is held against the truth at the moment of effect, as
//! the real APIs do. A [`CallLie`] makes one call do nothing, or hides what it did.

use std::sync::Arc;

use reveille_core::effect::{Call, Outcome, ReadErrorKind};
use reveille_core::event::Event;
use reveille_core::model::id::{GroupId, InstanceId, IntentId, NodeName, NodeUid, PortId};
use reveille_core::model::instance::InstanceState;
use reveille_core::model::network::{Direction, Family, REPAIR_MARK, Remote, Route, RuleSpec};
use reveille_core::model::time::Span;
use reveille_core::remedies::{
    AddPortPairs, AddRoutes, AddRules, AskAgent, AssignRoles, DeleteInstance, DeleteNode, DropRule,
    NudgeGroup, NudgeRouter, Reboot, RemoveRoutes, SetPortGroups, StartInstance,
};

use super::fault::{CallLie, Refusal, Right};
use super::truth::Called;
use super::{Life, Task, World};

/// Who makes the engine's calls, as the cloud's log of actions names them.
pub(super) const OURSELVES: &str = "reveille";

fn refused(text: impl Into<String>) -> Outcome {
    Outcome::Refused { text: text.into().into() }
}

fn denied(text: &str) -> Outcome {
    Outcome::Denied { text: text.into() }
}

fn already(text: impl Into<String>) -> Outcome {
    Outcome::AlreadySo { text: text.into().into() }
}

fn moved(text: impl Into<String>) -> Outcome {
    Outcome::Moved { text: text.into().into() }
}

fn unanswered(text: &str) -> Outcome {
    Outcome::Unknown { text: text.into() }
}

impl World {
    pub(super) fn serve_call(&mut self, session: u64, intent: IntentId, call: Call) {
        if let Some(answer) = self.unreachable_for(&call) {
            self.called(session, intent, call, answer.clone(), answer);
            return;
        }
        match self.lies.calls.pop_front() {
            Some(CallLie::Late(late)) => self.plan(late, Task::Belated(session, intent, call)),
            Some(CallLie::Overtaken) if self.network_faults.held_back.is_none() => {
                self.network_faults.held_back = Some((session, intent, call));
            }
            lie => {
                let (outcome, answer) = self.do_or_lie(lie, &call);
                self.called(session, intent, call, outcome, answer);
                if let Some((session, intent, call)) = self.network_faults.held_back.take() {
                    self.plan(Span::from_s(1), Task::Belated(session, intent, call));
                }
            }
        }
    }

    fn called(&mut self, session: u64, intent: IntentId, call: Call, outcome: Outcome, answer: Outcome) {
        // Stop and start is one call of ours: the adapter waits until the instance is stopped.
        let stops = match &call {
            Call::Reboot(Reboot { instance, hard: true, .. }) => self.stops_for(instance),
            _ => Span::ZERO,
        };
        self.calls.push(Called { at: self.now, intent, call, outcome });
        let travel = self.soon(30, 900) + stops;
        self.reply(session, travel, Event::Done { intent, outcome: answer });
    }

    /// The other side cannot be reached at all: what it would have said does not matter.
    fn unreachable_for(&self, call: &Call) -> Option<Outcome> {
        let failed = |text: &str| Outcome::Failed { text: text.into(), retry_after: None };
        let cloud = call.cloud();
        let troubled = cloud.is_some_and(|cloud| self.layout.is_troubled(cloud));
        match (call, cloud.and_then(|cloud| self.failure_of(cloud))) {
            // It goes past the cloud and past the API server.
            (Call::AskAgent(_), _) => None,
            (Call::DeleteNode(_), _) if self.network_faults.refused == Some(Refusal::NodesKept) => {
                Some(refused("422: ValidatingAdmissionPolicy 'nodes-stay' denied request"))
            }
            (Call::DeleteNode(_), _) if self.network_faults.api_denied => Some(denied("401 Unauthorized")),
            (Call::DeleteNode(_), _) => self.lies.api_silent.then(|| failed("connection refused")),
            (Call::AssignRoles(_), _) if self.lies.roles_ungiven => {
                Some(denied("PUT /v3/projects: 403 Forbidden"))
            }
            (_, _) if self.network_faults.refused == Some(Refusal::Unavailable) => {
                Some(failed("503 Service Unavailable: the service is read-only"))
            }
            (Call::Reboot(_), _) if self.network_faults.forbidden == Some(Right::Reboot) => {
                Some(denied("403 Forbidden: Policy doesn't allow os_compute_api:servers:reboot"))
            }
            (_, _) if self.network_faults.forbidden == Some(Right::Every) => {
                Some(denied("403 Forbidden: rule:update is disallowed by policy"))
            }
            (_, None) if self.is_call_to_another_project(call) || troubled && self.lies.elsewhere => {
                // The adapter reads an instance before it acts on it, and finds none.
                Some(match call {
                    Call::Reboot(_) | Call::Start(_) => moved("there is no such instance by now"),
                    Call::DeleteInstance(_) => already("there is no such instance"),
                    _ => refused("404 Not Found: not in this project"),
                })
            }
            (_, Some(ReadErrorKind::Unauthorized)) => Some(denied("401 Unauthorized")),
            (_, Some(ReadErrorKind::Unavailable)) => Some(failed("503 Service Unavailable")),
            (_, Some(ReadErrorKind::TimedOut)) => Some(unanswered("no answer within 30 s")),
            _ => None,
        }
    }

    /// How the call went, and what is said of it.
    fn do_or_lie(&mut self, lie: Option<CallLie>, call: &Call) -> (Outcome, Outcome) {
        let accepted = Outcome::Accepted { request: Some(self.project.request()) };
        match lie {
            Some(CallLie::Ignored) => (accepted.clone(), accepted),
            Some(CallLie::Fails { retry_after }) => {
                let failed = Outcome::Failed { text: "429 Too Many Requests".into(), retry_after };
                (failed.clone(), failed)
            }
            Some(CallLie::TimesOut) => {
                let lost = unanswered("no answer within 30 s");
                (lost.clone(), lost)
            }
            Some(CallLie::Unanswered) => {
                (self.carry_out(call), unanswered("the connection was lost before the answer"))
            }
            Some(CallLie::FailsAndWorks) => {
                let failed = Outcome::Failed { text: "504 Gateway Timeout".into(), retry_after: None };
                (self.carry_out(call), failed)
            }
            Some(CallLie::Twice) => {
                self.plan(Span::from_s(30), Task::Again(call.clone()));
                let outcome = self.carry_out(call);
                (outcome.clone(), outcome)
            }
            Some(CallLie::Cut) if matches!(call, Call::NudgeGroup(_)) => {
                let outcome = self.carry_out(call);
                if let Call::NudgeGroup(NudgeGroup { mark, .. }) = call {
                    self.project.add_rules(&[harmless_rule()], mark);
                }
                (outcome, unanswered("the connection was lost between put and take"))
            }
            Some(CallLie::Cut) if matches!(call, Call::NudgeRouter(_)) => {
                let outcome = self.carry_out(call);
                if let Call::NudgeRouter(NudgeRouter { route, .. }) = call {
                    self.project.change_routes(|held| held.push(*route));
                }
                (outcome, unanswered("the connection was lost between put and take"))
            }
            Some(CallLie::Unmarked) => {
                if let Call::Reboot(Reboot { instance, .. })
                | Call::Start(StartInstance { instance, .. })
                | Call::DeleteInstance(DeleteInstance { instance, .. }) = call
                {
                    self.unmark(instance);
                }
                let outcome = self.carry_out(call);
                (outcome.clone(), outcome)
            }
            Some(CallLie::Rescued) => {
                if let Call::Reboot(Reboot { instance, .. })
                | Call::DeleteInstance(DeleteInstance { instance, .. }) = call
                {
                    self.rescue_first(instance);
                }
                let outcome = self.carry_out(call);
                (outcome.clone(), outcome)
            }
            _ => {
                let outcome = self.carry_out(call);
                (outcome.clone(), outcome)
            }
        }
    }

    /// A performer reads an instance directly before it touches it, and compares its marks with those that the call carries,
    /// and what it finds with what the deletion rests on.
    fn moved_meanwhile(&self, call: &Call) -> Option<Outcome> {
        let (_, id, owned) = call.owned()?;
        let found = &self.project.servers.get(id)?.instance;
        if let Some(mark) = owned.lacking(&found.marks) {
            return Some(moved(format!("the instance does not carry {mark}")));
        }
        let Call::DeleteInstance(DeleteInstance { rests_on: Some(state), .. }) = call else { return None };
        if found.state.is_leaving() {
            return None;
        }
        let reboots = *state == InstanceState::Rebooting && found.state == *state;
        let task = found.task.as_ref().filter(|_| found.state != InstanceState::Building && !reboots);
        let handled = found.locked || task.is_some() || found.state != *state;
        handled.then(|| moved(format!("it is {:?} by now, with task {task:?}", found.state)))
    }

    /// A call that something on the way held back. What was right when it was sent may not be any more: whatever harm that
    /// does is not the engine's.
    pub(super) fn carry_out_belated(&mut self, session: u64, intent: IntentId, call: Call) {
        let outcome = self.take_effect(&call);
        self.called(session, intent, call, outcome.clone(), outcome);
    }

    /// Something between us and the cloud makes a call once more. Whatever harm that does is not the engine's.
    pub(super) fn carry_out_again(&mut self, call: &Call) {
        self.take_effect(call);
    }

    fn carry_out(&mut self, call: &Call) -> Outcome {
        if let Some(outcome) = self.moved_meanwhile(call) {
            return outcome;
        }
        self.watch_for_harm(call);
        if let Call::Reboot(Reboot { instance, .. }) | Call::DeleteInstance(DeleteInstance { instance, .. }) =
            call
        {
            self.note_causes(instance);
        }
        if let Call::SetPortGroups(SetPortGroups { port, .. }) | Call::AddPortPairs(AddPortPairs { port, .. }) =
            call
            && let Some(owner) = self.project.ports.get(port).map(|(owner, _)| owner.clone())
        {
            self.note_causes(&owner);
        }
        let act = self.judge(call);
        let outcome = self.take_effect(call);
        self.note_act(act, &outcome);
        outcome
    }

    fn take_effect(&mut self, call: &Call) -> Outcome {
        match call {
            Call::AddRules(AddRules { group, rules, .. }) => {
                self.project.add_rules_to(group, rules, REPAIR_MARK);
                self.accepted()
            }
            Call::DropRule(DropRule { rule, .. }) => {
                self.project.drop_rules(|known| known.id == *rule);
                self.accepted()
            }
            Call::NudgeGroup(_) | Call::NudgeRouter(_) => {
                let after = self.soon(5_000, 20_000);
                self.plan(after, Task::Reachable);
                self.accepted()
            }
            Call::SetPortGroups(SetPortGroups { port, groups, if_revision, .. }) => {
                self.set_port_groups(port, groups, *if_revision)
            }
            Call::AddPortPairs(AddPortPairs { port, pairs, if_revision, .. }) => {
                match self.project.ports.get(port).map(|(_, port)| port.revision) {
                    None => refused(format!("404: no port {port}")),
                    Some(revision) if revision != *if_revision => {
                        moved("412: RevisionNumberConstraintFailed")
                    }
                    Some(_) => {
                        self.project.change_port(port, |port| {
                            let mut all: Vec<_> = port.pairs.iter().chain(pairs).copied().collect();
                            all.sort_unstable();
                            all.dedup();
                            port.pairs = all.into();
                        });
                        self.accepted()
                    }
                }
            }
            Call::RemoveRoutes(RemoveRoutes { cloud, routes, unless_used, .. }) => {
                // A performer asks Neutron for ports with these addresses directly before.
                if let Some(hop) = unless_used.iter().find(|hop| self.project.uses(cloud, hop)) {
                    return moved(format!("a port uses {hop}"));
                }
                self.project.change_routes(|held| held.retain(|route| !routes.contains(route)));
                self.accepted()
            }
            Call::AddRoutes(AddRoutes { routes, .. }) => self.add_routes(routes),
            Call::AssignRoles(AssignRoles { user, roles, .. }) => {
                roles.iter().for_each(|role| self.keystone.give(user, &role.name));
                self.accepted()
            }
            Call::AskAgent(AskAgent { instance, agent, ask, .. }) => self.ask_agent(instance, agent, *ask),
            Call::Reboot(Reboot { instance, hard, .. }) => self.reboot(instance, *hard),
            Call::Start(StartInstance { instance, .. }) => match self.state(instance) {
                Some(InstanceState::Stopped) => {
                    let request = self.project.note(self.now, instance, "start", OURSELVES);
                    let after = self.soon(3_000, 10_000);
                    self.plan(after, Task::Life(instance.clone(), Life::Started));
                    Outcome::Accepted { request: Some(request) }
                }
                // As with a reboot.
                Some(state) => moved(format!("409: cannot start an instance that is {state:?}")),
                None => moved("there is no such instance by now"),
            },
            Call::DeleteInstance(DeleteInstance { instance, .. }) => {
                self.delete_instance(instance, OURSELVES)
            }
            Call::DeleteNode(DeleteNode { name, uid, boot_id }) => {
                self.delete_node_if(name, uid, boot_id.as_ref())
            }
        }
    }

    fn accepted(&mut self) -> Outcome {
        Outcome::Accepted { request: Some(self.project.request()) }
    }

    fn state(&self, id: &InstanceId) -> Option<InstanceState> {
        self.project.servers.get(id).map(|server| server.instance.state)
    }

    fn set_port_groups(&mut self, id: &PortId, groups: &[GroupId], if_revision: u64) -> Outcome {
        let Some((instance, port)) = self.project.ports.get(id).cloned() else {
            return refused(format!("404: no port {id}"));
        };
        if port.revision != if_revision {
            return moved("412: RevisionNumberConstraintFailed");
        }
        if !port.security {
            return refused("400: port security must be enabled");
        }
        self.project.change_port(id, |port| port.groups = groups.into());
        self.review(&instance);
        if self.slippery.contains(id) {
            let after = self.soon(500, 25_000);
            self.plan(after, Task::LoseGroup(id.clone()));
        }
        self.accepted()
    }

    /// Something outside takes the group off the port, again.
    pub(super) fn lose_group(&mut self, id: &PortId) {
        let Some((instance, _)) = self.project.ports.get(id).cloned() else { return };
        let own = self.project.group_of(&instance);
        self.project.change_port(id, |port| {
            port.groups = port.groups.iter().filter(|group| group.as_str() != own).cloned().collect();
        });
        self.review(&instance);
    }

    fn add_routes(&mut self, routes: &[Route]) -> Outcome {
        let limit = self.project.hidden_limit;
        let new = routes.iter().filter(|route| !self.project.routes().contains(route)).count();
        if self.project.routes().len() + new > limit as usize {
            let text = format!("400 RoutesExhausted: the number of routes exceeds the maximum {limit}.");
            if self.layout.variety.untold_route_limit {
                let text = "409 OverQuota: Quota exceeded for resources: ['router_route'].";
                return Outcome::Limit { limit: None, text: text.into() };
            }
            return Outcome::Limit { limit: Some(limit), text: text.into() };
        }
        let on_port = self.project.addresses();
        if let Some(route) = routes.iter().find(|route| !on_port.contains(&route.next_hop)) {
            return refused(format!(
                "400 InvalidRoutes: the next hop of {route} is on no subnet of the router"
            ));
        }
        self.project.change_routes(|held| {
            for route in routes {
                if !held.contains(route) {
                    held.push(*route);
                }
            }
        });
        self.accepted()
    }

    fn reboot(&mut self, id: &InstanceId, hard: bool) -> Outcome {
        // The adapter reads it before, and what Nova says of a conflict with its state is no refusal for good.
        match self.project.servers.get(id).map(|server| &server.instance) {
            None => return moved("there is no such instance by now"),
            Some(instance) if instance.locked => return moved("the instance is locked"),
            Some(instance) if instance.state != InstanceState::Active => {
                return moved(format!("409: cannot reboot an instance that is {:?}", instance.state));
            }
            // EC2 has no hard reboot but a stop and a start: "You can't stop the Spot Instance because it is associated with a
            // one-time Spot Instance request".
            Some(instance) if hard && instance.hosting.as_ref().is_some_and(|hosting| hosting.spot) => {
                return refused("UnsupportedOperation: a spot instance cannot be stopped");
            }
            Some(_) => {}
        }
        Outcome::Accepted { request: Some(self.begin_reboot(id, hard, OURSELVES)) }
    }

    /// A client deletes an instance; the cloud decides how long that takes.
    pub(super) fn delete_instance(&mut self, id: &InstanceId, user: &str) -> Outcome {
        match self.project.servers.get(id) {
            None => already("404: no such instance"),
            Some(server) if server.instance.locked => moved("the instance is locked"),
            Some(_) => self.end_instance(id, user),
        }
    }

    /// Ends the instance without asking which client or provider ends it, and without a check of its lock.
    pub(super) fn end_instance(&mut self, id: &InstanceId, user: &str) -> Outcome {
        let Some(server) = self.project.servers.get(id) else { return already("404: no such instance") };
        let never_ends = server.never_ends;
        if server.instance.state.is_leaving() {
            return self.accepted();
        }
        self.leave_group(id);
        self.project.note(self.now, id, "delete", user);
        self.project.set_state(self.now, id, InstanceState::Deleting, Some("deleting"));
        self.power_off(id);
        if !never_ends {
            let (least, most) = self.layout.deletes_within;
            let after = self.delays.span(least, most);
            self.plan(after, Task::Life(id.clone(), Life::Gone));
        }
        self.accepted()
    }

    /// Of another boot than the one that a call names, its performer sends nothing; who names none asks for nothing.
    fn delete_node_if(&mut self, name: &NodeName, uid: &NodeUid, boot_id: Option<&Arc<str>>) -> Outcome {
        match self.cluster.nodes.get(name) {
            None => already("404: no such node"),
            Some(node) if node.uid != *uid => moved("409: the uid in the precondition is another one"),
            Some(node) if boot_id.is_some_and(|boot| node.boot_id.as_ref() != Some(boot)) => {
                Outcome::NotSent { text: "another machine runs as it by now".into(), retry_after: None }
            }
            Some(_) => {
                self.delete_node(name);
                Outcome::Accepted { request: None }
            }
        }
    }

    /// The data plane reads its tables again: nodes whose pods could not be reached can be reached.
    pub(super) fn become_reachable(&mut self) {
        let broken: Vec<NodeName> = self.cluster.nodes.keys().cloned().collect();
        for name in broken {
            self.set_route_broken(&name, false);
        }
    }
}

/// The rule that a nudge puts and takes back: one address of a documentation range.
fn harmless_rule() -> RuleSpec {
    RuleSpec {
        direction: Direction::Ingress,
        family: Family::V4,
        protocol: None,
        ports: None,
        remote: Remote::Prefix(ipnet::IpNet::from(std::net::IpAddr::from([192, 0, 2, 1]))),
    }
}
