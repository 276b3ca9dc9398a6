//! Where a machine says that it answers its peers: an address at which a peer can be, or an address that the server tells
//! no peer.
//!
//! Each peer dials the address that it is told, from its own place in the network. Some addresses mean another place for
//! each peer (its own loopback, its own link, its own cloud's metadata) or no place at all. No peer is at such an
//! address: the machine that says it has a bad intent, or it listens where no peer can reach it. The server still admits
//! the machine, because its join does not depend on the address; it does not keep the address.

use reveille_wire::agent::Facts;
use reveille_wire::agent::peer;
use reveille_wire::agent::text::Word;

/// Removes an address at which no peer can be, and returns it.
pub(super) fn believed(facts: &mut Facts, also_loopback: bool) -> Option<Word> {
    facts.answers_at.take_if(|at| !is_of_a_peer(at, also_loopback))
}

/// True for an address and a port that peers can be told: an agent uses the same rule.
pub(super) fn is_of_a_peer(at: &str, also_loopback: bool) -> bool {
    peer::address(at, also_loopback).is_some()
}
