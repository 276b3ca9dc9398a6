//! The acts: what a call would do to a machine as it really is, and whether a careful operator would make the call now.
//!
//! The rules are about substance: whose machine it is, who else works on it, whether its zone, its fleet or its image is
//! what is ill, how often the same was tried, and whether the one before it has helped. Slack is given where the truth
//! takes its time to be seen.

use reveille_core::effect::Call;
use reveille_core::model::hosting::Check;
use reveille_core::model::id::{IncidentId, InstanceId, IntentId, PoolName};
use reveille_core::model::incident::FaultKind;
use reveille_core::model::instance::InstanceState;
use reveille_core::model::roster::{Mode, Pool};
use reveille_core::model::time::{Span, Time};
use reveille_core::remedies::{
    AddPortPairs, AddRoutes, AddRules, AskAgent, AssignRoles, DeleteInstance, DeleteNode, DropRule,
    NudgeGroup, NudgeRouter, Reboot, RemoveRoutes, SetPortGroups, StartInstance,
};

use crate::world::ground_truth::GroundTruth;
use crate::world::{Heard, Ours, Standstill};

use super::{Deleted, Intent, Oracle, Scene};

/// Until a dark zone or fleet shows in conditions and leases.
const DARK_SHOWS: Span = Span::from_min(3);
/// A zone that was dark needs so long at least to come back.
const BACK_FOR: Span = Span::from_s(20);
/// Until another image, or another client's deletion, shows in the listings.
const OTHERS_SHOW: Span = Span::from_min(12);
/// As long as another client's deletion keeps the controller away, less what it takes to show.
const OTHERS_STAY: Span = Span::from_min(5);
/// A pool in which others delete more often than this never rests. A deletion shows as it begins and as it ends, up to eight
/// minutes later, and one that is noticed within ten minutes of the last notice follows it (seed 8531257).
const OTHERS_QUIET: Span = Span::from_min(18);
/// Between two calls of the same kind on the same thing, whatever came of the first.
const AGAIN_AFTER: Span = Span::from_s(55);
/// The trail of calls that is remembered.
const REMEMBERED: Span = Span::from_min(360);
/// So many calls of one kind on one thing are no repair any more.
const ENDLESS: usize = 14;
/// What interrupts a machine is done softly once and hard once; one more is forgiven to a process that died meanwhile.
const TOO_OFTEN: usize = 3;
/// The log of actions is read again before a reboot or a deletion when it is older than this.
const LOG_LASTS: Span = Span::from_s(30);
/// Leases are listed three times in this time.
const LEASES_LISTED: Span = Span::from_s(30);
/// Clocks, disks and calls on their way.
const SLACK: Span = Span::from_s(10);
/// A denial is believed for so long; the decision and the call's way come after it.
const ASKED: Span = Span::from_s(12);
/// So many percent of the nodes missing after a restore are visible to every reader of the list.
const RESTORED_PCT: usize = 45;
/// Who served for so long with a fault of the network is away for another reason.
const SERVED: Span = Span::from_min(29);
/// Evidence older than this is none.
const EVIDENCE_LASTS: Span = Span::from_min(15);

