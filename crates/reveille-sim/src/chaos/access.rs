//! Service users of a made-up fleet, and what happens to their roles.
//!
//! ```text
//!  seed ─ a stream of its own ─┬─▶ who there is, what each must hold, and what may be done  ─▶ Layout
//!                              └─▶ happenings beside those of the fleet                     ─▶ Draft
//! ```
//!
//! A stream of its own draws what happens to roles: a course draws the same for its machines whether it has service users or not.
//! A seed keeps its meaning: seeds below [`SEEDS_FROM`] were played before there were service users, and have none unless their
//! faults are named.

use std::sync::Arc;

use reveille_core::effect::ReadErrorKind;
use reveille_core::model::access::{RoleRef, UserRef};
use reveille_core::model::roster::Mode;
use reveille_core::model::roster::{Access, ServiceUser};
use reveille_core::model::time::Span;

use super::Happening;
use super::dice::{Dice, Drawn, one};
use super::entry::{Entry, catalog};
use crate::rng::Rng;
use crate::world::access::{role_id, user_id};
use crate::world::fault::Fault;
use crate::world::layout::CLOUD;

/// The first seed that has service users of itself.
pub const SEEDS_FROM: u64 = 1_000_000;

/// Whom a cluster has, and what each needs.
const USERS: [(&str, &[&str]); 3] = [
    ("cloud-controller", &["member", "network_admin", "loadbalancer_user"]),
    ("volumes", &["member", "volume_admin"]),
    ("registry", &["object_user"]),
];

catalog! {
    /// What can happen to the roles of service users.
    "role-lost" 6 "a service user loses a role"
        |dice| {
            let (user, role) = dice.holder();
            one(Fault::RoleLost(user, role))
        };
    "role-given" 3 "a service user loses a role, and a while later an operator gives it back"
        |dice| {
            let ((user, role), after) = (dice.holder(), dice.rng.span(Span::from_s(20), Span::from_min(150)));
            let lost = Happening::Fault(Fault::RoleLost(user.clone(), role.clone()));
            vec![(Span::ZERO, lost), (after, Happening::Fault(Fault::RoleGiven(user, role)))]
        };
    "role-slips" 2 "a service user loses a role again and again, as where some tool takes away what it does not know"
        slips;
    "roles-untold" 3 "Keystone refuses to say who holds which role"
        |dice| {
            let lasts = dice.rng.span(Span::from_min(1), Span::from_min(180));
            one(Fault::RolesUntold(ReadErrorKind::Forbidden, lasts))
        };
    "roles-fail" 3 "asked who holds which role, Keystone answers 503, not in time, or with half a list that is noticed"
        |dice| {
            let lasts = dice.rng.span(Span::from_min(1), Span::from_min(60));
            let kinds = [ReadErrorKind::Unavailable, ReadErrorKind::TimedOut, ReadErrorKind::Incomplete];
            one(Fault::RolesUntold(kinds[dice.rng.below(3) as usize], lasts))
        };
    "roles-stale" 4 "Keystone goes on telling who held which role a while ago"
        |dice| {
            let lasts = dice.rng.span(Span::from_s(10), Span::from_min(20));
            one(Fault::RolesStale(lasts))
        };
    "roles-ungiven" 2 "Keystone does not let us give a role"
        |dice| {
            let lasts = dice.rng.span(Span::from_min(5), Span::from_min(180));
            one(Fault::RolesUngiven(lasts))
        };
}

fn slips(dice: &mut Dice) -> Drawn {
    let (user, role) = dice.holder();
    let every = dice.rng.span(Span::from_min(2), Span::from_min(30));
    let times = 3 + dice.rng.below(10) as i64;
    let lost = |turn: i64| {
        let fault = Fault::RoleLost(user.clone(), role.clone());
        (Span::from_ms(every.ms * turn), Happening::Fault(fault))
    };
    (0..times).map(lost).collect()
}

/// The service users of a fleet: one to three, named and meant in either way, and what may be done for them.
pub(super) fn drawn(rng: &mut Rng) -> Access {
    let count = 1 + rng.below(USERS.len() as u64) as usize;
    let user = |(name, roles): &(&str, &[&str])| {
        let by_id = rng.chance(30);
        let user = match by_id {
            true => UserRef::Id(user_id(name)),
            false => UserRef::Name { name: Arc::from(*name), domain: None },
        };
        let role = |name: &&str| match rng.chance(30) {
            true => RoleRef::Id(role_id(name)),
            false => RoleRef::Name(Arc::from(*name)),
        };
        let roles = roles.iter().map(role).collect();
        ServiceUser { cloud: CLOUD.into(), user: Arc::new(user), roles }
    };
    let users = USERS[..count].iter().map(user).collect();
    let repair = [Mode::Act, Mode::Act, Mode::Propose, Mode::Off][rng.below(4) as usize];
    let check_every = Span::from_min([5, 20, 60][rng.below(3) as usize]);
    Access { users, repair, check_every }
}

/// Whom there is, and what each must hold, by name: what faults strike.
pub(super) fn holders(access: &Access) -> Vec<(Arc<str>, Arc<str>)> {
    let known = USERS.iter().take(access.users.len());
    known.flat_map(|(user, roles)| roles.iter().map(|role| (Arc::from(*user), Arc::from(*role)))).collect()
}
