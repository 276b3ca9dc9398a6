//! The way to the API server: a named server, a route, its address, a connection.

use std::net::IpAddr;

use super::facts::{Aim, Facts};
use super::found::{Found, known, why, word};
use super::reading::Reading;
use super::server::{Connect, Lookup, Server};

/// The best result over all servers: one server that the machine reaches is enough.
pub(super) fn best(facts: &Facts, judge: impl Fn(&Server, &Aim) -> Found) -> Found {
    use super::found::Result::{CannotTell, Failed, Passed, Skipped, Warned};
    let Some(Some(aim)) = facts.aim.read() else {
        return Found::skipped("no API server is named");
    };
    let rank = |found: &Found| match found.result {
        Passed => 0,
        Warned => 1,
        CannotTell => 2,
        Failed => 3,
        Skipped => 4,
    };
    let all = facts.servers.iter().map(|server| judge(server, aim));
    // Of several equally good results the first wins, in the order in which the servers are named.
    all.reduce(|best, next| if rank(&next) < rank(&best) { next } else { best })
        .unwrap_or_else(|| Found::cannot_tell("no API server was asked"))
}

pub(super) fn target(facts: &Facts) -> Found {
    match &facts.aim {
        Reading::Read(Some(aim)) => {
            let to =
                facts.servers.iter().map(|server| server.endpoint.as_str()).collect::<Vec<_>>().join(", ");
            Found::passed(format!("{to}, after {}", aim.told_by))
        }
        Reading::Read(None) => Found::skipped(
            "no API server is named, and nothing of a join is on this machine: give HOST:PORT, or --config FILE",
        ),
        Reading::CannotTell(why) => Found::cannot_tell(why.to_string()),
    }
}

pub(super) fn route(facts: &Facts) -> Found {
    let routes = known!(facts.network.routes);
    let line = |address: Option<IpAddr>| {
        let route =
            routes.iter().filter(|route| address.is_none_or(|address| route.covers(address))).max_by_key(
                |route| if address.is_some() { route.prefix_bits } else { u8::MAX - route.prefix_bits },
            )?;
        Some(format!("route to {}/{} over {}", route.to, route.prefix_bits, route.device))
    };
    let mend = |says: String| {
        Found::failed(says)
            .lines(
                routes.iter().take(8).map(|route| {
                    format!("route to {}/{} over {}", route.to, route.prefix_bits, route.device)
                }),
            )
            .cause("no-network-at-boot")
            .advise("see whether the device is up and has its address, and where its gateway is to come from")
            .run("ip -br address; ip route; ip -6 route")
            .run("networkctl status --no-pager || nmcli device")
    };
    best(facts, |server, _| {
        let addresses = match server.lookup.read() {
            Some(Lookup::Found(addresses)) => addresses.as_slice(),
            _ => &[],
        };
        // A server on this machine needs no route.
        if let Some(own) = addresses.iter().find(|address| address.is_loopback()) {
            return Found::passed(format!("{own} is this machine itself"));
        }
        if let Some(line) = addresses.iter().find_map(|address| line(Some(*address))) {
            return Found::passed(format!("there is one to {}", server.endpoint)).line(line);
        }
        match (addresses, line(None)) {
            ([], Some(any)) => Found::passed("there are routes").line(any),
            ([], None) => mend("there is no route at all".to_owned()),
            ([address, ..], _) => mend(format!("no route leads to {address}, and there is no default route")),
        }
    })
}

pub(super) fn dns(facts: &Facts) -> Found {
    let asked = || facts.network.asked.iter().map(|(resolver, said)| format!("{resolver} says: {said}"));
    let servers = match &facts.network.resolvers {
        Reading::Read(servers) if servers.is_empty() => "resolv.conf names no server".to_owned(),
        Reading::Read(servers) => {
            format!(
                "resolv.conf names {}",
                servers.iter().map(ToString::to_string).collect::<Vec<_>>().join(", ")
            )
        }
        Reading::CannotTell(why) => format!("resolv.conf cannot be read: {why}"),
    };
    best(facts, |server, _| {
        let host = &server.host;
        if host.parse::<IpAddr>().is_ok() {
            return Found::passed(format!("{host} is an address and needs none"));
        }
        let mend = |says: String, words: &str| {
            Found::failed(says)
                .line(servers.clone())
                .lines(asked())
                .cause("dns-resolution-failure")
                .advise(words)
                .run(format!("getent ahosts {}; cat /etc/resolv.conf", word(host)))
        };
        match known!(server.lookup) {
            Lookup::Found(addresses) => {
                let addresses: Vec<String> = addresses.iter().map(ToString::to_string).collect();
                Found::passed(format!("{host} is {}", addresses.join(", "))).line(servers.clone())
            }
            Lookup::NoSuchName(said) => mend(
                format!("there is no name {host}"),
                "correct the name, or the server that should know it",
            )
            .line(format!("the system's resolver says: {said}")),
            Lookup::NoAnswer(said) => mend(
                format!("no name server resolves {host}"),
                "see whether the name servers of resolv.conf can be reached and answer",
            )
            .line(format!("the system's resolver says: {said}")),
        }
    })
}

pub(super) fn reach(facts: &Facts) -> Found {
    best(facts, |server, aim| {
        let endpoint = &server.endpoint;
        let (host, port) = endpoint.rsplit_once(':').unwrap_or((endpoint, "6443"));
        let host = word(host.trim_start_matches('[').trim_end_matches(']'));
        let mend = |found: Found, words: &str| {
            found.advise(words).run(format!("nc -vz -w 3 {host} {port}; ip route get {host}"))
        };
        match known!(server.connect) {
            Connect::Made { from, to } => {
                Found::passed(format!("{endpoint} takes connections")).line(format!("from {from} to {to}"))
            }
            Connect::Refused(address) => {
                // If an earlier join on this machine names the address, the address worked once; then the server itself
                // does not run.
                let (cause, words) = if aim.is_of_machine {
                    (
                        "apiserver-unreachable",
                        "see whether the API server runs there, or which machine now has that address",
                    )
                } else {
                    ("server-endpoint-wrong", "correct HOST:PORT, or see whether the API server runs there")
                };
                let says = format!("nothing listens at {endpoint}: the connection is refused");
                mend(
                    Found::failed(says)
                        .line(format!("{address} refuses connections to port {port}"))
                        .cause(cause),
                    words,
                )
            }
            Connect::Silent(address) => mend(
                Found::failed(format!("{endpoint} does not answer"))
                    .line(format!("{address} took no connection to port {port} in time"))
                    .cause("apiserver-unreachable"),
                "a firewall, a security group or a route drops it, or nothing has that address: look from here and from the server",
            ),
            Connect::NoWay(address, said) => mend(
                Found::failed(format!("the network has no way to {endpoint}"))
                    .line(format!("connecting to {address}: {said}"))
                    .cause("apiserver-unreachable"),
                "see the routes of this machine and of what stands in between",
            ),
        }
    })
}

/// One line for each server, on what the agent could not read about it.
pub(super) fn unread<T>(reading: &Reading<T>, what: &str) -> Option<String> {
    why(reading).map(|why| format!("{what} cannot be told: {why}"))
}