impl Oracle {
    /// Truth that is only visible over time: since when a zone is dark, when a pool was rolled, who deleted what.
    pub(super) fn look_around(&mut self, scene: &Scene<'_>) {
        let now = self.now;
        for zone in scene.world.zones() {
            let heard = scene.world.heard_in(Some(&zone), Ours::Kept);
            if heard.machines >= 2 && heard.heard == 0 {
                self.dark_since.entry(zone).or_insert(now);
            } else if let Some(since) = self.dark_since.remove(&zone)
                && now.since(since) > DARK_SHOWS
            {
                self.back_at.insert(zone, now);
            }
        }
        // Where the roster tolerates so many failing machines at once, those that no Node tells of are no dark fleet: they have
        // not come up yet, or their Nodes went with a restored store (seed 5701476).
        // Machines that fell silent are a dark fleet under every roster.
        let is_dark = |all: Heard| {
            let silent = all.machines - all.heard;
            let most = |some: u32| some * 100 >= 65 * all.machines;
            let away = most(silent) && silent > scene.roster.limits.tolerated(all.machines);
            all.machines >= 2 && (most(silent - all.nodeless) || away || scene.world.leases_stand_still())
        };
        let dark = Ours::BOTH.into_iter().all(|ours| is_dark(scene.world.heard_in(None, ours)));
        // What no list shows from its beginning on, or from the beginning of a process, no client can know (seed 5600248).
        self.is_silence_unseen = scene.world.shows_no_silence();
        // Leases are silent after a while: a process that began a moment before has seen nothing either (seed 5801390).
        let shows_after = scene.roster.timing.lease_silent_after + LEASES_LISTED;
        if self.is_silence_unseen && self.ago(self.began_at) < shows_after {
            self.fleet_dark_since = None;
        }
        let begins = (!self.is_silence_unseen).then_some(now);
        self.fleet_dark_since = if dark { self.fleet_dark_since.or(begins) } else { None };
        for pool in scene.roster.pools.keys() {
            let (version, since) = scene.world.image_of(pool);
            let known = self.rolled.entry(pool.clone()).or_insert((version, None));
            if known.0 != version {
                let quiet = scene.roster.timing.rollout_quiet + OTHERS_SHOW;
                let goes_on = known.1.filter(|(at, _)| since.since(*at) < quiet);
                *known = (version, Some((since, goes_on.map_or(since, |(_, first)| first))));
            }
            let joined = self.newest_join(pool, scene);
            self.newest_join.extend(joined.map(|at| (pool.clone(), at)));
        }
        for (id, pool) in scene.world.deleted_by_others() {
            // Our own deletion of it was under way, and which of the two it was cannot be told.
            if self.we_delete(id) {
                continue;
            }
            if !self.listed.contains(id) {
                continue;
            }
            // A machine that no listing holds and each read denies counts as gone, as no client can see more (seed 2304123).
            // Where no read tells anything, its fate is open, and the controller leaves its pool alone.
            if !self.foreign.contains_key(id) && scene.world.is_denied(id) {
                self.unseen_ends.insert(id.clone());
            }
            if self.unseen_ends.contains(id) {
                continue;
            }
            if scene.world.hides_server(id) {
                self.hidden_ends.entry(id.clone()).or_insert(now);
            }
            if self.hidden_ends.get(id).is_some_and(|at| self.full_heard.is_none_or(|full| full <= *at)) {
                continue;
            }
            self.foreign.entry(id.clone()).or_insert_with(|| (now, pool.clone()));
        }
    }

    /// A deletion of ours was meant for it.
    fn we_delete(&self, id: &InstanceId) -> bool {
        self.intents.values().any(|intent| {
            matches!(&intent.call, Call::DeleteInstance(DeleteInstance { instance, .. }) if instance == id)
        })
    }

    /// When a machine of the pool last became well. That the same one broke again does not unsay it.
    fn newest_join(&self, pool: &PoolName, scene: &Scene<'_>) -> Option<Time> {
        self.newest_join.get(pool).copied().max(scene.world.newest_join(pool))
    }

    pub(super) fn forget_old_acts(&mut self) {
        while self.acted.front().is_some_and(|(at, _)| self.now.since(*at) > REMEMBERED) {
            self.acted.pop_front();
        }
    }

