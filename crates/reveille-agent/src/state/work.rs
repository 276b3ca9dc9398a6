//! What the agent does to its machine: one task at a time, step by step, with every gate checked again before each step.
//!
//! ```text
//!  Reboot          Record ─▶ Reboot
//!  RestartKubelet  Look ─▶ Record ─▶ restart ─▶ Verify ─▶ Settle
//!  NewToken        token ─▶ Disarm ─▶ Look ─▶ Record ─▶ bootstrap ─▶ Verify ─▶ Settle
//!  Reset           token ─▶ Disarm ─▶ Look ─▶ Record ─▶ reset ─▶ join ─▶ Verify ─▶ Settle
//! ```
//!
//! The agent has the token before it throws anything away. It inspects the machine after a wait, not before. The memory
//! of an act is durable before the act. A Node that came back and went again has not come back. A task that fails costs
//! an attempt, and the pause doubles; after the last attempt the agent asks an operator.

use reveille_core::model::time::{Span, Time};

use super::State;
use crate::effect::{Effect, Report, UNDONE, Verb};
use crate::model::{Credentials, NodeSeen, OperationId, Role};
use crate::rejoin::RepairStep;
use crate::step_context::StepContext;
use crate::steps::{Step, Task};

/// A kubelet with accepted credentials registers within this time after its start, also on a slow machine.
const REGISTERS_WITHIN: Span = Span::from_s(30);

/// A task under way.
#[derive(Clone, Debug)]
pub(crate) struct Work {
    task: Task,
    place: usize,
    /// None: the step has not begun.
    wait: Option<Wait>,
    /// The agent lets the watchdog fire.
    bites: bool,
}

#[derive(Clone, Copy, Debug)]
struct Wait {
    until: Time,
    /// The effect's number; for an inspection: the number that its result has to be newer than.
    id: OperationId,
    ended: Option<bool>,
    since: Time,
    /// For a verification: the Node existed.
    was_there: bool,
}

impl Work {
    fn step(&self) -> Option<Step> {
        self.task.steps().get(self.place).copied()
    }

    /// The machine slept for this many milliseconds: the wait ends later by as much.
    pub(crate) fn postpone(&mut self, ms: i64) {
        if let Some(wait) = &mut self.wait {
            wait.until = Time::from_ms(wait.until.ms.saturating_add(ms));
        }
    }
}

impl State {
    /// True from the disarming until the Node is back: the machine is in the middle of a join.
    pub(crate) fn is_rejoining(&self) -> bool {
        self.work.as_ref().is_some_and(|work| {
            let joins =
                matches!(work.task, Task::Rejoin(repair_step) if repair_step != RepairStep::RestartKubelet);
            joins && work.place > 0 && work.step() != Some(Step::Settle)
        })
    }

    /// The way in which the agent brings its Node back just now.
    pub(crate) fn rejoins(&self) -> Option<RepairStep> {
        match self.work.as_ref()?.task {
            Task::Rejoin(repair_step) => Some(repair_step),
            _ => None,
        }
    }

    /// The agent asked for a reboot, and its time limit has not passed.
    fn is_rebooting(&self) -> bool {
        self.work.as_ref().is_some_and(|work| work.step() == Some(Step::Reboot) && work.wait.is_some())
    }

    /// The agent must not feed the watchdog any more.
    pub(crate) fn lets_bite(&self) -> bool {
        self.is_rebooting() && self.work.as_ref().is_some_and(|work| work.bites)
    }

    pub(crate) fn work_answered(&mut self, id: OperationId, done: bool) {
        let step = self.work.as_ref().and_then(Work::step);
        let answered = matches!(step, Some(Step::Record | Step::Settle | Step::Do(_) | Step::Reboot));
        if let Some(wait) = self.work.as_mut().and_then(|work| work.wait.as_mut())
            && wait.id == id
            && answered
        {
            // The first answer counts: a second answer does not undo what the system was asked for.
            wait.ended.get_or_insert(done);
        }
    }

    pub(crate) fn cancel_reboot(&mut self, context: &mut StepContext<'_>) {
        if self.work.as_ref().is_some_and(|work| work.task == Task::Reboot) {
            self.drop_reboot(context, "it was told to do nothing");
        }
    }

