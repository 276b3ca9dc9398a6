//! A lost answer, and which client gets it again.

use reveille_core::model::time::Span;

use super::world::*;

const DAY: Span = Span::from_min(24 * 60);

/// A copy of a disk from a month ago holds an expired certificate and an expired token.
#[test]
fn expired_token_and_certificate_yield_no_new_certificate() {
    let mut world = World::new();
    let invited = world.invite(|wish| wish.ttl = Span::from_min(30 * 24 * 60));
    certified(world.enrol(&invited, &machine(1)));
    for _ in 0..30 {
        world.pass(DAY);
    }
    let mut other = machine(1);
    other.key = crate::registry::KeyHash([99; 32]);
    assert_eq!(refused(world.enrol(&invited, &other)), "TOKEN_EXPIRED", "with another key");
    assert_eq!(
        refused(world.enrol(&invited, &machine(1))),
        "TOKEN_EXPIRED",
        "with the key whose certificate is over"
    );
}

#[test]
fn answer_is_not_repeated_after_session_and_invitation_expiry() {
    let mut world = World::new();
    let invited = world.invite(|_| {});
    let id = certified(world.enrol(&invited, &machine(1)));
    world.pass(DAY);
    assert_eq!(certified(world.branch().enrol(&invited, &machine(1))), id, "it may have been lost");
    world.arrive(&id, &machine(1));
    for _ in 0..2 {
        assert_eq!(refused(world.branch().enrol(&invited, &machine(1))), "TOKEN_EXPIRED");
        world.restart();
    }
}
