//! Answers to targeted reads (`reads`): each first changes the views and then goes to the part that asked for it: a machine
//! that is missing from a list, an incident that needs evidence, an intent that needs its verdict.

use std::collections::BTreeSet;
use std::sync::Arc;

use crate::diagnose::gathered::{handled, launched};
use crate::effect::{Call, Effect, Look, Outcome, ReadError};
use crate::event::Answer;
use crate::model::attempt::Attempt;
use crate::model::before::ActionMark;
use crate::model::evidence::Source;
use crate::model::id::{InstanceId, LookId, PoolName, RequestId};
use crate::model::incident::{IncidentKey, MachineKey};
use crate::model::instance::InstanceAction;
use crate::model::time::{ServiceTime, Span, Time};
use crate::observe::cloud::{CloudChange, CloudView, Unlisted};
use crate::observe::fresh::Thing;
use crate::plan::context::PlanContext;
use crate::record::Record;
use crate::safeguard::{Safeguard, stands};

use super::missing::has_ended;
use super::reads::{Asked, World};
use super::{LookFor, State};

impl State {
    pub(super) fn send_looks(&mut self) {
        self.drop_evidence();
        while let Some((id, look)) = self.reads.send(self.now) {
            self.outbox.push(Effect::Look { id, look });
        }
    }

    /// Nothing is decided on the evidence of a world that is not believed: it is read when that has changed, and not now.
    fn drop_evidence(&mut self) {
        let (clouds, cluster, now) = (&self.clouds, &self.cluster, self.now);
        let dropped = self.reads.take_evidence(|world| match world {
            World::Cluster => cluster.source.trust(now).is_given(),
            World::Cloud(name) => clouds.get(name).is_some_and(|view| view.source.trust(now).is_given()),
        });
        for (look, purpose) in dropped {
            if let LookFor::Evidence(key) = &purpose
                && let Some(case) = self.incidents.get_mut(key)
            {
                case.gathered.asked_at = None;
                case.gathered.outstanding.retain(|out| *out != look);
            }
        }
    }

    pub(super) fn on_looked(&mut self, id: LookId, answer: Result<Answer, ReadError>) {
        let Some(Asked { look, purpose, at }) = self.reads.answered(id) else { return };
        let answer = self.refuse_answer(&look, answer);
        if let Ok(answer) = &answer
            && !(matches!(purpose, LookFor::Missing(..)) && has_ended(answer).is_some())
        {
            self.learn(&look, at, answer);
        }
        match purpose {
            LookFor::Missing(cloud, instance) => self.on_missing_answer(&cloud, &instance, &answer, at),
            LookFor::Namesake(cloud, id, node) => self.on_namesake_answer(&cloud, &id, &node, &answer),
            LookFor::Lost(node) => self.on_lost_answer(&node, &answer, at),
            LookFor::Deleter(pool, instance) => self.on_deleter_answer(&pool, &instance, answer),
            LookFor::Evidence(key) => self.on_evidence(&key, &look, answer, at),
            LookFor::Verdict(intent) => self.on_verdict_answer(intent, answer),
            LookFor::Access(cloud, user) => self.on_access_answer(&cloud, &user, &answer),
            LookFor::Refresh => {}
        }
    }