    fn drop_reboot(&mut self, context: &mut StepContext<'_>, why: &'static str) {
        self.end_work(context);
        self.contact.forget_ground();
        context.report(Report::RebootDropped(why));
    }

    /// Goes on with the task under way, or begins what is due.
    pub(crate) fn advance_work(&mut self, context: &mut StepContext<'_>) {
        if self.work.is_none() {
            self.begin_work(context);
        }
        // Each pass waits for an effect, goes a step on, or ends the task.
        while let Some(work) = self.work.clone() {
            let Some(step) = work.step() else {
                self.work = None;
                return;
            };
            let Some(mut wait) = work.wait else {
                match self.against(work.task, step, context) {
                    None => self.begin_step(context, step),
                    Some(why) => return self.fail(context, work.task, why),
                }
                continue;
            };
            if step == Step::Verify {
                match self.watch_node(&mut wait, context.now) {
                    None => {}
                    Some(why) => return self.fail(context, work.task, why),
                }
            }
            match self.has_ended(step, wait, context) {
                Some(true) => self.go_on(context, step),
                Some(false) => return self.fail(context, work.task, UNDONE),
                None if wait.until <= context.now => {
                    return self.fail(context, work.task, "its time has passed");
                }
                None => return,
            }
        }
    }

    /// Ends the task. An effect without an answer may still complete until its deadline. A reboot may still happen until
    /// its deadline, whatever the answer was. A verification has no effect that could be answered.
    fn end_work(&mut self, context: &StepContext<'_>) {
        let work = self.work.take().filter(|work| work.step() != Some(Step::Verify));
        let reboots = work.as_ref().is_some_and(|work| work.step() == Some(Step::Reboot));
        let wait = work.and_then(|work| work.wait).filter(|wait| reboots || wait.ended.is_none());
        let until = wait.map(|wait| wait.until).filter(|until| *until > context.now);
        self.busy_until = self.busy_until.max(until);
    }

    fn begin_work(&mut self, context: &mut StepContext<'_>) {
        if self.busy_until.is_some_and(|until| until > context.now) {
            return;
        }
        self.busy_until = None;
        if self.observation.leaving() != self.memory.leaving {
            return self.begin(Task::Remember);
        }
        if self.contact.ground().is_some() {
            if self.unable().is_some() {
                // The agent reported that it cannot reboot, so no controller takes this machine for fenced.
                return;
            }
            if self.memory.reboots_lately(context.now) >= context.settings.reboots_a_day {
                // One report is enough: the next rounds have the same result.
                self.contact.forget_ground();
                if !std::mem::replace(&mut self.told_spent, true) {
                    context.report(Report::RebootDropped("it has rebooted as often as it may in a day"));
                }
                return;
            }
            self.told_spent = false;
            return self.begin(Task::Reboot);
        }
        if !self.contact.is_there() || self.cancelled || self.observation.found().is_none() {
            return;
        }
        match self.choice(self.memory.attempts) {
            Ok(None) => {
                (self.told_blocker, self.asked) = (None, None);
                let dirty = self.memory.attempts > 0 || self.memory.is_reset || self.is_ordered;
                if dirty && self.has_stayed(context) {
                    self.begin(Task::Forget);
                }
            }
            Err(blocker) => {
                if self.told_blocker.replace(blocker) != Some(blocker) {
                    context.report(Report::Blocked(blocker));
                }
            }
            Ok(Some(repair_step)) => self.begin_rejoin(context, repair_step),
        }
    }

    fn begin_rejoin(&mut self, context: &mut StepContext<'_>, repair_step: RepairStep) {
        self.told_blocker = None;
        let (attempts, most) = (self.memory.attempts, context.settings.attempts);
        if attempts >= most {
            if !std::mem::replace(&mut self.told_end, true) {
                context.report(Report::GaveUp(attempts));
            }
            return;
        }
        // After a clock was set back, the agent waits no longer than the longest pause.
        let latest = context.now + context.settings.backoff_max;
        if self.memory.not_before.is_some_and(|at| at.min(latest) > context.now) {
            return;
        }
        self.memory.attempts += 1;
        self.memory.not_before = Some(context.now + self.pause(context));
        context.report(Report::Rejoins(repair_step, attempts + 1, most));
        self.begin(Task::Rejoin(repair_step));
    }

