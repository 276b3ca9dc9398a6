//! What must hold of an act at the moment of its call, where several repairs share it. The checks read the views directly
//! and do not ask the interlock again, because they would then pass with the interlock broken. The file of each repair
//! holds what must hold of that repair alone.

use std::collections::BTreeSet;
use std::fmt::Display;
use std::net::IpAddr;

use ipnet::IpNet;

use crate::model::host_name::is_one_host;
use crate::model::hosting::{GroupPhase, NoticeKind, OwnerGroup};
use crate::model::id::{CloudName, InstanceId, NodeName};
use crate::model::incident::MachineKey;
use crate::model::roster::{Mode, Pool};
use crate::model::violation::{Violation, ensure};
use crate::observe::agents::AgentSeen;
use crate::observe::cloud::Seen;
use crate::observe::sharing::ALIKE_MAX;
use crate::plan::context::PlanContext;

use super::Call;

/// What a check answers.
pub(super) type Checked = Result<(), Violation>;

/// The machine, where its cloud shows it.
pub(super) fn listed<'a>(
    context: &PlanContext<'a>,
    cloud: &CloudName,
    instance: &InstanceId,
) -> Option<&'a Seen> {
    context.clouds.get(cloud)?.instances.get(instance)
}

/// The machine that an act can hurt: an unknown one is not touched.
pub(super) fn known<'a>(seen: Option<&'a Seen>, what: &dyn Display) -> Result<&'a Seen, Violation> {
    seen.ok_or_else(|| Violation { invariant: 5, what: format!("{what}: that machine is not known") })
}

/// The pool that owns it.
pub(super) fn pool<'a>(
    context: &PlanContext<'a>,
    seen: &Seen,
    what: &dyn Display,
) -> Result<&'a Pool, Violation> {
    let pool = seen.pool().and_then(|name| context.roster.pools.get(name));
    pool.ok_or_else(|| Violation { invariant: 5, what: format!("{what}: no pool owns it") })
}

/// A call on an instance carries the marks of the one pool that claims the instance: what the performer compares with the
/// instance itself directly before the act.
pub(super) fn carries_marks(context: &PlanContext<'_>, call: &Call) -> Checked {
    let Some((cloud, instance, owned)) = call.owned() else { return Ok(()) };
    let pool =
        listed(context, cloud, instance).and_then(Seen::pool).and_then(|name| context.roster.pools.get(name));
    let is_its = pool.is_none_or(|pool| pool.owned == *owned);
    ensure(is_its, 5, || format!("{call}: the call carries other marks than those of its pool"))
}

/// What comes leads to pods of the roster: a route or an address pair of another network would give a machine the packets of
/// others.
pub(super) fn leads_to_pods(
    context: &PlanContext<'_>,
    what: &dyn Display,
    mut nets: impl Iterator<Item = IpNet>,
) -> Checked {
    let foreign = nets.find(|net| !context.roster.network.holds(net));
    ensure(foreign.is_none(), 5, || format!("{what}: a range that is none of the roster's"))
}

/// Who took a machine out, or sets it apart, may use it for something else: its ports and its agent are theirs, too.
pub(super) fn is_in_no_others_hands(
    context: &PlanContext<'_>,
    what: &dyn Display,
    cloud: &CloudName,
    instance: &InstanceId,
) -> Checked {
    let Some(seen) = listed(context, cloud, instance) else { return Ok(()) };
    ensure(seen.left.is_none(), 3, || format!("{what}: its node was removed on purpose"))?;
    let hosting = seen.instance.hosting.as_deref();
    let group = hosting.and_then(|hosting| hosting.group.as_ref());
    let notices = hosting.map_or(&[][..], |hosting| &hosting.notices);
    let theirs = [GroupPhase::Leaving, GroupPhase::Apart, GroupPhase::Reserve];
    let is_theirs = group.is_some_and(|group| theirs.contains(&group.phase))
        || notices.iter().any(|notice| notice.kind == NoticeKind::Interruption);
    ensure(!is_theirs, 5, || format!("{what}: its group or its provider has it in hand"))
}

/// What a group of the cloud keeps is never stopped beside it, and ended only through it, where the roster says so. `fights` says
/// whether the act goes against a group in this phase; its second argument tells whether the roster ends it through the group.
pub(super) fn fights_no_group(
    context: &PlanContext<'_>,
    what: &dyn Display,
    seen: &Seen,
    fights: impl Fn(&OwnerGroup, bool) -> bool,
) -> Checked {
    let hosting = seen.instance.hosting.as_ref();
    let Some(group) = hosting.and_then(|hosting| hosting.group.as_ref()) else { return Ok(()) };
    let pool = seen.pool().and_then(|name| context.roster.pools.get(name));
    let through = pool.is_some_and(|pool| pool.through_group) && !group.protected;
    ensure(!fights(group, through), 5, || format!("{what}: {group}"))
}