    pub(super) fn judge_call(&mut self, intent: IntentId, call: &Call, scene: &Scene<'_>) {
        self.judge_repetition(call, scene);
        if let Some(intent) = self.intents.get_mut(&intent) {
            intent.called = Some(self.now);
        }
        let Some(id) = machine_of(call, scene) else { return };
        let Some(ground_truth) = scene.world.ground_truth(&id) else { return };
        if scene.world.is_paused(&id, ground_truth.pool.as_ref()) {
            self.foul("paused", call.to_string());
        }
        self.judge_in_hand(call, &id, scene);
        self.judge_hosting(call, &ground_truth, scene);
        if !call.is_destructive() {
            return;
        }
        self.judge_restored(call, &id, scene);
        self.judge_machine(call, &id, &ground_truth, scene);
        self.judge_surroundings(call, &id, &ground_truth, scene);
        self.judge_case(intent, call, &id, &ground_truth, scene);
        if let (Call::DeleteInstance(_), Some(pool)) = (call, &ground_truth.pool) {
            let deletions = self.deletions.entry(pool.clone()).or_default();
            deletions.retain(|earlier| earlier.id != id);
            deletions.push(Deleted { at: self.now, id, fault: ground_truth.fault.clone() });
        }
    }

    /// Most nodes that are missing went with a restored store: that says nothing of their machines. A few are not told from
    /// single deletions, by a person neither; and one in the second of the call is seen after it (seed 5152006).
    fn judge_restored(&mut self, call: &Call, id: &InstanceId, scene: &Scene<'_>) {
        let are_many = |ours: Ours| {
            let nodeless = scene.world.nodeless_since_restore(SLACK, ours);
            let machines = scene.world.heard_in(None, ours).machines as usize;
            nodeless > 1 && nodeless * 100 >= RESTORED_PCT * machines
        };
        if Ours::BOTH.into_iter().all(are_many) && scene.world.lacks_node_since_restore(id) {
            self.foul("restored", format!("{call}: its node went with a restored etcd, and it runs"));
        }
    }

    /// The same call again at once, or many times. What another client took away since is another loss.
    fn judge_repetition(&mut self, call: &Call, scene: &Scene<'_>) {
        let same = |other: &Call| kind_and_thing(other) == kind_and_thing(call);
        let taken_at = scene.world.taken_at(call);
        let since = |at: Time| taken_at.is_none_or(|taken| at >= taken);
        // What was answered as failed, and is tried again with a backoff, was not done (seed 8200031).
        let failed_then = |other: &Intent, at: Time| other.called == Some(at) && other.came_to_nothing;
        let was_made = |at: Time| !self.intents.values().any(|other| failed_then(other, at));
        let made = self.acted.iter().filter(|(at, earlier)| since(*at) && same(earlier) && was_made(*at));
        let times = made.count();
        if times >= ENDLESS {
            self.foul("endless", format!("{call}, for the {}th time", times + 1));
        }
        let hasty = self.failed.iter().any(|(at, earlier)| same(earlier) && self.felt(*at) < AGAIN_AFTER);
        if hasty {
            self.foul("hasty", format!("{call} failed a moment ago"));
        }
        let twice = call.is_destructive()
            && self.acted.iter().any(|(at, earlier)| same(earlier) && self.felt(*at) < AGAIN_AFTER);
        let failed = self.failed.iter().any(|(at, earlier)| same(earlier) && self.felt(*at) < AGAIN_AFTER);
        if twice && !failed {
            self.foul("twice", format!("{call} was called a moment ago"));
        }
    }

    fn judge_machine(&mut self, call: &Call, id: &InstanceId, ground_truth: &GroundTruth, scene: &Scene<'_>) {
        if ground_truth.pool.is_none() {
            self.foul("not ours", call.to_string());
        }
        // When the cloud denies a machine, no client can see that it is locked. Its node is no instance, and two nodes are two
        // left-overs.
        let denied = is_of_denied(call, scene);
        let shown = ground_truth.changed_at + scene.roster.timing.cloud_stale_after + Span::from_s(30);
        // The cloud refuses calls on a locked machine, also from a client that has not seen the lock yet.
        if ground_truth.locked && !denied && self.now > shown {
            self.foul("locked", call.to_string());
        }
        let whole = !matches!(call, Call::DeleteNode(_));
        if whole && ground_truth.task && ground_truth.state != InstanceState::Building && self.now > shown {
            self.foul("an operator works on it", call.to_string());
        }
        if ground_truth.leaving {
            self.foul("it is being taken away", call.to_string());
        }
        if ground_truth.nodes > 1 && !denied {
            self.foul("contested", call.to_string());
        }
        if matches!(call, Call::DeleteNode(_)) && !scene.world.single_servers_were_denied_within(ASKED) {
            self.foul("its machine is there", call.to_string());
        }
        if matches!(call, Call::Reboot(_)) && ground_truth.first_boot_failed && self.evidence.contains_key(id)
        {
            self.foul("of no use", format!("{call}: its first boot failed"));
        }
    }

