//! What listings and refusals taught of routes: next hops that are in use nowhere, and how many routes a router holds.
//!
//! ```text
//!  a review of the router ─▶ note_dead ─▶ dead since ─┐
//!  "one of them is in use" ─▶ doubt ──────────────────┴▶ a removal takes what is proved dead, and what is doubted alone
//!  "the router is full" ─▶ learn_limit ─▶ limit, believed for a while
//! ```
//!
//! A next hop is believed dead when a later listing of every cloud agrees. `diagnose::network::routes` says which are dead now;
//! this remembers since when.

use std::collections::{BTreeMap, BTreeSet};
use std::net::IpAddr;

use crate::model::id::RouterId;
use crate::model::jump::Jump;
use crate::model::time::{Span, Time};

/// What is remembered of routers and next hops.
#[derive(Clone, Debug, Default)]
pub struct RouteMemory {
    /// What refusals said of routers that are full, and when.
    limits: BTreeMap<RouterId, (Time, u32)>,
    /// Next hops of the router that are in use nowhere, and when that was first found.
    dead: BTreeMap<IpAddr, Time>,
    /// Next hops of a removal that was refused because one of them is in use: each is tried alone.
    doubted: BTreeSet<IpAddr>,
}

impl RouteMemory {
    /// Next hops that are in use nowhere, and since when.
    pub const fn dead_since(&self) -> &BTreeMap<IpAddr, Time> {
        &self.dead
    }

    /// A removal with this next hop among others was refused.
    pub fn is_doubted(&self, hop: &IpAddr) -> bool {
        self.doubted.contains(hop)
    }

    /// Exactly these next hops are dead now. For a hop that a port uses again, or that is no next hop any more, the time starts
    /// from zero, and for all of them where nothing can be proved.
    pub fn note_dead(&mut self, now: Time, dead: BTreeSet<IpAddr>, can_prove_dead: bool) {
        if !can_prove_dead {
            self.dead.clear();
            return;
        }
        let known = std::mem::take(&mut self.dead);
        let since = |hop: IpAddr| (hop, known.get(&hop).copied().unwrap_or(now));
        self.doubted.retain(|hop| dead.contains(hop));
        self.dead = dead.into_iter().map(since).collect();
    }

    /// A removal of routes was refused because one of these next hops is in use; which one is not said. Each is proved again by a
    /// listing of every cloud. One that was alone is in use where no listing of ours shows it, and is left alone for so long.
    pub fn doubt(&mut self, now: Time, hops: &[IpAddr], alone_for: Span) {
        let alone = if hops.len() == 1 { alone_for } else { Span::ZERO };
        for hop in hops {
            self.dead.insert(*hop, now + alone);
            self.doubted.insert(*hop);
        }
    }

    /// How many routes this router holds, as a refusal within this time said.
    pub fn limit(&self, router: &RouterId, now: Time, believed_for: Span) -> Option<u32> {
        self.limits.get(router).filter(|(at, _)| now.since(*at) < believed_for).map(|(_, limit)| *limit)
    }

    /// A refusal says how many it holds.
    pub fn learn_limit(&mut self, at: Time, router: &RouterId, limit: u32) {
        self.limits.insert(router.clone(), (at, limit));
    }

    /// It has room. Should it be full again, the next refusal says so.
    pub fn forget_limit(&mut self, router: &RouterId) {
        self.limits.remove(router);
    }

    /// Its times go over a jump. Two listings have to agree, some time apart.
    pub fn over(&mut self, jump: Jump) {
        let Self { limits, dead, doubted: _ } = self;
        jump.counts(dead.values_mut());
        jump.stands(limits.values_mut().map(|(at, _)| at));
    }

    /// The clock went back.
    pub fn go_back_to(&mut self, now: Time) {
        self.dead.values_mut().for_each(|since| *since = (*since).min(now));
        self.limits.values_mut().for_each(|(at, _)| *at = (*at).min(now));
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn hops(last: &[u8]) -> Vec<IpAddr> {
        last.iter().map(|last| IpAddr::from([10, 0, 0, *last])).collect()
    }

    #[test]
    fn hop_is_dead_since_the_first_of_the_reviews_that_agree() {
        let (mut routes, at) = (RouteMemory::default(), |s: i64| Time::from_ms(s * 1000));
        let mut review = |s: i64, dead: &[u8], can_prove: bool| {
            routes.note_dead(at(s), hops(dead).into_iter().collect(), can_prove);
            routes.dead_since().values().map(|since| since.ms / 1000).collect::<Vec<_>>()
        };
        assert_eq!(review(10, &[1, 2], true), [10, 10]);
        assert_eq!(review(20, &[2, 3], true), [10, 20]);
        assert_eq!(review(30, &[1, 2, 3], false), [] as [i64; 0]);
        assert_eq!(review(40, &[2], true), [40]);
    }

    #[test]
    fn refused_route_hops_are_doubted_and_single_hop_waits_longer() {
        let (mut routes, now, long) = (RouteMemory::default(), Time::from_ms(5000), Span::from_min(30));
        routes.doubt(now, &hops(&[1, 2]), long);
        routes.doubt(now, &hops(&[3]), long);
        let since: Vec<Time> = routes.dead_since().values().copied().collect();
        assert_eq!(since, [now, now, now + long]);
        routes.note_dead(now, hops(&[1]).into_iter().collect(), true);
        let doubted = hops(&[1, 2, 3]).iter().map(|hop| routes.is_doubted(hop)).collect::<Vec<_>>();
        assert_eq!(doubted, [true, false, false], "of the others a port uses, or nothing leads there");
    }

    #[test]
    fn limit_is_believed_for_a_while() {
        let (mut routes, router) = (RouteMemory::default(), RouterId::from("r"));
        routes.learn_limit(Time::from_ms(0), &router, 30);
        let believed = |s: i64| routes.limit(&router, Time::from_ms(s * 1000), Span::from_s(60));
        assert_eq!([believed(59), believed(60)], [Some(30), None]);
        routes.forget_limit(&router);
        assert_eq!(routes.limit(&router, Time::from_ms(0), Span::from_s(60)), None);
    }
}