    /// A fresh read is the newest information. The views take it in, whichever part of the engine asked for it.
    fn learn(&mut self, look: &Look, asked_at: Time, answer: &Answer) {
        self.note_fresh(look, asked_at);
        match (look, answer) {
            // An answer may have been on its way since before the machine was proved gone: only a listing brings it back.
            (Look::Instance(cloud, id), Answer::Instance(_)) if self.out_of_sight.has_departed(cloud, id) => {
            }
            (Look::Instance(cloud, id), Answer::Instance(Some(instance))) => {
                let mut change = CloudChange::default();
                let (now, mut is_new) = (self.now, false);
                if let Some(view) = self.clouds.get_mut(cloud) {
                    is_new = !view.instances.contains_key(id);
                    view.upsert(&self.roster, now, instance, &mut change);
                }
                self.remember_joined(cloud);
                if is_new {
                    self.give_back_unseen(cloud);
                    self.doubt_lives(cloud, &change.touched);
                }
                self.after_cloud_change(cloud, change);
            }
            (Look::Ports(cloud, instance), Answer::Ports(ports)) => {
                if let Some(view) = self.clouds.get_mut(cloud) {
                    view.take_ports(instance, ports);
                    self.dirty.insert(MachineKey::Instance(cloud.clone(), instance.clone()));
                }
            }
            (Look::Group(cloud, id), Answer::Group(Some(group))) => {
                if let Some(view) = self.clouds.get_mut(cloud) {
                    if let Some(known) = view.groups.iter_mut().find(|known| known.id == *id) {
                        *known = group.clone();
                    }
                    self.dirty_projects.insert(cloud.clone());
                }
            }
            (Look::Router(cloud, id), Answer::Router(Some(router))) => {
                if let Some(view) = self.clouds.get_mut(cloud) {
                    view.routers.insert(id.clone(), router.clone());
                    self.dirty_projects.insert(cloud.clone());
                }
            }
            (Look::Roles(cloud, user, _), Answer::Roles(roles)) => {
                if let Some(view) = self.clouds.get_mut(cloud) {
                    view.access.answered(user, roles, asked_at);
                    self.dirty_projects.insert(cloud.clone());
                }
            }
            (Look::NodeEvents(_), Answer::NodeEvents(events)) => {
                self.cluster.remember_all(self.now, events);
            }
            _ => {}
        }
    }

    /// No listing that began earlier unsays it.
    fn note_fresh(&mut self, look: &Look, asked_at: Time) {
        let (cloud, thing) = match look {
            Look::Instance(cloud, id) => (cloud, Thing::Instance(id.clone())),
            Look::Ports(cloud, id) => (cloud, Thing::Ports(id.clone())),
            Look::Group(cloud, id) => (cloud, Thing::Group(id.clone())),
            Look::Router(cloud, id) => (cloud, Thing::Router(id.clone())),
            // Of these no listing tells anything.
            Look::Console(..) | Look::LogEvidence(..) | Look::Actions(..) | Look::Roles(..) => return,
            Look::Node(_) | Look::NodeEvents(_) => return,
        };
        if let Some(view) = self.clouds.get_mut(cloud) {
            view.note_fresh(thing, asked_at);
        }
    }

    fn on_deleter_answer(
        &mut self,
        pool: &PoolName,
        instance: &InstanceId,
        answer: Result<Answer, ReadError>,
    ) {
        let Ok(Answer::Actions(actions)) = answer else { return };
        let Some(who) =
            actions.iter().find(|action| &*action.action == "delete").and_then(|a| a.user.clone())
        else {
            return;
        };
        let what = format!("user {who} deleted instance {instance}");
        if let Some(record) = self.others.tell(pool, what.into()) {
            self.outbox.record(record);
        }
    }

    /// The last that was done to the machine, by another, was to delete it, and no list has shown that: it is asked for itself. A
    /// list of what changed may lack it, while a part of its cloud is away, and no later one names it (seed 5701372).
    fn unlisted_deletion(
        &self,
        key: &IncidentKey,
        log: &[InstanceAction],
        ours: &BTreeSet<RequestId>,
    ) -> Option<Look> {
        log.first().filter(|last| &*last.action == "delete" && !ours.contains(&last.request))?;
        let (cloud, seen) = self.context().seen_of(&key.subject)?;
        let instance = &seen.instance;
        let is_unlisted = !instance.state.is_leaving() && instance.task.is_none() && seen.unlisted.is_none();
        let asks = is_unlisted && stands(Safeguard::UnlistedDeletions);
        asks.then(|| Look::Instance(cloud.name.clone(), instance.id.clone()))
    }