    fn judge_surroundings(
        &mut self,
        call: &Call,
        id: &InstanceId,
        ground_truth: &GroundTruth,
        scene: &Scene<'_>,
    ) {
        let dark = ground_truth.zone.as_ref().and_then(|zone| self.dark_since.get(zone)).copied();
        let just_back = ground_truth.zone.as_ref().and_then(|zone| self.back_at.get(zone));
        if just_back.is_some_and(|at| self.ago(*at) < BACK_FOR) {
            self.foul("zone just back", call.to_string());
        }
        if dark.is_some_and(|since| self.ago(since) > DARK_SHOWS) {
            self.foul("dark zone", call.to_string());
        }
        if self.fleet_dark_since.is_some_and(|since| self.ago(since) > DARK_SHOWS) {
            self.foul("dark fleet", call.to_string());
        }
        // As many as the roster tolerated when they fell silent froze nothing, however few are left of the others (seed 3604802).
        let froze = |still: &Standstill| {
            let tolerated = scene.roster.limits.tolerated(still.of);
            still.size > tolerated + 1 && still.lasted > DARK_SHOWS + DARK_SHOWS
        };
        if scene.world.comes_back_with(id).as_ref().is_some_and(froze) {
            self.foul("recovers with others", call.to_string());
        }
        let settled = self.sight_back() + scene.roster.timing.settle;
        if self.now < settled {
            self.foul("settling", format!("{call}: sight came back {} ago", self.ago(self.sight_back())));
        }
        let Some(pool) = ground_truth.pool.as_ref().and_then(|name| scene.roster.pools.get(name)) else {
            return;
        };
        let rolled = self.rolled.get(&pool.name).and_then(|(_, at)| *at);
        let quiet = scene.roster.timing.rollout_quiet;
        // A wait for the end of rollouts that follow one another would have none.
        let never_rests = |first: Time| self.ago(first) >= Span::from_min(60).max(quiet);
        let rolled = rolled.filter(|(_, first)| !never_rests(*first)).map(|(at, _)| at);
        // A process that was told of one image alone cannot know that its pool had another before (seed 3102868).
        let rolled = rolled.filter(|_| self.images_told.get(&pool.name).is_some_and(|told| told.len() > 1));
        // The clock of a process that took over may be a minute ahead of the one that noted it (seed 8532881).
        let is_quiet = |at: Time| self.ago(at) + Span::from_min(1) >= quiet;
        if rolled.is_some_and(|at| self.ago(at) > OTHERS_SHOW && !is_quiet(at)) {
            self.foul("rolling", call.to_string());
        }
        let others = self.foreign.values().any(|(at, of)| {
            let away = self.ago(*at);
            *of == pool.name && away > Span::from_min(3) && away < OTHERS_STAY
        });
        if others && !self.never_rests(&pool.name) && !matches!(call, Call::DeleteNode(_)) {
            self.foul("others delete there", call.to_string());
        }
        if matches!(call, Call::DeleteInstance(_)) {
            self.judge_replacing(call, id, ground_truth, pool, scene);
        }
    }

