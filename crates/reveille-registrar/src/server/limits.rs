//! The number of connections of each kind, and the number of descriptors that the process has for them.
//!
//! ```text
//!  Limits ─▶ the descriptors of the process, raised where the system allows ─▶ kept for itself ─▶ half-open, anonymous, known
//! ```
//!
//! The limits are cut to what the process can open, so that the operating system never refuses a descriptor. It would
//! refuse everything alike: known machines, operators at the admin socket, the ledger. The server does not measure again
//! while it runs.

use std::time::Duration;

use rustix::process::{Resource, Rlimit, getrlimit, setrlimit};

/// Descriptors kept for other uses than machines' connections: the ledger, the admin socket, the APIs of clusters and
/// clouds.
const OWN: usize = 256;
/// Connections that may be accepted before closed ones have gone.
pub(super) const SLACK: usize = 64;

/// The limits.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Limits {
    /// Connections in total. Where the process may open fewer, each kind has fewer.
    pub connections_max: usize,
    /// Connections without a ClientHello, in total.
    pub silent_max: usize,
    /// Connections without a ClientHello, from one address.
    pub silent_per_address_max: usize,
    /// Handshakes under way, in total.
    pub half_open_max: usize,
    /// Handshakes under way, from one address.
    pub half_open_per_address_max: usize,
    /// Connections without a certificate of a machine, in total.
    pub anonymous_max: usize,
    /// Connections without a certificate of a machine, from one address.
    pub anonymous_per_address_max: usize,
    /// Connections of machines with a certificate, and of clients with the token of an open invitation.
    pub known_max: usize,
    /// Connections of one machine that are not sessions: a poll and the one before, a renewal, and leftovers of a broken
    /// network.
    pub per_machine_max: usize,
    /// Sessions of one machine over a WebSocket: the newest welcomed one ends the others.
    pub sessions_per_machine_max: usize,
    /// Connections with one token at once: a rack of machines that come together.
    pub per_invitation_max: usize,
    /// The time limit of each step of a client: the handshake, the headers of a request, its body, the first frame, a
    /// frame that the server sends.
    pub step_within: Duration,
    /// The time limit of a connection that did not become a WebSocket: a client that takes no answers, or asks again and
    /// again, loses its place. An agent makes one request on each connection; the longest is a poll that the server holds
    /// for 25 s.
    pub connection_within: Duration,
}

impl Limits {
    /// The limits without other settings, where the operating system allows them.
    pub const STANDARD: Self = Self {
        connections_max: 20_000,
        silent_max: 512,
        silent_per_address_max: 64,
        half_open_max: 1024,
        half_open_per_address_max: 512,
        anonymous_max: 1024,
        anonymous_per_address_max: 128,
        known_max: 20_000,
        per_machine_max: 8,
        sessions_per_machine_max: 4,
        per_invitation_max: 64,
        step_within: Duration::from_secs(10),
        connection_within: Duration::from_secs(120),
    };

    /// The limits for a process with this many descriptors. An eighth is for silent connections, an eighth for
    /// handshakes, an eighth for anonymous connections, half of each for one address. The rest is for known machines.
    pub(super) fn fitted(self, descriptors: usize) -> Self {
        let own = (OWN + SLACK).min(descriptors / 2);
        let connections_max = self.connections_max.min(descriptors - own).max(8);
        let eighth = connections_max / 8;
        let silent_max = self.silent_max.min(eighth);
        let half_open_max = self.half_open_max.min(eighth);
        let anonymous_max = self.anonymous_max.min(eighth);
        let of_address = |wished: usize, all: usize| wished.min(all.div_ceil(2));
        Self {
            connections_max,
            silent_max,
            silent_per_address_max: of_address(self.silent_per_address_max, silent_max),
            half_open_max,
            half_open_per_address_max: of_address(self.half_open_per_address_max, half_open_max),
            anonymous_max,
            anonymous_per_address_max: of_address(self.anonymous_per_address_max, anonymous_max),
            known_max: self.known_max.min(connections_max - silent_max - half_open_max - anonymous_max),
            ..self
        }
    }
}

impl Default for Limits {
    fn default() -> Self {
        Self::STANDARD
    }
}

/// Raises the process's limit as far as these connections need and the operating system allows, and returns the limit.
pub(super) fn descriptors(limits: &Limits) -> usize {
    let wished = (limits.connections_max + OWN + SLACK) as u64;
    let before = getrlimit(Resource::Nofile);
    let Some(current) = before.current.filter(|current| *current < wished) else {
        return before.current.map_or(usize::MAX, |current| usize::try_from(current).unwrap_or(usize::MAX));
    };
    let raised = before.maximum.map_or(wished, |most| most.min(wished)).max(current);
    let stands = setrlimit(Resource::Nofile, Rlimit { current: Some(raised), maximum: before.maximum });
    usize::try_from(if stands.is_ok() { raised } else { current }).unwrap_or(usize::MAX)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn connection_limits_fit_descriptors_and_prefer_known_machines() {
        for descriptors in [0, 1, 64, 256, 1024, 4096, 20_000, 1 << 20, usize::MAX] {
            let fitted = Limits::STANDARD.fitted(descriptors);
            let all = fitted.silent_max + fitted.half_open_max + fitted.anonymous_max + fitted.known_max;
            assert!(all <= fitted.connections_max, "{descriptors}: {fitted:?}");
            assert!(descriptors < 16 || fitted.connections_max < descriptors, "{descriptors}: {fitted:?}");
            assert!(fitted.known_max * 2 >= fitted.connections_max, "{descriptors}: {fitted:?}");
            assert!(
                fitted.silent_per_address_max >= 1
                    && fitted.half_open_per_address_max >= 1
                    && fitted.anonymous_per_address_max >= 1
            );
        }
        let of_a_service = Limits::STANDARD.fitted(1024);
        assert_eq!((of_a_service.known_max, of_a_service.anonymous_per_address_max), (440, 44));
    }
}
