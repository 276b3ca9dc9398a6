//! What one agent asks another: whether it reaches the API server. There is one fixed request and one short answer.
//!
//! ```text
//!  GET /v1/api HTTP/1.1        over TLS 1.3, both with the certificates that the registration server gave them
//!  {"api":"answers","age_s":3}
//! ```
//!
//! The answer is what the machine itself saw and how long ago, by its own clock between two of its own readings. An agent
//! cannot ask or order anything else.

use std::net::{IpAddr, Ipv4Addr, Ipv6Addr, SocketAddr};

use serde::{Deserialize, Serialize};

use super::text::Word;

/// The whole request of the agent that asks. It has no host name, because the certificate identifies the receiver.
pub const REQUEST: &[u8] = b"GET /v1/api HTTP/1.1\r\nhost: peer\r\nconnection: close\r\n\r\n";
/// Longest answer, its head included, bytes.
pub const ANSWER_BYTES_MAX: usize = 1024;

/// Addresses at which a cloud's own services answer, such as the metadata service, and never a machine: Alibaba's, Azure's.
const OF_CLOUDS: [Ipv4Addr; 2] = [Ipv4Addr::new(100, 100, 100, 200), Ipv4Addr::new(168, 63, 129, 16)];
/// The same in IPv6, by their first 32 bits: those of EC2, Google and Scaleway.
const OF_CLOUDS_V6: [[u16; 2]; 3] = [[0xfd00, 0x0ec2], [0xfd20, 0x00ce], [0xfd00, 0x0042]];

/// The address at which a machine says that its agent answers. `None` for addresses that no machine has, in any notation:
/// link-local, multicast, unspecified, reserved, and those of clouds' own services (metadata). A loopback address of this
/// machine is valid only with `may_be_here`.
pub fn address(text: &str, may_be_here: bool) -> Option<SocketAddr> {
    let at: SocketAddr = text.parse().ok()?;
    let is_machines = match at.ip().to_canonical() {
        here if here.is_loopback() => may_be_here,
        IpAddr::V4(ip) => is_machines(ip),
        IpAddr::V6(ip) => is_machines_v6(ip),
    };
    (is_machines && at.port() != 0).then_some(at)
}

fn is_machines(ip: Ipv4Addr) -> bool {
    let [first, second, third, _] = ip.octets();
    let is_reserved = first == 0 || first >= 240 || [first, second, third] == [192, 0, 0];
    !(is_reserved || ip.is_loopback() || ip.is_link_local() || ip.is_multicast() || OF_CLOUDS.contains(&ip))
}

fn is_machines_v6(ip: Ipv6Addr) -> bool {
    let parts = ip.segments();
    let of = |high: u16, low: u16| Ipv4Addr::from((u32::from(high) << 16) | u32::from(low));
    match parts {
        // This notation held an IPv4 address for that address alone; no network assigns these addresses any more.
        [0, 0, 0, 0, 0, 0, ..] => false,
        // A translator or a tunnel forwards to the IPv4 address in it.
        [0x64, 0xff9b, .., high, low] | [0x2002, high, low, ..] => is_machines(of(high, low)),
        _ => {
            let is_clouds = OF_CLOUDS_V6.contains(&[parts[0], parts[1]]);
            !(ip.is_unicast_link_local() || ip.is_multicast() || is_clouds)
        }
    }
}

/// What a machine saw of the API server.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Saw {
    /// `answers`, `silent`, or `cannot-tell`; the reader ignores a word that it does not know.
    pub api: Word,
    /// How long ago, seconds.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub age_s: Option<u32>,
}

impl Saw {
    /// The API server answered.
    pub const ANSWERS: &'static str = "answers";
    /// The API server did not answer.
    pub const SILENT: &'static str = "silent";
    /// The machine has not asked the API server yet.
    pub const CANNOT_TELL: &'static str = "cannot-tell";
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn address_that_no_machine_can_have_is_refused() {
        for text in [
            "169.254.169.254:80",
            "169.254.170.2:80",
            "100.100.100.200:80",
            "168.63.129.16:80",
            "192.0.0.192:80",
            "0.0.0.0:9465",
            "0.1.2.3:9465",
            "224.0.0.1:9465",
            "255.255.255.255:9465",
            "240.0.0.1:9465",
            "[::]:9465",
            "[ff02::1]:9465",
            "[fe80::1]:9465",
            "[fe80::1%3]:9465",
            "[fd00:ec2::254]:80",
            "[fd20:ce::254]:80",
            "[::ffff:169.254.169.254]:80",
            "[::169.254.169.254]:80",
            "[64:ff9b::a9fe:a9fe]:80",
            "[64:ff9b:1::a9fe:a9fe]:80",
            "[64:ff9b::7f00:1]:80",
            "[2002:a9fe:a9fe::1]:80",
            "10.0.0.1:0",
            "10.0.0.1",
            "metadata.google.internal:80",
            "0xa9fea9fe:80",
            "2852039166:80",
            "169.254.43518:80",
            "",
        ] {
            assert_eq!(address(text, true), None, "{text}");
        }
        for text in ["127.0.0.1:9465", "127.9.9.9:9465", "[::1]:9465", "[::ffff:127.0.0.1]:9465"] {
            assert_eq!((address(text, false), address(text, true).is_some()), (None, true), "{text}");
        }
        for text in [
            "10.0.0.1:9465",
            "192.168.1.1:9465",
            "100.64.0.9:9465",
            "203.0.113.9:9465",
            "[2001:db8::1]:9465",
            "[fd12:3456::1]:9465",
            "[64:ff9b::a00:1]:9465",
        ] {
            assert!(address(text, false).is_some(), "{text}");
        }
    }
}