    /// Our requests that the cloud took for the machine of this incident, under whichever incident. Of a reboot whose answer was
    /// lost we know no request: it is the one of that time in the log. On a dead host it never ended, counted as a person's, and
    /// held every further step for ever.
    fn requests_for(&self, key: &IncidentKey, log: &[InstanceAction]) -> BTreeSet<RequestId> {
        let (tried, answered) = (self.tried_for(key), self.answered_for(key));
        let view = self.context().seen_of(&key.subject).map(|(cloud, _)| cloud);
        let is_our_user = |user: &Arc<str>| self.is_our_user(key, user, log, &answered);
        let lost = tried.iter().filter(|tried| !matches!(tried.outcome(), Some(Outcome::Accepted { .. })));
        let lost = lost.filter_map(|tried| request_of(tried, view?, log, is_our_user)).collect::<Vec<_>>();
        let logged = tried.iter().filter_map(|tried| tried.logged_as.clone()).collect::<Vec<_>>();
        answered.into_iter().chain(lost).chain(logged).collect()
    }

    /// What was tried for this machine, under whichever incident.
    fn tried_for(&self, key: &IncidentKey) -> Vec<&Attempt> {
        let closed = self.incidents.closed().map(|closed| &closed.incident);
        let of_it = closed.filter(|incident| incident.key.subject == key.subject);
        let open = self.incidents.of(&key.subject).map(|case| &case.incident);
        of_it.chain(open).flat_map(|incident| &incident.attempts).collect()
    }

    /// The requests of these that the cloud answered.
    fn answered_for(&self, key: &IncidentKey) -> BTreeSet<RequestId> {
        let request = |tried: &Attempt| match tried.outcome() {
            Some(Outcome::Accepted { request }) => request.clone(),
            _ => None,
        };
        self.tried_for(key).into_iter().filter_map(request).collect()
    }

    /// An earlier request of ours on this cloud, or one of those that it `answered` and logs, was by this user.
    fn is_our_user(
        &self,
        key: &IncidentKey,
        user: &Arc<str>,
        log: &[InstanceAction],
        answered: &BTreeSet<RequestId>,
    ) -> bool {
        let cloud = PlanContext::instance_of(&key.subject).map(|(cloud, _)| cloud);
        let known = cloud.and_then(|cloud| self.own_users.get(cloud));
        let by_us = log.iter().filter(|it| answered.contains(&it.request)).filter_map(|it| it.user.as_ref());
        known.into_iter().flatten().chain(by_us).any(|it| it == user)
    }

    /// A reboot of ours whose request no answer told is the only one in the log since `before`. It is known by its order, and
    /// not by its time alone: a gateway answers with 504 what Nova takes 40 s later, and our clock may be set meanwhile. On a
    /// dead host it never ended, and held every further step for ever.
    pub(super) fn note_own_request(
        &mut self,
        key: &IncidentKey,
        before: &ActionMark,
        log: &[InstanceAction],
    ) {
        let (ActionMark::Reboot(before), Some(case)) = (before, self.incidents.get_mut(key)) else { return };
        let mut reboots = case.incident.attempts.iter().filter(|tried| matches!(tried.call, Call::Reboot(_)));
        let is_told =
            |tried: &Attempt| matches!(tried.outcome(), Some(Outcome::Accepted { request: Some(_) }));
        let last = reboots.next_back().filter(|tried| !is_told(tried) && tried.may_boot());
        let Some(intent) = last.map(|tried| tried.intent) else { return };
        let reboots = log.iter().filter(|it| &*it.action == "reboot");
        let mut since = reboots.take_while(|it| Some(it.request.as_str()) != before.as_deref());
        if let (Some(own), None) = (since.next(), since.next()) {
            case.gathered.own_request = Some((intent, own.request.clone()));
        }
    }