    /// Others have deleted there for an hour, each time within ten minutes of the last: a wait for their end would have none.
    fn never_rests(&self, pool: &PoolName) -> bool {
        let mut deleted: Vec<Span> =
            self.foreign.values().filter(|(_, of)| of == pool).map(|(at, _)| self.ago(*at)).collect();
        deleted.sort_unstable();
        let gaps = deleted.windows(2).take_while(|pair| pair[1] <= pair[0] + OTHERS_QUIET);
        let lasted = gaps.last().map_or(Span::ZERO, |pair| pair[1]);
        lasted + Span::from_min(1) >= Span::from_min(60)
    }

    /// Deleting so that another comes must have a prospect.
    fn judge_replacing(
        &mut self,
        call: &Call,
        id: &InstanceId,
        ground_truth: &GroundTruth,
        pool: &Pool,
        scene: &Scene<'_>,
    ) {
        // What others deleted a while ago shows in the lists; until then, one that goes and one that is gone are told alike, also
        // where the list of what changed leaves both out (seed 5351795).
        let unseen = |(at, of): &&(Time, PoolName)| *of == pool.name && self.ago(*at) < OTHERS_SHOW;
        let leaving = scene.world.leaving_from(&pool.name);
        let goes = leaving.filter(|(id, at)| self.ago(*at) < OTHERS_SHOW && !self.we_delete(id)).count();
        let told = scene.world.machines_of(&pool.name) + goes + self.foreign.values().filter(unseen).count();
        // One that goes already, by a deletion of ours whose answer was lost, is none of those that serve (4402004).
        let serves = ground_truth.state != InstanceState::Errored && !ground_truth.state.is_leaving();
        if told <= pool.min as usize && serves {
            self.foul("below the minimum", format!("{call}: its pool has {told}, and keeps {}", pool.min));
        }
        // As many as may be under way at once may be known to be in vain only later.
        let limit = scene.roster.limits.same_fault_stops_at as usize;
        let known_late = scene.roster.limits.at_once as usize;
        if self.limit_told.is_some_and(|limit| scene.world.routes_held() >= limit) {
            self.foul("no room for a successor", call.to_string());
        }
        let well_at = self.newest_join(&pool.name, scene);
        // A machine that is still there was not deleted: no call was made, or the call had no effect.
        let went = |id: &InstanceId| {
            scene.world.ground_truth(id).is_none_or(|ground_truth| ground_truth.state.is_leaving())
        };
        let since = |earlier: &&Deleted| {
            well_at.is_none_or(|joined| earlier.at > joined) && earlier.id != *id && went(&earlier.id)
        };
        let earlier = self.deletions.get(&pool.name).map_or(&[][..], |all| &all[..]);
        let vain = earlier.iter().filter(since).count();
        let alike = |earlier: &&Deleted| ground_truth.fault.is_some() && earlier.fault == ground_truth.fault;
        let same = earlier.iter().filter(since).filter(alike).count();
        if same >= limit {
            self.foul(
                "the same fault again",
                format!("{call}: {same} were deleted for it, and no machine joined"),
            );
        }
        if vain > limit + known_late {
            self.foul("in vain", format!("{call}: {vain} were replaced, and no machine joined"));
        }
    }

    /// A right that is lacking for the milder step is no reason for the harsher one; that its host broke meanwhile is.
    fn judge_refusals(
        &mut self,
        intent: IntentId,
        incident: IncidentId,
        call: &Call,
        ground_truth: &GroundTruth,
    ) {
        let checks = ground_truth.hosting.as_ref().map(|hosting| hosting.checks);
        if checks.is_some_and(|checks| checks.host == Check::Impaired) {
            return;
        }
        let reboots = |other: &Intent| other.incident == incident && matches!(other.call, Call::Reboot(_));
        let last = self.intents.range(..intent).map(|(_, other)| other).rfind(|other| reboots(other));
        if matches!(call, Call::DeleteInstance(_)) && last.is_some_and(|last| last.denied) {
            self.foul("past a refusal", format!("{call}: its reboot was forbidden, and never made"));
        }
    }

