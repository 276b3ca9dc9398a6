//! The routes of the main tables, as the kernel lists them in /proc.

use std::net::{IpAddr, Ipv4Addr, Ipv6Addr};

use reveille_agent::checkup::Reading;
use reveille_agent::checkup::facts::Route;

use crate::root::Root;

/// `RTF_UP`, and `RTF_REJECT`: a route with the latter leads nowhere.
const UP: u32 = 0x1;
const REJECT: u32 = 0x200;

pub(super) fn read(root: &Root) -> Reading<Vec<Route>> {
    let mut routes = Vec::new();
    let mut is_any_there = false;
    for (path, of) in [("/proc/net/route", v4 as fn(&str) -> Option<Route>), ("/proc/net/ipv6_route", v6)] {
        match root.text(path) {
            Ok(Some(text)) => {
                is_any_there = true;
                routes.extend(text.lines().filter_map(of));
            }
            // A kernel without IPv6 has no such table.
            Ok(None) => {}
            Err(error) => return Reading::cannot_tell(format!("{path}: {error}")),
        }
    }
    if is_any_there { Reading::Read(routes) } else { Reading::cannot_tell("/proc/net/route is not there") }
}

/// The columns: Iface, Destination, Gateway, Flags, RefCnt, Use, Metric, Mask, …; addresses in the machine's byte order.
fn v4(line: &str) -> Option<Route> {
    let fields: Vec<&str> = line.split_whitespace().collect();
    let number = |at: usize| u32::from_str_radix(fields.get(at)?, 16).ok();
    let (to, flags, mask) = (number(1)?, number(3)?, number(7)?);
    let to = Ipv4Addr::from(to.to_ne_bytes());
    let prefix_bits = u8::try_from(mask.count_ones()).ok()?;
    usable(flags).then(|| Route { to: IpAddr::V4(to), prefix_bits, device: fields[0].to_owned() })
}

/// The columns: destination, its prefix, source, its prefix, next hop, metric, references, uses, flags, device.
fn v6(line: &str) -> Option<Route> {
    let fields: Vec<&str> = line.split_whitespace().collect();
    let to = Ipv6Addr::from(u128::from_str_radix(fields.first()?, 16).ok()?);
    let prefix_bits = u8::from_str_radix(fields.get(1)?, 16).ok()?;
    let flags = u32::from_str_radix(fields.get(8)?, 16).ok()?;
    let device = (*fields.get(9)?).to_owned();
    // The kernel lists a default route over lo where no default route exists.
    let leads = usable(flags) && !(device == "lo" && prefix_bits == 0);
    leads.then_some(Route { to: IpAddr::V6(to), prefix_bits, device })
}

const fn usable(flags: u32) -> bool {
    flags & UP != 0 && flags & REJECT == 0
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_kernels_tables_are_read() {
        let four = v4("eth0\t00000000\t0100000A\t0003\t0\t0\t0\t00000000\t0\t0\t0").unwrap();
        assert_eq!((four.to.to_string().as_str(), four.prefix_bits), ("0.0.0.0", 0));
        // 10.0.0.0/24, on a little-endian machine.
        let four = v4("eth0\t0000000A\t00000000\t0001\t0\t0\t0\t00FFFFFF\t0\t0\t0").unwrap();
        assert!(four.covers("10.0.0.200".parse().unwrap()) && !four.covers("10.0.1.1".parse().unwrap()));
        assert_eq!(v4("Iface\tDestination\tGateway \tFlags"), None);
        assert_eq!(v4("eth0\t0000000A\t00000000\t0200\t0\t0\t0\t00FFFFFF\t0\t0\t0"), None, "it rejects");
        let zeros = "0".repeat(32);
        let six = format!(
            "{zeros} 00 {zeros} 00 fe800000000000000000000000000001 00000400 00000001 00000000 00000003 eth0"
        );
        assert_eq!(v6(&six).map(|route| (route.prefix_bits, route.device)), Some((0, "eth0".to_owned())));
        let none = format!("{zeros} 00 {zeros} 00 {zeros} ffffffff 00000001 00000000 00200200       lo");
        assert_eq!(v6(&none), None);
    }
}