    /// The log tells that this request is ours, by its user. The ledger has to know it: the next process, which has not seen what
    /// came before, held a reboot of ours that never ended for another's.
    pub(super) fn keep_own_request(&mut self, key: &IncidentKey, log: &[InstanceAction]) {
        let Some((intent, request)) =
            self.incidents.get(key).and_then(|case| case.gathered.own_request.clone())
        else {
            return;
        };
        let answered = self.answered_for(key);
        let is_our_user = |user: &Arc<str>| self.is_our_user(key, user, log, &answered);
        let is_it = |it: &InstanceAction| it.request == request && it.user.as_ref().is_none_or(is_our_user);
        if !log.iter().any(is_it) {
            return;
        }
        let Some(case) = self.incidents.get_mut(key) else { return };
        case.gathered.own_request = None;
        let (incident, repair_step) = (case.incident.id, case.incident.repair_step);
        let tried = case.incident.attempts.iter_mut().find(|tried| tried.intent == intent);
        let Some(tried) = tried.filter(|tried| tried.logged_as.as_ref() != Some(&request)) else { return };
        tried.logged_as = Some(request);
        let attempt = tried.clone();
        self.outbox.record(Record::Tried { incident, attempt, repair_step });
    }

    /// Who we are to this cloud: the user of our requests in its logs.
    fn learn_own_user(&mut self, key: &IncidentKey, log: &[InstanceAction], ours: &BTreeSet<RequestId>) {
        let Some((cloud, _)) = PlanContext::instance_of(&key.subject) else { return };
        let by_us = log.iter().filter(|it| ours.contains(&it.request)).filter_map(|it| it.user.clone());
        for user in by_us {
            self.own_users.entry(cloud.clone()).or_default().insert(user);
        }
    }

    /// A denial that was read as evidence counts as any other.
    fn note_denial(&mut self, look: &Look, answer: &Result<Answer, ReadError>, asked_at: Time) {
        let (Look::Instance(cloud, id), Ok(found @ Answer::Instance(_))) = (look, answer) else { return };
        let ended = has_ended(found);
        if ended.is_some() || matches!(found, Answer::Instance(None)) {
            self.deny(cloud, id, asked_at, ended);
        }
    }

