//! Where a machine says that it answers its peers: an address of a peer, or nothing that anybody is told.
//!
//! Peers dial what they are told, each from where it stands. An address that means another place to each of them (its own
//! loopback, its own link, its own cloud's metadata), or no place at all, is none of a peer: whoever says it is up to something,
//! or its door listens where no peer can come. The machine is let in all the same, because its join does not depend on it; its
//! word is not kept.

use reveille_wire::agent::Facts;
use reveille_wire::agent::peer;
use reveille_wire::agent::text::Word;

/// Takes a place out that no peer has. What was taken out comes back.
pub(super) fn believed(facts: &mut Facts, also_loopback: bool) -> Option<Word> {
    facts.answers_at.take_if(|at| !is_of_a_peer(at, also_loopback))
}

/// An address and a port that peers can be told: an agent asks by the same rule.
pub(super) fn is_of_a_peer(at: &str, also_loopback: bool) -> bool {
    peer::address(at, also_loopback).is_some()
}