/// No Node that lives carries an identity of this machine and stands for another, or is its agent's own by the agent's word;
/// and none runs on it by its system UUID.
/// Read from every Node, without the index that the safeguard uses: calls are rare.
pub(super) fn is_not_contested(context: &PlanContext<'_>, what: &dyn Display, seen: &Seen) -> Checked {
    let silent_after = context.roster.timing.lease_silent_after;
    let lives = |name: &NodeName| {
        context.cluster.answers(name)
            || context.cluster.lease_age(name).is_some_and(|age| age <= silent_after)
    };
    let key = key_of(context, seen);
    let view = context.clouds.values().find(|view| view.instances.contains_key(&seen.instance.id));
    let are_few = |alike: &[InstanceId]| alike.len() <= ALIKE_MAX;
    let names: Vec<&str> = seen.instance.node_names().collect();
    let name_tells = |name: &str| view.is_none_or(|it| are_few(it.named(name)));
    let tells = |address: &IpAddr| view.is_none_or(|view| are_few(view.addressed(address)));
    let agents = key.iter().flat_map(|key| context.agents.of(key));
    let claimed: BTreeSet<&NodeName> =
        agents.filter_map(|(_, agent)| agent.report.who.node.as_ref()).collect();
    for (name, node) in &context.cluster.nodes {
        if seen.nodes.contains(name) {
            continue;
        }
        let runs_here = node.node.system_uuid.as_ref() == Some(&seen.instance.id);
        let own = node.link.as_ref().filter(|link| link.is_sure());
        let own = own.and_then(|link| listed(context, &link.cloud, &link.instance));
        let own = own.filter(|own| own.unlisted.is_none());
        // Its kubelet and its provider ID agree that it runs on its own instance, whatever addresses it writes besides.
        let by_own_word = |own: &Seen| {
            node.node.system_uuid.as_ref() == Some(&own.instance.id)
                || node.node.addresses.iter().any(|address| own.addresses.contains(address))
        };
        let address = |address: &&IpAddr| {
            let tells = || node.link.is_none() || tells(address);
            seen.addresses.contains(address) && tells() && !own.is_some_and(by_own_word)
        };
        // Those of several machines are no sign of this one; where none is surely its own, of three at least.
        let shows_others = || {
            let is_foreign = |address: &&IpAddr| !seen.addresses.contains(*address);
            let foreign: Vec<&IpAddr> = node.node.addresses.iter().filter(is_foreign).collect();
            let all = context.clouds.values().flat_map(|view| view.instances.values());
            let others = all.filter(|it| it.unlisted.is_none() && it.instance.id != seen.instance.id);
            let shown = others.filter(|it| foreign.iter().any(|address| it.addresses.contains(*address)));
            shown.take(2).count() > usize::from(own.is_none())
        };
        let shares_address = node.node.addresses.iter().any(|it| address(&it)) && !shows_others();
        let may_be = |wanted: &str| node.link.is_none() || name_tells(wanted);
        let shares_name = names.iter().any(|wanted| is_one_host(name.as_str(), wanted) && may_be(wanted))
            && own.is_none_or(|own| !own.instance.node_names().any(|known| names.contains(&known)));
        let shares = runs_here || (shares_address || shares_name || claimed.contains(&name)) && lives(name);
        ensure(!shares, 1, || format!("{what}: node {name} carries its identity"))?;
    }
    Ok(())
}

/// The machine, with the cloud that lists it.
pub(super) fn key_of(context: &PlanContext<'_>, seen: &Seen) -> Option<MachineKey> {
    let here = context.clouds.values().find(|view| view.instances.contains_key(&seen.instance.id));
    here.map(|view| MachineKey::Instance(view.name.clone(), seen.instance.id.clone()))
}

/// Neither was its Node removed on purpose, nor does its agent say that it is to go.
pub(super) fn is_meant_to_stay(context: &PlanContext<'_>, what: &dyn Display, seen: &Seen) -> Checked {
    ensure(seen.left.is_none(), 3, || format!("{what}: its node was removed on purpose"))?;
    let goes = key_of(context, seen).is_some_and(|key| context.agents.is_leaving(&key).is_some());
    ensure(!goes, 5, || format!("{what}: its agent says that it is to go"))
}