    fn begin(&mut self, task: Task) {
        self.work = Some(Work { task, place: 0, wait: None, bites: false });
    }

    /// The pause after the last counted attempt.
    fn pause(&self, context: &StepContext<'_>) -> Span {
        context.settings.backoff.doubled(self.memory.attempts.saturating_sub(1), context.settings.backoff_max)
    }

    fn has_stayed(&self, context: &StepContext<'_>) -> bool {
        self.observation.ready_since().is_some_and(|at| context.now.since(at) >= context.settings.dwell)
    }

    /// The reason against this step now.
    fn against(&self, task: Task, step: Step, context: &StepContext<'_>) -> Option<&'static str> {
        let first = |checks: &[(bool, &'static str)]| checks.iter().find(|(is, _)| *is).map(|(_, why)| *why);
        let told = (self.cancelled, "it was told to do nothing");
        let lost = (!self.contact.is_there(), "the API server does not answer");
        match (task, step) {
            (Task::Reboot, _) => {
                let spent = self.memory.reboots_lately(context.now) >= context.settings.reboots_a_day;
                first(&[
                    (self.contact.ground().is_none(), "what it rested on is so no more"),
                    (self.unable().is_some(), "it cannot reboot its machine any more"),
                    (step == Step::Record && spent, "it has rebooted as often as it may in a day"),
                ])
            }
            (_, Step::Verify | Step::Settle) | (Task::Remember, _) => None,
            (_, Step::Do(Verb::Join)) => {
                let worker = self.machine.as_ref().is_some_and(|machine| machine.role == Role::Worker);
                first(&[
                    told,
                    (self.observation.leaving().is_some(), "it is to go"),
                    (!worker, "it runs a control plane"),
                ])
            }
            (Task::Rejoin(repair_step), Step::Record | Step::Do(_)) => {
                let before = self.memory.attempts.saturating_sub(1);
                // A join on a machine without a join removes nothing; a reset must not hit a Node that exists.
                let is_blind = |node| match node {
                    NodeSeen::CannotTell => true,
                    NodeSeen::Guarded => repair_step == RepairStep::Reset,
                    NodeSeen::Ready | NodeSeen::NotReady | NodeSeen::Absent | NodeSeen::AnotherMachines => {
                        false
                    }
                };
                let blind = || self.observation.found().is_none_or(|found| is_blind(found.node));
                let resets = repair_step >= RepairStep::Reset && step != Step::Do(Verb::RequestToken);
                first(&[
                    told,
                    lost,
                    (self.choice(before) != Ok(Some(repair_step)), "what it rested on is so no more"),
                    (resets && blind(), "it is unknown whether its Node exists"),
                ])
            }
            _ => first(&[told, lost]),
        }
    }

    fn begin_step(&mut self, context: &mut StepContext<'_>, step: Step) {
        let span = step.within(context.settings);
        let operation = context.fly(span);
        let mut id = operation.id;
        match step {
            Step::Disarm | Step::Verify => {}
            Step::Look => id = self.observation.want_fresh(context),
            Step::Record => {
                let reboots = self.work.as_ref().is_some_and(|work| work.task == Task::Reboot);
                if reboots {
                    self.memory.note_reboot(context.now);
                }
                let repair_step = self.work.as_ref().and_then(|work| match work.task {
                    Task::Rejoin(repair_step) => Some(repair_step),
                    _ => None,
                });
                self.memory.is_reset |=
                    repair_step.is_some_and(|repair_step| repair_step >= RepairStep::Reset);
                self.memory.leaving = self.observation.leaving();
                context.out.push(Effect::Record(id, self.memory.clone(), span));
            }
            Step::Settle => {
                (self.memory.attempts, self.memory.not_before, self.memory.is_reset) = (0, None, false);
                context.out.push(Effect::Record(id, self.memory.clone(), span));
            }
            Step::Reboot => {
                let armed = self.watchdog.is_armed();
                let verb = if armed { Verb::RebootByWatchdog } else { Verb::RebootBySystem };
                if let Some(work) = &mut self.work {
                    work.bites = armed;
                }
                if let Some(ground) = self.contact.ground() {
                    context.report(Report::Reboots(ground));
                }
                context.out.push(Effect::Act(id, verb, span));
            }
            Step::Do(verb) => {
                context.report(Report::Acts(verb));
                context.out.push(Effect::Act(id, verb, span));
            }
        }
        if let Some(work) = &mut self.work {
            work.wait =
                Some(Wait { until: operation.until, id, ended: None, since: context.now, was_there: false });
        }
    }

    /// A Node that came and went does not come back by waiting; nor does one whose kubelet has accepted credentials and
    /// does not register.
    fn watch_node(&mut self, wait: &mut Wait, now: Time) -> Option<&'static str> {
        let found = self.observation.found()?;
        match found.node {
            NodeSeen::Ready | NodeSeen::NotReady => wait.was_there = true,
            NodeSeen::Absent if wait.was_there => return Some("its node came and went"),
            // The Node came and went between two inspections; an inspection from before the wait says nothing about it.
            NodeSeen::Absent if found.came_and_went && self.observation.is_newer_than(wait.id) => {
                return Some("its node came and went");
            }
            NodeSeen::Absent if found.credentials == Credentials::Accepted => {
                let needed = self.settings().stale_readings;
                let slow = now.since(wait.since) < REGISTERS_WITHIN;
                if !slow && self.observation.absent_in_a_row() >= needed {
                    return Some("its kubelet is let in and does not register");
                }
            }
            NodeSeen::AnotherMachines => return Some("the node of its name is another machine's"),
            NodeSeen::Absent | NodeSeen::Guarded | NodeSeen::CannotTell => {}
        }
        if let Some(kept) = self.work.as_mut().and_then(|work| work.wait.as_mut()) {
            kept.was_there = wait.was_there;
        }
        None
    }

    /// Whether the step's wait ended in success or in failure; none: not yet.
    fn has_ended(&self, step: Step, wait: Wait, context: &StepContext<'_>) -> Option<bool> {
        let so = |is: bool| is.then_some(true);
        match step {
            Step::Disarm => so(self.watchdog.is_disarmed(self.machine.as_ref().map(|it| it.watchdog))),
            Step::Look => so(self.observation.is_newer_than(wait.id)),
            Step::Record | Step::Settle | Step::Do(_) => wait.ended,
            // A request for a reboot does not prove a reboot: after a real one, this process no longer runs.
            Step::Reboot => wait.ended.filter(|done| !done),
            Step::Verify => so(self.has_stayed(context)),
        }
    }

    fn go_on(&mut self, context: &mut StepContext<'_>, step: Step) {
        if step == Step::Settle {
            (self.told_end, self.is_ordered, self.asked) = (false, false, None);
            context.report(Report::Back);
        }
        if let Some(work) = &mut self.work {
            work.place += 1;
            work.wait = None;
        }
    }

    fn fail(&mut self, context: &mut StepContext<'_>, task: Task, why: &'static str) {
        let rebooting = self.is_rebooting();
        self.end_work(context);
        match task {
            Task::Reboot if rebooting => {
                self.reboot_failed = true;
                self.contact.forget_ground();
                context.report(Report::NotRebooted);
            }
            Task::Reboot => self.drop_reboot(context, why),
            Task::Rejoin(repair_step) => {
                self.asked = None;
                let again_at = context.now + self.pause(context);
                self.memory.not_before = Some(again_at);
                context.report(Report::Failed(repair_step, why, again_at));
            }
            // The memory holds it, and the next record writes it.
            Task::Forget | Task::Remember => {}
        }
    }

    pub(crate) fn work_moments(&self) -> impl Iterator<Item = Time> {
        let wait = self.work.as_ref().and_then(|work| work.wait).map(|wait| wait.until);
        // During a dwell, or a pause between two attempts, the next regular inspection is early enough.
        wait.into_iter().chain(self.busy_until)
    }
}