    /// A machine that an operator let boot, and that will be back, has the time that its roster gives it, from when the log of
    /// actions was read after that, or had to be.
    fn judge_let_boot(
        &mut self,
        call: &Call,
        id: &InstanceId,
        ground_truth: &GroundTruth,
        pool: &Pool,
        scene: &Scene<'_>,
    ) {
        let time = time_to_boot(pool);
        let Some(at) = scene.world.let_boot_at(id).filter(|_| ground_truth.comes_up) else { return };
        let had_to_be_read = |read: Time| self.ago(read) > LOG_LASTS + SLACK;
        let is_known = self.evidence.get(id).is_some_and(|read| at < *read || had_to_be_read(*read));
        if is_known && self.felt(at) + SLACK < time && !matches!(call, Call::DeleteNode(_)) {
            self.foul("let boot", format!("{call}: a person let it boot a moment ago"));
        }
    }

    /// A machine that was rebooted, boots, and will be back has the time that its roster gives it.
    fn judge_mid_boot(
        &mut self,
        call: &Call,
        id: &InstanceId,
        ground_truth: &GroundTruth,
        pool: &Pool,
        scene: &Scene<'_>,
    ) {
        let time = time_to_boot(pool);
        let Some(boot) = scene.world.booted_at(id).flatten().filter(|_| ground_truth.comes_up) else {
            return;
        };
        let reboots = |call: &Call| matches!(call, Call::Reboot(Reboot { instance, .. }) if instance == id);
        let rebooted = self.intents.values().any(|earlier| {
            let lately = |at: Time| at <= boot && at < self.now && self.felt(at) + SLACK < time;
            // A call may take effect minutes late. The controller sees that when it reads the action log once more before the
            // next step; no reader can know what happens after that read.
            let read = self.evidence.get(id);
            let too_late =
                earlier.failed_at.zip(read).is_some_and(|(failed, read)| failed <= *read && *read <= boot);
            let made = !earlier.came_to_nothing && earlier.called.is_some_and(lately);
            reboots(&earlier.call) && made && !too_late
        });
        if rebooted {
            self.foul("in mid-boot", format!("{call}: it is on its way up from its reboot"));
        }
    }