/// What must hold of every act that can cost a running machine or its Node, where the roster sets its class to `mode`.
pub(super) fn may_hurt(
    context: &PlanContext<'_>,
    what: &dyn Display,
    seen: &Seen,
    mode: fn(&Pool) -> Mode,
) -> Checked {
    is_silent(context, what, seen)?;
    is_in_sight(context, what, seen)?;
    let pool = pool(context, seen, what)?;
    let (marks, owned) = (&seen.instance.marks, &pool.owned);
    let is_ours =
        marks.contains(&owned.cluster) && owned.pool.as_ref().is_none_or(|mark| marks.contains(mark));
    ensure(is_ours, 5, || format!("{what}: its marks do not prove that it is ours"))?;
    let under_way = context.book.destructive_under_way();
    ensure(under_way <= context.roster.limits.at_once, 5, || format!("{what}: {under_way} repairs at once"))?;
    let begun = context.book.begun_within_hour(context.now);
    ensure(begun <= context.roster.limits.per_hour, 5, || {
        format!("{what}: {begun} repairs within the hour")
    })?;
    let count = context.counts.pool(&pool.name);
    let tolerated = context.roster.limits.tolerated(count.total());
    ensure(count.unhealthy <= tolerated, 5, || {
        format!("{what}: {} of {} have a problem", count.unhealthy, count.total())
    })?;
    ensure(mode(pool) == Mode::Act, 8, || format!("{what}: the roster does not allow it"))
}

/// Neither its Node, nor its lease, nor its agent says that it lives.
fn is_silent(context: &PlanContext<'_>, what: &dyn Display, seen: &Seen) -> Checked {
    let key = key_of(context, seen);
    let is_lost = key.as_ref().is_some_and(|key| context.cluster.lost_together.contains(key));
    let together = seen.nodes.is_empty() && is_lost;
    ensure(!together, 2, || format!("{what}: its Node went missing together with others"))?;
    let own = |name: &&NodeName| !context.cluster.is_anothers(name, &seen.instance.id);
    let mut its = seen.nodes.iter().chain(seen.joined.iter().filter(own));
    ensure(!its.any(|name| context.cluster.answers(name)), 1, || format!("{what}: its node is Ready"))?;
    let fresh = seen.nodes.iter().chain(seen.joined.iter().filter(own)).any(|name| {
        context.cluster.lease_age(name).is_some_and(|age| age <= context.roster.timing.lease_silent_after)
    });
    ensure(!fresh, 1, || format!("{what}: its lease is fresh"))?;
    let age = |agent: &AgentSeen| context.agents.silence(context.now, agent);
    let bound = context.roster.timing.agent_silent_after;
    let heard = key.is_some_and(|key| context.agents.of(&key).any(|(_, agent)| age(agent) <= bound));
    ensure(!heard, 1, || format!("{what}: its agent is fresh"))
}

/// Its cloud and the cluster are believed, the cluster is ours and has Nodes, and no outage explains the silence.
fn is_in_sight(context: &PlanContext<'_>, what: &dyn Display, seen: &Seen) -> Checked {
    check_outage(context, what)?;
    // Another project that cannot be read says nothing for or against it: who may share its identity is known from before.
    let own = context.clouds.values().find(|cloud| cloud.instances.contains_key(&seen.instance.id));
    let believed = own.is_some_and(|cloud| cloud.source.trust(context.now).is_given());
    ensure(believed, 2, || format!("{what}: its cloud cannot be believed"))?;
    let believed = context.cluster.source.trust(context.now).is_given();
    ensure(believed, 2, || format!("{what}: the cluster cannot be believed"))?;
    let (expected, found) = (context.cluster.identity.expected(), context.cluster.identity.found());
    let is_ours = expected.is_none() || found.is_none() || expected == found;
    ensure(is_ours, 2, || format!("{what}: another cluster answers"))?;
    let listed = context.cluster.nodes.values().any(|node| !node.lost);
    ensure(listed, 2, || format!("{what}: the cluster has no Node"))
}

/// No outage that agents tell of, unless most of the fleet, of which they are less than a fifth, is seen to renew its leases.
fn check_outage(context: &PlanContext<'_>, what: &dyn Display) -> Checked {
    let Some((_, agents)) = context.agents.outage(context.now) else { return Ok(()) };
    let (silent, leases) = context.cluster.silence();
    let others = (leases - silent).saturating_sub(agents as u32);
    let is_read = context.cluster.leases_listed(context.now) <= context.roster.timing.lease_silent_after;
    let otherwise = is_read && agents as u32 * 5 < leases && others * 2 > leases;
    ensure(otherwise, 5, || format!("{what}: agents say that the API server answers none of them"))
}
