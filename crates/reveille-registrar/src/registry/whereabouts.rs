//! Where a machine says that it answers its peers: an address of a peer, or nothing that anybody is told.
//!
//! Peers dial what they are told, each from where it stands. An address that means another place to each of them (its own
//! loopback, its own link, its own cloud's metadata), or no place at all, is none of a peer: whoever says it is up to something,
//! or its door listens where no peer can come. The machine is let in all the same, because its join does not depend on it; its
//! word is not kept.

use std::net::{IpAddr, Ipv4Addr, Ipv6Addr, SocketAddr};

use reveille_wire::agent::Facts;
use reveille_wire::agent::text::Word;

/// Where clouds answer their own machines alone, beside the link-local addresses: Alibaba, Azure, EC2, Google and Scaleway.
const OF_CLOUDS: [IpAddr; 5] = [
    IpAddr::V4(Ipv4Addr::new(100, 100, 100, 200)),
    IpAddr::V4(Ipv4Addr::new(168, 63, 129, 16)),
    IpAddr::V6(Ipv6Addr::new(0xfd00, 0xec2, 0, 0, 0, 0, 0, 0x254)),
    IpAddr::V6(Ipv6Addr::new(0xfd20, 0xce, 0, 0, 0, 0, 0, 0x254)),
    IpAddr::V6(Ipv6Addr::new(0xfd00, 0x42, 0, 0, 0, 0, 0, 0x42)),
];

/// Takes a place out that no peer has. What was taken out comes back.
pub(super) fn believed(facts: &mut Facts, also_loopback: bool) -> Option<Word> {
    facts.answers_at.take_if(|at| !is_of_a_peer(at, also_loopback))
}

/// An address and a port that peers can be told.
pub(super) fn is_of_a_peer(at: &str, also_loopback: bool) -> bool {
    let Ok(at) = at.parse::<SocketAddr>() else { return false };
    let address = at.ip().to_canonical();
    at.port() != 0 && (is_a_place(address) || also_loopback && address.is_loopback())
}

fn is_a_place(address: IpAddr) -> bool {
    if OF_CLOUDS.contains(&address) {
        return false;
    }
    match address {
        IpAddr::V4(four) => {
            // "This network", what the IETF keeps for protocols (one cloud's metadata among it), and all that is reserved.
            let reserved = matches!(four.octets(), [0 | 240..=255, ..] | [192, 0, 0, _]);
            !(reserved || four.is_loopback() || four.is_link_local() || four.is_multicast())
        }
        IpAddr::V6(six) => match six.segments() {
            // Addresses of version 4 behind a translator (RFC 6052).
            [0x64, 0xff9b, 0, 0, 0, 0, high, low] => {
                let [a, b] = high.to_be_bytes();
                let [c, d] = low.to_be_bytes();
                is_a_place(Ipv4Addr::new(a, b, c, d).into())
            }
            // Unspecified, loopback, and a form of addresses of version 4 that nobody uses any more.
            [0, 0, 0, 0, 0, 0, ..] => false,
            _ => !(six.is_unicast_link_local() || six.is_multicast()),
        },
    }
}