    /// What the trail says of the case itself.
    fn judge_case(
        &mut self,
        intent: IntentId,
        call: &Call,
        id: &InstanceId,
        ground_truth: &GroundTruth,
        scene: &Scene<'_>,
    ) {
        let Some(intended) = self.intents.get(&intent).cloned() else { return };
        let same = |other: &&Intent| {
            other.incident == intended.incident && kind_and_thing(&other.call) == kind_and_thing(call)
        };
        // A call without an answer and without any trace counts as not made, as no more can be known.
        let unmade = |other: &Intent| other.came_to_nothing || other.failed && !other.held;
        let made = |other: &&Intent| other.called.is_some_and(|at| at >= self.tried_from) && !unmade(other);
        let times = self.intents.values().filter(made).filter(same).count();
        if times > TOO_OFTEN {
            self.foul("too often", format!("{call}, for the {times}th time"));
        }
        let Some((kind, open)) = self.open_for(intended.incident) else { return };
        let pool = ground_truth.pool.as_ref().and_then(|name| scene.roster.pools.get(name));
        let Some(pool) = pool else { return };
        self.judge_refusals(intent, intended.incident, call, ground_truth);
        self.judge_mid_boot(call, id, ground_truth, pool, scene);
        self.judge_let_boot(call, id, ground_truth, pool, scene);
        let patience = match kind {
            FaultKind::NeverJoined => pool.deadlines.join_within.unwrap_or(Span::ZERO),
            FaultKind::NotReady => pool.deadlines.not_ready_within,
            FaultKind::Vanished => pool.deadlines.vanished_within,
            _ => Span::ZERO,
        };
        let asked = self.take_request(id, scene);
        if open + Span::from_s(1) < patience && !asked {
            self.foul("impatient", format!("{call}: seen {open} ago for the first time"));
        }
        let absence = matches!(kind, FaultKind::NeverJoined | FaultKind::NotReady | FaultKind::Vanished);
        let read = self.evidence.get(id).is_some_and(|at| self.ago(*at) <= EVIDENCE_LASTS);
        if absence && !read && !scene.world.cloud_is_silent() {
            self.foul("no evidence", format!("{call}: no client read its console or its log of actions"));
        }
        let root = self.open_since(id, FaultKind::GroupMissing).filter(|_| pool.repair.network != Mode::Off);
        // A port without port security takes no group, and who served without one for long is away for another reason.
        // Nor can one be mended where the cloud refuses every write (seed 7922587).
        let mendable =
            pool.repair.network == Mode::Act && ground_truth.takes_groups && !self.is_mended_in_vain(id);
        let explains = |at: Time| mendable || self.ago(at) < open + SERVED;
        if absence && root.is_some_and(explains) {
            self.foul("the root first", format!("{call}: it lacks its security group"));
        }
        if kind == FaultKind::NeverJoined
            && matches!(call, Call::DeleteInstance(_))
            && scene.world.was_there_before(id)
            && !ground_truth.first_boot_failed
        {
            self.foul("history unknown", format!("{call}: it is older than the watch"));
        }
        if matches!(call, Call::DeleteInstance(_)) {
            self.judge_keeping(call, intended.incident, ground_truth, pool);
            if kind == FaultKind::NotReady && pool.repair.reboot == Mode::Act {
                self.judge_gentler(call, intended.incident, ground_truth);
            }
        }
        let Some(domain) = intended.domain else { return };
        let pending = self.intents.values().filter(|other| {
            other.domain.as_ref() == Some(&domain)
                && other.kind == Some(kind)
                && other.incident != intended.incident
                && self.open.contains_key(&other.incident)
                && other.done_at.is_some()
                && machine_of(&other.call, scene).is_some()
        });
        let pending = pending.count();
        // A cleanup is proved by the Node being gone. Where the cloud denies the machine, the controller cannot know that the
        // machine is there all the same.
        if kind == FaultKind::Ghost && scene.world.single_servers_were_denied_within(ASKED) {
            return;
        }
        let proved = self
            .newest_join(&domain.pool, scene)
            .is_some_and(|at| self.acted.iter().any(|(then, c)| c.is_destructive() && *then < at));
        if pending > 0 && !proved {
            self.foul("one probe", format!("{call}: {pending} under way there, and none has helped yet"));
        }
    }
}

impl Oracle {
    /// The last try to put its group on a port of this machine came to nothing.
    fn is_mended_in_vain(&self, id: &InstanceId) -> bool {
        let of_it = |intent: &&Intent| self.is_of(intent.incident, id, FaultKind::GroupMissing);
        let last = self.intents.values().rfind(of_it);
        last.is_some_and(|last| last.failed || last.came_to_nothing)
    }

    /// A person's request waives the waiting, for one repair.
    fn take_request(&mut self, id: &InstanceId, scene: &Scene<'_>) -> bool {
        let Some(asked) = scene.world.repair_asked(id) else { return false };
        self.requests.insert(id.clone(), asked.clone()).as_ref() != Some(&asked)
    }

    /// Who was rebooted softly is power-cycled before it is given up. On a cloud that tells how it hosts its machines there may
    /// be reasons against that.
    fn judge_gentler(&mut self, call: &Call, incident: IncidentId, ground_truth: &GroundTruth) {
        let of_it = |wanted: bool| {
            let is_it =
                move |call: &Call| matches!(call, Call::Reboot(Reboot { hard, .. }) if *hard == wanted);
            self.intents.values().any(|other| other.incident == incident && is_it(&other.call))
        };
        if of_it(false) && !of_it(true) && ground_truth.hosting.is_none() && !ground_truth.first_boot_failed {
            self.foul("gentler first", format!("{call}: it was rebooted and never power-cycled"));
        }
    }