    fn on_evidence(
        &mut self,
        key: &IncidentKey,
        look: &Look,
        answer: Result<Answer, ReadError>,
        asked_at: Time,
    ) {
        self.note_denial(look, &answer, asked_at);
        let keeps = self.pool_of(key).is_some_and(|pool| pool.keep.is_some());
        if let Ok(Answer::Actions(actions)) = &answer {
            if let Some(before) = self.incidents.get(key).and_then(|case| case.gathered.unconfirmed.clone()) {
                self.note_own_request(key, &before, actions);
            }
            self.note_late_reboot(key, &ActionMark::of(actions), asked_at);
            self.keep_own_request(key, actions);
        }
        let log = if let Ok(Answer::Actions(actions)) = &answer { &actions[..] } else { &[] };
        let ours = self.requests_for(key, log);
        self.learn_own_user(key, log, &ours);
        let unlisted_deletion = self.unlisted_deletion(key, log, &ours);
        let Some(case) = self.incidents.get_mut(key) else { return };
        let gathered = &mut case.gathered;
        gathered.outstanding.retain(|out| out != look);
        if matches!((look, &answer), (Look::Actions(..) | Look::Instance(..), Ok(_))) {
            gathered.unread_deletion = unlisted_deletion.is_some();
        }
        if let Some(look) = unlisted_deletion {
            gathered.outstanding.push(look.clone());
            self.reads.ask(look, LookFor::Evidence(key.clone()));
        }
        let of_guest = matches!(look, Look::Console(..) | Look::LogEvidence(..));
        let of_cloud = of_guest || matches!(look, Look::Actions(..) | Look::Instance(..) | Look::Roles(..));
        // A denial that comes too late proves nothing any more, and is asked for again later and later.
        let late = matches!(look, Look::Instance(..)) && self.now.since(asked_at) > Unlisted::APART;
        gathered.missed |= of_cloud && (answer.is_err() || late);
        match (look, answer) {
            (_, Ok(Answer::LogFindings(log_findings))) => {
                if let (true, Ok(text)) = (keeps, &log_findings.console) {
                    gathered.take_last_words(text);
                }
                gathered.missed |= log_findings.unread.iter().any(|unread| unread.source == Source::Console);
                gathered.take_log_findings(key.kind, &log_findings);
            }
            // A console that no catalogue judged is not evidence: for the engine, it was not read.
            (_, Ok(Answer::Console(_) | Answer::Said(_))) => {
                gathered.log_findings = Some(Err(Arc::from(UNJUDGED)))
            }
            (_, Ok(Answer::NoConsole(why))) => gathered.log_findings = Some(Err(why)),
            (_, Err(error)) if of_guest => gathered.log_findings = Some(Err(error.text)),
            (_, Ok(Answer::Actions(actions))) => {
                // A read of the round before that was still out is as old as its question, and so is what it tells.
                gathered.asked_at = gathered.asked_at.map(|at| at.min(asked_at));
                gathered.newest_reboot = Some(ActionMark::of(&actions));
                [gathered.handled, gathered.own_boot] = handled(&actions, &ours);
                gathered.launched = launched(&actions);
                gathered.last_action = Some(describe(actions.first()));
            }
            _ => {}
        }
        if gathered.outstanding.is_empty() {
            gathered.failures = if gathered.missed { gathered.failures.saturating_add(1) } else { 0 };
            if let crate::model::incident::Subject::Machine(machine) = &key.subject {
                self.dirty.insert(machine.clone());
            }
            self.ripe.insert(key.clone());
        }
    }
}

/// The request of a reboot that may have been made although its answer was lost: the only one in the log that began while we
/// waited for that answer, by our user. Where no log has shown yet who that is, it counts as another's: our first reboot was
/// never made, a person rebooted the machine in that minute, and it was deleted while they waited. That holds as long as the
/// reboot lasts, or until a log of any machine shows a request of ours that this cloud answered.
fn request_of(
    tried: &Attempt,
    cloud: &CloudView,
    log: &[InstanceAction],
    is_our_user: impl Fn(&Arc<str>) -> bool,
) -> Option<RequestId> {
    let (Call::Reboot(_), true, Some(ending)) = (&tried.call, tried.may_boot(), &tried.ending) else {
        return None;
    };
    let (from, to) = (cloud.clock_at(tried.at - CLOCKS_APART)?, cloud.clock_at(ending.at() + CLOCKS_APART)?);
    let is_of_then = |it: &&InstanceAction| {
        let at = ServiceTime::parse(&it.started);
        &*it.action == "reboot" && at.is_some_and(|at| from <= at && at <= to)
    };
    let mut of_then = log.iter().filter(is_of_then);
    let (found, another) = (of_then.next()?, of_then.next());
    let is_ours = another.is_none() && found.user.as_ref().is_none_or(is_our_user);
    is_ours.then(|| found.request.clone())
}

/// How far our reckoning of the cloud's clock may be off: by whole seconds, and by how long a listing took to be answered.
const CLOCKS_APART: Span = Span::from_s(10);

/// The process that reads a console must also judge it by a catalogue; this text stands where it did not.
const UNJUDGED: &str = "it was read, and no catalogue judged it";

fn describe(action: Option<&InstanceAction>) -> Arc<str> {
    let Some(action) = action else { return Arc::from("the action log is empty") };
    let by = action.user.as_deref().unwrap_or("an unnamed user");
    let message = action.message.as_deref().map_or_else(String::new, |message| format!(": {message}"));
    Arc::from(format!("{} at {} by user {by}{message}", action.action, action.started))
}
