//! Which process listens on the kubelet's ports, by the kernel's tables of sockets.

use std::net::{IpAddr, Ipv4Addr, Ipv6Addr};

use reveille_agent::checkup::Reading;
use reveille_agent::checkup::facts::{Holder, Port};

use super::process::Processes;
use crate::root::Root;

/// `TCP_LISTEN`.
const LISTENS: &str = "0A";

/// A socket that listens.
#[derive(Clone, Debug, PartialEq, Eq)]
struct Listener {
    address: IpAddr,
    port: u16,
    inode: u64,
}

/// The owner of each wanted port: the address, the number and the purpose. 0 is an unused port.
pub(super) fn read(root: &Root, wanted: &[(String, u16, &str)], processes: Option<&Processes>) -> Vec<Port> {
    let listeners = listeners(root);
    let wanted = wanted.iter().filter(|(_, number, _)| *number > 0);
    wanted
        .map(|(address, number, what)| {
            let holder = match &listeners {
                Ok(all) => Reading::Read(holder(all, address, *number, processes)),
                Err(why) => Reading::cannot_tell(why.as_str()),
            };
            Port { number: *number, what: (*what).to_owned(), holder }
        })
        .collect()
}

fn holder(all: &[Listener], wanted: &str, number: u16, processes: Option<&Processes>) -> Option<Holder> {
    let wanted: IpAddr = wanted.parse().unwrap_or(IpAddr::V4(Ipv4Addr::UNSPECIFIED));
    // Two processes may listen on one port at two addresses, when neither is the wildcard address.
    let meets = |one: &&Listener| {
        one.port == number
            && (one.address.is_unspecified() || wanted.is_unspecified() || one.address == wanted)
    };
    let meeting: Vec<&Listener> = all.iter().filter(meets).collect();
    let inodes: Vec<u64> = meeting.iter().map(|one| one.inode).collect();
    let holders = processes.map(|processes| processes.holders(&inodes)).unwrap_or_default();
    let of = |listener: &&Listener| {
        let process = holders.get(&listener.inode);
        Holder {
            program: process.map(|process| process.name.clone()),
            pid: process.map(|process| process.pid),
            is_kubelet: process.is_some_and(|process| process.is_kubelet),
        }
    };
    // Where the kubelet and another process both listen, the other process is the problem.
    let holders: Vec<Holder> = meeting.iter().map(of).collect();
    holders.iter().find(|holder| !holder.is_kubelet).or_else(|| holders.first()).cloned()
}

fn listeners(root: &Root) -> Result<Vec<Listener>, String> {
    let mut all = Vec::new();
    let mut is_any_there = false;
    for path in ["/proc/net/tcp", "/proc/net/tcp6"] {
        match root.text(path) {
            Ok(Some(text)) => {
                is_any_there = true;
                all.extend(text.lines().filter_map(listener));
            }
            Ok(None) => {}
            Err(error) => return Err(format!("{path}: {error}")),
        }
    }
    if is_any_there { Ok(all) } else { Err("/proc/net/tcp is not there".to_owned()) }
}

/// The columns: number, local address, remote address, state, queues, timer, retransmits, uid, timeout, inode, …
fn listener(line: &str) -> Option<Listener> {
    let fields: Vec<&str> = line.split_whitespace().collect();
    let (address, port) = fields.get(1)?.split_once(':')?;
    if *fields.get(3)? != LISTENS {
        return None;
    }
    let port = u16::from_str_radix(port, 16).ok()?;
    Some(Listener { address: address_of(address)?, port, inode: fields.get(9)?.parse().ok()? })
}

/// Hexadecimal 32-bit words in the machine's byte order.
fn address_of(hex: &str) -> Option<IpAddr> {
    let word = |at: usize| Some(u32::from_str_radix(hex.get(at..at + 8)?, 16).ok()?.to_ne_bytes());
    if hex.len() == 8 {
        return Some(IpAddr::V4(Ipv4Addr::from(word(0)?)));
    }
    let mut bytes = [0; 16];
    for (index, part) in bytes.chunks_mut(4).enumerate() {
        part.copy_from_slice(&word(8 * index)?);
    }
    let six = Ipv6Addr::from(bytes);
    Some(six.to_ipv4_mapped().map_or(IpAddr::V6(six), IpAddr::V4))
}