    /// Who is to be kept for a look is kept until its time is over, as far as there is room.
    fn judge_keeping(&mut self, call: &Call, incident: IncidentId, ground_truth: &GroundTruth, pool: &Pool) {
        let Some(keep) = pool.keep.filter(|keep| ground_truth.keep.unwrap_or(keep.failed)) else { return };
        let kept =
            |(of, until): &&(Option<PoolName>, Time)| of.as_ref() == Some(&pool.name) && self.now < *until;
        let early = match self.kept.get(&incident) {
            Some((_, until)) => self.now < *until,
            None => (self.kept.values().filter(kept).count() as u32) < keep.at_most,
        };
        if early {
            self.foul("kept for a look", call.to_string());
        }
    }
}

/// Its cloud denies the machine whose Node this deletes: no client can tell that it is there all the same.
pub(super) fn is_of_denied(call: &Call, scene: &Scene<'_>) -> bool {
    matches!(call, Call::DeleteNode(_)) && scene.world.single_servers_were_denied_within(ASKED)
}

/// The machine that a call is about, as the world knows it.
fn machine_of(call: &Call, scene: &Scene<'_>) -> Option<InstanceId> {
    match call {
        Call::AskAgent(AskAgent { instance, .. })
        | Call::Reboot(Reboot { instance, .. })
        | Call::Start(StartInstance { instance, .. })
        | Call::DeleteInstance(DeleteInstance { instance, .. }) => Some(instance.clone()),
        // Under another uid it is another object, which the API refuses to delete.
        Call::DeleteNode(DeleteNode { name, uid, boot_id }) => {
            scene.world.machine_behind(name, uid, boot_id.as_ref())
        }
        Call::SetPortGroups(SetPortGroups { port, .. }) | Call::AddPortPairs(AddPortPairs { port, .. }) => {
            scene.world.machine_of_port(port)
        }
        _ => None,
    }
}

/// What makes two calls the same: revisions and lists may differ.
fn kind_and_thing(call: &Call) -> (u8, String) {
    match call {
        Call::AddRules(AddRules { group, .. }) => (0, group.to_string()),
        Call::DropRule(DropRule { rule, .. }) => (1, rule.to_string()),
        Call::NudgeGroup(NudgeGroup { group, .. }) => (2, group.to_string()),
        Call::SetPortGroups(SetPortGroups { port, .. }) => (3, port.to_string()),
        Call::AddPortPairs(AddPortPairs { port, .. }) => (4, port.to_string()),
        Call::RemoveRoutes(RemoveRoutes { routes, .. }) => (5, format!("{routes:?}")),
        Call::AddRoutes(AddRoutes { routes, .. }) => (6, format!("{routes:?}")),
        Call::NudgeRouter(NudgeRouter { router, route, .. }) => (7, format!("{router} {}", route.next_hop)),
        Call::Reboot(Reboot { instance, .. }) => (8, instance.to_string()),
        Call::Start(StartInstance { instance, .. }) => (9, instance.to_string()),
        Call::DeleteInstance(DeleteInstance { instance, .. }) => (10, instance.to_string()),
        Call::DeleteNode(DeleteNode { uid, .. }) => (11, uid.to_string()),
        Call::AssignRoles(AssignRoles { user, roles, .. }) => {
            let names: Vec<&str> = roles.iter().map(|role| role.id.as_str()).collect();
            (12, format!("{user} {}", names.join(" ")))
        }
        Call::AskAgent(AskAgent { agent, .. }) => (13, agent.to_string()),
    }
}

/// The time that its roster gives a machine of this pool to boot and to stay well.
fn time_to_boot(pool: &Pool) -> Span {
    pool.deadlines.join_within.unwrap_or(Span::ZERO) + pool.deadlines.dwell
}
